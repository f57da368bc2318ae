//! DECIMALs that meet DOUBLEs are DOUBLEs, as in PostgreSQL and DuckDB.
//!
//! DataFusion (55.2) makes both DECIMAL(30, 15), in which small doubles are 0 and great ones an error:
//!
//! ```text
//! d = n, d < n, d IN (n), d BETWEEN n AND n      1e-20 was 0.00
//! CASE … THEN d ELSE n END, coalesce(d, n), greatest(d, n), [d, n], functions and comparisons of lists
//! SELECT d UNION SELECT n, VALUES (d), (n), JOIN … USING: likewise, column by column
//! ```
//! A number that is written out (`n > 0.5`) stays as exact as it is written.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::type_coercion::binary::type_union_coercion;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Subquery, Union, Values, cast,
};

use crate::sql::{equal, quantified};

/// Functions whose arguments come to have one type, those of lists that of their elements.
const OF_ONE_TYPE: [&str; 22] = [
    "coalesce",
    "nvl",
    "nullif",
    "greatest",
    "least",
    "make_array",
    "array_append",
    "array_prepend",
    "array_concat",
    "array_except",
    "array_has",
    "array_has_all",
    "array_has_any",
    "array_intersect",
    "array_position",
    "array_positions",
    "array_remove",
    "array_remove_all",
    "array_replace",
    "array_replace_all",
    "array_union",
    "arrays_overlap",
];

/// Digits before and behind the point of the DECIMAL that DataFusion makes of a DOUBLE.
const OF_DOUBLES: usize = 15;

/// Casts DECIMALs beside DOUBLEs, before types are brought together.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    // What is inserted has the types of the table's columns.
    let inserts = plan.exists(|node| Ok(matches!(node, LogicalPlan::Dml(_))))?;
    let mut has_changed = false;
    plan.transform_up_with_subqueries(|plan| {
        let plan = match plan {
            LogicalPlan::Union(union) if has_changed => {
                LogicalPlan::Union(Union::try_new_with_loose_types(union.inputs)?)
            }
            plan if has_changed => plan.recompute_schema()?,
            plan => plan,
        };
        let rewritten = match plan {
            LogicalPlan::Values(values) if inserts => Transformed::no(LogicalPlan::Values(values)),
            plan => node(plan)?,
        };
        has_changed |= rewritten.transformed;
        Ok(rewritten)
    })
    .data()
}

fn node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut keys_changed = false;
    let plan = match plan {
        LogicalPlan::Union(union) => return branches(union),
        LogicalPlan::Values(values) => return rows(values),
        LogicalPlan::Join(mut join) => {
            let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
            for (key, other) in &mut join.on {
                keys_changed |= settle([(key, left.as_ref()), (other, right.as_ref())])?;
            }
            LogicalPlan::Join(join)
        }
        plan => plan,
    };
    let schema = merge_schema(&plan.inputs());
    let names = NamePreserver::new(&plan);
    let mut plan = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|expr| of_one_type(expr, &schema))?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })?;
    plan.transformed |= keys_changed;
    if plan.transformed { plan.map_data(LogicalPlan::recompute_schema) } else { Ok(plan) }
}

/// The rows of VALUES: a DOUBLE that was cast to a column's DECIMAL, which may lose digits, is a DOUBLE again.
fn rows(Values { schema, mut values }: Values) -> Result<Transformed<LogicalPlan>> {
    let none = DFSchema::empty();
    let mut fields = vec![];
    let mut has_changed = false;
    for (at, (relation, field)) in schema.iter().enumerate() {
        let to = field.data_type();
        let loses = |value: &Expr| match value {
            Expr::Cast(Cast { expr, field }) => {
                field.data_type() == to && !is_exact(expr) && expr.get_type(&none).is_ok_and(|from| from.is_floating())
            }
            Expr::ScalarSubquery(subquery) => cast_within(subquery, to)
                .is_some_and(|(value, rows)| value.get_type(rows.schema()).is_ok_and(|from| from.is_floating())),
            _ => false,
        };
        // Of what the user casts nothing has another DECIMAL before.
        let is_brought = |value: &Expr| {
            matches!(value, Expr::Cast(Cast { expr, field }) if field.data_type() == to
                && expr.get_type(&none).is_ok_and(|from| from.is_decimal() && &from != to))
        };
        let of_column = || values.iter().filter_map(|row| row.get(at));
        if !to.is_decimal() || !of_column().any(loses) || !of_column().any(is_brought) {
            fields.push((relation.cloned(), Arc::clone(field)));
            continue;
        }
        has_changed = true;
        fields.push((relation.cloned(), Arc::new(field.as_ref().clone().with_data_type(DataType::Float64))));
        for value in values.iter_mut().filter_map(|row| row.get_mut(at)) {
            let given = match std::mem::take(value) {
                Expr::Cast(Cast { expr, field }) if field.data_type() == to => *expr,
                Expr::ScalarSubquery(subquery) => Expr::ScalarSubquery(match cast_within(&subquery, to) {
                    Some((value, rows)) => {
                        let rows = LogicalPlanBuilder::from(rows.clone()).project([value.clone()])?.build()?;
                        subquery.with_plan(Arc::new(rows))
                    }
                    None => subquery,
                }),
                other => other,
            };
            *value = cast(given, DataType::Float64);
        }
    }
    if !has_changed {
        return Ok(Transformed::no(LogicalPlan::Values(Values { schema, values })));
    }
    let schema = DFSchema::new_with_metadata(fields, schema.metadata().clone())?;
    Ok(Transformed::yes(LogicalPlan::Values(Values { schema: Arc::new(schema), values })))
}

