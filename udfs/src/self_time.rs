//! `self_time(tasks)`: each task's duration without the time in which a task that started later ran on its lane.
//!
//! Life of the data: tasks are kept as they come; their lanes are numbered, each lane is sorted and walked once with two
//! stacks of open tasks ([`crate::lanes`]): which encloses which, and whose each tick is; then every batch is handed on with
//! three columns more.
//!
//! ```text
//! a [-----------------)    8 - 3 - 2 = 3
//! b   [-----)              3 - 1     = 2
//! c     [-)                            1
//! d             [---)                  2, and where it crossed the end of a, a would have had less and d all of its own
//! ```

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err};
use datafusion_doc::{DocSection, Documentation};

use crate::graph::NONE;
use crate::lanes::nest::{Place, nest};
use crate::lanes::open::Open;
use crate::lanes::{Counts, LaneSpan, Nulls, Unfinished, on_lanes, sort_lane};
use crate::relation::call::{Call, Work};
use crate::relation::parts::{Ask, Parts, Share};
use crate::relation::rows::Rows;
use crate::relation::runs::Runs;
use crate::relation::{ColumnKind, ColumnSpec, HandedOn, InputSpec, Omitted, Parameter, RelationFunction};
use crate::ticks::time_field;

/// The relation function `self_time`.
#[derive(Debug)]
pub struct SelfTime;

static PARAMETERS: [Parameter; 1] = [Parameter::Input(InputSpec {
    name: "tasks",
    omitted: Omitted::Table("tasks"),
    columns: &[
        ColumnSpec::needed("start", ColumnKind::Integer),
        ColumnSpec::needed("finish", ColumnKind::Integer),
        ColumnSpec::optional("location", ColumnKind::Text),
        ColumnSpec::optional("task", ColumnKind::Integer),
        ColumnSpec::optional("name", ColumnKind::Text).only_for(&["name"]),
    ],
})];

static HANDED_ON: [HandedOn; 2] = [
    HandedOn { output: "name", input: "tasks", column: "name" },
    HandedOn { output: "location", input: "tasks", column: "location" },
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "Each task's duration without the time in which tasks that started later ran on its lane: those inside of it, and those that \
         cross its end. A lane is one location of one run; without a column `location`, all tasks of a run are one lane.\n\n\
         Rows: one per task. `duration` is finish - start. `self_time`: each tick of a lane belongs to one of the tasks that run \
         then, the one that started last; so the self times of a lane add up to the time in which it was busy, and where tasks \
         nest it is the duration minus the durations of the direct children. `parent` is the innermost task around it, `depth` \
         how many there are (0 outermost). \
         A task is inside of another that starts no later and ends no earlier; where one starts at the tick at which the \
         other ends they lie side by side. A task that starts inside of another and ends after it crosses it: it has no parent and \
         no depth, is nobody's parent, has the ticks that both run, and is counted in a note. Nesting is found \
         by the spans alone; a parent that the trace declares is not asked. Formats decide by themselves which depths the \
         table `tasks` has where tasks cross; here only those that cross have none.\n\n\
         Units: ticks.\n\n\
         Nulls: a task without start has NULL times; one that never ended (finish NULL) encloses what follows on its lane, \
         takes no tick from anyone, and its own times are NULL. A task without location is on no lane: its self time is its duration. Each is counted in \
         a note. A task that ends before it starts counts as empty.\n\n\
         Ties: of equal starts the shorter one started last; of equal spans the one with the smaller task is the outer one; without a column `task`, the one that comes \
         first. Tasks without length at the same tick nest in that order, too.\n\n\
         Errors: a duration beyond BIGINT.\n\n\
         Cost: n log n, linear when tasks are sorted by start; 44 bytes a task beside the tasks themselves; beyond half of the memory limit, as much for the \
         tasks of the largest lane, and the order of rows is then that of lanes.\n\n\
         Source: gprof, Graham, Kessler and McKusick 1982; the rules of nesting are those of Perfetto's trace processor.",
        "self_time([tasks])",
    )
    .with_sql_example(
        "SELECT task, duration, self_time, parent FROM self_time(\n  \
         (SELECT * FROM (VALUES (1, 0, 8), (2, 1, 4), (3, 2, 3), (4, 5, 7)) AS tasks(task, start, finish)))\nORDER BY task",
    )
    .with_argument("tasks", "Relation: start, finish (BIGINT); optional run, location, task, name.")
    .build()
});

