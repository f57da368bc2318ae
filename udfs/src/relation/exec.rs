//! The operator of all relation functions.
//!
//! ```text
//! input 0 ┬─ partition 0 ─task─┬▶ channel ┐
//!         └─ partition 1 ─task─┘          ┼▶ compute, on a blocking thread ─▶ channel ─▶ answer
//! input 1 ── partition 0 ─task──▶ channel ┘
//! ```
//!
//! The computation has a thread of its own, so it neither stalls the runtime nor has to yield. When the answer's stream
//! is dropped, the async tasks that read the inputs are aborted, and a flag tells the computation to stop. EXPLAIN
//! ANALYZE shows `input_rows`, `output_rows`, `peak_memory` (bytes asked of the memory pool), `spilled_rows` (to files, where memory is short)
//! and `elapsed_compute`, the time without waiting for the inputs and for the reader.

use std::collections::HashSet;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Result, internal_err};
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryLimit};
use datafusion_execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion_physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, SpillMetrics,
};
use datafusion_physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements,
    PlanProperties, ReplaceChildrenOptions,
};
use futures::{Stream, StreamExt};
use tokio::sync::mpsc;

use crate::relation::RowOrder;
use crate::relation::call::{Call, Input, Options, Spills, Work};
use crate::relation::node::{RelationCall, option_value};
use crate::relation::notes::Notes;

/// Batches of the answer that wait for their reader.
const ANSWER_BATCHES: usize = 4;

/// About so many bytes of an input go to the computation at once, if they are there: waking a thread costs more than the
/// walk over a small batch.
const CHUNK_BYTES: usize = 4 << 20;

/// Batches in a chunk, whatever their width.
const CHUNK_BATCHES: std::ops::RangeInclusive<usize> = 8..=64;

/// Chunks of batches that wait between the tasks of an input and the computation.
const CHANNEL_CHUNKS: usize = 2;

/// A relation function with its inputs, as an operator with one partition.
#[derive(Debug)]
pub struct RelationExec {
    call: RelationCall,
    options: Vec<Arc<dyn PhysicalExpr>>,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    /// Whether the first input comes in [`RowOrder::Lanes`].
    by_lane: bool,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl RelationExec {
    /// The operator of a call. `options` in the order of the function's options, expressions of no columns, which have their
    /// values when the operator is executed; `schema` is the answer's.
    pub fn new(
        call: RelationCall,
        options: Vec<Arc<dyn PhysicalExpr>>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
        schema: SchemaRef,
    ) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        RelationExec {
            call,
            options,
            inputs,
            by_lane: false,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The function and which inputs were left out.
    pub fn call(&self) -> &RelationCall {
        &self.call
    }

    /// The options, in the order of the function's.
    pub fn options(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.options
    }

    /// Whether the first input comes in [`RowOrder::Lanes`].
    pub fn is_by_lane(&self) -> bool {
        self.by_lane
    }

    /// The order in which the function takes rows with the least effort.
    pub fn row_order(&self) -> RowOrder {
        self.call.function.row_order()
    }

    /// The same call, whose first input gives the rows of each location of each run in the order of their starts.
    pub fn with_first_by_lane(&self, first: Arc<dyn ExecutionPlan>) -> RelationExec {
        let inputs = std::iter::once(first).chain(self.inputs.iter().skip(1).cloned()).collect();
        RelationExec { by_lane: true, ..self.with_inputs(inputs) }
    }

    /// The same call on other inputs.
    pub fn with_inputs(&self, inputs: Vec<Arc<dyn ExecutionPlan>>) -> RelationExec {
        let schema = Arc::clone(self.properties.eq_properties.schema());
        let new = RelationExec::new(self.call.clone(), self.options.clone(), inputs, schema);
        RelationExec { by_lane: self.by_lane, ..new }
    }
}

impl DisplayAs for RelationExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => write!(f, "call={}", self.call.describe(&self.options)),
            _ => {
                let order = if self.by_lane { ", lane by lane" } else { "" };
                write!(f, "RelationExec: {}{order}", self.call.describe(&self.options))
            }
        }
    }
}

