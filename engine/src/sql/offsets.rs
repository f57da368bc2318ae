//! Hides a LIMIT with an OFFSET in a subquery from the rule that places sorts.
//!
//! That rule (DataFusion 55.2) hands the number of rows of a LIMIT to the sort below it, and forgets the rows that OFFSET skips: in
//! `SELECT … FROM (… ORDER BY k LIMIT 2 OFFSET 1) ORDER BY k` the sort gives two rows, the first is skipped, and one row is left. So while
//! the rule runs, a LIMIT with an OFFSET below an operator that requires an order is hidden: the rule pushes neither an order nor a number
//! of rows through it.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::output_requirements::OutputRequirementExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};

use crate::sql::operators::{no_expressions, one_input};

type Plan = Arc<dyn ExecutionPlan>;

/// The rule of DataFusion that must not see them.
pub(super) const SORT_PLACING_RULE: &str = "EnsureRequirements";

/// Hides every LIMIT that has an OFFSET below what asks for an order.
#[derive(Debug)]
pub(super) struct HideOffsets;

impl PhysicalOptimizerRule for HideOffsets {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        hidden(plan, false)
    }

    fn name(&self) -> &str {
        "hide_offsets"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Puts them back.
#[derive(Debug)]
pub(super) struct ShowOffsets;

impl PhysicalOptimizerRule for ShowOffsets {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        let shown = |plan: Plan| match plan.downcast_ref::<HiddenLimitExec>() {
            Some(hidden) => Ok(Transformed::yes(hidden.limit())),
            None => Ok(Transformed::no(plan)),
        };
        plan.transform_up(shown).data()
    }

    fn name(&self) -> &str {
        "show_offsets"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn hidden(plan: Plan, mut is_below_order: bool) -> Result<Plan> {
    let asks = |plan: &Plan| {
        plan.is::<SortExec>()
            || !plan.is::<OutputRequirementExec>() && plan.required_input_ordering().iter().any(Option::is_some)
    };
    is_below_order |= asks(&plan);
    let children: Vec<Plan> = plan.children().into_iter().map(Arc::clone).collect();
    let inputs = children.iter().map(|child| hidden(Arc::clone(child), is_below_order)).collect::<Result<Vec<_>>>()?;
    let is_changed = inputs.iter().zip(&children).any(|(input, child)| !Arc::ptr_eq(input, child));
    let recompute = || ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let plan = if is_changed { plan.replace_children(inputs, recompute())? } else { plan };
    match plan.downcast_ref::<GlobalLimitExec>() {
        Some(limit) if is_below_order && limit.skip() > 0 => {
            Ok(Arc::new(HiddenLimitExec::new(Arc::clone(limit.input()), limit.skip(), limit.fetch())))
        }
        _ => Ok(plan),
    }
}

/// A LIMIT that promises no order and no number of rows. It is never executed.
#[derive(Debug)]
struct HiddenLimitExec {
    input: Plan,
    skip: usize,
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
}

impl HiddenLimitExec {
    fn new(input: Plan, skip: usize, fetch: Option<usize>) -> HiddenLimitExec {
        let mut equivalences = input.equivalence_properties().clone();
        equivalences.clear_orderings();
        let properties = PlanProperties::new(
            equivalences,
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        HiddenLimitExec { input, skip, fetch, properties: Arc::new(properties) }
    }

    fn limit(&self) -> Plan {
        Arc::new(GlobalLimitExec::new(Arc::clone(&self.input), self.skip, self.fetch))
    }
}

impl DisplayAs for HiddenLimitExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HiddenLimitExec: skip={}", self.skip)
    }
}

impl ExecutionPlan for HiddenLimitExec {
    one_input!("HiddenLimitExec", |this, input| Ok(Arc::new(HiddenLimitExec::new(input, this.skip, this.fetch))));
    no_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.limit().execute(partition, context)
    }
}
