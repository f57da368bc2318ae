//! Milestones and tags: instants of tasks.
//!
//! A milestone is the moment at which something becomes available that its task waited for: Kind says what sort of thing
//! (hardware resource, queue, data …), What which one. Tags are labels (hit, miss …). Both are at the location of their
//! task; v4 also records where the milestone happened, which goes to `args` if it is another location. Before v4.5 a
//! milestone has no time.

use datafusion::arrow::array::{Int64Array, Int64Builder, StringArray, StringBuilder};
use rusqlite::types::ValueRef;

use super::chunk::{WordColumn, text};
use super::tasks::Found;
use super::times::{self, Unit};
use crate::error::ImportError;
use crate::tables;
use crate::trace::{RunBuilder, Sorter, Stats, Words, findings, record};

/// Rows that are being read.
#[derive(Debug, Default)]
pub(super) struct EventBuilder {
    tasks: StringBuilder,
    times: Int64Builder,
    kinds: WordColumn,
    names: WordColumn,
    locations: WordColumn,
    scratch: String,
}

/// Rows with the ids of their tasks.
#[derive(Debug, Clone)]
pub(super) struct EventChunk {
    /// The number of the first row, as places have it.
    first: u64,
    tasks: StringArray,
    times: Int64Array,
    kinds: WordColumn,
    names: WordColumn,
    /// Where they happened.
    locations: WordColumn,
}

record!(EventChunk { first, tasks, times, kinds, names, locations });

/// Rows with the positions of their tasks.
#[derive(Debug, Clone)]
pub(super) struct Events {
    tasks: Int64Array,
    times: Int64Array,
    kinds: WordColumn,
    names: WordColumn,
    /// Where their tasks are.
    locations: WordColumn,
    args: StringArray,
}

record!(Events { tasks, times, kinds, names, locations, args });

impl EventBuilder {
    pub(super) fn rows(&self) -> usize {
        self.times.values_slice().len()
    }

    /// Appends the row of a milestone or tag: task, time, kind, what, location.
    pub(super) fn push(
        &mut self,
        [task, time, kind, what, location]: [ValueRef<'_>; 5],
        unit: Unit,
        stats: &mut Stats,
        place: &dyn Fn() -> String,
    ) {
        let scratch = &mut self.scratch;
        self.tasks.append_option(text(task, scratch, stats, place));
        self.times.append_option(times::ticks(time, unit, stats, place));
        self.locations.push(text(location, scratch, stats, place).filter(|location| !location.is_empty()));
        self.kinds.push(text(kind, scratch, stats, place));
        self.names.push(text(what, scratch, stats, place));
    }

    /// The rows, the first of which has this number.
    pub(super) fn finish(self, first: u64) -> EventChunk {
        let EventBuilder { mut tasks, mut times, kinds, names, locations, .. } = self;
        EventChunk { first, tasks: tasks.finish(), times: times.finish(), kinds, names, locations }
    }
}

impl EventChunk {
    pub(super) fn rows(&self) -> usize {
        self.times.len()
    }

    /// Pushes the id of the task of each row, to be looked up; rows are numbered from `from` on. Rows without a task are left out.
    pub(super) fn push_tasks(&self, from: u64, asked: &mut Sorter<(Box<str>, u64)>) -> Result<(), ImportError> {
        let rows = self.tasks.iter().zip(from..);
        rows.filter_map(|(id, number)| id.map(|id| (id.into(), number))).try_for_each(|one| asked.push(one))
    }

    /// With their tasks, found under the numbers from one on. `locations` are those of tasks, `table` is where the rows come from.
    pub(super) fn with_tasks(
        self,
        from: u64,
        found: &mut Found<'_>,
        locations: &Words,
        table: &str,
        stats: &mut Stats,
    ) -> Result<Events, ImportError> {
        let (mut tasks, mut args, mut of_tasks) = (Int64Builder::new(), StringBuilder::new(), WordColumn::default());
        for (row, id) in self.tasks.iter().enumerate() {
            let task = id.map_or(Ok(None), |id| found.task(from + row as u64, id))?;
            if task.is_none() {
                stats.note(findings::EVENT_WITHOUT_TASK, 1, || {
                    let (number, id) = (self.first + row as u64, id.unwrap_or("NULL"));
                    format!("table `{table}`, row {number}: its task `{id}` is not in the trace")
                });
            }
            tasks.append_option(task.map(|task| i64::from(task.position)));
            let of_task = task.and_then(|task| task.location).map(|location| locations.word(location));
            let own = self.locations.word(row);
            of_tasks.push(of_task.or(own));
            let elsewhere = own.filter(|own| of_task.is_some_and(|of_task| of_task != *own));
            args.append_option(elsewhere.map(|location| serde_json::json!({ "location": location }).to_string()));
        }
        let EventChunk { times, kinds, names, .. } = self;
        Ok(Events { tasks: tasks.finish(), times, kinds, names, locations: of_tasks, args: args.finish() })
    }
}

impl Events {
    /// Moves them into the builder.
    pub(super) fn append(self, builder: &mut RunBuilder) -> Result<(), ImportError> {
        builder.append(tables::Events {
            location: self.locations.into_cells(),
            task: self.tasks.into(),
            name: self.names.into_cells(),
            kind: self.kinds.into_cells(),
            time: self.times.into(),
            args: self.args.into(),
        })
    }
}
