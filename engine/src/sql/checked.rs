//! Integer arithmetic that does not wrap: `+`, `-`, `*` and unary `-` become checked functions.
//!
//! DataFusion's operators on integers wrap silently (`9223372036854775807 + 10` is negative). This rule runs after types are
//! settled and replaces them, where both sides have one integer type, by the functions of `tq_udfs::checked`. On decimals they, `/` and `%`
//! make numbers of more digits than the type has, of which printing cuts the last: those are checked too, and quotients rounded. Doubles,
//! dates and intervals stay with DataFusion, and so do comparisons: `duration > us(5)` is as it was. Division of integers is
//! checked already.
//!
//! It reaches every expression of a plan: subqueries, join conditions, window and aggregate arguments, extension nodes.
//! Chains of many terms become one call ([`tq_udfs::checked::chain`]).
//!
//! On the way, comparisons of what is equal and does not look so are mended (`equal.rs`, `interval_keys.rs`), those of casts that lose
//! (`narrowing.rs`), and times without seconds (`postgres_texts.rs`). Doubles that are made have one form for each value (`canonical.rs`).
//!
//! Column names do not change: the functions are called like their operators, and the name preserver guards what is left.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;
use tq_udfs::checked::arithmetic::{CheckedAdd, CheckedMultiply, CheckedNegate, CheckedSubtract};
use tq_udfs::checked::chain::{CheckedChain, Link};

use crate::sql::annotated::{Said, itself};
use crate::sql::stack::grown;
use crate::sql::{
    branches, canonical, coarse_times, decimals, equal, in_lists, interval_keys, late_casts, narrowing, nullable,
    patterns, postgres_texts,
};

/// Replaces operators on integers by checked functions. Add it after the analyzer's own rules.
#[derive(Debug)]
pub struct CheckedArithmetic {
    add: Arc<ScalarUDF>,
    subtract: Arc<ScalarUDF>,
    multiply: Arc<ScalarUDF>,
    negate: Arc<ScalarUDF>,
}

impl CheckedArithmetic {
    /// The rule.
    pub fn new() -> Self {
        CheckedArithmetic {
            add: Arc::new(ScalarUDF::from(CheckedAdd::new())),
            subtract: Arc::new(ScalarUDF::from(CheckedSubtract::new())),
            multiply: Arc::new(ScalarUDF::from(CheckedMultiply::new())),
            negate: Arc::new(ScalarUDF::from(CheckedNegate::new())),
        }
    }

