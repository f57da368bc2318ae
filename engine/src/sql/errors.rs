//! Errors of SQL for people: what, where, and what to try.
//!
//! DataFusion's errors know what went wrong, sometimes where, rarely what was meant. [`SqlError::new`] takes such an
//! error, the statement and the session, and finds the words: the nearest name for a misspelt table, column, function or
//! setting, a place in the text for a caret, advice where there is some. Errors of our own bring
//! place and hint along (`diagnostic.rs`).
//!
//! ```text
//! error: no column `strat`
//! 2 |   strat FROM tasks
//!       ^^^^^
//! hint: did you mean `start`?
//! ```

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::{Column, DataFusionError, Diagnostic, SchemaError, Span as PlanSpan};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{Query, SelectItem, Set, Statement as SqlStatement, Visit, Visitor};
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::Location;

use crate::nearest::nearest;
use crate::queries::built_in::{built_in, built_in_names};
use crate::sql::diagnostic::{root_of, text_of};
use crate::sql::names::without_tags;
use crate::sql::other_dialects::{FILES_ARE_OPENED, column_like, instead, table_elsewhere, table_like};
use crate::sql::place::{Place, misspelt_before, place_at, spoken_of};
use crate::sql::relations::RelationFunctions;
use crate::sql::stack::deep;
use crate::sql::statement::Statement;
use crate::sql::system;
use crate::sql::using::OWN;
use crate::sql::wording::{in_words, is_unit, sql_types, without_internals};
use crate::tables::TABLES;

/// What is wrong with a query, or went wrong while it ran.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}{}", hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default())]
pub struct SqlError {
    /// What is wrong; a sentence without full stop.
    pub message: String,
    /// Where, if that is known.
    pub place: Option<Place>,
    /// What to try.
    pub hint: Option<String>,
}

impl SqlError {
    /// Words an error of planning or running a statement.
    pub fn new(error: &DataFusionError, statement: &Statement, context: &SessionContext) -> Self {
        // Names of CTEs are looked for in the statement, however deep it is.
        deep(|| Self::of(error, &statement.source, Some(statement), Some(context)))
    }

    /// The offending line and a line with carets under what is meant.
    pub fn caret_lines(&self) -> Option<String> {
        let place = self.place.as_ref()?;
        let number = place.line.to_string();
        let before = usize::try_from(place.column.saturating_sub(1)).unwrap_or(0);
        // A tab before the place moves the caret as far as it moves the text.
        let indent: String = place
            .source_line
            .chars()
            .chain(std::iter::repeat(' '))
            .take(before)
            .map(|character| if character == '\t' { '\t' } else { ' ' })
            .collect();
        let carets = "^".repeat(usize::try_from(place.length).unwrap_or(1).max(1));
        let margin = " ".repeat(number.len());
        Some(format!("{number} | {}\n{margin}   {indent}{carets}", place.source_line))
    }

    /// An error of the tokenizer or the parser, which say the place in their text only.
    pub(super) fn of_parser(error: &ParserError, source: &str) -> Self {
        let (message, location) = parser_message(error);
        let place = location.map(|at| place_at(source, at, at));
        let found = message.split_once(", found ").map(|(_, found)| found.to_owned());
        let place = match (place, &found) {
            (Some(place), Some(found)) => Some(widened(place, found)),
            (place, _) => place,
        };
        if message.starts_with("expected end of statement")
            && let Some((found, at)) = found.as_ref().zip(place.as_ref())
            && let Some((word, place, keyword)) = misspelt_before(source, at, &KEYWORDS)
        {
            let message = format!("`{word}` is taken for a name, and `{found}` does not go on from there");
            return SqlError { message, place: Some(place), hint: Some(did_you_mean(keyword)) };
        }
        let hint = saved_query_hint(source)
            .or_else(|| found.zip(place.as_ref()).and_then(|(found, place)| keyword_hint(&found, place)));
        SqlError { message, place, hint }
    }

    /// An error of the parser in a statement that ends at `end`.
    pub(super) fn of_parsing(error: &DataFusionError, source: &Arc<str>, end: Location) -> Self {
        let mut worded = Self::of(error, source, None, None);
        if worded.place.is_none() {
            worded.place = Some(place_at(source, end, end));
        }
        worded
    }

