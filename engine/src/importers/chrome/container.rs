//! The container around the events: where `traceEvents` begins, and what stands beside it.
//!
//! ```text
//! array form    [ {event}, {event}            the closing ] may be missing: writers that crash leave it so
//! object form   { "schemaVersion": 1, "traceEvents": [ {event}, … ], "traceName": "x" }
//! ```
//! Keys come in any order, `traceEvents` may be last and may come twice. VizTracer writes complete source texts beside the
//! events, Chrome whole ftrace logs: unknown values of any size and depth are stepped over byte by byte through a window
//! of fixed size. Values of moderate size are kept, they describe the run.

use std::io::{self, Read};

/// Bytes that are looked at together.
const WINDOW_BYTES: usize = 64 << 10;
/// The largest value that is kept, and the longest key.
const KEPT_BYTES: usize = 64 << 10;
/// All keys and values that are kept together.
const KEPT_IN_ALL_BYTES: usize = 1 << 20;
/// How many elements of an array are looked at before it is taken for something else than events.
const ELEMENTS_TRIED: usize = 8;
/// Keys that say what the run is. Whatever else stands beside the events, these are kept.
pub(super) const KEYS_WITH_MEANING: [&[u8]; 11] = [
    b"baseTimeNanoseconds",
    b"beginningOfTime",
    b"distributedInfo",
    b"schemaVersion",
    b"deviceProperties",
    b"displayTimeUnit",
    b"traceName",
    b"metadata",
    b"otherData",
    b"viztracer_metadata",
    b"tq",
];
/// The key of the events.
const EVENTS: &[u8] = b"traceEvents";
const QUOTED_EVENTS: &[u8] = b"\"traceEvents\"";

/// What the text is at the top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Events only.
    Array,
    /// Events under a key.
    Object,
}

/// Where the container stops for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Events begin at this byte: behind the opening bracket.
    Events(u64),
    /// The container ends properly.
    End,
    /// The text ends inside of the container.
    Cut,
    /// This byte should not be here.
    Broken(u64),
}

/// What stands behind the end of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Further {
    /// Blanks at most.
    Nothing,
    /// Another one: its opening bracket is behind us, or was never there.
    Container(Form),
    /// Something else.
    Other,
}

/// A value beside the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Beside {
    /// Its key as written.
    pub(super) key: String,
    /// Its JSON; empty when it was longer than what is kept.
    pub(super) json: Vec<u8>,
    /// Its length.
    pub(super) bytes: u64,
}

/// Walks the container of a text.
pub(super) struct Container<R> {
    reader: R,
    window: Vec<u8>,
    at: usize,
    /// Where the window begins in the text.
    offset: u64,
    ended: bool,
    /// What stands beside the events so far.
    pub(super) beside: Vec<Beside>,
    /// Bytes of it, and those of them that say what the run is.
    kept: [usize; 2],
    /// Values beyond what is kept in all.
    pub(super) beyond: u64,
}

impl<R: Read> Container<R> {
    /// A walk that begins at byte `offset` of the text, where `reader` stands.
    pub(super) fn new(reader: R, offset: u64) -> Container<R> {
        Container {
            reader,
            window: Vec::new(),
            at: 0,
            offset,
            ended: false,
            beside: Vec::new(),
            kept: [0; 2],
            beyond: 0,
        }
    }

    /// Reads the opening bracket; `None` when the text begins otherwise.
    pub(super) fn open(&mut self) -> io::Result<Option<Form>> {
        let form = match self.space()? {
            Some(b'[') => Form::Array,
            Some(b'{') => Form::Object,
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(form))
    }

    /// Steps over a colon and an opening bracket, to the members of an object that is a value; `false` when another stands
    /// here.
    pub(super) fn begins_object_value(&mut self) -> io::Result<bool> {
        for expected in [b':', b'{'] {
            if self.space()? != Some(expected) {
                return Ok(false);
            }
            self.at += 1;
        }
        Ok(true)
    }

    /// Whether the object that was walked is an event itself: one of a text with an event on each line.
    pub(super) fn was_event(&self) -> bool {
        self.beside.iter().any(|member| member.key == "ph" && member.json.starts_with(b"\""))
    }

    /// Where the next byte is.
    pub(super) fn place(&self) -> u64 {
        self.offset + self.at as u64
    }

