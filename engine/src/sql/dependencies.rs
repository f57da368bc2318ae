//! Functional dependencies (a column determines another) that DataFusion concludes although they do not hold.
//!
//! In `d JOIN t`, where `d` was grouped by `d.b`, `d.b` determines the columns of `d`. `GROUP BY d.b, t.b` over it is planned (55.2)
//! as if `d.b` determined the whole answer, `t.b` too (`aggregate_functional_dependencies` takes all columns for the
//! dependency's target). The optimizer then drops `t.b` from ORDER BY and from GROUP BY: rows come in a wrong order, groups
//! are merged. So a key that determines some of the other keys only is grouped by as [`itself`], of which nothing is concluded.
//!
//! `unnest(list)` makes several rows of one, and DataFusion lets what determined that row determine what comes out of the list: of
//! `ORDER BY a, part`, where rows were grouped by `a`, it sorts by `a` alone. Columns that determine others go into it as [`itself`].

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Aggregate, Distinct, Expr, LogicalPlan, Projection};

use crate::sql::annotated::{Said, itself};

/// Hides the keys of a plan's aggregates of which too much would be concluded.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut has_changed = false;
    plan.transform_up_with_subqueries(|plan| {
        // Inputs may have lost a dependency.
        let mut plan = if has_changed { plan.recompute_schema()? } else { plan };
        // What the optimizer would make of it, when it is too late to look at its keys.
        if let LogicalPlan::Distinct(Distinct::All(input)) = &plan {
            let keys = input.schema().columns().into_iter().map(Expr::Column).collect();
            plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::clone(input), keys, vec![])?);
            has_changed = true;
        }
        if let LogicalPlan::Unnest(unnest) = &plan
            && let Some(input) = without_dependencies(&unnest.input)?
        {
            has_changed = true;
            plan = plan.with_new_exprs(vec![], vec![input])?;
        }
        let unchanged = |plan| Ok(Transformed::new_transformed(plan, has_changed));
        let LogicalPlan::Aggregate(aggregate) = &plan else { return unchanged(plan) };
        let hidden = misleading(aggregate);
        if hidden.is_empty() {
            return unchanged(plan);
        }
        has_changed = true;
        let name = |at: usize| format!("__key_{at}");
        let hide = |(at, expr): (usize, &Expr)| {
            if !hidden.contains(&at) {
                return expr.clone();
            }
            itself(expr.clone(), Said::NoColumn).alias(name(at))
        };
        let keys = aggregate.group_expr.iter().enumerate().map(hide).collect();
        let grouped = Aggregate::try_new(Arc::clone(&aggregate.input), keys, aggregate.aggr_expr.clone())?;
        let columns = plan.schema().columns().into_iter().enumerate().map(|(at, column)| match hidden.contains(&at) {
            true => Expr::Column(Column::from_name(name(at))).alias_qualified(column.relation, column.name),
            false => Expr::Column(column),
        });
        let grouped = Arc::new(LogicalPlan::Aggregate(grouped));
        let columns = columns.collect();
        Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(columns, grouped)?)))
    })
    .data()
}

/// The same rows, of which no column determines another; `None` where none does.
pub(super) fn without_dependencies(plan: &Arc<LogicalPlan>) -> Result<Option<LogicalPlan>> {
    let dependencies = plan.schema().functional_dependencies();
    let sources: HashSet<usize> = dependencies.iter().flat_map(|known| known.source_indices.iter().copied()).collect();
    if sources.is_empty() {
        return Ok(None);
    }
    let columns = plan.schema().columns().into_iter().enumerate().map(|(at, column)| match sources.contains(&at) {
        true => itself(Expr::Column(column.clone()), Said::NoColumn).alias_qualified(column.relation, column.name),
        false => Expr::Column(column),
    });
    Ok(Some(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::clone(plan))?)))
}

/// The places of the keys that determine some columns, while another key is none of these.
fn misleading(aggregate: &Aggregate) -> HashSet<usize> {
    let schema = aggregate.input.schema();
    let keys: Vec<Option<usize>> = aggregate
        .group_expr
        .iter()
        .map(|key| match key {
            Expr::Column(column) => schema.maybe_index_of_column(column),
            _ => None,
        })
        .collect();
    let mut hidden = HashSet::new();
    for dependency in schema.functional_dependencies().iter() {
        let place = |source: &usize| keys.iter().position(|key| key.as_ref() == Some(source));
        let Some(places) = dependency.source_indices.iter().map(place).collect::<Option<Vec<_>>>() else { continue };
        let is_determined = |key: &Option<usize>| key.is_some_and(|key| dependency.target_indices.contains(&key));
        if !keys.iter().all(is_determined) {
            hidden.extend(places);
        }
    }
    hidden
}
