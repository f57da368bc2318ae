//! Lanes: the tasks of one location of one run, as numbers and slices.
//!
//! Life of the data: [`Rows`] keeps an input; [`words`] numbers its locations without looking
//! at the text of each row; [`Lanes`] numbers pairs of run and location; [`by_lane`] puts the spans of each lane side by
//! side (a counting sort, 24 bytes a task); [`nest`] finds out which task encloses which on a lane, [`open`] whose its
//! ticks are. What the functions of
//! lanes have in common about NULLs, reversed and unfinished tasks is decided here, counted in [`Counts`] and said by
//! [`Counts::note`].

pub mod nest;
pub mod open;
pub mod pieces;
pub mod words;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringViewBuilder, UInt32Array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::Int64Type;
use datafusion_common::Result;
use datafusion_common::hash_utils::RandomState;

use crate::graph::NONE;
use crate::lanes::words::{Words, WordsReading};
use crate::relation::call::{Work, column};
use crate::relation::rows::{RowBatch, Rows, Ties};
use crate::relation::runs::Runs;

/// Numbers the lanes: pairs of a run and a text (mostly a location), in the order in which they appear.
#[derive(Debug, Default)]
pub struct Lanes {
    words: Words,
    numbers: HashMap<(u32, u32), u32, RandomState>,
    lanes: Vec<Lane>,
    reading: WordsReading,
    /// Per word: the run in which it was met last, and its lane there. Rows of a run stand together, so this is right
    /// nearly always and saves the look-up.
    recent: Vec<(u32, u32)>,
}

/// A lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane {
    /// The number of its run.
    pub run: usize,
    /// The number of its text, [`NONE`] for NULL.
    pub word: u32,
}

/// Bytes of a lane: itself, in the table of numbers, and in the list of recent ones.
const LANE_BYTES: usize = 48;

/// What becomes of rows whose text is NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    /// They are on no lane.
    NoLane,
    /// They are a lane of their own.
    OneLane,
}

impl Lanes {
    /// No lanes yet.
    pub fn new() -> Self {
        Lanes::default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// About how many bytes are held.
    pub fn size(&self) -> usize {
        self.words.size() + self.lanes.len() * LANE_BYTES
    }

    /// A lane.
    pub fn lane(&self, number: usize) -> Lane {
        self.lanes[number]
    }

    /// The lane of each row; [`NONE`] for rows on no lane, also those of unknown runs. Without a column all rows of a run
    /// are one lane.
    pub fn number(&mut self, rows: &Rows, column: Option<&str>, nulls: Nulls, work: &mut Work) -> Result<Vec<u32>> {
        work.grow(rows.len() * size_of::<u32>())?;
        let mut lanes = Vec::with_capacity(rows.len());
        let mut words = vec![];
        for batch in rows.batches() {
            work.check()?;
            words.clear();
            match column.and_then(|name| batch.batch.column_by_name(name)) {
                Some(texts) => {
                    let before = self.words.size();
                    self.words.number(&mut self.reading, texts, &mut words)?;
                    work.grow(self.words.size() - before)?;
                    self.recent.resize(self.words.len(), (NONE, NONE));
                }
                None => words.resize(batch.batch.num_rows(), NONE),
            }
            let nulls = if column.is_some_and(|name| rows.has(name)) { nulls } else { Nulls::OneLane };
            for stretch in &batch.stretches {
                let words = &words[stretch.rows.clone()];
                match stretch.run {
                    Some(run) => lanes.extend(words.iter().map(|word| self.of(run as u32, *word, nulls))),
                    None => lanes.resize(lanes.len() + words.len(), NONE),
                }
            }
        }
        Ok(lanes)
    }

    /// The lane of a run and a word, if there is one.
    pub fn find(&self, run: usize, word: u32) -> Option<usize> {
        self.numbers.get(&(run as u32, word)).map(|lane| *lane as usize)
    }

    /// The texts of some lanes, each distinct one once: what it costs and holds does not depend on how many lanes there are.
    pub fn texts(&self, lanes: impl Iterator<Item = usize>) -> Result<ArrayRef> {
        let mut texts = StringViewBuilder::new();
        let mut place_of: HashMap<u32, u32, RandomState> = HashMap::default();
        let mut before = (NONE, None);
        let mut place = |word: u32| {
            if word == before.0 {
                return before.1;
            }
            let next = place_of.len() as u32;
            let place = (word != NONE).then(|| {
                *place_of.entry(word).or_insert_with(|| {
                    texts.append_value(self.words.text(word));
                    next
                })
            });
            before = (word, place);
            place
        };
        let places = lanes.map(|lane| place(self.lanes[lane].word)).collect::<UInt32Array>();
        Ok(take(&texts.finish(), &places, None)?)
    }

    #[inline]
    fn of(&mut self, run: u32, word: u32, nulls: Nulls) -> u32 {
        match self.recent.get(word as usize) {
            Some((recent, lane)) if *recent == run => *lane,
            None if nulls == Nulls::NoLane => NONE,
            _ => self.look_up(run, word),
        }
    }

    fn look_up(&mut self, run: u32, word: u32) -> u32 {
        let next = self.lanes.len() as u32;
        let lane = *self.numbers.entry((run, word)).or_insert_with(|| {
            self.lanes.push(Lane { run: run as usize, word });
            next
        });
        if let Some(recent) = self.recent.get_mut(word as usize) {
            *recent = (run, lane);
        }
        lane
    }
}

/// A task on its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneSpan {
    /// First tick.
    pub start: i64,
    /// First tick after it; never before the start.
    pub finish: i64,
    /// The number of its row.
    pub row: u32,
    /// It never ended; its finish is `i64::MAX`.
    pub endless: bool,
}

