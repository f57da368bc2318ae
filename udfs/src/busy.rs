//! `busy(start, finish [, from, to])`: how long a group of spans keeps its lane busy.
//!
//! Life of the data: spans arrive in any order and in any number of batches and are collected in a `Union`; each
//! partition sorts and merges its own spans and sends the resulting pieces; the final aggregation merges the pieces and
//! adds up their ticks. A moving window frame keeps a `Coverage` instead, from which spans can be removed. DISTINCT
//! changes nothing: a repeated span covers nothing new.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion_common::{Result, ScalarValue, exec_datafusion_err, internal_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{Accumulator, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, Signature};
use datafusion_macros::user_doc;

use crate::aggregate::{
    Groups, Mergeable, Moving, One, Retractable, Tally, list_at, list_column, list_type, state_fields,
};
use crate::spans::coverage::Coverage;
use crate::spans::union::Union;
use crate::spans::{Span, SpanColumns, windowed_signature};
use crate::ticks::time_field;

/// `busy(start, finish [, from, to])`, an aggregate. Shape: any number of spans → one `BIGINT` time, never NULL.
#[user_doc(
    doc_section(label = "Occupancy"),
    description = "Time during which at least one span of the group runs: the length of the union of the spans.\n\n\
        Rows: one per group; 0 where the group has no spans. Units: ticks in, ticks out; spans are half-open.\n\n\
        NULLs: a span with a NULL start or finish is left out; a NULL `from` or `to` leaves that side open. \
        Empty and reversed spans add 0. With a window each span counts with its part in `[from, to)` of its own row. \
        Ties and the order of rows do not matter; DISTINCT changes nothing.\n\n\
        Errors: a window that ends before it begins; an answer beyond BIGINT.\n\n\
        Cost: at most 16 bytes a span, less where spans overlap; O(n log n), O(n) for spans in the order of time. \
        In a moving window frame about 200 bytes and O(log n) a span.\n\n\
        Source: the union of intervals, \"busy time\" of queueing theory; what trace viewers call utilisation is \
        busy ÷ window.",
    syntax_example = "busy(start, finish, [from, to])",
    sql_example = "SELECT location, busy(start, finish) AS busy\n\
        FROM (VALUES ('w0', 0, 3), ('w0', 2, 5), ('w0', 8, 9), ('w1', 4, 6)) AS tasks(location, start, finish)\n\
        GROUP BY location ORDER BY location",
    argument(name = "start", description = "First tick of the span (BIGINT)."),
    argument(name = "finish", description = "First tick after the span (BIGINT)."),
    argument(name = "from", description = "First tick of the window (BIGINT); open when left out or NULL."),
    argument(
        name = "to",
        description = "First tick after the window (BIGINT); open when left out or NULL. Needs `from`, which may be NULL."
    )
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Busy {
    signature: Signature,
}

impl Busy {
    /// The function.
    pub fn new() -> Self {
        Busy { signature: windowed_signature(&["start", "finish"]) }
    }
}

impl Default for Busy {
    fn default() -> Self {
        Self::new()
    }
}

impl AggregateUDFImpl for Busy {
    fn name(&self) -> &str {
        "busy"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn return_field(&self, _arg_fields: &[FieldRef]) -> Result<FieldRef> {
        Ok(Arc::new(time_field(self.name(), self.is_nullable())))
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn default_value(&self, _data_type: &DataType) -> Result<ScalarValue> {
        Ok(ScalarValue::Int64(Some(0)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(state_fields::<BusyTally>(&args))
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(One::<BusyTally>::default()))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups::<BusyTally>::default()))
    }

    fn create_sliding_accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Moving::<BusyFrame>::default()))
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

/// The length of the union of `spans`, in ticks. It fits: no union is longer than the whole range of `BIGINT`.
pub fn busy(spans: impl IntoIterator<Item = Span>) -> u64 {
    let mut union = Union::default();
    spans.into_iter().for_each(|span| union.add(span));
    union.ticks()
}

