//! Where the bytes of a trace come from: a file, a compressed file, a pipe, standard input.
//!
//! Importers see decompressed bytes only. A source is opened once to look at its head (recognition goes by content,
//! never by extension) and again, from the start, by the importer that claimed it.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::execution::memory_pool::MemoryReservation;

use super::budget::{self, Budget, Refusal};
use super::decompress::{Damage, Gzip, Zstd};
use super::temporary::{TemporaryFolder, no_copy};
use crate::error::ImportError;

/// Bytes of a block: large enough that cutting and handing over cost nothing, small beside the tables, and beside the file at
/// whose end threads wait for the last one.
const BLOCK_BYTES: usize = 2 << 20;

/// How much of a trace is copied at once.
const COPY_BYTES: usize = 1 << 20;

/// How many decompressed bytes recognition may look at.
const HEAD_BYTES: usize = 64 << 10;

/// How many of a text whose first two lines do not fit into those: a record may have a long name.
const LONG_HEAD_BYTES: usize = 1 << 20;

/// Stored bytes that are read at once: a block of zstd fits.
const STORED_BYTES: usize = 160 << 10;

/// Receives how far an import is. Called from reading threads, a few times per megabyte at most.
pub trait Progress: Send + Sync {
    /// `read` bytes of `total` (as stored, so compressed bytes of a compressed file) of `source` are read.
    fn advanced(&self, source: &Path, read: u64, total: Option<u64>);
}

/// The bytes of a trace.
#[derive(Clone)]
pub struct Source {
    path: PathBuf,
    input: Input,
    compression: Compression,
    stored_bytes: Option<u64>,
    head: Arc<[u8]>,
    head_is_whole: bool,
    /// Whether a mark of UTF-8 stands before everything else; it is no part of the trace.
    has_mark: bool,
    block_bytes: usize,
    progress: Option<Arc<dyn Progress>>,
    budget: Budget,
    /// What its bytes take as long as the source lives.
    memory: Arc<MemoryReservation>,
    /// What readers met in the compressed stream.
    damage: Damage,
}

/// Some editors put it before a text.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Clone)]
enum Input {
    File,
    /// Standard input or a pipe, read to its end, or bytes that a program holds.
    Memory(Bytes),
    /// A file that was made from the one that the user named, in a temporary folder.
    Made(Arc<MadeFile>),
}

/// A file in a temporary folder of its own.
#[derive(Debug)]
pub struct MadeFile {
    pub(crate) path: PathBuf,
    pub(crate) _folder: TemporaryFolder,
}

/// Bytes that are shared by all readers of a source.
#[derive(Clone)]
struct Bytes(Arc<Vec<u8>>);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Source {
    /// Opens a file, a pipe, or standard input for `-`, and reads its head.
    ///
    /// # Errors
    /// [`ImportError::Io`] when it cannot be read, [`ImportError::Empty`] when it has no bytes.
    pub fn open(path: &Path, progress: Option<Arc<dyn Progress>>) -> Result<Source, ImportError> {
        Source::open_within(path, progress, &Budget::unlimited())
    }

    /// [`Source::open`], with the memory for bytes that are kept reserved in a pool.
    ///
    /// # Errors
    /// As [`Source::open`]; [`ImportError::Memory`] for a pipe that holds more than the pool has.
    pub fn open_within(
        path: &Path,
        progress: Option<Arc<dyn Progress>>,
        budget: &Budget,
    ) -> Result<Source, ImportError> {
        let failed = |source| error_of(path, source);
        let held = |bytes: Box<dyn Read + Send>| -> Result<(Vec<u8>, Arc<MemoryReservation>), ImportError> {
            let memory = budget.hold(format!("the bytes of {}", path.display()));
            let mut all = Vec::new();
            read_to_end(&mut budget.deadline().bounds(bytes), 0, &memory, &mut all).map_err(failed)?;
            Ok((all, Arc::new(memory)))
        };
        if path == Path::new("-") {
            let (bytes, memory) = held(Box::new(io::stdin()))?;
            return Ok(Source { progress, memory, budget: budget.clone(), ..Source::of(path, bytes)? });
        }
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if !metadata.is_file() && !metadata.is_dir() {
            // A pipe (`<(zcat …)`) gives its bytes once, and a source is read from the start several times.
            let (bytes, memory) = held(Box::new(File::open(path).map_err(failed)?))?;
            return Ok(Source { progress, memory, budget: budget.clone(), ..Source::of(path, bytes)? });
        }
        let source = Source::new(path, Input::File, Some(metadata.len()), progress)?;
        let memory = Arc::new(budget.hold(format!("the bytes of {}", path.display())));
        Ok(Source { memory, budget: budget.clone(), ..source })
    }

