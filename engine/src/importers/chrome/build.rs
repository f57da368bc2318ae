//! Build: turns the records of a file into tables.
//!
//! The order of the steps follows from their dependencies: ends of tasks → nesting (which needs them) → links and parents
//! (which need nesting) → times from one origin → tables. Task columns move block by block without a copy; only where an
//! `E` adds arguments are those of the block written anew. What is found out about tasks is sorted by task, so that all of it is read along
//! with the blocks, from memory or from disk.

use std::iter::Peekable;
use std::ops::Range;

use datafusion::arrow::array::{Array, Int64Array, StringArray};
use datafusion::arrow::buffer::NullBuffer;
use hashbrown::HashMap;

use super::chunk::{Mark, Measure, NO_TIME, NO_WORD, Sample, Texts, UNFINISHED};
use super::file::{Piece, Recording, Shared};
use super::kineto::{Kinds, Label, Link};
use super::lanes::{LaneKind, Lanes};
use super::nest::{NONE, Nesting, Places};
use super::round_trip::{self, TQ_TASKS};
use super::slices::{Closed, Patch};
use super::{asyncs, flows, header, kineto, launches, recorder, slices, syncs};
use crate::cells::Cells;
use crate::error::ImportError;
use crate::tables::{self, PROFILER, Table};
use crate::trace::{List, RunBuilder, Sorted, Words, findings, side_by_side};

/// Fills the tables of a run from the recordings of its files.
pub(super) fn build(
    mut recordings: Vec<Recording>,
    mut shared: Shared,
    threads: usize,
    builder: &mut RunBuilder,
) -> Result<(), ImportError> {
    let several = recordings.len() > 1;
    if several {
        header::to_common_clock(&mut recordings)?;
    }
    for recording in &mut recordings {
        let mut of_tasks = Vec::new();
        for fact in std::mem::take(&mut recording.lists.facts) {
            match fact.what.as_str() {
                TQ_TASKS if recording.origin.written.is_ours() => of_tasks.push(fact.args),
                _ => shared.lanes.tell(&fact),
            }
        }
        believe(&of_tasks, recording);
    }
    let holds = if shared.lanes.are_told() { holding_lanes(recordings.iter(), &shared)? } else { Vec::new() };
    shared.lanes.settle_told(&holds);
    // Times of another format keep their tick 0.
    let is_ours = recordings.iter().any(|recording| recording.origin.written.is_ours());
    let keeps_times = shared.lanes.are_told() || is_ours;
    let origin = match keeps_times {
        true => None,
        false => recordings.iter().map(earliest).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().min(),
    };
    header::describe(&recordings, &mut shared, origin, several, builder);
    let kinds = Kinds::of(&shared.kinds);
    let mut built = Vec::with_capacity(recordings.len());
    for mut recording in recordings {
        built.push((join(&mut recording, &mut shared, &kinds, threads)?, recording));
    }
    if built.iter().all(|(_, recording)| recording.lists.events == 0) {
        builder.stats.note(findings::NO_EVENTS, 1, || "the trace holds no events".to_owned());
    }
    let own_lanes = recorder::own_lanes(built.iter().map(|(joined, file)| (file, &*joined.own)), &shared.lanes)?;
    let carriers = match is_ours {
        true => vec![false; shared.lanes.all.len()],
        false => kinds.carriers(built.iter().map(|(_, recording)| recording), &shared)?,
    };
    let role_of = |lane: usize| match (own_lanes[lane], carriers[lane]) {
        (true, _) => Some(PROFILER),
        (false, true) => Some("communication"),
        (false, false) => None,
    };
    locations(&shared, role_of, built.iter().map(|(_, recording)| recording), builder)?;
    let words = std::mem::take(&mut shared.names);
    let has_own = built.iter().any(|(joined, _)| !joined.own.is_empty());
    let roles = kinds.roles(&words, has_own, builder);
    *builder.words(tables::Tasks::name) = words;
    *builder.words(tables::Tasks::kind) = std::mem::take(&mut shared.kinds);
    for lane in &shared.lanes.all {
        builder.word(tables::Tasks::location, &lane.location);
    }
    let origin = origin.unwrap_or(0);
    for (mut joined, mut recording) in built {
        let first = builder.rows(Table::Tasks) as i64;
        builder.stats.absorb(std::mem::take(&mut recording.stats));
        samples(&recording, &shared, origin, first, builder)?;
        marks(&recording, &shared, origin, first, builder)?;
        let mut labels = Labels::of(builder);
        let links_wait = threads > 1 && joined.links.len() <= LINKS_THAT_WAIT && !recording.is_large();
        let links = std::mem::replace(&mut joined.links, List::new(&recording.room));
        if links_wait {
            let pieces = std::mem::take(&mut recording.pieces);
            let mut waiting = Vec::new();
            let (of_links, of_tasks) = side_by_side(
                threads,
                || {
                    each_links(&links, &recording, first, &mut labels, |rows| {
                        waiting.push(rows);
                        Ok(())
                    })
                },
                || tasks(pieces, &recording, joined, origin, first, &roles, builder),
            );
            of_links.and(of_tasks)?;
            labels.give_back(builder);
            waiting.into_iter().try_for_each(|rows| builder.append_derived(rows))?;
        } else {
            each_links(&links, &recording, first, &mut labels, |rows| builder.append_derived(rows))?;
            drop(links);
            labels.give_back(builder);
            let pieces = std::mem::take(&mut recording.pieces);
            tasks(pieces, &recording, joined, origin, first, &roles, builder)?;
        }
    }
    Ok(())
}

