//! Reads back what `tq` itself wrote: traces of other formats that `--format chrome` converted to Chrome traces.
//!
//! ```text
//! "tq":{"tick":"ps","runs":[{"run":"base","args":{…}},{"run":"new",…}]}    beside the events, before them: `tq` wrote the file
//! {"ph":"M","name":"tq_location","pid":1,"args":{"location":"4000/GPU 0/stream 7","kind":"stream","name":"stream 7",…}}
//! {"ph":"M","name":"thread_name","pid":1,"tid":3,"args":{"name":"4000/GPU 0/stream 7","tq_location":"4000/GPU 0/stream 7"}}
//! {"ph":"X",…,"tq":{"role":"copy"}}                                    a task that is no work
//! {"ph":"C","name":"sends PE0","cat":"tq:sends","pid":1,"tid":3,…,"tq":{"kind":"delta","unit":"bytes"}}
//! {"ph":"i","cat":"tq:nvtx",…,"tq":{"task":12}}                        an event of kind `nvtx`
//! {"ph":"M","name":"tq_tasks","pid":1,"args":{"of":40,"parents":[3,1,4,1]}}    task 3 belongs to task 1, and so does task 4
//! ```
//! A viewer shows a process for each run and a thread for each location; the tables get back the original locations with their
//! ancestors, and the original times, from the same tick 0. Tasks are numbered from 0 in the order of the file, run by run.
//!
//! A file may come from anybody, and may have been truncated since: where no header says that `tq` wrote the file, members
//! named `tq` are treated like any other argument, and task numbers are trusted only where the file holds as many tasks as
//! it says.

use serde::Deserialize;
use serde_json::{Map, Value};
use tq_udfs::ticks::Tick;

use super::container::{Container, Form};
use super::event;
use crate::trace::Source;

/// What categories that only `tq` writes begin with: the kind of a link or an instant, the name of a counter.
pub(super) const WRITTEN: &str = "tq:";

/// The metadata event of a location, and what a `thread_name` says of the one that the thread shows.
pub(super) const TQ_LOCATION: &str = "tq_location";

/// The metadata event of the tasks of a run.
pub(super) const TQ_TASKS: &str = "tq_tasks";

/// The member of an event, and of what stands beside the events, that only `tq` writes.
pub(super) const TQ: &str = "tq";

/// The most runs that a file is read as: it is read once for each.
const RUNS_MAX: usize = 64;

/// What the header of a file says that `tq` wrote, and which of its runs is read.
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    header: Option<Header>,
    run: usize,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Header {
    tick: Option<String>,
    #[serde(default)]
    runs: Vec<Run>,
}

/// A run that the file shows.
#[derive(Debug, Clone, Deserialize)]
struct Run {
    run: String,
    /// What `runs.args` said of it.
    #[serde(default)]
    args: Map<String, Value>,
}

impl Written {
    /// What the head of a file says, one for each run.
    pub(super) fn of(source: &Source) -> Vec<Written> {
        let mut container = Container::new(source.head(), 0);
        // Memory does not fail.
        let is_object = matches!(container.open(), Ok(Some(Form::Object)));
        let _ = is_object.then(|| container.next_events());
        let found = container.beside.iter().find(|beside| beside.key == TQ);
        let header = found.and_then(|beside| serde_json::from_slice::<Header>(&beside.json).ok());
        let header = header.filter(|header| header.runs.len() <= RUNS_MAX);
        let runs = header.as_ref().map_or(1, |header| header.runs.len().max(1));
        (0..runs).map(|run| Written { header: header.clone(), run }).collect()
    }

    /// Whether `tq` wrote the file.
    pub(super) fn is_ours(&self) -> bool {
        self.header.is_some()
    }

    /// What times are counted in.
    pub(super) fn tick(&self) -> Tick {
        match self.header.as_ref().and_then(|header| header.tick.as_deref()) {
            Some("ps") => Tick::Picosecond,
            _ => Tick::Nanosecond,
        }
    }

    fn told(&self) -> Option<&Run> {
        self.header.as_ref()?.runs.get(self.run)
    }

    /// The name of the run.
    pub(super) fn name(&self) -> Option<String> {
        Some(self.told()?.run.clone())
    }

    /// What `runs.args` says of the run, and that `tq` wrote it; `None` where it did not.
    pub(super) fn args(&self) -> Option<Map<String, Value>> {
        self.is_ours().then(|| {
            let mut args = self.told().map(|run| run.args.clone()).unwrap_or_default();
            args.insert(TQ.to_owned(), true.into());
            args
        })
    }

    /// Whether events of a process belong to another run: those of process 1 to the first one, and so on, and what belongs to
    /// none to the first one.
    pub(super) fn leaves_out(&self, pid: &str) -> bool {
        let Some(header) = self.header.as_ref().filter(|header| header.runs.len() > 1) else { return false };
        let run = pid.parse::<usize>().ok().and_then(|pid| pid.checked_sub(1));
        run.filter(|run| *run < header.runs.len()).unwrap_or(0) != self.run
    }
}

/// What a file says of the tasks of a run.
#[derive(Debug, Deserialize)]
pub(super) struct Tasks {
    /// How many there are.
    pub(super) of: u32,
    /// Numbers of tasks, each followed by that of the one it belongs to.
    #[serde(default)]
    pub(super) parents: Vec<u32>,
}

/// What a member of an event says.
pub(super) enum Said {
    Nothing,
    Null,
    Text(String),
}

/// What a member `tq` says under a key: a text, or NULL.
pub(super) fn said(told: Option<&str>, key: &str) -> Said {
    match told.and_then(|told| event::get(told, key)) {
        None => Said::Nothing,
        Some(value) => event::string_value(value).map_or(Said::Null, Said::Text),
    }
}

/// The task that a member `tq` names.
pub(super) fn task(told: Option<&str>) -> Option<u32> {
    event::get(told?, "task")?.parse().ok()
}

/// A row of `locations`.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    pub(super) location: String,
    pub(super) parent: Option<String>,
    pub(super) kind: Option<String>,
    pub(super) name: Option<String>,
    pub(super) process: Option<String>,
    pub(super) role: Option<String>,
    pub(super) sort_index: Option<i64>,
    pub(super) clock: Option<String>,
    pub(super) args: Option<String>,
    /// Whether its tasks nest.
    pub(super) nests: bool,
}

impl Told {
    /// From the arguments of the event; `None` where they name no location.
    pub(super) fn of(args: &Map<String, Value>) -> Option<Told> {
        let text = |key: &str| args.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(Told {
            location: text("location").filter(|location| !location.is_empty())?,
            parent: text("parent"),
            kind: text("kind"),
            name: text("name"),
            process: text("process"),
            role: text("role"),
            sort_index: args.get("sort_index").and_then(Value::as_i64),
            clock: text("clock"),
            args: text("args").filter(|args| serde_json::from_str::<Map<String, Value>>(args).is_ok()),
            nests: args.get("nests") != Some(&Value::Bool(false)),
        })
    }
}
