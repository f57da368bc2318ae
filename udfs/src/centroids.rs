//! `approx_percentile_cont(x, 0.5, centroids)`: how many centroids a query may ask for.
//!
//! DataFusion makes room for all of them before there is a row, whatever the number: a thousand millions are 16 GB, and 2⁶³ - 1 a panic.
//! [`within_centroids`] wraps the function: everything is the wrapped function's, only a larger number than `MOST` is an error.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, exec_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, ReversedUDAF, Signature};
use datafusion_physical_expr::expressions::Literal;

use crate::wrapped::of_wrapped;

/// Centroids are 16 bytes each, for every group: so many err by a ten-thousandth of the rows.
const MOST: u64 = 10_000;

/// The same aggregate with a bound on its last argument, the number of centroids, where there are more than `without` arguments.
pub fn within_centroids(function: Arc<AggregateUDF>, without: usize) -> AggregateUDF {
    AggregateUDF::from(WithinCentroids { function, without })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WithinCentroids {
    function: Arc<AggregateUDF>,
    without: usize,
}

impl AggregateUDFImpl for WithinCentroids {
    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if let Some(centroids) = args.exprs.get(self.without)
            && let Some(literal) = centroids.downcast_ref::<Literal>()
            && let Ok(number) = literal.value().to_string().parse::<u64>()
            && number > MOST
        {
            return exec_err!("{} takes {MOST} centroids at most, and {number} are asked for", self.name());
        }
        self.function.accumulator(args)
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>>;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef>;
        fn is_nullable(&self) -> bool;
        fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>>;
        fn supports_null_handling_clause(&self) -> bool;
        fn supports_within_group_clause(&self) -> bool;
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }
}
