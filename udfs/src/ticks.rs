//! Ticks: the one unit of time of a session, and how a column says that it holds times.
//!
//! A time is a `BIGINT` number of ticks since the origin of its run; a span is half-open, `[start, finish)`. A tick is a
//! nanosecond, or a picosecond when any opened trace is that fine. The unit is not part of the Arrow type: a field
//! carries it as metadata, which survives aliases, joins and grouping, and functions that return times set it again.

use std::collections::HashMap;
use std::fmt;

use arrow::datatypes::{DataType, Field};

/// The length of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tick {
    /// No time at all: weights of what was counted (samples, bytes), laid end to end. Beside times, a weight of 1 is a nanosecond.
    Weight,
    /// 10⁻⁹ s: what most recorders write.
    Nanosecond,
    /// 10⁻¹² s: simulators.
    Picosecond,
}

impl Tick {
    /// Ticks in a nanosecond.
    pub const fn per_nanosecond(self) -> i64 {
        match self {
            Tick::Weight | Tick::Nanosecond => 1,
            Tick::Picosecond => 1_000,
        }
    }

    /// Ticks in a microsecond.
    pub const fn per_microsecond(self) -> i64 {
        self.per_nanosecond() * 1_000
    }

    /// Ticks in a millisecond.
    pub const fn per_millisecond(self) -> i64 {
        self.per_microsecond() * 1_000
    }

    /// Ticks in a second.
    pub const fn per_second(self) -> i64 {
        self.per_millisecond() * 1_000
    }

    /// `ns`, `ps` or `weights`, as `runs.time_unit` and `SHOW tq.time_unit` have it.
    pub const fn symbol(self) -> &'static str {
        match self {
            Tick::Weight => "weights",
            Tick::Nanosecond => "ns",
            Tick::Picosecond => "ps",
        }
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}

/// Field metadata key of time columns; its value is `ticks`.
pub const TIME_METADATA: &str = "tq.time";

/// Metadata of a field that holds times.
pub fn time_metadata() -> HashMap<String, String> {
    HashMap::from([(TIME_METADATA.to_owned(), "ticks".to_owned())])
}

/// A `BIGINT` field that holds times.
pub fn time_field(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Int64, nullable).with_metadata(time_metadata())
}

/// Whether a column holds times: its metadata says so, or it is a `BIGINT` with one of the reserved names `start`,
/// `finish`, `duration`, `time`, `…_time` (arithmetic and most aggregates drop metadata, names survive).
pub fn is_time(field: &Field) -> bool {
    if field.data_type() != &DataType::Int64 {
        return false;
    }
    let name = field.name().as_str();
    field.metadata().contains_key(TIME_METADATA)
        || matches!(name, "start" | "finish" | "duration" | "time")
        || name.ends_with("_time")
}

/// Whether a column holds times as doubles, as means, medians and deviations of times do: its metadata says so.
pub fn is_mean_time(field: &Field) -> bool {
    field.data_type() == &DataType::Float64 && field.metadata().contains_key(TIME_METADATA)
}

/// Whether people are shown a column as times: [`is_time`] or [`is_mean_time`].
pub fn is_shown_as_time(field: &Field) -> bool {
    is_time(field) || is_mean_time(field)
}

/// A mean of ticks for people: as [`time_text`], with decimals below 1000 ticks (`12.5 ns`).
pub fn mean_time_text(ticks: f64, tick: Tick) -> String {
    if !ticks.is_finite() {
        return ticks.to_string();
    }
    if ticks.abs() >= 999.5 || ticks.fract() == 0.0 {
        return time_text(ticks.round() as i64, tick);
    }
    let digits = if ticks.abs() < 9.995 { 2 } else { usize::from(ticks.abs() < 99.95) };
    format!("{ticks:.digits$} {tick}")
}

/// Units of time, each a thousand times the one before.
const UNITS: [&str; 5] = ["ps", "ns", "µs", "ms", "s"];

