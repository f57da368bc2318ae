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
    Array, ArrayRef, AsArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation, UnboundedMemoryPool};
use tq_udfs::ticks::Tick;

use super::assemble::{self, Chunk, WordColumn, assemble};
use super::identity;
use super::reach;
use super::stats::{Finding, Stage, Stat, Stats};
use super::words::Words;
use crate::error::ImportError;
use crate::tables::{ColumnType, Table};

/// Rows of a batch of a session table.
pub const ROWS_PER_BATCH: usize = 8192;

/// The rows of a constant column in a table that has no more.
const FEW_ROWS: usize = 32;

/// `task` and `message` are `run_number · 2^40 + position`.
const POSITION_BITS: u32 = 40;

/// One column of a chunk.
#[derive(Debug, Clone)]
pub enum Cells {
    /// The same word in every row.
    Word(i32),
    /// Keys of the dictionary of this column.
    Words(Int32Array),
    /// The same number (or tick, or position) in every row.
    Integer(i64),
    /// Values. Text given for a word column is interned; numbers are cast to the column's type when that loses nothing.
    Array(ArrayRef),
}

impl From<Int64Array> for Cells {
    fn from(array: Int64Array) -> Self {
        Cells::Array(Arc::new(array))
    }
}

impl From<Vec<i64>> for Cells {
    fn from(values: Vec<i64>) -> Self {
        Int64Array::from(values).into()
    }
}

impl From<Vec<Option<i64>>> for Cells {
    fn from(values: Vec<Option<i64>>) -> Self {
        Int64Array::from(values).into()
    }
}

impl From<Vec<i32>> for Cells {
    /// Keys of words.
    fn from(keys: Vec<i32>) -> Self {
        Cells::Words(keys.into())
    }
}

impl From<StringArray> for Cells {
    fn from(array: StringArray) -> Self {
        Cells::Array(Arc::new(array))
    }
}

impl From<Float64Array> for Cells {
    fn from(array: Float64Array) -> Self {
        Cells::Array(Arc::new(array))
    }
}

/// What a trace says about itself: the columns of `runs` that no table yields.
#[derive(Debug, Clone, Default)]
pub struct RunInfo {
    /// The name that the format itself gives, where a file holds several runs.
    pub own_name: Option<String>,
    /// The traced program.
    pub program: Option<String>,
    /// Wall clock at the origin, ns since 1970 UTC.
    pub started_at: Option<i64>,
    /// The unit of the trace's own times.
    pub time_unit: &'static str,
    /// The tick that this run's times are given in.
    pub tick: Option<Tick>,
    /// The trace's clock at tick 0 in ns.
    pub origin: Option<i64>,
    /// Cores used.
    pub cores: Option<i64>,
    /// Problem size as written, and as a number.
    pub argument: Option<String>,
    /// The problem size as a number.
    pub problem_size: Option<f64>,
    /// Rank of the problem size.
    pub size_order: Option<i64>,
    /// Number of the repetition.
    pub repetition: Option<i64>,
    /// The scalability study that the run is an execution of: what follows the trace's name in its name, `""` for a trace
    /// that is one study.
    pub study: Option<String>,
    /// Everything else, a JSON object.
    pub args: serde_json::Map<String, serde_json::Value>,
}

