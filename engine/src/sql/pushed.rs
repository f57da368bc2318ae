//! Filters that must not be pushed down, and qualified column names for those that may.
//!
//! DataFusion (55.2) pushes a condition below an aggregation if it names only grouping columns, and below a window if it names only
//! columns of PARTITION BY. A condition without columns, `(SELECT max(b) FROM t) > 100` or `random() < 0.5`, passes that test. But an
//! aggregation of the whole table (or `GROUPING SETS ((a), ())`) gives a row even for no input, and a volatile condition has another
//! value for each row, group or pair:
//!
//! ```text
//! SELECT * FROM (SELECT count(*) FROM t) WHERE (SELECT false)     no row, and not `0`
//! SELECT a FROM t GROUP BY a HAVING random() < 0.5                half of the groups
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, GroupingSet, LogicalPlan};
use datafusion::optimizer::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule of DataFusion that pushes conditions down.
pub(super) const PUSHES: &str = "push_down_filter";

/// Applies the rule, but leaves the conditions that must not be pushed where they are.
pub(super) fn with_held(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Filter(Filter { predicate, mut input, .. }) = plan else { return rule.rewrite(plan, config) };
    let mut conditions = split_conjunction_owned(qualified(predicate, input.schema())?);
    // The rule would take those of a filter below along.
    while let LogicalPlan::Filter(below) = input.as_ref() {
        let below_it = split_conjunction_owned(qualified(below.predicate.clone(), below.input.schema())?);
        conditions.splice(0..0, below_it);
        input = Arc::clone(&below.input);
    }
    let (held, free): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(|condition| is_held(condition, &input));
    let filter = |conditions: Vec<Expr>, input: Arc<LogicalPlan>| match conjunction(conditions) {
        Some(predicate) => Ok(LogicalPlan::Filter(Filter::try_new(predicate, input)?)),
        None => Ok(Arc::unwrap_or_clone(input)),
    };
    if held.is_empty() {
        return rule.rewrite(filter(free, input)?, config);
    }
    if free.is_empty() {
        return Ok(Transformed::no(filter(held, input)?));
    }
    rule.rewrite(filter(free, input)?, config)?.map_data(|below| filter(held, Arc::new(below)))
}

/// `b = 1` over `Projection: r5.b` is `r5.b = 1`: below it there may be an `r4.b`, and the rule finds columns by their whole name.
fn qualified(predicate: Expr, schema: &DFSchema) -> Result<Expr> {
    let predicate = predicate.transform(|expr| match &expr {
        Expr::Column(column) if column.relation.is_none() => {
            match schema.qualified_field_with_unqualified_name(&column.name) {
                Ok((Some(relation), field)) => {
                    Ok(Transformed::yes(Expr::Column(Column::new(Some(relation.clone()), field.name()))))
                }
                _ => Ok(Transformed::no(expr)),
            }
        }
        _ => Ok(Transformed::no(expr)),
    });
    predicate.data()
}

fn is_held(condition: &Expr, input: &LogicalPlan) -> bool {
    match input {
        LogicalPlan::Aggregate(aggregate) => {
            condition.is_volatile() || condition.column_refs().is_empty() && has_a_row_without_input(aggregate)
        }
        LogicalPlan::Window(_) | LogicalPlan::Join(_) | LogicalPlan::Distinct(_) => condition.is_volatile(),
        _ => false,
    }
}

fn has_a_row_without_input(aggregate: &Aggregate) -> bool {
    match aggregate.group_expr.as_slice() {
        [] | [Expr::GroupingSet(GroupingSet::Rollup(_) | GroupingSet::Cube(_))] => true,
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.iter().any(Vec::is_empty),
        _ => false,
    }
}