/// The spans of a group.
///
/// A running window asks after every row: from the second time on a [`Coverage`] follows, which answers at once.
#[derive(Debug, Default)]
struct BusyTally {
    union: Union,
    answered: bool,
    follows: Option<Box<Coverage>>,
}

impl Tally for BusyTally {
    type Columns<'a> = SpanColumns<'a>;
    type Row = Span;
    type Answer = Int64Type;

    fn columns(values: &[ArrayRef]) -> Result<SpanColumns<'_>> {
        Ok(SpanColumns::new(values, 2))
    }

    fn row(columns: SpanColumns<'_>, index: usize) -> Result<Option<Span>> {
        let window = columns.window(index, "busy")?;
        Ok(columns.span(index).map(|span| span.clipped(window)))
    }

    fn add(&mut self, span: Span) -> Result<()> {
        if !self.answered {
            self.union.add(span);
            return Ok(());
        }
        let BusyTally { union, follows, .. } = self;
        let coverage = follows.get_or_insert_with(|| {
            let mut coverage = Box::<Coverage>::default();
            union.pieces().for_each(|piece| coverage.add(piece));
            *union = Union::default();
            coverage
        });
        coverage.add(span);
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<i64>> {
        self.answered = true;
        let ticks = match &self.follows {
            Some(coverage) => coverage.ticks(),
            None => self.union.ticks(),
        };
        fitting(ticks).map(Some)
    }

    fn heap_bytes(&self) -> usize {
        let follows = self.follows.as_ref().map_or(0, |coverage| size_of::<Coverage>() + coverage.heap_bytes());
        self.union.heap_bytes() + follows
    }
}

impl Mergeable for BusyTally {
    fn state_columns() -> Vec<(&'static str, DataType)> {
        vec![("starts", list_type()), ("finishes", list_type())]
    }

    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
        let pieces_max = tallies.iter().map(|tally| tally.union.pieces_max()).sum();
        let mut starts = Vec::with_capacity(pieces_max);
        let mut finishes = Vec::with_capacity(pieces_max);
        let mut lengths = Vec::with_capacity(tallies.len());
        for tally in tallies {
            if tally.follows.is_some() {
                return internal_err!("busy: a running window has no partial state");
            }
            let before = starts.len();
            for piece in tally.union.pieces() {
                starts.push(piece.start);
                finishes.push(piece.finish);
            }
            lengths.push(starts.len() - before);
            // What was sent need not be held while the rest is written.
            tally.union = Union::default();
        }
        let offsets = OffsetBuffer::from_lengths(lengths);
        Ok(vec![
            list_column(offsets.clone(), Int64Array::from(starts)),
            list_column(offsets, Int64Array::from(finishes)),
        ])
    }

    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
        let starts = list_at(&states[0], index);
        let finishes = list_at(&states[1], index);
        self.union.add_run(starts.values(), finishes.values());
        Ok(())
    }
}

/// The spans of a moving window frame.
#[derive(Debug, Default)]
struct BusyFrame(Coverage);

impl Tally for BusyFrame {
    type Columns<'a> = SpanColumns<'a>;
    type Row = Span;
    type Answer = Int64Type;