/// So many links may wait in memory, unaccounted for, while the tasks become tables.
const LINKS_THAT_WAIT: usize = 1 << 20;

/// Takes what `tq` wrote of tasks by their numbers, where the file still holds all of them; else it forgets all such numbers.
fn believe(of_tasks: &[String], recording: &mut Recording) {
    let said: Vec<_> = of_tasks.iter().map(|args| serde_json::from_str::<round_trip::Tasks>(args)).collect();
    let rows = recording.rows;
    let fits = |tasks: &round_trip::Tasks| tasks.of == rows && tasks.parents.iter().all(|task| *task < rows);
    if !said.is_empty() && said.iter().all(|tasks| tasks.as_ref().is_ok_and(fits)) {
        let parents = said.iter().flatten().flat_map(|tasks| tasks.parents.chunks_exact(2));
        let parents: Vec<(u32, u32)> = parents.map(|pair| (pair[0], pair[1])).collect();
        let cyclic = kineto::in_cycles(&parents);
        recording.told_parents = parents.into_iter().filter(|(child, _)| !cyclic.contains(child)).collect();
        let example = || "tasks that belong to themselves; the parents by time count".to_owned();
        recording.stats.note(findings::DECLARED_LEFT_OUT, cyclic.len() as u64, example);
        recording.is_believed = true;
        return;
    }
    let left_out = said.len() as u64;
    recording
        .stats
        .note(findings::DECLARED_LEFT_OUT, left_out, || format!("`{TQ_TASKS}` counts others than these {rows} tasks"));
}

/// The earliest time of a file; metadata does not count.
fn earliest(recording: &Recording) -> Result<Option<i64>, ImportError> {
    let mut earliest = recording.lists.earliest.map(|time| time.saturating_add(recording.base));
    for piece in &recording.pieces {
        earliest = earliest.into_iter().chain(piece.starts.values()?.iter().copied().min()).min();
    }
    Ok(earliest)
}

/// What the joins of a file found.
struct Joined {
    places: Places,
    /// Parents that the trace declares: (child, parent), by child. Of several, the first counts.
    parents: Sorted<(u32, u32)>,
    links: List<Link>,
    patches: Sorted<Patch>,
    /// What the recorder wrote of itself, by position.
    own: Vec<u32>,
}

