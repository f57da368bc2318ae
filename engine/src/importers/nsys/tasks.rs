//! Tasks: the rows of every table that has a start and an end.

use std::cell::Cell;
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::rc::Rc;

use datafusion::arrow::array::{Int64Array, StringArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::error::ArrowError;
use datafusion::execution::memory_pool::MemoryReservation;
use rusqlite::types::ValueRef;
use serde_json::Value;

use super::calls::{Call, Calls, process as process_of};
use super::database::{Cells as Row, Reader};
use super::lanes::{Lanes, Process, Stream};
use crate::error::ImportError;
use crate::importers::blocking::{waits_for_device, waits_in_system};
use crate::importers::collectives::is_collective;
use crate::tables;
use crate::time::REACH;
use crate::trace::{
    Kept, LaneSpans, NestingOnDisk, Overlap, ROWS_PER_BATCH, Room, RunBuilder, Sorted, Sorter, Standing, Words,
    findings, nest, record,
};

/// The finish of a range that was never closed.
pub(super) const OPEN: i64 = i64::MAX;

/// What a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Runtime,
    Driver,
    Kernel,
    /// A kernel of a collective operation.
    Collective,
    Copy,
    Set,
    Sync,
    Graph,
    Nvtx,
    System,
    Cudnn,
    Cublas,
    Mpi,
    Overhead,
}

impl Kind {
    /// `tasks.kind` and `tasks.role`; calls that only wait have the role `wait` instead.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Kind::Runtime => ("cuda_runtime", "runtime"),
            Kind::Driver => ("cuda_driver", "runtime"),
            Kind::Kernel => ("kernel", "work"),
            Kind::Collective => ("kernel", "communication"),
            Kind::Copy => ("gpu_memcpy", "copy"),
            Kind::Set => ("gpu_memset", "copy"),
            Kind::Sync => ("cuda_sync", "wait"),
            Kind::Graph => ("cuda_graph", "work"),
            Kind::Nvtx => ("nvtx", "work"),
            Kind::System => ("os", "runtime"),
            Kind::Cudnn => ("cudnn", "runtime"),
            Kind::Cublas => ("cublas", "runtime"),
            Kind::Mpi => ("mpi", "communication"),
            Kind::Overhead => ("overhead", "runtime"),
        }
    }

    /// Whether a stream with one of these does more than transfer.
    fn is_work(self) -> bool {
        matches!(self, Kind::Kernel | Kind::Graph)
    }
}

const KINDS: [Kind; 14] = [
    Kind::Runtime,
    Kind::Driver,
    Kind::Kernel,
    Kind::Collective,
    Kind::Copy,
    Kind::Set,
    Kind::Sync,
    Kind::Graph,
    Kind::Nvtx,
    Kind::System,
    Kind::Cudnn,
    Kind::Cublas,
    Kind::Mpi,
    Kind::Overhead,
];

/// Tasks as columns, in the order of reading.
#[derive(Debug, Clone, Default)]
struct Block {
    starts: Vec<i64>,
    finishes: Vec<i64>,
    /// Places in [`KINDS`].
    kinds: Vec<u8>,
    lanes: Vec<i32>,
    names: Vec<i32>,
    args: Vec<u8>,
    /// Where those of each task end; without any a task has none.
    args_ends: Vec<i32>,
}

record!(Block { starts, finishes, kinds, lanes, names, args, args_ends });

impl Block {
    fn len(&self) -> usize {
        self.starts.len()
    }

    /// The args, which are taken out of it.
    fn args(&mut self) -> Result<StringArray, ArrowError> {
        let ends = std::mem::take(&mut self.args_ends);
        let starts = || std::iter::once(0).chain(ends.iter().copied());
        if !starts().is_sorted() {
            return Err(ArrowError::InvalidArgumentError("they end before they begin".to_owned()));
        }
        let are_there: NullBuffer = ends.iter().zip(starts()).map(|(end, start)| *end > start).collect();
        let offsets: Vec<i32> = starts().collect();
        StringArray::try_new(OffsetBuffer::new(offsets.into()), std::mem::take(&mut self.args).into(), Some(are_there))
    }
}

