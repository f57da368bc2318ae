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

use std::cell::Cell;
use std::iter::Peekable;

use hashbrown::HashSet;

use super::chunk::{Flow, FlowId, NO_WORD, UNFINISHED};
use super::event;
use super::file::Recording;
use super::kineto::{Known, Label, Link};
use super::launches::Launches;
use super::nest::{Asked, Nesting};
use super::round_trip::{self, WRITTEN};
use crate::error::ImportError;
use crate::trace::{List, Record, Sorted, Sorter, Words, findings, record};

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

/// An end of an arrow that is bound to a task. Those of one identity stand together, in the order of time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    identity: Identity,
    time: i64,
    sequence: u64,
    /// Its place among all flows and tasks with flows.
    number: u64,
    role: Role,
    /// `None`: there is no task where it points.
    task: Option<u32>,
    /// Key of what `tq` says of the link, [`NO_WORD`] for nothing.
    told: i32,
}

record!(Point { identity, time, sequence, number, role, task, told });

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Start,
    Step,
    End,
}

impl Record for Role {
    fn write(&self, to: &mut Vec<u8>) {
        (*self as u8).write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Role> {
        [Role::Start, Role::Step, Role::End].get(usize::from(u8::read(from)?)).copied()
    }
}

/// (category, name, id); flows on tasks have neither category nor name.
type Identity = (i32, i32, FlowId);

/// A link in the order in which links of flows stand: by target, by source, and as they were found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Bound {
    target: u32,
    source: u32,
    number: u64,
    kind: Label,
    name: Label,
    args: Label,
}

record!(Bound { target, source, number, kind, name, args });

/// Appends the links of a file's flows to those that are known already: what `tq` wrote as flows may be among them.
pub(super) fn links(
    recording: &mut Recording,
    nesting: &Nesting,
    launches: &Launches,
    links: &mut List<Link>,
) -> Result<(), ImportError> {
    if recording.lists.flows.is_empty() && recording.lists.binds.is_empty() {
        return Ok(());
    }
    let launch_flows = LaunchFlows::of(&recording.texts, !launches.are_none());
    // Without such flows nothing is looked up.
    let known = if launch_flows.are_any() { Some(launches.known(&recording.room)?) } else { None };
    let last = Cell::new(0);
    let is_launched = |id: i64| known.as_ref().is_some_and(|(ids, _)| has_near(ids, id, &last));
    let (points, mut said) = points(recording, nesting, |flow| {
        launch_flows.have(flow.category, flow.name) && matches!(flow.id, FlowId::Number(id) if is_launched(id))
    })?;
    drop(known);
    let mut bound = Sorter::new(&recording.room);
    let (mut number, mut unbound, mut are_flows) = (0, 0, true);
    let memory = recording.room.hold();
    let mut points = points.sorted()?.peekable();
    let mut of_one = Vec::new();
    while next_identity(&mut points, &mut of_one)? {
        recording
            .room
            .resize(&memory, if of_one.len() > FEW_POINTS { of_one.capacity() * size_of::<Point>() } else { 0 })?;
        let Some(Point { identity: (category, name, _), .. }) = of_one.first().cloned() else { continue };
        let is_launch = launch_flows.have(category, name);
        let ours = kind_of(category, &mut recording.texts);
        let kind = ours.unwrap_or(Label::Word(if is_launch { Known::Launch } else { Known::Flow }));
        let is_named = name >= 0 && !(ours.is_some() && recording.text(name).is_empty());
        // What `tq` wrote has an identity for each link.
        let told = of_one.iter().filter(|point| point.told != NO_WORD).min_by_key(|point| point.number);
        let told = told.map(|point| recording.texts.word(point.told).to_owned());
        let has_none = || matches!(round_trip::said(told.as_deref(), "name"), round_trip::Said::Null);
        let name = match is_named {
            true => Label::Key(name),
            false if has_none() => Label::Null,
            false => Label::None,
        };
        let args = told.as_deref().and_then(|told| event::get(told, "args")).filter(|args| args.starts_with('{'));
        let args = args.map_or(Label::None, |args| Label::Key(recording.texts.intern(args)));
        are_flows &= kind == Label::Word(Known::Flow);
        unbound += bind_all(&of_one, |source, target| {
            number += 1;
            bound.push(Bound { target, source, number, kind, name, args })
        })?;
    }
    let mut known = HashSet::new();
    if !are_flows {
        for others in links.chunks() {
            known.extend(others?.iter().map(|link| (link.source, link.target, link.kind)));
        }
    }
    for link in bound.sorted()? {
        let Bound { target, source, kind, name, args, .. } = link?;
        match known.contains(&(source, target, kind)) {
            true => said += 1,
            false => links.push(Link { source, target, kind, name, args })?,
        }
    }
    recording.stats.note(findings::FLOW_SAME_AS_LAUNCH, said, || "flows that say what arguments say".to_owned());
    recording.stats.note(findings::FLOW_UNBOUND, unbound, || {
        "no start, no end, no task where it points, or both ends in one task".to_owned()
    });
    Ok(())
}

/// So many points of an identity need no leave.
const FEW_POINTS: usize = 4096;

/// Fills `of_one` with the points of the next identity; `false` when there is none.
fn next_identity(points: &mut Peekable<Sorted<Point>>, of_one: &mut Vec<Point>) -> Result<bool, ImportError> {
    of_one.clear();
    let Some(first) = points.next().transpose()? else { return Ok(false) };
    let identity = first.identity;
    of_one.push(first);
    while let Some(next) = points.next_if(|next| next.as_ref().map_or(true, |next| next.identity == identity)) {
        of_one.push(next?);
    }
    Ok(true)
}

