//! `gaps(tasks)`: the intervals in which nothing runs on a location.
//!
//! Life of the data: tasks are kept and grouped by lane ([`crate::lanes`]); each lane is sorted and swept from left to
//! right.
//!
//! ```text
//! a [-----)
//! b   [-)
//! c          [--)      gap after a, before c
//! d                |   runs at no tick: neither ends a gap nor splits one
//! ```

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err};
use datafusion_doc::{DocSection, Documentation};

use crate::graph::NONE;
use crate::lanes::{
    BYTES_ON_LANE, Counts, LEFT_OUT, LaneSpan, Lanes, Nulls, Unfinished, extend_reaches, on_lanes, sort_lane,
};
use crate::relation::call::Call;
use crate::relation::parts::{InputPlan, Parts, Share};
use crate::relation::rows::Rows;
use crate::relation::runs::Runs;
use crate::relation::{
    ColumnKind, ColumnSpec, Default, InputSpec, Omitted, OptionKind, OptionSpec, Parameter, RelationFunction, RowOrder,
};
use crate::spans::Window;
use crate::ticks::time_field;

/// The relation function `gaps`.
#[derive(Debug)]
pub struct Gaps;

static PARAMETERS: [Parameter; 4] = [
    Parameter::Input(InputSpec {
        name: "tasks",
        omitted: Omitted::Table("tasks"),
        columns: &[
            ColumnSpec::needed("start", ColumnKind::Integer),
            ColumnSpec::needed("finish", ColumnKind::Integer),
            ColumnSpec::optional("location", ColumnKind::Text),
            ColumnSpec::optional("task", ColumnKind::Integer),
        ],
    }),
    Parameter::Option(OptionSpec { name: "from", kind: OptionKind::Integer, default: Default::Null }),
    Parameter::Option(OptionSpec { name: "to", kind: OptionKind::Integer, default: Default::Null }),
    Parameter::Option(OptionSpec { name: "ends", kind: OptionKind::Boolean, default: Default::Boolean(false) }),
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "The idle intervals of each location: where nothing runs between its first start and its last finish. \
         Without a column `location`, all tasks of a run are on one.\n\n\
         Rows: one per gap, as long as it can be. `task_before` ran last before it, `task_after` runs first after it. With \
         `from` and `to` the gaps of that window are given: also the one before the first and after the last task, where \
         `task_before` or `task_after` is NULL; longer ones are cut at the borders. `ends` takes for a side without a bound that of \
         the run, from the first start to the last finish of all its tasks with a location: what a location waited for its first task and after \
         its last one. Only locations with tasks are known: join `locations` to see those that never ran. A task without length runs at no tick: it neither ends nor splits a gap.\n\n\
         Units: ticks.\n\n\
         Nulls: a task without location, start or finish is left out; each is counted in a note. A task that ends before it \
         starts counts as empty, and empty tasks bound no gap. A NULL window bound leaves that side to the tasks.\n\n\
         Ties: of tasks that finish together, `task_before` is the one that started first; of tasks that start together, \
         `task_after` is the one that finishes last; then the one with the smaller task.\n\n\
         Errors: a gap beyond BIGINT, `to` before `from`.\n\n\
         Cost: n log n, linear when tasks are sorted by start; 28 bytes a task beside the tasks themselves; beyond half of the memory limit, as much for the \
         tasks of the largest lane.\n\n\
         Source: `busy` and `gaps` share the union of spans: within a window, their ticks add up to its length.",
        "gaps([tasks], [from => BIGINT], [to => BIGINT], [ends => BOOLEAN])",
    )
    .with_sql_example(
        "SELECT start, finish, duration, task_before, task_after FROM gaps(\n  \
         (SELECT * FROM (VALUES (1, 0, 4), (2, 1, 2), (3, 6, 8)) AS tasks(task, start, finish)), to => 10)\nORDER BY start",
    )
    .with_argument("tasks", "Relation: start, finish (BIGINT); optional run, location, task.")
    .with_argument("from", "Where the window begins (ticks, default: the first start of each location).")
    .with_argument("to", "Where the window ends (ticks, default: the last finish of each location).")
    .with_argument("ends", "Whether the run's first start and last finish bound the window otherwise (default false).")
    .build()
});

