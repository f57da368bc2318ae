//! `tq formats [NAME]`: the trace formats and their options, from the importers' own documentation. `--markdown` writes
//! the same as the page `docs/formats.md`.

use std::fmt::Write;

use tq_engine::importers::{FormatDoc, importers};

use crate::args::DocsArgs;
use crate::errors::{Failure, Problem, unknown_name};
use crate::output::print;
use crate::terminal;
use crate::text::words::{listed, wrapped};

pub(crate) fn run(args: &DocsArgs) -> Result<(), Failure> {
    let formats: Vec<&FormatDoc> = importers().iter().map(|importer| importer.doc()).collect();
    if args.markdown {
        return print(&book(&formats));
    }
    let Some(name) = &args.name else {
        let entries: Vec<(String, String)> =
            formats.iter().map(|format| (format.name.to_owned(), format.title.to_owned())).collect();
        let mut text = String::from("Formats, recognised by content; `.gz` and `.zst` files are unpacked:\n");
        text.push_str(&listed(&entries, terminal::width()));
        text.push_str("`tq formats NAME` describes one.\n");
        return print(&text);
    };
    match formats.iter().find(|format| format.name == name) {
        Some(format) => print(&describe(format)),
        None => match that_reads(name) {
            Some(format) => Err(Problem::new(format!("no format `{name}`"))
                .hint(format!("`{format}` reads it: `tq formats {format}`"))
                .into()),
            None => Err(unknown_name("format", name, formats.iter().map(|format| format.name), "tq formats")),
        },
    }
}

/// The format that speaks of a tool or kind of file, if one alone does.
pub(crate) fn that_reads(tool: &str) -> Option<&'static str> {
    let tool = tool.to_lowercase();
    let speaks = |text: &str| text.to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| word == tool);
    let all = importers();
    let mut found = all
        .iter()
        .map(|importer| importer.doc())
        .filter(|format| speaks(format.title) || format.dialects.iter().any(|dialect| speaks(dialect)));
    let first = found.next()?;
    found.next().is_none().then_some(first.name)
}

fn describe(format: &FormatDoc) -> String {
    let width = terminal::width().unwrap_or(100);
    let mut text = format!("{}: {}\n", format.name, format.title);
    if !format.dialects.is_empty() {
        text.push_str("\nReads\n");
        for dialect in format.dialects {
            let _ = writeln!(text, "  - {}", wrapped(dialect, width.saturating_sub(4)).join("\n    "));
        }
    }
    for (title, words) in [("Fills", format.fills), ("Does not keep", format.loses)] {
        if !words.is_empty() {
            let _ = writeln!(text, "\n{title}\n  {}", wrapped(words, width.saturating_sub(2)).join("\n  "));
        }
    }
    if !format.options.is_empty() {
        text.push_str("\nOptions (`--option KEY=VALUE`)\n");
        let options: Vec<(String, String)> =
            format.options.iter().map(|option| (option.key.to_owned(), option.description.to_owned())).collect();
        text.push_str(&listed(&options, Some(width)));
    }
    text
}

/// `docs/formats.md`: every format, its dialects, what it fills and what it cannot keep.
fn book(formats: &[&FormatDoc]) -> String {
    let mut text = String::from(
        "# Formats\n\nWritten by `tq formats --markdown`; `tq formats NAME` shows one. A format is recognised by content, never \
         by the file's name; `.gz` and `.zst` files are unpacked on the way. What was skipped, repaired or guessed is in \
         `import_stats` ([its words](tables.md#what-import_stats-says)).\n",
    );
    for format in formats {
        let _ = write!(text, "\n## {}\n\n{}\n", format.name, format.title);
        if !format.dialects.is_empty() {
            text.push_str("\nReads\n\n");
        }
        for dialect in format.dialects {
            let _ = writeln!(text, "- {dialect}");
        }
        for (title, words) in [("Fills", format.fills), ("Does not keep", format.loses)] {
            if !words.is_empty() {
                let _ = writeln!(text, "\n{title}: {words}");
            }
        }
        if !format.options.is_empty() {
            text.push_str("\nOptions (`--option KEY=VALUE`)\n\n");
        }
        for option in format.options {
            let _ = writeln!(text, "- `{}`: {}", option.key, option.description);
        }
    }
    text
}
