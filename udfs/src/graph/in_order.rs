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
//! Cost: nothing beside the durations, which become the path times, and 4 bytes a task for the predecessors; one pass over
//! the links.

use crate::graph::NONE;
use crate::graph::longest::{Lead, PathTimes};
use crate::graph::no_path::{Interrupted, NoPath};

/// Links that stand together: as many targets as sources, task ids.
#[derive(Debug, Clone, Copy)]
pub struct Stretch<'a> {
    /// Ids of the tasks that come first.
    pub sources: &'a [i64],
    /// Ids of the tasks that wait for them.
    pub targets: &'a [i64],
}

/// Path times of a run whose links were in order.
#[derive(Debug, PartialEq, Eq)]
pub struct InOrder {
    /// Path times and predecessors by index, which is id − base.
    pub paths: PathTimes,
    /// Links with an end that is no task of the run: left out.
    pub nowhere: usize,
}

/// Path times and predecessors by index, which is id − `base`; `durations` likewise, and they become the path times.
/// Whole stretches may have been reordered. `None`: the links are not in order.
///
/// # Errors
/// [`NoPath::Overflow`] and [`NoPath::Interrupted`]; links in order have no cycle.
pub fn path_times(
    durations: Vec<i64>,
    base: i64,
    mut stretches: Vec<Stretch<'_>>,
    interrupted: Interrupted<'_>,
) -> Result<Option<InOrder>, NoPath> {
    stretches.retain(|stretch| !stretch.targets.is_empty());
    stretches.sort_by_key(|stretch| {
        let ends = [stretch.targets.first(), stretch.targets.last()];
        ends.map(|target| target.map(|target| index_of(*target, base)))
    });
    let mut from = vec![NONE; durations.len()];
    let mut time = durations;
    let tasks = time.len() as u64;
    let mut nowhere = 0;
    // The target that is being looked at and the best among its sources so far.
    let (mut target, mut lead) = (0u64, Lead::NONE);
    for stretch in stretches {
        if interrupted() {
            return Err(NoPath::Interrupted);
        }
        for (sources, targets) in stretch.sources.chunks(LINKS_AT_ONCE).zip(stretch.targets.chunks(LINKS_AT_ONCE)) {
            fetch(&time, base, sources, targets);
            for (source, next) in sources.iter().zip(targets) {
                let (source, next) = (index_of(*source, base), index_of(*next, base));
                if next != target {
                    if next < target {
                        return Ok(None);
                    }
                    lead.settle(&mut time, &mut from, target as u32)?;
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
    lead.settle(&mut time, &mut from, target as u32)?;
    Ok(Some(InOrder { paths: PathTimes { time, from }, nowhere }))
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
    use crate::graph::ids::TaskIds;
    use crate::graph::links::Links;
    use crate::graph::longest;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn cut<'a>(sources: &'a [i64], targets: &'a [i64], rows: usize) -> Vec<Stretch<'a>> {
        let parts = sources.chunks(rows).zip(targets.chunks(rows));
        parts.map(|(sources, targets)| Stretch { sources, targets }).collect()
    }

    fn times(durations: &[i64], links: &[(i64, i64)]) -> Option<InOrder> {
        let (sources, targets): (Vec<_>, Vec<_>) = links.iter().copied().unzip();
        path_times(durations.to_vec(), 10, cut(&sources, &targets, 2), &|| false).unwrap()
    }

    fn path(time: &[i64], from: &[u32]) -> PathTimes {
        PathTimes { time: time.to_vec(), from: from.to_vec() }
    }

    #[test]
    fn links_out_of_order_have_no_answer_here() {
        let durations = [1, 2, 4, 8];
        let found = times(&durations, &[(10, 11), (10, 12), (11, 12)]).unwrap();
        assert_eq!(found.paths, path(&[1, 3, 7, 8], &[NONE, 0, 1, NONE]));
        assert_eq!(times(&durations, &[(11, 12), (10, 11), (10, 11)]), None);
        assert_eq!(times(&durations, &[(12, 11)]), None);
        assert_eq!(times(&durations, &[(12, 12)]), None);
        assert_eq!(times(&durations, &[]).unwrap().paths, path(&durations, &[NONE; 4]));
    }

    #[test]
    fn links_to_tasks_that_are_not_there_are_left_out() {
        let links = [(9, 11), (99, 11), (10, 11), (10, 14), (99, i64::MAX)];
        let paths = path(&[1, 3, 4, 8], &[NONE, 0, NONE, NONE]);
        assert_eq!(times(&[1, 2, 4, 8], &links).unwrap(), InOrder { paths, nowhere: 4 });
    }

    #[test]
    fn links_of_tasks_before_the_first_do_not_hide_others() {
        let (sources, targets) = ([3, 0], [4, 1]);
        let found = path_times(vec![0, 1], 3, cut(&sources, &targets, 2), &|| false).unwrap().unwrap();
        assert_eq!(found.paths, path(&[0, 1], &[NONE, 0]));
    }

    #[test]
    fn of_equal_predecessors_the_smallest_counts_and_a_negative_one_does_not() {
        assert_eq!(times(&[3, 3, 1], &[(11, 12), (10, 12)]).unwrap().paths, path(&[3, 3, 4], &[NONE, NONE, 0]));
        assert_eq!(times(&[-1, 0, 1], &[(10, 11), (10, 12)]).unwrap().paths, path(&[-1, 0, 1], &[NONE; 3]));
        assert_eq!(times(&[i64::MIN, 0], &[(10, 11)]).unwrap().paths, path(&[i64::MIN, 0], &[NONE; 2]));
        assert_eq!(times(&[i64::MAX, 0], &[(10, 11)]).unwrap().paths, path(&[i64::MAX; 2], &[NONE, 0]));
    }

    #[test]
    fn a_path_beyond_bigint_is_an_error() {
        let stretch = Stretch { sources: &[0], targets: &[1] };
        let overflow = path_times(vec![1, i64::MAX], 0, vec![stretch], &|| false);
        assert_eq!(overflow, Err(NoPath::Overflow(1)));
    }

    proptest! {
        #[test]
        fn the_general_way_finds_the_same(
            durations in vec(-3..9i64, 1..30),
            mut links in vec((0..36i64, 1..36i64), 0..60),
            rows in 1..9usize,
            swap in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            // Ids from 4 on: what is before and behind them is no task.
            let base = 4;
            links.retain(|(source, target)| source < target);
            links.sort_by_key(|link| index_of(link.1, base));
            let (sources, targets): (Vec<i64>, Vec<i64>) = links.iter().copied().unzip();
            let mut stretches = cut(&sources, &targets, rows);
            // Targets that two stretches share keep an order only while these stay where they are.
            let apart = targets.chunks(rows).zip(targets.chunks(rows).skip(1)).all(|(one, next)| one.last() != next.first());
            if apart && !stretches.is_empty() {
                let (one, other) = (swap.0.index(stretches.len()), swap.1.index(stretches.len()));
                stretches.swap(one, other);
            }
            let found = path_times(durations.clone(), base, stretches, &|| false).unwrap().unwrap();

            let ids = TaskIds::number(&[&(base..base + durations.len() as i64).collect::<Vec<_>>()]).unwrap();
            let mut kept = Links::default();
            prop_assert_eq!(kept.add(&ids, &sources, &targets), found.nowhere);
            let expected = longest::path_times(&durations, &kept.order(), &|| false).unwrap();
            prop_assert_eq!(found.paths, expected);
        }
    }
}
