//! Begin and end on a thread: `B` opens a task, `E` closes the innermost one that is open.
//!
//! ```text
//! {"ph":"B","ts":100,"name":"f","tts":90}  {"ph":"B","ts":110,"name":"g"}  {"ph":"E","ts":120}  {"ph":"E","ts":130,"name":"f","tts":99}
//! f [-----------------------)    g   [------)
//! ```
//! Events are taken in the order of time, and of the file where times are equal. An `E` that names something closes the
//! innermost task only if that has the name (and the category, if it gives one), as Perfetto does; other viewers close it
//! anyhow. Its arguments are laid over those of `B`; thread times of both make `tdur`.

use std::collections::HashMap;

use super::chunk::{End, NO_WORD};
use super::event;
use super::file::{Recording, Shared};
use super::{UNFINISHED_TASK, UNMATCHED_END};

/// New arguments of tasks, by row.
pub(super) type Patches = HashMap<u32, String>;

/// Closes the tasks that `B` began.
pub(super) fn close(recording: &mut Recording, shared: &Shared, patches: &mut Patches) {
    if recording.lists.begins.is_empty() && recording.lists.ends.is_empty() {
        return;
    }
    let ends = std::mem::take(&mut recording.lists.ends);
    let begins = &recording.lists.begins;
    // (lane, time, sequence) of each, and its index: begins first, ends behind them.
    let of_begin = |(index, begin): (usize, &super::chunk::Begin)| {
        (recording.lane(begin.row), recording.start(begin.row), begin.sequence, index)
    };
    let of_end = |(index, end): (usize, &End)| (end.lane, end.time, end.sequence, begins.len() + index);
    let mut marks: Vec<(i32, i64, u64, usize)> =
        begins.iter().enumerate().map(of_begin).chain(ends.iter().enumerate().map(of_end)).collect();
    marks.sort_unstable();
    let mut open: Vec<usize> = Vec::new();
    let mut open_lane = NO_WORD;
    let mut closed: Vec<(usize, usize)> = Vec::new();
    let mut unmatched: Vec<usize> = Vec::new();
    let mut unfinished = 0;
    let mut first_unfinished = None;
    for (lane, _, _, index) in marks {
        if lane != open_lane {
            unfinished += open.len() as u64;
            first_unfinished = first_unfinished.or(open.first().copied());
            open.clear();
            open_lane = lane;
        }
        if index < begins.len() {
            open.push(index);
            continue;
        }
        let end = index - begins.len();
        match open.last() {
            Some(&begin) if closes(&ends[end], begins[begin].row, recording, shared) => {
                open.pop();
                closed.push((begin, end));
            }
            _ => unmatched.push(end),
        }
    }
    unfinished += open.len() as u64;
    first_unfinished = first_unfinished.or(open.first().copied());
    let name_of = |begin: usize| shared.names.word(recording.name(begins[begin].row)).to_owned();
    let unfinished_example = first_unfinished.map(|begin| format!("`{}` has no `E`", name_of(begin)));
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
            let own = recording.get(begin.row, |tasks, row| tasks.args.get(row).to_owned());
            let own = Some(own).filter(|own| !own.is_empty());
            if let Some(args) = merged(own.as_deref(), end.args.as_deref(), duration.as_deref()) {
                patches.insert(begin.row, args);
            }
        }
    }
    for (row, finish) in finishes {
        recording.set_finish(row, finish);
    }
    recording.closed_at_once = closed_at_once;
    let stats = &mut recording.stats;
    stats.note(UNFINISHED_TASK, unfinished, || unfinished_example.unwrap_or_default());
    stats.note(UNMATCHED_END, unmatched.len() as u64, || unmatched_example.unwrap_or_default());
}

fn closes(end: &End, row: u32, recording: &Recording, shared: &Shared) -> bool {
    let name = recording.text(end.name);
    let category = recording.text(end.category);
    (name.is_empty() || name == shared.names.word(recording.name(row)))
        && (category.is_empty() || category == shared.kinds.word(recording.kind(row)))
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
