//! A block of events: from text to records, on any thread, knowing nothing of other blocks.
//!
//! ```text
//! …,"dur":3},{"ph":"X",…},{"ph":"M",…},…,{"ph":"X",…},| {"ph":"s",…
//!            ^ a block begins before an event             ^ and ends before one
//! ```
//! Where blocks are cut is a guess ([`border`]): the last complete event of the text at hand. The guess is proven by the
//! block before it, which must end between two events; [`super::region`] reads on with care where it does not.
//!
//! Damage stays inside of one event: an unescaped quote makes the rest of it unreadable, so the reader goes on at the next
//! place that reads as a whole event, and counts one [`BAD_EVENT`].

use super::chunk::{Ending, NO_WORD, Records};
use super::event::{self, Event};
use super::lex::{self, Flaw};
use super::{
    BAD_EVENT, COMMA_MISSING, COMMA_TOO_MANY, DUPLICATE_KEY, NO_PHASE, NOT_UTF8, TRAILING_COMMA, phases::Phases,
};
use crate::trace::Block;

/// A parsed block.
pub(super) struct Parsed {
    pub(super) records: Records,
    pub(super) ending: Ending,
    /// Where it begins in the text.
    pub(super) offset: u64,
    /// Whether the text ends with it.
    pub(super) last: bool,
    /// The bytes behind the array, where the text ends in this block.
    pub(super) tail: Option<Vec<u8>>,
}

/// Parses a block.
pub(super) fn parse(block: Block<'_>) -> Parsed {
    let text = Utf8::of(block);
    let mut parser = Parser {
        text: text.text(),
        at: 0,
        stack: Vec::new(),
        phases: Phases::new(block.bytes.len(), text.places(block)),
        commas: Commas { seen: true, missing: 0, extra: 0 },
    };
    let ending = parser.run(block.last);
    let Commas { missing, extra, seen } = parser.commas;
    let mut records = parser.phases.into_records();
    let place = || format!("in the events from byte {} on", block.offset);
    records.stats.note(COMMA_MISSING, missing, place);
    records.stats.note(COMMA_TOO_MANY, extra, place);
    if let (Ending::Closed(at), true) = (ending, seen && parser_saw_events(&records)) {
        records.stats.note(TRAILING_COMMA, 1, || format!("byte {}", text.places(block).of(at)));
    }
    records.stats.note(NOT_UTF8, text.invalid, || format!("byte {}", block.offset + text.first as u64));
    let tail = match ending {
        Ending::Closed(at) if block.last => Some(text.text().as_bytes()[at + 1..].to_vec()),
        _ => None,
    };
    let ending = match ending {
        Ending::Border => ending,
        Ending::Closed(at) => Ending::Closed(text.place(at, block)),
        Ending::Inside(at) => Ending::Inside(text.place(at, block)),
    };
    Parsed { records, ending, offset: block.offset, last: block.last, tail }
}

fn parser_saw_events(records: &Records) -> bool {
    records.lists.events > 0
}

/// The length of the text up to a place before which the last complete event ends, as far as can be told without knowing
/// what stands before the text.
pub(super) fn border(text: &[u8]) -> Option<usize> {
    memchr::memrchr_iter(b'{', text).find(|&at| {
        let before = text[..at].trim_ascii_end();
        let follows = before.strip_suffix(b",").is_some_and(|before| before.trim_ascii_end().ends_with(b"}"));
        follows && reads_as_event(&text[at..]) == Some(true)
    })
}

/// Whether an object with a phase begins here; `None` when the text ends inside of it.
fn reads_as_event(text: &[u8]) -> Option<bool> {
    let text = &text[..text.len().min(EVENT_BYTES)];
    // Most objects are valid, and many that are no events are short: only what must be looked at is.
    let text = match lex::value(text, 0, &mut Vec::new()) {
        Ok(end) => &text[..end],
        Err(Flaw::Ended) => return None,
        Err(Flaw::At(_)) => text,
    };
    let mut event = Event::default();
    match event::read(&String::from_utf8_lossy(text), 0, &mut Vec::new(), &mut event) {
        Ok(_) => Some(event.phase != 0),
        Err(Flaw::Ended) => None,
        Err(Flaw::At(_)) => Some(false),
    }
}

