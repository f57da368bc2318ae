//! Tasks: the rows of every table that has a start and an end.

use std::cmp::Reverse;
use std::fmt::Write as _;

use datafusion::arrow::array::{Int64Array, StringBuilder};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::execution::memory_pool::MemoryReservation;
use rusqlite::types::ValueRef;
use serde_json::Value;

use super::calls::Calls;
use super::database::{Cells as Row, Reader, reserve};
use super::lanes::{Lanes, Process, Stream};
use crate::error::ImportError;
use crate::importers::blocking::{waits_for_device, waits_in_system};
use crate::importers::collectives::is_collective;
use crate::tables;
use crate::time::REACH;
use crate::trace::{LaneSpans, RunBuilder, Words, findings, nest};

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

    /// Runs on a device, or waits for one there.
    pub(super) fn is_on_device(self) -> bool {
        matches!(self, Kind::Kernel | Kind::Collective | Kind::Copy | Kind::Set | Kind::Sync | Kind::Graph)
    }
}

/// All tasks as columns, in the order of reading.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    pub(super) starts: Vec<i64>,
    pub(super) finishes: Vec<i64>,
    pub(super) kinds: Vec<Kind>,
    pub(super) lanes: Vec<i32>,
    /// What launched it: (process, correlation id), for device work.
    pub(super) launched_by: Vec<(u32, Option<Process>, i64)>,
    /// Ranges that hold what their thread launches.
    pub(super) ranges: Vec<Range>,
    names: Vec<i32>,
    words: Words,
    args: StringBuilder,
}

impl Tasks {
    /// Appends a task; returns its position.
    pub(super) fn push(&mut self, name: &str, kind: Kind, lane: i32, (start, finish): (i64, i64), args: Args) -> u32 {
        self.starts.push(start);
        self.finishes.push(finish);
        self.kinds.push(kind);
        self.lanes.push(lane);
        self.names.push(self.words.intern(name));
        self.args.append_option(args.finish());
        (self.starts.len() - 1) as u32
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        (self.starts.capacity() + self.finishes.capacity()) * size_of::<i64>()
            + self.kinds.capacity() * size_of::<Kind>()
            + (self.lanes.capacity() + self.names.capacity()) * size_of::<i32>()
            + self.launched_by.capacity() * size_of::<(u32, Option<Process>, i64)>()
            + self.ranges.capacity() * size_of::<Range>()
            + self.words.memory()
            + self.args.values_slice().len()
            + size_of_val(self.args.offsets_slice())
    }

