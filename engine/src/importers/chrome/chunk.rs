//! What a block of events holds: columns of tasks in the order of the file, and short lists of everything else.
//!
//! Nearly all events of most traces are complete (`X`): they go into columns that later move into the tables as they are.
//! Whatever needs another event to make sense (ends, flows, asynchronous parts) waits in a list until the whole file is
//! known, because the order of the file is not the order of time.

use std::borrow::Cow;
use std::sync::Arc;

use super::event;
use crate::error::ImportError;
use crate::trace::{Spill, Stats, Stretch, Words};

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
    pub(super) args: Texts,
    /// Ids by row, where there are any.
    pub(super) ids: Vec<(u32, String)>,
    /// Roles by row that `tq` wrote: keys of texts, [`NO_WORD`] for none.
    pub(super) roles: Vec<(u32, i32)>,
    /// Rows of which `tq` says that they have no kind.
    pub(super) without_kind: Vec<u32>,
}

impl Tasks {
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.starts.capacity() * 16
            + self.names.capacity() * 12
            + self.args.text.capacity()
            + self.args.ends.capacity() * 4
            + texts_memory(self.ids.iter().map(|(_, id)| id.as_str()), size_of::<(u32, String)>())
            + self.roles.capacity() * size_of::<(u32, i32)>()
            + self.without_kind.capacity() * size_of::<u32>()
    }

    /// Gives back what growing reserved.
    pub(super) fn shrink(&mut self) {
        self.starts.shrink_to_fit();
        self.finishes.shrink_to_fit();
        self.names.shrink_to_fit();
        self.kinds.shrink_to_fit();
        self.lanes.shrink_to_fit();
        self.args.text.shrink_to_fit();
        self.args.ends.shrink_to_fit();
    }
}

/// A column of optional texts; no text is empty.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) text: String,
    /// Where the text of each row ends.
    pub(super) ends: Vec<i32>,
    /// Where both are while they are on disk.
    away: Option<Away>,
}

/// Texts on disk, and behind them where each ends.
#[derive(Debug)]
struct Away {
    spill: Arc<Spill>,
    stretch: Stretch,
    bytes: usize,
    rows: usize,
}

const END_BYTES: usize = size_of::<i32>();

impl Texts {
    /// Appends valid JSON, or nothing; `false` when it does not fit.
    #[inline]
    pub(super) fn push(&mut self, json: &str) -> bool {
        let length = self.text.len();
        event::push_compact(json, &mut self.text);
        // Offsets end at 2 GiB; a block is that long only when one of its events is.
        let fits = i32::try_from(self.text.len()).is_ok();
        if !fits {
            self.text.truncate(length);
        }
        self.ends.push(self.text.len() as i32);
        fits
    }

    /// The text of a row.
    ///
    /// # Errors
    /// It is on disk and cannot be read.
    pub(super) fn get(&self, row: usize) -> Result<Cow<'_, str>, ImportError> {
        let Some(Away { spill, stretch, bytes, .. }) = &self.away else {
            let from = if row == 0 { 0 } else { self.ends[row - 1] as usize };
            return Ok(Cow::Borrowed(&self.text[from..self.ends[row] as usize]));
        };
        let first = row.saturating_sub(1);
        let ends = spill.read(*stretch, (bytes + first * END_BYTES) as u64, (row + 1 - first) * END_BYTES)?;
        let ends = ends_of(&ends);
        let from = if row == 0 { 0 } else { ends[0] };
        let length = (ends[ends.len() - 1] - from) as usize;
        text_of(spill, spill.read(*stretch, from as u64, length)?).map(Cow::Owned)
    }

    /// Moves the texts to disk.
    ///
    /// # Errors
    /// The disk is full, or cannot be written.
    pub(super) fn put_away(&mut self, spill: &Arc<Spill>) -> Result<(), ImportError> {
        if self.text.is_empty() {
            return Ok(());
        }
        let ends: Vec<u8> = self.ends.iter().flat_map(|end| end.to_le_bytes()).collect();
        let stretch = spill.write(&[self.text.as_bytes(), &ends])?;
        let away = Away { spill: Arc::clone(spill), stretch, bytes: self.text.len(), rows: self.ends.len() };
        *self = Texts { away: Some(away), ..Texts::default() };
        Ok(())
    }

    /// The texts in memory, wherever they were.
    ///
    /// # Errors
    /// They are on disk and cannot be read.
    pub(super) fn fetched(self) -> Result<Texts, ImportError> {
        let Some(Away { spill, stretch, bytes, rows }) = &self.away else { return Ok(self) };
        let text = text_of(spill, spill.read(*stretch, 0, *bytes)?)?;
        let ends = ends_of(&spill.read(*stretch, *bytes as u64, rows * END_BYTES)?);
        Ok(Texts { text, ends, away: None })
    }
}

