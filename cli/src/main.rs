//! The program `tq`: the command line of [`tq_cli`].

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: tq_cli::Net = tq_cli::Net;

fn main() -> ExitCode {
    ExitCode::from(tq_cli::run(&std::env::args_os().collect::<Vec<_>>()))
}
