//! Joins a task graph (DOT) with the tasks of a trace: its edges become rows of `links`.
//!
//! Ids of the graph are addresses and appear nowhere in a trace, so only names join, and only names that are unique on both
//! sides. Two exceptions are safe: a graph without conditions whose every traced task ran k times, one round after the
//! other (`run_n`), joins round by round; and module tasks, which leave no entry in a trace from 3.9 on, are replaced by
//! the graph inside of them.
//!
//! Accounting: each node and edge of the graph either becomes rows or is counted as left out, with the first case as an
//! example.

use std::collections::HashMap;

use datafusion::execution::memory_pool::MemoryReservation;

use super::dot::{EdgeKind, Graph, Shape};
use super::lanes::Trace;
use super::tfpx;
use crate::error::ImportError;
use crate::tables;
use crate::trace::{RunBuilder, Stats, findings};

/// Links that contracted modules may make in all; more is no graph that a person drew.
const CONTRACTED_MAX: usize = 1 << 22;

/// How nodes find tasks.
pub(super) struct Tasks<'t> {
    pub(super) trace: &'t Trace,
    /// Whether the trace cuts names as TFPX does.
    pub(super) names_cut: bool,
    /// Whether module tasks have entries in the trace.
    pub(super) has_modules: bool,
    /// Whether the times of all tasks can be compared.
    pub(super) one_clock: bool,
}

/// Rows of `links` on their way.
#[derive(Default)]
pub(super) struct Links {
    /// One for each edge that joined.
    recorded: Rows,
    /// More links of the same edge, and links that no edge draws.
    derived: Rows,
    /// The memory of all this.
    _memory: Option<MemoryReservation>,
}

/// Bytes of a link on its way, and of an execution of a task that may be in a round.
const LINK_BYTES: usize = 2 * size_of::<i64>() + size_of::<&str>() + size_of::<Option<String>>();
const EXECUTION_BYTES: usize = 4 * size_of::<i64>();

#[derive(Default)]
struct Rows {
    sources: Vec<i64>,
    targets: Vec<i64>,
    kinds: Vec<&'static str>,
    names: Vec<Option<String>>,
}

impl Rows {
    fn push(&mut self, source: i64, target: i64, kind: &'static str, name: Option<&str>) {
        self.sources.push(source);
        self.targets.push(target);
        self.kinds.push(kind);
        self.names.push(name.map(str::to_owned));
    }

    fn links(self) -> tables::Links {
        tables::Links {
            source: self.sources.into(),
            target: self.targets.into(),
            kind: self.kinds.into_iter().collect(),
            name: self.names.into_iter().collect(),
            ..Default::default()
        }
    }
}

impl Links {
    /// Moves the links into the run.
    pub(super) fn append(self, builder: &mut RunBuilder) -> Result<(), ImportError> {
        builder.append(self.recorded.links())?;
        builder.append_derived(self.derived.links())
    }

    /// The links of a graph whose nodes themselves are the tasks, by index.
    pub(super) fn of_nodes(graph: &Graph, stats: &mut Stats) -> Links {
        let nodes = (0..graph.nodes.len()).map(|node| Found::Rounds(vec![node as i64])).collect();
        book_strange(graph, stats);
        let none = vec![None; graph.nodes.len()];
        Joiner { graph, found: nodes, contracted: none, links: Links::default() }.edges(stats)
    }
}

