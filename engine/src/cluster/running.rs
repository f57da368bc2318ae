//! Running: the fragments that a worker works on, each on threads of its own.
//!
//! Whoever asked may go away while an operator computes for long without a pause. Its threads are left to themselves then, and those of
//! other queries and of the connections go on. Scans are told, so that such an operator gets no more rows. A fragment is left in the same
//! way when the process has too much memory, and whoever asked is told why.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use crate::memory::{ObservedPool, Observer};
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
pub struct Fragments {
    /// Threads of each.
    threads: usize,
    /// What is done when none is left: allocators keep what the threads of each had.
    when_idle: fn(),
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    begun: u64,
    all: BTreeMap<u64, Fragment>,
}

#[derive(Debug)]
struct Fragment {
    /// What it reads.
    store: String,
    since: Instant,
    work: Arc<Ended>,
}

impl Fragments {
    /// None yet; each runs on so many threads. `when_idle` is called when the last one has ended.
    pub fn new(threads: usize, when_idle: fn()) -> Fragments {
        Fragments { threads, when_idle, running: Mutex::default() }
    }

    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is done, by store.
    pub(super) fn work(&self) -> Vec<Work> {
        let mut of_stores: BTreeMap<String, (u64, Duration)> = BTreeMap::new();
        for fragment in self.running().all.values() {
            let (fragments, longest) = of_stores.entry(fragment.store.clone()).or_default();
            *fragments += 1;
            *longest = fragment.since.elapsed().max(*longest);
        }
        let work =
            |(store, (fragments, longest)): (_, (_, Duration))| Work { store, fragments, seconds: longest.as_secs() };
        of_stores.into_iter().map(work).collect()
    }

    /// Ends the fragment that has most of the memory pool, with an error that says why. Where the process has more memory than it may, one
    /// query is refused, and those of others go on. Unless one `must` be refused, none is while another ends, whose memory comes back then.
    pub fn refuse_largest(&self, why: &str, must: bool) -> Refusal {
        let running = self.running();
        let is_going = |fragment: &Fragment| !fragment.work.is_left.load(Ordering::SeqCst);
        if !must && !running.all.values().all(is_going) {
            return Refusal::Waits;
        }
        let size = |(begun, fragment): &(&u64, &Fragment)| (fragment.work.bytes.load(Ordering::SeqCst), **begun);
        let going = running.all.iter().filter(|(_, fragment)| is_going(fragment));
        let Some((_, Fragment { work, .. })) = going.max_by_key(size) else {
            return if running.all.is_empty() { Refusal::Idle } else { Refusal::Waits };
        };
        work.refusal.send_replace(Some(why.to_owned()));
        work.leave();
        Refusal::Refused
    }
}

/// What came of asking for memory back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A fragment was refused.
    Refused,
    /// One is ending, since it was refused or nobody waits for it any more.
    Waits,
    /// There is none.
    Idle,
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
        let work = Arc::new(Ended::default());
        let counted = {
            let mut running = self.fragments.running();
            running.begun += 1;
            let number = running.begun;
            let fragment = Fragment { store: self.store.clone(), since: Instant::now(), work: Arc::clone(&work) };
            running.all.insert(number, fragment);
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
        *work.runtime.lock().unwrap_or_else(PoisonError::into_inner) = Some(runtime);
        Ok(Arc::new(Threads(work)))
    }
}

struct Counted {
    number: u64,
    fragments: Arc<Fragments>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let is_idle = {
            let mut running = self.fragments.running();
            running.all.remove(&self.number);
            running.all.is_empty()
        };
        if is_idle {
            (self.fragments.when_idle)();
        }
    }
}

/// What ends a fragment, and what it takes until then.
#[derive(Debug, Default)]
struct Ended {
    /// `None` when it has been left.
    runtime: Mutex<Option<Runtime>>,
    is_left: Arc<AtomicBool>,
    /// Why it was refused.
    refusal: watch::Sender<Option<String>>,
    /// What it has of the memory pool.
    bytes: AtomicUsize,
}

impl Ended {
    /// Its threads are left to themselves.
    fn leave(&self) {
        self.is_left.store(true, Ordering::SeqCst);
        if let Some(runtime) = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take() {
            runtime.shutdown_background();
        }
    }