    /// The bytes of a trace that a program holds, as if they came from standard input.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn of_bytes(bytes: impl Into<Arc<[u8]>>) -> Result<Source, ImportError> {
        Source::of(Path::new("-"), bytes.into().to_vec())
    }

    fn of(path: &Path, bytes: Vec<u8>) -> Result<Source, ImportError> {
        let length = bytes.len() as u64;
        Source::new(path, Input::Memory(Bytes(Arc::new(bytes))), Some(length), None)
    }

    /// The bytes of a file that was made from the one at `path`; errors and tables name `path`.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub(crate) fn of_made_file(
        path: &Path,
        made: MadeFile,
        progress: Option<Arc<dyn Progress>>,
        budget: &Budget,
    ) -> Result<Source, ImportError> {
        let failed = |source| ImportError::Io { path: made.path.clone(), source };
        let length = std::fs::metadata(&made.path).map_err(failed)?.len();
        let source = Source::new(path, Input::Made(Arc::new(made)), Some(length), progress)?;
        let memory = Arc::new(budget.hold(format!("the bytes of {}", path.display())));
        Ok(Source { memory, budget: budget.clone(), ..source })
    }

    fn new(
        path: &Path,
        input: Input,
        stored_bytes: Option<u64>,
        progress: Option<Arc<dyn Progress>>,
    ) -> Result<Source, ImportError> {
        let failed = |source| ImportError::Io { path: path.to_owned(), source };
        let mut source = Source {
            path: path.to_owned(),
            input,
            compression: Compression::None,
            stored_bytes,
            head: Arc::from([]),
            head_is_whole: false,
            has_mark: false,
            block_bytes: BLOCK_BYTES,
            progress: None,
            memory: Arc::new(Budget::unlimited().hold("bytes of a program")),
            budget: Budget::unlimited(),
            damage: Damage::default(),
        };
        let (magic, is_whole) = source.read_head().map_err(failed)?;
        if magic.is_empty() {
            return Err(ImportError::Empty { path: path.to_owned() });
        }
        source.compression = match magic.as_slice() {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            _ => Compression::None,
        };
        let (mut head, mut is_whole) = match source.compression {
            Compression::None => (magic, is_whole),
            _ => source.read_head().map_err(failed)?,
        };
        if head.starts_with(UTF8_MARK) {
            source.has_mark = true;
            (head, is_whole) = source.read_head().map_err(failed)?;
        }
        if head.is_empty() {
            return Err(ImportError::Empty { path: path.to_owned() });
        }
        (source.head, source.head_is_whole) = (head.into(), is_whole);
        source.progress = progress;
        Ok(source)
    }

    /// The same bytes, read in blocks of about this size, so that tests of block borders need no large texts.
    #[must_use]
    pub fn in_blocks_of(self, block_bytes: usize) -> Source {
        Source { block_bytes: block_bytes.max(1), ..self }
    }

    /// How many bytes a reader on several threads takes at once.
    pub(super) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// The path as the user gave it (`-` for standard input).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The first decompressed bytes, without a mark of UTF-8: at most 64 KiB, or 1 MiB of a text with longer lines.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Whether [`Source::head`] is all there is.
    pub fn head_is_whole(&self) -> bool {
        self.head_is_whole
    }

    /// Number of decompressed bytes, where it is known without reading; checks of counts rely on it.
    pub fn known_bytes(&self) -> Option<u64> {
        let stored = (self.compression == Compression::None).then_some(self.stored_bytes).flatten();
        stored.map(|bytes| bytes.saturating_sub(self.begin()))
    }

    /// The offset of the first byte of [`Source::reader`] in the decompressed file: after a byte order mark, else 0.
    pub fn begin(&self) -> u64 {
        if self.has_mark { UTF8_MARK.len() as u64 } else { 0 }
    }

    /// The damage that readers have found so far in the compressed stream: where it breaks off, or does not decode.
    pub fn damage(&self) -> Option<String> {
        self.damage.found()
    }

    /// The name without directory, compression and extension: `wavefront` of `runs/wavefront.tfp.zst`.
    pub fn stem(&self) -> String {
        stem(&self.path)
    }

    /// The decompressed bytes, from the start.
    ///
    /// # Errors
    /// [`ImportError::Io`] when the file went away.
    pub fn reader(&self) -> Result<Box<dyn Read + Send>, ImportError> {
        self.open_reader().map_err(|source| self.io_error(source))
    }

    /// All decompressed bytes at once, for formats that are small or need random access.
    ///
    /// # Errors
    /// [`ImportError::Io`] when reading or decompressing fails.
    pub fn read_all(&self) -> Result<Vec<u8>, ImportError> {
        let mut bytes = Vec::new();
        self.read_all_into(&mut bytes).map_err(|source| self.io_error(source))?;
        Ok(bytes)
    }

    /// All decompressed bytes; after an error `bytes` holds those before it. They are charged as long as the source lives.
    pub(crate) fn read_all_into(&self, bytes: &mut Vec<u8>) -> io::Result<()> {
        read_to_end(&mut self.open_reader()?, self.known_bytes().unwrap_or(0) as usize, &self.memory, bytes)
    }

    /// What the source may take.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// A file that belongs to this one, within the same budget.
    ///
    /// # Errors
    /// As [`Source::open_within`].
    pub(crate) fn beside(&self, path: &Path) -> Result<Source, ImportError> {
        Source::open_within(path, None, &self.budget)
    }

    /// Reserves memory for as long as the source lives.
    ///
    /// # Errors
    /// [`ImportError::Memory`] when the pool has no more.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), ImportError> {
        budget::grow(&self.memory, bytes).map_err(|source| self.io_error(source))
    }

    /// Gives back what [`Source::charge`] asked for.
    pub(crate) fn release(&self, bytes: usize) {
        self.memory.shrink(bytes.min(self.memory.size()));
    }

    /// A file with the decompressed bytes, for libraries that insist on one: the file itself, else a temporary copy that
    /// lives as long as the returned value.
    ///
    /// # Errors
    /// [`ImportError::Io`] when reading or decompressing fails, [`ImportError::Unusable`] when the copy cannot be written.
    pub fn local_file(&self) -> Result<LocalFile, ImportError> {
        if self.compression == Compression::None && matches!(self.input, Input::File) {
            return Ok(LocalFile::Original(self.path.clone()));
        }
        if let (Compression::None, Input::Made(made)) = (self.compression, &self.input) {
            return Ok(LocalFile::Made(Arc::clone(made)));
        }
        let mut reader = self.reader()?;
        let not_written = |error: io::Error| no_copy(&self.path, &error);
        let folder = TemporaryFolder::new().map_err(not_written)?;
        let path = folder.file("copy");
        let mut copy = File::create(&path).map_err(not_written)?;
        // Not `io::copy`: an error of the trace and one of the disk are different things.
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.io_error(error)),
            };
            copy.write_all(&buffer[..count]).map_err(not_written)?;
        }
        Ok(LocalFile::Copy { path, _folder: folder })
    }

    /// An I/O error of this source, with its path.
    pub fn io_error(&self, source: io::Error) -> ImportError {
        error_of(&self.path, source)
    }

    /// The head, and whether it is all there is.
    fn read_head(&self) -> io::Result<(Vec<u8>, bool)> {
        let mut head = Vec::new();
        let mut reader = self.open_reader()?;
        let mut newlines = 0;
        loop {
            let before = head.len();
            match reader.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head) {
                // A compressed file that is cut off still has a head; the importer meets the error at its place.
                Err(error) if head.is_empty() => return Err(error),
                Err(_) => return Ok((head, true)),
                Ok(read) if read < HEAD_BYTES => return Ok((head, true)),
                Ok(_) => {}
            }
            newlines += memchr::memchr_iter(b'\n', &head[before..]).count();
            let is_text = memchr::memchr(0, &head[before..]).is_none();
            if newlines >= 2 || !is_text || head.len() >= LONG_HEAD_BYTES {
                return Ok((head, false));
            }
        }
    }

    fn open_reader(&self) -> io::Result<Box<dyn Read + Send>> {
        let stored: Box<dyn Read + Send> = match &self.input {
            Input::File => Box::new(File::open(&self.path)?),
            Input::Memory(bytes) => Box::new(Cursor::new(bytes.clone())),
            Input::Made(made) => Box::new(File::open(&made.path)?),
        };
        let counted = Counted {
            inner: stored,
            path: self.path.clone(),
            read: AtomicU64::new(0),
            total: self.stored_bytes,
            progress: self.progress.clone(),
        };
        let mut reader: Box<dyn Read + Send> = match self.compression {
            Compression::None => Box::new(counted),
            Compression::Gzip => Box::new(Gzip::new(BufReader::new(counted), self.damage.clone())),
            Compression::Zstd => {
                Box::new(Zstd::new(BufReader::with_capacity(STORED_BYTES, counted), self.damage.clone())?)
            }
        };
        if self.has_mark {
            reader.read_exact(&mut [0; UTF8_MARK.len()])?;
        }
        Ok(self.budget.deadline().bounds(reader))
    }
}

