//! Text that is longer than the terminal goes through a pager, as `git` and `psql` do it.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use unicode_width::UnicodeWidthStr;

use crate::errors::Failure;
use crate::output::print;
use crate::signals::without_interrupts;

/// Prints a text, through `$PAGER` (else `less`) where it is longer than the terminal is high.
pub(super) fn show(text: &str, wanted: bool) -> Result<(), Failure> {
    if wanted && io::stdout().is_terminal() && io::stdin().is_terminal() && is_long(text) && paged(text) {
        return Ok(());
    }
    print(text)
}

fn is_long(text: &str) -> bool {
    let Some((width, height)) = terminal_size::terminal_size_of(io::stdout()) else { return false };
    let (width, height) = (usize::from(width.0).max(1), usize::from(height.0));
    let lines: usize = text.lines().map(|line| line.width().max(1).div_ceil(width)).sum();
    lines + 2 > height
}

/// Whether a pager was there to show it.
fn paged(text: &str) -> bool {
    let command = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let command = command.unwrap_or_else(|| "less".to_owned());
    let mut words = command.split_whitespace();
    let Some(program) = words.next() else { return false };
    let child = Command::new(program)
        .args(words)
        // Colours pass, long lines are not wrapped, a short text needs no key.
        .env("LESS", std::env::var("LESS").unwrap_or_else(|_| "FRSX".to_owned()))
        .stdin(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        // Whoever leaves the pager early has read enough.
        let _ = stdin.write_all(text.as_bytes());
    }
    let _ = without_interrupts(|| child.wait());
    true
}
