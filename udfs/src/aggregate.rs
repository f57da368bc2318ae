//! What every aggregate of this crate shares: from a computation over rows to DataFusion's accumulators.
//!
//! Life of the data: arrow columns → [`Tally::row`] (one checked row, NULL rules applied) → [`Tally::add`] → either
//! [`Mergeable::states`], which travel from a partition to the final aggregation, or [`Tally::answer`]. A function writes
//! these few methods once; [`One`], [`Groups`] and [`Moving`] turn them into the accumulators for a single group, for
//! many groups, and for a moving window frame, from which rows are also removed. [`Distinct`] wraps a tally for
//! `f(DISTINCT …)`.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, Int64Array, Int64Builder, LargeListArray,
    PrimitiveArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::function::StateFieldsArgs;
use datafusion_expr::utils::format_state_name;
use datafusion_expr::{Accumulator, EmitTo, GroupsAccumulator};

/// The methods of an `AggregateUDFImpl` whose rows are counted by one tally, in moving window frames by another, in any
/// order; with DISTINCT each row once. The documentation of the type comes from `user_doc`. Paths are absolute, so that a
/// file needs no imports for it.
macro_rules! by_tally {
    ($tally:ty, $frame:ty) => {
        fn state_fields(
            &self,
            args: datafusion_expr::function::StateFieldsArgs,
        ) -> datafusion_common::Result<Vec<arrow::datatypes::FieldRef>> {
            Ok(match args.is_distinct {
                true => $crate::aggregate::state_fields::<$crate::aggregate::Distinct<$tally>>(&args),
                false => $crate::aggregate::state_fields::<$tally>(&args),
            })
        }

        fn accumulator(
            &self,
            args: datafusion_expr::function::AccumulatorArgs,
        ) -> datafusion_common::Result<Box<dyn datafusion_expr::Accumulator>> {
            Ok(match args.is_distinct {
                true => Box::new($crate::aggregate::One::<$crate::aggregate::Distinct<$tally>>::default()),
                false => Box::new($crate::aggregate::One::<$tally>::default()),
            })
        }

        fn groups_accumulator_supported(&self, _args: datafusion_expr::function::AccumulatorArgs) -> bool {
            true
        }

        fn create_groups_accumulator(
            &self,
            args: datafusion_expr::function::AccumulatorArgs,
        ) -> datafusion_common::Result<Box<dyn datafusion_expr::GroupsAccumulator>> {
            Ok(match args.is_distinct {
                true => Box::new($crate::aggregate::Groups::<$crate::aggregate::Distinct<$tally>>::default()),
                false => Box::new($crate::aggregate::Groups::<$tally>::default()),
            })
        }

        fn create_sliding_accumulator(
            &self,
            args: datafusion_expr::function::AccumulatorArgs,
        ) -> datafusion_common::Result<Box<dyn datafusion_expr::Accumulator>> {
            Ok(match args.is_distinct {
                true => Box::new($crate::aggregate::Moving::<$crate::aggregate::Distinct<$frame>>::default()),
                false => Box::new($crate::aggregate::Moving::<$frame>::default()),
            })
        }

        fn order_sensitivity(&self) -> datafusion_expr::utils::AggregateOrderSensitivity {
            datafusion_expr::utils::AggregateOrderSensitivity::Insensitive
        }

        fn reverse_expr(&self) -> datafusion_expr::ReversedUDAF {
            datafusion_expr::ReversedUDAF::Identical
        }

        fn documentation(&self) -> Option<&datafusion_expr::Documentation> {
            self.doc()
        }
    };
}
pub(crate) use by_tally;

/// The native type of an answer.
pub(crate) type Native<T> = <<T as Tally>::Answer as ArrowPrimitiveType>::Native;

