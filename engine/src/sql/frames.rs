//! Frames of windows: what RANGE measures distances with.
//!
//! DataFusion (55.2) adds a distance to a key of its own type. Where that does not fit the type, rows of NULL are taken in; a distance of more
//! digits is refused, and so is every RANGE over times of a day, lists and rows. So keys that distances are added to get a type that
//! has room for them, before types are brought together:
//!
//! ```text
//! ORDER BY n RANGE 5 PRECEDING                    ORDER BY CAST(n AS DECIMAL(38, 0)), a distance of 0.5 with a digit behind the point
//! ORDER BY t RANGE INTERVAL '1 day' PRECEDING     nanoseconds as DECIMAL(38, 0); of a month, which has no length, the time as it is
//! ORDER BY date RANGE INTERVAL …                  a TIMESTAMP of microseconds, which reaches beyond all dates
//! ORDER BY time RANGE INTERVAL …                  nanoseconds; days of the distance count for nothing, as in PostgreSQL
//! ORDER BY interval RANGE INTERVAL …              their length
//! ORDER BY list                                   GROUPS in place of RANGE: without a distance both are of peers
//! ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING        FILTER (WHERE false): no rows
//! bool_and(a) OVER …                              min(a) OVER …
//! ORDER BY sqrt(n)                                ORDER BY itself(sqrt(n)): rows sorted by n are not taken for sorted by it
//! ```
//! Intervals are sorted by their length (`interval_keys.rs`) in any frame.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::expr::{Sort, WindowFunction, WindowFunctionDefinition, WindowFunctionParams};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, Window, WindowFrame, WindowFrameBound, WindowFrameUnits, cast,
};
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType as SqlType, Expr as SqlExpr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Interval, Spanned, UnaryOperator, Value, WindowFrame as SqlFrame, WindowFrameBound as SqlBound,
    WindowFrameUnits as SqlFrameUnits, WindowType,
};
use tq_udfs::checked::intervals::INTERVAL;

use crate::sql::annotated::{Said, itself};
use crate::sql::diagnostic::error_at;
use crate::sql::equal;
use crate::sql::interval_text::with_units;
use crate::sql::lengths::{OfInterval, length};

/// The most digits of a DECIMAL.
const DIGITS: u8 = 38;

/// Gives the windows of a plan keys that their frames can be measured with.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let LogicalPlan::Window(window) = &plan else { return Ok(Transformed::no(plan)) };
        let schema = Arc::clone(window.input.schema());
        let names = NamePreserver::new(&plan);
        let measured = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|expr| {
                let Expr::WindowFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
                let is_aggregate = matches!(call.fun, WindowFunctionDefinition::AggregateUDF(_));
                let mut changed = measured(&mut call.params, is_aggregate, &schema)?;
                changed |= of_booleans(&mut call, &schema)?;
                let WindowFunctionParams { partition_by, order_by, .. } = &mut call.params;
                for key in partition_by.iter_mut().chain(order_by.iter_mut().map(|sort| &mut sort.expr)) {
                    changed |= as_it_is(key)?;
                }
                Ok(Transformed::new_transformed(Expr::WindowFunction(call), changed))
            })?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })?;
        if measured.transformed { measured.map_data(one_node_for_each_keys) } else { Ok(measured) }
    })
    .data()
}

/// A node for each set of keys: DataFusion sorts once for a node, and frames of one window may be measured by different keys now.
fn one_node_for_each_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Window(window) = plan else { return Ok(plan) };
    let mut nodes: Vec<(Option<WindowKeys>, Vec<Expr>)> = vec![];
    for expr in window.window_expr {
        let keys = keys(&expr);
        match nodes.iter_mut().find(|(of_node, _)| *of_node == keys) {
            Some((_, exprs)) => exprs.push(expr),
            None => nodes.push((keys, vec![expr])),
        }
    }
    let mut input = window.input;
    for (_, exprs) in nodes {
        input = Arc::new(LogicalPlan::Window(Window::try_new(exprs, input)?));
    }
    Ok(Arc::unwrap_or_clone(input))
}

/// What a window partitions and sorts by.
type WindowKeys = (Vec<Expr>, Vec<Sort>);

fn keys(expr: &Expr) -> Option<WindowKeys> {
    match expr {
        Expr::Alias(alias) => keys(&alias.expr),
        Expr::WindowFunction(call) => Some((call.params.partition_by.clone(), call.params.order_by.clone())),
        _ => None,
    }
}

