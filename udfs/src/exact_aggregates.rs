//! `avg`, `stddev`, `var`, `covar`, `corr` and `regr_…` computed from exact sums, in place of DataFusion's.
//!
//! DataFusion adds doubles in the order in which they arrive, so that the last digits depend on the number of threads,
//! and it converts integers to doubles. [`exactly`] wraps one of these functions: its name, documentation and behaviour
//! for other argument types are kept, the results come from `exact`. All of them work with DISTINCT, FILTER, GROUP BY and
//! in moving window frames.

use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, Int64Type, IntervalUnit, UInt64Type};
use datafusion_common::{Result, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::type_coercion::functions::fields_with_udf;
use datafusion_expr::utils::AggregateOrderSensitivity;
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use crate::aggregate::{Accumulators, Row};
use crate::checked::intervals::IntervalMean;
use crate::checked::whole::{DecimalMean, MORE_DECIMALS, WholeMean, WideDecimalMean};
use crate::exact::Double;
use crate::exact::moments::{
    AvgX, AvgY, Correlation, CovarPop, CovarSample, Intercept, Moments, Pairs, Quantity, R2, Slope, StddevPop,
    StddevSample, Sxx, Sxy, Syy, VarPop, VarSample,
};
use crate::exact::totals::{Mean, Total};
use crate::retyped;
use crate::wrapped::of_wrapped;

/// The names of DataFusion's functions that [`exactly`] makes exact.
pub const EXACT: [&str; 16] = [
    "avg",
    "var",
    "var_pop",
    "stddev",
    "stddev_pop",
    "covar_samp",
    "covar_pop",
    "corr",
    "regr_slope",
    "regr_intercept",
    "regr_r2",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
];

/// The same aggregate, computed from exact sums. Shape: as DataFusion's; `DOUBLE` of any numbers, `DECIMAL` of decimals
/// and an interval of intervals for `avg`.
pub fn exactly(function: Arc<AggregateUDF>) -> AggregateUDF {
    AggregateUDF::from(Exactly { function, signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Exactly {
    function: Arc<AggregateUDF>,
    signature: Signature,
}

impl Exactly {
    /// The accumulators for arguments of these types; none where they are DataFusion's.
    fn accumulators(&self, types: &[DataType], is_distinct: bool) -> Option<Accumulators> {
        match types {
            [DataType::Int64] if self.name() == "avg" => Some(Accumulators::of::<WholeMean<Int64Type>>(is_distinct)),
            [DataType::UInt64] if self.name() == "avg" => Some(Accumulators::of::<WholeMean<UInt64Type>>(is_distinct)),
            [DataType::Decimal128(precision, scale)] if self.name() == "avg" => {
                Some(match type_of_mean(*precision, *scale) {
                    DataType::Decimal128(..) => Accumulators::of::<DecimalMean>(is_distinct),
                    _ => Accumulators::of::<WideDecimalMean>(is_distinct),
                })
            }
            [DataType::Interval(IntervalUnit::MonthDayNano)] if self.name() == "avg" => {
                Some(Accumulators::of::<IntervalMean>(is_distinct))
            }
            [DataType::Float64] if self.name() == "avg" => Some(Accumulators::of::<Total<Mean>>(is_distinct)),
            [DataType::Int64] => self.of_one::<i64>(is_distinct),
            [DataType::Float64] => self.of_one::<Double>(is_distinct),
            [DataType::Int64, DataType::Int64] => self.of_pairs::<i64>(is_distinct),
            [DataType::Float64, DataType::Float64] => self.of_pairs::<Double>(is_distinct),
            _ => None,
        }
    }

    fn of_one<Q: Quantity>(&self, is_distinct: bool) -> Option<Accumulators> {
        Some(match self.name() {
            "var" => Accumulators::of::<Moments<VarSample, Q>>(is_distinct),
            "var_pop" => Accumulators::of::<Moments<VarPop, Q>>(is_distinct),
            "stddev" => Accumulators::of::<Moments<StddevSample, Q>>(is_distinct),
            "stddev_pop" => Accumulators::of::<Moments<StddevPop, Q>>(is_distinct),
            _ => return None,
        })
    }

    fn of_pairs<Q: Quantity>(&self, is_distinct: bool) -> Option<Accumulators>
    where
        (Q, Q): Row,
    {
        Some(match self.name() {
            "covar_samp" => Accumulators::of::<Pairs<CovarSample, Q>>(is_distinct),
            "covar_pop" => Accumulators::of::<Pairs<CovarPop, Q>>(is_distinct),
            "corr" => Accumulators::of::<Pairs<Correlation, Q>>(is_distinct),
            "regr_slope" => Accumulators::of::<Pairs<Slope, Q>>(is_distinct),
            "regr_intercept" => Accumulators::of::<Pairs<Intercept, Q>>(is_distinct),
            "regr_r2" => Accumulators::of::<Pairs<R2, Q>>(is_distinct),
            "regr_avgx" => Accumulators::of::<Pairs<AvgX, Q>>(is_distinct),
            "regr_avgy" => Accumulators::of::<Pairs<AvgY, Q>>(is_distinct),
            "regr_sxx" => Accumulators::of::<Pairs<Sxx, Q>>(is_distinct),
            "regr_syy" => Accumulators::of::<Pairs<Syy, Q>>(is_distinct),
            "regr_sxy" => Accumulators::of::<Pairs<Sxy, Q>>(is_distinct),
            _ => return None,
        })
    }

    fn of_arguments(&self, args: &AccumulatorArgs) -> Option<Accumulators> {
        let types = args.expr_fields.iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
        self.accumulators(&types, args.is_distinct)
    }
}

/// The type of a mean of decimals: four more digits behind the point, and as many before it.
fn type_of_mean(precision: u8, scale: i8) -> DataType {
    let (precision, scale) = (precision + MORE_DECIMALS, scale + MORE_DECIMALS as i8);
    match precision <= DECIMAL128_MAX_PRECISION {
        true => DataType::Decimal128(precision, scale),
        false => DataType::Decimal256(precision, scale),
    }
}

impl AggregateUDFImpl for Exactly {
    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    // Whole numbers of up to 64 bits stay whole. What the function takes otherwise is DataFusion's to say.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_small = |data_type: &DataType| data_type.is_signed_integer() || is_unsigned_below_64(data_type);
        if !types.is_empty() && types.iter().all(is_small) {
            let whole = vec![DataType::Int64; types.len()];
            // Says when there are too many of them.
            return coerced(&self.function, &whole).map(|_| whole);
        }
        match (self.name(), types) {
            ("avg", [DataType::Null]) => Ok(vec![DataType::Float64]),
            ("avg", [same @ (DataType::UInt64 | DataType::Interval(IntervalUnit::MonthDayNano))]) => {
                Ok(vec![same.clone()])
            }
            ("avg", [DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale)]) => {
                Ok(vec![DataType::Decimal128(*precision, *scale)])
            }
            _ => coerced(&self.function, types),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Decimal128(precision, scale)] if self.name() == "avg" => Ok(type_of_mean(*precision, *scale)),
            [DataType::Interval(_)] => Ok(types[0].clone()),
            _ if types.iter().all(DataType::is_integer) => Ok(DataType::Float64),
            _ => self.function.return_type(types),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let types = args.input_fields.iter().map(|field| field.data_type().clone()).collect::<Vec<_>>();
        match self.accumulators(&types, args.is_distinct) {
            Some(accumulators) => Ok((accumulators.state_fields)(&args)),
            None => self.function.state_fields(args),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.of_arguments(&args) {
            Some(accumulators) => Ok(retyped::one((accumulators.one)(), args.return_type())),
            None => self.function.accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.of_arguments(&args).is_some() || self.function.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        match self.of_arguments(&args) {
            Some(accumulators) => Ok(retyped::groups((accumulators.groups)(), args.return_type())),
            None => self.function.create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.of_arguments(&args) {
            Some(accumulators) => Ok(retyped::one((accumulators.moving)(), args.return_type())),
            None => self.function.create_sliding_accumulator(args),
        }
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }
}

fn is_unsigned_below_64(data_type: &DataType) -> bool {
    data_type.is_unsigned_integer() && data_type != &DataType::UInt64
}

/// The types in which a function of DataFusion takes arguments of these types.
pub(crate) fn coerced(function: &AggregateUDF, types: &[DataType]) -> Result<Vec<DataType>> {
    let fields: Vec<FieldRef> =
        types.iter().map(|data_type| Arc::new(Field::new("argument", data_type.clone(), true))).collect();
    match fields_with_udf(&fields, function) {
        Ok(taken) if !types.is_empty() => Ok(taken.iter().map(|field| field.data_type().clone()).collect()),
        _ => {
            let given = match types {
                [] => "nothing".to_owned(),
                types => types.iter().map(DataType::to_string).collect::<Vec<_>>().join(", "),
            };
            plan_err!("{} takes numbers, found {given}", function.name())
        }
    }
}
