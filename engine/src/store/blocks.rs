//! Blocks: the bytes of a file with a checksum for each 256 KiB of them.
//!
//! Parquet's own checksums are per page and cover neither the footer nor the indexes. A commit has one for each block of a file, so
//! that whatever is read is known to be what was written before anything interprets it, and no more than that needs to be read. Behind a
//! URL, a few blocks that follow are asked for with one that is wanted: each request takes its time, whatever it brings.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::reader::{ChunkReader, Length};
use datafusion::physical_plan::metrics::Count;

use super::log::{BLOCK_BYTES, StoredFile};
use crate::error::ImportError;
use crate::remote::Folder;

/// A file that is written, and the checksums of its blocks so far.
pub(super) struct Summed {
    file: File,
    bytes: u64,
    sums: String,
    block: crc32fast::Hasher,
    in_block: u64,
}

impl Summed {
    pub(super) fn new(file: File) -> Summed {
        Summed { file, bytes: 0, sums: String::new(), block: crc32fast::Hasher::new(), in_block: 0 }
    }

    /// The file, its length and its checksums.
    pub(super) fn finish(mut self) -> (File, u64, String) {
        if self.in_block > 0 {
            self.end_block();
        }
        (self.file, self.bytes, self.sums)
    }

    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        self.sums.push_str(&format!("{:08x}", block.finalize()));
        self.in_block = 0;
    }
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        let mut rest = &bytes[..written];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min((BLOCK_BYTES - self.in_block) as usize));
            self.block.update(now);
            self.in_block += now.len() as u64;
            if self.in_block == BLOCK_BYTES {
                self.end_block();
            }
            rest = later;
        }
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Blocks that are kept of a file while it is read: the pages of some columns are read in turn, and a block holds several.
const KEPT: usize = 24;
/// Blocks that are kept of all files behind URLs: 64 MiB. Groups of rows of one file share them.
const KEPT_OF_REMOTE: usize = 256;
/// Blocks that are asked for at once behind URLs.
const TOGETHER: u64 = 4;

/// The blocks that were read last, the newest at the end, each with its file and place.
static OF_REMOTE: Mutex<Kept> = Mutex::new(Vec::new());
type Kept = Vec<(Arc<str>, u64, Bytes)>;

/// A file that is read, compared with its checksums.
#[derive(Clone)]
pub(super) struct Verified {
    file: Place,
    about: Arc<StoredFile>,
    /// Counts the bytes that are read.
    count: Option<Count>,
}

/// Where a file is.
#[derive(Clone)]
enum Place {
    /// With the blocks that were read last, the newest at the end.
    Disk(Arc<File>, Arc<Mutex<Vec<(u64, Bytes)>>>),
    Remote(RemoteFile),
}

/// A file behind a URL.
#[derive(Debug, Clone)]
pub(super) struct RemoteFile {
    pub(super) folder: Arc<Folder>,
    /// In the folder.
    pub(super) name: String,
    /// The whole path, which no other file has.
    pub(super) path: Arc<str>,
    /// Why it could not be read: Parquet's readers pass on a text at most.
    pub(super) failure: Arc<Mutex<Option<ImportError>>>,
}

impl Verified {
    pub(super) fn new(file: File, about: Arc<StoredFile>) -> Verified {
        Verified { file: Place::Disk(Arc::new(file), Arc::default()), about, count: None }
    }

    pub(super) fn remote(file: RemoteFile, about: Arc<StoredFile>) -> Verified {
        Verified { file: Place::Remote(file), about, count: None }
    }

    /// Counts what it reads from now on.
    pub(super) fn counting(self, count: Option<Count>) -> Verified {
        Verified { count, ..self }
    }

