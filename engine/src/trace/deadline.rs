//! The deadline for reading a trace.
//!
//! A file may take any time to read: a database view that never ends, a few kilobytes that decompress to terabytes.
//! Everything that reads checks the deadline now and then: readers of bytes at each block, SQLite every few thousand
//! steps, and code that waits for another program. Whether a reader then reports an error or counts lost records does not
//! matter: [`open`](crate::open) checks last, and then the trace is [late](ImportError::Late).

use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::ImportError;

/// A moment, and how long it was away; the default is never.
#[derive(Debug, Clone, Copy, Default)]
pub struct Deadline(Option<(Instant, Duration)>);

impl Deadline {
    /// So long from now on; never, without a limit.
    pub fn after(limit: Option<Duration>) -> Deadline {
        Deadline(limit.and_then(|limit| Some((Instant::now().checked_add(limit)?, limit))))
    }

    /// Whether the time is over.
    pub fn is_over(self) -> bool {
        self.0.is_some_and(|(end, _)| end <= Instant::now())
    }

    /// Whether it ever is.
    pub fn is_set(self) -> bool {
        self.0.is_some()
    }

    /// How much time is left; `None` without a limit.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0.map(|(end, _)| end.saturating_duration_since(Instant::now()))
    }

    /// Fails when the deadline has passed.
    ///
    /// # Errors
    /// [`ImportError::Late`], of the trace at `path`.
    pub(crate) fn check(self, path: &Path) -> Result<(), ImportError> {
        match self.0 {
            Some((_, limit)) if self.is_over() => Err(ImportError::Late { path: path.to_owned(), limit }),
            _ => Ok(()),
        }
    }

    /// A reader that fails when the time is over.
    pub(super) fn bounds<'a>(self, reader: Box<dyn Read + Send + 'a>) -> Box<dyn Read + Send + 'a> {
        if self.is_set() { Box::new(Bounded { reader, deadline: self }) } else { reader }
    }
}

struct Bounded<R> {
    reader: R,
    deadline: Deadline,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.deadline.is_over() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the time for reading is over"));
        }
        self.reader.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_end_when_the_time_is_over() {
        let read = |deadline: Deadline| {
            let mut bytes = Vec::new();
            deadline.bounds(Box::new(&b"abc"[..])).read_to_end(&mut bytes).map(|_| bytes).map_err(|error| error.kind())
        };
        let over = Deadline::after(Some(Duration::ZERO));
        assert_eq!(read(over), Err(io::ErrorKind::TimedOut));
        assert!(matches!(over.check(Path::new("a")), Err(ImportError::Late { .. })));
        for deadline in [
            Deadline::default(),
            Deadline::after(Some(Duration::MAX)),
            Deadline::after(Some(Duration::from_secs(3600))),
        ] {
            assert_eq!(read(deadline), Ok(b"abc".to_vec()));
            assert!(deadline.check(Path::new("a")).is_ok());
        }
    }
}
