//! Times: exact conversion from decimal text to ticks, for every reader; and times as people write them on the command
//! line.
//!
//! ```text
//! 1695835542481129.5   µs   shift 3    1695835542481129500 ns     whole
//! 9.0000001e6          s    shift 12   9000000100000 … ps         whole
//! 0.0025               µs   shift 3    2 ns                       rounded half to even: to be counted
//! 1e400, 1e-400, 0e9999               out of range; 0, rounded; 0, whole
//! ```
//! A decimal never passes through a binary float, however many digits it has, and whatever its exponent is.

use tq_udfs::ticks::Tick;

/// Times in ticks beyond ±146 years are damage: of all others, any two have a difference.
pub(crate) const REACH: std::ops::Range<i64> = -(1 << 62)..1 << 62;

/// Why a text is not a number of ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadNumber {
    /// No decimal number.
    NotANumber,
    /// Larger than what it was asked for, or beyond [`REACH`].
    OutOfRange,
}

/// A decimal number as it is written: `12`, `-0.25`, `.5`, `5.`, `1.5e-3`, `+1E6`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decimal<'t> {
    negative: bool,
    /// Without leading zeros.
    whole: &'t [u8],
    /// Without zeros at the end.
    fraction: &'t [u8],
    exponent: i64,
}

/// Exponents beyond this say "huge" or "tiny" and nothing more; no text is so long that its digits make up for it.
const EXPONENT_MOST: i64 = 1 << 50;

/// Magnitudes that [`Decimal::scaled`] gives.
const MAGNITUDE_MOST: i128 = 10i128.pow(37);

/// Ten to the power; `None` when it does not fit.
fn power(exponent: i64) -> Option<i128> {
    10i128.checked_pow(u32::try_from(exponent).ok()?)
}

