//! Bins: how long which colour ran in each slice of time of a row.

/// Colours that a bin tells apart; the smallest gives way to a further one.
const COLOURS_PER_BIN: usize = 6;

/// How time is cut: bin `i` is `[origin + i · width, origin + (i + 1) · width)`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    pub(super) origin: i64,
    pub(super) width: i64,
}

impl Slice {
    /// The bin that a time lies in; the end of a span that closes the last bin lies in the next one.
    pub(super) fn index(self, time: i64) -> i64 {
        time.saturating_sub(self.origin) / self.width
    }
}

/// The bins of a row, from the origin on.
#[derive(Debug, Default)]
pub(super) struct Bins(pub(super) Vec<Bin>);

/// Ticks by colour.
#[derive(Debug, Clone, Default)]
pub(super) struct Bin {
    /// All ticks that were busy.
    pub(super) busy: i64,
    colours: Vec<(u32, i64)>,
}

impl Bins {
    /// Spreads a span over its bins. An instant leaves a trace in the bin that it stands in, without busy ticks.
    pub(super) fn add(&mut self, slice: Slice, colour: u32, start: i64, finish: i64) {
        let (first, last) = (slice.index(start), slice.index((finish - 1).max(start)));
        if self.0.len() <= last as usize {
            self.0.resize_with(last as usize + 1, Bin::default);
        }
        for index in first..=last {
            let from = start.max(slice.origin + index * slice.width);
            let to = finish.min(slice.origin.saturating_add((index + 1).saturating_mul(slice.width)));
            self.0[index as usize].add(colour, to - from);
        }
    }

    /// The colours in them; those of several bins more than once.
    pub(super) fn colours(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|bin| bin.colours.iter().map(|(colour, _)| *colour))
    }

    /// Merges bins in pairs: the slices are twice as wide.
    pub(super) fn halve(&mut self) {
        let mut halved: Vec<Bin> = Vec::with_capacity(self.0.len().div_ceil(2));
        for (index, bin) in std::mem::take(&mut self.0).into_iter().enumerate() {
            if index % 2 == 0 {
                halved.push(bin);
            } else if let Some(left) = halved.last_mut() {
                let told: i64 = bin.colours.iter().map(|(_, ticks)| ticks).sum();
                for (colour, ticks) in bin.colours {
                    left.add(colour, ticks);
                }
                // `add` counted what the colours tell; what they forgot was busy too.
                left.busy += bin.busy - told;
            }
        }
        self.0 = halved;
    }
}

impl Bin {
    fn add(&mut self, colour: u32, ticks: i64) {
        self.busy += ticks;
        if let Some((_, total)) = self.colours.iter_mut().find(|(known, _)| *known == colour) {
            *total += ticks;
            return;
        }
        if self.colours.len() < COLOURS_PER_BIN {
            self.colours.push((colour, ticks));
            return;
        }
        let least = self.colours.iter_mut().min_by_key(|(colour, total)| (*total, *colour));
        if let Some(least) = least.filter(|(_, total)| *total < ticks) {
            *least = (colour, ticks);
        }
    }
}

/// The colour that ran longest in some bins (ties: the smallest number), `None` where nothing ran.
pub(super) fn dominant(bins: &[Bin]) -> Option<u32> {
    let mut totals: Vec<(u32, i64)> = Vec::new();
    for &(colour, ticks) in bins.iter().flat_map(|bin| &bin.colours) {
        match totals.iter_mut().find(|(known, _)| *known == colour) {
            Some((_, total)) => *total += ticks,
            None => totals.push((colour, ticks)),
        }
    }
    totals.into_iter().max_by_key(|&(colour, ticks)| (ticks, std::cmp::Reverse(colour))).map(|(colour, _)| colour)
}
