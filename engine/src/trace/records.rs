//! Records: what an importer keeps of events and tasks until the end of a trace, in memory or, when memory is short, on disk.
//!
//! ```text
//! Kept     one record, as a whole
//! Column   values of a block of rows, read as a whole or one by one
//! List     records that are appended and read in this order
//! Sorter   records that are appended in any order and read in theirs
//! ```
//! Without a disk to wait on ([`Budget::spill`]) all four are in memory. With one, the records that have come go there as soon as memory
//! is short ([`Spill::is_due`]), and what remains in memory is a window for each that is being read. Nothing is read at random but
//! single values of a column: a step that needs records in another order sorts them.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{Array, Int64Array, Int64Builder, StringArray, StringBuilder};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryReservation;

use super::assemble::ROWS_PER_BATCH;
use super::budget::Budget;
use super::spill::{Spill, Stretch};
use crate::error::ImportError;

/// Records of a list that are written and read together; also what [`List::chunks`] gives, wherever they are.
const CHUNK: usize = if cfg!(test) { 3 } else { ROWS_PER_BATCH };
/// Records of a sorted run that are read together.
const BLOCK: usize = if cfg!(test) { 2 } else { 1024 };
/// So many runs are merged at once.
const RUNS: usize = if cfg!(test) { 3 } else { 256 };
/// So many bytes, at least, are sorted together. More, where there is more memory.
const RUN_BYTES: usize = if cfg!(test) { 1 } else { 4 << 20 };
/// Whether memory is short is checked once per this many records.
const ASKED: usize = if cfg!(test) { 1 } else { 1024 };

/// What can wait on disk.
pub(crate) trait Record: Sized {
    /// Appends its bytes.
    fn write(&self, to: &mut Vec<u8>);

    /// Takes it from the bytes that [`Record::write`] made; `None` from others.
    fn read(from: &mut &[u8]) -> Option<Self>;

    /// Bytes that it holds beside itself.
    fn elsewhere(&self) -> usize {
        0
    }
}

/// What always has the same number of bytes.
pub(crate) trait Plain: Record + Copy {
    /// Their number.
    const BYTES: usize;
}

macro_rules! plain_numbers {
    ($($number:ty),*) => {$(
        impl Record for $number {
            fn write(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(<$number>::from_le_bytes(*bytes))
            }
        }

        impl Plain for $number {
            const BYTES: usize = size_of::<$number>();
        }
    )*};
}
plain_numbers!(u8, i32, u32, i64, u64, f64);

macro_rules! records_of_parts {
    ($(($($part:ident . $place:tt),*)),*) => {$(
        impl<$($part: Record),*> Record for ($($part,)*) {
            fn write(&self, to: &mut Vec<u8>) {
                $(self.$place.write(to);)*
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                Some(($($part::read(from)?,)*))
            }

            fn elsewhere(&self) -> usize {
                0 $(+ self.$place.elsewhere())*
            }
        }

        impl<$($part: Plain),*> Plain for ($($part,)*) {
            const BYTES: usize = 0 $(+ $part::BYTES)*;
        }
    )*};
}
records_of_parts!((A.0, B.1), (A.0, B.1, C.2), (A.0, B.1, C.2, D.3));

/// Makes a struct a record: the fields in their order.
macro_rules! record {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::trace::Record for $name {
            fn write(&self, to: &mut Vec<u8>) {
                $(self.$field.write(to);)*
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                Some($name { $($field: $crate::trace::Record::read(from)?),* })
            }

            fn elsewhere(&self) -> usize {
                0 $(+ self.$field.elsewhere())*
            }
        }
    };
}
pub(crate) use record;

impl Record for bool {
    fn write(&self, to: &mut Vec<u8>) {
        u8::from(*self).write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Some(u8::read(from)? != 0)
    }
}

impl<T: Record> Record for Option<T> {
    fn write(&self, to: &mut Vec<u8>) {
        self.is_some().write(to);
        if let Some(record) = self {
            record.write(to);
        }
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::read(from)? { Some(T::read(from)?) } else { None })
    }

    fn elsewhere(&self) -> usize {
        self.as_ref().map_or(0, Record::elsewhere)
    }
}

