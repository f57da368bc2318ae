//! Wraps logical rules of DataFusion's optimizer: a function of ours decides for each node whether and how the rule is applied.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

type Rule = Arc<dyn OptimizerRule + Send + Sync>;

/// Stands in for a rule's `rewrite` and may call it.
pub(super) type Rewrite = fn(&dyn OptimizerRule, LogicalPlan, &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>>;

/// The rule itself, or wrapped in the rewriting that `places` names for it.
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
