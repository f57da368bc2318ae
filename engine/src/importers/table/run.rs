//! The run while its files are read: chunks of rows wait here for what is known only after the last row.
//!
//! Three things are known only at the end: the origin (the least start), the parents (a task may name one that comes
//! later) and the nesting on the lanes. So chunks wait here, accounted by the memory pool, and [`RunTables::finish`] moves
//! them into the run's builder. Links and messages are read after all tasks, and resolve their references at once.

use std::sync::Arc;

use datafusion::arrow::array::{Array, Int32Array, Int64Array};
use datafusion::arrow::compute::{max, min};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use tq_udfs::ticks::Tick;

use super::mapping::{Mapping, Origin, TaskKey};
use super::times::Clock;
use crate::cells::Values;
use crate::error::ImportError;
use crate::importers::importer::ImportContext;
use crate::tables::{self, Table};
use crate::trace::{LaneSpans, Location, NO_LANE, Nesting, Rows, RunBuilder, Source, Words, findings, nest};

/// ns since 1970 of the years 2000 and 2100: a least start between them is a date.
const DATES: std::ops::Range<i64> = 946_684_800_000_000_000..4_102_444_800_000_000_000;

/// A number that stands for no key, no position.
const NONE: i64 = -1;

/// Rows that wait.
pub(super) struct Chunk {
    pub(super) rows: usize,
    pub(super) given: Rows,
    pub(super) times: Vec<(&'static str, Int64Array, Clock)>,
    /// Of tasks: the lanes that they nest on.
    pub(super) lanes: Option<Lanes>,
    /// Of tasks: keys of `parent` and `stack_parent` in an index of tasks; -1 is NULL.
    pub(super) parents: Vec<(&'static str, TaskKey, Vec<i32>)>,
}

/// The keys of the column `location`.
#[derive(Debug, Clone)]
pub(super) enum Lanes {
    One(i32),
    Each(Int32Array),
}

impl Chunk {
    pub(super) fn new(table: Table, rows: usize) -> Chunk {
        Chunk { rows, given: Rows::of(table, rows), times: Vec::new(), lanes: None, parents: Vec::new() }
    }

    fn memory(&self) -> usize {
        let times = self.times.iter().map(|(_, times, _)| times.get_buffer_memory_size());
        let parents = self.parents.iter().map(|(.., keys)| keys.len() * size_of::<i32>());
        self.given.memory() + times.chain(parents).sum::<usize>()
    }

    fn time(&self, name: &str) -> Option<(&Int64Array, Clock)> {
        self.times.iter().find(|(column, ..)| *column == name).map(|(_, times, clock)| (times, *clock))
    }
}

/// The tasks by what refers to them.
#[derive(Default)]
pub(super) struct TaskIndex {
    words: Words,
    /// Of each word: the position of the first task of that key, [`NONE`], or [`AMBIGUOUS`].
    positions: Vec<i64>,
}

const AMBIGUOUS: i64 = -2;

/// What a reference leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference {
    Task(i64),
    Unknown,
    Ambiguous,
}

impl TaskIndex {
    /// The number of a key, whether a task has it or not.
    pub(super) fn key(&mut self, text: &str) -> i32 {
        let key = self.words.intern(text);
        if key as usize == self.positions.len() {
            self.positions.push(NONE);
        }
        key
    }

    /// Enters a task; `false` when another one had the key first.
    pub(super) fn enter(&mut self, text: &str, position: i64, unique: bool) -> bool {
        let key = self.key(text) as usize;
        let free = self.positions[key] == NONE;
        if free {
            self.positions[key] = position;
        } else if unique {
            self.positions[key] = AMBIGUOUS;
        }
        free
    }

    pub(super) fn find(&self, key: i32) -> Reference {
        match self.positions.get(key as usize) {
            Some(&AMBIGUOUS) => Reference::Ambiguous,
            Some(&position) if position >= 0 => Reference::Task(position),
            _ => Reference::Unknown,
        }
    }

