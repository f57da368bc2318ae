//! `floating_row(start, finish) OVER (… ORDER BY start)`: the row of a Gantt chart in which each span is drawn.
//!
//! Life of the data: spans come in the order of start; each floats up to the first row in which it overlaps nothing.
//! Spans without length are drawn as a mark and need room around them, which gives the rules (the spans already placed
//! are `[s, e)`, the new one is `[S, E)`, and `s ≤ S` always):
//!
//! ```text
//! new     placed   conflict when
//! span    span     S < e               touching is fine: half-open
//! mark    any      S ≤ e               a mark may not touch the end of a span, nor another mark
//! span    mark     S = s
//! ```
//!
//! In half ticks all rules are one comparison. A placed span blocks its row up to `2e`, a placed mark up to `2s + 1`; a
//! new span needs its row free before `2S + 1`, a new mark before `2S`; it fits when that is later than the end of the
//! block. The first row that fits is found in a tree of minima over the rows: O(log rows) a span.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion_expr::{Documentation, LimitEffect, PartitionEvaluator, Signature, Volatility, WindowUDFImpl};
use datafusion_macros::user_doc;
use datafusion_physical_expr::PhysicalExpr;

use crate::aggregate::value_at;
use crate::spans::{Span, named};

/// `floating_row(start, finish) OVER (…)`, a window function. Shape: one `BIGINT` per row, from 0.
#[user_doc(
    doc_section(label = "Rows"),
    description = "Row of a Gantt chart in which a span is drawn: the first, from 0, whose spans it does not overlap.\n\n\
        Rows: one per row. Write `OVER (PARTITION BY … ORDER BY start, task)`: spans are placed in this order within \
        each partition. Units: ticks in; a row number out.\n\n\
        Spans are half-open, so they may touch. One without length is a mark: it may not touch the end of a span \
        placed before it, and nothing else may start where it is. A reversed span is a mark at its start. Without marks \
        there are as many rows as spans run at a time.\n\n\
        NULLs: a span with a NULL start or finish gets NULL and takes no room. Ties: spans that start together are \
        placed in the order in which they come; order by something unique for the same answer every time.\n\n\
        Errors: spans that do not come in the order of start. A window frame changes nothing.\n\n\
        Cost: O(log rows) a span after the sort; state of a few words a row.\n\n\
        Source: the row assignment of Daisen's component view (Akita), which is first fit on an interval graph.",
    syntax_example = "floating_row(start, finish) OVER (PARTITION BY … ORDER BY start, …)",
    sql_example = "SELECT task, floating_row(start, finish) OVER (ORDER BY start, task) AS row_number\n\
        FROM (VALUES (1, 0, 4), (2, 1, 3), (3, 2, 6), (4, 3, 5)) AS tasks(task, start, finish)\n\
        ORDER BY task",
    argument(name = "start", description = "First tick of the span (BIGINT)."),
    argument(name = "finish", description = "First tick after the span (BIGINT).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct FloatingRow {
    signature: Signature,
}

impl FloatingRow {
    /// The function.
    pub fn new() -> Self {
        let signature = Signature::exact(vec![DataType::Int64; 2], Volatility::Immutable);
        FloatingRow { signature: named(signature, &["start", "finish"]) }
    }
}

impl Default for FloatingRow {
    fn default() -> Self {
        Self::new()
    }
}

impl WindowUDFImpl for FloatingRow {
    fn name(&self) -> &str {
        "floating_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(args.name(), DataType::Int64, true)))
    }

    fn partition_evaluator(&self, _args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(FloatingRows::default()))
    }

    // A row depends on earlier ones only, so the first n rows need no others.
    fn limit_effect(&self, _args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        LimitEffect::None
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.doc()
    }
}

/// A span that starts before the one that came before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfOrder {
    /// The latest start so far.
    pub before: i64,
    /// The start that came after it.
    pub start: i64,
}

impl fmt::Display for OutOfOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spans must come in the order of start, but {} comes after {}", self.start, self.before)
    }
}

