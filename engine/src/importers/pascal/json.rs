//! JSON as a tree that borrows from the text: numbers are kept as written, so that times never pass through a binary
//! float, as they would in `serde_json::Value`, and strings without escapes are not copied.
//!
//! Cost: one pass; 32 bytes a value beside the text. Brackets may be [`DEPTH_MAX`] deep.

use std::borrow::Cow;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json<'t> {
    Null,
    Bool(bool),
    /// As written; also `NaN` and `Infinity`, which Python writes.
    Number(&'t str),
    Text(Cow<'t, str>),
    Array(Vec<Json<'t>>),
    Object(Vec<(Cow<'t, str>, Json<'t>)>),
}

/// Where the text is no JSON, and what was expected there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) at: usize,
    pub(super) what: &'static str,
}

/// The documents of these formats are five deep.
const DEPTH_MAX: usize = 64;

impl<'t> Json<'t> {
    /// The value of a key; of several, the last.
    pub(super) fn get(&self, key: &str) -> Option<&Json<'t>> {
        self.members().iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The members of an object; nothing of anything else.
    pub(super) fn members(&self) -> &[(Cow<'t, str>, Json<'t>)] {
        match self {
            Json::Object(members) => members,
            _ => &[],
        }
    }

    /// The elements of an array, if it is one.
    pub(super) fn elements(&self) -> Option<&[Json<'t>]> {
        match self {
            Json::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// Text, if it is that.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number, or a text that may be one, as written.
    pub(super) fn number(&self) -> Option<&str> {
        match self {
            Json::Number(text) => Some(text),
            Json::Text(text) => Some(text.trim()),
            _ => None,
        }
    }

    /// A short form for messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Json::Null => "null".to_owned(),
            Json::Bool(value) => value.to_string(),
            Json::Number(text) => (*text).to_owned(),
            Json::Text(text) => format!("`{}`", text.chars().take(40).collect::<String>()),
            Json::Array(_) => "an array".to_owned(),
            Json::Object(_) => "an object".to_owned(),
        }
    }
}

/// Reads the value that begins at `at` (blanks before it are stepped over); the answer has the place behind it.
#[cfg(test)]
pub(super) fn value(text: &str, at: usize) -> Result<(Json<'_>, usize), Flaw> {
    value_within(text, at, |_| true)
}

/// Reads the value that begins at `at` (blanks before it are stepped over); the answer has the place behind it.
/// `grow` grants the bytes of the tree, a megabyte after the other, or refuses.
///
/// # Errors
/// A [`Flaw`] where the text is no JSON; [`OUT_OF_MEMORY`] when it was refused.
pub(super) fn value_within(text: &str, at: usize, grow: impl FnMut(usize) -> bool) -> Result<(Json<'_>, usize), Flaw> {
    Reader { text, depth: 0, left: 0, grow }.value(at)
}

/// What [`value_within`] says when it may not go on.
pub(super) const OUT_OF_MEMORY: &str = "not enough memory for what stands before";

/// Bytes that are asked for at once.
const STRETCH: usize = 1 << 20;

/// Bytes of a value with the room that its list has in front of it.
const VALUE: usize = 2 * size_of::<Json<'_>>();

/// The same for a member of an object.
const MEMBER: usize = 2 * size_of::<(Cow<'_, str>, Json<'_>)>();

/// The first byte from `at` on that is no blank.
pub(super) fn space(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count()
}

struct Reader<'t, G> {
    text: &'t str,
    depth: usize,
    /// Bytes that were granted and are not used yet.
    left: usize,
    grow: G,
}

impl<'t, G: FnMut(usize) -> bool> Reader<'t, G> {
    fn charge(&mut self, bytes: usize, at: usize) -> Result<(), Flaw> {
        if self.left < bytes {
            if !(self.grow)(STRETCH) {
                return Err(Flaw { at, what: OUT_OF_MEMORY });
            }
            self.left += STRETCH;
        }
        self.left -= bytes;
        Ok(())
    }

    fn value(&mut self, at: usize) -> Result<(Json<'t>, usize), Flaw> {
        let bytes = self.text.as_bytes();
        let at = space(bytes, at);
        match bytes.get(at) {
            None => Err(Flaw { at, what: "the text ends where a value should be" }),
            Some(b'{') => self.inside(at, |reader, at| reader.object(at)),
            Some(b'[') => self.inside(at, |reader, at| reader.array(at)),
            Some(b'"') => self.string(at).map(|(text, end)| (Json::Text(text), end)),
            Some(_) => self.word(at),
        }
    }

