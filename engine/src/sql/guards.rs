//! CASE guards what it does not choose, and a condition what stands behind it.
//!
//! `CASE WHEN x = 0 THEN false ELSE 1 / x > 0 END` divides where `x` is no zero. DataFusion (55.2) makes AND and OR of a CASE of
//! booleans, and of `CASE … THEN 'a' … END = 'a'`, whose sides are computed for all rows: a division by zero after all. So a CASE
//! with a part that can fail is hidden from these two rules: of booleans it chooses among the numbers 0 and 1, and what is compared
//! is not the CASE but [`itself`].
//!
//! Of `x <> 0 AND 1 / x > 0` and `x = 0 OR 1 / x > 0` both sides are computed too, unless the left one decides for all rows of a batch.
//! PostgreSQL goes from left to right in one level of a query, which people rely on. When a plan is optimized, [`in_turn`] makes CASEs
//! of those chains in which a part can fail: before that they are taken apart, pushed down and joined by as ever.
//!
//! ```text
//! WHERE x <> 0 AND 1 / x > 0          CASE WHEN x <> 0 THEN 1 / x > 0 ELSE false END
//! SELECT x = 0 OR 1 / x > 0           CASE WHEN (x = 0) IS NOT TRUE THEN x = 0 OR 1 / x > 0 ELSE true END
//! ```
//! FILTER guards the arguments in the same way. WHERE, HAVING and ON ask first what cannot fail, since DataFusion puts what it takes for
//! cheap before what it does not.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, cast, lit, when};

use crate::sql::annotated::{Said, itself, kept};
use crate::sql::cases::rewrite_cases;
use crate::sql::stack::grown;

/// Hides those CASE expressions of a plan that guard something, among them those that [`filtered`] makes.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_cases(filtered(plan)?, guards, hidden)
}

/// `sum(1 / x) FILTER (WHERE x <> 0)`: arguments of windows and of groups are computed for all rows, those that FILTER leaves out too, and
/// so is what a group is ordered by.
fn filtered(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        if !matches!(plan, LogicalPlan::Window(_) | LogicalPlan::Aggregate(_)) {
            return Ok(Transformed::no(plan));
        }
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let guarded = expr.transform_up(|mut expr| {
                let (filter, arguments, order) = match &mut expr {
                    Expr::WindowFunction(call) => (call.params.filter.clone(), &mut call.params.args, None),
                    Expr::AggregateFunction(call) => {
                        let params = &mut call.params;
                        // Among them may be an argument once more: what is DISTINCT is ordered by itself.
                        (params.filter.clone(), &mut params.args, Some(&mut params.order_by))
                    }
                    _ => return Ok(Transformed::no(expr)),
                };
                let Some(filter) = filter else { return Ok(Transformed::no(expr)) };
                let mut is_guarded = false;
                let keys = order.into_iter().flatten().map(|key| &mut key.expr);
                for argument in arguments.iter_mut().chain(keys).filter(|argument| can_fail(argument)) {
                    *argument = when(filter.as_ref().clone(), std::mem::take(argument)).end()?;
                    is_guarded = true;
                }
                Ok(Transformed::new_transformed(expr, is_guarded))
            })?;
            Ok(guarded.update_data(|expr| name.restore(expr)))
        })
    })
    .data()
}

/// A number that does not fit the type it is cast to: planning would say so, even if the branch that it stands in is never taken.
fn when_taken(value: &mut Expr) -> Result<()> {
    let taken = std::mem::take(value).transform_up(|part| {
        let Expr::Cast(mut cast) = part else { return Ok(Transformed::no(part)) };
        let fits = match cast.expr.as_ref() {
            Expr::Literal(number, _) => {
                !number.data_type().is_numeric() || number.cast_to(cast.field.data_type()).is_ok()
            }
            _ => true,
        };
        if !fits {
            *cast.expr = kept(std::mem::take(&mut cast.expr), Said::NoColumn);
        }
        Ok(Transformed::new_transformed(Expr::Cast(cast), !fits))
    })?;
    *value = taken.data;
    Ok(())
}

/// Whether a part that is not computed for all rows can fail.
fn guards(case: &Case) -> bool {
    let whens = case.when_then_expr.iter().skip(1).map(|(when, _)| when);
    let thens = case.when_then_expr.iter().map(|(_, then)| then);
    whens.chain(thens).chain(&case.else_expr).any(|part| can_fail(part))
}

/// Functions that have an answer for all values; the guards that people write are among them.
const SAFE: [&str; 29] = [
    "array_length",
    "ascii",
    "bit_length",
    "btrim",
    "cardinality",
    "character_length",
    "coalesce",
    "contains",
    "date_part",
    "ends_with",
    "glob",
    "isnan",
    "iszero",
    "json_as_text",
    "json_contains",
    "json_get_json",
    "left",
    "length",
    "lower",
    "ltrim",
    "nullif",
    "octet_length",
    "regexp_like",
    "right",
    "rtrim",
    "starts_with",
    "strpos",
    "trim",
    "upper",
];

