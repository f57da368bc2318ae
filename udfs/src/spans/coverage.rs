//! How many ticks are covered by spans that are added *and removed*: the length of the union in a moving window frame.
//!
//! A span is two edges: +1 at its start, −1 at its finish. The edges are kept in a search tree ordered by time; each node
//! stores the least coverage between the edges of its subtree, and for how many ticks it holds. At the root the least
//! coverage is zero exactly where nothing runs, so the union is the extent minus those ticks.
//!
//! ```text
//! spans     [0, 4) [2, 6) [8, 9)
//! edges      0: +1   2: +1   4: −1   6: −1   8: +1   9: −1
//! coverage      1       2       1       0       1            least 0, for 2 ticks; union = 9 − 0 − 2
//! ```
//!
//! Cost: O(log n) a span to add or to remove, O(1) to answer, about 100 bytes an edge. The tree is a treap whose priorities
//! come from a counter, so that equal input gives equal trees.

use std::cmp::Ordering;

use super::Span;

/// A multiset of spans with the length of its union.
#[derive(Debug)]
pub(crate) struct Coverage {
    nodes: Vec<Node>,
    /// Slots of `nodes` to use again.
    free: Vec<u32>,
    root: u32,
    /// Nodes made so far, the source of priorities.
    made: u64,
}

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    time: i64,
    /// Starts minus finishes at this time; a node where they cancel out is removed.
    change: i64,
    priority: u64,
    left: u32,
    right: u32,
    whole: Summary,
}

/// What a subtree says about the ticks between its first and its last edge.
#[derive(Debug, Clone, Copy)]
struct Summary {
    first: i64,
    last: i64,
    change: i64,
    /// The least coverage between two edges, counted from zero at the first edge; `i64::MAX` with a single edge.
    least: i64,
    /// For how many ticks it is that low.
    least_ticks: u64,
}

impl Default for Coverage {
    fn default() -> Self {
        Coverage { nodes: Vec::new(), free: Vec::new(), root: NONE, made: 0 }
    }
}

impl Coverage {
    /// Adds a span; empty and reversed ones cover nothing.
    pub(crate) fn add(&mut self, span: Span) {
        if span.start < span.finish {
            self.root = self.change_at(self.root, span.start, 1);
            self.root = self.change_at(self.root, span.finish, -1);
        }
    }

    /// Takes back a span that was added.
    pub(crate) fn remove(&mut self, span: Span) {
        if span.start < span.finish {
            self.root = self.change_at(self.root, span.start, -1);
            self.root = self.change_at(self.root, span.finish, 1);
        }
    }

    /// The number of ticks in the union.
    pub(crate) fn ticks(&self) -> u64 {
        if self.root == NONE {
            return 0;
        }
        let whole = self.node(self.root).whole;
        let uncovered = if whole.least == 0 { whole.least_ticks } else { 0 };
        whole.last.abs_diff(whole.first) - uncovered
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.free.capacity() * size_of::<u32>()
    }

    /// Changes the coverage from `time` on in the subtree at `at`, whose new root is returned.
    fn change_at(&mut self, at: u32, time: i64, change: i64) -> u32 {
        if at == NONE {
            return self.make(time, change);
        }
        let node = *self.node(at);
        match time.cmp(&node.time) {
            Ordering::Equal if node.change + change == 0 => {
                self.free.push(at);
                return self.join(node.left, node.right);
            }
            Ordering::Equal => self.nodes[at as usize].change += change,
            Ordering::Less => {
                let left = self.change_at(node.left, time, change);
                self.nodes[at as usize].left = left;
                // A new node may outrank its parent: it takes the parent's place.
                if left != NONE && self.node(left).priority > node.priority {
                    self.nodes[at as usize].left = self.node(left).right;
                    self.nodes[left as usize].right = at;
                    self.summarise(at);
                    self.summarise(left);
                    return left;
                }
            }
            Ordering::Greater => {
                let right = self.change_at(node.right, time, change);
                self.nodes[at as usize].right = right;
                if right != NONE && self.node(right).priority > node.priority {
                    self.nodes[at as usize].right = self.node(right).left;
                    self.nodes[right as usize].left = at;
                    self.summarise(at);
                    self.summarise(right);
                    return right;
                }
            }
        }
        self.summarise(at);
        at
    }

