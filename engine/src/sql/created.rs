//! Tables that are made: constraints that nobody would check are refused.
//!
//! DataFusion (55.2) takes NULLs into a NOT NULL column, and the same key twice; of a PRIMARY KEY or UNIQUE it concludes all the same that
//! `GROUP BY key, b` has one row for each key. Generated columns stay NULL.

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{ColumnDef, ColumnOption, Spanned, TableConstraint};

use crate::sql::decimals;
use crate::sql::diagnostic::error_at;

/// Looks at the columns and constraints of a table; `is_read` says that its rows are those of a file.
pub(super) fn check(columns: &[ColumnDef], constraints: &[TableConstraint], is_read: bool) -> Result<()> {
    decimals::check_columns(columns)?;
    for column in columns {
        for option in &column.options {
            let is_kept = match option.option {
                ColumnOption::Null | ColumnOption::Default(_) | ColumnOption::Comment(_) => true,
                // Whoever reads the file looks for them.
                ColumnOption::NotNull => is_read,
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

const HINT: &str = "leave it out: tables that are made here have columns and rows only";
