//! Sums and means of whole numbers and decimals, whose intermediate values cannot overflow.
//!
//! Life of the data: numbers are added in 128 bits with a count of the overflows, which no number of rows can exhaust;
//! partial sums are passed on as decimals of 256 bits, so a total that fits is right even where a partial sum would not fit;
//! only the final result is checked.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal256Array, PrimitiveArray, UInt64Array};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Decimal256Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float64Type, Int64Type, UInt64Type, i256,
};
use datafusion_common::{Result, exec_datafusion_err};
use num_bigint::BigInt;

use crate::aggregate::{Mergeable, Retractable, Row, Tally, value_at};
use crate::exact::mean_of_whole;

impl Row for i64 {
    const WORDS: usize = 1;

    fn to_words(self) -> Vec<Option<i64>> {
        vec![Some(self)]
    }

    fn from_words(words: &[Option<i64>]) -> Self {
        words[0].unwrap_or(0)
    }
}

impl Row for u64 {
    const WORDS: usize = 1;

    fn to_words(self) -> Vec<Option<i64>> {
        vec![Some(self as i64)]
    }

    fn from_words(words: &[Option<i64>]) -> Self {
        words[0].unwrap_or(0) as u64
    }
}

impl Row for i128 {
    const WORDS: usize = 2;

    fn to_words(self) -> Vec<Option<i64>> {
        vec![Some(self as i64), Some((self >> 64) as i64)]
    }

    fn from_words(words: &[Option<i64>]) -> Self {
        i128::from(words[1].unwrap_or(0)) << 64 | i128::from(words[0].unwrap_or(0) as u64)
    }
}

impl Row for (i64, i64) {
    const WORDS: usize = 2;

    fn to_words(self) -> Vec<Option<i64>> {
        vec![Some(self.0), Some(self.1)]
    }

    fn from_words(words: &[Option<i64>]) -> Self {
        (words[0].unwrap_or(0), words[1].unwrap_or(0))
    }
}

/// A type of whole numbers, or of decimals taken as whole numbers of their last digit.
pub(crate) trait Whole: ArrowPrimitiveType + Debug + Send + Sync {
    /// The type in an error.
    const NAME: &str;

    fn widened(value: Self::Native) -> i128;

    /// The value in this type, if it fits.
    fn narrowed(value: i128) -> Option<Self::Native>;
}

macro_rules! whole {
    ($($arrow:ty, $name:literal;)*) => {$(
        impl Whole for $arrow {
            const NAME: &str = $name;

            fn widened(value: Self::Native) -> i128 {
                value.into()
            }

            fn narrowed(value: i128) -> Option<Self::Native> {
                value.try_into().ok()
            }
        }
    )*};
}

whole! {
    Int64Type, "BIGINT";
    UInt64Type, "BIGINT UNSIGNED";
    DurationSecondType, "a duration";
    DurationMillisecondType, "a duration";
    DurationMicrosecondType, "a duration";
    DurationNanosecondType, "a duration";
}

impl Whole for Decimal128Type {
    const NAME: &str = "DECIMAL(38)";

    fn widened(value: i128) -> i128 {
        value
    }

    fn narrowed(value: i128) -> Option<i128> {
        (value.unsigned_abs() < 10u128.pow(38)).then_some(value)
    }
}

/// A sum that cannot overflow: `low + 2¹²⁸ · overflows`.
#[derive(Debug, Default, Clone, Copy)]
struct WholeTotal {
    low: i128,
    overflows: i64,
}

impl WholeTotal {
    #[inline]
    fn add(&mut self, value: i128) {
        let (low, over) = self.low.overflowing_add(value);
        self.low = low;
        if over {
            self.overflows += if value < 0 { -1 } else { 1 };
        }
    }

    #[inline]
    fn remove(&mut self, value: i128) {
        let (low, over) = self.low.overflowing_sub(value);
        self.low = low;
        if over {
            self.overflows += if value < 0 { 1 } else { -1 };
        }
    }

    fn in_256_bits(self) -> i256 {
        i256::from_parts(self.low as u128, i128::from(self.overflows) + (self.low >> 127))
    }

    fn merge(&mut self, value: i256) {
        let (low, high) = value.to_parts();
        let low = low as i128;
        self.add(low);
        self.overflows += (high - (low >> 127)) as i64;
    }

