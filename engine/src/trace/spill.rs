//! Spill: what an import has read and does not need before the end waits on disk, so that a trace may be larger than memory.
//!
//! ```text
//! RunBuilder   chunk, chunk, chunk   ->  one temporary file  ->   chunk by chunk into the store
//! an importer  records, texts        ->  (the same file)     ->   block by block into the builder
//! ```
//! Only `tq import` spills: a session needs its tables in memory. Nothing is written before a quarter of `--memory` is in use, so small
//! traces never touch the disk twice. The file has no name, so that it is gone whatever ends the process.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Int32Type, Int64Type, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryPool, MemoryReservation};

use crate::error::{ImportError, io_reason};

/// A temporary file that all runs of an import share.
#[derive(Debug)]
pub(crate) struct Spill {
    folder: PathBuf,
    pool: Arc<dyn MemoryPool>,
    above: usize,
    file: Mutex<Option<(File, u64)>>,
}

/// Bytes of the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    from: u64,
    bytes: u64,
}

/// Columns of a chunk on disk.
#[derive(Debug)]
pub(crate) struct SpilledColumns {
    stretch: Stretch,
    columns: Vec<SpilledColumn>,
    rows: usize,
    /// Bytes that they need when they are read.
    pub(crate) bytes: usize,
}

/// Where a column of a chunk is.
#[derive(Debug)]
enum SpilledColumn {
    OnDisk,
    /// NULLs, of which all chunks have the same array.
    Nulls(ArrayRef),
    /// This key in all rows. Its array would stay in memory for one chunk, where the next one has another constant.
    SameKey(i32),
    /// This number in all rows.
    SameNumber(i64),
}

impl Spill {
    /// Rows go into `folder` as soon as `above` bytes of the pool are in use.
    pub(crate) fn new(folder: PathBuf, pool: &Arc<dyn MemoryPool>, above: usize) -> Spill {
        Spill { folder, pool: Arc::clone(pool), above, file: Mutex::new(None) }
    }

    /// Whether memory has become short enough.
    pub(crate) fn is_due(&self) -> bool {
        self.pool.reserved() >= self.above
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// The disk is full, or cannot be written.
    pub(crate) fn write(&self, parts: &[&[u8]]) -> Result<Stretch, ImportError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let end = file.as_ref().map_or(0, |(_, end)| *end);
        let failed = |error: io::Error| self.failed("written", end, &error);
        let (file, end) = match &mut *file {
            Some(file) => file,
            none => none.insert((tempfile::tempfile_in(&self.folder).map_err(failed)?, 0)),
        };
        let stretch = Stretch { from: *end, bytes: parts.iter().map(|part| part.len() as u64).sum() };
        file.seek(SeekFrom::Start(*end)).map_err(failed)?;
        parts.iter().try_for_each(|part| file.write_all(part)).map_err(failed)?;
        *end += stretch.bytes;
        Ok(stretch)
    }

    /// Reads a part of what was written: `bytes` bytes, `skip` bytes behind its beginning.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub(crate) fn read(&self, stretch: Stretch, skip: u64, bytes: usize) -> Result<Vec<u8>, ImportError> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = vec![0; bytes];
        let found = file.as_mut().map(|(file, _)| {
            file.seek(SeekFrom::Start(stretch.from + skip))?;
            file.read_exact(&mut read)
        });
        let nothing = || Err(io::Error::other("nothing was written"));
        found.unwrap_or_else(nothing).map_err(|error| self.failed("read", stretch.from, &error))?;
        Ok(read)
    }

    /// Reads all of what was written.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub(crate) fn read_all(&self, stretch: Stretch) -> Result<Vec<u8>, ImportError> {
        self.read(stretch, 0, stretch.bytes as usize)
    }

    /// Sets a reservation to `bytes`.
    pub(super) fn hold(&self, memory: &MemoryReservation, bytes: usize) -> Result<(), ImportError> {
        let refused =
            |error: DataFusionError| ImportError::Memory { path: self.folder.clone(), what: error.strip_backtrace() };
        memory.try_resize(bytes).map_err(refused)
    }

    /// How many bytes of the pool may be in use before memory is short.
    pub(super) fn above(&self) -> usize {
        self.above
    }

    /// The error for bytes that are not those that were written.
    pub(crate) fn damaged(&self, error: impl std::fmt::Display) -> ImportError {
        self.internal(DataFusionError::Internal(format!("what waited on disk: {error}")))
    }

    /// A defect of ours.
    pub(crate) fn internal(&self, error: impl Into<DataFusionError>) -> ImportError {
        ImportError::internal(&self.folder, error)
    }

    fn failed(&self, doing: &str, end: u64, error: &io::Error) -> ImportError {
        let reason = io_reason(error);
        ImportError::Unusable {
            path: self.folder.clone(),
            what: format!(
                "rows that wait on disk while a large trace is read cannot be {doing} here, {:.1} MB from the first: {reason}",
                end as f64 / 1e6
            ),
            hint: Some("a greater `--memory` keeps more of them in memory".to_owned()),
        }
    }
}