impl RelationFunction for Gaps {
    fn name(&self) -> &'static str {
        "gaps"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            Field::new("location", DataType::Utf8View, true),
            time_field("start", false),
            time_field("finish", false),
            time_field("duration", false),
            Field::new("task_before", DataType::Int64, true),
            Field::new("task_after", DataType::Int64, true),
        ]
    }

    fn row_order(&self) -> RowOrder {
        RowOrder::Any
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let window = Window::of(call)?;
        let mut runs = Runs::new();
        let share = Share::Lanes("location");
        let plan = InputPlan { input: "tasks", share, row_bytes: BYTES_ON_LANE };
        let mut parts = Parts::read(call, &[plan])?;
        let mut reaches = HashMap::new();
        if call.options.flag("ends")? {
            while let Some([tasks]) = parts.next(call, &mut runs)? {
                extend_reaches(tasks, Nulls::NoLane, &mut reaches)?;
            }
            parts.rewind();
        }
        let mut counts = Counts::default();
        while let Some([tasks]) = parts.next(call, &mut runs)? {
            let (lanes, mut of_lanes) =
                on_lanes(tasks, Some("location"), Nulls::NoLane, Unfinished::LeftOut, &mut call.work)?;
            counts = counts.plus(of_lanes.counts);
            let ties = tasks.ties();
            let mut found = Found::default();
            for (lane, spans) in of_lanes.lanes_by_run(&lanes, &runs) {
                call.work.check()?;
                sort_lane(spans, &ties);
                let before = found.gaps.len();
                let run = reaches.get(&lanes.lane(lane).run);
                let window = Window {
                    from: window.from.or(run.map(|reach| reach.start)),
                    to: window.to.or(run.map(|reach| reach.end)),
                };
                gaps(spans, window, &mut found.gaps);
                found.lanes.push((lane, found.gaps.len() - before));
                if found.gaps.len() >= CHUNK_ROWS {
                    emit(call, &runs, &lanes, tasks, &std::mem::take(&mut found))?;
                }
            }
            emit(call, &runs, &lanes, tasks, &found)?;
        }
        counts.note(&call.work, Unfinished::LeftOut, "location", LEFT_OUT);
        Ok(())
    }
}

/// Gaps are sent on when there are at least so many.
const CHUNK_ROWS: usize = 65_536;

/// A stretch in which nothing runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gap {
    start: i64,
    finish: i64,
    /// Rows, or [`NONE`].
    before: u32,
    after: u32,
}

/// Gaps that have not been sent on, with how many there are of each lane.
#[derive(Debug, Default)]
struct Found {
    gaps: Vec<Gap>,
    lanes: Vec<(usize, usize)>,
}

/// The gaps of a sorted lane.
fn gaps(spans: &[LaneSpan], window: Window, found: &mut Vec<Gap>) {
    let from = window.from.unwrap_or(i64::MIN);
    let to = window.to.unwrap_or(i64::MAX);
    let mut add = |start: i64, finish: i64, before: u32, after: u32| {
        let (start, finish) = (start.max(from), finish.min(to));
        if start < finish {
            found.push(Gap { start, finish, before, after });
        }
    };
    // The task that has reached furthest, and how far.
    let mut last: Option<(i64, u32)> = None;
    for span in spans.iter().filter(|span| !span.is_empty()) {
        match (last, window.from) {
            (Some((until, before)), _) => add(until, span.start, before, span.row),
            (None, Some(from)) => add(from, span.start, NONE, span.row),
            (None, None) => {}
        }
        // Sorted by start and longest first: among those that reach as far, the first one started first.
        if last.is_none_or(|(until, _)| until < span.finish) {
            last = Some((span.finish, span.row));
        }
    }
    if let Some(to) = window.to {
        match (last, window.from) {
            (Some((until, before)), _) => add(until, to, before, NONE),
            (None, Some(from)) => add(from, to, NONE, NONE),
            (None, None) => {}
        }
    }
}