fn can_fail(expr: &Expr) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    let computes = |part: &Expr| match part {
        Expr::BinaryExpr(binary) => matches!(binary.op, Divide | Minus | Modulo | Multiply | Plus),
        // Whatever is shown as text can be.
        Expr::Cast(cast) => {
            !matches!(cast.field.data_type(), DataType::Dictionary(..)) && !cast.field.data_type().is_string()
        }
        Expr::ScalarFunction(call) => !SAFE.contains(&call.name()),
        Expr::Negative(_) | Expr::ScalarSubquery(_) => true,
        _ => false,
    };
    expr.exists(|part| Ok(computes(part))).unwrap_or(true)
}

fn hidden(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::Case(mut case) = expr else { return Ok(Transformed::no(expr)) };
    if !guards(&case) {
        return Ok(Transformed::no(Expr::Case(case)));
    }
    for (when, then) in &mut case.when_then_expr {
        when_taken(when)?;
        when_taken(then)?;
    }
    case.else_expr.as_mut().map_or(Ok(()), |value| when_taken(value))?;
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

/// A chain with more parts that can fail stays as it is: each part would be a CASE within the one before.
const TURNS: usize = 64;

/// An optimized plan in which conditions that can fail are evaluated one after the other.
pub(super) fn in_turn(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let mut is_wanted = false;
        plan.apply_expressions(|expr| {
            is_wanted |= expr.exists(|part| Ok(is_chain(part)))? && can_fail(expr);
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !is_wanted {
            return Ok(Transformed::no(plan));
        }
        match plan {
            LogicalPlan::Filter(mut filter) => {
                filter.predicate = condition(filter.predicate)?;
                Ok(Transformed::yes(LogicalPlan::Filter(filter)))
            }
            LogicalPlan::Join(mut join) => {
                join.filter = join.filter.map(condition).transpose()?;
                Ok(Transformed::yes(LogicalPlan::Join(join)))
            }
            plan => {
                let names = NamePreserver::new_for_projection();
                plan.map_expressions(|expr| {
                    let name = names.save(&expr);
                    Ok(value(expr)?.update_data(|expr| name.restore(expr)))
                })
            }
        }
    })
    .data()
}

fn is_chain(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(BinaryExpr { op: Operator::And | Operator::Or, .. }))
}

/// A condition of which only `true` matters: what cannot fail decides first.
fn condition(predicate: Expr) -> Result<Expr> {
    let (failing, safe): (Vec<Expr>, Vec<Expr>) = split_conjunction_owned(predicate).into_iter().partition(can_fail);
    if failing.len() > TURNS {
        return Ok(conjunction(safe.into_iter().chain(failing)).unwrap_or_else(|| lit(true)));
    }
    let mut parts = failing.into_iter().map(|part| value(part).data()).collect::<Result<Vec<_>>>()?.into_iter().rev();
    let Some(mut asked) = parts.next() else { return Ok(conjunction(safe).unwrap_or_else(|| lit(true))) };
    for part in parts.chain(conjunction(safe)) {
        asked = when(part, asked).otherwise(lit(false))?;
    }
    Ok(asked)
}

/// An expression in which the parts of such chains are evaluated one after the other.
fn value(expr: Expr) -> Result<Transformed<Expr>> {
    if !is_chain(&expr) || !can_fail(&expr) {
        return grown(|| expr.map_children(value));
    }
    let Expr::BinaryExpr(BinaryExpr { op, .. }) = &expr else { return Ok(Transformed::no(expr)) };
    let op = *op;
    let mut parts = vec![];
    take_apart(&expr, op, &mut parts);
    if parts.iter().filter(|part| can_fail(part)).count() > TURNS {
        return Ok(Transformed::no(expr));
    }
    let mut parts = parts.into_iter().rev();
    let last = parts.next().unwrap_or_default();
    let (mut failed, mut asked) = (can_fail(&last), value(last)?.data);
    for part in parts {
        let fails = can_fail(&part);
        let part = value(part)?.data;
        let both = Expr::BinaryExpr(BinaryExpr::new(Box::new(part.clone()), op, Box::new(asked)));
        asked = match (failed, op) {
            (false, _) => both,
            (true, Operator::And) => when(part.is_not_false(), both).otherwise(lit(false))?,
            (true, _) => when(part.is_not_true(), both).otherwise(lit(true))?,
        };
        failed |= fails;
    }
    Ok(Transformed::yes(asked))
}

fn take_apart(expr: &Expr, op: Operator, parts: &mut Vec<Expr>) {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: its, right }) if *its == op => {
            grown(|| take_apart(left, op, parts));
            grown(|| take_apart(right, op, parts));
        }
        part => parts.push(part.clone()),
    }
}
