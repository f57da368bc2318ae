//! Operators on dates, times and intervals, as PostgreSQL (15) has them, where DataFusion (55.2) has another answer or none.
//!
//! ```text
//! DATE ± INTERVAL               CAST(date AS TIMESTAMP) ± interval           hours would be left out without a word
//! TIMESTAMP(0) ± INTERVAL       CAST(… AS TIMESTAMP(9)) ± interval           what is finer than the unit would be left out without a word
//! INTERVAL * n, INTERVAL / n    interval_times(interval, n), interval_over   also of `t2 - t1`, which is an interval then
//! - INTERVAL '1 hour 5 minutes'   -1 * interval                            DataFusion negates the hour only
//! -(t2 - t1)                    interval_times(…, -1)                      DataFusion refuses it
//! interval > '1 day', BETWEEN   CAST('1 day' AS INTERVAL)                  and so in IN, and in `t + '1 day'`
//! TIMESTAMP AT TIME ZONE z      the moment at which clocks there show that   shown in UTC
//! TIMESTAMPTZ AT TIME ZONE z    what clocks there show at that moment        a TIMESTAMP
//! ```
//!
//! TIMESTAMPTZ is a moment, shown in UTC: the session's zone is [`UTC`].

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::expr::{Case, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, cast, lit};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr as SqlExpr, UnaryOperator, Value};
use tq_udfs::checked::intervals::INTERVAL;

use crate::sql::checked::visible_columns;
use crate::sql::lengths::OfInterval;
use crate::sql::postgres_texts::is_text as is_text_type;
use crate::sql::zones::{shown_at, shown_in, zone_called};

/// The zone of sessions, by a name that needs no table of zones.
pub(super) const UTC: &str = "+00:00";

/// The operator that stands for AT TIME ZONE until the types of its sides are known.
const AT_TIME_ZONE: &str = "AT TIME ZONE";

/// The operator that stands for a `-` before a difference until its type is known.
const NEGATED: &str = "NEGATED";

/// Gives `x AT TIME ZONE z` to the planner below; and `- INTERVAL '1 hour 30 minutes'` as a product: DataFusion puts the `-` into the
/// text, where it is that of the hours only.
pub(super) fn rewrite(expr: &mut SqlExpr) {
    if let SqlExpr::UnaryOp { op: UnaryOperator::Minus, expr: negated } = expr
        && is_interval(negated)
    {
        let negated = Box::new(std::mem::replace(negated.as_mut(), SqlExpr::Identifier("".into())));
        let one = Box::new(SqlExpr::Value(Value::Number("-1".to_owned(), false).into()));
        *expr = SqlExpr::BinaryOp { left: one, op: BinaryOperator::Multiply, right: negated };
    }
    if let SqlExpr::UnaryOp { op: UnaryOperator::Minus, expr: negated } = expr
        && let SqlExpr::Nested(difference) = negated.as_ref()
        && matches!(difference.as_ref(), SqlExpr::BinaryOp { op: BinaryOperator::Minus, .. })
    {
        let left = Box::new(std::mem::replace(negated.as_mut(), SqlExpr::Identifier("".into())));
        let right = Box::new(SqlExpr::Value(Value::Null.into()));
        *expr = SqlExpr::BinaryOp { left, op: BinaryOperator::Custom(NEGATED.to_owned()), right };
    }
    if let SqlExpr::AtTimeZone { timestamp, time_zone } = expr {
        let nothing = || SqlExpr::Identifier("".into());
        *expr = SqlExpr::BinaryOp {
            left: Box::new(std::mem::replace(timestamp.as_mut(), nothing())),
            op: BinaryOperator::Custom(AT_TIME_ZONE.to_owned()),
            right: Box::new(std::mem::replace(time_zone.as_mut(), nothing())),
        };
    }
}

fn is_interval(expr: &SqlExpr) -> bool {
    match expr {
        SqlExpr::Nested(within) => is_interval(within),
        other => matches!(other, SqlExpr::Interval(_)),
    }
}

/// Plans these operators.
#[derive(Debug)]
pub(super) struct OfTimes;

