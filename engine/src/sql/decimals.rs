//! Decimals that are written, cast and compared as exactly as they are.
//!
//! ```text
//! 123456789012345678901234567890     CAST('123456789012345678901234567890' AS DECIMAL(30, 0))    it would be a DOUBLE
//! CAST(0.12345678901234567890 AS DECIMAL(20, 20))    CAST('0.12345678901234567890' AS …)         it would be one on the way
//! CAST(12355 AS DECIMAL(10, -2))     of a DECIMAL(38, 0), which is rounded                       it would be cut
//! DECIMAL(38, 30) < DECIMAL(38, 0)   both with 76 digits                                         38 do not hold both
//! ```

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast, cast};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CastKind, ColumnDef, DataType as SqlType, ExactNumberInfo, Expr as SqlExpr, Spanned,
    UnaryOperator, Value,
};

use datafusion::sql::sqlparser::tokenizer::Span;

use tq_udfs::rounded::settled;

use crate::sql::decimal_text::with_scale;
use crate::sql::diagnostic::error_at;
use crate::sql::equal;

/// Writes numbers that no whole type holds, and those below a cast to DECIMAL, as texts that are cast.
pub(super) fn rewrite(expr: &mut SqlExpr) -> Result<()> {
    if let SqlExpr::TypedString(typed) = expr {
        check(&typed.data_type, typed.value.span)?;
    }
    if let SqlExpr::Cast { expr: value, data_type, .. } = expr {
        check(data_type, value.span())?;
        if let SqlType::Decimal(info) | SqlType::Numeric(info) | SqlType::Dec(info) = data_type
            && let Some(text) = digits_of(value).or_else(|| text_of(value))
        {
            let mut text = text;
            // Arrow reads no texts of negative scales.
            if let ExactNumberInfo::PrecisionAndScale(digits, scale @ ..0) = *info
                && let Ok(of_arrow) = i8::try_from(scale)
            {
                text = with_scale(&text, of_arrow).into_owned();
                *data_type = SqlType::Decimal(ExactNumberInfo::Precision(digits + scale.unsigned_abs()));
            }
            **value = SqlExpr::Value(Value::SingleQuotedString(text).into());
        }
        return Ok(());
    }
    // A number without a sign may have 64 bits, one with a sign 63.
    if let SqlExpr::UnaryOp { op: UnaryOperator::Minus, expr: value } = expr
        && let SqlExpr::Value(literal) = value.as_ref()
        && let Value::Number(digits, _) = &literal.value
        && digits.parse::<u64>().is_ok_and(|number| number > 1 << 63)
    {
        **value = written(digits.clone(), literal.span);
        return Ok(());
    }
    let SqlExpr::Value(literal) = &*expr else { return Ok(()) };
    let Value::Number(digits, _) = &literal.value else { return Ok(()) };
    if digits.parse::<u64>().is_ok() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Ok(());
    }
    let digits = digits.trim_start_matches('0').to_owned();
    if digits.len() > usize::from(DECIMAL128_MAX_PRECISION) {
        let message = format!("a whole number of {} digits is beyond the 38 of DECIMAL", digits.len());
        return Err(error_at(literal.span, message, "`1e50` is a DOUBLE, which is rounded"));
    }
    *expr = written(digits, literal.span);
    Ok(())
}

/// A DECIMAL of these digits.
fn written(digits: String, span: Span) -> SqlExpr {
    let info = ExactNumberInfo::Precision(digits.len() as u64);
    SqlExpr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(SqlExpr::Value(Value::SingleQuotedString(digits).with_span(span))),
        data_type: SqlType::Decimal(info),
        array: false,
        format: None,
    }
}

