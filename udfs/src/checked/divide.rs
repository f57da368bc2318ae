//! `integer_divide(a, b)`: what `a // b` does.
//!
//! DataFusion parses the operator but cannot compute it (55.2: "Operator DIV is not yet supported"), so the engine's
//! dialect turns it into a call of this function. Its schema name is that of the operator, and so result columns are named
//! after the operator.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::kernels::{arity, numeric};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef, Float32Type, Float64Type};
use arrow::error::ArrowError;
use datafusion_common::{Result, ScalarValue, exec_err, internal_err, plan_err};
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::{
    ColumnarValue, Documentation, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion_macros::user_doc;

use crate::spans::named;
use crate::ticks::{is_time, time_metadata};

/// `integer_divide(a, b)`: the quotient without its fraction. Shape: one number of the arguments' common type per row.
#[user_doc(
    doc_section(label = "Checked arithmetic"),
    description = "Quotient of two numbers without its fraction, which is what `a // b` does: `-5 // 2` is -2. \
        `a // b * b + a % b` is `a`.\n\n\
        Rows: one per row, of the type in which both arguments meet; decimals give a decimal without places. Units: a time \
        divided by a number is a time, a time divided by a time is a number. NULL gives NULL.\n\n\
        Errors: a division of whole numbers or decimals by zero, as of `/` (doubles give infinity or NaN, as there); the \
        least integer divided by -1, which does not fit. Cost: O(1).\n\n\
        Source: the operator `//` of DuckDB, which truncates whole numbers (and divides doubles as `/` does).",
    syntax_example = "integer_divide(a, b)",
    sql_example = "SELECT integer_divide(-5, 2) AS the_function, -5 // 2 AS the_operator",
    argument(name = "a", description = "A number."),
    argument(name = "b", description = "A number.")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct IntegerDivide {
    signature: Signature,
}

impl IntegerDivide {
    /// The function.
    pub fn new() -> Self {
        IntegerDivide { signature: named(Signature::user_defined(Volatility::Immutable), &["a", "b"]) }
    }
}

impl Default for IntegerDivide {
    fn default() -> Self {
        Self::new()
    }
}

impl ScalarUDFImpl for IntegerDivide {
    fn name(&self) -> &str {
        "integer_divide"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [left, right] => Ok(format!("{} // {}", left.schema_name(), right.schema_name())),
            _ => internal_err!("integer_divide takes two arguments"),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [left, right] = types else {
            return plan_err!("integer_divide takes two numbers, found {} arguments", types.len());
        };
        if let Some(other) = types.iter().find(|given| !given.is_numeric() && **given != DataType::Null) {
            return plan_err!("`//` takes numbers, found {other}");
        }
        if types.iter().all(DataType::is_null) {
            return Ok(vec![DataType::Int64; 2]);
        }
        // Decimals of one scale, in which the quotient of the unscaled numbers is that of the numbers.
        let scale = |given: &DataType| match given {
            DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
                Some(*scale)
            }
            _ => None,
        };
        let whole = |given: &DataType| given.is_integer().then_some(0);
        if types.iter().any(|given| scale(given).is_some())
            && let Some((left, right)) = scale(left).or_else(|| whole(left)).zip(scale(right).or_else(|| whole(right)))
        {
            return Ok(vec![DataType::Decimal128(DECIMAL128_MAX_PRECISION, left.max(right)); 2]);
        }
        // `%` wants both sides in one type.
        let (left, right) = BinaryTypeCoercer::new(left, &Operator::Modulo, right).get_input_types()?;
        Ok(vec![left, right])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Decimal128(..), _] => Ok(DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0)),
            [left, _] => Ok(left.clone()),
            _ => internal_err!("integer_divide takes two arguments"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let [left, right] = args.arg_fields else { return internal_err!("integer_divide takes two arguments") };
        let data_type = self.return_type(&[left.data_type().clone(), right.data_type().clone()])?;
        let is_time = is_time(left) && !is_time(right) && data_type == DataType::Int64;
        let field = Field::new(self.name(), data_type, left.is_nullable() || right.is_nullable());
        Ok(Arc::new(if is_time { field.with_metadata(time_metadata()) } else { field }))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = arrays.as_slice() else { return internal_err!("integer_divide takes two arguments") };
        let quotients = match divide(left, right) {
            Err(ArrowError::ArithmeticOverflow(_)) => {
                return exec_err!("integer overflow in a // b: the least number divided by -1");
            }
            other => other?,
        };
        match scalar {
            true => ScalarValue::try_from_array(&quotients, 0).map(ColumnarValue::Scalar),
            false => Ok(ColumnarValue::Array(quotients)),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.doc()
    }
}

fn divide(left: &ArrayRef, right: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    match left.data_type() {
        DataType::Decimal128(..) => {
            let (left, right) = (left.as_primitive::<Decimal128Type>(), right.as_primitive::<Decimal128Type>());
            let quotients = arity::try_binary::<_, _, _, Decimal128Type>(left, right, |a, b| match b {
                0 => Err(ArrowError::DivideByZero),
                _ => a.checked_div(b).ok_or_else(|| ArrowError::ArithmeticOverflow(format!("{a} // {b}"))),
            })?;
            Ok(Arc::new(quotients.with_precision_and_scale(DECIMAL128_MAX_PRECISION, 0)?))
        }
        DataType::Float64 => {
            let quotients = numeric::div(left, right)?;
            Ok(Arc::new(quotients.as_primitive::<Float64Type>().unary::<_, Float64Type>(f64::trunc)))
        }
        DataType::Float32 => {
            let quotients = numeric::div(left, right)?;
            Ok(Arc::new(quotients.as_primitive::<Float32Type>().unary::<_, Float32Type>(f32::trunc)))
        }
        _ => numeric::div(left, right),
    }
}
