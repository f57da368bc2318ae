//! Windows with names: `OVER w`, `OVER (w ORDER BY x)`, `WINDOW v AS (w ROWS …)`.
//!
//! DataFusion (55.2) replaces `OVER w` in the columns of a SELECT only, and forgets the `w` of `OVER (w …)`: `PARTITION BY` of `w` would
//! not hold. Here each reference becomes the whole window, by the rules of SQL:2016, 7.15 (PostgreSQL's): the window of a name that is
//! given in parentheses passes on its PARTITION BY and ORDER BY, neither is said again, and it has no frame.
//!
//! ```text
//! sum(x) OVER (w ORDER BY x) … WINDOW w AS (PARTITION BY p)       sum(x) OVER (PARTITION BY p ORDER BY x)
//! ```

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Ident, JoinConstraint, JoinOperator, NamedWindowDefinition, NamedWindowExpr, Query, Select,
    SelectItem, SetExpr, Spanned, Visit, VisitMut, Visitor, VisitorMut, WindowSpec, WindowType, visit_expressions,
};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::nearest::nearest;
use crate::sql::diagnostic::error_at;
use crate::sql::dialect::TqDialect;
use crate::sql::scope::normal;

/// Replaces the windows that a query's ORDER BY names, which are those of its SELECT.
pub(super) fn rewrite_order(query: &mut Query) -> Result<()> {
    let SetExpr::Select(select) = query.body.as_ref() else { return Ok(()) };
    let windows = definitions(select)?;
    Replace { windows, depth: 0 }.within(&mut query.order_by)
}

/// Replaces the windows that a SELECT names, and takes their definitions away. Windows are of the rows that WHERE, GROUP BY and HAVING leave:
/// within these they are refused.
pub(super) fn rewrite(select: &mut Select) -> Result<()> {
    refuse_in("WHERE", &select.selection)?;
    refuse_in("GROUP BY", &select.group_by)?;
    refuse_in("HAVING", &select.having)?;
    for join in select.from.iter().flat_map(|from| &from.joins) {
        if let JoinOperator::Join(JoinConstraint::On(condition))
        | JoinOperator::Inner(JoinConstraint::On(condition))
        | JoinOperator::Left(JoinConstraint::On(condition))
        | JoinOperator::LeftOuter(JoinConstraint::On(condition))
        | JoinOperator::Right(JoinConstraint::On(condition))
        | JoinOperator::RightOuter(JoinConstraint::On(condition))
        | JoinOperator::FullOuter(JoinConstraint::On(condition)) = &join.join_operator
        {
            refuse_in("ON", condition)?;
        }
    }
    let windows = definitions(select)?;
    select.named_window.clear();
    let mut replace = Replace { windows, depth: 0 };
    replace.within(&mut select.distinct)?;
    replace.within(&mut select.projection)?;
    replace.within(&mut select.qualify)?;
    let mut found = Found { depth: 0 };
    if let Some(condition) = &mut select.qualify
        && Visit::visit(condition, &mut found).is_continue()
        && Visit::visit(&select.projection, &mut found).is_break()
        && !names_window(condition, &select.projection)
    {
        *condition = and_a_window(condition.clone())?;
    }
    Ok(())
}

/// Whether a condition names a column of SELECT that is computed of a window.
fn names_window(condition: &Expr, items: &[SelectItem]) -> bool {
    let of_windows: Vec<String> = items
        .iter()
        .filter(|item| Visit::visit(*item, &mut Found { depth: 0 }).is_break())
        .filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(normal(alias)),
            _ => None,
        })
        .collect();
    let names = |part: &Expr| match part {
        Expr::Identifier(name) if of_windows.contains(&normal(name)) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    visit_expressions(condition, names).is_break()
}

/// `QUALIFY g > 1` where SELECT alone has a window: DataFusion wants one in the condition.
fn and_a_window(condition: Expr) -> Result<Expr> {
    let always = Parser::new(&TqDialect).try_with_sql("row_number() OVER () > 0")?.parse_expr()?;
    let condition = Box::new(Expr::Nested(Box::new(condition)));
    Ok(Expr::BinaryOp { left: condition, op: BinaryOperator::And, right: Box::new(always) })
}

