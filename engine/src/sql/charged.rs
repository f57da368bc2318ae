//! Operators that keep their input without asking the memory pool get it through one that asks.
//!
//! `WindowAggExec` of DataFusion 55.2 holds all batches of a partition, puts them together into one and computes on that, and
//! none of it is charged (apache/datafusion 10073 is about its memory, and open). The rule [`ChargeWindows`] puts a
//! [`ChargedExec`] below it: it passes batches on and asks for what they take, until the operator is done with all of them.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::WindowAggExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ReplaceChildrenOptions,
};
use futures::StreamExt;
use tq_udfs::relation::rows::bytes_of;

use crate::sql::operators::{no_expressions, one_input, same_rows};

/// The batches of the input, and the one that they become.
const COPIES: usize = 2;

/// Puts a `ChargedExec` below window functions that keep their whole input.
#[derive(Debug)]
pub(super) struct ChargeWindows;

impl PhysicalOptimizerRule for ChargeWindows {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            if !plan.is::<WindowAggExec>() {
                return Ok(Transformed::no(plan));
            }
            let inputs = plan.children().into_iter().map(|input| {
                let charged: Arc<dyn ExecutionPlan> = match input.is::<ChargedExec>() {
                    true => Arc::clone(input),
                    false => Arc::new(ChargedExec { input: Arc::clone(input), held: None }),
                };
                charged
            });
            let inputs = inputs.collect();
            let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(plan.replace_children(inputs, anew)?))
        })
        .data()
    }

    fn name(&self) -> &str {
        "charge_windows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Passes batches on and asks the pool for them until the stream is dropped; or holds what was asked before.
#[derive(Debug)]
pub(crate) struct ChargedExec {
    input: Arc<dyn ExecutionPlan>,
    /// What was asked for when the input was made, as long as the plan lives: batches are not charged again.
    held: Option<Arc<MemoryReservation>>,
}

impl ChargedExec {
    /// The input, which lives of what `held` holds.
    pub(crate) fn holding(input: Arc<dyn ExecutionPlan>, held: MemoryReservation) -> ChargedExec {
        ChargedExec { input, held: Some(Arc::new(held)) }
    }
}

impl DisplayAs for ChargedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChargedExec")
    }
}

impl ExecutionPlan for ChargedExec {
    one_input!("ChargedExec", |this, input| Ok(Arc::new(ChargedExec { input, held: this.held.clone() })));
    no_expressions!();
    same_rows!();

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        if self.held.is_some() {
            return Ok(input);
        }
        let memory = MemoryConsumer::new("the rows of a window function").register(context.memory_pool());
        let schema = input.schema();
        let charged = input.map(move |batch| {
            let batch = batch?;
            memory.try_grow(bytes_of(&batch).saturating_mul(COPIES))?;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, charged)))
    }
}
