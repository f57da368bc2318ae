//! A function that returns its argument, with other properties for the planner.
//!
//! DataFusion derives from an expression whether it may be NULL, which columns determine it, and its name. Where it derives something
//! wrong, the rules of this folder put [`itself`] around the expression: the value stays, and [`Said`] replaces the derived property.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tq_udfs::arguments::without_what_was;

/// What is said of a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Said {
    /// Nothing but its type and name: it is no column, and determines none.
    NoColumn,
    /// As [`Said::NoColumn`]; and it is another value than those of other numbers.
    Another(usize),
    /// It may be NULL, whatever could be concluded.
    MayBeNull,
    /// This is its field's metadata.
    Metadata(BTreeMap<String, String>),
    /// Its name stands between these words.
    Between(String, String),
}

/// A value of which this is said.
pub(super) fn itself(value: Expr, said: Said) -> Expr {
    ScalarUDF::from(Itself::new(Volatility::Immutable, said)).call(vec![value])
}

/// [`itself`] of a value that is not computed while planning, which would forget what was said.
pub(super) fn kept(value: Expr, said: Said) -> Expr {
    ScalarUDF::from(Itself::new(Volatility::Volatile, said)).call(vec![value])
}

/// The functions of [`itself`] whose names say all that they say.
#[cfg(feature = "cluster")]
pub(super) fn named() -> [ScalarUDF; 2] {
    [Said::NoColumn, Said::MayBeNull].map(|said| ScalarUDF::from(Itself::new(Volatility::Immutable, said)))
}

/// Whether a function is [`itself`].
pub(super) fn is_itself(function: &ScalarUDF) -> Option<&Said> {
    function.inner().downcast_ref::<Itself>().map(|itself| &itself.said)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Itself {
    name: String,
    signature: Signature,
    said: Said,
}

impl Itself {
    fn new(volatility: Volatility, said: Said) -> Itself {
        let name = match &said {
            Said::NoColumn | Said::Another(_) => "itself".to_owned(),
            Said::MayBeNull => "nullable".to_owned(),
            Said::Metadata(_) => "told".to_owned(),
            // The names of FILTER and ORDER BY are made of the function's own.
            Said::Between(begin, end) => format!("{begin}marked{end}"),
        };
        Itself { name, signature: Signature::any(1, volatility), said }
    }
}

impl ScalarUDFImpl for Itself {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [value] = args else { return internal_err!("{} has one argument", self.name()) };
        Ok(match &self.said {
            Said::Between(begin, end) => format!("{begin}{}{end}", value.schema_name()),
            _ => format!("{}({})", self.name(), value.schema_name()),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        types.first().cloned().map_or_else(|| internal_err!("{} has one argument", self.name()), Ok)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let [field] = args.arg_fields else { return internal_err!("{} has one argument", self.name()) };
        Ok(match &self.said {
            Said::NoColumn | Said::Another(_) | Said::Between(..) => Arc::clone(field),
            Said::MayBeNull => Arc::new(field.as_ref().clone().with_nullable(true)),
            Said::Metadata(metadata) => {
                Arc::new(field.as_ref().clone().with_metadata(metadata.clone().into_iter().collect()))
            }
        })
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.pop() else { return internal_err!("{} has one argument", self.name()) };
        // A CASE that is NULL has the list of its branch beneath.
        if self.said == Said::MayBeNull && value.data_type().is_nested() { without_what_was(value) } else { Ok(value) }
    }
}
