//! The tree of tasks that the column `parent` gives: what `ancestors` and `descendants` share.
//!
//! Life of the data: the tasks of a run are numbered in the order of their ids, in memory or in a file as those of graphs
//! ([`Graphs`]), and each number's parent becomes a number. The tasks that are asked about are looked up. `ancestors` walks up;
//! `descendants` groups the children by parent first (a counting sort) and walks down. Answers are pairs of numbers; names and
//! times are looked up only as the answers are emitted, in pieces.

pub mod ancestors;
pub mod descendants;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, new_null_array};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{DataFusionError, Result, exec_datafusion_err};

use crate::graph::NONE;
use crate::graph::load::{Graphs, integers};
use crate::relation::by_run::ByRun;
use crate::relation::call::{Call, Work};
use crate::relation::parts::{InputPlan, Share};
use crate::relation::rows::{EVERY_RUN, Role, Rows};
use crate::relation::{ColumnKind, ColumnSpec, HandedOn, InputSpec, Omitted, Parameter};
use crate::ticks::time_field;

/// `([tasks], of)`.
static PARAMETERS: [Parameter; 2] = [
    Parameter::Input(InputSpec {
        name: "tasks",
        omitted: Omitted::Table("tasks"),
        columns: &[
            ColumnSpec::needed("task", ColumnKind::Integer),
            ColumnSpec::needed("parent", ColumnKind::Integer),
            ColumnSpec::optional("name", ColumnKind::Text).only_for(&["name"]),
            ColumnSpec::optional("location", ColumnKind::Text).only_for(&["location"]),
            ColumnSpec::optional("start", ColumnKind::Integer).only_for(&["start"]),
            ColumnSpec::optional("finish", ColumnKind::Integer).only_for(&["finish"]),
            ColumnSpec::optional("duration", ColumnKind::Integer).only_for(&["duration"]),
        ],
    }),
    Parameter::Input(InputSpec {
        name: "of",
        omitted: Omitted::Refused,
        columns: &[ColumnSpec::needed("task", ColumnKind::Integer)],
    }),
];

static HANDED_ON: [HandedOn; 2] = [
    HandedOn { output: "name", input: "tasks", column: "name" },
    HandedOn { output: "location", input: "tasks", column: "location" },
];

/// The columns of tasks that answers show.
const COLUMNS: [&str; 5] = ["name", "location", "start", "finish", "duration"];

fn output() -> Vec<Field> {
    vec![
        Field::new("of_task", DataType::Int64, false),
        Field::new("task", DataType::Int64, false),
        Field::new("distance", DataType::Int64, false),
        Field::new("name", DataType::Utf8View, true),
        Field::new("location", DataType::Utf8View, true),
        time_field("start", true),
        time_field("finish", true),
        time_field("duration", true),
    ]
}

/// A relative of a task that was asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Relative {
    of: u32,
    task: u32,
    distance: u32,
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
enum Failure<E> {
    /// The parents of this task lead back to it.
    Circle(u32),
    /// The receiver of the relatives has failed.
    Found(E),
}

/// The parents of the tasks of one run, by number.
#[derive(Debug)]
struct Family {
    parents: Vec<u32>,
}

impl Family {
    /// Reads the parents of a run. Counts those that are not there, and tasks that are their own.
    fn of(graphs: &Graphs, run: usize, counts: &mut Counts, work: &mut Work) -> Result<Family> {
        let ids = &graphs.graphs[run].ids;
        work.grow(ids.slots() * size_of::<u32>())?;
        let mut parents = vec![NONE; ids.slots()];
        for rows in graphs.rows(run)? {
            work.check()?;
            let rows = rows?;
            let (tasks, of_rows) = (integers(&rows, "task")?, integers(&rows, "parent")?);
            for (task, parent) in tasks.values().iter().zip(of_rows) {
                let (Some(task), Some(parent)) = (ids.index(*task), parent) else { continue };
                match ids.index(parent) {
                    Some(parent) if parent == task => counts.own_parents += 1,
                    Some(parent) => parents[task as usize] = parent,
                    None => counts.orphans += 1,
                }
            }
        }
        Ok(Family { parents })
    }

    fn circle(&self, task: u32, graphs: &Graphs, run: usize, way: Way) -> DataFusionError {
        let name = match way {
            Way::Up => "ancestors",
            Way::Down => "descendants",
        };
        let of_run = match graphs.runs.describe(run) {
            run if run.is_empty() => run,
            run => format!(" of {run}"),
        };
        let mut circle = vec![task];
        let mut next = self.parents[task as usize];
        while next != task && next != NONE {
            circle.push(next);
            next = self.parents[next as usize];
        }
        let smallest = circle.iter().enumerate().min_by_key(|(_, task)| **task).map_or(0, |(place, _)| place);
        circle.rotate_left(smallest);
        let ids = &graphs.graphs[run].ids;
        let mut shown: Vec<String> = circle.iter().take(8).map(|task| ids.id(*task).to_string()).collect();
        if circle.len() > shown.len() {
            shown.push(format!("{} more", circle.len() - shown.len()));
        }
        shown.push(ids.id(circle[0]).to_string());
        exec_datafusion_err!("{name}: the parents{of_run} form a circle: task {}", shown.join(" -> "))
    }

