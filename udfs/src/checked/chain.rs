//! `a + b - c + …` as one function: a long chain of checked operators from left to right, and operators on decimals, which have no function
//! that a query could name.
//!
//! As nested calls, a chain of n terms is n calls deep. Each planning step asks each call for its type and name, and the
//! call in turn asks all calls below it, so that the time grows with n³: 500 terms took seconds. One call with n arguments
//! is asked once. It computes what the nested calls would, in the same order and with the same errors.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result, internal_datafusion_err};
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::{ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use super::arithmetic::{ADD, DIVIDE, MULTIPLY, Operator, REMAINDER, SUBTRACT, any_of_the_type, argument_text};

/// Which operator stands between two terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Link {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`, of decimals
    Divide,
    /// `%`, of decimals
    Remainder,
}

impl Link {
    fn operator(self) -> &'static Operator {
        match self {
            Link::Add => &ADD,
            Link::Subtract => &SUBTRACT,
            Link::Multiply => &MULTIPLY,
            Link::Divide => &DIVIDE,
            Link::Remainder => &REMAINDER,
        }
    }
}

/// Integers of one type, or decimals, joined from left to right. The engine makes it; it has no name that a query could call.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct CheckedChain {
    signature: Signature,
    links: Vec<Link>,
}

impl CheckedChain {
    /// A chain with these operators, and one more term than operators.
    pub fn new(links: Vec<Link>) -> Self {
        CheckedChain { signature: Signature::variadic_any(Volatility::Immutable), links }
    }

    /// The result of the chain over what each term has.
    fn fold<T: Clone>(&self, terms: &[T], step: impl Fn(&'static Operator, &T, &T) -> Result<T>) -> Result<T> {
        let (first, rest) = terms.split_first().ok_or_else(|| internal_datafusion_err!("a chain without terms"))?;
        let joined = self.links.iter().zip(rest);
        joined.into_iter().try_fold(first.clone(), |left, (link, right)| step(link.operator(), &left, right))
    }
}

impl ScalarUDFImpl for CheckedChain {
    fn name(&self) -> &str {
        "checked_chain"
    }

    // As DataFusion calls the operators, so that rewriting them renames no column.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let mut name = args.first().map(|first| first.schema_name().to_string()).unwrap_or_default();
        for (link, term) in self.links.iter().zip(args.iter().skip(1)) {
            name += &format!(" {} {}", link.operator().symbol, term.schema_name());
        }
        Ok(name)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let fields: Vec<FieldRef> = types.iter().map(|kind| Arc::new(Field::new("", kind.clone(), true))).collect();
        self.fold(&fields, |operator, left, right| operator.field(&[Arc::clone(left), Arc::clone(right)]))
            .map(|field| field.data_type().clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.fold(args.arg_fields, |operator, left, right| operator.field(&[Arc::clone(left), Arc::clone(right)]))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let name = |at| if self.links.len() == 1 { argument_text(&args, at) } else { "…".to_owned() };
        self.fold(&args.args, |operator, left, right| operator.join(left, right, || (name(0), name(1))))
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        any_of_the_type(inputs)
    }
}
