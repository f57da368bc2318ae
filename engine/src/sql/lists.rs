//! Functions of texts that are given lists.
//!
//! DataFusion (55.2) makes a text of the list first: `length([1, 2])` is 6, `reverse([1, 2])` is `]2 ,1[`. As in DuckDB the first counts
//! the elements here, and others are refused. `concat` and `concat_ws` make texts of all that they are given.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::functions_nested::expr_fn::array_length;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, cast};

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
    let counts = name == "character_length";
    if !counts && !TAKES_TEXT.contains(&name) {
        return Ok(Transformed::no(expr));
    }
    let Some(list) = call.args.first() else { return Ok(Transformed::no(expr)) };
    if !matches!(list.get_type(schema), Ok(DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))) {
        return Ok(Transformed::no(expr));
    }
    if !counts {
        return plan_err!(
            "`{name}` takes a text, found a list: `array_reverse(x)` and `x[1:2]` are lists, `array_to_string(x, ',')` is a text"
        );
    }
    Ok(Transformed::yes(cast(array_length(list.clone()), DataType::Int64)))
}
