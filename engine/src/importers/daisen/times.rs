//! Times as cells hold them: REAL seconds or picoseconds, decimal text in CSV; all become whole picoseconds.

use rusqlite::types::ValueRef;

use crate::trace::{Finding, Stage, Stats};

const ROUNDED: Finding = Finding::info("rounded", Stage::Import);
const BAD_TIME: Finding = Finding::repaired("bad_time", Stage::Recording);

const PS_PER_SECOND: i64 = 1_000_000_000_000;
/// Decimals of a second that a picosecond has.
const DECIMALS: usize = 12;

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
    /// No number, or one that does not fit.
    Bad,
}

/// The ticks of a cell; NULL and what is no time give `None`, the latter and roundings are counted.
pub(super) fn ticks(cell: ValueRef<'_>, unit: Unit, stats: &mut Stats, place: impl Fn() -> String) -> Option<i64> {
    match read(cell, unit) {
        Time::Missing => None,
        Time::Exact(ticks) => Some(ticks),
        Time::Rounded(ticks) => {
            stats.note(ROUNDED, 1, || format!("{}: {} is no whole picosecond", place(), shown(cell)));
            Some(ticks)
        }
        Time::Bad => {
            stats.note(BAD_TIME, 1, || format!("{}: `{}` is no time; taken as NULL", place(), shown(cell)));
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
            Unit::Picoseconds => Time::Exact(value),
            Unit::Seconds => value.checked_mul(PS_PER_SECOND).map_or(Time::Bad, Time::Exact),
        },
        ValueRef::Text(text) | ValueRef::Blob(text) => match text.trim_ascii() {
            b"" => Time::Missing,
            text => std::str::from_utf8(text).map_or(Time::Bad, |text| decimal(text, unit)),
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
    // Also false for what is no number. -2^63 and 2^63 are floats.
    if !(whole >= i64::MIN as f64 && whole < -(i64::MIN as f64)) {
        return Time::Bad;
    }
    match (ticks - whole).abs() <= resolution {
        true => Time::Exact(whole as i64),
        false => Time::Rounded(whole as i64),
    }
}

/// A decimal, exactly; with an exponent it is read as a float.
fn decimal(text: &str, unit: Unit) -> Time {
    let decimals = match unit {
        Unit::Seconds => DECIMALS,
        Unit::Picoseconds => 0,
    };
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if !all_digits || whole.len() + fraction.len() == 0 {
        let looks_like_number = text.starts_with(|char: char| char.is_ascii_digit() || matches!(char, '-' | '+' | '.'));
        return text.parse().ok().filter(|_| looks_like_number).map_or(Time::Bad, |value| float(value, unit));
    }
    let (kept, rest) = fraction.split_at(fraction.len().min(decimals));
    let digit = |number: Option<i64>, byte: u8| number?.checked_mul(10)?.checked_add(i64::from(byte - b'0'));
    let zeros = std::iter::repeat_n(b'0', decimals - kept.len());
    let Some(ticks) = whole.bytes().chain(kept.bytes()).chain(zeros).fold(Some(0), digit) else { return Time::Bad };
    let rest = rest.trim_end_matches('0');
    let up = match rest.as_bytes() {
        [] | [b'0'..=b'4', ..] => false,
        [b'5'] => ticks % 2 == 1,
        _ => true,
    };
    let Some(ticks) = ticks.checked_add(i64::from(up)) else { return Time::Bad };
    let ticks = if negative { -ticks } else { ticks };
    if rest.is_empty() { Time::Exact(ticks) } else { Time::Rounded(ticks) }
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
            (1e7, Time::Bad),
            (f64::NAN, Time::Bad),
            (f64::INFINITY, Time::Bad),
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
            ("9223372.036854775807", Time::Exact(i64::MAX)),
            ("9223372.036854775808", Time::Bad),
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
            assert_eq!(decimal(text, Unit::Seconds), expected, "{text}");
        }
        assert_eq!(decimal("17.0", Unit::Picoseconds), Time::Exact(17));
    }
}