    fn of(
        error: &DataFusionError,
        source: &str,
        statement: Option<&Statement>,
        context: Option<&SessionContext>,
    ) -> Self {
        let root = root_of(error);
        if let DataFusionError::SQL(error, _) = root {
            return Self::of_parser(error, source);
        }
        let diagnostic = error.diagnostic();
        let span = diagnostic.and_then(|diagnostic| diagnostic.span);
        let place = span.map(|PlanSpan { start, end }| {
            let location = |line, column| Location { line, column };
            place_at(source, location(start.line, start.column), location(end.line, end.column))
        });
        let names = Names { statement, context };
        let possible: Vec<&str> = diagnostic
            .iter()
            .flat_map(|diagnostic| &diagnostic.notes)
            .filter_map(|note| note.message.strip_prefix("possible column "))
            .collect();
        let (message, hint) = describe(root, &names, place.as_ref(), &possible);
        let hint = json_key_hint(root, place.as_ref()).or(hint);
        let (message, hint) = (message.replace(OWN, ""), hint.map(|hint| hint.replace(OWN, "")));
        let place = place.or_else(|| spoken_of(source, statement, &message));
        let message = without_tags(&without_internals(&message, source));
        let helps = || {
            let helps: Vec<&str> = diagnostic?.helps.iter().map(|help| help.message.as_str()).collect();
            (!helps.is_empty()).then(|| helps.join("; "))
        };
        SqlError { message, place, hint: hint.or_else(helps).filter(|hint| !hint.is_empty()) }
    }
}

/// A placeholder to which no value was given.
pub(super) fn missing_parameter(name: &str) -> DataFusionError {
    let bare = name.trim_start_matches(['$', ':', '@']);
    let message = format!("no value for `{name}`");
    let help = match name.strip_prefix('$') {
        Some(bare) => format!("`tq query --param {bare}=…` gives it one"),
        None if bare.chars().all(|c| c.is_alphanumeric() || c == '_') && !bare.is_empty() => {
            format!("write `${bare}`; `tq query --param {bare}=…` gives it a value")
        }
        None => "a value has a name: write `$x`, and `tq query --param x=…` gives it".to_owned(),
    };
    let diagnostic = Diagnostic::new_error(message.clone(), None).with_help(help, None);
    DataFusionError::Plan(message).with_diagnostic(diagnostic)
}

/// What there is to be named in a session.
struct Names<'a> {
    statement: Option<&'a Statement>,
    context: Option<&'a SessionContext>,
}

