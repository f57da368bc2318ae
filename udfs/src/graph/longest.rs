//! The longest chain of durations through the links of one run.
//!
//! Each task gets its *path time*: its duration plus the largest path time among its predecessors. Recorders mostly write
//! tasks in the order in which they were created; then one pass over the links as they are stored is enough ([`Order`]).
//! Unsorted links that all lead forward are sorted by target first. Otherwise the links are sorted by source into an index
//! and walked starting at the tasks without predecessors (Kahn), which also detects cycles.
//!
//! Ties are settled on indices, and so on ids: the smallest predecessor among equals, the smallest end among equals. A
//! predecessor whose path time is negative (reversed spans have negative durations) is ignored: the chain is longer
//! without it.
//!
//! Cost: 12 bytes a task; for unsorted links 8 bytes a link more, for links that lead backwards 12 more a link and 12
//! more a task.

use std::borrow::Cow;
use std::hint::select_unpredictable;

use crate::graph::NONE;
use crate::graph::links::{CHUNK_LINKS, Link, Links, Order};
use crate::graph::no_path::{Interrupted, NoPath, stop_if};
use crate::graph::sort::sorted;

/// Path times and predecessors of all tasks of a run.
#[derive(Debug, PartialEq, Eq)]
pub struct PathTimes {
    /// Per task: the duration of the longest chain that ends with it.
    pub time: Vec<i64>,
    /// Per task: the task before it on that chain, [`NONE`] where the chain starts.
    pub from: Vec<u32>,
}

/// Bytes that [`path_times`] takes for the answer and at its peak beside `durations` and `links`. With owned durations those of the times
/// are there.
pub fn bytes_needed(tasks: usize, links: usize, order: &Order<'_>) -> usize {
    let answer = tasks * (size_of::<i64>() + size_of::<u32>());
    match order {
        Order::ByTarget(_) | Order::BySource(_) => answer,
        Order::Ascending(_) => answer + links * size_of::<Link>(),
        Order::Unknown(_) => answer + 3 * tasks * size_of::<u32>() + links * (size_of::<Link>() + size_of::<u32>()),
    }
}

/// Path times of all tasks; `durations` by task index. At most `u32::MAX` links: the caller checks.
pub fn path_times(durations: &[i64], order: &Order<'_>, interrupted: Interrupted<'_>) -> Result<PathTimes, NoPath> {
    path_times_of(Cow::Borrowed(durations), order, interrupted)
}

/// The same; owned durations become the path times where links are or can be sorted by target.
pub fn path_times_of(
    durations: Cow<'_, [i64]>,
    order: &Order<'_>,
    interrupted: Interrupted<'_>,
) -> Result<PathTimes, NoPath> {
    match order {
        Order::ByTarget(chunks) => pull_by_target(durations, chunks, interrupted),
        Order::BySource(chunks) => {
            let mut paths = Pushing::new(&durations);
            for chunk in chunks {
                stop_if(interrupted)?;
                for group in chunk.chunk_by(|one, next| one.source == next.source) {
                    let lead = paths.settle(group[0].source)?;
                    for link in group {
                        paths.push_ascending(lead, *link);
                    }
                }
            }
            paths.finish()
        }
        Order::Ascending(chunks) => {
            let links = sorted(durations.len(), chunks, |link| link.target, interrupted)?;
            pull_by_target(durations, &links.chunks(CHUNK_LINKS).collect::<Vec<_>>(), interrupted)
        }
        Order::Unknown(chunks) => push_in_topological_order(&durations, chunks, interrupted),
    }
}

/// The end of the longest chain among the tasks for which `counts` holds: the largest path time, ties to the smallest.
pub fn last_of_longest(time: &[i64], counts: impl Fn(u32) -> bool) -> Option<u32> {
    let mut best: Option<(i64, u32)> = None;
    for (time, index) in time.iter().zip(0u32..) {
        if best.is_none_or(|(longest, _)| *time > longest) && counts(index) {
            best = Some((*time, index));
        }
    }
    best.map(|(_, index)| index)
}

/// The chain that ends with `last`, in the order in which it ran.
pub fn chain(paths: &PathTimes, last: u32) -> Vec<u32> {
    let mut steps = vec![last];
    let mut step = last;
    while paths.from[step as usize] != NONE {
        step = paths.from[step as usize];
        steps.push(step);
    }
    steps.reverse();
    steps
}