    /// Waits until it is refused: why.
    async fn refused(&self) -> String {
        let mut refusal = self.refusal.subscribe();
        let why = refusal.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        // The sender is here, so there is one.
        why.unwrap_or_default()
    }
}

/// The threads of a fragment; nobody waits for them when they are dropped.
#[derive(Debug)]
pub(super) struct Threads(Arc<Ended>);

impl Threads {
    /// Whether nobody waits any more.
    pub(super) fn stop(&self) -> Stop {
        let is_left = Arc::clone(&self.0.is_left);
        Arc::new(move || is_left.load(Ordering::Relaxed))
    }

    /// The same memory pool, in which it is counted what this fragment has of it.
    pub(super) fn counted(&self, pool: &Arc<dyn MemoryPool>) -> Arc<dyn MemoryPool> {
        Arc::new(ObservedPool { pool: Arc::clone(pool), observer: Arc::clone(&self.0) })
    }

    /// The rows that `execute` gives, computed on these threads, which are kept until the last row was taken.
    pub(super) fn rows(
        self: Arc<Self>,
        schema: SchemaRef,
        execute: impl FnOnce() -> Result<SendableRecordBatchStream> + Send + 'static,
    ) -> Result<SendableRecordBatchStream> {
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
        match &*self.0.runtime.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(runtime) => builder.spawn_on(computed, runtime.handle()),
            // It was refused before this partition was asked for.
            None => {
                let why = self.0.refusal.borrow().clone();
                return Err(DataFusionError::ResourcesExhausted(why.unwrap_or_default()));
            }
        }
        let state = Some((builder.build(), self));
        let rows = futures::stream::unfold(state, async |state| {
            let (mut rows, threads) = state?;
            tokio::select! {
                biased;
                why = threads.0.refused() => Some((Err(DataFusionError::ResourcesExhausted(why)), None)),
                batch = rows.next() => batch.map(|batch| (batch, Some((rows, threads)))),
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Observer for Arc<Ended> {
    fn ask(&self, bytes: usize) -> Result<()> {
        self.take(bytes);
        Ok(())
    }

    fn take(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use datafusion::arrow::array::RecordBatch;
    use datafusion::arrow::datatypes::Schema;
    use datafusion::execution::memory_pool::{MemoryConsumer, UnboundedMemoryPool};
    use datafusion::physical_plan::EmptyRecordBatchStream;

    use super::*;

    #[tokio::test]
    async fn what_nobody_waits_for_is_left_to_itself_and_counts_until_it_ends() {
        let fragments = Arc::new(Fragments::new(1, || ()));
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
        let fragments = Arc::new(Fragments::new(2, || ()));
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

    #[tokio::test]
    async fn the_fragment_with_most_memory_is_refused_and_the_others_go_on() {
        let fragments = Arc::new(Fragments::new(1, || ()));
        let worker = OnWorker { fragments: Arc::clone(&fragments), store: String::new(), name: String::new() };
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let schema = Arc::new(Schema::empty());
        let begun = |bytes: usize| {
            let threads = worker.threads().expect("threads");
            let memory = MemoryConsumer::new("groups").register(&threads.counted(&pool));
            let rows = futures::stream::once(async move {
                memory.grow(bytes);
                tokio::time::sleep(Duration::from_secs(600)).await;
                drop(memory);
                Ok(RecordBatch::new_empty(Arc::new(Schema::empty())))
            });
            let rows = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), rows)) as SendableRecordBatchStream;
            threads.rows(Arc::clone(&schema), || Ok(rows)).expect("rows")
        };
        let (mut few, mut most, few_too) = (begun(10), begun(30), begun(20));
        while pool.reserved() < 60 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(fragments.refuse_largest("too much", false), Refusal::Refused);
        let error = most.next().await.expect("an end").expect_err("is refused").strip_backtrace();
        assert!(error.ends_with("too much"), "{error}");
        assert!(most.next().await.is_none());
        while pool.reserved() > 30 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(tokio::time::timeout(Duration::from_millis(10), few.next()).await.is_err(), "it goes on");
        drop((few, few_too));
        while !fragments.work().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(fragments.refuse_largest("none is left", false), Refusal::Idle);
    }
}
