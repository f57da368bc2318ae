//! Tables of traces stay what was read: statements that would change, replace or drop one are refused.
//!
//! DataFusion's tables in memory take INSERT, UPDATE, DELETE and DROP. That is fine for a user's own tables; answers on a
//! changed `tasks` would still look like answers on the trace. They cannot do it where a subquery says which rows (DataFusion 55.2).

use std::ops::ControlFlow;

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, WriteOp, lit};
use datafusion::sql::sqlparser::ast::{
    Expr, FromTable, ObjectName, ObjectType, Spanned, Statement, TableFactor, TableObject, TableWithJoins,
    visit_expressions,
};

use crate::sql::diagnostic::error_at;
use crate::tables::{DOCS, Table, VIEWS};
use crate::{figures, perfetto};

/// The schema of the tables.
const MAIN: &str = "main";

/// Refuses a statement that changes a table or view which every session has, or another one by a subquery.
pub(super) fn refuse_changes(statement: &Statement) -> Result<()> {
    for name in changed(statement) {
        let Some(table) = of_the_trace(name) else { continue };
        return Err(error_at(
            name.span(),
            format!("`{table}` is what was read from the trace and cannot be changed"),
            &format!("make a table of your own: `CREATE TABLE mine AS SELECT * FROM {table}`"),
        ));
    }
    if let Some((name, schema)) = in_built_in_schema(statement) {
        let hint = "make a schema of your own: `CREATE SCHEMA mine`";
        return Err(error_at(name.span(), format!("the schema `{schema}` is the same in every session"), hint));
    }
    let word = match statement {
        Statement::Update(_) => "UPDATE",
        Statement::Delete(_) => "DELETE",
        _ => return Ok(()),
    };
    let subquery = visit_expressions(statement, |expr| match expr {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(expr.span()),
        _ => ControlFlow::Continue(()),
    });
    match subquery {
        ControlFlow::Break(span) => {
            let hint = "make a table of the rows that are wanted: `CREATE TABLE kept AS SELECT …`";
            Err(error_at(span, format!("{word} cannot have a subquery"), hint))
        }
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// DELETE and UPDATE of which the optimizer knows that they concern no row change none. DataFusion (55.2) looks for their conditions in the
/// plan, where `WHERE false` has become no rows at all, finds none, and takes all rows.
pub(super) fn of_no_rows(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Dml(change) = &plan else { return Ok(plan) };
    let concerns_none = matches!(change.op, WriteOp::Delete | WriteOp::Update)
        && change.input.exists(|below| Ok(matches!(below, LogicalPlan::EmptyRelation(_))))?;
    match concerns_none {
        true => LogicalPlanBuilder::empty(true).project([lit(0u64).alias("count")])?.build(),
        false => Ok(plan),
    }
}

/// The tables that a statement changes, replaces or drops.
fn changed(statement: &Statement) -> Vec<&ObjectName> {
    match statement {
        Statement::Insert(insert) => match &insert.table {
            TableObject::TableName(name) => vec![name],
            _ => Vec::new(),
        },
        Statement::Update(update) => named(&update.table).collect(),
        Statement::Delete(delete) => match &delete.from {
            FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables) => {
                tables.iter().flat_map(named).collect()
            }
        },
        Statement::Drop { names, .. } => names.iter().collect(),
        Statement::CreateTable(create) if create.or_replace => vec![&create.name],
        Statement::CreateView(create) if create.or_replace => vec![&create.name],
        _ => Vec::new(),
    }
}

fn named(table: &TableWithJoins) -> impl Iterator<Item = &ObjectName> {
    match &table.relation {
        TableFactor::Table { name, .. } => Some(name),
        _ => None,
    }
    .into_iter()
}

/// The name by which a statement drops a schema that every session has, or makes or drops something in one of views, with that schema.
fn in_built_in_schema(statement: &Statement) -> Option<(&ObjectName, String)> {
    let of_views =
        |schema: &str| schema == DOCS || schema == perfetto::SCHEMA || figures::schemas().any(|name| name == schema);
    let within = |name| match parts(name).as_slice() {
        [.., Some(schema), _] if of_views(schema) => Some((name, schema.clone())),
        _ => None,
    };
    match statement {
        Statement::Drop { object_type: ObjectType::Schema, names, .. } => names.iter().find_map(|name| {
            let schema = parts(name).pop().flatten()?;
            (schema == MAIN || of_views(&schema)).then_some((name, schema))
        }),
        Statement::Drop { names, .. } => names.iter().find_map(within),
        Statement::CreateTable(create) => within(&create.name),
        Statement::CreateView(create) => within(&create.name),
        _ => None,
    }
}

/// The parts of a name in small letters, as far as they are plain names.
fn parts(name: &ObjectName) -> Vec<Option<String>> {
    name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.to_lowercase())).collect()
}

/// The name of a table or view of every session: `tasks` or `main.tasks`.
fn of_the_trace(name: &ObjectName) -> Option<&'static str> {
    let parts = parts(name);
    let table = match parts.as_slice() {
        [Some(table)] => table,
        [.., Some(schema), Some(table)] if schema == MAIN => table,
        _ => return None,
    };
    Table::ALL.into_iter().map(Table::name).chain(VIEWS.iter().map(|view| view.name)).find(|name| name == table)
}
