//! Intervals that do not wrap: their sums and means, and an interval times or over a number.
//!
//! An interval is months, days and nanoseconds side by side. They add up apart; a fraction of a month becomes days (30 a
//! month) and a fraction of a day nanoseconds (24 hours a day), as in PostgreSQL (`interval_mul`, `interval_div`).

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, PrimitiveArray, UInt64Array};
use arrow::datatypes::{
    DataType, Decimal128Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, UInt64Type,
};
use datafusion_common::{Result, exec_datafusion_err, exec_err};

use crate::aggregate::{Mergeable, Retractable, Row, Tally, value_at};

/// The type of intervals in SQL.
pub const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

const DAY: i128 = 86_400_000_000_000;

/// An interval times a number. An error where it does not fit, or where the number is none.
pub fn multiplied(interval: IntervalMonthDayNano, factor: f64) -> Result<IntervalMonthDayNano> {
    let Some(whole) = whole(factor) else {
        return spread(interval, |part| part * factor, || (interval.nanoseconds as f64 * factor).round());
    };
    let parts = Parts::of(interval);
    checked(parts.months * whole, parts.days * whole, parts.nanoseconds * whole)
}

/// An interval over a number. An error where it does not fit, or where the number is none or 0.
pub fn divided(interval: IntervalMonthDayNano, divisor: f64) -> Result<IntervalMonthDayNano> {
    if divisor == 0.0 {
        return exec_err!("division of an interval by 0");
    }
    match whole(divisor) {
        Some(divisor) => Parts::of(interval).shared(divisor),
        None => spread(interval, |part| part / divisor, || (interval.nanoseconds as f64 / divisor).round()),
    }
}

/// The number, where it is whole and all of its digits are.
fn whole(number: f64) -> Option<i128> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i128)
}

/// An interval whose months and days are scaled with their fractions.
fn spread(
    interval: IntervalMonthDayNano,
    scaled: impl Fn(f64) -> f64,
    nanoseconds: impl Fn() -> f64,
) -> Result<IntervalMonthDayNano> {
    let (months, days) = (scaled(f64::from(interval.months)), scaled(f64::from(interval.days)));
    if !months.is_finite() || !days.is_finite() || !nanoseconds().is_finite() {
        return exec_err!("an interval is multiplied or divided by a finite number");
    }
    // What binary fractions leave of `0.1` of a month is rounded away, as PostgreSQL does.
    let rounded = |value: f64| (value * 1e6).round() / 1e6;
    let of_months = rounded(months.fract() * 30.0);
    let rest = rounded((days.fract() + of_months.fract()) * 86_400.0);
    let more_days = (rest / 86_400.0).trunc();
    let rest = rest - more_days * 86_400.0;
    let days = days as i128 + of_months as i128 + more_days as i128;
    checked(months as i128, days, nanoseconds() as i128 + (rest * 1e9) as i128)
}

/// Months, days and nanoseconds, whose sums fit for any number of rows.
#[derive(Debug, Default, Clone, Copy)]
struct Parts {
    months: i128,
    days: i128,
    nanoseconds: i128,
}

impl Parts {
    fn of(interval: IntervalMonthDayNano) -> Parts {
        Parts { months: interval.months.into(), days: interval.days.into(), nanoseconds: interval.nanoseconds.into() }
    }

    /// One of `number` equal shares, to the nearest nanosecond.
    fn shared(self, number: i128) -> Result<IntervalMonthDayNano> {
        let (months, days) = (self.months % number * 30, self.days % number);
        // Fractions of a month and of a day may be a day together.
        let fractions = months % number + days;
        let days = self.days / number + months / number + fractions / number;
        let rest = fractions % number * DAY + self.nanoseconds;
        let is_up = (rest % number).abs() * 2 >= number.abs();
        let nearest = if is_up { rest.signum() * number.signum() } else { 0 };
        checked(self.months / number, days, rest / number + nearest)
    }
}

/// An interval of such parts, if they fit.
fn checked(months: i128, days: i128, nanoseconds: i128) -> Result<IntervalMonthDayNano> {
    match (months.try_into(), days.try_into(), nanoseconds.try_into()) {
        (Ok(months), Ok(days), Ok(nanoseconds)) => Ok(IntervalMonthDayNano { months, days, nanoseconds }),
        _ => Err(exec_datafusion_err!(
            "interval overflow: {months} months, {days} days and {nanoseconds} nanoseconds do not fit an INTERVAL"
        )),
    }
}

impl Row for IntervalMonthDayNano {
    const WORDS: usize = 3;

    fn to_words(self) -> Vec<Option<i64>> {
        vec![Some(self.months.into()), Some(self.days.into()), Some(self.nanoseconds)]
    }

    fn from_words(words: &[Option<i64>]) -> Self {
        let part = |at: usize| words[at].unwrap_or(0);
        IntervalMonthDayNano { months: part(0) as i32, days: part(1) as i32, nanoseconds: part(2) }
    }
}

/// A sum of intervals, and of how many; the mean is a share of it.
#[derive(Debug, Default)]
pub(crate) struct IntervalTotal<const IS_MEAN: bool> {
    parts: Parts,
    count: u64,
}