impl LaneSpan {
    /// A span that ended.
    pub fn new(start: i64, finish: i64, row: u32) -> Self {
        LaneSpan { start, finish: finish.max(start), row, endless: false }
    }

    /// How many ticks it has.
    pub fn ticks(&self) -> u64 {
        self.finish.abs_diff(self.start)
    }

    /// Whether it has no ticks.
    pub fn is_empty(&self) -> bool {
        self.finish <= self.start
    }
}

/// What becomes of tasks that never ended, whose finish is NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfinished {
    /// They are left out.
    LeftOut,
    /// They go on for ever: their finish is `i64::MAX`.
    Endless,
}

/// What [`Counts::note`] says of tasks that were left out.
pub const LEFT_OUT: (&str, &str) = ("was left out", "were left out");

/// Counts of rows that are on no lane, or whose values were corrected.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// The location is NULL.
    pub without_lane: usize,
    /// The start is NULL.
    pub without_start: usize,
    /// The start is there, the finish is NULL.
    pub unfinished: usize,
    /// The finish is before the start, and counts as the start.
    pub reversed: usize,
}

impl Counts {
    /// Says what was counted. `what` says of one and of many tasks without lane or start what became of them.
    pub fn note(&self, work: &Work, unfinished: Unfinished, lane: &str, what: (&str, &str)) {
        let say = |count: usize, one: &str, many: &str| work.note_count(count, one, many);
        say(self.without_lane, &format!("task without {lane} {}", what.0), &format!("tasks without {lane} {}", what.1));
        say(self.without_start, &format!("task without start {}", what.0), &format!("tasks without start {}", what.1));
        match unfinished {
            Unfinished::LeftOut => {
                say(self.unfinished, "task never ended and was left out", "tasks never ended and were left out");
            }
            Unfinished::Endless => say(
                self.unfinished,
                "task never ended: it encloses what follows, and its time is not known",
                "tasks never ended: they enclose what follows, and their times are not known",
            ),
        }
        say(
            self.reversed,
            "task ends before it starts and counts as empty",
            "tasks end before they start and count as empty",
        );
    }

