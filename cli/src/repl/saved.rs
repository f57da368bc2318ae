//! What `\d` and `\run` show: the tables of the session, the saved queries.

use std::collections::BTreeMap;

use tq_engine::Session;
use tq_engine::importers::importers;
use tq_engine::queries::Library;

use crate::commands::tables as documented;
use crate::connection::{Connection, Params};
use crate::errors::{Failure, unknown_name};
use crate::output::cells::Cells;
use crate::terminal;
use crate::text::words::{listed, wrapped};

/// The saved queries that the open traces can answer and that are not about another format, by topic; all where none is open.
pub(super) fn list(connection: &mut Connection, library: &Library) -> Result<String, Failure> {
    let mut topics: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let is_open = !connection.session().runs().is_empty();
    let mut left_out = 0;
    for name in library.names() {
        let (topic, title) = match library.find(name) {
            Ok(Some(_)) if is_open && is_of_another_format(name, connection.session()) => {
                left_out += 1;
                continue;
            }
            Ok(Some(query)) if is_open && !connection.unmet(&query)?.is_empty() => {
                left_out += 1;
                continue;
            }
            Ok(Some(query)) => (query.header.topic.clone(), query.title().to_owned()),
            Ok(None) => continue,
            Err(error) => ("broken".to_owned(), error.to_string()),
        };
        topics.entry(topic).or_default().push((name.to_owned(), title));
    }
    let topic = |(topic, queries): (&String, &Vec<(String, String)>)| {
        let topic = if topic.is_empty() { "other" } else { topic };
        format!("{topic}\n{}", listed(queries, terminal::width()))
    };
    let mut end = "`\\run NAME` answers one.".to_owned();
    if left_out > 0 {
        let what = if left_out == 1 { "One more is" } else { "Others are" };
        end.push_str(&format!(
            " {what} about what these traces do not hold, or about other formats ({left_out}); `tq queries` lists all."
        ));
    }
    let end = wrapped(&end, terminal::width().unwrap_or(usize::MAX)).join("\n");
    Ok(format!("{}\n{end}\n", topics.iter().map(topic).collect::<Vec<_>>().join("\n")))
}

/// Whether a query is called after a format that none of the open traces has: `parsec-tiles` of a PyTorch trace.
fn is_of_another_format(query: &str, session: &Session) -> bool {
    importers().iter().map(|importer| importer.doc().name).any(|format| {
        query.strip_prefix(format).is_some_and(|rest| rest.starts_with('-'))
            && session.runs().iter().all(|run| run.format != format)
    })
}

/// The names of the views and tables that statements made.
pub(super) fn made_here(connection: &mut Connection) -> Result<Vec<String>, Failure> {
    let made = connection.collect(
        "SELECT table_name FROM information_schema.tables \
         WHERE table_schema = 'main' AND table_name NOT IN (SELECT name FROM docs.tables) ORDER BY 1",
        &Params::new(),
    )?;
    let cells = Cells::new(&made)?;
    (0..made.num_rows()).map(|row| cell(&cells, 0, row)).collect()
}

fn cell(cells: &Cells, column: usize, row: usize) -> Result<String, Failure> {
    let mut text = String::new();
    cells.exact(column, row, &mut text)?;
    Ok(text)
}

/// `\d`: all tables with their rows, all views, and what they are in a few words. `\d NAME`: its columns.
pub(super) fn tables(connection: &mut Connection, name: Option<&str>) -> Result<String, Failure> {
    let names = connection.collect(
        "SELECT t.table_name, d.description, t.table_type = 'VIEW' \
         FROM information_schema.tables t LEFT JOIN docs.tables d ON d.name = t.table_name \
         WHERE t.table_schema = 'main' ORDER BY d.name IS NULL, t.table_name",
        &Params::new(),
    )?;
    let cells = Cells::new(&names)?;
    let mut found = Vec::new();
    for row in 0..names.num_rows() {
        let [name, description, is_view] = [0, 1, 2].map(|column| cell(&cells, column, row));
        found.push((name?, description?, is_view? == "true"));
    }
    let Some(name) = name else {
        let (views, tables): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, _, is_view)| *is_view);
        let mut counted = Vec::new();
        for (table, description, _) in tables {
            let rows = count(connection, &table)?.to_string();
            counted.push((table, rows, first_sentence(&description, &[". "])));
        }
        let names = counted.iter().map(|(table, ..)| table.chars().count()).max().unwrap_or(0);
        let digits = counted.iter().map(|(_, rows, _)| rows.len()).max().unwrap_or(0);
        let entry = |(table, rows, description)| (format!("{table:<names$}  {rows:>digits$}"), description);
        let tables: Vec<(String, String)> = counted.into_iter().map(entry).collect();
        // The rows of a view can take long to count.
        let entry =
            |(view, description, _): (String, String, bool)| (view, first_sentence(&description, &[". ", ": "]));
        let views: Vec<(String, String)> = views.into_iter().map(entry).collect();
        let width = terminal::width();
        return Ok(format!(
            "Tables, with their rows:\n{}Views of them (`\\d NAME` says more):\n{}",
            listed(&tables, width),
            listed(&views, width)
        ));
    };
    if let Some(page) = documented::page(name) {
        return Ok(page);
    }
    // As it would stand in FROM, `slice` of Perfetto too; or a name with blanks or capitals, without its quotes.
    let spellings = [name.to_owned(), quoted(name)];
    let described = spellings.iter().find_map(|spelling| {
        match connection.collect(&format!("DESCRIBE {spelling}"), &Params::new()) {
            Err(Failure::Told(_)) => None,
            columns => Some(columns),
        }
    });
    let Some(columns) = described else {
        return Err(unknown_name("table", name, found.iter().map(|(table, ..)| table.as_str()), "\\d"));
    };
    let columns = columns?;
    let cells = Cells::new(&columns)?;
    let mut entries = Vec::new();
    for row in 0..columns.num_rows() {
        let (mut column, mut data_type) = (String::new(), String::new());
        cells.exact(0, row, &mut column)?;
        cells.exact(1, row, &mut data_type)?;
        entries.push((column, data_type));
    }
    Ok(format!("{name}\n\n{}", listed(&entries, terminal::width())))
}

/// The text up to the first of some ends of a sentence, with a full stop.
fn first_sentence(text: &str, ends: &[&str]) -> String {
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    end.map_or_else(|| text.to_owned(), |end| format!("{}.", &text[..end]))
}

fn count(connection: &mut Connection, table: &str) -> Result<String, Failure> {
    let rows = connection.collect(&format!("SELECT count(*) FROM {}", quoted(table)), &Params::new())?;
    let mut text = String::new();
    Cells::new(&rows)?.exact(0, 0, &mut text)?;
    Ok(text)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
