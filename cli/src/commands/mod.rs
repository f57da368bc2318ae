//! The commands, one file each. The prompt, the report and checks have folders of their own.

pub(crate) mod completions;
pub(crate) mod diff;
pub(crate) mod formats;
pub(crate) mod functions;
pub(crate) mod man;
pub(crate) mod queries;
pub(crate) mod query;
pub(crate) mod tables;

use std::io::{self, Write};

use crate::errors::Failure;
use crate::output::Spelling;
use crate::text::runner::harmless;
use crate::text::visible::{visible, visible_lines};

/// Writes text for people to stdout, in which a CI system finds no commands; a closed pipe is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    if crate::text::runner::is_listening() {
        return print_as_it_is(&harmless(text, Spelling::Escape));
    }
    print_as_it_is(text)
}

/// Writes text of ours to stdout.
pub(crate) fn print_as_it_is(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// `1 row`, `3 rows`.
pub(crate) fn counted(count: usize, word: &str) -> String {
    format!("{count} {}", crate::open::plural(count as u64, word))
}

/// Names with a sentence each, aligned; the sentence goes on below itself where the terminal is narrow.
pub(crate) fn listed(entries: &[(String, String)], width: Option<usize>) -> String {
    use unicode_width::UnicodeWidthStr;
    const NAME_MAX: usize = 32;
    let column = entries.iter().map(|(name, _)| name.width()).filter(|&width| width <= NAME_MAX).max().unwrap_or(0) + 2;
    let room = width.unwrap_or(100).saturating_sub(column + 2).max(30);
    let mut text = String::new();
    for (name, sentence) in entries {
        let name = visible(name);
        let mut lines = wrapped(sentence, room).into_iter();
        // A long name has a line of its own.
        if name.width() + 2 > column {
            text.push_str(&format!("  {name}\n"));
        } else {
            let line = format!("  {name}{}{}", " ".repeat(column - name.width()), lines.next().unwrap_or_default());
            text.push_str(line.trim_end());
            text.push('\n');
        }
        for line in lines {
            text.push_str(&format!("  {}{line}\n", " ".repeat(column)));
        }
    }
    text
}

/// Text broken at blanks; its own line ends stay.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    use unicode_width::UnicodeWidthStr;
    let mut lines = Vec::new();
    for paragraph in visible_lines(text).lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && line.width() + 1 + word.width() > width {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}
