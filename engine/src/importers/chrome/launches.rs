//! Launches: from calls to what they launched, by `correlation`; and from operators to their work, by `External id`.
//!
//! ```text
//! calls      (correlation, start, task)   sorted ┐
//! launched   (correlation, start, task)   sorted ┴ merged ─▶ links of kind `launch` and `sync`
//! operators  (External id, task)          sorted ┐
//! work       (External id, task)          sorted ┴ merged ─▶ links of kind `operator`
//! ```
//! Recorders count both ids up and write calls, work and operators each about in the order of their ids, so that sorting those by
//! themselves hardly moves anything.

use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::{HashMap, HashSet};

use super::file::{Piece, Recording};
use super::kineto::{Kind, Kinds, Known, Label, Link};
use super::lanes::Lanes;
use crate::error::ImportError;
use crate::trace::{Column, List, Room, Sorted, Sorter, findings, record};

/// A task that carries an id.
#[derive(Debug, Clone, Copy)]
struct Carrier {
    id: i64,
    row: u32,
    start: i64,
    lane: i32,
    kind: Kind,
}

/// Hands out the tasks that carry ids of a sort, in the order of the file.
fn each_carrier(
    recording: &Recording,
    kinds: &Kinds,
    ids: impl Fn(&Piece) -> &Column<(u32, i64)>,
    mut take: impl FnMut(Carrier) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    for piece in &recording.pieces {
        let ids = ids(piece).values()?;
        if ids.is_empty() {
            continue;
        }
        let (starts, lanes, of_kinds) = (piece.starts.values()?, piece.lanes.values()?, piece.kinds.values()?);
        for &(row, id) in ids.iter() {
            let at = row as usize;
            let kind = kinds.get(of_kinds[at]);
            take(Carrier { id, row: piece.first + row, start: starts[at], lane: lanes[at], kind })?;
        }
    }
    Ok(())
}

/// What calls launched, joined by correlation.
pub(super) struct Launches {
    /// By task.
    launched: List<Launched>,
    /// The calls that have a correlation, in this order.
    calls: List<Call>,
    /// How many were launched by a call of several processes, and the first of them with its correlation.
    ambiguous: u64,
    first_ambiguous: Option<(u32, i64)>,
}

/// A call with its correlation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    id: i64,
    start: i64,
    row: u32,
    lane: i32,
}

record!(Call { id, start, row, lane });

/// What has the correlation of a call, and is to be joined with it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Correlated {
    id: i64,
    start: i64,
    row: u32,
    lane: i32,
    is_sync: bool,
}

record!(Correlated { id, start, row, lane, is_sync });

/// What a call launched, or, for a `cuda_sync`, what waited.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Launched {
    pub(super) row: u32,
    id: i64,
    pub(super) lane: i32,
    pub(super) is_sync: bool,
    call: u32,
    pub(super) call_start: i64,
    call_lane: i32,
}

record!(Launched { row, id, lane, is_sync, call, call_start, call_lane });

/// The calls of a correlation that came last, and what they cost in memory when they are many.
struct Calls {
    id: i64,
    calls: Vec<Call>,
    memory: MemoryReservation,
}

/// So many calls of a correlation need no leave.
const FEW_CALLS: usize = 4096;

impl Calls {
    fn push(&mut self, call: Call, room: &Room) -> Result<(), ImportError> {
        if self.id != call.id {
            self.id = call.id;
            self.calls.clear();
            if self.calls.capacity() > FEW_CALLS {
                self.calls = Vec::new();
            }
            self.memory.free();
        }
        if self.calls.len() == self.calls.capacity() && self.calls.len() >= FEW_CALLS {
            room.resize(&self.memory, 3 * self.calls.len() * size_of::<Call>())?;
        }
        self.calls.push(call);
        Ok(())
    }

    /// The call of what began at a time: the latest that began by then, else the first.
    fn of(&self, id: i64, time: i64) -> Option<&Call> {
        let calls = if self.id == id { self.calls.as_slice() } else { &[] };
        let begun = calls.partition_point(|call| call.start <= time);
        calls.get(begun.saturating_sub(1))
    }
}

