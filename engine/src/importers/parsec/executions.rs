//! Executions: which rows belong to one task, and what the graphs of all ranks call that task.
//!
//! The key of a task never contains the type of the event, which is a position in the dictionary of one rank. [`Tasks`] has the executions by
//! key, [`Joined`] the names in the graphs; [`super::join`] matches them. A *place* is the number of a task in [`Joined`].

use hashbrown::HashMap;

use super::dot::{Graph, Node};
use super::rank::{Lane, NO_CLASS, Rank};
use super::types::Class;
use crate::trace::{Stats, Words, findings};

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
    pub(super) start: i64,
    pub(super) row: i64,
    pub(super) finish: i64,
}

/// The rows of one task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Executions {
    /// Its rank, by its place among the ranks, and its type there.
    pub(super) rank: u32,
    pub(super) entry: u16,
    pub(super) first_start: i64,
    /// The row that starts first, which links lead to.
    pub(super) first: i64,
    pub(super) last_finish: i64,
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
    /// By row: the task, where several tasks have the same key ([`Tasks::split`]).
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

    /// The first rank's task with that identity that no node of a graph has yet.
    pub(super) fn find_anywhere(&self, key: TaskKey, ranks: usize) -> Option<usize> {
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

    /// Splits a task into one for each group of executions, where several tasks turn out to share a key. Returns the parts. From then on only
    /// their rows tell them apart.
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
    pub(super) names: Words,
    /// By place: the name of a task. Each name has one place, and one more for each other rank that has a node of that name.
    pub(super) words: Vec<i32>,
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
    /// Its graph and node; `None` where only edges name it.
    pub(super) node: Option<(usize, Node)>,
}

/// A node and its graph.
pub(super) type Declared<'g> = (usize, &'g Node);

impl Joined {
    /// What the task at a place is called.
    pub(super) fn name(&self, place: i32) -> &str {
        self.names.word(self.words[place as usize])
    }

    /// Gives each task of the graphs its place; returns the nodes, by place.
    pub(super) fn declare<'g>(
        &mut self,
        graphs: &[(usize, &'g Graph)],
        stats: &mut Stats,
    ) -> Vec<Option<Declared<'g>>> {
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
