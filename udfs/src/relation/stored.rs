//! Rows of an input that wait on disk, in parts that can be read any number of times.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, DictionaryArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{Int32Type, SchemaRef};
use datafusion_common::{Result, internal_err};
use datafusion_execution::{SendableRecordBatchStream, SpillFile};
use datafusion_physical_plan::SpillManager;
use futures::StreamExt;
use tokio::runtime::Handle;
/// Rows on disk, by part.
pub(super) struct Disk {
    pub(super) spills: SpillManager,
    pub(super) schema: SchemaRef,
    /// Per column: the words of a dictionary.
    pub(super) words: Vec<Option<ArrayRef>>,
    pub(super) files: Vec<Written>,
    /// Bytes of a row.
    pub(super) width: usize,
}

/// A part on disk.
pub(super) struct Written {
    pub(super) file: Option<Arc<dyn SpillFile>>,
    pub(super) rows: usize,
}

impl Disk {
    /// The first part from this one on that has rows.
    pub(super) fn next_part(&self, from: usize) -> Option<usize> {
        (from..self.files.len()).find(|part| self.files[*part].rows > 0)
    }

    /// The batches of a part, of which `keep` is told before each is kept.
    pub(super) fn read(
        &self,
        part: usize,
        mut keep: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<Vec<RecordBatch>> {
        let Some(mut written) = self.open(part)? else { return Ok(vec![]) };
        let mut batches = vec![];
        while let Some(batch) = written.next()? {
            keep(&batch)?;
            batches.push(self.batch(&batch)?);
        }
        Ok(batches)
    }

    fn open(&self, part: usize) -> Result<Option<Reading>> {
        let Some(file) = &self.files[part].file else { return Ok(None) };
        let Ok(runtime) = Handle::try_current() else { return internal_err!("files are read outside of a runtime") };
        let rows = self.spills.read_spill_as_stream_unbuffered(Arc::clone(file), None)?;
        Ok(Some(Reading { rows, runtime }))
    }

    /// A batch as it came.
    fn batch(&self, written: &RecordBatch) -> Result<RecordBatch> {
        let columns =
            written.columns().iter().zip(&self.words).zip(self.schema.fields()).map(|((column, words), field)| {
                let Some(words) = words else { return Ok(Arc::clone(column)) };
                let numbers = column.as_primitive::<Int32Type>().clone();
                let same: ArrayRef = Arc::new(DictionaryArray::try_new(numbers, Arc::clone(words))?);
                if same.data_type() == field.data_type() { Ok(same) } else { Ok(cast(&same, field.data_type())?) }
            });
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns.collect::<Result<_>>()?)?)
    }
}

/// A file that is being read.
struct Reading {
    rows: SendableRecordBatchStream,
    runtime: Handle,
}

impl Reading {
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.runtime.block_on(self.rows.next()).transpose()
    }
}

/// A part of an input on disk, which can be read any number of times.
#[derive(Clone)]
pub struct Stored {
    disk: Arc<Disk>,
    part: usize,
}

impl Stored {
    pub(super) fn new(disk: &Arc<Disk>, part: usize) -> Stored {
        Stored { disk: Arc::clone(disk), part }
    }

    /// About how many bytes its rows take in memory.
    pub fn bytes(&self) -> usize {
        self.disk.files[self.part].rows * self.disk.width
    }

    /// Whether its rows have this column.
    pub fn has(&self, name: &str) -> bool {
        self.disk.schema.column_with_name(name).is_some()
    }

    /// Its batches, always in the same order.
    ///
    /// # Errors
    /// As for reading files.
    pub fn batches(&self) -> Result<StoredBatches> {
        Ok(StoredBatches { disk: Arc::clone(&self.disk), reading: self.disk.open(self.part)? })
    }
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stored").field("part", &self.part).field("bytes", &self.bytes()).finish()
    }
}

/// The batches of a part while they are read.
pub struct StoredBatches {
    disk: Arc<Disk>,
    reading: Option<Reading>,
}

impl Iterator for StoredBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.reading.as_mut()?.next();
        next.and_then(|batch| batch.map(|batch| self.disk.batch(&batch)).transpose()).transpose()
    }
}

impl std::fmt::Debug for StoredBatches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredBatches").finish_non_exhaustive()
    }
}
