//! Expressions that are NULL more often than DataFusion (55.2) concludes, or than its two planners agree on.
//!
//! - A scalar subquery without a row is NULL, whatever its column is.
//! - `CASE WHEN a > b THEN a ELSE 0 END` is never NULL: the logical plan knows (where `a > b` holds, `a` is no NULL), the
//!   physical one does not, and grouping by it ends in "Physical input schema should be the same". So it counts as
//!   nullable here wherever one of its values is.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

use crate::sql::itself::{Said, itself};

/// Makes those CASE expressions of a plan nullable that have a value that is.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let mut has_case = false;
        plan.apply_expressions(|expr| {
            has_case |= expr.exists(|expr| Ok(matches!(expr, Expr::Case(_))))?;
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        })?;
        if !has_case {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        let plan = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(expr.transform_up(|expr| open(expr, &schema))?.update_data(|expr| name.restore(expr)))
        })?;
        Ok(if plan.transformed { Transformed::yes(plan.data.recompute_schema()?) } else { plan })
    })
    .data()
}

fn open(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Case(Case { when_then_expr, else_expr, .. }) = &expr else { return Ok(Transformed::no(expr)) };
    let is_nullable = |expr: &Expr| expr.nullable(schema).unwrap_or(true);
    let has_nulls = when_then_expr.iter().map(|(_, then)| then).chain(else_expr).any(|value| is_nullable(value));
    // What both planners conclude in the end is not known yet: types are brought together later.
    Ok(if has_nulls { Transformed::yes(nullable(expr)) } else { Transformed::no(expr) })
}

/// `nullable(expr)`.
pub(super) fn nullable(expr: Expr) -> Expr {
    itself(expr, Said::MayBeNull)
}
