//! `csv` and `tsv`: exact values, times as integers, for programs.
//!
//! Cells are quoted if they contain the delimiter, a quote or a line end, or begin or end with a blank. NULL is an
//! empty cell and an empty text is `""`, as in PostgreSQL, so that the two can be told apart. Several results are
//! separated by an empty line.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

use super::cells::Cells;
use super::writer::{Output, Writer};
use crate::errors::Failure;

pub(super) struct Delimited {
    writer: Writer,
    delimiter: char,
    results: usize,
}

impl Delimited {
    pub(super) fn csv(writer: Writer) -> Delimited {
        Delimited { writer, delimiter: ',', results: 0 }
    }

    pub(super) fn tsv(writer: Writer) -> Delimited {
        Delimited { writer, delimiter: '\t', results: 0 }
    }

    fn append(&self, cell: &str, line: &mut String) {
        let special = |c: char| c == self.delimiter || matches!(c, '"' | '\n' | '\r');
        if cell.is_empty() || cell.contains(special) || cell.starts_with(' ') || cell.ends_with(' ') {
            line.push('"');
            line.push_str(&cell.replace('"', "\"\""));
            line.push('"');
        } else {
            line.push_str(cell);
        }
    }
}

impl Output for Delimited {
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Failure> {
        let mut line = String::new();
        if self.results > 0 {
            line.push('\n');
        }
        self.results += 1;
        for (index, field) in schema.fields().iter().enumerate() {
            if index > 0 {
                line.push(self.delimiter);
            }
            self.append(field.name(), &mut line);
        }
        line.push('\n');
        Ok(self.writer.write_all(line.as_bytes())?)
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let cells = Cells::new(batch)?;
        let (mut lines, mut cell) = (String::new(), String::new());
        for row in 0..batch.num_rows() {
            for column in 0..batch.num_columns() {
                if column > 0 {
                    lines.push(self.delimiter);
                }
                if !cells.is_null(column, row) {
                    cell.clear();
                    cells.exact(column, row, &mut cell)?;
                    self.append(&cell, &mut lines);
                }
            }
            lines.push('\n');
        }
        Ok(self.writer.write_all(lines.as_bytes())?)
    }

    fn end(&mut self) -> Result<(), Failure> {
        Ok(self.writer.flush()?)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(self.writer.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;
    use crate::output::buffer::{Buffer, write};

    #[test]
    fn null_and_empty_stay_apart_and_special_cells_are_quoted() {
        let batch = RecordBatch::try_from_iter([
            ("na,me", Arc::new(StringArray::from(vec![Some(""), None, Some("a\"b"), Some("x\ty")])) as ArrayRef),
            ("start", Arc::new(Int64Array::from(vec![Some(1_500), None, Some(-3), Some(0)])) as ArrayRef),
        ])
        .unwrap();
        let buffer = Buffer::default();
        write(&mut Delimited::csv(buffer.writer()), std::slice::from_ref(&batch));
        assert_eq!(buffer.text(), "\"na,me\",start\n\"\",1500\n,\n\"a\"\"b\",-3\nx\ty,0\n");
        let buffer = Buffer::default();
        write(&mut Delimited::tsv(buffer.writer()), &[batch]);
        assert_eq!(buffer.text(), "na,me\tstart\n\"\"\t1500\n\t\n\"a\"\"b\"\t-3\n\"x\ty\"\t0\n");
    }
}
