//! Repair: turns text that is almost JSON into JSON.
//!
//! Found in the wild, each with the writer that does it:
//!
//! ```text
//! "name": "torch\cuda\__init__.py(31): f"   Windows paths (PyTorch up to 2.0): \c and \_ are no escapes
//! "raw": "04 31 cc⏎"                        raw control characters (inductor frames, converters of logs)
//! {"step": 2, }                             trailing commas (hand-written converters)
//! {"loss": NaN}                             Python's json module
//! {"load": .75}                             C++ streams and shell scripts
//! "\ud83d"                                  half a surrogate pair: a name cut to a number of UTF-16 units
//! ```
//! What is ambiguous is read as valid JSON: `\t` in `C:\temp` is a tab.

use super::lex::{self, Flaw};

/// The text that a string without its quotes stands for, and whether something had to be put right.
pub(super) fn unescape(raw: &str) -> (String, bool) {
    let mut text = String::with_capacity(raw.len());
    let mut repaired = false;
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (before, escape) = rest.split_at(at);
        text.push_str(before);
        let (character, length) = escaped(escape.as_bytes());
        repaired |= character.is_none_or(|character| character == char::REPLACEMENT_CHARACTER);
        // An unknown escape is a backslash that should have been doubled.
        text.push(character.unwrap_or('\\'));
        rest = &escape[length..];
    }
    text.push_str(rest);
    repaired |= raw.bytes().any(|byte| byte < b' ');
    (text, repaired)
}

/// The character of an escape, `None` for an unknown one, and how many bytes it takes.
fn escaped(escape: &[u8]) -> (Option<char>, usize) {
    let simple = |character| (Some(character), 2);
    match escape.get(1) {
        Some(b'"') => simple('"'),
        Some(b'\\') => simple('\\'),
        Some(b'/') => simple('/'),
        Some(b'b') => simple('\u{8}'),
        Some(b'f') => simple('\u{c}'),
        Some(b'n') => simple('\n'),
        Some(b'r') => simple('\r'),
        Some(b't') => simple('\t'),
        Some(b'u') => match lex::code_unit(escape, 2) {
            None => (None, 1),
            Some(high @ 0xd800..=0xdbff) => {
                let low = (escape.get(6..8) == Some(b"\\u")).then(|| lex::code_unit(escape, 8)).flatten();
                match low.filter(|low| (0xdc00..=0xdfff).contains(low)) {
                    Some(low) => (char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)), 12),
                    None => (Some(char::REPLACEMENT_CHARACTER), 6),
                }
            }
            Some(unit) => (Some(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)), 6),
        },
        _ => (None, 1),
    }
}

/// Writes a text as a JSON string.
pub(super) fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0'..='\x1f' => {
                let unit = character as u32;
                out.push_str("\\u00");
                out.extend([unit >> 4, unit & 15].map(|digit| char::from_digit(digit, 16).unwrap_or('0')));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// Writes the value that begins at `at` as compact, valid JSON; the answer is its end in `text`.
///
/// # Errors
/// When it is no JSON even with indulgence: an unescaped quote, a missing colon.
pub(super) fn value(text: &str, at: usize, out: &mut String) -> Result<usize, Flaw> {
    let bytes = text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().ok_or(Flaw::Ended);
    let space = |mut at: usize| {
        while bytes.get(at).is_some_and(|byte| *byte <= b' ') {
            at += 1;
        }
        at
    };
    let mut closers: Vec<u8> = Vec::new();
    let mut at = space(at);
    // Whether an item may begin here: behind an opening bracket or a comma.
    let mut item = true;
    loop {
        match (byte(at)?, closers.last()) {
            (b',', Some(_)) => {
                item = true;
                at += 1;
            }
            (found, Some(closer)) if found == *closer => {
                out.push(char::from(found));
                closers.pop();
                item = false;
                at += 1;
            }
            (first, closer) if item => {
                item = false;
                if !closers.is_empty() && !out.ends_with(['{', '[']) {
                    out.push(',');
                }
                let mut first = first;
                if closer == Some(&b'}') {
                    if first != b'"' {
                        return Err(Flaw::At(at));
                    }
                    at = space(string(text, at, out)?);
                    if byte(at)? != b':' {
                        return Err(Flaw::At(at));
                    }
                    out.push(':');
                    at = space(at + 1);
                    first = byte(at)?;
                }
                match first {
                    b'{' | b'[' => {
                        out.push(char::from(first));
                        closers.push(first + 2);
                        item = true;
                        at += 1;
                    }
                    b'"' => at = string(text, at, out)?,
                    _ => at = token(text, at, out)?,
                }
            }
            _ => return Err(Flaw::At(at)),
        }
        if closers.is_empty() {
            return Ok(at);
        }
        at = space(at);
    }
}

