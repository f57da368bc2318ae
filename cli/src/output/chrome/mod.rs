//! `chrome`: tasks, links and counters as a Chrome trace, to open in a trace viewer (Perfetto, chrome://tracing).
//!
//! The columns of a query tell what its rows are:
//!
//! ```text
//! start, finish (or duration)    tasks; with `task` also what the session knows of them: links between tasks that are
//!                                shown, counters and instants of their processes in their stretch
//! source, target                 links, and the tasks at their ends
//! time, value                    counters
//! ```
//! A task is a complete event (`"ph":"X"`) with times in microseconds, exact to the tick; one that never ended is a begin
//! (`"ph":"B"`) without an end, or an `X` without `dur` where a task around it ended, since readers would end a `B` there. Viewers
//! require the events of a thread to nest: tasks that overlap otherwise go to additional threads of their location (`w0 (2)`;
//! `tq_thread` tells our reader which thread it was); asynchronous tasks are asynchronous events, each tree of them under a `scope`
//! of its own. A link is a flow (`"ph":"s"`, `"f"`) of category `tq:KIND`. A viewer attaches a flow to the innermost task at its
//! time, so the flow is placed at a moment at which nothing inside of the task runs; where there is none, `tq_task` (the number of
//! the task in the file) tells our reader which task it belongs to. `args` are written as arguments, together with columns that are
//! not in our tables. What cannot be shown is counted. Ids, names and clock of a Chrome trace are kept. For other traces, metadata
//! events record the locations ([`places`]), members named `tq` in the events record what Chrome has no field for (roles, units,
//! the task of an event), and `tq_tasks` at the end records the parents of tasks. Both kinds read back as the same tables.

pub(crate) mod places;
mod text;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::io::Write;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, Schema, SchemaRef};
use datafusion::common::Column;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{Expr, cast};
use tq_udfs::ticks::Tick;

use self::places::{Known, Places, TQ, TQ_LOCATION, TrackKind};
use self::text::{json, members, microseconds};
use super::cells::{Cells, Kind, kinds};
use super::svg;
use super::writer::{Output, Preparation, Writer, only_one};
use crate::errors::Failure;
use crate::terminal;
use crate::text::words::plural;

/// Columns that are not arguments: those of `tasks`, which the trace itself shows.
const KNOWN: [&str; 14] = [
    "run",
    "location",
    "name",
    "kind",
    START,
    FINISH,
    "task",
    "id",
    "parent",
    "stack_parent",
    "role",
    "duration",
    "depth",
    "args",
];
/// How many tasks a metadata event names the parents of: an event is a line.
const PARENTS_OF_AN_EVENT: usize = 10_000;

/// What [`arrange`] calls the times, so that they do not collide with the result's own columns.
const START: &str = "start";
const FINISH: &str = "finish";

/// What rows are, by their columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    Tasks,
    Links,
    Counters,
    Events,
}

pub(crate) struct Chrome {
    writer: Writer,
    tick: Tick,
    places: Places,
    results: usize,
    events: u64,
    /// Rows that no viewer could place.
    left_out: u64,
    /// Links whose ends are no slices of a thread.
    unbound: u64,
    losses: Losses,
    /// The links that were asked for themselves.
    links: Vec<Link>,
    /// The tasks at their ends: others are not shown.
    only: Option<HashSet<i64>>,
    shown: HashMap<i64, Shown>,
    processes: HashMap<String, i64>,
    /// Locations with the threads that show them.
    locations: HashMap<(String, String), Vec<Thread>>,
    /// Processes that are shown, and locations without one.
    shown_processes: HashSet<String>,
    /// From the first start to the last finish of what is shown.
    stretch: Option<(i64, i64)>,
    threads: i64,
    flows: u64,
    /// Tasks that were written: of a Chrome trace, or of each process that shows a run of another one.
    tasks: BTreeMap<String, u32>,
    /// Tasks that belong to others than those around them, by process: their numbers, and those others.
    parents: BTreeMap<String, Vec<(u32, i64)>>,
    /// Trees of asynchronous tasks.
    trees: u64,
    /// The tree of each asynchronous task, and the members that say which one it is.
    tree_of: HashMap<i64, (u64, String)>,
}

/// What has no place in the file and is counted.
#[derive(Default)]
struct Losses {
    /// Instants without a time.
    events: u64,
    /// Arguments of links.
    arguments: u64,
    /// Messages of the session.
    messages: u64,
}

/// A link; its arguments are members.
struct Link {
    source: i64,
    target: i64,
    kind: String,
    name: String,
    /// '' is a name as well.
    has_name: bool,
    args: Option<String>,
}

/// A thread of the viewer with its open tasks: the end, and the task.
struct Thread {
    ids: Ids,
    open: Vec<(i64, Option<i64>)>,
}

