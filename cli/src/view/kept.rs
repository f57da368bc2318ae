//! Lanes on disk: what the page draws where there are too many tasks to read them each time, or to keep them in memory.
//!
//! Life of the data: `floating_rows` gives each task its row → for each row, blocks of its tasks, of the tasks that coarse pictures draw one by
//! one, and of the bins in which such pictures sum up the others ([`Levels`]); a block holds some thousands and is compressed when it is
//! full → one file, whose end says where each block is. A tile reads the blocks that it touches. Beside a store the file stays for the next
//! time; else it has no name and disappears with the page.
//!
//! ```text
//! magic │ blocks of any row, packed … │ the end: lanes, names, where the blocks are; packed │ where the end begins │ magic
//! ```

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef};
use datafusion::common::hash_utils::RandomState;
use datafusion::execution::memory_pool::MemoryReservation;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tq_udfs::overview::levels::{LevelBin, Levels};
use tq_udfs::overview::rows::{Row, RowSpan};

use super::gathered::WordColumns;
use crate::errors::{Failure, Problem};
use crate::output::{Output, Preparation};

const MAGIC: &[u8; 8] = b"tqlanes\x01";
/// Tasks or bins of a block.
const BLOCK: usize = 2048;
/// Tasks in a bin of a row's finest level, on average, estimated from the row's first tasks. Finer bins are summed up from the tasks as quickly.
const TASKS_OF_BIN: usize = 8;
/// The coarsest level has this many bins, or up to twice as many.
const COARSEST_BINS: u64 = 256;
/// The most bytes that the numbers of a task or a bin take when they are written.
const NUMBERS_BYTES: usize = 50;
/// Rows of a lane in which the row of a task is searched.
const ROWS_SEARCHED: usize = 256;
/// Bins of a tile: more than a screen has pixels.
pub(super) const BINS_MAX: usize = 4096;
/// The most bins that a range of a level has: twice those of a tile, since a level has at most twice as many as were asked for.
const LEVEL_BINS_MAX: usize = 2 * BINS_MAX + 2;
/// Blocks that are kept for the next look.
const RECENT_BLOCKS: usize = 512;
/// The list of blocks is at most this many times as long as its compressed form, or as long as the file. Lists of regular traces compress well;
/// a longer one is damage.
const MOST_UNPACKED: u64 = 1024;
/// The level of compression: small enough, at the speed of the disk.
const PACKING: i32 = 1;

/// Where a block is, and which ticks, or bins, it has.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Block {
    first: i64,
    /// The last finish; after the last bin.
    until: i64,
    at: u64,
    bytes: u32,
    len: u32,
}

/// The blocks of a row.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct KeptRow {
    /// Bins of its first level have `2^finest` ticks, those of the next one twice as many.
    finest: u32,
    /// All tasks.
    tasks: Vec<Block>,
    /// By level, the tasks that finer levels draw and this one sums up; those that all levels draw come last.
    drawn: Vec<Vec<Block>>,
    /// By level, the bins.
    bins: Vec<Vec<Block>>,
}

/// The rows of all lanes, on disk.
#[derive(Debug)]
pub(super) struct KeptLanes {
    file: File,
    about: About,
    blocks: usize,
    /// By lane and row, the number of the block of tasks that was looked into last, and its tasks.
    recent: Mutex<HashMap<(usize, usize), RecentBlock>>,
}

type RecentBlock = (usize, Arc<Vec<RowSpan>>);

/// Times that any run has.
pub(super) const TIMES: RangeInclusive<i64> = -(1 << 62)..=1 << 62;

/// The end of the file: what is known of the lanes without reading a block.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    grid: Grid,
    /// First tick after all tasks.
    until: i64,
    lanes: Vec<Vec<KeptRow>>,
}

/// Where the bins of all levels are.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Grid {
    origin: i64,
    /// Bins of the coarsest level have `2^coarsest` ticks.
    coarsest: u32,
}

impl Grid {
    /// The grid for tasks between a first start and a last finish.
    fn of((first, last): (i64, i64)) -> Grid {
        Grid { origin: first, coarsest: (first.abs_diff(last) / COARSEST_BINS).max(1).ilog2() }
    }

