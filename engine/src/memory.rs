//! The memory pool of a session: tables, readers, operators and functions reserve memory in it before they allocate.
//!
//! It divides memory as DataFusion's `FairSpillPool` does: operators that can spill to disk (sorts, grouping) get equal
//! shares of what the others leave, so that one sort does not take the memory that the next one needs to merge what it
//! spilled. (Under `GreedyMemoryPool` a sort of 50 million rows fails at 1.5 GB; under this one it spills.) Two things
//! differ: the limit can be changed during a session, and a refusal is one readable line: who asked for how much, and what
//! is left.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};

/// The pool.
#[derive(Debug)]
pub struct SessionPool {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Bytes that may be taken.
    limit: usize,
    /// How many consumers can spill to disk.
    spillers: usize,
    /// Bytes held by consumers that can spill.
    spillable: usize,
    /// Bytes held by consumers that cannot.
    fixed: usize,
}

impl SessionPool {
    /// A pool of `limit` bytes.
    pub fn new(limit: usize) -> SessionPool {
        SessionPool { state: Mutex::new(State { limit, spillers: 0, spillable: 0, fixed: 0 }) }
    }

    /// Bytes that may be taken.
    pub fn limit(&self) -> usize {
        self.state().limit
    }

    /// Changes the limit from now on; what is taken already stays.
    pub fn set_limit(&self, limit: usize) {
        self.state().limit = limit;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Numbers only, each changed at once: a panic elsewhere leaves them right.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MemoryPool for SessionPool {
    fn name(&self) -> &str {
        "session"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.state().spillers += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            let mut state = self.state();
            state.spillers = state.spillers.saturating_sub(1);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let mut state = self.state();
        match reservation.consumer().can_spill() {
            true => state.spillable += additional,
            false => state.fixed += additional,
        }
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut state = self.state();
        match reservation.consumer().can_spill() {
            true => state.spillable = state.spillable.saturating_sub(shrink),
            false => state.fixed = state.fixed.saturating_sub(shrink),
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut state = self.state();
        let left = state.limit.saturating_sub(state.spillable.saturating_add(state.fixed));
        match reservation.consumer().can_spill() {
            true => {
                let share = state.limit.saturating_sub(state.fixed) / state.spillers.max(1);
                if reservation.size().saturating_add(additional) > share {
                    let left = share.saturating_sub(reservation.size());
                    return Err(refusal(reservation, additional, left, state.limit));
                }
                state.spillable += additional;
            }
            false => {
                if additional > left {
                    return Err(refusal(reservation, additional, left, state.limit));
                }
                state.fixed += additional;
            }
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        let state = self.state();
        state.spillable + state.fixed
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.state().limit)
    }
}

impl fmt::Display for SessionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(limit: {})", self.name(), megabytes(self.state().limit))
    }
}

/// A memory pool of which somebody sees what is asked.
#[derive(Debug)]
pub(crate) struct ObservedPool<O> {
    pub(crate) pool: Arc<dyn MemoryPool>,
    pub(crate) observer: O,
}

/// Who sees what is asked of a pool.
pub(crate) trait Observer: fmt::Debug + Send + Sync + 'static {
    /// So many bytes are about to be asked for; an error refuses them.
    fn ask(&self, bytes: usize) -> Result<()>;

    /// So many bytes are taken, whether the pool has them or not.
    fn take(&self, bytes: usize);

    /// So many bytes come back, or were not there.
    fn give_back(&self, bytes: usize);
}

impl<O: Observer> MemoryPool for ObservedPool<O> {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.observer.take(additional);
        self.pool.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
        self.observer.give_back(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.observer.ask(additional)?;
        self.pool.try_grow(reservation, additional).inspect_err(|_| self.observer.give_back(additional))
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

impl<O> fmt::Display for ObservedPool<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pool.fmt(f)
    }
}

/// `ExternalSorter[0] asked for 12.0 MB and has 3.1 MB; 8.2 MB are left of --memory 256 MB`
fn refusal(reservation: &MemoryReservation, additional: usize, left: usize, limit: usize) -> DataFusionError {
    let name = reservation.consumer().name();
    let has = match reservation.size() {
        0 => String::new(),
        bytes => format!(" and has {}", megabytes(bytes)),
    };
    DataFusionError::ResourcesExhausted(format!(
        "{name} asked for {}{has}; {} are left of --memory {}",
        megabytes(additional),
        megabytes(left),
        megabytes(limit)
    ))
}

/// `12.3 MB`
pub(crate) fn megabytes(bytes: usize) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_spill_takes_what_is_left_and_who_can_gets_a_share() {
        let pool = Arc::new(SessionPool::new(100_000_000));
        let shared: Arc<dyn MemoryPool> = pool.clone();
        let tables = MemoryConsumer::new("tables").register(&shared);
        let sort = MemoryConsumer::new("sort").with_can_spill(true).register(&shared);
        let other = MemoryConsumer::new("other").with_can_spill(true).register(&shared);
        tables.try_grow(40_000_000).unwrap();
        sort.try_grow(30_000_000).unwrap();
        let refused = sort.try_grow(1).unwrap_err().strip_backtrace();
        assert!(refused.ends_with("sort asked for 0.0 MB and has 30.0 MB; 0.0 MB are left of --memory 100.0 MB"));
        other.try_grow(30_000_000).unwrap();
        assert!(tables.try_grow(1).is_err());
        drop(other);
        tables.try_grow(30_000_000).unwrap();
        pool.set_limit(200_000_000);
        tables.try_grow(90_000_000).unwrap();
        drop((tables, sort));
        assert_eq!(pool.reserved(), 0);
    }
}
