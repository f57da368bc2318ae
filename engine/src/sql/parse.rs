//! Splitting a text into statements, each with its place and its own source text.
//!
//! The text is cut into tokens first, so a semicolon in a string or a comment does not end a statement. Each statement is
//! then parsed from its own tokens, which remember where in the whole text they stood: errors name the line of the file.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::sql::parser::{DFParserBuilder, ResetStatement, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{Expr, LimitClause, ObjectName, Statement as SqlStatement, Value};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::sql::balance::balance;
use crate::sql::dialect::TqDialect;
use crate::sql::errors::SqlError;
use crate::sql::stack::deep;
use crate::sql::{limits, numbers, perfetto, question};

/// One statement of a text.
#[derive(Debug)]
pub struct Statement {
    /// What the parser made of it.
    pub parsed: ParsedStatement,
    /// The statement as written, from its first to its last token, without the semicolon.
    pub text: String,
    /// The line of the whole text in which it begins, counted from 1.
    pub line: u64,
    /// The whole text, in which errors point at a place.
    pub source: Arc<str>,
    /// Whether it is refused unless it only asks, by what is written and by what would be done.
    pub only_asks: bool,
}

impl Clone for Statement {
    fn clone(&self) -> Self {
        let parsed = deep(|| self.parsed.clone());
        let (text, source) = (self.text.clone(), Arc::clone(&self.source));
        Statement { parsed, text, line: self.line, source, only_asks: self.only_asks }
    }
}

impl Drop for Statement {
    fn drop(&mut self) {
        let nothing = ParsedStatement::Reset(ResetStatement::Variable(ObjectName(vec![])));
        let parsed = std::mem::replace(&mut self.parsed, nothing);
        deep(|| drop(parsed));
    }
}

impl Statement {
    /// Whether an answer of so many rows may be the beginning of a longer one: its LIMIT, a number or one of `params`, is reached.
    pub fn is_cut_at(&self, rows: usize, params: &[(String, ScalarValue)]) -> bool {
        let ParsedStatement::Statement(statement) = &self.parsed else { return false };
        let SqlStatement::Query(query) = statement.as_ref() else { return false };
        let Some(LimitClause::LimitOffset { limit: Some(Expr::Value(limit)), .. }) = &query.limit_clause else {
            return false;
        };
        let limit = match &limit.value {
            Value::Number(digits, _) => digits.parse().ok(),
            Value::Placeholder(name) => {
                let given = params.iter().find(|(given, _)| name.strip_prefix('$') == Some(given));
                given.and_then(|(_, value)| value.to_string().parse().ok())
            }
            _ => None,
        };
        limit == Some(rows)
    }

    /// Whether it asks for rows and changes nothing ([`question::is_question`]).
    pub fn is_question(&self) -> bool {
        question::is_question(&self.parsed)
    }
}

/// Splits a text into statements. Empty ones (and `INCLUDE PERFETTO MODULE …`) are left out; the first that does not parse is the error.
pub fn parse(text: &str) -> Result<Vec<Statement>, SqlError> {
    // Some editors put a mark before the first letter.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source: Arc<str> = Arc::from(text);
    let tokens = Tokenizer::new(&TqDialect, text)
        .tokenize_with_location()
        .map_err(|error| SqlError::of_parser(&ParserError::from(error), &source))?;
    let lines = Lines::new(text);
    let mut statements = vec![];
    for tokens in tokens.split(|token| token.token == Token::SemiColon) {
        let mut spoken = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
        let Some(first) = spoken.next() else { continue };
        let last = spoken.next_back().unwrap_or(first);
        let Some(tokens) = perfetto::plain(tokens) else { continue };
        let parsed = numbers::decimal(tokens)
            .map(without_materialized)
            .and_then(|tokens| limits::check(&tokens).and_then(|()| deep(|| parse_tokens(&tokens))));
        let parsed = parsed.map_err(|error| SqlError::of_parsing(&error, &source, last.span.end))?;
        let text = &text[lines.offset(first.span.start)..lines.offset(last.span.end)];
        statements.push(Statement {
            parsed,
            text: text.to_owned(),
            line: first.span.start.line,
            source: Arc::clone(&source),
            only_asks: false,
        });
    }
    Ok(statements)
}

