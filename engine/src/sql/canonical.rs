//! What makes a double makes it canonical: no -0.0, and one NaN ([`tq_udfs::canonical`] says why).
//!
//! ```text
//! x / y, x * y, -x …                canonical(x / y)
//! round(x, 1), CAST('-0' AS DOUBLE) canonical(…)
//! -0.0, NaN as literals             0.0, the one NaN
//! columns of external tables        canonical(x) AS x, above the scan
//! ```
//! Doubles of traces are canonical when they are read (`RunBuilder`). What only passes doubles on (columns, CASE, `coalesce` …) needs nothing.

use std::sync::{Arc, LazyLock};

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, ScalarUDF, TryCast,
};
use tq_udfs::canonical::{canonical_column, canonical_function, is_canonical};

static CANONICAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(canonical_function()));

/// Functions that answer one of their arguments, or an element of it.
const PASS_ON: [&str; 8] = ["coalesce", "nvl", "nvl2", "nullif", "greatest", "least", "array_element", "get_field"];

/// An expression whose double is canonical, where its parts are.
pub(super) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let makes_doubles = match &expr {
        Expr::Literal(value, metadata) => {
            return Ok(match of_literal(value)? {
                Some(value) => Transformed::yes(Expr::Literal(value, metadata.clone())),
                None => Transformed::no(expr),
            });
        }
        Expr::BinaryExpr(BinaryExpr { op, .. }) => is_arithmetic(*op),
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            field.data_type().is_floating() && !expr.get_type(schema)?.is_numeric()
        }
        Expr::ScalarFunction(call) => {
            if is_canonical(&call.func) && matches!(call.args.as_slice(), [argument] if is_made(argument)) {
                return Ok(Transformed::yes(bare(expr)));
            }
            !is_canonical(&call.func) && !PASS_ON.contains(&call.name())
        }
        _ => false,
    };
    if !makes_doubles || !expr.get_type(schema)?.is_floating() {
        return Ok(Transformed::no(expr));
    }
    let expr = match expr {
        // The answer is made canonical, so its terms need not be; but 1 / -0.0 is another infinity than 1 / 0.0.
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let right = if matches!(op, Operator::Divide | Operator::Modulo) { *right } else { bare(*right) };
            Expr::BinaryExpr(BinaryExpr { left: Box::new(bare(*left)), op, right: Box::new(right) })
        }
        other => other,
    };
    Ok(Transformed::yes(of(expr)))
}

/// Tables whose rows are those of a file have canonical doubles.
pub(super) fn scanned(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::TableScan(scan) = &plan else { return Ok(Transformed::no(plan)) };
    let schema = Arc::clone(plan.schema());
    let is_file = source_as_provider(&scan.source)?.downcast_ref::<ListingTable>().is_some();
    if !is_file || !schema.fields().iter().any(|field| field.data_type().is_floating()) {
        return Ok(Transformed::no(plan));
    }
    let columns = schema.iter().map(|(relation, field)| {
        let column = Expr::Column((relation, field).into());
        match field.data_type().is_floating() {
            true => of(column).alias_qualified(relation.cloned(), field.name()),
            false => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(Transformed::yes(LogicalPlanBuilder::from(plan).project(columns)?.build()?))
}

fn of(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&CANONICAL), vec![expr]))
}

fn is_made(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if is_canonical(&call.func))
}

/// The expression that is made canonical.
fn bare(expr: Expr) -> Expr {
    match expr {
        Expr::ScalarFunction(mut call) if is_canonical(&call.func) && call.args.len() == 1 => {
            call.args.pop().unwrap_or_default()
        }
        other => other,
    }
}

fn of_literal(value: &ScalarValue) -> Result<Option<ScalarValue>> {
    if !value.data_type().is_floating() {
        return Ok(None);
    }
    let plain = ScalarValue::try_from_array(&canonical_column(value.to_array()?), 0)?;
    // Compared by their bits.
    Ok((plain != *value).then_some(plain))
}

fn is_arithmetic(op: Operator) -> bool {
    matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide | Operator::Modulo)
}
