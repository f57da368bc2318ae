//! A question, and one run of it.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tq_cli::embedded;
use tq_cli::embedded::arrow::datatypes::SchemaRef;
use tq_cli::embedded::{Shown, Words};

use crate::errors::warn;
use crate::kept::Kept;
use crate::stream::{OfReading, capsule};
use crate::values::columns;
use crate::wait::{abandon, next_batch, wait_for};

/// A statement that was planned. Each reading runs it again.
#[pyclass(frozen, module = "tq._tq")]
pub(crate) struct Question {
    pub(crate) question: Arc<embedded::Question>,
    pub(crate) shown: Shown,
}

/// One run of a question.
#[pyclass(frozen, module = "tq._tq")]
pub(crate) struct Reading {
    schema: SchemaRef,
    reading: Mutex<Option<embedded::Reading>>,
    shown: Shown,
}

fn words_of(words: &str) -> PyResult<Words> {
    match words {
        "views" => Ok(Words::Views),
        "dictionaries" => Ok(Words::Dictionaries),
        "texts" => Ok(Words::Texts),
        _ => Err(PyValueError::new_err(format!("`words` is 'views', 'dictionaries' or 'texts', not '{words}'"))),
    }
}

#[pymethods]
impl Question {
    /// Name, type and metadata of each column.
    #[getter]
    fn columns(&self) -> Vec<(String, String, Vec<(String, String)>)> {
        columns(self.question.columns())
    }

    /// What may stand in another question in its place.
    #[getter]
    fn text(&self) -> Option<&str> {
        self.question.text()
    }

    /// Runs it.
    fn read(&self, py: Python<'_>) -> PyResult<Reading> {
        let reading = wait_for(py, self.question.read(Words::Views))?;
        let schema = Arc::clone(reading.schema());
        Ok(Reading { schema, reading: Mutex::new(Some(reading)), shown: self.shown })
    }

    /// Runs it and keeps the rows, `limit` at most.
    #[pyo3(signature = (words = "views", limit = None))]
    fn collect(&self, py: Python<'_>, words: &str, limit: Option<usize>) -> PyResult<Kept> {
        let reading = wait_for(py, self.question.read(words_of(words)?))?;
        let schema = Arc::clone(reading.schema());
        let mut reading = Some(reading);
        let (mut batches, mut rows, mut memory) = (Vec::new(), 0, None);
        while let Some(batch) = next_batch(py, &mut reading)? {
            let left = limit.map_or(usize::MAX, |limit| limit - rows);
            let batch = if batch.num_rows() > left { batch.slice(0, left) } else { batch };
            if let Some(reading) = &mut reading {
                reading.keep(&batch).map_err(|error| crate::errors::exception(py, error))?;
                memory = Some(reading.reserved());
            }
            rows += batch.num_rows();
            batches.push(batch);
            if limit == Some(rows) {
                break;
            }
        }
        if let Some(reading) = reading {
            let said = reading.said();
            // Without what is left of the run.
            py.detach(|| drop(reading));
            warn(py, said)?;
        }
        Ok(Kept::new(schema, batches, self.shown, memory))
    }

    /// The rows of one run, as they come.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Who asks for other types converts the columns itself, as the interface allows.
        let _ = requested_schema;
        let reading = wait_for(py, self.question.read(Words::Views))?;
        capsule(py, Box::new(OfReading { schema: Arc::clone(reading.schema()), reading: Some(reading) }))
    }
}

#[pymethods]
impl Reading {
    /// The next rows; `None` at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Kept>> {
        let Some(mut reading) = self.taken()? else { return Ok(None) };
        let batch = next_batch(py, &mut reading);
        *self.reading.lock().unwrap_or_else(PoisonError::into_inner) = reading;
        Ok(batch?.map(|batch| Kept::new(Arc::clone(&self.schema), vec![batch], self.shown, None)))
    }

    /// Ends the run.
    fn close(&self, py: Python<'_>) {
        py.detach(|| abandon(&mut self.reading.lock().unwrap_or_else(PoisonError::into_inner)));
    }
}

impl Reading {
    /// Two threads that read at once would wait for each other with the lock of the interpreter.
    fn taken(&self) -> PyResult<Option<Option<embedded::Reading>>> {
        match self.reading.try_lock() {
            Ok(mut reading) => Ok(reading.take().map(Some)),
            Err(_) => Err(PyRuntimeError::new_err(
                "another thread reads these rows; iterate in one, or let each iterate by itself",
            )),
        }
    }
}
