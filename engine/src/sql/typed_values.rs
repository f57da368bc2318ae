//! Rows that are written out: a text beside a time is one.
//!
//! `VALUES (DATE '2024-01-01'), ('2024-01-02')` is refused by DataFusion (55.2), which finds a date and a text. In PostgreSQL and DuckDB a
//! text without a type takes that of its column.
//!
//! And a time of a trace beside a number is a number: `VALUES ('start', start), ('depth', depth)`. DataFusion wants that all rows tell the same
//! of their columns, and only one of the two is told to be a time. So a statement that is refused for it is planned again with values of
//! which nothing is told ([`untold`]).

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{BinaryOperator, CastKind, DataType, Expr, Query, SetExpr, Value, VisitorMut};

use crate::sql::annotated::{Said, itself};
use crate::sql::statement::walk;

/// The operator that stands behind a value of which nothing is told.
const UNTOLD: &str = "\u{2063}untold\u{2063}";

/// Whether a statement is refused because its rows tell different things of a column.
pub(super) fn tell_apart(error: &DataFusionError) -> bool {
    error.strip_backtrace().contains("Inconsistent metadata across values list")
}

/// A statement in whose rows nothing is told of values.
pub(super) fn untold(mut statement: ParsedStatement) -> ParsedStatement {
    struct Untold;
    impl VisitorMut for Untold {
        type Break = ();
        fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
            if let SetExpr::Values(values) = query.body.as_mut() {
                for value in values.rows.iter_mut().flat_map(|row| row.iter_mut()) {
                    let left = Box::new(std::mem::replace(value, Expr::Identifier("".into())));
                    let right = Box::new(Expr::Value(Value::Null.into()));
                    *value = Expr::BinaryOp { left, op: BinaryOperator::Custom(UNTOLD.to_owned()), right };
                }
            }
            ControlFlow::Continue(())
        }
    }
    walk(&mut statement, &mut Untold);
    statement
}

/// Plans values of which nothing is told.
#[derive(Debug)]
pub(super) struct UntoldValues;

impl ExprPlanner for UntoldValues {
    fn plan_binary_op(&self, expr: RawBinaryExpr, _: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        Ok(match &expr.op {
            BinaryOperator::Custom(op) if op == UNTOLD => {
                PlannerResult::Planned(itself(expr.left, Said::Metadata(BTreeMap::new())))
            }
            _ => PlannerResult::Original(expr),
        })
    }
}

/// Casts the texts of a column to the type of a time that another row has there.
pub(super) fn rewrite(query: &mut Query) {
    let SetExpr::Values(values) = query.body.as_mut() else { return };
    let columns = values.rows.first().map_or(0, |row| row.len());
    for column in 0..columns {
        let time = values.rows.iter().filter_map(|row| time_of(row.get(column)?)).next();
        let Some(data_type) = time else { continue };
        for value in values.rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            if matches!(value, Expr::Value(text) if matches!(text.value, Value::SingleQuotedString(_))) {
                let text = Box::new(std::mem::replace(value, Expr::Identifier("".into())));
                let data_type = data_type.clone();
                *value = Expr::Cast { kind: CastKind::Cast, expr: text, data_type, format: None, array: false };
            }
        }
    }
}

/// The type of a date, time or interval that is written as such.
fn time_of(value: &Expr) -> Option<DataType> {
    let data_type = match value {
        Expr::TypedString(typed) => &typed.data_type,
        Expr::Cast { data_type, .. } => data_type,
        Expr::Interval(_) => return Some(DataType::Interval { fields: None, precision: None }),
        _ => return None,
    };
    let is_time =
        matches!(data_type, DataType::Date | DataType::Time(..) | DataType::Timestamp(..) | DataType::Interval { .. });
    is_time.then(|| data_type.clone())
}
