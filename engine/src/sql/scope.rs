//! Which names a statement gives to relations of its own (`WITH`), at each place of it.
//!
//! ```text
//! WITH a AS (… here: nothing …), b AS (… here: a …) SELECT … here: a, b … (WITH c AS (…) … here: a, b, c …)
//! WITH RECURSIVE a AS (… here: a …) …
//! ```

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{ObjectName, Query, Select, Spanned, TableFactor, TableWithJoins};

use crate::sql::errors::error_at;

/// Refuses two tables of one name from different schemas (`FROM t, s.t`), as PostgreSQL does: `t.a` would be a column of either,
/// and DataFusion (55.2) takes the first without a word.
pub(super) fn refuse_same_names(select: &Select) -> Result<()> {
    let mut known: Vec<&ObjectName> = Vec::new();
    let mut parts: Vec<&TableWithJoins> = select.from.iter().rev().collect();
    while let Some(part) = parts.pop() {
        for factor in std::iter::once(&part.relation).chain(part.joins.iter().map(|join| &join.relation)) {
            match factor {
                TableFactor::NestedJoin { table_with_joins, alias: None } => parts.push(table_with_joins),
                TableFactor::Table { name, alias: None, args: None, .. } => {
                    let last = |name: &ObjectName| name.0.last().map(|part| part.to_string().to_lowercase());
                    let is_same = |other: &&&ObjectName| last(other) == last(name) && other.0.len() != name.0.len();
                    if let Some(other) = known.iter().find(is_same) {
                        return Err(error_at(
                            name.span(),
                            format!("FROM has `{}` twice: `{other}` and `{name}`", last(name).unwrap_or_default()),
                            &format!("call one of them otherwise: `{name} AS other`"),
                        ));
                    }
                    known.push(name);
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The queries around a place, outermost first. A visitor tells it which it enters and leaves.
#[derive(Debug, Default)]
pub(super) struct Scopes(Vec<Scope>);

#[derive(Debug)]
struct Scope {
    /// What its WITH names, in order.
    names: Vec<String>,
    /// How many of them can be seen where the visitor is.
    seen: usize,
}

impl Scopes {
    /// Before the parts of a query are visited: first the queries of its WITH, in order.
    pub(super) fn enter(&mut self, query: &Query) {
        let with = query.with.as_ref();
        let tables = with.map_or(&[][..], |with| &with.cte_tables);
        let names: Vec<String> = tables.iter().map(|table| table.alias.name.value.to_lowercase()).collect();
        let seen = if with.is_some_and(|with| with.recursive) { names.len() } else { 0 };
        self.0.push(Scope { names, seen });
    }

    /// After the parts of a query were visited.
    pub(super) fn leave(&mut self) {
        self.0.pop();
        if let Some(around) = self.0.last_mut() {
            // Until all names are seen, what is left is the query behind the next one.
            around.seen = (around.seen + 1).min(around.names.len());
        }
    }

    /// Whether `name` is a relation of the statement here.
    pub(super) fn names(&self, name: &str) -> bool {
        self.0.iter().any(|scope| scope.names[..scope.seen].iter().any(|known| known == name))
    }
}
