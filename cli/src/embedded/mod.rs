//! The command line's work for a program that embeds it, such as an interpreter: values instead of prints, errors instead of statuses.
//!
//! Life of a question: an [`Opening`] becomes a [`Session`] → [`Session::ask`] plans a [`Question`], which may be read any number of
//! times → each [`Reading`] runs it, and gives batches of rows as they come. Whatever takes time is [`Pending`]: it goes on by itself,
//! on threads of its own, so that the program can look after its signals, and abandon it. After [`embed`], signals, memory and
//! stderr are the program's.

mod checks;
mod errors;
mod frames;
mod opening;
mod pages;
mod pending;
mod questions;
mod session;
mod shared;

pub use checks::{CheckOutcome, Checking, Checks};
pub use datafusion::arrow;
pub use datafusion::common::ScalarValue;
pub use errors::{Error, Kind, Message};
pub use frames::{Frame, Rows};
pub use opening::{Opening, Progress};
pub use pages::{Page, Shown};
pub use pending::Pending;
pub use questions::{Next, Question, Reading, Reserved, Words};
pub use session::{FunctionInfo, Parameter, QueryInfo, Session};
pub use tq_engine::VERSION;

use crate::{errors as wording, host};

/// From now on the process is that of another program: nothing below prints, exits, listens to signals or watches memory.
pub fn embed() {
    host::embed();
    wording::keep_panics_quiet();
}

/// Whether nobody waits any more for what this thread does.
pub fn is_given_up() -> bool {
    host::is_given_up()
}

/// Removes everything temporary of this process, which is about to end: nothing may be asked afterwards.
pub fn leave() {
    tq_engine::trace::temporary::remove_all();
}