/// What is known about one group, grown row by row in any order.
pub(crate) trait Tally: Debug + Default + Send + Sync + 'static {
    /// The typed argument columns of one batch.
    type Columns<'a>: Copy;
    /// What one row says.
    type Row: Row;
    /// The type of the result.
    type Answer: ArrowPrimitiveType;

    /// The argument columns, typed.
    fn columns(values: &[ArrayRef]) -> Result<Self::Columns<'_>>;

    /// The row at `index`, or nothing when NULLs or emptiness leave it out.
    fn row(columns: Self::Columns<'_>, index: usize) -> Result<Option<Self::Row>>;

    /// Counts a row.
    fn add(&mut self, row: Self::Row) -> Result<()>;

    /// The answer for the rows so far. May be asked again after more rows: running windows do.
    fn answer(&mut self) -> Result<Option<Native<Self>>>;

    /// Bytes behind the value itself. Asked around every row, so it must be a few additions.
    fn heap_bytes(&self) -> usize;
}

/// A tally that can be split: partitions count separately and merge.
pub(crate) trait Mergeable: Tally {
    /// Names and types of the state columns in which a tally is passed on to the final aggregation.
    fn state_columns() -> Vec<(&'static str, DataType)>;

    /// The state columns, one row per tally. The tallies are used up.
    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>>;

    /// Counts what row `index` of the state columns counted.
    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()>;
}

/// A tally from which a row can be taken away again.
pub(crate) trait Retractable: Tally {
    /// Takes back a row that was added before.
    fn remove(&mut self, row: Self::Row) -> Result<()>;
}

/// A row as a key (of DISTINCT) and as plain words (to travel).
pub(crate) trait Row: Copy + Eq + Hash + Debug + Send + Sync {
    /// The number of words.
    const WORDS: usize;

    /// The row as words, `WORDS` of them.
    fn to_words(self) -> Vec<Option<i64>>;

    /// The row of these words.
    fn from_words(words: &[Option<i64>]) -> Self;
}

/// The state fields of an aggregate whose partial results are tallies of type `T`.
pub(crate) fn state_fields<T: Mergeable>(args: &StateFieldsArgs) -> Vec<FieldRef> {
    let field = |(name, data_type)| Arc::new(Field::new(format_state_name(args.name, name), data_type, true));
    T::state_columns().into_iter().map(field).collect()
}

/// The accumulators of a tally, for functions that choose one by the types of their arguments.
pub(crate) struct Accumulators {
    pub(crate) state_fields: fn(&StateFieldsArgs) -> Vec<FieldRef>,
    pub(crate) one: fn() -> Box<dyn Accumulator>,
    pub(crate) groups: fn() -> Box<dyn GroupsAccumulator>,
    pub(crate) moving: fn() -> Box<dyn Accumulator>,
}

impl Accumulators {
    /// Those of a tally, or of its distinct rows.
    pub(crate) fn of<T: Mergeable + Retractable>(is_distinct: bool) -> Self {
        if is_distinct { Self::plain::<Distinct<T>>() } else { Self::plain::<T>() }
    }

