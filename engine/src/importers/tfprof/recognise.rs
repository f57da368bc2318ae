//! Recognise: a file that another program has rewritten (pretty-printed, keys reordered) is known by the keys of its
//! first non-empty object, in any order and with other keys between them.
//!
//! ```text
//! [ {}, {"v":1,"executor":"0","data":[…]} ]       `data` right behind `executor`
//! [ {"data":[ {"v":1,"level":0,"worker":3,…} ]    `data` that holds the tasks of workers, wherever `executor` stands
//! ```
//! The head of the source nearly always decides. Only when it ends inside that object, in a value of an unknown key, is
//! the text read further, through a buffer of fixed size; `traceEvents` ends the search, so that a large Chrome trace is
//! not read in vain.

use std::io::{BufRead, BufReader};

use crate::trace::Source;

/// As much of a key is looked at: ours are shorter.
const KEY_BYTES: usize = 64;

/// Whether the source is an array of executors, or a lone one; or nothing but `{}`, which are executors without tasks.
pub(super) fn holds_executors(source: &Source) -> bool {
    let is_whole = source.head_is_whole();
    match (Walk { text: source.head(), is_whole }).executors() {
        Ok(found) => found,
        Err(Ended) if is_whole => false,
        Err(Ended) => source.reader().is_ok_and(|reader| {
            let mut walk = Walk { text: BufReader::new(reader), is_whole: true };
            walk.executors().unwrap_or(false)
        }),
    }
}

/// The text ends before it is clear.
#[derive(Debug)]
struct Ended;

/// A walk through the keys of a text.
struct Walk<R> {
    text: R,
    /// Whether nothing follows where the text ends.
    is_whole: bool,
}

impl<R: BufRead> Walk<R> {
    fn executors(&mut self) -> Result<bool, Ended> {
        let is_array = self.skip_if(b'[')?;
        loop {
            if !self.skip_if(b'{')? {
                return Ok(false);
            }
            if !self.skip_if(b'}')? {
                return self.executor();
            }
            if !is_array {
                return self.is_at_end();
            }
            if self.skip_if(b']')? {
                return self.is_at_end();
            }
            if !self.skip_if(b',')? {
                return Ok(false);
            }
        }
    }

    /// Whether the object that the walk is inside of is an executor.
    fn executor(&mut self) -> Result<bool, Ended> {
        let (mut has_id, mut has_data, mut is_behind_id) = (false, false, false);
        while let Some(key) = self.key()? {
            let was_behind_id = std::mem::replace(&mut is_behind_id, key == b"executor");
            match key.as_slice() {
                b"data" => {
                    if !self.skip_if(b'[')? {
                        return Ok(false);
                    }
                    if was_behind_id {
                        return Ok(true);
                    }
                    if !self.skip_if(b']')? {
                        return self.lane();
                    }
                    has_data = true;
                }
                b"traceEvents" => return Ok(false),
                _ => self.value()?,
            }
            has_id |= is_behind_id;
        }
        Ok(has_id && has_data)
    }

    /// Whether the tasks of a worker begin here.
    fn lane(&mut self) -> Result<bool, Ended> {
        if !self.skip_if(b'{')? {
            return Ok(false);
        }
        while let Some(key) = self.key()? {
            match key.as_slice() {
                b"worker" | b"level" => return Ok(true),
                b"data" => return self.skip_if(b'['),
                _ => self.value()?,
            }
        }
        Ok(false)
    }

    /// Steps to the value of the next key; `None` where no key follows.
    fn key(&mut self) -> Result<Option<Vec<u8>>, Ended> {
        self.skip_if(b',')?;
        if !self.skip_if(b'"')? {
            return Ok(None);
        }
        let key = self.string()?;
        Ok(self.skip_if(b':')?.then_some(key))
    }

