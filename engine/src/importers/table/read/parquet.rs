//! Parquet, a row group at a time, with DataFusion's reader.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use datafusion::arrow::array::RecordBatchReader;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{Header, Sink, damaged, push_arrow};
use crate::error::ImportError;
use crate::trace::{ROWS_PER_BATCH, Source};

/// The columns, where the footer can be read without a copy of the file.
pub(super) fn columns(source: &Source) -> Option<Vec<String>> {
    source.known_bytes()?;
    let file = source.local_file().ok()?;
    let file = File::open(file.path()).ok()?;
    let builder = guarded(source, || ParquetRecordBatchReaderBuilder::try_new(file)).ok()?;
    Some(builder.schema().fields().iter().map(|field| field.name().clone()).collect())
}

pub(super) fn read(source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let local = source.local_file()?;
    let file = File::open(local.path()).map_err(|error| source.io_error(error))?;
    let mut reader = guarded(source, || {
        ParquetRecordBatchReaderBuilder::try_new(file)
            .and_then(|builder| builder.with_batch_size(ROWS_PER_BATCH).build())
    })?;
    let names = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    sink.header(Header::closed(names))?;
    let mut row = 1;
    while let Some(batch) = guarded(source, || reader.next().transpose())? {
        push_arrow(source, &batch, &mut row, sink)?;
    }
    Ok(())
}

/// The reader checks most of what it reads and panics over the rest: both are damage to the file.
fn guarded<T, E: ToString>(source: &Source, read: impl FnOnce() -> Result<T, E>) -> Result<T, ImportError> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|error| damaged(source, "Parquet".to_owned(), error)),
        Err(_) => Err(damaged(source, "Parquet".to_owned(), "a page contradicts its header")),
    }
}