    fn plain<T: Mergeable + Retractable>() -> Self {
        Accumulators {
            state_fields: state_fields::<T>,
            one: || Box::new(One::<T>::default()),
            groups: || Box::new(Groups::<T>::default()),
            moving: || Box::new(Moving::<T>::default()),
        }
    }
}

/// The accumulator of a single group.
#[derive(Debug, Default)]
pub(crate) struct One<T>(T);

impl<T: Mergeable> Accumulator for One<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let columns = T::columns(values)?;
        for index in 0..values[0].len() {
            if let Some(row) = T::row(columns, index)? {
                self.0.add(row)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        scalar_answer(&mut self.0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.heap_bytes()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let states = T::states(std::slice::from_mut(&mut self.0))?;
        states.iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for index in 0..states[0].len() {
            self.0.merge(states, index)?;
        }
        Ok(())
    }
}

/// The accumulator of a window frame that moves: rows come and go.
#[derive(Debug, Default)]
pub(crate) struct Moving<T>(T);

impl<T: Retractable> Accumulator for Moving<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let columns = T::columns(values)?;
        for index in 0..values[0].len() {
            if let Some(row) = T::row(columns, index)? {
                self.0.add(row)?;
            }
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let columns = T::columns(values)?;
        for index in 0..values[0].len() {
            if let Some(row) = T::row(columns, index)? {
                self.0.remove(row)?;
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        scalar_answer(&mut self.0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.heap_bytes()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a window frame has no partial state")
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        internal_err!("a window frame has no partial state")
    }
}

fn scalar_answer<T: Tally>(tally: &mut T) -> Result<ScalarValue> {
    ScalarValue::new_primitive::<T::Answer>(tally.answer()?, &T::Answer::DATA_TYPE)
}

/// The accumulator of all groups of an aggregation at once.
#[derive(Debug, Default)]
pub(crate) struct Groups<T> {
    tallies: Vec<T>,
    /// The sum of `heap_bytes` over the tallies: DataFusion asks for the size after every batch.
    heap_bytes: usize,
}

impl<T: Mergeable> Groups<T> {
    /// Changes one tally and updates the count of its bytes.
    fn change(&mut self, group: usize, change: impl FnOnce(&mut T) -> Result<()>) -> Result<()> {
        let tally = &mut self.tallies[group];
        let before = tally.heap_bytes();
        let result = change(tally);
        self.heap_bytes = self.heap_bytes - before + tally.heap_bytes();
        result
    }

    fn take(&mut self, emit_to: EmitTo) -> Vec<T> {
        let taken = emit_to.take_needed(&mut self.tallies);
        self.heap_bytes -= taken.iter().map(T::heap_bytes).sum::<usize>();
        taken
    }
}

impl<T: Mergeable> GroupsAccumulator for Groups<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.tallies.resize_with(total_num_groups, T::default);
        let columns = T::columns(values)?;
        for (index, &group) in group_indices.iter().enumerate() {
            if !passes(opt_filter, index) {
                continue;
            }
            if let Some(row) = T::row(columns, index)? {
                self.change(group, |tally| tally.add(row))?;
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], total_num_groups: usize) -> Result<()> {
        self.tallies.resize_with(total_num_groups, T::default);
        for (index, &group) in group_indices.iter().enumerate() {
            self.change(group, |tally| tally.merge(values, index))?;
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let mut taken = self.take(emit_to);
        let answers = taken.iter_mut().map(T::answer).collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(answers.into_iter().collect::<PrimitiveArray<T::Answer>>()))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        T::states(&mut self.take(emit_to))
    }

    // DataFusion gives up partial aggregation where nearly every row is a group of its own.
    fn convert_to_state(&self, values: &[ArrayRef], opt_filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let columns = T::columns(values)?;
        let mut tallies = Vec::new();
        tallies.resize_with(values[0].len(), T::default);
        for (index, tally) in tallies.iter_mut().enumerate() {
            if passes(opt_filter, index)
                && let Some(row) = T::row(columns, index)?
            {
                tally.add(row)?;
            }
        }
        T::states(&mut tallies)
    }

    fn size(&self) -> usize {
        self.tallies.capacity() * size_of::<T>() + self.heap_bytes
    }
}

/// `FILTER (WHERE …)`: NULL drops the row as false does.
fn passes(filter: Option<&BooleanArray>, index: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(index) && filter.value(index))
}

/// `f(DISTINCT …)`: equal rows count once.
///
/// Counts how often each row occurs, so that a moving frame knows when the last copy leaves. Its state is its rows.
#[derive(Debug)]
pub(crate) struct Distinct<T: Tally> {
    copies: HashMap<T::Row, u64>,
    tally: T,
}

impl<T: Tally> Default for Distinct<T> {
    fn default() -> Self {
        Distinct { copies: HashMap::new(), tally: T::default() }
    }
}

impl<T: Tally> Tally for Distinct<T> {
    type Columns<'a> = T::Columns<'a>;
    type Row = T::Row;
    type Answer = T::Answer;

    fn columns(values: &[ArrayRef]) -> Result<T::Columns<'_>> {
        T::columns(values)
    }

    fn row(columns: T::Columns<'_>, index: usize) -> Result<Option<T::Row>> {
        T::row(columns, index)
    }

    fn add(&mut self, row: T::Row) -> Result<()> {
        let copies = self.copies.entry(row).or_insert(0);
        *copies += 1;
        if *copies == 1 { self.tally.add(row) } else { Ok(()) }
    }

    fn answer(&mut self) -> Result<Option<Native<Self>>> {
        self.tally.answer()
    }

    fn heap_bytes(&self) -> usize {
        // One byte of control per slot: hashbrown's layout.
        self.copies.capacity() * (size_of::<(T::Row, u64)>() + 1) + self.tally.heap_bytes()
    }
}

impl<T: Tally> Mergeable for Distinct<T> {
    fn state_columns() -> Vec<(&'static str, DataType)> {
        const NAMES: [&str; 6] = ["distinct 1", "distinct 2", "distinct 3", "distinct 4", "distinct 5", "distinct 6"];
        NAMES[..T::Row::WORDS].iter().map(|&name| (name, list_type())).collect()
    }

    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
        let lengths = || OffsetBuffer::from_lengths(tallies.iter().map(|distinct| distinct.copies.len()));
        let mut columns: Vec<Int64Builder> = (0..T::Row::WORDS).map(|_| Int64Builder::new()).collect();
        for row in tallies.iter().flat_map(|distinct| distinct.copies.keys()) {
            for (column, word) in columns.iter_mut().zip(row.to_words()) {
                column.append_option(word);
            }
        }
        Ok(columns.into_iter().map(|mut column| list_column(lengths(), column.finish())).collect())
    }

    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
        let lists = states.iter().map(|column| list_at(column, index)).collect::<Vec<_>>();
        let Some(rows) = lists.first().map(|list| list.len()) else { return Ok(()) };
        for row in 0..rows {
            let word = |list: &Int64Array| list.is_valid(row).then(|| list.value(row));
            let words = lists.iter().map(word).collect::<Vec<_>>();
            self.add(T::Row::from_words(&words))?;
        }
        Ok(())
    }
}

