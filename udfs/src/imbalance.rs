//! `imbalance(x)` and its family: how unevenly a measure is spread over lanes.
//!
//! Life of the data: one row is one lane with its load; loads add up to a count, an exact sum and a maximum (`Loads`), or to
//! exact sums of loads and of their squares (`Moments`, for `cv`), or are kept (`Ranked`, for `gini`, which needs them in
//! order). The answers are ratios of these. Whole numbers are taken as doubles: below 2⁵³ nothing is lost.
//!
//! A NaN or infinite load makes the answer NaN; in a moving frame, for as long as it is in the frame.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use datafusion_common::Result;
use datafusion_expr::{AggregateUDFImpl, Signature, Volatility};
use datafusion_macros::user_doc;

use crate::aggregate::{Mergeable, Retractable, Row, Tally, by_tally, list_at, list_column, list_type, value_at};
use crate::exact::moments::{Moments, Variation};
use crate::exact::totals::{bytes_at, written};
use crate::exact::{Double, Dyadic, ExactSum, Wide, mantissa_and_exponent};
use crate::multiset::Multiset;
use crate::spans::named;

/// `imbalance(x)`, an aggregate. Shape: one load per row → one `DOUBLE`, 1 = balanced.
#[user_doc(
    doc_section(label = "Imbalance"),
    description = "Load imbalance: the greatest load ÷ the mean load.\n\n\
        Rows: one per group; a row is a lane with its load. Units: a ratio; 1 is perfect balance, the number of lanes is \
        one lane doing everything.\n\n\
        NULLs are left out: a lane that never ran must be a row with load 0 to count (LEFT JOIN from `locations`). \
        The answer is NULL without loads and when they add up to 0. Ties and the order of rows do not matter. \
        A NaN or infinite load makes it NaN.\n\n\
        Errors: none. Cost: O(1) a row; in a moving window frame O(log n).\n\n\
        Source: DeRose, Homer and Johnson, Detecting Application Load Imbalance on High End Massively Parallel Systems \
        (Euro-Par 2007).",
    syntax_example = "imbalance(x)",
    sql_example = "SELECT imbalance(work) AS imbalance\n\
        FROM (VALUES ('w0', 9), ('w1', 6), ('w2', 3)) AS lanes(location, work)",
    argument(name = "x", description = "The load of a lane (DOUBLE; whole numbers are taken as doubles).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Imbalance {
    signature: Signature,
}

/// `imbalance_percent(x)`, an aggregate. Shape: one load per row → one `DOUBLE`, 0 = balanced, 100 = one lane does all.
#[user_doc(
    doc_section(label = "Imbalance"),
    description = "Load imbalance in per cent of the worst case: 100 · (max − mean) ÷ max · n ÷ (n − 1).\n\n\
        Rows: one per group; a row is a lane with its load. Units: per cent; 0 is perfect balance (and a single lane), \
        100 is one lane doing everything.\n\n\
        NULLs are left out: a lane that never ran must be a row with load 0 to count (LEFT JOIN from `locations`). \
        The answer is NULL without loads and when the greatest of several is 0. Ties and the order of rows do not \
        matter. A NaN or infinite load makes it NaN.\n\n\
        Errors: none. Cost: O(1) a row; in a moving window frame O(log n).\n\n\
        Source: the imbalance percentage of CrayPat (DeRose, Homer and Johnson, Euro-Par 2007).",
    syntax_example = "imbalance_percent(x)",
    sql_example = "SELECT imbalance_percent(work) AS percent\n\
        FROM (VALUES ('w0', 9), ('w1', 6), ('w2', 3)) AS lanes(location, work)",
    argument(name = "x", description = "The load of a lane (DOUBLE; whole numbers are taken as doubles).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ImbalancePercent {
    signature: Signature,
}

