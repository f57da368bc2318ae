//! Is a change more than noise? An exact permutation test on the difference of medians.
//!
//! If the two sides were alike, every split of all values into sides of these sizes would be as likely as the one that was
//! measured. `p` is the share of the splits whose new side is worse by at least as much.

/// Splits that are tried one by one; more are sampled.
const SPLITS_MAX: u64 = 1_000_000;
const SAMPLES: u64 = 100_000;

/// The answer of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Significance {
    /// The share of splits that are at least as bad.
    pub(super) p: f64,
    /// The smallest share that these values could have given. Three values a side cannot go below 0.1.
    pub(super) least: f64,
}

/// The middle value, the mean of the middle two of an even number. The values are not empty.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    middle(&sorted)
}

/// Tests whether `new` is larger than `base`.
pub(super) fn larger(base: &[f64], new: &[f64]) -> Significance {
    let observed = median(new) - median(base);
    let mut pooled: Vec<f64> = base.iter().chain(new).copied().collect();
    pooled.sort_by(f64::total_cmp);
    // Sums in another order may differ in the last place.
    let scale = pooled.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let mut tally =
        Tally { observed, slip: scale * 1e-12, splits: 0, as_bad: 0, worst: f64::NEG_INFINITY, worst_count: 0 };
    if binomial(pooled.len() as u64, new.len() as u64) <= SPLITS_MAX {
        each_split(&pooled, new.len(), &mut |change| tally.add(change));
    } else {
        random_splits(&pooled, new.len(), &mut |change| tally.add(change));
    }
    let share = |count: u64| count as f64 / tally.splits.max(1) as f64;
    Significance { p: share(tally.as_bad), least: share(tally.worst_count) }
}

struct Tally {
    observed: f64,
    slip: f64,
    splits: u64,
    as_bad: u64,
    worst: f64,
    worst_count: u64,
}

impl Tally {
    fn add(&mut self, change: f64) {
        self.splits += 1;
        if change >= self.observed - self.slip {
            self.as_bad += 1;
        }
        if change > self.worst + self.slip {
            (self.worst, self.worst_count) = (change, 1);
        } else if change >= self.worst - self.slip {
            self.worst_count += 1;
        }
    }
}

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { (sorted[half - 1] + sorted[half]) / 2.0 }
}

/// The change of medians of every way to choose the new side.
fn each_split(pooled: &[f64], new_count: usize, take: &mut impl FnMut(f64)) {
    let mut chosen: Vec<usize> = (0..new_count).collect();
    let (mut new, mut base) = (Vec::new(), Vec::new());
    loop {
        new.clear();
        base.clear();
        let mut next = chosen.iter().peekable();
        for (at, value) in pooled.iter().enumerate() {
            let side = if next.next_if(|&&choice| choice == at).is_some() { &mut new } else { &mut base };
            side.push(*value);
        }
        take(middle(&new) - middle(&base));
        // The next choice in the order of a dictionary: move the last index that has room.
        let room = |place: usize| pooled.len() - new_count + place;
        let Some(place) = (0..new_count).rev().find(|&place| chosen[place] < room(place)) else { return };
        chosen[place] += 1;
        for later in place + 1..new_count {
            chosen[later] = chosen[later - 1] + 1;
        }
    }
}

/// Some of very many splits, always the same ones; the measured order counts as one of them.
fn random_splits(pooled: &[f64], new_count: usize, take: &mut impl FnMut(f64)) {
    let mut values = pooled.to_vec();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..SAMPLES {
        for at in 0..new_count {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let other = at + (state % (values.len() - at) as u64) as usize;
            values.swap(at, other);
        }
        take(median(&values[..new_count]) - median(&values[new_count..]));
    }
    take(median(&pooled[pooled.len() - new_count..]) - median(&pooled[..pooled.len() - new_count]));
}

/// How many ways there are to choose `k` of `n`, saturating.
fn binomial(n: u64, k: u64) -> u64 {
    (1..=k.min(n - k)).fold(1_u64, |ways, i| ways.saturating_mul(n - i + 1) / i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_against_five() {
        let base = [10.0, 11.0, 12.0, 13.0, 14.0];
        let worse = base.map(|value| value + 10.0);
        let test = larger(&base, &worse);
        assert!(test.p < 0.05, "{test:?}");
        assert_eq!(larger(&worse, &base).p, 1.0);
        assert!(larger(&base, &[10.5, 11.5, 12.5, 13.5, 14.5]).p > 0.05);
        assert_eq!(larger(&[1.0; 4], &[1.0; 4]), Significance { p: 1.0, least: 1.0 });
    }

    #[test]
    fn three_against_three_cannot_tell() {
        let test = larger(&[1.0, 2.0, 3.0], &[101.0, 102.0, 103.0]);
        assert!(test.least >= 0.05, "{test:?}");
        assert_eq!(test.p, test.least);
    }

    #[test]
    fn all_splits_are_tried_once() {
        let mut count = 0;
        each_split(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3, &mut |_| count += 1);
        assert_eq!(count, 20);
        assert_eq!((binomial(6, 3), binomial(22, 11), binomial(4, 4)), (20, 705_432, 1));
    }

    #[test]
    fn many_repetitions_are_sampled() {
        let base: Vec<f64> = (0..20).map(f64::from).collect();
        let worse: Vec<f64> = base.iter().map(|value| value + 15.0).collect();
        assert!(larger(&base, &worse).p < 0.01);
        assert!(larger(&base, &base).p > 0.3);
    }
}
