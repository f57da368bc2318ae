//! A note on times that are compared with fractions: `duration > 0.5` was probably meant as half a second, and is half a tick.
//!
//! The comparison is valid SQL and may be meant, so it is answered all the same.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, LogicalPlan};
use datafusion::prelude::SessionContext;
use tq_udfs::relation::notes::{Note, Notes};
use tq_udfs::ticks::is_time;

/// Notes the comparisons of a plan in which a time stands beside a fraction of a tick.
pub(super) fn note(context: &SessionContext, plan: &LogicalPlan) -> Result<()> {
    let Some(notes) = Notes::of(&context.task_ctx()) else { return Ok(()) };
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Some((column, fraction)) = compared(expr, node) {
                    let text = format!("it counts ticks, and {fraction} is a part of one; times are written `s({fraction})`, `ms({fraction})`");
                    notes.add(Note { function: column, text });
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// A column of times and the fraction that an expression compares it with.
fn compared(expr: &Expr, node: &LogicalPlan) -> Option<(String, f64)> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => {
            pair(left, right, node).or_else(|| pair(right, left, node))
        }
        Expr::Between(Between { expr, low, high, .. }) => pair(expr, low, node).or_else(|| pair(expr, high, node)),
        _ => None,
    }
}

fn pair(column: &Expr, literal: &Expr, node: &LogicalPlan) -> Option<(String, f64)> {
    let (Expr::Column(column), Expr::Literal(ScalarValue::Float64(Some(value)), _)) = (column, literal) else {
        return None;
    };
    let of_times =
        node.inputs().iter().any(|input| input.schema().field_from_column(column).is_ok_and(|field| is_time(field)));
    (of_times && value.fract() != 0.0).then(|| (column.name.clone(), *value))
}
