//! What is shared by a session, its questions and their readings: the engine's session, and threads.

use std::future::Future;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tq_engine::Query;
use tq_engine::session::Session;
use tq_engine::sql::SqlError;

use super::errors::{Error, Kind, Message};
use super::pending::Pending;
use crate::connection::Connection;
use crate::errors::{Failure, Problem};
use crate::workers::Workers;

/// Deep plans recurse; pages that are not touched cost nothing.
const STACK_BYTES: usize = 256 << 20;

/// A session of the engine, with the threads that answer.
pub(super) struct Shared {
    pub(super) session: Arc<Session>,
    workers: Option<Arc<Workers>>,
    count: usize,
    /// Made for the first question.
    threads: Mutex<Option<Arc<Threads>>>,
    /// The one that opened it: what a fork has of it has no threads.
    process: u32,
}

/// A runtime for questions.
pub(super) struct Threads {
    runtime: Option<Runtime>,
    process: u32,
}

impl Threads {
    /// Waits for something that takes no longer than it says itself.
    pub(super) fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        match &self.runtime {
            Some(runtime) => runtime.block_on(what),
            None => futures::executor::block_on(what),
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        match self.process == std::process::id() {
            // The default waits for operators that never await.
            true => runtime.shutdown_background(),
            // In a fork there are no threads to end, and locks that nobody opens.
            false => std::mem::forget(runtime),
        }
    }
}

fn forked() -> Problem {
    Problem::new("the session was opened before this process was forked from another one")
        .hint("open the traces in each process, or start processes with the method `spawn`")
}

impl Shared {
    /// Of traces that were opened now, for questions on so many threads.
    pub(super) fn new(session: Arc<Session>, workers: Option<Arc<Workers>>, count: usize) -> Shared {
        Shared { session, workers, count, threads: Mutex::new(None), process: std::process::id() }
    }

    pub(super) fn tick(&self) -> &'static str {
        self.session.tick().symbol()
    }

    pub(super) fn is_of_this_process(&self) -> Result<(), Error> {
        match self.process == std::process::id() {
            true => Ok(()),
            false => Err(Error::of_problem(Kind::Query, forked())),
        }
    }

    pub(super) fn threads(&self) -> Result<Arc<Threads>, Error> {
        self.is_of_this_process()?;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        // An operator that never awaits may keep all of those that another question has.
        if let Some(threads) = threads.as_ref().filter(|threads| Arc::strong_count(threads) == 1) {
            return Ok(Arc::clone(threads));
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(self.count)
            .thread_name("tq-query")
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|error| Error::of_problem(Kind::Query, Problem::no_threads(&error)))?;
        let made = Arc::new(Threads { runtime: Some(runtime), process: self.process });
        *threads = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Begins `work` on those threads, which gives its result away when it has one, and may then go on. Where it is abandoned, the threads
    /// are left to it.
    pub(super) fn begin<T, F>(
        self: &Arc<Self>,
        threads: &Arc<Threads>,
        work: impl FnOnce(Box<dyn FnOnce(Result<T, Error>, Vec<Message>) + Send>) -> F,
    ) -> Pending<T>
    where
        T: Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, done) = channel();
        let abandoned = Arc::new(Notify::new());
        let until = Arc::clone(&abandoned);
        let given = Box::new(move |result, said| {
            // Whoever waited may have gone.
            let _ = sender.send((result, said));
        });
        let work = work(given);
        if let Some(runtime) = &threads.runtime {
            runtime.spawn(async move {
                tokio::select! {
                    () = work => {}
                    () = until.notified() => {}
                }
            });
        }
        let (shared, those) = (Arc::clone(self), Arc::clone(threads));
        Pending::of(Kind::Query, done, abandoned, Box::new(move || shared.leave_behind(&those)))
    }

    /// Questions that come get other threads: one that never awaits may have these.
    pub(super) fn leave_behind(&self, those: &Arc<Threads>) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.as_ref().is_some_and(|threads| Arc::ptr_eq(threads, those)) {
            *threads = None;
        }
    }

    /// A connection, for what is more than a question.
    pub(super) fn connection(&self) -> Result<Connection, Failure> {
        if self.is_of_this_process().is_err() {
            return Err(forked().into());
        }
        Connection::to(&self.session, self.workers.as_ref(), self.count)
    }
}

/// What a definition answers when it is read again.
pub(super) async fn nothing(session: &Session) -> Result<Query, SqlError> {
    session.sql("SELECT 1 WHERE false").await
}
