//! Log: which runs a store has. Each commit is a small JSON file that names what it adds and removes.
//!
//! ```text
//! {"tq store":2,"crc32":"1a2b3c4d","body":{"number":17,"removed":["night/3"],"files":[…],"runs":[…]}}
//! ```
//! A commit appears whole or not at all: it is written beside the log, made durable, and then linked under the next number, which
//! fails if another process was faster. Then it reads the new commits, checks the names again, and tries the next number. Each
//! hundredth commit is followed by a checkpoint, which says the same as all commits up to it, so that opening reads few files.
//! `last.json` names the last commit and checkpoint, so that a store behind a URL is read without a list of its files: it is a hint that
//! may be old, and readers look for the next numbers until there is none. It is written when the commit is durable: where it names a commit
//! that is not there, the file was deleted by hand.
//!
//! Behind a URL, the service takes an object only if there is none of that name.
//!
//! A reader keeps the state that it read; files that later commits no longer name stay for `gc` to remove.
//!
//! The checksum covers the body; what stands around it is compared letter by letter.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::layout::{
    UNLINKED, check_folder, damaged, failed, is_id, log_folder, open_plain, parts_of, runs_folder, sync_folder,
};
use crate::error::ImportError;
use crate::remote::{self, Folder};
use crate::tables::Table;
use crate::trace::Deadline;

/// The version of the format; a reader refuses newer ones.
pub(super) const VERSION: u64 = 2;
/// The number of commits between two checkpoints.
const CHECKPOINT_EVERY: u64 = 100;
/// The name of the hint for stores behind URLs, and how large it may be.
const LAST: &str = "last.json";
const LARGEST_LAST: u64 = 4096;
/// A hint that names more commits without a checkpoint is none.
const MOST_COMMITS: u64 = 100_000;
/// The largest commit that is read.
const LARGEST: u64 = 256 << 20;
/// Rows of a group of rows in a file at most.
pub(super) const GROUP_ROWS: u64 = 1 << 20;
/// Bytes of a file that one checksum covers.
pub(super) const BLOCK_BYTES: u64 = 256 << 10;

/// One step of the log; a checkpoint is the step from nothing.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Commit {
    pub(super) number: u64,
    /// Seconds since 1970.
    pub(super) at: i64,
    /// The program that wrote it.
    pub(super) by: String,
    /// Names of runs that are no longer there.
    pub(super) removed: Vec<String>,
    pub(super) files: Vec<StoredFile>,
    pub(super) runs: Vec<StoredRun>,
    /// In checkpoints: since when folders have files that no run names, in seconds since 1970.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) left: BTreeMap<String, i64>,
}

/// A Parquet file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredFile {
    /// `<id>/<name>`.
    pub(super) path: String,
    pub(super) table: String,
    pub(super) bytes: u64,
    /// Rows of each group.
    pub(super) groups: Vec<u64>,
    /// Of tasks: the least and the greatest `finish` of each group, which its columns do not tell, in the run's own tick.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) finishes: Vec<Option<(i64, i64)>>,
    /// CRC-32 of each [`BLOCK_BYTES`], eight letters each.
    pub(super) sums: String,
}

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredRun {
    pub(super) name: String,
    pub(super) format: String,
    pub(super) source: String,
    /// Seconds since 1970; that of its first import where it was only moved.
    pub(super) imported_at: i64,
    pub(super) info: StoredInfo,
    pub(super) stats: Vec<StoredStat>,
    pub(super) facts: Facts,
    /// Its rows.
    pub(super) parts: Vec<Part>,
}

/// Consecutive groups of rows in a file: all of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    /// The place of the file in its commit.
    pub(super) file: usize,
    pub(super) first: usize,
    pub(super) groups: usize,
}

/// What [`crate::trace::RunInfo`] has.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StoredInfo {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) own_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) started_at: Option<i64>,
    pub(super) time_unit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tick: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cores: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) argument: Option<String>,
    /// The bits of the double: decimal digits would not bring all of them back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) size_order: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repetition: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) study: Option<String>,
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub(super) args: serde_json::Map<String, serde_json::Value>,
}

/// A row of `import_stats`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredStat {
    pub(super) what: String,
    pub(super) severity: String,
    pub(super) stage: String,
    pub(super) count: u64,
    pub(super) example: String,
}

