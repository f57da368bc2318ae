//! Build: ranks and graphs become the tables of one run.
//!
//! Rows of `tasks` stand in the order of ranks, streams and starts, as in the tables of PaRSEC's own converter; after them come
//! those that only a graph names. Positions are therefore known before anything is joined.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::{Int64Array, StringArray, StringBuilder};
use datafusion::arrow::buffer::NullBuffer;
use serde_json::{Map, Value};

use super::dot::Graph;
use super::executions::{Joined, NONE, Tasks};
use super::join;
use super::messages::{self, Messages};
use super::naming::{plain, unscoped};
use super::rank::{Lane, NO_CLASS, Rank, Reading, UNFINISHED};
use super::types::{Class, decimal};
use crate::error::ImportError;
use crate::tables;
use crate::trace::{RunBuilder, Stats, findings};

/// What is known of a rank: its events, its graph, or both.
pub(super) struct Part {
    pub(super) rank: i64,
    pub(super) profile: Option<Rank>,
    pub(super) graph: Option<Graph>,
    /// What was found in the graph.
    pub(super) graph_stats: Stats,
}

/// Fills the tables from the parts of a run, which are in order of their ranks.
pub(super) fn build(mut parts: Vec<Part>, builder: &mut RunBuilder) -> Result<(), ImportError> {
    for part in &mut parts {
        builder.stats.absorb(std::mem::take(&mut part.graph_stats));
        builder
            .stats
            .absorb(part.profile.as_mut().map(|profile| std::mem::take(&mut profile.stats)).unwrap_or_default());
    }
    // Keys of tasks count ranks by their events, graphs by the same numbers; a rank without events has one behind them.
    let ranks: Vec<&Rank> = parts.iter().filter_map(|part| part.profile.as_ref()).collect();
    let mut graphs: Vec<(usize, &Graph)> = Vec::new();
    let mut without_profile = ranks.len();
    for part in &parts {
        let Some(graph) = &part.graph else { continue };
        let place = ranks.iter().position(|rank| rank.rank == part.rank).unwrap_or_else(|| {
            without_profile += 1;
            without_profile - 1
        });
        graphs.push((place, graph));
    }
    let mut next_row = 0;
    let mut first_rows: Vec<Vec<i64>> = Vec::with_capacity(ranks.len());
    for rank in &ranks {
        let mut of_lanes = Vec::with_capacity(rank.lanes.len());
        for lane in &rank.lanes {
            of_lanes.push(next_row);
            next_row += lane.starts.len() as i64;
        }
        first_rows.push(of_lanes);
    }
    let mut tasks = Tasks::of(&ranks, &first_rows);
    let joined = join::join(&graphs, &ranks, &first_rows, &mut tasks, next_row, &mut builder.stats);
    let mut messages = messages::match_transfers(&ranks, &first_rows, builder);
    messages.link(&ranks, &tasks, &joined, &graphs);

    info(&ranks, builder);
    missing_ranks(&parts, &messages, builder);
    append_locations(&parts, &messages, &graphs, &joined, builder)?;
    counters(&ranks, builder)?;
    instants(&ranks, builder)?;
    let without_events = without_events(&parts, &joined, &graphs, builder);
    let rows: Vec<Vec<LaneCells>> = ranks
        .iter()
        .enumerate()
        .map(|(index, rank)| lane_cells(index, rank, &first_rows[index], &tasks, &joined))
        .collect();
    append_links(&tasks, &joined, &graphs, &messages, builder)?;
    messages.append(builder)?;
    drop((ranks, graphs));
    let profiles = parts.into_iter().filter_map(|part| part.profile);
    for (rank, cells) in profiles.zip(rows) {
        append_lanes(rank, cells, builder)?;
    }
    builder.append(without_events)
}

