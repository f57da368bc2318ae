//! What a relation function sees while it runs: its inputs as batches, its options, and [`Work`], through which it
//! accounts for memory, hears that the query was cancelled, and leaves notes.
//!
//! The function runs on a thread on which it may block. Inputs arrive through short bounded channels: an input that is
//! not read yet waits and is not buffered.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, Schema, SchemaRef};
use datafusion_common::{Result, ScalarValue, exec_err, internal_err};
use datafusion_execution::memory_pool::MemoryReservation;
use datafusion_execution::runtime_env::RuntimeEnv;
use datafusion_physical_plan::SpillManager;
use datafusion_physical_plan::metrics::{Gauge, SpillMetrics};
use tokio::sync::mpsc::{Receiver, Sender};

use crate::relation::RelationFunction;
use crate::relation::notes::{Notes, Said};
use crate::relation::stored::{Stored, StoredBatches};

/// One run of a relation function.
#[derive(Debug)]
pub struct Call {
    pub(super) function: Arc<dyn RelationFunction>,
    pub(super) inputs: Vec<Input>,
    /// The values of the options.
    pub options: Options,
    pub(super) output: SchemaRef,
    pub(super) answers: Sender<Result<RecordBatch>>,
    /// The rows that were emitted last. They wait for what the function says beside them, so that who reads them can know it.
    pub(super) last: Option<RecordBatch>,
    pub(super) batch_rows: usize,
    pub(super) waited: Duration,
    /// Memory, cancelling, notes.
    pub work: Work,
}

impl Call {
    /// The input of this name, together with [`Work`]: callers usually need both.
    pub fn input(&mut self, name: &str) -> Result<(&mut Input, &mut Work)> {
        match self.function.inputs().iter().position(|input| input.name == name) {
            Some(place) => Ok((&mut self.inputs[place], &mut self.work)),
            None => internal_err!("{} has no input `{name}`", self.function.name()),
        }
    }

    /// The function's name, for errors.
    pub fn name(&self) -> &'static str {
        self.function.name()
    }

    /// The schema of the answer: `run` (except across runs), then the function's columns.
    pub fn output(&self) -> &SchemaRef {
        &self.output
    }

    /// How many rows a batch has in this session.
    pub fn batch_rows(&self) -> usize {
        self.batch_rows
    }

    /// Sends rows of the answer on, in batches of the session's size; the last of them wait for the next ones or for the end. Blocks until
    /// there is room.
    pub fn emit(&mut self, columns: Vec<ArrayRef>) -> Result<()> {
        let rows = RecordBatch::try_new(Arc::clone(&self.output), columns)?;
        for from in (0..rows.num_rows()).step_by(self.batch_rows) {
            let batch = rows.slice(from, self.batch_rows.min(rows.num_rows() - from));
            if let Some(before) = self.last.replace(batch) {
                self.send(before)?;
            }
        }
        Ok(())
    }

    /// Sends the last rows: there is nothing more to say beside them.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.last.take().map_or(Ok(()), |last| self.send(last))
    }

    fn send(&mut self, batch: RecordBatch) -> Result<()> {
        let started = Instant::now();
        let sent = self.answers.blocking_send(Ok(batch));
        self.waited += started.elapsed();
        if sent.is_err() {
            // The reader has gone: there is nothing left to do, and `check` says so next.
            self.work.cancelled.store(true, Ordering::Relaxed);
            return self.work.check();
        }
        Ok(())
    }
}

/// The values of a call's options.
#[derive(Debug, Clone)]
pub struct Options {
    function: Arc<dyn RelationFunction>,
    values: Vec<ScalarValue>,
}

impl Options {
    /// `values` in the order of the function's options, of their types.
    pub(super) fn new(function: &Arc<dyn RelationFunction>, values: Vec<ScalarValue>) -> Options {
        Options { function: Arc::clone(function), values }
    }

