//! Saved queries: one `.sql` file, one statement, one question. The same file serves `tq query`, `tq report` and `tq check`.
//!
//! Life of a file: [`library::Library`] finds it by its name, in the directories of the user or among the built-in ones →
//! [`SavedQuery::parse`] reads the [`header`] and the statement, and requires every `$name` to be declared →
//! [`SavedQuery::bind`] turns arguments given as text into values → [`SavedQuery::unmet`] checks what the query needs
//! against a session.

pub(crate) mod built_in;
pub mod header;
pub mod library;
pub mod params;

use std::path::{Path, PathBuf};

use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use tq_udfs::ticks::Tick;

use crate::nearest::nearest;
use crate::paths::{held_by, read_text};
use crate::session::Session;
use crate::sql::dialect::TqDialect;
use crate::sql::{self, SqlError, Statement};
use crate::tables::{PROGRAM_TASKS, Table};
use crate::time::GivenTime;

pub use header::{Better, Chart, Expect, Expectation, Header, Metric, Need};
pub use library::Library;
pub use params::{Param, ParamType};

/// A saved query.
#[derive(Debug, Clone)]
pub struct SavedQuery {
    /// Its name: the stem of its file.
    pub name: String,
    /// Where it is from.
    pub origin: Origin,
    /// What its header says.
    pub header: Header,
    /// Its statement, which knows the whole text.
    pub statement: Statement,
}

/// Where a query is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The binary.
    BuiltIn,
    /// A file.
    File(PathBuf),
}

/// How much worse a metric may get.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricTolerance {
    /// `5%` of the baseline; what a metric has that says nothing.
    Percent(f64),
    /// A number in the unit of the column.
    Absolute(f64),
    /// A time.
    Time(GivenTime),
}

/// A line of a header that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct HeaderError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
    /// What to write.
    pub hint: Option<String>,
}

/// Why a saved query cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// Its file cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Its header or its statement is wrong.
    #[error("{file}: {error}")]
    Header {
        /// The file, as lists call it.
        file: String,
        /// What.
        error: HeaderError,
    },
    /// Its SQL does not parse.
    #[error("{file}: {error}")]
    Sql {
        /// The file, as lists call it.
        file: String,
        /// What.
        error: SqlError,
    },
}

/// Why a query has no values for its parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// No parameter has that name.
    #[error("`{query}` has no parameter `{name}`")]
    Unknown {
        /// The query.
        query: String,
        /// The name as given.
        name: String,
        /// The nearest one that it has.
        nearest: Option<String>,
        /// The names that it has.
        known: Vec<String>,
    },
    /// A value is of another type.
    #[error("parameter `{name}` of `{query}`: {why}")]
    Value {
        /// The query.
        query: String,
        /// The parameter.
        name: String,
        /// What is wrong with the value.
        why: String,
    },
    /// A parameter without default was not given.
    #[error("`{query}` needs a value for its parameter `{name}`")]
    Missing {
        /// The query.
        query: String,
        /// The parameter.
        name: String,
        /// Its type.
        param_type: ParamType,
    },
}

impl HeaderError {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> HeaderError {
        HeaderError { line, message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> HeaderError {
        self.hint = Some(hint.into());
        self
    }

    fn at(mut self, line: usize) -> HeaderError {
        self.line = line;
        self
    }
}

impl Default for MetricTolerance {
    fn default() -> Self {
        MetricTolerance::Percent(5.0)
    }
}

impl std::fmt::Display for MetricTolerance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MetricTolerance::Percent(percent) => write!(f, "{percent}%"),
            MetricTolerance::Absolute(number) => write!(f, "{number}"),
            MetricTolerance::Time(GivenTime::Ticks(ticks)) => write!(f, "{ticks} ticks"),
            MetricTolerance::Time(time) => {
                let ticks = time.ticks(Tick::Picosecond).unwrap_or(i64::MAX);
                f.write_str(&tq_udfs::ticks::time_text(ticks, Tick::Picosecond))
            }
        }
    }
}

