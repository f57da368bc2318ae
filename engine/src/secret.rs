//! Secrets: tokens that whoever asks must know.

/// Whether two secrets are the same, in a time that tells nothing of where they differ.
pub fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::is_same;

    #[test]
    fn secrets_are_compared_whole() {
        assert!(is_same(b"secret", b"secret"));
        for wrong in ["secreT", "secre", "secret1", ""] {
            assert!(!is_same(b"secret", wrong.as_bytes()), "{wrong}");
        }
    }
}
