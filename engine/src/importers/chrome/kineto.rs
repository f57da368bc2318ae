//! What PyTorch's Kineto records: what its categories stand for, the links between tasks, and the call tree of Python.
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
//! joined within a file ([`super::launches`], [`super::syncs`]). One call may launch many kernels (graphs); a call may be missing
//! where a tool cut the trace. `ac2g` flows also sit on calls that launched nothing: launches are built from `correlation` alone.

use hashbrown::{HashMap, HashSet};

use super::file::{Recording, Shared};
use super::lanes::Lanes;
use crate::cells::Cells;
use crate::cells::kind::Word;
use crate::error::ImportError;
use crate::importers::blocking::{waits_for_device, waits_in_python};
use crate::importers::collectives::is_collective;
use crate::tables::{self, PROFILER};
use crate::trace::{List, Record, RunBuilder, Sorter, Words, findings, record};

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
pub(super) enum Kind {
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

    pub(super) fn get(&self, key: i32) -> Kind {
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
