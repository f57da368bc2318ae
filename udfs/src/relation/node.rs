//! The logical node of all relation functions, and the form into which it brings their inputs.
//!
//! [`plan`] puts a projection over each input: known names, known types, no qualifiers. The projection is where a missing
//! column is noticed; it keeps the schema of the node the same whatever the inputs are; and it lets the optimiser copy a
//! filter on `run` from above the node into each input.
//!
//! ```text
//! Relation: critical_path(tasks, links omitted, break_weak => false)
//!   Projection: tasks.run AS run, tasks.task AS task, tasks.duration AS duration, …
//!     TableScan: tasks projection=[run, task, duration]
//!   Projection: links.run AS run, links.source AS source, …
//!     TableScan: links projection=[run, source, target]
//! ```

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, DFSchemaRef, Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{
    ColumnarValue, Expr, ExprSchemable, Extension, LogicalPlan, LogicalPlanBuilder, UserDefinedLogicalNodeCore, lit,
};
use datafusion_physical_expr::expressions::Literal;
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};

use crate::relation::{InputSpec, OptionSpec, RelationFunction, is_text};

/// An argument that is a relation.
#[derive(Debug)]
pub struct GivenInput {
    /// Its rows.
    pub plan: LogicalPlan,
    /// Whether the call left it out, so that the plan is the default of the function.
    pub omitted: bool,
}

/// Plans a call. `inputs` in the order of the function's inputs; `options` in the order of its options, `None` for those
/// that were not given. Errors name the function, the argument and the column.
pub fn plan(
    function: Arc<dyn RelationFunction>,
    inputs: Vec<GivenInput>,
    options: Vec<Option<Expr>>,
) -> Result<LogicalPlan> {
    let specs = function.inputs();
    if specs.len() != inputs.len() || function.options().len() != options.len() {
        return internal_err!("{}: {} inputs, {} options", function.name(), inputs.len(), options.len());
    }
    let run_type = run_type(function.as_ref(), &specs, &inputs)?;
    let omitted = inputs.iter().map(|input| input.omitted).collect();
    let mut values = Vec::with_capacity(options.len());
    let mut constants = HashMap::new();
    for (spec, given) in function.options().into_iter().zip(options) {
        let value = match (given, spec.default_value()) {
            (Some(given), _) => given,
            (None, Some(default)) => lit(default),
            (None, None) => return plan_err!("{}: option `{}` is missing", function.name(), spec.name),
        };
        refuse_columns(function.as_ref(), spec, &value)?;
        if is_constant(&value)? {
            let expression = physical_option(function.as_ref(), spec, &value, &PhysicalPlanningContext::default())?;
            constants.insert(spec.name, option_value(function.as_ref(), spec, expression.as_ref())?);
        }
        values.push(value);
    }
    let mut normalised = Vec::with_capacity(inputs.len());
    for (spec, input) in specs.into_iter().zip(inputs) {
        let plan = windowed(function.as_ref(), spec, input.plan, &constants)?;
        normalised.push(normalise(function.as_ref(), spec, plan, run_type.as_ref())?);
    }
    // The one run of inputs without runs is NULL; text, as the names of runs are.
    let run = Field::new("run", run_type.unwrap_or(DataType::Utf8View), true);
    let typed = |field: Field| match type_handed_on(function.as_ref(), &normalised, &field) {
        Some(data_type) => field.with_data_type(data_type),
        None => field,
    };
    let run = (!function.across_runs()).then_some(run);
    let fields: Vec<Field> = run.into_iter().chain(function.output().into_iter().map(typed)).collect();
    let schema = DFSchema::try_from(Schema::new(fields))?;
    let node = RelationNode {
        call: RelationCall { function, omitted },
        inputs: normalised,
        options: values,
        schema: Arc::new(schema),
    };
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}

/// Which function is called and which of its inputs were left out.
#[derive(Clone)]
pub struct RelationCall {
    /// The function.
    pub function: Arc<dyn RelationFunction>,
    /// Per input, whether the call left it out.
    pub omitted: Vec<bool>,
}

impl fmt::Debug for RelationCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.function.name(), self.omitted)
    }
}

impl PartialEq for RelationCall {
    fn eq(&self, other: &Self) -> bool {
        self.function.name() == other.function.name() && self.omitted == other.omitted
    }
}

impl Eq for RelationCall {}

