//! Begin and end on a thread: `B` opens a task, `E` closes the innermost open one that it names.
//!
//! ```text
//! {"ph":"B","ts":100,"name":"f","tts":90}  {"ph":"B","ts":110,"name":"g"}  {"ph":"E","ts":120}  {"ph":"E","ts":130,"name":"f","tts":99}
//! f [-----------------------)    g   [------)
//! ```
//! Events are taken in the order of time, and in file order where times are equal. The rule is that of Perfetto's
//! `slice_tracker`: an `E` closes the innermost open task of its name and category (a missing name or category matches any),
//! however many others are open inside. Those others lost their `E`: as soon as the thread has events after the end of the
//! closed one, they end with it, so that they do not take the ends of later tasks; where the thread ends there, they stay
//! unfinished. Arguments of `E` override those of `B`; the thread times of both give `tdur`.
//!
//! Where a task begins at the very tick at which the enclosing one ends, Perfetto treats it as open inside that one and loses its
//! end; here it begins after it. `X` events play no part: a task whose `E` comes after the end of the `X` around it keeps its own
//! end.

use super::chunk::{Begin, Edge, End, NO_WORD, Step};
use super::event;
use super::file::{Recording, Shared};
use super::opened::{ANY, Opened};
use crate::error::ImportError;
use crate::trace::{Sorter, Words, findings, record};

/// What an end adds to the arguments of a task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Patch {
    pub(super) row: u32,
    /// Of asynchronous spans ([`super::asyncs`]), which have no thread times.
    pub(super) is_async: bool,
    pub(super) end: Option<Box<str>>,
    pub(super) thread_duration: Option<i64>,
}

record!(Patch { row, is_async, end, thread_duration });

impl Patch {
    /// The arguments of the task with what the end says; `None` when nothing changes.
    pub(super) fn over(&self, own: &str) -> Option<String> {
        let duration = self.thread_duration.map(microseconds);
        merged(Some(own).filter(|own| !own.is_empty()), self.end.as_deref(), duration.as_deref(), self.is_async)
    }
}

/// What closing tasks says of them.
#[derive(Debug)]
pub(super) struct Closed {
    /// (row, finish)
    pub(super) finishes: Sorter<(u32, i64)>,
    pub(super) patches: Sorter<Patch>,
    /// Tasks that took no time and were closed by an `E`, with the row of the task that comes next in the file.
    pub(super) at_once: Sorter<(u32, u32)>,
}

impl Closed {
    pub(super) fn nothing(recording: &Recording) -> Closed {
        let room = &recording.room;
        Closed { finishes: Sorter::new(room), patches: Sorter::new(room), at_once: Sorter::new(room) }
    }

    fn close(&mut self, begin: Begun, end: End, time: i64) -> Result<(), ImportError> {
        self.finishes.push((begin.row, time))?;
        if begin.start == time {
            self.at_once.push((begin.row, end.next_row))?;
        }
        let thread_duration = begin.thread_time.zip(end.thread_time).map(|(begin, end)| end.saturating_sub(begin));
        if end.args.is_some() || thread_duration.is_some() {
            self.patches.push(Patch { row: begin.row, is_async: false, end: end.args, thread_duration })?;
        }
        Ok(())
    }
}

/// A task that a `B` began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begun {
    row: u32,
    start: i64,
    thread_time: Option<i64>,
}

/// What the marks of a thread were found to be, beside those that were closed.
#[derive(Default)]
struct Outcome {
    /// Begins without an end, each with the time at which a task around it ends, and that task.
    cut: Vec<(u32, i64)>,
    /// The same, where the thread has no later `B` or `E`.
    doubtful: Vec<(u32, i64)>,
    unfinished: Vec<u32>,
    /// How many ends close nothing, and what is said of the first.
    unmatched: u64,
    unmatched_example: Option<String>,
}

/// A thread with its open tasks.
#[derive(Default)]
struct Thread {
    open: Opened<Begun>,
    /// The outermost place at which a task below others was closed, and when. There is one time at most: whatever comes later
    /// takes it all off the stack.
    closed: Option<(usize, i64)>,
}

