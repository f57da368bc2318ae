//! The form into which every dialect is read: pieces of lanes (the tasks of one worker at one level), in file order.
//!
//! The vectors of a [`Piece`] become Arrow buffers without a copy. They wait here until the file ends, because only then
//! are the origin of a T0 file and the meaning of its type numbers known.

use std::sync::Arc;

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use hashbrown::HashSet;

use crate::cells::Cells;
use crate::cells::kind::Word;
use crate::error::ImportError;
use crate::trace::{Source, Stats, Words, findings};

/// Tasks of a piece at most; a multiple of the rows of a batch.
pub(super) const PIECE_TASKS: usize = 1 << 16;

/// Why reading stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// The bytes end inside of something.
    Cut {
        /// The byte at which they end.
        at: u64,
        /// What is not whole.
        inside: String,
    },
    /// Nothing sensible can be said of the rest.
    Error(ImportError),
}

impl From<ImportError> for Stop {
    fn from(error: ImportError) -> Stop {
        Stop::Error(error)
    }
}

/// Keys of one column: one vector only when they differ.
#[derive(Debug, Default)]
pub(super) struct Keys {
    first: i32,
    many: Vec<i32>,
}

impl Keys {
    /// Appends the key of row number `row`.
    #[inline]
    pub(super) fn push(&mut self, row: usize, key: i32) {
        if self.many.is_empty() {
            if row == 0 {
                self.first = key;
            }
            if key == self.first {
                return;
            }
            self.many.reserve(PIECE_TASKS.min(2 * row + 4));
            self.many.resize(row, self.first);
        }
        self.many.push(key);
    }

    /// The key of a row.
    pub(super) fn get(&self, row: usize) -> i32 {
        self.many.get(row).copied().unwrap_or(self.first)
    }

    /// Replaces every key.
    pub(super) fn map(&mut self, mut new: impl FnMut(usize, i32) -> i32) {
        if self.many.is_empty() {
            self.first = new(0, self.first);
        }
        for (row, key) in self.many.iter_mut().enumerate() {
            *key = new(row, *key);
        }
    }

    /// The one key of all rows, else all keys.
    pub(super) fn into_cells(self) -> Cells<Word> {
        if self.many.is_empty() { self.first.into() } else { self.many.into() }
    }

    /// Whether all rows have one key.
    pub(super) fn is_one(&self) -> bool {
        self.many.is_empty()
    }

    /// Makes room for a key of its own in each of `rows` rows.
    pub(super) fn spread(&mut self, rows: usize) {
        if self.many.is_empty() {
            self.many.resize(rows, self.first);
        }
    }
}

/// Tasks in the order of completion.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// In ticks of ns since an origin that the dialect chose (see [`Executor::offset`]).
    pub(super) starts: Vec<i64>,
    pub(super) finishes: Vec<i64>,
    pub(super) names: Keys,
    /// Type numbers of the file (T0), else indices of [`super::types::WORDS`].
    pub(super) types: Keys,
}

impl Rows {
    pub(super) fn with_capacity(tasks: usize) -> Rows {
        Rows { starts: Vec::with_capacity(tasks), finishes: Vec::with_capacity(tasks), ..Rows::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    #[inline]
    pub(super) fn push(&mut self, start: i64, finish: i64, name: i32, type_number: i32) {
        let row = self.starts.len();
        self.starts.push(start);
        self.finishes.push(finish);
        self.names.push(row, name);
        self.types.push(row, type_number);
    }

    /// Bytes held, with what a piece costs beside its tasks: a file may have a million pieces of one task.
    pub(super) fn memory(&self) -> usize {
        const PIECE_BYTES: usize = size_of::<Piece>() + 128;
        PIECE_BYTES
            + (self.starts.capacity() + self.finishes.capacity()) * size_of::<i64>()
            + (self.names.many.capacity() + self.types.many.capacity()) * size_of::<i32>()
    }
}

/// One worker at one nesting level of one executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Lane {
    /// Position in the file.
    pub(super) executor: u32,
    pub(super) worker: u32,
    pub(super) level: u32,
}

/// Consecutive tasks of a lane.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) lane: Lane,
    pub(super) rows: Rows,
}

/// One executor of the file.
#[derive(Debug, Default)]
pub(super) struct Executor {
    /// The observer's id as written, where there is one (`{}` has none).
    pub(super) uid: Option<String>,
    /// The steady clock at the observer's creation.
    pub(super) origin_ns: Option<i64>,
    /// What to add to the times of its tasks to count them from the origin of the run.
    pub(super) offset: i64,
    /// The workers that the file mentions, in its order.
    pub(super) workers: Vec<u32>,
    /// The same, to look them up.
    pub(super) mentioned: HashSet<u32>,
}

