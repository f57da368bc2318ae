//! Headings: columns of an answer that have no name are called as they were typed.
//!
//! ```text
//! SELECT 1, count(*), sum(duration) / 2, CASE WHEN a THEN 'b' END FROM tasks
//! DataFusion   Int64(1)  count(*)  sum(tasks.duration) / Int64(2)  CASE WHEN tasks.a THEN Utf8("b") END
//! here         1         count(*)  sum(duration) / 2               CASE WHEN a THEN 'b' END
//! ```
//! This holds for the answer of a statement and for what COPY writes. Within a statement, and in views and tables that are
//! made of one, columns have the names that planning gives them.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::{Result, TableReference};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser::{CopyToSource, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, ObjectNamePart, Query, Select, SelectItem, SetExpr, Statement as SqlStatement, VisitMut,
    VisitorMut,
};

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
        (ParsedStatement::Statement(typed), plan) => match typed.as_ref() {
            SqlStatement::Query(query) => named(query, plan, false),
            _ => Ok(plan),
        },
        (_, plan) => Ok(plan),
    }
}

fn named(query: &Query, plan: LogicalPlan, unique: bool) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let planned: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let headings = first_select(&query.body).map(|select| headings(select, &planned)).unwrap_or_default();
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

/// The heading of each column, where it is not for planning to say; empty if nobody knows which column is which.
fn headings(select: &Select, planned: &[&str]) -> Vec<Option<String>> {
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
            _ => headings.resize(headings.len() + if is_wildcard(item) { wide } else { 1 }, None),
        }
    }
    headings
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
    let _ = VisitMut::visit(&mut typed, &mut SmallLetters);
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

struct SmallLetters;

impl VisitorMut for SmallLetters {
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
}
