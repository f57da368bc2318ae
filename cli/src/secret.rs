//! Secrets: texts that cannot be guessed.

use std::io::Read;

use crate::errors::{Failure, Problem};

/// What stands in addresses and headers as it is.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// 144 bits.
const LENGTH: usize = 24;

/// A text made of the system's random numbers.
pub(crate) fn random() -> Result<String, Failure> {
    let mut bytes = [0; LENGTH];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut bytes));
    read.map_err(|error| Problem::file("read", "/dev/urandom".as_ref(), &error))?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte & 63)])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_and_differ() {
        let (one, other) = (random().unwrap(), random().unwrap());
        assert!(one.len() >= 22 && one.bytes().all(|byte| LETTERS.contains(&byte)));
        assert_ne!(one, other);
    }
}