impl MetricTolerance {
    /// From `5%`, a number in the unit of the column, or a time like `2ms`.
    ///
    /// # Errors
    /// A text that is none of these, or a value below 0.
    pub fn parse(text: &str) -> Result<MetricTolerance, String> {
        let wrong = || format!("`{text}` is no tolerance: write 5%, a number or a time like 2ms");
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        if let Some(percent) = text.strip_suffix('%') {
            return number(percent).map(MetricTolerance::Percent).ok_or_else(wrong);
        }
        if let Some(number) = number(text) {
            return Ok(MetricTolerance::Absolute(number));
        }
        match text.parse::<GivenTime>() {
            Ok(time) if time.ticks(Tick::Picosecond).is_some_and(|ticks| ticks >= 0) => Ok(MetricTolerance::Time(time)),
            _ => Err(wrong()),
        }
    }

    /// How far the value may be from the baseline's, in the unit of the column.
    pub fn allowed(self, base: f64, tick: Tick) -> f64 {
        match self {
            MetricTolerance::Percent(percent) => base.abs() * percent / 100.0,
            MetricTolerance::Absolute(number) => number,
            MetricTolerance::Time(time) => time.ticks(tick).unwrap_or(i64::MAX) as f64,
        }
    }
}

/// Bytes that a saved query, or a template of questions, may have: a parsed statement takes some 600 times the memory of dense
/// SQL, and a stranger's file is parsed before anything else is known of it.
pub const QUERY_BYTES_MAX: usize = 512 << 10;

impl SavedQuery {
    /// Reads the text of a saved query.
    ///
    /// # Errors
    /// More than [`QUERY_BYTES_MAX`], a wrong line of the header, SQL that does not parse, not exactly one statement, or a `$name` that is not declared.
    pub fn parse(name: &str, origin: Origin, text: &str) -> Result<SavedQuery, QueryError> {
        let file = origin.file(name);
        let wrong = |error| QueryError::Header { file: file.clone(), error };
        if text.len() > QUERY_BYTES_MAX {
            let what = format!("it is larger than {} KiB, which no question is", QUERY_BYTES_MAX >> 10);
            return Err(wrong(HeaderError::new(1, what).hint("put long lists into a table of the trace, and join it")));
        }
        let header = header::parse(text).map_err(wrong)?;
        // A second one is refused, and no further one is looked at.
        let mut statements =
            sql::parse_first(text, 2).map_err(|error| QueryError::Sql { file: file.clone(), error })?;
        if let Some(second) = statements.get(1) {
            let line = usize::try_from(second.line).unwrap_or(0);
            return Err(wrong(
                HeaderError::new(line, "a saved query is one statement, and this is the second")
                    .hint("one file answers one question: give it a file of its own, or `WITH` in the first"),
            ));
        }
        let Some(mut statement) = statements.pop() else {
            return Err(wrong(HeaderError::new(text.lines().count().max(1), "there is no statement below the header")));
        };
        if !statement.is_question() {
            let line = usize::try_from(statement.line).unwrap_or(0);
            return Err(wrong(
                HeaderError::new(line, "a saved query asks for rows, and this statement has none")
                    .hint("begin it with SELECT or WITH"),
            ));
        }
        // Its plan is checked to be a question as well, in every session.
        statement.only_asks = true;
        let query = SavedQuery { name: name.to_owned(), origin, header, statement };
        query.check_placeholders().map_err(wrong)?;
        Ok(query)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`SavedQuery::parse`], or the file cannot be read.
    pub fn read(path: &Path) -> Result<SavedQuery, QueryError> {
        let text = read_text(path).map_err(|source| QueryError::Io { path: path.to_owned(), source })?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        SavedQuery::parse(&name, Origin::File(path.to_owned()), &text)
    }

    /// Reads a file that was found in a folder: it must be a regular file in that folder, not a link that leads
    /// elsewhere.
    ///
    /// # Errors
    /// As [`SavedQuery::read`].
    pub fn read_in(folder: &Path, path: &Path) -> Result<SavedQuery, QueryError> {
        held_by(folder, path).map_err(|error| QueryError::Io { path: path.to_owned(), source: error.into() })?;
        SavedQuery::read(path)
    }

    /// The file as errors name it.
    pub fn file(&self) -> String {
        self.origin.file(&self.name)
    }

    /// The title, else the name.
    pub fn title(&self) -> &str {
        if self.header.title.is_empty() { &self.name } else { &self.header.title }
    }

