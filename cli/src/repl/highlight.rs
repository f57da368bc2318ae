//! Colours while typing, and the marker of continuation lines. Only the terminal's own sixteen colours are used.

use std::borrow::Cow;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use tq_engine::sql::dialect::TqDialect;

/// What a line that goes on begins with; Enter writes it, so that the cursor stands where it seems to.
pub(super) const INDENT: &str = "    ";
/// What is shown instead of it: as wide.
const MARK: &str = "  > ";

const KEYWORD: &str = "1;34";
const TEXT: &str = "32";
const NUMBER: &str = "36";
const COMMENT: &str = "2";
const FUNCTION: &str = "35";
const COMMAND: &str = "1;35";

/// The text with colours; as wide as it is without.
pub(super) fn coloured<'l>(line: &'l str, is_function: &dyn Fn(&str) -> bool) -> Cow<'l, str> {
    if line.trim_start().starts_with('\\') {
        let end = line.find(|c: char| c.is_whitespace() && c != '\n').unwrap_or(line.len());
        return Cow::Owned(format!("\x1b[{COMMAND}m{}\x1b[0m{}", &line[..end], &line[end..]));
    }
    match tokens(line) {
        Some(tokens) => Cow::Owned(marked(&paint(&tokens, is_function))),
        // An open quote: nothing is known yet.
        None if line.contains('\n') => Cow::Owned(marked(line)),
        None => Cow::Borrowed(line),
    }
}

/// The texts of the tokens with their kinds. They put together are the line again, else nothing is coloured.
fn tokens(line: &str) -> Option<Vec<(Token, String)>> {
    let tokens = Tokenizer::new(&TqDialect, line).tokenize_with_location().ok()?;
    let starts = line_starts(line);
    let at = |line_number: u64, column: u64| -> Option<usize> {
        let start = *starts.get(usize::try_from(line_number).ok()?.checked_sub(1)?)?;
        let rest = &line[start..];
        let skip = usize::try_from(column).ok()?.checked_sub(1)?;
        Some(start + rest.char_indices().nth(skip).map_or(rest.len(), |(at, _)| at))
    };
    let mut texts = Vec::with_capacity(tokens.len());
    let mut begin = 0;
    for (index, token) in tokens.iter().enumerate() {
        let end = match tokens.get(index + 1) {
            Some(next) => at(next.span.start.line, next.span.start.column)?,
            None => line.len(),
        };
        texts.push((token.token.clone(), line.get(begin..end)?.to_owned()));
        begin = end;
    }
    (begin == line.len()).then_some(texts)
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

fn paint(tokens: &[(Token, String)], is_function: &dyn Fn(&str) -> bool) -> String {
    let mut text = String::new();
    for (index, (token, word)) in tokens.iter().enumerate() {
        let called = || {
            tokens[index + 1..]
                .iter()
                .find(|(token, _)| !matches!(token, Token::Whitespace(_)))
                .is_some_and(|(token, _)| *token == Token::LParen)
        };
        let style = match token {
            Token::Word(name) if name.quote_style.is_none() && is_function(&name.value.to_lowercase()) && called() => {
                Some(FUNCTION)
            }
            Token::Word(name) if name.keyword != Keyword::NoKeyword && is_usual(&name.value) => Some(KEYWORD),
            Token::SingleQuotedString(_) => Some(TEXT),
            Token::Number(..) => Some(NUMBER),
            Token::Whitespace(_) if word.trim_start().starts_with("--") || word.trim_start().starts_with("/*") => {
                Some(COMMENT)
            }
            _ => None,
        };
        match style {
            Some(style) => text.push_str(&format!("\x1b[{style}m{word}\x1b[0m")),
            None => text.push_str(word),
        }
    }
    text
}

/// `name`, `start`, `time` are keywords of some dialect, and columns of ours.
fn is_usual(word: &str) -> bool {
    super::complete::KEYWORDS.binary_search(&word.to_uppercase().as_str()).is_ok()
}

/// Lines that go on show their mark instead of blanks.
fn marked(text: &str) -> String {
    text.replace(&format!("\n{INDENT}"), &format!("\n\x1b[2m{MARK}\x1b[0m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without colours.
    fn plain(text: &str) -> String {
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('\x1b') {
            plain.push_str(&rest[..at]);
            rest = &rest[at..];
            rest = &rest[rest.find('m').map_or(rest.len(), |end| end + 1)..];
        }
        plain + rest
    }

    #[test]
    fn colours_change_no_character() {
        for line in
            ["SELECT busy(start, finish) FROM tasks -- ü\n", "select 'ä', 1.5;", "\\d tasks", "SELECT 'open", ""]
        {
            assert_eq!(plain(&coloured(line, &|name| name == "busy")), line);
        }
        assert_eq!(plain(&coloured("SELECT\n    1", &|_| false)), "SELECT\n  > 1");
        assert!(coloured("SELECT busy(1)", &|name| name == "busy").contains("\x1b[35mbusy"));
        assert!(!coloured("SELECT name", &|_| false).contains("mname"));
    }
}
