//! The rows of an input, kept in memory: numbered consecutively from 0, split by run, and looked up by number.
//!
//! Batches are kept as they arrive, which for tables in memory are slices of the table: only what a function asks for is
//! copied. They arrive in no particular order (partitions are read concurrently), so they are sorted by their first task:
//! that is the order of the trace whenever the table is in that order. A row's number then settles ties, and lanes need no sorting.
//! Where a function would read `task` and the input has none, they come in the order of the input, and stay so.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, exec_err};

use crate::graph::NONE;
use crate::relation::call::{Call, column};
use crate::relation::gather::gather;
use crate::relation::runs::{Reading, Runs, Stretch};

/// The rows of an input.
#[derive(Debug)]
pub struct Rows {
    batches: Vec<RowBatch>,
    /// Whether the input has a column `run`.
    pub has_runs: bool,
    /// Rows that were left out since a needed value is NULL.
    pub left_out: usize,
    /// Whether tasks ascend with the numbers of their rows, in each run.
    tasks_ascend: bool,
}

/// A batch of an input.
#[derive(Debug)]
pub struct RowBatch {
    /// The number of its first row.
    pub first: usize,
    /// The batch.
    pub batch: RecordBatch,
    /// Its rows by run; `None` for rows of a run that the first input does not have.
    pub stretches: Vec<Stretch>,
}

/// Whether an input decides which runs there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The first input.
    First,
    /// Another one: its rows of runs that the first does not have belong to no run.
    Other,
}

/// Tasks that come lane by lane are walked over in chunks of so many batches.
const CHUNK_BATCHES: usize = 16;

/// The run of rows that belong to every run: those of an input without runs beside a first input with some.
pub const EVERY_RUN: usize = NONE as usize - 1;

impl Rows {
    /// Reads an input to its end. Rows with a NULL in one of the `needed` columns are left out and counted.
    pub fn read(call: &mut Call, name: &str, role: Role, needed: &[&str], runs: &mut Runs) -> Result<Rows> {
        let (input, work) = call.input(name)?;
        let has_runs = input.has_runs();
        let mut left_out = 0;
        let mut batches = vec![];
        while let Some(batch) = input.next_batch()? {
            work.check()?;
            let batch = without_null(batch, needed, &mut left_out)?;
            if batch.num_rows() > 0 {
                work.keep(&batch)?;
                batches.push(batch);
            }
        }
        let batches = input.in_order(batches);
        Rows::of(batches, has_runs, left_out, role, runs, call.function.name())
    }

    /// The rows of batches, none of which is empty, numbered as they stand.
    pub(crate) fn of(
        batches: Vec<RecordBatch>,
        has_runs: bool,
        left_out: usize,
        role: Role,
        runs: &mut Runs,
        function: &str,
    ) -> Result<Rows> {
        let mut reading = Reading::default();
        let mut rows = Rows { batches: vec![], has_runs, left_out, tasks_ascend: true };
        let mut first = 0;
        for batch in batches {
            let (runs_of, count) = (batch.column_by_name("run"), batch.num_rows());
            let stretches = match role {
                Role::First => runs.learn(&mut reading, runs_of, count)?,
                Role::Other if !has_runs && !runs.is_single_null() && count > 0 => {
                    vec![Stretch { run: Some(EVERY_RUN), rows: 0..count }]
                }
                Role::Other => runs.find(&mut reading, runs_of, count)?,
            };
            rows.batches.push(RowBatch { first, batch, stretches });
            first += count;
        }
        if first >= NONE as usize {
            return exec_err!("{function}: {first} rows are more than can be numbered");
        }
        rows.tasks_ascend = rows.find_out_whether_tasks_ascend(runs.len());
        Ok(rows)
    }

    /// The same rows in the order of their tasks, run by run, whatever it was: where threads filter the batches of a table, each hands on
    /// rows from all over it. As they are where a task is NULL or is no column, and where memory has no room for copies.
    pub(crate) fn in_order_of_tasks(self, role: Role, runs: &mut Runs, call: &mut Call) -> Result<Rows> {
        let has_all =
            |batch: &RowBatch| batch.batch.column_by_name("task").is_some_and(|tasks| tasks.null_count() == 0);
        if self.tasks_ascend || !self.batches.iter().all(has_all) {
            return Ok(self);
        }
        let Some(tasks) = self.integers("task") else { return Ok(self) };
        let bytes: usize = self.batches.iter().map(|batch| bytes_of(&batch.batch)).sum();
        if call.work.grow(bytes + self.len() * size_of::<(i64, usize, i64, u32)>()).is_err() {
            return Ok(self);
        }
        let mut first_of_run = vec![i64::MAX; runs.len().max(1)];
        let mut order = Vec::with_capacity(self.len());
        for (number, batch) in self.batches.iter().enumerate() {
            for stretch in &batch.stretches {
                // Those of no run and of every run stand among those of the first one: nobody compares them.
                let run = stretch.run.filter(|run| *run < runs.len()).unwrap_or_default();
                for row in stretch.rows.clone() {
                    let row = (batch.first + row) as u32;
                    let task = tasks.get_near(row, number).unwrap_or(i64::MAX);
                    first_of_run[run] = first_of_run[run].min(task);
                    order.push((run, task, row));
                }
            }
        }
        call.work.check()?;
        // Numbers of runs are those of their first rows, which depend on the threads.
        order.sort_unstable_by_key(|(run, task, row)| (first_of_run[*run], *run, *task, *row));
        let order: Vec<u32> = order.into_iter().map(|(_, _, row)| row).collect();
        let batches = order.chunks(call.batch_rows()).map(|rows| self.taken(rows));
        let batches = batches.filter_map(Result::transpose).collect::<Result<_>>()?;
        Rows::of(batches, self.has_runs, self.left_out, role, runs, call.name())
    }

