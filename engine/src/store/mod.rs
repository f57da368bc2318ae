//! Stores: runs on disk as Parquet files, with a log of commits; the same tables, notes and `import_stats` as from the traces.
//!
//! ```text
//! tq import:  traces → runs (as for a session: `crate::import`) → files under runs/<id> → a commit in log/
//! tq query:   log/ → which runs there are → rows of those that were asked for
//! ```
//! ```text
//! layout   names of folders and files          write       rows → files             conditions   which rows a query needs
//! log      commits: which runs there are       read        files → rows             cut          which rows are in a slice of time
//! facts    what a commit says of a run         scan        a table over runs        keep         removes what no run needs
//! add      adds runs, all or none              columns     columns of the files     cache        stores of traces that a user read
//! views    how DuckDB reads a store            beside      what programs keep with the runs, only for speed
//! away     scans that another process does
//! ```

mod add;
#[cfg(feature = "cluster")]
mod away;
mod beside;
mod blocks;
mod cache;
mod chunk;
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
use tq_udfs::relation::runs::is_named_by;

use self::log::{Entry, State};
use self::read::{Group, TableFile, Wanted};
use self::scan::StoredRows;
use self::write::stored_tables;
use crate::error::ImportError;
use crate::options::TraceSpec;
use crate::remote;
use crate::tables::Table;
use crate::trace::{Budget, Deadline, NamedRun, Run, with_own_words};

pub use crate::options::Cache;
pub(crate) use add::Addition;
pub use add::Replace;
#[cfg(feature = "cluster")]
pub(crate) use away::{Away, DIFFERS, Leaf, Segments, parts_of_runs};
pub use beside::{Beside, Unfinished};
pub(crate) use cache::{find as find_kept, keep as keep_read, key as key_of};
pub(crate) use cut::cut;
pub use keep::{Collected, compact, gc, remove};
#[cfg(feature = "cluster")]
pub(crate) use log::newest as newest_commit;
pub(crate) use scan::{Segment, StoredTable, arguments, by_lane, in_any_order, segments, tasks_of};

/// A store, and the part of it that is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its folder.
    pub root: PathBuf,
    /// Which runs; `None` for all.
    pub pattern: Option<String>,
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

/// Whether a path or a URL names a store, or runs of one; of a URL, the server is asked.
///
/// # Errors
/// The server does not answer, or there are no credentials.
pub fn is_store(path: &Path) -> Result<bool, ImportError> {
    match remote::is_url(path) {
        true => Ok(find_behind(path, Deadline::default())?.is_some()),
        false => Ok(find(path).is_some()),
    }
}

/// Lists the runs of a store.
///
/// # Errors
/// The folder is no store, or the store is damaged.
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
    let near = crate::nearest::nearest(pattern, names.iter().copied());
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
        stored: Some(Box::new(StoredRows { groups, facts: stored.facts, factor: 1 })),
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
    let Some(groups) = StoredRows::of_mut(run).map(|stored| std::mem::take(&mut stored.groups)) else { return Ok(()) };
    run.stored = None;
    for (table, groups) in &groups {
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

/// Why the views were not written: the store is whole without them.
fn warning(written: Result<(), ImportError>) -> Vec<String> {
    written.err().map(|error| error.to_string()).into_iter().collect()
}

/// A defect of ours, as an error that says so.
fn internal(what: String) -> DataFusionError {
    DataFusionError::Internal(what)
}
