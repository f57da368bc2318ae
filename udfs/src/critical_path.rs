//! `critical_path(tasks, links)`: the longest chain of durations through the links, per run.
//!
//! Life of the data: [`Graphs`] numbers the tasks of each run. Links that are sorted in their table, as recorders write
//! them, are read from there in one pass ([`in_order`]); others become pairs of numbers and are walked in whichever order
//! suits them ([`crate::graph::longest`]). The chain is traced backwards from its end; names and times are looked up for
//! its tasks only.
//!
//! ```text
//! a [---)            links: a -> c, b -> c, c -> d
//! b [-----)          a: 3   b: 5   c: 2   d: 4
//! c       [-)        longest chain: b, c, d = 11 ticks (path_time 5, 7, 11),
//! d           [---)  whatever the time between c and d
//! ```

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Int64Array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field};
use datafusion_common::Result;
use datafusion_doc::{DocSection, Documentation};

use crate::graph::NONE;
use crate::graph::explain::{Failure, WithoutLinks, all_path_times, all_path_times_of, explain, note_counts};
use crate::graph::in_order;
use crate::graph::links::Links;
use crate::graph::load::{Chosen, Counts, Graph, Graphs, LINKS, LinkChoice, by_run};
use crate::graph::longest::{chain, last_of_longest, linked_tasks, without_weak_on_cycles};
use crate::graph::no_path::NoPath;
use crate::relation::by_run::ByRun;
use crate::relation::call::{Call, Work};
use crate::relation::{
    ColumnKind, ColumnSpec, Default, InputSpec, Omitted, OptionKind, OptionSpec, Parameter, RelationFunction,
};
use crate::ticks::time_field;

/// The relation function `critical_path`.
#[derive(Debug)]
pub struct CriticalPath;

static PARAMETERS: [Parameter; 3] = [
    Parameter::Input(InputSpec {
        name: "tasks",
        omitted: Omitted::Table("tasks"),
        columns: &[
            ColumnSpec::needed("task", ColumnKind::Integer),
            ColumnSpec::needed("duration", ColumnKind::Integer),
            ColumnSpec::optional("name", ColumnKind::Text).only_for(&["name"]),
            ColumnSpec::optional("location", ColumnKind::Text).only_for(&["location"]),
            ColumnSpec::optional("start", ColumnKind::Integer).only_for(&["start"]),
            ColumnSpec::optional("finish", ColumnKind::Integer).only_for(&["finish"]),
        ],
    }),
    LINKS,
    Parameter::Option(OptionSpec { name: "break_weak", kind: OptionKind::Boolean, default: Default::Boolean(false) }),
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "The longest chain of durations through the links, per run: no schedule can be shorter, however many workers \
         there are.\n\n\
         Rows: one per task of the chain, `step` counts from 0 in the order in which they run. `path_time` is the running \
         total of the durations; waiting between tasks does not count. \
         Inputs: given ones are taken as they are, links of every kind. An omitted `links` is the `dependency` rows of \
         `links`; an omitted `tasks` the tasks of `tasks` at the ends of the links. When `links` is omitted and a run has \
         no dependency, it has no rows, and a note says so.\n\n\
         Units: ticks.\n\n\
         Nulls: a NULL duration counts as 0; tasks without id and links without source or target are left out. Links to \
         tasks that are not there are left out. Each is counted in a note.\n\n\
         Ties: among chains of equal length the one with the smallest last task, before it the smallest predecessor, and \
         so on. A predecessor of path time 0 belongs to the chain, one of negative path time does not.\n\n\
         Errors: a cycle (its tasks are named), a task that is there twice in a run, a path time beyond BIGINT. With \
         `break_weak => true`, links of kind `weak` that lie on a cycle are left out and counted; a cycle of other links \
         remains an error.\n\n\
         Cost: linear in tasks and links. 8 bytes a task beside the tasks themselves when the links are sorted by target \
         and lead forward in the order of tasks, and 2 to 3 a link where these would take half of the memory; else 12 to 32 bytes a task \
         and 8 to 20 a link. Beyond half of the memory limit runs have \
         their turn one after the other, and the tasks of one that is too large stay on disk.\n\n\
         Source: critical path method, Kelley and Walker 1959.",
        "critical_path([tasks], [links], [break_weak => BOOLEAN])",
    )
    .with_sql_example(
        "SELECT step, task, duration, path_time FROM critical_path(\n  \
         (SELECT * FROM (VALUES (1, 3), (2, 5), (3, 2), (4, 4)) AS tasks(task, duration)),\n  \
         (SELECT * FROM (VALUES (1, 3), (2, 3), (3, 4)) AS links(source, target)))\nORDER BY step",
    )
    .with_argument("tasks", "Relation: task, duration (BIGINT); optional run, name, location, start, finish.")
    .with_argument("links", "Relation: source, target (tasks, BIGINT); optional run, kind.")
    .with_argument("break_weak", "Leave out `weak` links that lie on a cycle (BOOLEAN, default false).")
    .build()
});

