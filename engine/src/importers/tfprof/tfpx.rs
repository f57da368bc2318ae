//! TFPX, the binary dump of Taskflow 4.1 and later: little-endian, versioned, microseconds, names cut to 31 bytes.
//!
//! ```text
//! file, 12 bytes:      "TFPX" | u16 version = 1 | u16 flags = 0 | u32 executors
//! executor, 24 bytes:  u64 uid | i64 origin_us | u32 string_table_bytes | u32 blocks
//! string table:        names back to back
//! block, 12 bytes:     u32 worker | u32 level | u32 tasks
//!   task:              varint delta_begin_us | varint duration_us | u32 name_offset | u8 (type << 5 | name_length)
//! ```
//! Life of the data: one pass through a window; times are counted from the executor's own origin and shifted by the
//! difference of the origins when the file is read. A name is looked up once per place in the string table.

use std::collections::HashMap;

use super::lanes::{Executor, Lane, PIECE_TASKS, Rows, Stop, Trace, note_not_utf8};
use super::types;
use super::window::Window;
use crate::error::ImportError;
use crate::trace::{Ending, Stats, findings};

/// The first bytes of a file.
pub(super) const MAGIC: &[u8; 4] = b"TFPX";
const VERSION: u16 = 1;

/// Workers are hardware threads, levels are stack frames: more is damage.
const WORKERS_MAX: u32 = 1 << 16;
const LEVELS_MAX: u32 = 1 << 20;

/// The least and the greatest length of a task.
const TASK_BYTES_MIN: usize = 7;
const TASK_BYTES_MAX: usize = 25;

/// Names are cut to this many bytes.
pub(super) const NAME_BYTES: usize = 31;

const NS_PER_US: i64 = 1_000;

/// Reads everything into `trace`.
pub(super) fn read(window: &mut Window<'_>, trace: &mut Trace, stats: &mut Stats) -> Result<(), Stop> {
    let head: [u8; 12] = window.take(|| "the head of the file".to_owned())?;
    let (version, flags) = (u16::from_le_bytes([head[4], head[5]]), u16::from_le_bytes([head[6], head[7]]));
    if version != VERSION {
        return Err(trace.damaged(4, format!("TFPX version {version}; version {VERSION} is known")).into());
    }
    if flags != 0 {
        return Err(trace.damaged(6, format!("TFPX flags {flags:#06x}; none are known")).into());
    }
    let executors = read_u32(&head, 8);
    let mut reader = Reader { window, trace, stats, strings: Vec::new(), names: HashMap::new() };
    for number in 0..executors {
        reader.executor(number)?;
    }
    if reader.window.has(1)? && reader.window.ending == Ending::Whole {
        let at = reader.window.position();
        return Err(trace.damaged(at, "bytes follow the last executor").into());
    }
    Ok(())
}

struct Reader<'r, 's> {
    window: &'r mut Window<'s>,
    trace: &'r mut Trace,
    stats: &'r mut Stats,
    strings: Vec<u8>,
    /// Keys by place in the string table: `offset << 5 | length`.
    names: HashMap<u64, Name>,
}

#[derive(Clone, Copy)]
struct Name {
    key: i32,
    is_utf8: bool,
}

impl Reader<'_, '_> {
    fn executor(&mut self, number: u32) -> Result<(), Stop> {
        let at = self.window.position();
        let head: [u8; 24] = self.window.take(|| format!("the head of executor {number}"))?;
        let origin_us =
            i64::from_le_bytes([head[8], head[9], head[10], head[11], head[12], head[13], head[14], head[15]]);
        let Some(origin) = origin_us.checked_mul(NS_PER_US) else {
            return Err(
                self.damaged(at + 8, format!("executor {number} begins at {origin_us} us, which no clock counts"))
            );
        };
        let (string_bytes, blocks) = (read_u32(&head, 16), read_u32(&head, 20));
        let uid = u64::from_le_bytes([head[0], head[1], head[2], head[3], head[4], head[5], head[6], head[7]]);
        self.trace.executors.push(Executor {
            uid: Some(uid.to_string()),
            origin_ns: Some(origin),
            ..Executor::default()
        });
        if self.window.bytes_left().is_some_and(|left| left < u64::from(string_bytes))
            || !self.window.has(string_bytes as usize)?
        {
            return Err(self.window.cut(format!("the string table of executor {number} ({string_bytes} bytes)")));
        }
        self.strings.clear();
        self.strings.extend_from_slice(&self.window.available()[..string_bytes as usize]);
        self.window.skip(string_bytes as usize);
        self.names.clear();
        for _ in 0..blocks {
            self.block(number)?;
        }
        Ok(())
    }

    fn block(&mut self, executor: u32) -> Result<(), Stop> {
        let at = self.window.position();
        let head: [u8; 12] = self.window.take(|| format!("the head of a block of executor {executor}"))?;
        let (worker, level, tasks) = (read_u32(&head, 0), read_u32(&head, 4), read_u32(&head, 8));
        if worker >= WORKERS_MAX || level >= LEVELS_MAX {
            return Err(self.damaged(at, format!("a block of worker {worker}, level {level}")));
        }
        self.trace.mention(worker)?;
        let lane = Lane { executor, worker, level };
        let mut left = tasks as usize;
        let mut begin_us = 0i64;
        while left > 0 {
            let possible = self.window.bytes_left().map_or(u64::MAX, |bytes| bytes / TASK_BYTES_MIN as u64 + 1);
            let mut rows = Rows::with_capacity(left.min(PIECE_TASKS).min(possible.min(1 << 40) as usize));
            let mut ended = Ok(());
            while left > 0 && rows.len() < PIECE_TASKS && ended.is_ok() {
                ended = self.task(&mut rows, &mut begin_us);
                left -= usize::from(ended.is_ok());
            }
            self.trace.add(lane, rows)?;
            ended.map_err(|stop| match stop {
                Stop::Cut { at, .. } => Stop::Cut {
                    at,
                    inside: format!(
                        "level {level} of worker {worker} of executor {executor}; {left} of its {tasks} tasks are missing"
                    ),
                },
                error @ Stop::Error(_) => error,
            })?;
        }
        Ok(())
    }

