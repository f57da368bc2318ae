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
            kind: if problem.is_beyond_limit { Kind::Limit } else { kind },
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

/// What the options of a command line are called in a program.
const CALLED: [(&str, &str); 11] = [
    ("`tq functions` lists the functions, `\\f` at the prompt", "`session.functions()` lists the functions"),
    ("`tq query --param ", "`"),
    ("`tq functions NAME`", "`session.functions(\"NAME\")`"),
    ("`tq functions`", "`session.functions()`"),
    ("`tq queries`", "`session.queries()`"),
    ("`tq tables`", "`session.tables()`"),
    ("`--memory 8GB`", "`memory=\"8GB\"`"),
    ("`--memory`", "`memory`"),
    ("`--from-format F`", "`from_format=\"F\"`"),
    ("`--strict`", "`strict=True`"),
    ("try `-c 'SELECT * FROM runs'`", "try `SELECT * FROM runs`"),
];

/// A hint of the command line for a program.
pub(super) fn in_a_program(hint: String) -> String {
    const OPTION: &str = "--option ";
    if hint.starts_with(OPTION) {
        let pairs = hint.split(OPTION).map(str::trim).filter_map(|pair| pair.split_once('='));
        let quoted: Vec<String> =
            pairs.map(|(key, value)| format!("{key:?}: {:?}", value.trim_matches('\''))).collect();
        return format!("options={{{}}}", quoted.join(", "));
    }
    CALLED.iter().fold(hint, |hint, (there, here)| hint.replace(there, here))
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
            ("as it was", "as it was"),
        ] {
            assert_eq!(in_a_program(there.to_owned()), here);
        }
    }
}