/// Ticks for people: three significant digits, the unit that keeps the number between 1 and 1000 (`1.24 ms`, `17 ns`,
/// `2.00 s`); whole ticks below 1000 stay exact, and weights are numbers.
pub fn time_text(ticks: i64, tick: Tick) -> String {
    let first = match tick {
        Tick::Weight if ticks == 1 => return "1 weight".to_owned(),
        Tick::Weight => return format!("{ticks} {tick}"),
        Tick::Picosecond => 0,
        Tick::Nanosecond => 1,
    };
    let magnitude = ticks.unsigned_abs();
    if magnitude < 1_000 {
        return format!("{ticks} {}", if ticks == 0 { "s" } else { UNITS[first] });
    }
    let mut unit = first;
    let mut scaled = magnitude as f64;
    // 999.5 would print as `1000`: it belongs to the next unit.
    while scaled >= 999.5 && unit + 1 < UNITS.len() {
        scaled /= 1_000.0;
        unit += 1;
    }
    let sign = if ticks < 0 { "-" } else { "" };
    let digits = if scaled < 9.995 { 2 } else { usize::from(scaled < 99.95) };
    format!("{sign}{scaled:.digits$} {}", UNITS[unit])
}

/// Whether a column of times holds points of time and no durations: by its name, as in the tables of traces.
pub fn is_point_of_time(name: &str) -> bool {
    matches!(name, "time" | "send_time" | "receive_time" | "ready_time")
        || ["start", "finish", "start_time", "finish_time"].iter().any(|end| name.ends_with(end))
}

/// How many significant digits tell these times apart, three at least: of points of time, differences count and may be far smaller
/// than the points.
pub fn digits_to_tell_apart(times: impl IntoIterator<Item = i64>, tick: Tick) -> u32 {
    let mut times: Vec<i64> = times.into_iter().collect();
    times.sort_unstable();
    times.dedup();
    let texts_differ = |pair: &[i64]| matches!(pair, &[a, b] if time_text(a, tick) != time_text(b, tick));
    if times.windows(2).all(texts_differ) {
        return DIGITS;
    }
    let needed = |pair: &[i64]| match pair {
        &[a, b] => {
            // The last digit must not count for more than the difference.
            let largest = a.unsigned_abs().max(b.unsigned_abs());
            let digits = largest.checked_ilog10().map_or(1, |power| power + 1);
            digits.saturating_sub(b.abs_diff(a).checked_ilog10().unwrap_or(0))
        }
        _ => DIGITS,
    };
    times.windows(2).map(needed).fold(DIGITS, u32::max)
}

/// Significant digits of [`time_text`].
const DIGITS: u32 = 3;

