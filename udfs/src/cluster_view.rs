//! `cluster_view(tasks, limit, from, to)`: a picture of any number of tasks in a limited number of segments.
//!
//! Life of the data: of each batch only the tasks in the window are kept (the batch itself when that is all of them). They
//! are grouped by row (location and depth), and each row is sorted by start. Every task gets a key; the keys that end a
//! segment are the largest ones, found by selection and never by a sort (`First`); a sweep over each row joins each task
//! with those that follow, up to the next one whose key was selected.
//!
//! ```text
//! a [--)                       key of a: finish of b - start of a = 5
//! b    [-)                     key of b: finish of c - start of b = 9
//! c             [---)          the last of a row always stays
//! limit 2: (a b) c             b's key is larger, so a is joined with its right neighbour
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringViewBuilder};
use arrow::compute::kernels::cmp::{gt_eq, lt_eq};
use arrow::compute::{and, filter_record_batch};
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion_common::hash_utils::RandomState;
use datafusion_common::{Result, plan_err};
use datafusion_doc::{DocSection, Documentation};

use crate::graph::NONE;
use crate::lanes::{BYTES_ON_LANE, ByLane, LaneSpan, Lanes, Nulls, Unfinished, by_lane};
use crate::relation::call::{Call, Options, column};
use crate::relation::parts::{InputPlan, Parts, Share};
use crate::relation::rows::{Rows, Ties};
use crate::relation::runs::Runs;
use crate::relation::{
    ColumnKind, ColumnSpec, Default, InputSpec, Omitted, OptionKind, OptionSpec, Parameter, Part, RelationFunction,
    Window,
};
use crate::ticks::time_field;

/// The relation function `cluster_view`.
#[derive(Debug)]
pub struct ClusterView;

static PARAMETERS: [Parameter; 4] = [
    Parameter::Input(InputSpec {
        name: "tasks",
        omitted: Omitted::Table("tasks"),
        columns: &[
            ColumnSpec::needed("start", ColumnKind::Integer),
            ColumnSpec::needed("finish", ColumnKind::Integer),
            ColumnSpec::optional("location", ColumnKind::Text),
            ColumnSpec::optional("depth", ColumnKind::Integer),
            ColumnSpec::optional("task", ColumnKind::Integer),
            ColumnSpec::optional("name", ColumnKind::Text).only_for(&["name"]),
            ColumnSpec::optional("kind", ColumnKind::Text).only_for(&["kind"]),
        ],
    }),
    Parameter::Option(OptionSpec { name: "limit", kind: OptionKind::Integer, default: Default::Integer(256) }),
    Parameter::Option(OptionSpec { name: "from", kind: OptionKind::Integer, default: Default::Null }),
    Parameter::Option(OptionSpec { name: "to", kind: OptionKind::Integer, default: Default::Null }),
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "A picture of any number of tasks in at most `limit` segments: neighbours on a row are joined, those first that lie \
         closest together. A row is one depth of one location.\n\n\
         Rows: one per segment, per run. The tasks of a window closed at both ends are taken, start <= to and finish >= from; \
         they are not cut. Each task of a row but the last has the key finish of the next one - its own start. The `limit` \
         largest keys of a run stay, over all of its rows, the last tasks of rows before all others; every other task is joined \
         with its right neighbour. So there are as many segments as tasks when they are few enough, and one per row when \
         `limit` is below the number of rows. `start` is that of a segment's first task, `finish` that of its last, `count` how \
         many there are. A segment of one task has its `name` and `kind`; others are called `(<count> tasks)` and `clustered`.\n\n\
         Units: `start` and `finish` in ticks.\n\n\
         Nulls: a task without start or finish is left out and counted in a note. NULL is a location and a depth of its own. A \
         NULL window bound leaves that side open.\n\n\
         Ties: of equal keys the one with the smaller task stays; without a column `task`, the one that comes first. Tasks of a \
         row that start together are in the order of their finishes, then of tasks.\n\n\
         Errors: a negative `limit`.\n\n\
         Cost: linear when tasks are sorted by start; 28 bytes a task in the window (beyond half of the memory limit, of the \
         largest lane) and 32 a segment.\n\n\
         Source: the cluster view of Taskflow's profiler (TFProf).",
        "cluster_view([tasks], [limit => BIGINT], [from => BIGINT], [to => BIGINT])",
    )
    .with_sql_example(
        "SELECT start, finish, count, name FROM cluster_view(\n  \
         (SELECT * FROM (VALUES ('a', 0, 3), ('b', 3, 5), ('c', 12, 16)) AS tasks(name, start, finish)), 2)\nORDER BY start",
    )
    .with_argument("tasks", "Relation: start, finish (BIGINT); optional run, location, depth, task, name, kind.")
    .with_argument("limit", "How many segments, over all rows of a run (BIGINT, default 256).")
    .with_argument("from", "Where the window begins (ticks, default: open).")
    .with_argument("to", "The last tick of the window (ticks, default: open).")
    .build()
});

