//! Aggregates of texts and lists ask the memory pool for what they keep, and not for what they make of that.
//!
//! When the groups are done, or are written to disk since memory is short, all of them become arrays, which are sorted, at once and without
//! looking around (DataFusion 55.2). `array_agg` keeps batches and, for each row, its group and place, and makes a pair of places for each row,
//! and a copy of all values; `string_agg` and `first_value` make a value of each group and an array of all values. The first half of an
//! aggregate copies texts that are keys, too, and holds them until they are taken; the second half asks for that by itself. Nobody can stop it. So a plan is executed with an `EmittedExec` around such an aggregate: the pool that it
//! sees charges for that beforehand, and it spills or is refused while that can be done. The `EmittedExec` below it gives its input the pool
//! of the session again.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use datafusion::prelude::SessionConfig;

use crate::memory::{ObservedPool, Observer};
use crate::sql::operators::{no_expressions, one_input, same_rows};
use crate::sql::postgres_texts::is_text;

/// Bytes that are made of each that is kept.
const OF_VALUES: usize = 2;
/// The same of texts that are keys or are counted once each.
const OF_KEYS: usize = 1;

/// Operators below which a plan is still to be cut into parts, or is done by workers, who charge there themselves: what is charged does
/// not travel.
const DONE_ELSEWHERE: [&str; 2] = ["ClusterExec", "OpenedExec"];

/// The plan, whose aggregates of texts and lists ask for what they make.
///
/// # Errors
/// None in practice: operators take children that are as theirs were.
pub(crate) fn with_charged_values(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if DONE_ELSEWHERE.contains(&plan.name()) {
        return Ok(plan);
    }
    let copies = plan.downcast_ref::<AggregateExec>().map_or(Ok(0), copies_of)?;
    let around = |input, side| Arc::new(EmittedExec { input, side }) as Arc<dyn ExecutionPlan>;
    let children = plan.children().into_iter().map(|child| {
        let child = with_charged_values(Arc::clone(child))?;
        Ok(if copies > 0 { around(child, Side::Below) } else { child })
    });
    let children = children.collect::<Result<Vec<_>>>()?;
    let plan = replace_children_if_necessary(plan, children)?;
    Ok(if copies > 0 { around(plan, Side::Above { copies }) } else { plan })
}

/// How many bytes are made of each that an aggregate keeps, beside those that it asks for.
fn copies_of(aggregate: &AggregateExec) -> Result<usize> {
    let schema = aggregate.input_schema();
    let keys: Vec<_> = aggregate.group_expr().expr().iter().map(|(key, _)| Arc::clone(key)).collect();
    let is_first_half = *aggregate.mode() == AggregateMode::Partial && !keys.is_empty();
    let mut copies = if is_first_half && any_text(&keys, &schema)? { OF_KEYS } else { 0 };
    for function in aggregate.aggr_expr() {
        let (is_list, is_ordered) = (function.fun().name() == "array_agg", !function.order_bys().is_empty());
        copies = copies.max(match is_list {
            // In an order, or without duplicates, it is another accumulator, which asks for too much as it is.
            true if is_ordered || function.is_distinct() => 0,
            true => OF_VALUES,
            false if !is_first_half || !any_text(&function.expressions(), &schema)? => 0,
            false if function.is_distinct() => OF_KEYS,
            false => OF_VALUES,
        });
    }
    Ok(copies)
}

