//! `mode(x)`: the value that occurs most often.
//!
//! Life of the data: values are encoded as bytes that sort as the values do, and are counted per group; partitions merge as
//! values with counts; the answer is the value with the greatest count, among equal counts the smallest. A moving window
//! frame also keeps its values ordered by count, so that each answer is one look-up.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, LargeBinaryBuilder, LargeListArray, new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use arrow::row::{RowConverter, SortField};
use datafusion_common::{Result, ScalarValue, internal_err, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion_expr::{
    Accumulator, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};
use datafusion_macros::user_doc;

use crate::spans::named;
use crate::ticks::{is_time, time_metadata};

/// `mode(x)`, an aggregate. Shape: any values → the most frequent one, NULL for none.
#[user_doc(
    doc_section(label = "Numbers"),
    description = "The value that occurs most often; of several, the smallest.\n\n\
        Rows: one per group. `mode() WITHIN GROUP (ORDER BY x)` is the same, whichever way it orders. Units: those of `x`; \
        the mode of times is a time. NULLs are left out; the mode of nothing is NULL. The order of rows does not matter. \
        With DISTINCT it is the smallest value.\n\n\
        Errors: values that have no order. Cost: O(1) a row and about 60 bytes a distinct value of a group; in a moving \
        window frame O(log n).\n\n\
        Source: SQL's ordered-set functions as in PostgreSQL, where the winner of a tie is undefined.",
    syntax_example = "mode(x)",
    sql_example = "SELECT mode(name) AS most_frequent FROM (VALUES ('get'), ('put'), ('put'), (NULL)) AS tasks(name)",
    argument(name = "x", description = "Values of any type that has an order.")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Mode {
    signature: Signature,
}

impl Mode {
    /// The function.
    pub fn new() -> Self {
        Mode { signature: named(Signature::user_defined(Volatility::Immutable), &["x"]) }
    }
}

impl Default for Mode {
    fn default() -> Self {
        Self::new()
    }
}

impl AggregateUDFImpl for Mode {
    fn name(&self) -> &str {
        "mode"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    // Words of a dictionary are compared as words.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Dictionary(_, words)] => Ok(vec![words.as_ref().clone()]),
            [x] if !RowConverter::supports_fields(&[SortField::new(x.clone())]) => {
                plan_err!("mode takes values that have an order, found {x}")
            }
            [x] => Ok(vec![x.clone()]),
            _ => plan_err!("mode takes one argument, found {}", types.len()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Dictionary(_, words)] => Ok(words.as_ref().clone()),
            [x] => Ok(x.clone()),
            _ => plan_err!("mode takes one argument, found {}", types.len()),
        }
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        let types = arguments.iter().map(|argument| argument.data_type().clone()).collect::<Vec<_>>();
        let field = Field::new(self.name(), self.return_type(&types)?, true);
        let is_time = arguments.first().is_some_and(|argument| is_time(argument));
        Ok(Arc::new(if is_time { field.with_metadata(time_metadata()) } else { field }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |name: &str, item: DataType| {
            let list = DataType::LargeList(Arc::new(Field::new_list_field(item, true)));
            Arc::new(Field::new(format_state_name(args.name, name), list, true))
        };
        Ok(vec![list("values", DataType::LargeBinary), list("counts", DataType::Int64)])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(OneMode { rows: Rows::new(args.return_type())?, counts: Counts::new(args.is_distinct) }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let counts = Counts { by_count: Some(BTreeSet::new()), ..Counts::new(args.is_distinct) };
        Ok(Box::new(OneMode { rows: Rows::new(args.return_type())?, counts }))
    }

    fn groups_accumulator_supported(&self, _args: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let rows = Rows::new(args.return_type())?;
        Ok(Box::new(Modes { rows, is_distinct: args.is_distinct, groups: Vec::new(), heap_bytes: 0 }))
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.doc()
    }
}

/// Bytes that sort as a value does.
type Key = Arc<[u8]>;

/// Values of one type as such bytes, and back.
#[derive(Debug)]
struct Rows {
    converter: RowConverter,
    data_type: DataType,
}

impl Rows {
    fn new(data_type: &DataType) -> Result<Rows> {
        Ok(Rows {
            converter: RowConverter::new(vec![SortField::new(data_type.clone())])?,
            data_type: data_type.clone(),
        })
    }

    /// Hands the bytes of every value that is not NULL to `take`, with its row.
    fn each(&self, values: &ArrayRef, mut take: impl FnMut(usize, &[u8]) -> Result<()>) -> Result<()> {
        let rows = self.converter.convert_columns(std::slice::from_ref(values))?;
        let nulls = values.logical_nulls();
        (0..values.len())
            .filter(|&index| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(index)))
            .try_for_each(|index| take(index, rows.row(index).data()))
    }

    /// The values of these bytes; NULL for none.
    fn values(&self, keys: &[Option<Key>]) -> Result<ArrayRef> {
        let parser = self.converter.parser();
        let null = self.converter.convert_columns(&[new_null_array(&self.data_type, 1)])?;
        let row = |key: &Option<Key>| match key {
            Some(key) => parser.parse(key).owned(),
            None => null.row(0).owned(),
        };
        let rows = keys.iter().map(row).collect::<Vec<_>>();
        let columns = self.converter.convert_rows(rows.iter().map(arrow::row::OwnedRow::row))?;
        columns.into_iter().next().map_or_else(|| internal_err!("a row of one column has none"), Ok)
    }
}

/// How often each value is there.
#[derive(Debug)]
struct Counts {
    is_distinct: bool,
    counts: HashMap<Key, i64>,
    /// In window frames: the values by count, the most frequent first and the smallest of them.
    by_count: Option<BTreeSet<(i64, Key)>>,
    key_bytes: usize,
}

impl Counts {
    fn new(is_distinct: bool) -> Counts {
        Counts { is_distinct, counts: HashMap::new(), by_count: None, key_bytes: 0 }
    }

    fn change(&mut self, key: &[u8], by: i64) -> Result<()> {
        let key = match self.counts.get_key_value(key) {
            Some((key, _)) => Arc::clone(key),
            None if by < 0 => return internal_err!("a value leaves the window that never entered it"),
            None => {
                self.key_bytes += key.len() + KEY_BYTES;
                Arc::from(key)
            }
        };
        let count = self.counts.entry(Arc::clone(&key)).or_insert(0);
        let before = *count;
        *count += by;
        let after = *count;
        if after == 0 {
            self.counts.remove(&key);
            self.key_bytes -= key.len() + KEY_BYTES;
        }
        if let Some(by_count) = &mut self.by_count {
            by_count.remove(&(-before, Arc::clone(&key)));
            if after > 0 {
                by_count.insert((-after, key));
            }
        }
        Ok(())
    }

    fn answer(&self) -> Option<Key> {
        if self.is_distinct {
            return self.counts.keys().min().cloned();
        }
        match &self.by_count {
            Some(by_count) => by_count.first().map(|(_, key)| Arc::clone(key)),
            None => {
                let most = self.counts.iter().min_by(|one, other| other.1.cmp(one.1).then_with(|| one.0.cmp(other.0)));
                most.map(|(key, _)| Arc::clone(key))
            }
        }
    }

    fn heap_bytes(&self) -> usize {
        let in_order = self.by_count.as_ref().map_or(0, |by_count| by_count.len() * size_of::<(i64, Key)>() * 3 / 2);
        self.counts.capacity() * (size_of::<(Key, i64)>() + 1) + self.key_bytes + in_order
    }
}

/// What the counters of references before the bytes of a key take.
const KEY_BYTES: usize = 16;

/// The state columns of groups.
fn states<'a>(groups: impl Iterator<Item = &'a Counts> + Clone) -> Vec<ArrayRef> {
    let lengths = groups.clone().map(|counts| counts.counts.len());
    let offsets = OffsetBuffer::from_lengths(lengths);
    let all = groups.flat_map(|counts| counts.counts.iter());
    let mut keys = LargeBinaryBuilder::new();
    all.clone().for_each(|(key, _)| keys.append_value(key));
    let counts = Int64Array::from_iter_values(all.map(|(_, count)| *count));
    let list = |values: ArrayRef| {
        let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        Arc::new(LargeListArray::new(field, offsets.clone(), values, None)) as ArrayRef
    };
    vec![list(Arc::new(keys.finish())), list(Arc::new(counts))]
}

fn merge(states: &[ArrayRef], index: usize, mut take: impl FnMut(&[u8], i64) -> Result<()>) -> Result<()> {
    let (keys, counts) = (states[0].as_list::<i64>(), states[1].as_list::<i64>());
    if keys.is_null(index) {
        return Ok(());
    }
    let (keys, counts) = (keys.value(index), counts.value(index));
    let (keys, counts) = (keys.as_binary::<i64>(), counts.as_primitive::<Int64Type>());
    (0..keys.len()).try_for_each(|index| take(keys.value(index), counts.value(index)))
}

/// The accumulator of one group or of a window frame.
#[derive(Debug)]
struct OneMode {
    rows: Rows,
    counts: Counts,
}

impl Accumulator for OneMode {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.rows.each(&values[0], |_, key| self.counts.change(key, 1))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.rows.each(&values[0], |_, key| self.counts.change(key, -1))
    }

    fn supports_retract_batch(&self) -> bool {
        self.counts.by_count.is_some()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.rows.values(&[self.counts.answer()])?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.heap_bytes() + self.rows.converter.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        states(std::iter::once(&self.counts)).iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        (0..states[0].len()).try_for_each(|index| merge(states, index, |key, count| self.counts.change(key, count)))
    }
}

