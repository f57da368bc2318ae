//! Waiting without the interpreter's lock, a moment at a time.

use std::time::Duration;

use pyo3::prelude::*;
use tq_cli::embedded::{Error, Message, Next, Pending, Reading};

use crate::errors::{exception, warn};

/// How long a signal may wait for an answer.
pub(crate) const MOMENT: Duration = Duration::from_millis(50);

/// Waits for what is on its way; Ctrl-C and other exceptions of handlers abandon it. `meanwhile` is called now and then.
pub(crate) fn wait<T: Send + 'static>(
    py: Python<'_>,
    mut pending: Pending<T>,
    mut meanwhile: impl FnMut() -> PyResult<()>,
) -> PyResult<T> {
    let (done, said): (Result<T, Error>, Vec<Message>) = loop {
        if let Some(done) = py.detach(|| pending.wait(MOMENT)) {
            break done;
        }
        if let Err(raised) = py.check_signals().and_then(|()| meanwhile()) {
            pending.abandon();
            return Err(raised);
        }
    };
    // A warning that a filter raises comes before the error that it announces.
    warn(py, said)?;
    done.map_err(|error| exception(py, error))
}

/// [`wait`], with nothing to do meanwhile.
pub(crate) fn wait_for<T: Send + 'static>(py: Python<'_>, pending: Pending<T>) -> PyResult<T> {
    wait(py, pending, || Ok(()))
}

/// The next batch of an answer; `None` at its end.
pub(crate) fn next_batch(
    py: Python<'_>,
    reading: &mut Option<Reading>,
) -> PyResult<Option<tq_cli::embedded::arrow::array::RecordBatch>> {
    loop {
        let Some(rows) = reading.as_mut() else { return Ok(None) };
        let next = py.detach(|| rows.next_within(MOMENT));
        if let Err(raised) = py.check_signals() {
            abandon(reading);
            return Err(raised);
        }
        match next {
            Ok(Next::Rows(batch)) => return Ok(Some(batch)),
            Ok(Next::Waiting) => {}
            Ok(Next::End(notes)) => {
                *reading = None;
                warn(py, notes)?;
                return Ok(None);
            }
            Err(error) => {
                *reading = None;
                return Err(exception(py, error));
            }
        }
    }
}

/// Ends a run of which nobody wants more.
pub(crate) fn abandon(reading: &mut Option<Reading>) {
    if let Some(reading) = reading.take() {
        reading.abandon();
    }
}
