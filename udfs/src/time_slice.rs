//! `slice_from()` and `slice_to()`: the time slice of the session, for queries whose windows follow `--from` and `--to`.
//!
//! In the table `tasks`, those that touch a slice stay whole, so that what is counted from them begins before it and ends after it;
//! and what idles at the borders of a slice has no task there: `timeline(tasks, from => slice_from(), to => slice_to())` looks at
//! the slice, all of it and alone.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion_macros::user_doc;

use crate::spans::named;
use crate::ticks::time_field;

/// `slice_from()`: the first tick of the slice. Shape: one `BIGINT` time.
#[user_doc(
    doc_section(label = "Time"),
    description = "Where the time slice of the session begins, as `--from` says.\n\n\
        Rows: the same in each. Units: ticks. NULL where the slice is open, as without `--from`. As `from` of `timeline` and \
        others NULL means the first start.\n\n\
        Errors: none. Cost: O(1); it is a constant.",
    syntax_example = "slice_from()",
    sql_example = "SELECT slice_from() AS first, coalesce(slice_to(), s(1)) AS last"
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct SliceFrom {
    signature: Signature,
    ticks: Option<i64>,
}

/// `slice_to()`: the first tick after the slice. Shape: one `BIGINT` time.
#[user_doc(
    doc_section(label = "Time"),
    description = "Where the time slice of the session ends, as `--to` says: the first tick after it.\n\n\
        Rows: the same in each. Units: ticks. NULL where the slice is open, as without `--to`. As `to` of `timeline` and \
        others NULL means the last finish.\n\n\
        Errors: none. Cost: O(1); it is a constant.",
    syntax_example = "slice_to()",
    sql_example = "SELECT slice_from() AS first, coalesce(slice_to(), s(1)) AS last"
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct SliceTo {
    signature: Signature,
    ticks: Option<i64>,
}

macro_rules! end_of_the_slice {
    ($function:ident, $name:literal) => {
        impl $function {
            /// For sessions whose slice has this end; `None` where it is open.
            pub fn new(ticks: Option<i64>) -> $function {
                $function { signature: named(Signature::nullary(Volatility::Immutable), &[]), ticks }
            }
        }

        impl ScalarUDFImpl for $function {
            fn name(&self) -> &str {
                $name
            }

            fn signature(&self) -> &Signature {
                &self.signature
            }

            fn return_type(&self, _: &[DataType]) -> Result<DataType> {
                internal_err!("{}: return_field_from_args() answers", $name)
            }

            fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
                Ok(Arc::new(time_field($name, true)))
            }

            fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
                Ok(ColumnarValue::Scalar(ScalarValue::Int64(self.ticks)))
            }

            fn documentation(&self) -> Option<&Documentation> {
                self.doc()
            }
        }
    };
}

end_of_the_slice!(SliceFrom, "slice_from");
end_of_the_slice!(SliceTo, "slice_to");
