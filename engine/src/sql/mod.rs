//! The SQL front end: from text to a logical plan.
//!
//! Life of a query:
//!
//! ```text
//! text ─parse─▶ statements ─rewrite─▶ relation arguments are subqueries ─relations─▶ logical plan ─▶ operators
//!               (dialect)                                             (names, types, options)
//! ```
//!
//! [`parse()`] splits a text into statements that know their place; [`plan`] turns one into a plan, and [`configure`]
//! prepares a session for that. Whatever fails becomes a [`SqlError`]: what, where, and what to try. Nothing here knows
//! traces, files or the session of `tq`.
//!
//! DataFusion's own `SessionContext::sql` skips the rewriting: relation functions then know only `(SELECT …)` arguments.

pub mod checked;
pub mod dialect;
pub mod errors;
pub mod nearest;
pub mod parse;
mod perfetto;
mod place;
pub mod relations;
pub mod rewrite;
pub mod settings;
mod unchanged;
mod wording;

use std::sync::Arc;

use datafusion::common::{ParamValues, Result as DataFusionResult};
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{LogicalPlan, Statement as PlannedStatement};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use tq_udfs::relation::notes::Notes;

pub use errors::SqlError;
pub use nearest::nearest;
pub use parse::{Statement, parse};

/// Installs what relation functions need in a session: their planners, spans of columns in errors, and a sink for notes
/// ([`notes`]) unless the configuration has one. Integer arithmetic is [`checked`].
pub fn configure(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let config = builder.config().get_or_insert_with(SessionConfig::new);
    config.options_mut().sql_parser.collect_spans = true;
    if config.get_extension::<Notes>().is_none() {
        config.set_extension(Arc::new(Notes::default()));
    }
    builder
        .with_query_planner(Arc::new(relations::RelationQueryPlanner))
        .with_relation_planners(vec![Arc::new(relations::Relations)])
        .with_analyzer_rule(Arc::new(checked::CheckedArithmetic::new()))
}

/// The notes that functions leave for the user of a session; empty for one that was not [`configure`]d.
pub fn notes(context: &SessionContext) -> Arc<Notes> {
    context.copied_config().get_extension::<Notes>().unwrap_or_default()
}

/// Plans a statement. `params` are the values of its `$placeholders`; one without a value is an error.
///
/// Planning does nothing else: `CREATE VIEW`, `SET` and the like take effect when the plan is executed ([`execute`]).
pub async fn plan(
    context: &SessionContext,
    statement: &Statement,
    params: Option<ParamValues>,
) -> Result<LogicalPlan, SqlError> {
    try_plan(context, statement, params).await.map_err(|error| SqlError::new(&error, statement, context))
}

/// Plans a statement and starts it: definitions take effect, a query becomes a data frame that is still to be collected.
pub async fn execute(
    context: &SessionContext,
    statement: &Statement,
    params: Option<ParamValues>,
) -> Result<DataFrame, SqlError> {
    let plan = plan(context, statement, params).await?;
    context.execute_logical_plan(plan).await.map_err(|error| SqlError::new(&error, statement, context))
}

async fn try_plan(
    context: &SessionContext,
    statement: &Statement,
    params: Option<ParamValues>,
) -> DataFusionResult<LogicalPlan> {
    let mut parsed = statement.parsed.clone();
    rewrite::rewrite(&mut parsed)?;
    let mut plan = context.state().statement_to_plan(parsed).await?;
    if let Some(params) = params {
        plan = plan.with_param_values(params)?;
    }
    let prepares = matches!(&plan, LogicalPlan::Statement(PlannedStatement::Prepare(_)));
    if !prepares && let Some(missing) = plan.get_parameter_names()?.into_iter().min() {
        return Err(errors::missing_parameter(&missing));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests;
