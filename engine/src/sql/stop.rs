//! Makes every query cancellable, including those that compute for long without awaiting.
//!
//! A query can be cancelled only where an operator awaits. One that makes many rows of few (a cross join, a join whose condition
//! refuses nearly all pairs) computes for hours without awaiting anything. [`stoppable`] rewrites a finished plan: the rows of such
//! operators pass a `StoppableExec`, and the conditions of joins a `StoppableExpr`, which check before each batch whether the query was
//! cancelled, and yield the thread now and then.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, SchedulingType, replace_children_if_necessary};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::StreamExt;

use crate::sql::operators::{no_expressions, one_input};

/// Whether the query is to stop; cheap.
pub type Stop = Arc<dyn Fn() -> bool + Send + Sync>;

/// The plan, which fails with "the query was cancelled" soon after `stop` says so.
///
/// # Errors
/// None in practice: operators take children that are as theirs were.
pub fn stoppable(plan: Arc<dyn ExecutionPlan>, stop: &Stop) -> Result<Arc<dyn ExecutionPlan>> {
    let children = plan.children().into_iter().map(|child| stoppable(Arc::clone(child), stop));
    let children = children.collect::<Result<Vec<_>>>()?;
    let plan = replace_children_if_necessary(plan, children)?;
    let plan = with_stoppable_condition(plan, stop)?;
    if makes_much_of_little(&plan) { Ok(Arc::new(StoppableExec::new(plan, stop))) } else { Ok(plan) }
}

/// The plan, whose scans fail with "the query was cancelled" soon after `stop` says so, and yield now and then.
///
/// # Errors
/// None in practice.
#[cfg(feature = "cluster")]
pub(crate) fn with_stoppable_scans(plan: Arc<dyn ExecutionPlan>, stop: &Stop) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.children().is_empty() {
        return Ok(Arc::new(StoppableExec::new(plan, stop)));
    }
    let children = plan.children().into_iter().map(|child| with_stoppable_scans(Arc::clone(child), stop));
    let children = children.collect::<Result<Vec<_>>>()?;
    replace_children_if_necessary(plan, children)
}

fn makes_much_of_little(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<CrossJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<HashJoinExec>()
        || plan.is::<SortMergeJoinExec>()
        || plan.is::<PiecewiseMergeJoinExec>()
        || plan.is::<UnnestExec>()
}

fn with_stoppable_condition(plan: Arc<dyn ExecutionPlan>, stop: &Stop) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter()
    {
        return join.builder().with_filter(Some(stoppable_filter(filter, stop))).build_exec();
    }
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = join.filter()
    {
        let (left, right) = (Arc::clone(join.left()), Arc::clone(join.right()));
        let projection = join.projection().as_ref().map(|columns| columns.to_vec());
        let filter = Some(stoppable_filter(filter, stop));
        return Ok(Arc::new(NestedLoopJoinExec::try_new(left, right, filter, join.join_type(), projection)?));
    }
    Ok(plan)
}

fn stoppable_filter(filter: &JoinFilter, stop: &Stop) -> JoinFilter {
    let condition = StoppableExpr { condition: Arc::clone(filter.expression()), stop: Arc::clone(stop) };
    JoinFilter::new(Arc::new(condition), filter.column_indices().to_vec(), Arc::clone(filter.schema()))
}

fn go_on(stop: &Stop) -> Result<()> {
    if stop() { exec_err!("the query was cancelled") } else { Ok(()) }
}

/// Hands rows on until it is told to stop.
struct StoppableExec {
    input: Arc<dyn ExecutionPlan>,
    stop: Stop,
    properties: Arc<PlanProperties>,
}

impl StoppableExec {
    fn new(input: Arc<dyn ExecutionPlan>, stop: &Stop) -> StoppableExec {
        let properties = input.properties().as_ref().clone().with_scheduling_type(SchedulingType::Cooperative);
        StoppableExec { input, stop: Arc::clone(stop), properties: Arc::new(properties) }
    }
}

impl fmt::Debug for StoppableExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoppableExec").field("input", &self.input).finish_non_exhaustive()
    }
}

impl DisplayAs for StoppableExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "StoppableExec"),
        }
    }
}

impl ExecutionPlan for StoppableExec {
    one_input!("StoppableExec", |this, input| Ok(Arc::new(StoppableExec::new(input, &this.stop))));
    no_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let stop = Arc::clone(&self.stop);
        let rows = rows.map(move |batch| go_on(&stop).and(batch));
        Ok(make_cooperative(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows))))
    }
}

/// A condition that fails when it is told to stop.
#[derive(Clone)]
struct StoppableExpr {
    condition: Arc<dyn PhysicalExpr>,
    stop: Stop,
}

impl fmt::Debug for StoppableExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl fmt::Display for StoppableExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.condition)
    }
}

impl PartialEq for StoppableExpr {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for StoppableExpr {}

impl Hash for StoppableExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl PhysicalExpr for StoppableExpr {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.condition.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.condition.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        go_on(&self.stop)?;
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match <[_; 1]>::try_from(children) {
            Ok([condition]) => Ok(Arc::new(StoppableExpr { condition, stop: Arc::clone(&self.stop) })),
            Err(children) => internal_err!("a condition has one expression, not {}", children.len()),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}
