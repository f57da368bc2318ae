//! `name || task`: the words of a trace beside what is no text.
//!
//! Names and locations are dictionaries. DataFusion (55.2) finds a type for `text || BIGINT`, and for two dictionaries, but none for a
//! dictionary beside a number or a time. A word is a text there.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, binary_expr, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;

/// Plans `||` of a word and of what is no text.
#[derive(Debug)]
pub(super) struct Concatenated;

impl ExprPlanner for Concatenated {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if expr.op != BinaryOperator::StringConcat {
            return Ok(PlannerResult::Original(expr));
        }
        let types = (expr.left.get_type(schema)?, expr.right.get_type(schema)?);
        let is_other = |data_type: &DataType| {
            let is_text = data_type.is_string() || data_type.is_null() || data_type.is_nested() || is_word(data_type);
            !is_text
        };
        let text = |word: Expr| cast(word, DataType::Utf8);
        let (left, right) = match types {
            (left, right) if is_word(&left) && is_other(&right) => (text(expr.left), expr.right),
            (left, right) if is_word(&right) && is_other(&left) => (expr.left, text(expr.right)),
            _ => return Ok(PlannerResult::Original(expr)),
        };
        Ok(PlannerResult::Planned(binary_expr(left, Operator::StringConcat, right)))
    }
}

/// Whether values are words of a dictionary.
pub(super) fn is_word(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(_, values) if values.is_string())
}