/// Copies the string whose opening quote is at `at`.
fn string(text: &str, at: usize, out: &mut String) -> Result<usize, Flaw> {
    let quoted = lex::string(text.as_bytes(), at + 1)?;
    let whole = text.get(at..=quoted.end).ok_or(Flaw::At(at))?;
    if quoted.plain {
        out.push_str(whole);
    } else {
        let (meaning, _) = unescape(&whole[1..whole.len() - 1]);
        quote(&meaning, out);
    }
    Ok(quoted.end + 1)
}

/// Where a number or word ends, whatever it is.
pub(super) fn token_end(text: &[u8], at: usize) -> usize {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_');
    text[at..].iter().position(|byte| !is_token(byte)).map_or(text.len(), |length| at + length)
}

/// Copies a number or word: as it is when JSON knows it, as a plain decimal when it is a number in another spelling, else
/// as a string.
fn token(text: &str, at: usize, out: &mut String) -> Result<usize, Flaw> {
    let end = token_end(text.as_bytes(), at);
    if end == text.len() {
        return Err(Flaw::Ended);
    }
    let word = text.get(at..end).filter(|word| !word.is_empty()).ok_or(Flaw::At(at))?;
    if lex::scalar(word.as_bytes(), 0) == Ok(word.len()) {
        out.push_str(word);
    } else if let Some(number) = respelt(word) {
        out.push_str(&number);
    } else {
        quote(word, out);
    }
    Ok(end)
}

/// `+1`, `.5`, `5.` and `007` as JSON spells them.
fn respelt(word: &str) -> Option<String> {
    let (sign, rest) = match word.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
    let whole_length = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let (whole, rest) = rest.split_at(whole_length);
    let (fraction, exponent) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len())),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    let number = format!("{sign}{whole}{point}{fraction}{exponent}");
    (lex::scalar(number.as_bytes(), 0) == Ok(number.len())).then_some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn repaired(text: &str) -> Option<String> {
        let mut out = String::new();
        let end = value(text, 0, &mut out).ok()?;
        assert_eq!(text[end..].trim(), ";", "{text}");
        Some(out)
    }

    #[test]
    fn what_was_meant_is_written() {
        let check = |text: &str, expected: &str| assert_eq!(repaired(text).as_deref(), Some(expected), "{text}");
        check("{\"step\": 2, } ;", r#"{"step":2}"#);
        check("[1,,2, ];", "[1,2]");
        check("{\"a\":{},\"b\":[[],{\"c\":1}]};", r#"{"a":{},"b":[[],{"c":1}]}"#);
        check("{\"loss\":NaN,\"x\":-Infinity};", r#"{"loss":"NaN","x":"-Infinity"}"#);
        check("[+1,.5,5.,007,-.5e3,0x10,1e];", r#"[1,0.5,5,7,-0.5e3,"0x10","1e"]"#);
        check("\"torch\\cuda\\__init__.py\\tab\";", r#""torch\\cuda\\__init__.py\tab""#);
        check("\"a\nb\u{1}\";", r#""a\nb\u0001""#);
        check(r#""\ud83d and \ud83d\ude00 and \udc00";"#, "\"\u{fffd} and \u{1f600} and \u{fffd}\"");
        check(r#""\utils";"#, r#""\\utils""#);
    }

    #[test]
    fn what_nobody_can_tell_is_refused() {
        for text in ["{\"a\":\"b\"c\"};", "[1 2];", "{\"a\" 1};", "{a:1};", "[;", "[(];"] {
            assert_eq!(repaired(text), None, "{text}");
        }
    }

    #[test]
    fn escapes_are_read() {
        assert_eq!(unescape(r#"a\"b\\c\/d\n\u00e9"#), ("a\"b\\c/d\n\u{e9}".to_owned(), false));
        assert_eq!(unescape(r"\_x\"), (r"\_x\".to_owned(), true));
    }

    proptest! {
        /// Whatever comes out is JSON, and JSON comes out with the same meaning.
        #[test]
        fn what_comes_out_is_json(text in r#"[\[\]{}:, "0-9aN\\.eu+\n-]{0,16}"#) {
            let mut out = String::new();
            if value(&format!("{text};"), 0, &mut out).is_ok() {
                let fail = |error| TestCaseError::fail(format!("{text} -> {out}: {error}"));
                serde_json::from_str::<serde::de::IgnoredAny>(&out).map_err(fail)?;
                // A number beyond the doubles is JSON, though it has no value here.
                if let Ok(expected) = serde_json::from_str::<serde_json::Value>(&text) {
                    let read: serde_json::Value = serde_json::from_str(&out).map_err(fail)?;
                    prop_assert_eq!(read, expected);
                }
            }
        }
    }
}
