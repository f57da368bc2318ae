//! `subtract(a, b)`: the parts of each span of `a` that no span of `b` on the same location covers.
//!
//! Life of the data: both inputs are grouped by lane ([`crate::lanes`]); the spans of `b` on a lane are merged into
//! their union; each span of `a` is cut by the pieces of the union that it overlaps, found by binary search.
//!
//! ```text
//! a      [-----------------)
//! b  [------)   [--)
//! left      [---)  [-------)
//! ```

use std::sync::LazyLock;

use arrow::datatypes::{DataType, Field};
use datafusion_common::Result;
use datafusion_doc::{DocSection, Documentation};

use crate::lanes::pieces::{self, CHUNK_ROWS, PARAMETERS, Piece, Pieces};
use crate::lanes::{LaneSpan, Nulls, sort_lane};
use crate::relation::call::Call;
use crate::relation::rows::Ties;
use crate::relation::{OrderOfRuns, Parameter, RelationFunction, RowOrder};
use crate::spans::Span;
use crate::ticks::time_field;

/// The relation function `subtract`.
#[derive(Debug)]
pub struct Subtract;

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "The parts of each span of `a` that no span of `b` on its location covers.\n\n\
         Rows: one per remaining part, with the task of `a`; none for a span that is covered. The spans of `a` may \
         overlap each other, each is cut by itself. \
         Spans meet on the same run and location; with `by` on the same `name`, `kind`, `role` or `process` instead, with \
         `by => 'run'` wherever they are. An input without that column is everywhere (windows of time need no location), a `b` \
         without `run` in every run. A span of `a` without length is left when no span of `b` lies over it; one of `b` takes \
         nothing away.\n\n\
         Units: ticks.\n\n\
         Nulls: spans whose start or finish is NULL are left out, spans of `b` without the column `by` take nothing away; each is \
         counted in a note. Spans of `a` without it are left whole. Where only one input has that column, it is \
         ignored. Those that end before they start count as empty.\n\n\
         Ties: none.\n\n\
         Errors: a piece longer than BIGINT, an unknown `by`.\n\n\
         Cost: n log n and the pieces; 28 bytes a span beside the spans themselves; beyond half of the \
         memory limit, as much for those of the largest lane.\n\n\
         Source: interval algebra as in bedtools' subtract, Quinlan and Hall 2010.",
        "subtract(a, b, [by => VARCHAR])",
    )
    .with_sql_example(
        "SELECT start, finish, task FROM subtract(\n  \
         (SELECT * FROM (VALUES (1, 0, 5), (2, 8, 10)) AS communication(task, start, finish)),\n  \
         (SELECT * FROM (VALUES (3, 9)) AS compute(start, finish)))\nORDER BY start",
    )
    .with_argument("a", "Relation: start, finish (BIGINT); optional run, location, task, name, kind, role, process.")
    .with_argument("b", "Relation: the same.")
    .with_argument("by", "What spans must have in common: location, name, kind, role, process or run (default location).")
    .build()
});

impl RelationFunction for Subtract {
    fn name(&self) -> &'static str {
        "subtract"
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
            Field::new("task", DataType::Int64, true),
        ]
    }

    fn row_order(&self) -> RowOrder {
        RowOrder::Any
    }

    fn order_of_runs(&self) -> OrderOfRuns {
        OrderOfRuns::Rows
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        pieces::compute(call, Nulls::OneLane, |call, both| {
            for (_, lane) in both.b_spans.lanes() {
                call.work.check()?;
                sort_lane(lane, &Ties::by_row());
            }
            let mut found = Pieces::default();
            for lane in 0..both.a_spans.ends.len() {
                let taken = union(both.b_spans.lane(both.partner(lane)));
                let mut of_lane = 0;
                let mut near = 0;
                for span in both.a_spans.lane(lane) {
                    of_lane += cut(span, &taken, &mut near, &mut found.pieces);
                    if found.pieces.len() >= CHUNK_ROWS {
                        found.lanes.push((lane, std::mem::take(&mut of_lane)));
                        both.emit(call, &std::mem::take(&mut found), false)?;
                    }
                }
                found.lanes.push((lane, of_lane));
                call.work.check()?;
            }
            both.emit(call, &found, false)
        })
    }
}

/// The union of sorted spans as pieces that do not touch.
fn union(spans: &[LaneSpan]) -> Vec<Span> {
    let mut pieces: Vec<Span> = vec![];
    for span in spans.iter().filter(|span| !span.is_empty()) {
        match pieces.last_mut() {
            Some(last) if span.start <= last.finish => last.finish = last.finish.max(span.finish),
            _ => pieces.push(Span { start: span.start, finish: span.finish }),
        }
    }
    pieces
}

/// Appends what is left of a span, and answers how many pieces that are. `near` is where the last search ended: spans
/// mostly come in the order of their starts.
fn cut(span: &LaneSpan, taken: &[Span], near: &mut usize, left: &mut Vec<Piece>) -> usize {
    let before = left.len();
    let over = |piece: &Span| piece.finish <= span.start;
    // The first piece that is not over when the span starts is `near`, a few places behind it, or anywhere.
    let behind = taken[..*near].last().is_none_or(over);
    let close = taken[*near..].iter().take(8).take_while(|piece| over(piece)).count();
    *near = if behind && close < 8 { *near + close } else { taken.partition_point(over) };
    let mut start = span.start;
    for piece in taken[*near..].iter().take_while(|piece| piece.start < span.finish || span.is_empty()) {
        if span.is_empty() {
            if piece.start <= span.start {
                return 0;
            }
            break;
        }
        if start < piece.start {
            left.push(Piece::alone(start, piece.start, span.row));
        }
        start = piece.finish;
    }
    if start < span.finish || span.is_empty() {
        left.push(Piece::alone(start, span.finish, span.row));
    }
    left.len() - before
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        /// What is left are the ticks of the span that no span of `b` has, in stretches as long as they can be.
        #[test]
        fn equals_a_look_at_every_tick(
            a in vec((0..40i64, 0..9i64), 0..9), b in vec((0..40i64, 0..4i64), 0..16),
        ) {
            let span = |(row, (start, length)): (u32, &(i64, i64))| LaneSpan::new(*start, start + length, row);
            let mut lane: Vec<LaneSpan> = (0..).zip(&b).map(span).collect();
            sort_lane(&mut lane, &Ties::by_row());
            let taken = union(&lane);
            let (mut found, mut naive, mut near) = (vec![], vec![], 0);
            for span in (0..).zip(&a).map(span) {
                let before = found.len();
                prop_assert_eq!(cut(&span, &taken, &mut near, &mut found), found.len() - before);
                let is_taken = |tick: i64| b.iter().any(|(start, length)| *start <= tick && tick < start + length);
                if span.is_empty() && !is_taken(span.start) {
                    naive.push(Piece::alone(span.start, span.start, span.row));
                }
                for tick in (span.start..span.finish).filter(|tick| !is_taken(*tick)) {
                    match naive.last_mut() {
                        Some(Piece { finish, row, .. }) if *finish == tick && *row == span.row => *finish += 1,
                        _ => naive.push(Piece::alone(tick, tick + 1, span.row)),
                    }
                }
            }
            prop_assert_eq!(found, naive);
        }
    }
}
