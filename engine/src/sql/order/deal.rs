//! `DealExec`: distributes rows to partitions in a fixed order: each partition takes the rows of several inputs in turns.
//!
//! It replaces DataFusion's `RepartitionExec`, whose partitions take rows as they arrive. DataFusion's own code computes which row goes
//! where, so both may stand below one join. See [`super::waiting`].

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, EvaluationType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time};
use datafusion::physical_plan::repartition::BatchPartitioner;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::StreamExt;

use super::in_order::End;
use super::waiting::{AHEAD_BYTES, Reader, Source, Turns};
use crate::sql::operators::one_input;

/// Deals rows out; see the module.
#[derive(Debug)]
pub(crate) struct DealExec {
    input: Arc<dyn ExecutionPlan>,
    partitioning: Partitioning,
    turns: Turns,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    running: Mutex<Option<Running>>,
}

/// The tasks of all partitions; executing the first partition starts them.
#[derive(Debug)]
struct Running {
    /// The readers of partitions that were not executed yet. Tasks end with the last reader, since the plan itself may live longer.
    readers: Vec<Option<(Reader, Arc<Tasks>)>>,
}

/// One per input.
type Tasks = Mutex<Vec<Option<SpawnedTask<()>>>>;

impl DealExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, partitioning: Partitioning, turns: Turns) -> DealExec {
        let mut equivalences = input.equivalence_properties().clone();
        equivalences.clear_orderings();
        equivalences.clear_per_partition_constants();
        let properties =
            PlanProperties::new(equivalences, partitioning.clone(), input.pipeline_behavior(), input.boundedness())
                .with_evaluation_type(EvaluationType::Eager)
                .with_scheduling_type(SchedulingType::Cooperative);
        DealExec {
            input,
            partitioning,
            turns,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            running: Mutex::new(None),
        }
    }

    pub(crate) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// The same over other rows, with as many columns.
    pub(crate) fn over(&self, input: Arc<dyn ExecutionPlan>) -> DealExec {
        DealExec::new(input, self.partitioning.clone(), self.turns)
    }

    /// Whether what decides about a row is in its columns as they are.
    pub(crate) fn deals_by_columns(&self) -> bool {
        match &self.partitioning {
            Partitioning::Hash(keys, _) => keys.iter().all(|key| key.is::<Column>()),
            _ => false,
        }
    }

    /// In which order partitions take rows.
    #[cfg(feature = "cluster")]
    pub(crate) fn turns(&self) -> Turns {
        self.turns
    }

    fn start(&self, context: &Arc<TaskContext>) -> Result<Running> {
        let inputs = self.input.output_partitioning().partition_count();
        let outputs = self.partitioning.partition_count();
        let mut tasks = Vec::with_capacity(inputs);
        let mut sources = Vec::with_capacity(inputs);
        for number in 0..inputs {
            let time = MetricBuilder::new(&self.metrics).subset_time("repartition_time", number);
            let partitioner = BatchPartitioner::try_new(self.partitioning.clone(), time.clone(), number, inputs)?;
            let batches = self.input.execute(number, Arc::clone(context))?;
            let source = Source::new(outputs, AHEAD_BYTES);
            let dealer = Dealer {
                partitioner,
                // Batches that are dealt out whole need not be put together.
                coalescers: match self.partitioning {
                    Partitioning::RoundRobinBatch(_) => vec![],
                    _ => (0..outputs)
                        .map(|_| BatchCoalescer::new(self.input.schema(), context.session_config().batch_size()))
                        .collect(),
                },
                time,
            };
            tasks.push(Some(SpawnedTask::spawn(deal(dealer, batches, Arc::clone(&source), Arc::clone(context)))));
            sources.push(source);
        }
        let tasks: Arc<Tasks> = Arc::new(Mutex::new(tasks));
        let reader = |number| Some((Reader::new(sources.clone(), number, self.turns), Arc::clone(&tasks)));
        Ok(Running { readers: (0..outputs).map(reader).collect() })
    }
}

