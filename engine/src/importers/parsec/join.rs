//! Join: executions become tasks, nodes of the graphs find their executions, edges become links.
//!
//! ```text
//! events       (rank, taskpool, class number, id)  →  executions of one task, several when it was rescheduled
//! graph        NAME  →  node (taskpool, class number, id) in the file of its rank  →  executions
//! edge         NAME → NAME, in the file of the target's rank: the source may be of another rank
//! ```
//! The key never contains the type of the event (its position in a dictionary), and the style of an edge does not decide whether
//! it is one. Each process numbers its own taskpools, so a name refers to the node of its own file, and to that of another file
//! only where its own has none. A name without a node (its rank's file is missing, or the task never ran) is resolved by the
//! numbers in it ([`naming`]); failing that it becomes a task without times, like a node without events: nothing in the graph is
//! lost.

use std::collections::BTreeMap;

use super::dot::{Graph, Node};
use super::executions::{Declared, Executions, Joined, NONE, TaskKey, Tasks, WithoutEvent};
use super::naming;
use super::rank::Rank;
use super::types::Class;
use crate::trace::{Stats, findings};

/// Names of types are cut here by the dictionary of a trace.
const TYPE_NAME_BYTES: usize = 63;

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
