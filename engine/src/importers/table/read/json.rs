//! NDJSON and arrays of objects.
//!
//! ```text
//! {"begin": 0.5, "op": "load", "grid": [8, 8]}       a record: one object, on one line
//! ```
//! Keys may differ from record to record. The requested ones become columns; all others are passed on unchanged, as members
//! of `args`. Numbers keep their digits: cells are the JSON text itself. Later keys win over earlier ones of the same name.
//! `NaN` and `Infinity`, which Python's json module writes and JSON does not know, are read as strings; half of a surrogate
//! pair (`\ud83d` alone, which JavaScript writes for a truncated text) and bytes that are not UTF-8 become U+FFFD.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringBuilder};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::array;
use super::csv::shortened;
use super::lines::{RECORD_BYTES, Window};
use super::{Batch, CellKind, Header, Places, ReadOptions, Sink, damaged};
use crate::error::ImportError;
use crate::trace::{ROWS_PER_BATCH, Source, Stats, findings};

/// What no JSON knows and Python's json module writes.
const NOT_FINITE_WORDS: [&[u8]; 3] = [b"NaN", b"Infinity", b"-Infinity"];

/// How many different keys an error lists at most.
const FOUND_MAX: usize = 200;

/// The text of a batch, and with it the batch, ends beyond this.
const BATCH_BYTES: usize = 8 << 20;

/// An object as its members in order, values as they stand.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Deserialize<'a> for Members<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfObject;
        impl<'a> Visitor<'a> for OfObject {
            type Value = Members<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Members<'a>, A::Error> {
                let mut members = Vec::new();
                while let Some((Key(key), value)) = map.next_entry::<Key<'a>, &'a RawValue>()? {
                    members.push((key, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(OfObject)
    }
}

/// A key that borrows unless it holds escapes.
struct Key<'a>(Cow<'a, str>);

impl<'a> Deserialize<'a> for Key<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfText;
        impl<'a> Visitor<'a> for OfText {
            type Value = Key<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, text: &'a str) -> Result<Key<'a>, E> {
                Ok(Key(text.into()))
            }

            fn visit_str<E>(self, text: &str) -> Result<Key<'a>, E> {
                Ok(Key(text.to_owned().into()))
            }
        }
        deserializer.deserialize_str(OfText)
    }
}

/// Whether the first line is an object. A line that the head cuts off counts when it looks like one.
pub(super) fn begins_with_records(head: &[u8]) -> bool {
    let start = head.trim_ascii_start();
    match memchr::memchr(b'\n', start) {
        Some(end) => is_record(&start[..end]),
        None => is_record(start) || start.len() >= 60 << 10,
    }
}

/// Whether the head begins with the only object of its file, and that has members which are lists or objects.
pub(super) fn is_document(head: &[u8], is_whole: bool) -> bool {
    let start = head.trim_ascii_start();
    let (line, behind) = match memchr::memchr(b'\n', start) {
        Some(end) => (&start[..end], &start[end..]),
        None => (start, &[][..]),
    };
    if !behind.trim_ascii().is_empty() {
        return false;
    }
    match serde_json::from_slice::<Members<'_>>(&as_utf8(line)) {
        Ok(Members(members)) => members.iter().any(|(_, value)| value.get().starts_with(['[', '{'])),
        // An object that is longer than the head is a document, or a row with a text of its size.
        Err(_) => !is_whole,
    }
}

fn is_record(line: &[u8]) -> bool {
    let line: &[u8] = &as_utf8(line);
    let parses = |line: &[u8]| serde_json::from_slice::<Members<'_>>(line).is_ok();
    parses(line) || with_words_quoted(line).is_some_and(|line| parses(&line))
}

/// The text with `NaN` and `Infinity` as JSON strings; `None` where it has none of them.
fn with_words_quoted(text: &[u8]) -> Option<Vec<u8>> {
    let mut quoted = Vec::new();
    let (mut at, mut copied) = (0, 0);
    while at < text.len() {
        if text[at] == b'"' {
            at = array::string_end(text, at).unwrap_or(text.len());
            continue;
        }
        let Some(word) = NOT_FINITE_WORDS.into_iter().find(|word| text[at..].starts_with(word)) else {
            at += 1;
            continue;
        };
        quoted.extend_from_slice(&text[copied..at]);
        quoted.extend([b"\"", word, b"\""].concat());
        at += word.len();
        copied = at;
    }
    quoted.extend_from_slice(&text[copied..]);
    (copied > 0).then_some(quoted)
}

/// The text with U+FFFD for what is no UTF-8.
fn as_utf8(text: &[u8]) -> Cow<'_, [u8]> {
    match String::from_utf8_lossy(text) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// The text with U+FFFD for each half of a pair of escapes (`\ud83d` without `\ude00` behind it); `None` where it has none.
