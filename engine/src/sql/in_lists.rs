//! `IN` with a list, where DataFusion (55.2) concludes too much from it.
//!
//! ```text
//! 1 IN (2, CASE WHEN b THEN 1 END)     the CASE is taken for its constant, also where it is NULL
//! x IN (1) AND x IN (2)                false, also where x is NULL; x = 1 OR x = 2 is a list as well
//! x NOT IN (1) OR x NOT IN (2)         true, also where x is NULL
//! x IN (1, 2) AND x NOT IN (2, NULL)   x IN (1): the NULL is forgotten
//! ```
//! So computed elements and NULLs are compared apart from the others, and of lists beside each other each but the first is of a value that
//! the optimizer does not know again.

use std::collections::HashMap;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::{conjunction, disjunction, split_binary_owned};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, Operator, lit};

use crate::sql::annotated::{Said, is_itself, itself};
use crate::sql::stack::grown;

/// Compares computed elements of a list, and NULLs, apart from the others: `x IN (1, NULL)` as `x IN (1) OR NULL`.
pub(super) fn elements(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::InList(InList { expr: value, list, negated }) = expr else { return Ok(Transformed::no(expr)) };
    let is_plain = |item: &Expr| matches!(item, Expr::Literal(..) | Expr::Column(_));
    let of_constant = value.column_refs().is_empty() && !value.is_volatile();
    let is_apart = |item: &Expr| is_null(item) || (of_constant && !is_plain(item));
    if list.len() < 2 || !list.iter().any(is_apart) {
        return Ok(Transformed::no(Expr::InList(InList { expr: value, list, negated })));
    }
    let (apart, together): (Vec<Expr>, Vec<Expr>) = list.into_iter().partition(is_apart);
    let of_plain = (!together.is_empty()).then(|| value.as_ref().clone().in_list(together, false));
    let one =
        |item: Expr| if is_null(&item) { lit(ScalarValue::Boolean(None)) } else { value.as_ref().clone().eq(item) };
    let Some(found) = of_plain.into_iter().chain(apart.into_iter().map(one)).reduce(Expr::or) else {
        return internal_err!("IN without elements");
    };
    Ok(Transformed::yes(if negated { Expr::Not(Box::new(found)) } else { found }))
}

fn is_null(item: &Expr) -> bool {
    match item {
        Expr::Literal(item, _) => item.is_null(),
        // To the type of the value.
        Expr::Cast(Cast { expr, .. }) => is_null(expr),
        Expr::ScalarFunction(call) if is_itself(&call.func).is_some() => call.args.iter().all(is_null),
        _ => false,
    }
}

/// Keeps lists beside each other apart. `is_condition`: of a filter or join, where false and NULL are the same; terms of it may be brought
/// together.
pub(super) fn apart(expr: Expr, is_condition: bool) -> Result<Expr> {
    if !is_condition {
        return within(expr);
    }
    let conditions = split_binary_owned(expr, Operator::And);
    let conditions = conditions.into_iter().map(within).collect::<Result<Vec<_>>>()?;
    conjunction(conditions).map_or_else(|| internal_err!("a condition without terms"), Ok)
}

fn within(expr: Expr) -> Result<Expr> {
    let op = match &expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => *op,
        _ => return grown(|| expr.map_children(|child| within(child).map(Transformed::yes))).data(),
    };
    // A list of values that are written one by one stays whole.
    if op == Operator::Or && value_of_list(&expr).is_some() {
        return Ok(expr);
    }
    let terms = split_binary_owned(expr, op);
    let mut terms = terms.into_iter().map(|term| grown(|| within(term))).collect::<Result<Vec<_>>>()?;
    let mut lists_of: HashMap<Expr, usize> = HashMap::new();
    for term in &mut terms {
        let Some(value) = value_of_list(term).cloned() else { continue };
        let lists = lists_of.entry(value.clone()).or_default();
        if *lists > 0 {
            *term = with_value(std::mem::take(term), &value, &itself(value.clone(), Said::Another(*lists)))?;
        }
        *lists += 1;
    }
    let joined = if op == Operator::And { conjunction(terms) } else { disjunction(terms) };
    joined.map_or_else(|| internal_err!("a condition without terms"), Ok)
}

/// The value of which a term says whether it is in a list: IN, NOT IN, or a chain of `x = 1 OR x = 2`.
fn value_of_list(term: &Expr) -> Option<&Expr> {
    match term {
        Expr::InList(list) => Some(&list.expr),
        Expr::Not(term) => value_of_list(term),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            let (left, right) = (element_of(left)?, element_of(right)?);
            (left == right).then_some(left)
        }
        _ => None,
    }
}

/// What a part of a chain compares with a constant.
fn element_of(part: &Expr) -> Option<&Expr> {
    match part {
        Expr::InList(list) => (!list.negated).then_some(list.expr.as_ref()),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            match (left.column_refs().is_empty(), right.column_refs().is_empty()) {
                (false, true) => Some(left),
                (true, false) => Some(right),
                _ => None,
            }
        }
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => value_of_list(part),
        _ => None,
    }
}

/// A list of another value.
fn with_value(term: Expr, value: &Expr, other: &Expr) -> Result<Expr> {
    term.transform_down(|part| {
        Ok(match part == *value {
            true => Transformed::new(other.clone(), true, TreeNodeRecursion::Jump),
            false => Transformed::no(part),
        })
    })
    .data()
}
