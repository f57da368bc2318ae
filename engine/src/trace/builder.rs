//! Build: records of any format become the Arrow columns of [`Table`], in chunks, accounted by the memory pool.
//!
//! Life of the data: an importer appends chunks of any size; a column of a chunk is an array whose buffers move in without
//! a copy, one value for all rows, or absent (NULL). Constants and absent columns share one buffer between all chunks, so
//! a trace without arguments pays nothing for `args`. Words arrive as keys of this run's dictionaries. `finish` attaches
//! the dictionaries and cuts the chunks into batches of [`ROWS_PER_BATCH`] rows, again without a copy, except for
//! dictionaries far larger than a batch (see [`super::assemble`] and [`super::dictionary`]).
//!
//! Invariants: positions follow the order of appending; a task whose finish lies before its start keeps its row with a
//! NULL finish and is counted; every reference to a task is a position within the run until `finish` adds the run's base.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, Int64Array, StringArray, StringBuilder, new_null_array,
};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryReservation;
use tq_udfs::canonical::canonical_column;

use super::assemble::{self, Backwards, Chunk, ROWS_PER_BATCH, WordColumn, assemble, complete_spans};
use super::budget::Budget;
use super::findings;
use super::identity;
use super::on_disk::{OnDisk, Waiting};
use super::reach;
use super::rows::Rows;
use super::run::{Run, RunInfo, first_identity};
use super::spill::Spill;
use super::stats::Stats;
use crate::cells::kind::Word;
use crate::cells::{Cells, Values};
use crate::error::ImportError;
use crate::tables::{Column, ColumnType, Locations, Place, Table, Tasks};
use crate::words::Words;

/// The rows of a constant column in a table that has no more.
const FEW_ROWS: usize = 32;
/// So many bytes of chunks go to disk together.
const WORTH_SPILLING: usize = if cfg!(test) { 1 } else { 1 << 20 };

/// Builds the tables of one run.
pub struct RunBuilder {
    /// What the trace says about itself.
    pub info: RunInfo,
    /// Findings on the way.
    pub stats: Stats,
    source: PathBuf,
    run_number: i64,
    tables: BTreeMap<Table, TableBuilder>,
    /// Locations that were given one by one and are no chunk yet.
    locations: WaitingLocations,
    memory: MemoryReservation,
    /// Where chunks wait, when memory is short.
    spill: Option<Arc<Spill>>,
}

/// Rows of `locations` as columns, so that a million of them are not a million arrays of one value.
#[derive(Default)]
struct WaitingLocations {
    locations: Vec<i32>,
    parents: Vec<Option<i32>>,
    kinds: Vec<i32>,
    names: StringBuilder,
    processes: Vec<Option<i32>>,
    sort_indexes: Vec<i64>,
    roles: Vec<i32>,
    clocks: Vec<Option<i32>>,
    args: StringBuilder,
}

/// One of the runs that a builder holds one after the other (see [`RunBuilder::finish_in_parts`]).
#[derive(Default)]
pub struct Part {
    /// What the trace says about this run.
    pub info: RunInfo,
    /// Findings of this run.
    pub stats: Stats,
    /// How many of the rows of each table are its own, and how many of those came from records of the trace.
    pub rows: Vec<(Table, usize, u64)>,
}

/// What a column of a chunk adds to memory.
#[derive(Default)]
struct Bytes {
    /// Bytes of the chunk alone.
    own: usize,
    /// Bytes that chunks share.
    shared: usize,
}

#[derive(Default)]
struct TableBuilder {
    rows: u64,
    /// Rows that did not come from records of the trace (see [`RunBuilder::append_derived`]).
    derived: u64,
    words: BTreeMap<&'static str, Words>,
    /// Bytes of the words that were asked of the pool.
    words_charged: usize,
    /// By column: the array that NULL columns are slices of, and the last constant with its array.
    shared: BTreeMap<&'static str, Shared>,
    chunks: Vec<Waiting>,
    /// How many of the first chunks are on disk, and their rows.
    spilled: (usize, u64),
    /// Bytes asked of the pool for the columns of the other chunks.
    held: usize,
    /// What was noticed of the tasks on disk.
    backwards: Backwards,
}

/// Arrays of one value in each row. A chunk's column is a slice of them, so a constant costs memory once.
#[derive(Default)]
struct Shared {
    nulls: Option<ArrayRef>,
    constant: Option<(i64, ArrayRef)>,
}

impl Shared {
    fn arrays(&self) -> impl Iterator<Item = &ArrayRef> {
        self.nulls.iter().chain(self.constant.iter().map(|(_, array)| array))
    }
}

