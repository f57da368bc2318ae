//! `slack(tasks, links)`: how much later each task could finish without making the longest chain longer.
//!
//! Life of the data: [`Graphs`] numbers the tasks and links of each run; path times walk them forwards as for
//! `critical_path`; the longest chain *after* each task is found by walking them in the reverse of that order; the rows
//! of the tasks are emitted with the slack in additional columns.
//!
//! ```text
//! a [---)               links: a -> c, b -> c       horizon: b, c = 5 + 2
//! b [---------)         a may finish as late as b: slack 2
//! c            [---)    b and c have none
//! ```

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Field};
use datafusion_common::Result;
use datafusion_doc::{DocSection, Documentation};

use crate::graph::explain::{Failure, WithoutLinks, all_path_times, explain, note_counts};
use crate::graph::in_order;
use crate::graph::links::{Links, Order};
use crate::graph::load::{Counts, Graph, Graphs, LINKS, LinkChoice, by_run};
use crate::graph::longest::{chain, last_of_longest, linked_tasks};
use crate::graph::rows::{Computed, emit_tasks};
use crate::relation::by_run::ByRun;
use crate::relation::call::{Call, Work};
use crate::relation::{ColumnKind, ColumnSpec, HandedOn, InputSpec, Omitted, Parameter, RelationFunction};
use crate::ticks::time_field;

/// The relation function `slack`.
#[derive(Debug)]
pub struct Slack;

static PARAMETERS: [Parameter; 2] = [
    Parameter::Input(InputSpec {
        name: "tasks",
        omitted: Omitted::Table("tasks"),
        columns: &[
            ColumnSpec::needed("task", ColumnKind::Integer),
            ColumnSpec::needed("duration", ColumnKind::Integer),
            ColumnSpec::optional("name", ColumnKind::Text).only_for(&["name"]),
            ColumnSpec::optional("location", ColumnKind::Text).only_for(&["location"]),
        ],
    }),
    LINKS,
];

static HANDED_ON: [HandedOn; 2] = [
    HandedOn { output: "name", input: "tasks", column: "name" },
    HandedOn { output: "location", input: "tasks", column: "location" },
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "How much later each task could finish without making the longest chain longer: what could be slower at no \
         cost. Times are those of a schedule in which every task starts as soon as its predecessors have finished, with \
         unlimited workers; 0 is its start and its horizon the length of the critical path.\n\n\
         Rows: one per task. It can run from `earliest_start` to `earliest_finish` at the earliest, and from \
         `latest_start` to `latest_finish` at the latest; `slack` is the distance between the two, `on_path` says whether \
         it is on the chain that `critical_path` gives (other tasks without slack are on chains that are as long). Inputs: given ones are taken as they \
         are, links of every kind. An omitted `links` is the `dependency` rows of `links`; an omitted `tasks` the tasks of \
         `tasks` at the ends of the links.\n\n\
         Units: ticks, from the start of that schedule, not of the run.\n\n\
         Nulls: a NULL duration counts as 0; tasks without id and links without source or target are left out. Links to \
         tasks that are not there are left out. Each is counted in a note.\n\n\
         Ties: those of `critical_path`. Duplicate links change nothing.\n\n\
         Errors: a cycle (its tasks are named), a task that is there twice in a run, a path time beyond BIGINT.\n\n\
         Cost: linear in tasks and links; 30 bytes a task beside the tasks themselves, and 8 a link unless links are sorted by target and lead forward in the order of tasks, twice \
         as much when they are sorted by neither end or lead backwards. Beyond half of the memory limit runs have \
         their turn one after the other, and the tasks of one that is too large stay on disk.\n\n\
         Source: critical path method, Kelley and Walker 1959: the total float.",
        "slack([tasks], [links])",
    )
    .with_sql_example(
        "SELECT task, earliest_finish, latest_finish, slack, on_path FROM slack(\n  \
         (SELECT * FROM (VALUES (1, 3), (2, 5), (3, 2)) AS tasks(task, duration)),\n  \
         (SELECT * FROM (VALUES (1, 3), (2, 3)) AS links(source, target)))\nORDER BY task",
    )
    .with_argument("tasks", "Relation: task, duration (BIGINT); optional run, name, location.")
    .with_argument("links", "Relation: source, target (tasks, BIGINT); optional run, kind.")
    .build()
});

