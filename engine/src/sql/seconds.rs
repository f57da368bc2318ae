//! Texts that are cast to times and intervals, as PostgreSQL (15) reads them, wherever they come from.
//!
//! ```text
//! '2024-01-01 10:00' as TIMESTAMP            '2024-01-01 10:00:00'         Arrow (59) wants seconds
//! '2024-01-01 10:00:00+02' as TIMESTAMP      '2024-01-01 10:00:00'         Arrow would go back two hours; as TIMESTAMPTZ it is to
//! '10:20:30+02', '2024-01-01 10:20' as TIME  '10:20:30', '10:20'
//! '1020' as TIME                             '10:20'
//! '10' as TIME                               an error                      Arrow takes it for nanoseconds
//! '1 day 02:00:00' as INTERVAL               with units (`interval_text.rs`)
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::array::{AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::sql::interval_text::with_units;

/// Writes the text that an expression casts to a time or an interval as Arrow reads it, after types are settled.
pub(super) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (text, to) = match &mut expr {
        Expr::Cast(cast) => (&mut cast.expr, cast.field.data_type()),
        Expr::TryCast(cast) => (&mut cast.expr, cast.field.data_type()),
        _ => return Ok(Transformed::no(expr)),
    };
    let is_done = matches!(text.as_ref(), Expr::ScalarFunction(call) if call.func.inner().is::<Whole>());
    let to = match to {
        DataType::Interval(_) => To::Interval,
        DataType::Timestamp(_, None) => To::Timestamp,
        DataType::Timestamp(_, Some(_)) => To::Moment,
        DataType::Time32(_) | DataType::Time64(_) => To::Time,
        _ => return Ok(Transformed::no(expr)),
    };
    if is_done || !is_text(&text.get_type(schema)?) {
        return Ok(Transformed::no(expr));
    }
    let whole = ScalarUDF::from(Whole { to, signature: Signature::any(1, Volatility::Immutable) });
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

/// A time without the zone behind it, if what stands there is one.
fn without_zone(text: &str) -> &str {
    let at = if is_after_date(text) { 11 } else { 0 };
    let time = text.get(at..).unwrap_or_default();
    let digits = time.find(|letter: char| !(letter.is_ascii_digit() || ":.".contains(letter))).unwrap_or(time.len());
    let (time, zone) = time.split_at(digits);
    let zone = zone.trim();
    let is_zone = zone.eq_ignore_ascii_case("z") || zone.parse::<Tz>().is_ok();
    if time.contains(':') && is_zone { &text[..at + digits] } else { text }
}

/// Whether a time begins behind a date.
fn is_after_date(text: &str) -> bool {
    matches!(text.as_bytes(), [y, _, _, _, b'-', _, _, b'-', _, _, b' ' | b'T' | b't', ..] if y.is_ascii_digit())
}

fn timestamp(text: &str) -> Cow<'_, str> {
    with_seconds(if is_after_date(text) { without_zone(text) } else { text })
}

fn time(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let text = if is_after_date(text) { &text[11..] } else { text };
    match text.parse::<i64>() {
        Ok(_) if text.len() == 4 && text.is_ascii() => Cow::Owned(format!("{}:{}", &text[..2], &text[2..])),
        Ok(_) if text.len() == 6 && text.is_ascii() => {
            Cow::Owned(format!("{}:{}:{}", &text[..2], &text[2..4], &text[4..]))
        }
        // No number, and so no time.
        Ok(_) => Cow::Owned(format!("{text} ")),
        Err(_) => Cow::Borrowed(without_zone(text)),
    }
}

/// What texts are cast to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum To {
    Interval,
    Moment,
    Time,
    Timestamp,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Whole {
    to: To,
    signature: Signature,
}

impl ScalarUDFImpl for Whole {
    fn name(&self) -> &str {
        match self.to {
            To::Interval => "with_units",
            To::Moment => "with_seconds",
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
        let whole: fn(&str) -> Cow<'_, str> = match self.to {
            To::Interval => with_units,
            To::Moment => with_seconds,
            To::Time => time,
            To::Timestamp => timestamp,
        };
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
