//! Two relations of spans matched by lane, and answers made of pieces of spans: what `intersect` and `subtract` share.
//!
//! Spans of the two inputs can overlap when they are of the same run and have the same text in the column `by`. The spans
//! of an input without that column count for every lane of the other, so that windows of time need no location.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::datatypes::DataType;
use datafusion_common::{Result, exec_err, plan_err};

use crate::graph::NONE;
use crate::lanes::{BYTES_ON_LANE, ByLane, Counts, Lanes, Nulls, Unfinished, by_lane};
use crate::relation::call::Call;
use crate::relation::parts::{InputPlan, Parts, Share};
use crate::relation::rows::{EVERY_RUN, Rows};
use crate::relation::runs::Runs;
use crate::relation::{ColumnKind, ColumnSpec, Default, InputSpec, Omitted, OptionKind, OptionSpec, Parameter};

/// The columns that `by` may name, beside `run`.
const KEYS: [&str; 5] = ["location", "name", "kind", "role", "process"];

static COLUMNS: [ColumnSpec; 8] = [
    ColumnSpec::needed("start", ColumnKind::Integer),
    ColumnSpec::needed("finish", ColumnKind::Integer),
    ColumnSpec::optional("location", ColumnKind::Text),
    ColumnSpec::optional("task", ColumnKind::Integer),
    ColumnSpec::optional("name", ColumnKind::Text),
    ColumnSpec::optional("kind", ColumnKind::Text),
    ColumnSpec::optional("role", ColumnKind::Text),
    ColumnSpec::optional("process", ColumnKind::Text),
];

/// `(a, b, [by => VARCHAR])`.
pub(crate) static PARAMETERS: [Parameter; 3] = [
    Parameter::Input(InputSpec { name: "a", omitted: Omitted::Refused, columns: &COLUMNS }),
    Parameter::Input(InputSpec { name: "b", omitted: Omitted::Refused, columns: &COLUMNS }),
    Parameter::Option(OptionSpec { name: "by", kind: OptionKind::Text, default: Default::Text("location") }),
];

/// Rows of both inputs on lanes.
pub(crate) struct Both<'a> {
    pub(crate) lanes: Lanes,
    pub(crate) a_spans: ByLane,
    pub(crate) b_spans: ByLane,
    runs: &'a Runs,
    a: &'a Rows,
    b: &'a Rows,
    /// Whether a lane's text is the location of its spans.
    lane_is_location: bool,
}