/// Whether a column is the beginning of an array that other chunks share.
fn is_slice(column: &ArrayRef, whole: &ArrayRef) -> bool {
    let first = |array: &ArrayRef| array.to_data().buffers().first().map(|buffer| buffer.as_ptr());
    column.offset() == whole.offset() && first(column) == first(whole)
}

impl RunBuilder {
    /// A builder for a run that the calling program makes itself instead of reading it from a file; `source` describes its origin.
    /// The session that takes the run numbers it and accounts for its memory in its own pool.
    pub fn in_memory(source: &str) -> RunBuilder {
        RunBuilder::new(Path::new(source), 0, &Budget::unlimited())
    }

    /// A builder for one run of the trace at `source`, within that budget.
    pub(crate) fn new(source: &Path, run_number: i64, budget: &Budget) -> RunBuilder {
        RunBuilder {
            info: RunInfo { time_unit: "ns", ..RunInfo::default() },
            stats: Stats::default(),
            source: source.to_owned(),
            run_number,
            tables: BTreeMap::new(),
            locations: WaitingLocations::default(),
            memory: budget.hold(format!("tables of {}", source.display())),
            spill: budget.spill().cloned(),
        }
    }

    /// The file or directory of the trace.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// The key of a word in a column, `Tasks::kind` for example. Every column of every table has its own dictionary:
    /// the `location`s of different tables, `messages.source` and `messages.target` share none.
    pub fn word(&mut self, column: Place<Word>, word: &str) -> i32 {
        self.words(column).intern(word)
    }

    /// The dictionary of a column, for importers that intern many words.
    pub fn words(&mut self, column: Place<Word>) -> &mut Words {
        self.words_of(column.table, column.name)
    }

    /// The dictionary of a column that is known by its name alone.
    pub(crate) fn words_of(&mut self, table: Table, column: &'static str) -> &mut Words {
        self.tables.entry(table).or_default().words.entry(column).or_default()
    }

    /// Number of rows appended to a table so far: the position of the next one.
    pub fn rows(&self, table: Table) -> u64 {
        let waiting = if table == Table::Locations { self.locations.locations.len() as u64 } else { 0 };
        self.tables.get(&table).map_or(0, |table| table.rows) + waiting
    }

    /// Appends rows to a table: `tables::Tasks { name: keys.into(), ..Default::default() }` or [`Rows`]. Columns that are not given
    /// are NULL; `run`, `task` and `message` (identity of a message) are never given. `tasks.duration` is computed from start
    /// and finish unless given. References to tasks (`parent`, `source`, `task` …) are positions within the run. Times beyond
    /// ±2⁶² become NULL and are counted.
    ///
    /// # Errors
    /// [`ImportError::Memory`] when the pool is exhausted; [`ImportError::Internal`] when columns differ in length, or when none
    /// has a value per row and the number of rows is not given.
    pub fn append(&mut self, rows: impl Into<Rows>) -> Result<(), ImportError> {
        self.append_rows(rows.into()).map(|_| ())
    }

    /// Like [`RunBuilder::append`], for rows that do not come from a record of their own (locations, links that a reader
    /// infers), so that records and rows still add up.
    ///
    /// # Errors
    /// As [`RunBuilder::append`].
    pub fn append_derived(&mut self, rows: impl Into<Rows>) -> Result<(), ImportError> {
        let rows = rows.into();
        let table = rows.table;
        let count = self.append_rows(rows)?;
        self.tables.entry(table).or_default().derived += count as u64;
        Ok(())
    }

    /// Appends rows; how many they were.
    fn append_rows(&mut self, given: Rows) -> Result<usize, ImportError> {
        let table = given.table;
        if table == Table::Locations {
            // Locations that were given one by one before these come first.
            self.append_waiting_locations()?;
        }
        let Some(rows) = given.count() else {
            return Err(self.internal(format!("rows for {table}: none of their columns says how many they are")));
        };
        if rows == 0 {
            return Ok(0);
        }
        let durations_given = given.has(Tasks::duration);
        let spec = table.spec();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(spec.columns.len());
        // Bytes of the chunk alone, and of what it shares with others.
        let (mut own, mut shared) = (0, 0);
        for (column, values) in spec.columns.iter().zip(given.columns) {
            let (array, bytes) = self.array(table, column, rows, values)?;
            own += bytes.own;
            shared += bytes.shared;
            columns.push(match column.column_type {
                ColumnType::Time => self.within_reach(table, column.name, array),
                _ => array,
            });
        }
        // What assembling will add.
        if table == Table::Tasks && !durations_given {
            own += rows * size_of::<i64>();
        }
        // Identities that are filled in later cost nothing here, but how many rows come is not known yet.
        if table.has_identity() {
            own += rows * size_of::<i64>();
        }
        self.charge_words()?;
        self.charge(own + shared)?;
        let builder = self.tables.entry(table).or_default();
        builder.rows += rows as u64;
        builder.held += own;
        builder.chunks.push(Waiting::held(rows, columns));
        if self.spill.as_ref().is_some_and(|spill| spill.is_due()) {
            self.spill_all(WORTH_SPILLING)?;
        }
        Ok(rows)
    }