impl<T: Record> Record for Reverse<T> {
    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        T::read(from).map(Reverse)
    }

    fn elsewhere(&self) -> usize {
        self.0.elsewhere()
    }
}

/// What an allocation costs beside its bytes.
const ALLOCATION: usize = 16;

impl Record for Box<str> {
    fn write(&self, to: &mut Vec<u8>) {
        (self.len() as u64).write(to);
        to.extend_from_slice(self.as_bytes());
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let length = usize::try_from(u64::read(from)?).ok()?;
        let (text, rest) = from.split_at_checked(length)?;
        *from = rest;
        std::str::from_utf8(text).ok().map(Into::into)
    }

    fn elsewhere(&self) -> usize {
        self.len() + ALLOCATION
    }
}

impl<T: Plain> Record for Vec<T> {
    fn write(&self, to: &mut Vec<u8>) {
        (self.len() as u64).write(to);
        self.iter().for_each(|value| value.write(to));
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let count = usize::try_from(u64::read(from)?).ok()?;
        let (mut bytes, rest) = from.split_at_checked(count.checked_mul(T::BYTES)?)?;
        *from = rest;
        let mut values = Vec::with_capacity(count);
        while !bytes.is_empty() {
            values.push(T::read(&mut bytes)?);
        }
        Some(values)
    }

    fn elsewhere(&self) -> usize {
        if self.capacity() == 0 { 0 } else { self.capacity() * size_of::<T>() + ALLOCATION }
    }
}

impl Record for Int64Array {
    fn write(&self, to: &mut Vec<u8>) {
        (self.len() as u64).write(to);
        self.iter().for_each(|value| value.write(to));
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let mut values = Int64Builder::new();
        for _ in 0..u64::read(from)? {
            values.append_option(Option::read(from)?);
        }
        Some(values.finish())
    }

    fn elsewhere(&self) -> usize {
        self.get_buffer_memory_size()
    }
}

impl Record for StringArray {
    fn write(&self, to: &mut Vec<u8>) {
        (self.len() as u64).write(to);
        for text in self {
            text.map(|text| text.len() as u64).write(to);
            to.extend_from_slice(text.unwrap_or_default().as_bytes());
        }
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let mut texts = StringBuilder::new();
        for _ in 0..u64::read(from)? {
            let Some(length) = Option::<u64>::read(from)? else {
                texts.append_null();
                continue;
            };
            let (text, rest) = from.split_at_checked(usize::try_from(length).ok()?)?;
            *from = rest;
            texts.append_value(std::str::from_utf8(text).ok()?);
        }
        Some(texts.finish())
    }

    fn elsewhere(&self) -> usize {
        self.get_buffer_memory_size()
    }
}

fn written<T: Record>(spill: &Spill, records: &[T]) -> Result<Stretch, ImportError> {
    let elsewhere: usize = records.iter().map(Record::elsewhere).sum();
    let mut bytes = Vec::with_capacity(size_of_val(records) + elsewhere);
    records.iter().for_each(|record| record.write(&mut bytes));
    spill.write(&[&bytes])
}

fn read<T: Record>(spill: &Spill, stretch: Stretch) -> Result<Vec<T>, ImportError> {
    decoded(spill, &spill.read_all(stretch)?)
}

fn decoded<T: Record>(spill: &Spill, mut bytes: &[u8]) -> Result<Vec<T>, ImportError> {
    let mut records = Vec::with_capacity(bytes.len() / size_of::<T>().max(1));
    while !bytes.is_empty() {
        records.push(T::read(&mut bytes).ok_or_else(|| spill.damaged("its end is missing"))?);
    }
    Ok(records)
}

/// Where the records of a trace are kept.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    path: PathBuf,
    budget: Budget,
}

impl Room {
    /// Records of the trace at `path`, within its budget.
    pub(crate) fn new(path: &Path, budget: &Budget) -> Room {
        Room { path: path.to_owned(), budget: budget.clone() }
    }

    /// The disk, where there is one and memory is short.
    pub(crate) fn short(&self) -> Option<&Arc<Spill>> {
        self.budget.spill().filter(|spill| spill.is_due())
    }

    /// The disk, where there is one.
    pub(crate) fn disk(&self) -> Option<&Arc<Spill>> {
        self.budget.spill()
    }