/// What opening needs to know of the rows, so that it need not read them. Times are in the run's own tick.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Facts {
    /// First start and last finish of the tasks of the program.
    pub(super) first: Option<i64>,
    pub(super) last: Option<i64>,
    /// The least and the greatest of all times.
    pub(super) least: Option<i64>,
    pub(super) greatest: Option<i64>,
    pub(super) processes: Option<i64>,
    /// Whether the recorder wrote anything of itself.
    pub(super) profiler: bool,
    /// Whether there are spans beside the work of the locations.
    pub(super) beside: bool,
    /// Whether some of its tasks run nothing themselves, and others do.
    pub(super) idle: bool,
    /// Whether the tasks of each location come in the order of their starts, as they stand in the files.
    #[serde(default)]
    pub(super) by_lane: bool,
}

/// A run of the state, with the files of the commit that it came with.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) run: Arc<StoredRun>,
    pub(super) files: Arc<Vec<Arc<StoredFile>>>,
}

/// All runs after a commit.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// The number of the last commit.
    pub(super) number: u64,
    /// In the order of their commits; a replaced run keeps its place.
    pub(super) runs: Vec<Entry>,
    pub(super) left: BTreeMap<String, i64>,
    /// The number of the last checkpoint; 0 for none.
    pub(super) checkpoint: u64,
}

/// What `last.json` says.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Last {
    #[serde(rename = "tq store")]
    version: u64,
    commit: u64,
    /// 0 for none.
    checkpoint: u64,
}

impl Entry {
    /// The parts of a table with their files.
    pub(super) fn parts(&self, table: Table) -> impl Iterator<Item = (&Arc<StoredFile>, Part)> {
        let parts = self.run.parts.iter().map(|part| (&self.files[part.file], *part));
        parts.filter(move |(file, _)| file.table == table.name())
    }

    /// Rows of a table.
    pub(super) fn rows(&self, table: Table) -> u64 {
        let of_part = |(file, part): (&Arc<StoredFile>, Part)| -> u64 { file.groups[part.range()].iter().sum() };
        self.parts(table).map(of_part).sum()
    }
}

impl Part {
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.groups
    }
}

impl State {
    /// Whether there is a run of this name.
    pub(super) fn names(&self) -> HashSet<&str> {
        self.runs.iter().map(|entry| entry.run.name.as_str()).collect()
    }

    /// Each file that a run names, once, in the order of runs.
    pub(super) fn files(&self) -> Vec<Arc<StoredFile>> {
        let mut seen = HashSet::new();
        let used = self.runs.iter().flat_map(|entry| entry.run.parts.iter().map(|part| &entry.files[part.file]));
        used.filter(|file| seen.insert(file.path.as_str())).cloned().collect()
    }

    /// The commit that makes this state of nothing.
    fn checkpoint(&self) -> Commit {
        let files = self.files();
        let places: HashMap<&str, usize> =
            files.iter().enumerate().map(|(place, file)| (file.path.as_str(), place)).collect();
        let moved = |entry: &Entry| {
            let mut run = StoredRun::clone(&entry.run);
            for part in &mut run.parts {
                part.file = places[entry.files[part.file].path.as_str()];
            }
            run
        };
        let runs = self.runs.iter().map(moved).collect();
        let files: Vec<StoredFile> = files.iter().map(|file| StoredFile::clone(file)).collect();
        Commit { number: self.number, at: now(), by: by(), files, runs, left: self.left.clone(), ..Commit::default() }
    }

