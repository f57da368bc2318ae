//! The header of a saved query: its first comment block, read line by line into [`Header`].
//!
//! ```text
//! -- title: The longest tasks                      what the query answers
//! -- topic: tasks                                  where lists put it
//! -- needs: tasks, links.kind=dependency           tables that must have rows
//! -- param limit: BIGINT = 20 -- how many to show
//! -- chart: bar x=duration y=name
//! -- metric duration: better=lower, tolerance=5%, by=name
//! -- expect rows: 1..10
//! --
//! ```
//!
//! A bare `--` ends it; prose may follow. A header decides whether a check in CI can fail, so nothing in it is skipped: an
//! unknown key, an extra word, or a line further below that looks like a header line is an error with its line number.

use std::path::{Component, Path};

use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::params::{Param, ParamType};
use super::{HeaderError, MetricTolerance};
use crate::nearest::nearest;
use crate::sql::dialect::TqDialect;
use crate::tables::{TABLES, VIEWS};

/// What a header says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    /// The question that the query answers; empty when it has none.
    pub title: String,
    /// Where lists put it; empty when it has none.
    pub topic: String,
    /// What the traces must hold.
    pub needs: Vec<Need>,
    /// Values that the caller may give.
    pub params: Vec<Param>,
    /// How the answer is drawn.
    pub charts: Vec<Chart>,
    /// What is compared with a baseline.
    pub metrics: Vec<Metric>,
    /// What must hold of the answer.
    pub expects: Vec<Expect>,
}

/// A table that must have rows: `links`, `links.kind=dependency` for rows with that value (`kind=a|b`: with one of them), or
/// `tasks.start` for rows that have any; `no links` must have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// Whether there must be no such row.
    pub absent: bool,
    /// A table or view of every session.
    pub table: String,
    /// A column and the values of which some row must have one; without values, any but NULL.
    pub with: Option<(String, Vec<String>)>,
}

/// How an answer is drawn: `bar x=duration y=name`, kept as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    /// The kind: the first word.
    pub kind: String,
    /// `key=value` pairs in order: columns by name, or `$name` for the parameter that names one; other values literally.
    pub options: Vec<(String, String)>,
    /// The line of the file, from 1.
    pub line: usize,
}

/// A column that is compared with a baseline.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// The column of the answer.
    pub column: String,
    /// Which direction is good.
    pub better: Better,
    /// How much worse it may get.
    pub tolerance: MetricTolerance,
    /// The columns whose values say which rows belong together; none = one row for each run.
    pub by: Vec<String>,
    /// The line of the file, from 1.
    pub line: usize,
}

/// Which direction of a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Times, waits.
    Lower,
    /// Rates, shares of useful work.
    Higher,
}

/// Something that must hold of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expect {
    /// What.
    pub what: Expectation,
    /// The line of the file, from 1.
    pub line: usize,
}

/// The forms of `expect`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// `expect no rows`.
    NoRows,
    /// `expect rows: 1..10`, both ends included; `1..`, `..10` and `5` are allowed.
    Rows {
        /// At least so many.
        least: u64,
        /// At most so many; `None` = any number.
        most: Option<u64>,
    },
    /// `expect every row: occupancy > 0.8`: SQL over the columns of the answer; NULL counts as false.
    EveryRow(String),
    /// `expect same as: longest.csv`: the answer as CSV, in a file beside the query.
    SameAs(String),
}

impl std::fmt::Display for Expectation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Expectation::NoRows => f.write_str("no rows"),
            Expectation::Rows { least, most: None } => write!(f, "rows: {least}.."),
            Expectation::Rows { least, most: Some(most) } if least == most => write!(f, "rows: {least}"),
            Expectation::Rows { least: 0, most: Some(most) } => write!(f, "rows: ..{most}"),
            Expectation::Rows { least, most: Some(most) } => write!(f, "rows: {least}..{most}"),
            Expectation::EveryRow(condition) => write!(f, "every row: {condition}"),
            Expectation::SameAs(file) => write!(f, "same as: {file}"),
        }
    }
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.absent {
            f.write_str("no ")?;
        }
        match &self.with {
            None => f.write_str(&self.table),
            Some((column, values)) if values.is_empty() => write!(f, "{}.{column}", self.table),
            Some((column, values)) => write!(f, "{}.{column}={}", self.table, values.join("|")),
        }
    }
}

