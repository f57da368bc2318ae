//! How large a statement is when what it names is written out.
//!
//! A CTE is planned as often as it is named, so a few lines may stand for any number of tables, and a CUBE for any number
//! of groupings:
//!
//! ```text
//! WITH a AS (SELECT …), b AS (SELECT … FROM a JOIN a AS x …), c AS (SELECT … FROM b JOIN b AS x …)    1, 2, 4, …
//! GROUP BY CUBE (a, b, c)                                                                              8 groupings
//! ```
//! Planning cannot be stopped, so both are counted before. Tables of a subquery that is a value or a condition count twice: planning looks at
//! such a subquery again for each one around it.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::parser::{CopyToSource, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{Expr, ObjectName, Query, Spanned, Visit, Visitor};
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::sql::diagnostic::error_at;

/// Tables of a statement, those of a CTE as often as it is named.
const TABLES: u64 = 4096;
/// Columns of a CUBE: DataFusion takes 2¹² groupings.
const CUBE: usize = 12;

/// Refuses a statement that stands for too much.
pub(super) fn check(statement: &ParsedStatement) -> Result<()> {
    match statement {
        ParsedStatement::Statement(statement) => look(statement.as_ref()),
        ParsedStatement::Explain(explain) => check(&explain.statement),
        ParsedStatement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => look(query.as_ref()),
            CopyToSource::Relation(_) => Ok(()),
        },
        ParsedStatement::CreateExternalTable(_) | ParsedStatement::Reset(_) => Ok(()),
    }
}

fn look(part: &impl Visit) -> Result<()> {
    match part.visit(&mut Expansion::default()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

#[derive(Default)]
struct Expansion {
    /// The queries around the place where the visitor is, outermost first.
    around: Vec<Expanded>,
    /// Those that are values or conditions.
    within_expressions: HashSet<*const Query>,
}

/// A query.
struct Expanded {
    tables: u64,
    /// What its WITH names, in order.
    names: Vec<String>,
    /// How many tables each stands for, as far as the visitor has come.
    known: Vec<u64>,
}

impl Expansion {
    fn tables_of(&self, name: &ObjectName) -> u64 {
        let [part] = name.0.as_slice() else { return 1 };
        let Some(name) = part.as_ident().map(|name| name.value.to_lowercase()) else { return 1 };
        let of = |query: &Expanded| {
            query.names.iter().zip(&query.known).find(|(known, _)| **known == name).map(|(_, tables)| *tables)
        };
        self.around.iter().rev().find_map(of).unwrap_or(1)
    }

    /// Adds to the tables of the query at hand.
    fn add(&mut self, tables: u64, place: Span) -> ControlFlow<DataFusionError> {
        let Some(query) = self.around.last_mut() else { return ControlFlow::Continue(()) };
        query.tables = query.tables.saturating_add(tables);
        if query.tables <= TABLES {
            return ControlFlow::Continue(());
        }
        let message = format!(
            "more than {TABLES} tables, those of a WITH as often as it is named, and those of values and conditions twice"
        );
        let hint = format!("{TABLES} is the limit; name what is between less often, or keep it by `CREATE TABLE … AS`");
        ControlFlow::Break(error_at(place, message, &hint))
    }
}

impl Visitor for Expansion {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<DataFusionError> {
        let ctes = query.with.iter().flat_map(|with| &with.cte_tables);
        let names = ctes.map(|cte| cte.alias.name.value.to_lowercase()).collect();
        self.around.push(Expanded { tables: 0, names, known: Vec::new() });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<DataFusionError> {
        let tables = self.around.pop().map_or(0, |query| query.tables);
        if let Some(around) = self.around.last_mut()
            && around.known.len() < around.names.len()
        {
            // The queries of a WITH come first, in order.
            around.known.push(tables.max(1));
            return ControlFlow::Continue(());
        }
        let is_within = self.within_expressions.remove(&std::ptr::from_ref(query));
        self.add(if is_within { tables.saturating_mul(2) } else { tables }, query.span())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<DataFusionError> {
        self.add(self.tables_of(name), name.span())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<DataFusionError> {
        if let Expr::Subquery(subquery) | Expr::Exists { subquery, .. } | Expr::InSubquery { subquery, .. } = expr {
            self.within_expressions.insert(std::ptr::from_ref(subquery.as_ref()));
        }
        match expr {
            Expr::Cube(columns) if columns.len() > CUBE => {
                let message = format!("more than {CUBE} columns in one CUBE");
                let hint = format!(
                    "{CUBE} is the limit, with {} groupings; name those that you want by `GROUPING SETS`",
                    1 << CUBE
                );
                ControlFlow::Break(error_at(expr.span(), message, &hint))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse;

    fn message(sql: &str) -> Option<String> {
        let statement = parse(sql).unwrap().remove(0);
        check(&statement.parsed).err().map(|error| error.strip_backtrace())
    }

    /// `WITH c0 AS (SELECT 1 AS x), c1 AS (…), …`, each made of the one before.
    fn chain(length: usize, of: impl Fn(&str) -> String) -> String {
        let ctes: Vec<String> = (1..=length).map(|at| format!("c{at} AS ({})", of(&format!("c{}", at - 1)))).collect();
        format!("WITH c0 AS (SELECT 1 AS x), {} SELECT * FROM c{length}", ctes.join(", "))
    }

    #[test]
    fn what_doubles_is_counted_before_it_is_planned() {
        type OfOne = fn(&str) -> String;
        let doubled: [(&str, usize, OfOne); 5] = [
            ("a join", 11, |c| format!("SELECT a.x FROM {c} a JOIN {c} b ON a.x = b.x")),
            ("a union", 11, |c| format!("SELECT x FROM {c} UNION ALL SELECT x FROM {c}")),
            ("values", 5, |c| format!("SELECT (SELECT max(x) FROM {c}) + (SELECT min(x) FROM {c}) AS x")),
            ("a condition", 7, |c| format!("SELECT x FROM {c} WHERE x IN (SELECT x FROM {c})")),
            ("a WITH within", 11, |c| format!("WITH d AS (SELECT x FROM {c}) SELECT a.x FROM d a, d b")),
        ];
        for (what, most, of) in doubled {
            assert_eq!(message(&chain(most, of)), None, "{what}");
            for length in [13, 100] {
                let told = message(&chain(length, of)).unwrap_or_default();
                assert!(told.contains("more than 4096 tables"), "{what}: {told}");
                assert!(message(&format!("EXPLAIN {}", chain(length, of))).is_some(), "{what}");
            }
        }
        // A name of another place, and one that is not said twice, double nothing.
        assert_eq!(message(&chain(400, |c| format!("SELECT x FROM {c}"))), None);
        let recursive =
            "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 9) SELECT * FROM r, r AS s";
        assert_eq!(message(recursive), None);
    }

    #[test]
    fn a_cube_has_few_columns() {
        let cube = |columns: usize| format!("SELECT 1 FROM t GROUP BY CUBE ({})", vec!["a"; columns].join(", "));
        assert_eq!(message(&cube(12)), None);
        assert!(message(&cube(13)).unwrap_or_default().contains("more than 12 columns in one CUBE"));
    }
}
