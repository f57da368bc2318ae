//! Places: which process and thread of a viewer a location becomes.
//!
//! A Chrome trace that is opened alone keeps its ids, its clock and its other metadata, so that what is written reads back as
//! the same locations. Of all other traces, each run becomes a process and each location a thread; metadata events describe the
//! locations for our own reader.

use std::collections::{BTreeMap, HashMap};

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use serde_json::{Map, Value, json};
use tq_udfs::ticks::Tick;

use super::text::json as quoted;
use crate::errors::Failure;

/// What [`Places::of`] wants to know of the session.
pub(crate) const LOCATIONS: &str = "SELECT location, parent, locations.kind, locations.name, process, locations.role, sort_index, clock, \
     locations.args, origin, nested = 0 AS flat, runs.run, run_number, format, \
     runs.args AS run_args, (SELECT count(*) FROM runs) AS runs, (SELECT count(*) FROM messages) AS messages, \
     (SELECT count(*) FROM (SELECT tasks.* FROM tasks JOIN locations l USING (run, location) WHERE l.kind = 'async') c \
      JOIN (SELECT tasks.*, l.process FROM tasks JOIN locations l USING (run, location) WHERE l.kind = 'async') p \
      ON p.task = c.parent JOIN locations l ON l.run = c.run AND l.location = c.location \
      WHERE l.process <> p.process) AS across, \
     (SELECT min(start) FROM tasks) AS first_start, (SELECT max(coalesce(finish, start)) FROM tasks) AS last_finish \
     FROM locations JOIN runs ON runs.run = locations.run \
     LEFT JOIN (SELECT run AS its_run, location AS its_location, count(depth) AS nested FROM tasks GROUP BY 1, 2) t \
     ON its_run = locations.run AND its_location = locations.location \
     ORDER BY run_number, sort_index, locations.location";

/// The most runs that our reader reads of a file: it reads a file once for each.
const RUNS_MAX: usize = 64;

/// The longest header that says what `runs.args` were; readers keep twice as much of a value beside the events.
const HEADER_BYTES: usize = 32 << 10;

/// The member that says that we wrote an event or a file.
pub(super) const TQ: &str = "tq";

/// Members of `runs.args` that the trace does not say: its reader found them.
const FOUND: [&str; 2] = ["dialect", "ranks"];

/// The metadata event of a location, and the member of a `thread_name` that says which one the thread shows.
pub(super) const TQ_LOCATION: &str = "tq_location";

/// How a location is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrackKind {
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
    pub(super) track: TrackKind,
    /// Its pid and tid as JSON.
    pub(super) process: String,
    pub(super) thread: String,
    /// The name that the trace gives it; of asynchronous spans their category and name.
    pub(super) name: Option<String>,
    labels: Option<String>,
    sort_index: Option<i64>,
    /// Names and arguments of other metadata.
    facts: Vec<(String, Value)>,
}

/// The locations of the session, where they are those of one Chrome trace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Places {
    known: HashMap<String, Known>,
    /// What is added to times: the trace's own clock at tick 0.
    pub(super) origin: i64,
    /// A tid that no thread has.
    pub(super) free_thread: i64,
    /// From the first start to the last finish of all tasks.
    pub(super) extent: Option<(i64, i64)>,
    /// Whether asynchronous tasks lie in those of other processes, which only ids of the whole trace can say.
    pub(super) ids_are_global: bool,
    /// What stands beside the events.
    pub(super) beside: Map<String, Value>,
    /// The rows of `locations`, where they are not those of one Chrome trace, each with the process that shows its run.
    told: Vec<(usize, Map<String, Value>)>,
    /// The runs of those, in the order of their processes, and what `runs.args` says of them.
    runs: Vec<(String, Map<String, Value>)>,
    /// Messages of the session.
    pub(super) messages: i64,
}

