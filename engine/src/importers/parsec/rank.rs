//! The trace of one rank: its events become tasks on lanes, counter values, instants, and the sides of messages.
//!
//! Ranks are read in parallel, so whatever needs no other rank happens here: pairing, nesting, arguments as JSON.

use datafusion::arrow::array::StringArray;
use datafusion::arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use hashbrown::HashSet;

use super::clock::Unit;
use super::file::{Entry, Event, File, Infos, Seen};
use super::pair::{self, Pairs, UNENDED};
use super::types::{Class, Type, decimal};
use crate::error::ImportError;
use crate::trace::{LaneSpans, NO_LANE, Source, Stats, findings, nest};

/// The finish of a task without end.
pub(super) const UNFINISHED: i64 = i64::MIN;
/// The class number of what is no task.
pub(super) const NO_CLASS: u32 = u32::MAX;

/// Keys and values, as the trace has them; a key may come twice.
pub(super) type Facts = Vec<(String, String)>;

/// What was recorded on a rank.
pub(super) struct Rank {
    pub(super) rank: i64,
    pub(super) world: Option<i64>,
    pub(super) program: String,
    /// Facts about the run as this rank tells them.
    pub(super) infos: Facts,
    /// The types of its events: names, and what they stand for.
    pub(super) names: Vec<String>,
    pub(super) classes: Vec<Class>,
    /// The local variables in the infos of each type, in their order.
    pub(super) locals: Vec<Vec<String>>,
    pub(super) lanes: Vec<Lane>,
    pub(super) readings: Vec<Reading>,
    pub(super) instants: Vec<Instant>,
    pub(super) transfers: Vec<Transfer>,
    pub(super) stats: Stats,
}

/// A stream and its rows of `tasks`, in order of start.
#[derive(Default)]
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) infos: Facts,
    pub(super) entries: Vec<u16>,
    pub(super) starts: Vec<i64>,
    pub(super) finishes: Vec<i64>,
    pub(super) ids: Vec<u64>,
    pub(super) taskpools: Vec<u32>,
    /// `tcid` of tasks, and of what the runtime does after them.
    pub(super) class_numbers: Vec<u32>,
    pub(super) args: Option<StringArray>,
    /// Depths and rows of the enclosing tasks, -1 without.
    pub(super) depths: Vec<i32>,
    pub(super) parents: Vec<i64>,
}

/// A counter at an instant.
pub(super) struct Reading {
    pub(super) lane: u32,
    pub(super) name: String,
    pub(super) time: i64,
    pub(super) value: f64,
    /// Bytes taken or given back, rather than a level.
    pub(super) is_memory: bool,
}

/// An event of the application without length.
pub(super) struct Instant {
    pub(super) lane: u32,
    pub(super) entry: u16,
    pub(super) is_unpaired: bool,
    pub(super) time: i64,
    pub(super) args: Option<String>,
}

/// One side of a message, or a control message.
pub(super) struct Transfer {
    pub(super) class: Class,
    pub(super) lane: u32,
    pub(super) row: u32,
    pub(super) key: MessageKey,
    pub(super) bytes: Option<i64>,
}

/// Sending and receiving have it in common. The task is the producer; `output` is which of its outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct MessageKey {
    pub(super) source: i64,
    pub(super) target: i64,
    pub(super) taskpool: u32,
    pub(super) class_number: u32,
    pub(super) id: u64,
    pub(super) output: i64,
}

impl Rank {
    /// Reads a file.
    ///
    /// # Errors
    /// A header that cannot be read, as [`File::open`].
    pub(super) fn read(source: &Source, bytes: &[u8], unit: Unit) -> Result<Rank, ImportError> {
        let (file, header) = File::open(source, bytes)?;
        let mut stats = Stats::default();
        let entries = file.dictionary(&header, &mut stats);
        let infos = file.infos(&header, &mut stats);
        let streams = file.streams(&header, &mut stats);
        let mut seen = Seen::default();
        let mut events: Vec<Vec<Event>> =
            streams.iter().map(|stream| file.events(stream, &entries, &mut seen, &mut stats)).collect();
        for (stream, events) in streams.iter().zip(&mut events) {
            unit.to_ticks(events.iter_mut().map(|event| &mut event.time), &mut stats);
            let back = events.windows(2).filter(|pair| pair[1].time < pair[0].time).count();
            stats.note(findings::CLOCK_STEPPED_BACK, back as u64, || {
                format!("in stream `{}`; all events are kept, PaRSEC's own reader leaves these out", stream.name)
            });
        }
        let pairs = pair::pair(&events);
        let streams = streams.into_iter().map(|stream| (stream.name, stream.infos)).collect();
        let recorded = Recorded {
            rank: i64::from(header.rank),
            world: header.world.map(i64::from),
            program: header.program,
            facts: infos,
            entries,
            streams,
            events,
            pairs,
            infos: file.event_infos(),
            stats,
        };
        Ok(recorded.into_rank())
    }
}