/// What a subquery that is a value casts to a type, and the rows of which it takes it: the planner puts the cast there.
fn cast_within<'a>(subquery: &'a Subquery, to: &DataType) -> Option<(&'a Expr, &'a LogicalPlan)> {
    let LogicalPlan::Projection(projection) = subquery.subquery.as_ref() else { return None };
    match projection.expr.as_slice() {
        [Expr::Cast(Cast { expr, field })] if field.data_type() == to => Some((expr, &projection.input)),
        _ => None,
    }
}

/// Gives the columns of all branches of a UNION their common type. The type of a UNION within a UNION is needed here already; until types are
/// brought together it would be that of its first branch.
fn branches(union: Union) -> Result<Transformed<LogicalPlan>> {
    let types: Vec<Option<DataType>> = (0..union.schema.fields().len())
        .map(|at| {
            let of = |input: &Arc<LogicalPlan>| Some(input.schema().fields().get(at)?.data_type().clone());
            let given: Vec<DataType> = union.inputs.iter().map(of).collect::<Option<_>>()?;
            let is_wanted =
                given.iter().any(|given| holds(given, DataType::is_decimal) || holds(given, DataType::is_floating));
            if is_wanted {
                given.into_iter().map(Some).reduce(|all, one| common_type(&all?, &one?)).flatten()
            } else {
                None
            }
        })
        .collect();
    let mut inputs = Vec::with_capacity(union.inputs.len());
    let mut has_changed = false;
    for input in &union.inputs {
        let schema = input.schema();
        let wanted = |at: usize| types.get(at).cloned().flatten();
        let is_as_wanted = |at: usize| wanted(at).is_none_or(|wanted| schema.field(at).data_type() == &wanted);
        if (0..schema.fields().len()).all(is_as_wanted) {
            inputs.push(Arc::clone(input));
            continue;
        }
        has_changed = true;
        let values = schema.iter().enumerate().map(|(at, (relation, field))| {
            let column = Expr::Column((relation, field).into());
            match wanted(at) {
                Some(wanted) if &wanted != field.data_type() => {
                    cast(column, wanted).alias_qualified(relation.cloned(), field.name())
                }
                _ => column,
            }
        });
        let values: Vec<Expr> = values.collect();
        inputs.push(Arc::new(LogicalPlanBuilder::from(input.as_ref().clone()).project(values)?.build()?));
    }
    if !has_changed {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

/// The type that values of two branches have in common.
pub(super) fn common_type(left: &DataType, right: &DataType) -> Option<DataType> {
    type_union_coercion(&beside(left, right), &beside(right, left))
}

/// Whether a type, or that of what it holds, is of a kind.
fn holds(data_type: &DataType, is_it: fn(&DataType) -> bool) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().any(|field| holds(field.data_type(), is_it)),
        data_type => match element(data_type) {
            Some(element) => holds(element, is_it),
            None => is_it(data_type),
        },
    }
}

fn element(data_type: &DataType) -> Option<&DataType> {
    match data_type {
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            Some(element.data_type())
        }
        _ => None,
    }
}

