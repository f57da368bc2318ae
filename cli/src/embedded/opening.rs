//! What to open, and how.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use tq_engine::time::GivenTime;

use super::frames::Frame;
use crate::args::OpenArgs;
use crate::errors::{Failure, Problem};
use crate::text::words::bytes;

/// Hears how far reading is: the file, the bytes read, and how many there are.
pub type Progress = Arc<dyn Fn(&Path, u64, Option<u64>) + Send + Sync>;

/// Traces and options, as on the command line.
#[derive(Default)]
pub struct Opening {
    /// `[name=]path`: files, folders, stores, URLs.
    pub traces: Vec<String>,
    /// Tables of rows that come from no file; they stand before the traces.
    pub frames: Vec<Frame>,
    /// The format of the traces; else they are recognised.
    pub from_format: Option<String>,
    /// Import options of formats.
    pub options: Vec<(String, String)>,
    /// Added to `runs.args`.
    pub run_args: Vec<(String, String)>,
    /// Of stores, only the runs that this pattern names.
    pub runs: Option<String>,
    /// What overlaps the time from here on, e.g. `1.5ms`; bare numbers are ticks.
    pub from: Option<String>,
    /// What overlaps the time before this.
    pub to: Option<String>,
    /// Memory for tables and queries, e.g. `8GB`.
    pub memory: Option<String>,
    /// The longest text or list that a function may make or a file may hold.
    pub max_value: Option<String>,
    /// Threads for reading and for queries.
    pub threads: Option<usize>,
    /// Whether traces of which something was lost are an error.
    pub strict: bool,
    /// Whether SQL may only ask.
    pub read_only: bool,
    /// Whether traces that were read are kept in the user's cache folder.
    pub cache: Option<bool>,
    /// Workers that help with stores.
    pub cluster: Option<String>,
    /// Hears how far reading is.
    pub progress: Option<Progress>,
}

impl Opening {
    /// The same on a command line.
    pub(super) fn args(&self) -> Result<OpenArgs, Failure> {
        let amount = |name: &str, given: &Option<String>| {
            let wrong = |why| Failure::from(Problem::new(format!("`{name}`: {why}")));
            given.as_deref().map(bytes).transpose().map_err(wrong)
        };
        let time = |name: &str, given: &Option<String>| {
            let wrong = |why: <GivenTime as FromStr>::Err| Failure::from(Problem::new(format!("`{name}`: {why}")));
            given.as_deref().map(GivenTime::from_str).transpose().map_err(wrong)
        };
        if self.threads == Some(0) {
            return Err(Problem::new("`threads`: one thread is the least").into());
        }
        Ok(OpenArgs {
            traces: self.traces.clone(),
            from_format: self.from_format.clone(),
            options: self.options.clone(),
            run_pattern: self.runs.clone(),
            cache: self.cache,
            from: time("from", &self.from)?,
            to: time("to", &self.to)?,
            run_args: self.run_args.clone(),
            memory: amount("memory", &self.memory)?,
            max_value: amount("max_value", &self.max_value)?,
            threads: self.threads,
            strict: self.strict,
            read_only: self.read_only,
            cluster: self.cluster.clone(),
            tls_ca: None,
            keep_runs: false,
        })
    }
}

/// A [`Progress`] as the engine has it.
pub(super) struct Watcher(pub(super) Progress);

impl tq_engine::trace::Progress for Watcher {
    fn advanced(&self, source: &Path, read: u64, total: Option<u64>) {
        (self.0)(source, read, total);
    }
}