    fn inside(
        &mut self,
        at: usize,
        read: impl FnOnce(&mut Self, usize) -> Result<(Json<'t>, usize), Flaw>,
    ) -> Result<(Json<'t>, usize), Flaw> {
        if self.depth == DEPTH_MAX {
            return Err(Flaw { at, what: "brackets are nested too deeply" });
        }
        self.depth += 1;
        let read = read(self, at + 1);
        self.depth -= 1;
        read
    }

    fn object(&mut self, at: usize) -> Result<(Json<'t>, usize), Flaw> {
        let bytes = self.text.as_bytes();
        let mut at = space(bytes, at);
        if bytes.get(at) == Some(&b'}') {
            return Ok((Json::Object(Vec::new()), at + 1));
        }
        // Nearly all objects are runs, of threads and time: twice the room would be twice the memory of a study.
        let mut members = Vec::with_capacity(2);
        loop {
            at = space(bytes, at);
            if bytes.get(at) != Some(&b'"') {
                return Err(Flaw { at, what: "a key in quotes is expected" });
            }
            let (key, end) = self.string(at)?;
            at = space(bytes, end);
            if bytes.get(at) != Some(&b':') {
                return Err(Flaw { at, what: "`:` is expected after a key" });
            }
            let (value, end) = self.value(at + 1)?;
            self.charge(MEMBER, at)?;
            members.push((key, value));
            at = space(bytes, end);
            match bytes.get(at) {
                Some(b',') => at += 1,
                Some(b'}') => return Ok((Json::Object(members), at + 1)),
                _ => return Err(Flaw { at, what: "`,` or `}` is expected" }),
            }
        }
    }

    fn array(&mut self, at: usize) -> Result<(Json<'t>, usize), Flaw> {
        let bytes = self.text.as_bytes();
        let mut elements = Vec::new();
        let mut at = space(bytes, at);
        if bytes.get(at) == Some(&b']') {
            return Ok((Json::Array(elements), at + 1));
        }
        loop {
            let (value, end) = self.value(at)?;
            self.charge(VALUE, at)?;
            elements.push(value);
            at = space(bytes, end);
            match bytes.get(at) {
                Some(b',') => at += 1,
                Some(b']') => return Ok((Json::Array(elements), at + 1)),
                _ => return Err(Flaw { at, what: "`,` or `]` is expected" }),
            }
        }
    }

    /// A text with its quotes at `at`. What stands between them is taken generously: tabs and line ends too.
    fn string(&self, at: usize) -> Result<(Cow<'t, str>, usize), Flaw> {
        let bytes = self.text.as_bytes();
        let mut end = at + 1;
        let mut plain = true;
        loop {
            match memchr::memchr2(b'"', b'\\', bytes.get(end..).unwrap_or_default()) {
                Some(length) if bytes[end + length] == b'"' => {
                    let inner = &self.text[at + 1..end + length];
                    let end = end + length + 1;
                    if plain {
                        return Ok((Cow::Borrowed(inner), end));
                    }
                    let decoded = serde_json::from_str::<String>(&self.text[at..end]);
                    return Ok((decoded.map_or(Cow::Borrowed(inner), Cow::Owned), end));
                }
                Some(length) => {
                    plain = false;
                    end += length + 2;
                }
                None => return Err(Flaw { at, what: "a text has no closing quote" }),
            }
        }
    }

    fn word(&self, at: usize) -> Result<(Json<'t>, usize), Flaw> {
        let bytes = self.text.as_bytes();
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let end = at + bytes[at..].iter().take_while(|byte| is_part(byte)).count();
        let value = match &self.text[at..end] {
            "null" => Json::Null,
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            word if matches!(word, "NaN" | "Infinity" | "-Infinity") => Json::Number(word),
            word if word.trim_start_matches('-').starts_with(|first: char| first.is_ascii_digit()) => {
                Json::Number(word)
            }
            _ => return Err(Flaw { at, what: "a value is expected" }),
        };
        Ok((value, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_written() {
        let text = r#" {"a": [1.50, -2e-3, "x\n\"é", true, null, NaN, []], "b": {}, "a": 7} x"#;
        let (json, end) = value(text, 0).expect("JSON");
        assert_eq!(end, text.len() - 2);
        assert_eq!(json.get("a"), Some(&Json::Number("7")));
        let first = json.members()[0].1.elements().expect("an array");
        assert_eq!(first[..2], [Json::Number("1.50"), Json::Number("-2e-3")]);
        assert_eq!(first[2].text(), Some("x\n\"é"));
        assert_eq!(first[6], Json::Array(vec![]));
        assert_eq!(json.get("c"), None);
    }

    #[test]
    fn flaws_have_a_place_and_every_prefix_has_one() {
        let text = r#"{"a":[1,{"b":"c\\"}],"d":null}"#;
        for length in 0..text.len() {
            assert!(value(&text[..length], 0).is_err(), "{length}");
        }
        let check = |text: &str, at| assert_eq!(value(text, 0).map_err(|flaw| flaw.at), Err(at), "{text}");
        check("[1,]", 3);
        check("{\"a\" 1}", 5);
        check("[1 2]", 3);
        check("{a:1}", 1);
        check("-x", 0);
        check(&"[".repeat(100_000), DEPTH_MAX);
    }
}