/// How far a trial reads. Longer events exist, and are only less likely to be the one that a cut or a fresh start finds.
const EVENT_BYTES: usize = 64 << 10;

/// The text of a block as UTF-8.
struct Utf8<'b> {
    bytes: std::borrow::Cow<'b, str>,
    /// Invalid sequences, each of which became U+FFFD, and the first one's place.
    invalid: u64,
    first: usize,
}

impl<'b> Utf8<'b> {
    fn of(block: Block<'b>) -> Utf8<'b> {
        let error = match std::str::from_utf8(block.bytes) {
            Ok(text) => return Utf8 { bytes: text.into(), invalid: 0, first: 0 },
            Err(error) => error,
        };
        let first = error.valid_up_to();
        // A text that breaks off may do so inside of a character.
        if let (None, Ok(text)) = (error.error_len(), std::str::from_utf8(&block.bytes[..first])) {
            return Utf8 { bytes: text.into(), invalid: 0, first: 0 };
        }
        let invalid = block.bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count() as u64;
        Utf8 { bytes: String::from_utf8_lossy(block.bytes), invalid, first }
    }

    fn text(&self) -> &str {
        &self.bytes
    }

    /// Where in the block the byte `at` of the text stands.
    fn place(&self, at: usize, block: Block<'_>) -> usize {
        if self.invalid == 0 { at } else { place_in(block.bytes, at) }
    }

    fn places<'p>(&self, block: Block<'p>) -> Place<'p> {
        Place { offset: block.offset, damaged: (self.invalid > 0).then_some(block.bytes) }
    }
}

/// Where a place of a block's text stands in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'b> {
    offset: u64,
    /// The bytes of the block, where its text differs from them.
    damaged: Option<&'b [u8]>,
}

impl Place<'_> {
    pub(super) fn of(&self, at: usize) -> u64 {
        self.offset + self.damaged.map_or(at, |bytes| place_in(bytes, at)) as u64
    }
}

/// Where in `bytes` the byte `at` of their text stands: U+FFFD is three bytes, what it replaced may be one.
fn place_in(bytes: &[u8], at: usize) -> usize {
    let (mut in_text, mut in_bytes) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        if at <= in_text + chunk.valid().len() {
            return in_bytes + (at - in_text);
        }
        in_text += chunk.valid().len() + char::REPLACEMENT_CHARACTER.len_utf8();
        in_bytes += chunk.valid().len() + chunk.invalid().len();
    }
    bytes.len()
}

struct Commas {
    /// Whether one stands before the next event.
    seen: bool,
    missing: u64,
    extra: u64,
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    stack: Vec<u8>,
    phases: Phases<'t>,
    commas: Commas,
}

impl<'t> Parser<'t> {
    fn run(&mut self, last: bool) -> Ending {
        let bytes = self.text.as_bytes();
        let mut event = Event::default();
        loop {
            self.at = lex::space(bytes, self.at);
            match bytes.get(self.at) {
                Some(b'{') => match event::read(self.text, self.at, &mut self.stack, &mut event) {
                    Ok(end) => {
                        self.take(&event);
                        self.at = end;
                    }
                    Err(Flaw::Ended) => return Ending::Inside(self.at),
                    Err(Flaw::At(fault)) => {
                        if let Some(ending) = self.skip_damage(fault, last) {
                            return ending;
                        }
                    }
                },
                Some(b',') => {
                    self.commas.extra += u64::from(self.commas.seen && self.phases.has_events());
                    self.commas.seen = true;
                    self.at += 1;
                }
                Some(b']') => return Ending::Closed(self.at),
                None => return Ending::Border,
                // Raw control characters between events do no harm.
                Some(..=b' ') => self.at += 1,
                Some(_) => match lex::value(bytes, self.at, &mut self.stack) {
                    Ok(end) => {
                        // `null` is padding, as `{}` is.
                        if &self.text[self.at..end] != "null" {
                            self.bad(self.at);
                        }
                        self.commas.seen = false;
                        self.at = end;
                    }
                    Err(Flaw::Ended) => return Ending::Inside(self.at),
                    Err(Flaw::At(fault)) => {
                        if let Some(ending) = self.skip_damage(fault, last) {
                            return ending;
                        }
                    }
                },
            }
        }
    }

