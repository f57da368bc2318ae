//! Joins: which call launched what, and which range it happened in.
//!
//! ```text
//! NVTX          [ step                        ]
//!                  [ forward    ]
//! NVTX NCCL          [ all-reduce ]
//! call               [cudaLaunchKernel: 42]
//! kernel                        [gemm: 42        ]       launch: cudaLaunchKernel → gemm
//!                                                        nvtx: forward → gemm, all-reduce → gemm
//! ```
//! Ranges nest only within their domain, so each domain has its own innermost range around a launch.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use datafusion::execution::memory_pool::MemoryReservation;

use super::calls::Calls;
use super::tasks::{Kind, Range, Tasks};
use crate::error::ImportError;
use crate::tables;
use crate::trace::{ROWS_PER_BATCH, RunBuilder, Stats, findings};

/// A link between tasks: source, target, kind, name.
pub(super) type Link = (u32, u32, &'static str, &'static str);

/// What calls launched.
pub(super) struct Launches {
    pub(super) links: Vec<Link>,
}

/// From each call to what it started on a device, or waited for.
pub(super) fn launches(tasks: &Tasks, calls: &Calls, stats: &mut Stats) -> Launches {
    let mut links = Vec::with_capacity(tasks.launched_by.len());
    for &(task, process, correlation) in &tasks.launched_by {
        let (call, is_ambiguous) = calls.innermost(process, correlation);
        if is_ambiguous {
            let example = || {
                format!("several processes have correlation {correlation}, and task {task} does not say whose it is")
            };
            stats.note(findings::AMBIGUOUS_CORRELATION, 1, example);
        }
        let Some(call) = call else {
            stats.note(findings::LAUNCHED_BEFORE, 1, || {
                format!("task {task}: no call has its correlation {correlation}")
            });
            continue;
        };
        let is_wait = tasks.kinds[task as usize] == Kind::Sync;
        links.push(if is_wait { (call, task, "sync", "call") } else { (call, task, "launch", "") });
    }
    Launches { links }
}

/// From the ranges around each launch to what was launched. Of ranges that may overlap a launch has many.
pub(super) fn ranges(
    tasks: &Tasks,
    launches: &Launches,
    memory: &mut MemoryReservation,
) -> datafusion::error::Result<Vec<(u32, u32)>> {
    const LINKS_AT_ONCE: usize = 1 << 16;
    // Ranges and launches of a thread in the order of time; a range that begins with a call is around it.
    let mut ranges = tasks.ranges.clone();
    ranges.sort_unstable();
    let mut launched: Vec<(i32, i64, u32)> = launches
        .links
        .iter()
        .filter(|link| link.2 == "launch" && tasks.kinds[link.1 as usize].is_on_device())
        .map(|link| (tasks.lanes[link.0 as usize], tasks.starts[link.0 as usize], link.1))
        .collect();
    launched.sort_unstable();
    let mut links = Vec::new();
    let mut next = ranges.iter().peekable();
    let mut open = OpenRanges::default();
    let mut current = None;
    for (thread, time, kernel) in launched {
        if current != Some(thread) {
            open = OpenRanges::default();
            current = Some(thread);
        }
        while let Some(range) = next.next_if(|range| (range.thread, range.start) <= (thread, time)) {
            if range.thread == thread {
                open.begin(*range);
            }
        }
        open.end_until(time);
        links.extend(open.around().map(|range| (range, kernel)));
        // A vector that grows is there twice.
        let needed = links.capacity().max(LINKS_AT_ONCE) * 2 * size_of::<(u32, u32)>();
        if needed > memory.size() {
            memory.try_resize(needed)?;
        }
    }
    Ok(links)
}

/// The open ranges of a thread by lane, and by the time at which they close.
#[derive(Default)]
struct OpenRanges {
    lanes: BTreeMap<i32, BTreeSet<Range>>,
    closing: BinaryHeap<Reverse<(i64, Range)>>,
}

impl OpenRanges {
    fn begin(&mut self, range: Range) {
        self.lanes.entry(range.lane).or_default().insert(range);
        self.closing.push(Reverse((range.finish.0, range)));
    }

    /// Closes what ends no later.
    fn end_until(&mut self, time: i64) {
        while let Some(Reverse((_, range))) = self.closing.peek().filter(|range| range.0.0 <= time).copied() {
            self.closing.pop();
            if let Some(lane) = self.lanes.get_mut(&range.lane) {
                lane.remove(&range);
            }
        }
    }

    /// The innermost range of each lane, which leads to those around it; where ranges may overlap, all of them.
    fn around(&self) -> impl Iterator<Item = u32> {
        self.lanes.values().flat_map(|lane| {
            let of_lane = if lane.last().is_some_and(|range| range.may_overlap) { lane.len() } else { 1 };
            lane.iter().rev().take(of_lane).map(|range| range.task)
        })
    }
}

/// Appends the links: of launches, then of ranges.
pub(super) fn append(links: &[Link], ranges: &[(u32, u32)], builder: &mut RunBuilder) -> Result<(), ImportError> {
    builder.append_derived(tables::Links {
        source: links.iter().map(|link| i64::from(link.0)).collect(),
        target: links.iter().map(|link| i64::from(link.1)).collect(),
        kind: links.iter().map(|link| link.2).collect(),
        name: links.iter().map(|link| link.3).collect(),
        ..Default::default()
    })?;
    ranges.chunks(ROWS_PER_BATCH).try_for_each(|part| {
        builder.append_derived(tables::Links {
            source: part.iter().map(|link| i64::from(link.0)).collect(),
            target: part.iter().map(|link| i64::from(link.1)).collect(),
            kind: "nvtx".into(),
            name: "".into(),
            ..Default::default()
        })
    })
}
