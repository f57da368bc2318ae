//! Intervals with a time in their text, as PostgreSQL reads and shows them: `'1 day 02:00:00'`, `'-00:00:01.5'`, `'3 04:05'`.
//!
//! Arrow (59) takes numbers with units only. The text gets these, in `INTERVAL '…'` when a statement is parsed and below a cast
//! when types are settled:
//!
//! ```text
//! 1 day 02:03:04.5     1 day 2 hours 3 minutes 4.5 seconds
//! 3 04:05              3 days 4 hours 5 minutes
//! 12                   12 seconds
//! ```

use std::borrow::Cow;
use std::fmt::Write;

/// The text with units.
pub(super) fn with_units(text: &str) -> Cow<'_, str> {
    // A number alone is seconds; a cast would take it for months.
    if text.trim().parse::<f64>().is_ok_and(f64::is_finite) {
        return Cow::Owned(format!("{} seconds", text.trim()));
    }
    if !text.contains(':') {
        return Cow::Borrowed(text);
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut written = String::new();
    for (at, word) in words.iter().enumerate() {
        if !written.is_empty() {
            written.push(' ');
        }
        let is_days = word.parse::<i64>().is_ok() && words.get(at + 1).is_some_and(|next| next.contains(':'));
        match time(word) {
            Some(time) => written.push_str(&time),
            None if is_days => _ = write!(written, "{word} days"),
            None => written.push_str(word),
        }
    }
    Cow::Owned(written)
}

/// `[-]HH:MM[:SS[.…]]` in units; its sign is that of all of them.
fn time(word: &str) -> Option<String> {
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
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
    let seconds = seconds.map(|seconds| format!(" {sign}{seconds} seconds")).unwrap_or_default();
    Some(format!("{sign}{hours} hours {sign}{minutes} minutes{seconds}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_get_units() {
        for (text, expected) in [
            ("1 day 02:03:04.5", "1 day 02 hours 03 minutes 04.5 seconds"),
            ("-3 -04:05", "-3 days -04 hours -05 minutes"),
            ("2 hours", "2 hours"),
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
