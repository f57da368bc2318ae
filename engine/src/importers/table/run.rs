//! The run while its files are read: chunks of rows wait here for what is known only after the last row.
//!
//! Three things are known only at the end: the origin (the least start), the parents (a task may name one that comes
//! later) and the nesting on the lanes. So chunks wait here, accounted by the memory pool, or, while `tq import` is short of memory, on
//! disk, and [`RunTables::finish`] moves them into the run's builder. Links and messages are read after all tasks, and resolve their
//! references at once.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, new_empty_array};
use datafusion::arrow::compute::{max, min};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use tq_udfs::ticks::Tick;

use super::mapping::{Mapping, Origin, TaskKey};
use super::times::Clock;
use crate::cells::Values;
use crate::error::ImportError;
use crate::importers::importer::ImportContext;
use crate::tables::{self, Table};
use crate::trace::{
    LaneSpans, Location, NO_LANE, NestingOnDisk, Overlap, Room, Rows, RunBuilder, Source, Spill, SpilledColumns,
    Standing, Words, findings, nest,
};

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

/// A chunk, in memory or on disk.
struct Waiting {
    /// On disk, its columns are empty here.
    chunk: Chunk,
    away: Option<SpilledColumns>,
}

/// The keys of the column `location`.
#[derive(Debug, Clone)]
pub(super) enum Lanes {
    One(i32),
    Each(Int32Array),
}

impl Lanes {
    /// The same keys for a column of any table.
    pub(super) fn values(self) -> Values {
        match self {
            Lanes::One(key) => Values::Same(i64::from(key)),
            Lanes::Each(keys) => Values::Each(Arc::new(keys)),
        }
    }
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

    /// Hands each column with a value per row to `change`, and takes what it answers in its place.
    fn try_map(
        &mut self,
        rows: usize,
        mut change: impl FnMut(&ArrayRef) -> Result<ArrayRef, ArrowError>,
    ) -> Result<(), ArrowError> {
        self.given.try_map(rows, &mut change)?;
        for (_, times, _) in &mut self.times {
            *times = change(&(Arc::new(times.clone()) as ArrayRef))?.as_primitive::<Int64Type>().clone();
        }
        if let Some(Lanes::Each(keys)) = &mut self.lanes {
            *keys = change(&(Arc::new(keys.clone()) as ArrayRef))?.as_primitive().clone();
        }
        for (.., keys) in &mut self.parents {
            let of_rows: ArrayRef = Arc::new(Int32Array::from(std::mem::take(keys)));
            *keys = change(&of_rows)?.as_primitive::<Int32Type>().values().to_vec();
        }
        Ok(())
    }

    fn is_of_tasks(&self) -> bool {
        self.given.table() == Table::Tasks
    }

    /// Whether the trace itself tells how its tasks are nested.
    fn tells_nesting(&self) -> bool {
        self.given.has(tables::Tasks::depth) && self.parents.iter().any(|(name, ..)| *name == "stack_parent")
    }

    /// Lane, start and finish of each task, as nesting wants them.
    fn spans(&self) -> impl Iterator<Item = (i32, i64, i64)> {
        let (start, finish) = (self.time("start"), self.time("finish"));
        (0..self.rows).map(move |row| {
            let start = start.and_then(|(times, _)| times.is_valid(row).then(|| times.value(row)));
            let finish = finish.and_then(|(times, _)| times.is_valid(row).then(|| times.value(row)));
            let lane = match &self.lanes {
                Some(Lanes::One(lane)) => *lane,
                Some(Lanes::Each(keys)) if keys.is_valid(row) => keys.value(row),
                _ => NO_LANE,
            };
            (start.map_or(NO_LANE, |_| lane), start.unwrap_or(0), finish.unwrap_or(i64::MAX))
        })
    }

    fn time(&self, name: &str) -> Option<(&Int64Array, Clock)> {
        self.times.iter().find(|(column, ..)| *column == name).map(|(_, times, clock)| (times, *clock))
    }
}