    /// The bin of a tick, where bins have `2^shift` ticks.
    fn bin(self, tick: i64, shift: u32) -> i64 {
        tick.saturating_sub(self.origin) >> shift
    }

    /// How many levels a row has.
    fn levels(self, finest: u32) -> usize {
        (self.coarsest - finest) as usize + 1
    }

    /// The finest level of a row that begins with these tasks.
    fn finest_of(self, tasks: &[RowSpan]) -> u32 {
        let bins =
            |shift: u32| tasks.chunk_by(|one, next| self.bin(one.start, shift) == self.bin(next.start, shift)).count();
        (0..self.coarsest).find(|shift| bins(*shift) * TASKS_OF_BIN <= tasks.len()).unwrap_or(self.coarsest)
    }
}

impl About {
    /// How many blocks there are; `None` where one cannot be what it says.
    fn sound_blocks(&self, end: u64) -> Option<usize> {
        let last = self.until.checked_sub(1)?;
        let is_reach = TIMES.contains(&self.grid.origin) && TIMES.contains(&last) && self.grid.origin <= last;
        if !is_reach || self.grid.coarsest != Grid::of((self.grid.origin, last)).coarsest {
            return None;
        }
        let is_sound = |block: &Block| {
            let until = block.at.checked_add(u64::from(block.bytes));
            let is_there = block.at >= MAGIC.len() as u64 && until.is_some_and(|until| until <= end);
            is_there && (1..=BLOCK).contains(&(block.len as usize)) && block.first <= block.until
        };
        let is_list = |blocks: &Vec<Block>| {
            blocks.iter().all(is_sound)
                && blocks.is_sorted_by(|one, other| one.first <= other.first && one.until <= other.until)
        };
        let mut blocks = 0;
        for row in self.lanes.iter().flatten() {
            let lists = || row.drawn.iter().chain(&row.bins).chain([&row.tasks]);
            let levels = Some(row.finest)
                .filter(|finest| *finest <= self.grid.coarsest)
                .map(|finest| self.grid.levels(finest))?;
            if row.drawn.len() != levels + 1 || row.bins.len() != levels || !lists().all(is_list) {
                return None;
            }
            blocks += lists().map(Vec::len).sum::<usize>();
        }
        Some(blocks)
    }
}

/// A part of a row at some level: what is drawn, and what is summed up.
pub(super) struct KeptPart {
    pub(super) drawn: Vec<RowSpan>,
    pub(super) bins: Vec<LevelBin>,
}

/// Bins of a level that cover a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LevelRange {
    shift: u32,
    pub(super) from: i64,
    pub(super) to: i64,
    pub(super) bins: usize,
}

impl LevelRange {
    /// How long each bin is.
    pub(super) fn bin_ticks(&self) -> i64 {
        (self.to - self.from) / self.bins.max(1) as i64
    }
}

impl KeptLanes {
    /// What [`Written::finish`] wrote, with `more` of it; `None` where that is not there as it was written.
    pub(super) fn open<M: DeserializeOwned>(mut file: File) -> Option<(KeptLanes, M)> {
        const TAIL: u64 = 16;
        let length = file.metadata().ok()?.len();
        let mut tail = [0; TAIL as usize];
        read_at(&file, &mut tail, length.checked_sub(TAIL)?).ok()?;
        let (at, magic) = tail.split_at(8);
        let at = u64::from_le_bytes(at.try_into().ok()?);
        let packed = length.checked_sub(TAIL)?.checked_sub(at).filter(|_| magic == MAGIC && at >= 8)?;
        file.seek(io::SeekFrom::Start(at)).ok()?;
        // A list that claims to be longer was not written by us.
        let most = packed.saturating_mul(MOST_UNPACKED).saturating_add(length);
        let end = zstd::Decoder::new((&mut file).take(packed)).ok()?.take(most);
        let (about, more): (About, M) = serde_json::from_reader(BufReader::new(end)).ok()?;
        let blocks = about.sound_blocks(at)?;
        Some((KeptLanes { file, about, blocks, recent: Mutex::default() }, more))
    }

    /// About how many bytes are held.
    pub(super) fn size(&self) -> usize {
        let rows = self.about.lanes.iter().flatten();
        let lists = rows.map(|row| size_of::<KeptRow>() + (row.drawn.len() + row.bins.len()) * size_of::<Vec<Block>>());
        self.blocks * size_of::<Block>() + lists.sum::<usize>()
    }

