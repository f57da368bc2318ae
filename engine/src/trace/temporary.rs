//! Temporary copies of files, removed however the process ends.
//!
//! Libraries that insist on a file get a copy in a folder of its own, which is removed when its [`TemporaryFolder`] is dropped. A
//! process that a signal ends drops nothing, so all folders are in a list, which [`remove_all`] removes. A killed process
//! (SIGKILL) runs no code at all: its folders are locked while it lives, and whoever makes the next copy removes those that nobody
//! holds.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use datafusion::execution::disk_manager::DiskManager;
use tempfile::TempDir;

use crate::error::{ImportError, io_reason};

/// How the folders begin.
const PREFIX: &str = "tq-copy-";
/// The file in a folder that its owner has locked.
const LOCK: &str = "lock";
/// A folder without a lock is one that was just made, unless it is older than this.
const YOUNG: Duration = Duration::from_secs(3600);

/// What is to be removed when the process ends.
static PRESENT: Mutex<Present> = Mutex::new(Present { paths: Vec::new(), spilled: Vec::new() });

struct Present {
    paths: Vec<PathBuf>,
    /// What queries wrote to disk for lack of memory; the folder is made when it is needed.
    spilled: Vec<Weak<DiskManager>>,
}

/// A folder for temporary copies; dropping it removes it.
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
        present().paths.push(path.to_owned());
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

/// What this writes to disk is removed too.
pub(crate) fn register_spills(manager: Weak<DiskManager>) {
    let mut present = present();
    present.spilled.retain(|manager| manager.strong_count() > 0);
    present.spilled.push(manager);
}

/// Removes everything temporary, before the process exits without unwinding. A thread that tries to create something
/// temporary from now on waits forever: the process is about to end.
pub fn remove_all() {
    /// How often a folder is tried.
    const REMOVALS: usize = 100;

    let mut present = present();
    let spilled = present.spilled.drain(..).filter_map(|manager| manager.upgrade());
    let spilled: Vec<PathBuf> = spilled.flat_map(|manager| manager.temp_dir_paths()).collect();
    for path in present.paths.drain(..).chain(spilled) {
        // Sorts on other threads may still begin files in it. What cannot be removed is left; there is no way to report it.
        for _ in 0..REMOVALS {
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            if path.symlink_metadata().is_err() {
                break;
            }
        }
    }
    std::mem::forget(present);
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
    fn a_folder_goes_with_its_owner() {
        let folder = TemporaryFolder::new().expect("a folder");
        let file = folder.file("copy");
        fs::write(&file, "x").expect("a file");
        assert!(present().paths.iter().any(|path| file.starts_with(path)));
        drop(folder);
        assert!(!file.exists() && !present().paths.iter().any(|path| file.starts_with(path)));
    }
}
