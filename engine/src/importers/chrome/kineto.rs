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

use hashbrown::{HashMap, HashSet};

use super::chunk::{Joins, UNFINISHED};
use super::event;
use super::file::{Recording, Shared};
use super::lanes::Lanes;
use crate::cells::Cells;
use crate::cells::kind::Word;
use crate::error::ImportError;
use crate::importers::blocking::{waits_for_device, waits_in_python};
use crate::importers::collectives::is_collective;
use crate::tables::{self, PROFILER};
use crate::trace::{RunBuilder, Words, findings};

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

/// A word about a link: its kind or name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Label {
    None,
    /// An empty name that `tq` wrote counts as no name.
    Null,
    Word(Known),
    /// Key of the file's texts.
    Key(i32),
}

/// Kinds and names of links that the format has: in one byte, since traces have millions of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
            "python_function" => Kind::Python,
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
            () => None,
        };
        match self.0.iter().any(|kind| matches!(kind, Kind::Call | Kind::Python)) {
            true => (0..names.len() as i32).map(|key| waiting(names.word(key))).collect(),
            false => Vec::new(),
        }
    }

    /// Which lanes only carry data: something is copied or communicated there, or waits, and nothing else runs. The ranges of a
    /// user, which are drawn around both, do not count.
    pub(super) fn carriers<'r>(&self, recordings: impl Iterator<Item = &'r Recording>, shared: &Shared) -> Vec<bool> {
        let collectives = self.collectives(&shared.names);
        let (mut carries, mut works) = (vec![false; shared.lanes.all.len()], vec![false; shared.lanes.all.len()]);
        for recording in recordings {
            for tasks in recording.pieces.iter().map(|piece| &piece.tasks) {
                for ((&lane, &kind), &name) in tasks.lanes.iter().zip(&tasks.kinds).zip(&tasks.names) {
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
        carries.into_iter().zip(works).map(|(carries, works)| carries && !works).collect()
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

/// Python's declared parents as (child, parent). Ids count within a process.
pub(super) fn python_parents(recording: &mut Recording, lanes: &Lanes) -> Vec<(u32, u32)> {
    let process = |lane: i32| lanes.all[lane as usize].parent;
    let pythons = || {
        recording.pieces.iter().flat_map(|piece| {
            piece.joins.pythons.iter().map(move |python| {
                let process = process(piece.tasks.lanes[python.row as usize]);
                (piece.first + python.row, process, python)
            })
        })
    };
    let by_id: HashMap<(Option<i32>, i64), u32> =
        pythons().map(|(row, process, python)| ((process, python.id), row)).collect();
    let mut parents = Vec::new();
    let mut unknown = 0;
    let mut first_unknown = None;
    for (row, process, python) in pythons() {
        let Some(id) = python.parent else { continue };
        match by_id.get(&(process, id)) {
            Some(&parent) => parents.push((row, parent)),
            None => {
                unknown += 1;
                first_unknown.get_or_insert(id);
            }
        }
    }
    let cyclic = in_cycles(&parents);
    parents.retain(|(row, _)| !cyclic.contains(row));
    let stats = &mut recording.stats;
    stats.note(findings::PYTHON_PARENT_UNKNOWN, unknown, || {
        format!("`Python parent id` {} is nobody's; the parent by time counts", first_unknown.unwrap_or_default())
    });
    stats.note(findings::PYTHON_PARENT_CYCLE, cyclic.len() as u64, || {
        "functions that are their own callers; the parents by time count".to_owned()
    });
    parents
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
    ids: impl Fn(&'r Joins) -> &'r [(u32, i64)] + 'r,
) -> impl Iterator<Item = Carrier> + 'r {
    recording.pieces.iter().flat_map(move |piece| {
        ids(&piece.joins).iter().map(move |&(row, id)| {
            let (tasks, at) = (&piece.tasks, row as usize);
            Carrier {
                id,
                row: piece.first + row,
                start: tasks.starts[at],
                lane: tasks.lanes[at],
                kind: kinds.get(tasks.kinds[at]),
            }
        })
    })
}

/// The calls that launch something, by their correlation.
pub(super) struct Launches {
    /// (correlation, start, task), in this order.
    calls: Vec<(i64, i64, u32)>,
}

impl Launches {
    pub(super) fn of(recording: &Recording, kinds: &Kinds) -> Launches {
        let correlated = carriers(recording, kinds, |joins| &joins.correlations);
        let mut calls: Vec<(i64, i64, u32)> = correlated
            .filter(|carrier| carrier.kind == Kind::Call)
            .map(|carrier| (carrier.id, carrier.start, carrier.row))
            .collect();
        calls.sort_unstable();
        Launches { calls }
    }

    pub(super) fn are_none(&self) -> bool {
        self.calls.is_empty()
    }

    /// The call of a correlation: the latest that began by `time`, else the first.
    fn call(&self, id: i64, time: i64) -> Option<u32> {
        let from = self.calls.partition_point(|call| call.0 < id);
        let calls = self.calls[from..].iter().take_while(|call| call.0 == id);
        let begun = calls.clone().take_while(|call| call.1 <= time).last();
        begun.or(calls.clone().next()).map(|call| call.2)
    }

    /// Counts what calls of several processes may have launched: where tools merged traces of several processes into one, their
    /// correlations collide, and the process of a stream is its device.
    pub(super) fn count_ambiguous(&self, recording: &mut Recording, kinds: &Kinds, lanes: &Lanes) {
        let process = |row: u32| lanes.all[recording.lane(row) as usize].parent;
        let pairs = self.calls.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        let ids: HashSet<i64> =
            pairs.filter(|pair| process(pair[0].2) != process(pair[1].2)).map(|pair| pair[0].0).collect();
        if ids.is_empty() {
            return;
        }
        let ambiguous = || self.launched(recording, kinds).filter(|(_, carrier)| ids.contains(&carrier.id));
        let count = ambiguous().count() as u64;
        let first = ambiguous().next().map_or(0, |(_, carrier)| carrier.id);
        recording
            .stats
            .note(findings::LAUNCH_AMBIGUOUS, count, || format!("calls of several processes have correlation {first}"));
    }

    /// What was launched, with the call that did.
    fn launched<'r>(&'r self, recording: &'r Recording, kinds: &'r Kinds) -> impl Iterator<Item = (u32, Carrier)> + 'r {
        let is_any = !self.calls.is_empty();
        carriers(recording, kinds, |joins| &joins.correlations)
            .filter(move |carrier| is_any && matches!(carrier.kind, Kind::Kernel | Kind::Copy | Kind::Sync))
            .filter_map(|carrier| Some((self.call(carrier.id, carrier.start)?, carrier)))
    }

    /// The correlations that link something.
    pub(super) fn known(&self, recording: &Recording, kinds: &Kinds) -> HashSet<i64> {
        self.launched(recording, kinds).map(|(_, carrier)| carrier.id).collect()
    }

    /// From each call to what it launched.
    pub(super) fn links(&self, recording: &Recording, kinds: &Kinds) -> Vec<Link> {
        let link = |(source, carrier): (u32, Carrier)| {
            let is_sync = carrier.kind == Kind::Sync;
            Link {
                source,
                target: carrier.row,
                kind: Label::Word(if is_sync { Known::Sync } else { Known::Launch }),
                name: if is_sync { Label::Word(Known::Call) } else { Label::None },
                args: Label::None,
            }
        };
        self.launched(recording, kinds).map(link).collect()
    }
}

/// From each operator to the work of devices that has its `External id`.
///
/// Ids count within a process: where several have operators of an id, the call that launched the work says whose it is.
pub(super) fn operator_links(recording: &Recording, kinds: &Kinds, launches: &Launches, lanes: &Lanes) -> Vec<Link> {
    let externals = || carriers(recording, kinds, |joins| &joins.externals);
    let process = |row: u32| lanes.all[recording.lane(row) as usize].parent;
    let mut operators: HashMap<i64, u32> = HashMap::new();
    // Those of further processes, for ids that several have.
    let mut others: HashMap<(i64, Option<i32>), u32> = HashMap::new();
    for carrier in externals().filter(|carrier| carrier.kind == Kind::Operator) {
        // Ids of a few old releases repeat; the first is the outermost.
        let first = *operators.entry(carrier.id).or_insert(carrier.row);
        if process(first) != process(carrier.row) {
            others.entry((carrier.id, process(carrier.row))).or_insert(carrier.row);
        }
    }
    let launched: HashMap<u32, u32> = match others.is_empty() {
        true => HashMap::new(),
        false => launches.launched(recording, kinds).map(|(call, carrier)| (carrier.row, call)).collect(),
    };
    let work = externals().filter(|carrier| matches!(carrier.kind, Kind::Kernel | Kind::Copy));
    let link = |carrier: Carrier| {
        let first = *operators.get(&carrier.id)?;
        let of_launch = launched.get(&carrier.row).and_then(|call| others.get(&(carrier.id, process(*call))));
        let source = of_launch.copied().unwrap_or(first);
        Some(Link {
            source,
            target: carrier.row,
            kind: Label::Word(Known::Operator),
            name: Label::Word(Known::ExternalId),
            args: Label::None,
        })
    };
    work.filter_map(link).collect()
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
    kinds: &Kinds,
) -> Result<Vec<Link>, ImportError> {
    let syncs: Vec<u32> =
        recording.pieces.iter().flat_map(|piece| piece.joins.syncs.iter().map(|row| piece.first + row)).collect();
    if syncs.is_empty() {
        return Ok(Vec::new());
    }
    // Work by stream, in the order of its launch.
    let mut work: HashMap<i32, Vec<(i64, u32)>> = HashMap::new();
    for (call, carrier) in launches.launched(recording, kinds).filter(|(_, carrier)| carrier.kind != Kind::Sync) {
        work.entry(carrier.lane).or_default().push((recording.start(call), carrier.row));
    }
    for stream in work.values_mut() {
        stream.sort_unstable();
    }
    // The last work of a stream that was launched by `time` and is done when `done` has passed.
    let is_done = |row: u32, by: i64| {
        let finish = recording.finish(row);
        finish != UNFINISHED && finish <= by
    };
    let last = |stream: i32, time: i64, done: i64| {
        let stream = work.get(&stream)?;
        let launched = &stream[..stream.partition_point(|(launch, _)| *launch <= time)];
        launched.iter().rev().find(|(_, row)| is_done(*row, done)).map(|(_, row)| *row)
    };
    let link = |row: u32, args: &str| {
        let number = |key: &str| event::get(args, key).and_then(|value| event::integer(value.as_bytes()));
        let name = shared.names.word(recording.name(row));
        let (start, finish) = (recording.start(row), recording.finish(row));
        let done = if finish == UNFINISHED { i64::MAX } else { finish };
        let lane = recording.lane(row);
        let stream = |number: i64| shared.lanes.sibling(lane, &number.to_string());
        let source = match name {
            "Event Sync" | "Stream Wait Event" => {
                let record = number("wait_on_cuda_event_record_corr_id").filter(|id| *id > 0)?;
                let record = launches.call(record, i64::MAX)?;
                let stream = stream(number("wait_on_stream").filter(|id| *id >= 0)?)?;
                // A stream waits without blocking anyone: its work may be done later.
                let done = if name == "Event Sync" { done } else { i64::MAX };
                last(stream, recording.start(record), done)
            }
            "Context Sync" => {
                let streams = shared.lanes.siblings(lane);
                streams.filter_map(|stream| last(stream, start, done)).max_by_key(|row| (recording.finish(*row), *row))
            }
            _ => last(stream(number("stream").filter(|id| *id >= 0)?)?, start, done),
        }?;
        let name = match name {
            "Event Sync" => Known::EventSync,
            "Stream Wait Event" => Known::StreamWaitEvent,
            "Context Sync" => Known::ContextSync,
            _ => Known::StreamSync,
        };
        Some(Link { source, target: row, kind: Label::Word(Known::Sync), name: Label::Word(name), args: Label::None })
    };
    let mut links = Vec::new();
    for row in syncs {
        links.extend(link(row, &recording.args(row)?));
    }
    Ok(links)
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
