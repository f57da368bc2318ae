//! Nesting: which task encloses which on a thread, also where some tasks overlap without nesting.
//!
//! ```text
//! order      start ascending, then end descending, then place in the file
//! pop        while the top ends before the start, or at it (two empty tasks at one place nest in the order of the file,
//!            unless an `E` closed the first one before the second began)
//! overlap    a task that ends after the top has no parent and no depth, and encloses nothing: it is kept and counted
//! ```
//! GPU streams with overlapping kernels, generators in Python stacks and times rounded to whole µs all overlap; elsewhere
//! on the lane nesting is as good as ever. A `B` that ends after other tasks began is no different from an `X`.
//!
//! A task without an end that begins inside a task with an end is nested in it, as if both ended together. Perfetto gives
//! a `B` the same end as soon as the thread has later events ([`Nesting::cut`]).
//!
//! One exception, from Perfetto's own test cases: an empty `X` at the very start of a `B` that comes later in the file
//! lies before it, not inside.
//!
//! Cost: a counting sort by lane, a sort per lane that is not in order, one sweep; 12 bytes a task besides the answer. Where memory is
//! short, the tasks are sorted on disk, and so are the answers.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::iter::Peekable;
use std::ops::Range;

use datafusion::execution::memory_pool::MemoryReservation;

use super::chunk::UNFINISHED;
use super::file::Recording;
use crate::error::ImportError;
use crate::trace::{List, Room, Sorted, Sorter, record};

/// No task.
pub(super) const NONE: u32 = u32::MAX;

/// Where the tasks of a file stand on their lanes.
#[derive(Debug)]
pub(super) struct Nesting {
    pub(super) places: Places,
    lanes: InOrder,
    /// Tasks without an end that a `B` began inside of one with an end, on a thread that goes on behind that time: where they
    /// are taken to end.
    pub(super) cut: Vec<(u32, i64)>,
    /// Tasks that overlap the one around them.
    pub(super) overlaps: u64,
    /// The first of them, with what it overlaps.
    pub(super) example: Option<(u32, u32)>,
}

/// By task, the innermost one around it, or [`NONE`], and its depth; -1 where it has none.
#[derive(Debug)]
pub(super) enum Places {
    Held {
        parents: Vec<u32>,
        depths: Vec<i32>,
    },
    /// (task, parent, depth) of those that have a depth, from disk.
    Sorted(Peekable<Sorted<(u32, u32, i32)>>),
}

/// Parents and depths of some tasks.
type PlacesOfRows<'p> = (Cow<'p, [u32]>, Cow<'p, [i32]>);

impl Places {
    /// Those of the tasks that follow the ones that were asked for before.
    pub(super) fn next(&mut self, rows: Range<usize>) -> Result<PlacesOfRows<'_>, ImportError> {
        let sorted = match self {
            Places::Held { parents, depths } => {
                return Ok((Cow::Borrowed(&parents[rows.clone()]), Cow::Borrowed(&depths[rows])));
            }
            Places::Sorted(sorted) => sorted,
        };
        let (mut parents, mut depths) = (vec![NONE; rows.len()], vec![-1; rows.len()]);
        let is_here =
            |next: &Result<(u32, u32, i32), _>| next.as_ref().map_or(true, |(row, ..)| (*row as usize) < rows.end);
        while let Some(next) = sorted.next_if(is_here) {
            let (row, parent, depth) = next?;
            (parents[row as usize - rows.start], depths[row as usize - rows.start]) = (parent, depth);
        }
        Ok((parents.into(), depths.into()))
    }
}

/// Tasks by lane, each lane in the order of nesting.
#[derive(Debug)]
enum InOrder {
    Held {
        order: Vec<u32>,
        /// Where each lane ends in `order`.
        ends: Vec<usize>,
        /// Where tasks without an end that lie in one with an end are taken to end.
        ends_with: HashMap<u32, i64>,
    },
    /// Start, finish and row of each, and where each lane ends.
    OnDisk { spans: List<(i64, i64, u32)>, ends: Vec<usize> },
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Span {
    start: i64,
    finish: i64,
    row: u32,
    /// Where an `E` closed it when it began: the row of the task that comes next in the file.
    closed_before: Option<u32>,
    /// Whether a `B` began it.
    is_begun: bool,
}

impl Span {
    fn key(&self) -> (i64, Reverse<i64>, u32) {
        (self.start, Reverse(self.finish), self.row)
    }

