//! Times that become coarser do so downwards: DataFusion (55.2) cuts them towards 1970.
//!
//! ```text
//! CAST(TIMESTAMP '1969-12-31 23:59:59.2' AS TIMESTAMP(0))    was 1970-01-01T00:00:00
//! date_trunc('millisecond', …), to_unixtime(…), arrow_cast(…)  likewise
//! ```

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::datetime::date_bin;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, TryCast, lit};

/// Brings a time down to the unit that it is cast or cut to, before that is done.
pub(super) fn downwards(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let to = match &expr {
        Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => unit_of(field.data_type()),
        Expr::ScalarFunction(call) => match call.name() {
            "arrow_cast" | "arrow_try_cast" => unit_of(&expr.get_type(schema)?),
            "to_unixtime" => Some(TimeUnit::Second),
            "date_trunc" => match call.args.first() {
                Some(Expr::Literal(part, _)) => part.try_as_str().flatten().and_then(unit_called),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    };
    let Some(to) = to else { return Ok(Transformed::no(expr)) };
    let value = match &mut expr {
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => Some(expr.as_mut()),
        Expr::ScalarFunction(call) if call.name() == "date_trunc" => call.args.get_mut(1),
        Expr::ScalarFunction(call) => call.args.first_mut(),
        _ => None,
    };
    let Some(value) = value else { return Ok(Transformed::no(expr)) };
    let is_done = matches!(&*value, Expr::ScalarFunction(call) if call.name() == "date_bin");
    let is_finer = unit_of(&value.get_type(schema)?).is_some_and(|from| nanoseconds(from) < nanoseconds(to));
    if is_done || !is_finer {
        return Ok(Transformed::no(expr));
    }
    let unit = lit(ScalarValue::new_interval_mdn(0, 0, nanoseconds(to)));
    *value = date_bin().call(vec![unit, std::mem::take(value)]);
    Ok(Transformed::yes(expr))
}

fn unit_of(data_type: &DataType) -> Option<TimeUnit> {
    match data_type {
        DataType::Timestamp(unit, _) => Some(*unit),
        _ => None,
    }
}

/// Units that are cut by division; of longer ones, from the second on, the calendar is asked.
fn unit_called(part: &str) -> Option<TimeUnit> {
    match part.to_lowercase().as_str() {
        "millisecond" => Some(TimeUnit::Millisecond),
        "microsecond" => Some(TimeUnit::Microsecond),
        _ => None,
    }
}

fn nanoseconds(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    }
}
