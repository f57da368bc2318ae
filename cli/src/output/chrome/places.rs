//! Places: which process and thread of a viewer a location becomes.
//!
//! A Chrome trace that is opened alone keeps its own ids and its own clock, so that what is written reads back as the same
//! locations. Of everything else, a process is a run and a thread a location.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use serde_json::Value;

use super::text::json;
use crate::errors::Failure;

/// What [`Places::of`] wants to know of the session.
pub(crate) const LOCATIONS: &str = "SELECT location, parent, locations.kind, locations.name, sort_index, locations.args, origin, \
     (SELECT count(*) FROM runs) AS runs FROM locations JOIN runs ON runs.run = locations.run";

/// How a location is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    Process,
    Thread,
    /// Overlapping spans of a process.
    Async,
    /// States of a thread.
    State,
}

/// A location of a Chrome trace.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) sort: Sort,
    /// Its pid and tid as JSON.
    pub(super) process: String,
    pub(super) thread: String,
    /// The name that the trace gives it.
    name: Option<String>,
    sort_index: Option<i64>,
}

/// The locations of the session, where they are those of one Chrome trace.
#[derive(Debug, Default)]
pub(crate) struct Places {
    known: HashMap<String, Known>,
    /// What is added to times: the trace's own clock at tick 0.
    pub(super) origin: i64,
    /// A tid that no thread has.
    pub(super) free_thread: i64,
}

impl Places {
    /// From the rows of [`LOCATIONS`].
    pub(crate) fn of(rows: &RecordBatch) -> Result<Places, Failure> {
        let texts = |name: &str| cast(&rows[name], &DataType::Utf8);
        let integers = |name: &str| cast(&rows[name], &DataType::Int64);
        let (locations, parents, kinds) = (texts("location")?, texts("parent")?, texts("kind")?);
        let (names, args) = (texts("name")?, texts("args")?);
        let (indices, origins, runs) = (integers("sort_index")?, integers("origin")?, integers("runs")?);
        let text = |column: &datafusion::arrow::array::ArrayRef, row: usize| {
            let column = column.as_string::<i32>();
            column.is_valid(row).then(|| column.value(row).to_owned())
        };
        let integer = |column: &datafusion::arrow::array::ArrayRef, row: usize| {
            let column = column.as_primitive::<Int64Type>();
            column.is_valid(row).then(|| column.value(row))
        };
        let mut places = Places::default();
        let mut lanes = Vec::new();
        for row in 0..rows.num_rows() {
            if integer(&runs, row) != Some(1) {
                return Ok(Places::default());
            }
            places.origin = integer(&origins, row).unwrap_or(0);
            let facts: Value = text(&args, row).and_then(|args| serde_json::from_str(&args).ok()).unwrap_or_default();
            let id = |key: &str| facts.get(key).map(Value::to_string);
            let (kind, location) = (text(&kinds, row).unwrap_or_default(), text(&locations, row).unwrap_or_default());
            let sort = match kind.as_str() {
                "process" => Sort::Process,
                "thread" | "stream" => Sort::Thread,
                "async" | "state" => {
                    let sort = if kind == "async" { Sort::Async } else { Sort::State };
                    lanes.push((location, sort, text(&parents, row).unwrap_or_default()));
                    continue;
                }
                _ => return Ok(Places::default()),
            };
            let own = |prefix: &str, id: &Option<String>| format!("{prefix} {}", id.as_deref().unwrap_or_default());
            let (process, thread) = (id("pid"), id("tid"));
            let no_name = if sort == Sort::Process { own("pid", &process) } else { own("tid", &thread) };
            let (Some(process), Some(thread)) =
                (process, if sort == Sort::Process { Some("0".to_owned()) } else { thread })
            else {
                return Ok(Places::default());
            };
            let taken = thread.parse::<i64>().ok().and_then(|number| number.checked_add(1)).unwrap_or(0);
            places.free_thread = places.free_thread.max(taken);
            let name =
                text(&names, row).filter(|name| *name != no_name && json(name) != process && json(name) != thread);
            let known = Known { sort, process, thread, name, sort_index: integer(&indices, row) };
            places.known.insert(location, known);
        }
        for (location, sort, parent) in lanes {
            let Some(above) = places.known.get(&parent).cloned() else { return Ok(Places::default()) };
            places.known.insert(location, Known { sort, name: None, sort_index: None, ..above });
        }
        Ok(places)
    }

    pub(super) fn get(&self, location: &str) -> Option<&Known> {
        self.known.get(location)
    }

    /// Metadata events of all processes and threads, in the order of their locations.
    pub(super) fn metadata(&self) -> Vec<String> {
        let mut sorted: Vec<_> = self.known.iter().collect();
        sorted.sort_by_key(|(location, _)| *location);
        let mut events = Vec::new();
        for (_, known) in sorted {
            let (word, ids) = match known.sort {
                Sort::Process => ("process", format!(r#""pid":{}"#, known.process)),
                Sort::Thread => ("thread", format!(r#""pid":{},"tid":{}"#, known.process, known.thread)),
                Sort::Async | Sort::State => continue,
            };
            if let Some(name) = &known.name {
                events.push(format!(r#"{{"ph":"M","name":"{word}_name",{ids},"args":{{"name":{}}}}}"#, json(name)));
            }
            if let Some(index) = known.sort_index {
                events
                    .push(format!(r#"{{"ph":"M","name":"{word}_sort_index",{ids},"args":{{"sort_index":{index}}}}}"#));
            }
        }
        events
    }
}