/// Builds the tables of one run.
pub struct RunBuilder {
    /// What the trace says about itself.
    pub info: RunInfo,
    /// Findings on the way.
    pub stats: Stats,
    source: PathBuf,
    run_number: i64,
    tables: BTreeMap<Table, TableBuilder>,
    memory: MemoryReservation,
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

/// A finished run. Times are still in the run's own tick.
#[derive(Debug)]
pub struct Run {
    /// What the trace says about itself.
    pub info: RunInfo,
    /// Findings, books closed.
    pub stats: Vec<Stat>,
    /// The file it came from.
    pub source: PathBuf,
    /// Counts from 0 in the order in which runs were begun.
    pub run_number: i64,
    /// Batches by table, without `run`, `runs` and `import_stats`, which the session adds.
    pub tables: BTreeMap<Table, Vec<RecordBatch>>,
    /// The memory of the batches, given back on drop.
    pub memory: MemoryReservation,
    /// Whether the messages have their identities yet (`identity.rs`).
    pub(crate) identities_later: bool,
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
    chunks: Vec<Chunk>,
}

/// Arrays of one value in each row. A chunk's column is a slice of them, so a constant costs memory once.
#[derive(Default)]
struct Shared {
    nulls: Option<ArrayRef>,
    constant: Option<(i64, ArrayRef)>,
}

impl RunBuilder {
    /// A builder for a run that comes from no file but from the program that calls this; `source` says from where. The session that
    /// takes the run gives it its number, and asks its own pool for the memory.
    pub fn in_memory(source: &str) -> RunBuilder {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        RunBuilder::new(Path::new(source), 0, &pool)
    }

    /// A builder for one run of the trace at `source`; its memory is asked from `pool`.
    pub(crate) fn new(source: &Path, run_number: i64, pool: &Arc<dyn MemoryPool>) -> RunBuilder {
        RunBuilder {
            info: RunInfo { time_unit: "ns", ..RunInfo::default() },
            stats: Stats::default(),
            source: source.to_owned(),
            run_number,
            tables: BTreeMap::new(),
            memory: MemoryConsumer::new(format!("tables of {}", source.display())).register(pool),
        }
    }

    /// The file or directory of the trace.
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// The key of a word in a column of a table. All `location` columns, `messages.source` and `messages.target` included,
    /// have a dictionary each: intern per table.
    pub fn word(&mut self, table: Table, column: &'static str, word: &str) -> i32 {
        self.tables.entry(table).or_default().words.entry(column).or_default().intern(word)
    }

    /// The dictionary of a column, for importers that intern many words.
    pub fn words(&mut self, table: Table, column: &'static str) -> &mut Words {
        self.tables.entry(table).or_default().words.entry(column).or_default()
    }

    /// Number of rows appended to a table so far: the position of the next one.
    pub fn rows(&self, table: Table) -> u64 {
        self.tables.get(&table).map_or(0, |table| table.rows)
    }

