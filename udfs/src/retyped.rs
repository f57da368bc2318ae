//! Accumulators whose result type is known only when a query is planned: decimals of any precision and scale.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType, Decimal128Type, Decimal256Type};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{Accumulator, EmitTo, GroupsAccumulator};
use std::sync::Arc;

/// The accumulator, its answers of this type.
pub(crate) fn one(accumulator: Box<dyn Accumulator>, data_type: &DataType) -> Box<dyn Accumulator> {
    match data_type {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            Box::new(Decimals { inner: accumulator, precision: *precision, scale: *scale })
        }
        _ => accumulator,
    }
}

/// The accumulator of groups, its answers of this type.
pub(crate) fn groups(accumulator: Box<dyn GroupsAccumulator>, data_type: &DataType) -> Box<dyn GroupsAccumulator> {
    match data_type {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            Box::new(Decimals { inner: accumulator, precision: *precision, scale: *scale })
        }
        _ => accumulator,
    }
}

#[derive(Debug)]
struct Decimals<A: ?Sized> {
    precision: u8,
    scale: i8,
    inner: Box<A>,
}

impl Accumulator for Decimals<dyn Accumulator> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(match self.inner.evaluate()? {
            ScalarValue::Decimal128(value, _, _) => ScalarValue::Decimal128(value, self.precision, self.scale),
            ScalarValue::Decimal256(value, _, _) => ScalarValue::Decimal256(value, self.precision, self.scale),
            other => other,
        })
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

impl GroupsAccumulator for Decimals<dyn GroupsAccumulator> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.inner.update_batch(values, group_indices, opt_filter, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let answers = self.inner.evaluate(emit_to)?;
        match answers.data_type() {
            DataType::Decimal128(..) => {
                let answers = answers.as_primitive::<Decimal128Type>().clone();
                Ok(Arc::new(answers.with_precision_and_scale(self.precision, self.scale)?))
            }
            DataType::Decimal256(..) => {
                let answers = answers.as_primitive::<Decimal256Type>().clone();
                Ok(Arc::new(answers.with_precision_and_scale(self.precision, self.scale)?))
            }
            _ => Ok(answers),
        }
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.inner.merge_batch(values, group_indices, total_num_groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, opt_filter)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }
}