impl Places {
    /// From the rows of [`LOCATIONS`].
    pub(crate) fn of(rows: &RecordBatch) -> Result<Places, Failure> {
        let texts = |name: &str| cast(&rows[name], &DataType::Utf8);
        let integers = |name: &str| cast(&rows[name], &DataType::Int64);
        let (locations, parents, kinds) = (texts("location")?, texts("parent")?, texts("kind")?);
        let (names, args) = (texts("name")?, texts("args")?);
        let (indices, origins, runs) = (integers("sort_index")?, integers("origin")?, integers("runs")?);
        let (firsts, lasts, run_args) = (integers("first_start")?, integers("last_finish")?, texts("run_args")?);
        let text = |column: &datafusion::arrow::array::ArrayRef, row: usize| {
            let column = column.as_string::<i32>();
            column.is_valid(row).then(|| column.value(row).to_owned())
        };
        let integer = |column: &datafusion::arrow::array::ArrayRef, row: usize| {
            let column = column.as_primitive::<Int64Type>();
            column.is_valid(row).then(|| column.value(row))
        };
        let json_of = |text: Option<String>| -> Value {
            text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
        };
        let mut places = Places::default();
        if rows.num_rows() > 0 {
            places.ids_are_global = integer(&integers("across")?, 0).is_some_and(|count| count > 0);
            places.extent = integer(&firsts, 0).zip(integer(&lasts, 0));
            places.messages = integer(&integers("messages")?, 0).unwrap_or(0);
            if let Value::Object(beside) = json_of(text(&run_args, 0)) {
                places.beside = beside.into_iter().filter(|(key, _)| !FOUND.contains(&key.as_str())).collect();
            }
        }
        let (extent, messages) = (places.extent, places.messages);
        let unknown = || Ok(Places { extent, messages, ..told(rows)? });
        let formats = texts("format")?;
        if (0..rows.num_rows()).any(|row| text(&formats, row).as_deref() != Some("chrome"))
            || places.beside.contains_key(TQ)
        {
            return unknown();
        }
        let mut lanes = Vec::new();
        for row in 0..rows.num_rows() {
            if integer(&runs, row) != Some(1) {
                return unknown();
            }
            places.origin = integer(&origins, row).unwrap_or(0);
            let facts = json_of(text(&args, row));
            let id = |key: &str| facts.get(key).map(Value::to_string);
            let (kind, location) = (text(&kinds, row).unwrap_or_default(), text(&locations, row).unwrap_or_default());
            let track = match kind.as_str() {
                "process" => TrackKind::Process,
                "thread" | "stream" => TrackKind::Thread,
                "async" | "state" => {
                    let track = if kind == "async" { TrackKind::Async } else { TrackKind::State };
                    lanes.push((location, track, text(&parents, row).unwrap_or_default(), text(&names, row)));
                    continue;
                }
                _ => return unknown(),
            };
            let own = |prefix: &str, id: &Option<String>| format!("{prefix} {}", id.as_deref().unwrap_or_default());
            let (process, thread) = (id("pid"), id("tid"));
            let no_name = if track == TrackKind::Process { own("pid", &process) } else { own("tid", &thread) };
            let (Some(process), Some(thread)) =
                (process, if track == TrackKind::Process { Some("0".to_owned()) } else { thread })
            else {
                return unknown();
            };
            let taken = thread.parse::<i64>().ok().and_then(|number| number.checked_add(1)).unwrap_or(0);
            places.free_thread = places.free_thread.max(taken);
            let labels = facts.get("labels").and_then(Value::as_str).map(str::to_owned);
            // Shown as `name (labels)`.
            let name = text(&names, row).filter(|name| Some(name) != labels.as_ref()).map(|name| {
                let tail = labels.as_ref().map(|labels| format!(" ({labels})"));
                tail.and_then(|tail| name.strip_suffix(&tail).map(str::to_owned)).unwrap_or(name)
            });
            let name = name.filter(|name| *name != no_name && quoted(name) != process && quoted(name) != thread);
            let is_other = |(key, value): &(&String, &Value)| {
                !["pid", "tid", "labels"].contains(&key.as_str()) && value.is_object()
            };
            let facts = facts.as_object().into_iter().flatten().filter(is_other);
            let facts = facts.map(|(key, value)| (key.clone(), value.clone())).collect();
            let known = Known { track, process, thread, name, labels, sort_index: integer(&indices, row), facts };
            places.known.insert(location, known);
        }
        for (location, track, parent, name) in lanes {
            let Some(above) = places.known.get(&parent).cloned() else { return unknown() };
            places.known.insert(location, Known { track, name, ..above });
        }
        Ok(places)
    }

    /// Whether the file says what its locations are.
    pub(super) fn are_told(&self) -> bool {
        !self.told.is_empty()
    }

    /// The process that shows a run of another format.
    pub(super) fn process_of(&self, run: &str) -> Option<usize> {
        let found = self.runs.iter().position(|(name, _)| name == run);
        found.or((self.runs.len() == 1).then_some(0)).map(|place| place + 1)
    }

    /// The number of processes that show runs of other formats.
    pub(super) fn processes(&self) -> usize {
        self.runs.len()
    }

