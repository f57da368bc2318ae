//! No text of a trace becomes a command to the CI runner that shows our output.
//!
//! The runner of GitHub Actions reads what a step prints, and takes some lines for commands: `::add-mask::…`, `::error file=…::…`,
//! and in the old spelling `##[add-mask]…`. The name of a task in a trace may be such a line.
//!
//! What the runner takes for a command (`ActionCommand.cs` of actions/runner): a line whose first characters other than blanks are
//! `::`, and a line with `##[` anywhere in it. Lines end at `\n` and at `\r`. So in a job (`GITHUB_ACTIONS` is set), or with
//! `--github`:
//!
//! - Messages on stderr, tables, and the outcomes of checks are for people: there both are escaped so that they are not
//!   commands (`\u{3a}:add-mask::`, `#\u{23}[`), in markdown, HTML and SVG by a character reference, in JSON by `\u0023`,
//!   which reads back as the same text.
//! - CSV and TSV on standard output have no such escape. Before the first line that would be a command, the runner is told to
//!   stop processing commands, with a token that nobody can guess, and to resume at the end. That adds two lines, only where
//!   the output would otherwise command the runner. A file (`-o`, `>`) is not a log and is never changed, and neither are
//!   Parquet and Arrow, which are not text.
//! - Annotations ([`annotation`]) are our own commands; what is quoted in them is escaped as the runner wants it.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use super::visible::visible;

/// Whether `--github` was given.
static TOLD: AtomicBool = AtomicBool::new(false);

/// For `--github`: from now on a runner reads what is printed, whatever the environment says.
pub(crate) fn listens() {
    TOLD.store(true, Ordering::Relaxed);
}

/// Whether a runner reads what is printed.
pub(crate) fn is_listening() -> bool {
    TOLD.load(Ordering::Relaxed)
        || std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| !value.is_empty() && value != "false")
}

/// How a command within a text is made harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As an escape that people read.
    Escape,
    /// As a character reference of HTML, which markdown and SVG read, too.
    Reference,
    /// As an escape within strings of JSON.
    Json,
    /// The text stays; the runner is told to ignore commands until the end.
    Stop,
    /// Bytes that are no text stay as they are.
    Bytes,
}

impl Spelling {
    fn colon(self) -> &'static str {
        match self {
            Spelling::Escape => "\\u{3a}",
            Spelling::Reference => "&#58;",
            Spelling::Json => "\\u003a",
            Spelling::Stop | Spelling::Bytes => ":",
        }
    }

    fn hash(self) -> &'static str {
        match self {
            Spelling::Escape => "\\u{23}",
            Spelling::Reference => "&#35;",
            Spelling::Json => "\\u0023",
            Spelling::Stop | Spelling::Bytes => "#",
        }
    }
}

/// The text with commands made harmless where a runner reads it, else unchanged.
pub(crate) fn harmless(text: &str, spelling: Spelling) -> String {
    if !is_listening() {
        return text.to_owned();
    }
    text.split_inclusive(['\n', '\r']).map(|line| spelt(line, spelling)).collect()
}

/// Whether the runner could take a line for a command.
fn is_command(line: &str) -> bool {
    begin(line).starts_with("::") || line.contains("##[")
}

fn begin(line: &str) -> &str {
    line.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}')
}

fn spelt(line: &str, spelling: Spelling) -> String {
    let rest = begin(line);
    let blanks = &line[..line.len() - rest.len()];
    let rest = match rest.strip_prefix("::") {
        Some(rest) => format!("{}:{rest}", spelling.colon()),
        None => rest.to_owned(),
    };
    format!("{blanks}{}", rest.replace("##[", &format!("#{}[", spelling.hash())))
}

/// `::error file=…,line=…,title=…::…`: the one kind of command that `tq` gives.
pub(crate) fn annotation(level: &str, file: &str, line: usize, title: &str, message: &str) -> String {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    // The name of a file may hold invisible characters, too. An annotation without a file is one of the job.
    let place = match file {
        "" => String::new(),
        file => format!("file={},line={line},", property(&visible(file))),
    };
    format!("::{level} {place}title={}::{}", property(title), data(message))
}

/// A writer for standard output in which no text is a command to the runner.
pub(crate) struct Guarded<W: Write> {
    inner: W,
    spelling: Spelling,
    /// What the current line has so far.
    line: Vec<u8>,
    /// What makes the runner listen again.
    token: Option<String>,
    /// Whether the last line that was written has ended.
    has_ended: bool,
}

impl<W: Write> Guarded<W> {
    pub(crate) fn new(inner: W, spelling: Spelling) -> Guarded<W> {
        Guarded { inner, spelling, line: Vec::new(), token: None, has_ended: true }
    }