    /// How many lanes there are.
    pub(super) fn lanes(&self) -> usize {
        self.about.lanes.len()
    }

    /// How many rows a lane has.
    pub(super) fn rows(&self, lane: usize) -> usize {
        self.about.lanes.get(lane).map_or(0, Vec::len)
    }

    /// The shift for which `ticks` ticks are about `bins` bins of `2^shift` ticks; more bins where the coarsest level is not coarse enough.
    pub(super) fn shift(&self, ticks: u64, bins: usize) -> u32 {
        // Between 1/1.4 and 1.4 times `bins`.
        let widest = ticks as f64 / bins.max(1) as f64 * std::f64::consts::SQRT_2;
        (widest.max(1.0).log2() as u32).min(self.about.grid.coarsest)
    }

    /// The bins of `2^shift` ticks that cover what of a range has tasks; `None` where there are none.
    pub(super) fn range(&self, shift: u32, from: i64, to: i64) -> Option<LevelRange> {
        let About { grid, until, .. } = self.about;
        let origin = grid.origin;
        // A mark at the end of a range is in its last bin; bins before and after all tasks are empty, however many there are.
        let (from, to) = (from.max(origin), to.saturating_add(1).min(until));
        if to <= from {
            return None;
        }
        let (first, last) = (grid.bin(from, shift), grid.bin(to - 1, shift));
        let bins = usize::try_from(last - first + 1).ok().filter(|bins| *bins <= LEVEL_BINS_MAX)?;
        let begin = |bin: i64| bin.checked_mul(1 << shift).and_then(|ticks| ticks.checked_add(origin));
        Some(LevelRange { shift, from: begin(first)?, to: begin(last + 1)?, bins })
    }

    /// The tasks of a row that touch a range, marks at both of its ends among them.
    pub(super) fn tasks(&self, lane: usize, row: usize, from: i64, to: i64) -> Result<Row, Failure> {
        let mut found = Row::default();
        let Some(row) = self.row(lane, row) else { return Ok(found) };
        // Tasks of a row do not overlap, so its blocks are in order of their ends, too.
        let first = row.tasks.partition_point(|block| block.until < from);
        for block in row.tasks[first..].iter().take_while(|block| block.first <= to) {
            for span in self.spans(block)? {
                if span.finish >= from && span.start <= to {
                    found.push(span);
                }
            }
        }
        Ok(found)
    }

    /// A row as a level has it; `None` where the bins are finer than its levels, and its few [tasks](KeptLanes::tasks) tell.
    pub(super) fn part(&self, lane: usize, row: usize, range: LevelRange) -> Result<Option<KeptPart>, Failure> {
        let (mut drawn, mut bins) = (Vec::new(), Vec::new());
        let Some(row) = self.row(lane, row) else { return Ok(Some(KeptPart { drawn, bins })) };
        let Some(level) = range.shift.checked_sub(row.finest).map(|level| level as usize) else { return Ok(None) };
        for blocks in row.drawn.iter().skip(level + 1) {
            let first = blocks.partition_point(|block| block.until <= range.from);
            for block in blocks[first..].iter().take_while(|block| block.first < range.to) {
                let spans = self.spans(block)?;
                drawn.extend(spans.into_iter().filter(|span| span.finish > range.from && span.start < range.to));
            }
        }
        drawn.sort_unstable_by_key(|span| span.start);
        let bin = self.about.grid.bin(range.from, range.shift);
        let of_range = bin..bin + range.bins as i64;
        let blocks = row.bins.get(level).map_or(&[][..], Vec::as_slice);
        let first = blocks.partition_point(|block| block.until <= of_range.start);
        for block in blocks[first..].iter().take_while(|block| block.first < of_range.end) {
            let found = self.bins(block, level)?.into_iter().filter(|found| of_range.contains(&found.bin));
            bins.extend(found.map(|found| LevelBin { bin: found.bin - bin, ..found }));
        }
        Ok(Some(KeptPart { drawn, bins }))
    }

    /// The row of a task that some tick is in, where it is among the first rows.
    pub(super) fn row_of(&self, lane: usize, task: i64, tick: i64) -> Option<usize> {
        (0..self.rows(lane).min(ROWS_SEARCHED))
            .find(|row| self.is_there(lane, *row, task, tick).is_some_and(|is_there| is_there))
    }

