//! Naming: what the numbers in the name of a task mean, learned from tasks whose name and execution are both known.
//!
//! ```text
//! GEMM_2_14_9_0   class, taskpool, parameters    {"tid":1370, …, "m":14, "n":9, "k":0}   so the parameters are m, n, k
//! Gemm_1_10       class, taskpool, number        {"tid":10, …}                           so the number is the id (DTD)
//! ```
//! It is used where nodes do not tell which execution a name means: for a rank without a graph, whose tasks are named by
//! edges in the graphs of others; for the last line of a truncated graph; and for nodes with the same key, since a
//! program's own hash of its parameters may collide. The locals are parsed again for that, which costs nothing where all
//! ranks have their graphs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use datafusion::arrow::array::Array;
use hashbrown::{HashMap, HashSet};
use serde_json::{Map, Value};

use super::dot::Node;
use super::executions::{Execution, Joined, NONE, TaskKey, Tasks};
use super::rank::{Lane, Rank};
use crate::trace::{Stats, findings};

/// A class as names have it: what is neither letter nor digit is `_`.
pub(super) fn plain(class: &str) -> String {
    class.chars().map(|char| if char.is_ascii_alphanumeric() { char } else { '_' }).collect()
}

/// The name of a type behind its scope: `TRSM` of `chol::TRSM`.
pub(super) fn unscoped(event: &str) -> &str {
    event.rsplit("::").next().unwrap_or(event)
}

/// An execution, with all that may stand in its name.
struct Traced<'r> {
    lane: &'r Lane,
    /// The name of its type.
    event: &'r str,
    taskpool: u32,
    id: u64,
    /// Only ends tell locals.
    has_ended: bool,
    /// In the order of its info.
    locals: Vec<(&'r str, i64)>,
}

/// What a number of a name can be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    Local(String),
    Id,
}

impl Traced<'_> {
    fn value(&self, origin: &Origin) -> Option<i64> {
        match origin {
            Origin::Local(name) => self.locals.iter().find(|(local, _)| local == name).map(|(_, value)| *value),
            Origin::Id => i64::try_from(self.id).ok(),
        }
    }

    /// All that have this value; locals come first, and parameters first among them.
    fn origins(&self, number: i64) -> Vec<Origin> {
        let locals = self.locals.iter().map(|(name, _)| Origin::Local((*name).to_owned()));
        locals.chain([Origin::Id]).filter(|origin| self.value(origin) == Some(number)).collect()
    }

    fn prefix(&self) -> String {
        format!("{}_{}", plain(unscoped(self.event)), self.taskpool)
    }

    fn name(&self, numbers: &[i64]) -> String {
        numbers.iter().fold(self.prefix(), |name, number| format!("{name}_{number}"))
    }

    /// The numbers behind class and taskpool.
    fn numbers(&self, name: &str) -> Option<Vec<i64>> {
        let rest = name.strip_prefix(&self.prefix())?;
        match rest.strip_prefix('_') {
            Some(numbers) => numbers.split('_').map(|number| number.parse().ok()).collect(),
            None => rest.is_empty().then(Vec::new),
        }
    }
}

/// By type of events: what each number of a name can be.
#[derive(Default)]
struct Numbers<'r> {
    of_type: HashMap<&'r str, Vec<Vec<Origin>>>,
}

impl<'r> Numbers<'r> {
    fn learn(&mut self, name: &str, task: &Traced<'r>) {
        let Some(numbers) = task.numbers(name) else { return };
        let known = self
            .of_type
            .entry(task.event)
            .or_insert_with(|| numbers.iter().map(|number| task.origins(*number)).collect());
        let is_alike = known.len() == numbers.len();
        for (origins, number) in known.iter_mut().zip(&numbers) {
            origins.retain(|origin| is_alike && task.value(origin) == Some(*number));
        }
    }

    /// The name of an execution. A type of which nothing was learned is taken to have all locals in it, as classes without
    /// derived ones do, or the id where it is of DTD, whose types have no scope.
    fn name(&self, task: &Traced<'_>) -> Option<String> {
        let numbers: Option<Vec<i64>> = match self.of_type.get(task.event) {
            Some(numbers) => numbers.iter().map(|origins| task.value(origins.first()?)).collect(),
            None if task.event.contains("::") => Some(task.locals.iter().map(|(_, value)| *value).collect()),
            None => task.value(&Origin::Id).map(|id| vec![id]),
        };
        numbers.map(|numbers| task.name(&numbers))
    }
}

/// What is known when every node has been looked for.
pub(super) struct Known<'k> {
    /// By place, each with the number of its graph.
    pub(super) nodes: &'k [Option<(usize, &'k Node)>],
    pub(super) joined: &'k Joined,
    pub(super) ranks: &'k [&'k Rank],
    pub(super) first_rows: &'k [Vec<i64>],
}

