//! `round`, `ceil` and `floor` of DECIMALs, whose types are settled when a query is planned.
//!
//! DataFusion's (55.2) `round(n, 1)` of a DECIMAL(12, 2) is a DECIMAL(12, 1) where it sees that the places are a constant, and a
//! DECIMAL(13, 2) where it does not. It sees that in the query's text, no more below the cast to INT that it adds itself, and again when
//! that is folded: CASE, IN, joins and comparisons were given their types on the way. [`settled`] looks once. `ceil(9.99)` is 10, which
//! has a digit more than its argument's type: the result's type has it too.
//!
//! Cost: that of the function that is wrapped.

use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, FieldRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::wrapped::of_wrapped;

/// The functions whose result has a digit more than their argument.
pub const WIDER: [&str; 2] = ["ceil", "floor"];

/// `round`, whose type [`settled`] settles.
pub fn to_places(function: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::from(ToPlaces { function, places: Places::Unsettled })
}

/// One of [`WIDER`], whose results fit.
pub fn wider(function: Arc<ScalarUDF>) -> ScalarUDF {
    ScalarUDF::from(Wider { function })
}

/// A call of [`to_places`] whose type no longer depends on what becomes of its arguments; `None`: any other call, or one that is settled.
pub fn settled(call: &ScalarFunction) -> Option<ScalarFunction> {
    let function = call.func.inner().downcast_ref::<ToPlaces>()?;
    if function.places != Places::Unsettled {
        return None;
    }
    let places = match call.args.get(1) {
        None => return None,
        Some(Expr::Literal(places, _)) => Places::Constant(places.clone()),
        Some(_) => Places::OfRows,
    };
    let settled = ToPlaces { function: Arc::clone(&function.function), places };
    Some(ScalarFunction::new_udf(Arc::new(ScalarUDF::from(settled)), call.args.clone()))
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Places {
    Unsettled,
    Constant(ScalarValue),
    /// Each row says how many.
    OfRows,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ToPlaces {
    function: Arc<ScalarUDF>,
    places: Places,
}

impl ScalarUDFImpl for ToPlaces {
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let places = match &self.places {
            Places::Unsettled => return self.function.return_field_from_args(args),
            Places::Constant(places) => Some(places),
            Places::OfRows => None,
        };
        let own = ReturnFieldArgs { arg_fields: args.arg_fields, scalar_arguments: &[None, places] };
        self.function.return_field_from_args(own)
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn return_type(&self, types: &[DataType]) -> Result<DataType>;
        fn is_strict(&self) -> bool;
        fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue>;
        fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties>;
        fn documentation(&self) -> Option<&Documentation>;
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Wider {
    function: Arc<ScalarUDF>,
}

/// The type of results over that of arguments.
fn with_a_digit_more(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Decimal128(digits, scale @ 1..) if *digits < DECIMAL128_MAX_PRECISION => {
            Some(DataType::Decimal128(digits + 1, *scale))
        }
        _ => None,
    }
}

impl ScalarUDFImpl for Wider {
    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [only] if let Some(wider) = with_a_digit_more(only) => Ok(wider),
            _ => self.function.return_type(types),
        }
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let [value] = args.args.as_mut_slice()
            && let Some(wider) = with_a_digit_more(&value.data_type())
        {
            *value = value.cast_to(&wider, None)?;
            if let [field] = args.arg_fields.as_mut_slice() {
                *field = Arc::new(field.as_ref().clone().with_data_type(wider));
            }
        }
        self.function.invoke_with_args(args)
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn signature(&self) -> &Signature;
        fn is_strict(&self) -> bool;
        fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties>;
        fn documentation(&self) -> Option<&Documentation>;
    }
}
