//! The executed path of a run: the chain of work and waits that ended when the run ended, traced back to its beginning.
//!
//! Life of the data: the tasks of each run are numbered ([`Graphs`]) and their times put in that order; links and messages
//! stream by, and for each task only its latest release is kept ([`releases`]); lanes that the path reaches are cut into
//! segments, in each of which one task is the innermost ([`segments`]); the path is walked backwards from the last finish
//! ([`walk`]), and leaves waits that nothing recorded explains for what ran meanwhile ([`elsewhere`]).
//!
//! ```text
//! lane 1  [--a--)       [---b---)          links: c -> b
//! lane 2     [----c----)
//!         aaaaccccccccccbbbbbbbbb          path: a as far as c's start if c waited for a, c, wait, b
//! ```
//! Whatever the links are, the pieces of the path and the waits between them tile the time from the run's first start to
//! its last finish.

pub(crate) mod elsewhere;
pub(crate) mod releases;
pub(crate) mod segments;
pub(crate) mod walk;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion_common::{Result, exec_err};

use crate::graph::NONE;
use crate::graph::explain::note_counts;
use crate::graph::load::{Counts, Graphs};
use crate::lanes::words::{Words, WordsReading};
use crate::relation::call::{Call, Work, column};
use crate::relation::runs::Runs;
use crate::relation::{ColumnKind, ColumnSpec, InputSpec, Omitted, Parameter};
use elsewhere::Elsewhere;
use releases::Releases;
use segments::Lanes;
use walk::Step;

/// The inputs `tasks`, `links` and `messages` of the functions of executed paths.
pub(crate) const TASKS: Parameter = Parameter::Input(InputSpec {
    name: "tasks",
    omitted: Omitted::Table("tasks"),
    columns: &columns(ColumnSpec::optional("name", ColumnKind::Text).only_for(&["name"])),
});

/// The same for functions whose figures are by name, whether the query reads the names or not.
pub(crate) const NAMED_TASKS: Parameter = Parameter::Input(InputSpec {
    name: "tasks",
    omitted: Omitted::Table("tasks"),
    columns: &columns(ColumnSpec::optional("name", ColumnKind::Text)),
});

const fn columns(name: ColumnSpec) -> [ColumnSpec; 6] {
    [
        ColumnSpec::needed("task", ColumnKind::Integer),
        ColumnSpec::needed("start", ColumnKind::Integer),
        ColumnSpec::needed("finish", ColumnKind::Integer),
        ColumnSpec::optional("location", ColumnKind::Text),
        ColumnSpec::optional("role", ColumnKind::Text),
        name,
    ]
}

/// See [`TASKS`].
pub(crate) const MESSAGES: Parameter = Parameter::Input(InputSpec {
    name: "messages",
    omitted: Omitted::Table("messages"),
    columns: &[
        ColumnSpec::optional("source", ColumnKind::Text),
        ColumnSpec::optional("source_task", ColumnKind::Integer),
        ColumnSpec::needed("target_task", ColumnKind::Integer),
        ColumnSpec::optional("send_time", ColumnKind::Integer),
        ColumnSpec::optional("receive_time", ColumnKind::Integer),
    ],
});

/// The documentation of [`TASKS`], the links and [`MESSAGES`].
pub(crate) const ARGUMENTS: [(&str, &str); 3] = [
    ("tasks", "Relation: task, start, finish (BIGINT); optional run, name, location, role."),
    ("links", "Relation: source, target (tasks, BIGINT); optional run, kind."),
    (
        "messages",
        "Relation: target_task (BIGINT); optional run, source_task, send_time, receive_time (BIGINT), source.",
    ),
];

/// The executed paths of all runs.
pub(crate) struct ExecutedPaths {
    /// The tasks.
    pub(crate) graphs: Graphs,
    /// The kinds of links, by the numbers that steps have.
    pub(crate) kinds: Words,
    /// Runs with their steps in the order in which they ran; runs without a timed task are not there.
    pub(crate) paths: Vec<(usize, Vec<Step>)>,
}