    /// The next rows of an input whose lanes are walked over, after those that wait for them, and whether they are the last ones.
    pub(crate) fn next_chunk(
        call: &mut Call,
        name: &str,
        waiting: Option<RecordBatch>,
        runs: &mut Runs,
    ) -> Result<(Rows, bool)> {
        // What waits is looked at once more in each chunk: most of it should be new.
        let waiting_rows = waiting.as_ref().map_or(0, RecordBatch::num_rows);
        let enough = (CHUNK_BATCHES * call.batch_rows()).max(4 * waiting_rows);
        let mut batches: Vec<RecordBatch> = waiting.into_iter().collect();
        let (input, work) = call.input(name)?;
        let is_last = input.next_batches(enough, &mut batches, work)?;
        let has_runs = input.has_runs();
        Ok((Rows::of(batches, has_runs, 0, Role::First, runs, call.name())?, is_last))
    }

    /// Some rows as a batch of their own, with all columns of the input; `None` for no rows.
    pub(crate) fn taken(&self, rows: &[u32]) -> Result<Option<RecordBatch>> {
        let Some(first) = self.batches.first().filter(|_| !rows.is_empty()) else { return Ok(None) };
        let schema = first.batch.schema();
        let columns = schema.fields().iter().map(|field| self.gather(field.name(), rows, field.data_type()));
        let columns = columns.collect::<Result<_>>()?;
        Ok(Some(RecordBatch::try_new(schema, columns)?))
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.batches.last().map_or(0, |last| last.first + last.batch.num_rows())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The batches in the order of their rows' numbers.
    pub fn batches(&self) -> &[RowBatch] {
        &self.batches
    }

    /// Whether the input has this column.
    pub fn has(&self, name: &str) -> bool {
        self.batches.first().is_some_and(|batch| batch.batch.column_by_name(name).is_some())
    }

    /// A `BIGINT` column, to be looked up by row; `None` when the input does not have it.
    pub fn integers(&self, name: &str) -> Option<Integers<'_>> {
        let columns: Option<Vec<&Int64Array>> = self
            .batches
            .iter()
            .map(|batch| batch.batch.column_by_name(name)?.as_primitive_opt::<Int64Type>())
            .collect();
        Some(Integers { rows: self, columns: columns? })
    }

    /// What settles ties between rows of one run: the smaller task, else the row that came first.
    pub fn ties(&self) -> Ties<'_> {
        Ties(if self.tasks_ascend { None } else { self.integers("task") })
    }

    /// The values of a column for some rows ([`NONE`]: NULL), in this type; NULLs when the input does not have it.
    pub fn gather(&self, name: &str, rows: &[u32], data_type: &DataType) -> Result<ArrayRef> {
        if !self.has(name) || rows.is_empty() {
            return Ok(new_null_array(data_type, rows.len()));
        }
        let mut columns: Vec<&dyn Array> = vec![];
        for batch in &self.batches {
            columns.push(column(&batch.batch, name)?.as_ref());
        }
        // NULLs come from a batch of their own.
        let nulls = new_null_array(columns[0].data_type(), 1);
        columns.push(nulls.as_ref());
        let mut batch = 0;
        let place = |row: &u32| {
            if *row == NONE {
                return (self.batches.len(), 0);
            }
            batch = self.batch_of(*row, batch);
            (batch, *row as usize - self.batches[batch].first)
        };
        gather(&columns, &rows.iter().map(place).collect::<Vec<_>>(), data_type)
    }

    /// The rows of a run as ranges of batches, in the order of their numbers.
    pub fn of_run(&self, run: usize) -> Vec<RunRows<'_>> {
        let mut stretches = vec![];
        for batch in &self.batches {
            for stretch in batch.stretches.iter().filter(|stretch| stretch.run == Some(run)) {
                stretches.push(RunRows { batch: &batch.batch, rows: stretch.rows.clone(), first: batch.first });
            }
        }
        stretches
    }

    /// The place of the batch of a row, looked for around `guess` first.
    fn batch_of(&self, row: u32, guess: usize) -> usize {
        let row = row as usize;
        // Batches of a table mostly have the same number of rows.
        let even = (row / self.batches[0].batch.num_rows()).min(self.batches.len() - 1);
        for guess in [guess, even] {
            let batch = &self.batches[guess];
            if batch.first <= row && row < batch.first + batch.batch.num_rows() {
                return guess;
            }
        }
        self.batches.partition_point(|batch| batch.first <= row) - 1
    }

    fn find_out_whether_tasks_ascend(&self, runs: usize) -> bool {
        // All rows of no run or of every run are taken as one.
        let mut last: Vec<Option<i64>> = vec![None; runs + 1];
        for batch in &self.batches {
            let Some(tasks) =
                batch.batch.column_by_name("task").and_then(|tasks| tasks.as_primitive_opt::<Int64Type>())
            else {
                return true;
            };
            if tasks.null_count() > 0 {
                return false;
            }
            for stretch in &batch.stretches {
                let last = &mut last[stretch.run.unwrap_or(runs).min(runs)];
                let of_run = &tasks.values()[stretch.rows.clone()];
                let ascend =
                    of_run.iter().zip(of_run.get(1..).unwrap_or_default()).fold(true, |all, (a, b)| all & (a < b));
                if !ascend || last.is_some_and(|last| of_run.first().is_some_and(|first| *first <= last)) {
                    return false;
                }
                *last = of_run.last().copied().or(*last);
            }
        }
        true
    }
}