    /// Appends `rows` rows to a table. Columns that are not given are NULL; `run`, `task` and `message` (identity of a
    /// message) are never given. `tasks.duration` is computed from start and finish unless given. References to tasks
    /// (`parent`, `source`, `task` …) are positions within the run. Times beyond ±2⁶² become NULL and are counted.
    ///
    /// # Errors
    /// [`ImportError::Memory`] when the pool is exhausted; [`ImportError::Internal`] when a column does not exist or
    /// has a wrong type or length.
    pub fn append(&mut self, table: Table, rows: usize, cells: Vec<(&'static str, Cells)>) -> Result<(), ImportError> {
        if rows == 0 {
            return Ok(());
        }
        let mut given: BTreeMap<&'static str, Cells> = cells.into_iter().collect();
        let durations_given = given.contains_key("duration");
        let spec = table.spec();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(spec.columns.len());
        let mut grown = 0;
        for column in spec.columns {
            let cells = given.remove(column.name);
            match cells {
                Some(cells) => {
                    let (array, owned) = self.array(table, column.name, column.column_type, rows, cells)?;
                    grown += owned;
                    columns.push(match column.column_type {
                        ColumnType::Time => self.within_reach(table, column.name, array),
                        _ => array,
                    });
                }
                None => {
                    let (array, owned) = self.constant(table, column.name, column.column_type, rows, None);
                    grown += owned;
                    columns.push(array);
                }
            }
        }
        if let Some(unknown) = given.keys().next() {
            return Err(self.internal(format!("table {table} has no column {unknown}")));
        }
        // What assembling will add.
        if table == Table::Tasks && !durations_given {
            grown += rows * size_of::<i64>();
        }
        // Identities that are filled in later cost nothing here, but how many rows come is not known yet.
        if table.has_identity() {
            grown += rows * size_of::<i64>();
        }
        let builder = self.tables.entry(table).or_default();
        let words: usize = builder.words.values().map(Words::memory).sum();
        grown += words.saturating_sub(builder.words_charged);
        builder.words_charged = words;
        self.memory
            .try_grow(grown)
            .map_err(|error| ImportError::Memory { path: self.source.clone(), what: error.strip_backtrace() })?;
        let builder = self.tables.entry(table).or_default();
        builder.rows += rows as u64;
        builder.chunks.push(Chunk { rows, columns });
        Ok(())
    }

    /// Like [`RunBuilder::append`], for rows that stand for no record of the trace of their own (locations, links that a
    /// reader concludes), so that the books still balance.
    ///
    /// # Errors
    /// As [`RunBuilder::append`].
    pub fn append_derived(
        &mut self,
        table: Table,
        rows: usize,
        cells: Vec<(&'static str, Cells)>,
    ) -> Result<(), ImportError> {
        self.append(table, rows, cells)?;
        self.tables.entry(table).or_default().derived += rows as u64;
        Ok(())
    }

    /// Appends one location. `parent`, `process` and `clock` may be absent.
    ///
    /// # Errors
    /// As [`RunBuilder::append`].
    pub fn location(&mut self, location: &Location<'_>) -> Result<(), ImportError> {
        let sort_index = self.rows(Table::Locations) as i64;
        let mut cells = vec![("sort_index", Cells::Integer(location.sort_index.unwrap_or(sort_index)))];
        for (column, word) in [
            ("location", Some(location.location)),
            ("parent", location.parent),
            ("kind", Some(location.kind)),
            ("process", location.process),
            ("role", Some(location.role)),
            ("clock", location.clock),
        ] {
            if let Some(word) = word {
                cells.push((column, Cells::Word(self.word(Table::Locations, column, word))));
            }
        }
        if let Some(name) = location.name {
            cells.push(("name", StringArray::from(vec![name]).into()));
        }
        self.append_derived(Table::Locations, 1, cells)
    }

    /// Assembles the tables on up to `threads` threads and closes the books.
    ///
    /// # Errors
    /// [`ImportError::Internal`] when a key has no word; [`ImportError::Memory`] when the pool is exhausted.
    pub fn finish(mut self, threads: usize) -> Result<Run, ImportError> {
        let mut rows_from_records = 0;
        let mut identities_later = false;
        let mut tables = BTreeMap::new();
        for (table, builder) in std::mem::take(&mut self.tables) {
            rows_from_records += builder.rows - builder.derived;
            identities_later |= identity::is_later(table, builder.rows);
            let assembled = builder
                .into_parts(table, first_identity(self.run_number))
                .map_err(DataFusionError::from)
                .and_then(|(chunks, shared)| assemble(chunks, &shared, threads))
                .map_err(|source| ImportError::Internal { path: self.source.clone(), source })?;
            self.memory
                .try_grow(assembled.copied)
                .map_err(|error| ImportError::Memory { path: self.source.clone(), what: error.strip_backtrace() })?;
            if let Some((position, start, finish)) = assembled.backwards.first {
                let finding = Finding::repaired("finish_before_start", Stage::Recording);
                self.stats.note(finding, assembled.backwards.count, || {
                    format!("task {position}: start {start}, finish {finish}; finish is NULL")
                });
            }
            tables.insert(table, assembled.batches);
        }
        Ok(Run {
            info: self.info,
            stats: self.stats.close(rows_from_records),
            source: self.source,
            run_number: self.run_number,
            tables,
            memory: self.memory,
            identities_later,
        })
    }

    /// Like [`RunBuilder::finish`], for a trace of many small runs whose rows were appended one run after the other: the runs
    /// share dictionaries and buffers, so that a run of twenty rows costs twenty rows and not the setting up of tables.
    /// References to tasks are positions within their run. The builder's own `stats` belong to the first run, its `info` to none.
    ///
    /// # Errors
    /// As [`RunBuilder::finish`]; [`ImportError::Internal`] when the parts have other rows than were appended.
    pub fn finish_in_parts(mut self, mut parts: Vec<Part>) -> Result<Vec<Run>, ImportError> {
        let failed = |path: &Path, source| ImportError::Internal { path: path.to_owned(), source };
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
                // A session drops the runs of a trace together: all of it is the first one's.
                memory: match runs.first() {
                    None => self.memory.take(),
                    Some(first) => first.memory.new_empty(),
                },
                identities_later: false,
            });
        }
        for (table, builder) in std::mem::take(&mut self.tables) {
            let counts = rows.iter().map(|rows| rows.iter().find(|row| row.0 == table).map_or(0, |row| row.1));
            let (chunks, shared) = builder.into_parts(table, 0).map_err(|error| failed(&self.source, error.into()))?;
            let batches = assemble::cut(chunks, &shared, &counts.collect::<Vec<_>>(), |part| {
                first_identity(self.run_number + part as i64)
            })
            .map_err(|error| failed(&self.source, error))?;
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
        self.stats.note(reach::BAD_TIME, count, || {
            format!("row {position} of {table}: {name} {time} lies beyond ±2^62 ticks; it is NULL")
        });
        within
    }