/// All tasks, and what is to be joined.
pub(super) struct Tasks {
    blocks: Vec<Kept<Block>>,
    /// The tasks that came last.
    open: Block,
    tasks: u32,
    /// The earliest start.
    pub(super) first: Option<i64>,
    /// Tasks that were never closed.
    unfinished: u64,
    /// Per lane: whether there are tasks, and whether one is work.
    met: Vec<(bool, bool)>,
    /// Ranges that hold what their thread launches.
    pub(super) ranges: Sorter<Range>,
    words: Words,
    /// What words take, and where that is added.
    words_charged: usize,
    more_bytes: Rc<Cell<usize>>,
    memory: MemoryReservation,
    pub(super) room: Room,
}

impl Tasks {
    pub(super) fn new(room: &Room, reader: &Reader<'_>) -> Tasks {
        Tasks {
            blocks: vec![],
            open: Block::default(),
            tasks: 0,
            first: None,
            unfinished: 0,
            met: vec![],
            ranges: Sorter::new(room),
            words: Words::default(),
            words_charged: 0,
            more_bytes: reader.more_bytes(),
            memory: room.hold(),
            room: room.clone(),
        }
    }

    /// Appends a task; returns its position.
    pub(super) fn push(
        &mut self,
        name: &str,
        kind: Kind,
        lane: i32,
        (start, finish): (i64, i64),
        args: Args,
    ) -> Result<u32, ImportError> {
        let block = &mut self.open;
        block.starts.push(start);
        block.finishes.push(finish);
        block.kinds.push(kind as u8);
        block.lanes.push(lane);
        block.names.push(self.words.intern(name));
        args.finish().into_iter().for_each(|args| block.args.extend(args.into_bytes()));
        block.args_ends.push(block.args.len() as i32);
        self.first = Some(self.first.map_or(start, |first| first.min(start)));
        self.unfinished += u64::from(finish == OPEN);
        let lane = lane as usize;
        self.met.resize(self.met.len().max(lane + 1), (false, false));
        self.met[lane] = (true, self.met[lane].1 || kind.is_work());
        let task = self.tasks;
        self.tasks += 1;
        // Offsets of texts are 32 bits wide.
        if self.open.len() == ROWS_PER_BATCH || self.open.args.len() > 1 << 30 {
            self.close()?;
        }
        Ok(task)
    }

    /// Puts the tasks that came last to the others, which go to disk while memory is short.
    fn close(&mut self) -> Result<(), ImportError> {
        let words = self.words.memory();
        self.more_bytes.set(self.more_bytes.get() + words.saturating_sub(self.words_charged));
        self.words_charged = words.max(self.words_charged);
        self.blocks.push(Kept::Held(std::mem::take(&mut self.open)));
        let held: usize = self.blocks.iter().map(Kept::memory).sum();
        let granted = self.room.resize(&self.memory, held);
        let disk = if granted.is_err() { self.room.disk() } else { self.room.short() };
        let Some(spill) = disk.cloned() else { return granted };
        self.blocks.iter_mut().try_for_each(|block| block.put_away(&spill))?;
        self.room.resize(&self.memory, 0)
    }

    /// Bytes of names.
    pub(super) fn words_memory(&self) -> usize {
        self.words.memory()
    }

    /// Of each lane: whether there are tasks, and whether one is work.
    pub(super) fn met(&mut self) -> Vec<(bool, bool)> {
        std::mem::take(&mut self.met)
    }

    fn nesting(&self) -> Result<Standing, ImportError> {
        if self.room.disk().is_some() {
            let mut nesting = NestingOnDisk::new(&self.room);
            for block in &self.blocks {
                let block = block.get()?;
                let times = block.starts.iter().zip(&block.finishes);
                block
                    .lanes
                    .iter()
                    .zip(times)
                    .try_for_each(|(lane, (start, finish))| nesting.push(*lane, *start, *finish))?;
            }
            return nesting.finish();
        }
        // The spans, and the order, parents and depths of nesting.
        const SPAN_BYTES: usize = 52;
        let (count, memory) = (self.tasks as usize, self.room.hold());
        self.room.resize(&memory, count * SPAN_BYTES)?;
        let (mut lanes, mut starts, mut finishes) =
            (Vec::with_capacity(count), Vec::with_capacity(count), Vec::with_capacity(count));
        for block in &self.blocks {
            let block = block.get()?;
            lanes.extend_from_slice(&block.lanes);
            starts.extend_from_slice(&block.starts);
            finishes.extend_from_slice(&block.finishes);
        }
        Ok(Standing::held(nest(LaneSpans { lanes: &lanes, starts: &starts, finishes: &finishes }), &lanes))
    }

