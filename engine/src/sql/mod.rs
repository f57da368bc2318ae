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

mod annotated;
mod arrays;
mod balance;
mod bounded;
mod branches;
mod calendar;
mod canonical;
mod cases;
pub(crate) mod charged;
pub mod checked;
mod coarse_times;
mod column_aliases;
mod computed_keys;
mod concatenated;
mod correlated;
mod created;
mod decimal_text;
mod decimals;
mod dependencies;
mod dependent;
mod diagnostic;
pub mod dialect;
mod doubles;
#[cfg(feature = "cluster")]
pub(crate) mod elsewhere;
pub(crate) mod emitted;
mod equal;
mod errors;
mod expanded;
mod fractions;
mod frames;
mod group_keys;
mod guards;
mod headings;
mod immutable;
mod in_lists;
mod interval_keys;
mod interval_text;
mod joined;
mod json;
mod keys;
mod large_joins;
mod late_casts;
mod laterals;
mod lengths;
mod limits;
mod listed;
mod lists;
mod long_constants;
mod materialized;
pub mod names;
mod narrowing;
mod nullable;
pub(crate) mod numbered;
mod numbers;
mod offsets;
mod omitted_rules;
pub(crate) mod operators;
pub(crate) mod order;
mod orders;
mod other_dialects;
pub(crate) mod own_words;
pub mod parse;
mod partitions;
mod patterns;
mod perfetto;
mod place;
mod plain_keys;
mod postgres_texts;
mod pushed;
mod quantified;
pub mod query;
pub mod question;
mod random;
pub mod relations;
pub mod rewrite;
mod rows;
mod rows_of_lists;
mod scope;
mod set_operations;
pub mod settings;
mod shifts;
mod sorted;
mod spelling;
mod stack;
mod stale;
mod statement;
pub mod stop;
mod structs;
mod subqueries;
mod system;
mod time_text;
mod times;
mod typed_values;
mod unnested;
mod unproven;
mod unread;
mod using;
mod windows;
mod word_groups;
mod word_table;
mod wording;
mod wrapped_rules;
mod zones;

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::{ParamValues, Result as DataFusionResult};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::MemoryLimit;
#[cfg(feature = "cluster")]
use datafusion::logical_expr::ScalarUDF;
use datafusion::logical_expr::{LogicalPlan, Statement as PlannedStatement};
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as ParsedStatement;
#[cfg(feature = "cluster")]
use tq_udfs::{bounded::Bounds, canonical::canonical_function};

pub use bounded::{WithinBounds, bind};
pub use elsewhere::{PARTS, PARTS_DONE};
pub use errors::SqlError;
use group_keys::Which;
pub use materialized::ComputedOnce;
pub use parse::{parse, parse_first};
pub use query::execute;
pub use statement::Statement;
use wrapped_rules::{Rewrite, instead_of};

/// Installs what relation functions need in a session: their registry and planners, and spans of columns in errors. Integer
/// arithmetic is [`checked`].
pub fn configure(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let config = builder.config().get_or_insert_with(SessionConfig::new);
    config.options_mut().sql_parser.collect_spans = true;
    // DataFusion's other way to put branches together takes their rows as they arrive.
    config.options_mut().optimizer.prefer_existing_union = true;
    // Without a zone, TIMESTAMPTZ would be TIMESTAMP.
    config.options_mut().execution.time_zone.get_or_insert_with(|| times::UTC.to_owned());
    let functions = Arc::new(relations::RelationFunctions::default());
    config.set_extension(Arc::clone(&functions));
    let planners = builder.expr_planners().get_or_insert_default();
    planners.insert(0, Arc::new(structs::Structs));
    planners.insert(0, Arc::new(lists::Lists));
    planners.push(Arc::new(joined::Joins));
    planners.push(Arc::new(names::Marks));
    planners.push(Arc::new(quantified::Quantifiers));
    planners.push(Arc::new(json::JsonPaths));
    planners.push(Arc::new(times::OfTimes));
    planners.push(Arc::new(concatenated::Concatenated));
    planners.push(Arc::new(typed_values::UntoldValues));
    let places: [(&str, Rewrite); 3] = [
        (keys::MAKES_KEYS, keys::of_equations),
        (pushed::PUSHES, pushed::with_held),
        (plain_keys::SHARES, plain_keys::without_shared_windows),
    ];
    let rules = Optimizer::new().rules.into_iter().map(|rule| instead_of(rule, &places));
    let memory = builder.runtime_env().as_ref().map_or(MemoryLimit::Unknown, |env| env.memory_pool.memory_limit());
    let last: Arc<dyn OptimizerRule + Send + Sync> = Arc::new(plain_keys::PlainKeys);
    builder
        .with_query_planner(Arc::new(relations::RelationQueryPlanner))
        .with_relation_planners(vec![
            Arc::new(unnested::Unnested),
            Arc::new(column_aliases::ColumnAliases),
            Arc::new(relations::Relations(functions)),
            Arc::new(set_operations::Multisets),
            Arc::new(laterals::Laterals),
        ])
        .with_optimizer_rules(rules.chain([last]).collect())
        .with_physical_optimizer_rules(order::physical_rules(&memory))
        .with_analyzer_rule(Arc::new(names::Unmark))
        .with_analyzer_rule(Arc::new(checked::CheckedArithmetic::new()))
}

