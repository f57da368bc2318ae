//! Self times on a lane, computed while its tasks arrive: each tick counts for the task that started last among those
//! running.
//!
//! ```text
//! a [--------------)      a: 2 + 2
//! b   [------)            b: 2 + 1, where d crosses it: d started last
//! c     [-)               c: 1
//! ```
//! So nested tasks get their self time, and the times of a lane add up to its busy time.

/// A task that runs, or did before one that started after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenTask {
    pub(super) finish: i64,
    pub(super) name: u32,
    pub(super) kind: u32,
}

/// The tasks of a lane that may still run, in the order of their starts.
#[derive(Debug, Default)]
pub(super) struct Open {
    tasks: Vec<OpenTask>,
    /// Up to here, ticks have their task.
    now: i64,
    /// Tasks that are over are thrown away when there are more than this.
    sweep_above: usize,
}

/// So many tasks need no look.
const FEW: usize = 64;

impl Open {
    /// A task starts; `tell` learns whose the ticks before it were.
    pub(super) fn begin(&mut self, task: OpenTask, start: i64, tell: impl FnMut(OpenTask, i128)) {
        self.until(start, tell);
        if task.finish <= start {
            return;
        }
        self.now = start;
        if self.tasks.len() > self.sweep_above.max(FEW) {
            self.tasks.retain(|task| task.finish > start);
            self.sweep_above = 2 * self.tasks.len();
        }
        self.tasks.push(task);
    }

    /// Tells whose the ticks before a time are.
    pub(super) fn until(&mut self, time: i64, mut tell: impl FnMut(OpenTask, i128)) {
        while let Some(&last) = self.tasks.last() {
            let end = last.finish.min(time);
            if end > self.now {
                tell(last, i128::from(end) - i128::from(self.now));
                self.now = end;
            }
            if last.finish > time {
                break;
            }
            self.tasks.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of each of some tasks, given by start and finish in the order of their starts.
    fn ticks(spans: &[(i64, i64)]) -> Vec<i128> {
        let mut ticks = vec![0; spans.len()];
        let mut open = Open::default();
        for (name, &(start, finish)) in (0..).zip(spans) {
            open.begin(OpenTask { finish, name, kind: 0 }, start, |task, more| ticks[task.name as usize] += more);
        }
        open.until(i64::MAX, |task, more| ticks[task.name as usize] += more);
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
            open.begin(OpenTask { finish, name: 0, kind: 0 }, start, |_, _| {});
            assert!(open.tasks.len() <= FEW + 2);
        }
    }
}
