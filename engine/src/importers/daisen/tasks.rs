//! The tasks of a trace: chunks of rows, and the columns that depend on their parents.
//!
//! Children stand before their parents (a row is written when its task ends), so parents are looked up when all rows are
//! there. While these are in memory, an index of positions finds them; the text of an id stays in its column. Where some had to go to
//! disk, the ids are sorted, and so is who asks for them: both are read once, side by side.

use std::hash::BuildHasher;
use std::iter::Peekable;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayBuilder, Int64Array, StringArray, StringBuilder};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use hashbrown::{DefaultHashBuilder, HashTable};

use super::chunk::Chunk;
use crate::error::ImportError;
use crate::tables;
use crate::trace::{
    Finding, Kept, List, Record as _, Room, RunBuilder, Sorted, Sorter, Source, Stats, Words, findings, in_order,
    record,
};

/// What waits here for the end of the file.
pub(super) fn reservation(source: &Source, pool: &Arc<dyn MemoryPool>) -> MemoryReservation {
    MemoryConsumer::new(format!("reading {}", source.path().display())).register(pool)
}

/// Asks for memory.
pub(super) fn reserve(memory: &MemoryReservation, bytes: usize, path: &Path) -> Result<(), ImportError> {
    memory.try_grow(bytes).map_err(|error| ImportError::Memory { path: path.to_owned(), what: error.strip_backtrace() })
}

/// All tasks.
pub(super) struct Tasks {
    rows: Rows,
    count: usize,
    names: Words,
    kinds: Words,
    pub(super) locations: Words,
    duplicates: Duplicates,
    room: Room,
}

/// The rows, and what finds them by their ids.
enum Rows {
    Held(Indexed),
    OnDisk(Box<OnDisk>),
}

/// Rows of which some are on disk, with all ids in order.
struct OnDisk {
    chunks: Vec<Kept<Chunk>>,
    /// The first task of each id.
    ids: List<Named>,
    /// The ids of parents, and the positions of those who name them.
    asked: Sorter<(Box<str>, u64)>,
}

/// How many tasks have an id that an earlier one has, and the first such id.
type Duplicates = (u64, Option<Box<str>>);

/// Rows in memory, with an index.
pub(super) struct Indexed {
    chunks: Vec<Chunk>,
    /// The position of the first row of each chunk.
    firsts: Vec<usize>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// What others want to know of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Task {
    pub(super) position: u32,
    start: Option<i64>,
    finish: Option<i64>,
    name: Option<i32>,
    kind: Option<i32>,
    pub(super) location: Option<i32>,
}

record!(Task { position, start, finish, name, kind, location });

/// A task and its id. In the order of its fields tasks of one id stand together, the first one of the trace first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    id: Box<str>,
    task: Task,
}

record!(Named { id, task });

/// Finds tasks by their ids.
pub(super) enum Found<'t> {
    Index(&'t Indexed),
    /// The task that was found for each number that was looked up.
    Sorted(Peekable<Sorted<(u64, Task)>>),
}

impl Found<'_> {
    /// The task with an id, for who asks under this number: one that is greater than the numbers before.
    pub(super) fn task(&mut self, number: u64, id: &str) -> Result<Option<Task>, ImportError> {
        let sorted = match self {
            Found::Index(index) => return Ok(index.find(id)),
            Found::Sorted(sorted) => sorted,
        };
        let is_before = |next: &Result<(u64, Task), ImportError>| !matches!(next, Ok((other, _)) if *other > number);
        let mut found = None;
        while let Some(next) = sorted.next_if(is_before) {
            let (other, task) = next?;
            found = (other == number).then_some(task);
        }
        Ok(found)
    }
}

/// What the parents of a chunk's tasks say.
#[derive(Default)]
struct Related {
    parents: Option<Int64Array>,
    /// The ids of parents that are not in the trace.
    args: Option<StringArray>,
    oddities: Oddities,
    /// From `req_out`s to their `req_in`s.
    messages: Option<tables::Messages>,
}

