//! The SQL dialect: sqlparser's generic one, which DataFusion speaks by default, `TABLE(SELECT …)` as an argument, the
//! operators `GLOB` of SQLite and PerfettoSQL and `//` of DuckDB, `IS DISTINCT FROM` and `BETWEEN SYMMETRIC` as the standard has them,
//! and operators that bind as PostgreSQL says ([`TqDialect::prec_value`]).
//!
//! A dialect is asked about some three hundred features one by one, so this one forwards each answer in which
//! [`GenericDialect`] differs from the default of the trait. A test compares the two: after an update of sqlparser it
//! names what is missing here.

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, UnaryOperator,
};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::{Keyword, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_TABLE_ALIAS};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// Generic SQL with `f(TABLE(SELECT …))`.
#[derive(Debug, Clone, Copy, Default)]
pub struct TqDialect;

macro_rules! forward_to_generic {
    ($($flag:ident)*) => {
        $(fn $flag(&self) -> bool {
            GenericDialect.$flag()
        })*
    };
}

impl Dialect for TqDialect {
    /// The parser asks some questions by type: is this the generic dialect?
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    /// As PostgreSQL's documentation lists them (18, 4.1.6), from tight to loose:
    ///
    /// ```text
    /// .   ::   [ ]   unary + -   AT TIME ZONE   * / // %   + -   (any other operator)
    /// BETWEEN IN LIKE ILIKE SIMILAR GLOB ~   < > = <= >= <>   IS   NOT   AND   OR
    /// ```
    ///
    /// So `args->>'key' = 'value'` compares a member, and `->`, `->>`, `||`, `|`, `&` … form one level from left to right, as
    /// in DuckDB too. sqlparser's own table has `->>` below the comparisons, `||` beside `*`, and LIKE below `=`. Two
    /// differences to PostgreSQL stay: `^` is the bitwise operator of DataFusion, and so one of the others; and `~` is a LIKE,
    /// so that `name ~ 'a' || 'b'` has a pattern of two parts.
    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period => 100,
            Precedence::DoubleColon => 50,
            Precedence::AtTz => 41,
            Precedence::MulDivModOp => 40,
            Precedence::PlusMinus => 30,
            Precedence::PgOther
            | Precedence::Caret
            | Precedence::Ampersand
            | Precedence::Pipe
            | Precedence::Colon
            | Precedence::Xor => 25,
            Precedence::Between | Precedence::Like => 20,
            Precedence::Eq => 19,
            Precedence::Is => 17,
            Precedence::UnaryNot => 15,
            Precedence::And => 10,
            Precedence::Or => 5,
        }
    }

    /// What sqlparser files under another heading than PostgreSQL. `name GLOB 'a*'` and `name NOT GLOB 'a*'` bind like LIKE.
    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        if glob_follows(parser).is_some() {
            return Some(Ok(self.prec_value(Precedence::Like)));
        }
        if is_null_follows(parser) {
            return Some(Ok(self.prec_value(Precedence::Is)));
        }
        match parser.peek_token_ref().token {
            Token::StringConcat | Token::CaretAt | Token::Sharp => Some(Ok(self.prec_value(Precedence::PgOther))),
            Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk => Some(Ok(self.prec_value(Precedence::Like))),
            _ => None,
        }
    }

    /// They become `glob('a*', name)`, and `a // b` becomes `integer_divide(a, b)`. And `a IS DISTINCT FROM b AND c` is `(a IS DISTINCT FROM b) AND c`: sqlparser's own
    /// parser takes all that follows for the right side.
    fn parse_infix(&self, parser: &mut Parser, left: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        if let Some(not) = distinct_follows(parser) {
            (0..if not { 4 } else { 3 }).for_each(|_| parser.advance_token());
            let left = Box::new(left.clone());
            return Some(parser.parse_subexpr(precedence).map(Box::new).map(|right| match not {
                false => Expr::IsDistinctFrom(left, right),
                true => Expr::IsNotDistinctFrom(left, right),
            }));
        }
        if is_null_follows(parser) {
            parser.advance_token();
            return Some(Ok(Expr::IsNull(Box::new(left.clone()))));
        }
        if let Some(list) = list_of_subqueries(parser, left) {
            return Some(Ok(list));
        }
        if parser.parse_keywords(&[Keyword::BETWEEN, Keyword::SYMMETRIC]) {
            return Some(symmetric(parser, left, precedence));
        }
        if parser.parse_keywords(&[Keyword::NOT, Keyword::BETWEEN, Keyword::SYMMETRIC]) {
            let negated = |between| Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(between) };
            return Some(symmetric(parser, left, precedence).map(negated));
        }
        if parser.peek_token_ref().token == Token::Sharp {
            parser.advance_token();
            let (left, op) = (Box::new(left.clone()), BinaryOperator::PGBitwiseXor);
            return Some(parser.parse_subexpr(precedence).map(|right| Expr::BinaryOp {
                left,
                op,
                right: Box::new(right),
            }));
        }
        if parser.peek_token_ref().token == Token::DuckIntDiv {
            let name = Ident::with_span(parser.next_token().span, "integer_divide");
            return Some(parser.parse_subexpr(precedence).map(|divisor| call(name, [left.clone(), divisor])));
        }
        let words = glob_follows(parser)?;
        let mut place = parser.next_token().span;
        if words == 2 {
            place = parser.next_token().span;
        }
        let matches = |pattern| call(Ident::with_span(place, "glob"), [pattern, left.clone()]);
        let matched = parser.parse_subexpr(precedence).map(matches);
        Some(match words {
            1 => matched,
            _ => matched.map(|matched| Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(matched) }),
        })
    }

    /// `NOT EXISTS (…) IS NULL` is `NOT (EXISTS (…) IS NULL)`: NOT binds looser than what may follow, and sqlparser takes it for a part of
    /// EXISTS.
    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        let is = |at: usize, keyword| matches!(&parser.peek_nth_token_ref(at).token, Token::Word(word) if word.keyword == keyword);
        if parser.peek_token_ref().token == Token::Tilde {
            parser.advance_token();
            let flipped = parser.parse_subexpr(self.prec_value(Precedence::PgOther));
            return Some(flipped.map(|expr| Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: Box::new(expr) }));
        }
        let is_side = [Keyword::BOTH, Keyword::LEADING, Keyword::TRAILING].into_iter().any(|side| is(2, side));
        if is(0, Keyword::TRIM) && is_side && is(3, Keyword::FROM) {
            return Some(trimmed_blanks(parser));
        }
        if !is(0, Keyword::NOT) || !is(1, Keyword::EXISTS) {
            return None;
        }
        parser.advance_token();
        let negated = parser.parse_subexpr(self.prec_value(Precedence::UnaryNot)).map(|expr| match expr {
            Expr::Exists { subquery, negated } => Expr::Exists { subquery, negated: !negated },
            expr => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) },
        });
        Some(negated)
    }

    /// A difference to the generic dialect.
    fn supports_subquery_as_function_arg(&self) -> bool {
        true
    }

    /// Another one: `1_000`, whose `_` `spelling.rs` takes away.
    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    /// And `'a'` before `'b'` on the next line, which are one text; on one line they are refused (`spelling.rs`).
    fn supports_string_literal_concatenation_with_newline(&self) -> bool {
        true
    }

    /// `x NOTNULL`, beside which there is `x ISNULL` (PostgreSQL, SQLite, DuckDB).
    fn supports_notnull_operator(&self) -> bool {
        true
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        GenericDialect.is_delimited_identifier_start(character)
    }

    fn is_identifier_start(&self, character: char) -> bool {
        GenericDialect.is_identifier_start(character)
    }

    fn is_identifier_part(&self, character: char) -> bool {
        GenericDialect.is_identifier_part(character)
    }

    forward_to_generic! {
        supports_unicode_string_literal
        supports_partition_by_after_order_by
        supports_array_join_syntax
        supports_group_by_expr
        supports_group_by_with_modifier
        supports_left_associative_joins_without_parens
        supports_connect_by
        supports_match_recognize
        supports_pipe_operator
        supports_start_transaction_modifier
        supports_window_function_null_treatment_arg
        supports_dictionary_syntax
        supports_window_clause_named_window_reference
        supports_parenthesized_set_variables
        supports_select_wildcard_except
        support_map_literal_syntax
        allow_extract_custom
        allow_extract_single_quotes
        supports_extract_comma_syntax
        supports_create_view_comment_syntax
        supports_parens_around_table_factor
        supports_values_as_table_factor
        supports_create_index_with_clause
        supports_explain_with_utility_options
        supports_limit_comma
        supports_update_order_by
        supports_from_first_select
        supports_projection_trailing_commas
        supports_asc_desc_in_column_definition
        supports_try_convert
        supports_bitwise_shift_operators
        supports_comment_on
        supports_load_extension
        supports_named_fn_args_with_assignment_operator
        supports_struct_literal
        supports_empty_projections
        supports_nested_comments
        supports_multiline_comment_hints
        supports_user_host_grantee
        supports_string_escape_constant
        supports_array_typedef_with_brackets
        supports_match_against
        supports_set_names
        supports_comma_separated_set_assignments
        supports_filter_during_aggregation
        supports_select_wildcard_exclude
        supports_data_type_signed_suffix
        supports_interval_options
        supports_quote_delimited_string
        supports_select_wildcard_replace
        supports_select_wildcard_ilike
        supports_select_wildcard_rename
        supports_optimize_table
        supports_install
        supports_detach
        supports_prewhere
        supports_with_fill
        supports_limit_by
        supports_interpolate
        supports_settings
        supports_select_format
        supports_comment_optimizer_hint
        supports_constraint_keyword_without_name
        supports_key_column_option
        supports_comma_separated_trim
        supports_cte_without_as
        supports_select_item_multi_column_alias
        supports_xml_expressions
    }
}