    fn is_empty(&self) -> bool {
        self.start == self.finish
    }

    fn is_endless(&self) -> bool {
        self.finish == ENDLESS
    }
}

/// A span in the order of lanes and of nesting.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct OnLane {
    lane: i32,
    start: i64,
    finish: Reverse<i64>,
    row: u32,
    closed_before: Option<u32>,
    is_begun: bool,
}

record!(OnLane { lane, start, finish, row, closed_before, is_begun });

/// The end of what has none: it encloses all that follows.
const ENDLESS: i64 = i64::MAX;

/// Of the open tasks that begin at one tick: how many, counted from the innermost, a `B` began that stands later in the file
/// than a given row.
#[derive(Default)]
struct Later {
    /// The tick, and how many tasks were open when this was found out.
    of: Option<(i64, usize)>,
    /// The smallest row of the innermost one, two, three … of them.
    smallest: Vec<u32>,
}

impl Later {
    fn than(&mut self, span: Span, stack: &[Span]) -> usize {
        if self.of != Some((span.start, stack.len())) {
            self.of = Some((span.start, stack.len()));
            self.smallest.clear();
            let same = stack.iter().rev().take_while(|top| top.start == span.start);
            for top in same.take_while(|top| top.is_begun) {
                self.smallest.push(self.smallest.last().map_or(top.row, |least| top.row.min(*least)));
            }
        }
        self.smallest.partition_point(|&row| row > span.row)
    }
}

/// A lane while its tasks are nested in their order.
struct Sweep {
    /// The last time at which anything happens on the lane, where a `B` has no `E`.
    last: Option<i64>,
    later: Later,
    stack: Vec<Span>,
    found: Found,
    memory: MemoryReservation,
    room: Room,
}

/// What is said of all lanes, as in [`Nesting`].
#[derive(Default)]
struct Found {
    cut: Vec<(u32, i64)>,
    overlaps: u64,
    example: Option<(u32, u32)>,
}

/// What nesting found out about a task.
struct Placed {
    parent: u32,
    /// -1 where it overlaps the task around it.
    depth: i32,
    finish: i64,
}

/// A stack of up to this many tasks is not charged to the memory pool.
const SHALLOW: usize = 4096;

impl Sweep {
    fn new(room: &Room) -> Sweep {
        let (memory, room) = (room.hold(), room.clone());
        Sweep { last: None, later: Later::default(), stack: Vec::new(), found: Found::default(), memory, room }
    }

    fn begin(&mut self, lane: usize, recording: &Recording) {
        self.last = recording.last_times.get(lane).copied();
        self.later = Later::default();
        self.stack.clear();
    }

    fn place(&mut self, mut span: Span) -> Result<Placed, ImportError> {
        let (stack, found) = (&mut self.stack, &mut self.found);
        while stack.last().is_some_and(|top| {
            let closed = || top.closed_before.is_some_and(|next| next <= span.row);
            let both_empty = top.is_empty() && span.is_empty();
            top.finish < span.start || (top.finish == span.start && (!both_empty || closed()))
        }) {
            stack.pop();
        }
        let mut around = stack.len();
        if span.is_empty() {
            around -= self.later.than(span, stack);
        }
        let mut parent = NONE;
        if around > 0 {
            let top = stack[around - 1];
            if span.is_endless() && !top.is_endless() {
                span.finish = top.finish;
                if self.last.is_some_and(|last| last > top.finish) && span.is_begun {
                    found.cut.push((span.row, top.finish));
                }
            }
            if span.finish > top.finish {
                found.overlaps += 1;
                found.example.get_or_insert((span.row, top.row));
                return Ok(Placed { parent: NONE, depth: -1, finish: span.finish });
            }
            parent = top.row;
        }
        if around == stack.len() {
            if stack.len() == stack.capacity() && stack.len() >= SHALLOW {
                self.room.resize(&self.memory, 3 * stack.len() * size_of::<Span>())?;
            }
            stack.push(span);
        }
        Ok(Placed { parent, depth: around as i32, finish: span.finish })
    }
}