    fn memory(&self) -> usize {
        self.words.memory() + self.positions.capacity() * size_of::<i64>()
    }
}

/// A location that some row names.
#[derive(Debug, Default)]
struct Known {
    /// Keys of what is said about locations.
    process: Option<i32>,
    clock: Option<i32>,
    kind: i32,
    /// Has a row of its own in a table of locations.
    listed: bool,
}

/// The run that is being read.
pub(super) struct RunTables {
    pub(super) builder: RunBuilder,
    pub(super) tick: Tick,
    /// Whether the mapping says the tick.
    is_tick_given: bool,
    /// The first timestamp met, ns since 1970.
    pub(super) epoch: Option<i64>,
    /// Tasks read so far.
    pub(super) tasks: i64,
    pub(super) ids: TaskIndex,
    pub(super) names: TaskIndex,
    /// Whether some task could have an id.
    pub(super) has_ids: bool,
    /// Whether some file told the unit of its times.
    pub(super) has_unit: bool,
    /// Whether something refers to tasks by name.
    pub(super) needs_names: bool,
    origin: Origin,
    chunks: Vec<Chunk>,
    location_words: Words,
    locations: Vec<Known>,
    /// What is said about locations: processes, clocks and kinds.
    attributes: Words,
    /// Bytes of the chunks, of the indexes and of the nesting.
    memory: MemoryReservation,
    indexed: usize,
    source: Source,
}

impl RunTables {
    pub(super) fn new(source: &Source, context: &ImportContext<'_>, mapping: &Mapping) -> RunTables {
        let mut builder = context.begin(source);
        builder.info.tick = Some(mapping.tick);
        RunTables {
            builder,
            tick: mapping.tick,
            is_tick_given: mapping.is_tick_given,
            epoch: None,
            tasks: 0,
            ids: TaskIndex::default(),
            names: TaskIndex::default(),
            has_ids: false,
            has_unit: false,
            needs_names: false,
            origin: mapping.origin,
            chunks: Vec::new(),
            location_words: Words::default(),
            locations: Vec::new(),
            attributes: Words::default(),
            memory: MemoryConsumer::new(format!("reading {}", source.path().display())).register(context.pool()),
            indexed: 0,
            source: source.clone(),
        }
    }

    /// Whether nothing was read yet and the tick of the run was not given.
    pub(super) fn may_count_in_picoseconds(&self) -> bool {
        self.tick != Tick::Picosecond && !self.is_tick_given && self.chunks.is_empty()
    }

    /// What the run counts in from its first row on.
    pub(super) fn count_in(&mut self, tick: Tick) {
        self.tick = tick;
        self.builder.info.tick = Some(tick);
    }

    /// Takes a chunk.
    pub(super) fn push(&mut self, chunk: Chunk) -> Result<(), ImportError> {
        let known = self.locations.capacity() * size_of::<Known>();
        let words = self.location_words.memory() + self.attributes.memory();
        let indexed = self.ids.memory() + self.names.memory() + words + known;
        self.reserve(chunk.memory() + indexed.saturating_sub(self.indexed))?;
        self.indexed = indexed;
        if chunk.given.table() == Table::Tasks {
            self.tasks += chunk.rows as i64;
        }
        self.chunks.push(chunk);
        Ok(())
    }

    /// Notes that a row names a location; the first row to do so tells its process and clock.
    pub(super) fn meet_location(&mut self, name: &str, process: Option<&str>, clock: Option<&str>, kind: &str) {
        let key = self.location_words.intern(name) as usize;
        if key == self.locations.len() {
            let mut attribute = |text: &str| self.attributes.intern(text);
            self.locations.push(Known {
                process: process.map(&mut attribute),
                clock: clock.map(&mut attribute),
                kind: attribute(kind),
                listed: false,
            });
        }
    }

    /// Notes that a location has a row of its own; `false` when it has one already.
    pub(super) fn list_location(&mut self, name: &str) -> bool {
        self.meet_location(name, None, None, "");
        let key = self.location_words.intern(name) as usize;
        !std::mem::replace(&mut self.locations[key].listed, true)
    }

