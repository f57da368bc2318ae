//! `tq completions SHELL` prints the script that makes a shell ask `tq` for completions. The shell then runs `tq` with [`VARIABLE`]
//! in its environment, and `tq` answers from the table of commands and with the names known at that moment: saved queries (also of
//! the current project), functions, tables, formats.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use tq_engine::importers::importers;
use tq_engine::queries::Library;
use tq_engine::tables::{TABLES, VIEWS};

use crate::NO_ANSWER;
use crate::args::{Args, CompletionsArgs, LibraryArgs};
use crate::connection::Connection;
use crate::errors::{Failure, Problem};
use crate::text::visible::is_hidden;
use crate::{functions, library, output};

/// Holds the name of the shell that asks. clap's own `COMPLETE` may be set for other reasons.
const VARIABLE: &str = "TQ_COMPLETE";

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    output::print_as_it_is(&registration(args.shell)?)
}

fn registration(shell: Shell) -> Result<String, Failure> {
    let shells = Shells::builtins();
    let unknown = || Problem::internal(&format!("no completions for {shell}"));
    let completer = shells.completer(&shell.to_string()).ok_or_else(unknown)?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, "tq", "tq", "tq", &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Answers a shell that asks for completions: the status of the process, `None` where none asks.
pub(crate) fn answer(arguments: &[OsString]) -> Option<u8> {
    let here = std::env::current_dir().ok();
    match CompleteEnv::with_factory(command).var(VARIABLE).try_complete(arguments, here.as_deref()) {
        Ok(true) => Some(0),
        Ok(false) => None,
        Err(error) => {
            // As clap says it: a shell shows what is on stderr, if it wants to.
            let _ = error.print();
            Some(if error.use_stderr() { NO_ANSWER } else { 0 })
        }
    }
}

/// The commands, whose arguments know what they could become.
fn command() -> Command {
    let names = |candidates: fn() -> Vec<CompletionCandidate>| {
        move |command: Command| command.mut_arg("name", |arg| arg.add(ArgValueCandidates::new(candidates)))
    };
    let path_or_query = |arg: Arg| arg.add(ArgValueCompleter::new(path_or_query));
    let any_path = |arg: Arg| match arg.get_value_hint() {
        ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath => arg.add(ArgValueCompleter::new(paths)),
        _ => arg,
    };
    Args::command()
        .mut_args(any_path)
        .mut_subcommands(|command| command.mut_args(any_path))
        .mut_subcommand("queries", names(queries))
        .mut_subcommand("functions", names(all_functions))
        .mut_subcommand("tables", names(tables))
        .mut_subcommand("formats", names(formats))
        .mut_subcommand("query", |command| command.mut_arg("traces", path_or_query))
        .mut_subcommand("check", |command| command.mut_arg("checks", path_or_query))
}

/// The last argument of `tq query` is the name of a query, those before it are traces.
fn path_or_query(word: &OsStr) -> Vec<CompletionCandidate> {
    let begins =
        |candidate: &CompletionCandidate| candidate.get_value().as_encoded_bytes().starts_with(word.as_encoded_bytes());
    let mut candidates: Vec<CompletionCandidate> = queries().into_iter().filter(begins).collect();
    candidates.extend(paths(word));
    candidates
}

fn paths(word: &OsStr) -> Vec<CompletionCandidate> {
    let paths = PathCompleter::any().complete(word).into_iter();
    paths.filter(|path| is_one_word(path.get_value())).collect()
}

/// Whether a shell takes the text, which it is given without quotes, for one word and for nothing else. A file of a stranger may be
/// called `$(…)`. (Bash completes the others by itself when no candidate is left, with quotes.)
fn is_one_word(text: &OsStr) -> bool {
    text.to_str().is_some_and(|text| text.chars().all(|c| c.is_alphanumeric() || "_-./+@%,:=".contains(c)))
}

fn queries() -> Vec<CompletionCandidate> {
    let library = library::open(&LibraryArgs::default());
    let title = |library: &Library, name: &str| Some(library.find(name).ok()??.title().to_owned());
    let names = |library: Library| {
        let names = library.names().into_iter().filter(|name| is_one_word(name.as_ref()));
        names.map(|name| candidate(name, &title(&library, name).unwrap_or_default())).collect()
    };
    library.map(names).unwrap_or_default()
}

fn all_functions() -> Vec<CompletionCandidate> {
    let Ok(connection) = Connection::empty() else { return Vec::new() };
    let functions = functions::all(connection.session());
    let for_people = functions.iter().filter(|function| function.is_for_people());
    for_people.map(|function| candidate(&function.name, &function.summary())).collect()
}

fn tables() -> Vec<CompletionCandidate> {
    let tables = TABLES.iter().map(|table| candidate(table.name, table.description));
    tables.chain(VIEWS.iter().map(|view| candidate(view.name, view.description))).collect()
}

fn formats() -> Vec<CompletionCandidate> {
    importers().iter().map(|importer| candidate(importer.doc().name, importer.doc().title)).collect()
}

fn candidate(name: &str, help: &str) -> CompletionCandidate {
    let help = help.lines().next().unwrap_or_default().replace(is_hidden, " ");
    CompletionCandidate::new(name).help((!help.is_empty()).then(|| help.into()))
}
