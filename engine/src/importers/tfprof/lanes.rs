//! The form into which every dialect is read: pieces of lanes (the tasks of one worker at one level), in file order.
//!
//! ```text
//! the file   | lane 0 ............ | lane 1 . | lane 2 . | lane 1 .. | lane 3 .........
//! blocks     | one long piece | one | short pieces of several lanes  | one long piece
//! ```
//! The vectors of a long piece become Arrow buffers without a copy; short pieces are combined first, so that a trace with many
//! lanes becomes neither many small batches nor many small allocations. Blocks wait here until the file ends, because only then
//! are the origin of a T0 file and the meaning of its type numbers known: in memory, or, while an import into a store is short
//! of memory, on disk. Nothing in a block is changed where it waits.

use std::collections::BTreeSet;
use std::ops::Range;

use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::HashSet;

use crate::cells::Cells;
use crate::cells::kind::Word;
use crate::error::ImportError;
use crate::trace::{Budget, Kept, Plain, ROWS_PER_BATCH, Record, Room, Source, Stats, Words, findings, record};

/// Tasks of a piece at most; a multiple of the rows of a batch. Unit tests have short pieces, so that a few tasks are many.
pub(super) const PIECE_TASKS: usize = if cfg!(test) { 16 } else { 1 << 16 };
/// Pieces of fewer tasks are combined.
const LONG: usize = if cfg!(test) { 4 } else { ROWS_PER_BATCH };

