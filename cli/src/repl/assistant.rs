//! Answers the line editor: whether the text is complete, how a word can be completed, how the text is coloured, and
//! which arguments the function being typed takes.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::{Hint, Hinter};
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Cmd, ConditionalEventHandler, Context, Event, EventContext, Helper, RepeatCount};

use super::commands::of_word;
use super::complete::Words;
use super::highlight::{self, INDENT};
use crate::statements;

/// The editor's helper.
#[derive(Helper)]
pub(super) struct Assistant {
    words: Arc<Mutex<Words>>,
    files: FilenameCompleter,
    colours: bool,
}

/// A text behind the cursor that is only shown.
pub(super) struct Note(String);

impl Hint for Note {
    fn display(&self) -> &str {
        &self.0
    }

    fn completion(&self) -> Option<&str> {
        None
    }
}

impl Assistant {
    pub(super) fn new(words: Arc<Mutex<Words>>, colours: bool) -> Assistant {
        Assistant { words, files: FilenameCompleter::new(), colours }
    }
}

impl Completer for Assistant {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Ok(words) = self.words.lock() else { return Ok((position, Vec::new())) };
        let Some((start, candidates)) = words.complete(line, position) else {
            drop(words);
            return self.files.complete(line, position, context);
        };
        let pair = |word: String| Pair { display: word.trim_end_matches('(').to_owned(), replacement: word };
        Ok((start, candidates.into_iter().map(pair).collect()))
    }
}

impl Hinter for Assistant {
    type Hint = Note;

    /// The signature of the function whose parenthesis is open at the end of the line.
    fn hint(&self, line: &str, position: usize, _: &Context<'_>) -> Option<Note> {
        if position < line.len() || line.trim_start().starts_with('\\') || ends_with_command(line) {
            return None;
        }
        if let Some(hint) = lonely_word(line) {
            return Some(Note(format!("  {hint}")));
        }
        let name = open_function(line)?;
        let words = self.words.lock().ok()?;
        let function = words.functions.get(&name)?;
        Some(Note(format!("  {}", function.syntax)))
    }
}

impl Highlighter for Assistant {
    fn highlight<'l>(&self, line: &'l str, _position: usize) -> Cow<'l, str> {
        let Ok(words) = self.words.lock() else { return Cow::Borrowed(line) };
        if self.colours {
            highlight::coloured(line, &|name| words.functions.contains_key(name))
        } else {
            Cow::Borrowed(line)
        }
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        if self.colours { Cow::Owned(format!("\x1b[1m{prompt}\x1b[0m")) } else { Cow::Borrowed(prompt) }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.colours { Cow::Owned(format!("\x1b[2m{hint}\x1b[0m")) } else { Cow::Borrowed(hint) }
    }

    fn highlight_char(&self, _line: &str, _position: usize, kind: CmdKind) -> bool {
        self.colours && kind != CmdKind::MoveCursor
    }
}

impl Validator for Assistant {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if is_ready(context.input()) { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

/// Enter: runs what is complete, else begins a line that is indented below the prompt.
pub(super) struct Enter;

impl ConditionalEventHandler for Enter {
    fn handle(&self, _event: &Event, _count: RepeatCount, _positive: bool, context: &EventContext<'_>) -> Option<Cmd> {
        if is_ready(context.line()) {
            return Some(Cmd::AcceptLine);
        }
        // Blanks inside of a text would become a part of it.
        let indent = if in_quotes(&context.line()[..context.pos()]) { "" } else { INDENT };
        Some(Cmd::Insert(1, format!("\n{indent}")))
    }
}

/// A statement that goes on in a line of its own, as if Enter had been pressed; nothing where none has begun.
pub(super) fn with_next_line(statement: &str) -> String {
    match statement.trim_end() {
        "" => String::new(),
        statement => format!("{statement}\n{INDENT}"),
    }
}

/// Whether a text at the prompt can be answered.
fn is_ready(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('\\') || of_word(text).is_some() || statements::is_complete(text) || ends_with_command(text)
}

/// Whether the last line of an unfinished statement is a command.
fn ends_with_command(text: &str) -> bool {
    text.rsplit_once('\n').is_some_and(|(statement, last)| {
        last.trim_start().starts_with('\\') && statements::is_between_tokens(statement)
    })
}

/// What to do where the last line of an unfinished statement is a word that means something of its own at the prompt.
fn lonely_word(text: &str) -> Option<&'static str> {
    let (_, last) = text.rsplit_once('\n')?;
    match of_word(last).filter(|_| !last.trim_end().ends_with(';'))? {
        "\\q" => Some("(`\\q` leaves; `;` ends the statement, Ctrl-C drops it)"),
        "\\?" => Some("(`\\?` helps; `;` ends the statement, Ctrl-C drops it)"),
        // A name of a table may stand alone on its line.
        _ => None,
    }
}

/// Whether a text ends inside of quotes or a comment.
fn in_quotes(text: &str) -> bool {
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
    }
    quote.is_some()
}

/// The function in whose arguments a text ends.
fn open_function(text: &str) -> Option<String> {
    let mut depth = 0;
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth > 0 => depth -= 1,
            '(' => {
                let name: String = text[..at].chars().rev().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let name: String = name.chars().rev().collect::<String>().to_lowercase();
                // `(SELECT` and `IN (` belong to no function.
                return (!name.is_empty()).then_some(name);
            }
            ';' => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_that_is_being_typed_is_known() {
        assert_eq!(open_function("SELECT Busy(start, "), Some("busy".to_owned()));
        assert_eq!(open_function("SELECT sum(us(5) + "), Some("sum".to_owned()));
        assert_eq!(open_function("SELECT busy(start, finish)"), None);
        assert_eq!(open_function("SELECT ("), None);
    }

    #[test]
    fn words_of_the_prompt_within_a_statement_are_met_with_advice() {
        assert!(lonely_word("SELECT 1\n  quit").is_some_and(|hint| hint.contains("Ctrl-C")));
        assert!(lonely_word("SELECT 1\n  help").is_some_and(|hint| hint.contains("helps")));
        assert_eq!(lonely_word("quit"), None);
        assert_eq!(lonely_word("SELECT quit"), None);
    }

    #[test]
    fn commands_within_a_statement_are_answered_at_once() {
        assert!(is_ready("SELECT 1\n  \\x"));
        assert!(is_ready("\\d tasks"));
        assert!(!is_ready("SELECT 1\n  FROM tasks"));
        assert!(!is_ready("SELECT 'a\n\\x"), "a text goes on");
        assert!(!is_ready("SELECT 1\n  \\x\n  FROM"));
    }

    #[test]
    fn quotes_are_seen() {
        assert!(in_quotes("SELECT 'a"));
        assert!(!in_quotes("SELECT 'it''s', \"x\""));
    }
}
