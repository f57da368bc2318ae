//! Which work on another location ended a wait, where the trace does not record it.
//!
//! A task of role `wait` says that its location waits; what it waits for is often not recorded: a lock, a queue, a device whose
//! synchronisation is not in the trace. Then only the time tells: the wait is taken to end with the work that finished last on another
//! location while the wait ran.
//!
//! ```text
//! main    [--a--)[-----wait------)[-b-)      wait ends with c
//! worker          [-----c-------)
//! poll      [)        [)      [)             waits release nothing
//! ```
//! Work counts where it was the innermost task of its lane when it finished, so that a function that only holds a wait is
//! not taken for what was waited for. Tasks are sorted by finish when a path first asks.

use std::collections::{HashMap, HashSet};

use datafusion_common::Result;

use crate::executed::segments::Lanes;
use crate::executed::{Activity, Times};
use crate::graph::NONE;
use crate::lanes::words::Words;
use crate::relation::call::Work;

/// The work of a run by finish.
pub(crate) struct Elsewhere<'a> {
    times: &'a Times,
    /// Per lane the number of its machine, see [`machines`].
    machines: &'a [u32],
    /// When the last work of the run finished, `None` where nothing waits.
    last_work: Option<i64>,
    /// Work on lanes, by finish, once it was asked for. What is too late for all further questions is dropped.
    by_finish: Option<Vec<u32>>,
}

/// The machine of each location: the first part of a name that has three or more (`rank 1/4037/7`), else all are on one. A wait on
/// one rank does not end by itself with what another does, whose clock may be another one.
pub(crate) fn machines(locations: &Words) -> Vec<u32> {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let machine = |lane: u32| match locations.text(lane).split_once('/') {
        Some((machine, rest)) if rest.contains('/') => machine,
        _ => "",
    };
    (0..locations.len() as u32)
        .map(|lane| {
            let next = numbers.len() as u32;
            *numbers.entry(machine(lane)).or_insert(next)
        })
        .collect()
}

impl<'a> Elsewhere<'a> {
    /// Looks for the last work of a run.
    pub(crate) fn new(times: &'a Times, machines: &'a [u32], work: &mut Work) -> Result<Self> {
        work.check()?;
        let waits = times.activity.contains(&Activity::Waits);
        let last_work = waits.then(|| worked(times).map(|task| times.finish[task as usize]).max()).flatten();
        Ok(Elsewhere { times, machines, last_work, by_finish: None })
    }

    /// Whether all work of the run was done at a time.
    pub(crate) fn is_done(&self, time: i64) -> bool {
        self.last_work.is_some_and(|last| last <= time)
    }

    /// The work on another lane of the machine that finished last, after `after` and not after `until`; of several the one that
    /// began last. `passed` are those at `until` that no longer count. `until` never increases from call to call, and where
    /// nothing is found no later look at a lane may lie after `after`.
    pub(crate) fn last_between(
        &mut self,
        lanes: &mut Lanes<'_>,
        lane: u32,
        (after, until): (i64, i64),
        passed: &HashSet<u32>,
        work: &mut Work,
    ) -> Result<Option<u32>> {
        if self.last_work.is_none() {
            return Ok(None);
        }
        let times = self.times;
        let finish = |task: &u32| times.finish[*task as usize];
        if self.by_finish.is_none() {
            let mut sorted: Vec<u32> = worked(times).collect();
            work.grow(sorted.len() * size_of::<u32>())?;
            sorted.sort_unstable_by_key(|task| (finish(task), times.start[*task as usize], *task));
            work.check()?;
            self.by_finish = Some(sorted);
        }
        let Some(sorted) = &mut self.by_finish else { return Ok(None) };
        while sorted.last().is_some_and(|task| finish(task) > until) {
            sorted.pop();
        }
        let machine = |lane: u32| self.machines.get(lane as usize);
        for task in sorted.iter().rev().take_while(|task| finish(task) > after) {
            let other = times.lane[*task as usize];
            if other == lane || machine(other) != machine(lane) || (finish(task) == until && passed.contains(task)) {
                continue;
            }
            if lanes.before(other, finish(task), work)?.is_some_and(|innermost| innermost.task == *task) {
                return Ok(Some(*task));
            }
        }
        Ok(None)
    }
}

/// The tasks of a run that took time on a lane and did not wait.
fn worked(times: &Times) -> impl Iterator<Item = u32> {
    (0..times.start.len() as u32).filter(|task| {
        let place = *task as usize;
        times.known(*task)
            && times.lane[place] != NONE
            && times.start[place] < times.finish[place]
            && times.activity[place] != Activity::Waits
    })
}
