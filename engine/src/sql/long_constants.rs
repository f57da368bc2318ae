//! Limits the memory of long constants that are repeated for each row.
//!
//! An operator that needs a constant as an array copies it for each row of a batch: `SELECT generate_series(1, 8000000) FROM tasks` is a
//! list of 64 MB, 8192 times. This rule runs last and cuts the batches below such an operator, so that the copies of one batch stay within
//! [`TOGETHER`]. An operator that keeps several batches reserves their memory in the pool.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt, stream};

use crate::sql::operators::{no_expressions, one_input, same_rows};

/// Constants up to this size are no matter: a batch of them is what other columns are.
const LONG: usize = 64 << 10;
/// What the copies of a constant in one batch may come to.
const TOGETHER: usize = 32 << 20;

/// Cuts batches below operators that have long constants.
#[derive(Debug)]
pub(super) struct LongConstants;

impl PhysicalOptimizerRule for LongConstants {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let longest = longest_constant(&plan)?;
            if longest < LONG || plan.children().is_empty() {
                return Ok(Transformed::no(plan));
            }
            let rows = (TOGETHER / longest).max(1);
            let inputs = plan.children().into_iter().map(|input| cut(Arc::clone(input), rows)).collect();
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            plan.replace_children(inputs, options).map(Transformed::yes)
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "LongConstants"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn cut(input: Arc<dyn ExecutionPlan>, rows: usize) -> Arc<dyn ExecutionPlan> {
    Arc::new(ShortBatchesExec { input, rows })
}

/// The bytes of the longest constant in the expressions of an operator.
fn longest_constant(plan: &Arc<dyn ExecutionPlan>) -> Result<usize> {
    let mut longest = 0;
    plan.apply_expressions(&mut |expr: &Arc<dyn PhysicalExpr>| {
        expr.apply(|part| {
            if let Some(literal) = part.downcast_ref::<Literal>() {
                longest = longest.max(ScalarValue::size(literal.value()));
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(longest)
}

/// Hands rows on in batches of few rows.
#[derive(Debug)]
struct ShortBatchesExec {
    input: Arc<dyn ExecutionPlan>,
    rows: usize,
}

impl DisplayAs for ShortBatchesExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => write!(f, "rows={}", self.rows),
            _ => write!(f, "ShortBatchesExec: rows={}", self.rows),
        }
    }
}

impl ExecutionPlan for ShortBatchesExec {
    one_input!("ShortBatchesExec", |this, input| Ok(cut(input, this.rows)));
    no_expressions!();
    same_rows!();

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.rows;
        let batches = self.input.execute(partition, context)?;
        let short = batches.map_ok(move |batch| {
            let count = batch.num_rows();
            stream::iter((0..count).step_by(rows).map(move |from| Ok(batch.slice(from, rows.min(count - from)))))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), short.try_flatten().boxed())))
    }
}