/// Refuses window functions in a clause, but not in its subqueries.
fn refuse_in(clause: &str, part: &impl Visit) -> Result<()> {
    let mut found = Found { depth: 0 };
    let ControlFlow::Break(place) = part.visit(&mut found) else { return Ok(()) };
    let hint = match clause {
        "GROUP BY" | "ON" => "compute it in a subquery: `FROM (SELECT *, row_number() OVER (…) AS place FROM …)`",
        _ => "QUALIFY is a condition on them: `SELECT … FROM … QUALIFY row_number() OVER (…) = 1`",
    };
    Err(error_at(place, format!("window functions are not allowed in {clause}"), hint))
}

/// Looks for a window function.
struct Found {
    depth: usize,
}

impl Visitor for Found {
    type Break = Span;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Span> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Span> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Span> {
        match expr {
            Expr::Function(call) if call.over.is_some() && self.depth == 0 => ControlFlow::Break(call.name.span()),
            _ => ControlFlow::Continue(()),
        }
    }
}

type Windows = HashMap<String, WindowSpec>;

/// The windows that a SELECT defines, whole.
fn definitions(select: &Select) -> Result<Windows> {
    let mut windows = Windows::new();
    for NamedWindowDefinition(name, definition) in &select.named_window {
        let window = match definition {
            NamedWindowExpr::NamedWindow(other) => named(&windows, other)?.clone(),
            NamedWindowExpr::WindowSpec(window) => whole(&windows, window)?,
        };
        if windows.insert(normal(name), window).is_some() {
            let hint = "each window has a name of its own";
            return Err(error_at(name.span, format!("the window `{name}` is defined twice"), hint));
        }
    }
    Ok(windows)
}

fn named<'a>(windows: &'a Windows, name: &Ident) -> Result<&'a WindowSpec> {
    windows.get(&normal(name)).ok_or_else(|| {
        let hint = match nearest(&name.value, windows.keys().map(String::as_str)) {
            Some(other) => format!("did you mean `{other}`?"),
            None => format!("define it behind FROM, WHERE and GROUP BY: `WINDOW {name} AS (PARTITION BY …)`"),
        };
        error_at(name.span, format!("no window is called `{name}`"), &hint)
    })
}

/// A window with what it takes of the one that it names.
fn whole(windows: &Windows, window: &WindowSpec) -> Result<WindowSpec> {
    let mut window = window.clone();
    let Some(name) = window.window_name.take() else { return Ok(window) };
    let base = named(windows, &name)?;
    let refused = |what: &str, hint: &str| Err(error_at(name.span, format!("the window `{name}` has {what}"), hint));
    if base.window_frame.is_some() {
        return refused("a frame of its own", "only `OVER name` without parentheses takes a window with its frame");
    }
    if !window.partition_by.is_empty() {
        return refused("its PARTITION BY already", "what refers to a window cannot say PARTITION BY");
    }
    if !window.order_by.is_empty() && !base.order_by.is_empty() {
        return refused("an ORDER BY already", "what refers to it cannot say another one");
    }
    window.partition_by.clone_from(&base.partition_by);
    if window.order_by.is_empty() {
        window.order_by.clone_from(&base.order_by);
    }
    Ok(window)
}

/// Puts windows in the place of references. Subqueries have windows of their own.
struct Replace {
    windows: Windows,
    depth: usize,
}

impl Replace {
    fn within(&mut self, part: &mut impl VisitMut) -> Result<()> {
        match part.visit(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }
}

impl VisitorMut for Replace {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<DataFusionError> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<DataFusionError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let window = match &call.over {
            Some(WindowType::NamedWindow(name)) if self.depth == 0 => named(&self.windows, name).cloned(),
            Some(WindowType::WindowSpec(window)) if self.depth == 0 && window.window_name.is_some() => {
                whole(&self.windows, window)
            }
            _ => return ControlFlow::Continue(()),
        };
        match window {
            Ok(window) => {
                call.over = Some(WindowType::WindowSpec(window));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}
