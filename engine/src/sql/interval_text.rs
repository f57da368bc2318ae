//! Texts of intervals as PostgreSQL (15) reads and shows them.
//!
//! Arrow (59) takes numbers with units only. The text gets these, in `INTERVAL '…'` when a statement is parsed and below a cast
//! when types are settled:
//!
//! ```text
//! 1 day 02:03:04.5     1 day 2 hours 3 minutes 4.5 seconds          1-2               1 years 2 months
//! 3 04:05              3 days 4 hours 5 minutes                     P1Y2M3DT4H5M6S    1 years 2 months 3 days 4 hours …
//! 12                   12 seconds                                   1d2h              1 d 2 h
//! @ 1 day 2 hours ago  -1 day -2 hours                              2 millennia       2000 years
//! ```

use std::borrow::Cow;

use datafusion::sql::sqlparser::ast::{DateTimeField, Expr, Interval, Value};

/// A number and its unit.
type Part = (String, String);

/// The text with units; one that is no interval as it is.
pub(super) fn with_units(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let is_plain = !text.contains([':', '@', '-']) && !text.starts_with('P') && is_spaced(text);
    // A number alone is seconds; a cast would take it for months.
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    if is_plain && !is_number && !text.ends_with("ago") && !text.contains("millen") {
        return Cow::Borrowed(text);
    }
    let parts = match text.strip_prefix('P') {
        Some(iso) => of_iso(iso),
        None => of_words(text.strip_prefix('@').unwrap_or(text)),
    };
    let Some(parts) = parts.filter(|parts| !parts.is_empty()) else { return Cow::Borrowed(text) };
    let written = parts.into_iter().map(|(number, unit)| match number.parse::<f64>() {
        Ok(many) if unit.starts_with("millen") => format!("{} years", many * 1000.0),
        _ => format!("{number} {unit}"),
    });
    Cow::Owned(written.collect::<Vec<_>>().join(" "))
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

/// Whether no unit stands at its number.
fn is_spaced(text: &str) -> bool {
    !text.as_bytes().windows(2).any(|pair| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic())
}

fn of_words(text: &str) -> Option<Vec<Part>> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let is_ago = words.last().is_some_and(|last| last.eq_ignore_ascii_case("ago"));
    if is_ago {
        words.pop();
    }
    let mut parts: Vec<Part> = vec![];
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        if let Some(several) = time(word).or_else(|| years_and_months(word)) {
            parts.extend(several);
        } else if is_number(word) {
            let unit = match words.peek() {
                Some(next) if next.contains(':') => "days",
                Some(next) if next.starts_with(|letter: char| letter.is_ascii_alphabetic()) => {
                    words.next().unwrap_or_default()
                }
                Some(_) => return None,
                None => "seconds",
            };
            parts.push((word.to_owned(), unit.to_owned()));
        } else {
            parts.extend(glued(word)?);
        }
    }
    if is_ago {
        for (number, _) in &mut parts {
            *number = negated(number);
        }
    }
    Some(parts)
}

fn is_number(word: &str) -> bool {
    word.ends_with(|digit: char| digit.is_ascii_digit() || digit == '.')
        && word.parse::<f64>().is_ok_and(f64::is_finite)
}

fn negated(number: &str) -> String {
    match number.strip_prefix('-') {
        Some(positive) => positive.to_owned(),
        None => format!("-{}", number.strip_prefix('+').unwrap_or(number)),
    }
}

/// `1d2h`: numbers at their units.
fn glued(word: &str) -> Option<Vec<Part>> {
    let mut parts = vec![];
    let mut rest = word;
    while !rest.is_empty() {
        let (number, behind) = rest.split_at(rest.find(|letter: char| letter.is_ascii_alphabetic())?);
        let end = behind.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        parts.push((is_number(number).then(|| number.to_owned())?, unit.to_owned()));
        rest = behind;
    }
    Some(parts)
}

