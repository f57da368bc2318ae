//! Expressions that are NULL more often than DataFusion (55.2) concludes, or than its two planners agree on.
//!
//! - A scalar subquery without a row is NULL, whatever its column is.
//! - `CASE WHEN a > b THEN a ELSE 0 END` is never NULL: the logical plan knows (where `a > b` holds, `a` is no NULL), the
//!   physical one does not, and grouping by it ends in "Physical input schema should be the same". So it counts as
//!   nullable here wherever one of its values is.
//! - `a IS TRUE` is never NULL, of which the physical plan knows nothing either: it computes `a IS NOT DISTINCT FROM true`, which
//!   counts as nullable in both plans. That is written instead, and `IS NULL` for `IS UNKNOWN`.
//! - A table that is made of an answer takes NULLs later, although the answer held none.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{
    DdlStatement, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, lit,
};

use crate::sql::annotated::{Said, itself, kept};
use crate::sql::cases::rewrite_cases;

/// Makes those CASE expressions of a plan nullable that have a value that is, and the columns of a table that it makes.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    match rewrite_cases(plan, |_| true, open)? {
        LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table)) => {
            let input = Arc::unwrap_or_clone(table.input);
            let columns: Vec<Expr> = input
                .schema()
                .iter()
                .map(|(relation, field)| {
                    let column = Expr::Column((relation, field).into());
                    if field.is_nullable() { column } else { kept(column, Said::MayBeNull).alias(field.name()) }
                })
                .collect();
            table.input = Arc::new(LogicalPlanBuilder::from(input).project(columns)?.build()?);
            Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)))
        }
        other => Ok(other),
    }
}

fn open(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Case(Case { when_then_expr, else_expr, .. }) = &expr else { return Ok(Transformed::no(expr)) };
    let is_nullable = |expr: &Expr| expr.nullable(schema).unwrap_or(true);
    let has_nulls = when_then_expr.iter().map(|(_, then)| then).chain(else_expr).any(|value| is_nullable(value));
    let is_nested = expr.get_type(schema).is_ok_and(|data_type| data_type.is_nested());
    // What both planners conclude in the end is not known yet: types are brought together later.
    Ok(if has_nulls || is_nested { Transformed::yes(nullable(expr)) } else { Transformed::no(expr) })
}

/// `IS TRUE` and the like as the physical plan has it, where that is nullable.
pub(super) fn truth(expr: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let (value, op, truth) = match expr {
        Expr::IsUnknown(value) => return Ok(Some(value.as_ref().clone().is_null())),
        Expr::IsNotUnknown(value) => return Ok(Some(value.as_ref().clone().is_not_null())),
        Expr::IsTrue(value) => (value, Operator::IsNotDistinctFrom, true),
        Expr::IsFalse(value) => (value, Operator::IsNotDistinctFrom, false),
        Expr::IsNotTrue(value) => (value, Operator::IsDistinctFrom, true),
        Expr::IsNotFalse(value) => (value, Operator::IsDistinctFrom, false),
        _ => return Ok(None),
    };
    let is_nullable = value.nullable(schema)?;
    Ok(is_nullable.then(|| binary_expr(value.as_ref().clone(), op, lit(truth))))
}

/// `nullable(expr)`.
pub(super) fn nullable(expr: Expr) -> Expr {
    itself(expr, Said::MayBeNull)
}
