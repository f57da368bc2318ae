//! A row of a picture at many widths at once: bins of some length, of twice that length, and so on, in one sweep.
//!
//! Life of the data: spans come in the order of time. Each is added to bins of the finest level at which it is shorter than two bins, and a
//! complete bin is added to the bin of twice its length. So a level sums up exactly the spans that a picture at its width does not draw: its
//! bins are those of [`Row::bins`] over all spans shorter than two bins.
//!
//! ```text
//! spans    a----) b-) c)  d-----------------------)
//! level 1  [a b c---------)[----------------)          d fills two bins of this level: it is drawn, and in no sum
//! level 0  [b----)[c------)                            a fills two bins of this one
//! ```
//!
//! [`Row::bins`]: super::rows::Row::bins

use std::collections::HashMap;

use datafusion_common::hash_utils::RandomState;

/// Sums of one row at all levels, as far as its spans have come.
#[derive(Debug)]
pub struct Levels {
    origin: i64,
    /// A bin of level n has 2^(finest + n) ticks.
    finest: u32,
    open: Vec<OpenBin>,
}

/// What a row holds in a bin of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelBin {
    /// Its level.
    pub level: usize,
    /// Its number: bin n begins n bins after the origin.
    pub bin: i64,
    /// How many spans touch it that are shorter than two bins.
    pub count: u32,
    /// How many of its ticks one of them covers.
    pub busy: i64,
    /// The number of the name with most ticks, the smallest of several.
    pub name: u32,
    /// How many ticks it has.
    pub name_busy: i64,
}

/// The bin of a level that is being filled.
#[derive(Debug, Default)]
struct OpenBin {
    bin: i64,
    count: u32,
    busy: i64,
    ticks_of: HashMap<u32, i64, RandomState>,
    /// Whether its first span is in the bin before it, too.
    continues: bool,
}

impl Levels {
    /// Of bins that are counted from an origin before all spans; the finest ones have `2^finest` ticks.
    pub fn new(origin: i64, finest: u32, levels: usize) -> Levels {
        let mut open = Vec::new();
        open.resize_with(levels, OpenBin::default);
        Levels { origin, finest, open }
    }

    /// The first level that sums up spans of so many ticks, which finer levels draw; the number of levels for those that all of them draw.
    pub fn level_of(&self, ticks: u64) -> usize {
        (0..self.open.len()).find(|level| ticks >> 1 < self.bin_ticks(*level)).unwrap_or(self.open.len())
    }

    /// About how many bytes are held.
    pub fn size(&self) -> usize {
        let names: usize = self.open.iter().map(|open| open.ticks_of.capacity()).sum();
        self.open.len() * size_of::<OpenBin>() + names * (size_of::<(u32, i64)>() + 1)
    }

    /// Adds the next span, which overlaps none of those before it; `found` gets the bins that are complete. Returns its
    /// [level](Levels::level_of).
    pub fn push(&mut self, start: i64, finish: i64, name: u32, mut found: impl FnMut(LevelBin)) -> usize {
        let level = self.level_of(finish.abs_diff(start));
        // It takes the rest of finer bins, which hold nothing of it.
        for finer in 0..level {
            self.close(finer, &mut found);
        }
        if level == self.open.len() {
            return level;
        }
        let last = if finish > start { finish - 1 } else { start };
        let bins = self.bin(level, start)..=self.bin(level, last);
        for bin in bins.clone() {
            if self.open[level].count > 0 && self.open[level].bin != bin {
                self.close(level, &mut found);
            }
            let from = self.begin(level, bin);
            let ticks = finish.min(from.saturating_add_unsigned(self.bin_ticks(level))).saturating_sub(start.max(from));
            let open = &mut self.open[level];
            if open.count == 0 {
                (open.bin, open.continues) = (bin, bin != *bins.start());
            }
            open.add(1, ticks.max(0), [(name, ticks.max(0))]);
        }
        level
    }

    /// Gives what is left after the last span.
    pub fn finish(&mut self, mut found: impl FnMut(LevelBin)) {
        for level in 0..self.open.len() {
            self.close(level, &mut found);
        }
    }

