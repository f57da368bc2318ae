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
//! Whether a run is like that is found out on the way; if not, the answer is `None` and the general way
//! ([`super::longest`]) is taken. Predecessors are not stored either: the chain is walked backwards through the links of
//! its own tasks, which lie before each other in the same order.
//!
//! Cost: nothing beside the durations, which become the path times; one pass over the links, and for the chain a search in a
//! stretch per step, logarithmic in the distance to the step before.

use std::ops::Range;

use crate::graph::longest::{Interrupted, NoPath};

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
    /// Per task: the duration of the longest chain that ends with it.
    pub time: Vec<i64>,
    /// Links with an end that is no task of the run: left out.
    pub nowhere: usize,
}

/// Path times by index, which is id − `base`; `durations` likewise, and they become the path times. Stretches may have
/// changed places as wholes and are put in order. `None`: the links are not in order.
///
/// # Errors
/// [`NoPath::Overflow`] and [`NoPath::Interrupted`]; links in order have no cycle.
pub fn path_times(
    durations: Vec<i64>,
    base: i64,
    stretches: &mut Vec<Stretch<'_>>,
    interrupted: Interrupted<'_>,
) -> Result<Option<InOrder>, NoPath> {
    stretches.retain(|stretch| !stretch.targets.is_empty());
    stretches.sort_by_key(|stretch| {
        let ends = [stretch.targets.first(), stretch.targets.last()];
        ends.map(|target| target.map(|target| index_of(*target, base)))
    });
    let mut time = durations;
    let tasks = time.len() as u64;
    let mut nowhere = 0;
    // The target that is being looked at and the largest path time among its sources so far, -1 for none.
    let (mut target, mut lead) = (0u64, -1i64);
    for stretch in &*stretches {
        if interrupted() {
            return Err(NoPath::Interrupted);
        }
        for (source, next) in stretch.sources.iter().zip(stretch.targets) {
            let (source, next) = (index_of(*source, base), index_of(*next, base));
            if next != target {
                if next < target {
                    return Ok(None);
                }
                settle(&mut time, target, lead)?;
                (target, lead) = (next, -1);
            }
            if source < next && next < tasks {
                lead = lead.max(time[source as usize]);
            } else if source < tasks && next < tasks {
                return Ok(None);
            } else {
                nowhere += 1;
            }
        }
    }
    settle(&mut time, target, lead)?;
    Ok(Some(InOrder { time, nowhere }))
}

/// The index of a task: ids before the first one, which belong to no task, come behind all others. That is the order in which
/// targets stand.
#[inline]
fn index_of(id: i64, base: i64) -> u64 {
    id.wrapping_sub(base) as u64
}

#[inline]
fn settle(time: &mut [i64], task: u64, lead: i64) -> Result<(), NoPath> {
    if lead >= 0 {
        let path = &mut time[task as usize];
        *path = path.checked_add(lead).ok_or(NoPath::Overflow(task as u32))?;
    }
    Ok(())
}

