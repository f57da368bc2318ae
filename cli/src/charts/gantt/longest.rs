//! The longest tasks among many, in the memory of few.

use std::cmp::Reverse;

use super::Bar;

/// So many are kept: about 150 bytes each in a picture.
const KEPT: usize = 300;

/// Those of the bars added that are shown for the longest time; of equal ones the first of the first lanes.
#[derive(Debug, Default)]
pub(super) struct Longest {
    bars: Vec<(Reverse<i64>, Bar)>,
    /// Shorter ones are not among them.
    least: i64,
}

impl Longest {
    /// Adds a bar of which `shown` ticks are shown.
    pub(super) fn add(&mut self, bar: Bar, shown: i64) {
        if shown < self.least {
            return;
        }
        self.bars.push((Reverse(shown), bar));
        if self.bars.len() == 2 * KEPT {
            let (_, (Reverse(least), _), _) = self.bars.select_nth_unstable(KEPT - 1);
            self.least = *least;
            self.bars.truncate(KEPT);
        }
    }

    /// The bars, the longest first.
    pub(super) fn bars(&self) -> Vec<Bar> {
        let mut bars = self.bars.clone();
        bars.sort_unstable();
        bars.into_iter().take(KEPT).map(|(_, bar)| bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_sorting_them_all() {
        let lengths = (0..5_000_i64).map(|number| number * 7_919 % 1_009);
        let bars: Vec<Bar> = lengths
            .enumerate()
            .map(|(number, length)| Bar {
                lane: number % 3,
                row: 0,
                name: 0,
                kind: 0,
                start: number as i64,
                finish: number as i64 + length,
            })
            .collect();
        let mut longest = Longest::default();
        for bar in &bars {
            longest.add(*bar, bar.finish - bar.start);
        }
        let mut sorted = bars;
        sorted.sort_by_key(|bar| (Reverse(bar.finish - bar.start), *bar));
        sorted.truncate(KEPT);
        assert_eq!(longest.bars(), sorted);
    }
}
