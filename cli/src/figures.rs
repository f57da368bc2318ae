//! Numbers that `tq check` and `tq diff` compare: whole numbers and decimals keep all their digits, others are DOUBLEs.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Float64Type};
use datafusion::arrow::error::ArrowError;
use serde_json::{Value, json};
use tq_udfs::ticks::{Tick, mean_time_text, time_text};

/// A number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Figure {
    /// A number of units of 10^-`scale`.
    Exact {
        units: i128,
        scale: u8,
    },
    Double(f64),
}

/// The numbers of a column; NULL is none.
pub(crate) fn figures(column: &ArrayRef) -> Result<Vec<Option<Figure>>, ArrowError> {
    let scale = match column.data_type() {
        whole if whole.is_integer() => Some(0),
        DataType::Decimal128(_, scale @ 0..) => Some(scale.unsigned_abs()),
        _ => None,
    };
    let Some(scale) = scale else {
        let doubles = cast(column, &DataType::Float64)?;
        return Ok(doubles.as_primitive::<Float64Type>().iter().map(|double| double.map(Figure::Double)).collect());
    };
    let units = match column.data_type() {
        DataType::Decimal128(..) => column.clone(),
        _ => cast(column, &DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0))?,
    };
    let figure = |units| Figure::Exact { units, scale };
    Ok(units.as_primitive::<Decimal128Type>().iter().map(|units| units.map(figure)).collect())
}

impl Figure {
    /// The nearest DOUBLE.
    pub(crate) fn double(self) -> f64 {
        match self {
            Figure::Exact { units, scale: 0 } => units as f64,
            // Read, so that it is rounded once.
            Figure::Exact { units, scale } => format!("{units}e-{scale}").parse().unwrap_or(f64::NAN),
            Figure::Double(double) => double,
        }
    }

    /// Exact where both are.
    pub(crate) fn minus(self, other: Figure) -> Figure {
        let exact = || {
            let (Figure::Exact { units, scale }, Figure::Exact { units: others, scale: its }) = (self, other) else {
                return None;
            };
            let most = scale.max(its);
            let widened = |units: i128, scale: u8| units.checked_mul(10_i128.checked_pow((most - scale).into())?);
            let units = widened(units, scale)?.checked_sub(widened(others, its)?)?;
            Some(Figure::Exact { units, scale: most })
        };
        exact().unwrap_or_else(|| Figure::Double(self.double() - other.double()))
    }

    /// So many times a ratio; exact where it is whole.
    pub(crate) fn times(self, over: i64, under: i64) -> Figure {
        let exact = || {
            let Figure::Exact { units, scale } = self else { return None };
            let product = units.checked_mul(over.into())?;
            (product % i128::from(under) == 0).then_some(Figure::Exact { units: product / i128::from(under), scale })
        };
        exact().unwrap_or_else(|| Figure::Double(self.double() * (over as f64 / under as f64)))
    }

    /// The whole number that it is.
    pub(crate) fn whole(self) -> Option<i64> {
        match self {
            Figure::Exact { units, scale } => {
                let one = 10_i128.checked_pow(scale.into())?;
                if units % one == 0 { i64::try_from(units / one).ok() } else { None }
            }
            Figure::Double(_) => None,
        }
    }

    /// A time for people.
    pub(crate) fn time(self, tick: Tick) -> String {
        match self.whole() {
            Some(ticks) => time_text(ticks, tick),
            None => mean_time_text(self.double(), tick),
        }
    }

    pub(crate) fn json(self) -> Value {
        self.whole().map_or_else(|| json!(self.double()), |whole| json!(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Decimal128Array, Int64Array};
    use std::sync::Arc;

    #[test]
    fn whole_numbers_and_decimals_keep_their_digits() {
        const LARGE: i64 = 1 << 53;
        let read = |column: ArrayRef| figures(&column).unwrap();
        let whole = read(Arc::new(Int64Array::from(vec![Some(LARGE), Some(LARGE + 1), None])));
        let [Some(less), Some(more), None] = whole.as_slice() else { panic!("{whole:?}") };
        assert_eq!(more.minus(*less).whole(), Some(1));
        assert_eq!(more.time(Tick::Weight), "9007199254740993 weights");
        assert_eq!(more.times(1000, 1).whole(), Some((LARGE + 1) * 1000));
        assert_eq!(less.times(1, 1024).whole(), Some(LARGE / 1024));
        let decimal =
            Decimal128Array::from(vec![90_071_992_547_409_925_i128, 5]).with_precision_and_scale(38, 1).unwrap();
        let decimals = read(Arc::new(decimal));
        assert_eq!(decimals[0].unwrap().minus(*less).double(), 0.5);
        assert_eq!(decimals[1].unwrap().double(), 0.5);
        assert!(decimals[1].unwrap().whole().is_none());
    }
}
