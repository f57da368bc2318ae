//! Wording of counts, sizes, durations, and of lists of names with a sentence each.

use std::time::Duration;

use unicode_width::UnicodeWidthStr;

use super::visible::{visible, visible_lines};

/// The word of that many.
pub(crate) fn plural(count: u64, word: &str) -> String {
    if count == 1 { word.to_owned() } else { format!("{word}s") }
}

/// `1 row`, `3 rows`.
pub(crate) fn counted(count: usize, word: &str) -> String {
    format!("{count} {}", plural(count as u64, word))
}

/// A change in percent, `+5.1 %`; what rounds to nothing has no minus.
pub(crate) fn signed_percent(percent: f64) -> String {
    let tenths = (10.0 * percent).round();
    format!("{:+.1} %", if tenths == 0.0 { 0.0 } else { percent })
}

/// How many more rows there are than those shown; no number where the answer they are from is itself cut.
pub(crate) fn more_rows(count: usize, is_cut: bool) -> String {
    if is_cut { "more rows".to_owned() } else { counted(count, "more row") }
}

/// Bytes of a limit, as people write them: `8GB`, `512MiB`.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    any_bytes(text)
        .and_then(|bytes| if bytes < 1_000_000 { Err("at least 1MB is needed".to_owned()) } else { Ok(bytes) })
}

/// Bytes as people write them, also few or none.
pub(crate) fn any_bytes(text: &str) -> Result<usize, String> {
    const UNITS: [(&str, u64); 10] = [
        ("", 1),
        ("b", 1),
        ("kb", 1_000),
        ("mb", 1_000_000),
        ("gb", 1_000_000_000),
        ("tb", 1_000_000_000_000),
        ("kib", 1 << 10),
        ("mib", 1 << 20),
        ("gib", 1 << 30),
        ("tib", 1 << 40),
    ];
    let help = || "write it like `8GB` or `512MiB`".to_owned();
    let text = text.trim();
    let unit_at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let unit = text[unit_at..].trim().to_ascii_lowercase();
    // People also write `8G`.
    let unit = if matches!(unit.as_str(), "k" | "m" | "g" | "t") { format!("{unit}b") } else { unit };
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(help)?;
    let number: f64 = text[..unit_at].parse().map_err(|_| help())?;
    let bytes = number * *factor as f64;
    if bytes <= 1e18 { Ok(bytes as usize) } else { Err("nobody has so many".to_owned()) }
}

/// Bytes as `\set memory` takes them; rounded where they are many.
pub(crate) fn bytes_text(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 10_000_000_000 => format!("{}GB", bytes / 1_000_000_000),
        bytes if bytes >= 1_000_000_000 => format!("{:.1}GB", bytes as f64 / 1e9),
        bytes => format!("{}MB", bytes / 1_000_000),
    }
}

