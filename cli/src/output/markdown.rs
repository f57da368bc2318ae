//! `markdown`: a table for a page, with times for people. Whatever a name in a trace could be mistaken for (cell borders,
//! links, addresses that become links, pictures, tags, emphasis) is escaped.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use tq_udfs::ticks::Tick;

use super::cells;
use super::cells::Cells;
use super::writer::{Output, Writer};
use crate::errors::Failure;
use crate::text::visible::push_visible;

pub(crate) struct Markdown {
    writer: Writer,
    tick: Tick,
    results: usize,
}

impl Markdown {
    pub(crate) fn new(writer: Writer, tick: Tick) -> Markdown {
        Markdown { writer, tick, results: 0 }
    }
}

impl Output for Markdown {
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Failure> {
        if self.results > 0 {
            self.writer.write_all(b"\n")?;
        }
        self.results += 1;
        Ok(self.writer.write_all(head(schema).as_bytes())?)
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        Ok(self.writer.write_all(body(batch, self.tick)?.as_bytes())?)
    }

    fn end(&mut self) -> Result<(), Failure> {
        Ok(self.writer.flush()?)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(self.writer.flush()?)
    }
}

/// A whole table, for pages.
pub(crate) fn table(batch: &RecordBatch, tick: Tick) -> Result<String, Failure> {
    Ok(head(&batch.schema()) + &body(batch, tick)?)
}

fn head(schema: &SchemaRef) -> String {
    let names: Vec<String> = schema.fields().iter().map(|field| escape(field.name())).collect();
    let rules: Vec<&str> =
        cells::kinds(schema).into_iter().map(|kind| if kind.is_right() { "---:" } else { "---" }).collect();
    format!("| {} |\n| {} |\n", names.join(" | "), rules.join(" | "))
}

fn body(batch: &RecordBatch, tick: Tick) -> Result<String, Failure> {
    let cells = Cells::new(batch)?;
    let mut lines = String::new();
    for row in 0..batch.num_rows() {
        lines.push('|');
        for column in 0..batch.num_columns() {
            let cell = cells.shown(column, row, tick)?;
            lines.push(' ');
            lines.push_str(&cell.map_or_else(|| "*NULL*".to_owned(), |cell| escape(&cell)));
            lines.push_str(" |");
        }
        lines.push('\n');
    }
    Ok(lines)
}

/// Text that markdown shows as it is.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let is_inside = |at: usize| {
        let inner = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        inner(text[..at].chars().next_back()) && inner(text[at + 1..].chars().next())
    };
    for (at, c) in text.char_indices() {
        match c {
            // Inside of a word it is no markup.
            '_' if is_inside(at) => escaped.push('_'),
            // GitHub makes links of bare addresses, and formulas of what stands between dollars.
            ':' if !text[at + 1..].starts_with("//") => escaped.push(':'),
            '.' if !text.as_bytes()[at.saturating_sub(3)..at].eq_ignore_ascii_case(b"www") => escaped.push('.'),
            '@' if !is_inside(at) => escaped.push('@'),
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '~' | ':' | '.' | '@' | '$' => {
                escaped.push('\\');
                escaped.push(c);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' => escaped.push_str("<br>"),
            c => push_visible(c, &mut escaped),
        }
    }
    escaped
}

/// [`escape`] for a text at the beginning of a line, where more would be markup: headings, lists, rules, quotes.
pub(crate) fn escape_line(text: &str) -> String {
    let escaped = escape(text.trim());
    let digits = escaped.bytes().take_while(u8::is_ascii_digit).count();
    let mut behind = escaped[digits..].chars();
    let is_number = digits > 0 && matches!(behind.next(), Some('.' | ')')) && matches!(behind.next(), None | Some(' '));
    match escaped.chars().next() {
        Some('#' | '+' | '-' | '=') => format!("\\{escaped}"),
        Some(_) if is_number => format!("{}\\{}", &escaped[..digits], &escaped[digits..]),
        _ => escaped,
    }
}

/// Lines as they are, behind a fence that none of them closes.
pub(crate) fn fenced(lines: &str) -> String {
    let longest = lines.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{lines}\n{fence}\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;
    use crate::output::buffer::{Buffer, write};

    #[test]
    fn names_are_no_markup() {
        for (text, expected) in [
            ("a|b", "a\\|b"),
            ("[x](http://e.com)", "\\[x\\](http\\://e.com)"),
            ("![x](y)", "!\\[x\\](y)"),
            ("https://e.com www.e.com WWW.e.com", "https\\://e.com www\\.e.com WWW\\.e.com"),
            ("a@b.c std::vec 1.5", "a\\@b.c std::vec 1.5"),
            ("<img src=x onerror=y>", "&lt;img src=x onerror=y&gt;"),
            ("&#60;b&#62;", "&amp;#60;b&amp;#62;"),
            ("`a` ~~b~~ *c* _d_ $e$ f_g", "\\`a\\` \\~\\~b\\~\\~ \\*c\\* \\_d\\_ \\$e\\$ f_g"),
            ("a\\|b", "a\\\\\\|b"),
            ("a\r\nb\u{202e}\u{1b}[0m", "a\\r<br>b\\u{202e}\\u{1b}\\[0m"),
        ] {
            assert_eq!(escape(text), expected);
        }
        for (text, expected) in [
            ("# head", "\\# head"),
            ("- a", "\\- a"),
            ("1. a", "1\\. a"),
            ("12) a", "12\\) a"),
            ("    code", "code"),
            ("1.5 of 3", "1.5 of 3"),
            ("> a", "&gt; a"),
            ("===", "\\==="),
        ] {
            assert_eq!(escape_line(text), expected);
        }
        assert_eq!(fenced("a\n```\n````b"), "`````text\na\n```\n````b\n`````\n");
        assert_eq!(fenced("a"), "```text\na\n```\n");
    }

    #[test]
    fn cells_cannot_break_the_table() {
        let batch = RecordBatch::try_from_iter([
            ("name", Arc::new(StringArray::from(vec![Some("a|b\nc"), None])) as ArrayRef),
            ("duration", Arc::new(Int64Array::from(vec![1_234_567, 0]))),
        ])
        .unwrap();
        let buffer = Buffer::default();
        write(&mut Markdown::new(buffer.writer(), Tick::Nanosecond), &[batch]);
        assert_eq!(buffer.text(), "| name | duration |\n| --- | ---: |\n| a\\|b<br>c | 1.23 ms |\n| *NULL* | 0 s |\n");
    }
}
