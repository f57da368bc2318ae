//! Self times on a lane: each tick belongs to the task that started last among those that run.
//!
//! ```text
//! a [--------------)      a: 2 + 2
//! b   [------)            b: 2 + 1, where d crosses it: d started last
//! c     [-)               c: 1
//! ```
//! For tasks that nest this is their self time, and the times of a lane add up to its busy time. One pass, linear.

/// The tasks of a lane that may still run, in the order of their starts: when each is over, and what the caller calls it.
#[derive(Debug)]
pub struct Open<T> {
    tasks: Vec<(i64, T)>,
    /// Up to here, ticks have their task.
    now: i64,
    /// Tasks that are over are thrown away when there are more than this.
    sweep_above: usize,
}

/// So many tasks need no look.
const FEW: usize = 64;

impl<T> Default for Open<T> {
    fn default() -> Self {
        Open { tasks: Vec::new(), now: 0, sweep_above: 0 }
    }
}

impl<T: Copy> Open<T> {
    /// A task starts, no earlier than those before it; `tell` learns whose the ticks before it were, and how many. Of equal
    /// starts the one that is told later started last.
    pub fn begin(&mut self, task: T, start: i64, finish: i64, tell: impl FnMut(T, i128)) {
        self.until(start, tell);
        if finish <= start {
            return;
        }
        self.now = start;
        if self.tasks.len() > self.sweep_above.max(FEW) {
            self.tasks.retain(|(finish, _)| *finish > start);
            self.sweep_above = 2 * self.tasks.len();
        }
        self.tasks.push((finish, task));
    }

    /// What the caller calls the tasks that may still run.
    pub fn names_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.tasks.iter_mut().map(|(_, task)| task)
    }

    /// Tells whose the ticks before a time are.
    pub fn until(&mut self, time: i64, mut tell: impl FnMut(T, i128)) {
        while let Some(&(finish, last)) = self.tasks.last() {
            let end = finish.min(time);
            if end > self.now {
                tell(last, i128::from(end) - i128::from(self.now));
                self.now = end;
            }
            if finish > time {
                break;
            }
            self.tasks.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Ticks of each of some tasks, given by start and finish in the order of their starts.
    fn ticks(spans: &[(i64, i64)]) -> Vec<i128> {
        let mut ticks = vec![0; spans.len()];
        let mut open = Open::default();
        for (task, &(start, finish)) in spans.iter().enumerate() {
            open.begin(task, start, finish, |task: usize, more| ticks[task] += more);
        }
        open.until(i64::MAX, |task, more| ticks[task] += more);
        ticks
    }

    #[test]
    fn ticks_belong_to_what_started_last() {
        assert_eq!(ticks(&[(0, 8), (1, 4), (2, 3), (5, 7)]), [3, 2, 1, 2]);
        // The second crosses the first.
        assert_eq!(ticks(&[(0, 5), (3, 8)]), [3, 5]);
        // What is over behind one that crosses it takes nothing.
        assert_eq!(ticks(&[(0, 5), (3, 8), (7, 12)]), [3, 4, 5]);
        assert_eq!(ticks(&[(0, 2), (4, 4), (6, 7)]), [2, 0, 1]);
    }

    #[test]
    fn a_long_chain_is_short_in_memory_and_all_of_it_counts() {
        let chain: Vec<(i64, i64)> = (0..10_000).map(|step| (step * 10, step * 10 + 15)).collect();
        let ticks = ticks(&chain);
        assert_eq!(ticks.iter().sum::<i128>(), 100_005);
        let mut open = Open::default();
        for (start, finish) in chain {
            open.begin((), start, finish, |(), _| {});
            assert!(open.tasks.len() <= FEW + 2);
        }
    }

    proptest! {
        /// Tick by tick, the last of those that run.
        #[test]
        fn equals_a_look_at_every_tick(mut spans in vec((0..20i64, 0..12i64), 0..12)) {
            spans.sort();
            let spans: Vec<(i64, i64)> = spans.into_iter().map(|(start, length)| (start, start + length)).collect();
            let mut naive = vec![0; spans.len()];
            for tick in 0..32 {
                if let Some(owner) = spans.iter().rposition(|(start, finish)| *start <= tick && tick < *finish) {
                    naive[owner] += 1;
                }
            }
            prop_assert_eq!(ticks(&spans), naive);
        }
    }
}