/// Bytes that a task takes beside its row.
pub(crate) const TASK_BYTES: usize = 46;

/// What was left out or corrected while paths were found.
#[derive(Debug, Default)]
pub(crate) struct Account {
    counts: Counts,
    left: Left,
    messages_to_nowhere: usize,
    /// Messages that name no task at their end, in runs that have tasks.
    untied_messages: usize,
    /// Predecessors that end after the task that they released begins.
    cut: usize,
}

impl Account {
    /// Says it.
    pub(crate) fn note(&self, work: &Work) {
        work.note_count(
            self.messages_to_nowhere,
            "message to a task that is not there was left out",
            "messages to tasks that are not there were left out",
        );
        work.note_count(
            self.untied_messages,
            "message names no task at its end, and releases none",
            "messages name no task at their end, and release none",
        );
        note_counts(&self.counts, work);
        self.left.note(work);
    }

    /// Says how many predecessors are shorter on the path than they were: whoever reads its steps sees them.
    pub(crate) fn note_cut(&self, work: &Work) {
        work.note_count(
            self.cut,
            "predecessor on the path ends after the task that it released begins, and is cut there",
            "predecessors on the path end after the tasks that they released begin, and are cut there",
        );
    }
}

/// A task without start or finish.
pub(crate) const UNKNOWN: i64 = i64::MIN;

/// When the tasks of a run ran, by index.
#[derive(Debug, Default)]
pub(crate) struct Times {
    /// First tick, [`UNKNOWN`] for tasks that are left out.
    pub(crate) start: Vec<i64>,
    /// First tick after it, never before the start.
    pub(crate) finish: Vec<i64>,
    /// The number of the location, [`NONE`] without one.
    pub(crate) lane: Vec<u32>,
    /// What it does, as far as a path cares.
    pub(crate) activity: Vec<Activity>,
}

/// What a task does while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activity {
    /// It works, or its role says nothing else.
    Works,
    /// It carries messages: those that arrive while it runs are what it waits for.
    Communicates,
    /// It waits for a message, or for what others work on.
    Waits,
}

impl Activity {
    fn of(role: &str) -> Activity {
        match role {
            "communication" => Activity::Communicates,
            "wait" => Activity::Waits,
            _ => Activity::Works,
        }
    }
}

impl Times {
    /// Whether the task takes part.
    #[inline]
    pub(crate) fn known(&self, task: u32) -> bool {
        self.start[task as usize] != UNKNOWN
    }
}

impl ExecutedPaths {
    /// Reads the three inputs and walks the runs that are wanted. Where they are `compared` and one of them has no links, those of
    /// the others are left out: paths of two kinds differ without a change of the program.
    pub(crate) fn find(
        call: &mut Call,
        compared: bool,
        wanted: &dyn Fn(&Runs, usize) -> bool,
        account: &mut Account,
    ) -> Result<ExecutedPaths> {
        let mut graphs = Graphs::read_tasks(call)?;
        let (mut locations, mut times) = (Words::default(), vec![]);
        for run in 0..graphs.graphs.len() {
            times.push(read_times(&graphs, run, &mut locations, &mut account.left, &mut call.work)?);
        }
        let mut kinds = Words::default();
        let mut releases: Vec<Releases> = times.iter().map(|times| Releases::new(times.start.len())).collect();
        releases::read_links(call, &mut graphs, &times, &mut releases, &mut kinds)?;
        releases::read_messages(call, &mut graphs, &times, &mut releases, &mut locations, account)?;
        account.counts.add(graphs.counts);
        let wanted: Vec<usize> = graphs.runs.in_order().into_iter().filter(|run| wanted(&graphs.runs, *run)).collect();
        if compared {
            compare_alike(&graphs.runs, &wanted, &mut releases, &call.work);
        }
        let machines = elsewhere::machines(&locations);
        let mut paths = vec![];
        for run in wanted {
            let (times, releases) = (&times[run], &releases[run]);
            let mut lanes = Lanes::new(times, locations.len(), &mut call.work)?;
            let mut elsewhere = Elsewhere::new(times, &machines, &mut call.work)?;
            let Some(path) = walk::walk(times, releases, &mut lanes, &mut elsewhere, &mut call.work)? else {
                return exec_err!("{}: the makespan{} does not fit a BIGINT", call.name(), of(&graphs, run));
            };
            account.cut += path.cut;
            if !path.steps.is_empty() {
                paths.push((run, path.steps));
            }
        }
        Ok(ExecutedPaths { graphs, kinds, paths })
    }
}

