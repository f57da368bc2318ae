//! The links of one run as pairs of task indices, and the order in which one pass over them can walk the graph.
//!
//! Life of the data: links arrive in slices of batches and are converted at once (8 bytes a link, in chunks, so that
//! nothing is copied to grow); each chunk records how it is sorted. [`Links::order`] then looks for an order that needs
//! no index: recorders write tasks in the order in which they were made, so links mostly lead from a lower index to a
//! higher one and come sorted by source or by target. Chunks may arrive out of order (partitions are read
//! concurrently); whole chunks are then put back in order.

use crate::graph::ids::TaskIds;

/// A link between two tasks, as indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Index of the task that comes first.
    pub source: u32,
    /// Index of the task that waits for it.
    pub target: u32,
}

/// The links of a run.
#[derive(Debug, Default)]
pub struct Links {
    chunks: Vec<Chunk>,
}

/// Some links, and how they are sorted. That is found out as they come, while they are in the cache.
#[derive(Debug)]
struct Chunk {
    links: Vec<Link>,
    /// Links that have been examined.
    examined: usize,
    /// Whether all of them lead to a higher index.
    ascending: bool,
    sorted_by_target: bool,
    sorted_by_source: bool,
}

/// How the links of a run can be walked.
#[derive(Debug)]
pub enum Order<'a> {
    /// Each link leads to a higher index, and targets never decrease.
    ByTarget(Vec<&'a [Link]>),
    /// Each link leads to a higher index, and sources never decrease.
    BySource(Vec<&'a [Link]>),
    /// Each link leads to a higher index, in no order.
    Ascending(Vec<&'a [Link]>),
    /// Some links lead to lower indices: whether there is a cycle is not known.
    Unknown(Vec<&'a [Link]>),
}

/// Links per chunk: a chunk stays in the second-level cache between its conversion and its examination.
pub(super) const CHUNK_LINKS: usize = 8192;

impl Links {
    /// Converts links given by task ids and adds them. Answers how many were left out since a task at one of their ends
    /// is not there.
    pub fn add(&mut self, ids: &TaskIds, sources: &[i64], targets: &[i64]) -> usize {
        let mut unknown = 0;
        for (sources, targets) in sources.chunks(CHUNK_LINKS).zip(targets.chunks(CHUNK_LINKS)) {
            let chunk = self.room_for(sources.len());
            let before = chunk.links.len();
            match ids.dense_base() {
                Some(base) => add_dense(&mut chunk.links, base, ids.slots(), sources, targets),
                None => chunk.links.extend(sources.iter().zip(targets).filter_map(|(source, target)| {
                    Some(Link { source: ids.index(*source)?, target: ids.index(*target)? })
                })),
            }
            unknown += sources.len() - (chunk.links.len() - before);
            chunk.examine();
        }
        unknown
    }

    /// Adds one link.
    pub fn push(&mut self, link: Link) {
        let chunk = self.room_for(1);
        chunk.links.push(link);
        chunk.examine();
    }

    /// How many links there are.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.links.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.links.is_empty())
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.links.capacity() * size_of::<Link>()).sum()
    }

    /// The same links the other way round.
    pub fn reversed(&self) -> Links {
        let mut reversed = Links::default();
        self.iter().for_each(|link| reversed.push(Link { source: link.target, target: link.source }));
        reversed
    }

    /// All links, in any order.
    pub fn iter(&self) -> impl Iterator<Item = Link> + '_ {
        self.chunks.iter().flat_map(|chunk| chunk.links.iter().copied())
    }

    /// The cheapest order in which one pass over the links can walk the graph.
    pub fn order(&self) -> Order<'_> {
        let mut chunks: Vec<&[Link]> =
            self.chunks.iter().map(|chunk| chunk.links.as_slice()).filter(|chunk| !chunk.is_empty()).collect();
        if !self.chunks.iter().all(|chunk| chunk.ascending) {
            return Order::Unknown(chunks);
        }
        if self.chunks.iter().all(|chunk| chunk.sorted_by_target) && sort_chunks(&mut chunks, |link| link.target) {
            return Order::ByTarget(chunks);
        }
        if self.chunks.iter().all(|chunk| chunk.sorted_by_source) && sort_chunks(&mut chunks, |link| link.source) {
            return Order::BySource(chunks);
        }
        Order::Ascending(chunks)
    }

    fn room_for(&mut self, count: usize) -> &mut Chunk {
        let full = self.chunks.last().is_none_or(|chunk| chunk.links.len() + count > chunk.links.capacity());
        if full {
            let links = Vec::with_capacity(CHUNK_LINKS);
            let empty = Chunk { links, examined: 0, ascending: true, sorted_by_target: true, sorted_by_source: true };
            self.chunks.push(empty);
        }
        let last = self.chunks.len() - 1;
        &mut self.chunks[last]
    }
}

