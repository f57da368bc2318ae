//! Completion of a word at the prompt, depending on what precedes it.
//!
//! After FROM and JOIN: tables and relation functions. Elsewhere: the columns of the tables that the statement names
//! (all columns while it names none), then keywords and functions. After a `\` command: what that command takes.

use std::collections::BTreeMap;

use datafusion::catalog::SchemaProvider;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use futures::FutureExt;
use tq_engine::queries::Library;
use tq_engine::session::Session;
use tq_engine::sql::dialect::TqDialect;
use tq_engine::tables::{TABLES, VIEWS};

use super::commands::{Argument, COMMANDS, parse};
use crate::charts::KINDS;
use crate::functions::{self, Kind};
use crate::settings::SETTINGS;
use crate::text::visible::is_hidden;

/// Words of SQL, sorted.
pub(super) const KEYWORDS: [&str; 58] = [
    "ALL",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "CREATE",
    "CROSS",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FALSE",
    "FILTER",
    "FIRST",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "LAST",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "QUALIFY",
    "SELECT",
    "THEN",
    "TRUE",
    "UNION",
    "USING",
    "VIEW",
    "WHEN",
    "WHERE",
    "WITH",
];

/// The names of a session.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Columns by table.
    pub(super) tables: BTreeMap<String, Vec<String>>,
    /// Columns of the tables of Perfetto that no table of ours hides. They are named once a statement names the table.
    pub(super) of_perfetto: BTreeMap<String, Vec<String>>,
    /// Signature and first sentence by function, aliases included.
    pub(super) functions: BTreeMap<String, Function>,
    pub(super) queries: Vec<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) syntax: String,
    pub(super) is_relation: bool,
}

impl Words {
    pub(super) fn of(session: &Session, library: &Library) -> Words {
        let mut tables = BTreeMap::new();
        let schema = session.context().catalog("tq").and_then(|catalog| catalog.schema("main"));
        for name in schema.iter().flat_map(|schema| schema.table_names()) {
            tables.insert(name.clone(), columns_of(session, &name));
        }
        let perfetto = session.context().catalog("tq").and_then(|catalog| catalog.schema(tq_engine::perfetto::SCHEMA));
        let mut of_perfetto = BTreeMap::new();
        for name in perfetto.iter().flat_map(|schema| schema.table_names()) {
            if !tables.contains_key(&name) {
                let columns = perfetto.as_deref().map(|schema| columns_in(schema, &name));
                of_perfetto.insert(name, columns.unwrap_or_default());
            }
        }
        let mut all = BTreeMap::new();
        for function in functions::all(session) {
            if !function.is_for_people() {
                continue;
            }
            let known = Function {
                syntax: function.syntax.lines().next().unwrap_or_default().to_owned(),
                is_relation: function.kind == Kind::Relation,
            };
            for name in function.aliases.iter().chain([&function.name]) {
                all.entry(name.clone()).or_insert_with(|| known.clone());
            }
        }
        // A file may be called anything; what would steer the terminal is typed by hand.
        let queries = library.names().into_iter().filter(|name| !name.contains(is_hidden)).map(str::to_owned).collect();
        Words { tables, of_perfetto, functions: all, queries }
    }

