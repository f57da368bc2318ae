//! What PerfettoSQL writes in another way than we do.
//!
//! ```text
//! INCLUDE PERFETTO MODULE slices.with_context;     nothing: its views are there
//! CREATE PERFETTO TABLE x AS …                     CREATE TABLE x AS …
//! FROM ancestor_slice(42) AS a                     FROM (SELECT s.* FROM ancestors(…, task = 42) JOIN perfetto.slice s …) AS a
//! FROM slice JOIN ancestor_slice(slice.id) AS a    FROM slice JOIN (… of all tasks …) AS a ON a.of_slice = slice.id
//! ```
//! The last form answers for all tasks before it joins: what a column of another table asks for is not known earlier.

use std::borrow::Cow;
use std::collections::HashSet;

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, Join, JoinConstraint, JoinOperator, Select, SetExpr,
    Spanned, Statement, TableAlias, TableFactor,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::sql::diagnostic::error_at;
use crate::sql::dialect::TqDialect;

/// The relations over slices, and ours behind them.
const FAMILY: [(&str, &str); 2] = [("ancestor_slice", "ancestors"), ("descendant_slice", "descendants")];

/// The slice that was asked about, where a column of another relation did.
const OF: &str = "of_slice";

/// The tokens of a statement without Perfetto's own words; `None` when it says nothing else.
pub(super) fn plain(tokens: &[TokenWithSpan]) -> Option<Cow<'_, [TokenWithSpan]>> {
    let words: Vec<(usize, &str)> = tokens
        .iter()
        .enumerate()
        .filter_map(|(at, token)| match &token.token {
            Token::Whitespace(_) => None,
            Token::Word(word) => Some((at, word.value.as_str())),
            _ => Some((at, "")),
        })
        .take(5)
        .collect();
    let is = |place: usize, word: &str| words.get(place).is_some_and(|(_, found)| found.eq_ignore_ascii_case(word));
    if is(0, "include") && is(1, "perfetto") && is(2, "module") {
        return None;
    }
    let after_create = if is(1, "or") && is(2, "replace") { 3 } else { 1 };
    if is(0, "create")
        && is(after_create, "perfetto")
        && (is(after_create + 1, "table") || is(after_create + 1, "view"))
    {
        let mut tokens = tokens.to_vec();
        tokens.remove(words[after_create].0);
        return Some(Cow::Owned(tokens));
    }
    Some(Cow::Borrowed(tokens))
}

/// Joins with `ancestor_slice(other.column)` get a condition; what stands in a list after FROM gets it in WHERE.
pub(super) fn relations_of_columns(select: &mut Select) -> Result<()> {
    let mut conditions = Vec::new();
    let mut names = HashSet::new();
    for from in &mut select.from {
        if let Some(condition) = relation_of_column(&mut from.relation, &mut names)? {
            conditions.push(condition);
        }
        for join in &mut from.joins {
            let place = join.relation.span();
            let Some(condition) = relation_of_column(&mut join.relation, &mut names)? else { continue };
            if !add_condition(join, condition) {
                return Err(error_at(
                    place,
                    "this kind of join cannot take a slice relation".to_owned(),
                    "write `JOIN … ON`",
                ));
            }
        }
    }
    for condition in conditions {
        select.selection = Some(match select.selection.take() {
            Some(given) => and(given, condition),
            None => condition,
        });
    }
    Ok(())
}

/// `ancestor_slice(42)`: a constant, or a subquery.
pub(super) fn relation_of_one(factor: &mut TableFactor) -> Result<()> {
    let Some((ours, argument, alias)) = call(factor)? else { return Ok(()) };
    let sql = format!(
        "SELECT s.* FROM {ours}(TABLE(SELECT run, task, stack_parent AS parent FROM tq.main.tasks), \
         TABLE(SELECT run, task FROM tq.main.tasks WHERE task = ({argument}))) AS f JOIN tq.perfetto.slice AS s ON s.id = f.task"
    );
    *factor = derived(&sql, alias)?;
    Ok(())
}

fn relation_of_column(factor: &mut TableFactor, names: &mut HashSet<String>) -> Result<Option<Expr>> {
    let Some((ours, argument, alias)) = call(factor)? else { return Ok(None) };
    if !matches!(argument, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
        return Ok(None);
    }
    if !names.insert(alias.name.value.to_lowercase()) {
        let what = format!("`{}` stands twice", alias.name);
        return Err(error_at(factor.span(), what, "give each a name of its own: `ancestor_slice(…) AS a`"));
    }
    let of = Expr::CompoundIdentifier(vec![alias.name.clone(), Ident::new(OF)]);
    let sql = format!(
        "SELECT f.of_task AS {OF}, s.* FROM {ours}(TABLE(SELECT run, task, stack_parent AS parent FROM tq.main.tasks), \
         TABLE(SELECT run, task FROM tq.main.tasks)) AS f JOIN tq.perfetto.slice AS s ON s.id = f.task"
    );
    *factor = derived(&sql, alias)?;
    Ok(Some(Expr::BinaryOp { left: Box::new(of), op: BinaryOperator::Eq, right: Box::new(argument) }))
}

/// A call of a relation over slices: our function, its argument, and what the call is named.
fn call(factor: &TableFactor) -> Result<Option<(&'static str, Expr, TableAlias)>> {
    let TableFactor::Table { name, args: Some(arguments), alias, .. } = factor else { return Ok(None) };
    let [part] = name.0.as_slice() else { return Ok(None) };
    let Some(ident) = part.as_ident() else { return Ok(None) };
    let Some((theirs, ours)) = FAMILY.iter().find(|(theirs, _)| ident.value.eq_ignore_ascii_case(theirs)) else {
        return Ok(None);
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] = arguments.args.as_slice() else {
        return Err(error_at(factor.span(), format!("{theirs} takes the id of a slice"), &format!("`{theirs}(42)`")));
    };
    let own = TableAlias { explicit: true, name: Ident::with_span(ident.span, *theirs), columns: vec![], at: None };
    Ok(Some((*ours, argument.clone(), alias.clone().unwrap_or(own))))
}

fn derived(sql: &str, alias: TableAlias) -> Result<TableFactor> {
    let mut statements = Parser::parse_sql(&TqDialect, sql)?;
    match statements.pop() {
        Some(Statement::Query(subquery)) if matches!(*subquery.body, SetExpr::Select(_)) => {
            Ok(TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None })
        }
        _ => datafusion::common::internal_err!("a template is no query: {sql}"),
    }
}

/// Whether the join has a place for a condition.
fn add_condition(join: &mut Join, condition: Expr) -> bool {
    let constraint = match &mut join.join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint) => constraint,
        operator @ JoinOperator::CrossJoin(_) => {
            *operator = JoinOperator::Inner(JoinConstraint::On(condition));
            return true;
        }
        _ => return false,
    };
    *constraint = match std::mem::replace(constraint, JoinConstraint::None) {
        JoinConstraint::None => JoinConstraint::On(condition),
        JoinConstraint::On(given) => JoinConstraint::On(and(given, condition)),
        _ => return false,
    };
    true
}

fn and(left: Expr, right: Expr) -> Expr {
    let nested = |expr| Box::new(Expr::Nested(Box::new(expr)));
    Expr::BinaryOp { left: nested(left), op: BinaryOperator::And, right: Box::new(right) }
}
