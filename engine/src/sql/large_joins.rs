//! Joins whose table of keys does not fit into memory: both sides are sorted, on disk where need be, and merged.
//!
//! DataFusion (55.2) plans a hash join wherever two columns are equal. It holds one side whole and writes nothing to disk (apache/datafusion
//! 24768 is about that), so that a join of a table of 200 million rows with itself is an error at 4 GB. Where it is known beforehand
//! that the smaller side takes more, [`LargeJoins`] plans a `SortMergeJoinExec` instead, whose sorts spill. What is only estimated, as the
//! rows that pass a filter, is taken to fit: sorting both sides of a join for a few rows would cost more than it saves.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

/// The rule of DataFusion after which sides are chosen, and what they need of each other is not planned yet.
pub(super) const AFTER: &str = "join_selection";

/// Bytes of a row in a table of keys, beside the row: its hash and place, in a table that is half full.
const KEY_BYTES: usize = 36;
/// Bytes of a value that has no fixed width.
const TEXT_BYTES: usize = 24;

/// Sorts and merges what does not fit into a table of keys.
#[derive(Debug)]
pub(super) struct LargeJoins {
    /// Bytes of memory.
    limit: usize,
}

impl LargeJoins {
    /// The rule for a pool of memory.
    pub(super) fn within(limit: &MemoryLimit) -> LargeJoins {
        match limit {
            MemoryLimit::Finite(limit) => LargeJoins { limit: *limit },
            MemoryLimit::Infinite | MemoryLimit::Unknown => LargeJoins { limit: usize::MAX },
        }
    }

    /// The join as a merge, where its table of keys does not fit and merging is the same.
    fn merged(&self, join: &HashJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let schema = join.left().schema();
        let keys_are_plain =
            || join.on().iter().all(|(key, _)| key.data_type(&schema).is_ok_and(|kind| kind.is_primitive()));
        if join.null_aware || join.contains_projection() || !keys_are_plain() {
            return Ok(None);
        }
        let rows = StatisticsContext::new().compute(join.left().as_ref(), &StatisticsArgs::new())?.num_rows;
        let Precision::Exact(rows) = rows else { return Ok(None) };
        if rows.saturating_mul(row_bytes(&schema)) <= self.limit {
            return Ok(None);
        }
        let orders = vec![SortOptions::default(); join.on().len()];
        let merged = SortMergeJoinExec::try_new(
            Arc::clone(join.left()),
            Arc::clone(join.right()),
            join.on().to_vec(),
            join.filter().cloned(),
            *join.join_type(),
            orders,
            join.null_equality(),
        )?;
        Ok(Some(Arc::new(merged)))
    }
}

fn row_bytes(schema: &Schema) -> usize {
    let width = |field: &FieldRef| {
        let kind = match field.data_type() {
            DataType::Dictionary(key, _) => key,
            other => other,
        };
        kind.primitive_width().unwrap_or(TEXT_BYTES)
    };
    KEY_BYTES + schema.fields().iter().map(width).sum::<usize>()
}

impl PhysicalOptimizerRule for LargeJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let merged = match plan.downcast_ref::<HashJoinExec>() {
                Some(join) => self.merged(join)?,
                None => None,
            };
            Ok(merged.map_or_else(|| Transformed::no(plan), Transformed::yes))
        })
        .data()
    }

    fn name(&self) -> &str {
        "large_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, RecordBatch};
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::datasource::MemTable;
    use datafusion::execution::memory_pool::FairSpillPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::execution::session_state::SessionStateBuilder;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;
    use crate::sql::tests::answer;

    const ROWS: i64 = 40_000;

    /// Tables t and u of two numbers each; some keys are NULL, and u has others than t.
    fn session(memory: usize) -> SessionContext {
        let mut config = SessionConfig::new().with_target_partitions(2).with_batch_size(512);
        config.options_mut().execution.sort_spill_reservation_bytes = 20_000;
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(memory)));
        let builder = SessionStateBuilder::new().with_default_features().with_config(config);
        let builder = builder.with_runtime_env(runtime.build_arc().unwrap());
        let context = SessionContext::new_with_state(crate::sql::configure(builder).build());
        let schema = Arc::new(Schema::new(["k", "v"].map(|name| Field::new(name, DataType::Int64, true)).to_vec()));
        for (name, factor) in [("t", 7919), ("u", 104_729)] {
            let key = |row: i64| (row % 97 != 0).then_some(row * factor % (ROWS + 1000));
            let batches = (0..ROWS / 400).map(|batch| {
                let rows = || batch * 400..(batch + 1) * 400;
                let columns: [Int64Array; 2] = [rows().map(key).collect(), rows().map(Some).collect()];
                RecordBatch::try_new(Arc::clone(&schema), columns.map(|column| Arc::new(column) as _).to_vec()).unwrap()
            });
            let table = MemTable::try_new(Arc::clone(&schema), vec![batches.collect()]).unwrap();
            context.register_table(name, Arc::new(table)).unwrap();
        }
        context
    }

    #[tokio::test]
    async fn a_join_that_does_not_fit_is_merged_and_says_the_same() {
        let (small, large) = (session(1_500_000), session(1 << 30));
        for join in ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"] {
            let sum = if join.contains("SEMI") || join.contains("ANTI") { "sum(t.v)" } else { "sum(t.v) + sum(u.v)" };
            for condition in ["t.k = u.k", "t.k = u.k AND t.v < u.v"] {
                let query = format!("SELECT count(*), {sum} FROM t {join} u ON {condition}");
                let plan = answer(&small, &format!("EXPLAIN {query}")).await;
                assert!(plan.contains("SortMergeJoin"), "{plan}");
                let plan = answer(&large, &format!("EXPLAIN {query}")).await;
                assert!(plan.contains("HashJoin"), "{plan}");
                assert_eq!(answer(&small, &query).await, answer(&large, &query).await, "{query}");
            }
        }
        // How many rows pass is not known.
        let few =
            answer(&small, "EXPLAIN SELECT count(*) FROM (SELECT * FROM t WHERE v = 7) t JOIN u ON t.k = u.k").await;
        assert!(few.contains("HashJoin"), "{few}");
    }
}
