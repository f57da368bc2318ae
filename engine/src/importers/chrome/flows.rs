//! Flows: arrows between tasks.
//!
//! ```text
//! {"ph":"s","cat":"ipc","name":"IPC","id":"0x402","ts":3002,…}     start: from the task around it
//! {"ph":"t",…}                                                     step: to and from the task around it
//! {"ph":"f",…,"bp":"e"}                                            end: to the task around it; without bp, to the next one
//! {"ph":"X",…,"bind_id":"0x402","flow_in":true,"flow_out":true}    the same, on the task itself
//! ```
//! An identity is (category, name, id). With one start, all its ends are bound to it whatever their times (a sync row
//! starts before the call that causes it); with several, each step and end is bound to the latest start or step before it.
//! Ids are reused, ends are repeated, and many Kineto ends have no start at all: those are counted without a warning.
//!
//! `tq` itself writes links of kind `dependency` as flows of category `tq:dependency`, and other kinds likewise. Several tasks of
//! a thread may begin and end together, so each end of a flow names its task by its number in the file (`"args":{"tq_task":12}`,
//! counted from 0); that number is used if such a task exists.
//!
//! Kineto's flows from calls to what they launch repeat what `correlation` says; only what that does not say becomes a link
//! here. Their names changed over time:
//!
//! | PyTorch | category, name | tid of a thread |
//! | --- | --- | --- |
//! | 1.8 to 1.10 | `async`, `launch` | 123 in flows and instants, `"123"` in tasks |
//! | 1.11 to 1.13 | `async_cpu_to_gpu`, `async_gpu` | 123 |
//! | 2.0 and later | `ac2g`, `ac2g` | 123 |

use std::collections::BTreeMap;

use hashbrown::HashSet;

use super::chunk::{Flow, FlowId, NO_WORD, UNFINISHED};
use super::event;
use super::file::Recording;
use super::kineto::{Kinds, Known, Label, Launches, Link};
use super::nest::Nesting;
use super::round_trip::{self, WRITTEN};
use crate::trace::{Words, findings};

/// The categories of Kineto's flows from calls to what they launch.
const LAUNCH: [&str; 2] = ["ac2g", "async_cpu_to_gpu"];

/// The category and name of the oldest ones, which other programs may use as well.
const OLD_LAUNCH: [&str; 2] = ["async", "launch"];

/// Which flows of a file go from calls to what they launch; by keys of its texts.
struct LaunchFlows {
    categories: [Option<i32>; 2],
    old: Option<(i32, i32)>,
}

impl LaunchFlows {
    /// `has_calls`: some calls have correlations, so that Kineto wrote the file.
    fn of(texts: &Words, has_calls: bool) -> LaunchFlows {
        let old = OLD_LAUNCH.map(|word| texts.find(word));
        LaunchFlows {
            categories: LAUNCH.map(|category| texts.find(category)),
            old: old[0].zip(old[1]).filter(|_| has_calls),
        }
    }

    fn are_any(&self) -> bool {
        self.old.is_some() || self.categories.iter().any(Option::is_some)
    }

    fn have(&self, category: i32, name: i32) -> bool {
        self.categories.contains(&Some(category)) || self.old == Some((category, name))
    }
}

/// What an end of a flow that `tq` wrote says: the number of its task in the file.
pub(super) const TASK: &str = "tq_task";

/// The kind of a link that `tq` wrote as a flow of this category.
fn kind_of(category: i32, texts: &mut Words) -> Option<Label> {
    let written = (category != NO_WORD).then(|| texts.word(category).strip_prefix(WRITTEN)).flatten()?;
    // Links of these kinds may be known already.
    let known =
        [Known::Flow, Known::Launch, Known::Operator, Known::Sync].into_iter().find(|kind| kind.text() == written);
    Some(match known {
        Some(kind) => Label::Word(kind),
        None => {
            let written = written.to_owned();
            Label::Key(texts.intern(&written))
        }
    })
}

