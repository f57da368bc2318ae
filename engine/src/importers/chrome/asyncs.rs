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

use super::chunk::{Mark, NO_WORD, UNFINISHED};
use super::event;
use super::file::{Recording, Shared};
use super::opened::{ANY, Opened};
use super::slices::Patches;
use crate::error::ImportError;
use crate::trace::findings;

/// Closes asynchronous spans; the answer is (child, parent) of those that nest.
pub(super) fn close(
    recording: &mut Recording,
    shared: &Shared,
    patches: &mut Patches,
) -> Result<Vec<(u32, u32)>, ImportError> {
    let mut parts = std::mem::take(&mut recording.lists.asyncs);
    parts.sort_unstable_by_key(|part| (part.key, part.time, part.sequence));
    let mut parents = Vec::new();
    let mut open = Opened::default();
    let mut open_key = None;
    let mut unfinished: Vec<usize> = Vec::new();
    for part in parts {
        if open_key != Some(part.key) {
            unfinished.extend(open.take_from(0));
            open.clear();
            open_key = Some(part.key);
        }
        // The old spelling has the name in its key.
        let is_old = matches!(part.phase, b'S' | b'T' | b'p' | b'F');
        let name = if is_old || part.name < 0 { ANY } else { part.name };
        if let Some(row) = part.row {
            parents.extend(open.last().map(|around| (row, around as u32)));
            open.push(row as usize, name, 0);
            continue;
        }
        let found = open.innermost(name, ANY);
        if matches!(part.phase, b'e' | b'F') {
            let Some(found) = found else {
                let (name, time) = (recording.text(part.name).to_owned(), part.time);
                recording.stats.note(findings::UNMATCHED_END, 1, || format!("end of `{name}` at {time} ns"));
                continue;
            };
            let row = open.close(found) as u32;
            recording.set_finish(row, part.time);
            if let Some(args) = merged(recording, row, part.args.as_deref())? {
                patches.insert(row, args);
            }
            continue;
        }
        let task = found.map(|place| open.item(place)).or(open.last()).map(|row| row as u32);
        recording.lists.marks.push(Mark {
            lane: part.lane,
            time: part.time,
            name: part.name.max(0),
            kind: if is_old { "step" } else { "async_instant" },
            told_kind: NO_WORD,
            task,
            told_task: None,
            args: part.args,
        });
    }
    unfinished.extend(open.take_from(0));
    let example = unfinished.first().map(|&row| {
        let row = row as u32;
        debug_assert_eq!(recording.finish(row), UNFINISHED);
        format!("`{}` has no end", shared.names.word(recording.name(row)))
    });
    recording.stats.note(findings::UNFINISHED, unfinished.len() as u64, || example.unwrap_or_default());
    Ok(parents)
}

/// The arguments of a span with those of its end laid over them; `None` when nothing changes.
fn merged(recording: &Recording, row: u32, end: Option<&str>) -> Result<Option<String>, ImportError> {
    let later = end.map(event::members).unwrap_or_default();
    if later.is_empty() {
        return Ok(None);
    }
    let own = recording.args(row)?;
    let is_replaced = |key: &str| later.iter().any(|(later, _)| *later == key);
    let kept: Vec<(&str, &str)> = event::members(&own).into_iter().filter(|(key, _)| !is_replaced(key)).collect();
    Ok(Some(event::with_members(None, kept.into_iter().chain(later.iter().copied()))))
}
