//! LATERAL tables that refer to the tables beside them only from within a subquery of their own.
//!
//! DataFusion (55.2) marks a LATERAL table by a node around its plan, but looks for outer columns in the plan itself and not in its
//! subqueries: of
//!
//! ```text
//! FROM t, LATERAL (SELECT … FROM u WHERE EXISTS (SELECT … FROM v WHERE v.a = t.a)) l
//! ```
//!
//! it makes a plain join, in which `t.a` is unknown. Here such a table gets the node; `subqueries.rs` removes it where the table does not
//! refer to `t` after all.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Spans};
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{LogicalPlan, Subquery, SubqueryAlias};
use datafusion::sql::sqlparser::ast::TableFactor;

/// Plans LATERAL tables.
#[derive(Debug)]
pub(super) struct Laterals;

impl RelationPlanner for Laterals {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Derived { lateral: true, subquery, alias: Some(alias), sample } = relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let plain = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample };
        let plan = match context.plan(plain)? {
            LogicalPlan::SubqueryAlias(table) if asks_outside(&table.input)? => {
                let subquery = Subquery { subquery: table.input, outer_ref_columns: vec![], spans: Spans::new() };
                let table = SubqueryAlias::try_new(Arc::new(LogicalPlan::Subquery(subquery)), table.alias)?;
                LogicalPlan::SubqueryAlias(table)
            }
            plan => plan,
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

/// Whether subqueries of a plan speak of a query around them, and the plan itself does not.
fn asks_outside(plan: &LogicalPlan) -> Result<bool> {
    if !plan.all_out_ref_exprs().is_empty() {
        return Ok(false);
    }
    let mut found = false;
    plan.apply_with_subqueries(|part| {
        part.apply_expressions(|expr| {
            found |= expr.contains_outer();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}