    /// Writes the chunks of all tables that hold at least `least` bytes to disk, where there is one for them.
    fn spill_all(&mut self, least: usize) -> Result<(), ImportError> {
        let Some(spill) = self.spill.clone() else { return Ok(()) };
        for (table, builder) in self.tables.iter_mut().filter(|(_, builder)| builder.held > 0 && builder.held >= least)
        {
            builder.spill(*table, &spill)?;
            self.memory.shrink(std::mem::take(&mut builder.held).min(self.memory.size()));
        }
        Ok(())
    }

    /// Asks the pool for the words that came since the last time, of all columns: importers intern them by themselves.
    ///
    /// # Errors
    /// [`ImportError::Memory`] when the pool is exhausted.
    pub(crate) fn charge_words(&mut self) -> Result<(), ImportError> {
        let mut grown = 0;
        for builder in self.tables.values_mut() {
            let words: usize = builder.words.values().map(Words::memory).sum();
            grown += words.saturating_sub(builder.words_charged);
            builder.words_charged = words.max(builder.words_charged);
        }
        self.charge(grown)
    }

    /// Asks the pool; where it has no more, chunks go to disk first, if there is one for them.
    fn charge(&mut self, bytes: usize) -> Result<(), ImportError> {
        if self.memory.try_grow(bytes).is_ok() {
            return Ok(());
        }
        self.spill_all(0)?;
        self.memory
            .try_grow(bytes)
            .map_err(|error| ImportError::Memory { path: self.source.clone(), what: error.strip_backtrace() })
    }

    /// Appends one location. `parent`, `process` and `clock` may be absent.
    ///
    /// # Errors
    /// As [`RunBuilder::append`].
    pub fn location(&mut self, location: &Location<'_>) -> Result<(), ImportError> {
        let place = self.rows(Table::Locations) as i64;
        let mut key = |column: Place<Word>, word: Option<&str>| word.map(|word| self.word(column, word));
        let parent = key(Locations::parent, location.parent);
        let (process, clock) = (key(Locations::process, location.process), key(Locations::clock, location.clock));
        let name = self.word(Locations::location, location.location);
        let (kind, role) = (self.word(Locations::kind, location.kind), self.word(Locations::role, location.role));
        let waiting = &mut self.locations;
        waiting.locations.push(name);
        waiting.parents.push(parent);
        waiting.kinds.push(kind);
        waiting.names.append_option(location.name);
        waiting.processes.push(process);
        waiting.sort_indexes.push(location.sort_index.unwrap_or(place));
        waiting.roles.push(role);
        waiting.clocks.push(clock);
        waiting.args.append_option(location.args);
        if waiting.locations.len() < ROWS_PER_BATCH { Ok(()) } else { self.append_waiting_locations() }
    }

    /// Makes a chunk of the locations that were given one by one.
    fn append_waiting_locations(&mut self) -> Result<(), ImportError> {
        let mut waiting = std::mem::take(&mut self.locations);
        if waiting.locations.is_empty() {
            return Ok(());
        }
        self.append_derived(Locations {
            location: waiting.locations.into(),
            parent: waiting.parents.into(),
            kind: Cells::one_or_many(waiting.kinds),
            name: waiting.names.finish().into(),
            process: waiting.processes.into(),
            sort_index: waiting.sort_indexes.into(),
            role: Cells::one_or_many(waiting.roles),
            clock: waiting.clocks.into(),
            args: waiting.args.finish().into(),
        })
    }