/// An end of an arrow that is bound to a task.
struct Point {
    time: i64,
    sequence: u64,
    role: Role,
    /// `None`: there is no task where it points.
    task: Option<u32>,
    /// Key of what `tq` says of the link, [`NO_WORD`] for nothing.
    told: i32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Start,
    Step,
    End,
}

/// (category, name, id); flows on tasks have neither category nor name.
type Identity = (i32, i32, FlowId);

/// The links of a file's flows.
///
/// `others` are the links that are known already: what `tq` wrote as flows may be among them.
pub(super) fn links(
    recording: &mut Recording,
    nesting: &Nesting,
    launches: &Launches,
    kinds: &Kinds,
    others: &[Link],
) -> Vec<Link> {
    let mut identities: BTreeMap<Identity, Vec<Point>> = BTreeMap::new();
    let launch_flows = LaunchFlows::of(&recording.texts, !launches.are_none());
    // Without such flows nothing is looked up.
    let known = if launch_flows.are_any() { launches.known(recording, kinds) } else { HashSet::new() };
    let mut said = 0;
    let tasks = tasks(recording, nesting);
    for (flow, task) in recording.lists.flows.iter().zip(tasks) {
        let is_launch = launch_flows.have(flow.category, flow.name);
        if let (true, FlowId::Number(id)) = (is_launch, flow.id)
            && known.contains(&id)
        {
            said += 1;
            continue;
        }
        identities.entry((flow.category, flow.name, flow.id)).or_default().push(point(flow, task));
    }
    for bind in &recording.lists.binds {
        let points = identities.entry((NO_WORD, NO_WORD, bind.id)).or_default();
        let role = match (bind.into, bind.out) {
            (true, true) => Role::Step,
            (true, false) => Role::End,
            _ => Role::Start,
        };
        let time = recording.start(bind.row);
        points.push(Point { time, sequence: u64::from(bind.row), role, task: Some(bind.row), told: NO_WORD });
    }
    let mut links = Vec::new();
    let mut unbound = 0;
    for ((category, name, _), points) in &mut identities {
        let is_launch = launch_flows.have(*category, *name);
        let ours = kind_of(*category, &mut recording.texts);
        let kind = ours.unwrap_or(Label::Word(if is_launch { Known::Launch } else { Known::Flow }));
        let is_named = *name >= 0 && !(ours.is_some() && recording.text(*name).is_empty());
        // What `tq` wrote has an identity for each link.
        let told = points.iter().map(|point| point.told).find(|told| *told != NO_WORD);
        let told = told.map(|told| recording.texts.word(told).to_owned());
        let has_none = || matches!(round_trip::said(told.as_deref(), "name"), round_trip::Said::Null);
        let name = match is_named {
            true => Label::Key(*name),
            false if has_none() => Label::Null,
            false => Label::None,
        };
        let args = told.as_deref().and_then(|told| event::get(told, "args")).filter(|args| args.starts_with('{'));
        let args = args.map_or(Label::None, |args| Label::Key(recording.texts.intern(args)));
        unbound += bind_all(points, |source, target| links.push(Link { source, target, kind, name, args }));
    }
    if links.iter().any(|link| link.kind != Label::Word(Known::Flow)) {
        let known: HashSet<_> = others.iter().map(|link| (link.source, link.target, link.kind)).collect();
        let before = links.len();
        links.retain(|link| !known.contains(&(link.source, link.target, link.kind)));
        said += (before - links.len()) as u64;
    }
    links.sort_unstable_by_key(|link| (link.target, link.source));
    recording.stats.note(findings::FLOW_SAME_AS_LAUNCH, said, || "flows that say what arguments say".to_owned());
    recording.stats.note(findings::FLOW_UNBOUND, unbound, || {
        "no start, no end, no task where it points, or both ends in one task".to_owned()
    });
    links
}

