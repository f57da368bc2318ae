//! Planning calls of relation functions: arguments to parameters, parameters to a node, the node to an operator.
//!
//! Three hooks of DataFusion are used: a [`RelationPlanner`] sees each factor of FROM, an [`ExtensionPlanner`] turns the
//! logical node into an operator, and a [`QueryPlanner`] exists only to name the latter. All that is particular to a
//! function is in its parameters, so a new function needs nothing here.

use std::fmt::Debug;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr as SqlExpr, FunctionArg, FunctionArgExpr, Ident, ObjectName, Spanned, TableAlias, TableFactor,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Span;
use tq_udfs::relation::exec::RelationExec;
use tq_udfs::relation::node::{GivenInput, RelationNode, plan};
use tq_udfs::relation::{Default, InputSpec, Omitted, OptionSpec, Parameter, RelationFunction};

use crate::nearest::nearest;
use crate::sql::branches::settled;
use crate::sql::diagnostic::{error_at, help_if_none};
use crate::sql::dialect::TqDialect;
use crate::sql::frames::with_opaque_keys;
use crate::sql::guards::in_turn;
use crate::sql::immutable::of_no_rows;
use crate::sql::keys::{named, with_null_keys};
use crate::sql::other_dialects::{FILES_ARE_OPENED, reads_files, table_elsewhere};

/// The relation functions of a session: ours, and those that were added. They travel in the session's configuration.
#[derive(Debug)]
pub struct RelationFunctions(RwLock<Vec<Arc<dyn RelationFunction>>>);

impl std::default::Default for RelationFunctions {
    fn default() -> Self {
        RelationFunctions(RwLock::new(tq_udfs::relation_functions()))
    }
}

impl RelationFunctions {
    /// Those of a session; ours alone for one that was not [configured](super::configure).
    pub fn of(context: &SessionContext) -> Arc<RelationFunctions> {
        context.copied_config().get_extension().unwrap_or_default()
    }

    /// All of them.
    pub fn all(&self) -> Vec<Arc<dyn RelationFunction>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Their names.
    pub fn names(&self) -> Vec<&'static str> {
        self.all().iter().map(|function| function.name()).collect()
    }

    /// Adds a function. The caller makes sure that its name is free.
    pub fn add(&self, function: Arc<dyn RelationFunction>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).push(function);
    }

    /// The function of this name. Names without quotes do not depend on case.
    pub fn find(&self, name: &ObjectName) -> Option<Arc<dyn RelationFunction>> {
        let [part] = name.0.as_slice() else { return None };
        let ident = part.as_ident()?;
        let wanted = if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() };
        let functions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        functions.iter().find(|function| function.name() == wanted).cloned()
    }
}

/// The parameter that an argument is for: by its name, else by its position among those without one. `position` counts
/// the latter. `None`: there is no such parameter.
pub(super) fn parameter_of(
    function: &dyn RelationFunction,
    argument: &FunctionArg,
    position: &mut usize,
) -> Option<&'static Parameter> {
    let parameters = function.parameters();
    match argument {
        FunctionArg::Named { name, .. } | FunctionArg::ExprNamed { name: SqlExpr::Identifier(name), .. } => {
            parameters.iter().find(|parameter| parameter.name().eq_ignore_ascii_case(&name.value))
        }
        FunctionArg::ExprNamed { .. } => None,
        FunctionArg::Unnamed(_) => {
            *position += 1;
            parameters.get(*position - 1)
        }
    }
}

/// Plans calls of relation functions in FROM.
#[derive(Debug)]
pub struct Relations(pub Arc<RelationFunctions>);

impl RelationPlanner for Relations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table { ref name, args: Some(_), .. } = relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let Some(function) = self.0.find(name) else {
            refuse_unknown_function(name, &self.0.names(), context)?;
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let TableFactor::Table { name, alias, args: Some(arguments), with_ordinality, .. } = relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let span = name.span();
        if with_ordinality {
            return Err(error_at(
                span,
                format!("{name}: WITH ORDINALITY is not supported"),
                "its rows have no order; use `row_number() OVER (ORDER BY …)`",
            ));
        }
        let planned = plan_call(&function, arguments.args, span, context)?;
        let alias = alias.or_else(|| Some(alias_named(Ident::with_span(span, function.name()))));
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(planned, alias))))
    }
}

