//! The CSV of v3: comma and space between fields, no quotes ever, seconds with ten decimals.
//!
//! ```text
//! ID, ParentID, Kind, What, Where, Start, End
//! flit-0-msg-3-14508_PCIe.Switch[0], flit-0-msg-3-14508_e2e, flit, flit_inside_sw, PCIe.Switch[0], 0.0000145060, 0.0000146490
//! ```
//! A comma in an action (the column What) breaks its row for every other CSV reader; here the three fields on either side
//! tell where the action begins and ends.

use std::io::{BufRead, BufReader};

use datafusion::execution::memory_pool::MemoryReservation;
use rusqlite::types::ValueRef;

use super::chunk::{CHUNK_ROWS, Chunk, ChunkBuilder, RawTask};
use super::times::Unit;
use crate::error::ImportError;
use crate::trace::{Kept, Room, Source, Stats, findings};

const FIELDS: [&[u8]; 7] = [b"ID", b"ParentID", b"Kind", b"What", b"Where", b"Start", b"End"];
/// Fields on either side of the action.
const AROUND: usize = 3;
/// A line is not longer than this; what is, is no line of this format.
const LINE_BYTES: u64 = 1 << 20;

/// Whether the first line is the header.
pub(super) fn recognise(head: &[u8]) -> bool {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).eq(FIELDS)
}

/// Reads all rows.
pub(super) fn read(
    source: &Source,
    unit: Unit,
    stats: &mut Stats,
    memory: &MemoryReservation,
    room: &Room,
) -> Result<Vec<Kept<Chunk>>, ImportError> {
    let mut reader = BufReader::with_capacity(1 << 20, source.reader()?);
    let mut chunks = Vec::new();
    let mut rows = ChunkBuilder::default();
    let mut line = Vec::new();
    let mut number = 0u64;
    let mut before = 0;
    loop {
        line.clear();
        let read = std::io::Read::take(&mut reader, LINE_BYTES).read_until(b'\n', &mut line);
        match read {
            Ok(0) => break,
            Ok(_) => {}
            // A compressed file that was cut off: what is whole is kept.
            Err(error) if chunks.is_empty() && rows.rows() == 0 => return Err(source.io_error(error)),
            Err(error) => {
                stats.note(findings::TRUNCATED, 1, || format!("after line {number}: {error}"));
                break;
            }
        }
        number += 1;
        let is_whole = line.ends_with(b"\n");
        if !is_whole && line.len() as u64 == LINE_BYTES {
            stats.records(1);
            stats.left_out(findings::BAD_ROW, 1, || format!("line {number} does not end within {LINE_BYTES} bytes"));
            // What is left of it is no line.
            if let Err(error) = reader.skip_until(b'\n') {
                stats.note(findings::TRUNCATED, 1, || format!("after line {number}: {error}"));
                break;
            }
            continue;
        }
        let text = line.trim_ascii();
        if text.is_empty() || number == 1 {
            continue;
        }
        stats.records(1);
        let place = || format!("line {number}");
        match fields(text) {
            Some([.., end]) if !is_whole && end.len() != before => {
                stats.left_out(findings::TRUNCATED, 1, || format!("line {number} ends in the middle"));
            }
            Some([id, parent, kind, what, location, start, finish]) => {
                before = finish.len();
                if what.contains(&b',') {
                    stats.note(findings::COMMA_IN_ACTION, 1, || {
                        format!("line {number}: `{}`", String::from_utf8_lossy(what))
                    });
                }
                let location = String::from_utf8_lossy(location);
                let cell = ValueRef::Text;
                let task = RawTask {
                    id: cell(id),
                    parent: cell(parent),
                    kind: cell(kind),
                    what: cell(what),
                    location: Some(&location),
                    start: cell(start),
                    finish: cell(finish),
                };
                rows.push(&task, unit, stats, &place);
            }
            None => stats.left_out(findings::BAD_ROW, 1, || {
                format!(
                    "line {number} has fewer than 7 fields: `{}`",
                    String::from_utf8_lossy(&text[..text.len().min(80)])
                )
            }),
        }
        if rows.rows() == CHUNK_ROWS {
            chunks.push(Kept::keep(std::mem::take(&mut rows).finish(), memory, room)?);
        }
    }
    chunks.push(Kept::keep(rows.finish(), memory, room)?);
    Ok(chunks)
}

/// The fields of a line; commas too many belong to the action.
fn fields(line: &[u8]) -> Option<[&[u8]; 7]> {
    let mut commas = memchr::memchr_iter(b',', line);
    let first: Vec<usize> = commas.by_ref().take(AROUND).collect();
    let last: Vec<usize> = memchr::memrchr_iter(b',', line).take(AROUND).collect();
    let (&[a, b, c], &[f, e, d]) = (first.as_slice(), last.as_slice()) else { return None };
    (c < d).then(|| {
        [
            &line[..a],
            &line[a + 1..b],
            &line[b + 1..c],
            &line[c + 1..d],
            &line[d + 1..e],
            &line[e + 1..f],
            &line[f + 1..],
        ]
        .map(<[u8]>::trim_ascii)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_too_many_belongs_to_the_action() {
        let check = |line: &str, expected: Option<[&str; 7]>| {
            assert_eq!(fields(line.as_bytes()), expected.map(|fields| fields.map(str::as_bytes)), "{line}");
        };
        check("1, , k, w, L, 0.1, 0.2", Some(["1", "", "k", "w", "L", "0.1", "0.2"]));
        check("1, p, k, f(a, b), L, 0.1, 0.2", Some(["1", "p", "k", "f(a, b)", "L", "0.1", "0.2"]));
        check("1, p, k, w, L, 0.1", None);
        check("1", None);
    }
}
