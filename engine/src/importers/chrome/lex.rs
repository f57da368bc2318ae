//! Lexing: where a JSON value ends, and whether it is valid, on bytes, without building anything.
//!
//! The hot loop of the reader. Strings are walked eight bytes at a time; containers are walked with a stack of brackets
//! instead of recursion, so depth costs a byte per level and never the thread's stack. What is here is strict: text that
//! passes is valid JSON and may be copied as it is. What does not pass goes to [`super::repair`].

/// Why a value cannot be lexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The text ended inside of it.
    Ended,
    /// This byte should not be here.
    At(usize),
}

/// A string as written in the text, still escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quoted {
    /// Where the closing quote is.
    pub(super) end: usize,
    /// Whether it holds neither a backslash nor a control character: its bytes are its meaning.
    pub(super) plain: bool,
}

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
const BLANKS: u64 = u64::from_ne_bytes([b' '; 8]);

/// A high bit at the first byte of `word` that is a quote, a backslash or a control character (and perhaps at later ones).
#[inline(always)]
fn specials(word: u64) -> u64 {
    let zero = |bytes: u64| bytes.wrapping_sub(ONES) & !bytes;
    let quotes = zero(word ^ (ONES * b'"' as u64));
    let backslashes = zero(word ^ (ONES * b'\\' as u64));
    let controls = word.wrapping_sub(BLANKS) & !word;
    (quotes | backslashes | controls) & HIGHS
}

#[inline(always)]
fn word_at(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

/// The string whose opening quote stands before `at`.
#[inline]
pub(super) fn string(text: &[u8], mut at: usize) -> Result<Quoted, Flaw> {
    let mut plain = true;
    loop {
        while let Some(word) = word_at(text, at) {
            let found = specials(word);
            if found != 0 {
                at += found.trailing_zeros() as usize / 8;
                break;
            }
            at += 8;
        }
        match text.get(at) {
            Some(b'"') => return Ok(Quoted { end: at, plain }),
            Some(b'\\') => {
                plain = false;
                at += 2;
            }
            Some(byte) => {
                plain &= *byte >= b' ';
                at += 1;
            }
            None => return Err(Flaw::Ended),
        }
    }
}

/// The first byte from `at` on that is no blank.
#[inline]
pub(super) fn space(text: &[u8], mut at: usize) -> usize {
    // One comparison tells nearly all other bytes; a jump by the byte would be guessed wrong too often.
    while let Some(&byte) = text.get(at)
        && byte <= b' '
    {
        match byte {
            b' ' | b'\r' | b'\t' => at += 1,
            b'\n' => {
                at += 1;
                // Indentation comes in long runs.
                while word_at(text, at) == Some(BLANKS) {
                    at += 8;
                }
            }
            _ => return at,
        }
    }
    at
}

/// The end of a valid value that begins at `at`. `stack` is scratch room, given back as it came.
#[inline]
pub(super) fn value(text: &[u8], at: usize, stack: &mut Vec<u8>) -> Result<usize, Flaw> {
    if let Some(b'{' | b'[') = text.get(at) {
        let base = stack.len();
        let walked = container(text, at, stack);
        stack.truncate(base);
        return walked;
    }
    scalar(text, at)
}

/// The end of a valid string, number or literal.
#[inline]
pub(super) fn scalar(text: &[u8], at: usize) -> Result<usize, Flaw> {
    let Some(&byte) = text.get(at) else { return Err(Flaw::Ended) };
    // Nearly all are numbers and strings: comparisons, as in `space`.
    if byte.is_ascii_digit() {
        return number(text, at);
    }
    if byte == b'"' {
        return valid_string(text, at + 1);
    }
    other_scalar(text, at)
}

/// The end of a valid literal or negative number.
fn other_scalar(text: &[u8], at: usize) -> Result<usize, Flaw> {
    match text.get(at) {
        Some(b'-') => number(text, at),
        Some(b't') => literal(text, at, b"true"),
        Some(b'f') => literal(text, at, b"false"),
        Some(b'n') => literal(text, at, b"null"),
        Some(_) => Err(Flaw::At(at)),
        None => Err(Flaw::Ended),
    }
}

/// The place behind the closing quote, if everything before it is valid.
#[inline]
pub(super) fn valid_string(text: &[u8], at: usize) -> Result<usize, Flaw> {
    let quoted = string(text, at)?;
    if quoted.plain || escapes_are_valid(&text[at..quoted.end]) { Ok(quoted.end + 1) } else { Err(Flaw::At(at)) }
}

fn container(text: &[u8], mut at: usize, stack: &mut Vec<u8>) -> Result<usize, Flaw> {
    let base = stack.len();
    let byte = |at: usize| text.get(at).copied().ok_or(Flaw::Ended);
    'opened: loop {
        // An opening bracket stands at `at`.
        let mut closer = text[at] + 2;
        stack.push(closer);
        at = space(text, at + 1);
        let mut ended = byte(at)? == closer;
        loop {
            if !ended {
                if closer == b'}' {
                    if byte(at)? != b'"' {
                        return Err(Flaw::At(at));
                    }
                    at = space(text, valid_string(text, at + 1)?);
                    if byte(at)? != b':' {
                        return Err(Flaw::At(at));
                    }
                    at = space(text, at + 1);
                }
                match byte(at)? {
                    b'{' | b'[' => continue 'opened,
                    _ => at = space(text, scalar(text, at)?),
                }
            }
            // Behind a value, or at the end of an empty container.
            loop {
                match byte(at)? {
                    b',' if !ended => {
                        at = space(text, at + 1);
                        break;
                    }
                    found if found == closer => {
                        at += 1;
                        ended = false;
                        stack.pop();
                        match stack.get(base..).and_then(<[u8]>::last) {
                            Some(outer) => closer = *outer,
                            None => return Ok(at),
                        }
                        at = space(text, at);
                    }
                    _ => return Err(Flaw::At(at)),
                }
            }
        }
    }
}

