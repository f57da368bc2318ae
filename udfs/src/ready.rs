//! `ready(tasks, links)`: when each task could have started, and which task it waited for last.
//!
//! Life of the data: [`Graphs`] numbers the tasks and links of each run; one pass over the links, in any order, keeps for
//! each task its predecessor that finishes last; the rows of the tasks are emitted with that in additional columns.
//!
//! ```text
//! a [---)               links: a -> c, b -> c
//! b [-------)
//! c            [---)    ready when b finishes, released by b; the delay is the wait from there to its start
//! ```

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion_common::{Result, exec_err};
use datafusion_doc::{DocSection, Documentation};

use crate::graph::NONE;
use crate::graph::explain::{WithoutLinks, note_counts};
use crate::graph::links::Links;
use crate::graph::load::{Counts, Graph, Graphs, LINKS, LinkChoice, by_run};
use crate::graph::longest::linked_tasks;
use crate::graph::rows::{Computed, emit_tasks};
use crate::relation::by_run::ByRun;
use crate::relation::call::{Call, column};
use crate::relation::{ColumnKind, ColumnSpec, HandedOn, InputSpec, Omitted, Parameter, RelationFunction};
use crate::ticks::time_field;

/// The relation function `ready`.
#[derive(Debug)]
pub struct Ready;

static PARAMETERS: [Parameter; 2] = [
    Parameter::Input(InputSpec {
        name: "tasks",
        omitted: Omitted::Table("tasks"),
        columns: &[
            ColumnSpec::needed("task", ColumnKind::Integer),
            ColumnSpec::needed("start", ColumnKind::Integer),
            ColumnSpec::needed("finish", ColumnKind::Integer),
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
        "When each task could have started: the latest finish of its predecessors, and how long it waited after that.\n\n\
         Rows: one per task. `ready_time` is the latest finish among its predecessors, `released_by` the predecessor that \
         has it, `delay` is start - ready_time: time in which the task waited for something else, as a free worker. It is \
         negative where a task starts before a predecessor finishes: the links do not tell the order, or clocks differ. \
         A task without predecessors has NULL in all three. Inputs: given ones are taken as they are, links of every kind. An \
         omitted `links` is the `dependency` rows of `links`; an omitted `tasks` the tasks of `tasks` at the ends of the links.\n\n\
         Units: ticks.\n\n\
         Nulls: a predecessor that never ended (finish NULL) is ignored; a task without start has no delay. Tasks without \
         id and links without source or target are left out. Links to tasks that are not there and links of a task to \
         itself are left out. Each is counted in a note.\n\n\
         Ties: of predecessors that finish together, the smallest task. Duplicate links change nothing; cycles do \
         not matter.\n\n\
         Errors: a task that is there twice in a run, a delay beyond BIGINT, a finish of -9223372036854775808.\n\n\
         Cost: linear in tasks and links; 28 bytes a task and 8 a link beside the tasks themselves. Beyond half of the memory \
         limit runs have their turn one after the other, and the tasks of one that is too large stay on disk.\n\n\
         Source: the release of tasks in dataflow runtimes; as in PaRSEC's trace tools.",
        "ready([tasks], [links])",
    )
    .with_sql_example(
        "SELECT task, ready_time, delay, released_by FROM ready(\n  \
         (SELECT * FROM (VALUES (1, 0, 3), (2, 0, 5), (3, 7, 9)) AS tasks(task, start, finish)),\n  \
         (SELECT * FROM (VALUES (1, 3), (2, 3)) AS links(source, target)))\nORDER BY task",
    )
    .with_argument("tasks", "Relation: task, start, finish (BIGINT); optional run, name, location.")
    .with_argument("links", "Relation: source, target (tasks, BIGINT); optional run, kind.")
    .build()
});

impl RelationFunction for Ready {
    fn name(&self) -> &'static str {
        "ready"
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
            time_field("start", true),
            time_field("finish", true),
            time_field("ready_time", true),
            time_field("delay", true),
            Field::new("released_by", DataType::Int64, true),
        ]
    }

    fn handed_on(&self) -> &'static [HandedOn] {
        &HANDED_ON
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let tasks_omitted = call.input("tasks")?.0.was_omitted();
        let links_omitted = call.input("links")?.0.was_omitted();
        let mut parts = ByRun::read(call, &by_run(TASK_BYTES))?;
        let (mut own, mut endless) = (0, 0);
        let (mut counts, mut without_links) = (Counts::default(), WithoutLinks::default());
        while parts.next(call)? {
            let graphs = Graphs::read(call, LinkChoice::Together)?;
            counts.add(graphs.counts);
            let mut unlinked = vec![];
            for run in graphs.runs.in_order() {
                let graph = &graphs.graphs[run];
                if graph.links.is_empty() {
                    unlinked.push(run);
                }
                let finishes = graphs.by_index(run, "finish", UNKNOWN, &mut call.work)?;
                call.work.grow(finishes.len() * (size_of::<i64>() + size_of::<u32>()))?;
                let releases = releases(&finishes, &graph.links, &|| call.work.check())?;
                own += releases.own_links;
                endless += releases.endless_sources;
                let linked = tasks_omitted.then(|| linked_tasks(finishes.len(), &graph.links));
                emit_tasks(call, &graphs, run, linked.as_deref(), &|rows, tasks| releases.columns(graph, rows, tasks))?;
                call.work.shrink(finishes.len() * (2 * size_of::<i64>() + size_of::<u32>()));
            }
            without_links.add(&graphs, &unlinked);
        }
        note_counts(&counts, &call.work);
        without_links.note(links_omitted, "no task waits for another", &call.work);
        let say = |count: usize, one: &str, many: &str| call.work.note_count(count, one, many);
        say(own, "link of a task to itself was left out", "links of tasks to themselves were left out");
        say(
            endless,
            "link from a task that never ended was left out",
            "links from tasks that never ended were left out",
        );
        Ok(())
    }
}

