//! `max_concurrency(start, finish)` and `mean_concurrency(start, finish)`: how many spans of a group run at a time.
//!
//! Life of the data: for the maximum, starts and finishes are collected separately, partitions merge by appending, and at
//! the end both are sorted and swept from left to right as in `concurrency(tasks)`. A moving window frame instead keeps,
//! ordered by tick, by how much the number changes there. The mean needs only the sum of the durations and the extent of
//! the spans.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Int64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{AggregateUDFImpl, Signature, Volatility};
use datafusion_macros::user_doc;

use crate::aggregate::{Mergeable, Retractable, Tally, by_tally, list_at, list_column, list_type, value_at};
use crate::concurrency::Steps;
use crate::multiset::Multiset;
use crate::spans::{Span, SpanColumns, named};

/// `max_concurrency(start, finish)`, an aggregate. Shape: any number of spans → one `BIGINT`, never NULL.
#[user_doc(
    doc_section(label = "Occupancy"),
    description = "The most spans of the group that run at the same time.\n\n\
        Rows: one per group; 0 where nothing runs. Units: a number of spans. Nested spans count each: take `depth = 0` to \
        count lanes. Spans are half-open: where one starts at which another ends they do not run together.\n\n\
        NULLs: a span with a NULL start or finish is left out. Empty and reversed spans run at no tick. Ties and the order of \
        rows do not matter; DISTINCT counts equal spans once.\n\n\
        Errors: none. Cost: 16 bytes a span, then two sorts; in a window frame O(frame) an answer.\n\n\
        Source: the depth of a set of intervals; `concurrency(tasks)` shows when it is reached.",
    syntax_example = "max_concurrency(start, finish)",
    sql_example = "SELECT max_concurrency(start, finish) AS running\n\
        FROM (VALUES (0, 3), (2, 5), (3, 6), (4, 5)) AS tasks(start, finish)",
    argument(name = "start", description = "First tick of the span (BIGINT)."),
    argument(name = "finish", description = "First tick after the span (BIGINT).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct MaxConcurrency {
    signature: Signature,
}

/// `mean_concurrency(start, finish)`, an aggregate. Shape: any number of spans → one `DOUBLE`.
#[user_doc(
    doc_section(label = "Occupancy"),
    description = "How many spans of the group run on average between the first start and the last finish: \
        Σ durations ÷ (last finish - first start).\n\n\
        Rows: one per group. Units: a number of spans. Nested spans count each: take `depth = 0` to count lanes. For another \
        window take `occupancy(start, finish, 1, from, to)`.\n\n\
        NULLs: a span with a NULL start or finish is left out; NULL without spans, and when all are empty at one tick. Empty \
        and reversed spans add 0. Ties and the order of rows do not matter; DISTINCT counts equal spans once.\n\n\
        Errors: none. Cost: O(1) a span and a few words a group; in a moving window frame O(log n) a span.\n\n\
        Source: Little 1961: the mean number in a system is arrival rate × mean time in it.",
    syntax_example = "mean_concurrency(start, finish)",
    sql_example = "SELECT mean_concurrency(start, finish) AS running\n\
        FROM (VALUES (0, 3), (2, 5), (3, 6), (4, 5)) AS tasks(start, finish)",
    argument(name = "start", description = "First tick of the span (BIGINT)."),
    argument(name = "finish", description = "First tick after the span (BIGINT).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct MeanConcurrency {
    signature: Signature,
}

/// The SQL interface of an aggregate over spans: its name, its type, its tally, and the tally for moving frames.
macro_rules! of_spans {
    ($function:ident, $name:literal, $type:expr, $nullable:literal, $default:expr, $tally:ty, $frame:ty) => {
        impl $function {
            /// The function.
            pub fn new() -> Self {
                let signature = Signature::exact(vec![DataType::Int64; 2], Volatility::Immutable);
                $function { signature: named(signature, &["start", "finish"]) }
            }
        }

        impl Default for $function {
            fn default() -> Self {
                Self::new()
            }
        }

        impl AggregateUDFImpl for $function {
            fn name(&self) -> &str {
                $name
            }

            fn signature(&self) -> &Signature {
                &self.signature
            }

            fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
                Ok($type)
            }

            fn is_nullable(&self) -> bool {
                $nullable
            }

            fn default_value(&self, _data_type: &DataType) -> Result<ScalarValue> {
                Ok($default)
            }

            by_tally!($tally, $frame);
        }
    };
}

