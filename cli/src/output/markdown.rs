//! `markdown`: a table for a page, times for people. `|` and line ends in cells are escaped.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use tq_udfs::ticks::Tick;

use super::{Cells, Output, Writer, cells};
use crate::errors::Failure;

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
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '~' => {
                escaped.push('\\');
                escaped.push(c);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\n' => escaped.push_str("<br>"),
            '\r' => {}
            c if c.is_control() => escaped.push_str(&c.escape_default().to_string()),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;
    use crate::output::testing::{Buffer, write};

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
