//! Stores: runs on disk as Parquet files, with a log of commits; the same tables, notes and `import_stats` as from the traces.
//!
//! ```text
//! tq import:  traces → runs (as for a session) → files under runs/<id> → a commit in log/
//! tq query:   log/ → which runs there are → rows of those that were asked for
//! ```
//! ```text
//! layout   names of folders and files          write       rows → files             conditions   which rows a query needs
//! log      commits: which runs there are       read        files → rows             cut          which rows are in a slice of time
//! facts    what a commit says of a run         scan        a table over runs        keep         removes what no run needs
//! views    how DuckDB reads a store            columns     columns of the files     cache        stores of traces that a user read
//! ```

mod blocks;
mod cache;
mod columns;
mod conditions;
mod cut;
mod facts;
mod keep;
mod layout;
mod log;
mod read;
mod scan;
#[cfg(test)]
mod tests;
mod views;
mod write;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{AnyDictionaryArray, Array, ArrayRef, AsArray, RecordBatch};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryPool;
use tq_udfs::relation::runs::is_named_by;

use self::log::{Commit, Entry, State, StoredRun};
use self::read::{Group, TableFile, Wanted};
use self::write::stored_tables;
use crate::error::ImportError;
use crate::memory::SessionPool;
use crate::open::{self, NamedRun, OpenOptions, TraceSpec};
use crate::remote::{self, Folder};
use crate::tables::Table;
use crate::trace::{Budget, Deadline, Run, Severity, Spill, stem, with_own_words};

pub use cache::Cache;
pub(crate) use cache::{find as find_kept, keep as keep_read, key as key_of};
pub(crate) use cut::cut;
pub use keep::{Collected, compact, gc, remove};
pub(crate) use scan::{Segment, StoredRows, StoredTable, segments};

/// A store, and the part of it that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its folder.
    pub root: PathBuf,
    /// Which runs; `None` for all.
    pub pattern: Option<String>,
}

/// What becomes of runs that a store has already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replace {
    /// A name that is taken is an error.
    Nothing,
    /// New runs take the place of those of their names.
    SameNames,
    /// All runs that the pattern names go.
    Matching(String),
}

/// What an import did.
#[derive(Debug)]
pub struct Imported {
    /// The new runs: name, format, source, rows, `import_stats`.
    pub runs: Vec<crate::session::RunSummary>,
    /// Runs that were replaced.
    pub replaced: usize,
    /// What the user should hear.
    pub notes: Vec<String>,
    /// What did not work and does not matter to the store.
    pub warnings: Vec<String>,
}

/// A run as `tq runs` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its format.
    pub format: String,
    /// What it was read from.
    pub source: String,
    /// When, in seconds since 1970.
    pub imported_at: i64,
    /// Rows of all tables.
    pub rows: u64,
    /// Of these, tasks.
    pub tasks: u64,
    /// Its share of the files.
    pub bytes: u64,
}

/// The store that a path names: its folder, or a run in it (`STORE/night/3`), which is no file. Of a URL, `find_behind` says it.
pub fn find(path: &Path) -> Option<Place> {
    if remote::is_url(path) {
        return None;
    }
    // One without commits is refused when it is read, and not taken for a folder of traces.
    let is_store = |root: &Path| log::is_store(root) || log::has_lost_its_commits(root);
    if path.exists() {
        return is_store(path).then(|| Place { root: path.to_owned(), pattern: None });
    }
    // What is there and is no store ends the search.
    let root = path.ancestors().skip(1).find(|folder| folder.as_os_str().is_empty() || folder.exists())?;
    let pattern = path.strip_prefix(root).ok()?.to_str()?.to_owned();
    is_store(root).then(|| Place { root: root.to_owned(), pattern: Some(pattern) })
}

/// The store behind a URL, if it is one: the server is asked.
///
/// # Errors
/// The server does not answer, or there are no credentials.
pub(crate) fn find_behind(url: &Path, deadline: Deadline) -> Result<Option<Place>, ImportError> {
    let is_store = remote::may_be_store(url) && log::is_remote_store(url, deadline)?;
    Ok(is_store.then(|| Place { root: url.to_owned(), pattern: None }))
}