/// A key of which nothing is concluded: DataFusion takes rows that are sorted by `a` for sorted by `sqrt(a)`, and finds later that the plan does
/// not say so.
fn as_it_is(key: &mut Expr) -> Result<bool> {
    let is_computed = key.exists(|part| Ok(matches!(part, Expr::ScalarFunction(_) | Expr::Cast(_))))?;
    if is_computed {
        *key = itself(std::mem::take(key), Said::NoColumn);
    }
    Ok(is_computed)
}

/// Windows by keys of which nothing is concluded, in a plan that is optimized.
pub(super) fn with_opaque_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        if !matches!(plan, LogicalPlan::Window(_)) {
            return Ok(Transformed::no(plan));
        }
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let opaque = expr.transform_down(|expr| {
                let Expr::WindowFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
                let WindowFunctionParams { partition_by, order_by, .. } = &mut call.params;
                for key in partition_by.iter_mut().chain(order_by.iter_mut().map(|sort| &mut sort.expr)) {
                    *key = itself(std::mem::take(key), Said::NoColumn);
                }
                Ok(Transformed::new(Expr::WindowFunction(call), true, TreeNodeRecursion::Jump))
            })?;
            Ok(opaque.update_data(|expr| name.restore(expr)))
        })
    })
    .data()
}

/// `bool_and` is the least of all, `bool_or` the greatest: those give values back, when the beginning of a frame moves and when two windows
/// with opposite orders share a sort.
fn of_booleans(call: &mut WindowFunction, schema: &DFSchema) -> Result<bool> {
    let WindowFunctionDefinition::AggregateUDF(function) = &call.fun else { return Ok(false) };
    let instead = match function.name() {
        "bool_and" => min_udaf(),
        "bool_or" => max_udaf(),
        _ => return Ok(false),
    };
    let [value] = call.params.args.as_slice() else { return Ok(false) };
    let is_boolean = value.get_type(schema)? == DataType::Boolean;
    if is_boolean {
        call.fun = WindowFunctionDefinition::AggregateUDF(instead);
    }
    Ok(is_boolean)
}

/// Gives one window such keys; whether it changed.
fn measured(params: &mut WindowFunctionParams, is_aggregate: bool, schema: &DFSchema) -> Result<bool> {
    let frame = &params.window_frame;
    let is_range = frame.units == WindowFrameUnits::Range;
    let is_distance = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => !distance.is_null(),
        WindowFrameBound::CurrentRow => false,
    };
    if is_range && (is_distance(&frame.start_bound) || is_distance(&frame.end_bound)) {
        return by_distance(params, is_aggregate, schema);
    }
    let mut changed = false;
    for key in &mut params.order_by {
        if matches!(key.expr.get_type(schema)?, DataType::Duration(_)) {
            key.expr = OfInterval::Days.of([std::mem::take(&mut key.expr)]);
            changed = true;
        }
    }
    changed |= equal::sort_keys(&mut params.order_by, schema)?;
    if let Some(first) = params.order_by.first()
        && is_range
        && !is_taken(&first.expr.get_type(schema)?)
    {
        let (start, end) = (params.window_frame.start_bound.clone(), params.window_frame.end_bound.clone());
        params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end);
        changed = true;
    }
    Ok(changed)
}

/// Whether DataFusion takes a RANGE over keys of a type.
fn is_taken(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_taken(values),
        DataType::Boolean | DataType::Null | DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => true,
        other => other.is_numeric() || other.is_string(),
    }
}

/// What the two distances of a frame become.
type Distances<'a> = &'a dyn Fn(&str) -> Result<ScalarValue>;

