//! What a block of events holds: columns of tasks in the order of the file, and short lists of everything else.
//!
//! Nearly all events of most traces are complete (`X`): they go into columns that later move into the tables as they are.
//! Whatever needs another event to make sense (ends, flows, asynchronous parts) waits in a list until the whole file is
//! known, because the order of the file is not the order of time.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, StringArray, StringBuilder};
use datafusion::arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use super::event;
use crate::error::ImportError;
use crate::trace::{Record, Spill, Stats, Stretch, Words, record};

/// The finish of a task that has none (yet).
pub(super) const UNFINISHED: i64 = i64::MIN;
/// The time of what has none.
pub(super) const NO_TIME: i64 = i64::MIN;
/// A key that stands for no word.
pub(super) const NO_WORD: i32 = -1;
/// Separates the parts of composed keys; no number holds it, and in a string it would be escaped.
pub(super) const SEPARATOR: char = '\u{1}';

/// Tasks in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// In ns of the file's own clock.
    pub(super) starts: Vec<i64>,
    /// [`UNFINISHED`] for those without.
    pub(super) finishes: Vec<i64>,
    pub(super) names: Vec<i32>,
    pub(super) kinds: Vec<i32>,
    pub(super) lanes: Vec<i32>,
    /// Ids by row, where there are any.
    pub(super) ids: Vec<(u32, Box<str>)>,
    /// Roles by row that `tq` wrote: keys of texts, [`NO_WORD`] for none.
    pub(super) roles: Vec<(u32, i32)>,
    /// Rows of which `tq` says that they have no kind.
    pub(super) without_kind: Vec<u32>,
}

impl Tasks {
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Gives back what growing reserved.
    pub(super) fn shrink(&mut self) {
        self.starts.shrink_to_fit();
        self.finishes.shrink_to_fit();
        self.names.shrink_to_fit();
        self.kinds.shrink_to_fit();
        self.lanes.shrink_to_fit();
    }
}

/// Optional texts, row by row; no text is empty.
#[derive(Debug)]
pub(super) struct Texts(StringBuilder);

impl Texts {
    /// None yet, and room for some.
    pub(super) fn with_capacity(rows: usize, bytes: usize) -> Texts {
        Texts(StringBuilder::with_capacity(rows, bytes))
    }

    /// Appends valid JSON, or nothing; `false` when it does not fit.
    #[inline]
    pub(super) fn push(&mut self, json: &str) -> bool {
        // Offsets end at 2 GiB; a block is that long only when one of its events is.
        let fits = self.0.values_slice().len() + json.len() <= i32::MAX as usize;
        match fits && !json.is_empty() {
            true => self.0.append_value(event::compact(json)),
            false => self.0.append_null(),
        }
        fits
    }

    /// The texts, without what growing reserved.
    pub(super) fn finish(mut self) -> StringArray {
        let mut texts = self.0.finish();
        texts.shrink_to_fit();
        texts
    }
}

/// A column of optional texts, in memory or on disk.
#[derive(Debug)]
pub(super) enum TextColumn {
    /// In memory.
    Held(StringArray),
    /// On disk: the texts, and behind them where each ends.
    Away { spill: Arc<Spill>, stretch: Stretch, bytes: usize, rows: usize },
}

const END_BYTES: usize = size_of::<i32>();

