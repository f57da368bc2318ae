//! Headings: columns of an answer that have no name are called as they were typed.
//!
//! ```text
//! SELECT 1, count(*), sum(duration) / 2, CASE WHEN a THEN 'b' END FROM tasks
//! DataFusion   Int64(1)  count(*)  sum(tasks.duration) / Int64(2)  CASE WHEN tasks.a THEN Utf8("b") END
//! here         1         count(*)  sum(duration) / 2               CASE WHEN a THEN 'b' END
//! ```
//! This holds for the answer of a statement, for what COPY writes, and for tables and views that are made of one, also where `*` stands
//! for the columns of a subquery. Within a statement columns have the names that planning gives them.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::{Result, TableReference};
use datafusion::logical_expr::{DdlStatement, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser::{CopyToSource, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr as SqlExpr, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart, Query, Select,
    SelectItem, SetExpr, Spanned, Statement as SqlStatement, TableAlias, TableFactor, TableWithJoins, VisitMut,
    VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::Location;

use crate::sql::materialized;
use crate::sql::names::unique_names;

/// Gives the columns of a planned statement's answer their headings.
pub(super) fn give(statement: &ParsedStatement, plan: LogicalPlan) -> Result<LogicalPlan> {
    match (statement, plan) {
        (ParsedStatement::CopyTo(typed), LogicalPlan::Copy(mut copy)) => {
            if let CopyToSource::Query(query) = &typed.source {
                copy.input = Arc::new(named(query, Arc::unwrap_or_clone(copy.input), true)?);
            }
            Ok(LogicalPlan::Copy(copy))
        }
        (ParsedStatement::Statement(typed), plan) => match (typed.as_ref(), plan) {
            (SqlStatement::Query(query), plan) => named(query, plan, false),
            (SqlStatement::CreateView(typed), LogicalPlan::Ddl(DdlStatement::CreateView(mut view))) => {
                if typed.columns.is_empty() {
                    view.input = Arc::new(named(&typed.query, Arc::unwrap_or_clone(view.input), true)?);
                }
                Ok(LogicalPlan::Ddl(DdlStatement::CreateView(view)))
            }
            (SqlStatement::CreateTable(typed), LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(mut table))) => {
                if let (Some(query), []) = (&typed.query, typed.columns.as_slice()) {
                    table.input = Arc::new(named(query, Arc::unwrap_or_clone(table.input), true)?);
                }
                Ok(LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)))
            }
            (_, plan) => Ok(plan),
        },
        (_, plan) => Ok(plan),
    }
}

fn named(query: &Query, plan: LogicalPlan, unique: bool) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let planned: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let headings = headings(query, &planned);
    if !headings.iter().zip(&columns).any(|(heading, column)| heading.as_ref().is_some_and(|new| *new != column.name)) {
        return Ok(plan);
    }
    let names =
        headings.into_iter().zip(&columns).map(|(heading, column)| heading.unwrap_or_else(|| column.name.clone()));
    let mut names: Vec<String> = names.collect();
    if unique {
        names = unique_names(&names);
    }
    // A name may come twice: each new one has a relation of its own.
    let renamed = columns.into_iter().zip(names).enumerate().map(|(place, (column, name))| match column.name == name {
        true => Expr::Column(column),
        false => Expr::Column(column).alias_qualified(Some(TableReference::bare(format!("column {place}"))), name),
    });
    let renamed: Vec<Expr> = renamed.collect();
    LogicalPlanBuilder::from(plan).project(renamed)?.build()
}

/// The SELECT whose columns the answer's are.
fn first_select(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => first_select(&query.body),
        SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

/// The heading of each column, `None` where planning names it; empty where items of SELECT cannot be matched with columns.
fn headings(query: &Query, planned: &[&str]) -> Vec<Option<String>> {
    let Some(select) = first_select(&query.body) else { return Vec::new() };
    let wildcards = select.projection.iter().filter(|item| is_wildcard(item)).count();
    let others = select.projection.len() - wildcards;
    let wide = match wildcards {
        0 if others == planned.len() => 0,
        1 if others <= planned.len() => planned.len() - others,
        _ => return Vec::new(),
    };
    let mut headings = Vec::with_capacity(planned.len());
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                headings.push(heading(expr).filter(|_| !is_cast_of(expr, planned[headings.len()])));
            }
            // With options it stands for others: EXCLUDE, REPLACE.
            SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)
                if options.to_string().is_empty() =>
            {
                let stands_for = &planned[headings.len()..headings.len() + wide];
                let within = subquery(select, query).map(|subquery| self::headings(subquery, stands_for));
                headings.extend(within.filter(|within| within.len() == wide).unwrap_or_else(|| vec![None; wide]));
            }
            _ => headings.resize(headings.len() + if is_wildcard(item) { wide } else { 1 }, None),
        }
    }
    headings
}

