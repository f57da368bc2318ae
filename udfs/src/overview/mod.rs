//! `overview(tasks, bins, from, to, rows)`: what a picture of any number of tasks shows where they are too short to be drawn.
//!
//! Life of the data: tasks are kept and grouped by lane ([`crate::lanes`]); each lane is sorted by start and its tasks float up into
//! rows ([`rows`]), as those of [`floating_row`](crate::floating_row); each row is swept once.
//!
//! ```text
//!          0 1 2 3 4 5 6 7 8 9 10
//! bins     [-----[-----[-------)    three bins of [0, 10)
//! row 0    [a-)[b--)   [c) [d--)    bin 0: 2 tasks, busy 3, most of it a;  bin 1: 1 task, busy 2, b;  bin 2: 2, busy 3, d
//! row 1      [e)                    bin 0: 1 task, busy 1, e;  the other bins are not there
//! ```

pub mod levels;
pub mod rows;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, Int64Array, StringViewArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_doc::{DocSection, Documentation};

use crate::bins::{BINS_MAX, Edges, within};
use crate::graph::NONE;
use crate::lanes::words::{Words, WordsReading};
use crate::lanes::{BYTES_ON_LANE, Counts, LEFT_OUT, Nulls, Unfinished, extend_reaches, on_lanes, sort_lane};
use crate::overview::rows::{RowBin, SPAN_BYTES, TicksOfNames, rows_of};
use crate::relation::call::{Call, Work};
use crate::relation::parts::{InputPlan, Parts, Share};
use crate::relation::rows::Rows;
use crate::relation::runs::Runs;
use crate::relation::{
    ColumnKind, ColumnSpec, Default, InputSpec, Omitted, OptionKind, OptionSpec, Parameter, RelationFunction, RowOrder,
};
use crate::spans::Window;
use crate::ticks::time_field;

/// The relation function `overview`.
#[derive(Debug)]
pub struct Overview;

static PARAMETERS: [Parameter; 5] = [
    Parameter::Input(InputSpec {
        name: "tasks",
        omitted: Omitted::Table("tasks"),
        columns: &[
            ColumnSpec::needed("start", ColumnKind::Integer),
            ColumnSpec::needed("finish", ColumnKind::Integer),
            ColumnSpec::optional("location", ColumnKind::Text),
            ColumnSpec::optional("name", ColumnKind::Text),
            // Settles ties, as in `floating_row`.
            ColumnSpec::optional("task", ColumnKind::Integer),
        ],
    }),
    Parameter::Option(OptionSpec { name: "bins", kind: OptionKind::Integer, default: Default::Integer(100) }),
    Parameter::Option(OptionSpec { name: "from", kind: OptionKind::Integer, default: Default::Null }),
    Parameter::Option(OptionSpec { name: "to", kind: OptionKind::Integer, default: Default::Null }),
    Parameter::Option(OptionSpec { name: "rows", kind: OptionKind::Integer, default: Default::Null }),
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "What a Gantt chart shows where its tasks are too short to be drawn: for each location, row of the chart and interval of time \
         (bin), how many tasks there are, how long one of them runs, and which name takes most. It is what `tq view` draws.\n\n\
         Rows: one per location, row and bin with a task. `row` is that of `floating_row` over the tasks of the location in the order of \
         start, longer ones first: tasks of a row never overlap. Bins are those of `timeline`. A task counts in every bin that it touches; \
         one without length in the bin of its tick (in the last bin where that is `to`). `name` is the one with most time in the bin.\n\n\
         Units: `bin_start`, `bin_finish`, `busy` and `name_busy` in ticks; `row` and `bin` count from 0.\n\n\
         Nulls: a task without start or finish is left out and counted in a note. Tasks whose location is NULL are those of \
         one location, NULL. A NULL `from` is the first start of the run, a NULL `to` its last finish, a NULL `rows` all rows. `name` \
         is NULL where that of the tasks is, or without a column `name`. One that ends before it starts counts as without length.\n\n\
         Ties: of names with equal time the first in the order of the alphabet, NULL last.\n\n\
         Errors: `bins` below 1 or above 16777216, `rows` below 1, `to` before `from`, a bin beyond BIGINT.\n\n\
         Cost: n log n, and n log r for r rows; 56 bytes a task beside the tasks themselves; beyond half of the memory limit, as much for \
         the tasks of the largest location.\n\n\
         Source: summaries of trace viewers at low zoom (Perfetto's mipmaps of slices keep the longest of each interval; this one adds up).",
        "overview([tasks], [bins => BIGINT], [from => BIGINT], [to => BIGINT], [rows => BIGINT])",
    )
    .with_sql_example(
        "SELECT row, bin, count, busy, name, name_busy FROM overview(\n  \
         (SELECT * FROM (VALUES (0, 2, 'a'), (2, 5, 'b'), (1, 2, 'e'), (6, 7, 'c'), (8, 10, 'd')) AS tasks(start, finish, name)),\n  \
         bins => 3)\nORDER BY row, bin",
    )
    .with_argument("tasks", "Relation: start, finish (BIGINT); optional run, location, name.")
    .with_argument("bins", "How many bins (BIGINT, default 100).")
    .with_argument("from", "Where the window begins (ticks, default: the first start of the run).")
    .with_argument("to", "Where the window ends (ticks, default: the last finish of the run).")
    .with_argument("rows", "How many rows of each location, from the first (BIGINT, default: all).")
    .build()
});