    /// Whether a task of a row has a tick, or ends there. The next look-up is mostly near, so blocks are kept.
    fn is_there(&self, lane: usize, row: usize, task: i64, tick: i64) -> Option<bool> {
        let blocks = &self.row(lane, row)?.tasks;
        let mut number = blocks.partition_point(|block| block.until < tick);
        while let Some(block) = blocks.get(number).filter(|block| block.first <= tick) {
            let mut recent = self.recent.lock().ok()?;
            let spans = match recent.get(&(lane, row)).filter(|(known, _)| *known == number) {
                Some((_, spans)) => Arc::clone(spans),
                None => {
                    let spans = Arc::new(self.spans(block).ok()?);
                    if recent.len() >= RECENT_BLOCKS {
                        recent.clear();
                    }
                    recent.insert((lane, row), (number, Arc::clone(&spans)));
                    spans
                }
            };
            drop(recent);
            let first = spans.partition_point(|span| span.finish < tick);
            if spans[first..].iter().take_while(|span| span.start <= tick).any(|span| span.task == task) {
                return Some(true);
            }
            number += 1;
        }
        Some(false)
    }

    fn row(&self, lane: usize, row: usize) -> Option<&KeptRow> {
        self.about.lanes.get(lane)?.get(row)
    }

    fn spans(&self, block: &Block) -> Result<Vec<RowSpan>, Failure> {
        let unpacked = self.unpacked(block)?;
        let mut numbers = Numbers::of(&unpacked);
        let (mut spans, mut start, mut task) = (Vec::with_capacity(block.len as usize), block.first, 0_i64);
        for _ in 0..block.len {
            start = start.checked_add_unsigned(numbers.next()?).ok_or_else(damaged)?;
            let finish = start.checked_add_unsigned(numbers.next()?).ok_or_else(damaged)?;
            let name = numbers.small()?;
            task = task.wrapping_add(numbers.signed()?);
            spans.push(RowSpan { start, finish, name, task });
        }
        Ok(spans)
    }

    fn bins(&self, block: &Block, level: usize) -> Result<Vec<LevelBin>, Failure> {
        let unpacked = self.unpacked(block)?;
        let mut numbers = Numbers::of(&unpacked);
        let (mut bins, mut bin) = (Vec::with_capacity(block.len as usize), block.first);
        for _ in 0..block.len {
            bin = bin.checked_add_unsigned(numbers.next()?).ok_or_else(damaged)?;
            let (count, name) = (numbers.small()?, numbers.small()?);
            let (busy, name_busy) = (numbers.signed()?, numbers.signed()?);
            bins.push(LevelBin { level, bin, count, busy, name, name_busy });
        }
        Ok(bins)
    }

    fn unpacked(&self, block: &Block) -> Result<Vec<u8>, Failure> {
        let mut packed = vec![0; block.bytes as usize];
        read_at(&self.file, &mut packed, block.at).map_err(|_| damaged())?;
        zstd::bulk::decompress(&packed, block.len as usize * NUMBERS_BYTES).map_err(|_| damaged().into())
    }
}

fn damaged() -> Problem {
    Problem::new("what was kept of the picture is damaged")
        .hint("`tq gc STORE` removes it; the next `tq view` makes it again")
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, at)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (bytes, at) = (&mut bytes[read..], at + read as u64);
    }
    Ok(())
}

/// Reads numbers of seven bits a byte, the lowest first.
struct Numbers<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl Numbers<'_> {
    fn of(bytes: &[u8]) -> Numbers<'_> {
        Numbers { bytes: bytes.iter() }
    }

    fn next(&mut self) -> Result<u64, Problem> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = *self.bytes.next().filter(|_| shift < 64).ok_or_else(damaged)?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    fn small(&mut self) -> Result<u32, Problem> {
        u32::try_from(self.next()?).map_err(|_| damaged())
    }

    /// With the sign in the lowest bit.
    fn signed(&mut self) -> Result<i64, Problem> {
        let number = self.next()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put(bytes, (number << 1 ^ number >> 63) as u64);
}

