//! Hints for errors in which a chart line does not fit an answer.

use super::{Failure, Problem, did_you_mean};
use crate::charts::{ChartError, KINDS};

impl From<ChartError> for Failure {
    fn from(error: ChartError) -> Self {
        Problem { is_of_chart: true, ..word(&error) }.into()
    }
}

fn word(error: &ChartError) -> Problem {
    let message = error.to_string();
    match error {
        ChartError::UnknownKind { near: Some(near), .. } => {
            Problem::new(format!("{message}; did you mean `{near}`?")).hint(kinds())
        }
        ChartError::UnknownKind { near: None, .. } => Problem::new(message).hint(kinds()),
        ChartError::NotAPair { .. } => Problem::new(message).hint("a chart is written like `bar x=duration y=name`"),
        ChartError::UnknownKey { kind, key, known } => {
            let near = did_you_mean(key, known.iter().copied());
            Problem::new(format!("{message}{near}")).hint(format!("it is written `{}`", usage(kind)))
        }
        ChartError::MissingKey { usage, .. } => Problem::new(message).hint(format!("it is written `{usage}`")),
        ChartError::UnknownValue { .. }
        | ChartError::NoScale
        | ChartError::NoAmount { .. }
        | ChartError::Twice { .. }
        | ChartError::NotText { .. } => Problem::new(message),
        ChartError::MissingColumn { column, columns, .. } => {
            let near = did_you_mean(column, columns.iter().map(String::as_str));
            Problem::new(format!("{message}{near}")).hint(format!("the answer has {}", columns.join(", ")))
        }
        ChartError::MissingFixedColumn { columns, .. } => {
            Problem::new(message).hint(format!("the answer has {}", columns.join(", ")))
        }
        ChartError::NotNumbers { column, found, .. } if found == "text" => Problem::new(message)
            .hint(format!("`CAST({column} AS DOUBLE) AS {column}` turns texts that hold numbers into numbers")),
        ChartError::NotNumbers { .. } => Problem::new(message),
    }
}

fn kinds() -> String {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    format!("the kinds are {}", names.join(", "))
}

fn usage(name: &str) -> String {
    KINDS.iter().find(|kind| kind.name == name).map(|kind| kind.usage()).unwrap_or_default()
}
