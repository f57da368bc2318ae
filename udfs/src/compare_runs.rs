//! `compare_runs(tasks, base, new, by)`: how each kind of work changed between two sets of runs.
//!
//! Life of the data: rows are grouped by run and by the text of the column `by` ([`crate::lanes`]); each group is reduced to
//! four figures; for each side, base and new, the answer has the medians of these figures over its runs.
//!
//! ```text
//! base/1  solve 10 11    base/2  solve 12 12    base/3  solve 10 10       totals 21 24 20, median 21
//! new/1   solve 15 15    new/2   solve 16 17    new/3   solve 15 14       totals 30 33 29, median 30
//! ```

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StringViewArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_doc::{DocSection, Documentation};

use crate::explain_change::{BASE, NEW};
use crate::graph::NONE;
use crate::lanes::{Counts, LEFT_OUT, LaneSpan, Lanes, Nulls, Unfinished, by_lane};
use crate::permutation::{Tail, p_value};
use crate::relation::call::Call;
use crate::relation::rows::{Role, Rows};
use crate::relation::runs::Runs;
use crate::relation::{
    ColumnKind, ColumnSpec, Default, InputSpec, Omitted, OptionKind, OptionSpec, Parameter, RelationFunction,
};
use crate::ticks::time_field;

/// The relation function `compare_runs`.
#[derive(Debug)]
pub struct CompareRuns;

/// The columns that `by` may name.
const KEYS: [&str; 6] = ["name", "kind", "role", "location", "process", "id"];

static PARAMETERS: [Parameter; 4] = [
    Parameter::Input(InputSpec {
        name: "tasks",
        omitted: Omitted::Table("tasks"),
        columns: &[
            ColumnSpec::needed("start", ColumnKind::Integer),
            ColumnSpec::needed("finish", ColumnKind::Integer),
            ColumnSpec::optional("task", ColumnKind::Integer),
            ColumnSpec::optional("name", ColumnKind::Text),
            ColumnSpec::optional("kind", ColumnKind::Text),
            ColumnSpec::optional("role", ColumnKind::Text),
            ColumnSpec::optional("location", ColumnKind::Text),
            ColumnSpec::optional("process", ColumnKind::Text),
            ColumnSpec::optional("id", ColumnKind::Text),
        ],
    }),
    BASE,
    NEW,
    Parameter::Option(OptionSpec { name: "by", kind: OptionKind::Text, default: Default::Text("name") }),
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "How each kind of work changed between runs: counts, total, median and busy times of two sides, and the change.\n\n\
         Rows: one per text in the column `by`, without `run`. `key` is the text; `matched` says where it is: `both`, `base` or \
         `new`. Per side: `count` tasks, `total` of their durations, `median` duration, `busy` time in which at least one of them \
         ran. `change` is new_total - base_total, `change_percent` that as a share of base_total. A side may be several runs, \
         repetitions of one measurement: its figures are then the medians over the runs, a run without such tasks counts as 0 \
         (but in `median`). `p_value` is that of an exact two-sided permutation test on the medians of the totals, with at least \
         three runs a side; three a side cannot fall below 0.2, five can fall to 0.048. Largest changes come first.\n\n\
         Units: ticks; counts are numbers, change_percent is in percent. Medians between two ticks are rounded half to even, \
         those of each run and then those over the runs.\n\n\
         Nulls: tasks whose text is NULL are one group, NULL. Tasks without start or finish are left out and counted in a note. \
         The figures of a side that has no such task are 0, its `median` NULL. change_percent is NULL when base_total is 0, \
         p_value with fewer than three runs a side.\n\n\
         Ties: changes of equal size by key.\n\n\
         Errors: `base` or `new` names no run (`name` also names `name/1`, `*` stands for any text), a run is on both sides, `by` \
         is no column of text, a total beyond BIGINT.\n\n\
         Cost: n log n in a group whose tasks are not sorted; 28 bytes a task beside the tasks themselves.\n\n\
         Source: Fisher's permutation test, 1935.",
        "compare_runs([tasks], [base => VARCHAR], [new => VARCHAR], [by => VARCHAR])",
    )
    .with_sql_example(
        "SELECT key, base_count, new_count, base_total, new_total, change, matched FROM compare_runs(\n  \
         (SELECT * FROM (VALUES ('old', 'load', 0, 3), ('old', 'solve', 4, 9), ('now', 'load', 0, 3), ('now', 'solve', 3, 5), \
         ('now', 'check', 5, 6))\n   AS tasks(run, name, start, finish)), base => 'old', new => 'now')",
    )
    .with_argument("tasks", "Relation: start, finish (BIGINT), run; optional name, kind, role, location, process, id.")
    .with_argument("base", "The run or runs to compare with (VARCHAR, default 'base').")
    .with_argument("new", "The run or runs that are compared (VARCHAR, default 'new').")
    .with_argument("by", "The column that says what is compared: name, kind, role, location, process, id (default name).")
    .build()
});

