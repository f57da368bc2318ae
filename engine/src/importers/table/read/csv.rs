//! CSV and its relatives: a header line, then one record a line, fields between delimiters.
//!
//! ```text
//! stage,begin,note            names; a header is given by `columns` where the file has none
//! decode,0.5,"a ""b"", c"     quotes hold delimiters, line ends and doubled quotes
//! render,0.75,                an empty field is NULL; CRLF and a BOM are fine, so is one more delimiter at the end
//! ```
//! The delimiter is sniffed: of `,` tab `;` `|` the one that splits the first lines into the most fields, with the same number in
//! each. A record with another number of fields than the header is left out and counted, and so is one whose quote is not closed
//! (within [`RECORD_BYTES`]): reading resumes after the line with the opening quote. Bytes that are not UTF-8 become `U+FFFD`, and
//! text between a closing quote and the delimiter is added to the field; both are counted.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringBuilder};

use super::lines::{RECORD_BYTES, Window};
use super::{Batch, CellKind, Header, Places, ReadOptions, Sink, damaged};
use crate::error::ImportError;
use crate::trace::{ROWS_PER_BATCH, Source, findings};

const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];

/// A field of a record: a range of bytes, without its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    from: usize,
    to: usize,
    /// Holds doubled quotes, or text behind its closing quote.
    raw: bool,
}

/// What stands at the beginning of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A record: its length in bytes, line end included, and the number of its lines.
    Record { bytes: usize, lines: u64 },
    /// The record does not end here, because a field does not: the byte at which that field begins, and how many lines below the first.
    Incomplete { field: usize, below: u64, is_quoted: bool },
}

/// Cuts the first record of `text` into fields. At the end of the file the last line may lack its line end.
fn record(text: &[u8], delimiter: u8, at_end: bool, fields: &mut Vec<Field>) -> Step {
    fields.clear();
    let (mut at, mut lines) = (0, 1);
    loop {
        let mut field = Field { from: at, to: at, raw: false };
        if text.get(at) == Some(&b'"') {
            let mut from = at + 1;
            let open = Step::Incomplete { field: at, below: lines - 1, is_quoted: true };
            field.from = from;
            // The closing quote is the first that is not doubled.
            loop {
                let Some(quote) = memchr::memchr(b'"', &text[from..]) else { return open };
                lines += memchr::memchr_iter(b'\n', &text[from..from + quote]).count() as u64;
                from += quote + 1;
                match text.get(from) {
                    Some(b'"') => {
                        field.raw = true;
                        from += 1;
                    }
                    None if !at_end => return open,
                    _ => break,
                }
            }
            field.to = from - 1;
            at = from;
        }
        let behind = at;
        let found = memchr::memchr2(delimiter, b'\n', &text[at..]);
        let end = match found {
            Some(offset) => at + offset,
            None if at_end => text.len(),
            None => return Step::Incomplete { field: at, below: lines - 1, is_quoted: false },
        };
        let ends_line = text.get(end) != Some(&delimiter);
        let trimmed = if ends_line && end > behind && text[end - 1] == b'\r' { end - 1 } else { end };
        if field.from == behind {
            field.to = trimmed;
        } else if trimmed > behind {
            // `"a" b`: the text behind the quote belongs to the field; it is rare enough to be put together later.
            field.to = trimmed;
            field.raw = true;
        }
        fields.push(field);
        at = end + 1;
        if ends_line {
            return Step::Record { bytes: at.min(text.len()), lines };
        }
    }
}

/// What a field says.
struct Text<'a> {
    text: Cow<'a, str>,
    is_utf8: bool,
    /// Whether it goes on behind its closing quote.
    goes_on: bool,
}

/// The text of a field.
fn text<'a>(bytes: &'a [u8], field: Field) -> Text<'a> {
    let inner = &bytes[field.from..field.to];
    let (text, is_utf8) = match std::str::from_utf8(inner) {
        Ok(text) => (Cow::Borrowed(text), true),
        Err(_) => (String::from_utf8_lossy(inner), false),
    };
    if !field.raw {
        return Text { text, is_utf8, goes_on: false };
    }
    let mut unquoted = String::with_capacity(text.len());
    let mut open = true;
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if open && chars.peek() == Some(&'"') => {
                chars.next();
                unquoted.push('"');
            }
            '"' if open => open = false,
            other => unquoted.push(other),
        }
    }
    Text { text: Cow::Owned(unquoted), is_utf8, goes_on: !open }
}

