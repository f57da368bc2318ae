//! A chunk of rows of the table `trace`, as columns: what the readers of SQLite and of CSV both produce, and what
//! becomes `tasks`.

use datafusion::arrow::array::Int64Builder;
use datafusion::arrow::array::{Array, Int64Array, StringArray, StringBuilder};
use rusqlite::types::ValueRef;

use super::times::{self, Unit};
use crate::cells::Cells;
use crate::cells::kind::Word;
use crate::trace::{Record, Stats, Words, findings, record};

/// Rows of a chunk at most; a multiple of the rows of a batch.
pub(super) const CHUNK_ROWS: usize = if cfg!(test) { 16 } else { 1 << 16 };

/// A word column of a chunk: keys into words of its own until chunks are put together.
#[derive(Debug, Clone, Default)]
pub(super) struct WordColumn {
    pub(super) words: Words,
    pub(super) keys: Vec<Option<i32>>,
    /// The key met last: neighbours are often alike, and then nothing is looked up.
    last: Option<i32>,
}

impl WordColumn {
    pub(super) fn push(&mut self, word: Option<&str>) {
        let key = word.map(|word| match self.last.filter(|&last| self.words.word(last) == word) {
            Some(last) => last,
            None => self.words.intern(word),
        });
        self.last = key.or(self.last);
        self.keys.push(key);
    }

    /// The word of a row.
    pub(super) fn word(&self, row: usize) -> Option<&str> {
        self.keys[row].map(|key| self.words.word(key))
    }

    /// Exchanges the words for those of the whole trace.
    pub(super) fn map_to(&mut self, whole: &mut Words) {
        let keys: Vec<i32> = (0..self.words.len()).map(|key| whole.intern(self.words.word(key as i32))).collect();
        for key in self.keys.iter_mut().flatten() {
            *key = keys[*key as usize];
        }
        (self.words, self.last) = (Words::default(), None);
    }

    /// Its keys, with its own words.
    pub(super) fn into_cells(self) -> Cells<Word> {
        Cells::of_words(self.words, self.keys)
    }
}

impl Record for WordColumn {
    fn write(&self, to: &mut Vec<u8>) {
        (self.words.len() as u64).write(to);
        for word in (0..self.words.len() as i32).map(|key| self.words.word(key)) {
            (word.len() as u64).write(to);
            to.extend_from_slice(word.as_bytes());
        }
        (self.keys.len() as u64).write(to);
        self.keys.iter().for_each(|key| key.write(to));
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let mut column = WordColumn::default();
        for _ in 0..u64::read(from)? {
            let length = usize::try_from(u64::read(from)?).ok()?;
            let (word, rest) = from.split_at_checked(length)?;
            *from = rest;
            column.words.intern(std::str::from_utf8(word).ok()?);
        }
        for _ in 0..u64::read(from)? {
            column.keys.push(Option::read(from)?);
        }
        Some(column)
    }

    fn elsewhere(&self) -> usize {
        self.keys.capacity() * size_of::<Option<i32>>() + self.words.memory()
    }
}

/// Rows, complete.
#[derive(Debug, Clone)]
pub(super) struct Chunk {
    pub(super) ids: StringArray,
    /// NULL for those without a parent.
    pub(super) parents: StringArray,
    pub(super) names: WordColumn,
    pub(super) kinds: WordColumn,
    pub(super) locations: WordColumn,
    pub(super) starts: Int64Array,
    pub(super) finishes: Int64Array,
}

record!(Chunk { ids, parents, names, kinds, locations, starts, finishes });

impl Chunk {
    pub(super) fn rows(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn id(&self, row: usize) -> Option<&str> {
        self.ids.is_valid(row).then(|| self.ids.value(row))
    }

    /// Start and finish of a row.
    pub(super) fn span(&self, row: usize) -> (Option<i64>, Option<i64>) {
        let value = |times: &Int64Array| times.is_valid(row).then(|| times.value(row));
        (value(&self.starts), value(&self.finishes))
    }
}

/// One row of `trace` as its cells.
pub(super) struct RawTask<'a> {
    pub(super) id: ValueRef<'a>,
    pub(super) parent: ValueRef<'a>,
    pub(super) kind: ValueRef<'a>,
    pub(super) what: ValueRef<'a>,
    pub(super) location: Option<&'a str>,
    pub(super) start: ValueRef<'a>,
    pub(super) finish: ValueRef<'a>,
}

/// Rows that are being read.
#[derive(Debug, Default)]
pub(super) struct ChunkBuilder {
    ids: StringBuilder,
    parents: StringBuilder,
    names: WordColumn,
    kinds: WordColumn,
    locations: WordColumn,
    starts: Int64Builder,
    finishes: Int64Builder,
    scratch: String,
}

impl ChunkBuilder {
    pub(super) fn rows(&self) -> usize {
        self.starts.values_slice().len()
    }

    /// Appends a row, unless it stands for no task.
    pub(super) fn push(&mut self, task: &RawTask<'_>, unit: Unit, stats: &mut Stats, place: &dyn Fn() -> String) {
        let scratch = &mut self.scratch;
        let location = task.location.filter(|location| !location.is_empty());
        let start = times::ticks(task.start, unit, stats, place);
        if location.is_none() && is_nothing(task.kind) && is_nothing(task.what) && start.unwrap_or(0) == 0 {
            stats.left_out(findings::NEVER_STARTED, 1, || format!("{}: no kind, no action, no location", place()));
            return;
        }
        self.ids.append_option(text(task.id, scratch, stats, place));
        // v5 has 0 for no parent, earlier versions an empty text.
        let has_parent = !matches!(task.parent, ValueRef::Integer(0)) && !is_nothing(task.parent);
        self.parents.append_option(text(task.parent, scratch, stats, place).filter(|_| has_parent));
        self.names.push(Some(text(task.what, scratch, stats, place).unwrap_or("")));
        self.kinds.push(text(task.kind, scratch, stats, place));
        self.locations.push(location);
        self.starts.append_option(start);
        self.finishes.append_option(times::ticks(task.finish, unit, stats, place));
    }

    pub(super) fn finish(self) -> Chunk {
        let ChunkBuilder { mut ids, mut parents, names, kinds, locations, mut starts, mut finishes, .. } = self;
        Chunk {
            ids: ids.finish(),
            parents: parents.finish(),
            names,
            kinds,
            locations,
            starts: starts.finish(),
            finishes: finishes.finish(),
        }
    }
}

/// Whether a cell says nothing.
fn is_nothing(cell: ValueRef<'_>) -> bool {
    matches!(cell, ValueRef::Null | ValueRef::Text(b"") | ValueRef::Blob(b""))
}

/// A cell as text, whatever its type: columns are not typed. NULL is nothing.
pub(super) fn text<'a>(
    cell: ValueRef<'a>,
    scratch: &'a mut String,
    stats: &mut Stats,
    place: &dyn Fn() -> String,
) -> Option<&'a str> {
    use std::fmt::Write as _;
    scratch.clear();
    // Writing into a text does not fail.
    match cell {
        ValueRef::Null => return None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => return Some(text),
            Err(_) => {
                scratch.push_str(&String::from_utf8_lossy(bytes));
                stats.note(findings::NOT_UTF8, 1, || format!("{}: `{}`", place(), String::from_utf8_lossy(bytes)));
            }
        },
        ValueRef::Integer(value) => {
            let _ = write!(scratch, "{value}");
        }
        ValueRef::Real(value) => {
            let _ = write!(scratch, "{value}");
        }
    }
    Some(scratch)
}
