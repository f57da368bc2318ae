//! The prompt: SQL over several lines until `;`, commands that begin with `\`, history, completion.
//!
//! Life of a line: the editor asks [`helper`] whether the text is complete → a `\` command is answered here, SQL is split
//! into statements and asked one by one → rows are printed as they arrive. An error ends the statement and those typed
//! with it, Ctrl-C ends the query; neither ends the prompt. Without a terminal on stdin the same text is read to its end
//! without a prompt, and the first error ends the run as in a file.

mod backslash;
mod helper;

use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{CompletionType, Config, Editor};
use tq_engine::sql;

use crate::args::OpenArgs;
use crate::ask::{Asker, Params};
use crate::commands::print;
use crate::errors::{Failure, Problem};
use crate::open::plural;
use crate::output::{self, Format, Look, Picture};
use crate::talk;

use backslash::Backslash;
use helper::{Assistant, Words};

/// Lines of history that are kept.
const HISTORY_LINES: usize = 5_000;

/// The prompt's state.
struct Prompt {
    asker: Asker,
    timing: bool,
    words: Arc<Mutex<Words>>,
}

/// Whether the prompt goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Go,
    Leave,
}

pub(crate) fn run(args: &OpenArgs) -> Result<(), Failure> {
    if !io::stdin().is_terminal() && args.traces.iter().any(|trace| trace == "-" || trace.ends_with("=-")) {
        return Err(Problem::new("standard input is the trace, so nothing can be typed")
            .hint("ask with `tq query - -c 'SELECT …'`")
            .into());
    }
    let mut prompt = Prompt { asker: Asker::open(args)?, timing: false, words: Arc::default() };
    if io::stdin().is_terminal() { prompt.interact() } else { prompt.read_all() }
}

impl Prompt {
    fn interact(&mut self) -> Result<(), Failure> {
        print(&self.greeting()?)?;
        let config = Config::builder()
            .auto_add_history(true)
            .history_ignore_dups(true)
            .and_then(|config| config.max_history_size(HISTORY_LINES))
            .map_err(|error| terminal(&error))?
            .history_ignore_space(true)
            .bracketed_paste(true)
            .completion_type(CompletionType::List)
            .build();
        let mut editor: Editor<Assistant, DefaultHistory> =
            Editor::with_config(config).map_err(|error| terminal(&error))?;
        editor.set_helper(Some(Assistant::new(Arc::clone(&self.words))));
        let history = history_file();
        if let Some(file) = &history {
            // The first prompt of a user has no history.
            let _ = editor.load_history(file);
        }
        self.learn_words();
        let result = loop {
            match editor.readline("tq> ") {
                Ok(text) => match self.answer(&text) {
                    Ok(Next::Go) => {}
                    Ok(Next::Leave) => break Ok(()),
                    Err(Failure::Interrupted) => talk::line("interrupted"),
                    Err(Failure::BrokenPipe) => break Err(Failure::BrokenPipe),
                    Err(failure) => failure.tell(),
                },
                // Ctrl-C throws the line away.
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => break Ok(()),
                Err(error) => break Err(terminal(&error)),
            }
        };
        if let Some(file) = &history {
            // Two prompts at once must not lose each other's lines, so appending comes first.
            let saved = if file.exists() { editor.append_history(file) } else { editor.save_history(file) };
            if let Err(error) = saved {
                talk::warning(&format!("the history was not saved to `{}`: {error}", file.display()));
            }
        }
        result
    }

