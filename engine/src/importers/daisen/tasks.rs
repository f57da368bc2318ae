//! The tasks of a trace: chunks of rows, an index of their ids, and the columns that depend on their parents.
//!
//! Children stand before their parents (a row is written when its task ends), so parents are looked up when all rows are
//! there. The index holds positions only; the text of an id stays in its column.

use std::hash::BuildHasher;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::{Array, ArrayBuilder, Int64Array, StringArray, StringBuilder};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use hashbrown::{DefaultHashBuilder, HashTable};

use super::chunk::Chunk;
use crate::error::ImportError;
use crate::tables;
use crate::trace::{Finding, RunBuilder, Source, Stats, Words, findings};

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
    chunks: Vec<Chunk>,
    /// The position of the first row of each chunk.
    firsts: Vec<usize>,
    related: Vec<Related>,
    names: Words,
    kinds: Words,
    pub(super) locations: Words,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    duplicates: (u64, Option<u32>),
}

/// What the parents of a chunk's tasks say.
#[derive(Default)]
struct Related {
    parents: Option<Int64Array>,
    /// The ids of parents that are not in the trace.
    args: Option<StringArray>,
    dangling: Cases,
    outlives: Cases,
    early: Cases,
    own: Cases,
    zero: Cases,
    /// Positions of `req_out`s with their `req_in`s.
    requests: Vec<(u32, u32)>,
}

/// How many, and the position of the first.
#[derive(Default, Clone, Copy)]
struct Cases {
    count: u64,
    first: Option<usize>,
}

impl Cases {
    fn add(&mut self, position: usize) {
        self.count += 1;
        self.first.get_or_insert(position);
    }
}

impl Tasks {
    /// Puts chunks together, in order: one dictionary per column, ids to positions, parents to tasks.
    pub(super) fn new(
        mut chunks: Vec<Chunk>,
        threads: usize,
        memory: &MemoryReservation,
        source: &Source,
    ) -> Result<Tasks, ImportError> {
        let (mut names, mut kinds, mut locations) = (Words::default(), Words::default(), Words::default());
        let mut firsts = Vec::with_capacity(chunks.len());
        let (mut rows, mut charged) = (0, 0);
        for chunk in &mut chunks {
            let own = chunk.memory();
            chunk.names.map_to(&mut names);
            chunk.kinds.map_to(&mut kinds);
            chunk.locations.map_to(&mut locations);
            // Words move from the chunks to the whole.
            memory.shrink((own - chunk.memory()).min(memory.size()));
            let words = names.memory() + kinds.memory() + locations.memory();
            reserve(memory, words - charged, source.path())?;
            charged = words;
            firsts.push(rows);
            rows += chunk.rows();
        }
        if rows > u32::MAX as usize {
            let what = format!("{rows} tasks are more than can be numbered");
            return Err(ImportError::Unusable { path: source.path().to_owned(), what, hint: None });
        }
        // The index, the parents, and the pairs of requests.
        reserve(memory, rows * (2 * size_of::<u32>() + 2 * size_of::<i64>()), source.path())?;
        let mut tasks = Tasks {
            chunks,
            firsts,
            related: Vec::new(),
            names,
            kinds,
            locations,
            index: HashTable::with_capacity(rows),
            hasher: DefaultHashBuilder::default(),
            duplicates: (0, None),
        };
        tasks.number();
        tasks.related = tasks.relate(threads);
        Ok(tasks)
    }

