//! Options: which traces are opened, and how. A session, a store and the cache all go by them, so they stand below all three; which
//! files are read for a trace is told from them, too.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::importers::{self, ImportOptions, Importer};
use crate::paths::with_ending;
use crate::remote;
use crate::time::GivenTime;
use crate::trace::Progress;

/// A trace as the user names it: `[name=]path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSpec {
    /// The run's name, where one was given.
    pub name: Option<String>,
    /// A file, a directory, a URL, or `-`.
    pub path: PathBuf,
}

impl TraceSpec {
    /// The path as messages may say it: a URL without what may be secret.
    pub fn shown(&self) -> PathBuf {
        remote::shown(&self.path)
    }
}

/// What to open, and how.
pub struct OpenOptions {
    /// The traces, in order.
    pub traces: Vec<TraceSpec>,
    /// Formats that the embedding program adds. They are tried before the engine's own, and replace one of the same name.
    pub importers: Vec<Arc<dyn Importer>>,
    /// `--from-format`: no recognition.
    pub from_format: Option<String>,
    /// `--option k=v`.
    pub import: ImportOptions,
    /// `--run-arg k=v`, added to `runs.args` of every run (`cores` and `repetition` to their columns).
    pub run_args: Vec<(String, String)>,
    /// `--run`: of stores, only the runs that this pattern names.
    pub run_pattern: Option<String>,
    /// `--cache`: where traces that were read are kept, to be read from there the next time.
    pub cache: Option<Cache>,
    /// `--from`, since the run's origin.
    pub from: Option<GivenTime>,
    /// `--to`.
    pub to: Option<GivenTime>,
    /// Bytes for tables and queries.
    pub memory_limit: usize,
    /// Bytes of a text or a list that a scalar function makes, or that is read from a file, at most.
    pub max_value: usize,
    /// How long reading all traces may take; `None`: no limit.
    pub read_time: Option<Duration>,
    /// Threads for parsing and for queries.
    pub threads: usize,
    /// Whether SQL is restricted to questions: nothing is created, changed or written.
    pub read_only: bool,
    /// Whether sessions of parts will be made of this one: [`Session::cut`](crate::session::Session::cut).
    pub keep_runs: bool,
    /// Receives the progress of reading.
    pub progress: Option<Arc<dyn Progress>>,
}

impl OpenOptions {
    /// Options without a trace, on `threads` threads with `memory_limit` bytes.
    pub fn new(memory_limit: usize, threads: usize) -> OpenOptions {
        OpenOptions {
            traces: Vec::new(),
            importers: Vec::new(),
            from_format: None,
            import: ImportOptions::new(),
            run_args: Vec::new(),
            run_pattern: None,
            cache: None,
            from: None,
            to: None,
            memory_limit,
            max_value: tq_udfs::bounded::MAX_VALUE,
            read_time: None,
            threads,
            read_only: false,
            keep_runs: false,
            progress: None,
        }
    }

    /// The formats that are asked, in their order.
    pub(crate) fn all_importers(&self) -> Vec<&dyn Importer> {
        self.importers.iter().map(Arc::as_ref).chain(importers::importers().iter().copied()).collect()
    }
}

/// Where traces are kept, and how much of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// The folder, made when it is needed.
    pub folder: PathBuf,
    /// Its bytes at most; those that were used last stay.
    pub bytes: u64,
}

/// The files that opening a trace may read, as far as they are there: the file itself with what formats look for beside it,
/// or the files of a directory, and those that options and mappings name.
pub fn read_for(spec: &TraceSpec, options: &ImportOptions) -> Vec<PathBuf> {
    let (mut files, mut listed) = (Vec::new(), Vec::new());
    if spec.path.is_dir() {
        listed.extend(files_of(&spec.path));
    } else if spec.path != Path::new("-") {
        files.push(spec.path.clone());
        files.push(with_ending(&spec.path, "-wal"));
    }
    for key in ["tfprof.dot", "parsec.dot", "table.file", "table.mapping"] {
        let Some(path) = options.get(key).map(PathBuf::from) else { continue };
        if path.is_dir() {
            listed.extend(files_of(&path));
        } else {
            files.extend(spec.path.parent().map(|folder| folder.join(&path)));
            files.push(path);
        }
    }
    // What lies beside a file of a directory is listed, too; only mappings name what lies elsewhere.
    let mappings = listed.iter().filter(|file| file.extension().is_some_and(|extension| extension == "toml"));
    let companions: Vec<PathBuf> = (files.iter().chain(mappings))
        .flat_map(|file| importers::importers().iter().flat_map(move |importer| importer.companions(file)))
        .collect();
    files.extend(companions);
    files.extend(listed);
    files.retain(|file| file.is_file());
    files.sort();
    files.dedup();
    files
}

fn files_of(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}
