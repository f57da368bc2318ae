//! Texts that are cast to times, intervals and DECIMALs, as PostgreSQL (15) reads them, wherever they come from.
//!
//! ```text
//! '2024-01-01 10:00' as TIMESTAMP            '2024-01-01T10:00:00' (`time_text.rs`)
//! '1.005' or the DOUBLE 1.005 as DECIMAL(5, 2)   '1.01' (`decimal_text.rs`)
//! '1 day 02:00:00' as INTERVAL               '0 months 1 days 7200 seconds' (`interval_text.rs`)
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    cast as cast_expr, try_cast,
};

use crate::sql::decimal_text::with_scale;
use crate::sql::interval_text::with_units;
use crate::sql::time_text;

/// Writes the text that an expression casts to a time or an interval as Arrow reads it, after types are settled.
pub(super) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let tries = matches!(expr, Expr::TryCast(_));
    let (text, to) = match &mut expr {
        Expr::Cast(cast) => (&mut cast.expr, cast.field.data_type()),
        Expr::TryCast(cast) => (&mut cast.expr, cast.field.data_type()),
        _ => return Ok(Transformed::no(expr)),
    };
    let is_done = matches!(text.as_ref(), Expr::ScalarFunction(call) if call.func.inner().is::<Whole>());
    let to = match to {
        DataType::Date32 | DataType::Date64 => To::Date,
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => To::Decimal(*scale),
        DataType::Interval(_) => To::Interval,
        DataType::Timestamp(_, None) => To::Timestamp,
        DataType::Timestamp(_, Some(_)) => To::Moment,
        DataType::Time32(_) | DataType::Time64(_) => To::Time,
        _ => return Ok(Transformed::no(expr)),
    };
    if is_done {
        return Ok(Transformed::no(expr));
    }
    let from = text.get_type(schema)?;
    // The digits of a DOUBLE are those that it is shown with.
    let has_digits = matches!(to, To::Decimal(_)) && from.is_floating();
    if !is_text(&from) && !has_digits {
        return Ok(Transformed::no(expr));
    }
    let whole = ScalarUDF::from(Whole { to, signature: Signature::any(1, Volatility::Immutable) });
    **text = whole.call(vec![std::mem::take(text.as_mut())]);
    // Arrow reads no texts as DECIMALs of a negative scale, and rescales what it has read.
    if matches!(to, To::Decimal(..0)) {
        let read = std::mem::take(text.as_mut());
        let whole = DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0);
        **text = if tries { try_cast(read, whole) } else { cast_expr(read, whole) };
    }
    Ok(Transformed::yes(expr))
}

pub(super) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, words) => is_text(words),
        other => other.is_string(),
    }
}

/// What texts are cast to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum To {
    Date,
    /// With this number of digits behind the point.
    Decimal(i8),
    Interval,
    Moment,
    Time,
    Timestamp,
}

impl To {
    fn written(self, text: &str) -> Cow<'_, str> {
        match self {
            To::Date => time_text::date(text),
            To::Decimal(scale) => with_scale(text, scale),
            To::Interval => with_units(text),
            To::Moment => time_text::moment(text),
            To::Time => time_text::time(text),
            To::Timestamp => time_text::timestamp(text),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Whole {
    to: To,
    signature: Signature,
}

impl ScalarUDFImpl for Whole {
    fn name(&self) -> &str {
        match self.to {
            To::Date => "text_of_date",
            To::Decimal(_) => "text_of_decimal",
            To::Interval => "with_units",
            To::Moment => "text_of_moment",
            To::Time => "text_of_time",
            To::Timestamp => "text_of_timestamp",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [texts] = args.args.as_slice() else { return internal_err!("{} has one argument", self.name()) };
        let whole = |texts: &StringArray| -> StringArray {
            texts.iter().map(|text| text.map(|text| self.to.written(text))).collect()
        };
        Ok(match texts {
            ColumnarValue::Array(texts) => {
                ColumnarValue::Array(Arc::new(whole(cast(texts, &DataType::Utf8)?.as_string())))
            }
            ColumnarValue::Scalar(text) => {
                let text = text.cast_to(&DataType::Utf8)?.to_array()?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&whole(text.as_string()), 0)?)
            }
        })
    }
}
