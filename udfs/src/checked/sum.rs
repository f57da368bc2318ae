//! `sum(x)` in place of DataFusion's: sums of integers end in an error when they do not fit, instead of wrapping.
//!
//! Life of the data: integers add up in 128 bits, which no number of rows can fill; partial sums travel as decimals, so a
//! total that fits is right even where a part of it would not; only the answer is checked. Every other type goes to
//! DataFusion's own `sum`, which is handed in by the engine: this crate knows the traits of functions, not their stock.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Decimal128Array, Int64Array};
use arrow::datatypes::{DataType, Decimal128Type, FieldRef, Int64Type};
use datafusion_common::{Result, ScalarValue, exec_datafusion_err};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};
use datafusion_macros::user_doc;

use crate::aggregate::{Distinct, Groups, Mergeable, Moving, One, Retractable, Row, Tally, state_fields, value_at};
use crate::ticks::{is_time, time_metadata};

/// `sum(x)`, an aggregate. Shape: any number of numbers → one of their kind (`BIGINT` for integers), NULL for none.
#[user_doc(
    doc_section(label = "Checked arithmetic"),
    description = "Sum of a group's numbers, or an error when a whole number does not fit BIGINT.\n\n\
        Rows: one per group. Units: the sum of times is a time. NULLs are left out; the sum of nothing is NULL. The order \
        of rows does not matter for integers; DISTINCT counts equal numbers once.\n\n\
        Errors: an integer overflow of the total; parts may be as large as they like. Doubles, decimals and durations are \
        summed as DataFusion does.\n\n\
        Cost: O(1) a row; with DISTINCT about 24 bytes a distinct number.",
    syntax_example = "sum(x)",
    sql_example = "SELECT sum(duration) AS total FROM (VALUES (3), (5), (NULL)) AS tasks(duration)",
    argument(name = "x", description = "The numbers to add up.")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CheckedSum {
    datafusions: Arc<AggregateUDF>,
    signature: Signature,
}