/// Refuses DECIMALs that no type holds; DataFusion (55.2) would take 257 digits for one.
pub(super) fn check(data_type: &SqlType, span: Span) -> Result<()> {
    let info = match data_type {
        SqlType::Decimal(info) | SqlType::Numeric(info) | SqlType::Dec(info) => info,
        SqlType::Array(
            ArrayElemTypeDef::AngleBracket(item)
            | ArrayElemTypeDef::SquareBracket(item, _)
            | ArrayElemTypeDef::Parenthesis(item),
        ) => return check(item, span),
        _ => return Ok(()),
    };
    let (digits, scale) = match info {
        ExactNumberInfo::None => return Ok(()),
        ExactNumberInfo::Precision(digits) => (*digits, 0),
        ExactNumberInfo::PrecisionAndScale(digits, scale) => (*digits, *scale),
    };
    let most = u64::from(DECIMAL128_MAX_PRECISION);
    let hint =
        "DECIMAL(38, 2) has 36 digits before the point and two behind it, and DECIMAL(3, -2) five that end in `00`";
    if !(1..=most).contains(&digits) {
        return Err(error_at(span, format!("`{data_type}`: a DECIMAL has 1 to {most} digits"), hint));
    }
    let has_room = match u64::try_from(scale) {
        Ok(behind) => behind <= digits,
        Err(_) => scale.unsigned_abs() <= most - digits,
    };
    if !has_room {
        let message = match scale {
            ..0 => format!("`{data_type}`: a DECIMAL has {most} digits at most, with those that are rounded away"),
            _ => format!("`{data_type}`: of {digits} digits, {scale} cannot stand behind the point"),
        };
        let wide = u64::try_from(scale).ok().filter(|scale| *scale <= most);
        let hint =
            wide.map_or(hint.to_owned(), |scale| format!("`DECIMAL({scale},{scale})` holds all that is below 1"));
        return Err(error_at(span, message, &hint));
    }
    Ok(())
}

/// Refuses such columns of a table that is made, and those of a negative scale.
pub(super) fn check_columns(columns: &[ColumnDef]) -> Result<()> {
    for column in columns {
        let span = column.name.span;
        check(&column.data_type, span)?;
        if let SqlType::Decimal(ExactNumberInfo::PrecisionAndScale(digits, scale @ ..0))
        | SqlType::Numeric(ExactNumberInfo::PrecisionAndScale(digits, scale @ ..0)) = &column.data_type
        {
            let message = format!("a column of `{}` is not supported", column.data_type);
            let hint = format!("DECIMAL({}, 0) holds its numbers", *digits + scale.unsigned_abs());
            return Err(error_at(span, message, &hint));
        }
    }
    Ok(())
}

/// A cast to DECIMAL(5, -2), whose numbers end in `00`, is cast to DECIMAL(7, 0) afterwards: types of negative scale cannot be shown,
/// added or compared everywhere. To be called after the argument was visited.
pub(super) fn without_scale(expr: &mut SqlExpr) {
    let SqlExpr::Cast {
        data_type:
            SqlType::Decimal(ExactNumberInfo::PrecisionAndScale(digits, scale @ ..0))
            | SqlType::Numeric(ExactNumberInfo::PrecisionAndScale(digits, scale @ ..0))
            | SqlType::Dec(ExactNumberInfo::PrecisionAndScale(digits, scale @ ..0)),
        kind,
        ..
    } = &*expr
    else {
        return;
    };
    let data_type = SqlType::Decimal(ExactNumberInfo::Precision(*digits + scale.unsigned_abs()));
    let kind = kind.clone();
    let rounded = Box::new(std::mem::replace(expr, SqlExpr::Identifier("".into())));
    let rounded = Box::new(SqlExpr::Nested(rounded));
    *expr = SqlExpr::Cast { kind, expr: rounded, data_type, array: false, format: None };
}

/// Settles the types of rounded numbers before others depend on them (`tq_udfs::rounded`).
pub(super) fn settle(plan: LogicalPlan) -> Result<LogicalPlan> {
    let settle = |expr: Expr| {
        Ok(match &expr {
            Expr::ScalarFunction(call) => match settled(call) {
                Some(call) => Transformed::yes(Expr::ScalarFunction(call)),
                None => Transformed::no(expr),
            },
            _ => Transformed::no(expr),
        })
    };
    plan.transform_up_with_subqueries(|plan| plan.map_expressions(|expr| expr.transform_up(settle))).data()
}

