//! Closed: the rows of a fragment with their end, so that a stream that was cut off is never taken for a short answer.
//!
//! ```text
//! worker   rows ─▶ ClosedExec: one more column, NULL, and a last row with {"rows": 8192, "notes": […]} in it
//! client   ─▶ OpenedExec: compares the number, takes the notes and gives the rows as they were
//! ```
//! A gRPC stream that ends without its trailers looks complete.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray, new_null_array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, Gauge, MetricBuilder};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use datafusion_distributed::DistributedTaskContext;
use futures::{StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};
use tq_udfs::relation::notes::{Notes, Said};

use super::running::{OnWorker, Threads};
use crate::sql::elsewhere::{PARTS, PARTS_DONE};
use crate::sql::emitted::{with_charged_values, with_pool};
use crate::sql::numbered::with_numbered_groups;
use crate::sql::operators::{no_expressions, one_input};
use crate::sql::stop::with_stoppable_scans;

/// Bytes of a batch that travels, about.
const BATCH_BYTES: usize = 8 << 20;

/// The column of the end; no query sees it.
const NAME: &str = "__end";

/// What the last row of a partition says.
#[derive(Debug, Serialize, Deserialize)]
struct End {
    rows: u64,
    notes: Vec<Remark>,
}

/// What a function said.
#[derive(Debug, Serialize, Deserialize)]
struct Remark {
    function: String,
    #[serde(with = "Travelling")]
    said: Said,
}

/// [`Said`] as it travels.
#[derive(Debug, Serialize, Deserialize)]
#[serde(remote = "Said")]
enum Travelling {
    Text(String),
    OfRows { count: usize, one: String, many: String },
    OfRuns { all: usize, these: Vec<String>, of_all: String, of_some: String },
}

/// How an error says that rows ended before their end came.
pub(super) const CUT_OFF: &str = "the rows of a worker ended early";

/// The schema of rows that travel.
fn closed(schema: &Schema) -> SchemaRef {
    let nullable = |field: &Arc<Field>| Arc::new(field.as_ref().clone().with_nullable(true));
    let end = Arc::new(Field::new(NAME, DataType::Utf8, true));
    let fields: Vec<_> = schema.fields().iter().map(nullable).chain([end]).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Whether arrow-flight sends a type as it is: lists of 64-bit offsets arrive as lists of 32-bit ones.
pub(super) fn travels(data_type: &DataType) -> bool {
    match data_type {
        DataType::LargeList(_) | DataType::LargeListView(_) | DataType::ListView(_) => false,
        DataType::RunEndEncoded(..) | DataType::Union(..) => false,
        DataType::List(field) | DataType::FixedSizeList(field, _) | DataType::Map(field, _) => {
            travels(field.data_type())
        }
        DataType::Struct(fields) => fields.iter().all(|field| travels(field.data_type())),
        DataType::Dictionary(_, values) => travels(values),
        _ => true,
    }
}

/// Adds the end to rows of a fragment; see the module.
#[derive(Debug)]
pub(super) struct ClosedExec {
    input: Arc<dyn ExecutionPlan>,
    /// So many tasks have rows; the input of others is not asked.
    active: usize,
    task: OfTask,
    properties: Arc<PlanProperties>,
}

/// A task on a worker: its threads are there from the first partition that is asked for to the last, since what one of them has begun may be
/// what another waits for.
#[derive(Debug, Default)]
struct OfTask(Mutex<Task>);

#[derive(Debug, Default)]
struct Task {
    /// Partitions that were asked for.
    begun: usize,
    /// The threads and what they execute.
    threads: Option<(Arc<Threads>, Arc<dyn ExecutionPlan>)>,
}

impl OfTask {
    /// The rows of a partition, computed on the task's threads.
    fn rows(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        partition: usize,
        context: &TaskContext,
        worker: &OnWorker,
    ) -> Result<SendableRecordBatchStream> {
        let mut task = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (threads, plan) = match task.threads.take() {
            Some(begun) => begun,
            None => {
                let threads = worker.threads()?;
                // They were left as words, whose numbers are those of one process.
                let plan = with_numbered_groups(Arc::clone(input))?;
                let plan = with_charged_values(with_stoppable_scans(plan, &threads.stop())?)?;
                (threads, plan)
            }
        };
        task.begun += 1;
        if task.begun < input.output_partitioning().partition_count() {
            task.threads = Some((Arc::clone(&threads), Arc::clone(&plan)));
        }
        drop(task);
        let name = worker.name.clone();
        let counted = threads.counted(context.memory_pool());
        let context = Arc::new(with_pool(context, counted));
        let rows = threads.rows(plan.schema(), move || plan.execute(partition, context))?;
        let rows = rows.map_err(move |error| of_worker(error, &name));
        Ok(Box::pin(RecordBatchStreamAdapter::new(input.schema(), rows)))
    }
}

/// Numbers of the system's errors: no space, a file beyond its limit, a quota that is used up.
const NO_ROOM: [i32; 3] = [28, 27, 122];

/// Signs of errors of this machine's files, which are others elsewhere.
const OF_FILES: [&str; 3] = ["(os error ", ": cannot read", "permission denied"];

/// What a worker lacks is said with its name: the client has a limit and a disk of its own.
fn of_worker(error: DataFusionError, name: &str) -> DataFusionError {
    let text = error.strip_backtrace();
    match error.find_root() {
        DataFusionError::ResourcesExhausted(why) if !why.contains("--max-value") => exec_datafusion_err!(
            "worker {name} has not enough memory: {}; `--memory BYTES` gives it more: that of `tq cluster worker`, with `local:N` that of this command",
            why.lines().next().unwrap_or_default()
        ),
        _ if NO_ROOM.iter().any(|number| text.contains(&format!("(os error {number})"))) => {
            exec_datafusion_err!("worker {name}: the disk of its temporary files (TMPDIR) is full")
        }
        _ if OF_FILES.iter().any(|sign| text.contains(sign)) => exec_datafusion_err!("worker {name}: {text}"),
        _ => error,
    }
}

impl ClosedExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, active: usize) -> ClosedExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(closed(&input.schema())),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        ClosedExec { input, active, task: OfTask::default(), properties: Arc::new(properties) }
    }

    pub(super) fn active(&self) -> usize {
        self.active
    }
}

