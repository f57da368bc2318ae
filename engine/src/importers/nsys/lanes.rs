//! Where things ran: processes, their threads and NVTX domains, their devices and streams.
//!
//! ```text
//! 100                     process          100/GPU 0                   device
//! 100/201                 thread           100/GPU 0/stream 7          stream
//! 100/201/NVTX            ranges           100/GPU 0/stream 7 (sync)   waits of the stream: they overlap its work
//! 100/201/NVTX loader     of a domain: ranges of two domains need not nest
//!                                  100/GPU 0/context 2/stream 7   of a second context of the device
//! ```

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashMap;

use super::database::Reader;
use crate::cells::kind::Word;
use crate::error::ImportError;
use crate::tables::Place;
use crate::trace::{Location, Record, RunBuilder};

/// A process: hardware, virtual machine and pid, the upper bits of `globalTid` and `globalPid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Process(u64);

impl Record for Process {
    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        u64::read(from).map(Process)
    }
}

impl Process {
    /// Ids are 64 bits without a sign, and stored with one.
    pub(super) fn of(global: i64) -> Process {
        Process(global as u64 >> 24)
    }

    fn pid(self) -> u64 {
        self.0 & 0xff_ffff
    }
}

fn tid(global: i64) -> u64 {
    global as u64 & 0xff_ffff
}

/// A stream: what of it is not known is `None`. Its number counts within its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Stream {
    pub(super) process: Option<Process>,
    pub(super) device: Option<i64>,
    pub(super) context: Option<i64>,
    pub(super) stream: Option<i64>,
    /// Whether it is the lane of the stream's synchronisations.
    pub(super) is_wait: bool,
}

#[derive(Debug)]
struct Lane {
    location: String,
    parent: Option<i32>,
    process: Option<i32>,
    kind: &'static str,
    role: &'static str,
    name: String,
}

/// All locations, in the order in which they are met.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    all: Vec<Lane>,
    by_location: HashMap<String, i32>,
    processes: BTreeMap<Process, i32>,
    threads: HashMap<i64, i32>,
    streams: HashMap<Stream, i32>,
    /// The context of a device that was met first; streams of others say theirs.
    contexts: HashMap<(Option<Process>, Option<i64>), i64>,
    thread_names: HashMap<i64, String>,
    process_names: HashMap<Process, String>,
    /// Where their bytes are added.
    bytes: Rc<Cell<usize>>,
}

/// What the name of a thread or process costs.
const NAME_BYTES: usize = 128;
/// What a location costs beside its names, with its row.
const LANE_BYTES: usize = 320;

impl Lanes {
    /// Reads the names that processes and threads have.
    pub(super) fn of(reader: &mut Reader<'_>) -> Result<Lanes, ImportError> {
        let mut lanes = Lanes { bytes: reader.more_bytes(), ..Lanes::default() };
        let bytes = reader.more_bytes();
        let mut named: Vec<(i64, i64, i64)> = Vec::new();
        reader.describe("ThreadNames", &["globalTid", "priority", "nameId"], |row| {
            if let (Some(thread), Some(name)) = (row.integer(0), row.integer(2)) {
                bytes.set(bytes.get() + NAME_BYTES);
                named.push((thread, row.integer(1).unwrap_or(0), name));
            }
        })?;
        // The highest priority comes last and stays.
        named.sort_unstable();
        for (thread, _, name) in named {
            lanes.thread_names.insert(thread, reader.string(name));
        }
        reader.describe("PROCESSES", &["globalPid", "name"], |row| {
            if let (Some(process), Some(name)) = (row.integer(0), row.text(1)) {
                bytes.set(bytes.get() + NAME_BYTES + name.len());
                lanes.process_names.insert(Process::of(process), name);
            }
        })?;
        Ok(lanes)
    }

    /// The only process that was met, if there is only one.
    pub(super) fn only_process(&self) -> Option<Process> {
        (self.processes.len() == 1).then(|| self.processes.keys().next().copied()).flatten()
    }

    pub(super) fn thread(&mut self, global_tid: i64) -> i32 {
        if let Some(lane) = self.threads.get(&global_tid) {
            return *lane;
        }
        let process = self.process(Process::of(global_tid));
        let tid = tid(global_tid);
        let location = format!("{}/{tid}", self.location(process));
        let name = self.thread_names.get(&global_tid).cloned().unwrap_or_else(|| format!("thread {tid}"));
        let lane = self.lane(location, Some(process), "thread", name);
        self.threads.insert(global_tid, lane);
        lane
    }

    /// The ranges of a domain on a thread, which describe what the thread does and execute nothing; those that may overlap have a
    /// lane of their own.
    pub(super) fn ranges(&mut self, global_tid: i64, domain: &str, may_overlap: bool) -> i32 {
        let thread = self.thread(global_tid);
        let mut name = "NVTX".to_owned();
        for word in [domain, if may_overlap { "(start/end)" } else { "" }].into_iter().filter(|word| !word.is_empty()) {
            name.push(' ');
            name.push_str(word);
        }
        let location = format!("{}/{name}", self.location(thread));
        self.lane(location, Some(thread), "async", name)
    }

