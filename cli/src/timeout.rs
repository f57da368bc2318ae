//! `--timeout`: how long a question may take.
//!
//! A question is one statement or saved query: planning, running and writing its answer. Each has the whole limit to itself, so
//! that in a suite or on a page a late one does not take the others along. Reading the traces does not count.

use std::sync::OnceLock;
use std::time::Duration;

use crate::args::TimeoutArgs;

static LIMIT: OnceLock<Duration> = OnceLock::new();

/// From now on, questions of this process end after so long.
pub(crate) fn start(args: TimeoutArgs) {
    if let Some(limit) = args.timeout {
        // One command is run, once.
        let _ = LIMIT.set(limit);
    }
}

/// The limit of a question.
pub(crate) fn limit() -> Option<Duration> {
    LIMIT.get().copied()
}