/// Lists the runs of a store.
///
/// # Errors
/// It is no store, or damaged.
pub fn list(root: &Path) -> Result<Vec<Listed>, ImportError> {
    let listed = |entry: &Entry| {
        let run = &entry.run;
        let share = |part: &log::Part| {
            let file = &entry.files[part.file];
            let (all, own): (u64, u64) = (file.groups.iter().sum(), file.groups[part.range()].iter().sum());
            (u128::from(file.bytes) * u128::from(own) / u128::from(all.max(1))) as u64
        };
        Listed {
            name: run.name.clone(),
            format: run.format.clone(),
            source: run.source.clone(),
            imported_at: run.imported_at,
            rows: stored_tables().map(|table| entry.rows(table)).sum(),
            tasks: entry.rows(Table::Tasks),
            bytes: run.parts.iter().map(share).fold(0, u64::saturating_add),
        }
    };
    Ok(existing(root)?.runs.iter().map(listed).collect())
}

/// The state of a store that must be there.
fn existing(root: &Path) -> Result<State, ImportError> {
    if remote::is_url(root) || log::is_store(root) || log::has_lost_its_commits(root) {
        return log::read(root, Deadline::default());
    }
    if !root.exists() {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(ImportError::Io { path: root.to_owned(), source });
    }
    Err(ImportError::Unusable {
        path: root.to_owned(),
        what: "it is no store: it has no folder `log` with commits".to_owned(),
        hint: Some("`tq import TRACE… --into STORE` makes one".to_owned()),
    })
}

/// Which of the names a pattern names: the one that is spelt exactly like a pattern with `*`, else all that it matches.
fn named_by<'a>(names: impl Iterator<Item = &'a str>, pattern: &str) -> HashSet<&'a str> {
    let names: Vec<&str> = names.collect();
    match names.iter().find(|name| pattern.contains('*') && **name == pattern) {
        Some(name) => HashSet::from([*name]),
        None => names.into_iter().filter(|name| is_named_by(name, pattern)).collect(),
    }
}

/// The runs of a store that are meant, their rows where they are; their names are not yet unique in the session.
pub(crate) fn load(
    place: &Place,
    spec: &TraceSpec,
    only: Option<&str>,
    first: usize,
    budget: &Budget,
) -> Result<Vec<NamedRun>, ImportError> {
    let state = log::read(&place.root, budget.deadline())?;
    let names = || state.runs.iter().map(|entry| entry.run.name.as_str());
    let mut wanted: HashSet<&str> = names().collect();
    for pattern in [place.pattern.as_deref(), only].into_iter().flatten() {
        let named = named_by(names(), pattern);
        if named.is_empty() {
            return Err(no_run(&place.root, pattern, names()));
        }
        wanted.retain(|name| named.contains(name));
    }
    let mut files = Files::new();
    let mut runs = Vec::new();
    for entry in state.runs.iter().filter(|entry| wanted.contains(entry.run.name.as_str())) {
        budget.deadline().check(&place.root)?;
        let mut named = run_of(&place.root, entry, (first + runs.len()) as i64, &mut files, budget)?;
        if let Some(prefix) = &spec.name {
            // A run that is meant by itself is called as a file would be.
            if place.pattern.as_ref() == Some(&named.name) && wanted.len() == 1 {
                named.name.clone_from(prefix);
                named.run.info.study = named.run.info.study.map(|_| prefix.clone());
                runs.push(named);
                continue;
            }
            named.name = format!("{prefix}/{}", named.name);
            named.run.info.study = named.run.info.study.map(|study| format!("{prefix}/{study}"));
        }
        runs.push(named);
    }
    Ok(runs)
}

fn no_run<'a>(root: &Path, pattern: &str, names: impl Iterator<Item = &'a str>) -> ImportError {
    let names: Vec<&str> = names.collect();
    let near = crate::sql::nearest(pattern, names.iter().copied());
    let hint = match (near, names.is_empty()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, true) => "it has no runs: all were removed".to_owned(),
        (None, false) => format!("`tq runs {}` lists its runs", root.display()),
    };
    ImportError::Unusable { path: root.to_owned(), what: format!("the store has no run `{pattern}`"), hint: Some(hint) }
}

/// The run of an entry, its rows where they are.
fn run_of(
    root: &Path,
    entry: &Entry,
    number: i64,
    files: &mut Files,
    budget: &Budget,
) -> Result<NamedRun, ImportError> {
    let stored = &entry.run;
    let mut groups = BTreeMap::new();
    for table in stored_tables() {
        groups.insert(table, groups_of(root, entry, table, number, files)?);
    }
    let run = Run {
        info: facts::info_of(stored),
        stats: facts::stats_of(stored),
        source: facts::source_of(stored),
        run_number: number,
        tables: BTreeMap::new(),
        on_disk: BTreeMap::new(),
        memory: budget.hold(format!("tables of {}", stored.name)),
        identities_later: false,
        stored: Some(Arc::new(StoredRows { groups, facts: stored.facts, factor: 1 })),
    };
    Ok(NamedRun { name: stored.name.clone(), format: facts::forever(&stored.format), run })
}