impl DisplayAs for ClosedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClosedExec: tasks={}", self.active)
    }
}

impl ExecutionPlan for ClosedExec {
    one_input!("ClosedExec", |this, input| Ok(Arc::new(ClosedExec::new(input, this.active))));
    no_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let is_active = DistributedTaskContext::from_ctx(&context).task_index < self.active;
        let notes = Notes::of(&context);
        if !is_active {
            let end = end_of(&schema, 0, vec![]);
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter([end]))));
        }
        let rows = match context.session_config().get_extension::<OnWorker>() {
            Some(worker) => self.task.rows(&self.input, partition, &context, &worker)?,
            None => self.input.execute(partition, context)?,
        };
        let of_batches = Arc::clone(&schema);
        let state = (Some(rows), 0u64);
        let batches = futures::stream::try_unfold(state, move |(rows, count)| {
            let (schema, notes) = (Arc::clone(&of_batches), notes.clone());
            async move {
                let Some(mut rows) = rows else { return Ok(None) };
                if let Some(batch) = rows.next().await {
                    let batch = batch?;
                    let count = count + batch.num_rows() as u64;
                    return Ok(Some((pieces(&batch, &schema)?, (Some(rows), count))));
                }
                let notes = notes.map(|notes| notes.take_said()).unwrap_or_default();
                let notes = notes.into_iter().map(|(function, said)| Remark { function, said }).collect();
                Ok::<_, DataFusionError>(Some((vec![end_of(&schema, count, notes)?], (None, count))))
            }
        });
        let batches = batches.map_ok(|pieces| futures::stream::iter(pieces.into_iter().map(Ok))).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

