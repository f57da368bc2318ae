//! Rows that are kept.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use tq_cli::embedded::arrow::array::RecordBatch;
use tq_cli::embedded::arrow::compute::concat_batches;
use tq_cli::embedded::arrow::datatypes::SchemaRef;
use tq_cli::embedded::{Error, Kind, Reserved, Shown};

use crate::errors::exception;
use crate::stream::{OfBatches, capsule};
use crate::values::{columns, values};

/// Rows in memory.
#[pyclass(frozen, module = "tq._tq")]
pub(crate) struct Kept {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    shown: Shown,
    /// Their memory is the session's.
    _memory: Option<Reserved>,
}

impl Kept {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>, shown: Shown, memory: Option<Reserved>) -> Kept {
        Kept { schema, batches, shown, _memory: memory }
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The first rows as one batch.
    fn first(&self, py: Python<'_>, limit: usize) -> PyResult<RecordBatch> {
        let (mut batches, mut left) = (Vec::new(), limit);
        for batch in &self.batches {
            batches.push(batch.slice(0, batch.num_rows().min(left)));
            left -= batch.num_rows().min(left);
        }
        let failed = |error| exception(py, Error::new(Kind::Query, format!("{error}")));
        concat_batches(&self.schema, &batches).map_err(failed)
    }
}

#[pymethods]
impl Kept {
    /// Name, type and metadata of each column.
    #[getter]
    fn columns(&self) -> Vec<(String, String, Vec<(String, String)>)> {
        columns(&self.schema)
    }

    fn __len__(&self) -> usize {
        self.rows()
    }

    /// Tuples of Python values.
    fn tuples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for batch in &self.batches {
            let columns = batch.columns().iter().map(|column| values(py, column)).collect::<PyResult<Vec<_>>>()?;
            for row in 0..batch.num_rows() {
                list.append(PyTuple::new(py, columns.iter().map(|column| column[row].bind(py)))?)?;
                if row % 65_536 == 65_535 {
                    py.check_signals()?;
                }
            }
        }
        Ok(list)
    }

    /// The first rows as a table of HTML.
    fn html(&self, py: Python<'_>, limit: usize) -> PyResult<String> {
        self.shown.html(&self.first(py, limit)?).map_err(|error| exception(py, error))
    }

    /// The first rows as a table of text.
    fn text(&self, py: Python<'_>, limit: usize) -> PyResult<String> {
        self.shown.text(&self.first(py, limit)?).map_err(|error| exception(py, error))
    }

    /// The rows, which nothing copies.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Who asks for other types converts the columns itself, as the interface allows.
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter();
        capsule(py, Box::new(OfBatches { schema: Arc::clone(&self.schema), batches }))
    }
}