    /// Steps over a value: brackets are counted, what is between them is not checked.
    fn value(&mut self) -> Result<(), Ended> {
        let mut depth = 0usize;
        loop {
            let is_inside = |byte: &u8| match byte {
                b'"' | b'{' | b'[' | b'}' | b']' => false,
                b',' => depth > 0,
                _ => true,
            };
            let unread = self.unread()?;
            let length = unread.iter().take_while(|byte| is_inside(byte)).count();
            let Some(&byte) = unread.get(length) else {
                self.text.consume(length);
                continue;
            };
            // What ends the object around the value is left to the caller.
            if depth == 0 && matches!(byte, b',' | b'}' | b']') {
                self.text.consume(length);
                return Ok(());
            }
            self.text.consume(length + 1);
            match byte {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => depth += 1,
                _ => depth -= 1,
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// The first bytes of the string whose opening quote was stepped over.
    fn string(&mut self) -> Result<Vec<u8>, Ended> {
        let mut kept = Vec::new();
        loop {
            let unread = self.unread()?;
            let found = memchr::memchr2(b'"', b'\\', unread);
            let length = found.unwrap_or(unread.len());
            kept.extend_from_slice(&unread[..length.min(KEY_BYTES - kept.len())]);
            let end = found.map(|at| unread[at]);
            self.text.consume(length + usize::from(end.is_some()));
            match end {
                Some(b'"') => return Ok(kept),
                // The byte behind a backslash ends nothing.
                Some(_) => {
                    self.unread()?;
                    self.text.consume(1);
                }
                None => {}
            }
        }
    }

    /// Steps over blanks, and over `byte` if it stands there.
    fn skip_if(&mut self, byte: u8) -> Result<bool, Ended> {
        let found = self.space()? == byte;
        self.text.consume(usize::from(found));
        Ok(found)
    }

    /// Steps over blanks; the byte behind them.
    fn space(&mut self) -> Result<u8, Ended> {
        loop {
            let unread = self.unread()?;
            let blanks = unread.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let byte = unread.get(blanks).copied();
            self.text.consume(blanks);
            if let Some(byte) = byte {
                return Ok(byte);
            }
        }
    }

    fn is_at_end(&mut self) -> Result<bool, Ended> {
        match self.space() {
            Ok(_) => Ok(false),
            Err(Ended) if self.is_whole => Ok(true),
            Err(Ended) => Err(Ended),
        }
    }

    /// At least one byte. What cannot be read is met again by the importer, which says so.
    fn unread(&mut self) -> Result<&[u8], Ended> {
        self.text.fill_buf().ok().filter(|bytes| !bytes.is_empty()).ok_or(Ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: bool) {
        let source = Source::of_bytes(text.as_bytes()).expect("bytes");
        assert_eq!(holds_executors(&source), expected, "{}", &text[..text.len().min(200)]);
    }

    #[test]
    fn executors_are_recognised_in_any_spacing() {
        check("{}\n", true);
        check("[{},\n {}]\n", true);
        check("[\n{}\n,{\"executor\":\"0\",\"data\":[", true);
        check("[\n  {\n    \"executor\": \"0\",\n    \"data\": [\n      {", true);
        check("{ \"data\": [ { \"level\": 0, \"worker\": 1", true);
        check("[]", false);
        check("[{\"cat\":\"ChromeObserver\",\"name\":\"a\"}]", false);
        check("{\"traceEvents\":[]}", false);
        check("{\"executor\":\"0\",\"other\":[", false);
        check("{\"data\":[1,2]}", false);
        check("{} {}", false);
        check("x", false);
        check(&format!("{{}}{}", " ".repeat(100_000)), true);
        check(&format!("{{}}{}1", " ".repeat(100_000)), false);
    }

    /// Foreign keys may stand anywhere and be longer than the head.
    #[test]
    fn keys_of_others_do_not_hide_executors() {
        let long = format!("{{\"a\":[{}\"]}}\\\"\"]}}", "1.5, {\"b\": \"\\\\\"}, ".repeat(10_000));
        assert!(long.len() > 128 << 10);
        for foreign in ["1", "null", "\"}\\\"]\"", "[1,{\"x\":[]}]", long.as_str()] {
            check(&format!("[{{\"v\":{foreign},\"executor\":\"0\",\"data\":[{{"), true);
            check(&format!("[{{\"executor\":\"0\",\"v\": {foreign} , \"data\":[{{\"worker\":"), true);
            check(&format!("{{\"data\":[{{\"v\":{foreign},\"level\":0"), true);
            check(&format!("[{{\"data\":[{{\"v\":{foreign},\"data\":[{{"), true);
            check(&format!("{{\"data\":[],\"v\":{foreign},\"executor\":\"0\"}}"), true);
            check(&format!("{{\"v\":{foreign},\"traceEvents\":[],\"executor\":\"0\",\"data\":[]}}"), false);
            check(&format!("[{{\"v\":{foreign}}},{{\"executor\":\"0\",\"data\":[]}}]"), false);
            check(&format!("[{{\"executor\":\"0\",\"v\":{foreign},\"data\":[1,2]}}]"), false);
            check(&format!("[{{\"executor\":\"0\",\"v\":{foreign}"), false);
        }
    }
}
