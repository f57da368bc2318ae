//! Makes `array_agg` and `string_agg` honour the order of their rows.
//!
//! Where two aggregates or windows of one query require opposite orders, DataFusion (55.2) sorts once and reverses one of them: that one
//! reads the rows in the other's order and has to reverse its result. Two cases go wrong. With DISTINCT the accumulator sorts by itself and
//! does not reverse, so that `array_agg(DISTINCT s ORDER BY s DESC)` ascends beside `array_agg(s ORDER BY s)`. In a window nothing reverses
//! the result, so that `array_agg(a) OVER (ORDER BY a)` descends beside `rank() OVER (ORDER BY a DESC)`.
//!
//! [`in_its_order`] wraps such a function so that it is never reversed. Both functions sort by themselves, so that one query may use any
//! number of orders, which DataFusion refuses for `string_agg`. Everything else is delegated to the wrapped function.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, Signature,
};

use crate::wrapped::of_wrapped;

/// The same aggregate, whose values follow the order that is asked for.
pub fn in_its_order(function: Arc<AggregateUDF>) -> AggregateUDF {
    AggregateUDF::from(InItsOrder { function })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct InItsOrder {
    function: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for InItsOrder {
    fn with_beneficial_ordering(
        self: Arc<Self>,
        beneficial_ordering: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let ordered = self.function.as_ref().clone().with_beneficial_ordering(beneficial_ordering)?;
        // A function that makes no use of an order sorts as it did.
        let function = ordered.map_or_else(|| Arc::clone(&self.function), Arc::new);
        Ok(Some(Arc::new(InItsOrder { function })))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::SoftRequirement
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>>;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef>;
        fn is_nullable(&self) -> bool;
        fn default_value(&self, data_type: &DataType) -> Result<ScalarValue>;
        fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>>;
        fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>>;
        fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool;
        fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>>;
        fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>>;
        fn supports_null_handling_clause(&self) -> bool;
        fn supports_within_group_clause(&self) -> bool;
        fn documentation(&self) -> Option<&Documentation>;
    }
}