    pub(super) fn index(&mut self, key: TaskKey) -> &mut TaskIndex {
        match key {
            TaskKey::Id => &mut self.ids,
            TaskKey::Name => &mut self.names,
        }
    }

    /// Counts a reference that leads nowhere. `left_out` when its row goes with it.
    pub(super) fn lost_reference(&mut self, reference: Reference, left_out: bool, example: impl FnOnce() -> String) {
        let finding = match reference {
            Reference::Task(_) => return,
            Reference::Unknown => findings::UNKNOWN_REFERENCE,
            Reference::Ambiguous => findings::AMBIGUOUS_REFERENCE,
        };
        match left_out {
            true => self.builder.stats.left_out(finding, 1, example),
            false => self.builder.stats.note(finding, 1, example),
        }
    }

    /// Moves everything into the builder.
    pub(super) fn finish(mut self) -> Result<RunBuilder, ImportError> {
        let (numbers, instants) = self.origins()?;
        let nesting = self.nesting()?;
        let mut position = 0;
        for mut chunk in std::mem::take(&mut self.chunks) {
            let bytes = chunk.memory();
            if chunk.given.table() == Table::Tasks {
                self.stand(&mut chunk, position, nesting.as_ref());
                position += chunk.rows;
            }
            let Chunk { mut given, times, .. } = chunk;
            for (name, times, clock) in times {
                let origin = match clock {
                    Clock::Number => numbers,
                    Clock::Instant => instants,
                };
                let times = since(times, origin).ok_or_else(|| ImportError::Unusable {
                    path: self.source.path().to_owned(),
                    what: format!(
                        "`{name}` lies so far behind the first time that the difference does not fit 64 bits"
                    ),
                    hint: Some("--option table.origin=0".to_owned()),
                })?;
                given.set_named(name, Values::Each(Arc::new(times)));
            }
            self.memory.shrink(bytes.min(self.memory.size()));
            self.builder.append(given)?;
        }
        self.unlisted_locations()?;
        Ok(self.builder)
    }

    /// Rows for the locations that have none of their own, in the order in which they were met.
    fn unlisted_locations(&mut self) -> Result<(), ImportError> {
        let attribute = |key: i32| self.attributes.word(key);
        (0..).zip(&self.locations).filter(|(_, known)| !known.listed).try_for_each(|(key, known)| {
            self.builder.location(&Location {
                location: self.location_words.word(key),
                kind: attribute(known.kind),
                process: known.process.map(attribute),
                role: "compute",
                clock: known.clock.map(attribute),
                ..Location::default()
            })
        })
    }

    /// Gives back memory that was asked for.
    pub(super) fn release(&mut self, bytes: usize) {
        self.memory.shrink(bytes.min(self.memory.size()));
    }

    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), ImportError> {
        self.memory
            .try_grow(bytes)
            .map_err(|error| ImportError::Memory { path: self.source.path().to_owned(), what: error.strip_backtrace() })
    }

