//! Temporary files, removed however the process ends.
//!
//! Libraries that insist on a file get a copy in a folder of its own, which is removed when its [`TemporaryFolder`] is dropped; so do queries
//! that write what has no room in memory (`SpillFolder`). A process that a signal ends drops nothing, so all folders are in a list, which
//! [`remove_all`] removes. A killed process (SIGKILL) runs no code at all: its folders are locked while it lives, and whoever makes the next
//! one removes those that nobody holds.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::{SpillFile, SpillWriter, TempFileFactory};
use futures::Stream;
use tempfile::TempDir;

use crate::error::{ImportError, io_reason};

/// How the folders begin.
const PREFIX: &str = "tq-temporary-";
/// The file in a folder that its owner has locked.
const LOCK: &str = "lock";
/// A folder without a lock is one that was just made, unless it is older than this.
const YOUNG: Duration = Duration::from_secs(3600);

/// What is to be removed when the process ends.
static PRESENT: Mutex<Present> = Mutex::new(Present { paths: Vec::new(), is_over: false });

struct Present {
    paths: Vec<PathBuf>,
    /// Whether all was removed, for good.
    is_over: bool,
}

/// A folder for temporary files; dropping it removes it.
#[derive(Debug)]
pub struct TemporaryFolder {
    folder: TempDir,
    _registered: Registered,
    /// Locked, so that no other process removes it.
    _lock: File,
}

impl TemporaryFolder {
    /// A new folder in the system's directory for temporary files (`TMPDIR`).
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new() -> io::Result<TemporaryFolder> {
        sweep(&std::env::temp_dir());
        let folder = TempDir::with_prefix(PREFIX)?;
        let registered = Registered::new(folder.path());
        // A lock that others see is locked.
        let unseen = folder.path().join("unlocked");
        let lock = File::create(&unseen)?;
        lock.lock()?;
        fs::rename(&unseen, folder.path().join(LOCK))?;
        Ok(TemporaryFolder { folder, _registered: registered, _lock: lock })
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The error of a trace of which no temporary copy could be written.
pub(crate) fn no_copy(trace: &Path, error: &io::Error) -> ImportError {
    let folder = std::env::temp_dir();
    ImportError::Unusable {
        path: trace.to_owned(),
        what: format!("a temporary copy of it cannot be written to `{}`: {}", folder.display(), io_reason(error)),
        hint: Some("`TMPDIR=DIRECTORY tq …` puts it where there is room".to_owned()),
    }
}

/// A path that is removed if a signal ends the process while this value lives. Dropping the value does not remove the
/// path.
#[derive(Debug)]
pub struct Registered(PathBuf);

impl Registered {
    /// Registers a path: from now on it is removed if a signal ends the process.
    pub fn new(path: &Path) -> Registered {
        let mut present = present();
        if present.is_over {
            drop(present);
            loop {
                std::thread::park();
            }
        }
        present.paths.push(path.to_owned());
        Registered(path.to_owned())
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut present = present();
        if let Some(place) = present.paths.iter().position(|path| *path == self.0) {
            present.paths.swap_remove(place);
        }
    }
}

/// Where the queries of a session write what has no room in memory: a folder that is made with the first file.
#[derive(Default)]
pub(crate) struct SpillFolder(Mutex<Option<(Arc<TemporaryFolder>, Arc<DiskManager>)>>);

impl SpillFolder {
    /// What makes files in such a folder.
    pub(crate) fn manager() -> DiskManagerBuilder {
        DiskManager::builder().with_mode(DiskManagerMode::Custom(Arc::new(SpillFolder::default())))
    }

    fn folder(&self) -> Result<(Arc<TemporaryFolder>, Arc<DiskManager>)> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = &*made {
            return Ok(made.clone());
        }
        let folder = TemporaryFolder::new().map_err(DataFusionError::IoError)?;
        let mode = DiskManagerMode::Directories(vec![folder.folder.path().to_owned()]);
        let manager = DiskManager::builder().with_mode(mode).build()?;
        Ok(made.insert((Arc::new(folder), Arc::new(manager))).clone())
    }
}

impl TempFileFactory for SpillFolder {
    fn create_temp_file(&self, description: &str) -> Result<Arc<dyn SpillFile>> {
        let (folder, manager) = self.folder()?;
        Ok(Arc::new(Spilled { file: manager.create_tmp_file(description)?, _folder: folder }))
    }
}

/// A file, and its folder as long as somebody has the file.
struct Spilled {
    file: Arc<dyn SpillFile>,
    _folder: Arc<TemporaryFolder>,
}

impl SpillFile for Spilled {
    fn path(&self) -> Option<&Path> {
        self.file.path()
    }

    fn size(&self) -> Option<u64> {
        self.file.size()
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        self.file.read_stream()
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        self.file.open_writer()
    }
}

/// Removes everything temporary, before the process exits without unwinding. A thread that tries to create something
/// temporary from now on waits forever: the process is about to end. What is dropped from now on is not waited for.
pub fn remove_all() {
    /// How often a folder is tried.
    const REMOVALS: usize = 100;

    let mut present = present();
    present.is_over = true;
    for path in present.paths.drain(..) {
        // Sorts on other threads may still begin files in it. What cannot be removed is left; there is no way to report it.
        for _ in 0..REMOVALS {
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            if path.symlink_metadata().is_err() {
                break;
            }
        }
    }
}

/// Removes the folders of processes that were killed.
fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // A link is no folder of ours.
        if is_ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) && is_abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    match File::open(folder.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(_) => {
            let modified = fs::metadata(folder).and_then(|metadata| metadata.modified());
            modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > YOUNG))
        }
    }
}

fn present() -> MutexGuard<'static, Present> {
    PRESENT.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_nobody_holds_are_swept_away() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let folder = |name: &str| {
            let folder = directory.path().join(format!("{PREFIX}{name}"));
            fs::create_dir(&folder).expect("a folder");
            folder
        };
        let (held, left, new) = (folder("held"), folder("left"), folder("new"));
        let lock = File::create(held.join(LOCK)).expect("a file");
        lock.lock().expect("a lock");
        drop(File::create(left.join(LOCK)).expect("a file"));
        sweep(directory.path());
        assert_eq!([&held, &left, &new].map(|folder| folder.exists()), [true, false, true]);
    }

    #[test]
    fn what_is_spilled_outlives_its_session_and_goes_with_the_last_file() {
        let spills = Arc::new(SpillFolder::manager().build().expect("a manager"));
        let files = [(); 2].map(|()| spills.create_tmp_file("a sort").expect("a file"));
        let [folder, same] = files
            .each_ref()
            .map(|file| file.path().and_then(Path::parent).and_then(Path::parent).expect("two folders").to_owned());
        assert!(folder == same && present().paths.contains(&folder));
        drop(spills);
        let mut writer = files[1].open_writer().expect("the file is there");
        std::io::Write::write_all(&mut writer, b"rows").expect("there is room");
        drop((writer, files));
        assert!(!folder.exists() && !present().paths.contains(&folder));
    }

    #[test]
    fn a_folder_goes_with_its_owner() {
        let folder = TemporaryFolder::new().expect("a folder");
        let file = folder.file("copy");
        fs::write(&file, "x").expect("a file");
        assert!(present().paths.iter().any(|path| file.starts_with(path)));
        drop(folder);
        assert!(!file.exists() && !present().paths.iter().any(|path| file.starts_with(path)));
    }
}
