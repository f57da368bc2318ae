//! `checked_add`, `checked_subtract`, `checked_multiply`, `checked_negate`: operators on integers that end in an error
//! instead of wrapping.
//!
//! Nobody needs to write them: the engine puts them where a query says `a + b` with integers of one type. They take and
//! return that type, so types in the plan do not change; their schema name is that of the operator, so neither do
//! column names.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Datum, Scalar, new_empty_array};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, Field, FieldRef,
};
use arrow::error::ArrowError;
use datafusion_common::{Result, ScalarValue, exec_err, internal_err, plan_err};
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion_macros::user_doc;

use super::quotients;
use crate::spans::named;
use crate::ticks::{is_time, time_metadata};

/// `checked_add(a, b)`: what `a + b` is for integers. Shape: one integer of the arguments' type per row.
#[user_doc(
    doc_section(label = "Checked arithmetic"),
    description = "Sum of two integers, or an error when it does not fit: what `a + b` does.\n\n\
        Rows: one per row. Units: a time plus a number or a time is a time. NULL gives NULL.\n\n\
        Errors: an integer overflow, with the numbers. Cost: O(1).\n\n\
        Source: SQL:2023 asks for an error (22003) where the engine underneath wraps.",
    syntax_example = "checked_add(a, b)",
    sql_example = "SELECT checked_add(40, 2) AS the_function, 40 + 2 AS the_operator",
    argument(name = "a", description = "An integer."),
    argument(name = "b", description = "An integer of the same type.")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CheckedAdd {
    signature: Signature,
}

/// `checked_subtract(a, b)`: what `a - b` is for integers. Shape: one integer of the arguments' type per row.
#[user_doc(
    doc_section(label = "Checked arithmetic"),
    description = "Difference of two integers, or an error when it does not fit: what `a - b` does.\n\n\
        Rows: one per row. Units: a time minus a number or a time is a time. NULL gives NULL.\n\n\
        Errors: an integer overflow, with the numbers. Cost: O(1).\n\n\
        Source: SQL:2023 asks for an error (22003) where the engine underneath wraps.",
    syntax_example = "checked_subtract(a, b)",
    sql_example = "SELECT checked_subtract(44, 2) AS the_function, 44 - 2 AS the_operator",
    argument(name = "a", description = "An integer."),
    argument(name = "b", description = "An integer of the same type.")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CheckedSubtract {
    signature: Signature,
}

/// `checked_multiply(a, b)`: what `a * b` is for integers. Shape: one integer of the arguments' type per row.
#[user_doc(
    doc_section(label = "Checked arithmetic"),
    description = "Product of two integers, or an error when it does not fit: what `a * b` does.\n\n\
        Rows: one per row. Units: a time times a number is a time. NULL gives NULL.\n\n\
        Errors: an integer overflow, with the numbers. Cost: O(1).\n\n\
        Source: SQL:2023 asks for an error (22003) where the engine underneath wraps.",
    syntax_example = "checked_multiply(a, b)",
    sql_example = "SELECT checked_multiply(6, 7) AS the_function, 6 * 7 AS the_operator",
    argument(name = "a", description = "An integer."),
    argument(name = "b", description = "An integer of the same type.")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CheckedMultiply {
    signature: Signature,
}

/// `checked_negate(a)`: what `-a` is. Shape: one value of the argument's type per row.
#[user_doc(
    doc_section(label = "Checked arithmetic"),
    description = "Negative of a number or an interval, or an error when it does not fit: what `-a` does.\n\n\
        Rows: one per row. Units: the negative of a time is a time. NULL gives NULL.\n\n\
        Errors: an integer overflow: the least integer has no negative. Cost: O(1).\n\n\
        Source: SQL:2023 asks for an error (22003) where the engine underneath wraps.",
    syntax_example = "checked_negate(a)",
    sql_example = "SELECT checked_negate(a) AS the_function, -a AS the_operator FROM (VALUES (42)) AS t(a)",
    argument(name = "a", description = "A number or an interval.")
)]
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CheckedNegate {
    signature: Signature,
}

/// How two arguments make a result.
pub(super) struct Operator {
    function: &'static str,
    pub(super) symbol: &'static str,
    kernel: fn(&dyn Datum, &dyn Datum) -> std::result::Result<ArrayRef, ArrowError>,
    /// Whether the result is a time, when the left and the right argument are.
    is_time: fn(bool, bool) -> bool,
    /// Nothing wraps, so the result is ordered as it would be over all whole numbers.
    order: fn(&SortProperties, &SortProperties) -> SortProperties,
}

pub(super) const ADD: Operator = Operator {
    function: "checked_add",
    symbol: "+",
    kernel: numeric::add,
    is_time: |left, right| left || right,
    order: SortProperties::add,
};

pub(super) const SUBTRACT: Operator = Operator {
    function: "checked_subtract",
    symbol: "-",
    kernel: numeric::sub,
    // A number minus a time is as odd as it looks, and still counts ticks.
    is_time: |left, right| left || right,
    order: SortProperties::sub,
};

