//! T0, the binary dump of Taskflow 3.0 to 4.0 (3.4 left out): no magic, no version, no padding, absolute nanoseconds.
//!
//! ```text
//! u64 executors
//!   per executor:  u64 uid | i64 origin_ns | u64 workers
//!     per worker:    u64 levels                       0: never ran
//!       per level:     u64 tasks                      may be 0: the outer task had not ended
//!         per task:      u64 name_len | name | i32 type | i64 begin_ns | i64 end_ns
//! ```
//! Life of the data: one pass through a window of 1 MiB; times move into the vectors that become the columns, counted from
//! the first executor's origin until the true one (the least of all) is known. Counts are trusted only as far as the
//! remaining bytes allow.
//!
//! Seen in the wild: the launcher `tfprof.py` overwrites byte 0 with `[`, so that the number of executors reads as 91. Then
//! executors are taken until the file ends.

use super::lanes::{Executor, Lane, PIECE_TASKS, Rows, Stop, Trace};
use super::window::Window;
use crate::error::ImportError;
use crate::trace::{Ending, Stats, findings};

/// `[` over the first byte of the number of executors: what `tfprof.py` leaves.
const OVERWRITTEN: u64 = b'[' as u64;

/// Limits behind which a number is no count but damage. Taskflow writes one worker per hardware thread, one level per
/// nested stack frame.
const EXECUTORS_MAX: u64 = 1 << 16;
const UID_MAX: u64 = 1 << 32;
const WORKERS_MAX: u64 = 1 << 16;
const LEVELS_MAX: u64 = 1 << 20;
const TASKS_MAX: u64 = 1 << 40;
const NAME_MAX: u64 = 1 << 20;
/// Type numbers beyond any numbering are read as `undefined`, but a number far beyond is no type.
const TYPE_MAX: i32 = 63;

/// Bytes of a task without a name.
const TASK_BYTES: usize = 28;

/// Whether `head` may begin a T0 file: a small number of executors, a small uid, a clock that runs.
pub(super) fn recognise(head: &[u8]) -> bool {
    let number = |at: usize| head.get(at..at + 8).map(|bytes| read_u64(bytes, 0));
    number(0).is_some_and(|executors| (1..=EXECUTORS_MAX).contains(&executors))
        && number(8).is_some_and(|uid| uid < UID_MAX)
        && number(16).is_none_or(|origin| origin > 0 && origin < 1 << 62)
}

