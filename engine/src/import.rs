//! Import: traces are read, as for a session, and their runs added to a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryPool;

use crate::error::ImportError;
use crate::memory::SessionPool;
use crate::open;
use crate::options::OpenOptions;
use crate::remote;
use crate::session::{RunSummary, summary};
use crate::store::{self, Addition, Replace};
use crate::trace::{NamedRun, Severity, Spill, stem};

/// What an import did.
#[derive(Debug)]
pub struct Imported {
    /// The new runs: name, format, source, rows, `import_stats`.
    pub runs: Vec<RunSummary>,
    /// Runs that were replaced.
    pub replaced: usize,
    /// What the user should hear.
    pub notes: Vec<String>,
    /// What did not work and does not matter to the store.
    pub warnings: Vec<String>,
}

/// Reads traces and adds their runs to a store, which is made if it is not there: all of them in one commit, or none. `strict`: none
/// where any record was lost.
///
/// # Errors
/// As opening a session; a name is taken; the store cannot be written.
pub fn import(root: &Path, options: &OpenOptions, replace: &Replace, strict: bool) -> Result<Imported, ImportError> {
    import_runs(root, Vec::new(), options, replace, strict)
}

/// As [`import()`], with runs that come from no file before those of the traces, as [`Session::from_runs`](crate::Session::from_runs)
/// has them.
///
/// # Errors
/// As [`import()`].
pub fn import_runs(
    root: &Path,
    runs: Vec<NamedRun>,
    options: &OpenOptions,
    replace: &Replace,
    strict: bool,
) -> Result<Imported, ImportError> {
    import_spilling(root, runs, options, replace, strict, (options.memory_limit / 4).min(ENOUGH))
}

/// However much memory there is, rows wait on disk when so much of it is in use.
const ENOUGH: usize = 1 << 30;

/// As [`import_runs`]; rows wait on disk from so many bytes in use on.
pub(crate) fn import_spilling(
    root: &Path,
    runs: Vec<NamedRun>,
    options: &OpenOptions,
    replace: &Replace,
    strict: bool,
    above: usize,
) -> Result<Imported, ImportError> {
    let addition = Addition::to(root, replace, options.read_time)?;
    let is_file = |path: &Path| path.is_file() || path == Path::new("-") || remote::is_url(path);
    for spec in options.traces.iter().filter(|spec| is_file(&spec.path)) {
        addition.check(&[spec.name.clone().unwrap_or_else(|| stem(&spec.shown()))])?;
    }
    let pool: Arc<dyn MemoryPool> = Arc::new(SessionPool::new(options.memory_limit));
    let spill = Spill::new(nearest_folder(root), &pool, above);
    let (mut runs, mut notes) = open::read(runs, options, &open::budget(options, &pool).spilling(spill))?;
    for named in &mut runs {
        open::note_arguments(&mut named.run, options)?;
        store::fill(&mut named.run, addition.deadline)?;
        let path = named.run.source.clone();
        named.run.fill_in_identities().map_err(|error| ImportError::internal(&path, error))?;
    }
    let names: Vec<String> = runs.iter().map(|named| named.name.clone()).collect();
    addition.check(&names)?;
    if let Some(odd) = names.iter().find(|name| name.chars().any(char::is_control)) {
        notes.push(format!("the name of run `{}` has control characters", odd.escape_debug()));
    }
    let is_lost = |named: &&NamedRun| named.run.stats.iter().any(|stat| stat.finding.severity == Severity::Lost);
    if let Some(named) = runs.iter().find(is_lost).filter(|_| strict) {
        return Err(ImportError::Session {
            what: format!("--strict: records of run `{}` were lost while reading; nothing was imported", named.name),
            hint: Some("without --strict, `import_stats` in the store says what".to_owned()),
        });
    }
    let added = addition.add(&runs)?;
    let runs = runs.iter().map(summary).collect();
    Ok(Imported { runs, replaced: added.replaced, notes, warnings: added.warnings })
}

/// The folder of a store, or the one in which it will be: what waits on disk is on the disk that needs room anyway.
fn nearest_folder(root: &Path) -> PathBuf {
    if remote::is_url(root) {
        return std::env::temp_dir();
    }
    let folder = root.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new(""));
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() }
}