impl RelationFunction for SelfTime {
    fn name(&self) -> &'static str {
        "self_time"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            Field::new("task", DataType::Int64, true),
            Field::new("name", DataType::Utf8View, true),
            Field::new("location", DataType::Utf8View, true),
            time_field("start", true),
            time_field("finish", true),
            time_field("duration", true),
            Field::new("parent", DataType::Int64, true),
            Field::new("depth", DataType::Int64, true),
            time_field("self_time", true),
        ]
    }

    fn handed_on(&self) -> &'static [HandedOn] {
        &HANDED_ON
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let mut runs = Runs::new();
        let share = Share::Lanes("location");
        let ask = Ask { input: "tasks", share, row_bytes: TASK_BYTES };
        let mut parts = Parts::read(call, &[ask])?;
        let (mut counts, mut crossing) = (Counts::default(), 0);
        while let Some([tasks]) = parts.next(call, &mut runs)? {
            let of_part = answer(call, tasks)?;
            (counts, crossing) = (counts.plus(of_part.0), crossing + of_part.1);
        }
        counts.note(&call.work, Unfinished::Endless, "location", ("nests nowhere", "nest nowhere"));
        note_crossing(crossing, &call.work);
        Ok(())
    }
}

/// Bytes that a task takes: its lane, its span on it, and what [`Nesting`] says of it.
const TASK_BYTES: usize = 3 * size_of::<u32>() + size_of::<LaneSpan>() + size_of::<i64>();

/// Sends on the tasks of whole lanes, and counts those that were left out or cross others.
fn answer(call: &mut Call, tasks: &Rows) -> Result<(Counts, usize)> {
    let (_, mut of_lanes) = on_lanes(tasks, Some("location"), Nulls::NoLane, Unfinished::Endless, &mut call.work)?;
    call.work.grow(tasks.len() * (size_of::<i64>() + 2 * size_of::<u32>()))?;
    let mut nesting = Nesting::new(tasks.len());
    let ties = tasks.ties();
    for (_, lane) in of_lanes.lanes() {
        call.work.check()?;
        sort_lane(lane, &ties);
        nesting.add(lane);
    }
    let counts = of_lanes.counts;
    drop(of_lanes);
    let parents = tasks.integers("task");
    for (number, batch) in tasks.batches().iter().enumerate() {
        let of_batch = nesting.of(batch.first, batch.batch.num_rows());
        let parent_of = |row: &u32| match &parents {
            Some(tasks) if *row != NONE => tasks.get_near(*row, number),
            _ => None,
        };
        let parent: Int64Array = of_batch.parents.iter().map(parent_of).collect();
        emit(call, &batch.batch, &of_batch, parent)?;
    }
    Ok((counts, nesting.crossing))
}

/// How the tasks of all lanes nest, by row.
struct Nesting {
    /// The ticks of it that are others'.
    taken: Vec<i64>,
    /// The row of its parent.
    parents: Vec<u32>,
    depths: Vec<u32>,
    crossing: usize,
}

/// The same of some rows.
struct NestingOf<'a> {
    taken: &'a [i64],
    parents: &'a [u32],
    depths: &'a [u32],
}

impl Nesting {
    fn new(rows: usize) -> Self {
        Nesting { taken: vec![0; rows], parents: vec![NONE; rows], depths: vec![NONE; rows], crossing: 0 }
    }

    fn add(&mut self, lane: &[LaneSpan]) {
        let mut open = Open::default();
        // A task's ticks are its own or taken, and fit when its duration does, which is looked at when it is shown.
        let own = |taken: &mut [i64], row: u32, ticks: i128| {
            let taken = &mut taken[row as usize];
            *taken = taken.wrapping_sub(ticks as i64);
        };
        nest(lane, |span, place| {
            let row = span.row as usize;
            // When one that never ended does, nobody knows: it takes nothing.
            if !span.endless {
                self.taken[row] = span.finish.wrapping_sub(span.start);
                open.begin(span.row, span.start, span.finish, |row, ticks| own(&mut self.taken, row, ticks));
            }
            match place {
                Place::Top => self.depths[row] = 0,
                Place::Across => self.crossing += 1,
                Place::Inside(parent, depth) => {
                    self.depths[row] = depth as u32;
                    self.parents[row] = parent;
                }
            }
            span.row
        });
        open.until(i64::MAX, |row, ticks| own(&mut self.taken, row, ticks));
    }

    fn of(&self, first: usize, rows: usize) -> NestingOf<'_> {
        let rows = first..first + rows;
        NestingOf { taken: &self.taken[rows.clone()], parents: &self.parents[rows.clone()], depths: &self.depths[rows] }
    }
}

