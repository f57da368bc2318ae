//! Arrow's values as Python's, and the other way round.

use std::collections::HashSet;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use tq_cli::embedded::ScalarValue;
use tq_cli::embedded::arrow::array::{Array, ArrayRef, AsArray};
use tq_cli::embedded::arrow::compute::{CastOptions, cast, cast_with_options};
use tq_cli::embedded::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, SchemaRef, TimeUnit, UInt64Type};
use tq_cli::embedded::arrow::util::display::{ArrayFormatter, FormatOptions};

/// The values of a column: numbers (`decimal.Decimal` for DECIMAL), texts, bytes, lists, pairs for maps, dictionaries for structs; dates, times
/// of the day and durations as `datetime` has them, to the microsecond. Intervals are texts.
///
/// # Errors
/// `OverflowError`: a time beyond the years of `datetime`. `TypeError`: a struct with two fields of one name.
pub(crate) fn values(py: Python<'_>, column: &ArrayRef) -> PyResult<Vec<Py<PyAny>>> {
    let as_type = |to: &DataType| {
        // What has no place there would be NULL.
        let exact = CastOptions { safe: false, ..CastOptions::default() };
        cast_with_options(column, to, &exact).map_err(|error| PyOverflowError::new_err(error.to_string()))
    };
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
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            let bytes = as_type(&DataType::LargeBinary)?;
            let bytes = bytes.as_binary::<i64>().iter();
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
        DataType::FixedSizeList(..) => {
            lists(py, column.len(), |row| column.is_valid(row).then(|| column.as_fixed_size_list().value(row)))?
        }
        DataType::Map(..) => {
            let pairs = |row| -> PyResult<Py<PyAny>> {
                if column.is_null(row) {
                    return Ok(py.None());
                }
                let entries = column.as_map().value(row);
                let [keys, values] = [0, 1].map(|part| values(py, entries.column(part)));
                let pairs: Vec<_> = keys?.into_iter().zip(values?).collect();
                pairs.into_py_any(py)
            };
            (0..column.len()).map(pairs).collect::<PyResult<_>>()?
        }
        DataType::Struct(fields) => {
            let names: HashSet<&String> = fields.iter().map(|field| field.name()).collect();
            if names.len() < fields.len() {
                return Err(PyTypeError::new_err(format!(
                    "a struct has two fields of one name, and a dictionary of Python cannot: {}; `.arrow()` has them",
                    column.data_type()
                )));
            }
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
            let zone = zone.as_ref().map(|_| py.import("datetime")?.getattr("timezone")?.getattr("utc")).transpose()?;
            let first = (1970, 1, 1, 0, 0, 0, 0, zone);
            let micros = as_type(&DataType::Timestamp(TimeUnit::Microsecond, None))?;
            after(py, &micros, Some(first.into_pyobject(py)?), None)?
        }
        DataType::Date32 | DataType::Date64 => {
            let micros = as_type(&DataType::Timestamp(TimeUnit::Microsecond, None))?;
            after(py, &micros, Some((1970, 1, 1).into_pyobject(py)?), Some("date"))?
        }
        DataType::Time32(_) | DataType::Time64(_) => {
            let micros = as_type(&DataType::Time64(TimeUnit::Microsecond))?;
            after(py, &micros, Some((1970, 1, 1).into_pyobject(py)?), Some("time"))?
        }
        DataType::Duration(_) => after(py, &as_type(&DataType::Duration(TimeUnit::Microsecond))?, None, None)?,
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            let decimal = py.import("decimal")?.getattr("Decimal")?;
            texts(column, |text| text.map_or_else(|| Ok(py.None()), |text| Ok(decimal.call1((text,))?.unbind())))?
        }
        _ => texts(column, |text| text.into_py_any(py))?,
    })
}

/// A value of each text that shows one.
fn texts(column: &ArrayRef, of: impl Fn(Option<String>) -> PyResult<Py<PyAny>>) -> PyResult<Vec<Py<PyAny>>> {
    let failed = |error| PyTypeError::new_err(format!("{error}"));
    let texts = ArrayFormatter::try_new(column, &FormatOptions::default()).map_err(failed)?;
    (0..column.len()).map(|row| of(column.is_valid(row).then(|| texts.value(row).to_string()))).collect()
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

/// Microseconds as durations; behind a moment, what they lead to, or a part of it (`date`, `time`).
fn after(
    py: Python<'_>,
    micros: &ArrayRef,
    moment: Option<Bound<'_, PyTuple>>,
    part: Option<&str>,
) -> PyResult<Vec<Py<PyAny>>> {
    let module = py.import("datetime")?;
    let length = module.getattr("timedelta")?;
    let moment = moment.map(|first| module.getattr("datetime")?.call1(first)).transpose()?;
    let micros = cast(micros, &DataType::Int64).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    let value = |micros: Option<i64>| -> PyResult<Py<PyAny>> {
        let Some(micros) = micros else { return Ok(py.None()) };
        let told = |_| {
            PyOverflowError::new_err(
                "a time lies beyond the years of Python's `datetime`; `.arrow()` and `.pl()` have it",
            )
        };
        let mut value = length.call1((0, 0, micros)).map_err(told)?;
        if let Some(moment) = &moment {
            value = moment.call_method1("__add__", (value,)).map_err(told)?;
        }
        if let Some(part) = part {
            value = value.call_method0(part)?;
        }
        Ok(value.unbind())
    };
    micros.as_primitive::<Int64Type>().iter().map(value).collect()
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
    if value.cast::<PyList>().is_ok() || value.cast::<PyTuple>().is_ok() {
        let values = value.try_iter()?.map(|value| scalar(name, &value?)).collect::<PyResult<Vec<_>>>()?;
        return list(name, values);
    }
    // numpy's numbers are none of Python's.
    for own in ["__index__", "item"] {
        if let Ok(own) = value.call_method0(own)
            && own.get_type().module()? == "builtins"
        {
            return scalar(name, &own);
        }
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "`{name}` is a `{kind}`; a value is an int, a float, a bool, a str, None or a list of them"
    )))
}

/// A list of values of one type.
fn list(name: &str, values: Vec<ScalarValue>) -> PyResult<ScalarValue> {
    let mut kinds = values.iter().filter(|value| !value.is_null()).map(ScalarValue::data_type);
    let kind = kinds.next().unwrap_or(DataType::Null);
    if let Some(other) = kinds.find(|other| *other != kind) {
        return Err(PyTypeError::new_err(format!(
            "`{name}` has values of two types, {kind} and {other}; a list has one"
        )));
    }
    let typed = |value: ScalarValue| value.cast_to(&kind).map_err(|error| PyTypeError::new_err(error.to_string()));
    let values = values.into_iter().map(typed).collect::<PyResult<Vec<_>>>()?;
    Ok(ScalarValue::List(ScalarValue::new_list_nullable(&values, &kind)))
}