fn join(recording: &mut Recording, shared: &mut Shared, kinds: &Kinds, threads: usize) -> Result<Joined, ImportError> {
    let (mut closed, unfinished) = slices::close(recording, shared)?;
    let mut parents = asyncs::close(recording, shared, &mut closed)?;
    let Closed { finishes, patches, at_once } = closed;
    recording.set_finishes(finishes.sorted()?)?;
    for piece in &recording.pieces {
        for (kind, lane) in piece.kinds.values()?.iter().zip(piece.lanes.values()?.iter()) {
            if kinds.is_on_stream(*kind) {
                shared.lanes.all[*lane as usize].is_stream = true;
            }
        }
    }
    let lanes = &shared.lanes.all;
    let of_thread = |lane: usize| (lanes[lane].lane_kind == LaneKind::Thread).then_some(lanes[lane].nests);
    // A trace of another format says all its links as flows.
    let infers = !shared.lanes.are_told() && !recording.origin.written.is_ours();
    // What waits on disk is read once at a time.
    let threads = if recording.is_large() { 1 } else { threads };
    let (nesting, launched) = side_by_side(
        threads,
        || Nesting::of(recording, lanes.len(), of_thread, at_once),
        || links_of_launches(recording, kinds, &shared.lanes, infers),
    );
    let (mut nesting, (launches, mut links)) = (nesting?, launched?);
    if let Some((row, around)) = nesting.example {
        let example = format!(
            "`{}` begins inside of `{}` on {} and ends after it",
            shared.names.word(recording.name(row)?),
            shared.names.word(recording.name(around)?),
            lanes[recording.lane(row)? as usize].location
        );
        recording.stats.note(findings::OVERLAP, nesting.overlaps, || example);
    }
    end_with_those_around(std::mem::take(&mut nesting.cut), recording, shared)?;
    note_unfinished(&unfinished, recording, shared)?;
    std::mem::take(&mut recording.told_parents).into_iter().try_for_each(|parent| parents.push(parent))?;
    if !recording.origin.written.is_ours() {
        kineto::python_parents(recording, &shared.lanes, &mut parents)?;
    }
    launches.count_ambiguous(recording);
    if infers {
        syncs::links(recording, &launches, shared, &mut links)?;
    }
    flows::links(recording, &nesting, &launches, &mut links)?;
    let places = nesting.places;
    recording.forget_joins();
    // What `tq` wrote has its roles.
    let own = if recording.origin.written.is_ours() { Vec::new() } else { recorder::own_tasks(recording, shared)? };
    Ok(Joined { places, parents: parents.sorted()?, links, patches: patches.sorted()?, own })
}

/// What calls launched, and the links that follow from it where they are inferred: those that need neither nesting nor ends.
fn links_of_launches(
    recording: &Recording,
    kinds: &Kinds,
    lanes: &Lanes,
    infers: bool,
) -> Result<(launches::Launches, List<Link>), ImportError> {
    let launches = launches::Launches::of(recording, kinds, lanes)?;
    let mut links = List::new(&recording.room);
    if infers {
        launches.links(&mut links)?;
        launches::operator_links(recording, kinds, &launches, lanes, &mut links)?;
    }
    Ok((launches, links))
}

/// Ends what a `B` began inside of an `X`, where the thread goes on behind that one, as Perfetto does.
fn end_with_those_around(
    mut cut: Vec<(u32, i64)>,
    recording: &mut Recording,
    shared: &Shared,
) -> Result<(), ImportError> {
    let Some(&(first, time)) = cut.first() else { return Ok(()) };
    let count = cut.len() as u64;
    cut.sort_unstable();
    recording.set_finishes(cut.into_iter().map(Ok))?;
    let name = shared.names.word(recording.name(first)?);
    let example = format!("`{name}` has no `E`; it ends at {time} ns with the task around it");
    recording.stats.note(findings::END_MISSING, count, || example);
    Ok(())
}

/// Counts what `B` began and nothing ended.
fn note_unfinished(begun: &[u32], recording: &mut Recording, shared: &Shared) -> Result<(), ImportError> {
    let (mut count, mut first) = (0, None::<u32>);
    for &row in begun {
        if recording.finish(row)? == UNFINISHED {
            count += 1;
            first = Some(first.map_or(row, |first| first.min(row)));
        }
    }
    let Some(first) = first else { return Ok(()) };
    let example = format!("`{}` has no `E`", shared.names.word(recording.name(first)?));
    recording.stats.note(findings::UNFINISHED, count, || example);
    Ok(())
}

fn locations<'r>(
    shared: &Shared,
    role_of: impl Fn(usize) -> Option<&'static str>,
    recordings: impl Iterator<Item = &'r Recording>,
    builder: &mut RunBuilder,
) -> Result<(), ImportError> {
    let used = if shared.lanes.are_told() { used_lanes(recordings, shared)? } else { Vec::new() };
    let rows = shared.lanes.rows(role_of, |lane| used[lane]);
    builder.append_derived(tables::Locations {
        location: rows.iter().map(|row| row.location.as_str()).collect(),
        parent: rows.iter().map(|row| row.parent.as_deref()).collect(),
        kind: rows.iter().map(|row| row.kind.as_deref()).collect(),
        name: rows.iter().map(|row| row.name.as_deref()).collect(),
        process: rows.iter().map(|row| row.process.as_deref()).collect(),
        sort_index: rows.iter().map(|row| row.sort_index).collect(),
        role: rows.iter().map(|row| row.role.as_deref()).collect(),
        clock: rows.iter().map(|row| row.clock.as_deref()).collect(),
        args: rows.iter().map(|row| row.args.as_deref()).collect(),
    })
}

