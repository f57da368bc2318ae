//! Times: decimal microseconds become whole nanoseconds, exactly.
//!
//! ```text
//! 1682725898236567                 integer µs (Kineto before 2024, Chrome, clang)
//! 1365627949885.185                Kineto: ns printed as µs with three decimals
//! 344572.05300000001, 1e-06        doubles (JAX, VizTracer): rounded half to even at 1 ns, and counted
//! "200.5"                          strings (the quotes are off before we see it)
//! ```
//! No binary float anywhere: at 1.7e15 µs a double steps by 0.25 µs, and nested events would leave their parents.

use crate::time::REACH;

/// What a time cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadTime {
    /// No number.
    NotANumber,
    /// Beyond [`REACH`].
    OutOfRange,
}

/// A time in ns, and whether it had to be rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nanoseconds {
    /// Whole ns.
    pub(super) value: i64,
    /// Whether the text said more.
    pub(super) rounded: bool,
}

/// Start and finish of an event; both ends are rounded, not the duration, which keeps nesting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// First ns.
    pub(super) start: i64,
    /// First ns after it.
    pub(super) finish: i64,
    /// Whether an end had to be rounded.
    pub(super) rounded: bool,
    /// Whether the duration was below zero and became zero.
    pub(super) negative: bool,
}

fn in_reach(time: i64) -> Result<i64, BadTime> {
    if REACH.contains(&time) { Ok(time) } else { Err(BadTime::OutOfRange) }
}

/// Decimals of a microsecond that the slow path keeps; further digits only break ties.
const DECIMALS: i64 = 18;
/// Units of the slow path in a nanosecond.
const UNITS_PER_NS: i128 = 10i128.pow(DECIMALS as u32 - 3);

/// Reads decimal microseconds.
#[inline]
pub(super) fn nanoseconds(text: &[u8]) -> Result<Nanoseconds, BadTime> {
    match exact(text) {
        Some(value) => Ok(Nanoseconds { value: in_reach(value)?, rounded: false }),
        None => round(decimal(text)?),
    }
}

/// Reads start and duration, both decimal microseconds.
#[inline]
pub(super) fn span(start: &[u8], duration: &[u8]) -> Result<Span, BadTime> {
    if let (Some(start), Some(duration)) = (exact(start), exact(duration)) {
        let finish = in_reach(in_reach(start)?.checked_add(duration.max(0)).ok_or(BadTime::OutOfRange)?)?;
        return Ok(Span { start, finish, rounded: false, negative: duration < 0 });
    }
    let (start, duration) = (decimal(start)?, decimal(duration)?);
    let begin = round(start)?;
    let end = round(start + duration.max(0))?;
    Ok(Span { start: begin.value, finish: end.value, rounded: begin.rounded || end.rounded, negative: duration < 0 })
}

/// The usual spelling: up to fifteen digits before the point, up to three behind it.
#[inline]
fn exact(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let mut value = 0i64;
    let mut at = 0;
    while let Some(digit) = digits.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    // Sixteen digits are 317 years of microseconds: the multiplication below would not fit all of them.
    if at == 0 || at > 16 {
        return None;
    }
    let scaled = match digits.len() - at {
        0 => value.checked_mul(1_000)?,
        length @ 2..=4 if digits[at] == b'.' => {
            let mut fraction = 0;
            for byte in &digits[at + 1..] {
                let digit = byte.wrapping_sub(b'0');
                if digit > 9 {
                    return None;
                }
                fraction = fraction * 10 + i64::from(digit);
            }
            value.checked_mul(1_000)?.checked_add(fraction * [100, 10, 1][length - 2])?
        }
        _ => return None,
    };
    Some(if negative { -scaled } else { scaled })
}

