//! `physical.txt`: the buffers that Conveyors actually sent; all PEs write to one pipe.
//!
//! ```text
//! local_send, 2000, 0, 2                          type, bytes, source, target
//! nonblock_send, 16local_send, 400, 3, 0          two lines that were written into each other: both are lost
//! slurmstepd: error: *** STEP 1.0 CANCELLED ***   somebody else's
//! ```
//! Source and target are hops, not ends: with several nodes a message goes to its column first, then along it.

use super::line::Fields;
use crate::trace::Block;

/// What happened to a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    LocalSend,
    NonblockSend,
    NonblockProgress,
}

pub(super) const TYPES: [(&str, Type); 3] = [
    ("local_send", Type::LocalSend),
    ("nonblock_send", Type::NonblockSend),
    ("nonblock_progress", Type::NonblockProgress),
];

/// A buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buffer {
    pub(super) kind: Type,
    pub(super) bytes: i64,
    pub(super) source: i32,
    pub(super) target: i32,
}

/// The buffers of a block.
#[derive(Default)]
pub(super) struct Buffers {
    pub(super) buffers: Vec<Buffer>,
    /// Lines with something in them.
    pub(super) lines: u64,
    /// Lines of others.
    pub(super) foreign: u64,
    /// Lines that are torn pieces of ours.
    pub(super) torn: u64,
    /// The first torn line.
    pub(super) example: Option<String>,
}

/// Parses a block.
pub(super) fn parse(block: Block<'_>) -> Buffers {
    let mut buffers = Buffers::default();
    let ends_whole = block.bytes.last() == Some(&b'\n');
    let lines = block.bytes.split(|byte| *byte == b'\n');
    let mut lines = lines.map(<[u8]>::trim_ascii).peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        buffers.lines += 1;
        // A last line without its end is torn: its last number may be cut.
        let is_whole = ends_whole || lines.peek().is_some();
        match buffer(line).filter(|_| is_whole) {
            Some(buffer) => buffers.buffers.push(buffer),
            None if is_piece(line) || (!is_whole && is_beginning(line)) => {
                buffers.torn += 1;
                buffers.example.get_or_insert_with(|| super::line::shown(line));
            }
            None => buffers.foreign += 1,
        }
    }
    buffers
}

/// A line, if it is whole.
pub(super) fn buffer(line: &[u8]) -> Option<Buffer> {
    let (rest, kind) = TYPES.iter().find_map(|(name, kind)| Some((line.strip_prefix(name.as_bytes())?, *kind)))?;
    let rest = rest.trim_ascii_start().strip_prefix(b",")?;
    let mut fields = Fields::new(rest);
    let bytes = fields.integer().filter(|bytes| *bytes >= 0 && fields.comma())?;
    let source = fields.pe().filter(|_| fields.comma())?;
    let target = fields.pe()?;
    // A comma at the end is all that may follow.
    (!fields.comma() && fields.ended()).then_some(Buffer { kind, bytes, source, target })
}

/// Whether a line is the beginning of the name of a type.
fn is_beginning(line: &[u8]) -> bool {
    TYPES.iter().any(|(name, _)| name.as_bytes().starts_with(line))
}

/// Whether a line that is no buffer holds a piece of one: a type, or nothing but numbers and commas.
fn is_piece(line: &[u8]) -> bool {
    let has_type = TYPES.iter().any(|(name, _)| memchr::memmem::find(line, name.as_bytes()).is_some());
    has_type || line.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_ours_torn_or_foreign() {
        let text = b"Running\nlocal_send, 2000, 0, 2\n nonblock_send,8,1,0,\r\nnonblock_send, 16local_send, 400, 3, 0\n00, 3, 5\n\nlocal_send, 5, 5, 5";
        let buffers = parse(Block { bytes: text, offset: 0, last: true });
        assert_eq!(
            buffers.buffers,
            [
                Buffer { kind: Type::LocalSend, bytes: 2000, source: 0, target: 2 },
                Buffer { kind: Type::NonblockSend, bytes: 8, source: 1, target: 0 }
            ]
        );
        assert_eq!((buffers.lines, buffers.foreign, buffers.torn), (6, 1, 3));
        let cut = parse(Block { bytes: b"local_send, 5, 5, 5\nnonbl", offset: 0, last: true });
        assert_eq!((cut.buffers.len(), cut.foreign, cut.torn), (1, 0, 1));
        assert_eq!(buffer(b"local_sends, 1, 2, 3"), None);
        assert_eq!(buffer(b"local_send, 1, 2, 3, 4"), None);
    }
}
