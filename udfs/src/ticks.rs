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

/// Ticks for people: three significant digits, the unit that keeps the number between 1 and 1000 (`1.24 ms`, `17 ns`,
/// `2.00 s`); whole ticks below 1000 stay exact, and weights are numbers.
pub fn time_text(ticks: i64, tick: Tick) -> String {
    const UNITS: [&str; 5] = ["ps", "ns", "µs", "ms", "s"];
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

#[cfg(test)]
mod tests {
    use super::*;

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