/// What the run says about itself.
fn info(ranks: &[&Rank], builder: &mut RunBuilder) {
    let Some(first) = ranks.first() else { return };
    builder.info.program = Some(first.program.clone()).filter(|program| !program.is_empty());
    let asked =
        |rank: &&Rank| rank.infos.iter().find(|(key, _)| key == "nb_cores").and_then(|(_, value)| value.parse().ok());
    let cores: Option<Vec<i64>> = ranks.iter().map(asked).collect();
    let workers = || {
        ranks
            .iter()
            .flat_map(|rank| &rank.lanes)
            .filter(|lane| StreamKind::of(&lane.name) == StreamKind::Worker)
            .count()
    };
    builder.info.cores =
        cores.map(|cores| cores.iter().sum()).or_else(|| i64::try_from(workers()).ok().filter(|n| *n > 0));
    // Infos on which all ranks agree belong to the run; the machine's topology stays with its rank.
    for (key, value) in &first.infos {
        let same = ranks.iter().all(|rank| rank.infos.iter().any(|other| other.0 == *key && other.1 == *value));
        if same && key != "HWLOC-XML" {
            insert(&mut builder.info.args, key, value);
        }
    }
    let events = ranks.iter().flat_map(|rank| &rank.lanes).count();
    builder.stats.note(findings::NO_EVENTS, u64::from(events == 0), || {
        "no stream has an event: was the module task_profiler on (--mca mca_pins task_profiler)?".to_owned()
    });
}

/// A key that comes twice becomes a list.
fn insert(facts: &mut Map<String, Value>, key: &str, value: &str) {
    match facts.get_mut(key) {
        None => {
            facts.insert(key.to_owned(), value.into());
        }
        Some(Value::Array(values)) => values.push(value.into()),
        Some(known) => *known = Value::Array(vec![known.take(), value.into()]),
    }
}

/// No file says how many ranks there were; a gap, a graph, or a rank that a message names, does.
fn missing_ranks(parts: &[Part], messages: &Messages, builder: &mut RunBuilder) {
    let has_profiles = parts.iter().any(|part| part.profile.is_some());
    let is_there = |part: &&Part| part.profile.is_some() || !has_profiles;
    let known: BTreeSet<i64> = parts.iter().filter(is_there).map(|part| part.rank).collect();
    let world = parts.iter().filter_map(|part| part.profile.as_ref()?.world).max();
    let last = parts
        .last()
        .map(|part| part.rank)
        .into_iter()
        .chain(messages.ranks())
        .chain(world.map(|world| world - 1))
        .max();
    // Counted, not listed: a damaged number of ranks must cost nothing.
    let missing = last.map_or(0, |last| last.saturating_add(1).abs_diff(known.len() as i64));
    builder.stats.note(findings::RANK_MISSING, missing, || {
        let first = (0..).find(|rank| !known.contains(rank)).unwrap_or(0);
        match parts.iter().any(|part| part.rank == first) {
            true => format!("rank {first} has a graph and no .prof file: its tasks have no times"),
            false => format!("rank {first} is not there; tasks of other ranks may depend on it"),
        }
    });
}

/// What a stream is, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamKind {
    Worker,
    Communication,
    /// Device and stream; the first two copy to and from the device.
    Gpu(u32, u32),
    Other,
}

impl StreamKind {
    fn of(name: &str) -> StreamKind {
        if name.starts_with("PaRSEC Thread") {
            return StreamKind::Worker;
        }
        if name.starts_with("Comm thread") {
            return StreamKind::Communication;
        }
        let gpu = name.strip_prefix("GPU ").and_then(|numbers| {
            let (device, stream) = numbers.split_once('-')?;
            Some((device.parse().ok()?, stream.parse().ok()?))
        });
        gpu.map_or(StreamKind::Other, |(device, stream)| StreamKind::Gpu(device, stream))
    }

    /// `locations.kind` and `role`.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            StreamKind::Worker => ("worker", "compute"),
            StreamKind::Communication => ("thread", "communication"),
            StreamKind::Gpu(_, 0 | 1) => ("stream", "communication"),
            StreamKind::Gpu(..) | StreamKind::Other => ("stream", "compute"),
        }
    }
}

fn process(rank: i64) -> String {
    format!("rank {rank}")
}

