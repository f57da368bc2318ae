//! Join: executions become tasks, nodes of the graphs find their executions, edges become links.
//!
//! ```text
//! events       (rank, taskpool, class number, id)  →  executions of one task, several when it was rescheduled
//! graph        NAME  →  node (taskpool, class number, id) in the file of its rank  →  executions
//! edge         NAME → NAME, in the file of the target's rank: the source may be of another rank
//! ```
//! The key is never the type of the event (its place in a dictionary), and the style of an edge is never asked whether it is one.
//! Taskpools are numbered by each process, so a name means the node of its own file, and only without one that of another.
//! A name that is no node (its rank's file is missing, or the task never ran) is found by its numbers ([`naming`]), else it
//! becomes a task without times like a node without events does: nothing that the graph knows is lost.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::dot::{Graph, Node};
use super::naming;
use super::rank::{Lane, NO_CLASS, Rank};
use super::types::Class;
use crate::trace::{Stats, Words, findings};

/// Names of types are cut here by the dictionary of a trace.
const TYPE_NAME_BYTES: usize = 63;

/// A task's identity within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TaskKey {
    /// The rank that executed it, by its place among the ranks.
    pub(super) rank: u32,
    pub(super) taskpool: u32,
    pub(super) class_number: u32,
    pub(super) id: u64,
}

/// One execution of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Execution {
    start: i64,
    pub(super) row: i64,
    finish: i64,
}

/// The rows of one task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Executions {
    /// Its rank, by its place among the ranks, and its type there.
    pub(super) rank: u32,
    entry: u16,
    first_start: i64,
    /// The row that starts first, which links lead to.
    pub(super) first: i64,
    last_finish: i64,
    /// The row that ends last, which links begin at: executions may overlap.
    pub(super) last: i64,
    /// The task of the graphs that it is, by its place in [`Joined`].
    pub(super) place: i32,
}

/// No place.
pub(super) const NONE: i32 = -1;

impl Executions {
    fn of(rank: u32, entry: u16, only: Execution) -> Executions {
        Executions {
            rank,
            entry,
            first_start: only.start,
            first: only.row,
            last_finish: only.finish,
            last: only.row,
            place: NONE,
        }
    }

    fn add(&mut self, execution: Execution) {
        if (execution.start, execution.row) < (self.first_start, self.first) {
            (self.first_start, self.first) = (execution.start, execution.row);
        }
        if (self.last_finish, self.last) < (execution.finish, execution.row) {
            (self.last_finish, self.last) = (execution.finish, execution.row);
        }
    }
}

/// All executions of a run.
#[derive(Default)]
pub(super) struct Tasks {
    places: HashMap<TaskKey, u32>,
    pub(super) all: Vec<Executions>,
    /// The executions of tasks that have several.
    repeated: HashMap<u32, Vec<Execution>>,
    /// By row: tasks whose key is not theirs alone.
    shared: HashMap<i64, u32>,
}

impl Tasks {
    /// Gathers the executions of tasks; `first_row` has the position of the first row of each rank's lanes.
    pub(super) fn of(ranks: &[&Rank], first_rows: &[Vec<i64>]) -> Tasks {
        let mut tasks = Tasks::default();
        let rows = ranks.iter().flat_map(|rank| &rank.lanes).map(|lane| lane.starts.len()).sum::<usize>();
        tasks.places.reserve(rows / 4);
        for (index, rank) in ranks.iter().enumerate() {
            for (lane, first_row) in rank.lanes.iter().zip(&first_rows[index]) {
                for (row, entry) in lane.entries.iter().enumerate() {
                    if !matches!(rank.classes[usize::from(*entry)], Class::Task { .. }) {
                        continue;
                    }
                    // Without a class number, which ends tell, it cannot be joined.
                    let Some(key) = lane.key(index, row) else { continue };
                    let execution =
                        Execution { start: lane.starts[row], row: first_row + row as i64, finish: lane.finishes[row] };
                    tasks.add(key, *entry, execution);
                }
            }
        }
        tasks
    }

