//! Keys of ORDER BY, as PostgreSQL reads them: a bare name is a column of the answer, a name within an expression is one of FROM.
//!
//! DataFusion (55.2) resolves both to the alias. So where an expression names an alias, the keys become further columns of the query, where
//! only FROM is visible, and an outer query sorts by them:
//!
//! ```text
//! SELECT round(d) AS d FROM t ORDER BY d + 1 LIMIT 5
//!
//! SELECT * EXCLUDE ("__key_0") FROM (SELECT round(d) AS d, d + 1 AS "__key_0" FROM t) ORDER BY "__key_0" LIMIT 5
//! ```
//! Where FROM has no such column, or the query does not group by it, an expression may use the alias all the same, as in DuckDB: the statement
//! is planned as it was.
//!
//! A row of several values as a key stands for one key per value: `ORDER BY (a, b) DESC` is `ORDER BY a DESC, b DESC`, with NULLs behind all
//! values wherever NULLS FIRST would put the row itself. The same holds in windows, in aggregates and in GROUP BY.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result, SchemaError};
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Function, FunctionArgumentClause, FunctionArguments, GroupByExpr, Ident, OrderByExpr, OrderByKind,
    Query, Select, SelectItem, SetExpr, Spanned, Value, Visit, Visitor, VisitorMut, WindowType,
};

use crate::sql::diagnostic::error_at;
use crate::sql::rows::{over, values_of};
use crate::sql::scope::normal;
use crate::sql::statement::walk;

/// What the columns of keys are called; their number follows.
const KEY: &str = "__key_";

/// A statement whose keys see FROM where it has what they name, except for these names; `None` for one in which no key names an alias.
pub(super) fn by_columns(
    statement: &ParsedStatement,
    aliases: &HashSet<String>,
) -> Option<(ParsedStatement, HashSet<String>)> {
    let mut pass = Pass { aliases, named: HashSet::new() };
    let mut statement = statement.clone();
    walk(&mut statement, &mut pass);
    (!pass.named.is_empty()).then_some((statement, pass.named))
}

/// The name that planning did not find.
pub(super) fn not_found(error: &DataFusionError) -> Option<String> {
    match error.find_root() {
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::FieldNotFound { field, .. } => Some(field.name.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a name was found that is not grouped by: then only the alias can be meant.
pub(super) fn is_not_grouped(error: &DataFusionError) -> bool {
    error.find_root().to_string().contains("must appear in the GROUP BY")
}

struct Pass<'a> {
    /// Names that FROM is known not to have.
    aliases: &'a HashSet<String>,
    /// Names that keys have of an alias.
    named: HashSet<String>,
}

impl VisitorMut for Pass<'_> {
    type Break = ();

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let named: HashSet<String> = aliases_in_keys(query).difference(self.aliases).cloned().collect();
        if !named.is_empty()
            && let Some(ordered) = around(query)
        {
            *query = ordered;
            self.named.extend(named);
        }
        ControlFlow::Continue(())
    }
}

/// The aliases that expressions of a query's ORDER BY name.
fn aliases_in_keys(query: &Query) -> HashSet<String> {
    let (SetExpr::Select(select), Some(order)) = (query.body.as_ref(), &query.order_by) else { return HashSet::new() };
    let (OrderByKind::Expressions(keys), None) = (&order.kind, &select.distinct) else { return HashSet::new() };
    let items = select.projection.iter();
    let aliases: HashSet<String> = items
        .clone()
        .filter_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if last_name(expr) != Some(normal(alias)) => Some(normal(alias)),
            _ => None,
        })
        .collect();
    if aliases.is_empty() {
        return HashSet::new();
    }
    let is_column = |key: &Expr| {
        items.clone().any(
            |item| matches!(item, SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr) if expr == key),
        )
    };
    let expressions = keys.iter().flat_map(|key| values_of(&key.expr).unwrap_or_else(|| vec![key.expr.clone()]));
    let is_row = |key: &Expr| keys.iter().all(|whole| whole.expr != *key);
    let mut names = Names { found: HashSet::new(), depth: 0 };
    for key in expressions.filter(|key| (is_row(key) || !is_bare(key)) && !is_column(key)) {
        let _never_breaks = key.visit(&mut names);
    }
    names.found.intersection(&aliases).cloned().collect()
}

