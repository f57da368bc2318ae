//! A file: the records of its blocks, put together in the order of the text.
//!
//! Cheap per task: names, kinds and lanes of a block are renumbered through tables that are filled once per word and
//! block; all other columns stay as the block made them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryReservation;

use super::chunk::{Fact, Joins, Lists, Records, Renumber, SEPARATOR, Tasks};
use super::container::Beside;
use super::event;
use super::lanes::{Lanes, Origin};
use crate::error::ImportError;
use crate::trace::{Budget, Source, Spill, Stats, Words};

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
    /// Tasks that took no time and were closed by an `E`, with the row of the task that comes next in the file.
    pub(super) closed_at_once: HashMap<u32, u32>,
    /// The last time at which anything happens on each lane, where a `B` has no `E`.
    pub(super) last_times: Vec<i64>,
    /// Number of tasks.
    pub(super) rows: u32,
    pub(super) source: Source,
    memory: MemoryReservation,
    /// Bytes of texts that were asked of the pool.
    texts_charged: usize,
    spill: Option<Arc<Spill>>,
    /// How many pieces were looked at by [`Recording::put_away`].
    away: usize,
}

/// What lists cost while they grow and are joined, in bytes of their rows.
const LISTS_FACTOR: usize = 2;

/// The tasks of a block, with words of the run.
#[derive(Debug)]
pub(super) struct Piece {
    /// Position of its first task in the file.
    pub(super) first: u32,
    pub(super) tasks: Tasks,
    pub(super) joins: Joins,
}

impl Recording {
    pub(super) fn new(source: &Source, origin: Origin, budget: &Budget) -> Recording {
        Recording {
            pieces: Vec::new(),
            lists: Lists::default(),
            texts: Words::default(),
            beside: Vec::new(),
            drawn_beside: HashMap::new(),
            origin,
            told_parents: Vec::new(),
            stats: Stats::default(),
            closed_at_once: HashMap::new(),
            last_times: Vec::new(),
            rows: 0,
            source: source.clone(),
            memory: budget.hold(format!("reading {}", source.path().display())),
            texts_charged: 0,
            spill: budget.spill().cloned(),
            away: 0,
        }
    }

    /// Appends the records of the next block.
    pub(super) fn take(&mut self, records: Records, shared: &mut Shared) -> Result<(), ImportError> {
        let Records { names, kinds, lanes, texts, mut tasks, joins, mut lists, stats } = records;
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
        // Lists grow by doubling, and what joins them (stacks of lanes, ids) is in proportion.
        self.charge(lists.memory() * LISTS_FACTOR)?;
        self.lists.append(lists, &by);
        let texts = self.texts.memory();
        let in_all = shared.memory();
        self.charge(texts.saturating_sub(self.texts_charged) + in_all.saturating_sub(shared.charged))?;
        self.texts_charged = self.texts_charged.max(texts);
        shared.charged = shared.charged.max(in_all);
        if tasks.len() == 0 {
            return Ok(());
        }
        self.charge(tasks.memory() + joins.memory())?;
        let first = self.rows;
        self.rows = u32::try_from(self.rows as usize + tasks.len()).map_err(|_| ImportError::Unusable {
            path: self.source.path().to_owned(),
            what: "it holds more than 4 294 967 295 tasks".to_owned(),
            hint: None,
        })?;
        self.pieces.push(Piece { first, tasks, joins });
        self.put_away()
    }

    /// Moves arguments to disk when memory is short: hardly anything needs them before the tables are built.
    fn put_away(&mut self) -> Result<(), ImportError> {
        let Some(spill) = self.spill.clone().filter(|spill| spill.is_due()) else { return Ok(()) };
        let mut bytes = 0;
        for piece in &mut self.pieces[self.away..] {
            bytes += piece.tasks.memory();
            piece.tasks.args.put_away(&spill)?;
            bytes -= piece.tasks.memory();
        }
        self.away = self.pieces.len();
        self.release(bytes);
        Ok(())
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
    pub(super) fn release(&mut self, bytes: usize) {
        self.memory.shrink(bytes.min(self.memory.size()));
    }

    /// Forgets what only joins need.
    pub(super) fn forget_joins(&mut self) {
        let mut bytes = 0;
        for piece in &mut self.pieces {
            bytes += std::mem::take(&mut piece.joins).memory();
        }
        self.release(bytes + self.lists.memory_of_joins() * LISTS_FACTOR);
        let Lists { begins, ends, asyncs, flows, binds, .. } = &mut self.lists;
        (*begins, *ends, *asyncs, *flows, *binds) = Default::default();
        self.closed_at_once = HashMap::new();
        self.last_times = Vec::new();
    }

    /// The piece and the row in it of a task.
    #[inline]
    pub(super) fn place(&self, row: u32) -> (usize, usize) {
        let piece = self.pieces.partition_point(|piece| piece.first <= row).saturating_sub(1);
        (piece, (row - self.pieces[piece].first) as usize)
    }

    /// A column's value of a task.
    #[inline]
    pub(super) fn get<T>(&self, row: u32, column: impl FnOnce(&Tasks, usize) -> T) -> T {
        let (piece, row) = self.place(row);
        column(&self.pieces[piece].tasks, row)
    }

    /// The arguments of a task; '' for none.
    ///
    /// # Errors
    /// They are on disk and cannot be read.
    pub(super) fn args(&self, row: u32) -> Result<String, ImportError> {
        self.get(row, |tasks, row| tasks.args.get(row).map(Cow::into_owned))
    }

    pub(super) fn start(&self, row: u32) -> i64 {
        self.get(row, |tasks, row| tasks.starts[row])
    }

    pub(super) fn finish(&self, row: u32) -> i64 {
        self.get(row, |tasks, row| tasks.finishes[row])
    }

    pub(super) fn set_finish(&mut self, row: u32, finish: i64) {
        let (piece, row) = self.place(row);
        self.pieces[piece].tasks.finishes[row] = finish;
    }

    pub(super) fn lane(&self, row: u32) -> i32 {
        self.get(row, |tasks, row| tasks.lanes[row])
    }

    pub(super) fn kind(&self, row: u32) -> i32 {
        self.get(row, |tasks, row| tasks.kinds[row])
    }

    pub(super) fn name(&self, row: u32) -> i32 {
        self.get(row, |tasks, row| tasks.names[row])
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
