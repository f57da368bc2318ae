//! Exact sums of doubles, which make `sum`, `avg`, `stddev` and the like independent of the order of the rows.
//!
//! Doubles are whole numbers times powers of two, so their sums and products are as well, and need not be rounded before the
//! end. Life of the data: a double is split into mantissa and exponent; [`ExactSum`] adds it to a fixed-point window of 128
//! bits placed by the magnitude of the values, or, when it does not fit there, to a [`Wide`] number of as many words as
//! needed; partitions merge; the result is computed in [`Dyadic`] numbers and rounded once, to the nearest double.
//!
//! The same rows give the same sum for any number of threads, order and batch size, and a row that leaves a window frame
//! leaves no rounding error behind. Intermediate sums cannot overflow: `1e308 + 1e308 - 1e308` is `1e308`.
//!
//! Source: Neal, Fast Exact Summation Using Small and Large Superaccumulators (arXiv:1505.05571, 2015), whose accumulator is
//! reduced here to the words that the data need: 48 bytes a group instead of 536. Existing crates have no products, which
//! sums of squares need, and cannot remove a number again.

mod dyadic;
pub(crate) mod moments;
pub(crate) mod totals;
mod wide;

use std::hash::{Hash, Hasher};

pub(crate) use dyadic::Dyadic;
use dyadic::nearest;
pub(crate) use wide::Wide;

use crate::aggregate::Row;

/// A double as a row of an aggregate: equal ones count once under DISTINCT, the two zeros and all NaNs among them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Double(pub(crate) f64);

impl Double {
    fn key(self) -> u64 {
        // `+ 0.0` makes one zero of two.
        if self.0.is_nan() { f64::NAN.to_bits() } else { (self.0 + 0.0).to_bits() }
    }
}

impl PartialEq for Double {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Double {}

impl Hash for Double {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl Row for Double {
    const WORDS: usize = 1;

    fn to_words(self) -> Vec<Option<i64>> {
        vec![Some(self.key() as i64)]
    }

    fn from_words(words: &[Option<i64>]) -> Self {
        Double(f64::from_bits(words[0].unwrap_or(0) as u64))
    }
}

impl Row for (Double, Double) {
    const WORDS: usize = 2;

    fn to_words(self) -> Vec<Option<i64>> {
        [self.0.to_words(), self.1.to_words()].concat()
    }

    fn from_words(words: &[Option<i64>]) -> Self {
        (Double::from_words(&words[..1]), Double::from_words(&words[1..]))
    }
}

/// A finite double is `mantissa · 2^exponent`, the mantissa within ±2⁵³.
#[inline]
pub(crate) fn mantissa_and_exponent(value: f64) -> (i64, i32) {
    let bits = value.to_bits();
    let fraction = (bits & ((1 << 52) - 1)) as i64;
    let biased = (bits >> 52) as i32 & 0x7ff;
    let (magnitude, exponent) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    (if bits >> 63 == 1 { -magnitude } else { magnitude }, exponent)
}

/// An exact sum of finite doubles.
///
/// `fixed · 2^exponent`, and what did not fit there. Nearly all data stay in `fixed`: it begins [`SLACK`] bits below the
/// first number and reaches 2⁵⁴ times above it, moves down while it has room, and begins anew where it has none.
#[derive(Debug)]
pub(crate) struct ExactSum {
    fixed: i128,
    exponent: i32,
    rest: Option<Box<Wide>>,
}

/// Bits below the last one of the number with which `fixed` begins, for the smaller ones that follow.
const SLACK: i32 = 20;

/// A mantissa of 64 bits moved so far leaves a bit for the sign and one for a carry.
const SHIFT_MAX: i32 = 126 - 64;

/// An exponent that no number has a shift to: nothing was added yet.
const UNSET: i32 = i32::MAX / 2;

impl Default for ExactSum {
    fn default() -> Self {
        ExactSum { fixed: 0, exponent: UNSET, rest: None }
    }
}

impl ExactSum {
    /// Adds a finite double.
    #[inline]
    pub(crate) fn add(&mut self, value: f64) {
        let (mantissa, exponent) = mantissa_and_exponent(value);
        self.add_scaled(mantissa, exponent);
    }

    /// Takes a finite double out again.
    #[inline]
    pub(crate) fn remove(&mut self, value: f64) {
        self.add(-value);
    }

