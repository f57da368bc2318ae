//! Suggestions for errors: which column of a foreign table probably means what.

use crate::tables::{ColumnType, Table};

/// What logs found in the wild call our columns, without their unit.
const SYNONYMS: [(&str, &[&str]); 12] = [
    ("start", &["start", "begin", "start time", "begin time", "started", "ts", "timestamp", "time", "t0", "t", "from"]),
    ("finish", &["finish", "end", "stop", "t1", "until", "end time", "stop time", "finish time", "finished", "ended"]),
    ("duration", &["duration", "dur", "elapsed", "length", "took", "time taken", "latency"]),
    (
        "name",
        &[
            "name",
            "task",
            "task name",
            "op name",
            "event name",
            "span name",
            "function name",
            "label",
            "op",
            "operation",
            "function",
            "fn",
            "func",
            "stage",
            "event",
            "key",
            "metric",
        ],
    ),
    ("location", &["location", "thread", "tid", "worker", "core", "rank", "lane", "host", "cpu", "device", "pid"]),
    ("source", &["source", "src", "from", "parent", "predecessor", "sender"]),
    ("target", &["target", "dst", "dest", "to", "child", "successor", "receiver"]),
    ("value", &["value", "val", "count", "amount"]),
    ("time", &["time", "timestamp", "ts", "when", "t", "at", "date", "datetime"]),
    ("send_time", &["send time", "sent", "sent at"]),
    ("receive_time", &["receive time", "received", "received at"]),
    ("bytes", &["bytes", "size", "length"]),
];

const UNIT_ENDINGS: [(&str, &str); 16] = [
    ("microseconds", "us"),
    ("milliseconds", "ms"),
    ("nanoseconds", "ns"),
    ("picoseconds", "ps"),
    ("seconds", "s"),
    ("minutes", "min"),
    ("usec", "us"),
    ("msec", "ms"),
    ("nsec", "ns"),
    ("sec", "s"),
    ("us", "us"),
    ("ms", "ms"),
    ("ns", "ns"),
    ("ps", "ps"),
    ("µs", "us"),
    ("s", "s"),
];

/// A guess at the mapping of a table without one: (our column, their column with its unit).
pub(super) fn guess<'a>(table: Table, wanted: &[&'static str], found: &'a [String]) -> Vec<(&'static str, String)> {
    let mut taken: Vec<&'a str> = Vec::new();
    let mut guesses = Vec::new();
    for &column in wanted {
        let Some((_, synonyms)) = SYNONYMS.iter().find(|(name, _)| *name == column) else { continue };
        let is_time =
            table.spec().columns.iter().any(|spec| spec.name == column && spec.column_type == ColumnType::Time);
        let fitting = synonyms.iter().find_map(|synonym| {
            found.iter().map(String::as_str).filter(|name| !taken.contains(name)).find_map(|name| {
                let (words, unit) = words_and_unit(name, is_time);
                (words == *synonym).then_some((name, unit))
            })
        });
        if let Some((name, unit)) = fitting {
            taken.push(name);
            guesses.push((column, unit.map_or_else(|| name.to_owned(), |unit| format!("{name}:{unit}"))));
        }
    }
    guesses
}

/// `Begin_Time (us)` → `begin time` and `us`.
fn words_and_unit(name: &str, is_time: bool) -> (String, Option<&'static str>) {
    let spaced: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let folded = spaced.to_lowercase();
    let mut words: Vec<&str> = folded.split_whitespace().collect();
    let mut unit = None;
    if is_time
        && words.len() > 1
        && let Some((_, symbol)) = UNIT_ENDINGS.iter().find(|(ending, _)| words.last() == Some(ending))
    {
        unit = Some(*symbol);
        words.pop();
    }
    (words.join(" "), unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_strangers_are_guessed() {
        let found = ["begin_us", "End (us)", "op", "tid"].map(str::to_owned);
        let guesses = guess(Table::Tasks, &["start", "finish", "name", "location"], &found);
        let expected = [("start", "begin_us:us"), ("finish", "End (us):us"), ("name", "op"), ("location", "tid")];
        assert_eq!(guesses, expected.map(|(ours, theirs)| (ours, theirs.to_owned())));
    }
}
