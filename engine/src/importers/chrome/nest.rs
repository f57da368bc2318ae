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
//! Cost: a counting sort by lane, a sort per lane that is not in order, one sweep; 12 bytes a task besides the answer.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::chunk::UNFINISHED;
use super::file::Recording;

/// No task.
pub(super) const NONE: u32 = u32::MAX;

/// Where the tasks of a file stand on their lanes.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    /// The innermost task around each, or [`NONE`].
    pub(super) parents: Vec<u32>,
    /// Depth of each; -1 where it has none.
    pub(super) depths: Vec<i32>,
    /// Tasks by lane, each lane in the order of nesting.
    order: Vec<u32>,
    /// Where each lane ends in `order`.
    ends: Vec<usize>,
    /// Where tasks without an end that lie in one with an end are taken to end.
    ends_with: HashMap<u32, i64>,
    /// Those of them that a `B` began on a thread that goes on behind that time.
    pub(super) cut: Vec<(u32, i64)>,
    /// Tasks that overlap the one around them.
    pub(super) overlaps: u64,
    /// The first of them, with what it overlaps.
    pub(super) example: Option<(u32, u32)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Span {
    start: i64,
    finish: i64,
    row: u32,
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
    fn than(&mut self, span: Span, stack: &[Span], begun: &[u32]) -> usize {
        if begun.is_empty() {
            return 0;
        }
        if self.of != Some((span.start, stack.len())) {
            self.of = Some((span.start, stack.len()));
            self.smallest.clear();
            let same = stack.iter().rev().take_while(|top| top.start == span.start);
            for top in same.take_while(|top| begun.binary_search(&top.row).is_ok()) {
                self.smallest.push(self.smallest.last().map_or(top.row, |least| top.row.min(*least)));
            }
        }
        self.smallest.partition_point(|&row| row > span.row)
    }
}

impl Nesting {
    /// Sorts the tasks of all lanes that `nests` knows, and nests those that it says true for.
    pub(super) fn of(recording: &Recording, lanes: usize, nests: impl Fn(usize) -> Option<bool>) -> Nesting {
        let rows = recording.rows as usize;
        let mut nesting =
            Nesting { parents: vec![NONE; rows], depths: vec![-1; rows], order: vec![0; rows], ..Nesting::default() };
        nesting.group(recording, lanes);
        let mut begun: Vec<u32> = recording.lists.begins.iter().map(|begin| begin.row).collect();
        begun.sort_unstable();
        let mut spans = Vec::new();
        for lane in 0..lanes {
            if let Some(nests) = nests(lane) {
                nesting.sort(lane, recording, &mut spans);
                nesting.sweep(lane, recording, &begun, if nests { &spans } else { &[] });
            }
        }
        nesting
    }

    /// The tasks of a lane in the order of nesting.
    pub(super) fn lane(&self, lane: usize) -> &[u32] {
        let from = if lane == 0 { 0 } else { self.ends[lane - 1] };
        &self.order[from..self.ends[lane]]
    }

    fn group(&mut self, recording: &Recording, lanes: usize) {
        let mut next = vec![0; lanes];
        let columns = || recording.pieces.iter().map(|piece| &piece.tasks.lanes);
        for lane in columns().flatten() {
            next[*lane as usize] += 1;
        }
        let mut total = 0;
        for group in &mut next {
            total += std::mem::replace(group, total);
        }
        for (row, lane) in columns().flatten().enumerate() {
            let place = &mut next[*lane as usize];
            self.order[*place] = row as u32;
            *place += 1;
        }
        // Filled up, the next free place of a lane is its end.
        self.ends = next;
    }