/// The first words of header lines.
const KEYS: [&str; 7] = ["title", "topic", "needs", "param", "chart", "metric", "expect"];

/// Whether the first comment block of a text has a line of a header. Other files are plain SQL.
pub fn has_header(text: &str) -> bool {
    let mut block = comment_block(text);
    block.any(|(_, line)| key_of(line).is_some_and(|key| KEYS.contains(&key) && is_header_line(line)))
}

/// Reads the header of a text.
///
/// # Errors
/// The first line that is wrong.
pub fn parse(text: &str) -> Result<Header, HeaderError> {
    let mut header = Header::default();
    let mut end = 0;
    for (number, line) in comment_block(text).take_while(|(_, line)| !line.is_empty()) {
        end = number;
        header.read(line, number)?;
    }
    no_stray_lines(text, end)?;
    Ok(header)
}

/// The comment lines that a text begins with: their number from 1, and what stands behind `--`.
fn comment_block(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let block = lines.skip_while(|(_, line)| line.is_empty());
    block.map_while(|(number, line)| Some((number, line.strip_prefix("--")?.trim())))
}

/// The first word of a line: everything before a blank or a colon.
fn key_of(line: &str) -> Option<&str> {
    line.split([' ', '\t', ':']).next().filter(|word| !word.is_empty())
}

/// Whether a line that begins with a key also goes on like one: prose may begin with `expect` or `title` as well.
fn is_header_line(line: &str) -> bool {
    match key_of(line) {
        Some("param" | "metric") => line.contains(':'),
        Some("expect") => {
            let rest = line["expect".len()..].trim_start();
            rest.contains(':') || rest.starts_with("no rows")
        }
        Some(key) => line[key.len()..].trim_start().starts_with(':'),
        None => false,
    }
}

/// A header line below the header would be a comment: a check that never runs. A misspelt one is found as well.
fn no_stray_lines(text: &str, end: usize) -> Result<(), HeaderError> {
    for (index, line) in text.lines().enumerate().skip(end) {
        let Some(comment) = line.trim().strip_prefix("--") else { continue };
        let comment = comment.trim();
        let Some(word) = key_of(comment) else { continue };
        let is_meant = comment.contains(':') || comment.ends_with("no rows");
        let near = nearest(&word.to_lowercase(), KEYS).filter(|_| is_meant && word.len() >= 4);
        if let Some(key) = near.filter(|key| *key != word || is_header_line(comment)) {
            return Err(HeaderError::new(
                index + 1,
                format!("`{word}` stands below the header, where it has no effect"),
            )
            .hint(format!("the header ends with a bare `--`, a blank line or the SQL; move `{key}` above that")));
        }
    }
    Ok(())
}

impl Header {
    fn read(&mut self, line: &str, number: usize) -> Result<(), HeaderError> {
        let Some(key) = key_of(line) else {
            return Err(unknown_key("", number));
        };
        let rest = line[key.len()..].trim_start();
        let wrong = |message: String| HeaderError::new(number, message);
        match key {
            "title" => once(&mut self.title, key, after_colon(key, rest, number)?, number),
            "topic" => once(&mut self.topic, key, after_colon(key, rest, number)?, number),
            "needs" => {
                for need in after_colon(key, rest, number)?.split(',') {
                    self.needs.push(Need::parse(need.trim()).map_err(|error| error.at(number))?);
                }
                Ok(())
            }
            "chart" => {
                self.charts.push(Chart::parse(after_colon(key, rest, number)?, number)?);
                Ok(())
            }
            "param" => {
                let (name, rest) = named(key, rest, number)?;
                if self.params.iter().any(|param| param.name == name) {
                    return Err(wrong(format!("parameter `{name}` is declared twice")));
                }
                self.params.push(param(name, rest, number)?);
                Ok(())
            }
            "metric" => {
                let (column, rest) = named(key, rest, number)?;
                if self.metrics.iter().any(|metric| metric.column == column) {
                    return Err(wrong(format!("metric `{column}` is declared twice")));
                }
                self.metrics.push(Metric::parse(column, rest, number)?);
                Ok(())
            }
            "expect" => {
                self.expects.push(Expect { what: expectation(rest, number)?, line: number });
                Ok(())
            }
            other => Err(unknown_key(other, number)),
        }
    }
}

fn unknown_key(word: &str, line: usize) -> HeaderError {
    let near = nearest(&word.to_lowercase(), KEYS).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    HeaderError::new(line, format!("`{word}` is no key of a header{near}"))
        .hint(format!("a header has the keys {}; other comments go below a bare `--`", KEYS.join(", ")))
}