impl Nesting {
    /// Sorts the tasks of all lanes that `nests` knows, and nests those that it says true for.
    pub(super) fn of(
        recording: &Recording,
        lanes: usize,
        nests: impl Fn(usize) -> Option<bool>,
        at_once: Sorter<(u32, u32)>,
    ) -> Result<Nesting, ImportError> {
        let at_once = at_once.sorted()?;
        match recording.is_large() {
            true => Nesting::on_disk(recording, lanes, nests, at_once),
            false => Nesting::in_memory(recording, lanes, nests, at_once),
        }
    }

    fn in_memory(
        recording: &Recording,
        lanes: usize,
        nests: impl Fn(usize) -> Option<bool>,
        at_once: Sorted<(u32, u32)>,
    ) -> Result<Nesting, ImportError> {
        let rows = recording.rows as usize;
        let tasks = Tasks::of(recording, at_once)?;
        let (mut parents, mut depths) = (vec![NONE; rows], vec![-1; rows]);
        let (mut order, ends) = tasks.by_lane(rows, lanes);
        let mut ends_with = HashMap::new();
        let (mut spans, mut sweep) = (Vec::new(), Sweep::new(&recording.room));
        let mut from = 0;
        for (lane, &to) in ends.iter().enumerate() {
            let of_lane = &mut order[from..to];
            from = to;
            let Some(nests) = nests(lane) else { continue };
            tasks.sort(of_lane, &mut spans);
            sweep.begin(lane, recording);
            for &span in spans.iter().filter(|_| nests) {
                let placed = sweep.place(span)?;
                (parents[span.row as usize], depths[span.row as usize]) = (placed.parent, placed.depth);
                if placed.finish != span.finish {
                    ends_with.insert(span.row, placed.finish);
                }
            }
        }
        let Found { cut, overlaps, example } = sweep.found;
        let lanes = InOrder::Held { order, ends, ends_with };
        Ok(Nesting { places: Places::Held { parents, depths }, lanes, cut, overlaps, example })
    }

    fn on_disk(
        recording: &Recording,
        lanes: usize,
        nests: impl Fn(usize) -> Option<bool>,
        at_once: Sorted<(u32, u32)>,
    ) -> Result<Nesting, ImportError> {
        let room = &recording.room;
        let (mut places, mut spans, mut ends) = (Sorter::new(room), List::new(room), Vec::new());
        // Only flows look for tasks by time.
        let are_asked = !recording.lists.flows.is_empty();
        let mut sweep = Sweep::new(room);
        let (mut open_lane, mut nests_here) = (None, false);
        for span in by_lane_on_disk(recording, &nests, at_once)?.sorted()? {
            let OnLane { lane, start, finish: Reverse(mut finish), row, closed_before, is_begun } = span?;
            let lane = lane as usize;
            if open_lane != Some(lane) {
                ends.resize(lane, spans.len());
                (open_lane, nests_here) = (Some(lane), nests(lane) == Some(true));
                sweep.begin(lane, recording);
            }
            if nests_here {
                let placed = sweep.place(Span { start, finish, row, closed_before, is_begun })?;
                finish = placed.finish;
                if placed.depth >= 0 {
                    places.push((row, placed.parent, placed.depth))?;
                }
            }
            if are_asked {
                spans.push((start, finish, row))?;
            }
        }
        ends.resize(lanes, spans.len());
        let Found { cut, overlaps, example } = sweep.found;
        let places = Places::Sorted(places.sorted()?.peekable());
        Ok(Nesting { places, lanes: InOrder::OnDisk { spans, ends }, cut, overlaps, example })
    }