    /// Assembles the tables on up to `threads` threads and checks that records and rows add up.
    ///
    /// # Errors
    /// [`ImportError::Internal`] when a key has no word; [`ImportError::Memory`] when the pool is exhausted.
    pub fn finish(mut self, threads: usize) -> Result<Run, ImportError> {
        self.append_waiting_locations()?;
        if self.spill.as_ref().is_some_and(|spill| spill.is_due()) {
            self.spill_all(1)?;
        }
        let mut rows_from_records = 0;
        let mut identities_later = false;
        let mut tables = BTreeMap::new();
        let mut on_disk = BTreeMap::new();
        let first = first_identity(self.run_number);
        for (table, mut builder) in std::mem::take(&mut self.tables) {
            rows_from_records += builder.rows - builder.derived;
            if let Some(spill) = self.spill.as_ref().filter(|_| builder.spilled.0 > 0) {
                builder.spill(table, spill)?;
                self.memory.shrink(builder.held.min(self.memory.size()));
                note_backwards(&mut self.stats, &builder.backwards);
                let waiting = builder
                    .into_parts(table, first, false)
                    .map(|(chunks, shared)| OnDisk::new(chunks, shared, spill, self.memory.new_empty()))
                    .map_err(|error| ImportError::internal(&self.source, error))?;
                on_disk.insert(table, waiting);
                continue;
            }
            identities_later |= identity::is_later(table, builder.rows);
            let assembled = builder
                .into_parts(table, first, true)
                .map_err(DataFusionError::from)
                .and_then(|(chunks, shared)| {
                    let held = |mut chunk: Waiting| {
                        Some(Chunk { rows: chunk.rows, columns: std::mem::take(chunk.columns()?) })
                    };
                    assemble(chunks.into_iter().filter_map(held).collect(), &shared, threads)
                })
                .map_err(|error| ImportError::internal(&self.source, error))?;
            self.charge(assembled.copied)?;
            note_backwards(&mut self.stats, &assembled.backwards);
            tables.insert(table, assembled.batches);
        }
        Ok(Run {
            info: self.info,
            stats: self.stats.close(rows_from_records),
            source: self.source,
            run_number: self.run_number,
            tables,
            on_disk,
            memory: self.memory,
            identities_later,
            stored: None,
        })
    }

    /// Like [`RunBuilder::finish`], for a trace of many small runs whose rows were appended one run after the other: the runs
    /// share dictionaries and buffers, so that a run of twenty rows costs twenty rows and not a set of tables. References to
    /// tasks are positions within their run. The builder's own `stats` belong to the first run, its `info` to none.
    ///
    /// # Errors
    /// As [`RunBuilder::finish`]; [`ImportError::Internal`] when the parts have other rows than were appended.
    pub fn finish_in_parts(mut self, mut parts: Vec<Part>) -> Result<Vec<Run>, ImportError> {
        self.append_waiting_locations()?;
        if let Some(first) = parts.first_mut() {
            first.stats.absorb(std::mem::take(&mut self.stats));
        }
        let mut runs: Vec<Run> = Vec::with_capacity(parts.len());
        let mut rows: Vec<Vec<(Table, usize, u64)>> = Vec::with_capacity(parts.len());
        for (run_number, part) in (self.run_number..).zip(parts) {
            rows.push(part.rows);
            let from_records = rows.last().into_iter().flatten().map(|(.., records)| records).sum();
            runs.push(Run {
                info: part.info,
                stats: part.stats.close(from_records),
                source: self.source.clone(),
                run_number,
                tables: BTreeMap::new(),
                on_disk: BTreeMap::new(),
                // A session drops the runs of a trace together: all of it is the first one's.
                memory: match runs.first() {
                    None => self.memory.take(),
                    Some(first) => first.memory.new_empty(),
                },
                identities_later: false,
                stored: None,
            });
        }
        for (table, builder) in std::mem::take(&mut self.tables) {
            let counts = rows.iter().map(|rows| rows.iter().find(|row| row.0 == table).map_or(0, |row| row.1));
            let (chunks, shared) =
                builder.into_parts(table, 0, true).map_err(|error| ImportError::internal(&self.source, error))?;
            let on_disk = chunks.iter().map(Waiting::bytes_on_disk).sum();
            self.memory
                .try_grow(on_disk)
                .map_err(|error| ImportError::Memory { path: self.source.clone(), what: error.strip_backtrace() })?;
            let chunks = chunks.iter().map(|chunk| chunk.read(self.spill.as_deref())).collect::<Result<_, _>>()?;
            let batches = assemble::cut(chunks, &shared, &counts.collect::<Vec<_>>(), |part| {
                first_identity(self.run_number + part as i64)
            })
            .map_err(|error| ImportError::internal(&self.source, error))?;
            for (run, batches) in runs.iter_mut().zip(batches).filter(|(_, batches)| !batches.is_empty()) {
                run.tables.insert(table, batches);
            }
        }
        Ok(runs)
    }

    /// A column of times without those beyond [`crate::time::REACH`], which are counted.
    fn within_reach(&mut self, table: Table, name: &str, times: ArrayRef) -> ArrayRef {
        let Some((within, count, (row, time))) = reach::cut(&times) else { return times };
        let position = self.rows(table) + row as u64;
        self.stats.note(findings::TIME_IS_NULL, count, || {
            format!("row {position} of {table}: {name} {time} lies beyond ±2^62 ticks; it is NULL")
        });
        within
    }

