//! Splitting a text into statements, each with its place and its own source text.
//!
//! The text is cut into tokens first, so a semicolon in a string or a comment does not end a statement. Each statement is
//! then parsed from its own tokens, which remember where in the whole text they stood: errors name the line of the file.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::sql::parser::{DFParserBuilder, Statement as ParsedStatement};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::sql::balance::balance;
use crate::sql::dialect::TqDialect;
use crate::sql::errors::SqlError;
use crate::sql::stack::deep;
use crate::sql::statement::{Cursor, Statement};
use crate::sql::{limits, materialized, numbers, perfetto};

/// Splits a text into statements. Empty ones (and `INCLUDE PERFETTO MODULE …`) are left out; the first that does not parse is the error.
pub fn parse(text: &str) -> Result<Vec<Statement>, SqlError> {
    parse_first(text, usize::MAX)
}

/// The first statements of a text, at most `most`.
///
/// # Errors
/// As [`parse`], of those that are looked at.
pub fn parse_first(text: &str, most: usize) -> Result<Vec<Statement>, SqlError> {
    // Some editors put a mark before the first letter.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let source: Arc<str> = Arc::from(text);
    let tokens = Tokenizer::new(&TqDialect, text)
        .tokenize_with_location()
        .map_err(|error| SqlError::of_parser(&ParserError::from(error), &source))?;
    let mut cursor = Cursor::new(text);
    let mut statements = vec![];
    for tokens in tokens.split(|token| token.token == Token::SemiColon) {
        let mut spoken = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
        let Some(first) = spoken.next() else { continue };
        if statements.len() == most {
            break;
        }
        let last = spoken.next_back().unwrap_or(first);
        let Some(tokens) = perfetto::plain(tokens) else { continue };
        let parsed = numbers::decimal(tokens)
            .map(materialized::marked)
            .map(limits_for_fetches)
            .and_then(|tokens| limits::check(&tokens).and_then(|()| deep(|| parse_tokens(&tokens))));
        let parsed = parsed.map_err(|error| SqlError::of_parsing(&error, &source, last.span.end))?;
        let text = &text[cursor.offset(first.span.start)..cursor.offset(last.span.end)];
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

/// `FETCH FIRST (1 + 1) ROWS ONLY` and FETCH before OFFSET as `LIMIT (1 + 1)`: the parser takes a number alone, and OFFSET first.
fn limits_for_fetches(mut tokens: Cow<'_, [TokenWithSpan]>) -> Cow<'_, [TokenWithSpan]> {
    let spoken: Vec<usize> =
        (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    let is = |at: usize, keywords: &[Keyword]| matches!(spoken.get(at).map(|at| &tokens[*at].token), Some(Token::Word(word)) if keywords.contains(&word.keyword));
    let mut fetches = vec![];
    for at in 0..spoken.len() {
        if !is(at, &[Keyword::FETCH]) || !is(at + 1, &[Keyword::FIRST, Keyword::NEXT]) {
            continue;
        }
        let is_end = |at: &usize| is(*at, &[Keyword::ROW, Keyword::ROWS]) && is(*at + 1, &[Keyword::ONLY]);
        let Some(end) = (at + 2..spoken.len()).find(is_end) else { continue };
        let is_computed = spoken[at + 2..end].first().is_some_and(|first| tokens[*first].token == Token::LParen);
        if is_computed || is(end + 2, &[Keyword::OFFSET]) {
            fetches.push((spoken[at], spoken[at + 1], spoken[end], spoken[end + 1], end == at + 2));
        }
    }
    for (fetch, first, rows, only, is_one) in fetches.into_iter().rev() {
        let tokens = tokens.to_mut();
        tokens.drain(rows..=only);
        match is_one {
            true => tokens[first].token = Token::Number("1".to_owned(), false),
            false => drop(tokens.remove(first)),
        }
        tokens[fetch].token = Token::make_keyword("LIMIT");
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
        assert_eq!(
            split("SELECT 'ü'; SELECT 2 ;SELECT\n3"),
            [(1, "SELECT 'ü'"), (1, "SELECT 2"), (1, "SELECT\n3")].map(|(l, t)| (l, t.into()))
        );
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
