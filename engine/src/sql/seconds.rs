//! Times without seconds: `TIMESTAMP '2024-01-01 10:00'`, `CAST(s AS TIMESTAMP)`, `t > '2024-01-01 10:00'`.
//!
//! PostgreSQL and DuckDB read them; Arrow (59) wants seconds. The text gets them below the cast, wherever it comes from.

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

/// Gives seconds to what an expression casts to a time, after types are settled.
pub(super) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (text, to) = match &mut expr {
        Expr::Cast(cast) => (&mut cast.expr, cast.field.data_type()),
        Expr::TryCast(cast) => (&mut cast.expr, cast.field.data_type()),
        _ => return Ok(Transformed::no(expr)),
    };
    let is_done = matches!(text.as_ref(), Expr::ScalarFunction(call) if call.func.inner().is::<WithSeconds>());
    if !matches!(to, DataType::Timestamp(..)) || is_done || !is_text(&text.get_type(schema)?) {
        return Ok(Transformed::no(expr));
    }
    let whole = ScalarUDF::from(WithSeconds { signature: Signature::any(1, Volatility::Immutable) });
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
struct WithSeconds {
    signature: Signature,
}

impl ScalarUDFImpl for WithSeconds {
    fn name(&self) -> &str {
        "with_seconds"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [texts] = args.args.as_slice() else { return internal_err!("{} has one argument", self.name()) };
        let whole = |texts: &StringArray| texts.iter().map(|text| text.map(with_seconds)).collect::<StringArray>();
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
