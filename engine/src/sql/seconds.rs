//! Times without seconds: `TIMESTAMP '2024-01-01 10:00'`, `CAST(s AS TIMESTAMP)`, `t > '2024-01-01 10:00'`; and texts of intervals
//! with a time in them, `CAST('1 day 02:00:00' AS INTERVAL)`.
//!
//! PostgreSQL and DuckDB read them; Arrow (59) wants seconds, and units. The text gets them below the cast, wherever it comes from.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::sql::interval_text::with_units;

/// Gives seconds to what an expression casts to a time, and units to what it casts to an interval, after types are settled.
pub(super) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (text, to) = match &mut expr {
        Expr::Cast(cast) => (&mut cast.expr, cast.field.data_type()),
        Expr::TryCast(cast) => (&mut cast.expr, cast.field.data_type()),
        _ => return Ok(Transformed::no(expr)),
    };
    let is_done = matches!(text.as_ref(), Expr::ScalarFunction(call) if call.func.inner().is::<Whole>());
    let is_interval = matches!(to, DataType::Interval(_));
    if !(is_interval || matches!(to, DataType::Timestamp(..))) || is_done || !is_text(&text.get_type(schema)?) {
        return Ok(Transformed::no(expr));
    }
    let whole = ScalarUDF::from(Whole { is_interval, signature: Signature::any(1, Volatility::Immutable) });
    **text = whole.call(vec![std::mem::take(text.as_mut())]);
    Ok(Transformed::yes(expr))
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, words) => is_text(words),
        other => other.is_string(),
    }
}

/// A time with its seconds: `:00` behind `HH:MM` where no `:` follows.
fn with_seconds(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_whole =
        [11, 12, 14, 15].into_iter().all(is_digit) && bytes[13] == b':' && matches!(bytes[10], b' ' | b'T' | b't');
    match bytes.get(16) {
        None | Some(b'Z' | b'z' | b'+' | b'-' | b' ') if is_whole && text.is_char_boundary(16) => {
            Cow::Owned(format!("{}:00{}", &text[..16], &text[16..]))
        }
        _ => Cow::Borrowed(text),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Whole {
    is_interval: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Whole {
    fn name(&self) -> &str {
        if self.is_interval { "with_units" } else { "with_seconds" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [texts] = args.args.as_slice() else { return internal_err!("{} has one argument", self.name()) };
        let whole = if self.is_interval { with_units } else { with_seconds };
        let whole = |texts: &StringArray| texts.iter().map(|text| text.map(whole)).collect::<StringArray>();
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