fn any_text(values: &[Arc<dyn PhysicalExpr>], schema: &Schema) -> Result<bool> {
    for value in values {
        if is_text(&value.data_type(schema)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The context with another configuration and runtime.
pub(crate) fn with_config(context: &TaskContext, config: SessionConfig, runtime: Arc<RuntimeEnv>) -> TaskContext {
    with_functions(context, context.scalar_functions().clone()).with_session_config(config).with_runtime(runtime)
}

/// The context with other functions of values.
pub(crate) fn with_functions(context: &TaskContext, functions: HashMap<String, Arc<ScalarUDF>>) -> TaskContext {
    TaskContext::new(
        context.task_id(),
        context.session_id(),
        context.session_config().clone(),
        functions,
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        context.runtime_env(),
    )
}

/// The context with another memory pool.
pub(crate) fn with_pool(context: &TaskContext, pool: Arc<dyn MemoryPool>) -> TaskContext {
    let runtime = RuntimeEnv { memory_pool: pool, ..context.runtime_env().as_ref().clone() };
    with_config(context, context.session_config().clone(), Arc::new(runtime))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Above { copies: usize },
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
            (Side::Above { copies }, _) => {
                // It goes when the groups are spilled, so it has a share of what those have that can.
                let memory = MemoryConsumer::new("what groups become").with_can_spill(true).register(pool);
                let observer = Copied { memory, copies };
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
struct Copied {
    memory: MemoryReservation,
    /// How many there are.
    copies: usize,
}

impl Observer for Copied {
    fn ask(&self, bytes: usize) -> Result<()> {
        self.memory.try_grow(bytes.saturating_mul(self.copies))
    }

    fn take(&self, bytes: usize) {
        self.memory.grow(bytes.saturating_mul(self.copies));
    }

    fn give_back(&self, bytes: usize) {
        self.memory.shrink(bytes.saturating_mul(self.copies));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::prelude::SessionContext;

    use super::*;

    /// What is reserved, and the most that was.
    #[derive(Debug, Clone, Default)]
    struct Peak(Arc<Mutex<(usize, usize)>>);

    impl Observer for Peak {
        fn ask(&self, bytes: usize) -> Result<()> {
            self.take(bytes);
            Ok(())
        }

        fn take(&self, bytes: usize) {
            let mut peak = self.0.lock().expect("nobody panics");
            peak.0 += bytes;
            peak.1 = peak.1.max(peak.0);
        }

        fn give_back(&self, bytes: usize) {
            self.0.lock().expect("nobody panics").0 -= bytes;
        }
    }

    /// How many groups 100 000 rows have, with so much memory, and how much was asked for.
    async fn groups(columns: &str, memory: usize, charged: bool) -> Result<(usize, usize)> {
        let peak = Peak::default();
        let pool = ObservedPool { pool: Arc::new(GreedyMemoryPool::new(memory)), observer: peak.clone() };
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).build_arc()?;
        let context = SessionContext::new_with_config_rt(SessionConfig::new().with_target_partitions(2), runtime);
        let sql = format!("SELECT {columns} FROM (SELECT unnest(range(100000)) AS v) GROUP BY 1");
        let plan = context.sql(&sql).await?.create_physical_plan().await?;
        let plan = if charged { with_charged_values(plan)? } else { plan };
        let batches = datafusion::physical_plan::collect(plan, context.task_ctx()).await?;
        let (left, most) = *peak.0.lock().expect("nobody panics");
        assert_eq!(left, 0);
        Ok((batches.iter().map(|batch| batch.num_rows()).sum(), most))
    }

    #[tokio::test]
    async fn what_lists_are_made_of_is_asked_for() {
        const LISTS: &str = "v % 7, array_agg(v)";
        assert_eq!(groups(LISTS, 64 << 20, true).await.expect("memory").0, 7);
        // What is kept would fit.
        assert_eq!(groups(LISTS, 2_400_000, false).await.expect("memory").0, 7);
        groups(LISTS, 2_400_000, true).await.expect_err("no memory");
    }

    #[tokio::test]
    async fn what_texts_become_is_asked_for() {
        let of_texts = [
            ("v % 7, string_agg(repeat('x', 30), ',')", true),
            ("v % 50000, max(repeat(CAST(v AS VARCHAR), 10))", true),
            ("repeat(CAST(v % 50000 AS VARCHAR), 10), count(*)", true),
            ("v % 50000, count(*)", false),
        ];
        for (columns, has_texts) in of_texts {
            let (expected, kept) = groups(columns, 1 << 30, false).await.expect("memory");
            let (found, asked) = groups(columns, 1 << 30, true).await.expect("memory");
            assert_eq!(found, expected, "{columns}");
            // Not all of both halves is there at once.
            assert_eq!(asked > kept + kept / 4, has_texts, "{columns}: {asked} bytes, where {kept} are kept");
        }
    }
}
