//! Gives sorted batches small dictionaries of their own: only the words that they use.
//!
//! A sort builds each batch of its answer from rows of many batches. Arrow (59.3) merges their dictionaries for each batch of the answer,
//! even where all are the same one (apache/arrow-rs 9939), and DataFusion reserves the memory of each: to sort two million rows with a
//! million words took minutes. The rule [`SortsOfOwnWords`] gives each batch a dictionary of the words that it uses, before the sort and
//! after it, where that is smaller.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ReplaceChildrenOptions,
};
use futures::StreamExt;

use crate::sql::operators::{no_expressions, one_input, same_rows};
use crate::trace::with_own_texts;

/// Puts an `OwnWordsExec` below and above sorts of words.
#[derive(Debug)]
pub(super) struct SortsOfOwnWords;

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
pub(crate) struct OwnWordsExec {
    input: Arc<dyn ExecutionPlan>,
}

impl OwnWordsExec {
    #[cfg(feature = "cluster")]
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>) -> OwnWordsExec {
        OwnWordsExec { input }
    }
}

impl DisplayAs for OwnWordsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnWordsExec")
    }
}

impl ExecutionPlan for OwnWordsExec {
    one_input!("OwnWordsExec", |_, input| Ok(Arc::new(OwnWordsExec { input })));
    no_expressions!();
    same_rows!();

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let schema = input.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, input.map(|batch| with_own_texts(batch?)))))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, AsArray, DictionaryArray, Int32Array, RecordBatch, StringArray};
    use datafusion::arrow::datatypes::{Field, Int32Type};
    use datafusion::datasource::MemTable;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::execution::memory_pool::FairSpillPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::prelude::{SessionConfig, SessionContext};

    use super::*;

    const BATCHES: i32 = 40;
    const ROWS: i32 = 2_000;

    /// Rows of 40 batches, each with another word, in the falling order of the words; all batches have one dictionary.
    fn table() -> MemTable {
        let rows = BATCHES * ROWS;
        let words: ArrayRef =
            Arc::new((0..rows).map(|word| Some(format!("a name of some length {word:06}"))).collect::<StringArray>());
        let kind = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let schema = Arc::new(Schema::new(vec![Field::new("name", kind, true)]));
        let batch = |first: i32| {
            let keys: Int32Array = (first..first + ROWS).map(|row| Some(rows - 1 - row)).collect();
            let column = DictionaryArray::<Int32Type>::try_new(keys, Arc::clone(&words)).expect("words");
            RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(column)]).expect("rows")
        };
        let batches = (0..BATCHES).map(|number| batch(number * ROWS)).collect();
        MemTable::try_new(Arc::clone(&schema), vec![batches]).expect("a table")
    }

    /// All words in their order, and whether some had to wait on disk.
    async fn sorted(rule: Option<SortsOfOwnWords>) -> Result<(Vec<String>, bool)> {
        // The rows take 5 MB, and the words of all batches 160.
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(40 << 20)));
        let mut config = SessionConfig::new().with_target_partitions(1);
        config.options_mut().execution.sort_spill_reservation_bytes = 1 << 20;
        let builder = SessionStateBuilder::new().with_default_features().with_config(config);
        let builder = builder.with_runtime_env(runtime.build_arc()?);
        let state = match rule {
            Some(rule) => builder.with_physical_optimizer_rule(Arc::new(rule)),
            None => builder,
        };
        let context = SessionContext::new_with_state(state.build());
        context.register_table("t", Arc::new(table()))?;
        let plan = context.sql("SELECT name FROM t ORDER BY name").await?.create_physical_plan().await?;
        let batches = datafusion::physical_plan::collect(Arc::clone(&plan), context.task_ctx()).await?;
        let mut words = Vec::new();
        for batch in batches {
            let column = batch.column(0).as_dictionary::<Int32Type>().downcast_dict::<StringArray>().expect("texts");
            words.extend(column.into_iter().flatten().map(str::to_owned));
        }
        let mut spilled = 0;
        let mut plans = vec![plan];
        while let Some(plan) = plans.pop() {
            spilled += plan.metrics().and_then(|metrics| metrics.spill_count()).unwrap_or(0);
            plans.extend(plan.children().into_iter().cloned());
        }
        Ok((words, spilled > 0))
    }

    #[tokio::test]
    async fn a_sort_holds_the_words_of_its_rows_and_not_all_of_each_batch() {
        let expected = (0..BATCHES * ROWS).map(|word| format!("a name of some length {word:06}")).collect();
        assert_eq!(sorted(Some(SortsOfOwnWords)).await.expect("rows"), (expected, false));
        // Without the rule they do not fit: else this test would tell nothing.
        assert!(!matches!(sorted(None).await, Ok((_, false))));
    }
}
