//! Locations of other formats: what `--format chrome` says of those of a trace that was no Chrome trace.
//!
//! ```text
//! {"ph":"M","name":"tq_location","pid":1,"args":{"location":"4000/GPU 0/stream 7","kind":"stream","name":"stream 7",…}}
//! {"ph":"M","name":"thread_name","pid":1,"tid":3,"args":{"name":"4000/GPU 0/stream 7","tq_location":"4000/GPU 0/stream 7"}}
//! {"ph":"C","name":"sends PE0","cat":"tq:sends","pid":1,"tid":3,…}     a counter of a thread; viewers know those of processes only
//! {"ph":"i","cat":"tq:nvtx",…}                                         an event of kind `nvtx`
//! ```
//! A viewer shows a process for the run and a thread for each location; the tables get the locations back as they were, with
//! those above them, and times as they were, from the same tick 0.

use serde_json::{Map, Value};

/// What categories that only `tq` writes begin with: the kind of a link or an instant, the name of a counter.
pub(super) const WRITTEN: &str = "tq:";

/// The metadata event of a location, and what a `thread_name` says of the one that the thread shows.
pub(super) const TQ_LOCATION: &str = "tq_location";

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
            args: text("args"),
        })
    }
}