/// `WITH a AS MATERIALIZED (…)` and `AS NOT MATERIALIZED (…)` without the advice, which says nothing of the answer and which the parser knows of
/// PostgreSQL alone.
fn without_materialized(mut tokens: Cow<'_, [TokenWithSpan]>) -> Cow<'_, [TokenWithSpan]> {
    let spoken: Vec<usize> =
        (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let is = |at: usize, keyword| matches!(&tokens[at].token, Token::Word(word) if word.keyword == keyword);
    let mut advice = vec![];
    for four in spoken.windows(4) {
        if is(four[0], Keyword::AS)
            && is(four[1], Keyword::NOT)
            && is(four[2], Keyword::MATERIALIZED)
            && tokens[four[3]].token == Token::LParen
        {
            advice.extend([four[1], four[2]]);
        }
        if is(four[0], Keyword::AS) && is(four[1], Keyword::MATERIALIZED) && tokens[four[2]].token == Token::LParen {
            advice.push(four[1]);
        }
    }
    for at in advice.into_iter().rev() {
        tokens.to_mut().remove(at);
    }
    tokens
}

fn parse_tokens(tokens: &[TokenWithSpan]) -> datafusion::common::Result<ParsedStatement> {
    let mut parser =
        DFParserBuilder::new(tokens.to_vec()).with_dialect(&TqDialect).with_recursion_limit(limits::PARSER).build()?;
    let mut statements = parser.parse_statements()?;
    match (statements.pop_front(), statements.is_empty()) {
        (Some(mut statement), true) => {
            balance(&mut statement);
            Ok(statement)
        }
        _ => datafusion::common::plan_err!("a statement ends with `;`"),
    }
}

/// Where the lines of a text begin.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(place, _)| place + 1);
        Lines { text, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// A line, counted from 1, without its end.
    pub(super) fn line(&self, number: u64) -> &'a str {
        let Some(start) = usize::try_from(number).ok().and_then(|number| self.starts.get(number.checked_sub(1)?))
        else {
            return "";
        };
        let line = self.text[*start..].split('\n').next().unwrap_or_default();
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// The byte at a place; columns count characters from 1.
    pub(super) fn offset(&self, place: Location) -> usize {
        let line = usize::try_from(place.line.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(start) = self.starts.get(line) else { return self.text.len() };
        let characters = usize::try_from(place.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let rest = &self.text[*start..];
        start + rest.char_indices().nth(characters).map_or(rest.len(), |(byte, _)| byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(u64, String)> {
        parse(text).unwrap().into_iter().map(|statement| (statement.line, statement.text.clone())).collect()
    }

    #[test]
    fn statements_know_their_text_and_line() {
        let text = "-- first; not yet\nSELECT 'a;b' ;\n\n;; /* ; */ SELECT\n  \"ü;\" FROM t -- end\n; EXPLAIN SELECT 1";
        let expected =
            [(2, "SELECT 'a;b'"), (4, "SELECT\n  \"ü;\" FROM t"), (6, "EXPLAIN SELECT 1")].map(|(l, t)| (l, t.into()));
        assert_eq!(split(text), expected);
        assert_eq!(split(""), []);
        assert_eq!(split(" ; -- nothing\n"), []);
        assert_eq!(split("SELECT $$;$$, E'\\';'"), [(1, "SELECT $$;$$, E'\\';'".to_owned())]);
    }

    #[test]
    fn errors_point_into_the_whole_text() {
        let error = parse("SELECT 1;\nSELECT ü FROM )").unwrap_err();
        let place = error.place.unwrap();
        assert_eq!((place.line, place.column), (2, 15), "{}", error.message);
        assert_eq!(place.source_line, "SELECT ü FROM )");
    }

    #[test]
    fn a_text_that_does_not_end() {
        let error = parse("SELECT 1;\nSELECT 'a").unwrap_err();
        let place = error.place.unwrap();
        assert_eq!((place.line, place.column), (2, 8), "{}", error.message);
    }

    #[test]
    fn a_statement_that_breaks_off() {
        let error = parse("SELECT 1 +").unwrap_err();
        let place = error.place.unwrap();
        assert_eq!((place.line, place.column), (1, 11), "{}", error.message);
        assert_eq!(error.message, "expected an expression, found the end of the statement");
    }
}
