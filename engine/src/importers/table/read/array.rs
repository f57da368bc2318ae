//! The elements of a JSON array, one after another, from a stream of text.
//!
//! ```text
//! [ {"begin": 0.5, "op": "load"} , {"begin": 0.75} ]
//!   ^--------- a value --------^   ^-------------^        what is between them is checked here, the values are not
//! ```
//! Only strings and brackets are looked at, so a value's end is found without parsing it.

use super::damaged;
use super::lines::{RECORD_BYTES, Window};
use crate::error::ImportError;
use crate::trace::Source;

/// Calls `take` with each value of the array.
///
/// # Errors
/// [`ImportError::Damaged`] with the byte where the text is no array or ends too early, and what `take` returns.
pub(super) fn values(
    source: &Source,
    mut take: impl FnMut(&[u8]) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut window = Window::new(source.reader()?);
    let mut at = 0u64;
    let mut next = Next::Array;
    loop {
        let unread = window.unread();
        let blank = unread.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        at += blank as u64;
        let Some(&first) = unread.get(blank) else {
            window.used(blank);
            if !window.at_end() {
                window.fill().map_err(|error| damaged(source, format!("byte {at}"), error))?;
                continue;
            }
            return match next {
                Next::Nothing => Ok(()),
                _ => Err(damaged(source, format!("byte {at}"), "the array does not end")),
            };
        };
        let used = match (next, first) {
            (Next::Array, b'[') => {
                next = Next::Value;
                1
            }
            (Next::Value | Next::Comma, b']') => {
                next = Next::Nothing;
                1
            }
            (Next::Comma, b',') => {
                next = Next::Value;
                1
            }
            (Next::Value, _) => {
                let text = &unread[blank..];
                match value_end(text).or(window.at_end().then_some(0)) {
                    Some(0) => return Err(damaged(source, format!("byte {at}"), "a value that does not end")),
                    Some(end) => {
                        take(&text[..end])?;
                        next = Next::Comma;
                        end
                    }
                    None if text.len() > RECORD_BYTES => {
                        return Err(damaged(source, format!("byte {at}"), "a value that does not end"));
                    }
                    None => {
                        window.used(blank);
                        window.fill().map_err(|error| damaged(source, format!("byte {at}"), error))?;
                        continue;
                    }
                }
            }
            (_, other) => {
                let expected = match next {
                    Next::Array => "`[`",
                    Next::Nothing => "the end of the text",
                    _ => "`,` or `]`",
                };
                let found = char::from(other).escape_default();
                return Err(damaged(source, format!("byte {at}"), format!("{expected} expected, found `{found}`")));
            }
        };
        window.used(blank + used);
        at += used as u64;
    }
}

/// What may come.
#[derive(Debug, Clone, Copy)]
enum Next {
    /// The bracket that opens the array.
    Array,
    /// A value, or the end of the array.
    Value,
    /// A comma, or the end of the array.
    Comma,
    /// Blanks.
    Nothing,
}

/// The length of the value that `text` begins with; `None`: it is not all there.
fn value_end(text: &[u8]) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => {
                at = string_end(text, at)?;
                if depth == 0 {
                    return Some(at);
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return Some(if depth == 0 { at } else { at + 1 }),
            b'}' | b']' => depth -= 1,
            byte if depth == 0 && (byte == b',' || byte.is_ascii_whitespace()) => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The byte behind the string whose quote stands at `from`.
pub(super) fn string_end(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Result<Vec<String>, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
        let source = Source::open(file.path(), None).unwrap();
        let mut found = Vec::new();
        values(&source, |value| {
            found.push(String::from_utf8_lossy(value).into_owned());
            Ok(())
        })
        .map_err(|error| error.to_string())?;
        Ok(found)
    }

    #[test]
    fn values_end_where_their_brackets_close() {
        let text = " [ {\"a\": \"}\\\"]\", \"b\": [{}]} , 7,\"x, y\" ,[1, [2]], null ]\n";
        let expected = ["{\"a\": \"}\\\"]\", \"b\": [{}]}", "7", "\"x, y\"", "[1, [2]]", "null"];
        assert_eq!(split(text).unwrap(), expected);
        assert_eq!(split("[]").unwrap(), [""; 0]);
        assert_eq!(split("[1,]").unwrap(), ["1"]);
    }

    #[test]
    fn values_may_be_longer_than_what_is_read_at_once() {
        let long = format!("{{\"a\": \"{}\"}}", "x\\\\".repeat(400_000));
        let text = format!("[{long},{long}]");
        assert_eq!(split(&text).unwrap(), [long.clone(), long]);
    }

    #[test]
    fn what_is_no_array_is_said_with_its_place() {
        for (text, expected) in [
            ("[1 2]", "`,` or `]` expected, found `2` (byte 3)"),
            ("{}", "`[` expected, found `{` (byte 0)"),
            ("[1] x", "the end of the text expected, found `x` (byte 4)"),
            ("[{\"a\": 1}", "the array does not end (byte 9)"),
            ("[{\"a\": 1", "a value that does not end (byte 1)"),
            ("[,]", "a value that does not end (byte 1)"),
        ] {
            let error = split(text).unwrap_err();
            assert!(error.ends_with(expected), "{text}: {error}");
        }
    }
}
