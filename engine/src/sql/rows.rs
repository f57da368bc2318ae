//! `(a, b)`: rows of several values. DataFusion (55.2) makes structs of them, of which a NULL is equal to NULL and none is NULL, and
//! compares no struct with several columns of a subquery.
//!
//! ```text
//! (a, b) = (c, d)             a = c AND b = d                 <>: NOT (…), IS NOT DISTINCT FROM likewise
//! (a, b) < (c, d)             a < c OR (a = c AND b < d)      BETWEEN likewise
//! (a, b) IN ((c, d), …)       a = c AND b = d OR …
//! CASE (a, b) WHEN (c, d)     CASE WHEN (a, b) IS NOT DISTINCT FROM (c, d), as PostgreSQL has it
//! (a, b) IS NULL              a IS NULL AND b IS NULL         IS NOT NULL likewise: both may be false
//! (a, b) = (SELECT c, d …)    (SELECT r.x = a AND r.y = b FROM (…) AS r(x, y))
//! WHERE (a, b) IN (SELECT …)  EXISTS (SELECT … FROM (…) AS r(x, y) WHERE r.x = a AND r.y = b)
//! elsewhere, NOT IN           (SELECT CASE WHEN bool_or(same) THEN true WHEN count(*) > count(same) THEN NULL ELSE false END
//!                              FROM (SELECT r.x = a AND r.y = b AS same FROM (…) AS r(x, y)))
//! ```
//! `(a, b) IN (SELECT …)` of WHERE is a join by keys; it does not tell NULL from false, which makes no difference for what WHERE keeps.
//! ANY and ALL of a subquery are as IN. A row of expressions, `(a + 1, b)`, is `struct(a + 1, b)`: DataFusion takes names and literals.
//! A row of no value, `(SELECT FROM t)`, is refused: DataFusion looks for the type of its first column all the same, and panics.

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Parens, Query, Select, SelectItem,
    SetExpr, Spanned, TableAlias, TableAliasColumnDef, TableFactor, UnaryOperator,
};
use datafusion::sql::sqlparser::parser::Parser;

use crate::sql::balance;
use crate::sql::diagnostic::error_at;
use crate::sql::dialect::{TqDialect, call};

const ROW: &str = "__row";

/// Conditions of WHERE that must hold.
pub(super) fn rewrite_where(select: &mut Select) -> Result<()> {
    let mut conditions: Vec<&mut Expr> = select.selection.iter_mut().collect();
    while let Some(condition) = conditions.pop() {
        match condition {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => conditions.extend([&mut **left, &mut **right]),
            Expr::Nested(inner) => conditions.push(inner),
            _ => {
                if let Some(keys) = keys(condition)? {
                    *condition = keys;
                }
                if let Some(Question { row, op, subquery, negated: false }) = question(condition)? {
                    let subquery =
                        holding(row, &op, subquery, "SELECT 1 FROM x", |select, holds| select.selection = Some(holds))?;
                    *condition = Expr::Exists { subquery, negated: false };
                }
            }
        }
    }
    Ok(())
}

/// A question in any other place, and a comparison of rows.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    if let Expr::Subquery(query) | Expr::InSubquery { subquery: query, .. } = &*expr
        && has_no_column(query)
    {
        let hint = "write what it answers behind its SELECT: `(SELECT count(*) FROM tasks)`";
        return Err(error_at(query.span(), "a subquery in place of a value has one column, and this has none", hint));
    }
    if let Some(condition) = condition(expr)? {
        *expr = Expr::Nested(Box::new(condition));
    }
    if let Expr::Tuple(values) = expr {
        let is_plain =
            |value: &Expr| matches!(value, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_));
        if !values.is_empty() && !values.iter().all(is_plain) {
            *expr = call(Ident::new("struct"), std::mem::take(values));
        }
    }
    let Some(Question { row, op, subquery, negated }) = question(expr)? else { return Ok(()) };
    let put = |select: &mut Select, holds| {
        if let [SelectItem::ExprWithAlias { expr, .. }] = select.projection.as_mut_slice() {
            *expr = holds;
        }
    };
    let marked = holding(row, &op, subquery, "SELECT 1 AS same FROM x", put)?;
    let text = r#"SELECT CASE WHEN bool_or(same) THEN true WHEN count(*) > count(same) THEN NULL ELSE false END AS "IN" FROM x"#;
    let value = Expr::Subquery(over(marked, vec![], text, |_| ())?);
    *expr = if negated { not(value) } else { value };
    Ok(())
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) }
}

