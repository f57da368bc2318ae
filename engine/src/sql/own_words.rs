//! Sorts of batches that have no more words than rows.
//!
//! A sort holds many batches and puts its answer together of rows of all of them. Arrow (59.3) joins their dictionaries for each
//! batch of the answer, also where all are one and the same (apache/arrow-rs 9939 is about that), and DataFusion asks for the memory of each:
//! to sort two million rows with a million words took minutes. The rule [`SortsOfOwnWords`] gives each batch a dictionary of the words
//! that it uses, before it is sorted and after, where that is smaller.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use futures::StreamExt;

use crate::sql::operators::{no_expressions, one_input};
use crate::trace::with_own_texts;

/// Puts an [`OwnWordsExec`] below and above sorts of words.
#[derive(Debug)]
pub struct SortsOfOwnWords;

impl PhysicalOptimizerRule for SortsOfOwnWords {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            if !plan.is::<SortExec>() || !has_words(&plan.schema()) {
                return Ok(Transformed::no(plan));
            }
            let inputs = plan.children().into_iter().map(|input| of_own_words(Arc::clone(input))).collect();
            let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(of_own_words(plan.replace_children(inputs, anew)?)))
        })
        .data()
    }

    fn name(&self) -> &str {
        "sorts_of_own_words"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn has_words(schema: &Schema) -> bool {
    schema.fields().iter().any(|field| matches!(field.data_type(), DataType::Dictionary(..)))
}

fn of_own_words(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    if input.is::<OwnWordsExec>() { input } else { Arc::new(OwnWordsExec { input }) }
}

/// Passes batches on, with dictionaries of the words that they use where those are much smaller.
#[derive(Debug)]
struct OwnWordsExec {
    input: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for OwnWordsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnWordsExec")
    }
}

impl ExecutionPlan for OwnWordsExec {
    one_input!("OwnWordsExec", |_, input| Ok(Arc::new(OwnWordsExec { input })));
    no_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let schema = input.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, input.map(|batch| with_own_texts(batch?)))))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(inputs.first().map_or_else(|| Arc::new(Statistics::new_unknown(&self.schema())), Arc::clone))
    }
}
