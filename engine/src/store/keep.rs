//! Keep: removes runs, deletes files that no commit names, and merges small files.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::layout::{STAGING, UNLINKED, check_folder, failed, is_id, log_folder, parts_of, runs_folder, sync_folder};
use super::log::{self, Commit, Entry, State, StoredRun};
use super::write::{self, stored_tables};
use super::{Files, beside, existing, fill, named_by, no_run, run_of, views, warning};
use crate::error::ImportError;
use crate::open::NamedRun;
use crate::remote::{self, Folder};
use crate::trace::{Budget, Deadline};

/// What `gc` deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Removes the runs that a pattern names; their files stay until [`gc`]. Returns their names, and what did not work and does not
/// matter to the store.
///
/// # Errors
/// The pattern names no run; the store cannot be written.
pub fn remove(root: &Path, pattern: &str) -> Result<(Vec<String>, Vec<String>), ImportError> {
    existing(root)?;
    let mut names = Vec::new();
    let state = log::commit(root, |state| {
        let all = || state.runs.iter().map(|entry| entry.run.name.as_str());
        let removed = named_by(all(), pattern);
        if removed.is_empty() {
            return Err(no_run(root, pattern, all()));
        }
        names = all().filter(|name| removed.contains(name)).map(str::to_owned).collect();
        Ok(Commit { at: log::now(), by: log::by(), removed: names.clone(), ..Commit::default() })
    })?;
    Ok((names, warning(views::write(root, &state, false))))
}

/// Files of removed runs stay this long, unless the user says otherwise.
const REMOVED: Duration = Duration::from_secs(3600);
/// Behind a URL there are no locks, so files without a commit may be those of a running import: they stay this long.
const AT_WORK: Duration = Duration::from_secs(24 * 3600);

/// Deletes files that no commit names and that nobody writes: leftovers of imports that were killed at once, files of removed runs when
/// they were removed before `older_than` (an hour). Behind a URL, leftovers are what is older than that (a day).
///
/// # Errors
/// The store cannot be read or written.
pub fn gc(root: &Path, older_than: Option<Duration>) -> Result<(Collected, Vec<String>), ImportError> {
    existing(root)?;
    if remote::is_url(root) {
        return gc_behind(root, older_than);
    }
    let older_than = older_than.unwrap_or(REMOVED);
    let all = runs_folder(root);
    check_folder(&all)?;
    let entries = |folder: &Path| -> Result<Vec<fs::DirEntry>, ImportError> {
        let entries = fs::read_dir(folder).and_then(Iterator::collect);
        entries.map_err(|error| failed(folder, "read the store", &error))
    };
    // A link is never followed, and what a store does not make is not deleted.
    let is_of_store = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let id = name.to_str().map(|name| name.strip_prefix(STAGING).unwrap_or(name));
        id.is_some_and(is_id) && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    // One lock at a time: a store may have more folders than a process may open files.
    let mut folders = entries(&all)?;
    folders.retain(|entry| is_of_store(entry) && locked(&entry.path()).is_some());
    // Read after the locks: a folder that nobody has locked is named by these commits, or by none that will come.
    let state = existing(root)?;
    let files = state.files();
    let mut named: HashMap<&str, HashSet<&str>> = HashMap::new();
    for (id, name) in files.iter().filter_map(|file| parts_of(&file.path)) {
        named.entry(id).or_default().insert(name);
    }
    let mut collected = Collected::default();
    for entry in folders {
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        let Some(_lock) = locked(&path) else { continue };
        // An import that is not at work any more leaves nothing that a reader has.
        if !name.starts_with(STAGING) && !is_old(&state, &name, &path, older_than) {
            continue;
        }
        let of_state = named.get(name.as_str());
        let id = name.strip_prefix(STAGING).unwrap_or(&name);
        for file in entries(&path)? {
            let file_name = file.file_name();
            let ours = file_name.to_str().filter(|name| parts_of(&format!("{id}/{name}")).is_some());
            let Some(ours) = ours.filter(|_| file.file_type().is_ok_and(|kind| kind.is_file())) else { continue };
            if of_state.is_some_and(|names| names.contains(ours)) {
                continue;
            }
            collected.bytes += file.metadata().map_or(0, |metadata| metadata.len());
            fs::remove_file(file.path()).map_err(|error| failed(&file.path(), "delete", &error))?;
            collected.files += 1;
        }
        if of_state.is_none() {
            // What else lies there is not ours.
            let _ = fs::remove_dir(&path);
        }
    }
    let of_log = entries(&log_folder(root))?.into_iter().map(|entry| (entry, UNLINKED));
    let of_views = entries(root)?.into_iter().map(|entry| (entry, views::UNFINISHED));
    for (entry, unfinished) in of_log.chain(of_views) {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let is_left = entry.file_name().to_str().is_some_and(|name| name.starts_with(unfinished));
        if !is_file || !is_left {
            continue;
        }
        let Some(_lock) = locked(&entry.path()) else { continue };
        collected.files += u64::from(fs::remove_file(entry.path()).is_ok());
    }
    let (files, bytes) = beside::clear(root);
    (collected.files, collected.bytes) = (collected.files + files, collected.bytes + bytes);
    sync_folder(&all).map_err(|error| failed(&all, "write the store", &error))?;
    // Stores that are copied to where a URL leads need it.
    let _ = log::write_last(root, &state);
    Ok((collected, warning(views::write(root, &state, true))))
}

