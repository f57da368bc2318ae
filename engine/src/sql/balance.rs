//! `a AND b AND c AND …` as a tree that is as deep as its logarithm.
//!
//! AND and OR are associative, with NULLs too, so a chain of thousands of conditions needs no deep tree, over which all that
//! follows would recurse. Other operators are not: `+` of doubles rounds, `||` takes lists.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Ident, VisitorMut};

use crate::sql::statement::walk;

/// Shorter chains stay as they were written, and so do their names and plans.
const SHORT: usize = 32;

/// Balances the long chains of a statement.
pub(super) fn balance(statement: &mut ParsedStatement) {
    walk(statement, &mut Balance);
}

struct Balance;

impl VisitorMut for Balance {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::BinaryOp { op: op @ (BinaryOperator::And | BinaryOperator::Or), .. } = &*expr else {
            return ControlFlow::Continue(());
        };
        let op = op.clone();
        if length(expr, &op) > SHORT {
            let mut terms = take_apart(std::mem::replace(expr, Expr::Identifier(Ident::new(""))), &op);
            *expr = join(&mut terms, &op);
        }
        ControlFlow::Continue(())
    }
}

/// How many terms the left spine has.
fn length(mut expr: &Expr, chain: &BinaryOperator) -> usize {
    let mut terms = 1;
    while let Expr::BinaryOp { left, op, .. } = expr
        && op == chain
    {
        (expr, terms) = (left, terms + 1);
    }
    terms
}

fn take_apart(mut expr: Expr, chain: &BinaryOperator) -> Vec<Expr> {
    let mut terms = vec![];
    loop {
        match expr {
            Expr::BinaryOp { left, op, right } if op == *chain => {
                terms.push(*right);
                expr = *left;
            }
            first => {
                terms.push(first);
                terms.reverse();
                return terms;
            }
        }
    }
}

/// Terms, at least two, with an operator between them.
pub(super) fn join(terms: &mut Vec<Expr>, op: &BinaryOperator) -> Expr {
    let mut later = terms.split_off(terms.len().div_ceil(2));
    let side = |terms: &mut Vec<Expr>| match terms.len() {
        0 | 1 => terms.pop().unwrap_or_else(|| Expr::Identifier(Ident::new(""))),
        _ => join(terms, op),
    };
    let left = side(terms);
    Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(side(&mut later)) }
}

#[cfg(test)]
mod tests {
    use crate::sql::parse;

    #[test]
    fn the_order_stays_and_short_chains_do() {
        for operator in ["AND", "OR"] {
            let terms: Vec<String> = (0..101).map(|term| format!("a = {term}")).collect();
            let sql = format!("SELECT {}", terms.join(&format!(" {operator} ")));
            let parsed = parse(&sql).unwrap().remove(0).parsed.clone();
            assert_eq!(parsed.to_string(), sql);
        }
    }
}
