//! Read: the rows of a file, whatever container they come in, as batches of columns.
//!
//! Each container has its reader: it pushes one [`Header`] and then [`Batch`]es into a [`Sink`]. Readers know nothing of
//! mappings and times; they report where each row was in the file, so that an error can name the place of a bad cell.
//!
//! | container | mark | cells arrive as |
//! | --- | --- | --- |
//! | Parquet | `PAR1` | Arrow arrays of any type |
//! | Arrow IPC | file `ARROW1`, stream `FF FF FF FF` | Arrow arrays of any type |
//! | SQLite | `SQLite format 3\0` | JSON text, since each cell has its own type |
//! | NDJSON, JSON array | `{` … on one line, `[{` | JSON text |
//! | CSV, TSV … | none of these | plain text, empty is NULL |

mod array;
mod csv;
mod ipc;
mod json;
mod lines;
mod parquet;
mod sqlite;

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, StringArray, new_null_array};
use datafusion::arrow::datatypes::DataType;

use crate::error::ImportError;
use crate::importers::foreign;
use crate::trace::{ROWS_PER_BATCH, Source, Stats};

/// The columns of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    /// The columns of each batch, in order.
    pub(super) columns: Vec<String>,
    /// The columns that the file has, for errors. The same as `columns`, unless `open`.
    pub(super) found: Vec<String>,
    /// Later rows may bring further columns (JSON). Batches then have those that were asked for.
    pub(super) open: bool,
}

impl Header {
    fn closed(columns: Vec<String>) -> Header {
        Header { found: columns.clone(), columns, open: false }
    }
}

/// Some rows.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) rows: usize,
    pub(super) columns: Vec<ArrayRef>,
    pub(super) cells: CellKind,
    /// What a row has besides `columns`, as members of a JSON object: `"a":1,"b":"x"`.
    pub(super) rest: Option<StringArray>,
    pub(super) places: Places,
}

/// What the arrays of a batch hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellKind {
    /// Text without a type (Utf8).
    Plain,
    /// JSON text (Utf8): `"a"` is a text, `1.50` a number.
    Json,
    /// Values of the array's own type.
    Typed,
}

/// Where the rows of a batch stood.
#[derive(Debug)]
pub(super) enum Places {
    /// Lines of a text.
    Lines(Vec<u64>),
    /// Numbers of records, from this one on.
    Rows(u64),
    /// Numbers of records.
    Numbers(Vec<u64>),
}

impl Places {
    /// The place of a row of the batch.
    pub(super) fn at(&self, row: usize) -> Place {
        match self {
            Places::Lines(lines) => Place::Line(lines.get(row).copied().unwrap_or(0)),
            Places::Rows(first) => Place::Row(first + row as u64),
            Places::Numbers(numbers) => Place::Row(numbers.get(row).copied().unwrap_or(0)),
        }
    }
}

/// Where one row stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A line, from 1.
    Line(u64),
    /// A record, from 1.
    Row(u64),
}

/// Receives what a reader reads.
pub(super) trait Sink {
    /// Called once, before the first batch.
    fn header(&mut self, header: Header) -> Result<(), ImportError>;
    /// Called for each batch in order.
    fn batch(&mut self, batch: Batch) -> Result<(), ImportError>;
    /// Where a reader counts records that became no row of a batch: it books them as read and as left out.
    fn stats(&mut self) -> &mut Stats;
}

/// How to read, where the container leaves a choice.
#[derive(Debug)]
pub(super) struct ReadOptions<'a> {
    pub(super) delimiter: Option<u8>,
    /// Names for a CSV without a header line.
    pub(super) columns: Option<&'a [String]>,
    /// The table of an SQLite file.
    pub(super) from: Option<&'a str>,
    /// A SELECT for an SQLite file.
    pub(super) query: Option<&'a str>,
    /// The columns that an open header should have.
    pub(super) wanted: Vec<String>,
}

/// What holds the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Parquet,
    IpcFile,
    IpcStream,
    Sqlite,
    JsonLines,
    JsonArray,
    Csv,
}

/// Which container the head belongs to; `None` for what is no table of rows.
pub(super) fn container(head: &[u8]) -> Option<Container> {
    let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
    if head.starts_with(b"PAR1") {
        Some(Container::Parquet)
    } else if head.starts_with(b"ARROW1") {
        Some(Container::IpcFile)
    } else if head.starts_with(b"\xff\xff\xff\xff") {
        Some(Container::IpcStream)
    } else if head.starts_with(b"SQLite format 3\0") {
        Some(Container::Sqlite)
    } else if head.contains(&0) {
        None
    } else if first == Some(&b'{') {
        json::begins_with_records(head).then_some(Container::JsonLines)
    } else if first == Some(&b'[') && json::begins_with_array(head) {
        Some(Container::JsonArray)
    } else {
        Some(Container::Csv)
    }
}

