//! SQLite: one table, view or SELECT of a database that is only read.
//!
//! [`crate::importers::sqlite`] opens it without a lock and without a change. Each cell has its own type in SQLite; cells go
//! on as JSON text, floats as the shortest decimal that reads back as themselves, blobs in hexadecimal.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringBuilder};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::{Batch, CellKind, Header, Places, ReadOptions, Sink, damaged};
use crate::error::ImportError;
use crate::importers::sqlite::{Database, quoted};
use crate::importers::table::mapping::list;
use crate::nearest::nearest;
use crate::trace::{ROWS_PER_BATCH, Source, Stats, findings};

/// The text of a batch, and with it the batch, ends beyond this.
const BATCH_BYTES: usize = 8 << 20;

pub(super) fn read(source: &Source, options: &ReadOptions<'_>, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let file = Database::of(source, "table", sink.stats())?;
    let failed = |error: rusqlite::Error| file.damaged("SQLite".to_owned(), &error);
    let database = file.connect()?;
    let select = match options.query {
        Some(query) => query.to_owned(),
        None => format!("SELECT * FROM {}", quoted(&table(source, &file, &database, options.from)?)),
    };
    let refused = |what: String| ImportError::Unusable {
        path: source.path().to_owned(),
        what: format!("the database refuses `{select}`: {what}"),
        hint: None,
    };
    // A PRAGMA takes effect when it is prepared.
    if !is_select(&select) {
        return Err(refused("only a SELECT is run".to_owned()));
    }
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
    let (mut first, mut count, mut bytes) = (1, 0, 0);
    loop {
        let row = rows.next().map_err(|error| file.damaged(format!("row {}", first + count as u64), &error))?;
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
                sink.stats()
                    .note(findings::NOT_UTF8, 1, || format!("{} row {place}: `{text}`", source.path().display()));
            });
        }
        count += 1;
    }
}

/// Whether a statement begins as one that asks, comments apart.
fn is_select(mut text: &str) -> bool {
    loop {
        text = text.trim_start();
        let behind = match (text.strip_prefix("--"), text.strip_prefix("/*")) {
            (Some(comment), _) => comment.split_once('\n'),
            (None, Some(comment)) => comment.split_once("*/"),
            (None, None) => break,
        };
        let Some((_, rest)) = behind else { return false };
        text = rest;
    }
    let word = text.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    ["SELECT", "WITH", "VALUES"].iter().any(|known| word.eq_ignore_ascii_case(known))
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

/// The columns of the database's only table; `None` when there are several, or it cannot be read.
pub(super) fn columns_of_only_table(source: &Source) -> Option<Vec<String>> {
    let file = Database::of(source, "table", &mut Stats::default()).ok()?;
    let database = file.connect().ok()?;
    match file.tables(&database).ok()?.as_slice() {
        [only] => file.columns(&database, only).ok(),
        _ => None,
    }
}

/// The table to read: the one that was asked for, or the only one.
fn table(source: &Source, file: &Database, database: &Connection, from: Option<&str>) -> Result<String, ImportError> {
    let names = file.tables(database)?;
    let refused =
        |what: String, hint: Option<String>| Err(ImportError::Unusable { path: source.path().to_owned(), what, hint });
    match (from, names.as_slice()) {
        (_, []) => refused("the database holds no table".to_owned(), None),
        (Some(from), names) if names.iter().any(|name| name == from) => Ok(from.to_owned()),
        (Some(from), names) => {
            let near = nearest(from, names.iter().map(String::as_str));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_questions_are_asked() {
        for select in ["SELECT 1", "select*from a", "-- a\n /* b */ WITH a AS (SELECT 1) SELECT 1", "VALUES(1)"] {
            assert!(is_select(select), "{select}");
        }
        for other in [
            "PRAGMA temp_store_directory='/tmp'",
            "ATTACH 'x' AS y",
            "/* SELECT */ PRAGMA x",
            "-- SELECT",
            "",
            "(SELECT 1)",
        ] {
            assert!(!is_select(other), "{other}");
        }
    }

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
}