/// What is odd about tasks and their parents.
#[derive(Default)]
struct Oddities {
    dangling: Cases,
    outlives: Cases,
    early: Cases,
    own: Cases,
    zero: Cases,
}

/// How many, and the first: the ids of the task and of its parent.
#[derive(Default)]
struct Cases {
    count: u64,
    first: Option<(String, String)>,
}

impl Cases {
    fn add(&mut self, chunk: &Chunk, row: usize) {
        self.count += 1;
        if self.first.is_none() {
            let parent = if chunk.parents.is_valid(row) { chunk.parents.value(row) } else { "" };
            self.first = Some((chunk.id(row).unwrap_or("NULL").to_owned(), parent.to_owned()));
        }
    }

    fn then(&mut self, later: Cases) {
        self.count += later.count;
        self.first = self.first.take().or(later.first);
    }
}

impl Oddities {
    fn then(&mut self, later: Oddities) {
        self.dangling.then(later.dangling);
        self.outlives.then(later.outlives);
        self.early.then(later.early);
        self.own.then(later.own);
        self.zero.then(later.zero);
    }

    fn note(self, stats: &mut Stats) {
        let mut note = |finding: Finding, cases: Cases, what: &str| {
            let (task, parent) = cases.first.unwrap_or_default();
            stats.note(finding, cases.count, || format!("task `{task}`{}", what.replace("{}", &format!("`{parent}`"))));
        };
        note(findings::DANGLING_PARENT, self.dangling, ": its parent {} is not in the trace");
        note(findings::OUTLIVES_PARENT, self.outlives, " ends after its parent {}");
        note(findings::STARTS_BEFORE_PARENT, self.early, " begins before its parent {}");
        note(findings::OWN_PARENT, self.own, " is its own parent; it has none here");
        note(findings::ZERO_DURATION, self.zero, " ends when it begins");
    }
}