/// The number of fields in each of the first records of a head; a record that the head cuts off does not count.
fn field_counts(head: &[u8], delimiter: u8) -> Vec<usize> {
    let mut at = head;
    let (mut fields, mut counts) = (Vec::new(), Vec::new());
    let whole = head.len() < 64 << 10;
    while !at.is_empty() && counts.len() < 20 {
        let Step::Record { bytes, .. } = record(at, delimiter, whole, &mut fields) else { break };
        if !is_blank(&at[..bytes]) {
            let trailing = fields.len() > 1 && fields.last().is_some_and(|field| field.from == field.to);
            counts.push(if trailing && counts.first() == Some(&(fields.len() - 1)) {
                fields.len() - 1
            } else {
                fields.len()
            });
        }
        at = &at[bytes..];
    }
    counts
}

/// The delimiter that cuts the first lines into the most fields; those that cut each line alike come first.
fn sniff(head: &[u8]) -> u8 {
    let rank = |&delimiter: &u8| {
        let counts = field_counts(head, delimiter);
        let fields = counts.first().copied().unwrap_or(0);
        let alike = counts.iter().filter(|&&count| count == fields).count();
        (fields > 1 && alike * 2 > counts.len(), fields)
    };
    // `max_by_key` takes the last of equals; the comma is the most common.
    DELIMITERS.into_iter().rev().max_by_key(rank).unwrap_or(b',')
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// The header of a text that looks like a table: at least two columns, and most lines have as many fields.
pub(super) fn header(head: &[u8]) -> Option<Vec<String>> {
    let delimiter = sniff(head);
    let counts = field_counts(head, delimiter);
    let alike = counts.iter().filter(|&&count| Some(&count) == counts.first()).count();
    if counts.first().is_none_or(|&fields| fields < 2) || alike * 2 <= counts.len() {
        return None;
    }
    let mut fields = Vec::new();
    match record(head, delimiter, true, &mut fields) {
        Step::Record { .. } => Some(names(fields.iter().map(|&field| text(head, field).text.into_owned()))),
        Step::Incomplete { .. } => None,
    }
}

/// Column names: trimmed, named when they are not, made different when they are the same.
fn names(fields: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    // A line of a thousand tabs has a thousand columns without a name, whether it is a header or not.
    let mut taken: HashSet<String> = HashSet::new();
    let mut next_numbers: HashMap<String, usize> = HashMap::new();
    for (index, field) in fields.enumerate() {
        let name = match field.trim() {
            "" => format!("column_{}", index + 1),
            name => name.to_owned(),
        };
        let mut unique = name.clone();
        if taken.contains(&unique) {
            let number = next_numbers.entry(name.clone()).or_insert(2);
            while taken.contains(&unique) {
                unique = format!("{name}_{number}");
                *number += 1;
            }
        }
        taken.insert(unique.clone());
        names.push(unique);
    }
    names
}

/// More columns than any table has are a sign of binary data, and each costs memory in every batch.
const COLUMNS_MAX: usize = 4_096;

/// The text of a batch, and with it the batch, ends beyond this.
const BATCH_BYTES: usize = 8 << 20;

pub(super) fn read(source: &Source, options: &ReadOptions<'_>, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let delimiter = options.delimiter.unwrap_or_else(|| sniff(source.head()));
    let mut reader = Reader {
        source,
        window: Window::new(source.reader()?),
        delimiter,
        line: 1,
        fields: Vec::new(),
        columns: Vec::new(),
        lines: Vec::new(),
        bytes: 0,
    };
    reader.begin(options, sink)?;
    reader.records(sink)
}

struct Reader<'a> {
    source: &'a Source,
    window: Window,
    delimiter: u8,
    /// The line of the next record, from 1.
    line: u64,
    fields: Vec<Field>,
    columns: Vec<StringBuilder>,
    /// The line of each record of the batch.
    lines: Vec<u64>,
    /// Text in the batch.
    bytes: usize,
}