of_spans!(MaxConcurrency, "max_concurrency", DataType::Int64, false, ScalarValue::Int64(Some(0)), MaxTally, MaxFrame);
of_spans!(
    MeanConcurrency,
    "mean_concurrency",
    DataType::Float64,
    true,
    ScalarValue::Float64(None),
    MeanTally,
    MeanFrame
);

/// The starts and the finishes of a group; only of spans with ticks.
#[derive(Debug, Default)]
struct MaxTally {
    starts: Vec<i64>,
    finishes: Vec<i64>,
}

impl Tally for MaxTally {
    type Columns<'a> = SpanColumns<'a>;
    type Row = Span;
    type Answer = Int64Type;

    fn columns(values: &[ArrayRef]) -> Result<SpanColumns<'_>> {
        Ok(SpanColumns::new(values, 2))
    }

    fn row(columns: SpanColumns<'_>, index: usize) -> Result<Option<Span>> {
        Ok(columns.span(index).filter(|span| span.start < span.finish))
    }

    fn add(&mut self, span: Span) -> Result<()> {
        self.starts.push(span.start);
        self.finishes.push(span.finish);
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<i64>> {
        self.starts.sort_unstable();
        self.finishes.sort_unstable();
        Ok(Some(
            Steps::new(self.starts.iter().copied(), self.finishes.iter().copied())
                .map(|(_, running)| running)
                .max()
                .unwrap_or(0),
        ))
    }

    fn heap_bytes(&self) -> usize {
        (self.starts.capacity() + self.finishes.capacity()) * size_of::<i64>()
    }
}

impl Mergeable for MaxTally {
    fn state_columns() -> Vec<(&'static str, DataType)> {
        vec![("starts", list_type()), ("finishes", list_type())]
    }

    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
        let mut column = |ends: fn(&mut MaxTally) -> &mut Vec<i64>| {
            let offsets = OffsetBuffer::from_lengths(tallies.iter_mut().map(|tally| ends(tally).len()));
            let all = tallies.iter_mut().flat_map(|tally| std::mem::take(ends(tally)));
            list_column(offsets, Int64Array::from_iter_values(all))
        };
        Ok(vec![column(|tally| &mut tally.starts), column(|tally| &mut tally.finishes)])
    }

    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
        self.starts.extend_from_slice(list_at(&states[0], index).values());
        self.finishes.extend_from_slice(list_at(&states[1], index).values());
        Ok(())
    }
}

/// A moving window frame: by how much the number of running spans changes at each tick.
#[derive(Debug, Default)]
struct MaxFrame(BTreeMap<i64, i64>);

impl MaxFrame {
    fn change(&mut self, tick: i64, by: i64) {
        let change = self.0.entry(tick).or_insert(0);
        *change += by;
        if *change == 0 {
            self.0.remove(&tick);
        }
    }
}

impl Tally for MaxFrame {
    type Columns<'a> = SpanColumns<'a>;
    type Row = Span;
    type Answer = Int64Type;

    fn columns(values: &[ArrayRef]) -> Result<SpanColumns<'_>> {
        MaxTally::columns(values)
    }

    fn row(columns: SpanColumns<'_>, index: usize) -> Result<Option<Span>> {
        MaxTally::row(columns, index)
    }

    fn add(&mut self, span: Span) -> Result<()> {
        self.change(span.start, 1);
        self.change(span.finish, -1);
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<i64>> {
        let running = self.0.values().scan(0, |running, change| {
            *running += change;
            Some(*running)
        });
        Ok(Some(running.max().unwrap_or(0)))
    }

    fn heap_bytes(&self) -> usize {
        self.0.len() * size_of::<(i64, i64)>() * 3 / 2
    }
}