/// `x BETWEEN SYMMETRIC a AND b` is either of `x BETWEEN a AND b` and `x BETWEEN b AND a`, as PostgreSQL takes it.
fn symmetric(parser: &mut Parser, left: &Expr, precedence: u8) -> Result<Expr, ParserError> {
    let low = parser.parse_subexpr(precedence)?;
    parser.expect_keyword_is(Keyword::AND)?;
    let high = parser.parse_subexpr(precedence)?;
    let between = |low: &Expr, high: &Expr| Expr::Between {
        expr: Box::new(left.clone()),
        negated: false,
        low: Box::new(low.clone()),
        high: Box::new(high.clone()),
    };
    let (left, right) = (Box::new(between(&low, &high)), Box::new(between(&high, &low)));
    Ok(Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Or, right })))
}

/// `x IN ((SELECT …), 2)`, a list that begins with a subquery: sqlparser takes what is behind two parentheses for the subquery of IN.
fn list_of_subqueries(parser: &mut Parser, left: &Expr) -> Option<Expr> {
    let word = |at: usize, keyword: Keyword| matches!(&parser.peek_nth_token_ref(at).token, Token::Word(word) if word.keyword == keyword);
    let negated = word(0, Keyword::NOT);
    let words = if negated { 2 } else { 1 };
    let opens = |at: usize| parser.peek_nth_token_ref(at).token == Token::LParen;
    // What is no subquery must not be parsed twice: lists may stand within lists, a hundred deep.
    let asks = [Keyword::SELECT, Keyword::WITH, Keyword::VALUES].iter().any(|keyword| word(words + 2, *keyword));
    if !word(words - 1, Keyword::IN) || !opens(words) || !opens(words + 1) || !asks {
        return None;
    }
    let list = parser.maybe_parse(|parser| {
        (0..words).for_each(|_| parser.advance_token());
        parser.expect_token(&Token::LParen)?;
        let list = parser.parse_comma_separated(Parser::parse_expr)?;
        parser.expect_token(&Token::RParen)?;
        // One in parentheses is the subquery of IN, and rows are sqlparser's own.
        match list.as_slice() {
            [Expr::Subquery(_), _, ..] => Ok(list),
            _ => parser.expected("a list that begins with a subquery", parser.peek_token()),
        }
    });
    let list = list.ok()??;
    Some(Expr::InList { expr: Box::new(left.clone()), list, negated })
}

