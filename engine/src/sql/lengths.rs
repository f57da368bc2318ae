//! Functions of intervals (length, rank, seconds, parts) that the planner puts into plans. Queries cannot call them by name.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Decimal256Array, FixedSizeListArray, Float64Array, GenericListArray,
    IntervalMonthDayNanoArray, OffsetSizeTrait, StructArray, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Decimal256Type, DurationNanosecondType, FieldRef, Float64Type, Int32Type, Int64Type,
    IntervalMonthDayNano, IntervalMonthDayNanoType, TimeUnit, TimestampNanosecondType, i256,
};
use datafusion::common::cast::as_fixed_size_list_array;
use datafusion::common::{Result, exec_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tq_udfs::checked::intervals::{INTERVAL, divided, multiplied};

/// A function of intervals. NULL for NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum OfInterval {
    /// Nanoseconds as DECIMAL(38, 0), a month of 30 days and a day of 24 hours; of a list or a struct, those of its intervals.
    Length,
    /// A number that sorts as the length does, and from which [`OfInterval::OfRank`] restores the interval: DECIMAL(76, 0).
    Rank,
    /// The interval of a rank.
    OfRank,
    /// The interval of a difference of times: whole days, and the rest as nanoseconds.
    Days,
    /// Seconds as DOUBLE, a year of 365.25 days, as PostgreSQL has them.
    Epoch,
    /// The seconds since 1970 of a TIMESTAMP as DOUBLE, rounded once.
    EpochOfTime,
    /// The part below a minute, in units of so many nanoseconds; a whole number, as `date_part` gives for times.
    OfMinute(i64),
    /// Whole years divided by this number.
    Years(i32),
    /// Times a DOUBLE.
    Times,
    /// Over a DOUBLE.
    Over,
}

impl OfInterval {
    /// The call of this function.
    pub(super) fn of(self, args: impl IntoIterator<Item = Expr>) -> Expr {
        let args: Vec<Expr> = args.into_iter().collect();
        let signature = Signature::any(args.len(), Volatility::Immutable);
        ScalarUDF::from(Function { what: self, signature }).call(args)
    }
}

/// Whether values of a type are intervals, or lists and structs with them.
pub(super) fn holds_intervals(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            holds_intervals(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| holds_intervals(field.data_type())),
        other => other == &INTERVAL,
    }
}

