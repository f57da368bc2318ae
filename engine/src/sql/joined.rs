//! `string_agg(text, between)` where `between`, the separator, is a column.
//!
//! DataFusion (55.2) takes only a literal. In SQL each text but the first is preceded by the separator of its own row, and a NULL separator
//! is empty. So pairs of text and separator are collected in a list, and joined when they are in order:
//!
//! ```text
//! string_agg(s, d ORDER BY k) FILTER (WHERE c)     array_agg(struct(s, d) ORDER BY k) FILTER (WHERE s IS NOT NULL AND c) <joined> NULL
//! ```
//! `<joined>` stands for an operator that the parser never makes; [`Joins`] plans it as a function of the list. It works in moving frames too.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Spanned, Value,
    visit_expressions,
};

use crate::sql::dialect::call;

/// The operator that stands for putting pairs together.
const JOINED: &str = "\u{2063}joined\u{2063}";

/// Rewrites the expression itself, not what stands within it.
pub(super) fn rewrite(expr: &mut Expr) {
    let Expr::Function(function) = &mut *expr else { return };
    let name = function.name.to_string();
    if !["string_agg", "listagg"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return;
    }
    let FunctionArguments::List(list) = &mut function.args else { return };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(text)), FunctionArg::Unnamed(FunctionArgExpr::Expr(between))] =
        list.args.as_slice()
    else {
        return;
    };
    let speaks = |part: &Expr| match part {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    if visit_expressions(between, speaks).is_continue() {
        return;
    }
    let is_text = Expr::IsNotNull(Box::new(text.clone()));
    let pair = call(Ident::new("struct"), vec![text.clone(), between.clone()]);
    list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(pair))];
    function.name = ObjectName::from(vec![Ident::with_span(function.name.span(), "array_agg")]);
    function.filter = Some(Box::new(match function.filter.take() {
        None => is_text,
        Some(filter) => {
            Expr::BinaryOp { left: Box::new(is_text), op: BinaryOperator::And, right: Box::new(Expr::Nested(filter)) }
        }
    }));
    let pairs = Box::new(Expr::Function(function.clone()));
    let right = Box::new(Expr::Value(Value::Null.into()));
    *expr = Expr::BinaryOp { left: pairs, op: BinaryOperator::Custom(JOINED.to_owned()), right };
}

/// Plans the operator.
#[derive(Debug)]
pub(super) struct Joins;

impl ExprPlanner for Joins {
    fn plan_binary_op(&self, expr: RawBinaryExpr, _: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        Ok(match &expr.op {
            BinaryOperator::Custom(op) if op == JOINED => {
                let signature = Signature::any(1, Volatility::Immutable);
                PlannerResult::Planned(ScalarUDF::from(Joined { signature }).call(vec![expr.left]))
            }
            _ => PlannerResult::Original(expr),
        })
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Joined {
    signature: Signature,
}

impl ScalarUDFImpl for Joined {
    fn name(&self) -> &str {
        "joined"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [lists] = ColumnarValue::values_to_arrays(&args.args)?
            .try_into()
            .or_else(|_| internal_err!("joined has one argument"))?;
        let mut joined = StringBuilder::new();
        let lists = lists.as_list::<i32>();
        let pairs = lists.values().as_struct();
        let (texts, between) = (cast(pairs.column(0), &DataType::Utf8)?, cast(pairs.column(1), &DataType::Utf8)?);
        let (texts, between) = (texts.as_string::<i32>(), between.as_string::<i32>());
        for (row, ends) in lists.offsets().windows(2).enumerate() {
            if lists.is_null(row) {
                joined.append_null();
                continue;
            }
            let mut text = String::new();
            for pair in ends[0] as usize..ends[1] as usize {
                if pair > ends[0] as usize && !between.is_null(pair) {
                    text.push_str(between.value(pair));
                }
                text.push_str(texts.value(pair));
            }
            joined.append_value(text);
        }
        Ok(ColumnarValue::Array(Arc::new(joined.finish())))
    }
}
