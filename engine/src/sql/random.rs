//! Plans that draw random numbers: planning or running them twice gives two answers.

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Functions that answer something else at each call.
pub(super) const RANDOM_FUNCTIONS: [&str; 3] = ["random", "rand", "uuid"];

/// Whether a plan, or a subquery in it, calls one of them.
pub(super) fn draws(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    let is_random = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if RANDOM_FUNCTIONS.contains(&call.name()));
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= expr.exists(|expr| Ok(is_random(expr)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