/// The bytes of a batch's own rows. Words of a dictionary are shared by the batches of a table.
pub fn bytes_of(batch: &RecordBatch) -> usize {
    let of_column = |column: &dyn Array| match column.data_type() {
        DataType::Dictionary(..) => column.as_any_dictionary().keys().to_data().get_slice_memory_size(),
        _ => column.to_data().get_slice_memory_size(),
    };
    let bytes = |column: &dyn Array| of_column(column).unwrap_or_else(|_| column.get_array_memory_size());
    batch.columns().iter().map(|column| bytes(column.as_ref())).sum()
}

/// Rows of one run that stand together in a batch.
#[derive(Debug)]
pub struct RunRows<'a> {
    batch: &'a RecordBatch,
    rows: Range<usize>,
    first: usize,
}

impl<'a> RunRows<'a> {
    /// The numbers of the rows.
    pub fn numbers(&self) -> Range<usize> {
        self.first + self.rows.start..self.first + self.rows.end
    }

    /// The values of a `BIGINT` column that the input has.
    pub fn integers(&self, name: &str) -> Result<Int64Array> {
        Ok(column(self.batch, name)?.as_primitive::<Int64Type>().slice(self.rows.start, self.rows.len()))
    }

    /// The values of a `BIGINT` column without NULLs.
    pub fn values(&self, name: &str) -> Result<&'a [i64]> {
        Ok(&column(self.batch, name)?.as_primitive::<Int64Type>().values()[self.rows.clone()])
    }
}

/// A `BIGINT` column of an input, looked up by row.
#[derive(Debug)]
pub struct Integers<'a> {
    rows: &'a Rows,
    columns: Vec<&'a Int64Array>,
}

impl Integers<'_> {
    /// The value in a row.
    pub fn get(&self, row: u32) -> Option<i64> {
        self.get_near(row, 0)
    }

    /// The same, looked for in this batch first.
    pub fn get_near(&self, row: u32, batch: usize) -> Option<i64> {
        let batch = self.rows.batch_of(row, batch);
        let place = row as usize - self.rows.batches[batch].first;
        self.columns[batch].is_valid(place).then(|| self.columns[batch].value(place))
    }
}

/// The order of rows that are otherwise equal.
#[derive(Debug)]
pub struct Ties<'a>(Option<Integers<'a>>);

impl Ties<'_> {
    /// Ties settled by the numbers of rows.
    pub fn by_row() -> Self {
        Ties(None)
    }

    /// The smaller comes first. Rows without task come after the others.
    pub fn key(&self, row: u32) -> (bool, i64, u32) {
        match self.0.as_ref().map(|tasks| tasks.get(row)) {
            Some(Some(task)) => (false, task, row),
            Some(None) => (true, 0, row),
            None => (false, 0, row),
        }
    }
}

/// Removes rows in which one of the columns is NULL, and counts them.
pub(crate) fn without_null(batch: RecordBatch, names: &[&str], left_out: &mut usize) -> Result<RecordBatch> {
    let mut valid: Option<BooleanBuffer> = None;
    for name in names {
        if let Some(nulls) = column(&batch, name)?.nulls().filter(|nulls| nulls.null_count() > 0) {
            valid = Some(valid.map_or_else(|| nulls.inner().clone(), |valid| &valid & nulls.inner()));
        }
    }
    let Some(valid) = valid else { return Ok(batch) };
    *left_out += valid.len() - valid.count_set_bits();
    Ok(filter_record_batch(&batch, &BooleanArray::new(valid, None))?)
}