/// Which tasks are at the end of a link.
pub fn linked_tasks(tasks: usize, links: &Links) -> Vec<bool> {
    let mut linked = vec![false; tasks];
    for link in links.iter() {
        linked[link.source as usize] = true;
        linked[link.target as usize] = true;
    }
    linked
}

/// Splits `weak` links into those that may stay and the number of those on a cycle of `strong` and `weak` links
/// together, that is, whose ends reach each other. Without the latter, only cycles of strong links are left.
pub fn without_weak_on_cycles(tasks: usize, strong: &Links, weak: &Links) -> (Vec<Link>, usize) {
    let mut graph = petgraph::graph::DiGraph::<(), (), u32>::with_capacity(tasks, strong.len() + weak.len());
    for _ in 0..tasks {
        graph.add_node(());
    }
    for link in strong.iter().chain(weak.iter()) {
        graph.add_edge(link.source.into(), link.target.into(), ());
    }
    let mut component = vec![0u32; tasks];
    // Kosaraju's search keeps its own stack: a chain of a million tasks does not end the program.
    for (number, members) in (0u32..).zip(petgraph::algo::kosaraju_scc(&graph)) {
        for member in members {
            component[member.index()] = number;
        }
    }
    let on_cycle = |link: &Link| component[link.source as usize] == component[link.target as usize];
    let stay: Vec<Link> = weak.iter().filter(|link| !on_cycle(link)).collect();
    let dropped = weak.len() - stay.len();
    (stay, dropped)
}

/// The best predecessor of a task: the one with the largest path time, of equal ones the smallest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lead {
    path: i64,
    task: u32,
}

impl Lead {
    /// No predecessor; better than one of negative path time.
    pub(super) const NONE: Lead = Lead { path: -1, task: NONE };

    /// The better one of this and another. Which one that is cannot be predicted, so no branch may depend on it: a
    /// misprediction costs as much as waiting for memory.
    #[inline]
    pub(super) fn or(self, path: i64, task: u32) -> Lead {
        let better = (path > self.path) | ((path == self.path) & (task < self.task));
        Lead {
            path: select_unpredictable(better, path, self.path),
            task: select_unpredictable(better, task, self.task),
        }
    }

    /// Adds the best predecessor of a task to its path.
    #[inline]
    pub(super) fn settle(self, time: &mut [i64], task: u32) -> Result<(), NoPath> {
        if self.path >= 0 {
            let path = &mut time[task as usize];
            *path = plus(*path, self.path, task)?;
        }
        Ok(())
    }

    /// The best predecessor.
    #[inline]
    pub(super) fn task(self) -> Option<u32> {
        (self.path >= 0).then_some(self.task)
    }
}

/// Sources are lower than targets and targets never decrease: when a target comes up, its sources are final.
fn pull_by_target(
    durations: Cow<'_, [i64]>,
    chunks: &[&[Link]],
    interrupted: Interrupted<'_>,
) -> Result<PathTimes, NoPath> {
    let mut time = durations.into_owned();
    let mut from = vec![NONE; time.len()];
    // The target that is being looked at and the best among its sources so far.
    let (mut target, mut lead) = (0u32, Lead::NONE);
    let mut settle = |time: &mut [i64], lead: Lead, target: u32| {
        if let Some(best) = lead.task() {
            from[target as usize] = best;
        }
        lead.settle(time, target)
    };
    for chunk in chunks {
        stop_if(interrupted)?;
        for link in *chunk {
            if link.target != target {
                settle(&mut time, lead, target)?;
                (target, lead) = (link.target, Lead::NONE);
            }
            lead = lead.or(time[link.source as usize], link.source);
        }
    }
    settle(&mut time, lead, target)?;
    Ok(PathTimes { time, from })
}

/// Path times while they are pushed from sources to targets. A source is settled when all links to it have been pushed.
struct Pushing<'a> {
    durations: &'a [i64],
    /// Per task: the largest path time among the predecessors seen, -1 for none.
    lead: Vec<i64>,
    from: Vec<u32>,
}