impl RelationFunction for CompareRuns {
    fn name(&self) -> &'static str {
        "compare_runs"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            Field::new("key", DataType::Utf8View, true),
            Field::new("base_count", DataType::Int64, false),
            Field::new("new_count", DataType::Int64, false),
            time_field("base_total", false),
            time_field("new_total", false),
            time_field("change", false),
            Field::new("change_percent", DataType::Float64, true),
            time_field("base_median", true),
            time_field("new_median", true),
            time_field("base_busy", false),
            time_field("new_busy", false),
            Field::new("p_value", DataType::Float64, true),
            Field::new("matched", DataType::Utf8View, false),
        ]
    }

    fn across_runs(&self) -> bool {
        true
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let by = call.options.text("by")?.unwrap_or("name").to_owned();
        if !KEYS.contains(&by.as_str()) {
            return plan_err!("compare_runs: `by` is one of {}, not '{by}'", KEYS.join(", "));
        }
        if call.input("tasks")?.0.schema().column_with_name(&by).is_none() {
            return plan_err!("compare_runs: input `tasks` has no column `{by}`");
        }
        let mut runs = Runs::new();
        let rows = Rows::read(call, "tasks", Role::First, &[], &mut runs)?;
        if rows.is_empty() {
            return Ok(());
        }
        let sides = sides(call, &runs)?;
        let mut lanes = Lanes::new();
        let mut lane_of = lanes.number(&rows, Some(&by), Nulls::OneLane, &mut call.work)?;
        let mut groups = by_lane(&rows, &mut lane_of, lanes.len(), Unfinished::LeftOut, &mut call.work)?;
        note(groups.counts, call);
        let mut keys = Keys::new(&lanes, &sides);
        for (lane, spans) in groups.lanes() {
            call.work.check()?;
            let of = lanes.lane(lane);
            let Some(figures) = Figures::of(spans) else {
                return exec_err!(
                    "compare_runs: the total of a group of {} does not fit a BIGINT",
                    runs.describe(of.run)
                );
            };
            keys.add(of.run, of.word, lane, figures);
        }
        let Some(rows) = keys.rows() else {
            return exec_err!("compare_runs: a change does not fit a BIGINT");
        };
        emit(call, &lanes, &rows)
    }
}

/// The runs of `base` and of `new`.
fn sides(call: &Call, runs: &Runs) -> Result<[Vec<usize>; 2]> {
    let mut sides = [vec![], vec![]];
    for (side, option) in sides.iter_mut().zip(["base", "new"]) {
        let pattern = call.options.text(option)?.unwrap_or("");
        *side = runs.matching(pattern);
        if side.is_empty() {
            let all: Vec<String> = runs.in_order().into_iter().map(|run| runs.name(run)).collect();
            return exec_err!(
                "compare_runs: no run is named '{pattern}', which option `{option}` asks for; there are: {}",
                all.join(", ")
            );
        }
    }
    match sides[0].iter().find(|run| sides[1].contains(run)) {
        Some(both) => exec_err!("compare_runs: {} is both `base` and `new`", runs.describe(*both)),
        None => Ok(sides),
    }
}

fn note(counts: Counts, call: &Call) {
    counts.note(&call.work, Unfinished::LeftOut, "text", LEFT_OUT);
}

/// What the tasks of a group in one run come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Figures {
    count: i64,
    total: i64,
    median: i64,
    busy: i64,
}