impl Reader<'_> {
    /// Reads the header.
    fn begin(&mut self, options: &ReadOptions<'_>, sink: &mut dyn Sink) -> Result<(), ImportError> {
        self.fill()?;
        let names = match options.columns {
            Some(columns) => columns.to_vec(),
            None => loop {
                match self.step()? {
                    None => return Err(damaged(self.source, "line 1".to_owned(), "no header line")),
                    Some(Step::Incomplete { below, is_quoted, .. }) => {
                        let (line, what) = (self.line + below, self.what_does_not_end(is_quoted));
                        return Err(damaged(self.source, format!("line {line}"), format!("in the header, {what}")));
                    }
                    Some(Step::Record { bytes, lines }) => {
                        let line = &self.window.unread()[..bytes];
                        let blank = is_blank(line);
                        let found = names(
                            self.fields.iter().take(COLUMNS_MAX + 1).map(|&field| text(line, field).text.into_owned()),
                        );
                        // A file of one line, by line feeds: the header would be all there is.
                        let is_all = line.len() == self.window.unread().len() && self.window.at_end();
                        if is_all && memchr::memchr(b'\r', line.trim_ascii()).is_some() {
                            let what = "its lines end in carriage returns alone: `tr '\\r' '\\n'` makes lines of them";
                            return Err(damaged(self.source, "line 1".to_owned(), what));
                        }
                        self.window.used(bytes);
                        self.line += lines;
                        if !blank {
                            break found;
                        }
                    }
                }
            },
        };
        if names.len() > COLUMNS_MAX {
            return Err(damaged(self.source, "line 1".to_owned(), format!("more than {COLUMNS_MAX} columns")));
        }
        self.columns = names.iter().map(|_| StringBuilder::new()).collect();
        sink.header(Header::closed(names))
    }

    fn records(&mut self, sink: &mut dyn Sink) -> Result<(), ImportError> {
        while let Some(step) = self.step()? {
            let (bytes, lines) = match step {
                Step::Record { bytes, lines } => (bytes, lines),
                Step::Incomplete { field, below, is_quoted } => {
                    self.skip(field, self.line + below, is_quoted, sink)?;
                    continue;
                }
            };
            let line = &self.window.unread()[..bytes];
            let expected = self.columns.len();
            // One more delimiter at the end of each line is a habit of hand-written loops.
            let trailing = self.fields.len() == expected + 1 && self.fields[expected].from == self.fields[expected].to;
            if trailing || (self.fields.len() == expected && !(expected == 1 && is_blank(line))) {
                for (column, &field) in self.columns.iter_mut().zip(&self.fields) {
                    if field.from == field.to {
                        column.append_null();
                        continue;
                    }
                    let Text { text, is_utf8, goes_on } = text(line, field);
                    if !is_utf8 || goes_on {
                        let place = format!("{}:{}", self.source.path().display(), self.line);
                        let example = || format!("{place}: `{}`", shortened(&text));
                        sink.stats().note(findings::NOT_UTF8, u64::from(!is_utf8), example);
                        sink.stats().note(findings::TEXT_BEHIND_QUOTE, u64::from(goes_on), example);
                    }
                    column.append_value(text);
                }
                self.lines.push(self.line);
                self.bytes += bytes;
            } else if !is_blank(line) {
                let (number, found) = (self.line, self.fields.len());
                let example = || {
                    let line = String::from_utf8_lossy(line);
                    format!(
                        "{}:{number}: {found} fields, the header has {expected}: `{}`",
                        self.source.path().display(),
                        shortened(line.trim_end())
                    )
                };
                sink.stats().records(1);
                sink.stats().left_out(findings::RAGGED_LINE, 1, example);
            }
            self.window.used(bytes);
            self.line += lines;
            if self.lines.len() == ROWS_PER_BATCH || self.bytes > BATCH_BYTES {
                self.push(sink)?;
            }
        }
        self.push(sink)
    }

    /// The next record of the window, which is filled as far as needed; `None` at the end of the file.
    fn step(&mut self) -> Result<Option<Step>, ImportError> {
        loop {
            let (unread, at_end) = (self.window.unread(), self.window.at_end());
            if !unread.is_empty() {
                let step = record(unread, self.delimiter, at_end, &mut self.fields);
                let is_whole = matches!(step, Step::Record { .. });
                if is_whole || at_end || unread.len() > RECORD_BYTES {
                    return Ok(Some(step));
                }
            } else if at_end {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<(), ImportError> {
        let line = self.line;
        self.window.fill().map_err(|error| damaged(self.source, format!("line {line}"), error))
    }

    /// What is wrong with a field that does not end.
    fn what_does_not_end(&self, is_quoted: bool) -> String {
        let mebibytes = RECORD_BYTES >> 20;
        match (is_quoted, self.window.at_end()) {
            (true, true) => "a quote opens and never closes".to_owned(),
            (true, false) => format!("a quote opens and does not close within {mebibytes} MiB"),
            (false, _) => format!("the line does not end within {mebibytes} MiB"),
        }
    }

    /// Leaves out a record with a field that does not end, to the end of the line in which that begins: that is one loss,
    /// however long the line is.
    fn skip(&mut self, field: usize, number: u64, is_quoted: bool, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let what = self.what_does_not_end(is_quoted);
        let finding = if is_quoted { findings::UNTERMINATED_QUOTE } else { findings::ENDLESS_LINE };
        let (mut at, unread) = (field, self.window.unread());
        let line = String::from_utf8_lossy(&unread[at..unread.len().min(at + 200)]).into_owned();
        sink.stats().records(1);
        sink.stats().left_out(finding, 1, || {
            let line = shortened(line.lines().next().unwrap_or_default());
            format!("{}:{number}: {what}: `{line}`", self.source.path().display())
        });
        self.line = number;
        loop {
            let unread = self.window.unread();
            if let Some(end) = memchr::memchr(b'\n', &unread[at..]) {
                self.window.used(at + end + 1);
                self.line += 1;
                return Ok(());
            }
            self.window.used(unread.len());
            if self.window.at_end() {
                return Ok(());
            }
            self.fill()?;
            at = 0;
        }
    }

    fn push(&mut self, sink: &mut dyn Sink) -> Result<(), ImportError> {
        if self.lines.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let columns = self.columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
        let lines = std::mem::take(&mut self.lines);
        sink.batch(Batch {
            rows: lines.len(),
            columns,
            cells: CellKind::Plain,
            rest: None,
            places: Places::Lines(lines),
        })
    }
}

/// At most 60 characters of a line, for an example.
pub(super) fn shortened(line: &str) -> Cow<'_, str> {
    match line.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &line[..at]).into(),
        None => line.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of each record, and the lines they begin in.
    fn records(input: &str, delimiter: u8) -> Vec<(u64, Vec<String>)> {
        let (mut at, mut line, mut fields, mut all) = (input.as_bytes(), 1, Vec::new(), Vec::new());
        while !at.is_empty() {
            let Step::Record { bytes, lines } = record(at, delimiter, true, &mut fields) else { break };
            all.push((line, fields.iter().map(|&field| text(at, field).text.into_owned()).collect()));
            at = &at[bytes..];
            line += lines;
        }
        all
    }

    #[test]
    fn records_are_cut_as_rfc_4180_says_and_a_bit_beyond() {
        let check = |input: &str, expected: &[&[&str]]| {
            let found: Vec<Vec<String>> = records(input, b',').into_iter().map(|(_, fields)| fields).collect();
            assert_eq!(found, expected, "{input:?}");
        };
        check("a,b\n1,2\n", &[&["a", "b"], &["1", "2"]]);
        check("a,b\r\n1,2", &[&["a", "b"], &["1", "2"]]);
        check("\"a,\"\"b\"\"\",c\n", &[&["a,\"b\"", "c"]]);
        check("\"a\nb\",c\nd,e", &[&["a\nb", "c"], &["d", "e"]]);
        check("\"a\"\r\n\"\",\n", &[&["a"], &["", ""]]);
        check("\"a\" b,c\n", &[&["a b", "c"]]);
        check("a\"b,c\"\n", &[&["a\"b", "c\""]]);
        check("\"a,b\nc,d", &[]);
        check("\"a\"", &[&["a"]]);
        check(",", &[&["", ""]]);
    }

    #[test]
    fn quoted_line_ends_count_as_lines() {
        let lines: Vec<u64> = records("a\n\"b\n\nc\"\nd\n", b',').into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [1, 2, 5]);
    }

    #[test]
    fn every_cut_of_the_input_gives_the_same_records() {
        let input = "a,b\r\n\"x\"\"y\",\"\n\"\n1,\r\n";
        let whole = records(input, b',');
        for cut in 0..input.len() {
            let mut fields = Vec::new();
            if let Step::Record { bytes, lines } = record(&input.as_bytes()[..cut], b',', false, &mut fields) {
                assert_eq!((bytes, lines), (5, 1), "cut at {cut}");
            }
        }
        assert_eq!(whole.len(), 3);
    }

    #[test]
    fn delimiters_are_sniffed() {
        let check = |head: &str, expected| assert_eq!(sniff(head.as_bytes()) as char, expected, "{head:?}");
        check("a,b,c\n1,2,3\n", ',');
        check("a\tb\n1,5\t2\n", '\t');
        check("a;b;c\n1,5;2,5;3\n", ';');
        check("a|b\n1|2\n", '|');
        check("name,args\nx,\"a;b;c;d\"\n", ',');
        check("plain\n", ',');
    }

    #[test]
    fn headers_tell_tables_from_prose() {
        let check = |head: &str, expected: Option<&[&str]>| {
            let expected = expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
            assert_eq!(header(head.as_bytes()), expected, "{head:?}");
        };
        check("a, b ,a,\n1,2,3,4\n", Some(&["a", "b", "a_2", "column_4"]));
        check("a,b\n1,2,\n", Some(&["a", "b"]));
        check("Dear Sir,\nhow, are, you\n", None);
        check("one\ntwo\n", None);
        check("a,b\n1,2\n1\n", Some(&["a", "b"]));
    }

    #[test]
    fn columns_of_one_name_are_told_apart_however_many_they_are() {
        assert_eq!(names(["a", "a_2", "a", "a"].map(str::to_owned).into_iter()), ["a", "a_2", "a_3", "a_4"]);
        // A search through all names for each of them took minutes here: a find of the fuzzers.
        for field in ["a", ""] {
            let many = names(std::iter::repeat_n(field.to_owned(), 100_000));
            assert!(many.last().is_some_and(|last| last.ends_with("_100000")), "{:?}", many.last());
        }
    }
}