    /// The array of a given column, and the bytes that it adds.
    fn array(
        &mut self,
        table: Table,
        name: &'static str,
        column_type: ColumnType,
        rows: usize,
        cells: Cells,
    ) -> Result<(ArrayRef, usize), ImportError> {
        let array: ArrayRef = match (cells, column_type) {
            (Cells::Word(key), ColumnType::Word) => {
                return Ok(self.constant(table, name, column_type, rows, Some(i64::from(key))));
            }
            (Cells::Integer(value), ColumnType::Integer | ColumnType::Identity | ColumnType::Time) => {
                return Ok(self.constant(table, name, column_type, rows, Some(value)));
            }
            (Cells::Words(keys), ColumnType::Word) => Arc::new(keys),
            (Cells::Array(array), ColumnType::Word) => Arc::new(self.intern_all(table, name, &array)?),
            (Cells::Array(array), _) if *array.data_type() == column_type.data_type() => array,
            (Cells::Array(array), _) => {
                cast(&array, &column_type.data_type()).map_err(|error| self.internal(error.to_string()))?
            }
            (cells, _) => return Err(self.internal(format!("{table}.{name} cannot hold {cells:?}"))),
        };
        if array.len() != rows {
            return Err(self.internal(format!("{table}.{name} has {} values for {rows} rows", array.len())));
        }
        let bytes = array.get_buffer_memory_size();
        Ok((array, bytes))
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
    ) -> (ArrayRef, usize) {
        let shared = self.tables.entry(table).or_default().shared.entry(name).or_default();
        let known = match value {
            None => shared.nulls.as_ref(),
            Some(value) => shared.constant.as_ref().filter(|(last, _)| *last == value).map(|(_, array)| array),
        };
        if let Some(array) = known.filter(|array| array.len() >= rows) {
            return (array.slice(0, rows), 0);
        }
        // A run of few rows pays for few.
        let least = if rows <= FEW_ROWS { FEW_ROWS } else { ROWS_PER_BATCH };
        let capacity = rows.next_power_of_two().max(least);
        let array: ArrayRef = match (value, storage_type(column_type)) {
            (None, data_type) => new_null_array(&data_type, capacity),
            (Some(value), DataType::Int32) => Arc::new(Int32Array::from_value(value as i32, capacity)),
            (Some(value), _) => Arc::new(Int64Array::from_value(value, capacity)),
        };
        match value {
            None => shared.nulls = Some(Arc::clone(&array)),
            Some(value) => shared.constant = Some((value, Arc::clone(&array))),
        }
        (array.slice(0, rows), array.get_buffer_memory_size())
    }

