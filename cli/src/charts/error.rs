//! The errors when a chart line does not fit an answer. Their messages are here, the hints in `errors`.

use thiserror::Error;

/// Why a chart cannot be drawn.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum ChartError {
    #[error("{}", no_kind(kind))]
    UnknownKind { kind: String, near: Option<String> },
    #[error("`{text}` is no key=column")]
    NotAPair { text: String },
    #[error("a {kind} chart has no key `{key}`")]
    UnknownKey { kind: &'static str, key: String, known: Vec<&'static str> },
    #[error("{key}={value}: it is one of {}", allowed.join(", "))]
    UnknownValue { key: &'static str, value: String, allowed: Vec<&'static str> },
    #[error("the colours have no range: `from` is to be less than `to`, and around zero one of them is not 0")]
    NoScale,
    #[error("{key}={value}: it is a number")]
    NoAmount { key: &'static str, value: String },
    #[error("`{key}` is given twice")]
    Twice { key: &'static str },
    #[error("a {kind} chart needs {key}=…")]
    MissingKey { kind: &'static str, key: &'static str, usage: String },
    #[error("the chart's {key}={column}: the answer has no column `{column}`")]
    MissingColumn { key: &'static str, column: String, columns: Vec<String> },
    #[error("the chart needs a column `{column}`, which the answer does not have")]
    MissingFixedColumn { kind: &'static str, column: &'static str, columns: Vec<String> },
    #[error("the chart's {key}={column} must be numbers, but `{column}` is {found}")]
    NotNumbers { key: &'static str, column: String, found: String },
    #[error("the chart's `{column}` cannot be shown: it is {found}")]
    NotText { column: String, found: String },
}

fn no_kind(kind: &str) -> String {
    if kind.is_empty() {
        "there is no kind of chart in an empty text".to_owned()
    } else {
        format!("`{kind}` is no kind of chart")
    }
}
