//! `SHOW tq.time_unit`: the session's own settings.
//!
//! DataFusion looks settings up in its configuration and loses the prefix of an extension's entries (55.2), so it would
//! refuse these names. They are rows of the table `docs.settings` instead, and `SHOW` becomes a query on it.

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{Ident, Statement};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::nearest::nearest;
use crate::sql::diagnostic::error_at;
use crate::sql::dialect::TqDialect;

/// The length of a tick.
pub const TIME_UNIT: &str = "tq.time_unit";

const SETTINGS: [&str; 1] = [TIME_UNIT];

/// The query that answers `SHOW tq.…`; `None` for other variables, which DataFusion knows.
///
/// # Errors
/// A name that begins with `tq.` and is none of ours.
pub fn show(variable: &[Ident]) -> Result<Option<Statement>> {
    let name = variable.iter().map(|part| part.value.to_lowercase()).collect::<Vec<_>>().join(".");
    if !name.starts_with("tq.") {
        return Ok(None);
    }
    if !SETTINGS.contains(&name.as_str()) {
        let span = variable.last().map_or_else(Span::empty, |part| part.span);
        let hint = match nearest(&name, SETTINGS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there is {}", SETTINGS.map(|name| format!("`{name}`")).join(", ")),
        };
        return Err(error_at(span, format!("no setting `{name}`"), &hint));
    }
    let query = format!("SELECT name, value FROM docs.settings WHERE name = '{name}'");
    Ok(Parser::parse_sql(&TqDialect, &query)?.pop())
}
