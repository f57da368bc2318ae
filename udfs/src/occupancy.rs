//! `occupancy(start, finish, lanes [, from, to])`: the share of the lanes' time that spans fill.
//!
//! Life of the data: every span adds its ticks inside of the window to a sum; the earliest start and the latest finish
//! are kept for windows with an open side; the answer is `sum ÷ (lanes × window)`. Nothing is collected, so a group takes
//! a few words of memory, however many spans it has. The number of lanes and the window must be the same in all rows of a
//! *group*: rows that disagree are an error, never a silent choice.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array};
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Float64Type, Int64Type};
use datafusion_common::{Result, exec_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, Signature};
use datafusion_macros::user_doc;

use crate::aggregate::{Distinct, Groups, Mergeable, Moving, One, Retractable, Row, Tally, state_fields, value_at};
use crate::multiset::Multiset;
use crate::spans::{Span, SpanColumns, Window, windowed_signature};

/// `occupancy(start, finish, lanes [, from, to])`, an aggregate. Shape: any number of spans → one `DOUBLE`, 1 = full.
#[user_doc(
    doc_section(label = "Occupancy"),
    description = "Share of the time of some lanes that is filled with spans: \
        Σ durations inside of the window ÷ (lanes × window).\n\n\
        Rows: one per group. Units: a ratio; 1 means that every lane is filled all the time. Nested and overlapping spans \
        count each, so it exceeds 1 where they are not filtered: take `depth = 0`, or `busy` for the union.\n\n\
        The window is `[from, to)`; a side that is left out or NULL is the earliest start or the latest finish of the \
        group's spans. `lanes`, `from` and `to` must be the same in all rows of a group.\n\n\
        NULLs: a span with a NULL start or finish is left out. The answer is NULL when `lanes` is NULL, when the window \
        is empty, and when it is open and there are no spans; with a given window, rows without a span are 0. Without any \
        row, as an empty FILTER leaves it, no window is given: NULL. Empty and reversed spans add 0. Ties and the order of rows do not matter; DISTINCT counts equal rows once.\n\n\
        Errors: `lanes` below 1; a window that ends before it begins; rows of a group that disagree.\n\n\
        Cost: O(1) a span and a few words a group; in a moving window frame O(log n) a span.\n\n\
        Source: the utilisation of a system with several servers in queueing theory; over useful computation on all \
        cores it is the parallel efficiency of the POP methodology.",
    syntax_example = "occupancy(start, finish, lanes, [from, to])",
    sql_example = "SELECT occupancy(start, finish, lanes => 2) AS occupancy\n\
        FROM (VALUES (0, 3), (3, 8), (2, 6)) AS tasks(start, finish)",
    argument(name = "start", description = "First tick of the span (BIGINT)."),
    argument(name = "finish", description = "First tick after the span (BIGINT)."),
    argument(name = "lanes", description = "How many spans can run at a time: workers, cores, streams (BIGINT)."),
    argument(name = "from", description = "First tick of the window (BIGINT); the earliest start when left out."),
    argument(
        name = "to",
        description = "First tick after the window (BIGINT); the latest finish when left out. Needs `from`, which may be NULL."
    )
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Occupancy {
    signature: Signature,
}

impl Occupancy {
    /// The function.
    pub fn new() -> Self {
        Occupancy { signature: windowed_signature(&["start", "finish", "lanes"]) }
    }
}

impl Default for Occupancy {
    fn default() -> Self {
        Self::new()
    }
}

impl AggregateUDFImpl for Occupancy {
    fn name(&self) -> &str {
        "occupancy"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(if args.is_distinct {
            state_fields::<Distinct<OccupancyTally>>(&args)
        } else {
            state_fields::<OccupancyTally>(&args)
        })
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(if args.is_distinct {
            Box::new(One::<Distinct<OccupancyTally>>::default())
        } else {
            Box::new(One::<OccupancyTally>::default())
        })
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(if args.is_distinct {
            Box::new(Groups::<Distinct<OccupancyTally>>::default())
        } else {
            Box::new(Groups::<OccupancyTally>::default())
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(if args.is_distinct {
            Box::new(Moving::<Distinct<OccupancyFrame>>::default())
        } else {
            Box::new(Moving::<OccupancyFrame>::default())
        })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.doc()
    }
}

/// What the answer is relative to. One per group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Frame {
    lanes: Option<i64>,
    window: Window,
}

impl Frame {
    /// The answer, given the ticks in the window and the extent of the spans.
    fn occupancy(self, ticks: i128, first: Option<i64>, last: Option<i64>) -> Option<f64> {
        let from = self.window.from.or(first)?;
        let to = self.window.to.or(last)?;
        let lanes = self.lanes?;
        // The spans may all lie outside of a half-open window: then it has no ticks.
        (from < to).then(|| ticks as f64 / (lanes as f64 * from.abs_diff(to) as f64))
    }

