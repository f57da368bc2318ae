//! `tq`: answers questions about execution traces in SQL.
//!
//! The only crate that prints, colours and exits. Life of a command: [`args`] says what is wanted → [`open`] reads the
//! traces and reports on them on stderr → [`runtime`] runs queries on threads of their own, so that Ctrl-C always works
//! → [`output`] writes rows to stdout or a file. Whatever goes wrong becomes an [`errors::Failure`], worded in one
//! place. Exit status: 0 answered, 1 a check did not hold, 2 no answer, 130 interrupted.

mod args;
mod charts;
mod check;
mod commands;
mod config;
mod connection;
mod errors;
mod figures;
mod files;
mod format;
mod functions;
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

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use tq_engine::trace::temporary;

use args::{Args, Command};
use errors::Failure;

#[global_allocator]
static ALLOCATOR: memory::Net = memory::Net;

fn main() -> ExitCode {
    errors::keep_panics_quiet();
    commands::completions::answer();
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(error),
    };
    let result = catch_unwind(AssertUnwindSafe(|| run(args)))
        .unwrap_or_else(|_| Err(errors::Problem::internal(&errors::last_panic()).into()));
    let status = match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            failure.exit_code()
        }
    };
    // Of readers and queries that were left behind.
    temporary::remove_all();
    status
}

fn run(args: Args) -> Result<(), Failure> {
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
fn command_behind_options() -> Option<(String, String)> {
    let given = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let given: Vec<String> = given.collect();
    let options: Vec<&str> = given.iter().map(String::as_str).take_while(|word| word.starts_with('-')).collect();
    let command = given.get(options.len()).filter(|_| !options.is_empty())?;
    Args::command().find_subcommand(command).map(|_| (command.clone(), options.join(" ")))
}

/// Help and version go to stdout and are no failure; wrong usage goes to stderr with status 2. A closed pipe is no error.
fn usage(mut error: clap::Error) -> ExitCode {
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
        return failure.exit_code();
    }
    if let (ErrorKind::UnknownArgument, Some((command, options))) = (error.kind(), command_behind_options()) {
        terminal::hint(&format!("a command comes first: `tq {command} {options} …`"));
    } else if let Some(given) = of_query {
        terminal::hint(&format!("`tq query TRACE…` takes `{given}`"));
    }
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}