/// `load_balance(x)`, an aggregate. Shape: one load per row → one `DOUBLE`, 1 = balanced.
#[user_doc(
    doc_section(label = "Imbalance"),
    description = "Load balance: the mean load ÷ the greatest load.\n\n\
        Rows: one per group; a row is a lane with its load. Units: a ratio; 1 is perfect balance, 1 ÷ n is one of n lanes \
        doing everything.\n\n\
        NULLs are left out: a lane that never ran must be a row with load 0 to count (LEFT JOIN from `locations`). \
        The answer is NULL without loads and when the greatest is 0. Ties and the order of rows do not matter. \
        A NaN or infinite load makes it NaN.\n\n\
        Errors: none. Cost: O(1) a row; in a moving window frame O(log n).\n\n\
        Source: the load balance efficiency of the POP methodology.",
    syntax_example = "load_balance(x)",
    sql_example = "SELECT load_balance(work) AS balance\n\
        FROM (VALUES ('w0', 9), ('w1', 6), ('w2', 3)) AS lanes(location, work)",
    argument(name = "x", description = "The load of a lane (DOUBLE; whole numbers are taken as doubles).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct LoadBalance {
    signature: Signature,
}

/// `cv(x)`, an aggregate. Shape: one load per row → one `DOUBLE`, 0 = balanced.
#[user_doc(
    doc_section(label = "Imbalance"),
    description = "Coefficient of variation: the standard deviation of the loads ÷ their mean.\n\n\
        Rows: one per group; a row is a lane with its load. Units: a ratio; 0 is perfect balance. The deviation is that of \
        the population (÷ n): the lanes are all there are, not a sample.\n\n\
        NULLs are left out. The answer is NULL without loads and when they add up to 0. Ties and the order of rows do \
        not matter. A NaN or infinite load makes it NaN.\n\n\
        Errors: none. Cost: O(1) a row.\n\n\
        Source: Pearson 1896; from exact sums, rounded at the end.",
    syntax_example = "cv(x)",
    sql_example = "SELECT cv(work) AS cv\n\
        FROM (VALUES ('w0', 9), ('w1', 6), ('w2', 3)) AS lanes(location, work)",
    argument(name = "x", description = "The load of a lane (DOUBLE; whole numbers are taken as doubles).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Cv {
    signature: Signature,
}

/// `gini(x)`, an aggregate. Shape: one load per row → one `DOUBLE`, 0 = balanced.
#[user_doc(
    doc_section(label = "Imbalance"),
    description = "Gini coefficient of the loads: half of their mean absolute difference, relative to the mean.\n\n\
        Rows: one per group; a row is a lane with its load. Units: a ratio; 0 is perfect balance, 1 − 1 ÷ n is one of n \
        lanes doing everything.\n\n\
        NULLs are left out: a lane that never ran must be a row with load 0 to count (LEFT JOIN from `locations`). \
        The answer is NULL without loads and when they add up to 0. Ties and the order of rows do not matter. \
        A NaN or infinite load makes it NaN.\n\n\
        Errors: none. Cost: 8 bytes a row and one sort; in a window frame O(n) an answer.\n\n\
        Source: Gini 1912, in the form of the population.",
    syntax_example = "gini(x)",
    sql_example = "SELECT gini(work) AS gini\n\
        FROM (VALUES ('w0', 9), ('w1', 6), ('w2', 3)) AS lanes(location, work)",
    argument(name = "x", description = "The load of a lane (DOUBLE; whole numbers are taken as doubles).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Gini {
    signature: Signature,
}

/// The SQL interface of a measure of imbalance: its name, its tally, and the tally for moving frames.
macro_rules! measure {
    ($function:ident, $name:literal, $tally:ty, $frame:ty) => {
        impl $function {
            /// The function.
            pub fn new() -> Self {
                let signature = Signature::exact(vec![DataType::Float64], Volatility::Immutable);
                $function { signature: named(signature, &["x"]) }
            }
        }

        impl Default for $function {
            fn default() -> Self {
                Self::new()
            }
        }

        impl AggregateUDFImpl for $function {
            fn name(&self) -> &str {
                $name
            }

            fn signature(&self) -> &Signature {
                &self.signature
            }

            fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
                Ok(DataType::Float64)
            }

            by_tally!($tally, $frame);
        }
    };
}