impl RelationFunction for ClusterView {
    fn name(&self) -> &'static str {
        "cluster_view"
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
            Field::new("depth", DataType::Int64, true),
            time_field("start", false),
            time_field("finish", false),
            Field::new("count", DataType::Int64, false),
            Field::new("name", DataType::Utf8View, true),
            Field::new("kind", DataType::Utf8View, true),
        ]
    }

    fn window(&self) -> Option<Window> {
        Some(Window { input: "tasks", columns: ["start", "finish"], options: ["from", "to"] })
    }

    fn part(&self, _: &str, options: &Options) -> Result<Option<Part>> {
        let from = options.integer("from")?.unwrap_or(i64::MIN);
        let to = options.integer("to")?.unwrap_or(i64::MAX);
        Ok(Some(Arc::new(move |batch, without_times| in_window(batch, from, to, without_times))))
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let limit = match call.options.integer("limit")? {
            None => 256,
            Some(limit) if limit >= 0 => usize::try_from(limit).unwrap_or(usize::MAX),
            Some(limit) => return plan_err!("cluster_view: `limit` is {limit}, below 0"),
        };
        let mut runs = Runs::new();
        let share = Share::Lanes("location");
        let mut parts = Parts::read(call, &[InputPlan { input: "tasks", share, row_bytes: BYTES_ON_LANE }])?;
        let left_out = call.input("tasks")?.0.left_out();
        call.work.note_count(
            left_out,
            "task without start or finish was left out",
            "tasks without start or finish were left out",
        );
        // All tasks of a run compete for the room that `limit` leaves.
        let (mut firsts, mut picture): (Vec<First>, _) = (vec![], None);
        let is_one = parts.are_one();
        while let Some([tasks]) = parts.next(call, &mut runs)? {
            let of_part = Picture::of(tasks, call)?;
            firsts.resize_with(runs.len(), || First::new(limit));
            of_part.compete(&mut firsts, &tasks.ties(), call)?;
            picture = Some(of_part).filter(|_| is_one);
        }
        let stay: Vec<Stay> = firsts.into_iter().map(First::finish).collect();
        parts.rewind();
        while let Some([tasks]) = parts.next(call, &mut runs)? {
            let of_part = match picture.take() {
                Some(picture) => picture,
                None => Picture::of(tasks, call)?,
            };
            of_part.answer(&runs, tasks, &stay, call)?;
        }
        Ok(())
    }
}

/// The tasks of whole lanes, by row of the picture.
struct Picture {
    lanes: Lanes,
    rows: Vec<PictureRow>,
    /// The tasks of each row, sorted.
    spans: ByLane,
}

impl Picture {
    fn of(tasks: &Rows, call: &mut Call) -> Result<Picture> {
        let mut lanes = Lanes::new();
        let mut row_of = lanes.number(tasks, Some("location"), Nulls::OneLane, &mut call.work)?;
        let rows = part_by_depth(tasks, &mut row_of, lanes.len())?;
        let mut spans = by_lane(tasks, &mut row_of, rows.len(), Unfinished::LeftOut, &mut call.work)?;
        drop(row_of);
        let ties = tasks.ties();
        for (_, row) in spans.lanes() {
            call.work.check()?;
            sort_row(row, &ties);
        }
        Ok(Picture { lanes, rows, spans })
    }

    fn run(&self, row: usize) -> usize {
        self.lanes.lane(self.rows[row].lane).run
    }

    /// Shows the tasks of each run to those that were the first so far.
    fn compete(&self, firsts: &mut [First], ties: &Ties<'_>, call: &mut Call) -> Result<()> {
        for row in 0..self.rows.len() {
            call.work.check()?;
            let first = &mut firsts[self.run(row)];
            let before = first.size();
            first.show_row(self.spans.lane(row), ties);
            call.work.grow_lasting(first.size() - before)?;
        }
        Ok(())
    }

