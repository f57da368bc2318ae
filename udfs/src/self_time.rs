//! `self_time(tasks)`: each task's duration without the time in which a task that started later ran on its lane.
//!
//! Life of the data: tasks are kept as they come; their lanes are numbered, each lane is sorted and walked once with two
//! stacks of open tasks ([`crate::lanes`]): which encloses which, and whose each tick is; then every batch is handed on with
//! three columns more. Where the tasks of each lane come in the order of their starts, as from a store, they go through in chunks, and only
//! tasks that are still open wait for the next one.
//!
//! ```text
//! a [-----------------)    8 - 3 - 2 = 3
//! b   [-----)              3 - 1     = 2
//! c     [-)                            1
//! d             [---)                  2, and where it crossed the end of a, a would have had less and d all of its own
//! ```

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::filter;
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err};
use datafusion_doc::{DocSection, Documentation};

use crate::graph::NONE;
use crate::lanes::nest::{Around, Place};
use crate::lanes::open::Open;
use crate::lanes::{Counts, LaneSpan, Lanes, Nulls, Unfinished, by_lane, sort_lane};
use crate::relation::call::{Call, Work};
use crate::relation::parts::{InputPlan, Parts, Share};
use crate::relation::rows::{Rows, Ties};
use crate::relation::runs::Runs;
use crate::relation::{
    ColumnKind, ColumnSpec, HandedOn, InputSpec, Omitted, OrderOfRuns, Parameter, RelationFunction, RowOrder,
};
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
         tasks of the largest lane, and the order of rows is then that of lanes. Of a store whose lanes are in order, where nobody sees the order of \
         the answer, only tasks that are open at one time.\n\n\
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

    fn row_order(&self) -> RowOrder {
        RowOrder::Lanes
    }

    fn order_of_runs(&self) -> OrderOfRuns {
        OrderOfRuns::Rows
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let (mut counts, mut crossing) = (Counts::default(), 0);
        let mut add =
            |of_lanes: &Walk| (counts, crossing) = (counts.plus(of_lanes.counts), crossing + of_lanes.crossing);
        let mut runs = Runs::new();
        if call.input("tasks")?.0.is_by_lane() {
            let mut walk = Walk::default();
            walk.through(call, &mut runs)?;
            add(&walk);
        } else {
            let share = Share::Lanes("location");
            let plan = InputPlan { input: "tasks", share, row_bytes: TASK_BYTES };
            let mut parts = Parts::read(call, &[plan])?;
            while let Some([tasks]) = parts.next(call, &mut runs)? {
                let mut walk = Walk::default();
                walk.on(call, tasks, true)?;
                add(&walk);
            }
        }
        counts.note(&call.work, Unfinished::Endless, "location", ("nests nowhere", "nest nowhere"));
        note_crossing(crossing, &call.work);
        Ok(())
    }
}

/// Bytes that a task takes: its lane, its span on it, and what [`Nesting`] says of it.
const TASK_BYTES: usize = 3 * size_of::<u32>() + size_of::<LaneSpan>() + size_of::<i64>();

/// A walk over all lanes at once, as far as their tasks have come.
#[derive(Default)]
struct Walk {
    lanes: Lanes,
    of_lanes: Vec<OfLane>,
    /// Tasks that have come and are not done, and what is known of them.
    waiting: Option<RecordBatch>,
    known: Nesting,
    /// Tasks that have been sent on and are parents yet: a parent of `NONE - 1 - n` is number n of them.
    gone: Vec<Option<i64>>,
    counts: Counts,
    crossing: usize,
}

/// A walk over the tasks of a lane.
#[derive(Default)]
struct OfLane {
    around: Around<u32>,
    open: Open<u32>,
    /// Those of the last start: more of it may come, which nest around them.
    last: Vec<LaneSpan>,
}

impl Walk {
    /// Sends on the tasks of the input, each when it is over.
    fn through(&mut self, call: &mut Call, runs: &mut Runs) -> Result<()> {
        let before = call.work.size();
        loop {
            let (tasks, is_last) = Rows::next_chunk(call, "tasks", self.waiting.take(), runs)?;
            self.on(call, &tasks, is_last)?;
            if is_last {
                return Ok(());
            }
            call.work.forget_rows(before);
            call.work.grow(self.size())?;
        }
    }