impl Figures {
    /// Sorts the spans; `None` when the total does not fit.
    fn of(spans: &mut [LaneSpan]) -> Option<Figures> {
        let total: u128 = spans.iter().map(|span| u128::from(span.ticks())).sum();
        let mut durations: Vec<i64> =
            spans.iter().map(|span| i64::try_from(span.ticks())).collect::<Result<_, _>>().ok()?;
        if !spans.is_sorted_by_key(|span| span.start) {
            spans.sort_unstable_by_key(|span| span.start);
        }
        let (mut busy, mut until) = (0u64, i64::MIN);
        for span in &*spans {
            let from = span.start.max(until);
            if span.finish > from {
                busy += span.finish.abs_diff(from);
                until = span.finish;
            }
        }
        let median = median(&mut durations).unwrap_or(0);
        Some(Figures {
            count: spans.len() as i64,
            total: i64::try_from(total).ok()?,
            median,
            busy: i64::try_from(busy).ok()?,
        })
    }
}

/// The median, between two ticks rounded half to even; `None` of none.
fn median(values: &mut [i64]) -> Option<i64> {
    let half = values.len() / 2;
    let even = values.len().is_multiple_of(2);
    let (below, &mut upper, _) = values.get(half).is_some().then(|| values.select_nth_unstable(half))?;
    if !even {
        return Some(upper);
    }
    let sum = i128::from(below.iter().copied().max()?) + i128::from(upper);
    let down = sum.div_euclid(2);
    // Between two medians, so it fits.
    Some((down + i128::from(sum.rem_euclid(2) == 1 && down.rem_euclid(2) == 1)) as i64)
}

/// Figures by key, each with the figures of the runs of both sides.
struct Keys {
    /// Per run: its side and its place there.
    place: Vec<Option<(usize, usize)>>,
    repetitions: [usize; 2],
    /// Per word, and last for NULL: its lane in some run, and the figures by side and repetition.
    keys: Vec<Option<Key>>,
}

struct Key {
    lane: usize,
    sides: [Vec<Option<Figures>>; 2],
}

/// A row of the answer.
struct Row {
    lane: usize,
    counts: [i64; 2],
    totals: [i64; 2],
    medians: [Option<i64>; 2],
    busy: [i64; 2],
    change: i64,
    p_value: Option<f64>,
    there: [bool; 2],
}

impl Keys {
    fn new(lanes: &Lanes, sides: &[Vec<usize>; 2]) -> Keys {
        let of_lanes = |of: &dyn Fn(usize) -> usize| (0..lanes.len()).map(of).max().map_or(0, |largest| largest + 1);
        let words = of_lanes(&|lane| match lanes.lane(lane).word {
            NONE => 0,
            word => word as usize + 1,
        });
        let all_runs = of_lanes(&|lane| lanes.lane(lane).run);
        let mut place = vec![None; all_runs.max(sides.iter().flatten().max().map_or(0, |run| run + 1))];
        for (side, runs) in sides.iter().enumerate() {
            runs.iter().enumerate().for_each(|(repetition, run)| place[*run] = Some((side, repetition)));
        }
        let repetitions = [sides[0].len(), sides[1].len()];
        Keys { place, repetitions, keys: (0..words.max(1)).map(|_| None).collect() }
    }

    fn add(&mut self, run: usize, word: u32, lane: usize, figures: Figures) {
        let Some((side, repetition)) = self.place[run] else { return };
        if figures.count == 0 {
            return;
        }
        let key = if word == NONE { 0 } else { word as usize + 1 };
        let repetitions = self.repetitions;
        let key = self.keys[key].get_or_insert_with(|| Key { lane, sides: repetitions.map(|count| vec![None; count]) });
        key.sides[side][repetition] = Some(figures);
    }

