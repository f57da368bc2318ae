//! `t(a)`: names for the first columns of a table; the others keep theirs.
//!
//! DataFusion (55.2) refuses a list of names that is shorter than the table is wide, so the names of the other columns are added to it.

use datafusion::common::Result;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{TableAlias, TableFactor};

use crate::sql::diagnostic::error_at;

/// Plans tables whose columns are named in FROM.
#[derive(Debug)]
pub(super) struct ColumnAliases;

impl RelationPlanner for ColumnAliases {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let Some(alias) = alias_of(&mut relation).filter(|alias| !alias.columns.is_empty()) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let (name, names) = (alias.name.clone(), std::mem::take(&mut alias.columns));
        let plan = match context.plan(relation)? {
            LogicalPlan::SubqueryAlias(table) => table.input.as_ref().clone(),
            plan => plan,
        };
        let columns = plan.schema().columns();
        if let Some(beyond) = names.get(columns.len()) {
            let what = format!("`{name}` has {} columns, and {} names for them", columns.len(), names.len());
            return Err(error_at(beyond.name.span, what, "a name for each column, or for the first ones"));
        }
        let mut names = names.into_iter();
        let named = columns.into_iter().map(|column| {
            let name = names.next().map_or_else(|| column.name.clone(), |name| context.normalize_ident(name.name));
            Expr::Column(column).alias(name)
        });
        let named = named.collect::<Vec<_>>();
        let plan = LogicalPlanBuilder::from(plan).project(named)?.alias(context.normalize_ident(name))?.build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

fn alias_of(relation: &mut TableFactor) -> Option<&mut TableAlias> {
    match relation {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { lateral: false, alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => alias.as_mut(),
        _ => None,
    }
}