#[inline]
fn literal(text: &[u8], at: usize, word: &[u8]) -> Result<usize, Flaw> {
    let rest = &text[at..text.len().min(at + word.len())];
    if rest == word {
        Ok(at + word.len())
    } else if word.starts_with(rest) {
        Err(Flaw::Ended)
    } else {
        Err(Flaw::At(at))
    }
}

/// A high bit at the first byte of `word` that is no digit (and perhaps at later ones).
#[inline(always)]
fn no_digits(word: u64) -> u64 {
    let below = !((word | HIGHS) - ONES * b'0' as u64);
    let above = (word & !HIGHS) + ONES * (0x7f - b'9') as u64;
    (below | above | word) & HIGHS
}

/// The first byte from `at` on that is no digit.
#[inline(always)]
pub(super) fn digits(text: &[u8], mut at: usize) -> usize {
    while let Some(word) = word_at(text, at) {
        let found = no_digits(word);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while text.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    at
}

#[inline]
fn number(text: &[u8], begin: usize) -> Result<usize, Flaw> {
    let digits = |at: usize| digits(text, at);
    let mut at = begin + usize::from(text[begin] == b'-');
    let whole = digits(at);
    if whole == at || (text[at] == b'0' && whole > at + 1) {
        return Err(if whole == text.len() { Flaw::Ended } else { Flaw::At(begin) });
    }
    at = whole;
    if text.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == at + 1 {
            return Err(if fraction == text.len() { Flaw::Ended } else { Flaw::At(begin) });
        }
        at = fraction;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        let sign = at + 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(sign);
        if exponent == sign {
            return Err(if exponent == text.len() { Flaw::Ended } else { Flaw::At(begin) });
        }
        at = exponent;
    }
    Ok(at)
}

/// Whether a string without quotes is valid JSON: no control characters, known escapes, surrogates in pairs.
fn escapes_are_valid(string: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&byte) = string.get(at) {
        match byte {
            0..=0x1f => return false,
            b'\\' => match string.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') => match code_unit(string, at + 2) {
                    Some(0xd800..=0xdbff) => {
                        let low = string.get(at + 6..at + 8) == Some(b"\\u");
                        if !low || !code_unit(string, at + 8).is_some_and(|unit| (0xdc00..=0xdfff).contains(&unit)) {
                            return false;
                        }
                        at += 12;
                    }
                    Some(0xdc00..=0xdfff) | None => return false,
                    Some(_) => at += 6,
                },
                _ => return false,
            },
            _ => at += 1,
        }
    }
    true
}

