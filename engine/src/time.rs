//! Times as people write them: `1.5ms`, `300us`, `2 s`, bare ticks. Decimals are exact, they never pass through a float.

use tq_udfs::ticks::Tick;

/// Times in ticks beyond ±146 years are damage: of all others, any two have a difference.
pub(crate) const REACH: std::ops::Range<i64> = -(1 << 62)..1 << 62;

/// A time given on the command line, before the session's tick is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenTime {
    /// A bare number: ticks.
    Ticks(i64),
    /// A number with a unit.
    Picoseconds(i128),
}

impl GivenTime {
    /// In ticks, rounded half to even where the tick is coarser.
    pub fn ticks(self, tick: Tick) -> Option<i64> {
        match self {
            GivenTime::Ticks(ticks) => Some(ticks),
            GivenTime::Picoseconds(picoseconds) => {
                let per_tick = i128::from(1_000 / tick.per_nanosecond());
                i64::try_from(divide_half_even(picoseconds, per_tick)).ok()
            }
        }
    }
}

impl std::str::FromStr for GivenTime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let help = || format!("`{text}` is no time; write it like `1.5ms`, `300us`, `2s`, or as bare ticks");
        let text = text.trim();
        let unit_at =
            text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_'))).unwrap_or(text.len());
        let (number, unit) = (text[..unit_at].replace('_', ""), text[unit_at..].trim());
        if unit.is_empty() {
            return number.parse().map(GivenTime::Ticks).map_err(|_| help());
        }
        let exponent = match unit {
            "ps" => 0,
            "ns" => 3,
            "us" | "µs" | "μs" => 6,
            "ms" => 9,
            "s" => 12,
            "min" => {
                return scaled_decimal(&number, 12)
                    .and_then(|s| s.checked_mul(60))
                    .map(GivenTime::Picoseconds)
                    .ok_or_else(help);
            }
            _ => return Err(help()),
        };
        scaled_decimal(&number, exponent).map(GivenTime::Picoseconds).ok_or_else(help)
    }
}

/// A decimal times 10^`exponent`, rounded half to even; `None` when it is no decimal or does not fit.
fn scaled_decimal(number: &str, exponent: u32) -> Option<i128> {
    let (negative, digits) = match number.as_bytes().first()? {
        b'-' => (true, &number[1..]),
        b'+' => (false, &number[1..]),
        _ => (false, number),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !(all_digits(whole) && all_digits(fraction)) || whole.len() + fraction.len() == 0 || fraction.len() > 30 {
        return None;
    }
    let unscaled: i128 = format!("{whole}{fraction}").parse().ok()?;
    let fraction_digits = fraction.len() as u32;
    let value = if fraction_digits <= exponent {
        unscaled.checked_mul(10i128.checked_pow(exponent - fraction_digits)?)?
    } else {
        divide_half_even(unscaled, 10i128.checked_pow(fraction_digits - exponent)?)
    };
    Some(if negative { -value } else { value })
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
        check("1min", Some(60_000_000_000));
        check("1.5", None);
        check("ms", None);
        check("1e3ms", None);
        check("5 parsecs", None);
        check("99999999999999999999s", None);
    }
}