    fn agree(self, other: Frame) -> Result<()> {
        let (what, one, two) = if self.lanes != other.lanes {
            ("lanes", self.lanes, other.lanes)
        } else if self.window.from != other.window.from {
            ("from", self.window.from, other.window.from)
        } else if self.window.to != other.window.to {
            ("to", self.window.to, other.window.to)
        } else {
            return Ok(());
        };
        // The smaller one first: the order of rows must not show.
        let text = |value: Option<i64>| value.map_or("NULL".to_owned(), |value| value.to_string());
        let (one, two) = (text(one.min(two)), text(one.max(two)));
        exec_err!("occupancy: `{what}` must be the same in all rows of a group, found {one} and {two}")
    }
}

/// One row: a span, unless a bound is NULL, and the frame it wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct OccupancyRow {
    span: Option<Span>,
    frame: Frame,
}

impl OccupancyRow {
    fn ticks(self) -> i128 {
        self.span.map_or(0, |span| i128::from(span.clipped(self.frame.window).ticks()))
    }
}

impl Row for OccupancyRow {
    const WORDS: usize = 5;

    fn to_words(self) -> Vec<Option<i64>> {
        let Frame { lanes, window } = self.frame;
        vec![self.span.map(|span| span.start), self.span.map(|span| span.finish), lanes, window.from, window.to]
    }

    fn from_words(words: &[Option<i64>]) -> Self {
        let span = words[0].zip(words[1]).map(|(start, finish)| Span { start, finish });
        OccupancyRow { span, frame: Frame { lanes: words[2], window: Window { from: words[3], to: words[4] } } }
    }
}

/// The argument columns.
#[derive(Debug, Clone, Copy)]
struct OccupancyColumns<'a> {
    spans: SpanColumns<'a>,
    lanes: &'a Int64Array,
}

impl<'a> OccupancyColumns<'a> {
    fn new(values: &'a [ArrayRef]) -> Self {
        OccupancyColumns { spans: SpanColumns::new(values, 3), lanes: values[2].as_primitive::<Int64Type>() }
    }

    fn row(self, index: usize) -> Result<OccupancyRow> {
        let lanes = value_at(self.lanes, index);
        if let Some(lanes) = lanes
            && lanes < 1
        {
            return exec_err!("occupancy: `lanes` must be at least 1, found {lanes}");
        }
        let window = self.spans.window(index, "occupancy")?;
        Ok(OccupancyRow { span: self.spans.span(index), frame: Frame { lanes, window } })
    }
}

/// A group: the ticks in the window, the extent of the spans, and the frame once a row told it.
#[derive(Debug, Default)]
struct OccupancyTally {
    /// Cannot overflow: 2⁶³ rows of 2⁶⁴ ticks fit.
    ticks: i128,
    first: Option<i64>,
    last: Option<i64>,
    frame: Option<Frame>,
}

impl OccupancyTally {
    fn agree_on(&mut self, frame: Frame) -> Result<()> {
        match self.frame {
            Some(agreed) => agreed.agree(frame),
            None => {
                self.frame = Some(frame);
                Ok(())
            }
        }
    }
}

impl Tally for OccupancyTally {
    type Columns<'a> = OccupancyColumns<'a>;
    type Row = OccupancyRow;
    type Answer = Float64Type;

