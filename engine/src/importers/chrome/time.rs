//! Times: decimal microseconds become whole nanoseconds, exactly.
//!
//! ```text
//! 1682725898236567                 integer µs (Kineto before 2024, Chrome, clang)
//! 1365627949885.185                Kineto: ns printed as µs with three decimals
//! 344572.05300000001, 1e-06        doubles (JAX, VizTracer): rounded half to even at 1 ns, and counted
//! "200.5"                          strings (the quotes are off before we see it)
//! ```
//! No binary float anywhere: at 1.7e15 µs a double steps by 0.25 µs, and nested events would leave their parents.

use tq_udfs::ticks::Tick;

use crate::time::{BadNumber, Decimal, REACH};

/// A time in ticks, and whether it had to be rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticks {
    /// Whole ones.
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

fn in_reach(time: i64) -> Result<i64, BadNumber> {
    if REACH.contains(&time) { Ok(time) } else { Err(BadNumber::OutOfRange) }
}

/// From microseconds to nanoseconds: the point moves by three places; `tq` writes picoseconds where a trace has them.
const fn shift(tick: Tick) -> i64 {
    match tick {
        Tick::Weight | Tick::Nanosecond => 3,
        Tick::Picosecond => 6,
    }
}

/// Reads decimal microseconds.
#[inline]
pub(super) fn ticks(text: &[u8], tick: Tick) -> Result<Ticks, BadNumber> {
    match exact(text, tick) {
        Some(value) => Ok(Ticks { value: in_reach(value)?, rounded: false }),
        None => Decimal::parse(text)?.ticks(shift(tick)).map(|(value, exact)| Ticks { value, rounded: !exact }),
    }
}

/// Reads start and duration, both decimal microseconds.
#[inline]
pub(super) fn span(start: &[u8], duration: &[u8], tick: Tick) -> Result<Span, BadNumber> {
    if let (Some(start), Some(duration)) = (exact(start, tick), exact(duration, tick)) {
        let finish = in_reach(in_reach(start)?.checked_add(duration.max(0)).ok_or(BadNumber::OutOfRange)?)?;
        return Ok(Span { start, finish, rounded: false, negative: duration < 0 });
    }
    let (start, duration) = (Decimal::parse(start)?, Decimal::parse(duration)?);
    let (begin, begin_exact) = start.ticks(shift(tick))?;
    let negative = duration.is_negative();
    let (finish, finish_exact) =
        if negative { (begin, begin_exact) } else { start.ticks_of_sum(&duration, shift(tick))? };
    Ok(Span { start: begin, finish, rounded: !(begin_exact && finish_exact), negative })
}

/// The usual spelling: up to fifteen digits before the point, up to three behind it.
#[inline]
fn exact(text: &[u8], tick: Tick) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    // The first eight at once.
    let (mut value, mut at) = match digits.first_chunk().and_then(eight_digits) {
        Some(eight) => (eight, 8),
        None => (0, 0),
    };
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
    let scaled = scaled.checked_mul(tick.per_nanosecond())?;
    Some(if negative { -scaled } else { scaled })
}

/// Eight decimal digits as a number: neighbours are joined to two, four and eight digits (D. Lemire, "Quickly parsing eight digits", 2018).
#[inline]
fn eight_digits(digits: &[u8; 8]) -> Option<i64> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let text = u64::from_le_bytes(*digits);
    // No other byte has a high half of 3, also when 6 is added.
    let halves = (text & (text.wrapping_add(ONES * 6))) & (ONES * 0xf0);
    if halves != ONES * 0x30 {
        return None;
    }
    let ones = text - ONES * u64::from(b'0');
    let twos = (ones * 10 + (ones >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos * 100 + (twos >> 16)) & 0x0000_ffff_0000_ffff;
    let eight = (fours * 10_000 + (fours >> 32)) & 0xffff_ffff;
    i64::try_from(eight).ok()
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn eight_digits_are_one_number(text in prop_oneof!["[0-9]{8}", "[ -~]{8}", "[0-9]{7}[/:é-ü.]"]) {
            if let Some(digits) = text.as_bytes().first_chunk() {
                let expected = digits.iter().all(u8::is_ascii_digit).then(|| text[..8].parse().unwrap());
                prop_assert_eq!(eight_digits(digits), expected);
            }
        }
    }

    #[test]
    fn decimals_are_exact() {
        let check = |text: &str, expected: i64| {
            let read = ticks(text.as_bytes(), Tick::Nanosecond);
            assert_eq!(read, Ok(Ticks { value: expected, rounded: false }), "{text}");
            // Through the slow path, too.
            assert_eq!(
                Decimal::parse(text.as_bytes()).and_then(|number| number.ticks(shift(Tick::Nanosecond))),
                Ok((expected, true)),
                "{text}"
            );
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
            assert_eq!(
                ticks(text.as_bytes(), Tick::Nanosecond),
                Ok(Ticks { value: expected, rounded: true }),
                "{text}"
            );
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
    fn picoseconds_are_exact() {
        let read = |text: &str| ticks(text.as_bytes(), Tick::Picosecond).map(|time| (time.value, time.rounded));
        assert_eq!(read("1.000001"), Ok((1_000_001, false)));
        assert_eq!(read("-12.5"), Ok((-12_500_000, false)));
        assert_eq!(read("0.0000005"), Ok((0, true)));
        assert_eq!(read("4611686018427.387903"), Ok((REACH.end - 1, false)));
        assert_eq!(read("4611686018427.387904"), Err(BadNumber::OutOfRange));
        assert_eq!(read("9223372036854775"), Err(BadNumber::OutOfRange));
        let span = span(b"1.5", b"0.000001", Tick::Picosecond).expect("a span");
        assert_eq!((span.start, span.finish), (1_500_000, 1_500_001));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in ["", "-", ".", "1.5e", "2e+", "100a", "-1.-500", "invalid", "NaN", "1.2.3", " 1", "--1", "e5"] {
            assert_eq!(ticks(text.as_bytes(), Tick::Nanosecond), Err(BadNumber::NotANumber), "{text}");
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
            assert_eq!(ticks(text.as_bytes(), Tick::Nanosecond), Err(BadNumber::OutOfRange), "{text}");
        }
    }

    #[test]
    fn both_ends_are_rounded() {
        let check = |start: &str, duration: &str, expected: (i64, i64)| {
            let span = span(start.as_bytes(), duration.as_bytes(), Tick::Nanosecond).expect("a span");
            assert_eq!((span.start, span.finish), expected, "{start} {duration}");
        };
        check("0.0004", "0.0004", (0, 1));
        check("1.5", "0.25", (1_500, 1_750));
        check("1.5", "-1", (1_500, 1_500));
        check("1.5", "-1e0", (1_500, 1_500));
        // A duration of many digits is added before anything is rounded, and one that no time holds is refused.
        check("0.000000000000000000000001", "0.0004999999999999999999999", (0, 1));
        check("0.00000000000000000000000001", "0.0004999999999999999999999", (0, 0));
        check("-0.0005", "0.00000000000000000000000000000000001", (0, 0));
        check("7", "1e-400", (7_000, 7_000));
        assert_eq!(span(b"7", b"1e400", Tick::Nanosecond), Err(BadNumber::OutOfRange));
        assert_eq!(
            span(b"7", b"-1e400", Tick::Nanosecond),
            Ok(Span { start: 7_000, finish: 7_000, rounded: false, negative: true })
        );
        assert_eq!(span(b"9223372036854775", b"1", Tick::Nanosecond), Err(BadNumber::OutOfRange));
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
