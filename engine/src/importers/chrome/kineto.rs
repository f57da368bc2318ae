//! What PyTorch's Kineto records in `args`: launches, operators, waits, and the call tree of Python.
//!
//! ```text
//! cpu_op aten::mm       [External id 7                      ]
//! cuda_runtime              [cudaLaunchKernel: correlation 42]
//! kernel (stream)                        [gemm: correlation 42, External id 7   ]
//! cuda_sync (stream)                                             [Stream Sync: correlation 43]
//! links                 launch: cudaLaunchKernel → gemm     operator: aten::mm → gemm
//!                       sync: gemm → Stream Sync, cudaStreamSynchronize → Stream Sync
//! ```
//! Ids are unique within a process, and a file is one process with its devices (pid = device, tid = stream), so they are
//! joined within a file. One call may launch many kernels (graphs); a call may be missing where a tool cut the trace.
//! `ac2g` flows also sit on calls that launched nothing: launches are built from `correlation` alone.

use datafusion::execution::memory_pool::MemoryReservation;
use hashbrown::{HashMap, HashSet};

use super::chunk::UNFINISHED;
use super::event;
use super::file::{Piece, Recording, Shared};
use super::lanes::Lanes;
use crate::cells::Cells;
use crate::cells::kind::Word;
use crate::error::ImportError;
use crate::importers::blocking::{waits_for_device, waits_in_python};
use crate::importers::collectives::is_collective;
use crate::tables::{self, PROFILER};
use crate::trace::{Column, List, Record, Room, RunBuilder, Sorter, Words, each, findings, record};

/// A link between two tasks of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) source: u32,
    pub(super) target: u32,
    pub(super) kind: Label,
    pub(super) name: Label,
    /// Its arguments, where `tq` wrote them.
    pub(super) args: Label,
}

record!(Link { source, target, kind, name, args });

/// A word about a link: its kind or name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Label {
    None,
    /// An empty name that `tq` wrote counts as no name.
    Null,
    Word(Known),
    /// Key of the file's texts.
    Key(i32),
}

impl Record for Label {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            Label::None => 0_u8.write(to),
            Label::Null => 1_u8.write(to),
            Label::Word(word) => (2_u8, *word as u8).write(to),
            Label::Key(key) => (3_u8, *key).write(to),
        }
    }

    fn read(from: &mut &[u8]) -> Option<Label> {
        Some(match u8::read(from)? {
            0 => Label::None,
            1 => Label::Null,
            2 => Label::Word(*Known::ALL.get(usize::from(u8::read(from)?))?),
            3 => Label::Key(i32::read(from)?),
            _ => return None,
        })
    }
}

/// Kinds and names of links that the format has: in one byte, since traces have millions of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Known {
    Flow,
    Launch,
    Operator,
    Sync,
    Call,
    ExternalId,
    StreamSync,
    ContextSync,
    EventSync,
    StreamWaitEvent,
}

impl Known {
    const ALL: [Known; 10] = [
        Known::Flow,
        Known::Launch,
        Known::Operator,
        Known::Sync,
        Known::Call,
        Known::ExternalId,
        Known::StreamSync,
        Known::ContextSync,
        Known::EventSync,
        Known::StreamWaitEvent,
    ];

    pub(super) fn text(self) -> &'static str {
        match self {
            Known::Flow => "flow",
            Known::Launch => "launch",
            Known::Operator => "operator",
            Known::Sync => "sync",
            Known::Call => "call",
            Known::ExternalId => "External id",
            Known::StreamSync => "Stream Sync",
            Known::ContextSync => "Context Sync",
            Known::EventSync => "Event Sync",
            Known::StreamWaitEvent => "Stream Wait Event",
        }
    }
}

impl Label {
    pub(super) fn text(self, recording: &Recording) -> &str {
        match self {
            Label::None | Label::Null => "",
            Label::Word(word) => word.text(),
            Label::Key(key) => recording.text(key),
        }
    }
}

/// What a category stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Work on a device that a call launches.
    Kernel,
    Copy,
    /// The wait of a stream or a call for a device.
    Sync,
    /// A call into a runtime or driver.
    Call,
    /// An operator of the framework.
    Operator,
    /// A function of Python.
    Python,
    /// A range of the user, drawn on a stream.
    StreamRange,
    /// What recording cost the program.
    Overhead,
    Other,
}