    /// The counts of two inputs.
    pub fn plus(self, other: Counts) -> Counts {
        Counts {
            without_lane: self.without_lane + other.without_lane,
            without_start: self.without_start + other.without_start,
            unfinished: self.unfinished + other.unfinished,
            reversed: self.reversed + other.reversed,
        }
    }
}

/// The spans of all lanes, lane by lane; in each lane in the order of rows.
#[derive(Debug, Default)]
pub struct ByLane {
    /// The spans.
    pub spans: Vec<LaneSpan>,
    /// Per lane: where its spans end.
    pub ends: Vec<usize>,
    /// What was left out or read otherwise.
    pub counts: Counts,
}

impl ByLane {
    /// Each lane with its spans, to be sorted.
    pub fn lanes(&mut self) -> impl Iterator<Item = (usize, &mut [LaneSpan])> {
        let mut rest = self.spans.as_mut_slice();
        let mut from = 0;
        self.ends.iter().enumerate().map(move |(lane, end)| {
            let (spans, others) = std::mem::take(&mut rest).split_at_mut(end - from);
            (rest, from) = (others, *end);
            (lane, spans)
        })
    }

    /// The same in the order of the runs' names, those of a run in the order of their texts, NULL last: whatever the order of the rows.
    pub fn lanes_by_run(&mut self, lanes: &Lanes, runs: &Runs) -> Vec<(usize, &mut [LaneSpan])> {
        let mut ranks = vec![0; runs.len()];
        for (rank, run) in runs.in_order().into_iter().enumerate() {
            ranks[run] = rank;
        }
        let mut all: Vec<_> = self.lanes().collect();
        all.sort_by_cached_key(|(lane, _)| {
            let Lane { run, word } = lanes.lane(*lane);
            (ranks[run], word == NONE, if word == NONE { "" } else { lanes.words.text(word) })
        });
        all
    }

    /// The spans of one lane; none of a lane that was numbered later.
    pub fn lane(&self, lane: usize) -> &[LaneSpan] {
        let Some(to) = self.ends.get(lane) else { return &[] };
        let from = if lane == 0 { 0 } else { self.ends[lane - 1] };
        &self.spans[from..*to]
    }
}

/// Bytes that a task takes on its way to its lane: the lane's number, and its span there.
pub const BYTES_ON_LANE: usize = size_of::<u32>() + size_of::<LaneSpan>();

/// Extends what is known of how far each run reaches, from its first start to its last finish. Tasks that never ended do not count, nor do
/// those on no lane.
pub fn extend_reaches(rows: &Rows, nulls: Nulls, reaches: &mut HashMap<usize, Range<i64>>) -> Result<()> {
    for batch in rows.batches() {
        let (starts, finishes) = bounds(&batch.batch)?;
        let locations = batch.batch.column_by_name("location").filter(|_| nulls == Nulls::NoLane);
        let locations = locations.and_then(|locations| locations.logical_nulls());
        let nulls = NullBuffer::union(NullBuffer::union(starts.nulls(), finishes.nulls()).as_ref(), locations.as_ref());
        for stretch in &batch.stretches {
            let Some(run) = stretch.run else { continue };
            for row in stretch.rows.clone().filter(|row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row))) {
                let (start, finish) = (starts.value(row), finishes.value(row));
                let reach = reaches.entry(run).or_insert(start..finish.max(start));
                *reach = reach.start.min(start)..reach.end.max(finish).max(start);
            }
        }
    }
    Ok(())
}

/// The spans of the rows of an input on their lanes, numbered by a column. See [`Lanes::number`], [`by_lane`].
pub fn on_lanes(
    rows: &Rows,
    column: Option<&str>,
    nulls: Nulls,
    unfinished: Unfinished,
    work: &mut Work,
) -> Result<(Lanes, ByLane)> {
    let mut lanes = Lanes::new();
    let mut lane_of = lanes.number(rows, column, nulls, work)?;
    let spans = by_lane(rows, &mut lane_of, lanes.len(), unfinished, work)?;
    Ok((lanes, spans))
}

