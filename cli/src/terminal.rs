//! The terminal: its width and colours, and the messages on it. Errors, warnings, notes and hints go to stderr. Colour is used
//! only on a terminal and never carries meaning by itself; `NO_COLOR` is honoured.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::host;
use crate::text::runner::{Spelling, harmless};
use crate::text::visible::visible;
use crate::text::words::wrapped;

/// Whether a stream may be coloured.
pub(crate) fn colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The columns of the terminal that stdout is, if it is one.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0).max(20))
}

pub(crate) fn error(message: &str) {
    labelled("error", "1;31", message);
}

/// `--quiet`: errors stay, with their hints.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

static QUIET: AtomicBool = AtomicBool::new(false);

pub(crate) fn warning(message: &str) {
    if is_quiet() {
        return;
    }
    labelled("warning", "1;33", message);
}

pub(crate) fn note(message: &str) {
    if is_quiet() {
        return;
    }
    labelled("note", "1;36", message);
}

pub(crate) fn hint(message: &str) {
    labelled("hint", "1;32", message);
}

/// What was done, without a label.
pub(crate) fn done(message: &str) {
    if !is_quiet() {
        line(message);
    }
}

/// A line without a label.
pub(crate) fn line(message: &str) {
    if host::hears("", message) {
        return;
    }
    write(&harmless(&visible(message), Spelling::Escape));
}

/// A line that a CI system takes for a command of ours.
pub(crate) fn command(line: &str) {
    write(line);
}

fn write(line: &str) {
    let mut stderr = io::stderr().lock();
    let clear = if MOVING.swap(false, Ordering::Relaxed) { CLEAR } else { "" };
    // Nobody is left to tell when stderr is closed.
    let _ = writeln!(stderr, "{clear}{line}");
}

/// Back to the beginning of the line, which is empty then.
const CLEAR: &str = "\r\x1b[K";

/// Whether the line that the cursor is in shows progress.
static MOVING: AtomicBool = AtomicBool::new(false);

/// Shows progress in the line that the cursor is in. What is written next takes its place.
pub(crate) fn progress(shown: &str) {
    let mut stderr = io::stderr().lock();
    MOVING.store(true, Ordering::Relaxed);
    let _ = write!(stderr, "{CLEAR}{shown}").and_then(|()| stderr.flush());
}

/// Nothing is shown any more.
pub(crate) fn end_progress() {
    let mut stderr = io::stderr().lock();
    if MOVING.swap(false, Ordering::Relaxed) {
        let _ = write!(stderr, "{CLEAR}").and_then(|()| stderr.flush());
    }
}

fn labelled(label: &'static str, style: &str, message: &str) {
    if host::hears(label, message) {
        return;
    }
    // What a message quotes is a stranger's, and must neither steer the terminal nor begin a line.
    let mut message = visible(message).into_owned();
    if let Some((width, _)) = terminal_size::terminal_size_of(io::stderr()).filter(|_| io::stderr().is_terminal()) {
        message = wrapped(&format!("{label}: {message}"), usize::from(width.0).max(20)).join("\n");
        message.replace_range(..label.len() + ": ".len(), "");
    }
    let message = harmless(&message, Spelling::Escape);
    if colours(&io::stderr()) {
        write(&format!("\x1b[{style}m{label}:\x1b[0m {message}"));
    } else {
        write(&format!("{label}: {message}"));
    }
}
