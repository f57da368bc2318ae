//! Comparison of values that are equal although their bits differ: intervals and lists.
//!
//! DataFusion compares them by their bits or fields:
//!
//! ```text
//! INTERVAL '25 hours' > '1 day'     months first, then days, then nanoseconds      interval_length(…) > interval_length(…)
//! [1, NULL] < [1, 2]                NULL is first (ORDER BY has it last)           "list <"([1, NULL], [1, 2])
//! CAST('[1, 2]' AS BIGINT[])        a list of one element, the text                refused
//! ORDER BY [2, NULL] NULLS FIRST    NULL is first within the list too              ORDER BY list IS NULL DESC, list
//! ```
//! The length of an interval is that of PostgreSQL and DuckDB: a month has 30 days, a day 24 hours. Plan nodes with such keys (GROUP BY,
//! DISTINCT, joins) are rewritten in `interval_keys.rs`; `canonical.rs` does the same for doubles.
//! [`CheckedArithmetic`](super::checked::CheckedArithmetic) calls this for each expression, when types are settled.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::functions::datetime::date_part;
use datafusion::logical_expr::expr::{
    AggregateFunction, Case, InList, InSubquery, ScalarFunction, Sort, WindowFunction, WindowFunctionDefinition,
};
use datafusion::logical_expr::{
    Between, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlanBuilder, Operator, ScalarUDF, TryCast, cast, lit, when,
};
use tq_udfs::checked::intervals::INTERVAL;
use tq_udfs::computed::computed;

use crate::sql::concatenated::is_word;
use crate::sql::lengths::{OfInterval, holds_intervals};
use crate::sql::quantified;

/// What a comparison compares: the sides of an operator, of BETWEEN, or of IN with a list. Nothing of other expressions.
pub(super) fn sides(expr: &mut Expr) -> Vec<&mut Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => vec![left, right],
        Expr::Between(Between { expr, low, high, .. }) => vec![expr, low, high],
        Expr::InList(InList { expr, list, .. }) => std::iter::once(expr.as_mut()).chain(list).collect(),
        _ => vec![],
    }
}

/// An expression that compares what is equal.
pub(super) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) && is_interval(&left, schema)? => {
            let (left, right) = (length(*left), length(*right));
            return Ok(Transformed::yes(
                rewrite(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))), schema)?.data,
            ));
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_order(op) && left.get_type(schema)?.is_nested() => {
            Transformed::yes(quantified::ordered(*left, op, *right))
        }
        Expr::Between(Between { expr, negated, low, high }) if expr.get_type(schema)?.is_nested() => {
            let sides = Expr::and(expr.as_ref().clone().gt_eq(*low), expr.lt_eq(*high));
            let between = sides.transform_up(|side| rewrite(side, schema))?.data;
            Transformed::yes(if negated { Expr::Not(Box::new(between)) } else { between })
        }
        Expr::Between(mut between) if is_interval(&between.expr, schema)? => {
            let Between { expr, low, high, .. } = &mut between;
            for part in [expr, low, high] {
                **part = length(std::mem::take(part));
            }
            Transformed::yes(Expr::Between(between))
        }
        Expr::InList(mut list) if is_interval(&list.expr, schema)? => {
            *list.expr = length(std::mem::take(&mut list.expr));
            list.list = list.list.into_iter().map(length).collect();
            Transformed::yes(Expr::InList(list))
        }
        Expr::InSubquery(mut within) if is_interval(&within.expr, schema)? => {
            let InSubquery { expr, subquery, .. } = &mut within;
            **expr = length(std::mem::take(expr));
            let rows = LogicalPlanBuilder::from(subquery.subquery.clone());
            let columns = rows.schema().columns().into_iter().map(|column| length(Expr::Column(column)));
            subquery.subquery = rows.project(columns)?.build()?.into();
            Transformed::yes(Expr::InSubquery(within))
        }
        Expr::Case(mut case)
            if let Some(value) = &case.expr
                && is_interval(value, schema)? =>
        {
            let Case { expr, when_then_expr, .. } = &mut case;
            for part in expr.iter_mut().chain(when_then_expr.iter_mut().map(|(value, _)| value)) {
                **part = length(std::mem::take(part));
            }
            Transformed::yes(Expr::Case(case))
        }
        Expr::ScalarFunction(mut call) if call.name() == "date_part" && !Arc::ptr_eq(&call.func, &DATE_PART) => {
            call.func = Arc::clone(&DATE_PART);
            Transformed::yes(of_function(call, schema)?.transform_data(|expr| of_years(expr, schema))?.data)
        }
        expr @ Expr::ScalarFunction(_) if matches!(&expr, Expr::ScalarFunction(call) if call.name() == "date_trunc") => {
            of_years(expr, schema)?
        }
        Expr::ScalarFunction(call) => return of_function(call, schema),
        Expr::AggregateFunction(mut call) => {
            let AggregateFunction { func, params } = &mut call;
            let distinct = distinct_arguments(func.name(), params.distinct, &mut params.args, schema)?;
            let ordered = sort_keys(&mut params.order_by, schema)?;
            Transformed::new_transformed(Expr::AggregateFunction(call), distinct || ordered)
        }
        Expr::WindowFunction(mut call) => {
            let WindowFunction { fun, params } = call.as_mut();
            let is_aggregate = matches!(fun, WindowFunctionDefinition::AggregateUDF(_));
            let distinct = distinct_arguments(fun.name(), params.distinct && is_aggregate, &mut params.args, schema)?;
            let mut keyed = false;
            for key in &mut params.partition_by {
                keyed |= to_key(key, schema)?;
            }
            Transformed::new_transformed(Expr::WindowFunction(call), distinct || keyed)
        }
        Expr::Cast(Cast { expr, field })
            if field.data_type() == &INTERVAL && matches!(expr.get_type(schema)?, DataType::Duration(_)) =>
        {
            Transformed::yes(OfInterval::Days.of([*expr]))
        }
        // TRY_CAST makes a list of one NULL of every text.
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field })
            if is_list(field.data_type()) && expr.get_type(schema)?.is_string() =>
        {
            return plan_err!(
                "text is not cast to a list: write `string_to_array(text, ',')`, or `[a, b]` for a list of values"
            );
        }
        other => Transformed::no(other),
    })
}

