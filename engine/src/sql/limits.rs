//! How deep a statement may nest and how long its chains may be.
//!
//! `1 + 1 + …` and `SELECT … UNION ALL SELECT …` are trees as deep as they are long; parser, planner and optimiser recurse
//! over them and would end the process when the stack does. So the tokens of a statement are counted before it is parsed, and
//! one that goes too far is refused with what it is, how much there is and what to do. Lists (`IN (…)`, `VALUES`, columns,
//! arguments, branches of CASE) are flat and have no limit.
//!
//! What is counted is a bound from above: per pair of parentheses (or CASE … END) the operators from one separator to the
//! next, plus the deepest of what is nested there.

use std::collections::HashMap;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use crate::sql::diagnostic::error_at;

/// Parentheses, brackets, CASE within each other.
const NESTED: usize = 128;
/// Parts of a name: the parser copies what it has of one at each dot.
const PARTS: usize = 64;
/// Types within each other.
const TYPES: usize = 64;
/// Prefixes in a row: NOT NOT …, - - …, EXPLAIN EXPLAIN ….
const PREFIXES: usize = 32;
/// Operators of an expression, those of nested parts with them.
const OPERATORS: usize = 2000;
/// AND and OR, which are balanced after parsing.
const CONDITIONS: usize = 5000;
/// UNION, EXCEPT and INTERSECT in a row.
const SET_OPERATIONS: usize = 2000;
/// Tables of one FROM.
const JOINS: usize = 500;
/// Operators of a plan on the way from the answer to a table: subqueries, CTEs and views on each other.
const PLAN: usize = 5000;
/// Subqueries within each other that are values or conditions: DataFusion 55 needs twice the time for each more.
const SUBQUERIES: usize = 12;
/// What the parser may recurse: each level of nesting takes a few.
pub(super) const PARSER: usize = 8 * NESTED;

/// A pair of parentheses, or CASE … END.
#[derive(Default)]
struct Level {
    is_case: bool,
    in_from: bool,
    /// How many subqueries this is in that are values or conditions.
    subqueries: usize,
    operators: Chain,
    /// They are balanced after parsing, so what is nested in them does not add up.
    conditions: usize,
    set_operations: Chain,
    joins: Chain,
}

/// A chain of operators, which nests as deep as it is long.
#[derive(Default)]
struct Chain {
    /// Since the last separator.
    here: usize,
    /// The deepest that is nested in that.
    nested: usize,
    /// The deepest of what is complete.
    deepest: usize,
}

impl Chain {
    fn depth(&self) -> usize {
        self.here + self.nested
    }

    fn separate(&mut self) {
        *self = Chain { deepest: self.deepest.max(self.depth()), ..Chain::default() };
    }

    fn close(mut self, outer: &mut Chain) {
        self.separate();
        outer.nested = outer.nested.max(self.deepest);
    }
}

impl Level {
    fn separate(&mut self) {
        self.operators.separate();
        self.conditions = 0;
    }
}

