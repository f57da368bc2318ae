//! A block of events: parsed from text to records on any thread, independently of other blocks.
//!
//! ```text
//! …,"dur":3},{"ph":"X",…},{"ph":"M",…},…,{"ph":"X",…},| {"ph":"s",…
//!            ^ a block begins before an event             ^ and ends before one
//! ```
//! Where blocks are cut is a guess ([`border`]): after the last complete event of the text at hand. Parsing a block
//! checks the cut at its end: it must end between two events; where it does not, [`super::region`] reads on with care.
//!
//! Damage stays inside of one event: an unescaped quote makes the rest of it unreadable, so the reader counts one
//! `bad_event` and goes on where [`damage`] finds the next event or the end of the array.

use super::chunk::{Ending, Records};
use super::damage::{self, Closes, Resumption};
use super::event::{self, Event};
use super::lex::{self, Flaw};
use super::phases::Phases;
use super::place::{Next, Place, place_in};
use super::round_trip::{TQ, Written};
use crate::trace::{Block, findings};

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
pub(super) fn parse(block: Block<'_>, next: Next, written: &Written) -> Parsed {
    let text = Utf8::of(block);
    let mut parser = Parser {
        text: text.text(),
        at: 0,
        stack: Vec::new(),
        phases: Phases::new(block.bytes.len(), text.places(block), written),
        written,
        commas: Commas { seen: true, missing: 0, extra: 0 },
        next,
        resumed: false,
        trial_bytes: 4 * block.bytes.len(),
    };
    let ending = parser.run();
    let Commas { missing, extra, seen } = parser.commas;
    let mut records = parser.phases.into_records();
    let place = || format!("in the events from byte {} on", block.offset);
    records.stats.note(findings::COMMA_MISSING, missing, place);
    records.stats.note(findings::COMMA_TOO_MANY, extra, place);
    if let (Ending::Closed(at), true) = (ending, seen && parser_saw_events(&records)) {
        records.stats.note(findings::TRAILING_COMMA, 1, || format!("byte {}", text.places(block).of(at)));
    }
    records.stats.note(findings::NOT_UTF8, text.invalid, || format!("byte {}", block.offset + text.first as u64));
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
    let follows_event = |at: &usize| {
        let before = text[..*at].trim_ascii_end();
        before.strip_suffix(b",").is_some_and(|before| before.trim_ascii_end().ends_with(b"}"))
    };
    memchr::memrchr_iter(b'{', text).filter(follows_event).take(BORDER_TRIALS).find(|&at| reads_as_event(&text[at..]))
}

/// How many places are tried for a border: where so many events are damaged, cutting with care is as fast.
const BORDER_TRIALS: usize = 256;

/// Whether a whole object with a phase begins here.
fn reads_as_event(text: &[u8]) -> bool {
    // Most objects are valid, and many that are no events are short: only what must be looked at is.
    match lex::value(text, 0, &mut Vec::new()) {
        Ok(end) => reads_in(&text[..end]) == Some(true),
        Err(Flaw::Ended) => false,
        Err(Flaw::At(_)) => {
            let trial = |limit: usize| reads_in(&text[..text.len().min(limit)]);
            trial(SHORT_EVENT_BYTES).or_else(|| trial(EVENT_BYTES)) == Some(true)
        }
    }
}

/// `None` when the text ends inside of the object.
fn reads_in(text: &[u8]) -> Option<bool> {
    let mut event = Event::default();
    match event::read(&String::from_utf8_lossy(text), 0, &mut Vec::new(), &mut event) {
        Ok(_) => Some(event.phase != 0),
        Err(Flaw::Ended) => None,
        Err(Flaw::At(_)) => Some(false),
    }
}

/// How far a trial of what is no valid JSON reads at first: nearly all events are shorter.
const SHORT_EVENT_BYTES: usize = 2 << 10;

/// How far it reads at most. Longer events exist, and are only less likely to be the one that a cut finds.
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
    written: &'t Written,
    commas: Commas,
    /// What follows the text.
    next: Next,
    /// Whether damage was stepped over: what is read now is in the array of events for all that is known.
    resumed: bool,
    /// What may still be read in vain behind damage.
    trial_bytes: usize,
}