/// Lists of constant rows that are longer are looked up by keys.
const LONG: usize = 32;

/// A long list of constant rows as a subquery.
fn keys(condition: &Expr) -> Result<Option<Expr>> {
    let Expr::InList { expr: row, list, negated: false } = condition else { return Ok(None) };
    let (Some(values), true) = (values_of(row), list.len() > LONG) else { return Ok(None) };
    let is_constant =
        |other: &Vec<Expr>| other.len() == values.len() && other.iter().all(|value| matches!(value, Expr::Value(_)));
    let rows: Option<Vec<Vec<Expr>>> = list.iter().map(|item| values_of(item).filter(is_constant)).collect();
    let Some(rows) = rows else { return Ok(None) };
    let mut subquery = Parser::new(&TqDialect).try_with_sql("VALUES (1)")?.parse_query()?;
    if let SetExpr::Values(values) = subquery.body.as_mut() {
        values.rows = rows.into_iter().map(|content| Parens { content, ..values.rows[0].clone() }).collect();
    }
    Ok(Some(Expr::InSubquery { expr: row.clone(), subquery, negated: false }))
}

/// What a comparison of rows says of their values; `None` for what is none.
fn condition(expr: &Expr) -> Result<Option<Expr>> {
    let of_each = |row: &Expr, is: fn(Box<Expr>) -> Expr| {
        values_of(row)
            .and_then(|values| chained(values.into_iter().map(|value| is(Box::new(value))), &BinaryOperator::And))
    };
    match expr {
        Expr::BinaryOp { left, op, right } if is_comparison(op) => {
            if let (Some(row), Expr::Subquery(subquery)) = (values_of(left), right.as_ref()) {
                let subquery = with_names(&row, left, subquery, &op.to_string())?;
                let value = holding(row, op, subquery, r#"SELECT 1 AS "=" FROM x"#, |select, holds| {
                    if let [SelectItem::ExprWithAlias { expr, .. }] = select.projection.as_mut_slice() {
                        *expr = holds;
                    }
                })?;
                return Ok(Some(Expr::Subquery(value)));
            }
            compared(left, op, right)
        }
        Expr::IsDistinctFrom(left, right) => Ok(distinct(left, right)?.map(not)),
        Expr::IsNotDistinctFrom(left, right) => distinct(left, right),
        Expr::IsNull(row) => Ok(of_each(row, Expr::IsNull)),
        Expr::IsNotNull(row) => Ok(of_each(row, Expr::IsNotNull)),
        Expr::Between { expr: row, negated, low, high } => {
            let (low, high) = (compared(row, &BinaryOperator::GtEq, low)?, compared(row, &BinaryOperator::LtEq, high)?);
            let (Some(low), Some(high)) = (low, high) else { return Ok(None) };
            let between = chained([low, high], &BinaryOperator::And);
            Ok(if *negated { between.map(not) } else { between })
        }
        Expr::InList { expr: row, list, negated } => {
            let mut terms = vec![];
            for item in list {
                let Some(term) = compared(row, &BinaryOperator::Eq, item)? else { return Ok(None) };
                terms.push(Expr::Nested(Box::new(term)));
            }
            let found = chained(terms, &BinaryOperator::Or).map(|found| Expr::Nested(Box::new(found)));
            Ok(if *negated { found.map(not) } else { found })
        }
        Expr::Case { operand: Some(row), conditions, else_result, case_token, end_token } => {
            let mut conditions = conditions.clone();
            for when in &mut conditions {
                let Some(condition) = distinct(row, &when.condition)? else { return Ok(None) };
                when.condition = condition;
            }
            let (case_token, end_token) = (case_token.clone(), end_token.clone());
            let else_result = else_result.clone();
            Ok(Some(Expr::Case { case_token, end_token, operand: None, conditions, else_result }))
        }
        _ => Ok(None),
    }
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// Terms with an operator between them; `None` without any.
fn chained(terms: impl IntoIterator<Item = Expr>, op: &BinaryOperator) -> Option<Expr> {
    let mut terms: Vec<Expr> = terms.into_iter().collect();
    match terms.len() {
        0 | 1 => terms.pop(),
        _ => Some(balance::join(&mut terms, op)),
    }
}

