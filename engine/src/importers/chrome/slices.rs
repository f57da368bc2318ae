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

use std::collections::HashMap;

use super::chunk::{End, NO_WORD};
use super::event;
use super::file::{Recording, Shared};
use super::opened::{ANY, Opened};
use crate::error::ImportError;
use crate::trace::{Words, findings};

/// New arguments of tasks, by row.
pub(super) type Patches = HashMap<u32, String>;

/// What the marks of a thread were found to be; begins and ends by their index.
#[derive(Default)]
struct Outcome {
    closed: Vec<(usize, usize)>,
    /// Begins without an end, each with the time at which a task around it ends, and that task.
    cut: Vec<(usize, i64)>,
    /// The same, where the thread has no later `B` or `E`.
    doubtful: Vec<(usize, i64)>,
    unfinished: Vec<usize>,
    unmatched: Vec<usize>,
}

/// A thread with its open tasks.
#[derive(Default)]
struct Thread {
    open: Opened,
    /// The outermost place at which a task below others was closed, and when. There is one time at most: whatever comes later
    /// takes it all off the stack.
    closed: Option<(usize, i64)>,
}

impl Thread {
    fn begin(&mut self, begin: usize, name: i32, category: i32, time: i64, outcome: &mut Outcome) {
        self.pass(|closed| time >= closed, outcome);
        self.open.push(begin, name, category);
    }

    /// Closes the innermost task that fits; `false` without one.
    fn end(&mut self, end: usize, (name, category): (i32, i32), time: i64, outcome: &mut Outcome) -> bool {
        self.pass(|closed| time > closed, outcome);
        let Some(place) = self.open.innermost(name, category) else { return false };
        outcome.closed.push((self.open.close(place), end));
        if place < self.open.len() {
            let outermost = self.closed.map_or(place, |(outermost, _)| outermost.min(place));
            self.closed = Some((outermost, time));
        }
        self.closed = self.closed.filter(|(outermost, _)| *outermost < self.open.len());
        true
    }

    /// What is open inside of a task that ended before ended with it.
    fn pass(&mut self, is_before: impl Fn(i64) -> bool, outcome: &mut Outcome) {
        if let Some((outermost, time)) = self.closed.take_if(|(_, time)| is_before(*time)) {
            outcome.cut.extend(self.open.take_from(outermost).into_iter().map(|begin| (begin, time)));
        }
    }

    fn finish(&mut self, outcome: &mut Outcome) {
        if let Some((outermost, time)) = self.closed.take() {
            outcome.doubtful.extend(self.open.take_from(outermost).into_iter().map(|begin| (begin, time)));
        }
        outcome.unfinished.extend(self.open.take_from(0));
        self.open.clear();
    }
}

/// Closes the tasks that `B` began; the answer is those that stay open, by row.
pub(super) fn close(
    recording: &mut Recording,
    shared: &Shared,
    patches: &mut Patches,
) -> Result<Vec<u32>, ImportError> {
    if recording.lists.begins.is_empty() && recording.lists.ends.is_empty() {
        return Ok(Vec::new());
    }
    let ends = std::mem::take(&mut recording.lists.ends);
    let mut outcome = pair(&ends, recording, shared);
    let begins = &recording.lists.begins;
    if !(outcome.doubtful.is_empty() && outcome.unfinished.is_empty()) {
        let last = last_times(recording, &ends, shared.lanes.all.len());
        let goes_on = |begin: usize, time: i64| last[recording.lane(begins[begin].row) as usize] > time;
        let (cut, unfinished): (Vec<_>, Vec<_>) =
            outcome.doubtful.drain(..).partition(|&(begin, time)| goes_on(begin, time));
        outcome.cut.extend(cut);
        outcome.unfinished.extend(unfinished.into_iter().map(|(begin, _)| begin));
        recording.last_times = last;
    }
    let begins = &recording.lists.begins;
    let Outcome { closed, cut, unfinished, unmatched, .. } = outcome;
    let name_of = |begin: usize| shared.names.word(recording.name(begins[begin].row)).to_owned();
    let cut_example = cut
        .iter()
        .min()
        .map(|&(begin, time)| format!("`{}` has no `E`; it ends at {time} ns with a task around it", name_of(begin)));
    let unmatched_example = unmatched.first().map(|&end| {
        let end = &ends[end];
        format!("`E` {} at {} ns", quoted(recording.text(end.name)), end.time)
    });
    let mut finishes = Vec::with_capacity(closed.len());
    let mut closed_at_once = HashMap::new();
    for (begin, end) in closed {
        let (begin, end) = (&begins[begin], &ends[end]);
        finishes.push((begin.row, end.time));
        if recording.start(begin.row) == end.time {
            closed_at_once.insert(begin.row, end.next_row);
        }
        let duration =
            begin.thread_time.zip(end.thread_time).map(|(begin, end)| microseconds(end.saturating_sub(begin)));
        if end.args.is_some() || duration.is_some() {
            let own = Some(recording.args(begin.row)?).filter(|own| !own.is_empty());
            if let Some(args) = merged(own.as_deref(), end.args.as_deref(), duration.as_deref()) {
                patches.insert(begin.row, args);
            }
        }
    }
    finishes.extend(cut.iter().map(|&(begin, time)| (begins[begin].row, time)));
    let unfinished = unfinished.into_iter().map(|begin| begins[begin].row).collect();
    for (row, finish) in finishes {
        recording.set_finish(row, finish);
    }
    recording.closed_at_once = closed_at_once;
    let stats = &mut recording.stats;
    stats.note(findings::END_MISSING, cut.len() as u64, || cut_example.unwrap_or_default());
    stats.note(findings::UNMATCHED_END, unmatched.len() as u64, || unmatched_example.unwrap_or_default());
    Ok(unfinished)
}

