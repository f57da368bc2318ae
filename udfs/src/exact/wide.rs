//! Fixed-point numbers of any length: sums whose terms differ by more than 128 bits, and sums of products.

use num_bigint::BigInt;

use super::Dyadic;

/// A number of as many words as its terms reach: `words · 2^exponent`, the least word first, in two's complement.
///
/// The exponent is a multiple of 64, so that words of any two numbers line up, and the last word has two bits to spare, so
/// that one addition cannot overflow. Squares of doubles reach from 2⁻²¹⁴⁸ to 2²⁰⁴⁸: 67 words at most, 3 or 4 as a rule.
#[derive(Debug, Default, Clone)]
pub(crate) struct Wide {
    exponent: i32,
    words: Vec<u64>,
}

impl Wide {
    /// Adds `value · 2^exponent`.
    pub(crate) fn add_i128(&mut self, value: i128, exponent: i32) {
        if value == 0 {
            return;
        }
        let (base, shift) = (exponent.div_euclid(64) * 64, exponent.rem_euclid(64));
        let low = value << shift;
        // A shift by all 128 bits is not allowed in Rust.
        let high = value >> (127 - shift) >> 1;
        let words = [low as u64, (low >> 64) as u64, high as u64];
        // A last word that says nothing but the sign need not be there.
        let needed = if low >> 127 == high { 2 } else { 3 };
        self.add_words(&words[..needed], base);
    }

    /// Adds a number in words.
    pub(crate) fn add_words(&mut self, words: &[u64], exponent: i32) {
        let Some(last) = words.last() else { return };
        let first = self.reach(exponent, words.len());
        let sign = if (*last as i64) < 0 { u64::MAX } else { 0 };
        let (places, above) = self.words[first..].split_at_mut(words.len());
        let mut carry = false;
        for (place, word) in places.iter_mut().zip(words) {
            (*place, carry) = place.carrying_add(*word, carry);
        }
        // Above the number is its sign: nothing changes where that is 0 without a carry, or all ones with one.
        for place in above {
            if carry == (sign != 0) {
                break;
            }
            (*place, carry) = place.carrying_add(sign, carry);
        }
        self.keep_spare_bits();
    }

    /// Adds what was written by [`Self::write`].
    pub(crate) fn merge(&mut self, bytes: &[u8]) {
        if let Some((exponent, words)) = read(bytes) {
            let words = words.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>();
            self.add_words(&words, exponent);
        }
    }

    /// Appends the number as bytes.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        write(bytes, self.exponent, &self.words);
    }

    /// The number as it is.
    pub(crate) fn dyadic(&self) -> Dyadic {
        let bytes = self.words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
        Dyadic::new(BigInt::from_signed_bytes_le(&bytes), self.exponent)
    }

    /// Bytes behind the value itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// Makes place for `count` words from `exponent` on and one more; returns where the first of them is.
    fn reach(&mut self, exponent: i32, count: usize) -> usize {
        if self.words.is_empty() {
            self.exponent = exponent;
        }
        let below = (self.exponent - exponent) / 64;
        if below > 0 {
            self.words.splice(0..0, std::iter::repeat_n(0, below as usize));
            self.exponent = exponent;
        }
        let first = ((exponent - self.exponent) / 64) as usize;
        if self.words.len() < first + count + 1 {
            let sign = self.sign();
            self.words.resize(first + count + 1, sign);
        }
        first
    }

    fn sign(&self) -> u64 {
        if self.words.last().is_some_and(|last| (*last as i64) < 0) { u64::MAX } else { 0 }
    }

    fn keep_spare_bits(&mut self) {
        if self.words.last().is_some_and(|last| (*last as i64).unsigned_abs() >= 1 << 62) {
            self.words.push(self.sign());
        }
    }
}

/// A number travels as its exponent and its words.
pub(super) fn write(bytes: &mut Vec<u8>, exponent: i32, words: &[u64]) {
    bytes.extend(exponent.to_le_bytes());
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
}

/// What [`write()`] wrote; nothing for the empty text, which is 0.
pub(super) fn read(bytes: &[u8]) -> Option<(i32, &[[u8; 8]])> {
    let (exponent, words) = bytes.split_first_chunk::<4>()?;
    Some((i32::from_le_bytes(*exponent), words.as_chunks::<8>().0))
}

#[cfg(test)]
mod tests {
    use super::super::mantissa_and_exponent;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn products_add_up_exactly(
            pairs in vec((super::super::tests::doubles(), super::super::tests::doubles()), 0..30),
            cut in 0..30usize,
        ) {
            let expected = pairs.iter().fold(Dyadic::from(0), |sum, &(a, b)| {
                let dyadic = |value| {
                    let (mantissa, exponent) = mantissa_and_exponent(value);
                    Dyadic::new(mantissa.into(), exponent)
                };
                sum.plus(&dyadic(a).times(&dyadic(b)))
            });
            let wide = |pairs: &[(f64, f64)]| {
                let mut wide = Wide::default();
                for &(a, b) in pairs {
                    let ((a, of_a), (b, of_b)) = (mantissa_and_exponent(a), mantissa_and_exponent(b));
                    wide.add_i128(i128::from(a) * i128::from(b), of_a + of_b);
                }
                wide
            };
            prop_assert!(wide(&pairs).dyadic().equals(&expected));
            let (first, second) = pairs.split_at(cut.min(pairs.len()));
            let (mut merged, mut bytes) = (wide(first), Vec::new());
            wide(second).write(&mut bytes);
            merged.merge(&bytes);
            prop_assert!(merged.dyadic().equals(&expected));
        }
    }
}
