//! Seconds as they are written: decimals become whole units of 10^-21 s, exactly ([`crate::time`] reads them). Times of a clock are the
//! exception: they are doubles ([`clock`]).

use crate::time::Decimal;

/// A zeptosecond: fine enough for every digit of a double around a microsecond, and 10^17 seconds still fit.
const DIGITS: i64 = 21;

/// Units of a nanosecond.
pub(super) const PER_NANOSECOND: i128 = 1_000_000_000_000;

/// Units of a picosecond.
pub(super) const PER_PICOSECOND: i128 = 1_000_000_000;

/// The most that is taken: 10^15 seconds, beyond any clock.
const MOST: i128 = 10i128.pow(36);

/// A decimal number of seconds (`12`, `0.5`, `5.00679e-06`) in units of 10^-21 s, digits beyond that rounded half to even;
/// `None` when it is no finite number, or too large.
pub(super) fn seconds(text: &str) -> Option<i128> {
    let (value, _) = Decimal::parse(text.as_bytes()).ok()?.scaled(DIGITS).ok()?;
    (-MOST..=MOST).contains(&value).then_some(value)
}

/// A clock reading in seconds since some epoch. It was a double, and the file holds its shortest decimal form. For current
/// dates that form is up to 0.12 µs off the double, which would be visible in the difference of two. So this is the exact
/// value of the double.
pub(super) fn clock(text: &str) -> Option<i128> {
    let exact = seconds(text)?;
    let value: f64 = text.parse().ok()?;
    if !(EPOCH..1e12).contains(&value) {
        return Some(exact);
    }
    // The fraction of a number of this size has no more than 40 binary digits: every step is exact but the last.
    let fraction = (value.fract() * (1i64 << 40) as f64) as i128;
    let second = 10i128.pow(DIGITS as u32);
    Some(value.trunc() as i128 * second + crate::time::divide_half_even(fraction * second, 1 << 40))
}

/// Larger numbers of seconds are what a clock shows, smaller ones are durations: twelve days.
const EPOCH: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_exact() {
        let check = |text: &str, expected: Option<i128>| assert_eq!(seconds(text), expected, "{text}");
        check("1", Some(10i128.pow(21)));
        check("-0.5", Some(-5 * 10i128.pow(20)));
        check("5.00679e-06", Some(5_006_790 * PER_PICOSECOND));
        check("1795227399.731807", Some(1_795_227_399_731_807 * 10i128.pow(15)));
        check("2.2972832156345248e-05", Some(22_972_832_156_345_248));
        check("1e-22", Some(0));
        check("15e-22", Some(2));
        check("1.", Some(10i128.pow(21)));
        for wrong in ["", "NaN", "Infinity", "1e", "1e40", "1x", ".", "--1", "1.2.3", "1e99999999999", "1e400"] {
            check(wrong, None);
        }
        check("0e99999", Some(0));
        check("1e-400", Some(0));
        check("-0.0000000000000000000005000000000000000000000000000000000000000001", Some(-1));
    }

    #[test]
    fn clocks_are_doubles() {
        let check = |from: f64, to: f64| {
            let units = clock(&to.to_string()).unwrap_or(0) - clock(&from.to_string()).unwrap_or(0);
            assert!((units as f64 / 1e21 - (to - from)).abs() < 1e-15, "{from} {to}");
        };
        check(1_736_888_762.342_287_5, 1_736_888_762.346_064_8);
        check(1_701_028_366.423_161_7, 1_701_030_020.444_87);
        assert_eq!(clock("0.1"), seconds("0.1"));
        assert_eq!(clock("x"), None);
    }

    proptest! {
        #[test]
        fn doubles_come_back(value in 1e-9..1e9f64) {
            let units = seconds(&value.to_string()).expect("a decimal");
            prop_assert!((units as f64 / 1e21 - value).abs() <= value * 1e-15);
        }

        #[test]
        fn any_text_is_a_number_or_not(text in "[-+0-9.eE]{0,50}") {
            let _ = seconds(&text);
        }
    }
}