impl<'t> Decimal<'t> {
    /// The parts of a text without blanks around it.
    pub(crate) fn parse(text: &'t [u8]) -> Result<Decimal<'t>, BadNumber> {
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (whole, rest) = text.split_at(digits(text));
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => rest.split_at(digits(rest)),
            _ => (&rest[..0], rest),
        };
        if whole.len() + fraction.len() == 0 {
            return Err(BadNumber::NotANumber);
        }
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', rest @ ..] => exponent(rest)?,
            _ => return Err(BadNumber::NotANumber),
        };
        let zeros = whole.iter().take_while(|digit| **digit == b'0').count();
        let end = fraction.len() - fraction.iter().rev().take_while(|digit| **digit == b'0').count();
        let (whole, fraction) = (&whole[zeros..], &fraction[..end]);
        // Zero is zero, whatever its exponent.
        let exponent = if whole.is_empty() && fraction.is_empty() { 0 } else { exponent };
        Ok(Decimal { negative, whole, fraction, exponent })
    }

    /// Whether it is below zero.
    pub(crate) fn is_negative(&self) -> bool {
        self.negative && !self.is_zero()
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    /// Its digits as values.
    fn digits(&self) -> impl DoubleEndedIterator<Item = u8> + ExactSizeIterator {
        let (whole, fraction) = (self.whole, self.fraction);
        (0..whole.len() + fraction.len())
            .map(move |at| if at < whole.len() { whole[at] } else { fraction[at - whole.len()] } - b'0')
    }

    /// `value · 10^shift` in ticks, rounded half to even, and whether that is exact.
    ///
    /// # Errors
    /// [`BadNumber::OutOfRange`] beyond [`REACH`].
    pub(crate) fn ticks(&self, shift: i64) -> Result<(i64, bool), BadNumber> {
        let (value, exact) = self.scaled(shift)?;
        in_reach(value).map(|ticks| (ticks, exact))
    }

    /// `value · 10^shift` as a whole number, rounded half to even, and whether that is exact.
    ///
    /// # Errors
    /// [`BadNumber::OutOfRange`] beyond ±10³⁷.
    pub(crate) fn scaled(&self, shift: i64) -> Result<(i128, bool), BadNumber> {
        let (magnitude, next, more) = self.cut(shift)?;
        let up = next > 5 || (next == 5 && (more || magnitude & 1 == 1));
        let magnitude = magnitude + i128::from(up);
        Ok((if self.negative { -magnitude } else { magnitude }, next == 0 && !more))
    }

    /// The whole part of `|value| · 10^shift`, the digit behind it, and whether any digit after that one is not 0.
    fn cut(&self, shift: i64) -> Result<(i128, u8, bool), BadNumber> {
        if self.is_zero() {
            return Ok((0, 0, false));
        }
        // How many digits stand before the point.
        let point = self.whole.len() as i64 + self.exponent + shift;
        let mut digits = self.digits();
        let before = usize::try_from(point).unwrap_or(0).min(digits.len());
        // Eighteen digits fit a machine word, and few numbers have more.
        let short = digits.by_ref().take(before.min(18)).fold(0u64, |value, digit| value * 10 + u64::from(digit));
        let mut magnitude = i128::from(short);
        for digit in digits.by_ref().take(before.saturating_sub(18)) {
            magnitude = magnitude * 10 + i128::from(digit);
            if magnitude > MAGNITUDE_MOST {
                return Err(BadNumber::OutOfRange);
            }
        }
        let missing = point.max(0) - before as i64;
        if missing > 0 {
            magnitude = power(missing).and_then(|by| magnitude.checked_mul(by)).ok_or(BadNumber::OutOfRange)?;
        }
        if magnitude > MAGNITUDE_MOST {
            return Err(BadNumber::OutOfRange);
        }
        let next = if point < 0 { 0 } else { digits.next().unwrap_or(0) };
        Ok((magnitude, next, digits.any(|digit| digit > 0)))
    }

    /// The sum of two numbers `· 10^shift` in ticks, rounded once; `other` is not below zero.
    ///
    /// # Errors
    /// [`BadNumber::OutOfRange`] beyond [`REACH`].
    pub(crate) fn ticks_of_sum(&self, other: &Decimal<'_>, shift: i64) -> Result<(i64, bool), BadNumber> {
        if other.is_zero() {
            return self.ticks(shift);
        }
        if let Some((value, exact)) = self.short_sum(other, shift) {
            return in_reach(value).map(|ticks| (ticks, exact));
        }
        let text = long_sum(self, other, shift)?;
        Decimal::parse(&text)?.ticks(shift)
    }

    /// The sum in 128 bits, where it fits: nearly always.
    fn short_sum(&self, other: &Decimal<'_>, shift: i64) -> Option<(i128, bool)> {
        let decimals = |number: &Decimal<'_>| number.fraction.len() as i64 - number.exponent;
        let finest = decimals(self).max(decimals(other)).max(shift);
        let part = |number: &Decimal<'_>| {
            let (magnitude, ..) = number.cut(finest).ok()?;
            Some(if number.negative { -magnitude } else { magnitude })
        };
        let (sum, by) = (part(self)? + part(other)?, power(finest - shift)?);
        Some((divide_half_even(sum, by), sum % by == 0))
    }

    /// Six times the number, as a text: minutes in tens of seconds.
    pub(crate) fn sixfold(&self) -> Vec<u8> {
        let digits: Vec<u8> = self.digits().collect();
        let mut text = vec![0; digits.len() + 1];
        let mut carry = 0;
        for (at, digit) in digits.iter().enumerate().rev() {
            let value = digit * 6 + carry;
            text[at + 1] = b'0' + value % 10;
            carry = value / 10;
        }
        text[0] = b'0' + carry;
        if self.negative {
            text.insert(0, b'-');
        }
        text.extend(format!("e{}", self.exponent - self.fraction.len() as i64).bytes());
        text
    }
}

fn in_reach(value: i128) -> Result<i64, BadNumber> {
    i64::try_from(value).ok().filter(|ticks| REACH.contains(ticks)).ok_or(BadNumber::OutOfRange)
}

fn exponent(text: &[u8]) -> Result<i64, BadNumber> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(BadNumber::NotANumber);
    }
    let magnitude = digits.iter().fold(0, |value: i64, digit| {
        value.saturating_mul(10).saturating_add(i64::from(digit - b'0')).min(EXPONENT_MOST)
    });
    Ok(if negative { -magnitude } else { magnitude })
}