impl Waiting {
    /// Writes the columns of a chunk in memory to disk; the bytes that they no longer hold.
    fn put_away(&mut self, spill: &Spill) -> Result<usize, ImportError> {
        let before = self.chunk.memory();
        let (rows, mut columns) = (self.chunk.rows, Vec::new());
        let taken = self.chunk.try_map(0, |column| {
            columns.push(Arc::clone(column));
            Ok(new_empty_array(column.data_type()))
        });
        taken.map_err(|error| spill.internal(error))?;
        self.away = Some(SpilledColumns::write(spill, columns, |_, _| false, rows)?);
        Ok(before - self.chunk.memory().min(before))
    }

    /// The chunk with its columns.
    fn take_back(mut self, spill: Option<&Arc<Spill>>) -> Result<Chunk, ImportError> {
        self.read(spill)?;
        Ok(self.chunk)
    }

    /// Shows the chunk with its columns, and forgets them again where they are on disk.
    fn with_columns(
        &mut self,
        spill: Option<&Arc<Spill>>,
        look: impl FnOnce(&Chunk) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        self.read(spill)?;
        look(&self.chunk)?;
        if let (Some(_), Some(spill)) = (&self.away, spill) {
            let emptied = self.chunk.try_map(0, |column| Ok(new_empty_array(column.data_type())));
            emptied.map_err(|error| spill.internal(error))?;
        }
        Ok(())
    }

    fn read(&mut self, spill: Option<&Arc<Spill>>) -> Result<(), ImportError> {
        let (Some(away), Some(spill)) = (&self.away, spill) else { return Ok(()) };
        let mut columns = away.read(spill)?.into_iter();
        let missing = || ArrowError::IpcError("a column is missing".to_owned());
        let given = self.chunk.try_map(self.chunk.rows, |_| columns.next().ok_or_else(missing));
        given.map_err(|error| spill.internal(error))
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
    chunks: Vec<Waiting>,
    /// The least time of each clock, of all tables and of tasks.
    least: [[Option<i64>; 2]; 2],
    /// Whether the tasks of some chunk have lanes on which nobody says how they are nested.
    is_to_nest: bool,
    room: Room,
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
            least: [[None; 2]; 2],
            is_to_nest: false,
            room: Room::new(source.path(), context.budget()),
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
        let is_task = chunk.is_of_tasks();
        if is_task {
            self.tasks += chunk.rows as i64;
            self.is_to_nest |= chunk.lanes.is_some() && !chunk.tells_nesting();
        }
        for (name, times, clock) in &chunk.times {
            let Some(time) = min(times).filter(|_| *name != "duration") else { continue };
            for least in &mut self.least[*clock as usize][..=usize::from(is_task)] {
                *least = Some(least.map_or(time, |least| least.min(time)));
            }
        }
        self.chunks.push(Waiting { chunk, away: None });
        match self.room.short().cloned() {
            Some(spill) => self.put_away(&spill),
            None => Ok(()),
        }
    }