    /// Ends the open bin of a level and adds it to the one around it.
    fn close(&mut self, level: usize, found: &mut impl FnMut(LevelBin)) {
        if self.open[level].count == 0 {
            return;
        }
        let around = self.open[level].bin >> 1;
        if self.open.get(level + 1).is_some_and(|next| next.count > 0 && next.bin != around) {
            self.close(level + 1, found);
        }
        let (of_level, coarser) = self.open.split_at_mut(level + 1);
        let open = &mut of_level[level];
        found(open.summed_up(level));
        if let Some(next) = coarser.first_mut() {
            // The span that crosses from the first half into the second one was counted with the first.
            let twice = u32::from(open.continues && open.bin & 1 == 1);
            if next.count == 0 {
                (next.bin, next.continues) = (around, open.continues && open.bin & 1 == 0);
            }
            next.add(open.count - twice, open.busy, open.ticks_of.drain());
        }
        (open.count, open.busy, open.continues) = (0, 0, false);
        open.ticks_of.clear();
    }

    /// How many ticks a bin of a level has.
    pub fn bin_ticks(&self, level: usize) -> u64 {
        1 << (self.finest as usize + level).min(62)
    }

    /// The bin of a tick.
    fn bin(&self, level: usize, tick: i64) -> i64 {
        (tick - self.origin) >> (self.finest as usize + level).min(62)
    }

    /// The first tick of a bin.
    fn begin(&self, level: usize, bin: i64) -> i64 {
        self.origin + (bin << (self.finest as usize + level).min(62))
    }
}

impl OpenBin {
    fn add(&mut self, count: u32, busy: i64, ticks_of: impl IntoIterator<Item = (u32, i64)>) {
        self.count += count;
        self.busy += busy;
        for (name, ticks) in ticks_of {
            *self.ticks_of.entry(name).or_insert(0) += ticks;
        }
    }

    fn summed_up(&self, level: usize) -> LevelBin {
        let most = self.ticks_of.iter().map(|(name, ticks)| (*ticks, *name));
        let (name_busy, name) = most.max_by_key(|&(ticks, name)| (ticks, std::cmp::Reverse(name))).unwrap_or_default();
        LevelBin { level, bin: self.bin, count: self.count, busy: self.busy, name, name_busy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bins::Edges;
    use crate::lanes::{LaneSpan, sort_lane};
    use crate::overview::rows::{RowSpan, TicksOfNames, rows_of};
    use crate::relation::rows::Ties;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const BINS: usize = 256;

    proptest! {
        #[test]
        fn each_level_sums_up_what_a_picture_of_its_width_does_not_draw(
            spans in vec((0..250i64, 0..40i64, 0..3u32), 0..40), origin in -9..1i64, finest in 0..3u32, levels in 1..6usize,
        ) {
            let lane = (0..).zip(&spans).map(|(row, (start, length, _))| LaneSpan::new(*start, start + length, row));
            let mut lane: Vec<LaneSpan> = lane.collect();
            sort_lane(&mut lane, &Ties::by_row());
            for row in rows_of(&lane, |span| (spans[span.row as usize].2, 0)) {
                let (mut all, mut found) = (Levels::new(origin, finest, levels), vec![]);
                for place in 0..row.len() {
                    let RowSpan { start, finish, name, .. } = row.span(place);
                    all.push(start, finish, name, |bin| found.push(bin));
                }
                all.finish(|bin| found.push(bin));
                for level in 0..levels {
                    let ticks = all.bin_ticks(level) as i64;
                    let edges = Edges::new(origin, origin + BINS as i64 * 4 * ticks, BINS * 4).unwrap();
                    let is_summed = |start: i64, finish: i64| finish - start < 2 * ticks;
                    let mut expected = vec![];
                    row.bins(&edges, &mut TicksOfNames::new(3), is_summed, |bin| expected.push(LevelBin {
                        level, bin: bin.bin as i64, count: bin.count as u32, busy: bin.busy, name: bin.name, name_busy: bin.name_busy,
                    }));
                    let of_level: Vec<LevelBin> = found.iter().filter(|bin| bin.level == level).copied().collect();
                    prop_assert_eq!(of_level, expected);
                }
            }
        }
    }
}
