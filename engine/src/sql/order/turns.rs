//! Puts partitions together in turns, not as their batches arrive.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::deal::DealExec;
use super::in_order::InOrderExec;
use super::waiting::Turns;

/// The plan with one partition: several would be read in the order in which their rows arrive.
pub(crate) fn gathered(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    Ok(match plan.output_partitioning().partition_count() {
        0 | 1 => plan,
        _ => {
            let turns = turns_of(&plan);
            Arc::new(InOrderExec::new(plan, turns, None))
        }
    })
}

/// How partitions are put together: one after the other where each holds a stretch of the table, else batch by batch in turns, since the
/// rows are spread over all of them and reading one to its end would let the others pile up.
pub(super) fn turns_of(plan: &Arc<dyn ExecutionPlan>) -> Turns {
    if plan.is::<UnionExec>() {
        return Turns::Whole;
    }
    if plan.is::<RepartitionExec>() || plan.is::<DealExec>() {
        return Turns::BatchByBatch;
    }
    // The partitions of a join are those of its right side, and those of both sides where rows are dealt out by key.
    match plan.children().last() {
        Some(child) if child.output_partitioning().partition_count() > 1 => turns_of(child),
        _ => Turns::Whole,
    }
}