/// Reads everything into `trace`.
pub(super) fn read(window: &mut Window<'_>, trace: &mut Trace, stats: &mut Stats) -> Result<(), Stop> {
    let executors = u64::from_le_bytes(window.take(|| "the number of executors".to_owned())?);
    if executors == 0 || executors > EXECUTORS_MAX {
        return Err(trace.damaged(0, format!("it says it holds {executors} executors")).into());
    }
    let mut reader = Reader { window, trace, stats, first_origin: None, unnamed: None };
    let mut read = 0;
    // With the launcher's mark in place of the count, the end of the file is the count.
    while if executors == OVERWRITTEN { read == 0 || reader.window.has(1)? } else { read < executors } {
        reader.executor(read)?;
        read += 1;
    }
    if read != executors {
        reader.stats.note(findings::EXECUTOR_COUNT_OVERWRITTEN, 1, || {
            format!("byte 0 is `[`, as the launcher tfprof.py leaves it; {read} executors follow")
        });
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
    /// Times are counted from here while reading.
    first_origin: Option<i64>,
    /// The key of the empty name.
    unnamed: Option<i32>,
}

impl Reader<'_, '_> {
    fn executor(&mut self, number: u64) -> Result<(), Stop> {
        let inside = || format!("the head of executor {number}");
        let at = self.window.position();
        let head: [u8; 24] = self.window.take(inside)?;
        let (uid, origin, workers) = (read_u64(&head, 0), read_u64(&head, 8) as i64, read_u64(&head, 16));
        if workers > WORKERS_MAX {
            let left = self.window.bytes_left().map_or_else(String::new, |bytes| format!("; {bytes} bytes follow"));
            return Err(self.damaged(at + 16, format!("executor {number} says it has {workers} workers{left}")));
        }
        let first_origin = *self.first_origin.get_or_insert(origin);
        let Some(_) = origin.checked_sub(first_origin) else {
            return Err(self.damaged(at + 8, format!("executor {number} begins at {origin} ns, which no clock counts")));
        };
        self.trace.executors.push(Executor {
            uid: Some(uid.to_string()),
            origin_ns: Some(origin),
            ..Executor::default()
        });
        for worker in 0..workers as u32 {
            let at = self.window.position();
            let inside = || format!("worker {worker} of executor {number}");
            let levels = u64::from_le_bytes(self.window.take(inside)?);
            if levels > LEVELS_MAX {
                return Err(self.damaged(at, format!("{} says it has {levels} levels", inside())));
            }
            self.trace.mention(worker)?;
            for level in 0..levels as u32 {
                let at = self.window.position();
                let lane = Lane { executor: number as u32, worker, level };
                let tasks = u64::from_le_bytes(self.window.take(|| describe(lane))?);
                if tasks > TASKS_MAX {
                    return Err(self.damaged(at, format!("{} says it has {tasks} tasks", describe(lane))));
                }
                self.lane(lane, tasks, first_origin)?;
            }
        }
        Ok(())
    }

    fn lane(&mut self, lane: Lane, tasks: u64, origin: i64) -> Result<(), Stop> {
        let mut left = tasks;
        while left > 0 {
            let possible = self.window.bytes_left().map_or(u64::MAX, |bytes| bytes / TASK_BYTES as u64 + 1);
            let wanted = left.min(PIECE_TASKS as u64).min(possible) as usize;
            let mut rows = Rows::with_capacity(wanted);
            let ended = self.rows(&mut rows, wanted, origin, lane);
            left -= rows.len() as u64;
            self.trace.add(lane, rows)?;
            ended.map_err(|stop| match stop {
                Stop::Cut { at, inside } => {
                    Stop::Cut { at, inside: format!("{inside}; {left} of its {tasks} tasks are missing") }
                }
                error @ Stop::Error(_) => error,
            })?;
        }
        Ok(())
    }

    /// Reads `wanted` tasks, as long as there are bytes.
    fn rows(&mut self, rows: &mut Rows, wanted: usize, origin: i64, lane: Lane) -> Result<(), Stop> {
        while rows.len() < wanted {
            let base = self.window.position();
            let bytes = self.window.available();
            let mut at = 0;
            while rows.len() < wanted
                && let Some(task) = Task::parse(bytes, at)
            {
                let name = match (task.name, self.unnamed) {
                    ([], Some(key)) => key,
                    (name, _) => self.trace.name(name, base + at as u64, self.stats),
                };
                if task.name.is_empty() {
                    self.unnamed = Some(name);
                }
                let (Some(start), Some(finish)) = (task.begin.checked_sub(origin), task.end.checked_sub(origin)) else {
                    let what = format!("a task from {} to {} ns, which no clock counts", task.begin, task.end);
                    return Err(self.trace.damaged(base + at as u64, what).into());
                };
                if !(0..=TYPE_MAX).contains(&task.type_number) {
                    let what = format!("a task of type {} ({})", task.type_number, describe(lane));
                    return Err(self.trace.damaged(base + at as u64, what).into());
                }
                rows.push(start, finish, name, task.type_number);
                at += TASK_BYTES + task.name.len();
            }
            self.window.skip(at);
            if rows.len() < wanted {
                self.next_task_in_window(lane)?;
            }
        }
        Ok(())
    }

    fn next_task_in_window(&mut self, lane: Lane) -> Result<(), Stop> {
        let mut needed = TASK_BYTES;
        if self.window.has(needed)? {
            let name_bytes = read_u64(self.window.available(), 0);
            if name_bytes > NAME_MAX {
                let at = self.window.position();
                return Err(self.damaged(at, format!("a task's name of {name_bytes} bytes ({})", describe(lane))));
            }
            needed += name_bytes as usize;
            if self.window.has(needed)? {
                return Ok(());
            }
        }
        Err(self.window.cut(describe(lane)))
    }

    fn damaged(&self, at: u64, what: String) -> Stop {
        self.trace.damaged(at, what).into()
    }
}

struct Task<'b> {
    name: &'b [u8],
    type_number: i32,
    begin: i64,
    end: i64,
}

impl<'b> Task<'b> {
    /// The task at `at`, if all of it is there.
    #[inline]
    fn parse(bytes: &'b [u8], at: usize) -> Option<Task<'b>> {
        let task = &bytes[at..];
        let name_bytes = read_u64(task.get(..8)?, 0);
        // As u64, so that an absurd length cannot wrap.
        if name_bytes > NAME_MAX {
            return None;
        }
        let name_end = 8 + name_bytes as usize;
        let rest: &[u8; 20] = task.get(name_end..name_end + 20)?.try_into().ok()?;
        Some(Task {
            name: &task[8..name_end],
            type_number: i32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]),
            begin: read_u64(rest, 4) as i64,
            end: read_u64(rest, 12) as i64,
        })
    }
}

fn describe(lane: Lane) -> String {
    format!("level {} of worker {} of executor {}", lane.level, lane.worker, lane.executor)
}

/// The number at `at`; the caller has checked the length.
#[inline]
fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

/// Once all is read: how far the origin of the run lies before the first executor's, and the origin itself.
///
/// # Errors
/// Times that do not fit when they are counted from there.
pub(super) fn align(trace: &mut Trace) -> Result<i64, ImportError> {
    let first = trace.executors.first().and_then(|executor| executor.origin_ns).unwrap_or(0);
    let origins = trace.executors.iter().filter_map(|executor| executor.origin_ns?.checked_sub(first));
    let earliest = origins.chain(trace.met.earliest).min().unwrap_or(0);
    let origin = first.checked_add(earliest).zip(0i64.checked_sub(earliest));
    let Some((origin, offset)) = origin else {
        return Err(trace.damaged(8, "its clocks lie further apart than 2^63 ns"));
    };
    for executor in &mut trace.executors {
        executor.offset = offset;
    }
    Ok(origin)
}