    /// Applies commits in their order. Cost: linear in the runs.
    fn apply(self, commits: Vec<(PathBuf, Commit)>) -> Result<State, ImportError> {
        let mut slots: Vec<Option<Entry>> = self.runs.into_iter().map(Some).collect();
        let mut places: HashMap<String, usize> = HashMap::new();
        for (place, entry) in slots.iter().enumerate() {
            places.extend(entry.iter().map(|entry| (entry.run.name.clone(), place)));
        }
        let (mut number, mut left, checkpoint) = (self.number, self.left, self.checkpoint);
        let of_run =
            |entry: &Entry| entry.files.iter().map(|file| (file.path.clone(), Arc::clone(file))).collect::<Vec<_>>();
        let mut known: HashMap<String, Arc<StoredFile>> = slots.iter().flatten().flat_map(of_run).collect();
        for (path, commit) in commits {
            let mut free: HashMap<String, usize> = HashMap::new();
            for name in commit.removed {
                let Some(place) = places.remove(&name) else {
                    return Err(damaged(&path, format!("it removes run `{name}`, which is not there")));
                };
                for part in slots[place].take().iter().flat_map(folders_of) {
                    left.insert(part, commit.at);
                }
                free.insert(name, place);
            }
            let files: Arc<Vec<Arc<StoredFile>>> = Arc::new(commit.files.into_iter().map(Arc::new).collect());
            for file in files.iter() {
                let before = known.entry(file.path.clone()).or_insert_with(|| Arc::clone(file));
                if before != file {
                    return Err(damaged(
                        &path,
                        format!("it says of `{}` something else than a commit before", file.path),
                    ));
                }
            }
            for run in commit.runs {
                let place = free.remove(&run.name).unwrap_or(slots.len());
                if places.insert(run.name.clone(), place).is_some() {
                    return Err(damaged(&path, format!("there is a run `{}` already", run.name)));
                }
                let entry = Some(Entry { run: Arc::new(run), files: Arc::clone(&files) });
                match slots.get_mut(place) {
                    Some(slot) => *slot = entry,
                    None => slots.push(entry),
                }
            }
            left.extend(commit.left);
            number = commit.number;
        }
        Ok(State { number, runs: slots.into_iter().flatten().collect(), left, checkpoint })
    }
}

fn folders_of(entry: &Entry) -> Vec<String> {
    let folders = entry.run.parts.iter().filter_map(|part| parts_of(&entry.files[part.file].path));
    folders.map(|(id, _)| id.to_owned()).collect()
}

pub(super) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

pub(super) fn by() -> String {
    format!("tq {}", crate::VERSION)
}

fn commit_path(root: &Path, number: u64) -> PathBuf {
    log_folder(root).join(format!("{number:08}.json"))
}

fn checkpoint_path(root: &Path, number: u64) -> PathBuf {
    log_folder(root).join(format!("{number:08}.checkpoint.json"))
}

/// Names of runs are shown on every page about them: bytes.
pub(super) const LONGEST_NAME: usize = 4096;
/// No store has as many commits; a file with a greater number is none of its log.
const LAST_NUMBER: u64 = 999_999_999_999;

/// The number of a commit or checkpoint, and whether it is a checkpoint; `None` for other files.
fn number_of(name: &str) -> Option<(u64, bool)> {
    let stem = name.strip_suffix(".json")?;
    let (digits, is_checkpoint) = match stem.strip_suffix(".checkpoint") {
        Some(digits) => (digits, true),
        None => (stem, false),
    };
    let is_number = digits.len() >= 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number)?;
    (format!("{number:08}") == digits && (1..=LAST_NUMBER).contains(&number)).then_some((number, is_checkpoint))
}

/// Whether a folder is a store: it has a log with a commit.
pub(super) fn is_store(root: &Path) -> bool {
    let entries = fs::read_dir(log_folder(root)).into_iter().flatten().flatten();
    let mut names = entries.filter_map(|entry| number_of(entry.file_name().to_str()?));
    names.next().is_some()
}

/// The number of the newest commit, and what tells it from that of a store that was made anew: when it was written, or what it says.
#[cfg(feature = "cluster")]
pub(crate) fn newest(root: &Path) -> Result<(u64, u128), ImportError> {
    if remote::is_url(root) {
        return newest_behind(root);
    }
    let folder = log_folder(root);
    let entries = fs::read_dir(&folder).map_err(|error| failed(&folder, "read the log", &error))?.flatten();
    let named = entries.filter_map(|entry| Some((number_of(entry.file_name().to_str()?)?.0, entry)));
    let Some((number, entry)) = named.max_by_key(|(number, _)| *number) else {
        return Err(damaged(&folder, "it has no commit: which runs the store has is not known"));
    };
    let written = entry.metadata().and_then(|about| about.modified()).ok();
    let since_1970 = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok((number, since_1970.map_or(0, |time| time.as_nanos())))
}

#[cfg(feature = "cluster")]
fn newest_behind(root: &Path) -> Result<(u64, u128), ImportError> {
    let deadline = Deadline::default();
    let folder = Folder::of(root, deadline)?;
    let Some(last) = read_last(&folder, deadline)? else {
        return Err(damaged(root, "it is no store: it has no hint to its last commit"));
    };
    let mut newest = (last.commit, 0);
    for number in last.commit.max(1).. {
        let Some(text) = folder.look_for(&object_name(&commit_path(root, number)), LARGEST, deadline)? else { break };
        newest = (number, u128::from(crc32fast::hash(&text)));
    }
    Ok(newest)
}