impl ExprPlanner for OfTimes {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Multiply, NotEq, Plus};
        let is_zone = matches!(&expr.op, BinaryOperator::Custom(op) if op == AT_TIME_ZONE);
        let is_negation = matches!(&expr.op, BinaryOperator::Custom(op) if op == NEGATED);
        let compares = matches!(expr.op, Eq | NotEq | Lt | LtEq | Gt | GtEq);
        if !is_zone && !is_negation && !compares && !matches!(expr.op, Plus | Minus | Multiply | Divide) {
            return Ok(PlannerResult::Original(expr));
        }
        let RawBinaryExpr { op, left, right } = expr;
        if is_zone {
            return at_time_zone(left, right, schema).map(PlannerResult::Planned);
        }
        if is_negation {
            let is_difference = matches!(left.get_type(schema), Ok(DataType::Duration(_)));
            return Ok(PlannerResult::Planned(match is_difference {
                true => OfInterval::Times.of([OfInterval::Days.of([left]), lit(-1.0)]),
                false => Expr::Negative(Box::new(left)),
            }));
        }
        // Types that are not known yet are the planner's to find out.
        let types = (left.get_type(schema).ok(), right.get_type(schema).ok());
        let (Some(left_type), Some(right_type)) = types else {
            return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }));
        };
        let of_dates = |left, op, right| {
            PlannerResult::Planned(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        };
        let scaled = |function: OfInterval, interval: Expr, data_type: &DataType, number| {
            let interval = if data_type == &INTERVAL { interval } else { OfInterval::Days.of([interval]) };
            PlannerResult::Planned(function.of([interval, cast(number, DataType::Float64)]))
        };
        Ok(match op {
            _ if compares && is_span(&left_type) && is_text(&right) => {
                PlannerResult::Original(RawBinaryExpr { op, left, right: cast(right, INTERVAL) })
            }
            _ if compares && is_text(&left) && is_span(&right_type) => {
                PlannerResult::Original(RawBinaryExpr { op, left: cast(left, INTERVAL), right })
            }
            Plus if matches!(left_type, DataType::Timestamp(..)) && is_text(&right) => {
                of_dates(finest(left, &left_type), Operator::Plus, cast(right, INTERVAL))
            }
            // What is written finer than the column is would be cut to its unit.
            _ if compares
                && (is_coarse(&left_type) || is_coarse(&right_type))
                && (is_text(&left) || is_text(&right) || is_of_day(&left_type) && is_of_day(&right_type)) =>
            {
                let (left, right) = (finest(left, &left_type), finest(right, &right_type));
                PlannerResult::Original(RawBinaryExpr { op, left, right })
            }
            Plus if is_coarse(&left_type) && is_span(&right_type) => {
                of_dates(finest(left, &left_type), Operator::Plus, right)
            }
            Minus if is_coarse(&left_type) && is_span(&right_type) => {
                of_dates(finest(left, &left_type), Operator::Minus, right)
            }
            Plus if is_span(&left_type) && is_coarse(&right_type) => {
                of_dates(left, Operator::Plus, finest(right, &right_type))
            }
            Plus if is_date(&left_type) && is_span(&right_type) => of_dates(timestamp(left), Operator::Plus, right),
            Minus if is_date(&left_type) && is_span(&right_type) => of_dates(timestamp(left), Operator::Minus, right),
            Plus if is_span(&left_type) && is_date(&right_type) => of_dates(left, Operator::Plus, timestamp(right)),
            Multiply if is_span(&left_type) && right_type.is_numeric() => {
                scaled(OfInterval::Times, left, &left_type, right)
            }
            Multiply if left_type.is_numeric() && is_span(&right_type) => {
                scaled(OfInterval::Times, right, &right_type, left)
            }
            Divide if is_span(&left_type) && right_type.is_numeric() => {
                scaled(OfInterval::Over, left, &left_type, right)
            }
            op => PlannerResult::Original(RawBinaryExpr { op, left, right }),
        })
    }
}