    fn task(&mut self, rows: &mut Rows, begin_us: &mut i64) -> Result<(), Stop> {
        // Near the end fewer bytes than the longest task has may be there; they may still hold a shorter one.
        self.window.has(TASK_BYTES_MAX)?;
        let bytes = self.window.available();
        let mut at = 0;
        let delta = varint(bytes, &mut at);
        let duration = delta.and_then(|_| varint(bytes, &mut at));
        let (Some(delta), Some(duration), Some(tail)) = (delta, duration, bytes.get(at..at + 5)) else {
            if bytes.len() >= TASK_BYTES_MAX {
                return Err(self.damaged(self.window.position(), "a time of more than 64 bits".to_owned()));
            }
            return Err(self.window.cut(String::new()));
        };
        let offset = read_u32(tail, 0);
        let (type_number, length) = (i32::from(tail[4] >> 5), usize::from(tail[4] & 31));
        let place = self.window.position();
        // The writer adds modulo 2^64, so a begin before the last one comes as a wrapped delta.
        *begin_us = begin_us.wrapping_add(delta as i64);
        let start = begin_us.checked_mul(NS_PER_US);
        let finish = begin_us.checked_add_unsigned(duration).and_then(|end| end.checked_mul(NS_PER_US));
        let (Some(start), Some(finish)) = (start, finish) else {
            return Err(self.damaged(place, format!("a task at {begin_us} us of {duration} us, which no clock counts")));
        };
        let name = self.name(offset, length, place)?;
        let code = types::TFPX
            .get(type_number as usize)
            .and_then(|word| types::code(word.as_bytes()))
            .unwrap_or(types::UNDEFINED_CODE);
        if code == types::UNDEFINED_CODE {
            super::note_unknown_type(self.stats, 1, || format!("byte {place}: type {type_number}"));
        }
        rows.push(start, finish, name, code);
        self.window.skip(at + 5);
        Ok(())
    }

    fn name(&mut self, offset: u32, length: usize, place: u64) -> Result<i32, Stop> {
        let slot = if length == 0 { 0 } else { u64::from(offset) << 5 | length as u64 };
        let name = match self.names.get(&slot) {
            Some(name) => *name,
            None => {
                let from = if length == 0 { 0 } else { offset as usize };
                let Some(bytes) = self.strings.get(from..from + length) else {
                    let what = format!(
                        "a name of {length} bytes at {offset} in a string table of {} bytes",
                        self.strings.len()
                    );
                    return Err(self.damaged(place, what));
                };
                let text = String::from_utf8_lossy(bytes);
                let name = Name {
                    key: self.trace.names.intern(&text),
                    is_utf8: matches!(text, std::borrow::Cow::Borrowed(_)),
                };
                self.names.insert(slot, name);
                name
            }
        };
        if !name.is_utf8 {
            note_not_utf8(self.stats, 1, place, self.trace.names.word(name.key));
        }
        if length == NAME_BYTES {
            self.stats.note(findings::NAME_MAYBE_CUT, 1, || {
                format!("byte {place}: `{}`; TFPX keeps {NAME_BYTES} bytes of a name", self.trace.names.word(name.key))
            });
        }
        Ok(name.key)
    }

    fn damaged(&self, at: u64, what: String) -> Stop {
        self.trace.damaged(at, what).into()
    }
}

/// An unsigned LEB128 number; `None` when it is not whole, or longer than 64 bits.
#[inline]
fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Once all is read: the origin of the run is the least origin, and each executor is shifted by its distance to it.
///
/// # Errors
/// Origins that lie too far apart.
pub(super) fn align(trace: &mut Trace) -> Result<Option<i64>, ImportError> {
    let Some(origin) = trace.executors.iter().filter_map(|executor| executor.origin_ns).min() else {
        return Ok(None);
    };
    let mut fits = true;
    for executor in &mut trace.executors {
        let offset = executor.origin_ns.unwrap_or(origin).checked_sub(origin);
        fits &= offset.is_some();
        executor.offset = offset.unwrap_or(0);
    }
    if fits { Ok(Some(origin)) } else { Err(trace.damaged(20, "its clocks lie further apart than 2^63 ns")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_end_where_they_should() {
        let check = |bytes: &[u8], expected: Option<u64>, used: usize| {
            let mut at = 0;
            assert_eq!(varint(bytes, &mut at), expected, "{bytes:?}");
            assert_eq!(at, used);
        };
        check(&[0], Some(0), 1);
        check(&[0xe5, 0x8e, 0x26, 9], Some(624_485), 3);
        check(&[0x80], None, 1);
        check(&[], None, 0);
        check(&[0xff; 12], None, 10);
        check(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], Some(u64::MAX), 10);
    }
}
