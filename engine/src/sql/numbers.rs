//! Whole numbers of base 16, 8 and 2, as PostgreSQL (16) has them: `0x1f`, `0o17`, `0b101`, with `_` between digits.
//!
//! sqlparser (0.62) takes the first for bytes, as it takes `X'1f'`, and the others for a 0 and a name behind it. Other words that
//! follow a number without a space are refused, as in PostgreSQL: `SELECT 1x` would be `SELECT 1 AS x`.

use std::borrow::Cow;

use datafusion::common::Result;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use crate::sql::diagnostic::error_at;
use crate::sql::wording::is_unit;

/// The tokens of a statement, such numbers as decimals.
pub(super) fn decimal(tokens: Cow<'_, [TokenWithSpan]>) -> Result<Cow<'_, [TokenWithSpan]>> {
    if !(0..tokens.len()).any(|at| of_base(&tokens, at).is_some()) {
        return Ok(tokens);
    }
    let mut plain: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let Some((written, span)) = of_base(&tokens, at) else {
            plain.push(token.clone());
            at += 1;
            continue;
        };
        plain.push(TokenWithSpan { token: Token::Number(value(&written, span)?, false), span });
        at += tokens[at..].iter().take_while(|token| token.span.start < span.end).count();
    }
    Ok(Cow::Owned(plain))
}

/// What is written where a number begins that is no decimal.
fn of_base(tokens: &[TokenWithSpan], at: usize) -> Option<(String, Span)> {
    let token = &tokens[at];
    let (start, end) = (token.span.start, token.span.end);
    let number = match &token.token {
        Token::Number(digits, false) => digits.clone(),
        // `X'1f'` has its quotes.
        Token::HexStringLiteral(digits) if end.column - start.column == digits.len() as u64 + 2 => {
            format!("0x{digits}")
        }
        _ => return None,
    };
    match tokens.get(at + 1) {
        Some(TokenWithSpan { token: Token::Word(word), span }) if span.start == end && word.quote_style.is_none() => {
            Some((format!("{number}{}", word.value), Span { start, end: span.end }))
        }
        _ => number.starts_with("0x").then_some((number, token.span)),
    }
}

fn value(written: &str, span: Span) -> Result<String> {
    let lower = written.to_lowercase();
    let base = match lower.get(..2) {
        Some("0x") => 16,
        Some("0o") => 8,
        Some("0b") => 2,
        _ => {
            let unit = written.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
            let hint = match is_unit(unit) {
                true => format!("a time is written `{unit}({})`", &written[..written.len() - unit.len()]),
                false => {
                    "a space goes between a number and a word; names that begin with a digit stand in double quotes"
                        .to_owned()
                }
            };
            return Err(error_at(span, format!("`{written}` is neither a number nor a name"), &hint));
        }
    };
    let digits = &lower[2..];
    let is_separated = digits.ends_with('_') || digits.contains("__");
    match u64::from_str_radix(&digits.replace('_', ""), base) {
        Ok(value) if !is_separated => Ok(value.to_string()),
        Err(error) if *error.kind() == std::num::IntErrorKind::PosOverflow => {
            Err(error_at(span, format!("`{written}` does not fit"), "BIGINT has 64 bits"))
        }
        _ => Err(error_at(span, format!("`{written}` is no number of base {base}"), "")),
    }
}
