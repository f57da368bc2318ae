//! Points of time in their order, in few bytes: one to three each, where they came about as they were recorded.
//!
//! ```text
//! times as they come ──▶ a million at a time, sorted and packed as differences ──▶ merged while they are read
//! ```
//! Pieces that lie behind each other in time, as those of a long trace do, are read one after the other, and only those that overlap are
//! compared.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::varint;

/// Points of time in any number.
#[derive(Debug, Default)]
pub(crate) struct TimesInOrder {
    waiting: Vec<i64>,
    pieces: Vec<Piece>,
    /// What the pieces take.
    bytes: usize,
}

/// So many are sorted together.
const TOGETHER: usize = if cfg!(test) { 8 } else { 1 << 20 };

/// Some times, not none, each as the distance to the one before.
#[derive(Debug)]
struct Piece {
    first: i64,
    count: usize,
    distances: Box<[u8]>,
}

impl TimesInOrder {
    /// Adds a time.
    #[inline]
    pub(crate) fn push(&mut self, time: i64) {
        self.waiting.push(time);
        if self.waiting.len() >= TOGETHER {
            self.pack();
        }
    }

    /// About how many bytes are held.
    pub(crate) fn size(&self) -> usize {
        self.bytes + self.waiting.capacity() * size_of::<i64>()
    }

    /// All of them, each of them told once. What waits is packed first.
    pub(crate) fn iter(&mut self) -> Merged<'_> {
        self.pack();
        self.waiting = vec![];
        let mut later: Vec<&Piece> = self.pieces.iter().collect();
        later.sort_by_key(|piece| Reverse(piece.first));
        Merged { later, open: BinaryHeap::new(), readers: vec![] }
    }

    fn pack(&mut self) {
        // Times of a store come in stretches that are in order, which a stable sort merges.
        self.waiting.sort();
        let Some(&first) = self.waiting.first() else { return };
        let mut distances = Vec::with_capacity(2 * self.waiting.len());
        let mut before = first;
        for &time in &self.waiting[1..] {
            varint::append(&mut distances, time.wrapping_sub(before) as u64);
            before = time;
        }
        self.bytes += size_of::<Piece>() + distances.len();
        self.pieces.push(Piece { first, count: self.waiting.len(), distances: distances.into_boxed_slice() });
        self.waiting.clear();
    }
}

/// Times in their order.
pub(crate) struct Merged<'a> {
    /// Pieces that have not begun, the next one last.
    later: Vec<&'a Piece>,
    /// The next time of each piece that has begun, with its reader.
    open: BinaryHeap<Reverse<(i64, usize)>>,
    readers: Vec<Reader<'a>>,
}

/// What is left of a piece.
struct Reader<'a> {
    rest: &'a [u8],
    left: usize,
}

impl Iterator for Merged<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        while let Some(piece) = self.later.last()
            && self.open.peek().is_none_or(|Reverse((time, _))| piece.first <= *time)
        {
            self.open.push(Reverse((piece.first, self.readers.len())));
            self.readers.push(Reader { rest: &piece.distances, left: piece.count - 1 });
            self.later.pop();
        }
        let mut top = self.open.peek_mut()?;
        let Reverse((time, reader)) = *top;
        let reader_left = &mut self.readers[reader];
        if reader_left.left == 0 {
            PeekMut::pop(top);
        } else {
            reader_left.left -= 1;
            top.0.0 = time.wrapping_add(varint::next(&mut reader_left.rest) as i64);
        }
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_times_come_in_order(mut times in vec(prop_oneof![any::<i64>(), -50..50i64], 0..80)) {
            let mut in_order = TimesInOrder::default();
            times.iter().for_each(|time| in_order.push(*time));
            times.sort_unstable();
            prop_assert_eq!(in_order.iter().collect::<Vec<_>>(), times);
        }
    }

    #[test]
    fn times_of_a_recorder_take_a_byte_each() {
        let mut times = TimesInOrder::default();
        (0..8000).for_each(|number| times.push(1_000_000_000 + 100 * number));
        assert_eq!(times.iter().count(), 8000);
        assert_eq!(times.bytes, 1000 * (size_of::<Piece>() + TOGETHER - 1));
    }
}