impl RelationFunction for CriticalPath {
    fn name(&self) -> &'static str {
        "critical_path"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            Field::new("step", DataType::Int64, false),
            Field::new("task", DataType::Int64, false),
            Field::new("name", DataType::Utf8View, true),
            Field::new("location", DataType::Utf8View, true),
            time_field("start", true),
            time_field("finish", true),
            time_field("duration", false),
            time_field("path_time", false),
        ]
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let break_weak = call.options.flag("break_weak")?;
        let tasks_omitted = call.input("tasks")?.0.was_omitted();
        let links_omitted = call.input("links")?.0.was_omitted();
        let choice = if break_weak { LinkChoice::WeakApart } else { LinkChoice::AsTheyStand };
        let mut parts = ByRun::read(call, &by_run(TASK_BYTES))?;
        let (mut counts, mut without_links, mut dropped) = (Counts::default(), WithoutLinks::default(), 0);
        while parts.next(call)? {
            let mut graphs = Graphs::read(call, choice)?;
            let (mut chains, mut unlinked) = (vec![], vec![]);
            for run in graphs.runs.in_order() {
                let graph = &mut graphs.graphs[run];
                let nowhere = &mut graphs.counts.links_to_nowhere;
                match chain_in_order(graph, tasks_omitted, nowhere, &mut call.work) {
                    Ok(Some(chain)) => {
                        chains.push((run, chain));
                        continue;
                    }
                    Ok(None) => {
                        *nowhere += graph.number_links(&mut call.work)?;
                        if graph.durations.is_empty() {
                            let durations = graphs.by_index(run, "duration", 0, &mut call.work)?;
                            graphs.graphs[run].durations = durations;
                        }
                    }
                    Err(failure) => return Err(explain(failure, &graphs, run, self.name())),
                }
                let graph = &mut graphs.graphs[run];
                if graph.links.is_empty() && graph.weak.is_empty() && (tasks_omitted || links_omitted) {
                    unlinked.push(run);
                    continue;
                }
                let of_run = longest_chain(graph, tasks_omitted, &mut dropped, &mut call.work);
                chains.extend(
                    of_run.map_err(|no_path| explain(no_path, &graphs, run, self.name()))?.map(|chain| (run, chain)),
                );
            }
            counts.add(graphs.counts);
            without_links.add(&graphs, &unlinked);
            emit(call, &graphs, &chains)?;
        }
        note_counts(&counts, &call.work);
        call.work.note_count(dropped, "weak link on a cycle was left out", "weak links on cycles were left out");
        without_links.note(links_omitted, "there is no path", &call.work);
        Ok(())
    }
}

/// Bytes that a task takes beside its row: its path time and its predecessor.
const TASK_BYTES: usize = size_of::<i64>() + size_of::<u32>();

/// A longest chain: its tasks, and the running totals of their durations.
struct Chain {
    tasks: Vec<u32>,
    path_time: Vec<i64>,
}

impl Chain {
    fn of(tasks: Vec<u32>, time: &[i64]) -> Chain {
        let path_time = tasks.iter().map(|task| time[*task as usize]).collect();
        Chain { tasks, path_time }
    }
}

/// The longest chain where links are sorted in their table; otherwise `None`, which leaves it to [`longest_chain`]. The
/// durations of the graph may have been overwritten then.
fn chain_in_order(
    graph: &mut Graph,
    linked_only: bool,
    nowhere: &mut usize,
    work: &mut Work,
) -> Result<Option<Chain>, Failure> {
    let Some(base) = graph.ids.dense_base().filter(|_| !graph.standing.is_empty()) else { return Ok(None) };
    let durations = std::mem::take(&mut graph.durations);
    let bytes = durations.len() * size_of::<i64>();
    let (links, is_cancelled) = (graph.standing.ordered(base), || work.is_cancelled());
    let found = in_order::path_times(durations, base, &links, &is_cancelled)?;
    let found = found.filter(|found| found.nowhere < graph.standing.len());
    let last = found.as_ref().and_then(|found| last_of_longest(&found.time, |_| true));
    let mut chain = None;
    if let Some((found, last)) = found.zip(last) {
        let tasks = in_order::chain(&found.time, base, &links, last, &is_cancelled)?;
        // A task without a predecessor may be at the end of no link: only the general way looks.
        if !linked_only || tasks.len() > 1 {
            *nowhere += found.nowhere;
            chain = Some(Chain::of(tasks, &found.time));
        }
    }
    work.shrink(bytes);
    Ok(chain)
}

