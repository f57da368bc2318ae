//! Calls: which call launched what, by the correlation id that a call and its work share.

use datafusion::execution::memory_pool::MemoryReservation;

use super::lanes::Process;
use crate::error::ImportError;
use crate::trace::{List, Room, Sorter, record};

/// A call that may have launched something. In the order of its fields calls of one correlation id stand together, by process and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Call {
    pub(super) correlation: i64,
    pub(super) process: Process,
    pub(super) start: i64,
    pub(super) task: u32,
    /// The lane of its thread.
    pub(super) lane: i32,
}

record!(Call { correlation, process, start, task, lane });

/// Calls by correlation id.
pub(super) struct Calls {
    calls: List<Call>,
    room: Room,
}

impl Calls {
    pub(super) fn of(calls: Sorter<Call>, room: &Room) -> Result<Calls, ImportError> {
        let mut list = List::new(room);
        calls.sorted()?.try_for_each(|call| list.push(call?))?;
        Ok(Calls { calls: list, room: room.clone() })
    }

    /// Those of correlation ids that are asked for in ascending order.
    pub(super) fn groups(&self) -> Groups<impl Iterator<Item = Result<Call, ImportError>>> {
        let (memory, room) = (self.room.hold(), self.room.clone());
        Groups { calls: self.calls.iter(), next: None, group: vec![], correlation: None, memory, room }
    }
}

/// Calls of one correlation id after the other.
pub(super) struct Groups<I> {
    calls: I,
    /// The first call of a later id.
    next: Option<Call>,
    group: Vec<Call>,
    correlation: Option<i64>,
    memory: MemoryReservation,
    room: Room,
}

impl<I: Iterator<Item = Result<Call, ImportError>>> Groups<I> {
    /// The calls of an id, by process and start.
    pub(super) fn of(&mut self, correlation: i64) -> Result<&[Call], ImportError> {
        if self.correlation == Some(correlation) {
            return Ok(&self.group);
        }
        self.correlation = Some(correlation);
        self.group.clear();
        while let Some(call) = self.next.take().map(Ok).or_else(|| self.calls.next()).transpose()? {
            if call.correlation > correlation {
                self.next = Some(call);
                break;
            }
            if call.correlation == correlation {
                self.group.push(call);
                let bytes = self.group.capacity() * size_of::<Call>();
                if bytes > self.memory.size() {
                    self.room.resize(&self.memory, bytes)?;
                }
            }
        }
        Ok(&self.group)
    }
}

/// The process of calls, when it is one.
pub(super) fn process(calls: &[Call]) -> Option<Process> {
    let first = calls.first()?.process;
    calls.iter().all(|call| call.process == first).then_some(first)
}

/// The innermost of the calls of a correlation id, and whether there is a doubt about the process.
pub(super) fn innermost(calls: &[Call], of: Option<Process>) -> (Option<Call>, bool) {
    match of {
        // By process and start: the last one began last.
        Some(of) => (calls.iter().rev().find(|call| call.process == of).copied(), false),
        None => (calls.last().copied(), process(calls).is_none() && !calls.is_empty()),
    }
}
