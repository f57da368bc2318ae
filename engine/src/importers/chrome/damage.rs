//! Damage: where reading resumes after text that is not an event.
//!
//! ```text
//! {"ph":"X","name":"x = L("a", "b")","args":{"k":[1]}},  {"ph":"X","name":"next",…}],"traceName":"t"}
//! begin          from      fault            nested: no   the next event             the end of the array
//! ```
//! An unescaped or missing quote swaps strings and the text between them, so the last string before the fault may contain
//! anything: the search begins there. It tries each `{` that can be an element of the array of events; one that is the
//! value of a key, or the first element of a list, is inside another event. Reading may also resume at an event that is
//! itself damaged: each is counted on its own, and only once.
//!
//! Cost: linear. A trial reads one object; all failed trials together may read as much as the length of the block, and
//! beyond that limit only the beginnings of objects are looked at.

use super::container::KEYS_WITH_MEANING;
use super::event::{self, Event};
use super::lex::{self, Flaw};
use super::place::Next;

/// Where reading goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Resumption {
    /// At an event, whole or not.
    Event(usize),
    /// At the bracket that closes the array.
    End(usize),
    /// Not in this text.
    Nowhere,
}

/// What a closing bracket behind damage closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closes {
    /// The array of events.
    Events,
    /// Most likely the array of events: an unknown key follows.
    EventsPerhaps,
    /// That cannot be told before more of the text is known.
    Unknown,
    /// A list of arguments.
    Other,
}

/// Keys of events, without those of few letters that arguments have as well.
const EVENT_KEYS: [&str; 14] =
    ["ph", "name", "cat", "ts", "dur", "pid", "tid", "args", "id", "tts", "tdur", "bp", "id2", "bind_id"];

/// Keys that writers put beside the events, besides those with a meaning for us.
const KEYS_BESIDE: [&[u8]; 14] = [
    b"traceEvents",
    b"stackFrames",
    b"samples",
    b"systemTraceEvents",
    b"controllerTraceDataKey",
    b"powerTraceAsString",
    b"file_info",
    b"trace_id",
    b"host_name",
    b"username",
    b"record_shapes",
    b"with_stack",
    b"cuda_runtime_version",
    b"cuda_driver_version",
];

/// Looks for the place to go on at, behind the element that begins at `begin` and is unreadable at `fault`. `trial_bytes`
/// is what failed trials may still read.
pub(super) fn resume(text: &str, begin: usize, fault: usize, next: Next, trial_bytes: &mut usize) -> Resumption {
    let bytes = text.as_bytes();
    let from = doubtful_from(bytes, begin, fault);
    let mut end = None;
    for at in memchr::memchr2_iter(b'{', b']', &bytes[from..]).map(|at| from + at) {
        if bytes[at] == b'{' {
            if begins_element(bytes, at) && is_event(text, at, next, trial_bytes) {
                return Resumption::Event(at);
            }
            continue;
        }
        match closes(bytes, at, next) {
            Closes::Events => return Resumption::End(at),
            Closes::EventsPerhaps => end = end.or(Some(at)),
            Closes::Unknown | Closes::Other => {}
        }
    }
    // More text may show that the list was another's.
    end.filter(|_| next == Next::Nothing).map_or(Resumption::Nowhere, Resumption::End)
}

/// What the closing bracket at `at` closes, as far as what follows says so.
pub(super) fn closes(bytes: &[u8], at: usize, next: Next) -> Closes {
    let at_end = match next {
        Next::Nothing => Closes::Events,
        Next::Unknown => Closes::Unknown,
        Next::Event => Closes::Other,
    };
    let behind = lex::space(bytes, at + 1);
    match bytes.get(behind) {
        None => at_end,
        Some(b'}') if lex::space(bytes, behind + 1) == bytes.len() => at_end,
        Some(b',') => match key(bytes, lex::space(bytes, behind + 1)) {
            Some(key) if KEYS_BESIDE.contains(&key) || KEYS_WITH_MEANING.contains(&key) => Closes::Events,
            Some(key) if !is_event_key(key) && follows_object(bytes, at) => Closes::EventsPerhaps,
            None if next == Next::Unknown && may_be_cut_key(bytes, lex::space(bytes, behind + 1)) => Closes::Unknown,
            _ => Closes::Other,
        },
        // Another array of events behind this one.
        Some(b'[') if follows_object(bytes, at) => Closes::EventsPerhaps,
        Some(_) => Closes::Other,
    }
}

