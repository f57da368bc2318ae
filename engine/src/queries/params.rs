//! Parameters of saved queries: declared with a type, given as text, bound as values. Text never becomes SQL.

use datafusion::common::ScalarValue;
use tq_udfs::ticks::{Tick, time_text};

use crate::time::GivenTime;

/// A declared parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    /// The name of `$name`.
    pub name: String,
    /// What it may be.
    pub param_type: ParamType,
    /// Its value when none is given; `None` = one must be given.
    pub default: Option<Given>,
    /// What it does, in words.
    pub description: String,
    /// The line of the file, from 1.
    pub line: usize,
}

impl Param {
    /// Its default as people read it; `None` without one, or where it does not fit ticks of this length.
    pub fn default_text(&self, tick: Tick) -> Option<String> {
        match self.default.as_ref()?.value(tick)? {
            ScalarValue::Int64(Some(ticks)) if self.param_type == ParamType::Time => Some(time_text(ticks, tick)),
            value => Some(value.to_string()),
        }
    }
}

/// The types of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamType {
    /// A whole number.
    Integer,
    /// A number.
    Double,
    /// Text.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A time as people write it, `1.5ms`; ticks in SQL.
    Time,
}

/// A value, before the length of a tick is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// Any value but a time.
    Value(ScalarValue),
    /// A time.
    Time(GivenTime),
}

impl Given {
    /// The value in a session with ticks of this length; `None` when a time does not fit.
    pub fn value(&self, tick: Tick) -> Option<ScalarValue> {
        match self {
            Given::Value(value) => Some(value.clone()),
            Given::Time(time) => time.ticks(tick).map(|ticks| ScalarValue::Int64(Some(ticks))),
        }
    }
}

impl ParamType {
    /// The names that lists show.
    pub const NAMES: [&'static str; 5] = ["BIGINT", "DOUBLE", "TEXT", "BOOLEAN", "TIME"];

    /// The type of a name of SQL.
    pub fn from_name(name: &str) -> Option<ParamType> {
        Some(match name.to_ascii_uppercase().as_str() {
            "BIGINT" | "INTEGER" | "INT" => ParamType::Integer,
            "DOUBLE" | "FLOAT" | "REAL" => ParamType::Double,
            "TEXT" | "VARCHAR" | "STRING" => ParamType::Text,
            "BOOLEAN" | "BOOL" => ParamType::Boolean,
            "TIME" => ParamType::Time,
            _ => return None,
        })
    }

    /// The name that lists show.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// A value that a user gives: text is taken as it is.
    ///
    /// # Errors
    /// Why the text is no value of this type.
    pub fn value(self, text: &str) -> Result<Given, String> {
        let value = match self {
            ParamType::Text => Ok(ScalarValue::from(text)),
            ParamType::Integer => {
                text.parse().map(|integer| ScalarValue::Int64(Some(integer))).map_err(|_| "whole number")
            }
            ParamType::Double => match text.parse::<f64>() {
                Ok(double) if double.is_finite() => Ok(ScalarValue::Float64(Some(double))),
                _ => Err("number"),
            },
            ParamType::Boolean => match text {
                "true" | "false" => Ok(ScalarValue::Boolean(Some(text == "true"))),
                _ => return Err(format!("`{text}` is neither true nor false")),
            },
            ParamType::Time => return text.parse().map(Given::Time),
        };
        value.map(Given::Value).map_err(|what| format!("`{text}` is no {what}"))
    }

    /// A default as a header writes it: text may stand in quotes, `NULL` is none.
    pub(super) fn default(self, text: &str) -> Result<Given, String> {
        if text.eq_ignore_ascii_case("null") {
            return Ok(Given::Value(match self {
                ParamType::Integer | ParamType::Time => ScalarValue::Int64(None),
                ParamType::Double => ScalarValue::Float64(None),
                ParamType::Text => ScalarValue::Utf8(None),
                ParamType::Boolean => ScalarValue::Boolean(None),
            }));
        }
        let quoted = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        match (self, quoted) {
            (ParamType::Text, Some(inner)) => self.value(&inner.replace("''", "'")),
            _ => self.value(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_their_type_says() {
        let value =
            |param_type: ParamType, text: &str| param_type.value(text).map(|given| given.value(Tick::Nanosecond));
        assert_eq!(value(ParamType::Integer, "5"), Ok(Some(ScalarValue::Int64(Some(5)))));
        assert_eq!(value(ParamType::Integer, "5; DROP"), Err("`5; DROP` is no whole number".to_owned()));
        assert_eq!(value(ParamType::Double, "inf"), Err("`inf` is no number".to_owned()));
        assert_eq!(value(ParamType::Text, "' OR 1=1"), Ok(Some(ScalarValue::from("' OR 1=1"))));
        assert_eq!(value(ParamType::Boolean, "yes"), Err("`yes` is neither true nor false".to_owned()));
        assert_eq!(value(ParamType::Time, "1.5us"), Ok(Some(ScalarValue::Int64(Some(1_500)))));
        assert!(value(ParamType::Time, "soon").is_err());
        for name in ParamType::NAMES {
            assert_eq!(ParamType::from_name(name).unwrap().name(), name);
        }
    }
}
