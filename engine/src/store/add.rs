//! Add: adds runs to a store in one commit, all of them or none.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use super::log::{self, Commit, State, StoredRun};
use super::{facts, layout, named_by, views, warning, write};
use crate::error::ImportError;
use crate::remote::{self, Folder};
use crate::trace::{Deadline, NamedRun};

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

/// Runs that will be added to a store.
pub(crate) struct Addition<'a> {
    root: &'a Path,
    replace: &'a Replace,
    /// The store as it was at first.
    state: State,
    /// When reading the runs and writing them must have come to an end.
    pub(crate) deadline: Deadline,
}

/// What became of runs that were added.
pub(crate) struct Added {
    /// Runs that were replaced.
    pub(crate) replaced: usize,
    /// What did not work and does not matter to the store.
    pub(crate) warnings: Vec<String>,
}

impl Addition<'_> {
    /// Looks at the store, before minutes of reading, and writes nothing yet. From then on, the runs may take `time` until they are in it.
    ///
    /// # Errors
    /// The folder holds something else; the store is damaged.
    pub(crate) fn to<'a>(
        root: &'a Path,
        replace: &'a Replace,
        time: Option<Duration>,
    ) -> Result<Addition<'a>, ImportError> {
        usable(root)?;
        let deadline = Deadline::after(time);
        Ok(Addition { root, replace, state: log::read_or_empty(root)?, deadline })
    }

    /// Refuses names that runs cannot have in this store.
    ///
    /// # Errors
    /// A name is taken, or too long.
    pub(crate) fn check(&self, names: &[String]) -> Result<(), ImportError> {
        check_names(self.root, &self.state, names, self.replace).map(|_| ())
    }

    /// Writes the runs and makes the commit that names them.
    ///
    /// # Errors
    /// A name was taken meanwhile; the store cannot be written.
    pub(crate) fn add(self, runs: &[NamedRun]) -> Result<Added, ImportError> {
        let (root, deadline) = (self.root, self.deadline);
        if !remote::is_url(root) {
            layout::make(root)?;
        }
        let staged = write::stage(root, runs)?;
        let (placed, files, written) = staged.place(root, deadline)?;
        let at = log::now();
        let stored = runs.iter().zip(written).map(|(named, written)| facts::stored(named, at, written));
        let stored: Vec<StoredRun> = stored.collect();
        let names: Vec<String> = runs.iter().map(|named| named.name.clone()).collect();
        let mut replaced = 0;
        let state = placed.committed(root, |state| {
            // After the deadline the user was told that nothing was imported, so nothing may be committed.
            deadline.check(root)?;
            let removed = check_names(root, state, &names, self.replace)?;
            replaced = removed.len();
            let (files, runs) = (files.clone(), stored.clone());
            Ok(Commit { at, by: log::by(), removed, files, runs, ..Commit::default() })
        })?;
        Ok(Added { replaced, warnings: warning(views::write(root, &state, false)) })
    }
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