impl Names<'_> {
    /// Tables and views, and the CTEs of the statement. Tables of the default schema come without it.
    fn tables(&self) -> Vec<String> {
        let mut names = cte_names(self.statement);
        let Some(context) = self.context else { return names };
        let config = context.copied_config();
        let defaults = &config.options().catalog;
        for catalog in context.catalog_names() {
            let Some(provider) = context.catalog(&catalog) else { continue };
            for schema in provider.schema_names() {
                let Some(tables) = provider.schema(&schema) else { continue };
                let is_default = catalog == defaults.default_catalog && schema == defaults.default_schema;
                let qualified = |table| if is_default { table } else { format!("{schema}.{table}") };
                if schema != "information_schema" {
                    names.extend(tables.table_names().into_iter().map(qualified));
                }
            }
        }
        names.sort();
        names.dedup();
        names
    }

    fn functions(&self) -> Vec<String> {
        let Some(context) = self.context else { return vec![] };
        let state = context.state();
        let scalar = state.scalar_functions().keys();
        scalar.chain(state.aggregate_functions().keys()).chain(state.window_functions().keys()).cloned().collect()
    }

    fn relation_functions(&self) -> Vec<&'static str> {
        self.context.map(|context| RelationFunctions::of(context).names()).unwrap_or_default()
    }

    fn settings(&self) -> Vec<String> {
        let Some(context) = self.context else { return vec![] };
        context.copied_config().options().entries().into_iter().map(|entry| entry.key).collect()
    }

    fn is_window_function(&self, name: &str) -> bool {
        self.context.is_some_and(|context| context.state().window_functions().contains_key(name))
    }

    fn is_function(&self, name: &str) -> bool {
        self.functions().iter().any(|function| function == name)
    }

    /// Whether the statement gives a column of its answer this name.
    fn is_alias(&self, name: &str) -> bool {
        let Some(ParsedStatement::Statement(statement)) = self.statement.map(|statement| &statement.parsed) else {
            return false;
        };
        let SqlStatement::Query(query) = statement.as_ref() else { return false };
        let Some(select) = query.body.as_select() else { return false };
        let is_it = |item: &SelectItem| matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.value == name);
        select.projection.iter().any(is_it)
    }

    /// Whether the statement gives a setting a value.
    fn is_set(&self) -> bool {
        let Some(ParsedStatement::Statement(statement)) = self.statement.map(|statement| &statement.parsed) else {
            return false;
        };
        matches!(statement.as_ref(), SqlStatement::Set(Set::SingleAssignment { .. }))
    }

    /// The setting that the statement sets or resets.
    fn setting(&self) -> Option<String> {
        match &self.statement?.parsed {
            ParsedStatement::Statement(statement) => match statement.as_ref() {
                SqlStatement::Set(Set::SingleAssignment { variable, .. }) => Some(variable.to_string()),
                SqlStatement::ShowVariable { variable } => {
                    Some(variable.iter().map(|part| part.value.as_str()).collect::<Vec<_>>().join("."))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// Message and hint.
fn describe(
    root: &DataFusionError,
    names: &Names<'_>,
    place: Option<&Place>,
    possible: &[&str],
) -> (String, Option<String>) {
    let text = text_of(root);
    if let Some(refused) = system::worded(root, &text) {
        return refused;
    }
    match root {
        DataFusionError::SchemaError(schema_error, _) => match schema_error.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => no_column(field, valid_fields, place, names),
            SchemaError::AmbiguousReference { field } => ambiguous(&field.name, possible),
            SchemaError::DuplicateQualifiedField { qualifier, .. } => (
                format!("FROM has `{qualifier}` twice", qualifier = qualifier.table()),
                Some(format!("call one of them otherwise: `{} AS other`", qualifier.table())),
            ),
            SchemaError::DuplicateUnqualifiedField { name } => (
                format!("there is a column `{name}` twice"),
                Some(format!("call one of them otherwise: `{name} AS another_name`")),
            ),
        },
        DataFusionError::Plan(_) | DataFusionError::Internal(_) if text.contains("Invalid function '") => {
            let name = quoted(&text, "Invalid function '").unwrap_or_default();
            no_function(name, names)
        }
        DataFusionError::Plan(_) => match quoted(&text, "table '") {
            Some(table) if text.contains("' not found") => no_table(table, names),
            _ => describe_plan(&text, names),
        },
        DataFusionError::Configuration(_) => no_setting(text, names),
        _ if names.is_set() => no_value(&text, names),
        DataFusionError::NotImplemented(_) => not_supported(&text),
        DataFusionError::ResourcesExhausted(_) if text.contains("--max-value") => too_large(first_line(&text)),
        DataFusionError::ResourcesExhausted(_) => {
            let who = first_line(&text);
            (format!("not enough memory: {who}"), Some(less_memory(who)))
        }
        DataFusionError::Internal(_) if is_correlation(&text) => correlated(),
        DataFusionError::Internal(_)
            if text.contains("failed to match any signature") || text.starts_with("Failed to coerce types ") =>
        {
            in_words(&text)
        }
        DataFusionError::Internal(_) if text.contains("array_resize: failed to convert size") => {
            ("`array_resize` takes a length from 0 on".to_owned(), None)
        }
        DataFusionError::Internal(_) if text.contains("while finalizing writes") => (
            "COPY could not finish its file, which may hold a part of the rows".to_owned(),
            Some(
                "the disk may be full; `tq query … -o FILE` says why it fails, and leaves no part of an answer"
                    .to_owned(),
            ),
        ),
        DataFusionError::Internal(_) => {
            (format!("internal error: {text}"), Some("this is a bug of tq or DataFusion".to_owned()))
        }
        _ => describe_plan(&text, names),
    }
}

/// What needs less memory, for what asked for it.
fn less_memory(who: &str) -> String {
    let asks = who.split([' ', '[', ':']).next().unwrap_or_default();
    let what = if asks.contains("Join") {
        ", ask for fewer rows or columns, or let joins spill: `SET datafusion.optimizer.prefer_hash_join = false`"
    } else if tq_udfs::relation_functions().iter().any(|function| function.name() == asks) {
        ", or ask about one run (`--run`) or a part of the time (`--from`, `--to`)"
    } else {
        ", or ask for fewer rows, columns or groups"
    };
    format!("raise the limit (`--memory`){what}")
}

/// A value beyond `--max-value`: what would suffice, if that is not beyond all texts.
fn too_large(text: &str) -> (String, Option<String>) {
    const SHORTER: &str = "ask for a shorter text or list";
    let size = text.split_once(" a value of ").and_then(|(_, rest)| rest.split_once(',')).map(|(size, _)| size);
    let megabytes = match size.and_then(|size| size.split_once(' ')) {
        Some((number, "MB")) => number.parse().ok(),
        Some((number, "kB" | "bytes")) => number.parse::<u64>().ok().map(|_| 1),
        _ => None,
    };
    // Arrow counts the bytes of a text with 31 bits.
    let suffices = [256, 512, 1000, 2000].into_iter().find(|limit| megabytes.is_some_and(|bytes: u64| bytes < *limit));
    let hint = match suffices {
        Some(limit) if limit < 1000 => format!("raise it (`--max-value {limit}MB`), or {SHORTER}"),
        Some(limit) => format!("raise it (`--max-value {}GB`), or {SHORTER}", limit / 1000),
        None => SHORTER.to_owned(),
    };
    (text.to_owned(), Some(hint))
}

fn describe_plan(text: &str, names: &Names<'_>) -> (String, Option<String>) {
    if is_correlation(text) {
        return correlated();
    }
    if let Some(relation) = text.strip_prefix("Invalid qualifier ") {
        let tables = names.tables();
        let hint = nearest(relation, tables.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"));
        return (format!("FROM has nothing that is called `{relation}`"), hint);
    }
    if text.ends_with("is not a variable which can be viewed with 'SHOW'") {
        let setting = names.setting().unwrap_or_default();
        return (
            format!("no setting `{setting}`"),
            Some("`SHOW ALL` lists the settings, `SHOW TABLES` the tables".to_owned()),
        );
    }
    match quoted(text, "Table '") {
        Some(table) if text.contains("' doesn't exist") => no_table(table, names),
        _ => in_words(text),
    }
}

/// A column that several relations of FROM have.
fn ambiguous(name: &str, possible: &[&str]) -> (String, Option<String>) {
    let message = format!("column `{name}` is in several relations");
    let quoted: Vec<String> = possible.iter().map(|column| format!("`{column}`")).collect();
    let hint = match quoted.as_slice() {
        [] => format!("put the name that its relation has in FROM before it: `t.{name}`"),
        columns => format!("say which one: {}", columns.join(" or ")),
    };
    (message, Some(hint))
}

/// `args->key`: the key of JSON was taken for a column.
fn json_key_hint(root: &DataFusionError, place: Option<&Place>) -> Option<String> {
    let DataFusionError::SchemaError(error, _) = root else { return None };
    let SchemaError::FieldNotFound { field, .. } = error.as_ref() else { return None };
    let place = place?;
    let column = usize::try_from(place.column.saturating_sub(1)).ok()?;
    let before: String = place.source_line.chars().take(column).collect();
    let before = before.trim_end();
    let operator = ["->>", "->"].into_iter().find(|operator| before.ends_with(operator))?;
    let is_bare = field.relation.is_none();
    let key = as_written(&field.name, Some(place));
    is_bare.then(|| format!("a key of JSON stands in single quotes: `{operator}'{key}'`"))
}

/// A name as it stands in the statement: outside of double quotes, names are lower-cased before they are looked up, and a text that
/// was meant is compared with its capitals.
fn as_written(name: &str, place: Option<&Place>) -> String {
    let there = place.map(|place| {
        let before = usize::try_from(place.column.saturating_sub(1)).unwrap_or(0);
        place.source_line.chars().skip(before).take(name.chars().count()).collect::<String>()
    });
    there.filter(|there| there.to_lowercase() == name.to_lowercase()).unwrap_or_else(|| name.to_owned())
}

fn no_column(
    field: &Column,
    valid: &[Column],
    place: Option<&Place>,
    statement: &Names<'_>,
) -> (String, Option<String>) {
    let mut relations: Vec<String> =
        valid.iter().filter_map(|column| Some(column.relation.as_ref()?.table().to_owned())).collect();
    relations.sort();
    relations.dedup();
    if let Some(relation) = &field.relation
        && !relations.is_empty()
        && !relations.iter().any(|known| known == relation.table())
    {
        let known: Vec<&str> = relations.iter().map(String::as_str).collect();
        let hint = nearest(relation.table(), known.iter().copied())
            .map(|near| format!("did you mean `{near}.{}`?", field.name))
            .or_else(|| match known.as_slice() {
                [only] => {
                    Some(format!("write `{only}.{}`, or call it so: `FROM {only} AS {}`", field.name, relation.table()))
                }
                _ => list(&known).map(|known| format!("FROM has {known}")),
            });
        return (format!("FROM has nothing that is called `{relation}`"), hint);
    }
    let message = match &field.relation {
        Some(relation) => format!("no column `{}` in `{relation}`", field.name),
        None => format!("no column `{}`", field.name),
    };
    let in_double_quotes = place.is_some_and(|place| {
        let before = usize::try_from(place.column.saturating_sub(1)).unwrap_or(0);
        place.source_line.chars().nth(before) == Some('"')
    });
    let names: Vec<&str> = valid.iter().map(|column| column.name.as_str()).collect();
    let is_alone = field.relation.is_none();
    let near = column_like(&field.name, &names).or_else(|| nearest(&field.name, names.iter().copied()));
    let as_text = (is_alone && (in_double_quotes || place.is_some_and(is_compared)))
        .then(|| format!("'{}'", as_written(&field.name, place)));
    let hint = match (near, as_text) {
        _ if is_alone && statement.is_alias(&field.name) => {
            format!(
                "`{}` is what SELECT calls its answer, and not known here yet: repeat what it stands for, or ask a subquery",
                field.name
            )
        }
        _ if is_alone && statement.tables().contains(&field.name) => {
            format!("`{}` is a table, whose columns stand here: `busy(start, finish)`", field.name)
        }
        (None, _) if is_alone && statement.relation_functions().contains(&field.name.as_str()) => {
            format!("`{0}` is a function whose rows stand in FROM: `SELECT * FROM {0}()`", field.name)
        }
        _ if is_alone
            && ["rank", "process", "process_name"].contains(&field.name.as_str())
            && near == Some("location") =>
        {
            "it is the `process` of the location: `FROM tasks JOIN locations USING (run, location)`".to_owned()
        }
        (Some(near), _) if near.to_lowercase() != *near => {
            format!("did you mean `\"{near}\"`, with its double quotes?")
        }
        (Some(near), Some(text)) => format!("did you mean `{near}`, or the text {text} in single quotes?"),
        (Some(near), None) => format!("did you mean `{near}`?"),
        (None, Some(text)) => format!("a text needs single quotes: {text}"),
        (None, None) => match list(&names) {
            Some(listed) if is_alone && ["args", "start"].iter().all(|column| names.contains(column)) => format!(
                "there is {listed}; what tracers say besides stands in `args`: `args->>'{}'`, if it is there",
                field.name.replace('\'', "''")
            ),
            Some(listed) => format!("there is {listed}"),
            None => return (message, None),
        },
    };
    (message, Some(hint))
}

/// Whether what stands at a place is compared with something before it, as texts are.
fn is_compared(place: &Place) -> bool {
    let column = usize::try_from(place.column.saturating_sub(1)).unwrap_or(0);
    let before: String = place.source_line.chars().take(column).collect();
    let before = before.trim_end().to_lowercase();
    ["=", "<>", "~", " like", " ilike", "in ("].iter().any(|operator| before.ends_with(operator))
}

fn no_table(name: &str, names: &Names<'_>) -> (String, Option<String>) {
    let tables = names.tables();
    let given = match name.rsplit_once('.') {
        // Names without a schema come back with the default one, which nobody wrote.
        Some((schema, table)) if is_default_schema(schema, names) => table,
        Some((schema, _)) if schema.starts_with("tq.") => name.trim_start_matches("tq."),
        _ => name,
    };
    if is_called_like_a_file(given) {
        let given = given.strip_prefix("main.").unwrap_or(given);
        return (format!("no table `{given}`"), Some(FILES_ARE_OPENED.to_owned()));
    }
    let message = format!("no table `{given}`");
    if names.relation_functions().contains(&given) {
        return (message, Some(format!("`{given}` is a function: `FROM {given}()`")));
    }
    let spelt = given.replace('_', "-").to_lowercase();
    if let Some(saved) = built_in_names().find(|saved| *saved == spelt) {
        let how = format!("`{saved}` is a saved query: `tq query TRACE {saved}`, `\\run {saved}` at the prompt");
        return (message, Some(how));
    }
    if let Some(hint) = table_elsewhere(given) {
        return (message, Some(hint.to_owned()));
    }
    if names.is_function(given) || names.is_window_function(given) {
        return (message, Some(format!("`{given}` is a function of values: `SELECT {given}(…) FROM …`")));
    }
    let mut known: Vec<&str> = tables.iter().map(String::as_str).collect();
    // Tables come before views, and what is named alone before what is not.
    known.sort_by_key(|name| (name.contains('.'), !TABLES.iter().any(|table| table.name == *name)));
    let own: Vec<&str> = known.iter().copied().filter(|name| !name.contains('.')).collect();
    let last = given.rsplit('.').next().unwrap_or_default();
    let near = own
        .iter()
        .copied()
        .find(|own| *own == last)
        // `hta.slice` is `perfetto.slice`.
        .or_else(|| {
            let in_schema = |name: &&str| name.rsplit_once('.').is_some_and(|(_, table)| table == last);
            known.iter().copied().filter(|_| given.contains('.')).find(in_schema)
        })
        .or_else(|| table_like(last, &own))
        .or_else(|| nearest(given, known.iter().copied()))
        // Those of Perfetto are known without their schema.
        .or_else(|| {
            let of_perfetto = known.iter().filter_map(|name| name.strip_prefix("perfetto."));
            nearest(given, of_perfetto).filter(|_| !given.contains('.'))
        });
    let hint = match (near, nearest(given, names.relation_functions())) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, Some(function)) => format!("did you mean the function `{function}()`?"),
        (None, None) if is_in_no_schema(given, &known) => {
            "an input of a function is a table, or a subquery that does not look at the rows beside it".to_owned()
        }
        (None, None) => {
            let schema = given.rfind('.').map_or("", |end| &given[..=end]);
            let of_schema: Vec<&str> = known.iter().copied().filter(|name| name.starts_with(schema)).collect();
            match list(if of_schema.is_empty() { &known } else { &of_schema }) {
                Some(known) => format!("there is {known}"),
                None => return (message, None),
            }
        }
    };
    (message, Some(hint))
}

/// `l.source`, where there are no tables of a schema `l`: rather a column.
fn is_in_no_schema(name: &str, tables: &[&str]) -> bool {
    name.rsplit_once('.').is_some_and(|(schema, _)| {
        !tables.iter().any(|table| table.rsplit_once('.').is_some_and(|(known, _)| known.eq_ignore_ascii_case(schema)))
    })
}

/// `foo.csv`, `dir/run.json`.
fn is_called_like_a_file(name: &str) -> bool {
    const ENDINGS: [&str; 10] =
        [".csv", ".tsv", ".json", ".ndjson", ".jsonl", ".parquet", ".arrow", ".sqlite", ".db", ".tfp"];
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    name.contains('/') || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn is_default_schema(schema: &str, names: &Names<'_>) -> bool {
    names.context.is_some_and(|context| {
        let config = context.copied_config();
        let defaults = &config.options().catalog;
        schema == format!("{}.{}", defaults.default_catalog, defaults.default_schema)
    })
}

fn no_function(name: &str, names: &Names<'_>) -> (String, Option<String>) {
    if names.relation_functions().contains(&name) {
        return (
            format!("`{name}` is a relation, not a value"),
            Some(format!("it stands in FROM: `SELECT * FROM {name}()`")),
        );
    }
    if names.is_window_function(name) {
        return (
            format!("`{name}` is a window function and needs OVER"),
            Some(format!("write `{name}(…) OVER (PARTITION BY … ORDER BY …)`")),
        );
    }
    if let Some(instead) = instead(name).or_else(|| table_elsewhere(name)) {
        return (format!("no function `{name}`"), Some(instead.to_owned()));
    }
    let mut functions = names.functions();
    functions.extend(names.relation_functions().into_iter().map(str::to_owned));
    let known = functions.iter().map(String::as_str);
    let hint = nearest(name, known)
        .map_or("`tq functions` lists the functions, `\\f` at the prompt".to_owned(), |near| {
            format!("did you mean `{near}`?")
        });
    (format!("no function `{name}`"), Some(hint))
}

/// A setting that exists and a value that does not fit.
fn no_value(text: &str, names: &Names<'_>) -> (String, Option<String>) {
    let setting = names.setting().unwrap_or_default();
    (format!("`{setting}` does not take this value: {}", sql_types(text)), None)
}

fn no_setting(text: String, names: &Names<'_>) -> (String, Option<String>) {
    let lower = text.to_lowercase();
    let unknown = lower.contains("could not find config namespace") || lower.contains("config value \"");
    match names.setting() {
        Some(setting) if unknown => {
            let settings = names.settings();
            let known: Vec<&str> = settings.iter().map(String::as_str).collect();
            let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
            // People remember the last word of a setting.
            let by_last = || known.iter().copied().find(|known| last(known) == last(&setting));
            let hint = nearest(&setting, known.iter().copied()).or_else(by_last);
            let hint =
                hint.map_or("`SHOW ALL` lists the settings".to_owned(), |near| format!("did you mean `{near}`?"));
            (format!("no setting `{setting}`"), Some(hint))
        }
        Some(_) if names.is_set() => no_value(&text, names),
        _ => (text, None),
    }
}

/// Clauses that DataFusion parses and refuses, and what does the same.
const INSTEAD: &[(&str, &str)] = &[
    ("pivot", "write `sum(x) FILTER (WHERE key = 'a') AS a` for each column"),
    (
        "asof",
        "join on the key and keep the latest row: `QUALIFY row_number() OVER (PARTITION BY … ORDER BY … DESC) = 1`",
    ),
    ("summarize", "ask for `count(*)`, `min(x)`, `max(x)`, `approx_distinct(x)` of the columns"),
    ("create macro", "write a view, or a CTE"),
    ("rlike", "write `name ~ 'a.*'`"),
    ("show databases", "`SHOW TABLES` lists the tables"),
    ("show tables filter", "ask `information_schema.tables`: `WHERE table_name LIKE 'ta%'`"),
];

fn not_supported(text: &str) -> (String, Option<String>) {
    if is_correlation(text) {
        return correlated();
    }
    if text.contains("`retract_batch` is not implemented") {
        let function = text.rsplit(": ").next().and_then(|call| call.split('(').next()).unwrap_or(text);
        let hint =
            "a frame from UNBOUNDED PRECEDING on can; `array_agg(x) OVER (… ROWS …)` has the values of any frame";
        return (format!("{function} cannot follow a frame whose beginning moves"), Some(hint.to_owned()));
    }
    if let Some(word) = text.strip_prefix("Unsupported SQL type ") {
        let hint = "`x::type` converts to a type; texts stand in quotes: `name = 'aten::mm'`";
        return (format!("`{word}` is no type"), Some(hint.to_owned()));
    }
    if text.contains("Multiple recursive references") {
        let message = "the recursive term of WITH RECURSIVE reads the rows of the step before more than once";
        let hint = "a subquery or LATERAL that speaks of them reads them again, as a join with themselves does: \
                    join the other table instead, and take what is wanted of it there";
        return (message.to_owned(), Some(hint.to_owned()));
    }
    let lower = text.to_lowercase();
    let hint = match lower.as_str() {
        "top" => Some("write `LIMIT 5` at the end".to_owned()),
        _ => INSTEAD.iter().find(|(clause, _)| lower.contains(clause)).map(|(_, instead)| (*instead).to_owned()),
    };
    // The rest of these messages is the syntax tree, hundreds of characters long.
    let tree = text.find(['{', '(']).filter(|_| text.len() > 80);
    let short = tree.map_or(text, |end| &text[..end]).trim().trim_end_matches(':');
    let first = first_line(short);
    let cut: String = first.chars().take(160).collect();
    let cut = cut.replace("Unsupported SQL statement: ", "").replace("Unsupported ast node ", "");
    (format!("not supported: {cut}"), hint)
}

fn is_correlation(text: &str) -> bool {
    text.contains("OuterReferenceColumn") || text.contains("Physical plan does not support logical expression")
}

fn correlated() -> (String, Option<String>) {
    (
        "a subquery refers to the outer query in a way that cannot be planned".to_owned(),
        Some("write a join; of a relation function, compare the column `run` of its answer".to_owned()),
    )
}

/// Up to a dozen names.
fn list(names: &[&str]) -> Option<String> {
    const SHOWN: usize = 12;
    let mut names: Vec<&str> = names.to_vec();
    names.dedup();
    match names.len() {
        0 => None,
        few if few <= SHOWN => Some(names.join(", ")),
        many => Some(format!("{}, … ({many} in all)", names[..SHOWN].join(", "))),
    }
}

fn cte_names(statement: Option<&Statement>) -> Vec<String> {
    struct Ctes(Vec<String>);
    impl Visitor for Ctes {
        type Break = ();
        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
            self.0.extend(ctes.map(|cte| cte.alias.name.value.to_lowercase()));
            ControlFlow::Continue(())
        }
    }
    let mut ctes = Ctes(vec![]);
    if let Some(ParsedStatement::Statement(statement)) = statement.map(|statement| &statement.parsed) {
        // The visitor never breaks off.
        let _continued = statement.visit(&mut ctes);
    }
    ctes.0
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// What stands between `before` and the next single quote.
fn quoted<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let rest = &text[text.find(before)? + before.len()..];
    Some(&rest[..rest.find('\'')?])
}

/// `Expected: an expression, found: EOF at Line: 1, Column: 8`, in our words and without the place.
fn parser_message(error: &ParserError) -> (String, Option<Location>) {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
        ParserError::RecursionLimitExceeded => return ("the query is nested too deeply".to_owned(), None),
    };
    let (text, location) = match text.rsplit_once(" at Line: ") {
        Some((before, place)) => {
            let mut numbers =
                place.split(|character: char| !character.is_ascii_digit()).filter(|text| !text.is_empty());
            let mut number = || numbers.next()?.parse::<u64>().ok();
            let location = number().zip(number()).map(|(line, column)| Location { line, column });
            (before, location)
        }
        None => (text, None),
    };
    match text {
        "Unterminated string literal" => {
            return ("the text that begins here has no closing quote".to_owned(), location);
        }
        "Expected close delimiter '\"' before EOF." => {
            return ("the name that begins here has no closing quote".to_owned(), location);
        }
        _ => {}
    }
    let text = text.replace("Expected: ", "expected ").replace("found: EOF", "found the end of the statement");
    (text.replace("found: ", "found "), location)
}

/// The place with all of the word that stands there.
fn widened(place: Place, word: &str) -> Place {
    let before = usize::try_from(place.column.saturating_sub(1)).unwrap_or(0);
    let there: String = place.source_line.chars().skip(before).take(word.chars().count()).collect();
    let length = if there == word { word.chars().count() as u64 } else { place.length };
    Place { length: length.max(1), ..place }
}

/// Keywords that begin a clause.
const KEYWORDS: [&str; 14] = [
    "SELECT", "FROM", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "JOIN", "UNION", "WITH", "EXPLAIN",
    "QUALIFY", "DESCRIBE",
];

fn did_you_mean(keyword: &str) -> String {
    let by = if ["GROUP", "ORDER"].contains(&keyword) { " BY" } else { "" };
    format!("did you mean `{keyword}{by}`?")
}

/// A query where none can be: an argument without parentheses of its own, or behind something that a `)` should end.
fn misplaced_select(place: &Place) -> Option<String> {
    let column = usize::try_from(place.column.saturating_sub(1)).unwrap_or(0);
    let before: String = place.source_line.chars().take(column).collect();
    if before.trim_end().ends_with(['(', ',']) {
        let hint = "a query as an argument has its own parentheses: `f((SELECT …))` or `f(TABLE(SELECT …))`";
        return Some(hint.to_owned());
    }
    let open = before.matches('(').count() > before.matches(')').count();
    open.then(|| "a `(` before it is not closed".to_owned())
}

/// Whether a comma comes before the place, or a comma or FROM behind it: a name of a list is meant.
fn stands_in_a_list(place: &Place) -> bool {
    let column = usize::try_from(place.column.saturating_sub(1)).unwrap_or(0);
    let length = usize::try_from(place.length).unwrap_or(0);
    let before: String = place.source_line.chars().take(column).collect();
    let behind: String = place.source_line.chars().skip(column + length).collect();
    let next = behind.split_whitespace().next().unwrap_or_default();
    before.trim_end().ends_with(',') || next.starts_with(',') || next.eq_ignore_ascii_case("from")
}

/// A saved query's name where a statement should be.
fn saved_query_hint(source: &str) -> Option<String> {
    let call = source.trim().trim_end_matches(';').trim_end();
    let mut words = call.split_whitespace();
    let name = words.next()?;
    built_in(name)?;
    let call = if words.all(|word| word.contains('=')) { call } else { name };
    Some(format!("it is a saved query: `\\run {call}` at the prompt, `tq query TRACE {name}`"))
}

/// What was probably meant where the parser stumbled.
fn keyword_hint(found: &str, place: &Place) -> Option<String> {
    let upper = found.to_uppercase();
    if place.source_line.trim_start().to_uppercase().starts_with("PRAGMA") {
        return Some("`DESCRIBE tasks` lists the columns of a table, `SHOW ALL` the settings".to_owned());
    }
    match upper.as_str() {
        "GROUP" | "ORDER" | "PARTITION" if stands_in_a_list(place) => {
            return Some(format!("`{found}` is a word of SQL; as a name it stands in double quotes: `\"{found}\"`"));
        }
        "GROUP" | "ORDER" | "PARTITION" => return Some(format!("write `{upper} BY`")),
        "SELECT" => return misplaced_select(place),
        "CONTAINS" => return Some("write `LIKE '%a%'`, or `contains(name, 'a')`".to_owned()),
        "WHERE" if place.source_line.to_uppercase().contains("GROUP BY") => {
            return Some("WHERE stands before GROUP BY; of groups, `HAVING` asks".to_owned());
        }
        "EXCLUDE" => {
            let hint = "a frame leaves out no rows; take the row's own value away: `sum(x) OVER (…) - x`";
            return Some(hint.to_owned());
        }
        "AS" if place.source_line.to_uppercase().contains("USING") => {
            return Some("USING names no table: `a` alone is the column of both sides, `t.a` that of one".to_owned());
        }
        "[" => return Some("a list stands in parentheses: `('a', 'b')`".to_owned()),
        "." => return Some("`SHOW TABLES` and `DESCRIBE tasks` in SQL, `\\d` at the prompt".to_owned()),
        "SUMMARIZE" => {
            let hint = "write what is wanted of each column: `SELECT min(duration), median(duration), max(duration) FROM tasks`";
            return Some(hint.to_owned());
        }
        "PIVOT" => {
            return Some(
                "write a column for each value: `count(*) FILTER (WHERE kind = 'kernel') AS kernels`".to_owned(),
            );
        }
        "END" if !place.source_line.to_uppercase().contains("CASE") => {
            return Some(
                "a task ends at its `finish`; `end` is a word of SQL, as a name it stands in double quotes".to_owned(),
            );
        }
        "HELP" => return Some("`tq --help` lists the commands of tq, `\\?` those of its prompt".to_owned()),
        _ => {}
    }
    if is_unit(found) {
        return Some(format!("a time is written `{found}(5)`"));
    }
    if found.len() < 3 || KEYWORDS.contains(&upper.as_str()) {
        return None;
    }
    nearest(&upper, KEYWORDS).map(did_you_mean)
}
