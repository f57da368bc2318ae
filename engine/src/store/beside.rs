//! Beside: a cache file that a program keeps in a store, made from the rows of its runs.
//!
//! ```text
//! STORE/view/<32 letters>      named by what it was made from: these runs, as they are named and scaled in the session
//!           /.new-…            one that is being written
//! ```
//! No commit names it. It may be missing, and `gc` removes all such files: a program that needs one makes it again.

use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::layout::{open_plain, sync_folder};
use super::scan::StoredRows;
use crate::remote;
use crate::tables::Table;
use crate::trace::NamedRun;
use crate::trace::temporary::Registered;

/// The folder of a store that has them.
const FOLDER: &str = "view";
/// How one begins that is being written.
const NEW: &str = ".new-";
/// Letters and digits of a name.
const NAME_LETTERS: usize = 32;

/// Where a file beside the runs of a session is, whether or not it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    folder: PathBuf,
    name: String,
}

/// A file that is being written; dropped, it is gone.
#[derive(Debug)]
pub struct Unfinished {
    file: NamedTempFile,
    _registered: Registered,
    place: Beside,
}

impl Beside {
    /// Of what is made from the tasks of runs by something of this version; `None` where they are not all in one store on disk, or not whole.
    pub(crate) fn of<'a>(runs: impl Iterator<Item = &'a NamedRun>, version: &str) -> Option<Beside> {
        let (mut root, mut text): (Option<&Path>, _) = (None, format!("tq {} {version}\n", env!("CARGO_PKG_VERSION")));
        for named in runs {
            let stored = StoredRows::of(&named.run)?;
            text.push_str(&format!("run {:?} {:?} {}\n", named.name, named.run.info.tick, stored.factor));
            for group in
                stored.groups.get(&Table::Tasks).into_iter().chain(stored.groups.get(&Table::Locations)).flatten()
            {
                let path = group.file.path();
                // STORE/runs/<id>/tasks-000.parquet
                let of_group = path.ancestors().nth(3)?;
                if group.kept.is_some() || remote::is_url(of_group) || root.is_some_and(|root| root != of_group) {
                    return None;
                }
                root = Some(of_group);
                text.push_str(&format!("{:?} {}\n", path.strip_prefix(of_group).ok()?, group.index));
            }
        }
        Some(Beside { folder: root?.join(FOLDER), name: name_of(&text) })
    }

    /// The file, where it is there.
    pub fn find(&self) -> Option<File> {
        let folder = fs::symlink_metadata(&self.folder).is_ok_and(|folder| folder.is_dir());
        open_plain(&self.folder.join(&self.name)).ok().filter(|_| folder)
    }

    /// Begins to write it.
    ///
    /// # Errors
    /// Nothing can be written there.
    pub fn begin(&self) -> io::Result<Unfinished> {
        match fs::create_dir(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            // A link could lead anywhere.
            _ if !fs::symlink_metadata(&self.folder)?.is_dir() => return Err(io::ErrorKind::NotADirectory.into()),
            _ => {}
        }
        let file = tempfile::Builder::new().prefix(NEW).tempfile_in(&self.folder)?;
        let registered = Registered::new(file.path());
        Ok(Unfinished { file, _registered: registered, place: self.clone() })
    }
}

impl Unfinished {
    /// The file.
    ///
    /// # Errors
    /// The system's.
    pub fn file(&self) -> io::Result<File> {
        // Not a copy of the handle: it would share the place where reading and writing are.
        OpenOptions::new().read(true).write(true).open(self.file.path())
    }

    /// Gives the complete file its name: it is found from now on.
    ///
    /// # Errors
    /// The system's; a full disk.
    pub fn keep(self) -> io::Result<()> {
        self.file.as_file().sync_all()?;
        let (folder, name) = (&self.place.folder, &self.place.name);
        self.file.persist(folder.join(name)).map_err(|error| error.error)?;
        sync_folder(folder)
    }
}

/// Two halves of 64 bits, of which each is of the whole text.
pub(super) fn name_of(text: &str) -> String {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, text).hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", half(0), half(1))
}

/// Removes what was kept beside the runs of a store; returns how many files, and their bytes.
pub(super) fn clear(root: &Path) -> (u64, u64) {
    let folder = root.join(FOLDER);
    let (mut files, mut bytes) = (0, 0);
    if !fs::symlink_metadata(&folder).is_ok_and(|folder| folder.is_dir()) {
        return (0, 0);
    }
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        // What a store does not make is not deleted.
        let is_name = |name: &str| name.len() == NAME_LETTERS && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_ours = name.to_str().is_some_and(|name| name.starts_with(NEW) || is_name(name));
        let Some(metadata) = entry.metadata().ok().filter(|metadata| is_ours && metadata.is_file()) else { continue };
        if fs::remove_file(entry.path()).is_ok() {
            (files, bytes) = (files + 1, bytes + metadata.len());
        }
    }
    let _ = fs::remove_dir(&folder);
    (files, bytes)
}
