//! Makes `bit_and`, `bit_or` and `bit_xor` answer over frames whose beginning moves.
//!
//! DataFusion's (55.2) `bit_and` and `bit_or` cannot take a row back, so that such a frame is refused; `bit_xor` takes it back and forgets
//! that none is left: it answers 0 for a frame of NULLs. [`over_frames`] wraps one of them: only the accumulator of moving frames is ours.
//! It counts for each bit in how many rows it is set. With DISTINCT it counts how often each value is there.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Int64Type, UInt64Type};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, Signature,
};

use crate::wrapped::of_wrapped;

/// The names of DataFusion's functions that [`over_frames`] wraps.
pub const BITS: [&str; 3] = ["bit_and", "bit_or", "bit_xor"];

/// The same aggregate, which answers over moving frames.
pub fn over_frames(function: Arc<AggregateUDF>) -> AggregateUDF {
    AggregateUDF::from(OverFrames { function })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OverFrames {
    function: Arc<AggregateUDF>,
}

impl AggregateUDFImpl for OverFrames {
    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let operation = match self.function.name() {
            "bit_and" => Operation::And,
            "bit_or" => Operation::Or,
            "bit_xor" => Operation::Xor,
            other => return internal_err!("{other} is not of bits"),
        };
        let data_type = args.return_field.data_type().clone();
        let distinct = args.is_distinct.then(HashMap::new);
        Ok(Box::new(Moving { operation, data_type, rows: 0, set: [0; 64], distinct }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
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
        fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>>;
        fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>>;
        fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>>;
        fn order_sensitivity(&self) -> AggregateOrderSensitivity;
        fn documentation(&self) -> Option<&Documentation>;
    }

    /// With DISTINCT, DataFusion (55.2) promises one whose state has another type.
    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct && self.function.groups_accumulator_supported(args)
    }
}

#[derive(Debug, Clone, Copy)]
enum Operation {
    And,
    Or,
    Xor,
}

/// The rows of a frame that are not NULL.
#[derive(Debug)]
struct Moving {
    operation: Operation,
    data_type: DataType,
    rows: u64,
    /// In how many of them each bit is set.
    set: [u64; 64],
    /// With DISTINCT, how often each value is there; it counts once.
    distinct: Option<HashMap<u64, u64>>,
}

impl Moving {
    fn add(&mut self, bits: u64) {
        if let Some(values) = &mut self.distinct {
            let times = values.entry(bits).or_default();
            *times += 1;
            if *times > 1 {
                return;
            }
        }
        self.rows += 1;
        self.set.iter_mut().enumerate().for_each(|(bit, set)| *set += bits >> bit & 1);
    }

    fn remove(&mut self, bits: u64) {
        if let Some(values) = &mut self.distinct
            && let Some(times) = values.get_mut(&bits)
        {
            *times -= 1;
            if *times > 0 {
                return;
            }
            values.remove(&bits);
        }
        self.rows -= 1;
        self.set.iter_mut().enumerate().for_each(|(bit, set)| *set -= bits >> bit & 1);
    }

    fn answer(&self) -> Option<u64> {
        let is_set = |set: u64| match self.operation {
            Operation::And => set == self.rows,
            Operation::Or => set > 0,
            Operation::Xor => set % 2 == 1,
        };
        (self.rows > 0)
            .then(|| self.set.iter().enumerate().fold(0, |bits, (bit, set)| bits | u64::from(is_set(*set)) << bit))
    }
}

/// The values that are not NULL, of any type of integers; a sign fills the bits above.
fn bits(values: &[ArrayRef]) -> Result<Vec<u64>> {
    let [values] = values else { return internal_err!("bits of {} columns", values.len()) };
    Ok(match values.data_type() {
        DataType::UInt64 => values.as_primitive::<UInt64Type>().iter().flatten().collect(),
        _ => {
            let values = cast(values, &DataType::Int64)?;
            values.as_primitive::<Int64Type>().iter().flatten().map(i64::cast_unsigned).collect()
        }
    })
}

impl Accumulator for Moving {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        bits(values)?.into_iter().for_each(|bits| self.add(bits));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        bits(values)?.into_iter().for_each(|bits| self.remove(bits));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match (self.answer(), &self.data_type) {
            (None, data_type) => ScalarValue::try_from(data_type),
            (Some(bits), DataType::UInt64) => Ok(ScalarValue::UInt64(Some(bits))),
            (Some(bits), data_type) => ScalarValue::Int64(Some(bits.cast_signed())).cast_to(data_type),
        }
    }

    fn size(&self) -> usize {
        let of_values = self.distinct.as_ref().map_or(0, |values| values.capacity() * size_of::<(u64, u64)>());
        size_of_val(self) + of_values
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("the rows of a window are not merged")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("the rows of a window are not merged")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int32Array;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    fn naive(operation: Operation, values: &[Option<i32>], is_distinct: bool) -> Option<i32> {
        let mut values: Vec<i32> = values.iter().flatten().copied().collect();
        if is_distinct {
            values.sort_unstable();
            values.dedup();
        }
        values.into_iter().reduce(|one, other| match operation {
            Operation::And => one & other,
            Operation::Or => one | other,
            Operation::Xor => one ^ other,
        })
    }

    proptest! {
        #[test]
        fn equals_the_fold_of_each_frame(values in vec(option::of(-9..9i32), 1..20), width in 1..5usize, is_distinct: bool) {
            for operation in [Operation::And, Operation::Or, Operation::Xor] {
                let distinct = is_distinct.then(HashMap::new);
                let mut moving = Moving { operation, data_type: DataType::Int32, rows: 0, set: [0; 64], distinct };
                let one = |at: usize| -> [ArrayRef; 1] { [Arc::new(Int32Array::from(vec![values[at]]))] };
                for at in 0..values.len() {
                    moving.update_batch(&one(at)).unwrap();
                    if at >= width {
                        moving.retract_batch(&one(at - width)).unwrap();
                    }
                    let frame = &values[(at + 1).saturating_sub(width)..=at];
                    prop_assert_eq!(moving.evaluate().unwrap(), ScalarValue::Int32(naive(operation, frame, is_distinct)));
                }
            }
        }
    }
}