    fn add(&mut self, key: TaskKey, entry: u16, execution: Execution) {
        let next = self.all.len() as u32;
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            return self.all.push(Executions::of(key.rank, entry, execution));
        }
        let known = &mut self.all[place as usize];
        let only = Execution { start: known.first_start, row: known.first, finish: known.last_finish };
        self.repeated.entry(place).or_insert_with(|| vec![only]).push(execution);
        known.add(execution);
    }

    /// The task of a key that it shares with no other.
    pub(super) fn find(&self, key: &TaskKey) -> Option<usize> {
        self.places.get(key).map(|place| *place as usize)
    }

    /// The task that a row executes.
    pub(super) fn of_row(&self, key: &TaskKey, row: i64) -> Option<&Executions> {
        let place = self.places.get(key).or_else(|| self.shared.get(&row))?;
        Some(&self.all[*place as usize])
    }

    /// The task of that identity on any rank, unless a node has it already.
    fn find_anywhere(&self, key: TaskKey, ranks: usize) -> Option<usize> {
        let on = |rank: usize| self.find(&TaskKey { rank: rank as u32, ..key });
        (0..ranks).filter_map(on).find(|task| self.all[*task].place == NONE)
    }

    /// The executions of a task in the order of their starts.
    pub(super) fn executions(&self, task: u32) -> Vec<Execution> {
        let of = &self.all[task as usize];
        let only = || vec![Execution { start: of.first_start, row: of.first, finish: of.last_finish }];
        let mut executions = self.repeated.get(&task).cloned().unwrap_or_else(only);
        executions.sort_unstable();
        executions
    }

    /// From each execution to the next one of the same task, by rows.
    pub(super) fn again(&self) -> Vec<(i64, i64)> {
        let mut again = Vec::new();
        for task in self.repeated.keys() {
            again.extend(self.executions(*task).windows(2).map(|pair| (pair[0].row, pair[1].row)));
        }
        again.sort_unstable();
        again
    }

    /// Makes several tasks of one whose key several have, and returns them. Only rows tell them apart from then on.
    pub(super) fn split(&mut self, key: &TaskKey, groups: &[Vec<Execution>]) -> Vec<u32> {
        let Some(task) = self.places.remove(key) else { return Vec::new() };
        self.repeated.remove(&task);
        let Executions { rank, entry, .. } = self.all[task as usize];
        let mut parts = Vec::with_capacity(groups.len());
        for group in groups {
            let Some((first, others)) = group.split_first() else { continue };
            let mut own = Executions::of(rank, entry, *first);
            others.iter().for_each(|execution| own.add(*execution));
            let part = if parts.is_empty() { task } else { self.all.len() as u32 };
            match parts.is_empty() {
                true => self.all[task as usize] = own,
                false => self.all.push(own),
            }
            self.shared.extend(group.iter().map(|execution| (execution.row, part)));
            if !others.is_empty() {
                self.repeated.insert(part, group.clone());
            }
            parts.push(part);
        }
        parts
    }
}

impl Lane {
    /// The identity of the task that a row executes, or that the runtime releases there.
    pub(super) fn key(&self, rank: usize, row: usize) -> Option<TaskKey> {
        let class_number = self.class_numbers[row];
        (class_number != NO_CLASS).then(|| TaskKey {
            rank: rank as u32,
            taskpool: self.taskpools[row],
            class_number,
            id: self.ids[row],
        })
    }
}

/// The graphs of all ranks in one.
#[derive(Default)]
pub(super) struct Joined {
    names: Words,
    /// By place: the name of a task. Each name has one place, and one more for each other rank that has a node of that name.
    words: Vec<i32>,
    /// By place: where links end and begin.
    pub(super) first: Vec<i64>,
    pub(super) last: Vec<i64>,
    /// By place: the rank it ran on, where that is known.
    pub(super) ranks: Vec<u32>,
    /// Tasks that only a graph knows, in the order of their rows.
    pub(super) without_event: Vec<WithoutEvent>,
    /// By graph: the place of each of its names.
    pub(super) places: Vec<Vec<i32>>,
}

/// A task that only a graph knows.
pub(super) struct WithoutEvent {
    pub(super) place: i32,
    /// Its graph and node; without, it is only named by edges.
    pub(super) node: Option<(usize, Node)>,
}

/// A node and its graph.
type Declared<'g> = (usize, &'g Node);

impl Joined {
    /// What the task at a place is called.
    pub(super) fn name(&self, place: i32) -> &str {
        self.names.word(self.words[place as usize])
    }

