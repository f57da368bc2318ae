//! Where in a statement stands what an error message speaks of.
//!
//! The planner knows the places of names. Other errors, above all those of running a query, only quote what they are about:
//! an expression, a text, the name of a function. The quoted tokens are looked for in the statement, and where they stand
//! once, that is the place; where they stand several times, no place is better than a wrong one.
//!
//! ```text
//! division by zero                          SELECT max(start / 0) FROM tasks       the only division
//!                                                            ^
//! occupancy: `lanes` must be at least 1     SELECT occupancy(start, finish, 0) …   the only call
//!                                                  ^^^^^^^^^
//! ```

use std::ops::Range;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::nearest::nearest;
use crate::sql::dialect::TqDialect;
use crate::sql::statement::{Lines, Statement};

/// A place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The line of the whole text, counted from 1.
    pub line: u64,
    /// The character of the line, counted from 1.
    pub column: u64,
    /// How many characters of the line are meant; at least 1.
    pub length: u64,
    /// The line.
    pub source_line: String,
}

/// The place between two others.
pub(super) fn place_at(source: &str, start: Location, end: Location) -> Place {
    let lines = Lines::new(source);
    let source_line = lines.line(start.line).to_owned();
    let rest = (source_line.chars().count() as u64 + 1).saturating_sub(start.column).max(1);
    let length = if end.line == start.line { end.column.saturating_sub(start.column) } else { rest };
    Place { line: start.line, column: start.column, length: length.clamp(1, rest), source_line }
}

/// The place of what a message quotes, if it occurs in the statement exactly once. Without a statement, all of `source` is searched.
pub(super) fn spoken_of(source: &str, statement: Option<&Statement>, message: &str) -> Option<Place> {
    let mut tokens = tokens(source)?;
    if let Some(statement) = statement {
        let lines = Lines::new(source);
        let line = lines.offset(Location { line: statement.line, column: 1 });
        let from = line + source[line..].find(&statement.text)?;
        let range = from..from + statement.text.len();
        tokens.retain(|token| range.contains(&lines.offset(token.span.start)));
    }
    let text = Spoken { tokens };
    let rows = match cast_text(message) {
        Some(value) => text.cast(value),
        None => text
            .quoted(message)
            .or_else(|| text.called(message))
            .or_else(|| text.division(message))
            .or_else(|| text.subquery(message))
            .or_else(|| text.clause(message)),
    }?;
    let (first, last) = (text.tokens.get(rows.start)?, text.tokens.get(rows.end - 1)?);
    Some(place_at(source, first.span.start, last.span.end))
}

