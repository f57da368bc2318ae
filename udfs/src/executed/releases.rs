//! What released each task: of all its links and messages, the ones for which its start or its end waited.
//!
//! A task waits for the latest release that is not after its start. Which one that is does not depend on the path, so
//! links and messages stream by, and per task the latest of each from a task that began earlier is kept. One from a
//! task that began and ended at the very tick of the start is kept besides: tasks may wait for each other in a cycle
//! within one tick, and the path then leaves the cycle through the former.
//!
//! ```text
//! p [-----)     link p -> t: t is released when p finishes; cut at t's start when p runs longer
//! t          [----)
//! k     [-----)           sync link k -> t, a wait for k inside t: t is released at k's finish, while it runs
//! ```

use std::collections::HashMap;

use arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion_common::Result;

use crate::executed::{Account, Activity, Times, UNKNOWN};
use crate::graph::NONE;
use crate::graph::load::{Graphs, integers};
use crate::lanes::words::{Words, WordsReading};
use crate::relation::call::Call;
use crate::relation::rows::without_null;
use crate::relation::runs::Reading;

/// The kinds of links that release nothing.
const NO_RELEASE: [&str; 2] = ["weak", "flow"];
/// The kind of links that release the end of a task and not its start.
const SYNC: &str = "sync";
/// Bytes that a link takes in a table of the kept ones.
const LINK_BYTES: usize = 2 * size_of::<(u32, (u32, u32))>();
/// Bytes that a message takes in a table of the kept ones.
const MESSAGE_BYTES: usize = 2 * (size_of::<Message>() + size_of::<u32>());

/// The releases of the tasks of a run, by index.
#[derive(Debug)]
pub(crate) struct Releases {
    /// The predecessor by link that released the start and began before it, [`NONE`] without one.
    by_link: Vec<u32>,
    /// The number of that link's kind.
    kind: Vec<u32>,
    /// Links from tasks that began and ended at the tick at which the target starts: those may be a circle.
    instant: HashMap<u32, (u32, u32)>,
    /// Links that released a task while it ran.
    inside: HashMap<u32, (u32, u32)>,
    /// The message that released the start, from a task that began before it.
    by_message: HashMap<u32, Message>,
    /// Messages that tasks sent at the tick at which they and the target start: those may be a circle.
    instant_message: HashMap<u32, Message>,
    /// The message that released a task while it ran.
    inside_message: HashMap<u32, Message>,
}

/// What a path needs to know of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Message {
    /// When it arrived.
    pub(crate) received: i64,
    /// When it was sent, never after it arrived.
    pub(crate) sent: i64,
    /// The task that sent it, [`NONE`] when only the lane is known.
    pub(crate) source: u32,
    /// The lane it was sent from, [`NONE`] when that is not known.
    pub(crate) lane: u32,
}

impl Releases {
    pub(crate) fn new(tasks: usize) -> Self {
        Releases {
            by_link: vec![NONE; tasks],
            kind: vec![NONE; tasks],
            instant: HashMap::new(),
            inside: HashMap::new(),
            by_message: HashMap::new(),
            instant_message: HashMap::new(),
            inside_message: HashMap::new(),
        }
    }

    /// The predecessors that released a task's start, each with the kind of its link: the latest that began before it,
    /// and one that began and ended with it.
    pub(crate) fn links(&self, task: u32) -> impl Iterator<Item = (u32, u32)> {
        let source = self.by_link[task as usize];
        let before = (source != NONE).then(|| (source, self.kind[task as usize]));
        before.into_iter().chain(self.instant.get(&task).copied())
    }

    /// The task that a task waited for while it ran, and the kind of the link.
    pub(crate) fn inner_link(&self, task: u32) -> Option<(u32, u32)> {
        self.inside.get(&task).copied()
    }

    /// The messages that released a task's start: the latest of a task that began before it, and one of a task that
    /// began with it.
    pub(crate) fn messages(&self, task: u32) -> impl Iterator<Item = Message> {
        self.by_message.get(&task).copied().into_iter().chain(self.instant_message.get(&task).copied())
    }

    /// Whether any link released a task.
    pub(super) fn has_links(&self) -> bool {
        self.by_link.iter().any(|source| *source != NONE) || !self.instant.is_empty() || !self.inside.is_empty()
    }

    /// Leaves the links out, as if there were none.
    pub(super) fn forget_links(&mut self) {
        self.by_link.fill(NONE);
        self.kind.fill(NONE);
        self.instant.clear();
        self.inside.clear();
    }

    /// How many releases are kept beside the arrays: of links, of messages.
    fn kept(&self) -> (usize, usize) {
        (
            self.instant.len() + self.inside.len(),
            self.by_message.len() + self.instant_message.len() + self.inside_message.len(),
        )
    }