    /// The array of a column, and the bytes that it adds.
    fn array(
        &mut self,
        table: Table,
        column: &'static Column,
        rows: usize,
        values: Values,
    ) -> Result<(ArrayRef, Bytes), ImportError> {
        let Column { name, column_type, .. } = *column;
        let array = match values {
            Values::Absent => return Ok(self.constant(table, name, column_type, rows, None)),
            Values::Same(value) => return Ok(self.constant(table, name, column_type, rows, Some(value))),
            Values::Word(word) => {
                let key = self.words_of(table, name).intern(&word);
                return Ok(self.constant(table, name, column_type, rows, Some(i64::from(key))));
            }
            Values::Words(words, keys) => Arc::new(self.adopt(table, name, &words, keys)),
            Values::Each(array) => match array.as_string_opt::<i32>().filter(|_| column_type == ColumnType::Word) {
                Some(texts) => Arc::new(self.intern_all(table, name, texts)),
                None => array,
            },
        };
        if array.len() != rows {
            return Err(self.internal(format!("{table}.{name} has {} values for {rows} rows", array.len())));
        }
        if *array.data_type() != storage_type(column_type) {
            return Err(self.internal(format!("{table}.{name} cannot hold values of {}", array.data_type())));
        }
        // A column of NULLs costs what an absent one does.
        if array.null_count() == rows {
            return Ok(self.constant(table, name, column_type, rows, None));
        }
        let array = canonical_column(array);
        let own = array.get_buffer_memory_size();
        Ok((array, Bytes { own, shared: 0 }))
    }

    /// A column with one value (or NULL) in each row, and the bytes that it adds: a slice of the array that earlier
    /// chunks used, which grows by powers of two when a longer chunk comes.
    fn constant(
        &mut self,
        table: Table,
        name: &'static str,
        column_type: ColumnType,
        rows: usize,
        value: Option<i64>,
    ) -> (ArrayRef, Bytes) {
        let shared = self.tables.entry(table).or_default().shared.entry(name).or_default();
        let known = match value {
            None => shared.nulls.as_ref(),
            Some(value) => shared.constant.as_ref().filter(|(last, _)| *last == value).map(|(_, array)| array),
        };
        if let Some(array) = known.filter(|array| array.len() >= rows) {
            return (array.slice(0, rows), Bytes::default());
        }
        // A run of few rows pays for few.
        let least = if rows <= FEW_ROWS { FEW_ROWS } else { ROWS_PER_BATCH };
        let capacity = rows.next_power_of_two().max(least);
        let array: ArrayRef = match (value, storage_type(column_type)) {
            (None, data_type) => new_null_array(&data_type, capacity),
            (Some(value), DataType::Int32) => Arc::new(Int32Array::from_value(value as i32, capacity)),
            (Some(value), _) => Arc::new(Int64Array::from_value(value, capacity)),
        };
        let before = match value {
            None => shared.nulls.replace(Arc::clone(&array)),
            Some(value) => shared.constant.replace((value, Arc::clone(&array))).map(|(_, before)| before),
        };
        // From now on only chunks hold it, so that it goes with them.
        if let Some(before) = before {
            self.tables.entry(table).or_default().held += before.get_buffer_memory_size();
        }
        (array.slice(0, rows), Bytes { own: 0, shared: array.get_buffer_memory_size() })
    }

    fn intern_all(&mut self, table: Table, name: &'static str, texts: &StringArray) -> Int32Array {
        let words = self.words_of(table, name);
        texts.iter().map(|word| word.map(|word| words.intern(word))).collect()
    }

    /// Keys of a dictionary of their own become those of the column's: the same where that is empty.
    fn adopt(&mut self, table: Table, name: &'static str, own: &Words, keys: Int32Array) -> Int32Array {
        let words = self.words_of(table, name);
        let keys_of: Vec<i32> = (0..own.len() as i32).map(|key| words.intern(own.word(key))).collect();
        match keys_of.iter().zip(0..).all(|(key, same)| *key == same) {
            true => keys,
            // What stands behind NULLs is arbitrary.
            false => keys.unary(|key| keys_of.get(key as usize).copied().unwrap_or(0)),
        }
    }

    pub(crate) fn internal(&self, what: String) -> ImportError {
        ImportError::Internal { path: self.source.clone(), what }
    }
}