impl Kind {
    /// Capital letters: PyTorch before 2021.
    fn of(category: &str) -> Kind {
        match category {
            "kernel" | "Kernel" | "mtia_ccp_events" => Kind::Kernel,
            "gpu_memcpy" | "gpu_memset" | "Memcpy" | "Memset" => Kind::Copy,
            "cuda_sync" => Kind::Sync,
            "cuda_runtime"
            | "cuda_driver"
            | "hip_runtime"
            | "xpu_runtime"
            | "xpu_driver"
            | "glow_runtime"
            | "mtia_runtime"
            | "privateuse1_runtime"
            | "privateuse1_driver"
            | "Runtime" => Kind::Call,
            "cpu_op" | "user_annotation" | "Operator" => Kind::Operator,
            // VizTracer: entries and exits of functions, in capital letters by newer versions.
            "python_function" | "fee" | "FEE" => Kind::Python,
            "gpu_user_annotation" => Kind::StreamRange,
            "overhead" => Kind::Overhead,
            _ => Kind::Other,
        }
    }

    fn role(self) -> &'static str {
        match self {
            Kind::Copy => "copy",
            Kind::Sync => "wait",
            Kind::Call | Kind::Overhead => "runtime",
            Kind::Kernel | Kind::Operator | Kind::Python | Kind::StreamRange | Kind::Other => "work",
        }
    }
}

/// The meaning of each category of a run, by its key.
pub(super) struct Kinds(Vec<Kind>);

impl Kinds {
    pub(super) fn of(words: &Words) -> Kinds {
        Kinds((0..words.len() as i32).map(|key| Kind::of(words.word(key))).collect())
    }

    fn get(&self, key: i32) -> Kind {
        self.0.get(key as usize).copied().unwrap_or(Kind::Other)
    }

    /// Whether a task of this category says that its lane is a stream.
    pub(super) fn is_on_stream(&self, key: i32) -> bool {
        matches!(self.get(key), Kind::Kernel | Kind::Copy | Kind::Sync | Kind::StreamRange)
    }

    /// The words of `tasks.role` for these categories, and for kernels and operators by their names. `has_own`: the recorder
    /// wrote of itself.
    pub(super) fn roles(&self, names: &Words, has_own: bool, builder: &mut RunBuilder) -> Roles {
        let mut word = |role: &str| builder.word(tables::Tasks::role, role);
        Roles {
            by_kind: self.0.iter().map(|kind| (word(kind.role()), *kind)).collect(),
            work: word("work"),
            communication: word("communication"),
            wait: word("wait"),
            profiler: has_own.then(|| word(PROFILER)),
            collectives: self.collectives(names),
            waits: self.waits(names),
        }
    }

    /// Which names are collectives', where there is anything that may be one.
    fn collectives(&self, names: &Words) -> Vec<Option<Kind>> {
        if !self.0.iter().any(|kind| matches!(kind, Kind::Kernel | Kind::Operator)) {
            return Vec::new();
        }
        (0..names.len() as i32).map(|key| collective(names.word(key))).collect()
    }

    /// Of which kind tasks of a name only wait, where there is anything that may.
    fn waits(&self, names: &Words) -> Vec<Option<Kind>> {
        let waiting = |name: &str| match () {
            () if waits_for_device(name) => Some(Kind::Call),
            () if waits_in_python(name) => Some(Kind::Python),
            // A stream of MTIA, for another one.
            () if name == "event_wait" => Some(Kind::Kernel),
            () => None,
        };
        match self.0.iter().any(|kind| matches!(kind, Kind::Call | Kind::Python | Kind::Kernel)) {
            true => (0..names.len() as i32).map(|key| waiting(names.word(key))).collect(),
            false => Vec::new(),
        }
    }

    /// Which lanes only carry data: something is copied or communicated there, or waits, and nothing else runs. The ranges of a
    /// user, which are drawn around both, do not count.
    pub(super) fn carriers<'r>(
        &self,
        recordings: impl Iterator<Item = &'r Recording>,
        shared: &Shared,
    ) -> Result<Vec<bool>, ImportError> {
        let collectives = self.collectives(&shared.names);
        let (mut carries, mut works) = (vec![false; shared.lanes.all.len()], vec![false; shared.lanes.all.len()]);
        for recording in recordings {
            for piece in &recording.pieces {
                let (lanes, kinds, names) = (piece.lanes.values()?, piece.kinds.values()?, piece.names.values()?);
                for ((&lane, &kind), &name) in lanes.iter().zip(kinds.iter()).zip(names.iter()) {
                    let kind = self.get(kind);
                    let is_carried = kind == Kind::Copy || collectives.get(name as usize) == Some(&Some(kind));
                    match kind {
                        Kind::StreamRange => {}
                        _ if is_carried || kind == Kind::Sync => carries[lane as usize] = true,
                        _ => works[lane as usize] = true,
                    }
                }
            }
        }
        Ok(carries.into_iter().zip(works).map(|(carries, works)| carries && !works).collect())
    }
}