    /// Goes on with more tasks, of which those that waited are the first ones, and sends on what is done.
    fn on(&mut self, call: &mut Call, tasks: &Rows, is_last: bool) -> Result<()> {
        let (mut nesting, work) = (std::mem::take(&mut self.known), &mut call.work);
        let known = nesting.len();
        let mut lane_of = self.lanes.number(tasks, Some("location"), Nulls::NoLane, work)?;
        lane_of[..known].fill(NONE);
        let mut by_lane = by_lane(tasks, &mut lane_of, self.lanes.len(), Unfinished::Endless, work)?;
        // They were counted when they came.
        by_lane.counts.without_lane -= known;
        self.counts = self.counts.plus(by_lane.counts);
        work.grow(tasks.len() * (size_of::<i64>() + 2 * size_of::<u32>()))?;
        nesting.resize(tasks.len());
        self.of_lanes.resize_with(self.lanes.len(), OfLane::default);
        let ties = tasks.ties();
        for (of_lane, (_, spans)) in self.of_lanes.iter_mut().zip(by_lane.lanes()) {
            work.check()?;
            of_lane.on(spans, &ties, is_last, &mut nesting)?;
        }
        self.crossing += std::mem::take(&mut nesting.crossing);
        let ids = tasks.integers("task");
        let gone = std::mem::take(&mut self.gone);
        let id = |task: u32, batch: usize| match (&ids, gone.get((NONE - 1).wrapping_sub(task) as usize)) {
            _ if task == NONE => None,
            (_, Some(gone)) => *gone,
            (Some(ids), None) => ids.get_near(task, batch),
            (None, None) => None,
        };
        let waiting = if is_last { vec![] } else { self.wait(tasks, &nesting, |task| id(task, 0))? };
        let mut is_done = vec![true; if waiting.is_empty() { 0 } else { tasks.len() }];
        waiting.iter().for_each(|row| is_done[*row as usize] = false);
        for (number, batch) in tasks.batches().iter().enumerate() {
            let rows = batch.batch.num_rows();
            let of_batch = nesting.of(batch.first, rows);
            let parent: Int64Array = of_batch.parents.iter().map(|parent| id(*parent, number)).collect();
            let done = is_done.get(batch.first..batch.first + rows).filter(|done| done.contains(&false));
            emit(call, &batch.batch, &of_batch, parent, done)?;
        }
        Ok(())
    }

    /// Keeps the tasks that are not done, whose rows are returned.
    fn wait(&mut self, tasks: &Rows, nesting: &Nesting, id: impl Fn(u32) -> Option<i64>) -> Result<Vec<u32>> {
        let mut rows: Vec<u32> = vec![];
        let mut wait = |row: &mut u32| {
            rows.push(*row);
            *row = rows.len() as u32 - 1;
        };
        let gone = &mut self.gone;
        let mut leave = |parent: u32| {
            gone.push(id(parent));
            NONE - gone.len() as u32
        };
        for of_lane in &mut self.of_lanes {
            of_lane.open.names_mut().for_each(&mut wait);
            of_lane.last.iter_mut().for_each(|span| wait(&mut span.row));
            of_lane.around.names_mut().for_each(|parent| *parent = leave(*parent));
        }
        for row in &rows {
            let row = *row as usize;
            self.known.taken.push(nesting.taken[row]);
            self.known.depths.push(nesting.depths[row]);
            self.known.parents.push(if nesting.parents[row] == NONE { NONE } else { leave(nesting.parents[row]) });
        }
        self.waiting = tasks.taken(&rows)?;
        Ok(rows)
    }

    /// About how many bytes are held between two chunks.
    fn size(&self) -> usize {
        let waiting = self.waiting.as_ref().map_or(0, RecordBatch::get_array_memory_size);
        let of_tasks = (self.known.len() + self.gone.len()) * (TASK_BYTES + size_of::<Option<i64>>());
        self.lanes.size() + self.of_lanes.len() * size_of::<OfLane>() + waiting + of_tasks
    }
}