/// The files of a store that were opened, by their paths.
type Files = HashMap<String, Arc<TableFile>>;

/// The groups of rows of a table, in the order of the trace.
fn groups_of(
    root: &Path,
    entry: &Entry,
    table: Table,
    number: i64,
    files: &mut Files,
) -> Result<Vec<Group>, ImportError> {
    let mut position = 0i64;
    let mut groups = Vec::new();
    for (about, part) in entry.parts(table) {
        let file = match files.get(&about.path) {
            Some(file) => Arc::clone(file),
            None => {
                let file = Arc::new(TableFile::new(root, about)?);
                files.insert(about.path.clone(), Arc::clone(&file));
                file
            }
        };
        for index in part.range() {
            let group =
                Group { file: Arc::clone(&file), index, position, factor: 1, identity: number << 40, kept: None };
            position += group.rows() as i64;
            groups.push(group);
        }
    }
    match position < 1 << 40 {
        true => Ok(groups),
        false => Err(layout::damaged(root, format!("run `{}` has more rows than a run can have", entry.run.name))),
    }
}

/// Reads all rows of a run that are in a store.
pub(crate) fn fill(run: &mut Run, deadline: Deadline) -> Result<(), ImportError> {
    let Some(stored) = run.stored.take() else { return Ok(()) };
    for (table, groups) in &stored.groups {
        let columns: Vec<usize> = (1..table.spec().columns.len()).collect();
        let mut batches: Vec<RecordBatch> = Vec::new();
        // Batches of a group share their words.
        let mut words: HashSet<*const ()> = HashSet::new();
        for group in groups {
            deadline.check(&run.source)?;
            let wanted = Wanted::all(&columns);
            for batch in group.read(wanted)? {
                let (own, _) = with_own_words(batch?).map_err(|error| ImportError::internal(&run.source, error))?;
                let refused = |error: DataFusionError| {
                    let path = run.source.clone();
                    ImportError::Memory { path, what: error.strip_backtrace() }
                };
                let is_new = |column: &&ArrayRef| {
                    let values = column.as_any_dictionary_opt().map(AnyDictionaryArray::values);
                    values.is_some_and(|values| words.insert(Arc::as_ptr(values).cast()))
                };
                let bytes = |column: &ArrayRef| match column.as_any_dictionary_opt() {
                    Some(column) => column.keys().get_array_memory_size(),
                    None => column.get_array_memory_size(),
                };
                let new_words = own.columns().iter().filter(is_new).filter_map(|column| column.as_any_dictionary_opt());
                let new_words: usize = new_words.map(|column| column.values().get_array_memory_size()).sum();
                let grown = new_words + own.columns().iter().map(bytes).sum::<usize>();
                run.memory.try_grow(grown).map_err(refused)?;
                batches.push(own);
            }
        }
        run.tables.insert(*table, batches);
    }
    Ok(())
}

/// Ids and arguments of all tasks of a run in a store, in the order of the trace.
pub(crate) fn arguments(stored: &StoredRows) -> Result<Vec<RecordBatch>, ImportError> {
    let columns: Vec<usize> = ["task", "args"]
        .iter()
        .filter_map(|name| Table::Tasks.spec().columns.iter().position(|column| column.name == *name))
        .collect();
    stored.groups.get(&Table::Tasks).into_iter().flatten().map(|group| group.read_all(&columns)).collect()
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
fn import_spilling(
    root: &Path,
    runs: Vec<NamedRun>,
    options: &OpenOptions,
    replace: &Replace,
    strict: bool,
    above: usize,
) -> Result<Imported, ImportError> {
    usable(root)?;
    let deadline = Deadline::after(options.read_time);
    let state = log::read_or_empty(root)?;
    let is_file = |path: &Path| path.is_file() || path == Path::new("-") || remote::is_url(path);
    for spec in options.traces.iter().filter(|spec| is_file(&spec.path)) {
        let name = spec.name.clone().unwrap_or_else(|| stem(&spec.shown()));
        check_names(root, &state, &[name], replace)?;
    }
    let pool: Arc<dyn MemoryPool> = Arc::new(SessionPool::new(options.memory_limit));
    let spill = Spill::new(nearest_folder(root), &pool, above);
    let (mut runs, mut notes) = open::read(runs, options, &open::budget(options, &pool).spilling(spill))?;
    for named in &mut runs {
        open::note_arguments(&mut named.run, options)?;
        fill(&mut named.run, deadline)?;
        let path = named.run.source.clone();
        named.run.fill_in_identities().map_err(|error| ImportError::internal(&path, error))?;
    }
    let names: Vec<String> = runs.iter().map(|named| named.name.clone()).collect();
    check_names(root, &state, &names, replace)?;
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
    if !remote::is_url(root) {
        layout::make(root)?;
    }
    let staged = write::stage(root, &runs)?;
    let (placed, files, written) = staged.place(root, deadline)?;
    let at = log::now();
    let stored = runs.iter().zip(written).map(|(named, written)| facts::stored(named, at, written));
    let stored: Vec<StoredRun> = stored.collect();
    let mut replaced = 0;
    let state = placed.committed(root, |state| {
        // Whoever waits no longer has told that nothing was imported.
        deadline.check(root)?;
        let removed = check_names(root, state, &names, replace)?;
        replaced = removed.len();
        let (files, runs) = (files.clone(), stored.clone());
        Ok(Commit { at, by: log::by(), removed, files, runs, ..Commit::default() })
    })?;
    let warnings = warning(views::write(root, &state, false));
    let runs = runs.iter().map(crate::session::summary).collect();
    Ok(Imported { runs, replaced, notes, warnings })
}

/// The folder of a store, or the one in which it will be: what waits on disk is on the disk that needs room anyway.
fn nearest_folder(root: &Path) -> PathBuf {
    if remote::is_url(root) {
        return std::env::temp_dir();
    }
    let folder = root.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new(""));
    if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() }
}