    /// The rows; `None` when a change does not fit.
    fn rows(self) -> Option<Vec<Row>> {
        let mut rows = vec![];
        for key in self.keys.into_iter().flatten() {
            let over_runs = |side: usize, of: &dyn Fn(&Figures) -> i64| {
                let mut values: Vec<i64> = key.sides[side].iter().map(|run| run.as_ref().map_or(0, of)).collect();
                median(&mut values).unwrap_or(0)
            };
            let both = |of: &dyn Fn(&Figures) -> i64| [over_runs(0, of), over_runs(1, of)];
            let totals = both(&|figures| figures.total);
            let as_numbers = |side: usize| -> Vec<f64> {
                key.sides[side].iter().map(|run| run.map_or(0.0, |figures| figures.total as f64)).collect()
            };
            let medians = [0, 1].map(|side| {
                let mut values: Vec<i64> = key.sides[side].iter().flatten().map(|figures| figures.median).collect();
                median(&mut values)
            });
            rows.push(Row {
                lane: key.lane,
                counts: both(&|figures| figures.count),
                totals,
                medians,
                busy: both(&|figures| figures.busy),
                change: totals[1].checked_sub(totals[0])?,
                p_value: p_value(&as_numbers(0), &as_numbers(1), Tail::Both),
                there: medians.map(|median| median.is_some()),
            });
        }
        Some(rows)
    }
}

fn emit(call: &mut Call, lanes: &Lanes, rows: &[Row]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    // Largest changes first, those of equal size in the order of their keys.
    let texts = lanes.texts(rows.iter().map(|row| row.lane))?;
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    let views = texts.as_string_view();
    let text = |row: u32| views.is_valid(row as usize).then(|| views.value(row as usize));
    order.sort_by_key(|row| (std::cmp::Reverse(rows[*row as usize].change.unsigned_abs()), text(*row)));
    let ordered = || order.iter().map(|row| &rows[*row as usize]);
    let integers =
        |value: &dyn Fn(&Row) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(ordered().map(value))) };
    let maybe =
        |value: &dyn Fn(&Row) -> Option<i64>| -> ArrayRef { Arc::new(ordered().map(value).collect::<Int64Array>()) };
    let doubles =
        |value: &dyn Fn(&Row) -> Option<f64>| -> ArrayRef { Arc::new(ordered().map(value).collect::<Float64Array>()) };
    let percent = |row: &Row| (row.totals[0] != 0).then(|| 100.0 * row.change as f64 / row.totals[0] as f64);
    let matched = |row: &Row| match row.there {
        [true, false] => "base",
        [false, true] => "new",
        _ => "both",
    };
    call.emit(vec![
        take(&texts, &UInt32Array::from(order.clone()), None)?,
        integers(&|row| row.counts[0]),
        integers(&|row| row.counts[1]),
        integers(&|row| row.totals[0]),
        integers(&|row| row.totals[1]),
        integers(&|row| row.change),
        doubles(&percent),
        maybe(&|row| row.medians[0]),
        maybe(&|row| row.medians[1]),
        integers(&|row| row.busy[0]),
        integers(&|row| row.busy[1]),
        doubles(&|row| row.p_value),
        Arc::new(StringViewArray::from_iter_values(ordered().map(matched))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn medians_between_two_ticks_are_rounded_half_to_even() {
        for (values, expected) in [
            (&[][..], None),
            (&[7], Some(7)),
            (&[3, 1, 2], Some(2)),
            (&[1, 2], Some(2)),
            (&[2, 3], Some(2)),
            (&[-1, -2], Some(-2)),
            (&[i64::MAX, i64::MAX], Some(i64::MAX)),
            (&[i64::MIN, i64::MAX], Some(0)),
        ] {
            assert_eq!(median(&mut values.to_vec()), expected, "{values:?}");
        }
    }

    proptest! {
        #[test]
        fn figures_equal_a_look_at_each_tick(spans in vec((0..12i64, 0..6i64), 1..9)) {
            let mut group: Vec<LaneSpan> =
                (0u32..).zip(&spans).map(|(row, (start, length))| LaneSpan::new(*start, start + length, row)).collect();
            let figures = Figures::of(&mut group).unwrap();
            let busy = (0..20).filter(|tick| spans.iter().any(|(start, length)| start <= tick && *tick < start + length));
            prop_assert_eq!(figures.busy, busy.count() as i64);
            prop_assert_eq!(figures.total, spans.iter().map(|span| span.1).sum::<i64>());
            let mut lengths: Vec<i64> = spans.iter().map(|span| span.1).collect();
            lengths.sort_unstable();
            let (low, high) = (lengths[(lengths.len() - 1) / 2], lengths[lengths.len() / 2]);
            prop_assert!((2 * figures.median - low - high).abs() <= 1 && low <= figures.median && figures.median <= high);
        }
    }
}
