//! `arrow`: one result as Arrow IPC, in the file format for files and in the streaming format for pipes and `.arrows`.
//!
//! Dictionaries become plain text: each run has its own, and the file format allows one per column.

use std::io::Write;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::{FileWriter, StreamWriter};

use super::unique;
use super::writer::{Output, Writer, only_one};
use crate::errors::Failure;

pub(super) struct Arrow {
    streamed: bool,
    writer: Option<Writer>,
    schema: SchemaRef,
    open: Option<Open>,
}

enum Open {
    File(FileWriter<Writer>),
    Stream(StreamWriter<Writer>),
}

impl Arrow {
    pub(super) fn new(writer: Writer, streamed: bool) -> Arrow {
        Arrow { streamed, writer: Some(writer), schema: Arc::new(Schema::empty()), open: None }
    }
}

impl Output for Arrow {
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Failure> {
        let Some(writer) = self.writer.take() else { return Err(only_one("arrow")) };
        self.schema =
            Arc::new(Schema::new(unique::unique(schema).fields().iter().map(|field| plain(field)).collect::<Vec<_>>()));
        self.open = Some(if self.streamed {
            Open::Stream(StreamWriter::try_new(writer, &self.schema)?)
        } else {
            Open::File(FileWriter::try_new(writer, &self.schema)?)
        });
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let columns =
            batch.columns().iter().zip(self.schema.fields()).map(|(column, field)| cast(column, field.data_type()));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns.collect::<Result<_, ArrowError>>()?)?;
        match &mut self.open {
            Some(Open::File(file)) => Ok(file.write(&batch)?),
            Some(Open::Stream(stream)) => Ok(stream.write(&batch)?),
            None => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), Failure> {
        let mut writer = match self.open.take() {
            Some(Open::File(file)) => file.into_inner()?,
            Some(Open::Stream(stream)) => stream.into_inner()?,
            None => return Ok(()),
        };
        Ok(writer.flush()?)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

fn plain(field: &Field) -> Field {
    match field.data_type() {
        DataType::Dictionary(_, values) => field.clone().with_data_type(values.as_ref().clone()),
        _ => field.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use datafusion::arrow::array::{ArrayRef, AsArray, DictionaryArray};
    use datafusion::arrow::datatypes::Int32Type;
    use datafusion::arrow::ipc::reader::{FileReader, StreamReader};

    use super::*;
    use crate::output::buffer::{Buffer, write};

    #[test]
    fn both_forms_read_back_whatever_the_dictionaries() {
        let batch = |words: [&str; 2]| {
            let words: DictionaryArray<Int32Type> = words.into_iter().collect();
            RecordBatch::try_from_iter([("name", Arc::new(words) as ArrayRef)]).unwrap()
        };
        for streamed in [true, false] {
            let buffer = Buffer::default();
            write(&mut Arrow::new(buffer.writer(), streamed), &[batch(["a", "b"]), batch(["c", "a"])]);
            let bytes = Cursor::new(buffer.bytes());
            let read: Vec<RecordBatch> = if streamed {
                StreamReader::try_new(bytes, None).unwrap().map(Result::unwrap).collect()
            } else {
                FileReader::try_new(bytes, None).unwrap().map(Result::unwrap).collect()
            };
            assert_eq!(read[1].column(0).as_string::<i32>().value(0), "c");
        }
    }
}
