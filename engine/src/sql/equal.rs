//! Values that are equal and do not look so.
//!
//! DataFusion compares them by their bits or fields, without a word:
//!
//! ```text
//! x IN (0.0)                        -0.0 is not found (`=` and joins find it)      x + 0.0 IN (0.0)
//! count(DISTINCT x)                 -0.0 and 0.0 are two                           count(DISTINCT x + 0.0)
//! INTERVAL '25 hours' > '1 day'     months first, then days, then nanoseconds      interval_length(…) > interval_length(…)
//! CAST('[1, 2]' AS BIGINT[])        a list of one element, the text                refused
//! ```
//! An interval is as long as PostgreSQL and DuckDB take it for a comparison: a month has 30 days, a day 24 hours.
//! [`CheckedArithmetic`](super::checked::CheckedArithmetic) asks for each expression, when types are settled.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{AsArray, Decimal128Array};
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{
    Between, BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, lit,
};

/// An expression that compares what is equal.
pub(super) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) && is_interval(&left, schema)? => {
            let (left, right) = (Box::new(length(*left)), Box::new(length(*right)));
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        }
        Expr::Between(mut between) if is_interval(&between.expr, schema)? => {
            let Between { expr, low, high, .. } = &mut between;
            for part in [expr, low, high] {
                **part = length(std::mem::take(part));
            }
            Transformed::yes(Expr::Between(between))
        }
        Expr::InList(mut list) if is_interval(&list.expr, schema)? => {
            *list.expr = length(std::mem::take(&mut list.expr));
            list.list = list.list.into_iter().map(length).collect();
            Transformed::yes(Expr::InList(list))
        }
        Expr::InList(mut list) if list.list.iter().any(may_be_zero) && list.expr.get_type(schema)?.is_floating() => {
            let InList { expr, list: items, .. } = &mut list;
            let zero = ScalarValue::new_zero(&expr.get_type(schema)?)?;
            for part in std::iter::once(expr.as_mut()).chain(items) {
                *part = std::mem::take(part) + lit(zero.clone());
            }
            Transformed::yes(Expr::InList(list))
        }
        Expr::AggregateFunction(mut call) if call.params.distinct && call.func.name() == "count" => {
            for argument in &mut call.params.args {
                let data_type = argument.get_type(schema)?;
                if data_type.is_floating() {
                    *argument = std::mem::take(argument) + lit(ScalarValue::new_zero(&data_type)?);
                }
            }
            Transformed::yes(Expr::AggregateFunction(call))
        }
        Expr::Cast(Cast { expr, field }) if is_list(field.data_type()) && expr.get_type(schema)?.is_string() => {
            return plan_err!(
                "text is not cast to a list: write `string_to_array(text, ',')`, or `[a, b]` for a list of values"
            );
        }
        other => Transformed::no(other),
    })
}

/// The length of an interval that something is sorted by; anything else as it is.
pub(super) fn sort_key(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(if is_interval(&expr, schema)? { length(expr) } else { expr })
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    Ok(matches!(expr.get_type(schema)?, DataType::Interval(IntervalUnit::MonthDayNano)))
}

fn is_list(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

/// Whether an element of a list may be a zero of one sign or the other.
fn may_be_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Float64(value), _) => *value == Some(0.0),
        Expr::Literal(ScalarValue::Float32(value), _) => *value == Some(0.0),
        _ => true,
    }
}

fn length(interval: Expr) -> Expr {
    static LENGTH: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let signature = Signature::exact(vec![DataType::Interval(IntervalUnit::MonthDayNano)], Volatility::Immutable);
        Arc::new(ScalarUDF::from(IntervalLength { signature }))
    });
    LENGTH.call(vec![interval])
}

/// Nanoseconds of an interval as DECIMAL(38, 0); NULL for NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalLength {
    signature: Signature,
}

impl ScalarUDFImpl for IntervalLength {
    fn name(&self) -> &str {
        "interval_length"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Decimal128(38, 0))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        const DAY: i128 = 86_400_000_000_000;
        let intervals = ColumnarValue::values_to_arrays(&args.args)?.remove(0);
        let lengths: Decimal128Array = intervals.as_primitive::<IntervalMonthDayNanoType>().unary(|interval| {
            (i128::from(interval.months) * 30 + i128::from(interval.days)) * DAY + i128::from(interval.nanoseconds)
        });
        Ok(ColumnarValue::Array(Arc::new(lengths.with_precision_and_scale(38, 0)?)))
    }
}