fn with_whole_characters(text: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| -> Option<u16> {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    if !memchr::memmem::find_iter(text, b"\\u").any(|at| matches!(unit(at), Some(0xd800..=0xdfff))) {
        return None;
    }
    let mut whole = text.to_vec();
    let (mut at, mut changed) = (0, false);
    while let Some(escape) = memchr::memchr(b'\\', &text[at..]).map(|found| at + found) {
        at = escape
            + match unit(escape) {
                Some(0xd800..=0xdbff) if matches!(unit(escape + 6), Some(0xdc00..=0xdfff)) => 12,
                Some(0xd800..=0xdfff) => {
                    whole[escape + 2..escape + 6].copy_from_slice(b"fffd");
                    changed = true;
                    6
                }
                _ => 2,
            };
        if at >= text.len() {
            break;
        }
    }
    changed.then_some(whole)
}

/// Whether an array of objects begins here.
pub(super) fn begins_with_array(head: &[u8]) -> bool {
    head.trim_ascii_start().strip_prefix(b"[").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"{"))
}

/// The keys of the first record.
pub(super) fn keys(head: &[u8]) -> Option<Vec<String>> {
    let head = as_utf8(head);
    let text = head.trim_ascii_start();
    let text = text.strip_prefix(b"[").unwrap_or(text);
    let keys_of = |text: &[u8]| -> Option<Vec<String>> {
        let mut records = serde_json::Deserializer::from_slice(text).into_iter::<Members<'_>>();
        let Members(members) = records.next()?.ok()?;
        Some(members.into_iter().map(|(key, _)| key.into_owned()).collect())
    };
    keys_of(text).or_else(|| keys_of(&with_words_quoted(text)?))
}

pub(super) fn read_lines(source: &Source, options: &ReadOptions<'_>, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let mut window = Window::new(source.reader()?);
    let mut rows = Rows::new(source, true, options);
    let mut line = 1;
    loop {
        let unread = window.unread();
        let end = match memchr::memchr(b'\n', unread) {
            Some(end) => end + 1,
            None if window.at_end() => unread.len(),
            None if unread.len() > RECORD_BYTES => {
                return Err(damaged(source, format!("line {line}"), "the line does not end"));
            }
            None => {
                window.fill().map_err(|error| damaged(source, format!("line {line}"), error))?;
                continue;
            }
        };
        if end == 0 {
            break;
        }
        let record = unread[..end].trim_ascii();
        if !record.is_empty() {
            rows.take(record, line, sink.stats());
        }
        window.used(end);
        line += 1;
        if rows.is_full() {
            rows.flush(sink)?;
        }
    }
    rows.flush(sink)
}

pub(super) fn read_array(source: &Source, options: &ReadOptions<'_>, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let mut rows = Rows::new(source, false, options);
    let mut number = 1;
    array::values(source, |record| {
        rows.take(record, number, sink.stats());
        number += 1;
        if rows.is_full() { rows.flush(sink) } else { Ok(()) }
    })?;
    rows.flush(sink)
}

/// A batch while it fills.
struct Rows<'a> {
    source: &'a Source,
    /// Whether the place of a record is its line.
    by_line: bool,
    wanted: &'a [String],
    columns: Vec<StringBuilder>,
    rest: StringBuilder,
    /// Line or number of each record.
    places: Vec<u64>,
    bytes: usize,
    /// Keys, until the first batch is handed on.
    found: Vec<String>,
    begun: bool,
}

impl<'a> Rows<'a> {
    fn new(source: &'a Source, by_line: bool, options: &'a ReadOptions<'_>) -> Rows<'a> {
        let wanted = options.wanted.as_slice();
        Rows {
            source,
            by_line,
            wanted,
            columns: wanted.iter().map(|_| StringBuilder::new()).collect(),
            rest: StringBuilder::new(),
            places: Vec::new(),
            bytes: 0,
            found: Vec::new(),
            begun: false,
        }
    }

    fn is_full(&self) -> bool {
        self.places.len() == ROWS_PER_BATCH || self.bytes > BATCH_BYTES
    }

    /// Takes a record, or counts it as left out.
    fn take(&mut self, record: &[u8], place: u64, stats: &mut Stats) {
        let shown = |record: &[u8]| shortened(&String::from_utf8_lossy(&record[..record.len().min(200)])).into_owned();
        if let Some(whole) = with_whole_characters(record) {
            stats
                .note(findings::BAD_STRING, 1, || format!("{}: half a character: `{}`", self.at(place), shown(record)));
            return self.take(&whole, place, stats);
        }
        match serde_json::from_slice::<Members<'_>>(record) {
            Ok(Members(members)) => self.push(&members, place, record.len(), stats),
            Err(error) => match as_utf8(record) {
                Cow::Borrowed(_) => self.take_damaged(record, &error, place, stats),
                Cow::Owned(text) => {
                    stats.note(findings::NOT_UTF8, 1, || format!("{}: `{}`", self.at(place), shown(record)));
                    self.take(&text, place, stats);
                }
            },
        }
    }

