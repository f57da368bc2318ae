//! Rules of DataFusion's optimizer that are asked in another way than it would ask them.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// What is done with a node of a plan in the place of the rule's `rewrite`, which is there to be called.
pub(super) type Rewrite = fn(&dyn OptimizerRule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

/// A rule of DataFusion, or the rewriting that stands in the place of the rule of its name.
pub(super) fn instead_of(rule: Rule, places: &[(&str, Rewrite)]) -> Rule {
    match places.iter().find(|(name, _)| *name == rule.name()) {
        Some((_, rewrite)) => Arc::new(Instead { rule, rewrite: *rewrite }),
        None => rule,
    }
}

#[derive(Debug)]
struct Instead {
    rule: Rule,
    rewrite: Rewrite,
}

impl OptimizerRule for Instead {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        (self.rewrite)(self.rule.as_ref(), plan, config)
    }
}
