//! Read: groups of rows of a store's files as rows of a session, in the order of the trace.
//!
//! What comes from the file is compared with checksums first ([`super::blocks`]) and checked then: a stranger's file may have right
//! checksums and wrong numbers. A panic of the Parquet reader is damage of the file, too.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take};
use datafusion::arrow::datatypes::{Int64Type, Schema};
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use datafusion::parquet::file::statistics::Statistics;

use super::blocks::Verified;
use super::layout::{check_folder, damaged, open_plain, parts_of, runs_folder};
use super::log::{GROUP_ROWS, StoredFile};
use super::write::{PAGE_ROWS, file_schema};
use crate::error::ImportError;
use crate::tables::{ColumnType, Table};
use crate::time::REACH;

/// Positions lie below this.
const POSITIONS: i64 = 1 << 40;

/// A Parquet file of a store, its footer read once.
#[derive(Debug)]
pub(super) struct TableFile {
    path: PathBuf,
    about: Arc<StoredFile>,
    table: Table,
    footer: OnceLock<ArrowReaderMetadata>,
}

/// A group of rows, and how they become rows of the session.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(super) file: Arc<TableFile>,
    pub(super) index: usize,
    /// The position in the run of its first row.
    pub(super) position: i64,
    /// The session's ticks in one of the run.
    pub(super) factor: i64,
    /// The first identity of the run in the session.
    pub(super) identity: i64,
}

impl TableFile {
    pub(super) fn new(root: &Path, about: &Arc<StoredFile>) -> Result<TableFile, ImportError> {
        let path = runs_folder(root).join(&about.path);
        let table = Table::from_name(&about.table).ok_or_else(|| damaged(&path, "it is of no table"))?;
        Ok(TableFile { path, about: Arc::clone(about), table, footer: OnceLock::new() })
    }

    fn open(&self) -> Result<Verified, ImportError> {
        let (folder, runs) = (self.path.parent(), self.path.parent().and_then(Path::parent));
        for folder in [runs, folder].into_iter().flatten() {
            check_folder(folder)?;
        }
        if parts_of(&self.about.path).is_none() {
            return Err(damaged(&self.path, "a store has no such file"));
        }
        let file = open_plain(&self.path)?;
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        if bytes != self.about.bytes {
            return Err(damaged(&self.path, format!("it has {bytes} bytes instead of {}", self.about.bytes)));
        }
        Ok(Verified::new(file, Arc::clone(&self.about)))
    }

    fn footer(&self, file: &Verified) -> Result<&ArrowReaderMetadata, ImportError> {
        if let Some(footer) = self.footer.get() {
            return Ok(footer);
        }
        let options = ArrowReaderOptions::new().with_schema(file_schema(self.table)).with_skip_arrow_metadata(true);
        let footer = guarded(&self.path, || ArrowReaderMetadata::load(file, options))?;
        let groups = footer.metadata().row_groups();
        let rows = groups.iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(u64::MAX));
        if !rows.eq(self.about.groups.iter().copied()) {
            return Err(damaged(&self.path, "it has not the rows that its commit says"));
        }
        let columns = footer.parquet_schema().columns();
        let names = self.table.spec().columns.iter().map(|column| column.name);
        if !columns.iter().map(|column| column.name()).eq(names) {
            return Err(damaged(&self.path, format!("its columns are not those of `{}`", self.table)));
        }
        Ok(self.footer.get_or_init(|| footer))
    }
}

impl Group {
    /// How many rows it has.
    pub(super) fn rows(&self) -> usize {
        self.file.about.groups.get(self.index).map_or(0, |rows| (*rows).min(GROUP_ROWS) as usize)
    }

    /// The least and the greatest value of a column of whole numbers in the session, as the footer of the file tells; `None` where it
    /// does not.
    pub(super) fn bounds(&self, column: usize) -> Result<Option<(i128, i128)>, ImportError> {
        let footer = match self.file.footer.get() {
            Some(footer) => footer,
            None => self.file.footer(&self.file.open()?)?,
        };
        let chunk = footer.metadata().row_groups().get(self.index).and_then(|group| group.columns().get(column));
        let Some(Statistics::Int64(values)) = chunk.and_then(|chunk| chunk.statistics()) else { return Ok(None) };
        let Some((least, greatest)) = values.min_opt().zip(values.max_opt()) else { return Ok(None) };
        let of_session = |value: i64| match self.file.table.spec().columns[column].column_type {
            ColumnType::Time => i128::from(value) * i128::from(self.factor),
            ColumnType::Identity => i128::from(value) + i128::from(self.identity),
            _ => i128::from(value),
        };
        Ok(Some((of_session(*least), of_session(*greatest))))
    }