    /// Gives each task of the graphs its place; returns the nodes, by place.
    fn declare<'g>(&mut self, graphs: &[(usize, &'g Graph)], stats: &mut Stats) -> Vec<Option<Declared<'g>>> {
        for (_, graph) in graphs {
            let names = 0..graph.names.len() as i32;
            self.places.push(names.map(|name| self.names.intern(graph.names.word(name))).collect());
        }
        self.words = (0..self.names.len() as i32).collect();
        let mut nodes: Vec<Option<Declared<'g>>> = vec![None; self.names.len()];
        for (index, (_, graph)) in graphs.iter().enumerate() {
            for node in &graph.nodes {
                let place = &mut self.places[index][node.name as usize];
                if nodes[*place as usize].is_none() {
                    nodes[*place as usize] = Some((index, node));
                    continue;
                }
                self.words.push(*place);
                *place = nodes.len() as i32;
                nodes.push(Some((index, node)));
                stats.note(findings::DOT_NAME_SHARED, 1, || {
                    format!("{} is in several files: a task of each rank", graph.names.word(node.name))
                });
            }
        }
        nodes
    }
}

/// Joins graphs, each with the place of its rank, to executions. Rows for tasks without events count from `next_row`.
pub(super) fn join(
    graphs: &[(usize, &Graph)],
    ranks: &[&Rank],
    first_rows: &[Vec<i64>],
    tasks: &mut Tasks,
    next_row: i64,
    stats: &mut Stats,
) -> Joined {
    let mut joined = Joined::default();
    let nodes = joined.declare(graphs, stats);
    let mut finder =
        Finder { graphs, ranks, nodes: &nodes, found: vec![None; nodes.len()], colliding: BTreeMap::new() };
    finder.find(&joined, tasks, stats);
    let Finder { mut found, colliding, .. } = finder;
    let has_undeclared = nodes.iter().any(Option::is_none);
    let strangers = |tasks: &Tasks| tasks.all.iter().filter(|task| task.place == NONE).count();
    if !colliding.is_empty() || has_undeclared && strangers(tasks) > 0 {
        let names = naming::Known { nodes: &nodes, joined: &joined, ranks, first_rows };
        names.resolve(&colliding, &mut found, tasks, stats);
    }
    let (mut next_row, mut joined_nodes) = (next_row, 0);
    for (place, (node, task)) in nodes.into_iter().zip(found).enumerate() {
        let place = place as i32;
        let rank = node.map(|(index, _)| graphs[index].0 as u32);
        if let Some(task) = task.map(|task| tasks.all[task as usize]) {
            joined_nodes += u64::from(node.is_some());
            joined.ranks.push(rank.unwrap_or(task.rank));
            joined.first.push(task.first);
            joined.last.push(task.last);
            continue;
        }
        let name = joined.name(place);
        match node {
            Some(_) => stats.note(findings::DOT_ONLY, 1, || format!("{name} has no event: a task without times")),
            None => stats.note(findings::DOT_UNDECLARED, 1, || {
                format!("{name} is named by edges only: the graph of its rank is missing, or it never ran; a task without times")
            }),
        }
        joined.ranks.push(rank.unwrap_or(u32::MAX));
        joined.first.push(next_row);
        joined.last.push(next_row);
        next_row += 1;
        joined.without_event.push(WithoutEvent { place, node: node.map(|(index, node)| (index, node.clone())) });
    }
    stats.left_out(findings::DOT_NODES_JOINED, joined_nodes, || "each is in the rows of its executions".to_owned());
    if !graphs.is_empty() {
        stats.note(findings::NOT_IN_DOT, strangers(tasks) as u64, || {
            "tasks that were traced but are in no graph".to_owned()
        });
    }
    joined
}

/// Finds the executions of nodes.
struct Finder<'j, 'g> {
    graphs: &'j [(usize, &'g Graph)],
    ranks: &'j [&'j Rank],
    nodes: &'j [Option<Declared<'g>>],
    /// By place: the task.
    found: Vec<Option<u32>>,
    /// Places of nodes that have one key: hashes of programs' own may collide.
    colliding: BTreeMap<TaskKey, Vec<usize>>,
}

