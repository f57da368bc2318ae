//! What can go wrong between a path and its tables. The variants carry fields; the CLI adds the hint.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use datafusion::error::DataFusionError;

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The operating system refused.
    #[error("cannot read trace `{}`: {}", path.display(), io_reason(source))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of no bytes.
    #[error("trace `{}` is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// No format claims the content.
    #[error("no format recognises `{}`; it begins with {head}", path.display())]
    Unrecognised {
        /// The file.
        path: PathBuf,
        /// Its first bytes, quoted.
        head: String,
    },
    /// No file of a directory was recognised.
    #[error("no trace in directory `{}`: none of its {files} files is recognised", path.display())]
    NothingInDirectory {
        /// The directory.
        path: PathBuf,
        /// How many files it holds.
        files: usize,
    },
    /// The content breaks the rules of its format.
    #[error("{}: not a readable {format} trace: {what} ({place})", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The format that was recognised or asked for.
        format: &'static str,
        /// Byte offset, line or record.
        place: String,
        /// What is wrong, in the format's own words.
        what: String,
    },
    /// An option has no meaning.
    #[error("no import option `{option}`")]
    UnknownOption {
        /// The key as given.
        option: String,
        /// The options that the formats of this session know.
        known: Vec<String>,
    },
    /// An option has a wrong value.
    #[error("import option `{option}={value}`: {what}")]
    BadOption {
        /// The key.
        option: String,
        /// The value as given.
        value: String,
        /// What is wrong with it.
        what: String,
    },
    /// `--from-format` names no format.
    #[error("no format `{name}`")]
    UnknownFormat {
        /// The name as given.
        name: String,
        /// The formats there are.
        known: Vec<&'static str>,
    },
    /// A trace that cannot be read without further information: a column mapping, a frequency.
    #[error("{}: {what}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is missing.
        what: String,
        /// Something to type.
        hint: Option<String>,
    },
    /// Two traces that cannot share a session, or a session that cannot be set up.
    #[error("{what}")]
    Session {
        /// What prevents it.
        what: String,
        /// Something to type.
        hint: Option<String>,
    },
    /// The memory limit was reached.
    #[error("{}: not enough memory to read it: {}", path.display(), plain(what))]
    Memory {
        /// The file.
        path: PathBuf,
        /// What the pool said.
        what: String,
    },
    /// The time limit for reading expired before the trace was read.
    #[error("{}: reading it took longer than {limit:?}", path.display())]
    Late {
        /// The trace that was being read.
        path: PathBuf,
        /// How long all traces together may take.
        limit: Duration,
    },
    /// A record that does not end: `--max-value` says how long one may be.
    #[error("{}: {what}", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Where it begins, and how far was looked.
        what: String,
    },
    /// The engine refused; a defect of ours.
    #[error("internal error while building the tables of `{}`: {what}", path.display())]
    Internal {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
}

impl ImportError {
    /// What the engine refused while it built the tables of a trace.
    pub(crate) fn internal(path: &Path, error: impl Into<DataFusionError>) -> ImportError {
        let what = match error.into() {
            // Its text alone: where to report it is not DataFusion's to say.
            DataFusionError::Internal(what) => what,
            other => other.strip_backtrace(),
        };
        ImportError::Internal { path: path.to_owned(), what }
    }
}

/// What a pool said, without the name of its kind of error.
fn plain(what: &str) -> &str {
    let what = what.strip_prefix("Resources exhausted: ").unwrap_or(what);
    what.lines().next().unwrap_or(what)
}

/// Why the operating system refused something about a file, without the number of its error. An error with words of our own keeps them.
pub fn io_reason(error: &io::Error) -> String {
    let known = match error.kind() {
        _ if error.raw_os_error().is_none() => return error.to_string(),
        io::ErrorKind::NotFound => "no such file or directory",
        io::ErrorKind::NotADirectory => "it lies within a file",
        io::ErrorKind::IsADirectory => "it is a directory",
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::StorageFull => "the disk is full",
        io::ErrorKind::QuotaExceeded => "the disk quota is used up",
        io::ErrorKind::FileTooLarge => "the file would be larger than `ulimit -f` allows",
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        _ => return error.to_string(),
    };
    known.to_owned()
}
