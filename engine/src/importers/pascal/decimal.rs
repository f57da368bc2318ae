//! Seconds as they are written: decimals to whole units of 10^-21 s, exactly.

/// A zeptosecond: fine enough for every digit of a double around a microsecond, and 10^17 seconds still fit.
const DIGITS: i32 = 21;

/// Units of a nanosecond.
pub(super) const PER_NANOSECOND: i128 = 1_000_000_000_000;

/// Units of a picosecond.
pub(super) const PER_PICOSECOND: i128 = 1_000_000_000;

/// The most that is taken: 10^15 seconds, beyond any clock.
const MOST: i128 = 10i128.pow(36);

/// A decimal number of seconds (`12`, `0.5`, `5.00679e-06`) in units of 10^-21 s, digits beyond that rounded half to even;
/// `None` when it is no finite number, or too large.
pub(super) fn seconds(text: &str) -> Option<i128> {
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (number, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    if whole.len() + fraction.len() == 0 || !digits().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    // value · 10^shift units; digits that do not fit an i128 are beyond what rounding can see.
    let mut shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?.checked_add(DIGITS)?;
    let mut value: i128 = 0;
    for digit in digits() {
        match value < MOST {
            true => value = value * 10 + i128::from(digit - b'0'),
            false => shift = shift.checked_add(1)?,
        }
    }
    while shift > 0 && value != 0 {
        value = value.checked_mul(10).filter(|value| *value <= MOST)?;
        shift -= 1;
    }
    if shift < 0 {
        value = match 10i128.checked_pow(shift.unsigned_abs()) {
            Some(by) => crate::time::divide_half_even(value, by),
            None => 0,
        };
    }
    (value <= MOST).then_some(if negative { -value } else { value })
}

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
        for wrong in ["", "NaN", "Infinity", "1e", "1e40", "1x", ".", "--1", "1.2.3", "1e99999999999"] {
            check(wrong, None);
        }
        check("0e99999", Some(0));
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