fn ends_of(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks().0.iter().map(|end| i32::from_le_bytes(*end)).collect()
}

fn text_of(spill: &Spill, bytes: Vec<u8>) -> Result<String, ImportError> {
    String::from_utf8(bytes).map_err(|error| spill.damaged(&error))
}

/// `B`: its lane, time and name are those of the task.
#[derive(Debug)]
pub(super) struct Begin {
    pub(super) row: u32,
    pub(super) sequence: u64,
    pub(super) thread_time: Option<i64>,
}

/// `E`.
#[derive(Debug)]
pub(super) struct End {
    pub(super) sequence: u64,
    /// The row of the task that comes next in the file.
    pub(super) next_row: u32,
    pub(super) lane: i32,
    pub(super) time: i64,
    /// Keys of texts, or [`NO_WORD`].
    pub(super) name: i32,
    pub(super) category: i32,
    pub(super) thread_time: Option<i64>,
    pub(super) args: Option<Box<str>>,
}

/// `b`, `n`, `e`, and the old `S`, `T`, `p`, `F`.
#[derive(Debug)]
pub(super) struct Async {
    pub(super) sequence: u64,
    pub(super) phase: u8,
    /// Key of the text that says what belongs together.
    pub(super) key: i32,
    /// Key of texts.
    pub(super) name: i32,
    pub(super) lane: i32,
    pub(super) time: i64,
    /// The task that `b` and `S` begin.
    pub(super) row: Option<u32>,
    pub(super) args: Option<Box<str>>,
}

/// The id of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum FlowId {
    Number(i64),
    /// Key of texts.
    Text(i32),
}

/// `s`, `t`, `f`.
#[derive(Debug)]
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

/// A task with `bind_id`.
#[derive(Debug)]
pub(super) struct Bind {
    pub(super) row: u32,
    pub(super) id: FlowId,
    pub(super) into: bool,
    pub(super) out: bool,
}

/// A row of `events`.
#[derive(Debug)]
pub(super) struct Mark {
    /// [`NO_WORD`] for events of the whole trace.
    pub(super) lane: i32,
    /// [`NO_TIME`] for those without.
    pub(super) time: i64,
    /// Key of texts.
    pub(super) name: i32,
    pub(super) kind: &'static str,
    /// Key of the kind that it had in another format; [`NO_WORD`] for none.
    pub(super) told_kind: i32,
    /// The task it belongs to.
    pub(super) task: Option<u32>,
    /// The same in the order of the file, where `tq` wrote it.
    pub(super) told_task: Option<u32>,
    pub(super) args: Option<Box<str>>,
}

/// A row of `counters`.
#[derive(Debug)]
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

/// The records of a block, or of a whole file.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) names: Words,
    pub(super) kinds: Words,
    pub(super) lanes: Words,
    pub(super) texts: Words,
    pub(super) tasks: Tasks,
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
    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        (self.correlations.capacity() + self.externals.capacity()) * size_of::<(u32, i64)>()
            + self.pythons.capacity() * size_of::<Python>()
            + self.syncs.capacity() * size_of::<u32>()
    }

    /// Gives back what growing reserved.
    pub(super) fn shrink(&mut self) {
        self.correlations.shrink_to_fit();
        self.externals.shrink_to_fit();
        self.pythons.shrink_to_fit();
        self.syncs.shrink_to_fit();
    }
}

/// Everything that is no task column.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) begins: Vec<Begin>,
    pub(super) ends: Vec<End>,
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

/// How the words of a block are called in the file.
pub(super) struct Renumber {
    pub(super) lanes: Vec<i32>,
    pub(super) texts: Vec<i32>,
    /// Rows and events before the block.
    pub(super) rows: u32,
    pub(super) events: u64,
}

