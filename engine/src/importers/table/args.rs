//! `args`: the input columns that map to no column of the table, so that nothing of a home-made log is lost.
//!
//! One JSON object a row. A plain cell that reads as a number or as `true` or `false` becomes one, with its digits
//! unchanged; other cells become strings, and empty cells are left out. Cells that should have been a time or a number and
//! were not are here too, under their column's name.

use std::fmt::Write as _;

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions, StringArray,
    StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Float16Type, Float32Type, Float64Type, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::LineDelimitedWriter;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::value::RawValue;

use super::read::{Batch, CellKind};

/// A cell that could not become what its column asks for.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BadCell {
    pub(super) row: usize,
    pub(super) column: String,
    pub(super) text: String,
}

/// The `args` of a batch; `None` when no row has any.
///
/// `unmapped` are (column of the batch, name), `own` is the file's own `args` column, `bad` is sorted.
pub(super) fn args(
    batch: &Batch,
    unmapped: &[(usize, String)],
    own: Option<&StringArray>,
    bad: &[BadCell],
) -> Result<Option<StringArray>, ArrowError> {
    if unmapped.is_empty() && own.is_none() && bad.is_empty() && batch.rest.is_none() {
        return Ok(None);
    }
    let keys: Vec<String> =
        unmapped.iter().map(|(_, name)| format!("{}:", serde_json::Value::from(name.as_str()))).collect();
    let typed = if batch.cells == CellKind::Typed && !unmapped.is_empty() {
        typed_members(batch, unmapped)?
    } else {
        Vec::new()
    };
    let mut bad = bad.iter().peekable();
    let mut objects = StringBuilder::new();
    for row in 0..batch.rows {
        let mut object = Object { text: &mut objects, members: 0 };
        if let Some(own) = own.filter(|own| own.is_valid(row)) {
            match members_of(own.value(row)) {
                Some(members) => object.members(members),
                None => object.member("\"args\":", &serde_json::Value::from(own.value(row)).to_string()),
            }
        }
        if let Some(rest) = batch.rest.as_ref().filter(|rest| rest.is_valid(row)) {
            object.members(rest.value(row));
        }
        match batch.cells {
            CellKind::Typed => object.members(typed.get(row).map_or("", String::as_str)),
            CellKind::Plain | CellKind::Json => {
                for ((column, _), key) in unmapped.iter().zip(&keys) {
                    let cells = batch.columns[*column].as_string::<i32>();
                    if cells.is_null(row) {
                        continue;
                    }
                    match cells.value(row) {
                        cell if batch.cells == CellKind::Json || is_json_scalar(cell) => object.member(key, cell),
                        cell => object.member(key, &serde_json::Value::from(cell).to_string()),
                    }
                }
            }
        }
        while let Some(cell) = bad.next_if(|cell| cell.row <= row) {
            let key = format!("{}:", serde_json::Value::from(cell.column.as_str()));
            object.member(&key, &serde_json::Value::from(cell.text.as_str()).to_string());
        }
        if object.members > 0 {
            let _ = objects.write_char('}');
            objects.append_value("");
        } else {
            objects.append_null();
        }
    }
    let objects = objects.finish();
    Ok((objects.null_count() < objects.len()).then_some(objects))
}

/// An object that is being written. Writing into a builder does not fail.
struct Object<'a> {
    text: &'a mut StringBuilder,
    members: usize,
}

impl Object<'_> {
    fn member(&mut self, key: &str, value: &str) {
        let _ = self.text.write_str(if self.members == 0 { "{" } else { "," });
        let _ = self.text.write_str(key);
        let _ = self.text.write_str(value);
        self.members += 1;
    }

    fn members(&mut self, members: &str) {
        if !members.is_empty() {
            self.member(members, "");
        }
    }
}

/// What stands between the braces of a JSON object; `None` for any other text.
fn members_of(text: &str) -> Option<&str> {
    let object: &RawValue = serde_json::from_str(text).ok()?;
    Some(object.get().strip_prefix('{')?.strip_suffix('}')?.trim())
}