    /// Where the word before the cursor begins, and what it could become. `None`: a file name.
    pub(super) fn complete(&self, line: &str, position: usize) -> Option<(usize, Vec<String>)> {
        let before = &line[..position];
        let last_line = before.rfind('\n').map_or(0, |end| end + 1);
        if before[last_line..].trim_start().starts_with('\\') {
            let (at, candidates) = self.complete_command(&before[last_line..])?;
            return Some((last_line + at, candidates));
        }
        let start = word_start(before, |c| c.is_alphanumeric() || c == '_');
        let (word, earlier) = (&before[start..], before[..start].trim_end());
        if let Some(owner) = earlier.strip_suffix('.').filter(|owner| owner.len() + 1 == start) {
            let owner = &owner[word_start(owner, |c| c.is_alphanumeric() || c == '_')..];
            return Some((start, matching(word, self.columns_of(owner, line))));
        }
        let last = earlier.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        let follows = |words: &[&str]| earlier.ends_with(last) && words.contains(&last.to_uppercase().as_str());
        if follows(&["FROM", "JOIN", "INTO", "DESCRIBE", "TABLE"]) {
            let relations = self.functions.iter().filter(|(_, function)| function.is_relation);
            let relations = relations.map(|(name, _)| format!("{name}("));
            return Some((start, matching(word, self.tables.keys().cloned().chain(relations))));
        }
        let named = self.tables_of(line);
        let columns: Vec<&String> = match named.is_empty() {
            true => self.tables.values().flatten().collect(),
            false => named.iter().filter_map(|table| self.columns(table)).flatten().collect(),
        };
        let columns = sorted(columns);
        if word.is_empty() {
            // Behind FROM's tables an empty word says nothing yet.
            let wanted = !named.is_empty() && follows(&["SELECT", "WHERE", "BY", "ON", "AND", "OR"]);
            return Some((start, if wanted { columns } else { Vec::new() }));
        }
        // Keywords come as the word was begun.
        let is_lower = word.chars().all(|c| !c.is_uppercase());
        let keywords = KEYWORDS.iter().map(|word| if is_lower { word.to_lowercase() } else { (*word).to_owned() });
        let functions = self.functions.iter().filter(|(_, function)| !function.is_relation);
        let mut all = matching(word, columns.into_iter());
        all.extend(matching(word, self.tables.keys().cloned()));
        all.extend(matching(word, keywords));
        all.extend(matching(word, functions.map(|(name, _)| format!("{name}("))));
        let mut seen = std::collections::HashSet::new();
        all.retain(|candidate| seen.insert(candidate.to_lowercase()));
        Some((start, all))
    }

    fn complete_command(&self, before: &str) -> Option<(usize, Vec<String>)> {
        let indent = before.len() - before.trim_start().len();
        let typed = &before[indent..];
        let Some((name, _)) = typed.split_once(char::is_whitespace) else {
            let names = COMMANDS.iter().map(|command| command.names[0].to_owned());
            return Some((indent, matching(typed, names)));
        };
        let start = word_start(before, |c| !c.is_whitespace());
        let word = &before[start..];
        let is_first = before[..start].trim() == name;
        let argument = parse(name).map_or(Argument::Nothing, |(command, _)| command.argument);
        let candidates = match argument {
            Argument::File => return None,
            Argument::Sql => {
                let sql = before.find(char::is_whitespace)? + 1;
                let (at, candidates) = self.complete(&before[sql..], before.len() - sql)?;
                return Some((sql + at, candidates));
            }
            Argument::Table => matching(word, self.tables.keys().cloned()),
            Argument::Function => matching(word, self.functions.keys().cloned()),
            Argument::Query if is_first => matching(word, self.queries.iter().cloned()),
            Argument::Chart if is_first => matching(
                word,
                KINDS.iter().map(|kind| kind.name.to_owned()).filter(|name| matches!(name.as_str(), "bar" | "line")),
            ),
            Argument::Setting if is_first => matching(word, SETTINGS.iter().map(|(name, ..)| (*name).to_owned())),
            Argument::Setting => {
                let setting = SETTINGS.iter().find(|(name, ..)| before.contains(name));
                let values = setting.map_or("", |(_, values, _)| values).split([' ', ',']);
                let words = values.filter(|word| !matches!(*word, "" | "or" | "a" | "number"));
                matching(word, words.map(str::to_owned))
            }
            Argument::Workers => matching(word, ["off", "local:2"].map(str::to_owned).into_iter()),
            Argument::Switch => matching(word, ["on", "off"].map(str::to_owned).into_iter()),
            Argument::Nothing | Argument::Query | Argument::Chart => Vec::new(),
        };
        Some((start, candidates))
    }

    fn columns(&self, table: &str) -> Option<&Vec<String>> {
        self.tables.get(table).or_else(|| self.of_perfetto.get(table))
    }

    /// The tables that a statement names, also while it cannot be parsed.
    fn tables_of(&self, line: &str) -> Vec<String> {
        let mut tables: Vec<String> = words_of(line).into_iter().filter(|word| self.columns(word).is_some()).collect();
        tables.sort();
        tables.dedup();
        tables
    }

    /// The columns of a table or of an alias.
    fn columns_of(&self, owner: &str, line: &str) -> std::vec::IntoIter<String> {
        let owner = owner.to_lowercase();
        if owner == tq_engine::perfetto::SCHEMA {
            return self.of_perfetto.keys().cloned().collect::<Vec<_>>().into_iter();
        }
        let words = words_of(line);
        let aliased = || {
            let place = |pair: &&[String]| pair[1] == owner && self.columns(&pair[0]).is_some();
            let with_as = words.iter().filter(|word| *word != "as").cloned().collect::<Vec<_>>();
            with_as.windows(2).find(place).map(|pair| pair[0].clone())
        };
        let table = if self.columns(&owner).is_some() { Some(owner.clone()) } else { aliased() };
        table.and_then(|table| self.columns(&table).cloned()).unwrap_or_default().into_iter()
    }
}

