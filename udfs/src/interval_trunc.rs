//! `date_trunc` of intervals: `date_trunc('hour', finish - start)`, as PostgreSQL has it. DataFusion (55.2) takes timestamps and times of a day.
//!
//! An interval is months, days and nanoseconds side by side. What is smaller than the unit becomes 0, each part towards 0: 40 days are no month.
//! A difference of times is so many whole days and the rest.
//!
//! Cost: O(1) a row.

use std::sync::Arc;

use arrow::array::{Array, AsArray, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, DurationNanosecondType, Field, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType, TimeUnit,
};
use datafusion_common::types::logical_string;
use datafusion_common::{Result, exec_err};
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    Coercion, ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, TypeSignatureClass,
};

use crate::checked::intervals::INTERVAL;
use crate::wrapped::of_wrapped;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// The same function, which takes intervals and differences of times too.
pub fn of_intervals(function: Arc<ScalarUDF>) -> ScalarUDF {
    let text = || Coercion::new_exact(TypeSignatureClass::Native(logical_string()));
    let with = |class| TypeSignature::Coercible(vec![text(), Coercion::new_exact(class)]);
    let own = [with(TypeSignatureClass::Interval), with(TypeSignatureClass::Duration)];
    let known = match function.signature().type_signature.clone() {
        TypeSignature::OneOf(signatures) => signatures,
        signature => vec![signature],
    };
    let signature = Signature::one_of(known.into_iter().chain(own).collect(), function.signature().volatility);
    ScalarUDF::from(OfIntervals { function, signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfIntervals {
    function: Arc<ScalarUDF>,
    signature: Signature,
}

impl ScalarUDFImpl for OfIntervals {
    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [_, time] if is_interval(time.data_type()) => Ok(Arc::new(Field::new(self.name(), INTERVAL, true))),
            _ => self.function.return_field_from_args(args),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [unit, interval] = args.args.as_slice() else { return self.function.invoke_with_args(args) };
        if !is_interval(&interval.data_type()) {
            return self.function.invoke_with_args(args);
        }
        let units = cast(&unit.to_array(args.number_rows)?, &DataType::Utf8)?;
        let intervals = intervals(&interval.to_array(args.number_rows)?)?;
        let pairs = units.as_string::<i32>().iter().zip(&intervals);
        let truncated =
            pairs.map(|(unit, interval)| unit.zip(interval).map(|(unit, interval)| truncated(unit, interval)));
        let truncated = truncated.map(Option::transpose).collect::<Result<IntervalMonthDayNanoArray>>()?;
        Ok(ColumnarValue::Array(Arc::new(truncated)))
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties>;
        fn documentation(&self) -> Option<&Documentation>;
    }
}

fn is_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

fn intervals(values: &dyn Array) -> Result<IntervalMonthDayNanoArray> {
    if !matches!(values.data_type(), DataType::Duration(_)) {
        return Ok(cast(values, &INTERVAL)?.as_primitive::<IntervalMonthDayNanoType>().clone());
    }
    let nanoseconds = cast(values, &DataType::Duration(TimeUnit::Nanosecond))?;
    let split = |length: i64| IntervalMonthDayNano::new(0, i32::try_from(length / DAY).unwrap_or(0), length % DAY);
    Ok(nanoseconds.as_primitive::<DurationNanosecondType>().unary(split))
}

fn truncated(unit: &str, interval: IntervalMonthDayNano) -> Result<IntervalMonthDayNano> {
    let IntervalMonthDayNano { months, days, nanoseconds } = interval;
    let of_months = |unit: i32| IntervalMonthDayNano::new(months - months % unit, 0, 0);
    let of_days = |unit: i64| IntervalMonthDayNano::new(months, days, nanoseconds - nanoseconds % unit);
    Ok(match unit.to_lowercase().as_str() {
        "millennium" | "millennia" => of_months(12_000),
        "century" | "centuries" => of_months(1200),
        "decade" | "decades" => of_months(120),
        "year" | "years" => of_months(12),
        "quarter" => of_months(3),
        "month" | "months" => of_months(1),
        "day" | "days" => IntervalMonthDayNano::new(months, days, 0),
        "hour" | "hours" => of_days(3600 * SECOND),
        "minute" | "minutes" => of_days(60 * SECOND),
        "second" | "seconds" => of_days(SECOND),
        "millisecond" | "milliseconds" => of_days(1_000_000),
        "microsecond" | "microseconds" => of_days(1000),
        "week" | "weeks" => {
            return exec_err!("date_trunc of an interval knows no weeks: months have no whole number of them");
        }
        _ => {
            return exec_err!(
                "date_trunc of an interval knows no unit `{unit}`: there is millennium, century, decade, year, quarter, month, \
                 day, hour, minute, second, millisecond and microsecond"
            );
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_go_towards_zero() {
        let check = |unit: &str, (months, days, nanoseconds): (i32, i32, i64), expected: (i32, i32, i64)| {
            let found = truncated(unit, IntervalMonthDayNano::new(months, days, nanoseconds)).unwrap();
            assert_eq!((found.months, found.days, found.nanoseconds), expected, "{unit}");
        };
        check("hour", (1, 2, 3 * 3600 * SECOND + 5), (1, 2, 3 * 3600 * SECOND));
        check("minute", (0, 0, -90 * SECOND), (0, 0, -60 * SECOND));
        check("day", (-1, -3, -7200 * SECOND), (-1, -3, 0));
        check("month", (38, 40, 1), (38, 0, 0));
        check("quarter", (41, 40, 1), (39, 0, 0));
        check("century", (-1500, 0, 0), (-1200, 0, 0));
        assert!(truncated("week", IntervalMonthDayNano::new(0, 25, 0)).is_err());
        assert!(truncated("fortnight", IntervalMonthDayNano::new(0, 25, 0)).is_err());
    }
}
