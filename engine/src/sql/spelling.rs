//! Other spellings of what DataFusion (55.2) knows, and what it passes over without a word or takes for something else.
//!
//! ```text
//! FROM t                          SELECT * FROM t
//! t SEMI JOIN u, t ANTI JOIN u    t LEFT SEMI JOIN u, t LEFT ANTI JOIN u
//! SELECT * ILIKE 'x%'             an error: all columns would be answered
//! t JOIN u                        an error: all pairs would be
//! a SIMILAR TO 'x%'               an error: it would be a regular expression, found anywhere in `a`
//! SELECT … FOR UPDATE             an error: nothing would be locked
//! any_value(x ORDER BY y)         an error: the order would not matter
//! ```

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArgumentClause, FunctionArguments, JoinConstraint, JoinOperator, Query, Select, SelectFlavor,
    SelectItem, Spanned, Value, WildcardAdditionalOptions,
};

use crate::sql::errors::error_at;

/// Rewrites the spellings of a SELECT itself, not of what stands within it.
pub(super) fn rewrite(select: &mut Select) -> Result<()> {
    if select.flavor == SelectFlavor::FromFirstNoSelect && select.projection.is_empty() {
        select.projection.push(SelectItem::Wildcard(WildcardAdditionalOptions::default()));
    }
    for join in select.from.iter_mut().flat_map(|from| &mut from.joins) {
        join.join_operator = match &join.join_operator {
            JoinOperator::Semi(condition) => JoinOperator::LeftSemi(condition.clone()),
            JoinOperator::Anti(condition) => JoinOperator::LeftAnti(condition.clone()),
            _ => continue,
        };
    }
    for join in select.from.iter().flat_map(|from| &from.joins) {
        if let JoinOperator::Join(JoinConstraint::None) | JoinOperator::Inner(JoinConstraint::None) = join.join_operator
        {
            let hint =
                "say which rows belong together, `ON a.x = b.x` or `USING (x)`; `CROSS JOIN` pairs each row with all";
            return Err(error_at(join.relation.span(), "JOIN without ON or USING", hint));
        }
    }
    for item in &select.projection {
        let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else { continue };
        if options.opt_ilike.is_some() {
            return Err(error_at(
                item.span(),
                "`* ILIKE` is not supported",
                "name the columns, or leave some out: `* EXCEPT (a, b)`",
            ));
        }
    }
    Ok(())
}

/// Refuses what stands behind a query.
pub(super) fn check_query(query: &Query) -> Result<()> {
    match query.locks.first() {
        Some(lock) => Err(error_at(
            query.body.span(),
            format!("`{lock}` is not supported"),
            "what was read from a trace cannot change",
        )),
        None => Ok(()),
    }
}

/// `1_000` is 1000. Expressions that would mean something else are refused.
pub(super) fn rewrite_expression(expr: &mut Expr) -> Result<()> {
    if let Expr::Value(literal) = expr
        && let Value::Number(digits, _) = &mut literal.value
    {
        digits.retain(|digit| digit != '_');
    }
    if let Expr::Function(call) = expr
        && call.name.to_string().eq_ignore_ascii_case("any_value")
        && let FunctionArguments::List(list) = &call.args
        && list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)))
    {
        let hint = "`first_value(x ORDER BY y) FILTER (WHERE x IS NOT NULL)` takes the first one";
        return Err(error_at(call.name.span(), "any_value takes no ORDER BY", hint));
    }
    if let Expr::SimilarTo { expr: left, .. } = expr {
        let hint = "`~ '^(a|b.*)$'` takes regular expressions, `LIKE 'a%'` patterns with % and _";
        return Err(error_at(left.span(), "SIMILAR TO is not supported", hint));
    }
    Ok(())
}