    /// The tasks above one, the nearest first.
    fn ancestors<E>(&self, of: u32, found: &mut impl FnMut(Relative) -> Result<(), E>) -> Result<(), Failure<E>> {
        let (mut task, mut distance) = (self.parents[of as usize], 1);
        while task != NONE {
            if distance as usize > self.parents.len() {
                return Err(Failure::Circle(task));
            }
            found(Relative { of, task, distance }).map_err(Failure::Found)?;
            (task, distance) = (self.parents[task as usize], distance + 1);
        }
        Ok(())
    }

    /// The children of each task in order, side by side, and where those of each task end.
    fn children(&self) -> Children {
        let mut ends = vec![0u32; self.parents.len()];
        for parent in self.parents.iter().filter(|parent| **parent != NONE) {
            ends[*parent as usize] += 1;
        }
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        let mut children = vec![NONE; total as usize];
        for (child, parent) in (0u32..).zip(&self.parents) {
            if let Some(free) = ends.get_mut(*parent as usize) {
                children[*free as usize] = child;
                *free += 1;
            }
        }
        Children { children, ends }
    }
}

/// The children of the tasks of one run.
#[derive(Debug)]
struct Children {
    children: Vec<u32>,
    ends: Vec<u32>,
}

impl Children {
    fn of(&self, task: u32) -> &[u32] {
        let from = if task == 0 { 0 } else { self.ends[task as usize - 1] };
        &self.children[from as usize..self.ends[task as usize] as usize]
    }

    /// The tasks below one, each before those below it, children in order.
    fn descendants<E>(&self, of: u32, found: &mut impl FnMut(Relative) -> Result<(), E>) -> Result<(), Failure<E>> {
        let mut open: Vec<(u32, u32)> = self.of(of).iter().rev().map(|child| (*child, 1)).collect();
        while let Some((task, distance)) = open.pop() {
            // Every task has one parent, so who walks in a circle comes by where it began.
            if task == of {
                return Err(Failure::Circle(of));
            }
            found(Relative { of, task, distance }).map_err(Failure::Found)?;
            open.extend(self.of(task).iter().rev().map(|child| (*child, distance + 1)));
        }
        Ok(())
    }
}

/// Where to look for relatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

fn compute(call: &mut Call, way: Way) -> Result<()> {
    let tasks = InputPlan { input: "tasks", share: Share::Runs, row_bytes: TASK_BYTES };
    let of = InputPlan { input: "of", share: Share::All, row_bytes: 0 };
    let mut parts = ByRun::read(call, &[tasks, of])?;
    let mut counts = Counts::default();
    while parts.next(call)? {
        of_part(call, way, &mut counts)?;
    }
    let strangers = counts.asked_without_id + counts.found.iter().filter(|found| !**found).count();
    let say = |count: usize, one: &str, many: &str| call.work.note_count(count, one, many);
    say(counts.without_id, "task without id was left out", "tasks without id were left out");
    say(strangers, "task that was asked about is not there", "tasks that were asked about are not there");
    say(counts.orphans, "task has a parent that is not there", "tasks have parents that are not there");
    say(
        counts.own_parents,
        "task is its own parent and counts as without",
        "tasks are their own parents and count as without",
    );
    Ok(())
}

/// Bytes that a task takes beside its row: its number, its parent and the children.
const TASK_BYTES: usize = 28;

/// What was left out or corrected.
#[derive(Default)]
struct Counts {
    without_id: usize,
    asked_without_id: usize,
    /// Per task that was asked about: whether it is there.
    found: Vec<bool>,
    orphans: usize,
    own_parents: usize,
}

fn of_part(call: &mut Call, way: Way, counts: &mut Counts) -> Result<()> {
    let mut graphs = Graphs::read_tasks(call)?;
    let of = Rows::read(call, "of", Role::Other, &["task"], &mut graphs.runs)?;
    counts.without_id += graphs.counts.tasks_without_id;
    // All parts have the same rows of it.
    counts.asked_without_id = of.left_out;
    counts.found.resize(of.len(), false);
    let answers = Answers { graphs: &graphs, has_rows: COLUMNS.iter().any(|name| graphs.has(name)) };
    for run in graphs.runs.in_order() {
        call.work.check()?;
        let before = call.work.size();
        let ids = &graphs.graphs[run].ids;
        let family = Family::of(&graphs, run, counts, &mut call.work)?;
        let mut asked: Vec<u32> = vec![];
        for asking in of.of_run(run).into_iter().chain(of.of_run(EVERY_RUN)) {
            for (row, task) in asking.numbers().zip(asking.values("task")?) {
                let index = ids.index(*task);
                counts.found[row] |= index.is_some();
                asked.extend(index);
            }
        }
        asked.sort_unstable();
        asked.dedup();
        let mut relatives: Vec<Relative> = vec![];
        let children = match way {
            Way::Up => None,
            Way::Down => {
                call.work.grow(family.parents.len() * 2 * size_of::<u32>())?;
                Some(family.children())
            }
        };
        let mut take = |relative: Relative| -> Result<()> {
            relatives.push(relative);
            if relatives.len() >= graphs.at_once() {
                call.work.check()?;
                answers.emit(call, run, &std::mem::take(&mut relatives))?;
            }
            Ok(())
        };
        for task in asked {
            let answered = match &children {
                None => family.ancestors(task, &mut take),
                Some(children) => children.descendants(task, &mut take),
            };
            answered.map_err(|failure| match failure {
                Failure::Found(error) => error,
                Failure::Circle(task) => family.circle(task, &graphs, run, way),
            })?;
        }
        answers.emit(call, run, &relatives)?;
        call.work.shrink(call.work.size() - before);
    }
    Ok(())
}