    /// Sends on the segments of the rows, run by run.
    fn answer(&self, runs: &Runs, tasks: &Rows, stay: &[Stay], call: &mut Call) -> Result<()> {
        let ties = tasks.ties();
        let mut of_runs: Vec<Vec<usize>> = vec![vec![]; runs.len()];
        (0..self.rows.len()).for_each(|row| of_runs[self.run(row)].push(row));
        for run in runs.in_order() {
            let answer = Answer { runs, run, lanes: &self.lanes, tasks, rows: &self.rows };
            let mut found = vec![];
            for row in of_runs[run].iter().copied() {
                call.work.check()?;
                segments(self.spans.lane(row), stay[run], &ties, |segment| found.push((row, segment)));
                if found.len() >= CHUNK_ROWS {
                    emit(call, &answer, &found)?;
                    found.clear();
                }
            }
            emit(call, &answer, &found)?;
        }
        Ok(())
    }
}

const CHUNK_ROWS: usize = 65_536;

/// The tasks of a batch that are in the window.
fn in_window(batch: RecordBatch, from: i64, to: i64, without_times: &AtomicUsize) -> Result<RecordBatch> {
    let (starts, finishes) = (column(&batch, "start")?, column(&batch, "finish")?);
    // Mostly all of a batch is outside, or all inside: counting tells, without a list of rows.
    if starts.null_count() + finishes.null_count() == 0 {
        let times = |column: &ArrayRef| column.as_primitive::<Int64Type>().values().clone();
        let started = times(starts).iter().filter(|start| **start <= to).count();
        if started == 0 {
            return Ok(batch.slice(0, 0));
        }
        let unfinished = times(finishes).iter().filter(|finish| **finish >= from).count();
        match started.min(unfinished) {
            0 => return Ok(batch.slice(0, 0)),
            all if all == batch.num_rows() => return Ok(batch),
            _ => {}
        }
    }
    let begins_before = lt_eq(starts, &Int64Array::new_scalar(to))?;
    let inside = and(&gt_eq(finishes, &Int64Array::new_scalar(from))?, &begins_before)?;
    without_times.fetch_add(inside.null_count(), Ordering::Relaxed);
    Ok(filter_record_batch(&batch, &inside)?)
}

/// A row of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PictureRow {
    lane: usize,
    depth: Option<i64>,
}

/// So many depths of a lane have their rows at hand, found without hashing.
const DEPTHS_AT_HAND: usize = 8;

/// Parts `lanes` lanes by depth: the lane of each task becomes its row in the picture.
fn part_by_depth(tasks: &Rows, lane_of: &mut [u32], lanes: usize) -> Result<Vec<PictureRow>> {
    let mut rows: Vec<PictureRow> = vec![];
    let mut numbers: HashMap<PictureRow, u32, RandomState> = HashMap::default();
    // Per lane and depth modulo their number: the row that was met last, with its depth.
    let mut recent: Vec<[(Option<i64>, u32); DEPTHS_AT_HAND]> = vec![[(None, NONE); DEPTHS_AT_HAND]; lanes];
    for batch in tasks.batches() {
        let depths = batch.batch.column_by_name("depth").map(|depths| depths.as_primitive::<Int64Type>());
        let nulls = depths.and_then(|depths| depths.nulls());
        let of_batch = &mut lane_of[batch.first..batch.first + batch.batch.num_rows()];
        for (place, lane) in of_batch.iter_mut().enumerate().filter(|(_, lane)| **lane != NONE) {
            let is_there = nulls.is_none_or(|nulls| nulls.is_valid(place));
            let depth = depths.filter(|_| is_there).map(|depths| depths.values()[place]);
            let last = &mut recent[*lane as usize][depth.unwrap_or(0) as usize % DEPTHS_AT_HAND];
            if last.0 != depth || last.1 == NONE {
                let row = PictureRow { lane: *lane as usize, depth };
                let number = *numbers.entry(row).or_insert_with(|| {
                    rows.push(row);
                    rows.len() as u32 - 1
                });
                *last = (depth, number);
            }
            *lane = last.1;
        }
    }
    Ok(rows)
}