/// Reads both inputs and puts their spans on lanes, in parts if memory is short. `nulls` says whether spans of `a` whose `by` is NULL are kept,
/// on a lane that no span of `b` is on.
pub(crate) fn compute(
    call: &mut Call,
    nulls: Nulls,
    mut answer: impl FnMut(&mut Call, &mut Both<'_>) -> Result<()>,
) -> Result<()> {
    let by = call.options.text("by")?.unwrap_or("location").to_owned();
    if by != "run" && !KEYS.contains(&by.as_str()) {
        return plan_err!("{}: `by` is one of run, {}, not '{by}'", call.name(), KEYS.join(", "));
    }
    let mut has = |input: &str, name: &str| -> Result<bool> {
        Ok(call.input(input)?.0.schema().column_with_name(name).is_some())
    };
    let (in_a, in_b, same_runs) = (has("a", &by)?, has("b", &by)?, has("a", "run")? == has("b", "run")?);
    if by != "run" && by != "location" && !in_a && !in_b {
        return plan_err!("{}: neither input has the column `{by}`", call.name());
    }
    let key = Some(by.as_str()).filter(|by| *by != "run" && in_a && in_b);
    let share = key.map_or(Share::Runs, Share::Lanes);
    let plan = |input, share| InputPlan { input, share, row_bytes: BYTES_ON_LANE };
    // An input without a column `run` counts for every run, so each part needs all of it.
    let mut parts = Parts::read(call, &[plan("a", share), plan("b", if same_runs { share } else { Share::All })])?;
    let (mut runs, mut counts) = (Runs::new(), Counts::default());
    while let Some([a, b]) = parts.next(call, &mut runs)? {
        let (mut lanes, work) = (Lanes::new(), &mut call.work);
        let mut lane_of = lanes.number(a, key, nulls, work)?;
        let a_spans = by_lane(a, &mut lane_of, lanes.len(), Unfinished::LeftOut, work)?;
        let mut lane_of = lanes.number(b, key, Nulls::NoLane, work)?;
        let b_spans = by_lane(b, &mut lane_of, lanes.len(), Unfinished::LeftOut, work)?;
        counts = counts.plus(a_spans.counts).plus(b_spans.counts);
        let lane_is_location = key == Some("location");
        answer(call, &mut Both { lanes, a_spans, b_spans, runs: &runs, a, b, lane_is_location })?;
    }
    counts.note(&call.work, Unfinished::LeftOut, &by, ("meets no other", "meet no others"));
    Ok(())
}

impl Both<'_> {
    /// The lane of `b` that belongs to a lane of `a`: the same, unless `b` is of every run.
    pub(crate) fn partner(&self, lane: usize) -> usize {
        self.lanes.find(EVERY_RUN, self.lanes.lane(lane).word).unwrap_or(lane)
    }

    /// Emits pieces as rows of the answer: run, location, start, finish, duration, the task of `a`, and with `others` the task of `b`.
    pub(crate) fn emit(&self, call: &mut Call, pieces: &Pieces, others: bool) -> Result<()> {
        if pieces.pieces.is_empty() {
            return Ok(());
        }
        let runs: Vec<(usize, usize)> =
            pieces.lanes.iter().map(|(lane, count)| (self.lanes.lane(*lane).run, *count)).collect();
        let rows: Vec<u32> = pieces.pieces.iter().map(|piece| piece.row).collect();
        let other_rows: Vec<u32> = pieces.pieces.iter().map(|piece| piece.other).collect();
        let location = if self.lane_is_location {
            self.lanes.texts(pieces.lanes.iter().flat_map(|(lane, count)| std::iter::repeat_n(*lane, *count)))?
        } else if self.a.has("location") || !others {
            self.a.gather("location", &rows, &DataType::Utf8View)?
        } else {
            self.b.gather("location", &other_rows, &DataType::Utf8View)?
        };
        let mut durations = Vec::with_capacity(rows.len());
        for Piece { start, finish, .. } in &pieces.pieces {
            let Some(duration) = finish.checked_sub(*start) else {
                return exec_err!("{}: the piece from {start} to {finish} is longer than a BIGINT", call.name());
            };
            durations.push(duration);
        }
        let times = |value: &dyn Fn(&Piece) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(pieces.pieces.iter().map(value)))
        };
        let mut columns = vec![
            self.runs.column(&runs, call.output().field(0).data_type())?,
            location,
            times(&|piece| piece.start),
            times(&|piece| piece.finish),
            Arc::new(Int64Array::from(durations)),
            self.a.gather("task", &rows, &DataType::Int64)?,
        ];
        if others {
            columns.push(self.b.gather("task", &other_rows, &DataType::Int64)?);
        }
        call.emit(columns)
    }
}

/// A piece of a span of `a`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: i64,
    pub(crate) finish: i64,
    /// The row of `a`.
    pub(crate) row: u32,
    /// The row of `b`, if one takes part.
    pub(crate) other: u32,
}

impl Piece {
    /// A piece of a span of `a` alone.
    pub(crate) fn alone(start: i64, finish: i64, row: u32) -> Piece {
        Piece { start, finish, row, other: NONE }
    }
}

/// Pieces that wait to be emitted.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pub(crate) pieces: Vec<Piece>,
    /// Each lane in turn, and how many of the pieces are on it.
    pub(crate) lanes: Vec<(usize, usize)>,
}

/// Pieces are emitted when there are this many.
pub(crate) const CHUNK_ROWS: usize = 65_536;
