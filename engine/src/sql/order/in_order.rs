//! `InOrderExec`: merges partitions into one, the rows of the first partition first.
//!
//! All partitions are computed at once, each by a task of its own. While the first is read, the others work ahead until
//! [`AHEAD_BYTES`] of their rows wait. See [`super::waiting`].

use std::fmt;
use std::sync::Arc;

use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{CardinalityEffect, EvaluationType, SchedulingType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::StreamExt;

use super::waiting::{AHEAD_BYTES, Reader, Source, Turns};
use crate::sql::operators::{no_expressions, one_input};

/// Puts partitions together; see the module.
#[derive(Debug)]
pub(crate) struct InOrderExec {
    input: Arc<dyn ExecutionPlan>,
    turns: Turns,
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl InOrderExec {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>, turns: Turns, fetch: Option<usize>) -> InOrderExec {
        let mut equivalences = input.equivalence_properties().clone();
        // Each partition may be sorted, all of them after each other are not.
        equivalences.clear_orderings();
        equivalences.clear_per_partition_constants();
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        )
        .with_evaluation_type(EvaluationType::Eager)
        .with_scheduling_type(SchedulingType::Cooperative);
        InOrderExec { input, turns, fetch, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
    }

    pub(crate) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }
}

impl DisplayAs for InOrderExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turns = match self.turns {
            Turns::Whole => "partitions",
            Turns::BatchByBatch => "batches",
        };
        match format {
            DisplayFormatType::TreeRender => write!(f, "turns={turns}")?,
            _ => write!(f, "InOrderExec: turns={turns}")?,
        }
        match (format, self.fetch) {
            (DisplayFormatType::TreeRender, Some(fetch)) => write!(f, "\nlimit={fetch}"),
            (_, Some(fetch)) => write!(f, ", fetch={fetch}"),
            (_, None) => Ok(()),
        }
    }
}

impl ExecutionPlan for InOrderExec {
    one_input!("InOrderExec", |this, input| Ok(Arc::new(InOrderExec::new(input, this.turns, this.fetch))));
    no_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("InOrderExec has one partition, number {partition} was asked for");
        }
        let partitions = self.input.output_partitioning().partition_count();
        let mut tasks = Vec::with_capacity(partitions);
        let mut sources = Vec::with_capacity(partitions);
        for partition in 0..partitions {
            let batches = self.input.execute(partition, Arc::clone(&context))?;
            let source = Source::new(1, AHEAD_BYTES);
            tasks.push(Some(SpawnedTask::spawn(work_ahead(batches, Arc::clone(&source), Arc::clone(&context)))));
            sources.push(source);
        }
        let reader = Reader::new(sources, 0, self.turns);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let state = (reader, tasks, self.fetch.unwrap_or(usize::MAX), baseline);
        let rows = futures::stream::unfold(state, |(mut reader, mut tasks, mut left, baseline)| async move {
            while left > 0 {
                let batch = match reader.next().await? {
                    Ok(batch) => batch,
                    Err(ended) => match tasks[ended].take() {
                        // The channel of a task that panicked has no end.
                        Some(task) => match task.join_unwind().await {
                            Ok(()) => continue,
                            Err(_) => exec_err!("the query was cancelled"),
                        },
                        None => continue,
                    },
                };
                let batch = batch.map(|batch| if batch.num_rows() > left { batch.slice(0, left) } else { batch });
                match &batch {
                    Ok(batch) => {
                        left -= batch.num_rows();
                        baseline.record_output(batch.num_rows());
                    }
                    Err(_) => left = 0,
                }
                if left == 0 {
                    // What works ahead stops at once, and not when somebody asks for more.
                    tasks.clear();
                }
                return Some((batch, (reader, tasks, left, baseline)));
            }
            None
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

async fn work_ahead(mut batches: SendableRecordBatchStream, source: Arc<Source>, context: Arc<TaskContext>) {
    // Also when the task panics: its reader looks why.
    let _end = End(Arc::clone(&source));
    let memory = MemoryConsumer::new("InOrderExec").register(context.memory_pool());
    while let Some(batch) = batches.next().await {
        let sent = match batch {
            Ok(batch) if batch.num_rows() == 0 => continue,
            Ok(batch) => source.send(vec![(0, batch)], &memory).await,
            Err(error) => Err(error),
        };
        match sent {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return source.fail(&Arc::new(error)),
        }
    }
}

/// Tells the readers of a source when its task has ended.
pub(super) struct End(pub(super) Arc<Source>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}
