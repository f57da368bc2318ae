//! CASE guards what it does not choose.
//!
//! `CASE WHEN x = 0 THEN false ELSE 1 / x > 0 END` divides where `x` is no zero. DataFusion (55.2) makes AND and OR of a CASE of
//! booleans, and of `CASE … THEN 'a' … END = 'a'`, whose sides are computed for all rows: a division by zero after all. So a CASE
//! with a part that can fail is hidden from these two rules: of booleans it chooses among the numbers 0 and 1, and what is compared
//! is not the CASE but [`itself`].

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, cast};

use crate::sql::annotated::{Said, itself};
use crate::sql::cases::rewrite_cases;

/// Hides those CASE expressions of a plan that guard something.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_cases(plan, guards, hidden)
}

/// Whether a part that is not computed for all rows can fail.
fn guards(case: &Case) -> bool {
    let whens = case.when_then_expr.iter().skip(1).map(|(when, _)| when);
    let thens = case.when_then_expr.iter().map(|(_, then)| then);
    whens.chain(thens).chain(&case.else_expr).any(|part| can_fail(part))
}

fn can_fail(expr: &Expr) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    let computes = |part: &Expr| match part {
        Expr::BinaryExpr(binary) => matches!(binary.op, Divide | Minus | Modulo | Multiply | Plus),
        Expr::Negative(_) | Expr::Cast(_) | Expr::ScalarFunction(_) | Expr::ScalarSubquery(_) => true,
        _ => false,
    };
    expr.exists(|part| Ok(computes(part))).unwrap_or(true)
}

fn hidden(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Case(mut case) = expr else { return Ok(Transformed::no(expr)) };
    if !guards(&case) {
        return Ok(Transformed::no(Expr::Case(case)));
    }
    let is_boolean = |value: &Expr| matches!(value.get_type(schema), Ok(DataType::Boolean));
    let is_null = |value: &Expr| matches!(value.get_type(schema), Ok(DataType::Null));
    let values = || case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
    let chooses_booleans =
        values().any(|value| is_boolean(value)) && values().all(|value| is_boolean(value) || is_null(value));
    if !chooses_booleans {
        return Ok(Transformed::yes(itself(Expr::Case(case), Said::NoColumn)));
    }
    let number = |value: &mut Box<Expr>| **value = cast(std::mem::take(&mut **value), DataType::Int8);
    case.when_then_expr.iter_mut().map(|(_, then)| then).chain(&mut case.else_expr).for_each(number);
    Ok(Transformed::yes(cast(Expr::Case(case), DataType::Boolean)))
}
