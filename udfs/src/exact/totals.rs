//! Tallies for sums and means of doubles.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, LargeBinaryBuilder, UInt64Array};
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use datafusion_common::Result;

use super::{Double, ExactSum};
use crate::aggregate::{Mergeable, Retractable, Tally, value_at};

/// A statistic of a sum of at least one number.
pub(crate) trait OfTotal: Debug + Default + Send + Sync + 'static {
    fn of(sum: &ExactSum, count: u64) -> f64;
}

/// The sum itself.
#[derive(Debug, Default)]
pub(crate) struct Sum;

impl OfTotal for Sum {
    fn of(sum: &ExactSum, _count: u64) -> f64 {
        sum.value()
    }
}

/// The sum ÷ the number of numbers.
#[derive(Debug, Default)]
pub(crate) struct Mean;

impl OfTotal for Mean {
    fn of(sum: &ExactSum, count: u64) -> f64 {
        sum.mean(count)
    }
}

/// A sum of doubles and of how many. Infinite ones and NaN are counted apart, so that they can leave a frame again.
#[derive(Debug, Default)]
pub(crate) struct Total<A> {
    sum: ExactSum,
    count: u64,
    odd: Option<Box<Odd>>,
    answer: PhantomData<A>,
}

/// How many are NaN, ∞ and −∞.
#[derive(Debug, Default)]
struct Odd([u64; 3]);

impl Odd {
    /// What IEEE 754 says of a sum with these in it.
    fn sum(&self) -> Option<f64> {
        match self.0 {
            [0, 0, 0] => None,
            [0, _, 0] => Some(f64::INFINITY),
            [0, 0, _] => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }

    fn count_of(&mut self, value: f64) -> &mut u64 {
        &mut self.0[if value.is_nan() { 0 } else { 1 + usize::from(value < 0.0) }]
    }
}

impl<A: OfTotal> Tally for Total<A> {
    type Columns<'a> = &'a Float64Array;
    type Row = Double;
    type Answer = Float64Type;

    fn columns(values: &[ArrayRef]) -> Result<&Float64Array> {
        Ok(values[0].as_primitive())
    }

    #[inline]
    fn row(column: &Float64Array, index: usize) -> Result<Option<Double>> {
        Ok(value_at(column, index).map(Double))
    }

    #[inline]
    fn add(&mut self, Double(value): Double) -> Result<()> {
        self.count += 1;
        if value.is_finite() {
            self.sum.add(value);
        } else {
            *self.odd.get_or_insert_default().count_of(value) += 1;
        }
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<f64>> {
        let odd = self.odd.as_ref().and_then(|odd| odd.sum());
        Ok((self.count > 0).then(|| odd.unwrap_or_else(|| A::of(&self.sum, self.count))))
    }

    #[inline]
    fn heap_bytes(&self) -> usize {
        self.sum.heap_bytes() + self.odd.as_ref().map_or(0, |_| size_of::<Odd>())
    }
}

impl<A: OfTotal> Mergeable for Total<A> {
    fn state_columns() -> Vec<(&'static str, DataType)> {
        vec![
            ("count", DataType::UInt64),
            ("sum", DataType::LargeBinary),
            ("nan", DataType::UInt64),
            ("infinite", DataType::UInt64),
            ("negative infinite", DataType::UInt64),
        ]
    }

    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
        let odd = |tally: &Self, index: usize| tally.odd.as_ref().map_or(0, |odd| odd.0[index]);
        let odd = |index| Arc::new(tallies.iter().map(|tally| odd(tally, index)).collect::<UInt64Array>()) as ArrayRef;
        Ok(vec![
            Arc::new(tallies.iter().map(|tally| tally.count).collect::<UInt64Array>()),
            written(tallies, |tally, bytes| tally.sum.write(bytes)),
            odd(0),
            odd(1),
            odd(2),
        ])
    }

    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
        let count = |column: usize| states[column].as_primitive::<UInt64Type>().value(index);
        self.count += count(0);
        self.sum.merge(bytes_at(&states[1], index));
        for (number, column) in (2..5).enumerate() {
            if count(column) > 0 {
                self.odd.get_or_insert_default().0[number] += count(column);
            }
        }
        Ok(())
    }
}

