//! `intersect(a, b)`: the intervals in which a span of `a` and a span of `b` overlap on a location.
//!
//! Life of the data: both inputs are grouped by lane ([`crate::lanes`]) and each lane is sorted by start; one sweep from
//! left to right keeps the open spans of either side, and each new span is paired with the open spans of the other.
//!
//! ```text
//! a   [---------)        [---)
//! b        [---------)       [--)
//! piece    [----)                        touching is not meeting
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
use crate::ticks::time_field;

/// The relation function `intersect`.
#[derive(Debug)]
pub struct Intersect;

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "The intervals in which a span of `a` and a span of `b` overlap on a location.\n\n\
         Rows: one per pair of spans that meet, [later start, earlier finish), with the task of `a` (`task`) and that of `b` \
         (`other_task`). The spans of an input may overlap each other: then a tick is in several pieces. \
         Spans meet on the same run and location; with `by` on the same `name`, `kind`, `role` or `process` instead, with \
         `by => 'run'` wherever they are. An input without that column is everywhere (windows of time need no location), one \
         without `run` in every run. `location` is that of `a`, or that of `b` when `a` has none. Touching is not meeting. \
         A span without length is a mark: it meets the spans that it lies in, their start included, and marks at the same \
         tick.\n\n\
         Units: ticks.\n\n\
         Nulls: spans whose start, finish or column `by` is NULL meet no others; each is counted in a note. Where only \
         one input has that column, it is ignored. Those that end \
         before they start count as marks at their start.\n\n\
         Ties: none; every pair is a row.\n\n\
         Errors: a piece longer than BIGINT, an unknown `by`.\n\n\
         Cost: n log n and the pieces, linear when both are sorted by start; 28 bytes a span beside the spans themselves; beyond half of the \
         memory limit, as much for those of the largest lane.\n\n\
         Source: the sweep of Bentley and Ottmann 1979 for intervals; as in Perfetto's interval_intersect, which wants spans \
         that do not overlap.",
        "intersect(a, b, [by => VARCHAR])",
    )
    .with_sql_example(
        "SELECT start, finish, task, other_task FROM intersect(\n  \
         (SELECT * FROM (VALUES (1, 0, 5), (2, 8, 10)) AS compute(task, start, finish)),\n  \
         (SELECT * FROM (VALUES (7, 3, 9)) AS communication(task, start, finish)))\nORDER BY start",
    )
    .with_argument("a", "Relation: start, finish (BIGINT); optional run, location, task, name, kind, role, process.")
    .with_argument("b", "Relation: the same.")
    .with_argument("by", "What spans must have in common: location, name, kind, role, process or run (default location).")
    .build()
});

impl RelationFunction for Intersect {
    fn name(&self) -> &'static str {
        "intersect"
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
            Field::new("other_task", DataType::Int64, true),
        ]
    }

    fn row_order(&self) -> RowOrder {
        RowOrder::Any
    }

    fn order_of_runs(&self) -> OrderOfRuns {
        OrderOfRuns::Rows
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        pieces::compute(call, Nulls::NoLane, |call, both| {
            for (_, lane) in both.a_spans.lanes().chain(both.b_spans.lanes()) {
                call.work.check()?;
                sort_lane(lane, &Ties::by_row());
            }
            let mut found = Pieces::default();
            for lane in 0..both.a_spans.ends.len() {
                let mut of_lane = 0;
                meetings(both.a_spans.lane(lane), both.b_spans.lane(both.partner(lane)), |piece| {
                    found.pieces.push(piece);
                    of_lane += 1;
                    if found.pieces.len() >= CHUNK_ROWS {
                        found.lanes.push((lane, std::mem::take(&mut of_lane)));
                        both.emit(call, &std::mem::take(&mut found), true)?;
                    }
                    Ok(())
                })?;
                found.lanes.push((lane, of_lane));
            }
            both.emit(call, &found, true)
        })
    }
}

