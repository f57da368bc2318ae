//! `PE<i>_send.csv`: a line per `send()`, before aggregation.
//!
//! A block of lines becomes columns at once: the target's number is its key in the dictionary of PEs; source and size are
//! mostly the same in every line and then cost nothing.

use super::line::{Fields, NO_TIME, Tally, each_line};
use crate::trace::Block;

/// A column that is mostly one value.
#[derive(Debug, PartialEq)]
pub(super) enum Mostly<T> {
    None,
    One(T),
    Each(Vec<T>),
}

impl<T: Copy + PartialEq> Mostly<T> {
    /// Adds the value of row `rows`.
    #[inline]
    pub(super) fn push(&mut self, value: T, rows: usize) {
        match self {
            Mostly::One(one) if *one == value => {}
            Mostly::Each(each) => each.push(value),
            Mostly::None => *self = Mostly::One(value),
            Mostly::One(one) => {
                let mut each = vec![*one; rows];
                each.push(value);
                *self = Mostly::Each(each);
            }
        }
    }
}

/// Which node a PE is on, as lines say.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    of: Vec<Option<i32>>,
    conflict: Vec<i32>,
}

impl Nodes {
    /// Notes a mention.
    #[inline]
    pub(super) fn meet(&mut self, pe: i32, node: i32) {
        match self.of.get(pe as usize) {
            Some(Some(known)) if *known == node => {}
            _ => self.learn(pe, node),
        }
    }

    #[cold]
    fn learn(&mut self, pe: i32, node: i32) {
        let place = pe as usize;
        if self.of.len() <= place {
            self.of.resize(place + 1, None);
        }
        match self.of[place] {
            None => self.of[place] = Some(node),
            Some(_) => {
                if self.conflict.last() != Some(&pe) && !self.conflict.contains(&pe) {
                    self.conflict.push(pe);
                }
            }
        }
    }

    /// The node that a PE's own file names, which counts more than what others say.
    pub(super) fn correct(&mut self, pe: i32, node: i32) {
        self.meet(pe, node);
        self.of[pe as usize] = Some(node);
    }

    /// Takes over what another block said.
    pub(super) fn absorb(&mut self, other: &Nodes) {
        for (pe, node) in (0..).zip(&other.of) {
            if let Some(node) = node {
                self.meet(pe, *node);
            }
        }
        for pe in &other.conflict {
            if !self.conflict.contains(pe) {
                self.conflict.push(*pe);
            }
        }
    }

    pub(super) fn node(&self, pe: i32) -> Option<i32> {
        self.of.get(pe as usize).copied().flatten()
    }

    /// PEs that are said to be on several nodes.
    pub(super) fn conflicts(&self) -> &[i32] {
        &self.conflict
    }

    /// The largest PE that was met.
    pub(super) fn largest(&self) -> Option<i32> {
        self.of.iter().rposition(Option::is_some).map(|pe| pe as i32)
    }
}

/// Stamps of lines in their order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamps {
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) least: i64,
    pub(super) most: i64,
    pub(super) backwards: u64,
}

impl Stamps {
    pub(super) fn none() -> Stamps {
        Stamps { first: NO_TIME, last: NO_TIME, least: i64::MAX, most: i64::MIN, backwards: 0 }
    }

    #[inline]
    pub(super) fn meet(&mut self, stamp: i64) {
        // Before the first stamp, `last` is below every time.
        self.backwards += u64::from(stamp < self.last);
        if self.first == NO_TIME {
            self.first = stamp;
        }
        self.last = stamp;
        self.least = self.least.min(stamp);
        self.most = self.most.max(stamp);
    }

    /// Continues with the stamps that follow.
    pub(super) fn then(&mut self, next: &Stamps) {
        if next.first == NO_TIME {
            return;
        }
        self.backwards += next.backwards + u64::from(next.first < self.last);
        if self.first == NO_TIME {
            self.first = next.first;
        }
        self.last = next.last;
        self.least = self.least.min(next.least);
        self.most = self.most.max(next.most);
    }
}