    /// Takes out what [`Self::add_scaled`] added.
    pub(crate) fn remove_scaled(&mut self, mantissa: i64, exponent: i32) {
        self.add_far(-i128::from(mantissa), exponent);
    }

    /// Adds `mantissa · 2^exponent`.
    #[inline]
    pub(crate) fn add_scaled(&mut self, mantissa: i64, exponent: i32) {
        let shift = exponent - self.exponent;
        if (0..=SHIFT_MAX).contains(&shift)
            && let Some(sum) = self.fixed.checked_add(i128::from(mantissa) << shift)
        {
            self.fixed = sum;
            return;
        }
        self.add_far(i128::from(mantissa), exponent);
    }

    /// Adds what does not fit the fast path.
    #[cold]
    fn add_far(&mut self, mantissa: i128, exponent: i32) {
        if mantissa == 0 {
            return;
        }
        let zeros = mantissa.trailing_zeros();
        let (odd, odd_exponent) = (mantissa >> zeros, exponent + zeros as i32);
        // Numbers of few digits lie higher than they look: 1 is 2⁵² · 2⁻⁵².
        if let Some(moved) = shifted(odd, odd_exponent - self.exponent)
            && let Some(sum) = self.fixed.checked_add(moved)
        {
            self.fixed = sum;
            return;
        }
        for lower in [exponent - SLACK, odd_exponent] {
            let down = self.exponent - lower;
            if down > 0
                && let Some(fixed) = shifted(self.fixed, down)
                && let Some(moved) = shifted(odd, odd_exponent - lower)
                && let Some(sum) = fixed.checked_add(moved)
            {
                (self.fixed, self.exponent) = (sum, lower);
                return;
            }
        }
        if self.fixed != 0 {
            self.rest.get_or_insert_default().add_i128(self.fixed, self.exponent);
        }
        (self.fixed, self.exponent) = match shifted(mantissa, SLACK) {
            Some(fixed) => (fixed, exponent - SLACK),
            None => (mantissa, exponent),
        };
    }

    /// Adds what another sum holds, as it was written by [`Self::write`].
    pub(crate) fn merge(&mut self, bytes: &[u8]) {
        match wide::read(bytes) {
            None => {}
            Some((exponent, [low, high])) => {
                let fixed = u128::from(u64::from_le_bytes(*high)) << 64 | u128::from(u64::from_le_bytes(*low));
                self.add_far(fixed as i128, exponent);
            }
            Some(_) => self.rest.get_or_insert_default().merge(bytes),
        }
    }

    /// Appends the sum as bytes, in which it travels.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        match &self.rest {
            None if self.fixed == 0 => {}
            None => wide::write(bytes, self.exponent, &[self.fixed as u64, (self.fixed >> 64) as u64]),
            Some(rest) => {
                let mut all = rest.as_ref().clone();
                all.add_i128(self.fixed, self.exponent);
                all.write(bytes);
            }
        }
    }

    /// The sum, rounded once.
    pub(crate) fn value(&self) -> f64 {
        match &self.rest {
            None => nearest(self.fixed < 0, self.fixed.unsigned_abs(), self.exponent),
            Some(_) => self.dyadic().value(),
        }
    }

    /// The sum divided by a number of rows that is not 0, rounded once.
    pub(crate) fn mean(&self, count: u64) -> f64 {
        match &self.rest {
            None => mean_of(self.fixed, self.exponent, count),
            Some(_) => self.dyadic().over(&Dyadic::from(count)),
        }
    }

    /// The sum as it is.
    pub(crate) fn dyadic(&self) -> Dyadic {
        let fixed = Dyadic::new(self.fixed.into(), if self.fixed == 0 { 0 } else { self.exponent });
        match &self.rest {
            None => fixed,
            Some(rest) => fixed.plus(&rest.dyadic()),
        }
    }

    /// Bytes behind the value itself.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.rest.as_ref().map_or(0, |rest| size_of::<Wide>() + rest.heap_bytes())
    }
}

/// A sum of whole numbers divided by their number, which is not 0, rounded once.
pub(crate) fn mean_of_whole(sum: i128, count: u64) -> f64 {
    mean_of(sum, 0, count)
}

