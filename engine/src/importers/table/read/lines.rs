//! Lines: a window over a stream of text that grows until a record is complete in it.
//!
//! ```text
//! buffer   ....already used....[unread ........................]free
//!                              ^ at                            ^ filled
//! ```
//! Records borrow from the window, so no line is copied; the unread rest moves to the front before the window is filled
//! again. A record beyond [`RECORD_BYTES`] is damage, not a reason to read the whole file into memory.

use std::io::{self, Read};

/// How much is read at once.
const BLOCK_BYTES: usize = 256 << 10;

/// The longest record.
pub(super) const RECORD_BYTES: usize = 16 << 20;

pub(super) struct Window {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    at_end: bool,
}

impl Window {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> Window {
        Window { reader, buffer: vec![0; BLOCK_BYTES], at: 0, filled: 0, at_end: false }
    }

    /// What is not used yet.
    pub(super) fn unread(&self) -> &[u8] {
        &self.buffer[self.at..self.filled]
    }

    /// Whether nothing follows the unread bytes.
    pub(super) fn at_end(&self) -> bool {
        self.at_end
    }

    /// Steps over bytes that were used.
    pub(super) fn used(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.filled);
    }

    /// Reads more. Afterwards either more bytes are unread or the end is reached.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        if self.buffer.len() - self.filled < BLOCK_BYTES / 2 {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.at_end = true,
                Ok(count) => self.filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grows_until_the_record_is_complete() {
        let text = vec![b'x'; 3 * BLOCK_BYTES];
        let mut window = Window::new(Box::new(io::Cursor::new(text)));
        while !window.at_end() {
            window.fill().unwrap();
        }
        assert_eq!(window.unread().len(), 3 * BLOCK_BYTES);
        window.used(5);
        assert_eq!(window.unread().len(), 3 * BLOCK_BYTES - 5);
    }
}
