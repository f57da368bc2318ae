//! CREATE TABLE: constraints that would not be checked are refused.
//!
//! DataFusion (55.2) takes NULLs into a NOT NULL column, and the same key twice; of a PRIMARY KEY or UNIQUE it concludes all the same that
//! `GROUP BY key, b` has one row for each key. Generated columns stay NULL. Of a file it believes NOT NULL (`WHERE x IS NULL` has no rows then) and
//! WITH ORDER (`ORDER BY x` sorts nothing), and forgets DEFAULT.

use datafusion::common::Result;
use datafusion::sql::parser::CreateExternalTable;
use datafusion::sql::sqlparser::ast::{ColumnDef, ColumnOption, Spanned, TableConstraint};

use crate::sql::decimals;
use crate::sql::diagnostic::error_at;

/// Looks at the columns and constraints of a table; `is_read` says that its rows are those of a file, which have no defaults.
pub(super) fn check(columns: &[ColumnDef], constraints: &[TableConstraint], is_read: bool) -> Result<()> {
    decimals::check_columns(columns)?;
    for column in columns {
        for option in &column.options {
            let is_kept = match option.option {
                ColumnOption::Null | ColumnOption::Comment(_) => true,
                ColumnOption::Default(_) => !is_read,
                _ => false,
            };
            if !is_kept {
                let message = format!("`{}` of column `{}` would not be checked", option.option, column.name.value);
                return Err(error_at(column.name.span, message, HINT));
            }
        }
    }
    match constraints.first() {
        Some(constraint) => Err(error_at(constraint.span(), format!("`{constraint}` would not be checked"), HINT)),
        None => Ok(()),
    }
}

/// Refuses what a statement says of the order of a file's rows.
pub(super) fn check_order(create: &CreateExternalTable) -> Result<()> {
    match create.order_exprs.iter().flatten().next() {
        Some(key) => {
            let message = format!("`WITH ORDER ({key})` would not be checked");
            Err(error_at(key.expr.span(), message, "leave it out: ORDER BY sorts"))
        }
        None => Ok(()),
    }
}

const HINT: &str = "leave it out: tables that are made here have columns and rows only";
