//! Colours for values: sequential ramps from low to high, and diverging ramps around zero.
//!
//! Every ramp can be read with any colour vision: *sequential* is one hue that darkens (on a dark background it
//! brightens), *diverging* is blue and orange, *pascal* is brown and green as in PaScal Viewer's difference diagrams
//! (BrBG, which is told apart by lightness and by blue). Classes `h0`… are for fills, `g0`… for text on them.

use std::fmt::Write;

/// Shades of a ramp.
pub(super) const SHADES: usize = 21;

/// A palette of a heat map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Palette {
    Sequential,
    Diverging,
    Pascal,
}

type Stops = &'static [u32];

impl Palette {
    pub(super) fn of(name: Option<&str>) -> Palette {
        match name {
            Some("diverging") => Palette::Diverging,
            Some("pascal") => Palette::Pascal,
            _ => Palette::Sequential,
        }
    }

    /// Whether its middle stands for zero.
    pub(super) fn is_around_zero(self) -> bool {
        self != Palette::Sequential
    }

    /// Colours at equal distances, on light and on dark paper.
    fn stops(self) -> (Stops, Stops) {
        match self {
            Palette::Sequential => (
                &[0xeef5fc, 0xc6dcf0, 0x86b7dc, 0x3f86bd, 0x155a99, 0x08305f],
                &[0x14212f, 0x173f63, 0x1f639d, 0x3d8ccf, 0x86bff0, 0xe2f1ff],
            ),
            Palette::Diverging => (
                &[0x1d4f91, 0x5a8fc8, 0xb3cfe8, 0xf4f4f4, 0xf7cf9c, 0xe08a2c, 0x9a4a00],
                &[0x8cc4ff, 0x3f87cf, 0x20486f, 0x22272e, 0x6b4217, 0xc9761f, 0xffc27d],
            ),
            Palette::Pascal => (
                &[0x5d3506, 0xa66d2a, 0xdfc58b, 0xf5f5f5, 0x92cfc4, 0x2f8f86, 0x004337],
                &[0xf0c98b, 0xb87d35, 0x5c3f17, 0x22272e, 0x14524b, 0x2a9d90, 0x9fe8dc],
            ),
        }
    }

    /// The classes of the ramp.
    pub(super) fn style(self) -> String {
        let (light, dark) = self.stops();
        let classes = |stops: Stops| {
            let mut text = String::new();
            for shade in 0..SHADES {
                let (red, green, blue) = colour(stops, shade as f64 / (SHADES - 1) as f64);
                let letters = if is_bright(red, green, blue) { "#1f2328" } else { "#ffffff" };
                let _ = write!(text, ".h{shade}{{fill:#{red:02x}{green:02x}{blue:02x}}}.g{shade}{{fill:{letters}}}");
            }
            text
        };
        format!("{}\n@media (prefers-color-scheme:dark){{{}}}\n", classes(light), classes(dark))
    }
}

/// The range of values that a ramp covers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub(super) from: f64,
    pub(super) to: f64,
    /// Whether the scale is logarithmic. `from` is above zero then, and lesser values have the palest shade.
    pub(super) is_log: bool,
}

/// A value this many times as large as nine in ten of those above zero leaves them one shade on a scale of differences.
const RULES: f64 = 20.0;
/// A scale of factors reaches this far below the largest value.
const LOG_REACH: f64 = 1e-6;

impl Range {
    /// The range of some values: around zero both sides are as long.
    pub(super) fn of(palette: Palette, values: impl Iterator<Item = f64>) -> Range {
        let mut values: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
        values.sort_unstable_by(f64::total_cmp);
        let (Some(&least), Some(&most)) = (values.first(), values.last()) else {
            return Range { from: 0.0, to: 0.0, is_log: false };
        };
        if palette.is_around_zero() {
            let reach = least.abs().max(most.abs());
            return Range { from: -reach, to: reach, is_log: false };
        }
        let positive = &values[values.partition_point(|&value| value <= 0.0)..];
        if let (true, Some(&smallest), Some(&high)) =
            (least >= 0.0, positive.first(), positive.get(positive.len() * 9 / 10))
            && high * RULES < most
        {
            return Range { from: smallest.max(most * LOG_REACH), to: most, is_log: true };
        }
        // Little next to much looks like nothing: nothing belongs to the scale then.
        let from = if least > 0.0 && least < 0.5 * most { 0.0 } else { least };
        Range { from, to: most, is_log: false }
    }

    /// The same with ends that the chart line gives; a range around zero is as long on both sides as on the longer one. `None` where the first
    /// end is not below the last.
    pub(super) fn between(self, palette: Palette, from: Option<f64>, to: Option<f64>) -> Option<Range> {
        if from.is_none() && to.is_none() {
            return Some(self);
        }
        let range = if palette.is_around_zero() {
            let reach = from.unwrap_or_default().abs().max(to.unwrap_or_default().abs());
            Range { from: -reach, to: reach, is_log: false }
        } else {
            Range { from: from.unwrap_or(self.from), to: to.unwrap_or(self.to), is_log: false }
        };
        (range.from < range.to && (range.to - range.from).is_finite()).then_some(range)
    }

