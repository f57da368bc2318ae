//! Answers as columns: what the page reads as typed arrays, without a parser.
//!
//! ```text
//! u32 length of the header ─ header: JSON, padded ─ body: each column at a multiple of 8, little-endian
//! {"tables": [{"name": "rows", "rows": 2, "columns": [{"name": "start", "type": "i64", "offset": 0, "is": "time"}]}], …}
//! ```
//!
//! A column with a `scale` holds shares of 1 as whole numbers: a value of `scale` is 1. A text column has offsets (one more than rows) at
//! `offset` and its letters at `bytes`. A column with NULLs has a byte per row at `nulls`, 1 for NULL.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Int64Type, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::{Map, Value, json};

use crate::output::cells::Kind;

/// Columns on their way to the page.
#[derive(Default)]
pub(super) struct Columns {
    tables: Vec<Value>,
    extras: Map<String, Value>,
    body: Vec<u8>,
}

/// The table that is being written.
pub(super) struct Table<'c> {
    columns: &'c mut Columns,
    name: &'static str,
    rows: usize,
    described: Vec<Value>,
}

impl Columns {
    /// Something beside the tables.
    pub(super) fn extra(&mut self, name: &str, value: Value) {
        self.extras.insert(name.to_owned(), value);
    }

    /// What stands beside the tables.
    pub(super) fn said(&self, name: &str) -> Option<&Value> {
        self.extras.get(name)
    }

    /// The rows of a table that is complete.
    pub(super) fn rows_of(&self, name: &str) -> u64 {
        let table = self.tables.iter().find(|table| table["name"] == name);
        table.and_then(|table| table["rows"].as_u64()).unwrap_or(0)
    }

    pub(super) fn table(&mut self, name: &'static str, rows: usize) -> Table<'_> {
        Table { columns: self, name, rows, described: Vec::new() }
    }

    /// The bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.extras.insert("tables".to_owned(), Value::Array(self.tables));
        let mut header = Value::Object(self.extras).to_string().into_bytes();
        header.resize((4 + header.len()).next_multiple_of(8) - 4, b' ');
        let mut bytes = Vec::with_capacity(4 + header.len() + self.body.len());
        bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
        bytes.append(&mut header);
        bytes.append(&mut self.body);
        bytes
    }

    /// Where the next column begins.
    fn place(&mut self) -> usize {
        self.body.resize(self.body.len().next_multiple_of(8), 0);
        self.body.len()
    }
}

impl Table<'_> {
    /// Shares of 1, as whole numbers of 65535 parts: what a pixel shows needs no more.
    pub(super) fn shares(&mut self, name: &str, values: impl Iterator<Item = f64>) {
        let most = f64::from(u16::MAX);
        self.u16(name, values.map(|share| (share.clamp(0.0, 1.0) * most).round() as u16));
        if let Some(column) = self.described.last_mut() {
            column["scale"] = json!(u16::MAX);
        }
    }

    pub(super) fn u16(&mut self, name: &str, values: impl Iterator<Item = u16>) {
        self.numbers(name, "u16", values.map(u16::to_le_bytes));
    }

    pub(super) fn u32(&mut self, name: &str, values: impl Iterator<Item = u32>) {
        self.numbers(name, "u32", values.map(u32::to_le_bytes));
    }

    pub(super) fn f32(&mut self, name: &str, values: impl Iterator<Item = f32>) {
        self.numbers(name, "f32", values.map(f32::to_le_bytes));
    }

    pub(super) fn f64(&mut self, name: &str, values: impl Iterator<Item = f64>) {
        self.numbers(name, "f64", values.map(f64::to_le_bytes));
    }

    pub(super) fn i64(&mut self, name: &str, values: impl Iterator<Item = i64>) {
        self.numbers(name, "i64", values.map(i64::to_le_bytes));
    }

    /// Whole numbers, some of which are NULL.
    pub(super) fn nullable(&mut self, name: &str, values: &[Option<i64>]) {
        self.i64(name, values.iter().map(|value| value.unwrap_or_default()));
        self.nulls(values.iter().map(Option::is_none));
    }

    /// Doubles, some of which are NULL.
    pub(super) fn nullable_doubles(&mut self, name: &str, values: &[Option<f64>]) {
        self.f64(name, values.iter().map(|value| value.unwrap_or_default()));
        self.nulls(values.iter().map(Option::is_none));
    }

    pub(super) fn texts<'t>(&mut self, name: &str, values: impl Iterator<Item = Option<&'t str>> + Clone) {
        let offset = self.columns.place();
        let mut end = 0_u32;
        let ends = values.clone().map(|text| {
            end += text.map_or(0, |text| text.len() as u32);
            end
        });
        self.columns.body.extend(std::iter::once(0).chain(ends).flat_map(u32::to_le_bytes));
        let bytes = self.columns.place();
        values.clone().flatten().for_each(|text| self.columns.body.extend_from_slice(text.as_bytes()));
        self.described.push(json!({"name": name, "type": "text", "offset": offset, "bytes": bytes}));
        self.nulls(values.map(|text| text.is_none()));
    }

    /// Says what the last column means.
    pub(super) fn is(&mut self, meaning: &str) {
        if let Some(column) = self.described.last_mut() {
            column["is"] = json!(meaning);
        }
    }

    /// The table is complete.
    pub(super) fn end(self) {
        self.columns.tables.push(json!({"name": self.name, "rows": self.rows, "columns": self.described}));
    }

    fn numbers<const N: usize>(&mut self, name: &str, kind: &str, values: impl Iterator<Item = [u8; N]>) {
        let offset = self.columns.place();
        self.columns.body.extend(values.flatten());
        self.described.push(json!({"name": name, "type": kind, "offset": offset}));
    }

    /// Which values of the last column are NULL.
    fn nulls(&mut self, nulls: impl Iterator<Item = bool> + Clone) {
        if nulls.clone().any(|is_null| is_null) {
            let place = self.columns.place();
            self.columns.body.extend(nulls.map(u8::from));
            if let Some(column) = self.described.last_mut() {
                column["nulls"] = json!(place);
            }
        }
    }
}

