//! Texts of dates and times as PostgreSQL (15) reads them, written as Arrow (59) does.
//!
//! ```text
//! 2024-1-5 · 20240105 · 1/5/2024 · Jan 5, 2024 · 5-Jan-2024       2024-01-05
//! 2024-01-01 10:00 · 20240101T100000 · 2024-01-01 10:00 AM        2024-01-01T10:00:00
//! 2024-01-01 24:00                                                2024-01-02T00:00:00
//! 2024-01-01 00:00:00+02                                          2024-01-01T00:00:00, as a moment 2023-12-31T22:00:00Z
//! 10 · 2024-13-01 · infinity                                      no time: what Arrow does not read either
//! ```

use std::borrow::Cow;

use datafusion::arrow::array::timezone::Tz;

use crate::sql::calendar::{date_of_days, days_of_date, days_of_month};
use crate::sql::zones;

/// Stands behind a text that is no time or interval, so that Arrow does not read it in its own way; errors leave it out.
pub(super) const NONE: &str = " ?";

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// What a text says.
#[derive(Debug, Default)]
struct Written {
    /// Year, month, day.
    date: Option<(i64, u32, u32)>,
    /// Nanoseconds since midnight; `24:00` is a day.
    time: Option<i64>,
    zone: Option<Zone>,
}

#[derive(Debug)]
enum Zone {
    /// Seconds ahead of UTC.
    Ahead(i64),
    Called(Tz),
}

pub(super) fn date(text: &str) -> Cow<'_, str> {
    let plain = |text: &str| {
        let date = read(text)?.date?;
        Some(shown_date(date))
    };
    let is_plain = matches!(text.as_bytes(), [_, _, _, _, b'-', _, _, b'-', _, _]);
    if is_plain { Cow::Borrowed(text) } else { or_none(text, plain(text)) }
}

pub(super) fn timestamp(text: &str) -> Cow<'_, str> {
    let plain = |text: &str| {
        let written = read(text)?;
        Some(shown(written.date?, written.time.unwrap_or_default()))
    };
    if is_plain(text, "") { Cow::Borrowed(text) } else { or_none(text, plain(text)) }
}

/// A time with a zone, in UTC.
pub(super) fn moment(text: &str) -> Cow<'_, str> {
    let plain = |text: &str| {
        let written = read(text)?;
        let (date, time) = (written.date?, written.time.unwrap_or_default());
        let zone = match written.zone {
            None => Zone::Ahead(0),
            Some(zone) => zone,
        };
        match zone {
            Zone::Ahead(seconds) => {
                let (year, month, day) = date;
                let time = time - seconds * SECOND;
                let (days, time) = (days_of_date(year, month, day) + time.div_euclid(DAY), time.rem_euclid(DAY));
                Some(format!("{}Z", shown(date_of_days(days), time)))
            }
            Zone::Called(zone) => {
                let (year, month, day) = date;
                let local = days_of_date(year, month, day).checked_mul(DAY)?.checked_add(time)?;
                let moment = zones::moment_of(local, &zone)?;
                Some(format!("{}Z", shown(date_of_days(moment.div_euclid(DAY)), moment.rem_euclid(DAY))))
            }
        }
    };
    if is_plain(text, "Z") { Cow::Borrowed(text) } else { or_none(text, plain(text)) }
}

pub(super) fn time(text: &str) -> Cow<'_, str> {
    let plain = |text: &str| {
        let is_number = text.trim().bytes().all(|digit| digit.is_ascii_digit() || digit == b'.');
        if is_number {
            return digits_of_time(text.trim()).filter(|time| *time < DAY).map(shown_time);
        }
        let written = read(text)?;
        written.time.filter(|time| *time < DAY).map(shown_time)
    };
    or_none(text, plain(text))
}

fn or_none(text: &str, plain: Option<String>) -> Cow<'_, str> {
    Cow::Owned(plain.unwrap_or_else(|| format!("{text}{NONE}")))
}

