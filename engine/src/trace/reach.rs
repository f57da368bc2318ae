//! Reach: times beyond ±2⁶² ticks are damage, whatever the format. They are NULL in the tables, and counted.
//!
//! A reader that still has the record can report it with its place; this check covers every table, whatever its reader
//! did. One pass over each column of times, without a branch per value.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::Int64Type;

use crate::time::REACH;

/// A column whose values beyond the reach are NULL, how many those are, and the row and value of the first; `None` when
/// there are none.
pub(super) fn cut(times: &ArrayRef) -> Option<(ArrayRef, u64, (usize, i64))> {
    let times = times.as_primitive::<Int64Type>();
    // Within ±2⁶² the two highest bits are the same. What stands behind NULLs is arbitrary and gets a closer look.
    if times.values().iter().fold(0, |any, time| any | (time ^ (time << 1))) >= 0 {
        return None;
    }
    let is_beyond = |row: usize| times.is_valid(row) && !REACH.contains(&times.value(row));
    let first = (0..times.len()).find(|row| is_beyond(*row))?;
    let kept: NullBuffer = (0..times.len()).map(|row| times.is_valid(row) && !is_beyond(row)).collect();
    let beyond = kept.null_count() - times.null_count();
    let cut = Int64Array::new(times.values().clone(), Some(kept));
    Some((Arc::new(cut), beyond as u64, (first, times.value(first))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_lies_beyond_is_null(values in prop::collection::vec(prop::option::of(prop_oneof![
            any::<i64>(), REACH.start - 2..REACH.start + 2, REACH.end - 2..REACH.end + 2, -9..9i64, Just(i64::MIN), Just(i64::MAX),
        ]), 0..20)) {
            let expected: Vec<Option<i64>> =
                values.iter().map(|value| value.filter(|time| REACH.contains(time))).collect();
            let times: ArrayRef = Arc::new(Int64Array::from(values.clone()));
            let (after, beyond) = cut(&times).map_or((Arc::clone(&times), 0), |(after, beyond, _)| (after, beyond));
            prop_assert_eq!(after.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(), &expected[..]);
            let lost = values.iter().zip(&expected).filter(|(before, after)| before != after).count();
            prop_assert_eq!(beyond, lost as u64);
        }
    }
}
