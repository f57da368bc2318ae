//! Views: `STORE/views.sql`, by which DuckDB sees exactly the rows of the last commit.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use super::columns::{Told, told};
use super::layout::{failed, sync_folder};
use super::log::{State, by};
use super::write::stored_tables;
use crate::error::ImportError;
use crate::remote::{self, Folder};
use crate::tables::{ColumnType, Table};
use crate::trace::Deadline;

/// The file, in the store.
const NAME: &str = "views.sql";
/// How files begin that become [`NAME`] when they are whole; their writers hold a lock on them.
pub(super) const UNFINISHED: &str = ".views-";
/// A larger text is written by `gc` only.
const LARGEST: usize = 1 << 20;

/// Writes the views of a state, if they are small or `always`.
pub(super) fn write(root: &Path, state: &State, always: bool) -> Result<(), ImportError> {
    let is_behind = remote::is_url(root);
    let files = if is_behind {
        format!("{}/runs", root.display().to_string().trim_end_matches('/'))
    } else {
        "runs".to_owned()
    };
    let text = text(state, &files);
    if text.len() > LARGEST && !always {
        return Ok(());
    }
    if is_behind {
        return Folder::of(root, Deadline::default())?.put(NAME, text.into_bytes());
    }
    let path = root.join(NAME);
    let written = tempfile::Builder::new().prefix(UNFINISHED).make_in(root, |path| std::fs::File::create_new(path));
    let written = written.and_then(|mut file| {
        file.as_file().lock()?;
        std::io::Write::write_all(file.as_file_mut(), text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        sync_folder(root)
    });
    written.map_err(|error| failed(&path, "write the views for DuckDB", &error))
}

fn text(state: &State, files: &str) -> String {
    let mut text = format!(
        "-- commit {} of this store, written by {}. In its folder: duckdb -init views.sql\n\
         -- `task`, `message` and what refers to them count in their run: join on run, too. Times are in the run's tick (see runs).\n",
        state.number,
        by()
    );
    let runs = state.runs.iter().enumerate().map(|(number, entry)| {
        let run = &entry.run;
        let tick = run.info.tick.as_deref().unwrap_or("ns");
        let [name, format, source] = [&run.name, &run.format, &run.source].map(|text| quoted(text));
        format!("({name}, {number}, {format}, {source}, {})", quoted(tick))
    });
    let runs: Vec<String> = runs.collect();
    let columns = "runs(run, run_number, format, source, tick)";
    match runs.is_empty() {
        true => text.push_str(
            "CREATE OR REPLACE VIEW runs AS SELECT NULL::VARCHAR AS run, NULL::BIGINT AS run_number, NULL::VARCHAR AS format, \
             NULL::VARCHAR AS source, NULL::VARCHAR AS tick WHERE false;\n",
        ),
        false => {
            let _ = writeln!(text, "CREATE OR REPLACE VIEW runs AS SELECT * FROM (VALUES\n{}) AS {columns};", runs.join(",\n"));
        }
    }
    for table in stored_tables() {
        let _ = writeln!(text, "CREATE OR REPLACE VIEW {} AS {};", table.name(), select(state, table, files));
    }
    text
}

/// The rows of a table: of some files all, of others those of the runs that are still there.
fn select(state: &State, table: Table, files: &str) -> String {
    let mut runs_of: BTreeMap<&str, (usize, usize, BTreeSet<&str>)> = BTreeMap::new();
    for entry in &state.runs {
        for (file, part) in entry.parts(table) {
            let (groups, used, runs) = runs_of.entry(&file.path).or_default();
            *groups = file.groups.len();
            *used += part.groups;
            runs.insert(&entry.run.name);
        }
    }
    let columns: Vec<String> = (table.spec().columns.iter())
        .map(|column| told(table, column.name).map_or_else(|| quoted_name(column.name), Told::sql))
        .collect();
    let columns = columns.join(", ");
    let path = |path: &str| quoted(&format!("{files}/{path}"));
    let (whole, cut): (Vec<_>, Vec<_>) = runs_of.iter().partition(|(_, (groups, used, _))| groups == used);
    let mut selects = Vec::new();
    if !whole.is_empty() {
        let paths: Vec<String> = whole.iter().map(|(file, _)| path(file)).collect();
        selects.push(format!("SELECT {columns} FROM read_parquet([{}])", paths.join(", ")));
    }
    for (file, (_, _, runs)) in cut {
        let names: Vec<String> = runs.iter().map(|run| quoted(run)).collect();
        selects.push(format!(
            "SELECT {columns} FROM read_parquet([{}]) WHERE run IN ({})",
            path(file),
            names.join(", ")
        ));
    }
    if selects.is_empty() {
        let column = |column: &crate::tables::Column| {
            let sql_type = match column.column_type {
                ColumnType::Word | ColumnType::Text => "VARCHAR",
                ColumnType::Double => "DOUBLE",
                _ => "BIGINT",
            };
            format!("NULL::{sql_type} AS {}", quoted_name(column.name))
        };
        let columns: Vec<String> = table.spec().columns.iter().map(column).collect();
        selects.push(format!("SELECT {} WHERE false", columns.join(", ")));
    }
    selects.join(" UNION ALL ")
}

fn quoted(text: &str) -> String {
    // A NUL ends a text for some readers; no run has one.
    format!("'{}'", text.replace('\'', "''").replace('\0', ""))
}

fn quoted_name(text: &str) -> String {
    format!("\"{text}\"")
}