/// [`time_text`] with more significant digits; no more than there are (`1.234567 ms` is a whole number of ns).
pub fn time_text_of_digits(ticks: i64, tick: Tick, digits: u32) -> String {
    let magnitude = ticks.unsigned_abs();
    let first = match tick {
        Tick::Weight => return time_text(ticks, tick),
        Tick::Picosecond => 0,
        Tick::Nanosecond => 1,
    };
    if digits <= DIGITS || magnitude < 1_000 {
        return time_text(ticks, tick);
    }
    let before_unit = magnitude.ilog10() / 3;
    let unit = (first + before_unit as usize).min(UNITS.len() - 1);
    // Digits behind the point of this unit, and how many of them are shown.
    let behind = 3 * (unit - first) as u32;
    let whole_digits = (magnitude.ilog10() + 1).saturating_sub(behind);
    let decimals = digits.saturating_sub(whole_digits).min(behind);
    let step = 10u64.pow(behind - decimals);
    let rounded = u128::from(magnitude).saturating_add(u128::from(step / 2)) / u128::from(step);
    let scale = 10u128.pow(decimals);
    let sign = if ticks < 0 { "-" } else { "" };
    let (whole, part) = (rounded / scale, rounded % scale);
    match decimals {
        0 => format!("{sign}{whole} {}", UNITS[unit]),
        decimals => format!("{sign}{whole}.{part:0width$} {}", UNITS[unit], width = decimals as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_of_time_are_told_apart() {
        let shown = |times: &[i64]| -> Vec<String> {
            let digits = digits_to_tell_apart(times.iter().copied(), Tick::Nanosecond);
            times.iter().map(|time| time_text_of_digits(*time, Tick::Nanosecond, digits)).collect()
        };
        assert_eq!(shown(&[1_234_567, 2_345_678]), ["1.23 ms", "2.35 ms"]);
        assert_eq!(shown(&[1_234_567, 1_234_568]), ["1.234567 ms", "1.234568 ms"]);
        assert_eq!(shown(&[1_234_567, 1_234_867, 17]), ["1.2346 ms", "1.2349 ms", "17 ns"]);
        assert_eq!(shown(&[65_300_000_000, 65_300_040_000]), ["65.30000 s", "65.30004 s"]);
        assert_eq!(shown(&[-65_300_000_000, -65_300_040_000]), ["-65.30000 s", "-65.30004 s"]);
        assert_eq!(shown(&[i64::MAX, i64::MAX - 1]), ["9223372036.854775807 s", "9223372036.854775806 s"]);
        assert_eq!(shown(&[5, 5]), ["5 ns", "5 ns"]);
        assert_eq!(shown(&[]), [""; 0]);
        assert_eq!(digits_to_tell_apart([1_000, 1_001], Tick::Weight), DIGITS);
    }

    proptest::proptest! {
        #[test]
        fn different_points_have_different_texts(mut times in proptest::collection::vec(-9_999_999..99_999_999i64, 2..6)) {
            times.sort_unstable();
            times.dedup();
            let digits = digits_to_tell_apart(times.iter().copied(), Tick::Picosecond);
            let mut texts: Vec<String> =
                times.iter().map(|time| time_text_of_digits(*time, Tick::Picosecond, digits)).collect();
            texts.dedup();
            proptest::prop_assert_eq!(texts.len(), times.len());
        }
    }

    #[test]
    fn time_text_keeps_three_digits() {
        let check = |ticks, expected: &str| assert_eq!(time_text(ticks, Tick::Nanosecond), expected);
        check(0, "0 s");
        check(1, "1 ns");
        check(-17, "-17 ns");
        check(999, "999 ns");
        check(1_000, "1.00 µs");
        check(1_234_567, "1.23 ms");
        check(9_999_999, "10.0 ms");
        check(99_960_000, "100 ms");
        check(999_600_000, "1.00 s");
        check(-2_000_000_000, "-2.00 s");
        check(12_345_678_901_234, "12346 s");
        check(i64::MIN, "-9223372037 s");
        assert_eq!(time_text(1_500, Tick::Picosecond), "1.50 ns");
        assert_eq!(time_text(1_500, Tick::Weight), "1500 weights");
        assert_eq!(time_text(1, Tick::Weight), "1 weight");
    }

    #[test]
    fn means_have_decimals_where_ticks_are_few() {
        let check = |ticks, expected: &str| assert_eq!(mean_time_text(ticks, Tick::Nanosecond), expected);
        check(0.0, "0 s");
        check(0.25, "0.25 ns");
        check(12.54, "12.5 ns");
        check(-999.4, "-999 ns");
        check(999.6, "1.00 µs");
        check(1_234_567.8, "1.23 ms");
        check(f64::NAN, "NaN");
        assert_eq!(mean_time_text(1.5, Tick::Picosecond), "1.50 ps");
        assert_eq!(mean_time_text(1.5, Tick::Weight), "1.50 weights");
    }

    #[test]
    fn names_and_metadata_make_a_time() {
        assert!(is_time(&time_field("x", true)));
        assert!(is_time(&Field::new("path_time", DataType::Int64, true)));
        assert!(!is_time(&Field::new("count", DataType::Int64, true)));
        assert!(!is_time(&Field::new("start", DataType::Float64, true)));
    }
}
