//! `mod(a, b)`: the operator `%` under the name that SQL has for it.

use arrow::datatypes::DataType;
use datafusion_common::{Result, internal_err, plan_err};
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::{
    ColumnarValue, Documentation, Operator, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion_macros::user_doc;

use crate::checked::quotients::remainders;
use crate::spans::named;

/// `mod(a, b)`: the remainder of a division. Shape: one number of the type of `a % b` per row.
#[user_doc(
    doc_section(label = "Numbers"),
    description = "The remainder of `a` divided by `b`: the same as `a % b`. It has the sign of `a`.\n\n\
        Rows: one per row. Units: none. NULL gives NULL. The type is that of `a % b`.\n\n\
        Errors: a whole number or a decimal divided by 0; doubles give NaN. Cost: O(1).\n\n\
        Source: SQL:2023, which has the function `MOD` and no operator `%`.",
    syntax_example = "mod(a, b)",
    sql_example = "SELECT mod(7, 3) AS positive, mod(-7, 3) AS negative, -7 % 3 AS the_operator",
    argument(name = "a", description = "A number."),
    argument(name = "b", description = "The number that divides.")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Mod {
    signature: Signature,
}

impl Mod {
    /// The function.
    pub fn new() -> Self {
        Mod { signature: named(Signature::user_defined(Volatility::Immutable), &["a", "b"]) }
    }
}

impl Default for Mod {
    fn default() -> Self {
        Self::new()
    }
}

impl ScalarUDFImpl for Mod {
    fn name(&self) -> &str {
        "mod"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [a, b] = types else { return plan_err!("mod takes two numbers, found {} arguments", types.len()) };
        if let Some(other) = [a, b].into_iter().find(|given| !given.is_numeric() && !given.is_null()) {
            return plan_err!("mod takes two numbers, found {other}");
        }
        if a.is_null() && b.is_null() {
            return Ok(vec![DataType::Int64; 2]);
        }
        let (a, b) = BinaryTypeCoercer::new(a, &Operator::Modulo, b).get_input_types()?;
        Ok(vec![a, b])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [a, b] = types else { return internal_err!("mod takes two numbers") };
        BinaryTypeCoercer::new(a, &Operator::Modulo, b).get_result_type()
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [a, b] = ColumnarValue::values_to_arrays(&args.args)?
            .try_into()
            .map_err(|_| datafusion_common::internal_datafusion_err!("mod takes two numbers"))?;
        Ok(ColumnarValue::Array(remainders(&a, &b)?))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.doc()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::compute::kernels::numeric;
    use arrow::datatypes::Int64Type;
    use proptest::prelude::*;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn is_what_is_left_and_has_the_sign_of_the_first(a in any::<i64>(), b in any::<i64>()) {
            prop_assume!(b != 0);
            let column = |value| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
            let left = numeric::rem(&column(a), &column(b)).unwrap();
            let left = left.as_primitive::<Int64Type>().value(0);
            prop_assert!(left.unsigned_abs() < b.unsigned_abs() && (left == 0 || (left < 0) == (a < 0)));
            prop_assert_eq!((i128::from(a) - i128::from(left)) % i128::from(b), 0);
        }
    }
}
