//! The tasks of the critical path in a picture: outlined on top of everything, in bounded memory however many there
//! are.

use super::BARS_MAX;

/// Bars in any order. Bars of a row with less than a pixel between them are merged.
#[derive(Debug)]
pub(super) struct Path {
    bars: Vec<PathBar>,
    /// Bars are merged when there are more than this.
    merge_above: usize,
}

/// A stretch of a row that the path runs through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PathBar {
    pub(super) lane: usize,
    pub(super) row: usize,
    pub(super) start: i64,
    pub(super) finish: i64,
}

impl Path {
    pub(super) fn new() -> Path {
        Path { bars: Vec::new(), merge_above: BARS_MAX }
    }

    /// Adds a bar. `pixel` is the time that a pixel stands for as far as is known: it never shrinks.
    pub(super) fn add(&mut self, bar: PathBar, pixel: i64) {
        self.bars.push(bar);
        if self.bars.len() > self.merge_above {
            self.merge(pixel);
            // Merging again pays when as many have come as stayed.
            self.merge_above = BARS_MAX.max(self.bars.len() * 2);
        }
    }

    pub(super) fn bars(&self) -> &[PathBar] {
        &self.bars
    }

    fn merge(&mut self, pixel: i64) {
        self.bars.sort_unstable();
        self.bars.dedup_by(|next, bar| {
            let touches =
                (next.lane, next.row) == (bar.lane, bar.row) && next.start <= bar.finish.saturating_add(pixel);
            if touches {
                bar.finish = bar.finish.max(next.finish);
            }
            touches
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_stays_whole_and_small() {
        let mut path = Path::new();
        let count = 50 * BARS_MAX as i64;
        for number in (0..count).rev() {
            path.add(PathBar { lane: 0, row: 0, start: number * 10, finish: number * 10 + 6 }, 4);
        }
        path.add(PathBar { lane: 1, row: 0, start: 0, finish: 1 }, 4);
        assert!(path.bars().len() <= BARS_MAX + 1, "{}", path.bars().len());
        path.merge(4);
        let whole = PathBar { lane: 0, row: 0, start: 0, finish: count * 10 - 4 };
        assert_eq!(path.bars(), [whole, PathBar { lane: 1, row: 0, start: 0, finish: 1 }]);
    }

    #[test]
    fn bars_further_apart_than_a_pixel_are_all_kept() {
        let mut path = Path::new();
        for number in 0..3 * BARS_MAX as i64 {
            path.add(PathBar { lane: 0, row: 0, start: number * 10, finish: number * 10 + 6 }, 3);
        }
        assert_eq!(path.bars().len(), 3 * BARS_MAX);
    }
}
