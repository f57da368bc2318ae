//! `tq functions [NAME]` and `\f [NAME]`: the functions and their documentation, with the answers of the examples
//! computed on the spot. `--markdown` writes the same as the page `docs/functions.md`.

use std::fmt::Write;

use crate::args::DocsArgs;
use crate::connection::{Connection, Params};
use crate::errors::{Failure, unknown_name};
use crate::functions::{Function, Kind, Origin, all};
use crate::output::{Look, markdown, print, table};
use crate::terminal;
use crate::text::words::{listed, wrapped};

pub(crate) fn run(args: &DocsArgs) -> Result<(), Failure> {
    let mut connection = Connection::empty()?;
    if args.markdown {
        return print(&book(&mut connection)?);
    }
    print(&text(&mut connection, args.name.as_deref())?)
}

/// The list, or the page of one function.
pub(crate) fn text(connection: &mut Connection, name: Option<&str>) -> Result<String, Failure> {
    let functions = all(connection.session());
    let Some(name) = name else { return Ok(list(&functions)) };
    let wanted = name.to_lowercase();
    let is_it = |function: &&Function| function.name == wanted || function.aliases.contains(&wanted);
    let pages = functions.iter().filter(is_it).map(|function| page(connection, function));
    let pages = pages.collect::<Result<Vec<String>, Failure>>()?;
    if pages.is_empty() {
        let names: Vec<&str> = functions.iter().map(|function| function.name.as_str()).collect();
        return Err(unknown_name("function", name, names, "tq functions"));
    }
    Ok(pages.join("\n"))
}

fn list(functions: &[Function]) -> String {
    let mut text = String::from("Functions for traces:\n");
    let ours: Vec<(String, String)> = functions
        .iter()
        .filter(|function| is_ours(function))
        .map(|function| (function.syntax.lines().next().unwrap_or_default().to_owned(), function.summary()))
        .collect();
    text.push_str(&listed(&ours, terminal::width()));
    let width = terminal::width().unwrap_or(100);
    for (origin, title) in [(Origin::Json, "For JSON (`args`)"), (Origin::DataFusion, "Of SQL and DataFusion")] {
        let mut names: Vec<&str> = functions
            .iter()
            .filter(|function| function.origin == origin)
            .map(|function| function.name.as_str())
            .collect();
        names.dedup();
        if !names.is_empty() {
            let _ =
                writeln!(text, "\n{title}:\n  {}", wrapped(&names.join(", "), width.saturating_sub(2)).join("\n  "));
        }
    }
    text.push_str("\n`tq functions NAME` describes one.\n");
    text
}

fn is_ours(function: &Function) -> bool {
    function.origin == Origin::Tq && function.is_for_people()
}

fn page(connection: &mut Connection, function: &Function) -> Result<String, Failure> {
    let width = terminal::width().unwrap_or(100);
    let mut text = format!("{}  ({} function)\n", function.syntax, function.kind.word());
    if !function.aliases.is_empty() {
        let _ = writeln!(text, "also: {}", function.aliases.join(", "));
    }
    let description = if function.description.is_empty() { "It has no documentation." } else { &function.description };
    let _ = writeln!(text, "\n{}", wrapped(description, width).join("\n"));
    if !function.arguments.is_empty() {
        text.push_str("\nArguments\n");
        text.push_str(&listed(&function.arguments, Some(width)));
    }
    let Some(example) = &function.example else { return Ok(text) };
    let _ = writeln!(text, "\nExample\n  {}", example.trim().lines().collect::<Vec<_>>().join("\n  "));
    // DataFusion's examples come with answers of their own, and need tables that are not there.
    if function.origin == Origin::Tq {
        let answer = connection.collect(example, &Params::new())?;
        let look = Look { width: Some(width.saturating_sub(2)), ..Look::of_stdout(connection.session().tick()) };
        let answer = table::text(&answer, look)?;
        let _ = writeln!(text, "\n  {}", answer.trim_end().replace('\n', "\n  "));
    }
    Ok(text)
}

/// `docs/functions.md`: every function of ours, by kind.
fn book(connection: &mut Connection) -> Result<String, Failure> {
    let mut text = String::from(
        "# Functions\n\nWritten by `tq functions --markdown`; `tq functions NAME` shows one, `\\f NAME` does at the prompt. \
         Times are ticks (`SHOW tq.time_unit`), spans are half-open `[start, finish)`. Every example stands on its own.\n",
    );
    let functions = all(connection.session());
    for (kind, title, how) in [
        (
            Kind::Relation,
            "Relations",
            "They are used in FROM, take relations and return one, whose first column is `run`. An option is a constant \
             or `(SELECT …)` of one value.",
        ),
        (Kind::Aggregate, "Aggregates", "One value per group; `FILTER`, `DISTINCT` and windows work as for `sum`."),
        (Kind::Window, "Windows", "One value per row, with `OVER`."),
        (Kind::Scalar, "Scalars", "One value per row."),
    ] {
        let _ = write!(text, "\n## {title}\n\n{how}\n");
        for function in functions.iter().filter(|function| is_ours(function) && function.kind == kind) {
            let _ = write!(text, "\n### {}\n\n```text\n{}\n```\n\n", function.name, function.syntax);
            let _ = writeln!(text, "{}", function.description.trim_end());
            if !function.arguments.is_empty() {
                text.push('\n');
            }
            for (name, meaning) in &function.arguments {
                let _ = writeln!(text, "- `{name}`: {meaning}");
            }
            if let Some(example) = &function.example {
                let answer = connection.collect(example, &Params::new())?;
                let answer = markdown::table(&answer, connection.session().tick())?;
                let _ = write!(text, "\n```sql\n{}\n```\n\n{answer}", example.trim());
            }
        }
    }
    Ok(text)
}
