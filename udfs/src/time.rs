//! `us(x)`, `ms(x)`, `s(x)` and their inverses: conversions between units of time and ticks.
//!
//! The functions are bound to the tick of a session when they are created, so `WHERE duration > us(5)` is right in a session
//! of picoseconds too. The planner folds calls with constant arguments, so that filters remain plain comparisons.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, FieldRef, Float64Type, Int64Type};
use datafusion_common::{Result, ScalarValue, exec_datafusion_err, internal_err, plan_err};
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion_macros::user_doc;

use crate::spans::named;
use crate::ticks::{self, Tick, time_field};

/// `us(x)`: ticks of x microseconds. Shape: one `BIGINT` time per row.
#[user_doc(
    doc_section(label = "Time"),
    description = "Ticks of x microseconds, in the tick of the session.\n\n\
        Rows: one per row. Units: microseconds in, ticks out. NULL gives NULL. A DOUBLE is rounded to the nearest tick, \
        halves to the even one.\n\n\
        Errors: text; NaN and infinity; more ticks than BIGINT holds. Cost: O(1); constant arguments cost nothing.",
    syntax_example = "us(x)",
    sql_example = "SELECT us(5) AS whole, us(0.25) AS quarter",
    argument(name = "x", description = "Microseconds (BIGINT or DOUBLE).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Us {
    signature: Signature,
    tick: Tick,
}

/// `ms(x)`: ticks of x milliseconds. Shape: one `BIGINT` time per row.
#[user_doc(
    doc_section(label = "Time"),
    description = "Ticks of x milliseconds, in the tick of the session.\n\n\
        Rows: one per row. Units: milliseconds in, ticks out. NULL gives NULL. A DOUBLE is rounded to the nearest tick, \
        halves to the even one.\n\n\
        Errors: text; NaN and infinity; more ticks than BIGINT holds. Cost: O(1); constant arguments cost nothing.",
    syntax_example = "ms(x)",
    sql_example = "SELECT ms(5) AS whole, ms(0.25) AS quarter",
    argument(name = "x", description = "Milliseconds (BIGINT or DOUBLE).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Ms {
    signature: Signature,
    tick: Tick,
}

/// `s(x)`: ticks of x seconds. Shape: one `BIGINT` time per row.
#[user_doc(
    doc_section(label = "Time"),
    description = "Ticks of x seconds, in the tick of the session.\n\n\
        Rows: one per row. Units: seconds in, ticks out. NULL gives NULL. A DOUBLE is rounded to the nearest tick, \
        halves to the even one.\n\n\
        Errors: text; NaN and infinity; more ticks than BIGINT holds. Cost: O(1); constant arguments cost nothing.",
    syntax_example = "s(x)",
    sql_example = "SELECT s(5) AS whole, s(0.25) AS quarter",
    argument(name = "x", description = "Seconds (BIGINT or DOUBLE).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct S {
    signature: Signature,
    tick: Tick,
}

/// `to_us(t)`: microseconds of t ticks. Shape: one `DOUBLE` per row.
#[user_doc(
    doc_section(label = "Time"),
    description = "Microseconds of t ticks.\n\n\
        Rows: one per row. Units: ticks in, microseconds out. NULL gives NULL. A DOUBLE (a mean of times) is taken as it \
        is.\n\n\
        Errors: text. Cost: O(1).",
    syntax_example = "to_us(t)",
    sql_example = "SELECT to_us(duration) AS duration_us FROM (VALUES (1500), (20)) AS tasks(duration)",
    argument(name = "t", description = "Ticks (BIGINT or DOUBLE).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ToUs {
    signature: Signature,
    tick: Tick,
}

/// `to_ms(t)`: milliseconds of t ticks. Shape: one `DOUBLE` per row.
#[user_doc(
    doc_section(label = "Time"),
    description = "Milliseconds of t ticks.\n\n\
        Rows: one per row. Units: ticks in, milliseconds out. NULL gives NULL. A DOUBLE (a mean of times) is taken as it \
        is.\n\n\
        Errors: text. Cost: O(1).",
    syntax_example = "to_ms(t)",
    sql_example = "SELECT to_ms(duration) AS duration_ms FROM (VALUES (1500000), (20)) AS tasks(duration)",
    argument(name = "t", description = "Ticks (BIGINT or DOUBLE).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ToMs {
    signature: Signature,
    tick: Tick,
}