fn by_distance(params: &mut WindowFunctionParams, is_aggregate: bool, schema: &DFSchema) -> Result<bool> {
    let [key] = params.order_by.as_mut_slice() else { return Ok(false) };
    let data_type = key.expr.get_type(schema)?;
    let frame = &mut params.window_frame;
    let texts: Vec<String> = [&frame.start_bound, &frame.end_bound].into_iter().filter_map(text).collect();
    let decimal = DataType::Decimal128(DIGITS, 0);
    match data_type {
        DataType::Null => Ok(false),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            texts.iter().try_for_each(|text| number(text).map(|_| ()))?;
            Ok(false)
        }
        ref kind if kind.is_integer() || matches!(kind, DataType::Decimal128(..)) => {
            let numbers = texts.iter().map(|text| number(text)).collect::<Result<Vec<_>>>()?;
            let (digits, own_scale) = match kind {
                DataType::Decimal128(digits, scale) => (digits.saturating_sub_signed(*scale), *scale),
                _ => (20, 0),
            };
            let scale = numbers.iter().map(|(_, scale)| *scale).max().unwrap_or_default().max(own_scale);
            if digits.saturating_add_signed(scale) > DIGITS {
                return plan_err!(
                    "the distance of a frame and the key that it is added to have more than {DIGITS} digits"
                );
            }
            with_type(key, frame, schema, DataType::Decimal128(DIGITS, scale), &|text| {
                let (unscaled, of_text) = number(text)?;
                let behind = u32::from((scale - of_text).unsigned_abs());
                let distance = 10_i128.checked_pow(behind).and_then(|tens| unscaled.checked_mul(tens));
                match distance.filter(|distance| *distance < 10_i128.pow(u32::from(DIGITS) - 1)) {
                    Some(distance) => Ok(ScalarValue::Decimal128(Some(distance), DIGITS, scale)),
                    None => plan_err!("the distance `{text}` of a frame has too many digits; UNBOUNDED takes all"),
                }
            })
        }
        DataType::Date32 | DataType::Date64 => {
            let microseconds = DataType::Timestamp(TimeUnit::Microsecond, None);
            with_type(key, frame, schema, microseconds, &|text| interval(text).map(|(interval, _)| interval))
        }
        DataType::Timestamp(unit, _) => {
            let mut has_month = false;
            for text in &texts {
                has_month |=
                    matches!(interval(text)?.0, ScalarValue::IntervalMonthDayNano(Some(value)) if value.months != 0);
            }
            // Beyond 2262 a frame ends where its partition does: there are no rows of NULL then. Ranks are of all rows.
            let is_open = [&frame.start_bound, &frame.end_bound].iter().any(|bound| bound.is_unbounded());
            if has_month && is_aggregate && !is_open {
                params.partition_by.push(key.expr.clone().is_null());
            }
            if has_month || unit != TimeUnit::Nanosecond {
                return with_type(key, frame, schema, data_type, &|text| interval(text).map(|(interval, _)| interval));
            }
            key.expr = cast(std::mem::take(&mut key.expr), DataType::Int64);
            with_type(key, frame, schema, decimal, &|text| interval(text).map(|(_, length)| nanoseconds(length)))
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let of_day = cast(std::mem::take(&mut key.expr), DataType::Time64(TimeUnit::Nanosecond));
            key.expr = cast(of_day, DataType::Int64);
            with_type(key, frame, schema, decimal, &|text| match interval(text)? {
                (ScalarValue::IntervalMonthDayNano(Some(interval)), _) if interval.nanoseconds >= 0 => {
                    Ok(nanoseconds(interval.nanoseconds.into()))
                }
                _ => negative(text),
            })
        }
        DataType::Duration(_) | DataType::Interval(_) => {
            if matches!(data_type, DataType::Duration(_)) {
                key.expr = OfInterval::Days.of([std::mem::take(&mut key.expr)]);
            }
            equal::to_key(&mut key.expr, schema)?;
            with_type(key, frame, schema, decimal, &|text| interval(text).map(|(_, length)| nanoseconds(length)))
        }
        other => plan_err!(
            "RANGE with a distance needs a key that has differences, a number, a time or an interval, found {other}; ROWS counts rows"
        ),
    }
}

/// Gives the key this type, and the frame its distances in it.
fn with_type(
    key: &mut Sort,
    frame: &mut WindowFrame,
    schema: &DFSchema,
    to: DataType,
    distance: Distances<'_>,
) -> Result<bool> {
    for bound in [&mut frame.start_bound, &mut frame.end_bound] {
        if let Some(text) = text(bound)
            && let WindowFrameBound::Preceding(value) | WindowFrameBound::Following(value) = bound
        {
            *value = distance(&text)?;
        }
    }
    if key.expr.get_type(schema)? != to {
        key.expr = cast(std::mem::take(&mut key.expr), to);
    }
    Ok(true)
}