impl<T: Retractable> Retractable for Distinct<T> {
    fn remove(&mut self, row: T::Row) -> Result<()> {
        let Some(copies) = self.copies.get_mut(&row) else {
            return internal_err!("a row leaves the window that never entered it: {row:?}");
        };
        *copies -= 1;
        if *copies > 0 {
            return Ok(());
        }
        self.copies.remove(&row);
        self.tally.remove(row)
    }
}

/// The type of a state column of whole numbers, any number of them per group. The offsets are large: a single group of
/// 2³¹ spans is 32 GiB and not impossible.
pub(crate) fn list_type() -> DataType {
    DataType::LargeList(Arc::new(Field::new_list_field(DataType::Int64, true)))
}

/// A state column with one list per group.
pub(crate) fn list_column(offsets: OffsetBuffer<i64>, values: Int64Array) -> ArrayRef {
    let field = Arc::new(Field::new_list_field(DataType::Int64, true));
    Arc::new(LargeListArray::new(field, offsets, Arc::new(values), None))
}

/// The list of one group; a NULL list is empty.
pub(crate) fn list_at(column: &ArrayRef, index: usize) -> Int64Array {
    let lists = column.as_list::<i64>();
    if lists.is_null(index) {
        return Int64Array::from(Vec::<i64>::new());
    }
    lists.value(index).as_primitive::<Int64Type>().clone()
}

/// The value of a nullable column.
pub(crate) fn value_at<T: ArrowPrimitiveType>(column: &PrimitiveArray<T>, index: usize) -> Option<T::Native> {
    column.is_valid(index).then(|| column.value(index))
}

#[cfg(test)]
pub(crate) mod testing {
    //! Runs a tally the way the engine does, cut in all possible places.

    use super::*;