/// The names of columns in an expression, not those in its subqueries.
struct Names {
    found: HashSet<String>,
    depth: usize,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && self.depth == 0
        {
            self.found.insert(normal(name));
        }
        ControlFlow::Continue(())
    }
}

/// The query whose keys are columns of the one within.
fn around(query: &Query) -> Option<Query> {
    let mut within = query.clone();
    let SetExpr::Select(select) = within.body.as_mut() else { return None };
    let mut order = within.order_by.take()?;
    let OrderByKind::Expressions(keys) = &mut order.kind else { return None };
    let is_shown = |name: &Ident| {
        select.projection.iter().any(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => normal(alias) == normal(name),
            _ => false,
        })
    };
    let mut hidden = vec![];
    let mut shown = vec![];
    for key in keys.drain(..) {
        let is_of_answer = match bare(&key.expr) {
            Expr::Value(_) => true,
            Expr::Identifier(name) => is_shown(name),
            _ => false,
        };
        if is_of_answer {
            shown.push(key);
            continue;
        }
        for key in each(key) {
            let alias = Ident::with_quote('"', format!("{KEY}{}", hidden.len()));
            shown.push(OrderByExpr { expr: Expr::Identifier(alias.clone()), ..key.clone() });
            hidden.push((key.expr, alias));
        }
    }
    *keys = shown;
    let names: Vec<String> = hidden.iter().map(|(_, alias)| alias.to_string()).collect();
    select.projection.extend(hidden.into_iter().map(|(expr, alias)| SelectItem::ExprWithAlias { expr, alias }));
    let (with, limit_clause, fetch) = (within.with.take(), within.limit_clause.take(), within.fetch.take());
    let text = format!("SELECT * EXCLUDE ({}) FROM x", names.join(", "));
    let outer = over(Box::new(within), vec![], &text, |_| ()).ok()?;
    Some(Query { with, order_by: Some(order), limit_clause, fetch, ..*outer })
}

/// Splits rows of several values, in ORDER BY of a query; and refuses keys that say nothing or could be two columns.
pub(super) fn rewrite_order(query: &mut Query) -> Result<()> {
    let Some(OrderByKind::Expressions(keys)) = query.order_by.as_mut().map(|order| &mut order.kind) else {
        return Ok(());
    };
    for key in keys.iter() {
        match bare(&key.expr) {
            Expr::Value(literal) if matches!(literal.value, Value::SingleQuotedString(_)) => {
                let hint = "a name stands in double quotes or in none, and a number is the position of a column";
                return Err(error_at(literal.span, "ORDER BY a text orders nothing", hint));
            }
            key if is_no_position(key) => {
                let hint =
                    "a number is the position of a column: `ORDER BY 1`; `ORDER BY 1 DESC` begins with the greatest";
                return Err(error_at(key.span(), format!("ORDER BY {key} orders nothing"), hint));
            }
            Expr::Identifier(name) => {
                if let SetExpr::Select(select) = query.body.as_ref()
                    && is_ambiguous(name, select)
                {
                    let hint = format!(
                        "the position of a column says which: `ORDER BY 1`; or call one otherwise than `{name}`"
                    );
                    return Err(error_at(name.span, format!("SELECT has several columns `{name}`"), &hint));
                }
            }
            _ => {}
        }
    }
    split(keys);
    Ok(())
}