    /// The sum in 128 bits, if it fits.
    fn value(self) -> Option<i128> {
        (self.overflows == 0).then_some(self.low)
    }
}

fn totals(totals: impl Iterator<Item = Option<WholeTotal>>) -> Result<ArrayRef> {
    let column = totals.map(|total| total.map(WholeTotal::in_256_bits)).collect::<Decimal256Array>();
    Ok(Arc::new(column.with_precision_and_scale(76, 0)?))
}

/// A sum, and of how many numbers.
#[derive(Debug)]
pub(crate) struct WholeSum<T> {
    total: WholeTotal,
    count: u64,
    of: PhantomData<T>,
}

impl<T> Default for WholeSum<T> {
    fn default() -> Self {
        WholeSum { total: WholeTotal::default(), count: 0, of: PhantomData }
    }
}

impl<T: Whole> Tally for WholeSum<T>
where
    T::Native: Row,
{
    type Columns<'a> = &'a PrimitiveArray<T>;
    type Row = T::Native;
    type Answer = T;

    fn columns(values: &[ArrayRef]) -> Result<&PrimitiveArray<T>> {
        Ok(values[0].as_primitive())
    }

    #[inline]
    fn row(column: &PrimitiveArray<T>, index: usize) -> Result<Option<T::Native>> {
        Ok(value_at(column, index))
    }

    #[inline]
    fn add(&mut self, value: T::Native) -> Result<()> {
        self.total.add(T::widened(value));
        self.count += 1;
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<T::Native>> {
        if self.count == 0 {
            return Ok(None);
        }
        let sum = self.total.value().and_then(T::narrowed);
        sum.map(Some).ok_or_else(|| match T::DATA_TYPE {
            DataType::Decimal128(..) => exec_datafusion_err!(
                "decimal overflow in sum: the total does not fit {}; sum(CAST(… AS DOUBLE)) is a rounded total",
                T::NAME
            ),
            _ => exec_datafusion_err!("integer overflow in sum: {} does not fit {}", self.total.in_256_bits(), T::NAME),
        })
    }

    #[inline]
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl<T: Whole> Mergeable for WholeSum<T>
where
    T::Native: Row,
{
    fn state_columns() -> Vec<(&'static str, DataType)> {
        vec![("sum", DataType::Decimal256(76, 0))]
    }

    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
        Ok(vec![totals(tallies.iter().map(|tally| (tally.count > 0).then_some(tally.total)))?])
    }

    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
        if let Some(sum) = value_at(states[0].as_primitive::<Decimal256Type>(), index) {
            self.total.merge(sum);
            self.count += 1;
        }
        Ok(())
    }
}

impl<T: Whole> Retractable for WholeSum<T>
where
    T::Native: Row,
{
    fn remove(&mut self, value: T::Native) -> Result<()> {
        self.total.remove(T::widened(value));
        self.count -= 1;
        Ok(())
    }
}

/// A sum of whole numbers and their number, for a mean that is rounded once.
#[derive(Debug)]
pub(crate) struct WholeMean<T>(WholeSum<T>);

impl<T> Default for WholeMean<T> {
    fn default() -> Self {
        WholeMean(WholeSum::default())
    }
}

/// How many more decimals a mean has than its numbers, as a quotient.
pub(crate) const MORE_DECIMALS: u8 = 4;

/// A sum of decimals and their number, for a mean with [`MORE_DECIMALS`] that 38 digits hold.
#[derive(Debug, Default)]
pub(crate) struct DecimalMean(WholeSum<Decimal128Type>);

/// The same where they do not.
#[derive(Debug, Default)]
pub(crate) struct WideDecimalMean(WholeSum<Decimal128Type>);

