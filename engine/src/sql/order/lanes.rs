//! The order in which calls of relation functions read the rows of a store.
//!
//! A function whose answer does not depend on the order of its rows gets them in the order of the files, which needs no sorting. A function
//! that walks over lanes gets them lane by lane, where the store keeps them so.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use tq_udfs::relation::RowOrder;
use tq_udfs::relation::exec::RelationExec;

use super::in_any_order;
use crate::store;

/// The call on these inputs.
pub(super) fn call_of(call: &RelationExec, mut inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
    let order = call.row_order();
    if order != RowOrder::Trace {
        inputs = inputs.into_iter().map(in_any_order).collect::<Result<_>>()?;
    }
    let first = inputs.first().filter(|_| order == RowOrder::Lanes);
    if let Some(first) = first.map(of_lanes).transpose()?.flatten() {
        return Ok(Arc::new(call.with_first_by_lane(first)));
    }
    Ok(Arc::new(call.with_inputs(inputs)))
}

/// The plan of the same rows lane by lane; `None` where that is not known of them.
fn of_lanes(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let schema = plan.schema();
    let columns = ["start", "location", "run"].map(|name| schema.index_of(name));
    match columns {
        [Ok(start), Ok(location), Ok(run)] => by_lane(plan, [start, location, run]),
        _ => Ok(None),
    }
}

/// The same, where these are the columns `start`, `location` and `run`. Operators that hand rows on one by one keep their order.
fn by_lane(plan: &Arc<dyn ExecutionPlan>, columns: [usize; 3]) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = store::by_lane(plan.as_ref(), columns) {
        return Ok(Some(scan));
    }
    if plan.fetch().is_some() {
        return Ok(None);
    }
    if let Some(together) = plan.downcast_ref::<CoalescePartitionsExec>() {
        return by_lane(together.input(), columns);
    }
    let (input, columns) = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let of_input = |column: usize| Some(projection.expr()[column].expr.downcast_ref::<Column>()?.index());
        (projection.input(), columns.map(of_input))
    } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let of_input = |column: usize| match filter.projection() {
            Some(projection) => projection.get(column).copied(),
            None => Some(column),
        };
        (filter.input(), columns.map(of_input))
    } else {
        return Ok(None);
    };
    let [Some(start), Some(location), Some(run)] = columns else { return Ok(None) };
    match by_lane(input, [start, location, run])? {
        Some(input) => Ok(Some(replace_children_if_necessary(Arc::clone(plan), vec![input])?)),
        None => Ok(None),
    }
}