    /// Nothing yet, to be grown.
    pub(crate) fn hold(&self) -> MemoryReservation {
        self.budget.hold(format!("records of {}", self.path.display()))
    }

    /// Sets a reservation to `bytes`.
    ///
    /// # Errors
    /// The pool is exhausted.
    pub(crate) fn resize(&self, memory: &MemoryReservation, bytes: usize) -> Result<(), ImportError> {
        memory.try_resize(bytes).map_err(|error| self.refused(&error))
    }

    fn refused(&self, error: &DataFusionError) -> ImportError {
        ImportError::Memory { path: self.path.clone(), what: error.strip_backtrace() }
    }
}

/// Records in memory, with what was asked of the pool for them.
#[derive(Debug)]
struct Held<T> {
    records: Vec<T>,
    /// Bytes that they hold beside themselves, and for how many the pool was asked.
    elsewhere: usize,
    asked_elsewhere: usize,
    memory: MemoryReservation,
    room: Room,
}

impl<T: Record> Held<T> {
    fn new(room: &Room) -> Held<T> {
        Held { records: Vec::new(), elsewhere: 0, asked_elsewhere: 0, memory: room.hold(), room: room.clone() }
    }

    /// Takes a record. The disk, if it is time to write them.
    #[inline]
    fn push(&mut self, record: T) -> Result<Option<Arc<Spill>>, ImportError> {
        self.elsewhere += record.elsewhere();
        let refused = if self.records.len() == self.records.capacity() || self.elsewhere > self.asked_elsewhere {
            self.grow().err()
        } else {
            None
        };
        self.records.push(record);
        match (refused, self.room.budget.spill()) {
            (Some(error), None) => Err(error),
            (Some(_), Some(spill)) => Ok(Some(Arc::clone(spill))),
            (None, Some(spill)) if self.records.len().is_multiple_of(ASKED) && spill.is_due() => {
                Ok(Some(Arc::clone(spill)))
            }
            _ => Ok(None),
        }
    }

    /// Room for twice as much.
    #[cold]
    fn grow(&mut self) -> Result<(), ImportError> {
        let (length, capacity) = (self.records.len(), self.records.capacity());
        let wanted = if length == capacity { (2 * length).max(8) } else { capacity };
        let elsewhere = if self.elsewhere > self.asked_elsewhere { 2 * self.elsewhere } else { self.asked_elsewhere };
        self.room.resize(&self.memory, wanted * size_of::<T>() + elsewhere)?;
        self.asked_elsewhere = elsewhere;
        self.records.reserve_exact(wanted - length);
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.records.len() * size_of::<T>() + self.elsewhere
    }

    /// Forgets the first records, which are on disk.
    fn forget(&mut self, count: usize) {
        self.records.drain(..count);
        self.records.shrink_to(2 * CHUNK);
        self.elsewhere = self.records.iter().map(Record::elsewhere).sum();
        self.asked_elsewhere = self.elsewhere;
        let bytes = self.records.capacity() * size_of::<T>() + self.elsewhere;
        self.memory.shrink(self.memory.size().saturating_sub(bytes));
    }
}

/// Records in the order in which they came.
#[derive(Debug)]
pub(crate) struct List<T> {
    /// Those on disk, each stretch with [`CHUNK`] of them, and those that came after them.
    away: Vec<Stretch>,
    held: Held<T>,
}

impl<T: Record + Clone> List<T> {
    /// An empty list.
    pub(crate) fn new(room: &Room) -> List<T> {
        List { away: Vec::new(), held: Held::new(room) }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.away.len() * CHUNK + self.held.records.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a record.
    ///
    /// # Errors
    /// The pool is exhausted; the disk is full, or cannot be written.
    #[inline]
    pub(crate) fn push(&mut self, record: T) -> Result<(), ImportError> {
        match self.held.push(record)? {
            Some(spill) if self.held.records.len() >= CHUNK => self.put_away(&spill),
            _ => Ok(()),
        }
    }

    #[cold]
    fn put_away(&mut self, spill: &Spill) -> Result<(), ImportError> {
        let chunks = self.held.records.chunks_exact(CHUNK);
        let count = chunks.len() * CHUNK;
        for chunk in chunks {
            self.away.push(written(spill, chunk)?);
        }
        self.held.forget(count);
        Ok(())
    }

    /// All records, a chunk at a time. Chunks are the same in memory and on disk.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Result<Cow<'_, [T]>, ImportError>> {
        let spill = self.held.room.budget.spill();
        let away = self.away.iter().zip(spill.into_iter().cycle()).map(|(stretch, spill)| read(spill, *stretch));
        away.map(|chunk| chunk.map(Cow::Owned))
            .chain(self.held.records.chunks(CHUNK).map(|chunk| Ok(Cow::Borrowed(chunk))))
    }