/// The task that each flow event belongs to.
fn tasks(recording: &Recording, nesting: &Nesting) -> Vec<Option<u32>> {
    let flows = &recording.lists.flows;
    let is_next = |flow: &Flow| flow.phase == b'f' && !flow.encloses;
    let enclosed: Vec<&Flow> = flows.iter().filter(|flow| !is_next(flow)).collect();
    let points: Vec<(usize, i64)> = enclosed.iter().map(|flow| (flow.lane as usize, flow.time)).collect();
    let mut around = nesting.around(recording, &points).into_iter();
    let task = |flow: &Flow| {
        let by_time = match is_next(flow) {
            true => nesting.next(recording, flow.lane as usize, flow.time),
            false => around.next().flatten(),
        };
        let is_there = |row: &u32| {
            *row < recording.rows && recording.lane(*row) == flow.lane && {
                let finish = recording.finish(*row);
                recording.start(*row) <= flow.time && (finish == UNFINISHED || flow.time <= finish)
            }
        };
        flow.task.filter(is_there).or(by_time)
    };
    flows.iter().map(task).collect()
}

fn point(flow: &Flow, task: Option<u32>) -> Point {
    let role = match flow.phase {
        b's' => Role::Start,
        b't' => Role::Step,
        _ => Role::End,
    };
    Point { time: flow.time, sequence: flow.sequence, role, task, told: flow.told }
}

/// Pairs the points of one identity; the answer is how many became part of no link.
fn bind_all(points: &mut [Point], mut link: impl FnMut(u32, u32)) -> u64 {
    points.sort_by_key(|point| (point.time, point.sequence));
    let mut starts = points.iter().enumerate().filter(|(_, point)| point.role == Role::Start).map(|(at, _)| at);
    // The only start, if there is only one.
    let only = starts.next().filter(|_| starts.next().is_none());
    let mut used = vec![false; points.len()];
    let mut latest = None;
    for at in 0..points.len() {
        let point = &points[at];
        if point.role != Role::Start {
            let source = latest.or(only).filter(|&source| source != at);
            if let Some((source, (from, to))) =
                source.and_then(|source| Some((source, points[source].task.zip(point.task)?)))
                && from != to
            {
                link(from, to);
                used[source] = true;
                used[at] = true;
            }
        }
        if point.role != Role::End {
            latest = Some(at);
        }
    }
    used.iter().filter(|used| !**used).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points by role letter, time and task, in the order of the file.
    fn bound(points: &[(char, i64, u32)]) -> (Vec<(u32, u32)>, u64) {
        let role = |letter| match letter {
            's' => Role::Start,
            't' => Role::Step,
            _ => Role::End,
        };
        let mut points: Vec<Point> = points
            .iter()
            .enumerate()
            .map(|(at, &(letter, time, task))| Point {
                time,
                sequence: at as u64,
                role: role(letter),
                task: Some(task),
                told: NO_WORD,
            })
            .collect();
        let mut links = Vec::new();
        let unbound = bind_all(&mut points, |source, target| links.push((source, target)));
        (links, unbound)
    }

    #[test]
    fn one_start_takes_all_ends_whatever_their_times() {
        assert_eq!(bound(&[('s', 5, 1), ('f', 3, 2), ('f', 9, 3)]), (vec![(1, 2), (1, 3)], 0));
        assert_eq!(bound(&[('s', 1, 1), ('t', 2, 2), ('f', 3, 3)]), (vec![(1, 2), (2, 3)], 0));
    }

    #[test]
    fn of_several_starts_the_latest_counts() {
        assert_eq!(bound(&[('s', 1, 1), ('f', 2, 2), ('s', 3, 3), ('f', 3, 4)]), (vec![(1, 2), (3, 4)], 0));
        assert_eq!(bound(&[('f', 0, 9), ('s', 1, 1), ('f', 2, 2), ('s', 3, 3)]), (vec![(1, 2)], 2));
    }

    #[test]
    fn lonely_points_are_counted() {
        assert_eq!(bound(&[('f', 1, 1), ('f', 2, 2)]), (vec![], 2));
        assert_eq!(bound(&[('s', 1, 1)]), (vec![], 1));
        // An arrow from a task to itself says nothing.
        assert_eq!(bound(&[('s', 1, 1), ('f', 2, 1)]), (vec![], 2));
    }
}
