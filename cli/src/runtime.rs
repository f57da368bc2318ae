//! Queries run on a runtime of their own, so that Ctrl-C always works.
//!
//! An operator that never awaits (a cross join of two large ranges) cannot be stopped and starves whatever shares its
//! threads. So there are three parties: a *listener* thread waits for Ctrl-C; the *front*, the calling thread, waits for
//! rows or Ctrl-C, whichever comes first; the *queries* runtime computes. A query that does not stop within [`PATIENCE`]
//! after it was told to is abandoned together with its runtime, and the next query gets a new one; a session is not tied
//! to a runtime.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc};

use crate::errors::timeout::late;
use crate::errors::{Failure, Problem, last_panic};
use crate::signals::Interrupts;
use crate::{host, memory, timeout};

/// How long a query may take to stop before its runtime is abandoned.
const PATIENCE: Duration = Duration::from_millis(700);
/// Batches that may wait between the query and the output.
const IN_FLIGHT: usize = 4;
/// Deep plans recurse; optimisation off, they need more than tokio's 2 MiB. Pages that are not touched cost nothing.
const STACK_BYTES: usize = 256 << 20;

/// Runs queries; see the module.
pub(crate) struct QueryRuntime {
    threads: usize,
    queries: Option<Runtime>,
    front: Runtime,
    interrupts: &'static Interrupts,
    /// Notified when the client that asked has gone away.
    abandoned: Option<Arc<Notify>>,
}

impl QueryRuntime {
    pub(crate) fn new(threads: usize) -> Result<QueryRuntime, Failure> {
        let interrupts = Interrupts::listen()?;
        let front = Builder::new_current_thread().enable_time().build().map_err(|error| Problem::no_threads(&error))?;
        Ok(QueryRuntime { threads, queries: None, front, interrupts, abandoned: host::abandoned() })
    }

    /// Another one with as many threads.
    pub(crate) fn like(&self) -> Result<QueryRuntime, Failure> {
        QueryRuntime::new(self.threads)
    }

    /// From now on a query also ends, as by Ctrl-C, when `abandoned` is notified: nobody waits for its answer any more.
    pub(crate) fn until(&mut self, abandoned: Arc<Notify>) {
        self.abandoned = Some(abandoned);
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
        let mut memory = memory::arm();
        let mut out_of_memory = false;
        let mut task = queries.spawn(work(sender));
        let abandoned = self.abandoned.clone();
        let outcome = self.front.block_on(async {
            let mut late = std::pin::pin!(overtime());
            let mut abandoned = std::pin::pin!(async {
                match abandoned {
                    Some(abandoned) => abandoned.notified().await,
                    None => std::future::pending().await,
                }
            });
            loop {
                tokio::select! {
                    biased;
                    () = interrupts.pressed() => return Err(Failure::Interrupted),
                    () = &mut abandoned => return Err(Failure::Interrupted),
                    problem = &mut late => return Err(problem.into()),
                    failure = memory.rang() => { out_of_memory = true; return Err(failure) }
                    item = receiver.recv() => match item {
                        Some(item) => take(item)?,
                        None => break,
                    },
                }
                // Signals and clocks are looked at only when nothing is ready, and the next item may be.
                tokio::task::yield_now().await;
            }
            tokio::select! {
                biased;
                () = interrupts.pressed() => Err(Failure::Interrupted),
                () = &mut abandoned => Err(Failure::Interrupted),
                problem = &mut late => Err(problem.into()),
                failure = memory.rang() => { out_of_memory = true; Err(failure) }
                joined = &mut task => joined.map_err(|_| Problem::internal(&last_panic()).into()),
            }
        });
        if outcome.is_err() {
            drop(receiver);
            task.abort();
            let stopped = task.is_finished()
                || self.front.block_on(async { tokio::time::timeout(PATIENCE, &mut task).await.is_ok() });
            if stopped {
                self.queries = Some(queries);
            } else {
                queries.shutdown_background();
            }
            if out_of_memory {
                memory::settle();
            }
            return outcome;
        }
        self.queries = Some(queries);
        outcome
    }

    /// Runs what is no query until it ends or Ctrl-C is pressed.
    ///
    /// # Errors
    /// [`Failure::Interrupted`], or a panic as a [`Problem`].
    pub(crate) fn serve<R: Send + 'static>(
        &mut self,
        work: impl Future<Output = R> + Send + 'static,
    ) -> Result<R, Failure> {
        let runtime = self.new_runtime()?;
        let mut interrupts = self.interrupts.arm();
        let mut task = runtime.spawn(work);
        let ended = self.front.block_on(async {
            tokio::select! {
                biased;
                () = interrupts.pressed() => Err(Failure::Interrupted),
                joined = &mut task => joined.map_err(|_| Problem::internal(&last_panic()).into()),
            }
        });
        runtime.shutdown_background();
        ended
    }

    fn new_runtime(&self) -> Result<Runtime, Failure> {
        Builder::new_multi_thread()
            .worker_threads(self.threads)
            .thread_name("tq-query")
            .thread_stack_size(STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|error| Problem::no_threads(&error).into())
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

/// Comes when the time for a question is over; never, without `--timeout`.
async fn overtime() -> Problem {
    let (Some(limit), Some(left)) = (timeout::limit(), timeout::left()) else { return std::future::pending().await };
    tokio::time::sleep(left).await;
    late(limit)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

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
