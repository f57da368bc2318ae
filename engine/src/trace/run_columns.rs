//! Columns of runs that share a table: the column `run`, and the arrays of several batches one after the other.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, RecordBatch, StringArray};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{Int32Type, SchemaRef};
use datafusion::error::Result;

use super::assemble::ROWS_PER_BATCH;

/// The `run` column of one run: all batches share its word.
#[derive(Debug)]
pub(crate) struct RunColumn(ArrayRef);

/// The keys of all such columns: a store has thousands of runs.
static KEYS: LazyLock<Int32Array> = LazyLock::new(|| Int32Array::from_value(0, ROWS_PER_BATCH));

impl RunColumn {
    /// So many rows of it, a batch at most.
    pub(crate) fn slice(&self, rows: usize) -> DictionaryArray<Int32Type> {
        DictionaryArray::new(KEYS.slice(0, rows), Arc::clone(&self.0))
    }

    /// The name.
    pub(crate) fn name(&self) -> &str {
        self.0.as_string::<i32>().value(0)
    }

    /// The column `run` of a run of this name.
    pub(crate) fn new(name: &str) -> RunColumn {
        RunColumn(Arc::new(StringArray::from(vec![name])))
    }

    /// A batch of the run with this column before the others, as the table has it.
    pub(crate) fn before(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = vec![Arc::new(self.slice(batch.num_rows()))];
        columns.extend(batch.columns().iter().cloned());
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

/// Arrays of one type one after the other. Runs of one trace share their dictionaries: then keys are all that is copied, and
/// the words of thousands of runs are not compared.
pub(crate) fn one_column(parts: &[&dyn Array]) -> Result<ArrayRef> {
    let words: Vec<_> = parts.iter().filter_map(|part| part.as_dictionary_opt::<Int32Type>()).collect();
    if let Some(first) = words.first()
        && words.len() == parts.len()
        && words.iter().all(|words| Arc::ptr_eq(words.values(), first.values()))
    {
        let keys: Vec<&dyn Array> = words.iter().map(|words| words.keys() as &dyn Array).collect();
        let keys = concat(&keys)?.as_primitive::<Int32Type>().clone();
        return Ok(Arc::new(DictionaryArray::try_new(keys, Arc::clone(first.values()))?));
    }
    Ok(concat(parts)?)
}
