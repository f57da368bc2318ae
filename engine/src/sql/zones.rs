//! `TIMESTAMP AT TIME ZONE z`: the moment at which clocks in a zone show a time.
//!
//! Not a cast of Arrow's (59): that is NULL where clocks are put forward or back, and DataFusion (55.2) takes it away from comparisons
//! as if it changed nothing. As in PostgreSQL, a time that clocks leave out is read as before the change, and one that they show
//! twice as after it.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, TimestampNanosecondArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, TimeUnit, TimestampNanosecondType};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::functions::datetime::to_local_time;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The moment at which clocks in `zone` show the time, as a time in UTC.
pub(super) fn shown_in(time: Expr, zone: &str) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::from(ShownIn { zone: Arc::from(zone), signature }).call(vec![time])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ShownIn {
    zone: Arc<str>,
    signature: Signature,
}

impl ScalarUDFImpl for ShownIn {
    fn name(&self) -> &str {
        "shown_in_zone"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(NAIVE)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [times] = arrays.as_slice() else { return internal_err!("{} takes a time", self.name()) };
        let times = nanoseconds(times)?;
        Ok(ColumnarValue::Array(Arc::new(moments(&times, &self.zone)?)))
    }
}

const NAIVE: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);

const DAY: i64 = 86_400_000_000_000;

fn nanoseconds(times: &ArrayRef) -> Result<TimestampNanosecondArray> {
    Ok(cast(times, &NAIVE)?.as_primitive::<TimestampNanosecondType>().clone())
}

fn moments(times: &TimestampNanosecondArray, zone: &Arc<str>) -> Result<TimestampNanosecondArray> {
    let shown = |moments: TimestampNanosecondArray| -> Result<TimestampNanosecondArray> {
        let (rows, moments) = (moments.len(), Arc::new(moments.with_timezone(Arc::clone(zone))));
        let field = |data_type: &DataType| Arc::new(Field::new("time", data_type.clone(), true));
        let args = ScalarFunctionArgs {
            arg_fields: vec![field(moments.data_type())],
            args: vec![ColumnarValue::Array(moments)],
            number_rows: rows,
            return_field: field(&NAIVE),
            config_options: Arc::default(),
        };
        nanoseconds(&to_local_time().invoke_with_args(args)?.into_array(rows)?)
    };
    // What a clock is ahead of UTC a day before and a day after, when no change is near.
    let read_as = |day: i64| -> Result<TimestampNanosecondArray> {
        let near: TimestampNanosecondArray = times.unary(|time| time.saturating_add(day));
        let shown = shown(near.clone())?;
        let moments = (0..times.len()).map(|at| {
            let is_known = times.is_valid(at) && shown.is_valid(at);
            is_known.then(|| times.value(at).saturating_sub(shown.value(at) - near.value(at)))
        });
        Ok(moments.collect())
    };
    let (before, after) = (read_as(-DAY)?, read_as(DAY)?);
    let shown_after = shown(after.clone())?;
    let moments: TimestampNanosecondArray = (0..times.len())
        .map(|at| {
            let is_right = |shown: &TimestampNanosecondArray| shown.is_valid(at) && shown.value(at) == times.value(at);
            let moment = if is_right(&shown_after) { &after } else { &before };
            moment.is_valid(at).then(|| moment.value(at))
        })
        .collect();
    if moments.null_count() > times.null_count() {
        return exec_err!("AT TIME ZONE '{zone}': a time is too near to the first or the last that TIMESTAMP holds");
    }
    Ok(moments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::StringArray;

    #[test]
    fn changes_of_clocks_are_read_as_postgresql_does() {
        for (zone, time, expected) in [
            ("Europe/Berlin", "2024-01-02T03:04:05", "2024-01-02T02:04:05"),
            ("Europe/Berlin", "2024-03-31T01:59:59", "2024-03-31T00:59:59"),
            ("Europe/Berlin", "2024-03-31T02:30:00", "2024-03-31T01:30:00"),
            ("Europe/Berlin", "2024-03-31T03:00:00", "2024-03-31T01:00:00"),
            ("Europe/Berlin", "2024-10-27T01:59:59", "2024-10-26T23:59:59"),
            ("Europe/Berlin", "2024-10-27T02:30:00", "2024-10-27T01:30:00"),
            ("America/New_York", "2024-03-10T02:30:00", "2024-03-10T07:30:00"),
            ("America/New_York", "2024-11-03T01:30:00", "2024-11-03T06:30:00"),
            ("UTC", "2024-11-03T01:30:00", "2024-11-03T01:30:00"),
        ] {
            let read = |text: &str| nanoseconds(&(Arc::new(StringArray::from(vec![text])) as ArrayRef)).unwrap();
            assert_eq!(moments(&read(time), &Arc::from(zone)).unwrap(), read(expected), "{time} in {zone}");
        }
        let unknown = TimestampNanosecondArray::from(vec![None]);
        assert_eq!(moments(&unknown, &Arc::from("UTC")).unwrap(), unknown);
    }
}