impl RelationFunction for Overview {
    fn name(&self) -> &'static str {
        "overview"
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
            Field::new("row", DataType::Int64, false),
            Field::new("bin", DataType::Int64, false),
            time_field("bin_start", false),
            time_field("bin_finish", false),
            Field::new("count", DataType::Int64, false),
            time_field("busy", false),
            Field::new("name", DataType::Utf8View, true),
            time_field("name_busy", false),
        ]
    }

    fn row_order(&self) -> RowOrder {
        RowOrder::Any
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let bins = match call.options.integer("bins")? {
            None => 100,
            Some(bins) if (1..=BINS_MAX).contains(&bins) => bins as usize,
            Some(bins) => return plan_err!("overview: `bins` is from 1 to {BINS_MAX}, not {bins}"),
        };
        let most_rows = match call.options.integer("rows")? {
            None => usize::MAX,
            Some(rows) if rows >= 1 => usize::try_from(rows).unwrap_or(usize::MAX),
            Some(rows) => return plan_err!("overview: `rows` is at least 1, not {rows}"),
        };
        let window = Window::of(call)?;
        let mut runs = Runs::new();
        let mut parts =
            Parts::read(call, &[InputPlan { input: "tasks", share: Share::Lanes("location"), row_bytes: TASK_BYTES }])?;
        let mut reaches = HashMap::new();
        while let Some([tasks]) = parts.next(call, &mut runs)? {
            extend_reaches(tasks, Nulls::OneLane, &mut reaches)?;
        }
        parts.rewind();
        let mut counts = Counts::default();
        while let Some([tasks]) = parts.next(call, &mut runs)? {
            let names = Names::of(tasks, &mut call.work)?;
            let (lanes, mut of_lanes) =
                on_lanes(tasks, Some("location"), Nulls::OneLane, Unfinished::LeftOut, &mut call.work)?;
            counts = counts.plus(of_lanes.counts);
            let mut ticks_of = TicksOfNames::new(names.texts.len());
            call.work.grow(bins * size_of::<RowBin>() + names.texts.len() * size_of::<i64>())?;
            let (mut found, ties) = (Vec::new(), tasks.ties());
            for (lane, spans) in of_lanes.lanes_by_run(&lanes, &runs) {
                call.work.check()?;
                let run = lanes.lane(lane).run;
                let Some((from, to)) = within(window, reaches.get(&run)) else { continue };
                let Some(edges) = Edges::new(from, to, bins) else {
                    return exec_err!("overview: a bin of the window from {from} to {to} is longer than a BIGINT");
                };
                sort_lane(spans, &ties);
                let of_lane = spans.len() * SPAN_BYTES;
                call.work.grow(of_lane)?;
                let rows = rows_of(spans, |span| (names.of_row[span.row as usize], 0));
                for (place, row) in rows.iter().enumerate().take(most_rows) {
                    found.clear();
                    row.bins(&edges, &mut ticks_of, |_, _| true, |bin| found.push(bin));
                    for found in found.chunks(CHUNK_ROWS) {
                        let location = lanes.texts(std::iter::repeat_n(lane, found.len()))?;
                        emit(call, &runs, (run, location), place, found, &edges, &names)?;
                    }
                }
                call.work.shrink(of_lane);
            }
        }
        counts.note(&call.work, Unfinished::LeftOut, "location", LEFT_OUT);
        Ok(())
    }
}

/// Bytes that a task takes: its name and its span on its lane.
const TASK_BYTES: usize = size_of::<u32>() + BYTES_ON_LANE;

const CHUNK_ROWS: usize = 8192;

/// The names of tasks, numbered in the order of the alphabet.
struct Names {
    texts: StringViewArray,
    /// Of each row of the input, [`NONE`] for none.
    of_row: Vec<u32>,
}

impl Names {
    fn of(tasks: &Rows, work: &mut Work) -> Result<Names> {
        let (mut words, mut reading) = (Words::default(), WordsReading::default());
        work.grow(tasks.len() * size_of::<u32>())?;
        let mut of_row = Vec::with_capacity(tasks.len());
        for batch in tasks.batches() {
            work.check()?;
            let before = words.size();
            match batch.batch.column_by_name("name") {
                Some(names) => words.number(&mut reading, names, &mut of_row)?,
                None => of_row.resize(of_row.len() + batch.batch.num_rows(), NONE),
            }
            work.grow(words.size() - before)?;
        }
        let mut order: Vec<u32> = (0..words.len() as u32).collect();
        order.sort_unstable_by_key(|&word| words.text(word));
        let mut places = vec![0; order.len()];
        for (place, word) in order.iter().enumerate() {
            places[*word as usize] = place as u32;
        }
        for name in of_row.iter_mut().filter(|name| **name != NONE) {
            *name = places[*name as usize];
        }
        let texts = StringViewArray::from_iter_values(order.iter().map(|word| words.text(*word)));
        Ok(Names { texts, of_row })
    }
}

fn emit(
    call: &mut Call,
    runs: &Runs,
    (run, location): (usize, ArrayRef),
    row: usize,
    bins: &[RowBin],
    edges: &Edges,
    names: &Names,
) -> Result<()> {
    let integers =
        |value: &dyn Fn(&RowBin) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(bins.iter().map(value))) };
    let named: UInt32Array = bins.iter().map(|bin| (bin.name != NONE).then_some(bin.name)).collect();
    let columns = vec![
        runs.column(&[(run, bins.len())], call.output().field(0).data_type())?,
        location,
        integers(&|_| row as i64),
        integers(&|bin| bin.bin as i64),
        integers(&|bin| edges.of_bin(bin.bin).0),
        integers(&|bin| edges.of_bin(bin.bin).1),
        integers(&|bin| bin.count),
        integers(&|bin| bin.busy),
        take(&names.texts, &named, None)?,
        integers(&|bin| bin.name_busy),
    ];
    call.emit(columns)
}
