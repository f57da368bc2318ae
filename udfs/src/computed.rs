//! Keeps the optimizer from inverting a function in a comparison.
//!
//! DataFusion (55.2) turns `date_part('year', ts) > 1` into a comparison of `ts` with the first moment of a year. A year outside of what
//! 64 bits of nanoseconds can hold (before 1678, after 2261) becomes NULL on the way, and so does the comparison of every row. [`computed`]
//! wraps such a function: everything is delegated but the methods by which the optimizer inverts it.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::Result;
use datafusion_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::wrapped::of_wrapped;

/// The same function, which the optimizer cannot invert: it is computed for each row.
pub fn computed(function: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::from(Computed { function })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Computed {
    function: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Computed {
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.function.return_field_from_args(args)
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue>;
        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
    }
}
