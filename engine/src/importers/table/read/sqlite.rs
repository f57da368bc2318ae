//! SQLite: one table, view or SELECT of a database that is only read.
//!
//! The database is opened read-only and *immutable*: no lock is taken, no journal is made or played back, the file may lie
//! on a read-only disk or belong to a program that writes it. Changes that only its `-wal` file holds are therefore not
//! seen, which is counted. Each cell has its own type in SQLite; cells go on as JSON text, floats as the shortest decimal
//! that reads back as themselves, blobs in hexadecimal.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringBuilder};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::{Batch, CellKind, Header, Places, ReadOptions, Sink, damaged};
use crate::error::ImportError;
use crate::importers::table::mapping::list;
use crate::importers::table::suggest;
use crate::trace::{Finding, ROWS_PER_BATCH, Source, Stage};

const WAL_IGNORED: Finding = Finding::lost("wal_ignored", Stage::Import);
const NOT_UTF8: Finding = Finding::repaired("not_utf8", Stage::Recording);

/// The text of a batch, and with it the batch, ends beyond this.
const BATCH_BYTES: usize = 8 << 20;

pub(super) fn read(source: &Source, options: &ReadOptions<'_>, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let local = source.local_file()?;
    let failed = |error: rusqlite::Error| damaged(source, "SQLite".to_owned(), error);
    check_length(source, local.path())?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(uri(local.path()), flags).map_err(failed)?;
    let wal = format!("{}-wal", source.path().display());
    if std::fs::metadata(&wal).is_ok_and(|wal| wal.len() > 0) {
        sink.stats().note(WAL_IGNORED, 1, || format!("`{wal}` holds changes that are not in the database yet"));
    }
    let select = match options.query {
        Some(query) => query.to_owned(),
        None => format!("SELECT * FROM {}", quoted(&table(source, &database, options.from)?)),
    };
    let refused = |what: String| ImportError::Unusable {
        path: source.path().to_owned(),
        what: format!("the database refuses `{select}`: {what}"),
        hint: None,
    };
    let mut statement = database.prepare(&select).map_err(|error| match error {
        // What the author of a query can mend is no damage.
        error if options.query.is_some() => refused(error.to_string()),
        error => failed(error),
    })?;
    if !statement.readonly() || statement.column_count() == 0 {
        return Err(refused("only a SELECT is run".to_owned()));
    }
    // The library panics over a name that is no UTF-8, which only a damaged file has.
    let names = || -> Vec<String> { statement.column_names().map(str::to_owned).collect() };
    let names = catch_unwind(AssertUnwindSafe(names))
        .map_err(|_| damaged(source, "SQLite".to_owned(), "the name of a column is no UTF-8"))?;
    let mut columns: Vec<StringBuilder> = names.iter().map(|_| StringBuilder::new()).collect();
    sink.header(Header::closed(names))?;
    let mut rows = statement.query([]).map_err(failed)?;
    let (mut first, mut count, mut bytes) = (0, 0, 0);
    loop {
        let row = rows.next().map_err(|error| damaged(source, format!("row {}", first + count as u64), error))?;
        let full = count == ROWS_PER_BATCH || bytes > BATCH_BYTES;
        if count > 0 && (full || row.is_none()) {
            let columns = columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
            sink.batch(Batch { rows: count, columns, cells: CellKind::Json, rest: None, places: Places::Rows(first) })?;
            first += count as u64;
            (count, bytes) = (0, 0);
        }
        let Some(row) = row else { return Ok(()) };
        for (index, column) in columns.iter_mut().enumerate() {
            let cell = row.get_ref(index).map_err(failed)?;
            bytes += write_cell(cell, column, |text| {
                let place = first + count as u64;
                sink.stats().note(NOT_UTF8, 1, || format!("{} row {place}: `{text}`", source.path().display()));
            });
        }
        count += 1;
    }
}

/// Whether all pages are there: behind the end of a file that was cut off SQLite reads zeros, and rows of nothing.
///
/// Header: page size at 16 (1 stands for 65 536), number of pages at 28, valid when the counters at 24 and 92 agree.
fn check_length(source: &Source, path: &Path) -> Result<(), ImportError> {
    let head = source.head();
    let number = |at: usize| head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
    let (Some(pages), Some(changed), Some(valid_for)) = (number(28), number(24), number(92)) else {
        return Err(damaged(source, "header".to_owned(), "cut off within the header"));
    };
    let page_size = match u64::from(head[16]) << 8 | u64::from(head[17]) {
        1 => 65_536,
        size => size,
    };
    let length = std::fs::metadata(path).map_err(|error| source.io_error(error))?.len();
    let expected = u64::from(pages) * page_size;
    if changed == valid_for && length < expected {
        let what = format!("cut off: {pages} pages need {expected} bytes, the file has {length}");
        return Err(damaged(source, format!("byte {length}"), what));
    }
    Ok(())
}