/// What stands behind the colon of `key: value`.
fn after_colon<'a>(key: &str, rest: &'a str, line: usize) -> Result<&'a str, HeaderError> {
    let value = rest.strip_prefix(':').map(str::trim);
    match value {
        Some("") => Err(HeaderError::new(line, format!("`{key}:` says nothing"))),
        Some(value) => Ok(value),
        None => Err(HeaderError::new(line, format!("`{key}` wants a colon: `-- {key}: …`"))),
    }
}

fn once(place: &mut String, key: &str, value: &str, line: usize) -> Result<(), HeaderError> {
    if !place.is_empty() {
        return Err(HeaderError::new(line, format!("a second `{key}:`")));
    }
    value.clone_into(place);
    Ok(())
}

/// `NAME: rest`.
fn named<'a>(key: &str, rest: &'a str, line: usize) -> Result<(&'a str, &'a str), HeaderError> {
    let example = match key {
        "param" => "-- param limit: BIGINT = 20 -- how many to show",
        _ => "-- metric duration: better=lower, tolerance=5%, by=name",
    };
    let parts = rest.split_once(':').map(|(name, rest)| (name.trim(), rest.trim()));
    match parts {
        Some((name, rest)) if !name.is_empty() && !rest.is_empty() => Ok((name.trim_matches('"'), rest)),
        _ => Err(HeaderError::new(line, format!("`{key}` wants a name and a colon"))
            .hint(format!("write it like `{example}`"))),
    }
}

impl Need {
    fn parse(text: &str) -> Result<Need, HeaderError> {
        let (absent, text) = text.strip_prefix("no ").map_or((false, text), |text| (true, text.trim_start()));
        let (path, values) = match text.split_once('=') {
            Some((path, values)) => (path.trim(), Some(values.split('|').map(|value| value.trim().trim_matches('\'')))),
            None => (text, None),
        };
        let (table, column) = path.split_once('.').map_or((path, None), |(table, column)| (table, Some(column)));
        let columns = columns_of(table).ok_or_else(|| {
            let names = TABLES.iter().map(|table| table.name).chain(VIEWS.iter().map(|view| view.name));
            let near = nearest(table, names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            HeaderError::new(0, format!("`needs` names `{table}`, which is no table{near}"))
                .hint("`tq tables` lists the tables of every session")
        })?;
        let with = match (column, values) {
            (None, None) => None,
            (Some(column), values) if columns.contains(&column) => {
                Some((column.to_owned(), values.into_iter().flatten().map(str::to_owned).collect()))
            }
            (Some(column), _) => {
                let near = nearest(column, columns.iter().copied());
                let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                return Err(HeaderError::new(0, format!("`needs`: table `{table}` has no column `{column}`{near}")));
            }
            _ => {
                return Err(HeaderError::new(0, format!("`needs`: cannot read `{text}`"))
                    .hint("write `links`, `links.kind=dependency` for rows with that value, or `tasks.start` for rows with any"));
            }
        };
        Ok(Need { absent, table: table.to_owned(), with })
    }
}

fn columns_of(table: &str) -> Option<Vec<&'static str>> {
    let of_table = TABLES.iter().find(|spec| spec.name == table);
    let of_view = || VIEWS.iter().find(|spec| spec.name == table);
    match of_table {
        Some(spec) => Some(spec.columns.iter().map(|column| column.name).collect()),
        None => of_view().map(|spec| spec.columns.iter().map(|(name, _)| *name).collect()),
    }
}

impl Chart {
    /// Reads the text after `chart:`.
    ///
    /// # Errors
    /// A word that is no `key=value`, or a key that is there twice.
    pub fn parse(text: &str, line: usize) -> Result<Chart, HeaderError> {
        let mut words = words(text, line)?.into_iter();
        let kind = words.next().unwrap_or_default();
        if kind.contains('=') {
            return Err(HeaderError::new(line, format!("`chart:` begins with a kind, not with `{kind}`"))
                .hint("write it like `-- chart: bar x=duration y=name`"));
        }
        let mut options: Vec<(String, String)> = Vec::new();
        for word in words {
            let pair = word.split_once('=').filter(|(key, value)| !key.is_empty() && !value.is_empty());
            let Some((key, value)) = pair else {
                return Err(HeaderError::new(line, format!("`chart: {kind}`: `{word}` is no `key=column`"))
                    .hint("write it like `-- chart: bar x=duration y=name`"));
            };
            if options.iter().any(|(known, _)| known == key) {
                return Err(HeaderError::new(line, format!("`chart: {kind}` has `{key}=` twice")));
            }
            options.push((key.to_owned(), value.to_owned()));
        }
        Ok(Chart { kind, options, line })
    }