/// Turns relatives into rows.
struct Answers<'a> {
    graphs: &'a Graphs,
    /// Whether rows show more of a task than its id.
    has_rows: bool,
}

impl Answers<'_> {
    fn emit(&self, call: &mut Call, run: usize, relatives: &[Relative]) -> Result<()> {
        if relatives.is_empty() {
            return Ok(());
        }
        let (output, ids) = (Arc::clone(call.output()), &self.graphs.graphs[run].ids);
        let integers = |value: &dyn Fn(&Relative) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(relatives.iter().map(value)))
        };
        let mut columns = vec![
            self.graphs.runs.column(&[(run, relatives.len())], output.field(0).data_type())?,
            integers(&|relative| ids.id(relative.of)),
            integers(&|relative| ids.id(relative.task)),
            integers(&|relative| i64::from(relative.distance)),
        ];
        let tasks: Vec<u32> = relatives.iter().map(|relative| relative.task).collect();
        // Tasks on disk are only looked up where that shows something.
        let chosen = if self.has_rows { Some(self.graphs.chosen(run, &tasks)?) } else { None };
        for field in &output.fields()[4..] {
            columns.push(match &chosen {
                Some(chosen) => chosen.column(field.name(), field.data_type())?,
                None => new_null_array(field.data_type(), relatives.len()),
            });
        }
        call.emit(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::convert::Infallible;

    type Answer = Result<Vec<Relative>, Failure<Infallible>>;

    fn ancestors(family: &Family, of: u32) -> Answer {
        let mut found = vec![];
        family.ancestors(of, &mut |relative| {
            found.push(relative);
            Ok(())
        })?;
        Ok(found)
    }

    fn descendants(family: &Family, of: u32) -> Answer {
        let mut found = vec![];
        family.children().descendants(of, &mut |relative| {
            found.push(relative);
            Ok(())
        })?;
        Ok(found)
    }

    proptest! {
        /// An ancestor is a parent, or an ancestor of a parent; descendants are the same pairs from the other end.
        #[test]
        fn descendants_are_ancestors_seen_from_above(draws in vec(any::<u32>(), 1..12)) {
            // A task's parent comes before it, or there is none.
            let parent = |(task, draw): (u32, &u32)| (draw % (task + 1)).checked_sub(1).unwrap_or(NONE);
            let family = Family { parents: (0..).zip(&draws).map(parent).collect() };
            let tasks = 0..draws.len() as u32;
            let mut up: Vec<(u32, u32, u32)> = vec![];
            let mut down = vec![];
            let mut naive = vec![];
            for of in tasks.clone() {
                up.extend(ancestors(&family, of).unwrap().iter().map(|relative| (relative.task, relative.of, relative.distance)));
                let below = descendants(&family, of).unwrap();
                prop_assert!(below.iter().all(|relative| relative.of == of));
                down.extend(below.iter().map(|relative| (of, relative.task, relative.distance)));
                for task in tasks.clone() {
                    let (mut above, mut distance) = (family.parents[task as usize], 1);
                    while above != NONE && above != of { (above, distance) = (family.parents[above as usize], distance + 1) }
                    if above == of { naive.push((of, task, distance)) }
                }
            }
            up.sort_unstable();
            let mut sorted = down.clone();
            sorted.sort_unstable();
            prop_assert_eq!(&up, &naive);
            prop_assert_eq!(&sorted, &naive);
            // Each comes after its parent.
            for (place, (of, task, _)) in down.iter().enumerate() {
                let parent = family.parents[*task as usize];
                prop_assert!(parent == *of || down[..place].iter().any(|earlier| earlier.0 == *of && earlier.1 == parent));
            }
        }
    }

    #[test]
    fn circles_are_noticed_from_inside_and_from_outside() {
        // 0 -> 1 -> 2 -> 0, and 3 below 0.
        let family = Family { parents: vec![1, 2, 0, 0] };
        assert_eq!(descendants(&family, 0), Err(Failure::Circle(0)));
        assert!(matches!(ancestors(&family, 3), Err(Failure::Circle(0..=2))));
        assert_eq!(descendants(&family, 3), Ok(vec![]));
    }
}