    /// All records from one on.
    pub(crate) fn iter_from(&self, first: usize) -> impl Iterator<Item = Result<T, ImportError>> {
        let (chunk, within) = (first / CHUNK, first % CHUNK);
        let away = self.away.len();
        // Chunks on disk that are not wanted are not read.
        let read_from = chunk.min(away);
        let held = self.held.records.get((chunk - read_from) * CHUNK..).unwrap_or_default();
        let spill = self.held.room.budget.spill();
        let stretches = self.away.get(read_from..).unwrap_or_default();
        let on_disk =
            stretches.iter().zip(spill.into_iter().cycle()).flat_map(|(stretch, spill)| each(read(spill, *stretch)));
        on_disk.chain(held.iter().cloned().map(Ok)).skip(within)
    }

    /// All records.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<T, ImportError>> {
        self.iter_from(0)
    }
}

/// The records of a chunk, or why there are none.
fn each<T>(chunk: Result<Vec<T>, ImportError>) -> impl Iterator<Item = Result<T, ImportError>> {
    let (records, error) = match chunk {
        Ok(records) => (records, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    records.into_iter().map(Ok).chain(error.map(Err))
}

/// Records that will be read in their order, of which no two are equal.
#[derive(Debug)]
pub(crate) struct Sorter<T> {
    held: Held<T>,
    runs: Vec<Vec<Stretch>>,
}

impl<T: Record + Ord> Sorter<T> {
    /// None yet.
    pub(crate) fn new(room: &Room) -> Sorter<T> {
        Sorter { held: Held::new(room), runs: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.held.records.is_empty()
    }

    /// Takes a record.
    ///
    /// # Errors
    /// The pool is exhausted; the disk is full, or cannot be written.
    #[inline]
    pub(crate) fn push(&mut self, record: T) -> Result<(), ImportError> {
        match self.held.push(record)? {
            Some(spill) if self.held.bytes() >= RUN_BYTES.max(spill.above() / 4) => self.put_away(&spill),
            _ => Ok(()),
        }
    }

    /// Writes what is in memory as a sorted run.
    #[cold]
    fn put_away(&mut self, spill: &Spill) -> Result<(), ImportError> {
        self.held.records.sort_unstable();
        let run: Result<Vec<_>, _> = self.held.records.chunks(BLOCK).map(|block| written(spill, block)).collect();
        self.runs.push(run?);
        self.held.forget(self.held.records.len());
        Ok(())
    }

    /// The records in their order.
    ///
    /// # Errors
    /// The pool is exhausted; the disk is full, or cannot be written or read.
    pub(crate) fn sorted(mut self) -> Result<Sorted<T>, ImportError> {
        let spill = self.held.room.budget.spill().cloned();
        let Some(spill) = spill.filter(|_| !self.runs.is_empty()) else {
            self.held.records.sort_unstable();
            return Ok(Sorted::Held { records: self.held.records.into_iter(), _memory: self.held.memory });
        };
        if !self.held.records.is_empty() {
            self.put_away(&spill)?;
        }
        let Held { memory, room, records, .. } = self.held;
        drop(records);
        let mut runs = self.runs;
        // One block of each is in memory, as it was written and as records.
        room.resize(&memory, runs.len().min(RUNS) * BLOCK * size_of::<T>() * 2)?;
        while runs.len() > RUNS {
            let merged = Merge::<T>::of(runs.drain(..RUNS).collect(), &spill)?;
            let (mut run, mut block) = (Vec::new(), Vec::with_capacity(BLOCK));
            for record in merged {
                block.push(record?);
                if block.len() == BLOCK {
                    run.push(written(&spill, &block)?);
                    block.clear();
                }
            }
            if !block.is_empty() {
                run.push(written(&spill, &block)?);
            }
            runs.push(run);
        }
        Ok(Sorted::Merged { merge: Merge::of(runs, &spill)?, _memory: memory })
    }
}

/// Records in their order.
#[derive(Debug)]
pub(crate) enum Sorted<T> {
    /// All in memory.
    Held { records: std::vec::IntoIter<T>, _memory: MemoryReservation },
    /// Merged from runs on disk.
    Merged { merge: Merge<T>, _memory: MemoryReservation },
}

impl<T: Record + Ord> Iterator for Sorted<T> {
    type Item = Result<T, ImportError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Sorted::Held { records, .. } => records.next().map(Ok),
            Sorted::Merged { merge, .. } => merge.next(),
        }
    }
}

/// Sorted runs that become one.
#[derive(Debug)]
pub(crate) struct Merge<T> {
    runs: Vec<Run<T>>,
    /// The next record of each run.
    next: BinaryHeap<Reverse<(T, usize)>>,
    spill: Arc<Spill>,
}

#[derive(Debug)]
struct Run<T> {
    blocks: std::vec::IntoIter<Stretch>,
    records: std::vec::IntoIter<T>,
}

impl<T: Record> Run<T> {
    fn next(&mut self, spill: &Spill) -> Result<Option<T>, ImportError> {
        loop {
            if let Some(record) = self.records.next() {
                return Ok(Some(record));
            }
            let Some(block) = self.blocks.next() else { return Ok(None) };
            self.records = read(spill, block)?.into_iter();
        }
    }
}

impl<T: Record + Ord> Merge<T> {
    fn of(runs: Vec<Vec<Stretch>>, spill: &Arc<Spill>) -> Result<Merge<T>, ImportError> {
        let runs = runs.into_iter().map(|run| Run { blocks: run.into_iter(), records: Vec::new().into_iter() });
        let mut merge = Merge { runs: runs.collect(), next: BinaryHeap::new(), spill: Arc::clone(spill) };
        for (number, run) in merge.runs.iter_mut().enumerate() {
            merge.next.extend(run.next(spill)?.map(|record| Reverse((record, number))));
        }
        Ok(merge)
    }
}

impl<T: Record + Ord> Iterator for Merge<T> {
    type Item = Result<T, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut least = self.next.peek_mut()?;
        let number = least.0.1;
        let following = match self.runs.get_mut(number).map_or(Ok(None), |run| run.next(&self.spill)) {
            Ok(following) => following,
            Err(error) => return Some(Err(error)),
        };
        let Reverse((record, _)) = match following {
            Some(following) => std::mem::replace(&mut *least, Reverse((following, number))),
            None => PeekMut::pop(least),
        };
        Some(Ok(record))
    }
}

