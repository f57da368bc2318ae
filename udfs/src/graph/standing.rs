//! The links of one run as they stand in their table, for algorithms that read them in order and keep none.
//!
//! ```text
//! in memory    slices of the table's own buffers                     nothing is copied
//! packed       2 to 3 bytes a link: how far the source is, and       where those would take more than half of the memory, as of a
//!              how far the target is behind the one before           table that is read from a file
//! ```
//! Partitions of a table are read side by side, so pieces may have changed places: they are read in the order of their targets.

use arrow::buffer::ScalarBuffer;
use datafusion_common::Result;

use crate::relation::call::Work;
use crate::varint::{append, next, signed, unsigned};

/// Links that stand together: as many targets as sources, task ids.
#[derive(Debug, Clone, Copy)]
pub struct Stretch<'a> {
    /// Ids of the tasks that come first.
    pub sources: &'a [i64],
    /// Ids of the tasks that wait for them.
    pub targets: &'a [i64],
}

/// Links as task ids.
#[derive(Debug, Default)]
pub struct Standing {
    pieces: Vec<Piece>,
    links: usize,
    is_packed: bool,
}

/// Some links that stood together, not none.
#[derive(Debug)]
enum Piece {
    Slices(ScalarBuffer<i64>, ScalarBuffer<i64>),
    Packed(Packed),
}

/// Room to unpack a piece.
#[derive(Debug, Default)]
pub struct Unpacked {
    sources: Vec<i64>,
    targets: Vec<i64>,
}

impl Standing {
    /// Adds links. From half of the memory on, all of them are packed.
    ///
    /// # Errors
    /// No memory.
    pub(crate) fn add(
        &mut self,
        sources: ScalarBuffer<i64>,
        targets: ScalarBuffer<i64>,
        work: &mut Work,
    ) -> Result<()> {
        if targets.is_empty() {
            return Ok(());
        }
        self.links += targets.len();
        // At most, since the buffers of a table in memory are the table's own.
        let bytes = targets.len() * LINK_BYTES;
        if !self.is_packed && work.size() + bytes <= work.limit() / 2 {
            work.grow(bytes)?;
            self.pieces.push(Piece::Slices(sources, targets));
            return Ok(());
        }
        if !std::mem::replace(&mut self.is_packed, true) {
            for piece in &mut self.pieces {
                work.check()?;
                let Piece::Slices(sources, targets) = piece else { continue };
                let (before, packed) = (targets.len() * LINK_BYTES, Packed::of(sources, targets));
                work.grow(packed.bytes.len())?;
                *piece = Piece::Packed(packed);
                work.shrink(before);
            }
        }
        let packed = Packed::of(&sources, &targets);
        work.grow(packed.bytes.len())?;
        self.pieces.push(Piece::Packed(packed));
        Ok(())
    }

    /// How many links there are.
    pub fn len(&self) -> usize {
        self.links
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.links == 0
    }

    /// Whether they take little memory and some time to read.
    pub fn is_packed(&self) -> bool {
        self.is_packed
    }

    /// The pieces in the order of their targets, where those that belong to no task, being before `base`, come last.
    pub fn ordered(&self, base: i64) -> Vec<&dyn Links> {
        let mut pieces: Vec<&Piece> = self.pieces.iter().collect();
        pieces.sort_by_key(|piece| piece.ends().map(|target| target.wrapping_sub(base) as u64));
        pieces.into_iter().map(|piece| -> &dyn Links { piece }).collect()
    }

    /// Takes the pieces one by one, and gives back their memory.
    pub(crate) fn drain(
        self,
        work: &mut Work,
        mut take: impl FnMut(Stretch<'_>, &mut Work) -> Result<()>,
    ) -> Result<()> {
        let mut room = Unpacked::default();
        for piece in self.pieces {
            work.check()?;
            take(piece.read(&mut room), work)?;
            let bytes = match &piece {
                Piece::Slices(_, targets) => targets.len() * LINK_BYTES,
                Piece::Packed(packed) => packed.bytes.len(),
            };
            drop(piece);
            work.shrink(bytes);
        }
        Ok(())
    }
}

/// Bytes of a link in a table.
const LINK_BYTES: usize = 2 * size_of::<i64>();

/// Links that can be read.
pub trait Links {
    /// The links of a piece, in `room` where they are packed.
    fn read<'a>(&'a self, room: &'a mut Unpacked) -> Stretch<'a>;
}

impl Links for Stretch<'_> {
    fn read<'a>(&'a self, _: &'a mut Unpacked) -> Stretch<'a> {
        *self
    }
}

impl Links for Piece {
    fn read<'a>(&'a self, room: &'a mut Unpacked) -> Stretch<'a> {
        match self {
            Piece::Slices(sources, targets) => Stretch { sources, targets },
            Piece::Packed(packed) => packed.unpack(room),
        }
    }
}

impl Piece {
    /// Its first target and its last one.
    fn ends(&self) -> [i64; 2] {
        match self {
            Piece::Slices(_, targets) => [targets[0], targets[targets.len() - 1]],
            Piece::Packed(packed) => packed.ends,
        }
    }
}