/// Refuses a statement that goes too deep; `tokens` are those of one statement.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut levels = vec![Level::default()];
    let mut prefixes = 0;
    // Whether what came before is complete, so that `-` and `[` go on with it.
    let mut after_operand = false;
    let spoken = |given: &&TokenWithSpan| !matches!(given.token, Token::Whitespace(_) | Token::EOF);
    let mut rest = tokens.iter().filter(spoken).peekable();
    let (mut parts, mut is_part) = (0, false);
    let is_arrow_cast = |given: &TokenWithSpan| matches!(&given.token, Token::Word(word) if word.value.to_lowercase().contains("arrow_"));
    // Its second argument is a type, as a text.
    let has_type_names = tokens.iter().any(is_arrow_cast);
    while let Some(TokenWithSpan { token, span }) = rest.next() {
        let kind = kind(token, after_operand);
        parts = match token {
            Token::Period => parts + 1,
            _ if is_part => parts,
            _ => 0,
        };
        is_part = matches!(token, Token::Period);
        if parts > PARTS {
            return Err(too_deep(*span, "parts of one name", PARTS, "a column is `schema.table.column`"));
        }
        if let Token::SingleQuotedString(text) = token
            && text.matches('(').nth(TYPES).is_some()
            && has_type_names
        {
            return Err(too_deep(*span, "types within each other", TYPES, "name a type of fewer levels"));
        }
        prefixes = if matches!(kind, Kind::Prefix) { prefixes + 1 } else { 0 };
        if prefixes > PREFIXES {
            return Err(too_deep(
                *span,
                "prefixes such as NOT, - and EXPLAIN in a row",
                PREFIXES,
                "leave out pairs of them",
            ));
        }
        after_operand = matches!(kind, Kind::Operand | Kind::Close | Kind::End);
        let depth = levels.len();
        let Some(level) = levels.last_mut() else { return Ok(()) };
        match kind {
            Kind::Open | Kind::Subscript | Kind::Case => {
                if matches!(kind, Kind::Subscript) {
                    level.operators.here += 1;
                }
                if depth > NESTED {
                    let what = "levels of parentheses, brackets and CASE within each other";
                    return Err(too_deep(*span, what, NESTED, "name parts of the query by WITH"));
                }
                let is_query = rest.peek().is_some_and(|next| begins_query(&next.token));
                let subqueries = level.subqueries + usize::from(is_query && !level.in_from);
                if subqueries > SUBQUERIES {
                    let what = "subqueries within each other as values and conditions";
                    return Err(too_deep(*span, what, SUBQUERIES, "write joins"));
                }
                levels.push(Level { is_case: matches!(kind, Kind::Case), subqueries, ..Level::default() });
            }
            Kind::Close => {
                // An END that is missing is for the parser to tell.
                while levels.len() > 1 && levels.last().is_some_and(|level| level.is_case) {
                    close(&mut levels);
                }
                close(&mut levels);
            }
            Kind::End if level.is_case => close(&mut levels),
            Kind::End | Kind::Operand => {}
            Kind::Prefix | Kind::Operator => level.operators.here += 1,
            Kind::Condition => {
                level.operators.separate();
                level.conditions += 1;
            }
            Kind::From => {
                level.separate();
                level.joins.separate();
                (level.in_from, level.joins.here) = (true, 1);
            }
            Kind::Join => {
                level.separate();
                level.in_from = true;
                level.joins.here += 1;
            }
            Kind::Comma => {
                level.separate();
                level.joins.here += usize::from(level.in_from);
            }
            Kind::Set => {
                level.separate();
                level.in_from = false;
                level.set_operations.here += 1;
            }
            Kind::Clause => {
                level.separate();
                level.in_from = false;
            }
        }
        if let Some(level) = levels.last() {
            level_within(level, *span)?;
        }
    }
    Ok(())
}

/// Ends the innermost level and adds its depth to the level around it.
fn close(levels: &mut Vec<Level>) {
    if levels.len() < 2 {
        return;
    }
    if let Some(mut inner) = levels.pop()
        && let Some(outer) = levels.last_mut()
    {
        inner.operators.here += 1;
        inner.operators.close(&mut outer.operators);
        inner.set_operations.close(&mut outer.set_operations);
        inner.joins.close(&mut outer.joins);
    }
}

fn level_within(level: &Level, span: Span) -> Result<()> {
    let (what, limit, instead) = if level.operators.depth() > OPERATORS {
        let instead = "compute over rows: `SELECT sum(x) FROM (VALUES (1), (2), …) AS t(x)`";
        ("operators in one expression", OPERATORS, instead)
    } else if level.conditions > CONDITIONS {
        let instead = "compare with a list, `x IN (1, 2, …)`, or join with a table of values";
        ("AND and OR in one condition", CONDITIONS, instead)
    } else if level.set_operations.depth() > SET_OPERATIONS {
        let instead = "write rows as `VALUES (1), (2), …`, or ask in several statements";
        ("UNION, EXCEPT and INTERSECT in a row", SET_OPERATIONS, instead)
    } else if level.joins.depth() > JOINS {
        ("tables in one FROM", JOINS, "join in steps, each a table of its own")
    } else {
        return Ok(());
    };
    Err(too_deep(span, what, limit, instead))
}

fn too_deep(span: Span, what: &str, limit: usize, instead: &str) -> DataFusionError {
    error_at(span, format!("more than {limit} {what}"), &format!("{limit} is the limit; {instead}"))
}

/// Refuses a plan that is too deep for those who recurse over it: each view and CTE of a chain is small, all together are not.
pub(super) fn check_plan(plan: &LogicalPlan) -> Result<()> {
    match height(plan, 0, &mut HashMap::new())? {
        height if height > PLAN => Err(error_at(
            Span::empty(),
            format!("more than {PLAN} steps stand on each other in this query"),
            &format!(
                "{PLAN} is the limit for subqueries, CTEs, views and set operations together; keep what is between by `CREATE TABLE … AS`"
            ),
        )),
        _ => Ok(()),
    }
}

