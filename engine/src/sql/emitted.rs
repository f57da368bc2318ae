//! `array_agg` asks the memory pool for what it keeps, and not for what it makes of that.
//!
//! It keeps batches and, for each row, its group and place (DataFusion 55.2, `ArrayAggGroupsAccumulator`). When the groups are done it
//! makes a pair of places for each row, and a copy of all values, at once and without looking around: half as much again as it had, which
//! nobody can stop. So a plan is executed with an [`EmittedExec`] around such an aggregate: the pool that it sees charges for that beforehand,
//! and it spills or is refused while that can be done. The [`EmittedExec`] below it gives its input the pool of the session again.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use datafusion::prelude::SessionConfig;

use crate::memory::{ObservedPool, Observer};
use crate::sql::operators::{no_expressions, one_input, same_rows};

/// Bytes that are made of each that is kept.
const COPIES: usize = 2;

/// The plan, whose aggregates with lists ask for what they make.
///
/// # Errors
/// None in practice: operators take children that are as theirs were.
pub(crate) fn with_charged_lists(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let makes_lists = plan.downcast_ref::<AggregateExec>().is_some_and(|aggregate| {
        // In an order, or without duplicates, it is another accumulator, which asks for too much as it is.
        let is_plain =
            |function: &Arc<AggregateFunctionExpr>| function.order_bys().is_empty() && !function.is_distinct();
        aggregate.aggr_expr().iter().any(|function| function.fun().name() == "array_agg" && is_plain(function))
    });
    let around = |input, side| Arc::new(EmittedExec { input, side }) as Arc<dyn ExecutionPlan>;
    let children = plan.children().into_iter().map(|child| {
        let child = with_charged_lists(Arc::clone(child))?;
        Ok(if makes_lists { around(child, Side::Below) } else { child })
    });
    let children = children.collect::<Result<Vec<_>>>()?;
    let plan = replace_children_if_necessary(plan, children)?;
    Ok(if makes_lists { around(plan, Side::Above) } else { plan })
}

/// The context with another configuration and runtime.
pub(crate) fn with_config(context: &TaskContext, config: SessionConfig, runtime: Arc<RuntimeEnv>) -> TaskContext {
    TaskContext::new(
        context.task_id(),
        context.session_id(),
        config,
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        runtime,
    )
}

/// The context with another memory pool.
pub(crate) fn with_pool(context: &TaskContext, pool: Arc<dyn MemoryPool>) -> TaskContext {
    let runtime = RuntimeEnv { memory_pool: pool, ..context.runtime_env().as_ref().clone() };
    with_config(context, context.session_config().clone(), Arc::new(runtime))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Above,
    Below,
}

/// Hands rows on; what is below sees another memory pool. See the module.
#[derive(Debug)]
struct EmittedExec {
    input: Arc<dyn ExecutionPlan>,
    side: Side,
}

impl DisplayAs for EmittedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EmittedExec")
    }
}

impl ExecutionPlan for EmittedExec {
    one_input!("EmittedExec", |this, input| Ok(Arc::new(EmittedExec { input, side: this.side })));
    no_expressions!();
    same_rows!();

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let pool = context.memory_pool();
        let pool = match (self.side, (pool.as_ref() as &dyn Any).downcast_ref::<ObservedPool<Copied>>()) {
            (Side::Above, _) => {
                let observer = Copied(MemoryConsumer::new("array_agg").register(pool));
                Arc::new(ObservedPool { pool: Arc::clone(pool), observer }) as Arc<dyn MemoryPool>
            }
            (Side::Below, Some(observed)) => Arc::clone(&observed.pool),
            (Side::Below, None) => Arc::clone(pool),
        };
        self.input.execute(partition, Arc::new(with_pool(&context, pool)))
    }
}

/// The copies of what an operator asks for.
#[derive(Debug)]
struct Copied(MemoryReservation);

impl Observer for Copied {
    fn ask(&self, bytes: usize) -> Result<()> {
        self.0.try_grow(bytes.saturating_mul(COPIES))
    }

    fn take(&self, bytes: usize) {
        self.0.grow(bytes.saturating_mul(COPIES));
    }

    fn give_back(&self, bytes: usize) {
        self.0.shrink(bytes.saturating_mul(COPIES));
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::prelude::SessionContext;

    use super::*;

    /// How many groups of so many numbers there are, with so much memory.
    async fn lists(numbers: usize, memory: usize, charged: bool) -> Result<usize> {
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(GreedyMemoryPool::new(memory))).build_arc()?;
        let context = SessionContext::new_with_config_rt(SessionConfig::new().with_target_partitions(2), runtime);
        let sql = format!("SELECT v % 7, array_agg(v) FROM (SELECT unnest(range({numbers})) AS v) GROUP BY v % 7");
        let plan = context.sql(&sql).await?.create_physical_plan().await?;
        let plan = if charged { with_charged_lists(plan)? } else { plan };
        let batches = datafusion::physical_plan::collect(plan, context.task_ctx()).await?;
        assert_eq!(context.runtime_env().memory_pool.reserved(), 0);
        Ok(batches.iter().map(|batch| batch.num_rows()).sum())
    }

    #[tokio::test]
    async fn what_lists_are_made_of_is_asked_for() {
        const NUMBERS: usize = 100_000;
        assert_eq!(lists(NUMBERS, 64 << 20, true).await.expect("memory"), 7);
        // What is kept would fit.
        assert_eq!(lists(NUMBERS, NUMBERS * 24, false).await.expect("memory"), 7);
        lists(NUMBERS, NUMBERS * 24, true).await.expect_err("no memory");
    }
}