/// Whether `ISNULL` comes next, which is no keyword of sqlparser.
fn is_null_follows(parser: &Parser) -> bool {
    matches!(&parser.peek_token_ref().token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("ISNULL"))
}

/// Whether `IS NOT DISTINCT FROM` comes next, or, with `false`, `IS DISTINCT FROM`.
fn distinct_follows(parser: &Parser) -> Option<bool> {
    let comes = |words: &[Keyword]| {
        (words.iter().enumerate()).all(
            |(at, word)| matches!(&parser.peek_nth_token_ref(at).token, Token::Word(next) if next.keyword == *word),
        )
    };
    if comes(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
        return Some(false);
    }
    comes(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]).then_some(true)
}

/// How many words `GLOB` or `NOT GLOB` are, if they come next and something to match follows.
fn glob_follows(parser: &Parser) -> Option<usize> {
    let word = |at: usize| match parser.peek_nth_token_ref(at).token {
        Token::Word(ref word) if word.quote_style.is_none() => Some(word),
        _ => None,
    };
    let first = word(0)?;
    let words = if first.keyword == Keyword::NOT { 2 } else { 1 };
    if !word(words - 1)?.value.eq_ignore_ascii_case("glob") {
        return None;
    }
    // `SELECT name glob, …`, `… AS glob ORDER BY …`: a name like any other.
    let begins_operand = match &parser.peek_nth_token_ref(words).token {
        Token::Word(word) => {
            !RESERVED_FOR_COLUMN_ALIAS.contains(&word.keyword) && !RESERVED_FOR_TABLE_ALIAS.contains(&word.keyword)
        }
        Token::SingleQuotedString(_) | Token::Placeholder(_) | Token::Number(..) | Token::LParen => true,
        _ => false,
    };
    begins_operand.then_some(words)
}

