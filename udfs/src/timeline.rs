//! `timeline(tasks, bins, from, to)`: how busy each location is in each of a number of equal intervals (bins).
//!
//! Life of the data: tasks are kept and grouped by lane ([`crate::lanes`]); each lane is sorted by start and swept once.
//! A span covers its first and last bin in part and those between in full; the full ones are recorded as two differences
//! at the ends, so a task costs the same however many bins it covers.
//!
//! ```text
//!          0 1 2 3 4 5 6 7 8 9 10
//! bins     [-----[-----[-------)    three bins of [0, 10): edge i is floor(i · 10 / 3)
//! a            [---------------)    busy 1, 3, 4
//! b                  [---)          inside of a: busy stays, mean concurrency 1/3, 4/3, 5/4
//! ```

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_doc::{DocSection, Documentation};

use crate::bins::{BINS_MAX, Edges, within};
use crate::lanes::{BYTES_ON_LANE, Counts, LEFT_OUT, LaneSpan, Nulls, Unfinished, extend_reaches, on_lanes, sort_lane};
use crate::relation::call::Call;
use crate::relation::parts::{InputPlan, Parts, Share};
use crate::relation::rows::Ties;
use crate::relation::runs::Runs;
use crate::relation::{
    ColumnKind, ColumnSpec, Default, InputSpec, Omitted, OptionKind, OptionSpec, Parameter, RelationFunction, RowOrder,
};
use crate::spans::Window;
use crate::ticks::time_field;

/// The relation function `timeline`.
#[derive(Debug)]
pub struct Timeline;

static PARAMETERS: [Parameter; 4] = [
    Parameter::Input(InputSpec {
        name: "tasks",
        omitted: Omitted::Table("tasks"),
        columns: &[
            ColumnSpec::needed("start", ColumnKind::Integer),
            ColumnSpec::needed("finish", ColumnKind::Integer),
            ColumnSpec::optional("location", ColumnKind::Text),
        ],
    }),
    Parameter::Option(OptionSpec { name: "bins", kind: OptionKind::Integer, default: Default::Integer(100) }),
    Parameter::Option(OptionSpec { name: "from", kind: OptionKind::Integer, default: Default::Null }),
    Parameter::Option(OptionSpec { name: "to", kind: OptionKind::Integer, default: Default::Null }),
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "How busy each location is in each of a number of equal intervals, the bins. \
         Without a column `location`, all tasks of a run are on one.\n\n\
         Rows: one per location and bin, also where nothing runs. Bin `i` of `n` is [from + floor(i · (to - from) / n), \
         from + floor((i + 1) · (to - from) / n)): bins tile the window exactly, and are empty where it has fewer ticks than \
         bins. `busy` is the time in the bin in which at least one task runs, `occupancy` is busy ÷ length of the bin, \
         `mean_concurrency` the sum of the durations in the bin ÷ its length (nested tasks count each). `starts` and \
         `finishes` are the tasks that do so in the bin; a task finishes in the bin of its last tick. Only locations with tasks \
         are known, those with none in the window among them.\n\n\
         Units: `bin_start`, `bin_finish` and `busy` in ticks; occupancy is a share, mean concurrency a number of tasks.\n\n\
         Nulls: a task without start or finish is left out and counted in a note. Tasks whose location is NULL are those of \
         one location, NULL. A NULL `from` is the first start of the run, a NULL `to` its last finish. In an empty bin the \
         ratios are NULL. A task without length runs at no tick, starts and finishes at its own (in the last bin where that is `to`); one that ends before it \
         starts counts as one.\n\n\
         Ties: none.\n\n\
         Errors: `bins` below 1 or above 16777216, `to` before `from`, a bin beyond BIGINT.\n\n\
         Cost: n log n, linear when tasks are sorted by start, and the rows; 28 bytes a task beside the tasks themselves; beyond half of the \
         memory limit, as much for the tasks of the largest lane.\n\n\
         Source: the utilisation views of trace viewers; counting at the ends of stretches is the difference array.",
        "timeline([tasks], [bins => BIGINT], [from => BIGINT], [to => BIGINT])",
    )
    .with_sql_example(
        "SELECT bin, bin_start, busy, occupancy, starts FROM timeline(\n  \
         (SELECT * FROM (VALUES (1, 10), (5, 7)) AS tasks(start, finish)), bins => 3, from => 0, to => 12)\nORDER BY bin",
    )
    .with_argument("tasks", "Relation: start, finish (BIGINT); optional run, location.")
    .with_argument("bins", "How many bins (BIGINT, default 100).")
    .with_argument("from", "Where the window begins (ticks, default: the first start of the run).")
    .with_argument("to", "Where the window ends (ticks, default: the last finish of the run).")
    .build()
});