impl<A: OfTotal> Retractable for Total<A> {
    fn remove(&mut self, Double(value): Double) -> Result<()> {
        self.count -= 1;
        if value.is_finite() {
            self.sum.remove(value);
        } else {
            *self.odd.get_or_insert_default().count_of(value) -= 1;
        }
        Ok(())
    }
}

/// A state column of exact numbers, one of each tally.
pub(crate) fn written<T>(tallies: &[T], write: impl Fn(&T, &mut Vec<u8>)) -> ArrayRef {
    let (mut column, mut bytes) = (LargeBinaryBuilder::new(), Vec::new());
    for tally in tallies {
        bytes.clear();
        write(tally, &mut bytes);
        column.append_value(&bytes);
    }
    Arc::new(column.finish())
}

/// The exact number of one tally; NULL is 0.
pub(crate) fn bytes_at(column: &ArrayRef, index: usize) -> &[u8] {
    if column.is_null(index) { &[] } else { column.as_binary::<i64>().value(index) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::{Distinct, testing};
    use datafusion_common::ScalarValue;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn column(values: &[Option<f64>]) -> Vec<ArrayRef> {
        vec![Arc::new(values.iter().copied().collect::<Float64Array>())]
    }

    fn numbers() -> impl Strategy<Value = Option<f64>> {
        prop_oneof![
            8 => super::super::tests::doubles().prop_map(Some),
            1 => Just(None),
            1 => prop::sample::select(vec![Some(f64::INFINITY), Some(f64::NEG_INFINITY), Some(f64::NAN)]),
        ]
    }

    /// In order, one after the other, each finite sum exact.
    fn naive(values: &[Option<f64>], mean: bool) -> Option<u64> {
        let values = values.iter().copied().flatten().collect::<Vec<_>>();
        let odd = values.iter().filter(|value| !value.is_finite()).copied().reduce(|a, b| a + b);
        let mut sum = ExactSum::default();
        values.iter().filter(|value| value.is_finite()).for_each(|&value| sum.add(value));
        let answer =
            odd.unwrap_or(if mean { sum.dyadic().over(&(values.len().max(1) as u64).into()) } else { sum.value() });
        (!values.is_empty()).then(|| Double(answer).key())
    }

    fn bits(answer: impl std::borrow::Borrow<ScalarValue>) -> Option<u64> {
        let ScalarValue::Float64(value) = *answer.borrow() else { panic!("an answer is no double") };
        value.map(|value| Double(value).key())
    }

    fn check<A: OfTotal>(values: &[Option<f64>], cuts: &[usize], width: usize, mean: bool) {
        assert_eq!(bits(testing::whole::<Total<A>>(&column(values)).unwrap()), naive(values, mean));
        assert_eq!(bits(testing::cut::<Total<A>>(&column(values), cuts).unwrap()), naive(values, mean));
        let groups = (0..values.len()).map(|row| row % 3).collect::<Vec<_>>();
        for (group, answer) in
            testing::grouped::<Total<A>>(&column(values), &groups, 3, cuts).unwrap().into_iter().enumerate()
        {
            let expected = naive(&values.iter().skip(group).step_by(3).copied().collect::<Vec<_>>(), mean);
            assert_eq!(bits(answer), expected);
        }
        let frames = testing::moving::<Total<A>>(&column(values), width).unwrap();
        let distinct_frames = testing::moving::<Distinct<Total<A>>>(&column(values), width).unwrap();
        for (row, (answer, of_distinct)) in frames.into_iter().zip(distinct_frames).enumerate() {
            let frame = &values[(row + 1).saturating_sub(width)..=row];
            assert_eq!(bits(answer), naive(frame, mean));
            let mut seen = std::collections::HashSet::new();
            let distinct = frame.iter().copied().filter(|value| seen.insert(value.map(Double))).collect::<Vec<_>>();
            assert_eq!(bits(of_distinct), naive(&distinct, mean));
        }
    }

    proptest! {
        #[test]
        fn sums_and_means_are_exact_however_they_are_made(
            values in vec(numbers(), 0..20),
            cuts in vec(0..21usize, 0..4),
            width in 1..6usize,
        ) {
            check::<Sum>(&values, &cuts, width, false);
            check::<Mean>(&values, &cuts, width, true);
        }
    }
}