    /// What stands beside the events of other formats.
    pub(super) fn header(&self, tick: Tick) -> Map<String, Value> {
        let run = |(name, args): &(String, Map<String, Value>)| json!({"run": name, "args": args});
        let header = |runs: Vec<Value>| json!({"tick": tick.symbol(), "runs": runs});
        let mut ours = header(self.runs.iter().map(run).collect());
        if ours.to_string().len() > HEADER_BYTES {
            ours = header(self.runs.iter().map(|(name, _)| json!({"run": name})).collect());
        }
        let mut beside = Map::from_iter([("displayTimeUnit".to_owned(), "ns".into())]);
        beside.extend(self.are_told().then(|| (TQ.to_owned(), ours)));
        beside
    }

    /// Whether the session is not one Chrome trace.
    pub(super) fn are_unknown(&self) -> bool {
        self.known.is_empty()
    }

    pub(super) fn get(&self, location: &str) -> Option<&Known> {
        self.known.get(location)
    }

    /// Metadata events of all processes and threads, in the order of their locations.
    pub(super) fn metadata(&self) -> Vec<String> {
        let mut sorted: Vec<_> = self.known.iter().collect();
        sorted.sort_by_key(|(location, _)| *location);
        let told = |(process, row): &(usize, Map<String, Value>)| {
            format!(r#"{{"ph":"M","name":"{TQ_LOCATION}","pid":{process},"args":{}}}"#, Value::from(row.clone()))
        };
        let mut events: Vec<String> = self.told.iter().map(told).collect();
        for (_, known) in sorted {
            let (word, ids) = match known.track {
                TrackKind::Process => ("process", format!(r#""pid":{}"#, known.process)),
                TrackKind::Thread => ("thread", format!(r#""pid":{},"tid":{}"#, known.process, known.thread)),
                TrackKind::Async | TrackKind::State => continue,
            };
            let mut tell = |name: &str, args: &str| {
                events.push(format!(r#"{{"ph":"M","name":{},{ids},"args":{args}}}"#, quoted(name)));
            };
            if let Some(name) = &known.name {
                tell(&format!("{word}_name"), &format!(r#"{{"name":{}}}"#, quoted(name)));
            }
            if let Some(labels) = &known.labels {
                tell("process_labels", &format!(r#"{{"labels":{}}}"#, quoted(labels)));
            }
            if let Some(index) = known.sort_index {
                tell(&format!("{word}_sort_index"), &format!(r#"{{"sort_index":{index}}}"#));
            }
            for (name, args) in &known.facts {
                tell(name, &args.to_string());
            }
        }
        events
    }
}

/// The rows of `locations` as members of metadata events, and their runs; nothing of more runs than are read.
fn told(rows: &RecordBatch) -> Result<Places, Failure> {
    let texts = |name: &str| cast(&rows[name], &DataType::Utf8);
    let (names, args) = (texts("run")?, texts("run_args")?);
    let (names, args) = (names.as_string::<i32>(), args.as_string::<i32>());
    let numbers = cast(&rows["run_number"], &DataType::Int64)?;
    let numbers = numbers.as_primitive::<Int64Type>();
    let of_run = |row: usize| (numbers.value(row), row);
    let first_rows: BTreeMap<i64, usize> = (0..rows.num_rows()).rev().map(of_run).collect();
    if first_rows.len() > RUNS_MAX {
        return Ok(Places::default());
    }
    let run = |row: &usize| {
        let args = args.is_valid(*row).then(|| serde_json::from_str(args.value(*row)).ok()).flatten();
        let mut args: Map<String, Value> = args.unwrap_or_default();
        args.remove(TQ);
        (names.value(*row).to_owned(), args)
    };
    let runs = first_rows.values().map(run).collect();
    let place = |number: i64| first_rows.range(..=number).count();
    let mut told: Vec<_> = numbers.values().iter().map(|number| (place(*number), Map::new())).collect();
    for key in ["location", "parent", "kind", "name", "process", "role", "clock", "args"] {
        let texts = texts(key)?;
        for ((_, members), text) in told.iter_mut().zip(texts.as_string::<i32>()) {
            members.extend(text.map(|text| (key.to_owned(), text.into())));
        }
    }
    let indices = cast(&rows["sort_index"], &DataType::Int64)?;
    for ((_, members), index) in told.iter_mut().zip(indices.as_primitive::<Int64Type>()) {
        members.extend(index.map(|index| ("sort_index".to_owned(), index.into())));
    }
    for ((_, members), flat) in told.iter_mut().zip(rows["flat"].as_boolean()) {
        members.extend((flat == Some(true)).then(|| ("nests".to_owned(), false.into())));
    }
    Ok(Places { told, runs, ..Places::default() })
}