/// A row that is being written.
#[derive(Default)]
struct OpenRow {
    tasks: Vec<RowSpan>,
    drawn: Vec<Vec<RowSpan>>,
    bins: Vec<Vec<LevelBin>>,
    /// Once the first tasks have told how fine they are to be.
    levels: Option<Levels>,
    kept: KeptRow,
}

impl OpenRow {
    /// Adds a task; returns how much more waits to be written.
    fn push(&mut self, span: RowSpan) -> usize {
        self.tasks.push(span);
        1 + self.sum_up(span)
    }

    /// Adds a task to all levels, where there are any yet; returns how much more waits.
    fn sum_up(&mut self, span: RowSpan) -> usize {
        let (Some(levels), bins, mut more) = (&mut self.levels, &mut self.bins, 0) else { return 0 };
        let level = levels.push(span.start, span.finish, span.name, |bin| {
            more += 1;
            bins[bin.level].push(bin);
        });
        // The finest level sums it up, so it is drawn by none.
        if level > 0 {
            self.drawn[level].push(span);
            more += 1;
        }
        more
    }

    /// Sees to it that there are levels, as fine as the tasks want them.
    fn begin_levels(&mut self, grid: Grid) {
        if self.levels.is_some() {
            return;
        }
        let finest = grid.finest_of(&self.tasks);
        let levels = grid.levels(finest);
        self.levels = Some(Levels::new(grid.origin, finest, levels));
        self.kept.finest = finest;
        self.drawn.resize_with(levels + 1, Vec::new);
        self.bins.resize_with(levels, Vec::new);
        self.kept.drawn.resize_with(levels + 1, Vec::new);
        self.kept.bins.resize_with(levels, Vec::new);
        for at in 0..self.tasks.len() {
            self.sum_up(self.tasks[at]);
        }
    }

    /// Writes all that is left.
    fn finish(&mut self, file: &mut Packed, grid: Grid) -> io::Result<()> {
        self.begin_levels(grid);
        let bins = &mut self.bins;
        if let Some(levels) = &mut self.levels {
            levels.finish(|bin| bins[bin.level].push(bin));
        }
        self.write(file, grid, true)
    }

    /// About how many bytes are held, what waits aside.
    fn size(&self) -> usize {
        let lists = 2 * (self.drawn.len() + self.bins.len()) * size_of::<Vec<Block>>();
        size_of::<OpenRow>() + lists + self.levels.as_ref().map_or(0, Levels::size)
    }

    /// How many tasks and bins wait to be written.
    fn waiting(&self) -> usize {
        let drawn: usize = self.drawn.iter().map(Vec::len).sum();
        self.tasks.len() + drawn + self.bins.iter().map(Vec::len).sum::<usize>()
    }

    /// Writes what fills a block, or all of it.
    fn write(&mut self, file: &mut Packed, grid: Grid, is_all: bool) -> io::Result<()> {
        self.begin_levels(grid);
        let enough = if is_all { 1 } else { BLOCK };
        if self.tasks.len() >= enough {
            self.kept.tasks.extend(file.spans(&mut self.tasks)?);
        }
        for (spans, kept) in self.drawn.iter_mut().zip(&mut self.kept.drawn).filter(|(spans, _)| spans.len() >= enough)
        {
            kept.extend(file.spans(spans)?);
        }
        for (bins, kept) in self.bins.iter_mut().zip(&mut self.kept.bins).filter(|(bins, _)| bins.len() >= enough) {
            kept.extend(file.bins(bins)?);
        }
        Ok(())
    }
}

/// The file that blocks are written to.
struct Packed {
    file: BufWriter<File>,
    at: u64,
    blocks: usize,
    numbers: Vec<u8>,
    packer: zstd::bulk::Compressor<'static>,
}

impl Packed {
    fn new(file: File) -> io::Result<Packed> {
        let mut packer = zstd::bulk::Compressor::new(PACKING)?;
        packer.include_checksum(true)?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        file.write_all(MAGIC)?;
        Ok(Packed { file, at: MAGIC.len() as u64, blocks: 0, numbers: Vec::new(), packer })
    }

