//! `tq`: answers questions about execution traces in SQL.
//!
//! The only crate that prints, colours and exits; a library, whose `main` hands over its arguments ([`run`]), and which other programs
//! can embed ([`embedded`]). Life of a command: `args` says what is wanted → `open` reads the
//! traces and reports on them on stderr → `runtime` runs queries on threads of their own, so that Ctrl-C always works
//! → `output` writes rows to stdout or a file. Whatever goes wrong becomes an `errors::Failure`, worded in one
//! place. Exit status: 0 answered, 1 a check did not hold, 2 no answer, 130 interrupted.

mod args;
mod charts;
mod check;
mod commands;
mod config;
mod connection;
pub mod embedded;
mod errors;
mod figures;
mod files;
mod format;
mod functions;
mod host;
mod library;
mod memory;
mod open;
mod output;
mod pictures;
mod progress;
mod repl;
mod report;
mod runtime;
mod secret;
mod settings;
mod signals;
mod statements;
mod terminal;
mod text;
mod timeout;
mod view;
mod workers;

use std::ffi::OsString;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use tq_engine::trace::temporary;

use args::{Args, Command};
use errors::Failure;

pub use host::started_as;
pub use memory::Net;

/// The status of a command without an answer.
const NO_ANSWER: u8 = 2;

/// Does what a command line says, whose first word is the program, and gives the status of the process, which is to end then: what is
/// temporary is gone.
pub fn run(arguments: &[OsString]) -> u8 {
    errors::keep_panics_quiet();
    let status = match commands::completions::answer(arguments) {
        Some(status) => status,
        None => match Args::try_parse_from(arguments) {
            Ok(args) => done(args),
            Err(error) => usage(error, arguments),
        },
    };
    // Of readers and queries that were left behind.
    temporary::remove_all();
    status
}

/// The status of a command that was run.
fn done(args: Args) -> u8 {
    let result = catch_unwind(AssertUnwindSafe(|| command(args)))
        .unwrap_or_else(|_| Err(errors::Problem::internal(&errors::last_panic()).into()));
    match result {
        Ok(()) => 0,
        Err(failure) => {
            failure.tell();
            failure.status()
        }
    }
}

fn command(args: Args) -> Result<(), Failure> {
    signals::listen()?;
    config::load()?;
    if args.quiet || config::get().quiet {
        terminal::be_quiet();
    }
    match args.command {
        None => repl::run(&args.open),
        Some(Command::Query(query)) => commands::query::run(&query),
        Some(Command::Report(report)) => commands::report::run(&report),
        Some(Command::View(view)) => view::run(&view),
        Some(Command::Check(check)) => check::run(&check),
        Some(Command::Diff(diff)) => commands::diff::run(&diff),
        Some(Command::Import(import)) => commands::store::import(&import),
        Some(Command::Runs(runs)) => commands::store::runs(&runs),
        Some(Command::Remove(remove)) => commands::store::remove(&remove),
        Some(Command::Gc(gc)) => commands::store::gc(&gc),
        Some(Command::Compact(compact)) => commands::store::compact(&compact),
        Some(Command::Formats(formats)) => commands::formats::run(&formats),
        Some(Command::Functions(functions)) => commands::functions::run(&functions),
        Some(Command::Tables(tables)) => commands::tables::run(&tables),
        Some(Command::Queries(queries)) => commands::queries::run(&queries),
        Some(Command::Cluster(cluster)) => commands::cluster::run(&cluster),
        Some(Command::Completions(completions)) => commands::completions::run(&completions),
        Some(Command::Man(man)) => commands::man::run(&man),
    }
}

/// A command that stands behind options, which makes it the name of a trace; and those options.
fn command_behind_options(arguments: &[OsString]) -> Option<(String, String)> {
    let given: Vec<String> = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let options: Vec<&str> = given.iter().map(String::as_str).take_while(|word| word.starts_with('-')).collect();
    let command = given.get(options.len()).filter(|_| !options.is_empty())?;
    Args::command().find_subcommand(command).map(|_| (command.clone(), options.join(" ")))
}

/// Help and version go to stdout and are no failure; wrong usage goes to stderr with status 2. A closed pipe is no error.
fn usage(mut error: clap::Error, arguments: &[OsString]) -> u8 {
    let of_query = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(given)))
            if matches!(given.as_str(), "-c" | "-f" | "--command" | "--file" | "--format" | "--chart" | "--param") =>
        {
            Some(given.clone())
        }
        _ => None,
    };
    if of_query.is_some() {
        // `use '-- -c'` is no help.
        error.remove(ContextKind::Suggested);
    }
    // A file may be called `::error::`, and `*` puts it on the command line. Whoever does not listen is told by the status.
    if text::runner::is_listening() && error.use_stderr() {
        error.render().to_string().lines().for_each(terminal::line);
    } else if let Err(failed) = error.print().and_then(|()| std::io::stdout().flush())
        && !error.use_stderr()
    {
        let failure = Failure::from(failed);
        failure.tell();
        return failure.status();
    }
    if let (ErrorKind::UnknownArgument, Some((command, options))) = (error.kind(), command_behind_options(arguments)) {
        terminal::hint(&format!("a command comes first: `tq {command} {options} …`"));
    } else if let Some(given) = of_query {
        terminal::hint(&format!("`tq query TRACE…` takes `{given}`"));
    }
    if error.use_stderr() { NO_ANSWER } else { 0 }
}
