//! Tallies for variance, covariance, correlation and regression, from exact sums of numbers and of their products.
//!
//! `n · Σx² − (Σx)²` is computed in whole numbers of any length, so nothing is lost where the mean is large and the spread
//! is small, and the quotient is rounded once. Whole numbers are taken as they are, beyond 2⁵³ too.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, UInt64Array};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use datafusion_common::Result;

use super::totals::{bytes_at, written};
use super::{Double, Dyadic, ExactSum, Wide, mantissa_and_exponent};
use crate::aggregate::{Mergeable, Retractable, Row, Tally, value_at};

/// What is measured: doubles or whole numbers.
pub(crate) trait Quantity: Row + 'static {
    type Arrow: ArrowPrimitiveType;

    fn new(value: <Self::Arrow as ArrowPrimitiveType>::Native) -> Self;

    /// `mantissa · 2^exponent`; nothing for NaN and infinities.
    fn parts(self) -> Option<(i64, i32)>;
}

impl Quantity for Double {
    type Arrow = Float64Type;

    fn new(value: f64) -> Self {
        Double(value)
    }

    fn parts(self) -> Option<(i64, i32)> {
        self.0.is_finite().then(|| mantissa_and_exponent(self.0))
    }
}

impl Quantity for i64 {
    type Arrow = Int64Type;

    fn new(value: i64) -> Self {
        value
    }

    fn parts(self) -> Option<(i64, i32)> {
        Some((self, 0))
    }
}

/// A statistic of one quantity.
pub(crate) trait OfMoments: Debug + Default + Send + Sync + 'static {
    /// Answers are NULL for fewer rows.
    const ROWS_MIN: u64;

    /// The answer of `n` finite rows with this sum and this `n · Σx² − (Σx)²`.
    fn of(count: &Dyadic, sum: &Dyadic, spread: &Dyadic) -> Option<f64>;
}

/// Variance of the population: of all there are.
#[derive(Debug, Default)]
pub(crate) struct VarPop;

impl OfMoments for VarPop {
    const ROWS_MIN: u64 = 1;

    fn of(count: &Dyadic, _sum: &Dyadic, spread: &Dyadic) -> Option<f64> {
        Some(spread.over(&count.squared()))
    }
}

/// Variance of a sample.
#[derive(Debug, Default)]
pub(crate) struct VarSample;

impl OfMoments for VarSample {
    const ROWS_MIN: u64 = 2;

    fn of(count: &Dyadic, _sum: &Dyadic, spread: &Dyadic) -> Option<f64> {
        Some(spread.over(&pairs_of(count)))
    }
}

/// Standard deviation of the population.
#[derive(Debug, Default)]
pub(crate) struct StddevPop;

impl OfMoments for StddevPop {
    const ROWS_MIN: u64 = 1;

    fn of(count: &Dyadic, _sum: &Dyadic, spread: &Dyadic) -> Option<f64> {
        Some(spread.root_over(&count.squared()))
    }
}

/// Standard deviation of a sample.
#[derive(Debug, Default)]
pub(crate) struct StddevSample;

impl OfMoments for StddevSample {
    const ROWS_MIN: u64 = 2;

    fn of(count: &Dyadic, _sum: &Dyadic, spread: &Dyadic) -> Option<f64> {
        Some(spread.root_over(&pairs_of(count)))
    }
}

/// Standard deviation of the population ÷ mean. Both are over `n`, which cancels.
#[derive(Debug, Default)]
pub(crate) struct Variation;

impl OfMoments for Variation {
    const ROWS_MIN: u64 = 1;

    fn of(_count: &Dyadic, sum: &Dyadic, spread: &Dyadic) -> Option<f64> {
        let magnitude = (!sum.is_zero()).then(|| spread.root_over(&sum.squared()))?;
        Some(if sum.is_negative() { -magnitude } else { magnitude })
    }
}

/// `n · (n − 1)`
fn pairs_of(count: &Dyadic) -> Dyadic {
    count.times(&count.minus(&Dyadic::from(1)))
}