impl<'a> Pushing<'a> {
    fn new(durations: &'a [i64]) -> Self {
        Pushing { durations, lead: vec![-1; durations.len()], from: vec![NONE; durations.len()] }
    }

    /// The path time of a task to which all links have been pushed.
    fn settle(&self, task: u32) -> Result<i64, NoPath> {
        plus(self.durations[task as usize], self.lead[task as usize].max(0), task)
    }

    /// Pushes a link whose source comes after all earlier ones: among equals the earlier, smaller one stays.
    #[inline]
    fn push_ascending(&mut self, path: i64, link: Link) {
        let target = link.target as usize;
        if path > self.lead[target] {
            (self.lead[target], self.from[target]) = (path, link.source);
        }
    }

    /// Pushes a link; sources come in any order.
    fn push(&mut self, path: i64, link: Link) {
        let target = link.target as usize;
        let tie = path >= 0 && path == self.lead[target] && link.source < self.from[target];
        if path > self.lead[target] || tie {
            (self.lead[target], self.from[target]) = (path, link.source);
        }
    }

    fn finish(mut self) -> Result<PathTimes, NoPath> {
        for ((lead, duration), task) in self.lead.iter_mut().zip(self.durations).zip(0u32..) {
            *lead = plus(*duration, (*lead).max(0), task)?;
        }
        Ok(PathTimes { time: self.lead, from: self.from })
    }
}

fn push_in_topological_order(
    durations: &[i64],
    chunks: &[&[Link]],
    interrupted: Interrupted<'_>,
) -> Result<PathTimes, NoPath> {
    let index = Successors::new(durations.len(), chunks, interrupted)?;
    let mut waits_for = vec![0u32; durations.len()];
    for link in chunks.iter().flat_map(|chunk| chunk.iter()) {
        waits_for[link.target as usize] += 1;
    }
    let mut paths = Pushing::new(durations);
    let mut ready: Vec<u32> = (0..durations.len() as u32).filter(|task| waits_for[*task as usize] == 0).collect();
    let mut next = 0;
    while next < ready.len() {
        if next % 65_536 == 0 {
            stop_if(interrupted)?;
        }
        let source = ready[next];
        next += 1;
        let path = paths.settle(source)?;
        for target in index.of(source) {
            paths.push(path, Link { source, target: *target });
            waits_for[*target as usize] -= 1;
            if waits_for[*target as usize] == 0 {
                ready.push(*target);
            }
        }
    }
    if ready.len() < durations.len() {
        return Err(NoPath::Cycle(find_cycle(&waits_for, chunks)));
    }
    paths.finish()
}

/// A cycle among the tasks that still wait. Each of them has a predecessor that waits too, so walking backwards from any
/// of them ends in a circle; always taking the smallest predecessor makes the answer the same for any order of links.
fn find_cycle(waits_for: &[u32], chunks: &[&[Link]]) -> Vec<u32> {
    let mut before = vec![NONE; waits_for.len()];
    for link in chunks.iter().flat_map(|chunk| chunk.iter()) {
        let (source, target) = (link.source as usize, link.target as usize);
        if waits_for[source] > 0 && waits_for[target] > 0 {
            before[target] = before[target].min(link.source);
        }
    }
    let Some(first) = waits_for.iter().position(|count| *count > 0) else { return vec![] };
    let mut seen = vec![false; waits_for.len()];
    let mut task = first as u32;
    while !seen[task as usize] {
        seen[task as usize] = true;
        task = before[task as usize];
    }
    let mut cycle = vec![task];
    let mut step = before[task as usize];
    while step != task {
        cycle.push(step);
        step = before[step as usize];
    }
    cycle.reverse();
    let smallest = cycle.iter().enumerate().min_by_key(|(_, task)| **task).map_or(0, |(place, _)| place);
    cycle.rotate_left(smallest);
    cycle
}

/// The targets of each task's links.
struct Successors {
    /// The targets of task `i` are `targets[ends[i - 1]..ends[i]]`.
    ends: Vec<u32>,
    targets: Vec<u32>,
}

impl Successors {
    fn new(tasks: usize, chunks: &[&[Link]], interrupted: Interrupted<'_>) -> Result<Successors, NoPath> {
        let links = sorted(tasks, chunks, |link| link.source, interrupted)?;
        let mut ends = vec![0u32; tasks];
        links.iter().for_each(|link| ends[link.source as usize] += 1);
        for task in 1..tasks {
            ends[task] += ends[task - 1];
        }
        Ok(Successors { ends, targets: links.into_iter().map(|link| link.target).collect() })
    }