fn compare_alike(runs: &Runs, compared: &[usize], releases: &mut [Releases], work: &Work) {
    let (linked, unlinked): (Vec<usize>, Vec<usize>) = compared.iter().partition(|run| releases[**run].has_links());
    if linked.is_empty() || unlinked.is_empty() {
        return;
    }
    let names = |of: &[usize]| of.iter().map(|run| runs.describe(*run)).collect::<Vec<_>>().join(", ");
    work.note(format!(
        "there are no links in {}, so those of {} are left out and the paths follow what ran when",
        names(&unlinked),
        names(&linked)
    ));
    linked.into_iter().for_each(|run| releases[run].forget_links());
}

fn of(graphs: &Graphs, run: usize) -> String {
    match graphs.runs.describe(run) {
        run if run.is_empty() => run,
        run => format!(" of {run}"),
    }
}

/// Counts of tasks that take no part, or whose values were corrected.
#[derive(Debug, Default)]
struct Left {
    without_times: usize,
    reversed: usize,
}

impl Left {
    fn note(&self, work: &Work) {
        let say = |count: usize, one: &str, many: &str| work.note_count(count, one, many);
        say(
            self.without_times,
            "task without start or finish was left out",
            "tasks without start or finish were left out",
        );
        say(
            self.reversed,
            "task ends before it starts and counts as empty",
            "tasks end before they start and count as empty",
        );
    }
}

fn read_times(graphs: &Graphs, run: usize, locations: &mut Words, counts: &mut Left, work: &mut Work) -> Result<Times> {
    let mut start = graphs.by_index(run, "start", UNKNOWN, work)?;
    let mut finish = graphs.by_index(run, "finish", UNKNOWN, work)?;
    let ids = &graphs.graphs[run].ids;
    for (task, (start, finish)) in (0u32..).zip(start.iter_mut().zip(&mut finish)) {
        if *start == UNKNOWN || *finish == UNKNOWN {
            counts.without_times += usize::from(ids.row(task).is_some());
            *start = UNKNOWN;
        } else if finish < start {
            counts.reversed += 1;
            *finish = *start;
        }
    }
    work.grow(start.len() * (size_of::<u32>() + size_of::<Activity>()))?;
    let mut times =
        Times { lane: vec![NONE; start.len()], activity: vec![Activity::Works; start.len()], start, finish };
    let (mut reading, mut role_reading, mut roles) =
        (WordsReading::default(), WordsReading::default(), Words::default());
    let mut numbers = vec![];
    for rows in graphs.rows(run)? {
        work.check()?;
        let rows = rows?;
        let tasks = column(&rows, "task")?.as_primitive::<Int64Type>();
        let indices = || tasks.values().iter().map(|task| ids.index(*task));
        if let Some(texts) = rows.column_by_name("location") {
            numbers.clear();
            locations.number(&mut reading, texts, &mut numbers)?;
            for (task, lane) in indices().zip(&numbers) {
                task.into_iter().for_each(|task| times.lane[task as usize] = *lane);
            }
        }
        if let Some(texts) = rows.column_by_name("role") {
            numbers.clear();
            roles.number(&mut role_reading, texts, &mut numbers)?;
            let of_roles: Vec<Activity> = (0..roles.len() as u32).map(|role| Activity::of(roles.text(role))).collect();
            for (task, role) in indices().zip(&numbers) {
                let activity = of_roles.get(*role as usize).copied().unwrap_or(Activity::Works);
                task.into_iter().for_each(|task| times.activity[task as usize] = activity);
            }
        }
    }
    Ok(times)
}
