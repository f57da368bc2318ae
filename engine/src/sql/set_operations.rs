//! EXCEPT and INTERSECT, with ALL as operations on multisets; and the column names of their branches.
//!
//! DataFusion (55.2) plans them as an anti and a semi join. With ALL, a row that stands three times on the left and once on the
//! right is dropped three times, and rows that are frequent on both sides are compared pair by pair. Here equal rows are numbered
//! first, which makes both right and linear:
//!
//! ```text
//! l EXCEPT r          SELECT * FROM (l CROSS JOIN r) AS MARK       planned here as
//!                     DISTINCT l  anti join  r, NULL equal to NULL
//! l EXCEPT ALL r      l with row_number() OVER (PARTITION BY all columns)  anti join  r with the same
//! ```
//! The columns get the common types of both sides, as in UNION (DataFusion keeps the types of the left side, and then does not find `3` among
//! `3.0`), and the names of the left side.

use std::ops::ControlFlow;

use datafusion::common::{Column, DataFusionError, NullEquality, Result, TableReference};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Expr, ExprFunctionExt, JoinType, LogicalPlan, LogicalPlanBuilder, cast};
use datafusion::sql::sqlparser::ast::{
    Expr as SqlExpr, Ident, Join, JoinConstraint, JoinOperator, Query, Select, SelectItem, SetExpr, SetOperator,
    SetQuantifier, Spanned, TableAlias, TableFactor, TableWithJoins,
};
use datafusion::sql::sqlparser::parser::Parser;

use crate::sql::diagnostic::error_at;
use crate::sql::dialect::TqDialect;
use crate::sql::doubles::common_type;

/// How the columns of a branch are called whose SELECT gives them no name; their number follows.
pub(super) const BRANCH: &str = "__branch_";
/// The marks of operations.
const OPERATIONS: [(&str, SetOperator, SetQuantifier); 4] = [
    ("\u{1}except", SetOperator::Except, SetQuantifier::Distinct),
    ("\u{1}except all", SetOperator::Except, SetQuantifier::All),
    ("\u{1}intersect", SetOperator::Intersect, SetQuantifier::Distinct),
    ("\u{1}intersect all", SetOperator::Intersect, SetQuantifier::All),
];

/// Rewrites the set operations of a query; those of its subqueries are met with those.
pub(super) fn rewrite(query: &mut Query) -> ControlFlow<DataFusionError> {
    if !matches!(query.body.as_ref(), SetExpr::SetOperation { .. }) {
        return ControlFlow::Continue(());
    }
    match operation(&mut query.body) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// Long chains are deep on the left.
fn operation(body: &mut SetExpr) -> Result<()> {
    let mut body = body;
    loop {
        if let SetExpr::SetOperation { right, set_quantifier, .. } = body {
            if !is_by_name(*set_quantifier) {
                match right.as_mut() {
                    SetExpr::Select(select) => name_columns(select, |_| true),
                    SetExpr::Query(query) => name_expressions(query),
                    _ => {}
                }
            }
            operation(right)?;
        }
        if let SetExpr::SetOperation { op, set_quantifier, .. } = body {
            let quantifier =
                if *set_quantifier == SetQuantifier::None { SetQuantifier::Distinct } else { *set_quantifier };
            if let Some((mark, ..)) = OPERATIONS.iter().find(|known| (known.1, known.2) == (*op, quantifier)) {
                // The sides become queries of their own, which are visited as such.
                return marked(body, mark);
            }
        }
        let SetExpr::SetOperation { left, .. } = body else { return Ok(()) };
        body = left;
    }
}

fn is_by_name(quantifier: SetQuantifier) -> bool {
    matches!(quantifier, SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName)
}

/// The columns of a branch get names that nobody sees. DataFusion gives those of the left side to some of them, and then finds two of a
/// name in `SELECT a, 10 - a AS b … UNION SELECT b, b + 1 …`.
fn name_columns(select: &mut Select, is_named: impl Fn(&SqlExpr) -> bool) {
    for (at, item) in select.projection.iter_mut().enumerate() {
        if let SelectItem::UnnamedExpr(expr) = item
            && is_named(expr)
        {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::new(format!("{BRANCH}{at}")) };
        }
    }
}

/// As [`name_columns`] of a branch in parentheses, where ORDER BY may speak of its columns.
fn name_expressions(query: &mut Query) {
    let is_column = |expr: &SqlExpr| matches!(expr, SqlExpr::Identifier(_) | SqlExpr::CompoundIdentifier(_));
    match query.body.as_mut() {
        SetExpr::Select(select) => name_columns(select, |expr| !is_column(expr)),
        SetExpr::Query(query) => name_expressions(query),
        _ => {}
    }
}

