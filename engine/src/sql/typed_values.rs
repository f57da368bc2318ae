//! Rows that are written out: a text beside a time is one.
//!
//! `VALUES (DATE '2024-01-01'), ('2024-01-02')` is refused by DataFusion (55.2), which finds a date and a text. In PostgreSQL and DuckDB a
//! text without a type takes that of its column.

use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, Query, SetExpr, Value};

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
