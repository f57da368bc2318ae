//! `--timeout`: how long a question, or reading the traces, may take.
//!
//! A question is one statement or saved query: planning, running and writing its answer, and in a suite its conditions ([`together`]). Each
//! has the whole limit to itself, so that in a suite or on a page a slow one does not fail the others; reading SQL, reading the traces and
//! reading those of a baseline have the whole limit each, too.
//!
//! Readers check the time themselves; one that does not (it waits for a pipe, or is inside a library) is abandoned after [`PATIENCE`], and
//! the process ends. So it does when a late question writes its answer to where nobody reads ([`watched`]).

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tq_engine::error::ImportError;
use tq_engine::open::OpenOptions;
use tq_engine::trace::temporary;

use crate::args::TimeoutArgs;
use crate::errors::timeout::{late, late_parsing};
use crate::errors::{Failure, Problem};

/// How long a reader may take to notice that the time is over.
const PATIENCE: Duration = Duration::from_millis(700);
/// As the main thread has it.
const STACK_BYTES: usize = 8 << 20;

static LIMIT: OnceLock<Duration> = OnceLock::new();

/// When questions that share a limit are late.
static SHARED_END: Mutex<Option<Instant>> = Mutex::new(None);

/// Sets the limit for the questions of this process.
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

/// While it lives, all questions have the limit together: those of a saved query and its conditions.
pub(crate) struct Together(());

/// The questions that follow share one limit, from now on.
pub(crate) fn together() -> Together {
    set_end(limit().and_then(|limit| Instant::now().checked_add(limit)));
    Together(())
}

impl Drop for Together {
    fn drop(&mut self) {
        set_end(None);
    }
}

fn set_end(end: Option<Instant>) {
    *SHARED_END.lock().unwrap_or_else(PoisonError::into_inner) = end;
}

/// What the next question has of its limit.
pub(crate) fn left() -> Option<Duration> {
    let end = *SHARED_END.lock().unwrap_or_else(PoisonError::into_inner);
    end.map(|end| end.saturating_duration_since(Instant::now())).or(limit())
}

/// Why the next question need not be asked: those before it have used up what they share.
pub(crate) fn used_up() -> Option<Problem> {
    limit().filter(|_| left().is_some_and(|left| left.is_zero())).map(late)
}

/// While it lives, the process ends soon after the limit: a question that is late may be writing its answer to where nobody reads.
pub(crate) struct Watched {
    _ended: Option<Sender<()>>,
}

/// Watches the next question from now on.
pub(crate) fn watched() -> Watched {
    let Some((limit, left)) = limit().zip(left()) else { return Watched { _ended: None } };
    let (ended, receiver) = channel::<()>();
    let watching = thread::Builder::new().name("tq-watch".to_owned()).spawn(move || {
        if receiver.recv_timeout(left.saturating_add(2 * PATIENCE)) == Err(RecvTimeoutError::Timeout) {
            Failure::from(late(limit)).tell();
            temporary::remove_all();
            std::process::exit(2);
        }
    });
    // Without a thread to spare, nobody watches.
    Watched { _ended: watching.is_ok().then_some(ended) }
}

/// Reads a text of SQL or of a template, such as a long one or one that comes through a pipe, within the limit.
pub(crate) fn parsing<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    bounded(late_parsing, work)
}

/// What takes long and is no question, within the limit. Abandoned when it is over: the process ends then.
pub(crate) fn bounded<T: Send + 'static>(
    late: impl Fn(Duration) -> Problem,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Problem> {
    let Some(limit) = limit() else { return Ok(work()) };
    let (sender, receiver) = channel();
    let working = thread::Builder::new().name("tq-bounded".to_owned()).stack_size(STACK_BYTES);
    let working = working.spawn(move || drop(sender.send(work())));
    let working = working.map_err(|error| Problem::new(format!("cannot start a thread: {error}")))?;
    match receiver.recv_timeout(limit) {
        Ok(done) => Ok(done),
        Err(RecvTimeoutError::Timeout) => Err(late(limit)),
        Err(RecvTimeoutError::Disconnected) => match working.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => Err(late(limit)),
        },
    }
}

/// Reads the traces within the limit, by `read`.
pub(crate) fn reading<T: Send + 'static>(
    mut options: OpenOptions,
    read: impl FnOnce(&OpenOptions) -> Result<T, ImportError> + Send + 'static,
) -> Result<T, ImportError> {
    let Some(limit) = limit() else { return read(&options) };
    options.read_time = Some(limit);
    // Which of them is being read is not known here.
    let names: Vec<String> = options.traces.iter().map(|trace| trace.shown().display().to_string()).collect();
    let all = PathBuf::from(names.join(", "));
    let (sender, receiver) = channel();
    let reading = thread::Builder::new().name("tq-read".to_owned()).stack_size(STACK_BYTES);
    // Nobody listens any more when it is too late.
    let reading = reading.spawn(move || drop(sender.send(read(&options))));
    let reading = reading.map_err(|source| ImportError::Io { path: all.clone(), source })?;
    match receiver.recv_timeout(limit.saturating_add(PATIENCE)) {
        Ok(read) => read,
        Err(RecvTimeoutError::Timeout) => Err(ImportError::Late { path: all, limit }),
        Err(RecvTimeoutError::Disconnected) => match reading.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => Err(ImportError::Late { path: all, limit }),
        },
    }
}
