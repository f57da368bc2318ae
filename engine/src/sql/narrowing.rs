//! Comparisons with a cast that loses information: `CAST(x AS DECIMAL(5, 0)) = 2`, `TRY_CAST(n AS SMALLINT) > 3`,
//! `TRY_CAST(s AS BIGINT) IS NOT DISTINCT FROM NULL`.
//!
//! DataFusion (55.2) removes the cast and compares its argument with the literal: 2.4 was not 2, 100000 was more than 3 as a SMALLINT, a
//! text that is no number was not NULL, and a time in seconds was equal to 00:00:01.5. Here such a cast is wrapped in [`itself`], which the
//! optimizer does not see through. So is one that is a column of a subquery, since conditions on it are pushed down to it later. Casts that
//! keep every value stay as they are: scans use them to leave out rows.

use std::ops::RangeInclusive;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, TryCast};

use crate::sql::annotated::{Said, itself};
use crate::sql::equal;
use crate::sql::postgres_texts::is_text;

/// A comparison whose sides are compared as they were cast.
pub(super) fn kept(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut changed = false;
    for side in equal::sides(&mut expr) {
        changed |= hold(side, schema)?;
    }
    Ok(Transformed::new_transformed(expr, changed))
}

/// A column of a SELECT list or a key of groups: conditions on it come down to where it is computed, and compare what it is made of then.
pub(super) fn column(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut value = &mut expr;
    while let Expr::Alias(alias) = value {
        value = alias.expr.as_mut();
    }
    let changed = hold(value, schema)?;
    Ok(Transformed::new_transformed(expr, changed))
}

/// Keeps a cast that loses together with what it casts; whether there is one.
fn hold(mut side: &mut Expr, schema: &DFSchema) -> Result<bool> {
    // Casts that hold every value are taken away too, and bare what they cast.
    while let Expr::Cast(Cast { expr: value, field }) | Expr::TryCast(TryCast { expr: value, field }) = &*side {
        if loses(&value.get_type(schema)?, field.data_type()) {
            *side = itself(std::mem::take(side), Said::NoColumn);
            return Ok(true);
        }
        let (Expr::Cast(Cast { expr: value, .. }) | Expr::TryCast(TryCast { expr: value, .. })) = side else {
            break;
        };
        side = value;
    }
    Ok(false)
}

/// Whether two values may become one, or a value none.
fn loses(from: &DataType, to: &DataType) -> bool {
    if from == to || is_text(to) {
        return false;
    }
    match (whole(from), whole(to)) {
        (Some(from), Some(to)) => from.start() < to.start() || to.end() < from.end(),
        (Some(from), None) => decimal(to).is_some_and(|(digits, _)| digits < from.end().to_string().len()),
        (None, Some(_)) => true,
        (None, None) => match (decimal(from), decimal(to)) {
            (Some(from), Some(to)) => from.0 > to.0 || from.1 > to.1,
            // A finer literal would be cut to the unit of what is cast.
            _ => is_text(from) || from.is_temporal() && to.is_temporal(),
        },
    }
}

/// The numbers of a type of whole ones.
fn whole(data_type: &DataType) -> Option<RangeInclusive<i128>> {
    let signed = |bits: u32| -(1i128 << (bits - 1))..=(1i128 << (bits - 1)) - 1;
    let unsigned = |bits: u32| 0..=(1i128 << bits) - 1;
    Some(match data_type {
        DataType::Int8 => signed(8),
        DataType::Int16 => signed(16),
        DataType::Int32 => signed(32),
        DataType::Int64 => signed(64),
        DataType::UInt8 => unsigned(8),
        DataType::UInt16 => unsigned(16),
        DataType::UInt32 => unsigned(32),
        DataType::UInt64 => unsigned(64),
        _ => return None,
    })
}

/// How many digits the numbers of a type have before and behind the point.
fn decimal(data_type: &DataType) -> Option<(usize, i8)> {
    match data_type {
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => {
            Some((usize::try_from(i16::from(*digits) - i16::from(*scale)).unwrap_or(0), *scale))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn casts_that_hold_every_value_lose_none() {
        use DataType::{Decimal128, Float64, Int16, Int64, UInt32, UInt64, Utf8, Utf8View};
        let keeping = [
            (Int16, Int64),
            (UInt32, Int64),
            (Int64, Decimal128(19, 0)),
            (UInt64, Decimal128(22, 2)),
            (Decimal128(5, 2), Decimal128(7, 3)),
            (Int64, Utf8),
            (Utf8, Utf8View),
            (Int64, Float64),
        ];
        for (from, to) in keeping {
            assert!(!loses(&from, &to), "{from} to {to}");
        }
        let losing = [
            (Int64, Int16),
            (Int64, UInt64),
            (UInt64, Int64),
            (Int64, Decimal128(20, 2)),
            (Decimal128(5, 2), Decimal128(5, 0)),
            (Decimal128(5, 2), Decimal128(5, 3)),
            (Decimal128(5, 2), Int64),
            (Utf8, Int64),
            (Utf8, DataType::Date32),
            (DataType::Date32, DataType::Timestamp(TimeUnit::Nanosecond, None)),
        ];
        for (from, to) in losing {
            assert!(loses(&from, &to), "{from} to {to}");
        }
    }
}