    /// Walks the members of the object up to the next events, or to the end.
    pub(super) fn next_events(&mut self) -> io::Result<Stop> {
        loop {
            match self.space()? {
                None => return Ok(Stop::Cut),
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Stop::End);
                }
                Some(b'"') => {
                    let mut key = Vec::new();
                    if !self.string(&mut Keep::new(&mut key))? {
                        return Ok(Stop::Cut);
                    }
                    if self.space()? != Some(b':') {
                        return self.broken();
                    }
                    self.at += 1;
                    let first = self.space()?;
                    // The quotes are part of what is kept.
                    let name = key.get(1..key.len().saturating_sub(1)).unwrap_or_default();
                    if name == EVENTS && first == Some(b'[') {
                        self.at += 1;
                        return Ok(Stop::Events(self.place()));
                    }
                    let begin = self.place();
                    let mut json = Vec::new();
                    let mut keep = Keep::new(&mut json);
                    match self.value(&mut keep)? {
                        Walk::Done => {}
                        Walk::Cut => return Ok(Stop::Cut),
                        Walk::Broken => return Ok(Stop::Broken(self.place())),
                    }
                    let json = if keep.overflowed { Vec::new() } else { json };
                    let kept = &mut self.kept[usize::from(KEYS_WITH_MEANING.contains(&name))];
                    *kept += name.len() + json.len();
                    if *kept > KEPT_IN_ALL_BYTES {
                        self.beyond += 1;
                        continue;
                    }
                    let key = String::from_utf8_lossy(name).into_owned();
                    self.beside.push(Beside { key, json, bytes: self.place() - begin });
                }
                Some(_) => return self.broken(),
            }
        }
    }

    /// Looks for the next events by their key alone, in a container that is no JSON: `"INFO": "a "quoted" word"`.
    pub(super) fn search_events(&mut self) -> io::Result<Stop> {
        let mut matched = 0;
        while let Some(byte) = self.peek()? {
            self.at += 1;
            // Only the first byte of the pattern is a quote, so a mismatch begins anew at most with this byte.
            matched = match byte {
                byte if byte == QUOTED_EVENTS[matched] => matched + 1,
                b'"' => 1,
                _ => 0,
            };
            if matched < QUOTED_EVENTS.len() - 1 {
                continue;
            }
            if self.peek()? == Some(b'"') {
                self.at += 1;
                if self.space()? == Some(b':') {
                    self.at += 1;
                    if self.space()? == Some(b'[') {
                        self.at += 1;
                        return Ok(Stop::Events(self.place()));
                    }
                }
            }
            matched = 0;
        }
        Ok(Stop::Cut)
    }

    /// What stands behind the end of the container.
    pub(super) fn further(&mut self) -> io::Result<Further> {
        loop {
            match self.space()? {
                None => return Ok(Further::Nothing),
                Some(b',') => self.at += 1,
                Some(b'[') => {
                    self.at += 1;
                    return Ok(Further::Container(Form::Array));
                }
                // The bracket that closed the array was one too many.
                Some(b'{') if self.holds_event() => return Ok(Further::Container(Form::Array)),
                Some(b'{') => {
                    self.at += 1;
                    return Ok(Further::Container(Form::Object));
                }
                Some(_) => return Ok(Further::Other),
            }
        }
    }

    /// Whether what the window shows is an event rather than an object with events.
    fn holds_event(&self) -> bool {
        let rest = &self.window[self.at..];
        memchr::memmem::find(rest, QUOTED_EVENTS).is_none() && super::lex::has_phase(rest)
    }

    /// Whether the elements of the array at hand are events: one of the first few has a phase. `None` when the text ends
    /// or is damaged before that can be told.
    pub(super) fn holds_events(&mut self) -> io::Result<Option<bool>> {
        let mut elements = 0;
        while elements < ELEMENTS_TRIED {
            match self.space()? {
                None => return Ok(None),
                Some(b',') => self.at += 1,
                // `[]` is an empty trace.
                Some(b']') => {
                    self.at += 1;
                    return Ok(Some(elements == 0 && self.space()?.is_none()));
                }
                Some(b'{') => {
                    self.at += 1;
                    self.beside.clear();
                    self.kept = [0; 2];
                    let stop = self.next_events()?;
                    if self.was_event() {
                        return Ok(Some(true));
                    }
                    match stop {
                        // `{}` is padding.
                        Stop::End => elements += usize::from(!self.beside.is_empty() || self.beyond > 0),
                        Stop::Cut | Stop::Broken(_) => return Ok(None),
                        Stop::Events(_) => return Ok(Some(false)),
                    }
                }
                Some(b'n') => match self.value(&mut Keep::new(&mut Vec::new()))? {
                    Walk::Done => {}
                    Walk::Cut => return Ok(None),
                    Walk::Broken => return Ok(Some(false)),
                },
                Some(_) => return Ok(Some(false)),
            }
        }
        Ok(Some(false))
    }

    fn broken(&mut self) -> io::Result<Stop> {
        Ok(if self.peek()?.is_none() { Stop::Cut } else { Stop::Broken(self.place()) })
    }

    /// The next byte, `None` at the end of the text.
    fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.at < self.window.len() || self.fill()? { Ok(Some(self.window[self.at])) } else { Ok(None) }
    }

    /// Reads the next window; `false` at the end of the text.
    fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        self.offset += self.window.len() as u64;
        self.at = 0;
        self.window.clear();
        match self.reader.by_ref().take(WINDOW_BYTES as u64).read_to_end(&mut self.window) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                // A compressed stream broke off: the text ends here.
                self.ended = true;
            }
            Err(error) => return Err(error),
        }
        self.ended |= self.window.is_empty();
        Ok(!self.window.is_empty())
    }

    /// Steps over blanks; the byte behind them.
    fn space(&mut self) -> io::Result<Option<u8>> {
        while let Some(byte) = self.peek()? {
            if byte > b' ' {
                return Ok(Some(byte));
            }
            self.at += 1;
        }
        Ok(None)
    }

    /// Steps over the string that begins here; `false` when the text ends inside of it.
    fn string(&mut self, keep: &mut Keep<'_>) -> io::Result<bool> {
        keep.push(b"\"");
        self.at += 1;
        let mut escaped = false;
        while self.peek()?.is_some() {
            let rest = &self.window[self.at..];
            if escaped {
                keep.push(&rest[..1]);
                self.at += 1;
                escaped = false;
                continue;
            }
            let length = memchr::memchr2(b'"', b'\\', rest);
            let taken = length.map_or(rest.len(), |length| length + 1);
            keep.push(&rest[..taken]);
            self.at += taken;
            match length.map(|length| rest[length]) {
                Some(b'"') => return Ok(true),
                Some(_) => escaped = true,
                None => {}
            }
        }
        Ok(false)
    }

    /// Steps over the value that begins here. Brackets and strings are told apart; what is between them is not checked.
    fn value(&mut self, keep: &mut Keep<'_>) -> io::Result<Walk> {
        // A bit per open bracket would do; brackets that do not match are found a level up or not at all.
        let mut depth = 0u64;
        loop {
            let Some(byte) = self.peek()? else { return Ok(Walk::Cut) };
            match byte {
                b'"' => {
                    if !self.string(keep)? {
                        return Ok(Walk::Cut);
                    }
                }
                b'{' | b'[' => {
                    depth += 1;
                    keep.push(&[byte]);
                    self.at += 1;
                }
                b'}' | b']' => {
                    if depth == 0 {
                        return Ok(Walk::Broken);
                    }
                    depth -= 1;
                    keep.push(&[byte]);
                    self.at += 1;
                }
                b',' | b':' if depth == 0 => return Ok(Walk::Broken),
                _ => {
                    let rest = &self.window[self.at..];
                    let is_other = |byte: &u8| !matches!(byte, b'"' | b'{' | b'[' | b'}' | b']' | b',' | b':');
                    let is_scalar = |byte: &u8| is_other(byte) && *byte > b' ';
                    let length = if depth == 0 {
                        rest.iter().take_while(|byte| is_scalar(byte)).count()
                    } else {
                        // Commas and colons between brackets are stepped over as well.
                        rest.iter().take_while(|byte| is_other(byte) || matches!(byte, b',' | b':')).count()
                    };
                    let taken = length.max(1);
                    keep.push(&rest[..taken]);
                    self.at += taken;
                    if depth == 0 && self.at == self.window.len() && self.peek()?.is_some_and(|byte| is_scalar(&byte)) {
                        continue;
                    }
                }
            }
            if depth == 0 {
                return Ok(Walk::Done);
            }
        }
    }
}