/// Why reading stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// The bytes end inside of something.
    Cut {
        /// The byte at which they end.
        at: u64,
        /// What broke off.
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
#[derive(Debug, Default, Clone)]
pub(super) struct Keys {
    first: i32,
    many: Vec<i32>,
}
record!(Keys { first, many });

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

    /// All keys that differ, and more than once where they are many.
    fn each(&self) -> impl Iterator<Item = i32> {
        std::iter::once(self.first).chain(self.many.iter().copied())
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
#[derive(Debug, Default, Clone)]
pub(super) struct Rows {
    /// In ticks of ns since an origin that the dialect chose (see [`Executor::offset`]).
    pub(super) starts: Vec<i64>,
    pub(super) finishes: Vec<i64>,
    pub(super) names: Keys,
    /// Type numbers of the file (T0), else indices of [`super::types::WORDS`].
    pub(super) types: Keys,
}
record!(Rows { starts, finishes, names, types });

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

    /// Appends others.
    fn append(&mut self, others: &Rows) {
        for row in 0..others.len() {
            self.push(others.starts[row], others.finishes[row], others.names.get(row), others.types.get(row));
        }
    }

    /// Whether there is as much of everything.
    fn is_whole(&self) -> bool {
        let fits = |keys: &Keys| keys.is_one() || keys.many.len() == self.len();
        self.finishes.len() == self.len() && fits(&self.names) && fits(&self.types)
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
record!(Lane { executor, worker, level });

impl Plain for Lane {
    const BYTES: usize = 3 * u32::BYTES;
}

impl Lane {
    /// Its executor and its worker, without the level.
    pub(super) fn executor_and_worker(self) -> (u32, u32) {
        (self.executor, self.worker)
    }
}

/// The tasks of pieces, one piece after the other.
#[derive(Debug, Default, Clone)]
pub(super) struct Pieces {
    pub(super) rows: Rows,
    /// The lane of each piece, and the row behind its last one.
    ends: Vec<(Lane, u32)>,
}

impl Record for Pieces {
    fn write(&self, to: &mut Vec<u8>) {
        self.rows.write(to);
        self.ends.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let pieces = Pieces { rows: Record::read(from)?, ends: Record::read(from)? };
        let ends = pieces.ends.iter().map(|(_, end)| *end as usize);
        let is_whole = pieces.rows.is_whole() && ends.is_sorted() && pieces.end() == pieces.rows.len();
        is_whole.then_some(pieces)
    }

    fn elsewhere(&self) -> usize {
        self.rows.elsewhere() + self.ends.elsewhere()
    }
}

impl Pieces {
    fn of(lane: Lane, rows: Rows) -> Pieces {
        Pieces { ends: vec![(lane, rows.len() as u32)], rows }
    }

    /// Appends a piece.
    fn add(&mut self, lane: Lane, rows: &Rows) {
        self.rows.append(rows);
        let end = self.rows.len() as u32;
        match self.ends.last_mut() {
            Some((last, behind)) if *last == lane => *behind = end,
            _ => self.ends.push((lane, end)),
        }
    }

    /// The row behind the last piece.
    fn end(&self) -> usize {
        self.ends.last().map_or(0, |(_, end)| *end as usize)
    }

    /// The lane of each piece, and its rows.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Lane, Range<usize>)> {
        let mut begin = 0;
        self.ends.iter().map(move |&(lane, end)| {
            let rows = begin..end as usize;
            begin = rows.end;
            (lane, rows)
        })
    }

    /// Adds the offset of their lane to all times.
    ///
    /// # Errors
    /// A time for which the sum is too large.
    pub(super) fn shift(&mut self, offset: impl Fn(Lane) -> i64) -> Result<(), i64> {
        let mut misfit = None;
        let mut begin = 0;
        for &(lane, end) in &self.ends {
            let rows = begin..end as usize;
            begin = rows.end;
            let offset = offset(lane);
            if offset == 0 {
                continue;
            }
            for time in self.rows.starts[rows.clone()].iter_mut().chain(&mut self.rows.finishes[rows]) {
                let (shifted, overflowed) = time.overflowing_add(offset);
                if overflowed {
                    misfit = Some(*time);
                }
                *time = shifted;
            }
        }
        misfit.map_or(Ok(()), Err)
    }
}

/// Consecutive tasks of the file, that are kept together.
#[derive(Debug)]
pub(super) struct Block {
    /// The position of the first one.
    pub(super) first: u64,
    pub(super) len: usize,
    /// Their lane, if they are of one.
    pub(super) lane: Option<Lane>,
    pub(super) pieces: Kept<Pieces>,
}

impl Block {
    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.pieces.memory() + size_of::<Block>()
    }
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
    pub(super) blocks: Vec<Block>,
    pub(super) names: Words,
    pub(super) tasks: u64,
    pub(super) met: Met,
    /// Workers with short pieces that are on disk among those of other lanes.
    pub(super) scattered: BTreeSet<(u32, u32)>,
    /// Short pieces that are no block yet.
    short: Pieces,
    /// How many of the first blocks are on disk.
    away: usize,
    pub(super) room: Room,
    source: Source,
    memory: MemoryReservation,
    /// Bytes of names that were asked of the pool.
    names_charged: usize,
}

/// What was met in pieces.
#[derive(Debug, Default)]
pub(super) struct Met {
    /// Bit `n`: a task of type number `n`.
    pub(super) types: u64,
    /// The greatest level.
    pub(super) deepest: u32,
    /// The least time with which a piece begins.
    pub(super) earliest: Option<i64>,
    /// The first executor with tasks, and whether others have some, too.
    executor: Option<u32>,
    pub(super) several_executors: bool,
}

impl Met {
    fn add(&mut self, lane: Lane, rows: &Rows, begin: i64) {
        // Type numbers are below 64 in every dialect.
        self.types |= rows.types.each().fold(0, |types, number| types | 1 << (number & 63));
        self.deepest = self.deepest.max(lane.level);
        self.earliest = Some(self.earliest.map_or(begin, |earliest| earliest.min(begin)));
        self.several_executors |= *self.executor.get_or_insert(lane.executor) != lane.executor;
    }
}

impl Trace {
    pub(super) fn new(source: &Source, budget: &Budget) -> Trace {
        Trace {
            executors: Vec::new(),
            blocks: Vec::new(),
            names: Words::default(),
            tasks: 0,
            met: Met::default(),
            scattered: BTreeSet::new(),
            short: Pieces::default(),
            away: 0,
            room: Room::new(source.path(), budget),
            source: source.clone(),
            memory: budget.hold(format!("reading {}", source.path().display())),
            names_charged: 0,
        }
    }

    /// Forgets what was read.
    pub(super) fn clear(&mut self) {
        self.executors.clear();
        self.blocks.clear();
        self.names = Words::default();
        self.tasks = 0;
        self.met = Met::default();
        self.scattered.clear();
        self.short = Pieces::default();
        self.away = 0;
        self.memory.free();
        self.names_charged = 0;
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

    /// Takes the next piece.
    pub(super) fn add(&mut self, lane: Lane, rows: Rows) -> Result<(), ImportError> {
        let Some(&begin) = rows.starts.first() else { return Ok(()) };
        self.met.add(lane, &rows, begin);
        self.tasks += rows.len() as u64;
        if rows.len() >= LONG {
            self.end_short()?;
            return self.keep(Pieces::of(lane, rows));
        }
        self.short.add(lane, &rows);
        if self.short.rows.len() >= LONG { self.end_short() } else { Ok(()) }
    }

    /// Makes a block of the short pieces.
    fn end_short(&mut self) -> Result<(), ImportError> {
        let short = std::mem::take(&mut self.short);
        if short.rows.len() > 0 { self.keep(short) } else { Ok(()) }
    }

    fn keep(&mut self, pieces: Pieces) -> Result<(), ImportError> {
        let first = self.blocks.last().map_or(0, |block| block.first + block.len as u64);
        let lane = match pieces.ends[..] {
            [(lane, _)] => Some(lane),
            _ => None,
        };
        let block = Block { first, len: pieces.rows.len(), lane, pieces: Kept::Held(pieces) };
        let names = self.names.memory();
        self.charge(block.memory() + names.saturating_sub(self.names_charged))?;
        self.names_charged = self.names_charged.max(names);
        self.blocks.push(block);
        if self.room.short().is_some() { self.put_away() } else { Ok(()) }
    }

    /// Moves all blocks to disk, if there is one for them.
    fn put_away(&mut self) -> Result<(), ImportError> {
        let Some(spill) = self.room.disk().cloned() else { return Ok(()) };
        for at in self.away..self.blocks.len() {
            let block = &mut self.blocks[at];
            if block.lane.is_none() {
                self.scattered.extend(block.pieces.get()?.iter().map(|(lane, _)| lane.executor_and_worker()));
            }
            let bytes = block.pieces.memory();
            block.pieces.put_away(&spill)?;
            self.release(bytes);
        }
        self.away = self.blocks.len();
        Ok(())
    }

    /// Ends the reading: everything is in a block, and what is combined of several lanes is on disk where anything is.
    pub(super) fn end(&mut self) -> Result<(), ImportError> {
        self.end_short()?;
        if self.away > 0 { self.put_away() } else { Ok(()) }
    }

    /// Asks the pool for memory that lasts until the trace is built.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), ImportError> {
        self.memory
            .try_grow(bytes)
            .map_err(|error| ImportError::Memory { path: self.source.path().to_owned(), what: error.strip_backtrace() })
    }

    /// Gives back what was asked for something that moves on.
    pub(super) fn release(&mut self, bytes: usize) {
        self.memory.shrink(bytes.min(self.memory.size()));
    }

    /// The names, whose memory is from now on the caller's.
    pub(super) fn take_names(&mut self) -> Words {
        let bytes = std::mem::take(&mut self.names_charged);
        self.release(bytes);
        std::mem::take(&mut self.names)
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

    /// What to add to the times of a lane to count them from the origin of the run.
    pub(super) fn offset(&self, lane: Lane) -> i64 {
        self.executors.get(lane.executor as usize).map_or(0, |executor| executor.offset)
    }

    /// A time cannot be counted from the origin of the run.
    pub(super) fn does_not_fit(&self, time: i64) -> ImportError {
        self.damaged(0, format!("a time {time} ns behind its executor's origin"))
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

    #[test]
    fn pieces_on_disk_that_do_not_fit_together_are_none() {
        let mut pieces = Pieces::default();
        for (worker, tasks) in [(0, 2), (0, 1), (1, 3)] {
            let mut rows = Rows::default();
            (0..tasks).for_each(|task| rows.push(task, task + 1, 7, (worker + task) as i32));
            pieces.add(Lane { executor: 0, worker: worker as u32, level: 0 }, &rows);
        }
        let lanes: Vec<(u32, Range<usize>)> = pieces.iter().map(|(lane, rows)| (lane.worker, rows)).collect();
        assert_eq!(lanes, [(0, 0..3), (1, 3..6)]);
        let read = |change: &dyn Fn(&mut Pieces)| {
            let (mut pieces, mut bytes) = (pieces.clone(), Vec::new());
            change(&mut pieces);
            pieces.write(&mut bytes);
            Pieces::read(&mut bytes.as_slice())
        };
        let whole = read(&|_| {}).expect("whole");
        assert_eq!(
            (whole.rows.starts, whole.rows.types.many, whole.ends.len()),
            (vec![0, 1, 0, 0, 1, 2], vec![0, 1, 0, 1, 2, 3], 2)
        );
        for damage in [
            &(|pieces: &mut Pieces| pieces.rows.finishes.truncate(5)) as &dyn Fn(&mut Pieces),
            &|pieces| pieces.rows.types.many.truncate(5),
            &|pieces| pieces.ends.truncate(1),
            &|pieces| pieces.ends[0].1 = 9,
        ] {
            assert!(read(damage).is_none());
        }
    }

    #[test]
    fn times_are_shifted_by_the_offset_of_their_lane() {
        let mut pieces = Pieces::default();
        for executor in [0, 1] {
            let mut rows = Rows::default();
            rows.push(5, 7, 0, 0);
            pieces.add(Lane { executor, worker: 0, level: 0 }, &rows);
        }
        assert_eq!(pieces.shift(|lane| i64::from(lane.executor) * 100), Ok(()));
        assert_eq!((&pieces.rows.starts, &pieces.rows.finishes), (&vec![5, 105], &vec![7, 107]));
        assert_eq!(pieces.shift(|_| i64::MAX - 106), Err(107));
    }
}
