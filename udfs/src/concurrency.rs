//! `concurrency(tasks)`: how many tasks run, as a step function of time.
//!
//! Life of the data: the starts and the finishes of each run are brought into their order (`spans::in_order`), and merged from left to
//! right: one more at a start, one less at a finish. Nothing else is kept of the tasks.
//!
//! ```text
//! a       [-----)
//! b          [-----)
//! c             [--)      starts where a ends: nothing changes there
//! running 0  1  2  2  0
//! ```

use std::iter::Peekable;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, Int64Array};
use arrow::datatypes::{DataType, Field};
use datafusion_common::Result;
use datafusion_doc::{DocSection, Documentation};

use crate::graph::load::integers;
use crate::lanes::{Counts, LEFT_OUT, Unfinished};
use crate::relation::call::Call;
use crate::relation::runs::{Reading, Runs};
use crate::relation::{ColumnKind, ColumnSpec, InputSpec, Omitted, Parameter, RelationFunction, RowOrder};
use crate::spans::in_order::TimesInOrder;
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
         Cost: n log n, less where tasks come about as they ran; 2 to 6 bytes a task then, of all runs together, and 20 at most.\n\n\
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

    fn row_order(&self) -> RowOrder {
        RowOrder::Any
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let (mut runs, mut reading, mut counts) = (Runs::new(), Reading::default(), Counts::default());
        let mut of_runs: Vec<Ends> = vec![];
        let (tasks, work) = call.input("tasks")?;
        while let Some(batch) = tasks.next_batch()? {
            work.check()?;
            let (starts, finishes) = (integers(&batch, "start")?, integers(&batch, "finish")?);
            for stretch in runs.learn(&mut reading, batch.column_by_name("run"), batch.num_rows())? {
                let Some(run) = stretch.run else { continue };
                of_runs.resize_with(runs.len().max(of_runs.len()), Ends::default);
                let before = of_runs[run].size();
                for row in stretch.rows {
                    let finish = finishes.is_valid(row).then(|| finishes.value(row));
                    match (starts.is_valid(row).then(|| starts.value(row)), finish) {
                        (None, _) => counts.without_start += 1,
                        (_, None) => counts.unfinished += 1,
                        (Some(start), Some(finish)) if finish < start => counts.reversed += 1,
                        (Some(start), Some(finish)) => of_runs[run].add(start, finish),
                    }
                }
                work.grow(of_runs[run].size().saturating_sub(before))?;
            }
        }
        for run in runs.in_order() {
            if let Some(ends) = of_runs.get_mut(run) {
                steps(call, &runs, run, ends)?;
            }
        }
        counts.note(&call.work, Unfinished::LeftOut, "run", LEFT_OUT);
        Ok(())
    }
}

/// When the tasks of a run start and end, of those with ticks.
#[derive(Debug, Default)]
struct Ends {
    starts: TimesInOrder,
    finishes: TimesInOrder,
}

impl Ends {
    #[inline]
    fn add(&mut self, start: i64, finish: i64) {
        if start < finish {
            self.starts.push(start);
            self.finishes.push(finish);
        }
    }

    fn size(&self) -> usize {
        self.starts.size() + self.finishes.size()
    }
}

/// Sends on the steps of one run.
fn steps(call: &mut Call, runs: &Runs, run: usize, ends: &mut Ends) -> Result<()> {
    let mut rest = Steps::new(ends.starts.iter(), ends.finishes.iter());
    loop {
        let chunk: Vec<(i64, i64)> = rest.by_ref().take(CHUNK_ROWS).collect();
        if chunk.is_empty() {
            return Ok(());
        }
        call.work.check()?;
        let (times, running): (Vec<i64>, Vec<i64>) = chunk.into_iter().unzip();
        call.emit(vec![
            runs.column(&[(run, times.len())], call.output().field(0).data_type())?,
            Arc::new(Int64Array::from(times)),
            Arc::new(Int64Array::from(running)),
        ])?;
    }
}

/// Steps are sent on in so many rows.
const CHUNK_ROWS: usize = 65_536;

/// The steps (time, running) of spans with ticks, given their starts and their finishes, each in their order.
pub(crate) struct Steps<S: Iterator<Item = i64>, F: Iterator<Item = i64>> {
    starts: Peekable<S>,
    finishes: Peekable<F>,
    running: i64,
}

impl<S: Iterator<Item = i64>, F: Iterator<Item = i64>> Steps<S, F> {
    pub(crate) fn new(starts: S, finishes: F) -> Self {
        Steps { starts: starts.peekable(), finishes: finishes.peekable(), running: 0 }
    }
}

impl<S: Iterator<Item = i64>, F: Iterator<Item = i64>> Iterator for Steps<S, F> {
    type Item = (i64, i64);

    fn next(&mut self) -> Option<(i64, i64)> {
        loop {
            // A finish is left as long as a start is: everything that starts ends.
            let finish = *self.finishes.peek()?;
            let time = self.starts.peek().map_or(finish, |start| finish.min(*start));
            let before = self.running;
            while self.starts.next_if_eq(&time).is_some() {
                self.running += 1;
            }
            while self.finishes.next_if_eq(&time).is_some() {
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
            let found: Vec<(i64, i64)> = Steps::new(starts.into_iter(), finishes.into_iter()).collect();
            let running = |tick: i64| spans.iter().filter(|span| span.0 <= tick && tick < span.0 + span.1).count() as i64;
            let changes = (0..40).filter(|tick| running(*tick) != running(tick - 1));
            prop_assert_eq!(found, changes.map(|tick| (tick, running(tick))).collect::<Vec<_>>());
        }
    }
}