    /// Hands the columns to the builder, times counted from `origin`; `held` is what they are charged to until then.
    pub(super) fn append(
        mut self,
        origin: i64,
        lanes: &Lanes,
        held: &MemoryReservation,
        builder: &mut RunBuilder,
    ) -> Result<(), ImportError> {
        // The nesting, and parents and depths from it.
        const MADE_BYTES: usize = 64;
        let (own, made) = (self.memory(), self.starts.len() * MADE_BYTES);
        reserve(held, made, builder.source())?;
        (self.launched_by, self.ranges) = Default::default();
        let nesting = nest(LaneSpans { lanes: &self.lanes, starts: &self.starts, finishes: &self.finishes });
        if let Some((a, b)) = nesting.example {
            let example = || format!("tasks {a} and {b} overlap, so their lane has no depths");
            builder.stats.note(findings::OVERLAP, nesting.overlapping, example);
        }
        let open = self.finishes.iter().filter(|finish| **finish == OPEN).count() as u64;
        builder
            .stats
            .note(findings::UNFINISHED, open, || "a range that was never closed; its finish is NULL".to_owned());
        let closed: NullBuffer = self.finishes.iter().map(|finish| *finish != OPEN).collect();
        let shifted =
            |times: Vec<i64>| -> Vec<i64> { times.into_iter().map(|time| time.saturating_sub(origin)).collect() };
        let finishes = Int64Array::new(shifted(self.finishes).into(), Some(closed));
        let parents: Int64Array = nesting.parents.iter().map(|parent| (*parent >= 0).then_some(*parent)).collect();
        let depths: Vec<Option<i64>> =
            nesting.depths.iter().map(|depth| (*depth >= 0).then_some(i64::from(*depth))).collect();
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
        *builder.words(tables::Tasks::name) = self.words;
        // The builder asks for what it takes over.
        held.shrink((own + made).min(held.size()));
        builder.append(tables::Tasks {
            parent: parents.clone().into(),
            stack_parent: parents.into(),
            kind: self.kinds.iter().map(|kind| kind.words().0).collect(),
            role: self.kinds.iter().zip(&self.names).map(|(kind, name)| role(*kind, *name)).collect(),
            name: self.names.into(),
            location: self.lanes.iter().map(|lane| locations[*lane as usize]).collect(),
            start: shifted(self.starts).into(),
            finish: finishes.into(),
            depth: depths.into(),
            args: self.args.finish().into(),
            ..Default::default()
        })
    }
}

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
pub(super) fn calls(reader: &mut Reader<'_>, lanes: &mut Lanes, tasks: &mut Tasks) -> Result<Calls, ImportError> {
    let mut calls = Calls::default();
    for table in ["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_DRIVER"] {
        let columns = ["start", "end", "globalTid", "correlationId", "nameId", "returnValue", "eventClass"];
        reader.rows(table, &columns, |reader, row| {
            let Some(span) = span(reader, row, table) else { return };
            let name = row.integer(4).map(|id| reader.string(id)).unwrap_or_default();
            let is_driver = row.integer(6) == Some(1) || table.ends_with("DRIVER");
            let kind = if is_driver { Kind::Driver } else { Kind::Runtime };
            let (thread, correlation) = (thread(reader, row, 2, table), row.integer(3).filter(|id| *id > 0));
            let args = Args::default().number("correlation", correlation).number("returnValue", row.integer(5));
            let task = tasks.push(without_version(&name), kind, lanes.thread(thread), span, args);
            if let Some(correlation) = correlation {
                calls.push(Process::of(thread), correlation, span.0, task);
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

/// Kernels, copies, memsets, synchronisations and whole graphs.
pub(super) fn device_work(
    reader: &mut Reader<'_>,
    calls: &Calls,
    lanes: &mut Lanes,
    tasks: &mut Tasks,
) -> Result<(), ImportError> {
    for DeviceTable { table, kind, more, name } in &DEVICE_TABLES {
        let columns: Vec<&str> = DEVICE_COLUMNS.iter().chain(*more).copied().collect();
        reader.rows(table, &columns, |reader, row| {
            let Some(span) = span(reader, row, table) else { return };
            let name = name(reader, row);
            let kind = if *kind == Kind::Kernel && is_collective(&name) { Kind::Collective } else { *kind };
            let correlation = row.integer(5).filter(|id| *id > 0);
            // Old exports do not say whose work it is; the call does.
            let said = process(row);
            let process = said.or_else(|| calls.process(correlation?)).or_else(|| lanes.only_process());
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
            let task = tasks.push(&name, kind, lane, span, args);
            if let Some(correlation) = correlation {
                tasks.launched_by.push((task, said, correlation));
            }
        })?;
    }
    Ok(())
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
            let Some(span) = span(reader, row, table) else { return };
            let name = row.integer(3).or_else(|| row.integer(4)).map(|id| reader.string(id));
            let name = name.unwrap_or_else(|| match row.integer(5) {
                Some(overhead) => format!("overhead {overhead}"),
                None => String::new(),
            });
            let lane = lanes.thread(thread(reader, row, 2, table));
            let details = DETAILS.iter().enumerate().map(|(index, key)| (*key, row.integer(NAMES.len() + index)));
            let args = details.fold(Args::default(), |args, (key, value)| args.number(key, value));
            tasks.push(&name, kind, lane, span, args);
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
