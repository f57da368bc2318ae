//! Work that goes on by itself while the program waits for it, a moment at a time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use tokio::sync::Notify;

use super::errors::{Error, Kind, Message};
use crate::errors::{Failure, Problem, last_panic};
use crate::host;

/// As the main thread has it.
const STACK_BYTES: usize = 8 << 20;

/// What is on its way, and what there is to say about it.
pub struct Pending<T> {
    done: Receiver<(Result<T, Error>, Vec<Message>)>,
    abandoned: Arc<Notify>,
    /// The same for whoever looks now and then.
    given_up: Arc<AtomicBool>,
    kind: Kind,
    /// Done when it is abandoned.
    left: Box<dyn FnOnce() + Send>,
}

impl<T: Send + 'static> Pending<T> {
    /// Begins `work` on a thread of its own; its failures are of that kind.
    pub(super) fn begin(kind: Kind, work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> Pending<T> {
        Pending::worded(kind, move || work().map_err(|failure| Error::of(kind, failure)))
    }

    /// As [`Pending::begin`], where the work has words for its errors.
    pub(super) fn worded(kind: Kind, work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Pending<T> {
        let (sender, done) = channel();
        let abandoned = Arc::new(Notify::new());
        let given_up = Arc::new(AtomicBool::new(false));
        let (until, looked_at) = (Arc::clone(&abandoned), Arc::clone(&given_up));
        let working = move || {
            let (done, said) = host::apart(until, looked_at, || {
                catch_unwind(AssertUnwindSafe(work))
                    .unwrap_or_else(|_| Err(Error::of_problem(kind, Problem::internal(&last_panic()))))
            });
            // Whoever waited may have gone.
            let _ = sender.send((done, said.into_iter().map(Message::from).collect()));
        };
        let started = std::thread::Builder::new().name("tq-work".to_owned()).stack_size(STACK_BYTES).spawn(working);
        match started {
            Ok(_) => Pending { done, abandoned, given_up, kind, left: Box::new(|| {}) },
            Err(error) => Pending::failed(Error::of_problem(kind, Problem::no_threads(&error))),
        }
    }

    /// What could not begin.
    pub(super) fn failed(error: Error) -> Pending<T> {
        let (sender, done) = channel();
        let kind = error.kind;
        let _ = sender.send((Err(error), Vec::new()));
        Pending::of(kind, done, Arc::new(Notify::new()), Box::new(|| {}))
    }

    /// What another runtime sends.
    pub(super) fn of(
        kind: Kind,
        done: Receiver<(Result<T, Error>, Vec<Message>)>,
        abandoned: Arc<Notify>,
        left: Box<dyn FnOnce() + Send>,
    ) -> Pending<T> {
        Pending { done, abandoned, given_up: Arc::default(), kind, left }
    }

    /// Waits so long at most; `None`: it is not done yet.
    pub fn wait(&mut self, at_most: Duration) -> Option<(Result<T, Error>, Vec<Message>)> {
        match self.done.recv_timeout(at_most) {
            Ok(done) => Some(done),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                let problem = Problem::internal(&last_panic());
                Some((Err(Error::of_problem(self.kind, problem)), Vec::new()))
            }
        }
    }

    /// Nobody waits any more. A question ends; a trace that is being read is read to its end, and given up.
    pub fn abandon(self) {
        self.given_up.store(true, Ordering::Relaxed);
        self.abandoned.notify_one();
        (self.left)();
    }
}