/// What went wrong in a reader: a refusal of the budget, or the system.
fn error_of(path: &Path, error: io::Error) -> ImportError {
    let path = path.to_owned();
    match error.downcast::<Refusal>() {
        Ok(Refusal::Memory(what)) => ImportError::Memory { path, what },
        Ok(refusal @ Refusal::Record { .. }) => ImportError::TooLong { path, what: refusal.to_string() },
        Err(source) => ImportError::Io { path, source },
    }
}

/// Reads to the end and asks for each stretch before it is read. A wrong length reserves nothing that is not there.
fn read_to_end(
    reader: &mut dyn Read,
    expected: usize,
    memory: &MemoryReservation,
    bytes: &mut Vec<u8>,
) -> io::Result<()> {
    const STRETCH: usize = 1 << 20;
    budget::grow(memory, expected)?;
    let mut asked = expected;
    bytes.reserve_exact(expected);
    loop {
        if bytes.len() + STRETCH > asked {
            // Growing vectors double their room; what is not filled is not resident.
            budget::grow(memory, STRETCH)?;
            asked += STRETCH;
        }
        if Read::take(&mut *reader, STRETCH as u64).read_to_end(bytes)? == 0 {
            return Ok(());
        }
    }
}

/// A file on disk with the decompressed bytes of a source.
#[derive(Debug)]
pub enum LocalFile {
    /// The trace itself.
    Original(PathBuf),
    /// A temporary copy.
    Copy {
        /// Where it is.
        path: PathBuf,
        /// It goes with it.
        #[doc(hidden)]
        _folder: TemporaryFolder,
    },
    /// What was made from the trace.
    Made(Arc<MadeFile>),
}