/// A batch in pieces of a size that travels, with the column of the end.
fn pieces(batch: &RecordBatch, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
    let bytes = batch.get_array_memory_size();
    let rows = batch.num_rows().div_ceil(bytes.div_ceil(BATCH_BYTES).max(1)).max(1);
    let starts = (0..batch.num_rows()).step_by(rows);
    let piece = |start: usize| {
        let piece = batch.slice(start, rows.min(batch.num_rows() - start));
        let end = new_null_array(&DataType::Utf8, piece.num_rows());
        let columns = piece.columns().iter().cloned().chain([end]).collect();
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    };
    starts.map(piece).collect()
}

fn end_of(schema: &SchemaRef, rows: u64, notes: Vec<Remark>) -> Result<RecordBatch> {
    let text = serde_json::to_string(&End { rows, notes }).map_err(|error| exec_datafusion_err!("{error}"))?;
    let last = schema.fields().len() - 1;
    let null = |field: &Arc<Field>| new_null_array(field.data_type(), 1);
    let end: ArrayRef = Arc::new(StringArray::from(vec![text]));
    let columns = schema.fields().iter().take(last).map(null).chain([end]).collect();
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// Partitions that workers were asked for in this try, and those whose end has come.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) all: Gauge,
    pub(super) done: Gauge,
}

impl Parts {
    /// In these metrics, as [`PARTS`] and [`PARTS_DONE`].
    pub(super) fn of(metrics: &ExecutionPlanMetricsSet) -> Parts {
        let gauge = |name| MetricBuilder::new(metrics).global_gauge(name);
        Parts { all: gauge(PARTS), done: gauge(PARTS_DONE) }
    }

    /// Those of a plan begin.
    pub(super) fn begin(&self, plan: &Arc<dyn ExecutionPlan>) {
        self.done.set(0);
        self.all.set(parts_of(plan));
    }
}

fn parts_of(plan: &Arc<dyn ExecutionPlan>) -> usize {
    match plan.is::<OpenedExec>() {
        true => plan.output_partitioning().partition_count(),
        false => plan.children().into_iter().map(parts_of).sum(),
    }
}

/// Takes the end off again; see the module.
#[derive(Debug)]
pub(super) struct OpenedExec {
    input: Arc<dyn ExecutionPlan>,
    /// What the fragment said of its rows, of the partitions that there are now.
    properties: Arc<PlanProperties>,
    said: Arc<SaidOfParts>,
}

/// What functions said of the partitions of a fragment, to be put together.
#[derive(Debug)]
struct SaidOfParts {
    parts: Notes,
    /// Partitions that have not ended.
    open: AtomicUsize,
}

/// A partition that has not ended.
struct Open {
    /// `None` when it has.
    said: Option<Arc<SaidOfParts>>,
    sink: Option<Arc<Notes>>,
}

impl Open {
    /// Says what was said of all of them behind the last one.
    fn end(&mut self) {
        let Some(said) = self.said.take() else { return };
        if said.open.fetch_sub(1, Ordering::SeqCst) == 1
            && let Some(sink) = &self.sink
        {
            said.parts.take_said().into_iter().for_each(|(function, said)| sink.say(function, said));
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // Nobody wanted more of its rows.
        self.end();
    }
}

impl OpenedExec {
    /// `fragment` is what stood here.
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, fragment: &PlanProperties) -> OpenedExec {
        let partitions = input.output_partitioning().partition_count();
        let properties = fragment.clone().with_partitioning(Partitioning::UnknownPartitioning(partitions));
        let said = Arc::new(SaidOfParts { parts: Notes::default(), open: AtomicUsize::new(partitions) });
        OpenedExec { input, properties: Arc::new(properties), said }
    }
}

impl DisplayAs for OpenedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenedExec")
    }
}