/// By start; what starts together by finish, since a task without length comes before the one that it touches.
fn sort_row(spans: &mut [LaneSpan], ties: &Ties<'_>) {
    let order = |one: &LaneSpan, other: &LaneSpan| {
        (one.start, one.finish)
            .cmp(&(other.start, other.finish))
            .then_with(|| ties.key(one.row).cmp(&ties.key(other.row)))
    };
    if !spans.is_sorted_by(|one, other| order(one, other).is_le()) {
        spans.sort_unstable_by(order);
    }
}

/// How much room a task needs to stand by itself, and what settles ties. Tasks that stay come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    room: i64,
    tie: Tie,
}

/// See [`Ties::key`].
type Tie = (bool, i64, u32);

impl Key {
    fn room(task: &LaneSpan, next: &LaneSpan) -> i64 {
        next.finish.saturating_sub(task.start)
    }

    fn cmp(&self, other: &Key) -> std::cmp::Ordering {
        other.room.cmp(&self.room).then_with(|| self.tie.cmp(&other.tie))
    }
}

/// Which tasks stay beside the last ones of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stay {
    All,
    /// Those whose keys come no later than this one.
    To(Key),
    None,
}

/// The tasks of a run that stay while it has `limit` marks: the last one of each row, and of the others those that come first. It keeps up to
/// twice as many keys and then drops the later half: a constant number of steps per key, and soon most keys are rejected by
/// one comparison.
struct First {
    limit: usize,
    tasks: usize,
    filled_rows: usize,
    keys: Vec<Key>,
    /// Keys with less room than this one are too late.
    room: i64,
}

impl First {
    fn new(limit: usize) -> First {
        First { limit, tasks: 0, filled_rows: 0, keys: vec![], room: i64::MIN }
    }

    /// Shows the tasks of a row.
    fn show_row(&mut self, row: &[LaneSpan], ties: &Ties<'_>) {
        self.tasks += row.len();
        self.filled_rows += usize::from(!row.is_empty());
        for pair in row.windows(2) {
            let room = Key::room(&pair[0], &pair[1]);
            if room >= self.room {
                self.keys.push(Key { room, tie: ties.key(pair[0].row) });
                if self.keys.len() >= self.limit.saturating_mul(2).max(1_024) {
                    self.cut(self.limit);
                }
            }
        }
    }

    /// Bytes held.
    fn size(&self) -> usize {
        self.keys.capacity() * size_of::<Key>()
    }

    /// Drops all keys but the first `count`, at least one, and returns the last of these. `None`: there are fewer keys.
    fn cut(&mut self, count: usize) -> Option<Key> {
        let count = count.max(1);
        if self.keys.len() < count {
            return None;
        }
        let (_, last, _) = self.keys.select_nth_unstable_by(count - 1, Key::cmp);
        let last = *last;
        self.room = last.room;
        self.keys.truncate(count);
        Some(last)
    }

    fn finish(mut self) -> Stay {
        if self.tasks <= self.limit {
            return Stay::All;
        }
        match self.limit.saturating_sub(self.filled_rows) {
            0 => Stay::None,
            stay => self.cut(stay).map_or(Stay::All, Stay::To),
        }
    }
}

/// Tasks of a row that are shown as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    start: i64,
    finish: i64,
    count: i64,
    /// The row of its last task.
    row: u32,
}

fn segments(row: &[LaneSpan], stay: Stay, ties: &Ties<'_>, mut found: impl FnMut(Segment)) {
    let mut begun: Option<(i64, i64)> = None;
    for (place, task) in row.iter().enumerate() {
        let (start, count) = begun.map_or((task.start, 1), |(start, count)| (start, count + 1));
        let stays = match (row.get(place + 1), stay) {
            (None, _) | (_, Stay::All) => true,
            (_, Stay::None) => false,
            (Some(next), Stay::To(least)) => match Key::room(task, next) {
                room if room == least.room => ties.key(task.row) <= least.tie,
                room => room > least.room,
            },
        };
        if stays {
            found(Segment { start, finish: task.finish, count, row: task.row });
        }
        begun = (!stays).then_some((start, count));
    }
}

/// What an answer is made of.
struct Answer<'a> {
    runs: &'a Runs,
    run: usize,
    lanes: &'a Lanes,
    tasks: &'a Rows,
    rows: &'a [PictureRow],
}

