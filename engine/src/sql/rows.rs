//! `(a, b) IN (SELECT x, y …)`: rows of several values, which DataFusion (55.2) compares with one column only.
//!
//! ```text
//! WHERE (a, b) IN (…)     EXISTS (SELECT … FROM (…) AS r(x, y) WHERE r.x = a AND r.y = b)
//! elsewhere, NOT IN       (SELECT CASE WHEN bool_or(same) THEN true WHEN count(*) > count(same) THEN NULL ELSE false END
//!                          FROM (SELECT r.x = a AND r.y = b AS same FROM (…) AS r(x, y)))
//! ```
//! The first is a join by keys; it does not tell NULL from false, which makes no difference for what WHERE keeps.
//! A row of no value, `(SELECT FROM t)`, is refused: DataFusion looks for the type of its first column all the same, and panics.

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, Select, SelectItem, SetExpr,
    Spanned, TableAlias, TableAliasColumnDef, TableFactor, UnaryOperator,
};
use datafusion::sql::sqlparser::parser::Parser;

use crate::sql::diagnostic::error_at;
use crate::sql::dialect::TqDialect;

const ROW: &str = "__row";

/// Conditions of WHERE that must hold.
pub(super) fn rewrite_where(select: &mut Select) -> Result<()> {
    let mut conditions: Vec<&mut Expr> = select.selection.iter_mut().collect();
    while let Some(condition) = conditions.pop() {
        match condition {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => conditions.extend([&mut **left, &mut **right]),
            Expr::Nested(inner) => conditions.push(inner),
            _ => {
                if let Some((row, subquery, false)) = question(condition)? {
                    let subquery =
                        same(row, subquery, "SELECT 1 FROM x", |select, same| select.selection = Some(same))?;
                    *condition = Expr::Exists { subquery, negated: false };
                }
            }
        }
    }
    Ok(())
}

/// A question in any other place.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    if let Expr::Subquery(query) | Expr::InSubquery { subquery: query, .. } = &*expr
        && has_no_column(query)
    {
        let hint = "write what it answers behind its SELECT: `(SELECT count(*) FROM tasks)`";
        return Err(error_at(query.span(), "a subquery in place of a value has one column, and this has none", hint));
    }
    let Some((row, subquery, negated)) = question(expr)? else { return Ok(()) };
    let marked = same(row, subquery, "SELECT 1 AS same FROM x", |select, same| {
        if let [SelectItem::ExprWithAlias { expr, .. }] = select.projection.as_mut_slice() {
            *expr = same;
        }
    })?;
    let text = r#"SELECT CASE WHEN bool_or(same) THEN true WHEN count(*) > count(same) THEN NULL ELSE false END AS "IN" FROM x"#;
    let query = over(marked, vec![], text, |_| ())?;
    let value = Expr::Subquery(query);
    *expr = if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(value) } } else { value };
    Ok(())
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

/// The row, the subquery, and whether it stands behind NOT IN.
type Question = (Vec<Expr>, Box<Query>, bool);

fn question(expr: &Expr) -> Result<Option<Question>> {
    let Expr::InSubquery { expr: row, subquery, negated } = expr else { return Ok(None) };
    let Some(values) = values_of(row) else { return Ok(None) };
    let mut subquery = subquery.clone();
    if let SetExpr::Select(select) = subquery.body.as_mut() {
        let columns = &mut select.projection;
        let is_told = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
        if columns.iter().all(is_told) && columns.len() != values.len() {
            let what = format!("a row of {} values IN a subquery of {} columns", values.len(), columns.len());
            return Err(error_at(row.span(), what, "both sides of IN need the same number"));
        }
        // `SELECT x, x` is no relation, unless its columns have names of their own.
        for (at, item) in columns.iter_mut().enumerate() {
            if let SelectItem::UnnamedExpr(expr) = item {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::new(format!("{ROW}_{at}")) };
            }
        }
    }
    Ok(Some((values, subquery, *negated)))
}

/// `(a, b)` and `ROW(a, b)`.
fn values_of(row: &Expr) -> Option<Vec<Expr>> {
    let call = match row {
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

/// A query over the subquery, with the condition that one of its rows is the same as the given one.
fn same(row: Vec<Expr>, subquery: Box<Query>, text: &str, put: impl FnOnce(&mut Select, Expr)) -> Result<Box<Query>> {
    let names: Vec<Ident> = (0..row.len()).map(|at| Ident::new(format!("{ROW}_{at}"))).collect();
    let equal = row.into_iter().zip(&names).map(|(value, name)| Expr::BinaryOp {
        left: Box::new(Expr::CompoundIdentifier(vec![Ident::new(ROW), name.clone()])),
        op: BinaryOperator::Eq,
        right: Box::new(Expr::Nested(Box::new(value))),
    });
    let and = |left, right| Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) };
    let same = equal.reduce(and).ok_or_else(|| DataFusionError::Plan("a row without values".to_owned()))?;
    over(subquery, names, text, |select| put(select, same))
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