impl Finder<'_, '_> {
    fn find(&mut self, joined: &Joined, tasks: &mut Tasks, stats: &mut Stats) {
        let mut elsewhere = Vec::new();
        for (place, node) in self.nodes.iter().enumerate() {
            let Some((key, index, node)) = node.and_then(|(index, node)| self.key(index, node)) else { continue };
            let Some(task) = tasks.find(&key) else {
                elsewhere.push((place, key, index, node));
                continue;
            };
            let executions = &mut tasks.all[task];
            if !self.is_of_class(executions, index, node) {
                stats.note(findings::DOT_CLASS_MISMATCH, 1, || {
                    let event = &self.ranks[executions.rank as usize].names[usize::from(executions.entry)];
                    format!(
                        "{} has the ids of an event of `{event}`: is the graph of another run?",
                        joined.name(place as i32)
                    )
                });
                continue;
            }
            match executions.place {
                NONE => {
                    executions.place = place as i32;
                    self.found[place] = Some(task as u32);
                }
                other => self.colliding.entry(key).or_insert_with(|| vec![other as usize]).push(place),
            }
        }
        // A rank's own nodes come first.
        for (place, key, index, node) in elsewhere {
            let Some(task) = tasks.find_anywhere(key, self.ranks.len()) else { continue };
            if self.is_of_class(&tasks.all[task], index, node) {
                tasks.all[task].place = place as i32;
                self.found[place] = Some(task as u32);
                stats.note(findings::DOT_RANK_MISMATCH, 1, || {
                    format!("{} ran on another rank than its file says", joined.name(place as i32))
                });
            }
        }
    }

    fn key<'n>(&self, index: usize, node: &'n Node) -> Option<(TaskKey, usize, &'n Node)> {
        let rank = self.graphs[index].0 as u32;
        let class_number = u32::try_from(node.class_number).ok()?;
        Some((TaskKey { rank, taskpool: node.taskpool, class_number, id: node.id }, index, node))
    }

    fn is_of_class(&self, task: &Executions, index: usize, node: &Node) -> bool {
        let rank = self.ranks[task.rank as usize];
        let (event, class) = (&rank.names[usize::from(task.entry)], self.graphs[index].1.words.word(node.class));
        // The runtime has several names for its own.
        let is_flush = rank.classes[usize::from(task.entry)] == Class::Task { is_flush: true };
        is_called(event, class) || is_flush && class.ends_with("data_flush")
    }
}

/// Whether events of this name are executions of a class: `chol::TRSM` of `TRSM`.
fn is_called(event: &str, class: &str) -> bool {
    let is_whole = event.strip_suffix(class).is_some_and(|scope| scope.is_empty() || scope.ends_with("::"));
    is_whole || event.len() >= TYPE_NAME_BYTES && class.starts_with(naming::unscoped(event))
}

/// The class that a name begins with: `Gemm` of `Gemm_1_10`, `X` of `X_2_-1`, and `potrf_2` of `potrf_2_2_0` where that is one.
pub(super) fn class_of(name: &str, is_class: impl Fn(&str) -> bool) -> &str {
    let mut class = name;
    while let Some((rest, number)) = class.rsplit_once('_') {
        let digits = number.strip_prefix('-').unwrap_or(number);
        if rest.is_empty() || digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        class = rest;
        if is_class(class) {
            break;
        }
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_what_stands_in_front_of_the_numbers() {
        let check = |name, class| assert_eq!(class_of(name, |known| known == "potrf_2"), class);
        check("Gemm_1_10", "Gemm");
        check("X_2_-1", "X");
        check("parsec_dtd_data_flush_1_56", "parsec_dtd_data_flush");
        check("potrf_2_2_0", "potrf_2");
        check("potrf_3_2_0", "potrf");
        check("plain", "plain");
        check("_1", "_1");
    }

    #[test]
    fn events_are_called_as_their_class() {
        let check = |event: &str, class, expected| assert_eq!(is_called(event, class), expected, "{event} {class}");
        check("chol::TRSM", "TRSM", true);
        check("Gemm", "Gemm", true);
        check("j::BLU", "LU", false);
        check("j::x", "xyz", false);
        assert!(is_called(&format!("j::{}", "x".repeat(60)), &"x".repeat(70)));
    }
}