/// Whether a folder was a store: it has a log, and files of runs that no commit knows.
pub(super) fn has_lost_its_commits(root: &Path) -> bool {
    let entries = || fs::read_dir(runs_folder(root)).into_iter().flatten().flatten();
    log_folder(root).is_dir() && entries().any(|entry| entry.file_name().to_str().is_some_and(is_id)) && !is_store(root)
}

/// The state after the last commit.
pub(super) fn read(root: &Path, deadline: Deadline) -> Result<State, ImportError> {
    if remote::is_url(root) {
        return read_remote(root, deadline)?.ok_or_else(|| ImportError::Unusable {
            path: root.to_owned(),
            what: format!("it is no store: it has no `log/{LAST}`"),
            hint: Some(format!(
                "a store from a disk is copied with its folder `log`, and `tq gc` writes `{LAST}` there"
            )),
        });
    }
    let folder = log_folder(root);
    check_folder(&folder)?;
    // Before the list: it names no commit that was not there then.
    let last = said_here(&folder);
    let mut commits: Vec<u64> = Vec::new();
    let mut checkpoint = None;
    for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, "read the log", &error))? {
        let entry = entry.map_err(|error| failed(&folder, "read the log", &error))?;
        match entry.file_name().to_str().and_then(number_of) {
            Some((number, true)) => checkpoint = checkpoint.max(Some(number)),
            Some((number, false)) => commits.push(number),
            None => {}
        }
    }
    if commits.is_empty() && checkpoint.is_none() {
        return Err(damaged(&folder, "it has no commit: which runs the store has is not known"));
    }
    commits.sort_unstable();
    let from = checkpoint.unwrap_or(0);
    let mut steps = Vec::new();
    if let Some(number) = checkpoint {
        steps.push(read_commit(&checkpoint_path(root, number), number)?);
    }
    for (expected, number) in (from + 1..).zip(commits.into_iter().filter(|number| *number > from)) {
        deadline.check(root)?;
        if number != expected {
            return Err(damaged(&commit_path(root, expected), "the commit is missing"));
        }
        steps.push(read_commit(&commit_path(root, number), number)?);
    }
    let state = State { checkpoint: from, ..State::default() }.apply(steps)?;
    if last.commit > state.number {
        return Err(ImportError::Unusable {
            path: commit_path(root, last.commit),
            what: format!("damaged: the commit is missing, and `log/{LAST}` names it"),
            hint: Some(format!("restore the file from a copy; to go on without its runs, remove `log/{LAST}`")),
        });
    }
    Ok(state)
}

/// What `last.json` of a folder says; nothing where there is no such file, or another one of that name.
fn said_here(folder: &Path) -> Last {
    let read = || {
        let mut text = String::new();
        open_plain(&folder.join(LAST)).ok()?.take(LARGEST_LAST).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    };
    read().unwrap_or_default()
}

/// What `last.json` says behind a URL; `None` where there is no such file, or another one of that name.
fn read_last(folder: &Arc<Folder>, deadline: Deadline) -> Result<Option<Last>, ImportError> {
    let bytes = folder.look_for(&format!("log/{LAST}"), LARGEST_LAST, deadline)?;
    let last: Option<Last> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    Ok(last.filter(|last| last.checkpoint <= last.commit && last.commit - last.checkpoint <= MOST_COMMITS))
}

/// Whether there is a store behind a URL.
pub(super) fn is_remote_store(root: &Path, deadline: Deadline) -> Result<bool, ImportError> {
    match read_last(&Folder::of(root, deadline)?, deadline) {
        // It may be a trace, of which the same is true.
        Err(ImportError::Unusable { what, hint, .. }) => {
            Err(ImportError::Unusable { path: root.to_owned(), what, hint })
        }
        other => Ok(other?.is_some()),
    }
}

/// The object of a commit or a checkpoint.
fn object_name(path: &Path) -> String {
    format!("log/{}", path.file_name().unwrap_or_default().to_string_lossy())
}