    fn intern_all(&mut self, table: Table, name: &'static str, array: &ArrayRef) -> Result<Int32Array, ImportError> {
        let text = cast(array, &DataType::Utf8).map_err(|error| self.internal(error.to_string()))?;
        let words = self.words(table, name);
        Ok(text.as_string::<i32>().iter().map(|word| word.map(|word| words.intern(word))).collect())
    }

    fn internal(&self, what: String) -> ImportError {
        ImportError::Internal { path: self.source.clone(), source: DataFusionError::Internal(what) }
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
}

impl TableBuilder {
    /// The chunks, and what they share.
    fn into_parts(mut self, table: Table, first_identity: i64) -> Result<(Vec<Chunk>, assemble::Shared), ArrowError> {
        let spec = table.spec();
        let words = spec
            .columns
            .iter()
            .map(|column| {
                (column.column_type == ColumnType::Word)
                    .then(|| WordColumn::new(self.words.remove(column.name).unwrap_or_default().values()))
            })
            .collect();
        let schema = Arc::new(table.schema().project(&(1..spec.columns.len()).collect::<Vec<_>>())?);
        let later = identity::is_later(table, self.rows).then(|| {
            let longest = self.chunks.iter().map(|chunk| chunk.rows).max().unwrap_or(0);
            identity::placeholder(longest)
        });
        Ok((self.chunks, assemble::Shared { table, schema, words, first_identity, later }))
    }
}

/// The first identity of a run: `run_number · 2^40`.
pub(super) fn first_identity(run_number: i64) -> i64 {
    run_number << POSITION_BITS
}

fn storage_type(column_type: ColumnType) -> DataType {
    match column_type {
        ColumnType::Word => DataType::Int32,
        other => other.data_type(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::{Int32Type, Int64Type};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, UnboundedMemoryPool};

    fn builder(run_number: i64) -> RunBuilder {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        RunBuilder::new(Path::new("trace"), run_number, &pool)
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
            let cells = vec![
                ("start", vec![0i64, 5].into()),
                ("finish", vec![4i64, 9].into()),
                ("parent", vec![None, Some(0)].into()),
            ];
            trace.append(Table::Tasks, 2, cells).expect("appends");
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
        let starts = vec![Some(0), Some(5), None, Some(i64::MIN), Some(1)];
        let finishes = vec![Some(1), Some(4), Some(7), Some(i64::MAX), None];
        trace.append(Table::Tasks, 5, vec![("start", starts.into()), ("finish", finishes.into())]).expect("appends");
        let run = trace.finish(1).expect("finishes");
        assert_eq!(column(&run, Table::Tasks, "finish"), [Some(1), None, Some(7), None, None]);
        assert_eq!(column(&run, Table::Tasks, "duration"), [Some(1), None, None, None, None]);
        // i64::MIN and i64::MAX are no times: any two of those have a difference.
        assert_eq!((run.stats[0].finding.what, run.stats[0].count), ("bad_time", 2));
        assert_eq!((run.stats[1].finding.what, run.stats[1].count), ("finish_before_start", 1));
        assert_eq!(run.stats[1].example, "task 1: start 5, finish 4; finish is NULL");
    }

    #[test]
    fn times_beyond_the_reach_are_null_and_counted() {
        let mut trace = builder(0);
        let (least, most) = (-(1 << 62), (1 << 62) - 1);
        for finishes in
            [vec![Some(most), Some(i64::MAX), None], vec![Some(most + 1), Some(9), Some(9_000_000_000_000_000_000)]]
        {
            let starts = vec![Some(least), Some(0), Some(least - 1)];
            trace
                .append(Table::Tasks, 3, vec![("start", starts.into()), ("finish", finishes.into())])
                .expect("appends");
        }
        trace.append(Table::Events, 2, vec![("time", Cells::Integer(i64::MIN))]).expect("appends");
        let run = trace.finish(1).expect("finishes");
        assert_eq!(column(&run, Table::Tasks, "start"), [Some(least), Some(0), None, Some(least), Some(0), None]);
        assert_eq!(column(&run, Table::Tasks, "finish"), [Some(most), None, None, None, Some(9), None]);
        assert_eq!(column(&run, Table::Tasks, "duration"), [Some(i64::MAX), None, None, None, Some(9), None]);
        assert_eq!(column(&run, Table::Events, "time"), [None, None]);
        assert_eq!((run.stats[0].finding.what, run.stats[0].count, run.stats.len()), ("bad_time", 7, 1));
        let example = "row 2 of tasks: start -4611686018427387905 lies beyond ±2^62 ticks; it is NULL";
        assert_eq!(run.stats[0].example, example);
    }

    #[test]
    fn books_that_do_not_balance_are_a_loss() {
        let mut trace = builder(0);
        trace.stats.records(5);
        trace.stats.left_out(Finding::lost("torn_line", Stage::Recording), 1, || "line 4".to_owned());
        trace.append(Table::Events, 3, vec![("time", Cells::Integer(7))]).expect("appends");
        trace.append_derived(Table::Links, 9, vec![]).expect("appends");
        let stats = trace.finish(1).expect("finishes").stats;
        let unaccounted = stats.iter().find(|stat| stat.finding.what == "unaccounted").expect("a row");
        assert_eq!((unaccounted.count, unaccounted.finding.severity), (1, crate::trace::Severity::Lost));
    }

    #[test]
    fn constants_and_absent_columns_cost_memory_once() {
        let mut trace = builder(0);
        let kind = trace.word(Table::Tasks, "kind", "static");
        let mut sizes = Vec::new();
        for rows in [1000, 5000, 10, 8000, 1000] {
            let cells = vec![("kind", Cells::Word(kind)), ("depth", Cells::Integer(0))];
            trace.append(Table::Tasks, rows, cells).expect("appends");
            sizes.push(trace.memory.size());
        }
        // Identity and duration are computed per row, 8 bytes each; everything else is shared.
        assert!(sizes[4] - sizes[0] <= 14_010 * 17, "{sizes:?} bytes");
        let run = trace.finish(1).expect("finishes");
        assert_eq!(run.tables[&Table::Tasks].iter().map(RecordBatch::num_rows).sum::<usize>(), 15_010);
    }

    #[test]
    fn an_exhausted_pool_is_an_error_that_names_the_trace() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        let mut trace = RunBuilder::new(Path::new("big.tfp"), 0, &pool);
        let cells = vec![("start", Cells::from(vec![0i64; 1000]))];
        let error = trace.append(Table::Tasks, 1000, cells).expect_err("too much");
        assert!(error.to_string().starts_with("big.tfp: not enough memory"), "{error}");
    }

    #[test]
    fn wrong_columns_are_our_error() {
        let mut trace = builder(0);
        assert!(trace.append(Table::Tasks, 1, vec![("begin", Cells::Integer(0))]).is_err());
        assert!(trace.append(Table::Tasks, 2, vec![("start", vec![1i64].into())]).is_err());
        assert!(trace.append(Table::Tasks, 1, vec![("start", Cells::Word(0))]).is_err());
    }

    #[test]
    fn text_for_word_columns_is_interned_in_order() {
        let mut trace = builder(0);
        let names = StringArray::from(vec![Some("b"), None, Some("a"), Some("b")]);
        trace.append(Table::Tasks, 4, vec![("name", names.into())]).expect("appends");
        let run = trace.finish(1).expect("finishes");
        let name = run.tables[&Table::Tasks][0]["name"].as_dictionary::<Int32Type>().clone();
        assert_eq!(name.keys().iter().collect::<Vec<_>>(), [Some(0), None, Some(1), Some(0)]);
    }
}