impl Retractable for MaxFrame {
    fn remove(&mut self, span: Span) -> Result<()> {
        self.change(span.start, -1);
        self.change(span.finish, 1);
        Ok(())
    }
}

/// The sum of durations and the extent of a group.
#[derive(Debug, Default)]
struct MeanTally {
    /// Cannot overflow: 2⁶³ rows of 2⁶⁴ ticks fit.
    ticks: i128,
    first: Option<i64>,
    last: Option<i64>,
}

/// The mean, given the extent; NULL without ticks.
fn mean(ticks: i128, first: Option<i64>, last: Option<i64>) -> Option<f64> {
    let (first, last) = first.zip(last)?;
    (first < last).then(|| ticks as f64 / first.abs_diff(last) as f64)
}

impl Tally for MeanTally {
    type Columns<'a> = SpanColumns<'a>;
    type Row = Span;
    type Answer = Float64Type;

    fn columns(values: &[ArrayRef]) -> Result<SpanColumns<'_>> {
        Ok(SpanColumns::new(values, 2))
    }

    fn row(columns: SpanColumns<'_>, index: usize) -> Result<Option<Span>> {
        Ok(columns.span(index))
    }

    fn add(&mut self, span: Span) -> Result<()> {
        self.ticks += i128::from(span.ticks());
        self.first = Some(self.first.map_or(span.start, |first| first.min(span.start)));
        self.last = Some(self.last.map_or(span.finish, |last| last.max(span.finish)));
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<f64>> {
        Ok(mean(self.ticks, self.first, self.last))
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

impl Mergeable for MeanTally {
    fn state_columns() -> Vec<(&'static str, DataType)> {
        vec![("ticks", DataType::Decimal128(38, 0)), ("first", DataType::Int64), ("last", DataType::Int64)]
    }

    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
        let ticks = Decimal128Array::from_iter_values(tallies.iter().map(|tally| tally.ticks));
        Ok(vec![
            Arc::new(ticks.with_precision_and_scale(38, 0)?),
            Arc::new(tallies.iter().map(|tally| tally.first).collect::<Int64Array>()),
            Arc::new(tallies.iter().map(|tally| tally.last).collect::<Int64Array>()),
        ])
    }

    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
        let number = |column: usize| value_at(states[column].as_primitive::<Int64Type>(), index);
        self.ticks += states[0].as_primitive::<Decimal128Type>().value(index);
        self.first = [self.first, number(1)].into_iter().flatten().min();
        self.last = [self.last, number(2)].into_iter().flatten().max();
        Ok(())
    }
}

/// A moving window frame: values are counted and not only compared, so that they can be removed.
#[derive(Debug, Default)]
struct MeanFrame {
    ticks: i128,
    starts: Multiset<i64>,
    finishes: Multiset<i64>,
}

impl Tally for MeanFrame {
    type Columns<'a> = SpanColumns<'a>;
    type Row = Span;
    type Answer = Float64Type;

    fn columns(values: &[ArrayRef]) -> Result<SpanColumns<'_>> {
        MeanTally::columns(values)
    }

    fn row(columns: SpanColumns<'_>, index: usize) -> Result<Option<Span>> {
        MeanTally::row(columns, index)
    }

    fn add(&mut self, span: Span) -> Result<()> {
        self.ticks += i128::from(span.ticks());
        self.starts.add(span.start);
        self.finishes.add(span.finish);
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<f64>> {
        Ok(mean(self.ticks, self.starts.first(), self.finishes.last()))
    }

    fn heap_bytes(&self) -> usize {
        self.starts.heap_bytes() + self.finishes.heap_bytes()
    }
}

