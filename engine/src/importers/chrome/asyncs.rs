//! Asynchronous spans: bound to an id instead of a thread.
//!
//! ```text
//! {"ph":"b","cat":"io","id":"0x7","name":"read","ts":10}  {"ph":"n",…"ts":12}  {"ph":"e",…,"name":"read","ts":20}
//! {"ph":"S","cat":"io","id":7,"name":"read","ts":10}      {"ph":"T",…"ts":12}  {"ph":"F",…,"ts":20}     the old spelling
//! ```
//! Events that belong together share category, scope and id (`id2.local` is scoped to its process), in the old spelling
//! also the name. Spans of one id nest: an end closes the innermost open one of its name, and a span inside another has it
//! as its parent. Spans of different ids overlap freely, so each category and name has a location of its own beside the
//! threads, and no depth. Instants and steps become events that refer to their task.

use super::chunk::{Mark, MarkKind, NO_WORD};
use super::file::{Recording, Shared};
use super::opened::{ANY, Opened};
use super::slices::{Closed, Patch};
use crate::error::ImportError;
use crate::trace::{Sorter, findings};

/// Closes asynchronous spans; the answer is (child, parent) of those that nest.
pub(super) fn close(
    recording: &mut Recording,
    shared: &Shared,
    closed: &mut Closed,
) -> Result<Sorter<(u32, u32)>, ImportError> {
    let none = Sorter::new(&recording.room);
    let parts = std::mem::replace(&mut recording.lists.asyncs, none);
    let mut parents = Sorter::new(&recording.room);
    let mut open = Opened::default();
    let mut open_key = None;
    let (mut unfinished, mut first_unfinished) = (0, None);
    let mut leave = |rows: Vec<u32>| {
        unfinished += rows.len() as u64;
        first_unfinished = first_unfinished.or(rows.first().copied());
    };
    for part in parts.sorted()? {
        let part = part?;
        if open_key != Some(part.key) {
            leave(open.take_from(0));
            open.clear();
            open_key = Some(part.key);
        }
        // The old spelling has the name in its key.
        let is_old = matches!(part.phase, b'S' | b'T' | b'p' | b'F');
        let name = if is_old || part.name < 0 { ANY } else { part.name };
        if let Some(row) = part.row {
            if let Some(around) = open.last() {
                parents.push((row, around))?;
            }
            open.push(row, name, 0);
            continue;
        }
        let found = open.innermost(name, ANY);
        if matches!(part.phase, b'e' | b'F') {
            let time = part.time.saturating_add(recording.base);
            let Some(found) = found else {
                let name = recording.text(part.name).to_owned();
                recording.stats.note(findings::UNMATCHED_END, 1, || format!("end of `{name}` at {time} ns"));
                continue;
            };
            let row = open.close(found);
            closed.finishes.push((row, time))?;
            if part.args.is_some() {
                closed.patches.push(Patch { row, is_async: true, end: part.args, thread_duration: None })?;
            }
            continue;
        }
        let task = found.map(|place| open.item(place)).or(open.last());
        recording.lists.marks.push(Mark {
            lane: part.lane,
            time: part.time,
            name: part.name.max(0),
            kind: if is_old { MarkKind::Step } else { MarkKind::AsyncInstant },
            told_kind: NO_WORD,
            task,
            told_task: None,
            args: part.args,
        })?;
    }
    leave(open.take_from(0));
    let example = match first_unfinished {
        Some(row) => format!("`{}` has no end", shared.names.word(recording.name(row)?)),
        None => String::new(),
    };
    recording.stats.note(findings::UNFINISHED, unfinished, || example);
    Ok(parents)
}
