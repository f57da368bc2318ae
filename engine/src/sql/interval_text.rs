//! Texts of intervals as PostgreSQL (15) reads and shows them.
//!
//! Arrow (59) takes numbers with units only, and a number without one for months. Texts become months, days and seconds, in `INTERVAL '…'`
//! when a statement is parsed and below a cast when types are settled:
//!
//! ```text
//! 1 day 02:03:04.5     1 days 7384.5 seconds         1-2               14 months
//! 3 04:05              3 days 14700 seconds          P1Y2M3DT4H5M6S    14 months 3 days 14706 seconds
//! 1 day 12             1 days 12 seconds             1d2h              1 days 7200 seconds
//! @ 1 day 2 hours ago  -1 days -7200 seconds         1.5 months        1 months 15 days
//! ```

use std::borrow::Cow;

use datafusion::sql::sqlparser::ast::{DateTimeField, Expr, Interval, Value};

use crate::sql::time_text::NONE;

/// The text as months, days and seconds. What is no interval is refused by Arrow.
pub(super) fn with_units(text: &str) -> Cow<'_, str> {
    let parts = match text.trim().strip_prefix('P') {
        Some(iso) => of_iso(iso),
        None => of_words(text),
    };
    Cow::Owned(parts.and_then(Parts::written).unwrap_or_else(|| format!("{text}{NONE}")))
}

/// Whether the text of `INTERVAL '1 02:03' DAY TO MINUTE` tells by its form what it is of.
pub(super) fn says_its_fields(interval: &Interval) -> bool {
    use DateTimeField::{Day, Hour, Minute, Month, Second, Year};
    let text = match interval.value.as_ref() {
        Expr::Value(literal) => match &literal.value {
            Value::SingleQuotedString(text) => text,
            _ => return false,
        },
        _ => return false,
    };
    match (&interval.leading_field, &interval.last_field) {
        (Some(Year), Some(Month)) => years_and_months(text.trim()).is_some(),
        (Some(Day | Hour), Some(Minute | Second)) => {
            text.split_whitespace().last().is_some_and(|word| time(word).is_some())
        }
        _ => false,
    }
}

/// Digits behind the point that count.
const DIGITS: usize = 18;
const ONE: i128 = 1_000_000_000_000_000_000;
const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;

/// A number with its fraction, in parts of [`ONE`]; both have its sign.
#[derive(Debug, Clone, Copy)]
struct Number {
    whole: i128,
    fraction: i128,
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Months(i128),
    Days(i128),
    Nanoseconds(i128),
}

const UNITS: [(&[&str], Unit); 13] = [
    (&["millennium", "millennia", "mil", "mils"], Unit::Months(12_000)),
    (&["century", "centuries", "c", "cent", "cents"], Unit::Months(1_200)),
    (&["decade", "decades", "dec", "decs"], Unit::Months(120)),
    (&["year", "years", "y", "yr", "yrs"], Unit::Months(12)),
    (&["month", "months", "mon", "mons"], Unit::Months(1)),
    (&["week", "weeks", "w"], Unit::Days(7)),
    (&["day", "days", "d"], Unit::Days(1)),
    (&["hour", "hours", "h", "hr", "hrs"], Unit::Nanoseconds(3_600 * SECOND)),
    (&["minute", "minutes", "m", "min", "mins"], Unit::Nanoseconds(60 * SECOND)),
    (&["second", "seconds", "s", "sec", "secs"], Unit::Nanoseconds(SECOND)),
    (&["millisecond", "milliseconds", "ms", "msec", "msecs", "msecond", "mseconds"], Unit::Nanoseconds(1_000_000)),
    (&["microsecond", "microseconds", "us", "usec", "usecs", "usecond", "useconds"], Unit::Nanoseconds(1_000)),
    (&["nanosecond", "nanoseconds"], Unit::Nanoseconds(1)),
];

fn unit_called(word: &str) -> Option<Unit> {
    UNITS.iter().find(|(names, _)| names.contains(&word)).map(|(_, unit)| *unit)
}