    fn take_damaged(&mut self, record: &[u8], error: &serde_json::Error, place: u64, stats: &mut Stats) {
        let text = || {
            let text = String::from_utf8_lossy(&record[..record.len().min(200)]);
            shortened(&text).into_owned()
        };
        let quoted = with_words_quoted(record);
        let members = quoted.as_ref().and_then(|quoted| serde_json::from_slice::<Members<'_>>(quoted).ok());
        if let Some(Members(members)) = members {
            let example = || format!("{}: NaN or Infinity, read as a text: `{}`", self.at(place), text());
            stats.note(findings::NOT_FINITE, 1, example);
            self.push(&members, place, record.len(), stats);
            return;
        }
        stats.records(1);
        stats.left_out(findings::BAD_RECORD, 1, || format!("{}: {error}: `{}`", self.at(place), text()));
    }

    /// `log.ndjson:17` or `log.json row 17`.
    fn at(&self, place: u64) -> String {
        let separator = if self.by_line { ":" } else { " row " };
        format!("{}{separator}{place}", self.source.path().display())
    }

    fn push(&mut self, members: &[(Cow<'_, str>, &RawValue)], place: u64, bytes: usize, stats: &mut Stats) {
        use fmt::Write as _;
        let mut cells: Vec<Option<&str>> = vec![None; self.wanted.len()];
        let mut rest = false;
        for (key, value) in members {
            if !self.begun && self.found.len() < FOUND_MAX && !self.found.iter().any(|found| found == key.as_ref()) {
                self.found.push(key.clone().into_owned());
            }
            let value = value.get();
            match self.wanted.iter().position(|wanted| wanted == key.as_ref()) {
                Some(_) if value == "null" => {}
                Some(column) => {
                    if let Some(lost) = cells[column].replace(value) {
                        let example = || {
                            format!("{}: `{key}` is `{}`, then `{}`", self.at(place), shortened(lost), shortened(value))
                        };
                        stats.note(findings::DUPLICATE_KEY, 1, example);
                    }
                }
                None if value == "null" => {}
                None => {
                    // Writing into a builder does not fail.
                    let separator = if rest { "," } else { "" };
                    let _ = write!(self.rest, "{separator}{}:{value}", serde_json::Value::from(key.as_ref()));
                    rest = true;
                }
            }
        }
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.append_option(cell);
        }
        if rest {
            self.rest.append_value("");
        } else {
            self.rest.append_null();
        }
        self.places.push(place);
        self.bytes += bytes;
    }

    fn flush(&mut self, sink: &mut dyn Sink) -> Result<(), ImportError> {
        if !self.begun {
            self.begun = true;
            let found = std::mem::take(&mut self.found);
            sink.header(Header { columns: self.wanted.to_vec(), found, open: true })?;
        }
        if self.places.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let columns = self.columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
        let numbers = std::mem::take(&mut self.places);
        let rows = numbers.len();
        let places = if self.by_line { Places::Lines(numbers) } else { Places::Numbers(numbers) };
        sink.batch(Batch { rows, columns, cells: CellKind::Json, rest: Some(self.rest.finish()), places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_told_from_other_json() {
        assert!(begins_with_records(b"{\"a\": 1}\n{"));
        assert!(begins_with_records(b"{\"a\": 1}"));
        assert!(!begins_with_records(b"{\n\"a\": 1}"));
        assert!(!begins_with_records(b"{\"a\": 1"));
        assert!(begins_with_array(b" [\n {\"a\""));
        assert!(!begins_with_array(b"[1]"));
    }

    #[test]
    fn halves_of_characters_are_replaced() {
        let check = |text: &str, expected: Option<&str>| {
            let found = with_whole_characters(text.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{text}");
        };
        check(r#"{"a":"cut \ud83d"}"#, Some(r#"{"a":"cut \ufffd"}"#));
        check(r#"{"a":"\ud83d\ude00\uDE00\ud83d\u0041"}"#, Some(r#"{"a":"\ud83d\ude00\ufffd\ufffd\u0041"}"#));
        check(r#"{"a":"\\ud83d","b":"\ud83d\ude00"}"#, None);
        check(r#"{"a":"\u00e9"}"#, None);
        check(r#"{"a":"\ud8"#, None);
    }

    #[test]
    fn keys_of_the_first_record() {
        let check = |head: &[u8], expected: &[&str]| assert_eq!(keys(head).unwrap(), expected);
        check(b"{\"a\": 1, \"b\\n\": {}}\n", &["a", "b\n"]);
        check(b"[{\"a\": 1}, {\"b\"", &["a"]);
        assert_eq!(keys(b"[1]"), None);
        check(b"{\"a\": NaN, \"b\": 1}\n", &["a", "b"]);
    }

    #[test]
    fn words_of_python_become_texts() {
        let check = |text: &str, expected: Option<&str>| {
            let quoted = with_words_quoted(text.as_bytes()).map(|quoted| String::from_utf8(quoted).unwrap());
            assert_eq!(quoted.as_deref(), expected, "{text}");
        };
        check("{\"a\":NaN,\"b\":[-Infinity,Infinity]}", Some("{\"a\":\"NaN\",\"b\":[\"-Infinity\",\"Infinity\"]}"));
        check("{\"NaN\":\"\\\"NaN\"}", None);
        check("{\"a\":1}", None);
        check("{\"a\":NaN,\"cut", Some("{\"a\":\"NaN\",\"cut"));
        assert!(begins_with_records(b"{\"a\": NaN}\n"));
    }
}