/// The subquery, or the common table expression, that is all that a SELECT reads from and whose columns have no other names there.
fn subquery<'q>(select: &'q Select, query: &'q Query) -> Option<&'q Query> {
    let [TableWithJoins { relation, joins }] = select.from.as_slice() else { return None };
    let has_names = |alias: &Option<TableAlias>| alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
    match relation {
        TableFactor::Derived { subquery, alias, .. } if joins.is_empty() && !has_names(alias) => Some(subquery),
        TableFactor::Table { name, alias, args: None, .. } if joins.is_empty() && !has_names(alias) => {
            let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return None };
            let tables = query.with.as_ref().filter(|with| !with.recursive)?;
            let named = tables.cte_tables.iter().find(|table| table.alias.name == *name)?;
            named.alias.columns.is_empty().then_some(&named.query)
        }
        _ => None,
    }
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// An expression as it was typed, names of functions in small letters; `None` for columns.
fn heading(expr: &SqlExpr) -> Option<String> {
    if column(expr).is_some() {
        return None;
    }
    let mut typed = expr.clone();
    let _ = VisitMut::visit(&mut typed, &mut AsTyped);
    Some(typed.to_string())
}

fn column(expr: &SqlExpr) -> Option<&str> {
    match expr {
        SqlExpr::Identifier(name) => Some(&name.value),
        SqlExpr::CompoundIdentifier(parts) => parts.last().map(|name| name.value.as_str()),
        _ => None,
    }
}

/// Whether an answer's column of this name is a column with a cast around it: it keeps its name.
fn is_cast_of(mut expr: &SqlExpr, planned: &str) -> bool {
    while let SqlExpr::Cast { expr: inner, .. } | SqlExpr::Nested(inner) = expr {
        expr = inner;
    }
    column(expr).is_some_and(|name| name.eq_ignore_ascii_case(planned))
}

struct AsTyped;

impl VisitorMut for AsTyped {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<()> {
        if let SqlExpr::Function(function) = expr {
            for part in &mut function.name.0 {
                if let ObjectNamePart::Identifier(name) = part
                    && name.quote_style.is_none()
                {
                    name.value.make_ascii_lowercase();
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        query.with.iter_mut().flat_map(|with| &mut with.cte_tables).for_each(materialized::unmark);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut SqlExpr) -> ControlFlow<()> {
        if let Some(operation) = operation(expr) {
            *expr = operation;
        }
        ControlFlow::Continue(())
    }
}

/// What was typed as an operator and became the call of a function (`dialect.rs`): `a // b`, `a GLOB b`. The name of the function then has the
/// place of the operator, behind its left side.
fn operation(expr: &SqlExpr) -> Option<SqlExpr> {
    let SqlExpr::Function(function) = expr else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(first)), FunctionArg::Unnamed(FunctionArgExpr::Expr(second))] =
        list.args.as_slice()
    else {
        return None;
    };
    let (left, op, right) = match function.name.to_string().as_str() {
        "integer_divide" => (first, BinaryOperator::DuckIntegerDivide, second),
        "glob" => (second, BinaryOperator::Custom("GLOB".to_owned()), first),
        _ => return None,
    };
    let (before, name) = (left.span(), function.name.span());
    if before.start == Location::empty() || before.start > name.start {
        return None;
    }
    Some(SqlExpr::BinaryOp { left: Box::new(left.clone()), op, right: Box::new(right.clone()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse;

    #[test]
    fn operators_are_called_as_they_are_typed() {
        let columns = [
            "-5 // 2",
            "abs(a // 2) + 1",
            "name GLOB 'a*'",
            "(1 + 2) // 2",
            "integer_divide(-5, 2)",
            "glob('a*', name)",
            "count(*)",
        ];
        let statement = parse(&format!("SELECT {} FROM t", columns.join(", "))).unwrap().remove(0);
        let ParsedStatement::Statement(parsed) = &statement.parsed else { panic!("no statement") };
        let SqlStatement::Query(query) = parsed.as_ref() else { panic!("no query") };
        let given = headings(query, &[""; 7]);
        assert_eq!(given.iter().map(Option::as_deref).collect::<Vec<_>>(), columns.map(Some));
    }
}
