//! Joins: which call launched what, and which range it happened in.
//!
//! ```text
//! NVTX          [ step                        ]
//!                  [ forward    ]
//! call               [cudaLaunchKernel: 42]
//! kernel                        [gemm: 42        ]       launch: cudaLaunchKernel → gemm
//!                                                        nvtx: forward → gemm
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::lanes::Process;
use super::tasks::{Kind, Tasks};
use crate::error::ImportError;
use crate::tables::Table;
use crate::trace::{Cells, Finding, RunBuilder, Stage, Stats};

const NO_CALL: Finding = Finding::info("launched_before", Stage::Recording);
const AMBIGUOUS: Finding = Finding::repaired("ambiguous_correlation", Stage::Recording);

/// Calls by correlation id.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// (correlation, process, start, task), sorted once all are there.
    calls: Vec<(i64, Process, i64, u32)>,
}

impl Calls {
    pub(super) fn push(&mut self, process: Process, correlation: i64, start: i64, task: u32) {
        self.calls.push((correlation, process, start, task));
    }

    pub(super) fn sort(&mut self) {
        self.calls.sort_unstable();
    }

    /// The process of a correlation, when only one has it.
    pub(super) fn process(&self, correlation: i64) -> Option<Process> {
        let calls = self.of(correlation);
        let first = calls.first()?.1;
        calls.iter().all(|call| call.1 == first).then_some(first)
    }

    fn of(&self, correlation: i64) -> &[(i64, Process, i64, u32)] {
        let from = self.calls.partition_point(|call| call.0 < correlation);
        let to = self.calls.partition_point(|call| call.0 <= correlation);
        &self.calls[from..to]
    }

    /// The innermost call of a correlation, and whether there is a doubt about the process.
    fn innermost(&self, process: Option<Process>, correlation: i64) -> (Option<u32>, bool) {
        let calls = self.of(correlation);
        match process {
            // Sorted by process and start: the last one began last.
            Some(process) => (calls.iter().rev().find(|call| call.1 == process).map(|call| call.3), false),
            None => (calls.last().map(|call| call.3), self.process(correlation).is_none() && !calls.is_empty()),
        }
    }
}

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
            stats.note(AMBIGUOUS, 1, example);
        }
        let Some(call) = call else {
            stats.note(NO_CALL, 1, || format!("task {task}: no call has its correlation {correlation}"));
            continue;
        };
        let is_wait = tasks.kinds[task as usize] == Kind::Sync;
        links.push(if is_wait { (call, task, "sync", "call") } else { (call, task, "launch", "") });
    }
    Launches { links }
}

/// From the innermost range around each launch to what was launched.
pub(super) fn ranges(tasks: &Tasks, launches: &Launches) -> Vec<Link> {
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
    // Open ranges by start, and by the time at which they close.
    let (mut open, mut closing) = (BTreeSet::new(), BinaryHeap::new());
    let mut thread = None;
    for (lane, time, kernel) in launched {
        if thread != Some(lane) {
            (open, closing) = Default::default();
            thread = Some(lane);
        }
        while let Some(&&(range_lane, start, finish, range)) = next.peek() {
            if (range_lane, start) > (lane, time) {
                break;
            }
            next.next();
            if range_lane == lane {
                open.insert((start, range));
                closing.push(Reverse((finish, start, range)));
            }
        }
        while let Some(Reverse((_, start, range))) = closing.peek().filter(|range| range.0.0 <= time).copied() {
            closing.pop();
            open.remove(&(start, range));
        }
        if let Some((_, range)) = open.last() {
            links.push((*range, kernel, "nvtx", ""));
        }
    }
    links
}

/// Appends the links.
pub(super) fn append(mut links: Vec<Link>, ranges: Vec<Link>, builder: &mut RunBuilder) -> Result<(), ImportError> {
    links.extend(ranges);
    let mut word = |column, text: &str| builder.word(Table::Links, column, text);
    let kinds: Vec<i32> = links.iter().map(|link| word("kind", link.2)).collect();
    let names: Vec<i32> = links.iter().map(|link| word("name", link.3)).collect();
    let cells = vec![
        ("source", links.iter().map(|link| i64::from(link.0)).collect::<Vec<i64>>().into()),
        ("target", links.iter().map(|link| i64::from(link.1)).collect::<Vec<i64>>().into()),
        ("kind", Cells::from(kinds)),
        ("name", Cells::from(names)),
    ];
    builder.append_derived(Table::Links, links.len(), cells)
}