/// Any spelling of a decimal number, in units of 10⁻¹⁸ µs.
fn decimal(text: &[u8]) -> Result<i128, BadTime> {
    let (negative, mut rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let mut mantissa = 0i128;
    let mut scale = 0i64;
    let mut beyond = false;
    let (mut any, mut point) = (false, false);
    while let [byte, after @ ..] = rest {
        match byte {
            b'0'..=b'9' => {
                any = true;
                // 10³⁶ leaves room for another digit; what comes later is below any unit or out of range.
                if mantissa < 10i128.pow(36) {
                    mantissa = mantissa * 10 + i128::from(byte - b'0');
                    scale -= i64::from(point);
                } else {
                    beyond |= *byte != b'0';
                    scale += i64::from(!point);
                }
            }
            b'.' if !point => point = true,
            b'e' | b'E' if any => {
                let exponent = std::str::from_utf8(after).ok().filter(|text| {
                    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
                    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
                });
                // More digits than fit only say "huge" or "tiny".
                let exponent = exponent.ok_or(BadTime::NotANumber)?;
                let limit = if exponent.starts_with('-') { i64::from(i32::MIN) } else { i64::from(i32::MAX) };
                scale += exponent.parse::<i64>().unwrap_or(limit).clamp(i64::from(i32::MIN), i64::from(i32::MAX));
                break;
            }
            _ => return Err(BadTime::NotANumber),
        }
        rest = after;
    }
    if !any {
        return Err(BadTime::NotANumber);
    }
    let shift = scale + DECIMALS;
    let mut units = if mantissa == 0 {
        0
    } else if shift >= 0 {
        let factor = u32::try_from(shift).ok().and_then(|shift| 10i128.checked_pow(shift));
        factor.and_then(|factor| mantissa.checked_mul(factor)).ok_or(BadTime::OutOfRange)?
    } else {
        let divisor = u32::try_from(-shift).ok().and_then(|shift| 10i128.checked_pow(shift));
        beyond |= divisor.is_none_or(|divisor| mantissa % divisor != 0);
        divisor.map_or(0, |divisor| mantissa / divisor)
    };
    // Digits below the last unit keep a tie from being one.
    units |= i128::from(beyond);
    // A sum of two of these must fit.
    if units > i128::MAX / 4 {
        return Err(BadTime::OutOfRange);
    }
    Ok(if negative { -units } else { units })
}

/// Half to even at 1 ns.
fn round(units: i128) -> Result<Nanoseconds, BadTime> {
    let floor = units.div_euclid(UNITS_PER_NS);
    let rest = units.rem_euclid(UNITS_PER_NS);
    let up = rest * 2 > UNITS_PER_NS || (rest * 2 == UNITS_PER_NS && floor % 2 != 0);
    let value = i64::try_from(floor + i128::from(up)).map_err(|_| BadTime::OutOfRange)?;
    Ok(Nanoseconds { value: in_reach(value)?, rounded: rest != 0 })
}

/// A numeric text of any spelling as a double, for values (never for times), and whether a whole number is that number
/// still. `None` for what is no finite number.
pub(super) fn double(text: &str) -> Option<(f64, bool)> {
    // Rust reads `inf` and `nan`, too.
    let digits = text.trim_start_matches(['+', '-']);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite())?;
    // Fifteen digits always fit.
    let is_exact = digits.len() <= 15 || text.parse::<i128>().map_or(true, |whole| whole == value as i128);
    Some((value, is_exact))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        let check = |text: &str, expected: i64| {
            let read = nanoseconds(text.as_bytes());
            assert_eq!(read, Ok(Nanoseconds { value: expected, rounded: false }), "{text}");
            // Through the slow path, too.
            assert_eq!(decimal(text.as_bytes()).and_then(round), read, "{text}");
        };
        check("0", 0);
        check("1712195495502095.123", 1_712_195_495_502_095_123);
        check("5.1", 5_100);
        check("-0.001", -1);
        check("-12", -12_000);
        check("+10.5", 10_500);
        check(".5", 500);
        check("5.", 5_000);
        check("1e3", 1_000_000);
        check("1.5E+06", 1_500_000_000);
        check("1e-3", 1);
        check("4611686018427387.903", REACH.end - 1);
        check("0.0010000", 1);
        check("0e99999999999", 0);
    }

    #[test]
    fn what_does_not_fit_a_nanosecond_is_rounded_half_to_even() {
        let check = |text: &str, expected: i64| {
            assert_eq!(nanoseconds(text.as_bytes()), Ok(Nanoseconds { value: expected, rounded: true }), "{text}");
        };
        check("0.0005", 0);
        check("0.0015", 2);
        check("0.0025", 2);
        check("0.00050000000000000000000000001", 1);
        check("-0.0005", 0);
        check("-0.0015", -2);
        check("344572.05300000001", 344_572_053);
        check("9.9999999999999995e-07", 0);
        check("1966584357.4150002", 1_966_584_357_415);
        check("1e-400", 0);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "-", ".", "1.5e", "2e+", "100a", "-1.-500", "invalid", "NaN", "1.2.3", " 1", "--1", "e5"] {
            assert_eq!(nanoseconds(text.as_bytes()), Err(BadTime::NotANumber), "{text}");
        }
        for text in [
            "9223372036854775.808",
            "4611686018427387.904",
            "-4611686018427388",
            "-47e14",
            "1e30",
            "1e999999999999",
            "99999999999999999999999999999999999999999999",
        ] {
            assert_eq!(nanoseconds(text.as_bytes()), Err(BadTime::OutOfRange), "{text}");
        }
    }

    #[test]
    fn both_ends_are_rounded() {
        let check = |start: &str, duration: &str, expected: (i64, i64)| {
            let span = span(start.as_bytes(), duration.as_bytes()).expect("a span");
            assert_eq!((span.start, span.finish), expected, "{start} {duration}");
        };
        check("0.0004", "0.0004", (0, 1));
        check("1.5", "0.25", (1_500, 1_750));
        check("1.5", "-1", (1_500, 1_500));
        check("1.5", "-1e0", (1_500, 1_500));
        assert_eq!(span(b"9223372036854775", b"1"), Err(BadTime::OutOfRange));
    }

    #[test]
    fn values_are_read_as_strtod_does() {
        for (text, expected) in [
            (".75", Some(0.75)),
            ("246.", Some(246.0)),
            ("01.23", Some(1.23)),
            ("050", Some(50.0)),
            ("+10.5", Some(10.5)),
            ("1.5e", None),
            ("2e+", None),
            (".", None),
            ("+", None),
            ("-", None),
            ("inf", None),
            ("NaN", None),
            ("", None),
        ] {
            assert_eq!(double(text), expected.map(|value| (value, true)), "{text}");
        }
        assert_eq!(double("9007199254740993"), Some((9_007_199_254_740_992.0, false)));
        assert_eq!(double("9007199254740992"), Some((9_007_199_254_740_992.0, true)));
        assert_eq!(double("1e999"), None);
    }
}
