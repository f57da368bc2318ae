//! Removes aliases from window keys, and duplicates from the ORDER BY keys of aggregates.
//!
//! All windows of one plan node have the same keys: DataFusion (55.2) sorts once for them, and compares the keys as expressions. Its rule
//! for common subexpressions writes `__common_expr_1 AS upper(s)` for a key. Later rules remove such aliases, but only from the windows
//! that they change: the keys of `sum(coalesce(x, 0)) OVER w` and `count(*) OVER w` then differ, which is an internal error.
//!
//! Two ORDER BY keys of an aggregate may become equal (`first_value(x ORDER BY a, CASE WHEN a = a THEN a ELSE a END)`). Its rows are then
//! sorted by one of them while its state expects two: a panic.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The rule for common subexpressions.
pub(super) const SHARES: &str = "common_sub_expression_eliminate";

/// Of two windows that are equal (`sum(2) OVER w` and `sum(1 + 1) OVER w`) the rule makes one, and a column of it in a projection, which
/// cannot compute windows. Such a plan stays as it was.
pub(super) fn without_shared_windows(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let has_window = |plan: &LogicalPlan| plan.exists(|node| Ok(matches!(node, LogicalPlan::Window(_))));
    if !has_window(&plan)? {
        return rule.rewrite(plan, config);
    }
    let rewritten = rule.rewrite(plan.clone(), config)?;
    let mut is_shared = false;
    rewritten.data.apply_with_subqueries(|node| {
        if !matches!(node, LogicalPlan::Window(_)) {
            node.apply_expressions(|expr| {
                is_shared |= expr.exists(|part| Ok(matches!(part, Expr::WindowFunction(_))))?;
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(if is_shared { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(if is_shared { Transformed::no(plan) } else { rewritten })
}

/// Takes the names off the keys of windows, and the second of equal keys off aggregates.
#[derive(Debug)]
pub(super) struct PlainKeys;

impl OptimizerRule for PlainKeys {
    fn name(&self) -> &str {
        "plain_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !matches!(plan, LogicalPlan::Window(_) | LogicalPlan::Aggregate(_)) {
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
    match expr {
        Expr::WindowFunction(mut call) => {
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
        Expr::AggregateFunction(mut call) => {
            let mut keys: Vec<Expr> = vec![];
            let before = call.params.order_by.len();
            call.params.order_by.retain(|sort| {
                let key = sort.expr.clone().unalias();
                let is_new = !keys.contains(&key);
                keys.push(key);
                is_new
            });
            let changed = call.params.order_by.len() < before;
            Ok(Transformed::new_transformed(Expr::AggregateFunction(call), changed))
        }
        other => Ok(Transformed::no(other)),
    }
}
