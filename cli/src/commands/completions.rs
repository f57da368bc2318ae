//! `tq completions SHELL`: a completion script, made from the table of commands.

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs};
use crate::commands::print_as_it_is;
use crate::errors::Failure;

pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "tq", &mut script);
    print_as_it_is(&String::from_utf8_lossy(&script))
}