    /// The answer when all rows are one batch.
    pub(crate) fn whole<T: Mergeable>(values: &[ArrayRef]) -> Result<ScalarValue> {
        let mut one = One::<T>::default();
        one.update_batch(values)?;
        one.evaluate()
    }

    /// The answer when the rows are cut into batches at `cuts`, each in a partition of its own, merged at the end.
    pub(crate) fn cut<T: Mergeable>(values: &[ArrayRef], cuts: &[usize]) -> Result<ScalarValue> {
        let mut last = One::<T>::default();
        for (from, to) in pieces(values[0].len(), cuts) {
            let mut partition = One::<T>::default();
            partition.update_batch(&slice(values, from, to))?;
            let states = partition.state()?;
            let states = states.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
            last.merge_batch(&states)?;
        }
        last.evaluate()
    }

    /// The answers per group through the groups accumulator: partial, converted, merged, and emitted in two parts.
    pub(crate) fn grouped<T: Mergeable>(
        values: &[ArrayRef],
        groups: &[usize],
        group_count: usize,
        cuts: &[usize],
    ) -> Result<Vec<ScalarValue>> {
        let mut last = Groups::<T>::default();
        for (number, (from, to)) in pieces(values[0].len(), cuts).into_iter().enumerate() {
            let batch = slice(values, from, to);
            if number % 2 == 0 {
                let mut partial = Groups::<T>::default();
                partial.update_batch(&batch, &groups[from..to], None, group_count)?;
                let all = (0..group_count).collect::<Vec<_>>();
                last.merge_batch(&partial.state(EmitTo::All)?, &all, group_count)?;
                assert_eq!(partial.heap_bytes, 0, "what left is no longer counted");
            } else {
                let states = last.convert_to_state(&batch, None)?;
                last.merge_batch(&states, &groups[from..to], group_count)?;
            }
        }
        last.tallies.resize_with(group_count, T::default);
        let counted: usize = last.tallies.iter().map(T::heap_bytes).sum();
        assert_eq!(last.heap_bytes, counted, "the running byte count is the true one");
        let first = last.evaluate(EmitTo::First(group_count / 2))?;
        let rest = last.evaluate(EmitTo::All)?;
        let scalars = |array: &ArrayRef| {
            (0..array.len()).map(|index| ScalarValue::try_from_array(array, index)).collect::<Result<Vec<_>>>()
        };
        Ok([scalars(&first)?, scalars(&rest)?].concat())
    }

    /// The answers of `ROWS BETWEEN width - 1 PRECEDING AND CURRENT ROW`, by adding and taking away.
    pub(crate) fn moving<T: Retractable>(values: &[ArrayRef], width: usize) -> Result<Vec<ScalarValue>> {
        let mut frame = Moving::<T>::default();
        let mut answers = Vec::new();
        for row in 0..values[0].len() {
            frame.update_batch(&slice(values, row, row + 1))?;
            if row >= width {
                frame.retract_batch(&slice(values, row - width, row - width + 1))?;
            }
            answers.push(frame.evaluate()?);
        }
        Ok(answers)
    }

    /// The answers of a frame that only grows.
    pub(crate) fn running<T: Mergeable>(values: &[ArrayRef]) -> Result<Vec<ScalarValue>> {
        let mut frame = One::<T>::default();
        let answer = |row| {
            frame.update_batch(&slice(values, row, row + 1))?;
            frame.evaluate()
        };
        (0..values[0].len()).map(answer).collect()
    }

    /// Rows `from..to` of all columns.
    pub(crate) fn slice(values: &[ArrayRef], from: usize, to: usize) -> Vec<ArrayRef> {
        values.iter().map(|column| column.slice(from, to - from)).collect()
    }

    fn pieces(rows: usize, cuts: &[usize]) -> Vec<(usize, usize)> {
        let mut edges = cuts.iter().map(|cut| cut % (rows + 1)).chain([0, rows]).collect::<Vec<_>>();
        edges.sort_unstable();
        edges.windows(2).map(|edge| (edge[0], edge[1])).collect()
    }
}
