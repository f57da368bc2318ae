//! `concurrency(tasks)`: how many tasks run, as a step function of time.
//!
//! Life of the data: the starts and the finishes of each run are copied, sorted separately, and merged from left to
//! right: one more at a start, one less at a finish.
//!
//! ```text
//! a       [-----)
//! b          [-----)
//! c             [--)      starts where a ends: nothing changes there
//! running 0  1  2  2  0
//! ```

use std::sync::{Arc, LazyLock};

use arrow::array::Int64Array;
use arrow::datatypes::{DataType, Field};
use datafusion_common::Result;
use datafusion_doc::{DocSection, Documentation};

use crate::lanes::{BYTES_ON_LANE, Counts, LEFT_OUT, LaneSpan, Nulls, Unfinished, on_lanes};
use crate::relation::call::Call;
use crate::relation::parts::{Ask, Parts, Share};
use crate::relation::runs::Runs;
use crate::relation::{ColumnKind, ColumnSpec, InputSpec, Omitted, Parameter, RelationFunction};
use crate::ticks::time_field;

/// The relation function `concurrency`.
#[derive(Debug)]
pub struct Concurrency;

static PARAMETERS: [Parameter; 1] = [Parameter::Input(InputSpec {
    name: "tasks",
    omitted: Omitted::Table("tasks"),
    columns: &[ColumnSpec::needed("start", ColumnKind::Integer), ColumnSpec::needed("finish", ColumnKind::Integer)],
})];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "How many tasks run, as a step function of time: one row for each change.\n\n\
         Rows: per run, one for each tick at which the number changes: from `time` on, `running` tasks run, until the next \
         row. The first row is the first start, the last one has 0. Nested tasks count each: take `depth = 0` to count lanes. \
         A task that starts where another ends changes nothing.\n\n\
         Units: `time` in ticks.\n\n\
         Nulls: a task whose start or finish is NULL is left out and counted in a note. Tasks without length run at no \
         tick, nor do those that end before they start.\n\n\
         Ties: all changes of a tick are one row, or none when they cancel out.\n\n\
         Errors: none.\n\n\
         Cost: n log n; 44 bytes a task beside the tasks themselves; beyond half of the memory limit, of \
         the largest run.\n\n\
         Source: the sweep over sorted ends, as for the depth of intervals in de Berg et al., Computational Geometry.",
        "concurrency([tasks])",
    )
    .with_sql_example(
        "SELECT time, running FROM concurrency(\n  \
         (SELECT * FROM (VALUES (0, 2), (1, 3), (2, 3)) AS tasks(start, finish)))\nORDER BY time",
    )
    .with_argument("tasks", "Relation: start, finish (BIGINT); optional run.")
    .build()
});

impl RelationFunction for Concurrency {
    fn name(&self) -> &'static str {
        "concurrency"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![time_field("time", false), Field::new("running", DataType::Int64, false)]
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let mut runs = Runs::new();
        let row_bytes = BYTES_ON_LANE + 2 * size_of::<i64>();
        let mut parts = Parts::read(call, &[Ask { input: "tasks", share: Share::Runs, row_bytes }])?;
        let mut counts = Counts::default();
        while let Some([tasks]) = parts.next(call, &mut runs)? {
            // Without a column each run is a lane.
            let (lanes, of_lanes) = on_lanes(tasks, None, Nulls::OneLane, Unfinished::LeftOut, &mut call.work)?;
            counts = counts.plus(of_lanes.counts);
            for lane in 0..lanes.len() {
                steps(call, &runs, lanes.lane(lane).run, of_lanes.lane(lane))?;
            }
        }
        counts.note(&call.work, Unfinished::LeftOut, "run", LEFT_OUT);
        Ok(())
    }
}

/// Sends on the steps of one run.
fn steps(call: &mut Call, runs: &Runs, run: usize, spans: &[LaneSpan]) -> Result<()> {
    let bytes = spans.len() * 2 * size_of::<i64>();
    call.work.grow(bytes)?;
    let real = || spans.iter().filter(|span| !span.is_empty());
    let mut starts: Vec<i64> = real().map(|span| span.start).collect();
    let mut finishes: Vec<i64> = real().map(|span| span.finish).collect();
    starts.sort_unstable();
    call.work.check()?;
    finishes.sort_unstable();
    let mut rest = Steps::new(&starts, &finishes);
    loop {
        let chunk: Vec<(i64, i64)> = rest.by_ref().take(CHUNK_ROWS).collect();
        if chunk.is_empty() {
            break;
        }
        call.work.check()?;
        let (times, running): (Vec<i64>, Vec<i64>) = chunk.into_iter().unzip();
        call.emit(vec![
            runs.column(&[(run, times.len())], call.output().field(0).data_type())?,
            Arc::new(Int64Array::from(times)),
            Arc::new(Int64Array::from(running)),
        ])?;
    }
    call.work.shrink(bytes);
    Ok(())
}

/// Steps are sent on in so many rows.
const CHUNK_ROWS: usize = 65_536;

/// The steps (time, running) of spans with ticks, given their starts and their finishes, each sorted.
pub(crate) struct Steps<'a> {
    starts: std::iter::Peekable<std::slice::Iter<'a, i64>>,
    finishes: std::iter::Peekable<std::slice::Iter<'a, i64>>,
    running: i64,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(starts: &'a [i64], finishes: &'a [i64]) -> Self {
        Steps { starts: starts.iter().peekable(), finishes: finishes.iter().peekable(), running: 0 }
    }
}

impl Iterator for Steps<'_> {
    type Item = (i64, i64);

    fn next(&mut self) -> Option<(i64, i64)> {
        loop {
            // A finish is left as long as a start is: everything that starts ends.
            let finish = **self.finishes.peek()?;
            let time = self.starts.peek().map_or(finish, |start| finish.min(**start));
            let before = self.running;
            while self.starts.next_if(|start| **start == time).is_some() {
                self.running += 1;
            }
            while self.finishes.next_if(|finish| **finish == time).is_some() {
                self.running -= 1;
            }
            if self.running != before {
                return Some((time, self.running));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        /// At every tick the step that came last says how many spans have it, and no step says what the one before said.
        #[test]
        fn equals_the_count_at_every_tick(spans in vec((0..20i64, 1..8i64), 0..12)) {
            let mut starts: Vec<i64> = spans.iter().map(|span| span.0).collect();
            let mut finishes: Vec<i64> = spans.iter().map(|span| span.0 + span.1).collect();
            starts.sort_unstable();
            finishes.sort_unstable();
            let found: Vec<(i64, i64)> = Steps::new(&starts, &finishes).collect();
            let running = |tick: i64| spans.iter().filter(|span| span.0 <= tick && tick < span.0 + span.1).count() as i64;
            let changes = (0..40).filter(|tick| running(*tick) != running(tick - 1));
            prop_assert_eq!(found, changes.map(|tick| (tick, running(tick))).collect::<Vec<_>>());
        }
    }
}
