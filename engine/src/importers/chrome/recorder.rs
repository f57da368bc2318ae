//! What a recorder writes about itself: spans that are not work of the program, and the lanes made for them.
//!
//! ```text
//! {"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler",…}      Kineto's span over the recording
//! {"ph":"i","name":"Iteration Start: PyTorch Profiler","pid":"Traces","tid":"Trace PyTorch Profiler",…}   and where it begins
//! {"ph":"i","name":"Record Window End","pid":"","tid":"",…}                                               and ends
//! {"ph":"X","name":"Total Source","ts":0,"args":{"count":12,"avg ms":3},…}                                clang's sums (kind `summary`)
//! ```
//! Such tasks have the role `profiler`, and so have locations that hold nothing else. Neither the category `Trace` nor a name
//! is sufficient evidence: programs may use both. `libkineto/src/output_json.cpp` (`handleTraceSpan`) writes prefix, title
//! and iteration into the name, and the title again as the tid, on a process `Spans` (before 2023 `Traces`).
//!
//! The overhead of recording counts as the program's: `overhead` (CUPTI's `Activity Buffer Request`, …) took a thread's time.
//! A `ProfilerStep#7` is a step of the program, although only the profiler marks it.

use super::chunk::NO_WORD;
use super::file::{Recording, Shared};
use super::lanes::{Lane, Lanes};
use crate::error::ImportError;

/// The tasks of a file that its recorder wrote of itself, by position.
pub(super) fn own_tasks(recording: &Recording, shared: &Shared) -> Result<Vec<u32>, ImportError> {
    let kinds: Vec<Option<Own>> =
        (0..shared.kinds.len() as i32).map(|kind| Own::of_kind(shared.kinds.word(kind))).collect();
    let mut own = Vec::new();
    if kinds.iter().all(Option::is_none) {
        return Ok(own);
    }
    for piece in &recording.pieces {
        for (row, kind) in piece.kinds.values()?.iter().enumerate() {
            let Some(kind) = kinds[*kind as usize] else { continue };
            let is_own = match kind {
                Own::Span => {
                    let name = shared.names.word(piece.names.get(row)?);
                    is_span(name, piece.lanes.get(row)?, &shared.lanes)
                }
                Own::Sum => piece.args.get(row)?.contains("\"avg ms\""),
            };
            own.extend(is_own.then_some(piece.first + row as u32));
        }
    }
    Ok(own)
}

#[derive(Debug, Clone, Copy)]
enum Own {
    Span,
    Sum,
}

impl Own {
    /// What a task of this kind may be.
    fn of_kind(kind: &str) -> Option<Own> {
        match kind {
            "Trace" => Some(Own::Span),
            "summary" => Some(Own::Sum),
            _ => None,
        }
    }
}

/// `PyTorch Profiler (0)` on `Spans/PyTorch Profiler`; under its usual name also where a tool gave it other ids.
fn is_span(name: &str, lane: i32, lanes: &Lanes) -> bool {
    let Some((title, iteration)) = name.strip_suffix(')').and_then(|name| name.rsplit_once(" (")) else { return false };
    // CUPTI's profiler of ranges has iteration -1.
    let iteration = iteration.strip_prefix('-').unwrap_or(iteration);
    let is_number = !iteration.is_empty() && iteration.bytes().all(|byte| byte.is_ascii_digit());
    let lane = &lanes.all[lane as usize];
    let on_its_lane = || matches!(text(lane, "pid"), Some("Spans" | "Traces")) && ends_with_tid(title, lane);
    is_number && (title == "PyTorch Profiler" || on_its_lane())
}

fn ends_with_tid(title: &str, lane: &Lane) -> bool {
    text(lane, "tid").is_some_and(|tid| !tid.is_empty() && title.ends_with(tid))
}

/// A pid or tid that is a string.
fn text<'l>(lane: &'l Lane, id: &str) -> Option<&'l str> {
    lane.facts.get(id)?.as_str()
}

/// Which lanes hold nothing but what the recorders of these files wrote of themselves, and processes that have no others.
/// `own` are the files' own tasks.
pub(super) fn own_lanes<'r>(
    files: impl Iterator<Item = (&'r Recording, &'r [u32])> + Clone,
    lanes: &Lanes,
) -> Result<Vec<bool>, ImportError> {
    let mut own = vec![false; lanes.all.len()];
    for (recording, tasks) in files.clone() {
        for task in tasks {
            own[recording.lane(*task)? as usize] = true;
        }
        for marks in recording.lists.marks.chunks() {
            for mark in marks?.iter().filter(|mark| mark.lane != NO_WORD) {
                own[mark.lane as usize] |= is_own_mark(recording.text(mark.name), &lanes.all[mark.lane as usize]);
            }
        }
    }
    if !own.contains(&true) {
        return Ok(own);
    }
    let mut others = vec![false; lanes.all.len()];
    for (recording, tasks) in files {
        let mut tasks = tasks.iter().copied().peekable();
        for piece in &recording.pieces {
            for (position, lane) in (piece.first..).zip(piece.lanes.values()?.iter()) {
                others[*lane as usize] |= tasks.next_if_eq(&position).is_none();
            }
        }
        for marks in recording.lists.marks.chunks() {
            for mark in marks?.iter().filter(|mark| mark.lane != NO_WORD) {
                others[mark.lane as usize] |= !is_own_mark(recording.text(mark.name), &lanes.all[mark.lane as usize]);
            }
        }
        for samples in recording.lists.samples.chunks() {
            for sample in samples?.iter().filter(|sample| sample.lane != NO_WORD) {
                others[sample.lane as usize] = true;
            }
        }
    }
    // What is above a lane comes before it.
    for lane in (0..own.len()).rev() {
        own[lane] &= !others[lane];
        let Some(above) = lanes.all[lane].parent else { continue };
        match own[lane] {
            true => own[above as usize] = true,
            false => others[above as usize] = true,
        }
    }
    Ok(own)
}

fn is_own_mark(name: &str, lane: &Lane) -> bool {
    match name.strip_prefix("Iteration Start: ") {
        Some(title) => text(lane, "tid").and_then(|tid| tid.strip_prefix("Trace ")) == Some(title),
        None => name == "Record Window End",
    }
}