/// The columns of a file as far as its head tells; `None` when the head is not enough or is no table.
pub(super) fn peek(source: &Source) -> Option<Vec<String>> {
    match container(source.head())? {
        Container::Parquet => parquet::columns(source),
        Container::IpcFile | Container::IpcStream => ipc::columns(source),
        Container::Sqlite => None,
        Container::JsonLines | Container::JsonArray => json::keys(source.head()),
        Container::Csv => csv::header(source.head()),
    }
}

/// Whether a file is a single JSON object that holds lists or objects: a document of some program, not a row of a table.
pub(super) fn is_document(source: &Source) -> bool {
    let head = source.head();
    match container(head) {
        Some(Container::JsonLines) => json::is_document(head, source.head_is_whole()),
        None => head.trim_ascii_start().first() == Some(&b'{'),
        _ => false,
    }
}

/// The columns of the only table of a database; `None` when there are several, or none that can be read.
pub(super) fn rows_of_database(source: &Source) -> Option<Vec<String>> {
    sqlite::columns_of_only_table(source)
}

/// Reads the whole file into the sink.
pub(super) fn read(source: &Source, options: &ReadOptions<'_>, sink: &mut dyn Sink) -> Result<(), ImportError> {
    match container(source.head()) {
        Some(Container::Parquet) => parquet::read(source, sink),
        Some(Container::IpcFile) => ipc::read_file(source, sink),
        Some(Container::IpcStream) => ipc::read_stream(source, sink),
        Some(Container::Sqlite) => sqlite::read(source, options, sink),
        Some(Container::JsonLines) => json::read_lines(source, options, sink),
        Some(Container::JsonArray) => json::read_array(source, options, sink),
        Some(Container::Csv) => csv::read(source, options, sink),
        None => Err(no_table(source)),
    }
}

fn no_table(source: &Source) -> ImportError {
    foreign::refused_as_text(source).unwrap_or_else(|| ImportError::Unusable {
        path: source.path().to_owned(),
        what: "neither CSV, NDJSON, Parquet, Arrow nor SQLite".to_owned(),
        hint: None,
    })
}

/// Hands Arrow batches on, in pieces of the size of our own batches.
fn push_arrow(
    source: &Source,
    batch: &RecordBatch,
    first_row: &mut u64,
    sink: &mut dyn Sink,
) -> Result<(), ImportError> {
    // Rows without a single cell cost no byte in the file: a damaged count would keep us busy for years.
    if batch.num_rows() > 0 && batch.columns().iter().all(|column| column.data_type().is_null()) {
        return Err(damaged(source, format!("row {first_row}"), "no column holds anything"));
    }
    for offset in (0..batch.num_rows()).step_by(ROWS_PER_BATCH) {
        let rows = ROWS_PER_BATCH.min(batch.num_rows() - offset);
        let columns = batch.slice(offset, rows).columns().iter().map(with_nulls).collect();
        sink.batch(Batch { rows, columns, cells: CellKind::Typed, rest: None, places: Places::Rows(*first_row) })?;
        *first_row += rows as u64;
    }
    Ok(())
}

/// A column whose type is `null` says of no row that it is NULL.
fn with_nulls(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Null => new_null_array(&DataType::Utf8, column.len()),
        _ => Arc::clone(column),
    }
}

/// A file that breaks the rules of its container.
#[expect(clippy::needless_pass_by_value, reason = "errors and texts, made for this call")]
fn damaged(source: &Source, place: String, what: impl ToString) -> ImportError {
    let what = what.to_string();
    ImportError::Damaged { path: source.path().to_owned(), format: "table", place, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_have_marks() {
        let check = |head: &[u8], expected| assert_eq!(container(head), expected, "{}", head.escape_ascii());
        check(b"PAR1\x15", Some(Container::Parquet));
        check(b"ARROW1\0\0", Some(Container::IpcFile));
        check(b"\xff\xff\xff\xff\x10\0\0\0", Some(Container::IpcStream));
        check(b"SQLite format 3\0", Some(Container::Sqlite));
        check(b"{\"a\": 1}\n{\"a\": 2}\n", Some(Container::JsonLines));
        check(b" [ {\"a\": 1}]", Some(Container::JsonArray));
        check(b"[1, 2]", Some(Container::Csv));
        check(b"{\n  \"a\": 1\n}\n", None);
        check(b"a,b\n1,2\n", Some(Container::Csv));
        check(b"\x7fELF\0", None);
    }
}