    /// The value of an option; it has the option's type, and is NULL only when that was given or is the default.
    pub fn value(&self, name: &str) -> Result<&ScalarValue> {
        match self.function.options().iter().position(|option| option.name == name) {
            Some(place) => Ok(&self.values[place]),
            None => internal_err!("{} has no option `{name}`", self.function.name()),
        }
    }

    /// The value of a BOOLEAN option; NULL is `false`.
    pub fn flag(&self, name: &str) -> Result<bool> {
        Ok(matches!(self.value(name)?, ScalarValue::Boolean(Some(true))))
    }

    /// The value of a BIGINT option.
    pub fn integer(&self, name: &str) -> Result<Option<i64>> {
        match self.value(name)? {
            ScalarValue::Int64(value) => Ok(*value),
            other => internal_err!("option `{name}` is {other:?}, not a BIGINT"),
        }
    }

    /// The value of a DOUBLE option.
    pub fn double(&self, name: &str) -> Result<Option<f64>> {
        match self.value(name)? {
            ScalarValue::Float64(value) => Ok(*value),
            other => internal_err!("option `{name}` is {other:?}, not a DOUBLE"),
        }
    }

    /// The value of a VARCHAR option.
    pub fn text(&self, name: &str) -> Result<Option<&str>> {
        match self.value(name)? {
            ScalarValue::Utf8(value) => Ok(value.as_deref()),
            other => internal_err!("option `{name}` is {other:?}, not a VARCHAR"),
        }
    }
}

fn first_value(batch: &RecordBatch, name: &str) -> Option<i64> {
    let values = batch.column_by_name(name)?.as_primitive_opt::<Int64Type>()?;
    (!values.is_empty() && values.is_valid(0)).then(|| values.value(0))
}

/// An input of a call.
#[derive(Debug)]
pub struct Input {
    pub(super) schema: SchemaRef,
    pub(super) omitted: bool,
    /// Some batches at a time; `None` is the end of a partition.
    pub(super) chunks: Receiver<Result<Option<Vec<RecordBatch>>>>,
    /// Batches that came and were not asked for yet.
    pub(super) chunk: std::vec::IntoIter<RecordBatch>,
    /// How many partitions have not ended.
    pub(super) open: usize,
    pub(super) left_out: Arc<AtomicUsize>,
    pub(super) waited: Duration,
    /// What was asked of the memory pool for batches that were read ahead, and how much of it each of them gives back.
    pub(super) ahead: Option<(MemoryReservation, usize)>,
    /// Whether the rows of each lane come in the order of their starts.
    pub(super) by_lane: bool,
    /// Whether the rows stay in the order in which they come.
    pub(super) by_place: bool,
    /// The rows of the runs at hand, where those of all runs do not fit in memory.
    pub(super) stored: Option<(Stored, StoredBatches)>,
}

impl Input {
    /// The columns that are delivered: `run` if the input has runs, the needed ones, and those optional ones that exist
    /// and are used.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Whether the input is split into runs.
    pub fn has_runs(&self) -> bool {
        self.schema.column_with_name("run").is_some()
    }

    /// Whether the call left the input out, so that its rows are those of the default table.
    pub fn was_omitted(&self) -> bool {
        self.omitted
    }

    /// Whether the rows of each location of each run come in the order of their starts, those without start anywhere: only for functions
    /// that ask for [`RowOrder::Lanes`](crate::relation::RowOrder::Lanes), and not always.
    pub fn is_by_lane(&self) -> bool {
        self.by_lane
    }

    /// Its batches in the order of the trace, whenever the table is in that order; as they came where places settle ties (`InputSpec::goes_by_place`).
    pub(super) fn in_order(&self, mut batches: Vec<RecordBatch>) -> Vec<RecordBatch> {
        if !self.by_place {
            batches.sort_by_key(|batch| (first_value(batch, "task"), first_value(batch, "start")));
        }
        batches
    }

