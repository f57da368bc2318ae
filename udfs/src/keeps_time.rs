//! `min`, `max`, `avg`, `median` and the like of a time are times.
//!
//! DataFusion's aggregates drop the metadata that says so. [`keeps_time`] wraps one of them: everything is the wrapped
//! function's, only the result field is marked when the first argument is a time.

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

    // From here on all is the wrapped function's.

    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.function.return_type(types)
    }

    fn is_nullable(&self) -> bool {
        self.function.is_nullable()
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.function.default_value(data_type)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.function.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.function.accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.function.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        self.function.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.function.create_sliding_accumulator(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.function.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        // `min` and `max` are their own reverse, which is then this function and not the wrapped one.
        match self.function.reverse_udf() {
            ReversedUDAF::Identical => ReversedUDAF::Identical,
            _ => ReversedUDAF::NotSupported,
        }
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.function.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.function.supports_within_group_clause()
    }

    // Not `simplify`: what it puts in place of a function would not keep the mark.

    fn is_descending(&self) -> Option<bool> {
        self.function.is_descending()
    }

    fn value_from_stats(&self, statistics: &StatisticsArgs) -> Option<ScalarValue> {
        self.function.value_from_stats(statistics)
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.function.inner().set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }
}