impl Hash for RelationCall {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.name().hash(state);
        self.omitted.hash(state);
    }
}

impl RelationCall {
    /// The call for EXPLAIN: `critical_path(tasks, links omitted, break_weak => false)`.
    pub fn describe(&self, options: &[impl fmt::Display]) -> String {
        let inputs = self.function.inputs().into_iter().zip(&self.omitted);
        let inputs = inputs.map(|(input, omitted)| format!("{}{}", input.name, if *omitted { " omitted" } else { "" }));
        let options = self.function.options().into_iter().zip(options);
        let options = options.map(|(option, value)| format!("{} => {value}", option.name));
        let arguments: Vec<String> = inputs.chain(options).collect();
        format!("{}({})", self.function.name(), arguments.join(", "))
    }
}

/// A relation function with its inputs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RelationNode {
    call: RelationCall,
    inputs: Vec<LogicalPlan>,
    options: Vec<Expr>,
    schema: DFSchemaRef,
}

impl RelationNode {
    /// The function and which inputs were left out.
    pub fn call(&self) -> &RelationCall {
        &self.call
    }

    /// The options, in the order of the function's options: constants of their types, and expressions of scalar subqueries,
    /// which have a value once those were answered. A placeholder without a value is an error.
    pub fn physical_options(&self, context: &PhysicalPlanningContext) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        let function = self.call.function.as_ref();
        let given = function.options().into_iter().zip(&self.options);
        given
            .map(|(spec, value)| {
                let expression = physical_option(function, spec, value, context)?;
                if !is_constant(value)? {
                    return Ok(expression);
                }
                Ok(Arc::new(Literal::new(option_value(function, spec, expression.as_ref())?)) as Arc<dyn PhysicalExpr>)
            })
            .collect()
    }
}

impl PartialOrd for RelationNode {
    /// Nodes have no order.
    fn partial_cmp(&self, _: &Self) -> Option<Ordering> {
        None
    }
}

impl UserDefinedLogicalNodeCore for RelationNode {
    fn name(&self) -> &str {
        "Relation"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.inputs.iter().collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// Options are expressions, so that `$placeholders` in them are replaced as everywhere.
    fn expressions(&self) -> Vec<Expr> {
        self.options.clone()
    }

    /// A filter may go into the inputs when it looks at `run` alone and every input has that column.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let all_have_runs = self.inputs.iter().all(|input| input.schema().has_column_with_unqualified_name("run"));
        let columns = self.schema.fields().iter().map(|field| field.name().clone());
        columns.filter(|column| !(all_have_runs && column == "run")).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Relation: {}", self.call.describe(&self.options))
    }

    fn with_exprs_and_inputs(&self, options: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        // The optimiser copies a filter without columns into every input. For one that says something else each time
        // that would be another question; [`normalise`] never puts a filter on top, so this one came from above.
        for input in &inputs {
            if let LogicalPlan::Filter(filter) = input
                && filter.predicate.is_volatile()
            {
                return plan_err!(
                    "{} cannot be filtered by `{}`, which has another value each time: select it as a column first",
                    self.call.function.name(),
                    filter.predicate
                );
            }
        }
        Ok(RelationNode { call: self.call.clone(), inputs, options, schema: Arc::clone(&self.schema) })
    }

    /// Input columns that are used only for unread output columns are not needed.
    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let read: Vec<&str> = output_columns.iter().map(|column| self.schema.field(*column).name().as_str()).collect();
        let needed = |(spec, input): (&InputSpec, &LogicalPlan)| {
            let serves = |name: &str| match spec.columns.iter().find(|column| column.name == name) {
                Some(column) => column.only_for.is_empty() || column.only_for.iter().any(|name| read.contains(name)),
                None => true,
            };
            let columns = input.schema().fields().iter().enumerate();
            columns.filter(|(_, field)| serves(field.name())).map(|(column, _)| column).collect()
        };
        Some(self.call.function.inputs().into_iter().zip(&self.inputs).map(needed).collect())
    }
}

/// The type of an output column that has the values of an input column, if the input has it.
fn type_handed_on(function: &dyn RelationFunction, inputs: &[LogicalPlan], field: &Field) -> Option<DataType> {
    let from = function.handed_on().iter().find(|from| from.output == field.name())?;
    let place = function.inputs().iter().position(|input| input.name == from.input)?;
    let column = inputs.get(place)?.schema().field_with_unqualified_name(from.column).ok()?;
    Some(column.data_type().clone())
}