/// A keyword that was misspelt and so taken for a name (`FROM tasks WHRE …` calls the table `WHRE`), which is why the parser
/// stumbled at `place`, right behind it: the word, its place and the keyword.
pub(super) fn misspelt_before(
    source: &str,
    place: &Place,
    keywords: &[&'static str],
) -> Option<(String, Place, &'static str)> {
    let tokens = tokens(source)?;
    let behind = |token: &TokenWithSpan| (token.span.start.line, token.span.start.column) < (place.line, place.column);
    let before = tokens.iter().rfind(|token| behind(token))?;
    let Token::Word(word) = &before.token else { return None };
    if word.quote_style.is_some() || word.keyword != Keyword::NoKeyword || word.value.len() < 3 {
        return None;
    }
    // A beginning is no misspelling: tables may well be called `with_gaps`.
    let alike = keywords.iter().copied().filter(|keyword| keyword.len().abs_diff(word.value.len()) <= 1);
    let keyword = nearest(&word.value, alike)?;
    Some((word.value.clone(), place_at(source, before.span.start, before.span.end), keyword))
}

/// The text of `'a' is no BIGINT`.
fn cast_text(message: &str) -> Option<&str> {
    message.strip_prefix('\'')?.split_once("' is no ").map(|(text, _)| text)
}

/// The tokens of a text without white space and comments.
fn tokens(text: &str) -> Option<Vec<TokenWithSpan>> {
    let mut tokens = Tokenizer::new(&TqDialect, text).tokenize_with_location().ok()?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
    Some(tokens)
}

/// The tokens of a statement.
struct Spoken {
    tokens: Vec<TokenWithSpan>,
}

impl Spoken {
    /// What stands between back quotes or single quotes, or behind words after which an expression or a text comes.
    fn quoted(&self, message: &str) -> Option<Range<usize>> {
        let second = message.ends_with(" twice");
        let in_back_quotes = message.split('`').skip(1).step_by(2);
        let overflow =
            message.strip_prefix("integer overflow in ").or_else(|| message.strip_prefix("too many digits in "));
        let expression = overflow.and_then(|rest| rest.split(": ").next());
        let pattern = message.strip_prefix("regex parse error:").and_then(|rest| rest.lines().nth(1)).map(str::trim);
        let in_quotes = message.split('\'').skip(1).step_by(2);
        in_back_quotes
            .chain(expression)
            .find_map(|phrase| self.phrase(phrase, second))
            .or_else(|| in_quotes.chain(pattern).find_map(|text| only(self.texts(text))))
    }

    /// Where these tokens stand together, once; with `second`, where they stand for the second time.
    fn phrase(&self, phrase: &str, second: bool) -> Option<Range<usize>> {
        let mut wanted = tokens(phrase)?;
        let mut found = self.all(&wanted);
        if found.is_empty() {
            // Messages name columns in full.
            while let Some(at) = wanted.iter().position(|token| token.token == Token::Period) {
                wanted.drain(at.saturating_sub(1)..=at);
            }
            found = self.all(&wanted);
        }
        if found.is_empty() {
            found = self.texts(phrase);
        }
        if second { found.into_iter().nth(1) } else { only(found) }
    }

    fn all(&self, wanted: &[TokenWithSpan]) -> Vec<Range<usize>> {
        let same =
            |window: &[TokenWithSpan]| window.iter().zip(wanted).all(|(one, other)| is_same(&one.token, &other.token));
        let width = wanted.len();
        let windows = self.tokens.windows(width.max(1)).enumerate().filter(|(_, window)| width > 0 && same(window));
        windows.map(|(at, _)| at..at + width).collect()
    }

    /// Texts in single quotes that are this one.
    fn texts(&self, text: &str) -> Vec<Range<usize>> {
        self.places(|tokens| matches!(&tokens[0].token, Token::SingleQuotedString(value) if value == text))
    }

    /// The call of the function with whose name a message begins: `busy: …`, `us takes …`, `ms(5) is …`.
    fn called(&self, message: &str) -> Option<Range<usize>> {
        let name = message.split([':', ' ', '(']).next()?;
        only(self.places(|tokens| match tokens {
            [name_token, next, ..] => is_word(&name_token.token, name) && next.token == Token::LParen,
            _ => false,
        }))
    }

    fn division(&self, message: &str) -> Option<Range<usize>> {
        let is_division = |tokens: &[TokenWithSpan]| matches!(tokens[0].token, Token::Div | Token::Mod);
        only((message == "division by zero").then(|| self.places(is_division))?)
    }

    /// Where this text is cast: the text itself, or whatever makes numbers of a column.
    fn cast(&self, text: &str) -> Option<Range<usize>> {
        let is_cast = |token: &Token| *token == Token::DoubleColon || is_word(token, "CAST");
        let casts = self.places(|tokens| is_cast(&tokens[0].token));
        let text = only(self.texts(text));
        // A text somewhere in a statement with casts need not be the one.
        match text {
            None => only(casts),
            Some(text) => {
                let is_near = |cast: &Range<usize>| cast.start + 2 == text.start || cast.start == text.end;
                (casts.is_empty() || casts.iter().any(is_near)).then_some(text)
            }
        }
    }

    fn subquery(&self, message: &str) -> Option<Range<usize>> {
        let begins = |tokens: &[TokenWithSpan]| match tokens {
            [open, word, ..] => {
                open.token == Token::LParen && (is_word(&word.token, "SELECT") || is_word(&word.token, "WITH"))
            }
            _ => false,
        };
        let from = only(message.starts_with("a subquery ").then(|| self.places(begins))?)?.start;
        let mut open = 0;
        let close = self.tokens[from..].iter().position(|token| {
            match token.token {
                Token::LParen => open += 1,
                Token::RParen => open -= 1,
                _ => {}
            }
            open == 0
        })?;
        Some(from..from + close + 1)
    }

    /// The keyword that a message is about: its first word in capitals.
    fn clause(&self, message: &str) -> Option<Range<usize>> {
        let message =
            message.strip_prefix("not supported: ").map(str::to_uppercase).unwrap_or_else(|| message.to_owned());
        let word = message.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
        let is_keyword = word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase());
        only(is_keyword.then(|| self.places(|tokens| is_word(&tokens[0].token, word)))?)
    }

    /// Single tokens, told by themselves and those behind them.
    fn places(&self, is_meant: impl Fn(&[TokenWithSpan]) -> bool) -> Vec<Range<usize>> {
        (0..self.tokens.len()).filter(|at| is_meant(&self.tokens[*at..])).map(|at| at..at + 1).collect()
    }
}

