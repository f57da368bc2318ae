//! SQL as it is typed: whether a text is complete, which `$name`s it has, what their values are.
//!
//! The tokenizer of the SQL parser decides, so that a `;` or `$` in a string or a comment is none.

use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use tq_engine::sql::dialect::TqDialect;

/// Whether a text at the prompt is ready to run: nothing, or its last token is a `;`.
pub(crate) fn is_complete(sql: &str) -> bool {
    tokenize(sql).is_ok_and(|tokens| matches!(last_token(&tokens), None | Some(Token::SemiColon)))
}

/// Whether a line that begins with `\` is a command of the prompt behind this text: not within a string or a comment.
pub(crate) fn is_between_tokens(sql: &str) -> bool {
    tokenize(sql).is_ok()
}

/// The names of the `$name` placeholders.
pub(crate) fn placeholders(sql: &str) -> Vec<String> {
    tq_engine::queries::placeholders(sql).into_iter().map(|(name, _)| name).collect()
}

/// A value as people give it: a whole number, a decimal, true or false, else text. Quotes make a text of anything.
pub(crate) fn typed(value: &str) -> ScalarValue {
    if let Some(text) = value.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return ScalarValue::Utf8(Some(text.replace("''", "'")));
    }
    if let Ok(integer) = value.parse::<i64>() {
        return ScalarValue::Int64(Some(integer));
    }
    // `nan` and `inf` are names more often than numbers.
    let numeric = value.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    if numeric
        && let Ok(float) = value.parse::<f64>()
        && float.is_finite()
    {
        return ScalarValue::Float64(Some(float));
    }
    match value {
        "true" | "false" => ScalarValue::Boolean(Some(value == "true")),
        _ => ScalarValue::Utf8(Some(value.to_owned())),
    }
}

fn tokenize(sql: &str) -> Result<Vec<Token>, ()> {
    Tokenizer::new(&TqDialect, sql).tokenize().map_err(|_| ())
}

fn last_token(tokens: &[Token]) -> Option<&Token> {
    tokens.iter().rev().find(|token| !matches!(token, Token::Whitespace(_) | Token::EOF))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_complete_when_it_ends_with_a_semicolon() {
        for (text, complete) in [
            ("", true),
            ("select 1", false),
            ("select 1;", true),
            ("select 1; -- done", true),
            ("select ';", false),
            ("select 1 -- ;", false),
            ("/* open", false),
            ("select 1; select 2", false),
        ] {
            assert_eq!(is_complete(text), complete, "{text}");
        }
    }

    #[test]
    fn strings_and_comments_are_seen() {
        for (text, between) in
            [("", true), ("select 1\n", true), ("select 'a\n", false), ("/* a\n", false), ("-- a\n", true)]
        {
            assert_eq!(is_between_tokens(text), between, "{text}");
        }
    }

    #[test]
    fn values_have_types() {
        assert_eq!(typed("5"), ScalarValue::Int64(Some(5)));
        assert_eq!(typed("-0.5"), ScalarValue::Float64(Some(-0.5)));
        assert_eq!(typed("true"), ScalarValue::Boolean(Some(true)));
        assert_eq!(typed("inf"), ScalarValue::from("inf"));
        assert_eq!(typed("'5'"), ScalarValue::from("5"));
        assert_eq!(typed(""), ScalarValue::from(""));
    }

    #[test]
    fn placeholders_have_names() {
        assert_eq!(placeholders("select $limit, '$no', $b"), ["limit", "b"]);
    }
}
