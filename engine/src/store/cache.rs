//! Cache: traces that were read are kept as stores in a folder of the user, so that they need not be read again.
//!
//! ```text
//! FOLDER/<32 letters>/key          what the entry is of: the trace, every file that is read for it, how it is read, and by which program
//!                    /log, /runs   a store, whose runs are called `<file>/<run>/<name of the file>`
//!                    /used         locked by readers; its time is that of the last use
//! FOLDER/.new-…                    an entry that is being written: renamed when it is whole
//! FOLDER/.old-…                    an entry that is being removed
//! ```
//! An entry is compared with all of its checksums when it is opened; one that is damaged is removed, and the trace is read. What says how
//! runs are called, what is noted with them, and slices of time come after the cache. Whatever goes wrong with the cache is a note: the
//! trace can always be read.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::beside::name_of;
use super::layout::{make, runs_folder, sync_folder};
use super::log::{self, Commit, StoredRun};
use super::read::TableFile;
use super::{Files, facts, run_of, write};
use crate::error::ImportError;
use crate::importers::ImportOptions;
use crate::options::{Cache, OpenOptions, TraceSpec, read_for};
use crate::trace::{Budget, Deadline, NamedRun, ReadFile, findings};

/// How the folder of an entry begins while it is written.
const NEW: &str = ".new-";
/// How it begins while it is removed.
const OLD: &str = ".old-";
/// What an entry is of.
const KEY: &str = "key";
/// The file that readers lock.
const USED: &str = "used";

/// What the entry of a trace is called, and what its key says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    name: String,
    text: String,
}

/// The key of a trace that is a file or a folder; `None` where it cannot be kept: standard input, formats of an embedding program, files
/// that cannot be looked at.
pub(crate) fn key(spec: &TraceSpec, options: &OpenOptions) -> Option<Key> {
    if !options.importers.is_empty() || !(spec.path.is_file() || spec.path.is_dir()) {
        return None;
    }
    // Where an interpreter runs us, the program is the same for all versions.
    let sources = concat!(env!("CARGO_PKG_VERSION"), "+", env!("TQ_SOURCES"));
    let mut text = format!("tq {sources} store {}\n", log::VERSION);
    let program = std::env::current_exe().ok()?;
    text.push_str(&line_of("program", &program)?);
    text.push_str(&format!("trace {:?} {:?}\n", spec.path, spec.path.canonicalize().ok()?));
    text.push_str(&format!("name {:?} format {:?} value {}\n", spec.name, options.from_format, options.max_value));
    let mut given: Vec<(&String, &String)> = options.import.iter().collect();
    given.sort();
    given.iter().for_each(|(key, value)| text.push_str(&format!("option {key:?} {value:?}\n")));
    for file in files_of(spec, &options.import) {
        text.push_str(&line_of("file", &file)?);
    }
    // The text itself is compared, too.
    Some(Key { name: name_of(&text), text })
}

/// The files that are read for a trace, and those of its folder, where new ones would be seen.
fn files_of(spec: &TraceSpec, options: &ImportOptions) -> Vec<PathBuf> {
    let mut files = read_for(spec, options);
    if spec.path.is_dir() {
        files.push(spec.path.clone());
    }
    files
}

/// What tells a file from what it was before.
fn line_of(what: &str, path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let modified = metadata.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
    #[cfg(unix)]
    let place = {
        use std::os::unix::fs::MetadataExt;
        (metadata.dev(), metadata.ino())
    };
    #[cfg(not(unix))]
    let place = (0u64, 0u64);
    let path = path.canonicalize().ok()?;
    Some(format!("{what} {path:?} bytes {} modified {modified} place {place:?}\n", metadata.len()))
}

/// The runs of a trace, if they are kept; and what the user should hear.
pub(crate) fn find(
    cache: &Cache,
    key: &Key,
    first: usize,
    budget: &Budget,
    notes: &mut Vec<String>,
) -> Result<Option<Vec<ReadFile>>, ImportError> {
    let entry = cache.folder.join(&key.name);
    if !entry.is_dir() {
        return Ok(None);
    }
    // Held as long as a session has the files.
    let lock = File::open(entry.join(USED)).and_then(|lock| lock.lock_shared().map(|()| lock)).ok();
    let lock = lock.filter(|_| fs::read_to_string(entry.join(KEY)).is_ok_and(|text| text == key.text));
    let Some(lock) = lock else {
        // Removed between the two, or not as it was written.
        remove(cache, &entry);
        return Ok(None);
    };
    match load(&entry, &Arc::new(lock), first, budget) {
        Ok(files) => {
            let _ =
                File::options().append(true).open(entry.join(USED)).map(|used| used.set_modified(SystemTime::now()));
            Ok(Some(files))
        }
        Err(error) => {
            budget.deadline().check(&entry)?;
            notes.push(format!("the cache is damaged, and the trace is read again: {error}"));
            remove(cache, &entry);
            Ok(None)
        }
    }
}

fn load(entry: &Path, lock: &Arc<File>, first: usize, budget: &Budget) -> Result<Vec<ReadFile>, ImportError> {
    let state = log::read(entry, budget.deadline())?;
    if state.runs.is_empty() {
        // Each trace has runs: its commit is gone.
        return Err(super::layout::damaged(entry, "it has no runs"));
    }
    let mut files = Files::new();
    for about in state.files() {
        budget.deadline().check(entry)?;
        let file = TableFile::new(entry, &about)?.held_by(Arc::clone(lock));
        file.verify()?;
        files.insert(about.path.clone(), Arc::new(file));
    }
    let mut read: Vec<ReadFile> = Vec::new();
    for (number, stored) in (first as i64..).zip(&state.runs) {
        let named = run_of(entry, stored, number, &mut files, budget)?;
        let wrong = || super::layout::damaged(entry, format!("`{}` is no name of a kept run", named.name));
        let mut parts = named.name.splitn(3, '/');
        let (Some(file), Some(_), Some(name)) = (parts.next(), parts.next(), parts.next()) else { return Err(wrong()) };
        let file: usize = file.parse().map_err(|_| wrong())?;
        if file >= read.len() {
            read.push(ReadFile { name: name.to_owned(), format: named.format, runs: Vec::new() });
        }
        match read.last_mut() {
            Some(last) => last.runs.push(named.run),
            None => return Err(wrong()),
        }
    }
    Ok(read)
}

