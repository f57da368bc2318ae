//! Rows of a list that depends on the tables beside it, and their numbers.
//!
//! ```text
//! FROM t, generate_series(1, t.n) g            FROM t, LATERAL (SELECT unnest(generate_series(1, t.n)) AS value) g
//! FROM t, unnest(ARRAY[t.a, t.b]) u            FROM t, LATERAL (SELECT unnest(ARRAY[t.a, t.b]) AS unnest) u
//! FROM t, unnest(t.list) WITH ORDINALITY u     FROM t, LATERAL (SELECT unnest(t.list) AS unnest,
//!                                                unnest(generate_series(1, cardinality(t.list))) AS ordinality) u
//! SELECT z FROM generate_series(1, 3) z        SELECT z.value AS z FROM generate_series(1, 3) z
//! FROM t JOIN LATERAL unnest(t.list) u ON …    FROM t JOIN LATERAL (SELECT unnest(t.list) AS u) u ON …
//! FROM unnest(t.list) u                        FROM unnest(t.list) u(u): the column was called `UNNEST(outer_ref(t.list))`
//! ```
//! DataFusion (55.2) takes numbers for `generate_series` in FROM, and refuses WITH ORDINALITY. A series of numbers that are written out stays
//! with it: it is a stream and no list.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, OrderBy, OrderByKind, Query, SelectItem, SetExpr, Statement, TableAlias,
    TableAliasColumnDef, TableFactor, VisitMut, VisitorMut, visit_expressions,
};
use datafusion::sql::sqlparser::parser::Parser;

use crate::sql::dialect::TqDialect;
use crate::sql::scope::normal;

/// Names of series as their column in the SELECT that has them, and in its ORDER BY; `value` is its name too.
pub(super) fn named(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    let tables = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let names: HashSet<String> = tables
        .filter_map(|table| match table {
            TableFactor::Table { name, args: Some(_), alias: Some(alias), with_ordinality: false, .. }
            | TableFactor::Function { name, alias: Some(alias), with_ordinality: false, .. } => {
                let alone = is_series(&name.to_string()) && alias.columns.is_empty();
                alone.then(|| normal(&alias.name)).filter(|alias| alias != VALUE)
            }
            _ => None,
        })
        .collect();
    if names.is_empty() {
        return;
    }
    let is_name = |expr: &Expr| matches!(expr, Expr::Identifier(name) if names.contains(&normal(name)));
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && is_name(expr)
            && let Expr::Identifier(alias) = &*expr
        {
            let alias = alias.clone();
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
    let mut series = Series { names: &names, depth: 0 };
    let _never_breaks = VisitMut::visit(select.as_mut(), &mut series);
    if let Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) = &mut query.order_by {
        for key in keys.iter_mut().filter(|key| !is_name(&key.expr)) {
            let _never_breaks = key.visit(&mut series);
        }
        let is_answered = |key: &Expr| {
            let aliases = select.projection.iter();
            aliases.clone().any(|item| matches!((item, key), (SelectItem::ExprWithAlias { alias, .. }, Expr::Identifier(key)) if normal(alias) == normal(key)))
        };
        for key in keys.iter_mut().filter(|key| is_name(&key.expr) && !is_answered(&key.expr)) {
            let _never_breaks = key.visit(&mut series);
        }
    }
}

/// The column of a series.
const VALUE: &str = "value";

/// Replaces names, but not within subqueries.
struct Series<'a> {
    names: &'a HashSet<String>,
    depth: usize,
}

impl VisitorMut for Series<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let name = match expr {
            Expr::Identifier(name) => &*name,
            Expr::CompoundIdentifier(names) => match names.as_slice() {
                [table, column] if normal(table) == normal(column) => table,
                _ => return ControlFlow::Continue(()),
            },
            _ => return ControlFlow::Continue(()),
        };
        if self.depth == 0 && self.names.contains(&normal(name)) {
            let column = Ident::with_span(name.span, VALUE);
            *expr = Expr::CompoundIdentifier(vec![name.clone(), column]);
        }
        ControlFlow::Continue(())
    }
}