fn only(places: Vec<Range<usize>>) -> Option<Range<usize>> {
    let mut places = places.into_iter();
    let only = places.next()?;
    places.next().is_none().then_some(only)
}

fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

/// Words are the same whatever their case and quotes.
fn is_same(one: &Token, other: &Token) -> bool {
    match (one, other) {
        (Token::Word(one), Token::Word(other)) => one.value.eq_ignore_ascii_case(&other.value),
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the carets are under; `None` without carets.
    fn place(sql: &str, message: &str) -> Option<String> {
        let place = spoken_of(sql, None, message)?;
        let skipped = place.source_line.chars().skip(place.column as usize - 1);
        Some(skipped.take(place.length as usize).collect())
    }

    #[test]
    fn what_a_message_quotes_is_found() {
        let check = |sql: &str, message: &str, expected: Option<&str>| {
            assert_eq!(place(sql, message).as_deref(), expected, "{message} in {sql}");
        };
        check("SELECT a, b + 1 FROM t", "integer overflow in b + 1: 5 + 1", Some("b + 1"));
        check("SELECT t.b+1 FROM t", "integer overflow in t.b + 1: 5 + 1", Some("t.b+1"));
        check("SELECT b + 1, b + 1 FROM t", "integer overflow in b + 1: 5 + 1", None);
        check("SELECT x FROM t HAVING Start > 1", "HAVING has `t.start > 1`, which is not grouped", Some("Start > 1"));
        check("SELECT CAST('a' AS BIGINT)", "'a' is no BIGINT", Some("'a'"));
        check("SELECT CAST(a AS BIGINT)", "'a' is no BIGINT", Some("CAST"));
        check("SELECT a::BIGINT", "'a' is no BIGINT", Some("::"));
        check("SELECT a::BIGINT, b::BIGINT", "'a' is no BIGINT", None);
        check("SELECT 'a'::BIGINT", "'a' is no BIGINT", Some("'a'"));
        check("SELECT a > 'a'", "'a' is no BIGINT", Some("'a'"));
        check("SELECT CAST(b AS BIGINT) FROM t WHERE c = 'a'", "'a' is no BIGINT", None);
        check("SELECT x / y", "division by zero", Some("/"));
        check("SELECT x / y / z", "division by zero", None);
        check("SELECT 'a/b' -- a / b\n, x % y", "division by zero", Some("%"));
        check("SELECT busy, busy(1)", "busy: two numbers are needed", Some("busy"));
        check("SELECT ms(1e30)", "ms(1000) is more ticks than BIGINT holds", Some("ms"));
        check(
            "SELECT (SELECT max(a) FROM t), 1",
            "a subquery of one value has several rows",
            Some("(SELECT max(a) FROM t)"),
        );
        check("SELECT a FROM t LIMIT -1", "LIMIT must not be negative", Some("LIMIT"));
        check("SELECT * FROM t PIVOT (sum(x) FOR y IN (1))", "not supported: Pivot", Some("PIVOT"));
        check("SELECT regexp_like(a, '(')", "regex parse error:\n    (\n    ^\nerror: unclosed group", Some("'('"));
        check("SELECT a FROM t, t", "FROM has `t` twice", Some("t"));
        assert_eq!(spoken_of("SELECT a FROM t, t", None, "FROM has `t` twice").unwrap().column, 18);
        check("SELECT a", "nothing that is known", None);
        check("SELECT 'open", "`open`", None);
    }

    #[test]
    fn only_the_statement_itself_is_looked_at() {
        let source = "SELECT a / b;\nSELECT 1; SELECT ü, a / 0; SELECT a / c";
        let statements = crate::sql::parse(source).unwrap();
        let place = spoken_of(source, Some(&statements[2]), "division by zero").unwrap();
        assert_eq!((place.line, place.column), (2, 23));
    }

    #[test]
    fn keywords_that_were_taken_for_names() {
        let behind = |sql: &str, word: &str| {
            let column = sql.find(word).unwrap() as u64 + 1;
            let place = place_at(sql, Location { line: 1, column }, Location { line: 1, column });
            let (word, place, keyword) = misspelt_before(sql, &place, &["FROM", "WHERE", "WITH"])?;
            assert_eq!(place.length, word.len() as u64);
            Some(keyword)
        };
        assert_eq!(behind("SELECT * FROM tasks WHRE start > 1", "start"), Some("WHERE"));
        assert_eq!(behind("SELECT name FORM tasks", "tasks"), Some("FROM"));
        assert_eq!(behind("SELECT name FROM tasks ta start", "start"), None);
        assert_eq!(behind("SELECT name \"form\" tasks", "tasks"), None);
        assert_eq!(behind("tasks", "tasks"), None);
    }
}
