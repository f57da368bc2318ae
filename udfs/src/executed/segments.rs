//! Lanes cut into segments: stretches of time in which one task is the innermost.
//!
//! ```text
//! a [-------------)        a, then b on top of it, then a again; tasks that cross
//!      b [---)             belong to the one that began last, as long as it runs
//!   aaa  bbbb  aaaa
//! ```
//! A lane is cut when the path first reaches it, so a lane that it never visits costs one number per task. The times of
//! successive look-ups in a lane never increase: the position in the lane only moves backwards, and all look-ups
//! together take linear time.

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
    /// Per lane: its segments by start, once they were asked for. Those that are too late for all further questions are
    /// dropped.
    segments: Vec<Option<Vec<Segment>>>,
}

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
        work.grow(total * size_of::<u32>() + lanes * (size_of::<usize>() + size_of::<Option<Vec<Segment>>>()))?;
        let mut tasks = vec![NONE; total];
        for task in all() {
            let free = &mut next[times.lane[task as usize] as usize];
            tasks[*free] = task;
            *free += 1;
        }
        Ok(Lanes { times, tasks, ends: next, segments: vec![None; lanes] })
    }

    /// The segment of a lane that begins last before `time`. Times never increase from call to call.
    pub(crate) fn before(&mut self, lane: u32, time: i64, work: &mut Work) -> Result<Option<Segment>> {
        let Some(known) = self.segments.get(lane as usize) else { return Ok(None) };
        if known.is_none() {
            let cut = self.cut(lane as usize, work)?;
            self.segments[lane as usize] = Some(cut);
        }
        let Some(segments) = &mut self.segments[lane as usize] else { return Ok(None) };
        while segments.last().is_some_and(|segment| segment.start >= time) {
            segments.pop();
        }
        Ok(segments.last().copied())
    }

    fn cut(&self, lane: usize, work: &mut Work) -> Result<Vec<Segment>> {
        let from = if lane == 0 { 0 } else { self.ends[lane - 1] };
        let tasks = &self.tasks[from..self.ends[lane]];
        // Each task begins a segment and lets another go on.
        work.grow(tasks.len() * (2 * size_of::<Segment>() + size_of::<u32>()))?;
        let mut order = tasks.to_vec();
        let (start, finish) =
            (|task: u32| self.times.start[task as usize], |task: u32| self.times.finish[task as usize]);
        let key = |task: &u32| (start(*task), Reverse(finish(*task)), *task);
        if !order.is_sorted_by_key(key) {
            order.sort_unstable_by_key(key);
        }
        work.check()?;
        let mut segments: Vec<Segment> = Vec::with_capacity(order.len());
        let mut open: Vec<u32> = vec![];
        let mut now = i64::MIN;
        let mut run_until = |open: &mut Vec<u32>, now: &mut i64, until: i64| {
            while let Some(&task) = open.last().filter(|_| *now < until) {
                if finish(task) <= *now {
                    open.pop();
                    continue;
                }
                let end = finish(task).min(until);
                segments.push(Segment { start: *now, finish: end, task });
                *now = end;
            }
            *now = until;
        };
        for task in order {
            run_until(&mut open, &mut now, start(task));
            open.push(task);
        }
        run_until(&mut open, &mut now, i64::MAX);
        Ok(segments)
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

    fn cut(times: &Times) -> Vec<(i64, i64, u32)> {
        let lanes = Lanes::new(times, 1, &mut Work::for_tests()).unwrap();
        let segments = lanes.cut(0, &mut Work::for_tests()).unwrap();
        segments.iter().map(|segment| (segment.start, segment.finish, segment.task)).collect()
    }

    #[test]
    fn a_task_goes_on_when_the_one_on_top_of_it_ends() {
        assert_eq!(cut(&on_one_lane(&[(0, 9), (2, 4), (12, 13)])), [(0, 2, 0), (2, 4, 1), (4, 9, 0), (12, 13, 2)]);
        assert_eq!(cut(&on_one_lane(&[(0, 5), (3, 8)])), [(0, 3, 0), (3, 8, 1)]);
        assert_eq!(cut(&on_one_lane(&[(0, i64::MAX), (5, 5)])), [(0, i64::MAX, 0)]);
    }

    proptest! {
        /// At each tick the innermost task is the one that began last; of those the shortest, then the one with the
        /// largest number.
        #[test]
        fn equals_a_look_at_each_tick(spans in vec((0..12i64, 0..6i64), 0..8)) {
            let spans: Vec<(i64, i64)> = spans.into_iter().map(|(start, length)| (start, start + length)).collect();
            let segments = cut(&on_one_lane(&spans));
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
