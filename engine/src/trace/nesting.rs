//! Nesting: which task encloses which on a lane, for formats that do not say so themselves.
//!
//! Life of the data: tasks are put into buckets by lane (a counting sort, so that tasks of one lane keep the order of the
//! trace), each lane is sorted by start unless it already is, and one sweep with a stack of open tasks gives every task the
//! innermost one around it. A lane on which two tasks overlap without one enclosing the other has no nesting at all:
//! depths there would depend on the order of the rows.
//! Cost: O(n log n) at worst, O(n) for a trace sorted by start; 16 bytes a task besides the answer. [`NestingOnDisk`] sorts on disk instead,
//! and so are its answers: that a lane does not nest may turn out with its last task, so answers of lanes are dropped when they are read.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::iter::Peekable;

use super::records::{Room, Sorted, Sorter};
use crate::error::ImportError;

/// The lane of a task that cannot be nested: it has no location, or no start.
pub const NO_LANE: i32 = -1;

/// Spans of one run, one per task in the order of positions.
#[derive(Debug, Clone, Copy)]
pub struct LaneSpans<'a> {
    /// Any key per lane, counted from 0 (the keys of `location` will do), or [`NO_LANE`].
    pub lanes: &'a [i32],
    /// First tick.
    pub starts: &'a [i64],
    /// First tick after it; `i64::MAX` for a task that never ended: it encloses all that follows. A finish before the
    /// start counts as the start.
    pub finishes: &'a [i64],
}

/// Where each task stands on its lane.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Nesting {
    /// Nesting depth, 0 outermost; -1 where the lane does not nest.
    pub depths: Vec<i32>,
    /// Position of the innermost enclosing task; -1 without one.
    pub parents: Vec<i64>,
    /// Tasks on lanes that do not nest.
    pub overlapping: u64,
    /// The first pair found that overlaps without nesting, as positions.
    pub example: Option<(usize, usize)>,
}

/// Computes depth and enclosing task of every span, lane by lane.
///
/// A span encloses another when it starts no later and ends no earlier. Of equal spans the one that comes first in the
/// trace is the outer one. A span without length at the end of another lies after it, at its start inside it.
///
/// # Panics
/// When the three slices differ in length.
pub fn nest(spans: LaneSpans<'_>) -> Nesting {
    let count = spans.lanes.len();
    assert!(spans.starts.len() == count && spans.finishes.len() == count, "one lane, start and finish per task");
    let mut nesting = Nesting { depths: vec![-1; count], parents: vec![-1; count], overlapping: 0, example: None };
    let (mut order, ends) = by_lane(spans.lanes);
    let mut stack = Vec::new();
    let mut from = 0;
    for to in ends {
        sweep(&mut order[from..to], spans, &mut stack, &mut nesting);
        from = to;
    }
    nesting
}

/// Positions grouped by lane, and the end of each group. Tasks on [`NO_LANE`] are left out.
fn by_lane(lanes: &[i32]) -> (Vec<usize>, Vec<usize>) {
    let lane_count = lanes.iter().max().map_or(0, |&last| usize::try_from(last + 1).unwrap_or(0));
    let mut next = vec![0; lane_count];
    for lane in lanes.iter().filter_map(|&lane| usize::try_from(lane).ok()) {
        next[lane] += 1;
    }
    let mut total = 0;
    for group in &mut next {
        total += std::mem::replace(group, total);
    }
    let mut order = vec![0; total];
    for (position, &lane) in lanes.iter().enumerate() {
        if let Ok(lane) = usize::try_from(lane) {
            order[next[lane]] = position;
            next[lane] += 1;
        }
    }
    // Filled up, the next free place of a group is its end.
    (order, next)
}

fn sweep(lane: &mut [usize], spans: LaneSpans<'_>, stack: &mut Vec<usize>, nesting: &mut Nesting) {
    let finish = |position: usize| spans.finishes[position].max(spans.starts[position]);
    // Outer before inner: at equal starts the longer span opens first.
    let key = |&position: &usize| (spans.starts[position], Reverse(finish(position)), position);
    if !lane.is_sorted_by_key(key) {
        lane.sort_unstable_by_key(key);
    }
    stack.clear();
    for &position in lane.iter() {
        while stack.last().is_some_and(|&open| finish(open) <= spans.starts[position]) {
            stack.pop();
        }
        if let Some(&open) = stack.last() {
            //   open     [--------)
            //   position      [--------)
            if finish(open) < finish(position) {
                nesting.example.get_or_insert((open, position));
                nesting.overlapping += lane.len() as u64;
                for &position in lane.iter() {
                    nesting.depths[position] = -1;
                    nesting.parents[position] = -1;
                }
                return;
            }
            nesting.parents[position] = open as i64;
        }
        nesting.depths[position] = stack.len() as i32;
        stack.push(position);
    }
}

/// Lane, start, finish and position of a task: the order of nesting.
type OnLane = (i32, i64, Reverse<i64>, u64);

/// [`nest`] of tasks of which there may be more than fit memory.
#[derive(Debug)]
pub(crate) struct NestingOnDisk {
    spans: Sorter<OnLane>,
    room: Room,
    tasks: u64,
}