/// The kind of tasks that are collectives when they are called so: NCCL's are kernels, gloo's run on threads of the processor.
fn collective(name: &str) -> Option<Kind> {
    if name.starts_with("gloo:") {
        return Some(Kind::Operator);
    }
    is_collective(name).then_some(Kind::Kernel)
}

/// Roles of tasks.
pub(super) struct Roles {
    /// The role of what `tq` wrote without one.
    work: i32,
    /// The role of a category, and its meaning, with which names of collectives change it.
    by_kind: Vec<(i32, Kind)>,
    communication: i32,
    wait: i32,
    profiler: Option<i32>,
    /// Of which kind tasks of a name are collectives.
    collectives: Vec<Option<Kind>>,
    /// Of which kind tasks of a name only wait.
    waits: Vec<Option<Kind>>,
}

impl Roles {
    /// The roles of tasks. `own` are the rows that the recorder wrote of itself.
    pub(super) fn cells(&self, kinds: &[i32], names: &[i32], own: impl ExactSizeIterator<Item = usize>) -> Cells<Word> {
        let role = |(kind, name): (&i32, &i32)| {
            let (role, kind) = self.by_kind[*kind as usize];
            match kind {
                _ if self.waits.get(*name as usize) == Some(&Some(kind)) => self.wait,
                _ if self.collectives.get(*name as usize) == Some(&Some(kind)) => self.communication,
                _ => role,
            }
        };
        let mut roles = kinds.iter().zip(names).map(role);
        if let Some(profiler) = self.profiler
            && own.len() > 0
        {
            let mut roles: Vec<i32> = roles.collect();
            own.for_each(|row| roles[row] = profiler);
            return roles.into();
        }
        let first = roles.next().unwrap_or(self.communication);
        if roles.clone().all(|role| role == first) {
            return first.into();
        }
        std::iter::once(first).chain(roles).collect()
    }

    /// The roles of tasks that `tq` wrote; `others` are those of rows that are no work.
    pub(super) fn told(&self, rows: usize, others: impl Iterator<Item = (u32, Option<i32>)>) -> Cells<Word> {
        let mut roles = vec![Some(self.work); rows];
        for (row, role) in others {
            roles[row as usize] = role;
        }
        if roles.iter().all(|role| *role == Some(self.work)) { self.work.into() } else { roles.into() }
    }
}

/// Appends Python's declared parents to those that are known, as (child, parent). Ids count within a process.
pub(super) fn python_parents(
    recording: &mut Recording,
    lanes: &Lanes,
    known: &mut Sorter<(u32, u32)>,
) -> Result<(), ImportError> {
    let mut sorter = Sorter::new(&recording.room);
    for piece in &recording.pieces {
        if piece.pythons.len() == 0 {
            continue;
        }
        let lane_of = piece.lanes.values()?;
        for python in piece.pythons.values()?.iter() {
            let (row, process) = (piece.first + python.row, lanes.all[lane_of[python.row as usize] as usize].parent);
            sorter.push(Named { process, id: python.id, is_child: false, row })?;
            if let Some(id) = python.parent {
                sorter.push(Named { process, id, is_child: true, row })?;
            }
        }
    }
    let mut parents = List::new(&recording.room);
    let (mut unknown, mut first_unknown) = (0, None::<(u32, i64)>);
    let mut are_before = true;
    let mut of_id = None;
    for named in sorter.sorted()? {
        let Named { process, id, is_child, row } = named?;
        if !is_child {
            // Of several with an id, the last one counts.
            of_id = Some(((process, id), row));
            continue;
        }
        match of_id.filter(|(key, _)| *key == (process, id)) {
            Some((_, parent)) => {
                are_before &= parent < row;
                parents.push((row, parent))?;
            }
            None => {
                unknown += 1;
                first_unknown = first_unknown.into_iter().chain([(row, id)]).min();
            }
        }
    }
    // A circle has a parent that does not stand before its child.
    let cyclic = if are_before { HashSet::new() } else { in_cycles_of(&parents, recording)? };
    for parent in parents.iter() {
        let (row, parent) = parent?;
        if !cyclic.contains(&row) {
            known.push((row, parent))?;
        }
    }
    let stats = &mut recording.stats;
    stats.note(findings::PYTHON_PARENT_UNKNOWN, unknown, || {
        let id = first_unknown.map_or(0, |(_, id)| id);
        format!("`Python parent id` {id} is nobody's; the parent by time counts")
    });
    stats.note(findings::PYTHON_PARENT_CYCLE, cyclic.len() as u64, || {
        "functions that are their own callers; the parents by time count".to_owned()
    });
    Ok(())
}

