//! Batches that wait for their turn: bounded, charged to the memory pool, and never the cause of a deadlock.
//!
//! ```text
//! source 0 ─task─▶ queue ┐
//! source 1 ─task─▶ queue ┼▶ reader: takes from its sources in turns
//! source 2 ─task─▶ queue ┘
//! ```
//!
//! A [`Source`] works ahead until [`AHEAD_BYTES`] of its batches wait, over the queues of all its readers, or until the memory
//! pool has no more. Then it goes on only when a reader whose turn it is finds its queue empty. So a reader never waits for a
//! source that waits for the reader: whoever is waited for may always send. What that source has for other readers
//! meanwhile piles up and is charged.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use tq_udfs::relation::rows::bytes_of;

/// How far a source may be ahead of its readers. Tests have little, so that sources wait for each other.
pub(super) const AHEAD_BYTES: usize = if cfg!(test) { 4 << 10 } else { 32 << 20 };

/// In which order a reader takes from its sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turns {
    /// All of the first, then all of the second.
    Whole,
    /// A batch of the first, a batch of the second, and around again, without those that have ended.
    BatchByBatch,
}

/// What one source has sent and its readers have not taken.
#[derive(Debug)]
pub(super) struct Source {
    state: Mutex<State>,
    ahead_bytes: usize,
}

#[derive(Debug)]
struct State {
    queues: Vec<Queue>,
    /// Bytes that wait in all queues.
    waiting_bytes: usize,
    has_ended: bool,
    /// The source's task, while it waits for leave to send.
    sender: Option<Waker>,
}

#[derive(Debug, Default)]
struct Queue {
    batches: VecDeque<Waiting>,
    is_gone: bool,
    /// The reader, while it waits for this source.
    reader: Option<Waker>,
}

#[derive(Debug)]
struct Waiting {
    batch: Result<RecordBatch>,
    bytes: usize,
    _charge: Option<MemoryReservation>,
}

impl Source {
    pub(super) fn new(readers: usize, ahead_bytes: usize) -> Arc<Source> {
        let queues = (0..readers).map(|_| Queue::default()).collect();
        let state = State { queues, waiting_bytes: 0, has_ended: false, sender: None };
        Arc::new(Source { state: Mutex::new(state), ahead_bytes })
    }