/// Number, sum and sum of squares.
#[derive(Debug)]
pub(crate) struct Moments<A, Q> {
    count: u64,
    /// NaN and infinite ones: counted apart, so that they can leave a frame again.
    odd: u64,
    sum: ExactSum,
    squares: Wide,
    answer: PhantomData<(A, Q)>,
}

impl<A, Q> Default for Moments<A, Q> {
    fn default() -> Self {
        Moments { count: 0, odd: 0, sum: ExactSum::default(), squares: Wide::default(), answer: PhantomData }
    }
}

impl<A: OfMoments, Q: Quantity> Tally for Moments<A, Q> {
    type Columns<'a> = &'a PrimitiveArray<Q::Arrow>;
    type Row = Q;
    type Answer = Float64Type;

    fn columns(values: &[ArrayRef]) -> Result<&PrimitiveArray<Q::Arrow>> {
        Ok(values[0].as_primitive())
    }

    #[inline]
    fn row(column: &PrimitiveArray<Q::Arrow>, index: usize) -> Result<Option<Q>> {
        Ok(value_at(column, index).map(Q::new))
    }

    #[inline]
    fn add(&mut self, row: Q) -> Result<()> {
        match row.parts() {
            Some((mantissa, exponent)) => {
                self.count += 1;
                self.sum.add_scaled(mantissa, exponent);
                self.squares.add_i128(i128::from(mantissa) * i128::from(mantissa), 2 * exponent);
            }
            None => self.odd += 1,
        }
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<f64>> {
        if self.count + self.odd < A::ROWS_MIN {
            return Ok(None);
        }
        if self.odd > 0 {
            return Ok(Some(f64::NAN));
        }
        let (count, sum) = (Dyadic::from(self.count), self.sum.dyadic());
        let spread = count.times(&self.squares.dyadic()).minus(&sum.squared());
        Ok(A::of(&count, &sum, &spread))
    }

    #[inline]
    fn heap_bytes(&self) -> usize {
        self.sum.heap_bytes() + self.squares.heap_bytes()
    }
}

impl<A: OfMoments, Q: Quantity> Mergeable for Moments<A, Q> {
    fn state_columns() -> Vec<(&'static str, DataType)> {
        vec![
            ("count", DataType::UInt64),
            ("odd", DataType::UInt64),
            ("sum", DataType::LargeBinary),
            ("squares", DataType::LargeBinary),
        ]
    }

    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
        Ok(vec![
            Arc::new(tallies.iter().map(|tally| tally.count).collect::<UInt64Array>()),
            Arc::new(tallies.iter().map(|tally| tally.odd).collect::<UInt64Array>()),
            written(tallies, |tally, bytes| tally.sum.write(bytes)),
            written(tallies, |tally, bytes| tally.squares.write(bytes)),
        ])
    }

    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
        self.count += states[0].as_primitive::<UInt64Type>().value(index);
        self.odd += states[1].as_primitive::<UInt64Type>().value(index);
        self.sum.merge(bytes_at(&states[2], index));
        self.squares.merge(bytes_at(&states[3], index));
        Ok(())
    }
}

impl<A: OfMoments, Q: Quantity> Retractable for Moments<A, Q> {
    fn remove(&mut self, row: Q) -> Result<()> {
        match row.parts() {
            Some((mantissa, exponent)) => {
                self.count -= 1;
                self.sum.remove_scaled(mantissa, exponent);
                self.squares.add_i128(-(i128::from(mantissa) * i128::from(mantissa)), 2 * exponent);
            }
            None => self.odd -= 1,
        }
        Ok(())
    }
}

/// A statistic of pairs `(y, x)`.
pub(crate) trait OfPairs: Debug + Default + Send + Sync + 'static {
    /// Answers are NULL for fewer rows.
    const ROWS_MIN: u64 = 1;
    /// Which products the answer needs: `x·x`, `y·y`, `x·y`. The others stay 0.
    const PRODUCTS: [bool; 3];

    /// The answer of finite rows.
    fn of(figures: &Figures) -> Option<f64>;

    /// The answer when NaN or infinities are among the `y`, the `x`.
    fn of_odd(_among_y: bool, _among_x: bool) -> Option<f64> {
        Some(f64::NAN)
    }
}

