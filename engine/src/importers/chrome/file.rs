//! A file: the records of its blocks, put together in the order of the text.
//!
//! Cheap per task: names, kinds and lanes of a block are renumbered through tables that are filled once per word and
//! block; all other columns stay as the block made them, or wait on disk until they are needed when memory is short.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::StringArray;
use datafusion::execution::memory_pool::MemoryReservation;

use super::chunk::{Fact, Joins, Python, Records, SEPARATOR, Tasks, TextColumn};
use super::container::Beside;
use super::event;
use super::lanes::{Lanes, Origin};
use super::lists::{Lists, Renumber};
use crate::error::ImportError;
use crate::trace::{Budget, Column, Room, Source, Spill, Stats, Words};

/// What the files of a run share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Names of tasks.
    pub(super) names: Words,
    /// Categories of tasks.
    pub(super) kinds: Words,
    pub(super) lanes: Lanes,
    /// Bytes of it that were asked of the pool.
    charged: usize,
}

impl Shared {
    fn memory(&self) -> usize {
        self.names.memory() + self.kinds.memory() + self.lanes.memory()
    }
}

/// What a `thread_name` of ours says beside the name: the tid of the thread that the tasks ran on.
const TQ_THREAD: &str = "tq_thread";

/// The records of one file.
pub(super) struct Recording {
    /// Tasks by block.
    pub(super) pieces: Vec<Piece>,
    pub(super) lists: Lists,
    pub(super) texts: Words,
    /// What stands beside the events.
    pub(super) beside: Vec<Beside>,
    /// Keys of threads that only draw a part of another thread, with the key of that one.
    drawn_beside: HashMap<String, String>,
    pub(super) origin: Origin,
    /// Parents that `tq` wrote, as (child, parent).
    pub(super) told_parents: Vec<(u32, u32)>,
    pub(super) stats: Stats,
    /// What is to be added to the times of the lists; the times of tasks have it already.
    pub(super) base: i64,
    /// Whether the numbers by which `tq` refers to tasks of the file are right.
    pub(super) is_believed: bool,
    /// The last time at which anything happens on each lane, where a `B` has no `E`.
    pub(super) last_times: Vec<i64>,
    /// Number of tasks.
    pub(super) rows: u32,
    pub(super) source: Source,
    /// Where its records are.
    pub(super) room: Room,
    memory: MemoryReservation,
    /// Bytes of texts that were asked of the pool.
    texts_charged: usize,
    /// How many pieces are on disk.
    away: usize,
}

/// The tasks of a block, with words of the run.
#[derive(Debug)]
pub(super) struct Piece {
    /// Position of its first task in the file.
    pub(super) first: u32,
    pub(super) starts: Column<i64>,
    pub(super) finishes: Column<i64>,
    pub(super) names: Column<i32>,
    pub(super) kinds: Column<i32>,
    pub(super) lanes: Column<i32>,
    pub(super) args: TextColumn,
    pub(super) ids: Column<(u32, Box<str>)>,
    pub(super) roles: Column<(u32, i32)>,
    pub(super) without_kind: Column<u32>,
    pub(super) correlations: Column<(u32, i64)>,
    pub(super) externals: Column<(u32, i64)>,
    pub(super) pythons: Column<Python>,
    pub(super) syncs: Column<u32>,
}