    /// How many rows [`RelationFunction::part`] has counted as left out of the batches that came so far.
    pub fn left_out(&self) -> usize {
        self.left_out.load(Ordering::Relaxed)
    }

    /// The rows as they stand on disk, if they do: they can be read again from there.
    pub fn stored(&self) -> Option<&Stored> {
        self.stored.as_ref().map(|(stored, _)| stored)
    }

    /// Gives batches, all of the input, to be read once more.
    pub(super) fn rewind_to(&mut self, batches: Vec<RecordBatch>) {
        self.chunk = batches.into_iter();
    }

    /// The next batch, never an empty one; `None` at the end. Batches come in no particular order.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Some((_, batches)) = &mut self.stored {
            return batches.next().transpose();
        }
        if let Some(batch) = self.chunk.next() {
            if let Some((ahead, each)) = &self.ahead {
                ahead.shrink(ahead.size().min(*each));
            }
            return Ok(Some(batch));
        }
        self.ahead = None;
        let started = Instant::now();
        let next = self.receive();
        self.waited += started.elapsed();
        next
    }

    /// Adds the next batches, with so many rows in all or a few more, and accounts for them. Returns whether the input has ended.
    pub fn next_batches(&mut self, rows: usize, batches: &mut Vec<RecordBatch>, work: &mut Work) -> Result<bool> {
        let mut more = 0;
        while more < rows {
            work.check()?;
            let Some(batch) = self.next_batch()? else { return Ok(true) };
            work.keep(&batch)?;
            more += batch.num_rows();
            batches.push(batch);
        }
        Ok(false)
    }

    fn receive(&mut self) -> Result<Option<RecordBatch>> {
        while self.open > 0 {
            match self.chunks.blocking_recv() {
                Some(Ok(Some(chunk))) => {
                    self.chunk = chunk.into_iter();
                    if let Some(batch) = self.chunk.next() {
                        return Ok(Some(batch));
                    }
                }
                Some(Ok(None)) => self.open -= 1,
                Some(Err(error)) => return Err(error),
                // The end was not marked, so the task that reads the input was stopped.
                None => return exec_err!("the query was cancelled"),
            }
        }
        Ok(None)
    }
}

/// The column of a batch, by name.
pub fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef> {
    match batch.column_by_name(name) {
        Some(column) => Ok(column),
        None => internal_err!("no column `{name}` among {:?}", batch.schema().fields()),
    }
}

/// Memory, cancelling and notes of a call.
#[derive(Debug)]
pub struct Work {
    pub(super) function: &'static str,
    pub(super) cancelled: Arc<AtomicBool>,
    pub(super) memory: MemoryReservation,
    pub(super) peak: Gauge,
    pub(super) notes: Option<Arc<Notes>>,
    pub(super) charged: HashSet<usize>,
    /// Bytes that outlive the part of the rows for which they were asked.
    pub(super) lasting: usize,
    pub(super) limit: usize,
    pub(super) spills: Option<Spills>,
}

/// Where rows go that do not fit in memory.
#[derive(Debug, Clone)]
pub(super) struct Spills {
    pub(super) env: Arc<RuntimeEnv>,
    pub(super) metrics: SpillMetrics,
}

