//! Texts beside times in `coalesce`, `greatest` and `least`: `coalesce(interval, '2 days')` takes the text for an interval, as
//! PostgreSQL does and as CASE does. DataFusion (55.2) refuses some of them.
//!
//! Cost: that of the function that is wrapped.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::Result;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::wrapped::of_wrapped;

/// The functions that are wrapped.
pub const BESIDE_TIMES: [&str; 3] = ["coalesce", "greatest", "least"];

/// The same function, which casts texts beside times to these.
pub fn beside_times(function: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::from(BesideTimes { function })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BesideTimes {
    function: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for BesideTimes {
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match time_of(types) {
            Some(time) => Ok(vec![time; types.len()]),
            None => self.function.coerce_types(types),
        }
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef>;
        fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue>;
        fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult>;
        fn short_circuits(&self) -> bool;
        fn documentation(&self) -> Option<&Documentation>;
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.function.conditional_arguments(args)
    }
}

/// The one type of time among texts and NULLs.
fn time_of(types: &[DataType]) -> Option<DataType> {
    let is_text = |data_type: &DataType| data_type.is_string();
    let mut times = types.iter().filter(|data_type| !is_text(data_type) && !data_type.is_null());
    let first = times.next()?;
    let is_time = matches!(
        first,
        DataType::Interval(_)
            | DataType::Date32
            | DataType::Date64
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(..)
    );
    let is_mixed = types.iter().any(is_text) && times.all(|other| other == first);
    (is_time && is_mixed).then(|| first.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{IntervalUnit, TimeUnit};

    #[test]
    fn one_time_among_texts_is_the_type_of_all() {
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let time = DataType::Time64(TimeUnit::Nanosecond);
        let text = DataType::Utf8;
        assert_eq!(time_of(&[interval.clone(), text.clone()]), Some(interval.clone()));
        assert_eq!(time_of(&[DataType::Null, text.clone(), time.clone()]), Some(time.clone()));
        assert_eq!(time_of(&[interval, text.clone(), time.clone()]), None);
        assert_eq!(time_of(&[time.clone(), time]), None);
        assert_eq!(time_of(&[text, DataType::Int64]), None);
        assert_eq!(time_of(&[]), None);
    }
}
