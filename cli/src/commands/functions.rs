//! `tq functions [NAME]` and `\f [NAME]`: the functions and their documentation.

use std::fmt::Write;

use tq_engine::session::Session;

use crate::args::NameArgs;
use crate::commands::{listed, print, wrapped};
use crate::errors::Failure;
use crate::functions::{Function, Origin, all};
use crate::open::{self, unknown_name};
use crate::talk::terminal_width;

pub(crate) fn run(args: &NameArgs) -> Result<(), Failure> {
    print(&text(&open::empty()?, args.name.as_deref())?)
}

/// The list, or the page of one function.
pub(crate) fn text(session: &Session, name: Option<&str>) -> Result<String, Failure> {
    let functions = all(session);
    let Some(name) = name else { return Ok(list(&functions)) };
    let wanted = name.to_lowercase();
    let is_it = |function: &&Function| function.name == wanted || function.aliases.contains(&wanted);
    let pages: Vec<String> = functions.iter().filter(is_it).map(page).collect();
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
        // What the operators do has names too, but nobody types them.
        .filter(|function| function.origin == Origin::Tq && !function.name.starts_with("checked_"))
        .map(|function| (function.syntax.lines().next().unwrap_or_default().to_owned(), function.summary()))
        .collect();
    text.push_str(&listed(&ours, terminal_width()));
    let width = terminal_width().unwrap_or(100);
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

fn page(function: &Function) -> String {
    let width = terminal_width().unwrap_or(100);
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
    if let Some(example) = &function.example {
        let _ = writeln!(text, "\nExample\n  {}", example.trim().lines().collect::<Vec<_>>().join("\n  "));
    }
    text
}
