//! `svg` with a chart: keeps the columns that the chart reads, and draws when the answer is complete.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use tq_udfs::ticks::Tick;

use super::writer::{Output, Writer, only_one};
use crate::charts::{Chart, Data, Names};
use crate::errors::Failure;

pub(crate) struct ChartOutput {
    writer: Writer,
    tick: Tick,
    title: String,
    chart: Chart,
    names: Names,
    answer: Option<Answer>,
}

struct Answer {
    /// The columns of the whole answer that are kept.
    kept: Vec<usize>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl ChartOutput {
    pub(crate) fn new(writer: Writer, tick: Tick, title: String, chart: Chart, names: Names) -> ChartOutput {
        ChartOutput { writer, tick, title, chart, names, answer: None }
    }
}

impl Output for ChartOutput {
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Failure> {
        if self.answer.is_some() {
            return Err(only_one("svg"));
        }
        // What is wrong with the columns is said before the query runs, with the names of all of them.
        self.chart.draw(&self.title, &Data { schema, batches: &[], tick: self.tick, names: &self.names })?;
        let columns = self.chart.columns();
        let kept: Vec<usize> = (0..schema.fields().len())
            .filter(|&index| columns.contains(&schema.field(index).name().as_str()))
            .collect();
        let schema = schema.project(&kept)?.into();
        self.answer = Some(Answer { kept, schema, batches: Vec::new() });
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        if let Some(answer) = &mut self.answer {
            answer.batches.push(batch.project(&answer.kept)?);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        if let Some(Answer { schema, batches, .. }) = &self.answer {
            let picture =
                self.chart.draw(&self.title, &Data { schema, batches, tick: self.tick, names: &self.names })?;
            self.writer.write_all(picture.as_bytes())?;
        }
        Ok(self.writer.flush()?)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