fn stream(rank: i64, index: usize) -> String {
    format!("rank {rank}/stream {index}")
}

fn device(rank: i64, device: u32) -> String {
    format!("rank {rank}/GPU {device}")
}

/// Where a node of a graph ran: the stream of that thread, else a location of its own.
fn thread(part: &Part, thread: u32, virtual_process: u32) -> (String, bool) {
    let mut lanes = part.profile.iter().flat_map(|profile| &profile.lanes);
    match lanes.position(|lane| lane.is_thread(thread, virtual_process)) {
        Some(index) => (stream(part.rank, index), true),
        None => (format!("rank {}/VP {virtual_process}/thread {thread}", part.rank), false),
    }
}

/// One row of `locations`.
struct Place {
    location: String,
    parent: Option<String>,
    kind: &'static str,
    name: String,
    rank: i64,
    role: &'static str,
    facts: Map<String, Value>,
}

fn append_locations(
    parts: &[Part],
    messages: &Messages,
    graphs: &[(usize, &Graph)],
    joined: &Joined,
    builder: &mut RunBuilder,
) -> Result<(), ImportError> {
    let mut places: Vec<Place> = Vec::new();
    for part in parts {
        let mut facts = Map::new();
        for (key, value) in part.profile.iter().flat_map(|profile| &profile.infos) {
            insert(&mut facts, key, value);
        }
        let below = |location: String, kind, name: String, role| Place {
            location,
            parent: Some(process(part.rank)),
            kind,
            name,
            rank: part.rank,
            role,
            facts: Map::new(),
        };
        places.push(Place {
            parent: None,
            facts,
            ..below(process(part.rank), "process", process(part.rank), "compute")
        });
        for (index, lane) in part.profile.iter().flat_map(|profile| &profile.lanes).enumerate() {
            let sort = StreamKind::of(&lane.name);
            let (kind, role) = sort.words();
            let mut place = below(stream(part.rank, index), kind, lane.name.clone(), role);
            if let StreamKind::Gpu(number, _) = sort {
                let location = device(part.rank, number);
                place.parent = Some(location.clone());
                if !places.iter().any(|place| place.location == location) {
                    places.push(below(location, "device", format!("GPU {number}"), "compute"));
                }
            }
            for (key, value) in &lane.infos {
                insert(&mut place.facts, key, value);
            }
            places.push(place);
        }
        // Threads that only the graph names: nothing was measured on them, so they do not count as workers that could
        // have been idle.
        let own = joined.without_event.iter().filter_map(|task| task.node.as_ref());
        let own = own.filter(|(graph, _)| part.graph.as_ref().is_some_and(|own| std::ptr::eq(own, graphs[*graph].1)));
        let threads: BTreeSet<(u32, u32)> = own.map(|(_, node)| (node.virtual_process, node.thread)).collect();
        for (virtual_process, number) in threads {
            let (location, is_stream) = thread(part, number, virtual_process);
            if !is_stream {
                places.push(below(location, "thread", format!("Thread {number} of VP {virtual_process}"), "compute"));
            }
        }
    }
    let known: BTreeSet<i64> = parts.iter().map(|part| part.rank).collect();
    let others: BTreeSet<i64> = messages.ranks().filter(|rank| !known.contains(rank)).collect();
    for rank in others {
        places.push(Place {
            location: process(rank),
            parent: None,
            kind: "process",
            name: process(rank),
            rank,
            role: "compute",
            facts: Map::new(),
        });
    }
    let all = || places.iter();
    let args = |place: &Place| (!place.facts.is_empty()).then(|| Value::Object(place.facts.clone()).to_string());
    builder.append_derived(tables::Locations {
        location: all().map(|place| place.location.as_str()).collect(),
        parent: all().map(|place| place.parent.as_deref()).collect(),
        kind: all().map(|place| place.kind).collect(),
        name: all().map(|place| Some(place.name.as_str()).filter(|name| !name.is_empty())).collect(),
        process: all().map(|place| place.rank.to_string()).collect(),
        sort_index: (0..places.len() as i64).collect(),
        role: all().map(|place| place.role).collect(),
        clock: all().map(|place| process(place.rank)).collect(),
        args: all().map(args).collect(),
    })
}