/// What follows the `P` of ISO 8601: `1Y2M3DT4H5M6.5S`.
fn of_iso(text: &str) -> Option<Vec<Part>> {
    let (days, time) = text.split_once('T').unwrap_or((text, ""));
    let named = |text: &str, units: &[(&str, &str)]| -> Option<Vec<Part>> {
        let named = |(number, letter): Part| {
            let (_, unit) = units.iter().find(|(short, _)| *short == letter)?;
            Some((number, (*unit).to_owned()))
        };
        glued(text)?.into_iter().map(named).collect()
    };
    let mut parts = named(days, &[("Y", "years"), ("M", "months"), ("W", "weeks"), ("D", "days")])?;
    parts.extend(named(time, &[("H", "hours"), ("M", "minutes"), ("S", "seconds")])?);
    Some(parts)
}

/// `[-]Y-M`; its sign is that of both.
fn years_and_months(word: &str) -> Option<Vec<Part>> {
    let (sign, digits) = signed(word);
    let (years, months) = digits.split_once('-')?;
    let is_whole = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
    let is_pair = is_whole(years) && is_whole(months) && months.parse::<u8>().is_ok_and(|months| months < 12);
    let part = |digits: &str, unit: &str| (format!("{sign}{digits}"), unit.to_owned());
    is_pair.then(|| vec![part(years, "years"), part(months, "months")])
}

fn signed(word: &str) -> (&'static str, &str) {
    match word.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    }
}

/// `[-]HH:MM[:SS[.…]]`; its sign is that of all of them.
fn time(word: &str) -> Option<Vec<Part>> {
    let (sign, digits) = signed(word);
    let is_number = |part: &str, fraction: bool| {
        let whole = if fraction { part.split_once('.').map_or(part, |(whole, _)| whole) } else { part };
        let digits = part.strip_prefix(whole).and_then(|rest| rest.strip_prefix('.')).unwrap_or_default();
        !whole.is_empty() && whole.bytes().chain(digits.bytes()).all(|digit| digit.is_ascii_digit())
    };
    let below_60 =
        |part: &str| part.split('.').next().and_then(|whole| whole.parse::<u8>().ok()).is_some_and(|part| part < 60);
    let mut parts = digits.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next());
    let is_time = is_number(hours, false) && is_number(minutes, false) && below_60(minutes) && parts.next().is_none();
    if !is_time || !seconds.is_none_or(|seconds| is_number(seconds, true) && below_60(seconds)) {
        return None;
    }
    let units = [(Some(hours), "hours"), (Some(minutes), "minutes"), (seconds, "seconds")];
    let written = units.into_iter().filter_map(|(digits, unit)| Some((format!("{sign}{}", digits?), unit.to_owned())));
    Some(written.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_get_units() {
        for (text, expected) in [
            ("1 day 02:03:04.5", "1 day 02 hours 03 minutes 04.5 seconds"),
            ("-3 -04:05", "-3 days -04 hours -05 minutes"),
            ("2 hours ", "2 hours"),
            ("1 day ago", "-1 day"),
            ("@ 1 day -2 hours 03:04 ago", "-1 day 2 hours -03 hours -04 minutes"),
            ("1-2", "1 years 2 months"),
            ("-1-2 3 4:05:06", "-1 years -2 months 3 days 4 hours 05 minutes 06 seconds"),
            ("P1Y2M3W4DT5H6M7.5S", "1 years 2 months 3 weeks 4 days 5 hours 6 minutes 7.5 seconds"),
            ("P-1DT2H", "-1 days 2 hours"),
            ("P1H", "P1H"),
            ("1d2h", "1 d 2 h"),
            ("2 millennia", "2000 years"),
            ("1 day 5", "1 day 5"),
            ("1-13", "1-13"),
            ("2024-01-02", "2024-01-02"),
            (" -1.5 ", "-1.5 seconds"),
            ("1e400", "1e400"),
            ("1:2:3:4", "1:2:3:4"),
            ("10:61", "10:61"),
            ("a:b", "a:b"),
            (":", ":"),
        ] {
            assert_eq!(with_units(text), expected);
        }
    }
}
