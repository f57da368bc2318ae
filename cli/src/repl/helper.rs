//! What the line editor asks: is the text complete, what could this word become.

use std::sync::{Arc, Mutex};

use rustyline::completion::{Completer, Pair};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper, Highlighter, Hinter};
use tq_engine::session::Session;
use tq_engine::tables::{TABLES, VIEWS};

use crate::{functions, statements};

const KEYWORDS: [&str; 48] = [
    "ALL",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "COUNT",
    "CREATE",
    "CROSS",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXISTS",
    "EXPLAIN",
    "FILTER",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "SELECT",
    "THEN",
    "UNION",
    "USING",
    "VIEW",
    "WHERE",
    "WITH",
];
const COMMANDS: [&str; 5] = ["\\?", "\\d", "\\f", "\\q", "\\timing"];

/// The names of a session.
#[derive(Debug, Default)]
pub(super) struct Words {
    tables: Vec<String>,
    columns: Vec<String>,
    functions: Vec<String>,
}

/// The editor's helper.
#[derive(Helper, Hinter, Highlighter)]
pub(super) struct Assistant {
    words: Arc<Mutex<Words>>,
}

impl Words {
    pub(super) fn of(session: &Session) -> Words {
        let schema = session.context().catalog("tq").and_then(|catalog| catalog.schema("main"));
        let mut columns: Vec<String> = TABLES
            .iter()
            .flat_map(|table| table.columns.iter().map(|column| column.name.to_owned()))
            .chain(VIEWS.iter().flat_map(|view| view.columns.iter().map(|(name, _)| (*name).to_owned())))
            .collect();
        columns.sort();
        columns.dedup();
        let mut tables = schema.map(|schema| schema.table_names()).unwrap_or_default();
        tables.sort();
        Words { tables, columns, functions: functions::names(session) }
    }

    /// What the word before the cursor could become: where it begins, and the candidates in order.
    fn complete(&self, line: &str, position: usize) -> (usize, Vec<String>) {
        let before = &line[..position];
        let start = before
            .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let (word, earlier) = (&before[start..], before[..start].trim_end());
        if before.trim_start().starts_with('\\') {
            return match earlier {
                "\\" | "" => {
                    let start = before.find('\\').unwrap_or(0);
                    (start, matching(&before[start..], COMMANDS.map(str::to_owned).iter()))
                }
                command if command.starts_with("\\d") => (start, matching(word, self.tables.iter())),
                command if command.starts_with("\\f") => (start, matching(word, self.functions.iter())),
                _ => (start, Vec::new()),
            };
        }
        let last = earlier.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        if matches!(last.to_uppercase().as_str(), "FROM" | "JOIN" | "INTO" | "DESCRIBE") {
            return (start, matching(word, self.tables.iter()));
        }
        if word.is_empty() {
            return (start, Vec::new());
        }
        // Keywords come as the word was begun.
        let is_lower = word.chars().all(|c| !c.is_uppercase());
        let keywords: Vec<String> =
            KEYWORDS.iter().map(|word| if is_lower { word.to_lowercase() } else { (*word).to_owned() }).collect();
        let mut all = matching(word, self.columns.iter());
        all.extend(matching(word, self.tables.iter()));
        all.extend(matching(word, keywords.iter()));
        all.extend(matching(word, self.functions.iter()));
        let mut seen = std::collections::HashSet::new();
        all.retain(|candidate| seen.insert(candidate.to_lowercase()));
        (start, all)
    }
}

fn matching<'a>(word: &str, candidates: impl Iterator<Item = &'a String>) -> Vec<String> {
    let word = word.to_lowercase();
    candidates.filter(|candidate| candidate.to_lowercase().starts_with(&word)).cloned().collect()
}

impl Assistant {
    pub(super) fn new(words: Arc<Mutex<Words>>) -> Assistant {
        Assistant { words }
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Ok(words) = self.words.lock() else { return Ok((position, Vec::new())) };
        let (start, candidates) = words.complete(line, position);
        let pair = |word: String| Pair { display: word.clone(), replacement: word };
        Ok((start, candidates.into_iter().map(pair).collect()))
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input().trim();
        let is_word = matches!(text.to_lowercase().as_str(), "exit" | "quit");
        Ok(if text.starts_with('\\') || is_word || statements::is_complete(text) {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        Words { tables: words("links tasks"), columns: words("finish start task"), functions: words("busy tan") }
    }

    #[test]
    fn words_complete_by_what_stands_before_them() {
        let check = |line: &str, start: usize, expected: &[&str]| {
            let (at, candidates) = words().complete(line, line.len());
            let candidates: Vec<&str> = candidates.iter().map(String::as_str).collect();
            assert_eq!((at, candidates.as_slice()), (start, expected), "{line}");
        };
        check("SELECT ta", 7, &["task", "tasks", "tan"]);
        check("SELECT * FROM ", 14, &["links", "tasks"]);
        check("select * from TA", 14, &["tasks"]);
        check("sel", 0, &["select"]);
        check("SEL", 0, &["SELECT"]);
        check("\\d l", 3, &["links"]);
        check("\\f b", 3, &["busy"]);
        check("\\t", 0, &["\\timing"]);
        check("SELECT ", 7, &[]);
        check("SELECT ü", 7, &[]);
    }
}
