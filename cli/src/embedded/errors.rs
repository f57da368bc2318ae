//! Errors and messages as values, with hints that name what a program has instead of options of a command line.

use std::fmt;

use crate::errors::{Failure, Problem};
use crate::host::Said;

/// What did not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Opening the traces.
    Trace,
    /// A question: its text, its values or its answer.
    Query,
    /// It asked for more memory or time than it may have.
    Limit,
    /// So did opening the traces.
    TraceLimit,
    /// It was abandoned.
    Interrupted,
}

/// What is wrong, where, and what to do next.
#[derive(Debug, Clone)]
pub struct Error {
    /// What did not work.
    pub kind: Kind,
    /// What is wrong.
    pub what: String,
    /// The file and line that it stands in, where the SQL came from a file.
    pub place: Option<String>,
    /// The line of SQL, and below it carets.
    pub excerpt: Option<String>,
    /// What to do next.
    pub hints: Vec<String>,
}

/// A warning or a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// `warning` or `note`.
    pub label: &'static str,
    /// What is said.
    pub text: String,
}

impl From<Said> for Message {
    fn from(said: Said) -> Message {
        Message { label: said.label, text: in_a_program(said.message) }
    }
}

impl Error {
    /// Of a kind, with nothing to add.
    pub fn new(kind: Kind, what: impl Into<String>) -> Error {
        Error { kind, what: what.into(), place: None, excerpt: None, hints: Vec::new() }
    }

    pub(super) fn of(kind: Kind, failure: Failure) -> Error {
        match failure {
            Failure::Told(problem) => Error::of_problem(kind, *problem),
            Failure::Interrupted => Error::new(Kind::Interrupted, "it was interrupted"),
            Failure::BrokenPipe | Failure::DoesNotHold | Failure::CouldNotRun => {
                Error::new(kind, "it ended without an answer")
            }
        }
    }

    pub(super) fn of_problem(kind: Kind, problem: Problem) -> Error {
        Error {
            kind: match (problem.is_beyond_limit, kind) {
                (false, kind) => kind,
                (true, Kind::Trace) => Kind::TraceLimit,
                (true, _) => Kind::Limit,
            },
            what: problem.message.trim_end().to_owned(),
            place: problem.place,
            excerpt: problem.excerpt.map(|excerpt| excerpt.lines().join("\n")),
            hints: problem.hints.into_iter().map(in_a_program).collect(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        f.write_str(&self.what)?;
        if let Some(excerpt) = &self.excerpt {
            write!(f, "\n{excerpt}")?;
        }
        self.hints.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}

impl std::error::Error for Error {}

/// What the commands of a terminal are called in a program.
const CALLED: [(&str, &str); 9] = [
    ("`tq functions` lists the functions, `\\f` at the prompt", "`session.functions()` lists the functions"),
    ("`tq query --param ", "`"),
    ("`tq functions NAME`", "`session.functions(\"NAME\")`"),
    ("`tq functions`", "`session.functions()`"),
    ("`tq queries`", "`session.queries()`"),
    ("`tq tables`", "`session.tables()`"),
    ("`--from` and `--to`", "`slice=(begin, end)`"),
    ("; at the prompt, `\\set memory 8GB`", ""),
    ("try `-c 'SELECT * FROM runs'`", "try `SELECT * FROM runs`"),
];

/// Options of a command line whose value is a pair, and the dictionaries of pairs that they are in a program.
const PAIRS: [(&str, &str); 2] = [("option", "options"), ("run-arg", "run_args")];

/// Other options of a command line, and what they are in a program.
const OPTIONS: [(&str, &str); 9] = [
    ("from-format", "from_format"),
    ("memory", "memory"),
    ("max-value", "max_value"),
    ("threads", "threads"),
    ("strict", "strict"),
    ("read-only", "read_only"),
    ("cache", "cache"),
    ("cluster", "cluster"),
    ("run", "runs"),
];

/// A hint of the command line for a program.
pub(super) fn in_a_program(hint: String) -> String {
    const OPTION: &str = "--option ";
    if hint.starts_with(OPTION) {
        return pairs("options", hint.split(OPTION).map(str::trim));
    }
    let hint = CALLED.iter().fold(hint, |hint, (there, here)| hint.replace(there, here));
    // Every second piece stands between backticks.
    let pieces = hint.split('`').enumerate();
    let pieces = pieces.map(|(at, piece)| match (at % 2, piece.strip_prefix("--")) {
        (1, Some(option)) => option_in_a_program(option).unwrap_or_else(|| piece.to_owned()),
        _ => piece.to_owned(),
    });
    pieces.collect::<Vec<String>>().join("`")
}

/// `memory 8GB` as `memory="8GB"`, if a program has that option.
fn option_in_a_program(option: &str) -> Option<String> {
    let (name, value) = option.split_once([' ', '=']).map_or((option, None), |(name, value)| (name, Some(value)));
    if let Some((_, here)) = PAIRS.iter().find(|(there, _)| *there == name) {
        return Some(value.map_or_else(|| (*here).to_owned(), |pair| pairs(here, [pair].into_iter())));
    }
    let (_, here) = OPTIONS.iter().find(|(there, _)| *there == name)?;
    Some(match (name, value) {
        ("strict" | "read-only", _) => format!("{here}=True"),
        (_, Some(value)) => format!("{here}={value:?}"),
        (_, None) => (*here).to_owned(),
    })
}

fn pairs<'a>(dictionary: &str, given: impl Iterator<Item = &'a str>) -> String {
    let given = given.filter_map(|pair| pair.split_once('='));
    let given: Vec<String> = given.map(|(key, value)| format!("{key:?}: {:?}", value.trim_matches('\''))).collect();
    format!("{dictionary}={{{}}}", given.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_what_a_program_has() {
        for (there, here) in [
            ("give it more with `--memory 8GB`", "give it more with `memory=\"8GB\"`"),
            (
                "--option table.start=begin:us --option table.name=op",
                "options={\"table.start\": \"begin:us\", \"table.name\": \"op\"}",
            ),
            ("`--option align=messages` moves them", "`options={\"align\": \"messages\"}` moves them"),
            ("`--cluster off`, or without --strict", "`cluster=\"off\"`, or without --strict"),
            (
                "`--memory 8GB` allows more; `--from` and `--to` open less",
                "`memory=\"8GB\"` allows more; `slice=(begin, end)` open less",
            ),
            ("as `--it` was", "as `--it` was"),
        ] {
            assert_eq!(in_a_program(there.to_owned()), here);
        }
    }
}