impl Executor {
    /// Notes a worker that the file mentions; whether it is a new one.
    fn mention(&mut self, worker: u32) -> bool {
        // Lanes of one worker stand together, so the last one is nearly always the right one.
        let is_new = self.workers.last() != Some(&worker) && self.mentioned.insert(worker);
        if is_new {
            self.workers.push(worker);
        }
        is_new
    }
}

/// Everything that was read.
pub(super) struct Trace {
    pub(super) executors: Vec<Executor>,
    pub(super) pieces: Vec<Piece>,
    pub(super) names: Words,
    pub(super) tasks: u64,
    source: Source,
    memory: MemoryReservation,
}

impl Trace {
    pub(super) fn new(source: &Source, pool: &Arc<dyn MemoryPool>) -> Trace {
        Trace {
            executors: Vec::new(),
            pieces: Vec::new(),
            names: Words::default(),
            tasks: 0,
            source: source.clone(),
            memory: MemoryConsumer::new(format!("reading {}", source.path().display())).register(pool),
        }
    }

    /// Forgets what was read.
    pub(super) fn clear(&mut self) {
        self.executors.clear();
        self.pieces.clear();
        self.names = Words::default();
        self.tasks = 0;
        self.memory.free();
    }

    /// The number of the executor that was read last.
    pub(super) fn executor(&self) -> u32 {
        self.executors.len().saturating_sub(1) as u32
    }

    /// Notes a worker that the file mentions, of the executor that was read last.
    pub(super) fn mention(&mut self, worker: u32) -> Result<(), ImportError> {
        const WORKER_BYTES: usize = 32;
        if self.executors.last_mut().is_some_and(|executor| executor.mention(worker)) {
            self.charge(WORKER_BYTES)?;
        }
        Ok(())
    }

    pub(super) fn add(&mut self, lane: Lane, rows: Rows) -> Result<(), ImportError> {
        if rows.len() > 0 {
            self.charge(rows.memory())?;
            self.tasks += rows.len() as u64;
            self.pieces.push(Piece { lane, rows });
        }
        Ok(())
    }

    /// Asks the pool for memory that lasts until the trace is built.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), ImportError> {
        self.memory
            .try_grow(bytes)
            .map_err(|error| ImportError::Memory { path: self.source.path().to_owned(), what: error.strip_backtrace() })
    }

    /// Gives back what [`Trace::add`] asked for a piece that moves into the tables.
    pub(super) fn release(&mut self, bytes: usize) {
        self.memory.shrink(bytes.min(self.memory.size()));
    }

    /// The key of a name in whatever bytes the program chose.
    pub(super) fn name(&mut self, name: &[u8], at: u64, stats: &mut Stats) -> i32 {
        match std::str::from_utf8(name) {
            Ok(name) => self.names.intern(name),
            Err(_) => {
                let name = String::from_utf8_lossy(name);
                note_not_utf8(stats, 1, at, &name);
                self.names.intern(&name)
            }
        }
    }

    pub(super) fn damaged(&self, at: u64, what: impl Into<String>) -> ImportError {
        damaged(&self.source, format!("byte {at}"), what.into())
    }
}

/// Counts names that are no UTF-8.
pub(super) fn note_not_utf8(stats: &mut Stats, count: u64, at: u64, name: &str) {
    stats.note(findings::NAME_NOT_UTF8, count, || format!("byte {at}: `{name}`"));
}

pub(super) fn damaged(source: &Source, place: String, what: String) -> ImportError {
    ImportError::Damaged { path: source.path().to_owned(), format: super::DOC.name, place, what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Values;
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Int32Type;

    #[test]
    fn keys_hold_one_value_until_they_differ() {
        let mut keys = Keys::default();
        for (row, key) in [7, 7, 7, 3, 7].into_iter().enumerate() {
            assert_eq!(keys.is_one(), row < 4);
            keys.push(row, key);
        }
        assert_eq!((0..5).map(|row| keys.get(row)).collect::<Vec<_>>(), [7, 7, 7, 3, 7]);
        keys.map(|row, key| key * 10 + row as i32);
        let Values::Each(each) = keys.into_cells().into_values() else { panic!("a key each") };
        assert_eq!(each.as_primitive::<Int32Type>().values(), &[70, 71, 72, 33, 74]);
        let mut one = Keys::default();
        one.push(0, 2);
        one.push(1, 2);
        one.map(|_, key| key + 1);
        assert!(matches!(one.into_cells().into_values(), Values::Same(3)));
    }
}
