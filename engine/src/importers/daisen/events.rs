//! Milestones and tags: instants of tasks.
//!
//! A milestone is the moment at which something becomes available that its task waited for: Kind says what sort of thing
//! (hardware resource, queue, data …), What which one. Tags are labels (hit, miss …). Both are at the location of their
//! task; v4 also records where the milestone happened, which goes to `args` if it is another location. Before v4.5 a
//! milestone has no time.

use datafusion::arrow::array::{Int64Builder, StringBuilder};
use rusqlite::types::ValueRef;

use super::chunk::{WordColumn, text};
use super::tasks::Tasks;
use super::times::{self, Unit};
use crate::error::ImportError;
use crate::tables;
use crate::trace::{RunBuilder, Stats, findings};

/// Events of a trace, in order: milestones, then tags.
pub(super) type EventChunks = Vec<EventChunk>;

/// A stretch of rows.
#[derive(Debug, Default)]
pub(super) struct EventChunk {
    tasks: Int64Builder,
    times: Int64Builder,
    kinds: WordColumn,
    names: WordColumn,
    locations: WordColumn,
    args: StringBuilder,
}

impl EventChunk {
    /// Appends the row of a milestone or tag: task, time, kind, what, location.
    pub(super) fn push(
        &mut self,
        tasks: &Tasks,
        [task, time, kind, what, location]: [ValueRef<'_>; 5],
        unit: Unit,
        scratch: &mut String,
        stats: &mut Stats,
        place: &dyn Fn() -> String,
    ) {
        let id = text(task, scratch, stats, place);
        let found = id.and_then(|id| tasks.find(id));
        if found.is_none() {
            stats.note(findings::EVENT_WITHOUT_TASK, 1, || {
                format!("{}: its task `{}` is not in the trace", place(), id.unwrap_or("NULL"))
            });
        }
        self.tasks.append_option(found.map(|task| task as i64));
        self.times.append_option(times::ticks(time, unit, stats, place));
        let of_task = found.and_then(|task| tasks.location(task));
        let own = text(location, scratch, stats, place).filter(|location| !location.is_empty());
        self.locations.push(of_task.or(own));
        let elsewhere = own.filter(|own| of_task.is_some_and(|of_task| of_task != *own));
        self.args.append_option(elsewhere.map(|location| serde_json::json!({ "location": location }).to_string()));
        self.kinds.push(text(kind, scratch, stats, place));
        self.names.push(text(what, scratch, stats, place));
    }

    pub(super) fn memory(&self) -> usize {
        let texts = self.args.values_slice().len() + size_of_val(self.args.offsets_slice());
        texts
            + 2 * self.tasks.values_slice().len() * size_of::<i64>()
            + [&self.kinds, &self.names, &self.locations].into_iter().map(WordColumn::memory).sum::<usize>()
    }
}

/// Moves events into the builder.
pub(super) fn append(events: EventChunks, builder: &mut RunBuilder) -> Result<(), ImportError> {
    for mut event in events {
        builder.append(tables::Events {
            location: event.locations.into_cells(),
            task: event.tasks.finish().into(),
            name: event.names.into_cells(),
            kind: event.kinds.into_cells(),
            time: event.times.finish().into(),
            args: event.args.finish().into(),
        })?;
    }
    Ok(())
}