/// The distance of a bound, which the planner has as a text.
fn text(bound: &WindowFrameBound) -> Option<String> {
    match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => {
            distance.try_as_str().flatten().map(str::to_owned)
        }
        WindowFrameBound::CurrentRow => None,
    }
}

fn nanoseconds(length: i128) -> ScalarValue {
    ScalarValue::Decimal128(Some(length), DIGITS, 0)
}

fn negative<T>(text: &str) -> Result<T> {
    plan_err!("the distance `{text}` of a frame is negative: PRECEDING and FOLLOWING say the direction")
}

/// A number, and how many of its digits stand behind the point.
fn number(text: &str) -> Result<(i128, i8)> {
    let digits = text.trim();
    if digits.starts_with('-') && digits[1..].parse::<f64>().is_ok() {
        return negative(text);
    }
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let unscaled = format!("{whole}{fraction}");
    let scale = i8::try_from(fraction.len()).ok().filter(|scale| *scale < 38);
    if let (true, Ok(unscaled), Some(scale)) = (is_digits(&unscaled), unscaled.parse(), scale) {
        return Ok((unscaled, scale));
    }
    if let Ok(value) = digits.parse::<f64>()
        && digits.contains(['e', 'E'])
        && value < 1e18
        && value.fract() == 0.0
    {
        return Ok((value as i128, 0));
    }
    plan_err!("the distance of a frame over numbers is a number, found `{text}`")
}

/// An interval that is not negative, and its length.
fn interval(text: &str) -> Result<(ScalarValue, i128)> {
    if text.trim().parse::<f64>().is_ok() {
        return plan_err!(
            "the distance of a frame over times is an interval, found `{text}`: `RANGE INTERVAL '{text} days' PRECEDING`"
        );
    }
    let interval = ScalarValue::from(with_units(text).into_owned()).cast_to(&INTERVAL)?;
    let length = match interval {
        ScalarValue::IntervalMonthDayNano(Some(interval)) => length(interval),
        _ => 0,
    };
    if length < 0 { negative(text) } else { Ok((interval, length)) }
}

/// Computes bounds that are written as expressions of constants: `1 + 1 PRECEDING`, `CAST('1 day' AS INTERVAL) FOLLOWING`.
pub(super) fn compute_bounds(frame: &mut SqlFrame) -> Result<()> {
    for bound in [Some(&mut frame.start_bound), frame.end_bound.as_mut()].into_iter().flatten() {
        let (SqlBound::Preceding(Some(distance)) | SqlBound::Following(Some(distance))) = bound else { continue };
        let computed = match distance.as_ref() {
            SqlExpr::Value(_) | SqlExpr::Interval(_) => continue,
            other => constant(other),
        };
        match computed {
            Some(Constant::Number(number)) if number < 0 => {
                let hint = "PRECEDING and FOLLOWING say the direction";
                return Err(error_at(distance.span(), "the distance of a frame is negative", hint));
            }
            Some(Constant::Number(number)) => {
                **distance = SqlExpr::Value(Value::Number(number.to_string(), false).into());
            }
            Some(Constant::Interval(interval)) => **distance = SqlExpr::Interval(interval),
            None => {
                let hint = "a bound is written as a number or an interval: `ROWS 5 PRECEDING`";
                return Err(error_at(distance.span(), "the bound of a frame is one value for all rows", hint));
            }
        }
    }
    Ok(())
}

/// Functions that do not look at frames.
const WITHOUT_FRAMES: [&str; 8] =
    ["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"];