    /// Sends batches, each to a reader, when there is room or somebody waits for this source. `false` when all readers have gone.
    ///
    /// # Errors
    /// The memory pool's, when a reader waits and there is no memory for what others have not taken.
    pub(super) async fn send(
        &self,
        batches: Vec<(usize, RecordBatch)>,
        reservation: &MemoryReservation,
    ) -> Result<bool> {
        for (reader, batch) in batches {
            let bytes = bytes_of(&batch);
            let is_awaited = self.leave_to_send(reader, bytes, reservation).await;
            let charge = reservation.new_empty();
            match charge.try_grow(bytes) {
                Ok(()) => self.push(reader, Waiting { batch: Ok(batch), bytes, _charge: Some(charge) }),
                // It goes straight to its reader; or there is little that has to wait, and no other way on.
                Err(_) if is_awaited == Leave::OfThisReader || self.lock().waiting_bytes <= self.ahead_bytes => {
                    self.push(reader, Waiting { batch: Ok(batch), bytes, _charge: None });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(self.lock().queues.iter().any(|queue| !queue.is_gone))
    }

    /// Tells all readers of an error.
    pub(super) fn fail(&self, error: &Arc<datafusion::error::DataFusionError>) {
        let readers = self.lock().queues.len();
        for reader in 0..readers {
            let error = datafusion::error::DataFusionError::Shared(Arc::clone(error));
            self.push(reader, Waiting { batch: Err(error), bytes: 0, _charge: None });
        }
    }

    /// Nothing more comes.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        let wakers: Vec<Waker> = state.queues.iter_mut().filter_map(|queue| queue.reader.take()).collect();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The next batch for a reader; `None` at the end.
    pub(super) async fn take(&self, reader: usize) -> Option<Result<RecordBatch>> {
        poll_fn(|context| {
            let mut state = self.lock();
            if let Some(waiting) = state.queues[reader].batches.pop_front() {
                state.waiting_bytes -= waiting.bytes;
                let sender = state.sender.take();
                drop(state);
                sender.into_iter().for_each(Waker::wake);
                return Poll::Ready(Some(waiting.batch));
            }
            if state.has_ended {
                return Poll::Ready(None);
            }
            state.queues[reader].reader = Some(context.waker().clone());
            let sender = state.sender.take();
            drop(state);
            sender.into_iter().for_each(Waker::wake);
            Poll::Pending
        })
        .await
    }

    /// A reader that has gone gets nothing more.
    pub(super) fn leave(&self, reader: usize) {
        let mut state = self.lock();
        let queue = &mut state.queues[reader];
        queue.is_gone = true;
        queue.reader = None;
        let batches = std::mem::take(&mut queue.batches);
        state.waiting_bytes -= batches.iter().map(|waiting| waiting.bytes).sum::<usize>();
        let sender = state.sender.take();
        drop(state);
        sender.into_iter().for_each(Waker::wake);
    }

    /// Waits until a batch may be sent, and says why.
    async fn leave_to_send(&self, reader: usize, bytes: usize, reservation: &MemoryReservation) -> Leave {
        poll_fn(|context| {
            let mut state = self.lock();
            if state.queues[reader].is_gone {
                return Poll::Ready(Leave::OfThisReader);
            }
            if state.queues[reader].is_awaiting() {
                return Poll::Ready(Leave::OfThisReader);
            }
            let has_room = state.waiting_bytes == 0 || state.waiting_bytes + bytes <= self.ahead_bytes;
            // Asked and given back: whether it is there when it is sent, is seen then.
            if has_room && reservation.new_empty().try_grow(bytes).is_ok() {
                return Poll::Ready(Leave::Room);
            }
            if state.queues.iter().any(Queue::is_awaiting) {
                return Poll::Ready(Leave::OfAnotherReader);
            }
            state.sender = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn push(&self, reader: usize, waiting: Waiting) {
        let mut state = self.lock();
        let queue = &mut state.queues[reader];
        if queue.is_gone {
            return;
        }
        let bytes = waiting.bytes;
        queue.batches.push_back(waiting);
        let waker = queue.reader.take();
        state.waiting_bytes += bytes;
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in a locked stretch panics half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a source may send.
#[derive(Debug, PartialEq, Eq)]
enum Leave {
    /// There is room.
    Room,
    /// The reader of the batch waits for it.
    OfThisReader,
    /// Another reader waits, and the batch stands before what that one gets.
    OfAnotherReader,
}

impl Queue {
    fn is_awaiting(&self) -> bool {
        self.reader.is_some() && self.batches.is_empty() && !self.is_gone
    }
}

/// The reader of one queue of each source.
#[derive(Debug)]
pub(super) struct Reader {
    sources: Vec<Arc<Source>>,
    number: usize,
    turns: Turns,
    /// The sources that have not ended, in their order.
    open: VecDeque<usize>,
}

impl Reader {
    pub(super) fn new(sources: Vec<Arc<Source>>, number: usize, turns: Turns) -> Reader {
        let open = (0..sources.len()).collect();
        Reader { sources, number, turns, open }
    }

    /// The next batch and the number of its source. `Err` is the number of a source that ended: what it did is to be looked at.
    pub(super) async fn next(&mut self) -> Option<std::result::Result<Result<RecordBatch>, usize>> {
        let source = *self.open.front()?;
        match self.sources[source].take(self.number).await {
            Some(batch) => {
                if self.turns == Turns::BatchByBatch {
                    self.open.rotate_left(1);
                }
                Some(Ok(batch))
            }
            None => {
                self.open.pop_front();
                Some(Err(source))
            }
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.sources.iter().for_each(|source| source.leave(self.number));
    }
}
