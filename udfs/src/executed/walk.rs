//! The walk along the executed path, backwards: from a task at some time to what released it.
//!
//! The walk is at a task and a time, the *cursor*: the path was on this task until then. The stretch of the lane just
//! before the cursor in which this task was the innermost is a piece of the path. What released the piece is the latest
//! of three: a link and a message (when the piece begins with the task), and what the lane did before. The time between
//! that release and the piece is a wait, and the walk continues at the release.
//!
//! A task of role `wait` whose release was not recorded is released by the work that finished last elsewhere while it ran
//! ([`Elsewhere`]); where the location that the path entered so has nothing before, the path goes back to the one that waited.
//!
//! Where a nested task covers the lane just before the cursor, the piece is empty and the lane leads into the nested
//! task. So each step changes the cursor or the task, and steps and waits tile the whole time.

use std::cmp::Reverse;
use std::collections::HashSet;

use datafusion_common::Result;

use crate::executed::elsewhere::Elsewhere;
use crate::executed::releases::{Message, Releases};
use crate::executed::segments::{Lanes, Segment};
use crate::executed::{Activity, Times};
use crate::graph::NONE;
use crate::relation::call::Work;

/// A step of the path, in the order in which it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// The task.
    pub(crate) task: u32,
    /// What released it.
    pub(crate) cause: Cause,
    /// The piece of the task that is on the path: first tick.
    pub(crate) start: i64,
    /// First tick after the piece.
    pub(crate) finish: i64,
    /// Ticks between the step before and this piece.
    pub(crate) wait: i64,
}

/// What released a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Nothing: the path begins here.
    Begin,
    /// The step before was what its lane did before.
    Lane,
    /// The step before sent a message to it.
    Message,
    /// The step before worked on another lane while this one waited, or waited for this one's first task.
    Work,
    /// A link of the kind of this number leads from the step before, [`NONE`] for a link without kind.
    Link(u32),
}

/// The steps of a run, and how many predecessors were cut.
#[derive(Debug, Default)]
pub(crate) struct Path {
    pub(crate) steps: Vec<Step>,
    pub(crate) cut: usize,
}

/// Where the walk goes: the path ran on `task` until `cursor`, and what came then was released at `time`.
#[derive(Debug, Clone, Copy)]
struct Release {
    task: u32,
    cursor: i64,
    time: i64,
    cause: Cause,
}

/// Walks a run from its last finish to its first start; no steps without tasks. `None`: the makespan is beyond BIGINT.
pub(crate) fn walk(
    times: &Times,
    releases: &Releases,
    lanes: &mut Lanes<'_>,
    elsewhere: &mut Elsewhere<'_>,
    work: &mut Work,
) -> Result<Option<Path>> {
    let all = || (0..times.start.len() as u32).filter(|task| times.known(*task));
    let mut path = Path::default();
    let Some(begin) = all().map(|task| times.start[task as usize]).min() else { return Ok(Some(path)) };
    let last = all().max_by_key(|task| (times.finish[*task as usize], Reverse(*task)));
    let mut task = last.unwrap_or(0);
    let mut cursor = times.finish[task as usize];
    if cursor.checked_sub(begin).is_none() {
        return Ok(None);
    }
    // Tasks that the path stood at without time passing: at one tick tasks may wait for each other in a circle.
    let mut here: HashSet<u32> = HashSet::new();
    // Lanes that the path left while they waited, and has not come back to.
    let mut waiting: Vec<u32> = vec![];
    loop {
        if path.steps.len() % 65_536 == 0 {
            work.check()?;
            work.grow(65_536 * size_of::<Step>())?;
        }
        here.insert(task);
        let lane = times.lane[task as usize];
        let waits = lane != NONE && times.activity[task as usize] == Activity::Waits;
        let own = own_piece(times, lanes, task, cursor, work)?;
        let mut inner = own.and_then(|own| inner_release(times, releases, own, cursor, &here));
        if let (Some(own), None, true) = (own, inner, waits) {
            inner = work_elsewhere(times, lanes, elsewhere, lane, (own.start, cursor), &here, work)?;
        }
        let start = inner.map_or_else(|| own.map_or(cursor, |own| own.start), |inner| inner.time);
        if start < cursor {
            here.clear();
            here.insert(task);
        }
        let mut release = match inner {
            Some(inner) => Some(inner),
            None => latest_release(times, releases, lanes, task, start, &here, work)?,
        };
        // After the last work of the run there is nothing but waits, such as those of a thread that polls: they lead back to it.
        let since = release.map_or(begin, |release| release.time);
        if waits && since < start && elsewhere.is_done(start) {
            release = work_elsewhere(times, lanes, elsewhere, lane, (since, start), &here, work)?.or(release);
        }
        if release.is_some_and(|release| release.cause == Cause::Work) {
            waiting.push(lane);
        }
        while let (None, Some(lane)) = (release, waiting.last().filter(|_| begin < start)) {
            release = lane_release(lanes, *lane, start, work)?.map(|waited| Release { cause: Cause::Work, ..waited });
            waiting.pop();
        }
        let cause = release.map_or(Cause::Begin, |release| release.cause);
        let since = release.map_or(begin, |release| release.cursor);
        path.steps.push(Step { task, cause, start, finish: cursor, wait: start - since });
        let Some(release) = release else { break };
        path.cut +=
            usize::from(matches!(cause, Cause::Link(_)) && times.finish[release.task as usize] > release.cursor);
        if release.cursor < start {
            here.clear();
        }
        (task, cursor) = (release.task, release.cursor);
    }
    path.steps.reverse();
    Ok(Some(path))
}