impl Thread {
    fn begin(&mut self, begin: &Begin, time: i64, outcome: &mut Outcome) {
        self.pass(|closed| time >= closed, outcome);
        let begun = Begun { row: begin.row, start: time, thread_time: begin.thread_time };
        self.open.push(begun, begin.name, begin.kind);
    }

    /// Closes the innermost task that fits; `None` without one.
    fn end(&mut self, (name, category): (i32, i32), time: i64, outcome: &mut Outcome) -> Option<Begun> {
        self.pass(|closed| time > closed, outcome);
        let place = self.open.innermost(name, category)?;
        let closed = self.open.close(place);
        if place < self.open.len() {
            let outermost = self.closed.map_or(place, |(outermost, _)| outermost.min(place));
            self.closed = Some((outermost, time));
        }
        self.closed = self.closed.filter(|(outermost, _)| *outermost < self.open.len());
        Some(closed)
    }

    /// What is open inside of a task that ended before ended with it.
    fn pass(&mut self, is_before: impl Fn(i64) -> bool, outcome: &mut Outcome) {
        if let Some((outermost, time)) = self.closed.take_if(|(_, time)| is_before(*time)) {
            outcome.cut.extend(self.open.take_from(outermost).into_iter().map(|begin| (begin.row, time)));
        }
    }

    fn finish(&mut self, outcome: &mut Outcome) {
        if let Some((outermost, time)) = self.closed.take() {
            outcome.doubtful.extend(self.open.take_from(outermost).into_iter().map(|begin| (begin.row, time)));
        }
        outcome.unfinished.extend(self.open.take_from(0).into_iter().map(|begin| begin.row));
        self.open.clear();
    }
}

/// Closes the tasks that `B` began; the answer is what is known of those, and the rows of those that stay open.
pub(super) fn close(recording: &mut Recording, shared: &Shared) -> Result<(Closed, Vec<u32>), ImportError> {
    let mut closed = Closed::nothing(recording);
    if recording.lists.steps.is_empty() {
        return Ok((closed, Vec::new()));
    }
    let mut outcome = pair(recording, shared, &mut closed)?;
    if !(outcome.doubtful.is_empty() && outcome.unfinished.is_empty()) {
        let last = last_times(recording, shared.lanes.all.len())?;
        for (row, time) in std::mem::take(&mut outcome.doubtful) {
            match last[recording.lane(row)? as usize] > time {
                true => outcome.cut.push((row, time)),
                false => outcome.unfinished.push(row),
            }
        }
        recording.last_times = last;
    }
    let Outcome { cut, unfinished, unmatched, unmatched_example, .. } = outcome;
    let cut_example = match cut.iter().min() {
        None => String::new(),
        Some(&(row, time)) => {
            let name = shared.names.word(recording.name(row)?);
            format!("`{name}` has no `E`; it ends at {time} ns with a task around it")
        }
    };
    let count = cut.len() as u64;
    cut.into_iter().try_for_each(|ends| closed.finishes.push(ends))?;
    let stats = &mut recording.stats;
    stats.note(findings::END_MISSING, count, || cut_example);
    stats.note(findings::UNMATCHED_END, unmatched, || unmatched_example.unwrap_or_default());
    Ok((closed, unfinished))
}

/// Pairs begins and ends, thread by thread.
fn pair(recording: &mut Recording, shared: &Shared, closed: &mut Closed) -> Result<Outcome, ImportError> {
    let none = Sorter::new(&recording.room);
    let steps = std::mem::replace(&mut recording.lists.steps, none);
    let mut outcome = Outcome::default();
    let mut thread = Thread::default();
    let mut open_lane = NO_WORD;
    for step in steps.sorted()? {
        let Step { lane, time, edge, .. } = step?;
        let time = time.saturating_add(recording.base);
        if lane != open_lane {
            thread.finish(&mut outcome);
            open_lane = lane;
        }
        let end = match edge {
            Edge::Begin(begin) => {
                thread.begin(&begin, time, &mut outcome);
                continue;
            }
            Edge::End(end) => end,
        };
        match wanted(&end, recording, shared).and_then(|wanted| thread.end(wanted, time, &mut outcome)) {
            Some(begin) => closed.close(begin, end, time)?,
            None => {
                outcome.unmatched += 1;
                let example = || format!("`E` {} at {time} ns", quoted(recording.text(end.name)));
                outcome.unmatched_example.get_or_insert_with(example);
            }
        }
    }
    thread.finish(&mut outcome);
    Ok(outcome)
}