fn emit(call: &mut Call, runs: &Runs, lanes: &Lanes, tasks: &Rows, found: &Found) -> Result<()> {
    let rows: Vec<(usize, usize)> = found.lanes.iter().map(|(lane, count)| (lanes.lane(*lane).run, *count)).collect();
    let lane_of_row = found.lanes.iter().flat_map(|(lane, count)| std::iter::repeat_n(*lane, *count));
    let mut durations = Vec::with_capacity(found.gaps.len());
    for Gap { start, finish, .. } in &found.gaps {
        let Some(duration) = finish.checked_sub(*start) else {
            return exec_err!("gaps: the duration of the gap from {start} to {finish} does not fit a BIGINT");
        };
        durations.push(duration);
    }
    let column = |value: &dyn Fn(&Gap) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(found.gaps.iter().map(value)))
    };
    let task = |row: &dyn Fn(&Gap) -> u32| -> Result<ArrayRef> {
        tasks.gather("task", &found.gaps.iter().map(row).collect::<Vec<u32>>(), &DataType::Int64)
    };
    let columns = vec![
        runs.column(&rows, call.output().field(0).data_type())?,
        lanes.texts(lane_of_row)?,
        column(&|gap| gap.start),
        column(&|gap| gap.finish),
        Arc::new(Int64Array::from(durations)),
        task(&|gap| gap.before)?,
        task(&|gap| gap.after)?,
    ];
    call.emit(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relation::rows::Ties;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    proptest! {
        /// A gap is a longest stretch of ticks at which nothing runs, in the window or between two tasks.
        #[test]
        fn gaps_are_the_longest_stretches_without_a_task(
            spans in vec((0..20i64, 0..5i64), 0..8), from in option::of(-3..23i64), to in option::of(-3..23i64),
        ) {
            let spans: Vec<(i64, i64)> = spans.into_iter().map(|(start, length)| (start, start + length)).collect();
            let span = |(row, (start, finish)): (u32, &(i64, i64))| LaneSpan::new(*start, *finish, row);
            let mut lane: Vec<LaneSpan> = (0..).zip(&spans).map(span).collect();
            sort_lane(&mut lane, &Ties::by_row());
            let mut found = vec![];
            gaps(&lane, Window { from, to }, &mut found);

            let real = || spans.iter().filter(|span| span.0 < span.1);
            let first = from.or(real().map(|span| span.0).min());
            let last = to.or(real().map(|span| span.1).max());
            let mut naive: Vec<Gap> = vec![];
            if let (Some(first), Some(last)) = (first, last) {
                let idle = |tick: &i64| !real().any(|span| span.0 <= *tick && *tick < span.1);
                for tick in (first..last).filter(idle) {
                    match naive.last_mut() {
                        Some(gap) if gap.finish == tick => gap.finish += 1,
                        _ => naive.push(Gap { start: tick, finish: tick + 1, before: NONE, after: NONE }),
                    }
                }
            }
            let outermost = |row: &usize| (spans[*row].0, -spans[*row].1, *row);
            let rows = || (0..spans.len()).filter(|row| spans[*row].0 < spans[*row].1);
            for gap in &mut naive {
                let before = rows().filter(|row| spans[*row].1 <= gap.start).map(|row| spans[row].1).max();
                let before = rows().filter(|row| Some(spans[*row].1) == before).min_by_key(outermost);
                let after = rows().filter(|row| gap.finish <= spans[*row].0).min_by_key(outermost);
                (gap.before, gap.after) = (before.map_or(NONE, |row| row as u32), after.map_or(NONE, |row| row as u32));
            }
            prop_assert_eq!(found, naive);
        }
    }

    #[test]
    fn extremes() {
        let lane = [LaneSpan::new(i64::MIN, i64::MIN + 1, 0), LaneSpan::new(i64::MAX - 1, i64::MAX, 1)];
        let mut found = vec![];
        gaps(&lane, Window::default(), &mut found);
        assert_eq!(found, [Gap { start: i64::MIN + 1, finish: i64::MAX - 1, before: 0, after: 1 }]);
    }
}
