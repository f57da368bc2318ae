//! Refuses clauses that DataFusion parses and then ignores: the answer would be that of another statement.
//!
//! ```text
//! DELETE FROM t LIMIT 1                          all rows
//! UPDATE t JOIN u ON … SET …                     all rows of t
//! EXPLAIN DELETE FROM t                          the rows are gone when the plan is shown
//! coalesce(sum(x), 0) FILTER (WHERE x > 1)       the sum of all
//! count(DISTINCT t.*)                            1
//! ```

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::Result;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{
    AssignmentTarget, DataType, Delete, DuplicateTreatment, ExactNumberInfo, ExcludeSelectItem, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    Select, SelectItem, SetExpr, Spanned, Statement, TableFactor, Update, Visit, Visitor, WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::sql::diagnostic::error_at;
use crate::sql::scope::normal;

/// Refuses what DELETE and UPDATE have beside a table, values and a condition, and DROP beside names.
pub(super) fn check_change(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Delete(delete) => check_delete(delete),
        Statement::Update(update) => check_update(update),
        Statement::Drop { temporary: true, .. } => {
            Err(error_at(statement.span(), "there are no temporary tables", "`DROP TABLE t` drops one of the session"))
        }
        _ => Ok(()),
    }
}

/// Refuses INTO of a SELECT that is not the whole statement: no table would be made.
pub(super) fn check_into(statement: &Statement) -> Result<()> {
    struct Into<'a> {
        whole: Option<&'a Select>,
    }
    impl Visitor for Into<'_> {
        type Break = Span;
        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Span> {
            let is_whole = self.whole.is_some_and(|whole| std::ptr::eq(whole, select));
            if select.into.is_some() && !is_whole {
                ControlFlow::Break(select.span())
            } else {
                ControlFlow::Continue(())
            }
        }
    }
    let whole = match statement {
        Statement::Query(query) => match query.body.as_ref() {
            SetExpr::Select(select) => Some(select.as_ref()),
            _ => None,
        },
        _ => None,
    };
    match statement.visit(&mut Into { whole }) {
        ControlFlow::Break(span) => {
            let hint = "make the table of all of it: `CREATE TABLE t AS SELECT … UNION …`";
            Err(error_at(span, "INTO stands in a part of the statement", hint))
        }
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Refuses EXPLAIN of what would be carried out by it.
pub(super) fn check_explained(statement: &Statement, is_run: bool) -> Result<()> {
    match statement {
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
    let columns = update.assignments.iter().filter_map(|assignment| match &assignment.target {
        AssignmentTarget::ColumnName(name) => own_name(name),
        AssignmentTarget::Tuple(_) => None,
    });
    let mut known = HashSet::new();
    match columns.into_iter().find(|column| !known.insert(column.clone())) {
        Some(column) => Err(error_at(span, format!("UPDATE sets `{column}` twice"), "leave one of them out")),
        None => Ok(()),
    }
}

/// Refuses what a call has that only aggregates and windows read, or nobody.
pub(super) fn check_call(call: &Function, session: &SessionContext) -> Result<()> {
    let Some(name) = own_name(&call.name) else { return Ok(()) };
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
    if is_distinct && UNDISTINCT.iter().any(|known| name.starts_with(known)) {
        return refused("DISTINCT", "take the distinct rows in a subquery: `FROM (SELECT DISTINCT …)`");
    }
    if is_distinct && list.is_some_and(|list| list.args.iter().any(is_row)) {
        return refused(
            "DISTINCT of whole rows",
            "count them in a subquery: `SELECT count(*) FROM (SELECT DISTINCT * FROM t)`",
        );
    }
    let row_of = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table)) => Some(table.to_string()),
        _ => None,
    };
    if let Some(table) = list.and_then(|list| list.args.iter().find_map(row_of)) {
        let hint = "a column that is never NULL in the rows of its table tells which are there: `count(t.task)`";
        return refused(&format!("rows, `{table}.*`"), hint);
    }
    Ok(())
}

/// The last part of a name, as the catalogue has it.
fn own_name(name: &ObjectName) -> Option<String> {
    name.0.last()?.as_ident().map(normal)
}

/// Aggregates that do not look for DISTINCT (DataFusion 55.2), by their beginnings.
const UNDISTINCT: [&str; 5] = ["corr", "covar_", "regr_", "nth_value", "approx_percentile_cont"];

fn treats_nulls(list: &FunctionArgumentList) -> bool {
    list.clauses.iter().any(|clause| matches!(clause, FunctionArgumentClause::IgnoreOrRespectNulls(_)))
}

/// Refuses what a relation has behind its name: WITH ORDINALITY, and types of columns.
pub(super) fn check_relation(relation: &TableFactor) -> Result<()> {
    let (alias, is_numbered) = match relation {
        // Of functions, others number the rows or refuse it.
        TableFactor::Table { alias, with_ordinality, args, .. } => (alias, *with_ordinality && args.is_none()),
        TableFactor::Function { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::TableFunction { alias, .. } => (alias, false),
        _ => return Ok(()),
    };
    if is_numbered {
        let hint = "number the rows: `row_number() OVER ()`";
        return Err(error_at(relation.span(), "WITH ORDINALITY is not supported", hint));
    }
    let typed = alias.iter().flat_map(|alias| &alias.columns).find(|column| column.data_type.is_some());
    match typed {
        Some(column) => {
            let message = format!("`{column}`: a column that is called otherwise keeps its type");
            Err(error_at(column.name.span, message, "cast it in SELECT: `CAST(a AS DOUBLE)`"))
        }
        None => Ok(()),
    }
}

/// Refuses a column that a `*` of a SELECT leaves out and replaces.
pub(super) fn check_wildcards(select: &Select) -> Result<()> {
    select.projection.iter().try_for_each(|item| match item {
        SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => check_wildcard(options),
        _ => Ok(()),
    })
}

fn check_wildcard(options: &WildcardAdditionalOptions) -> Result<()> {
    let left_out: Vec<&Ident> = match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => name.0.iter().filter_map(|part| part.as_ident()).collect(),
        Some(ExcludeSelectItem::Multiple(names)) => {
            names.iter().flat_map(|name| &name.0).filter_map(|part| part.as_ident()).collect()
        }
        None => Vec::new(),
    };
    let replaced = options.opt_replace.iter().flat_map(|replaced| &replaced.items);
    let both = replaced.map(|item| &item.column_name).find(|name| left_out.iter().any(|out| out.value == name.value));
    match both {
        Some(name) => {
            let message = format!("`{name}` stands in EXCLUDE and in REPLACE");
            Err(error_at(name.span, message, "leave it out of one of them"))
        }
        None => Ok(()),
    }
}

/// The type of a cast or a column: FLOAT(n) is the one that holds n bits, which DataFusion (55.2) takes for a REAL whatever n is. Other numbers
/// that it does not read are refused.
pub(super) fn read_precision(data_type: &mut DataType, at: Span) -> Result<()> {
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
