//! Lanes cut into segments: stretches of time in which one task is the innermost.
//!
//! ```text
//! a [-------------)        a, then b on top of it, then a again; tasks that cross
//!      b [---)             belong to the one that began last, as long as it runs
//!   aaa  bbbb  aaaa
//! ```
//! A lane is sorted when the path first reaches it, so a lane that it never visits costs one number per task. From then on it is cut a
//! block of tasks at a time, from its end on: the times of successive look-ups in a lane never increase. One pass over the lane
//! remembers which tasks are open where each block begins, and all look-ups together take linear time.

use std::cmp::Reverse;

use datafusion_common::Result;

use crate::executed::Times;
use crate::graph::NONE;
use crate::relation::call::Work;

/// A stretch in which one task is the innermost of its lane; never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) start: i64,
    pub(crate) finish: i64,
    pub(crate) task: u32,
}

/// The lanes of a run.
pub(crate) struct Lanes<'a> {
    times: &'a Times,
    /// Tasks lane by lane.
    tasks: Vec<u32>,
    /// Per lane: where its tasks end.
    ends: Vec<usize>,
    /// Per lane: what is left of it, once it was asked for.
    left: Vec<Option<Left>>,
    /// Least tasks of a block.
    block: usize,
}

/// A lane, as far as further questions can reach.
#[derive(Debug, Default)]
struct Left {
    /// Blocks that are not cut yet, by start.
    blocks: Vec<Block>,
    /// Where their tasks end.
    until: usize,
    /// Tasks that are open where the blocks begin, block by block, each from the outermost to the innermost.
    open: Vec<u32>,
    /// Segments of the block that was cut last, by start.
    segments: Vec<Segment>,
}

/// Tasks of a lane that follow each other.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Its first task, among those of the lane.
    first: usize,
    /// Where its open tasks begin.
    open: usize,
}

/// Tasks of a block: their segments stay in the cache.
const BLOCK: usize = 4096;

impl<'a> Lanes<'a> {
    /// Sorts the tasks by lane; `lanes` is how many lane numbers there are.
    pub(crate) fn new(times: &'a Times, lanes: usize, work: &mut Work) -> Result<Self> {
        let takes_part = |task: &u32| {
            let place = *task as usize;
            times.known(*task) && times.lane[place] != NONE && times.start[place] < times.finish[place]
        };
        let all = || (0..times.start.len() as u32).filter(takes_part);
        let mut next = vec![0usize; lanes];
        all().for_each(|task| next[times.lane[task as usize] as usize] += 1);
        let mut total = 0;
        for count in &mut next {
            total += std::mem::replace(count, total);
        }
        work.grow(total * size_of::<u32>() + lanes * (size_of::<usize>() + size_of::<Option<Left>>()))?;
        let mut tasks = vec![NONE; total];
        for task in all() {
            let free = &mut next[times.lane[task as usize] as usize];
            tasks[*free] = task;
            *free += 1;
        }
        let left = (0..lanes).map(|_| None).collect();
        Ok(Lanes { times, tasks, ends: next, left, block: BLOCK })
    }

    /// The segment of a lane that begins last before `time`. Times never increase from call to call.
    pub(crate) fn before(&mut self, lane: u32, time: i64, work: &mut Work) -> Result<Option<Segment>> {
        let Some(known) = self.left.get_mut(lane as usize) else { return Ok(None) };
        let from = if lane == 0 { 0 } else { self.ends[lane as usize - 1] };
        let tasks = &mut self.tasks[from..self.ends[lane as usize]];
        let left = match known {
            Some(left) => left,
            None => known.insert(Left::of(self.times, tasks, self.block, work)?),
        };
        loop {
            while left.segments.last().is_some_and(|segment| segment.start >= time) {
                left.segments.pop();
            }
            if let Some(segment) = left.segments.last() {
                return Ok(Some(*segment));
            }
            if !left.cut_block(self.times, tasks, work)? {
                return Ok(None);
            }
        }
    }
}

impl Left {
    /// Sorts the tasks of a lane, and divides them into blocks of at least so many.
    fn of(times: &Times, tasks: &mut [u32], block: usize, work: &mut Work) -> Result<Left> {
        let key = |task: &u32| (times.start[*task as usize], Reverse(times.finish[*task as usize]), *task);
        if !tasks.is_sorted_by_key(key) {
            tasks.sort_unstable_by_key(key);
        }
        work.check()?;
        let mut left = Left { until: tasks.len(), ..Left::default() };
        let mut open: Vec<u32> = vec![];
        for (place, task) in tasks.iter().enumerate() {
            let start = times.start[*task as usize];
            while open.last().is_some_and(|task| times.finish[*task as usize] <= start) {
                open.pop();
            }
            // So that all blocks together have no more open tasks than the lane has tasks.
            let begins = left.blocks.last().is_none_or(|last| place - last.first >= open.len().max(block));
            if begins {
                left.blocks.push(Block { first: place, open: left.open.len() });
                left.open.extend(&open);
            }
            open.push(*task);
        }
        work.grow(left.blocks.len() * size_of::<Block>() + left.open.len() * size_of::<u32>())?;
        Ok(left)
    }