    /// The value of a key.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

/// Words at blanks; quotes keep blanks in a word and are left out.
fn words(text: &str, line: usize) -> Result<Vec<String>, HeaderError> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut begun) = (String::new(), None, false);
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.push(c),
            None if c == '\'' || c == '"' => (quote, begun) = (Some(c), true),
            None if c.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            None => {
                word.push(c);
                begun = true;
            }
        }
    }
    if quote.is_some() {
        return Err(HeaderError::new(line, "a quote is not closed"));
    }
    if begun {
        words.push(word);
    }
    Ok(words)
}

/// `TYPE [= default] [-- text]`.
fn param(name: &str, text: &str, line: usize) -> Result<Param, HeaderError> {
    let example = "write it like `-- param limit: BIGINT = 20 -- how many to show`";
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !is_name {
        return Err(HeaderError::new(line, format!("`{name}` is no name of a parameter")).hint(example));
    }
    let (value_end, description) = match unquoted(text, "--") {
        Some(at) => (at, text[at + 2..].trim()),
        None => (text.len(), ""),
    };
    let declared = text[..value_end].trim();
    let (type_name, default) = match declared.split_once('=') {
        Some((type_name, default)) => (type_name.trim(), Some(default.trim())),
        None => (declared, None),
    };
    let param_type = ParamType::from_name(type_name).ok_or_else(|| {
        HeaderError::new(line, format!("parameter `{name}`: `{type_name}` is no type of a parameter"))
            .hint(format!("the types are {}; {example}", ParamType::NAMES.join(", ")))
    })?;
    if default == Some("") {
        return Err(HeaderError::new(line, format!("parameter `{name}` has no default behind `=`")).hint(example));
    }
    let default = default
        .map(|text| param_type.default(text))
        .transpose()
        .map_err(|why| HeaderError::new(line, format!("the default of parameter `{name}`: {why}")).hint(example))?;
    Ok(Param { name: name.to_owned(), param_type, default, description: description.to_owned(), line })
}

/// Where `wanted` stands outside of single quotes.
fn unquoted(text: &str, wanted: &str) -> Option<usize> {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        if c == '\'' {
            quoted = !quoted;
        } else if !quoted && text[at..].starts_with(wanted) {
            return Some(at);
        }
    }
    None
}

impl Metric {
    fn parse(column: &str, text: &str, line: usize) -> Result<Metric, HeaderError> {
        let wrong = |message: String| {
            HeaderError::new(line, format!("metric `{column}`: {message}"))
                .hint("write it like `-- metric duration: better=lower, tolerance=5%, by=name`")
        };
        let (mut better, mut tolerance, mut by) = (None, None, Vec::new());
        for pair in text.split(',').map(str::trim) {
            let Some((key, value)) = pair.split_once('=').map(|(key, value)| (key.trim(), value.trim())) else {
                return Err(wrong(format!("`{pair}` is no `key=value`")));
            };
            match key {
                "better" if better.is_some() => return Err(wrong("a second `better`".to_owned())),
                "better" => {
                    better = Some(match value {
                        "lower" => Better::Lower,
                        "higher" => Better::Higher,
                        _ => return Err(wrong(format!("better is `lower` or `higher`, not `{value}`"))),
                    });
                }
                "tolerance" if tolerance.is_some() => return Err(wrong("a second `tolerance`".to_owned())),
                "tolerance" => tolerance = Some(MetricTolerance::parse(value).map_err(wrong)?),
                "by" if value.is_empty() => return Err(wrong("`by` names no column".to_owned())),
                "by" => by.push(value.trim_matches('"').to_owned()),
                other => {
                    let near = nearest(other, ["better", "tolerance", "by"]);
                    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                    return Err(wrong(format!("`{other}` is no key{near}")));
                }
            }
        }
        let better = better.ok_or_else(|| wrong("it does not say which direction is better".to_owned()))?;
        Ok(Metric { column: column.to_owned(), better, tolerance: tolerance.unwrap_or_default(), by, line })
    }
}

