//! Texts of DECIMALs, written with the digits that the type has: `1.005` for DECIMAL(5, 2) is `1.01`, `1e2` is `100`.
//!
//! Arrow (59) cuts some and refuses others. Numbers are rounded half away from zero, as PostgreSQL does.

use std::borrow::Cow;

use crate::sql::time_text::NONE;

/// Beyond it a number has no digits that a DECIMAL holds.
const EXPONENT: i64 = 1_000;

/// The number with `scale` digits behind the point. What is no number is refused by Arrow.
pub(super) fn with_scale(text: &str, scale: i8) -> Cow<'_, str> {
    Cow::Owned(rounded(text.trim(), scale.into()).unwrap_or_else(|| format!("{text}{NONE}")))
}

fn rounded(text: &str, scale: i64) -> Option<String> {
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    let (number, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, whole(exponent)?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let are_digits = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let digits = [whole, fraction].concat();
    let first = digits.find(|digit| digit != '0').unwrap_or(digits.len());
    // How many digits are kept.
    let kept = whole.len() as i64 + exponent + scale;
    let mut units: Vec<u8> = match usize::try_from(kept) {
        // The first digit that counts lies behind the last that is kept.
        Err(_) => vec![b'0'],
        _ if first == digits.len() => vec![b'0'],
        Ok(kept) if kept > EXPONENT as usize + digits.len() => return None,
        Ok(kept) => {
            let mut units: Vec<u8> = digits.bytes().chain(std::iter::repeat(b'0')).take(kept).collect();
            if digits.as_bytes().get(kept).is_some_and(|next| *next >= b'5') {
                let place = units.iter().rposition(|digit| *digit != b'9');
                let carried = place.map_or(0, |place| place + 1);
                units[carried..].fill(b'0');
                match place {
                    Some(place) => units[place] += 1,
                    None => units.insert(0, b'1'),
                }
            }
            units
        }
    };
    let behind = usize::try_from(scale).unwrap_or(0);
    if units.len() <= behind {
        let missing = behind + 1 - units.len();
        units.splice(0..0, std::iter::repeat_n(b'0', missing));
    }
    units.extend(std::iter::repeat_n(b'0', usize::try_from(-scale).unwrap_or(0)));
    let units = String::from_utf8(units).ok()?;
    let (before, behind) = units.split_at(units.len() - behind);
    let before = match before.trim_start_matches('0') {
        "" => "0",
        before => before,
    };
    let point = if behind.is_empty() { "" } else { "." };
    Some(format!("{sign}{before}{point}{behind}"))
}

/// An exponent, which has a sign and digits; one that is far too large is as good as another.
fn whole(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let far = if text.starts_with('-') { -1_000_000_000 } else { 1_000_000_000 };
    Some(text.parse::<i64>().unwrap_or(far).clamp(-1_000_000_000, 1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_half_away_from_zero() {
        for (text, scale, expected) in [
            ("1.005", 2, "1.01"),
            ("-1.005", 2, "-1.01"),
            ("1.0049999999999999999999999", 2, "1.00"),
            ("1e2", 0, "100"),
            ("1E-2", 3, "0.010"),
            ("+12.5e1", 1, "125.0"),
            ("9.995", 2, "10.00"),
            ("999", 0, "999"),
            ("0.5", 0, "1"),
            ("0.05", 0, "0"),
            ("0.049", 1, "0.0"),
            (".5", 1, "0.5"),
            ("5.", 1, "5.0"),
            (" 7 ", 0, "7"),
            ("12355", -2, "12400"),
            ("49", -2, "0"),
            ("1e-1000000000000", 2, "0.00"),
            ("0e1000000000000", 2, "0.00"),
            ("1e1000000000000", 2, "1e1000000000000 ?"),
            ("00000000000000000000000000000000000000000001", 0, "1"),
            ("", 0, " ?"),
            ("-", 0, "- ?"),
            (".", 0, ". ?"),
            ("1e", 0, "1e ?"),
            ("1e2.5", 0, "1e2.5 ?"),
            ("1 2", 0, "1 2 ?"),
            ("--1", 0, "--1 ?"),
            ("nan", 0, "nan ?"),
            ("\u{663}", 0, "\u{663} ?"),
        ] {
            assert_eq!(with_scale(text, scale), expected, "{text:?}");
        }
    }
}