/// A row of `locations`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Location<'a> {
    /// The full name.
    pub location: &'a str,
    /// The location it belongs to.
    pub parent: Option<&'a str>,
    /// node, process, thread, worker …
    pub kind: &'a str,
    /// A name for people.
    pub name: Option<&'a str>,
    /// The process it belongs to.
    pub process: Option<&'a str>,
    /// compute, communication or runtime.
    pub role: &'a str,
    /// The clock that its times are read from.
    pub clock: Option<&'a str>,
    /// The order in which to show it; `None` = order of appending.
    pub sort_index: Option<i64>,
    /// More about it, a JSON object.
    pub args: Option<&'a str>,
}

fn note_backwards(stats: &mut Stats, backwards: &Backwards) {
    if let Some((position, start, finish)) = backwards.first {
        stats.note(findings::FINISH_BEFORE_START, backwards.count, || {
            format!("task {position}: start {start}, finish {finish}; finish is NULL")
        });
    }
}

impl TableBuilder {
    /// Writes all chunks to disk.
    fn spill(&mut self, table: Table, spill: &Spill) -> Result<(), ImportError> {
        let (done, mut position) = self.spilled;
        let constants: Vec<Vec<&ArrayRef>> = table
            .spec()
            .columns
            .iter()
            .map(|column| self.shared.get(column.name).into_iter().flat_map(Shared::arrays).collect())
            .collect();
        for chunk in &mut self.chunks[done..] {
            let rows = chunk.rows as u64;
            if let Some(columns) = chunk.columns().filter(|_| table == Table::Tasks) {
                self.backwards.add(complete_spans(position, columns));
            }
            chunk.spill(spill, |place, column| constants[place].iter().any(|all| is_slice(column, all)))?;
            position += rows;
        }
        self.spilled = (self.chunks.len(), position);
        Ok(())
    }

    /// The chunks, and what they share. Where messages are many and `may_be_later`, their identities are filled in when they are read.
    fn into_parts(
        mut self,
        table: Table,
        first_identity: i64,
        may_be_later: bool,
    ) -> Result<(Vec<Waiting>, assemble::Shared), ArrowError> {
        let spec = table.spec();
        let words = spec
            .columns
            .iter()
            .map(|column| {
                (column.column_type == ColumnType::Word)
                    .then(|| self.words.remove(column.name).unwrap_or_default().into_values().map(WordColumn::new))
                    .transpose()
            })
            .collect::<Result<_, _>>()?;
        let schema = Arc::new(table.schema().project(&(1..spec.columns.len()).collect::<Vec<_>>())?);
        let later = (may_be_later && identity::is_later(table, self.rows)).then(|| {
            let longest = self.chunks.iter().map(|chunk| chunk.rows).max().unwrap_or(0);
            identity::placeholder(longest)
        });
        Ok((self.chunks, assemble::Shared { table, schema, words, first_identity, later }))
    }
}

