//! Doubles of one value that look alike: no -0.0, and one NaN.
//!
//! Sorting, windows, lists and functions that compare doubles by their bits take -0.0 and 0.0 for two, and the NaN that a processor computes
//! (0.0/0 has a sign bit) for another than the one that is written, below all numbers. In PostgreSQL and DuckDB -0.0 is 0.0, and every NaN
//! the same and above all. So what makes doubles (arithmetic, functions, texts, files) is followed by [`canonical`], and whoever compares
//! them need not ask.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, FieldRef, Float16Type, Float32Type, Float64Type};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::checked::arithmetic::any_of_the_type;

/// The double that stands for all that are equal to it.
#[must_use]
pub fn canonical(value: f64) -> f64 {
    // -0.0 + 0.0 is 0.0.
    if value.is_nan() { f64::NAN } else { value + 0.0 }
}

/// A column whose doubles are [`canonical`]; other columns as they are.
#[must_use]
pub fn canonical_column(column: ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float64 => each::<Float64Type>(column, canonical),
        DataType::Float32 => each::<Float32Type>(column, |value| if value.is_nan() { f32::NAN } else { value + 0.0 }),
        DataType::Float16 => each::<Float16Type>(column, |value| {
            let zero = <Float16Type as ArrowPrimitiveType>::Native::default();
            if value.is_nan() { <Float16Type as ArrowPrimitiveType>::Native::NAN } else { value + zero }
        }),
        _ => column,
    }
}

fn each<T: ArrowPrimitiveType>(column: ArrayRef, of: impl Fn(T::Native) -> T::Native) -> ArrayRef {
    let values: PrimitiveArray<T> = column.as_primitive().clone();
    drop(column);
    // In place, where nobody else has them.
    Arc::new(values.unary_mut(&of).unwrap_or_else(|values| values.unary(&of)))
}

/// The function [`canonical`] of a value, which is called like its argument.
pub fn canonical_function() -> ScalarUDF {
    ScalarUDF::from(Canonical { signature: Signature::any(1, Volatility::Immutable) })
}

/// Whether a function is [`canonical_function`].
pub fn is_canonical(function: &ScalarUDF) -> bool {
    function.inner().downcast_ref::<Canonical>().is_some()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Canonical {
    signature: Signature,
}

impl ScalarUDFImpl for Canonical {
    fn name(&self) -> &str {
        "canonical"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [value] => Ok(value.schema_name().to_string()),
            _ => internal_err!("canonical has one argument"),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().map_or_else(|| internal_err!("canonical has one argument"), Ok)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let [field] = args.arg_fields else { return internal_err!("canonical has one argument") };
        Ok(Arc::clone(field))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.pop() {
            Some(ColumnarValue::Array(column)) => Ok(ColumnarValue::Array(canonical_column(column))),
            Some(ColumnarValue::Scalar(value)) => {
                let column = canonical_column(value.to_array()?);
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&column, 0)?))
            }
            None => internal_err!("canonical has one argument"),
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        // A NaN goes from one end to the other.
        Ok(match inputs.first().map(|argument| argument.sort_properties) {
            Some(SortProperties::Singleton) => SortProperties::Singleton,
            _ => SortProperties::Unordered,
        })
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        any_of_the_type(inputs)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Float32Array, Float64Array, Int64Array};

    use super::*;

    #[test]
    fn equal_doubles_have_equal_bits() {
        let computed = f64::from_bits(f64::NAN.to_bits() | (1 << 63));
        let given: ArrayRef = Arc::new(Float64Array::from(vec![Some(-0.0), Some(computed), None, Some(-1.5)]));
        // Once for itself, once while somebody else has it.
        for column in [Arc::clone(&given), Arc::new(Float64Array::from(vec![-0.0, computed, 0.0, -1.5]))] {
            let plain = canonical_column(column);
            let plain = plain.as_primitive::<Float64Type>();
            assert_eq!(plain.value(0).to_bits(), 0);
            assert_eq!(plain.value(1).to_bits(), f64::NAN.to_bits());
            assert_eq!(plain.value(3), -1.5);
        }
        assert!(given.as_primitive::<Float64Type>().value(0).is_sign_negative() && given.is_null(2));
        let small = canonical_column(Arc::new(Float32Array::from(vec![-0.0, -f32::NAN])));
        let small = small.as_primitive::<Float32Type>();
        assert_eq!((small.value(0).to_bits(), small.value(1).to_bits()), (0, f32::NAN.to_bits()));
        let whole: ArrayRef = Arc::new(Int64Array::from(vec![0]));
        assert_eq!(&canonical_column(Arc::clone(&whole)), &whole);
    }
}
