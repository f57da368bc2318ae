//! The exact permutation test on medians: the probability that two groups of repetitions differ at least this much by chance alone.
//!
//! When both groups came from one distribution, every split of all values into groups of these sizes was equally likely.
//! The p-value is the share of splits whose medians are at least as far apart as the ones seen; the split seen is one of
//! them, so it is never 0.
//!
//! ```text
//! base 10 11 12 13   new 20 21 22 23      70 splits, 4 of them with medians as far apart: p = 0.057
//! ```
//! Medians do not see the outermost values, so {10 11 12 20} and {13 21 22 23} are as far apart as the groups seen.
//! Source: Fisher 1935; Good, Permutation, Parametric and Bootstrap Tests of Hypotheses, 2005.

/// Where there are more splits than this, this many of them are drawn at random (always the same ones) in place of all.
const SPLITS_MAX: u64 = 50_000;

/// With fewer values a side than this, noise cannot be judged.
pub const REPETITIONS_MIN: usize = 3;

/// Which differences count as at least as large as the one seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// Those as large in either direction.
    Both,
    /// Those in which `new` is as much higher.
    Higher,
    /// Those in which `new` is as much lower.
    Lower,
}

impl Tail {
    fn size(self, difference: f64) -> f64 {
        match self {
            Tail::Both => difference.abs(),
            Tail::Higher => difference,
            Tail::Lower => -difference,
        }
    }
}

/// What the test found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Significance {
    /// The share of splits that differ at least as much as the one seen.
    pub p: f64,
    /// The smallest share that these values could have given. Where it is large, the test can never call a change
    /// significant: three values a side cannot go below 0.1 (0.2 for both tails).
    pub least: f64,
}

/// The p-value; `None` when a side has fewer than [`REPETITIONS_MIN`] values or one of them is NaN.
pub fn p_value(base: &[f64], new: &[f64], tail: Tail) -> Option<f64> {
    test(base, new, tail).map(|found| found.p)
}

/// The test; `None` as in [`p_value`].
pub fn test(base: &[f64], new: &[f64], tail: Tail) -> Option<Significance> {
    if base.len().min(new.len()) < REPETITIONS_MIN || base.iter().chain(new).any(|value| value.is_nan()) {
        return None;
    }
    let mut values: Vec<f64> = base.iter().chain(new).copied().collect();
    values.sort_by(f64::total_cmp);
    let seen = tail.size(median(new) - median(base));
    // Sums of the same values in another order may differ in the last digits.
    let slip = values.iter().fold(0.0_f64, |most, value| most.max(value.abs())) * 1e-12;
    let (mut splits, mut as_far) = (0u64, 0u64);
    let (mut farthest, mut farthest_count) = (f64::NEG_INFINITY, 0u64);
    let mut count = |chosen: &[bool]| {
        let size = tail.size(difference(&values, chosen));
        splits += 1;
        as_far += u64::from(size >= seen - slip);
        if size > farthest + slip {
            (farthest, farthest_count) = (size, 0);
        }
        farthest_count += u64::from(size >= farthest - slip);
    };
    match number_of_splits(base.len(), new.len()) {
        Some(all) if all <= SPLITS_MAX => each_split(values.len(), base.len(), &mut count),
        _ => drawn_splits(values.len(), base.len(), &mut count),
    }
    let share = |count: u64| count as f64 / splits as f64;
    Some(Significance { p: share(as_far), least: share(farthest_count) })
}

/// The median: the mean of the two middle values of an even number. NaN of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted[..] {
        [] => f64::NAN,
        _ if sorted.len() % 2 == 1 => sorted[half],
        _ => f64::midpoint(sorted[half - 1], sorted[half]),
    }
}

/// The median of the other values less that of the chosen ones; `values` ascend.
fn difference(values: &[f64], chosen: &[bool]) -> f64 {
    let median = |side: bool| {
        let count = chosen.iter().filter(|of| **of == side).count();
        let mut middle = values.iter().zip(chosen).filter(|(_, of)| **of == side).skip((count - 1) / 2);
        let low = middle.next().map_or(f64::NAN, |(value, _)| *value);
        if count % 2 == 1 { low } else { f64::midpoint(low, middle.next().map_or(f64::NAN, |(value, _)| *value)) }
    };
    median(false) - median(true)
}

