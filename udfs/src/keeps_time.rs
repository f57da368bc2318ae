//! Marks the results of `min`, `max`, `avg`, `median` and the like as times when their argument is a time.
//!
//! DataFusion's aggregates drop the metadata that says so. [`keeps_time`] wraps one of them: everything is delegated,
//! only the result field is marked when the first argument is a time.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, SetMonotonicity,
    Signature, StatisticsArgs,
};

use crate::ticks::{TIME_METADATA, is_time, time_metadata};
use crate::wrapped::of_wrapped;

/// The same aggregate, whose result is a time when its first argument is one: of the argument's type, or a double.
pub fn keeps_time(function: Arc<AggregateUDF>) -> AggregateUDF {
    AggregateUDF::from(KeepsTime { function })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct KeepsTime {
    function: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for KeepsTime {
    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        let field = self.function.return_field(arguments)?;
        // Doubles go by the metadata alone, which casts keep: the planner casts arguments before it asks a second time.
        let keeps = |argument: &FieldRef| match field.data_type() {
            DataType::Float64 => argument.metadata().contains_key(TIME_METADATA),
            data_type => is_time(argument) && data_type == argument.data_type(),
        };
        if arguments.first().is_some_and(keeps) {
            return Ok(Arc::new(field.as_ref().clone().with_metadata(time_metadata())));
        }
        Ok(field)
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>>;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn is_nullable(&self) -> bool;
        fn default_value(&self, data_type: &DataType) -> Result<ScalarValue>;
        fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>>;
        fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>>;
        fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool;
        fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>>;
        fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>>;
        fn order_sensitivity(&self) -> AggregateOrderSensitivity;
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        // `min` and `max` are their own reverse, which is then this function and not the wrapped one.
        match self.function.reverse_udf() {
            ReversedUDAF::Identical => ReversedUDAF::Identical,
            _ => ReversedUDAF::NotSupported,
        }
    }

    of_wrapped! {
        fn supports_null_handling_clause(&self) -> bool;
        fn supports_within_group_clause(&self) -> bool;
    }

    // Not `simplify`: what it puts in place of a function would not keep the mark.

    of_wrapped! {
        fn is_descending(&self) -> Option<bool>;
        fn value_from_stats(&self, statistics: &StatisticsArgs) -> Option<ScalarValue>;
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.function.inner().set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }
}