/// Appends a cell as JSON text; returns how long it is.
fn write_cell(cell: ValueRef<'_>, column: &mut StringBuilder, not_utf8: impl FnOnce(&str)) -> usize {
    let before = column.values_slice().len();
    // Writing into a builder does not fail.
    match cell {
        ValueRef::Null => {
            column.append_null();
            return 0;
        }
        ValueRef::Integer(value) => {
            let _ = write!(column, "{value}");
        }
        ValueRef::Real(value) if !value.is_finite() => {
            let _ = write!(column, "\"{value}\"");
        }
        ValueRef::Real(value) if value == 0.0 || (value.abs() < 1e16 && value.abs() > 1e-12) => {
            let _ = write!(column, "{value}");
        }
        ValueRef::Real(value) => {
            let _ = write!(column, "{value:e}");
        }
        ValueRef::Text(text) => {
            let text = String::from_utf8_lossy(text);
            if let std::borrow::Cow::Owned(repaired) = &text {
                not_utf8(repaired);
            }
            let _ = write!(column, "{}", serde_json::Value::from(text));
        }
        ValueRef::Blob(bytes) => {
            let _ = column.write_char('"');
            for byte in bytes {
                let _ = write!(column, "{byte:02x}");
            }
            let _ = column.write_char('"');
        }
    }
    column.append_value("");
    column.values_slice().len() - before
}

/// The table to read: the one that was asked for, or the only one.
fn table(source: &Source, database: &Connection, from: Option<&str>) -> Result<String, ImportError> {
    let failed = |error: rusqlite::Error| damaged(source, "SQLite".to_owned(), error);
    let mut statement = database
        .prepare("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")
        .map_err(failed)?;
    let names = statement.query_map([], |row| row.get::<_, String>(0)).map_err(failed)?;
    let names: Vec<String> = names.collect::<Result<_, _>>().map_err(failed)?;
    let refused =
        |what: String, hint: Option<String>| Err(ImportError::Unusable { path: source.path().to_owned(), what, hint });
    match (from, names.as_slice()) {
        (_, []) => refused("the database holds no table".to_owned(), None),
        (Some(from), names) if names.iter().any(|name| name == from) => Ok(from.to_owned()),
        (Some(from), names) => {
            let near = suggest::nearest(from, names.iter().map(String::as_str));
            let what = format!("no table `{from}`; there are {}", list(names.iter().map(String::as_str)));
            refused(what, near.map(|near| format!("--option table.from={near}")))
        }
        (None, [only]) => Ok(only.clone()),
        (None, [first, ..]) => refused(
            format!("which table holds the rows? There are {}", list(names.iter().map(String::as_str))),
            Some(format!("--option table.from={first}")),
        ),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `file:…?immutable=1`, with the characters escaped that mean something in a URI.
fn uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for char in path.to_string_lossy().chars() {
        match char {
            '?' => uri.push_str("%3f"),
            '#' => uri.push_str("%23"),
            '%' => uri.push_str("%25"),
            other => uri.push(other),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_json() {
        let mut column = StringBuilder::new();
        let mut repaired = Vec::new();
        for cell in [
            ValueRef::Integer(-5),
            ValueRef::Real(0.1),
            ValueRef::Real(1e300),
            ValueRef::Real(f64::INFINITY),
            ValueRef::Text(b"a \"b\""),
            ValueRef::Text(b"\xff"),
            ValueRef::Blob(b"\x01\xab"),
        ] {
            write_cell(cell, &mut column, |text| repaired.push(text.to_owned()));
        }
        assert_eq!(write_cell(ValueRef::Null, &mut column, |_| {}), 0);
        let column = column.finish();
        let cells: Vec<Option<&str>> = column.iter().collect();
        let expected = ["-5", "0.1", "1e300", "\"inf\"", "\"a \\\"b\\\"\"", "\"\u{fffd}\"", "\"01ab\""];
        assert_eq!(cells, expected.into_iter().map(Some).chain([None]).collect::<Vec<_>>());
        assert_eq!(repaired, ["\u{fffd}"]);
    }

    #[test]
    fn paths_survive_as_uris() {
        assert_eq!(uri(Path::new("/a b/50%?#.db")), "file:/a b/50%25%3f%23.db?immutable=1");
    }
}
