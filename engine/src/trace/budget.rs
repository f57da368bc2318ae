//! What reading a trace may consume: the memory pool, the greatest length of a record, the deadline, and a disk.
//!
//! Readers reserve memory before they allocate: a file may claim any size, and a few kilobytes may decompress to ten
//! gigabytes. Inside a reader, a refusal is an `io::Error`, which becomes an [`ImportError`](crate::error::ImportError) in
//! [`Source::io_error`](super::Source::io_error).

use std::io;
use std::sync::Arc;

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation, UnboundedMemoryPool};

use super::deadline::Deadline;
use super::spill::Spill;

/// How many values of the longest kind a record may hold.
const VALUES_PER_RECORD: usize = 4;

/// The pool that readers ask, the longest record, and the time.
#[derive(Debug, Clone)]
pub struct Budget {
    pool: Arc<dyn MemoryPool>,
    max_value: usize,
    deadline: Deadline,
    spill: Option<Arc<Spill>>,
}

impl Budget {
    /// Memory of `pool`, values of at most `max_value` bytes, and any time.
    pub fn new(pool: Arc<dyn MemoryPool>, max_value: usize) -> Budget {
        Budget { pool, max_value, deadline: Deadline::default(), spill: None }
    }

    /// The same, with a deadline.
    #[must_use]
    pub fn until(self, deadline: Deadline) -> Budget {
        Budget { deadline, ..self }
    }

    /// The same, with a disk for rows that are not needed before the end.
    #[must_use]
    pub(crate) fn spilling(self, spill: Spill) -> Budget {
        Budget { spill: Some(Arc::new(spill)), ..self }
    }

    /// Where rows may wait, if they may.
    pub(crate) fn spill(&self) -> Option<&Arc<Spill>> {
        self.spill.as_ref()
    }

    /// Whatever there is: for programs that hold the bytes already, and for tests.
    pub fn unlimited() -> Budget {
        Budget::new(Arc::new(UnboundedMemoryPool::default()), usize::MAX)
    }

    /// The pool.
    pub fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.pool
    }

    /// Bytes of a record (a line, an event) at most: what has no end within them is no record of a trace.
    pub fn record_bytes(&self) -> usize {
        self.max_value.saturating_mul(VALUES_PER_RECORD)
    }

    /// Bytes of one value at most.
    pub fn max_value(&self) -> usize {
        self.max_value
    }

    /// Until when may be read.
    pub fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// Nothing yet, to be grown by who is called `name`.
    pub(crate) fn hold(&self, name: impl Into<String>) -> MemoryReservation {
        MemoryConsumer::new(name).register(&self.pool)
    }
}

impl From<Arc<dyn MemoryPool>> for Budget {
    /// Memory of the pool, values of the usual length.
    fn from(pool: Arc<dyn MemoryPool>) -> Budget {
        Budget::new(pool, tq_udfs::bounded::MAX_VALUE)
    }
}

/// Why reading goes no further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The pool has no more.
    #[error("{0}")]
    Memory(String),
    /// A record of more bytes than these does not end.
    #[error("the record that begins at byte {from} has no end within {bytes} bytes")]
    Record {
        /// Where it begins.
        from: u64,
        /// How far its end was looked for.
        bytes: usize,
    },
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> io::Error {
        io::Error::other(refusal)
    }
}

/// Grows a reservation from inside of a reader.
pub(crate) fn grow(memory: &MemoryReservation, bytes: usize) -> io::Result<()> {
    memory.try_grow(bytes).map_err(|error| Refusal::Memory(error.strip_backtrace()).into())
}