/// The words of tasks that an end names; `None` where no task has them.
fn wanted(end: &End, recording: &Recording, shared: &Shared) -> Option<(i32, i32)> {
    let find = |text: &str, words: &Words| if text.is_empty() { Some(ANY) } else { words.find(text) };
    Some((find(recording.text(end.name), &shared.names)?, find(recording.text(end.category), &shared.kinds)?))
}

/// The last time at which anything happens on each thread.
fn last_times(recording: &Recording, lanes: usize) -> Result<Vec<i64>, ImportError> {
    let mut last = vec![i64::MIN; lanes];
    let mut see = |lane: i32, time: i64| {
        if let Some(last) = usize::try_from(lane).ok().and_then(|lane| last.get_mut(lane)) {
            *last = time.max(*last);
        }
    };
    for piece in &recording.pieces {
        piece.lanes.values()?.iter().zip(piece.starts.values()?.iter()).for_each(|(lane, start)| see(*lane, *start));
    }
    let base = recording.base;
    (0..).zip(&recording.lists.last_ends).for_each(|(lane, time)| see(lane, time.saturating_add(base)));
    for marks in recording.lists.marks.chunks() {
        marks?.iter().for_each(|mark| see(mark.lane, mark.time.saturating_add(base)));
    }
    Ok(last)
}

fn quoted(name: &str) -> String {
    if name.is_empty() { "without a name".to_owned() } else { format!("of `{name}`") }
}

/// The arguments of a begin with those of its end laid over them; `None` when nothing changes.
fn merged(begin: Option<&str>, end: Option<&str>, thread_duration: Option<&str>, keeps_tts: bool) -> Option<String> {
    let later = end.map(event::members).unwrap_or_default();
    // The thread time of an `E` says nothing beside the duration.
    let later: Vec<(&str, &str)> = later.into_iter().filter(|(key, _)| keeps_tts || *key != "tts").collect();
    if later.is_empty() && thread_duration.is_none() {
        return None;
    }
    let earlier = begin.map(event::members).unwrap_or_default();
    let is_replaced = |key: &str| later.iter().any(|(later, _)| *later == key);
    let is_measured = |key: &str| key == "tdur" && thread_duration.is_some();
    let kept = earlier.into_iter().filter(|(key, _)| !is_replaced(key) && !is_measured(key));
    let duration = thread_duration.map(|duration| ("tdur", duration));
    Some(event::with_members(None, kept.chain(later.iter().copied()).chain(duration)))
}

/// ns as decimal µs.
fn microseconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let text = format!("{sign}{}.{:03}", ns.unsigned_abs() / 1_000, ns.unsigned_abs() % 1_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_the_end_lie_over_those_of_the_begin() {
        let check = |begin: Option<&str>, end: Option<&str>, duration: Option<&str>, expected: Option<&str>| {
            assert_eq!(merged(begin, end, duration, false).as_deref(), expected);
        };
        check(None, None, None, None);
        check(Some(r#"{"a":1}"#), Some("{}"), None, None);
        check(Some(r#"{"a":1,"b":2}"#), Some(r#"{"b":3,"c":4}"#), None, Some(r#"{"a":1,"b":3,"c":4}"#));
        check(Some(r#"{"a":1,"tts":5}"#), None, Some("2.5"), Some(r#"{"a":1,"tts":5,"tdur":2.5}"#));
        assert_eq!(microseconds(996_000), "996");
        assert_eq!(microseconds(-1_500), "-1.5");
        assert_eq!(microseconds(0), "0");
    }
}
