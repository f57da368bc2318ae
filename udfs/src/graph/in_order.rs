//! Path times in one pass over links as their table holds them: the usual case, without a copy of any link.
//!
//! Recorders write tasks in the order in which they were made and links with the task that waits, so ids are a range
//! without holes, links lead from a smaller id to a larger one, and targets never decrease. When a target comes up, the
//! path times of its sources are final:
//!
//! ```text
//! links    1->3 2->3 | 1->4 3->4 4->5 |      stretches of a table, each sorted by target
//! time[3] = duration[3] + max(time[1], time[2]), and so on: a running maximum, nothing is stored per link
//! ```
//! Whether a run is like that is checked during the pass; if not, the answer is `None` and the general algorithm
//! ([`super::longest`]) is used.
//!
//! Cost: nothing beside the durations, which become the path times; one pass over the links, and one for the chain ([`chain`]).

use std::ops::ControlFlow;

use crate::graph::longest::Lead;
use crate::graph::no_path::{Interrupted, NoPath};
use crate::graph::standing::{Links, Unpacked};

/// Path times of a run whose links were in order.
#[derive(Debug, PartialEq, Eq)]
pub struct InOrder {
    /// Path times by index, which is id − base.
    pub time: Vec<i64>,
    /// Links with an end that is no task of the run: left out.
    pub nowhere: usize,
}

/// Path times by index, which is id − `base`; `durations` likewise, and they become the path times. `links`: pieces in the order of their
/// targets. `None`: the links are not in order.
///
/// # Errors
/// [`NoPath::Overflow`] and [`NoPath::Interrupted`]; links in order have no cycle.
pub fn path_times(
    durations: Vec<i64>,
    base: i64,
    links: &[&dyn Links],
    interrupted: Interrupted<'_>,
) -> Result<Option<InOrder>, NoPath> {
    let mut time = durations;
    let tasks = time.len() as u64;
    let mut nowhere = 0;
    // The target that is being looked at and the best among its sources so far.
    let (mut target, mut lead) = (0u64, Lead::NONE);
    let mut room = Unpacked::default();
    for piece in links {
        if interrupted() {
            return Err(NoPath::Interrupted);
        }
        let piece = piece.read(&mut room);
        for (sources, targets) in piece.sources.chunks(LINKS_AT_ONCE).zip(piece.targets.chunks(LINKS_AT_ONCE)) {
            fetch(&time, base, sources, targets);
            for (source, next) in sources.iter().zip(targets) {
                let (source, next) = (index_of(*source, base), index_of(*next, base));
                if next != target {
                    if next < target {
                        return Ok(None);
                    }
                    lead.settle(&mut time, target as u32)?;
                    (target, lead) = (next, Lead::NONE);
                }
                if source < next && next < tasks {
                    lead = lead.or(time[source as usize], source as u32);
                } else if source < tasks && next < tasks {
                    return Ok(None);
                } else {
                    nowhere += 1;
                }
            }
        }
    }
    lead.settle(&mut time, target as u32)?;
    Ok(Some(InOrder { time, nowhere }))
}

/// The tasks of the longest chain that ends with `last`, the first one first: the links are read once more, backwards. Nothing need be kept
/// of each task for that.
///
/// # Errors
/// [`NoPath::Interrupted`].
pub fn chain(
    time: &[i64],
    base: i64,
    links: &[&dyn Links],
    last: u32,
    interrupted: Interrupted<'_>,
) -> Result<Vec<u32>, NoPath> {
    let (mut chain, mut lead) = (vec![last], Lead::NONE);
    let mut wanted = last as usize;
    backwards(time.len(), base, links, interrupted, |source, target| {
        if target < wanted {
            // No link to it is left.
            let Some(before) = lead.task() else { return ControlFlow::Break(()) };
            chain.push(before);
            (wanted, lead) = (before as usize, Lead::NONE);
        }
        if target == wanted && source < target {
            lead = lead.or(time[source], source as u32);
        }
        ControlFlow::Continue(())
    })?;
    chain.extend(lead.task());
    chain.reverse();
    Ok(chain)
}