/// Functions that compare their arguments, or take them apart.
const COMPARED: [&str; 9] = [
    "greatest",
    "least",
    "nullif",
    "date_part",
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_position",
    "array_positions",
];

/// Functions that compare what is in a list, and answer parts of it.
const OF_LISTS: [&str; 13] = [
    "array_distinct",
    "array_except",
    "array_intersect",
    "array_max",
    "array_min",
    "array_remove",
    "array_remove_all",
    "array_remove_n",
    "array_replace",
    "array_replace_all",
    "array_replace_n",
    "array_sort",
    "array_union",
];

/// `date_part` as it is computed, for comparisons with years that timestamps do not reach.
static DATE_PART: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(computed(date_part())));

/// Compares intervals in a function by their length, and takes differences of times apart as intervals.
fn of_function(mut call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let function = Arc::clone(&call.func);
    let name = function.name();
    let is_refused = OF_LISTS.contains(&name);
    if !is_refused && !COMPARED.contains(&name) && !quantified::compares(&function) {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    }
    let types = call.args.iter().map(|argument| argument.get_type(schema)).collect::<Result<Vec<_>>>()?;
    let is_difference = |data_type: &DataType| name == "date_part" && matches!(data_type, DataType::Duration(_));
    if !types.iter().any(|data_type| holds_intervals(data_type) || is_difference(data_type)) {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    }
    if is_refused {
        return plan_err!(
            "`{name}` does not compare intervals by their length: take the list apart by `unnest(list)`, and DISTINCT, \
             ORDER BY or WHERE do"
        );
    }
    match (name, call.args.as_mut_slice()) {
        ("greatest" | "least", _) if types.iter().all(|data_type| data_type == &INTERVAL) => {
            call.args = call.args.into_iter().map(|argument| OfInterval::Rank.of([argument])).collect();
            return Ok(Transformed::yes(OfInterval::OfRank.of([Expr::ScalarFunction(call)])));
        }
        ("nullif", [value, other]) => {
            let (value, other) = (std::mem::take(value), std::mem::take(other));
            let is_other = length(value.clone()).eq(length(other));
            let nothing = lit(ScalarValue::try_from(&types[0])?);
            return Ok(Transformed::yes(when(is_other, nothing).otherwise(value)?));
        }
        ("date_part", [part, value]) => {
            if types.last().is_some_and(is_difference) {
                *value = OfInterval::Days.of([std::mem::take(value)]);
            }
            // DataFusion's are counted in 32 bits.
            let own = match part_name(part).unwrap_or_default().as_str() {
                "epoch" => OfInterval::Epoch,
                "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds" => {
                    OfInterval::OfMinute(1_000_000)
                }
                "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds" => {
                    OfInterval::OfMinute(1000)
                }
                "ns" | "nsec" | "nsecs" | "nsecond" | "nseconds" | "nanosecond" | "nanoseconds" => {
                    OfInterval::OfMinute(1)
                }
                part => match years_of(part) {
                    Some((years, _)) => OfInterval::Years(years),
                    None => return Ok(Transformed::yes(Expr::ScalarFunction(call))),
                },
            };
            return Ok(Transformed::yes(own.of([std::mem::take(value)])));
        }
        ("greatest" | "least", _) => return Ok(Transformed::no(Expr::ScalarFunction(call))),
        (_, [list, item, ..]) => {
            *list = length(std::mem::take(list));
            *item = length(std::mem::take(item));
        }
        _ => return Ok(Transformed::no(Expr::ScalarFunction(call))),
    }
    Ok(Transformed::yes(Expr::ScalarFunction(call)))
}

/// The part that is asked of a time, in small letters.
fn part_name(part: &Expr) -> Option<String> {
    let Expr::Literal(part, _) = part else { return None };
    Some(part.try_as_str().flatten()?.trim_matches(['\'', '"']).to_lowercase())
}