    fn spans(&mut self, spans: &mut Vec<RowSpan>) -> io::Result<Vec<Block>> {
        let mut blocks = Vec::new();
        for spans in spans.chunks(BLOCK) {
            let first = spans[0].start;
            let (mut start, mut task) = (first, 0_i64);
            self.numbers.clear();
            for span in spans {
                put(&mut self.numbers, span.start.abs_diff(start));
                put(&mut self.numbers, span.finish.abs_diff(span.start));
                put(&mut self.numbers, u64::from(span.name));
                put_signed(&mut self.numbers, span.task.wrapping_sub(task));
                (start, task) = (span.start, span.task);
            }
            blocks.push(self.block(first, spans[spans.len() - 1].finish, spans.len())?);
        }
        spans.clear();
        Ok(blocks)
    }

    fn bins(&mut self, bins: &mut Vec<LevelBin>) -> io::Result<Vec<Block>> {
        let mut blocks = Vec::new();
        for bins in bins.chunks(BLOCK) {
            let first = bins[0].bin;
            let mut bin = first;
            self.numbers.clear();
            for found in bins {
                put(&mut self.numbers, found.bin.abs_diff(bin));
                put(&mut self.numbers, u64::from(found.count));
                put(&mut self.numbers, u64::from(found.name));
                put_signed(&mut self.numbers, found.busy);
                put_signed(&mut self.numbers, found.name_busy);
                bin = found.bin;
            }
            blocks.push(self.block(first, bin + 1, bins.len())?);
        }
        bins.clear();
        Ok(blocks)
    }

    fn block(&mut self, first: i64, until: i64, len: usize) -> io::Result<Block> {
        let packed = self.packer.compress(&self.numbers)?;
        self.file.write_all(&packed)?;
        let block = Block { first, until, at: self.at, bytes: packed.len() as u32, len: len as u32 };
        self.at += packed.len() as u64;
        self.blocks += 1;
        Ok(block)
    }
}

/// The number of each name; `None` is that of tasks without one.
pub(super) type NumberOfNames = HashMap<Option<String>, u32>;

/// What is known of the tasks before they are read.
pub(super) struct Expected {
    /// First start and last finish.
    pub(super) reach: (i64, i64),
    pub(super) names: NumberOfNames,
    /// The lane of a run's location.
    pub(super) lanes: HashMap<(String, String), u32>,
}

/// All rows, in a file that does not say yet where they are.
pub(super) struct Written {
    file: Packed,
    about: About,
}

impl Written {
    /// Writes where they are, and `more`, which [`KeptLanes::open`] gives again.
    pub(super) fn finish(self, more: &impl Serialize) -> Result<KeptLanes, Failure> {
        self.write_end(more).map_err(|error| cannot_keep(&error))
    }

    fn write_end(self, more: &impl Serialize) -> io::Result<KeptLanes> {
        let Packed { mut file, at, blocks, .. } = self.file;
        let mut end = zstd::Encoder::new(&mut file, PACKING)?;
        end.include_checksum(true)?;
        serde_json::to_writer(&mut end, &(&self.about, more))?;
        end.finish()?;
        file.write_all(&at.to_le_bytes())?;
        file.write_all(MAGIC)?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(KeptLanes { file, about: self.about, blocks, recent: Mutex::default() })
    }
}

/// Writes the rows of an answer of `floating_rows`: run, location, name, task, start, finish, row.
pub(super) struct Keeping<'a, F> {
    expected: Expected,
    file: Packed,
    rows: Vec<Vec<OpenRow>>,
    grid: Grid,
    words: WordColumns<3>,
    lane_of: HashMap<(u32, u32), u32, RandomState>,
    name_of: HashMap<u32, u32, RandomState>,
    /// Tasks and bins that are in no block yet.
    waiting: usize,
    memory: &'a MemoryReservation,
    /// Gets the lane, start and finish of each task, in order of start within a lane.
    seen: F,
}

impl<'a, F: FnMut(u32, i64, i64)> Keeping<'a, F> {
    pub(super) fn new(file: File, expected: Expected, memory: &'a MemoryReservation, seen: F) -> Result<Self, Failure> {
        let grid = Grid::of(expected.reach);
        let rows = (0..expected.lanes.len()).map(|_| Vec::new()).collect();
        let words = WordColumns::default();
        let file = Packed::new(file).map_err(|error| cannot_keep(&error))?;
        let (lane_of, name_of) = (HashMap::default(), HashMap::default());
        Ok(Keeping { expected, file, rows, grid, words, lane_of, name_of, waiting: 0, memory, seen })
    }