impl std::error::Error for OutOfOrder {}

/// The row of each span `[starts[i], finishes[i])`, from 0. Spans come in the order of start; O(n log rows).
///
/// Stops at the shorter slice. Errors: a span that starts before the one before it.
pub fn floating_rows(starts: &[i64], finishes: &[i64]) -> std::result::Result<Vec<i64>, OutOfOrder> {
    let mut rows = FloatingRows::default();
    starts.iter().zip(finishes).map(|(&start, &finish)| rows.place(Span { start, finish })).collect()
}

/// The rows of a chart that is being filled.
#[derive(Debug, Default)]
pub(crate) struct FloatingRows {
    rows: FirstFit,
    before: Option<i64>,
}

impl FloatingRows {
    /// The row of the next span.
    pub(crate) fn place(&mut self, span: Span) -> std::result::Result<i64, OutOfOrder> {
        if let Some(before) = self.before.filter(|&before| span.start < before) {
            return Err(OutOfOrder { before, start: span.start });
        }
        self.before = Some(span.start);
        Ok(self.place_in_order(span) as i64)
    }

    /// About how many bytes are held.
    pub(crate) fn size(&self) -> usize {
        size_of::<FloatingRows>() + self.rows.blocked_until.len() * size_of::<i128>()
    }

    /// The row of the next span, which does not start before the one that came before it.
    pub(crate) fn place_in_order(&mut self, span: Span) -> usize {
        let is_mark = span.finish <= span.start;
        let (asks, blocks) = if is_mark {
            (half_ticks(span.start), half_ticks(span.start) + 1)
        } else {
            (half_ticks(span.start) + 1, half_ticks(span.finish))
        };
        self.rows.place(asks, blocks)
    }

    fn place_row(&mut self, starts: &Int64Array, finishes: &Int64Array, index: usize) -> Result<Option<i64>> {
        let Some((start, finish)) = value_at(starts, index).zip(value_at(finishes, index)) else { return Ok(None) };
        match self.place(Span { start, finish }) {
            Ok(row) => Ok(Some(row)),
            Err(error) => exec_err!(
                "floating_row: {error}; write floating_row(start, finish) OVER (PARTITION BY location ORDER BY start, task)"
            ),
        }
    }
}

/// A time in half ticks, which leaves room to order what happens at one tick.
pub(crate) fn half_ticks(time: i64) -> i128 {
    2 * i128::from(time)
}

/// Rows that are blocked up to some time each, as a binary tree: leaf `leaves() + row` is until when the row is blocked, an
/// inner node the least of its two children. Node 0 is not used. Rows that do not exist yet were never blocked.
#[derive(Debug, Default)]
pub(crate) struct FirstFit {
    blocked_until: Vec<i128>,
}

impl FirstFit {
    /// The first row whose block ends before `asks`; it is then blocked until `blocks`. O(log rows).
    pub(crate) fn place(&mut self, asks: i128, blocks: i128) -> usize {
        if self.blocked_until.get(1).is_none_or(|&least| asks <= least) {
            self.double();
        }
        let mut node = 1;
        while node < self.leaves() {
            // To the left whenever something fits there: the first row wins.
            node *= 2;
            if asks <= self.blocked_until[node] {
                node += 1;
            }
        }
        let row = node - self.leaves();
        self.blocked_until[node] = blocks;
        while node > 1 {
            node /= 2;
            self.blocked_until[node] = self.blocked_until[2 * node].min(self.blocked_until[2 * node + 1]);
        }
        row
    }

    fn leaves(&self) -> usize {
        self.blocked_until.len() / 2
    }

    /// Twice as many rows; the new ones are free.
    fn double(&mut self) {
        let old = self.leaves();
        let leaves = (2 * old).max(1);
        let mut tree = vec![i128::MIN; 2 * leaves];
        tree[leaves..leaves + old].copy_from_slice(&self.blocked_until[old..]);
        for node in (1..leaves).rev() {
            tree[node] = tree[2 * node].min(tree[2 * node + 1]);
        }
        self.blocked_until = tree;
    }
}

