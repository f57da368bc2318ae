//! The `.prof` file: a header, then blocks of one size that are linked into chains.
//!
//! ```text
//! header   own offset | "#PARSEC BINARY PROFILE \x0c" at 8 | byte order mark at 40 | block size B | program | dictionary |
//!          infos | rank | streams: count and offset of the first block of each chain
//! block    own offset i64 | next block i64, -1 = last | records i64 | type u8 | B - 25 bytes of packed records
//! ```
//! The magic is written last: all zeros mean that the run is still going, or was killed. Everything is in the writer's
//! byte order. Files written before September 2020 have the world size (the number of ranks) in front of the streams; no
//! field says so.
//!
//! No offset or length is trusted: a chain ends where it leaves the file or comes to a block for the second time, a record
//! where its block ends, and each such place is counted.

use crate::error::ImportError;
use crate::trace::{Finding, Source, Stats, findings};

pub(super) const MAGICS: [&[u8]; 2] = [b"#PARSEC BINARY PROFILE \x0c", b"#DAGUE BINARY PROFILE \x0c"];
const MAGIC_AT: usize = 8;
const MARK_AT: usize = 40;
const MARK: i64 = 0x0123_4567_89ab_cdef;
pub(super) const HEADER_BYTES: usize = 224;
/// Before September 2020.
const OLDER_HEADER_BYTES: usize = 232;
/// Values that PaRSEC writes in place of an offset that it could not write.
const NOT_WRITTEN: std::ops::Range<i64> = -16..0;
const BLOCK_HEAD: usize = 25;
const EVENT_BYTES: usize = 24;
const HAS_INFO: u16 = 1;

const EVENTS: u8 = 1;
const DICTIONARY: u8 = 2;
const STREAMS: u8 = 3;
const INFOS: u8 = 4;

/// How the first bytes of a file look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Whole,
    /// No magic, but the byte order mark: the run never finished the file.
    Unfinished,
}

/// Whether these are the first bytes of a `.prof` file.
pub(super) fn recognise(head: &[u8]) -> Option<Mark> {
    let at_magic = head.get(MAGIC_AT..)?;
    if MAGICS.iter().any(|magic| at_magic.starts_with(magic)) {
        return Some(Mark::Whole);
    }
    let mark = head.get(MARK_AT..MARK_AT + 8)?;
    let blank = head[..33].iter().all(|byte| *byte == 0);
    (blank && (mark == MARK.to_le_bytes() || mark == MARK.to_be_bytes())).then_some(Mark::Unfinished)
}

/// A whole file in memory.
pub(super) struct File<'a> {
    bytes: &'a [u8],
    big_endian: bool,
    block_bytes: usize,
}

/// What the header says.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) program: String,
    pub(super) rank: i32,
    /// Ranks of the job: only in files written before September 2020.
    pub(super) world: Option<i32>,
    dictionary: Chained,
    infos: Chained,
    streams: Chained,
}

/// So many records in the chain that begins there.
#[derive(Debug, Clone, Copy)]
struct Chained {
    count: i32,
    first: i64,
}

/// A type of events.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) convertor: String,
    pub(super) info_bytes: usize,
}

/// A stream of events.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) name: String,
    pub(super) infos: Vec<(String, String)>,
    events: Option<u64>,
    first: i64,
}

/// One record of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) time: i64,
    pub(super) id: u64,
    pub(super) taskpool: u32,
    pub(super) key: u16,
    has_info: bool,
    /// Where its info begins.
    info_at: usize,
}

impl Event {
    pub(super) fn entry(&self) -> usize {
        usize::from(self.key >> 1)
    }

    pub(super) fn is_start(&self) -> bool {
        self.key & 1 == 0
    }

    /// An event of a type, whose info begins there.
    #[cfg(feature = "hdf5")]
    pub(super) fn new(key: u16, taskpool: u32, id: u64, time: i64, info_at: Option<usize>) -> Event {
        Event { time, id, taskpool, key, has_info: info_at.is_some(), info_at: info_at.unwrap_or(0) }
    }

    #[cfg(test)]
    pub(super) fn without_info(key: u16, id: u64, time: i64) -> Event {
        Event { time, id, taskpool: 0, key, has_info: false, info_at: 0 }
    }

    /// Same type, id and taskpool; one starts what the other ends.
    pub(super) fn is_ended_by(&self, end: &Event) -> bool {
        self.key | 1 == end.key && self.id == end.id && self.taskpool == end.taskpool && self.time <= end.time
    }
}

/// The infos of events: structs in the writer's byte order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Infos<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) big_endian: bool,
}

