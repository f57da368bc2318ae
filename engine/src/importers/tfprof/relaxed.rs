//! JSON that another program has rewritten: pretty-printed, keys in another order, names escaped as JSON requires.
//!
//! Unknown keys are skipped and counted, and so is what a damaged key hides.
//!
//! Life of the data: the whole text is in memory (a strict parser needs it so), the parser drives the visitors below,
//! which push tasks into the same pieces that the rigid scanner makes. Of a truncated text, everything up to the break
//! is kept.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::json::{Assembler, Chunk, Guesses, Part, Surprise};
use super::lanes::{Rows, Stop, Trace, damaged};
use super::types;
use crate::trace::{Source, Stats, findings};

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
    let state = RefCell::new(State { chunk, lane: None, found: Stats::default() });
    let mut parser = serde_json::Deserializer::from_str(&text);
    let parsed = Executors(&state).deserialize(&mut parser).and_then(|()| parser.end());
    let mut state = state.into_inner();
    let broken = match &parsed {
        // A lane whose worker had not been named yet cannot be placed.
        Err(error) if error.is_eof() => {
            state.end_lane(true);
            state.chunk.surprise = Some(Surprise { at: text.len() as u64, expected: String::new(), ended: true });
            None
        }
        Err(error) => Some((format!("line {}, column {}", error.line(), error.column()), reason(error))),
        Ok(()) => None,
    };
    if let Some((place, what)) = broken {
        return Err(damaged(source, place, what).into());
    }
    stats.absorb(state.found);
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
    found: Stats,
}

/// A lane while it is read: its keys may come in any order.
struct OpenLane {
    worker: Option<u32>,
    level: Option<u32>,
    has_data: bool,
    rows: Rows,
    guesses: Guesses,
}

impl State {
    fn begin_lane(&mut self) {
        self.lane = Some(OpenLane {
            worker: None,
            level: None,
            has_data: false,
            rows: Rows::default(),
            guesses: Guesses::open(),
        });
    }

    /// Moves the lane to the parts; `false` when its worker was not named. Where the text breaks off, keys may be missing.
    fn end_lane(&mut self, is_cut: bool) -> bool {
        let Some(lane) = self.lane.take() else { return true };
        let Some(worker) = lane.worker else { return false };
        if !lane.has_data && !is_cut {
            self.found
                .note(findings::WORKER_WITHOUT_DATA, 1, || format!("worker {worker}: its tasks have no key `data`"));
        }
        if lane.level.is_none() && !(is_cut && lane.rows.len() == 0) {
            self.found.note(findings::WORKER_WITHOUT_LEVEL, 1, || format!("worker {worker}; read as level 0"));
        }
        let level = lane.level.unwrap_or(0);
        self.chunk.parts.push(Part::Lane { worker, level });
        self.chunk.parts.push(Part::Tasks(lane.rows, lane.guesses));
        true
    }

    fn push(&mut self, task: &Task<'_>) -> Result<(), &'static str> {
        let Some(lane) = &mut self.lane else { return Err("a task outside of any worker") };
        let nanoseconds = |time: i64| time.checked_mul(1_000).ok_or("a time that does not fit in nanoseconds");
        let (start, finish) = (nanoseconds(task.span.0)?, nanoseconds(task.span.1)?);
        let code = types::code(task.type_word.as_bytes()).unwrap_or_else(|| {
            let example = || format!("type `{}` of task `{}`", task.type_word, task.name);
            super::note_unknown_type(&mut self.found, 1, example);
            types::UNDEFINED_CODE
        });
        let name = match lane.guesses.mark(task.name.as_bytes(), lane.rows.len()) {
            Some(mark) => mark,
            None => self.chunk.names.intern(&task.name),
        };
        lane.rows.push(start, finish, name, code);
        Ok(())
    }

    fn foreign_key(&mut self, key: &str, of: &str) {
        self.found.note(findings::FOREIGN_KEY, 1, || format!("`{key}` of {of} is not Taskflow's; it is stepped over"));
    }
}

struct Task<'t> {
    span: (i64, i64),
    name: Cow<'t, str>,
    type_word: Cow<'t, str>,
}

/// A text that is copied only when it holds escapes.
#[derive(Deserialize)]
struct Text<'t>(#[serde(borrow)] Cow<'t, str>);

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
        let (mut has_id, mut has_data, mut has_others) = (false, false, false);
        while let Some(Text(key)) = keys.next_key::<Text<'de>>()? {
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
                    self.0.borrow_mut().foreign_key(&key, "an executor");
                    has_others = true;
                }
            }
        }
        if has_others && !has_data {
            let example = || "the tasks of an executor have no key `data`".to_owned();
            self.0.borrow_mut().found.note(findings::EXECUTOR_WITHOUT_DATA, 1, example);
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
        while let Some(Text(key)) = keys.next_key::<Text<'de>>()? {
            match &*key {
                "worker" => {
                    let written = keys.next_value::<Worker<'de>>()?;
                    let number = written.number();
                    let number = number.ok_or_else(|| A::Error::custom("a worker is a number or `worker N`"))?;
                    if let Some(lane) = &mut self.0.borrow_mut().lane {
                        lane.worker = Some(number);
                        // 2.5, which writes texts, has no levels.
                        lane.level = lane.level.or(matches!(written, Worker::Text(_)).then_some(0));
                    }
                }
                "level" => {
                    let level = keys.next_value()?;
                    self.0.borrow_mut().lane.iter_mut().for_each(|lane| lane.level = Some(level));
                }
                "data" => {
                    self.0.borrow_mut().lane.iter_mut().for_each(|lane| lane.has_data = true);
                    keys.next_value_seed(Tasks(self.0))?;
                }
                _ => {
                    keys.next_value::<IgnoredAny>()?;
                    self.0.borrow_mut().foreign_key(&key, "a worker");
                }
            }
        }
        if self.0.borrow_mut().end_lane(false) { Ok(()) } else { Err(A::Error::missing_field("worker")) }
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
        while tasks.next_element_seed(TaskSeed(self.0))?.is_some() {}
        Ok(())
    }
}

struct TaskSeed<'s>(&'s RefCell<State>);
seed!(TaskSeed, deserialize_map);

impl<'de> Visitor<'de> for TaskSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a task")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut keys: A) -> Result<(), A::Error> {
        let (mut span, mut name, mut type_word) = (None, None, None);
        while let Some(Text(key)) = keys.next_key::<Text<'de>>()? {
            let is_second = match &*key {
                "span" => span.replace(keys.next_value::<(i64, i64)>()?).is_some(),
                "name" => name.replace(keys.next_value::<Text<'de>>()?.0).is_some(),
                "type" => type_word.replace(keys.next_value::<Text<'de>>()?.0).is_some(),
                _ => {
                    keys.next_value::<IgnoredAny>()?;
                    self.0.borrow_mut().foreign_key(&key, "a task");
                    false
                }
            };
            if is_second {
                return Err(A::Error::custom(format_args!("a second `{key}` of a task")));
            }
        }
        let missing = |key| move || A::Error::missing_field(key);
        let task = Task {
            span: span.ok_or_else(missing("span"))?,
            name: name.ok_or_else(missing("name"))?,
            type_word: type_word.ok_or_else(missing("type"))?,
        };
        self.0.borrow_mut().push(&task).map_err(A::Error::custom)
    }
}
