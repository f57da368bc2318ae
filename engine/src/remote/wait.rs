//! Wait: synchronous code waits, on any thread, for requests that run on a runtime of their own.

use std::future::Future;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use tokio::runtime::{Builder, Runtime};

use crate::error::ImportError;
use crate::trace::Deadline;

/// Few are enough: requests spend most of their time waiting.
const THREADS: usize = 2;

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

fn runtime(path: &Path) -> Result<&'static Runtime, ImportError> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made = Builder::new_multi_thread().worker_threads(THREADS).thread_name("tq-remote").enable_all().build();
    let made = made.map_err(|source| ImportError::Io { path: path.to_owned(), source })?;
    Ok(RUNTIME.get_or_init(|| made))
}

/// Runs the requests about `path` and returns their answer. At the deadline they are abandoned.
///
/// # Errors
/// The deadline has passed; the runtime cannot be started; a request panicked.
pub(super) fn wait<T: Send + 'static>(
    path: &Path,
    deadline: Deadline,
    requests: impl Future<Output = T> + Send + 'static,
) -> Result<T, ImportError> {
    let (sender, receiver) = sync_channel(1);
    // Sending fails when the deadline has passed and the receiver is gone.
    let task = runtime(path)?.spawn(async move { drop(sender.send(requests.await)) });
    let received = match deadline.left() {
        Some(left) => receiver.recv_timeout(left),
        None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
    };
    task.abort();
    received.or_else(|_| {
        deadline.check(path)?;
        Err(ImportError::Internal { path: path.to_owned(), what: "a request panicked".to_owned() })
    })
}