/// Keeps the runs of a trace, unless it changed since the key was made. What does not work is a note.
pub(crate) fn keep(
    cache: &Cache,
    key: &Key,
    spec: &TraceSpec,
    options: &OpenOptions,
    files: Vec<ReadFile>,
    notes: &mut Vec<String>,
) -> Vec<ReadFile> {
    // What another program made of a report depends on that program.
    let is_made = |file: &ReadFile| {
        file.runs.iter().flat_map(|run| &run.stats).any(|stat| stat.finding == findings::EXPORTED_BY_NSYS)
    };
    if files.iter().any(is_made) || self::key(spec, options).as_ref() != Some(key) {
        return files;
    }
    let mut runs = Vec::new();
    let mut shape = Vec::new();
    for (place, file) in files.into_iter().enumerate() {
        shape.push((file.name.clone(), file.format, file.runs.len()));
        for (number, run) in file.runs.into_iter().enumerate() {
            let name = format!("{place:06}/{number:06}/{}", file.name);
            runs.push(NamedRun { name, format: file.format, run });
        }
    }
    if let Err(error) = written(cache, key, &mut runs) {
        notes.push(format!("the trace is not kept in the cache: {error}"));
    }
    let mut runs = runs.into_iter().map(|named| named.run);
    let file = |(name, format, count)| ReadFile { name, format, runs: runs.by_ref().take(count).collect() };
    shape.into_iter().map(file).collect()
}

fn written(cache: &Cache, key: &Key, runs: &mut [NamedRun]) -> Result<(), ImportError> {
    let folder = &cache.folder;
    let cannot = |source: std::io::Error| ImportError::Io { path: folder.clone(), source };
    let mut builder = fs::DirBuilder::new();
    // Other users of the machine must not read the traces.
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder).map_err(cannot)?;
    let entry = folder.join(&key.name);
    if entry.is_dir() {
        return Ok(());
    }
    for named in runs.iter_mut() {
        let path = named.run.source.clone();
        named.run.fill_in_identities().map_err(|error| ImportError::internal(&path, error))?;
    }
    let new = tempfile::Builder::new().prefix(NEW).tempdir_in(folder).map_err(cannot)?;
    let _registered = crate::trace::temporary::Registered::new(new.path());
    let root = new.path().to_owned();
    let root = root.as_path();
    let lock = File::create_new(root.join(USED)).map_err(cannot)?;
    lock.lock().map_err(cannot)?;
    make(root)?;
    let (placed, files, written) = write::stage(root, runs)?.place(root, Deadline::default())?;
    let at = log::now();
    let stored = runs.iter().zip(written).map(|(named, written)| facts::stored(named, at, written));
    let stored: Vec<StoredRun> = stored.collect();
    placed.committed(root, |_| {
        Ok(Commit { at, by: log::by(), files: files.clone(), runs: stored.clone(), ..Commit::default() })
    })?;
    let mut text = File::create_new(root.join(KEY)).map_err(cannot)?;
    text.write_all(key.text.as_bytes()).and_then(|()| text.sync_all()).map_err(cannot)?;
    sync_folder(root).map_err(cannot)?;
    // Who was faster has written the same.
    if fs::rename(root, &entry).is_ok() {
        let _ = new.keep();
        let _ = sync_folder(folder);
    }
    drop(lock);
    shrink(cache);
    Ok(())
}

/// Removes an entry, unless somebody reads it.
fn remove(cache: &Cache, entry: &Path) {
    let Some(name) = entry.file_name().and_then(|name| name.to_str()) else { return };
    let old = cache.folder.join(format!("{OLD}{name}-{}", std::process::id()));
    // Readers that have it open have their files; those that come later do not find it.
    if fs::rename(entry, &old).is_ok() {
        let _ = fs::remove_dir_all(&old);
    }
}

/// Removes what was not used for longest until the rest is small enough, and what killed processes left.
fn shrink(cache: &Cache) {
    let mut entries: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(&cache.folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        // A link is no entry.
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if name.starts_with(NEW) || name.starts_with(OLD) {
            // Whoever writes it has locked it; without the file, it was begun a moment ago or is nearly gone.
            let free = File::open(path.join(USED)).is_ok_and(|lock| lock.try_lock().is_ok());
            if free {
                let _ = fs::remove_dir_all(&path);
            }
        } else if name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let used = fs::metadata(path.join(USED)).and_then(|used| used.modified());
            entries.push((used.unwrap_or(SystemTime::UNIX_EPOCH), bytes_of(&path), path));
        }
    }
    entries.sort_by_key(|(used, ..)| *used);
    let mut all: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in entries {
        if all <= cache.bytes {
            break;
        }
        let is_free = File::open(path.join(USED)).map_or(true, |lock| lock.try_lock().is_ok());
        if is_free {
            remove(cache, &path);
            all -= bytes;
        }
    }
}

fn bytes_of(entry: &Path) -> u64 {
    let folders = fs::read_dir(runs_folder(entry)).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files.map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum()
}