/// Whether intervals are parts of the values of a type.
pub(super) fn nests_intervals(data_type: &DataType) -> bool {
    let holds = |field: &FieldRef| field.data_type() == &INTERVAL || nests_intervals(field.data_type());
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => holds(item),
        DataType::Struct(fields) => fields.iter().any(holds),
        _ => false,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    what: OfInterval,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        match self.what {
            OfInterval::Length => "interval_length",
            OfInterval::Rank => "interval_rank",
            OfInterval::OfRank => "interval_of_rank",
            OfInterval::Days => "interval_of_difference",
            OfInterval::Epoch => "interval_epoch",
            OfInterval::EpochOfTime => "epoch_of_time",
            OfInterval::OfMinute(_) => "interval_of_minute",
            OfInterval::Years(_) => "interval_years",
            OfInterval::Times => "interval_times",
            OfInterval::Over => "interval_over",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let Some(first) = types.first() else { return internal_err!("{} takes an interval", self.name()) };
        Ok(match self.what {
            OfInterval::Length => type_of_lengths(first),
            OfInterval::Rank => DataType::Decimal256(76, 0),
            OfInterval::OfRank | OfInterval::Days | OfInterval::Times | OfInterval::Over => INTERVAL,
            OfInterval::Epoch | OfInterval::EpochOfTime => DataType::Float64,
            OfInterval::OfMinute(1) => DataType::Int64,
            OfInterval::OfMinute(_) | OfInterval::Years(_) => DataType::Int32,
        })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(first) = arrays.first() else { return internal_err!("{} takes an interval", self.name()) };
        let scaled = |by: fn(IntervalMonthDayNano, f64) -> Result<IntervalMonthDayNano>| -> Result<ArrayRef> {
            let pairs = first.as_primitive::<IntervalMonthDayNanoType>().iter();
            let numbers = arrays[1].as_primitive::<Float64Type>().iter();
            let pairs = pairs.zip(numbers).map(|(interval, number)| interval.zip(number));
            let scaled = pairs.map(|pair| pair.map(|(interval, number)| by(interval, number)).transpose());
            Ok(Arc::new(scaled.collect::<Result<IntervalMonthDayNanoArray>>()?))
        };
        Ok(ColumnarValue::Array(match self.what {
            OfInterval::Length => lengths(first)?,
            OfInterval::Rank => {
                let ranks: Decimal256Array = first.as_primitive::<IntervalMonthDayNanoType>().unary(rank);
                Arc::new(ranks.with_precision_and_scale(76, 0)?)
            }
            OfInterval::OfRank => {
                let intervals: IntervalMonthDayNanoArray = first.as_primitive::<Decimal256Type>().unary(of_rank);
                Arc::new(intervals)
            }
            OfInterval::Days => days(first)?,
            OfInterval::Epoch => {
                let seconds: Float64Array = first.as_primitive::<IntervalMonthDayNanoType>().unary(epoch);
                Arc::new(seconds)
            }
            OfInterval::EpochOfTime => {
                let nanoseconds = cast(first, &DataType::Timestamp(TimeUnit::Nanosecond, None))?;
                if nanoseconds.null_count() > first.null_count() {
                    return exec_err!("a time is beyond those of TIMESTAMP");
                }
                let seconds: Float64Array = nanoseconds.as_primitive::<TimestampNanosecondType>().unary(seconds_of);
                Arc::new(seconds)
            }
            OfInterval::OfMinute(part) => {
                let parts = |interval: IntervalMonthDayNano| interval.nanoseconds % MINUTE / part;
                let intervals = first.as_primitive::<IntervalMonthDayNanoType>();
                match part {
                    1 => Arc::new(intervals.unary::<_, Int64Type>(parts)),
                    _ => Arc::new(intervals.unary::<_, Int32Type>(|interval| parts(interval) as i32)),
                }
            }
            OfInterval::Years(many) => {
                let intervals = first.as_primitive::<IntervalMonthDayNanoType>();
                Arc::new(intervals.unary::<_, Int32Type>(|interval| interval.months / 12 / many))
            }
            OfInterval::Times => scaled(multiplied)?,
            OfInterval::Over => scaled(divided)?,
        }))
    }
}

const DAY: i64 = 86_400_000_000_000;
const MINUTE: i64 = 60_000_000_000;

/// Nanoseconds, a month of 30 days and a day of 24 hours.
pub(super) fn length(interval: IntervalMonthDayNano) -> i128 {
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    days * i128::from(DAY) + i128::from(interval.nanoseconds)
}