    /// A stream of a device, or the lane of its synchronisations.
    pub(super) fn stream(&mut self, of: Stream) -> i32 {
        if let Some(lane) = self.streams.get(&of) {
            return *lane;
        }
        let Stream { process, device, context, stream, is_wait } = of;
        let above = process.map(|process| self.process(process));
        let gpu = device.map_or_else(|| "GPU ?".to_owned(), |device| format!("GPU {device}"));
        let location = above.map_or_else(|| gpu.clone(), |above| format!("{}/{gpu}", self.location(above)));
        let above = self.lane(location, above, "device", gpu);
        let name = match (stream, is_wait) {
            (None, true) => "(sync)".to_owned(),
            (None, false) => "stream ?".to_owned(),
            (Some(stream), true) => format!("stream {stream} (sync)"),
            (Some(stream), false) => format!("stream {stream}"),
        };
        let other = context.filter(|context| self.contexts.entry((process, device)).or_insert(*context) != context);
        let name = other.map_or_else(|| name.clone(), |context| format!("context {context}/{name}"));
        let location = format!("{}/{name}", self.location(above));
        let lane = self.lane(location, Some(above), "stream", name);
        self.streams.insert(of, lane);
        lane
    }

    /// Streams on which only collectives, copies and waits were met run nothing: they transfer. `met` has of each lane whether there
    /// were tasks, and whether one was work.
    pub(super) fn tell_carriers(&mut self, met: Vec<(bool, bool)>) {
        for (lane, (there, works)) in self.all.iter_mut().zip(met) {
            if lane.kind == "stream" && there && !works {
                lane.role = "communication";
            }
        }
    }

    /// The names of all lanes as keys of a column of locations.
    pub(super) fn keys(&self, column: Place<Word>, builder: &mut RunBuilder) -> Result<Vec<i32>, ImportError> {
        let keys = self.all.iter().map(|lane| builder.word(column, &lane.location)).collect();
        builder.charge_words()?;
        Ok(keys)
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let texts = self.all.iter().map(|lane| 2 * lane.location.capacity() + lane.name.capacity()).sum::<usize>();
        let named = self.thread_names.values().chain(self.process_names.values()).map(String::capacity);
        self.all.capacity() * size_of::<Lane>()
            + texts
            + named.sum::<usize>()
            + self.by_location.allocation_size()
            + self.threads.allocation_size()
            + self.streams.allocation_size()
            + self.thread_names.allocation_size()
            + self.process_names.allocation_size()
            + self.processes.len() * 2 * size_of::<(Process, i32)>()
    }

    pub(super) fn append(&self, builder: &mut RunBuilder) -> Result<(), ImportError> {
        self.all.iter().try_for_each(|lane| {
            builder.location(&Location {
                location: &lane.location,
                parent: lane.parent.map(|parent| self.location(parent)),
                kind: lane.kind,
                name: Some(&lane.name),
                process: lane.process.map(|process| self.location(process)),
                role: lane.role,
                clock: None,
                sort_index: None,
                args: None,
            })
        })
    }

    fn process(&mut self, process: Process) -> i32 {
        if let Some(lane) = self.processes.get(&process) {
            return *lane;
        }
        let pid = process.pid();
        let mut location = pid.to_string();
        // The same pid on another machine of the session.
        if self.by_location.contains_key(&location) {
            location = format!("{pid}@{:x}", process.0 >> 24);
        }
        let name = self.process_names.get(&process).cloned().unwrap_or_else(|| format!("pid {pid}"));
        let lane = self.lane(location, None, "process", name);
        self.processes.insert(process, lane);
        lane
    }

    fn lane(&mut self, location: String, parent: Option<i32>, kind: &'static str, name: String) -> i32 {
        if let Some(lane) = self.by_location.get(&location) {
            return *lane;
        }
        let lane = self.all.len() as i32;
        let process = match parent {
            Some(parent) => self.all[parent as usize].process,
            None => (kind == "process").then_some(lane),
        };
        self.bytes.set(self.bytes.get() + LANE_BYTES + 3 * location.len() + name.len());
        self.by_location.insert(location.clone(), lane);
        self.all.push(Lane { location, parent, process, kind, role: "compute", name });
        lane
    }

    fn location(&self, lane: i32) -> &str {
        &self.all[lane as usize].location
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_beyond_the_sign_keep_their_parts() {
        // Hardware 0x81, pid 100, tid 201.
        let thread = 0x8100_0000_6400_00c9_u64 as i64;
        assert!(thread < 0);
        assert_eq!((Process::of(thread).pid(), tid(thread)), (100, 201));
        let mut lanes = Lanes::default();
        let lane = lanes.thread(thread);
        assert_eq!(lanes.location(lane), "100/201");
        let domain = lanes.ranges(thread, "libs/cudf", false);
        assert_eq!(
            (lanes.location(domain), lanes.all[domain as usize].name.as_str()),
            ("100/201/NVTX libs/cudf", "NVTX libs/cudf")
        );
        let stream = |context, stream| Stream {
            process: Some(Process::of(thread)),
            device: Some(0),
            context: Some(context),
            stream: Some(stream),
            is_wait: false,
        };
        let streams = [stream(1, 7), stream(2, 7), stream(1, 8), stream(2, 7)].map(|stream| lanes.stream(stream));
        assert_eq!(
            streams.map(|lane| lanes.location(lane)),
            [
                "100/GPU 0/stream 7",
                "100/GPU 0/context 2/stream 7",
                "100/GPU 0/stream 8",
                "100/GPU 0/context 2/stream 7"
            ]
        );
        // The same pid under hardware 0x02: it is told by its machine, the upper 16 bits in hexadecimal.
        let elsewhere = lanes.thread(0x0200_0000_6400_00c9);
        assert_eq!(lanes.location(elsewhere), "100@200/201");
    }
}
