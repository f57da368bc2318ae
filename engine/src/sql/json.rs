//! `a->'b'->'c'->>'d'` as one call with a path of three keys, and `->` as PostgreSQL has it: JSON text.
//!
//! The `->` of datafusion-functions-json is a union of the types that JSON has: it cannot be written as JSON or Parquet, and casts to text
//! are NULL. [`json_get_json`](json_get_json_udf) is the text of what stands there.
//!
//! datafusion-functions-json (0.55.6) plans each operator as a call with an alias around it. DataFusion asks an alias for its
//! type and for its metadata, each of which asks all below: twice the time for each key more (16 keys took 24 s to plan).
//! This planner is asked before that one and makes what its rewriter makes of it later: one call, with one alias, under the
//! same name.

use std::sync::Arc;

use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Alias, ScalarFunction};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ScalarUDF};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use datafusion_functions_json::udfs::{json_as_text_udf, json_get_json_udf};

/// Plans `->` and `->>` on what `->` gives.
#[derive(Debug)]
pub(super) struct JsonPaths;

impl ExprPlanner for JsonPaths {
    fn plan_binary_op(&self, expr: RawBinaryExpr, _: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let (function, operator): (Arc<ScalarUDF>, &str) = match expr.op {
            BinaryOperator::Arrow => (json_get_json_udf(), "->"),
            BinaryOperator::LongArrow => (json_as_text_udf(), "->>"),
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let path = match &expr.left {
            Expr::Alias(alias) => match alias.expr.as_ref() {
                Expr::ScalarFunction(call) if call.func.name() == json_get_json_udf().name() => {
                    Some((call, &alias.name))
                }
                _ => None,
            },
            _ => None,
        };
        let path = path.filter(|(call, _)| call.args.iter().skip(1).all(|given| self::key(given).is_some()));
        let (Some((call, name)), Some(key)) = (path, key(&expr.right)) else {
            // The first step, and a key that is computed.
            if expr.op == BinaryOperator::LongArrow {
                return Ok(PlannerResult::Original(expr));
            }
            let left = match &expr.left {
                Expr::Column(column) => column.name.clone(),
                left => left.schema_name().to_string(),
            };
            let name =
                format!("{left} -> {}", key(&expr.right).unwrap_or_else(|| expr.right.schema_name().to_string()));
            let call = Expr::ScalarFunction(ScalarFunction { func: function, args: vec![expr.left, expr.right] });
            return Ok(PlannerResult::Planned(Expr::Alias(Alias::new(call, None::<&str>, name))));
        };
        let name = format!("{name} {operator} {key}");
        let args = call.args.iter().cloned().chain([expr.right.clone()]).collect();
        let call = Expr::ScalarFunction(ScalarFunction { func: function, args });
        Ok(PlannerResult::Planned(Expr::Alias(Alias::new(call, None::<&str>, name))))
    }
}

/// A constant key or position, as it is written.
fn key(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(ScalarValue::Utf8(Some(key)), _) => Some(format!("'{key}'")),
        Expr::Literal(ScalarValue::Int64(Some(position)), _) => Some(position.to_string()),
        _ => None,
    }
}