/// A record that is held, or waits on disk.
#[derive(Debug)]
pub(crate) enum Kept<T> {
    Held(T),
    OnDisk(Arc<Spill>, Stretch),
}

impl<T: Record + Clone> Kept<T> {
    /// Keeps a record and asks for the bytes that it holds; it goes to disk where there is one and memory is short.
    ///
    /// # Errors
    /// The pool is exhausted, and there is no disk; the disk is full, or cannot be written.
    pub(crate) fn keep(record: T, memory: &MemoryReservation, room: &Room) -> Result<Kept<T>, ImportError> {
        let bytes = record.elsewhere();
        let granted = memory.try_grow(bytes);
        let disk = if granted.is_err() { room.disk() } else { room.short() };
        let Some(spill) = disk else {
            return granted.map(|()| Kept::Held(record)).map_err(|error| room.refused(&error));
        };
        if granted.is_ok() {
            memory.shrink(bytes);
        }
        let mut kept = Kept::Held(record);
        kept.put_away(spill)?;
        Ok(kept)
    }

    /// Bytes held beside itself.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Kept::Held(record) => record.elsewhere(),
            Kept::OnDisk(..) => 0,
        }
    }

    /// The record, wherever it is.
    ///
    /// # Errors
    /// It is on disk and cannot be read.
    pub(crate) fn get(&self) -> Result<Cow<'_, T>, ImportError> {
        match self {
            Kept::Held(record) => Ok(Cow::Borrowed(record)),
            Kept::OnDisk(spill, stretch) => read_one(spill, *stretch).map(Cow::Owned),
        }
    }

    /// The record itself, wherever it was.
    ///
    /// # Errors
    /// As [`Kept::get`].
    pub(crate) fn fetched(self) -> Result<T, ImportError> {
        match self {
            Kept::Held(record) => Ok(record),
            Kept::OnDisk(spill, stretch) => read_one(&spill, stretch),
        }
    }

    /// Moves it to disk.
    ///
    /// # Errors
    /// The disk is full, or cannot be written.
    pub(crate) fn put_away(&mut self, spill: &Arc<Spill>) -> Result<(), ImportError> {
        if let Kept::Held(record) = self {
            *self = Kept::OnDisk(Arc::clone(spill), written(spill, std::slice::from_ref(record))?);
        }
        Ok(())
    }
}