impl RelationFunction for Timeline {
    fn name(&self) -> &'static str {
        "timeline"
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
            Field::new("bin", DataType::Int64, false),
            time_field("bin_start", false),
            time_field("bin_finish", false),
            time_field("busy", false),
            Field::new("occupancy", DataType::Float64, true),
            Field::new("mean_concurrency", DataType::Float64, true),
            Field::new("starts", DataType::Int64, false),
            Field::new("finishes", DataType::Int64, false),
        ]
    }

    fn row_order(&self) -> RowOrder {
        RowOrder::Any
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let bins = match call.options.integer("bins")? {
            None => 100,
            Some(bins) if (1..=BINS_MAX).contains(&bins) => bins as usize,
            Some(bins) => return plan_err!("timeline: `bins` is from 1 to {BINS_MAX}, not {bins}"),
        };
        let window = Window::of(call)?;
        let mut runs = Runs::new();
        let share = Share::Lanes("location");
        let plan = InputPlan { input: "tasks", share, row_bytes: BYTES_ON_LANE };
        let mut parts = Parts::read(call, &[plan])?;
        let mut reaches = HashMap::new();
        while let Some([tasks]) = parts.next(call, &mut runs)? {
            extend_reaches(tasks, Nulls::OneLane, &mut reaches)?;
        }
        parts.rewind();
        let mut counts = Counts::default();
        while let Some([tasks]) = parts.next(call, &mut runs)? {
            let (lanes, mut of_lanes) =
                on_lanes(tasks, Some("location"), Nulls::OneLane, Unfinished::LeftOut, &mut call.work)?;
            counts = counts.plus(of_lanes.counts);
            call.work.grow(bins * (size_of::<Bin>() + BIN_ROW_BYTES))?;
            for (lane, spans) in of_lanes.lanes_by_run(&lanes, &runs) {
                call.work.check()?;
                let run = lanes.lane(lane).run;
                let Some((from, to)) = within(window, reaches.get(&run)) else { continue };
                let Some(edges) = Edges::new(from, to, bins) else {
                    return exec_err!("timeline: a bin of the window from {from} to {to} is longer than a BIGINT");
                };
                sort_lane(spans, &Ties::by_row());
                let row = (run, lanes.texts(std::iter::repeat_n(lane, bins))?);
                emit(call, &runs, row, &edges, &fill(&edges, spans))?;
            }
        }
        counts.note(&call.work, Unfinished::LeftOut, "location", LEFT_OUT);
        Ok(())
    }
}

/// Bytes that a bin takes on its way out.
const BIN_ROW_BYTES: usize = 96;

/// What is known of a bin.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Bin {
    busy: i64,
    /// Σ durations in the bin.
    ticks: i128,
    starts: i64,
    finishes: i64,
    /// While it is being filled: how many stretches begin (end) to cover whole bins here.
    covering: i64,
    covering_busy: i64,
}

/// The bins of a sorted lane.
fn fill(edges: &Edges, spans: &[LaneSpan]) -> Vec<Bin> {
    let mut bins = vec![Bin::default(); edges.len()];
    // Sorted by start, so the furthest end seen is all the past that matters.
    let mut covered_until = edges.from();
    for span in spans {
        if span.is_empty() {
            if edges.from() <= span.start && span.start <= edges.to() {
                // What starts and ends where the window does is not lost: it counts in the last bin.
                let bin = &mut bins[edges.bin(span.start.min(edges.to() - 1))];
                (bin.starts, bin.finishes) = (bin.starts + 1, bin.finishes + 1);
            }
            continue;
        }
        let (start, finish) = (span.start.max(edges.from()), span.finish.min(edges.to()));
        if finish <= start {
            continue;
        }
        let first = edges.bin(start);
        let last = if finish <= edges.edges[first + 1] { first } else { edges.bin(finish - 1) };
        bins[first].starts += i64::from(start == span.start);
        bins[last].finishes += i64::from(finish == span.finish);
        if first == last {
            bins[first].ticks += i128::from(finish - start);
        } else {
            bins[first].ticks += i128::from(edges.edges[first + 1] - start);
            bins[last].ticks += i128::from(finish - edges.edges[last]);
            bins[first + 1].covering += 1;
            bins[last].covering -= 1;
        }
        let fresh = start.max(covered_until);
        if fresh < finish {
            covered_until = finish;
            let first = if fresh == start { first } else { edges.bin(fresh) };
            if first == last {
                bins[first].busy += finish - fresh;
            } else {
                bins[first].busy += edges.edges[first + 1] - fresh;
                bins[last].busy += finish - edges.edges[last];
                bins[first + 1].covering_busy += 1;
                bins[last].covering_busy -= 1;
            }
        }
    }
    let (mut covering, mut covering_busy) = (0, 0);
    for (bin, borders) in bins.iter_mut().zip(edges.edges.windows(2)) {
        let length = borders[1] - borders[0];
        covering += std::mem::take(&mut bin.covering);
        covering_busy += std::mem::take(&mut bin.covering_busy);
        bin.ticks += i128::from(covering) * i128::from(length);
        bin.busy += covering_busy * length;
    }
    bins
}

