//! Queries run on a runtime of their own, so that Ctrl-C is always heard.
//!
//! An operator that never awaits (a cross join of two large ranges) cannot be stopped and starves whatever shares its
//! threads. So three parties: a *listener* thread hears Ctrl-C; the *front*, the calling thread, waits for rows or
//! Ctrl-C, whichever comes first; the *queries* runtime computes. A query that was told to stop and does not within
//! [`PATIENCE`] is left behind together with its runtime, and the next query gets a new one; the session is tied to none.
//!
//! Ctrl-C while no query runs (during an import, while a picture is laid out) leaves at once with 130, and so does a
//! second one while a query is being stopped.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};

use crate::errors::{Failure, Problem, last_panic};

/// How long a query may take to stop before its runtime is abandoned.
const PATIENCE: Duration = Duration::from_millis(700);
/// Answers on their way between the query and whoever prints them.
const IN_FLIGHT: usize = 4;
/// Deep plans recurse; optimisation off, they need more than tokio's 2 MiB.
const STACK_BYTES: usize = 16 << 20;
/// The exit status of a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Runs queries; see the module.
pub(crate) struct QueryRuntime {
    threads: usize,
    queries: Option<Runtime>,
    front: Runtime,
    interrupts: &'static Interrupts,
}

impl QueryRuntime {
    pub(crate) fn new(threads: usize) -> Result<QueryRuntime, Failure> {
        let interrupts = Interrupts::listen()?;
        let front = Builder::new_current_thread().enable_time().build().map_err(|error| no_threads(&error))?;
        Ok(QueryRuntime { threads, queries: None, front, interrupts })
    }

    /// Runs `work` and hands what it sends to `take`, in order, on the calling thread.
    ///
    /// # Errors
    /// [`Failure::Interrupted`] after Ctrl-C, whatever `take` fails with, or a panic of `work` as a [`Problem`].
    pub(crate) fn stream<T, R, F>(
        &mut self,
        work: impl FnOnce(mpsc::Sender<T>) -> F,
        mut take: impl FnMut(T) -> Result<(), Failure>,
    ) -> Result<R, Failure>
    where
        T: Send + 'static,
        R: Send + 'static,
        F: Future<Output = R> + Send + 'static,
    {
        let queries = match self.queries.take() {
            Some(queries) => queries,
            None => self.new_runtime()?,
        };
        let (sender, mut receiver) = mpsc::channel(IN_FLIGHT);
        let mut interrupts = self.interrupts.arm();
        let mut task = queries.spawn(work(sender));
        let outcome = self.front.block_on(async {
            loop {
                tokio::select! {
                    biased;
                    () = interrupts.pressed() => return Err(Failure::Interrupted),
                    item = receiver.recv() => match item {
                        Some(item) => take(item)?,
                        None => break,
                    },
                }
            }
            tokio::select! {
                biased;
                () = interrupts.pressed() => Err(Failure::Interrupted),
                joined = &mut task => joined.map_err(|_| Problem::internal(&last_panic()).into()),
            }
        });
        if outcome.is_err() {
            drop(receiver);
            task.abort();
            let stopped = task.is_finished()
                || self.front.block_on(async { tokio::time::timeout(PATIENCE, &mut task).await.is_ok() });
            if !stopped {
                queries.shutdown_background();
                return outcome;
            }
        }
        self.queries = Some(queries);
        outcome
    }

    fn new_runtime(&self) -> Result<Runtime, Failure> {
        Builder::new_multi_thread()
            .worker_threads(self.threads)
            .thread_name("tq-query")
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|error| no_threads(&error))
    }
}

impl Drop for QueryRuntime {
    fn drop(&mut self) {
        // The default waits for operators that never await.
        if let Some(queries) = self.queries.take() {
            queries.shutdown_background();
        }
    }
}

/// Runs another program in front of this one: Ctrl-C is meant for it.
pub(crate) fn without_interrupts<R>(work: impl FnOnce() -> R) -> R {
    let Ok(interrupts) = Interrupts::listen() else { return work() };
    interrupts.ignored.store(true, Ordering::SeqCst);
    let result = work();
    interrupts.ignored.store(false, Ordering::SeqCst);
    result
}