/// The sum of the numbers of a text; each unit stands there once.
#[derive(Debug, Default)]
struct Parts {
    months: i128,
    days: i128,
    nanoseconds: i128,
    seen: Vec<Unit>,
}

impl Parts {
    fn add(&mut self, number: Number, unit: Unit) -> Option<()> {
        if self.seen.contains(&unit) {
            return None;
        }
        self.seen.push(unit);
        let Number { whole, fraction } = number;
        match unit {
            Unit::Months(1) => {
                self.months += whole;
                let days = fraction * 30;
                self.days += days / ONE;
                self.nanoseconds += rounded(days % ONE * DAY, ONE);
            }
            Unit::Months(many) => self.months += whole.checked_mul(many)? + half_even(fraction * many, ONE),
            Unit::Days(many) => {
                let days = fraction * many;
                self.days += whole.checked_mul(many)? + days / ONE;
                self.nanoseconds += rounded(days % ONE * DAY, ONE);
            }
            Unit::Nanoseconds(many) => self.nanoseconds += whole.checked_mul(many)? + rounded(fraction * many, ONE),
        }
        Some(())
    }

    fn written(self) -> Option<String> {
        if self.seen.is_empty() {
            return None;
        }
        let (months, days) = (i32::try_from(self.months).ok()?, i32::try_from(self.days).ok()?);
        let nanoseconds = i64::try_from(self.nanoseconds).ok()?;
        let (sign, size) = (if nanoseconds < 0 { "-" } else { "" }, nanoseconds.unsigned_abs());
        Some(format!("{months} months {days} days {sign}{}.{:09} seconds", size / 1_000_000_000, size % 1_000_000_000))
    }
}

/// A quotient, rounded half away from zero.
fn rounded(value: i128, by: i128) -> i128 {
    (value + value.signum() * by / 2) / by
}

/// A quotient, rounded half to even, as PostgreSQL rounds months.
fn half_even(value: i128, by: i128) -> i128 {
    let (whole, rest) = (value / by, (value % by).abs() * 2);
    let is_up = rest > by || (rest == by && whole % 2 != 0);
    whole + i128::from(is_up) * value.signum()
}

fn number(digits: &str) -> Option<Number> {
    let (sign, digits) = signed(digits);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let are_digits = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) || (whole.is_empty() && fraction.is_empty()) || whole.len() > 19 {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(DIGITS)];
    let parsed = |part: &str| if part.is_empty() { Some(0) } else { part.parse::<i128>().ok() };
    let scaled = parsed(fraction)? * 10_i128.pow((DIGITS - fraction.len()) as u32);
    let sign = if sign == "-" { -1 } else { 1 };
    Some(Number { whole: sign * parsed(whole)?, fraction: sign * scaled })
}

/// Numbers and their units in words, from the last to the first: a number without a unit has that of what stands behind it.
fn of_words(text: &str) -> Option<Parts> {
    let lower = text.to_ascii_lowercase();
    let mut words = words(&lower)?;
    let is_ago = words.pop_if(|last| *last == "ago").is_some();
    if words.iter().any(|word| ["-", "+"].contains(word)) {
        let joined = lower.replace("- ", "-").replace("+ ", "+");
        return if joined == lower { None } else { of_words(&joined) };
    }
    let (mut parts, mut unit, mut is_used) = (Parts::default(), Unit::Nanoseconds(SECOND), true);
    for word in words.into_iter().rev() {
        if word.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            if !is_used {
                return None;
            }
            (unit, is_used) = (unit_called(word)?, false);
        } else if word.contains(':') {
            if !is_used {
                return None;
            }
            for (number, unit) in time(word)? {
                parts.add(number, unit)?;
            }
            unit = Unit::Days(1);
        } else if let Some(months) = years_and_months(word) {
            parts.add(Number { whole: months, fraction: 0 }, Unit::Months(1))?;
            unit = Unit::Months(1);
        } else {
            parts.add(number(word)?, unit)?;
            is_used = true;
        }
    }
    if is_ago {
        parts.months = -parts.months;
        parts.days = -parts.days;
        parts.nanoseconds = -parts.nanoseconds;
    }
    is_used.then_some(parts)
}