/// A function of Python by its own id, or by that of its parent: those by their own id come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    process: Option<i32>,
    id: i64,
    is_child: bool,
    row: u32,
}

record!(Named { process, id, is_child, row });

/// What [`in_cycles`] needs for a task, about: pairs, two maps, a set.
const CYCLE_BYTES: usize = 64;

fn in_cycles_of(parents: &List<(u32, u32)>, recording: &Recording) -> Result<HashSet<u32>, ImportError> {
    let memory = recording.room.hold();
    recording.room.resize(&memory, parents.len() * CYCLE_BYTES)?;
    Ok(in_cycles(&parents.iter().collect::<Result<Vec<_>, _>>()?))
}

/// The rows that are their own ancestors. `parents` are (row, parent), a row at most once.
pub(super) fn in_cycles(parents: &[(u32, u32)]) -> HashSet<u32> {
    let parent_of: HashMap<u32, u32> = parents.iter().copied().collect();
    // By row, the walk that came by first.
    let mut walked: HashMap<u32, u32> = HashMap::with_capacity(parents.len());
    let mut cyclic = HashSet::new();
    for &(start, _) in parents {
        let mut row = start;
        while let Some(&parent) = parent_of.get(&row)
            && !walked.contains_key(&row)
        {
            walked.insert(row, start);
            row = parent;
        }
        // A walk that meets itself has gone round; what leads there is no part of the circle.
        while walked.get(&row) == Some(&start) && cyclic.insert(row) {
            row = parent_of[&row];
        }
    }
    cyclic
}

/// A task that carries an id.
#[derive(Debug, Clone, Copy)]
struct Carrier {
    id: i64,
    row: u32,
    start: i64,
    lane: i32,
    kind: Kind,
}

/// The tasks that carry ids of a sort, in the order of the file.
fn carriers<'r>(
    recording: &'r Recording,
    kinds: &'r Kinds,
    ids: impl Fn(&Piece) -> &Column<(u32, i64)> + 'r,
) -> impl Iterator<Item = Result<Carrier, ImportError>> + 'r {
    recording.pieces.iter().flat_map(move |piece| {
        let of_piece = || -> Result<Vec<Carrier>, ImportError> {
            let ids = ids(piece).values()?;
            if ids.is_empty() {
                return Ok(Vec::new());
            }
            let (starts, lanes, of_kinds) = (piece.starts.values()?, piece.lanes.values()?, piece.kinds.values()?);
            let carrier = |&(row, id): &(u32, i64)| {
                let at = row as usize;
                Carrier {
                    id,
                    row: piece.first + row,
                    start: starts[at],
                    lane: lanes[at],
                    kind: kinds.get(of_kinds[at]),
                }
            };
            Ok(ids.iter().map(carrier).collect())
        };
        each(of_piece())
    })
}

/// What calls launched, joined by correlation.
pub(super) struct Launches {
    /// By task.
    launched: List<Launched>,
    /// The calls that have a correlation, as (correlation, start, task) in this order.
    calls: List<(i64, i64, u32)>,
    /// How many were launched by a call of several processes, and the first of them with its correlation.
    ambiguous: u64,
    first_ambiguous: Option<(u32, i64)>,
}

/// A task with a correlation: of each correlation the calls come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Correlated {
    id: i64,
    is_launched: bool,
    start: i64,
    row: u32,
    lane: i32,
    is_sync: bool,
}

record!(Correlated { id, is_launched, start, row, lane, is_sync });