/// The columns of a block of sends.
pub(super) struct Sends {
    pub(super) sources: Mostly<i32>,
    pub(super) targets: Vec<i32>,
    pub(super) bytes: Mostly<i64>,
    /// Nanoseconds since 1970; [`NO_TIME`] of lines without.
    pub(super) times: Vec<i64>,
    pub(super) without_time: u64,
    pub(super) stamps: Stamps,
    pub(super) nodes: Nodes,
    /// The node that the source calls its own.
    pub(super) own_node: Option<(i32, i32)>,
    pub(super) tally: Tally,
}

/// Parses a block.
pub(super) fn parse(block: Block<'_>) -> Sends {
    let lines = memchr::memchr_iter(b'\n', block.bytes).count();
    let mut sends = Sends {
        sources: Mostly::None,
        targets: Vec::with_capacity(lines),
        bytes: Mostly::None,
        times: Vec::with_capacity(lines),
        without_time: 0,
        stamps: Stamps::none(),
        nodes: Nodes::default(),
        own_node: None,
        tally: Tally::default(),
    };
    let tally = each_line(block.bytes, block.last, |line, tally| sends.read(line, tally).is_some());
    sends.tally = tally;
    sends
}

impl Sends {
    #[inline]
    fn read(&mut self, line: &[u8], tally: &mut Tally) -> Option<()> {
        let mut fields = Fields::new(line);
        let source_node = fields.node().filter(|_| fields.comma())?;
        let source = fields.pe().filter(|_| fields.comma())?;
        let target_node = fields.node().filter(|_| fields.comma())?;
        let target = fields.pe().filter(|_| fields.comma())?;
        let bytes = fields.integer()?;
        let time = match fields.comma() {
            true => fields.stamp().filter(|_| !fields.comma())?,
            false => NO_TIME,
        };
        if !fields.ended() {
            return None;
        }
        let rows = self.targets.len();
        self.sources.push(source, rows);
        self.targets.push(target);
        self.bytes.push(bytes, rows);
        self.times.push(time);
        if time == NO_TIME {
            self.without_time += 1;
        } else {
            self.stamps.meet(time);
        }
        self.nodes.meet(target, target_node);
        if self.own_node != Some((source, source_node)) {
            self.nodes.correct(source, source_node);
            self.own_node = Some((source, source_node));
        }
        tally.trailing_comma += u64::from(fields.trailing);
        tally.tight += u64::from(fields.tight);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sends(text: &str) -> Sends {
        parse(Block { bytes: text.as_bytes(), offset: 0, last: true })
    }

    #[test]
    fn five_and_six_columns_and_odd_commas() {
        let sends = sends("0, 0, 1, 2, 16, 1.5\n0, 0, 1, 2, 16\n0,0,1,3,24,1.25,\n0, 0, 1\n0, 0, 1, 2, 16, 1.5");
        assert_eq!(sends.targets, [2, 2, 3]);
        assert_eq!(sends.sources, Mostly::One(0));
        assert_eq!(sends.bytes, Mostly::Each(vec![16, 16, 24]));
        assert_eq!(sends.times, [1_500_000_000, NO_TIME, 1_250_000_000]);
        assert_eq!((sends.without_time, sends.stamps.backwards), (1, 1));
        let tally = &sends.tally;
        assert_eq!((tally.lines, tally.bad, tally.torn, tally.trailing_comma, tally.tight), (5, 1, 1, 1, 1));
        assert_eq!(tally.example.as_deref(), Some("0, 0, 1"));
    }

    #[test]
    fn what_is_no_send_is_bad() {
        for line in
            ["0, 0, 1, 2, 16, 1.5, 3", "a, 0, 1, 2, 16", "0, 0, 1, 2, 16 16", "0, 0, 1, 99999999, 16", "0, 0, 1, 2"]
        {
            let sends = sends(&format!("{line}\n"));
            assert_eq!((sends.targets.len(), sends.tally.bad), (0, 1), "{line}");
        }
    }

    #[test]
    fn nodes_of_pes_may_disagree() {
        let mut nodes = Nodes::default();
        nodes.meet(5, 1);
        nodes.correct(5, 2);
        nodes.meet(5, 2);
        assert_eq!(
            (nodes.node(5), nodes.conflicts(), nodes.largest(), nodes.node(9)),
            (Some(2), &[5][..], Some(5), None)
        );
    }
}