/// The words of a text in lower case, those of texts and comments left out; an open quote hides nothing.
fn words_of(line: &str) -> Vec<String> {
    match Tokenizer::new(&TqDialect, line).tokenize() {
        Ok(tokens) => tokens
            .into_iter()
            .filter_map(|token| match token {
                Token::Word(word) => Some(word.value.to_lowercase()),
                _ => None,
            })
            .collect(),
        Err(_) => line
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect(),
    }
}

fn columns_of(session: &Session, table: &str) -> Vec<String> {
    if let Some(view) = VIEWS.iter().find(|view| view.name == table) {
        return view.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    }
    if let Some(table) = TABLES.iter().find(|known| known.name == table) {
        return table.columns.iter().map(|column| column.name.to_owned()).collect();
    }
    // A table that somebody created; it is in memory, so the answer is there at once.
    let schema = session.context().catalog("tq").and_then(|catalog| catalog.schema("main"));
    schema.map(|schema| columns_in(schema.as_ref(), table)).unwrap_or_default()
}

fn columns_in(schema: &dyn SchemaProvider, table: &str) -> Vec<String> {
    let provider = schema.table(table).now_or_never().and_then(|table| table.ok().flatten());
    provider
        .map(|provider| provider.schema().fields().iter().map(|field| field.name().clone()).collect())
        .unwrap_or_default()
}

fn word_start(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.rfind(|c: char| !is_part(c)).map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8))
}

fn sorted(columns: Vec<&String>) -> Vec<String> {
    let mut columns: Vec<String> = columns.into_iter().cloned().collect();
    columns.sort();
    columns.dedup();
    columns
}

fn matching(word: &str, candidates: impl Iterator<Item = String>) -> Vec<String> {
    let word = word.to_lowercase();
    candidates.filter(|candidate| candidate.to_lowercase().starts_with(&word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        let list = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let function = |is_relation| Function { syntax: String::new(), is_relation };
        Words {
            tables: [("links", "source target"), ("tasks", "finish start task")]
                .map(|(table, columns)| (table.to_owned(), list(columns)))
                .into(),
            of_perfetto: [("slice".to_owned(), list("dur ts"))].into(),
            functions: [("busy", false), ("tan", false), ("timeline", true)]
                .map(|(name, is_relation)| (name.to_owned(), function(is_relation)))
                .into(),
            queries: list("call-tree longest-tasks"),
        }
    }

    #[test]
    fn words_complete_by_what_stands_before_them() {
        let check = |line: &str, start: usize, expected: &[&str]| {
            let (at, candidates) = words().complete(line, line.len()).unwrap();
            let candidates: Vec<&str> = candidates.iter().map(String::as_str).collect();
            assert_eq!((at, candidates.as_slice()), (start, expected), "{line}");
        };
        check("SELECT ta", 7, &["target", "task", "tasks", "tan("]);
        check("SELECT * FROM ", 14, &["links", "tasks", "timeline("]);
        check("select * from TA", 14, &["tasks"]);
        check("select * from tasks where ", 26, &["finish", "start", "task"]);
        check("select * from links where ta", 26, &["target", "tasks", "tan("]);
        check("select t.s from tasks t where t.s", 32, &["start"]);
        check("select links.", 13, &["source", "target"]);
        check("sel", 0, &["select"]);
        check("SEL", 0, &["SELECT"]);
        check("SELECT ts FROM perfetto.sl", 24, &["slice"]);
        check("SELECT * FROM slice WHERE du", 26, &["dur"]);
        check("SELECT * FROM slice s WHERE s.", 30, &["dur", "ts"]);
        check("\\d l", 3, &["links"]);
        check("\\f b", 3, &["busy"]);
        check("\\t", 0, &["\\timing"]);
        check("\\run long", 5, &["longest-tasks"]);
        check("\\set ti", 5, &["times", "timing"]);
        check("\\set times p", 11, &["people"]);
        check("\\explain SELECT fin", 16, &["finish"]);
        check("SELECT ", 7, &[]);
        check("SELECT ü", 7, &[]);
        assert!(words().complete("\\i some", 7).is_none());
    }

    #[test]
    fn keywords_are_sorted() {
        assert!(KEYWORDS.is_sorted());
    }
}