/// Joins the graph with the tasks.
///
/// # Errors
/// The pool has no room for the executions and links of a graph that ran many times; tasks on disk cannot be read.
pub(super) fn join(graph: &Graph, tasks: &Tasks<'_>, stats: &mut Stats) -> Result<Links, ImportError> {
    book_strange(graph, stats);
    let memory = tasks.trace.room.hold();
    let found = tasks.find(graph, &memory)?;
    let modules = graph.module_clusters();
    let contracted: Vec<Option<usize>> = (0..graph.nodes.len())
        .map(|node| modules[node].filter(|_| !tasks.has_modules && matches!(found[node], Found::Nothing)))
        .collect();
    for (index, node) in graph.nodes.iter().enumerate() {
        let finding = match &found[index] {
            Found::Rounds(_) => findings::DOT_NODES_JOINED,
            Found::Repeated => findings::DOT_NAMES_NOT_UNIQUE,
            Found::Nothing if contracted[index].is_some() => findings::DOT_MODULES_CONTRACTED,
            Found::Nothing => findings::DOT_NODES_WITHOUT_TASK,
        };
        stats.left_out(finding, 1, || {
            let name = String::from_utf8_lossy(&node.name);
            if name.is_empty() { format!("{}, unnamed", node.id) } else { format!("`{name}`") }
        });
    }
    let links = Links { _memory: Some(memory), ..Links::default() };
    Ok(Joiner { graph, found, contracted, links }.edges(stats))
}

fn book_strange(graph: &Graph, stats: &mut Stats) {
    stats.records(graph.statements());
    stats.left_out(findings::DOT_STATEMENTS_NOT_UNDERSTOOD, graph.strange, || match &graph.strange_example {
        Some((line, statement)) => format!("line {line}: `{statement}`"),
        None => String::new(),
    });
    stats.note(findings::DOT_TRUNCATED, u64::from(!graph.closed), || {
        "the graph ends before its braces are closed".to_owned()
    });
}

/// What a node found in the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    /// Its executions, one per round of the whole graph.
    Rounds(Vec<i64>),
    /// Its name is not unique in the graph or in the trace.
    Repeated,
    Nothing,
}

/// The executions of a name.
#[derive(Default, Clone)]
struct Executions {
    count: u64,
    first: i64,
}

impl Tasks<'_> {
    fn find(&self, graph: &Graph, memory: &MemoryReservation) -> Result<Vec<Found>, ImportError> {
        let keys: Vec<Option<i32>> = graph.nodes.iter().map(|node| self.key(&node.name)).collect();
        let mut nodes_of: HashMap<i32, u32> = HashMap::new();
        for key in keys.iter().flatten() {
            *nodes_of.entry(*key).or_default() += 1;
        }
        self.trace.room.resize(memory, self.trace.names.len() * size_of::<Executions>())?;
        let mut executions = vec![Executions::default(); self.trace.names.len()];
        for block in &self.trace.blocks {
            let pieces = block.pieces.get()?;
            for row in 0..block.len {
                let executions = &mut executions[pieces.rows.names.get(row) as usize];
                if executions.count == 0 {
                    executions.first = (block.first + row as u64) as i64;
                }
                executions.count += 1;
            }
        }
        let mut found: Vec<Found> = keys
            .iter()
            .map(|key| match key {
                None => Found::Nothing,
                Some(key) => match executions[*key as usize].count {
                    0 => Found::Nothing,
                    1 if nodes_of[key] == 1 => Found::Rounds(vec![executions[*key as usize].first]),
                    _ => Found::Repeated,
                },
            })
            .collect();
        if let Some(rounds) = self.whole_repeats(graph, &keys, &nodes_of, &executions, memory)? {
            for (found, key) in found.iter_mut().zip(&keys) {
                if let Some(positions) = key.and_then(|key| rounds.get(&key)) {
                    *found = Found::Rounds(positions.clone());
                }
            }
        }
        Ok(found)
    }

    /// The key of a node's name in the trace.
    fn key(&self, name: &[u8]) -> Option<i32> {
        if name.is_empty() {
            return None;
        }
        let kept = if self.names_cut { &name[..name.len().min(tfpx::NAME_BYTES)] } else { name };
        self.trace.names.find(&String::from_utf8_lossy(kept))
    }

    /// The executions by name and round, if the graph as a whole ran several times, one round after the other. Loops look
    /// alike, so a graph with conditions does not qualify.
    fn whole_repeats(
        &self,
        graph: &Graph,
        keys: &[Option<i32>],
        nodes_of: &HashMap<i32, u32>,
        executions: &[Executions],
        memory: &MemoryReservation,
    ) -> Result<Option<HashMap<i32, Vec<i64>>>, ImportError> {
        let loops = graph.edges.iter().any(|edge| edge.kind == EdgeKind::Weak)
            || graph.nodes.iter().any(|node| node.shape == Shape::Condition);
        let mut counts = keys.iter().flatten().map(|key| executions[*key as usize].count).filter(|count| *count > 0);
        let Some(rounds) = counts.next().filter(|rounds| *rounds > 1) else { return Ok(None) };
        if loops || !self.one_clock || counts.any(|count| count != rounds) || nodes_of.values().any(|n| *n != 1) {
            return Ok(None);
        }
        let rounds = rounds as usize;
        let a_round = nodes_of.len() * EXECUTION_BYTES + graph.edges.len() * LINK_BYTES;
        self.trace.room.resize(memory, memory.size() + rounds * a_round)?;
        let mut runs: HashMap<i32, Vec<(i64, i64, i64)>> = nodes_of.keys().map(|key| (*key, Vec::new())).collect();
        for block in &self.trace.blocks {
            let pieces = block.pieces.get()?;
            for (lane, rows) in pieces.iter() {
                let offset = self.trace.offset(lane);
                let shifted = |time: i64| time.checked_add(offset).ok_or_else(|| self.trace.does_not_fit(time));
                for row in rows {
                    let Some(runs) = runs.get_mut(&pieces.rows.names.get(row)) else { continue };
                    let (start, finish) = (shifted(pieces.rows.starts[row])?, shifted(pieces.rows.finishes[row])?);
                    runs.push((start, finish, (block.first + row as u64) as i64));
                }
            }
        }
        runs.retain(|_, runs| !runs.is_empty());
        for runs in runs.values_mut() {
            runs.sort_unstable();
        }
        // Only when each round ends before the next one begins are the j-th executions of one round.
        let mut ended = i64::MIN;
        for round in 0..rounds {
            let begins = runs.values().map(|runs| runs[round].0).min();
            if begins.is_none_or(|begins| begins < ended) {
                return Ok(None);
            }
            ended = runs.values().map(|runs| runs[round].1).max().unwrap_or(ended);
        }
        Ok(Some(runs.into_iter().map(|(key, runs)| (key, runs.into_iter().map(|run| run.2).collect())).collect()))
    }
}