/// Says how many tasks cross others.
pub(crate) fn note_crossing(crossing: usize, work: &Work) {
    match crossing {
        0 => {}
        1 => work.note("1 task crosses another on its lane: it has no parent, and the time of both is its own"),
        many => work.note(format!(
            "{many} tasks cross others on their lanes: they have no parent, and the time of both is theirs"
        )),
    }
}

fn emit(call: &mut Call, batch: &RecordBatch, nesting: &NestingOf<'_>, parent: Int64Array) -> Result<()> {
    let rows = batch.num_rows();
    let output = Arc::clone(call.output());
    let handed_on = |name: &str| -> ArrayRef {
        let data_type = output.field_with_name(name).map_or(DataType::Null, |field| field.data_type().clone());
        batch.column_by_name(name).cloned().unwrap_or_else(|| new_null_array(&data_type, rows))
    };
    let (start, finish, task) = (handed_on("start"), handed_on("finish"), handed_on("task"));
    let (duration, own) = times(&start, &finish, &task, nesting.taken)?;
    let depth = nesting.depths.iter().map(|depth| (*depth != NONE).then_some(i64::from(*depth)));
    let columns = vec![
        handed_on("run"),
        task,
        handed_on("name"),
        handed_on("location"),
        start,
        finish,
        Arc::new(duration) as ArrayRef,
        Arc::new(parent),
        Arc::new(depth.collect::<Int64Array>()),
        Arc::new(own),
    ];
    call.emit(columns)
}

/// Durations and self times.
fn times(start: &ArrayRef, finish: &ArrayRef, task: &ArrayRef, taken: &[i64]) -> Result<(Int64Array, Int64Array)> {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    let (start, finish) = (start.as_primitive::<Int64Type>(), finish.as_primitive::<Int64Type>());
    let nulls = NullBuffer::union(start.nulls(), finish.nulls());
    let mut durations = Vec::with_capacity(start.len());
    for (row, (start, finish)) in start.values().iter().zip(finish.values()).enumerate() {
        let known = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        match (*finish).max(*start).checked_sub(*start) {
            Some(duration) => durations.push(duration),
            None if !known => durations.push(0),
            None => {
                let task = task.as_primitive::<Int64Type>();
                let which = if task.is_valid(row) { format!("task {}", task.value(row)) } else { "a task".to_owned() };
                return exec_err!("self_time: the duration of {which} does not fit a BIGINT");
            }
        }
    }
    let own: Vec<i64> = durations.iter().zip(taken).map(|(duration, taken)| duration.wrapping_sub(*taken)).collect();
    Ok((Int64Array::new(durations.into(), nulls.clone()), Int64Array::new(own.into(), nulls)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relation::rows::Ties;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        /// What is left of a task when every tick belongs to the innermost task around it. Spans are made to nest: each
        /// one is drawn inside of an earlier one or beside the others.
        #[test]
        fn self_time_is_the_count_of_ticks_on_which_nothing_is_further_inside(
            draws in vec((0..8usize, 0..30i64, 0..30i64), 1..10),
        ) {
            let mut spans: Vec<(i64, i64)> = vec![(0, 30)];
            for (of, from, to) in draws {
                let outer = spans[of % spans.len()];
                let (from, to) = (from.min(to).clamp(outer.0, outer.1), from.max(to).clamp(outer.0, outer.1));
                let crosses = |other: &(i64, i64)| {
                    let apart = to <= other.0 || other.1 <= from;
                    let inside = (other.0 <= from && to <= other.1) || (from <= other.0 && other.1 <= to);
                    !(apart || inside)
                };
                if !spans.iter().any(crosses) { spans.push((from, to)); }
            }
            let span = |(row, (start, finish)): (u32, &(i64, i64))| LaneSpan::new(*start, *finish, row);
            let mut lane: Vec<LaneSpan> = (0..).zip(&spans).map(span).collect();
            sort_lane(&mut lane, &Ties::by_row());
            let mut nesting = Nesting::new(spans.len());
            nesting.add(&lane);
            let mut naive = vec![0; spans.len()];
            for tick in 0..30 {
                let covers = |at: &usize| spans[*at].0 <= tick && tick < spans[*at].1;
                // Innermost: the shortest, of equal ones the last.
                let innermost = (0..spans.len()).filter(covers).min_by_key(|at| (spans[*at].1 - spans[*at].0, usize::MAX - at));
                if let Some(at) = innermost { naive[at] += 1 }
            }
            for (at, (start, finish)) in spans.iter().enumerate() {
                prop_assert_eq!(finish - start - nesting.taken[at], naive[at], "{:?}", &spans);
            }
            prop_assert_eq!(nesting.crossing, 0);
        }
    }
}