    fn of(&self, source: u32) -> &[u32] {
        let from = if source == 0 { 0 } else { self.ends[source as usize - 1] };
        &self.targets[from as usize..self.ends[source as usize] as usize]
    }
}

fn plus(duration: i64, lead: i64, task: u32) -> Result<i64, NoPath> {
    duration.checked_add(lead).ok_or(NoPath::Overflow(task))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn links(pairs: &[(u32, u32)]) -> Links {
        let mut links = Links::default();
        for (source, target) in pairs {
            links.push(Link { source: *source, target: *target });
        }
        links
    }

    fn longest(durations: &[i64], pairs: &[(u32, u32)]) -> Result<(i64, Vec<u32>), NoPath> {
        let links = links(pairs);
        let paths = path_times(durations, &links.order(), &|| false)?;
        let last = last_of_longest(&paths.time, |_| true).unwrap();
        Ok((paths.time[last as usize], chain(&paths, last)))
    }

    /// All chains from `task` backwards; `None` when one of them meets itself.
    fn chains_to(task: u32, pairs: &[(u32, u32)], behind: &mut Vec<u32>) -> Option<Vec<Vec<u32>>> {
        if behind.contains(&task) {
            return None;
        }
        behind.push(task);
        let mut chains = vec![vec![task]];
        for (source, _) in pairs.iter().filter(|(_, target)| *target == task) {
            for mut chain in chains_to(*source, pairs, behind)? {
                chain.push(task);
                chains.push(chain);
            }
        }
        behind.pop();
        Some(chains)
    }

    /// The definition: among all chains the one with the largest sum; of equals the one whose last task is smallest,
    /// then the one before it, and so on; a chain goes on backwards as long as that does not make it shorter.
    fn naive(durations: &[i64], pairs: &[(u32, u32)]) -> Option<(i64, Vec<u32>)> {
        let mut all = vec![];
        for task in 0..durations.len() as u32 {
            all.extend(chains_to(task, pairs, &mut vec![])?);
        }
        let sum = |chain: &[u32]| chain.iter().map(|task| durations[*task as usize]).sum::<i64>();
        let longest = all.iter().map(|chain| sum(chain)).max()?;
        let backwards = |chain: &Vec<u32>| {
            let mut key: Vec<u32> = chain.iter().rev().copied().collect();
            key.push(NONE);
            key
        };
        let best = all.into_iter().filter(|chain| sum(chain) == longest).min_by_key(backwards)?;
        Some((longest, best))
    }

    #[test]
    fn small_graphs() {
        //      0(2) -> 1(3) -> 3(1)
        //      0(2) -> 2(4) -> 3(1)
        assert_eq!(longest(&[2, 3, 4, 1], &[(0, 1), (0, 2), (1, 3), (2, 3)]), Ok((7, vec![0, 2, 3])));
        assert_eq!(longest(&[5], &[]), Ok((5, vec![0])));
        assert_eq!(longest(&[1, 1, 1], &[(2, 1), (1, 0)]), Ok((3, vec![2, 1, 0])));
    }

    #[test]
    fn ties_go_to_the_smallest() {
        assert_eq!(longest(&[3, 3, 1, 1], &[(1, 2), (0, 2), (1, 3), (0, 3)]), Ok((4, vec![0, 2])));
        assert_eq!(longest(&[0, 0, 0], &[(0, 1), (1, 2)]), Ok((0, vec![0])));
        assert_eq!(longest(&[0, 0, 5], &[(0, 1), (1, 2)]), Ok((5, vec![0, 1, 2])));
    }

    #[test]
    fn extremes() {
        assert_eq!(longest(&[i64::MAX, 1], &[(0, 1)]), Err(NoPath::Overflow(1)));
        assert_eq!(longest(&[1, i64::MAX, 0], &[(2, 0), (0, 1)]), Err(NoPath::Overflow(1)));
        assert_eq!(longest(&[1, i64::MAX, 0], &[(0, 2), (0, 1)]), Err(NoPath::Overflow(1)));
        assert_eq!(longest(&[i64::MIN, i64::MAX], &[(0, 1)]), Ok((i64::MAX, vec![1])));
        assert_eq!(longest(&[i64::MIN, i64::MIN], &[(0, 1)]), Ok((i64::MIN, vec![0])));
    }

    #[test]
    fn cycles_are_named_from_their_smallest_task_on() {
        assert_eq!(longest(&[1; 5], &[(0, 3), (3, 4), (4, 2), (2, 3), (3, 1)]), Err(NoPath::Cycle(vec![2, 3, 4])));
        assert_eq!(longest(&[1; 2], &[(1, 1)]), Err(NoPath::Cycle(vec![1])));
    }

    #[test]
    fn an_interrupt_ends_it() {
        for pairs in [&[(0, 1), (0, 2), (1, 2)][..], &[(0, 2), (1, 2), (1, 3), (2, 3)], &[(1, 2), (0, 1)], &[(2, 0)]] {
            let links = links(pairs);
            assert_eq!(path_times(&[1; 4], &links.order(), &|| true), Err(NoPath::Interrupted));
        }
    }

    #[test]
    fn weak_links_on_cycles_are_parted_from_the_others() {
        let (stay, dropped) = without_weak_on_cycles(4, &links(&[(0, 1), (1, 2)]), &links(&[(2, 0), (2, 3), (1, 1)]));
        assert_eq!((stay, dropped), (vec![Link { source: 2, target: 3 }], 2));
    }

    #[test]
    fn a_long_chain_with_a_weak_way_back() {
        let tasks = 300_000;
        let forwards: Vec<(u32, u32)> = (1..tasks).map(|task| (task - 1, task)).collect();
        let dropped = without_weak_on_cycles(tasks as usize, &links(&forwards), &links(&[(tasks - 1, 0)])).1;
        assert_eq!(dropped, 1);
    }

    /// Graphs of every order: sorted by target, by source, ascending, any.
    fn graphs() -> impl Strategy<Value = (Vec<i64>, Vec<(u32, u32)>)> {
        let pairs = vec((0..7u32, 0..7u32), 0..10);
        (vec(-2..4i64, 7), pairs, 0..4u8).prop_map(|(durations, mut pairs, order)| {
            if order < 3 {
                pairs.retain(|(source, target)| source != target);
                for pair in &mut pairs {
                    *pair = (pair.0.min(pair.1), pair.0.max(pair.1));
                }
            }
            match order {
                0 => pairs.sort_by_key(|pair| pair.1),
                1 => pairs.sort_by_key(|pair| pair.0),
                _ => {}
            }
            (durations, pairs)
        })
    }

    proptest! {
        #[test]
        fn equals_the_search_of_all_chains((durations, pairs) in graphs()) {
            match (longest(&durations, &pairs), naive(&durations, &pairs)) {
                (Ok(found), Some(expected)) => prop_assert_eq!(found, expected),
                (Err(NoPath::Cycle(cycle)), None) => {
                    prop_assert!(cycle.iter().all(|task| task >= &cycle[0]));
                    let next = cycle.iter().cycle().skip(1);
                    prop_assert!(cycle.iter().zip(next).all(|(one, next)| pairs.contains(&(*one, *next))));
                },
                (found, expected) => prop_assert!(false, "{found:?} where {expected:?}"),
            }
        }

        #[test]
        fn the_order_of_links_does_not_matter((durations, pairs) in graphs(), seed in any::<u64>()) {
            let mut shuffled = pairs.clone();
            shuffled.sort_by_key(|pair| (u64::from(pair.0) * 31 + u64::from(pair.1)).wrapping_mul(seed | 1));
            prop_assert_eq!(longest(&durations, &pairs), longest(&durations, &shuffled));
        }

        #[test]
        fn without_weak_links_on_cycles_only_strong_cycles_are_left(
            (_, strong) in graphs(), (_, weak) in graphs(),
        ) {
            let (stay, _) = without_weak_on_cycles(7, &links(&strong), &links(&weak));
            let mut all = strong.clone();
            all.extend(stay.iter().map(|link| (link.source, link.target)));
            prop_assert_eq!(longest(&[1; 7], &all).is_ok(), longest(&[1; 7], &strong).is_ok());
        }
    }
}
