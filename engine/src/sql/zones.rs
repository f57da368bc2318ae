//! `AT TIME ZONE z`: what clocks in a zone show at a moment, and the moment at which they show a time.
//!
//! Not casts of Arrow's (59): they are NULL where clocks are put forward or back, and DataFusion (55.2) takes them away from comparisons
//! as if they changed nothing. As in PostgreSQL, a time that clocks leave out is read as before the change, and one that they show
//! twice as after it.
//!
//! The table of zones (chrono-tz) ends in 2100. Rules go on as they are then: a later time is moved to a year before 2100 whose days have
//! the same names.

use std::sync::Arc;

use datafusion::arrow::array::temporal_conversions::as_datetime_with_timezone;
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, TimestampNanosecondArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit, TimestampNanosecondType, TimestampSecondType};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::sql::calendar::{date_of_days, days_of_date};

/// The moment at which clocks in a zone show the time, as a time in UTC.
pub(super) fn shown_in(time: Expr, zone: Expr) -> Expr {
    AtZone::Moment.of(time, zone)
}

/// What clocks in a zone show at a moment.
pub(super) fn shown_at(moment: Expr, zone: Expr) -> Expr {
    AtZone::Shown.of(moment, zone)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum AtZone {
    Moment,
    Shown,
}

impl AtZone {
    fn of(self, time: Expr, zone: Expr) -> Expr {
        let signature = Signature::any(2, Volatility::Immutable);
        ScalarUDF::from(OfZone { what: self, signature }).call(vec![time, zone])
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfZone {
    what: AtZone,
    signature: Signature,
}

impl ScalarUDFImpl for OfZone {
    fn name(&self) -> &str {
        match self.what {
            AtZone::Moment => "shown_in_zone",
            AtZone::Shown => "shown_at_zone",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(NAIVE)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [times, zones] = args.args.as_slice() else { return internal_err!("{} takes a time", self.name()) };
        let times = nanoseconds(&times.to_array(args.number_rows)?)?;
        let zones = cast(&zones.to_array(args.number_rows)?, &DataType::Utf8)?;
        let mut known: Option<(&str, Tz)> = None;
        let computed = times.iter().zip(zones.as_string::<i32>()).map(|(time, name)| {
            let (Some(time), Some(name)) = (time, name) else { return Ok(None) };
            let zone = match known {
                Some((last, zone)) if last == name => zone,
                _ => zone_called(name)?,
            };
            known = Some((name, zone));
            let computed = match self.what {
                AtZone::Moment => moment_of(time, &zone),
                AtZone::Shown => shown(time, &zone),
            };
            match computed {
                Some(computed) => Ok(Some(computed)),
                None => {
                    exec_err!("AT TIME ZONE '{name}': a time is too near to the first or the last that TIMESTAMP holds")
                }
            }
        });
        Ok(ColumnarValue::Array(Arc::new(computed.collect::<Result<TimestampNanosecondArray>>()?)))
    }
}

const NAIVE: DataType = DataType::Timestamp(TimeUnit::Nanosecond, None);

const SECOND: i64 = 1_000_000_000;
/// Seconds.
const DAY: i64 = 86_400;

/// The nanoseconds of times; moments as they are in UTC.
fn nanoseconds(times: &ArrayRef) -> Result<TimestampNanosecondArray> {
    let zone = match times.data_type() {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    };
    Ok(cast(times, &DataType::Timestamp(TimeUnit::Nanosecond, zone))?.as_primitive::<TimestampNanosecondType>().clone())
}

/// The zone of a name.
pub(super) fn zone_called(name: &str) -> Result<Tz> {
    // PostgreSQL counts such offsets westwards, others eastwards.
    if name.starts_with(['+', '-']) || name.starts_with(|letter: char| letter.is_ascii_digit()) {
        return exec_err!(
            "AT TIME ZONE takes the name of a zone, and '{name}' is none: `t AT TIME ZONE 'UTC'` and `t + INTERVAL '2 hours'` say \
             which direction is meant"
        );
    }
    match name.parse() {
        Ok(zone) => Ok(zone),
        Err(_) => exec_err!("no time zone is called '{name}': they have names like 'UTC' and 'Europe/Berlin'"),
    }
}

/// What clocks show at a moment, both in nanoseconds.
fn shown(moment: i64, zone: &Tz) -> Option<i64> {
    moment.checked_add(ahead(moment.div_euclid(SECOND), zone)? * SECOND)
}

/// The moment at which clocks show a time, both in nanoseconds.
pub(super) fn moment_of(time: i64, zone: &Tz) -> Option<i64> {
    let seconds = time.div_euclid(SECOND);
    // What clocks are ahead of UTC a day before and a day after, when no change is near.
    let (before, after) = (ahead(seconds - DAY, zone)?, ahead(seconds + DAY, zone)?);
    let is_after = ahead(seconds - after, zone)? == after;
    let offset = if is_after { after } else { before };
    time.checked_sub(offset * SECOND)
}

/// How many seconds clocks are ahead of UTC at a moment, in seconds.
fn ahead(moment: i64, zone: &Tz) -> Option<i64> {
    /// Common years whose days have all the names there are, behind the last change that is no rule.
    const YEARS: std::ops::Range<i64> = 2089..2100;
    let (year, month, _) = date_of_days(moment.div_euclid(DAY));
    let known = if year < 2100 {
        moment
    } else {
        // Rules count days of the week from the first of a month: February is as long as it is until March begins.
        let first = if month < 3 { 1 } else { 3 };
        let begin = days_of_date(year, first, 1);
        let same = YEARS.map(|year| days_of_date(year, first, 1)).find(|days| (days - begin) % 7 == 0)?;
        moment - (begin - same) * DAY
    };
    let shown = as_datetime_with_timezone::<TimestampSecondType>(known, *zone)?;
    Some(shown.naive_local().and_utc().timestamp() - known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;

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
            ("Europe/Berlin", "2200-07-01T00:00:00", "2200-06-30T22:00:00"),
            ("Europe/Berlin", "2200-03-30T03:00:00", "2200-03-30T01:00:00"),
            ("Europe/Berlin", "2200-03-30T01:59:59", "2200-03-30T00:59:59"),
            ("Australia/Sydney", "2104-02-29T12:00:00", "2104-02-29T01:00:00"),
            ("Africa/Casablanca", "2150-07-01T12:00:00", "2150-07-01T11:00:00"),
            ("UTC", "2024-11-03T01:30:00", "2024-11-03T01:30:00"),
        ] {
            let read = |text: &str| string_to_timestamp_nanos(text).unwrap();
            assert_eq!(moment_of(read(time), &zone.parse().unwrap()), Some(read(expected)), "{time} in {zone}");
        }
    }
}
