//! `speedup(base_time, time)` and `efficiency(base_time, base_cores, time, cores)`: how a program scales.
//!
//! Life of the data: columns of doubles (whole numbers are converted), one division per row. Where a time or a number
//! of cores is not above 0, the answer is NULL and not infinite, so that averages stay finite.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use arrow::datatypes::{DataType, Float64Type};
use datafusion_common::{Result, internal_err};
use datafusion_expr::{ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use datafusion_macros::user_doc;

use crate::spans::named;

/// `speedup(base_time, time)`. Shape: one `DOUBLE` per row.
#[user_doc(
    doc_section(label = "Scaling"),
    description = "How many times as fast: base_time ÷ time.\n\n\
        Rows: one per row. Units: two times of the same unit in, a ratio out; 1 is as fast as the base, 2 twice as fast.\n\n\
        NULL gives NULL, and so does a time that is not above 0. Errors: text. Cost: O(1).\n\n\
        Source: Amdahl 1967.",
    syntax_example = "speedup(base_time, time)",
    sql_example = "SELECT cores, speedup(100, time) AS speedup FROM (VALUES (1, 100), (4, 40)) AS runs(cores, time)",
    argument(name = "base_time", description = "Time of the base (BIGINT or DOUBLE)."),
    argument(name = "time", description = "Time that is compared (BIGINT or DOUBLE).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Speedup {
    signature: Signature,
}

/// `efficiency(base_time, base_cores, time, cores)`. Shape: one `DOUBLE` per row.
#[user_doc(
    doc_section(label = "Scaling"),
    description = "Which share of additional cores pays off: (base_time × base_cores) ÷ (time × cores).\n\n\
        Rows: one per row. Units: two times of the same unit and two numbers of cores in, a ratio out; 1 is a program that \
        scales perfectly from the base on, more than 1 superlinear. With a base of one core it is speedup ÷ cores.\n\n\
        NULL gives NULL, and so does a time or a number of cores that is not above 0. Errors: text. Cost: O(1).\n\n\
        Source: parallel efficiency, Kumar and others, Introduction to Parallel Computing.",
    syntax_example = "efficiency(base_time, base_cores, time, cores)",
    sql_example = "SELECT cores, efficiency(100, 1, time, cores) AS efficiency\n\
        FROM (VALUES (1, 100), (4, 40)) AS runs(cores, time)",
    argument(name = "base_time", description = "Time of the base (BIGINT or DOUBLE)."),
    argument(name = "base_cores", description = "Cores of the base (BIGINT or DOUBLE)."),
    argument(name = "time", description = "Time that is compared (BIGINT or DOUBLE)."),
    argument(name = "cores", description = "Cores that took that time (BIGINT or DOUBLE).")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Efficiency {
    signature: Signature,
}

/// The SQL interface of a function of doubles: its name, its parameters, and its computation on the values of a row.
macro_rules! of_doubles {
    ($function:ident, $name:literal, $parameters:expr, $evaluate:expr) => {
        impl $function {
            /// The function.
            pub fn new() -> Self {
                let types = vec![DataType::Float64; $parameters.len()];
                $function { signature: named(Signature::exact(types, Volatility::Immutable), &$parameters) }
            }
        }

        impl Default for $function {
            fn default() -> Self {
                Self::new()
            }
        }

        impl ScalarUDFImpl for $function {
            fn name(&self) -> &str {
                $name
            }

            fn signature(&self) -> &Signature {
                &self.signature
            }

            fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
                Ok(DataType::Float64)
            }

            fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
                row_by_row(&args, $evaluate)
            }

            fn documentation(&self) -> Option<&Documentation> {
                self.doc()
            }
        }
    };
}

of_doubles!(Speedup, "speedup", ["base_time", "time"], |values| speedup(values[0], values[1]));
of_doubles!(Efficiency, "efficiency", ["base_time", "base_cores", "time", "cores"], |values| {
    speedup(values[0] * values[1], values[2] * values[3]).filter(|_| values[1] > 0.0 && values[3] > 0.0)
});

/// How many times as fast; nothing when one of the times is not above 0.
pub fn speedup(base_time: f64, time: f64) -> Option<f64> {
    (base_time > 0.0 && time > 0.0).then(|| base_time / time)
}

fn row_by_row(args: &ScalarFunctionArgs, evaluate: impl Fn(&[f64]) -> Option<f64>) -> Result<ColumnarValue> {
    let all_scalars = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
    let rows = if all_scalars { 1 } else { args.number_rows };
    let arrays = args.args.iter().map(|value| value.to_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
    let columns: Option<Vec<&Float64Array>> =
        arrays.iter().map(|array| array.as_primitive_opt::<Float64Type>()).collect();
    let Some(columns) = columns else {
        return internal_err!(
            "doubles are expected, found {:?}",
            arrays.iter().map(Array::data_type).collect::<Vec<_>>()
        );
    };
    let mut values = vec![0.0; columns.len()];
    let of_row = |row: usize| {
        for (value, column) in values.iter_mut().zip(&columns) {
            *value = if column.is_valid(row) { column.value(row) } else { return None };
        }
        evaluate(&values)
    };
    let answers: Float64Array = (0..rows).map(of_row).collect();
    if all_scalars {
        return Ok(ColumnarValue::Scalar(datafusion_common::ScalarValue::try_from_array(&answers, 0)?));
    }
    Ok(ColumnarValue::Array(Arc::new(answers)))
}