fn read_one<T: Record>(spill: &Spill, stretch: Stretch) -> Result<T, ImportError> {
    let bytes = spill.read_all(stretch)?;
    let mut rest = bytes.as_slice();
    let record = T::read(&mut rest);
    record.filter(|_| rest.is_empty()).ok_or_else(|| spill.damaged("it is not what was written"))
}

/// Values of a block of rows.
#[derive(Debug)]
pub(crate) struct Column<T> {
    held: Vec<T>,
    /// Where they are while they are on disk, and how many they are.
    away: Option<(Arc<Spill>, Stretch, usize)>,
}

impl<T> From<Vec<T>> for Column<T> {
    fn from(held: Vec<T>) -> Column<T> {
        Column { held, away: None }
    }
}

impl<T: Record + Clone> Column<T> {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.away.as_ref().map_or(self.held.len(), |(.., count)| *count)
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.held.capacity() * size_of::<T>() + self.held.iter().map(Record::elsewhere).sum::<usize>()
    }

    /// All values.
    ///
    /// # Errors
    /// They are on disk and cannot be read.
    pub(crate) fn values(&self) -> Result<Cow<'_, [T]>, ImportError> {
        match &self.away {
            None => Ok(Cow::Borrowed(&self.held)),
            Some((spill, stretch, _)) => read(spill, *stretch).map(Cow::Owned),
        }
    }

    /// Changes values.
    ///
    /// # Errors
    /// They are on disk and cannot be read or written.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut [T])) -> Result<(), ImportError> {
        let Some((spill, stretch, _)) = &mut self.away else {
            change(&mut self.held);
            return Ok(());
        };
        let mut values = read(spill, *stretch)?;
        change(&mut values);
        *stretch = written(spill, &values)?;
        Ok(())
    }

    /// Moves them to disk.
    ///
    /// # Errors
    /// The disk is full, or cannot be written.
    pub(crate) fn put_away(&mut self, spill: &Arc<Spill>) -> Result<(), ImportError> {
        if !self.held.is_empty() {
            self.away = Some((Arc::clone(spill), written(spill, &self.held)?, self.held.len()));
            self.held = Vec::new();
        }
        Ok(())
    }

    /// The values in memory, wherever they were.
    ///
    /// # Errors
    /// They are on disk and cannot be read.
    pub(crate) fn fetched(self) -> Result<Vec<T>, ImportError> {
        match &self.away {
            None => Ok(self.held),
            Some((spill, stretch, _)) => read(spill, *stretch),
        }
    }
}

