//! Makes `length`, `octet_length`, `bit_length` and `ascii` return plain integers, and `array_length` and the like
//! BIGINT.
//!
//! For dictionary-encoded texts, such as names of tasks, DataFusion's own return dictionaries of integers, which unary `-`,
//! `//` and `mod` do not accept; for lists they return unsigned numbers, which unary `-` does not accept either. [`plainly`]
//! wraps one of them: everything is delegated, only such a result is cast.

use std::sync::Arc;

use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::Result;
use datafusion_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::wrapped::of_wrapped;

/// The same function, whose results are neither dictionaries nor unsigned.
pub fn plainly(function: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::from(Plainly { function })
}

fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        DataType::UInt64 => DataType::Int64,
        DataType::List(item) => DataType::List(Arc::new(item.as_ref().clone().with_data_type(plain(item.data_type())))),
        other => other.clone(),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Plainly {
    function: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Plainly {
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let field = self.function.return_field_from_args(args)?;
        let data_type = plain(field.data_type());
        Ok(Arc::new(field.as_ref().clone().with_data_type(data_type)))
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
        Ok(plain(&self.function.return_type(types)?))
    }

    of_wrapped! {
        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
    }
}
