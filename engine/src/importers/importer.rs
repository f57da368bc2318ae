//! The trait that each format implements, its documentation for users, and the context that it works with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryPool;

use crate::error::ImportError;
use crate::trace::{Budget, Part, Run, RunBuilder, Source};

/// A trace format. Programs that embed the engine add their own in [`OpenOptions::importers`](crate::open::OpenOptions).
pub trait Importer: Send + Sync {
    /// What users read about it (`tq formats`, `docs/formats.md`).
    fn doc(&self) -> &'static FormatDoc;

    /// Whether the content is of this format, judged by [`Source::head`] (and the source's length), never by the name.
    fn recognise(&self, source: &Source) -> bool;

    /// Whether the format takes a file that no format recognises: because the user's options speak of it, or because the
    /// user `named` this very file and the format can say what it lacks.
    fn accepts(&self, _source: &Source, _options: &ImportOptions, _named: bool) -> bool {
        false
    }

    /// Reads the trace: for each run that it holds, [`ImportContext::begin`] … [`ImportContext::finish`].
    ///
    /// # Errors
    /// An [`ImportError`] that names file and place when nothing sensible can be said of the rest of the trace. Single
    /// damaged records are counted in [`RunBuilder::stats`] instead.
    fn import(&self, source: &Source, context: &mut ImportContext<'_>) -> Result<(), ImportError>;

    /// Which of the files of a directory only accompany others and are no traces of their own there: a graph dump beside its
    /// trace, a column mapping beside its data.
    fn companions_among(&self, _files: &[PathBuf]) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Files that may be read with `file`, because they lie beside it or it names them, whether they are there or not. Nothing is
    /// recognised for this: the file need not be of the format.
    fn companions(&self, _file: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Whether the files of a directory that this format recognises are parts of one run: the ranks of a job.
    fn is_one_run(&self, _sources: &[Source]) -> bool {
        false
    }

    /// Reads the files of a directory that [`Importer::is_one_run`] holds together.
    ///
    /// # Errors
    /// As [`Importer::import`].
    fn import_directory(
        &self,
        _directory: &Path,
        sources: &[Source],
        context: &mut ImportContext<'_>,
    ) -> Result<(), ImportError> {
        sources.iter().try_for_each(|source| self.import(source, context))
    }
}

/// What users read about a format.
#[derive(Debug)]
pub struct FormatDoc {
    /// Its name in `--from-format`, `runs.format` and option keys.
    pub name: &'static str,
    /// One line: which programs write it.
    pub title: &'static str,
    /// Versions and variants that are read.
    pub dialects: &'static [&'static str],
    /// Tables (and notable columns) that it fills.
    pub fills: &'static str,
    /// What the format knows and the tables do not hold, or what it never knew.
    pub loses: &'static str,
    /// `--option` keys.
    pub options: &'static [OptionDoc],
}

/// An import option.
#[derive(Debug)]
pub struct OptionDoc {
    /// `format.key`; a key that ends in `.*` stands for any key that begins so.
    pub key: &'static str,
    /// Its meaning and values.
    pub description: &'static str,
}

/// Import options by key, checked against the formats' documentation before any trace is opened.
pub type ImportOptions = BTreeMap<String, String>;

/// What an importer works with, and where its runs go.
pub struct ImportContext<'a> {
    /// `--option k=v`.
    pub options: &'a ImportOptions,
    /// How many threads may parse.
    pub threads: usize,
    budget: Budget,
    first_run_number: i64,
    runs: Vec<Run>,
}

impl<'a> ImportContext<'a> {
    pub(crate) fn new(
        options: &'a ImportOptions,
        threads: usize,
        budget: impl Into<Budget>,
        first_run_number: i64,
    ) -> ImportContext<'a> {
        ImportContext { options, threads, budget: budget.into(), first_run_number, runs: Vec::new() }
    }

    /// Starts a run. Finish it before the next one begins.
    pub fn begin(&self, source: &Source) -> RunBuilder {
        self.begin_at(source.path())
    }

    /// Starts a run that several files of a directory make up.
    pub fn begin_at(&self, directory: &Path) -> RunBuilder {
        RunBuilder::new(directory, self.first_run_number + self.runs.len() as i64, &self.budget)
    }

    /// Takes a complete run.
    ///
    /// # Errors
    /// As [`RunBuilder::finish`].
    pub fn finish(&mut self, builder: RunBuilder) -> Result<(), ImportError> {
        self.runs.push(builder.finish(self.threads)?);
        Ok(())
    }

    /// Takes the runs that a builder holds one after the other.
    ///
    /// # Errors
    /// As [`RunBuilder::finish_in_parts`].
    pub fn finish_in_parts(&mut self, builder: RunBuilder, parts: Vec<Part>) -> Result<(), ImportError> {
        self.runs.extend(builder.finish_in_parts(parts)?);
        Ok(())
    }

    /// The memory pool, for buffers that an importer holds besides the builder's columns.
    pub fn pool(&self) -> &Arc<dyn MemoryPool> {
        self.budget.pool()
    }

    /// What reading may consume, for readers that can wait on disk.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// A file that a trace names, within the budget of the trace.
    ///
    /// # Errors
    /// As [`Source::open_within`].
    pub fn open(&self, path: &Path) -> Result<Source, ImportError> {
        Source::open_within(path, None, &self.budget)
    }

    pub(crate) fn into_runs(self) -> Vec<Run> {
        self.runs
    }
}