/// A pid and a tid as JSON.
#[derive(Debug, Clone)]
struct Ids {
    process: String,
    thread: String,
}

impl std::fmt::Display for Ids {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, r#""pid":{},"tid":{}"#, self.process, self.thread)
    }
}

/// A task that links can be drawn to.
struct Shown {
    /// `None` for asynchronous tasks.
    ids: Option<Ids>,
    /// Its number in the file.
    number: u32,
    start: i64,
    finish: i64,
    /// The earliest moment at which nothing inside of it runs, as far as is known.
    free: i64,
}

impl Shown {
    /// A moment that belongs to no task inside of it, if there is one.
    fn moment(&self) -> i64 {
        if self.free < self.finish { self.free } else { self.start }
    }
}

impl Chrome {
    pub(crate) fn new(writer: Writer, tick: Tick, places: Places) -> Chrome {
        let threads = places.free_thread;
        Chrome {
            writer,
            tick,
            places,
            results: 0,
            events: 0,
            left_out: 0,
            unbound: 0,
            losses: Losses::default(),
            links: Vec::new(),
            only: None,
            shown: HashMap::new(),
            processes: HashMap::new(),
            locations: HashMap::new(),
            shown_processes: HashSet::new(),
            stretch: None,
            threads,
            flows: 0,
            tasks: BTreeMap::new(),
            parents: BTreeMap::new(),
            trees: 0,
            tree_of: HashMap::new(),
        }
    }

    /// Whether all tasks are shown, or there are none: then counters and instants around them belong to them.
    fn shows_all(&self) -> bool {
        match (self.stretch, self.places.extent) {
            (Some((from, to)), Some((first, last))) => from <= first && last <= to,
            (stretch, extent) => stretch.is_none() && extent.is_none(),
        }
    }

    fn event(&mut self, event: &str, text: &mut String) {
        text.push_str(if self.events == 0 { "\n" } else { ",\n" });
        text.push_str(event);
        self.events += 1;
    }

    /// A time on the clock of the trace.
    fn time(&self, ticks: i64) -> String {
        let origin = if self.tick == Tick::Nanosecond { self.places.origin } else { 0 };
        microseconds(ticks.saturating_add(origin), self.tick)
    }