/// `to_s(t)`: seconds of t ticks. Shape: one `DOUBLE` per row.
#[user_doc(
    doc_section(label = "Time"),
    description = "Seconds of t ticks.\n\n\
        Rows: one per row. Units: ticks in, seconds out. NULL gives NULL. A DOUBLE (a mean of times) is taken as it is.\n\n\
        Errors: text. Cost: O(1).",
    syntax_example = "to_s(t)",
    sql_example = "SELECT to_s(duration) AS duration_s FROM (VALUES (1500000000), (20)) AS tasks(duration)",
    argument(name = "t", description = "Ticks (BIGINT or DOUBLE).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ToS {
    signature: Signature,
    tick: Tick,
}

/// `time_text(t)`: a time for people. Shape: one text per row.
#[user_doc(
    doc_section(label = "Time"),
    description = "Time for people: three digits and a unit, such as `1.24 ms`.\n\n\
        Rows: one per row. Units: ticks in; text out, whole below 1000 ticks. NULL gives NULL. A DOUBLE (a mean of \
        times) is rounded to whole ticks first.\n\n\
        Errors: text; NaN and infinity; more ticks than BIGINT holds. Cost: O(1).",
    syntax_example = "time_text(t)",
    sql_example = "SELECT time_text(duration) AS duration FROM (VALUES (1240000), (17)) AS tasks(duration)",
    argument(name = "t", description = "Ticks (BIGINT or DOUBLE).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct TimeText {
    signature: Signature,
    tick: Tick,
}

/// The SQL interface of a function of one number: its name, parameter and unit, and its computation on a column.
macro_rules! of_a_number {
    ($function:ident, $name:literal, $parameter:literal, $result:expr, $evaluate:expr) => {
        impl $function {
            /// The function, for sessions of this tick.
            pub fn new(tick: Tick) -> Self {
                $function { signature: named(Signature::user_defined(Volatility::Immutable), &[$parameter]), tick }
            }
        }

        impl ScalarUDFImpl for $function {
            fn name(&self) -> &str {
                $name
            }

            fn signature(&self) -> &Signature {
                &self.signature
            }

            fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
                number($name, types)
            }

            fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
                Ok($result)
            }

            fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
                let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
                let field = time_field($name, nullable);
                Ok(Arc::new(match $result {
                    DataType::Int64 => field,
                    other => field.with_metadata(Default::default()).with_data_type(other),
                }))
            }

            fn is_strict(&self) -> bool {
                true
            }

            fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
                let [argument] = args.args.as_slice() else { return internal_err!("{} takes one argument", $name) };
                let evaluate: fn(&ArrayRef, Tick) -> Result<ArrayRef> = $evaluate;
                match argument {
                    ColumnarValue::Array(array) => evaluate(array, self.tick).map(ColumnarValue::Array),
                    // One value in, one value out: a column of copies would not be folded.
                    ColumnarValue::Scalar(value) => {
                        let answer = evaluate(&value.to_array()?, self.tick)?;
                        ScalarValue::try_from_array(&answer, 0).map(ColumnarValue::Scalar)
                    }
                }
            }

            // No bounds, but a type, which the planner needs to find out about orders.
            fn evaluate_bounds(&self, _: &[&Interval]) -> Result<Interval> {
                Interval::make_unbounded(&$result)
            }

            fn documentation(&self) -> Option<&Documentation> {
                self.doc()
            }
        }
    };
}

of_a_number!(Us, "us", "x", DataType::Int64, |x, tick| ticks_of(x, "us", tick.per_microsecond()));
of_a_number!(Ms, "ms", "x", DataType::Int64, |x, tick| ticks_of(x, "ms", tick.per_millisecond()));
of_a_number!(S, "s", "x", DataType::Int64, |x, tick| ticks_of(x, "s", tick.per_second()));
of_a_number!(ToUs, "to_us", "t", DataType::Float64, |t, tick| units_of(t, tick.per_microsecond()));
of_a_number!(ToMs, "to_ms", "t", DataType::Float64, |t, tick| units_of(t, tick.per_millisecond()));
of_a_number!(ToS, "to_s", "t", DataType::Float64, |t, tick| units_of(t, tick.per_second()));
of_a_number!(TimeText, "time_text", "t", DataType::Utf8, texts_of);

