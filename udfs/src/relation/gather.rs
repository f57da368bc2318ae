//! Gathers the values of chosen rows of a column that is stored in several batches.

use arrow::array::{Array, ArrayRef, UInt32Array, new_empty_array};
use arrow::compute::{cast, concat, interleave, take};
use arrow::datatypes::DataType;
use datafusion_common::Result;

/// How many consecutive rows must come from one batch, on average, for the batches to be read one after the other.
const LONG_STRETCH: usize = 16;

/// The values at some places (batch, row), in this type. `columns` is the column of each batch.
pub(crate) fn gather(columns: &[&dyn Array], places: &[(usize, usize)], data_type: &DataType) -> Result<ArrayRef> {
    let stretches = places.chunk_by(|one, next| one.0 == next.0);
    let count = stretches.clone().count();
    if count == 0 {
        return Ok(new_empty_array(data_type));
    }
    let gathered = if places.len() >= LONG_STRETCH * count {
        let taken = stretches.map(|stretch| {
            let rows = UInt32Array::from_iter_values(stretch.iter().map(|(_, row)| *row as u32));
            take(columns[stretch[0].0], &rows, None)
        });
        let parts = taken.collect::<std::result::Result<Vec<ArrayRef>, _>>()?;
        concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())?
    } else {
        // Only the batches that are touched take part: merging the dictionaries of all would cost more than the rows.
        let mut number_of = vec![usize::MAX; columns.len()];
        let mut touched: Vec<&dyn Array> = vec![];
        let number = |&(batch, row): &(usize, usize)| {
            if number_of[batch] == usize::MAX {
                number_of[batch] = touched.len();
                touched.push(columns[batch]);
            }
            (number_of[batch], row)
        };
        let numbered: Vec<(usize, usize)> = places.iter().map(number).collect();
        interleave(&touched, &numbered)?
    };
    if gathered.data_type() == data_type { Ok(gathered) } else { Ok(cast(&gathered, data_type)?) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use arrow::array::{AsArray, DictionaryArray, StringArray};
    use arrow::datatypes::Int32Type;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Batches of words: three with a dictionary of their own, two that share one, and NULLs.
    fn columns() -> Vec<ArrayRef> {
        let own = [vec![Some("a"), None, Some("b")], vec![Some("b"), Some("c")], vec![None]];
        let own = own.map(|words| Arc::new(words.into_iter().collect::<DictionaryArray<Int32Type>>()) as ArrayRef);
        let shared: ArrayRef = Arc::new(["x", "y", "x", "z"].into_iter().collect::<DictionaryArray<Int32Type>>());
        let mut columns = Vec::from(own);
        columns.extend([shared.slice(0, 2), shared.slice(2, 2)]);
        columns
    }

    proptest! {
        #[test]
        fn every_way_gives_the_values_at_the_places(picks in vec((0..5usize, any::<prop::sample::Index>()), 0..60), copies in 1..40usize) {
            let arrays = columns();
            let columns: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
            let place = |(batch, row): &(usize, prop::sample::Index)| (*batch, row.index(columns[*batch].len()));
            // Many copies of a place are a long stretch.
            let places: Vec<(usize, usize)> = picks.iter().map(place).flat_map(|place| std::iter::repeat_n(place, copies)).collect();
            let words: Vec<StringArray> = arrays.iter().map(|column| cast(column, &DataType::Utf8).unwrap().as_string::<i32>().clone()).collect();
            let expected: Vec<Option<&str>> = places.iter().map(|(batch, row)| words[*batch].is_valid(*row).then(|| words[*batch].value(*row))).collect();
            let found = gather(&columns, &places, &DataType::Utf8View).unwrap();
            prop_assert_eq!(found.as_string_view().iter().collect::<Vec<_>>(), expected);
        }
    }
}
