//! Finds the CASE expressions of a plan and lets a caller rewrite them.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Changes the expressions of those nodes that hold a wanted CASE, from the leaves to the root. Columns keep their names; `change` sees
/// the columns of the node's inputs.
pub(super) fn rewrite_cases(
    plan: LogicalPlan,
    is_wanted: impl Fn(&Case) -> bool,
    change: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let mut is_there = false;
        plan.apply_expressions(|expr| {
            is_there |= expr.exists(|expr| Ok(matches!(expr, Expr::Case(case) if is_wanted(case))))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !is_there {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        let plan = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(expr.transform_up(|expr| change(expr, &schema))?.update_data(|expr| name.restore(expr)))
        })?;
        if plan.transformed { plan.map_data(LogicalPlan::recompute_schema) } else { Ok(plan) }
    })
    .data()
}