    /// The values of the parameters: what is given, else the defaults.
    ///
    /// # Errors
    /// A name that is not declared, a value of another type, a parameter without any value.
    pub fn bind(&self, given: &[(String, String)], tick: Tick) -> Result<Vec<(String, ScalarValue)>, BindError> {
        let params = &self.header.params;
        for (name, _) in given {
            if !params.iter().any(|param| param.name == *name) {
                let known: Vec<String> = params.iter().map(|param| param.name.clone()).collect();
                let nearest = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
                return Err(BindError::Unknown { query: self.name.clone(), name: name.clone(), nearest, known });
            }
        }
        let value_of = |param: &Param| {
            let why = |why| BindError::Value { query: self.name.clone(), name: param.name.clone(), why };
            let text = given.iter().rev().find(|(name, _)| *name == param.name).map(|(_, text)| text);
            let value = match (text, &param.default) {
                (Some(text), _) => param.param_type.value(text).map_err(why)?,
                (None, Some(default)) => default.clone(),
                (None, None) => {
                    let (query, name) = (self.name.clone(), param.name.clone());
                    return Err(BindError::Missing { query, name, param_type: param.param_type });
                }
            };
            let value = value.value(tick).ok_or_else(|| why("the time does not fit a BIGINT".to_owned()))?;
            Ok((param.name.clone(), value))
        };
        params.iter().map(value_of).collect()
    }

    /// The needs of the query that a session does not meet.
    ///
    /// # Errors
    /// The session cannot be asked.
    pub async fn unmet(&self, session: &Session) -> Result<Vec<Need>, SqlError> {
        let mut unmet = Vec::new();
        for need in &self.header.needs {
            if session_has(session, need).await? == need.absent {
                unmet.push(need.clone());
            }
        }
        Ok(unmet)
    }

    /// Every `$name` is declared, and every declared one is used: a misspelt one would silently keep its default.
    fn check_placeholders(&self) -> Result<(), HeaderError> {
        let declared = &self.header.params;
        let mut used = placeholders(&self.statement.source);
        for expect in &self.header.expects {
            if let Expectation::EveryRow(condition) = &expect.what {
                used.extend(placeholders(condition).into_iter().map(|(name, _)| (name, expect.line)));
            }
        }
        for chart in &self.header.charts {
            let names = chart.options.iter().filter_map(|(_, value)| value.strip_prefix('$'));
            used.extend(names.map(|name| (name.to_owned(), chart.line)));
        }
        for (name, line) in &used {
            if !declared.iter().any(|param| param.name == *name) {
                let near = nearest(name, declared.iter().map(|param| param.name.as_str()));
                let near = near.map(|near| format!("; did you mean `${near}`?")).unwrap_or_default();
                return Err(HeaderError::new(*line, format!("`${name}` is not declared{near}"))
                    .hint(format!("declare it in the header: `-- param {name}: BIGINT = 20 -- what it does`")));
            }
        }
        match declared.iter().find(|param| !used.iter().any(|(name, _)| *name == param.name)) {
            Some(param) => {
                let name = &param.name;
                Err(HeaderError::new(param.line, format!("parameter `{name}` is not used"))
                    .hint(format!("its place in the SQL, or in the chart, is `${name}`")))
            }
            None => Ok(()),
        }
    }
}

async fn session_has(session: &Session, need: &Need) -> Result<bool, SqlError> {
    // The names are from our own tables; the values are the user's.
    let filter = match &need.with {
        Some((column, values)) if values.is_empty() => format!(" WHERE {column} IS NOT NULL"),
        Some((column, values)) => {
            let values: Vec<String> = values.iter().map(|value| format!("'{}'", value.replace('\'', "''"))).collect();
            format!(" WHERE CAST({column} AS VARCHAR) IN ({})", values.join(", "))
        }
        None => String::new(),
    };
    // Saved queries ask about the program: what a recorder wrote of itself is nothing to them.
    let table = if need.table == Table::Tasks.name() { PROGRAM_TASKS } else { need.table.as_str() };
    let text = format!("SELECT 1 FROM {table}{filter} LIMIT 1");
    Ok(session.sql(&text).await?.collect().await?.iter().any(|batch| batch.num_rows() > 0))
}

/// The `$name`s of a text of SQL and their lines, from 1. A text that cannot be cut into tokens has none.
pub fn placeholders(text: &str) -> Vec<(String, usize)> {
    let tokens = Tokenizer::new(&TqDialect, text).tokenize_with_location().unwrap_or_default();
    let name = |token: &Token| match token {
        Token::Placeholder(name) => name.strip_prefix('$').map(str::to_owned),
        _ => None,
    };
    let line = |line: u64| usize::try_from(line).unwrap_or(0);
    tokens.iter().filter_map(|at| Some((name(&at.token)?, line(at.span.start.line)))).collect()
}