fn longest_chain(
    graph: &mut Graph,
    linked_only: bool,
    dropped: &mut usize,
    work: &mut Work,
) -> Result<Option<Chain>, Failure> {
    let tasks = graph.durations.len();
    let paths = if graph.weak.is_empty() {
        all_path_times_of(std::mem::take(&mut graph.durations), &graph.links, work)?
    } else {
        // Most graphs with weak links have no cycle; only then is it worth while to find out which links lie on one.
        let strong = std::mem::take(&mut graph.links);
        let mut all = Links::default();
        work.grow((strong.len() + graph.weak.len()) * 8).map_err(Failure::Memory)?;
        strong.iter().chain(graph.weak.iter()).for_each(|link| all.push(link));
        match all_path_times(&graph.durations, &all, work) {
            Err(Failure::NoPath(NoPath::Cycle(_))) => {
                let (stay, left_out) = without_weak_on_cycles(tasks, &strong, &graph.weak);
                *dropped += left_out;
                graph.links = strong;
                stay.into_iter().for_each(|link| graph.links.push(link));
                all_path_times(&graph.durations, &graph.links, work)?
            }
            other => {
                graph.links = all;
                other?
            }
        }
    };
    let last = last_of_longest(&paths.time, |task| graph.ids.row(task).is_some());
    // A task with a predecessor is at the end of a link: only when the best one has none, one must look.
    let last = match last {
        Some(task) if linked_only && paths.from[task as usize] == NONE => {
            let linked = linked_tasks(tasks, &graph.links);
            last_of_longest(&paths.time, |task| linked[task as usize])
        }
        last => last,
    };
    Ok(last.map(|last| Chain::of(chain(&paths, last), &paths.time)))
}

/// Steps of a chain that follow each other.
struct Piece<'a> {
    run: usize,
    first_step: usize,
    tasks: &'a [u32],
    path_time: &'a [i64],
    /// The path time of the step before.
    before: i64,
}

impl Chain {
    fn pieces(&self, run: usize, at_once: usize) -> impl Iterator<Item = Piece<'_>> {
        let parts = self.tasks.chunks(at_once).zip(self.path_time.chunks(at_once));
        parts.enumerate().map(move |(number, (tasks, path_time))| {
            let first_step = number * at_once;
            let before = first_step.checked_sub(1).map_or(0, |last| self.path_time[last]);
            Piece { run, first_step, tasks, path_time, before }
        })
    }
}

impl Piece<'_> {
    /// What each task adds to the total.
    fn durations(&self) -> impl Iterator<Item = i64> + '_ {
        let before = std::iter::once(self.before).chain(self.path_time.iter().copied());
        self.path_time.iter().zip(before).map(|(path_time, before)| path_time - before)
    }
}

fn emit(call: &mut Call, graphs: &Graphs, chains: &[(usize, Chain)]) -> Result<()> {
    let mut lot: Vec<Piece<'_>> = vec![];
    let mut rows = 0;
    // The memory of one lot is reused for a later one.
    let at_once = graphs.at_once();
    for piece in chains.iter().flat_map(|(run, chain)| chain.pieces(*run, at_once)) {
        rows += piece.tasks.len();
        lot.push(piece);
        if rows >= at_once {
            emit_lot(call, graphs, &lot)?;
            (lot, rows) = (vec![], 0);
        }
    }
    if lot.is_empty() { Ok(()) } else { emit_lot(call, graphs, &lot) }
}

fn emit_lot(call: &mut Call, graphs: &Graphs, lot: &[Piece<'_>]) -> Result<()> {
    call.work.check()?;
    let runs: Vec<(usize, usize)> = lot.iter().map(|piece| (piece.run, piece.tasks.len())).collect();
    let rows = runs.iter().map(|(_, rows)| rows).sum();
    let integers = |append: &dyn Fn(&mut Vec<i64>, &Piece<'_>)| -> ArrayRef {
        let mut values = Vec::with_capacity(rows);
        lot.iter().for_each(|piece| append(&mut values, piece));
        Arc::new(Int64Array::from(values))
    };
    let chosen = lot.iter().map(|piece| graphs.chosen(piece.run, piece.tasks)).collect::<Result<Vec<_>>>()?;
    let gathered = |gather: &dyn Fn(&Chosen<'_>) -> Result<ArrayRef>| -> Result<ArrayRef> {
        let parts = chosen.iter().map(gather).collect::<Result<Vec<_>>>()?;
        Ok(concat(&parts.iter().map(AsRef::as_ref).collect::<Vec<_>>())?)
    };
    let columns = vec![
        graphs.runs.column(&runs, call.output().field(0).data_type())?,
        integers(&|values, piece| values.extend((piece.first_step as i64..).take(piece.tasks.len()))),
        integers(&|values, piece| {
            let ids = &graphs.graphs[piece.run].ids;
            values.extend(piece.tasks.iter().map(|task| ids.id(*task)));
        }),
        gathered(&|tasks| tasks.text("name"))?,
        gathered(&|tasks| tasks.text("location"))?,
        gathered(&|tasks| tasks.integers("start"))?,
        gathered(&|tasks| tasks.integers("finish"))?,
        integers(&|values, piece| values.extend(piece.durations())),
        integers(&|values, piece| values.extend(piece.path_time)),
    ];
    call.emit(columns)
}
