//! Aggregates without ORDER BY beside aggregates with one: the former keep the order of the table.
//!
//! Where one aggregate of a query has ORDER BY, DataFusion (55.2) sorts the rows for all of them, so that `array_agg(x)` and
//! `first_value(x)` follow the order of `array_agg(x ORDER BY y)` beside them instead of the table's. So the rows are numbered below such a
//! query, and the aggregates without an order are ordered by the number:
//!
//! ```text
//! first_value(x), array_agg(x ORDER BY y)     first_value(x ORDER BY row_number() OVER ()), array_agg(x ORDER BY y)
//! ```
//!
//! Keys that do not change the order are left out. A constant fails where rows have no other column (`array_agg(1 ORDER BY (SELECT 1))`), and
//! a repeated key makes DataFusion's aggregates panic (`first_value(x ORDER BY y, y DESC)`, and `DISTINCT ON`, which becomes that).

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::{AggregateFunction, Sort};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, col};

use crate::sql::concatenated::is_word;

/// The column of the numbers.
const POSITION: &str = "__position";

/// Aggregates that have values as the table has them.
const IN_TABLE_ORDER: [&str; 5] = ["array_agg", "string_agg", "first_value", "last_value", "nth_value"];

/// Gives each aggregate without an order that of the table, where another one has an order; and distinct texts one type.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let plan = once(plan)?;
        let LogicalPlan::Aggregate(aggregate) = &plan.data else { return Ok(plan) };
        let calls = || aggregate.aggr_expr.iter().filter_map(call);
        let is_mixed = calls().any(|call| !call.params.order_by.is_empty()) && calls().any(is_in_table_order);
        let input_schema = aggregate.input.schema();
        let has_words = calls().any(|call| is_of_words(call, input_schema));
        if !is_mixed && !has_words {
            return Ok(plan);
        }
        let input = match is_mixed {
            true => {
                let input = LogicalPlanBuilder::from(Arc::clone(&aggregate.input));
                Arc::new(input.window([row_number().alias(POSITION)])?.build()?)
            }
            false => Arc::clone(&aggregate.input),
        };
        let changed = |expr: &Expr| {
            changed(expr.clone(), &mut |call: &mut AggregateFunction| {
                if is_mixed && is_in_table_order(call) {
                    call.params.order_by = vec![Sort::new(col(POSITION), true, false)];
                } else if is_of_words(call, input_schema) {
                    as_text(call);
                }
            })
        };
        let aggregates = aggregate.aggr_expr.iter().map(changed).collect();
        let grouped = Aggregate::try_new(input, aggregate.group_expr.clone(), aggregates)?;
        let columns = grouped.schema.columns().into_iter().zip(aggregate.schema.columns());
        // The number of a grouping set is hidden from what stands above as soon as `grouping` is made of it.
        let columns: Vec<Expr> = columns
            .filter(|(column, _)| column.name != Aggregate::INTERNAL_GROUPING_ID)
            .map(|(column, name)| match column == name {
                true => Expr::Column(column),
                false => Expr::Column(column).alias_qualified(name.relation, name.name),
            })
            .collect();
        let plan = LogicalPlanBuilder::from(LogicalPlan::Aggregate(grouped)).project(columns)?.build()?;
        Ok(Transformed::yes(plan))
    })
    .data()
}

/// A node whose orders name each key once.
fn once(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Distinct(Distinct::On(mut distinct)) => {
            let is_shorter = distinct.sort_expr.as_mut().is_some_and(is_shortened);
            Ok(Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(distinct)), is_shorter))
        }
        plan @ LogicalPlan::Aggregate(_) => {
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let mut is_shorter = false;
                let shortened = changed(expr, &mut |call| {
                    let order = &mut call.params.order_by;
                    is_shorter |= is_shortened(order);
                    // WITHIN GROUP (ORDER BY …) is the argument.
                    if !call.func.supports_within_group_clause() {
                        let keys = order.len();
                        order.retain(|key| !is_constant(&key.expr));
                        is_shorter |= order.len() < keys;
                    }
                });
                Ok(Transformed::new_transformed(shortened, is_shorter).update_data(|expr| name.restore(expr)))
            })
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Leaves the first of equal keys; whether there were some.
fn is_shortened(order: &mut Vec<Sort>) -> bool {
    let keys = order.len();
    let mut known = HashSet::new();
    order.retain(|key| known.insert(key.expr.clone()));
    order.len() < keys
}

/// Whether an expression is the same for all rows. A random number is none, and an outer column none of this query.
fn is_constant(expr: &Expr) -> bool {
    let speaks = |expr: &Expr| match expr {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) => true,
        Expr::ScalarSubquery(subquery) => !subquery.outer_ref_columns.is_empty(),
        Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) | Expr::Placeholder(_) => true,
        _ => false,
    };
    !expr.exists(|expr| Ok(speaks(expr))).unwrap_or(true) && !expr.is_volatile()
}

fn call(expr: &Expr) -> Option<&AggregateFunction> {
    match expr {
        Expr::AggregateFunction(call) => Some(call),
        Expr::Alias(alias) => call(&alias.expr),
        _ => None,
    }
}

fn is_in_table_order(call: &AggregateFunction) -> bool {
    // What is distinct has no order of the table.
    call.params.order_by.is_empty() && !call.params.distinct && IN_TABLE_ORDER.contains(&call.func.name())
}

/// `string_agg(DISTINCT s, ',' ORDER BY s)` where `s` is no plain text: words of a dictionary, or NULL. It would be cast for the function
/// and not in ORDER BY, and then refused, since only what is distinct can be ordered by.
fn is_of_words(call: &AggregateFunction, schema: &DFSchema) -> bool {
    let is_distinct = call.params.distinct && !call.params.order_by.is_empty() && call.func.name() == "string_agg";
    is_distinct
        && call
            .params
            .args
            .first()
            .and_then(|value| value.get_type(schema).ok())
            .is_some_and(|of| of.is_null() || is_word(&of))
}

fn as_text(call: &mut AggregateFunction) {
    let Some(value) = call.params.args.first_mut() else { return };
    let text = cast(value.clone(), DataType::Utf8);
    let by_value = call.params.order_by.iter_mut().filter(|sort| sort.expr == *value);
    by_value.for_each(|sort| sort.expr = text.clone());
    *value = text;
}

fn changed(expr: Expr, change: &mut impl FnMut(&mut AggregateFunction)) -> Expr {
    match expr {
        Expr::AggregateFunction(mut call) => {
            change(&mut call);
            Expr::AggregateFunction(call)
        }
        Expr::Alias(mut alias) => {
            *alias.expr = changed(*alias.expr, change);
            Expr::Alias(alias)
        }
        expr => expr,
    }
}