impl TextColumn {
    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        match self {
            TextColumn::Held(texts) => texts.get_buffer_memory_size(),
            TextColumn::Away { .. } => 0,
        }
    }

    /// The text of a row; '' for none.
    ///
    /// # Errors
    /// It is on disk and cannot be read.
    pub(super) fn get(&self, row: usize) -> Result<Cow<'_, str>, ImportError> {
        let (spill, stretch, bytes) = match self {
            TextColumn::Held(texts) => return Ok(Cow::Borrowed(texts.value(row))),
            TextColumn::Away { spill, stretch, bytes, .. } => (spill, stretch, bytes),
        };
        let first = row.saturating_sub(1);
        let ends = spill.read(*stretch, (bytes + first * END_BYTES) as u64, (row + 1 - first) * END_BYTES)?;
        let ends: Vec<i32> = ends_of(&ends).collect();
        let from = if row == 0 { 0 } else { ends[0] };
        let length = (ends[ends.len() - 1] - from) as usize;
        let text = String::from_utf8(spill.read(*stretch, from as u64, length)?);
        text.map(Cow::Owned).map_err(|error| spill.damaged(error))
    }

    /// Moves the texts to disk.
    ///
    /// # Errors
    /// The disk is full, or cannot be written.
    pub(super) fn put_away(&mut self, spill: &Arc<Spill>) -> Result<(), ImportError> {
        let TextColumn::Held(texts) = self else { return Ok(()) };
        let ends: Vec<u8> = texts.value_offsets()[1..].iter().flat_map(|end| end.to_le_bytes()).collect();
        let (bytes, rows) = (texts.value_data().len(), texts.len());
        let stretch = spill.write(&[texts.value_data(), &ends])?;
        *self = TextColumn::Away { spill: Arc::clone(spill), stretch, bytes, rows };
        Ok(())
    }

    /// The texts in memory, wherever they were; NULL for none.
    ///
    /// # Errors
    /// They are on disk and cannot be read.
    pub(super) fn fetched(self) -> Result<StringArray, ImportError> {
        let (spill, stretch, bytes, rows) = match self {
            TextColumn::Held(texts) => return Ok(texts),
            TextColumn::Away { spill, stretch, bytes, rows } => (spill, stretch, bytes, rows),
        };
        let text = spill.read(stretch, 0, bytes)?;
        let ends = spill.read(stretch, bytes as u64, rows * END_BYTES)?;
        let offsets: Vec<i32> = std::iter::once(0).chain(ends_of(&ends)).collect();
        let known: NullBuffer = offsets.windows(2).map(|pair| pair[0] < pair[1]).collect();
        let known = Some(known).filter(|known| known.null_count() > 0);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        StringArray::try_new(offsets, Buffer::from_vec(text), known).map_err(|error| spill.damaged(error))
    }
}

fn ends_of(bytes: &[u8]) -> impl Iterator<Item = i32> {
    bytes.as_chunks().0.iter().map(|end| i32::from_le_bytes(*end))
}

/// `B` or `E`, in the order in which they are paired: that of threads, of time, and of the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    pub(super) lane: i32,
    pub(super) time: i64,
    pub(super) sequence: u64,
    pub(super) edge: Edge,
}

record!(Step { lane, time, sequence, edge });

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Edge {
    Begin(Begin),
    End(End),
}

/// `B`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Begin {
    pub(super) row: u32,
    /// Those of the task.
    pub(super) name: i32,
    pub(super) kind: i32,
    pub(super) thread_time: Option<i64>,
}

record!(Begin { row, name, kind, thread_time });

/// `E`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct End {
    /// The row of the task that comes next in the file.
    pub(super) next_row: u32,
    /// Keys of texts, or [`NO_WORD`].
    pub(super) name: i32,
    pub(super) category: i32,
    pub(super) thread_time: Option<i64>,
    pub(super) args: Option<Box<str>>,
}

record!(End { next_row, name, category, thread_time, args });

impl Record for Edge {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            Edge::Begin(begin) => (true.write(to), begin.write(to)),
            Edge::End(end) => (false.write(to), end.write(to)),
        };
    }

    fn read(from: &mut &[u8]) -> Option<Edge> {
        Some(match bool::read(from)? {
            true => Edge::Begin(Begin::read(from)?),
            false => Edge::End(End::read(from)?),
        })
    }

    fn elsewhere(&self) -> usize {
        match self {
            Edge::Begin(_) => 0,
            Edge::End(end) => end.elsewhere(),
        }
    }
}