fn no_threads(error: &io::Error) -> Failure {
    Problem::new(format!("cannot start threads for queries: {error}")).into()
}

/// Hears Ctrl-C for the whole process.
struct Interrupts {
    /// How often Ctrl-C was pressed.
    count: watch::Sender<u64>,
    /// Whether somebody will answer the next Ctrl-C.
    armed: AtomicBool,
    /// Whether Ctrl-C is meant for another program, a pager.
    ignored: AtomicBool,
    /// Presses that somebody was asked to answer and has not.
    pending: AtomicU64,
}

/// A query that answers Ctrl-C as long as this lives.
struct Armed {
    interrupts: &'static Interrupts,
    presses: watch::Receiver<u64>,
}

impl Interrupts {
    fn listen() -> Result<&'static Interrupts, Failure> {
        static INTERRUPTS: OnceLock<Arc<Interrupts>> = OnceLock::new();
        if let Some(interrupts) = INTERRUPTS.get() {
            return Ok(interrupts);
        }
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| no_threads(&error))?;
        let interrupts = INTERRUPTS.get_or_init(|| {
            Arc::new(Interrupts {
                count: watch::Sender::new(0),
                armed: AtomicBool::new(false),
                ignored: AtomicBool::new(false),
                pending: AtomicU64::new(0),
            })
        });
        std::thread::Builder::new()
            .name("tq-interrupts".to_owned())
            .spawn(move || runtime.block_on(interrupts.forever()))
            .map_err(|error| no_threads(&error))?;
        Ok(interrupts)
    }

    async fn forever(&self) {
        while tokio::signal::ctrl_c().await.is_ok() {
            if self.ignored.load(Ordering::SeqCst) {
                continue;
            }
            let unanswered = self.pending.fetch_add(1, Ordering::SeqCst) > 0;
            if unanswered || !self.armed.load(Ordering::SeqCst) {
                leave();
            }
            self.count.send_modify(|count| *count += 1);
        }
    }

    fn arm(&'static self) -> Armed {
        self.pending.store(0, Ordering::SeqCst);
        let mut presses = self.count.subscribe();
        presses.mark_unchanged();
        self.armed.store(true, Ordering::SeqCst);
        Armed { interrupts: self, presses }
    }
}

impl Armed {
    async fn pressed(&mut self) {
        if self.presses.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.interrupts.armed.store(false, Ordering::SeqCst);
        self.interrupts.pending.store(0, Ordering::SeqCst);
    }
}

/// The main thread may be inside of an import, which cannot be asked to stop.
fn leave() -> ! {
    std::process::exit(INTERRUPTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_arrive_in_order_and_the_result_last() {
        let mut runtime = QueryRuntime::new(1).unwrap();
        let mut seen = Vec::new();
        let result = runtime.stream(
            |sender| async move {
                for number in 0..20 {
                    if sender.send(number).await.is_err() {
                        return "gone";
                    }
                }
                "done"
            },
            |number| {
                seen.push(number);
                Ok(())
            },
        );
        assert_eq!(result.unwrap(), "done");
        assert_eq!(seen, (0..20).collect::<Vec<_>>());
    }

    #[test]
    fn work_that_never_awaits_is_left_behind_and_the_next_query_runs() {
        let mut runtime = QueryRuntime::new(1).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let failed: Result<(), Failure> = runtime.stream(
            |sender| async move {
                let _ = sender.send(()).await;
                while !stopped.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            },
            |()| Err(Failure::BrokenPipe),
        );
        assert!(matches!(failed, Err(Failure::BrokenPipe)));
        let next: Result<u8, Failure> = runtime.stream(|_: mpsc::Sender<()>| async { 7 }, |()| Ok(()));
        assert_eq!(next.unwrap(), 7);
        stop.store(true, Ordering::Relaxed);
    }

    #[test]
    fn a_panic_becomes_an_error() {
        let mut runtime = QueryRuntime::new(1).unwrap();
        let failed: Result<(), Failure> = runtime.stream(|_: mpsc::Sender<()>| async { panic!("ouch") }, |()| Ok(()));
        assert!(matches!(failed, Err(Failure::Told(_))));
    }
}
