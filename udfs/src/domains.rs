//! Lets `abs`, `sqrt`, `ln`, `asin` and the like be sort keys, whatever their argument is.
//!
//! DataFusion (55.2) derives the order and the range of their results from the range of the argument. Where that range may lie outside of
//! the domain, or is unknown because a function computes the argument (`abs(a - b)`: arithmetic is a function here), some of them return
//! an error instead of "unknown". Then no order is known of any expression around the call either, and
//! `row_number() OVER (ORDER BY abs(a - b))` is refused because the planner does not recognise its own sort. [`known_or_not`] wraps one of
//! them: everything is delegated, and an error becomes "unknown".

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::Result;
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::wrapped::of_wrapped;

/// Functions of DataFusion that derive an order or a range for their results.
pub const WITH_DOMAINS: [&str; 23] = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "degrees", "exp", "floor",
    "ln", "log2", "log10", "radians", "sin", "sinh", "sqrt", "tan", "tanh",
];

/// The same function; where deriving the order or the range of its results fails, they are unknown.
pub fn known_or_not(function: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::from(KnownOrNot { function })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct KnownOrNot {
    function: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for KnownOrNot {
    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(self.function.output_ordering(inputs).unwrap_or(SortProperties::Unordered))
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        self.function.evaluate_bounds(inputs).or_else(|_| Interval::make_unbounded(&DataType::Null))
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef>;
        fn is_strict(&self) -> bool;
        fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue>;
        fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult>;
        fn propagate_constraints(&self, interval: &Interval, inputs: &[&Interval]) -> Result<Option<Vec<Interval>>>;
        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>>;
        fn documentation(&self) -> Option<&Documentation>;
    }
}
