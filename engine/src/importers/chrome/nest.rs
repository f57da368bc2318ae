//! Nesting: which task encloses which on a thread, where some tasks overlap without nesting.
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
//! One exception, from Perfetto's own cases: an empty `X` at the very start of a `B` that the file begins later lies
//! before it, not inside.
//!
//! Cost: a counting sort by lane, a sort per lane that is not in order, one sweep; 12 bytes a task besides the answer, and 4
//! more for those of lanes with overlaps.

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
    /// Of lanes with overlaps, by place in the lane: the last task before that ends later, or [`NONE`].
    longer: HashMap<usize, Vec<u32>>,
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
}

impl Nesting {
    /// Nests the tasks of all lanes that `nests` says true for.
    pub(super) fn of(recording: &Recording, lanes: usize, nests: impl Fn(usize) -> bool) -> Nesting {
        let rows = recording.rows as usize;
        let mut nesting =
            Nesting { parents: vec![NONE; rows], depths: vec![-1; rows], order: vec![0; rows], ..Nesting::default() };
        nesting.group(recording, lanes);
        let mut begun: Vec<u32> = recording.lists.begins.iter().map(|begin| begin.row).collect();
        begun.sort_unstable();
        let mut spans = Vec::new();
        for lane in (0..lanes).filter(|&lane| nests(lane)) {
            nesting.sweep(lane, recording, &begun, &mut spans);
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

    fn sweep(&mut self, lane: usize, recording: &Recording, begun: &[u32], spans: &mut Vec<Span>) {
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
                // What never ends encloses all that follows.
                UNFINISHED => i64::MAX,
                finish => finish.max(tasks.starts[at]),
            };
            Span { start: tasks.starts[at], finish, row }
        }));
        if !spans.is_sorted_by_key(Span::key) {
            spans.sort_unstable_by_key(Span::key);
        }
        let from = self.ends[lane] - spans.len();
        let overlaps = self.overlaps;
        let mut stack: Vec<Span> = Vec::new();
        for (place, span) in spans.iter().enumerate() {
            self.order[from + place] = span.row;
            while stack.last().is_some_and(|top| {
                let closed = || recording.closed_at_once.get(&top.row).is_some_and(|&next| next <= span.row);
                let both_empty = top.is_empty() && span.is_empty();
                top.finish < span.start || (top.finish == span.start && (!both_empty || closed()))
            }) {
                stack.pop();
            }
            let mut around = stack.len();
            if span.is_empty() && !begun.is_empty() {
                let opens_later =
                    |top: &Span| top.start == span.start && top.row > span.row && begun.binary_search(&top.row).is_ok();
                while around > 0 && opens_later(&stack[around - 1]) {
                    around -= 1;
                }
            }
            if around > 0 {
                let top = stack[around - 1];
                if span.finish > top.finish {
                    self.overlaps += 1;
                    self.example.get_or_insert((span.row, top.row));
                    continue;
                }
                self.parents[span.row as usize] = top.row;
            }
            self.depths[span.row as usize] = around as i32;
            if around == stack.len() {
                stack.push(*span);
            }
        }
        if self.overlaps > overlaps {
            self.longer.insert(lane, longer_before(spans));
        }
    }

    /// The innermost task of the lane around `time`; its end counts as inside. Of several that begin there, the last one.
    pub(super) fn around(&self, recording: &Recording, lane: usize, time: i64) -> Option<u32> {
        let order = self.lane(lane);
        let contains = |row: u32| match recording.finish(row) {
            UNFINISHED => true,
            finish => finish >= time,
        };
        let mut at = order.partition_point(|&row| recording.start(row) <= time).checked_sub(1)?;
        // Where tasks overlap, parents do not lead to all that is around; what ends earlier than one that has ended has, too.
        if let Some(longer) = self.longer.get(&lane) {
            while !contains(order[at]) {
                at = longer.get(at).copied().filter(|&before| before != NONE)? as usize;
            }
            return Some(order[at]);
        }
        let mut row = order[at];
        while !contains(row) {
            row = Some(self.parents[row as usize]).filter(|&parent| parent != NONE)?;
        }
        Some(row)
    }

    /// The first task of the lane that begins at `time` or later.
    pub(super) fn next(&self, recording: &Recording, lane: usize, time: i64) -> Option<u32> {
        let order = self.lane(lane);
        order.get(order.partition_point(|&row| recording.start(row) < time)).copied()
    }
}

/// For each span the place of the last one before it that ends later, or [`NONE`].
fn longer_before(spans: &[Span]) -> Vec<u32> {
    let mut open: Vec<u32> = Vec::new();
    let place = |(place, span): (usize, &Span)| {
        while open.last().is_some_and(|&before| spans[before as usize].finish <= span.finish) {
            open.pop();
        }
        let longer = open.last().copied().unwrap_or(NONE);
        open.push(place as u32);
        longer
    };
    spans.iter().enumerate().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_longer_one_is_found() {
        let finishes = [100, 3, 7, 7, 8, 5, 200];
        let spans: Vec<Span> = finishes.iter().map(|&finish| Span { start: 0, finish, row: 0 }).collect();
        assert_eq!(longer_before(&spans), [NONE, 0, 0, 0, 0, 4, NONE]);
    }
}
