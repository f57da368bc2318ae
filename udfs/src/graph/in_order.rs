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
//! ([`super::longest`]) is taken.
//!
//! Cost: one pass over the links, and 4 bytes a task beside the durations, which become the path times.

use crate::graph::NONE;
use crate::graph::longest::{Interrupted, NoPath, PathTimes};

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
    /// Per task: the longest chain that ends with it.
    pub paths: PathTimes,
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
    stretches.sort_by_key(|stretch| (stretch.targets.first().copied(), stretch.targets.last().copied()));
    let tasks = durations.len();
    let mut paths = PathTimes { time: durations, from: Vec::with_capacity(tasks) };
    let mut nowhere = 0;
    // The target that is being looked at, and the longest path among its sources so far: of equal ones the smallest source.
    let mut target = 0u64;
    let mut lead = Lead::NONE;
    for stretch in &*stretches {
        if interrupted() {
            return Err(NoPath::Interrupted);
        }
        for (source, next) in stretch.sources.iter().zip(stretch.targets) {
            let (source, next) = (source.wrapping_sub(base) as u64, next.wrapping_sub(base) as u64);
            if next != target {
                if next < target {
                    return Ok(None);
                }
                settle(&mut paths, target, lead)?;
                (target, lead) = (next, Lead::NONE);
            }
            if source < next && next < tasks as u64 {
                lead = lead.or(Lead { time: paths.time[source as usize], source });
            } else if source < tasks as u64 && next < tasks as u64 {
                return Ok(None);
            } else {
                nowhere += 1;
            }
        }
    }
    settle(&mut paths, target, lead)?;
    paths.from.resize(tasks, NONE);
    Ok(Some(InOrder { paths, nowhere }))
}

/// The longest path among the sources of a target.
#[derive(Debug, Clone, Copy)]
struct Lead {
    time: i64,
    source: u64,
}

impl Lead {
    /// No source yet: one of negative path time is none either.
    const NONE: Lead = Lead { time: -1, source: 0 };

    #[inline]
    fn or(self, other: Lead) -> Lead {
        let is_longer = other.time > self.time || (other.time == self.time && other.source < self.source);
        if is_longer { other } else { self }
    }
}

/// Targets come up in order: `from` grows with them.
#[inline]
fn settle(paths: &mut PathTimes, task: u64, lead: Lead) -> Result<(), NoPath> {
    if lead.time >= 0 {
        let path = &mut paths.time[task as usize];
        *path = path.checked_add(lead.time).ok_or(NoPath::Overflow(task as u32))?;
        paths.from.resize(task as usize, NONE);
        paths.from.push(lead.source as u32);
    }
    Ok(())
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
        assert_eq!(times(&durations, &[(10, 11), (10, 12), (11, 12)]).unwrap().paths.time, [1, 3, 7, 8]);
        assert_eq!(times(&durations, &[(11, 12), (10, 11), (10, 11)]), None);
        assert_eq!(times(&durations, &[(12, 11)]), None);
        assert_eq!(times(&durations, &[(12, 12)]), None);
        assert_eq!(times(&durations, &[]).unwrap().paths.time, durations);
    }

    #[test]
    fn links_to_tasks_that_are_not_there_are_left_out() {
        let links = [(9, 11), (99, 11), (10, 11), (10, 14), (99, i64::MAX)];
        let found = times(&[1, 2, 4, 8], &links).unwrap();
        assert_eq!((found.paths.time, found.nowhere), (vec![1, 3, 4, 8], 4));
        assert_eq!(found.paths.from, [NONE, 0, NONE, NONE]);
    }

    #[test]
    fn a_path_beyond_bigint_is_an_error() {
        let stretch = Stretch { sources: &[0], targets: &[1] };
        let overflow = path_times(vec![1, i64::MAX], 0, &mut vec![stretch], &|| false);
        assert_eq!(overflow, Err(NoPath::Overflow(1)));
    }

    proptest! {
        #[test]
        fn the_general_way_finds_the_same(
            durations in vec(-3..9i64, 1..30),
            mut links in vec((0..32i64, 1..32i64), 0..60),
            rows in 1..9usize,
            swap in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            links.retain(|(source, target)| source < target);
            links.sort_by_key(|link| link.1);
            let (sources, targets): (Vec<i64>, Vec<i64>) = links.iter().copied().unzip();
            let mut stretches = cut(&sources, &targets, rows);
            // Targets that two stretches share keep an order only while these stay where they are.
            let apart = targets.chunks(rows).zip(targets.chunks(rows).skip(1)).all(|(one, next)| one.last() < next.first());
            if apart && !stretches.is_empty() {
                let (one, other) = (swap.0.index(stretches.len()), swap.1.index(stretches.len()));
                stretches.swap(one, other);
            }
            let found = path_times(durations.clone(), 0, &mut stretches, &|| false).unwrap().unwrap();

            let ids = TaskIds::number(&[&(0..durations.len() as i64).collect::<Vec<_>>()]).unwrap();
            let mut kept = Links::default();
            prop_assert_eq!(kept.add(&ids, &sources, &targets), found.nowhere);
            let expected = longest::path_times(&durations, &kept.order(), &|| false).unwrap();
            prop_assert_eq!(&found.paths.time, &expected.time);
            prop_assert_eq!(&found.paths.from, &expected.from);
        }
    }
}