    /// The message that a task waited for while it ran.
    pub(crate) fn inner_message(&self, task: u32) -> Option<Message> {
        self.inside_message.get(&task).copied()
    }

    /// A link between two timed tasks. `kind` is its number, `sync` whether it releases the end of the target.
    #[inline]
    pub(super) fn add_link(&mut self, times: &Times, source: u32, target: u32, kind: u32, sync: bool) {
        let start = times.start[target as usize];
        let released = |source: u32| times.finish[source as usize];
        if sync && released(source) > start && released(source) <= times.finish[target as usize] {
            let best = self.inside.entry(target).or_insert((source, kind));
            if (released(source), best.0) > (released(best.0), source) {
                *best = (source, kind);
            }
            return;
        }
        // A task that begins with or after the one that it should release did not; unless both take no time.
        let begins = times.start[source as usize];
        if begins > start || (begins == start && released(source) > start) {
            return;
        }
        if begins == start {
            let best = self.instant.entry(target).or_insert((source, kind));
            if source < best.0 {
                *best = (source, kind);
            }
            return;
        }
        let best = &mut self.by_link[target as usize];
        let better = *best == NONE || {
            let (one, other) = (released(source).min(start), released(*best).min(start));
            one > other || (one == other && source < *best)
        };
        if better {
            *best = source;
            self.kind[target as usize] = kind;
        }
    }

    /// A message to a timed task. A path goes back along it into its sender, so the message cannot leave that task after the
    /// task's end: the time from there on is a wait. If it was sent before its task began, it is attributed to the lane.
    pub(super) fn add_message(&mut self, times: &Times, target: u32, mut message: Message) {
        if message.source != NONE {
            let sender = message.source as usize;
            message.sent = message.sent.min(times.finish[sender]);
            if message.sent < times.start[sender] {
                message.source = NONE;
                message.lane = if message.lane == NONE { times.lane[sender] } else { message.lane };
            }
        }
        let (start, finish) = (times.start[target as usize], times.finish[target as usize]);
        let inside = message.received > start
            && message.received <= finish
            && times.activity[target as usize] != Activity::Works;
        if message.received > start && !inside {
            return;
        }
        let instant = message.source != NONE && times.start[message.source as usize] == start;
        let kept = match (inside, instant) {
            (true, _) => &mut self.inside_message,
            (false, true) => &mut self.instant_message,
            (false, false) => &mut self.by_message,
        };
        let best = kept.entry(target).or_insert(message);
        if (message.received, best.source) > (best.received, message.source) {
            *best = message;
        }
    }
}

/// Streams the links by. Of omitted ones and of given ones alike, those of kind `weak` and `flow` release nothing.
pub(crate) fn read_links(
    call: &mut Call,
    graphs: &mut Graphs,
    times: &[Times],
    releases: &mut [Releases],
    kinds: &mut Words,
) -> Result<()> {
    let tasks: usize = times.iter().map(|times| times.start.len()).sum();
    let (links, work) = call.input("links")?;
    work.grow(tasks * 2 * size_of::<u32>())?;
    let (mut reading, mut kinds_reading, mut numbers) = (Reading::default(), WordsReading::default(), vec![]);
    let mut held = 0;
    while let Some(batch) = links.next_batch()? {
        work.check()?;
        let batch = without_null(batch, &["source", "target"], &mut graphs.counts.links_without_end)?;
        let (sources, targets) = (integers(&batch, "source")?, integers(&batch, "target")?);
        numbers.clear();
        match batch.column_by_name("kind") {
            Some(texts) => kinds.number(&mut kinds_reading, texts, &mut numbers)?,
            None => numbers.resize(batch.num_rows(), NONE),
        }
        let of_kind = |names: &[&str]| -> Vec<bool> {
            (0..kinds.len() as u32).map(|kind| names.contains(&kinds.text(kind))).collect()
        };
        let (no_release, sync) = (of_kind(&NO_RELEASE), of_kind(&[SYNC]));
        let is = |these: &[bool], kind: u32| these.get(kind as usize).copied().unwrap_or(false);
        let runs = batch.column_by_name("run");
        let of_any_run = runs.is_none() && !graphs.runs.is_single_null();
        let stretches = if of_any_run { vec![] } else { graphs.runs.find(&mut reading, runs, batch.num_rows())? };
        let mut add = |run: usize, row: usize| {
            let ids = &graphs.graphs[run].ids;
            let (Some(source), Some(target)) = (ids.index(sources.value(row)), ids.index(targets.value(row))) else {
                return false;
            };
            let times = &times[run];
            if !is(&no_release, numbers[row]) && source != target && times.known(source) && times.known(target) {
                releases[run].add_link(times, source, target, numbers[row], is(&sync, numbers[row]));
            }
            true
        };
        let mut nowhere = 0;
        for stretch in stretches {
            nowhere += match stretch.run {
                Some(run) => stretch.rows.filter(|row| !add(run, *row)).count(),
                None => stretch.rows.len(),
            };
        }
        if of_any_run {
            for row in 0..batch.num_rows() {
                // Links that do not say their run are of every run in which both tasks are.
                let found = (0..times.len()).filter(|run| add(*run, row)).count();
                nowhere += usize::from(found == 0);
            }
        }
        graphs.counts.links_to_nowhere += nowhere;
        let kept: usize = releases.iter().map(|of_run| of_run.kept().0).sum();
        work.grow((kept - held) * LINK_BYTES)?;
        held = kept;
    }
    Ok(())
}

