//! Clauses that the parser takes and planning passes over: they are refused, since the answer would be that of another statement.
//!
//! ```text
//! DELETE FROM t LIMIT 1                          all rows
//! UPDATE t JOIN u ON … SET …                     all rows of t
//! EXPLAIN DELETE FROM t                          the rows are gone when the plan is shown
//! coalesce(sum(x), 0) FILTER (WHERE x > 1)       the sum of all
//! count(DISTINCT t.*)                            1
//! ```

use datafusion::common::Result;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, DataType, Delete, DuplicateTreatment, ExactNumberInfo, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Spanned, Statement, Update,
};

use crate::sql::diagnostic::error_at;

/// Refuses what DELETE and UPDATE have beside a table, values and a condition.
pub(super) fn check_change(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Delete(delete) => check_delete(delete),
        Statement::Update(update) => check_update(update),
        _ => Ok(()),
    }
}

/// Refuses EXPLAIN of what would be carried out by it.
pub(super) fn check_explained(explained: &ParsedStatement, is_run: bool) -> Result<()> {
    let ParsedStatement::Statement(statement) = explained else { return Ok(()) };
    match statement.as_ref() {
        Statement::Delete(_) | Statement::Update(_) if !is_run => {
            let hint = "EXPLAIN the question after its rows: `EXPLAIN SELECT * FROM t WHERE …`";
            Err(error_at(statement.span(), "EXPLAIN of a DELETE or UPDATE would carry it out", hint))
        }
        _ => Ok(()),
    }
}

fn check_delete(delete: &Delete) -> Result<()> {
    let unread = [
        (!delete.tables.is_empty(), "several tables"),
        (delete.using.is_some(), "USING"),
        (delete.returning.is_some() || delete.output.is_some(), "RETURNING"),
        (!delete.order_by.is_empty(), "ORDER BY"),
        (delete.limit.is_some(), "LIMIT"),
    ];
    match unread.iter().find(|(is_there, _)| *is_there) {
        Some((_, what)) => {
            let hint = "which rows go is a condition: `DELETE FROM t WHERE …`";
            Err(error_at(delete.delete_token.0.span, format!("DELETE has no {what}"), hint))
        }
        None => Ok(()),
    }
}

fn check_update(update: &Update) -> Result<()> {
    let unread = [
        (!update.table.joins.is_empty(), "JOIN"),
        (update.from.is_some(), "FROM"),
        (update.returning.is_some() || update.output.is_some(), "RETURNING"),
        (update.or.is_some(), "OR"),
        (!update.order_by.is_empty(), "ORDER BY"),
        (update.limit.is_some(), "LIMIT"),
    ];
    let span = update.update_token.0.span;
    if let Some((_, what)) = unread.iter().find(|(is_there, _)| *is_there) {
        let hint = "which rows change is a condition: `UPDATE t SET a = 1 WHERE …`; a join makes a new table: `CREATE TABLE changed AS SELECT …`";
        return Err(error_at(span, format!("UPDATE has no {what}"), hint));
    }
    let mut known: Vec<&AssignmentTarget> = Vec::new();
    for assignment in &update.assignments {
        if known.contains(&&assignment.target) {
            let message = format!("UPDATE sets `{}` twice", assignment.target);
            return Err(error_at(span, message, "leave one of them out"));
        }
        known.push(&assignment.target);
    }
    Ok(())
}

/// Refuses what a call has that only aggregates and windows read, or nobody.
pub(super) fn check_call(call: &Function, session: &SessionContext) -> Result<()> {
    let name = call.name.to_string().to_lowercase();
    let (is_scalar, is_window) = {
        let state = session.state_ref();
        let state = state.read();
        let is_aggregate = state.aggregate_functions().contains_key(&name);
        let is_window = state.window_functions().contains_key(&name);
        (state.scalar_functions().contains_key(&name) && !is_aggregate && !is_window, is_window && !is_aggregate)
    };
    let list = match &call.args {
        FunctionArguments::List(list) => Some(list),
        _ => None,
    };
    let is_distinct = list.is_some_and(|list| list.duplicate_treatment == Some(DuplicateTreatment::Distinct));
    let refused = |what: &str, hint: &str| Err(error_at(call.name.span(), format!("`{name}` takes no {what}"), hint));
    let inner = "it belongs to an aggregate: `coalesce(sum(x) FILTER (WHERE …), 0)`";
    if is_scalar {
        let ordered = |list: &FunctionArgumentList| {
            list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::OrderBy(_)))
        };
        let unread = [
            (call.filter.is_some(), "FILTER"),
            (call.over.is_some(), "OVER"),
            (!call.within_group.is_empty(), "WITHIN GROUP"),
            (is_distinct, "DISTINCT"),
            (list.is_some_and(ordered), "ORDER BY"),
            (call.null_treatment.is_some() || list.is_some_and(treats_nulls), "IGNORE NULLS or RESPECT NULLS"),
        ];
        if let Some((_, what)) = unread.iter().find(|(is_there, _)| *is_there) {
            return refused(what, inner);
        }
    }
    if is_window && is_distinct {
        return refused("DISTINCT", "take the distinct rows in a subquery: `FROM (SELECT DISTINCT …)`");
    }
    let is_row = |argument: &FunctionArg| {
        matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Wildcard | FunctionArgExpr::QualifiedWildcard(_)))
    };
    if is_distinct && list.is_some_and(|list| list.args.iter().any(is_row)) {
        return refused(
            "DISTINCT of whole rows",
            "count them in a subquery: `SELECT count(*) FROM (SELECT DISTINCT * FROM t)`",
        );
    }
    Ok(())
}

fn treats_nulls(list: &FunctionArgumentList) -> bool {
    list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(_)))
}

/// The type of a cast or a column: FLOAT(n) is the one that holds n bits, which DataFusion (55.2) takes for a REAL whatever n is. Other numbers
/// that it does not read are refused.
pub(super) fn read_precision(data_type: &mut DataType, at: datafusion::sql::sqlparser::tokenizer::Span) -> Result<()> {
    let refused = |what: String, hint: &str| Err(error_at(at, format!("`{what}` is not supported"), hint));
    match data_type {
        DataType::Float(ExactNumberInfo::Precision(1..=24)) => *data_type = DataType::Real,
        DataType::Float(ExactNumberInfo::Precision(25..=53)) => *data_type = DataType::Double(ExactNumberInfo::None),
        DataType::Float(ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(..))
        | DataType::Double(ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(..)) => {
            return refused(
                data_type.to_string(),
                "DOUBLE holds 15 digits, DECIMAL(12, 2) so many behind the point, `round(x, 2)` rounds",
            );
        }
        DataType::Interval { precision: Some(_), .. } => {
            return refused(data_type.to_string(), "an INTERVAL has all its digits: leave the precision out");
        }
        _ => {}
    }
    Ok(())
}

/// [`read_precision`] of a cast or a literal with a type.
pub(super) fn read_type(expr: &mut Expr) -> Result<()> {
    let span = expr.span();
    match expr {
        Expr::Cast { data_type, .. } => read_precision(data_type, span),
        Expr::TypedString(typed) => read_precision(&mut typed.data_type, span),
        _ => Ok(()),
    }
}
