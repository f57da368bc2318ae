//! `message_matrix(messages, locations)`: who sends how much to whom.
//!
//! Life of the data: the locations of both inputs are numbered ([`crate::lanes`]); each run gets a square of sums, into which
//! its messages are added while they are read through; the square is sent on row by row, with the sums of its borders.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion_common::{Result, exec_err};
use datafusion_doc::{DocSection, Documentation};

use crate::graph::NONE;
use crate::lanes::{Lanes, Nulls};
use crate::relation::call::Call;
use crate::relation::rows::{EVERY_RUN, Role, Rows};
use crate::relation::runs::Runs;
use crate::relation::{ColumnKind, ColumnSpec, InputSpec, Omitted, Parameter, RelationFunction};

/// The relation function `message_matrix`.
#[derive(Debug)]
pub struct MessageMatrix;

static PARAMETERS: [Parameter; 2] = [
    Parameter::Input(InputSpec {
        name: "messages",
        omitted: Omitted::Table("messages"),
        columns: &[
            ColumnSpec::needed("source", ColumnKind::Text),
            ColumnSpec::needed("target", ColumnKind::Text),
            ColumnSpec::optional("count", ColumnKind::Integer),
            ColumnSpec::optional("bytes", ColumnKind::Integer),
        ],
    }),
    Parameter::Input(InputSpec {
        name: "locations",
        omitted: Omitted::Table("locations"),
        columns: &[ColumnSpec::needed("location", ColumnKind::Text)],
    }),
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "Who sends how much to whom: messages and bytes for every pair of locations, also those that never sent or received.\n\n\
         Rows: per run that has messages, one for each source and target among its `locations` and the ends of its messages. \
         `count` is the number of messages (the sum of the column `count`, where a row stands for several), `bytes` their \
         size, `source_total` the number of messages that the source sends to all, `target_total` the number that the target \
         receives from all. Give the locations that can send: `(SELECT * FROM locations WHERE kind = 'pe')`; with \
         `(SELECT * FROM locations WHERE false)` those are there that do. A `locations` without `run` is for every run.\n\n\
         Units: bytes in `bytes`, messages in the others.\n\n\
         Nulls: a message without source or target is left out and counted in a note. A NULL `count` is one message, NULL \
         `bytes` are 0.\n\n\
         Ties: none.\n\n\
         Errors: more than 67108864 pairs in a run, a sum beyond BIGINT.\n\n\
         Cost: linear in messages and pairs; 16 bytes a pair.\n\n\
         Source: the communication matrix of trace viewers; as ActorProf's heat maps.",
        "message_matrix([messages], [locations])",
    )
    .with_sql_example(
        "SELECT source, target, count, bytes, source_total, target_total FROM message_matrix(\n  \
         (SELECT * FROM (VALUES ('pe 0', 'pe 1', 8), ('pe 0', 'pe 1', 24)) AS messages(source, target, bytes)),\n  \
         (SELECT * FROM (VALUES ('pe 0'), ('pe 1')) AS locations(location)))\nORDER BY source, target",
    )
    .with_argument("messages", "Relation: source, target (locations, VARCHAR); optional run, count, bytes (BIGINT).")
    .with_argument("locations", "Relation: location (VARCHAR); optional run.")
    .build()
});

impl RelationFunction for MessageMatrix {
    fn name(&self) -> &'static str {
        "message_matrix"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        vec![
            Field::new("source", DataType::Utf8View, false),
            Field::new("target", DataType::Utf8View, false),
            Field::new("count", DataType::Int64, false),
            Field::new("bytes", DataType::Int64, false),
            Field::new("source_total", DataType::Int64, false),
            Field::new("target_total", DataType::Int64, false),
        ]
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let mut runs = Runs::new();
        let messages = Rows::read(call, "messages", Role::First, &["source", "target"], &mut runs)?;
        match messages.left_out {
            0 => {}
            1 => call.work.note("1 message without source or target was left out"),
            many => call.work.note(format!("{many} messages without source or target were left out")),
        }
        let locations = Rows::read(call, "locations", Role::Other, &["location"], &mut runs)?;
        let mut lanes = Lanes::new();
        lanes.number(&locations, Some("location"), Nulls::NoLane, &mut call.work)?;
        let sources = lanes.number(&messages, Some("source"), Nulls::NoLane, &mut call.work)?;
        let targets = lanes.number(&messages, Some("target"), Nulls::NoLane, &mut call.work)?;
        for run in runs.in_order() {
            let square = Square::new(&lanes, run);
            if square.pairs() > PAIRS_MAX {
                return exec_err!(
                    "message_matrix: {} locations are {} pairs, {PAIRS_MAX} are possible",
                    square.lanes.len(),
                    square.pairs()
                );
            }
            let bytes = square.pairs() * 2 * size_of::<i64>();
            call.work.grow(bytes)?;
            let Some(sums) = square.fill(&messages, run, &sources, &targets) else {
                return exec_err!("message_matrix: a sum does not fit a BIGINT");
            };
            emit(call, &runs, run, &lanes, &square, &sums)?;
            call.work.shrink(bytes);
        }
        Ok(())
    }
}

const PAIRS_MAX: usize = 1 << 26;