fn follows_object(bytes: &[u8], at: usize) -> bool {
    bytes[..at].trim_ascii_end().ends_with(b"}")
}

/// Where the last string before the fault begins.
fn doubtful_from(bytes: &[u8], begin: usize, fault: usize) -> usize {
    let first = (begin + 1).min(bytes.len());
    let quote_before = |end: usize| {
        let stretch = &bytes[first..end.clamp(first, bytes.len())];
        memchr::memrchr_iter(b'"', stretch).map(|at| first + at).find(|&at| !is_escaped(bytes, at))
    };
    quote_before(fault).and_then(quote_before).unwrap_or(first)
}

fn is_escaped(bytes: &[u8], at: usize) -> bool {
    bytes[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Whether the bracket at `at` opens an object with members that may be an element of the array of events: neither the
/// value of a key nor the first of a list that is one.
fn begins_element(bytes: &[u8], at: usize) -> bool {
    if bytes.get(lex::space(bytes, at + 1)) != Some(&b'"') {
        return false;
    }
    let is_value = |before: &[u8]| before.strip_suffix(b":").is_some_and(|key| key.trim_ascii_end().ends_with(b"\""));
    let before = bytes[..at].trim_ascii_end();
    let list = before.strip_suffix(b"[").map(<[u8]>::trim_ascii_end);
    !is_value(before) && !list.is_some_and(is_value)
}

/// Whether an event begins here, which may be damaged itself.
fn is_event(text: &str, at: usize, next: Next, trial_bytes: &mut usize) -> bool {
    let bytes = text.as_bytes();
    if *trial_bytes == 0 {
        return looks_like_event(bytes, at);
    }
    let mut event = Event::default();
    let (length, is_event) = match event::read(text, at, &mut Vec::new(), &mut event) {
        Ok(end) => (end - at, event.phase != 0),
        Err(Flaw::At(fault)) => (fault.saturating_sub(at), looks_like_event(bytes, at)),
        // The text ends inside of it, as texts do: it is what the next block begins with, or what is cut off.
        Err(Flaw::Ended) if next != Next::Event => (bytes.len() - at, begins_like_event(bytes, at) != Some(false)),
        Err(Flaw::Ended) => (bytes.len() - at, looks_like_event(bytes, at)),
    };
    if !is_event {
        *trial_bytes = trial_bytes.saturating_sub(length);
    }
    is_event
}

/// Whether the object begins like an event, and has a phase before the next one does.
fn looks_like_event(bytes: &[u8], at: usize) -> bool {
    if begins_like_event(bytes, at) != Some(true) {
        return false;
    }
    let follows = |next: &usize| begins_element(bytes, *next) && begins_like_event(bytes, *next) == Some(true);
    let next = memchr::memchr_iter(b'{', &bytes[at + 1..]).map(|next| at + 1 + next).find(follows);
    lex::has_phase(&bytes[at..next.unwrap_or(bytes.len())])
}

/// Whether the first key of an object is one of an event; `None` when the text ends before that can be told.
fn begins_like_event(bytes: &[u8], at: usize) -> Option<bool> {
    let key_at = lex::space(bytes, at + 1);
    match key(bytes, key_at) {
        Some(key) => Some(is_event_key(key)),
        None if bytes.len() - key_at.min(bytes.len()) < KEY_BYTES => None,
        None => Some(false),
    }
}

fn is_event_key(key: &[u8]) -> bool {
    EVENT_KEYS.iter().any(|known| known.as_bytes() == key)
}

/// The longest key that is looked at, with quotes and colon.
const KEY_BYTES: usize = 64;

/// Whether the text ends within what may be a key, or before it.
fn may_be_cut_key(bytes: &[u8], at: usize) -> bool {
    bytes.len() - at.min(bytes.len()) < KEY_BYTES && matches!(bytes.get(at), None | Some(b'"'))
}

/// The key that stands here, if a colon follows it.
fn key(bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?.strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', &rest[..rest.len().min(KEY_BYTES)])?;
    let behind = lex::space(rest, end + 1);
    (rest.get(behind) == Some(&b':')).then_some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where reading goes on in a text with the fault at `^`, the element at hand being the first.
    fn resumed(text: &str, next: Next) -> (Resumption, String) {
        let fault = text.find('^').expect("a fault");
        let text = text.replacen('^', "", 1);
        let resumption = resume(&text, 0, fault, next, &mut 1_000);
        let at = match resumption {
            Resumption::Event(at) | Resumption::End(at) => at,
            Resumption::Nowhere => text.len(),
        };
        (resumption, text[at..].chars().take(12).collect())
    }

    #[test]
    fn reading_goes_on_at_the_next_event() {
        let check = |text: &str, expected: &str| {
            let (resumption, found) = resumed(text, Next::Nothing);
            assert!(matches!(resumption, Resumption::Event(_)), "{text}");
            assert!(found.starts_with(expected), "{text}: {found}");
        };
        check(r#"{"ph":"X" ^, {"ph":"i","ts":1}]"#, r#"{"ph":"i""#);
        // Neither values nor lists of them; a key that is none of an event's will do in a whole one.
        check(r#"{"ph":"X" ^,"args":{"ph":"1","k":[{"ph":"2"}]}},{"cname":1,"ph":"i"}]"#, r#"{"cname""#);
        check(r#"{"ph":"X" ^,"args":{"k":[{"b":1},{"b":2}]}},{"ph":"i"}]"#, r#"{"ph":"i""#);
        // A string that should have ended holds the bracket.
        check(r#"{"ph":"X","dur:1},{"^ph":"i","ts":2}]"#, r#"{"ph":"i"#);
        // Damaged as well, or cut off.
        check(r#"{"ph":"X" ^},{"name":"a"b","ph":"i"}]"#, r#"{"name":"a"b"#);
        check(r#"{"ph":"X" ^},{"na"#, r#"{"na"#);
    }

    #[test]
    fn the_end_of_the_array_is_told_from_that_of_a_list() {
        let check = |text: &str, next: Next, expected: Option<&str>| {
            let (resumption, found) = resumed(text, next);
            assert_eq!(matches!(resumption, Resumption::End(_)), expected.is_some(), "{text}: {found}");
            assert!(found.starts_with(expected.unwrap_or_default()), "{text}: {found}");
        };
        check(r#"{"ph" ^,"a":[{"b":1}]}}],"traceName":1}"#, Next::Nothing, Some(r#"],"traceN"#));
        check(r#"{"ph" ^,"a":[{"b":1}],"ts":1}]}"#, Next::Nothing, Some("]}"));
        check(r#"{"ph" ^}],"mine":[1],"x":2}"#, Next::Nothing, Some(r#"],"mine"#));
        check(r#"{"ph" ^}],"traceEvents":[{"ph":"X"},{"ph":"X"}]}"#, Next::Nothing, Some(r#"],"traceE"#));
        check(r#"{"ph" ^,"a":[{"b":1}]"#, Next::Unknown, None);
        check(r#"{"ph" ^,"a":[{"b":1}]"#, Next::Event, None);
        check(r#"{"ph" ^}]"#, Next::Nothing, Some("]"));
    }
}