/// What was read of a rank, before it becomes rows.
pub(super) struct Recorded<'a> {
    pub(super) rank: i64,
    pub(super) world: Option<i64>,
    pub(super) program: String,
    pub(super) facts: Facts,
    pub(super) entries: Vec<Entry>,
    /// Names and facts, in the order of the streams' numbers.
    pub(super) streams: Vec<(String, Facts)>,
    /// The events of each stream. Lists behind those of the streams hold ends that stand on no stream of their own.
    pub(super) events: Vec<Vec<Event>>,
    pub(super) pairs: Pairs,
    pub(super) infos: Infos<'a>,
    pub(super) stats: Stats,
}

impl Recorded<'_> {
    /// Turns events into rows.
    pub(super) fn into_rank(self) -> Rank {
        let Recorded { streams, entries, mut stats, .. } = self;
        let types: Vec<Type> = entries.iter().map(Type::of).collect();
        let mut rows = Rows {
            infos: self.infos,
            streams: streams.len(),
            entries: &entries,
            types: &types,
            events: &self.events,
            pairs: &self.pairs,
            out: Out::default(),
        };
        let mut lanes = Vec::with_capacity(streams.len());
        for (index, stream) in streams.into_iter().enumerate() {
            let mut lane = rows.lane(index, &mut stats);
            (lane.name, lane.infos) = stream;
            lanes.push(lane);
        }
        let out = rows.out;
        number_unfinished(&mut lanes, &types);
        Rank {
            rank: self.rank,
            world: self.world,
            program: self.program,
            infos: self.facts,
            classes: types.iter().map(|event| event.class).collect(),
            locals: types.iter().map(Type::locals).collect(),
            names: entries.into_iter().map(|entry| entry.name).collect(),
            lanes,
            readings: out.readings,
            instants: out.instants,
            transfers: out.transfers,
            stats,
        }
    }
}

/// Only the end of a task tells its class number; a task that never ended has that of others of its type.
fn number_unfinished(lanes: &mut [Lane], types: &[Type]) {
    let mut known = vec![NO_CLASS; types.len()];
    for lane in lanes.iter() {
        for (entry, number) in lane.entries.iter().zip(&lane.class_numbers) {
            if *number != NO_CLASS {
                known[usize::from(*entry)] = *number;
            }
        }
    }
    for lane in lanes {
        for (entry, number) in lane.entries.iter().zip(&mut lane.class_numbers) {
            if *number == NO_CLASS && matches!(types[usize::from(*entry)].class, Class::Task { .. }) {
                *number = known[usize::from(*entry)];
            }
        }
    }
}

#[derive(Default)]
struct Out {
    readings: Vec<Reading>,
    instants: Vec<Instant>,
    transfers: Vec<Transfer>,
}

/// Turns events into rows.
struct Rows<'r, 'a> {
    infos: Infos<'a>,
    streams: usize,
    entries: &'r [Entry],
    types: &'r [Type],
    events: &'r [Vec<Event>],
    pairs: &'r Pairs,
    out: Out,
}

impl<'r, 'a> Rows<'r, 'a> {
    fn lane(&mut self, index: usize, stats: &mut Stats) -> Lane {
        let (mut lane, mut args) = (Lane::default(), Args::default());
        let room = self.events[index].len() / 2;
        lane.reserve(room);
        let shared = self.shared_readings(index);
        let (mut ends, mut counters) = (0, 0);
        for (at, event) in self.events[index].iter().enumerate() {
            let entry = event.entry();
            let class = self.types[entry].class;
            if class == Class::Papi {
                self.papi(index, event, &shared, stats);
                // An end that stands on no stream is met at its start only.
                let (list, place) = self.pairs.ends[index][at];
                if event.is_start() && (list as usize) >= self.streams && (list, place) != UNENDED {
                    self.papi(index, &self.events[list as usize][place as usize], &shared, stats);
                }
                counters += 1;
                continue;
            }
            if !event.is_start() {
                if self.pairs.used[index][at] {
                    ends += 1;
                } else {
                    stats.left_out(findings::UNMATCHED_END, 1, || self.shown(index, event));
                }
                continue;
            }
            let place = self.pairs.ends[index][at];
            let end = (place != UNENDED).then(|| &self.events[place.0 as usize][place.1 as usize]);
            if end.is_none() {
                stats.note(findings::UNMATCHED_START, 1, || self.shown(index, event));
            }
            match class {
                Class::Memory => {
                    self.memory(index, event, end.map(|end| (place.0, end)), stats);
                    counters += 1;
                }
                Class::User if end.is_none_or(|end| end.time == event.time) => {
                    let args = self.info(event, end).map(|info| self.object(entry, info));
                    self.out.instants.push(Instant {
                        lane: index as u32,
                        entry: entry as u16,
                        is_unpaired: end.is_none(),
                        time: event.time,
                        args,
                    });
                }
                _ => self.task(index, event, end, &mut lane, &mut args, stats),
            }
        }
        stats.left_out(findings::END_EVENTS, ends, || "the ends of tasks are in their rows".to_owned());
        stats.became_others(findings::COUNTER_EVENTS, counters, || "each is rows of counters".to_owned());
        stats.note(findings::ARGS_TOO_LONG, args.too_long, || "more than 2 GiB of arguments in one stream".to_owned());
        lane.args = args.finish();
        lane.nest(stats);
        lane
    }