/// Numbers with their signs, times, and what is written in letters, at one another or apart.
fn words(text: &str) -> Option<Vec<&str>> {
    let is_space = |letter: char| letter.is_ascii_whitespace() || letter == ',' || letter == '@';
    let is_letter = |letter: char| letter.is_ascii_alphabetic();
    let mut words = vec![];
    let mut rest = text.trim_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let is_end = |letter: char| {
            is_space(letter)
                || match is_letter(first) {
                    true => !is_letter(letter),
                    false => is_letter(letter) || letter == '+',
                }
        };
        if !first.is_ascii() {
            return None;
        }
        // What begins with a sign goes on behind it.
        let end = rest[1..].find(is_end).map_or(rest.len(), |end| end + 1);
        words.push(&rest[..end]);
        rest = rest[end..].trim_start_matches(is_space);
    }
    Some(words)
}

/// What follows the `P` of ISO 8601: `1Y2M3DT4H5M6.5S`, `1-2-3T04:05:06`.
fn of_iso(text: &str) -> Option<Parts> {
    let (days, clock) = text.trim_end().split_once('T').unwrap_or((text.trim_end(), ""));
    let mut parts = Parts::default();
    let mut counted = |text: &str, units: &[(char, Unit)]| -> Option<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|letter: char| letter.is_ascii_alphabetic())?;
            let letter = rest[end..].chars().next()?;
            let (_, unit) = units.iter().find(|(name, _)| *name == letter)?;
            parts.add(number(&rest[..end])?, *unit)?;
            rest = &rest[end + 1..];
        }
        Some(())
    };
    let minus = days.trim_start_matches('-').contains('-');
    if minus && !days.contains(|letter: char| letter.is_ascii_alphabetic()) {
        let numbers: Vec<&str> = days.splitn(3, '-').collect();
        for (digits, letter) in numbers.into_iter().zip(["Y", "M", "D"]) {
            counted(&format!("{digits}{letter}"), &DATE)?;
        }
    } else {
        counted(days, &DATE)?;
    }
    if clock.contains(':') {
        for (number, unit) in time(clock)? {
            parts.add(number, unit)?;
        }
    } else {
        counted(clock, &CLOCK)?;
    }
    Some(parts)
}

const DATE: [(char, Unit); 4] =
    [('Y', Unit::Months(12)), ('M', Unit::Months(1)), ('W', Unit::Days(7)), ('D', Unit::Days(1))];
const CLOCK: [(char, Unit); 3] =
    [('H', Unit::Nanoseconds(3_600 * SECOND)), ('M', Unit::Nanoseconds(60 * SECOND)), ('S', Unit::Nanoseconds(SECOND))];

/// The months of `[-]Y-M`; its sign is that of both.
fn years_and_months(word: &str) -> Option<i128> {
    let (sign, digits) = signed(word);
    let (years, months) = digits.split_once('-')?;
    let is_whole = |part: &str| (1..10).contains(&part.len()) && part.bytes().all(|digit| digit.is_ascii_digit());
    if !is_whole(years) || !is_whole(months) {
        return None;
    }
    let months = months.parse::<i128>().ok().filter(|months| *months < 12)?;
    let months = years.parse::<i128>().ok()? * 12 + months;
    Some(if sign == "-" { -months } else { months })
}

fn signed(word: &str) -> (&'static str, &str) {
    match word.strip_prefix('-') {
        Some(digits) => ("-", digits.trim_start()),
        None => ("", word.strip_prefix('+').unwrap_or(word).trim_start()),
    }
}

