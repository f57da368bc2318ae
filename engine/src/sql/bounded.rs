//! Texts and lists that functions make stay within the session's bounds (`tq_udfs::bounded`), however a query asks for them.
//!
//! [`bind`] replaces the registered functions by bounded ones: whatever is named in a query is one of those, also where a
//! plan is computed before any rule has seen it (the arguments of table functions). DataFusion's planner puts functions of
//! its own where a query says `[1, 2]`, `a || b` of lists or `OVERLAY (… PLACING …)`, and the analyzer rule
//! [`WithinBounds`] replaces those, and `||` of texts, before anything is folded.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionContext;
use tq_udfs::bounded::{Bounds, ConcatOperator, names};

use super::checked::visible_columns;

/// Replaces the functions of a session by bounded ones, for queries that are planned from now on.
///
/// # Errors
/// None in practice: DataFusion's registries take any name.
pub fn bind(context: &mut SessionContext, bounds: &Arc<Bounds>) -> Result<()> {
    for name in names() {
        let Ok(function) = context.udf(name) else { continue };
        if let Some(bounded) = bounds.wrap(&function) {
            context.register_udf(Arc::new(bounded))?;
        }
    }
    Ok(())
}

/// `||` of texts, which no query can name.
pub(super) fn concat_operator(bounds: &Arc<Bounds>) -> Option<Arc<ScalarUDF>> {
    bounds.wrap(&Arc::new(ScalarUDF::from(ConcatOperator::new()))).map(Arc::new)
}

/// Replaces functions that the planner itself put into a plan. Add it after the analyzer's own rules.
#[derive(Debug)]
pub struct WithinBounds {
    bounds: Arc<Bounds>,
    concat: Option<Arc<ScalarUDF>>,
    /// What unbounded functions became, by their names.
    known: std::sync::Mutex<HashMap<String, Arc<ScalarUDF>>>,
}

impl WithinBounds {
    /// The rule.
    pub fn new(bounds: &Arc<Bounds>) -> Self {
        WithinBounds { bounds: Arc::clone(bounds), concat: concat_operator(bounds), known: std::sync::Mutex::default() }
    }

    fn rewrite_plan(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let schema = visible_columns(&plan)?;
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|expr| self.rewrite(expr, &schema))?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) => {
                let left_type = left.get_type(schema)?;
                match &self.concat {
                    Some(concat) if ConcatOperator::takes(&left_type) && left_type == right.get_type(schema)? => {
                        Ok(Transformed::yes(call(concat, vec![*left, *right])))
                    }
                    _ => Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }))),
                }
            }
            Expr::ScalarFunction(ScalarFunction { func, args }) => match self.bounded(&func) {
                Some(bounded) => Ok(Transformed::yes(call(&bounded, args))),
                None => Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args }))),
            },
            other => Ok(Transformed::no(other)),
        }
    }

    fn bounded(&self, function: &Arc<ScalarUDF>) -> Option<Arc<ScalarUDF>> {
        // A poisoned lock means that another query panicked; names and functions are still right.
        let mut known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let bounded = self.bounds.wrap(function)?;
        Some(Arc::clone(known.entry(function.name().to_owned()).or_insert_with(|| Arc::new(bounded))))
    }
}

impl AnalyzerRule for WithinBounds {
    fn name(&self) -> &str {
        "within_bounds"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(|plan| self.rewrite_plan(plan))?.data)
    }
}

fn call(function: &Arc<ScalarUDF>, args: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), args))
}
