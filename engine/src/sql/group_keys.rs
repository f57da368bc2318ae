//! Keys of grouping sets that are one column under two names.
//!
//! ```text
//! FROM t GROUP BY ROLLUP (a, t.a)              ROLLUP (t.a, t.a)
//! FROM t JOIN u … GROUP BY CUBE (t.a, a + 1)   CUBE (t.a, t.a + 1)
//! ```
//! DataFusion (55.2) compares keys as they are written, gives the grouped rows the column twice, and then refuses that. As in PostgreSQL, a
//! name means a column of FROM before an alias of SELECT. Where FROM is one table, `a` is `t.a` if there is a `t.a`; where FROM has several
//! tables, the planner's error tells whether it is.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, Join, JoinConstraint, JoinOperator, Select, Spanned, TableFactor, TableWithJoins,
    VisitorMut, visit_expressions, visit_expressions_mut,
};

use crate::sql::scope::normal;
use crate::sql::statement::walk;

/// Names the columns of the only table of FROM as keys name them with it.
pub(super) fn one_name(groups: &mut [Expr], from: &[TableWithJoins]) {
    let [TableWithJoins { relation, joins }] = from else { return };
    let named = match relation {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(&alias.name)
        }
        TableFactor::Table { name, .. } => name.0.last().and_then(|part| part.as_ident()),
        _ => None,
    };
    let Some(table) = named.filter(|_| joins.is_empty()) else { return };
    for column in qualified(groups, &normal(table)) {
        with_relation(groups, &column);
    }
}

/// The relation and the column that grouped rows would have twice.
pub(super) fn named_twice(error: &DataFusionError) -> Option<(String, String)> {
    match error.find_root() {
        DataFusionError::SchemaError(error, _) => match error.as_ref() {
            SchemaError::DuplicateQualifiedField { qualifier, name } => {
                Some((qualifier.table().to_owned(), name.clone()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Which of the SELECTs whose keys have a column with and without its relation.
#[derive(Clone, Copy)]
pub(super) enum Which {
    /// The one at this place among them.
    At(usize),
    /// All whose FROM merges no columns: there the column without a relation is the one with it.
    AllUnmerged,
}

/// A statement in which these SELECTs have the column with its relation only. `None` if there is none.
pub(super) fn with_one_name(
    statement: &ParsedStatement,
    (relation, column): (&str, &str),
    which: Which,
) -> Option<ParsedStatement> {
    let mut statement = statement.clone();
    let mut pass = Pass { relation, column, which, found: 0, done: false };
    walk(&mut statement, &mut pass);
    pass.done.then_some(statement)
}

struct Pass<'a> {
    relation: &'a str,
    column: &'a str,
    which: Which,
    found: usize,
    done: bool,
}

impl VisitorMut for Pass<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let GroupByExpr::Expressions(groups, _) = &mut select.group_by else { return ControlFlow::Continue(()) };
        let is_it = |column: &Vec<Ident>| column.last().is_some_and(|name| normal(name) == self.column);
        let Some(column) = qualified(groups, self.relation).into_iter().find(is_it) else {
            return ControlFlow::Continue(());
        };
        let mut named = groups.clone();
        if !with_relation(&mut named, &column) {
            return ControlFlow::Continue(());
        }
        self.found += 1;
        let is_meant = match self.which {
            Which::At(place) => place + 1 == self.found,
            Which::AllUnmerged => !select.from.iter().any(merges),
        };
        if is_meant {
            *groups = named;
            self.done = true;
        }
        ControlFlow::Continue(())
    }
}

/// Whether a part of FROM has a column that is of two tables.
fn merges(from: &TableWithJoins) -> bool {
    let of_table = |table: &TableFactor| match table {
        TableFactor::NestedJoin { table_with_joins, .. } => merges(table_with_joins),
        _ => false,
    };
    let is_merged = |join: &Join| {
        use JoinConstraint::{None as NoCondition, On};
        use JoinOperator::{CrossJoin, FullOuter, Inner, Left, LeftOuter, Right, RightOuter};
        let is_plain = match &join.join_operator {
            JoinOperator::Join(condition)
            | Inner(condition)
            | Left(condition)
            | LeftOuter(condition)
            | Right(condition)
            | RightOuter(condition)
            | FullOuter(condition)
            | CrossJoin(condition) => matches!(condition, On(_) | NoCondition),
            _ => false,
        };
        !is_plain || of_table(&join.relation)
    };
    of_table(&from.relation) || from.joins.iter().any(is_merged)
}

/// The columns of a relation that keys name with it, as they are written.
fn qualified(groups: &mut [Expr], table: &str) -> Vec<Vec<Ident>> {
    let mut columns = vec![];
    for key in keys(groups) {
        let _never_breaks = visit_expressions(&*key, |part| {
            if let Expr::CompoundIdentifier(parts) = part
                && let [.., relation, _] = parts.as_slice()
                && normal(relation) == table
            {
                columns.push(parts.clone());
            }
            ControlFlow::<()>::Continue(())
        });
    }
    columns
}

/// Writes a column so, in all keys; whether it was written otherwise in one.
fn with_relation(groups: &mut [Expr], column: &[Ident]) -> bool {
    let [.., relation, name] = column else { return false };
    let is_it = |part: &Expr| match part {
        Expr::Identifier(bare) => normal(bare) == normal(name),
        Expr::CompoundIdentifier(parts) => matches!(parts.as_slice(), [.., of, bare]
            if normal(of) == normal(relation) && normal(bare) == normal(name)),
        _ => false,
    };
    let column_at = |span| {
        let parts = column.iter().map(|part| Ident { span, ..part.clone() });
        Expr::CompoundIdentifier(parts.collect())
    };
    let mut changed = false;
    for key in keys(groups) {
        let _never_breaks = visit_expressions_mut(key, |part| {
            if is_it(part) {
                let written = column_at(part.span());
                changed |= *part != written;
                *part = written;
            }
            ControlFlow::<()>::Continue(())
        });
    }
    changed
}

/// The keys of ROLLUP, CUBE and GROUPING SETS.
fn keys(groups: &mut [Expr]) -> impl Iterator<Item = &mut Expr> {
    let sets = groups.iter_mut().filter_map(|group| match group {
        Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => Some(sets),
        _ => None,
    });
    sets.flat_map(|sets| sets.iter_mut().flatten())
}