enum Walk {
    Done,
    Cut,
    Broken,
}

/// Keeps what is stepped over, up to a limit.
struct Keep<'k> {
    kept: &'k mut Vec<u8>,
    overflowed: bool,
}

impl Keep<'_> {
    fn new(kept: &mut Vec<u8>) -> Keep<'_> {
        Keep { kept, overflowed: false }
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.kept.len() + bytes.len() > KEPT_BYTES {
            self.overflowed = true;
            self.kept.clear();
        }
        if !self.overflowed {
            self.kept.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(text: &str) -> (Stop, Vec<(String, String)>) {
        let mut container = Container::new(text.as_bytes(), 0);
        assert_eq!(container.open().expect("memory"), Some(Form::Object));
        let stop = container.next_events().expect("memory");
        let beside = container.beside.into_iter();
        (stop, beside.map(|beside| (beside.key, String::from_utf8(beside.json).expect("UTF-8"))).collect())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn events_are_found_behind_anything() {
        let text = " { \"a\" : 12 , \"b\":[{\"x\":\"]}\\\"\"},[]],\"c\":\"d\" ,\"traceEvents\" : [{}";
        let (stop, beside) = walk(text);
        assert_eq!(stop, Stop::Events(text.len() as u64 - 2));
        assert_eq!(beside, pairs(&[("a", "12"), ("b", "[{\"x\":\"]}\\\"\"},[]]"), ("c", "\"d\"")]));
    }

    #[test]
    fn ends_cuts_and_faults_are_told_apart() {
        let text = "{\"a\":-1.5e3,\"b\":null}";
        assert_eq!(walk(text), (Stop::End, pairs(&[("a", "-1.5e3"), ("b", "null")])));
        for length in 1..text.len() {
            assert_eq!(walk(&text[..length]).0, Stop::Cut, "{length}");
        }
        assert_eq!(walk("{\"a\" 1}").0, Stop::Broken(5));
        assert_eq!(walk("{a:1}").0, Stop::Broken(1));
        assert_eq!(walk("{\"a\":}").0, Stop::Broken(5));
        // Not an array: a value like any other.
        assert_eq!(walk("{\"traceEvents\":null}").0, Stop::End);
    }

    #[test]
    fn events_are_found_in_what_is_no_json() {
        let text = r#"{"INFO":"a "quoted" word","traceEvents":3,"traceEvents" : [{"ph""#;
        let mut container = Container::new(text.as_bytes(), 0);
        assert_eq!(container.open().expect("memory"), Some(Form::Object));
        assert!(matches!(container.next_events().expect("memory"), Stop::Broken(_)));
        let events = text.rfind('[').expect("it is there") + 1;
        assert_eq!(container.search_events().expect("memory"), Stop::Events(events as u64));
        assert_eq!(container.search_events().expect("memory"), Stop::Cut);
    }

    #[test]
    fn what_stands_behind_the_end_is_told() {
        let check = |text: &str, expected: Further| {
            let mut container = Container::new(text.as_bytes(), 0);
            assert_eq!(container.further().expect("memory"), expected, "{text}");
        };
        check(" \n\0", Further::Nothing);
        check("\n[{\"ph\":\"X\"}]", Further::Container(Form::Array));
        check(",{\"ph\":\"X\"}]", Further::Container(Form::Array));
        check("{\"traceEvents\":[{\"ph\":\"X\"}]}", Further::Container(Form::Object));
        check("}", Further::Other);
    }

    #[test]
    fn values_of_any_size_and_depth_are_stepped_over() {
        for huge in ["\"".to_owned() + &"x".repeat(300_000) + "\"", "[".repeat(200_000) + &"]".repeat(200_000)] {
            let text = format!("{{\"huge\":{huge},\"after\":1,\"traceEvents\":[");
            let (stop, beside) = walk(&text);
            assert_eq!(stop, Stop::Events(text.len() as u64));
            assert_eq!(beside, pairs(&[("huge", ""), ("after", "1")]));
        }
        // Many small ones: some are kept, all are stepped over.
        let members = "\"a key of some length\":0,".repeat(100_000);
        let (stop, beside) = walk(&format!("{{{members}\"z\":0}}"));
        assert_eq!(stop, Stop::End);
        assert_eq!(beside.len(), KEPT_IN_ALL_BYTES / 21);
        // What says what the run is stays, wherever it stands.
        let (_, beside) = walk(&format!("{{{members}\"baseTimeNanoseconds\":7}}"));
        assert_eq!(beside.last(), Some(&("baseTimeNanoseconds".to_owned(), "7".to_owned())));
        // A number across the edge of a window.
        let text = format!("{{\"a\":{}12345}}", " ".repeat(WINDOW_BYTES - 8));
        assert_eq!(walk(&text), (Stop::End, pairs(&[("a", "12345")])));
    }
}
