//! Errors as users read them: what, where, and what to type next.
//!
//! [`import`] words the errors of traces, [`chart`] those of charts, [`queries`] those of saved queries, [`writing`] those of
//! writing an answer, and the engine's `SqlError` those of statements; [`Problem::tell`] lays them out. Neither Debug output nor a
//! backtrace ever reaches a user.

mod chart;
pub(crate) mod import;
pub(crate) mod queries;
pub(crate) mod timeout;
mod writing;

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::Mutex;

use tq_engine::error::io_reason;
use tq_engine::nearest::nearest;
use tq_engine::sql::SqlError;

use crate::terminal;
use crate::text::visible::visible;

/// Why a command ended without its answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is something to say. Exit status 2.
    Told(Box<Problem>),
    /// Ctrl-C. Exit status 130.
    Interrupted,
    /// Whoever read our output went away: `tq … | head`. No error.
    BrokenPipe,
    /// A check did not hold, as the output says. Exit status 1.
    DoesNotHold,
    /// A check could not run, as the output says. Exit status 2.
    CouldNotRun,
}

/// Something to say to the user.
#[derive(Debug, Clone, Default)]
pub(crate) struct Problem {
    /// What is wrong, in one line. A second line and more are shown indented.
    pub(crate) message: String,
    /// The file and line that it stands in, where the SQL came from a file.
    pub(crate) place: Option<String>,
    /// The line of SQL and where in it.
    pub(crate) excerpt: Option<Box<Excerpt>>,
    /// What to type next.
    pub(crate) hints: Vec<String>,
    /// Whether the chart is wrong, and not the statement whose answer it draws.
    pub(crate) is_of_chart: bool,
    /// Whether a question took more time or memory than it may: the next one may be answered.
    pub(crate) is_beyond_limit: bool,
}

/// A line of SQL with a caret.
#[derive(Debug, Clone)]
pub(crate) struct Excerpt {
    /// The line's number, from 1.
    pub(crate) line_number: usize,
    /// The line.
    pub(crate) line: String,
    /// Where the caret stands, in characters from 1.
    pub(crate) column: usize,
    /// How many characters are meant.
    pub(crate) length: usize,
}

impl Failure {
    /// Says it on stderr.
    pub(crate) fn tell(&self) {
        if let Failure::Told(problem) = self {
            problem.tell();
        }
    }

    /// The same failure for the prompt: hints name the prompt's commands instead of the shell's.
    pub(crate) fn at_the_prompt(mut self) -> Failure {
        const COMMANDS: [(&str, &str); 7] = [
            ("`tq functions NAME`", "`\\f NAME`"),
            ("`tq functions` lists the functions, `\\f` at the prompt", "`\\f` lists the functions"),
            ("`tq functions`", "`\\f`"),
            ("`tq queries`", "`\\run`"),
            ("`tq tables`", "`\\d`"),
            ("`--memory 8GB`", "`\\set memory 8GB`"),
            ("`--memory`", "`\\set memory 8GB`"),
        ];
        if let Failure::Told(problem) = &mut self {
            for (shell, prompt) in COMMANDS {
                problem.hints.iter_mut().for_each(|hint| *hint = hint.replace(shell, prompt));
            }
        }
        self
    }

    /// Adds to the line number: the text in which it happened begins `lines` lines below the start of another.
    pub(crate) fn further_down(self, lines: usize) -> Failure {
        let Failure::Told(mut problem) = self else { return self };
        if let Some(excerpt) = problem.excerpt.as_mut().filter(|_| problem.place.is_none()) {
            excerpt.line_number += lines;
        }
        Failure::Told(problem)
    }

    /// Says in which file it happened; in which line, if the failure does not know better. A failure whose place is known
    /// keeps it: a file may be included by another.
    pub(crate) fn in_file(self, file: &str, line: Option<u64>) -> Failure {
        let Failure::Told(mut problem) = self else { return self };
        if problem.place.is_some() {
            return Failure::Told(problem);
        }
        let known = problem.excerpt.as_ref().map(|excerpt| excerpt.line_number as u64);
        problem.place = Some(known.or(line).map_or_else(|| file.to_owned(), |line| format!("{file}:{line}")));
        Failure::Told(problem)
    }

    /// Says where it happened.
    pub(crate) fn at(self, place: Option<String>) -> Failure {
        let Failure::Told(mut problem) = self else { return self };
        problem.place = place;
        Failure::Told(problem)
    }

    /// [`Failure::in_file`] for the picture of an answer: the line of the chart, `None` for one that stands in no file, or that of
    /// the statement.
    pub(crate) fn in_file_of_chart(self, file: &str, chart: Option<u64>, statement: u64) -> Failure {
        match (matches!(&self, Failure::Told(problem) if problem.is_of_chart), chart) {
            (false, _) => self.in_file(file, Some(statement)),
            (true, Some(line)) => self.in_file(file, Some(line)),
            (true, None) => self,
        }
    }

    /// The status of the process.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Failure::Told(_) | Failure::CouldNotRun => 2,
            Failure::DoesNotHold => 1,
            Failure::Interrupted => 130,
            Failure::BrokenPipe => 0,
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure::Told(Box::new(problem))
    }
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        let mut problem = Problem::new(error.message);
        problem.excerpt = error.place.map(|place| {
            Box::new(Excerpt {
                line_number: place.line as usize,
                line: place.source_line,
                column: place.column as usize,
                length: place.length as usize,
            })
        });
        problem.hints.extend(error.hint);
        problem.is_beyond_limit = problem.message.starts_with(NOT_ENOUGH_MEMORY);
        problem.into()
    }
}