    fn sort(&mut self, lane: usize, recording: &Recording, spans: &mut Vec<Span>) {
        spans.clear();
        let mut piece = 0;
        spans.extend(self.lane(lane).iter().map(|&row| {
            // Rows of a lane ascend, so the pieces are walked once.
            while recording.pieces.get(piece + 1).is_some_and(|next| next.first <= row) {
                piece += 1;
            }
            let tasks = &recording.pieces[piece].tasks;
            let at = (row - recording.pieces[piece].first) as usize;
            let finish = match tasks.finishes[at] {
                UNFINISHED => ENDLESS,
                finish => finish.max(tasks.starts[at]),
            };
            Span { start: tasks.starts[at], finish, row }
        }));
        if !spans.is_sorted_by_key(Span::key) {
            spans.sort_unstable_by_key(Span::key);
        }
        let from = self.ends[lane] - spans.len();
        for (place, span) in self.order[from..self.ends[lane]].iter_mut().zip(spans.iter()) {
            *place = span.row;
        }
    }

    fn sweep(&mut self, lane: usize, recording: &Recording, begun: &[u32], spans: &[Span]) {
        let last = recording.last_times.get(lane).copied();
        let mut later = Later::default();
        let mut stack: Vec<Span> = Vec::new();
        for &(mut span) in spans {
            while stack.last().is_some_and(|top| {
                let closed = || recording.closed_at_once.get(&top.row).is_some_and(|&next| next <= span.row);
                let both_empty = top.is_empty() && span.is_empty();
                top.finish < span.start || (top.finish == span.start && (!both_empty || closed()))
            }) {
                stack.pop();
            }
            let mut around = stack.len();
            if span.is_empty() {
                around -= later.than(span, &stack, begun);
            }
            if around > 0 {
                let top = stack[around - 1];
                if span.is_endless() && !top.is_endless() {
                    span.finish = top.finish;
                    self.ends_with.insert(span.row, top.finish);
                    if last.is_some_and(|last| last > top.finish) && begun.binary_search(&span.row).is_ok() {
                        self.cut.push((span.row, top.finish));
                    }
                }
                if span.finish > top.finish {
                    self.overlaps += 1;
                    self.example.get_or_insert((span.row, top.row));
                    continue;
                }
                self.parents[span.row as usize] = top.row;
            }
            self.depths[span.row as usize] = around as i32;
            if around == stack.len() {
                stack.push(span);
            }
        }
    }

    /// The innermost task of a lane around a time, for any number of those; its end counts as inside. Of several that begin
    /// there, the last one.
    ///
    /// Cost: the times are sorted, and each lane that has any is walked once.
    pub(super) fn around(&self, recording: &Recording, points: &[(usize, i64)]) -> Vec<Option<u32>> {
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_unstable_by_key(|&point| points[point]);
        let mut found = vec![None; points.len()];
        for points_of_lane in order.chunk_by(|&one, &other| points[one].0 == points[other].0) {
            let Some(&first) = points_of_lane.first() else { continue };
            let mut tasks = self.lane(points[first].0).iter().map(|&row| (row, recording.start(row))).peekable();
            // Those that may be around a later time: each ends before the one below it, which begins before it. Where tasks
            // overlap, one that ends before a later one does is never the innermost again.
            let mut open: Vec<(u32, i64)> = Vec::new();
            for &point in points_of_lane {
                let time = points[point].1;
                while let Some((row, _)) = tasks.next_if(|(_, start)| *start <= time) {
                    let finish = self.finish(recording, row);
                    while open.pop_if(|(_, end)| *end <= finish).is_some() {}
                    open.push((row, finish));
                }
                while open.pop_if(|(_, end)| *end < time).is_some() {}
                found[point] = open.last().map(|(row, _)| *row);
            }
        }
        found
    }

    /// Where a task ends for those who ask what is around a time.
    fn finish(&self, recording: &Recording, row: u32) -> i64 {
        match recording.finish(row) {
            UNFINISHED => self.ends_with.get(&row).copied().unwrap_or(ENDLESS),
            finish => finish,
        }
    }

    /// The first task of the lane that begins at `time` or later.
    pub(super) fn next(&self, recording: &Recording, lane: usize, time: i64) -> Option<u32> {
        let order = self.lane(lane);
        order.get(order.partition_point(|&row| recording.start(row) < time)).copied()
    }
}