/// The longest chain of durations after each task, by index. The links are those of [`path_times`], which found them in order: read
/// backwards, all links from a task have come when one to it does.
///
/// # Errors
/// [`NoPath::Interrupted`].
pub fn times_after(
    durations: &[i64],
    base: i64,
    links: &[&dyn Links],
    interrupted: Interrupted<'_>,
) -> Result<Vec<i64>, NoPath> {
    let mut after = vec![0i64; durations.len()];
    backwards(durations.len(), base, links, interrupted, |source, target| {
        let through = durations[target].saturating_add(after[target]);
        let before = &mut after[source];
        *before = through.max(*before);
        ControlFlow::Continue(())
    })?;
    Ok(after)
}

/// Which of so many tasks are at the end of a link, by index.
///
/// # Errors
/// [`NoPath::Interrupted`].
pub fn linked(
    tasks: usize,
    base: i64,
    links: &[&dyn Links],
    interrupted: Interrupted<'_>,
) -> Result<Vec<bool>, NoPath> {
    let mut linked = vec![false; tasks];
    backwards(tasks, base, links, interrupted, |source, target| {
        linked[source] = true;
        linked[target] = true;
        ControlFlow::Continue(())
    })?;
    Ok(linked)
}

/// Visits the links between tasks from the last one to the first, or until the visitor has seen enough.
fn backwards(
    tasks: usize,
    base: i64,
    links: &[&dyn Links],
    interrupted: Interrupted<'_>,
    mut visit: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<(), NoPath> {
    let mut room = Unpacked::default();
    for piece in links.iter().rev() {
        if interrupted() {
            return Err(NoPath::Interrupted);
        }
        let piece = piece.read(&mut room);
        for (source, target) in piece.sources.iter().zip(piece.targets).rev() {
            let (source, target) = (index_of(*source, base), index_of(*target, base));
            let are_tasks = source < tasks as u64 && target < tasks as u64;
            if are_tasks && visit(source as usize, target as usize).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// So many links are fetched at once.
const LINKS_AT_ONCE: usize = 128;

/// A path time that is this many tasks before the one that needs it is no longer in the first-level cache.
const FAR_TASKS: u64 = 1 << 15;

/// Reads the path times of sources that are far away, so that they are at hand when they are compared. Such reads wait for
/// memory in parallel; in the comparing loop they would do so nearly one by one. The values read are not final yet.
#[inline]
fn fetch(time: &[i64], base: i64, sources: &[i64], targets: &[i64]) {
    let ends = [(sources.first(), targets.first()), (sources.last(), targets.last())];
    let is_far = |(source, target): (Option<&i64>, Option<&i64>)| {
        source.zip(target).is_some_and(|(source, target)| index_of(*target, *source) > FAR_TASKS)
    };
    if ends.into_iter().any(is_far) {
        let read = |source: &i64| time.get(index_of(*source, base) as usize).copied().unwrap_or(0);
        std::hint::black_box(sources.iter().fold(0, |all, source| all ^ read(source)));
    }
}

/// The index of a task: ids before the first one, which belong to no task, come behind all others. That is the order in which
/// targets stand.
#[inline]
fn index_of(id: i64, base: i64) -> u64 {
    id.wrapping_sub(base) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::NONE;
    use crate::graph::ids::TaskIds;
    use crate::graph::links;
    use crate::graph::longest::{self, PathTimes};
    use crate::graph::standing::Stretch;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Path times, and which task is before each one on its chain.
    fn found(durations: &[i64], base: i64, links: &[(i64, i64)], rows: usize) -> Option<(PathTimes, usize)> {
        let (sources, targets): (Vec<_>, Vec<_>) = links.iter().copied().unzip();
        let parts = sources.chunks(rows).zip(targets.chunks(rows));
        let pieces: Vec<Stretch<'_>> = parts.map(|(sources, targets)| Stretch { sources, targets }).collect();
        let pieces: Vec<&dyn Links> = pieces.iter().map(|piece| -> &dyn Links { piece }).collect();
        let InOrder { time, nowhere } = path_times(durations.to_vec(), base, &pieces, &|| false).unwrap()?;
        let before = |task| match chain(&time, base, &pieces, task, &|| false).unwrap()[..] {
            [.., before, last] if last == task => before,
            [last] if last == task => NONE,
            ref other => panic!("{other:?}"),
        };
        let from = (0..durations.len() as u32).map(before).collect();
        Some((PathTimes { time, from }, nowhere))
    }

    fn times(durations: &[i64], links: &[(i64, i64)]) -> Option<(PathTimes, usize)> {
        found(durations, 10, links, 2)
    }

    fn path(time: &[i64], from: &[u32]) -> (PathTimes, usize) {
        (PathTimes { time: time.to_vec(), from: from.to_vec() }, 0)
    }

    #[test]
    fn links_out_of_order_have_no_answer_here() {
        let durations = [1, 2, 4, 8];
        let found = times(&durations, &[(10, 11), (10, 12), (11, 12)]).unwrap();
        assert_eq!(found, path(&[1, 3, 7, 8], &[NONE, 0, 1, NONE]));
        assert_eq!(times(&durations, &[(11, 12), (10, 11), (10, 11)]), None);
        assert_eq!(times(&durations, &[(12, 11)]), None);
        assert_eq!(times(&durations, &[(12, 12)]), None);
        assert_eq!(times(&durations, &[]).unwrap(), path(&durations, &[NONE; 4]));
    }

    #[test]
    fn links_to_tasks_that_are_not_there_are_left_out() {
        let links = [(9, 11), (99, 11), (10, 11), (10, 14), (99, i64::MAX)];
        let (paths, _) = path(&[1, 3, 4, 8], &[NONE, 0, NONE, NONE]);
        assert_eq!(times(&[1, 2, 4, 8], &links).unwrap(), (paths, 4));
    }

    #[test]
    fn of_equal_predecessors_the_smallest_counts_and_a_negative_one_does_not() {
        assert_eq!(times(&[3, 3, 1], &[(11, 12), (10, 12)]).unwrap(), path(&[3, 3, 4], &[NONE, NONE, 0]));
        assert_eq!(times(&[-1, 0, 1], &[(10, 11), (10, 12)]).unwrap(), path(&[-1, 0, 1], &[NONE; 3]));
        assert_eq!(times(&[i64::MIN, 0], &[(10, 11)]).unwrap(), path(&[i64::MIN, 0], &[NONE; 2]));
        assert_eq!(times(&[i64::MAX, 0], &[(10, 11)]).unwrap(), path(&[i64::MAX; 2], &[NONE, 0]));
    }

    #[test]
    fn a_path_beyond_bigint_is_an_error() {
        let stretch = Stretch { sources: &[0], targets: &[1] };
        let overflow = path_times(vec![1, i64::MAX], 0, &[&stretch], &|| false);
        assert_eq!(overflow, Err(NoPath::Overflow(1)));
    }

    proptest! {
        #[test]
        fn the_general_way_finds_the_same(
            durations in vec(-3..9i64, 1..30),
            mut links in vec((0..36i64, 1..36i64), 0..60),
            rows in 1..9usize,
        ) {
            // Ids from 4 on: what is before and behind them is no task.
            let base = 4;
            links.retain(|(source, target)| source < target);
            links.sort_by_key(|link| index_of(link.1, base));
            let (paths, nowhere) = found(&durations, base, &links, rows).unwrap();

            let (sources, targets): (Vec<i64>, Vec<i64>) = links.iter().copied().unzip();
            let ids = TaskIds::number(&[&(base..base + durations.len() as i64).collect::<Vec<_>>()]).unwrap();
            let mut kept = links::Links::default();
            prop_assert_eq!(kept.add(&ids, &sources, &targets), nowhere);
            let expected = longest::path_times(&durations, &kept.order(), &|| false).unwrap();
            prop_assert_eq!(paths, expected);
        }
    }
}