/// Lanes on which something lies, and those above them.
fn used_lanes<'r>(recordings: impl Iterator<Item = &'r Recording>, shared: &Shared) -> Result<Vec<bool>, ImportError> {
    let lanes = &shared.lanes.all;
    let mut used = holding_lanes(recordings, shared)?;
    // What is above a lane comes before it.
    for lane in (0..lanes.len()).rev().filter(|lane| lanes[*lane].shows.is_none()) {
        if let (true, Some(above)) = (used[lane], lanes[lane].parent) {
            used[above as usize] = true;
        }
    }
    Ok(used)
}

/// Lanes on which something lies.
fn holding_lanes<'r>(
    recordings: impl Iterator<Item = &'r Recording>,
    shared: &Shared,
) -> Result<Vec<bool>, ImportError> {
    let mut holds = vec![false; shared.lanes.all.len()];
    let mut see = |lane: i32| {
        if lane != NO_WORD {
            holds[lane as usize] = true;
        }
    };
    for recording in recordings {
        for piece in &recording.pieces {
            piece.lanes.values()?.iter().for_each(|lane| see(*lane));
        }
        for marks in recording.lists.marks.chunks() {
            marks?.iter().for_each(|mark| see(mark.lane));
        }
        for samples in recording.lists.samples.chunks() {
            samples?.iter().for_each(|sample| see(sample.lane));
        }
    }
    Ok(holds)
}

/// Hands out links as rows of a table.
fn each_links(
    links: &List<Link>,
    recording: &Recording,
    first: i64,
    Labels { kinds, names }: &mut Labels,
    mut take: impl FnMut(tables::Links) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let args = |link: &Link| (link.args != Label::None).then(|| link.args.text(recording));
    for links in links.chunks() {
        let links = links?;
        let kind: Vec<i32> = links.iter().map(|link| kinds.key(link.kind, recording)).collect();
        let name: Vec<Option<i32>> =
            links.iter().map(|link| (link.name != Label::Null).then(|| names.key(link.name, recording))).collect();
        take(tables::Links {
            source: links.iter().map(|link| first + i64::from(link.source)).collect(),
            target: links.iter().map(|link| first + i64::from(link.target)).collect(),
            kind: kind.into(),
            name: name.into(),
            args: links.iter().map(args).collect(),
        })?;
    }
    Ok(())
}

/// The words about links, while they are looked for.
struct Labels {
    kinds: Keys,
    names: Keys,
}

impl Labels {
    /// Takes the words of a builder.
    fn of(builder: &mut RunBuilder) -> Labels {
        let mut keys = |column| Keys::of(std::mem::take(builder.words(column)));
        Labels { kinds: keys(tables::Links::kind), names: keys(tables::Links::name) }
    }

    fn give_back(self, builder: &mut RunBuilder) {
        *builder.words(tables::Links::kind) = self.kinds.words;
        *builder.words(tables::Links::name) = self.names.words;
    }
}

/// The keys of the labels of links in a column: links come in long runs of one label.
struct Keys {
    words: Words,
    last: Option<(Label, i32)>,
    known: HashMap<Label, i32>,
}

impl Keys {
    fn of(words: Words) -> Keys {
        Keys { words, last: None, known: HashMap::new() }
    }

    fn key(&mut self, label: Label, recording: &Recording) -> i32 {
        match self.last {
            Some((last, key)) if last == label => key,
            _ => {
                let key = || self.words.intern(label.text(recording));
                let key = *self.known.entry(label).or_insert_with(key);
                self.last = Some((label, key));
                key
            }
        }
    }
}

