//! `PositionExec`: the position of a row as one more column, so that rows which a sort holds for equal keep their order.
//!
//! DataFusion's sorts are not stable, and the partitions of `ORDER BY … LIMIT` tell each other above which value a row cannot be
//! among the first: which of several equal rows were given depended on who was faster. With the position as the last key no two
//! rows are equal. A sort of all rows by one key goes without it: that key is compared as it is, several are brought into a
//! form of their own first.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionMapping;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};
use futures::StreamExt;

use crate::sql::operators::{no_expressions, one_input};

/// The column; no query sees it.
const NAME: &str = "__position";
/// Positions of a partition begin at its number times this.
const PARTITION_SHIFT: u32 = 44;

/// The sort with the position as its last key; `None` where the sort stays as it is.
pub(super) fn stable(sort: &SortExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if sort.fetch().is_none() && sort.expr().len() == 1 {
        return Ok(None);
    }
    let input = sort.input();
    let width = input.schema().fields().len();
    let position = PhysicalSortExpr::new(Arc::new(Column::new(NAME, width)), SortOptions::default());
    let keys = sort.expr().iter().cloned().chain([position]);
    let Some(keys) = LexOrdering::new(keys) else { return Ok(None) };
    let columns: Vec<ProjectionExpr> = (input.schema().fields().iter().enumerate())
        .map(|(at, field)| ProjectionExpr::new(Arc::new(Column::new(field.name(), at)), field.name().clone()))
        .collect();
    let input = PositionExec::try_new(Arc::clone(input), 0)?;
    let sorted = SortExec::new(keys, Arc::new(input))
        .with_fetch(sort.fetch())
        .with_preserve_partitioning(sort.preserve_partitioning());
    let sorted = ProjectionExec::try_new(columns, Arc::new(sorted))?;
    // A key with a scalar subquery is no expression of columns, and a projection does not hand its order on.
    let is_seen = sorted.properties().equivalence_properties().ordering_satisfy(sort.expr().iter().cloned())?;
    Ok(is_seen.then(|| Arc::new(sorted) as _))
}

/// Adds the position of each row; see the module.
#[derive(Debug)]
pub(crate) struct PositionExec {
    input: Arc<dyn ExecutionPlan>,
    /// The number of the first partition: of a plan in parts, each counts its own.
    first: usize,
    properties: Arc<PlanProperties>,
}

impl PositionExec {
    pub(crate) fn try_new(input: Arc<dyn ExecutionPlan>, first: usize) -> Result<PositionExec> {
        let before = input.schema();
        let fields = before.fields().iter().cloned().chain([Arc::new(Field::new(NAME, DataType::UInt64, false))]);
        let schema = Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), before.metadata().clone()));
        // All columns stay where they are.
        let places: Vec<usize> = (0..before.fields().len()).collect();
        let mapping = ProjectionMapping::from_indices(&places, &before)?;
        let equivalences = input.equivalence_properties().project(&mapping, schema);
        let properties = PlanProperties::new(
            equivalences,
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Ok(PositionExec { input, first, properties: Arc::new(properties) })
    }
}

impl DisplayAs for PositionExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "PositionExec"),
        }
    }
}

impl ExecutionPlan for PositionExec {
    one_input!("PositionExec", |this, input| Ok(Arc::new(PositionExec::try_new(input, this.first)?)));
    no_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(partition, context)?;
        let schema = self.schema();
        let mut next = ((self.first + partition) as u64) << PARTITION_SHIFT;
        let of_batches = Arc::clone(&schema);
        let rows = rows.map(move |batch| with_position(&batch?, &of_batches, &mut next));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

fn with_position(batch: &RecordBatch, schema: &SchemaRef, next: &mut u64) -> Result<RecordBatch> {
    let end = *next + batch.num_rows() as u64;
    let positions: ArrayRef = Arc::new(UInt64Array::from_iter_values(*next..end));
    *next = end;
    let columns = batch.columns().iter().cloned().chain([positions]).collect();
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