impl RelationFunction for Slack {
    fn name(&self) -> &'static str {
        "slack"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            Field::new("task", DataType::Int64, false),
            Field::new("name", DataType::Utf8View, true),
            Field::new("location", DataType::Utf8View, true),
            time_field("duration", false),
            time_field("earliest_start", false),
            time_field("earliest_finish", false),
            time_field("latest_start", false),
            time_field("latest_finish", false),
            time_field("slack", false),
            Field::new("on_path", DataType::Boolean, false),
        ]
    }

    fn handed_on(&self) -> &'static [HandedOn] {
        &HANDED_ON
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let tasks_omitted = call.input("tasks")?.0.was_omitted();
        let links_omitted = call.input("links")?.0.was_omitted();
        let mut parts = ByRun::read(call, &by_run(TASK_BYTES))?;
        let (mut counts, mut without_links) = (Counts::default(), WithoutLinks::default());
        while parts.next(call)? {
            let mut graphs = Graphs::read(call, LinkChoice::AsTheyStand)?;
            let mut unlinked = vec![];
            for run in graphs.runs.in_order() {
                let before = call.work.size();
                let (graph, nowhere) = (&mut graphs.graphs[run], &mut graphs.counts.links_to_nowhere);
                let in_order = Schedule::in_order(graph, tasks_omitted, nowhere, &mut call.work);
                let schedule = match in_order.transpose() {
                    Some(schedule) => schedule,
                    None => {
                        *nowhere += graph.number_links(&mut call.work)?;
                        if graph.links.is_empty() {
                            unlinked.push(run);
                            if tasks_omitted || links_omitted {
                                continue;
                            }
                        }
                        Schedule::new(graph, tasks_omitted, &mut call.work)
                    }
                };
                let schedule = schedule.map_err(|failure| explain(failure, &graphs, run, self.name()))?;
                let (graph, linked) = (&graphs.graphs[run], schedule.linked.as_deref());
                emit_tasks(call, &graphs, run, linked, &|_, tasks| Ok(schedule.columns(graph, tasks)))?;
                let after = call.work.size();
                call.work.shrink(after.saturating_sub(before));
            }
            counts.add(graphs.counts);
            // Where the links were given, runs without one are meant so.
            let said = links_omitted || tasks_omitted;
            without_links.add(&graphs, if said { &unlinked } else { &[] });
        }
        note_counts(&counts, &call.work);
        without_links.note(links_omitted, "there is no path", &call.work);
        Ok(())
    }
}

/// Bytes that a task takes beside its row: its duration, the chains before and after it.
const TASK_BYTES: usize = 3 * size_of::<i64>() + size_of::<u32>() + size_of::<bool>();

/// The schedule of a run with unlimited workers.
struct Schedule {
    /// Per task: the longest chain of durations that ends with it.
    time: Vec<i64>,
    /// Per task: the longest chain of durations after it.
    after: Vec<i64>,
    /// The length of the longest chain.
    horizon: i64,
    on_path: Vec<bool>,
    /// Which tasks are at the end of a link, where others are left out.
    linked: Option<Vec<bool>>,
}

impl Schedule {
    /// Where links are sorted in their table; otherwise `None`, which leaves it to [`Schedule::new`].
    fn in_order(
        graph: &Graph,
        linked_only: bool,
        nowhere: &mut usize,
        work: &mut Work,
    ) -> Result<Option<Schedule>, Failure> {
        let Some(base) = graph.ids.dense_base().filter(|_| !graph.standing.is_empty()) else { return Ok(None) };
        let (durations, tasks) = (&graph.durations, graph.durations.len());
        let bytes = tasks * (2 * size_of::<i64>() + 2 * size_of::<bool>());
        work.grow(bytes).map_err(Failure::Memory)?;
        let (links, is_cancelled) = (graph.standing.ordered(base), || work.is_cancelled());
        let found = in_order::path_times(durations.clone(), base, &links, &is_cancelled)?;
        let Some(found) = found.filter(|found| found.nowhere < graph.standing.len()) else {
            work.shrink(bytes);
            return Ok(None);
        };
        *nowhere += found.nowhere;
        let after = in_order::times_after(durations, base, &links, &is_cancelled)?;
        let linked = linked_only.then(|| in_order::linked(tasks, base, &links, &is_cancelled)).transpose()?;
        let mut schedule = Schedule { time: found.time, after, horizon: 0, on_path: vec![false; tasks], linked };
        if let Some(last) = last_task(graph, &schedule.time, schedule.linked.as_deref()) {
            let chain = in_order::chain(&schedule.time, base, &links, last, &is_cancelled)?;
            schedule.mark(&chain);
        }
        Ok(Some(schedule))
    }

    fn new(graph: &Graph, linked_only: bool, work: &mut Work) -> Result<Schedule, Failure> {
        let tasks = graph.durations.len();
        let paths = all_path_times(&graph.durations, &graph.links, work)?;
        work.grow(tasks * (size_of::<i64>() + 2 * size_of::<bool>())).map_err(Failure::Memory)?;
        let after = times_after(&graph.durations, &graph.links, work)?;
        let linked = linked_only.then(|| linked_tasks(tasks, &graph.links));
        let chain = last_task(graph, &paths.time, linked.as_deref()).map(|last| chain(&paths, last));
        let mut schedule = Schedule { time: paths.time, after, horizon: 0, on_path: vec![false; tasks], linked };
        chain.iter().for_each(|chain| schedule.mark(chain));
        Ok(schedule)
    }

