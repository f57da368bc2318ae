//! Running: the fragments that a worker works on, each on threads of its own.
//!
//! Whoever asked may go away while an operator computes for long without a pause. Its threads are left to themselves then, and those of
//! other queries and of the connections go on. Scans are told, so that such an operator gets no more rows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};

use crate::sql::stop::Stop;

/// Deep plans recurse.
const STACK_BYTES: usize = 256 << 20;
/// Batches that wait for whoever asked.
const AHEAD: usize = 2;

/// Fragments at work on a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The store, as whoever asked named it.
    pub store: String,
    /// How many: those that nobody waits for any more too, until their threads have ended.
    pub fragments: u64,
    /// Seconds since the first of them began.
    pub seconds: u64,
}

/// Those of a worker.
#[derive(Debug)]
pub(super) struct Fragments {
    /// Threads of each.
    threads: usize,
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    begun: u64,
    /// What each reads, and since when.
    all: BTreeMap<u64, (String, Instant)>,
}

impl Fragments {
    pub(super) fn new(threads: usize) -> Fragments {
        Fragments { threads, running: Mutex::default() }
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is done, by store.
    pub(super) fn work(&self) -> Vec<Work> {
        let mut of_stores: BTreeMap<String, (u64, Duration)> = BTreeMap::new();
        for (store, since) in self.running().all.values() {
            let (fragments, longest) = of_stores.entry(store.clone()).or_default();
            *fragments += 1;
            *longest = since.elapsed().max(*longest);
        }
        let work =
            |(store, (fragments, longest)): (_, (_, Duration))| Work { store, fragments, seconds: longest.as_secs() };
        of_stores.into_iter().map(work).collect()
    }
}

/// Of the session of a fragment: where it is counted, and what it reads.
#[derive(Debug)]
pub(super) struct OnWorker {
    pub(super) fragments: Arc<Fragments>,
    pub(super) store: String,
    /// Where the worker was asked, for messages.
    pub(super) name: String,
}

impl OnWorker {
    /// New threads, which count until the last of them has ended.
    pub(super) fn threads(&self) -> Result<Arc<Threads>> {
        let counted = {
            let mut running = self.fragments.running();
            running.begun += 1;
            let number = running.begun;
            running.all.insert(number, (self.store.clone(), Instant::now()));
            Counted { number, fragments: Arc::clone(&self.fragments) }
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(self.fragments.threads.max(1))
            .thread_stack_size(STACK_BYTES)
            .thread_name("tq-fragment")
            .enable_all()
            // Is dropped with the last thread.
            .on_thread_stop(move || {
                let _counted = &counted;
            })
            .build()
            .map_err(|error| exec_datafusion_err!("no threads for a fragment: {error}"))?;
        Ok(Arc::new(Threads { runtime: Some(runtime), is_left: Arc::default() }))
    }
}

struct Counted {
    number: u64,
    fragments: Arc<Fragments>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.fragments.running().all.remove(&self.number);
    }
}

/// The threads of a fragment; nobody waits for them when they are dropped.
#[derive(Debug)]
pub(super) struct Threads {
    runtime: Option<Runtime>,
    is_left: Arc<AtomicBool>,
}

impl Threads {
    /// Whether nobody waits any more.
    pub(super) fn stop(&self) -> Stop {
        let is_left = Arc::clone(&self.is_left);
        Arc::new(move || is_left.load(Ordering::Relaxed))
    }

    /// The rows that `execute` gives, computed on these threads, which are kept until the last row was taken.
    pub(super) fn rows(
        self: Arc<Self>,
        schema: SchemaRef,
        execute: impl FnOnce() -> Result<SendableRecordBatchStream> + Send + 'static,
    ) -> Result<SendableRecordBatchStream> {
        let Some(runtime) = &self.runtime else { return execute() };
        let mut builder = RecordBatchReceiverStreamBuilder::new(Arc::clone(&schema), AHEAD);
        let taken = builder.tx();
        let computed = async move {
            let mut rows = execute()?;
            while let Some(batch) = rows.next().await {
                let is_last = batch.is_err();
                if taken.send(batch).await.is_err() || is_last {
                    break;
                }
            }
            Ok(())
        };
        builder.spawn_on(computed, runtime.handle());
        let rows = builder.build().inspect(move |_| {
            let _kept = &self;
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.is_left.store(true, Ordering::Relaxed);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use datafusion::arrow::array::RecordBatch;
    use datafusion::arrow::datatypes::Schema;
    use datafusion::physical_plan::EmptyRecordBatchStream;

    use super::*;

    #[tokio::test]
    async fn what_nobody_waits_for_is_left_to_itself_and_counts_until_it_ends() {
        let fragments = Arc::new(Fragments::new(1));
        let worker = OnWorker { fragments: Arc::clone(&fragments), store: "/data/a".to_owned(), name: String::new() };
        let schema = Arc::new(Schema::empty());
        let ((end, wait), (begin, begun)) = (channel::<()>(), channel());
        let execute = {
            let schema = Arc::clone(&schema);
            move || {
                begin.send(()).expect("the test waits");
                // An operator that does not look around.
                wait.recv().expect("the test sends");
                Ok(Box::pin(EmptyRecordBatchStream::new(schema)) as SendableRecordBatchStream)
            }
        };
        let threads = worker.threads().expect("threads");
        let rows = Arc::clone(&threads).rows(schema, execute).expect("rows");
        begun.recv().expect("it runs");
        let stop = threads.stop();
        assert!(!stop());
        drop((rows, threads));
        assert!(stop());
        let work = fragments.work();
        assert_eq!((work.len(), work[0].store.as_str(), work[0].fragments), (1, "/data/a", 1));
        end.send(()).expect("it waits");
        while !fragments.work().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn rows_come_from_threads_that_end_behind_them() {
        let fragments = Arc::new(Fragments::new(2));
        let worker = OnWorker { fragments: Arc::clone(&fragments), store: String::new(), name: String::new() };
        let schema = Arc::new(Schema::empty());
        let batches = std::iter::repeat_n(RecordBatch::new_empty(Arc::clone(&schema)), 5).map(Ok);
        let of_batches = Arc::clone(&schema);
        let execute = move || {
            let stream = futures::stream::iter(batches);
            Ok(Box::pin(RecordBatchStreamAdapter::new(of_batches, stream)) as SendableRecordBatchStream)
        };
        let rows = worker.threads().expect("threads").rows(schema, execute).expect("rows");
        assert_eq!(rows.count().await, 5);
        while !fragments.work().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
