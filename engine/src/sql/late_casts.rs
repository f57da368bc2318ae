//! Casts of texts that fail when a row is computed, not when the plan is made.
//!
//! DataFusion (55.2) folds `CAST('abc' AS BIGINT)` while it plans, and refuses the statement, although no row may ask for it: in a branch of
//! CASE that is not taken, behind AND, or above a filter that keeps no such row. Where a column is a constant, as in a branch of
//! UNION ALL, all of that is written with columns. What is cast by a function is left alone when it fails, as other functions are.
//!
//! A text that is written out below a cast, and guarded by nothing, is still refused at once.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};

use crate::sql::postgres_texts::is_text;
use crate::sql::stack::grown;

/// Casts by functions, where a constant that no row asks for would be an error. `is_guarded`: something decides whether it is computed.
pub(super) fn by_functions(expr: Expr, schema: &DFSchema, is_guarded: bool) -> Result<Expr> {
    let guards = match &expr {
        Expr::Case(_) => true,
        Expr::BinaryExpr(BinaryExpr { op, .. }) => matches!(op, Operator::And | Operator::Or),
        Expr::ScalarFunction(call) => call.func.short_circuits(),
        _ => false,
    };
    let within = is_guarded || guards;
    let expr = grown(|| expr.map_children(|child| by_functions(child, schema, within).map(Transformed::yes))).data()?;
    let Expr::Cast(Cast { expr: value, field }) = expr else { return Ok(expr) };
    let to = field.data_type().clone();
    let fails = !to.is_string() && !matches!(to, DataType::Dictionary(..)) && is_text(&value.get_type(schema)?);
    if !fails || (!is_guarded && is_constant(&value)) {
        return Ok(Expr::Cast(Cast { expr: value, field }));
    }
    Ok(ScalarUDF::from(OfText { to, signature: Signature::any(1, Volatility::Immutable) }).call(vec![*value]))
}

fn is_constant(value: &Expr) -> bool {
    match value {
        Expr::Literal(..) => true,
        Expr::ScalarFunction(call) => call.args.iter().all(is_constant),
        _ => false,
    }
}

/// A cast of a text to a type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OfText {
    to: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for OfText {
    fn name(&self) -> &str {
        "cast_of_text"
    }

    /// Not the text's own name, as a cast has it: as a key of a join it stands beside the text in a projection.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [value] = args else { return internal_err!("{} has one argument", self.name()) };
        Ok(format!("CAST({} AS {})", value.schema_name(), self.to))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let [text] = args.arg_fields else { return internal_err!("{} has one argument", self.name()) };
        Ok(Arc::new(Field::new(self.name(), self.to.clone(), text.is_nullable())))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [text] = args.args.as_slice() else { return internal_err!("{} has one argument", self.name()) };
        text.cast_to(&self.to, None)
    }
}