    /// Start, finish and row of the tasks of a lane, in the order of nesting.
    fn lane<'n>(&'n self, recording: &'n Recording, lane: usize) -> Box<dyn Iterator<Item = SpanOfRow> + 'n> {
        let (InOrder::Held { ends, .. } | InOrder::OnDisk { ends, .. }) = &self.lanes;
        let from = if lane == 0 { 0 } else { ends[lane - 1] };
        match &self.lanes {
            InOrder::OnDisk { spans, .. } => Box::new(spans.iter_from(from).take(ends[lane] - from)),
            InOrder::Held { order, ends_with, .. } => Box::new(order[from..ends[lane]].iter().map(move |&row| {
                let finish = match recording.finish(row)? {
                    UNFINISHED => ends_with.get(&row).copied().unwrap_or(ENDLESS),
                    finish => finish,
                };
                Ok((recording.start(row)?, finish, row))
            })),
        }
    }

    /// Looks for tasks by time; the answer has those that there are, by the number of the question.
    ///
    /// Cost: the questions are sorted, and each lane that has any is walked once.
    pub(super) fn find(&self, recording: &Recording, asked: Sorter<Asked>) -> Result<Sorter<(u64, u32)>, ImportError> {
        let mut found = Sorter::new(&recording.room);
        let mut asked = asked.sorted()?.peekable();
        while let Some(lane) = asked.peek().and_then(|next| next.as_ref().ok()).map(|next| next.lane) {
            let mut passed = Passed { tasks: self.lane(recording, lane as usize).peekable(), open: Vec::new() };
            // The first task that begins at a time or later.
            let mut following: Option<(i64, Option<u32>)> = None;
            while let Some(next) = asked.next_if(|next| next.as_ref().map_or(true, |next| next.lane == lane)) {
                let Asked { time, number, is_next, .. } = next?;
                if following.is_none_or(|(of, _)| of != time) {
                    passed.while_start(|start| start < time)?;
                    following = Some((time, passed.next()?));
                }
                let row = match is_next {
                    true => following.and_then(|(_, row)| row),
                    false => passed.around(time)?,
                };
                if let Some(row) = row {
                    found.push((number, row))?;
                }
            }
        }
        asked.next().transpose()?;
        Ok(found)
    }
}

/// The tasks of a lane, passed in their order.
struct Passed<I: Iterator> {
    tasks: Peekable<I>,
    /// Those that may be around a later time: each ends before the one below it, which begins before it. Where tasks overlap, one that
    /// ends before a later one does is never the innermost again.
    open: Vec<(u32, i64)>,
}

impl<I: Iterator<Item = SpanOfRow>> Passed<I> {
    fn while_start(&mut self, is_in: impl Fn(i64) -> bool) -> Result<(), ImportError> {
        while let Some(task) = self.tasks.next_if(|task| task.as_ref().map_or(true, |(start, ..)| is_in(*start))) {
            let (_, finish, row) = task?;
            while self.open.pop_if(|(_, end)| *end <= finish).is_some() {}
            self.open.push((row, finish));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<u32>, ImportError> {
        match self.tasks.peek() {
            Some(Ok((.., row))) => Ok(Some(*row)),
            Some(Err(_)) => Ok(self.tasks.next().transpose()?.map(|(.., row)| row)),
            None => Ok(None),
        }
    }

    fn around(&mut self, time: i64) -> Result<Option<u32>, ImportError> {
        self.while_start(|start| start <= time)?;
        while self.open.pop_if(|(_, end)| *end < time).is_some() {}
        Ok(self.open.last().map(|(row, _)| *row))
    }
}

/// Start, finish and row of a task.
type SpanOfRow = Result<(i64, i64, u32), ImportError>;

/// A question for a task of a lane: the innermost one around a time (its end counts as inside; of several that begin there, the last one), or
/// the first one that begins then or later.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Asked {
    pub(super) lane: i32,
    pub(super) time: i64,
    pub(super) number: u64,
    pub(super) is_next: bool,
}

record!(Asked { lane, time, number, is_next });

/// The end of a task for those inside.
fn end_of(start: i64, finish: i64) -> i64 {
    if finish == UNFINISHED { ENDLESS } else { finish.max(start) }
}

/// The tasks of all lanes that `nests` knows.
fn by_lane_on_disk(
    recording: &Recording,
    nests: impl Fn(usize) -> Option<bool>,
    at_once: Sorted<(u32, u32)>,
) -> Result<Sorter<OnLane>, ImportError> {
    let mut sorter = Sorter::new(&recording.room);
    let (mut at_once, mut begun) = (at_once.peekable(), recording.lists.begun.iter().peekable());
    for piece in &recording.pieces {
        let (starts, finishes, lanes) = (piece.starts.values()?, piece.finishes.values()?, piece.lanes.values()?);
        let spans = starts.iter().zip(finishes.iter()).zip(lanes.iter());
        for (row, ((&start, &finish), &lane)) in (piece.first..).zip(spans) {
            let closed = at_once.next_if(|next| next.as_ref().map_or(true, |(closed, _)| *closed == row));
            let begun = begun.next_if(|next| next.as_ref().map_or(true, |begun| *begun == row));
            let (closed_before, is_begun) = (closed.transpose()?.map(|(_, next)| next), begun.transpose()?.is_some());
            if nests(lane as usize).is_some() {
                let finish = Reverse(end_of(start, finish));
                sorter.push(OnLane { lane, start, finish, row, closed_before, is_begun })?;
            }
        }
    }
    Ok(sorter)
}

/// The tasks of a file in memory.
struct Tasks<'r> {
    pieces: Vec<PieceOfTasks<'r>>,
    /// By row, whether a `B` began it; nothing where none did.
    begun: Vec<bool>,
    at_once: HashMap<u32, u32>,
}