/// Links in few bytes.
///
/// Each is a number of [`crate::varint`]: in its lowest two bits how far the target is behind the one before, if 0 or 1; above how far the source is before the target, its sign lowest. [`FAR`]
/// says that the distance to the target before comes next, as such a number, and [`ANY`] that both ids do, as they are.
#[derive(Debug)]
struct Packed {
    bytes: Box<[u8]>,
    links: usize,
    ends: [i64; 2],
}

const FAR: u64 = 2;
const ANY: u64 = 3;

impl Packed {
    fn of(sources: &[i64], targets: &[i64]) -> Packed {
        let mut bytes = Vec::with_capacity(3 * targets.len());
        let ends = [targets[0], targets[targets.len() - 1]];
        let mut before = ends[0];
        for (&source, &target) in sources.iter().zip(targets) {
            let (back, on) = (signed(target.wrapping_sub(source)), signed(target.wrapping_sub(before)));
            if back >= 1 << 62 {
                append(&mut bytes, ANY);
                bytes.extend_from_slice(&target.to_le_bytes());
                bytes.extend_from_slice(&source.to_le_bytes());
            } else {
                match on {
                    0 => append(&mut bytes, back << 2),
                    // One, with its sign.
                    2 => append(&mut bytes, (back << 2) | 1),
                    _ => {
                        append(&mut bytes, (back << 2) | FAR);
                        append(&mut bytes, on);
                    }
                }
            }
            before = target;
        }
        Packed { bytes: bytes.into_boxed_slice(), links: targets.len(), ends }
    }

    fn unpack<'a>(&self, room: &'a mut Unpacked) -> Stretch<'a> {
        room.sources.clear();
        room.targets.clear();
        let (mut rest, mut target) = (&self.bytes[..], self.ends[0]);
        for _ in 0..self.links {
            let number = next(&mut rest);
            let source = match number & 3 {
                ANY => {
                    target = whole(&mut rest);
                    whole(&mut rest)
                }
                near => {
                    let on = if near == FAR { unsigned(next(&mut rest)) } else { near as i64 };
                    target = target.wrapping_add(on);
                    target.wrapping_sub(unsigned(number >> 2))
                }
            };
            room.sources.push(source);
            room.targets.push(target);
        }
        Stretch { sources: &room.sources, targets: &room.targets }
    }
}

fn whole(bytes: &mut &[u8]) -> i64 {
    match bytes.split_first_chunk() {
        Some((number, rest)) => {
            *bytes = rest;
            i64::from_le_bytes(*number)
        }
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_links_are_the_same(links in vec((any::<i64>(), any::<i64>(), -300..300i64, 0..3i64, 0..8u8), 1..60)) {
            let mut target = 1000_i64;
            let (mut sources, mut targets) = (vec![], vec![]);
            for (any_source, any_target, back, on, kind) in links {
                target = if kind == 0 { any_target } else { target.wrapping_add(on) };
                targets.push(target);
                sources.push(if kind == 1 { any_source } else { target.wrapping_sub(back) });
            }
            let packed = Packed::of(&sources, &targets);
            let mut room = Unpacked::default();
            let links = packed.unpack(&mut room);
            prop_assert_eq!((links.sources, links.targets), (&sources[..], &targets[..]));
            prop_assert_eq!(packed.ends, [targets[0], targets[targets.len() - 1]]);
        }
    }

    #[test]
    fn links_are_packed_from_half_of_the_memory_on() {
        let piece = |first: i64| {
            let targets: Vec<i64> = (first..first + 100).collect();
            (
                ScalarBuffer::from(targets.iter().map(|target| target - 7).collect::<Vec<_>>()),
                ScalarBuffer::from(targets),
            )
        };
        // Two pieces as they are take half of it.
        let (mut work, mut standing) = (Work::limited_for_tests(4 * 100 * LINK_BYTES), Standing::default());
        for (number, is_packed) in [(1, false), (2, false), (3, true), (0, true)] {
            let (sources, targets) = piece(100 * number);
            standing.add(sources, targets, &mut work).unwrap();
            assert_eq!(standing.is_packed(), is_packed, "{number}");
            let bytes = if is_packed { 100 * standing.pieces.len() } else { standing.len() * LINK_BYTES };
            assert_eq!(work.size(), bytes, "{number}");
        }
        let mut room = Unpacked::default();
        let targets: Vec<i64> =
            standing.ordered(0).iter().flat_map(|piece| piece.read(&mut room).targets.to_vec()).collect();
        assert_eq!(targets, (0..400).collect::<Vec<i64>>());
        standing.drain(&mut work, |_, _| Ok(())).unwrap();
        assert_eq!(work.size(), 0);
    }

    #[test]
    fn links_of_a_recorder_take_two_bytes() {
        let targets: Vec<i64> = (1_000_000..1_001_000).flat_map(|target| [target; 4]).collect();
        let sources: Vec<i64> = targets.iter().zip(0..).map(|(target, link)| target - 100 - link % 200).collect();
        assert_eq!(Packed::of(&sources, &targets).bytes.len(), 2 * targets.len());
    }
}
