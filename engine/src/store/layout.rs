//! Layout: where the files of a store are, and checks that each is a plain file or folder in its place.
//!
//! ```text
//! STORE/log/00000017.json                one commit           STORE/log/00000100.checkpoint.json   all commits up to it
//! STORE/runs/k3v0.../tasks-000.parquet     rows of one import   STORE/runs/.import-k3v0...           an import at work
//! STORE/log/last.json                    a hint for readers behind URLs
//! STORE/views.sql                         for DuckDB       STORE/view/…                         kept by `tq view`, see `beside`
//! ```
//! Stores come from strangers: folders and files must be plain ones, so that no link leads out of the store and no FIFO waits for
//! ever, and what a commit calls a file is exactly `<id>/<name>`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{ImportError, io_reason};

/// Letters and digits of an import's folder.
pub(super) const ID_LETTERS: usize = 16;
/// How the folder of an import that is at work begins.
pub(super) const STAGING: &str = ".import-";
/// How a commit that is being written begins.
pub(super) const UNLINKED: &str = ".commit-";

/// The folder of commits.
pub(super) fn log_folder(root: &Path) -> PathBuf {
    root.join("log")
}

/// The folder of imports.
pub(super) fn runs_folder(root: &Path) -> PathBuf {
    root.join("runs")
}

/// Whether a text is the random name of an import's folder.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == ID_LETTERS && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The folder and the name of `<id>/<name>.parquet`; `None` for all that is not exactly that.
pub(super) fn parts_of(path: &str) -> Option<(&str, &str)> {
    let (id, name) = path.split_once('/')?;
    let stem = name.strip_suffix(".parquet")?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (is_id(id) && !stem.is_empty() && name.len() <= 64 && stem.bytes().all(is_plain)).then_some((id, name))
}

/// Something in the store is not as it was written.
pub(super) fn damaged(path: &Path, what: impl Into<String>) -> ImportError {
    ImportError::Unusable {
        path: path.to_owned(),
        what: format!("damaged: {}", what.into()),
        hint: Some("import the traces again into a new store, or restore the file from a copy".to_owned()),
    }
}

/// The system refused something about a file of the store.
pub(super) fn failed(path: &Path, doing: &str, error: &io::Error) -> ImportError {
    ImportError::Unusable { path: path.to_owned(), what: format!("cannot {doing}: {}", io_reason(error)), hint: None }
}

/// That a folder is there and no link.
pub(super) fn check_folder(path: &Path) -> Result<(), ImportError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(damaged(path, "it is no plain folder")),
        Err(error) => Err(failed(path, "read the store", &error)),
    }
}

/// Opens a plain file: no link is followed, and what is no file does not wait for anybody.
pub(super) fn open_plain(path: &Path) -> Result<File, ImportError> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file());
    if is_link {
        return Err(damaged(path, "it is no plain file"));
    }
    let file = options.open(path).map_err(|error| failed(path, "read", &error))?;
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        Ok(_) => Err(damaged(path, "it is no plain file")),
        Err(error) => Err(failed(path, "read", &error)),
    }
}

/// Makes what was created, renamed or removed in a folder last.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    // Only unix can open a folder for that.
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// The folders of a store, made if they are not there.
pub(super) fn make(root: &Path) -> Result<(), ImportError> {
    for folder in [root.to_owned(), log_folder(root), runs_folder(root)] {
        if let Err(error) = fs::create_dir(&folder)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(failed(&folder, "make the folder", &error));
        }
    }
    for folder in [log_folder(root), runs_folder(root)] {
        check_folder(&folder)?;
    }
    sync_folder(root).map_err(|error| failed(root, "write", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_exactly_in_their_folder() {
        let good = "abcdefGHIJ012345/tasks-000.parquet";
        assert_eq!(parts_of(good), Some(("abcdefGHIJ012345", "tasks-000.parquet")));
        let bad = [
            "abcdefGHIJ01234/tasks-000.parquet",
            "abcdefGHIJ012345/../tasks.parquet",
            "abcdefGHIJ012345//tasks.parquet",
            "/abcdefGHIJ012345/tasks.parquet",
            "abcdefGHIJ012345/a/tasks.parquet",
            "abcdefGHIJ012345/.parquet",
            "abcdefGHIJ012345/tasks.sql",
            "../../etc/passwd",
            "abcdefGHIJ01234é/tasks.parquet",
            "abcdefGHIJ012345/ta'ks.parquet",
        ];
        assert!(bad.iter().all(|path| parts_of(path).is_none()));
    }
}
