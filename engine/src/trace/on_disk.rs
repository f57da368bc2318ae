//! Tables that wait on disk until they are written into a store: assembled chunk by chunk, when they are asked for.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::execution::memory_pool::MemoryReservation;

use super::assemble::{Chunk, Shared, assemble_chunk};
use super::spill::{Spill, SpilledColumns};
use crate::error::ImportError;

/// A chunk, in memory or on disk.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) rows: usize,
    columns: Columns,
}

#[derive(Debug)]
enum Columns {
    Held(Vec<ArrayRef>),
    OnDisk(SpilledColumns),
}

impl Waiting {
    /// In memory.
    pub(super) fn held(rows: usize, columns: Vec<ArrayRef>) -> Waiting {
        Waiting { rows, columns: Columns::Held(columns) }
    }

    /// Its columns, if they are in memory.
    pub(super) fn columns(&mut self) -> Option<&mut Vec<ArrayRef>> {
        match &mut self.columns {
            Columns::Held(columns) => Some(columns),
            Columns::OnDisk(_) => None,
        }
    }

    /// Writes the columns to disk, but for those of one value, as `is_constant` tells.
    ///
    /// # Errors
    /// The disk is full, or cannot be written.
    pub(super) fn spill(
        &mut self,
        spill: &Spill,
        is_constant: impl Fn(usize, &ArrayRef) -> bool,
    ) -> Result<(), ImportError> {
        if let Columns::Held(columns) = &mut self.columns {
            let columns = std::mem::take(columns);
            self.columns = Columns::OnDisk(SpilledColumns::write(spill, columns, is_constant, self.rows)?);
        }
        Ok(())
    }

    /// Bytes of its columns that are on disk.
    pub(super) fn bytes_on_disk(&self) -> usize {
        match &self.columns {
            Columns::Held(_) => 0,
            Columns::OnDisk(spilled) => spilled.bytes,
        }
    }

    /// In memory, wherever it was.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub(super) fn read(&self, spill: Option<&Spill>) -> Result<Chunk, ImportError> {
        let columns = match (&self.columns, spill) {
            (Columns::Held(columns), _) => columns.clone(),
            (Columns::OnDisk(spilled), Some(spill)) => spilled.read(spill)?,
            (Columns::OnDisk(_), None) => Vec::new(),
        };
        Ok(Chunk { rows: self.rows, columns })
    }
}

/// A table of a run that is partly on disk.
#[derive(Debug)]
pub(crate) struct OnDisk {
    chunks: Vec<Waiting>,
    shared: Shared,
    spill: Arc<Spill>,
    memory: MemoryReservation,
}

impl OnDisk {
    pub(super) fn new(chunks: Vec<Waiting>, shared: Shared, spill: &Arc<Spill>, memory: MemoryReservation) -> OnDisk {
        OnDisk { chunks, shared, spill: Arc::clone(spill), memory }
    }

    pub(super) fn rows(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.rows as u64).sum()
    }

    pub(super) fn batches(&self) -> impl Iterator<Item = Result<RecordBatch, ImportError>> {
        let mut position = 0;
        self.chunks.iter().flat_map(move |chunk| {
            let first = position;
            position += chunk.rows as u64;
            // The bytes of the file, and the columns made of them.
            let memory = self.spill.hold(&self.memory, 2 * chunk.bytes_on_disk());
            let assembled = memory.and_then(|()| chunk.read(Some(&self.spill))).and_then(|chunk| {
                assemble_chunk(first, chunk, &self.shared).map_err(|error| self.spill.internal(error))
            });
            match assembled {
                Ok(assembled) => assembled.batches.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            }
        })
    }

    /// All batches, their bytes added to the memory of their run.
    ///
    /// # Errors
    /// The disk cannot be read; the pool is exhausted.
    pub(super) fn read_back(self, memory: &MemoryReservation) -> Result<Vec<RecordBatch>, ImportError> {
        let batches = self.batches().collect::<Result<Vec<_>, _>>()?;
        let bytes: usize = batches.iter().map(RecordBatch::get_array_memory_size).sum();
        self.spill.hold(memory, memory.size() + bytes)?;
        Ok(batches)
    }
}