    /// Writes what is left.
    pub(super) fn written(mut self) -> Result<Written, Failure> {
        for row in self.rows.iter_mut().flatten() {
            row.finish(&mut self.file, self.grid).map_err(|error| cannot_keep(&error))?;
        }
        let lanes = self.rows.into_iter().map(|rows| rows.into_iter().map(|row| row.kept).collect()).collect();
        let about = About { grid: self.grid, until: self.expected.reach.1.saturating_add(1), lanes };
        Ok(Written { file: self.file, about })
    }

    fn lane(&mut self, run: u32, location: u32) -> Result<u32, Failure> {
        if let Some(lane) = self.lane_of.get(&(run, location)) {
            return Ok(*lane);
        }
        let text = |word: u32| self.words.text(word).unwrap_or_default().to_owned();
        let key = (text(run), text(location));
        let lane = *self.expected.lanes.get(&key).ok_or_else(changed)?;
        self.lane_of.insert((run, location), lane);
        Ok(lane)
    }

    fn name(&mut self, word: u32) -> Result<u32, Failure> {
        if let Some(name) = self.name_of.get(&word) {
            return Ok(*name);
        }
        let name = *self.expected.names.get(&self.words.text(word).map(str::to_owned)).ok_or_else(changed)?;
        self.name_of.insert(word, name);
        Ok(name)
    }

    /// Writes all that waits, since it takes too much memory.
    fn make_room(&mut self) -> Result<(), Failure> {
        for row in self.rows.iter_mut().flatten() {
            row.write(&mut self.file, self.grid, true).map_err(|error| cannot_keep(&error))?;
        }
        self.waiting = 0;
        let held = self.rows.iter().flatten().map(OpenRow::size).sum::<usize>();
        let held = held + self.file.blocks * size_of::<Block>() + ROOM;
        self.memory.try_resize(held).map_err(|_| {
            Problem::new("the list of what the page draws does not fit into memory")
                .hint("`--memory 8GB` allows more; `STORE/RUN` opens less")
                .into()
        })
    }
}

/// Bytes of tasks and bins that wait for their block, at most.
pub(super) const ROOM: usize = 128 << 20;

/// The file cannot be written.
pub(super) fn cannot_keep(error: &io::Error) -> Failure {
    let reason = tq_engine::error::io_reason(error);
    Problem::new(format!("what the page draws cannot be kept in `{}`: {reason}", std::env::temp_dir().display()))
        .hint("`TMPDIR=DIRECTORY tq view …` puts it where there is room")
        .into()
}

fn changed() -> Failure {
    Problem::internal("two queries of a session gave different tasks").into()
}

impl<F: FnMut(u32, i64, i64)> Output for Keeping<'_, F> {
    fn preparation(&self) -> Preparation {
        Preparation::default()
    }

    fn begin(&mut self, _: &SchemaRef) -> Result<(), Failure> {
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let [runs, locations, names] = self.words.numbers(batch)?;
        let integers =
            (3..7).map(|column| cast(batch.column(column), &DataType::Int64)).collect::<Result<Vec<_>, _>>()?;
        let integer = |column: usize, row: usize| integers[column].as_primitive::<Int64Type>().value(row);
        for row in 0..batch.num_rows() {
            let lane = self.lane(runs[row], locations[row])?;
            let (task, start, place) = (integer(0, row), integer(1, row), integer(3, row) as usize);
            let span = RowSpan { start, finish: integer(2, row).max(start), name: self.name(names[row])?, task };
            (self.seen)(lane, span.start, span.finish);
            let of_lane = &mut self.rows[lane as usize];
            while of_lane.len() <= place {
                of_lane.push(OpenRow::default());
            }
            let open = &mut of_lane[place];
            self.waiting += open.push(span);
            if open.tasks.len() >= BLOCK {
                self.waiting -= open.waiting();
                open.write(&mut self.file, self.grid, false).map_err(|error| cannot_keep(&error))?;
                self.waiting += open.waiting();
            }
        }
        // A vector has room for twice of what it holds, at most.
        if self.waiting * 2 * size_of::<LevelBin>() >= ROOM {
            self.make_room()?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