/// Whole numbers are taken as `BIGINT`, others as `DOUBLE`; for anything else the error says what to write.
fn number(function: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let [given] = types else {
        return plan_err!("{function} takes one number, found {} arguments: write {function}(5)", types.len());
    };
    let value = match given {
        DataType::Dictionary(_, value) => value.as_ref(),
        other => other,
    };
    match value {
        DataType::Null => Ok(vec![DataType::Int64]),
        other if other.is_integer() => Ok(vec![DataType::Int64]),
        other if other.is_numeric() => Ok(vec![DataType::Float64]),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            plan_err!("{function} takes a number, found text: write {function}(5), or {function}(CAST(x AS DOUBLE))")
        }
        other => plan_err!("{function} takes a number, found {other}: write {function}(5)"),
    }
}

fn ticks_of(column: &ArrayRef, function: &str, per_unit: i64) -> Result<ArrayRef> {
    let ticks: Int64Array = match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().try_unary(|units| {
            let ticks = units.checked_mul(per_unit);
            ticks.ok_or_else(|| exec_datafusion_err!("{function}({units}) is more ticks than BIGINT holds"))
        })?,
        _ => column
            .as_primitive::<Float64Type>()
            .try_unary(|units| round(units * per_unit as f64, || format!("{function}({units})")))?,
    };
    Ok(Arc::new(ticks))
}

fn units_of(column: &ArrayRef, per_unit: i64) -> Result<ArrayRef> {
    let units: Float64Array = match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().unary(|ticks| ticks as f64 / per_unit as f64),
        _ => column.as_primitive::<Float64Type>().unary(|ticks| ticks / per_unit as f64),
    };
    Ok(Arc::new(units))
}

fn texts_of(column: &ArrayRef, tick: Tick) -> Result<ArrayRef> {
    let whole: Int64Array = match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().clone(),
        _ => column.as_primitive::<Float64Type>().try_unary(|ticks| round(ticks, || format!("time_text({ticks})")))?,
    };
    let texts = whole.iter().map(|ticks| ticks.map(|ticks| ticks::time_text(ticks, tick)));
    Ok(Arc::new(texts.collect::<StringArray>()))
}

/// The nearest whole tick, halves to even.
fn round(ticks: f64, call: impl Fn() -> String) -> Result<i64> {
    if !ticks.is_finite() {
        return Err(exec_datafusion_err!("{} is not a time", call()));
    }
    let whole = ticks.round_ties_even();
    // −2⁶³ is exact in a double, 2⁶³ is the first that does not fit.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole) {
        Ok(whole as i64)
    } else {
        Err(exec_datafusion_err!("{} is more ticks than BIGINT holds", call()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_round_half_to_even() {
        let check = |ticks, expected| assert_eq!(round(ticks, String::new).ok(), expected, "{ticks}");
        check(0.5, Some(0));
        check(1.5, Some(2));
        check(-2.5, Some(-2));
        check(9.3e18, None);
        check(-9_223_372_036_854_775_808.0, Some(i64::MIN));
        check(9_223_372_036_854_775_808.0, None);
        check(f64::NAN, None);
        check(f64::NEG_INFINITY, None);
    }

    #[test]
    fn whole_units_are_exact_or_an_error() {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(9_223_372_036_854_775), None]));
        let ticks = ticks_of(&column, "us", 1_000).unwrap();
        assert_eq!(ticks.as_primitive::<Int64Type>().value(0), 9_223_372_036_854_775_000);
        assert!(ticks.is_null(1));
        let error = ticks_of(&column, "us", 1_000_000).unwrap_err().to_string();
        assert!(error.contains("us(9223372036854775) is more ticks than BIGINT holds"), "{error}");
    }
}
