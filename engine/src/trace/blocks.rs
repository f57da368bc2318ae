//! Blocks: a long source is cut at borders between records and parsed on several threads; results come back in the order
//! of the source.
//!
//! Life of the data: whichever thread is free takes the lock, reads the next [`Source::block_bytes`] into a buffer of its own, cuts
//! after the last whole record (the rest is carried over to the next block), releases the lock and parses. The calling thread
//! receives the results and passes them on by block number. Blocks are cut in the same places on any number of threads, so what
//! depends on the cuts (the order in which words are met) does not depend on the machine. The files of a directory are one such
//! stream of blocks ([`parse_files`]): no thread waits at the end of a file.
//!
//! Cost: one copy from the operating system into a [`Buffer`] that is reused; it grows only when a block contains no
//! border.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};

use datafusion::execution::memory_pool::MemoryReservation;

use super::budget::{self, Budget, Refusal};
use super::source::Source;
use crate::error::ImportError;

/// A part of the source that holds whole records.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Where it begins in the (decompressed) source.
    pub offset: u64,
    /// Whether the source ends with it.
    pub last: bool,
}

/// How a source ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As they should.
    Whole,
    /// A compressed stream broke off.
    CutOff,
}

/// Cuts `source` with `cut` (the length of the longest prefix of whole records; `None` = no border yet), calls `parse` for
/// each block on up to `threads` threads, and `take` with the results, in order, on this thread.
///
/// # Errors
/// What `take` returns, and [`ImportError::Io`] when reading fails. Results before the failing place are taken first.
pub fn parse_blocks<R: Send>(
    source: &Source,
    threads: usize,
    cut: impl Fn(&[u8]) -> Option<usize> + Sync,
    parse: impl Fn(Block<'_>) -> R + Sync,
    mut take: impl FnMut(R) -> Result<(), ImportError>,
) -> Result<Ending, ImportError> {
    parse_reader(source, source.reader()?, threads, cut, parse, |result| take(result).map(|()| true))
}

/// [`parse_blocks`] for the files of a directory, one after the other: a thread that finds the end of a file goes on with
/// the next one. `take` also gets the number of the file, and with its last block how it came to its end. A file ends all
/// blocks before the first of the next one.
///
/// # Errors
/// As [`parse_blocks`], with the path of the file.
pub fn parse_files<R: Send>(
    sources: &[&Source],
    threads: usize,
    cut: impl Fn(&[u8]) -> Option<usize> + Sync,
    parse: impl Fn(Block<'_>) -> R + Sync,
    mut take: impl FnMut(usize, R, Option<Ending>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut number = 0;
    let mut open: Option<Cutter<Box<dyn Read + Send>>> = None;
    let next = |buffer: &mut Buffer| {
        let Some(source) = sources.get(number) else { return Ok(None) };
        let cutter = match &mut open {
            Some(cutter) => cutter,
            closed @ None => closed.insert(Cutter::new(source.reader()?, source)),
        };
        let place = cutter.next(buffer, &cut).map_err(|error| source.io_error(error))?;
        let ending = cutter.ended.then_some(cutter.ending);
        let file = number;
        if ending.is_some() {
            (number, open) = (number + 1, None);
        }
        Ok(place.map(|place| (place, (file, ending))))
    };
    parse_each(threads, next, parse, |(file, ending), result| take(file, result, ending).map(|()| true))
}

/// [`parse_blocks`] from the current position of `reader`, which is one of the source's: offsets count from there. Reading
/// ends early when `take` returns `false`.
///
/// # Errors
/// As [`parse_blocks`].
pub fn parse_reader<R: Send>(
    source: &Source,
    reader: Box<dyn Read + Send>,
    threads: usize,
    cut: impl Fn(&[u8]) -> Option<usize> + Sync,
    parse: impl Fn(Block<'_>) -> R + Sync,
    mut take: impl FnMut(R) -> Result<bool, ImportError>,
) -> Result<Ending, ImportError> {
    let mut cutter = Cutter::new(reader, source);
    let next = |buffer: &mut Buffer| {
        let place = cutter.next(buffer, &cut).map_err(|error| source.io_error(error))?;
        Ok(place.map(|place| (place, ())))
    };
    parse_each(threads, next, parse, |(), result| take(result))?;
    Ok(cutter.ending)
}

/// Parses on up to `threads` threads what `next` puts into the buffers, until it returns `None`. `take` gets the results
/// on this thread, in that order, each with what `next` returned for its block, and ends everything by returning `false`.
fn parse_each<A: Send, R: Send>(
    threads: usize,
    mut next: impl FnMut(&mut Buffer) -> Result<Option<(Place, A)>, ImportError> + Send,
    parse: impl Fn(Block<'_>) -> R + Sync,
    mut take: impl FnMut(A, R) -> Result<bool, ImportError>,
) -> Result<(), ImportError> {
    if threads <= 1 {
        let mut buffer = Buffer::default();
        while let Some((place, about)) = next(&mut buffer)? {
            if !take(about, parse(place.block(buffer.bytes())))? {
                break;
            }
        }
        return Ok(());
    }
    let numbered = Mutex::new((0_u64, next));
    let stopped = AtomicBool::new(false);
    // Whoever parses fast must not pile up results in front of a thread that takes them slowly.
    let ahead = Ahead::new(threads);
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads {
            let sender = sender.clone();
            scope.spawn(|| {
                let sender = sender;
                let _panics = Over { ahead: &ahead, always: false };
                let mut buffer = Buffer::default();
                while !stopped.load(Ordering::Relaxed) {
                    // A poisoned lock means that another parser panicked; the scope passes its panic on.
                    let mut lock = numbered.lock().unwrap_or_else(PoisonError::into_inner);
                    let (number, found) = (lock.0, lock.1(&mut buffer));
                    lock.0 += 1;
                    drop(lock);
                    if matches!(found, Ok(Some(_))) {
                        ahead.wait(number);
                    }
                    let message = match found {
                        Ok(None) => break,
                        Ok(Some((place, about))) => Ok((number, (about, parse(place.block(buffer.bytes()))))),
                        Err(error) => Err(error),
                    };
                    let failed = message.is_err();
                    if failed {
                        stopped.store(true, Ordering::Relaxed);
                        // The block that failed is never taken.
                        ahead.lift();
                    }
                    if sender.send(message).is_err() || failed {
                        break;
                    }
                }
            });
        }
        drop(sender);
        // Also when `take` panics, so that no parser waits for results that are never taken.
        let over = Over { ahead: &ahead, always: true };
        let taken = take_in_order(&receiver, |(about, result)| {
            let taken = take(about, result);
            ahead.taken();
            taken
        });
        stopped.store(true, Ordering::Relaxed);
        drop(over);
        taken
    })
}

/// How far parsers may be ahead of the thread that takes their results.
struct Ahead {
    /// Results that were taken.
    taken: Mutex<u64>,
    next: Condvar,
    most: u64,
}

impl Ahead {
    /// Two results for each thread: one that is being made, one that waits.
    fn new(threads: usize) -> Ahead {
        Ahead { taken: Mutex::new(0), next: Condvar::new(), most: 2 * threads as u64 }
    }

    /// Waits until block `number` is near enough to what was taken. The one that is taken next never waits.
    fn wait(&self, number: u64) {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let far = |taken: &mut u64| number >= taken.saturating_add(self.most);
        drop(self.next.wait_while(taken, far).unwrap_or_else(PoisonError::into_inner));
    }

    /// Lifts the limit: no parser waits from now on.
    fn lift(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = u64::MAX / 2;
        self.next.notify_all();
    }

    fn taken(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.next.notify_all();
    }
}

/// When the receiver of the results is done, or a parser panics, no parser waits any longer.
struct Over<'a> {
    ahead: &'a Ahead,
    always: bool,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        if self.always || std::thread::panicking() {
            self.ahead.lift();
        }
    }
}

fn take_in_order<R>(
    receiver: &mpsc::Receiver<Result<(u64, R), ImportError>>,
    mut take: impl FnMut(R) -> Result<bool, ImportError>,
) -> Result<(), ImportError> {
    let mut early: BTreeMap<u64, R> = BTreeMap::new();
    let mut next = 0;
    let mut failure = None;
    for message in receiver {
        match message {
            Ok((number, result)) => early.insert(number, result),
            Err(error) => {
                failure.get_or_insert(error);
                continue;
            }
        };
        while let Some(result) = early.remove(&next) {
            if !take(result)? {
                return Ok(());
            }
            next += 1;
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Where a block stands.
struct Place {
    offset: u64,
    last: bool,
}

impl Place {
    fn block<'a>(&self, bytes: &'a [u8]) -> Block<'a> {
        Block { bytes, offset: self.offset, last: self.last }
    }
}

/// Bytes of a block. What was read is the beginning of `room`, which is zeroed when it grows and never again: readers that
/// wrap others cannot be handed memory that was not.
#[derive(Default)]
struct Buffer {
    room: Vec<u8>,
    filled: usize,
}

impl Buffer {
    fn bytes(&self) -> &[u8] {
        &self.room[..self.filled]
    }

    /// Replaces what it holds.
    fn set(&mut self, bytes: &[u8]) {
        self.filled = 0;
        self.free(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.filled = bytes.len();
    }

    /// Room for at least this many further bytes.
    fn free(&mut self, bytes: usize) -> &mut [u8] {
        if self.room.len() < self.filled + bytes {
            self.room.resize(self.filled + bytes, 0);
        }
        &mut self.room[self.filled..]
    }
}

struct Cutter<R> {
    reader: R,
    block_bytes: usize,
    budget: Budget,
    /// What a record takes that is longer than some blocks.
    memory: MemoryReservation,
    /// What was read behind the last border.
    carry: Vec<u8>,
    offset: u64,
    ended: bool,
    ending: Ending,
}

impl<R: Read> Cutter<R> {
    fn new(reader: R, source: &Source) -> Cutter<R> {
        let memory = source.budget().hold(format!("a long record of {}", source.path().display()));
        let (block_bytes, budget) = (source.block_bytes(), source.budget().clone());
        Cutter {
            reader,
            block_bytes,
            budget,
            memory,
            carry: Vec::new(),
            offset: 0,
            ended: false,
            ending: Ending::Whole,
        }
    }

    /// Fills `buffer` with the next block; `None` after the last one. There is at least one block.
    fn next(&mut self, buffer: &mut Buffer, cut: impl Fn(&[u8]) -> Option<usize>) -> io::Result<Option<Place>> {
        if self.ended {
            return Ok(None);
        }
        buffer.set(&self.carry);
        self.carry.clear();
        let mut wanted = self.block_bytes;
        loop {
            self.fill(buffer, wanted)?;
            if self.ended {
                break;
            }
            if let Some(border) = cut(buffer.bytes()).filter(|&border| border > 0) {
                self.carry.extend_from_slice(&buffer.bytes()[border..]);
                buffer.filled = border;
                break;
            }
            wanted = self.longer(buffer.filled)?;
        }
        let place = Place { offset: self.offset, last: self.ended };
        self.offset += buffer.filled as u64;
        Ok(Some(place))
    }

    /// How far the end of a record is looked for next, when none stands within the `filled` bytes that are there.
    fn longer(&self, filled: usize) -> io::Result<usize> {
        if filled >= self.budget.record_bytes() {
            return Err(Refusal::Record { from: self.offset, bytes: filled }.into());
        }
        let wanted = filled.saturating_mul(2);
        // The block, what is carried over from it, and whatever a parser makes of its texts.
        let asked = wanted.saturating_mul(2);
        if wanted > 4 * self.block_bytes && asked > self.memory.size() {
            budget::grow(&self.memory, asked - self.memory.size())?;
        }
        Ok(wanted)
    }

    /// Reads until `wanted` bytes are there or the source ends.
    fn fill(&mut self, buffer: &mut Buffer, wanted: usize) -> io::Result<()> {
        while buffer.filled < wanted {
            let missing = wanted - buffer.filled;
            match self.reader.read(&mut buffer.free(missing)[..missing]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(());
                }
                Ok(read) => buffer.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Decoders say so when a compressed file is cut off: what came before is good.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.ended = true;
                    self.ending = Ending::CutOff;
                    return Ok(());
                }
                Err(error) => {
                    self.ended = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};

    use super::*;

    fn cut_behind_semicolon(bytes: &[u8]) -> Option<usize> {
        memchr::memrchr(b';', bytes).map(|at| at + 1)
    }

    #[test]
    fn blocks_tile_the_source_and_end_at_borders() {
        let text = b"a;bb;ccc;dddddddddddddd;e;f;rest";
        for block_bytes in 1..40 {
            let source = Source::of_bytes(*text).expect("bytes").in_blocks_of(block_bytes);
            let mut cutter = Cutter::new(&text[..], &source);
            let (mut buffer, mut seen) = (Buffer::default(), Vec::new());
            while let Some(place) = cutter.next(&mut buffer, cut_behind_semicolon).expect("memory does not fail") {
                assert_eq!(place.offset as usize, seen.len());
                assert!(place.last || buffer.bytes().ends_with(b";"), "{block_bytes}");
                seen.extend_from_slice(buffer.bytes());
            }
            assert_eq!(seen, text);
        }
    }

    #[test]
    fn a_record_without_an_end_is_refused_by_its_length_and_by_the_pool() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), [b"a;".to_vec(), b"x".repeat(100_000)].concat()).expect("room for 100 kB");
        let pool = |bytes| -> Arc<dyn MemoryPool> { Arc::new(GreedyMemoryPool::new(bytes)) };
        for (budget, expected) in [
            (Budget::new(pool(1 << 20), 1000), "no end within"),
            (Budget::new(pool(10_000), 1 << 20), "not enough memory to read it: "),
        ] {
            let source = Source::open_within(file.path(), None, &budget).expect("it was just written").in_blocks_of(64);
            for threads in [1, 2, 5] {
                let read = parse_blocks(&source, threads, cut_behind_semicolon, |block| block.bytes.len(), |_| Ok(()));
                let error = read.err().map(|error| error.to_string()).unwrap_or_default();
                assert!(error.contains(expected), "{error}");
            }
            assert_eq!(budget.pool().reserved(), 0);
        }
    }

    #[test]
    fn results_come_in_order_on_any_number_of_threads() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        let line = b"0123456789;".repeat(1_300_000);
        io::Write::write_all(&mut file, &line).expect("room for 14 MB");
        let source = Source::open(file.path(), None).expect("it was just written");
        for threads in [1, 2, 5] {
            let mut end = 0;
            let ending = parse_blocks(
                &source,
                threads,
                cut_behind_semicolon,
                |block| (block.offset, block.bytes.len() as u64),
                |(offset, length)| {
                    assert_eq!(offset, end);
                    end += length;
                    Ok(())
                },
            );
            assert!(matches!(ending, Ok(Ending::Whole)));
            assert_eq!(end as usize, line.len());
        }
    }

    #[test]
    fn files_follow_each_other_and_say_how_they_end() {
        let texts: [&[u8]; 5] = [b"a;bb;ccc", b";", b"dddd;e;", b"x", b"f;g"];
        let mut contents: Vec<Vec<u8>> = texts.iter().map(|text| text.to_vec()).collect();
        contents.push(b"0123456789;".repeat(500_000));
        // Several blocks of zstd, the last one cut.
        let numbers: String =
            (0..100_000_u64).map(|number| format!("{};", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let mut cut_off = zstd::encode_all(numbers.as_bytes(), 1).expect("memory does not fail");
        cut_off.truncate(cut_off.len() - 2);
        contents.insert(3, cut_off);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let sources: Vec<Source> = (0..contents.len())
            .map(|number| {
                let path = directory.path().join(number.to_string());
                std::fs::write(&path, &contents[number]).expect("room for 6 MB");
                Source::open(&path, None).expect("it was just written")
            })
            .collect();
        let sources: Vec<&Source> = sources.iter().collect();
        for threads in [1, 2, 5] {
            let mut seen: Vec<Vec<u8>> = vec![Vec::new(); contents.len()];
            let mut endings = Vec::new();
            let take = |file: usize, bytes: Vec<u8>, ending| {
                assert_eq!(file, endings.len());
                seen[file].extend(bytes);
                endings.extend(ending);
                Ok(())
            };
            parse_files(&sources, threads, cut_behind_semicolon, |block| block.bytes.to_vec(), take)
                .expect("all are read");
            let whole = (0..contents.len()).map(|file| if file == 3 { Ending::CutOff } else { Ending::Whole });
            assert_eq!(endings, whole.collect::<Vec<_>>());
            assert!((0..contents.len()).all(|file| file == 3 || seen[file] == contents[file]));
            assert!(seen[3].len() > 1_000_000 && numbers.as_bytes().starts_with(&seen[3]));
        }
    }
}