/// `[-]HH:MM[:SS[.…]]`, and `MM:SS.…`; its sign is that of all of them.
fn time(word: &str) -> Option<Vec<(Number, Unit)>> {
    let (sign, digits) = signed(word);
    let below_60 =
        |part: &str| part.split('.').next().and_then(|whole| whole.parse::<u8>().ok()).is_some_and(|part| part < 60);
    let parts: Vec<&str> = digits.split(':').collect();
    let (hours, minutes, seconds) = match parts.as_slice() {
        [minutes, seconds] if seconds.contains('.') => ("0", *minutes, *seconds),
        [hours, minutes] => (*hours, *minutes, "0"),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return None,
    };
    let is_whole = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
    if !is_whole(hours) || !is_whole(minutes) || !below_60(minutes) || !below_60(seconds) {
        return None;
    }
    let units = [3_600 * SECOND, 60 * SECOND, SECOND].map(Unit::Nanoseconds);
    let numbers = [hours, minutes, seconds].map(|digits| number(&format!("{sign}{digits}")));
    numbers.into_iter().zip(units).map(|(number, unit)| Some((number?, unit))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_postgresql_does() {
        for (text, expected) in [
            ("1 day 02:03:04.5", "0 months 1 days 7384.500000000 seconds"),
            ("-3 -04:05", "0 months -3 days -14700.000000000 seconds"),
            ("2 hours ", "0 months 0 days 7200.000000000 seconds"),
            ("1 day, 2 hours", "0 months 1 days 7200.000000000 seconds"),
            ("1 day ago", "0 months -1 days 0.000000000 seconds"),
            ("@ 1 day -2 hours 03:04 ago", "@ 1 day -2 hours 03:04 ago ?"),
            ("@ 1 day -2 months 03:04 ago", "2 months -1 days -11040.000000000 seconds"),
            ("1-2", "14 months 0 days 0.000000000 seconds"),
            ("-1-2 3 4:05:06", "-14 months 3 days 14706.000000000 seconds"),
            ("P1Y2M3W4DT5H6M7.5S", "14 months 25 days 18367.500000000 seconds"),
            ("P-1DT2H", "0 months -1 days 7200.000000000 seconds"),
            ("P1-2-3T4:5:6", "14 months 3 days 14706.000000000 seconds"),
            ("P1H", "P1H ?"),
            ("P", "P ?"),
            ("1d2h", "0 months 1 days 7200.000000000 seconds"),
            ("1day-2hours", "0 months 1 days -7200.000000000 seconds"),
            ("2 millennia", "24000 months 0 days 0.000000000 seconds"),
            ("1 day 12", "0 months 1 days 12.000000000 seconds"),
            ("1 5", "1 5 ?"),
            ("day 5", "day 5 ?"),
            ("day", "day ?"),
            ("1.5 years", "18 months 0 days 0.000000000 seconds"),
            ("1.55 months", "1 months 16 days 43200.000000000 seconds"),
            ("1.99 years", "24 months 0 days 0.000000000 seconds"),
            ("-0.5 day", "0 months 0 days -43200.000000000 seconds"),
            ("04:05.5", "0 months 0 days 245.500000000 seconds"),
            ("- 1 day", "0 months -1 days 0.000000000 seconds"),
            ("+1 day", "0 months 1 days 0.000000000 seconds"),
            ("1-13", "1-13 ?"),
            ("2024-01-02", "2024-01-02 ?"),
            (" -1.5 ", "0 months 0 days -1.500000000 seconds"),
            ("1e400", "1e400 ?"),
            ("1:2:3:4", "1:2:3:4 ?"),
            ("10:61", "10:61 ?"),
            ("1 day 2 days", "1 day 2 days ?"),
            ("99999999999 days", "99999999999 days ?"),
            ("a:b", "a:b ?"),
            (":", ": ?"),
            ("", " ?"),
            ("\u{661} day", "\u{661} day ?"),
            ("infinity", "infinity ?"),
        ] {
            assert_eq!(with_units(text), expected, "{text:?}");
        }
    }
}