/// The values of two rows beside each other; `None` where a side is no row.
fn pairs(left: &Expr, right: &Expr) -> Result<Option<Vec<(Expr, Expr)>>> {
    let (Some(ours), Some(others)) = (values_of(left), values_of(right)) else { return Ok(None) };
    if ours.len() != others.len() {
        let what = format!("a row of {} values beside one of {}", ours.len(), others.len());
        return Err(error_at(left.span(), what, "both sides of a comparison need the same number"));
    }
    Ok(Some(ours.into_iter().zip(others).collect()))
}

/// Whether no value of two rows is distinct.
fn distinct(left: &Expr, right: &Expr) -> Result<Option<Expr>> {
    let same = |(left, right)| Expr::IsNotDistinctFrom(Box::new(left), Box::new(right));
    let pairs = pairs(left, right)?;
    Ok(pairs
        .and_then(|pairs| chained(pairs.into_iter().map(same), &BinaryOperator::And))
        .map(|same| Expr::Nested(Box::new(same))))
}

fn compared(left: &Expr, op: &BinaryOperator, right: &Expr) -> Result<Option<Expr>> {
    Ok(pairs(left, right)?.and_then(|pairs| of_pairs(pairs, op)))
}

/// A comparison of rows; `None` of rows without values.
fn of_pairs(mut pairs: Vec<(Expr, Expr)>, op: &BinaryOperator) -> Option<Expr> {
    let one = |(left, right): (Expr, Expr), op: &BinaryOperator| {
        let (left, right) = (Expr::Nested(Box::new(left)), Expr::Nested(Box::new(right)));
        Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }
    };
    let strict = match op {
        BinaryOperator::Lt | BinaryOperator::LtEq => BinaryOperator::Lt,
        BinaryOperator::Gt | BinaryOperator::GtEq => BinaryOperator::Gt,
        BinaryOperator::NotEq => return chained(pairs.into_iter().map(|pair| one(pair, op)), &BinaryOperator::Or),
        _ => return chained(pairs.into_iter().map(|pair| one(pair, op)), &BinaryOperator::And),
    };
    let last = one(pairs.pop()?, op);
    Some(pairs.into_iter().rfold(last, |later, pair| {
        let (less, equal) = (one(pair.clone(), &strict), one(pair, &BinaryOperator::Eq));
        let both = Expr::BinaryOp { left: Box::new(equal), op: BinaryOperator::And, right: Box::new(later) };
        let both = Box::new(Expr::Nested(Box::new(both)));
        Expr::Nested(Box::new(Expr::BinaryOp { left: Box::new(less), op: BinaryOperator::Or, right: both }))
    }))
}

fn has_no_column(query: &Query) -> bool {
    fn is_empty(body: &SetExpr) -> bool {
        match body {
            SetExpr::Query(query) => has_no_column(query),
            SetExpr::SetOperation { left, .. } => is_empty(left),
            SetExpr::Select(select) => match select.projection.as_slice() {
                [] => true,
                [SelectItem::Wildcard(_)] => select.from.iter().all(|from| {
                    let is_empty = |table: &TableFactor| {
                        matches!(table, TableFactor::Derived { subquery, .. } if has_no_column(subquery))
                    };
                    is_empty(&from.relation) && from.joins.iter().all(|join| is_empty(&join.relation))
                }),
                _ => false,
            },
            _ => false,
        }
    }
    is_empty(&query.body)
}

/// Whether a row is as `op` says to one of a subquery.
struct Question {
    row: Vec<Expr>,
    op: BinaryOperator,
    subquery: Box<Query>,
    /// Whether it stands behind NOT IN, or ALL, which asks for a row that is not as said.
    negated: bool,
}