impl<'t> Parser<'t> {
    fn run(&mut self) -> Ending {
        let bytes = self.text.as_bytes();
        let mut event = Event::default();
        loop {
            self.at = lex::space(bytes, self.at);
            match bytes.get(self.at) {
                Some(b'{') => match event::read(self.text, self.at, &mut self.stack, &mut event) {
                    Ok(end) => {
                        self.take(&mut event);
                        self.at = end;
                    }
                    Err(flaw) => {
                        if let Some(ending) = self.skip_damage(flaw) {
                            return ending;
                        }
                    }
                },
                Some(b',') => {
                    self.commas.extra += u64::from(self.commas.seen && self.phases.has_events());
                    self.commas.seen = true;
                    self.at += 1;
                }
                // Behind damage, brackets may belong to what was damaged.
                Some(b']') if self.resumed && self.closes_other() => self.at += 1,
                Some(b'}') if self.resumed => self.at += 1,
                Some(b']') => return Ending::Closed(self.at),
                None => return Ending::Border,
                // Raw control characters between events do no harm.
                Some(..=b' ') => self.at += 1,
                Some(_) => match self.stray() {
                    Ok(end) => {
                        // `null` is padding, as `{}` is.
                        if &self.text[self.at..end] != "null" {
                            self.bad(self.at);
                        }
                        self.commas.seen = false;
                        self.at = end;
                    }
                    Err(flaw) => {
                        if let Some(ending) = self.skip_damage(flaw) {
                            return ending;
                        }
                    }
                },
            }
        }
    }

    /// Whether the bracket that stands behind damage closes a list of arguments, as far as can be told: where it may be the
    /// end of the array, an event behind it says that it is not.
    fn closes_other(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        match damage::closes(bytes, self.at, self.next) {
            Closes::Other => true,
            Closes::EventsPerhaps => matches!(
                damage::resume(self.text, self.at, self.at, self.next, &mut self.trial_bytes),
                Resumption::Event(_)
            ),
            Closes::Events | Closes::Unknown => false,
        }
    }

    /// The end of a value that is not an object. A key is not such a value: there the bracket before it is missing.
    fn stray(&mut self) -> Result<usize, Flaw> {
        let bytes = self.text.as_bytes();
        let end = lex::value(bytes, self.at, &mut self.stack)?;
        let behind = lex::space(bytes, end);
        if bytes.get(behind) == Some(&b':') { Err(Flaw::At(behind)) } else { Ok(end) }
    }

    #[inline]
    fn take(&mut self, event: &mut Event<'t>) {
        self.commas.missing += u64::from(!self.commas.seen);
        self.commas.seen = false;
        if self.written.is_ours() {
            if self.written.leaves_out(event.pid) {
                return;
            }
            let told = event.others.iter().position(|(key, _)| key == TQ);
            event.told = told.map(|at| event.others.remove(at).1);
        }
        if event.duplicate {
            let at = self.at;
            self.phases.note(findings::DUPLICATE_KEY, at, || "a key stands twice; the last value counts".to_owned());
        }
        if event.phase == 0 {
            // JAX ends every file with `{}`.
            let is_padding = event.name.is_none() && event.ts.is_empty() && event.others.is_empty();
            if !is_padding || event.args.text().is_some() {
                self.phases.left_out(findings::NO_PHASE, self.at, || "an object without `ph`".to_owned());
            }
            return;
        }
        self.phases.take(event, self.at);
    }

    fn bad(&mut self, at: usize) {
        let bytes = self.text.as_bytes();
        self.phases.left_out(findings::BAD_EVENT, at, || {
            let head = String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 60)]);
            format!("`{}…`", head.escape_debug())
        });
    }

    /// Steps over the element that begins at `self.at` and is unreadable: to the next event, or to the end of the array, or
    /// as far as the block goes.
    #[cold]
    fn skip_damage(&mut self, flaw: Flaw) -> Option<Ending> {
        let begin = self.at;
        let fault = match flaw {
            Flaw::At(fault) => fault,
            // An event follows, so this one should have ended; any of it may be what is wrong.
            Flaw::Ended if self.next == Next::Event => begin,
            Flaw::Ended => return Some(Ending::Inside(begin)),
        };
        self.at = match damage::resume(self.text, begin, fault, self.next, &mut self.trial_bytes) {
            Resumption::Event(at) | Resumption::End(at) => at,
            Resumption::Nowhere if self.next == Next::Event => self.text.len(),
            // More text may hold the next event. Where there is none, this event is the one that is missing.
            Resumption::Nowhere => return Some(Ending::Inside(begin)),
        };
        self.resumed = true;
        if self.is_character(begin, self.at) {
            // No event is missing: something else stands where a comma should.
            self.commas.missing += 1;
        } else {
            self.bad(begin);
        }
        self.commas.seen = self.text.as_bytes().get(self.at) != Some(&b']');
        None
    }

    /// Whether nothing but one character stands here, and that begins no event.
    fn is_character(&self, begin: usize, end: usize) -> bool {
        let stretch = self.text.get(begin..end).unwrap_or_default().trim_end();
        let mut characters = stretch.chars();
        characters.next().is_some_and(|first| first != '{') && characters.next().is_none()
    }
}