/// The sum of two numbers of any length as a text, digit by digit; `b` is not below zero. Exact down to a place that is far
/// below a tick `· 10^-shift` and below all digits of the other number: what lies beyond is only more or less than nothing.
fn long_sum(a: &Decimal<'_>, b: &Decimal<'_>, shift: i64) -> Result<Vec<u8>, BadNumber> {
    let high = |number: &Decimal<'_>| number.whole.len() as i64 + number.exponent;
    let low = |number: &Decimal<'_>| number.exponent - number.fraction.len() as i64;
    // More than 10^40 ticks, whatever the other one is.
    if [a, b].iter().any(|number| number.cut(shift).is_err()) {
        return Err(BadNumber::OutOfRange);
    }
    // A number that lies below all places that matter is one of the last place.
    let floor = |other: &Decimal<'_>| low(other).min(-shift) - 2;
    let places = |number: &Decimal<'_>, other: &Decimal<'_>| match high(number) <= floor(other) {
        true => (floor(other), vec![1]),
        false => (low(number), number.digits().rev().collect()),
    };
    let ((low_a, digits_a), (low_b, digits_b)) = (places(a, b), places(b, a));
    let lowest = low_a.min(low_b);
    let aligned = |low: i64, digits: Vec<u8>| {
        let mut aligned = vec![0i8; (low - lowest) as usize];
        aligned.extend(digits.iter().map(|digit| *digit as i8));
        aligned
    };
    let (mut a_digits, mut b_digits) = (aligned(low_a, digits_a), aligned(low_b, digits_b));
    let length = a_digits.len().max(b_digits.len()) + 1;
    a_digits.resize(length, 0);
    b_digits.resize(length, 0);
    let (mut sum, mut carry) = (Vec::with_capacity(length + 24), 0);
    let a_is_larger = a_digits.iter().rev().ge(b_digits.iter().rev());
    let (large, small) = if a_is_larger { (&a_digits, &b_digits) } else { (&b_digits, &a_digits) };
    for (large, small) in large.iter().zip(small) {
        let value = large + carry + if a.negative { -small } else { *small };
        sum.push(b'0' + value.rem_euclid(10) as u8);
        carry = value.div_euclid(10);
    }
    if a.negative && a_is_larger {
        sum.push(b'-');
    }
    sum.reverse();
    sum.extend(format!("e{lowest}").bytes());
    Ok(sum)
}

/// A time given on the command line, before the session's tick is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenTime {
    /// A bare number: ticks.
    Ticks(i64),
    /// A number with a unit, in 10⁻¹⁸ s. The last digit is made odd where the text has more digits, so that it is not
    /// mistaken for a tie.
    Attoseconds(i128),
}

/// Attoseconds of a picosecond.
const PER_PICOSECOND: i128 = 1_000_000;

impl GivenTime {
    /// In ticks, rounded half to even where the tick is coarser.
    pub fn ticks(self, tick: Tick) -> Option<i64> {
        let ticks = match self {
            GivenTime::Ticks(ticks) => i128::from(ticks),
            GivenTime::Attoseconds(attoseconds) => {
                let per_tick = PER_PICOSECOND * i128::from(1_000 / tick.per_nanosecond());
                divide_half_even(attoseconds, per_tick)
            }
        };
        in_reach(ticks).ok()
    }
}

impl std::str::FromStr for GivenTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let help = || format!("`{text}` is no time; write it like `1.5ms`, `300us`, `2s`, or as bare ticks");
        let large = || format!("`{text}` lies beyond what ticks can count, 146 years of nanoseconds");
        let text = text.trim();
        let unit_at =
            text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_'))).unwrap_or(text.len());
        let (number, unit) = (text[..unit_at].replace('_', ""), text[unit_at..].trim());
        let decimal = Decimal::parse(number.as_bytes()).map_err(|_| help())?;
        if unit.is_empty() {
            return match number.contains('.') {
                true => Err(help()),
                false => decimal.ticks(0).map(|(ticks, _)| GivenTime::Ticks(ticks)).map_err(|_| large()),
            };
        }
        let attoseconds = |decimal: &Decimal<'_>, shift| {
            let (magnitude, next, more) = decimal.cut(shift).map_err(|_| large())?;
            let magnitude = magnitude | i128::from(next > 0 || more);
            let time = GivenTime::Attoseconds(if decimal.negative { -magnitude } else { magnitude });
            // The coarsest tick: what does not fit that one fits none.
            time.ticks(Tick::Nanosecond).map(|_| time).ok_or_else(large)
        };
        match unit {
            "ps" => attoseconds(&decimal, 6),
            "ns" => attoseconds(&decimal, 9),
            "us" | "µs" | "μs" => attoseconds(&decimal, 12),
            "ms" => attoseconds(&decimal, 15),
            "s" => attoseconds(&decimal, 18),
            // Six times a decimal is a decimal.
            "min" => attoseconds(&Decimal::parse(&decimal.sixfold()).map_err(|_| help())?, 19),
            _ => Err(help()),
        }
    }
}