impl Piece {
    fn new(first: u32, tasks: Tasks, args: StringArray, joins: Joins) -> Piece {
        let Tasks { starts, finishes, names, kinds, lanes, ids, roles, without_kind } = tasks;
        let Joins { correlations, externals, pythons, syncs } = joins;
        Piece {
            first,
            starts: starts.into(),
            finishes: finishes.into(),
            names: names.into(),
            kinds: kinds.into(),
            lanes: lanes.into(),
            args: TextColumn::Held(args),
            ids: ids.into(),
            roles: roles.into(),
            without_kind: without_kind.into(),
            correlations: correlations.into(),
            externals: externals.into(),
            pythons: pythons.into(),
            syncs: syncs.into(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Positions of its tasks in the file.
    pub(super) fn rows(&self) -> std::ops::Range<usize> {
        self.first as usize..self.first as usize + self.len()
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.starts.memory()
            + self.finishes.memory()
            + self.names.memory()
            + self.kinds.memory()
            + self.lanes.memory()
            + self.args.memory()
            + self.ids.memory()
            + self.roles.memory()
            + self.without_kind.memory()
            + self.memory_of_joins()
    }

    fn memory_of_joins(&self) -> usize {
        self.correlations.memory() + self.externals.memory() + self.pythons.memory() + self.syncs.memory()
    }

    /// Moves everything to disk.
    fn put_away(&mut self, spill: &Arc<Spill>) -> Result<(), ImportError> {
        self.starts.put_away(spill)?;
        self.finishes.put_away(spill)?;
        self.names.put_away(spill)?;
        self.kinds.put_away(spill)?;
        self.lanes.put_away(spill)?;
        self.args.put_away(spill)?;
        self.ids.put_away(spill)?;
        self.roles.put_away(spill)?;
        self.without_kind.put_away(spill)?;
        self.correlations.put_away(spill)?;
        self.externals.put_away(spill)?;
        self.pythons.put_away(spill)?;
        self.syncs.put_away(spill)
    }
}

impl Recording {
    pub(super) fn new(source: &Source, origin: Origin, budget: &Budget) -> Recording {
        let room = Room::new(source.path(), budget);
        Recording {
            pieces: Vec::new(),
            lists: Lists::new(&room),
            texts: Words::default(),
            beside: Vec::new(),
            drawn_beside: HashMap::new(),
            origin,
            told_parents: Vec::new(),
            stats: Stats::default(),
            base: 0,
            is_believed: false,
            last_times: Vec::new(),
            rows: 0,
            source: source.clone(),
            room,
            memory: budget.hold(format!("reading {}", source.path().display())),
            texts_charged: 0,
            away: 0,
        }
    }

    /// Appends the records of the next block.
    pub(super) fn take(&mut self, records: Records, shared: &mut Shared) -> Result<(), ImportError> {
        let Records { names, kinds, lanes, texts, mut tasks, args, joins, mut lists, stats } = records;
        self.stats.absorb(stats);
        let keys: Vec<&str> = words(&lanes).collect();
        self.find_drawn_beside(&keys, &mut lists.facts);
        let lane_numbers = keys.iter().map(|key| {
            let meant = self.drawn_beside.get(*key).map_or(*key, String::as_str);
            shared.lanes.of_key(meant, &self.origin)
        });
        let lane_numbers = lane_numbers.collect();
        let by = Renumber {
            texts: words(&texts).map(|text| self.texts.intern(text)).collect(),
            lanes: lane_numbers,
            rows: self.rows,
            events: self.lists.events,
        };
        renumber(&mut tasks.names, &names, &mut shared.names);
        renumber(&mut tasks.kinds, &kinds, &mut shared.kinds);
        for lane in &mut tasks.lanes {
            *lane = by.lanes[*lane as usize];
        }
        for (_, role) in &mut tasks.roles {
            *role = by.text(*role);
        }
        self.lists.append(lists, &tasks, &by)?;
        let texts = self.texts.memory();
        let in_all = shared.memory();
        self.charge(texts.saturating_sub(self.texts_charged) + in_all.saturating_sub(shared.charged))?;
        self.texts_charged = self.texts_charged.max(texts);
        shared.charged = shared.charged.max(in_all);
        if tasks.len() == 0 {
            return Ok(());
        }
        let piece = Piece::new(self.rows, tasks, args, joins);
        self.charge(piece.memory())?;
        self.rows = u32::try_from(piece.rows().end).map_err(|_| ImportError::Unusable {
            path: self.source.path().to_owned(),
            what: "it holds more than 4 294 967 295 tasks".to_owned(),
            hint: None,
        })?;
        self.pieces.push(piece);
        self.put_away()
    }

    /// Moves the tasks to disk when memory is short.
    fn put_away(&mut self) -> Result<(), ImportError> {
        let Some(spill) = self.room.short().cloned() else { return Ok(()) };
        let mut bytes = 0;
        for piece in &mut self.pieces[self.away..] {
            bytes += piece.memory();
            piece.put_away(&spill)?;
        }
        self.away = self.pieces.len();
        self.release(bytes);
        Ok(())
    }

    /// Whether what is in proportion to the tasks had better be on disk.
    pub(super) fn is_large(&self) -> bool {
        self.away > 0 || self.room.short().is_some()
    }

    /// Finds the threads that `--format chrome` made for tasks which cross others of their thread; that one is where they ran.
    /// The metadata of such a thread is removed from the facts.
    fn find_drawn_beside(&mut self, keys: &[&str], facts: &mut Vec<Fact>) {
        for fact in facts.iter().filter(|fact| fact.what == "thread_name" && fact.args.contains(TQ_THREAD)) {
            let key = keys[fact.lane as usize];
            let thread = event::get(&fact.args, TQ_THREAD);
            if let (Some(thread), Some((process, _))) = (thread, key.rsplit_once(SEPARATOR)) {
                self.drawn_beside.insert(key.to_owned(), format!("{process}{SEPARATOR}{thread}"));
            }
        }
        if !self.drawn_beside.is_empty() {
            facts.retain(|fact| !self.drawn_beside.contains_key(keys[fact.lane as usize]));
        }
    }

    /// Asks the pool for memory that lasts until the tables are built.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<(), ImportError> {
        self.memory
            .try_grow(bytes)
            .map_err(|error| ImportError::Memory { path: self.source.path().to_owned(), what: error.strip_backtrace() })
    }

    /// Gives back what was asked for a piece that moves into the tables.
    pub(super) fn release(&self, bytes: usize) {
        self.memory.shrink(bytes.min(self.memory.size()));
    }

    /// Forgets what only joins need.
    pub(super) fn forget_joins(&mut self) {
        let mut bytes = 0;
        for piece in &mut self.pieces {
            bytes += piece.memory_of_joins();
            piece.correlations = Vec::new().into();
            piece.externals = Vec::new().into();
            piece.pythons = Vec::new().into();
            piece.syncs = Vec::new().into();
        }
        self.release(bytes);
        self.lists.forget_joins(&self.room);
        self.last_times = Vec::new();
    }

    /// Gives tasks other ends: (row, finish), by row.
    pub(super) fn set_finishes(
        &mut self,
        finishes: impl Iterator<Item = Result<(u32, i64), ImportError>>,
    ) -> Result<(), ImportError> {
        let mut finishes = finishes.peekable();
        let mut of_piece: Vec<(usize, i64)> = Vec::new();
        for piece in &mut self.pieces {
            if finishes.peek().is_none() {
                break;
            }
            let rows = piece.rows();
            let is_here =
                |next: &Result<(u32, i64), _>| next.as_ref().map_or(true, |(row, _)| (*row as usize) < rows.end);
            while let Some(next) = finishes.next_if(is_here) {
                let (row, finish) = next?;
                of_piece.push((row as usize - rows.start, finish));
            }
            if !of_piece.is_empty() {
                piece.finishes.change(|values| of_piece.drain(..).for_each(|(at, finish)| values[at] = finish))?;
            }
        }
        Ok(())
    }

    /// A column's value of a task.
    #[inline]
    pub(super) fn get<T>(
        &self,
        row: u32,
        column: impl FnOnce(&Piece, usize) -> Result<T, ImportError>,
    ) -> Result<T, ImportError> {
        let piece = self.pieces.partition_point(|piece| piece.first <= row).saturating_sub(1);
        let piece = &self.pieces[piece];
        column(piece, (row - piece.first) as usize)
    }

    /// The arguments of a task; '' for none.
    ///
    /// # Errors
    /// They are on disk and cannot be read, as for all that is asked of a task.
    pub(super) fn args(&self, row: u32) -> Result<String, ImportError> {
        self.get(row, |piece, at| piece.args.get(at).map(Cow::into_owned))
    }

    pub(super) fn start(&self, row: u32) -> Result<i64, ImportError> {
        self.get(row, |piece, at| piece.starts.get(at))
    }

    pub(super) fn finish(&self, row: u32) -> Result<i64, ImportError> {
        self.get(row, |piece, at| piece.finishes.get(at))
    }

    pub(super) fn lane(&self, row: u32) -> Result<i32, ImportError> {
        self.get(row, |piece, at| piece.lanes.get(at))
    }

    pub(super) fn name(&self, row: u32) -> Result<i32, ImportError> {
        self.get(row, |piece, at| piece.names.get(at))
    }

    /// The text of a key of this file's lists; '' for none.
    pub(super) fn text(&self, key: i32) -> &str {
        if key < 0 { "" } else { self.texts.word(key) }
    }
}

fn words(words: &Words) -> impl Iterator<Item = &str> {
    (0..words.len() as i32).map(|key| words.word(key))
}

fn renumber(keys: &mut [i32], from: &Words, to: &mut Words) {
    let table: Vec<i32> = words(from).map(|word| to.intern(word)).collect();
    for key in keys {
        *key = table[*key as usize];
    }
}