impl<'a> Infos<'a> {
    /// The info of an event.
    pub(super) fn of(&self, event: &Event, entry: &Entry) -> Option<&'a [u8]> {
        if !event.has_info {
            return None;
        }
        self.bytes.get(event.info_at..event.info_at.checked_add(entry.info_bytes)?)
    }
}

impl<'a> File<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// What keeps the rest from being read, with the byte.
    pub(super) fn open(source: &Source, bytes: &'a [u8]) -> Result<(File<'a>, Header), ImportError> {
        let damaged = |at: usize, what: String| super::damaged(source, format!("byte {at}"), what);
        if bytes.len() < HEADER_BYTES {
            let what = format!("it ends after {} bytes, inside of the header of {HEADER_BYTES} bytes", bytes.len());
            return Err(damaged(bytes.len(), what));
        }
        match recognise(bytes) {
            Some(Mark::Whole) => {}
            Some(Mark::Unfinished) => {
                let what = "an unfinished trace: the run was killed, or is still alive, so the file has neither magic nor \
                            dictionary nor stream names; the task graph (profile_dot) of such a run can be opened";
                return Err(damaged(MAGIC_AT, what.to_owned()));
            }
            None => return Err(damaged(MAGIC_AT, "no `#PARSEC BINARY PROFILE` stands here".to_owned())),
        }
        let mark = &bytes[MARK_AT..MARK_AT + 8];
        let big_endian = mark == MARK.to_be_bytes();
        if !big_endian && mark != MARK.to_le_bytes() {
            return Err(damaged(MARK_AT, "the byte order mark is neither little nor big endian".to_owned()));
        }
        let mut file = File { bytes, big_endian, block_bytes: 0 };
        let block_bytes = file.i32(48);
        file.block_bytes = usize::try_from(block_bytes).unwrap_or(0);
        if file.block_bytes < 512 {
            return Err(damaged(48, format!("a block size of {block_bytes} bytes{}", file.order())));
        }
        let text = |from: usize, length: usize| text(&bytes[from..from + length]);
        let (world, threads_at, streams_at) = file.streams_layout();
        let header = Header {
            program: text(52, 128),
            rank: file.i32(208),
            world,
            dictionary: Chained { count: file.i32(180), first: file.i64(184) },
            infos: Chained { count: file.i32(192), first: file.i64(200) },
            streams: Chained { count: file.i32(threads_at), first: file.i64(streams_at) },
        };
        if file.block(header.dictionary.first).is_none() {
            let what = format!(
                "the dictionary would lie at byte {} of {}{}",
                header.dictionary.first,
                bytes.len(),
                file.order()
            );
            return Err(damaged(184, what));
        }
        if header.rank < 0 {
            return Err(damaged(208, format!("rank {}{}", header.rank, file.order())));
        }
        Ok((file, header))
    }

    fn order(&self) -> &'static str {
        if self.big_endian { ", read as big endian, which the byte order mark (byte 40) asks for" } else { "" }
    }

    /// Size of the world, offset of the number of streams, offset of their first block.
    ///
    /// Where neither layout leads to the streams, because there are none or the file is truncated before them, it is the older
    /// one if an offset stands where that has it: in the later one nothing does.
    fn streams_layout(&self) -> (Option<i32>, usize, usize) {
        let leads_to_streams = self.block(self.i64(216)).is_some_and(|block| block.kind == STREAMS);
        let is_offset = |first: i64| {
            let is_block = usize::try_from(first).is_ok_and(|at| at > 0 && at.is_multiple_of(self.block_bytes));
            is_block || NOT_WRITTEN.contains(&first)
        };
        let has_older = self.bytes.len() >= OLDER_HEADER_BYTES && !leads_to_streams && is_offset(self.i64(224));
        if has_older { (Some(self.i32(212)), 216, 224) } else { (None, 212, 216) }
    }

    /// The dictionary: the entry of event keys 2i and 2i + 1 stands at i.
    pub(super) fn dictionary(&self, header: &Header, stats: &mut Stats) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut chain = Chain::new(self, header.dictionary, DICTIONARY);
        while let Some(block) = chain.next(stats) {
            let mut rest = block.payload;
            for _ in 0..block.records {
                let Some(length) = rest.get(192..200).map(|lengths| self.i32_in(lengths, 0)) else {
                    chain.cut_short(&block, "dictionary", stats);
                    break;
                };
                let info_bytes = self.i32_in(rest, 196);
                let record = usize::try_from(length).ok().and_then(|length| rest.get(..203 + length));
                let (Some(record), Ok(info_bytes)) = (record, usize::try_from(info_bytes)) else {
                    chain.cut_short(&block, "dictionary", stats);
                    break;
                };
                entries.push(Entry {
                    name: text(&record[..64]),
                    convertor: text(&record[200..record.len() - 3]),
                    info_bytes,
                });
                rest = &rest[record.len()..];
            }
        }
        note_missing(findings::DICTIONARY_INCOMPLETE, header.dictionary.count, entries.len(), "types of events", stats);
        entries
    }

    /// Facts about the run; values may run over the ends of blocks.
    pub(super) fn infos(&self, header: &Header, stats: &mut Stats) -> Vec<(String, String)> {
        let mut infos: Vec<(String, String)> = Vec::new();
        let mut chain = Chain::new(self, header.infos, INFOS);
        let Some(mut block) = chain.next(stats) else {
            note_missing(findings::INFOS_MISSING, header.infos.count, 0, "facts about the run", stats);
            return infos;
        };
        let (mut at, mut started) = (0, 0);
        let wanted = usize::try_from(header.infos.count).unwrap_or(0);
        'infos: while infos.len() < wanted {
            if started == block.records {
                let Some(next) = chain.next(stats) else { break };
                (block, at, started) = (next, 0, 0);
            }
            let Some(lengths) = block.payload.get(at..at + 8) else { break };
            let (key_bytes, value_bytes) = (self.i32_in(lengths, 0), self.i32_in(lengths, 4));
            let (Ok(key_bytes), Ok(value_bytes)) = (usize::try_from(key_bytes), usize::try_from(value_bytes)) else {
                break;
            };
            let Some(key) = block.payload.get(at + 8..at.saturating_add(8).saturating_add(key_bytes)) else { break };
            let key = text(key);
            // The writer counts 3 bytes more than it uses, and the value begins in front of them.
            let mut from = at + 8 + key_bytes;
            at = from + 3;
            started += 1;
            let mut value = Vec::new();
            loop {
                let piece = (block.payload.len().saturating_sub(at)).min(value_bytes - value.len());
                let Some(bytes) = block.payload.get(from..from + piece) else { break 'infos };
                value.extend_from_slice(bytes);
                at += piece;
                if at < block.payload.len() || (value.len() == value_bytes && infos.len() + 1 == wanted) {
                    break;
                }
                let Some(next) = chain.next(stats) else { break 'infos };
                (block, at, from, started) = (next, 0, 0, 0);
                if value.len() == value_bytes {
                    break;
                }
            }
            if value.len() < value_bytes {
                break;
            }
            infos.push((key, String::from_utf8_lossy(&value).into_owned()));
        }
        note_missing(findings::INFOS_MISSING, header.infos.count, infos.len(), "facts about the run", stats);
        infos
    }

    /// The streams, in the order of the file, which is their number.
    ///
    /// A cut file has lost them or some of them, since they stand near its end. The chains of events are still there: their
    /// heads are the blocks that neither a block nor a stream points to.
    pub(super) fn streams(&self, header: &Header, stats: &mut Stats) -> Vec<Stream> {
        let mut streams = Vec::new();
        if header.streams.count <= 0 {
            return streams;
        }
        let mut chain = Chain::new(self, header.streams, STREAMS);
        while let Some(block) = chain.next(stats) {
            let mut at = 0;
            for _ in 0..block.records {
                let Some((stream, length)) = self.stream(block.payload.get(at..).unwrap_or_default()) else {
                    chain.cut_short(&block, "list of streams", stats);
                    break;
                };
                streams.push(stream);
                at += length;
            }
        }
        let missing = usize::try_from(header.streams.count).unwrap_or(0).saturating_sub(streams.len());
        if missing > 0 {
            let stray = self.stray_streams(&streams);
            stats.note(findings::STREAMS_LOST, missing as u64, || {
                format!(
                    "the list of streams, at byte {} of {}, has {} of {}: {} more chains of events were found, in the order of \
                     the file and without names",
                    header.streams.first,
                    self.bytes.len(),
                    streams.len(),
                    header.streams.count,
                    stray.len()
                )
            });
            streams.extend(stray);
        }
        streams
    }

    fn stream(&self, record: &[u8]) -> Option<(Stream, usize)> {
        let head = record.get(..156)?;
        let (events, first) = (self.i64_in(head, 8), self.i64_in(head, 144));
        let mut infos = Vec::new();
        let mut at = 156usize;
        for _ in 0..self.i32_in(head, 152).max(0) {
            let lengths = record.get(at..at + 8)?;
            let key_bytes = usize::try_from(self.i32_in(lengths, 0)).ok()?;
            let value_bytes = usize::try_from(self.i32_in(lengths, 4)).ok()?;
            let value_at = at.checked_add(8)?.checked_add(key_bytes)?;
            let key = text(record.get(at + 8..value_at)?);
            let value = text(record.get(value_at..value_at.checked_add(value_bytes)?)?);
            infos.push((key, value));
            at = value_at + value_bytes + 3;
        }
        Some((Stream { name: text(&head[16..144]), infos, events: u64::try_from(events).ok(), first }, at))
    }

    /// The chains of events that are of none of the streams.
    fn stray_streams(&self, known: &[Stream]) -> Vec<Stream> {
        let mut heads = Vec::new();
        let mut pointed_at: std::collections::HashSet<i64> = known.iter().map(|stream| stream.first).collect();
        for at in (self.block_bytes..self.bytes.len()).step_by(self.block_bytes) {
            let Some(block) = self.block(at as i64) else { continue };
            if block.kind == EVENTS && block.own == at as i64 && block.records > 0 {
                heads.push(at as i64);
                pointed_at.insert(block.next);
            }
        }
        heads.retain(|head| !pointed_at.contains(head));
        let stray = |first| Stream { name: String::new(), infos: Vec::new(), events: None, first };
        heads.into_iter().map(stray).collect()
    }

    /// The events of a stream, in the order of the file.
    pub(super) fn events(&self, stream: &Stream, entries: &[Entry], seen: &mut Seen, stats: &mut Stats) -> Vec<Event> {
        // Room for as many records as the stream claims, but for no more than the unread blocks can hold.
        let read: u32 = seen.0.iter().map(|bits| bits.count_ones()).sum();
        let unread = self.bytes.len().saturating_sub(read as usize * self.block_bytes);
        let possible = (unread / EVENT_BYTES) as u64;
        let mut events = Vec::with_capacity(stream.events.unwrap_or(0).min(possible) as usize);
        let mut chain = Chain::new(self, Chained { count: 1, first: stream.first }, EVENTS);
        chain.seen = std::mem::take(seen);
        let (mut unreadable, mut left_out) = (0u64, 0u64);
        while let Some(block) = chain.next(stats) {
            let mut rest = block.payload;
            for done in 0..block.records {
                let Some(record) = rest.first_chunk::<EVENT_BYTES>() else {
                    chain.cut_short(&block, "stream", stats);
                    unreadable += block.records - done;
                    break;
                };
                let (key, flags) = (self.u16_in(record, 0), self.u16_in(record, 2));
                let Some(entry) = entries.get(usize::from(key >> 1)) else {
                    let at = block.offset + BLOCK_HEAD + block.payload.len() - rest.len();
                    stats.note(findings::UNKNOWN_KEY, block.records - done, || {
                        format!(
                            "byte {at}: event key {key} in a dictionary of {} types; what follows in its block cannot be read",
                            entries.len()
                        )
                    });
                    unreadable += block.records - done;
                    break;
                };
                let has_info = flags & HAS_INFO != 0 && entry.info_bytes > 0;
                let length = EVENT_BYTES + if has_info { entry.info_bytes } else { 0 };
                if rest.len() < length {
                    chain.cut_short(&block, "stream", stats);
                    unreadable += block.records - done;
                    break;
                }
                let at = block.offset + BLOCK_HEAD + block.payload.len() - rest.len();
                let time = self.i64_in(record, 16);
                rest = &rest[length..];
                if time < 0 {
                    stats.left_out(findings::BAD_TIME, 1, || format!("byte {at}: time {}", time as u64));
                    left_out += 1;
                    continue;
                }
                events.push(Event {
                    time,
                    id: self.i64_in(record, 8) as u64,
                    taskpool: self.i32_in(record, 4) as u32,
                    key,
                    has_info,
                    info_at: at + EVENT_BYTES,
                });
            }
        }
        *seen = chain.seen;
        let read = events.len() as u64 + left_out;
        stats.records(read);
        if let Some(expected) = stream.events.filter(|expected| *expected != read + unreadable) {
            let difference = expected.abs_diff(read + unreadable);
            stats.note(findings::EVENTS_MISSING, difference, || {
                format!("stream `{}` says that it has {expected} events, {read} were read", stream.name)
            });
        }
        events
    }

    /// Where the infos of its events lie.
    pub(super) fn event_infos(&self) -> Infos<'a> {
        Infos { bytes: self.bytes, big_endian: self.big_endian }
    }

    /// The block at an offset, cut where the file ends.
    fn block(&self, offset: i64) -> Option<Block<'a>> {
        let at = usize::try_from(offset).ok().filter(|at| *at > 0 && at.is_multiple_of(self.block_bytes))?;
        let bytes = self.bytes.get(at..)?;
        let bytes = &bytes[..bytes.len().min(self.block_bytes)];
        let (head, payload) = bytes.split_at_checked(BLOCK_HEAD)?;
        Some(Block {
            offset: at,
            own: self.i64_in(head, 0),
            next: self.i64_in(head, 8),
            records: u64::try_from(self.i64_in(head, 16)).unwrap_or(0),
            kind: head[24],
            payload,
            is_whole: bytes.len() == self.block_bytes,
        })
    }

    // The callers have checked the lengths.
    #[inline]
    fn u16_in(&self, bytes: &[u8], at: usize) -> u16 {
        let number = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        if self.big_endian { number.swap_bytes() } else { number }
    }

    #[inline]
    fn i32_in(&self, bytes: &[u8], at: usize) -> i32 {
        let mut number = [0; 4];
        number.copy_from_slice(&bytes[at..at + 4]);
        if self.big_endian { i32::from_be_bytes(number) } else { i32::from_le_bytes(number) }
    }

    #[inline]
    fn i64_in(&self, bytes: &[u8], at: usize) -> i64 {
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[at..at + 8]);
        if self.big_endian { i64::from_be_bytes(number) } else { i64::from_le_bytes(number) }
    }

    fn i32(&self, at: usize) -> i32 {
        self.i32_in(self.bytes, at)
    }

    fn i64(&self, at: usize) -> i64 {
        self.i64_in(self.bytes, at)
    }
}