impl CheckedSum {
    /// The function, given DataFusion's own `sum` for the types that cannot wrap.
    pub fn new(datafusions: Arc<AggregateUDF>) -> Self {
        let signature = datafusions.signature().clone();
        CheckedSum { datafusions, signature }
    }
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        "sum"
    }

    fn aliases(&self) -> &[String] {
        self.datafusions.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.datafusions.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.datafusions.return_type(types)
    }

    fn return_field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        let field = self.datafusions.return_field(arguments)?;
        if arguments.first().is_some_and(|argument| is_time(argument)) {
            return Ok(Arc::new(field.as_ref().clone().with_metadata(time_metadata())));
        }
        Ok(field)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if args.return_type() != &DataType::Int64 {
            return self.datafusions.state_fields(args);
        }
        Ok(if args.is_distinct { state_fields::<Distinct<SumTally>>(&args) } else { state_fields::<SumTally>(&args) })
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if !is_whole(&args) {
            return self.datafusions.accumulator(args);
        }
        Ok(if args.is_distinct {
            Box::new(One::<Distinct<SumTally>>::default())
        } else {
            Box::new(One::<SumTally>::default())
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        is_whole(&args) || self.datafusions.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        if !is_whole(&args) {
            return self.datafusions.create_groups_accumulator(args);
        }
        Ok(if args.is_distinct {
            Box::new(Groups::<Distinct<SumTally>>::default())
        } else {
            Box::new(Groups::<SumTally>::default())
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if !is_whole(&args) {
            return self.datafusions.create_sliding_accumulator(args);
        }
        Ok(if args.is_distinct {
            Box::new(Moving::<Distinct<SumTally>>::default())
        } else {
            Box::new(Moving::<SumTally>::default())
        })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.datafusions.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.datafusions.inner().set_monotonicity(data_type)
    }

    // DataFusion would turn `sum(x + 1)` into `sum(x) + 1 * count(x)` with operators that wrap.
    fn simplify_expr_op_literal(
        &self,
        _function: &AggregateFunction,
        _argument: &Expr,
        _operator: Operator,
        _literal: &Expr,
        _argument_is_left: bool,
    ) -> Result<Option<Expr>> {
        Ok(None)
    }

    // A sum in the statistics of a file was added up by someone who may have wrapped.
    fn value_from_stats(&self, _statistics: &StatisticsArgs) -> Option<ScalarValue> {
        None
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.doc()
    }
}

fn is_whole(args: &AccumulatorArgs) -> bool {
    args.return_field.data_type() == &DataType::Int64
}

impl Row for i64 {
    const WORDS: usize = 1;

    fn to_words(self) -> Vec<Option<i64>> {
        vec![Some(self)]
    }

    fn from_words(words: &[Option<i64>]) -> Self {
        words[0].unwrap_or(0)
    }
}

/// A sum that cannot overflow, and whether it is of anything.
#[derive(Debug, Default)]
struct SumTally {
    sum: i128,
    count: u64,
}

impl Tally for SumTally {
    type Columns<'a> = &'a Int64Array;
    type Row = i64;
    type Answer = Int64Type;

    fn columns(values: &[ArrayRef]) -> Result<&Int64Array> {
        Ok(values[0].as_primitive())
    }

    #[inline]
    fn row(column: &Int64Array, index: usize) -> Result<Option<i64>> {
        Ok(value_at(column, index))
    }

    #[inline]
    fn add(&mut self, value: i64) -> Result<()> {
        self.sum += i128::from(value);
        self.count += 1;
        Ok(())
    }

    fn answer(&mut self) -> Result<Option<i64>> {
        if self.count == 0 {
            return Ok(None);
        }
        let fits = i64::try_from(self.sum);
        fits.map(Some).map_err(|_| exec_datafusion_err!("integer overflow in sum: {} does not fit BIGINT", self.sum))
    }

    fn heap_bytes(&self) -> usize {
        0
    }
}

impl Mergeable for SumTally {
    fn state_columns() -> Vec<(&'static str, DataType)> {
        vec![("sum", DataType::Decimal128(38, 0))]
    }

    fn states(tallies: &mut [Self]) -> Result<Vec<ArrayRef>> {
        let sums = tallies.iter().map(|tally| (tally.count > 0).then_some(tally.sum));
        Ok(vec![Arc::new(sums.collect::<Decimal128Array>().with_precision_and_scale(38, 0)?)])
    }

    fn merge(&mut self, states: &[ArrayRef], index: usize) -> Result<()> {
        if let Some(sum) = value_at(states[0].as_primitive::<Decimal128Type>(), index) {
            self.sum += sum;
            self.count += 1;
        }
        Ok(())
    }
}

impl Retractable for SumTally {
    fn remove(&mut self, value: i64) -> Result<()> {
        self.sum -= i128::from(value);
        self.count -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::testing;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn column(values: &[Option<i64>]) -> Vec<ArrayRef> {
        vec![Arc::new(values.iter().copied().collect::<Int64Array>())]
    }

    /// The sum in 128 bits, and whether 64 can say it.
    fn naive(values: &[Option<i64>]) -> std::result::Result<ScalarValue, i128> {
        let values = values.iter().copied().flatten().map(i128::from).collect::<Vec<_>>();
        let sum: i128 = values.iter().sum();
        let fits = i64::try_from(sum).map_err(|_| sum)?;
        Ok(ScalarValue::Int64((!values.is_empty()).then_some(fits)))
    }

    fn distinct(values: &[Option<i64>]) -> Vec<Option<i64>> {
        let mut values = values.to_vec();
        values.sort_unstable();
        values.dedup();
        values
    }

    proptest! {
        #[test]
        fn adds_up_or_says_that_it_cannot(
            values in vec(prop::option::weighted(0.9, prop_oneof![-5..5i64, Just(i64::MAX), Just(i64::MIN)]), 0..20),
            cuts in vec(0..21usize, 0..4),
            width in 1..6usize,
        ) {
            let same = |answer: Result<ScalarValue>, expected: std::result::Result<ScalarValue, i128>| match expected {
                Ok(sum) => assert_eq!(answer.unwrap(), sum),
                Err(sum) => assert!(answer.unwrap_err().to_string().contains(&format!("{sum} does not fit BIGINT"))),
            };
            same(testing::whole::<SumTally>(&column(&values)), naive(&values));
            same(testing::cut::<SumTally>(&column(&values), &cuts), naive(&values));
            same(testing::cut::<Distinct<SumTally>>(&column(&values), &cuts), naive(&distinct(&values)));

            let small = values.iter().map(|value| value.filter(|value| value.abs_diff(0) < 9)).collect::<Vec<_>>();
            let frames = (0..small.len()).map(|row| &small[(row + 1).saturating_sub(width)..=row]);
            let moving = testing::moving::<SumTally>(&column(&small), width).unwrap();
            prop_assert_eq!(moving, frames.clone().map(|frame| naive(frame).unwrap()).collect::<Vec<_>>());
            let moving = testing::moving::<Distinct<SumTally>>(&column(&small), width).unwrap();
            prop_assert_eq!(moving, frames.map(|frame| naive(&distinct(frame)).unwrap()).collect::<Vec<_>>());
            let groups = (0..small.len()).map(|row| row % 3).collect::<Vec<_>>();
            let of_group = |group| naive(&small.iter().skip(group).step_by(3).copied().collect::<Vec<_>>()).unwrap();
            let grouped = testing::grouped::<SumTally>(&column(&small), &groups, 3, &cuts).unwrap();
            prop_assert_eq!(grouped, (0..3).map(of_group).collect::<Vec<_>>());
        }
    }
}