impl<T: Plain> Column<T> {
    /// The value of a row.
    ///
    /// # Errors
    /// It is on disk and cannot be read.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Result<T, ImportError> {
        match &self.away {
            None => Ok(self.held[row]),
            Some((spill, stretch, _)) => {
                let bytes = spill.read(*stretch, (row * T::BYTES) as u64, T::BYTES)?;
                T::read(&mut bytes.as_slice()).ok_or_else(|| spill.damaged("its end is missing"))
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool, UnboundedMemoryPool};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Room whose records go to disk from so many bytes in use on.
    pub(crate) fn room(above: usize, folder: &Path) -> Room {
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let spill = Spill::new(folder.to_owned(), &pool, above);
        Room::new(Path::new("trace"), &Budget::from(pool).spilling(spill))
    }

    type Parts = (i64, Vec<(u32, i32)>, Vec<u8>);
    type Mixed = (i64, Option<Box<str>>, (u32, bool), u64);

    proptest! {
        #[test]
        fn lists_sorters_and_columns_are_vectors(
            texts in vec((-9..9i64, proptest::option::of("[aä]{0,3}"), any::<u32>(), any::<bool>()), 0..60),
            above in 0..3000usize,
            from in 0..70usize,
            numbers in vec((any::<i64>(), any::<u32>()), 1..20),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let room = room(above, folder.path());
            let records: Vec<Mixed> = texts
                .into_iter()
                .zip(0..)
                .map(|((number, text, key, flag), place)| (number, text.map(String::into_boxed_str), (key, flag), place))
                .collect();
            let (mut list, mut sorter) = (List::new(&room), Sorter::new(&room));
            for record in &records {
                list.push(record.clone()).unwrap();
                sorter.push(record.clone()).unwrap();
            }
            prop_assert_eq!(list.len(), records.len());
            prop_assert_eq!((list.is_empty(), sorter.is_empty()), (records.is_empty(), records.is_empty()));
            let chunks: Vec<Vec<Mixed>> = list.chunks().map(|chunk| chunk.unwrap().into_owned()).collect();
            prop_assert_eq!(chunks, records.chunks(CHUNK).map(<[Mixed]>::to_vec).collect::<Vec<_>>());
            let read: Vec<Mixed> = list.iter_from(from).map(Result::unwrap).collect();
            prop_assert_eq!(read.as_slice(), records.get(from..).unwrap_or_default());
            let mut expected = records;
            expected.sort();
            prop_assert_eq!(sorter.sorted().unwrap().map(Result::unwrap).collect::<Vec<_>>(), expected);

            let mut column = Column::from(numbers.clone());
            let mut expected = numbers;
            for is_away in [false, true] {
                for (row, value) in expected.iter().enumerate() {
                    prop_assert_eq!(column.get(row).unwrap(), *value);
                }
                prop_assert_eq!((column.len(), column.away.is_some()), (expected.len(), is_away));
                prop_assert_eq!(column.values().unwrap().into_owned(), expected.clone());
                let change = |values: &mut [(i64, u32)]| values[0].1 = 7;
                column.change(change).unwrap();
                change(&mut expected);
                column.put_away(room.budget.spill().unwrap()).unwrap();
            }
            prop_assert_eq!(column.memory(), 0);
            prop_assert_eq!(column.fetched().unwrap(), expected);
        }
    }

    #[test]
    fn a_kept_record_that_is_damaged_on_disk_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let room = room(0, folder.path());
        let spill = room.disk().unwrap();
        let record: Parts = (7, vec![(1, 2), (3, 4)], vec![5]);
        let mut kept = Kept::Held(record.clone());
        assert!(kept.memory() >= 17);
        assert_eq!(*kept.get().unwrap(), record);
        kept.put_away(spill).unwrap();
        assert_eq!((kept.memory(), kept.get().unwrap().into_owned()), (0, record.clone()));
        assert_eq!(kept.fetched().unwrap(), record);
        // Cut short, with something behind it, and with a length that no file holds.
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        let mut absurd = bytes.clone();
        absurd[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        for damaged in [&bytes[..bytes.len() - 1], &[bytes.as_slice(), &[0]].concat(), &bytes[..3], &absurd] {
            let kept: Kept<Parts> = Kept::OnDisk(Arc::clone(spill), spill.write(&[damaged]).unwrap());
            let error = kept.get().expect_err("it is damaged").to_string();
            assert!(error.contains("what waited on disk: it is not what was written"), "{error}");
        }
    }

    #[test]
    fn without_a_disk_an_exhausted_pool_is_an_error_that_names_the_trace() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        let room = Room::new(Path::new("big.json"), &Budget::from(pool));
        let mut list = List::new(&room);
        let error = (0..1000_i64).map(|number| list.push(number)).find_map(Result::err).expect("too much");
        assert!(error.to_string().starts_with("big.json: not enough memory"), "{error}");
    }

    #[test]
    fn what_cannot_be_written_is_an_error_that_names_the_folder() {
        let room = room(0, Path::new("/nowhere"));
        let mut sorter = Sorter::new(&room);
        let error = sorter.push(1_i64).expect_err("there is no such folder").to_string();
        assert!(error.starts_with("/nowhere: rows that wait on disk"), "{error}");
    }
}
