//! `tq tables [NAME]`: the tables that every session has, whatever was opened. `--markdown` writes the same as the page
//! `docs/tables.md`, with the words of `import_stats`.

use std::fmt::Write;

use tq_engine::session::views;
use tq_engine::tables::{Column, ColumnType, TABLES, Table};
use tq_engine::trace::findings::{self, GROUPS};

use crate::args::DocsArgs;
use crate::errors::{Failure, unknown_name};
use crate::output::print;
use crate::terminal;
use crate::text::words::{listed, wrapped};

pub(crate) fn run(args: &DocsArgs) -> Result<(), Failure> {
    match &args.name {
        None if args.markdown => print(&book()),
        None => print(&list()),
        Some(name) => match page(name) {
            Some(page) => print(&page),
            None => {
                let views: Vec<String> = views().map(|(name, _)| name).collect();
                let names = TABLES.iter().map(|table| table.name).chain(views.iter().map(String::as_str));
                Err(unknown_name("table", name, names, "tq tables"))
            }
        },
    }
}

fn list() -> String {
    let tables = TABLES.iter().map(|table| (table.name.to_owned(), table.description.to_owned()));
    let views = views().map(|(name, view)| (name, format!("(view) {}", view.description)));
    let entries: Vec<(String, String)> = tables.chain(views).collect();
    format!(
        "Tables of every session:\n{}`tq tables NAME` lists the columns of one.\n",
        listed(&entries, terminal::width())
    )
}

/// The documentation of a table or view of every session.
pub(crate) fn page(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    let (description, columns): (&str, Vec<(String, String)>) =
        if let Some(table) = TABLES.iter().find(|table| table.name == name) {
            let column =
                |column: &Column| (column.name.to_owned(), format!("{} ({})", column.description, type_of(column)));
            (table.description, table.columns.iter().map(column).collect())
        } else {
            let (_, view) = views().find(|(known, _)| *known == name)?;
            let columns = view.columns.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            (view.description, columns.collect())
        };
    let heading = wrapped(&format!("{name}: {description}"), terminal::width().unwrap_or(100)).join("\n");
    let further = if name == Table::ImportStats.name() { WORDS } else { "" };
    Some(format!("{heading}\n\n{}{further}", listed(&columns, terminal::width())))
}

/// Where the words of `import_stats.what` are explained.
const WORDS: &str =
    "The table `docs.findings` says what each word of `what` means: SELECT what, meaning FROM docs.findings\n";

fn type_of(column: &Column) -> String {
    let ticks = if column.column_type == ColumnType::Time { ", ticks" } else { "" };
    format!("{}{ticks}", column.column_type.sql_name())
}

/// `docs/tables.md`: every table and view with its columns, and every word that `import_stats` can say.
fn book() -> String {
    let mut text = String::from(
        "# Tables\n\nWritten by `tq tables --markdown`; `tq tables NAME` shows one, and the schema `docs` holds the same as tables. \
         Every session has all of them, whatever was opened.\n",
    );
    // Writing into text does not fail.
    for table in &TABLES {
        let _ =
            write!(text, "\n## {}\n\n{}\n\n| column | type | |\n| --- | --- | --- |\n", table.name, table.description);
        for column in table.columns {
            let _ = writeln!(text, "| `{}` | {} | {} |", column.name, type_of(column), cell(column.description));
        }
    }
    text.push_str("\n# Views\n");
    for (view, spec) in views() {
        let _ = write!(text, "\n## {view}\n\n{}\n\n| column | |\n| --- | --- |\n", spec.description);
        for (name, description) in spec.columns {
            let _ = writeln!(text, "| `{name}` | {} |", cell(description));
        }
    }
    text.push_str(
        "\n# What import_stats says\n\nA word of `what` always has the same severity and stage. `lost`: something of the recording is not \
         in the tables. `repaired`: it was put right as the example says. `info`: the answer is what the trace says. The same list is the \
         table `docs.findings`:\n\n```sql\nSELECT s.what, s.count, s.example, f.meaning FROM import_stats AS s JOIN docs.findings AS f \
         ON f.what = s.what\n```\n",
    );
    for group in GROUPS {
        let heading = match group.formats {
            findings::ANY => "Any format",
            findings::SEVERAL => "Several formats",
            format => format,
        };
        let _ = write!(text, "\n## Words: {heading}\n\n| `what` | severity | stage | |\n| --- | --- | --- | --- |\n");
        for finding in group.findings {
            let (what, severity, stage) = (finding.what, finding.severity, finding.stage);
            let _ = writeln!(text, "| `{what}` | {severity} | {stage} | {} |", cell(finding.meaning()));
        }
    }
    text
}

/// Text within a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