/// A block of the file.
struct Block<'a> {
    offset: usize,
    own: i64,
    next: i64,
    records: u64,
    kind: u8,
    payload: &'a [u8],
    is_whole: bool,
}

/// Blocks that were read, a bit for each. Streams share one: a block belongs to one of them, whatever damaged offsets say.
#[derive(Debug, Default)]
pub(super) struct Seen(Vec<u64>);

impl Seen {
    /// Whether the block is met for the first time.
    fn is_new(&mut self, number: usize) -> bool {
        if self.0.len() <= number / 64 {
            self.0.resize(number / 64 + 1, 0);
        }
        let bit = 1 << (number % 64);
        let is_new = self.0[number / 64] & bit == 0;
        self.0[number / 64] |= bit;
        is_new
    }
}

/// Walks from block to block, each at most once.
struct Chain<'f, 'a> {
    file: &'f File<'a>,
    kind: u8,
    next: i64,
    previous: usize,
    seen: Seen,
}

impl<'f, 'a> Chain<'f, 'a> {
    fn new(file: &'f File<'a>, chained: Chained, kind: u8) -> Chain<'f, 'a> {
        let next = if chained.count > 0 { chained.first } else { -1 };
        Chain { file, kind, next, previous: 0, seen: Seen::default() }
    }