/// The accumulator of all groups.
#[derive(Debug)]
struct Modes {
    rows: Rows,
    is_distinct: bool,
    groups: Vec<Counts>,
    heap_bytes: usize,
}

impl Modes {
    fn reach(&mut self, count: usize) {
        let is_distinct = self.is_distinct;
        self.groups.resize_with(count, || Counts::new(is_distinct));
    }

    fn take(&mut self, emit_to: EmitTo) -> Vec<Counts> {
        let taken = emit_to.take_needed(&mut self.groups);
        self.heap_bytes -= taken.iter().map(Counts::heap_bytes).sum::<usize>();
        taken
    }
}

/// Changes a group and updates the count of its bytes.
fn change(groups: &mut [Counts], heap_bytes: &mut usize, group: usize, key: &[u8], by: i64) -> Result<()> {
    let counts = &mut groups[group];
    let before = counts.heap_bytes();
    counts.change(key, by)?;
    *heap_bytes = *heap_bytes + counts.heap_bytes() - before;
    Ok(())
}

impl GroupsAccumulator for Modes {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.reach(total_num_groups);
        let (groups, heap_bytes) = (&mut self.groups, &mut self.heap_bytes);
        self.rows.each(&values[0], |index, key| {
            let passes = opt_filter.is_none_or(|filter| filter.is_valid(index) && filter.value(index));
            if passes { change(groups, heap_bytes, group_indices[index], key, 1) } else { Ok(()) }
        })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let keys = self.take(emit_to).iter().map(Counts::answer).collect::<Vec<_>>();
        self.rows.values(&keys)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(states(self.take(emit_to).iter()))
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.reach(total_num_groups);
        let (groups, heap_bytes) = (&mut self.groups, &mut self.heap_bytes);
        group_indices.iter().enumerate().try_for_each(|(index, &group)| {
            merge(values, index, |key, count| change(groups, heap_bytes, group, key, count))
        })
    }

    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let mut groups = (0..values[0].len()).map(|_| Counts::new(self.is_distinct)).collect::<Vec<_>>();
        self.rows.each(&values[0], |index, key| {
            let passes = opt_filter.is_none_or(|filter| filter.is_valid(index) && filter.value(index));
            if passes { groups[index].change(key, 1) } else { Ok(()) }
        })?;
        Ok(states(groups.iter()))
    }

    fn size(&self) -> usize {
        self.groups.capacity() * size_of::<Counts>() + self.heap_bytes + self.rows.converter.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn naive(values: &[Option<i64>]) -> Option<i64> {
        let count = |value: i64| values.iter().filter(|other| **other == Some(value)).count();
        values.iter().flatten().copied().max_by_key(|&value| (count(value), std::cmp::Reverse(value)))
    }

    fn one(moves: bool) -> OneMode {
        let counts = Counts { by_count: moves.then(BTreeSet::new), ..Counts::new(false) };
        OneMode { rows: Rows::new(&DataType::Int64).unwrap(), counts }
    }

    proptest! {
        #[test]
        fn is_the_most_frequent_and_the_smallest_of_them(
            values in vec(prop::option::weighted(0.9, -3..3i64), 0..20),
            cut in 0..20usize,
            width in 1..6usize,
        ) {
            let column = |values: &[Option<i64>]| Arc::new(values.iter().copied().collect::<Int64Array>()) as ArrayRef;
            let (first, second) = values.split_at(cut.min(values.len()));
            let mut last = one(false);
            for part in [first, second] {
                let mut partial = one(false);
                partial.update_batch(&[column(part)]).unwrap();
                let states = partial.state().unwrap().iter().map(|state| state.to_array().unwrap()).collect::<Vec<_>>();
                last.merge_batch(&states).unwrap();
            }
            prop_assert_eq!(last.evaluate().unwrap(), ScalarValue::Int64(naive(&values)));

            let mut frame = one(true);
            for row in 0..values.len() {
                frame.update_batch(&[column(&values[row..=row])]).unwrap();
                if row >= width {
                    frame.retract_batch(&[column(&values[row - width..=row - width])]).unwrap();
                }
                let expected = naive(&values[(row + 1).saturating_sub(width)..=row]);
                prop_assert_eq!(frame.evaluate().unwrap(), ScalarValue::Int64(expected));
            }

            let rows = Rows::new(&DataType::Int64).unwrap();
            let mut groups = Modes { rows, is_distinct: false, groups: Vec::new(), heap_bytes: 0 };
            let of_group = (0..values.len()).map(|row| row % 3).collect::<Vec<_>>();
            let states = groups.convert_to_state(&[column(&values)], None).unwrap();
            groups.merge_batch(&states, &of_group, 3).unwrap();
            let expected =
                (0..3).map(|group| naive(&values.iter().skip(group).step_by(3).copied().collect::<Vec<_>>()));
            let expected: ArrayRef = Arc::new(expected.collect::<Int64Array>());
            prop_assert_eq!(&groups.evaluate(EmitTo::All).unwrap(), &expected);
            prop_assert_eq!(groups.heap_bytes, 0);
        }
    }
}