/// `b`, `n`, `e`, and the old `S`, `T`, `p`, `F`, in the order in which they are paired: those of a key, by time and by their order in the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Async {
    /// Key of the text that says what belongs together.
    pub(super) key: i32,
    pub(super) time: i64,
    pub(super) sequence: u64,
    pub(super) phase: u8,
    /// Key of texts.
    pub(super) name: i32,
    pub(super) lane: i32,
    /// The task that `b` and `S` begin.
    pub(super) row: Option<u32>,
    pub(super) args: Option<Box<str>>,
}

record!(Async { key, time, sequence, phase, name, lane, row, args });

/// The id of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum FlowId {
    Number(i64),
    /// Key of texts.
    Text(i32),
}

impl Record for FlowId {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            FlowId::Number(number) => (true.write(to), number.write(to)),
            FlowId::Text(key) => (false.write(to), key.write(to)),
        };
    }

    fn read(from: &mut &[u8]) -> Option<FlowId> {
        Some(match bool::read(from)? {
            true => FlowId::Number(i64::read(from)?),
            false => FlowId::Text(i32::read(from)?),
        })
    }
}

/// `s`, `t`, `f`.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub(super) sequence: u64,
    pub(super) phase: u8,
    /// `"bp":"e"`: binds to the task around it, not to the next one.
    pub(super) encloses: bool,
    pub(super) lane: i32,
    pub(super) time: i64,
    /// Keys of texts.
    pub(super) category: i32,
    pub(super) name: i32,
    pub(super) id: FlowId,
    /// The task in the order of the file, where `tq` wrote the flow.
    pub(super) task: Option<u32>,
    /// Key of what a member `tq` says of the link; [`NO_WORD`] for nothing.
    pub(super) told: i32,
}

record!(Flow { sequence, phase, encloses, lane, time, category, name, id, task, told });

/// A task with `bind_id`.
#[derive(Debug, Clone)]
pub(super) struct Bind {
    pub(super) row: u32,
    /// When it begins.
    pub(super) time: i64,
    pub(super) id: FlowId,
    pub(super) into: bool,
    pub(super) out: bool,
}

record!(Bind { row, time, id, into, out });

/// A row of `events`.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    /// [`NO_WORD`] for events of the whole trace.
    pub(super) lane: i32,
    /// [`NO_TIME`] for those without.
    pub(super) time: i64,
    /// Key of texts.
    pub(super) name: i32,
    pub(super) kind: MarkKind,
    /// Key of the kind that it had in another format; [`NO_WORD`] for none.
    pub(super) told_kind: i32,
    /// The task it belongs to.
    pub(super) task: Option<u32>,
    /// The same in the order of the file, where `tq` wrote it.
    pub(super) told_task: Option<u32>,
    pub(super) args: Option<Box<str>>,
}

record!(Mark { lane, time, name, kind, told_kind, task, told_task, args });

/// What sort of event a mark is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkKind {
    Instant,
    Object,
    Sample,
    MemoryDump,
    Context,
    Step,
    AsyncInstant,
}

impl MarkKind {
    const ALL: [MarkKind; 7] = [
        MarkKind::Instant,
        MarkKind::Object,
        MarkKind::Sample,
        MarkKind::MemoryDump,
        MarkKind::Context,
        MarkKind::Step,
        MarkKind::AsyncInstant,
    ];

    /// The word for it in `events.kind`.
    pub(super) fn text(self) -> &'static str {
        match self {
            MarkKind::Instant => "instant",
            MarkKind::Object => "object",
            MarkKind::Sample => "sample",
            MarkKind::MemoryDump => "memory_dump",
            MarkKind::Context => "context",
            MarkKind::Step => "step",
            MarkKind::AsyncInstant => "async_instant",
        }
    }
}

impl Record for MarkKind {
    fn write(&self, to: &mut Vec<u8>) {
        (*self as u8).write(to);
    }