fn expectation(text: &str, line: usize) -> Result<Expectation, HeaderError> {
    let wrong = |message: &str| {
        HeaderError::new(line, message).hint(
            "write `expect no rows`, `expect every row: occupancy > 0.8`, `expect rows: 1..10` or `expect same as: FILE.csv`",
        )
    };
    let (form, value) = match text.split_once(':') {
        Some((form, value)) => (form.trim(), Some(value.trim())),
        None => (text, None),
    };
    let form = form.split_whitespace().collect::<Vec<_>>().join(" ");
    match (form.as_str(), value) {
        ("no rows", None) => Ok(Expectation::NoRows),
        ("rows", Some(range)) => row_range(range).ok_or_else(|| wrong(&format!("`{range}` is no range of rows"))),
        ("every row", Some(condition)) if !condition.is_empty() => {
            is_condition(condition).map_err(|why| wrong(&format!("`every row: {condition}`: {why}")))?;
            Ok(Expectation::EveryRow(condition.to_owned()))
        }
        ("same as", Some(file)) if !file.is_empty() => match is_beside(file) {
            // `--bless` writes it: nothing else may be hit.
            true => Ok(Expectation::SameAs(file.to_owned())),
            false => Err(HeaderError::new(line, format!("`same as: {file}` is no CSV file beside the query"))
                .hint("name a file that ends in `.csv`, in the folder of the query or below it")),
        },
        _ => Err(wrong(&format!("`expect {text}` is no expectation"))),
    }
}