/// A type whose DECIMALs are DOUBLEs where another has DOUBLEs. Elements of a list are beside those of another list or beside a value;
/// fields of a struct are beside the field of their name or, where no name is shared, of their place.
fn beside(data_type: &DataType, other: &DataType) -> DataType {
    let of = |field: &FieldRef, other: &DataType| {
        let data_type = beside(field.data_type(), other);
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    let within = element(other).unwrap_or(other);
    match (data_type, other) {
        (DataType::List(element), _) => DataType::List(of(element, within)),
        (DataType::LargeList(element), _) => DataType::LargeList(of(element, within)),
        (DataType::FixedSizeList(element, length), _) => DataType::FixedSizeList(of(element, within), *length),
        (DataType::Struct(fields), DataType::Struct(others)) => {
            let shares_names = fields.iter().any(|field| others.find(field.name()).is_some());
            let fields = fields.iter().enumerate().map(|(at, field)| {
                let other =
                    if shares_names { others.find(field.name()).map(|(_, other)| other) } else { others.get(at) };
                other.map_or_else(|| Arc::clone(field), |other| of(field, other.data_type()))
            });
            DataType::Struct(fields.collect())
        }
        (data_type, _) if data_type.is_decimal() && within.is_floating() => DataType::Float64,
        (data_type, _) => data_type.clone(),
    }
}

fn of_one_type(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let of = |parts: Vec<&mut Expr>| settle(parts.into_iter().map(|part| (part, schema)));
    let changed = match &mut expr {
        Expr::Case(Case { expr, when_then_expr, else_expr }) => {
            let (mut compared, mut values) = (vec![], vec![]);
            for (when, then) in when_then_expr {
                compared.push(when.as_mut());
                values.push(then.as_mut());
            }
            values.extend(else_expr.as_deref_mut());
            let compares = match expr {
                Some(expr) => of(compared.into_iter().chain([expr.as_mut()]).collect())?,
                None => false,
            };
            of(values)? | compares
        }
        Expr::ScalarFunction(call) if OF_ONE_TYPE.contains(&call.name()) || quantified::compares(&call.func) => {
            of(call.args.iter_mut().collect())?
        }
        Expr::ScalarFunction(call) if call.name() == "nvl2" => of(call.args.iter_mut().skip(1).collect())?,
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => asked(expr, subquery, schema)?,
        comparison => of(equal::sides(comparison))?,
    };
    Ok(Transformed::new_transformed(expr, changed))
}

/// A value that is compared with those of a subquery.
fn asked(value: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let (relation, field) = subquery.subquery.schema().qualified_field(0);
    let mut column = Expr::Column((relation, field).into());
    let name = field.name().clone();
    let rows = Arc::clone(&subquery.subquery);
    if !settle([(value, schema), (&mut column, rows.schema().as_ref())])? {
        return Ok(false);
    }
    if !matches!(column, Expr::Column(_)) {
        let rows = LogicalPlanBuilder::from(rows.as_ref().clone()).project([column.alias(name)])?.build()?;
        *subquery = subquery.with_plan(Arc::new(rows));
    }
    Ok(true)
}

/// Casts the DECIMALs among values that come to have one type, if a DOUBLE is among them; whether it was so. Each has its schema.
fn settle<'a>(values: impl IntoIterator<Item = (&'a mut Expr, &'a DFSchema)>) -> Result<bool> {
    let mut typed = vec![];
    let mut doubles = vec![];
    for (value, schema) in values {
        // What has no type yet is a parameter.
        let Ok(data_type) = value.get_type(schema) else { continue };
        if holds(&data_type, DataType::is_floating) && !is_exact(value) {
            doubles.push(data_type.clone());
        }
        typed.push((value, data_type));
    }
    let mut has_changed = false;
    for (value, data_type) in typed {
        let wanted = doubles.iter().fold(data_type.clone(), |data_type, double| beside(&data_type, double));
        if wanted != data_type {
            *value = cast(std::mem::take(value), wanted);
            has_changed = true;
        }
    }
    Ok(has_changed)
}

/// Whether a number is written out that DataFusion's DECIMAL for it holds.
fn is_exact(value: &Expr) -> bool {
    match value {
        Expr::Alias(alias) => is_exact(&alias.expr),
        Expr::Negative(value) => is_exact(value),
        Expr::Literal(ScalarValue::Float64(Some(number)), _) => {
            let text = number.abs().to_string();
            let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
            number.is_finite() && whole.len() <= OF_DOUBLES && rest.len() <= OF_DOUBLES
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::lit;

    use super::*;

    #[test]
    fn numbers_that_are_written_out_stay_as_they_are() {
        for exact in [0.5, 0.1, 100.0, 999_999_999_999_999.0, 1e-15, -2.5] {
            assert!(is_exact(&lit(exact)), "{exact}");
        }
        for inexact in [1e-16, 1e15, f64::INFINITY, f64::NAN] {
            assert!(!is_exact(&lit(inexact)), "{inexact}");
        }
    }
}