/// Whether columns of the answer that differ have this name.
fn is_ambiguous(name: &Ident, select: &Select) -> bool {
    let named = select.projection.iter().filter_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if normal(alias) == normal(name) => Some(expr),
        SelectItem::UnnamedExpr(expr) if last_name(expr) == Some(normal(name)) => Some(expr),
        _ => None,
    });
    let named: Vec<&Expr> = named.collect();
    let is_same = |one: &Expr, other: &Expr| {
        let is_unqualified = matches!(one, Expr::Identifier(_)) || matches!(other, Expr::Identifier(_));
        one == other || (is_unqualified && last_name(one).is_some() && last_name(one) == last_name(other))
    };
    named.split_first().is_some_and(|(first, others)| others.iter().any(|other| !is_same(first, other)))
}

/// The name that a column has without an alias.
fn last_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(normal(name)),
        Expr::CompoundIdentifier(names) => names.last().map(normal),
        _ => None,
    }
}

fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(within) => bare(within),
        other => other,
    }
}

fn is_number(expr: &Expr) -> bool {
    matches!(bare(expr), Expr::Value(literal) if matches!(literal.value, Value::Number(..)))
}

fn is_bare(expr: &Expr) -> bool {
    matches!(bare(expr), Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_))
}

/// A key for each value of a row, and the key itself of any other. The values stand in parentheses: they are no positions.
fn each(key: OrderByExpr) -> Vec<OrderByExpr> {
    let Some(values) = values_of(&key.expr).filter(|values| !values.is_empty()) else { return vec![key] };
    let mut options = key.options;
    // A row is never NULL itself.
    options.nulls_first = None;
    let value =
        |expr: Expr| OrderByExpr { expr: Expr::Nested(Box::new(expr)), options, with_fill: key.with_fill.clone() };
    values.into_iter().map(value).flat_map(each).collect()
}

fn split(keys: &mut Vec<OrderByExpr>) {
    if keys.iter().any(|key| values_of(&key.expr).is_some()) {
        *keys = std::mem::take(keys).into_iter().flat_map(each).collect();
    }
}

/// Whether a key is a number that is not the position of a column: `-1`, `1.5`.
fn is_no_position(key: &Expr) -> bool {
    let digits = |expr: &Expr| match expr {
        Expr::Value(literal) => match &literal.value {
            Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        _ => None,
    };
    match key {
        Expr::UnaryOp { expr, .. } => digits(expr).is_some(),
        key => digits(key).is_some_and(|digits| digits.contains(['.', 'e', 'E'])),
    }
}

/// Splits rows that a function is ordered by, or its window. A number there is a constant, which orders nothing: DataFusion (55.2) takes
/// it for the position of a column.
pub(super) fn rewrite_call(call: &mut Function) {
    if let FunctionArguments::List(list) = &mut call.args {
        list.clauses.retain_mut(|clause| {
            let FunctionArgumentClause::OrderBy(keys) = clause else { return true };
            split(keys);
            keys.retain(|key| !is_number(&key.expr));
            !keys.is_empty()
        });
    }
    if let Some(WindowType::WindowSpec(window)) = &mut call.over {
        split(&mut window.order_by);
        parts(&mut window.partition_by);
    }
}

/// Splits rows that are grouped by.
pub(super) fn rewrite_groups(select: &mut Select) {
    if let GroupByExpr::Expressions(groups, _) = &mut select.group_by {
        // `ROW(a, b)` is one value there.
        let is_row = |group: &Expr| matches!(bare(group), Expr::Tuple(values) if !values.is_empty());
        if groups.iter().any(is_row) {
            let each = |group: Expr| if is_row(&group) { values_of(&group).unwrap_or_default() } else { vec![group] };
            *groups = std::mem::take(groups).into_iter().flat_map(each).collect();
        }
    }
    if let Some(Distinct::On(keys)) = &mut select.distinct {
        parts(keys);
    }
}

fn parts(keys: &mut Vec<Expr>) {
    if keys.iter().any(|key| values_of(key).is_some()) {
        let each = |key: Expr| values_of(&key).unwrap_or_else(|| vec![key]);
        *keys = std::mem::take(keys).into_iter().flat_map(each).collect();
    }
}