struct Joiner<'g> {
    graph: &'g Graph,
    found: Vec<Found>,
    /// The graph that stands in place of a node.
    contracted: Vec<Option<usize>>,
    links: Links,
}

/// Where something that a node stands for begins or ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Entry,
    Exit,
}

/// The nodes with tasks that a node stands for, and whether some have none.
#[derive(Default)]
struct Ends {
    nodes: Vec<usize>,
    missing: bool,
}

/// Neighbours of each node along dependencies and weak edges.
struct Neighbours {
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
}

impl Joiner<'_> {
    fn edges(mut self, stats: &mut Stats) -> Links {
        let count = self.graph.nodes.len();
        let mut neighbours = Neighbours { before: vec![Vec::new(); count], after: vec![Vec::new(); count] };
        for edge in self.graph.edges.iter().filter(|edge| edge.kind != EdgeKind::Join) {
            neighbours.after[edge.source].push(edge.target);
            neighbours.before[edge.target].push(edge.source);
        }
        for edge in &self.graph.edges {
            let kind = match edge.kind {
                EdgeKind::Dependency => "dependency",
                EdgeKind::Weak => "weak",
                EdgeKind::Join => {
                    stats.left_out(findings::DOT_JOIN_EDGES, 1, || format!("line {}", edge.line));
                    continue;
                }
            };
            let sources = self.ends(edge.source, Side::Exit, &neighbours);
            let targets = self.ends(edge.target, Side::Entry, &neighbours);
            let example = || {
                let name = |node: usize| {
                    let node = &self.graph.nodes[node];
                    if node.name.is_empty() {
                        node.id.clone()
                    } else {
                        String::from_utf8_lossy(&node.name).into_owned()
                    }
                };
                format!("line {}: `{}` -> `{}`", edge.line, name(edge.source), name(edge.target))
            };
            let contracted = self.contracted[edge.source].is_some() || self.contracted[edge.target].is_some();
            let fits = self.links.derived.sources.len() + sources.nodes.len() * targets.nodes.len() <= CONTRACTED_MAX;
            if sources.nodes.is_empty() || targets.nodes.is_empty() || !fits {
                // An empty module hands its predecessors' edges on: its own edge has nothing left to say.
                let said_already = contracted && fits && !sources.missing && !targets.missing;
                stats.left_out(
                    if said_already { findings::DOT_EDGES_CONTRACTED } else { findings::DOT_EDGES_NOT_JOINED },
                    1,
                    example,
                );
                continue;
            }
            if sources.missing || targets.missing {
                stats.note(findings::DOT_EDGES_PARTLY_JOINED, 1, example);
            }
            let mut first = true;
            for &source in &sources.nodes {
                for &target in &targets.nodes {
                    first =
                        !self.links.push(&self.found, (source, target), kind, edge.branch.as_deref(), first) && first;
                }
            }
            if first {
                stats.left_out(findings::DOT_EDGES_NOT_JOINED, 1, || format!("line {}", edge.line));
            }
        }
        self.spawns(&neighbours, stats);
        self.links
    }

    /// A subflow task starts those of its children that wait for no other.
    fn spawns(&mut self, neighbours: &Neighbours, stats: &mut Stats) {
        for (cluster, task) in self.graph.subflow_tasks().into_iter().enumerate() {
            let Some(task) = task else { continue };
            for &child in &self.graph.clusters[cluster].nodes {
                if !neighbours.before[child].is_empty() {
                    continue;
                }
                let targets = self.ends(child, Side::Entry, neighbours);
                let mut pushed = false;
                for target in targets.nodes {
                    pushed |= self.links.push(&self.found, (task, target), "spawn", None, false);
                }
                if !pushed {
                    stats.note(findings::DOT_SPAWNS_NOT_JOINED, 1, || {
                        let name = |node: usize| String::from_utf8_lossy(&self.graph.nodes[node].name).into_owned();
                        format!("`{}` starts `{}`", name(task), name(child))
                    });
                }
            }
        }
    }

    /// The nodes whose begin (or end) is the begin (or end) of `node`.
    fn ends(&self, node: usize, side: Side, neighbours: &Neighbours) -> Ends {
        let mut ends = Ends::default();
        if matches!(self.found[node], Found::Rounds(_)) {
            ends.nodes.push(node);
            return ends;
        }
        if self.contracted[node].is_none() {
            ends.missing = true;
            return ends;
        }
        let mut seen = std::collections::HashSet::from([node]);
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            let next: Vec<usize> = match (&self.found[node], self.contracted[node]) {
                (Found::Rounds(_), _) => {
                    ends.nodes.push(node);
                    continue;
                }
                (_, None) => {
                    ends.missing = true;
                    continue;
                }
                (_, Some(cluster)) => {
                    let inside = &self.graph.clusters[cluster].nodes;
                    match side {
                        Side::Entry if inside.is_empty() => neighbours.after[node].clone(),
                        Side::Exit if inside.is_empty() => Vec::new(),
                        Side::Entry => inside.iter().copied().filter(|&n| neighbours.before[n].is_empty()).collect(),
                        Side::Exit => inside.iter().copied().filter(|&n| neighbours.after[n].is_empty()).collect(),
                    }
                }
            };
            waiting.extend(next.into_iter().filter(|node| seen.insert(*node)));
        }
        ends.nodes.sort_unstable();
        ends
    }
}

impl Links {
    /// Links the executions of two nodes, round by round; `recorded` when the first of them stands for the edge itself.
    fn push(
        &mut self,
        found: &[Found],
        (source, target): (usize, usize),
        kind: &'static str,
        name: Option<&str>,
        recorded: bool,
    ) -> bool {
        let (Found::Rounds(sources), Found::Rounds(targets)) = (&found[source], &found[target]) else { return false };
        for (round, (&source, &target)) in sources.iter().zip(targets).enumerate() {
            let rows = if recorded && round == 0 { &mut self.recorded } else { &mut self.derived };
            rows.push(source, target, kind, name);
        }
        true
    }
}
