//! Moves computed keys of grouping sets into a projection below the aggregation.
//!
//! ```text
//! GROUP BY ROLLUP (a, CASE WHEN b > 0 THEN 'more' END)    GROUP BY ROLLUP (a, c) over SELECT *, CASE … END AS c
//! ```
//! A pass that rewrites an expression gives it its old name by an alias. Within a grouping set that alias names the set instead of the key, and
//! `grouping(key)` no longer finds its key (DataFusion 55.2). No pass renames plain columns.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, LogicalPlanBuilder};

/// Computes the keys of all grouping sets of a plan below them.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Aggregate(aggregate) if matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]) => {
            computed(aggregate)
        }
        other => Ok(Transformed::no(other)),
    })
    .data()
}

fn computed(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = aggregate.input.schema();
    let mut keys: Vec<(Expr, String)> = vec![];
    for key in grouping_set_to_exprlist(&aggregate.group_expr)? {
        let name = key.schema_name().to_string();
        let is_known = keys.iter().any(|(known, _)| known == key) || schema.has_column_with_unqualified_name(&name);
        if !is_known && !matches!(key, Expr::Column(_)) {
            keys.push((key.clone(), name));
        }
    }
    if keys.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let columns = schema.columns().into_iter().map(Expr::Column);
    let named = keys.iter().map(|(key, name)| key.clone().unalias().alias(name));
    let input = LogicalPlanBuilder::from(Arc::unwrap_or_clone(aggregate.input)).project(columns.chain(named))?;
    let column_of = |expr: Expr| match keys.iter().find(|(key, _)| *key == expr) {
        Some((_, name)) => Ok(Transformed::yes(Expr::Column(Column::from_name(name)))),
        None => Ok(Transformed::no(expr)),
    };
    let map = |exprs: Vec<Expr>, change: &dyn Fn(Expr) -> Result<Transformed<Expr>>| -> Result<Vec<Expr>> {
        exprs.into_iter().map(|expr| change(expr).data()).collect()
    };
    let sets = map(aggregate.group_expr, &|set| set.map_children(column_of))?;
    let calls = map(aggregate.aggr_expr, &|call| {
        call.transform_down(|part| match &part {
            Expr::AggregateFunction(call) if call.func.name() == "grouping" => part.map_children(column_of),
            _ => Ok(Transformed::no(part)),
        })
    })?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new(input.build()?.into(), sets, calls)?)))
}