fn number_of_splits(one: usize, other: usize) -> Option<u64> {
    let (few, all) = (one.min(other) as u64, (one + other) as u64);
    (0..few).try_fold(1u64, |splits, taken| splits.checked_mul(all - taken).map(|product| product / (taken + 1)))
}

/// Calls `visit` with every choice of `size` out of `count`.
fn each_split(count: usize, size: usize, visit: &mut dyn FnMut(&[bool])) {
    let mut chosen: Vec<bool> = (0..count).map(|place| place < size).collect();
    loop {
        visit(&chosen);
        // The next choice: the last chosen one that can moves on by one, those after it follow close.
        let mut after = 0;
        let Some(place) = (0..count).rev().find(|&place| {
            let movable = chosen[place] && chosen.get(place + 1) == Some(&false);
            after += usize::from(chosen[place] && !movable);
            movable
        }) else {
            return;
        };
        chosen[place] = false;
        for (at, flag) in chosen.iter_mut().enumerate().skip(place + 1) {
            *flag = at < place + 2 + after;
        }
    }
}

fn drawn_splits(count: usize, size: usize, visit: &mut dyn FnMut(&[bool])) {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut chosen: Vec<bool> = (0..count).map(|place| place < size).collect();
    // The split seen is not known by its places any more: the first one stands for it, as far apart as can be.
    for _ in 0..SPLITS_MAX {
        visit(&chosen);
        for place in (1..count).rev() {
            chosen.swap(place, draw(place as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn medians_far_apart_have_small_p_values() {
        let both = |base: &[f64], new: &[f64]| p_value(base, new, Tail::Both);
        assert_eq!(both(&[10., 11., 12., 13.], &[20., 21., 22., 23.]), Some(4.0 / 70.0));
        assert_eq!(both(&[1., 2., 3.], &[4., 5., 6.]), Some(4.0 / 20.0));
        assert_eq!(both(&[1., 1., 1.], &[1., 1., 1.]), Some(1.0));
        assert_eq!(both(&[1., 2.], &[4., 5., 6.]), None);
        assert_eq!(both(&[1., 2., f64::NAN], &[4., 5., 6.]), None);
        assert_eq!(p_value(&[1., 2., 3.], &[4., 5., 6.], Tail::Higher), Some(2.0 / 20.0));
        assert_eq!(p_value(&[4., 5., 6.], &[1., 2., 3.], Tail::Lower), Some(2.0 / 20.0));
        assert!(p_value(&[4., 5., 6.], &[1., 2., 3.], Tail::Higher).unwrap() > 0.9);
        let least = |base: &[f64], new: &[f64], tail| test(base, new, tail).map(|found| found.least);
        assert_eq!(least(&[1., 3., 5., 7.], &[2., 4., 6., 8.], Tail::Lower), Some(2.0 / 70.0));
        assert_eq!(least(&[1., 3., 5., 7., 9.], &[2., 4., 6., 8., 10.], Tail::Both), Some(12.0 / 252.0));
        assert_eq!(least(&[1., 1., 1.], &[1., 1., 1.], Tail::Both), Some(1.0));
        let (slow, fast): (Vec<f64>, Vec<f64>) =
            ((100..120).map(f64::from).collect(), (0..20).map(f64::from).collect());
        assert!(both(&slow, &fast).unwrap() < 0.001);
    }

    proptest! {
        #[test]
        fn equals_a_look_at_all_masks(base in vec(0..9i32, 3..6), new in vec(0..9i32, 3..6)) {
            let all: Vec<f64> = base.iter().chain(&new).map(|value| f64::from(*value)).collect();
            let far = |mask: u32| {
                let side = |of: bool| all.iter().enumerate().filter(move |(place, _)| ((mask >> place) & 1 == 1) == of);
                let median = |of: bool| median(&side(of).map(|(_, value)| *value).collect::<Vec<_>>());
                (median(true) - median(false)).abs()
            };
            let seen = far((1 << base.len()) - 1);
            let masks: Vec<u32> = (0..1 << all.len()).filter(|mask: &u32| mask.count_ones() as usize == base.len()).collect();
            let as_far = masks.iter().filter(|mask| far(**mask) >= seen).count();
            let halves: Vec<f64> = base.iter().map(|value| f64::from(*value)).collect();
            let others: Vec<f64> = new.iter().map(|value| f64::from(*value)).collect();
            prop_assert_eq!(p_value(&halves, &others, Tail::Both), Some(as_far as f64 / masks.len() as f64));
        }
    }
}
