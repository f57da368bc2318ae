//! `what_if(tasks, links, changed)`: how short a run could be if some tasks had other durations.
//!
//! Life of the data: [`Graphs`] numbers the tasks and links of each run and takes their durations; `changed` is looked up and
//! replaces some of them; the longest chain is found twice, with one order of the links for both.
//!
//! ```text
//! a [---------)             links: a -> c, b -> c       path: a, c = 5 + 2 = 7
//! b [---)                   a in 1 instead of 5         path: b, c = 2 + 2 = 4: b is in the way now
//! c           [---)
//! ```

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_doc::{DocSection, Documentation};

use crate::graph::explain::{Failure, WithoutLinks, all_path_times, explain, note_counts};
use crate::graph::load::{Counts, Graph, Graphs, LINKS, LinkChoice, by_run};
use crate::graph::longest::{last_of_longest, linked_tasks};
use crate::lanes::words::{Words, WordsReading};
use crate::relation::by_run::ByRun;
use crate::relation::call::{Call, Work};
use crate::relation::parts::{InputPlan, Share};
use crate::relation::rows::{EVERY_RUN, Role, Rows};
use crate::relation::runs::Runs;
use crate::relation::{
    ColumnKind, ColumnSpec, Default, InputSpec, Omitted, OptionKind, OptionSpec, Parameter, RelationFunction,
};
use crate::ticks::time_field;

/// The relation function `what_if`.
#[derive(Debug)]
pub struct WhatIf;

static PARAMETERS: [Parameter; 4] = [
    Parameter::Input(InputSpec {
        name: "tasks",
        omitted: Omitted::Table("tasks"),
        columns: &[
            ColumnSpec::needed("task", ColumnKind::Integer),
            ColumnSpec::needed("duration", ColumnKind::Integer),
            ColumnSpec::optional("location", ColumnKind::Text),
        ],
    }),
    LINKS,
    Parameter::Input(InputSpec {
        name: "changed",
        omitted: Omitted::Refused,
        columns: &[
            ColumnSpec::needed("task", ColumnKind::Integer),
            ColumnSpec::needed("duration", ColumnKind::Integer),
        ],
    }),
    Parameter::Option(OptionSpec { name: "lanes", kind: OptionKind::Integer, default: Default::Null }),
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "How short a run could be if some tasks had other durations: its longest chain and its work, with the recorded \
         durations and with those in `changed`.\n\n\
         Rows: one per run. `path_before` and `path_after` are the lengths of the longest chain through the links, `work_before` \
         and `work_after` the sums of the durations, `bound_before` and `bound_after` the larger one of path and work ÷ lanes \
         (rounded up): no schedule on that many lanes can be shorter. `lanes` is the number of locations of the run's tasks \
         unless it is given; without either, the bound is the path. `changed` counts the tasks whose duration was replaced. \
         Inputs: given ones are taken as they are, links of every kind. An omitted `links` is the `dependency` rows of `links`; \
         an omitted `tasks` the tasks of `tasks` at the ends of the links. When `links` is omitted and a run has no dependency, \
         it has no row, and a note says so.\n\n\
         Units: ticks; `lanes` and `changed` are numbers.\n\n\
         Nulls: a NULL duration counts as 0; a row of `changed` without task or duration changes nothing. Tasks without id, \
         links without source or target, links to and changes of tasks that are not there are left out. Each is counted in a \
         note. A `changed` without `run` is for every run in which the task is.\n\n\
         Ties: none.\n\n\
         Errors: a cycle (its tasks are named), a task that is there twice in a run or twice in `changed`, a new duration below 0, \
         a path or work beyond BIGINT, `lanes` below 1.\n\n\
         Cost: linear in tasks and links; 44 bytes a task and 8 a link beside the tasks themselves. Beyond half of the memory \
         limit runs have their turn one after the other, and the tasks of one that is too large stay on disk.\n\n\
         Source: the bounds of Graham 1969 on list schedules; what-if profiles as in Coz, Curtsinger and Berger 2015.",
        "what_if([tasks], [links], changed, [lanes => BIGINT])",
    )
    .with_sql_example(
        "SELECT path_before, path_after, work_before, work_after, bound_before, bound_after FROM what_if(\n  \
         (SELECT * FROM (VALUES (1, 5), (2, 2), (3, 2)) AS tasks(task, duration)),\n  \
         (SELECT * FROM (VALUES (1, 3), (2, 3)) AS links(source, target)),\n  \
         (SELECT 1 AS task, 1 AS duration), lanes => 2)",
    )
    .with_argument("tasks", "Relation: task, duration (BIGINT); optional run, location.")
    .with_argument("links", "Relation: source, target (tasks, BIGINT); optional run, kind.")
    .with_argument("changed", "Relation: task, duration (BIGINT), the new duration; optional run.")
    .with_argument("lanes", "How many tasks can run at a time (BIGINT, default: the locations of the run's tasks).")
    .build()
});

