//! Join keys: those for which NULL equals NULL beside those for which it does not, and unambiguous names for computed keys.
//!
//! A hash join of DataFusion (55.2) has one rule for all of its keys: NULL equals NULL, or it does not. `ON a.x IS NOT DISTINCT FROM b.x`
//! sets the first early in the optimizer. Keys that are added later, from a filter above (`WHERE a.y = b.y`) or from a join that is merged
//! with this one, then follow it too, and rows are joined by a NULL in `y`. So such conditions stay conditions while the optimizer runs
//! ([`of_equations`]), and become keys afterwards ([`with_null_keys`]):
//!
//! ```text
//! keys y = y, filter x IS NOT DISTINCT FROM x      keys y = y, x = x, NULL equals NULL, filter a.y IS NOT NULL
//! ```
//!
//! DataFusion makes a computed key a further column of its side, with a name that omits casts and parentheses: `(a + b) * c` and
//! `a + b * c`, or a column and its cast within a function, would be two columns of one name. So each gets its full text as its name
//! ([`named`]).

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::utils::{can_hash, conjunction, find_valid_equijoin_key_pair, split_conjunction_owned};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator};
use datafusion::optimizer::optimizer::{OptimizerConfig, OptimizerRule};

/// The rule of DataFusion that makes keys of conditions.
pub(super) const MAKES_KEYS: &str = "extract_equijoin_predicate";

/// It does not see `IS NOT DISTINCT FROM` in conditions of joins.
pub(super) fn of_equations(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(mut join) = plan else { return rule.rewrite(plan, config) };
    let Some(filter) = join.filter.take() else { return Ok(Transformed::no(LogicalPlan::Join(join))) };
    let (unseen, seen): (Vec<Expr>, Vec<Expr>) = split_conjunction_owned(filter).into_iter().partition(is_null_safe);
    join.filter = conjunction(seen);
    let mut rewritten = rule.rewrite(LogicalPlan::Join(join), config)?;
    if let LogicalPlan::Join(join) = &mut rewritten.data {
        join.filter = conjunction(join.filter.take().into_iter().chain(unseen));
    }
    Ok(rewritten)
}

fn is_null_safe(condition: &Expr) -> bool {
    matches!(condition, Expr::BinaryExpr(BinaryExpr { op: Operator::IsNotDistinctFrom, .. }))
}

/// Makes keys of what is compared with `IS NOT DISTINCT FROM`, in a plan that is optimized.
pub(super) fn with_null_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let LogicalPlan::Join(join) = plan else { return Ok(Transformed::no(plan)) };
        let Some(filter) = join.filter.clone().filter(|_| !join.null_aware) else {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        };
        let (mut keys, mut conditions) = (vec![], vec![]);
        for condition in split_conjunction_owned(filter) {
            match key(&condition, &join)? {
                Some(key) => keys.push(key),
                None => conditions.push(condition),
            }
        }
        if keys.is_empty() {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        if join.null_equality == NullEquality::NullEqualsNothing {
            for (left, _) in &join.on {
                if left.nullable(join.left.schema())? {
                    conditions.push(left.clone().is_not_null());
                }
            }
        }
        let on = join.on.iter().cloned().chain(keys).collect();
        let null_equality = NullEquality::NullEqualsNull;
        Ok(Transformed::yes(LogicalPlan::Join(Join { on, filter: conjunction(conditions), null_equality, ..join })))
    })
    .data()
}

/// Calls the keys of joins that are computed by all that they are, in a plan that is optimized.
pub(super) fn named(plan: LogicalPlan) -> Result<LogicalPlan> {
    let named = |key: Expr| match key {
        Expr::Column(_) | Expr::Alias(_) => key,
        computed => {
            let name = computed.to_string();
            computed.alias(name)
        }
    };
    plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Join(mut join) if join.on.iter().any(|(left, right)| !is_column(left) || !is_column(right)) => {
            join.on = join.on.into_iter().map(|(left, right)| (named(left), named(right))).collect();
            Ok(Transformed::yes(LogicalPlan::Join(join)))
        }
        other => Ok(Transformed::no(other)),
    })
    .data()
}

fn is_column(key: &Expr) -> bool {
    matches!(key, Expr::Column(_))
}

/// The two sides of a null-safe comparison of one side of a join with the other.
fn key(condition: &Expr, join: &Join) -> Result<Option<(Expr, Expr)>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::IsNotDistinctFrom, right }) = condition else {
        return Ok(None);
    };
    let (left_schema, right_schema) = (join.left.schema(), join.right.schema());
    let Some(pair) = find_valid_equijoin_key_pair(left, right, left_schema, right_schema)? else { return Ok(None) };
    let is_key = can_hash(&pair.0.get_type(left_schema)?) && can_hash(&pair.1.get_type(right_schema)?);
    Ok(is_key.then_some(pair))
}