/// The work on another lane that finished last within the time.
fn work_elsewhere(
    times: &Times,
    lanes: &mut Lanes<'_>,
    elsewhere: &mut Elsewhere<'_>,
    lane: u32,
    within: (i64, i64),
    here: &HashSet<u32>,
    work: &mut Work,
) -> Result<Option<Release>> {
    let task = elsewhere.last_between(lanes, lane, within, here, work)?;
    Ok(task.map(|task| {
        let time = times.finish[task as usize];
        Release { task, cursor: time, time, cause: Cause::Work }
    }))
}

/// The task's own piece of its lane just before the cursor; `None` when another one is there, or nothing.
fn own_piece(times: &Times, lanes: &mut Lanes<'_>, task: u32, cursor: i64, work: &mut Work) -> Result<Option<Segment>> {
    let place = task as usize;
    let found = if times.lane[place] == NONE {
        Some(Segment { start: times.start[place], finish: times.finish[place], task })
    } else {
        lanes.before(times.lane[place], cursor, work)?
    };
    Ok(found.filter(|piece| piece.task == task && piece.start < cursor && piece.finish >= cursor))
}

/// What released the task inside its own piece: a task that it was a wait for, or a message.
fn inner_release(
    times: &Times,
    releases: &Releases,
    own: Segment,
    cursor: i64,
    here: &HashSet<u32>,
) -> Option<Release> {
    let inside = |time: i64| own.start < time && time <= cursor;
    let fresh = |release: &Release| release.cursor < cursor || !here.contains(&release.task);
    let link = releases.inner_link(own.task).and_then(|(source, kind)| {
        let time = times.finish[source as usize];
        inside(time).then_some(Release { task: source, cursor: time, time, cause: Cause::Link(kind) })
    });
    let message = releases.inner_message(own.task).filter(|message| inside(message.received));
    let message = message.filter(|message| message.source != NONE).map(|message| followed(&message));
    later(link.filter(fresh), message.filter(fresh))
}

fn followed(message: &Message) -> Release {
    Release { task: message.source, cursor: message.sent, time: message.received, cause: Cause::Message }
}