/// `value / by`, rounded half to even; `by` is positive.
pub fn divide_half_even(value: i128, by: i128) -> i128 {
    let (quotient, remainder) = (value.div_euclid(by), value.rem_euclid(by));
    match (remainder * 2).cmp(&by) {
        std::cmp::Ordering::Less => quotient,
        std::cmp::Ordering::Greater => quotient + 1,
        std::cmp::Ordering::Equal => quotient + (quotient & 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_read_as_people_write_them() {
        let check = |text: &str, nanoseconds: Option<i64>| {
            assert_eq!(
                text.parse::<GivenTime>().ok().and_then(|time| time.ticks(Tick::Nanosecond)),
                nanoseconds,
                "{text}"
            );
        };
        check("1.5ms", Some(1_500_000));
        check("300us", Some(300_000));
        check("0.3 µs", Some(300));
        check("-2s", Some(-2_000_000_000));
        check("17", Some(17));
        check("1_000", Some(1_000));
        check("2500ps", Some(2));
        check("3500ps", Some(4));
        // Rounded once: at a picosecond first, this would be a tie.
        check("2500.4ps", Some(3));
        check("0.0000000024999999999999999999999999999s", Some(2));
        check("0.0000000025000000000000000000000000001s", Some(3));
        check("1min", Some(60_000_000_000));
        check("0.1min", Some(6_000_000_000));
        check("-0.00000000001min", Some(-1));
        check("1.5", None);
        check("ms", None);
        check("1e3ms", None);
        check("5 parsecs", None);
        check("1-2", None);
        for large in ["99999999999999999999s", "4611686019s", "4611686018427387904", "146141y"] {
            check(large, None);
        }
        assert!("5000000000s".parse::<GivenTime>().is_err_and(|error| error.contains("beyond")));
    }

    #[test]
    fn decimals_are_exact() {
        let check = |text: &str, shift: i64, expected: Result<(i64, bool), BadNumber>| {
            assert_eq!(
                Decimal::parse(text.as_bytes()).and_then(|number| number.ticks(shift)),
                expected,
                "{text} {shift}"
            );
        };
        check("9.000000123456789012e6", 12, Err(BadNumber::OutOfRange));
        check("9.000000123456789012e5", 12, Ok((900_000_012_345_678_901, false)));
        check("4.500000123456789012e6", 12, Ok((4_500_000_123_456_789_012, true)));
        check("00000000000000000000000000000000000000000000012", 0, Ok((12, true)));
        check("0.000000000000000000000000000000000000000000012e45", 0, Ok((12, true)));
        check("12000000000000000000000000000000000000000000e-42", 0, Ok((12, true)));
        check("1e400", 0, Err(BadNumber::OutOfRange));
        check("1e-400", 0, Ok((0, false)));
        check("-1e-400", 0, Ok((0, false)));
        check("0e400", 0, Ok((0, true)));
        check("-0.0", 0, Ok((0, true)));
        check("1e99999999999999999999999", 0, Err(BadNumber::OutOfRange));
        check("1e-99999999999999999999999", 0, Ok((0, false)));
        check("4611686018427387903", 0, Ok((REACH.end - 1, true)));
        check("4611686018427387903.4", 0, Ok((REACH.end - 1, false)));
        check("4611686018427387903.5", 0, Err(BadNumber::OutOfRange));
        check("-4611686018427387904", 0, Ok((REACH.start, true)));
        check("-4611686018427387905", 0, Err(BadNumber::OutOfRange));
        check("9223372036854775808", 0, Err(BadNumber::OutOfRange));
        check("0.5", 0, Ok((0, false)));
        check("1.5", 0, Ok((2, false)));
        check("-2.5", 0, Ok((-2, false)));
        check("2.50000000000000000000000000000000000000000000000000000000000000001", 0, Ok((3, false)));
        check("0.05", 0, Ok((0, false)));
        check("0.95", 0, Ok((1, false)));
        for wrong in [
            "", "-", "+", ".", "-.", "1e", "1e+", "e5", ".e5", "1.2.3", "1e5.", "--1", "+-1", " 1", "1 ", "0x10",
            "1_0", "NaN", "nan", "inf", "Infinity", "1e5e5", "１",
        ] {
            check(wrong, 0, Err(BadNumber::NotANumber));
        }
    }

    /// Digits and exponents of any length, with many nines, zeros and fives.
    fn number() -> impl Strategy<Value = String> {
        ("[-+]?", "[0-9]{0,6}[059]{0,25}", "[0-9]{0,6}[059]{0,40}", prop::option::of(-40..25i32)).prop_map(
            |(sign, whole, fraction, exponent)| {
                let exponent = exponent.map(|exponent| format!("e{exponent}")).unwrap_or_default();
                format!("{sign}0{whole}.{fraction}{exponent}")
            },
        )
    }

    /// The naive way: all digits of both as numbers of one length, with the point moved by hand.
    fn naive(texts: &[&str], shift: i64) -> Option<(i64, bool)> {
        const BEHIND: usize = 120;
        let mut sum = vec![0i32; 300];
        for text in texts {
            let sign = if text.starts_with('-') { -1 } else { 1 };
            let text = text.trim_start_matches(['-', '+']);
            let (number, exponent) = text.split_once('e').unwrap_or((text, "0"));
            let (whole, fraction) = number.split_once('.').unwrap();
            let exponent = exponent.parse::<i64>().unwrap() + shift;
            for (at, digit) in whole.chars().chain(fraction.chars()).enumerate() {
                let place = whole.len() as i64 - 1 - at as i64 + exponent + BEHIND as i64;
                sum[place as usize] += sign * digit.to_digit(10).unwrap() as i32;
            }
        }
        let normal = |sum: &mut Vec<i32>| {
            let mut carry = 0;
            for digit in sum.iter_mut() {
                let value = *digit + carry;
                *digit = value.rem_euclid(10);
                carry = value.div_euclid(10);
            }
            carry
        };
        let negative = normal(&mut sum) < 0;
        if negative {
            sum.iter_mut().for_each(|digit| *digit = -*digit);
            normal(&mut sum);
            // Ten's complement of the complement: the borrow at the top is dropped.
        }
        let magnitude = sum[BEHIND..]
            .iter()
            .rev()
            .try_fold(0i128, |value, digit| value.checked_mul(10)?.checked_add(i128::from(*digit)))?;
        let next = sum[BEHIND - 1];
        let more = sum[..BEHIND - 1].iter().any(|digit| *digit != 0);
        let up = next > 5 || (next == 5 && (more || magnitude % 2 == 1));
        let value = magnitude + i128::from(up);
        in_reach(if negative { -value } else { value }).ok().map(|ticks| (ticks, next == 0 && !more))
    }

    proptest! {
        #[test]
        fn rounding_is_that_of_all_digits(text in number(), shift in -3..13i64) {
            let read = Decimal::parse(text.as_bytes()).unwrap().ticks(shift).ok();
            prop_assert_eq!(read, naive(&[&text], shift));
        }

        #[test]
        fn sums_are_rounded_once(start in number(), duration in number(), shift in -3..13i64) {
            let duration = duration.trim_start_matches('-');
            let (a, b) = (Decimal::parse(start.as_bytes()).unwrap(), Decimal::parse(duration.as_bytes()).unwrap());
            let expected = naive(&[&start, duration], shift);
            // One of them may be larger than any time.
            match a.ticks_of_sum(&b, shift) {
                Ok(sum) => prop_assert_eq!(Some(sum), expected),
                Err(_) => prop_assert!(expected.is_none() || a.scaled(shift).is_err() || b.scaled(shift).is_err()),
            }
            if let (Ok(text), Some(short)) = (long_sum(&a, &b, shift), a.short_sum(&b, shift)) {
                prop_assert_eq!(Decimal::parse(&text).unwrap().scaled(shift), Ok(short));
            }
        }

        #[test]
        fn sixfold_is_six_times(text in number()) {
            let number = Decimal::parse(text.as_bytes()).unwrap();
            let sixfold = number.sixfold();
            let expected = naive(&[&*text; 6], 0);
            prop_assert_eq!(Decimal::parse(&sixfold).unwrap().ticks(0).ok(), expected);
        }

        #[test]
        fn any_text_is_a_number_or_not(text in "[-+0-9.eE]{0,50}") {
            let number = Decimal::parse(text.as_bytes());
            let rust = text.parse::<f64>().ok();
            prop_assert_eq!(number.is_ok(), rust.is_some());
            let _ = number.and_then(|number| number.ticks(12));
        }
    }
}