/// Pairs begins and ends, thread by thread.
fn pair(ends: &[End], recording: &Recording, shared: &Shared) -> Outcome {
    let begins = &recording.lists.begins;
    // (lane, time, sequence) of each, and its index: begins first, ends behind them.
    let of_begin = |(index, begin): (usize, &super::chunk::Begin)| {
        (recording.lane(begin.row), recording.start(begin.row), begin.sequence, index)
    };
    let of_end = |(index, end): (usize, &End)| (end.lane, end.time, end.sequence, begins.len() + index);
    let mut marks: Vec<(i32, i64, u64, usize)> =
        begins.iter().enumerate().map(of_begin).chain(ends.iter().enumerate().map(of_end)).collect();
    marks.sort_unstable();
    let mut outcome = Outcome::default();
    let mut thread = Thread::default();
    let mut open_lane = NO_WORD;
    for (lane, time, _, index) in marks {
        if lane != open_lane {
            thread.finish(&mut outcome);
            open_lane = lane;
        }
        if let Some(begin) = begins.get(index) {
            thread.begin(index, recording.name(begin.row), recording.kind(begin.row), time, &mut outcome);
            continue;
        }
        let index = index - begins.len();
        let wanted = wanted(&ends[index], recording, shared);
        if !wanted.is_some_and(|wanted| thread.end(index, wanted, time, &mut outcome)) {
            outcome.unmatched.push(index);
        }
    }
    thread.finish(&mut outcome);
    outcome
}

/// The words of tasks that an end names; `None` where no task has them.
fn wanted(end: &End, recording: &Recording, shared: &Shared) -> Option<(i32, i32)> {
    let find = |text: &str, words: &Words| if text.is_empty() { Some(ANY) } else { words.find(text) };
    Some((find(recording.text(end.name), &shared.names)?, find(recording.text(end.category), &shared.kinds)?))
}

/// The last time at which anything happens on each thread.
fn last_times(recording: &Recording, ends: &[End], lanes: usize) -> Vec<i64> {
    let mut last = vec![i64::MIN; lanes];
    let mut see = |lane: i32, time: i64| {
        if let Some(last) = usize::try_from(lane).ok().and_then(|lane| last.get_mut(lane)) {
            *last = time.max(*last);
        }
    };
    for piece in &recording.pieces {
        piece.tasks.lanes.iter().zip(&piece.tasks.starts).for_each(|(lane, start)| see(*lane, *start));
    }
    ends.iter().for_each(|end| see(end.lane, end.time));
    recording.lists.marks.iter().for_each(|mark| see(mark.lane, mark.time));
    last
}

fn quoted(name: &str) -> String {
    if name.is_empty() { "without a name".to_owned() } else { format!("of `{name}`") }
}

/// The arguments of a begin with those of its end laid over them; `None` when nothing changes.
fn merged(begin: Option<&str>, end: Option<&str>, thread_duration: Option<&str>) -> Option<String> {
    let later = end.map(event::members).unwrap_or_default();
    // The end's own thread time says nothing beside the duration.
    let later: Vec<(&str, &str)> = later.into_iter().filter(|(key, _)| *key != "tts").collect();
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
            assert_eq!(merged(begin, end, duration).as_deref(), expected);
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
