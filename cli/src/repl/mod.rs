//! The prompt: SQL over several lines until `;`, commands that begin with `\`, history, completion.
//!
//! Life of a line: the editor asks [`assistant`] whether the text is complete, how a word can be completed and how the text
//! is coloured → a `\` command ([`commands`]) is answered here, SQL is split into statements and asked one by one → the
//! first rows are shown ([`shown`]), through a [`pager`] where they are many, and kept for [`plot`]. An error ends the
//! statement and those typed with it, Ctrl-C ends the query; neither ends the prompt. Without a terminal on stdin the same
//! text is read to its end without a prompt, and the first error ends the run as in a file.

mod assistant;
mod commands;
mod complete;
mod example;
mod greeting;
mod highlight;
mod pager;
mod plot;
mod saved;
mod shown;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Parser;
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{ColorMode, CompletionType, Config, Editor, EventHandler, KeyCode, KeyEvent, Modifiers};
use tq_engine::paths::read_text;
use tq_engine::queries::header::has_header;
use tq_engine::queries::{Library, Origin, SavedQuery};
use tq_engine::sql::{self, Statement};

use crate::args::{Args, Command, LibraryArgs, OpenArgs};
use crate::connection::{Connection, Params};
use crate::errors::{Failure, Problem, did_you_mean};
use crate::files::{Inputs, Outputs};
use crate::format::Format;
use crate::output::buffer::Buffer;
use crate::output::{self, Destination, Look, Output, Picture, print};
use crate::progress::{self, Meter};
use crate::settings::{self, Settings};
use crate::text::runner::Spelling;
use crate::text::visible::visible;
use crate::text::words::{self, wrapped};
use crate::{config, library, memory, pictures, terminal};

use assistant::{Assistant, Enter};
use commands::Action;
use complete::Words;
use example::Example;
use shown::{LastAnswer, Shown};

/// Lines of history that are kept.
const HISTORY_LINES: usize = 5_000;
/// Files that include each other.
const INCLUDES_MAX: usize = 16;

/// The prompt's state.
struct Prompt {
    connection: Connection,
    open: OpenArgs,
    /// The trace that is open, where it is ours.
    example: Option<Example>,
    settings: Settings,
    library: Library,
    words: Arc<Mutex<Words>>,
    /// Where the next answer goes instead of the terminal.
    output: Option<PathBuf>,
    /// What `\plot` draws.
    last: Option<LastAnswer>,
    /// What `\watch` asks again.
    asked: Option<Statement>,
    includes: usize,
}

/// Whether the prompt goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Go,
    Leave,
}

/// A statement whose end is still to come.
#[derive(Default)]
struct Begun {
    text: String,
    /// Lines above it.
    line: usize,
}

pub(crate) fn run(args: &OpenArgs) -> Result<(), Failure> {
    if !io::stdin().is_terminal() && args.traces.iter().any(|trace| trace == "-" || trace.ends_with("=-")) {
        return Err(Problem::new("standard input is the trace, so nothing can be typed")
            .hint("ask with `tq query - -c 'SELECT …'`")
            .into());
    }
    let mut prompt = Prompt {
        connection: Connection::open(args)?,
        open: args.clone(),
        example: None,
        settings: config::get().prompt.clone(),
        library: library::open(&LibraryArgs::default())?,
        words: Arc::default(),
        output: None,
        last: None,
        asked: None,
        includes: 0,
    };
    if io::stdin().is_terminal() { prompt.interact() } else { prompt.read_all() }
}

