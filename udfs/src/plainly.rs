//! `length`, `octet_length`, `bit_length` and `ascii` answer integers.
//!
//! For texts in dictionaries, as names of tasks are, DataFusion's own answer dictionaries of integers, which unary `-`, `//`
//! and `mod` do not take. [`plainly`] wraps one of them: everything is the wrapped function's, only such an answer is
//! unpacked.

use std::sync::Arc;

use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::Result;
use datafusion_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::wrapped::of_wrapped;

/// The same function, whose answers are no dictionaries.
pub fn plainly(function: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::from(Plainly { function })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Plainly {
    function: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Plainly {
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = self.function.return_field_from_args(args)?;
        Ok(match field.data_type() {
            DataType::Dictionary(_, values) => Arc::new(field.as_ref().clone().with_data_type(values.as_ref().clone())),
            _ => field,
        })
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let plain = args.return_field.data_type().clone();
        let arg_fields = &args.arg_fields;
        let scalar_arguments = vec![None; arg_fields.len()];
        let own = ReturnFieldArgs { arg_fields, scalar_arguments: &scalar_arguments };
        args.return_field = self.function.return_field_from_args(own)?;
        match self.function.invoke_with_args(args)? {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(cast(&array, &plain)?)),
            ColumnarValue::Scalar(scalar) => Ok(ColumnarValue::Scalar(scalar.cast_to(&plain)?)),
        }
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match self.function.return_type(types)? {
            DataType::Dictionary(_, values) => *values,
            plain => plain,
        })
    }

    of_wrapped! {
        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
    }
}