    /// The bytes from `start`: read in whole blocks, so that they can be compared.
    fn read(&self, start: u64, length: u64) -> io::Result<Bytes> {
        let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "it is shorter than what it should hold");
        let end = start.checked_add(length).filter(|end| *end <= self.about.bytes).ok_or_else(cut)?;
        if length == 0 {
            return Ok(Bytes::new());
        }
        let within = |place: u64| {
            let first = place * BLOCK_BYTES;
            (start.saturating_sub(first) as usize, (end - first).min(BLOCK_BYTES) as usize)
        };
        let (first, last) = (start / BLOCK_BYTES, (end - 1) / BLOCK_BYTES);
        if first == last {
            let (from, to) = within(first);
            return Ok(self.block(first, first)?.slice(from..to));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(length).map_err(|_| cut())?);
        for place in first..=last {
            let (from, to) = within(place);
            bytes.extend_from_slice(&self.block(place, last)?[from..to]);
        }
        Ok(Bytes::from(bytes))
    }

    /// A block that is as it was written; those up to `last` will be wanted.
    fn block(&self, place: u64, last: u64) -> io::Result<Bytes> {
        let (file, kept) = match &self.file {
            Place::Disk(file, kept) => (file, kept),
            Place::Remote(file) => return self.block_of(file, place, last),
        };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(other, _)| *other == place) {
            let known = kept.remove(at);
            let bytes = known.1.clone();
            kept.push(known);
            return Ok(bytes);
        }
        let from = place * BLOCK_BYTES;
        let mut bytes = vec![0; (self.about.bytes - from).min(BLOCK_BYTES) as usize];
        read_at(file, &mut bytes, from)?;
        let bytes = self.compared(place, Bytes::from(bytes))?;
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push((place, bytes.clone()));
        Ok(bytes)
    }

    /// A block behind a URL, for which some that follow are asked for, too.
    fn block_of(&self, file: &RemoteFile, place: u64, last: u64) -> io::Result<Bytes> {
        let kept = || OF_REMOTE.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |place: u64| move |(path, other, _): &(Arc<str>, u64, Bytes)| *other == place && *path == file.path;
        let blocks = self.about.bytes.div_ceil(BLOCK_BYTES);
        let end = {
            let mut kept = kept();
            if let Some(at) = kept.iter().position(is_it(place)) {
                let known = kept.remove(at);
                let bytes = known.2.clone();
                kept.push(known);
                return Ok(bytes);
            }
            let wanted = place + 1..(last + 1).max(place + TOGETHER).min(place + KEPT_OF_REMOTE as u64 / 2).min(blocks);
            let known = wanted.clone().find(|place| kept.iter().any(is_it(*place)));
            known.unwrap_or(wanted.end)
        };
        // Others may read meanwhile.
        let (from, to) = (place * BLOCK_BYTES, (end * BLOCK_BYTES).min(self.about.bytes));
        let mut bytes = file.folder.range(&file.name, from, to, self.about.bytes).map_err(|error| {
            let text = error.to_string();
            file.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            io::Error::other(text)
        })?;
        let mut first = None;
        for place in place..end {
            let block = self.compared(place, bytes.split_to(bytes.len().min(BLOCK_BYTES as usize)))?;
            first.get_or_insert_with(|| block.clone());
            let mut kept = kept();
            if kept.len() == KEPT_OF_REMOTE {
                kept.remove(0);
            }
            kept.push((Arc::clone(&file.path), place, block));
        }
        first.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// The bytes of a block, if they are as they were written.
    fn compared(&self, place: u64, bytes: Bytes) -> io::Result<Bytes> {
        let sum = format!("{:08x}", crc32fast::hash(&bytes));
        let expected = usize::try_from(place).ok().and_then(|place| self.about.sums.get(place * 8..place * 8 + 8));
        if expected != Some(sum.as_str()) {
            let what = format!("the checksum of the 256 KiB from byte {} does not fit", place * BLOCK_BYTES);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if let Some(count) = &self.count {
            count.add(bytes.len());
        }
        Ok(bytes)
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], from: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, from)
}

#[cfg(not(unix))]
fn read_at(file: &File, bytes: &mut [u8], from: u64) -> io::Result<()> {
    use std::io::{Seek, SeekFrom};
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(from))?;
    file.read_exact(bytes)
}

impl Length for Verified {
    fn len(&self) -> u64 {
        self.about.bytes
    }
}

impl ChunkReader for Verified {
    type T = VerifiedReader;

    fn get_read(&self, start: u64) -> ParquetResult<VerifiedReader> {
        Ok(VerifiedReader { file: self.clone(), place: start, block: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.read(start, length as u64).map_err(|error| ParquetError::External(Box::new(error)))
    }
}

/// The bytes from somewhere to the end, block by block.
pub(super) struct VerifiedReader {
    file: Verified,
    place: u64,
    block: Bytes,
}

impl Read for VerifiedReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.block.is_empty() {
            let end = (self.place + 1).next_multiple_of(BLOCK_BYTES).min(self.file.about.bytes);
            if end <= self.place {
                return Ok(0);
            }
            self.block = self.file.read(self.place, end - self.place)?;
            self.place = end;
        }
        let length = bytes.len().min(self.block.len());
        bytes[..length].copy_from_slice(&self.block.split_to(length));
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_a_flipped_bit_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let content: Vec<u8> = (0..BLOCK_BYTES * 2 + 77).map(|place| (place * 7 % 251) as u8).collect();
        let mut summed = Summed::new(File::create(&path).unwrap());
        summed.write_all(&content).unwrap();
        let (_, bytes, sums) = summed.finish();
        assert_eq!((bytes, sums.len()), (content.len() as u64, 24));
        let about =
            StoredFile { path: String::new(), table: String::new(), bytes, groups: vec![], finishes: vec![], sums };
        let verified = || Verified::new(File::open(&path).unwrap(), Arc::new(about.clone()));
        for (start, length) in [(0, 10), (BLOCK_BYTES - 5, 10), (bytes - 7, 7), (3, bytes - 3), (0, 0)] {
            let expected = &content[start as usize..(start + length) as usize];
            assert_eq!(verified().get_bytes(start, length as usize).unwrap(), expected, "{start}");
        }
        let mut all = Vec::new();
        verified().get_read(9).unwrap().read_to_end(&mut all).unwrap();
        assert_eq!(all, content[9..]);
        assert!(verified().get_bytes(bytes - 7, 8).is_err());
        assert!(verified().get_bytes(u64::MAX, 8).is_err());
        let mut flipped = content;
        flipped[BLOCK_BYTES as usize + 3] ^= 4;
        std::fs::write(&path, flipped).unwrap();
        assert!(verified().get_bytes(0, 10).is_ok());
        assert!(verified().get_bytes(BLOCK_BYTES, 10).is_err());
    }
}