impl RelationFunction for WhatIf {
    fn name(&self) -> &'static str {
        "what_if"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            time_field("path_before", false),
            time_field("path_after", false),
            time_field("work_before", false),
            time_field("work_after", false),
            Field::new("lanes", DataType::Int64, true),
            time_field("bound_before", false),
            time_field("bound_after", false),
            Field::new("changed", DataType::Int64, false),
        ]
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let given_lanes = call.options.integer("lanes")?;
        if let Some(lanes) = given_lanes.filter(|lanes| *lanes < 1) {
            return plan_err!("what_if: `lanes` must be at least 1, not {lanes}");
        }
        let tasks_omitted = call.input("tasks")?.0.was_omitted();
        let links_omitted = call.input("links")?.0.was_omitted();
        let [tasks, links] = by_run(TASK_BYTES);
        let changed = InputPlan { input: "changed", share: Share::All, row_bytes: 0 };
        let mut parts = ByRun::read(call, &[tasks, links, changed])?;
        let (mut counts, mut without_links) = (Counts::default(), WithoutLinks::default());
        let mut found = vec![];
        let mut left_out = 0;
        while parts.next(call)? {
            let mut graphs = Graphs::read(call, LinkChoice::Together)?;
            counts.add(graphs.counts);
            let changed = Rows::read(call, "changed", Role::Other, &["task", "duration"], &mut graphs.runs)?;
            // All parts have the same rows of it.
            found.resize(changed.len(), false);
            left_out = changed.left_out;
            let mut changes = Changes { found: &mut found, changed };
            let (mut rows, mut unlinked) = (vec![], vec![]);
            for run in graphs.runs.in_order() {
                call.work.check()?;
                let graph = &graphs.graphs[run];
                if graph.links.is_empty() && (tasks_omitted || links_omitted) {
                    unlinked.push(run);
                    continue;
                }
                let linked = tasks_omitted.then(|| linked_tasks(graph.durations.len(), &graph.links));
                let counts = |task: u32| {
                    graph.ids.row(task).is_some() && linked.as_ref().is_none_or(|linked| linked[task as usize])
                };
                call.work.grow(graph.durations.len() * size_of::<i64>())?;
                let mut durations = graph.durations.clone();
                let replaced = changes.apply(graph, run, &mut durations)?;
                let lanes = match given_lanes {
                    Some(lanes) => Some(lanes),
                    None => locations(&graphs, run, &counts)?,
                };
                let mut bounds = |durations: &[i64]| {
                    let bounds = Bounds::new(graph, durations, &counts, lanes, &mut call.work);
                    bounds.map_err(|failure| explain(failure, &graphs, run, self.name()))
                };
                let (before, after) = (bounds(&graph.durations)?, bounds(&durations)?);
                call.work.shrink(durations.len() * size_of::<i64>());
                rows.push(Answer { run, before, after, lanes, changed: replaced });
            }
            without_links.add(&graphs, &unlinked);
            emit(call, &graphs.runs, &rows)?;
        }
        note_counts(&counts, &call.work);
        without_links.note(links_omitted, "there is no path", &call.work);
        note_changes(left_out, &found, &call.work);
        Ok(())
    }
}

/// Bytes that a task takes beside its row: two durations, and the path times.
const TASK_BYTES: usize = 3 * size_of::<i64>() + size_of::<u32>();

fn emit(call: &mut Call, runs: &Runs, rows: &[Answer]) -> Result<()> {
    let integers = |value: &dyn Fn(&Answer) -> Option<i64>| -> ArrayRef {
        Arc::new(rows.iter().map(value).collect::<Int64Array>())
    };
    let of_runs: Vec<(usize, usize)> = rows.iter().map(|row| (row.run, 1)).collect();
    let columns = vec![
        runs.column(&of_runs, call.output().field(0).data_type())?,
        integers(&|row| Some(row.before.path)),
        integers(&|row| Some(row.after.path)),
        integers(&|row| Some(row.before.work)),
        integers(&|row| Some(row.after.work)),
        integers(&|row| row.lanes),
        integers(&|row| Some(row.before.bound)),
        integers(&|row| Some(row.after.bound)),
        integers(&|row| Some(row.changed)),
    ];
    if rows.is_empty() { Ok(()) } else { call.emit(columns) }
}