/// The state of a store behind a URL; `None` where there is none.
fn read_remote(root: &Path, deadline: Deadline) -> Result<Option<State>, ImportError> {
    let folder = Folder::of(root, deadline)?;
    let last = read_last(&folder, deadline)?.unwrap_or_default();
    // The checkpoint, then the commits that are known to be there.
    let checkpoint = (last.checkpoint > 0).then(|| (checkpoint_path(root, last.checkpoint), last.checkpoint));
    let commits = (last.checkpoint + 1..=last.commit).map(|number| (commit_path(root, number), number));
    let known: Vec<(PathBuf, u64)> = checkpoint.into_iter().chain(commits).collect();
    let texts = folder.get_all(known.iter().map(|(path, _)| object_name(path)).collect(), LARGEST, deadline)?;
    let mut steps = Vec::new();
    for ((path, number), text) in known.iter().zip(texts) {
        steps.push(decoded(path, text.to_vec(), *number)?);
    }
    for number in last.commit + 1.. {
        let path = commit_path(root, number);
        let Some(text) = folder.look_for(&object_name(&path), LARGEST, deadline)? else { break };
        steps.push(decoded(&path, text.to_vec(), number)?);
    }
    if steps.is_empty() {
        return Ok(None);
    }
    State { checkpoint: last.checkpoint, ..State::default() }.apply(steps).map(Some)
}

/// The text of a commit before its body, up to the checksum.
fn head() -> String {
    format!("{{\"tq store\":{VERSION},\"crc32\":\"")
}

/// Between the checksum and the body.
const MIDDLE: &str = "\",\"body\":";
/// Behind the body.
const END: &str = "}\n";

fn encoded(commit: &Commit) -> Result<String, serde_json::Error> {
    let body = serde_json::to_string(commit)?;
    Ok(format!("{}{:08x}{MIDDLE}{body}{END}", head(), crc32fast::hash(body.as_bytes())))
}

fn read_commit(path: &Path, number: u64) -> Result<(PathBuf, Commit), ImportError> {
    let file = open_plain(path)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| failed(path, "read", &error))?;
    if bytes.len() as u64 > LARGEST {
        return Err(damaged(path, "a commit has 256 MB at most"));
    }
    decoded(path, bytes, number)
}

/// The commit that a file holds.
fn decoded(path: &Path, bytes: Vec<u8>, number: u64) -> Result<(PathBuf, Commit), ImportError> {
    let text = String::from_utf8(bytes).map_err(|_| damaged(path, "it is no text"))?;
    let wrong = || damaged(path, "it does not begin and end as a commit does, or is cut");
    let rest = match text.strip_prefix(&head()) {
        Some(rest) => rest,
        None => return Err(other_version(path, &text).unwrap_or_else(wrong)),
    };
    let (sum, rest) = rest.split_at_checked(8).ok_or_else(wrong)?;
    let body = rest.strip_prefix(MIDDLE).and_then(|rest| rest.strip_suffix(END)).ok_or_else(wrong)?;
    if sum != format!("{:08x}", crc32fast::hash(body.as_bytes())) {
        return Err(damaged(path, "its checksum does not fit"));
    }
    let commit: Commit = serde_json::from_str(body).map_err(|error| damaged(path, error.to_string()))?;
    if commit.number != number {
        return Err(damaged(path, format!("it says that it is commit {}", commit.number)));
    }
    check(&commit).map_err(|what| damaged(path, what))?;
    Ok((path.to_owned(), commit))
}

/// The refusal of a store that another version wrote.
fn other_version(path: &Path, text: &str) -> Option<ImportError> {
    let digits: String =
        text.strip_prefix("{\"tq store\":")?.chars().take_while(char::is_ascii_digit).take(9).collect();
    let version: u64 = digits.parse().ok().filter(|_| text[12 + digits.len()..].starts_with(','))?;
    let (what, hint) = match version {
        VERSION => return None,
        newer if newer > VERSION => (
            format!("a newer version of tq wrote this: format {newer}, and this tq reads format {VERSION}"),
            "use the newer tq, or import the traces into a new store",
        ),
        older => (
            format!("a tq before the first release wrote this: format {older}, and this tq reads format {VERSION}"),
            "import the traces into a new store",
        ),
    };
    Some(ImportError::Unusable { path: path.to_owned(), what, hint: Some(hint.to_owned()) })
}