/// The type in which `run` comes: that of the first input, to which the others are brought. `None`: the first input has
/// no runs, so everything is one run.
fn run_type(function: &dyn RelationFunction, specs: &[&InputSpec], inputs: &[GivenInput]) -> Result<Option<DataType>> {
    let mut first: Option<(&str, DataType)> = None;
    for (spec, input) in specs.iter().zip(inputs) {
        let Some(column) = find_column(function, spec, &input.plan, function.runs_from())? else {
            if first.is_none() {
                return Ok(None);
            }
            continue;
        };
        let given = column.get_type(input.plan.schema())?;
        match &first {
            None if given == DataType::Null => first = Some((spec.name, DataType::Utf8View)),
            None => first = Some((spec.name, given)),
            Some((name, expected)) => {
                let alike = &given == expected
                    || given == DataType::Null
                    || (is_text(&given) && is_text(expected))
                    || (given.is_integer() && expected.is_integer());
                if !alike {
                    return plan_err!(
                        "{}: `run` is {expected} in input `{name}` and {given} in input `{}`",
                        function.name(),
                        spec.name
                    );
                }
            }
        }
    }
    Ok(first.map(|(_, data_type)| data_type))
}

/// An input without the rows that lie outside of the function's window, where its bounds are known. A scan reads less then. Rows without
/// times stay: functions count them.
fn windowed(
    function: &dyn RelationFunction,
    spec: &InputSpec,
    input: LogicalPlan,
    constants: &HashMap<&str, ScalarValue>,
) -> Result<LogicalPlan> {
    let Some(window) = function.window().filter(|window| window.input == spec.name) else { return Ok(input) };
    let bound = |option: &str| match constants.get(option) {
        Some(ScalarValue::Int64(bound)) => bound.map(lit),
        _ => None,
    };
    let [from, to] = window.options.map(bound);
    let [start, finish] = window.columns.map(|column| find_column(function, spec, &input, column));
    let (Some(start), Some(finish)) = (start?, finish?) else { return Ok(input) };
    for column in [&start, &finish] {
        if column.get_type(input.schema())? != DataType::Int64 {
            return Ok(input);
        }
    }
    let bounds = to.map(|to| start.clone().lt_eq(to)).into_iter().chain(from.map(|from| finish.clone().gt_eq(from)));
    let Some(within) = bounds.reduce(Expr::and) else { return Ok(input) };
    LogicalPlanBuilder::from(input).filter(within.or(start.is_null()).or(finish.is_null()))?.build()
}

/// An input with exactly the columns that the function reads.
fn normalise(
    function: &dyn RelationFunction,
    spec: &InputSpec,
    input: LogicalPlan,
    run_type: Option<&DataType>,
) -> Result<LogicalPlan> {
    let schema = Arc::clone(input.schema());
    let mut columns = vec![];
    let mut take = |name: &str, column: Expr, data_type: &DataType| -> Result<()> {
        let same = &column.get_type(&schema)? == data_type;
        let column = if same { column } else { column.cast_to(data_type, &schema)? };
        columns.push(column.alias(name));
        Ok(())
    };
    if let Some(run_type) = run_type
        && let Some(run) = find_column(function, spec, &input, function.runs_from())?
    {
        take("run", run, run_type)?;
    }
    for wanted in spec.columns {
        let Some(column) = find_column(function, spec, &input, wanted.name)? else {
            if wanted.needed {
                let alias = match schema.fields().len() {
                    1 => format!("; give it that name: `AS {}`", wanted.name),
                    _ => String::new(),
                };
                return plan_err!(
                    "{}: input `{}` has no column `{}`; it has {}{alias}",
                    function.name(),
                    spec.name,
                    wanted.name,
                    column_names(&schema)
                );
            }
            continue;
        };
        let given = column.get_type(&schema)?;
        let Some(data_type) = wanted.kind.normalised(&given) else {
            return plan_err!(
                "{}: column `{}` of input `{}` is {given}, but {} is needed; CAST it",
                function.name(),
                wanted.name,
                spec.name,
                wanted.kind.sql_name()
            );
        };
        take(wanted.name, column, &data_type)?;
    }
    LogicalPlanBuilder::from(input).project(columns)?.build()
}