/// The functions that rules put into plans and no query can name, as far as their names tell all of them.
#[cfg(feature = "cluster")]
pub(crate) fn functions_of_plans(bounds: &Arc<Bounds>) -> Vec<Arc<ScalarUDF>> {
    let named = annotated::named().map(Arc::new);
    let others = [Some(Arc::new(canonical_function())), bounded::concat_operator(bounds)];
    named.into_iter().chain(others.into_iter().flatten()).collect()
}

/// Plans a statement. `params` are the values of its `$placeholders`; one without a value is an error.
///
/// Planning does nothing else: `CREATE VIEW`, `SET` and the like take effect when the plan is executed ([`execute`]).
pub async fn plan(
    context: &SessionContext,
    statement: &Statement,
    params: Option<ParamValues>,
) -> Result<LogicalPlan, SqlError> {
    stack::Deep::new(try_plan(context, statement, params))
        .await
        .map_err(|error| SqlError::new(&error, statement, context))
}

async fn try_plan(
    context: &SessionContext,
    statement: &Statement,
    params: Option<ParamValues>,
) -> DataFusionResult<LogicalPlan> {
    if statement.only_asks && !statement.is_question() {
        return Err(question::refused(&question::name_of_statement(&statement.parsed)));
    }
    let mut planned = with_keys(context, &statement.parsed).await?;
    if let Some(params) = params {
        planned = planned.with_param_values(params)?;
    }
    let passes = [
        computed_keys::rewrite,
        decimals::settle,
        doubles::rewrite,
        lists::rewrite,
        times::texts,
        frames::rewrite,
        correlated::rewrite,
        subqueries::rewrite,
        nullable::rewrite,
        guards::rewrite,
        orders::rewrite,
        dependencies::rewrite,
    ];
    let mut plan = passes.into_iter().try_fold(planned, |plan, pass| pass(plan))?;
    let prepares = matches!(&plan, LogicalPlan::Statement(PlannedStatement::Prepare(_)));
    if !prepares && let Some(missing) = plan.get_parameter_names()?.into_iter().min() {
        return Err(errors::missing_parameter(&missing));
    }
    plan = partitions::rewrite(headings::give(&statement.parsed, plan)?)?;
    question::refuse_settings(&plan)?;
    if statement.only_asks {
        question::must_only_ask(&plan)?;
    }
    limits::check_plan(&plan)?;
    fractions::note(context, &plan)?;
    Ok(plan)
}

/// The plan of a statement whose ORDER BY sees FROM where FROM has what its expressions name.
async fn with_keys(context: &SessionContext, parsed: &ParsedStatement) -> DataFusionResult<LogicalPlan> {
    let mut aliases = HashSet::new();
    while let Some((ordered, named)) = sorted::by_columns(parsed, &aliases) {
        match from_text(context, &ordered).await {
            Err(error) if sorted::is_not_grouped(&error) => break,
            Err(error) => match sorted::not_found(&error).filter(|name| named.contains(name)) {
                Some(alias) => aliases.insert(alias),
                None => return Err(error),
            },
            planned => return planned,
        };
    }
    from_text(context, parsed).await
}

async fn from_text(context: &SessionContext, parsed: &ParsedStatement) -> DataFusionResult<LogicalPlan> {
    let mut named: Option<ParsedStatement> = None;
    loop {
        let statement = named.as_ref().unwrap_or(parsed);
        let error = match rewritten(context, statement.clone()).await {
            Err(error) => error,
            planned => return planned,
        };
        if typed_values::tell_apart(&error) && named.is_none() {
            named = Some(typed_values::untold(parsed.clone()));
            continue;
        }
        let Some((relation, column)) = group_keys::named_twice(&error) else { return Err(error) };
        // The refusal does not say of which SELECT it is: that one whose keys it is gone with. Several may be refused alike.
        let mut next = None;
        for which in (0..).map(Which::At) {
            let Some(other) = group_keys::with_one_name(statement, (&relation, &column), which) else { break };
            match rewritten(context, other.clone()).await {
                Err(again) if again.to_string() == error.to_string() => {}
                Err(_) => next = Some(other),
                planned => return planned,
            }
            if next.is_some() {
                break;
            }
        }
        let next = next.or_else(|| group_keys::with_one_name(statement, (&relation, &column), Which::AllUnmerged));
        match next {
            Some(other) => named = Some(other),
            None => return Err(error),
        }
    }
}

async fn rewritten(context: &SessionContext, mut parsed: ParsedStatement) -> DataFusionResult<LogicalPlan> {
    rewrite::rewrite(&mut parsed, &rewrite::Known::of(context))?;
    expanded::check(&parsed)?;
    using::plan(context.state(), &parsed).await
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod upstream;
