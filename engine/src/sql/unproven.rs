//! Physical properties that DataFusion claims of rows although they do not hold: constant columns, equal columns, orders.
//!
//! DataFusion (55.2) tracks these properties per operator, and leaves out the sorts, keys and repartitions that they make superfluous.
//! Where an operator adds NULLs it keeps the properties of its input; rows then come in a wrong order, or one group becomes two:
//!
//! ```text
//! a LEFT JOIN (… WHERE x = 3) ORDER BY x, a         x is 3 or NULL above the join, and no constant
//! WHERE a = 1 GROUP BY ROLLUP (a, b)                a is 1 or NULL; so it is with columns that are equal, and rows dealt out by a
//! a JOIN b, each sorted, ORDER BY a.x, b.y          rows of b start again with each row of a: only where a.x is unique they are sorted
//! ```
//! Windows are planned with unique keys in mind (`GROUP BY a` sorted by `a` is sorted by `a, max(b)`), and end in an error when they look for
//! the order of their partition keys without them.
//!
//! [`ForgetUnproven`] puts a [`ForgetExec`] on such an input before sorts are placed: it hands on the same rows, and claims less about them.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Constraints, JoinType, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};

use crate::sql::operators::{no_expressions, one_input};

type Plan = Arc<dyn ExecutionPlan>;

/// Puts a [`ForgetExec`] wherever something is concluded that does not hold.
#[derive(Debug)]
pub(super) struct ForgetUnproven;

impl PhysicalOptimizerRule for ForgetUnproven {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(forgetting).data()
    }

    fn name(&self) -> &str {
        "forget_unproven"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn forgetting(plan: Plan) -> Result<Transformed<Plan>> {
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        if aggregate.group_expr().is_single() {
            return Ok(Transformed::no(plan));
        }
        let input = ForgetExec::above(Arc::clone(aggregate.input()), Kept::Nothing);
        let aggregate = with_inputs(plan, vec![input])?;
        // A constant as a key (`SELECT 1 AS a … GROUP BY CUBE (a, b)`) is one of the operator itself.
        return Ok(Transformed::yes(ForgetExec::above(aggregate, Kept::Nothing)));
    }
    if has_partitions(&plan)
        && let [input] = plan.children()[..]
        && !input.equivalence_properties().constraints().is_empty()
    {
        let input = ForgetExec::above(Arc::clone(input), Kept::EqualsAndOrders);
        return Ok(Transformed::yes(with_inputs(plan, vec![input])?));
    }
    let Some((join, loses_orders)) = join_type(&plan) else { return Ok(Transformed::no(plan)) };
    let gets_nulls = match join {
        JoinType::Left => [false, true],
        JoinType::Right => [true, false],
        JoinType::Full => [true, true],
        _ => [false, false],
    };
    let keeps_order = plan.maintains_input_order();
    let mut is_changed = false;
    let inputs = plan.children().into_iter().enumerate().map(|(side, input)| {
        let known = input.equivalence_properties();
        let gets_nulls = gets_nulls.get(side).copied().unwrap_or(false);
        let forgets_equals = gets_nulls && known.eq_group().iter().next().is_some();
        let keeps_order = keeps_order.get(side).copied().unwrap_or(false);
        let forgets_orders = loses_orders && !keeps_order && !known.oeq_class().is_empty();
        if !forgets_equals && !forgets_orders {
            return Arc::clone(input);
        }
        is_changed = true;
        let kept = match (forgets_equals, forgets_orders) {
            (true, true) => Kept::Partitions,
            (true, false) => Kept::Orders,
            (false, _) => Kept::Equals,
        };
        ForgetExec::above(Arc::clone(input), kept)
    });
    let inputs: Vec<Plan> = inputs.collect();
    if is_changed { Ok(Transformed::yes(with_inputs(plan, inputs)?)) } else { Ok(Transformed::no(plan)) }
}

/// Whether a plan computes windows over partitions.
fn has_partitions(plan: &Plan) -> bool {
    let windows = match (plan.downcast_ref::<BoundedWindowAggExec>(), plan.downcast_ref::<WindowAggExec>()) {
        (Some(windows), _) => windows.window_expr(),
        (_, Some(windows)) => windows.window_expr(),
        _ => return false,
    };
    windows.iter().any(|window| !window.partition_by().is_empty())
}

/// Of a join its type, and whether it says of the rows of a side whose order it does not keep that they are sorted within each row of the
/// other one. A merge of sorted sides asks for their orders.
fn join_type(plan: &Plan) -> Option<(JoinType, bool)> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return Some((*join.join_type(), true));
    }
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        return Some((*join.join_type(), true));
    }
    if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        return Some((join.join_type(), false));
    }
    plan.is::<CrossJoinExec>().then_some((JoinType::Inner, true))
}

fn with_inputs(plan: Plan, inputs: Vec<Plan>) -> Result<Plan> {
    plan.replace_children(inputs, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
}

/// Which properties of the rows are still claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    /// All but which columns are unique.
    EqualsAndOrders,
    /// Which columns are constant or equal, not their order.
    Equals,
    /// Their order, not which columns are constant or equal.
    Orders,
    /// Neither; only by which columns they were dealt out to partitions.
    Partitions,
    /// Not even that.
    Nothing,
}

/// The rows of its input; see the module.
#[derive(Debug)]
struct ForgetExec {
    input: Plan,
    kept: Kept,
    properties: Arc<PlanProperties>,
}

impl ForgetExec {
    fn above(input: Plan, kept: Kept) -> Plan {
        let mut equivalences = match kept {
            Kept::EqualsAndOrders => input.equivalence_properties().clone().with_constraints(Constraints::default()),
            Kept::Equals => input.equivalence_properties().clone(),
            _ => EquivalenceProperties::new(input.schema()),
        };
        match kept {
            Kept::Equals => equivalences.clear_orderings(),
            Kept::Orders => equivalences.add_orderings(input.equivalence_properties().oeq_class().iter().cloned()),
            Kept::EqualsAndOrders | Kept::Partitions | Kept::Nothing => {}
        }
        let partitioning = match kept {
            Kept::Nothing => Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            _ => input.output_partitioning().clone(),
        };
        let properties =
            PlanProperties::new(equivalences, partitioning, input.pipeline_behavior(), input.boundedness())
                .with_evaluation_type(input.properties().evaluation_type)
                .with_scheduling_type(input.properties().scheduling_type);
        Arc::new(ForgetExec { input, kept, properties: Arc::new(properties) })
    }
}

impl DisplayAs for ForgetExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => write!(f, "ForgetExec"),
        }
    }
}

impl ExecutionPlan for ForgetExec {
    one_input!("ForgetExec", |this, input| Ok(ForgetExec::above(input, this.kept)));
    no_expressions!();

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.kept == Kept::Orders]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        match self.kept {
            // Groups of grouping sets are not to be cut off by a LIMIT above.
            Kept::Nothing => CardinalityEffect::Unknown,
            _ => CardinalityEffect::Equal,
        }
    }

    fn gather_filters_for_pushdown(
        &self,
        _: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        _: &ConfigOptions,
    ) -> Result<FilterDescription> {
        FilterDescription::from_children(filters, &self.children())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