    fn columns(values: &[ArrayRef]) -> Result<SpanColumns<'_>> {
        BusyTally::columns(values)
    }

    fn row(columns: SpanColumns<'_>, index: usize) -> Result<Option<Span>> {
        BusyTally::row(columns, index)
    }

    fn add(&mut self, span: Span) -> Result<()> {
        self.0.add(span);
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<i64>> {
        fitting(self.0.ticks()).map(Some)
    }

    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

impl Retractable for BusyFrame {
    fn remove(&mut self, span: Span) -> Result<()> {
        self.0.remove(span);
        Ok(())
    }
}

fn fitting(ticks: u64) -> Result<i64> {
    i64::try_from(ticks).map_err(|_| exec_datafusion_err!("busy: {ticks} ticks do not fit BIGINT"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::testing;
    use proptest::collection::vec;
    use proptest::prelude::*;

    type Rows = Vec<(Option<i64>, Option<i64>)>;

    fn columns(rows: &[(Option<i64>, Option<i64>)]) -> Vec<ArrayRef> {
        let starts = rows.iter().map(|row| row.0).collect::<Int64Array>();
        let finishes = rows.iter().map(|row| row.1).collect::<Int64Array>();
        vec![Arc::new(starts), Arc::new(finishes)]
    }

    /// Busy is the count of covered ticks.
    fn naive(rows: &[(Option<i64>, Option<i64>)], from: i64, to: i64) -> ScalarValue {
        let covers =
            |row: &(Option<i64>, Option<i64>), tick| matches!(*row, (Some(s), Some(f)) if s <= tick && tick < f);
        let count = (from..to).filter(|&tick| rows.iter().any(|row| covers(row, tick))).count();
        ScalarValue::Int64(Some(count as i64))
    }

    fn rows() -> impl Strategy<Value = Rows> {
        let bound = || prop::option::weighted(0.9, -9..40i64);
        vec((bound(), bound()), 0..30)
    }

    proptest! {
        #[test]
        fn is_the_count_of_covered_ticks(rows in rows(), cuts in vec(0..31usize, 0..5)) {
            let expected = naive(&rows, -9, 40);
            prop_assert_eq!(&testing::whole::<BusyTally>(&columns(&rows)).unwrap(), &expected);
            prop_assert_eq!(testing::cut::<BusyTally>(&columns(&rows), &cuts).unwrap(), expected);
        }

        #[test]
        fn groups_do_not_mix(rows in rows(), cuts in vec(0..31usize, 0..5)) {
            let groups = rows.iter().map(|row| row.0.unwrap_or(0).rem_euclid(3) as usize).collect::<Vec<_>>();
            let of_group = |group: usize| {
                let mine = rows.iter().zip(&groups).filter(|row| *row.1 == group).map(|row| *row.0);
                naive(&mine.collect::<Rows>(), -9, 40)
            };
            let answers = testing::grouped::<BusyTally>(&columns(&rows), &groups, 3, &cuts).unwrap();
            prop_assert_eq!(answers, (0..3).map(of_group).collect::<Vec<_>>());
        }

        #[test]
        fn frames_forget_what_left(rows in rows(), width in 1..8usize) {
            let frame = |row: usize, width: usize| naive(&rows[(row + 1).saturating_sub(width)..=row], -9, 40);
            let moving = (0..rows.len()).map(|row| frame(row, width)).collect::<Vec<_>>();
            prop_assert_eq!(testing::moving::<BusyFrame>(&columns(&rows), width).unwrap(), moving);
            let running = (0..rows.len()).map(|row| frame(row, row + 1)).collect::<Vec<_>>();
            prop_assert_eq!(testing::running::<BusyTally>(&columns(&rows)).unwrap(), running);
        }

        #[test]
        fn a_window_keeps_its_ticks(rows in rows(), from in -9..40i64, length in 0..20i64) {
            let mut values = columns(&rows);
            values.push(Arc::new(Int64Array::from(vec![from; rows.len()])));
            values.push(Arc::new(Int64Array::from(vec![from + length; rows.len()])));
            prop_assert_eq!(testing::whole::<BusyTally>(&values).unwrap(), naive(&rows, from, from + length));
        }
    }

    #[test]
    fn the_whole_range_is_an_error_and_no_panic() {
        let all = columns(&[(Some(i64::MIN), Some(i64::MAX))]);
        let error = testing::whole::<BusyTally>(&all).unwrap_err().to_string();
        assert!(error.contains("busy: 18446744073709551615 ticks do not fit BIGINT"), "{error}");
        let half = columns(&[(Some(0), Some(i64::MAX)), (Some(i64::MAX), Some(i64::MIN))]);
        assert_eq!(testing::whole::<BusyTally>(&half).unwrap(), ScalarValue::Int64(Some(i64::MAX)));
    }

    #[test]
    fn a_plain_loop_can_use_it() {
        let spans = [(0, 3), (2, 5), (8, 9)].map(|(start, finish)| Span { start, finish });
        assert_eq!(busy(spans), 6);
    }
}
