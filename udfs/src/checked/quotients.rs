//! `/` and `%` of decimals, computed with as many digits as it takes.
//!
//! Arrow (59) cuts a quotient behind its last digit, and refuses what does not fit 128 bits on the way: `2 / 3` is `0.6666`, and
//! `99999999999999999999999999999999999999 % 0.7` an error. Here a quotient is rounded, half away from zero as in PostgreSQL, and
//! only the answer has to fit. The types are Arrow's.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Datum, Decimal128Array, Decimal256Array, new_empty_array};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, i256};
use arrow::error::ArrowError;

/// Quotients with the last digit rounded.
pub(crate) fn rounded(left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    computed(left, right, numeric::div, |a, b, scales| {
        let shift = scales.answer - scales.left + scales.right;
        let (a, b) = (times_ten(a, shift)?, times_ten(b, -shift)?);
        let (quotient, rest) = (a.wrapping_div(b), a.wrapping_rem(b));
        let magnitude = rest.wrapping_abs();
        let is_up = magnitude.wrapping_add(magnitude) >= b.wrapping_abs();
        let away = match (is_up, (a < i256::ZERO) == (b < i256::ZERO)) {
            (false, _) => i256::ZERO,
            (true, true) => i256::ONE,
            (true, false) => i256::MINUS_ONE,
        };
        Some(quotient.wrapping_add(away))
    })
}

/// What is left of a division, with the sign of the left side.
pub(crate) fn remainders(left: &dyn Datum, right: &dyn Datum) -> Result<ArrayRef, ArrowError> {
    computed(left, right, numeric::rem, |a, b, scales| {
        let (a, b) = (times_ten(a, scales.answer - scales.left)?, times_ten(b, scales.answer - scales.right)?);
        Some(a.wrapping_rem(b))
    })
}

/// Digits behind the points.
struct Scales {
    left: i32,
    right: i32,
    answer: i32,
}

type Kernel = fn(&dyn Datum, &dyn Datum) -> Result<ArrayRef, ArrowError>;

/// The answers for decimals of 128 and 256 bits; `arrow` knows their type, and computes other decimals.
fn computed(
    left: &dyn Datum,
    right: &dyn Datum,
    arrow: Kernel,
    answer: impl Fn(i256, i256, &Scales) -> Option<i256>,
) -> Result<ArrayRef, ArrowError> {
    let ((a, a_is_one), (b, b_is_one)) = (left.get(), right.get());
    let none = arrow(&new_empty_array(a.data_type()), &new_empty_array(b.data_type()))?;
    let (Some(left_scale), Some(right_scale), Some(scale)) =
        (scale_of(a.data_type()), scale_of(b.data_type()), scale_of(none.data_type()))
    else {
        return arrow(left, right);
    };
    let scales = Scales { left: left_scale, right: right_scale, answer: scale };
    let rows = if a_is_one { b.len() } else { a.len() };
    let (a, b) = (Numbers::of(a), Numbers::of(b));
    let answers = (0..rows).map(|row| {
        let (a, b) = (a.at(if a_is_one { 0 } else { row }), b.at(if b_is_one { 0 } else { row }));
        match (a, b) {
            (Some(_), Some(i256::ZERO)) => Err(ArrowError::DivideByZero),
            (Some(a), Some(b)) => {
                let answer = answer(a, b, &scales);
                answer.map(Some).ok_or_else(|| ArrowError::ArithmeticOverflow(format!("{a}, {b}")))
            }
            _ => Ok(None),
        }
    });
    match none.data_type() {
        DataType::Decimal256(digits, scale) => {
            let answers: Decimal256Array = answers.collect::<Result<_, _>>()?;
            Ok(Arc::new(answers.with_precision_and_scale(*digits, *scale)?))
        }
        DataType::Decimal128(digits, scale) => {
            let narrow =
                |answer: i256| answer.to_i128().ok_or_else(|| ArrowError::ArithmeticOverflow(answer.to_string()));
            let answers: Decimal128Array =
                answers.map(|answer| answer?.map(narrow).transpose()).collect::<Result<_, _>>()?;
            Ok(Arc::new(answers.with_precision_and_scale(*digits, *scale)?))
        }
        _ => arrow(left, right),
    }
}

/// Digits behind the point of a decimal of these widths.
fn scale_of(data_type: &DataType) -> Option<i32> {
    match data_type {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => Some((*scale).into()),
        _ => None,
    }
}

/// Decimals of either width.
enum Numbers<'a> {
    Narrow(&'a Decimal128Array),
    Wide(&'a Decimal256Array),
}

impl<'a> Numbers<'a> {
    fn of(column: &'a dyn Array) -> Numbers<'a> {
        match column.data_type() {
            DataType::Decimal256(..) => Numbers::Wide(column.as_primitive::<Decimal256Type>()),
            _ => Numbers::Narrow(column.as_primitive::<Decimal128Type>()),
        }
    }

    #[inline]
    fn at(&self, row: usize) -> Option<i256> {
        match self {
            Numbers::Narrow(column) => column.is_valid(row).then(|| i256::from_i128(column.value(row))),
            Numbers::Wide(column) => column.is_valid(row).then(|| column.value(row)),
        }
    }
}

/// A number times a power of ten. What does not fit is the dividend of a quotient that does not fit either.
fn times_ten(number: i256, power: i32) -> Option<i256> {
    (0..power).try_fold(number, |number, _| number.checked_mul(i256::from_i128(10)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimals(values: &[i128], digits: u8, scale: i8) -> Decimal128Array {
        Decimal128Array::from_iter_values(values.iter().copied()).with_precision_and_scale(digits, scale).unwrap()
    }

    #[test]
    fn quotients_are_rounded_half_away_from_zero() {
        let quotients = |a: &[i128], b: &[i128]| {
            let answers = rounded(&decimals(a, 10, 2), &decimals(b, 10, 2)).unwrap();
            answers.as_primitive::<Decimal128Type>().values().to_vec()
        };
        // 2 / 3, -2 / 3, 1 / 3, 0.01 / 0.02 · 10⁻⁴ away from six digits, 0.01 / 20000.00
        assert_eq!(
            quotients(&[200, -200, 100, 1, 1, -1], &[300, 300, 300, 2, 2_000_000, 2_000_000]),
            [666_667, -666_667, 333_333, 500_000, 1, -1]
        );
    }

    #[test]
    fn only_the_answer_has_to_fit() {
        let most = 10_i128.pow(38) - 1;
        let left = remainders(&decimals(&[most], 38, 0), &decimals(&[7], 38, 37)).unwrap();
        // (10³⁸ − 1) · 10³⁷ is 3 above a multiple of 7.
        assert_eq!(left.as_primitive::<Decimal128Type>().value(0), 3);
        let left = rounded(&decimals(&[most], 38, 38), &decimals(&[most], 38, 38)).unwrap();
        assert!(left.as_primitive::<Decimal128Type>().value(0) == 10_i128.pow(38));
        let refused = rounded(&decimals(&[most], 38, 0), &decimals(&[1], 38, 38));
        assert!(matches!(refused, Err(ArrowError::ArithmeticOverflow(_))));
    }
}