/// A text that is written out.
fn text_of(expr: &SqlExpr) -> Option<String> {
    match expr {
        SqlExpr::Nested(within) => text_of(within),
        SqlExpr::Value(literal) => literal.value.clone().into_string(),
        _ => None,
    }
}

/// The text of a number that is written out.
fn digits_of(expr: &SqlExpr) -> Option<String> {
    match expr {
        SqlExpr::Nested(within) => digits_of(within),
        SqlExpr::UnaryOp { op: UnaryOperator::Minus, expr } => match digits_of(expr)? {
            text if text.starts_with('-') => None,
            text => Some(format!("-{text}")),
        },
        SqlExpr::Value(literal) => match &literal.value {
            Value::Number(digits, _) if digits.len() > 15 || digits.contains(['.', 'e', 'E']) => Some(digits.clone()),
            _ => None,
        },
        _ => None,
    }
}

/// Digits behind the point that 38 have room for beside all whole numbers of 64 bits.
const DIGITS_BEHIND: i8 = 18;

/// A cast to a DECIMAL without the last digits before the point, rounded; and one of a DECIMAL with more than 38 digits to a whole number.
pub(super) fn rounded(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (value, to) = match &mut expr {
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => (expr, field.data_type()),
        _ => return Ok(Transformed::no(expr)),
    };
    // Arrow (59) takes the last bits of one that does not fit.
    if let (DataType::Decimal256(_, scale), true) = (value.get_type(schema)?, to.is_integer()) {
        let scale = scale.clamp(0, DIGITS_BEHIND);
        **value = cast(std::mem::take(value.as_mut()), DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale));
        return Ok(Transformed::yes(expr));
    }
    if !matches!(to, DataType::Decimal128(_, ..0)) || !value.get_type(schema)?.is_integer() {
        return Ok(Transformed::no(expr));
    }
    **value = cast(std::mem::take(value.as_mut()), DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0));
    Ok(Transformed::yes(expr))
}

/// A comparison whose sides were brought to one type that does not hold all of their digits.
pub(super) fn compared(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut sides = equal::sides(&mut expr);
    let (mut is_too_wide, mut most) = (false, 0);
    for side in &sides {
        let DataType::Decimal128(_, wanted) = side.get_type(schema)? else { return Ok(Transformed::no(expr)) };
        let value = bare(side, schema)?;
        let is_cast = !std::ptr::eq(value, &**side);
        let Some((digits, scale)) = digits(&value.get_type(schema)?) else { return Ok(Transformed::no(expr)) };
        is_too_wide |= is_cast && digits - i16::from(scale) + i16::from(wanted) > DECIMAL128_MAX_PRECISION.into();
        most = most.max(scale);
    }
    if !is_too_wide {
        return Ok(Transformed::no(expr));
    }
    for side in &mut sides {
        let value = bare(side, schema)?.clone();
        **side = cast(value, DataType::Decimal256(DECIMAL256_MAX_PRECISION, most));
    }
    Ok(Transformed::yes(expr))
}

/// What a side was before it was brought to the common type.
fn bare<'a>(side: &'a Expr, schema: &DFSchema) -> Result<&'a Expr> {
    match side {
        Expr::Cast(Cast { expr, .. }) if digits(&expr.get_type(schema)?).is_some() => Ok(expr),
        other => Ok(other),
    }
}

/// How many digits the numbers of a type have, and how many of them behind the point.
fn digits(data_type: &DataType) -> Option<(i16, i8)> {
    match data_type {
        DataType::Decimal128(digits, scale) => Some(((*digits).into(), *scale)),
        whole if whole.is_integer() => Some((20, 0)),
        _ => None,
    }
}