/// Units from long to short, and how many milliseconds they have.
const UNITS_OF_TIME: [(&str, u64); 5] = [("h", 3_600_000), ("min", 60_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// A duration in the longest unit that it is whole in.
pub(crate) fn duration_text(limit: Duration) -> String {
    let milliseconds = limit.as_millis() as u64;
    let whole =
        UNITS_OF_TIME.iter().filter(|(name, _)| *name != "m").find(|(_, unit)| milliseconds.is_multiple_of(*unit));
    let (name, unit) = whole.unwrap_or(&UNITS_OF_TIME[UNITS_OF_TIME.len() - 1]);
    format!("{} {name}", milliseconds / unit)
}

/// Durations as people write them.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let help = || "write it like `30s`, `500ms`, `2m` or `1h`".to_owned();
    let text = text.trim();
    let unit_at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(help)?;
    let (number, unit) = (&text[..unit_at], text[unit_at..].trim());
    let (_, unit) = UNITS_OF_TIME.iter().find(|(name, _)| *name == unit).ok_or_else(help)?;
    let number: f64 = number.parse().map_err(|_| help())?;
    let milliseconds = (number * *unit as f64).round();
    // A thousand years are any time.
    if !(1.0..=3.2e13).contains(&milliseconds) {
        return Err(format!("at least 1ms is needed; {}", help()));
    }
    Ok(Duration::from_millis(milliseconds as u64))
}

/// Names with a sentence each, aligned; the sentence goes on below itself where the terminal is narrow.
pub(crate) fn listed(entries: &[(String, String)], width: Option<usize>) -> String {
    const NAME_MAX: usize = 32;
    let column = entries.iter().map(|(name, _)| name.width()).filter(|&width| width <= NAME_MAX).max().unwrap_or(0) + 2;
    let room = width.unwrap_or(100).saturating_sub(column + 2).max(30);
    let mut text = String::new();
    for (name, sentence) in entries {
        let name = visible(name);
        let mut lines = wrapped(sentence, room).into_iter();
        // A long name has a line of its own.
        if name.width() + 2 > column {
            text.push_str(&format!("  {name}\n"));
        } else {
            let line = format!("  {name}{}{}", " ".repeat(column - name.width()), lines.next().unwrap_or_default());
            text.push_str(line.trim_end());
            text.push('\n');
        }
        for line in lines {
            text.push_str(&format!("  {}{line}\n", " ".repeat(column)));
        }
    }
    text
}

/// Text broken at blanks, but not between a number and its unit; its own line ends stay.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in visible_lines(text).lines() {
        let mut line = String::new();
        for word in words_with_units(paragraph) {
            if !line.is_empty() && line.width() + 1 + word.width() > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

/// The same text, on whose lines no unit is apart from its number: `18.5 ms` with a blank that does not break.
pub(crate) fn with_units_kept(text: &str) -> String {
    let kept = |line: &str| {
        let words = words_with_units(line).into_iter().map(|word| word.replace(' ', "\u{a0}"));
        words.collect::<Vec<_>>().join(" ")
    };
    text.split('\n').map(kept).collect::<Vec<_>>().join("\n")
}

/// The words of a line; `18.5 ms` is one.
fn words_with_units(line: &str) -> Vec<&str> {
    let ends_in_digit = |start: usize, end: usize| line[start..end].ends_with(|c: char| c.is_ascii_digit());
    let is_unit = |rest: &str| {
        let word = rest.split(' ').next().unwrap_or_default().trim_end_matches([',', ';', '.', ':', ')']);
        ["ns", "µs", "ms", "s", "%"].contains(&word)
    };
    let (mut words, mut start) = (vec![], 0);
    for (at, _) in line.match_indices(' ') {
        if !(ends_in_digit(start, at) && is_unit(&line[at + 1..])) {
            words.push(&line[start..at]);
            start = at + 1;
        }
    }
    words.push(&line[start..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_before_a_number_and_not_behind_it() {
        assert_eq!(wrapped("it took 18.5 ms, 99 % of all", 13), ["it took", "18.5 ms, 99 %", "of all"]);
        assert_eq!(wrapped("a  b 7 tasks", 4), ["a  b", "7", "tasks"]);
        assert_eq!(with_units_kept("18.5 ms, 99 % of\n7 s ago"), "18.5\u{a0}ms, 99\u{a0}% of\n7\u{a0}s ago");
        assert_eq!(with_units_kept(" a 1  ms  5 "), " a 1  ms  5 ");
    }

    #[test]
    fn changes_have_a_sign_unless_they_are_nothing() {
        assert_eq!([5.06, -0.06, -0.04, 0.0].map(signed_percent), ["+5.1 %", "-0.1 %", "+0.0 %", "+0.0 %"]);
    }

    #[test]
    fn bytes_read_as_people_write_them() {
        assert_eq!(bytes("8GB"), Ok(8_000_000_000));
        assert_eq!(bytes("1.5 GiB"), Ok(3 << 29));
        assert_eq!(bytes("512m"), Ok(512_000_000));
        for wrong in ["", "GB", "8 parsecs", "-1GB", "12"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_read_as_people_write_them() {
        for (text, milliseconds) in
            [("30s", 30_000), ("500ms", 500), ("2m", 120_000), ("2 min", 120_000), ("1.5h", 5_400_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for wrong in ["", "30", "s", "-1s", "0s", "0.1ms", "1e3s", "5 parsecs", "1.2.3s", "1s2", "99999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_are_told_in_the_longest_whole_unit() {
        for (milliseconds, words) in [(30_000, "30 s"), (1_500, "1500 ms"), (120_000, "2 min"), (3_600_000, "1 h")] {
            assert_eq!(duration_text(Duration::from_millis(milliseconds)), words);
        }
    }
}
