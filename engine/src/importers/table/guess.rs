//! Guesses about the unit of times that name none, each counted as `time_unit_guessed`.
//!
//! | numbers | read as |
//! | --- | --- |
//! | of rows with another time whose unit is known | that unit |
//! | all of them dates between 2000 and 2100, within a month, in s, ms, us or ns since 1970 | that unit |
//! | some with a fraction, below 100 000 | seconds, as `time.perf_counter()` and people print them |
//! | some with a fraction, larger ones | microseconds, as trace events have them |
//! | whole numbers | nanoseconds |
//!
//! A guess is made once for all times of a section, from the first batch that has a time.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};

use super::times::Unit;

/// Seconds since 1970 of the years 2000 and 2100.
const DATES: std::ops::Range<f64> = 946_684_800.0..4_102_444_800.0;

/// A recording does not last longer, in seconds.
const MONTH: f64 = 31.0 * 86_400.0;

/// A clock in seconds that has run for longer than this has counted for more than a day.
const SECONDS_MOST: f64 = 100_000.0;

/// What the numbers of a column look like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Looks {
    least: f64,
    most: f64,
    has_fraction: bool,
}

impl Looks {
    /// Of the numbers among the cells; `None` when there are none: NULLs, timestamps, types that have a unit of their own.
    pub(super) fn of(column: &ArrayRef) -> Option<Looks> {
        let is_number = column.data_type().is_numeric()
            || matches!(
                column.data_type(),
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..)
            );
        // What is no number becomes NULL.
        let floats = cast(column, &DataType::Float64).ok().filter(|_| is_number)?;
        let mut looks: Option<Looks> = None;
        for value in floats.as_primitive::<Float64Type>().iter().flatten().filter(|value| value.is_finite()) {
            let looks = looks.get_or_insert(Looks { least: value, most: value, has_fraction: false });
            looks.least = looks.least.min(value);
            looks.most = looks.most.max(value);
            looks.has_fraction |= value.fract() != 0.0;
        }
        looks
    }

    /// The unit that such numbers most likely have, and why.
    pub(super) fn unit(self) -> (Unit, &'static str) {
        let dated = [(Unit::Second, 1.0), (Unit::Millisecond, 1e3), (Unit::Microsecond, 1e6), (Unit::Nanosecond, 1e9)];
        let is_date = |per_second: f64| {
            DATES.contains(&(self.least / per_second))
                && DATES.contains(&(self.most / per_second))
                && (self.most - self.least) / per_second <= MONTH
        };
        if let Some((unit, _)) = dated.into_iter().find(|(_, per_second)| is_date(*per_second)) {
            return (unit, "they are dates since 1970 then");
        }
        match self.has_fraction {
            true if self.least.abs().max(self.most.abs()) < SECONDS_MOST => (Unit::Second, "they have fractions"),
            true => (Unit::Microsecond, "they have fractions and are large"),
            false => (Unit::Nanosecond, "they are whole"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Float64Array, Int64Array, StringArray, TimestampSecondArray};

    use super::*;

    fn check(column: &ArrayRef, expected: Option<Unit>) {
        assert_eq!(Looks::of(column).map(|looks| looks.unit().0), expected, "{column:?}");
    }

    #[test]
    fn units_follow_from_the_numbers() {
        let texts = |texts: &[&str]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
        check(&texts(&["0.5", "1.25"]), Some(Unit::Second));
        check(&texts(&["0", "x", "1.25", ""]), Some(Unit::Second));
        check(&texts(&["1700000000.125", "1700000001.5"]), Some(Unit::Second));
        check(&texts(&["1700000000", "1700000001"]), Some(Unit::Second));
        check(&texts(&["1700000000123", "1700000001000"]), Some(Unit::Millisecond));
        check(&texts(&["1700000000123456"]), Some(Unit::Microsecond));
        check(&texts(&["1700000000123456789"]), Some(Unit::Nanosecond));
        check(&texts(&["1234567.5", "2345678.0"]), Some(Unit::Microsecond));
        check(&texts(&["0", "2000", "1700000000"]), Some(Unit::Nanosecond));
        check(&texts(&["2026-01-01T00:00:00Z"]), None);
        check(&texts(&[]), None);
        check(&(Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef), Some(Unit::Nanosecond));
        check(&(Arc::new(Float64Array::from(vec![1.0, 2.0])) as ArrayRef), Some(Unit::Nanosecond));
        check(&(Arc::new(Float64Array::from(vec![Some(0.1), None, Some(f64::NAN)])) as ArrayRef), Some(Unit::Second));
        check(&(Arc::new(TimestampSecondArray::from(vec![1_700_000_000])) as ArrayRef), None);
    }
}