impl Origin {
    fn file(&self, name: &str) -> String {
        match self {
            // Names of built-in queries have no blanks; what lines of a check call them (`busy time`) may.
            Origin::BuiltIn => format!("built-in {}.sql", name.replace(' ', "-")),
            Origin::File(path) => path.display().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<SavedQuery, String> {
        SavedQuery::parse("q", Origin::File("dir/q.sql".into()), text).map_err(|error| error.to_string())
    }

    #[test]
    fn one_statement_with_declared_parameters() {
        let text = "-- param limit: BIGINT = 20 -- how many\n-- param name: TEXT\nSELECT $limit, $name";
        let query = parse(text).unwrap();
        let given = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            query.bind(&pairs, Tick::Nanosecond).map_err(|error| error.to_string())
        };
        let limit = |limit: i64| ("limit".to_owned(), ScalarValue::Int64(Some(limit)));
        let name = |name: &str| ("name".to_owned(), ScalarValue::from(name));
        assert_eq!(given(&[("name", "a")]), Ok(vec![limit(20), name("a")]));
        assert_eq!(given(&[("name", "5"), ("limit", "3")]), Ok(vec![limit(3), name("5")]));
        assert_eq!(given(&[]), Err("`q` needs a value for its parameter `name`".to_owned()));
        assert_eq!(given(&[("nme", "a")]), Err("`q` has no parameter `nme`".to_owned()));
        assert_eq!(given(&[("limit", "x")]), Err("parameter `limit` of `q`: `x` is no whole number".to_owned()));
    }

    #[test]
    fn wrong_files() {
        for (text, expected) in [
            ("-- title: a\n", "dir/q.sql: line 1: there is no statement below the header"),
            (
                "-- title: a\nSELECT 1;\nSELECT 2",
                "dir/q.sql: line 3: a saved query is one statement, and this is the second",
            ),
            (
                "-- expect no rows\nCREATE TABLE t AS SELECT 1",
                "dir/q.sql: line 2: a saved query asks for rows, and this statement has none",
            ),
            (
                "-- expect same as: q.sql\nSELECT 1",
                "dir/q.sql: line 1: `same as: q.sql` is no CSV file beside the query",
            ),
            (
                "-- expect same as: ../q.csv\nSELECT 1",
                "dir/q.sql: line 1: `same as: ../q.csv` is no CSV file beside the query",
            ),
            ("-- title: a\nSELECT\n$x", "dir/q.sql: line 3: `$x` is not declared"),
            (
                "-- param n: BIGINT = 1\n-- expect every row: x > $m\nSELECT $n",
                "dir/q.sql: line 2: `$m` is not declared; did you mean `$n`?",
            ),
            ("-- chart: bar x=$m y=b\nSELECT 1", "dir/q.sql: line 1: `$m` is not declared"),
            ("-- param n: BIGINT = 1\nSELECT '$n'", "dir/q.sql: line 1: parameter `n` is not used"),
        ] {
            assert_eq!(parse(text).unwrap_err(), expected, "{text}");
        }
        assert!(parse("-- title: a\nSELECT FROM )").unwrap_err().starts_with("dir/q.sql: "));
    }

    #[test]
    fn a_mark_before_the_first_letter_is_no_text() {
        assert_eq!(parse("\u{feff}-- title: a\nSELECT 1").map(|query| query.header.title), Ok("a".to_owned()));
    }

    #[test]
    fn a_parameter_can_name_the_column_of_a_chart() {
        assert!(parse("-- param m: TEXT = a\n-- chart: bar x=$m y=b\nSELECT 1 AS a, 2 AS b").is_ok());
    }

    #[test]
    fn tolerances() {
        let allowed =
            |text: &str| MetricTolerance::parse(text).map(|tolerance| tolerance.allowed(-200.0, Tick::Picosecond));
        assert_eq!(allowed("5%"), Ok(10.0));
        assert_eq!(allowed("0.5"), Ok(0.5));
        assert_eq!(allowed("2ns"), Ok(2000.0));
        for wrong in ["", "%", "-1", "nan", "lots"] {
            assert!(allowed(wrong).is_err(), "{wrong}");
        }
    }
}
