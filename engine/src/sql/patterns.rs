//! Regular expressions that DataFusion (55.2) takes for patterns of LIKE.
//!
//! ```text
//! s ~ 'C:\\dir'    s ~ '(C:\\dir)': it would be LIKE '%C:\dir%', where a backslash hides what follows
//! s ~ '.*'         s ~ '(.*)': it would be `s IS NOT NULL`, which is false of NULL, and no NULL
//! ```
//! With a group around them they stay what they are. `regexp_like` becomes the operator, and is treated alike.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

/// A match whose pattern is not taken for another.
pub(super) fn kept(mut expr: Expr) -> Result<Transformed<Expr>> {
    let pattern = match &mut expr {
        Expr::BinaryExpr(BinaryExpr {
            op: Operator::RegexMatch | Operator::RegexIMatch | Operator::RegexNotMatch | Operator::RegexNotIMatch,
            right,
            ..
        }) => Some(right.as_mut()),
        Expr::ScalarFunction(call) if call.name() == "regexp_like" => call.args.get_mut(1),
        _ => None,
    };
    let Some(Expr::Literal(
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) | ScalarValue::LargeUtf8(Some(text)),
        _,
    )) = pattern
    else {
        return Ok(Transformed::no(expr));
    };
    let changes = text == ".*" || text.contains('\\');
    if changes {
        *text = format!("({text})");
    }
    Ok(Transformed::new_transformed(expr, changes))
}