/// What a call launched, or, for a `cuda_sync`, what waited.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Launched {
    row: u32,
    id: i64,
    lane: i32,
    is_sync: bool,
    call: u32,
    call_start: i64,
    call_lane: i32,
}

record!(Launched { row, id, lane, is_sync, call, call_start, call_lane });

/// The calls of a correlation that came last, and what they cost in memory when they are many.
struct Calls {
    id: i64,
    /// Start, task and lane.
    calls: Vec<(i64, u32, i32)>,
    memory: MemoryReservation,
}

/// So many calls of a correlation need no leave.
const FEW_CALLS: usize = 4096;

impl Calls {
    fn push(&mut self, call: &Correlated, room: &Room) -> Result<(), ImportError> {
        if self.id != call.id {
            (self.id, self.calls) = (call.id, Vec::new());
            self.memory.free();
        }
        if self.calls.len() == self.calls.capacity() && self.calls.len() >= FEW_CALLS {
            room.resize(&self.memory, 3 * self.calls.len() * size_of::<(i64, u32, i32)>())?;
        }
        self.calls.push((call.start, call.row, call.lane));
        Ok(())
    }

    /// The call of what began at a time: the latest that began by then, else the first.
    fn of(&self, id: i64, time: i64) -> Option<(i64, u32, i32)> {
        let calls = if self.id == id { self.calls.as_slice() } else { &[] };
        let begun = calls.partition_point(|(start, ..)| *start <= time);
        calls.get(begun.saturating_sub(1)).copied()
    }
}

impl Launches {
    pub(super) fn of(recording: &Recording, kinds: &Kinds, lanes: &Lanes) -> Result<Launches, ImportError> {
        let room = &recording.room;
        let mut correlated = Sorter::new(room);
        for carrier in carriers(recording, kinds, |piece| &piece.correlations) {
            let Carrier { id, row, start, lane, kind } = carrier?;
            let is_launched = matches!(kind, Kind::Kernel | Kind::Copy | Kind::Sync);
            if is_launched || kind == Kind::Call {
                correlated.push(Correlated { id, is_launched, start, row, lane, is_sync: kind == Kind::Sync })?;
            }
        }
        let mut launched = Sorter::new(room);
        let mut launches =
            Launches { launched: List::new(room), calls: List::new(room), ambiguous: 0, first_ambiguous: None };
        let mut calls = Calls { id: 0, calls: Vec::new(), memory: room.hold() };
        let process = |lane: i32| lanes.all[lane as usize].parent;
        let mut are_of_several = false;
        for next in correlated.sorted()? {
            let next = next?;
            let Correlated { id, is_launched, start, row, lane, is_sync } = next;
            if !is_launched {
                launches.calls.push((id, start, row))?;
                let before = calls.calls.last().filter(|_| calls.id == id);
                are_of_several = before.is_some_and(|(.., before)| are_of_several || process(*before) != process(lane));
                calls.push(&next, room)?;
            } else if let Some((call_start, call, call_lane)) = calls.of(id, start) {
                launched.push(Launched { row, id, lane, is_sync, call, call_start, call_lane })?;
                if are_of_several {
                    launches.ambiguous += 1;
                    launches.first_ambiguous = launches.first_ambiguous.into_iter().chain([(row, id)]).min();
                }
            }
        }
        for next in launched.sorted()? {
            launches.launched.push(next?)?;
        }
        Ok(launches)
    }

    pub(super) fn are_none(&self) -> bool {
        self.calls.is_empty()
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
        for launched in self.launched.iter() {
            ids.push(launched?.id);
        }
        ids.sort_unstable();
        ids.dedup();
        Ok((ids, memory))
    }

    /// When the last call of each of these correlations began.
    fn last_calls(&self, ids: &HashSet<i64>) -> Result<HashMap<i64, i64>, ImportError> {
        let mut last = HashMap::new();
        // Without questions nothing is read.
        for call in self.calls.iter().take(if ids.is_empty() { 0 } else { usize::MAX }) {
            let (id, start, _) = call?;
            if ids.contains(&id) {
                last.insert(id, start);
            }
        }
        Ok(last)
    }

    /// From each call to what it launched.
    pub(super) fn links(&self, links: &mut List<Link>) -> Result<(), ImportError> {
        for launched in self.launched.iter() {
            let Launched { row, call, is_sync, .. } = launched?;
            links.push(Link {
                source: call,
                target: row,
                kind: Label::Word(if is_sync { Known::Sync } else { Known::Launch }),
                name: if is_sync { Label::Word(Known::Call) } else { Label::None },
                args: Label::None,
            })?;
        }
        Ok(())
    }
}