/// Whether a text is, unchanged, a JSON number, `true` or `false`: `1.50` is, `007`, `+1` and `.5` are not.
fn is_json_scalar(text: &str) -> bool {
    if matches!(text, "true" | "false") {
        return true;
    }
    let bytes = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(bytes);
    if whole == 0 || (whole > 1 && bytes[0] == b'0') {
        return false;
    }
    let mut rest = &bytes[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-")).unwrap_or(exponent);
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}

/// The members of each row, of columns of any type.
fn typed_members(batch: &Batch, unmapped: &[(usize, String)]) -> Result<Vec<String>, ArrowError> {
    let columns: Vec<_> = unmapped.iter().map(|(column, _)| batch.columns[*column].clone()).collect();
    let fields: Vec<Field> = unmapped
        .iter()
        .zip(&columns)
        .map(|((_, name), column)| Field::new(name, column.data_type().clone(), true))
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
    let rows = RecordBatch::try_new_with_options(Schema::new(fields).into(), columns, &options)?;
    let mut text = Vec::new();
    let mut writer = LineDelimitedWriter::new(&mut text);
    if writer.write(&rows).and_then(|()| writer.finish()).is_err() {
        return displayed_members(&rows);
    }
    let lines = String::from_utf8(text).map_err(|error| ArrowError::JsonError(error.to_string()))?;
    Ok(lines.lines().map(|line| members_of_line(line).to_owned()).collect())
}

/// How many numbers of a column JSON has no form for: they become null.
pub(super) fn count_not_finite(column: &ArrayRef) -> u64 {
    fn floats<T: ArrowPrimitiveType>(column: &ArrayRef, is_finite: impl Fn(T::Native) -> bool) -> u64 {
        column.as_primitive::<T>().iter().flatten().filter(|value| !is_finite(*value)).count() as u64
    }
    fn list<O: OffsetSizeTrait>(column: &ArrayRef) -> u64 {
        let list = column.as_list::<O>();
        inner(list.values(), list.value_offsets().iter().map(|offset| offset.as_usize()))
    }
    // The values of a slice are those of the whole.
    fn inner(values: &ArrayRef, mut offsets: impl DoubleEndedIterator<Item = usize>) -> u64 {
        let first = offsets.next().unwrap_or(0);
        let last = offsets.next_back().unwrap_or(first);
        count_not_finite(&values.slice(first, last - first))
    }
    match column.data_type() {
        DataType::Float16 => floats::<Float16Type>(column, |value| value.is_finite()),
        DataType::Float32 => floats::<Float32Type>(column, f32::is_finite),
        DataType::Float64 => floats::<Float64Type>(column, f64::is_finite),
        DataType::Struct(_) => column.as_struct().columns().iter().map(count_not_finite).sum(),
        DataType::List(_) => list::<i32>(column),
        DataType::LargeList(_) => list::<i64>(column),
        DataType::FixedSizeList(..) => count_not_finite(column.as_fixed_size_list().values()),
        DataType::Map(..) => {
            let map = column.as_map();
            inner(map.values(), map.value_offsets().iter().map(|offset| *offset as usize))
        }
        _ => 0,
    }
}

fn members_of_line(line: &str) -> &str {
    line.strip_prefix('{').and_then(|line| line.strip_suffix('}')).unwrap_or("")
}

/// For types that have no form in JSON: every cell as text.
fn displayed_members(rows: &RecordBatch) -> Result<Vec<String>, ArrowError> {
    let options = FormatOptions::default();
    let formatters: Vec<ArrayFormatter<'_>> =
        rows.columns().iter().map(|column| ArrayFormatter::try_new(column, &options)).collect::<Result<_, _>>()?;
    let schema = rows.schema();
    let mut all = Vec::with_capacity(rows.num_rows());
    for row in 0..rows.num_rows() {
        let mut members: Vec<String> = Vec::new();
        for ((field, column), formatter) in schema.fields().iter().zip(rows.columns()).zip(&formatters) {
            if column.is_valid(row) {
                let cell = serde_json::Value::from(formatter.value(row).to_string());
                members.push(format!("{}:{cell}", serde_json::Value::from(field.name().as_str())));
            }
        }
        all.push(members.join(","));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Float64Array};

    use super::super::read::Places;
    use super::*;

    fn batch(cells: CellKind, columns: Vec<ArrayRef>, rest: Option<StringArray>) -> Batch {
        Batch { rows: 2, columns, cells, rest, places: Places::Rows(0) }
    }

    #[test]
    fn numbers_are_numbers_and_texts_are_texts() {
        for number in ["0", "-1", "1.50", "1e5", "1.5E-3", "true", "123456789012345678901234567890"] {
            assert!(is_json_scalar(number), "{number}");
            assert!(serde_json::from_str::<&RawValue>(number).is_ok(), "{number}");
        }
        for text in ["", "-", "007", "+1", ".5", "1.", "1e", "NaN", "1 ", "0x1", "True"] {
            assert!(!is_json_scalar(text), "{text}");
        }
    }

    #[test]
    fn everything_that_is_left_becomes_an_object() {
        let column: ArrayRef = Arc::new(StringArray::from(vec![Some("8"), None]));
        let own = StringArray::from(vec![Some("{\"x\": 1}"), Some("no json")]);
        let bad = [BadCell { row: 1, column: "t\"".to_owned(), text: "1e".to_owned() }];
        let plain = batch(CellKind::Plain, vec![column.clone()], None);
        let found = args(&plain, &[(0, "size".to_owned())], Some(&own), &bad).unwrap().unwrap();
        assert_eq!(found.value(0), r#"{"x": 1,"size":8}"#);
        assert_eq!(found.value(1), r#"{"args":"no json","t\"":"1e"}"#);
        assert_eq!(args(&plain, &[], None, &[]).unwrap(), None);

        let rest = StringArray::from(vec![Some("\"a\":[1]"), None]);
        let json = batch(CellKind::Json, vec![Arc::new(StringArray::from(vec![Some("\"8\""), None]))], Some(rest));
        let found = args(&json, &[(0, "size".to_owned())], None, &[]).unwrap().unwrap();
        assert_eq!((found.value(0), found.is_null(1)), (r#"{"a":[1],"size":"8"}"#, true));

        let floats: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.5), None]));
        let typed = batch(CellKind::Typed, vec![column, floats], None);
        let found = args(&typed, &[(0, "size".to_owned()), (1, "f".to_owned())], None, &[]).unwrap().unwrap();
        assert_eq!((found.value(0), found.is_null(1)), (r#"{"size":"8","f":0.5}"#, true));
    }
}
