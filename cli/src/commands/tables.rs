//! `tq tables [NAME]`: the tables that every session has, whatever was opened.

use crate::args::NameArgs;
use crate::errors::{Failure, unknown_name};
use crate::output::print;
use crate::terminal;
use crate::text::words::{listed, wrapped};
use tq_engine::tables::{ColumnType, TABLES, VIEWS};

pub(crate) fn run(args: &NameArgs) -> Result<(), Failure> {
    match &args.name {
        None => print(&list()),
        Some(name) => match page(name) {
            Some(page) => print(&page),
            None => {
                let names = TABLES.iter().map(|table| table.name).chain(VIEWS.iter().map(|view| view.name));
                Err(unknown_name("table", name, names, "tq tables"))
            }
        },
    }
}

fn list() -> String {
    let tables = TABLES.iter().map(|table| (table.name.to_owned(), table.description.to_owned()));
    let views = VIEWS.iter().map(|view| (view.name.to_owned(), format!("(view) {}", view.description)));
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
            let column = |column: &tq_engine::tables::Column| {
                let ticks = if column.column_type == ColumnType::Time { ", ticks" } else { "" };
                (column.name.to_owned(), format!("{} ({}{ticks})", column.description, column.column_type.sql_name()))
            };
            (table.description, table.columns.iter().map(column).collect())
        } else {
            let view = VIEWS.iter().find(|view| view.name == name)?;
            let columns = view.columns.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            (view.description, columns.collect())
        };
    let heading = wrapped(&format!("{name}: {description}"), terminal::width().unwrap_or(100)).join("\n");
    Some(format!("{heading}\n\n{}", listed(&columns, terminal::width())))
}