/// What a checksum does not tell: whether the numbers fit together.
fn check(commit: &Commit) -> Result<(), String> {
    let mut paths = HashSet::new();
    for file in &commit.files {
        let known = Table::from_name(&file.table).filter(|table| !matches!(table, Table::Runs | Table::ImportStats));
        if known.is_none() {
            return Err(format!("`{}` is of no table", file.path));
        }
        if parts_of(&file.path).is_none() || !paths.insert(&file.path) {
            return Err(format!("`{}` is no file of a store, or is there twice", file.path));
        }
        let hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let blocks = file.bytes.div_ceil(BLOCK_BYTES);
        if file.sums.len() as u64 != blocks.saturating_mul(8) || !file.sums.bytes().all(hexadecimal) {
            return Err(format!("`{}` has not a checksum for each block", file.path));
        }
        if file.groups.iter().any(|rows| *rows > GROUP_ROWS) {
            return Err(format!("`{}` has a group of more than 2^20 rows", file.path));
        }
        let finishes = if known == Some(Table::Tasks) { file.groups.len() } else { 0 };
        if file.finishes.len() != finishes {
            return Err(format!("`{}` has not the last times of each group", file.path));
        }
    }
    for run in &commit.runs {
        if run.name.is_empty() || run.name.len() > LONGEST_NAME {
            return Err(format!("a run has a name of {} bytes", run.name.len()));
        }
        let mut last: HashMap<usize, usize> = HashMap::new();
        for part in &run.parts {
            let fits = commit
                .files
                .get(part.file)
                .is_some_and(|file| part.first.checked_add(part.groups).is_some_and(|end| end <= file.groups.len()));
            let end = last.entry(part.file).or_default();
            if !fits || part.first < *end {
                return Err(format!("the rows of run `{}` are not where it says", run.name));
            }
            *end = part.first + part.groups;
        }
    }
    Ok(())
}

/// Makes a commit. `make` is told the state that the commit will follow, and is asked again when somebody else was faster.
pub(super) fn commit(
    root: &Path,
    mut make: impl FnMut(&State) -> Result<Commit, ImportError>,
) -> Result<State, ImportError> {
    loop {
        let state = read_or_empty(root)?;
        let mut commit = make(&state)?;
        commit.number = state.number + 1;
        let path = commit_path(root, commit.number);
        if commit.number > LAST_NUMBER {
            return Err(ImportError::Unusable {
                path,
                what: format!("the log has its last commit already: their numbers end with {LAST_NUMBER}"),
                hint: Some("import its traces into a store of another name".to_owned()),
            });
        }
        check(&commit).map_err(|what| ImportError::internal(&path, super::internal(what)))?;
        let mut next = state.apply(vec![(path.clone(), commit.clone())])?;
        match link(root, &path, &commit)? {
            false => continue,
            true if next.number % CHECKPOINT_EVERY == 0 => {
                // The commits say the same: without the checkpoint, opening is slower. One that could not be read would hide them.
                let checkpoint = next.checkpoint();
                let path = checkpoint_path(root, next.number);
                if check(&checkpoint).is_ok()
                    && State::default().apply(vec![(path.clone(), checkpoint.clone())]).is_ok()
                    && link(root, &path, &checkpoint).is_ok()
                {
                    next.checkpoint = next.number;
                }
            }
            true => {}
        }
        // Without it, stores behind URLs show older commits, or are not found: the next one mends that.
        let _ = write_last(root, &next);
        return Ok(next);
    }
}

pub(super) fn read_or_empty(root: &Path) -> Result<State, ImportError> {
    if remote::is_url(root) {
        return Ok(read_remote(root, Deadline::default())?.unwrap_or_default());
    }
    if is_store(root) { read(root, Deadline::default()) } else { Ok(State::default()) }
}

/// Says in `last.json` which commit a state follows. Whoever writes last need not have the last commit: it is a hint.
pub(super) fn write_last(root: &Path, state: &State) -> Result<(), ImportError> {
    let folder = log_folder(root);
    let last = Last { version: VERSION, commit: state.number, checkpoint: state.checkpoint };
    let text = serde_json::to_vec(&last)
        .map_err(|error| ImportError::internal(&folder, super::internal(error.to_string())))?;
    if remote::is_url(root) {
        return Folder::of(root, Deadline::default())?.put(&format!("log/{LAST}"), text);
    }
    put_last(&folder, &text).map_err(|error| failed(&folder.join(LAST), "write it", &error))
}

fn put_last(folder: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(UNLINKED).make_in(folder, |path| File::create_new(path))?;
    file.as_file().lock()?;
    let _registered = crate::trace::temporary::Registered::new(file.path());
    file.as_file_mut().write_all(text)?;
    file.persist(folder.join(LAST)).map_err(|error| error.error)?;
    Ok(())
}