/// As [`gc`], of a store behind a URL.
fn gc_behind(root: &Path, older_than: Option<Duration>) -> Result<(Collected, Vec<String>), ImportError> {
    let folder = Folder::of(root, Deadline::default())?;
    folder.check_writable()?;
    // Listed before the log is read: what is there now is named by these commits, or is of an import at work.
    let now = log::now();
    let objects = folder.list("runs", now)?;
    let state = existing(root)?;
    let files = state.files();
    let named: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut collected = Collected::default();
    let mut names = Vec::new();
    for (name, bytes, age) in objects {
        let Some(path) = name.strip_prefix("runs/") else { continue };
        // What a store does not make is not deleted.
        let Some((id, _)) = parts_of(path).filter(|_| !named.contains(path)) else { continue };
        let (since, stays) = match state.left.get(id) {
            Some(at) => (now.saturating_sub(*at), REMOVED),
            None => (age, AT_WORK),
        };
        if Duration::from_secs(u64::try_from(since).unwrap_or(0)) >= older_than.unwrap_or(stays) {
            collected.files += 1;
            collected.bytes += bytes;
            names.push(name);
        }
    }
    folder.delete(names)?;
    let written = log::write_last(root, &state).and_then(|()| views::write(root, &state, true));
    Ok((collected, warning(written)))
}

/// Locks a folder or file, so that no other process begins to write there; `None` where another one holds the lock.
fn locked(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    file.try_lock().ok().map(|()| file)
}

/// Whether what no run names has been so for long enough.
fn is_old(state: &State, id: &str, folder: &Path, older_than: Duration) -> bool {
    let since = match state.left.get(id) {
        Some(at) => Duration::from_secs(u64::try_from(log::now().saturating_sub(*at)).unwrap_or(0)),
        None => {
            let modified = fs::metadata(folder).and_then(|metadata| metadata.modified());
            modified.ok().and_then(|at| SystemTime::now().duration_since(at).ok()).unwrap_or_default()
        }
    };
    since >= older_than
}

/// Runs of fewer rows share files.
const SMALL: u64 = 1 << 20;
/// Rows that are rewritten at a time.
const TOGETHER: u64 = 4 << 20;

/// Rewrites the files of small runs into common ones. Returns how many runs moved, and what did not work and does not matter.
///
/// # Errors
/// The store cannot be read or written, or its runs changed meanwhile.
pub fn compact(root: &Path, budget: &Budget) -> Result<(usize, Vec<String>), ImportError> {
    let state = existing(root)?;
    let rows = |entry: &Entry| stored_tables().map(|table| entry.rows(table)).sum::<u64>();
    let small: Vec<&Entry> = state.runs.iter().filter(|entry| rows(entry) < SMALL).collect();
    let (mut moved, mut warnings) = (0, Vec::new());
    let mut rest = small.as_slice();
    while !rest.is_empty() {
        let mut together = 0;
        let fits = rest.iter().take_while(|entry| {
            together += rows(entry);
            together <= TOGETHER
        });
        let (now, later) = rest.split_at(fits.count().max(1));
        rest = later;
        let folders: BTreeSet<&str> = now.iter().flat_map(|entry| folders_of(entry)).collect();
        if folders.len() < 2 {
            continue;
        }
        warnings = together_in_one(root, now, budget)?;
        moved += now.len();
    }
    Ok((moved, warnings))
}

fn folders_of(entry: &Entry) -> impl Iterator<Item = &str> {
    entry.run.parts.iter().filter_map(|part| parts_of(&entry.files[part.file].path)).map(|(id, _)| id)
}

/// Moves these runs into one folder.
fn together_in_one(root: &Path, entries: &[&Entry], budget: &Budget) -> Result<Vec<String>, ImportError> {
    let mut files = Files::new();
    let mut runs: Vec<NamedRun> = Vec::new();
    for entry in entries {
        let mut named = run_of(root, entry, runs.len() as i64, &mut files, budget)?;
        fill(&mut named.run, budget.deadline())?;
        runs.push(named);
    }
    let (placed, files, written) = write::stage(root, &runs)?.place(root, budget.deadline())?;
    let moved = entries.iter().zip(written);
    let moved = moved.map(|(entry, now)| StoredRun { parts: now.parts, ..StoredRun::clone(&entry.run) });
    let moved: Vec<StoredRun> = moved.collect();
    let state = placed.committed(root, |state| {
        let now: HashMap<&str, &Entry> = state.runs.iter().map(|entry| (entry.run.name.as_str(), entry)).collect();
        let is_same =
            |entry: &&&Entry| now.get(entry.run.name.as_str()).is_some_and(|now| folders_of(now).eq(folders_of(entry)));
        if let Some(changed) = entries.iter().find(|entry| !is_same(entry)) {
            return Err(ImportError::Unusable {
                path: root.to_owned(),
                what: format!("run `{}` was replaced, removed or moved into other files meanwhile", changed.run.name),
                hint: Some(format!("`tq compact {}` again: nothing was changed", root.display())),
            });
        }
        let removed = entries.iter().map(|entry| entry.run.name.clone()).collect();
        let (files, runs) = (files.clone(), moved.clone());
        Ok(Commit { at: log::now(), by: log::by(), removed, files, runs, ..Commit::default() })
    })?;
    Ok(warning(views::write(root, &state, false)))
}