/// The chain that ends with the task of index `last`, in the order in which it ran. `stretches` as [`path_times`] left
/// them. Ties: the smallest predecessor; one of negative path time is none.
pub fn chain(paths: &InOrder, base: i64, stretches: &[Stretch<'_>], last: u32) -> Vec<u32> {
    let mut steps = vec![last];
    let mut task = u64::from(last);
    // Links into the tasks of the chain lie before this one.
    let mut end = stretches.last().map_or((0, 0), |stretch| (stretches.len() - 1, stretch.targets.len()));
    while !stretches.is_empty() {
        let mut best: Option<(i64, u64)> = None;
        loop {
            let (number, rows) = end;
            let targets = &stretches[number].targets[..rows];
            let to = rows_up_to(targets, base, task);
            let from = to - targets[..to].iter().rev().take_while(|target| index_of(**target, base) == task).count();
            for source in &stretches[number].sources[from..to] {
                let source = index_of(*source, base);
                let Some(&path) = paths.time.get(source as usize).filter(|path| **path >= 0) else { continue };
                let better = best.is_none_or(|(time, at)| path > time || (path == time && source < at));
                if better {
                    best = Some((path, source));
                }
            }
            // Links into this task may begin in the stretch before.
            if from > 0 || number == 0 {
                end = (number, from);
                break;
            }
            end = (number - 1, stretches[number - 1].targets.len());
        }
        let Some((_, source)) = best else { break };
        steps.push(source as u32);
        task = source;
    }
    steps.reverse();
    steps
}

/// How many rows are not after the task of this index. The chain's next task mostly is not far from the last one, and tasks
/// have about as many links as others: the search widens from where that says.
fn rows_up_to(targets: &[i64], base: i64, task: u64) -> usize {
    let rows = targets.len();
    let at = |row: usize| index_of(targets[row], base);
    let up_to = |rows: Range<usize>| targets[rows].partition_point(|target| index_of(*target, base) <= task);
    if rows == 0 || at(rows - 1) <= task {
        return rows;
    }
    // Distances as doubles: a guess need not be exact.
    let (first, last) = (at(0) as f64, at(rows - 1) as f64);
    let share = (last - task as f64) / (last - first + 1.0);
    let guess = rows - ((share * rows as f64) as usize).clamp(1, rows);
    let mut step = 1;
    if at(guess) <= task {
        let mut from = guess;
        while from + step < rows && at(from + step) <= task {
            (from, step) = (from + step, step * 2);
        }
        return from + up_to(from..(from + step).min(rows));
    }
    let mut end = guess;
    while end > 0 {
        let probe = end.saturating_sub(step);
        if at(probe) <= task {
            return probe + up_to(probe..end);
        }
        (end, step) = (probe, step * 2);
    }
    0
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
        path_times(durations.to_vec(), 10, &mut cut(&sources, &targets, 2), &|| false).unwrap()
    }

    #[test]
    fn links_out_of_order_have_no_answer_here() {
        let durations = [1, 2, 4, 8];
        assert_eq!(times(&durations, &[(10, 11), (10, 12), (11, 12)]).unwrap().time, [1, 3, 7, 8]);
        assert_eq!(times(&durations, &[(11, 12), (10, 11), (10, 11)]), None);
        assert_eq!(times(&durations, &[(12, 11)]), None);
        assert_eq!(times(&durations, &[(12, 12)]), None);
        assert_eq!(times(&durations, &[]).unwrap().time, durations);
    }

    #[test]
    fn links_to_tasks_that_are_not_there_are_left_out() {
        let links = [(9, 11), (99, 11), (10, 11), (10, 14), (99, i64::MAX)];
        assert_eq!(times(&[1, 2, 4, 8], &links).unwrap(), InOrder { time: vec![1, 3, 4, 8], nowhere: 4 });
    }

    #[test]
    fn links_of_tasks_before_the_first_do_not_hide_others() {
        let (sources, targets) = ([3, 0], [4, 1]);
        let mut stretches = cut(&sources, &targets, 2);
        let found = path_times(vec![0, 1], 3, &mut stretches, &|| false).unwrap().unwrap();
        assert_eq!((&found.time[..], chain(&found, 3, &stretches, 1)), (&[0, 1][..], vec![0, 1]));
    }

    #[test]
    fn a_path_beyond_bigint_is_an_error() {
        let stretch = Stretch { sources: &[0], targets: &[1] };
        let overflow = path_times(vec![1, i64::MAX], 0, &mut vec![stretch], &|| false);
        assert_eq!(overflow, Err(NoPath::Overflow(1)));
    }

    proptest! {
        #[test]
        fn rows_are_found_wherever_the_guess_is(far in vec(any::<i64>(), 0..40), near in vec(-9..9i64, 0..40), base in -9..9i64, task in any::<u64>()) {
            for mut targets in [far, near] {
                targets.sort_by_key(|target| index_of(*target, base));
                for task in (0..20).chain([task, u64::MAX]) {
                    let expected = targets.iter().filter(|target| index_of(**target, base) <= task).count();
                    prop_assert_eq!(rows_up_to(&targets, base, task), expected);
                }
            }
        }

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
            let found = path_times(durations.clone(), base, &mut stretches, &|| false).unwrap().unwrap();

            let ids = TaskIds::number(&[&(base..base + durations.len() as i64).collect::<Vec<_>>()]).unwrap();
            let mut kept = Links::default();
            prop_assert_eq!(kept.add(&ids, &sources, &targets), found.nowhere);
            let expected = longest::path_times(&durations, &kept.order(), &|| false).unwrap();
            prop_assert_eq!(&found.time, &expected.time);
            for task in 0..durations.len() as u32 {
                prop_assert_eq!(chain(&found, base, &stretches, task), longest::chain(&expected, task));
            }
        }
    }
}
