//! Elsewhere: whoever does parts of plans in other processes is asked when a plan is finished. Which parts and how, SQL does not know.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::config::ConfigOptions;
use datafusion::common::display::{PlanType, StringifiedPlan};
use datafusion::common::{Result, extensions_options};
use datafusion::config::ConfigExtension;
use datafusion::logical_expr::{ExplainFormat, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::explain::ExplainExec;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use datafusion::prelude::SessionContext;

/// Metrics of a plan that others help with: so many parts they were asked for, …
pub const PARTS: &str = "parts_elsewhere";
/// … and so many are there.
pub const PARTS_DONE: &str = "parts_elsewhere_done";

/// What is done with finished plans of a session.
#[async_trait]
pub(crate) trait Elsewhere: Send + Sync {
    /// The plan to execute instead of `plan`, which answers a question.
    fn spread(&self, plan: Arc<dyn ExecutionPlan>, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>>;

    /// What `EXPLAIN` says of it.
    async fn explained(&self, plan: Arc<dyn ExecutionPlan>, session: &dyn Session) -> Result<String>;
}

struct Asked(Arc<dyn Elsewhere>);

extensions_options! {
    /// Tells the rules of the optimizer.
    struct ElsewhereOptions {
        /// Whether parts of plans are done by other processes.
        is_there: bool, default = false
    }
}

impl ConfigExtension for ElsewhereOptions {
    const PREFIX: &'static str = "tq_elsewhere";
}

/// From now on, plans of this session are shown to `elsewhere`.
pub(crate) fn ask(context: &SessionContext, elsewhere: Arc<dyn Elsewhere>) {
    let state = context.state_ref();
    let mut state = state.write();
    let config = state.config_mut();
    config.set_extension(Arc::new(Asked(elsewhere)));
    config.options_mut().extensions.insert(ElsewhereOptions { is_there: true });
}

/// Whether parts of plans are done by other processes.
pub(crate) fn has_elsewhere(config: &ConfigOptions) -> bool {
    config.extensions.get::<ElsewhereOptions>().is_some_and(|options| options.is_there)
}

/// The plan of a question as it is to be executed; other plans stay.
pub(super) async fn planned(
    logical: &LogicalPlan,
    plan: Arc<dyn ExecutionPlan>,
    planner: &DefaultPhysicalPlanner,
    session: &dyn Session,
) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(asked) = session.config().get_extension::<Asked>() else { return Ok(plan) };
    match logical {
        // What is written is written once, and what is measured is measured here.
        LogicalPlan::Dml(_)
        | LogicalPlan::Copy(_)
        | LogicalPlan::Ddl(_)
        | LogicalPlan::Statement(_)
        | LogicalPlan::Analyze(_) => Ok(plan),
        LogicalPlan::Explain(explain) => {
            let Some(shown) = plan.downcast_ref::<ExplainExec>() else { return Ok(plan) };
            if explain.explain_format != ExplainFormat::Indent {
                return Ok(plan);
            }
            let inner = planner.create_physical_plan(&explain.plan, session).await?;
            let text = asked.0.explained(inner, session).await?;
            let told = |plan: &StringifiedPlan| match plan.plan_type {
                PlanType::FinalPhysicalPlan => StringifiedPlan::new(PlanType::FinalPhysicalPlan, text.as_str()),
                _ => plan.clone(),
            };
            let plans = shown.stringified_plans().iter().map(told).collect();
            Ok(Arc::new(ExplainExec::new(plan.schema(), plans, shown.verbose())))
        }
        _ => asked.0.spread(plan, session),
    }
}
