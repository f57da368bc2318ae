//! `MergeExec`: DataFusion's merge of sorted partitions, of which ties go to the earlier partition.
//!
//! `SortPreservingMergeExec` gives ties to partitions by turns, unless it is told not to, and forgets that whenever its input is replaced.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

use crate::sql::operators::one_input;

/// Merges sorted partitions; see the module.
#[derive(Debug)]
pub(super) struct MergeExec {
    input: Arc<dyn ExecutionPlan>,
    merge: SortPreservingMergeExec,
}

impl MergeExec {
    /// Of an input that is sorted as that of `merge` is.
    pub(super) fn new(merge: &SortPreservingMergeExec, input: Arc<dyn ExecutionPlan>) -> MergeExec {
        let merge = SortPreservingMergeExec::new(merge.expr().clone(), Arc::clone(&input))
            .with_fetch(merge.fetch())
            .with_round_robin_repartition(false);
        MergeExec { input, merge }
    }
}

impl DisplayAs for MergeExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.merge.fmt_as(format, f)
    }
}

impl ExecutionPlan for MergeExec {
    one_input!("SortPreservingMergeExec", |this, input| Ok(Arc::new(MergeExec::new(&this.merge, input))));

    fn properties(&self) -> &Arc<PlanProperties> {
        self.merge.properties()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.merge.apply_expressions(visit)
    }

    fn fetch(&self) -> Option<usize> {
        self.merge.fetch()
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        self.merge.cardinality_effect()
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.merge.metrics()
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.merge.execute(partition, context)
    }
}