    /// What is subtracted from numbers and from timestamps, in ticks; and what the run says of its clock.
    fn origins(&mut self) -> Result<(i64, i64), ImportError> {
        let per_nanosecond = self.tick.per_nanosecond();
        let has_tasks = self.tasks > 0;
        let least = |clock: Clock, tasks_only: bool| {
            let of_table = |chunk: &&Chunk| !tasks_only || chunk.given.table() == Table::Tasks;
            let times = self.chunks.iter().filter(of_table).flat_map(|chunk| &chunk.times);
            let of_clock = times.filter(|(name, _, of)| *of == clock && !matches!(*name, "duration"));
            of_clock.filter_map(|(_, times, _)| min(times)).min()
        };
        // Tasks say where a run begins, in whatever way they tell time; other tables may tell it in the other way.
        let (least_number, least_instant) = (least(Clock::Number, has_tasks), least(Clock::Instant, has_tasks));
        let any_number = least_number.or_else(|| least(Clock::Number, false));
        let any_instant = least_instant.or_else(|| least(Clock::Instant, false));
        let is_date = |ticks: i64| DATES.contains(&(ticks / per_nanosecond));
        let epoch = self.epoch.unwrap_or(0);
        let nanoseconds = |ticks: i64| ticks.div_euclid(per_nanosecond);
        let too_far = || ImportError::Unusable {
            path: self.source.path().to_owned(),
            what: "timestamps as ticks since 1970 do not fit 64 bits".to_owned(),
            hint: Some("--option table.origin=min".to_owned()),
        };
        let numbers = match (self.origin, any_number) {
            (Origin::Min, Some(least)) => least,
            (Origin::Auto, Some(least)) if is_date(least) => least,
            _ => 0,
        };
        let instants = match (self.origin, any_instant) {
            (_, None) => 0,
            (Origin::Auto | Origin::Min, Some(least)) => least,
            (Origin::Zero, Some(_)) => epoch.checked_mul(-per_nanosecond).ok_or_else(too_far)?,
        };
        let info = &mut self.builder.info;
        if let (Some(number), Some(_), Origin::Auto) = (any_number, any_instant, self.origin)
            && is_date(number)
        {
            // Both count from 1970: they share one origin.
            let of_instants = least_instant.map(|least| epoch.saturating_add(nanoseconds(least)));
            let origin = of_instants.into_iter().chain(least_number.map(nanoseconds)).min().unwrap_or(epoch);
            (info.origin, info.started_at) = (Some(origin), Some(origin));
            let since_epoch = origin.checked_sub(epoch).and_then(|ns| ns.checked_mul(per_nanosecond));
            let since_1970 = origin.checked_mul(per_nanosecond);
            return since_1970.zip(since_epoch).ok_or_else(too_far);
        }
        match (least_instant, least_number) {
            (Some(_), _) => {
                let origin = epoch.saturating_add(nanoseconds(instants));
                (info.origin, info.started_at) = (Some(origin), Some(origin));
            }
            (None, Some(number)) => {
                info.origin = Some(nanoseconds(numbers));
                info.started_at = is_date(number).then_some(nanoseconds(numbers)).filter(|&origin| origin > 0);
            }
            (None, None) => {}
        }
        Ok((numbers, instants))
    }

    /// The nesting of the tasks on their lanes; `None` when none has a lane or the trace itself told.
    fn nesting(&mut self) -> Result<Option<Nesting>, ImportError> {
        let tells = |chunk: &Chunk| {
            chunk.given.has(tables::Tasks::depth) && chunk.parents.iter().any(|(name, ..)| *name == "stack_parent")
        };
        let tasks = || self.chunks.iter().filter(|chunk| chunk.given.table() == Table::Tasks);
        if tasks().all(|chunk| chunk.lanes.is_none() || tells(chunk)) {
            return Ok(None);
        }
        let count = self.tasks as usize;
        // Lane, start, finish, the order and the answer.
        let bytes = count * (2 * size_of::<i32>() + 4 * size_of::<i64>());
        self.reserve(bytes)?;
        let (mut lanes, mut starts, mut finishes) =
            (Vec::with_capacity(count), Vec::with_capacity(count), Vec::with_capacity(count));
        for chunk in self.chunks.iter().filter(|chunk| chunk.given.table() == Table::Tasks) {
            let (start, finish) = (chunk.time("start"), chunk.time("finish"));
            for row in 0..chunk.rows {
                let start = start.and_then(|(times, _)| times.is_valid(row).then(|| times.value(row)));
                let finish = finish.and_then(|(times, _)| times.is_valid(row).then(|| times.value(row)));
                let lane = match &chunk.lanes {
                    Some(Lanes::One(lane)) => *lane,
                    Some(Lanes::Each(keys)) if keys.is_valid(row) => keys.value(row),
                    _ => NO_LANE,
                };
                lanes.push(start.map_or(NO_LANE, |_| lane));
                starts.push(start.unwrap_or(0));
                finishes.push(finish.unwrap_or(i64::MAX));
            }
        }
        let nesting = nest(LaneSpans { lanes: &lanes, starts: &starts, finishes: &finishes });
        if let Some((one, other)) = nesting.example {
            let location = self.builder.words(tables::Tasks::location).word(lanes[one]).to_owned();
            self.builder.stats.note(findings::OVERLAPPING_TASKS, nesting.overlapping, || {
                format!("tasks {one} and {other} on `{location}` overlap, neither encloses the other: no depth there")
            });
        }
        self.memory.shrink(bytes.min(self.memory.size()));
        Ok(Some(nesting))
    }