impl Tasks {
    /// Puts chunks together, in order: one dictionary per column, ids to positions.
    pub(super) fn new(
        chunks: Vec<Kept<Chunk>>,
        memory: &MemoryReservation,
        source: &Source,
        room: &Room,
    ) -> Result<Tasks, ImportError> {
        let (mut names, mut kinds, mut locations) = (Words::default(), Words::default(), Words::default());
        let (mut count, mut charged) = (0, 0);
        let mut whole = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            // Words move from the chunks to the whole.
            memory.shrink(chunk.memory().min(memory.size()));
            let mut chunk = chunk.fetched()?;
            chunk.names.map_to(&mut names);
            chunk.kinds.map_to(&mut kinds);
            chunk.locations.map_to(&mut locations);
            let words = names.memory() + kinds.memory() + locations.memory();
            reserve(memory, words - charged, source.path())?;
            charged = words;
            count += chunk.rows();
            whole.push(Kept::keep(chunk, memory, room)?);
        }
        if count > u32::MAX as usize {
            let what = format!("{count} tasks are more than can be numbered");
            return Err(ImportError::Unusable { path: source.path().to_owned(), what, hint: None });
        }
        let is_held = whole.iter().all(|chunk| matches!(chunk, Kept::Held(_)));
        // The index, the parents, and the pairs of requests.
        let bytes = count * (2 * size_of::<u32>() + 2 * size_of::<i64>());
        let granted = reserve(memory, bytes, source.path());
        let (rows, duplicates) = match (granted, room.disk()) {
            (Err(error), None) => return Err(error),
            (Ok(()), _) if is_held => {
                let chunks: Result<_, _> = whole.into_iter().map(Kept::fetched).collect();
                let (indexed, duplicates) = Indexed::new(chunks?, count);
                (Rows::Held(indexed), duplicates)
            }
            (granted, _) => {
                memory.shrink(granted.map_or(0, |()| bytes));
                let (on_disk, duplicates) = OnDisk::new(whole, room)?;
                (Rows::OnDisk(Box::new(on_disk)), duplicates)
            }
        };
        Ok(Tasks { rows, count, names, kinds, locations, duplicates, room: room.clone() })
    }

    /// The rows, if all of them are in memory.
    pub(super) fn indexed(&self) -> Option<&Indexed> {
        match &self.rows {
            Rows::Held(indexed) => Some(indexed),
            Rows::OnDisk(_) => None,
        }
    }

    /// Finds the tasks of ids, for who asks for them.
    pub(super) fn find_all(&self, asked: Sorter<(Box<str>, u64)>) -> Result<Found<'_>, ImportError> {
        match &self.rows {
            Rows::Held(indexed) => Ok(Found::Index(indexed)),
            Rows::OnDisk(on_disk) => side_by_side(&on_disk.ids, asked, &self.room),
        }
    }

    /// Moves the tasks into the builder, and the messages; what is left are the locations.
    pub(super) fn append(
        self,
        threads: usize,
        memory: &MemoryReservation,
        builder: &mut RunBuilder,
    ) -> Result<Words, ImportError> {
        let requests = self.kinds.find("req_in").zip(self.kinds.find("req_out"));
        let mut oddities = Oddities::default();
        let mut take = |chunk: Chunk, related: Related| {
            oddities.then(related.oddities);
            builder.append(tables::Tasks {
                id: chunk.ids.into(),
                parent: related.parents.into(),
                name: chunk.names.keys.into(),
                kind: chunk.kinds.keys.into(),
                role: "work".into(),
                location: chunk.locations.keys.into(),
                start: chunk.starts.into(),
                finish: chunk.finishes.into(),
                args: related.args.into(),
                ..Default::default()
            })?;
            let Some(messages) = related.messages else { return Ok(()) };
            if builder.words(tables::Messages::kind).is_empty() {
                // The same words in the same order: a location has the same key in all three columns.
                copy_words(&self.locations, builder.words(tables::Messages::source));
                copy_words(&self.locations, builder.words(tables::Messages::target));
                copy_words(&self.names, builder.words(tables::Messages::kind));
                builder.charge_words()?;
            }
            builder.append_derived(messages)
        };
        // The builder asks for what it takes over.
        match self.rows {
            Rows::Held(indexed) => {
                let relate_chunk = |number: usize| {
                    relate(&indexed.chunks[number], indexed.firsts[number], &mut Found::Index(&indexed), requests)
                };
                let related = in_order((0..indexed.chunks.len()).collect(), threads, relate_chunk);
                for (chunk, related) in indexed.chunks.into_iter().zip(related) {
                    memory.shrink(chunk.elsewhere().min(memory.size()));
                    take(chunk, related?)?;
                }
            }
            Rows::OnDisk(on_disk) => {
                let OnDisk { chunks, ids, asked } = *on_disk;
                let mut found = side_by_side(&ids, asked, &self.room)?;
                let mut first = 0;
                for chunk in chunks {
                    memory.shrink(chunk.memory().min(memory.size()));
                    let chunk = chunk.fetched()?;
                    let related = relate(&chunk, first, &mut found, requests)?;
                    first += chunk.rows();
                    take(chunk, related)?;
                }
            }
        }
        oddities.note(&mut builder.stats);
        if self.count == 0 {
            builder.stats.note(findings::NO_TASKS, 1, || "the table of tasks is empty".to_owned());
        }
        let (count, first) = self.duplicates;
        builder.stats.note(findings::DUPLICATE_ID, count, || {
            format!("`{}` is the id of several tasks; children belong to the first", first.unwrap_or_default())
        });
        *builder.words(tables::Tasks::name) = self.names;
        *builder.words(tables::Tasks::kind) = self.kinds;
        copy_words(&self.locations, builder.words(tables::Tasks::location));
        builder.charge_words()?;
        Ok(self.locations)
    }
}

