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

use super::calls::{Calls, innermost};
use super::tasks::{Launched, Range};
use crate::error::ImportError;
use crate::tables;
use crate::trace::{List, Room, RunBuilder, Sorter, Stats, findings};

/// What calls launched.
pub(super) struct Launches {
    /// Call, work, and whether the work is a wait, in the order of the work.
    links: List<(u32, u32, u8)>,
    /// Lane of the call's thread, its start, and the work that it launched.
    launched: Sorter<(i32, i64, u32)>,
}

/// How often something was met, and where first.
#[derive(Default)]
struct Met {
    count: u64,
    first: Option<(u32, i64)>,
}

impl Met {
    fn add(&mut self, work: &Launched) {
        self.count += 1;
        let here = (work.task, work.correlation);
        self.first = Some(self.first.map_or(here, |first| first.min(here)));
    }
}

/// From each call to what it started on a device, or waited for.
pub(super) fn launches(
    work: Sorter<Launched>,
    calls: &Calls,
    room: &Room,
    stats: &mut Stats,
) -> Result<Launches, ImportError> {
    let (mut found, mut launched) = (Sorter::new(room), Sorter::new(room));
    let (mut ambiguous, mut before) = (Met::default(), Met::default());
    let mut groups = calls.groups();
    for work in work.sorted()? {
        let work = work?;
        let (call, is_ambiguous) = innermost(groups.of(work.correlation)?, work.process);
        if is_ambiguous {
            ambiguous.add(&work);
        }
        let Some(call) = call else {
            before.add(&work);
            continue;
        };
        found.push((work.task, call.task, u8::from(work.is_wait)))?;
        if !work.is_wait {
            launched.push((call.lane, call.start, work.task))?;
        }
    }
    if let Some((task, correlation)) = ambiguous.first {
        stats.note(findings::AMBIGUOUS_CORRELATION, ambiguous.count, || {
            format!("several processes have correlation {correlation}, and task {task} does not say whose it is")
        });
    }
    if let Some((task, correlation)) = before.first {
        let example = || format!("task {task}: no call has its correlation {correlation}");
        stats.note(findings::LAUNCHED_BEFORE, before.count, example);
    }
    let mut links = List::new(room);
    for link in found.sorted()? {
        let (task, call, is_wait) = link?;
        links.push((call, task, is_wait))?;
    }
    Ok(Launches { links, launched })
}

impl Launches {
    /// From the ranges around each launch to what was launched. Of ranges that may overlap a launch has many.
    fn in_ranges(
        launched: Sorter<(i32, i64, u32)>,
        ranges: Sorter<Range>,
        room: &Room,
    ) -> Result<List<(u32, u32)>, ImportError> {
        // Ranges and launches of a thread in the order of time; a range that begins with a call is around it.
        let mut links = List::new(room);
        let mut ranges = ranges.sorted()?;
        let mut next = ranges.next().transpose()?;
        let mut open = OpenRanges::default();
        let mut current = None;
        for launch in launched.sorted()? {
            let (thread, time, kernel) = launch?;
            if current != Some(thread) {
                open = OpenRanges::default();
                current = Some(thread);
            }
            while let Some(range) = next.filter(|range| (range.thread, range.start) <= (thread, time)) {
                if range.thread == thread {
                    open.begin(range);
                }
                next = ranges.next().transpose()?;
            }
            open.end_until(time);
            open.around().try_for_each(|range| links.push((range, kernel)))?;
        }
        Ok(links)
    }

    /// Appends the links: of launches, then of ranges.
    pub(super) fn append(
        self,
        ranges: Sorter<Range>,
        room: &Room,
        builder: &mut RunBuilder,
    ) -> Result<(), ImportError> {
        let ranges = Launches::in_ranges(self.launched, ranges, room)?;
        for links in self.links.chunks() {
            let links = links?;
            let words = |wait: &'static str, launch: &'static str| {
                links.iter().map(move |link| if link.2 == 0 { launch } else { wait })
            };
            builder.append_derived(tables::Links {
                source: links.iter().map(|link| i64::from(link.0)).collect(),
                target: links.iter().map(|link| i64::from(link.1)).collect(),
                kind: words("sync", "launch").collect(),
                name: words("call", "").collect(),
                ..Default::default()
            })?;
        }
        for links in ranges.chunks() {
            let links = links?;
            builder.append_derived(tables::Links {
                source: links.iter().map(|link| i64::from(link.0)).collect(),
                target: links.iter().map(|link| i64::from(link.1)).collect(),
                kind: "nvtx".into(),
                name: "".into(),
                ..Default::default()
            })?;
        }
        Ok(())
    }
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
