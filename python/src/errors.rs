//! Errors as exceptions of the package, messages as its warnings.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tq_cli::embedded::{Error, Kind, Message};

/// The module with the exceptions and the function that warns.
const MODULE: &str = "tq._errors";

/// The exception of an error.
pub(crate) fn exception(py: Python<'_>, error: Error) -> PyErr {
    let class = match error.kind {
        Kind::Trace => "TraceError",
        Kind::Query | Kind::Interrupted => "QueryError",
        Kind::Limit => "LimitError",
        Kind::TraceLimit => "TraceLimitError",
    };
    let raised = || -> PyResult<PyErr> {
        let class = py.import(MODULE)?.getattr(class)?;
        let value = class.call1((
            error.what.as_str(),
            error.place.as_deref(),
            error.excerpt.as_deref(),
            error.hints.clone(),
        ))?;
        Ok(PyErr::from_value(value))
    };
    raised().unwrap_or_else(|_| PyRuntimeError::new_err(error.to_string()))
}

/// Warns of each; a filter may turn a warning into an exception.
pub(crate) fn warn(py: Python<'_>, messages: Vec<Message>) -> PyResult<()> {
    if messages.is_empty() {
        return Ok(());
    }
    let warn = py.import(MODULE)?.getattr("warn")?;
    messages.iter().try_for_each(|message| warn.call1((message.label, message.text.as_str())).map(|_| ()))
}