    /// Marks the tasks of the longest chain, the last of which tells its length.
    fn mark(&mut self, chain: &[u32]) {
        self.horizon = chain.last().map_or(0, |last| self.time[*last as usize]);
        chain.iter().for_each(|task| self.on_path[*task as usize] = true);
    }

    fn columns(&self, graph: &Graph, tasks: &[u32]) -> Computed {
        // All of these fit: they lie between the borders of the schedule, or a negative duration before them.
        let column = |value: &dyn Fn(usize) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(tasks.iter().map(|task| value(*task as usize))))
        };
        let duration = |task: usize| graph.durations[task];
        let earliest = |task: usize| self.time[task];
        let latest = |task: usize| self.horizon.saturating_sub(self.after[task]);
        let on_path: BooleanArray = tasks.iter().map(|task| Some(self.on_path[*task as usize])).collect();
        vec![
            ("duration", column(&duration)),
            ("earliest_start", column(&|task| earliest(task).saturating_sub(duration(task)))),
            ("earliest_finish", column(&earliest)),
            ("latest_start", column(&|task| latest(task).saturating_sub(duration(task)))),
            ("latest_finish", column(&latest)),
            ("slack", column(&|task| latest(task).saturating_sub(earliest(task)))),
            ("on_path", Arc::new(on_path)),
        ]
    }
}

/// The end of the longest chain, of linked tasks only where that is said.
fn last_task(graph: &Graph, time: &[i64], linked: Option<&[bool]>) -> Option<u32> {
    let is_linked = |task: u32| linked.is_none_or(|linked| linked[task as usize]);
    last_of_longest(time, |task| graph.ids.row(task).is_some() && is_linked(task))
}

/// The longest chain of durations after each task, given that there is no cycle and no chain is too long.
fn times_after(durations: &[i64], links: &Links, work: &mut Work) -> Result<Vec<i64>, Failure> {
    match links.order() {
        // Each link leads to a higher index, and either end never decreases: when a link comes up from behind, all links
        // from its target have been there.
        Order::ByTarget(chunks) | Order::BySource(chunks) => {
            let mut after = vec![0i64; durations.len()];
            for chunk in chunks.iter().rev() {
                work.check().map_err(Failure::Memory)?;
                for link in chunk.iter().rev() {
                    let target = link.target as usize;
                    let through = durations[target].saturating_add(after[target]);
                    let before = &mut after[link.source as usize];
                    *before = through.max(*before);
                }
            }
            Ok(after)
        }
        Order::Ascending(_) | Order::Unknown(_) => {
            work.grow(links.size()).map_err(Failure::Memory)?;
            let with_task = all_path_times(durations, &links.reversed(), work)?.time;
            Ok(with_task.iter().zip(durations).map(|(time, duration)| time.saturating_sub(*duration)).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::links::Link;
    use crate::graph::longest::path_times;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn links(pairs: &[(u32, u32)]) -> Links {
        let mut links = Links::default();
        pairs.iter().for_each(|(source, target)| links.push(Link { source: *source, target: *target }));
        links
    }

    /// The longest chain that begins after a task, by trying all.
    fn naive_after(durations: &[i64], pairs: &[(u32, u32)], task: u32) -> i64 {
        let targets = pairs.iter().filter(|pair| pair.0 == task).map(|pair| pair.1);
        targets
            .map(|target| durations[target as usize] + naive_after(durations, pairs, target))
            .max()
            .unwrap_or(0)
            .max(0)
    }

    proptest! {
        #[test]
        fn equals_the_search_of_all_chains(
            durations in vec(-2..5i64, 7), mut pairs in vec((0..7u32, 0..7u32), 0..12), order in 0..4u8,
        ) {
            // Any order of ids without a cycle: links lead upwards, or all downwards.
            pairs.retain(|(source, target)| source != target);
            for pair in &mut pairs {
                let (low, high) = (pair.0.min(pair.1), pair.0.max(pair.1));
                *pair = if order == 3 { (high, low) } else { (low, high) };
            }
            match order {
                0 => pairs.sort_by_key(|pair| pair.1),
                1 => pairs.sort_by_key(|pair| pair.0),
                _ => {}
            }
            let mut work = Work::for_tests();
            let found = times_after(&durations, &links(&pairs), &mut work).ok().unwrap();
            for task in 0..7u32 {
                prop_assert_eq!(found[task as usize], naive_after(&durations, &pairs, task));
            }
            // Nobody's slack is negative, and somebody has none.
            let all = links(&pairs);
            let time = path_times(&durations, &all.order(), &|| false).unwrap().time;
            let horizon = *time.iter().max().unwrap();
            let slack = |task: usize| horizon - found[task] - time[task];
            prop_assert!((0..7).all(|task| slack(task) >= 0) && (0..7).any(|task| slack(task) == 0));
        }
    }
}
