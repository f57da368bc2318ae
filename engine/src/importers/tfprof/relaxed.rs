//! JSON that something else has written anew: pretty-printed, keys in another order, names escaped as JSON wants it.
//!
//! Life of the data: the whole text is in memory (a strict parser needs it so), the parser drives the visitors below,
//! which push tasks into the same parts that the rigid scanner makes. A text that breaks off keeps what was pushed.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::json::{Assembler, Chunk, Guesses, Part, Surprise};
use super::lanes::{Rows, Stop, Trace, damaged};
use super::types;
use crate::trace::{Source, Stats};

/// Memory that the text and what the parser keeps of it may need, in lengths of the text.
const MEMORY_FACTOR: usize = 2;

/// Reads everything into `trace`.
pub(super) fn read(source: &Source, trace: &mut Trace, stats: &mut Stats) -> Result<(), Stop> {
    let bytes = source.read_all()?;
    let text_memory = bytes.len() * MEMORY_FACTOR;
    trace.charge(text_memory)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut chunk = Chunk::empty();
    if matches!(text, Cow::Owned(_)) {
        let mut at = 0;
        for stretch in bytes.utf8_chunks() {
            at += stretch.valid().len();
            if !stretch.invalid().is_empty() {
                chunk.not_utf8 += 1;
                chunk.not_utf8_example.get_or_insert_with(|| (at as u64, stretch.invalid().escape_ascii().to_string()));
            }
            at += stretch.invalid().len();
        }
    }
    let state = RefCell::new(State { chunk, lane: None, unknown_types: 0, unknown_type: None });
    let mut parser = serde_json::Deserializer::from_str(&text);
    let parsed = Executors(&state).deserialize(&mut parser).and_then(|()| parser.end());
    let mut state = state.into_inner();
    let broken = match &parsed {
        // A lane whose worker had not been named yet cannot be placed.
        Err(error) if error.is_eof() => {
            state.end_lane();
            state.chunk.surprise = Some(Surprise { at: text.len() as u64, expected: String::new(), ended: true });
            None
        }
        Err(error) => Some((format!("line {}, column {}", error.line(), error.column()), reason(error))),
        Ok(()) => None,
    };
    if let Some((place, what)) = broken {
        return Err(damaged(source, place, what).into());
    }
    super::note_unknown_type(stats, state.unknown_types, || state.unknown_type.clone().unwrap_or_default());
    let mut assembler = Assembler::new(trace, stats);
    assembler.take(state.chunk)?;
    let stop = assembler.into_stop();
    trace.release(text_memory);
    stop.map_or(Ok(()), Err)
}

/// What the parser says, without the place, which is told apart.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

struct State {
    chunk: Chunk,
    lane: Option<OpenLane>,
    unknown_types: u64,
    unknown_type: Option<String>,
}

/// A lane while it is read: its keys may come in any order.
struct OpenLane {
    worker: Option<u32>,
    level: u32,
    rows: Rows,
    guesses: Guesses,
}

impl State {
    fn begin_lane(&mut self) {
        self.lane = Some(OpenLane { worker: None, level: 0, rows: Rows::default(), guesses: Guesses::open() });
    }

    /// Moves the lane to the parts; `false` when its worker was not named.
    fn end_lane(&mut self) -> bool {
        let Some(lane) = self.lane.take() else { return true };
        let Some(worker) = lane.worker else { return false };
        self.chunk.parts.push(Part::Lane { worker, level: lane.level });
        self.chunk.parts.push(Part::Tasks(lane.rows, lane.guesses));
        true
    }

    fn push(&mut self, task: &Task<'_>) -> Result<(), &'static str> {
        let Some(lane) = &mut self.lane else { return Err("a task outside of any worker") };
        let nanoseconds = |time: i64| time.checked_mul(1_000).ok_or("a time that does not fit in nanoseconds");
        let (start, finish) = (nanoseconds(task.span.0)?, nanoseconds(task.span.1)?);
        let code = types::code(task.type_word.as_bytes()).unwrap_or_else(|| {
            self.unknown_types += 1;
            self.unknown_type.get_or_insert_with(|| format!("type `{}` of task `{}`", task.type_word, task.name));
            types::UNDEFINED_CODE
        });
        let name = match lane.guesses.mark(task.name.as_bytes(), lane.rows.len()) {
            Some(mark) => mark,
            None => self.chunk.names.intern(&task.name),
        };
        lane.rows.push(start, finish, name, code);
        Ok(())
    }
}

#[derive(Deserialize)]
struct Task<'t> {
    span: (i64, i64),
    #[serde(borrow)]
    name: Cow<'t, str>,
    #[serde(borrow, rename = "type")]
    type_word: Cow<'t, str>,
}

/// `3`, or 2.5's `"worker 3"`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Worker<'t> {
    Number(u32),
    Text(#[serde(borrow)] Cow<'t, str>),
}

impl Worker<'_> {
    fn number(&self) -> Option<u32> {
        match self {
            Worker::Number(number) => Some(*number),
            Worker::Text(text) => text.strip_prefix("worker ")?.parse().ok(),
        }
    }
}

/// A visitor that is its own seed.
macro_rules! seed {
    ($name:ident, $ask:ident) => {
        impl<'de> DeserializeSeed<'de> for $name<'_> {
            type Value = ();

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.$ask(self)
            }
        }
    };
}

/// An array of executors, or a lone one.
struct Executors<'s>(&'s RefCell<State>);
seed!(Executors, deserialize_any);

