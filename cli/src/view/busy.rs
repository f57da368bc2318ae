//! How many lanes are busy over time, in equal bins of the whole run.

use tq_udfs::bins::Edges;

/// The stretches of time that sorted spans cover.
pub(super) fn covered(spans: impl IntoIterator<Item = (i64, i64)>, mut found: impl FnMut(i64, i64)) {
    let mut until = i64::MIN;
    for (start, finish) in spans {
        let fresh = start.max(until);
        if fresh < finish {
            found(fresh, finish);
            until = finish;
        }
    }
}

/// Bins of the picture of the whole.
const BUSY_BINS: usize = 1024;

/// How many lanes are busy on average in each bin of the whole: what begins and ends in a bin is added up there, and of what covers bins
/// in full the ends are.
pub(super) struct BusyLanes {
    edges: Edges,
    ticks: Vec<f64>,
    covering: Vec<f64>,
}

impl BusyLanes {
    pub(super) fn new(reach: Option<(i64, i64)>) -> Option<BusyLanes> {
        let (first, last) = reach?;
        let bins = BUSY_BINS.min(usize::try_from(first.abs_diff(last)).unwrap_or(BUSY_BINS));
        let edges = Edges::new(first, last, bins)?;
        Some(BusyLanes { edges, ticks: vec![0.0; bins], covering: vec![0.0; bins + 1] })
    }

    pub(super) fn add(&mut self, start: i64, finish: i64) {
        let (first, last) = (self.edges.bin(start), self.edges.bin(finish - 1));
        if first == last {
            self.ticks[first] += (finish - start) as f64;
            return;
        }
        self.ticks[first] += (self.edges.of_bin(first).1 - start) as f64;
        self.ticks[last] += (finish - self.edges.of_bin(last).0) as f64;
        self.covering[first + 1] += 1.0;
        self.covering[last] -= 1.0;
    }

    /// The sum of two parts of the lanes.
    pub(super) fn plus(mut self, other: &BusyLanes) -> BusyLanes {
        self.ticks.iter_mut().zip(&other.ticks).for_each(|(ticks, others)| *ticks += others);
        self.covering.iter_mut().zip(&other.covering).for_each(|(covering, others)| *covering += others);
        self
    }

    /// By bin, the share of `lanes` lanes that is busy.
    pub(super) fn shares(&self, lanes: usize) -> Vec<f32> {
        let mut covering = 0.0;
        let share = |(bin, (ticks, change)): (usize, (&f64, &f64))| {
            covering += change;
            let (start, finish) = self.edges.of_bin(bin);
            ((ticks / (finish - start).max(1) as f64 + covering) / lanes.max(1) as f64) as f32
        };
        self.ticks.iter().zip(&self.covering).enumerate().map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_lanes_are_counted_by_bin() {
        let mut busy = BusyLanes::new(Some((0, 4096))).unwrap();
        busy.add(0, 4096);
        busy.add(2, 4);
        busy.add(6, 18);
        let shares = busy.shares(2);
        assert_eq!(shares.len(), BUSY_BINS);
        assert_eq!(shares[..6], [0.75, 0.75, 1.0, 1.0, 0.75, 0.5]);
        assert!(BusyLanes::new(None).is_none());
    }
}