impl SpilledColumns {
    /// Writes the columns, but for NULLs and those that have one value in all rows, as `is_constant` tells.
    pub(crate) fn write(
        spill: &Spill,
        columns: Vec<ArrayRef>,
        is_constant: impl Fn(usize, &ArrayRef) -> bool,
        rows: usize,
    ) -> Result<SpilledColumns, ImportError> {
        let (mut spilled, mut written, mut fields) = (Vec::with_capacity(columns.len()), Vec::new(), Vec::new());
        let mut bytes = 0;
        for (place, column) in columns.into_iter().enumerate() {
            if column.null_count() == rows {
                spilled.push(SpilledColumn::Nulls(column));
                continue;
            }
            if let Some((constant, each)) = SpilledColumn::constant(&column).filter(|_| is_constant(place, &column)) {
                bytes += rows * each;
                spilled.push(constant);
                continue;
            }
            bytes += column.get_buffer_memory_size();
            fields.push(Field::new(place.to_string(), column.data_type().clone(), true));
            written.push(column);
            spilled.push(SpilledColumn::OnDisk);
        }
        let encoded = encode(Schema::new(fields), written, rows).map_err(|error| spill.internal(error))?;
        Ok(SpilledColumns { stretch: spill.write(&[&encoded])?, columns: spilled, rows, bytes })
    }

    /// Reads them.
    pub(crate) fn read(&self, spill: &Spill) -> Result<Vec<ArrayRef>, ImportError> {
        let encoded = spill.read_all(self.stretch)?;
        let batch = decode(&encoded).map_err(|error| spill.internal(error))?;
        let mut read = batch.columns().iter();
        let all = self.columns.iter().map(|column| match column {
            SpilledColumn::OnDisk => read.next().cloned(),
            SpilledColumn::Nulls(column) => Some(Arc::clone(column)),
            SpilledColumn::SameKey(key) => Some(Arc::new(Int32Array::from_value(*key, self.rows)) as ArrayRef),
            SpilledColumn::SameNumber(number) => Some(Arc::new(Int64Array::from_value(*number, self.rows)) as ArrayRef),
        });
        let missing = || spill.internal(ArrowError::IpcError("a column is missing".to_owned()));
        all.collect::<Option<Vec<_>>>().ok_or_else(missing)
    }
}

impl SpilledColumn {
    /// The first key or number of a column, and the bytes of each.
    fn constant(column: &ArrayRef) -> Option<(SpilledColumn, usize)> {
        let key = column.as_primitive_opt::<Int32Type>().and_then(|keys| keys.values().first());
        let number = column.as_primitive_opt::<Int64Type>().and_then(|numbers| numbers.values().first());
        key.map(|key| (SpilledColumn::SameKey(*key), size_of::<i32>()))
            .or(number.map(|number| (SpilledColumn::SameNumber(*number), size_of::<i64>())))
    }
}

fn encode(schema: Schema, columns: Vec<ArrayRef>, rows: usize) -> Result<Vec<u8>, ArrowError> {
    let schema = Arc::new(schema);
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)?;
    let mut writer = StreamWriter::try_new(Vec::new(), &schema)?;
    writer.write(&batch)?;
    writer.into_inner()
}

fn decode(encoded: &[u8]) -> Result<RecordBatch, ArrowError> {
    let mut reader = StreamReader::try_new(encoded, None)?;
    reader.next().unwrap_or_else(|| Err(ArrowError::IpcError("no rows were written".to_owned())))
}
