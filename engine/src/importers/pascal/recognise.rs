//! Which of the five shapes a text has: told from the keys of its outermost objects, in any order, within its first
//! bytes.

use super::json::{self, Json};
use super::sperf;
use crate::trace::Source;

/// The shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Viewer,
    Analyzer,
    SperfJson,
    SperfXml,
    SperfCsv,
}

impl Shape {
    /// Whether a file holds one region, and a result several files.
    pub(super) fn is_sperf(self) -> bool {
        matches!(self, Shape::SperfJson | Shape::SperfXml | Shape::SperfCsv)
    }
}

/// The shape of a source.
pub(super) fn shape(source: &Source) -> Option<Shape> {
    let head = source.head();
    let at = json::space(head, 0);
    match head.get(at)? {
        b'[' => {
            let keys = Keys::of(head, json::space(head, at + 1));
            let has_runs = || find(head, b"\"runs\"") && find(head, b"\"threads\"");
            let is_viewer = keys.has("executions") && (keys.has("region") || (keys.cut && has_runs()));
            is_viewer.then_some(Shape::Viewer)
        }
        b'{' => {
            let keys = Keys::of(head, at);
            let has_times = || find(head, b"\"total_time\"") || find(head, b"\"start_time\"");
            if keys.has("config") && (find(head, b"\"data_descriptor\"") || keys.has("data")) {
                return Some(Shape::Analyzer);
            }
            if keys.has("data") && keys.cut && has_times() && first_key_is_configuration(head, &keys) {
                return Some(Shape::Analyzer);
            }
            let has_execution = keys.keys.iter().any(|(key, _)| key.starts_with(b"Execution "));
            (has_execution && keys.has("Region") && keys.has("Filename")).then_some(Shape::SperfJson)
        }
        b'<' => {
            let text = head[at..].strip_prefix(b"<?xml").map_or(&head[at..], |prolog| {
                let end = memchr::memmem::find(prolog, b"?>").map_or(prolog.len(), |end| end + 2);
                prolog[end..].trim_ascii_start()
            });
            text.starts_with(b"<regiao>").then_some(Shape::SperfXml)
        }
        _ => sperf::is_csv(head).then_some(Shape::SperfCsv),
    }
}

/// The shape of a whole document.
pub(super) fn shape_of(document: &Json<'_>) -> Option<Shape> {
    if let Some(elements) = document.elements() {
        return elements.iter().all(|element| element.get("executions").is_some()).then_some(Shape::Viewer);
    }
    if document.get("data").is_some() && document.get("config").is_some() {
        return Some(Shape::Analyzer);
    }
    document.get("Region").map(|_| Shape::SperfJson)
}

/// `"2;0;1"`: what is measured, by the keys of the layout.
fn first_key_is_configuration(head: &[u8], keys: &Keys<'_>) -> bool {
    let Some((_, value)) = keys.keys.iter().find(|(key, _)| *key == b"data") else { return false };
    let inner = Keys::of(head, *value);
    inner.keys.first().is_some_and(|(key, _)| {
        let is_part = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
        key.split(|byte| *byte == b';').next().is_some_and(is_part) && key.contains(&b';')
    })
}

fn find(head: &[u8], text: &[u8]) -> bool {
    memchr::memmem::find(head, text).is_some()
}

/// The keys of an object as far as the text goes, with the places of their values.
struct Keys<'t> {
    keys: Vec<(&'t [u8], usize)>,
    /// Whether the text ends inside of the object.
    cut: bool,
}

impl<'t> Keys<'t> {
    fn of(text: &'t [u8], at: usize) -> Keys<'t> {
        let mut keys = Keys { keys: Vec::new(), cut: true };
        if text.get(at) != Some(&b'{') {
            return keys;
        }
        let mut at = at + 1;
        loop {
            at = json::space(text, at.min(text.len()));
            match text.get(at) {
                Some(b',') => at += 1,
                Some(b'"') => {
                    let Some(end) = string_end(text, at) else { return keys };
                    let value = json::space(text, end);
                    if text.get(value) != Some(&b':') {
                        return keys;
                    }
                    let value = json::space(text, value + 1);
                    keys.keys.push((&text[at + 1..end - 1], value));
                    let Some(end) = value_end(text, value) else { return keys };
                    at = end;
                }
                Some(b'}') => {
                    keys.cut = false;
                    return keys;
                }
                _ => return keys,
            }
        }
    }

    fn has(&self, wanted: &str) -> bool {
        self.keys.iter().any(|(key, _)| *key == wanted.as_bytes())
    }
}

/// The place behind the text that begins at `at`.
fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let mut end = at + 1;
    loop {
        let length = memchr::memchr2(b'"', b'\\', text.get(end..)?)?;
        if text[end + length] == b'"' {
            return Some(end + length + 1);
        }
        end += length + 2;
    }
}

/// The place behind the value that begins at `at`; brackets are counted, not matched.
fn value_end(text: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        match text.get(at)? {
            b'"' => at = string_end(text, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                // The end of what is around a bare value.
                if depth == 0 {
                    return Some(at);
                }
                depth -= 1;
                at += 1;
            }
            b',' if depth == 0 => return Some(at),
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_as_far_as_the_text_goes() {
        let text = br#"{"a":{"x":[1,"}"]},"b" : -1.5e3,"c":"d\"e","f":[[{"g":1"#;
        let names = |text: &[u8]| -> (Vec<String>, bool) {
            let keys = Keys::of(text, 0);
            (keys.keys.iter().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect(), keys.cut)
        };
        assert_eq!(names(text), (["a", "b", "c", "f"].map(str::to_owned).to_vec(), true));
        assert_eq!(names(b"{\"a\":1}"), (vec!["a".to_owned()], false));
        for length in 0..text.len() {
            assert!(names(&text[..length]).1);
        }
    }
}