    fn take_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        self.has_ended = line.last().map_or(self.has_ended, |byte| *byte == b'\n');
        let text = String::from_utf8_lossy(&line);
        if self.token.is_some() || !is_command(&text) {
            return self.inner.write_all(&line);
        }
        if self.spelling != Spelling::Stop {
            return self.inner.write_all(spelt(&text, self.spelling).as_bytes());
        }
        let token = token();
        self.inner.write_all(format!("::stop-commands::{token}\n").as_bytes())?;
        self.token = Some(token);
        self.inner.write_all(&line)
    }

    /// The end of what is written: the runner listens again.
    fn end(&mut self) -> io::Result<()> {
        self.take_line()?;
        if let Some(token) = self.token.take() {
            let end = if self.has_ended { "" } else { "\n" };
            self.inner.write_all(format!("{end}::{token}::\n").as_bytes())?;
        }
        self.inner.flush()
    }
}

impl<W: Write> Write for Guarded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            self.line.extend_from_slice(part);
            if matches!(part.last(), Some(b'\n' | b'\r')) {
                self.take_line()?;
            }
        }
        Ok(bytes.len())
    }

    /// A line that has not ended stays here: it may still become a command.
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Drop for Guarded<W> {
    fn drop(&mut self) {
        // An error here means that the reader is gone: nobody is left to be told.
        let _ = self.end();
    }
}

/// 128 bits that nobody who wrote a trace can know: the keys of [`RandomState`] come from the system.
fn token() -> String {
    let half = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", half(), half())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::buffer::Buffer;

    const HOSTILE: [&str; 7] = [
        "::add-mask::x",
        "  ::error file=a::b",
        "\u{feff}\u{a0}\t::warning::",
        "a ##[add-mask]x",
        " │ ##[group] ##[error]x",
        "::stop-commands::x",
        "##[",
    ];

    #[test]
    fn no_spelling_leaves_a_command() {
        for line in HOSTILE {
            assert!(is_command(line), "{line}");
            for spelling in [Spelling::Escape, Spelling::Reference, Spelling::Json] {
                assert!(!is_command(&spelt(line, spelling)), "{line}");
            }
        }
        for line in ["a::b", "std::vec", "| ::x", "#[x]", "## [x]", "\"::x\"", ""] {
            assert!(!is_command(line), "{line}");
            assert_eq!(spelt(line, Spelling::Escape), line);
        }
    }

    fn written(spelling: Spelling, parts: &[&str]) -> String {
        let buffer = Buffer::default();
        let mut guarded = Guarded::new(buffer.writer(), spelling);
        for part in parts {
            guarded.write_all(part.as_bytes()).unwrap();
            guarded.flush().unwrap();
        }
        drop(guarded);
        buffer.text()
    }

    #[test]
    fn data_without_commands_stays_as_it_is() {
        let csv = ["name,x\n", "std::vec,1\n", "\"a\nb\",2"];
        assert_eq!(written(Spelling::Stop, &csv), csv.concat());
        assert_eq!(written(Spelling::Bytes, &["a\n"]), "a\n");
    }

    #[test]
    fn the_runner_is_stopped_before_the_first_command_and_listens_at_the_end() {
        // The command arrives in pieces, and behind a bare carriage return.
        let text = written(Spelling::Stop, &["name\na\n:", ":add-mask::x\nb\r", "::error::y"]);
        let lines: Vec<&str> = text.split(['\n', '\r']).collect();
        assert_eq!(&lines[..2], ["name", "a"]);
        let token = lines[2].strip_prefix("::stop-commands::").unwrap();
        assert_eq!(token.len(), 32);
        assert_eq!(lines[3..6], ["::add-mask::x", "b", "::error::y"]);
        assert_eq!(lines[6], format!("::{token}::"));
        assert_ne!(super::token(), super::token());
    }

    #[test]
    fn texts_are_spelt_line_by_line() {
        assert_eq!(written(Spelling::Escape, &[" ::a::\n", "b ##[c]\n"]), " \\u{3a}:a::\nb #\\u{23}[c]\n");
        assert_eq!(written(Spelling::Reference, &["::a::"]), "&#58;:a::");
        assert_eq!(written(Spelling::Json, &["[\"##[c]\"]\n"]), "[\"#\\u0023[c]\"]\n");
    }

    #[test]
    fn annotations_quote() {
        assert_eq!(
            annotation("error", "a,b:c%.sql", 3, "x::y\n", "50%\r\n::add-mask::z"),
            "::error file=a%2Cb%3Ac%25.sql,line=3,title=x%3A%3Ay%0A::50%25%0D%0A::add-mask::z"
        );
        assert_eq!(annotation("notice", "", 1, "names", "a"), "::notice title=names::a");
        assert_eq!(annotation("error", "a\u{1b}[2J.sql", 1, "", ""), "::error file=a\\u{1b}[2J.sql,line=1,title=::");
    }
}
