//! `tq._tq`: the engine for the package `tq`, which gives it its names and types.
//!
//! ```text
//! tq/*.py ─▶ Session ─ask─▶ Question ─read──▶ Reading ─▶ batches by Arrow's C interface, which nothing copies
//!                                    └collect▶ Kept   ─▶ the same, any number of times, and Python values
//! ```
//!
//! Whatever takes time goes on without the interpreter's lock ([`wait`]); while it does, signals are looked after, and Ctrl-C ends it.

mod check;
mod errors;
mod kept;
mod question;
mod session;
mod stream;
mod values;
mod wait;

use std::ffi::OsString;

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

#[global_allocator]
static ALLOCATOR: tq_cli::Net = tq_cli::Net;

/// Does what the command line of `tq` says, whose first word is the program, and gives the status of the process, which is to end then.
/// `program` are the words that start `tq` once more.
#[pyfunction]
fn run(py: Python<'_>, arguments: Vec<OsString>, program: Vec<OsString>) -> u8 {
    tq_cli::started_as(program);
    py.detach(|| tq_cli::run(&arguments))
}

/// From now on this process is the interpreter's: signals, memory and stderr are left to it. `program` are the words that start `tq` as a
/// process of its own.
#[pyfunction]
fn embed(program: Vec<OsString>) {
    tq_cli::started_as(program);
    tq_cli::embedded::embed();
}

/// Removes what is temporary. The interpreter is about to end.
#[pyfunction]
fn leave(py: Python<'_>) {
    py.detach(tq_cli::embedded::leave);
}

/// Refuses interpreters beside the main one: how the process ends is known to that one alone.
fn is_main() -> PyResult<()> {
    // SAFETY: asks for the number of the interpreter whose lock this thread has.
    match unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } {
        0 => Ok(()),
        _ => Err(PyImportError::new_err(
            "tq works in the main interpreter, and not in subinterpreters; threads may share a session",
        )),
    }
}

#[pymodule]
fn _tq(module: &Bound<'_, PyModule>) -> PyResult<()> {
    is_main()?;
    module.add("__version__", tq_cli::embedded::VERSION)?;
    module.add_class::<session::Session>()?;
    module.add_class::<question::Question>()?;
    module.add_class::<question::Reading>()?;
    module.add_class::<kept::Kept>()?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(embed, module)?)?;
    module.add_function(wrap_pyfunction!(leave, module)?)?;
    module.add_function(wrap_pyfunction!(session::open, module)?)?;
    module.add_function(wrap_pyfunction!(session::queries, module)?)?;
    module.add_function(wrap_pyfunction!(check::check, module)?)?;
    Ok(())
}