/// `x BETWEEN '1 day' AND '2 days'`, `x IN ('1 day')` and `CASE WHEN c THEN x ELSE '1 day' END` of an interval `x`, whose texts are
/// intervals too.
pub(super) fn texts(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_asked = |expr: &Expr| matches!(expr, Expr::Between(_) | Expr::InList(_) | Expr::Case(_));
    plan.transform_up_with_subqueries(|plan| {
        let mut is_wanted = false;
        plan.apply_expressions(|expr| {
            is_wanted |= expr.exists(|part| Ok(is_asked(part)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !is_wanted {
            return Ok(Transformed::no(plan));
        }
        let schema = visible_columns(&plan)?;
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|mut expr| {
                let is_of_span = |value: &Expr| value.get_type(&schema).is_ok_and(|data_type| is_span(&data_type));
                if let Expr::Case(case) = &mut expr {
                    let is_changed = texts_of_case(case, &schema);
                    return Ok(Transformed::new_transformed(expr, is_changed));
                }
                let texts: Vec<&mut Expr> = match &mut expr {
                    Expr::Between(Between { expr, low, high, .. }) if is_of_span(expr) => vec![low, high],
                    Expr::InList(InList { expr, list, .. }) if is_of_span(expr) => list.iter_mut().collect(),
                    _ => vec![],
                };
                let mut is_changed = false;
                for text in texts.into_iter().filter(|text| is_text(text)) {
                    *text = cast(std::mem::take(text), INTERVAL);
                    is_changed = true;
                }
                Ok(Transformed::new_transformed(expr, is_changed))
            })?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })
    })
    .data()
}

/// Texts among the values of a CASE whose other values are intervals or times of day.
fn texts_of_case(case: &mut Case, schema: &DFSchema) -> bool {
    let values = || case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
    let is_time =
        |data_type: &DataType| is_span(data_type) || matches!(data_type, DataType::Time32(_) | DataType::Time64(_));
    let time = values().find_map(|value| value.get_type(schema).ok().filter(is_time));
    let Some(time) = time else { return false };
    let time = if is_span(&time) { INTERVAL } else { time };
    let mut is_changed = false;
    let values = case.when_then_expr.iter_mut().map(|(_, then)| then).chain(&mut case.else_expr);
    for text in values.filter(|value| is_text(value)) {
        **text = cast(std::mem::take(text.as_mut()), time.clone());
        is_changed = true;
    }
    is_changed
}

/// Whether a value is a text that is written out.
fn is_text(value: &Expr) -> bool {
    matches!(value, Expr::Literal(text, _) if text.try_as_str().flatten().is_some())
}

fn is_date(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64)
}

/// Whether a type is that of intervals or of differences of times.
fn is_span(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

/// Whether a type is that of times without nanoseconds.
fn is_coarse(data_type: &DataType) -> bool {
    with_nanoseconds(data_type).is_some()
}

/// Whether a type is that of times of a day.
fn is_of_day(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Time32(_) | DataType::Time64(_))
}

/// A time of that type with nanoseconds.
fn finest(time: Expr, data_type: &DataType) -> Expr {
    match with_nanoseconds(data_type) {
        Some(fine) => cast(time, fine),
        None => time,
    }
}

fn with_nanoseconds(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Timestamp(unit, zone) if *unit != TimeUnit::Nanosecond => {
            Some(DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()))
        }
        DataType::Time32(_) | DataType::Time64(TimeUnit::Microsecond) => Some(DataType::Time64(TimeUnit::Nanosecond)),
        _ => None,
    }
}

fn timestamp(date: Expr) -> Expr {
    cast(date, DataType::Timestamp(TimeUnit::Nanosecond, None))
}

fn moment(value: Expr) -> Expr {
    cast(value, DataType::Timestamp(TimeUnit::Nanosecond, Some(Arc::from(UTC))))
}

fn at_time_zone(value: Expr, zone: Expr, schema: &DFSchema) -> Result<Expr> {
    match &zone {
        Expr::Literal(name, _) if let Some(Some(name)) = name.try_as_str() => {
            zone_called(name)?;
        }
        zone => {
            let data_type = zone.get_type(schema)?;
            if !is_text_type(&data_type) && data_type != DataType::Null {
                return plan_err!("AT TIME ZONE takes the name of a zone as a text: `t AT TIME ZONE 'Europe/Berlin'`");
            }
        }
    }
    Ok(match value.get_type(schema)? {
        DataType::Timestamp(_, None) => moment(shown_in(value, zone)),
        // A date or a text is a moment first, as in PostgreSQL.
        DataType::Timestamp(_, Some(_)) => shown_at(value, zone),
        _ => shown_at(moment(value), zone),
    })
}
