//! Round times for an axis: steps of 1, 2 or 5 times a power of ten ticks, labels in one unit. All arithmetic is in
//! integers.

use tq_udfs::ticks::Tick;

/// The marks of an axis.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Axis {
    /// Time and label of each mark, in order.
    pub(super) marks: Vec<(i64, String)>,
    /// The unit of the labels.
    pub(super) unit: &'static str,
}

/// About `wanted` marks in `[from, to]`.
pub(super) fn axis(from: i64, to: i64, wanted: usize, tick: Tick) -> Axis {
    let span = i128::from(to) - i128::from(from);
    let step = round_step(span / wanted.max(1) as i128);
    let largest = i128::from(from).abs().max(i128::from(to).abs());
    let (unit, per_unit) = unit(largest, tick);
    let first = i128::from(from).div_euclid(step) * step;
    let marks = (0..)
        .map(|index| first + index * step)
        .take_while(|&time| time <= i128::from(to))
        .filter(|&time| time >= i128::from(from))
        .map(|time| (time as i64, label(time, step, per_unit)))
        .collect();
    Axis { marks, unit }
}

/// The smallest 1, 2 or 5 times a power of ten that is not below `least`.
fn round_step(least: i128) -> i128 {
    let mut power = 1;
    loop {
        for factor in [1, 2, 5] {
            if factor * power >= least {
                return factor * power;
            }
        }
        power *= 10;
    }
}

/// The unit in which the largest time is at least 1, and its length in ticks.
fn unit(largest: i128, tick: Tick) -> (&'static str, i128) {
    let units = [
        ("s", tick.per_second()),
        ("ms", tick.per_millisecond()),
        ("µs", tick.per_microsecond()),
        ("ns", tick.per_nanosecond()),
    ];
    for (name, ticks) in units.into_iter().filter(|_| tick != Tick::Weight) {
        if largest >= i128::from(ticks) {
            return (name, i128::from(ticks));
        }
    }
    (tick.symbol(), 1)
}

/// `time` in units, with as many decimals as the step needs.
fn label(time: i128, step: i128, per_unit: i128) -> String {
    let mut decimals = 0;
    let mut scale = 1;
    while step * scale % per_unit != 0 {
        scale *= 10;
        decimals += 1;
    }
    let scaled = time * scale / per_unit;
    if decimals == 0 {
        return scaled.to_string();
    }
    let sign = if scaled < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", scaled.abs(), width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    format!("{sign}{whole}.{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(from: i64, to: i64) -> String {
        let axis = axis(from, to, 5, Tick::Nanosecond);
        let labels: Vec<String> = axis.marks.into_iter().map(|(_, label)| label).collect();
        format!("{} {}", labels.join(" "), axis.unit)
    }

    #[test]
    fn marks_are_round_and_share_a_unit() {
        assert_eq!(labels(0, 1_240_000), "0.0 0.5 1.0 ms");
        assert_eq!(labels(0, 1_000_000_000), "0.0 0.2 0.4 0.6 0.8 1.0 s");
        assert_eq!(labels(3, 9), "3 4 5 6 7 8 9 ns");
        assert_eq!(labels(0, 0), "0 ns");
        assert_eq!(labels(5, 6), "5 6 ns");
        assert_eq!(labels(-2_500, 2_500), "-2 -1 0 1 2 µs");
        assert_eq!(
            labels(100_000_000_000, 100_000_004_000),
            "100.000000 100.000001 100.000002 100.000003 100.000004 s"
        );
        assert!(!axis(i64::MIN, i64::MAX, 8, Tick::Picosecond).marks.is_empty());
    }
}