/// What means share: they differ in the answer.
macro_rules! mean {
    ([$($generics:tt)*], $tally:ty, $of:ty, $answer_type:ty, $answer:expr) => {
        impl<$($generics)*> Tally for $tally
        where
            <$of as ArrowPrimitiveType>::Native: Row,
        {
            type Columns<'a> = &'a PrimitiveArray<$of>;
            type Row = <$of as ArrowPrimitiveType>::Native;
            type Answer = $answer_type;

            fn columns(values: &[ArrayRef]) -> Result<&PrimitiveArray<$of>> {
                Ok(values[0].as_primitive())
            }

            #[inline]
            fn row(column: &PrimitiveArray<$of>, index: usize) -> Result<Option<Self::Row>> {
                Ok(value_at(column, index))
            }

            #[inline]
            fn add(&mut self, value: Self::Row) -> Result<()> {
                self.0.add(value)
            }

            fn answer(&mut self) -> Result<Option<<$answer_type as ArrowPrimitiveType>::Native>> {
                let answer = $answer;
                Ok((self.0.count > 0).then(|| answer(self.0.total, self.0.count)))
            }

            #[inline]
            fn heap_bytes(&self) -> usize {
                0
            }
        }

        impl<$($generics)*> Mergeable for $tally
        where
            <$of as ArrowPrimitiveType>::Native: Row,
        {
            fn state_columns() -> Vec<(&'static str, DataType)> {
                vec![("count", DataType::UInt64), ("sum", DataType::Decimal256(76, 0))]
            }

            fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
                Ok(vec![
                    Arc::new(tallies.iter().map(|tally| tally.0.count).collect::<UInt64Array>()),
                    totals(tallies.iter().map(|tally| Some(tally.0.total)))?,
                ])
            }

            fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
                self.0.count += states[0].as_primitive::<UInt64Type>().value(index);
                self.0.total.merge(states[1].as_primitive::<Decimal256Type>().value(index));
                Ok(())
            }
        }

        impl<$($generics)*> Retractable for $tally
        where
            <$of as ArrowPrimitiveType>::Native: Row,
        {
            fn remove(&mut self, value: Self::Row) -> Result<()> {
                self.0.remove(value)
            }
        }
    };
}

mean!([T: Whole], WholeMean<T>, T, Float64Type, |total: WholeTotal, count| mean_of_whole(total.low, count));
mean!([], DecimalMean, Decimal128Type, Decimal128Type, |total, count| {
    // It fits: it is no larger than the numbers.
    decimal_mean(total, count).to_i128().unwrap_or(0)
});
mean!([], WideDecimalMean, Decimal128Type, Decimal256Type, decimal_mean);

