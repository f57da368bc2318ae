//! Events as text: JSON strings, exact microseconds, arguments.

use tq_udfs::ticks::Tick;

/// A JSON text.
pub(super) fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Ticks as decimal microseconds, without a float on the way.
pub(super) fn microseconds(ticks: i64, tick: Tick) -> String {
    let per = tick.per_microsecond().unsigned_abs();
    let decimals = per.ilog10() as usize;
    let magnitude = ticks.unsigned_abs();
    let sign = if ticks < 0 { "-" } else { "" };
    let text = format!("{sign}{}.{:0decimals$}", magnitude / per, magnitude % per);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The members of a JSON object as they are written, without its braces, `""` for none; `None` for what is no object.
pub(super) fn members(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let is_object = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
    is_object.then_some(if inner.trim().is_empty() { "" } else { inner })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        for (ticks, nanoseconds, picoseconds) in [
            (0, "0", "0"),
            (1, "0.001", "0.000001"),
            (1_500_000, "1500", "1.5"),
            (-1, "-0.001", "-0.000001"),
            (i64::MAX, "9223372036854775.807", "9223372036854.775807"),
        ] {
            assert_eq!(microseconds(ticks, Tick::Nanosecond), nanoseconds);
            assert_eq!(microseconds(ticks, Tick::Picosecond), picoseconds);
        }
    }

    #[test]
    fn members_are_those_of_a_whole_object() {
        assert_eq!(members(r#" {"a":{"b":1}} "#), Some(r#""a":{"b":1}"#));
        assert_eq!(members(r#"{ "a": 1 }"#), Some(r#" "a": 1 "#));
        assert_eq!(members("{ }"), Some(""));
        assert_eq!(members(r#"{"a":1},{"b":2}"#), None);
        assert_eq!(members("[1]"), None);
    }
}