/// Whether a number is among some that ascend. Most are asked for in their order: at the place of the last one, or behind it.
fn has_near(ids: &[i64], id: i64, last: &Cell<usize>) -> bool {
    if ids[last.get().min(ids.len())..].iter().take(2).any(|near| *near == id) {
        last.set(last.get() + usize::from(ids[last.get()] != id));
        return true;
    }
    let found = ids.binary_search(&id);
    last.set(found.unwrap_or(last.get()));
    found.is_ok()
}

/// The ends of all arrows but those that are `known`, and how many these are.
fn points(
    recording: &Recording,
    nesting: &Nesting,
    is_known: impl Fn(&Flow) -> bool,
) -> Result<(Sorter<Point>, u64), ImportError> {
    let base = recording.base;
    let flows = &recording.lists.flows;
    let mut asked = Sorter::new(&recording.room);
    let (mut known, mut left) = (0, 0);
    let mut number = 0;
    for flows in flows.chunks() {
        for flow in flows?.iter() {
            number += 1;
            // Kineto says most of its links twice: nobody looks for the tasks of these.
            if is_known(flow) {
                known += 1;
                continue;
            }
            left = number;
            let is_next = flow.phase == b'f' && !flow.encloses;
            let time = flow.time.saturating_add(base);
            asked.push(Asked { lane: flow.lane, time, number: number - 1, is_next })?;
        }
    }
    let mut found = nesting.find(recording, asked)?.sorted()?.peekable();
    let mut points = Sorter::new(&recording.room);
    for (number, flow) in (0..left).zip(flows.iter()) {
        let flow = flow?;
        if is_known(&flow) {
            continue;
        }
        let time = flow.time.saturating_add(base);
        let by_time = found.next_if(|next| next.as_ref().map_or(true, |(found, _)| *found == number));
        let by_time = by_time.transpose()?.map(|(_, row)| row);
        let told = match flow.task {
            Some(task) if is_there(recording, task, flow.lane, time)? => Some(task),
            _ => None,
        };
        let role = match flow.phase {
            b's' => Role::Start,
            b't' => Role::Step,
            _ => Role::End,
        };
        let identity = (flow.category, flow.name, flow.id);
        let task = told.or(by_time);
        points.push(Point { identity, time, sequence: flow.sequence, number, role, task, told: flow.told })?;
    }
    for (number, bind) in (flows.len() as u64..).zip(recording.lists.binds.iter()) {
        let bind = bind?;
        let role = match (bind.into, bind.out) {
            (true, true) => Role::Step,
            (true, false) => Role::End,
            _ => Role::Start,
        };
        let identity = (NO_WORD, NO_WORD, bind.id);
        let (time, sequence) = (bind.time.saturating_add(base), u64::from(bind.row));
        points.push(Point { identity, time, sequence, number, role, task: Some(bind.row), told: NO_WORD })?;
    }
    Ok((points, known))
}

/// Whether a task is on a lane at a time.
fn is_there(recording: &Recording, row: u32, lane: i32, time: i64) -> Result<bool, ImportError> {
    if row >= recording.rows || recording.lane(row)? != lane {
        return Ok(false);
    }
    let finish = recording.finish(row)?;
    Ok(recording.start(row)? <= time && (finish == UNFINISHED || time <= finish))
}

/// Pairs the points of one identity, in the order of time; the answer is how many became part of no link.
fn bind_all<E>(points: &[Point], mut link: impl FnMut(u32, u32) -> Result<(), E>) -> Result<u64, E> {
    let mut starts = points.iter().enumerate().filter(|(_, point)| point.role == Role::Start).map(|(at, _)| at);
    // The only start, if there is only one.
    let only = starts.next().filter(|_| starts.next().is_none());
    let mut used = vec![false; points.len()];
    let mut latest = None;
    for (at, point) in points.iter().enumerate() {
        if point.role != Role::Start {
            let source = latest.or(only).filter(|&source| source != at);
            if let Some((source, (from, to))) =
                source.and_then(|source| Some((source, points[source].task.zip(point.task)?)))
                && from != to
            {
                link(from, to)?;
                used[source] = true;
                used[at] = true;
            }
        }
        if point.role != Role::End {
            latest = Some(at);
        }
    }
    Ok(used.iter().filter(|used| !**used).count() as u64)
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
                identity: (NO_WORD, NO_WORD, FlowId::Number(0)),
                time,
                sequence: at as u64,
                number: at as u64,
                role: role(letter),
                task: Some(task),
                told: NO_WORD,
            })
            .collect();
        points.sort();
        let mut links = Vec::new();
        let unbound = bind_all(&points, |source, target| {
            links.push((source, target));
            Ok::<(), ImportError>(())
        });
        (links, unbound.unwrap())
    }

    #[test]
    fn numbers_are_found_in_any_order() {
        let (ids, last) = ([2, 3, 7, 9], Cell::new(0));
        for id in [2, 2, 3, 3, 7, 9, 9, 10, 2, 9, 4, 3, 7, 1, i64::MAX, 9, 2] {
            assert_eq!(has_near(&ids, id, &last), ids.contains(&id), "{id}");
        }
        assert!(!has_near(&[], 1, &last));
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