fn plan_call(
    function: &Arc<dyn RelationFunction>,
    arguments: Vec<FunctionArg>,
    span: Span,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let (mut inputs, mut options) = (vec![], vec![]);
    let mut position = 0;
    for argument in arguments {
        let at = argument.span();
        let omitted = matches!(argument, FunctionArg::ExprNamed { .. });
        refuse_comparison(function.as_ref(), &argument)?;
        let Some(parameter) = parameter_of(function.as_ref(), &argument, &mut position) else {
            return Err(unknown_parameter(function.as_ref(), &argument));
        };
        let (FunctionArg::Named { arg: FunctionArgExpr::Expr(value), .. }
        | FunctionArg::ExprNamed { arg: FunctionArgExpr::Expr(value), .. }
        | FunctionArg::Unnamed(FunctionArgExpr::Expr(value))) = argument
        else {
            return Err(error_at(
                at,
                format!("{}: `*` is no argument", function.name()),
                &format!("it is called {}", function.signature()),
            ));
        };
        match parameter {
            Parameter::Input(input) => {
                let planned = plan_input(function.as_ref(), input, value, omitted, span, context)?;
                inputs.push((input.name, at, planned));
            }
            Parameter::Option(option) => {
                options.push((option.name, at, plan_option(function.as_ref(), option, value, context)?));
            }
        }
    }
    refuse_twice(function.as_ref(), inputs.iter().map(|(name, at, _)| (*name, *at)))?;
    refuse_twice(function.as_ref(), options.iter().map(|(name, at, _)| (*name, *at)))?;
    let mut given = vec![];
    for input in function.inputs() {
        let Some(place) = inputs.iter().position(|(name, ..)| *name == input.name) else {
            return Err(error_at(
                span,
                format!("{}: input `{}` is missing", function.name(), input.name),
                &format!("it is called {}", function.signature()),
            ));
        };
        given.push(inputs.swap_remove(place).2);
    }
    let mut values = vec![];
    for option in function.options() {
        let given = options.iter().find(|(name, ..)| *name == option.name).map(|(.., value)| value.clone());
        values.push(match given {
            None if option.default == Default::Second => Some(second(context)?),
            given => given,
        });
    }
    plan(Arc::clone(function), given, values).map_err(|error| help_if_none(error, span, None))
}

fn plan_input(
    function: &dyn RelationFunction,
    input: &InputSpec,
    value: SqlExpr,
    omitted: bool,
    call: Span,
    context: &mut dyn RelationPlannerContext,
) -> Result<GivenInput> {
    // The name of an input that was left out stands nowhere: errors point at the function.
    let at = if omitted { call } else { value.span() };
    let SqlExpr::Subquery(subquery) = value else {
        return Err(error_at(
            at,
            format!("{}: `{}` must be a relation, `{value}` is not", function.name(), input.name),
            "give the name of a table, `TABLE(SELECT …)`, `(SELECT …)` or another relation function",
        ));
    };
    let factor = TableFactor::Derived { lateral: false, subquery, alias: None, sample: None };
    let plan = context.plan(factor).map_err(|error| match input.omitted {
        Omitted::Table(table) if omitted => help_if_none(
            error,
            at,
            Some(format!("{} reads `{table}` when its input `{}` is left out", function.name(), input.name)),
        ),
        _ => error,
    })?;
    if let Some(outer) = plan.all_out_ref_exprs().first() {
        return Err(error_at(
            at,
            format!("{}: input `{}` refers to `{outer}` of the outer query", function.name(), input.name),
            "give it all runs and compare the column `run` of its answer instead",
        ));
    }
    Ok(GivenInput { plan, omitted })
}

fn plan_option(
    function: &dyn RelationFunction,
    option: &OptionSpec,
    value: SqlExpr,
    context: &mut dyn RelationPlannerContext,
) -> Result<Expr> {
    let at = value.span();
    if let SqlExpr::Identifier(name) = &value
        && name.quote_style.is_none_or(|quote| quote == '"')
    {
        return Err(error_at(
            at,
            format!("{}: option `{}` must be a constant, `{name}` is a column", function.name(), option.name),
            &format!("a text needs single quotes: '{}'", name.value),
        ));
    }
    let value = context.sql_to_expr(value, &DFSchema::empty()).map_err(|error| help_if_none(error, at, None))?;
    Ok(constant(&value, context.context_provider().options()).unwrap_or(value))
}

/// The value of an option, which is needed before planning ends. So functions that planning replaces (`coalesce`, `now()`) are replaced here,
/// and arguments are cast (`ms(NULL)`). `None`: it is no constant, or an error, which is reported where the value is used.
fn constant(value: &Expr, options: &ConfigOptions) -> Option<Expr> {
    let is_later = |part: &Expr| Ok(matches!(part, Expr::Placeholder(_) | Expr::ScalarSubquery(_)));
    if value.exists(is_later).unwrap_or(true) {
        return None;
    }
    let schema = Arc::new(DFSchema::empty());
    let info = SimplifyContext::builder()
        .with_schema(Arc::clone(&schema))
        .with_config_options(Arc::new(options.clone()))
        .with_current_time()
        .build();
    let simplifier = ExprSimplifier::new(info);
    let value = simplifier.coerce(value.clone(), &schema).ok()?;
    simplifier.simplify(value).ok().filter(|value| matches!(value, Expr::Literal(..)))
}

