//! Aggregations that statistics answer without looking at rows.
//!
//! DataFusion (55.2) looks for the partial step of an aggregation below its final step, and passes one that has a FILTER as if it were
//! any operator: in `SELECT count(*) FILTER (WHERE n > 100) FROM (SELECT count(*) AS n FROM t)` it finds the inner one and takes its
//! answer for the outer one's. A plan with such a FILTER is left as it is.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

/// The rule of DataFusion that answers by statistics.
const ANSWERS: &str = "aggregate_statistics";

type Rule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// A rule of DataFusion, or in the place of [`ANSWERS`] one that leaves plans with FILTER alone.
pub(super) fn instead_of(rule: Rule) -> Rule {
    if rule.name() == ANSWERS { Arc::new(Answers { rule }) } else { rule }
}

#[derive(Debug)]
struct Answers {
    rule: Rule,
}

impl PhysicalOptimizerRule for Answers {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if has_filter(&plan) { Ok(plan) } else { self.rule.optimize(plan, config) }
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

fn has_filter(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let aggregate = plan.downcast_ref::<AggregateExec>();
    aggregate.is_some_and(|aggregate| aggregate.filter_expr().iter().any(Option::is_some))
        || plan.children().into_iter().any(has_filter)
}