/// `sum(interval)`.
pub(crate) type IntervalSum = IntervalTotal<false>;

/// `avg(interval)`.
pub(crate) type IntervalMean = IntervalTotal<true>;

impl<const IS_MEAN: bool> Tally for IntervalTotal<IS_MEAN> {
    type Columns<'a> = &'a PrimitiveArray<IntervalMonthDayNanoType>;
    type Row = IntervalMonthDayNano;
    type Answer = IntervalMonthDayNanoType;

    fn columns(values: &[ArrayRef]) -> Result<Self::Columns<'_>> {
        Ok(values[0].as_primitive())
    }

    fn row(column: Self::Columns<'_>, index: usize) -> Result<Option<IntervalMonthDayNano>> {
        Ok(value_at(column, index))
    }

    fn add(&mut self, value: IntervalMonthDayNano) -> Result<()> {
        let value = Parts::of(value);
        self.parts.months += value.months;
        self.parts.days += value.days;
        self.parts.nanoseconds += value.nanoseconds;
        self.count += 1;
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<IntervalMonthDayNano>> {
        let Parts { months, days, nanoseconds } = self.parts;
        match (self.count, IS_MEAN) {
            (0, _) => Ok(None),
            (_, false) => checked(months, days, nanoseconds).map(Some),
            (count, true) => self.parts.shared(count.into()).map(Some),
        }
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

impl<const IS_MEAN: bool> Mergeable for IntervalTotal<IS_MEAN> {
    fn state_columns() -> Vec<(&'static str, DataType)> {
        let part = DataType::Decimal128(38, 0);
        vec![("count", DataType::UInt64), ("months", part.clone()), ("days", part.clone()), ("nanoseconds", part)]
    }

    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
        let part = |of: fn(&Parts) -> i128| -> Result<ArrayRef> {
            let column = tallies.iter().map(|tally| of(&tally.parts)).collect::<Vec<_>>();
            Ok(Arc::new(Decimal128Array::from(column).with_precision_and_scale(38, 0)?))
        };
        let counts = tallies.iter().map(|tally| tally.count).collect::<UInt64Array>();
        Ok(vec![
            Arc::new(counts),
            part(|parts| parts.months)?,
            part(|parts| parts.days)?,
            part(|parts| parts.nanoseconds)?,
        ])
    }

    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
        let part = |at: usize| states[at].as_primitive::<Decimal128Type>().value(index);
        self.count += states[0].as_primitive::<UInt64Type>().value(index);
        self.parts.months += part(1);
        self.parts.days += part(2);
        self.parts.nanoseconds += part(3);
        Ok(())
    }
}

impl<const IS_MEAN: bool> Retractable for IntervalTotal<IS_MEAN> {
    fn remove(&mut self, value: IntervalMonthDayNano) -> Result<()> {
        let value = Parts::of(value);
        self.parts.months -= value.months;
        self.parts.days -= value.days;
        self.parts.nanoseconds -= value.nanoseconds;
        self.count -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(months: i32, days: i32, seconds: i64) -> IntervalMonthDayNano {
        IntervalMonthDayNano { months, days, nanoseconds: seconds * 1_000_000_000 }
    }

    #[test]
    fn fractions_go_down_the_units() {
        // Answers of PostgreSQL 15.
        for (given, factor, expected) in [
            (interval(1, 0, 0), 0.5, interval(0, 15, 0)),
            (interval(1, 1, 0), 0.5, interval(0, 15, 43_200)),
            (interval(14, 3, 3600), 1.5, interval(21, 4, 12 * 3600 + 5400)),
            (interval(1, 0, 0), 0.1, interval(0, 3, 0)),
            (interval(0, -1, 0), 0.5, interval(0, 0, -43_200)),
            (interval(0, 1, 3600), -2.0, interval(0, -2, -7200)),
        ] {
            assert_eq!(multiplied(given, factor).unwrap(), expected, "{given:?} * {factor}");
        }
        for (given, divisor, expected) in [
            (interval(1, 0, 0), 2.0, interval(0, 15, 0)),
            (interval(1, 1, 0), 2.0, interval(0, 15, 43_200)),
            (interval(0, 1, 0), 3.0, interval(0, 0, 28_800)),
            (interval(0, 1, 0), 1.5, interval(0, 0, 57_600)),
            (interval(0, -1, 0), 3.0, interval(0, 0, -28_800)),
            (interval(7, 0, 0), -2.0, interval(-3, -15, 0)),
        ] {
            assert_eq!(divided(given, divisor).unwrap(), expected, "{given:?} / {divisor}");
        }
        let nanosecond = IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 5 };
        assert_eq!(divided(nanosecond, 2.0).unwrap().nanoseconds, 3);
        assert_eq!(divided(nanosecond, -2.0).unwrap().nanoseconds, -3);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        for (given, factor) in
            [(interval(i32::MAX, 0, 0), 2.0), (interval(0, 0, 1), 1e12), (interval(1, 0, 0), f64::NAN)]
        {
            assert!(multiplied(given, factor).is_err(), "{given:?} * {factor}");
        }
        assert!(divided(interval(1, 0, 0), 0.0).is_err());
    }
}
