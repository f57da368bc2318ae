//! Operators on dates, times and intervals, as PostgreSQL (15) has them, where DataFusion (55.2) has another answer or none.
//!
//! ```text
//! DATE ± INTERVAL               CAST(date AS TIMESTAMP) ± interval           hours would be left out without a word
//! INTERVAL * n, INTERVAL / n    interval_times(interval, n), interval_over   also of `t2 - t1`, which is an interval then
//! - INTERVAL '1 hour 5 minutes'   -1 * interval                            DataFusion negates the hour only
//! TIMESTAMP AT TIME ZONE z      the moment at which clocks there show that   shown in UTC
//! TIMESTAMPTZ AT TIME ZONE z    what clocks there show at that moment        a TIMESTAMP
//! ```
//!
//! TIMESTAMPTZ is a moment, shown in UTC: the session's zone is [`UTC`].

use std::sync::Arc;

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::functions::datetime::to_local_time;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, cast};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr as SqlExpr, UnaryOperator, Value};
use tq_udfs::checked::intervals::INTERVAL;

use crate::sql::lengths::OfInterval;
use crate::sql::zones::shown_in;

/// The zone of sessions, by a name that needs no table of zones.
pub(super) const UTC: &str = "+00:00";

/// The operator that stands for AT TIME ZONE until the types of its sides are known.
const AT_TIME_ZONE: &str = "AT TIME ZONE";

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
        use BinaryOperator::{Divide, Minus, Multiply, Plus};
        let is_zone = matches!(&expr.op, BinaryOperator::Custom(op) if op == AT_TIME_ZONE);
        if !is_zone && !matches!(expr.op, Plus | Minus | Multiply | Divide) {
            return Ok(PlannerResult::Original(expr));
        }
        let RawBinaryExpr { op, left, right } = expr;
        if is_zone {
            return at_time_zone(left, &right, schema).map(PlannerResult::Planned);
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

fn is_date(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64)
}

/// Whether a type is that of intervals or of differences of times.
fn is_span(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

fn timestamp(date: Expr) -> Expr {
    cast(date, DataType::Timestamp(TimeUnit::Nanosecond, None))
}

fn moment(value: Expr, zone: &str) -> Expr {
    cast(value, DataType::Timestamp(TimeUnit::Nanosecond, Some(Arc::from(zone))))
}

fn at_time_zone(value: Expr, zone: &Expr, schema: &DFSchema) -> Result<Expr> {
    let zone = match zone {
        Expr::Literal(zone, _) => zone.try_as_str().flatten(),
        _ => None,
    };
    let Some(zone) = zone else {
        return plan_err!("AT TIME ZONE takes the name of a zone as a text: `t AT TIME ZONE 'Europe/Berlin'`");
    };
    // PostgreSQL counts such offsets westwards, others eastwards.
    if zone.starts_with(['+', '-']) || zone.starts_with(|letter: char| letter.is_ascii_digit()) {
        return plan_err!(
            "AT TIME ZONE takes the name of a zone, and '{zone}' is none: `t AT TIME ZONE 'UTC'` and `t + INTERVAL '2 hours'` say \
             which direction is meant"
        );
    }
    if zone.parse::<Tz>().is_err() {
        return plan_err!("no time zone is called '{zone}': they have names like 'UTC' and 'Europe/Berlin'");
    }
    Ok(match value.get_type(schema)? {
        DataType::Timestamp(_, None) => moment(shown_in(value, zone), UTC),
        // A date or a text is a moment first, as in PostgreSQL.
        DataType::Timestamp(_, Some(_)) => to_local_time().call(vec![moment(value, zone)]),
        _ => to_local_time().call(vec![moment(moment(value, UTC), zone)]),
    })
}