/// How many operators stand on each other, or something above [`PLAN`]. What is referred to twice is measured once.
fn height(plan: &LogicalPlan, above: usize, known: &mut HashMap<*const LogicalPlan, usize>) -> Result<usize> {
    if above > PLAN {
        return Ok(above);
    }
    if let Some(height) = known.get(&std::ptr::from_ref(plan)) {
        return Ok(*height);
    }
    let mut tallest = 0;
    for input in plan.inputs() {
        tallest = tallest.max(height(input, above + 1, known)?);
    }
    plan.apply_expressions(|expr| {
        expr.apply(|expr| {
            if let Expr::ScalarSubquery(subquery)
            | Expr::Exists(Exists { subquery, .. })
            | Expr::InSubquery(InSubquery { subquery, .. }) = expr
            {
                tallest = tallest.max(height(&subquery.subquery, above + 1, known)?);
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    known.insert(std::ptr::from_ref(plan), tallest + 1);
    Ok(tallest + 1)
}

/// What a token does to the nesting.
enum Kind {
    Open,
    Subscript,
    Close,
    Case,
    End,
    Operand,
    Prefix,
    Operator,
    Condition,
    Comma,
    From,
    Join,
    Set,
    Clause,
}

fn kind(token: &Token, after_operand: bool) -> Kind {
    match token {
        Token::LParen | Token::LBrace => Kind::Open,
        Token::LBracket if after_operand => Kind::Subscript,
        Token::LBracket => Kind::Open,
        Token::RParen | Token::RBracket | Token::RBrace => Kind::Close,
        Token::Comma | Token::SemiColon => Kind::Comma,
        Token::Minus | Token::Plus | Token::Tilde | Token::ExclamationMark if !after_operand => Kind::Prefix,
        // Of a name, and of `SELECT *`.
        Token::Period | Token::Colon | Token::RArrow => Kind::Operand,
        Token::Mul if !after_operand => Kind::Operand,
        Token::Word(word) if word.quote_style.is_none() => kind_of_word(word.keyword, after_operand),
        Token::Word(_) | Token::Number(..) | Token::Placeholder(_) | Token::Char(_) => Kind::Operand,
        token if is_text(token) => Kind::Operand,
        // All that is left are operators, those of `|>` among them.
        _ => Kind::Operator,
    }
}

fn kind_of_word(keyword: Keyword, after_operand: bool) -> Kind {
    match keyword {
        Keyword::CASE => Kind::Case,
        Keyword::END => Kind::End,
        // `IS NOT NULL` and `NOT LIKE` are one operator each.
        Keyword::NOT if !after_operand => Kind::Prefix,
        Keyword::EXPLAIN | Keyword::ANALYZE | Keyword::INTERVAL | Keyword::PRIOR => Kind::Prefix,
        Keyword::AND | Keyword::OR => Kind::Condition,
        Keyword::IS
        | Keyword::IN
        | Keyword::BETWEEN
        | Keyword::LIKE
        | Keyword::ILIKE
        | Keyword::RLIKE
        | Keyword::REGEXP
        | Keyword::SIMILAR
        | Keyword::DIV
        | Keyword::XOR
        | Keyword::OVERLAPS
        | Keyword::COLLATE
        | Keyword::AT
        | Keyword::NOTNULL => Kind::Operator,
        Keyword::FROM => Kind::From,
        Keyword::JOIN => Kind::Join,
        Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => Kind::Set,
        Keyword::SELECT
        | Keyword::WHERE
        | Keyword::GROUP
        | Keyword::HAVING
        | Keyword::QUALIFY
        | Keyword::ORDER
        | Keyword::LIMIT
        | Keyword::OFFSET
        | Keyword::WINDOW
        | Keyword::VALUES
        | Keyword::WITH
        | Keyword::WHEN
        | Keyword::THEN
        | Keyword::ELSE
        | Keyword::ON
        | Keyword::USING => Kind::Clause,
        _ => Kind::Operand,
    }
}

fn begins_query(token: &Token) -> bool {
    matches!(token, Token::Word(word) if matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::FROM))
}

fn is_text(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::TripleSingleQuotedString(_)
            | Token::TripleDoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
            | Token::TripleSingleQuotedByteStringLiteral(_)
            | Token::TripleDoubleQuotedByteStringLiteral(_)
            | Token::SingleQuotedRawStringLiteral(_)
            | Token::DoubleQuotedRawStringLiteral(_)
            | Token::TripleSingleQuotedRawStringLiteral(_)
            | Token::TripleDoubleQuotedRawStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::QuoteDelimitedStringLiteral(_)
            | Token::NationalQuoteDelimitedStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
    )
}

#[cfg(test)]
mod tests {
    use crate::sql::parse;

    /// Right at the limit and far beyond it, on a test's stack of 2 MiB.
    #[test]
    fn what_is_too_deep_is_told() {
        let sum = |terms: usize| format!("SELECT {}1", "1 + ".repeat(terms - 1));
        let nested =
            |open: &str, close: &str, levels: usize| format!("SELECT {}1{}", open.repeat(levels), close.repeat(levels));
        let message = |sql: &str| parse(sql).err().map(|error| error.message);
        for (within, beyond, what) in [
            (sum(2001), sum(20_000), "more than 2000 operators in one expression"),
            (
                format!("SELECT '{{}}'{}", "->'a'".repeat(2000)),
                format!("SELECT '{{}}'{}", "->'a'".repeat(20_000)),
                "more than 2000 operators in one expression",
            ),
            (
                format!("SELECT 1{}", "::INT".repeat(2000)),
                format!("SELECT 1{}", "::INT".repeat(20_000)),
                "more than 2000 operators in one expression",
            ),
            (
                format!("SELECT {}1", "1 = 1 AND 2 = 2 OR ".repeat(2500)),
                format!("SELECT {}1", "1 = 1 AND ".repeat(20_000)),
                "more than 5000 AND and OR in one condition",
            ),
            (
                format!("{}SELECT 1", "SELECT 1 UNION ALL ".repeat(2000)),
                format!("{}SELECT 1", "SELECT 1 UNION ALL ".repeat(2500)),
                "more than 2000 UNION, EXCEPT and INTERSECT in a row",
            ),
            (
                nested("(", ")", 128),
                nested("(", ")", 5000),
                "more than 128 levels of parentheses, brackets and CASE within each other",
            ),
            (
                nested("[", "]", 128),
                nested("[", "]", 5000),
                "more than 128 levels of parentheses, brackets and CASE within each other",
            ),
            (
                nested("abs(", ")", 128),
                nested("abs(", ")", 5000),
                "more than 128 levels of parentheses, brackets and CASE within each other",
            ),
            (
                nested("CASE WHEN true THEN ", " END", 128),
                nested("CASE WHEN true THEN ", " END", 5000),
                "more than 128 levels of parentheses, brackets and CASE within each other",
            ),
            (
                nested("(SELECT ", ")", super::SUBQUERIES),
                nested("(SELECT ", ")", 5000),
                "more than 12 subqueries within each other as values and conditions",
            ),
            (
                nested("NOT ", "", 32),
                nested("NOT ", "", 5000),
                "more than 32 prefixes such as NOT, - and EXPLAIN in a row",
            ),
            (nested("- ", "", 32), nested("- ", "", 5000), "more than 32 prefixes such as NOT, - and EXPLAIN in a row"),
            (
                format!("SELECT * FROM t a{}", ", t".repeat(499)),
                format!("SELECT * FROM t a{}", " JOIN t ON true".repeat(600)),
                "more than 500 tables in one FROM",
            ),
        ] {
            assert_eq!(message(&within), None, "{}", &within[..60]);
            assert_eq!(message(&beyond).as_deref(), Some(what), "{}", &beyond[..60]);
        }
        // Chains in chains add up: parentheses are no way around.
        let inner = (0..100).fold("1".to_owned(), |inner, _| format!("({inner}{})", " + 1".repeat(100)));
        assert_eq!(message(&format!("SELECT {inner}")).unwrap(), "more than 2000 operators in one expression");
        let error = parse(&sum(20_000)).unwrap_err();
        assert_eq!(
            error.hint.unwrap(),
            "2000 is the limit; compute over rows: `SELECT sum(x) FROM (VALUES (1), (2), …) AS t(x)`"
        );
        assert!(error.place.is_some());
    }

    /// Comments nest as they like, and what stands side by side has no limit.
    #[test]
    fn what_is_flat_has_no_limit() {
        let many = |part: &str| vec![part; 100_000].join(", ");
        for sql in [
            format!("SELECT 1 WHERE 1 IN ({})", many("1 + 1")),
            format!("VALUES {}", many("(1, -1)")),
            format!("SELECT {}", many("(1 + 1)")),
            format!("SELECT CASE {} END", "WHEN a = 1 OR b THEN 1 + 1 ".repeat(10_000)),
            format!("SELECT {}{} 1", "/*".repeat(10_000), "*/".repeat(10_000)),
            "SELECT 1 + 1;".repeat(10_000),
        ] {
            assert!(parse(&sql).is_ok(), "{}", &sql[..60]);
        }
    }
}