/// Whether a text is `2024-01-01T10:00:00[.…]` with this behind it.
fn is_plain(text: &str, behind: &str) -> bool {
    let Some(text) = text.strip_suffix(behind) else { return false };
    let bytes = text.as_bytes();
    let is_date = matches!(bytes, [_, _, _, _, b'-', _, _, b'-', _, _, b' ' | b'T', _, _, b':', _, _, b':', s, t, ..] if
        *s < b'6' && t.is_ascii_digit());
    let fraction = bytes.get(19..).unwrap_or_default();
    is_date
        && &bytes[11..13] < b"24".as_slice()
        && (fraction.is_empty()
            || fraction[0] == b'.'
                && (2..=10).contains(&fraction.len())
                && fraction[1..].iter().all(u8::is_ascii_digit))
}

fn shown_date((year, month, day): (i64, u32, u32)) -> String {
    let sign = if year > 9999 { "+" } else { "" };
    format!("{sign}{year:04}-{month:02}-{day:02}")
}

fn shown_time(time: i64) -> String {
    let (seconds, fraction) = (time / SECOND, time % SECOND);
    format!("{:02}:{:02}:{:02}.{fraction:09}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

fn shown((year, month, day): (i64, u32, u32), time: i64) -> String {
    let date = date_of_days(days_of_date(year, month, day) + time / DAY);
    format!("{}T{}", shown_date(date), shown_time(time % DAY))
}

/// Years that days are counted with: beyond them no type holds a date.
const YEARS: std::ops::RangeInclusive<i64> = 1..=5_874_897;

fn valid(year: i64, month: u32, day: u32) -> Option<(i64, u32, u32)> {
    let is_valid =
        YEARS.contains(&year) && (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
    is_valid.then_some((year, month, day))
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

fn month_called(word: &str) -> Option<u32> {
    let is_short = |name: &str| word == &name[..3] || (word == "sept" && name == "september");
    let at = MONTHS.iter().position(|name| *name == word || is_short(name))?;
    u32::try_from(at + 1).ok()
}

fn is_day_of_week(word: &str) -> bool {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    DAYS.iter().any(|day| *day == word || word == &day[..3]) || ["tues", "thur", "thurs", "weds"].contains(&word)
}

/// Parts of a date that is not written in one word.
#[derive(Debug, Default)]
struct Parts {
    month: Option<u32>,
    /// As it is written: the day comes first, unless this is longer.
    numbers: Vec<String>,
}

impl Parts {
    fn date(&self) -> Option<(i64, u32, u32)> {
        let [first, second] = self.numbers.as_slice() else { return None };
        let (day, year) = if first.len() > 2 { (second, first) } else { (first, second) };
        (day.len() <= 2).then_some(())?;
        valid(year_of(year)?, self.month?, day.parse().ok()?)
    }
}

/// A year of two digits lies between 1970 and 2069.
fn year_of(digits: &str) -> Option<i64> {
    let year: i64 = digits.parse().ok()?;
    Some(match digits.len() {
        1 | 2 if year < 70 => year + 2000,
        1 | 2 => year + 1900,
        _ => year,
    })
}

fn read(text: &str) -> Option<Written> {
    let text = text.trim();
    let is_known = text.is_ascii() && text.len() < 128;
    let lower = is_known.then(|| text.to_ascii_lowercase())?;
    let (mut written, mut parts) = (Written::default(), Parts::default());
    if lower == "epoch" {
        written.date = Some((1970, 1, 1));
        return Some(written);
    }
    let mut rest = lower.as_str();
    while !rest.is_empty() {
        let separators = rest.len() - rest.trim_start_matches([' ', ',', '\t', '\n']).len();
        let is_separated = separators > 0;
        rest = &rest[separators..];
        let Some(first) = rest.bytes().next() else { break };
        // The `T` between a date and a time.
        if first == b't' && written.date.is_some() && rest[1..].starts_with(|digit: char| digit.is_ascii_digit()) {
            rest = &rest[1..];
            let (word, behind) = rest.split_at(end_of_number(rest, ":."));
            written.time = Some(if word.contains(':') { clock(word)? } else { digits_of_time(word)? });
            rest = behind;
            continue;
        }
        if first == b'+' || first == b'-' {
            // What is ahead of UTC stands behind a time.
            let end = 1 + end_of_number(&rest[1..], ":");
            if written.time.is_none() || written.zone.is_some() {
                return None;
            }
            written.zone = Some(Zone::Ahead(offset(&rest[..end])?));
            rest = &rest[end..];
            continue;
        }
        if first.is_ascii_digit() {
            let end = end_of_number(rest, ":.");
            let (word, behind) = rest.split_at(end);
            if word.contains(':') {
                if written.time.is_some() {
                    return None;
                }
                written.time = Some(clock(word)?);
                rest = behind;
                continue;
            }
            let is_joined = behind.starts_with(['-', '/']);
            if is_joined && written.date.is_none() {
                let end = rest.find([' ', ',']).unwrap_or(rest.len());
                // The `T` of a time ends the date, and so does a second sign.
                let end = rest[..end].find('t').filter(|at| is_end_of_date(rest, *at)).unwrap_or(end);
                let (word, behind) = rest.split_at(end);
                written.date = Some(joined(word)?);
                rest = behind;
                continue;
            }
            number(word, &mut written, &mut parts)?;
            rest = behind;
            continue;
        }
        if !first.is_ascii_alphabetic() {
            return None;
        }
        let end = rest.find([' ', ',']).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        // `Jan-5-2024`
        if let Some((month, numbers)) = word.split_once(['-', '/'])
            && month_called(month).is_some()
            && written.date.is_none()
        {
            written.date = Some(joined(&format!("{month}-{}", numbers.replace('/', "-")))?);
            rest = behind;
            continue;
        }
        if let Some(month) = month_called(word) {
            if parts.month.replace(month).is_some() {
                return None;
            }
        } else if word == "am" || word == "pm" {
            written.time = Some(of_half_day(written.time?, word == "pm")?);
        } else if word == "allballs" && written.time.is_none() {
            written.time = Some(0);
        } else if word == "z" || word == "utc" || word == "gmt" || word == "zulu" {
            let is_zone = written.time.is_some() || written.date.is_some();
            if !is_zone || written.zone.replace(Zone::Ahead(0)).is_some() {
                return None;
            }
        } else if !(is_day_of_week(word) || word == "ad") {
            // The names of zones have capital letters.
            let at = lower.len() - rest.len();
            let zone: Tz = text[at..at + end].parse().ok()?;
            let is_zone = is_separated && (written.time.is_some() || written.date.is_some());
            if !is_zone || written.zone.replace(Zone::Called(zone)).is_some() {
                return None;
            }
        }
        rest = behind;
    }
    if parts.month.is_some() || !parts.numbers.is_empty() {
        if written.date.is_some() {
            return None;
        }
        written.date = Some(parts.date()?);
    }
    (written.date.is_some() || written.time.is_some()).then_some(written)
}

fn is_end_of_date(text: &str, at: usize) -> bool {
    let is_digit = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
    at > 0 && is_digit(at - 1) && is_digit(at + 1)
}

/// Where digits, and these signs between them, end.
fn end_of_number(text: &str, signs: &str) -> usize {
    text.find(|letter: char| !letter.is_ascii_digit() && !signs.contains(letter)).unwrap_or(text.len())
}

/// A number that stands alone: a date, a time behind a date, or a part of a date with the name of its month.
fn number(digits: &str, written: &mut Written, parts: &mut Parts) -> Option<()> {
    let whole = digits.split('.').next().unwrap_or_default();
    let is_date = whole == digits && written.date.is_none() && parts.month.is_none() && parts.numbers.is_empty();
    match digits.len() {
        8 if is_date => {
            let (month, day) = (digits[4..6].parse().ok()?, digits[6..].parse().ok()?);
            written.date = Some(valid(digits[..4].parse().ok()?, month, day)?);
        }
        _ if written.date.is_some() && written.time.is_none() => written.time = Some(digits_of_time(digits)?),
        1..=7 if whole == digits && written.date.is_none() && parts.numbers.len() < 2 => {
            parts.numbers.push(digits.to_owned());
        }
        _ => return None,
    }
    Some(())
}

/// `2024-1-5`, `1/5/2024`, `5-Jan-2024`, `2024-Jan-5`, `Jan-5-2024`.
fn joined(word: &str) -> Option<(i64, u32, u32)> {
    let sign = if word.contains('/') { '/' } else { '-' };
    let parts: Vec<&str> = word.split(sign).collect();
    let [first, second, third] = parts.as_slice() else { return None };
    let small = |part: &str| (part.len() <= 2).then(|| part.parse::<u32>().ok()).flatten();
    if let Some(month) = month_called(second) {
        return match first.len() {
            0..=2 => valid(year_of(third)?, month, small(first)?),
            _ => valid(year_of(first)?, month, small(third)?),
        };
    }
    if let Some(month) = month_called(first) {
        return valid(year_of(third)?, month, small(second)?);
    }
    match first.len() {
        0..=2 => valid(year_of(third)?, small(first)?, small(second)?),
        _ => valid(year_of(first)?, small(second)?, small(third)?),
    }
}

/// `HH:MM[:SS[.…]]`, up to 24:00:00.
fn clock(word: &str) -> Option<i64> {
    let mut parts = word.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next().unwrap_or("0"));
    let small = |part: &str| (part.len() <= 2).then(|| part.parse::<i64>().ok()).flatten();
    if parts.next().is_some() {
        return None;
    }
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    time_of(small(hours)?, small(minutes)?, small(seconds)?, fraction)
}

/// `HHMM[SS[.…]]`.
fn digits_of_time(digits: &str) -> Option<i64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let two = |at: usize| whole.get(at..at + 2)?.parse::<i64>().ok();
    match whole.len() {
        4 if fraction.is_empty() => time_of(two(0)?, two(2)?, 0, ""),
        6 => time_of(two(0)?, two(2)?, two(4)?, fraction),
        _ => None,
    }
}

fn time_of(hours: i64, minutes: i64, seconds: i64, fraction: &str) -> Option<i64> {
    let nanoseconds: i64 = match fraction.get(..9) {
        Some(first) => first.parse().ok()?,
        None if fraction.is_empty() => 0,
        None => fraction.parse::<i64>().ok()? * 10_i64.pow(9 - fraction.len() as u32),
    };
    let time = ((hours * 60 + minutes) * 60 + seconds) * SECOND + nanoseconds;
    (minutes < 60 && seconds <= 60 && time <= DAY).then_some(time)
}

fn of_half_day(time: i64, is_afternoon: bool) -> Option<i64> {
    const HOUR: i64 = 3_600 * SECOND;
    let (hours, rest) = (time / HOUR, time % HOUR);
    let hours = match (hours, is_afternoon) {
        (13.., _) => return None,
        (12, is_afternoon) => i64::from(is_afternoon) * 12,
        (hours, is_afternoon) => hours + i64::from(is_afternoon) * 12,
    };
    Some(hours * HOUR + rest)
}

/// `+02`, `-05:30`, `+0530`, in seconds.
fn offset(word: &str) -> Option<i64> {
    let (sign, digits) = (if word.starts_with('-') { -1 } else { 1 }, &word[1..]);
    let parts: Vec<&str> = match digits.split(':').collect::<Vec<_>>().as_slice() {
        [digits] if digits.len() == 4 || digits.len() == 3 => {
            vec![&digits[..digits.len() - 2], &digits[digits.len() - 2..]]
        }
        parts => parts.to_vec(),
    };
    let parts: Vec<i64> = parts
        .iter()
        .map(|part| (part.len() <= 2).then(|| part.parse::<i64>().ok()).flatten())
        .collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match parts.as_slice() {
        [hours] => (*hours, 0, 0),
        [hours, minutes] => (*hours, *minutes, 0),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return None,
    };
    (hours < 16 && minutes < 60 && seconds < 60).then_some(sign * ((hours * 60 + minutes) * 60 + seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_postgresql_does() {
        for (text, expected) in [
            ("2024-01-05", "2024-01-05T00:00:00.000000000"),
            ("2024-1-5", "2024-01-05T00:00:00.000000000"),
            ("20240105", "2024-01-05T00:00:00.000000000"),
            ("1/5/2024", "2024-01-05T00:00:00.000000000"),
            ("01-05-24", "2024-01-05T00:00:00.000000000"),
            ("Jan 5 2024", "2024-01-05T00:00:00.000000000"),
            ("Fri January 5, 2024 10:00 PM", "2024-01-05T22:00:00.000000000"),
            ("5 jan 2024", "2024-01-05T00:00:00.000000000"),
            ("2024 jan 5", "2024-01-05T00:00:00.000000000"),
            ("5-Jan-2024 12:00 am", "2024-01-05T00:00:00.000000000"),
            ("2024-Jan-05", "2024-01-05T00:00:00.000000000"),
            ("Jan-05-2024", "2024-01-05T00:00:00.000000000"),
            ("20240105T102030.5", "2024-01-05T10:20:30.500000000"),
            ("20240105 102030", "2024-01-05T10:20:30.000000000"),
            ("2024-01-05 10:20", "2024-01-05T10:20:00.000000000"),
            ("2024-12-31 24:00", "2025-01-01T00:00:00.000000000"),
            ("2024-12-31 23:59:60", "2025-01-01T00:00:00.000000000"),
            ("2024-01-05T1:2:3", "2024-01-05T01:02:03.000000000"),
            ("2024-01-05 10:20:30.1234567899", "2024-01-05T10:20:30.123456789"),
            ("2024-01-05 10:20+02:30", "2024-01-05T10:20:00.000000000"),
            ("10:20 2024-01-05", "2024-01-05T10:20:00.000000000"),
            ("epoch", "1970-01-01T00:00:00.000000000"),
            ("2024-02-30", "2024-02-30 ?"),
            ("2024-01-05 24:01", "2024-01-05 24:01 ?"),
            ("2024-01-05 13:00 pm", "2024-01-05 13:00 pm ?"),
            ("2024-01-05 10", "2024-01-05 10 ?"),
            ("10:00", "10:00 ?"),
            ("infinity", "infinity ?"),
            ("2024-01-05 +02", "2024-01-05 +02 ?"),
            ("2024-01-05 10:00 nowhere", "2024-01-05 10:00 nowhere ?"),
            ("24-01-05", "24-01-05 ?"),
            ("jan 2024", "jan 2024 ?"),
            ("", " ?"),
            ("-", "- ?"),
            ("\u{662f}", "\u{662f} ?"),
        ] {
            assert_eq!(timestamp(text), expected, "{text:?}");
        }
        for (text, expected) in [
            ("2024-01-05 10:00+02", "2024-01-05T08:00:00.000000000Z"),
            ("2024-01-01 00:00 Europe/Berlin", "2023-12-31T23:00:00.000000000Z"),
            ("2200-07-01 00:00 Europe/Berlin", "2200-06-30T22:00:00.000000000Z"),
            ("2024-01-05T10:00:00Z", "2024-01-05T10:00:00Z"),
            ("2024-01-05T10:00:00-0530", "2024-01-05T15:30:00.000000000Z"),
        ] {
            assert_eq!(moment(text), expected, "{text:?}");
        }
        assert_eq!(date("2024-01-01 00:00:00+02"), "2024-01-01");
        assert_eq!(date("20000-1-1"), "+20000-01-01");
        for (text, expected) in [
            ("10:20", "10:20:00.000000000"),
            ("102030", "10:20:30.000000000"),
            ("1020", "10:20:00.000000000"),
            ("2024-01-02 10:20:30.5+02", "10:20:30.500000000"),
            ("10:20 PM", "22:20:00.000000000"),
            ("24:00", "24:00 ?"),
            ("10", "10 ?"),
            ("12345", "12345 ?"),
            ("2024-01-02", "2024-01-02 ?"),
        ] {
            assert_eq!(time(text), expected, "{text:?}");
        }
    }
}