    /// Hands the columns to the builder, times counted from `origin`; `held` is what words are charged to until then. The ranges are left.
    pub(super) fn append(
        mut self,
        origin: i64,
        lanes: &Lanes,
        held: &MemoryReservation,
        builder: &mut RunBuilder,
    ) -> Result<Sorter<Range>, ImportError> {
        self.close()?;
        let mut standing = self.nesting()?;
        if let Some(Overlap { tasks: (a, b), .. }) = standing.example {
            let example = || format!("tasks {a} and {b} overlap, so their lane has no depths");
            builder.stats.note(findings::OVERLAP, standing.overlapping, example);
        }
        builder.stats.note(findings::UNFINISHED, self.unfinished, || {
            "a range that was never closed; its finish is NULL".to_owned()
        });
        let locations = lanes.keys(tables::Tasks::location, builder)?;
        let waits = |does_wait: fn(&str) -> bool| -> Vec<bool> {
            (0..self.words.len() as i32).map(|key| does_wait(self.words.word(key))).collect()
        };
        let (for_device, in_system) = (waits(waits_for_device), waits(waits_in_system));
        let role = |kind: Kind, name: i32| match kind {
            Kind::Runtime | Kind::Driver if for_device[name as usize] => "wait",
            Kind::System if in_system[name as usize] => "wait",
            _ => kind.words().1,
        };
        held.shrink(self.words.memory().min(held.size()));
        *builder.words(tables::Tasks::name) = self.words;
        for block in self.blocks {
            // The builder asks for what it takes over.
            self.memory.shrink(block.memory().min(self.memory.size()));
            let mut block = block.fetched()?;
            let (parents, depths) = standing.next(block.len())?;
            let shifted =
                |times: &[i64]| -> Vec<i64> { times.iter().map(|time| time.saturating_sub(origin)).collect() };
            let closed: NullBuffer = block.finishes.iter().map(|finish| *finish != OPEN).collect();
            let parents: Int64Array = parents.iter().map(|parent| (*parent >= 0).then_some(*parent)).collect();
            let depths: Vec<Option<i64>> =
                depths.iter().map(|depth| (*depth >= 0).then_some(i64::from(*depth))).collect();
            let args = block.args().map_err(|error| builder.internal(format!("args of tasks: {error}")))?;
            let kinds = || block.kinds.iter().filter_map(|kind| KINDS.get(usize::from(*kind)));
            builder.append(tables::Tasks {
                parent: parents.clone().into(),
                stack_parent: parents.into(),
                kind: kinds().map(|kind| kind.words().0).collect(),
                role: kinds().zip(&block.names).map(|(kind, name)| role(*kind, *name)).collect(),
                location: block.lanes.iter().map(|lane| locations[*lane as usize]).collect(),
                start: shifted(&block.starts).into(),
                finish: Int64Array::new(shifted(&block.finishes).into(), Some(closed)).into(),
                depth: depths.into(),
                name: block.names.into(),
                args: args.into(),
                ..Default::default()
            })?;
        }
        Ok(self.ranges)
    }
}

/// Device work that was launched by a call. In the order of its fields work of one correlation id stands together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Launched {
    pub(super) correlation: i64,
    pub(super) task: u32,
    /// Whose it says that it is.
    pub(super) process: Option<Process>,
    pub(super) is_wait: bool,
}

record!(Launched { correlation, task, process, is_wait });

/// A range of a thread. In the order of its fields ranges of a thread come by time, outer before inner ones, as they nest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Range {
    pub(super) thread: i32,
    pub(super) start: i64,
    pub(super) finish: Reverse<i64>,
    pub(super) task: u32,
    /// Its lane: one per domain.
    pub(super) lane: i32,
    /// Whether it may overlap others of its lane without one enclosing the other.
    pub(super) may_overlap: bool,
}

record!(Range { thread, start, finish, task, lane, may_overlap });

/// `args`, written member by member.
#[derive(Debug, Default)]
pub(super) struct Args(String);

impl Args {
    pub(super) fn number(mut self, key: &str, value: Option<i64>) -> Args {
        if let Some(value) = value {
            self.key(key);
            // Writing into text does not fail.
            let _ = write!(self.0, "{value}");
        }
        self
    }

    pub(super) fn text(mut self, key: &str, value: &str) -> Args {
        self.key(key);
        let _ = write!(self.0, "{}", Value::from(value));
        self
    }