    /// The position of a task by its id; the first of those that share one.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        let hash = self.hasher.hash_one(id);
        self.index.find(hash, |&position| self.id(position as usize) == Some(id)).map(|&position| position as usize)
    }

    /// The location of a task.
    pub(super) fn location(&self, position: usize) -> Option<&str> {
        let (chunk, row) = self.at(position);
        chunk.locations.keys[row].map(|key| self.locations.word(key))
    }

    /// Moves the tasks into the builder, then the messages.
    pub(super) fn append(&mut self, memory: &MemoryReservation, builder: &mut RunBuilder) -> Result<(), ImportError> {
        self.note(&mut builder.stats);
        let messages = self.messages(builder)?;
        // The names and kinds are asked for no more.
        *builder.words(tables::Tasks::name) = std::mem::take(&mut self.names);
        *builder.words(tables::Tasks::kind) = std::mem::take(&mut self.kinds);
        copy_words(&self.locations, builder.words(tables::Tasks::location));
        builder.charge_words()?;
        for (chunk, related) in std::mem::take(&mut self.chunks).into_iter().zip(std::mem::take(&mut self.related)) {
            // The builder asks for what it takes over.
            memory.shrink(chunk.memory().min(memory.size()));
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
        }
        messages.into_iter().try_for_each(|messages| builder.append_derived(messages))
    }

    fn rows(&self) -> usize {
        self.firsts.last().zip(self.chunks.last()).map_or(0, |(first, last)| first + last.rows())
    }

    fn at(&self, position: usize) -> (&Chunk, usize) {
        let chunk = self.firsts.partition_point(|first| *first <= position) - 1;
        (&self.chunks[chunk], position - self.firsts[chunk])
    }

    fn id(&self, position: usize) -> Option<&str> {
        let (chunk, row) = self.at(position);
        chunk.ids.is_valid(row).then(|| chunk.ids.value(row))
    }

    fn span(&self, position: usize) -> (Option<i64>, Option<i64>) {
        let (chunk, row) = self.at(position);
        let value = |times: &Int64Array| times.is_valid(row).then(|| times.value(row));
        (value(&chunk.starts), value(&chunk.finishes))
    }

    /// Fills the index.
    fn number(&mut self) {
        let mut index = std::mem::take(&mut self.index);
        let mut position = 0u32;
        for chunk in &self.chunks {
            for id in &chunk.ids {
                if let Some(id) = id {
                    let hash = self.hasher.hash_one(id);
                    let same = |&other: &u32| self.id(other as usize) == Some(id);
                    let hash_of = |&other: &u32| self.hasher.hash_one(self.id(other as usize).unwrap_or_default());
                    match index.entry(hash, same, hash_of) {
                        hashbrown::hash_table::Entry::Occupied(_) => {
                            self.duplicates.0 += 1;
                            self.duplicates.1.get_or_insert(position);
                        }
                        hashbrown::hash_table::Entry::Vacant(free) => {
                            free.insert(position);
                        }
                    }
                }
                position += 1;
            }
        }
        self.index = index;
    }

    /// Looks up the parents of each chunk, on several threads.
    fn relate(&self, threads: usize) -> Vec<Related> {
        let next = AtomicUsize::new(0);
        let requests = (self.kinds.find("req_in"), self.kinds.find("req_out"));
        let work = || {
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                match self.chunks.get(number) {
                    Some(chunk) => done.push((number, self.relate_chunk(chunk, self.firsts[number], requests))),
                    None => return done,
                }
            }
        };
        let mut done = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads.min(self.chunks.len())).map(|_| scope.spawn(work)).collect();
            let mut done = work();
            for other in others {
                match other.join() {
                    Ok(more) => done.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            done
        });
        done.sort_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, related)| related).collect()
    }

    fn relate_chunk(&self, chunk: &Chunk, first: usize, (req_in, req_out): (Option<i32>, Option<i32>)) -> Related {
        let mut related = Related::default();
        let mut parents = Vec::with_capacity(chunk.rows());
        let mut args = StringBuilder::new();
        for (row, parent) in chunk.parents.iter().enumerate() {
            let position = first + row;
            let (start, finish) = self.span(position);
            if start.is_some() && start == finish {
                related.zero.add(position);
            }
            let found = parent.map(|id| self.find(id));
            let parent = match found {
                None => None,
                Some(None) => {
                    related.dangling.add(position);
                    // Rows up to here have none.
                    args.append_nulls(row - args.len());
                    args.append_value(serde_json::json!({ "parent": parent }).to_string());
                    None
                }
                Some(Some(parent)) if parent == position => {
                    related.own.add(position);
                    None
                }
                Some(found) => found,
            };
            parents.push(parent.map(|parent| parent as i64));
            let Some(parent) = parent else { continue };
            let (parent_start, parent_finish) = self.span(parent);
            if finish.zip(parent_finish).is_some_and(|(finish, of_parent)| finish > of_parent) {
                related.outlives.add(position);
            }
            if start.zip(parent_start).is_some_and(|(start, of_parent)| start < of_parent) {
                related.early.add(position);
            }
            let is_request = req_in.is_some() && req_out.is_some() && chunk.kinds.keys[row] == req_in && {
                let (of_parent, parent_row) = self.at(parent);
                of_parent.kinds.keys[parent_row] == req_out
            };
            if is_request {
                related.requests.push((parent as u32, position as u32));
            }
        }
        if !args.is_empty() {
            args.append_nulls(chunk.rows() - args.len());
            related.args = Some(args.finish());
        }
        related.parents = parents.iter().any(Option::is_some).then(|| parents.into());
        related
    }

    fn note(&self, stats: &mut Stats) {
        if self.rows() == 0 {
            stats.note(findings::NO_TASKS, 1, || "the table of tasks is empty".to_owned());
        }
        let id = |position: usize| self.id(position).unwrap_or("NULL").to_owned();
        let (count, first) = self.duplicates;
        stats.note(findings::DUPLICATE_ID, count, || {
            format!(
                "`{}` is the id of several tasks; children belong to the first",
                first.map_or_else(String::new, |first| id(first as usize))
            )
        });
        let mut of_parents = |finding: Finding, cases: &dyn Fn(&Related) -> Cases, what: &str| {
            let count = self.related.iter().map(|related| cases(related).count).sum();
            stats.note(finding, count, || {
                let first = self.related.iter().find_map(|related| cases(related).first);
                let Some(first) = first else { return String::new() };
                let (chunk, row) = self.at(first);
                let parent = if chunk.parents.is_valid(row) { chunk.parents.value(row) } else { "" };
                format!("task `{}`{}", id(first), what.replace("{}", &format!("`{parent}`")))
            });
        };
        of_parents(findings::DANGLING_PARENT, &|related| related.dangling, ": its parent {} is not in the trace");
        of_parents(findings::OUTLIVES_PARENT, &|related| related.outlives, " ends after its parent {}");
        of_parents(findings::STARTS_BEFORE_PARENT, &|related| related.early, " begins before its parent {}");
        of_parents(findings::OWN_PARENT, &|related| related.own, " is its own parent; it has none here");
        of_parents(findings::ZERO_DURATION, &|related| related.zero, " ends when it begins");
    }

    /// Requests as messages: from the location of the `req_out` to that of its `req_in`.
    fn messages(&self, builder: &mut RunBuilder) -> Result<Vec<tables::Messages>, ImportError> {
        let mut all = Vec::new();
        if self.related.iter().all(|related| related.requests.is_empty()) {
            return Ok(all);
        }
        // The same words in the same order: a location has the same key in all three columns.
        copy_words(&self.locations, builder.words(tables::Messages::source));
        copy_words(&self.locations, builder.words(tables::Messages::target));
        copy_words(&self.names, builder.words(tables::Messages::kind));
        builder.charge_words()?;
        for related in self.related.iter().filter(|related| !related.requests.is_empty()) {
            let pairs = || related.requests.iter();
            let location = |position: u32| {
                let (chunk, row) = self.at(position as usize);
                chunk.locations.keys[row]
            };
            let name = |position: u32| {
                let (chunk, row) = self.at(position as usize);
                chunk.names.keys[row]
            };
            all.push(tables::Messages {
                source: pairs().map(|(out, _)| location(*out)).collect(),
                target: pairs().map(|(_, taken)| location(*taken)).collect(),
                source_task: pairs().map(|(out, _)| i64::from(*out)).collect(),
                target_task: pairs().map(|(_, taken)| i64::from(*taken)).collect(),
                send_time: pairs().map(|(out, _)| self.span(*out as usize).0).collect(),
                receive_time: pairs().map(|(_, taken)| self.span(*taken as usize).0).collect(),
                count: 1.into(),
                kind: pairs().map(|(out, _)| name(*out)).collect(),
                ..Default::default()
            });
        }
        Ok(all)
    }
}

/// Copies all words into a dictionary that is empty, so that keys stay what they are.
fn copy_words(words: &Words, into: &mut Words) {
    for key in 0..words.len() {
        into.intern(words.word(key as i32));
    }
}