fn emit(call: &mut Call, answer: &Answer<'_>, found: &[(usize, Segment)]) -> Result<()> {
    if found.is_empty() {
        return Ok(());
    }
    let integers = |value: &dyn Fn(&Segment) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(found.iter().map(|(_, segment)| value(segment))))
    };
    let single: Vec<u32> =
        found.iter().map(|(_, segment)| if segment.count == 1 { segment.row } else { NONE }).collect();
    let texts = |name: &str, joined: &dyn Fn(&Segment) -> String| -> Result<ArrayRef> {
        let own = answer.tasks.gather(name, &single, &DataType::Utf8View)?;
        let own = own.as_string_view();
        let mut texts = StringViewBuilder::new();
        for (place, (_, segment)) in found.iter().enumerate() {
            match segment.count {
                1 => texts.append_option(own.is_valid(place).then(|| own.value(place))),
                _ => texts.append_value(joined(segment)),
            }
        }
        Ok(Arc::new(texts.finish()))
    };
    let columns = vec![
        answer.runs.column(&[(answer.run, found.len())], call.output().field(0).data_type())?,
        answer.lanes.texts(found.iter().map(|(row, _)| answer.rows[*row].lane))?,
        Arc::new(found.iter().map(|(row, _)| answer.rows[*row].depth).collect::<Int64Array>()) as ArrayRef,
        integers(&|segment| segment.start),
        integers(&|segment| segment.finish),
        integers(&|segment| segment.count),
        texts("name", &|segment| format!("({} tasks)", segment.count))?,
        texts("kind", &|_| "clustered".to_owned())?,
    ];
    call.emit(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn the_first_of_many_keys_are_found_whatever_their_order() {
        let ties = Ties::by_row();
        for count in [1, 3, 511, 512, 513, 1_500, 3_000] {
            for step in [1u64, 2_999, 1_723] {
                // Rooms twice each, so that ties are cut through.
                // Pairs of tasks: the first of each has the key, and its pair has as much room.
                let rooms: Vec<i64> = (0..3_000u64).map(|place| (place * step % 3_000 / 2) as i64).collect();
                let mut first = First::new(count);
                for (row, room) in (0..).zip(&rooms) {
                    first.show_row(&[LaneSpan::new(0, 0, row), LaneSpan::new(0, *room, row)], &ties);
                }
                let mut sorted: Vec<Key> =
                    (0..).zip(rooms).map(|(row, room)| Key { room, tie: ties.key(row) }).collect();
                sorted.sort_by(Key::cmp);
                assert_eq!(first.cut(count), Some(sorted[count - 1]), "{count} of keys {step} apart");
            }
        }
    }

    proptest! {
        /// Taskflow's own way: while there are too many, the one with the least key joins its right neighbour.
        #[test]
        fn equals_joining_one_by_one(rows in vec(vec((0..4i64, 0..4i64), 0..7), 1..4), limit in 0..12usize) {
            let mut spans = ByLane::default();
            let mut row = 0;
            for lane in &rows {
                let mut free = 0;
                for (gap, length) in lane {
                    spans.spans.push(LaneSpan::new(free + gap, free + gap + length, row));
                    free += gap + length;
                    row += 1;
                }
                spans.ends.push(spans.spans.len());
            }
            let ties = Ties::by_row();
            let numbers: Vec<usize> = (0..rows.len()).collect();
            let mut first = First::new(limit);
            numbers.iter().for_each(|row| first.show_row(spans.lane(*row), &ties));
            let stay = first.finish();
            let (mut found, mut naive) = (vec![], vec![]);
            for row in &numbers {
                segments(spans.lane(*row), stay, &ties, |segment| found.push((*row, segment)));
                let lane = spans.lane(*row);
                for (place, task) in lane.iter().enumerate() {
                    let key = lane.get(place + 1).map(|next| Key::room(task, next));
                    naive.push((*row, Segment { start: task.start, finish: task.finish, count: 1, row: task.row }, key));
                }
            }
            while naive.len() > limit {
                // The least key; of equal ones the larger task.
                let joined = naive.iter().enumerate().filter_map(|(place, (_, segment, key))| Some((place, *key.as_ref()?, segment.row)));
                let Some((place, ..)) = joined.min_by_key(|(_, key, row)| (*key, std::cmp::Reverse(*row))) else { break };
                let (_, left, _) = naive.remove(place);
                naive[place].1.start = left.start;
                naive[place].1.count += left.count;
            }
            prop_assert_eq!(found, naive.into_iter().map(|(row, segment, _)| (row, segment)).collect::<Vec<_>>());
        }
    }
}
