//! DECIMALs that meet DOUBLEs are DOUBLEs, as in PostgreSQL and DuckDB.
//!
//! DataFusion (55.2) makes both DECIMAL(30, 15), in which small doubles are 0 and great ones an error:
//!
//! ```text
//! d = n, d < n, d IN (n), d BETWEEN n AND n      1e-20 was 0.00
//! CASE … THEN d ELSE n END, coalesce(d, n), greatest(d, n), [d, n]
//! SELECT d UNION SELECT n, VALUES (d), (n), JOIN … USING: likewise, column by column
//! ```
//! A number that is written out (`n > 0.5`) stays as exact as it is written.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Case, InList, InSubquery, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Between, BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Subquery, Union, Values, cast,
};

/// Functions whose arguments come to have one type.
const OF_ONE_TYPE: [&str; 6] = ["coalesce", "nvl", "nullif", "greatest", "least", "make_array"];

/// Digits before and behind the point of the DECIMAL that DataFusion makes of a DOUBLE.
const OF_DOUBLES: usize = 15;

/// Casts DECIMALs beside DOUBLEs, before types are brought together.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut has_changed = false;
    plan.transform_up_with_subqueries(|plan| {
        let plan = match plan {
            LogicalPlan::Union(union) if has_changed => {
                LogicalPlan::Union(Union::try_new_with_loose_types(union.inputs)?)
            }
            plan if has_changed => plan.recompute_schema()?,
            plan => plan,
        };
        let rewritten = node(plan)?;
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

/// Rows that are written out: what was cast to a column's DECIMAL, and may have lost by it, is a DOUBLE again.
fn rows(Values { schema, mut values }: Values) -> Result<Transformed<LogicalPlan>> {
    let none = DFSchema::empty();
    let mut fields = vec![];
    let mut has_changed = false;
    for (at, (relation, field)) in schema.iter().enumerate() {
        let to = field.data_type();
        let loses = |value: &Expr| {
            matches!(value, Expr::Cast(Cast { expr, field })
                if field.data_type() == to && !is_exact(expr) && expr.get_type(&none).is_ok_and(|from| is_double(&from)))
        };
        if !is_decimal(to) || !values.iter().filter_map(|row| row.get(at)).any(loses) {
            fields.push((relation.cloned(), Arc::clone(field)));
            continue;
        }
        has_changed = true;
        fields.push((relation.cloned(), Arc::new(field.as_ref().clone().with_data_type(DataType::Float64))));
        for value in values.iter_mut().filter_map(|row| row.get_mut(at)) {
            let given = match std::mem::take(value) {
                Expr::Cast(Cast { expr, field }) if field.data_type() == to => *expr,
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

/// The branches of a UNION, whose columns have one type each.
fn branches(union: Union) -> Result<Transformed<LogicalPlan>> {
    let mut inputs = Vec::with_capacity(union.inputs.len());
    let mut has_changed = false;
    let columns = union.schema.fields().len();
    let is_mixed: Vec<bool> = (0..columns)
        .map(|at| {
            let types = || union.inputs.iter().filter_map(|input| Some(input.schema().fields().get(at)?.data_type()));
            types().any(is_double) && types().any(is_decimal)
        })
        .collect();
    for input in &union.inputs {
        let schema = input.schema();
        let is_cast = |at: usize| {
            is_mixed.get(at) == Some(&true)
                && schema.fields().get(at).is_some_and(|field| is_decimal(field.data_type()))
        };
        if !(0..columns).any(is_cast) {
            inputs.push(Arc::clone(input));
            continue;
        }
        has_changed = true;
        let values = schema.iter().enumerate().map(|(at, (relation, field))| {
            let column = Expr::Column((relation, field).into());
            match is_cast(at) {
                true => cast(column, DataType::Float64).alias_qualified(relation.cloned(), field.name()),
                false => column,
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

fn of_one_type(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let of = |parts: Vec<&mut Expr>| settle(parts.into_iter().map(|part| (part, schema)));
    let changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if op.supports_propagation() => of(vec![left, right])?,
        Expr::Between(Between { expr, low, high, .. }) => of(vec![expr, low, high])?,
        Expr::InList(InList { expr, list, .. }) => of(std::iter::once(expr.as_mut()).chain(list).collect())?,
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
        Expr::ScalarFunction(call) if OF_ONE_TYPE.contains(&call.name()) => of(call.args.iter_mut().collect())?,
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => asked(expr, subquery, schema)?,
        _ => false,
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
    let mut decimals = vec![];
    let mut has_double = false;
    for (value, schema) in values {
        // What has no type yet is a parameter.
        let Ok(data_type) = value.get_type(schema) else { continue };
        has_double |= is_double(&data_type) && !is_exact(value);
        if is_decimal(&data_type) {
            decimals.push(value);
        }
    }
    let changes = has_double && !decimals.is_empty();
    if changes {
        for value in decimals {
            *value = cast(std::mem::take(value), DataType::Float64);
        }
    }
    Ok(changes)
}

fn is_double(data_type: &DataType) -> bool {
    data_type.is_floating()
}

fn is_decimal(data_type: &DataType) -> bool {
    data_type.is_decimal()
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