    /// The shade of a value.
    pub(super) fn shade(self, value: f64) -> usize {
        if self.to <= self.from {
            return SHADES / 2;
        }
        let share = match self.is_log {
            true if value < self.from => return 0,
            // The palest shade is that of nothing.
            true => ((value / self.from).ln() / (self.to / self.from).ln()).max(1.0 / (SHADES - 1) as f64),
            false => (value - self.from) / (self.to - self.from),
        };
        ((share * (SHADES - 1) as f64).round() as usize).min(SHADES - 1)
    }
}

fn colour(stops: Stops, at: f64) -> (u8, u8, u8) {
    let place = at * (stops.len() - 1) as f64;
    let index = (place as usize).min(stops.len() - 2);
    let share = place - index as f64;
    let channel = |shift: u32| {
        let of = |stop: u32| f64::from((stop >> shift) & 0xff);
        (of(stops[index]) * (1.0 - share) + of(stops[index + 1]) * share).round() as u8
    };
    (channel(16), channel(8), channel(0))
}

/// Whether dark letters are more legible on it than white ones: their contrasts (WCAG 2) are equal at a luminance of 0.214.
fn is_bright(red: u8, green: u8, blue: u8) -> bool {
    let linear = |channel: u8| {
        let value = f64::from(channel) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue) > 0.214
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_in_the_middle_of_a_diverging_ramp() {
        let range = Range::of(Palette::Pascal, [-0.1, 0.4, f64::NAN].into_iter());
        assert_eq!(range, Range { from: -0.4, to: 0.4, is_log: false });
        assert_eq!((range.shade(0.0), range.shade(0.4), range.shade(-0.4)), (SHADES / 2, SHADES - 1, 0));
        assert_eq!(Range::of(Palette::Sequential, [5.0, 9.0].into_iter()), Range { from: 5.0, to: 9.0, is_log: false });
        assert_eq!(Range::of(Palette::Sequential, [1.0, 9.0].into_iter()), Range { from: 0.0, to: 9.0, is_log: false });
        assert_eq!(Range::of(Palette::Sequential, [].into_iter()).shade(3.0), SHADES / 2);
    }

    #[test]
    fn ends_that_somebody_chose_are_those_of_the_colours() {
        let range = |palette, from, to| Range::of(palette, [-0.1, 0.4].into_iter()).between(palette, from, to);
        let ends = |from, to| Some(Range { from, to, is_log: false });
        assert_eq!(range(Palette::Pascal, None, Some(0.2)), ends(-0.2, 0.2));
        assert_eq!(range(Palette::Pascal, Some(-0.5), Some(0.2)), ends(-0.5, 0.5));
        assert_eq!(range(Palette::Pascal, None, Some(0.0)), None);
        assert_eq!(range(Palette::Sequential, Some(0.0), Some(1.0)), ends(0.0, 1.0));
        assert_eq!(range(Palette::Sequential, None, Some(1.0)), ends(-0.1, 1.0));
        assert_eq!(range(Palette::Sequential, None, Some(0.2)).map(|range| range.shade(0.4)), Some(SHADES - 1));
        for (from, to) in [(Some(5.0), None), (Some(0.3), Some(0.1)), (Some(-1e308), Some(1e308))] {
            assert_eq!(range(Palette::Sequential, from, to), None);
        }
    }

    #[test]
    fn one_large_value_does_not_make_all_others_pale() {
        let values = || [0.0, 1.0, 2.0, 4.0].into_iter().chain([3.0; 12]);
        let range = Range::of(Palette::Sequential, values().chain([1000.0]));
        assert_eq!(range, Range { from: 1.0, to: 1000.0, is_log: true });
        assert_eq!([0.0, 1.0, 1000.0].map(|value| range.shade(value)), [0, 1, SHADES - 1]);
        assert!(range.shade(10.0) > range.shade(2.0) && range.shade(10.0) < SHADES / 2);
        // A negative value has no factor, and where many are large a scale of differences tells them apart.
        assert!(!Range::of(Palette::Sequential, values().chain([1000.0, -1.0])).is_log);
        assert!(!Range::of(Palette::Sequential, values().chain([1000.0; 4])).is_log);
    }

    #[test]
    fn ramps_grow_steadily_darker_or_brighter() {
        let weight = |(red, green, blue): (u8, u8, u8)| u32::from(red) * 2 + u32::from(green) * 7 + u32::from(blue);
        let (light, dark) = Palette::Sequential.stops();
        let weights = |stops| (0..SHADES).map(|shade| weight(colour(stops, shade as f64 / 20.0))).collect::<Vec<_>>();
        assert!(weights(light).is_sorted_by(|a, b| a > b));
        assert!(weights(dark).is_sorted_by(|a, b| a < b));
    }
}
