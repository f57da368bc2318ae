//! Parquet, a row group at a time, with DataFusion's reader.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use datafusion::arrow::array::RecordBatchReader;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use datafusion::parquet::file::metadata::ParquetMetaData;

use super::{Header, Sink, damaged, push_arrow};
use crate::error::ImportError;
use crate::trace::{ROWS_PER_BATCH, Source, budget};

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
    let builder = guarded(source, || ParquetRecordBatchReaderBuilder::try_new(file))?;
    let memory = source.budget().hold(format!("reading {}", source.path().display()));
    budget::grow(&memory, batch_bytes(builder.metadata(), source)?).map_err(|error| source.io_error(error))?;
    let mut reader = guarded(source, || builder.with_batch_size(ROWS_PER_BATCH).build())?;
    let names = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
    sink.header(Header::closed(names))?;
    let mut row = 1;
    while let Some(batch) = guarded(source, || reader.next().transpose())? {
        push_arrow(source, &batch, &mut row, sink)?;
    }
    Ok(())
}

/// What a batch takes at most, where rows are of about equal size: its pages and its columns.
fn batch_bytes(metadata: &ParquetMetaData, source: &Source) -> Result<usize, ImportError> {
    const TIMES: usize = 2;
    let size = |number: i64| usize::try_from(number).unwrap_or(0);
    let mut most = 0;
    for group in metadata.row_groups() {
        let rows = size(group.num_rows()).max(1);
        let mut of_group: usize = 0;
        for column in group.columns() {
            // A dictionary makes it smaller than its values, never larger: the mean value is at least so long.
            let of_row = size(column.uncompressed_size()).div_ceil(rows);
            if of_row > source.budget().record_bytes() {
                let what = format!("a value of column `{}` has about {of_row} bytes", column.column_path().string());
                return Err(ImportError::TooLong { path: source.path().to_owned(), what });
            }
            of_group = of_group.saturating_add(of_row.saturating_mul(rows.min(ROWS_PER_BATCH)));
        }
        most = most.max(of_group);
    }
    Ok(most.saturating_mul(TIMES))
}

/// The reader checks most of what it reads and panics over the rest: both are damage to the file.
fn guarded<T, E: ToString>(source: &Source, read: impl FnOnce() -> Result<T, E>) -> Result<T, ImportError> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|error| damaged(source, "Parquet".to_owned(), error)),
        Err(_) => Err(damaged(source, "Parquet".to_owned(), "a page contradicts its header")),
    }
}
