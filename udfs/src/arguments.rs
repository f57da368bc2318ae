//! Arguments that functions of DataFusion (55.2) misread, or panic on: what they answer here, and what they answered.
//!
//! ```text
//! to_timestamp(1.4e10), to_timestamp('nan')    an error, as for whole numbers: it was the last time of 64 bits, and 1970
//! lpad(text, -1), rpad(text, -1)               an empty text, also where the length is a column: it was a panic
//! array_position(list, x, -9223372036854775808)   an error: it was a panic
//! round(1e300, 20), trunc(1.5, 400)            the number itself: they were infinite and NaN: the power of ten was beyond doubles
//! nullif(list, list) || 7                      [7]: what the NULL had been stood under it
//! ```

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::{Array, AsArray, Float64Array, UInt64Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, FieldRef, Float64Type, Int64Type};
use datafusion_common::{DataFusionError, Result, ScalarValue, exec_err};
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::wrapped::of_wrapped;

/// The functions of this module.
pub const WITH_ARGUMENTS: [&str; 7] = ["to_timestamp", "lpad", "rpad", "array_position", "round", "trunc", "nullif"];

/// No double has digits so far from its point, on either side.
const FAR: i64 = 400;

/// The last second that 64 bits of nanoseconds hold.
const LAST_SECOND: f64 = 9_223_372_036.0;

/// The same function, whose arguments are looked at first.
pub fn looked_at(function: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::from(LookedAt { function })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct LookedAt {
    function: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for LookedAt {
    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        match (self.name(), args.args.as_mut_slice()) {
            ("to_timestamp", [seconds]) if seconds.data_type().is_floating() => within_reach(seconds)?,
            ("lpad" | "rpad", [_, length, ..]) => *length = within(length, 0..=i64::MAX)?,
            ("array_position", [_, _, from]) => *from = within(from, -i64::MAX..=i64::MAX)?,
            ("round" | "trunc", [number, places]) if number.data_type().is_floating() => {
                *places = within(places, -FAR..=FAR)?;
                let (number, places) = (number.clone(), places.clone());
                return far_from_the_point(self.function.invoke_with_args(args)?, &number, &places, rows);
            }
            ("nullif", [value, _]) if value.data_type().is_nested() => {
                return without_what_was(self.function.invoke_with_args(args)?);
            }
            _ => {}
        }
        self.function.invoke_with_args(args)
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef>;
        fn is_strict(&self) -> bool;
        fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult>;
        fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties>;
        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
    }
}

fn within_reach(seconds: &ColumnarValue) -> Result<()> {
    let seconds = cast(&seconds.to_array(1)?, &DataType::Float64)?;
    match seconds
        .as_primitive::<Float64Type>()
        .iter()
        .flatten()
        .find(|second| second.is_nan() || second.abs() > LAST_SECOND)
    {
        Some(beyond) => {
            exec_err!("to_timestamp({beyond}): a time with nanoseconds lies between the years 1677 and 2262")
        }
        None => Ok(()),
    }
}

/// Whole numbers, those outside of a range at its ends.
fn within(numbers: &ColumnarValue, range: RangeInclusive<i64>) -> Result<ColumnarValue> {
    let data_type = numbers.data_type();
    if !data_type.is_integer() {
        return Ok(numbers.clone());
    }
    let (array, is_scalar) = match numbers {
        ColumnarValue::Scalar(number) => (number.to_array()?, true),
        ColumnarValue::Array(numbers) => (Arc::clone(numbers), false),
    };
    let whole = cast(&array, &DataType::Int64)?;
    let whole = whole.as_primitive::<Int64Type>();
    if whole.iter().flatten().all(|number| range.contains(&number)) {
        return Ok(numbers.clone());
    }
    let clamped = cast(&whole.unary::<_, Int64Type>(|number| number.clamp(*range.start(), *range.end())), &data_type)?;
    Ok(match is_scalar {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&clamped, 0)?),
        false => ColumnarValue::Array(clamped),
    })
}

/// The answers of `round` and `trunc`, where the power of ten was beyond doubles: so many places behind the point a number has none, and so
/// many before it neither.
fn far_from_the_point(
    answer: ColumnarValue,
    number: &ColumnarValue,
    places: &ColumnarValue,
    rows: usize,
) -> Result<ColumnarValue> {
    let data_type = answer.data_type();
    let as_doubles =
        |value: &ColumnarValue| Ok::<_, DataFusionError>(cast(&value.to_array(rows)?, &DataType::Float64)?);
    let answers = as_doubles(&answer)?;
    let answers = answers.as_primitive::<Float64Type>();
    if answers.values().iter().all(|answer| answer.is_finite()) {
        return Ok(answer);
    }
    let (numbers, places) = (as_doubles(number)?, as_doubles(places)?);
    let (numbers, places) = (numbers.as_primitive::<Float64Type>(), places.as_primitive::<Float64Type>());
    let mended = answers.iter().zip(numbers).zip(places).map(|((answer, number), places)| match (answer, number) {
        (Some(answer), Some(number)) if !answer.is_finite() && number.is_finite() => {
            Some(if places.is_some_and(|places| places > 0.0) { number } else { 0.0 })
        }
        _ => answer,
    });
    let mended: Float64Array = mended.collect();
    Ok(ColumnarValue::Array(cast(&mended, &data_type)?))
}

/// Lists and structs whose NULLs have nothing beneath: functions of lists take what stands there for the list (DataFusion 55.2).
pub fn without_what_was(answer: ColumnarValue) -> Result<ColumnarValue> {
    Ok(match answer {
        ColumnarValue::Array(values) if values.null_count() > 0 => {
            let all: UInt64Array = (0..values.len() as u64).collect();
            ColumnarValue::Array(take(&values, &all, None)?)
        }
        other => other,
    })
}
