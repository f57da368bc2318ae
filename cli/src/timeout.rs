//! `--timeout`: how long a question, or reading the traces, may take.
//!
//! A question is one statement or saved query: planning, running and writing its answer. Each has the whole limit to itself, so
//! that in a suite or on a page a slow one does not fail the others; reading the traces and reading those of a baseline have the
//! whole limit each, too. Readers check the time themselves; one that does not (it waits for a pipe, or is inside a library) is
//! abandoned after [`PATIENCE`], and the process ends.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use tq_engine::error::ImportError;
use tq_engine::open::OpenOptions;
use tq_engine::session::Session;

use crate::args::TimeoutArgs;

/// How long a reader may take to notice that the time is over.
const PATIENCE: Duration = Duration::from_millis(700);
/// As the main thread has it.
const STACK_BYTES: usize = 8 << 20;

static LIMIT: OnceLock<Duration> = OnceLock::new();

/// From now on, questions of this process end after so long.
pub(crate) fn start(args: TimeoutArgs) {
    if let Some(limit) = args.timeout {
        // One command is run, once.
        let _ = LIMIT.set(limit);
    }
}

/// The limit of a question, and of reading.
pub(crate) fn limit() -> Option<Duration> {
    LIMIT.get().copied()
}

/// Reads the traces within the limit.
pub(crate) fn open(mut options: OpenOptions) -> Result<Session, ImportError> {
    let Some(limit) = limit() else { return Session::open(&options) };
    options.read_time = Some(limit);
    let first = options.traces.first().map(|trace| trace.path.clone()).unwrap_or_default();
    let (sender, receiver) = channel();
    let reading = thread::Builder::new().name("tq-read".to_owned()).stack_size(STACK_BYTES);
    // Nobody listens any more when it is too late.
    let reading = reading.spawn(move || drop(sender.send(Session::open(&options))));
    let reading = reading.map_err(|source| ImportError::Io { path: first.clone(), source })?;
    match receiver.recv_timeout(limit.saturating_add(PATIENCE)) {
        Ok(session) => session,
        Err(RecvTimeoutError::Timeout) => Err(ImportError::Late { path: first, limit }),
        Err(RecvTimeoutError::Disconnected) => match reading.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => Err(ImportError::Late { path: first, limit }),
        },
    }
}
