//! Small dictionaries for batches whose columns share a large one.
//!
//! DataFusion hashes, compares and unpacks the whole dictionary once per batch, however few of its words the batch uses.
//! That is cheap for the 300 names of a usual trace and ruinous where every task has a name of its own: a million words for
//! each batch of 8192 rows. Such a batch gets a dictionary of only the words that it uses.
//!
//! ```text
//! keys 7 5 6 5, words w0 … w999999   ->   keys 2 0 1 0, words w5 w6 w7        a slice: no text moves
//! keys 7 900 7                       ->   keys 0 1 0,   words w7 w900         a copy of two words
//! ```

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int32Array, RecordBatch};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::error::DataFusionError;

/// A dictionary of at most this many words per row of a batch is left as it is.
const WORDS_PER_ROW: usize = 2;

/// The same batch, with dictionaries no larger than its rows need; and the bytes of text that were copied for that.
pub(crate) fn with_own_words(batch: RecordBatch) -> Result<(RecordBatch, usize), DataFusionError> {
    reduced(batch, false)
}

/// The same with texts of their own: who asks how much memory a batch takes is told of all texts of a slice's dictionary.
pub(crate) fn with_own_texts(batch: RecordBatch) -> Result<RecordBatch, DataFusionError> {
    Ok(reduced(batch, true)?.0)
}

fn reduced(batch: RecordBatch, copies_texts: bool) -> Result<(RecordBatch, usize), DataFusionError> {
    let large = |column: &ArrayRef| {
        matches!(column.data_type(), DataType::Dictionary(..))
            && column.as_any_dictionary().values().len() > WORDS_PER_ROW * batch.num_rows().max(1024)
    };
    if !batch.columns().iter().any(large) {
        return Ok((batch, 0));
    }
    let mut copied = 0;
    let mut columns = Vec::with_capacity(batch.num_columns());
    for column in batch.columns() {
        let own = if large(column) { own_words(column.as_dictionary::<Int32Type>(), copies_texts)? } else { None };
        columns.push(match own {
            Some((own, bytes)) => {
                copied += bytes;
                Arc::new(own) as ArrayRef
            }
            None => Arc::clone(column),
        });
    }
    Ok((RecordBatch::try_new(batch.schema(), columns)?, copied))
}

fn own_words(
    column: &DictionaryArray<Int32Type>,
    copies_texts: bool,
) -> Result<Option<(DictionaryArray<Int32Type>, usize)>, DataFusionError> {
    let keys = column.keys();
    let used = || keys.iter().flatten();
    let (Some(first), Some(last)) = (used().min(), used().max()) else { return Ok(None) };
    let span = (last - first) as usize + 1;
    // Words are numbered by first appearance, so names that occur once each lie side by side.
    if span <= WORDS_PER_ROW * keys.len() && !copies_texts {
        let words = column.values().slice(first as usize, span);
        // Wrapping: the key behind a NULL is arbitrary; it is set to 0.
        let own = keys.iter().map(|key| key.map(|key| key.wrapping_sub(first))).collect::<Int32Array>();
        let bytes = own.get_buffer_memory_size();
        return Ok(Some((DictionaryArray::try_new(own, words)?, bytes)));
    }
    let mut words: Vec<i32> = used().collect();
    words.sort_unstable();
    words.dedup();
    let place = |key: i32| words.partition_point(|&word| word < key) as i32;
    let own = keys.iter().map(|key| key.map(place)).collect::<Int32Array>();
    let words = take(column.values(), &Int32Array::from(words.clone()), None)?;
    let bytes = own.get_buffer_memory_size() + words.get_buffer_memory_size();
    Ok(Some((DictionaryArray::try_new(own, words)?, bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::StringArray;
    use datafusion::arrow::datatypes::{Field, Schema};

    fn batch(words: usize, keys: Vec<Option<i32>>) -> RecordBatch {
        let values: StringArray = (0..words).map(|word| Some(format!("w{word}"))).collect();
        let column = DictionaryArray::<Int32Type>::try_new(keys.into(), Arc::new(values)).expect("valid keys");
        let schema = Schema::new(vec![Field::new("name", column.data_type().clone(), true)]);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(column)]).expect("one column")
    }

    fn words(batch: &RecordBatch) -> Vec<Option<String>> {
        let column = batch.column(0).as_dictionary::<Int32Type>().downcast_dict::<StringArray>().expect("text");
        column.into_iter().map(|word| word.map(str::to_owned)).collect()
    }

    #[test]
    fn neighbours_are_sliced_scattered_words_are_copied_and_nothing_changes_for_the_reader() {
        let cases = [
            (vec![Some(70_007), Some(70_005), None, Some(70_006), Some(70_005)], 3),
            (vec![Some(7), None, Some(90_000), Some(7)], 2),
            (vec![None, None], 100_000),
        ];
        for (keys, expected) in cases {
            let shared = batch(100_000, keys);
            let (own, _) = with_own_words(shared.clone()).expect("valid");
            assert_eq!(words(&own), words(&shared));
            assert_eq!(own.column(0).as_any_dictionary().values().len(), expected);
            let apart = with_own_texts(shared.clone()).expect("valid");
            assert_eq!(words(&apart), words(&shared));
            let is_small = apart.get_array_memory_size() < 1000;
            assert_eq!(is_small, expected < 100_000, "{}", apart.get_array_memory_size());
        }
    }

    #[test]
    fn small_dictionaries_stay_shared() {
        let shared = batch(2000, vec![Some(3), Some(1999)]);
        let (own, copied) = with_own_words(shared.clone()).expect("valid");
        assert_eq!(copied, 0);
        assert!(Arc::ptr_eq(own.column(0), shared.column(0)));
    }
}