/// How many ticks a second has in the session.
fn second(context: &mut dyn RelationPlannerContext) -> Result<Expr> {
    let second = Parser::new(&TqDialect).try_with_sql("s(1)").and_then(|mut parser| parser.parse_expr());
    context.sql_to_expr(second.map_err(|error| DataFusionError::SQL(Box::new(error), None))?, &DFSchema::empty())
}

/// `bins = 100` is parsed as a comparison of a column `bins` with 100.
fn refuse_comparison(function: &dyn RelationFunction, argument: &FunctionArg) -> Result<()> {
    if let FunctionArg::Unnamed(FunctionArgExpr::Expr(SqlExpr::BinaryOp { left, op: BinaryOperator::Eq, right })) =
        argument
        && let SqlExpr::Identifier(name) = left.as_ref()
    {
        return Err(error_at(
            argument.span(),
            format!("{}: `{name} = {right}` is a comparison", function.name()),
            &format!("an argument by name is written `{name} => {right}`"),
        ));
    }
    Ok(())
}

fn unknown_parameter(function: &dyn RelationFunction, argument: &FunctionArg) -> DataFusionError {
    let called = format!("it is called {}", function.signature());
    match argument {
        FunctionArg::Named { name, .. } => {
            let names = function.parameters().iter().map(Parameter::name);
            let hint = match nearest(&name.value, names) {
                Some(nearest) => format!("did you mean `{nearest}`? {called}"),
                None => called,
            };
            error_at(name.span, format!("{} has no argument `{}`", function.name(), name.value), &hint)
        }
        other => error_at(
            other.span(),
            format!("{} takes at most {} arguments", function.name(), function.parameters().len()),
            &called,
        ),
    }
}

fn refuse_twice(function: &dyn RelationFunction, given: impl Iterator<Item = (&'static str, Span)>) -> Result<()> {
    let mut seen = vec![];
    for (name, at) in given {
        if seen.contains(&name) {
            let called = format!("it is called {}", function.signature());
            return Err(error_at(at, format!("{}: `{name}` is given twice", function.name()), &called));
        }
        seen.push(name);
    }
    Ok(())
}

/// Refuses a call of an unknown function. DataFusion would plan the arguments first, and report an error in those.
fn refuse_unknown_function(name: &ObjectName, known: &[&str], context: &mut dyn RelationPlannerContext) -> Result<()> {
    let [part] = name.0.as_slice() else { return Ok(()) };
    let Some(ident) = part.as_ident() else { return Ok(()) };
    let normal = context.normalize_ident(ident.clone());
    match context.context_provider().get_table_function_source(&ident.to_string(), vec![]) {
        Err(error) if error.to_string().contains(" not found") => {
            let elsewhere = table_elsewhere(&normal).or_else(|| reads_files(&normal).then_some(FILES_ARE_OPENED));
            let near = || nearest(&normal, known.iter().copied().chain(["range", "generate_series"]));
            let hint = match elsewhere {
                Some(hint) => hint.to_owned(),
                None => near().map_or_else(
                    || format!("relation functions are {}", known.join(", ")),
                    |nearest| format!("did you mean `{nearest}`?"),
                ),
            };
            Err(error_at(name.span(), format!("no relation function `{normal}`"), &hint))
        }
        _ => Ok(()),
    }
}

fn alias_named(name: Ident) -> TableAlias {
    TableAlias { explicit: true, name, columns: vec![], at: None }
}

/// Whether DataFusion finds at the end that it has left out a sort which it needs: it knows of rows that a column is constant, and forgets it
/// on the way.
fn is_refused_order(error: &DataFusionError) -> bool {
    error.to_string().contains("does not satisfy order requirements")
}

/// Plans queries as DataFusion does, and relation functions with it. Where it has left out a sort, windows are planned once more by keys
/// of which nothing is known.
#[derive(Debug)]
pub struct RelationQueryPlanner;

#[async_trait]
impl QueryPlanner for RelationQueryPlanner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(RelationOperators)]);
        let plan = in_turn(settled(named(with_null_keys(of_no_rows(plan.clone())?)?)?)?)?;
        let planned = match planner.create_physical_plan(&plan, session).await {
            Err(error) if is_refused_order(&error) => {
                planner.create_physical_plan(&with_opaque_keys(plan.clone())?, session).await
            }
            planned => planned,
        };
        #[cfg(feature = "cluster")]
        return super::elsewhere::planned(&plan, planned?, &planner, session).await;
        #[cfg(not(feature = "cluster"))]
        planned
    }
}

/// Turns the logical node of a relation function into its operator.
#[derive(Debug)]
pub struct RelationOperators;

#[async_trait]
impl ExtensionPlanner for RelationOperators {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        _: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<RelationNode>() else { return Ok(None) };
        let schema = Arc::clone(datafusion::logical_expr::UserDefinedLogicalNodeCore::schema(node).inner());
        let operator = RelationExec::new(node.call().clone(), node.physical_options(context)?, inputs.to_vec(), schema);
        Ok(Some(Arc::new(operator)))
    }
}