/// The answer for a run.
struct Answer {
    run: usize,
    before: Bounds,
    after: Bounds,
    lanes: Option<i64>,
    changed: i64,
}

/// What no schedule can beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bounds {
    path: i64,
    work: i64,
    bound: i64,
}

impl Bounds {
    fn new(
        graph: &Graph,
        durations: &[i64],
        counts: &dyn Fn(u32) -> bool,
        lanes: Option<i64>,
        work: &mut Work,
    ) -> Result<Bounds, Failure> {
        let before = work.size();
        let paths = all_path_times(durations, &graph.links, work)?;
        let path = last_of_longest(&paths.time, counts).map_or(0, |last| paths.time[last as usize]);
        work.shrink(work.size() - before);
        let total: i128 =
            (0u32..).zip(durations).filter(|(task, _)| counts(*task)).map(|(_, ticks)| i128::from(*ticks)).sum();
        let Ok(total) = i64::try_from(total) else {
            let error =
                datafusion_common::exec_datafusion_err!("what_if: the sum of the durations does not fit a BIGINT");
            return Err(Failure::Memory(error));
        };
        Ok(Bounds { path, work: total, bound: lanes.map_or(path, |lanes| path.max(ceil_div(total, lanes))) })
    }
}

/// Rounded up; the divisor is positive.
fn ceil_div(value: i64, by: i64) -> i64 {
    value.div_euclid(by) + i64::from(value.rem_euclid(by) > 0)
}

/// How many locations the tasks of a run are on; `None` when that is not known.
fn locations(graphs: &Graphs, run: usize, counts: &dyn Fn(u32) -> bool) -> Result<Option<i64>> {
    let (mut words, mut reading, mut seen) = (Words::default(), WordsReading::default(), HashSet::new());
    let ids = &graphs.graphs[run].ids;
    for rows in graphs.rows(run)? {
        let rows = rows?;
        let Some(locations) = rows.column_by_name("location") else { return Ok(None) };
        let tasks = crate::relation::call::column(&rows, "task")?;
        let tasks = arrow::array::AsArray::as_primitive::<arrow::datatypes::Int64Type>(tasks);
        let mut numbers = Vec::with_capacity(tasks.len());
        words.number(&mut reading, locations, &mut numbers)?;
        let counted = numbers.iter().zip(tasks.values()).filter(|(_, task)| ids.index(**task).is_some_and(counts));
        seen.extend(counted.map(|(word, _)| *word).filter(|word| *word != crate::graph::NONE));
    }
    Ok(Some(seen.len() as i64).filter(|lanes| *lanes > 0))
}

/// The input `changed`.
struct Changes<'a> {
    changed: Rows,
    /// Per row: whether some run has the task.
    found: &'a mut [bool],
}

impl Changes<'_> {
    /// Replaces durations; answers how many.
    fn apply(&mut self, graph: &Graph, run: usize, durations: &mut [i64]) -> Result<i64> {
        let mut replaced = HashSet::new();
        for rows in self.changed.of_run(run).into_iter().chain(self.changed.of_run(EVERY_RUN)) {
            let (tasks, new) = (rows.values("task")?, rows.values("duration")?);
            for ((row, task), duration) in rows.numbers().zip(tasks).zip(new) {
                let Some(index) = graph.ids.index(*task) else { continue };
                self.found[row] = true;
                if !replaced.insert(index) {
                    return exec_err!("what_if: task {task} is in input `changed` more than once");
                }
                if *duration < 0 {
                    return exec_err!(
                        "what_if: the new duration of task {task} in input `changed` is below 0: {duration}"
                    );
                }
                durations[index as usize] = *duration;
            }
        }
        Ok(replaced.len() as i64)
    }
}

fn note_changes(left_out: usize, found: &[bool], work: &Work) {
    let say = |count: usize, one: &str, many: &str| work.note_count(count, one, many);
    say(left_out, "change without task or duration was left out", "changes without task or duration were left out");
    let strangers = found.iter().filter(|found| !**found).count();
    say(
        strangers,
        "change of a task that is not there was left out",
        "changes of tasks that are not there were left out",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_work_are_rounded_up() {
        for (value, by, expected) in
            [(7, 2, 4), (8, 2, 4), (0, 3, 0), (-7, 2, -3), (i64::MAX, 1, i64::MAX), (1, i64::MAX, 1)]
        {
            assert_eq!(ceil_div(value, by), expected, "{value} / {by}");
        }
    }
}