/// The sum with more decimals ÷ the number, halves away from 0.
fn decimal_mean(total: WholeTotal, count: u64) -> i256 {
    let up = 10i128.pow(MORE_DECIMALS.into());
    if let Some(dividend) = total.value().and_then(|sum| sum.checked_mul(up)) {
        let (quotient, rest) = (dividend / i128::from(count), (dividend % i128::from(count)).unsigned_abs());
        return i256::from_i128(quotient + if 2 * rest >= u128::from(count) { dividend.signum() } else { 0 });
    }
    let dividend = BigInt::from_signed_bytes_le(&total.in_256_bits().to_le_bytes()) * up;
    let doubled: BigInt =
        &dividend * 2 + if total.in_256_bits().is_negative() { -i128::from(count) } else { count.into() };
    // Whole division of big numbers cuts towards 0, as that of small ones does.
    let mean = (doubled / (i128::from(count) * 2)).to_signed_bytes_le();
    let sign = if mean.last().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
    let mut bytes = [sign; 32];
    for (byte, of_mean) in bytes.iter_mut().zip(mean) {
        *byte = of_mean;
    }
    i256::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::{Distinct, testing};
    use arrow::array::{Decimal128Array, Int64Array, UInt64Array};
    use datafusion_common::ScalarValue;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn column(values: &[Option<i64>]) -> Vec<ArrayRef> {
        vec![Arc::new(values.iter().copied().collect::<Int64Array>())]
    }

    /// The sum in 128 bits, and whether 64 can say it.
    fn naive(values: &[Option<i64>]) -> std::result::Result<ScalarValue, i128> {
        let values = values.iter().copied().flatten().map(i128::from).collect::<Vec<_>>();
        let sum: i128 = values.iter().sum();
        let fits = i64::try_from(sum).map_err(|_| sum)?;
        Ok(ScalarValue::Int64((!values.is_empty()).then_some(fits)))
    }

    fn distinct(values: &[Option<i64>]) -> Vec<Option<i64>> {
        let mut values = values.to_vec();
        values.sort_unstable();
        values.dedup();
        values
    }

    proptest! {
        #[test]
        fn adds_up_or_says_that_it_cannot(
            values in vec(prop::option::weighted(0.9, prop_oneof![-5..5i64, Just(i64::MAX), Just(i64::MIN)]), 0..20),
            cuts in vec(0..21usize, 0..4),
            width in 1..6usize,
        ) {
            let same = |answer: Result<ScalarValue>, expected: std::result::Result<ScalarValue, i128>| match expected {
                Ok(sum) => assert_eq!(answer.unwrap(), sum),
                Err(sum) => assert!(answer.unwrap_err().to_string().contains(&format!("{sum} does not fit BIGINT"))),
            };
            same(testing::whole::<WholeSum<Int64Type>>(&column(&values)), naive(&values));
            same(testing::cut::<WholeSum<Int64Type>>(&column(&values), &cuts), naive(&values));
            same(testing::cut::<Distinct<WholeSum<Int64Type>>>(&column(&values), &cuts), naive(&distinct(&values)));

            let small = values.iter().map(|value| value.filter(|value| value.abs_diff(0) < 9)).collect::<Vec<_>>();
            let frames = (0..small.len()).map(|row| &small[(row + 1).saturating_sub(width)..=row]);
            let moving = testing::moving::<WholeSum<Int64Type>>(&column(&small), width).unwrap();
            prop_assert_eq!(moving, frames.clone().map(|frame| naive(frame).unwrap()).collect::<Vec<_>>());
            let moving = testing::moving::<Distinct<WholeSum<Int64Type>>>(&column(&small), width).unwrap();
            prop_assert_eq!(moving, frames.map(|frame| naive(&distinct(frame)).unwrap()).collect::<Vec<_>>());
            let groups = (0..small.len()).map(|row| row % 3).collect::<Vec<_>>();
            let of_group = |group| naive(&small.iter().skip(group).step_by(3).copied().collect::<Vec<_>>()).unwrap();
            let grouped = testing::grouped::<WholeSum<Int64Type>>(&column(&small), &groups, 3, &cuts).unwrap();
            prop_assert_eq!(grouped, (0..3).map(of_group).collect::<Vec<_>>());
        }

        #[test]
        fn decimals_add_up_beyond_128_bits_and_back(
            values in vec(prop_oneof![
                -5..5i128,
                Just(10i128.pow(38) - 1),
                Just(1 - 10i128.pow(38)),
                Just(9 * 10i128.pow(37)),
            ], 1..20),
            cuts in vec(0..21usize, 0..4),
        ) {
            let column: Vec<ArrayRef> = vec![Arc::new(Decimal128Array::from(values.clone()))];
            let sum: BigInt = values.iter().map(|&value| BigInt::from(value)).sum();
            let fits = sum.magnitude() < BigInt::from(10u128.pow(38)).magnitude();
            match testing::cut::<WholeSum<Decimal128Type>>(&column, &cuts) {
                Ok(ScalarValue::Decimal128(Some(answer), ..)) => prop_assert_eq!(&BigInt::from(answer), &sum),
                Ok(other) => panic!("{other:?}"),
                Err(error) => prop_assert!(!fits && error.to_string().contains("does not fit DECIMAL(38)"), "{error}"),
            }
            let mean = testing::cut::<WideDecimalMean>(&column, &cuts).unwrap();
            let ScalarValue::Decimal256(Some(mean), ..) = mean else { panic!("{mean:?}") };
            // Nearest: twice the distance to the true mean is at most 1.
            let mean = BigInt::from_signed_bytes_le(&mean.to_le_bytes());
            let apart: BigInt = (mean * values.len() - &sum * 10_000) * 2;
            prop_assert!(apart.magnitude() <= BigInt::from(values.len()).magnitude());
        }
    }

    #[test]
    fn unsigned_numbers_use_all_their_bits() {
        let column = |values: &[u64]| vec![Arc::new(UInt64Array::from(values.to_vec())) as ArrayRef];
        let sum = |values| testing::whole::<WholeSum<UInt64Type>>(&column(values));
        assert_eq!(sum(&[u64::MAX - 1, 1]).unwrap(), ScalarValue::UInt64(Some(u64::MAX)));
        let error = sum(&[u64::MAX, 1]).unwrap_err().to_string();
        assert!(error.contains("18446744073709551616 does not fit BIGINT UNSIGNED"), "{error}");
        let mean = testing::whole::<WholeMean<UInt64Type>>(&column(&[u64::MAX, u64::MAX])).unwrap();
        assert_eq!(mean, ScalarValue::Float64(Some(u64::MAX as f64)));
    }
}