measure!(Imbalance, "imbalance", Loads<MaxToMean>, LoadsFrame<MaxToMean>);
measure!(ImbalancePercent, "imbalance_percent", Loads<Percent>, LoadsFrame<Percent>);
measure!(LoadBalance, "load_balance", Loads<MeanToMax>, LoadsFrame<MeanToMax>);
measure!(Cv, "cv", Moments<Variation, Double>, Moments<Variation, Double>);
measure!(Gini, "gini", Ranked, RankedFrame);

/// A ratio of count, mean and maximum. There is at least one load, and all are finite.
trait Ratio: Debug + Default + Send + Sync + 'static {
    fn of(count: u64, mean: f64, max: f64) -> Option<f64>;
}

#[derive(Debug, Default)]
struct MaxToMean;

impl Ratio for MaxToMean {
    fn of(_count: u64, mean: f64, max: f64) -> Option<f64> {
        (mean != 0.0).then(|| max / mean)
    }
}

#[derive(Debug, Default)]
struct MeanToMax;

impl Ratio for MeanToMax {
    fn of(_count: u64, mean: f64, max: f64) -> Option<f64> {
        (max != 0.0).then(|| mean / max)
    }
}

#[derive(Debug, Default)]
struct Percent;

impl Ratio for Percent {
    fn of(count: u64, mean: f64, max: f64) -> Option<f64> {
        if count == 1 {
            return Some(0.0);
        }
        let count = count as f64;
        (max != 0.0).then(|| 100.0 * (max - mean) / max * (count / (count - 1.0)))
    }
}

/// A load, as a key: equal loads have equal bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Load(i64);

impl Load {
    fn new(value: f64) -> Self {
        // `+ 0.0` makes one zero of two, and the bits of negative numbers are turned so that they sort as the numbers do.
        let bits = (value + 0.0).to_bits() as i64;
        Load(bits ^ ((bits >> 63) as u64 >> 1) as i64)
    }

    fn value(self) -> f64 {
        f64::from_bits((self.0 ^ ((self.0 >> 63) as u64 >> 1) as i64) as u64)
    }

    fn at(column: &Float64Array, index: usize) -> Option<Load> {
        value_at(column, index).map(Load::new)
    }
}

impl Row for Load {
    const WORDS: usize = 1;

    fn to_words(self) -> Vec<Option<i64>> {
        vec![Some(self.0)]
    }

    fn from_words(words: &[Option<i64>]) -> Self {
        Load(words[0].unwrap_or(0))
    }
}

/// Count, sum and maximum of the loads.
#[derive(Debug, Default)]
struct Loads<R> {
    finite: u64,
    /// NaN and infinite ones: counted apart, so that they can leave a frame again.
    odd: u64,
    sum: ExactSum,
    max: Option<f64>,
    ratio: PhantomData<R>,
}

impl<R: Ratio> Loads<R> {
    fn ratio(finite: u64, odd: u64, sum: &ExactSum, max: Option<f64>) -> Option<f64> {
        if odd > 0 {
            return Some(f64::NAN);
        }
        let max = max?;
        R::of(finite, sum.mean(finite), max)
    }
}

impl<R: Ratio> Tally for Loads<R> {
    type Columns<'a> = &'a Float64Array;
    type Row = Load;
    type Answer = Float64Type;

    fn columns(values: &[ArrayRef]) -> Result<&Float64Array> {
        Ok(values[0].as_primitive())
    }

    fn row(column: &Float64Array, index: usize) -> Result<Option<Load>> {
        Ok(Load::at(column, index))
    }

