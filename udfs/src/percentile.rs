//! `percentile_cont` and `median` of doubles, in place of DataFusion's, which round the interpolation weight to six
//! decimals.
//!
//! Life of the data: values are kept as doubles, in any order; partitions merge by appending; an answer selects the two
//! values around `p · (n − 1)` and interpolates with the full precision of a double. A window frame keeps its values
//! sorted instead, so that each answer is a look-up and each change shifts part of an array. [`precisely`] wraps
//! DataFusion's function: its name, its documentation and WITHIN GROUP stay.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, Float64Type};
use arrow::record_batch::RecordBatch;
use datafusion_common::{Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Documentation, EmitTo, GroupsAccumulator, Signature,
    Volatility,
};

use crate::canonical::canonical;
use crate::exact_aggregates::coerced;
use crate::wrapped::of_wrapped;

/// The names of DataFusion's functions that [`precisely`] makes precise.
pub const PRECISE: [&str; 2] = ["percentile_cont", "median"];

/// The same aggregate with the full precision of doubles. Shape: numbers → one `DOUBLE`; floats of fewer bits keep their
/// `median`, and that of decimals has one digit more.
pub fn precisely(function: Arc<AggregateUDF>) -> AggregateUDF {
    AggregateUDF::from(Precisely { function, signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Precisely {
    function: Arc<AggregateUDF>,
    signature: Signature,
}

impl Precisely {
    fn is_median(&self) -> bool {
        self.name() == "median"
    }

    fn is_ours(&self, first: &DataType) -> bool {
        first == &DataType::Float64
    }

    fn share(&self, args: &AccumulatorArgs) -> Result<Share> {
        if self.is_median() {
            return Ok(Share { share: 0.5, from_above: false });
        }
        let [_, share] = args.exprs else { return plan_err!("{} takes a share and the numbers", self.name()) };
        let nothing = RecordBatch::new_empty(Arc::new(args.schema.clone()));
        let given = match share.evaluate(&nothing) {
            Ok(ColumnarValue::Scalar(given)) => given,
            _ => return plan_err!("{} takes one share for all rows, and numbers", self.name()),
        };
        match given.cast_to(&DataType::Float64)? {
            ScalarValue::Float64(Some(share)) if (0.0..=1.0).contains(&share) => {
                Ok(Share { share, from_above: args.order_bys.first().is_some_and(|order| order.options.descending) })
            }
            _ => plan_err!("the share of {} is a number from 0 to 1, found {given}", self.name()),
        }
    }
}

impl AggregateUDFImpl for Precisely {
    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let types = coerced(&self.function, types)?;
        Ok(if self.is_median() {
            types.into_iter().map(with_a_digit_more).collect()
        } else {
            vec![DataType::Float64; types.len()]
        })
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        if self.is_median() { self.function.return_type(types) } else { Ok(DataType::Float64) }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if !self.is_ours(args.input_fields[0].data_type()) {
            return self.function.state_fields(args);
        }
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, "values"), list_type(), true))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if !self.is_ours(args.expr_fields[0].data_type()) {
            return self.function.accumulator(args);
        }
        let share = self.share(&args)?;
        Ok(Box::new(Values { share, is_distinct: args.is_distinct, values: Vec::new(), sorted: 0 }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if !self.is_ours(args.expr_fields[0].data_type()) {
            return self.function.create_sliding_accumulator(args);
        }
        let share = self.share(&args)?;
        Ok(Box::new(Values { share, is_distinct: args.is_distinct, values: Vec::new(), sorted: 0 }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        if self.is_ours(args.expr_fields[0].data_type()) {
            return !args.is_distinct;
        }
        self.function.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        if !self.is_ours(args.expr_fields[0].data_type()) {
            return self.function.create_groups_accumulator(args);
        }
        Ok(Box::new(Groups { share: self.share(&args)?, groups: Vec::new(), heap_bytes: 0 }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    of_wrapped! {
        fn supports_within_group_clause(&self) -> bool;
        fn documentation(&self) -> Option<&Documentation>;
    }
}

/// A decimal type in which the middle between two decimals has a place.
fn with_a_digit_more(data_type: DataType) -> DataType {
    match data_type {
        DataType::Decimal128(digits, scale) if digits < DECIMAL128_MAX_PRECISION => {
            DataType::Decimal128(digits + 1, scale + 1)
        }
        DataType::Decimal128(digits, scale) => DataType::Decimal256(digits + 1, scale + 1),
        other => other,
    }
}

/// Which value is asked for: the one that has this share of the others before it, in ascending or descending order.
#[derive(Debug, Clone, Copy)]
struct Share {
    share: f64,
    from_above: bool,
}

impl Share {
    /// The places, counted from the least value, of the two values around the answer, and how far it is from the first to
    /// the second.
    fn places(self, count: usize) -> (usize, usize, f64) {
        let place = self.share * (count - 1) as f64;
        let (before, after, weight) = (place.floor() as usize, place.ceil() as usize, place.fract());
        // For very many values `p · (n − 1)` may be rounded up to n.
        let (before, after) = (before.min(count - 1), after.min(count - 1));
        if self.from_above { (count - 1 - before, count - 1 - after, weight) } else { (before, after, weight) }
    }

    /// The answer of values in any order; changes their order.
    fn of(self, values: &mut [f64]) -> Option<f64> {
        if values.is_empty() {
            return None;
        }
        let (first, second, weight) = self.places(values.len());
        let (low, high) = (first.min(second), first.max(second));
        let (_, &mut at_low, above) = values.select_nth_unstable_by(low, f64::total_cmp);
        let at_high = if high == low { at_low } else { above.iter().copied().min_by(f64::total_cmp).unwrap_or(at_low) };
        Some(if first == low { between(at_low, at_high, weight) } else { between(at_high, at_low, weight) })
    }

    /// The answer of values in ascending order.
    fn of_sorted(self, values: &[f64]) -> Option<f64> {
        if values.is_empty() {
            return None;
        }
        let (first, second, weight) = self.places(values.len());
        Some(between(values[first], values[second], weight))
    }
}

/// The value between two others, at `weight` of the way from the first to the second.
fn between(first: f64, second: f64, weight: f64) -> f64 {
    if weight == 0.0 || first == second {
        return first;
    }
    if !first.is_finite() || !second.is_finite() {
        // Halfway to infinity is infinity, from either side, and between two infinities is nothing.
        return first + second;
    }
    let apart = second - first;
    if apart.is_finite() { first + apart * weight } else { first * (1.0 - weight) + second * weight }
}

fn list_type() -> DataType {
    DataType::LargeList(Arc::new(Field::new_list_field(DataType::Float64, true)))
}

fn lists<'a>(groups: impl Iterator<Item = &'a Vec<f64>> + Clone) -> Result<ArrayRef> {
    let offsets = OffsetBuffer::from_lengths(groups.clone().map(Vec::len));
    let values = Float64Array::from_iter_values(groups.flatten().copied());
    let field = Arc::new(Field::new_list_field(DataType::Float64, true));
    Ok(Arc::new(arrow::array::LargeListArray::try_new(field, offsets, Arc::new(values), None)?))
}

/// The values of one group or of a window frame.
#[derive(Debug)]
struct Values {
    share: Share,
    is_distinct: bool,
    values: Vec<f64>,
    /// How many of the values are sorted; the others came after the last answer.
    sorted: usize,
}

impl Values {
    /// Brings all values in order: a few new ones are put where they belong, many are sorted.
    fn sort(&mut self) {
        let new = self.values.len() - self.sorted;
        if new > 8 {
            self.values.sort_unstable_by(f64::total_cmp);
        } else {
            for index in self.sorted..self.values.len() {
                let value = self.values[index];
                let place = self.values[..index].partition_point(|other| other.total_cmp(&value).is_le());
                self.values[place..=index].rotate_right(1);
            }
        }
        self.sorted = self.values.len();
    }
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.values.extend(values[0].as_primitive::<Float64Type>().iter().flatten().map(canonical));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.sort();
        for value in values[0].as_primitive::<Float64Type>().iter().flatten().map(canonical) {
            match self.values.binary_search_by(|other| other.total_cmp(&value)) {
                Ok(place) => drop(self.values.remove(place)),
                Err(_) => return internal_err!("a value leaves the window that never entered it: {value}"),
            }
        }
        self.sorted = self.values.len();
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.sort();
        if self.is_distinct {
            let mut distinct = self.values.clone();
            distinct.dedup();
            distinct.dedup_by(|a, b| a.is_nan() && b.is_nan());
            return Ok(ScalarValue::Float64(self.share.of_sorted(&distinct)));
        }
        Ok(ScalarValue::Float64(self.share.of_sorted(&self.values)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        if self.is_distinct {
            self.sort();
            self.values.dedup();
        }
        let state = lists(std::iter::once(&self.values))?;
        Ok(vec![ScalarValue::try_from_array(&state, 0)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i64>().iter().flatten() {
            self.values.extend(list.as_primitive::<Float64Type>().values());
        }
        Ok(())
    }
}

/// The values of all groups.
#[derive(Debug)]
struct Groups {
    share: Share,
    groups: Vec<Vec<f64>>,
    heap_bytes: usize,
}

impl Groups {
    fn extend(&mut self, group: usize, values: impl IntoIterator<Item = f64>) {
        let group = &mut self.groups[group];
        let before = group.capacity();
        group.extend(values);
        self.heap_bytes += (group.capacity() - before) * size_of::<f64>();
    }

    fn take(&mut self, emit_to: EmitTo) -> Vec<Vec<f64>> {
        let taken = emit_to.take_needed(&mut self.groups);
        self.heap_bytes -= taken.iter().map(Vec::capacity).sum::<usize>() * size_of::<f64>();
        taken
    }
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.groups.resize_with(total_num_groups, Vec::new);
        let values = values[0].as_primitive::<Float64Type>();
        for (index, &group) in group_indices.iter().enumerate() {
            let passes = opt_filter.is_none_or(|filter| filter.is_valid(index) && filter.value(index));
            if passes && values.is_valid(index) {
                self.extend(group, [canonical(values.value(index))]);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let share = self.share;
        let answers = self.take(emit_to).into_iter().map(|mut values| share.of(&mut values));
        Ok(Arc::new(answers.collect::<Float64Array>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![lists(self.take(emit_to).iter())?])
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.groups.resize_with(total_num_groups, Vec::new);
        for (list, &group) in values[0].as_list::<i64>().iter().zip(group_indices) {
            if let Some(list) = list {
                self.extend(group, list.as_primitive::<Float64Type>().values().iter().copied());
            }
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<Float64Type>();
        let passes =
            |index| opt_filter.is_none_or(|filter: &BooleanArray| filter.is_valid(index) && filter.value(index));
        let of_row = |(index, value): (usize, Option<f64>)| {
            value.filter(|_| passes(index)).map(canonical).into_iter().collect::<Vec<_>>()
        };
        let groups = values.iter().enumerate().map(of_row).collect::<Vec<_>>();
        Ok(vec![lists(groups.iter())?])
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<Vec<f64>>() + self.heap_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// From the definition: sorted, then between the two neighbours.
    fn naive(values: &[f64], share: f64, from_above: bool) -> Option<f64> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        if from_above {
            sorted.reverse();
        }
        let place = share * (sorted.len().checked_sub(1)?) as f64;
        let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        Some(low + (high - low) * (place - place.floor()))
    }

    proptest! {
        #[test]
        fn shares_are_their_definition(
            values in vec(-1e6..1e6f64, 0..40),
            share in prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0f64],
            from_above in any::<bool>(),
            width in 1..8usize,
        ) {
            let asked = Share { share, from_above };
            let close = |answer: Option<f64>, expected: Option<f64>| match (answer, expected) {
                (Some(a), Some(b)) => assert!((a - b).abs() <= 1e-9 * 1e-3, "{a} is not {b}"),
                (a, b) => assert_eq!(a, b),
            };
            close(asked.of(&mut values.clone()), naive(&values, share, from_above));
            let mut frame = Values { share: asked, is_distinct: false, values: Vec::new(), sorted: 0 };
            let at = |row: usize| vec![Arc::new(Float64Array::from(vec![values[row]])) as ArrayRef];
            for row in 0..values.len() {
                frame.update_batch(&at(row)).unwrap();
                if row >= width {
                    frame.retract_batch(&at(row - width)).unwrap();
                }
                let ScalarValue::Float64(answer) = frame.evaluate().unwrap() else { panic!("no double") };
                close(answer, naive(&values[(row + 1).saturating_sub(width)..=row], share, from_above));
            }
        }
    }

    #[test]
    fn the_weight_has_all_its_digits() {
        let of = |values: &[f64], share| Share { share, from_above: false }.of(&mut values.to_vec());
        assert_eq!(of(&[0.0, 1e6], 0.123456789012), Some(123456.789012));
        assert_eq!(of(&[1.0, 2.0, f64::INFINITY], 0.75), Some(f64::INFINITY));
        assert_eq!(of(&[f64::NEG_INFINITY, 2.0, 3.0], 0.25), Some(f64::NEG_INFINITY));
        assert_eq!(of(&[f64::INFINITY, f64::INFINITY], 0.5), Some(f64::INFINITY));
        assert_eq!(of(&[-1.7e308, 1.7e308], 0.5), Some(0.0));
        assert_eq!(of(&[], 0.5), None);
    }
}