/// Exact figures of pairs: the number, the sums, and for each product `n · Σab − Σa · Σb`.
pub(crate) struct Figures {
    count: Dyadic,
    sum_x: Dyadic,
    sum_y: Dyadic,
    spread_x: Dyadic,
    spread_y: Dyadic,
    together: Dyadic,
}

/// The quotient, or NULL.
fn over(dividend: &Dyadic, divisor: &Dyadic) -> Option<f64> {
    (!divisor.is_zero()).then(|| dividend.over(divisor))
}

/// One question to pairs a line: name, least number of rows, products, answer.
macro_rules! of_pairs {
    ($($(#[$doc:meta])* $name:ident, $rows_min:literal, [$xx:literal, $yy:literal, $xy:literal], $of:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub(crate) struct $name;

        impl OfPairs for $name {
            const ROWS_MIN: u64 = $rows_min;
            const PRODUCTS: [bool; 3] = [$xx, $yy, $xy];

            fn of(figures: &Figures) -> Option<f64> {
                let of: fn(&Figures) -> Option<f64> = $of;
                of(figures)
            }
        }
    )*};
}

of_pairs! {
    /// Covariance of the population.
    CovarPop, 1, [false, false, true], |of| over(&of.together, &of.count.squared());
    /// Covariance of a sample.
    CovarSample, 2, [false, false, true], |of| over(&of.together, &pairs_of(&of.count));
    /// Slope of the least-squares line: NULL where all `x` are equal.
    Slope, 2, [true, false, true], |of| over(&of.together, &of.spread_x);
    /// Where that line meets `x = 0`: `(Σy · Sxx − Sxy · Σx) ÷ (n · Sxx)`.
    Intercept, 2, [true, false, true], |of| {
        let dividend = of.sum_y.times(&of.spread_x).minus(&of.together.times(&of.sum_x));
        over(&dividend, &of.count.times(&of.spread_x))
    };
    /// The share of the spread of `y` that the line explains: all of it where there is none, as SQL:2016 (10.9) has it.
    R2, 2, [true, true, true], |of| match of.spread_y.is_zero() && !of.spread_x.is_zero() {
        true => Some(1.0),
        false => over(&of.together.squared(), &of.spread_x.times(&of.spread_y)),
    };
    /// Mean of `x`.
    AvgX, 1, [false, false, false], |of| over(&of.sum_x, &of.count);
    /// Mean of `y`.
    AvgY, 1, [false, false, false], |of| over(&of.sum_y, &of.count);
    /// `Σ(x − mean of x)²`.
    Sxx, 1, [true, false, false], |of| over(&of.spread_x, &of.count);
    /// `Σ(y − mean of y)²`.
    Syy, 1, [false, true, false], |of| over(&of.spread_y, &of.count);
    /// `Σ(x − mean of x)(y − mean of y)`.
    Sxy, 1, [false, false, true], |of| over(&of.together, &of.count);
}

/// Pearson's correlation: NULL where all `x` or all `y` are equal.
#[derive(Debug, Default)]
pub(crate) struct Correlation;

impl OfPairs for Correlation {
    const ROWS_MIN: u64 = 2;
    const PRODUCTS: [bool; 3] = [true, true, true];

    fn of(figures: &Figures) -> Option<f64> {
        let both = figures.spread_x.times(&figures.spread_y);
        let magnitude = (!both.is_zero()).then(|| figures.together.squared().root_over(&both))?;
        Some(if figures.together.is_negative() { -magnitude } else { magnitude })
    }

    // As DataFusion and PostgreSQL have it.
    fn of_odd(among_y: bool, among_x: bool) -> Option<f64> {
        (among_y && among_x).then_some(f64::NAN)
    }
}

/// Sums of `y`, of `x` and of their products.
#[derive(Debug)]
pub(crate) struct Pairs<A, Q> {
    count: u64,
    odd_y: u64,
    odd_x: u64,
    sum_y: ExactSum,
    sum_x: ExactSum,
    /// `x·x`, `y·y`, `x·y`.
    products: [Wide; 3],
    answer: PhantomData<(A, Q)>,
}

impl<A, Q> Default for Pairs<A, Q> {
    fn default() -> Self {
        Pairs {
            count: 0,
            odd_y: 0,
            odd_x: 0,
            sum_y: ExactSum::default(),
            sum_x: ExactSum::default(),
            products: Default::default(),
            answer: PhantomData,
        }
    }
}

impl<A: OfPairs, Q: Quantity> Pairs<A, Q> {
    /// Counts a row `sign` times: 1 or −1.
    #[inline]
    fn count_row(&mut self, (y, x): (Q, Q), sign: i64) {
        let (Some((y, y_exponent)), Some((x, x_exponent))) = (y.parts(), x.parts()) else {
            self.odd_y = self.odd_y.wrapping_add_signed(if y.parts().is_none() { sign } else { 0 });
            self.odd_x = self.odd_x.wrapping_add_signed(if x.parts().is_none() { sign } else { 0 });
            return;
        };
        self.count = self.count.wrapping_add_signed(sign);
        for (sum, mantissa, exponent) in [(&mut self.sum_y, y, y_exponent), (&mut self.sum_x, x, x_exponent)] {
            match sign {
                1 => sum.add_scaled(mantissa, exponent),
                _ => sum.remove_scaled(mantissa, exponent),
            }
        }
        let (y, x) = (i128::from(y), i128::from(x));
        let products = [(x * x, 2 * x_exponent), (y * y, 2 * y_exponent), (x * y, x_exponent + y_exponent)];
        for ((product, (value, exponent)), needed) in self.products.iter_mut().zip(products).zip(A::PRODUCTS) {
            if needed {
                product.add_i128(value * i128::from(sign), exponent);
            }
        }
    }
}

impl<A: OfPairs, Q: Quantity> Tally for Pairs<A, Q>
where
    (Q, Q): Row,
{
    type Columns<'a> = (&'a PrimitiveArray<Q::Arrow>, &'a PrimitiveArray<Q::Arrow>);
    type Row = (Q, Q);
    type Answer = Float64Type;

    fn columns(values: &[ArrayRef]) -> Result<Self::Columns<'_>> {
        Ok((values[0].as_primitive(), values[1].as_primitive()))
    }

    #[inline]
    fn row((y, x): Self::Columns<'_>, index: usize) -> Result<Option<(Q, Q)>> {
        Ok(value_at(y, index).zip(value_at(x, index)).map(|(y, x)| (Q::new(y), Q::new(x))))
    }

    #[inline]
    fn add(&mut self, row: (Q, Q)) -> Result<()> {
        self.count_row(row, 1);
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<f64>> {
        if self.odd_y + self.odd_x > 0 {
            return Ok(A::of_odd(self.odd_y > 0, self.odd_x > 0));
        }
        if self.count < A::ROWS_MIN {
            return Ok(None);
        }
        let (count, sum_y, sum_x) = (Dyadic::from(self.count), self.sum_y.dyadic(), self.sum_x.dyadic());
        let spread =
            |product: usize, a: &Dyadic, b: &Dyadic| count.times(&self.products[product].dyadic()).minus(&a.times(b));
        Ok(A::of(&Figures {
            spread_x: spread(0, &sum_x, &sum_x),
            spread_y: spread(1, &sum_y, &sum_y),
            together: spread(2, &sum_x, &sum_y),
            count,
            sum_x,
            sum_y,
        }))
    }

    #[inline]
    fn heap_bytes(&self) -> usize {
        let products: usize = self.products.iter().map(Wide::heap_bytes).sum();
        self.sum_y.heap_bytes() + self.sum_x.heap_bytes() + products
    }
}

impl<A: OfPairs, Q: Quantity> Mergeable for Pairs<A, Q>
where
    (Q, Q): Row,
{
    fn state_columns() -> Vec<(&'static str, DataType)> {
        let counts = ["count", "odd y", "odd x"].map(|name| (name, DataType::UInt64));
        let sums = ["sum y", "sum x", "x x", "y y", "x y"].map(|name| (name, DataType::LargeBinary));
        counts.into_iter().chain(sums).collect()
    }

    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
        Ok(vec![
            Arc::new(tallies.iter().map(|tally| tally.count).collect::<UInt64Array>()),
            Arc::new(tallies.iter().map(|tally| tally.odd_y).collect::<UInt64Array>()),
            Arc::new(tallies.iter().map(|tally| tally.odd_x).collect::<UInt64Array>()),
            written(tallies, |tally, bytes| tally.sum_y.write(bytes)),
            written(tallies, |tally, bytes| tally.sum_x.write(bytes)),
            written(tallies, |tally, bytes| tally.products[0].write(bytes)),
            written(tallies, |tally, bytes| tally.products[1].write(bytes)),
            written(tallies, |tally, bytes| tally.products[2].write(bytes)),
        ])
    }

    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
        let count = |column: usize| states[column].as_primitive::<UInt64Type>().value(index);
        self.count += count(0);
        self.odd_y += count(1);
        self.odd_x += count(2);
        self.sum_y.merge(bytes_at(&states[3], index));
        self.sum_x.merge(bytes_at(&states[4], index));
        for (product, state) in self.products.iter_mut().zip(&states[5..]) {
            product.merge(bytes_at(state, index));
        }
        Ok(())
    }
}