    fn columns(values: &[ArrayRef]) -> Result<OccupancyColumns<'_>> {
        Ok(OccupancyColumns::new(values))
    }

    fn row(columns: OccupancyColumns<'_>, index: usize) -> Result<Option<OccupancyRow>> {
        columns.row(index).map(Some)
    }

    fn add(&mut self, row: OccupancyRow) -> Result<()> {
        self.agree_on(row.frame)?;
        if let Some(span) = row.span {
            self.ticks += row.ticks();
            self.first = Some(self.first.map_or(span.start, |first| first.min(span.start)));
            self.last = Some(self.last.map_or(span.finish, |last| last.max(span.finish)));
        }
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<f64>> {
        Ok(self.frame.and_then(|frame| frame.occupancy(self.ticks, self.first, self.last)))
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

impl Mergeable for OccupancyTally {
    fn state_columns() -> Vec<(&'static str, DataType)> {
        vec![
            ("ticks", DataType::Decimal128(38, 0)),
            ("first", DataType::Int64),
            ("last", DataType::Int64),
            ("rows", DataType::Boolean),
            ("lanes", DataType::Int64),
            ("from", DataType::Int64),
            ("to", DataType::Int64),
        ]
    }

    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
        let numbers = |of: fn(&OccupancyTally) -> Option<i64>| -> ArrayRef {
            Arc::new(tallies.iter().map(of).collect::<Int64Array>())
        };
        let ticks = tallies.iter().map(|tally| tally.ticks);
        Ok(vec![
            Arc::new(Decimal128Array::from_iter_values(ticks).with_precision_and_scale(38, 0)?),
            numbers(|tally| tally.first),
            numbers(|tally| tally.last),
            Arc::new(tallies.iter().map(|tally| Some(tally.frame.is_some())).collect::<BooleanArray>()),
            numbers(|tally| tally.frame?.lanes),
            numbers(|tally| tally.frame?.window.from),
            numbers(|tally| tally.frame?.window.to),
        ])
    }

    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
        if !states[3].as_boolean().value(index) {
            return Ok(());
        }
        let number = |column: usize| value_at(states[column].as_primitive::<Int64Type>(), index);
        self.agree_on(Frame { lanes: number(4), window: Window { from: number(5), to: number(6) } })?;
        self.ticks += states[0].as_primitive::<Decimal128Type>().value(index);
        self.first = [self.first, number(1)].into_iter().flatten().min();
        self.last = [self.last, number(2)].into_iter().flatten().max();
        Ok(())
    }
}

/// A moving window frame: values are counted and not only compared, so that they can be removed.
#[derive(Debug, Default)]
struct OccupancyFrame {
    ticks: i128,
    starts: Multiset<i64>,
    finishes: Multiset<i64>,
    frames: BTreeMap<Frame, u64>,
}

impl Tally for OccupancyFrame {
    type Columns<'a> = OccupancyColumns<'a>;
    type Row = OccupancyRow;
    type Answer = Float64Type;

    fn columns(values: &[ArrayRef]) -> Result<OccupancyColumns<'_>> {
        Ok(OccupancyColumns::new(values))
    }

    fn row(columns: OccupancyColumns<'_>, index: usize) -> Result<Option<OccupancyRow>> {
        columns.row(index).map(Some)
    }

    fn add(&mut self, row: OccupancyRow) -> Result<()> {
        *self.frames.entry(row.frame).or_insert(0) += 1;
        self.ticks += row.ticks();
        if let Some(span) = row.span {
            self.starts.add(span.start);
            self.finishes.add(span.finish);
        }
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<f64>> {
        let mut frames = self.frames.keys();
        let Some(frame) = frames.next() else { return Ok(None) };
        frames.try_for_each(|other| frame.agree(*other))?;
        Ok(frame.occupancy(self.ticks, self.starts.first(), self.finishes.last()))
    }

    fn heap_bytes(&self) -> usize {
        self.starts.heap_bytes() + self.finishes.heap_bytes() + self.frames.len() * size_of::<(Frame, u64)>()
    }
}

impl Retractable for OccupancyFrame {
    fn remove(&mut self, row: OccupancyRow) -> Result<()> {
        if let Some(copies) = self.frames.get_mut(&row.frame) {
            *copies -= 1;
            if *copies == 0 {
                self.frames.remove(&row.frame);
            }
        }
        self.ticks -= row.ticks();
        if let Some(span) = row.span {
            self.starts.remove(span.start);
            self.finishes.remove(span.finish);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::testing;
    use datafusion_common::ScalarValue;
    use proptest::collection::vec;
    use proptest::prelude::*;

    type Bounds = (Option<i64>, Option<i64>);

    fn columns(rows: &[Bounds], lanes: i64, window: Option<Bounds>) -> Vec<ArrayRef> {
        let constant = |value: Option<i64>| Arc::new(Int64Array::from(vec![value; rows.len()])) as ArrayRef;
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
            Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>()),
            constant(Some(lanes)),
        ];
        if let Some((from, to)) = window {
            columns.extend([constant(from), constant(to)]);
        }
        columns
    }