impl<'k> Known<'k> {
    /// Finds the tasks of nodes that collide and of names that are no nodes; `found` has them by place.
    pub(super) fn resolve(
        &self,
        colliding: &BTreeMap<TaskKey, Vec<usize>>,
        found: &mut [Option<u32>],
        tasks: &mut Tasks,
        stats: &mut Stats,
    ) {
        let mut numbers = Numbers::default();
        let doubtful: HashSet<usize> = colliding.values().flatten().copied().collect();
        for (place, task) in found.iter().enumerate().filter(|(place, _)| !doubtful.contains(place)) {
            let task = task.and_then(|task| self.traced(tasks.all[task as usize].last));
            if let Some(task) = task.filter(|task| task.has_ended) {
                numbers.learn(self.joined.name(place as i32), &task);
            }
        }
        for (key, places) in colliding {
            self.share_out(key, places, &numbers, found, tasks);
            stats.note(findings::DOT_NODES_OF_ONE_ID, places.len() as u64, || {
                let names: Vec<&str> = places.iter().map(|place| self.joined.name(*place as i32)).collect();
                format!(
                    "{} have one id, {}: executions are told apart by parameters and threads",
                    names.join(", "),
                    key.id
                )
            });
        }
        self.infer(&numbers, found, tasks, stats);
    }

    /// The execution that a row of `tasks` is.
    fn traced(&self, row: i64) -> Option<Traced<'k>> {
        let (rank, lane, row) = self.ranks.iter().zip(self.first_rows).find_map(|(rank, first_rows)| {
            let index = first_rows.partition_point(|first| *first <= row).checked_sub(1)?;
            let (lane, row) = (&rank.lanes[index], (row - first_rows[index]) as usize);
            (row < lane.starts.len()).then_some((rank, lane, row))
        })?;
        let entry = usize::from(lane.entries[row]);
        let args = lane.args.as_ref().filter(|args| args.is_valid(row));
        let facts: Map<String, Value> =
            args.and_then(|args| serde_json::from_str(args.value(row)).ok()).unwrap_or_default();
        let local = |name: &'k String| Some((name.as_str(), facts.get(name)?.as_i64()?));
        Some(Traced {
            lane,
            event: &rank.names[entry],
            taskpool: lane.taskpools[row],
            id: lane.ids[row],
            has_ended: facts.contains_key("tcid"),
            locals: rank.locals[entry].iter().filter_map(local).collect(),
        })
    }

    /// Gives each execution of a key to the node that its numbers name, else to one of its thread, else to one without any.
    fn share_out(
        &self,
        key: &TaskKey,
        places: &[usize],
        numbers: &Numbers<'_>,
        found: &mut [Option<u32>],
        tasks: &mut Tasks,
    ) {
        let Some(task) = tasks.find(key) else { return };
        let mut groups: BTreeMap<usize, Vec<Execution>> = BTreeMap::new();
        for execution in tasks.executions(task as u32) {
            let Some(traced) = self.traced(execution.row) else { continue };
            let name = numbers.name(&traced);
            let fit = |place: &&usize| {
                let is_named = name.as_deref() == Some(self.joined.name(**place as i32));
                let is_there = self.nodes[**place]
                    .is_some_and(|(_, node)| traced.lane.is_thread(node.thread, node.virtual_process));
                (Reverse(is_named), Reverse(is_there), groups.contains_key(*place))
            };
            if let Some(place) = places.iter().min_by_key(fit) {
                groups.entry(*place).or_default().push(execution);
            }
        }
        for place in places {
            found[*place] = None;
        }
        let (places, groups): (Vec<usize>, Vec<Vec<Execution>>) = groups.into_iter().unzip();
        for (place, part) in places.into_iter().zip(tasks.split(key, &groups)) {
            tasks.all[part as usize].place = place as i32;
            found[place] = Some(part);
        }
    }

    /// Finds names that are no nodes among the executions that have no node. What two of them may be called, neither is.
    fn infer(&self, numbers: &Numbers<'_>, found: &mut [Option<u32>], tasks: &mut Tasks, stats: &mut Stats) {
        let undeclared: HashMap<&str, usize> = (0..self.nodes.len())
            .filter(|place| self.nodes[*place].is_none())
            .map(|place| (self.joined.name(place as i32), place))
            .collect();
        let mut takers: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (task, executions) in tasks.all.iter().enumerate().filter(|(_, executions)| executions.place == NONE) {
            let name = self.traced(executions.last).and_then(|traced| numbers.name(&traced));
            if let Some(place) = name.and_then(|name| undeclared.get(name.as_str())) {
                takers.entry(*place).or_default().push(task as u32);
            }
        }
        for (place, takers) in takers {
            let [task] = takers[..] else { continue };
            tasks.all[task as usize].place = place as i32;
            found[place] = Some(task);
            stats.note(findings::DOT_UNDECLARED_FOUND, 1, || {
                format!("{} is no node, and was found by its parameters", self.joined.name(place as i32))
            });
        }
    }
}
