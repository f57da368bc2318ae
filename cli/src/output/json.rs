//! `json` (one array of objects, a row per line) and `ndjson` (an object per line). NULL is `null`, times are integers.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::json::writer::{LineDelimited, WriterBuilder};

use super::unique;
use super::writer::{Output, Writer, only_one};
use crate::errors::Failure;

pub(super) struct Json {
    writer: Writer,
    is_array: bool,
    results: usize,
    rows: usize,
}

impl Json {
    pub(super) fn array(writer: Writer) -> Json {
        Json { writer, is_array: true, results: 0, rows: 0 }
    }

    pub(super) fn lines(writer: Writer) -> Json {
        Json { writer, is_array: false, results: 0, rows: 0 }
    }
}

impl Output for Json {
    fn begin(&mut self, _schema: &SchemaRef) -> Result<(), Failure> {
        if self.is_array {
            if self.results > 0 {
                return Err(only_one("json"));
            }
            self.writer.write_all(b"[")?;
        }
        self.results += 1;
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let mut lines = Vec::new();
        let mut json = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(&mut lines);
        json.write(&unique::renamed(batch)?)?;
        json.finish()?;
        drop(json);
        if !self.is_array {
            return Ok(self.writer.write_all(&lines)?);
        }
        for line in lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            self.writer.write_all(if self.rows == 0 { b"\n " } else { b",\n " })?;
            self.writer.write_all(line)?;
            self.rows += 1;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        if self.is_array {
            self.writer.write_all(if self.rows == 0 { b"]\n" } else { b"\n]\n" })?;
        }
        Ok(self.writer.flush()?)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(self.writer.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, DictionaryArray, Float64Array, Int64Array, StringArray};
    use datafusion::arrow::datatypes::Int32Type;

    use super::*;
    use crate::output::buffer::{Buffer, write};

    fn batch(rows: usize) -> RecordBatch {
        let names: DictionaryArray<Int32Type> = vec![Some("a\n\"b"), None].into_iter().collect();
        RecordBatch::try_from_iter([
            ("name", Arc::new(names) as ArrayRef),
            ("start", Arc::new(Int64Array::from(vec![Some(i64::MAX), None]))),
            ("ratio", Arc::new(Float64Array::from(vec![0.5, f64::NAN]))),
            ("args", Arc::new(StringArray::from(vec![Some("{}"), None]))),
        ])
        .unwrap()
        .slice(0, rows)
    }

    #[test]
    fn both_forms_are_valid_json_with_nulls() {
        let buffer = Buffer::default();
        write(&mut Json::array(buffer.writer()), &[batch(2), batch(1)]);
        let rows: serde_json::Value = serde_json::from_slice(&buffer.bytes()).unwrap();
        assert_eq!(rows.as_array().unwrap().len(), 3);
        assert_eq!(rows[0]["start"], serde_json::json!(i64::MAX));
        assert_eq!(rows[0]["name"], "a\n\"b");
        assert_eq!(rows[1]["name"], serde_json::Value::Null);
        assert_eq!(rows[1]["ratio"], serde_json::Value::Null);
        let buffer = Buffer::default();
        write(&mut Json::lines(buffer.writer()), &[batch(2)]);
        assert_eq!(buffer.text().lines().count(), 2);
    }

    #[test]
    fn no_rows_are_an_empty_array() {
        let buffer = Buffer::default();
        write(&mut Json::array(buffer.writer()), &[batch(0)]);
        assert_eq!(buffer.text(), "[]\n");
    }
}