fn type_of_lengths(data_type: &DataType) -> DataType {
    let of = |item: &FieldRef| {
        let item = item.as_ref().clone();
        let data_type = type_of_lengths(item.data_type());
        Arc::new(item.with_data_type(data_type))
    };
    match data_type {
        DataType::List(item) => DataType::List(of(item)),
        DataType::LargeList(item) => DataType::LargeList(of(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(of(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(of).collect()),
        DataType::Null => DataType::Decimal128(38, 0),
        other if other == &INTERVAL => DataType::Decimal128(38, 0),
        other => other.clone(),
    }
}

fn lengths(values: &ArrayRef) -> Result<ArrayRef> {
    if values.data_type() == &DataType::Null {
        return Ok(new_null_array(&type_of_lengths(&DataType::Null), values.len()));
    }
    fn of_lists<O: OffsetSizeTrait>(lists: &GenericListArray<O>, item: FieldRef) -> Result<ArrayRef> {
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        Ok(Arc::new(GenericListArray::try_new(item, offsets, lengths(lists.values())?, nulls)?))
    }
    Ok(match type_of_lengths(values.data_type()) {
        DataType::List(item) => of_lists(values.as_list::<i32>(), item)?,
        DataType::LargeList(item) => of_lists(values.as_list::<i64>(), item)?,
        DataType::FixedSizeList(item, size) => {
            let lists = as_fixed_size_list_array(values)?;
            Arc::new(FixedSizeListArray::try_new(item, size, lengths(lists.values())?, lists.nulls().cloned())?)
        }
        DataType::Struct(fields) => {
            let structs = values.as_struct();
            let columns = structs.columns().iter().map(lengths).collect::<Result<_>>()?;
            Arc::new(StructArray::try_new(fields, columns, structs.nulls().cloned())?)
        }
        _ if values.data_type() != &INTERVAL => Arc::clone(values),
        _ => {
            let lengths: Decimal128Array = values.as_primitive::<IntervalMonthDayNanoType>().unary(length);
            Arc::new(lengths.with_precision_and_scale(38, 0)?)
        }
    })
}

/// Below the length are the months and the days, which leave the nanoseconds to be told.
fn rank(interval: IntervalMonthDayNano) -> i256 {
    let fields =
        i128::from(interval.months.cast_unsigned() ^ SIGN) << 32 | i128::from(interval.days.cast_unsigned() ^ SIGN);
    (i256::from_i128(length(interval)) << 64u8).wrapping_add(i256::from_i128(fields))
}

/// What makes numbers with a sign sort as those without.
const SIGN: u32 = 1 << 31;

fn of_rank(rank: i256) -> IntervalMonthDayNano {
    let fields = rank.to_parts().0 as u64;
    let months = ((fields >> 32) as u32 ^ SIGN).cast_signed();
    let days = (fields as u32 ^ SIGN).cast_signed();
    let of_fields = length(IntervalMonthDayNano { months, days, nanoseconds: 0 });
    let length = (rank >> 64u8).to_i128().unwrap_or_default();
    IntervalMonthDayNano { months, days, nanoseconds: (length - of_fields) as i64 }
}

fn days(differences: &ArrayRef) -> Result<ArrayRef> {
    let DataType::Duration(_) = differences.data_type() else {
        return internal_err!("{} is no difference of times", differences.data_type());
    };
    let nanoseconds = cast(differences, &DataType::Duration(TimeUnit::Nanosecond))?;
    if nanoseconds.null_count() > differences.null_count() {
        return exec_err!("a difference of times does not fit 64 bits of nanoseconds");
    }
    let intervals: IntervalMonthDayNanoArray =
        nanoseconds.as_primitive::<DurationNanosecondType>().unary(|difference| {
            // 2⁶³ nanoseconds are 106 751 days.
            IntervalMonthDayNano { months: 0, days: (difference / DAY) as i32, nanoseconds: difference % DAY }
        });
    Ok(Arc::new(intervals))
}

/// Seconds of nanoseconds, to the nearest DOUBLE: one division of numbers that fit would round twice.
fn seconds_of(nanoseconds: i64) -> f64 {
    const SECOND: i64 = 1_000_000_000;
    let (whole, rest) = (nanoseconds.div_euclid(SECOND), nanoseconds.rem_euclid(SECOND));
    // Below 2⁵³, and so is the rest: only the sum is rounded, but for the last bit of the fraction.
    whole as f64 + rest as f64 / 1e9
}

fn epoch(interval: IntervalMonthDayNano) -> f64 {
    let (years, months) = (i64::from(interval.months / 12), i64::from(interval.months % 12));
    let days = months * 30 + i64::from(interval.days);
    // A quarter of a day is a whole number of seconds.
    let seconds = years * 31_557_600 + days * 86_400 + interval.nanoseconds / 1_000_000_000;
    seconds as f64 + (interval.nanoseconds % 1_000_000_000) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_sort_by_length_and_keep_the_interval() {
        let mut intervals = vec![];
        for months in [i32::MIN, -1, 0, 1, i32::MAX] {
            for days in [i32::MIN, -31, -30, 0, 30, i32::MAX] {
                for nanoseconds in [i64::MIN, -DAY, -1, 0, 1, DAY, i64::MAX] {
                    intervals.push(IntervalMonthDayNano { months, days, nanoseconds });
                }
            }
        }
        for interval in &intervals {
            assert_eq!(of_rank(rank(*interval)), *interval);
            for other in &intervals {
                let (by_length, by_rank) = (length(*interval).cmp(&length(*other)), rank(*interval).cmp(&rank(*other)));
                assert!(by_length == by_rank || by_length.is_eq(), "{interval:?} {other:?}");
            }
        }
    }
}