impl Indexed {
    /// Rows with their index.
    fn new(chunks: Vec<Chunk>, count: usize) -> (Indexed, Duplicates) {
        let starts = chunks.iter().scan(0, |next, chunk| {
            let first = *next;
            *next += chunk.rows();
            Some(first)
        });
        let (firsts, hasher) = (starts.collect(), DefaultHashBuilder::default());
        let mut indexed = Indexed { chunks, firsts, index: HashTable::new(), hasher };
        let mut index: HashTable<u32> = HashTable::with_capacity(count);
        let (mut position, mut duplicates) = (0u32, (0, None));
        for chunk in &indexed.chunks {
            for id in &chunk.ids {
                if let Some(id) = id {
                    let hash = indexed.hasher.hash_one(id);
                    let same = |&other: &u32| indexed.id(other as usize) == Some(id);
                    let hash_of =
                        |&other: &u32| indexed.hasher.hash_one(indexed.id(other as usize).unwrap_or_default());
                    match index.entry(hash, same, hash_of) {
                        hashbrown::hash_table::Entry::Occupied(_) => {
                            duplicates.0 += 1;
                            duplicates.1.get_or_insert_with(|| id.into());
                        }
                        hashbrown::hash_table::Entry::Vacant(free) => {
                            free.insert(position);
                        }
                    }
                }
                position += 1;
            }
        }
        indexed.index = index;
        (indexed, duplicates)
    }

    /// The first task with an id.
    fn find(&self, id: &str) -> Option<Task> {
        let hash = self.hasher.hash_one(id);
        let position = *self.index.find(hash, |&position| self.id(position as usize) == Some(id))?;
        let (chunk, row) = self.at(position as usize);
        Some(task(chunk, row, position as usize))
    }

    fn at(&self, position: usize) -> (&Chunk, usize) {
        let chunk = self.firsts.partition_point(|first| *first <= position) - 1;
        (&self.chunks[chunk], position - self.firsts[chunk])
    }

    fn id(&self, position: usize) -> Option<&str> {
        let (chunk, row) = self.at(position);
        chunk.id(row)
    }
}

impl OnDisk {
    /// Sorts the ids of rows, and those that ask for parents.
    fn new(chunks: Vec<Kept<Chunk>>, room: &Room) -> Result<(OnDisk, Duplicates), ImportError> {
        let (mut named, mut asked) = (Sorter::new(room), Sorter::new(room));
        let mut first = 0;
        for chunk in &chunks {
            let chunk = chunk.get()?;
            for row in 0..chunk.rows() {
                if let Some(id) = chunk.id(row) {
                    named.push(Named { id: id.into(), task: task(&chunk, row, first + row) })?;
                }
                if chunk.parents.is_valid(row) {
                    asked.push((chunk.parents.value(row).into(), (first + row) as u64))?;
                }
            }
            first += chunk.rows();
        }
        let mut ids: List<Named> = List::new(room);
        let (mut count, mut again): (u64, Option<Named>) = (0, None);
        let mut last: Option<Named> = None;
        for named in named.sorted()? {
            let named = named?;
            if last.as_ref().is_none_or(|last| last.id != named.id) {
                last.replace(named).map_or(Ok(()), |last| ids.push(last))?;
                continue;
            }
            count += 1;
            if again.as_ref().is_none_or(|again| named.task.position < again.task.position) {
                again = Some(named);
            }
        }
        last.map_or(Ok(()), |last| ids.push(last))?;
        Ok((OnDisk { chunks, ids, asked }, (count, again.map(|again| again.id))))
    }
}

