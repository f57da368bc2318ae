//! `parquet`: one result as a file, zstd-compressed; the schema in the footer keeps which columns are times.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;

use super::unique;
use super::writer::{Output, Writer, only_one};
use crate::errors::{Failure, Problem};

pub(super) struct Parquet {
    writer: Option<Writer>,
    file: Option<ArrowWriter<Writer>>,
}

impl Parquet {
    pub(super) fn new(writer: Writer) -> Parquet {
        Parquet { writer: Some(writer), file: None }
    }
}

impl Output for Parquet {
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Failure> {
        let Some(writer) = self.writer.take() else { return Err(only_one("parquet")) };
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        self.file = Some(ArrowWriter::try_new(writer, unique::unique(schema), Some(properties))?);
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        match &mut self.file {
            Some(file) => Ok(file.write(&unique::renamed(batch)?)?),
            None => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), Failure> {
        match self.file.take() {
            Some(file) => Ok(file.into_inner().map(|mut writer| writer.flush())??),
            None => Ok(()),
        }
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
                Ok(error) => (*error).into(),
                Err(inner) => Problem::new(format!("cannot write parquet: {inner}")).into(),
            },
            error => Problem::new(format!("cannot write parquet: {error}")).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::Schema;
    use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use tq_udfs::ticks::{is_time, time_field};

    use super::*;
    use crate::output::buffer::{Buffer, write};

    #[test]
    fn a_file_reads_back_with_its_times() {
        let schema = Arc::new(Schema::new(vec![time_field("path", true)]));
        let batch = RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(vec![Some(1), None]))]).unwrap();
        let buffer = Buffer::default();
        write(&mut Parquet::new(buffer.writer()), std::slice::from_ref(&batch));
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &buffer.bytes()).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        assert!(is_time(reader.schema().field(0)));
        assert_eq!(reader.build().unwrap().next().unwrap().unwrap().columns(), batch.columns());
    }
}
