//! The messages of functions on task graphs: errors in the words of the trace, and notes about what was left out.

use std::borrow::Cow;

use datafusion_common::{Result, exec_err};

use crate::graph::links::{Links, Order};
use crate::graph::load::{Counts, Graphs};
use crate::graph::longest::{PathTimes, bytes_needed, path_times, path_times_of};
use crate::graph::no_path::NoPath;
use crate::relation::call::Work;
use crate::relation::notes::Said;
use crate::relation::runs::Runs;

/// Why a run has no answer.
pub(crate) enum Failure {
    NoPath(NoPath),
    /// No memory, or the query was cancelled.
    Memory(datafusion_common::DataFusionError),
}

impl From<NoPath> for Failure {
    fn from(no_path: NoPath) -> Self {
        Failure::NoPath(no_path)
    }
}

/// Path times of all tasks, with the memory asked for.
pub(crate) fn all_path_times(durations: &[i64], links: &Links, work: &mut Work) -> Result<PathTimes, Failure> {
    let order: Order<'_> = links.order();
    work.grow(bytes_needed(durations.len(), links.len(), &order)).map_err(Failure::Memory)?;
    Ok(path_times(durations, &order, &|| work.is_cancelled())?)
}

/// The same where durations are not needed any more: they become the path times, if the order of the links allows that.
pub(crate) fn all_path_times_of(durations: Vec<i64>, links: &Links, work: &mut Work) -> Result<PathTimes, Failure> {
    let order = links.order();
    let tasks = durations.len();
    let times = match order {
        Order::ByTarget(_) | Order::Ascending(_) => tasks * size_of::<i64>(),
        Order::BySource(_) | Order::Unknown(_) => 0,
    };
    work.grow(bytes_needed(tasks, links.len(), &order) - times).map_err(Failure::Memory)?;
    Ok(path_times_of(Cow::Owned(durations), &order, &|| work.is_cancelled())?)
}

/// Tasks of a cycle that an error lists before it says how many more there are.
const CYCLE_TASKS_SHOWN: usize = 8;

/// The error of a run without a longest chain, in the words of the trace.
pub(crate) fn explain(
    failure: Failure,
    graphs: &Graphs,
    run: usize,
    function: &str,
) -> datafusion_common::DataFusionError {
    let of_run = match graphs.runs.describe(run) {
        run if run.is_empty() => run,
        run => format!(" of {run}"),
    };
    let described = |tasks: &[u32]| -> Result<Vec<String>> {
        let names = graphs.text(run, tasks, "name")?;
        let names = arrow::array::AsArray::as_string_view(&names);
        let task = |(task, name): (&u32, Option<&str>)| match name {
            Some(name) if !name.is_empty() => format!("{} ({name})", graphs.graphs[run].ids.id(*task)),
            _ => graphs.graphs[run].ids.id(*task).to_string(),
        };
        Ok(tasks.iter().zip(names.iter()).map(task).collect())
    };
    let error: Result<()> = match failure {
        Failure::Memory(error) => return error,
        Failure::NoPath(NoPath::Interrupted) => exec_err!("the query was cancelled"),
        Failure::NoPath(NoPath::Overflow(task)) => described(&[task]).and_then(|task| {
            exec_err!("{function}: the path time of task {}{of_run} does not fit a BIGINT", task.concat())
        }),
        Failure::NoPath(NoPath::Cycle(cycle)) => {
            described(&cycle[..cycle.len().min(CYCLE_TASKS_SHOWN)]).and_then(|mut tasks| {
                match cycle.len() - tasks.len() {
                    0 => tasks.extend(tasks.first().cloned()),
                    more => tasks.push(format!("{more} more -> {}", tasks[0])),
                }
                exec_err!("{function}: the links{of_run} form a cycle: task {}", tasks.join(" -> "))
            })
        }
    };
    match error {
        Err(error) => error,
        Ok(()) => datafusion_common::internal_datafusion_err!("a failure without an error"),
    }
}

/// Says what was left out or guessed while reading.
pub(crate) fn note_counts(counts: &Counts, work: &Work) {
    let say = |count: usize, one: &str, many: &str| work.note_count(count, one, many);
    say(counts.tasks_without_duration, "task has no duration and counts as 0", "tasks have no duration and count as 0");
    say(counts.tasks_without_id, "task without id was left out", "tasks without id were left out");
    say(
        counts.links_without_end,
        "link without source or target was left out",
        "links without source or target were left out",
    );
    say(
        counts.links_to_nowhere,
        "link to a task that is not there was left out",
        "links to tasks that are not there were left out",
    );
}

/// Which runs have no links.
#[derive(Default)]
pub(crate) struct WithoutLinks {
    /// How many runs there are.
    all: usize,
    these: Runs,
}

impl WithoutLinks {
    /// Adds runs of which some have no links.
    pub(crate) fn add(&mut self, graphs: &Graphs, these: &[usize]) {
        self.all += graphs.runs.len();
        these.iter().for_each(|run| self.these.add(graphs.runs.value(*run)));
    }

    /// Says which ones, and what follows when that is all of them.
    pub(crate) fn note(&self, links_omitted: bool, so: &str, work: &Work) {
        let links = if links_omitted { "dependency links" } else { "links" };
        work.say(Said::OfRuns {
            all: self.all,
            these: self.these.in_order().iter().map(|run| self.these.describe(*run)).collect(),
            of_all: format!("there are no {links}, so {so}"),
            of_some: format!("there are no {links} in"),
        });
    }
}
