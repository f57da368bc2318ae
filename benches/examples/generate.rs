//! Writes a generated trace: `cargo run --release --example generate -- FORM TASKS FILE [named]`, FORM one of t0, json, tfpx.

#![expect(clippy::print_stderr, reason = "a command line program")]

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use tq_benches::generate::pariter::{Form, Pariter};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (form, tasks, file) = match &arguments[..] {
        [form, tasks, file, ..] => (form.as_str(), tasks.parse::<i64>(), file),
        _ => return usage(),
    };
    let form = match form {
        "t0" => Form::T0,
        "json" => Form::Json,
        "tfpx" => Form::Tfpx,
        _ => return usage(),
    };
    let Ok(tasks) = tasks else { return usage() };
    let named = arguments.get(3).is_some_and(|word| word == "named");
    match write(Pariter { tasks, named }, form, file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot write `{file}`: {error}");
            ExitCode::from(2)
        }
    }
}

fn write(trace: Pariter, form: Form, file: &str) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(file)?);
    trace.write(form, &mut out)?;
    out.flush()
}

fn usage() -> ExitCode {
    eprintln!("usage: generate (t0|json|tfpx) TASKS FILE [named]");
    ExitCode::from(2)
}