/// A task with an `External id`: of each id the operators come first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct External {
    id: i64,
    is_work: bool,
    row: u32,
    number: u64,
    /// Of an operator, its process; of work, that of the call which launched it.
    process: Option<Option<i32>>,
}

record!(External { id, is_work, row, number, process });

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
    let mut sorter = Sorter::new(&recording.room);
    let (mut launched, mut call) = (launches.launched.iter(), None::<Launched>);
    for (number, carrier) in (0..).zip(carriers(recording, kinds, |piece| &piece.externals)) {
        let Carrier { id, row, lane, kind, .. } = carrier?;
        match kind {
            Kind::Operator => {
                sorter.push(External { id, is_work: false, row, number, process: Some(process(lane)) })?;
            }
            Kind::Kernel | Kind::Copy => {
                // Both stand in the order of tasks.
                while call.as_ref().is_none_or(|call| call.row < row)
                    && let Some(next) = launched.next()
                {
                    call = Some(next?);
                }
                let of_row = call.as_ref().filter(|call| call.row == row);
                let process = of_row.map(|call| process(call.call_lane));
                sorter.push(External { id, is_work: true, row, number, process })?;
            }
            _ => {}
        }
    }
    let mut found = Sorter::new(&recording.room);
    // The operators of an id: the first, and the first of each further process. Ids of a few old releases repeat; the first is the
    // outermost.
    let (mut of_id, mut operators) = (None, Vec::<(Option<Option<i32>>, u32)>::new());
    for external in sorter.sorted()? {
        let External { id, is_work, row, number, process } = external?;
        if of_id != Some(id) {
            of_id = Some(id);
            operators.clear();
        }
        let of_process = operators.iter().find(|(other, _)| *other == process).map(|(_, operator)| *operator);
        match of_process.or(operators.first().map(|(_, operator)| *operator)) {
            Some(operator) if is_work => found.push((row, number, operator))?,
            _ if is_work || of_process.is_some() => {}
            _ => operators.push((process, row)),
        }
    }
    for link in found.sorted()? {
        let (target, _, source) = link?;
        let (kind, name) = (Label::Word(Known::Operator), Label::Word(Known::ExternalId));
        links.push(Link { source, target, kind, name, args: Label::None })?;
    }
    Ok(())
}

/// From the last work that a `cuda_sync` waits for to the `cuda_sync`.
///
/// ```text
/// {"name":"Stream Sync","args":{"stream":7,"correlation":1512}}                     all work of the stream so far
/// {"name":"Context Sync","args":{"stream":-1,"correlation":1549}}                   all work of the device so far
/// {"name":"Event Sync","args":{"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":1533,…}}
/// {"name":"Stream Wait Event", the same}                                            the work before that cudaEventRecord
/// ```
pub(super) fn sync_links(
    recording: &Recording,
    launches: &Launches,
    shared: &Shared,
    links: &mut List<Link>,
) -> Result<(), ImportError> {
    if recording.pieces.iter().all(|piece| piece.syncs.len() == 0) {
        return Ok(());
    }
    let mut records = HashSet::new();
    for piece in &recording.pieces {
        for row in piece.syncs.values()?.iter() {
            records.extend(recorded(&piece.args.get(*row as usize)?));
        }
    }
    let records = launches.last_calls(&records)?;
    let work = Work::of(recording, launches)?;
    for piece in &recording.pieces {
        for row in piece.syncs.values()?.iter() {
            if let Some(link) = sync_link(piece.first + row, recording, &records, shared, &work)? {
                links.push(link)?;
            }
        }
    }
    Ok(())
}

/// The correlation of the `cudaEventRecord` that a wait is for.
fn recorded(args: &str) -> Option<i64> {
    let id = event::get(args, "wait_on_cuda_event_record_corr_id")?;
    event::integer(id.as_bytes()).filter(|id| *id > 0)
}

/// Work by stream: when it was launched, and its task, in the order of its launch.
struct Work<'r> {
    streams: HashMap<i32, Vec<(i64, u32)>>,
    recording: &'r Recording,
    _memory: MemoryReservation,
}