/// Of decimals only: `x / y` of integers is checked by DataFusion.
pub(super) const DIVIDE: Operator = Operator {
    function: "checked_divide",
    symbol: "/",
    kernel: quotients::rounded,
    is_time: |_, _| false,
    order: |_, _| SortProperties::Unordered,
};

/// Of decimals only.
pub(super) const REMAINDER: Operator = Operator {
    function: "checked_remainder",
    symbol: "%",
    kernel: quotients::remainders,
    is_time: |_, _| false,
    order: |_, _| SortProperties::Unordered,
};

pub(super) const MULTIPLY: Operator = Operator {
    function: "checked_multiply",
    symbol: "*",
    kernel: numeric::mul,
    is_time: |left, right| left != right,
    // Depends on signs, which are not known.
    order: |left, right| match (left, right) {
        (SortProperties::Singleton, SortProperties::Singleton) => SortProperties::Singleton,
        _ => SortProperties::Unordered,
    },
};

/// The SQL interface of an operator on two integers.
macro_rules! on_two_integers {
    ($function:ident, $operator:expr) => {
        impl $function {
            /// The function.
            pub fn new() -> Self {
                $function { signature: named(Signature::user_defined(Volatility::Immutable), &["a", "b"]) }
            }
        }

        impl Default for $function {
            fn default() -> Self {
                Self::new()
            }
        }

        impl ScalarUDFImpl for $function {
            fn name(&self) -> &str {
                $operator.function
            }

            // As the operator is called, so that rewriting it renames no column.
            fn schema_name(&self, args: &[Expr]) -> Result<String> {
                let [left, right] = args else { return internal_err!("{} takes two arguments", $operator.function) };
                Ok(format!("{} {} {}", left.schema_name(), $operator.symbol, right.schema_name()))
            }

            fn signature(&self) -> &Signature {
                &self.signature
            }

            fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
                integers($operator.function, types, 2)
            }

            fn return_type(&self, types: &[DataType]) -> Result<DataType> {
                match types {
                    [left, _] => Ok(left.clone()),
                    _ => internal_err!("{} takes two arguments", $operator.function),
                }
            }

            fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
                $operator.field(args.arg_fields)
            }

            fn is_strict(&self) -> bool {
                true
            }

            fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
                $operator.apply(&args)
            }

            fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
                match inputs {
                    [left, right] => Ok(($operator.order)(&left.sort_properties, &right.sort_properties)),
                    _ => Ok(SortProperties::Unordered),
                }
            }

            fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
                any_of_the_type(inputs)
            }

            fn documentation(&self) -> Option<&Documentation> {
                self.doc()
            }
        }
    };
}

on_two_integers!(CheckedAdd, ADD);
on_two_integers!(CheckedSubtract, SUBTRACT);
on_two_integers!(CheckedMultiply, MULTIPLY);

impl CheckedNegate {
    /// The function.
    pub fn new() -> Self {
        CheckedNegate { signature: named(Signature::user_defined(Volatility::Immutable), &["a"]) }
    }
}

impl Default for CheckedNegate {
    fn default() -> Self {
        Self::new()
    }
}

impl ScalarUDFImpl for CheckedNegate {
    fn name(&self) -> &str {
        "checked_negate"
    }