/// Writes a commit so that it is there whole or not at all; `false` when the name is taken.
fn link(root: &Path, path: &Path, commit: &Commit) -> Result<bool, ImportError> {
    let folder = log_folder(root);
    let cannot = |error: &io::Error| failed(path, "write the commit", error);
    let text = encoded(commit).map_err(|error| ImportError::internal(path, super::internal(error.to_string())))?;
    if text.len() as u64 > LARGEST {
        let what = "the commit would be larger than 256 MB".to_owned();
        return Err(ImportError::Unusable {
            path: path.to_owned(),
            what,
            hint: Some("import less at once".to_owned()),
        });
    }
    if remote::is_url(root) {
        let name = format!("log/{}", path.file_name().unwrap_or_default().to_string_lossy());
        return Folder::of(root, Deadline::default())?.create(&name, text.into_bytes());
    }
    let mut file = loop {
        let file = tempfile::Builder::new()
            .prefix(UNLINKED)
            .make_in(&folder, |path| File::options().read(true).write(true).create_new(true).open(path))
            .map_err(|error| cannot(&error))?;
        file.as_file().lock().map_err(|error| cannot(&error))?;
        // `gc` leaves alone what is locked, and may have found it before.
        if file.path().exists() {
            break file;
        }
    };
    let _registered = crate::trace::temporary::Registered::new(file.path());
    let written = file.as_file_mut().write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all());
    written.map_err(|error| cannot(&error))?;
    match fs::hard_link(file.path(), path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(cannot(&error)),
    }
    // The commit is there, whatever the system says now: an error would make the caller delete what it names.
    let _ = sync_folder(&folder);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str) -> StoredRun {
        StoredRun {
            name: name.to_owned(),
            format: "test".to_owned(),
            source: "test".to_owned(),
            imported_at: 0,
            info: StoredInfo::default(),
            stats: vec![],
            facts: Facts::default(),
            parts: vec![],
        }
    }

    fn names(state: &State) -> Vec<&str> {
        state.runs.iter().map(|entry| entry.run.name.as_str()).collect()
    }

    fn store() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        super::super::layout::make(folder.path()).unwrap();
        folder
    }

    fn step(root: &Path, removed: &[&str], added: &[&str]) -> State {
        let removed: Vec<String> = removed.iter().map(|name| (*name).to_owned()).collect();
        let runs: Vec<StoredRun> = added.iter().map(|name| run(name)).collect();
        commit(root, |_| Ok(Commit { removed: removed.clone(), runs: runs.clone(), ..Commit::default() })).unwrap()
    }

    #[test]
    fn a_replaced_run_keeps_its_place_and_checkpoints_say_the_same() {
        let store = store();
        step(store.path(), &[], &["a", "b", "c"]);
        step(store.path(), &["b"], &["d", "b"]);
        for night in 0..120 {
            step(store.path(), &[], &[&format!("night/{night}")]);
        }
        let state = step(store.path(), &["a"], &[]);
        assert_eq!(names(&state)[..4], ["b", "c", "d", "night/0"]);
        assert!(checkpoint_path(store.path(), 100).exists());
        let again = read(store.path(), Deadline::default()).unwrap();
        assert_eq!((again.number, names(&again)), (123, names(&state)));
        // Without the checkpoint, the commits say it.
        fs::remove_file(checkpoint_path(store.path(), 100)).unwrap();
        assert_eq!(names(&read(store.path(), Deadline::default()).unwrap()), names(&state));
        fs::remove_file(commit_path(store.path(), 7)).unwrap();
        let missing = read(store.path(), Deadline::default()).unwrap_err().to_string();
        assert!(missing.contains("00000007.json"), "{missing}");
    }

    #[test]
    fn a_log_ends_with_its_last_number() {
        let store = store();
        let last = Commit { number: LAST_NUMBER, runs: vec![run("a")], ..Commit::default() };
        fs::write(checkpoint_path(store.path(), LAST_NUMBER), encoded(&last).unwrap()).unwrap();
        assert_eq!(names(&read(store.path(), Deadline::default()).unwrap()), ["a"]);
        let refused = commit(store.path(), |_| Ok(Commit { runs: vec![run("b")], ..Commit::default() }));
        assert!(refused.unwrap_err().to_string().contains("the log has its last commit already"));
    }

    #[test]
    fn every_flipped_byte_of_a_commit_is_noticed() {
        let store = store();
        step(store.path(), &[], &["a", "b"]);
        let path = commit_path(store.path(), 1);
        let bytes = fs::read(&path).unwrap();
        for place in 0..bytes.len() {
            for mask in [1u8, 0x20, 0x80] {
                let mut flipped = bytes.clone();
                flipped[place] ^= mask;
                fs::write(&path, &flipped).unwrap();
                let error = read(store.path(), Deadline::default()).unwrap_err().to_string();
                assert!(error.contains("00000001.json"), "byte {place}: {error}");
            }
            fs::write(&path, &bytes[..place]).unwrap();
            assert!(read(store.path(), Deadline::default()).is_err(), "cut at {place}");
        }
        let newer = String::from_utf8(bytes).unwrap().replacen("\"tq store\":2", "\"tq store\":12", 1);
        fs::write(&path, newer).unwrap();
        let error = read(store.path(), Deadline::default()).unwrap_err().to_string();
        assert!(error.contains("a newer version of tq wrote this: format 12"), "{error}");
    }

    /// A commit of a stranger, whose checksum is right.
    fn forged(root: &Path, change: impl FnOnce(&mut Commit)) -> String {
        let file = StoredFile {
            path: "abcdefghij012345/tasks-000.parquet".to_owned(),
            table: "tasks".to_owned(),
            bytes: 10,
            groups: vec![5, 5],
            finishes: vec![None, Some((3, 9))],
            sums: "00000000".to_owned(),
        };
        let parts = vec![Part { file: 0, first: 0, groups: 2 }];
        let runs = vec![StoredRun { parts, ..run("a") }];
        let mut commit = Commit { number: 1, files: vec![file], runs, ..Commit::default() };
        change(&mut commit);
        fs::write(commit_path(root, 1), encoded(&commit).unwrap()).unwrap();
        read(root, Deadline::default()).map_or_else(|error| error.to_string(), |_| "fine".to_owned())
    }

    #[test]
    fn what_a_stranger_writes_must_fit_together() {
        let store = store();
        assert_eq!(forged(store.path(), |_| ()), "fine");
        let changes: [fn(&mut Commit); 15] = [
            |commit| commit.files[0].finishes.truncate(1),
            |commit| commit.files[0].path = "../../../../../etc/passwd".to_owned(),
            |commit| commit.files[0].path = "abcdefghij012345/../x.parquet".to_owned(),
            |commit| commit.files[0].table = "runs".to_owned(),
            |commit| commit.files[0].groups[1] = u64::MAX,
            |commit| commit.files[0].bytes = u64::MAX,
            |commit| commit.files[0].sums = "0000000g".to_owned(),
            |commit| commit.files.extend_from_within(..),
            |commit| commit.runs[0].parts[0].file = 1,
            |commit| commit.runs[0].parts[0].groups = 3,
            |commit| commit.runs[0].parts[0].first = usize::MAX,
            |commit| commit.runs[0].parts.extend_from_within(..),
            |commit| commit.runs.extend_from_within(..),
            |commit| commit.removed.push("b".to_owned()),
            |commit| commit.number = 2,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let error = forged(store.path(), change);
            assert!(error.contains("00000001.json: damaged"), "change {number}: {error}");
        }
        #[cfg(unix)]
        {
            let path = commit_path(store.path(), 1);
            fs::rename(&path, store.path().join("elsewhere")).unwrap();
            std::os::unix::fs::symlink(store.path().join("elsewhere"), &path).unwrap();
            let error = read(store.path(), Deadline::default()).unwrap_err().to_string();
            assert!(error.contains("no plain file"), "{error}");
        }
    }

    #[test]
    fn a_hundred_thousand_runs_take_linear_time() {
        let names: Vec<String> = (0..100_000).map(|number| format!("night/{number}")).collect();
        let runs = names.iter().map(|name| run(name)).collect();
        let all = Commit { number: 1, runs, ..Commit::default() };
        let removed = names[..50_000].to_vec();
        let half = Commit { number: 2, removed, runs: vec![run("night/7")], ..Commit::default() };
        let state = State::default().apply(vec![(PathBuf::new(), all), (PathBuf::new(), half)]).unwrap();
        assert_eq!((state.runs.len(), state.runs[0].run.name.as_str()), (50_001, "night/7"));
        assert_eq!(state.checkpoint().runs.len(), 50_001);
    }

    #[test]
    fn writers_at_once_get_numbers_of_their_own() {
        let store = store();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let root = store.path();
                scope.spawn(move || (0..10).for_each(|turn| drop(step(root, &[], &[&format!("{writer}/{turn}")]))));
            }
        });
        let state = read(store.path(), Deadline::default()).unwrap();
        assert_eq!((state.number, state.names().len()), (40, 40));
    }
}