impl NestingOnDisk {
    /// No task yet.
    pub(crate) fn new(room: &Room) -> NestingOnDisk {
        NestingOnDisk { spans: Sorter::new(room), room: room.clone(), tasks: 0 }
    }

    /// Takes the next task; what it is given is that of [`LaneSpans`].
    ///
    /// # Errors
    /// The pool is exhausted; the disk is full, or cannot be written.
    pub(crate) fn push(&mut self, lane: i32, start: i64, finish: i64) -> Result<(), ImportError> {
        let position = self.tasks;
        self.tasks += 1;
        if lane == NO_LANE { Ok(()) } else { self.spans.push((lane, start, Reverse(finish.max(start)), position)) }
    }

    /// Nests them.
    ///
    /// # Errors
    /// As [`NestingOnDisk::push`], and the disk cannot be read.
    pub(crate) fn finish(self) -> Result<Standing, ImportError> {
        let mut places = Sorter::new(&self.room);
        let mut broken = HashSet::new();
        let (mut overlapping, mut example) = (0, None);
        // The tasks that are open on the lane that is passed, and how many it has.
        let mut stack: Vec<(i64, u64)> = Vec::new();
        let (mut open_lane, mut passed) = (NO_LANE, 0);
        for span in self.spans.sorted()? {
            let (lane, start, Reverse(finish), position) = span?;
            if lane != open_lane {
                (open_lane, passed) = (lane, 0);
                stack.clear();
            }
            passed += 1;
            if broken.contains(&lane) {
                overlapping += 1;
                continue;
            }
            while stack.pop_if(|(end, _)| *end <= start).is_some() {}
            let around = stack.last().copied();
            if let Some((end, other)) = around
                && end < finish
            {
                example.get_or_insert(Overlap { lane, tasks: (other as usize, position as usize) });
                broken.insert(lane);
                overlapping += passed;
                continue;
            }
            let parent = around.map_or(-1, |(_, other)| other as i64);
            places.push((position, lane, parent, stack.len() as i32))?;
            stack.push((finish, position));
        }
        let places = Places::Sorted { places: places.sorted()?.peekable(), broken };
        Ok(Standing { places, next: 0, overlapping, example })
    }
}

/// What [`Nesting`] tells, asked for in the order of positions.
#[derive(Debug)]
pub(crate) struct Standing {
    places: Places,
    next: usize,
    /// Tasks on lanes that do not nest.
    pub(crate) overlapping: u64,
    /// The first pair found that overlaps without nesting.
    pub(crate) example: Option<Overlap>,
}

/// Two tasks of a lane that overlap, and neither encloses the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Overlap {
    pub(crate) lane: i32,
    /// Their positions.
    pub(crate) tasks: (usize, usize),
}

#[derive(Debug)]
enum Places {
    Held(Nesting),
    /// Position, lane, parent and depth; those of broken lanes do not count.
    Sorted {
        places: Peekable<Sorted<(u64, i32, i64, i32)>>,
        broken: HashSet<i32>,
    },
}

/// Of some tasks, a parent and a depth each.
type ParentsAndDepths<'p> = (Cow<'p, [i64]>, Cow<'p, [i32]>);

impl Standing {
    /// What was found of tasks on these lanes.
    pub(crate) fn held(nesting: Nesting, lanes: &[i32]) -> Standing {
        let example = nesting.example.map(|tasks| Overlap { lane: lanes[tasks.0], tasks });
        Standing { overlapping: nesting.overlapping, example, places: Places::Held(nesting), next: 0 }
    }