/// Bytes that a task takes beside its row.
const TASK_BYTES: usize = 2 * size_of::<i64>() + size_of::<u32>();

/// The finish of a task that never ended: no time is before it.
const UNKNOWN: i64 = i64::MIN;

/// Per task, who released it.
#[derive(Debug, PartialEq, Eq)]
struct Releases {
    /// The latest finish among the predecessors.
    times: Vec<i64>,
    /// The predecessor that has it, [`NONE`] without one.
    by: Vec<u32>,
    own_links: usize,
    endless_sources: usize,
}

fn releases(finishes: &[i64], links: &Links, check: &dyn Fn() -> Result<()>) -> Result<Releases> {
    let tasks = finishes.len();
    let mut found = Releases { times: vec![UNKNOWN; tasks], by: vec![NONE; tasks], own_links: 0, endless_sources: 0 };
    for (number, link) in links.iter().enumerate() {
        if number % 65_536 == 0 {
            check()?;
        }
        let (finish, target) = (finishes[link.source as usize], link.target as usize);
        if link.source == link.target {
            found.own_links += 1;
        } else if finish == UNKNOWN {
            found.endless_sources += 1;
        } else if finish > found.times[target] || (finish == found.times[target] && link.source < found.by[target]) {
            (found.times[target], found.by[target]) = (finish, link.source);
        }
    }
    Ok(found)
}

impl Releases {
    fn columns(&self, graph: &Graph, rows: &RecordBatch, tasks: &[u32]) -> Result<Computed> {
        let starts = column(rows, "start")?.as_primitive::<Int64Type>();
        let known = |task: u32| self.by[task as usize] != NONE;
        let time = |task: &u32| known(*task).then(|| self.times[*task as usize]);
        let by = |task: &u32| known(*task).then(|| graph.ids.id(self.by[*task as usize]));
        let mut delays = Vec::with_capacity(tasks.len());
        for (row, task) in tasks.iter().enumerate() {
            delays.push(match time(task) {
                Some(time) if starts.is_valid(row) => match starts.value(row).checked_sub(time) {
                    Some(delay) => Some(delay),
                    None => return exec_err!("ready: the delay of task {} does not fit a BIGINT", graph.ids.id(*task)),
                },
                _ => None,
            });
        }
        Ok(vec![
            ("ready_time", Arc::new(tasks.iter().map(time).collect::<Int64Array>())),
            ("delay", Arc::new(Int64Array::from(delays))),
            ("released_by", Arc::new(tasks.iter().map(by).collect::<Int64Array>())),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::links::Link;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        /// Of all predecessors the one that finishes last, of those the smallest.
        #[test]
        fn equals_a_look_at_all_predecessors(
            finishes in vec(prop_oneof![Just(UNKNOWN), -3..4i64], 6), pairs in vec((0..6u32, 0..6u32), 0..14),
        ) {
            let mut links = Links::default();
            pairs.iter().for_each(|(source, target)| links.push(Link { source: *source, target: *target }));
            let found = releases(&finishes, &links, &|| Ok(())).unwrap();
            for task in 0..6u32 {
                let predecessors = pairs.iter().filter(|pair| pair.1 == task && pair.0 != task).map(|pair| pair.0);
                let known = predecessors.filter(|source| finishes[*source as usize] != UNKNOWN);
                let last = known.max_by_key(|source| (finishes[*source as usize], std::cmp::Reverse(*source)));
                prop_assert_eq!(found.by[task as usize], last.unwrap_or(NONE));
                prop_assert_eq!(found.times[task as usize], last.map_or(UNKNOWN, |last| finishes[last as usize]));
            }
        }
    }
}