fn find_column(
    function: &dyn RelationFunction,
    spec: &InputSpec,
    input: &LogicalPlan,
    name: &str,
) -> Result<Option<Expr>> {
    match input.schema().qualified_fields_with_unqualified_name(name).as_slice() {
        [] => Ok(None),
        [(qualifier, field)] => Ok(Some(Expr::Column(Column::from((*qualifier, *field))))),
        several => {
            let names: Vec<String> =
                several.iter().map(|(qualifier, field)| Column::from((*qualifier, *field)).flat_name()).collect();
            plan_err!(
                "{}: input `{}` has several columns `{name}`: {}; select one of them",
                function.name(),
                spec.name,
                names.join(", ")
            )
        }
    }
}

fn column_names(schema: &DFSchema) -> String {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Whether a value is known when the query is planned: it has no placeholder and no subquery.
fn is_constant(value: &Expr) -> Result<bool> {
    Ok(!value.exists(|part| Ok(matches!(part, Expr::Placeholder(_) | Expr::ScalarSubquery(_))))?)
}

/// An option has one value for the whole call: it may be the answer of a query, but looks at no row of another one.
fn refuse_columns(function: &dyn RelationFunction, spec: &OptionSpec, value: &Expr) -> Result<()> {
    let (name, option) = (function.name(), spec.name);
    let mut outer = None;
    value.apply(|part| {
        match part {
            Expr::ScalarSubquery(subquery) => outer = outer.take().or(subquery.outer_ref_columns.first().cloned()),
            Expr::OuterReferenceColumn(..) => outer = outer.take().or(Some(part.clone())),
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => {
                return plan_err!("{name}: option `{option}` must be a constant or `(SELECT …)` of one value");
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if let Some(outer) = outer {
        return plan_err!("{name}: option `{option}` refers to `{outer}` of the outer query");
    }
    if !value.column_refs().is_empty() {
        return plan_err!("{name}: option `{option}` must be a constant, `{value}` is not; a text needs single quotes");
    }
    Ok(())
}

/// The expression of an option, which reads no columns. `context` knows the places of scalar subqueries.
fn physical_option(
    function: &dyn RelationFunction,
    spec: &OptionSpec,
    value: &Expr,
    context: &PhysicalPlanningContext,
) -> Result<Arc<dyn PhysicalExpr>> {
    let (name, option) = (function.name(), spec.name);
    if value.exists(|part| Ok(matches!(part, Expr::Placeholder(_))))? {
        return plan_err!("{name}: option `{option}` is {value}, which has no value");
    }
    create_physical_expr(value, &DFSchema::empty(), &ExecutionProps::new(), context)
        .map_err(|error| error.context(format!("{name}: option `{option}`")))
}

/// The value of an option, in its type.
pub(super) fn option_value(
    function: &dyn RelationFunction,
    spec: &OptionSpec,
    expression: &dyn PhysicalExpr,
) -> Result<ScalarValue> {
    let (name, option) = (function.name(), spec.name);
    let one_row = RecordBatch::try_new_with_options(
        Arc::new(Schema::empty()),
        vec![],
        &arrow::array::RecordBatchOptions::new().with_row_count(Some(1)),
    )?;
    let evaluated = expression.evaluate(&one_row).and_then(|value| match value {
        ColumnarValue::Scalar(scalar) => Ok(scalar),
        ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0),
    });
    let scalar = evaluated.map_err(|error| error.context(format!("{name}: option `{option}`")))?;
    let kind = spec.kind;
    let cast = scalar.cast_to(&kind.data_type());
    match cast {
        Ok(cast) if cast.is_null() == scalar.is_null() && is_exact(&scalar, &cast) => Ok(cast),
        _ if is_text(&scalar.data_type()) => plan_err!("{name}: option `{option}` is {kind}, but '{scalar}' was given"),
        _ => plan_err!("{name}: option `{option}` is {kind}, but {scalar} was given"),
    }
}

/// Whether a cast kept the value: `2.5` bins are a mistake, not 2 bins, and 7 is no BOOLEAN.
fn is_exact(given: &ScalarValue, cast: &ScalarValue) -> bool {
    if given.data_type().is_numeric() && cast.data_type() == DataType::Boolean {
        return false;
    }
    if !given.data_type().is_floating() || !cast.data_type().is_integer() {
        return true;
    }
    cast.cast_to(&given.data_type()).is_ok_and(|back| &back == given)
}