fn storage_type(column_type: ColumnType) -> DataType {
    match column_type {
        ColumnType::Word => DataType::Int32,
        other => other.data_type(),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::RecordBatch;

    use super::*;
    use crate::tables::Events;
    use datafusion::arrow::datatypes::{Int32Type, Int64Type};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};

    fn builder(run_number: i64) -> RunBuilder {
        RunBuilder::new(Path::new("trace"), run_number, &Budget::unlimited())
    }

    fn column(run: &Run, table: Table, name: &str) -> Vec<Option<i64>> {
        run.tables[&table]
            .iter()
            .flat_map(|batch| batch[name].as_primitive::<Int64Type>().iter().collect::<Vec<_>>())
            .collect()
    }

    #[test]
    fn identities_count_from_the_base_of_the_run_and_references_follow() {
        let mut trace = builder(3);
        for _ in 0..2 {
            let (start, finish) = (vec![0, 5].into(), vec![4, 9].into());
            let parent = vec![None, Some(0)].into();
            trace.append(Tasks { start, finish, parent, ..Tasks::default() }).expect("appends");
        }
        let run = trace.finish(1).expect("finishes");
        let base = 3 << 40;
        assert_eq!(
            column(&run, Table::Tasks, "task"),
            (0..4).map(|position| Some(base + position)).collect::<Vec<_>>()
        );
        assert_eq!(column(&run, Table::Tasks, "parent"), [None, Some(base), None, Some(base)]);
        assert_eq!(column(&run, Table::Tasks, "duration"), [Some(4); 4]);
        assert!(run.stats.is_empty());
    }

    #[test]
    fn spans_that_end_before_they_start_lose_their_finish() {
        let mut trace = builder(0);
        let start = vec![Some(0), Some(5), None, Some(i64::MIN), Some(1)].into();
        let finish = vec![Some(1), Some(4), Some(7), Some(i64::MAX), None].into();
        trace.append(Tasks { start, finish, ..Tasks::default() }).expect("appends");
        let run = trace.finish(1).expect("finishes");
        assert_eq!(column(&run, Table::Tasks, "finish"), [Some(1), None, Some(7), None, None]);
        assert_eq!(column(&run, Table::Tasks, "duration"), [Some(1), None, None, None, None]);
        // i64::MIN and i64::MAX are no times: any two of those have a difference.
        assert_eq!((run.stats[1].finding.what, run.stats[1].count), ("time_is_null", 2));
        assert_eq!((run.stats[0].finding.what, run.stats[0].count), ("finish_before_start", 1));
        assert_eq!(run.stats[0].example, "task 1: start 5, finish 4; finish is NULL");
    }

    #[test]
    fn times_beyond_the_reach_are_null_and_counted() {
        let mut trace = builder(0);
        let (least, most) = (-(1 << 62), (1 << 62) - 1);
        for finishes in
            [vec![Some(most), Some(i64::MAX), None], vec![Some(most + 1), Some(9), Some(9_000_000_000_000_000_000)]]
        {
            let start = vec![Some(least), Some(0), Some(least - 1)].into();
            trace.append(Tasks { start, finish: finishes.into(), ..Tasks::default() }).expect("appends");
        }
        let events = Events { time: i64::MIN.into(), ..Events::default() };
        trace.append(Rows::from(events).repeated(2)).expect("appends");
        let run = trace.finish(1).expect("finishes");
        assert_eq!(column(&run, Table::Tasks, "start"), [Some(least), Some(0), None, Some(least), Some(0), None]);
        assert_eq!(column(&run, Table::Tasks, "finish"), [Some(most), None, None, None, Some(9), None]);
        assert_eq!(column(&run, Table::Tasks, "duration"), [Some(i64::MAX), None, None, None, Some(9), None]);
        assert_eq!(column(&run, Table::Events, "time"), [None, None]);
        assert_eq!((run.stats[0].finding.what, run.stats[0].count, run.stats.len()), ("time_is_null", 7, 1));
        let example = "row 2 of tasks: start -4611686018427387905 lies beyond ±2^62 ticks; it is NULL";
        assert_eq!(run.stats[0].example, example);
    }

    #[test]
    fn books_that_do_not_balance_are_a_loss() {
        let mut trace = builder(0);
        trace.stats.records(5);
        trace.stats.left_out(findings::TORN_LINES, 1, || "line 4".to_owned());
        trace.append(Events { time: vec![7, 7, 7].into(), ..Events::default() }).expect("appends");
        trace.append_derived(Rows::of(Table::Links, 9)).expect("appends");
        let stats = trace.finish(1).expect("finishes").stats;
        let unaccounted = stats.iter().find(|stat| stat.finding.what == "unaccounted").expect("a row");
        assert_eq!((unaccounted.count, unaccounted.finding.severity), (1, crate::trace::Severity::Lost));
    }

    #[test]
    fn constants_and_absent_columns_cost_memory_once() {
        let mut trace = builder(0);
        let mut sizes = Vec::new();
        for rows in [1000, 5000, 10, 8000, 1000] {
            let tasks = Tasks { kind: "static".into(), depth: 0.into(), ..Tasks::default() };
            trace.append(Rows::from(tasks).repeated(rows)).expect("appends");
            sizes.push(trace.memory.size());
        }
        // Identity and duration are computed per row, 8 bytes each; everything else is shared.
        assert!(sizes[4] - sizes[0] <= 14_010 * 17, "{sizes:?} bytes");
        let run = trace.finish(1).expect("finishes");
        assert_eq!(run.tables[&Table::Tasks].iter().map(RecordBatch::num_rows).sum::<usize>(), 15_010);
    }

    #[test]
    fn constants_that_change_cost_no_memory_on_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(4 << 20));
        let budget = Budget::from(Arc::clone(&pool)).spilling(Spill::new(folder.path().to_owned(), &pool, 1 << 18));
        let mut trace = RunBuilder::new(Path::new("lanes.tfp"), 0, &budget);
        let rows = 3000;
        for chunk in 0..200 {
            let location = trace.word(Tasks::location, &format!("W{}", chunk / 2));
            let start: Vec<i64> = (0..rows).collect();
            let (location, depth) = (location.into(), (chunk % 2).into());
            trace.append(Tasks { start: start.into(), location, depth, ..Tasks::default() }).expect("appends");
        }
        assert!(pool.reserved() < 2 << 20, "{} bytes", pool.reserved());
        let run = trace.finish(1).expect("finishes");
        let mut seen = Vec::new();
        for batch in run.batches(Table::Tasks) {
            let batch = batch.expect("a batch");
            let words = batch["location"].as_dictionary::<Int32Type>();
            let word =
                words.downcast_dict::<StringArray>().expect("text").into_iter().next().flatten().expect("a word");
            seen.push((word.to_owned(), batch["depth"].as_primitive::<Int64Type>().value(batch.num_rows() - 1)));
        }
        assert_eq!(seen, (0..200).map(|chunk| (format!("W{}", chunk / 2), chunk % 2)).collect::<Vec<_>>());
    }

    #[test]
    fn locations_given_one_by_one_share_batches_and_keep_their_order() {
        let mut trace = builder(0);
        let rows = 2 * ROWS_PER_BATCH + 5;
        for row in 0..rows {
            assert_eq!(trace.rows(Table::Locations), row as u64);
            let location = Location { kind: "thread", role: "compute", ..Location::default() };
            trace.location(&Location { location: &format!("t{row}"), ..location }).expect("appends");
            if row == 9 {
                let given = Locations { location: "between".into(), ..Locations::default() };
                trace.append_derived(Rows::from(given).repeated(1)).expect("appends");
                assert_eq!(trace.rows(Table::Locations), 11);
                trace.location(&Location { location: "behind", args: Some("{}"), ..location }).expect("appends");
                break;
            }
        }
        for row in 12..rows {
            let location =
                Location { location: &format!("t{row}"), kind: "thread", role: "compute", ..Default::default() };
            trace.location(&location).expect("appends");
        }
        let run = trace.finish(1).expect("finishes");
        let batches = &run.tables[&Table::Locations];
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows);
        assert!(batches.len() <= 5, "{} batches", batches.len());
        let indexes = column(&run, Table::Locations, "sort_index");
        assert_eq!(
            (indexes[9], indexes[10], indexes[11], indexes[rows - 1]),
            (Some(9), None, Some(11), Some(rows as i64 - 1))
        );
        let first = batches[1]["location"].as_dictionary::<Int32Type>().downcast_dict::<StringArray>().expect("text");
        assert_eq!(first.into_iter().next().flatten(), Some("between"));
    }

    #[test]
    fn words_that_importers_intern_are_asked_of_the_pool() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(100_000));
        let mut trace = RunBuilder::new(Path::new("names.sqlite"), 0, &Budget::from(pool));
        for word in 0..9000 {
            trace.word(Tasks::name, &format!("a name of some length {word}"));
        }
        // Also where the rows are those of another table.
        let events = Events { time: 1.into(), ..Events::default() };
        let error = trace.append(Rows::from(events).repeated(1)).expect_err("too much");
        assert!(error.to_string().starts_with("names.sqlite: not enough memory"), "{error}");
    }

    #[test]
    fn an_exhausted_pool_is_an_error_that_names_the_trace() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        let mut trace = RunBuilder::new(Path::new("big.tfp"), 0, &Budget::from(pool));
        let tasks = Tasks { start: vec![0; 1000].into(), ..Tasks::default() };
        let error = trace.append(tasks).expect_err("too much");
        assert!(error.to_string().starts_with("big.tfp: not enough memory"), "{error}");
    }

    #[test]
    fn columns_that_do_not_fit_are_our_error() {
        let mut trace = builder(0);
        let mut refused = |rows: Rows| trace.append(rows).expect_err("does not fit").to_string();
        let begin = "internal error while building the tables of `trace`: ";
        let (start, finish) = (vec![1, 2].into(), vec![1].into());
        let error = refused(Tasks { start, finish, ..Tasks::default() }.into());
        assert_eq!(error, format!("{begin}tasks.finish has 1 values for 2 rows"));
        let error = refused(Tasks { depth: 0.into(), ..Tasks::default() }.into());
        assert_eq!(error, format!("{begin}rows for tasks: none of their columns says how many they are"));
        let mut rows = Rows::of(Table::Tasks, 1);
        rows.set_named("start", Values::Each(Arc::new(StringArray::from(vec!["1"]))));
        assert_eq!(refused(rows), format!("{begin}tasks.start cannot hold values of Utf8"));
    }

    #[test]
    fn text_for_word_columns_is_interned_in_order() {
        let mut trace = builder(0);
        let names = StringArray::from(vec![Some("b"), None, Some("a"), Some("b")]);
        trace.append(Tasks { name: names.into(), ..Tasks::default() }).expect("appends");
        let run = trace.finish(1).expect("finishes");
        let name = run.tables[&Table::Tasks][0]["name"].as_dictionary::<Int32Type>().clone();
        assert_eq!(name.keys().iter().collect::<Vec<_>>(), [Some(0), None, Some(1), Some(0)]);
    }
}
