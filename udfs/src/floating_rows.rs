//! `floating_rows(tasks)`: the row of a Gantt chart in which each task is drawn, for any number of tasks.
//!
//! Life of the data: tasks are grouped by lane ([`crate::lanes`]), each lane is sorted by start, and its tasks float up into rows, as those
//! of [`floating_row`](crate::floating_row). Where the tasks of each lane come in the order of their starts, as from a store, they go
//! through in chunks: what is kept of a lane is until when its rows are taken, and the tasks of the last start, since longer ones of the
//! same start may come.
//!
//! ```text
//!          0 1 2 3 4 5 6 7 8 9
//! row 0    [a-----)[b----)         b starts where a ends
//! row 1      [c-------)[d-)        c overlaps a, and d overlaps b
//! ```

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err};
use datafusion_doc::{DocSection, Documentation};

use crate::floating_row::FloatingRows;
use crate::lanes::{BYTES_ON_LANE, Counts, LEFT_OUT, Lanes, Nulls, Unfinished, by_lane, sort_lane};
use crate::relation::call::Call;
use crate::relation::parts::{InputPlan, Parts, Share};
use crate::relation::rows::Rows;
use crate::relation::runs::Runs;
use crate::relation::{
    ColumnKind, ColumnSpec, HandedOn, InputSpec, Omitted, OrderOfRuns, Parameter, RelationFunction, RowOrder,
};
use crate::spans::Span;
use crate::ticks::time_field;

/// The relation function `floating_rows`.
#[derive(Debug)]
pub struct FloatingRowsOfLanes;

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
        "The row of a Gantt chart in which each task is drawn: the first one of its location, from 0, whose tasks it does not overlap. It is \
         what the window function `floating_row` gives for `PARTITION BY run, location ORDER BY start, finish DESC`, with memory that does \
         not grow with the tasks of a store.\n\n\
         Rows: one per task; those of a location come in the order of start, longer ones first. Without a column `location`, all tasks of \
         a run are those of one location. Touching tasks share a row; one without length is a mark, which may not touch the end of a task \
         placed before it, and nothing else may start where it is.\n\n\
         Units: `start` and `finish` in ticks; `row` counts from 0.\n\n\
         Nulls: a task without start or finish is left out and counted in a note. Tasks whose location is NULL are those of one location, \
         NULL. A task that ends before it starts counts as a mark.\n\n\
         Ties: of tasks of equal start and finish the smaller one is placed first; without a column `task`, the one that comes first.\n\n\
         Errors: as many as 4294967295 tasks of one location at a time.\n\n\
         Cost: n log n, and log r for r rows; 28 bytes a task beside the tasks themselves; beyond half of the memory limit, as much for the \
         tasks of the largest location. Of a store whose locations are in order, where nobody sees the order of the answer, only the tasks \
         of the last starts.\n\n\
         Source: the row assignment of Daisen's component view (Akita), which is first fit on an interval graph.",
        "floating_rows([tasks])",
    )
    .with_sql_example(
        "SELECT task, start, finish, row FROM floating_rows(\n  \
         (SELECT * FROM (VALUES (1, 0, 4), (2, 1, 3), (3, 2, 6), (4, 3, 5)) AS tasks(task, start, finish)))\nORDER BY task",
    )
    .with_argument("tasks", "Relation: start, finish (BIGINT); optional run, location, task, name.")
    .build()
});

impl RelationFunction for FloatingRowsOfLanes {
    fn name(&self) -> &'static str {
        "floating_rows"
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
            time_field("start", false),
            time_field("finish", false),
            Field::new("row", DataType::Int64, false),
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
        let mut counts = Counts::default();
        let mut runs = Runs::new();
        if call.input("tasks")?.0.is_by_lane() {
            let mut walk = Walk::default();
            walk.through(call, &mut runs)?;
            counts = walk.counts;
        } else {
            let plan = InputPlan { input: "tasks", share: Share::Lanes("location"), row_bytes: TASK_BYTES };
            let mut parts = Parts::read(call, &[plan])?;
            while let Some([tasks]) = parts.next(call, &mut runs)? {
                let mut walk = Walk::default();
                walk.on(call, tasks, true)?;
                counts = counts.plus(walk.counts);
            }
        }
        counts.note(&call.work, Unfinished::LeftOut, "location", LEFT_OUT);
        Ok(())
    }
}