/// The call of a function that an operator or a literal stands for.
pub(super) fn call(name: Ident, arguments: impl IntoIterator<Item = Expr>) -> Expr {
    let argument = |value| FunctionArg::Unnamed(FunctionArgExpr::Expr(value));
    Expr::Function(Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into_iter().map(argument).collect(),
            clauses: vec![],
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: vec![],
    })
}

/// `TRIM(TRAILING FROM text)`: without a character before FROM, it is the blank.
fn trimmed_blanks(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let trim_where = Some(parser.parse_trim_where()?);
    parser.expect_keyword(Keyword::FROM)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Trim { expr, trim_where, trim_what: None, trim_characters: None })
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use datafusion::sql::sqlparser::ast::{VisitMut, VisitorMut};

    use super::*;

    #[test]
    fn glob_is_an_operator_where_something_follows_it() {
        let parsed = |sql: &str| match Parser::parse_sql(&TqDialect, sql) {
            Ok(statements) => statements[0].to_string(),
            Err(error) => error.to_string(),
        };
        for (sql, expected) in [
            ("SELECT 1 FROM t WHERE a GLOB 'x*' AND b = 1", "SELECT 1 FROM t WHERE glob('x*', a) AND b = 1"),
            ("SELECT a NOT glob 'x' || b FROM t", "SELECT NOT glob('x' || b, a) FROM t"),
            ("SELECT name glob, 1 AS glob FROM t AS glob", "SELECT name AS glob, 1 AS glob FROM t AS glob"),
            ("SELECT glob('x', a) FROM t ORDER BY glob", "SELECT glob('x', a) FROM t ORDER BY glob"),
        ] {
            assert_eq!(parsed(sql), expected);
        }
    }

    /// An expression with all of its parentheses.
    fn grouped(sql: &str) -> String {
        struct Groups;
        impl VisitorMut for Groups {
            type Break = ();
            fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
                let operates = !matches!(
                    expr,
                    Expr::Identifier(_)
                        | Expr::CompoundIdentifier(_)
                        | Expr::Value(_)
                        | Expr::Nested(_)
                        | Expr::Function(_)
                );
                if operates {
                    let inner = std::mem::replace(expr, Expr::Identifier(Ident::new("x")));
                    *expr = Expr::Nested(Box::new(inner));
                }
                ControlFlow::Continue(())
            }
        }
        let mut expr = match Parser::new(&TqDialect).try_with_sql(sql).and_then(|mut parser| {
            let expr = parser.parse_expr()?;
            parser.expect_token(&Token::EOF)?;
            Ok(expr)
        }) {
            Ok(expr) => expr,
            Err(error) => return error.to_string(),
        };
        let _ = expr.visit(&mut Groups);
        expr.to_string()
    }

    /// Each line was compared with what PostgreSQL's table of operators says.
    #[test]
    fn operators_bind_as_in_postgresql() {
        for (sql, expected) in [
            ("a->>'k' = 'v'", "((a ->> 'k') = 'v')"),
            ("'v' = a->>'k'", "('v' = (a ->> 'k'))"),
            ("a->>'k' <> 'v'", "((a ->> 'k') <> 'v')"),
            ("a->>'k' < 'v'", "((a ->> 'k') < 'v')"),
            ("a->>'k' >= b->>'k'", "((a ->> 'k') >= (b ->> 'k'))"),
            ("a->>'k' LIKE 'v%'", "((a ->> 'k') LIKE 'v%')"),
            ("a->>'k' NOT LIKE 'v%'", "((a ->> 'k') NOT LIKE 'v%')"),
            ("b LIKE a->>'k'", "(b LIKE (a ->> 'k'))"),
            ("a->>'k' ILIKE 'v%'", "((a ->> 'k') ILIKE 'v%')"),
            ("a->>'k' GLOB 'v*'", "glob('v*', (a ->> 'k'))"),
            ("a->>'k' NOT GLOB 'v*'", "(NOT glob('v*', (a ->> 'k')))"),
            ("a->>'k' SIMILAR TO 'v'", "((a ->> 'k') SIMILAR TO 'v')"),
            ("a->>'k' ~ 'v'", "((a ->> 'k') ~ 'v')"),
            ("a->>'k' !~* 'v' = true", "(((a ->> 'k') !~* 'v') = true)"),
            ("a->>'k' IN ('u', 'v')", "((a ->> 'k') IN ('u', 'v'))"),
            ("a->>'k' NOT IN ('u', 'v')", "((a ->> 'k') NOT IN ('u', 'v'))"),
            ("a->>'k' IN (SELECT 1)", "((a ->> 'k') IN (SELECT 1))"),
            ("a->>'k' BETWEEN 'u' AND 'v'", "((a ->> 'k') BETWEEN 'u' AND 'v')"),
            ("b BETWEEN a->>'l' AND a->>'h' AND c", "((b BETWEEN (a ->> 'l') AND (a ->> 'h')) AND c)"),
            ("a->>'k' IS NULL", "((a ->> 'k') IS NULL)"),
            ("a->>'k' IS NOT NULL", "((a ->> 'k') IS NOT NULL)"),
            ("a->>'k' IS TRUE", "((a ->> 'k') IS TRUE)"),
            ("a->>'k' IS DISTINCT FROM b->>'k'", "((a ->> 'k') IS DISTINCT FROM (b ->> 'k'))"),
            ("a->>'k' IS NOT DISTINCT FROM 'v'", "((a ->> 'k') IS NOT DISTINCT FROM 'v')"),
            ("NOT a->>'k' = 'v'", "(NOT ((a ->> 'k') = 'v'))"),
            ("NOT a->>'k' IS NULL", "(NOT ((a ->> 'k') IS NULL))"),
            ("a->>'k' = 'v' AND b->>'k' = 'w' OR c", "((((a ->> 'k') = 'v') AND ((b ->> 'k') = 'w')) OR c)"),
            ("a->>'k' || 'x'", "((a ->> 'k') || 'x')"),
            ("'x' || a->>'k'", "(('x' || a) ->> 'k')"),
            ("a->'x'->>'k'", "((a -> 'x') ->> 'k')"),
            ("a->'x'->'y'->0 = 1", "((((a -> 'x') -> 'y') -> 0) = 1)"),
            ("a->>'k' + 1", "(a ->> ('k' + 1))"),
            ("a->>'k' * 2", "(a ->> ('k' * 2))"),
            ("a->>'n'::BIGINT", "(a ->> ('n'::BIGINT))"),
            ("(a->>'n')::BIGINT + 1", "((((a ->> 'n'))::BIGINT) + 1)"),
            ("a->>i - 1", "(a ->> (i - 1))"),
            ("-a->>'k'", "((-a) ->> 'k')"),
            ("a->-1", "(a -> (-1))"),
            ("b[1]->>'k'", "((b[1]) ->> 'k')"),
            ("a->b[1]", "(a -> (b[1]))"),
            ("a.b->>'k' = 'v'", "((a.b ->> 'k') = 'v')"),
            ("a @> b = true", "((a @> b) = true)"),
            ("a <@ b IS NULL", "((a <@ b) IS NULL)"),
            ("a #> b = c", "((a #> b) = c)"),
            ("a #>> b = c", "((a #>> b) = c)"),
            ("a @? b = c", "((a @? b) = c)"),
            ("a @@ b = c", "((a @@ b) = c)"),
            ("CASE a->>'k' WHEN 'v' THEN 1 END", "(CASE (a ->> 'k') WHEN 'v' THEN 1 END)"),
            ("a || b LIKE c || d", "((a || b) LIKE (c || d))"),
            ("a || b + 1 || c", "((a || (b + 1)) || c)"),
            ("a || b = c", "((a || b) = c)"),
            ("a LIKE b = c", "((a LIKE b) = c)"),
            ("a = b LIKE c", "(a = (b LIKE c))"),
            ("a = b IN (c)", "(a = (b IN (c)))"),
            ("a = b IS NULL", "((a = b) IS NULL)"),
            ("1 | 2 & 4", "((1 | 2) & 4)"),
            ("a & 1 = 1", "((a & 1) = 1)"),
            ("a << 1 + 1", "(a << (1 + 1))"),
            ("NOT a = b", "(NOT (a = b))"),
            ("NOT EXISTS (SELECT 1) IS NULL", "(NOT ((EXISTS (SELECT 1)) IS NULL))"),
            ("NOT EXISTS (SELECT 1) = a AND b", "((NOT ((EXISTS (SELECT 1)) = a)) AND b)"),
            ("NOT NOT EXISTS (SELECT 1) OR a", "((NOT (NOT EXISTS (SELECT 1))) OR a)"),
            ("- 5 // 2", "integer_divide((-5), 2)"),
            ("12 // 2 * 3", "(integer_divide(12, 2) * 3)"),
            ("2 * 7 // 2", "integer_divide((2 * 7), 2)"),
            ("1 + 7 // 2 - 1", "((1 + integer_divide(7, 2)) - 1)"),
            ("8 // 2 // 2", "integer_divide(integer_divide(8, 2), 2)"),
            ("a // b::INT = c", "(integer_divide(a, (b::INT)) = c)"),
        ] {
            assert_eq!(grouped(sql), expected, "{sql}");
        }
    }

    /// Fails when [`TqDialect`] forgets a flag that [`GenericDialect`] sets.
    macro_rules! assert_equal_flags {
        ($($flag:ident)*) => {
            $(assert_eq!(TqDialect.$flag(), GenericDialect.$flag(), stringify!($flag));)*
        };
    }

    #[test]
    fn differs_from_the_generic_dialect_in_three_flags() {
        assert!(TqDialect.supports_subquery_as_function_arg() && !GenericDialect.supports_subquery_as_function_arg());
        assert!(TqDialect.supports_numeric_literal_underscores());
        assert!(!GenericDialect.supports_numeric_literal_underscores());
        assert!(TqDialect.supports_string_literal_concatenation_with_newline());
        assert!(!GenericDialect.supports_string_literal_concatenation_with_newline());
        // Every method of the trait that takes nothing and answers a bool.
        assert_equal_flags! {
            supports_string_literal_backslash_escape
            ignores_wildcard_escapes
            supports_unicode_string_literal
            supports_filter_during_aggregation
            supports_window_clause_named_window_reference
            supports_within_after_array_aggregation
            supports_partition_by_after_order_by
            supports_array_join_syntax
            supports_group_by_expr
            supports_group_by_with_modifier
            supports_left_associative_joins_without_parens
            supports_outer_join_operator
            supports_cross_join_constraint
            supports_connect_by
            supports_execute_immediate
            supports_match_recognize
            supports_in_empty_list
            supports_start_transaction_modifier
            supports_end_transaction_modifier
            supports_named_fn_args_with_eq_operator
            supports_named_fn_args_with_colon_operator
            supports_named_fn_args_with_assignment_operator
            supports_named_fn_args_with_rarrow_operator
            supports_named_fn_args_with_expr_name
            supports_numeric_prefix
            supports_window_function_null_treatment_arg
            supports_dictionary_syntax
            support_map_literal_syntax
            supports_lambda_functions
            supports_parenthesized_set_variables
            supports_comma_separated_set_assignments
            supports_update_order_by
            supports_select_wildcard_except
            convert_type_before_value
            supports_triple_quoted_string
            supports_trailing_commas
            supports_limit_comma
            supports_string_literal_concatenation
            supports_projection_trailing_commas
            supports_from_trailing_commas
            supports_column_definition_trailing_commas
            supports_object_name_double_dot_notation
            supports_struct_literal
            supports_empty_projections
            supports_select_expr_star
            supports_from_first_select
            supports_from_first_insert
            supports_pipe_operator
            supports_user_host_grantee
            supports_match_against
            supports_select_wildcard_exclude
            supports_select_exclude
            supports_create_table_multi_schema_info_sources
            supports_select_modifiers
            describe_requires_table_keyword
            allow_extract_custom
            allow_extract_single_quotes
            supports_extract_comma_syntax
            supports_create_view_comment_syntax
            supports_array_typedef_without_element_type
            supports_parens_around_table_factor
            supports_values_as_table_factor
            supports_dollar_placeholder
            supports_dollar_as_money_prefix
            supports_create_index_with_clause
            require_interval_qualifier
            supports_explain_with_utility_options
            supports_asc_desc_in_column_definition
            supports_factorial_operator
            supports_bitwise_shift_operators
            supports_nested_comments
            supports_multiline_comment_hints
            supports_eq_alias_assignment
            supports_try_convert
            supports_bang_not_operator
            supports_listen_notify
            supports_load_data
            supports_load_extension
            supports_top_before_distinct
            supports_boolean_literals
            supports_show_like_before_in
            supports_comment_on
            supports_create_table_select
            supports_partiql
            supports_constraint_keyword_without_name
            supports_key_column_option
            supports_table_sample_before_alias
            supports_insert_set
            supports_insert_table_function
            supports_insert_table_query
            supports_insert_format
            supports_insert_table_alias
            supports_set_stmt_without_operator
            supports_table_versioning
            supports_string_escape_constant
            supports_table_hints
            requires_single_line_comment_whitespace
            supports_array_typedef_with_brackets
            supports_geometric_types
            supports_order_by_all
            supports_set_names
            supports_space_separated_column_options
            supports_alter_column_type_using
            supports_comma_separated_drop_column_list
            supports_data_type_signed_suffix
            supports_interval_options
            supports_create_table_like_parenthesized
            supports_semantic_view_table_factor
            supports_quote_delimited_string
            supports_comment_optimizer_hint
            supports_double_ampersand_operator
            supports_binary_kw_as_cast
            supports_select_wildcard_replace
            supports_select_wildcard_ilike
            supports_select_wildcard_rename
            supports_select_wildcard_with_alias
            supports_optimize_table
            supports_install
            supports_detach
            supports_prewhere
            supports_with_fill
            supports_limit_by
            supports_interpolate
            supports_settings
            supports_select_format
            supports_comma_separated_trim
            supports_cte_without_as
            supports_select_item_multi_column_alias
            supports_xml_expressions
            supports_create_table_using
            supports_long_type_as_bigint
            supports_map_literal_with_angle_brackets
        }
        for character in (0..=0x2fff).filter_map(char::from_u32) {
            assert_eq!(
                TqDialect.is_delimited_identifier_start(character),
                GenericDialect.is_delimited_identifier_start(character)
            );
            assert_eq!(TqDialect.is_identifier_start(character), GenericDialect.is_identifier_start(character));
            assert_eq!(TqDialect.is_identifier_part(character), GenericDialect.is_identifier_part(character));
        }
    }

    /// Rust cannot list the methods of a trait: whoever updates sqlparser renews the list above and this line.
    #[test]
    fn the_list_of_flags_is_that_of_this_version() {
        let lock = include_str!("../../../Cargo.lock");
        let versions: Vec<&str> = lock
            .split("[[package]]")
            .filter(|package| package.contains("name = \"sqlparser\""))
            .filter_map(|package| package.split("version = \"").nth(1)?.split('"').next())
            .collect();
        assert!(versions.iter().all(|version| version.starts_with("0.62.")), "sqlparser is now {versions:?}");
    }
}
