//! Times as cells hold them: REAL seconds or picoseconds, decimal text in CSV; all become whole picoseconds.

use rusqlite::types::ValueRef;

use crate::time::{BadNumber, Decimal, REACH};
use crate::trace::{Stats, findings};

const PS_PER_SECOND: i64 = 1_000_000_000_000;
/// Decimals of a second that a picosecond has.
const DECIMALS: i64 = 12;

/// A float of seconds is the sum of many clock periods: it may be off by a few units in its last place.
const OWN_RESOLUTION: f64 = 4.0 * f64::EPSILON;

/// The unit of a trace's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Picoseconds,
}

/// What a cell says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Time {
    /// Nothing: NULL, or an empty text.
    Missing,
    Exact(i64),
    Rounded(i64),
    /// No number.
    Bad,
    /// Beyond [`REACH`].
    Beyond,
}

/// The ticks of a cell; NULL and what is no time give `None`, the latter and roundings are counted.
pub(super) fn ticks(cell: ValueRef<'_>, unit: Unit, stats: &mut Stats, place: impl Fn() -> String) -> Option<i64> {
    match read(cell, unit) {
        Time::Missing => None,
        Time::Exact(ticks) => Some(ticks),
        Time::Rounded(ticks) => {
            stats.note(findings::ROUNDED, 1, || format!("{}: {} is no whole picosecond", place(), shown(cell)));
            Some(ticks)
        }
        Time::Beyond => {
            stats.note(findings::TIME_IS_NULL, 1, || {
                format!("{}: `{}` lies beyond ±2^62 ps; taken as NULL", place(), shown(cell))
            });
            None
        }
        Time::Bad => {
            stats.note(findings::TIME_IS_NULL, 1, || {
                format!("{}: `{}` is no time; taken as NULL", place(), shown(cell))
            });
            None
        }
    }
}

#[inline]
fn read(cell: ValueRef<'_>, unit: Unit) -> Time {
    match cell {
        ValueRef::Null => Time::Missing,
        ValueRef::Real(value) => float(value, unit),
        ValueRef::Integer(value) => match unit {
            Unit::Picoseconds => exact(Some(value)),
            Unit::Seconds => exact(value.checked_mul(PS_PER_SECOND)),
        },
        ValueRef::Text(text) | ValueRef::Blob(text) => match text.trim_ascii() {
            b"" => Time::Missing,
            text => decimal(text, unit),
        },
    }
}

#[inline]
fn float(value: f64, unit: Unit) -> Time {
    let (ticks, resolution) = match unit {
        Unit::Seconds => {
            let ticks = value * PS_PER_SECOND as f64;
            (ticks, ticks.abs() * OWN_RESOLUTION)
        }
        Unit::Picoseconds => (value, 0.0),
    };
    let whole = ticks.round_ties_even();
    if value.is_nan() {
        return Time::Bad;
    }
    // Both ends are floats.
    if !(REACH.start as f64..REACH.end as f64).contains(&whole) {
        return Time::Beyond;
    }
    match (ticks - whole).abs() <= resolution {
        true => Time::Exact(whole as i64),
        false => Time::Rounded(whole as i64),
    }
}

/// A decimal, exactly.
fn decimal(text: &[u8], unit: Unit) -> Time {
    let decimals = match unit {
        Unit::Seconds => DECIMALS,
        Unit::Picoseconds => 0,
    };
    match Decimal::parse(text).and_then(|number| number.ticks(decimals)) {
        Ok((ticks, true)) => Time::Exact(ticks),
        Ok((ticks, false)) => Time::Rounded(ticks),
        Err(BadNumber::NotANumber) => Time::Bad,
        Err(BadNumber::OutOfRange) => Time::Beyond,
    }
}

/// Whole ticks, unless they lie beyond what a time can be.
fn exact(ticks: Option<i64>) -> Time {
    ticks.filter(|ticks| REACH.contains(ticks)).map_or(Time::Beyond, Time::Exact)
}

fn shown(cell: ValueRef<'_>) -> String {
    match cell {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(value) => value.to_string(),
        ValueRef::Real(value) => value.to_string(),
        ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_seconds_are_whole_picoseconds() {
        for (value, expected) in [
            (0.0, Time::Exact(0)),
            (8.4117e-05, Time::Exact(84_117_000)),
            (2.912_000_000_000_000_2e-06, Time::Exact(2_912_000)),
            // A clock of 1.4 GHz has no whole picoseconds.
            (1.0 / 1.4e9, Time::Rounded(714)),
            (1.5e-12, Time::Rounded(2)),
            (-2.5e-12, Time::Rounded(-2)),
            (1e7, Time::Beyond),
            (f64::NAN, Time::Bad),
            (f64::NEG_INFINITY, Time::Beyond),
        ] {
            assert_eq!(float(value, Unit::Seconds), expected, "{value}");
        }
        assert_eq!(float(10_685_000.0, Unit::Picoseconds), Time::Exact(10_685_000));
        assert_eq!(float(0.5, Unit::Picoseconds), Time::Rounded(0));
    }

    #[test]
    fn decimals_never_pass_through_a_float() {
        for (text, expected) in [
            ("0.0000145060", Time::Exact(14_506_000)),
            ("4611686.018427387903", Time::Exact(REACH.end - 1)),
            ("4611686.018427387904", Time::Beyond),
            ("9223372.036854775807", Time::Beyond),
            ("4.500000123456789012e6", Time::Exact(4_500_000_123_456_789_012)),
            ("1e400", Time::Beyond),
            ("1e-400", Time::Rounded(0)),
            ("0.0000000000015", Time::Rounded(2)),
            ("0.0000000000025", Time::Rounded(2)),
            ("-0.00000000000251", Time::Rounded(-3)),
            ("1e-6", Time::Exact(1_000_000)),
            ("", Time::Bad),
            (".", Time::Bad),
            ("nan", Time::Bad),
            ("inf", Time::Bad),
            ("soon", Time::Bad),
        ] {
            assert_eq!(decimal(text.as_bytes(), Unit::Seconds), expected, "{text}");
        }
        assert_eq!(decimal(b"17.0", Unit::Picoseconds), Time::Exact(17));
    }
}