/// The beginning of errors of queries that asked for more than `--memory`.
const NOT_ENOUGH_MEMORY: &str = "not enough memory";

/// `; did you mean …?`, or nothing.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

/// The error for a name that is not in a list: `no table `taks`; did you mean `tasks`?`
pub(crate) fn unknown_name<'a>(
    kind: &str,
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    list: &str,
) -> Failure {
    Problem::new(format!("no {kind} `{name}`{}", did_you_mean(name, known)))
        .hint(format!("`{list}` lists the {kind}s"))
        .into()
}

/// The beginning and the end of a long message: what it quotes may be megabytes.
fn shortened(message: String) -> String {
    const BEGINNING: usize = 1600;
    const END: usize = 400;
    if message.len() <= BEGINNING + END {
        return message;
    }
    let (beginning, end) = (message.floor_char_boundary(BEGINNING), message.ceil_char_boundary(message.len() - END));
    format!("{} […] {}", &message[..beginning], &message[end..])
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Problem {
        Problem { message: shortened(message.into()), ..Problem::default() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hints.push(shortened(hint.into()));
        self
    }

    /// A defect of ours.
    pub(crate) fn internal(what: &str) -> Problem {
        // Texts and lists of a batch have offsets of 32 bits; Arrow ends with a panic where they do not fit.
        if what.contains("offset overflow") || what.contains("Offset overflow") {
            return Problem::new("a column of texts or lists came to more than 2 GB in one batch of rows")
                .hint("ask for shorter texts and lists, or for fewer rows: a long constant is repeated for every row");
        }
        Problem::new(format!("internal error: {what}"))
            .hint("this is a defect of tq; please report it with the command and, if you can, the trace")
    }

    /// A file of ours that could not be read or written.
    pub(crate) fn file(doing: &str, path: &std::path::Path, error: &io::Error) -> Problem {
        let problem = Problem::new(format!("cannot {doing} `{}`: {}", path.display(), io_reason(error)));
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        match folder.filter(|_| doing == "write" && error.kind() == io::ErrorKind::NotFound) {
            Some(folder) => {
                let folder = folder.display().to_string();
                let quoted = shlex::try_quote(&folder).unwrap_or(Cow::Borrowed(&folder));
                problem.hint(format!("there is no folder `{folder}`: `mkdir -p {quoted}` makes it"))
            }
            None => problem,
        }
    }

    pub(crate) fn no_threads(error: &io::Error) -> Problem {
        Problem::new(format!("cannot start threads for queries: {error}"))
    }

    fn tell(&self) {
        let place = self.place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        let mut lines = self.message.trim_end().lines();
        terminal::error(&format!("{place}{}", lines.next().unwrap_or_default()));
        for line in lines {
            terminal::line(&format!("       {line}"));
        }
        if let Some(excerpt) = &self.excerpt {
            excerpt.lines().iter().for_each(|line| terminal::line(line));
        }
        for hint in &self.hints {
            terminal::hint(hint);
        }
    }
}

impl Excerpt {
    /// The line around the caret: long lines are cut on both sides, tabs take one column.
    pub(crate) fn lines(&self) -> [String; 3] {
        const BEFORE: usize = 60;
        const SHOWN: usize = 100;
        let characters: Vec<char> = self.line.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
        let column = self.column.saturating_sub(1).min(characters.len());
        let from = if characters.len() <= SHOWN { 0 } else { column.saturating_sub(BEFORE) };
        let to = characters.len().min(from + SHOWN);
        let ellipsis = |cut: bool| if cut { "…" } else { "" };
        let text = |range: Range<usize>| visible(&characters[range].iter().collect::<String>()).into_owned();
        let (shown, before) = (text(from..to), text(from..column));
        let number = self.line_number.to_string();
        let margin = " ".repeat(number.len());
        let indent = unicode_width::UnicodeWidthStr::width(before.as_str()) + usize::from(from > 0);
        let marked = to.min(column + self.length.max(1)).max(column);
        let carets = text(column..marked).chars().count().max(1);
        [
            format!("{margin} |"),
            format!("{number} | {}{shown}{}", ellipsis(from > 0), ellipsis(to < characters.len())),
            format!("{margin} | {}{}", " ".repeat(indent), "^".repeat(carets)),
        ]
    }
}

/// Nothing ends silently: the message of a panic is kept for [`last_panic`] instead of being printed with a backtrace.
pub(crate) fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|info| {
        let what = info
            .payload()
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| info.payload().downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic".to_owned());
        let place = info.location().map(|at| format!(" ({}:{})", at.file(), at.line())).unwrap_or_default();
        if let Ok(mut last) = LAST_PANIC.lock() {
            *last = Some(format!("{what}{place}"));
        }
    }));
}

/// What the last panic said.
pub(crate) fn last_panic() -> String {
    let last = LAST_PANIC.lock().ok().and_then(|mut last| last.take());
    last.unwrap_or_else(|| "a panic without a message".to_owned())
}

static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);
