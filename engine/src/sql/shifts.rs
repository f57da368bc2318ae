//! `lag(x, n, default)` whose default is a column.
//!
//! DataFusion (55.2) takes a constant. The default is that of the row that looks, so it is chosen where the row it looks for is not there:
//!
//! ```text
//! lag(x, n, d) OVER w      CASE WHEN lag(true, n, false) OVER w THEN lag(x, n) OVER w WHEN NOT lag(true, n, false) OVER w THEN d END
//! ```

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    CaseWhen, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator, Value, visit_expressions,
};

/// Rewrites the expression itself, not what stands within it.
pub(super) fn rewrite(expr: &mut Expr) {
    let Expr::Function(call) = &*expr else { return };
    let name = call.name.to_string();
    if call.over.is_none() || !["lag", "lead"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return;
    }
    let FunctionArguments::List(list) = &call.args else { return };
    let [value, distance, FunctionArg::Unnamed(FunctionArgExpr::Expr(default))] = list.args.as_slice() else { return };
    let speaks = |part: &Expr| match part {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    // With IGNORE NULLS, which row is looked for depends on the values.
    if visit_expressions(default, speaks).is_continue() || call.null_treatment.is_some() || !list.clauses.is_empty() {
        return;
    }
    let with = |arguments: Vec<FunctionArg>| {
        let mut call = call.clone();
        if let FunctionArguments::List(list) = &mut call.args {
            list.args = arguments;
        }
        Expr::Function(call)
    };
    let truth = |value: bool| FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(Value::Boolean(value).into())));
    let is_there = with(vec![truth(true), distance.clone(), truth(false)]);
    let is_not = Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(is_there.clone()) };
    let conditions = vec![
        CaseWhen { condition: is_there, result: with(vec![value.clone(), distance.clone()]) },
        CaseWhen { condition: is_not, result: default.clone() },
    ];
    let (case_token, end_token) = (AttachedToken::empty(), AttachedToken::empty());
    *expr = Expr::Case { case_token, end_token, operand: None, conditions, else_result: None };
}