fn warning(written: Result<(), ImportError>) -> Vec<String> {
    written.err().map(|error| error.to_string()).into_iter().collect()
}

/// Names of runs that the new ones replace.
fn check_names(root: &Path, state: &State, names: &[String], replace: &Replace) -> Result<Vec<String>, ImportError> {
    let present = state.runs.iter().map(|entry| entry.run.name.as_str());
    let removed: HashSet<&str> = match replace {
        Replace::Nothing => HashSet::new(),
        Replace::SameNames => {
            let new: HashSet<&str> = names.iter().map(String::as_str).collect();
            present.filter(|name| new.contains(name)).collect()
        }
        Replace::Matching(pattern) => named_by(present, pattern),
    };
    if let Some(name) = names.iter().find(|name| name.len() > log::LONGEST_NAME) {
        let what = format!("a run's name has {} bytes, of at most {}", name.len(), log::LONGEST_NAME);
        let hint = Some("give it another name: `NAME=TRACE`".to_owned());
        return Err(ImportError::Unusable { path: root.to_owned(), what, hint });
    }
    let taken = state.names();
    if let Some(name) = names.iter().find(|name| taken.contains(name.as_str()) && !removed.contains(name.as_str())) {
        return Err(ImportError::Unusable {
            path: root.to_owned(),
            what: format!("the store has a run `{name}` already"),
            hint: Some(format!(
                "give it another name, `NAME=TRACE`, or `--replace` it; `tq runs {}` lists all",
                root.display()
            )),
        });
    }
    // In the order of the state: the same commit each time.
    Ok(state.runs.iter().map(|entry| &entry.run.name).filter(|name| removed.contains(name.as_str())).cloned().collect())
}

/// Refuses folders that have something else in them.
fn usable(root: &Path) -> Result<(), ImportError> {
    if remote::is_url(root) {
        return Folder::of(root, Deadline::default())?.check_writable();
    }
    if log::is_store(root) {
        return Ok(());
    }
    if let Some(around) =
        root.ancestors().skip(1).find(|folder| !folder.as_os_str().is_empty() && log::is_store(folder))
    {
        return Err(ImportError::Unusable {
            path: root.to_owned(),
            what: format!("it would lie in the store `{}`", around.display()),
            hint: Some("name a folder beside it".to_owned()),
        });
    }
    let Ok(entries) = std::fs::read_dir(root) else {
        return match root.exists() {
            true => Err(ImportError::Unusable {
                path: root.to_owned(),
                what: "it is a file, and a store is a folder".to_owned(),
                hint: None,
            }),
            false => Ok(()),
        };
    };
    // Those of an import that did not come to its commit.
    let known = ["log", "runs"];
    match entries.flatten().find(|entry| !known.iter().any(|known| entry.file_name() == *known)) {
        None => Ok(()),
        Some(other) => Err(ImportError::Unusable {
            path: root.to_owned(),
            what: format!("the folder is no store and holds `{}`", other.file_name().to_string_lossy()),
            hint: Some("name a folder that is not there yet, or an empty one".to_owned()),
        }),
    }
}

/// A defect of ours, as an error that says so.
fn internal(what: String) -> DataFusionError {
    DataFusionError::Internal(what)
}