/// A frame that ends before it begins, `ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING`, has no rows; DataFusion (55.2) refuses it. Here a condition that
/// no row meets says so. In a RANGE, rows whose key is NULL have no distance: they are a frame of their own, as in PostgreSQL.
pub(super) fn without_rows(call: &mut Function) -> Result<()> {
    let name = call.name.to_string().to_lowercase();
    let Some(WindowType::WindowSpec(window)) = &mut call.over else { return Ok(()) };
    let Some(frame) = window.window_frame.as_mut().filter(|frame| ends_before_it_begins(frame)) else { return Ok(()) };
    if WITHOUT_FRAMES.contains(&name.as_str()) {
        window.window_frame = None;
        return Ok(());
    }
    let is_in_frame = match (frame.units, window.order_by.first()) {
        (SqlFrameUnits::Range, Some(key)) => SqlExpr::IsNull(Box::new(SqlExpr::Nested(Box::new(key.expr.clone())))),
        (SqlFrameUnits::Range, None) => return Ok(()),
        _ => SqlExpr::Value(Value::Boolean(false).into()),
    };
    (frame.start_bound, frame.end_bound) = (SqlBound::CurrentRow, Some(SqlBound::CurrentRow));
    if ["first_value", "last_value", "nth_value"].contains(&name.as_str()) {
        let FunctionArguments::List(list) = &mut call.args else { return Ok(()) };
        if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(value))) = list.args.first_mut() {
            let of_frame = CaseWhen { condition: is_in_frame, result: value.clone() };
            let (case_token, end_token) = (AttachedToken::empty(), AttachedToken::empty());
            *value =
                SqlExpr::Case { case_token, end_token, operand: None, conditions: vec![of_frame], else_result: None };
        }
        return Ok(());
    }
    call.filter = Some(Box::new(match call.filter.take() {
        None => is_in_frame,
        Some(filter) => SqlExpr::BinaryOp {
            left: Box::new(SqlExpr::Nested(filter)),
            op: BinaryOperator::And,
            right: Box::new(is_in_frame),
        },
    }));
    Ok(())
}

fn ends_before_it_begins(frame: &SqlFrame) -> bool {
    let (before, after) = match (&frame.start_bound, &frame.end_bound) {
        (SqlBound::Preceding(Some(start)), Some(SqlBound::Preceding(Some(end)))) => (end, start),
        (SqlBound::Following(Some(start)), Some(SqlBound::Following(Some(end)))) => (start, end),
        _ => return false,
    };
    distance(before).zip(distance(after)).is_some_and(|(before, after)| before > after)
}

/// A distance as a number that others of its kind compare with; `None` for what is refused later.
fn distance(expr: &SqlExpr) -> Option<i128> {
    let literal = |expr: &SqlExpr| match expr {
        SqlExpr::Value(literal) => match &literal.value {
            Value::Number(text, _) | Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    match expr {
        SqlExpr::Interval(written) => {
            let text = literal(&written.value)?;
            let unit = written.leading_field.as_ref().map(|unit| format!(" {unit}")).unwrap_or_default();
            interval(&format!("{text}{unit}")).ok().map(|(_, length)| length)
        }
        other => {
            let text = literal(other)?;
            match number(&text) {
                Ok((unscaled, scale)) => {
                    unscaled.checked_mul(10_i128.checked_pow((18 - i32::from(scale)).try_into().ok()?)?)
                }
                Err(_) => interval(&text).ok().map(|(_, length)| length),
            }
        }
    }
}

enum Constant {
    Number(i64),
    Interval(Interval),
}

fn constant(expr: &SqlExpr) -> Option<Constant> {
    Some(match expr {
        SqlExpr::Value(literal) => match &literal.value {
            Value::Number(digits, _) => Constant::Number(digits.parse().ok()?),
            _ => return None,
        },
        SqlExpr::Interval(interval) => Constant::Interval(interval.clone()),
        SqlExpr::Nested(within) => constant(within)?,
        SqlExpr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => {
            match (data_type, expr.as_ref()) {
                (SqlType::Interval { .. }, text @ SqlExpr::Value(_)) => Constant::Interval(Interval {
                    value: Box::new(text.clone()),
                    leading_field: None,
                    leading_precision: None,
                    last_field: None,
                    fractional_seconds_precision: None,
                }),
                (SqlType::BigInt(_) | SqlType::Int(_) | SqlType::Integer(_) | SqlType::SmallInt(_), number) => {
                    constant(number)?
                }
                _ => return None,
            }
        }
        SqlExpr::UnaryOp { op, expr } => match (op, constant(expr)?) {
            (UnaryOperator::Minus, Constant::Number(number)) => Constant::Number(number.checked_neg()?),
            (UnaryOperator::Plus, number) => number,
            _ => return None,
        },
        SqlExpr::BinaryOp { left, op, right } => {
            let (Constant::Number(left), Constant::Number(right)) = (constant(left)?, constant(right)?) else {
                return None;
            };
            Constant::Number(match op {
                BinaryOperator::Plus => left.checked_add(right)?,
                BinaryOperator::Minus => left.checked_sub(right)?,
                BinaryOperator::Multiply => left.checked_mul(right)?,
                BinaryOperator::Divide => left.checked_div(right)?,
                _ => return None,
            })
        }
        _ => return None,
    })
}