    /// One tree of two, all of whose times are in order.
    fn join(&mut self, left: u32, right: u32) -> u32 {
        if left == NONE {
            return right;
        }
        if right == NONE {
            return left;
        }
        let top = if self.node(left).priority > self.node(right).priority {
            self.nodes[left as usize].right = self.join(self.node(left).right, right);
            left
        } else {
            self.nodes[right as usize].left = self.join(left, self.node(right).left);
            right
        };
        self.summarise(top);
        top
    }

    fn make(&mut self, time: i64, change: i64) -> u32 {
        self.made += 1;
        let whole = Summary { first: time, last: time, change, least: i64::MAX, least_ticks: 0 };
        let node = Node { time, change, priority: scatter(self.made), left: NONE, right: NONE, whole };
        if let Some(slot) = self.free.pop() {
            self.nodes[slot as usize] = node;
            return slot;
        }
        self.nodes.push(node);
        (self.nodes.len() - 1) as u32
    }

    fn summarise(&mut self, at: u32) {
        let node = *self.node(at);
        let (time, change) = (node.time, node.change);
        let mut whole = Summary { first: time, last: time, change, least: i64::MAX, least_ticks: 0 };
        if node.left != NONE {
            whole = self.node(node.left).whole.then(whole);
        }
        if node.right != NONE {
            whole = whole.then(self.node(node.right).whole);
        }
        self.nodes[at as usize].whole = whole;
    }

    fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }
}

impl Summary {
    /// This stretch, the gap, and the later one.
    fn then(self, later: Summary) -> Summary {
        let later_least = if later.least == i64::MAX { i64::MAX } else { later.least + self.change };
        let parts = [
            (self.least, self.least_ticks),
            (self.change, later.first.abs_diff(self.last)),
            (later_least, later.least_ticks),
        ];
        let least = parts.iter().map(|part| part.0).min().unwrap_or(i64::MAX);
        let least_ticks = parts.iter().filter(|part| part.0 == least).map(|part| part.1).sum();
        Summary { first: self.first, last: later.last, change: self.change + later.change, least, least_ticks }
    }
}

/// Well-mixed bits of a counter (the finaliser of SplitMix64).
fn scatter(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spans::union::Union;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn follows_the_union_of_what_is_there(
            spans in vec((-9..40i64, -9..40i64), 0..40),
            leaves in vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let mut coverage = Coverage::default();
            let mut there: Vec<Span> = Vec::new();
            let check = |coverage: &Coverage, there: &[Span]| {
                let mut union = Union::default();
                there.iter().for_each(|span| union.add(*span));
                assert_eq!(coverage.ticks(), union.ticks());
            };
            let mut leaves = leaves.into_iter();
            for (start, finish) in spans {
                let span = Span { start, finish };
                coverage.add(span);
                there.push(span);
                check(&coverage, &there);
                if start % 2 == 0 && let Some(leaf) = leaves.next() {
                    coverage.remove(there.swap_remove(leaf.index(there.len())));
                    check(&coverage, &there);
                }
            }
            there.drain(..).for_each(|span| coverage.remove(span));
            prop_assert_eq!((coverage.ticks(), coverage.root), (0, NONE));
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut coverage = Coverage::default();
        let all = Span { start: i64::MIN, finish: i64::MAX };
        coverage.add(all);
        coverage.add(all);
        coverage.add(Span { start: 0, finish: 1 });
        assert_eq!(coverage.ticks(), u64::MAX);
        coverage.remove(all);
        coverage.remove(all);
        assert_eq!(coverage.ticks(), 1);
    }

    #[test]
    fn sorted_input_does_not_make_a_deep_tree() {
        let mut coverage = Coverage::default();
        for start in 0..200_000 {
            coverage.add(Span { start: 3 * start, finish: 3 * start + 1 });
        }
        assert_eq!(coverage.ticks(), 200_000);
        let depth = |at: u32| {
            let mut level = vec![at];
            let mut depth = 0;
            while !level.is_empty() {
                depth += 1;
                level = level
                    .into_iter()
                    .flat_map(|at| [coverage.node(at).left, coverage.node(at).right])
                    .filter(|&at| at != NONE)
                    .collect();
            }
            depth
        };
        assert!(depth(coverage.root) < 100);
    }
}