/// How many years a part has, and which year is its first: decades begin with 0, centuries with 1.
fn years_of(part: &str) -> Option<(i32, i32)> {
    match part {
        "decade" | "decades" => Some((10, 0)),
        "century" | "centuries" => Some((100, 1)),
        "millennium" | "millennia" => Some((1000, 1)),
        _ => None,
    }
}

/// `date_part` and `date_trunc` of many years, which DataFusion (55.2) lacks, by the year; and `date_trunc('milliseconds', t)`.
fn of_years(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
    let [part, time] = call.args.as_mut_slice() else { return Ok(Transformed::no(Expr::ScalarFunction(call))) };
    let Some(name) = part_name(part) else { return Ok(Transformed::no(Expr::ScalarFunction(call))) };
    let is_part = call.func.name() == "date_part";
    if is_part && name == "epoch" && matches!(time.get_type(schema)?, DataType::Timestamp(..)) {
        return Ok(Transformed::yes(OfInterval::EpochOfTime.of([std::mem::take(time)])));
    }
    if !is_part && matches!(time.get_type(schema)?, DataType::Interval(_) | DataType::Duration(_)) {
        return Ok(Transformed::no(Expr::ScalarFunction(call)));
    }
    let Some((years, first)) = years_of(&name) else {
        let singular = name.strip_suffix('s').filter(|_| !is_part).map(lit);
        let is_plural = singular.is_some();
        *part = singular.unwrap_or_else(|| std::mem::take(part));
        return Ok(Transformed::new_transformed(Expr::ScalarFunction(call), is_plural));
    };
    let year = DATE_PART.call(vec![lit("year"), time.clone()]);
    if is_part {
        // 2000 is of the 20th century, 2001 of the next one.
        let year = if first == 0 { year } else { year + lit(years - first) };
        return Ok(Transformed::yes(year / lit(years)));
    }
    let unit = lit(ScalarValue::new_interval_mdn(12, 0, 0));
    let behind = cast((year - lit(first)) % lit(years), DataType::Float64);
    let data_type = call.func.call(vec![lit("year"), time.clone()]).get_type(schema)?;
    *part = lit("year");
    let begin = Expr::ScalarFunction(call) - OfInterval::Times.of([unit, behind]);
    Ok(Transformed::yes(cast(begin, data_type)))
}

/// The arguments of an aggregate that counts equal values once; whether they changed.
fn distinct_arguments(name: &str, is_distinct: bool, arguments: &mut [Expr], schema: &DFSchema) -> Result<bool> {
    let counts = (is_distinct && name == "count") || name == "approx_distinct";
    let mut changed = false;
    for argument in arguments {
        let data_type = argument.get_type(schema)?;
        if counts && holds_intervals(&data_type) {
            *argument = length(std::mem::take(argument));
            changed = true;
        } else if name == "approx_distinct" && is_word(&data_type) {
            // DataFusion (55.2) counts texts, not words of a dictionary.
            *argument = cast(std::mem::take(argument), DataType::Utf8);
            changed = true;
        } else if name == "mode" && holds_intervals(&data_type) {
            return plan_err!(
                "`mode(x)` does not compare intervals by their length: `SELECT x, count(*) FROM … GROUP BY x ORDER BY 2 DESC` does"
            );
        } else if is_distinct && holds_intervals(&data_type) && !matches!(name, "min" | "max") {
            return plan_err!(
                "`{name}(DISTINCT …)` does not compare intervals by their length: `SELECT {name}(x) FROM (SELECT DISTINCT x \
                 FROM …)` does"
            );
        }
    }
    Ok(changed)
}

/// Sorts by the length of intervals, and by lists and rows within which NULL is behind all values whatever is said of NULL itself: DataFusion's
/// NULLS FIRST reaches into them. Whether there was one.
pub(super) fn sort_keys(keys: &mut Vec<Sort>, schema: &DFSchema) -> Result<bool> {
    let mut changed = false;
    let mut sorted = Vec::with_capacity(keys.len());
    for mut key in std::mem::take(keys) {
        changed |= to_key(&mut key.expr, schema)?;
        // Ascending with NULL behind and descending with NULL before are one order from both ends.
        if key.nulls_first == key.asc && key.expr.get_type(schema)?.is_nested() {
            sorted.push(Sort::new(key.expr.clone().is_null(), !key.nulls_first, false));
            key.nulls_first = !key.asc;
            changed = true;
        }
        sorted.push(key);
    }
    *keys = sorted;
    Ok(changed)
}

/// Makes the length of an interval that is a key; whether it was one.
pub(super) fn to_key(expr: &mut Expr, schema: &DFSchema) -> Result<bool> {
    let is_key = is_interval(expr, schema)?;
    if is_key {
        *expr = length(std::mem::take(expr));
    }
    Ok(is_key)
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn is_order(op: Operator) -> bool {
    matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    Ok(holds_intervals(&expr.get_type(schema)?))
}

pub(super) fn is_list(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

fn length(interval: Expr) -> Expr {
    OfInterval::Length.of([interval])
}