    fn add(&mut self, load: Load) -> Result<()> {
        let value = load.value();
        if value.is_finite() {
            self.finite += 1;
            self.sum.add(value);
            self.max = Some(self.max.map_or(value, |max| max.max(value)));
        } else {
            self.odd += 1;
        }
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<f64>> {
        Ok(Self::ratio(self.finite, self.odd, &self.sum, self.max))
    }

    fn heap_bytes(&self) -> usize {
        self.sum.heap_bytes()
    }
}

impl<R: Ratio> Mergeable for Loads<R> {
    fn state_columns() -> Vec<(&'static str, DataType)> {
        vec![
            ("finite", DataType::UInt64),
            ("odd", DataType::UInt64),
            ("sum", DataType::LargeBinary),
            ("max", DataType::Float64),
        ]
    }

    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
        Ok(vec![
            Arc::new(tallies.iter().map(|loads| loads.finite).collect::<UInt64Array>()),
            Arc::new(tallies.iter().map(|loads| loads.odd).collect::<UInt64Array>()),
            written(tallies, |loads, bytes| loads.sum.write(bytes)),
            Arc::new(tallies.iter().map(|loads| loads.max).collect::<Float64Array>()),
        ])
    }

    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
        self.finite += states[0].as_primitive::<UInt64Type>().value(index);
        self.odd += states[1].as_primitive::<UInt64Type>().value(index);
        self.sum.merge(bytes_at(&states[2], index));
        if let Some(max) = value_at(states[3].as_primitive::<Float64Type>(), index) {
            self.max = Some(self.max.map_or(max, |known| known.max(max)));
        }
        Ok(())
    }
}

/// The loads of a moving frame: the maximum may leave.
#[derive(Debug)]
struct LoadsFrame<R> {
    finite: u64,
    odd: u64,
    sum: ExactSum,
    loads: Multiset<Load>,
    ratio: PhantomData<R>,
}

impl<R> Default for LoadsFrame<R> {
    fn default() -> Self {
        LoadsFrame { finite: 0, odd: 0, sum: ExactSum::default(), loads: Multiset::default(), ratio: PhantomData }
    }
}

impl<R: Ratio> Tally for LoadsFrame<R> {
    type Columns<'a> = &'a Float64Array;
    type Row = Load;
    type Answer = Float64Type;

    fn columns(values: &[ArrayRef]) -> Result<&Float64Array> {
        Ok(values[0].as_primitive())
    }

    fn row(column: &Float64Array, index: usize) -> Result<Option<Load>> {
        Ok(Load::at(column, index))
    }

    fn add(&mut self, load: Load) -> Result<()> {
        if load.value().is_finite() {
            self.finite += 1;
            self.sum.add(load.value());
            self.loads.add(load);
        } else {
            self.odd += 1;
        }
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<f64>> {
        Ok(Loads::<R>::ratio(self.finite, self.odd, &self.sum, self.loads.last().map(Load::value)))
    }

    fn heap_bytes(&self) -> usize {
        self.sum.heap_bytes() + self.loads.heap_bytes()
    }
}

impl<R: Ratio> Retractable for LoadsFrame<R> {
    fn remove(&mut self, load: Load) -> Result<()> {
        if load.value().is_finite() {
            self.finite -= 1;
            self.sum.remove(load.value());
            self.loads.remove(load);
        } else {
            self.odd -= 1;
        }
        Ok(())
    }
}

/// All loads, for measures that need their order.
#[derive(Debug, Default)]
struct Ranked {
    loads: Vec<Load>,
}

impl Tally for Ranked {
    type Columns<'a> = &'a Float64Array;
    type Row = Load;
    type Answer = Float64Type;

    fn columns(values: &[ArrayRef]) -> Result<&Float64Array> {
        Ok(values[0].as_primitive())
    }

    fn row(column: &Float64Array, index: usize) -> Result<Option<Load>> {
        Ok(Load::at(column, index))
    }