    /// Gives the tasks of a chunk their parents and depths.
    fn stand(&mut self, chunk: &mut Chunk, first: usize, nesting: Option<&Nesting>) {
        let mut declared: Option<Vec<Option<i64>>> = None;
        let mut stack: Option<Vec<Option<i64>>> = None;
        for (name, key_of, keys) in std::mem::take(&mut chunk.parents) {
            let mut positions = Vec::with_capacity(keys.len());
            for (row, key) in keys.into_iter().enumerate() {
                positions.push(match usize::try_from(key).map(|_| self.index(key_of).find(key)) {
                    Err(_) => None,
                    Ok(Reference::Task(position)) => Some(position),
                    Ok(lost) => {
                        let text = self.index(key_of).words.word(key).to_owned();
                        let task = first + row;
                        self.lost_reference(lost, false, || {
                            format!("task {task}: its {name} `{text}` is no task, or several")
                        });
                        None
                    }
                });
            }
            *(if name == "parent" { &mut declared } else { &mut stack }) = Some(positions);
        }
        if let Some(nesting) = nesting {
            let tasks = first..first + chunk.rows;
            if stack.is_none() && chunk.lanes.is_some() {
                stack = Some(
                    nesting.parents[tasks.clone()].iter().map(|&parent| (parent >= 0).then_some(parent)).collect(),
                );
            }
            if chunk.lanes.is_some() && !chunk.given.has(tables::Tasks::depth) {
                let depths = nesting.depths[tasks].iter().map(|&depth| (depth >= 0).then_some(i64::from(depth)));
                chunk.given.set(tables::Tasks::depth, depths.collect::<Int64Array>());
            }
        }
        let parents = match (declared, &stack) {
            (Some(declared), Some(stack)) => {
                Some(declared.into_iter().zip(stack).map(|(declared, stack)| declared.or(*stack)).collect())
            }
            (declared, stack) => declared.or_else(|| stack.clone()),
        };
        for (column, positions) in [(tables::Tasks::parent, parents), (tables::Tasks::stack_parent, stack)] {
            if let Some(positions) = positions {
                chunk.given.set(column, positions);
            }
        }
    }
}

/// Times since an origin; `None` when one lies too far behind it. Saturating before it: a finish there lies before its start,
/// which is counted.
fn since(times: Int64Array, origin: i64) -> Option<Int64Array> {
    let Some(last) = max(&times).filter(|_| origin != 0) else { return Some(times) };
    if last > origin {
        last.checked_sub(origin)?;
    }
    Some(match times.unary_mut(|time| time.saturating_sub(origin)) {
        Ok(moved) => moved,
        Err(shared) => shared.unary(|time| time.saturating_sub(origin)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_equal_ids_wins_and_equal_names_are_ambiguous() {
        let mut index = TaskIndex::default();
        let later = index.key("later");
        assert_eq!(index.find(later), Reference::Unknown);
        assert!(index.enter("a", 0, false));
        assert!(!index.enter("a", 1, false));
        assert!(index.enter("later", 2, true));
        let a = index.key("a");
        assert_eq!((index.find(a), index.find(later)), (Reference::Task(0), Reference::Task(2)));
        assert!(!index.enter("later", 3, true));
        assert_eq!(index.find(later), Reference::Ambiguous);
    }
}
