//! Intervals as keys: intervals of the same length are equal in GROUP BY, DISTINCT, PARTITION BY and joins.
//!
//! DataFusion (55.2) hashes and sorts the fields of an interval: `INTERVAL '1 day'` and `'24 hours'` are two groups, and the larger of
//! `'1 month'` and `'31 days'` is the month. A node with such keys gets their lengths instead ([`OfInterval`]), and a projection above it
//! restores the intervals under their names. Of intervals of one length, the one with the fewest months and days is shown.
//!
//! ```text
//! GROUP BY x               min(rank(x)) GROUP BY length(x), and x = of_rank(…) above        DISTINCT: GROUP BY all columns
//! min(x), also OVER        min(rank(x)), and of_rank(…) above
//! JOIN … USING (x)         length(l.x) = length(r.x), as in INTERSECT and EXCEPT
//! OVER (ORDER BY x)        OVER (ORDER BY length(x)): `frames.rs`
//! ```
//!
//! Two uses are refused: a column of intervals in WITH RECURSIVE … UNION, which would end late or never, and groups, `min` and `max` of
//! lists and structs that hold intervals.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, ScalarValue, plan_err};
use datafusion::functions_aggregate::expr_fn::min;
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Window, lit, when,
};
use tq_udfs::checked::intervals::INTERVAL;

use crate::sql::equal;
use crate::sql::lengths::{OfInterval, nests_intervals};

/// A node whose intervals are keys by their length, after types are settled.
pub(super) fn by_length(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => grouped(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) if has_interval(input.schema()) => {
            let columns = input.schema().columns().into_iter().map(Expr::Column).collect();
            grouped(Aggregate::try_new(input, columns, vec![])?)
        }
        LogicalPlan::Distinct(Distinct::On(mut distinct)) => {
            let schema = Arc::clone(distinct.input.schema());
            let mut changed = false;
            for key in &mut distinct.on_expr {
                changed |= equal::to_key(key, &schema)?;
            }
            if let Some(keys) = &mut distinct.sort_expr {
                // The first keys are those that are distinct, in both lists.
                let mut others = keys.split_off(distinct.on_expr.len().min(keys.len()));
                if equal::sort_keys(keys, &schema)? {
                    distinct.on_expr = keys.iter().map(|key| key.expr.clone()).collect();
                    changed = true;
                }
                changed |= equal::sort_keys(&mut others, &schema)?;
                keys.append(&mut others);
            }
            Ok(Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(distinct)), changed))
        }
        LogicalPlan::Window(window) => smallest_over(window),
        LogicalPlan::Join(mut join) => {
            let mut changed = false;
            for (left, right) in &mut join.on {
                changed |= equal::to_key(left, join.left.schema())?;
                equal::to_key(right, join.right.schema())?;
            }
            Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
        }
        LogicalPlan::RecursiveQuery(query) if query.is_distinct && has_interval(query.static_term.schema()) => {
            plan_err!(
                "WITH RECURSIVE … UNION does not compare intervals by their length: UNION ALL keeps all rows, and \
                 `CAST(extract(epoch FROM x) AS BIGINT)` is a number"
            )
        }
        other => Ok(Transformed::no(other)),
    }
}

fn has_interval(schema: &DFSchema) -> bool {
    schema.fields().iter().any(|field| field.data_type() == &INTERVAL || nests_intervals(field.data_type()))
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let data_type = expr.get_type(schema)?;
    if nests_intervals(&data_type) {
        return plan_err!(
            "GROUP BY, DISTINCT, min and max do not compare the intervals in a list or a struct by their length: take it apart, \
             `unnest(list)`, or cast it to a text"
        );
    }
    Ok(data_type == INTERVAL)
}