impl Retractable for MeanFrame {
    fn remove(&mut self, span: Span) -> Result<()> {
        self.ticks -= i128::from(span.ticks());
        self.starts.remove(span.start);
        self.finishes.remove(span.finish);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::testing;
    use proptest::collection::vec;
    use proptest::prelude::*;

    type Bounds = (Option<i64>, Option<i64>);

    fn columns(rows: &[Bounds]) -> Vec<ArrayRef> {
        vec![
            Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
            Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>()),
        ]
    }

    /// How many spans run at a tick.
    fn running(rows: &[Bounds], tick: i64) -> i64 {
        rows.iter().filter(|row| matches!(**row, (Some(s), Some(f)) if s <= tick && tick < f)).count() as i64
    }

    fn most(rows: &[Bounds]) -> ScalarValue {
        ScalarValue::Int64((-10..30).map(|tick| running(rows, tick)).max())
    }

    fn average(rows: &[Bounds]) -> ScalarValue {
        let spans = rows.iter().filter_map(|row| row.0.zip(row.1));
        let (first, last) = (spans.clone().map(|span| span.0).min(), spans.map(|span| span.1).max());
        let extent = first.zip(last).filter(|(first, last)| first < last);
        let ticks: i64 = (-10..30).map(|tick| running(rows, tick)).sum();
        ScalarValue::Float64(extent.map(|(first, last)| ticks as f64 / (last - first) as f64))
    }

    fn rows() -> impl Strategy<Value = Vec<Bounds>> {
        let bound = || prop::option::weighted(0.9, -9..29i64);
        vec((bound(), bound()), 0..20)
    }

    proptest! {
        #[test]
        fn equal_the_count_at_every_tick(rows in rows(), cuts in vec(0..21usize, 0..4)) {
            prop_assert_eq!(testing::whole::<MaxTally>(&columns(&rows)).unwrap(), most(&rows));
            prop_assert_eq!(testing::cut::<MaxTally>(&columns(&rows), &cuts).unwrap(), most(&rows));
            prop_assert_eq!(testing::whole::<MeanTally>(&columns(&rows)).unwrap(), average(&rows));
            prop_assert_eq!(testing::cut::<MeanTally>(&columns(&rows), &cuts).unwrap(), average(&rows));
        }

        #[test]
        fn groups_do_not_mix(rows in rows(), cuts in vec(0..21usize, 0..4)) {
            let groups: Vec<usize> = rows.iter().map(|row| row.0.unwrap_or(0).rem_euclid(3) as usize).collect();
            let of_group = |group: usize| -> Vec<Bounds> {
                rows.iter().zip(&groups).filter(|row| *row.1 == group).map(|row| *row.0).collect()
            };
            let found = testing::grouped::<MaxTally>(&columns(&rows), &groups, 3, &cuts).unwrap();
            prop_assert_eq!(found, (0..3).map(|group| most(&of_group(group))).collect::<Vec<_>>());
            let found = testing::grouped::<MeanTally>(&columns(&rows), &groups, 3, &cuts).unwrap();
            prop_assert_eq!(found, (0..3).map(|group| average(&of_group(group))).collect::<Vec<_>>());
        }

        #[test]
        fn frames_forget_what_left(rows in rows(), width in 1..8usize) {
            let frame = |row: usize| &rows[(row + 1).saturating_sub(width)..=row];
            let found = testing::moving::<MaxFrame>(&columns(&rows), width).unwrap();
            prop_assert_eq!(found, (0..rows.len()).map(|row| most(frame(row))).collect::<Vec<_>>());
            let found = testing::moving::<MeanFrame>(&columns(&rows), width).unwrap();
            prop_assert_eq!(found, (0..rows.len()).map(|row| average(frame(row))).collect::<Vec<_>>());
            let found = testing::running::<MaxTally>(&columns(&rows)).unwrap();
            prop_assert_eq!(found, (0..rows.len()).map(|row| most(&rows[..=row])).collect::<Vec<_>>());
        }
    }
}