    /// Parents and depths of the next tasks; -1 as in [`Nesting`].
    ///
    /// # Errors
    /// The disk cannot be read.
    pub(crate) fn next(&mut self, tasks: usize) -> Result<ParentsAndDepths<'_>, ImportError> {
        let first = self.next;
        self.next += tasks;
        let (sorted, broken) = match &mut self.places {
            Places::Held(nesting) => {
                let rows = first..self.next;
                return Ok((Cow::Borrowed(&nesting.parents[rows.clone()]), Cow::Borrowed(&nesting.depths[rows])));
            }
            Places::Sorted { places, broken } => (places, broken),
        };
        let (mut parents, mut depths) = (vec![-1; tasks], vec![-1; tasks]);
        let end = self.next as u64;
        while let Some(place) = sorted.next_if(|place| place.as_ref().map_or(true, |(position, ..)| *position < end)) {
            let (position, lane, parent, depth) = place?;
            if !broken.contains(&lane) {
                let row = position as usize - first;
                (parents[row], depths[row]) = (parent, depth);
            }
        }
        Ok((Cow::Owned(parents), Cow::Owned(depths)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::trace::records::tests::room;

    fn nested(tasks: &[(i32, i64, i64)]) -> Nesting {
        let lanes: Vec<i32> = tasks.iter().map(|task| task.0).collect();
        let starts: Vec<i64> = tasks.iter().map(|task| task.1).collect();
        let finishes: Vec<i64> = tasks.iter().map(|task| task.2).collect();
        nest(LaneSpans { lanes: &lanes, starts: &starts, finishes: &finishes })
    }

    #[test]
    fn inner_tasks_hang_on_the_innermost_around_them() {
        // tick      0 1 2 3 4 5 6 7 8 9
        // lane 0    [0----------------)
        //             [2----)   [3--)
        //             [4)
        // lane 1    [1--)
        let nesting = nested(&[(0, 0, 9), (1, 0, 2), (0, 1, 4), (0, 6, 8), (0, 1, 2)]);
        assert_eq!(nesting.depths, [0, 0, 1, 1, 2]);
        assert_eq!(nesting.parents, [-1, -1, 0, 0, 2]);
        assert_eq!((nesting.overlapping, nesting.example), (0, None));
    }

    #[test]
    fn a_partial_overlap_takes_the_nesting_of_its_lane_only() {
        // lane 0    [0----)
        //              [1----)
        // lane 1    [2----)
        //           [3-)
        let nesting = nested(&[(0, 0, 4), (0, 2, 6), (1, 0, 4), (1, 0, 2)]);
        assert_eq!(nesting.depths, [-1, -1, 0, 1]);
        assert_eq!(nesting.parents, [-1, -1, -1, 2]);
        assert_eq!((nesting.overlapping, nesting.example), (2, Some((0, 1))));
    }

    #[test]
    fn touching_equal_empty_open_and_laneless_spans() {
        let check = |tasks: &[(i32, i64, i64)], depths: &[i32], parents: &[i64]| {
            let nesting = nested(tasks);
            assert_eq!((nesting.depths.as_slice(), nesting.parents.as_slice()), (depths, parents), "{tasks:?}");
        };
        check(&[], &[], &[]);
        check(&[(0, 0, 4), (0, 4, 8)], &[0, 0], &[-1, -1]);
        check(&[(0, 0, 4), (0, 0, 4)], &[0, 1], &[-1, 0]);
        check(&[(0, 4, 4), (0, 0, 4)], &[0, 0], &[-1, -1]);
        check(&[(0, 4, 4), (0, 4, 8)], &[1, 0], &[1, -1]);
        check(&[(0, 4, 4), (0, 4, 4)], &[0, 0], &[-1, -1]);
        check(&[(0, 2, i64::MAX), (0, 4, 8)], &[0, 1], &[-1, 0]);
        check(&[(0, 2, 1), (0, 2, 8)], &[1, 0], &[1, -1]);
        check(&[(NO_LANE, 0, 9), (0, 1, 2)], &[-1, 0], &[-1, -1]);
    }

    proptest! {
        /// The definition, asked of every pair.
        #[test]
        fn equals_the_innermost_of_all_that_enclose(tasks in vec((-1..3i32, 0..12i64, 0..6i64), 0..14)) {
            let tasks: Vec<(i32, i64, i64)> = tasks.into_iter().map(|(lane, start, length)| (lane, start, start + length)).collect();
            let order = |at: usize| (tasks[at].1, Reverse(tasks[at].2), at);
            let mates = |at: usize| (0..tasks.len()).filter(move |&other| other != at);
            let on_lane = |at: usize, other: usize| tasks[at].0 == tasks[other].0 && tasks[at].0 >= 0;
            let around = |at: usize, other: usize| {
                on_lane(at, other) && order(other) < order(at) && tasks[other].2 > tasks[at].1 && tasks[other].2 >= tasks[at].2
            };
            let crosses = |at: usize, other: usize| {
                on_lane(at, other) && order(other) < order(at) && tasks[other].2 > tasks[at].1 && tasks[other].2 < tasks[at].2
            };
            let broken = |lane: i32| (0..tasks.len()).any(|at| tasks[at].0 == lane && mates(at).any(|other| crosses(at, other)));
            let nesting = nested(&tasks);
            let folder = tempfile::tempdir().unwrap();
            let mut on_disk = NestingOnDisk::new(&room(0, folder.path()));
            for &(lane, start, finish) in &tasks {
                on_disk.push(lane, start, finish).unwrap();
            }
            let mut standing = on_disk.finish().unwrap();
            prop_assert_eq!((standing.overlapping, standing.example.map(|pair| pair.tasks)), (nesting.overlapping, nesting.example));
            let (mut parents, mut depths) = (Vec::new(), Vec::new());
            for rows in tasks.chunks(3) {
                let (more_parents, more_depths) = standing.next(rows.len()).unwrap();
                parents.extend_from_slice(&more_parents);
                depths.extend_from_slice(&more_depths);
            }
            prop_assert_eq!((&parents, &depths), (&nesting.parents, &nesting.depths));
            for (at, &(lane, ..)) in tasks.iter().enumerate() {
                let nests = lane >= 0 && !broken(lane);
                let enclosing: Vec<usize> = mates(at).filter(|&other| nests && around(at, other)).collect();
                let innermost = enclosing.iter().copied().max_by_key(|&other| order(other));
                prop_assert_eq!(nesting.depths[at], if nests { enclosing.len() as i32 } else { -1 });
                prop_assert_eq!(nesting.parents[at], innermost.map_or(-1, |other| other as i64));
            }
        }
    }
}