    /// Writes all chunks to disk.
    fn put_away(&mut self, spill: &Spill) -> Result<(), ImportError> {
        let mut freed = 0;
        for chunk in self.chunks.iter_mut().rev().take_while(|chunk| chunk.away.is_none()) {
            freed += chunk.put_away(spill)?;
        }
        self.release(freed);
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
        let mut standing = self.nesting()?;
        let mut position = 0;
        for waiting in std::mem::take(&mut self.chunks) {
            let bytes = waiting.chunk.memory();
            let mut chunk = waiting.take_back(self.room.disk())?;
            if chunk.is_of_tasks() {
                self.stand(&mut chunk, position, standing.as_mut())?;
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

    /// Where chunks are kept.
    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// Gives back memory that was asked for.
    pub(super) fn release(&mut self, bytes: usize) {
        self.memory.shrink(bytes.min(self.memory.size()));
    }

    /// Asks for memory; where there is none, chunks go to disk, if there is one for them.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), ImportError> {
        if self.memory.try_grow(bytes).is_ok() {
            return Ok(());
        }
        if let Some(spill) = self.room.disk().cloned() {
            self.put_away(&spill)?;
        }
        self.memory.try_grow(bytes).map_err(|error| self.no_memory(&error))
    }

    fn no_memory(&self, error: &DataFusionError) -> ImportError {
        ImportError::Memory { path: self.source.path().to_owned(), what: error.strip_backtrace() }
    }

    /// What is subtracted from numbers and from timestamps, in ticks; and what the run says of its clock.
    fn origins(&mut self) -> Result<(i64, i64), ImportError> {
        let per_nanosecond = self.tick.per_nanosecond();
        let has_tasks = self.tasks > 0;
        let least = |clock: Clock, tasks_only: bool| self.least[clock as usize][usize::from(tasks_only)];
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
    fn nesting(&mut self) -> Result<Option<Standing>, ImportError> {
        if !self.is_to_nest {
            return Ok(None);
        }
        // Lane, start, finish, the order and the answer.
        let bytes = self.tasks as usize * (2 * size_of::<i32>() + 4 * size_of::<i64>());
        let is_away = self.chunks.iter().any(|waiting| waiting.away.is_some());
        let granted = if is_away { None } else { Some(self.memory.try_grow(bytes)) };
        let standing = match granted {
            Some(Ok(())) => {
                let standing = self.nesting_in_memory();
                self.release(bytes);
                standing
            }
            Some(Err(error)) if self.room.disk().is_none() => return Err(self.no_memory(&error)),
            Some(Err(_)) | None => self.nesting_on_disk()?,
        };
        if let Some(Overlap { lane, tasks: (one, other) }) = standing.example {
            let location = self.builder.words(tables::Tasks::location).word(lane).to_owned();
            self.builder.stats.note(findings::OVERLAPPING_TASKS, standing.overlapping, || {
                format!("tasks {one} and {other} on `{location}` overlap, neither encloses the other: no depth there")
            });
        }
        Ok(Some(standing))
    }

    fn nesting_in_memory(&self) -> Standing {
        let count = self.tasks as usize;
        let (mut lanes, mut starts, mut finishes) =
            (Vec::with_capacity(count), Vec::with_capacity(count), Vec::with_capacity(count));
        let chunks = self.chunks.iter().map(|waiting| &waiting.chunk);
        for (lane, start, finish) in chunks.filter(|chunk| chunk.is_of_tasks()).flat_map(Chunk::spans) {
            lanes.push(lane);
            starts.push(start);
            finishes.push(finish);
        }
        Standing::held(nest(LaneSpans { lanes: &lanes, starts: &starts, finishes: &finishes }), &lanes)
    }

    fn nesting_on_disk(&mut self) -> Result<Standing, ImportError> {
        let mut nesting = NestingOnDisk::new(&self.room);
        let chunks = self.chunks.iter_mut().filter(|waiting| waiting.chunk.is_of_tasks());
        for waiting in chunks {
            waiting.with_columns(self.room.disk(), |chunk| {
                chunk.spans().try_for_each(|(lane, start, finish)| nesting.push(lane, start, finish))
            })?;
        }
        nesting.finish()
    }

    /// Gives the tasks of a chunk their parents and depths.
    fn stand(&mut self, chunk: &mut Chunk, first: usize, standing: Option<&mut Standing>) -> Result<(), ImportError> {
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
        if let Some(standing) = standing {
            let (parents, depths) = standing.next(chunk.rows)?;
            if stack.is_none() && chunk.lanes.is_some() {
                stack = Some(parents.iter().map(|&parent| (parent >= 0).then_some(parent)).collect());
            }
            if chunk.lanes.is_some() && !chunk.given.has(tables::Tasks::depth) {
                let depths = depths.iter().map(|&depth| (depth >= 0).then_some(i64::from(depth)));
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
        Ok(())
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
