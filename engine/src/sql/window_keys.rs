//! Keys of windows without names of their own.
//!
//! Windows of one node of a plan have the same keys: DataFusion (55.2) sorts once for them, and compares the keys as expressions. Its rule
//! for common subexpressions writes `__common_expr_1 AS upper(s)` for a key, and rules behind it take such names off, but only of the
//! windows that they change: `sum(coalesce(x, 0)) OVER w` and `count(*) OVER w` end with other keys, and in an internal error.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// Takes the names off all keys.
#[derive(Debug)]
pub(super) struct WindowKeys;

impl OptimizerRule for WindowKeys {
    fn name(&self) -> &str {
        "plain_window_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !matches!(plan, LogicalPlan::Window(_)) {
            return Ok(Transformed::no(plan));
        }
        let names = NamePreserver::new_for_projection();
        let plan = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(expr.transform_down(plain)?.update_data(|expr| name.restore(expr)))
        })?;
        if plan.transformed { plan.map_data(LogicalPlan::recompute_schema) } else { Ok(plan) }
    }
}

fn plain(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::WindowFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
    let WindowFunction { params, .. } = call.as_mut();
    let is_named = |key: &Expr| matches!(key, Expr::Alias(_));
    if !params.partition_by.iter().chain(params.order_by.iter().map(|sort| &sort.expr)).any(is_named) {
        return Ok(Transformed::no(Expr::WindowFunction(call)));
    }
    for key in params.partition_by.iter_mut().chain(params.order_by.iter_mut().map(|sort| &mut sort.expr)) {
        *key = key.clone().unalias();
    }
    Ok(Transformed::yes(Expr::WindowFunction(call)))
}