/// Values over time. Those of `[memory]` instants come beside the event.
fn samples(
    recording: &Recording,
    shared: &Shared,
    origin: i64,
    first: i64,
    builder: &mut RunBuilder,
) -> Result<(), ImportError> {
    let is_derived = |sample: &&Sample| matches!(sample.measure, Measure::Bytes | Measure::BytesDelta);
    let location =
        |sample: &&Sample| usize::try_from(sample.lane).ok().map(|lane| shared.lanes.all[lane].location.as_str());
    let told_text = |key: i32| (key != NO_WORD).then(|| recording.text(key));
    // Kind, unit and task.
    let said = |sample: &Sample| match sample.measure {
        Measure::Told { kind, unit, task } => {
            (told_text(kind), told_text(unit), task.filter(|_| recording.is_believed))
        }
        Measure::Level => (Some("level"), None, None),
        Measure::Bytes => (Some("level"), Some("bytes"), None),
        Measure::BytesDelta => (Some("delta"), Some("bytes"), None),
    };
    let task =
        |sample: &&Sample| said(sample).2.filter(|task| *task < recording.rows).map(|task| first + i64::from(task));
    let rows = |samples: &[&Sample]| tables::Counters {
        location: samples.iter().map(location).collect(),
        task: samples.iter().map(task).collect(),
        name: samples.iter().map(|sample| recording.text(sample.series)).collect(),
        time: samples.iter().map(|sample| time(sample.time, recording.base, origin)).collect(),
        value: samples.iter().map(|sample| sample.value).collect(),
        kind: samples.iter().map(|sample| said(sample).0).collect(),
        unit: samples.iter().map(|sample| said(sample).1).collect(),
        ..Default::default()
    };
    for samples in recording.lists.samples.chunks() {
        let samples = samples?;
        builder.append(rows(&samples.iter().filter(|sample| !is_derived(sample)).collect::<Vec<_>>()))?;
    }
    for samples in recording.lists.samples.chunks() {
        let samples = samples?;
        builder.append_derived(rows(&samples.iter().filter(is_derived).collect::<Vec<_>>()))?;
    }
    Ok(())
}

fn marks(
    recording: &Recording,
    shared: &Shared,
    origin: i64,
    first: i64,
    builder: &mut RunBuilder,
) -> Result<(), ImportError> {
    let location = |mark: &Mark| (mark.lane != NO_WORD).then(|| shared.lanes.all[mark.lane as usize].location.as_str());
    let kind = |mark: &Mark| match mark.told_kind {
        NO_WORD => mark.kind.text(),
        told => recording.text(told),
    };
    let task = |mark: &Mark| {
        let told = mark.told_task.filter(|task| recording.is_believed && *task < recording.rows);
        told.or(mark.task).map(|row| first + i64::from(row))
    };
    for marks in recording.lists.marks.chunks() {
        let marks = marks?;
        builder.append(tables::Events {
            location: marks.iter().map(location).collect(),
            task: marks.iter().map(task).collect(),
            name: marks.iter().map(|mark| recording.text(mark.name)).collect(),
            kind: marks.iter().map(kind).collect(),
            time: marks.iter().map(|mark| time(mark.time, recording.base, origin)).collect(),
            args: marks.iter().map(|mark| mark.args.as_deref()).collect(),
        })?;
    }
    Ok(())
}

fn tasks(
    pieces: Vec<Piece>,
    recording: &Recording,
    joined: Joined,
    origin: i64,
    first: i64,
    roles: &kineto::Roles,
    builder: &mut RunBuilder,
) -> Result<(), ImportError> {
    let Joined { mut places, parents, patches, own: of_recorder, .. } = joined;
    let (mut declared, mut patches) = (parents.peekable(), patches.peekable());
    let mut of_recorder = of_recorder.as_slice();
    for piece in pieces {
        recording.release(piece.memory());
        let range = piece.rows();
        let (from, rows) = (range.start, range.len());
        let Piece { starts, finishes, names, kinds, lanes, args, ids, roles: told_roles, without_kind, .. } = piece;
        let (mut starts, mut finishes) = (starts.fetched()?, finishes.fetched()?);
        let (names, kinds, told_roles) = (names.fetched()?, kinds.fetched()?, told_roles.fetched()?);
        let own = next_parents(&mut declared, range.end)?;
        let (own_rows, later) = of_recorder.split_at(of_recorder.partition_point(|row| (*row as usize) < range.end));
        of_recorder = later;
        let finished = shift(&mut starts, &mut finishes, origin);
        let role = match recording.origin.written.is_ours() {
            true => roles.told(rows, told_roles.iter().map(|(row, role)| (*row, told_role(*role, recording, builder)))),
            false => roles.cells(&kinds, &names, own_rows.iter().map(|row| *row as usize - from)),
        };
        let kind = match without_kind.values()?.as_ref() {
            [] => Cells::one_or_many(kinds),
            rows => {
                let mut kinds: Vec<Option<i32>> = kinds.into_iter().map(Some).collect();
                rows.iter().for_each(|row| kinds[*row as usize] = None);
                kinds.into()
            }
        };
        let (around, depths) = places.next(range.clone())?;
        let nested = !own.is_empty() || around.iter().any(|parent| *parent != NONE);
        let stack = nested.then(|| known(around.iter().map(|&parent| position(parent, first))));
        let args = patched(args.fetched()?, range, &mut patches)?;
        let ids = ids.fetched()?;
        let id = (!ids.is_empty()).then(|| {
            let mut column: Vec<Option<&str>> = vec![None; rows];
            for (row, id) in &ids {
                column[*row as usize] = Some(id);
            }
            StringArray::from(column)
        });
        builder.append(tables::Tasks {
            id: id.into(),
            parent: stack.as_ref().map(|stack| with_declared(stack, &own, from, first)).into(),
            stack_parent: stack.into(),
            role,
            name: names.into(),
            kind,
            location: Cells::one_or_many(lanes.fetched()?),
            start: starts.into(),
            finish: Int64Array::new(finishes.into(), finished).into(),
            depth: known(depths.iter().map(|depth| i64::from(*depth))).into(),
            args: (args.null_count() < args.len()).then_some(args).into(),
            ..Default::default()
        })?;
    }
    Ok(())
}

