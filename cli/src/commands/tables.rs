//! `tq tables [NAME]`: the tables that every session has, whatever was opened.

use crate::args::NameArgs;
use crate::commands::{listed, print, wrapped};
use crate::errors::Failure;
use crate::open::unknown_name;
use crate::talk::terminal_width;
use tq_engine::session::views;
use tq_engine::tables::{ColumnType, TABLES};

pub(crate) fn run(args: &NameArgs) -> Result<(), Failure> {
    match &args.name {
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
        listed(&entries, terminal_width())
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
            let (_, view) = views().find(|(known, _)| *known == name)?;
            let columns = view.columns.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            (view.description, columns.collect())
        };
    let heading = wrapped(&format!("{name}: {description}"), terminal_width().unwrap_or(100)).join("\n");
    Some(format!("{heading}\n\n{}", listed(&columns, terminal_width())))
}