    fn task(
        &mut self,
        index: usize,
        event: &Event,
        end: Option<&Event>,
        lane: &mut Lane,
        args: &mut Args,
        stats: &mut Stats,
    ) {
        let entry = event.entry();
        let of = &self.types[entry];
        let info = self.info(event, end);
        let big_endian = self.infos.big_endian;
        let mut class_number = NO_CLASS;
        if let (Some(info), Class::Task { .. } | Class::ReleaseDeps) = (info, of.class) {
            class_number = of.field("tcid").map_or(NO_CLASS, |field| field.integer(info, big_endian) as u32);
        }
        if of.class.is_message() {
            match info.and_then(|info| self.transfer(of, info)) {
                Some((key, bytes)) => self.out.transfers.push(Transfer {
                    class: of.class,
                    lane: index as u32,
                    row: lane.starts.len() as u32,
                    key,
                    bytes,
                }),
                None => stats.note(findings::MESSAGE_WITHOUT_ENDS, 1, || self.shown(index, event)),
            }
        }
        lane.entries.push(entry as u16);
        lane.starts.push(event.time);
        lane.finishes.push(end.map_or(UNFINISHED, |end| end.time));
        lane.ids.push(event.id);
        lane.taskpools.push(event.taskpool);
        lane.class_numbers.push(class_number);
        let has_ids = matches!(of.class, Class::Task { .. } | Class::ReleaseDeps);
        args.push(|json| {
            if !has_ids && info.is_none() {
                return false;
            }
            json.push(b'{');
            if has_ids {
                json.extend_from_slice(b"\"taskpool_id\":");
                decimal(u64::from(event.taskpool), json);
                json.extend_from_slice(b",\"tid\":");
                decimal(event.id, json);
            }
            if let Some(info) = info {
                of.members(info, big_endian, has_ids, json);
            }
            json.push(b'}');
            true
        });
    }

