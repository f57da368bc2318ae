//! Join: executions become tasks, nodes of the graphs find their executions, edges become links.
//!
//! ```text
//! events       (rank, taskpool, class number, id)  →  executions of one task, several when it was rescheduled
//! graph        NAME  →  node (taskpool, class number, id) in the file of its rank  →  executions
//! edge         NAME → NAME, in the file of the target's rank: the source may be of another rank
//! ```
//! The key is never the type of the event (its place in a dictionary), and the style of an edge is never asked whether it is one.
//! A name that is no node (its rank's file is missing, or the task never ran) becomes a task without times like a node without
//! events does: nothing that the graph knows is lost.

use hashbrown::HashMap;

use super::dot::{Graph, Node};
use super::rank::{NO_CLASS, Rank};
use super::types::Class;
use crate::trace::{Finding, Stage, Stats, Words};

const JOINED: Finding = Finding::info("dot_nodes_joined", Stage::Import);
const OTHER_RANK: Finding = Finding::info("dot_rank_mismatch", Stage::Recording);
const REPEATED: Finding = Finding::info("dot_node_repeated", Stage::Recording);
const WITHOUT_EVENT: Finding = Finding::info("dot_only", Stage::Recording);
const UNDECLARED: Finding = Finding::info("dot_undeclared", Stage::Recording);
const NOT_IN_GRAPH: Finding = Finding::info("not_in_dot", Stage::Recording);

/// A task's identity within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TaskKey {
    /// The rank that executed it, by its place among the ranks.
    pub(super) rank: u32,
    pub(super) taskpool: u32,
    pub(super) class_number: u32,
    pub(super) id: u64,
}

/// The rows of one task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Executions {
    first_start: i64,
    pub(super) first: i64,
    last_start: i64,
    pub(super) last: i64,
    /// The name that a graph gives it, by its place among [`Joined::names`].
    pub(super) name: i32,
}

/// No name, no row.
pub(super) const NONE: i32 = -1;

/// All executions of a run.
#[derive(Default)]
pub(super) struct Tasks {
    places: HashMap<TaskKey, u32>,
    pub(super) all: Vec<Executions>,
    /// From an execution to the next one of the same task.
    pub(super) again: Vec<(i64, i64)>,
}

impl Tasks {
    /// Gathers the executions of tasks; `first_row` has the position of the first row of each rank's lanes.
    pub(super) fn of(ranks: &[&Rank], first_rows: &[Vec<i64>]) -> Tasks {
        let mut tasks = Tasks::default();
        let mut repeated: HashMap<u32, Vec<(i64, i64)>> = HashMap::new();
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
                    let (start, position) = (lane.starts[row], first_row + row as i64);
                    let next = tasks.all.len() as u32;
                    let place = *tasks.places.entry(key).or_insert(next);
                    if place == next {
                        tasks.all.push(Executions {
                            first_start: start,
                            first: position,
                            last_start: start,
                            last: position,
                            name: NONE,
                        });
                        continue;
                    }
                    let known = &mut tasks.all[place as usize];
                    repeated
                        .entry(place)
                        .or_insert_with(|| vec![(known.first_start, known.first)])
                        .push((start, position));
                    if (start, position) < (known.first_start, known.first) {
                        (known.first_start, known.first) = (start, position);
                    }
                    if (known.last_start, known.last) < (start, position) {
                        (known.last_start, known.last) = (start, position);
                    }
                }
            }
        }
        for executions in repeated.values_mut() {
            executions.sort_unstable();
            tasks.again.extend(executions.windows(2).map(|pair| (pair[0].1, pair[1].1)));
        }
        tasks.again.sort_unstable();
        tasks
    }

    pub(super) fn find(&self, key: &TaskKey) -> Option<usize> {
        self.places.get(key).map(|place| *place as usize)
    }

    /// The task of that identity on any rank.
    fn find_anywhere(&self, key: TaskKey, ranks: usize) -> Option<usize> {
        (0..ranks).find_map(|rank| self.find(&TaskKey { rank: rank as u32, ..key }))
    }
}