    fn process(&mut self, run: &str, text: &mut String) -> String {
        if let Some(&number) = self.processes.get(run) {
            return number.to_string();
        }
        let others = self.places.processes() + self.processes.len() + 1;
        let number = self.places.process_of(run).unwrap_or(others) as i64;
        self.processes.insert(run.to_owned(), number);
        let name = json(if run.is_empty() { "trace" } else { run });
        self.event(
            &format!(r#"{{"ph":"M","name":"process_name","pid":{number},"tid":0,"args":{{"name":{name}}}}}"#),
            text,
        );
        number.to_string()
    }

    /// The process that counters and instants of a location belong to.
    fn process_of(&mut self, run: &str, location: &str, text: &mut String) -> String {
        match self.places.get(location) {
            Some(known) => known.process.clone(),
            None => self.process(run, text),
        }
    }

    /// The thread that a task nests in: an open task either ends before it starts or after it finishes.
    fn thread(&mut self, run: &str, location: &str, span: (i64, i64), task: Option<i64>, text: &mut String) -> Ids {
        let (start, finish) = span;
        let process = self.process_of(run, location, text);
        self.shown_processes.insert(process.clone());
        let key = (process.clone(), location.to_owned());
        for thread in self.locations.entry(key.clone()).or_default() {
            while thread.open.last().is_some_and(|&(end, _)| end <= start) {
                thread.open.pop();
            }
            if thread.open.last().is_none_or(|&(end, _)| finish <= end) {
                let around = thread.open.last().and_then(|&(_, task)| self.shown.get_mut(&task?));
                if let Some(around) = around.filter(|around| start <= around.free) {
                    around.free = around.free.max(finish.saturating_add(1));
                }
                thread.open.push((finish, task));
                return thread.ids.clone();
            }
        }
        let place = self.locations.get(&key).map_or(0, Vec::len) + 1;
        let ids = match self.places.get(location) {
            Some(known) if place == 1 => Ids { process, thread: known.thread.clone() },
            _ => {
                self.threads += 1;
                let ids = Ids { process, thread: self.threads.to_string() };
                let first = self.locations.get(&key).and_then(|threads| threads.first());
                let args = match first.map(|first| &first.ids.thread) {
                    None if self.places.are_told() => {
                        format!(r#""name":{0},"{TQ_LOCATION}":{0}"#, json(location))
                    }
                    None => format!(r#""name":{}"#, json(location)),
                    Some(thread) => {
                        format!(r#""name":{},"tq_thread":{thread}"#, json(&format!("{location} ({place})")))
                    }
                };
                self.event(&format!(r#"{{"ph":"M","name":"thread_name",{ids},"args":{{{args}}}}}"#), text);
                let index = self.threads;
                let sort = format!(r#"{{"ph":"M","name":"thread_sort_index",{ids},"args":{{"sort_index":{index}}}}}"#);
                self.event(&sort, text);
                ids
            }
        };
        self.locations.entry(key).or_default().push(Thread { ids: ids.clone(), open: vec![(finish, task)] });
        ids
    }

    /// The thread that shows a location, on which nothing may have run.
    fn shown_by(&mut self, run: &str, location: &str, text: &mut String) -> Ids {
        let key = (self.process_of(run, location, text), location.to_owned());
        match self.locations.get(&key).and_then(|threads| threads.first()) {
            Some(thread) => thread.ids.clone(),
            None => self.thread(run, location, (i64::MIN, i64::MIN), None, text),
        }
    }

    /// `id` and `scope` of an asynchronous task: the tree is that of its parent, else one of its own.
    fn tree(&mut self, task: Option<i64>, parent: Option<i64>, id: &str) -> String {
        let above = parent.and_then(|parent| self.tree_of.get(&parent));
        let tree = above.map_or(self.trees + 1, |(tree, _)| *tree);
        self.trees = self.trees.max(tree);
        let id = match id.parse::<i64>() {
            // 31 and "0x1f" are one id; "31" is another one.
            Ok(number) if number.to_string() == id => id.to_owned(),
            _ if id.is_empty() => json(&format!("tq{}", self.events)),
            _ => json(id),
        };
        // Ids of two processes may be one.
        let ids = match self.places.ids_are_global {
            true => format!(r#""id":{id},"scope":"{tree}""#),
            false => format!(r#""id2":{{"local":{id}}},"scope":"{tree}""#),
        };
        if let Some(task) = task {
            self.tree_of.insert(task, (tree, ids.clone()));
        }
        ids
    }

    /// Whether a task that has an end is open on a location.
    fn is_inside_of_an_end(&self, process: &str, location: &str, start: i64) -> bool {
        let threads = self.locations.get(&(process.to_owned(), location.to_owned()));
        let ends = |thread: &Thread| thread.open.iter().any(|&(end, _)| start < end && end < i64::MAX);
        threads.is_some_and(|threads| threads.iter().any(ends))
    }

    fn tasks(&mut self, batch: &RecordBatch, text: &mut String) -> Result<(), Failure> {
        let cells = Cells::new(batch)?;
        let columns = Columns::of(batch, &cells);
        let (Some(starts), Some(finishes)) = (columns.integers(START), columns.integers(FINISH)) else { return Ok(()) };
        for row in 0..batch.num_rows() {
            let task = columns.integer("task", row);
            if self.only.as_ref().is_some_and(|only| task.is_none_or(|task| !only.contains(&task))) {
                continue;
            }
            let start = starts.value(row);
            let finish = finishes.is_valid(row).then(|| finishes.value(row));
            if starts.is_null(row) || finish.is_some_and(|finish| finish < start) {
                self.left_out += 1;
                continue;
            }
            let end = finish.unwrap_or(start);
            let (from, to) = self.stretch.unwrap_or((start, end));
            self.stretch = Some((from.min(start), to.max(end)));
            let (run, location) = (columns.text("run", row)?, columns.text("location", row)?);
            let name = format!(r#""name":{}"#, json(&columns.text("name", row)?));
            let mut rest = format!(r#""ts":{}"#, self.time(start));
            let duration = finish.map(|finish| microseconds(finish.saturating_sub(start), self.tick));
            let track = self.places.get(&location).map(|known| known.track);
            if let Some(duration) = duration.as_ref().filter(|_| track != Some(TrackKind::Async)) {
                let _ = write!(rest, r#","dur":{duration}"#);
            }
            if columns.has("kind") {
                let _ = write!(rest, r#","cat":{}"#, json(&columns.text("kind", row)?));
            }
            if let Some(args) = columns.args(row)? {
                let _ = write!(rest, r#","args":{{{args}}}"#);
            }
            let id = columns.text("id", row)?;
            if !id.is_empty() && track != Some(TrackKind::Async) {
                let _ = write!(rest, r#","id":{}"#, json(&id));
            }
            let process = self.process_of(&run, &location, text);
            let numbers = if self.places.are_told() { process.as_str() } else { "" };
            let number = match self.tasks.get_mut(numbers) {
                Some(written) => std::mem::replace(written, *written + 1),
                None => {
                    self.tasks.insert(numbers.to_owned(), 1);
                    0
                }
            };
            if self.places.are_told() {
                let parent = columns.integer("parent", row);
                if let Some(parent) = parent.filter(|_| parent != columns.integer("stack_parent", row)) {
                    self.parents.entry(process.clone()).or_default().push((number, parent));
                }
                let mut told = Vec::new();
                if columns.has("role") && columns.text("role", row)? != "work" {
                    told.push(format!(r#""role":{}"#, columns.json("role", row)?));
                }
                told.extend((columns.has("kind") && columns.is_null("kind", row)).then(|| r#""kind":null"#.to_owned()));
                rest.push_str(&told_member(&told));
            }
            let ids = match self.places.get(&location).cloned() {
                Some(known) if known.track == TrackKind::Async => {
                    self.shown_processes.insert(known.process.clone());
                    let tree = self.tree(task, columns.integer("parent", row), &id);
                    let ids = format!(r#""pid":{},{tree}"#, known.process);
                    self.event(&format!(r#"{{"ph":"b",{name},{ids},{rest}}}"#), text);
                    if let Some(finish) = finish {
                        let (ts, category) = (self.time(finish), json(&columns.text("kind", row)?));
                        self.event(&format!(r#"{{"ph":"e",{name},{ids},"ts":{ts},"cat":{category}}}"#), text);
                    }
                    None
                }
                Some(known) if known.track == TrackKind::State => {
                    let ids = Ids { process: known.process, thread: known.thread };
                    self.event(&format!(r#"{{"ph":"T",{name},{ids},{rest}}}"#), text);
                    None
                }
                _ => {
                    let is_inside = self.is_inside_of_an_end(&process, &location, start);
                    let ids = self.thread(&run, &location, (start, finish.unwrap_or(i64::MAX)), task, text);
                    let phase = if finish.is_some() || is_inside { "X" } else { "B" };
                    self.event(&format!(r#"{{"ph":"{phase}",{name},{ids},{rest}}}"#), text);
                    Some(ids)
                }
            };
            if let Some(task) = task {
                let finish = finish.unwrap_or(i64::MAX);
                self.shown.insert(task, Shown { ids, number, start, finish, free: start });
            }
        }
        Ok(())
    }

    fn link(&mut self, link: &Link, text: &mut String) {
        let Link { source, target, kind, name, has_name, args } = link;
        let (source, target) = (*source, *target);
        let end = |task: i64| {
            let shown = self.shown.get(&task)?;
            Some((shown.ids.clone()?, self.time(shown.moment()), shown.number))
        };
        let (Some((from, sent, sender)), Some((to, received, receiver))) = (end(source), end(target)) else {
            self.unbound += u64::from(self.shown.contains_key(&source) && self.shown.contains_key(&target));
            return;
        };
        self.flows += 1;
        let flow = format!(r#""cat":{},"name":{},"id":{}"#, json(&format!("tq:{kind}")), json(name), self.flows);
        let task = |number: u32| format!(r#""args":{{"tq_task":{number}}}"#);
        let (sender, receiver) = (task(sender), task(receiver));
        let mut told = Vec::new();
        if self.places.are_told() {
            told.extend((!has_name).then(|| r#""name":null"#.to_owned()));
            told.extend(args.as_ref().map(|args| format!(r#""args":{{{args}}}"#)));
        }
        let told = told_member(&told);
        self.event(&format!(r#"{{"ph":"s",{flow},{from},"ts":{sent},{sender}{told}}}"#), text);
        self.event(&format!(r#"{{"ph":"f","bp":"e",{flow},{to},"ts":{received},{receiver}}}"#), text);
    }

    fn links(&mut self, batch: &RecordBatch, text: &mut String) -> Result<(), Failure> {
        let cells = Cells::new(batch)?;
        let columns = Columns::of(batch, &cells);
        let (Some(sources), Some(targets)) = (columns.integers("source"), columns.integers("target")) else {
            return Ok(());
        };
        for row in 0..batch.num_rows() {
            if sources.is_null(row) || targets.is_null(row) {
                self.left_out += 1;
                continue;
            }
            let (source, target) = (sources.value(row), targets.value(row));
            let (kind, name) = (columns.text("kind", row)?, columns.text("name", row)?);
            let kind = if kind.is_empty() { "flow".to_owned() } else { kind };
            let given = columns.text("args", row)?;
            let args = members(&given).map(str::to_owned);
            self.losses.arguments += u64::from(args.is_some() && !self.places.are_told());
            let has_name = !columns.is_null("name", row);
            let link = Link { source, target, kind, name, has_name, args };
            match &mut self.only {
                // The tasks come later.
                Some(only) => {
                    only.extend([source, target]);
                    self.links.push(link);
                }
                None => self.link(&link, text),
            }
        }
        Ok(())
    }

    /// What our reader is told of a counter or an instant.
    fn told(&self, columns: &Columns<'_>, row: usize, has_time: bool) -> Result<String, Failure> {
        let mut members = Vec::new();
        if columns.has("value") {
            for (key, usual) in [("kind", "level"), ("unit", "")] {
                if columns.has(key) && columns.text(key, row)? != usual {
                    members.push(format!(r#""{key}":{}"#, columns.json(key, row)?));
                }
            }
            members.extend(columns.is_null("location", row).then(|| r#""location":null"#.to_owned()));
        }
        let task = columns.integer("task", row).and_then(|task| self.shown.get(&task));
        members.extend(task.map(|task| format!(r#""task":{}"#, task.number)));
        members.extend((!has_time).then(|| r#""time":null"#.to_owned()));
        Ok(told_member(&members))
    }

    /// Says how many tasks were written and which belong to others than those around them, run by run.
    fn tell_tasks(&mut self, text: &mut String) {
        if !self.places.are_told() {
            return;
        }
        for (process, of) in std::mem::take(&mut self.tasks) {
            let parents = self.parents.remove(&process).unwrap_or_default();
            let shown = |(task, parent): &(u32, i64)| Some([*task, self.shown.get(parent)?.number]);
            let known: Vec<[u32; 2]> = parents.iter().filter_map(shown).collect();
            let mut parts: Vec<&[[u32; 2]]> = known.chunks(PARENTS_OF_AN_EVENT).collect();
            if parts.is_empty() {
                parts.push(&[]);
            }
            for part in parts {
                let numbers: Vec<String> = part.as_flattened().iter().map(u32::to_string).collect();
                let args = format!(r#"{{"of":{of},"parents":[{}]}}"#, numbers.join(","));
                self.event(&format!(r#"{{"ph":"M","name":"tq_tasks","pid":{process},"args":{args}}}"#), text);
            }
        }
    }

    fn counters(&mut self, batch: &RecordBatch, text: &mut String) -> Result<(), Failure> {
        let cells = Cells::new(batch)?;
        let columns = Columns::of(batch, &cells);
        let Some(times) = columns.integers("time") else { return Ok(()) };
        let values = columns.at("value").and_then(|at| batch.column(at).as_primitive_opt::<Float64Type>());
        let Some(values) = values else { return Ok(()) };
        for row in 0..batch.num_rows() {
            let has_time = times.is_valid(row);
            let from = self.stretch.map_or(0, |(from, _)| from);
            let (time, value) = (if has_time { times.value(row) } else { from }, values.value(row));
            if (!has_time && !self.places.are_told()) || values.is_null(row) || !value.is_finite() {
                self.left_out += 1;
                continue;
            }
            if !self.shows_all() && self.stretch.is_some_and(|(from, to)| time < from || to < time) {
                continue;
            }
            let (run, location) = (columns.text("run", row)?, columns.text("location", row)?);
            let process = self.process_of(&run, &location, text);
            if !self.shows_all() && self.stretch.is_some() && !self.shown_processes.contains(&process) {
                continue;
            }
            let mut name = columns.text("name", row)?;
            let mut ids = format!(r#""pid":{process}"#);
            if self.places.are_told() {
                if !location.is_empty() {
                    ids = self.shown_by(&run, &location, text).to_string();
                }
                let _ = write!(ids, r#","cat":{}{}"#, json(&format!("tq:{name}")), self.told(&columns, row, has_time)?);
            }
            if self.places.get(&location).is_none_or(|known| known.track != TrackKind::Process) && !location.is_empty()
            {
                // A counter belongs to a process, whose other locations may have it too.
                let _ = write!(name, " {location}");
            }
            let (name, ts, value) = (json(&name), self.time(time), serde_json::Value::from(value));
            self.event(&format!(r#"{{"ph":"C","name":{name},{ids},"ts":{ts},"args":{{"":{value}}}}}"#), text);
        }
        Ok(())
    }

    fn instants(&mut self, batch: &RecordBatch, text: &mut String) -> Result<(), Failure> {
        let cells = Cells::new(batch)?;
        let columns = Columns::of(batch, &cells);
        let Some(times) = columns.integers("time") else { return Ok(()) };
        for row in 0..batch.num_rows() {
            let has_time = times.is_valid(row);
            let time = if has_time { times.value(row) } else { self.stretch.map_or(0, |(from, _)| from) };
            let is_outside = self.stretch.is_none_or(|(from, to)| time < from || to < time);
            if (is_outside && !self.shows_all()) || (!has_time && !self.places.are_told()) {
                self.losses.events += u64::from(!has_time);
                continue;
            }
            let (run, location) = (columns.text("run", row)?, columns.text("location", row)?);
            let (name, kind) = (columns.text("name", row)?, columns.text("kind", row)?);
            let task = columns.integer("task", row);
            let (scope, ids) = match (self.places.get(&location), location.is_empty()) {
                (Some(known), _) if known.track == TrackKind::Thread || known.track == TrackKind::State => {
                    ("t", format!(r#""pid":{},"tid":{},"#, known.process, known.thread))
                }
                (Some(Known { track: TrackKind::Async, process, name: Some(lane), .. }), _)
                    if let Some((_, tree)) = task.and_then(|task| self.tree_of.get(&task))
                        && (kind == "async_instant" || kind == "step") =>
                {
                    let category = json(lane.strip_suffix(&format!("/{name}")).unwrap_or_default());
                    ("", format!(r#""cat":{category},"pid":{process},{tree},"#))
                }
                (Some(known), _) => ("p", format!(r#""pid":{},"#, known.process)),
                (None, true) if self.places.are_told() => {
                    ("g", format!(r#""pid":{},"#, self.process_of(&run, &location, text)))
                }
                (None, true) => ("g", String::new()),
                (None, false) => ("t", format!("{},", self.shown_by(&run, &location, text))),
            };
            let (name, ts, mut args) = (json(&name), self.time(time), columns.args(row)?);
            let ids = match self.places.are_told() {
                true => {
                    let told = self.told(&columns, row, has_time)?;
                    format!(r#"{ids}"cat":{}{told},"#, json(&format!("tq:{kind}")))
                }
                false => ids,
            };
            let is_other = ["object", "sample", "memory_dump", "context"].contains(&kind.as_str());
            let phase = match args.as_mut().filter(|_| is_other).and_then(own_phase) {
                Some(phase) => phase,
                None if scope.is_empty() => "n".to_owned(),
                None => "i".to_owned(),
            };
            let args = args.map_or_else(String::new, |args| format!(r#","args":{{{args}}}"#));
            let scope = if scope.is_empty() { String::new() } else { format!(r#""s":"{scope}","#) };
            self.event(&format!(r#"{{"ph":"{phase}",{scope}{ids}"name":{name},"ts":{ts}{args}}}"#), text);
        }
        Ok(())
    }
}

/// The columns of a batch by name.
struct Columns<'a> {
    batch: &'a RecordBatch,
    cells: &'a Cells<'a>,
    kinds: Vec<Kind>,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch, cells: &'a Cells<'a>) -> Columns<'a> {
        Columns { batch, cells, kinds: kinds(&batch.schema()) }
    }

    fn at(&self, name: &str) -> Option<usize> {
        self.batch.schema_ref().fields().iter().position(|field| field.name() == name)
    }

    fn has(&self, name: &str) -> bool {
        self.at(name).is_some()
    }

    /// The cell as JSON text; `null` for NULL.
    fn json(&self, name: &str, row: usize) -> Result<String, Failure> {
        Ok(if self.is_null(name, row) { "null".to_owned() } else { json(&self.text(name, row)?) })
    }

    fn is_null(&self, name: &str, row: usize) -> bool {
        self.at(name).is_none_or(|at| self.cells.is_null(at, row))
    }

    fn integer(&self, name: &str, row: usize) -> Option<i64> {
        self.integers(name).filter(|integers| integers.is_valid(row)).map(|integers| integers.value(row))
    }

    fn integers(&self, name: &str) -> Option<&'a datafusion::arrow::array::Int64Array> {
        self.batch.column(self.at(name)?).as_primitive_opt::<Int64Type>()
    }

    /// The cell as text; '' for NULL and for what is no column.
    fn text(&self, name: &str, row: usize) -> Result<String, Failure> {
        let mut text = String::new();
        if let Some(column) = self.at(name) {
            self.cells.exact(column, row, &mut text)?;
        }
        Ok(text)
    }

    /// The arguments of a row: the members of `args`, and the columns that are none of ours; `None` without either.
    fn args(&self, row: usize) -> Result<Option<String>, Failure> {
        let given = self.text("args", row)?;
        let mut args = match members(&given) {
            Some(members) => members.to_owned(),
            None if given.is_empty() => String::new(),
            None => format!(r#""args":{}"#, json(&given)),
        };
        for (column, field) in self.batch.schema_ref().fields().iter().enumerate() {
            if KNOWN.contains(&field.name().as_str()) || field.name() == "time" || self.cells.is_null(column, row) {
                continue;
            }
            let value = self.text(field.name(), row)?;
            let is_number = self.kinds[column].is_right()
                && (self.kinds[column] != Kind::Float || value.parse::<f64>().is_ok_and(f64::is_finite));
            let value = if is_number { value } else { json(&value) };
            let comma = if args.is_empty() { "" } else { "," };
            let _ = write!(args, "{comma}{}:{value}", json(field.name()));
        }
        // `{}` is not NULL.
        Ok((!given.is_empty() || !args.is_empty()).then_some(args))
    }
}

/// The member of an event that tells our reader what Chrome has no word for; nothing without members of its own.
fn told_member(members: &[String]) -> String {
    if members.is_empty() { String::new() } else { format!(r#","{TQ}":{{{}}}"#, members.join(",")) }
}

/// Takes the phase out of the arguments of what is no instant: the life of an object, a sample, a memory dump, a context.
fn own_phase(args: &mut String) -> Option<String> {
    const MEMBER: &str = r#""ph":""#;
    let from = args.find(MEMBER)?;
    let phase = args[from + MEMBER.len()..].chars().next().filter(|phase| "NODPVv()".contains(*phase))?;
    let member = format!(r#"{MEMBER}{phase}""#);
    let rest = args[from..].strip_prefix(&member)?;
    let (before, after) = match rest.strip_prefix(',') {
        Some(after) => (&args[..from], after),
        None => (args[..from].strip_suffix(',').unwrap_or(&args[..from]), rest),
    };
    *args = format!("{before}{after}");
    Some(phase.to_string())
}

impl Rows {
    fn of(schema: &Schema) -> Rows {
        let has = |name: &str| schema.column_with_name(name).is_some();
        if has(START) && (has(FINISH) || has("duration")) {
            Rows::Tasks
        } else if has("source") && has("target") {
            Rows::Links
        } else if has("time") {
            if has("value") { Rows::Counters } else { Rows::Events }
        } else {
            Rows::Tasks
        }
    }
}

/// What the session knows of tasks that are told apart by `task`, and the tasks at the ends of links. Of a Chrome trace, the counters
/// of Kineto's instants come with the instants.
fn beside(schema: &Schema) -> &'static [&'static str] {
    beside_with(
        schema,
        &[
            LINKS,
            "SELECT c.run, c.location, c.name, c.time, c.value FROM counters c \
             LEFT ANTI JOIN (SELECT DISTINCT run, time FROM events WHERE name = '[memory]') m \
             ON m.run = c.run AND m.time = c.time AND (c.name LIKE 'Bytes %' OR c.name LIKE 'Total %') \
             ORDER BY c.time",
            EVENTS,
        ],
    )
}

/// Likewise, of a trace that was no Chrome trace.
fn beside_told(schema: &Schema) -> &'static [&'static str] {
    beside_with(schema, &[LINKS, "SELECT * FROM counters ORDER BY time NULLS FIRST", EVENTS])
}

const LINKS: &str = "SELECT source, target, kind, name, args FROM links";
const EVENTS: &str = "SELECT run, location, name, kind, task, time, args FROM events ORDER BY time NULLS FIRST";

fn beside_with(schema: &Schema, of_tasks: &'static [&'static str]) -> &'static [&'static str] {
    match Rows::of(schema) {
        Rows::Tasks if schema.column_with_name("task").is_some() => of_tasks,
        Rows::Links => &["SELECT * FROM tasks ORDER BY start, finish DESC, task"],
        _ => &[],
    }
}

/// Tasks are sorted by start, the longer and then the smaller one first, and get `start` and `finish` beside whatever else the
/// result has. Counters are sorted by time.
fn arrange(frame: DataFrame) -> PlanResult<DataFrame> {
    let by = |name: &str, ascending| Expr::Column(Column::from_name(name)).sort(ascending, false);
    let has = |name: &str| frame.schema().fields().iter().any(|field| field.name() == name);
    let (first, sort) = match Rows::of(frame.schema().as_arrow()) {
        Rows::Links => return Ok(frame),
        Rows::Counters => {
            let cell = |name: &str, data_type| cast(Expr::Column(Column::from_name(name)), data_type).alias(name);
            (vec![cell("time", DataType::Int64), cell("value", DataType::Float64)], vec![by("time", true)])
        }
        Rows::Tasks | Rows::Events => {
            let (start, finish) = svg::span(&frame, "chrome writes tasks, links and counters", "")?;
            let cell = |expr, name: &str| cast(expr, DataType::Int64).alias(name);
            let mut order = vec![by(START, true), by(FINISH, false)];
            // Of tasks with one span, the one that comes first is around the other.
            order.extend(has("task").then(|| by("task", true)));
            (vec![cell(start, START), cell(finish, FINISH)], order)
        }
    };
    let mut columns = first;
    let mut seen: HashSet<String> = columns.iter().map(|column| column.schema_name().to_string()).collect();
    let others: Vec<Expr> = frame
        .schema()
        .iter()
        .filter(|(_, field)| seen.insert(field.name().clone()))
        .map(|(qualifier, field)| Expr::Column(Column::from((qualifier, field))).alias(field.name()))
        .collect();
    columns.extend(others);
    frame.select(columns)?.sort(sort)
}

impl Output for Chrome {
    fn preparation(&self) -> Preparation {
        Preparation { arrange, beside: if self.places.are_told() { beside_told } else { beside } }
    }

    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Failure> {
        if self.results > 0 {
            return Err(only_one("chrome"));
        }
        self.results += 1;
        let rows = Rows::of(schema);
        self.only = (rows == Rows::Links).then(HashSet::new);
        if rows == Rows::Tasks && schema.column_with_name("task").is_some() {
            self.losses.messages = self.places.messages.unsigned_abs();
        }
        let mut beside = std::mem::take(&mut self.places.beside);
        beside.remove("traceEvents");
        if self.places.are_unknown() {
            beside = self.places.header(self.tick);
        }
        let mut text = "{".to_owned();
        for (key, value) in beside {
            let _ = write!(text, "{}:{value},", json(&key));
        }
        text.push_str("\"traceEvents\":[");
        for event in self.places.metadata() {
            self.event(&event, &mut text);
        }
        Ok(self.writer.write_all(text.as_bytes())?)
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let mut text = String::new();
        match Rows::of(batch.schema_ref()) {
            Rows::Tasks => self.tasks(batch, &mut text)?,
            Rows::Links => self.links(batch, &mut text)?,
            Rows::Counters => self.counters(batch, &mut text)?,
            Rows::Events => self.instants(batch, &mut text)?,
        }
        Ok(self.writer.write_all(text.as_bytes())?)
    }

    fn end(&mut self) -> Result<(), Failure> {
        let mut text = String::new();
        for link in std::mem::take(&mut self.links) {
            self.link(&link, &mut text);
        }
        self.tell_tasks(&mut text);
        text.push_str("\n]}\n");
        self.writer.write_all(text.as_bytes())?;
        if self.left_out > 0 {
            terminal::note(&format!(
                "{} {} without a start (or time, or value), or with a finish before it, cannot be shown",
                self.left_out,
                plural(self.left_out, "row")
            ));
        }
        if self.unbound > 0 {
            terminal::note(&format!(
                "{} {} of asynchronous tasks cannot be shown: a flow needs a thread",
                self.unbound,
                plural(self.unbound, "link")
            ));
        }
        let Losses { events, arguments, messages } = self.losses;
        let losses = [
            (messages, format!("{messages} {}", plural(messages, "message"))),
            (events, format!("{events} {} without a time", plural(events, "event"))),
            (arguments, format!("arguments of {arguments} {}", plural(arguments, "link"))),
        ];
        for (_, what) in losses.iter().filter(|(count, _)| *count > 0) {
            terminal::note(&format!("{what} cannot be shown: a Chrome trace has no place for them"));
        }
        Ok(self.writer.flush()?)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};

    use super::*;
    use crate::output::buffer::{Buffer, write};

    #[test]
    fn a_trace_is_valid_json_whose_threads_nest() {
        // w  0 [---------------) 10
        // w  2   [-----) 5                 nests
        // w  4       [---------) 12        does not
        // w  11                    [--     never ends, within `c`
        // v  1     [--                     never ends
        let batch = RecordBatch::try_from_iter([
            ("start", Arc::new(Int64Array::from(vec![Some(0), Some(1), Some(2), Some(4), Some(11), None])) as ArrayRef),
            ("finish", Arc::new(Int64Array::from(vec![Some(10), None, Some(5), Some(12), None, None]))),
            ("name", Arc::new(StringArray::from(vec!["a\"", "z", "b", "c", "d", "e"]))),
            ("location", Arc::new(StringArray::from(vec!["w", "v", "w", "w", "w", "w"]))),
            ("ratio", Arc::new(Float64Array::from(vec![0.5, 1.0, f64::NAN, 1.0, 1.0, 1.0]))),
        ])
        .unwrap();
        let buffer = Buffer::default();
        write(&mut Chrome::new(buffer.writer(), Tick::Nanosecond, Places::default()), &[batch]);
        let trace: serde_json::Value = serde_json::from_slice(&buffer.bytes()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let tasks: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!(tasks.len(), 4);
        assert_eq!(tasks[0]["tid"], tasks[1]["tid"]);
        assert_ne!(tasks[0]["tid"], tasks[2]["tid"]);
        assert_eq!(tasks[0]["name"], "a\"");
        assert_eq!(tasks[0]["args"]["ratio"], 0.5);
        assert_eq!(tasks[1]["args"]["ratio"], "NaN");
        let begun: Vec<_> = events.iter().filter(|event| event["ph"] == "B").collect();
        assert_eq!((begun.len(), &begun[0]["name"], begun[0].get("dur")), (1, &"z".into(), None));
        // The end of what is around it must not end it.
        assert_eq!((&tasks[3]["name"], tasks[3].get("dur")), (&"d".into(), None));
        assert!(events.iter().any(|event| event["name"] == "thread_name" && event["args"]["name"] == "w (2)"));
    }
}