impl Launches {
    pub(super) fn of(recording: &Recording, kinds: &Kinds, lanes: &Lanes) -> Result<Launches, ImportError> {
        let room = &recording.room;
        let (mut calls, mut correlated) = (Sorter::new(room), Sorter::new(room));
        each_carrier(
            recording,
            kinds,
            |piece| &piece.correlations,
            |Carrier { id, row, start, lane, kind }| match kind {
                Kind::Call => calls.push(Call { id, start, row, lane }),
                Kind::Kernel | Kind::Copy | Kind::Sync => {
                    correlated.push(Correlated { id, start, row, lane, is_sync: kind == Kind::Sync })
                }
                _ => Ok(()),
            },
        )?;
        let mut launched = Sorter::new(room);
        let mut launches =
            Launches { launched: List::new(room), calls: List::new(room), ambiguous: 0, first_ambiguous: None };
        let mut of_id = Calls { id: 0, calls: Vec::new(), memory: room.hold() };
        let process = |lane: i32| lanes.all[lane as usize].parent;
        let mut are_of_several = false;
        let mut calls = calls.sorted()?.peekable();
        for next in correlated.sorted()? {
            let Correlated { id, start, row, lane, is_sync } = next?;
            while let Some(call) = calls.next_if(|next| next.as_ref().map_or(true, |call| call.id <= id)) {
                let call = call?;
                let before = of_id.calls.last().filter(|_| of_id.id == call.id);
                are_of_several =
                    before.is_some_and(|before| are_of_several || process(before.lane) != process(call.lane));
                launches.calls.push(call.clone())?;
                of_id.push(call, room)?;
            }
            if let Some(call) = of_id.of(id, start) {
                let (call, call_start, call_lane) = (call.row, call.start, call.lane);
                launched.push(Launched { row, id, lane, is_sync, call, call_start, call_lane })?;
                if are_of_several {
                    launches.ambiguous += 1;
                    launches.first_ambiguous = launches.first_ambiguous.into_iter().chain([(row, id)]).min();
                }
            }
        }
        for call in calls {
            launches.calls.push(call?)?;
        }
        for next in launched.sorted()? {
            launches.launched.push(next?)?;
        }
        Ok(launches)
    }

    pub(super) fn are_none(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.launched.len()
    }

    /// What was launched, by task.
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<Launched, ImportError>> {
        self.launched.iter()
    }

    /// Counts what calls of several processes may have launched: where tools merged traces of several processes into one, their
    /// correlations collide, and the process of a stream is its device.
    pub(super) fn count_ambiguous(&self, recording: &mut Recording) {
        let id = self.first_ambiguous.map_or(0, |(_, id)| id);
        recording.stats.note(findings::LAUNCH_AMBIGUOUS, self.ambiguous, || {
            format!("calls of several processes have correlation {id}")
        });
    }

    /// The correlations that link something, ascending, with what they hold.
    pub(super) fn known(&self, room: &Room) -> Result<(Vec<i64>, MemoryReservation), ImportError> {
        let memory = room.hold();
        room.resize(&memory, self.launched.len() * size_of::<i64>())?;
        let mut ids = Vec::with_capacity(self.launched.len());
        for launched in self.launched.chunks() {
            ids.extend(launched?.iter().map(|launched| launched.id));
        }
        ids.sort_unstable();
        ids.dedup();
        Ok((ids, memory))
    }

    /// When the last call of each of these correlations began.
    pub(super) fn last_calls(&self, ids: &HashSet<i64>) -> Result<HashMap<i64, i64>, ImportError> {
        let mut last = HashMap::new();
        // Without questions nothing is read.
        for call in self.calls.iter().take(if ids.is_empty() { 0 } else { usize::MAX }) {
            let Call { id, start, .. } = call?;
            if ids.contains(&id) {
                last.insert(id, start);
            }
        }
        Ok(last)
    }