impl DisplayAs for DealExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs = self.input.output_partitioning().partition_count();
        match format {
            DisplayFormatType::TreeRender => write!(f, "partitioning={}", self.partitioning),
            _ => write!(f, "DealExec: partitioning={}, input_partitions={inputs}", self.partitioning),
        }
    }
}

impl ExecutionPlan for DealExec {
    one_input!("DealExec", |this, input| Ok(Arc::new(DealExec::new(input, this.partitioning.clone(), this.turns))));

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        if let Partitioning::Hash(keys, _) = &self.partitioning {
            for key in keys {
                recursion = recursion.visit_sibling(|| visit(key))?;
            }
        }
        Ok(recursion)
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let running = match running.as_mut() {
            Some(running) => running,
            None => running.insert(self.start(&context)?),
        };
        let Some((reader, tasks)) = running.readers.get_mut(partition).and_then(Option::take) else {
            return internal_err!("DealExec: there is no partition {partition}, or it is executed twice");
        };
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let state = (reader, tasks, baseline);
        let rows = futures::stream::unfold(state, |(mut reader, tasks, baseline)| async move {
            loop {
                let batch = match reader.next().await? {
                    Ok(batch) => batch,
                    Err(ended) => {
                        let task = tasks.lock().unwrap_or_else(PoisonError::into_inner)[ended].take();
                        match task {
                            // One of the readers hears of a panic.
                            Some(task) => match task.join_unwind().await {
                                Ok(()) => continue,
                                Err(_) => exec_err!("the query was cancelled"),
                            },
                            None => continue,
                        }
                    }
                };
                if let Ok(batch) = &batch {
                    baseline.record_output(batch.num_rows());
                }
                return Some((batch, (reader, tasks, baseline)));
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

struct Dealer {
    partitioner: BatchPartitioner,
    /// Rows for each partition that are not yet a batch.
    coalescers: Vec<BatchCoalescer>,
    time: Time,
}

impl Dealer {
    fn deal(&mut self, batch: RecordBatch) -> Result<Vec<(usize, RecordBatch)>> {
        let mut ready = vec![];
        if self.coalescers.is_empty() {
            self.partitioner.partition(batch, |partition, part| {
                ready.push((partition, part));
                Ok(())
            })?;
            return Ok(ready);
        }
        let (coalescers, time) = (&mut self.coalescers, &self.time);
        self.partitioner.partition(batch, |partition, part| {
            let _timer = time.timer();
            coalescers[partition].push_batch(part)?;
            ready.extend(
                std::iter::from_fn(|| coalescers[partition].next_completed_batch()).map(|done| (partition, done)),
            );
            Ok(())
        })?;
        Ok(ready)
    }

    fn rest(mut self) -> Result<Vec<(usize, RecordBatch)>> {
        let mut ready = vec![];
        for (partition, coalescer) in self.coalescers.iter_mut().enumerate() {
            coalescer.finish_buffered_batch()?;
            ready.extend(std::iter::from_fn(|| coalescer.next_completed_batch()).map(|done| (partition, done)));
        }
        Ok(ready)
    }
}

async fn deal(dealer: Dealer, batches: SendableRecordBatchStream, source: Arc<Source>, context: Arc<TaskContext>) {
    // Also when the task panics: its readers look why.
    let _end = End(Arc::clone(&source));
    if let Err(error) = deal_all(dealer, batches, &source, &context).await {
        source.fail(&Arc::new(error));
    }
}

async fn deal_all(
    mut dealer: Dealer,
    mut batches: SendableRecordBatchStream,
    source: &Source,
    context: &TaskContext,
) -> Result<()> {
    let memory = MemoryConsumer::new("DealExec").register(context.memory_pool());
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        if batch.num_rows() > 0 && !source.send(dealer.deal(batch)?, &memory).await? {
            return Ok(());
        }
        tokio::task::consume_budget().await;
    }
    drop(batches);
    source.send(dealer.rest()?, &memory).await?;
    Ok(())
}