    fn read(from: &mut &[u8]) -> Option<MarkKind> {
        MarkKind::ALL.get(usize::from(u8::read(from)?)).copied()
    }
}

/// A row of `counters`.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    /// [`NO_WORD`] for those of the whole trace.
    pub(super) lane: i32,
    /// [`NO_TIME`] for totals.
    pub(super) time: i64,
    /// Key of texts.
    pub(super) series: i32,
    pub(super) value: f64,
    pub(super) measure: Measure,
}

record!(Sample { lane, time, series, value, measure });

/// What a sample says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Measure {
    /// A value that holds, in whatever unit.
    Level,
    /// What it said in another format: keys of kind and unit, [`NO_WORD`] for none, and the task in the order of the file.
    Told { kind: i32, unit: i32, task: Option<u32> },
    /// Bytes that are held.
    Bytes,
    /// Bytes that came or went.
    BytesDelta,
}

impl Record for Measure {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            Measure::Level => 0_u8.write(to),
            Measure::Told { kind, unit, task } => {
                1_u8.write(to);
                (*kind, *unit, *task).write(to);
            }
            Measure::Bytes => 2_u8.write(to),
            Measure::BytesDelta => 3_u8.write(to),
        }
    }

    fn read(from: &mut &[u8]) -> Option<Measure> {
        Some(match u8::read(from)? {
            0 => Measure::Level,
            1 => {
                let (kind, unit, task) = Record::read(from)?;
                Measure::Told { kind, unit, task }
            }
            2 => Measure::Bytes,
            3 => Measure::BytesDelta,
            _ => return None,
        })
    }
}

/// `M`.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) lane: i32,
    pub(super) what: String,
    pub(super) args: String,
}

/// Python's own ids of a `python_function`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Python {
    pub(super) row: u32,
    pub(super) id: i64,
    pub(super) parent: Option<i64>,
}

record!(Python { row, id, parent });

/// How the text of a block came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Between two events.
    Border,
    /// At this byte of the block, the bracket that closes the array.
    Closed(usize),
    /// Inside of an event that begins at this byte of the block.
    Inside(usize),
}

/// The records of a block.
#[derive(Debug)]
pub(super) struct Records {
    pub(super) names: Words,
    pub(super) kinds: Words,
    pub(super) lanes: Words,
    pub(super) texts: Words,
    pub(super) tasks: Tasks,
    /// The arguments of the tasks.
    pub(super) args: StringArray,
    pub(super) joins: Joins,
    pub(super) lists: Lists,
    pub(super) stats: Stats,
}

/// What tasks of a block are joined by; rows count within the block.
#[derive(Debug, Default)]
pub(super) struct Joins {
    /// (row, `correlation`).
    pub(super) correlations: Vec<(u32, i64)>,
    /// (row, `External id`).
    pub(super) externals: Vec<(u32, i64)>,
    pub(super) pythons: Vec<Python>,
    /// Tasks of kind `cuda_sync`.
    pub(super) syncs: Vec<u32>,
}

impl Joins {
    /// Gives back what growing reserved.
    pub(super) fn shrink(&mut self) {
        self.correlations.shrink_to_fit();
        self.externals.shrink_to_fit();
        self.pythons.shrink_to_fit();
        self.syncs.shrink_to_fit();
    }
}

/// Everything of a block that is no task column; [`super::lists`] has the lists of a file.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// `B` and `E`.
    pub(super) steps: Vec<Step>,
    pub(super) asyncs: Vec<Async>,
    pub(super) flows: Vec<Flow>,
    pub(super) binds: Vec<Bind>,
    pub(super) marks: Vec<Mark>,
    pub(super) samples: Vec<Sample>,
    pub(super) facts: Vec<Fact>,
    /// Events so far: what `sequence` counts.
    pub(super) events: u64,
    /// `ph` of the first one.
    pub(super) first_phase: Option<u8>,
}
