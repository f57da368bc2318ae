//! A window that slides over the bytes of a binary dump: a stretch of them is in memory, the rest is still to come.

use std::io::{self, Read};

use super::lanes::Stop;
use crate::error::ImportError;
use crate::trace::{Ending, Source};

/// Bytes that are read at once.
const WINDOW_BYTES: usize = 1 << 20;

pub(super) struct Window<'s> {
    source: &'s Source,
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// The unread bytes are `buffer[at..end]`.
    at: usize,
    end: usize,
    /// Where `buffer[0]` stands in the source.
    offset: u64,
    ended: bool,
    pub(super) ending: Ending,
}

impl<'s> Window<'s> {
    pub(super) fn open(source: &'s Source) -> Result<Window<'s>, ImportError> {
        Ok(Window {
            source,
            reader: source.reader()?,
            buffer: Vec::new(),
            at: 0,
            end: 0,
            offset: 0,
            ended: false,
            ending: Ending::Whole,
        })
    }

    /// Where the next unread byte stands in the source.
    pub(super) fn position(&self) -> u64 {
        self.offset + self.at as u64
    }

    /// How many bytes are left at most; `None` for compressed sources.
    pub(super) fn bytes_left(&self) -> Option<u64> {
        self.source.known_bytes().map(|bytes| bytes.saturating_sub(self.position()))
    }

    /// The unread bytes that are in memory.
    #[inline]
    pub(super) fn available(&self) -> &[u8] {
        &self.buffer[self.at..self.end]
    }

    /// Steps over bytes that [`Window::available`] gave.
    #[inline]
    pub(super) fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.end);
    }

    /// Whether at least `bytes` unread bytes exist; they are in memory then.
    pub(super) fn has(&mut self, bytes: usize) -> Result<bool, ImportError> {
        if self.end - self.at >= bytes {
            return Ok(true);
        }
        self.buffer.copy_within(self.at..self.end, 0);
        self.offset += self.at as u64;
        self.end -= self.at;
        self.at = 0;
        while self.end < bytes && !self.ended {
            // Growing with what was read, not with what is asked for: a wrong length must not allocate.
            if self.end == self.buffer.len() {
                self.buffer.resize(self.buffer.len() + WINDOW_BYTES, 0);
            }
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Decoders say so when a compressed file is cut off: what came before is good.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.ended = true;
                    self.ending = Ending::CutOff;
                }
                Err(error) => return Err(self.source.io_error(error)),
            }
        }
        Ok(self.end >= bytes)
    }

    /// The next `N` bytes.
    pub(super) fn take<const N: usize>(&mut self, inside: impl FnOnce() -> String) -> Result<[u8; N], Stop> {
        if self.has(N)?
            && let Some(bytes) = self.available().first_chunk()
        {
            let bytes = *bytes;
            self.skip(N);
            return Ok(bytes);
        }
        Err(self.cut(inside()))
    }

    /// The source ends here, inside of something.
    pub(super) fn cut(&self, inside: String) -> Stop {
        Stop::Cut { at: self.offset + self.end as u64, inside }
    }
}