impl Prompt {
    fn interact(&mut self) -> Result<(), Failure> {
        self.greet()?;
        let colours = terminal::colours(&io::stdout());
        let config = Config::builder()
            .auto_add_history(true)
            .history_ignore_dups(true)
            .and_then(|config| config.max_history_size(HISTORY_LINES))
            .map_err(|error| terminal(&error))?
            .history_ignore_space(true)
            .bracketed_paste(true)
            .color_mode(if colours { ColorMode::Enabled } else { ColorMode::Disabled })
            .completion_type(CompletionType::List)
            .build();
        let mut editor: Editor<Assistant, DefaultHistory> =
            Editor::with_config(config).map_err(|error| terminal(&error))?;
        editor.set_helper(Some(Assistant::new(Arc::clone(&self.words), colours)));
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::NONE), EventHandler::Conditional(Box::new(Enter)));
        let history = history_file();
        if let Some(file) = &history {
            // The first prompt of a user has no history.
            let _ = editor.load_history(file);
        }
        self.learn_words();
        let mut begun = Begun::default();
        let result = loop {
            let before = assistant::with_next_line(&std::mem::take(&mut begun).text);
            match memory::while_idle(|| editor.readline_with_initial("tq> ", (&before, ""))) {
                Ok(text) => match self.answer_typed(&text, &mut begun) {
                    Ok(Next::Go) => {}
                    Ok(Next::Leave) => break Ok(()),
                    Err(Failure::Interrupted) => terminal::line("interrupted"),
                    Err(Failure::BrokenPipe) => break Err(Failure::BrokenPipe),
                    Err(failure) => failure.at_the_prompt().tell(),
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
                terminal::warning(&format!("the history was not saved to `{}`: {error}", file.display()));
            }
        }
        result
    }

    /// From a pipe, as from a file; whoever writes into it gets each answer before the next question.
    fn read_all(&mut self) -> Result<(), Failure> {
        let mut begun = Begun::default();
        for (number, line) in io::stdin().lines().enumerate() {
            let line = line.map_err(|error| Problem::new(format!("cannot read standard input: {error}")))?;
            if self.answer_line(number, &line, &mut begun)? == Next::Leave {
                return Ok(());
            }
        }
        self.answer_rest(&begun).map(|_| ())
    }

    /// What was typed before Enter. A command may interrupt a statement, which is then typed on.
    fn answer_typed(&mut self, text: &str, begun: &mut Begun) -> Result<Next, Failure> {
        if text.lines().any(|line| line.trim_start().starts_with('\\')) {
            self.answer_lines(text, begun)
        } else {
            self.answer(text)
        }
    }

    /// Statements and commands of a file; the first error ends it.
    fn answer_all(&mut self, text: &str) -> Result<Next, Failure> {
        let mut begun = Begun::default();
        match self.answer_lines(text, &mut begun)? {
            Next::Leave => Ok(Next::Leave),
            Next::Go => self.answer_rest(&begun),
        }
    }

    /// What stands behind the last `;`.
    fn answer_rest(&mut self, begun: &Begun) -> Result<Next, Failure> {
        self.answer(&begun.text).map_err(|failure| failure.further_down(begun.line))
    }

    /// Each statement when it is complete, and each command at once, also within a statement. What is left is in `begun`, after an
    /// error as well.
    fn answer_lines(&mut self, text: &str, begun: &mut Begun) -> Result<Next, Failure> {
        for (number, line) in text.lines().enumerate() {
            if self.answer_line(number, line, begun)? == Next::Leave {
                return Ok(Next::Leave);
            }
        }
        Ok(Next::Go)
    }

    fn answer_line(&mut self, number: usize, line: &str, begun: &mut Begun) -> Result<Next, Failure> {
        if line.trim_start().starts_with('\\') && crate::statements::is_between_tokens(&begun.text) {
            let next = self.answer(line)?;
            // Its line stays, so that errors name the right one.
            if next == Next::Go && !begun.text.is_empty() {
                begun.text.push('\n');
            }
            return Ok(next);
        }
        if begun.text.is_empty() {
            if line.trim().is_empty() {
                return Ok(Next::Go);
            }
            begun.line = number;
        }
        begun.text.push_str(line);
        begun.text.push('\n');
        if !crate::statements::is_complete(&begun.text) {
            return Ok(Next::Go);
        }
        let Begun { text, line } = std::mem::take(begun);
        self.answer(&text).map_err(|failure| failure.further_down(line))
    }

    fn answer(&mut self, text: &str) -> Result<Next, Failure> {
        let text = text.trim();
        if let Some(command) = commands::of_word(text) {
            return self.command(command);
        }
        if text.starts_with('\\') {
            return self.command(text);
        }
        for statement in sql::parse(text)? {
            self.answer_statement(&statement, &Params::new())?;
            self.asked = Some(statement);
        }
        self.learn_words();
        Ok(Next::Go)
    }

    /// Answers one statement: to the file of `\o`, as a table on a terminal, else as CSV.
    fn answer_statement(&mut self, statement: &Statement, params: &Params) -> Result<(), Failure> {
        let started = Instant::now();
        let mut shown_from = None;
        if let Some(path) = self.output.take() {
            self.write(statement, params, &path)?;
        } else if io::stdout().is_terminal() {
            let text = self.table(statement, params)?;
            // Reading it is no part of the answer.
            shown_from = Some(Instant::now());
            pager::show(&text, self.settings.pager)?;
        } else {
            let look = Look::of_stdout(self.connection.session().tick());
            let mut output =
                output::create(Format::Csv, output::stdout(Spelling::Stop), &look, None, Picture::default());
            self.connection.run(statement, params, output.as_mut())?;
            output.close()?;
        }
        let elapsed = shown_from.unwrap_or_else(Instant::now) - started;
        if self.settings.timing {
            let rows = self.connection.running().rows();
            terminal::line(&match elapsed < Duration::from_secs(1) {
                true => format!("Time: {:.1} ms", elapsed.as_secs_f64() * 1e3),
                false => format!("Time: {}", progress::line(rows, None, elapsed)),
            });
        }
        Ok(())
    }

    /// The first rows as a table; all of them are kept.
    fn table(&mut self, statement: &Statement, params: &Params) -> Result<String, Failure> {
        let buffer = Buffer::default();
        let Settings { people, expanded, .. } = self.settings;
        let look = Look { people, expanded, ..Look::of_stdout(self.connection.session().tick()) };
        let mut shown = Shown::new(buffer.writer(), look, self.settings.rows);
        let meter = Meter::start(self.connection.running());
        let answered = self.connection.run(statement, params, &mut shown);
        drop(meter);
        answered?;
        shown.close()?;
        if shown.last.is_some() {
            self.last = shown.last;
        }
        Ok(buffer.text())
    }

    fn write(&mut self, statement: &Statement, params: &Params, path: &Path) -> Result<(), Failure> {
        let format = output::choose(None, Some(path))?;
        let picture = pictures::surroundings(&mut self.connection, format)?;
        let (destination, writer) = Destination::open(Some(path), format.spelling())?;
        let look = Look::plain(self.connection.session().tick());
        let mut output = output::create(format, writer, &look, Some(path), picture);
        self.connection.run(statement, params, output.as_mut())?;
        output.close()?;
        drop(output);
        destination.commit()?;
        terminal::line(&format!("Written to {}.", path.display()));
        Ok(())
    }

    fn command(&mut self, line: &str) -> Result<Next, Failure> {
        let (command, rest) = commands::parse(line)?;
        let name = (!rest.is_empty()).then_some(rest);
        match command.action {
            Action::Quit => return Ok(Next::Leave),
            Action::Help => self.show(&commands::help())?,
            Action::Timing => {
                self.settings.timing = switched(self.settings.timing, rest);
                terminal::line(if self.settings.timing { "Timing is on." } else { "Timing is off." });
            }
            Action::Expanded => {
                self.settings.expanded = switched(self.settings.expanded, rest);
                terminal::line(if self.settings.expanded { "Rows are lists." } else { "Rows are lines of a table." });
            }
            Action::Tables => {
                let text = saved::tables(&mut self.connection, name)?;
                self.show(&text)?;
            }
            Action::Functions => {
                let text = crate::commands::functions::text(&mut self.connection, name)?;
                self.show(&text)?;
            }
            Action::Include => return self.include(rest),
            Action::Output => {
                self.output = name.map(PathBuf::from);
                if let Some(path) = &self.output {
                    let allowed = self.may_write("\\o").and_then(|()| self.apart(path));
                    allowed.inspect_err(|_| self.output = None)?;
                }
                if let Some(path) = &self.output {
                    // A wrong extension is said now and not after a long query.
                    output::choose(None, Some(path)).inspect_err(|_| self.output = None)?;
                }
            }
            Action::Run => self.saved(rest)?,
            Action::Plot => self.plot(rest)?,
            Action::Report => self.may_write("\\report").and_then(|()| self.report(name))?,
            Action::Open => self.reopen(rest)?,
            Action::Cluster => self.ask_workers(rest)?,
            Action::Explain => self.explain(rest)?,
            Action::Watch => self.watch(rest)?,
            Action::Set => self.set(rest)?,
        }
        Ok(Next::Go)
    }

    fn show(&self, text: &str) -> Result<(), Failure> {
        pager::show(text, self.settings.pager)
    }

    fn include(&mut self, file: &str) -> Result<Next, Failure> {
        if file.is_empty() {
            return Err(Problem::new("`\\i` needs a file").into());
        }
        if self.includes >= INCLUDES_MAX {
            return Err(Problem::new(format!("files include each other {INCLUDES_MAX} deep")).into());
        }
        let text = read_text(Path::new(file)).map_err(|error| Problem::file("read", Path::new(file), &error))?;
        if has_header(&text) {
            let path = Path::new(file);
            let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            let query = SavedQuery::parse(&name, Origin::File(path.to_owned()), &text)?;
            return self.answer_saved(&query, &[]).map(|()| Next::Go);
        }
        self.includes += 1;
        let answered = self.answer_all(&text).map_err(|failure| failure.in_file(file, None));
        self.includes -= 1;
        answered
    }

    /// `\run`: all saved queries, or one of them.
    fn saved(&mut self, rest: &str) -> Result<(), Failure> {
        let mut words = library::words(rest)?.into_iter();
        let Some(name) = words.next() else {
            let text = saved::list(&mut self.connection, &self.library)?;
            return self.show(&text);
        };
        let query = library::find(&self.library, &name)?;
        self.answer_saved(&query, &library::values(&query, words)?)
    }

    /// A saved query with the values that were given.
    fn answer_saved(&mut self, query: &SavedQuery, given: &[(String, String)]) -> Result<(), Failure> {
        self.connection.meets(query)?;
        let params = query.bind(given, self.connection.session().tick())?;
        if io::stdout().is_terminal() {
            let width = terminal::width().unwrap_or(usize::MAX);
            wrapped(query.title(), width).iter().for_each(|line| terminal::line(line));
        }
        self.answer_statement(&query.statement, &params)
            .map_err(|failure| failure.in_file(&query.file(), Some(query.statement.line)))?;
        if let (Some(last), Some(chart)) = (&mut self.last, query.header.charts.first()) {
            last.picture = plot::words_of(chart);
        }
        Ok(())
    }

    fn plot(&mut self, words: &str) -> Result<(), Failure> {
        const WIDTH: usize = 100;
        let last = self.last.as_ref().ok_or_else(|| match io::stdout().is_terminal() {
            true => Problem::new("there is no answer to draw")
                .hint("ask for something, e.g. `SELECT name, sum(duration) AS total FROM tasks GROUP BY name;`"),
            false => Problem::new("`\\plot` draws on a terminal; answers that go into a pipe are not kept")
                .hint("`tq query TRACE -c 'SELECT …' --chart 'bar x=… y=…' -o picture.svg` draws into a file"),
        })?;
        let width = terminal::width().unwrap_or(WIDTH);
        print(&plot::draw(last, words, width, self.connection.session().tick())?)
    }

    /// The report of the open traces, as `tq report` writes it.
    fn report(&mut self, file: Option<&str>) -> Result<(), Failure> {
        let mut words = vec!["tq", "report"];
        words.extend(file.into_iter().flat_map(|file| ["-o", file]));
        let args = Args::try_parse_from(words).map_err(|error| Problem::internal(&error.to_string()))?;
        match args.command {
            Some(Command::Report(mut report)) => {
                report.open = self.open.clone();
                crate::commands::report::run(&report)
            }
            _ => Ok(()),
        }
    }

    /// `\open`: other traces, same options.
    fn reopen(&mut self, rest: &str) -> Result<(), Failure> {
        let mut traces = library::words(rest)?;
        let mut example = None;
        if let [trace] = traces.as_slice()
            && !Path::new(trace).exists()
        {
            let meant = did_you_mean(trace, ["example"]);
            if trace == "example" {
                traces = vec![example.insert(Example::write()?).trace()];
            } else if !meant.is_empty() {
                return Err(Problem::new(format!("no trace `{}`{meant}", visible(trace))).into());
            }
        }
        if traces.is_empty() {
            return Err(Problem::new("`\\open` needs a trace")
                .hint("e.g. `\\open base=a.json new=b.json`, or `\\open example`")
                .into());
        }
        let open = OpenArgs { traces, ..self.open.clone() };
        // The traces that are open stay so when the new ones cannot be read.
        self.go_on_with(Connection::open(&open)?);
        self.open = open;
        self.example = example;
        self.last = None;
        self.learn_words();
        self.greet()
    }

    /// `\cluster`: who does parts of queries from now on, or who does.
    fn ask_workers(&mut self, workers: &str) -> Result<(), Failure> {
        if workers.is_empty() {
            terminal::line(&match self.connection.workers().as_slice() {
                [] => "No workers: queries are answered here.".to_owned(),
                workers => format!("Workers: {}.", workers.join(", ")),
            });
            return Ok(());
        }
        let open = OpenArgs { cluster: Some(workers.to_owned()), ..self.open.clone() };
        self.go_on_with(Connection::open(&open)?);
        self.open = open;
        self.learn_words();
        self.ask_workers("")?;
        self.connection.no_help_of_workers().iter().for_each(|why| terminal::note(why));
        Ok(())
    }

    /// Another connection from now on. Views and tables that were made here end with the one before.
    fn go_on_with(&mut self, connection: Connection) {
        // Who cannot say it, for want of memory or of its workers, ends all the same.
        let ended = saved::made_here(&mut self.connection).unwrap_or_default();
        self.connection = connection;
        if !ended.is_empty() {
            let names: Vec<String> = ended.iter().map(|name| format!("`{}`", visible(name))).collect();
            terminal::note(&format!("what was made here ended with the session: {}", names.join(", ")));
        }
    }

    fn explain(&mut self, text: &str) -> Result<(), Failure> {
        if text.is_empty() {
            return Err(Problem::new("`\\explain` needs a statement").into());
        }
        for statement in sql::parse(&format!("EXPLAIN {text}"))? {
            self.answer_statement(&statement, &Params::new())?;
        }
        Ok(())
    }

    fn watch(&mut self, seconds: &str) -> Result<(), Failure> {
        const USUAL: f64 = 2.0;
        let seconds: f64 = match seconds {
            "" => USUAL,
            text => text
                .parse()
                .ok()
                .filter(|seconds| (0.1..=86_400.0).contains(seconds))
                .ok_or_else(|| Problem::new(format!("`{text}` is not a number of seconds")))?,
        };
        let statement = self.asked.clone().ok_or_else(|| Problem::new("there is no statement to ask again"))?;
        loop {
            if io::stdout().is_terminal() {
                let text = self.table(&statement, &Params::new())?;
                let clear = if terminal::colours(&io::stdout()) { "\x1b[2J\x1b[H" } else { "" };
                print(&format!("{clear}Every {seconds} s, until Ctrl-C:\n{text}"))?;
            } else {
                self.answer_statement(&statement, &Params::new())?;
            }
            self.connection.wait(Duration::from_secs_f64(seconds))?;
        }
    }

    fn set(&mut self, rest: &str) -> Result<(), Failure> {
        let mut words = rest.split_whitespace();
        match (words.next(), words.next()) {
            (Some("memory"), Some(_)) => self.set_memory(rest),
            (Some("max-value"), Some(_)) => self.set_max_value(rest),
            (Some(name), Some(value)) => self.settings.set(name, value),
            (Some(name), None) => {
                Err(Problem::new(format!("`\\set {name}` needs a value")).hint("`\\set` lists the settings").into())
            }
            _ => {
                let session = self.connection.session();
                let value = format!("{}MB", session.max_value() / 1_000_000);
                let mut entries = self.settings.entries(session.memory_limit());
                entries.push(settings::entry(
                    "max-value",
                    &value,
                    "bytes",
                    "the longest text or list that a function makes",
                ));
                print(&words::listed(&entries, terminal::width()))
            }
        }
    }

    /// `\set memory 8GB`: another limit from now on, for other traces too.
    fn set_memory(&mut self, rest: &str) -> Result<(), Failure> {
        let value = rest.trim_start().trim_start_matches("memory").trim();
        let bytes = words::bytes(value).map_err(|why| Problem::new(format!("`memory` is not `{value}`: {why}")))?;
        self.connection.session().set_memory_limit(bytes);
        memory::over(bytes);
        self.open.memory = Some(bytes);
        Ok(())
    }

    /// Under `--read-only`, no file is written either.
    fn may_write(&self, command: &str) -> Result<(), Failure> {
        if self.open.read_only || config::get().read_only {
            return Err(Problem::new(format!("`{command}` writes a file, and `--read-only` forbids that"))
                .hint("`tq query … -o FILE` and `tq report … -o FILE` write what the command line names")
                .into());
        }
        Ok(())
    }

    /// The next answer goes to a file that is none of those that are open.
    fn apart(&self, path: &Path) -> Result<(), Failure> {
        let mut outputs = Outputs::default();
        outputs.add("\\o", Some(path));
        outputs.apart_from(&Inputs::of(&self.open))
    }

    /// `\set max-value 256MB`: from now on, for other traces too.
    fn set_max_value(&mut self, rest: &str) -> Result<(), Failure> {
        let value = rest.trim_start().trim_start_matches("max-value").trim();
        let bytes = words::bytes(value).map_err(|why| Problem::new(format!("`max-value` is not `{value}`: {why}")))?;
        self.connection.session().set_max_value(bytes);
        self.open.max_value = Some(bytes);
        Ok(())
    }

    /// What was opened, and how to go on.
    fn greet(&mut self) -> Result<(), Failure> {
        let offers = io::stdin().is_terminal() && io::stdout().is_terminal() && !terminal::is_quiet();
        print(&greeting::text(&mut self.connection, &self.library, offers)?)
    }

    /// Names for completion; they change with every CREATE.
    fn learn_words(&self) {
        if let Ok(mut words) = self.words.lock() {
            *words = Words::of(self.connection.session(), &self.library);
        }
    }
}

/// What a switch is after `on`, `off`, or no word at all.
fn switched(is_on: bool, word: &str) -> bool {
    if word.is_empty() { !is_on } else { word == "on" }
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
