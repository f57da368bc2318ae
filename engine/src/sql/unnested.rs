//! Subqueries whose SELECT makes several rows of one with `unnest`.
//!
//! What determines a row (a key of GROUP BY, DISTINCT, `row_number()`) determines, for DataFusion (55.2), what comes out of its list too. In
//! `SELECT g, count(*) FROM (SELECT g, unnest(array_agg(x)) AS x … GROUP BY g) q GROUP BY g` the planner groups by `x` as well, as columns that
//! are determined by a key; the optimizer would leave `x` out again by the same conclusion, which [`dependencies`] stops for its other
//! mistakes, and there are as many groups as rows. So such a subquery is planned by itself, and its columns determine nothing; one of
//! WITH becomes `SELECT * FROM (…)`.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::sql::sqlparser::ast::{
    Expr, Query, Select, SelectFlavor, SetExpr, TableAlias, TableFactor, visit_expressions,
};
use datafusion::sql::sqlparser::parser::Parser;

use crate::sql::dependencies;
use crate::sql::dialect::TqDialect;

/// Plans them.
#[derive(Debug)]
pub(super) struct Unnested;

impl RelationPlanner for Unnested {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let is_new = match &mut relation {
            TableFactor::Derived { lateral: false, subquery, .. } => mark(&mut subquery.body),
            _ => false,
        };
        if !is_new {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let planned = Arc::new(context.plan(relation)?);
        let plan = dependencies::without_dependencies(&planned)?.unwrap_or_else(|| Arc::unwrap_or_clone(planned));
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

/// Queries of WITH become subqueries.
pub(super) fn rewrite(query: &mut Query) -> Result<()> {
    let Some(with) = query.with.as_mut().filter(|with| !with.recursive) else { return Ok(()) };
    for cte in &mut with.cte_tables {
        if !any_select(&mut cte.query.body, &mut |select| makes_rows(select)) {
            continue;
        }
        let around = Parser::new(&TqDialect).try_with_sql("SELECT * FROM x")?.parse_query()?;
        let subquery = std::mem::replace(&mut cte.query, around);
        let alias = TableAlias { explicit: true, name: cte.alias.name.clone(), columns: vec![], at: None };
        let relation = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
        if let SetExpr::Select(select) = cte.query.body.as_mut()
            && let [from] = select.from.as_mut_slice()
        {
            from.relation = relation;
        }
    }
    Ok(())
}

/// Marks every SELECT with `unnest` as one that begins with FROM, which says nothing to the planner; whether there is one without the mark.
fn mark(body: &mut SetExpr) -> bool {
    any_select(body, &mut |select| {
        let is_new = select.flavor == SelectFlavor::Standard && makes_rows(select);
        if is_new {
            select.flavor = SelectFlavor::FromFirst;
        }
        is_new
    })
}

/// Whether this holds for a SELECT of a query; all are asked.
fn any_select(body: &mut SetExpr, holds: &mut impl FnMut(&mut Select) -> bool) -> bool {
    match body {
        SetExpr::Select(select) => holds(select),
        SetExpr::Query(query) => any_select(&mut query.body, holds),
        SetExpr::SetOperation { left, right, .. } => any_select(left, holds) | any_select(right, holds),
        _ => false,
    }
}

fn makes_rows(select: &Select) -> bool {
    let is_unnest = |expr: &Expr| match expr {
        Expr::Function(call) if call.name.to_string().eq_ignore_ascii_case("unnest") => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    visit_expressions(&select.projection, is_unnest).is_break()
}
