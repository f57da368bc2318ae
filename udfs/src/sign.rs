//! `sign(x)`: whether a number is below, at or above 0.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion_common::{Result, internal_err, plan_err};
use datafusion_expr::{ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use datafusion_macros::user_doc;

use crate::spans::named;

/// `sign(x)`: −1, 0 or 1. Shape: one `BIGINT` per whole number or decimal, one `DOUBLE` per double.
#[user_doc(
    doc_section(label = "Numbers"),
    description = "The sign of a number: −1 below 0, 0 at 0, 1 above 0.\n\n\
        Rows: one per row; BIGINT for whole numbers and decimals, DOUBLE for doubles. Units: none, the sign of a time is a \
        plain number. NULL gives NULL, NaN gives NaN, both zeros give 0.\n\n\
        Errors: none. Cost: O(1).\n\n\
        Source: the function of that name in PostgreSQL and DuckDB.",
    syntax_example = "sign(x)",
    sql_example = "SELECT sign(-3) AS below, sign(0) AS none, sign(2.5) AS above",
    argument(name = "x", description = "A number.")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Sign {
    signature: Signature,
}

impl Sign {
    /// The function.
    pub fn new() -> Self {
        Sign { signature: named(Signature::user_defined(Volatility::Immutable), &["x"]) }
    }
}

impl Default for Sign {
    fn default() -> Self {
        Self::new()
    }
}

impl ScalarUDFImpl for Sign {
    fn name(&self) -> &str {
        "sign"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Null] => Ok(vec![DataType::Int64]),
            // A decimal as a double has the sign that it has; so has an unsigned number of 64 bits, which BIGINT may not hold.
            [x] if x.is_signed_integer() => Ok(vec![DataType::Int64]),
            [x] if x.is_numeric() => Ok(vec![x.clone()]),
            [other] => plan_err!("sign takes a number, found {other}"),
            _ => plan_err!("sign takes one number, found {} arguments", types.len()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [x] if x.is_floating() => Ok(DataType::Float64),
            [_] => Ok(DataType::Int64),
            _ => internal_err!("sign takes one number"),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = ColumnarValue::values_to_arrays(&args.args)?;
        let [x] = values.as_slice() else { return internal_err!("sign takes one number") };
        Ok(ColumnarValue::Array(signs(x)?))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.doc()
    }
}

fn signs(x: &ArrayRef) -> Result<ArrayRef> {
    if x.data_type() == &DataType::Int64 {
        return Ok(Arc::new(x.as_primitive::<Int64Type>().unary::<_, Int64Type>(i64::signum)));
    }
    let doubles = arrow::compute::cast(x, &DataType::Float64)?;
    let doubles = doubles.as_primitive::<Float64Type>();
    let sign = |value: f64| if value == 0.0 { 0.0 } else { value.signum() };
    Ok(match x.data_type().is_floating() {
        true => Arc::new(doubles.unary::<_, Float64Type>(sign)),
        false => Arc::new(doubles.unary::<_, Int64Type>(|value| sign(value) as i64)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Float64Array, Int64Array};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn is_how_the_number_compares_with_zero(whole in any::<i64>(), double in any::<f64>()) {
            let of_whole = signs(&(Arc::new(Int64Array::from(vec![whole])) as ArrayRef)).unwrap();
            prop_assert_eq!(of_whole.as_primitive::<Int64Type>().value(0), whole.cmp(&0) as i64);
            let of_double = signs(&(Arc::new(Float64Array::from(vec![double])) as ArrayRef)).unwrap();
            let expected = double.partial_cmp(&0.0).map(|order| f64::from(order as i8));
            let found = of_double.as_primitive::<Float64Type>().value(0);
            prop_assert_eq!(Some(found).filter(|found| !found.is_nan()), expected);
        }
    }
}