impl<A: OfPairs, Q: Quantity> Retractable for Pairs<A, Q>
where
    (Q, Q): Row,
{
    fn remove(&mut self, row: (Q, Q)) -> Result<()> {
        self.count_row(row, -1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::testing;
    use arrow::array::{Float64Array, Int64Array};
    use datafusion_common::ScalarValue;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn answer(answer: impl std::borrow::Borrow<ScalarValue>) -> Option<f64> {
        let ScalarValue::Float64(value) = answer.borrow() else { panic!("an answer is no double") };
        *value
    }

    /// `Σ(a − mean of a)(b − mean of b) · n²`, straight from the definition: each difference times `n`.
    fn products_of_differences(a: &[f64], b: &[f64]) -> Dyadic {
        let dyadic = |value: f64| {
            let (mantissa, exponent) = mantissa_and_exponent(value);
            Dyadic::new(mantissa.into(), exponent)
        };
        let count = Dyadic::from(a.len() as u64);
        let sum = |values: &[f64]| values.iter().fold(Dyadic::from(0), |sum, &value| sum.plus(&dyadic(value)));
        let (of_a, of_b) = (sum(a), sum(b));
        a.iter().zip(b).fold(Dyadic::from(0), |total, (&a, &b)| {
            let difference = |value, sum| dyadic(value).times(&count).minus(sum);
            total.plus(&difference(a, &of_a).times(&difference(b, &of_b)))
        })
    }

    proptest! {
        #[test]
        fn variances_and_correlations_are_their_definitions(
            rows in vec((super::super::tests::doubles(), super::super::tests::doubles()), 0..12),
            cuts in vec(0..13usize, 0..4),
            width in 1..6usize,
        ) {
            let n = rows.len() as u64;
            let (y, x): (Vec<f64>, Vec<f64>) = rows.iter().copied().unzip();
            let columns = || vec![
                Arc::new(Float64Array::from(y.clone())) as ArrayRef,
                Arc::new(Float64Array::from(x.clone())) as ArrayRef,
            ];
            let bits = |value: Option<f64>| value.map(f64::to_bits);
            let cubed = Dyadic::from(n).squared().times(&Dyadic::from(n));
            let expected = (n > 0).then(|| products_of_differences(&y, &y).over(&cubed));
            let whole = answer(testing::whole::<Moments<VarPop, Double>>(&columns()).unwrap());
            prop_assert_eq!(bits(whole), bits(expected));
            let cut = answer(testing::cut::<Moments<VarPop, Double>>(&columns(), &cuts).unwrap());
            prop_assert_eq!(bits(cut), bits(expected));

            let expected = (n > 1).then(|| {
                let pairs = pairs_of(&Dyadic::from(n)).times(&Dyadic::from(n));
                products_of_differences(&x, &y).over(&pairs)
            });
            let cut = answer(testing::cut::<Pairs<CovarSample, Double>>(&columns(), &cuts).unwrap());
            prop_assert_eq!(bits(cut), bits(expected));

            let (sxx, syy, sxy) =
                (products_of_differences(&x, &x), products_of_differences(&y, &y), products_of_differences(&x, &y));
            let expected = (n > 1 && !sxx.is_zero()).then(|| sxy.over(&sxx));
            let cut = answer(testing::cut::<Pairs<Slope, Double>>(&columns(), &cuts).unwrap());
            prop_assert_eq!(bits(cut), bits(expected));
            let correlation = answer(testing::cut::<Pairs<Correlation, Double>>(&columns(), &cuts).unwrap());
            prop_assert_eq!(correlation.is_some(), n > 1 && !sxx.is_zero() && !syy.is_zero());
            prop_assert!(correlation.is_none_or(|value| (-1.0..=1.0).contains(&value)));

            let moving = testing::moving::<Pairs<Correlation, Double>>(&columns(), width).unwrap();
            let deviations = testing::moving::<Moments<StddevSample, Double>>(&columns(), width).unwrap();
            for (row, (moving, deviation)) in moving.into_iter().zip(deviations).enumerate() {
                let frame = testing::slice(&columns(), (row + 1).saturating_sub(width), row + 1);
                let alone = testing::whole::<Pairs<Correlation, Double>>(&frame).unwrap();
                prop_assert_eq!(bits(answer(moving)), bits(answer(alone)));
                let alone = testing::whole::<Moments<StddevSample, Double>>(&frame).unwrap();
                prop_assert_eq!(bits(answer(deviation)), bits(answer(alone)));
            }
        }

        #[test]
        fn whole_numbers_spread_as_they_do_around_zero(
            values in vec(-50..50i64, 1..20),
            far in prop::sample::select(vec![0, 1 << 40, i64::MAX - 50, i64::MIN + 50]),
        ) {
            let column = |far: i64| {
                vec![Arc::new(Int64Array::from_iter_values(values.iter().map(|value| value + far))) as ArrayRef]
            };
            let near = testing::whole::<Moments<StddevPop, i64>>(&column(0)).unwrap();
            prop_assert_eq!(testing::whole::<Moments<StddevPop, i64>>(&column(far)).unwrap(), near);
        }
    }

    #[test]
    fn by_hand() {
        let column = |values: &[f64]| vec![Arc::new(Float64Array::from(values.to_vec())) as ArrayRef];
        let cv = |values: &[f64]| answer(testing::whole::<Moments<Variation, Double>>(&column(values)).unwrap());
        assert_eq!(cv(&[9.0, 6.0, 3.0]), Some((1f64 / 6.0).sqrt()));
        assert_eq!(cv(&[-9.0, -6.0, -3.0]), Some(-(1f64 / 6.0).sqrt()));
        assert_eq!(cv(&[3.0, -1.0, -2.0]), None);
        assert_eq!(cv(&[0.1; 10]), Some(0.0));
        assert!(cv(&[1.0, f64::INFINITY]).is_some_and(f64::is_nan));
        let deviation =
            |values: &[f64]| answer(testing::whole::<Moments<StddevSample, Double>>(&column(values)).unwrap());
        // Welford's recurrence overflows here.
        assert_eq!(deviation(&[1e200, 3e200]), Some(1.414_213_562_373_095e200));
        assert_eq!(deviation(&[1e15 + 0.1, 1e15 + 0.3]).map(|value| value > 0.0), Some(true));
        assert_eq!(deviation(&[1.0]), None);
    }
}
