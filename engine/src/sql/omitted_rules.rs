//! Rules of DataFusion's physical optimizer that are left out where they change the answer.
//!
//! - Aggregations that statistics answer: the rule (55.2) looks for the partial step of an aggregation below its final step, and passes
//!   one that has a FILTER as if it were any operator. In `SELECT count(*) FILTER (WHERE n > 100) FROM (SELECT count(*) AS n FROM t)`
//!   it finds the inner one and takes its answer for the outer one's.
//! - Filters that go down: on its way through a projection or a union a filter's column is looked for by name, and the first one of
//!   that name is taken. Above `t RIGHT JOIN u`, whose sides were swapped, `t.a = t.a` becomes a filter of `u.a` and goes down to `u`.
//!   So filters stay where columns below them share a name. (The logical optimizer pushes by qualified names and does so before.)
//! - Projections that go down, where a join has a condition with a CASE: its parts are computed below the join, for all rows.
//! - Groups of which `ORDER BY … LIMIT n` keeps the first: their table has room for 10 n keys before the first row comes, which overflows
//!   without a LIMIT (`OFFSET 1` alone) and takes gigabytes for a large one. Beyond [`FEW`] all groups are kept and sorted.
//! - Projections that go down, where that ends in an internal error: a filter that has taken one projection in is asked to take another.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::CaseExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::sorts::sort::SortExec;

type Plan = Arc<dyn ExecutionPlan>;
type IsUnfit = fn(&Plan) -> bool;
type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Rules, and the plans that they are kept away from.
const UNFIT: [(&str, IsUnfit); 5] = [
    ("aggregate_statistics", has_aggregate_with_filter),
    ("FilterPushdown", has_filter_over_equal_names),
    // Filters that are made while a join or an ORDER BY … LIMIT runs.
    ("FilterPushdown(Post)", has_equal_names),
    (MAY_FAIL, joins_by_case),
    ("LimitAggregation", keeps_many),
];

/// Groups that `ORDER BY … LIMIT` keeps apart from the others.
const FEW: usize = 10_000;

fn keeps_many(plan: &Plan) -> bool {
    let sorts_many =
        |plan: &Plan| Ok(plan.downcast_ref::<SortExec>().and_then(SortExec::fetch).is_some_and(|n| n > FEW));
    plan.exists(sorts_many).unwrap_or(true)
}

/// A rule that only saves work: a plan for which it fails runs without it.
const MAY_FAIL: &str = "ProjectionPushdown";

/// A rule of DataFusion, or in the place of one of these a rule that leaves such plans alone.
pub(super) fn instead_of(rule: Rule) -> Rule {
    match UNFIT.iter().find(|(name, _)| *name == rule.name()) {
        Some((_, is_unfit)) => Arc::new(Careful { rule, is_unfit: *is_unfit }),
        None => rule,
    }
}

#[derive(Debug)]
struct Careful {
    rule: Rule,
    is_unfit: IsUnfit,
}

impl PhysicalOptimizerRule for Careful {
    fn optimize(&self, plan: Plan, config: &ConfigOptions) -> Result<Plan> {
        if (self.is_unfit)(&plan) {
            return Ok(plan);
        }
        match self.rule.optimize(Arc::clone(&plan), config) {
            Err(DataFusionError::Internal(_)) if self.rule.name() == MAY_FAIL => Ok(plan),
            optimized => optimized,
        }
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

fn joins_by_case(plan: &Plan) -> bool {
    let filter = plan.downcast_ref::<NestedLoopJoinExec>().and_then(NestedLoopJoinExec::filter);
    let has_case = |expr: &Arc<dyn PhysicalExpr>| expr.exists(|part| Ok(part.is::<CaseExpr>())).unwrap_or(true);
    filter.is_some_and(|filter| has_case(filter.expression())) || plan.children().into_iter().any(joins_by_case)
}

fn has_aggregate_with_filter(plan: &Plan) -> bool {
    let aggregate = plan.downcast_ref::<AggregateExec>();
    aggregate.is_some_and(|aggregate| aggregate.filter_expr().iter().any(Option::is_some))
        || plan.children().into_iter().any(has_aggregate_with_filter)
}

fn has_filter_over_equal_names(plan: &Plan) -> bool {
    plan.is::<FilterExec>() && has_equal_names(plan) || plan.children().into_iter().any(has_filter_over_equal_names)
}

fn has_equal_names(plan: &Plan) -> bool {
    let schema = plan.schema();
    let mut names = HashSet::new();
    !schema.fields().iter().all(|field| names.insert(field.name())) || plan.children().into_iter().any(has_equal_names)
}