    /// From each call to what it launched.
    pub(super) fn links(&self, links: &mut List<Link>) -> Result<(), ImportError> {
        for launched in self.launched.chunks() {
            for &Launched { row, call, is_sync, .. } in launched?.iter() {
                links.push(Link {
                    source: call,
                    target: row,
                    kind: Label::Word(if is_sync { Known::Sync } else { Known::Launch }),
                    name: if is_sync { Label::Word(Known::Call) } else { Label::None },
                    args: Label::None,
                })?;
            }
        }
        Ok(())
    }
}

/// An operator with an `External id`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Operator {
    id: i64,
    row: u32,
    process: Option<i32>,
}

record!(Operator { id, row, process });

/// Work of a device with an `External id`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Work {
    id: i64,
    row: u32,
    /// The process of the call that launched it, where that is known.
    process: Option<Option<i32>>,
}

record!(Work { id, row, process });

/// The operators of an id that count: the first, and the first of each further process. Ids of a few old releases repeat; the first
/// is the outermost.
struct Operators {
    sorted: std::iter::Peekable<Sorted<Operator>>,
    id: i64,
    operators: Vec<Operator>,
}

impl Operators {
    /// Goes on to an id; ids ascend.
    fn go_to(&mut self, id: i64) -> Result<(), ImportError> {
        while let Some(next) = self.sorted.next_if(|next| next.as_ref().map_or(true, |next| next.id <= id)) {
            let next = next?;
            if self.id != next.id {
                self.id = next.id;
                self.operators.clear();
            }
            if self.operators.iter().all(|operator| operator.process != next.process) {
                self.operators.push(next);
            }
        }
        if self.id != id {
            self.operators.clear();
        }
        Ok(())
    }

    /// The operator of work, by the process that launched it.
    fn of(&self, process: Option<Option<i32>>) -> Option<&Operator> {
        let of_process = self.operators.iter().find(|operator| Some(operator.process) == process);
        of_process.or(self.operators.first())
    }
}

/// From each operator to the work of devices that has its `External id`.
///
/// Ids count within a process: where several have operators of an id, the call that launched the work says whose it is.
pub(super) fn operator_links(
    recording: &Recording,
    kinds: &Kinds,
    launches: &Launches,
    lanes: &Lanes,
    links: &mut List<Link>,
) -> Result<(), ImportError> {
    let process = |lane: i32| lanes.all[lane as usize].parent;
    let (mut operators, mut work) = (Sorter::new(&recording.room), Sorter::new(&recording.room));
    let mut launched = launches.iter().peekable();
    each_carrier(
        recording,
        kinds,
        |piece| &piece.externals,
        |Carrier { id, row, lane, kind, .. }| match kind {
            Kind::Operator => operators.push(Operator { id, row, process: process(lane) }),
            Kind::Kernel | Kind::Copy => {
                // Both stand in the order of tasks.
                while launched.next_if(|next| next.as_ref().is_ok_and(|next| next.row < row)).is_some() {}
                let of_row = launched.next_if(|next| next.as_ref().map_or(true, |next| next.row == row));
                let process = of_row.transpose()?.map(|launched| process(launched.call_lane));
                work.push(Work { id, row, process })
            }
            _ => Ok(()),
        },
    )?;
    let mut operators = Operators { sorted: operators.sorted()?.peekable(), id: 0, operators: Vec::new() };
    let mut found = Sorter::new(&recording.room);
    for work in work.sorted()? {
        let Work { id, row, process } = work?;
        operators.go_to(id)?;
        if let Some(operator) = operators.of(process) {
            found.push((row, operator.row))?;
        }
    }
    for link in found.sorted()? {
        let (target, source) = link?;
        let (kind, name) = (Label::Word(Known::Operator), Label::Word(Known::ExternalId));
        links.push(Link { source, target, kind, name, args: Label::None })?;
    }
    Ok(())
}