    fn key(&mut self, key: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        let _ = write!(self.0, "\"{key}\":");
    }

    fn finish(mut self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        self.0.push('}');
        Some(self.0)
    }
}

/// Start and end of a row; a row whose start is missing or invalid is counted.
pub(super) fn span(reader: &mut Reader<'_>, row: &Row<'_, '_>, table: &str) -> Option<(i64, i64)> {
    let (start, end) = (row.integer(0), row.integer(1));
    let stats = &mut reader.stats;
    if row.cell(0) == ValueRef::Null {
        stats.left_out(findings::NO_START, 1, || format!("a row of `{table}` has no start"));
        return None;
    }
    let Some(start) = start.filter(|start| REACH.contains(start)) else {
        stats.left_out(findings::BAD_TIME, 1, || format!("`{table}`: a start of {}", shown(row.cell(0))));
        return None;
    };
    // Versions that had no NULL wrote 0 or -1.
    match end.filter(|end| *end > 0 || *end >= start) {
        Some(end) if !REACH.contains(&end) => {
            stats.left_out(findings::BAD_TIME, 1, || format!("`{table}`: an end of {end}"));
            None
        }
        Some(end) if end < start => {
            stats.note(findings::NEGATIVE_DURATION, 1, || format!("`{table}`: from {start} to {end}, read as 0"));
            Some((start, start))
        }
        Some(end) => Some((start, end)),
        None => Some((start, OPEN)),
    }
}

/// The `globalTid` of a row; a row without one is placed on thread 0 of process 0, and is counted.
pub(super) fn thread(reader: &mut Reader<'_>, row: &Row<'_, '_>, column: usize, table: &str) -> i64 {
    row.integer(column).unwrap_or_else(|| {
        reader.stats.note(findings::NO_THREAD, 1, || format!("`{table}`: a globalTid of {}", shown(row.cell(column))));
        0
    })
}

/// A cell for messages.
fn shown(cell: ValueRef<'_>) -> String {
    match cell {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) => format!("'{}'", String::from_utf8_lossy(text).chars().take(40).collect::<String>()),
        ValueRef::Blob(bytes) => format!("{} bytes", bytes.len()),
    }
}

/// `cudaLaunchKernel_v7000` is the call cudaLaunchKernel of that version.
fn without_version(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((call, version)) if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) => call,
        _ => name,
    }
}

/// Calls into the CUDA runtime and driver.
pub(super) fn calls(
    reader: &mut Reader<'_>,
    lanes: &mut Lanes,
    tasks: &mut Tasks,
) -> Result<Sorter<Call>, ImportError> {
    let mut calls = Sorter::new(&tasks.room);
    for table in ["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"] {
        let columns = ["start", "end", "globalTid", "correlationId", "nameId", "returnValue", "eventClass"];
        reader.rows(table, &columns, |reader, row| {
            let Some(span) = span(reader, row, table) else { return Ok(()) };
            let name = row.integer(4).map(|id| reader.string(id)).unwrap_or_default();
            let is_driver = row.integer(6) == Some(1) || table.ends_with("DRIVER");
            let kind = if is_driver { Kind::Driver } else { Kind::Runtime };
            let (thread, correlation) = (thread(reader, row, 2, table), row.integer(3).filter(|id| *id > 0));
            let args = Args::default().number("correlation", correlation).number("returnValue", row.integer(5));
            let lane = lanes.thread(thread);
            let task = tasks.push(without_version(&name), kind, lane, span, args)?;
            match correlation {
                None => Ok(()),
                Some(correlation) => {
                    calls.push(Call { correlation, process: Process::of(thread), start: span.0, task, lane })
                }
            }
        })?;
    }
    Ok(calls)
}

/// A table of what devices do, and how its rows are named.
struct DeviceTable {
    table: &'static str,
    kind: Kind,
    /// Columns behind the common ones; whole numbers among them go into `args`.
    more: &'static [&'static str],
    name: fn(&mut Reader<'_>, &Row<'_, '_>) -> String,
}

/// Columns that all of these tables have.
const DEVICE_COLUMNS: [&str; 7] = ["start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"];

