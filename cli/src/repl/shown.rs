//! An answer at the prompt: the first rows as a table, a count of the others, and all of it kept for `\plot`.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;

use crate::errors::Failure;
use crate::output::{Look, Output, TableOutput, Writer};

/// Rows that `\plot` can draw.
const KEPT: usize = 200_000;

/// The rows of the last answer.
#[derive(Debug, Clone)]
pub(super) struct LastAnswer {
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<RecordBatch>,
    /// Rows of the whole answer; more than the batches have where it was too long.
    pub(super) rows: usize,
    /// What `\plot` draws of it where nothing is said.
    pub(super) picture: String,
}

/// A table that ends after some rows.
pub(super) struct Shown {
    table: TableOutput,
    limit: u64,
    shown: u64,
    pub(super) last: Option<LastAnswer>,
}

impl Shown {
    pub(super) fn new(writer: Writer, look: Look, rows: Option<u64>) -> Shown {
        Shown { table: TableOutput::new(writer, look), limit: rows.unwrap_or(u64::MAX), shown: 0, last: None }
    }
}

impl Output for Shown {
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Failure> {
        self.shown = 0;
        self.last = Some(LastAnswer { schema: schema.clone(), batches: Vec::new(), rows: 0, picture: String::new() });
        self.table.begin(schema)
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        if let Some(last) = &mut self.last {
            let kept: usize = last.batches.iter().map(RecordBatch::num_rows).sum();
            if kept < KEPT {
                last.batches.push(batch.slice(0, batch.num_rows().min(KEPT - kept)));
            }
            last.rows += batch.num_rows();
        }
        let room = usize::try_from(self.limit - self.shown).unwrap_or(usize::MAX);
        let part = batch.slice(0, batch.num_rows().min(room));
        self.shown += part.num_rows() as u64;
        if part.num_rows() > 0 {
            self.table.rows(&part)?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        let rows = self.last.as_ref().map_or(0, |last| last.rows as u64);
        if rows > self.shown {
            self.table.there_are_more(rows);
        }
        self.table.end()
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.table.close()
    }
}