impl Work {
    /// Work without a memory limit, a way to cancel it, or a receiver of notes.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Work {
        Work::limited_for_tests(usize::MAX)
    }

    /// The same, told that the memory pool has so many bytes in all.
    #[cfg(test)]
    pub(crate) fn limited_for_tests(limit: usize) -> Work {
        use datafusion_execution::memory_pool::{MemoryConsumer, MemoryPool, UnboundedMemoryPool};
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        Work {
            function: "test",
            cancelled: Arc::default(),
            memory: MemoryConsumer::new("test").register(&pool),
            peak: Gauge::new(),
            notes: None,
            charged: HashSet::new(),
            lasting: 0,
            limit,
            spills: None,
        }
    }

    /// The function's name.
    pub fn function(&self) -> &'static str {
        self.function
    }

    /// An error when the query was cancelled. Cheap; call it every some ten thousand rows.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() { exec_err!("the query was cancelled") } else { Ok(()) }
    }

    /// Whether the query was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Asks the memory pool for this many bytes, before they are allocated. They are given back when the call ends.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        self.memory.try_grow(bytes)?;
        self.peak.set_max(self.memory.size());
        Ok(())
    }

    /// How many bytes have been asked for and not been given back.
    pub fn size(&self) -> usize {
        self.memory.size()
    }

    /// The same for what is kept when the rows of one of several [`Parts`](crate::relation::parts::Parts) go.
    pub fn grow_lasting(&mut self, bytes: usize) -> Result<()> {
        self.grow(bytes)?;
        self.lasting += bytes;
        Ok(())
    }

    /// How many bytes were asked for by [`Work::grow_lasting`].
    pub(super) fn lasting(&self) -> usize {
        self.lasting
    }

    /// How many bytes the memory pool has in all.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Whether there is a place for temporary files.
    pub(super) fn can_spill(&self) -> bool {
        self.spills.as_ref().is_some_and(|spills| spills.env.disk_manager.tmp_files_enabled())
    }

    /// Temporary files for rows of a schema; `None` where there is no place for them.
    pub(super) fn spills(&self, schema: SchemaRef) -> Option<SpillManager> {
        let spills = self.spills.as_ref().filter(|_| self.can_spill())?;
        Some(SpillManager::new(Arc::clone(&spills.env), spills.metrics.clone(), schema))
    }

    /// Gives back all but so many bytes.
    pub(super) fn forget(&mut self, but: usize) {
        self.shrink(self.memory.size().saturating_sub(but));
    }

    /// The same, and no batch is kept any more.
    pub(crate) fn forget_rows(&mut self, but: usize) {
        self.forget(but);
        self.charged.clear();
    }

    /// Hands what was asked for beyond so many bytes to somebody else, who gives it back; no batch is kept any more.
    pub(super) fn split_off(&mut self, but: usize) -> MemoryReservation {
        self.charged.clear();
        self.memory.split(self.memory.size().saturating_sub(but))
    }

    /// Gives bytes back to the memory pool.
    pub fn shrink(&mut self, bytes: usize) {
        self.memory.shrink(bytes.min(self.memory.size()));
    }

    /// Accounts for a batch that is kept. Batches of a table in memory are slices of shared buffers: each buffer is
    /// charged once, however many batches point into it.
    pub fn keep(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut bytes = 0;
        for column in batch.columns() {
            fresh_bytes(&column.to_data(), &mut self.charged, &mut bytes);
        }
        if bytes > 0 { self.grow(bytes) } else { Ok(()) }
    }

    /// Leaves a note for the user.
    pub fn say(&self, said: Said) {
        if let Some(notes) = &self.notes {
            notes.say(self.function.to_owned(), said);
        }
    }

    /// Leaves a note for the user: a sentence without full stop.
    pub fn note(&self, text: impl Into<String>) {
        self.say(Said::Text(text.into()));
    }

    /// Says of how many rows something holds, if it does of any: `1 task was left out`, `7 tasks were left out`.
    pub fn note_count(&self, count: usize, one: &str, many: &str) {
        if count > 0 {
            self.say(Said::OfRows { count, one: one.to_owned(), many: many.to_owned() });
        }
    }
}

fn fresh_bytes(data: &ArrayData, charged: &mut HashSet<usize>, bytes: &mut usize) {
    let nulls = data.nulls().map(|nulls| nulls.buffer());
    for buffer in data.buffers().iter().chain(nulls) {
        if charged.insert(buffer.data_ptr().as_ptr() as usize) {
            *bytes += buffer.capacity();
        }
    }
    for child in data.child_data() {
        fresh_bytes(child, charged, bytes);
    }
}
