//! Dyadic numbers (a whole number times a power of two), in which results are computed exactly, and their rounding to
//! the nearest double.

use num_bigint::{BigInt, BigUint, Sign};

use super::mantissa_and_exponent;

/// `digits · 2^exponent`.
#[derive(Debug, Clone)]
pub(crate) struct Dyadic {
    digits: BigInt,
    exponent: i32,
}

impl From<u64> for Dyadic {
    fn from(count: u64) -> Self {
        Dyadic::new(count.into(), 0)
    }
}

impl Dyadic {
    pub(crate) fn new(digits: BigInt, exponent: i32) -> Self {
        Dyadic { digits, exponent }
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits.sign() == Sign::NoSign
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.digits.sign() == Sign::Minus
    }

    pub(crate) fn plus(&self, other: &Dyadic) -> Dyadic {
        let exponent = self.exponent.min(other.exponent);
        Dyadic::new(self.digits_from(exponent) + other.digits_from(exponent), exponent)
    }

    pub(crate) fn minus(&self, other: &Dyadic) -> Dyadic {
        let exponent = self.exponent.min(other.exponent);
        Dyadic::new(self.digits_from(exponent) - other.digits_from(exponent), exponent)
    }

    pub(crate) fn times(&self, other: &Dyadic) -> Dyadic {
        Dyadic::new(&self.digits * &other.digits, self.exponent + other.exponent)
    }

    pub(crate) fn squared(&self) -> Dyadic {
        self.times(self)
    }

    /// The nearest double.
    pub(crate) fn value(&self) -> f64 {
        self.over(&Dyadic::from(1))
    }

    /// The double nearest to the quotient; the divisor is not 0.
    pub(crate) fn over(&self, divisor: &Dyadic) -> f64 {
        let (quotient, exponent) = self.quotient(divisor);
        nearest(self.is_negative() != divisor.is_negative(), quotient, exponent)
    }

    /// The square root of the quotient of two numbers that are not negative, right but for the last digit; the divisor is
    /// not 0.
    pub(crate) fn root_over(&self, divisor: &Dyadic) -> f64 {
        let (mut quotient, mut exponent) = self.quotient(divisor);
        if exponent % 2 != 0 {
            quotient <<= 1;
            exponent -= 1;
        }
        let (mantissa, of_root) = mantissa_and_exponent((quotient as f64).sqrt());
        nearest(false, u128::from(mantissa.unsigned_abs()), of_root + exponent / 2)
    }

    /// The magnitude of the quotient in 66 or 67 bits, the last of which is set when anything was cut off; 0 for 0.
    fn quotient(&self, divisor: &Dyadic) -> (u128, i32) {
        if self.is_zero() {
            return (0, 0);
        }
        let (dividend, divisor_digits) = (self.digits.magnitude(), divisor.digits.magnitude());
        let up = 66 - (dividend.bits() as i64 - divisor_digits.bits() as i64);
        let (dividend, divisor_digits) = match u64::try_from(up) {
            Ok(up) => (dividend << up, divisor_digits.clone()),
            Err(_) => (dividend.clone(), divisor_digits << up.unsigned_abs()),
        };
        let quotient = &dividend / &divisor_digits;
        let exact = &quotient * &divisor_digits == dividend;
        (low_128(&quotient) | u128::from(!exact), self.exponent - divisor.exponent - up as i32)
    }

    fn digits_from(&self, exponent: i32) -> BigInt {
        &self.digits << (self.exponent - exponent)
    }

    #[cfg(test)]
    pub(super) fn equals(&self, other: &Dyadic) -> bool {
        self.minus(other).is_zero()
    }
}

fn low_128(number: &BigUint) -> u128 {
    number.iter_u64_digits().take(2).enumerate().fold(0, |sum, (index, word)| sum | u128::from(word) << (64 * index))
}

/// The double nearest to `magnitude · 2^exponent`, of two equally near ones the even one. Infinite from the middle between
/// the greatest double and what would follow it.
pub(super) fn nearest(negative: bool, magnitude: u128, exponent: i32) -> f64 {
    if magnitude == 0 {
        return 0.0;
    }
    let signed = |value: f64| if negative { -value } else { value };
    let highest = 127 - magnitude.leading_zeros() as i32 + exponent;
    if highest > 1023 {
        return signed(f64::INFINITY);
    }
    // The place of the last bit that a double of this magnitude has.
    let last = (highest - 52).max(-1074);
    let cut = last - exponent;
    let mantissa = if cut <= 0 {
        magnitude << -cut
    } else if cut > 128 {
        0
    } else {
        let kept = magnitude.checked_shr(cut as u32).unwrap_or(0);
        let (half, rest) = (1u128 << (cut - 1), magnitude - kept.checked_shl(cut as u32).unwrap_or(0));
        kept + u128::from(rest > half || (rest == half && kept % 2 == 1))
    };
    // The mantissa's first bit adds 1 to the exponent in the bits, and so does a carry out of rounding.
    signed(f64::from_bits((((last + 1074) as u64) << 52) + mantissa as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dyadic(value: f64) -> Dyadic {
        let (mantissa, exponent) = mantissa_and_exponent(value);
        Dyadic::new(mantissa.into(), exponent)
    }

    proptest! {
        // The processor rounds one operation correctly, too.
        #[test]
        fn one_operation_is_rounded_as_the_processor_does(
            a in super::super::tests::doubles(),
            b in super::super::tests::doubles(),
        ) {
            let same = |ours: f64, theirs: f64| ours.to_bits() == (theirs + 0.0).to_bits();
            let not_negative_zero = |value: f64| if value == 0.0 { 0.0 } else { value };
            prop_assert!(same(dyadic(a).value(), a));
            prop_assert!(same(dyadic(a).plus(&dyadic(b)).value(), a + b));
            prop_assert!(same(dyadic(a).minus(&dyadic(b)).value(), a - b));
            prop_assert_eq!(not_negative_zero(dyadic(a).times(&dyadic(b)).value()), not_negative_zero(a * b));
            if b != 0.0 {
                prop_assert_eq!(not_negative_zero(dyadic(a).over(&dyadic(b))), not_negative_zero(a / b));
            }
        }

        #[test]
        fn roots_are_off_by_the_last_digit_at_most(a in super::super::tests::doubles()) {
            let (ours, theirs) = (dyadic(a.abs()).root_over(&Dyadic::from(1)), a.abs().sqrt());
            prop_assert!(ours.to_bits().abs_diff(theirs.to_bits()) <= 1, "{ours} {theirs}");
        }
    }
}