    /// Cuts the last block of those that are left into segments; `false`: there is none.
    fn cut_block(&mut self, times: &Times, tasks: &[u32], work: &mut Work) -> Result<bool> {
        let Some(block) = self.blocks.pop() else { return Ok(false) };
        work.check()?;
        let (start, finish) = (|task: u32| times.start[task as usize], |task: u32| times.finish[task as usize]);
        let of_block = &tasks[block.first..self.until];
        let mut open = self.open.split_off(block.open);
        // Each task begins a segment and lets another go on.
        let most = 2 * of_block.len() + open.len();
        work.grow(most.saturating_sub(self.segments.capacity()) * size_of::<Segment>())?;
        self.segments.reserve_exact(most);
        let mut now = start(of_block[0]);
        let segments = &mut self.segments;
        let mut run_until = |open: &mut Vec<u32>, until: i64| {
            while let Some(&task) = open.last().filter(|_| now < until) {
                if finish(task) <= now {
                    open.pop();
                    continue;
                }
                let end = finish(task).min(until);
                segments.push(Segment { start: now, finish: end, task });
                now = end;
            }
            now = until;
        };
        for task in of_block {
            run_until(&mut open, start(*task));
            open.push(*task);
        }
        run_until(&mut open, tasks.get(self.until).map_or(i64::MAX, |next| start(*next)));
        self.until = block.first;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executed::Activity;
    use proptest::collection::vec;
    use proptest::prelude::*;

    pub(crate) fn on_one_lane(spans: &[(i64, i64)]) -> Times {
        Times {
            start: spans.iter().map(|span| span.0).collect(),
            finish: spans.iter().map(|span| span.1).collect(),
            lane: vec![0; spans.len()],
            activity: vec![Activity::Works; spans.len()],
        }
    }

    /// The segments of the only lane, cut into blocks of at least so many tasks.
    fn cut(times: &Times, block: usize) -> Vec<(i64, i64, u32)> {
        let work = &mut Work::for_tests();
        let mut lanes = Lanes::new(times, 1, work).unwrap();
        lanes.block = block;
        let mut segments = vec![];
        let mut time = i64::MAX;
        while let Some(segment) = lanes.before(0, time, work).unwrap() {
            segments.push((segment.start, segment.finish, segment.task));
            time = segment.start;
        }
        segments.reverse();
        segments
    }

    #[test]
    fn a_task_goes_on_when_the_one_on_top_of_it_ends() {
        assert_eq!(
            cut(&on_one_lane(&[(0, 9), (2, 4), (12, 13)]), BLOCK),
            [(0, 2, 0), (2, 4, 1), (4, 9, 0), (12, 13, 2)]
        );
        assert_eq!(cut(&on_one_lane(&[(0, 5), (3, 8)]), 1), [(0, 3, 0), (3, 8, 1)]);
        assert_eq!(cut(&on_one_lane(&[(0, i64::MAX), (5, 5)]), BLOCK), [(0, i64::MAX, 0)]);
    }

    proptest! {
        /// At each tick the innermost task is the one that began last; of those the shortest, then the one with the
        /// largest number.
        #[test]
        fn equals_a_look_at_each_tick(spans in vec((0..12i64, 0..6i64), 0..8), block in 1..4usize) {
            let spans: Vec<(i64, i64)> = spans.into_iter().map(|(start, length)| (start, start + length)).collect();
            let segments = cut(&on_one_lane(&spans), block);
            for tick in 0..18 {
                let running = (0..spans.len()).filter(|task| spans[*task].0 <= tick && tick < spans[*task].1);
                let innermost = running.max_by_key(|task| (spans[*task].0, Reverse(spans[*task].1), *task));
                let found: Vec<usize> = segments
                    .iter()
                    .filter(|(start, finish, _)| *start <= tick && tick < *finish)
                    .map(|(_, _, task)| *task as usize)
                    .collect();
                prop_assert_eq!(found, Vec::from_iter(innermost));
            }
        }
    }
}
