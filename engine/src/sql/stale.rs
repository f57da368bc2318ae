//! Views over what was replaced or dropped.
//!
//! A view of DataFusion (55.2) keeps the plans of the views and tables that it was made of, not their names: it answers from the old
//! ones when they are made anew, where other databases look again or refuse. A note says so.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, TableReference};
use datafusion::logical_expr::{DdlStatement, LogicalPlan};
use datafusion::prelude::SessionContext;
use tq_udfs::relation::notes::{Note, Notes};

/// What a statement replaces or drops, if there is one of that name.
pub(super) fn replaced(context: &SessionContext, plan: &LogicalPlan) -> Option<TableReference> {
    let LogicalPlan::Ddl(statement) = plan else { return None };
    let name = match statement {
        DdlStatement::CreateView(create) if create.or_replace => &create.name,
        DdlStatement::CreateMemoryTable(create) if create.or_replace => &create.name,
        DdlStatement::DropView(dropped) => &dropped.name,
        DdlStatement::DropTable(dropped) => &dropped.name,
        _ => return None,
    };
    context.table_exist(name.clone()).unwrap_or(false).then(|| name.clone())
}

/// Notes the views that were made of it.
pub(super) async fn note_views_over(context: &SessionContext, replaced: &TableReference, notes: &Notes) -> Result<()> {
    let config = context.copied_config();
    let defaults = &config.options().catalog;
    let whole = replaced.clone().resolve(&defaults.default_catalog, &defaults.default_schema);
    let Some(schema) = context.catalog(&whole.catalog).and_then(|catalog| catalog.schema(&whole.schema)) else {
        return Ok(());
    };
    let mut stale = Vec::new();
    for name in schema.table_names() {
        let Some(table) = schema.table(&name).await? else { continue };
        let Some(plan) = table.get_logical_plan() else { continue };
        if name != *whole.table && speaks_of(&plan, &whole.table)? {
            stale.push(name);
        }
    }
    stale.sort();
    for name in stale {
        let text = format!("`{name}` still answers from the old `{}`; make it anew", whole.table);
        notes.add(Note { function: "view".to_owned(), text });
    }
    Ok(())
}

fn speaks_of(plan: &LogicalPlan, table: &str) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|part| {
        found |= match part {
            LogicalPlan::TableScan(scan) => scan.table_name.table() == table,
            LogicalPlan::SubqueryAlias(alias) => alias.alias.table() == table,
            _ => false,
        };
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