/// Columns of a stream that need the other ranks.
struct LaneCells {
    ids: StringArray,
    parents: Option<Int64Array>,
    stack_parents: Option<Int64Array>,
}

fn lane_cells(index: usize, rank: &Rank, first_rows: &[i64], tasks: &Tasks, joined: &Joined) -> Vec<LaneCells> {
    let of_lane = |(lane, first_row): (&Lane, &i64)| {
        let rows = lane.starts.len();
        let mut ids = StringBuilder::with_capacity(rows, rows * 6);
        let mut text = Vec::new();
        let stack: Vec<i64> =
            lane.parents.iter().map(|parent| if *parent < 0 { -1 } else { parent + first_row }).collect();
        let mut parents: Option<Vec<i64>> = None;
        for row in 0..rows {
            text.clear();
            match rank.classes[usize::from(lane.entries[row])] {
                Class::Task { .. } => {
                    let task = lane.key(index, row).and_then(|key| tasks.of_row(&key, first_row + row as i64));
                    if let Some(task) = task.filter(|task| task.place != NONE) {
                        ids.append_value(joined.name(task.place));
                        continue;
                    }
                    task_id(lane, row, &mut text);
                }
                // It belongs to the task that it completes, and stands on the stack of another.
                Class::ReleaseDeps => {
                    if let Some(task) = lane.key(index, row).and_then(|key| tasks.find(&key)) {
                        parents.get_or_insert_with(|| stack.clone())[row] = tasks.all[task].last;
                    }
                    ids.append_null();
                    continue;
                }
                Class::Runtime => {
                    ids.append_null();
                    continue;
                }
                _ => decimal(lane.ids[row], &mut text),
            }
            ids.append_value(String::from_utf8_lossy(&text));
        }
        let stack_parents = positions(stack);
        LaneCells {
            ids: ids.finish(),
            parents: parents.map_or_else(|| stack_parents.clone(), positions),
            stack_parents,
        }
    };
    rank.lanes.iter().zip(first_rows).map(of_lane).collect()
}

/// `2:1:17`: taskpool, class number, id. The class number is not known when no task of its type ended.
fn task_id(lane: &Lane, row: usize, text: &mut Vec<u8>) {
    decimal(u64::from(lane.taskpools[row]), text);
    text.push(b':');
    match lane.class_numbers[row] {
        NO_CLASS => text.push(b'?'),
        class_number => decimal(u64::from(class_number), text),
    }
    text.push(b':');
    decimal(lane.ids[row], text);
}

/// Positions of tasks, NULL where negative; nothing when all are.
fn positions(positions: Vec<i64>) -> Option<Int64Array> {
    let known: NullBuffer = positions.iter().map(|position| *position >= 0).collect();
    (known.null_count() < known.len()).then(|| Int64Array::new(positions.into(), Some(known)))
}

/// Moves the rows of a rank into `tasks`.
fn append_lanes(rank: Rank, cells: Vec<LaneCells>, builder: &mut RunBuilder) -> Result<(), ImportError> {
    let names: Vec<i32> = rank.names.iter().map(|name| builder.word(tables::Tasks::name, name)).collect();
    let classes = || rank.classes.iter().map(|class| class.words());
    let kinds: Vec<i32> = classes().map(|(kind, _)| builder.word(tables::Tasks::kind, kind)).collect();
    let roles: Vec<i32> = classes().map(|(_, role)| builder.word(tables::Tasks::role, role)).collect();
    for (index, (lane, own)) in rank.lanes.into_iter().zip(cells).enumerate() {
        if lane.starts.is_empty() {
            continue;
        }
        let keys = |words: &[i32]| lane.entries.iter().map(|entry| words[usize::from(*entry)]).collect();
        let (name, kind, role) = (keys(&names), keys(&kinds), keys(&roles));
        let ended: NullBuffer = lane.finishes.iter().map(|finish| *finish != UNFINISHED).collect();
        let finishes = Int64Array::new(lane.finishes.into(), (ended.null_count() > 0).then_some(ended));
        let nested: NullBuffer = lane.depths.iter().map(|depth| *depth >= 0).collect();
        let depths: Vec<i64> = lane.depths.iter().map(|depth| i64::from(*depth)).collect();
        let depths = Int64Array::new(depths.into(), (nested.null_count() > 0).then_some(nested));
        builder.append(tables::Tasks {
            id: own.ids.into(),
            parent: own.parents.into(),
            stack_parent: own.stack_parents.into(),
            name,
            kind,
            role,
            location: stream(rank.rank, index).as_str().into(),
            start: lane.starts.into(),
            finish: finishes.into(),
            depth: depths.into(),
            args: lane.args.into(),
            ..Default::default()
        })?;
    }
    Ok(())
}