    /// These columns of the session's table, which have no `run` among them, in the order of the trace.
    pub(super) fn read(&self, columns: &[usize]) -> Result<RecordBatch, ImportError> {
        let (table, rows) = (self.file.table, self.rows());
        // In groups of more than a page, positions tell the order.
        let is_clustered = table == Table::Tasks && rows > PAGE_ROWS;
        let mut wanted = columns.to_vec();
        wanted.extend(is_clustered.then_some(1));
        wanted.sort_unstable();
        wanted.dedup();
        let raw = self.raw(&wanted)?;
        let mut order = None;
        if let Some(at) = wanted.iter().position(|column| *column == 1 && table.has_identity()) {
            order = self.order(raw.column(at).as_primitive::<Int64Type>())?;
        }
        let wrong = |error: datafusion::arrow::error::ArrowError| damaged(&self.file.path, error.to_string());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
        for column in columns {
            let at = wanted.iter().position(|wanted| wanted == column).unwrap_or_default();
            let array = self.of_session(*column, raw.column(at))?;
            arrays.push(match &order {
                Some(order) => take(&array, order, None).map_err(wrong)?,
                None => array,
            });
        }
        let fields: Vec<_> = columns.iter().map(|column| table.schema().field(*column).clone()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options).map_err(wrong)
    }

    /// The columns as they stand in the file.
    fn raw(&self, columns: &[usize]) -> Result<RecordBatch, ImportError> {
        let file = self.file.open()?;
        let footer = self.file.footer(&file)?.clone();
        let rows = self.rows();
        let schema = file_schema(self.file.table);
        let schema = Arc::new(schema.project(columns).map_err(|error| damaged(&self.file.path, error.to_string()))?);
        let batch = guarded(&self.file.path, || {
            let mask = ProjectionMask::roots(footer.parquet_schema(), columns.iter().copied());
            let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, footer)
                .with_row_groups(vec![self.index])
                .with_projection(mask)
                .with_batch_size(rows.max(1))
                .build()?;
            let batches = reader.collect::<Result<Vec<_>, _>>()?;
            match batches.as_slice() {
                [batch] => Ok(batch.clone()),
                batches => Ok(concat_batches(&schema, batches)?),
            }
        })?;
        match batch.num_rows() == rows && batch.num_columns() == columns.len() {
            true => Ok(batch),
            false => Err(damaged(&self.file.path, format!("group {} has not the rows that it should", self.index))),
        }
    }

    /// Where the row of each position is; `None` where the rows stand in their order.
    fn order(&self, positions: &Int64Array) -> Result<Option<UInt32Array>, ImportError> {
        let wrong = || damaged(&self.file.path, format!("the positions in group {} are wrong", self.index));
        if positions.null_count() > 0 {
            return Err(wrong());
        }
        let mut order = vec![u32::MAX; positions.len()];
        let mut is_in_order = true;
        for (row, position) in (0u32..).zip(positions.values()) {
            let place = position.checked_sub(self.position).and_then(|place| usize::try_from(place).ok());
            let slot = place.and_then(|place| order.get_mut(place)).filter(|slot| **slot == u32::MAX);
            *slot.ok_or_else(wrong)? = row;
            is_in_order &= place == Some(row as usize);
        }
        Ok((!is_in_order).then(|| order.into()))
    }

    /// A column of the file with the session's identities and ticks.
    fn of_session(&self, column: usize, array: &ArrayRef) -> Result<ArrayRef, ImportError> {
        let column = &self.file.table.spec().columns[column];
        let wrong =
            |value: i64| damaged(&self.file.path, format!("`{}` has the value {value}, which cannot be", column.name));
        Ok(match column.column_type {
            ColumnType::Identity => {
                let of_session = |position: i64| match (0..POSITIONS).contains(&position) {
                    true => Ok(position + self.identity),
                    false => Err(wrong(position)),
                };
                Arc::new(array.as_primitive::<Int64Type>().try_unary::<_, Int64Type, _>(of_session)?)
            }
            ColumnType::Time => {
                let is_length = column.name == "duration";
                let of_session = |time: i64| {
                    let scaled = time.checked_mul(self.factor).filter(|time| REACH.contains(time) || is_length);
                    scaled.ok_or_else(|| wrong(time))
                };
                Arc::new(array.as_primitive::<Int64Type>().try_unary::<_, Int64Type, _>(of_session)?)
            }
            _ => Arc::clone(array),
        })
    }
}

/// Asks the Parquet reader; its panics are damage of the file.
fn guarded<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, datafusion::parquet::errors::ParquetError>,
) -> Result<T, ImportError> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(error)) => {
            let text = error.to_string();
            let text = ["External: ", "Parquet error: ", "Arrow: "]
                .iter()
                .fold(text.as_str(), |text, prefix| text.strip_prefix(prefix).unwrap_or(text));
            Err(damaged(path, text))
        }
        Err(_) => Err(damaged(path, "it is no Parquet file that can be read")),
    }
}