    fn next(&mut self, stats: &mut Stats) -> Option<Block<'a>> {
        let next = self.next;
        self.next = -1;
        // -1 ends a chain; other small negative numbers stand for offsets that could not be written.
        if next == -1 {
            return None;
        }
        let from = self.previous;
        let Some(block) = self.file.block(next) else {
            stats.note(findings::CHAIN_BROKEN, 1, || {
                format!("byte {from}: the next block would lie at byte {next} of {}", self.file.bytes.len())
            });
            return None;
        };
        if !self.seen.is_new(block.offset / self.file.block_bytes) {
            stats.note(findings::CHAIN_CYCLE, 1, || {
                format!("byte {from}: the next block would be the one at byte {next}, which was read already")
            });
            return None;
        }
        if block.kind != self.kind {
            stats.note(findings::BLOCK_TYPE, 1, || {
                format!(
                    "byte {}: a block of type {} in a chain of type {}; read as the chain says",
                    block.offset + 24,
                    block.kind,
                    self.kind
                )
            });
        }
        (self.next, self.previous) = (block.next, block.offset);
        Some(block)
    }

    fn cut_short(&self, block: &Block<'_>, what: &str, stats: &mut Stats) {
        stats.note(findings::BLOCK_DAMAGED, 1, || {
            let why =
                if block.is_whole { "it does not hold the records that it counts" } else { "the file ends in it" };
            format!("byte {}: a block of the {what} is damaged: {why}", block.offset)
        });
    }
}

fn note_missing(finding: Finding, expected: i32, read: usize, what: &str, stats: &mut Stats) {
    let expected = u64::try_from(expected).unwrap_or(0);
    stats.note(finding, expected.saturating_sub(read as u64), || format!("{read} of {expected} {what} could be read"));
}

/// Text up to the first NUL.
fn text(bytes: &[u8]) -> String {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