impl PartitionEvaluator for FloatingRows {
    fn evaluate_all(&mut self, values: &[ArrayRef], num_rows: usize) -> Result<ArrayRef> {
        let (starts, finishes) = (values[0].as_primitive::<Int64Type>(), values[1].as_primitive::<Int64Type>());
        let rows =
            (0..num_rows).map(|index| self.place_row(starts, finishes, index)).collect::<Result<Int64Array>>()?;
        Ok(Arc::new(rows))
    }

    // Row by row, for plans that stream: the state is the chart so far.
    fn evaluate(&mut self, values: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        let (starts, finishes) = (values[0].as_primitive::<Int64Type>(), values[1].as_primitive::<Int64Type>());
        self.place_row(starts, finishes, range.start).map(ScalarValue::Int64)
    }

    fn supports_bounded_execution(&self) -> bool {
        true
    }

    fn is_causal(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// The four rules as the viewer states them.
    fn conflict(placed: Span, new: Span) -> bool {
        match (placed.start < placed.finish, new.start < new.finish) {
            (true, true) => placed.finish > new.start,
            (_, false) => placed.start <= new.start && new.start <= placed.finish.max(placed.start),
            (false, true) => placed.start == new.start,
        }
    }

    fn naive(spans: &[Span]) -> Vec<i64> {
        let mut chart: Vec<Vec<Span>> = Vec::new();
        let place = |&new: &Span| {
            let fits = |row: &Vec<Span>| !row.iter().any(|&placed| conflict(placed, new));
            let row = chart.iter().position(fits).unwrap_or_else(|| {
                chart.push(Vec::new());
                chart.len() - 1
            });
            chart[row].push(new);
            row as i64
        };
        spans.iter().map(place).collect()
    }

    proptest! {
        #[test]
        fn rows_follow_the_rules(spans in vec((0..30i64, -1..8i64), 0..60), cut in 0..60usize) {
            let mut spans =
                spans.into_iter().map(|(start, length)| Span { start, finish: start + length }).collect::<Vec<_>>();
            spans.sort_by_key(|span| span.start);
            let (starts, finishes): (Vec<_>, Vec<_>) = spans.iter().map(|span| (span.start, span.finish)).unzip();
            let expected = naive(&spans);
            prop_assert_eq!(&floating_rows(&starts, &finishes).unwrap(), &expected);

            // The streaming plan asks row by row, in batches that are cut anywhere.
            let mut evaluator = FloatingRows::default();
            let (left, right) = spans.split_at(cut.min(spans.len()));
            let mut streamed = Vec::new();
            for part in [left, right] {
                let values: Vec<ArrayRef> = vec![
                    Arc::new(Int64Array::from_iter_values(part.iter().map(|span| span.start))),
                    Arc::new(Int64Array::from_iter_values(part.iter().map(|span| span.finish))),
                ];
                for row in 0..part.len() {
                    streamed.push(evaluator.evaluate(&values, &(row..row + 1)).unwrap());
                }
            }
            prop_assert_eq!(streamed, expected.into_iter().map(|row| ScalarValue::Int64(Some(row))).collect::<Vec<_>>());
        }
    }

    #[test]
    fn disorder_is_an_error() {
        assert_eq!(floating_rows(&[3, 5, 4], &[4, 6, 5]), Err(OutOfOrder { before: 5, start: 4 }));
    }

    #[test]
    fn extremes_do_not_overflow() {
        let starts = [i64::MIN, i64::MIN, i64::MIN, 0, i64::MAX, i64::MAX];
        let finishes = [i64::MAX, i64::MIN, i64::MAX, i64::MAX, i64::MAX, i64::MIN];
        assert_eq!(floating_rows(&starts, &finishes).unwrap(), [0, 1, 2, 1, 3, 4]);
    }
}
