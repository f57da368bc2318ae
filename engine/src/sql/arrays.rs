//! `ARRAY(SELECT x …)`: the values of a subquery as a list, empty where it has no row, which DataFusion (55.2) does not know.
//!
//! ```text
//! ARRAY(SELECT x FROM t WHERE y > z)       (SELECT coalesce(array_agg(v), []) FROM (SELECT x FROM t WHERE y > z) AS r(v))
//! ARRAY(SELECT x FROM t ORDER BY y, x)     (SELECT coalesce(array_agg(v ORDER BY k0, v), []) FROM (SELECT x, y FROM t …) AS r(v, k0))
//! ```
//! The order is said to the aggregate: that of a subquery in FROM would be left out.
//!
//! Elements that are written out, `ARRAY[t.a, b]`, are planned without what is around their query: columns of an outer query and names of WITH
//! would not be found. So where they have any, it is `make_array(t.a, b)`.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArgumentClause, FunctionArguments, Ident, OrderBy, OrderByExpr, OrderByKind, Query, SelectItem,
    SetExpr, Spanned, Value, VisitMut, VisitorMut, visit_expressions,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::sql::diagnostic::error_at;
use crate::sql::dialect::call;
use crate::sql::rows::over;

const VALUE: &str = "__value";

/// Rewrites the expression itself, not what stands within it.
pub(super) fn rewrite(expr: &mut Expr) -> Result<()> {
    if let Expr::Array(array) = expr
        && array.elem.iter().any(|element| visit_expressions(element, speaks).is_break())
    {
        *expr = call(Ident::new("make_array"), std::mem::take(&mut array.elem));
    }
    let Expr::Function(function) = &*expr else { return Ok(()) };
    let FunctionArguments::Subquery(query) = &function.args else { return Ok(()) };
    if !function.name.to_string().eq_ignore_ascii_case("array") {
        return Ok(());
    }
    let mut query = query.clone();
    let mut names = vec![Ident::new(VALUE)];
    let order = match query.order_by.clone() {
        None => vec![],
        Some(OrderBy { kind: OrderByKind::Expressions(keys), interpolate: None }) => {
            keys.into_iter().map(|key| of_answer(&key, &mut query, &mut names)).collect::<Result<_>>()?
        }
        Some(order) => return Err(refused(order.span())),
    };
    let text = format!("SELECT coalesce(array_agg({VALUE} ORDER BY {VALUE}), make_array()) AS \"ARRAY\" FROM x");
    let listed = over(query, names, &text, |select| {
        let _ = select.projection.visit(&mut Order(order));
    })?;
    *expr = Expr::Subquery(listed);
    Ok(())
}

/// Breaks at what has a meaning around it: a column or a subquery.
fn speaks(part: &Expr) -> ControlFlow<()> {
    match part {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) | Expr::InSubquery { .. } => {
            ControlFlow::Break(())
        }
        Expr::Exists { .. } | Expr::AnyOp { .. } | Expr::AllOp { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}

/// A key of the subquery's ORDER BY as one of its answer, to which it is added if need be.
fn of_answer(key: &OrderByExpr, query: &mut Query, names: &mut Vec<Ident>) -> Result<OrderByExpr> {
    let value = |name: Ident| OrderByExpr { expr: Expr::Identifier(name), ..key.clone() };
    let is_first = matches!(&key.expr, Expr::Value(position) if matches!(&position.value, Value::Number(digits, _) if digits == "1"));
    if is_first {
        return Ok(value(Ident::new(VALUE)));
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return Err(refused(key.expr.span())) };
    let is_value = match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(shown), ..] => *shown == key.expr,
        [SelectItem::ExprWithAlias { expr: shown, alias }, ..] => {
            *shown == key.expr
                || matches!(&key.expr, Expr::Identifier(name) if name.value.eq_ignore_ascii_case(&alias.value))
        }
        _ => return Err(refused(key.expr.span())),
    };
    if is_value {
        return Ok(value(Ident::new(VALUE)));
    }
    if select.distinct.is_some() || matches!(key.expr, Expr::Value(_)) {
        return Err(refused(key.expr.span()));
    }
    let name = Ident::new(format!("__key_{}", names.len()));
    select.projection.push(SelectItem::ExprWithAlias { expr: key.expr.clone(), alias: name.clone() });
    names.push(name.clone());
    Ok(value(name))
}

fn refused(span: Span) -> DataFusionError {
    let hint = "write `(SELECT array_agg(x ORDER BY …) FROM …)`";
    error_at(span, "`ARRAY(SELECT …)` is not supported with this ORDER BY", hint)
}

/// Puts an order in the place of the one of the template.
struct Order(Vec<OrderByExpr>);

impl VisitorMut for Order {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(call) = expr
            && let FunctionArguments::List(list) = &mut call.args
        {
            list.clauses.retain_mut(|clause| match clause {
                FunctionArgumentClause::OrderBy(keys) => {
                    *keys = std::mem::take(&mut self.0);
                    !keys.is_empty()
                }
                _ => true,
            });
        }
        ControlFlow::Continue(())
    }
}