/// Groups the spans by lane. Afterwards `lane_of` is [`NONE`] for every row that has no span there.
pub fn by_lane(
    rows: &Rows,
    lane_of: &mut [u32],
    lanes: usize,
    unfinished: Unfinished,
    work: &mut Work,
) -> Result<ByLane> {
    let mut counts = Counts::default();
    let mut next = vec![0usize; lanes];
    for batch in rows.batches() {
        let of_batch = &mut lane_of[batch.first..batch.first + batch.batch.num_rows()];
        leave_out(of_batch, batch, unfinished, &mut counts)?;
        for lane in of_batch.iter().filter(|lane| **lane != NONE) {
            next[*lane as usize] += 1;
        }
    }
    let mut total = 0;
    for count in &mut next {
        total += std::mem::replace(count, total);
    }
    work.grow(total * size_of::<LaneSpan>() + lanes * size_of::<usize>())?;
    let mut spans = vec![LaneSpan::new(0, 0, NONE); total];
    for batch in rows.batches() {
        work.check()?;
        let (starts, finishes) = bounds(&batch.batch)?;
        let of_batch = &lane_of[batch.first..batch.first + batch.batch.num_rows()];
        let nulls = finishes.nulls();
        let times = starts.values().iter().zip(finishes.values());
        for (place, (lane, (&start, &finish))) in of_batch.iter().zip(times).enumerate() {
            if *lane == NONE {
                continue;
            }
            let endless = nulls.is_some_and(|nulls| nulls.is_null(place));
            let finish = if endless { i64::MAX } else { finish };
            counts.reversed += usize::from(finish < start);
            let free = &mut next[*lane as usize];
            let row = (batch.first + place) as u32;
            spans[*free] = LaneSpan { start, finish: finish.max(start), row, endless };
            *free += 1;
        }
    }
    // Filled up, the next free place of a lane is its end.
    Ok(ByLane { spans, ends: next, counts })
}

/// Takes rows off their lanes that have no span.
fn leave_out(lane_of: &mut [u32], batch: &RowBatch, unfinished: Unfinished, counts: &mut Counts) -> Result<()> {
    let (starts, finishes) = bounds(&batch.batch)?;
    for stretch in batch.stretches.iter().filter(|stretch| stretch.run.is_some()) {
        counts.without_lane += lane_of[stretch.rows.clone()].iter().filter(|lane| **lane == NONE).count();
    }
    if starts.null_count() == 0 && finishes.null_count() == 0 {
        return Ok(());
    }
    for (place, lane) in lane_of.iter_mut().enumerate().filter(|(_, lane)| **lane != NONE) {
        if starts.is_null(place) {
            counts.without_start += 1;
            *lane = NONE;
        } else if finishes.is_null(place) {
            counts.unfinished += 1;
            if unfinished == Unfinished::LeftOut {
                *lane = NONE;
            }
        }
    }
    Ok(())
}

fn bounds(batch: &RecordBatch) -> Result<(&Int64Array, &Int64Array)> {
    Ok((column(batch, "start")?.as_primitive::<Int64Type>(), column(batch, "finish")?.as_primitive::<Int64Type>()))
}

/// Brings the spans of a lane into the order of nesting: by start, at equal starts the longer one first, then ties.
pub fn sort_lane(spans: &mut [LaneSpan], ties: &Ties<'_>) {
    let order = |one: &LaneSpan, other: &LaneSpan| {
        (one.start, Reverse(one.finish))
            .cmp(&(other.start, Reverse(other.finish)))
            .then_with(|| ties.key(one.row).cmp(&ties.key(other.row)))
    };
    if !spans.is_sorted_by(|one, other| order(one, other).is_le()) {
        spans.sort_unstable_by(order);
    }
}
