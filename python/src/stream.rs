//! Rows by Arrow's C interface: streams in capsules, going out and coming in.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use tq_cli::embedded::arrow::array::{RecordBatch, RecordBatchReader};
use tq_cli::embedded::arrow::datatypes::SchemaRef;
use tq_cli::embedded::arrow::error::ArrowError;
use tq_cli::embedded::arrow::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use tq_cli::embedded::{Next, Reading, is_given_up};

use crate::errors::warn;
use crate::wait::{MOMENT, abandon};

const STREAM: &CStr = c"arrow_array_stream";

/// A stream in a capsule, as `__arrow_c_stream__` gives it.
pub(crate) fn capsule<'py>(
    py: Python<'py>,
    rows: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(rows), STREAM)
}

/// Refuses what has no `__arrow_c_stream__`.
pub(crate) fn must_stream(rows: &Bound<'_, PyAny>) -> PyResult<()> {
    if rows.hasattr("__arrow_c_stream__")? {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "`{}` has no `__arrow_c_stream__`: give a DataFrame of polars or pandas, a table of pyarrow, a relation of duckdb",
        rows.get_type().name()?
    )))
}

/// The rows of anything that has `__arrow_c_stream__`.
pub(crate) fn reader(rows: &Bound<'_, PyAny>) -> PyResult<Box<dyn RecordBatchReader + Send>> {
    let capsule = rows.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let stream: NonNull<FFI_ArrowArrayStream> = capsule.pointer_checked(Some(STREAM))?.cast();
    // SAFETY: a capsule of this name holds such a stream; it is moved out, and what is left there is released.
    let reader = unsafe { ArrowArrayStreamReader::from_raw(stream.as_ptr()) };
    let told = |error: ArrowError| {
        let kind = rows.get_type().name().map_or_else(|_| "it".to_owned(), |name| format!("`{name}`"));
        PyValueError::new_err(format!("{error}; is {kind} a table, and no single column?"))
    };
    Ok(Box::new(Foreign(reader.map_err(told)?)))
}

/// Batches of another library, which may have other columns than it says: taking them in panics then.
struct Foreign(ArrowArrayStreamReader);

impl Iterator for Foreign {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let unfit = || ArrowError::CDataInterface("a batch does not have the columns that its stream names".to_owned());
        catch_unwind(AssertUnwindSafe(|| self.0.next())).unwrap_or_else(|_| Some(Err(unfit())))
    }
}

impl RecordBatchReader for Foreign {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
}

/// Batches that are kept.
pub(crate) struct OfBatches {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: std::vec::IntoIter<RecordBatch>,
}

impl Iterator for OfBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next().map(Ok)
    }
}

impl RecordBatchReader for OfBatches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Batches of a question that runs while they are read.
pub(crate) struct OfReading {
    pub(crate) schema: SchemaRef,
    pub(crate) reading: Option<Reading>,
}

impl Iterator for OfReading {
    type Item = Result<RecordBatch, ArrowError>;

    /// Called by another library, with the interpreter's lock or without.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.reading.as_mut()?.next_within(MOMENT) {
                Ok(Next::Rows(batch)) => return Some(Ok(batch)),
                Ok(Next::Waiting) => {}
                Ok(Next::End(notes)) => {
                    self.reading = None;
                    // Nothing is lost where nobody can be told: the same notes come with `collect`.
                    let _ = if_of_python(|py| warn(py, notes));
                    return None;
                }
                Err(error) => {
                    self.reading = None;
                    return Some(Err(ArrowError::ExternalError(Box::new(error))));
                }
            }
            if is_given_up() {
                abandon(&mut self.reading);
                return Some(Err(ArrowError::ExternalError("nobody waits for these rows any more".into())));
            }
            let raised = if_of_python(|py| {
                let raised = py.check_signals().err()?;
                // As a text: whoever shows an exception runs Python, and an interrupt would be raised, and lost, there.
                Some((raised.is_instance_of::<PyKeyboardInterrupt>(py), raised.to_string()))
            });
            if let Some((is_interrupt, told)) = raised.flatten() {
                abandon(&mut self.reading);
                if is_interrupt {
                    // The library that reads makes an error of its own of this one; the interrupt is raised once it returns.
                    // SAFETY: sets a flag, with the lock or without.
                    unsafe { ffi::PyErr_SetInterrupt() };
                }
                return Some(Err(ArrowError::ExternalError(told.into())));
            }
        }
    }
}

impl RecordBatchReader for OfReading {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Does something with the interpreter, if this is one of its threads: others may be waited for by somebody who has the lock.
fn if_of_python<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    // SAFETY: asks for a thread's own state, for which no lock is needed.
    let state = unsafe { ffi::PyGILState_GetThisThreadState() };
    if state.is_null() { None } else { Python::try_attach(work) }
}