/// The later one; of two at the same time the first.
fn later(one: Option<Release>, other: Option<Release>) -> Option<Release> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.time > one.time { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// The later one; of two at the same time that of the first task.
fn latest_or_first(one: Option<Release>, other: Option<Release>) -> Option<Release> {
    match (one, other) {
        (Some(a), Some(b)) if (b.time, Reverse(b.task)) < (a.time, Reverse(a.task)) => one,
        (Some(_), None) => one,
        _ => other,
    }
}

/// The latest release that is not after `start`: a link or a message where the task begins, or what its lane did before.
fn latest_release(
    times: &Times,
    releases: &Releases,
    lanes: &mut Lanes<'_>,
    task: u32,
    start: i64,
    here: &HashSet<u32>,
    work: &mut Work,
) -> Result<Option<Release>> {
    let place = task as usize;
    // A task that ran before this tick is no dead end, though the path stood at it: it goes back through the task's own time.
    let ran_before = |task: u32| times.start[task as usize] < start;
    let fresh = |release: &Release| ran_before(release.task) || !here.contains(&release.task);
    let (mut link, mut message) = (None, None);
    if start == times.start[place] {
        for (source, kind) in releases.links(task) {
            let time = times.finish[source as usize].min(start);
            let found = Release { task: source, cursor: time, time, cause: Cause::Link(kind) };
            link = latest_or_first(link, Some(found).filter(fresh));
        }
        for sent in releases.messages(task) {
            let found = if sent.source == NONE {
                let sender = lane_release(lanes, sent.lane, sent.sent, work)?;
                sender.map(|sender| Release { time: sent.received, cause: Cause::Message, ..sender })
            } else {
                Some(followed(&sent))
            };
            message = latest_or_first(message, found.filter(fresh));
        }
    }
    let lane = lane_release(lanes, times.lane[place], start, work)?;
    Ok(later(later(link, message), lane))
}

/// What a lane did last before a time.
fn lane_release(lanes: &mut Lanes<'_>, lane: u32, time: i64, work: &mut Work) -> Result<Option<Release>> {
    Ok(lanes.before(lane, time, work)?.map(|before| {
        let finish = before.finish.min(time);
        Release { task: before.task, cursor: finish, time: finish, cause: Cause::Lane }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const SYNC: u32 = 1;

    fn walked(times: &Times, links: &[(u32, u32, u32)], messages: &[(u32, Message)]) -> Path {
        let mut releases = Releases::new(times.start.len());
        for (source, target, kind) in links.iter().filter(|(source, target, _)| source != target) {
            releases.add_link(times, *source, *target, *kind, *kind == SYNC);
        }
        for (target, message) in messages.iter().filter(|(target, message)| *target != message.source) {
            releases.add_message(times, *target, *message);
        }
        let mut work = Work::for_tests();
        let mut lanes = Lanes::new(times, 2, &mut work).unwrap();
        let mut elsewhere = Elsewhere::new(times, &[0, 0], &mut work).unwrap();
        walk(times, &releases, &mut lanes, &mut elsewhere, &mut work).unwrap().unwrap()
    }

    fn times(tasks: &[(u32, i64, i64)]) -> Times {
        Times {
            lane: tasks.iter().map(|task| task.0).collect(),
            start: tasks.iter().map(|task| task.1).collect(),
            finish: tasks.iter().map(|task| task.1 + task.2).collect(),
            activity: vec![Activity::Communicates; tasks.len()],
        }
    }

    fn steps(path: &Path) -> Vec<(u32, Cause, i64, i64, i64)> {
        path.steps.iter().map(|step| (step.task, step.cause, step.start, step.finish, step.wait)).collect()
    }

    #[test]
    fn a_wait_ends_with_what_it_waited_for() {
        //        0 1 2 3 4 5 6 7 8 9
        // host   [l) [---sync----) [)      l -> k launch, k -> sync
        // stream   [----k----)
        let tasks = times(&[(0, 0, 1), (0, 2, 6), (1, 1, 5), (0, 9, 1)]);
        let found = walked(&tasks, &[(0, 2, 0), (2, 1, SYNC)], &[]);
        let expected = [
            (0, Cause::Begin, 0, 1, 0),
            (2, Cause::Link(0), 1, 6, 0),
            (1, Cause::Link(SYNC), 6, 8, 0),
            (3, Cause::Lane, 9, 10, 1),
        ];
        assert_eq!(steps(&found), expected);
    }

    #[test]
    fn a_nested_task_is_on_the_path_and_a_longer_predecessor_is_cut() {
        // a [---------)      a -> b; c is nested in a and ends with it
        //     c [-----)
        // b      [-----------)
        let tasks = times(&[(0, 0, 5), (0, 2, 3), (1, 3, 6)]);
        let found = walked(&tasks, &[(0, 2, 0)], &[]);
        let expected = [
            (0, Cause::Begin, 0, 2, 0),
            (1, Cause::Lane, 2, 3, 0),
            (0, Cause::Lane, 3, 3, 0),
            (2, Cause::Link(0), 3, 9, 0),
        ];
        assert_eq!((steps(&found), found.cut), (expected.to_vec(), 1));
    }

    #[test]
    fn a_wait_that_nothing_explains_ends_with_the_work_that_ran_meanwhile() {
        //        0 1 2 3 4 5 6 7 8 9
        // main   [a) [---wait----) [b)      no links
        // worker     [--c---)
        let mut tasks = times(&[(0, 0, 1), (0, 2, 6), (0, 8, 1), (1, 2, 4)]);
        tasks.activity[1] = Activity::Waits;
        let expected = [
            (0, Cause::Begin, 0, 1, 0),
            (3, Cause::Work, 2, 6, 1),
            (1, Cause::Work, 6, 8, 0),
            (2, Cause::Lane, 8, 9, 0),
        ];
        assert_eq!(steps(&walked(&tasks, &[], &[])), expected);
    }

    #[test]
    fn a_thread_that_polls_after_all_work_leads_back_to_the_work() {
        //        0 1 2 3 4 5 6 7 8 9
        // main   [---a----)
        // poll   [)  [)      [)    [)        polls are waits
        let mut tasks = times(&[(0, 0, 4), (1, 0, 1), (1, 2, 1), (1, 6, 1), (1, 9, 1)]);
        (1..5).for_each(|poll| tasks.activity[poll] = Activity::Waits);
        let expected = [(0, Cause::Begin, 0, 4, 0), (3, Cause::Work, 6, 7, 2), (4, Cause::Lane, 9, 10, 2)];
        assert_eq!(steps(&walked(&tasks, &[], &[])), expected);
    }

    #[test]
    fn tasks_without_time_may_wait_for_each_other() {
        let tasks = times(&[(0, 5, 0), (1, 5, 0), (NONE, 0, 3)]);
        let found = walked(&tasks, &[(0, 1, 0), (1, 0, 0), (2, 1, 0)], &[]);
        assert_eq!(found.steps.iter().map(|step| step.wait + step.finish - step.start).sum::<i64>(), 5);
    }

    #[test]
    fn a_circle_at_one_tick_goes_back_through_the_time_of_its_tasks() {
        // a   [-----------)      a -> b, b -> a by sync, and by a message that takes no time
        // b       [---)
        // c       [-----------)  a -> c
        let message = (0, Message { sent: 3, received: 3, source: 1, lane: NONE });
        let tasks = times(&[(NONE, 1, 4), (NONE, 3, 1)]);
        let found = walked(&tasks, &[(0, 1, 0), (1, 0, SYNC)], &[message]);
        let expected = [(0, Cause::Begin, 1, 3, 0), (1, Cause::Link(0), 3, 4, 0), (0, Cause::Link(SYNC), 4, 5, 0)];
        assert_eq!(steps(&found), expected);

        let tasks = times(&[(NONE, 1, 4), (NONE, 3, 1), (NONE, 3, 3)]);
        let found = walked(&tasks, &[(0, 1, 0), (0, 2, 0)], &[message]);
        let expected = [
            (0, Cause::Begin, 1, 3, 0),
            (1, Cause::Link(0), 3, 3, 0),
            (0, Cause::Message, 3, 3, 0),
            (2, Cause::Link(0), 3, 6, 0),
        ];
        assert_eq!(steps(&found), expected);
    }

    #[test]
    fn a_makespan_beyond_bigint_is_none() {
        let mut tasks = times(&[(0, 0, 0), (0, 0, i64::MAX)]);
        tasks.start[0] = i64::MIN + 1;
        let mut work = Work::for_tests();
        let mut lanes = Lanes::new(&tasks, 1, &mut work).unwrap();
        let mut elsewhere = Elsewhere::new(&tasks, &[0], &mut work).unwrap();
        assert!(walk(&tasks, &Releases::new(2), &mut lanes, &mut elsewhere, &mut work).unwrap().is_none());
    }

    proptest! {
        /// Steps and waits tile the makespan, each step is justified, and by the latest that could have released it.
        #[test]
        fn paths_tile_and_are_justified(
            tasks in vec((prop_oneof![0..2u32, Just(NONE)], 0..12i64, 0..6i64), 1..9),
            links in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..2u32), 0..10),
            messages in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), -3..9i64, 0..4i64), 0..4),
            waits in vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let mut times = times(&tasks);
            waits.iter().for_each(|wait| times.activity[wait.index(tasks.len())] = Activity::Waits);
            let task = |index: &prop::sample::Index| index.index(tasks.len()) as u32;
            let links: Vec<(u32, u32, u32)> = links.iter().map(|(from, to, kind)| (task(from), task(to), *kind)).collect();
            let messages: Vec<(u32, Message)> = messages.iter().map(|(from, to, after, takes)| {
                let source = task(from);
                let sent = times.start[source as usize] + after;
                (task(to), Message { sent, received: sent + takes, source, lane: NONE })
            }).collect();
            let path = walked(&times, &links, &messages).steps;

            let (begin, end) = (times.start.iter().min().unwrap(), times.finish.iter().max().unwrap());
            prop_assert_eq!(path[0].start - path[0].wait, *begin);
            prop_assert_eq!(path[0].cause, Cause::Begin);
            prop_assert_eq!(path.last().unwrap().finish, *end);
            let covers = |task: u32, tick: i64| {
                let place = task as usize;
                times.start[place] <= tick && tick < times.finish[place]
            };
            for step in &path {
                prop_assert!(step.wait >= 0 && step.start <= step.finish);
                let place = step.task as usize;
                prop_assert!(times.start[place] <= step.start && step.finish <= times.finish[place], "{:?}", step);
                prop_assert!((step.start..step.finish).all(|tick| covers(step.task, tick)));
            }
            for pair in path.windows(2) {
                let (before, step) = (pair[0], pair[1]);
                prop_assert_eq!(step.start - step.wait, before.finish);
                let justified = match step.cause {
                    Cause::Begin => false,
                    Cause::Lane => times.lane[before.task as usize] == times.lane[step.task as usize],
                    Cause::Work => times.lane[before.task as usize] != times.lane[step.task as usize],
                    Cause::Link(kind) => links.contains(&(before.task, step.task, kind)),
                    Cause::Message => messages.iter().any(|(to, message)| {
                        let sent = message.sent.min(times.finish[message.source as usize]);
                        let of_lane = message.sent < times.start[message.source as usize]
                            && times.lane[message.source as usize] == times.lane[before.task as usize];
                        *to == step.task
                            && message.received <= step.finish
                            && (of_lane || message.source == before.task && sent == before.finish)
                    }),
                };
                prop_assert!(justified, "{:?} {:?}", before, step);
                let begins = step.start == times.start[step.task as usize];
                if begins && step.start > before.finish && step.cause != Cause::Message {
                    // Nothing that could have released it came later.
                    for (source, _, _) in links.iter().filter(|(source, to, kind)| {
                        *to == step.task && source != to && *kind != SYNC && times.start[*source as usize] < step.start
                    }) {
                        prop_assert!(times.finish[*source as usize].min(step.start) <= before.finish);
                    }
                    let later = messages.iter().any(|(to, message)| {
                        *to == step.task
                            && message.source != *to
                            && times.start[message.source as usize] < step.start.min(message.sent + 1)
                            && message.received <= step.start
                            && message.received > before.finish
                    });
                    prop_assert!(!later);
                }
            }
        }
    }
}