    /// Counts, tick by tick, the spans that run.
    fn naive(rows: &[Bounds], lanes: i64, window: Option<Bounds>) -> Option<f64> {
        let spans = rows.iter().filter_map(|row| row.0.zip(row.1)).collect::<Vec<_>>();
        let (from, to) = window.unwrap_or_default();
        if rows.is_empty() {
            return None;
        }
        let from = from.or(spans.iter().map(|span| span.0).min())?;
        let to = to.or(spans.iter().map(|span| span.1).max())?;
        let running = |tick: i64| spans.iter().filter(|span| span.0 <= tick && tick < span.1).count() as i64;
        (from < to).then(|| (from..to).map(running).sum::<i64>() as f64 / (lanes * (to - from)) as f64)
    }

    fn rows() -> impl Strategy<Value = Vec<Bounds>> {
        let bound = || prop::option::weighted(0.9, -9..40i64);
        vec((bound(), bound()), 0..20)
    }

    fn window() -> impl Strategy<Value = Option<Bounds>> {
        prop::option::of((prop::option::of(-9..20i64), prop::option::of(20..40i64)))
    }

    proptest! {
        #[test]
        fn is_the_mean_of_running_spans_per_lane(
            rows in rows(), lanes in 1..4i64, window in window(), cuts in vec(0..21usize, 0..4),
        ) {
            let values = columns(&rows, lanes, window);
            let expected = ScalarValue::Float64(naive(&rows, lanes, window));
            prop_assert_eq!(&testing::whole::<OccupancyTally>(&values).unwrap(), &expected);
            prop_assert_eq!(testing::cut::<OccupancyTally>(&values, &cuts).unwrap(), expected);
            let groups = (0..rows.len()).map(|row| row % 3).collect::<Vec<_>>();
            let of_group = |group: usize| {
                let mine = rows.iter().skip(group).step_by(3).copied().collect::<Vec<_>>();
                ScalarValue::Float64(naive(&mine, lanes, window))
            };
            let answers = testing::grouped::<OccupancyTally>(&values, &groups, 3, &cuts).unwrap();
            prop_assert_eq!(answers, (0..3).map(of_group).collect::<Vec<_>>());
        }

        #[test]
        fn frames_forget_what_left(rows in rows(), window in window(), width in 1..6usize) {
            let frame = |row: usize| {
                ScalarValue::Float64(naive(&rows[(row + 1).saturating_sub(width)..=row], 2, window))
            };
            let expected = (0..rows.len()).map(frame).collect::<Vec<_>>();
            prop_assert_eq!(testing::moving::<OccupancyFrame>(&columns(&rows, 2, window), width).unwrap(), expected);
        }

        #[test]
        fn distinct_rows_count_once(rows in vec((0..4i64, 0..4i64), 0..20), cuts in vec(0..21usize, 0..4), width in 1..6usize) {
            let rows = rows.into_iter().map(|row| (Some(row.0), Some(row.1))).collect::<Vec<Bounds>>();
            let once = |rows: &[Bounds]| {
                let mut rows = rows.to_vec();
                rows.sort_unstable();
                rows.dedup();
                ScalarValue::Float64(naive(&rows, 2, None))
            };
            let values = columns(&rows, 2, None);
            prop_assert_eq!(testing::cut::<Distinct<OccupancyTally>>(&values, &cuts).unwrap(), once(&rows));
            let frame = |row: usize| once(&rows[(row + 1).saturating_sub(width)..=row]);
            let moving = testing::moving::<Distinct<OccupancyFrame>>(&values, width).unwrap();
            prop_assert_eq!(moving, (0..rows.len()).map(frame).collect::<Vec<_>>());
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let all = (Some(i64::MIN), Some(i64::MAX));
        let values = columns(&[all; 5], 5, None);
        assert_eq!(testing::cut::<OccupancyTally>(&values, &[2]).unwrap(), ScalarValue::Float64(Some(1.0)));
    }

    #[test]
    fn rows_that_disagree_are_an_error_in_any_order() {
        let mut values = columns(&[(Some(0), Some(1)); 2], 1, None);
        for lanes in [[4, 8], [8, 4]] {
            values[2] = Arc::new(Int64Array::from(lanes.to_vec()));
            let error = testing::whole::<OccupancyTally>(&values).unwrap_err().to_string();
            assert!(error.contains("`lanes` must be the same in all rows of a group, found 4 and 8"), "{error}");
            assert!(testing::cut::<OccupancyTally>(&values, &[1]).is_err());
            assert!(testing::moving::<OccupancyFrame>(&values, 2).is_err());
            assert!(testing::moving::<OccupancyFrame>(&values, 1).is_ok(), "each row is alone in its frame");
        }
    }
}