    // As DataFusion calls the operator, so that rewriting it renames no column.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [argument] => Ok(format!("(- {})", argument.schema_name())),
            _ => internal_err!("checked_negate takes one argument"),
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        use DataType::{Duration, Interval};
        match types {
            [other] if other.is_floating() || other.is_decimal() => Ok(vec![other.clone()]),
            [length @ (Interval(_) | Duration(_))] => Ok(vec![length.clone()]),
            _ => integers(self.name(), types, 1),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [argument] => Ok(argument.clone()),
            _ => internal_err!("checked_negate takes one argument"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let [argument] = args.arg_fields else { return internal_err!("checked_negate takes one argument") };
        Ok(result_field(self.name(), argument.data_type(), argument.is_nullable(), is_time(argument)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = args.args.as_slice() else { return internal_err!("checked_negate takes one argument") };
        let negated = match argument {
            ColumnarValue::Array(array) => numeric::neg(array).map(ColumnarValue::Array),
            ColumnarValue::Scalar(value) => match numeric::neg(&value.to_array()?) {
                Ok(array) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
                Err(error) => Err(error),
            },
        };
        match negated {
            Err(ArrowError::ArithmeticOverflow(numbers)) => {
                let number = shortened(&numbers).trim_start_matches("- ");
                exec_err!("integer overflow in -{}: -({number})", argument_text(&args, 0))
            }
            other => Ok(other?),
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(inputs.first().map_or(SortProperties::Unordered, |argument| -argument.sort_properties))
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        any_of_the_type(inputs)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.doc()
    }
}

/// No bounds, but a type: the planner compares bounds to find out in which order `abs(a - b)` is, and needs one for that.
pub(crate) fn any_of_the_type(inputs: &[&Interval]) -> Result<Interval> {
    let known = inputs.iter().map(|input| input.data_type()).find(|data_type| data_type != &DataType::Null);
    Interval::make_unbounded(&known.unwrap_or(DataType::Int64))
}

impl Operator {
    pub(super) fn field(&self, arguments: &[FieldRef]) -> Result<FieldRef> {
        let [left, right] = arguments else { return internal_err!("{} takes two arguments", self.function) };
        let is_time = (self.is_time)(is_time(left), is_time(right));
        let nullable = left.is_nullable() || right.is_nullable();
        if left.data_type().is_decimal() {
            let none = |field: &FieldRef| new_empty_array(field.data_type());
            let result = (self.kernel)(&none(left), &none(right))?;
            return Ok(result_field(self.function, result.data_type(), nullable, false));
        }
        Ok(result_field(self.function, left.data_type(), nullable, is_time))
    }

    fn apply(&self, args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return internal_err!("{} takes two arguments", self.function);
        };
        self.join(left, right, || (argument_text(args, 0), argument_text(args, 1)))
    }

    /// `names` are what the sides are called in an error.
    pub(super) fn join(
        &self,
        left: &ColumnarValue,
        right: &ColumnarValue,
        names: impl FnOnce() -> (String, String),
    ) -> Result<ColumnarValue> {
        let result = (self.kernel)(datum(left)?.as_ref(), datum(right)?.as_ref());
        let array = match result.and_then(|array| within_digits(&array).map(|()| array)) {
            Err(ArrowError::ArithmeticOverflow(_)) if left.data_type().is_decimal() => {
                let (a, b) = names();
                let digits = match left.data_type() {
                    DataType::Decimal256(..) => DECIMAL256_MAX_PRECISION,
                    _ => DECIMAL128_MAX_PRECISION,
                };
                return exec_err!("too many digits in {a} {} {b}: the result has more than {digits}", self.symbol);
            }
            Err(ArrowError::ArithmeticOverflow(numbers)) => {
                let (a, b) = names();
                return exec_err!("integer overflow in {a} {} {b}: {}", self.symbol, shortened(&numbers));
            }
            other => other?,
        };
        match (left, right) {
            (ColumnarValue::Scalar(_), ColumnarValue::Scalar(_)) => {
                ScalarValue::try_from_array(&array, 0).map(ColumnarValue::Scalar)
            }
            _ => Ok(ColumnarValue::Array(array)),
        }
    }
}

/// An error if a decimal has more digits than its type: arrow's operators look at the bits alone, and what is read of such a number later
/// lacks its last digit.
fn within_digits(array: &ArrayRef) -> std::result::Result<(), ArrowError> {
    let fits = match *array.data_type() {
        DataType::Decimal128(digits, _) => array.as_primitive::<Decimal128Type>().validate_decimal_precision(digits),
        DataType::Decimal256(digits, _) => array.as_primitive::<Decimal256Type>().validate_decimal_precision(digits),
        _ => Ok(()),
    };
    fits.map_err(|error| ArrowError::ArithmeticOverflow(error.to_string()))
}

fn datum(value: &ColumnarValue) -> Result<Box<dyn Datum>> {
    Ok(match value {
        ColumnarValue::Array(array) => Box::new(Arc::clone(array)),
        ColumnarValue::Scalar(value) => Box::new(Scalar::new(value.to_array()?)),
    })
}

fn result_field(name: &str, data_type: &DataType, nullable: bool, is_time: bool) -> FieldRef {
    let field = Field::new(name, data_type.clone(), nullable);
    Arc::new(if is_time && data_type == &DataType::Int64 { field.with_metadata(time_metadata()) } else { field })
}

/// What an argument is called in an error: its column, or its value.
pub(super) fn argument_text(args: &ScalarFunctionArgs, index: usize) -> String {
    match (&args.args[index], args.arg_fields.get(index)) {
        (ColumnarValue::Scalar(value), _) => value.to_string(),
        (_, Some(field)) if !field.name().is_empty() => field.name().clone(),
        _ => "…".to_owned(),
    }
}

/// The numbers of arrow's message `Overflow happened on: 1 + 2`.
fn shortened(message: &str) -> &str {
    message.strip_prefix("Overflow happened on: ").unwrap_or(message)
}

/// Integers of one type stay; mixed ones meet in `BIGINT`.
fn integers(function: &str, types: &[DataType], count: usize) -> Result<Vec<DataType>> {
    if types.len() != count {
        return plan_err!("{function} takes {count} integers, found {} arguments", types.len());
    }
    if let Some(other) = types.iter().find(|given| !given.is_integer() && **given != DataType::Null) {
        return plan_err!("{function} takes integers, found {other}");
    }
    let first = &types[0];
    let all_equal = types.iter().all(|given| given == first) && *first != DataType::Null;
    Ok(vec![if all_equal { first.clone() } else { DataType::Int64 }; count])
}