impl<'de> Visitor<'de> for Executors<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an executor or an array of executors")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(ExecutorSeed(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, keys: A) -> Result<(), A::Error> {
        ExecutorSeed(self.0).visit_map(keys)
    }
}

struct ExecutorSeed<'s>(&'s RefCell<State>);
seed!(ExecutorSeed, deserialize_map);

impl<'de> Visitor<'de> for ExecutorSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an executor")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut keys: A) -> Result<(), A::Error> {
        let part = {
            let parts = &mut self.0.borrow_mut().chunk.parts;
            parts.push(Part::Executor(None));
            parts.len() - 1
        };
        let (mut has_id, mut has_data) = (false, false);
        while let Some(key) = keys.next_key::<Cow<'de, str>>()? {
            match &*key {
                "executor" => {
                    let id: String = keys.next_value()?;
                    self.0.borrow_mut().chunk.parts[part] = Part::Executor(Some(id));
                    has_id = true;
                }
                "data" => {
                    keys.next_value_seed(Lanes(self.0))?;
                    has_data = true;
                }
                _ => {
                    keys.next_value::<IgnoredAny>()?;
                }
            }
        }
        // `{}` is an executor without tasks; one that has a name has its tasks, too.
        if has_id && !has_data { Err(A::Error::missing_field("data")) } else { Ok(()) }
    }
}

struct Lanes<'s>(&'s RefCell<State>);
seed!(Lanes, deserialize_seq);

impl<'de> Visitor<'de> for Lanes<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the array of an executor's workers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut lanes: A) -> Result<(), A::Error> {
        while lanes.next_element_seed(LaneSeed(self.0))?.is_some() {}
        Ok(())
    }
}

struct LaneSeed<'s>(&'s RefCell<State>);
seed!(LaneSeed, deserialize_map);

impl<'de> Visitor<'de> for LaneSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the tasks of a worker")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut keys: A) -> Result<(), A::Error> {
        self.0.borrow_mut().begin_lane();
        while let Some(key) = keys.next_key::<Cow<'de, str>>()? {
            match &*key {
                "worker" => {
                    let worker = keys.next_value::<Worker<'de>>()?.number();
                    let worker = worker.ok_or_else(|| A::Error::custom("a worker is a number or `worker N`"))?;
                    self.0.borrow_mut().lane.iter_mut().for_each(|lane| lane.worker = Some(worker));
                }
                "level" => {
                    let level = keys.next_value()?;
                    self.0.borrow_mut().lane.iter_mut().for_each(|lane| lane.level = level);
                }
                "data" => keys.next_value_seed(Tasks(self.0))?,
                _ => {
                    keys.next_value::<IgnoredAny>()?;
                }
            }
        }
        if self.0.borrow_mut().end_lane() { Ok(()) } else { Err(A::Error::missing_field("worker")) }
    }
}

struct Tasks<'s>(&'s RefCell<State>);
seed!(Tasks, deserialize_seq);

impl<'de> Visitor<'de> for Tasks<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of tasks")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut tasks: A) -> Result<(), A::Error> {
        while let Some(task) = tasks.next_element::<Task<'de>>()? {
            self.0.borrow_mut().push(&task).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// Whether `head` looks like executors that something else has written: an array of objects, or an object, whose first
/// filled object holds `executor` and `data`; or nothing but `{}`.
pub(super) fn recognise(head: &[u8], is_whole: bool) -> bool {
    let text = head.trim_ascii();
    let is_array = text.first() == Some(&b'[');
    let mut rest = if is_array { &text[1..] } else { text };
    loop {
        rest = rest.trim_ascii_start();
        let Some(object) = rest.strip_prefix(b"{") else { return false };
        let Some(end) = object.trim_ascii_start().strip_prefix(b"}") else { return first_object(object) };
        // `{}`: an executor without tasks.
        let after = end.trim_ascii_start();
        match (is_array, after) {
            (false, []) => return is_whole,
            (true, [b']', after @ ..]) => return is_whole && after.trim_ascii().is_empty(),
            (true, [b',', after @ ..]) => rest = after,
            _ => return false,
        }
    }
}

/// Whether the object that `text` is inside of begins like an executor.
fn first_object(text: &[u8]) -> bool {
    let token = |text: &'_ [u8], token: &[u8]| -> Option<usize> {
        let trimmed = text.trim_ascii_start();
        trimmed.starts_with(token).then(|| text.len() - trimmed.len() + token.len())
    };
    let after = |tokens: &[&[u8]]| tokens.iter().try_fold(0, |at, next| Some(at + token(&text[at..], next)?));
    let looks_like_lanes = |at: usize| {
        let lanes = &text[at..];
        [&b"\"worker\""[..], b"\"level\"", b"\"data\""]
            .iter()
            .any(|key| token(lanes, b"{").is_some_and(|inside| token(&lanes[inside..], key).is_some()))
    };
    match after(&[b"\"executor\"", b":", b"\""]) {
        Some(id) => memchr::memchr(b'"', &text[id..]).is_none_or(|end| {
            let rest = &text[id + end + 1..];
            let data = [&b","[..], b"\"data\"", b":", b"["]
                .iter()
                .try_fold(0, |at, next| Some(at + token(&rest[at..], next)?));
            data.is_some()
        }),
        None => after(&[b"\"data\"", b":", b"["]).is_some_and(looks_like_lanes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executors_are_recognised_in_any_spacing() {
        let check = |text: &str, expected| assert_eq!(recognise(text.as_bytes(), true), expected, "{text}");
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
        check("", false);
        assert!(!recognise(b"{}", false));
    }
}