/// Rewrites a table of FROM.
pub(super) fn rewrite(factor: &mut TableFactor) -> Result<()> {
    if let Some(query) = lateral(factor)? {
        *factor = query;
        return Ok(());
    }
    if let TableFactor::UNNEST { array_exprs, alias, with_ordinality: false, with_offset: false, .. } = factor
        && array_exprs.len() == 1
    {
        let alias = alias.get_or_insert_with(|| table_alias("unnest"));
        if alias.columns.is_empty() {
            alias.columns.push(TableAliasColumnDef { name: alias.name.clone(), data_type: None });
        }
    }
    let (columns, alias, name) = match &*factor {
        TableFactor::Table { name, args: Some(call), alias, with_ordinality, .. } if is_series(&name.to_string()) => {
            match series(&name.to_string(), &call.args, *with_ordinality) {
                Some(columns) => (columns, alias, name.to_string().to_lowercase()),
                None => return Ok(()),
            }
        }
        TableFactor::Function { name, args, alias, with_ordinality, .. } if is_series(&name.to_string()) => {
            match series(&name.to_string(), args, *with_ordinality) {
                Some(columns) => (columns, alias, name.to_string().to_lowercase()),
                None => return Ok(()),
            }
        }
        TableFactor::UNNEST { array_exprs, alias, with_ordinality: false, with_offset: false, .. }
            if array_exprs.iter().any(|list| depends(list) && !is_column(list)) =>
        {
            let names = std::iter::once("unnest".to_owned()).chain((1..).map(|at| format!("unnest_{at}")));
            let columns = array_exprs.iter().zip(names).map(|(list, name)| format!("unnest({list}) AS {name}"));
            (columns.collect::<Vec<_>>().join(", "), alias, "unnest".to_owned())
        }
        TableFactor::UNNEST { array_exprs, alias, with_ordinality: true, with_offset: false, .. } => {
            let [list] = array_exprs.as_slice() else { return Ok(()) };
            (numbered(&format!("{list}"), "unnest"), alias, "unnest".to_owned())
        }
        _ => return Ok(()),
    };
    let alias = alias.clone().unwrap_or_else(|| table_alias(&name));
    *factor = TableFactor::Derived { lateral: true, subquery: parsed(&columns)?, alias: Some(alias), sample: None };
    Ok(())
}

/// `LATERAL unnest(t.list) u`: the parser takes it for a function in FROM, which DataFusion does not know.
fn lateral(factor: &TableFactor) -> Result<Option<TableFactor>> {
    let TableFactor::Function { lateral: true, name, args, alias, with_ordinality, .. } = factor else {
        return Ok(None);
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] = args.as_slice() else { return Ok(None) };
    if !name.to_string().eq_ignore_ascii_case("unnest") {
        return Ok(None);
    }
    let alias = alias.clone().unwrap_or_else(|| table_alias("unnest"));
    let columns = match with_ordinality {
        true => numbered(&list.to_string(), "unnest"),
        false => format!("unnest({list}) AS {}", alias.name),
    };
    Ok(Some(TableFactor::Derived { lateral: true, subquery: parsed(&columns)?, alias: Some(alias), sample: None }))
}

fn table_alias(name: &str) -> TableAlias {
    TableAlias { explicit: false, name: Ident::new(name), columns: vec![], at: None }
}

fn is_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// Whether an expression has columns.
fn depends(expr: &Expr) -> bool {
    let of_column = |part: &Expr| if is_column(part) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    visit_expressions(expr, of_column).is_break()
}

fn is_series(name: &str) -> bool {
    ["generate_series", "range"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The columns of a series; `None` for one that DataFusion answers.
fn series(name: &str, arguments: &[FunctionArg], with_ordinality: bool) -> Option<String> {
    let arguments: Vec<&Expr> = arguments
        .iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let depends = arguments.iter().any(|expr| depends(expr));
    let arguments: Vec<String> = arguments.into_iter().map(ToString::to_string).collect();
    let list = format!("{name}({})", arguments.join(", "));
    match (with_ordinality, depends) {
        (true, _) => Some(numbered(&list, "value")),
        (false, true) => Some(format!("unnest({list}) AS value")),
        (false, false) => None,
    }
}

/// Elements of a list and their numbers, from 1.
fn numbered(list: &str, column: &str) -> String {
    format!(
        "unnest({list}) AS \"{column}\", unnest(generate_series(1, CAST(cardinality({list}) AS BIGINT))) AS ordinality"
    )
}

fn parsed(columns: &str) -> Result<Box<Query>> {
    let mut statements = Parser::parse_sql(&TqDialect, &format!("SELECT {columns}"))
        .map_err(|error| DataFusionError::SQL(Box::new(error), None))?;
    match statements.pop() {
        Some(Statement::Query(query)) if matches!(query.body.as_ref(), SetExpr::Select(_)) => Ok(query),
        _ => plan_err!("a list in FROM is no query"),
    }
}