impl super::rank::Lane {
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
    /// Names of tasks, each once.
    pub(super) names: Words,
    /// By name: where links end and begin.
    pub(super) first: Vec<i64>,
    pub(super) last: Vec<i64>,
    /// By name: the rank it ran on, where that is known.
    pub(super) ranks: Vec<u32>,
    /// Tasks that only a graph knows, in the order of their rows.
    pub(super) without_event: Vec<WithoutEvent>,
    /// By graph: the place of each of its names.
    pub(super) places: Vec<Vec<i32>>,
}

/// A task that only a graph knows.
pub(super) struct WithoutEvent {
    pub(super) name: i32,
    /// Its graph and node; without, it is only named by edges.
    pub(super) node: Option<(usize, Node)>,
}

/// Joins graphs, each with the place of its rank, to executions. Rows for tasks without events count from `next_row`.
pub(super) fn join(
    graphs: &[(usize, &Graph)],
    ranks: usize,
    tasks: &mut Tasks,
    next_row: i64,
    stats: &mut Stats,
) -> Joined {
    let mut joined = Joined::default();
    for (_, graph) in graphs {
        let names = 0..graph.names.len() as i32;
        joined.places.push(names.map(|name| joined.names.intern(graph.names.word(name))).collect());
    }
    let mut nodes: Vec<Option<(usize, &Node)>> = vec![None; joined.names.len()];
    for (index, (_, graph)) in graphs.iter().enumerate() {
        for node in &graph.nodes {
            let place = joined.places[index][node.name as usize];
            match &mut nodes[place as usize] {
                Some(_) => stats.left_out(REPEATED, 1, || format!("{} is in several files", joined.names.word(place))),
                free => *free = Some((index, node)),
            }
        }
    }
    let mut next_row = next_row;
    let mut found = 0;
    for (name, node) in nodes.into_iter().enumerate() {
        let name = name as i32;
        let execution = node.and_then(|(index, node)| {
            let rank = graphs[index].0 as u32;
            let class_number = u32::try_from(node.class_number).ok()?;
            let key = TaskKey { rank, taskpool: node.taskpool, class_number, id: node.id };
            tasks.find(&key).or_else(|| {
                let elsewhere = tasks.find_anywhere(key, ranks)?;
                stats.note(OTHER_RANK, 1, || {
                    format!("{} ran on another rank than its file says", joined.names.word(name))
                });
                Some(elsewhere)
            })
        });
        let rank = node.map_or(u32::MAX, |(index, _)| graphs[index].0 as u32);
        joined.ranks.push(rank);
        if let Some(task) = execution {
            found += 1;
            tasks.all[task].name = name;
            joined.first.push(tasks.all[task].first);
            joined.last.push(tasks.all[task].last);
            continue;
        }
        let word = joined.names.word(name);
        match node {
            Some(_) => stats.note(WITHOUT_EVENT, 1, || format!("{word} has no event: a task without times")),
            None => stats.note(UNDECLARED, 1, || {
                format!("{word} is named by edges only: the graph of its rank is missing, or it never ran; a task without times")
            }),
        }
        joined.first.push(next_row);
        joined.last.push(next_row);
        next_row += 1;
        joined.without_event.push(WithoutEvent { name, node: node.map(|(index, node)| (index, node.clone())) });
    }
    stats.left_out(JOINED, found, || "each is in the rows of its executions".to_owned());
    if !graphs.is_empty() {
        let strangers = tasks.all.iter().filter(|task| task.name == NONE).count();
        stats.note(NOT_IN_GRAPH, strangers as u64, || "tasks that were traced but are in no graph".to_owned());
    }
    joined
}

/// The class that a name begins with: `Gemm` of `Gemm_1_10`, `X` of `X_2_-1`.
pub(super) fn class_of(name: &str) -> &str {
    let mut class = name;
    while let Some((rest, number)) = class.rsplit_once('_') {
        let digits = number.strip_prefix('-').unwrap_or(number);
        if rest.is_empty() || digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        class = rest;
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_what_stands_in_front_of_the_numbers() {
        let check = |name, class| assert_eq!(class_of(name), class);
        check("Gemm_1_10", "Gemm");
        check("X_2_-1", "X");
        check("parsec_dtd_data_flush_1_56", "parsec_dtd_data_flush");
        check("plain", "plain");
        check("_1", "_1");
    }
}