impl LocalFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        match self {
            LocalFile::Original(path) => path,
            LocalFile::Copy { path, .. } => path,
            LocalFile::Made(made) => &made.path,
        }
    }
}

/// The name without directory, compression and extension; `stdin` for `-`.
pub(crate) fn stem(path: &Path) -> String {
    if path == Path::new("-") {
        return "stdin".to_owned();
    }
    let mut name = path.file_name().map_or_else(|| "trace".into(), |name| name.to_string_lossy().into_owned());
    // A mapping stands for the data that it describes.
    if let Some(data) = name.strip_suffix(".tq.toml") {
        name = data.to_owned();
    }
    for suffix in [".gz", ".zst", ".zstd"] {
        if let Some(inner) = name.strip_suffix(suffix) {
            name = inner.to_owned();
            break;
        }
    }
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem.to_owned(),
        _ => name,
    }
}

struct Counted {
    inner: Box<dyn Read + Send>,
    path: PathBuf,
    read: AtomicU64,
    total: Option<u64>,
    progress: Option<Arc<dyn Progress>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if let Some(progress) = &self.progress {
            let read = self.read.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
            progress.advanced(&self.path, read, self.total);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_of_utf8_is_no_part_of_a_trace() {
        let source = Source::of_bytes(*b"\xef\xbb\xbf{}").expect("bytes");
        assert_eq!((source.head(), source.known_bytes(), source.begin()), (&b"{}"[..], Some(2), 3));
        assert_eq!(source.read_all().expect("memory"), b"{}");
        assert!(matches!(Source::of_bytes(*b"\xef\xbb\xbf"), Err(ImportError::Empty { .. })));
    }

    #[test]
    fn stems_lose_compression_and_extension() {
        let check = |path: &str, expected: &str| assert_eq!(stem(Path::new(path)), expected);
        check("runs/wavefront.tfp.zst", "wavefront");
        check("a.b.json", "a.b");
        check(".hidden", ".hidden");
        check("plain", "plain");
        check("log.csv.gz.tq.toml", "log");
        check("-", "stdin");
    }
}