    #[inline]
    fn take(&mut self, event: &Event<'t>) {
        self.commas.missing += u64::from(!self.commas.seen);
        self.commas.seen = false;
        if event.duplicate {
            let at = self.at;
            self.phases.note(DUPLICATE_KEY, at, || "a key stands twice; the last value counts".to_owned());
        }
        if event.phase == 0 {
            // JAX ends every file with `{}`.
            let is_padding = event.name.is_none() && event.ts.is_empty() && event.others.is_empty();
            if !is_padding || event.args.text().is_some() {
                self.phases.left_out(NO_PHASE, self.at, || "an object without `ph`".to_owned());
            }
            return;
        }
        self.phases.take(event, self.at);
    }

    fn bad(&mut self, at: usize) {
        let until = self.text.len().min(at + 60);
        let head = String::from_utf8_lossy(&self.text.as_bytes()[at..until]).into_owned();
        self.phases.left_out(BAD_EVENT, at, || format!("`{}…`", head.escape_debug()));
    }

    /// Steps over the event that begins at `self.at` and is unreadable from `fault` on: to the next event, or to the end
    /// of the array, or as far as the block goes.
    fn skip_damage(&mut self, fault: usize, last: bool) -> Option<Ending> {
        let begin = self.at;
        let bytes = self.text.as_bytes();
        let mut closed = None;
        for brace in memchr::memchr_iter(b'}', &bytes[fault.max(begin + 1)..]) {
            let mut next = lex::space(bytes, fault.max(begin + 1) + brace + 1);
            match bytes.get(next) {
                Some(b',') => next = lex::space(bytes, next + 1),
                // Where no event follows, this was the last one: the array ends, and the text or its next key follow.
                Some(b']') if closed.is_none() => {
                    let after = lex::space(bytes, next + 1);
                    let comma = bytes.get(after) == Some(&b',');
                    let key = comma && bytes.get(lex::space(bytes, after + 1)) == Some(&b'"');
                    if key || matches!(bytes.get(after), None | Some(b'}')) {
                        closed = Some(next);
                    }
                    continue;
                }
                _ => {}
            }
            if bytes.get(next) == Some(&b'{') && reads_as_event(&bytes[next..]) != Some(false) {
                self.bad(begin);
                self.commas.seen = true;
                self.at = next;
                return None;
            }
        }
        if let Some(at) = closed {
            self.bad(begin);
            self.commas.seen = false;
            self.at = at;
            return None;
        }
        if last {
            // The text goes no further: this event is the one that is missing.
            self.commas.seen = false;
        }
        Some(Ending::Inside(begin))
    }
}

/// A key that was looked up for a slice of the text, kept for the next event: neighbours have much in common.
pub(super) struct Recent<'t> {
    slice: &'t str,
    key: i32,
}

impl<'t> Recent<'t> {
    pub(super) fn new() -> Recent<'t> {
        Recent { slice: "", key: NO_WORD }
    }

    #[inline]
    pub(super) fn get(&mut self, slice: &'t str, look_up: impl FnOnce() -> i32) -> i32 {
        if self.key == NO_WORD || self.slice != slice {
            self.key = look_up();
            self.slice = slice;
        }
        self.key
    }
}