/// The locations of a run.
struct Square {
    /// Lanes in order, each with the lane of every run that has the same text.
    lanes: Vec<usize>,
    /// Per lane of all runs: its place in the square.
    place: Vec<u32>,
}

/// The sums of a square, row by row.
#[derive(Debug, PartialEq, Eq)]
struct Sums {
    counts: Vec<i64>,
    bytes: Vec<i64>,
}

impl Square {
    fn new(lanes: &Lanes, run: usize) -> Square {
        let mut square = Square { lanes: vec![], place: vec![NONE; lanes.len()] };
        for lane in 0..lanes.len() {
            let of = lanes.lane(lane);
            // A location of every run and the same one of this run are one: the first has the place.
            let same = match of.run {
                EVERY_RUN => lanes.find(run, of.word),
                of_run if of_run == run => lanes.find(EVERY_RUN, of.word),
                _ => continue,
            };
            let known = same.map_or(NONE, |same| square.place[same]);
            square.place[lane] = if known == NONE { square.lanes.len() as u32 } else { known };
            if known == NONE {
                square.lanes.push(lane);
            }
        }
        square
    }

    fn pairs(&self) -> usize {
        self.lanes.len().saturating_mul(self.lanes.len())
    }

    /// The sums over the messages of a run; `None` when one does not fit.
    fn fill(&self, messages: &Rows, run: usize, sources: &[u32], targets: &[u32]) -> Option<Sums> {
        let mut sums = Sums { counts: vec![0; self.pairs()], bytes: vec![0; self.pairs()] };
        for batch in messages.batches() {
            let integers =
                |name: &str| batch.batch.column_by_name(name).map(|column| column.as_primitive::<Int64Type>());
            let (counts, bytes) = (integers("count"), integers("bytes"));
            let value = |column: Option<&Int64Array>, row: usize| {
                column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
            };
            for stretch in batch.stretches.iter().filter(|stretch| stretch.run == Some(run)) {
                for row in stretch.rows.clone() {
                    let (source, target) = (sources[batch.first + row], targets[batch.first + row]);
                    let (source, target) = (self.place[source as usize] as usize, self.place[target as usize] as usize);
                    let pair = source * self.lanes.len() + target;
                    let count = value(counts, row).unwrap_or(1);
                    sums.counts[pair] = sums.counts[pair].checked_add(count)?;
                    sums.bytes[pair] = sums.bytes[pair].checked_add(value(bytes, row).unwrap_or(0))?;
                }
            }
        }
        Some(sums)
    }
}

impl Sums {
    /// The sums of the rows and of the columns; `None` when one does not fit.
    fn totals(&self, side: usize) -> Option<(Vec<i64>, Vec<i64>)> {
        let (mut sources, mut targets) = (vec![0i64; side], vec![0i64; side]);
        for (pair, count) in self.counts.iter().enumerate() {
            sources[pair / side] = sources[pair / side].checked_add(*count)?;
            targets[pair % side] = targets[pair % side].checked_add(*count)?;
        }
        Some((sources, targets))
    }
}

fn emit(call: &mut Call, runs: &Runs, run: usize, lanes: &Lanes, square: &Square, sums: &Sums) -> Result<()> {
    let side = square.lanes.len();
    let Some((sources, targets)) = sums.totals(side) else {
        return exec_err!("message_matrix: a sum does not fit a BIGINT");
    };
    let texts = lanes.texts(square.lanes.iter().copied())?;
    // Some rows of the square at a time.
    let lines = (65_536 / side.max(1)).max(1);
    for from in (0..side).step_by(lines) {
        let pairs = from * side..side.min(from + lines) * side;
        call.work.check()?;
        let pick = |of: &dyn Fn(usize) -> u32| -> Result<ArrayRef> {
            let places = arrow::array::UInt32Array::from_iter_values(pairs.clone().map(of));
            Ok(arrow::compute::take(&texts, &places, None)?)
        };
        let integers =
            |values: &mut dyn Iterator<Item = i64>| -> ArrayRef { Arc::new(Int64Array::from_iter_values(values)) };
        let columns = vec![
            runs.column(&[(run, pairs.len())], call.output().field(0).data_type())?,
            pick(&|pair| (pair / side) as u32)?,
            pick(&|pair| (pair % side) as u32)?,
            integers(&mut sums.counts[pairs.clone()].iter().copied()),
            integers(&mut sums.bytes[pairs.clone()].iter().copied()),
            integers(&mut pairs.clone().map(|pair| sources[pair / side])),
            integers(&mut pairs.clone().map(|pair| targets[pair % side])),
        ];
        call.emit(columns)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn totals_are_the_sums_of_rows_and_columns(counts in vec(0..9i64, 9)) {
            let sums = Sums { counts: counts.clone(), bytes: vec![0; 9] };
            let of_source = |source: usize| (0..3).map(|target| counts[source * 3 + target]).sum::<i64>();
            let of_target = |target: usize| (0..3).map(|source| counts[source * 3 + target]).sum::<i64>();
            prop_assert_eq!(sums.totals(3), Some(((0..3).map(of_source).collect(), (0..3).map(of_target).collect())));
        }
    }

    #[test]
    fn totals_that_do_not_fit() {
        assert_eq!(Sums { counts: vec![i64::MAX, 1, 0, 0], bytes: vec![0; 4] }.totals(2), None);
    }
}