/// The four hexadecimal digits at `at`.
pub(super) fn code_unit(string: &[u8], at: usize) -> Option<u32> {
    let digits = string.get(at..at + 4)?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit * 16 + char::from(digit).to_digit(16)?))
}

/// Whether a key `ph` with a text stands here.
pub(super) fn has_phase(object: &[u8]) -> bool {
    memchr::memmem::find_iter(object, b"\"ph\"").any(|at| {
        let colon = space(object, at + 4);
        object.get(colon) == Some(&b':') && object.get(space(object, colon + 1)) == Some(&b'"')
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn end(text: &str) -> Result<usize, Flaw> {
        let mut stack = vec![7];
        let end = value(text.as_bytes(), 0, &mut stack);
        assert_eq!(stack, [7]);
        end
    }

    #[test]
    fn values_end_where_they_end() {
        for text in [
            r#""""#,
            r#""a longer text than eight bytes""#,
            r#""\"\\\u00e9\ud83d\ude00""#,
            "0",
            "-12.50e+3",
            "true",
            "null",
            "{}",
            "[]",
            "[ ]",
            r#"{"a":[1,{"b":[]},"]"] , "c":{}}"#,
            "[[[[]]],{}]",
            "18446744073709551617",
        ] {
            assert_eq!(end(text), Ok(text.len()), "{text}");
            assert_eq!(end(&format!("{text},\"x\"")), Ok(text.len()), "{text}");
        }
    }

    #[test]
    fn what_is_not_json_does_not_pass() {
        for text in [
            "NaN",
            "+1",
            ".5",
            "5.",
            "01",
            "1e",
            "{,}",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "[1 2]",
            "{1:2}",
            "tru ",
            "[}",
            "\"\\x\"",
            "\"a\u{1}b\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\u12g4\"",
            "]",
        ] {
            let padded = format!("{text} ,");
            assert!(matches!(end(&padded), Err(Flaw::At(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn digits_end_where_the_first_other_byte_stands(text in "[0-9]{0,20}[ -~é\n]?[0-9]{0,9}", at in 0..12_usize) {
            let at = at.min(text.len());
            let length = text.bytes().skip(at).take_while(u8::is_ascii_digit).count();
            prop_assert_eq!(digits(text.as_bytes(), at), at + length);
        }
    }

    #[test]
    fn every_cut_is_told_from_a_fault() {
        let text = r#"{"a":[1,-2.5e3,{"b":"\u0041x"}],"c":true}"#;
        for length in 0..text.len() {
            assert_eq!(end(&text[..length]), Err(Flaw::Ended), "{length}");
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(end(&deep), Ok(deep.len()));
    }

    proptest! {
        /// What serde_json takes passes, and the other way round.
        #[test]
        fn agrees_with_serde(text in r#"[\[\]{}:, "0-9a\\.eu+-]{0,12}"#) {
            let lexed = value(text.trim_start().as_bytes(), 0, &mut Vec::new()) == Ok(text.trim().len());
            let parsed = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            prop_assert_eq!(lexed, parsed, "{}", text);
        }

        #[test]
        fn strings_end_at_the_first_bare_quote(text in r#"[a"\\é\n]{0,24}"#) {
            let bytes = text.as_bytes();
            let (mut at, mut plain) = (0, true);
            let naive = loop {
                match bytes.get(at) {
                    None => break Err(Flaw::Ended),
                    Some(b'"') => break Ok(Quoted { end: at, plain }),
                    Some(b'\\') => { at += 2; plain = false; }
                    Some(byte) => { at += 1; plain &= *byte >= b' '; }
                }
            };
            prop_assert_eq!(string(bytes, 0), naive);
        }
    }
}
