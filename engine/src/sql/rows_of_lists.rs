//! Rows of a list that depends on the tables beside it, and their numbers.
//!
//! ```text
//! FROM t, generate_series(1, t.n) g            FROM t, LATERAL (SELECT unnest(generate_series(1, t.n)) AS value) g
//! FROM t, unnest(t.list) WITH ORDINALITY u     FROM t, LATERAL (SELECT unnest(t.list) AS unnest,
//!                                                unnest(generate_series(1, cardinality(t.list))) AS ordinality) u
//! ```
//! DataFusion (55.2) takes numbers for `generate_series` in FROM, and refuses WITH ORDINALITY. A series of numbers that are written out stays
//! with it: it is a stream and no list.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, Query, SetExpr, Statement, TableAlias, TableFactor, visit_expressions,
};
use datafusion::sql::sqlparser::parser::Parser;

use crate::sql::dialect::TqDialect;

/// Rewrites a table of FROM.
pub(super) fn rewrite(factor: &mut TableFactor) -> Result<()> {
    let (columns, alias, name) = match &*factor {
        TableFactor::Table { name, args: Some(call), alias, with_ordinality, .. } if is_series(&name.to_string()) => {
            match series(&name.to_string(), &call.args, *with_ordinality) {
                Some(columns) => (columns, alias, name.to_string().to_lowercase()),
                None => return Ok(()),
            }
        }
        TableFactor::Function { name, args, alias, with_ordinality, .. } if is_series(&name.to_string()) => {
            match series(&name.to_string(), args, *with_ordinality) {
                Some(columns) => (columns, alias, name.to_string().to_lowercase()),
                None => return Ok(()),
            }
        }
        TableFactor::UNNEST { array_exprs, alias, with_ordinality: true, with_offset: false, .. } => {
            let [list] = array_exprs.as_slice() else { return Ok(()) };
            (numbered(&format!("{list}"), "unnest"), alias, "unnest".to_owned())
        }
        _ => return Ok(()),
    };
    let alias = alias.clone().unwrap_or_else(|| TableAlias {
        explicit: false,
        name: Ident::new(name),
        columns: vec![],
        at: None,
    });
    *factor = TableFactor::Derived { lateral: true, subquery: parsed(&columns)?, alias: Some(alias), sample: None };
    Ok(())
}

fn is_series(name: &str) -> bool {
    ["generate_series", "range"].iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The columns of a series; `None` for one that DataFusion answers.
fn series(name: &str, arguments: &[FunctionArg], with_ordinality: bool) -> Option<String> {
    let arguments: Vec<&Expr> = arguments
        .iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let depends = arguments.iter().any(|expr| {
        visit_expressions(*expr, |part| match part {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
        .is_break()
    });
    let arguments: Vec<String> = arguments.into_iter().map(ToString::to_string).collect();
    let list = format!("{name}({})", arguments.join(", "));
    match (with_ordinality, depends) {
        (true, _) => Some(numbered(&list, "value")),
        (false, true) => Some(format!("unnest({list}) AS value")),
        (false, false) => None,
    }
}

/// Elements of a list and their numbers, from 1.
fn numbered(list: &str, column: &str) -> String {
    format!(
        "unnest({list}) AS \"{column}\", unnest(generate_series(1, CAST(cardinality({list}) AS BIGINT))) AS ordinality"
    )
}

fn parsed(columns: &str) -> Result<Box<Query>> {
    let mut statements = Parser::parse_sql(&TqDialect, &format!("SELECT {columns}"))
        .map_err(|error| DataFusionError::SQL(Box::new(error), None))?;
    match statements.pop() {
        Some(Statement::Query(query)) if matches!(query.body.as_ref(), SetExpr::Select(_)) => Ok(query),
        _ => plan_err!("a list in FROM is no query"),
    }
}