/// The columns of tasks that only a graph knows.
fn without_events(
    parts: &[Part],
    joined: &Joined,
    graphs: &[(usize, &Graph)],
    builder: &mut RunBuilder,
) -> tables::Tasks {
    // Rows that come from no statement of their own.
    let undeclared = joined.without_event.iter().filter(|task| task.node.is_none()).count();
    builder.stats.records(undeclared as u64);
    let classes = classes(parts, joined, graphs);
    let mut columns: [Vec<Option<String>>; 4] = Default::default();
    let mut roles = Vec::new();
    for task in &joined.without_event {
        let name = joined.name(task.place);
        let (class, location, args) = match &task.node {
            Some((index, node)) => {
                let graph = graphs[*index].1;
                let part = parts.iter().find(|part| part.graph.as_ref().is_some_and(|own| std::ptr::eq(own, graph)));
                let args =
                    format!(r#"{{"taskpool_id":{},"tid":{},"tcid":{}}}"#, node.taskpool, node.id, node.class_number);
                let location = part.map(|part| thread(part, node.thread, node.virtual_process).0);
                (plain(graph.words.word(node.class)), location, Some(args))
            }
            None => (join::class_of(name, |class| classes.contains_key(class)).to_owned(), None, None),
        };
        let is_flush = class.ends_with("dtd_data_flush");
        roles.push(Class::Task { is_flush }.words().1);
        columns[0].push(Some(name.to_owned()));
        columns[1].push(Some(classes.get(&class).map_or(class, |name| (*name).to_owned())));
        columns[2].push(location);
        columns[3].push(args);
    }
    let [ids, names, locations, args] = columns.map(StringArray::from);
    tables::Tasks {
        id: ids.into(),
        name: names.into(),
        kind: "task".into(),
        role: roles.into_iter().collect(),
        location: locations.into(),
        args: args.into(),
        ..Default::default()
    }
}

/// What classes are called, by what stands in the names of their tasks: as their events where they have some, `chol::TRSM`.
fn classes<'p>(parts: &'p [Part], joined: &Joined, graphs: &[(usize, &'p Graph)]) -> BTreeMap<String, &'p str> {
    if joined.without_event.is_empty() {
        return BTreeMap::new();
    }
    let mut classes = BTreeMap::new();
    for (_, graph) in graphs {
        let words: BTreeSet<i32> = graph.nodes.iter().map(|node| node.class).collect();
        classes.extend(words.into_iter().map(|word| graph.words.word(word)).map(|class| (plain(class), class)));
    }
    for rank in parts.iter().filter_map(|part| part.profile.as_ref()) {
        for (name, class) in rank.names.iter().zip(&rank.classes) {
            if let Class::Task { .. } = class {
                classes.insert(plain(unscoped(name)), name);
            }
        }
    }
    classes
}

fn append_links(
    tasks: &Tasks,
    joined: &Joined,
    graphs: &[(usize, &Graph)],
    messages: &Messages,
    builder: &mut RunBuilder,
) -> Result<(), ImportError> {
    for (index, (_, graph)) in graphs.iter().enumerate() {
        let places = &joined.places[index];
        let flows: Vec<i32> = (0..graph.words.len() as i32)
            .map(|word| builder.word(tables::Links::name, graph.words.word(word)))
            .collect();
        let end = |name: i32| places[name as usize] as usize;
        let args = graph.edges.iter().map(|edge| match (edge.is_last, edge.is_control) {
            (true, false) => Some(r#"{"made_ready":true}"#),
            (true, true) => Some(r#"{"made_ready":true,"control":true}"#),
            (false, true) => Some(r#"{"control":true}"#),
            (false, false) => None,
        });
        builder.append(tables::Links {
            source: graph.edges.iter().map(|edge| joined.last[end(edge.source)]).collect(),
            target: graph.edges.iter().map(|edge| joined.first[end(edge.target)]).collect(),
            kind: "dependency".into(),
            name: graph.edges.iter().map(|edge| flows[edge.flow as usize]).collect(),
            args: args.collect(),
        })?;
    }
    let between = |links: &[(i64, i64)], kind: &str| tables::Links {
        source: links.iter().map(|link| link.0).collect(),
        target: links.iter().map(|link| link.1).collect(),
        kind: kind.into(),
        ..Default::default()
    };
    let again = tasks.again();
    builder.stats.note(findings::EXECUTED_AGAIN, again.len() as u64, || {
        "executions of a task that had run before, linked `again`".to_owned()
    });
    builder.append_derived(tables::Links { name: "again".into(), ..between(&again, "dependency") })?;
    builder.append_derived(between(&messages.links, "communication"))
}

fn counters(ranks: &[&Rank], builder: &mut RunBuilder) -> Result<(), ImportError> {
    for rank in ranks {
        let all = || rank.readings.iter();
        // Memory belongs to the device, else to the process, whichever stream took and whichever gave it back.
        let location = |reading: &Reading| match StreamKind::of(&rank.lanes[reading.lane as usize].name) {
            _ if !reading.is_memory => stream(rank.rank, reading.lane as usize),
            StreamKind::Gpu(number, _) => device(rank.rank, number),
            _ => process(rank.rank),
        };
        builder.append_derived(tables::Counters {
            location: all().map(location).collect(),
            name: all().map(|reading| reading.name.as_str()).collect(),
            time: all().map(|reading| reading.time).collect(),
            value: all().map(|reading| reading.value).collect(),
            kind: all().map(|reading| if reading.is_memory { "delta" } else { "level" }).collect(),
            unit: all().map(|reading| reading.is_memory.then_some("bytes")).collect(),
            ..Default::default()
        })?;
    }
    Ok(())
}

fn instants(ranks: &[&Rank], builder: &mut RunBuilder) -> Result<(), ImportError> {
    for rank in ranks {
        let all = || rank.instants.iter();
        builder.append(tables::Events {
            location: all().map(|instant| stream(rank.rank, instant.lane as usize)).collect(),
            name: all().map(|instant| rank.names[usize::from(instant.entry)].as_str()).collect(),
            kind: all().map(|instant| if instant.is_unpaired { "unpaired" } else { "instant" }).collect(),
            time: all().map(|instant| instant.time).collect(),
            args: all().map(|instant| instant.args.as_deref()).collect(),
            ..Default::default()
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_told_by_their_names() {
        assert_eq!(StreamKind::of("PaRSEC Thread 0 of VP 0 Bound on 0x00000003"), StreamKind::Worker);
        assert_eq!(StreamKind::of("Comm thread"), StreamKind::Communication);
        assert_eq!(StreamKind::of("GPU 1-2"), StreamKind::Gpu(1, 2));
        assert_eq!(StreamKind::of("GPU of mine"), StreamKind::Other);
    }

    #[test]
    fn a_key_that_comes_twice_becomes_a_list() {
        let mut facts = Map::new();
        for (key, value) in [("dup", "1"), ("dup", "2"), ("one", "x"), ("dup", "3")] {
            insert(&mut facts, key, value);
        }
        assert_eq!(Value::Object(facts).to_string(), r#"{"dup":["1","2","3"],"one":"x"}"#);
    }
}
