//! Bins: a window of time, cut into equal intervals.

use std::ops::Range;

use crate::spans::Window;

/// The most bins that a window is cut into.
pub(crate) const BINS_MAX: i64 = 1 << 24;

/// The window of a run; `None` when it has no ticks.
pub(crate) fn within(window: Window, reach: Option<&Range<i64>>) -> Option<(i64, i64)> {
    let Range { start: first, end: last } = reach?.clone();
    let from = window.from.unwrap_or(first);
    let to = match window.to {
        Some(to) => to,
        // Tasks without length still start and finish somewhere.
        None if window.from.is_none() && first == last => last.saturating_add(1),
        None => last,
    };
    (from < to).then_some((from, to))
}

/// The borders of the bins of a window.
#[derive(Debug)]
pub struct Edges {
    pub(crate) edges: Vec<i64>,
    bins_per_tick: f64,
}

impl Edges {
    /// The window must have ticks. `None`: a bin does not fit a `BIGINT`.
    pub fn new(from: i64, to: i64, bins: usize) -> Option<Edges> {
        let length = i128::from(to) - i128::from(from);
        let edge = |bin: usize| (i128::from(from) + bin as i128 * length / bins as i128) as i64;
        let edges: Vec<i64> = (0..=bins).map(edge).collect();
        edges.windows(2).all(|bin| bin[1].checked_sub(bin[0]).is_some()).then_some(())?;
        Some(Edges { edges, bins_per_tick: bins as f64 / length as f64 })
    }

    /// Where the window begins.
    pub fn from(&self) -> i64 {
        self.edges[0]
    }

    /// Where the window ends.
    pub fn to(&self) -> i64 {
        self.edges[self.edges.len() - 1]
    }

    /// How many bins there are.
    #[expect(clippy::len_without_is_empty, reason = "there is always a bin")]
    pub fn len(&self) -> usize {
        self.edges.len() - 1
    }

    /// First tick of a bin, and first tick after it.
    pub fn of_bin(&self, bin: usize) -> (i64, i64) {
        (self.edges[bin], self.edges[bin + 1])
    }

    /// The bin of a tick in the window. The guess is off by one where rounding or a floor went the other way.
    #[inline]
    pub fn bin(&self, tick: i64) -> usize {
        let guess = (tick.abs_diff(self.edges[0]) as f64 * self.bins_per_tick) as usize;
        let mut bin = guess.min(self.len() - 1);
        while tick < self.edges[bin] {
            bin -= 1;
        }
        while self.edges[bin + 1] <= tick {
            bin += 1;
        }
        bin
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_tick_has_its_bin(from in any::<i64>(), length in 1..=i64::MAX, bins in 1..2_000usize, at in any::<u64>()) {
            let to = from.saturating_add(length);
            prop_assume!(from < to);
            let edges = Edges::new(from, to, bins).unwrap();
            let tick = from + (at % from.abs_diff(to)) as i64;
            let bin = edges.bin(tick);
            prop_assert!(edges.edges[bin] <= tick && tick < edges.edges[bin + 1]);
        }
    }
}