    fn add(&mut self, load: Load) -> Result<()> {
        self.loads.push(load);
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<f64>> {
        self.loads.sort_unstable();
        Ok(gini(self.loads.iter().map(|&load| (load, 1)), self.loads.len() as u64))
    }

    fn heap_bytes(&self) -> usize {
        self.loads.capacity() * size_of::<Load>()
    }
}

impl Mergeable for Ranked {
    fn state_columns() -> Vec<(&'static str, DataType)> {
        vec![("loads", list_type())]
    }

    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
        let offsets = OffsetBuffer::from_lengths(tallies.iter().map(|ranked| ranked.loads.len()));
        let loads = tallies.iter().flat_map(|ranked| &ranked.loads).map(|load| load.0);
        Ok(vec![list_column(offsets, Int64Array::from_iter_values(loads))])
    }

    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
        let loads = list_at(&states[0], index);
        self.loads.extend(loads.values().iter().map(|&load| Load(load)));
        Ok(())
    }
}

/// The loads of a moving frame, in order. The answer looks at all of them: each one's rank counts.
#[derive(Debug, Default)]
struct RankedFrame {
    loads: Multiset<Load>,
    count: u64,
}

impl Tally for RankedFrame {
    type Columns<'a> = &'a Float64Array;
    type Row = Load;
    type Answer = Float64Type;

    fn columns(values: &[ArrayRef]) -> Result<&Float64Array> {
        Ok(values[0].as_primitive())
    }

    fn row(column: &Float64Array, index: usize) -> Result<Option<Load>> {
        Ok(Load::at(column, index))
    }