/// Every pair of spans of two sorted lanes that meet, as the piece that they share.
fn meetings(a: &[LaneSpan], b: &[LaneSpan], mut found: impl FnMut(Piece) -> Result<()>) -> Result<()> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let (mut open_a, mut open_b): (Vec<LaneSpan>, Vec<LaneSpan>) = (vec![], vec![]);
    // Spans before marks at the same tick: a mark lies in the span that starts with it.
    let key = |span: &LaneSpan| (span.start, span.is_empty());
    loop {
        let a_is_next = match (a.peek(), b.peek()) {
            (None, None) => return Ok(()),
            // One side is used up and none of its spans is open: nothing overlaps any more.
            (Some(_), None) if open_b.is_empty() => return Ok(()),
            (None, Some(_)) if open_a.is_empty() => return Ok(()),
            (Some(one), Some(other)) => key(one) <= key(other),
            (one, _) => one.is_some(),
        };
        if a_is_next && let Some(span) = a.next() {
            meet(span, &mut open_b, |start, finish, other| found(Piece { start, finish, row: span.row, other }))?;
            add(&mut open_a, span);
        } else if let Some(span) = b.next() {
            meet(span, &mut open_a, |start, finish, row| found(Piece { start, finish, row, other: span.row }))?;
            add(&mut open_b, span);
        }
    }
}

/// Meets a span with the open ones of the other side, and drops those that are over: each one once.
fn meet(span: &LaneSpan, open: &mut Vec<LaneSpan>, mut found: impl FnMut(i64, i64, u32) -> Result<()>) -> Result<()> {
    let mut error = None;
    open.retain(|other| {
        let stays = is_open(other, span);
        if stays && error.is_none() {
            error = found(span.start.max(other.start), span.finish.min(other.finish), other.row).err();
        }
        stays
    });
    error.map_or(Ok(()), Err)
}

/// Whether a span may still meet one that comes up now, or a later one. A mark stays for the other marks of its tick.
fn is_open(span: &LaneSpan, now: &LaneSpan) -> bool {
    now.start < span.finish || (span.start == now.start && span.is_empty())
}

/// Adds a span to the open ones. Before they take more room, those that are over go: they are as many as run at a time.
fn add(open: &mut Vec<LaneSpan>, span: &LaneSpan) {
    if open.len() == open.capacity() {
        open.retain(|other| is_open(other, span));
        open.reserve(open.len().max(64));
    }
    open.push(*span);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn lane(spans: &[(i64, i64)]) -> Vec<LaneSpan> {
        let span = |(row, (start, length)): (u32, &(i64, i64))| LaneSpan::new(*start, start + length, row);
        let mut lane: Vec<LaneSpan> = (0..).zip(spans).map(span).collect();
        sort_lane(&mut lane, &Ties::by_row());
        lane
    }

    proptest! {
        /// Two spans meet when they have a tick in common; a mark is a tick of its own, which it shares with what it lies in.
        #[test]
        fn equals_a_look_at_every_pair(
            a in vec((0..12i64, 0..5i64), 0..9), b in vec((0..12i64, 0..5i64), 0..9),
        ) {
            let mut found = vec![];
            meetings(&lane(&a), &lane(&b), |piece| { found.push(piece); Ok(()) }).unwrap();
            let has = |(start, length): (i64, i64), tick: i64| (start <= tick && tick < start + length) || (length == 0 && tick == start);
            let mut naive = vec![];
            for (row, one) in (0..).zip(&a) {
                for (other, two) in (0..).zip(&b) {
                    let common: Vec<i64> = (0..20).filter(|tick| has(*one, *tick) && has(*two, *tick)).collect();
                    if let (Some(first), Some(last)) = (common.first(), common.last()) {
                        let mark = one.1 == 0 || two.1 == 0;
                        naive.push(Piece { start: *first, finish: if mark { *first } else { last + 1 }, row, other });
                    }
                }
            }
            found.sort_by_key(|piece| (piece.row, piece.other));
            prop_assert_eq!(found, naive);
        }
    }
}