impl ExecutionPlan for OpenedExec {
    one_input!("OpenedExec", |this, input| Ok(Arc::new(OpenedExec::new(input, &this.properties))));
    no_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let sink = Notes::of(&context);
        let parts = context.session_config().get_extension::<Parts>();
        let rows = self.input.execute(partition, context)?;
        let of_batches = Arc::clone(&schema);
        let open = Open { said: Some(Arc::clone(&self.said)), sink };
        let state = (rows, open, 0u64, false);
        let batches = futures::stream::try_unfold(state, move |(mut rows, mut open, mut count, has_ended)| {
            let (schema, parts) = (Arc::clone(&of_batches), parts.clone());
            async move {
                let batch = match (rows.next().await.transpose()?, has_ended) {
                    (Some(_), true) => return exec_err!("{CUT_OFF}: more came after their end"),
                    (Some(batch), false) => batch,
                    (None, true) => return Ok(None),
                    (None, false) => return exec_err!("{CUT_OFF}: {count} came, and no end"),
                };
                if let Some(end) = end_in(&batch)? {
                    if end.rows != count {
                        return exec_err!("{CUT_OFF}: {count} of {} came", end.rows);
                    }
                    open.said.iter().for_each(|said| {
                        end.notes.iter().for_each(|note| said.parts.say_part(note.function.clone(), note.said.clone()));
                    });
                    open.end();
                    if let Some(parts) = parts {
                        parts.done.add(1);
                    }
                    return Ok(Some((RecordBatch::new_empty(schema), (rows, open, count, true))));
                }
                count += batch.num_rows() as u64;
                Ok::<_, DataFusionError>(Some((without_end(&batch, &schema)?, (rows, open, count, false))))
            }
        });
        let batches = batches.try_filter(|batch| std::future::ready(batch.num_rows() > 0));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

fn end_in(batch: &RecordBatch) -> Result<Option<End>> {
    let Some(column) = batch.columns().last().and_then(|column| column.as_string_opt::<i32>()) else {
        return exec_err!("{CUT_OFF}: they have no column for their end");
    };
    if column.null_count() == column.len() {
        return Ok(None);
    }
    if column.len() != 1 {
        return exec_err!("{CUT_OFF}: their end has {} rows", column.len());
    }
    let end = serde_json::from_str(column.value(0));
    end.map(Some).map_err(|error| exec_datafusion_err!("{CUT_OFF}: their end is not readable: {error}"))
}

fn without_end(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns()[..batch.num_columns() - 1].to_vec();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Int64Array;
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::physical_plan::limit::LocalLimitExec;

    use super::*;

    fn rows() -> Arc<dyn ExecutionPlan> {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![numbers]).expect("rows");
        MemorySourceConfig::try_new_exec(&[vec![batch.clone()], vec![batch]], schema, None).expect("a scan")
    }

    async fn collected(plan: Arc<dyn ExecutionPlan>) -> Result<usize> {
        let batches = datafusion::physical_plan::collect(plan, Arc::new(TaskContext::default())).await?;
        Ok(batches.iter().map(RecordBatch::num_rows).sum())
    }

    #[tokio::test]
    async fn rows_come_back_as_they_were() {
        let fragment = rows();
        let closed = Arc::new(ClosedExec::new(Arc::clone(&fragment), 1));
        let opened = OpenedExec::new(closed, fragment.properties());
        assert_eq!(opened.schema(), fragment.schema());
        assert_eq!(collected(Arc::new(opened)).await.expect("rows"), 10);
    }

    #[tokio::test]
    async fn rows_that_were_cut_off_are_an_error() {
        let fragment = rows();
        let closed = Arc::new(ClosedExec::new(Arc::clone(&fragment), 1));
        // The end of each partition is missing.
        let cut = Arc::new(LocalLimitExec::new(closed, 5));
        let opened = OpenedExec::new(cut, fragment.properties());
        let error = collected(Arc::new(opened)).await.expect_err("rows are missing").to_string();
        assert!(error.contains(CUT_OFF), "{error}");
    }

    #[tokio::test]
    async fn a_task_without_rows_has_an_end() {
        let fragment = rows();
        let closed = Arc::new(ClosedExec::new(Arc::clone(&fragment), 0));
        let opened = OpenedExec::new(closed, fragment.properties());
        assert_eq!(collected(Arc::new(opened)).await.expect("no rows"), 0);
    }

    #[test]
    fn lists_of_large_offsets_do_not_travel() {
        let item = Arc::new(Field::new_list_field(DataType::Int64, true));
        assert!(travels(&DataType::List(Arc::clone(&item))));
        assert!(!travels(&DataType::LargeList(Arc::clone(&item))));
        let within = Field::new("l", DataType::LargeList(item), true);
        assert!(!travels(&DataType::Struct(vec![within].into())));
    }
}
