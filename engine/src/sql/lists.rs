//! Functions and operators on lists: as in PostgreSQL and DuckDB, where DataFusion (55.2) treats a list as a text or has another answer.
//!
//! DataFusion casts a list to a text where a function takes texts: `length([1, 2])` is 6, `reverse([1, 2])` is `]2 ,1[`. Here `length` counts
//! the elements, as in DuckDB, and other functions of texts refuse lists, but for `concat` and `concat_ws`, which take anything. As in
//! PostgreSQL:
//!
//! ```text
//! array_remove(a, x), array_replace(a, x, y)     all occurrences, not the first one; a NULL finds NULLs
//! a || NULL                                      a: no list is added. CAST(NULL AS BIGINT) is an element
//! a @> b                                         false where `b` has a NULL, which is in no list
//! a && b                                         whether they share an element; a NULL is equal to none. NULL where a list is (it was false
//!                                                where all lists of a batch are NULL), and so for array_has_any, array_has_all
//! ```

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::functions_nested::expr_fn::{
    array_compact, array_element, array_has_all, array_has_any, array_length, array_position, array_remove_all,
    array_replace_all,
};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess, LogicalPlan, cast, lit, when};
use datafusion::sql::sqlparser::ast::BinaryOperator;

use crate::sql::equal::is_list;

/// Functions that would take the text of a list.
const TAKES_TEXT: [&str; 13] = [
    "reverse",
    "left",
    "right",
    "lpad",
    "rpad",
    "translate",
    "substr_index",
    "find_in_set",
    "regexp_replace",
    "regexp_count",
    "regexp_like",
    "regexp_match",
    "regexp_instr",
];

/// Gives lists to functions of lists, before types are brought together.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|plan| {
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|expr| of_list(expr, &schema))?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })
    })
    .data()
}

fn of_list(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(call) = &expr else { return Ok(Transformed::no(expr)) };
    let name = call.func.name();
    match (name, call.args.as_slice()) {
        ("array_remove", [list, Expr::Literal(ScalarValue::Null, _)]) => {
            return Ok(Transformed::yes(array_compact(list.clone())));
        }
        ("array_remove", [list, element]) => {
            let rest = array_remove_all(list.clone(), element.clone());
            return Ok(Transformed::yes(match element {
                Expr::Literal(value, _) if !value.is_null() => rest,
                _ => when(element.clone().is_null(), array_compact(list.clone())).otherwise(rest)?,
            }));
        }
        ("array_has_any" | "array_has_all", [list, other]) => {
            let is_null = list.clone().is_null().or(other.clone().is_null());
            return Ok(Transformed::yes(when(is_null, lit(ScalarValue::Boolean(None))).otherwise(expr)?));
        }
        ("array_replace", [list, from, to]) => {
            return Ok(Transformed::yes(array_replace_all(list.clone(), from.clone(), to.clone())));
        }
        _ => {}
    }
    let counts = name == "character_length";
    if !counts && !TAKES_TEXT.contains(&name) {
        return Ok(Transformed::no(expr));
    }
    let Some(list) = call.args.first() else { return Ok(Transformed::no(expr)) };
    if !list.get_type(schema).is_ok_and(|data_type| is_list(&data_type)) {
        return Ok(Transformed::no(expr));
    }
    if !counts {
        return plan_err!(
            "`{name}` takes a text, found a list: `array_reverse(x)` and `x[1:2]` are lists, `array_to_string(x, ',')` is a text"
        );
    }
    Ok(Transformed::yes(cast(array_length(list.clone()), DataType::Int64)))
}

/// Plans operators on lists. Its place is before DataFusion's own planner.
#[derive(Debug)]
pub(super) struct Lists;

impl ExprPlanner for Lists {
    /// `array_agg(a ORDER BY b)[1]`: DataFusion makes `nth_value` of it, which forgets DISTINCT and allows one order in a query.
    fn plan_field_access(&self, expr: RawFieldAccessExpr, _: &DFSchema) -> Result<PlannerResult<RawFieldAccessExpr>> {
        Ok(match expr {
            RawFieldAccessExpr { field_access: GetFieldAccess::ListIndex { key }, expr: list } if matches!(&list, Expr::AggregateFunction(call) if call.func.name() == "array_agg") => {
                PlannerResult::Planned(array_element(list, *key))
            }
            other => PlannerResult::Original(other),
        })
    }

    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = &expr;
        let is_null = |side: &Expr| matches!(side, Expr::Literal(ScalarValue::Null, _));
        let (list, other) = match op {
            BinaryOperator::StringConcat if is_null(left) => (right, left),
            BinaryOperator::StringConcat if is_null(right) => (left, right),
            BinaryOperator::AtArrow => (left, right),
            BinaryOperator::ArrowAt => (right, left),
            BinaryOperator::PGOverlap => (left, right),
            _ => return Ok(PlannerResult::Original(expr)),
        };
        if !is_list(&list.get_type(schema)?) || (!is_null(other) && !is_list(&other.get_type(schema)?)) {
            return Ok(PlannerResult::Original(expr));
        }
        if *op == BinaryOperator::StringConcat {
            return Ok(PlannerResult::Planned(list.clone()));
        }
        if *op == BinaryOperator::PGOverlap {
            return Ok(PlannerResult::Planned(array_has_any(array_compact(list.clone()), other.clone())));
        }
        let has_null = array_position(other.clone(), lit(ScalarValue::Null), lit(1_i64)).is_not_null();
        let contains = array_has_all(list.clone(), other.clone());
        let unknown = list.clone().is_null().or(other.clone().is_null());
        let null = lit(ScalarValue::Boolean(None));
        Ok(PlannerResult::Planned(when(unknown, null).when(has_null, lit(false)).otherwise(contains)?))
    }
}