fn question(expr: &Expr) -> Result<Option<Question>> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let (row, op, subquery, negated) = match expr {
        Expr::InSubquery { expr, subquery, negated } => (expr, Eq, subquery, *negated),
        Expr::AnyOp { left, compare_op, right, .. } if is_comparison(compare_op) => match right.as_ref() {
            Expr::Subquery(subquery) => (left, compare_op.clone(), subquery, false),
            _ => return Ok(None),
        },
        Expr::AllOp { left, compare_op, right } => match right.as_ref() {
            Expr::Subquery(subquery) => {
                let opposites = [(Eq, NotEq), (Lt, GtEq), (LtEq, Gt), (NotEq, Eq), (GtEq, Lt), (Gt, LtEq)];
                match opposites.into_iter().find(|(op, _)| op == compare_op) {
                    Some((_, opposite)) => (left, opposite, subquery, true),
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let Some(values) = values_of(row) else { return Ok(None) };
    let subquery = with_names(&values, row, subquery, "IN")?;
    Ok(Some(Question { row: values, op, subquery, negated }))
}

/// A subquery beside a row of as many values, whose columns are told apart: `SELECT x, x` is no relation.
fn with_names(values: &[Expr], row: &Expr, subquery: &Query, op: &str) -> Result<Box<Query>> {
    let mut subquery = Box::new(subquery.clone());
    if let SetExpr::Select(select) = subquery.body.as_mut() {
        let columns = &mut select.projection;
        let is_told = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
        if columns.iter().all(is_told) && columns.len() != values.len() {
            let what = format!("a row of {} values {op} a subquery of {} columns", values.len(), columns.len());
            return Err(error_at(row.span(), what, "both sides need the same number"));
        }
        for (at, item) in columns.iter_mut().enumerate() {
            if let SelectItem::UnnamedExpr(expr) = item {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::new(format!("{ROW}_{at}")) };
            }
        }
    }
    Ok(subquery)
}

/// `(a, b)` and `ROW(a, b)`.
pub(super) fn values_of(row: &Expr) -> Option<Vec<Expr>> {
    let call = match row {
        Expr::Nested(inner) => return values_of(inner),
        Expr::Tuple(values) => return Some(values.clone()),
        Expr::Function(call) if call.name.to_string().eq_ignore_ascii_case("row") => call,
        _ => return None,
    };
    let FunctionArguments::List(list) = &call.args else { return None };
    let value = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    };
    list.args.iter().map(value).collect()
}

/// A query over the subquery, with the condition that the given row is as `op` says to one of its rows.
fn holding(
    row: Vec<Expr>,
    op: &BinaryOperator,
    subquery: Box<Query>,
    text: &str,
    put: impl FnOnce(&mut Select, Expr),
) -> Result<Box<Query>> {
    let names: Vec<Ident> = (0..row.len()).map(|at| Ident::new(format!("{ROW}_{at}"))).collect();
    let column = |name: &Ident| Expr::CompoundIdentifier(vec![Ident::new(ROW), name.clone()]);
    let pairs = row.into_iter().zip(names.iter().map(column)).collect();
    let holds = of_pairs(pairs, op).ok_or_else(|| DataFusionError::Plan("a row without values".to_owned()))?;
    over(subquery, names, text, |select| put(select, holds))
}

/// The query `text`, whose only relation becomes the subquery.
pub(super) fn over(
    subquery: Box<Query>,
    names: Vec<Ident>,
    text: &str,
    edit: impl FnOnce(&mut Select),
) -> Result<Box<Query>> {
    let mut query = Parser::new(&TqDialect).try_with_sql(text)?.parse_query()?;
    let columns = names.into_iter().map(|name| TableAliasColumnDef { name, data_type: None }).collect();
    let alias = TableAlias { explicit: true, name: Ident::new(ROW), columns, at: None };
    let relation = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from.iter_mut().for_each(|from| from.relation = relation.clone());
        edit(select);
    }
    Ok(query)
}
