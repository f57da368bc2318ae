//! Which names a statement gives to relations of its own (`WITH`), at each place of it.
//!
//! ```text
//! WITH a AS (… here: nothing …), b AS (… here: a …) SELECT … here: a, b … (WITH c AS (…) … here: a, b, c …)
//! WITH RECURSIVE a AS (… here: a …) …
//! ```
//!
//! A name that stands for something else already gets one of its own, since DataFusion (55.2) refuses it: of
//!
//! ```text
//! WITH a AS (…) SELECT … FROM (WITH a AS (SELECT … FROM a) SELECT a.x FROM a)
//! ```
//!
//! the inner query becomes `WITH a¹ AS (SELECT … FROM a) SELECT a.x FROM a¹ AS a`. A query that draws random numbers is asked at each place
//! that names it, and would draw others there: two places are refused, unless it is MATERIALIZED.
//!
//! Of a UNION in WITH RECURSIVE DataFusion takes the two branches, and passes over a WITH, ORDER BY and LIMIT around them without a word: what
//! does not name itself becomes `SELECT * FROM (…)`, what does is refused.

use std::ops::ControlFlow;

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{
    Function, Ident, ObjectName, Query, Select, SetExpr, SetOperator, Spanned, TableAlias, TableFactor, TableWithJoins,
    Visit, visit_relations,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::sql::diagnostic::error_at;
use crate::sql::materialized::is_marked;
use crate::sql::random::RANDOM_FUNCTIONS;
use crate::sql::rows;

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

/// A query of WITH RECURSIVE as DataFusion takes all of it, or why it cannot be.
fn recursive(name: &str, query: &mut Box<Query>) -> Result<()> {
    let SetExpr::SetOperation { op: SetOperator::Union, left, .. } = query.body.as_ref() else {
        return match place_of(name, query) {
            Some(place) => {
                let what = format!("`{name}` names itself, and is no UNION");
                Err(error_at(place, what, "a recursive query is `first rows UNION ALL SELECT … FROM itself`"))
            }
            None => Ok(()),
        };
    };
    let (in_first, is_bare) = (
        place_of(name, left),
        query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none(),
    );
    if let Some(place) = in_first {
        let what = format!("`{name}` names itself before the last UNION");
        return Err(error_at(place, what, "the branches before it are the rows to begin with"));
    }
    match place_of(name, query) {
        Some(place) if !is_bare => {
            let what = format!("WITH, ORDER BY or LIMIT in the recursive query `{name}`");
            let hint =
                format!("put WITH before it, ORDER BY and LIMIT where `{name}` is asked, and what ends it into WHERE");
            Err(error_at(place, what, &hint))
        }
        None if !is_bare => {
            let all = rows::over(query.clone(), vec![], "SELECT * FROM x", |_| ())?;
            *query = all;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Where a part of a statement names a relation.
fn place_of(name: &str, part: &impl Visit) -> Option<Span> {
    let flow = visit_relations(part, |relation: &ObjectName| match relation.0.as_slice() {
        [part] if part.as_ident().is_some_and(|ident| normal(ident) == name) => ControlFlow::Break(relation.span()),
        _ => ControlFlow::Continue(()),
    });
    flow.break_value()
}

/// As DataFusion makes names of identifiers.
pub(super) fn normal(ident: &Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

/// The queries around a place, outermost first. A visitor tells it which it enters and leaves.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    queries: Vec<Scope>,
    /// How many names were given.
    given: usize,
}

#[derive(Debug)]
struct Scope {
    /// What its WITH names, in order.
    tables: Vec<Named>,
    /// In the query of which of them the visitor is; behind the last one, in the query itself.
    current: usize,
    is_recursive: bool,
}

/// A query of WITH.
#[derive(Debug)]
struct Named {
    name: String,
    /// What it is called instead.
    given: Option<String>,
    span: Span,
    /// The function that it draws with.
    draws: Option<String>,
    /// How many places name it, but for itself.
    places: usize,
    /// Whether all places have the rows that are drawn first.
    is_computed_once: bool,
}

impl Scopes {
    /// Whether the visitor is in a query within another.
    pub(super) fn is_nested(&self) -> bool {
        self.queries.len() > 1
    }

    /// Before the parts of a query are visited: first the queries of its WITH, in order.
    pub(super) fn enter(&mut self, query: &mut Query) -> Result<()> {
        let is_recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        let mut tables: Vec<Named> = vec![];
        for table in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            let (name, span) = (normal(&table.alias.name), table.alias.name.span);
            if tables.iter().any(|other| other.name == name) {
                return Err(error_at(
                    span,
                    format!("WITH names `{name}` twice"),
                    "each of its queries has a name of its own",
                ));
            }
            let given = self.find(&name).is_some().then(|| {
                self.given += 1;
                // Nobody types this character.
                format!("{name}\u{1}{}", self.given)
            });
            if let Some(given) = &given {
                table.alias.name = Ident { value: given.clone(), quote_style: Some('"'), span };
            }
            if is_recursive {
                recursive(&name, &mut table.query)?;
            }
            let is_computed_once = is_marked(&table.query);
            tables.push(Named { name, given, span, draws: None, places: 0, is_computed_once });
        }
        self.queries.push(Scope { tables, current: 0, is_recursive });
        Ok(())
    }

    /// After the parts of a query were visited.
    pub(super) fn leave(&mut self) -> Result<()> {
        let left = self.queries.pop();
        if let Some(around) = self.queries.last_mut() {
            // Until all names are seen, what is left is the query behind the next one.
            around.current = (around.current + 1).min(around.tables.len());
        }
        for table in left.iter().flat_map(|scope| &scope.tables) {
            if let Some(function) = table.draws.as_ref().filter(|_| table.places > 1) {
                return Err(error_at(
                    table.span,
                    format!(
                        "`{}` has {function}() and is named {} times: each would draw anew",
                        table.name, table.places
                    ),
                    &format!("`WITH {} AS MATERIALIZED (…)` draws once", table.name),
                ));
            }
        }
        Ok(())
    }

    /// Whether `name` is a relation of the statement here.
    pub(super) fn names(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The innermost query of that name that can be seen here: of which scope, and which of its tables.
    fn find(&self, name: &str) -> Option<(usize, usize)> {
        let seen = |scope: &Scope| if scope.is_recursive { scope.tables.len() } else { scope.current };
        let scopes = self.queries.iter().enumerate().rev();
        let mut found = scopes.filter_map(|(at, scope)| {
            Some((at, scope.tables[..seen(scope)].iter().position(|table| table.name == name)?))
        });
        found.next()
    }

    /// Gives a relation the name of the query that it means.
    pub(super) fn relation(&mut self, name: &mut ObjectName, alias: &mut Option<TableAlias>) -> Result<()> {
        let [part] = name.0.as_slice() else { return Ok(()) };
        let Some(ident) = part.as_ident().cloned() else { return Ok(()) };
        let Some((scope, table)) = self.find(&normal(&ident)) else { return Ok(()) };
        let scope = &mut self.queries[scope];
        let named = &mut scope.tables[table];
        if table > scope.current {
            let what = format!("`{}` comes later in WITH", named.name);
            return Err(error_at(ident.span, what, "put it before the query that names it"));
        }
        if table != scope.current {
            named.places += 1;
        }
        if let Some(given) = &named.given {
            *name = ObjectName::from(vec![Ident { value: given.clone(), quote_style: Some('"'), span: ident.span }]);
            alias.get_or_insert(TableAlias { explicit: true, name: ident, columns: vec![], at: None });
        }
        if let Some(function) = named.draws.clone() {
            self.draw(&function);
        }
        Ok(())
    }

    /// A function is called here.
    pub(super) fn call(&mut self, function: &Function) {
        let name = function.name.to_string().to_lowercase();
        if RANDOM_FUNCTIONS.contains(&name.as_str()) {
            self.draw(&name);
        }
    }

    /// The queries of WITH in which this stands draw, up to one that is computed once.
    fn draw(&mut self, function: &str) {
        for scope in self.queries.iter_mut().rev() {
            match scope.tables.get_mut(scope.current) {
                Some(table) if table.is_computed_once => return,
                Some(table) => _ = table.draws.get_or_insert_with(|| function.to_owned()),
                None => {}
            }
        }
    }
}
