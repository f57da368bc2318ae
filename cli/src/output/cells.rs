//! Cells of a batch as text, for people or for programs.

use std::cell::OnceCell;
use std::fmt::Write;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use tq_udfs::ticks::{
    Tick, digits_to_tell_apart, is_point_of_time, is_shown_as_time, mean_time_text, time_text, time_text_of_digits,
};

/// How a column is shown to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Float,
    Time,
    Other,
}

impl Kind {
    pub(crate) fn of(field: &Field) -> Kind {
        let data_type = match field.data_type() {
            DataType::Dictionary(_, values) => values.as_ref(),
            data_type => data_type,
        };
        match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
            _ if is_shown_as_time(field) => Kind::Time,
            data_type if data_type.is_integer() => Kind::Integer,
            data_type if data_type.is_floating() => Kind::Float,
            DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
                Kind::Integer
            }
            _ => Kind::Other,
        }
    }

    /// Whether cells stand at the right edge of their column.
    pub(crate) fn is_right(self) -> bool {
        matches!(self, Kind::Integer | Kind::Float | Kind::Time)
    }
}

/// The kinds of all columns.
pub(crate) fn kinds(schema: &SchemaRef) -> Vec<Kind> {
    schema.fields().iter().map(|field| Kind::of(field)).collect()
}

/// A batch whose cells can be read as text.
pub(crate) struct Cells<'a> {
    columns: Vec<Column<'a>>,
}

struct Column<'a> {
    name: &'a str,
    array: &'a ArrayRef,
    kind: Kind,
    formatter: ArrayFormatter<'a>,
    /// Floats of any width as doubles; means of times are doubles too.
    doubles: Option<ArrayRef>,
    /// Whether it holds points of time, which are shown with as many digits as tell them apart.
    has_points: bool,
    /// How many digits that takes; counted when the first cell is shown.
    digits: OnceCell<u32>,
}

impl<'a> Cells<'a> {
    pub(crate) fn new(batch: &'a RecordBatch) -> Result<Cells<'a>, ArrowError> {
        static OPTIONS: FormatOptions<'static> = FormatOptions::new();
        let schema = batch.schema_ref();
        let column = |(field, array): (&'a std::sync::Arc<Field>, &'a ArrayRef)| {
            let kind = Kind::of(field);
            let doubles = field.data_type().is_floating().then(|| cast(array, &DataType::Float64)).transpose()?;
            let has_points = kind == Kind::Time && doubles.is_none() && is_point_of_time(field.name());
            let formatter = ArrayFormatter::try_new(array, &OPTIONS)?;
            Ok(Column { name: field.name(), array, kind, formatter, doubles, has_points, digits: OnceCell::new() })
        };
        let columns = schema.fields().iter().zip(batch.columns()).map(column).collect::<Result<_, ArrowError>>()?;
        Ok(Cells { columns })
    }

    /// Whether the cell is NULL; a dictionary may also have its NULLs among the values.
    pub(crate) fn is_null(&self, column: usize, row: usize) -> bool {
        let array = self.columns[column].array;
        match array.as_any_dictionary_opt() {
            Some(dictionary) if dictionary.values().null_count() > 0 => {
                array.logical_nulls().is_some_and(|nulls| nulls.is_null(row))
            }
            // A column of nothing but NULLs has no list of them.
            _ => array.is_null(row) || array.data_type() == &DataType::Null,
        }
    }

    /// How a column is shown.
    pub(crate) fn kind(&self, column: usize) -> Kind {
        self.columns[column].kind
    }

    /// Appends the cell exactly, nothing for NULL.
    pub(crate) fn exact(&self, column: usize, row: usize, text: &mut String) -> Result<(), ArrowError> {
        if self.is_null(column, row) {
            return Ok(());
        }
        let column = &self.columns[column];
        // Of all values only times beyond the calendar have none.
        column.formatter.value(row).write(text).map_err(|_| {
            let message = format!("a time of column `{}` lies beyond the years that have a date", column.name);
            ArrowError::InvalidArgumentError(message)
        })
    }

    /// The cell for people: times with units, floats with six decimals. Points of time that differ in the batch are shown so that they do.
    /// `None` for NULL.
    pub(crate) fn shown(&self, column: usize, row: usize, tick: Tick) -> Result<Option<String>, ArrowError> {
        if self.is_null(column, row) {
            return Ok(None);
        }
        let Column { array, kind, doubles, has_points, digits, .. } = &self.columns[column];
        Ok(Some(match (kind, doubles) {
            (Kind::Time, Some(doubles)) => mean_time_text(doubles.as_primitive::<Float64Type>().value(row), tick),
            (Kind::Time, None) if *has_points => {
                let times = array.as_primitive::<Int64Type>();
                let digits = *digits.get_or_init(|| digits_to_tell_apart(times.iter().flatten(), tick));
                time_text_of_digits(times.value(row), tick, digits)
            }
            (Kind::Time, None) => time_text(array.as_primitive::<Int64Type>().value(row), tick),
            (Kind::Float, Some(doubles)) => float(doubles.as_primitive::<Float64Type>().value(row)),
            _ => {
                let mut text = String::new();
                self.exact(column, row, &mut text)?;
                text
            }
        }))
    }
}

/// A double for people: at most six decimals, exponents only where those show nothing.
fn float(value: f64) -> String {
    let magnitude = value.abs();
    if !value.is_finite() || (magnitude != 0.0 && !(1e-4..1e15).contains(&magnitude)) {
        return format!("{value:e}").replace("inf", "Infinity");
    }
    let mut text = String::new();
    let _ = write!(text, "{value:.6}");
    let kept = text.trim_end_matches('0');
    // One decimal stays: a double looks like one.
    let kept = if kept.ends_with('.') { &text[..kept.len() + 1] } else { kept };
    kept.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_short_and_look_like_doubles() {
        for (value, expected) in [
            (0.0, "0.0"),
            (1.0, "1.0"),
            (0.1 + 0.2, "0.3"),
            (-2.0 / 3.0, "-0.666667"),
            (12_345_678.9, "12345678.9"),
            (1e-7, "1e-7"),
            (1e20, "1e20"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(float(value), expected);
        }
    }
}