    /// Everything from a pipe, as a file would be.
    fn read_all(&mut self) -> Result<(), Failure> {
        let mut text = String::new();
        io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Problem::new(format!("cannot read standard input: {error}")))?;
        let mut pending = String::new();
        for line in text.lines() {
            if pending.trim().is_empty() && line.trim_start().starts_with('\\') {
                if self.answer(line)? == Next::Leave {
                    return Ok(());
                }
                continue;
            }
            pending.push_str(line);
            pending.push('\n');
            if crate::statements::is_complete(&pending) && self.answer(&std::mem::take(&mut pending))? == Next::Leave {
                return Ok(());
            }
        }
        self.answer(&pending).map(|_| ())
    }

    fn answer(&mut self, text: &str) -> Result<Next, Failure> {
        let text = text.trim();
        if matches!(text.trim_end_matches(';').to_lowercase().as_str(), "exit" | "quit") {
            return Ok(Next::Leave);
        }
        if text.starts_with('\\') {
            return self.command(Backslash::parse(text)?);
        }
        for statement in sql::parse(text)? {
            let started = Instant::now();
            let format = if io::stdout().is_terminal() { Format::Table } else { Format::Csv };
            let look = Look::of_stdout(self.asker.session().tick());
            let mut output = output::create(format, Box::new(io::stdout()), &look, None, Picture::default());
            self.asker.run(&statement, &Params::new(), format.arrange(None), output.as_mut())?;
            output.close()?;
            if self.timing {
                talk::line(&format!("Time: {:.1} ms", started.elapsed().as_secs_f64() * 1e3));
            }
        }
        self.learn_words();
        Ok(Next::Go)
    }

    fn command(&mut self, command: Backslash) -> Result<Next, Failure> {
        match command {
            Backslash::Quit => return Ok(Next::Leave),
            Backslash::Help => print(backslash::HELP)?,
            Backslash::Timing => {
                self.timing = !self.timing;
                talk::line(if self.timing { "Timing is on." } else { "Timing is off." });
            }
            Backslash::Tables(name) => print(&backslash::tables(&mut self.asker, name.as_deref())?)?,
            Backslash::Functions(name) => {
                print(&crate::commands::functions::text(&mut self.asker, name.as_deref())?)?;
            }
        }
        Ok(Next::Go)
    }

    /// What was opened, and how to go on.
    fn greeting(&mut self) -> Result<String, Failure> {
        const RUNS_SHOWN: usize = 8;
        let mut text = format!("tq {}\n", env!("CARGO_PKG_VERSION"));
        let runs = self
            .asker
            .collect("SELECT run, format, tasks, locations, makespan FROM runs ORDER BY run_number", &Params::new())?;
        let cells = output::Cells::new(&runs)?;
        let tick = self.asker.session().tick();
        for row in 0..runs.num_rows().min(RUNS_SHOWN) {
            let cell = |column| cells.shown(column, row, tick).map(Option::unwrap_or_default);
            let count = |column, word: &str| -> Result<String, Failure> {
                let number = cell(column)?;
                Ok(format!("{number} {}", plural(number.parse().unwrap_or(0), word)))
            };
            let makespan = cell(4)?;
            let makespan = if makespan.is_empty() { String::new() } else { format!(", makespan {makespan}") };
            let (name, format) = (cell(0)?, cell(1)?);
            text.push_str(&format!(
                "{name} ({format}): {} on {}{makespan}\n",
                count(2, "task")?,
                count(3, "location")?
            ));
        }
        match runs.num_rows() {
            0 => text.push_str("No trace is open; `tq TRACE` opens one.\n"),
            all if all > RUNS_SHOWN => text.push_str(&format!("… and {} more runs\n", all - RUNS_SHOWN)),
            _ => {}
        }
        text.push_str("Type SQL and end it with `;`. \\d shows tables, \\f functions, \\? help, \\q leaves.\n");
        Ok(text)
    }

    /// Names for completion; they change with every CREATE.
    fn learn_words(&self) {
        if let Ok(mut words) = self.words.lock() {
            *words = Words::of(self.asker.session());
        }
    }
}

fn terminal(error: &ReadlineError) -> Failure {
    Problem::new(format!("the terminal cannot be used: {error}")).hint("`tq query` needs none").into()
}

/// `$XDG_STATE_HOME/tq/history`, else `~/.local/state/tq/history`; its folder is made. `None` where there is no home.
fn history_file() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?.join("tq");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}
