//! What [`super::block`], [`super::damage`] and [`super::phases`] share: the place of a text in the file, what may follow an event,
//! and caches of the last look-ups.

use super::chunk::NO_WORD;

/// What follows a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Text that was not examined, or whose kind is only guessed.
    Unknown,
    /// An event, or the end of the array: the block was cut with care.
    Event,
    /// Nothing: the text ends.
    Nothing,
}

/// Where a place of a block's text stands in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'b> {
    pub(super) offset: u64,
    /// The bytes of the block, where its text differs from them.
    pub(super) damaged: Option<&'b [u8]>,
}

impl Place<'_> {
    pub(super) fn of(&self, at: usize) -> u64 {
        self.offset + self.damaged.map_or(at, |bytes| place_in(bytes, at)) as u64
    }
}

/// Where in `bytes` the byte `at` of their text stands: U+FFFD is three bytes, what it replaced may be one.
pub(super) fn place_in(bytes: &[u8], at: usize) -> usize {
    let (mut in_text, mut in_bytes) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        if at <= in_text + chunk.valid().len() {
            return in_bytes + (at - in_text);
        }
        in_text += chunk.valid().len() + char::REPLACEMENT_CHARACTER.len_utf8();
        in_bytes += chunk.valid().len() + chunk.invalid().len();
    }
    bytes.len()
}

/// A key that was looked up for a slice of the text, kept for the next event: neighbours have much in common.
pub(super) struct Recent<'t> {
    slice: &'t str,
    key: i32,
}

impl<'t> Recent<'t> {
    pub(super) fn new() -> Recent<'t> {
        Recent { slice: "", key: NO_WORD }
    }

    #[inline]
    pub(super) fn get(&mut self, slice: &'t str, look_up: impl FnOnce() -> i32) -> i32 {
        // Mostly it is the same text, and where there is none, the same place: nothing is compared.
        let is_same = std::ptr::eq(self.slice, slice) || self.slice == slice;
        if self.key == NO_WORD || !is_same {
            self.key = look_up();
            self.slice = slice;
        }
        self.key
    }
}
