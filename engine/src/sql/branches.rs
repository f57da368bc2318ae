//! Nullability and metadata of the columns of UNION and of recursive queries. The metadata says which columns are times.
//!
//! Both change while a plan is analyzed and optimized: `start + 1` is a time as soon as it is a checked addition, and
//! `CASE WHEN c < c …` may become NULL. DataFusion (55.2) then keeps the old schema of the UNION, which is an internal error when the plan
//! runs. It also wants the same metadata from both branches of a recursive query, and the branches of
//! `SELECT 0 AS waited … UNION ALL SELECT waited + duration …` differ.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::intersect_metadata_for_union;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, RecursiveQuery, Union};

use crate::sql::annotated::{Said, itself};

/// An optimized plan in which the schema of each UNION is that of its optimized branches.
pub(super) fn settled(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut has_changed = false;
    let settled = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Union(union) => {
            let before = Arc::clone(&union.schema);
            let plan = union_of(union)?;
            has_changed |= plan.schema() != &before;
            Ok(Transformed::yes(plan))
        }
        plan if has_changed => Ok(Transformed::yes(plan.recompute_schema()?)),
        plan => Ok(Transformed::no(plan)),
    });
    settled.data()
}

/// A node with the nullability and the metadata that its analyzed inputs give its columns.
pub(super) fn told(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Union(union) => union_of(with_names(union)?),
        LogicalPlan::RecursiveQuery(query) => recursive(query),
        plan => Ok(plan),
    }
}

/// Branches whose columns have the names of the UNION. DataFusion gives them to those that are no `SELECT DISTINCT`; where all others turn
/// out to have no rows, it takes the one that is left for the UNION, and does not find its columns.
fn with_names(union: Union) -> Result<Union> {
    let named = |input: Arc<LogicalPlan>| -> Result<Arc<LogicalPlan>> {
        let columns = || input.schema().iter().zip(union.schema.iter());
        if columns().all(|(own, of_union)| own.1.name() == of_union.1.name()) {
            return Ok(input);
        }
        let renamed = columns().map(|(own, (relation, field))| {
            Expr::Column(Column::from(own)).alias_qualified(relation.cloned(), field.name())
        });
        let renamed: Vec<Expr> = renamed.collect();
        LogicalPlanBuilder::from(Arc::unwrap_or_clone(input)).project(renamed)?.build().map(Arc::new)
    };
    let inputs = union.inputs.into_iter().map(named).collect::<Result<_>>()?;
    Ok(Union { inputs, schema: union.schema })
}

fn union_of(Union { inputs, schema }: Union) -> Result<LogicalPlan> {
    let fields = schema.iter().enumerate().map(|(at, (relation, field))| {
        let of_branches = inputs.iter().map(|input| input.schema().field(at).metadata());
        let is_nullable = inputs.iter().any(|input| input.schema().field(at).is_nullable());
        let field = field.as_ref().clone().with_nullable(is_nullable);
        let field = field.with_metadata(intersect_metadata_for_union(of_branches));
        (relation.cloned(), Arc::new(field))
    });
    let schema = DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())?;
    Ok(LogicalPlan::Union(Union { inputs, schema: Arc::new(schema) }))
}

/// The first branch tells what columns are.
fn recursive(mut query: RecursiveQuery) -> Result<LogicalPlan> {
    let (first, next) = (query.static_term.schema(), query.recursive_term.schema());
    let pairs = || first.fields().iter().zip(next.iter());
    if pairs().all(|(first, (_, next))| first.metadata() == next.metadata()) {
        return Ok(LogicalPlan::RecursiveQuery(query));
    }
    let columns = pairs().map(|(first, (relation, next))| {
        let column = Expr::Column(Column::new(relation.cloned(), next.name()));
        if first.metadata() == next.metadata() {
            return column;
        }
        let metadata = first.metadata().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        itself(column, Said::Metadata(metadata)).alias_qualified(relation.cloned(), next.name())
    });
    let columns: Vec<Expr> = columns.collect();
    let next = LogicalPlanBuilder::from(query.recursive_term.as_ref().clone()).project(columns)?.build()?;
    query.recursive_term = Arc::new(next);
    Ok(LogicalPlan::RecursiveQuery(query))
}