    fn add(&mut self, load: Load) -> Result<()> {
        self.loads.add(load);
        self.count += 1;
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<f64>> {
        Ok(gini(self.loads.iter(), self.count))
    }

    fn heap_bytes(&self) -> usize {
        self.loads.heap_bytes()
    }
}

impl Retractable for RankedFrame {
    fn remove(&mut self, load: Load) -> Result<()> {
        self.loads.remove(load);
        self.count -= 1;
        Ok(())
    }
}

/// `Σ (2i − n − 1) · xᵢ ÷ (n · Σ xᵢ)` over loads in ascending order, each with its number of copies.
fn gini(loads: impl Iterator<Item = (Load, u64)>, count: u64) -> Option<f64> {
    let (mut weighted, mut sum) = (Wide::default(), Wide::default());
    let mut before = 0;
    for (load, copies) in loads {
        let value = load.value();
        if !value.is_finite() {
            return Some(f64::NAN);
        }
        // Equal loads have consecutive ranks, so the mean rank stands for each of them. No memory holds enough loads for
        // these products to leave 128 bits.
        let (mantissa, exponent) = mantissa_and_exponent(value);
        let of_copies = i128::from(copies) * i128::from(mantissa);
        let rank = 2 * i128::from(before) + i128::from(copies) - i128::from(count);
        weighted.add_i128(rank * of_copies, exponent);
        sum.add_i128(of_copies, exponent);
        before += copies;
    }
    let sum = sum.dyadic();
    (!sum.is_zero()).then(|| weighted.dyadic().over(&Dyadic::from(count).times(&sum)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::testing;
    use datafusion_common::ScalarValue;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn column(loads: &[Option<f64>]) -> Vec<ArrayRef> {
        vec![Arc::new(loads.iter().copied().collect::<Float64Array>())]
    }

    fn naive_imbalance(loads: &[f64]) -> Option<f64> {
        let sum: f64 = loads.iter().sum();
        let max = loads.iter().copied().reduce(f64::max)?;
        (sum != 0.0).then(|| max / (sum / loads.len() as f64))
    }

    fn naive_cv(loads: &[f64]) -> Option<f64> {
        let n = loads.len() as f64;
        let mean = loads.iter().sum::<f64>() / n;
        let variance = loads.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        (!loads.is_empty() && mean != 0.0).then(|| variance.sqrt() / mean)
    }

    fn naive_gini(loads: &[f64]) -> Option<f64> {
        let n = loads.len() as f64;
        let sum: f64 = loads.iter().sum();
        let differences: f64 = loads.iter().flat_map(|a| loads.iter().map(move |b| (a - b).abs())).sum();
        (sum != 0.0).then(|| differences / (2.0 * n * sum))
    }

    fn close(answer: ScalarValue, expected: Option<f64>) {
        match (answer, expected) {
            (ScalarValue::Float64(None), None) => {}
            (ScalarValue::Float64(Some(a)), Some(b)) if (a - b).abs() <= 1e-9 * b.abs().max(1.0) => {}
            (answer, expected) => panic!("{answer:?} is not {expected:?}"),
        }
    }

    fn check<T: Mergeable, F: Retractable>(
        naive: fn(&[f64]) -> Option<f64>,
        loads: &[Option<f64>],
        cuts: &[usize],
        width: usize,
    ) {
        let naive = |loads: &[Option<f64>]| naive(&loads.iter().copied().flatten().collect::<Vec<_>>());
        let values = column(loads);
        close(testing::whole::<T>(&values).unwrap(), naive(loads));
        close(testing::cut::<T>(&values, cuts).unwrap(), naive(loads));
        let groups = (0..loads.len()).map(|row| row % 3).collect::<Vec<_>>();
        for (group, answer) in testing::grouped::<T>(&values, &groups, 3, cuts).unwrap().into_iter().enumerate() {
            close(answer, naive(&loads.iter().skip(group).step_by(3).copied().collect::<Vec<_>>()));
        }
        for (row, answer) in testing::moving::<F>(&values, width).unwrap().into_iter().enumerate() {
            close(answer, naive(&loads[(row + 1).saturating_sub(width)..=row]));
        }
    }

    proptest! {
        // Whole loads, so that "adds up to 0" is exact.
        #[test]
        fn measures_equal_their_definitions(
            loads in vec(prop::option::weighted(0.9, (0..20i32).prop_map(f64::from)), 0..20),
            cuts in vec(0..21usize, 0..4),
            width in 1..6usize,
        ) {
            check::<Loads<MaxToMean>, LoadsFrame<MaxToMean>>(naive_imbalance, &loads, &cuts, width);
            check::<Loads<MeanToMax>, LoadsFrame<MeanToMax>>(
                |loads| naive_imbalance(loads).map(|x| 1.0 / x), &loads, &cuts, width,
            );
            check::<Moments<Variation, Double>, Moments<Variation, Double>>(naive_cv, &loads, &cuts, width);
            check::<Ranked, RankedFrame>(naive_gini, &loads, &cuts, width);
            check::<Loads<Percent>, LoadsFrame<Percent>>(
                |loads| {
                    let n = loads.len() as f64;
                    let max = loads.iter().copied().reduce(f64::max)?;
                    let mean = loads.iter().sum::<f64>() / n;
                    if n == 1.0 { return Some(0.0) }
                    (max != 0.0).then(|| 100.0 * (max - mean) / max * n / (n - 1.0))
                },
                &loads, &cuts, width,
            );
        }

        #[test]
        fn loads_sort_as_their_numbers(a in any::<f64>(), b in any::<f64>()) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            prop_assert_eq!(Load::new(a).cmp(&Load::new(b)), a.partial_cmp(&b).unwrap());
            prop_assert_eq!(Load::new(a).value(), a);
        }
    }

    #[test]
    fn infinities_leave_a_frame() {
        let loads = [Some(1.0), Some(f64::INFINITY), Some(2.0), Some(2.0)];
        let answers = testing::moving::<LoadsFrame<MaxToMean>>(&column(&loads), 2).unwrap();
        let [first, second, third, fourth] = &answers[..] else { panic!("four rows") };
        assert_eq!((first, fourth), (&ScalarValue::Float64(Some(1.0)), &ScalarValue::Float64(Some(1.0))));
        for odd in [second, third] {
            assert!(matches!(odd, ScalarValue::Float64(Some(x)) if x.is_nan()));
        }
    }
}
