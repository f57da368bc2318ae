//! Makes `lag` and `lead` take any constant as a distance, and a default of another type.
//!
//! DataFusion (55.2) casts the default to the type of the value (`lag(n, 1, 0.5)` gives 0), and takes a NULL distance for 0. Here, as in
//! PostgreSQL, value and default get their common type, and a NULL distance gives NULL. [`shifted`] wraps one of them; everything else is
//! delegated.

use std::sync::Arc;

use arrow::array::{ArrayRef, new_null_array};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue, exec_err, plan_err};
use datafusion_expr::function::{ExpressionArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion_expr::type_coercion::binary::type_union_coercion;
use datafusion_expr::{
    Documentation, LimitEffect, PartitionEvaluator, ReversedUDWF, Signature, Volatility, WindowUDF, WindowUDFImpl,
};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Literal;

use crate::wrapped::of_wrapped;

/// The names of DataFusion's functions that [`shifted`] wraps.
pub const SHIFTS: [&str; 2] = ["lag", "lead"];

/// The same function, whose value and default have one type.
pub fn shifted(function: Arc<WindowUDF>) -> WindowUDF {
    let parameters = ["expr", "offset", "default"].map(str::to_owned).to_vec();
    let signature = Signature::user_defined(Volatility::Immutable);
    let signature = signature.clone().with_parameter_names(parameters).unwrap_or(signature);
    WindowUDF::from(Shifted { function, signature })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Shifted {
    function: Arc<WindowUDF>,
    signature: Signature,
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, words) => words.is_string(),
        other => other.is_string(),
    }
}

impl WindowUDFImpl for Shifted {
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        let distance = |given: &DataType| match given {
            DataType::Null => Ok(DataType::Int64),
            given if given.is_integer() => Ok(given.clone()),
            other => plan_err!("`{name}` looks back or ahead by a whole number of rows, found {other}"),
        };
        match types {
            [value] => Ok(vec![value.clone()]),
            [value, rows] => Ok(vec![value.clone(), distance(rows)?]),
            [value, rows, default] => {
                // Texts in a dictionary are texts.
                let common = if value == default || default.is_null() {
                    Some(value.clone())
                } else if default.is_string() && (value.is_string() || !is_text(value)) {
                    // A text beside numbers and times is read as one of them.
                    Some(value.clone())
                } else {
                    type_union_coercion(value, default)
                        .filter(|common| is_text(common) == is_text(value) || value.is_null())
                };
                match common {
                    Some(common) => Ok(vec![common.clone(), distance(rows)?, common]),
                    None => plan_err!("`{name}` has values of {value}, and a default of {default}"),
                }
            }
            _ => plan_err!("`{name}` takes a value, a number of rows and a default, found {} arguments", types.len()),
        }
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let constant = |at: usize| args.input_exprs().get(at).map(|expr| expr.downcast_ref::<Literal>());
        match constant(1) {
            Some(None) => {
                return exec_err!(
                    "`{}` looks back or ahead by as many rows everywhere: a number, and no column",
                    self.name()
                );
            }
            Some(Some(rows)) if rows.value().is_null() => {
                let value = args.input_fields().first().map_or(DataType::Null, |field| field.data_type().clone());
                return Ok(Box::new(NoDistance(value)));
            }
            _ => {}
        }
        if let Some(None) = constant(2) {
            return exec_err!(
                "the default of `{}` is one value for all rows here: `coalesce` takes a column",
                self.name()
            );
        }
        self.function.partition_evaluator_factory(args)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.function.reverse_expr() {
            ReversedUDWF::Reversed(function) => ReversedUDWF::Reversed(Arc::new(shifted(function))),
            other => other,
        }
    }

    fn limit_effect(&self, args: &[Arc<dyn PhysicalExpr>]) -> LimitEffect {
        self.function.inner().limit_effect(args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    of_wrapped! {
        fn name(&self) -> &str;
        fn aliases(&self) -> &[String];
        fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef>;
        fn expressions(&self, args: ExpressionArgs) -> Vec<Arc<dyn PhysicalExpr>>;
        fn sort_options(&self) -> Option<SortOptions>;
        fn documentation(&self) -> Option<&Documentation>;
    }
}

/// The answer for a NULL distance: NULLs of this type.
#[derive(Debug)]
struct NoDistance(DataType);

impl PartitionEvaluator for NoDistance {
    fn evaluate_all(&mut self, _: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        Ok(new_null_array(&self.0, rows))
    }

    fn evaluate(&mut self, _: &[ArrayRef], _: &std::ops::Range<usize>) -> Result<ScalarValue> {
        ScalarValue::try_from(&self.0)
    }
}