/// The rows of an answer as the table `rows`: whole numbers as they are, other numbers as doubles, the rest as text.
pub(super) fn rows(columns: &mut Columns, schema: &SchemaRef, batches: &[RecordBatch]) -> Result<(), ArrowError> {
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    let mut table = columns.table("rows", rows);
    for (place, field) in schema.fields().iter().enumerate() {
        let parts: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(place)).collect();
        column(&mut table, field, &parts)?;
        if let Some(meaning) = meaning(field) {
            table.is(meaning);
        }
    }
    table.end();
    Ok(())
}

fn column(table: &mut Table<'_>, field: &Field, parts: &[&ArrayRef]) -> Result<(), ArrowError> {
    let all = |to: &DataType| parts.iter().map(|part| cast(part, to)).collect::<Result<Vec<ArrayRef>, ArrowError>>();
    let name = field.name();
    match field.data_type() {
        // What is beyond a BIGINT keeps its digits as text.
        kind if kind.is_integer() && *kind != DataType::UInt64 => {
            let parts = all(&DataType::Int64)?;
            let values = parts.iter().flat_map(|part| part.as_primitive::<Int64Type>());
            table.nullable(name, &values.collect::<Vec<_>>());
        }
        kind if kind.is_floating() => {
            let parts = all(&DataType::Float64)?;
            let values: Vec<Option<f64>> = parts.iter().flat_map(|part| part.as_primitive::<Float64Type>()).collect();
            table.nullable_doubles(name, &values);
        }
        _ => {
            let mut texts: Vec<Option<String>> = Vec::new();
            for part in parts {
                let shown = ArrayFormatter::try_new(part.as_ref(), &FormatOptions::default())?;
                let is_null = part.logical_nulls();
                let text = |row| {
                    is_null.as_ref().is_none_or(|nulls| nulls.is_valid(row)).then(|| shown.value(row).try_to_string())
                };
                for row in 0..part.len() {
                    texts.push(text(row).transpose()?);
                }
            }
            table.texts(name, texts.iter().map(Option::as_deref));
        }
    }
    Ok(())
}

/// What a column of ours means, for the page to show and to jump to.
pub(super) fn meaning(field: &Field) -> Option<&'static str> {
    match field.name().as_str() {
        "start" | "finish" | "time" if field.data_type() == &DataType::Int64 => Some("instant"),
        "task" | "task_before" | "task_after" | "released_by" if field.data_type() == &DataType::Int64 => Some("task"),
        "location" => Some("location"),
        _ => (Kind::of(field) == Kind::Time).then_some("duration"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int64Array, StringArray};
    use datafusion::arrow::datatypes::Schema;
    use std::sync::Arc;

    #[test]
    fn columns_stand_at_multiples_of_eight() {
        let batch = RecordBatch::try_from_iter([
            ("start", Arc::new(Int64Array::from(vec![Some(1 << 62), None])) as ArrayRef),
            ("name", Arc::new(StringArray::from(vec![Some("é"), None]))),
        ])
        .unwrap();
        let mut columns = Columns::default();
        columns.extra("complete", json!(true));
        rows(&mut columns, &batch.schema(), std::slice::from_ref(&batch)).unwrap();
        let bytes = columns.finish();
        let header = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        assert_eq!((4 + header) % 8, 0);
        let (body, header) = (&bytes[4 + header..], serde_json::from_slice::<Value>(&bytes[4..4 + header]).unwrap());
        assert_eq!(header["complete"], json!(true));
        let [start, name] = header["tables"][0]["columns"].as_array().unwrap().as_slice() else { panic!("{header}") };
        let at = |column: &Value, what: &str| column[what].as_u64().unwrap() as usize;
        assert_eq!(start["is"], json!("instant"));
        assert_eq!(body[at(start, "offset")..][..8], (1_i64 << 62).to_le_bytes());
        assert_eq!(body[at(start, "nulls")..][..2], [0, 1]);
        assert_eq!(body[at(name, "offset")..][..12], [0, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(&body[at(name, "bytes")..][..2], "é".as_bytes());
    }

    #[test]
    fn an_answer_without_rows_has_its_columns() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Float64, true)]));
        let mut columns = Columns::default();
        rows(&mut columns, &schema, &[]).unwrap();
        assert!(String::from_utf8_lossy(&columns.finish()).contains(r#""rows":0"#));
    }
}