impl ExecutionPlan for RelationExec {
    fn name(&self) -> &str {
        "RelationExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition; self.inputs.len()])
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for option in &self.options {
            recursion = recursion.visit_sibling(|| visit(option))?;
        }
        Ok(recursion)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.with_inputs(children)))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.with_inputs(children)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("RelationExec has one partition, number {partition} was asked for");
        }
        let mut stream =
            RecordBatchReceiverStreamBuilder::new(Arc::clone(self.properties.eq_properties.schema()), ANSWER_BATCHES);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let batch_rows = context.session_config().batch_size().max(1);
        let function = &self.call.function;
        let given = function.options().into_iter().zip(&self.options);
        let values = given.map(|(spec, option)| option_value(function.as_ref(), spec, option.as_ref()));
        let options = Options::new(function, values.collect::<Result<_>>()?);
        let mut inputs = Vec::with_capacity(self.inputs.len());
        for ((input, omitted), spec) in self.inputs.iter().zip(&self.call.omitted).zip(function.inputs()) {
            let partitioned = partitioned(input);
            let partitions = partitioned.output_partitioning().partition_count();
            let (sender, receiver) = mpsc::channel(CHANNEL_CHUNKS);
            let part = function.part(spec.name, &options)?;
            let left_out = Arc::new(AtomicUsize::new(0));
            let rows = MetricBuilder::new(&self.metrics).counter("input_rows", partition);
            let together = chunk_batches(&input.schema(), batch_rows);
            for partition in 0..partitions {
                let batches = partitioned.execute(partition, Arc::clone(&context))?;
                let (sender, part) = (sender.clone(), part.clone());
                let (left_out, rows) = (Arc::clone(&left_out), rows.clone());
                let batches = batches.map(move |batch| {
                    let batch = batch?;
                    rows.add(batch.num_rows());
                    match &part {
                        Some(part) => part(batch, &left_out),
                        None => Ok(batch),
                    }
                });
                stream.spawn(async move {
                    let mut chunks = batches.ready_chunks(together);
                    while let Some(chunk) = chunks.next().await {
                        let there =
                            chunk.into_iter().filter(|batch| !matches!(batch, Ok(batch) if batch.num_rows() == 0));
                        let chunk = there.collect::<Result<Vec<RecordBatch>>>();
                        if matches!(&chunk, Ok(chunk) if chunk.is_empty()) {
                            continue;
                        }
                        // The computation may end without having read everything.
                        if sender.send(chunk.map(Some)).await.is_err() {
                            return Ok(());
                        }
                    }
                    // The mark of the end. A channel that closes without those of all partitions was cut off.
                    let _reader_has_gone = sender.send(Ok(None)).await;
                    Ok(())
                });
            }
            inputs.push(Input {
                schema: input.schema(),
                omitted: *omitted,
                chunks: receiver,
                chunk: vec![].into_iter(),
                open: partitions,
                left_out,
                waited: Duration::ZERO,
                by_lane: self.by_lane && inputs.is_empty(),
                by_place: spec.goes_by_place(&input.schema()),
                ahead: None,
                stored: None,
            });
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        let name = self.call.function.name();
        let mut call = Call {
            function: Arc::clone(function),
            inputs,
            options,
            output: Arc::clone(self.properties.eq_properties.schema()),
            answers: stream.tx(),
            last: None,
            batch_rows,
            waited: Duration::ZERO,
            work: Work {
                function: name,
                cancelled: Arc::clone(&cancelled),
                memory: MemoryConsumer::new(name).register(context.memory_pool()),
                peak: MetricBuilder::new(&self.metrics).gauge("peak_memory", partition),
                notes: Notes::of(&context),
                charged: HashSet::new(),
                lasting: 0,
                limit: match context.memory_pool().memory_limit() {
                    MemoryLimit::Finite(bytes) => bytes,
                    _ => usize::MAX,
                },
                spills: Some(Spills {
                    env: context.runtime_env(),
                    metrics: SpillMetrics::new(&self.metrics, partition),
                }),
            },
        };
        let compute_time = baseline.elapsed_compute().clone();
        stream.spawn_blocking(move || {
            let started = Instant::now();
            let function = Arc::clone(&call.function);
            let result = function.compute(&mut call).and_then(|()| call.finish());
            let waited = call.waited + call.inputs.iter().map(|input| input.waited).sum::<Duration>();
            compute_time.add_duration(started.elapsed().saturating_sub(waited));
            result
        });
        Ok(Box::pin(Answer { rows: stream.build(), cancelled, baseline }))
    }
}

/// How many batches go together. A text is taken for 64 bytes.
fn chunk_batches(schema: &Schema, batch_rows: usize) -> usize {
    let width = |field: &Arc<Field>| match field.data_type() {
        DataType::Dictionary(keys, _) => keys.primitive_width(),
        other => other.primitive_width(),
    };
    let row_bytes: usize = schema.fields().iter().map(|field| width(field).unwrap_or(64)).sum();
    let batches = CHUNK_BYTES / row_bytes.max(1).saturating_mul(batch_rows);
    batches.clamp(*CHUNK_BATCHES.start(), *CHUNK_BATCHES.end())
}

/// The part of the plan that is read: where an input only merges its partitions, the partitions themselves, which saves
/// every batch a channel and a task that passes it on. The plan keeps the merging operator: a distributed engine splits
/// plans there.
fn partitioned(input: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    match input.downcast_ref::<CoalescePartitionsExec>() {
        Some(together) if together.fetch().is_none() => together.input(),
        _ => input,
    }
}

/// The stream of the answer; dropping it stops the computation.
struct Answer {
    rows: SendableRecordBatchStream,
    cancelled: Arc<AtomicBool>,
    baseline: BaselineMetrics,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Stream for Answer {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.rows.poll_next_unpin(context);
        self.baseline.record_poll(next)
    }
}

impl RecordBatchStream for Answer {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_batches_go_together_in_larger_numbers() {
        let integer = Field::new("source", DataType::Int64, false);
        let word = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let links =
            Schema::new(vec![integer.clone(), integer.clone().with_name("target"), Field::new("kind", word, true)]);
        let wide: Vec<Field> = (0..9).map(|at| Field::new(format!("args_{at}"), DataType::Utf8, true)).collect();
        let batches = |schema: &Schema| chunk_batches(schema, 8192);
        assert_eq!(batches(&links), (4 << 20) / (20 * 8192));
        assert_eq!(batches(&Schema::new(wide)), 8);
        assert_eq!(batches(&Schema::new(vec![integer])), 64);
        assert_eq!(batches(&Schema::empty()), 64);
    }
}