    /// Both ends may have an info; that of the end holds the final values.
    fn info(&self, event: &Event, end: Option<&Event>) -> Option<&'a [u8]> {
        let entry = &self.entries[event.entry()];
        end.and_then(|end| self.infos.of(end, entry)).or_else(|| self.infos.of(event, entry))
    }

    fn object(&self, entry: usize, info: &[u8]) -> String {
        let mut json = vec![b'{'];
        self.types[entry].members(info, self.infos.big_endian, false, &mut json);
        json.push(b'}');
        String::from_utf8(json).unwrap_or_default()
    }

    fn transfer(&self, of: &Type, info: &[u8]) -> Option<(MessageKey, Option<i64>)> {
        let value = |name: &str| of.field(name).map(|field| field.integer(info, self.infos.big_endian));
        let key = MessageKey {
            source: value("src")? as i64,
            target: value("dst")? as i64,
            taskpool: value("tpid")? as u32,
            class_number: value("tcid")? as u32,
            id: value("tid")? as u64,
            // Releases 3.0 know neither outputs nor sizes.
            output: value("dep").unwrap_or(-1) as i64,
        };
        Some((key, value("msg_size").map(|bytes| bytes as i64)))
    }

    /// Taken at the start, given back at the end, which two starts can share: each pair counts.
    fn memory(&mut self, index: usize, event: &Event, end: Option<(u32, &Event)>, stats: &mut Stats) {
        let of = &self.types[event.entry()];
        let info = self.infos.of(event, &self.entries[event.entry()]);
        let Some((size, info)) = of.field("size").zip(info) else {
            return stats.note(findings::COUNTER_WITHOUT_VALUE, 1, || self.shown(index, event));
        };
        let value = size.double(info, self.infos.big_endian);
        let name = &self.entries[event.entry()].name;
        let reading =
            |lane: u32, time: i64, value: f64| Reading { lane, name: name.clone(), time, value, is_memory: true };
        self.out.readings.push(reading(index as u32, event.time, value));
        if let Some((list, end)) = end {
            let stream = if (list as usize) < self.streams { list } else { index as u32 };
            self.out.readings.push(reading(stream, end.time, -value));
        }
    }

    /// The counters that several types of readings on a stream have in common.
    fn shared_readings(&self, index: usize) -> HashSet<&'r str> {
        let types = self.types;
        let is_reading = |entry: &usize| types[*entry].class == Class::Papi;
        if !(0..types.len()).any(|entry| is_reading(&entry)) {
            return HashSet::new();
        }
        let mut met: Vec<usize> = self.events[index].iter().map(Event::entry).filter(is_reading).collect();
        met.sort_unstable();
        met.dedup();
        let mut known = HashSet::new();
        let names = met.iter().flat_map(|entry| &types[*entry].fields).map(|field| field.name.as_str());
        names.filter(|name| !known.insert(*name)).collect()
    }

    /// A reading at each event, whether it starts or ends something. Where types have counters in common, each counts for
    /// itself, and its name tells them apart.
    fn papi(&mut self, index: usize, event: &Event, shared: &HashSet<&str>, stats: &mut Stats) {
        let of = &self.types[event.entry()];
        let Some(info) = self.infos.of(event, &self.entries[event.entry()]) else {
            return stats.note(findings::COUNTER_WITHOUT_VALUE, 1, || self.shown(index, event));
        };
        for field in &of.fields {
            let name = match shared.contains(field.name.as_str()) {
                true => format!("{}/{}", self.entries[event.entry()].name, field.name),
                false => field.name.clone(),
            };
            self.out.readings.push(Reading {
                lane: index as u32,
                name,
                time: event.time,
                value: field.double(info, self.infos.big_endian),
                is_memory: false,
            });
        }
    }

    fn shown(&self, stream: usize, event: &Event) -> String {
        let side = if event.is_start() { "start" } else { "end" };
        format!(
            "stream {stream}: {side} of `{}`, id {}, at {} ns",
            self.entries[event.entry()].name,
            event.id,
            event.time
        )
    }
}

impl Lane {
    /// A fact of the stream that is a number: `th_id`, `vp_id`.
    pub(super) fn number(&self, key: &str) -> Option<u32> {
        self.infos.iter().find(|(info, _)| info == key).and_then(|(_, value)| value.trim().parse().ok())
    }

    /// Whether it is the worker that a graph calls so.
    pub(super) fn is_thread(&self, thread: u32, virtual_process: u32) -> bool {
        self.number("th_id") == Some(thread) && self.number("vp_id") == Some(virtual_process)
    }

    fn reserve(&mut self, rows: usize) {
        self.entries.reserve(rows);
        self.starts.reserve(rows);
        self.finishes.reserve(rows);
        self.ids.reserve(rows);
        self.taskpools.reserve(rows);
        self.class_numbers.reserve(rows);
    }

    fn nest(&mut self, stats: &mut Stats) {
        // What never ended would enclose all that follows.
        let lanes: Vec<i32> =
            self.finishes.iter().map(|finish| if *finish == UNFINISHED { NO_LANE } else { 0 }).collect();
        let nesting = nest(LaneSpans { lanes: &lanes, starts: &self.starts, finishes: &self.finishes });
        stats.note(findings::OVERLAP, nesting.overlapping, || match nesting.example {
            Some((open, task)) => format!(
                "[{}, {}) and [{}, {}) ns overlap on one stream, where nothing nests then",
                self.starts[open], self.finishes[open], self.starts[task], self.finishes[task]
            ),
            None => String::new(),
        });
        (self.depths, self.parents) = (nesting.depths, nesting.parents);
    }
}

/// A column of JSON objects.
struct Args {
    text: Vec<u8>,
    ends: Vec<i32>,
    known: Vec<bool>,
    too_long: u64,
}

impl Default for Args {
    fn default() -> Args {
        Args { text: Vec::new(), ends: vec![0], known: Vec::new(), too_long: 0 }
    }
}

impl Args {
    /// Appends what `write` writes, or NULL when it says `false`.
    fn push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let from = self.text.len();
        let mut known = write(&mut self.text);
        if i32::try_from(self.text.len()).is_err() {
            self.text.truncate(from);
            self.too_long += 1;
            known = false;
        }
        self.ends.push(self.text.len() as i32);
        self.known.push(known);
    }

    fn finish(self) -> Option<StringArray> {
        if !self.known.contains(&true) {
            return None;
        }
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.ends));
        StringArray::try_new(offsets, Buffer::from_vec(self.text), Some(NullBuffer::from(self.known))).ok()
    }
}