fn mean_of(sum: i128, exponent: i32, count: u64) -> f64 {
    let magnitude = sum.unsigned_abs();
    if magnitude == 0 {
        return 0.0;
    }
    // All 128 bits before the division leave at least 64 after it: more than a double has, and one to say whether anything
    // follows.
    let up = magnitude.leading_zeros();
    let (dividend, divisor) = (magnitude << up, u128::from(count));
    let quotient = (dividend / divisor) | u128::from(!dividend.is_multiple_of(divisor));
    nearest(sum < 0, quotient, exponent - up as i32)
}

/// `value · 2^shift` where that is a whole number of 126 bits and a sign.
fn shifted(value: i128, shift: i32) -> Option<i128> {
    let bits = 128 - value.unsigned_abs().leading_zeros() as i32;
    (shift >= 0 && bits + shift <= 126).then(|| value << shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Doubles of all magnitudes, and those that fool sums: near the ends, few digits, opposites.
    pub(super) fn doubles() -> impl Strategy<Value = f64> {
        prop_oneof![
            4 => any::<f64>().prop_filter("finite", |value| value.is_finite()),
            2 => -1e9..1e9f64,
            2 => (-1000..1000i32).prop_map(f64::from),
            1 => prop::sample::select(vec![
                f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, -5e-324, 1e308, -1e308, 0.0, -0.0, 0.1, 0.2, -0.3,
            ]),
        ]
    }

    /// The sum by whole numbers of any length alone.
    fn naive(values: &[f64]) -> Dyadic {
        values.iter().fold(Dyadic::from(0), |sum, &value| {
            let (mantissa, exponent) = mantissa_and_exponent(value);
            sum.plus(&Dyadic::new(mantissa.into(), exponent))
        })
    }

    fn sum(values: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        values.iter().for_each(|&value| sum.add(value));
        sum
    }

    proptest! {
        #[test]
        fn sums_are_exact_in_any_order_and_cut(values in vec(doubles(), 0..40), cut in 0..40usize, turn in 0..40usize) {
            let expected = naive(&values);
            prop_assert!(sum(&values).dyadic().equals(&expected));
            prop_assert_eq!(sum(&values).value().to_bits(), expected.value().to_bits());

            let mut turned = values.clone();
            turned.rotate_left(turn % values.len().max(1));
            turned.reverse();
            let (first, second) = turned.split_at(cut.min(turned.len()));
            let mut merged = ExactSum::default();
            for part in [first, second] {
                let mut bytes = Vec::new();
                sum(part).write(&mut bytes);
                merged.merge(&bytes);
            }
            prop_assert!(merged.dyadic().equals(&expected));
        }

        #[test]
        fn what_leaves_leaves_nothing_behind(stay in vec(doubles(), 0..20), leave in vec(doubles(), 0..20)) {
            let mut both = sum(&stay);
            leave.iter().for_each(|&value| both.add(value));
            leave.iter().rev().for_each(|&value| both.remove(value));
            prop_assert!(both.dyadic().equals(&naive(&stay)));
        }

        #[test]
        fn means_are_quotients_rounded_once(values in vec(doubles(), 1..20), count in 1..u64::MAX) {
            let mean = naive(&values).over(&Dyadic::from(count));
            prop_assert_eq!(sum(&values).mean(count).to_bits(), mean.to_bits());
        }
    }

    #[test]
    fn sums_are_what_they_are_by_hand() {
        let check = |values: &[f64], expected: f64| assert_eq!(sum(values).value().to_bits(), expected.to_bits());
        check(&[], 0.0);
        check(&[-0.0], 0.0);
        check(&[0.1; 10], 1.0);
        check(&[1e308, 1e308, -1e308], 1e308);
        check(&[1e308, 1e308], f64::INFINITY);
        check(&[1e100, 1.0, -1e100], 1.0);
        check(&[1.0, 1e-100, 1e16], 1.0000000000000002e16);
        check(&[5e-324, 5e-324], 1e-323);
        check(&[f64::MAX, f64::MAX / 2.0, -f64::MAX], f64::MAX / 2.0);
        assert_eq!(sum(&[1e308, 1e308]).mean(2), 1e308);
    }

    #[test]
    fn a_million_like_numbers_need_no_words_of_their_own() {
        let mut sum = ExactSum::default();
        for number in 0..1_000_000 {
            sum.add(f64::from(number) * 0.37 + 1e6);
        }
        assert_eq!(sum.heap_bytes(), 0);
    }
}
