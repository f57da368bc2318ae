//! `a || b` on texts as a function, so that its results can be bounded as those of `concat` are.

use std::sync::Arc;

use arrow::compute::kernels::concat_elements::concat_elements_dyn;
use arrow::datatypes::DataType;
use datafusion_common::{Result, internal_err};
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

/// What `a || b` is for two texts of one type: NULL when either is. Nobody writes it: the engine puts it where a query says
/// `a || b`. Its schema name is that of the operator, so plans keep their columns.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ConcatOperator {
    signature: Signature,
}

impl ConcatOperator {
    /// The function.
    pub fn new() -> Self {
        ConcatOperator { signature: Signature::user_defined(Volatility::Immutable) }
    }

    /// Whether `a || b` of two values of this type is what it computes.
    pub fn takes(data_type: &DataType) -> bool {
        matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
    }
}

impl Default for ConcatOperator {
    fn default() -> Self {
        Self::new()
    }
}

impl ScalarUDFImpl for ConcatOperator {
    fn name(&self) -> &str {
        "||"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [left, right] => Ok(format!("{} || {}", left.schema_name(), right.schema_name())),
            _ => internal_err!("`||` takes two texts"),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [left, right] if left == right && Self::takes(left) => Ok(left.clone()),
            _ => internal_err!("`||` takes two texts of one type"),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = arrays.as_slice() else { return internal_err!("`||` takes two texts") };
        let answer = concat_elements_dyn(left.as_ref(), right.as_ref())?;
        if constant {
            return Ok(ColumnarValue::Scalar(datafusion_common::ScalarValue::try_from_array(&answer, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::clone(&answer)))
    }
}
