//! Makes column names unique, for formats that need it: `a`, `a` becomes `a`, `a_1`.
//!
//! `SELECT a, b AS a` is valid, and tables, CSV and markdown show it unchanged. A JSON object would lose a column, and
//! readers of Parquet and Arrow access columns by name.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use tq_engine::sql::names::unique_names;

/// The schema with every name unique.
pub(super) fn unique(schema: &SchemaRef) -> SchemaRef {
    let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let unique = unique_names(&names);
    if unique == names {
        return Arc::clone(schema);
    }
    let fields = schema.fields().iter().zip(unique).map(|(field, name)| field.as_ref().clone().with_name(name));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// The batch under the names of [`unique`].
pub(super) fn renamed(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(unique(&batch.schema()), batch.columns().to_vec(), &options)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, Int64Array};

    use super::*;
    use crate::output::buffer::{Buffer, write};

    fn batch(names: &[&str]) -> RecordBatch {
        let column = |number| Arc::new(Int64Array::from(vec![number])) as ArrayRef;
        let fields = names
            .iter()
            .map(|name| datafusion::arrow::datatypes::Field::new(*name, column(0).data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        RecordBatch::try_new(schema, (1..).take(names.len()).map(column).collect()).unwrap()
    }

    #[test]
    fn names_come_once_in_formats_of_names() {
        let batch = batch(&["a", "a", "a_1", "b", "a"]);
        let buffer = Buffer::default();
        write(&mut super::super::json::Json::lines(buffer.writer()), std::slice::from_ref(&batch));
        assert_eq!(buffer.text(), "{\"a\":1,\"a_2\":2,\"a_1\":3,\"b\":4,\"a_3\":5}\n");
        let buffer = Buffer::default();
        write(&mut super::super::delimited::Delimited::csv(buffer.writer()), std::slice::from_ref(&batch));
        assert_eq!(buffer.text(), "a,a,a_1,b,a\n1,2,3,4,5\n");
        let buffer = Buffer::default();
        write(&mut super::super::arrow::Arrow::new(buffer.writer(), true), std::slice::from_ref(&batch));
        let read =
            datafusion::arrow::ipc::reader::StreamReader::try_new(std::io::Cursor::new(buffer.bytes()), None).unwrap();
        assert_eq!(read.schema(), unique(&batch.schema()));
        let buffer = Buffer::default();
        write(&mut super::super::parquet::Parquet::new(buffer.writer()), std::slice::from_ref(&batch));
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &buffer.bytes()).unwrap();
        let reader = datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let names: Vec<&str> = reader.schema().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["a", "a_2", "a_1", "b", "a_3"]);
    }
}