/// Groups by lengths.
fn grouped(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = aggregate.input.schema();
    let is_set = matches!(aggregate.group_expr.first(), Some(Expr::GroupingSet(_)));
    let mut shown = vec![];
    for (at, key) in grouping_set_to_exprlist(&aggregate.group_expr)?.into_iter().enumerate() {
        if is_interval(key, schema)? {
            let name = format!("__interval_{at}");
            shown.push((at, min(OfInterval::Rank.of([key.clone().unalias()])).alias(&name), Column::from_name(name)));
        }
    }
    let first = aggregate.schema.fields().len() - aggregate.aggr_expr.len();
    let mut calls = aggregate.aggr_expr.clone();
    let mut ranked = vec![];
    for (at, call) in calls.iter_mut().enumerate() {
        if by_rank(call, schema)? {
            ranked.push(first + at);
        }
    }
    if shown.is_empty() && ranked.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let keys = aggregate.group_expr.iter().map(|key| by_lengths(key.clone(), schema)).collect::<Result<_>>()?;
    calls.extend(shown.iter().map(|(_, smallest, _)| smallest.clone()));
    let by_length = LogicalPlan::Aggregate(Aggregate::try_new(Arc::clone(&aggregate.input), keys, calls)?);
    with_names(by_length, &aggregate.schema, |at, column| {
        let key = shown.iter().find(|(key, ..)| *key == at);
        Ok(match key {
            Some((_, _, smallest)) => {
                let interval = OfInterval::OfRank.of([Expr::Column(smallest.clone())]);
                // A key that is not of the set is NULL.
                match is_set {
                    true => when(column.is_null(), lit(ScalarValue::try_from(&INTERVAL)?)).otherwise(interval)?,
                    false => interval,
                }
            }
            None if ranked.contains(&at) => OfInterval::OfRank.of([column]),
            None => column,
        })
    })
}

fn by_lengths(key: Expr, schema: &DFSchema) -> Result<Expr> {
    let of_all = |keys: Vec<Expr>| keys.into_iter().map(|key| by_lengths(key, schema)).collect::<Result<Vec<_>>>();
    let of_sets = |sets: Vec<Vec<Expr>>| sets.into_iter().map(of_all).collect::<Result<Vec<_>>>();
    Ok(match key {
        Expr::GroupingSet(GroupingSet::Rollup(keys)) => Expr::GroupingSet(GroupingSet::Rollup(of_all(keys)?)),
        Expr::GroupingSet(GroupingSet::Cube(keys)) => Expr::GroupingSet(GroupingSet::Cube(of_all(keys)?)),
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
            Expr::GroupingSet(GroupingSet::GroupingSets(of_sets(sets)?))
        }
        key if is_interval(&key, schema)? => OfInterval::Length.of([key.unalias()]),
        key => key,
    })
}

/// Makes `min` and `max` of intervals those of their ranks; whether it was one.
fn by_rank(call: &mut Expr, schema: &DFSchema) -> Result<bool> {
    let (name, arguments) = match call {
        Expr::Alias(alias) => return by_rank(&mut alias.expr, schema),
        Expr::AggregateFunction(call) => (call.func.name(), &mut call.params.args),
        Expr::WindowFunction(call) => (call.fun.name(), &mut call.params.args),
        _ => return Ok(false),
    };
    let ("min" | "max", [value]) = (name, arguments.as_mut_slice()) else { return Ok(false) };
    let is_ranked = is_interval(value, schema)?;
    if is_ranked {
        *value = OfInterval::Rank.of([std::mem::take(value)]);
    }
    Ok(is_ranked)
}

fn smallest_over(window: Window) -> Result<Transformed<LogicalPlan>> {
    let first = window.input.schema().fields().len();
    let mut calls = window.window_expr.clone();
    let mut ranked = vec![];
    for (at, call) in calls.iter_mut().enumerate() {
        if by_rank(call, window.input.schema())? {
            ranked.push(first + at);
        }
    }
    if ranked.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    }
    let by_rank = LogicalPlan::Window(Window::try_new(calls, Arc::clone(&window.input))?);
    with_names(by_rank, &window.schema, |at, column| {
        Ok(if ranked.contains(&at) { OfInterval::OfRank.of([column]) } else { column })
    })
}

/// The columns of `schema`, each made of the one that stands at its place now.
fn with_names(
    plan: LogicalPlan,
    schema: &DFSchema,
    value: impl Fn(usize, Expr) -> Result<Expr>,
) -> Result<Transformed<LogicalPlan>> {
    let columns = plan.schema().columns().into_iter().zip(schema.columns()).enumerate().map(|(at, (column, name))| {
        let is_named = column == name;
        let column = Expr::Column(column);
        let value = value(at, column.clone())?;
        Ok(if is_named && value == column { value } else { value.alias_qualified(name.relation, name.name) })
    });
    let columns = columns.collect::<Result<Vec<Expr>>>()?;
    Ok(Transformed::yes(LogicalPlanBuilder::from(plan).project(columns)?.build()?))
}
