//! What holds of a reader for any bytes at all: for fuzzing and for tests of damaged files.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use serde::de::IgnoredAny;

use super::{ImportOptions, import, importers, recognise};
use crate::error::ImportError;
use crate::tables::Table;
use crate::trace::{Run, Source, faults};

/// Enough for a text of a megabyte, far too little for a count that somebody believes.
const MEMORY_BYTES: usize = 32 << 20;

/// Reads `bytes` as a user's file would be with `--from-format`, and says what is wrong with the answer: nothing, unless the reader
/// has a defect. Damaged bytes may end in an error that names a place; whatever is read must be sound ([`faults`]), and
/// valid JSON must read the same in blocks of any size. A defect may also be a panic.
pub fn examine(format: &str, bytes: &[u8]) -> Vec<String> {
    let Ok(source) = Source::of_bytes(bytes) else { return Vec::new() };
    // One block, without a buffer for megabytes.
    let in_one = read(format, &source.clone().in_blocks_of(bytes.len() + 1));
    let mut found = judge(&in_one);
    if found.is_empty() && source.known_bytes().is_some() {
        let block_bytes = 5 + bytes.len() % 251;
        let in_many = read(format, &source.in_blocks_of(block_bytes));
        found = judge(&in_many);
        if found.is_empty() && serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
            found = differences(&in_one, &in_many);
        }
        found.iter_mut().for_each(|fault| fault.push_str(&format!(" (in blocks of {block_bytes} bytes)")));
    }
    found
}

/// As told, after everybody was asked whether it is theirs.
fn read(format: &str, source: &Source) -> Result<Vec<Run>, ImportError> {
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(MEMORY_BYTES));
    let options = ImportOptions::new();
    let _ = recognise(importers(), source, &options, true);
    import(source, Some(format), &options, 1, pool)
}

fn judge(answer: &Result<Vec<Run>, ImportError>) -> Vec<String> {
    match answer {
        Ok(runs) => runs.iter().flat_map(faults).collect(),
        Err(ImportError::Damaged { place, .. }) if place.is_empty() => vec!["an error without a place".to_owned()],
        Err(ImportError::Memory { .. } | ImportError::Internal { .. } | ImportError::Session { .. }) => {
            answer.as_ref().err().map(|error| format!("{error:?}")).into_iter().collect()
        }
        Err(_) => Vec::new(),
    }
}

fn differences(one: &Result<Vec<Run>, ImportError>, other: &Result<Vec<Run>, ImportError>) -> Vec<String> {
    match (one, other) {
        (Ok(one), Ok(other)) => one.iter().zip(other).flat_map(|(one, other)| differing_tables(one, other)).collect(),
        (Err(_), Err(_)) => Vec::new(),
        (Ok(_), Err(error)) | (Err(error), Ok(_)) => vec![format!("only one way of reading fails: {error}")],
    }
}

fn differing_tables(one: &Run, other: &Run) -> Vec<String> {
    let whole = |run: &Run, table: Table| -> Option<RecordBatch> {
        let batches = run.tables.get(&table)?;
        concat_batches(&batches.first()?.schema(), batches).ok()
    };
    let differ = |table: &Table| whole(one, *table) != whole(other, *table);
    Table::ALL.into_iter().filter(differ).map(|table| format!("{table} reads differently")).collect()
}
