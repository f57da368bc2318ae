//! Arrow's values as Python's, and the other way round.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};
use tq_cli::embedded::ScalarValue;
use tq_cli::embedded::arrow::array::{Array, ArrayRef, AsArray};
use tq_cli::embedded::arrow::compute::cast;
use tq_cli::embedded::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, SchemaRef, TimeUnit, UInt64Type};
use tq_cli::embedded::arrow::util::display::{ArrayFormatter, FormatOptions};

/// The values of a column: numbers, texts, bytes, lists and dictionaries; times with a date are `datetime`, to the microsecond. Other
/// types are texts.
pub(crate) fn values(py: Python<'_>, column: &ArrayRef) -> PyResult<Vec<Py<PyAny>>> {
    let as_type = |to: &DataType| cast(column, to).map_err(|error| PyTypeError::new_err(error.to_string()));
    Ok(match column.data_type() {
        DataType::Null => (0..column.len()).map(|_| py.None()).collect(),
        DataType::Boolean => each(py, column.as_boolean().iter())?,
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32 => each(py, as_type(&DataType::Int64)?.as_primitive::<Int64Type>().iter())?,
        DataType::UInt64 => each(py, column.as_primitive::<UInt64Type>().iter())?,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            each(py, as_type(&DataType::Float64)?.as_primitive::<Float64Type>().iter())?
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            each(py, as_type(&DataType::Utf8View)?.as_string_view().iter())?
        }
        DataType::Dictionary(..) => {
            // One object for each word.
            let dictionary = column.as_any_dictionary();
            let words = values(py, dictionary.values())?;
            let word = |row: usize, key: usize| match column.is_null(row) {
                true => py.None(),
                false => words[key].clone_ref(py),
            };
            dictionary.normalized_keys().into_iter().enumerate().map(|(row, key)| word(row, key)).collect()
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let bytes = as_type(&DataType::BinaryView)?;
            let bytes = bytes.as_binary_view().iter();
            bytes
                .map(|bytes| bytes.map_or_else(|| py.None(), |bytes| PyBytes::new(py, bytes).into_any().unbind()))
                .collect()
        }
        DataType::List(_) => {
            lists(py, column.len(), |row| column.is_valid(row).then(|| column.as_list::<i32>().value(row)))?
        }
        DataType::LargeList(_) => {
            lists(py, column.len(), |row| column.is_valid(row).then(|| column.as_list::<i64>().value(row)))?
        }
        DataType::Struct(fields) => {
            let parts = column.as_struct();
            let parts = parts.columns().iter().map(|part| values(py, part)).collect::<PyResult<Vec<_>>>()?;
            let row = |row: usize| -> PyResult<Py<PyAny>> {
                if column.is_null(row) {
                    return Ok(py.None());
                }
                let dict = PyDict::new(py);
                for (field, part) in fields.iter().zip(&parts) {
                    dict.set_item(field.name(), &part[row])?;
                }
                dict.into_py_any(py)
            };
            (0..column.len()).map(row).collect::<PyResult<_>>()?
        }
        DataType::Timestamp(_, zone) => {
            dates(py, &as_type(&DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?, zone.is_some())?
        }
        _ => {
            let failed = |error| PyTypeError::new_err(format!("{error}"));
            let texts = ArrayFormatter::try_new(column, &FormatOptions::default()).map_err(failed)?;
            let text = |row| match column.is_null(row) {
                true => Ok(py.None()),
                false => texts.value(row).to_string().into_py_any(py),
            };
            (0..column.len()).map(text).collect::<PyResult<_>>()?
        }
    })
}

fn each<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    values: impl Iterator<Item = Option<T>>,
) -> PyResult<Vec<Py<PyAny>>> {
    values.map(|value| value.map_or_else(|| Ok(py.None()), |value| value.into_py_any(py))).collect()
}

fn lists(py: Python<'_>, rows: usize, list: impl Fn(usize) -> Option<ArrayRef>) -> PyResult<Vec<Py<PyAny>>> {
    let object = |row: usize| match list(row) {
        Some(list) => values(py, &list)?.into_py_any(py),
        None => Ok(py.None()),
    };
    (0..rows).map(object).collect()
}

fn dates(py: Python<'_>, column: &ArrayRef, with_zone: bool) -> PyResult<Vec<Py<PyAny>>> {
    let module = py.import("datetime")?;
    let zone = module.getattr("timezone")?.getattr("utc")?;
    let zone = if with_zone { zone } else { py.None().into_bound(py) };
    let epoch = module.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, zone))?;
    let length = module.getattr("timedelta")?;
    let micros = cast(column, &DataType::Int64).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    let date = |micros: Option<i64>| match micros {
        Some(micros) => Ok(epoch.call_method1("__add__", (length.call1((0, 0, micros))?,))?.unbind()),
        None => Ok(py.None()),
    };
    micros.as_primitive::<Int64Type>().iter().map(date).collect()
}

/// Name, type and metadata of each column.
pub(crate) fn columns(schema: &SchemaRef) -> Vec<(String, String, Vec<(String, String)>)> {
    let column = |field: &std::sync::Arc<Field>| {
        let mut metadata: Vec<(String, String)> = field.metadata().clone().into_iter().collect();
        metadata.sort();
        (field.name().clone(), field.data_type().to_string(), metadata)
    };
    schema.fields().iter().map(column).collect()
}

/// The value of a parameter.
pub(crate) fn scalar(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ScalarValue> {
    if value.is_none() {
        return Ok(ScalarValue::Null);
    }
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(ScalarValue::Boolean(Some(value.is_true())));
    }
    if value.cast::<PyInt>().is_ok() {
        let number = value.extract::<i64>();
        let told = |_| PyOverflowError::new_err(format!("`{name}` is beyond the 64 bits of BIGINT"));
        return number.map(|number| ScalarValue::Int64(Some(number))).map_err(told);
    }
    if let Ok(value) = value.cast::<PyFloat>() {
        return Ok(ScalarValue::Float64(Some(value.extract()?)));
    }
    if let Ok(value) = value.cast::<PyString>() {
        return Ok(ScalarValue::Utf8(Some(value.extract()?)));
    }
    // numpy's numbers are none of Python's.
    if let Ok(number) = value.call_method0("__index__") {
        return scalar(name, &number);
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!("`{name}` is a `{kind}`; a value is an int, a float, a bool, a str or None")))
}