fn marked(body: &mut SetExpr, mark: &str) -> Result<()> {
    let select = Parser::new(&TqDialect).try_with_sql("SELECT * FROM x")?.parse_query()?;
    let SetExpr::Select(mut select) = *select.body else {
        return datafusion::common::internal_err!("a template is no SELECT");
    };
    let SetExpr::SetOperation { left, right, .. } = std::mem::replace(body, SetExpr::Select(select.clone())) else {
        return datafusion::common::internal_err!("no set operation");
    };
    let join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
    let join = Join { relation: derived(right)?, global: false, join_operator };
    let joined = TableWithJoins { relation: derived(left)?, joins: vec![join] };
    let alias = TableAlias { explicit: true, name: Ident::new(mark), columns: vec![], at: None };
    for from in &mut select.from {
        from.relation =
            TableFactor::NestedJoin { table_with_joins: Box::new(joined.clone()), alias: Some(alias.clone()) };
    }
    *body = SetExpr::Select(select);
    Ok(())
}

fn derived(side: Box<SetExpr>) -> Result<TableFactor> {
    let subquery = match *side {
        SetExpr::Query(query) => query,
        other => {
            let mut query = Parser::new(&TqDialect).try_with_sql("SELECT 1")?.parse_query()?;
            query.body = Box::new(other);
            query
        }
    };
    Ok(TableFactor::Derived { lateral: false, subquery, alias: None, sample: None })
}

/// Plans marked operations.
#[derive(Debug)]
pub(super) struct Multisets;

impl RelationPlanner for Multisets {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let found = match &relation {
            TableFactor::NestedJoin { alias: Some(alias), .. } => {
                OPERATIONS.iter().find(|(mark, ..)| alias.name.value == *mark)
            }
            _ => None,
        };
        let Some((_, operator, quantifier)) = found else { return Ok(RelationPlanning::Original(Box::new(relation))) };
        let is_all = *quantifier == SetQuantifier::All;
        let TableFactor::NestedJoin { table_with_joins, .. } = relation else {
            return datafusion::common::internal_err!("a mark on no join");
        };
        let TableWithJoins { relation, mut joins } = *table_with_joins;
        let Some(join) = joins.pop() else { return datafusion::common::internal_err!("a mark without a join") };
        let span = relation.span().union(&join.relation.span());
        let (left, right) = (context.plan(relation)?, context.plan(join.relation)?);
        let (wide, other) = (left.schema().fields().len(), right.schema().fields().len());
        if wide != other {
            let all = if is_all { " ALL" } else { "" };
            let what = format!("{operator}{all} of {wide} and {other} columns");
            return Err(error_at(span, what, "both sides need the same number of columns"));
        }
        let mut types = vec![];
        for (left, right) in left.schema().fields().iter().zip(right.schema().fields()) {
            let Some(both) = common_type(left.data_type(), right.data_type()) else {
                let what = format!("`{}` is {} here and {} there", left.name(), left.data_type(), right.data_type());
                return Err(error_at(span, what, "cast one of them"));
            };
            types.push(both);
        }
        let names: Vec<Column> = left.schema().columns();
        let typed = |side: LogicalPlan, alias: &str| {
            let schema = side.schema().clone();
            let columns = schema.iter().zip(&types).enumerate().map(|(at, (field, to))| {
                let column = Expr::Column(Column::from(field));
                let value = if field.1.data_type() == to { column } else { cast(column, to.clone()) };
                value.alias(format!("c{at}"))
            });
            let builder = LogicalPlanBuilder::from(side).project(columns.collect::<Vec<_>>())?.alias(alias)?;
            if !is_all {
                return Ok(builder);
            }
            let equals: Vec<Expr> = (0..types.len()).map(|at| column_of(alias, at).into()).collect();
            let number = row_number().partition_by(equals.clone()).build()?.alias("row");
            let all = equals.iter().cloned().chain([Expr::Column(Column::from_name("row"))]).collect::<Vec<_>>();
            builder.window([number])?.project(all)?.alias(alias)
        };
        let keys = |alias: &str| {
            let columns = (0..types.len()).map(|at| column_of(alias, at));
            columns.chain(is_all.then(|| Column::new(Some(alias), "row"))).collect::<Vec<_>>()
        };
        let kind = if *operator == SetOperator::Except { JoinType::LeftAnti } else { JoinType::LeftSemi };
        let left = typed(left, "left")?;
        let left = if is_all { left } else { left.distinct()? };
        let right = typed(right, "right")?.build()?;
        let named = names.iter().enumerate().map(|(at, column)| {
            let relation: Option<TableReference> = column.relation.clone();
            Expr::Column(column_of("left", at)).alias_qualified(relation, &column.name)
        });
        let plan = left
            .join_detailed(right, kind, (keys("left"), keys("right")), None, NullEquality::NullEqualsNull)?
            .project(named.collect::<Vec<_>>())?
            .build()?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

/// A column of a side.
fn column_of(side: &str, at: usize) -> Column {
    Column::new(Some(side), format!("c{at}"))
}