/// Bytes that a task takes: its span on its lane.
const TASK_BYTES: usize = BYTES_ON_LANE;

/// Rows of the answer that are made at a time.
const EMITTED_ROWS: usize = 1 << 16;

/// A walk over all lanes at once, as far as their tasks have come.
#[derive(Default)]
struct Walk {
    lanes: Lanes,
    of_lanes: Vec<FloatingRows>,
    /// Tasks that have come and that others of the same start may come before.
    waiting: Option<RecordBatch>,
    counts: Counts,
}

impl Walk {
    /// Sends on the tasks of the input.
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

    /// Goes on with more tasks, of which those that waited are the first ones, and sends on those whose row is known.
    fn on(&mut self, call: &mut Call, tasks: &Rows, is_last: bool) -> Result<()> {
        let mut lane_of = self.lanes.number(tasks, Some("location"), Nulls::OneLane, &mut call.work)?;
        let mut by_lane = by_lane(tasks, &mut lane_of, self.lanes.len(), Unfinished::LeftOut, &mut call.work)?;
        self.of_lanes.resize_with(self.lanes.len(), FloatingRows::default);
        let ties = tasks.ties();
        let (mut rows, mut places, mut waiting) = (vec![], vec![], vec![]);
        for (of_lane, (_, of_spans)) in self.of_lanes.iter_mut().zip(by_lane.lanes()) {
            call.work.check()?;
            sort_lane(of_spans, &ties);
            let until = of_spans.last().filter(|_| !is_last).map(|last| last.start);
            for span in of_spans.iter() {
                if until == Some(span.start) {
                    waiting.push(span.row);
                    continue;
                }
                let placed = of_lane.place(Span { start: span.start, finish: span.finish });
                let place = placed.or_else(|error| exec_err!("floating_rows: {error}"))?;
                rows.push(span.row);
                places.push(place);
                if rows.len() == EMITTED_ROWS {
                    emit(call, tasks, &rows, std::mem::take(&mut places))?;
                    rows.clear();
                }
            }
        }
        emit(call, tasks, &rows, places)?;
        // What waits is counted when it comes again.
        waiting.sort_unstable();
        let reversed = waiting.iter().filter(|row| is_reversed(tasks, **row)).count();
        self.counts = self.counts.plus(by_lane.counts);
        self.counts.reversed -= reversed;
        self.waiting = tasks.taken(&waiting)?;
        Ok(())
    }

    /// About how many bytes are held between two chunks.
    fn size(&self) -> usize {
        let waiting = self.waiting.as_ref().map_or(0, RecordBatch::get_array_memory_size);
        let of_lanes: usize = self.of_lanes.iter().map(FloatingRows::size).sum();
        self.lanes.size() + of_lanes + waiting
    }
}

/// Whether a task ends before it starts.
fn is_reversed(tasks: &Rows, row: u32) -> bool {
    let time = |name: &str| tasks.integers(name).and_then(|times| times.get(row));
    time("start").zip(time("finish")).is_some_and(|(start, finish)| finish < start)
}

/// Sends on some tasks with their rows.
fn emit(call: &mut Call, tasks: &Rows, rows: &[u32], places: Vec<i64>) -> Result<()> {
    let output = Arc::clone(call.output());
    let of_input = |name: &str| -> Result<ArrayRef> {
        let data_type = output.field_with_name(name).map_or(DataType::Null, |field| field.data_type().clone());
        tasks.gather(name, rows, &data_type)
    };
    let columns = ["run", "task", "name", "location", "start", "finish"].into_iter().map(of_input);
    let rows: ArrayRef = Arc::new(Int64Array::from(places));
    let columns = columns.chain([Ok(rows)]).collect::<Result<_>>()?;
    call.emit(columns)
}
