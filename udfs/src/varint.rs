//! Small numbers in few bytes: groups of seven bits, the lowest first, of which the last one lacks the eighth bit.

/// Appends a number.
#[inline]
pub(crate) fn append(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 128 {
        bytes.push(number as u8 | 128);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes the next number; 0 at the end.
#[inline]
pub(crate) fn next(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 127) << shift;
        shift += 7;
        if byte < 128 {
            break;
        }
    }
    number
}

/// Small for numbers near 0 on both sides: the sign is the lowest bit.
pub(crate) fn signed(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// The number of [`signed`].
pub(crate) fn unsigned(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
