//! Numbers on an axis: round marks, one unit for all of them, times for people.

use tq_udfs::ticks::{Tick, mean_time_text};

/// What a number counts; decides units and the finest step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    Time(Tick),
    Bytes,
    Percent,
    /// Whole things.
    Count,
    Number,
}

/// A range of numbers with its marks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    pub(super) from: f64,
    pub(super) to: f64,
    /// Value and label, ascending.
    pub(super) marks: Vec<(f64, String)>,
    /// What the labels count; empty = nothing to add.
    pub(super) unit: &'static str,
}

impl Quantity {
    /// Unit of labels up to `largest`, and its size.
    fn unit(self, largest: f64) -> (&'static str, f64) {
        let units: &[(&'static str, f64)] = match self {
            Quantity::Time(tick) => {
                let second = tick.per_second() as f64;
                let units = [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9), ("ps", 1e-12)];
                let fits = |&&(_, seconds): &&(&str, f64)| largest >= seconds * second || seconds * second <= 1.0;
                let (name, seconds) = units.iter().find(fits).unwrap_or(&units[0]);
                return (name, seconds * second);
            }
            Quantity::Bytes => &[("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)],
            Quantity::Percent => &[("%", 1.0)],
            Quantity::Count | Quantity::Number => &[("10¹²", 1e13), ("10⁹", 1e10), ("millions", 1e7), ("", 0.0)],
        };
        let found = units.iter().find(|(_, size)| largest >= *size).or(units.last()).copied().unwrap_or(("", 1.0));
        match (self, found.0) {
            (Quantity::Count | Quantity::Number, "") => ("", 1.0),
            // A unit begins at ten times its size: 5 million is written in digits, 50 million as `50 millions`.
            (Quantity::Count | Quantity::Number, name) => (name, found.1 / 10.0),
            _ => found,
        }
    }

    /// A value for a tooltip.
    pub(super) fn text(self, value: f64) -> String {
        if value.is_nan() {
            return "NULL".to_owned();
        }
        match self {
            Quantity::Time(tick) => mean_time_text(value, tick),
            Quantity::Percent => format!("{} %", digits(value)),
            Quantity::Count if value.fract() == 0.0 && value.abs() < 1e15 => {
                format!("{}{}", if value < 0.0 { "-" } else { "" }, grouped(value.abs() as u64))
            }
            Quantity::Bytes => {
                let (unit, size) = self.unit(value.abs());
                format!("{} {unit}", digits(value / size))
            }
            Quantity::Count | Quantity::Number => digits(value),
        }
    }

    /// The finest step that has a meaning.
    fn least_step(self) -> f64 {
        match self {
            Quantity::Time(_) | Quantity::Count | Quantity::Bytes => 1.0,
            Quantity::Percent | Quantity::Number => 0.0,
        }
    }
}

/// About four significant digits: `0.1235`, `12.35`, `1235`; whole numbers from 10 000 on: `1 234 568`.
fn digits(value: f64) -> String {
    let magnitude = value.abs();
    if (1e4..1e15).contains(&magnitude) {
        return format!("{}{}", if value < 0.0 { "-" } else { "" }, grouped(magnitude.round() as u64));
    }
    if magnitude != 0.0 && !(1e-4..1e15).contains(&magnitude) {
        return format!("{value:.2e}");
    }
    let decimals = if magnitude >= 1e3 {
        0
    } else if magnitude >= 100.0 {
        1
    } else if magnitude >= 10.0 {
        2
    } else {
        4
    };
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { text.as_str() };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

impl Scale {
    /// From mark to mark around `[least, most]`, with about `wanted` marks.
    pub(super) fn around(quantity: Quantity, least: f64, most: f64, wanted: usize) -> Scale {
        let (least, most) = sound(least, most);
        let steps = Steps::new(quantity, least, most, wanted);
        // The same hair: a sum of shares that ends a bit above 1 is no reason for a further mark.
        let (first, last) = ((least / steps.width() + 1e-9).floor(), (most / steps.width() - 1e-9).ceil());
        let last = last.max(first + 1.0);
        steps.scale((first * steps.width()).min(least), (last * steps.width()).max(most))
    }

    /// Exactly `[least, most]`, marks within.
    pub(super) fn within(quantity: Quantity, least: f64, most: f64, wanted: usize) -> Scale {
        let (least, most) = sound(least, most);
        Steps::new(quantity, least, most, wanted).scale(least, most)
    }

    /// For bars: [`Scale::around`] with 0 in it.
    pub(super) fn from_zero(quantity: Quantity, least: f64, most: f64, wanted: usize) -> Scale {
        Scale::around(quantity, least.min(0.0), most.max(0.0), wanted)
    }

    /// Marks at powers of ten. `least` and `most` are positive.
    pub(super) fn log(quantity: Quantity, least: f64, most: f64) -> Scale {
        let power = |exponent: i32| 10f64.powi(exponent);
        let least = if least.is_finite() && least > 0.0 { least } else { 1.0 };
        let most = if most.is_finite() { most.max(least) } else { least };
        let mut first = 0;
        while power(first) > least {
            first -= 1;
        }
        while power(first + 1) <= least {
            first += 1;
        }
        let mut last = first + 1;
        while power(last) < most {
            last += 1;
        }
        let marks = (first..=last).map(|exponent| (power(exponent).log10(), log_label(quantity, power(exponent))));
        Scale { from: f64::from(first), to: f64::from(last), marks: marks.collect(), unit: "" }
    }

    /// Where a value stands: 0 at `from`, 1 at `to`.
    pub(super) fn place(&self, value: f64) -> f64 {
        (value - self.from) / (self.to - self.from)
    }
}

/// `1 ms`, not `1.00 ms`.
fn log_label(quantity: Quantity, value: f64) -> String {
    quantity.text(value).replace(".00 ", " ").replace(".0 ", " ")
}

/// A range that has an extent, also where there is no number at all.
fn sound(least: f64, most: f64) -> (f64, f64) {
    if !least.is_finite() || !most.is_finite() || least > most {
        return (0.0, 1.0);
    }
    if least < most {
        (least, most)
    } else {
        (least.min(0.0), if most > 0.0 { most } else { least.min(0.0) + most.abs().max(1.0) })
    }
}

/// Steps of 1, 2 or 5 times a power of ten units.
struct Steps {
    unit: &'static str,
    per_unit: f64,
    factor: f64,
    exponent: i32,
}

impl Steps {
    fn new(quantity: Quantity, least: f64, most: f64, wanted: usize) -> Steps {
        let (unit, per_unit) = quantity.unit(least.abs().max(most.abs()));
        let raw = ((most - least) / wanted.max(1) as f64).max(quantity.least_step()) / per_unit;
        let mut exponent = 0;
        while 10f64.powi(exponent) > raw && exponent > -300 {
            exponent -= 1;
        }
        while 10f64.powi(exponent + 1) <= raw && exponent < 300 {
            exponent += 1;
        }
        // A hair of tolerance: 0.1 + 0.2 is no reason for a coarser step.
        let fits = |factor: &f64| factor * 10f64.powi(exponent) >= raw * (1.0 - 1e-9);
        let factor = [1.0, 2.0, 5.0].into_iter().find(fits);
        let (factor, exponent) = factor.map_or((1.0, exponent + 1), |factor| (factor, exponent));
        Steps { unit, per_unit, factor, exponent }
    }

    /// The width of a step.
    fn width(&self) -> f64 {
        self.in_units() * self.per_unit
    }

    fn in_units(&self) -> f64 {
        if self.exponent < 0 {
            self.factor / 10f64.powi(-self.exponent)
        } else {
            self.factor * 10f64.powi(self.exponent)
        }
    }

    fn scale(&self, from: f64, to: f64) -> Scale {
        const MARKS_MAX: usize = 100;
        let slack = self.width() * 1e-6;
        let first = ((from - slack) / self.width()).ceil();
        let marks = (0..MARKS_MAX)
            .map(|index| first + index as f64)
            .take_while(|index| index * self.width() <= to + slack)
            .map(|index| (index * self.width(), self.label(index)))
            .collect();
        Scale { from, to, marks, unit: self.unit }
    }

    fn label(&self, index: f64) -> String {
        let decimals = usize::try_from(-self.exponent).unwrap_or(0).min(12);
        let value = index * self.in_units();
        if decimals == 0 && value.abs() >= 1e4 && value.abs() < 1e15 {
            return format!("{}{}", if value < 0.0 { "-" } else { "" }, grouped(value.abs() as u64));
        }
        let text = format!("{value:.decimals$}");
        if text.trim_start_matches(['-', '0', '.']).is_empty() { text.trim_start_matches('-').to_owned() } else { text }
    }
}

/// `1234567` as `1 234 567`.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{a0}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> String {
        let labels: Vec<&str> = scale.marks.iter().map(|(_, label)| label.as_str()).collect();
        format!("{} {}", labels.join(" "), scale.unit).trim_end().to_owned()
    }

    #[test]
    fn marks_are_round_in_one_unit() {
        let check = |quantity, least, most, expected: &str| {
            assert_eq!(labels(&Scale::around(quantity, least, most, 5)), expected, "{quantity:?} {least} {most}");
        };
        check(Quantity::Number, 0.0, 1.0, "0.0 0.2 0.4 0.6 0.8 1.0");
        check(Quantity::Number, 0.0, 1.0 + 3e-16, "0.0 0.2 0.4 0.6 0.8 1.0");
        check(Quantity::Number, 0.0, 0.93, "0.0 0.2 0.4 0.6 0.8 1.0");
        check(Quantity::Number, -0.3, 0.3, "-0.4 -0.2 0.0 0.2 0.4");
        check(Quantity::Count, 0.0, 3.0, "0 1 2 3");
        check(Quantity::Count, 0.0, 0.0, "0 1");
        check(Quantity::Count, 7.0, 7.0, "0 2 4 6 8");
        check(
            Quantity::Count,
            0.0,
            5_000_000.0,
            "0 1\u{a0}000\u{a0}000 2\u{a0}000\u{a0}000 3\u{a0}000\u{a0}000 4\u{a0}000\u{a0}000 5\u{a0}000\u{a0}000",
        );
        check(Quantity::Count, 0.0, 5e9, "0 1000 2000 3000 4000 5000 millions");
        check(Quantity::Bytes, 0.0, 12_000.0, "0 5 10 15 kB");
        check(Quantity::Time(Tick::Nanosecond), 0.0, 1_240_000.0, "0.0 0.5 1.0 1.5 ms");
        check(Quantity::Time(Tick::Picosecond), 0.0, 1_240_000.0, "0.0 0.5 1.0 1.5 µs");
        check(Quantity::Time(Tick::Nanosecond), 0.0, 1.0, "0 1 ns");
        check(Quantity::Percent, 0.0, 100.0, "0 20 40 60 80 100 %");
        check(Quantity::Number, f64::NAN, f64::NAN, "0.0 0.2 0.4 0.6 0.8 1.0");
        check(Quantity::Number, -2.0, -2.0, "-2.0 -1.5 -1.0 -0.5 0.0");
    }

    #[test]
    fn any_range_has_marks() {
        for (least, most) in [(0.0, 1e-300), (-1e300, 1e300), (1e18, 1e18 + 1e3), (-5.0, -4.0)] {
            for quantity in [Quantity::Number, Quantity::Count, Quantity::Time(Tick::Picosecond)] {
                let scale = Scale::around(quantity, least, most, 5);
                assert!(scale.from <= least && scale.to >= most && scale.to > scale.from, "{least} {most} {scale:?}");
                assert!((1..=100).contains(&scale.marks.len()), "{least} {most} {scale:?}");
            }
        }
    }

    #[test]
    fn logarithmic_marks_are_powers_of_ten() {
        let scale = Scale::log(Quantity::Time(Tick::Nanosecond), 40.0, 2_000_000.0);
        assert_eq!(labels(&scale), "10 ns 100 ns 1 µs 10 µs 100 µs 1 ms 10 ms");
        assert_eq!(scale.place(3.0), (3.0 - 1.0) / 6.0);
    }

    #[test]
    fn values_are_short() {
        assert_eq!(Quantity::Number.text(0.123_456), "0.1235");
        assert_eq!(Quantity::Number.text(-0.000_001), "-1.00e-6");
        assert_eq!(Quantity::Count.text(1_234_567.0), "1\u{a0}234\u{a0}567");
        assert_eq!(Quantity::Bytes.text(1_536.0), "1.536 kB");
        assert_eq!(Quantity::Percent.text(12.5), "12.5 %");
        assert_eq!(Quantity::Number.text(f64::NAN), "NULL");
    }
}
