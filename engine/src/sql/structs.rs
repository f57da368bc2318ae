//! `struct(a, b)` and `{'k': a}` within the limit on the size of types ([`tq_udfs::parts`]). DataFusion's own functions for them have no limit.

use std::sync::Arc;

use datafusion::common::{DFSchema, Result};
use datafusion::functions::core::{named_struct, r#struct};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawDictionaryExpr};
use datafusion::logical_expr::{Expr, ScalarUDF};
use tq_udfs::parts::within_parts;

/// Plans structs that are written out. Its place is before DataFusion's own planner.
#[derive(Debug)]
pub(super) struct Structs;

fn call(function: Arc<ScalarUDF>, args: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(within_parts(function)), args))
}

impl ExprPlanner for Structs {
    fn plan_dictionary_literal(
        &self,
        literal: RawDictionaryExpr,
        _: &DFSchema,
    ) -> Result<PlannerResult<RawDictionaryExpr>> {
        let args = literal.keys.into_iter().zip(literal.values).flat_map(|(key, value)| [key, value]).collect();
        Ok(PlannerResult::Planned(call(named_struct(), args)))
    }

    fn plan_struct_literal(&self, args: Vec<Expr>, is_named: bool) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(call(if is_named { named_struct() } else { r#struct() }, args)))
    }
}