fn emit(call: &mut Call, runs: &Runs, lane: (usize, ArrayRef), edges: &Edges, bins: &[Bin]) -> Result<()> {
    let (run, location) = lane;
    let integers = |value: &dyn Fn(usize) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..bins.len()).map(value)))
    };
    let lengths = edges.edges.windows(2).map(|borders| borders[1] - borders[0]);
    let ratio = |value: &dyn Fn(&Bin) -> f64| -> ArrayRef {
        let ratio = |(bin, length): (&Bin, i64)| (length > 0).then(|| value(bin) / length as f64);
        Arc::new(bins.iter().zip(lengths.clone()).map(ratio).collect::<Float64Array>())
    };
    let columns = vec![
        runs.column(&[(run, bins.len())], call.output().field(0).data_type())?,
        location,
        integers(&|bin| bin as i64),
        integers(&|bin| edges.edges[bin]),
        integers(&|bin| edges.edges[bin + 1]),
        integers(&|bin| bins[bin].busy),
        ratio(&|bin| bin.busy as f64),
        ratio(&|bin| bin.ticks as f64),
        integers(&|bin| bins[bin].starts),
        integers(&|bin| bins[bin].finishes),
    ];
    call.emit(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_a_look_at_every_tick(
            spans in vec((-5..25i64, 0..9i64), 0..9), from in -6..20i64, length in 1..30i64, bins in 1..12usize,
        ) {
            let span = |(row, (start, length)): (u32, &(i64, i64))| LaneSpan::new(*start, start + length, row);
            let mut lane: Vec<LaneSpan> = (0..).zip(&spans).map(span).collect();
            sort_lane(&mut lane, &Ties::by_row());
            let edges = Edges::new(from, from + length, bins).unwrap();
            let found = fill(&edges, &lane);
            prop_assert_eq!(found.len(), bins);
            for (number, bin) in found.iter().enumerate() {
                let edge = |number: usize| from + (number as i64 * length).div_euclid(bins as i64);
                let ticks = edge(number)..edge(number + 1);
                // What starts and ends with the window counts in its last bin.
                let at_the_end = |start: &i64, length: &i64| {
                    number + 1 == bins && *length == 0 && *start == edge(bins)
                };
                let runs = |tick: &i64| spans.iter().filter(|(start, length)| *start <= *tick && *tick < start + length).count();
                let expected = Bin {
                    busy: ticks.clone().filter(|tick| runs(tick) > 0).count() as i64,
                    ticks: ticks.clone().map(|tick| runs(&tick) as i128).sum(),
                    starts: spans.iter().filter(|(start, length)| ticks.contains(start) || at_the_end(start, length)).count() as i64,
                    finishes: spans.iter().filter(|(start, length)| ticks.contains(&(start + (length - 1).max(0))) || at_the_end(start, length)).count() as i64,
                    ..Bin::default()
                };
                prop_assert_eq!(*bin, expected, "bin {}", number);
            }
        }
    }

    #[test]
    fn extremes() {
        assert!(Edges::new(i64::MIN, i64::MAX, 1).is_none());
        let edges = Edges::new(i64::MIN, i64::MAX, 3).unwrap();
        let bins = fill(&edges, &[LaneSpan::new(i64::MIN, i64::MAX, 0), LaneSpan::new(i64::MAX, i64::MAX, 1)]);
        assert_eq!(bins.iter().map(|bin| i128::from(bin.busy)).sum::<i128>(), (1 << 64) - 1);
        assert_eq!(bins.iter().map(|bin| bin.ticks).sum::<i128>(), (1 << 64) - 1);
    }
}
