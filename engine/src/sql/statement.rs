//! A statement: what the parser made of it, and where in which text it stands.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::sql::parser::{CopyToSource, ResetStatement, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, LimitClause, ObjectName, SetExpr, Statement as SqlStatement, Value, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::tokenizer::Location;

use crate::sql::question;
use crate::sql::stack::deep;

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
    /// Whether an answer of `rows` rows may be the beginning of a longer one: it is as long as its LIMIT, or as the rank that its QUALIFY
    /// allows, each a number or one of `params`.
    pub fn is_cut_at(&self, rows: usize, params: &[(String, ScalarValue)]) -> bool {
        let ParsedStatement::Statement(statement) = &self.parsed else { return false };
        let SqlStatement::Query(query) = statement.as_ref() else { return false };
        let number = |expr: &Expr| -> Option<usize> {
            let Expr::Value(value) = expr else { return None };
            match &value.value {
                Value::Number(digits, _) => digits.parse().ok(),
                Value::Placeholder(name) => {
                    let given = params.iter().find(|(given, _)| name.strip_prefix('$') == Some(given));
                    given.and_then(|(_, value)| value.to_string().parse().ok())
                }
                _ => None,
            }
        };
        let by_limit = match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit: Some(limit), .. }) => number(limit) == Some(rows),
            _ => false,
        };
        // Each rank has a row at least, in each partition.
        let by_rank = match query.body.as_ref() {
            SetExpr::Select(select) => match &select.qualify {
                Some(Expr::BinaryOp { op: BinaryOperator::LtEq, right, .. }) => {
                    number(right).is_none_or(|rank| rows >= rank)
                }
                qualify => qualify.is_some(),
            },
            _ => false,
        };
        by_limit || by_rank
    }

    /// Whether it asks for rows and changes nothing ([`question::is_question`]).
    pub fn is_question(&self) -> bool {
        question::is_question(&self.parsed)
    }
}

/// Goes through a text from the front to the back, so that many places on one line are not each counted from its beginning.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    lines: Lines<'a>,
    place: Location,
    offset: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Cursor { lines: Lines::new(text), place: Location { line: 1, column: 1 }, offset: 0 }
    }

    /// The byte at a place, which is not before the one that was asked for last.
    pub(super) fn offset(&mut self, place: Location) -> usize {
        let is_near = place.line == self.place.line && place.column >= self.place.column;
        self.offset = match is_near {
            true => self.offset + bytes_of(&self.lines.text[self.offset..], place.column - self.place.column),
            false => self.lines.offset(place),
        };
        self.place = place;
        self.offset
    }
}

/// Visits the query of a statement, of one that is explained, or of one whose rows are copied, until the visitor breaks.
pub(super) fn walk(statement: &mut ParsedStatement, visitor: &mut impl VisitorMut) {
    let _breaks_when_done = match statement {
        ParsedStatement::Statement(statement) => statement.visit(visitor).is_break(),
        ParsedStatement::Explain(explain) => return walk(&mut explain.statement, visitor),
        ParsedStatement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(visitor).is_break(),
            CopyToSource::Relation(_) => return,
        },
        ParsedStatement::CreateExternalTable(_) | ParsedStatement::Reset(_) => return,
    };
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
        start + bytes_of(&self.text[*start..], place.column.saturating_sub(1))
    }
}

/// The bytes of the first characters of a text.
fn bytes_of(text: &str, characters: u64) -> usize {
    let characters = usize::try_from(characters).unwrap_or(usize::MAX);
    text.char_indices().nth(characters).map_or(text.len(), |(byte, _)| byte)
}
