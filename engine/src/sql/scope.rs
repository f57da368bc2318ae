//! Which names a statement gives to relations of its own (`WITH`), at each place of it.
//!
//! ```text
//! WITH a AS (… here: nothing …), b AS (… here: a …) SELECT … here: a, b … (WITH c AS (…) … here: a, b, c …)
//! WITH RECURSIVE a AS (… here: a …) …
//! ```

use datafusion::sql::sqlparser::ast::Query;

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
