//! Columns of a correlated condition that share a name with another column of their subquery.
//!
//! DataFusion (55.2) makes a join of a correlated subquery: it adds the columns that its condition needs to the subquery's answer, gives
//! that one alias, and finds them there by name alone. In
//!
//! ```text
//! EXISTS (SELECT 1 FROM t r2 JOIN t r4 ON … WHERE r4.s > r1.f AND r2.s > r1.f)
//! ```
//!
//! both become `__correlated_sq_1.s`, the first of them. So such columns get a name of their own below the condition:
//!
//! ```text
//! Projection: r2.s, r4.s, …
//!   Filter: s#2 > outer_ref(r1.f) AND s#1 > outer_ref(r1.f)
//!     Projection: r2.s, r4.s, …, r2.s AS s#1, r4.s AS s#2
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection};

/// Tells apart the columns of correlated conditions, in all subqueries of a plan.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    // A subquery may have several such conditions, one below the other.
    let mut told_apart = 0;
    plan.transform_up_with_subqueries(|plan| {
        let LogicalPlan::Subquery(mut subquery) = plan else { return Ok(Transformed::no(plan)) };
        let given = given_names(&subquery.subquery)?;
        let told = Arc::unwrap_or_clone(subquery.subquery).transform_up(|part| match part {
            LogicalPlan::Filter(filter) => apart(filter, &given, &mut told_apart),
            part => Ok(Transformed::no(part)),
        })?;
        subquery.subquery = Arc::new(told.data);
        Ok(Transformed::new_transformed(LogicalPlan::Subquery(subquery), told.transformed))
    })
    .data()
}

/// The names that a subquery gives to expressions: its answer may have a name that a column of its condition has.
fn given_names(plan: &LogicalPlan) -> Result<HashSet<String>> {
    let mut names = HashSet::new();
    plan.apply(|part| {
        if let LogicalPlan::Projection(Projection { expr, .. }) = part {
            names.extend(expr.iter().filter_map(|expr| match expr {
                Expr::Alias(alias) => Some(alias.name.clone()),
                _ => None,
            }));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(names)
}

fn apart(filter: Filter, given: &HashSet<String>, told_apart: &mut usize) -> Result<Transformed<LogicalPlan>> {
    let schema = filter.input.schema();
    let is_shared = |column: &Column| {
        given.contains(&column.name) || schema.iter().filter(|(_, field)| *field.name() == column.name).count() > 1
    };
    let mut shared: Vec<Column> = split_conjunction(&filter.predicate)
        .into_iter()
        .filter(|condition| condition.contains_outer())
        .flat_map(Expr::column_refs)
        .filter(|column| is_shared(column))
        .cloned()
        .collect();
    shared.sort();
    shared.dedup();
    if shared.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let columns: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
    let names: HashMap<&Column, Column> = shared
        .iter()
        .map(|column| {
            *told_apart += 1;
            (column, Column::from_name(format!("{}#{told_apart}", column.name)))
        })
        .collect();
    let named = shared.iter().map(|column| Expr::Column(column.clone()).alias(&names[column].name));
    let predicate = filter.predicate.transform(|part| match &part {
        Expr::Column(column) => Ok(match names.get(column) {
            Some(own) => Transformed::yes(Expr::Column(own.clone())),
            None => Transformed::no(part),
        }),
        _ => Ok(Transformed::no(part)),
    });
    let plan = LogicalPlanBuilder::from(filter.input)
        .project(columns.iter().cloned().chain(named))?
        .filter(predicate.data()?)?
        .project(columns)?
        .build()?;
    Ok(Transformed::yes(plan))
}