const DEVICE_TABLES: [DeviceTable; 5] = [
    DeviceTable {
        table: "CUPTI_ACTIVITY_KIND_KERNEL",
        kind: Kind::Kernel,
        more: &[
            "demangledName",
            "shortName",
            "mangledName",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "registersPerThread",
            "staticSharedMemory",
            "dynamicSharedMemory",
            "graphNodeId",
        ],
        name: |reader, row| {
            // Versions that had no NULL wrote 0 or -1; 0 may be an id, too.
            let is_given = |reader: &Reader<'_>, column: usize| match row.integer(column) {
                Some(-1) => false,
                Some(0) => reader.has_string(0),
                _ => true,
            };
            let word = [7, 8, 9]
                .into_iter()
                .find_map(|column| if is_given(reader, column) { reader.word(row, column) } else { None });
            word.unwrap_or_default()
        },
    },
    DeviceTable {
        table: "CUPTI_ACTIVITY_KIND_MEMCPY",
        kind: Kind::Copy,
        more: &["copyKind", "bytes", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId", "graphNodeId"],
        name: |_, row| {
            const KINDS: [&str; 13] = [
                "HtoD",
                "DtoH",
                "HtoA",
                "AtoH",
                "AtoA",
                "AtoD",
                "DtoA",
                "DtoD",
                "HtoH",
                "PtoP",
                "HtoD (unified)",
                "DtoH (unified)",
                "DtoD (unified)",
            ];
            let kind = row.integer(7).and_then(|kind| usize::try_from(kind).ok()?.checked_sub(1));
            format!("Memcpy {}", kind.and_then(|kind| KINDS.get(kind)).unwrap_or(&"?"))
        },
    },
    DeviceTable {
        table: "CUPTI_ACTIVITY_KIND_MEMSET",
        kind: Kind::Set,
        more: &["value", "bytes", "memKind", "graphNodeId"],
        name: |_, _| "Memset".to_owned(),
    },
    DeviceTable {
        table: "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
        kind: Kind::Sync,
        more: &["syncType", "eventId"],
        name: |_, row| {
            let name = match row.integer(7) {
                Some(1) => "Event Sync",
                Some(2) => "Stream Wait Event",
                Some(3) => "Stream Sync",
                Some(4) => "Context Sync",
                _ => "Sync",
            };
            name.to_owned()
        },
    },
    DeviceTable {
        table: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        kind: Kind::Graph,
        more: &["graphId", "graphExecId"],
        name: |_, row| row.integer(7).map_or_else(|| "graph".to_owned(), |graph| format!("graph {graph}")),
    },
];

/// Whose device work is that does not say it, in the order of the tables: that of its calls, if they are of one process. Old exports do not
/// say whose work it is; the call does.
fn processes_of_calls(
    reader: &Reader<'_>,
    calls: &Calls,
    room: &Room,
) -> Result<Sorted<(u64, Option<Process>)>, ImportError> {
    let (mut asked, mut number) = (Sorter::new(room), 0u64);
    for DeviceTable { table, .. } in &DEVICE_TABLES {
        reader.look(table, &DEVICE_COLUMNS, |row| {
            let Some(correlation) = correlation(row).filter(|_| process(row).is_none()) else { return Ok(()) };
            asked.push((correlation, number))?;
            number += 1;
            Ok(())
        })?;
    }
    let (mut groups, mut found) = (calls.groups(), Sorter::new(room));
    for one in asked.sorted()? {
        let (correlation, number) = one?;
        found.push((number, process_of(groups.of(correlation)?)))?;
    }
    found.sorted()
}

fn correlation(row: &Row<'_, '_>) -> Option<i64> {
    row.integer(5).filter(|id| *id > 0)
}

