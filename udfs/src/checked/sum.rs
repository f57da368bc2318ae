//! `sum(x)` in place of DataFusion's: sums of whole numbers and decimals end in an error when they do not fit, instead of
//! wrapping (DataFusion's issue 16406 for decimals), and sums of doubles are exact, so that they are the same in any order.
//!
//! The tallies are in `whole.rs`, `intervals.rs` and `exact`; only the final result is checked and rounded. Other types go to
//! DataFusion's own `sum`, which the engine passes in: this crate depends on DataFusion's function traits, not on its
//! function library.

use std::sync::Arc;

use arrow::datatypes::{
    DataType, Decimal128Type, DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType,
    DurationSecondType, FieldRef, Int64Type, IntervalUnit, TimeUnit, UInt64Type,
};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, Operator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs, Volatility,
};
use datafusion_macros::user_doc;

use crate::aggregate::Accumulators;
use crate::checked::intervals::IntervalSum;
use crate::checked::whole::WholeSum;
use crate::exact::totals::{Sum, Total};
use crate::exact_aggregates::coerced;
use crate::retyped;
use crate::spans::named;
use crate::ticks::{is_time, time_metadata};

/// `sum(x)`, an aggregate. Shape: any number of numbers → one of their kind (`BIGINT` for integers), NULL for none.
#[user_doc(
    doc_section(label = "Checked arithmetic"),
    description = "Sum of a group's numbers, or an error when it is a whole number or a decimal that does not fit.\n\n\
        Rows: one per group. Whole numbers add up to BIGINT (BIGINT UNSIGNED if they are that), DECIMAL(p, s) to \
        DECIMAL(min(38, p + 10), s), intervals to an interval. Units: the sum of times is a time. NULLs are left out; the sum of nothing is NULL. \
        The order of rows does not matter: doubles are added exactly and rounded once, so the sum is the double nearest to \
        the true one. NaN and infinities do as IEEE 754 says. DISTINCT counts equal numbers once.\n\n\
        Errors: an overflow of the total; parts may be as large as they like.\n\n\
        Cost: O(1) a row and about 50 bytes a group; with DISTINCT about 24 bytes a distinct number.\n\n\
        Source: Neal, Fast Exact Summation Using Small and Large Superaccumulators (arXiv:1505.05571, 2015).",
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
    /// The function, given DataFusion's own `sum` for other types.
    pub fn new(datafusions: Arc<AggregateUDF>) -> Self {
        CheckedSum { datafusions, signature: named(Signature::user_defined(Volatility::Immutable), &["x"]) }
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
        match types {
            [DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale)] => {
                Ok(vec![DataType::Decimal128(*precision, *scale)])
            }
            [DataType::Null] => Ok(vec![DataType::Int64]),
            _ => coerced(&self.datafusions, types),
        }
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
        match accumulators(args.return_type(), args.is_distinct) {
            Some(accumulators) => Ok((accumulators.state_fields)(&args)),
            None => self.datafusions.state_fields(args),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match accumulators(args.return_type(), args.is_distinct) {
            Some(accumulators) => Ok(retyped::one((accumulators.one)(), args.return_type())),
            None => self.datafusions.accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        accumulators(args.return_type(), args.is_distinct).is_some()
            || self.datafusions.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        match accumulators(args.return_type(), args.is_distinct) {
            Some(accumulators) => Ok(retyped::groups((accumulators.groups)(), args.return_type())),
            None => self.datafusions.create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match accumulators(args.return_type(), args.is_distinct) {
            Some(accumulators) => Ok(retyped::one((accumulators.moving)(), args.return_type())),
            None => self.datafusions.create_sliding_accumulator(args),
        }
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

/// The accumulators of sums of this type.
fn accumulators(sum: &DataType, is_distinct: bool) -> Option<Accumulators> {
    Some(match sum {
        DataType::Int64 => Accumulators::of::<WholeSum<Int64Type>>(is_distinct),
        DataType::UInt64 => Accumulators::of::<WholeSum<UInt64Type>>(is_distinct),
        DataType::Decimal128(..) => Accumulators::of::<WholeSum<Decimal128Type>>(is_distinct),
        DataType::Float64 => Accumulators::of::<Total<Sum>>(is_distinct),
        DataType::Duration(TimeUnit::Second) => Accumulators::of::<WholeSum<DurationSecondType>>(is_distinct),
        DataType::Duration(TimeUnit::Millisecond) => Accumulators::of::<WholeSum<DurationMillisecondType>>(is_distinct),
        DataType::Duration(TimeUnit::Microsecond) => Accumulators::of::<WholeSum<DurationMicrosecondType>>(is_distinct),
        DataType::Duration(TimeUnit::Nanosecond) => Accumulators::of::<WholeSum<DurationNanosecondType>>(is_distinct),
        DataType::Interval(IntervalUnit::MonthDayNano) => Accumulators::of::<IntervalSum>(is_distinct),
        _ => return None,
    })
}
