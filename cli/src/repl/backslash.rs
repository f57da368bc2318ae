//! The commands of the prompt that are no SQL.

use tq_engine::sql::nearest;

use crate::ask::{Asker, Params};
use crate::commands::{listed, tables};
use crate::errors::{Failure, Problem};
use crate::open::unknown_name;
use crate::output::cells::Cells;
use crate::talk::terminal_width;

/// What `\?` prints.
pub(super) const HELP: &str = "\
  \\d [TABLE]      the tables, or the columns of one
  \\f [FUNCTION]   the functions, or the documentation of one
  \\timing         show how long each statement takes, or stop showing it
  \\q              leave (so does Ctrl-D)
  \\?              this

SQL ends with `;` and may take several lines; Tab completes names, Up brings back what you typed.
Ctrl-C ends a query and keeps the prompt. Try:
  SELECT name, count(*) AS tasks, sum(duration) AS total FROM tasks GROUP BY name ORDER BY total DESC LIMIT 10;
";

const COMMANDS: [&str; 5] = ["\\d", "\\f", "\\timing", "\\q", "\\?"];

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Backslash {
    Tables(Option<String>),
    Functions(Option<String>),
    Timing,
    Quit,
    Help,
}

impl Backslash {
    pub(super) fn parse(text: &str) -> Result<Backslash, Failure> {
        // A `;` out of habit is no part of a name.
        let mut words = text.trim_end_matches(';').split_whitespace();
        let command = words.next().unwrap_or_default();
        let argument = words.next().map(str::to_owned);
        Ok(match command {
            "\\d" | "\\dt" => Backslash::Tables(argument),
            "\\f" | "\\df" => Backslash::Functions(argument),
            "\\timing" => Backslash::Timing,
            "\\q" | "\\quit" => Backslash::Quit,
            "\\?" | "\\h" | "\\help" => Backslash::Help,
            other => {
                let near = nearest(other, COMMANDS).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                return Err(Problem::new(format!("no command `{other}`{near}"))
                    .hint("`\\?` lists the commands")
                    .into());
            }
        })
    }
}

/// `\d`: all tables with their rows and meaning. `\d NAME`: its columns.
pub(super) fn tables(asker: &mut Asker, name: Option<&str>) -> Result<String, Failure> {
    let names = asker.collect(
        "SELECT t.table_name, d.description \
         FROM information_schema.tables t LEFT JOIN docs.tables d ON d.name = t.table_name \
         WHERE t.table_schema = 'main' ORDER BY d.name IS NULL, t.table_name",
        &Params::new(),
    )?;
    let cells = Cells::new(&names)?;
    let cell = |column, row| {
        let mut text = String::new();
        cells.exact(column, row, &mut text).map(|()| text)
    };
    let mut found = Vec::new();
    for row in 0..names.num_rows() {
        found.push((cell(0, row)?, cell(1, row)?));
    }
    let Some(name) = name else {
        let mut entries = Vec::new();
        for (table, description) in found {
            let rows = count(asker, &table)?;
            entries.push((table, format!("{rows:>10}  {description}").trim_end().to_owned()));
        }
        return Ok(format!("Tables, with their rows:\n{}", listed(&entries, terminal_width())));
    };
    let name = name.to_lowercase();
    if let Some(page) = tables::page(&name) {
        return Ok(page);
    }
    if !found.iter().any(|(table, _)| *table == name) {
        return Err(unknown_name("table", &name, found.iter().map(|(table, _)| table.as_str()), "\\d"));
    }
    let columns = asker.collect(&format!("DESCRIBE {}", quoted(&name)), &Params::new())?;
    let cells = Cells::new(&columns)?;
    let mut entries = Vec::new();
    for row in 0..columns.num_rows() {
        let (mut column, mut data_type) = (String::new(), String::new());
        cells.exact(0, row, &mut column)?;
        cells.exact(1, row, &mut data_type)?;
        entries.push((column, data_type));
    }
    Ok(format!("{name}\n\n{}", listed(&entries, terminal_width())))
}

fn count(asker: &mut Asker, table: &str) -> Result<String, Failure> {
    let rows = asker.collect(&format!("SELECT count(*) FROM {}", quoted(table)), &Params::new())?;
    let mut text = String::new();
    Cells::new(&rows)?.exact(0, 0, &mut text)?;
    Ok(text)
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_take_a_name_or_none() {
        let parsed = |text| Backslash::parse(text).ok();
        assert_eq!(parsed("\\d"), Some(Backslash::Tables(None)));
        assert_eq!(parsed("\\d tasks;"), Some(Backslash::Tables(Some("tasks".to_owned()))));
        assert_eq!(parsed("\\f  busy "), Some(Backslash::Functions(Some("busy".to_owned()))));
        assert_eq!(parsed("\\frob"), None);
    }
}