impl Renumber {
    fn lane(&self, lane: i32) -> i32 {
        usize::try_from(lane).map_or(NO_WORD, |lane| self.lanes[lane])
    }

    pub(super) fn text(&self, text: i32) -> i32 {
        usize::try_from(text).map_or(NO_WORD, |text| self.texts[text])
    }

    fn id(&self, id: FlowId) -> FlowId {
        match id {
            FlowId::Number(_) => id,
            FlowId::Text(text) => FlowId::Text(self.text(text)),
        }
    }
}

/// Bytes of texts that are held one by one, each beside `each` bytes of its row: an allocation has 16 bytes of its own.
fn texts_memory<'a>(texts: impl Iterator<Item = &'a str>, each: usize) -> usize {
    texts.map(|text| text.len() + each + 16).sum()
}

fn args_memory<'a>(args: impl Iterator<Item = Option<&'a str>>) -> usize {
    texts_memory(args.flatten(), 0)
}

impl Lists {
    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.memory_of_joins()
            + self.marks.len() * size_of::<Mark>()
            + args_memory(self.marks.iter().map(|mark| mark.args.as_deref()))
            + self.samples.len() * size_of::<Sample>()
            + texts_memory(self.facts.iter().map(|fact| fact.what.as_str()), size_of::<Fact>())
            + texts_memory(self.facts.iter().map(|fact| fact.args.as_str()), 0)
    }

    /// Bytes of what only joins need.
    pub(super) fn memory_of_joins(&self) -> usize {
        self.begins.len() * size_of::<Begin>()
            + self.ends.len() * size_of::<End>()
            + args_memory(self.ends.iter().map(|end| end.args.as_deref()))
            + self.asyncs.len() * size_of::<Async>()
            + args_memory(self.asyncs.iter().map(|part| part.args.as_deref()))
            + self.flows.len() * size_of::<Flow>()
            + self.binds.len() * size_of::<Bind>()
    }

    /// Takes over the lists of the next block.
    pub(super) fn append(&mut self, block: Lists, by: &Renumber) {
        let rows = by.rows;
        self.begins.extend(block.begins.into_iter().map(|begin| Begin {
            row: begin.row + rows,
            sequence: begin.sequence + by.events,
            ..begin
        }));
        self.ends.extend(block.ends.into_iter().map(|end| End {
            sequence: end.sequence + by.events,
            next_row: end.next_row + rows,
            lane: by.lane(end.lane),
            name: by.text(end.name),
            category: by.text(end.category),
            ..end
        }));
        self.asyncs.extend(block.asyncs.into_iter().map(|part| Async {
            sequence: part.sequence + by.events,
            key: by.text(part.key),
            name: by.text(part.name),
            lane: by.lane(part.lane),
            row: part.row.map(|row| row + rows),
            ..part
        }));
        self.flows.extend(block.flows.into_iter().map(|flow| Flow {
            sequence: flow.sequence + by.events,
            lane: by.lane(flow.lane),
            category: by.text(flow.category),
            name: by.text(flow.name),
            id: by.id(flow.id),
            told: by.text(flow.told),
            ..flow
        }));
        self.binds.extend(block.binds.into_iter().map(|bind| Bind {
            row: bind.row + rows,
            id: by.id(bind.id),
            ..bind
        }));
        self.marks.extend(block.marks.into_iter().map(|mark| Mark {
            lane: by.lane(mark.lane),
            name: by.text(mark.name),
            told_kind: by.text(mark.told_kind),
            task: mark.task.map(|row| row + rows),
            ..mark
        }));
        self.samples.extend(block.samples.into_iter().map(|sample| Sample {
            lane: by.lane(sample.lane),
            series: by.text(sample.series),
            measure: match sample.measure {
                Measure::Told { kind, unit, task } => Measure::Told { kind: by.text(kind), unit: by.text(unit), task },
                measure => measure,
            },
            ..sample
        }));
        self.facts.extend(block.facts.into_iter().map(|fact| Fact { lane: by.lane(fact.lane), ..fact }));
        self.events += block.events;
        self.first_phase = self.first_phase.or(block.first_phase);
    }
}