    fn rewrite_plan(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let schema = visible_columns(&plan)?;
        let names = NamePreserver::new(&plan);
        let makes_columns = matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_));
        let is_condition = matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_));
        let rewritten = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let mut rewritten = self.rewrite_all(expr, &schema)?;
            if makes_columns {
                rewritten = rewritten.transform_data(|expr| narrowing::column(expr, &schema))?;
            }
            let rewritten = rewritten.map_data(|expr| in_lists::apart(expr, is_condition))?;
            let rewritten = rewritten.map_data(|expr| late_casts::by_functions(expr, &schema, false))?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })?;
        let rewritten = rewritten.transform_data(|plan| match plan {
            LogicalPlan::Sort(mut sort) => {
                equal::sort_keys(&mut sort.expr, sort.input.schema())?;
                Ok(Transformed::yes(LogicalPlan::Sort(sort)))
            }
            other => interval_keys::by_length(other),
        })?;
        let rewritten = rewritten.transform_data(canonical::scanned)?;
        // Times are told by metadata: it changes the schemas of this node and of all above, rewritten or not.
        rewritten.map_data(LogicalPlan::recompute_schema)?.map_data(branches::told)
    }

    /// From the leaves to the root, but a long chain at once.
    fn rewrite_all(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        if length(&expr) > SHORT {
            return self.rewrite_chain(expr, schema);
        }
        let rewritten = grown(|| expr.map_children(|child| self.rewrite_all(child, schema)))?;
        let children = rewritten.transformed;
        let mut rewritten =
            self.rewrite(rewritten.data, schema)?.transform_data(|expr| narrowing::kept(expr, schema))?;
        rewritten = rewritten.transform_data(in_lists::elements)?.transform_data(patterns::kept)?;
        rewritten = rewritten.transform_data(|expr| coarse_times::downwards(expr, schema))?;
        rewritten = rewritten.transform_data(|expr| canonical::rewrite(expr, schema))?;
        rewritten.transformed |= children;
        Ok(rewritten)
    }

    /// `a + b - c + …`: one function of n terms when all are integers of one type, else as it was.
    fn rewrite_chain(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let (terms, links) = take_apart(expr);
        let terms: Vec<Expr> =
            terms.into_iter().map(|term| Ok(self.rewrite_all(term, schema)?.data)).collect::<Result<_>>()?;
        let types = terms.iter().map(|term| term.get_type(schema)).collect::<Result<Vec<_>>>()?;
        let first = &types[0];
        let is_checked =
            types.iter().all(DataType::is_decimal) || (first.is_integer() && types.iter().all(|kind| kind == first));
        let chain = match is_checked {
            true => {
                let links = links.into_iter().map(|link| link.0).collect();
                call(&Arc::new(ScalarUDF::from(CheckedChain::new(links))), terms)
            }
            false => canonical::rewrite(join(terms, links), schema)?.data,
        };
        Ok(Transformed::yes(chain))
    }

    fn rewrite(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if let Some(link) = on_decimals(op)
                    && left.get_type(schema)?.is_decimal()
                    && right.get_type(schema)?.is_decimal() =>
            {
                let chain = CheckedChain::new(vec![link]);
                Ok(Transformed::yes(call(&Arc::new(ScalarUDF::from(chain)), vec![*left, *right])))
            }
            // DataFusion takes `a # a` for 0, also where `a` is NULL.
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::BitwiseXor, right })
                if !matches!((left.as_ref(), right.as_ref()), (Expr::Literal(..), _) | (_, Expr::Literal(..))) =>
            {
                let right = Box::new(itself(*right, Said::NoColumn));
                Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op: Operator::BitwiseXor, right })))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let function = match op {
                    Operator::Plus => &self.add,
                    Operator::Minus => &self.subtract,
                    Operator::Multiply => &self.multiply,
                    _ => {
                        let comparison = Expr::BinaryExpr(BinaryExpr { left, op, right });
                        return decimals::compared(comparison, schema)?
                            .transform_data(|expr| equal::rewrite(expr, schema));
                    }
                };
                let left_type = left.get_type(schema)?;
                if left_type.is_integer() && left_type == right.get_type(schema)? {
                    return Ok(Transformed::yes(call(function, vec![*left, *right])));
                }
                Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })))
            }
            // Also of what cannot overflow: DataFusion looks for the range of the argument, and finds none where a function computes it.
            Expr::Negative(argument) if !argument.get_type(schema)?.is_null() => {
                Ok(Transformed::yes(call(&self.negate, vec![*argument])))
            }
            expr if let Some(plain) = nullable::truth(&expr, schema)? => Ok(Transformed::yes(plain)),
            expr @ (Expr::Cast(_) | Expr::TryCast(_)) => postgres_texts::rewrite(expr, schema)?
                .transform_data(|expr| decimals::rounded(expr, schema))?
                .transform_data(|expr| equal::rewrite(expr, schema)),
            other => decimals::compared(other, schema)?.transform_data(|expr| equal::rewrite(expr, schema)),
        }
    }
}

impl Default for CheckedArithmetic {
    fn default() -> Self {
        Self::new()
    }
}

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(|plan| self.rewrite_plan(plan))?.data)
    }
}

/// Shorter chains are calls within calls, over which the optimiser knows more.
const SHORT: usize = 16;

fn link(op: Operator) -> Option<(Link, Operator)> {
    match op {
        Operator::Plus => Some((Link::Add, op)),
        Operator::Minus => Some((Link::Subtract, op)),
        Operator::Multiply => Some((Link::Multiply, op)),
        _ => None,
    }
}

fn on_decimals(op: Operator) -> Option<Link> {
    match op {
        Operator::Divide => Some(Link::Divide),
        Operator::Modulo => Some(Link::Remainder),
        other => link(other).map(|(link, _)| link),
    }
}

/// How many operators the left spine has.
fn length(mut expr: &Expr) -> usize {
    let mut links = 0;
    while let Expr::BinaryExpr(BinaryExpr { left, op, .. }) = expr
        && link(*op).is_some()
    {
        (expr, links) = (left, links + 1);
    }
    links
}

fn take_apart(mut expr: Expr) -> (Vec<Expr>, Vec<(Link, Operator)>) {
    let (mut terms, mut links) = (vec![], vec![]);
    loop {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if let Some(link) = link(op) => {
                terms.push(*right);
                links.push(link);
                expr = *left;
            }
            first => {
                terms.push(first);
                terms.reverse();
                links.reverse();
                return (terms, links);
            }
        }
    }
}

fn join(terms: Vec<Expr>, links: Vec<(Link, Operator)>) -> Expr {
    let mut terms = terms.into_iter();
    let first = terms.next().unwrap_or_default();
    terms.zip(links).fold(first, |left, (right, (_, op))| {
        Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) })
    })
}

fn call(function: &Arc<ScalarUDF>, args: Vec<Expr>) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(function), args))
}

/// The columns that expressions of a node can speak of. Outer columns of a subquery carry their type with them.
pub(super) fn visible_columns(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    match plan {
        LogicalPlan::TableScan(scan) => {
            let source = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?;
            schema.merge(&source);
        }
        LogicalPlan::Dml(dml) => {
            let target = DFSchema::try_from_qualified_schema(dml.table_name.clone(), &dml.target.schema())?;
            schema.merge(&target);
        }
        _ => {}
    }
    Ok(schema)
}