/// Whether a path is that of a CSV file in a folder or below it.
fn is_beside(file: &str) -> bool {
    let path = Path::new(file);
    let stays = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    stays && path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

fn row_range(text: &str) -> Option<Expectation> {
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (least, most) = match text.split_once("..") {
        None => (number(text)?, Some(number(text)?)),
        Some(("", "")) => return None,
        Some((least, "")) => (number(least)?, None),
        Some(("", most)) => (0, Some(number(most)?)),
        Some((least, most)) => (number(least)?, Some(number(most)?)),
    };
    most.is_none_or(|most| least <= most).then_some(Expectation::Rows { least, most })
}

/// Whether a text is one expression of SQL. What is in it shows when the check runs.
fn is_condition(text: &str) -> Result<(), String> {
    let said = |error: datafusion::sql::sqlparser::parser::ParserError| {
        let text = error.to_string();
        text.strip_prefix("sql parser error: ").unwrap_or(&text).to_owned()
    };
    let mut parser = Parser::new(&TqDialect).try_with_sql(text).map_err(said)?;
    parser.parse_expr().map_err(said)?;
    match parser.next_token().token {
        Token::EOF => Ok(()),
        other => Err(format!("`{other}` stands behind the condition")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::common::ScalarValue;

    fn error(header: &str) -> String {
        let error = parse(&format!("{header}\nSELECT 1")).unwrap_err();
        format!("{}: {}", error.line, error.message)
    }

    #[test]
    fn every_line_is_read() {
        let header = parse(
            "-- title: The longest tasks\n-- topic: tasks\n-- needs: tasks, links.kind=dependency | weak, no messages\n\
             -- param limit: BIGINT = 20 -- how many to show\n-- param name: TEXT = 'a -- b' -- x\n\
             -- chart: bar x=duration y=name title='two words'\n\
             -- metric duration: better=lower, tolerance=2.5%, by=name, by=kind\n\
             -- expect no rows\n-- expect every row: occupancy > 0.8\n-- expect rows: 1..10\n-- expect same as: longest.csv\n--\n\
             SELECT 1 -- expected: one",
        )
        .unwrap();
        assert_eq!((header.title.as_str(), header.topic.as_str()), ("The longest tasks", "tasks"));
        let needs: Vec<String> = header.needs.iter().map(ToString::to_string).collect();
        assert_eq!(needs, ["tasks", "links.kind=dependency|weak", "no messages"]);
        assert_eq!(header.params[0].default, Some(super::super::params::Given::Value(ScalarValue::Int64(Some(20)))));
        assert_eq!(header.params[0].description, "how many to show");
        assert_eq!(header.params[1].default, Some(super::super::params::Given::Value(ScalarValue::from("a -- b"))));
        assert_eq!((header.charts[0].kind.as_str(), header.charts[0].line), ("bar", 6));
        assert_eq!(header.charts[0].option("title"), Some("two words"));
        assert_eq!(header.metrics[0].tolerance, MetricTolerance::Percent(2.5));
        assert_eq!(header.metrics[0].by, ["name", "kind"]);
        let expects: Vec<String> = header.expects.iter().map(|expect| expect.what.to_string()).collect();
        assert_eq!(expects, ["no rows", "every row: occupancy > 0.8", "rows: 1..10", "same as: longest.csv"]);
    }

    #[test]
    fn a_typo_never_switches_a_check_off() {
        for (header, expected) in [
            ("-- expct no rows", "1: `expct` is no key of a header; did you mean `expect`?"),
            ("-- title: a\n-- Expect no rows", "2: `Expect` is no key of a header; did you mean `expect`?"),
            ("-- expect no row", "1: `expect no row` is no expectation"),
            ("-- expect: no rows", "1: `expect : no rows` is no expectation"),
            ("-- expect none", "1: `expect none` is no expectation"),
            ("-- expect rows: 10..1", "1: `10..1` is no range of rows"),
            ("-- expect rows: some", "1: `some` is no range of rows"),
            ("-- expect every row: x >", "1: `every row: x >`: Expected: an expression, found: EOF"),
            ("-- expect every row: x > 1 y", "1: `every row: x > 1 y`: `y` stands behind the condition"),
            ("-- title: a\n\n-- expect no rows", "3: `expect` stands below the header, where it has no effect"),
            ("-- title: a\n--\n-- expct no rows", "3: `expct` stands below the header, where it has no effect"),
            (
                "-- title: a\n--\n-- Metric x: better=lower",
                "3: `Metric` stands below the header, where it has no effect",
            ),
            ("-- title: a\n-- title: b", "2: a second `title:`"),
            ("-- title:", "1: `title:` says nothing"),
            ("-- topic tasks", "1: `topic` wants a colon: `-- topic: …`"),
            ("-- needs: taks", "1: `needs` names `taks`, which is no table; did you mean `tasks`?"),
            ("-- needs: links.knd=x", "1: `needs`: table `links` has no column `knd`; did you mean `kind`?"),
            ("-- needs: tasks links", "1: `needs` names `tasks links`, which is no table; did you mean `tasks`?"),
            ("-- param limit BIGINT", "1: `param` wants a name and a colon"),
            ("-- param limit: BIGNIT = 2", "1: parameter `limit`: `BIGNIT` is no type of a parameter"),
            ("-- param limit: BIGINT = two", "1: the default of parameter `limit`: `two` is no whole number"),
            (
                "-- param limit: BIGINT = 20 how many",
                "1: the default of parameter `limit`: `20 how many` is no whole number",
            ),
            ("-- chart: x=a", "1: `chart:` begins with a kind, not with `x=a`"),
            ("-- chart: bar x= y=b", "1: `chart: bar`: `x=` is no `key=column`"),
            ("-- metric duration: tolerance=5%", "1: metric `duration`: it does not say which direction is better"),
            ("-- metric duration: better=less", "1: metric `duration`: better is `lower` or `higher`, not `less`"),
            (
                "-- metric duration: better=lower, tolerence=5%",
                "1: metric `duration`: `tolerence` is no key; did you mean `tolerance`?",
            ),
            (
                "-- metric duration: better=lower, tolerance=5 %%",
                "1: metric `duration`: `5 %%` is no tolerance: write 5%, a number or a time like 2ms",
            ),
            (
                "-- metric duration: better=lower by=name",
                "1: metric `duration`: better is `lower` or `higher`, not `lower by=name`",
            ),
        ] {
            assert_eq!(error(header), expected, "{header}");
        }
    }

    #[test]
    fn prose_follows_a_bare_comment() {
        let text = "-- title: a\n--\n-- A task counts there with its first:\n-- the parameters: k, n. No rows\nSELECT 1 -- expected: one";
        assert_eq!(parse(text).unwrap().title, "a");
    }

    #[test]
    fn plain_sql_has_no_header() {
        for text in ["SELECT 1", "-- the longest tasks\nSELECT 1", "-- expect the unexpected\nSELECT 1", ""] {
            assert!(!has_header(text), "{text}");
        }
        for text in ["-- title: a\nSELECT 1", "\n-- what for\n-- expect no rows\nSELECT 1", "--metric a: b\nSELECT 1"] {
            assert!(has_header(text), "{text}");
        }
    }
}