impl Chunk {
    /// Looks at the links that have come since the last time.
    fn examine(&mut self) {
        let fresh = &self.links[self.examined..];
        self.ascending &= fresh.iter().fold(true, |all, link| all & (link.source < link.target));
        // With the link before, which the first fresh one must follow.
        let run = &self.links[self.examined.saturating_sub(1)..];
        let pairs = || run.iter().zip(run.get(1..).unwrap_or_default());
        self.sorted_by_target &= pairs().fold(true, |all, (one, next)| all & (one.target <= next.target));
        self.sorted_by_source &= pairs().fold(true, |all, (one, next)| all & (one.source <= next.source));
        self.examined = self.links.len();
    }
}

/// The same without a branch per link: every pair is written, and the next one overwrites it when an end is not there.
fn add_dense(chunk: &mut Vec<Link>, base: i64, slots: usize, sources: &[i64], targets: &[i64]) {
    let before = chunk.len();
    chunk.resize(before + sources.len(), Link { source: 0, target: 0 });
    let free = &mut chunk[before..];
    let slots = slots as u64;
    let mut kept = 0;
    for (source, target) in sources.iter().zip(targets) {
        let (source, target) = (source.wrapping_sub(base) as u64, target.wrapping_sub(base) as u64);
        free[kept] = Link { source: source as u32, target: target as u32 };
        kept += usize::from((source < slots) & (target < slots));
    }
    chunk.truncate(before + kept);
}

/// Puts chunks, each of which is in the order of `key`, in that order; whether all links then are. Leaves them alone
/// otherwise.
fn sort_chunks(chunks: &mut Vec<&[Link]>, key: impl Fn(&Link) -> u32) -> bool {
    let bounds = |chunk: &[Link]| (chunk.first().map(&key), chunk.last().map(&key));
    let mut sorted = chunks.clone();
    sorted.sort_by_key(|chunk| bounds(chunk));
    if sorted.windows(2).any(|pair| bounds(pair[0]).1 > bounds(pair[1]).0) {
        return false;
    }
    *chunks = sorted;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(links: &[(i64, i64)]) -> &'static str {
        let ids = TaskIds::number(&[&(0..100_000).collect::<Vec<_>>()]).unwrap();
        let (sources, targets): (Vec<_>, Vec<_>) = links.iter().copied().unzip();
        let mut kept = Links::default();
        assert_eq!(kept.add(&ids, &sources, &targets), 0);
        assert_eq!(kept.len(), links.len());
        match kept.order() {
            Order::ByTarget(chunks) => {
                assert!(chunks.concat().is_sorted_by_key(|link| link.target));
                "by target"
            }
            Order::BySource(chunks) => {
                assert!(chunks.concat().is_sorted_by_key(|link| link.source));
                "by source"
            }
            Order::Ascending(_) => "ascending",
            Order::Unknown(_) => "unknown",
        }
    }

    #[test]
    fn orders_are_recognised() {
        assert_eq!(order_of(&[]), "by target");
        assert_eq!(order_of(&[(0, 1), (0, 2), (1, 2)]), "by target");
        assert_eq!(order_of(&[(0, 5), (1, 2), (1, 4)]), "by source");
        assert_eq!(order_of(&[(3, 5), (1, 2), (2, 4)]), "ascending");
        assert_eq!(order_of(&[(0, 1), (3, 2)]), "unknown");
        assert_eq!(order_of(&[(3, 3)]), "unknown");
    }

    #[test]
    fn swapped_chunks_are_put_back() {
        let chunk = CHUNK_LINKS as i64;
        let sorted: Vec<(i64, i64)> = (1..3 * chunk).map(|target| (target - 1, target)).collect();
        let mut swapped = sorted[(2 * chunk) as usize..].to_vec();
        swapped.resize(chunk as usize, (3 * chunk - 2, 3 * chunk - 1));
        swapped.extend(&sorted[..(2 * chunk) as usize]);
        assert_eq!(order_of(&swapped), "by target");
        assert_eq!(order_of(&[&swapped[..], &[(3, 5)]].concat()), "ascending");
    }

    #[test]
    fn links_to_tasks_that_are_not_there_are_counted() {
        for ids in [vec![10i64, 11, 12, 13], vec![10, 12, 13], vec![10, 1 << 40, 12]] {
            let numbered = TaskIds::number(&[&ids]).unwrap();
            let all: Vec<i64> = vec![i64::MIN, 9, 10, 11, 12, 13, 14, 1 << 40, i64::MAX];
            for source in &all {
                for target in &all {
                    let mut links = Links::default();
                    let unknown = links.add(&numbered, &[*source], &[*target]);
                    let known = ids.contains(source) && ids.contains(target);
                    assert_eq!((unknown, links.len()), (usize::from(!known), usize::from(known)));
                }
            }
        }
    }
}