/// The declared parents of the tasks before `end` that were not asked for before; of several for a task, the first.
fn next_parents(declared: &mut Peekable<Sorted<(u32, u32)>>, end: usize) -> Result<Vec<(u32, u32)>, ImportError> {
    let mut parents: Vec<(u32, u32)> = Vec::new();
    while let Some(next) = declared.next_if(|next| next.as_ref().map_or(true, |(child, _)| (*child as usize) < end)) {
        let (child, parent) = next?;
        if parents.last().is_none_or(|(last, _)| *last != child) {
            parents.push((child, parent));
        }
    }
    Ok(parents)
}

/// The key of a role that `tq` wrote.
fn told_role(role: i32, recording: &Recording, builder: &mut RunBuilder) -> Option<i32> {
    (role != NO_WORD).then(|| builder.word(tables::Tasks::role, recording.text(role)))
}

/// Counts times from the origin; which finishes are known, where not all are.
fn shift(starts: &mut [i64], finishes: &mut [i64], origin: i64) -> Option<NullBuffer> {
    let finished =
        finishes.contains(&UNFINISHED).then(|| finishes.iter().map(|finish| *finish != UNFINISHED).collect());
    for time in starts.iter_mut().chain(finishes) {
        *time = time.saturating_sub(origin);
    }
    finished
}

/// A time from the origin, where `base` is to be added to it; NULL for what has none.
fn time(time: i64, base: i64, origin: i64) -> Option<i64> {
    (time != NO_TIME).then(|| time.saturating_add(base).saturating_sub(origin))
}

fn position(row: u32, first: i64) -> i64 {
    if row == NONE { -1 } else { first + i64::from(row) }
}

/// A column in which values below 0 are NULL.
fn known(values: impl Iterator<Item = i64>) -> Int64Array {
    let values: Vec<i64> = values.collect();
    let nulls = values.iter().any(|value| *value < 0).then(|| values.iter().map(|value| *value >= 0).collect());
    Int64Array::new(values.into(), nulls)
}

/// The stack's parents with the declared ones laid over them.
fn with_declared(stack: &Int64Array, declared: &[(u32, u32)], from: usize, first: i64) -> Int64Array {
    if declared.is_empty() {
        return stack.clone();
    }
    let mut parents: Vec<i64> =
        (0..stack.len()).map(|row| if stack.is_null(row) { -1 } else { stack.value(row) }).collect();
    for (child, parent) in declared {
        parents[*child as usize - from] = position(*parent, first);
    }
    known(parents.into_iter())
}

/// The arguments of tasks, with what ends them added.
fn patched(
    args: StringArray,
    range: Range<usize>,
    patches: &mut Peekable<Sorted<Patch>>,
) -> Result<StringArray, ImportError> {
    let is_here = |next: &Result<Patch, _>| next.as_ref().map_or(true, |patch| (patch.row as usize) < range.end);
    let mut changed = Vec::new();
    while let Some(patch) = patches.next_if(is_here) {
        let patch = patch?;
        let row = patch.row as usize - range.start;
        changed.extend(patch.over(args.value(row)).map(|args| (row, args)));
    }
    if changed.is_empty() {
        return Ok(args);
    }
    let mut changed = changed.into_iter().peekable();
    let mut anew = Texts::with_capacity(args.len(), args.value_data().len());
    for row in 0..range.len() {
        // Rows of one block: what `E` adds does not take them from kilobytes to gigabytes.
        let _ = match changed.next_if(|(changed, _)| *changed == row) {
            Some((_, patch)) => anew.push(&patch),
            None => anew.push(args.value(row)),
        };
    }
    Ok(anew.finish())
}