/// Kernels, copies, memsets, synchronisations and whole graphs. Answers what of it has a correlation id.
pub(super) fn device_work(
    reader: &mut Reader<'_>,
    calls: &Calls,
    lanes: &mut Lanes,
    tasks: &mut Tasks,
) -> Result<Sorter<Launched>, ImportError> {
    let mut launched = Sorter::new(&tasks.room);
    let mut of_calls = None;
    for DeviceTable { table, kind, more, name } in &DEVICE_TABLES {
        let columns: Vec<&str> = DEVICE_COLUMNS.iter().chain(*more).copied().collect();
        reader.rows(table, &columns, |reader, row| {
            let (said, correlation) = (process(row), correlation(row));
            let of_call = match (said, correlation) {
                (None, Some(_)) => {
                    let of_calls = match &mut of_calls {
                        Some(of_calls) => of_calls,
                        none => none.insert(processes_of_calls(reader, calls, &tasks.room)?),
                    };
                    of_calls.next().transpose()?.and_then(|(_, process)| process)
                }
                _ => None,
            };
            let Some(span) = span(reader, row, table) else { return Ok(()) };
            let name = name(reader, row);
            let kind = if *kind == Kind::Kernel && is_collective(&name) { Kind::Collective } else { *kind };
            let process = said.or(of_call).or_else(|| lanes.only_process());
            let [device, context, stream] = [2, 3, 4].map(|column| row.integer(column).filter(|id| *id >= 0));
            let lane = lanes.stream(Stream { process, device, context, stream, is_wait: kind == Kind::Sync });
            let args = [("device", device), ("context", context), ("stream", stream), ("correlation", correlation)]
                .into_iter()
                .chain(
                    more.iter()
                        .enumerate()
                        .filter(|(_, column)| !column.ends_with("Name"))
                        .map(|(index, column)| (*column, row.integer(DEVICE_COLUMNS.len() + index))),
                )
                .fold(Args::default(), |args, (key, value)| args.number(key, value));
            let short = row.integer(8).filter(|id| *id > 0 || reader.has_string(*id));
            let args = match short.filter(|_| *table == "CUPTI_ACTIVITY_KIND_KERNEL") {
                Some(id) => args.text("shortName", &reader.string(id)),
                None => args,
            };
            let task = tasks.push(&name, kind, lane, span, args)?;
            match correlation {
                None => Ok(()),
                Some(correlation) => {
                    launched.push(Launched { correlation, task, process: said, is_wait: kind == Kind::Sync })
                }
            }
        })?;
    }
    Ok(launched)
}

/// The process that a row of device work names; versions that had no NULL wrote 0 or -1.
fn process(row: &Row<'_, '_>) -> Option<Process> {
    row.integer(6).filter(|id| !matches!(id, 0 | -1)).map(Process::of)
}

/// What else threads do: calls of the operating system and of libraries.
pub(super) fn libraries(reader: &mut Reader<'_>, lanes: &mut Lanes, tasks: &mut Tasks) -> Result<(), ImportError> {
    let tables = [
        ("OSRT_API", Kind::System),
        ("CUDNN_EVENTS", Kind::Cudnn),
        ("CUBLAS_EVENTS", Kind::Cublas),
        ("MPI_P2P_EVENTS", Kind::Mpi),
        ("MPI_START_WAIT_EVENTS", Kind::Mpi),
        ("MPI_COLLECTIVES_EVENTS", Kind::Mpi),
        ("MPI_OTHER_EVENTS", Kind::Mpi),
        ("PROFILER_OVERHEAD", Kind::Overhead),
    ];
    const DETAILS: [&str; 7] = ["commHandle", "tag", "remoteRank", "rootRank", "size", "recvSize", "requestHandle"];
    const NAMES: [&str; 6] = ["start", "end", "globalTid", "nameId", "textId", "overheadType"];
    let columns: Vec<&str> = NAMES.into_iter().chain(DETAILS).collect();
    for (table, kind) in tables {
        reader.rows(table, &columns, |reader, row| {
            let Some(span) = span(reader, row, table) else { return Ok(()) };
            let name = row.integer(3).or_else(|| row.integer(4)).map(|id| reader.string(id));
            let name = name.unwrap_or_else(|| match row.integer(5) {
                Some(overhead) => format!("overhead {overhead}"),
                None => String::new(),
            });
            let lane = lanes.thread(thread(reader, row, 2, table));
            let details = DETAILS.iter().enumerate().map(|(index, key)| (*key, row.integer(NAMES.len() + index)));
            let args = details.fold(Args::default(), |args, (key, value)| args.number(key, value));
            tasks.push(&name, kind, lane, span, args).map(|_| ())
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_their_places() {
        assert!(KINDS.iter().enumerate().all(|(place, kind)| *kind as usize == place));
    }

    #[test]
    fn calls_lose_their_version_only() {
        assert_eq!(without_version("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(without_version("cuMemcpy_v2_ptds"), "cuMemcpy_v2_ptds");
        assert_eq!(without_version("my_v"), "my_v");
    }

    #[test]
    fn args_are_json() {
        let args = Args::default().number("stream", Some(7)).number("absent", None).text("name", "a \"b\"");
        assert_eq!(args.finish().as_deref(), Some(r#"{"stream":7,"name":"a \"b\""}"#));
        assert_eq!(Args::default().finish(), None);
    }
}