/// Finds tasks where both their ids and who asks for them are sorted.
fn side_by_side(ids: &List<Named>, asked: Sorter<(Box<str>, u64)>, room: &Room) -> Result<Found<'static>, ImportError> {
    let mut found = Sorter::new(room);
    let mut all = ids.iter();
    let mut next = all.next().transpose()?;
    for one in asked.sorted()? {
        let (id, number) = one?;
        while next.as_ref().is_some_and(|named| named.id < id) {
            next = all.next().transpose()?;
        }
        if let Some(named) = next.as_ref().filter(|named| named.id == id) {
            found.push((number, named.task))?;
        }
    }
    Ok(Found::Sorted(found.sorted()?.peekable()))
}

/// What others want to know of a row.
fn task(chunk: &Chunk, row: usize, position: usize) -> Task {
    let (start, finish) = chunk.span(row);
    let (name, kind, location) = (chunk.names.keys[row], chunk.kinds.keys[row], chunk.locations.keys[row]);
    Task { position: position as u32, start, finish, name, kind, location }
}

/// Looks up the parents of a chunk. `requests`: the kinds of the two sides of a request.
fn relate(
    chunk: &Chunk,
    first: usize,
    found: &mut Found<'_>,
    requests: Option<(i32, i32)>,
) -> Result<Related, ImportError> {
    let (mut related, mut pairs) = (Related::default(), Vec::new());
    let odd = &mut related.oddities;
    let mut parents = Vec::with_capacity(chunk.rows());
    let mut args = StringBuilder::new();
    for (row, id) in chunk.parents.iter().enumerate() {
        let position = first + row;
        let (start, finish) = chunk.span(row);
        if start.is_some() && start == finish {
            odd.zero.add(chunk, row);
        }
        let parent = match id {
            None => None,
            Some(id) => match found.task(position as u64, id)? {
                None => {
                    odd.dangling.add(chunk, row);
                    // Rows up to here have none.
                    args.append_nulls(row - args.len());
                    args.append_value(serde_json::json!({ "parent": id }).to_string());
                    None
                }
                Some(parent) if parent.position as usize == position => {
                    odd.own.add(chunk, row);
                    None
                }
                found => found,
            },
        };
        parents.push(parent.map(|parent| i64::from(parent.position)));
        let Some(parent) = parent else { continue };
        if finish.zip(parent.finish).is_some_and(|(finish, of_parent)| finish > of_parent) {
            odd.outlives.add(chunk, row);
        }
        if start.zip(parent.start).is_some_and(|(start, of_parent)| start < of_parent) {
            odd.early.add(chunk, row);
        }
        if chunk.kinds.keys[row].zip(parent.kind).is_some_and(|kinds| Some(kinds) == requests) {
            pairs.push((parent, task(chunk, row, position)));
        }
    }
    if !args.is_empty() {
        args.append_nulls(chunk.rows() - args.len());
        related.args = Some(args.finish());
    }
    related.messages = (!pairs.is_empty()).then(|| messages(&pairs));
    related.parents = parents.iter().any(Option::is_some).then(|| parents.into());
    Ok(related)
}

/// Requests as messages: from the location of the `req_out` to that of its `req_in`.
fn messages(requests: &[(Task, Task)]) -> tables::Messages {
    tables::Messages {
        source: requests.iter().map(|(out, _)| out.location).collect(),
        target: requests.iter().map(|(_, taken)| taken.location).collect(),
        source_task: requests.iter().map(|(out, _)| i64::from(out.position)).collect(),
        target_task: requests.iter().map(|(_, taken)| i64::from(taken.position)).collect(),
        send_time: requests.iter().map(|(out, _)| out.start).collect(),
        receive_time: requests.iter().map(|(_, taken)| taken.start).collect(),
        count: 1.into(),
        kind: requests.iter().map(|(out, _)| out.name).collect(),
        ..Default::default()
    }
}

/// Copies all words into a dictionary that is empty, so that keys stay what they are.
fn copy_words(words: &Words, into: &mut Words) {
    for key in 0..words.len() {
        into.intern(words.word(key as i32));
    }
}