/// Streams the messages by. Those without a target task, a time, or a sender release nothing. Counts
/// those that name no task at their end, in runs that have tasks, and those that lead to a task that is not there.
pub(crate) fn read_messages(
    call: &mut Call,
    graphs: &mut Graphs,
    times: &[Times],
    releases: &mut [Releases],
    locations: &mut Words,
    account: &mut Account,
) -> Result<()> {
    let (messages, work) = call.input("messages")?;
    let (mut reading, mut lanes_reading, mut lanes) = (Reading::default(), WordsReading::default(), vec![]);
    let (mut nowhere, mut held) = (0, 0);
    let mut untied = 0;
    while let Some(batch) = messages.next_batch()? {
        work.check()?;
        lanes.clear();
        match batch.column_by_name("source") {
            Some(texts) => locations.number(&mut lanes_reading, texts, &mut lanes)?,
            None => lanes.resize(batch.num_rows(), NONE),
        }
        let columns = Columns::of(&batch)?;
        let runs = batch.column_by_name("run");
        let of_any_run = runs.is_none() && !graphs.runs.is_single_null();
        let stretches = if of_any_run { vec![] } else { graphs.runs.find(&mut reading, runs, batch.num_rows())? };
        let mut untied_rows = vec![false; batch.num_rows()];
        let mut add = |run: usize, row: usize| {
            let ids = &graphs.graphs[run].ids;
            let Some(target) = value(Some(columns.target_task), row) else {
                untied_rows[row] |= !times[run].start.is_empty();
                return true;
            };
            let Some(target) = ids.index(target) else { return false };
            let source = value(columns.source_task, row).and_then(|task| ids.index(task));
            let source = source.filter(|source| times[run].known(*source));
            let message = columns.message(row, source, lanes[row], &times[run]);
            if let Some(message) = message.filter(|message| times[run].known(target) && message.source != target) {
                releases[run].add_message(&times[run], target, message);
            }
            true
        };
        for stretch in stretches {
            nowhere += match stretch.run {
                Some(run) => stretch.rows.filter(|row| !add(run, *row)).count(),
                None => stretch.rows.len(),
            };
        }
        if of_any_run {
            for row in 0..batch.num_rows() {
                let found = (0..times.len()).filter(|run| add(*run, row)).count();
                nowhere += usize::from(found == 0);
            }
        }
        untied += untied_rows.iter().filter(|untied| **untied).count();
        let kept: usize = releases.iter().map(|of_run| of_run.kept().1).sum();
        work.grow((kept - held) * MESSAGE_BYTES)?;
        held = kept;
    }
    account.messages_to_nowhere += nowhere;
    account.untied_messages += untied;
    Ok(())
}

/// The columns of a batch of messages.
struct Columns<'a> {
    source_task: Option<&'a Int64Array>,
    target_task: &'a Int64Array,
    send_time: Option<&'a Int64Array>,
    receive_time: Option<&'a Int64Array>,
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Columns<'a>> {
        let optional = |name: &str| batch.column_by_name(name).map(|column| column.as_primitive::<Int64Type>());
        Ok(Columns {
            source_task: optional("source_task"),
            target_task: integers(batch, "target_task")?,
            send_time: optional("send_time"),
            receive_time: optional("receive_time"),
        })
    }

    /// The message of a row; `None` when it cannot be followed. A missing time is the other one; without both it was sent
    /// and received when its sender finished.
    fn message(&self, row: usize, source: Option<u32>, lane: u32, times: &Times) -> Option<Message> {
        let finish = source.map(|source| times.finish[source as usize]);
        let (sent, received) = (value(self.send_time, row), value(self.receive_time, row));
        let received = received.or(sent).or(finish)?;
        let sent = sent.or(finish).unwrap_or(received).min(received);
        // Sent before its sender began: that cannot be followed back.
        let begins = source.map_or(i64::MIN, |source| times.start[source as usize]);
        let from_somewhere = source.is_some() || lane != NONE;
        (from_somewhere && sent >= begins).then_some(Message { received, sent, source: source.unwrap_or(NONE), lane })
    }
}

fn value(column: Option<&Int64Array>, row: usize) -> Option<i64> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row)).filter(|value| *value != UNKNOWN)
}