struct PieceOfTasks<'r> {
    first: u32,
    starts: Cow<'r, [i64]>,
    finishes: Cow<'r, [i64]>,
    lanes: Cow<'r, [i32]>,
}

impl<'r> Tasks<'r> {
    fn of(recording: &'r Recording, at_once: Sorted<(u32, u32)>) -> Result<Tasks<'r>, ImportError> {
        let mut pieces = Vec::with_capacity(recording.pieces.len());
        for piece in &recording.pieces {
            let (starts, finishes, lanes) = (piece.starts.values()?, piece.finishes.values()?, piece.lanes.values()?);
            pieces.push(PieceOfTasks { first: piece.first, starts, finishes, lanes });
        }
        let mut begun = Vec::new();
        for rows in recording.lists.begun.chunks() {
            begun.resize(recording.rows as usize, false);
            rows?.iter().for_each(|row| begun[*row as usize] = true);
        }
        Ok(Tasks { pieces, begun, at_once: at_once.collect::<Result<_, _>>()? })
    }

    /// Rows by lane, and where each lane ends.
    fn by_lane(&self, rows: usize, lanes: usize) -> (Vec<u32>, Vec<usize>) {
        let mut next = vec![0; lanes];
        let lanes_of_rows = || self.pieces.iter().flat_map(|piece| piece.lanes.iter());
        for lane in lanes_of_rows() {
            next[*lane as usize] += 1;
        }
        let mut total = 0;
        for group in &mut next {
            total += std::mem::replace(group, total);
        }
        let mut order = vec![0; rows];
        for (row, lane) in lanes_of_rows().enumerate() {
            let place = &mut next[*lane as usize];
            order[*place] = row as u32;
            *place += 1;
        }
        // Filled up, the next free place of a lane is its end.
        (order, next)
    }

    /// Brings the rows of a lane into the order of nesting, with their spans.
    fn sort(&self, rows: &mut [u32], spans: &mut Vec<Span>) {
        spans.clear();
        let mut piece = 0;
        spans.extend(rows.iter().map(|&row| {
            // Rows of a lane ascend, so the pieces are walked once.
            while self.pieces.get(piece + 1).is_some_and(|next| next.first <= row) {
                piece += 1;
            }
            let tasks = &self.pieces[piece];
            let at = (row - tasks.first) as usize;
            let (start, finish) = (tasks.starts[at], end_of(tasks.starts[at], tasks.finishes[at]));
            let closed_before = if start == finish { self.at_once.get(&row).copied() } else { None };
            let is_begun = self.begun.get(row as usize).copied().unwrap_or(false);
            Span { start, finish, row, closed_before, is_begun }
        }));
        if !spans.is_sorted_by_key(Span::key) {
            spans.sort_unstable_by_key(Span::key);
        }
        for (place, span) in rows.iter_mut().zip(spans.iter()) {
            *place = span.row;
        }
    }
}