impl OfLane {
    /// Goes on with more tasks, none of which starts before those that came.
    fn on(&mut self, spans: &mut [LaneSpan], ties: &Ties<'_>, is_last: bool, nesting: &mut Nesting) -> Result<()> {
        sort_lane(spans, ties);
        let mut spans: &[LaneSpan] = spans;
        if let (Some(last), Some(next)) = (self.last.first(), spans.first()) {
            let start = last.start;
            if next.start < start {
                return exec_err!(
                    "self_time: a task that starts at {} comes after one that starts at {start}",
                    next.start
                );
            }
            let (same, later) = spans.split_at(spans.partition_point(|span| span.start == start));
            self.last.extend(same);
            spans = later;
        }
        if is_last || !spans.is_empty() {
            let mut last = std::mem::take(&mut self.last);
            sort_lane(&mut last, ties);
            self.walk(&last, nesting);
        }
        let until = spans.last().filter(|_| !is_last).map(|last| last.start);
        let (now, later) = spans.split_at(spans.partition_point(|span| until.is_none_or(|until| span.start < until)));
        self.walk(now, nesting);
        self.last.extend(later);
        if is_last {
            self.open.until(i64::MAX, |row, ticks| own(&mut nesting.taken, row, ticks));
        }
        Ok(())
    }

    fn walk(&mut self, spans: &[LaneSpan], nesting: &mut Nesting) {
        for span in spans {
            let row = span.row as usize;
            // When one that never ended does, nobody knows: it takes nothing.
            if !span.endless {
                nesting.taken[row] = span.finish.wrapping_sub(span.start);
                self.open.begin(span.row, span.start, span.finish, |row, ticks| own(&mut nesting.taken, row, ticks));
            }
            self.around.enter(span, |place| {
                match place {
                    Place::Top => nesting.depths[row] = 0,
                    Place::Across => nesting.crossing += 1,
                    Place::Inside(parent, depth) => {
                        nesting.depths[row] = depth as u32;
                        nesting.parents[row] = parent;
                    }
                }
                span.row
            });
        }
    }
}

/// Gives a task ticks of its own. They are its own or taken, and fit when its duration does, which is looked at when it is shown.
fn own(taken: &mut [i64], row: u32, ticks: i128) {
    let taken = &mut taken[row as usize];
    *taken = taken.wrapping_sub(ticks as i64);
}

/// How the tasks of all lanes nest, by row.
#[derive(Default)]
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
    fn len(&self) -> usize {
        self.taken.len()
    }

    fn resize(&mut self, rows: usize) {
        self.taken.resize(rows, 0);
        self.parents.resize(rows, NONE);
        self.depths.resize(rows, NONE);
    }

    fn of(&self, first: usize, rows: usize) -> NestingOf<'_> {
        let rows = first..first + rows;
        NestingOf { taken: &self.taken[rows.clone()], parents: &self.parents[rows.clone()], depths: &self.depths[rows] }
    }
}

/// Says how many tasks cross others.
pub(crate) fn note_crossing(crossing: usize, work: &Work) {
    work.note_count(
        crossing,
        "task crosses another on its lane: it has no parent, and the time of both is its own",
        "tasks cross others on their lanes: they have no parent, and the time of both is theirs",
    );
}

/// Sends on the rows of a batch that are done; `None`: all.
fn emit(
    call: &mut Call,
    batch: &RecordBatch,
    nesting: &NestingOf<'_>,
    parent: Int64Array,
    done: Option<&[bool]>,
) -> Result<()> {
    let rows = batch.num_rows();
    let output = Arc::clone(call.output());
    let handed_on = |name: &str| -> ArrayRef {
        let data_type = output.field_with_name(name).map_or(DataType::Null, |field| field.data_type().clone());
        batch.column_by_name(name).cloned().unwrap_or_else(|| new_null_array(&data_type, rows))
    };
    let (start, finish, task) = (handed_on("start"), handed_on("finish"), handed_on("task"));
    let (duration, own) = times(&start, &finish, &task, nesting.taken)?;
    let depth = nesting.depths.iter().map(|depth| (*depth != NONE).then_some(i64::from(*depth)));
    let mut columns = vec![
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
    if let Some(done) = done {
        let done = BooleanArray::from(done.to_vec());
        columns = columns.iter().map(|column| filter(column, &done)).collect::<std::result::Result<_, _>>()?;
    }
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
            let mut nesting = Nesting::default();
            nesting.resize(spans.len());
            OfLane::default().on(&mut lane, &Ties::by_row(), true, &mut nesting).unwrap();
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