impl<'r> Work<'r> {
    fn of(recording: &'r Recording, launches: &Launches) -> Result<Work<'r>, ImportError> {
        let memory = recording.room.hold();
        // Vectors grow by doubling.
        recording.room.resize(&memory, 2 * launches.launched.len() * size_of::<(i64, u32)>())?;
        let mut streams: HashMap<i32, Vec<(i64, u32)>> = HashMap::new();
        for launched in launches.launched.iter() {
            let launched = launched?;
            if !launched.is_sync {
                streams.entry(launched.lane).or_default().push((launched.call_start, launched.row));
            }
        }
        for stream in streams.values_mut() {
            stream.sort_unstable();
        }
        Ok(Work { streams, recording, _memory: memory })
    }

    /// The last work of a stream that was launched by `time` and is done when `done` has passed.
    fn last(&self, stream: i32, time: i64, done: i64) -> Result<Option<u32>, ImportError> {
        let Some(stream) = self.streams.get(&stream) else { return Ok(None) };
        let launched = &stream[..stream.partition_point(|(launch, _)| *launch <= time)];
        for &(_, row) in launched.iter().rev() {
            let finish = self.recording.finish(row)?;
            if finish != UNFINISHED && finish <= done {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

fn sync_link(
    row: u32,
    recording: &Recording,
    records: &HashMap<i64, i64>,
    shared: &Shared,
    work: &Work<'_>,
) -> Result<Option<Link>, ImportError> {
    let args = recording.args(row)?;
    let number = |key: &str| event::get(&args, key).and_then(|value| event::integer(value.as_bytes()));
    let name = shared.names.word(recording.name(row)?);
    let (start, finish) = (recording.start(row)?, recording.finish(row)?);
    let done = if finish == UNFINISHED { i64::MAX } else { finish };
    let lane = recording.lane(row)?;
    let stream_of = |key: &str| {
        let number = number(key).filter(|id| *id >= 0)?;
        shared.lanes.sibling(lane, &number.to_string())
    };
    let source = match name {
        "Event Sync" | "Stream Wait Event" => {
            let record = recorded(&args).and_then(|record| records.get(&record));
            match record.zip(stream_of("wait_on_stream")) {
                // A stream waits without blocking anyone: its work may be done later.
                Some((&recorded_at, stream)) => {
                    let done = if name == "Event Sync" { done } else { i64::MAX };
                    work.last(stream, recorded_at, done)?
                }
                None => None,
            }
        }
        "Context Sync" => {
            let mut latest = None;
            for stream in shared.lanes.siblings(lane) {
                if let Some(row) = work.last(stream, start, done)? {
                    latest = latest.max(Some((recording.finish(row)?, row)));
                }
            }
            latest.map(|(_, row)| row)
        }
        _ => match stream_of("stream") {
            Some(stream) => work.last(stream, start, done)?,
            None => None,
        },
    };
    let name = match name {
        "Event Sync" => Known::EventSync,
        "Stream Wait Event" => Known::StreamWaitEvent,
        "Context Sync" => Known::ContextSync,
        _ => Known::StreamSync,
    };
    let (kind, name) = (Label::Word(Known::Sync), Label::Word(name));
    Ok(source.map(|source| Link { source, target: row, kind, name, args: Label::None }))
}

impl Lanes {
    /// The lane beside `lane` of that tid.
    fn sibling(&self, lane: i32, tid: &str) -> Option<i32> {
        let parent = self.all[lane as usize].parent?;
        self.find(&format!("{}/{tid}", self.all[parent as usize].location))
    }

    /// All lanes of the process of `lane`.
    fn siblings(&self, lane: i32) -> impl Iterator<Item = i32> {
        let parent = self.all[lane as usize].parent;
        (0..self.all.len() as i32).filter(move |&other| parent.is_some() && self.all[other as usize].parent == parent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_told_from_what_leads_to_them() {
        let cyclic = |parents: &[(u32, u32)]| {
            let mut rows: Vec<u32> = in_cycles(parents).into_iter().collect();
            rows.sort_unstable();
            rows
        };
        assert_eq!(cyclic(&[(1, 0), (2, 1), (3, 1)]), [0; 0]);
        assert_eq!(cyclic(&[(1, 1), (2, 1)]), [1]);
        assert_eq!(cyclic(&[(5, 1), (1, 2), (2, 3), (3, 1), (6, 5)]), [1, 2, 3]);
    }
}
