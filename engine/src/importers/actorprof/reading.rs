//! The run while its files are read: columns wait here for the smallest timestamp of all files, which is the run's
//! origin; on disk, while `tq import` is short of memory.
//!
//! Names of PEs need no look-up: they are interned in the order of their numbers when everything is read, so that a PE's
//! number is its dictionary key. Waiting columns are already in their final form: they move into the tables without a
//! copy.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Int64Array, StringBuilder, new_empty_array};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};

use super::line::{NO_TIME, Tally};
use super::overall::SubRun;
use super::papi::{MAIN, Sections, counter_name};
use super::physical::{Buffers, Type};
use super::send::{Mostly, Nodes, Sends, Stamps};
use crate::cells::Cells;
use crate::cells::kind::{Integer, Time, Word};
use crate::error::ImportError;
use crate::importers::importer::ImportContext;
use crate::tables::{self, Place, Table};
use crate::trace::{Location, ROWS_PER_BATCH, Room, Rows, RunBuilder, Spill, SpilledColumns, findings, in_order};

/// Rows that wait for the origin.
struct Waiting {
    /// Whether they stand for records of the trace.
    of_records: bool,
    /// Without the values of each row while these are on disk.
    rows: Rows,
    /// A column of times, nanoseconds since 1970 or [`NO_TIME`]; empty when no row has one.
    times: Option<(Place<Time>, Vec<i64>)>,
    away: Option<SpilledColumns>,
}

impl Waiting {
    /// Bytes held.
    fn memory(&self) -> usize {
        self.rows.memory() + self.times.as_ref().map_or(0, |(_, times)| times.capacity() * size_of::<i64>())
    }

    /// Writes what has a value per row to disk.
    fn put_away(&mut self, spill: &Spill) -> Result<(), ImportError> {
        let (count, mut columns) = (self.rows.count().unwrap_or(0), Vec::new());
        let taken = self.rows.try_map(count, |column| {
            columns.push(Arc::clone(column));
            Ok(new_empty_array(column.data_type()))
        });
        taken.map_err(|error: ArrowError| spill.internal(error))?;
        if let Some((_, times)) = self.times.as_mut().filter(|(_, times)| !times.is_empty()) {
            columns.push(Arc::new(Int64Array::from(std::mem::take(times))));
        }
        self.away = Some(SpilledColumns::write(spill, columns, |_, _| false, count)?);
        Ok(())
    }

    /// The same with all values in memory.
    fn fetched(mut self, spill: Option<&Arc<Spill>>) -> Result<Waiting, ImportError> {
        let (Some(away), Some(spill)) = (self.away.take(), spill) else { return Ok(self) };
        let mut columns = away.read(spill)?.into_iter();
        let missing = || ArrowError::IpcError("a column is missing".to_owned());
        let given = self.rows.try_map(self.rows.count().unwrap_or(0), |_| columns.next().ok_or_else(missing));
        given.map_err(|error| spill.internal(error))?;
        // Times that are no value of any row are not written.
        if let (Some((_, times)), Some(column)) = (&mut self.times, columns.next()) {
            *times = column.as_primitive::<Int64Type>().values().to_vec();
        }
        Ok(self)
    }

    /// With its times among its columns, in nanoseconds since `origin`.
    fn since(mut self, origin: i64) -> Waiting {
        let Some((column, mut times)) = self.times.take().filter(|(_, times)| !times.is_empty()) else { return self };
        let array: Int64Array = if times.contains(&NO_TIME) {
            let since = |time: i64| (time != NO_TIME).then(|| time.saturating_sub(origin));
            times.into_iter().map(since).collect()
        } else {
            times.iter_mut().for_each(|time| *time = time.saturating_sub(origin));
            times.into()
        };
        if array.null_count() < array.len() {
            self.rows.set(column, array);
        }
        self
    }
}

/// Stamps of a file.
struct FileStamps {
    name: String,
    phase: Option<String>,
    least: i64,
    most: i64,
}

/// What is known of the run so far.
pub(super) struct Reading {
    pub(super) builder: RunBuilder,
    /// The number of PEs.
    pub(super) pes: i32,
    pub(super) nodes: Nodes,
    waiting: Vec<Waiting>,
    messages: i64,
    files: Vec<FileStamps>,
    /// Stamps of the file that is being read.
    stamps: Stamps,
    memory: MemoryReservation,
    room: Room,
}

impl Reading {
    pub(super) fn new(path: &Path, context: &ImportContext<'_>) -> Reading {
        let builder = context.begin_at(path);
        Reading {
            builder,
            pes: 0,
            nodes: Nodes::default(),
            waiting: Vec::new(),
            messages: 0,
            files: Vec::new(),
            stamps: Stamps::none(),
            memory: MemoryConsumer::new(format!("reading {}", path.display())).register(context.pool()),
            room: Room::new(path, context.budget()),
        }
    }

    /// Notes that there is a PE of this number.
    pub(super) fn meet(&mut self, pe: i32) {
        self.pes = self.pes.max(pe + 1);
    }

    /// Ends a file with stamps. `in_order`: its lines are in the order of their stamps as long as the clock runs evenly.
    pub(super) fn end_file(&mut self, name: &str, phase: Option<&str>, in_order: bool) {
        let stamps = std::mem::replace(&mut self.stamps, Stamps::none());
        let backwards = if in_order { stamps.backwards } else { 0 };
        self.builder.stats.note(findings::TIME_STEPS_BACKWARDS, backwards, || name.to_owned());
        if stamps.first != NO_TIME {
            let (name, phase) = (name.to_owned(), phase.map(str::to_owned));
            self.files.push(FileStamps { name, phase, least: stamps.least, most: stamps.most });
        }
    }

    /// Takes a block of sends.
    pub(super) fn take_sends(
        &mut self,
        file: &str,
        (pe, phase): (i32, Option<&str>),
        block: Sends,
    ) -> Result<(), ImportError> {
        self.tally(file, &block.tally);
        let others = match &block.sources {
            Mostly::None => 0,
            Mostly::One(source) if *source == pe => 0,
            Mostly::One(_) => block.targets.len(),
            Mostly::Each(sources) => sources.iter().filter(|source| **source != pe).count(),
        };
        self.builder.stats.note(findings::OTHER_PE_THAN_THE_FILES, others as u64, || {
            format!("{file}: sends of another PE than the file's")
        });
        self.stamps.then(&block.stamps);
        self.take_nodes(&block.nodes);
        if let Some((pe, node)) = block.own_node {
            self.nodes.correct(pe, node);
        }
        self.builder.stats.note(findings::MESSAGES_WITHOUT_TIME, block.without_time, || file.to_owned());
        let times = if block.without_time as usize == block.targets.len() { Vec::new() } else { block.times };
        let messages = tables::Messages {
            source: mostly_words(block.sources),
            target: block.targets.into(),
            bytes: mostly(block.bytes),
            count: 1.into(),
            kind: "logical".into(),
            tag: phase.into(),
            ..Default::default()
        };
        self.wait(messages, true, Some((tables::Messages::send_time, times)))
    }

    /// Takes a block of what a PE handled.
    pub(super) fn take_sections(
        &mut self,
        file: &str,
        (pe, phase): (i32, Option<&str>),
        block: &Sections,
    ) -> Result<(), ImportError> {
        self.tally(file, &block.tally);
        let others = block.sections.iter().filter(|section| section.target != pe).count();
        self.builder.stats.note(findings::OTHER_PE_THAN_THE_FILES, others as u64, || {
            format!("{file}: work of another PE than the file's")
        });
        self.stamps.then(&block.stamps);
        self.take_nodes(&block.nodes);
        if let Some((pe, node)) = block.own_node.filter(|own| own.0 == pe) {
            self.nodes.correct(pe, node);
        }
        let first = self.messages;
        self.counters_of(block, first)?;
        let handled: Vec<_> = block.sections.iter().filter(|section| section.mailbox != MAIN).collect();
        let mains = (block.sections.len() - handled.len()) as u64;
        self.builder.stats.became_others(findings::MAIN_LINES, mains, || format!("{file}: they become counters"));
        let mut args = StringBuilder::with_capacity(handled.len(), handled.len() * 32);
        let mut text = String::new();
        for section in &handled {
            use std::fmt::Write as _;
            text.clear();
            // Writing to memory does not fail.
            let _ = write!(text, "{{\"mailbox\":{},\"num_sends\":{}}}", section.mailbox, section.sends);
            args.append_value(&text);
        }
        let mut bytes = Mostly::None;
        for (row, section) in handled.iter().enumerate() {
            bytes.push(section.bytes, row);
        }
        let messages = tables::Messages {
            source: handled.iter().map(|section| section.source).collect(),
            target: handled.iter().map(|section| section.target).collect(),
            bytes: mostly(bytes),
            count: 1.into(),
            kind: "handled".into(),
            tag: phase.into(),
            args: args.finish().into(),
            ..Default::default()
        };
        let times = handled.iter().map(|section| section.time).collect();
        self.wait(messages, true, Some((tables::Messages::receive_time, times)))
    }

    /// The counters of sections; handled messages are numbered from `message` on.
    fn counters_of(&mut self, block: &Sections, mut message: i64) -> Result<(), ImportError> {
        let (mut names, mut values) = (Vec::new(), Vec::new());
        let (mut locations, mut messages, mut times) = (Vec::new(), Vec::new(), Vec::new());
        let sends = self.builder.word(tables::Counters::name, "NUM_SENDS");
        let mut known: Vec<(usize, Vec<i32>)> = Vec::new();
        for section in &block.sections {
            let of = section.counted;
            if !known.iter().any(|(counted, _)| *counted == of) {
                let words =
                    (0..of).map(|counter| self.builder.word(tables::Counters::name, &counter_name(counter, of)));
                known.push((of, words.collect()));
            }
            let words = known.iter().find(|(counted, _)| *counted == of).map_or(&[][..], |(_, words)| words);
            let is_main = section.mailbox == MAIN;
            let mut push = |name: i32, value: i64| {
                names.push(name);
                values.push(value as f64);
                locations.push(section.target);
                messages.push((!is_main).then_some(message));
                times.push(section.time);
            };
            for (name, value) in words.iter().zip(section.counters) {
                push(*name, value);
            }
            if is_main {
                push(sends, section.sends);
            } else {
                message += 1;
            }
        }
        let counters = tables::Counters {
            location: locations.into(),
            message: messages.into(),
            name: names.into(),
            value: values.into(),
            kind: "delta".into(),
            ..Default::default()
        };
        self.wait(counters, false, Some((tables::Counters::time, times)))
    }

    /// Takes a block of buffers.
    pub(super) fn take_buffers(&mut self, file: &str, block: Buffers) -> Result<(), ImportError> {
        let stats = &mut self.builder.stats;
        stats.records(block.lines);
        stats.left_out(findings::OTHER_LINES, block.foreign, || format!("{file}: output of others"));
        let torn = block.example.unwrap_or_default();
        stats.left_out(findings::TORN_PIECES, block.torn, || format!("{file}: `{torn}`"));
        for buffer in &block.buffers {
            self.pes = self.pes.max(buffer.source.max(buffer.target) + 1);
        }
        let (progress, sends): (Vec<_>, Vec<_>) =
            block.buffers.into_iter().partition(|buffer| buffer.kind == Type::NonblockProgress);
        let kind = |kind: Type| if kind == Type::LocalSend { "local_send" } else { "nonblock_send" };
        let messages = tables::Messages {
            source: sends.iter().map(|buffer| buffer.source).collect(),
            target: sends.iter().map(|buffer| buffer.target).collect(),
            bytes: sends.iter().map(|buffer| buffer.bytes).collect(),
            count: 1.into(),
            kind: sends.iter().map(|buffer| kind(buffer.kind)).collect(),
            ..Default::default()
        };
        self.wait(messages, true, None)?;
        let args =
            progress.iter().map(|buffer| format!("{{\"bytes\":{},\"target\":\"PE{}\"}}", buffer.bytes, buffer.target));
        let events = tables::Events {
            location: progress.iter().map(|buffer| buffer.source).collect(),
            name: "nonblock_progress".into(),
            kind: "nonblock_progress".into(),
            args: args.collect(),
            ..Default::default()
        };
        self.wait(events, true, None)
    }

    /// Takes the cycles of a sub-run.
    pub(super) fn take_sub_run(&mut self, run: &SubRun) -> Result<(), ImportError> {
        self.builder.stats.records(run.records);
        for value in &run.values {
            self.meet(value.pe);
        }
        let counters = tables::Counters {
            location: run.values.iter().map(|value| value.pe).collect(),
            name: run.values.iter().map(|value| value.name).collect(),
            value: run.values.iter().map(|value| value.value).collect(),
            kind: "total".into(),
            unit: run.values.iter().map(|value| value.unit).collect(),
            ..Default::default()
        };
        // A line of components is a row; one of totals is four.
        let of_sub_run = run.values.len() as u64;
        self.builder
            .stats
            .became_others(findings::OVERALL_LINES, run.records, || format!("{of_sub_run} counters come from them"));
        self.wait(counters, false, None)
    }

    fn take_nodes(&mut self, nodes: &Nodes) {
        self.nodes.absorb(nodes);
        if let Some(largest) = nodes.largest() {
            self.meet(largest);
        }
    }

    fn tally(&mut self, file: &str, tally: &Tally) {
        let stats = &mut self.builder.stats;
        stats.records(tally.lines);
        if tally.is_clean() {
            return;
        }
        let example = |what: &str| format!("{file}{what}");
        let line = tally.example.as_deref().unwrap_or_default();
        stats.left_out(findings::TORN_LINES, tally.torn, || example(&format!(": `{line}`")));
        stats.left_out(findings::BAD_LINES, tally.bad, || example(&format!(": `{line}`")));
        stats.note(findings::BLANK_LINES, tally.blank, || example(""));
        stats.note(findings::TRAILING_COMMA_LINES, tally.trailing_comma, || example(""));
        stats.note(findings::CRLF_LINES, tally.carriage_return, || example(""));
        stats.note(findings::LINES_WITHOUT_BLANKS, tally.tight, || example(""));
        stats.note(findings::ROUNDED, tally.rounded, || example("times finer than a nanosecond, rounded half to even"));
    }

    fn wait(
        &mut self,
        rows: impl Into<Rows>,
        of_records: bool,
        times: Option<(Place<Time>, Vec<i64>)>,
    ) -> Result<(), ImportError> {
        let rows = rows.into();
        let count = rows.count().unwrap_or(0);
        if count == 0 {
            return Ok(());
        }
        if rows.table() == Table::Messages {
            self.messages += count as i64;
        }
        let waiting = Waiting { of_records, rows, times, away: None };
        let bytes = waiting.memory();
        let granted = self.memory.try_grow(bytes);
        self.waiting.push(waiting);
        let disk = if granted.is_err() { self.room.disk() } else { self.room.short() };
        let Some(spill) = disk.cloned() else {
            let refused = |error: DataFusionError| ImportError::Memory {
                path: self.builder.source().to_owned(),
                what: error.strip_backtrace(),
            };
            return granted.map_err(refused);
        };
        let held = self.waiting.iter_mut().rev().take_while(|waiting| waiting.away.is_none());
        held.into_iter().try_for_each(|waiting| waiting.put_away(&spill))?;
        self.memory.shrink(self.memory.size());
        Ok(())
    }

    /// Moves everything into the tables, with a location per PE.
    pub(super) fn finish(mut self, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        self.note_mixed_runs();
        let conflicts = self.nodes.conflicts();
        let first = conflicts.first().copied().unwrap_or_default();
        self.builder.stats.note(findings::NODE_CONFLICTS, conflicts.len() as u64, || {
            format!("PE{first} is said to be on several nodes")
        });
        let origin = self.files.iter().map(|file| file.least).min();
        self.builder.info.origin = origin;
        self.builder.info.started_at = origin;
        self.builder.info.time_unit = "s";
        self.intern_pes()?;
        self.locations()?;
        let base = origin.unwrap_or(0);
        let mut waiting = std::mem::take(&mut self.waiting).into_iter().peekable();
        while waiting.peek().is_some() {
            // What is on disk is in memory one after the other.
            let together = if self.room.disk().is_some() { context.threads } else { waiting.len() };
            let some: Vec<Waiting> = waiting.by_ref().take(together.max(1)).collect();
            let held: usize = some.iter().map(Waiting::memory).sum();
            let fetched = |waiting: Waiting| Ok(waiting.fetched(self.room.disk())?.since(base));
            let some: Vec<Result<Waiting, ImportError>> = in_order(some, context.threads, fetched);
            // The tables account for the columns as they take them over.
            self.memory.shrink(held.min(self.memory.size()));
            for waiting in some {
                let Waiting { rows, of_records, .. } = waiting?;
                match of_records {
                    true => self.builder.append(rows)?,
                    false => self.builder.append_derived(rows)?,
                }
            }
        }
        context.finish(self.builder)
    }

    /// Interns PEs in the order of their numbers, so that a number is its key.
    fn intern_pes(&mut self) -> Result<(), ImportError> {
        for column in
            [tables::Messages::source, tables::Messages::target, tables::Counters::location, tables::Events::location]
        {
            if !self.waiting.iter().any(|waiting| waiting.rows.table() == column.table) {
                continue;
            }
            for pe in 0..self.pes {
                let key = self.builder.word(column, &location(pe));
                debug_assert_eq!(key, pe);
                if (pe as usize).is_multiple_of(ROWS_PER_BATCH) {
                    self.builder.charge_words()?;
                }
            }
        }
        self.builder.charge_words()
    }

    fn locations(&mut self) -> Result<(), ImportError> {
        let pes = 0..self.pes;
        let mut nodes: Vec<i32> = pes.clone().filter_map(|pe| self.nodes.node(pe)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in &nodes {
            let (location, name) = (node_location(*node), node.to_string());
            self.builder.location(&Location {
                location: &location,
                parent: None,
                kind: "node",
                name: Some(&name),
                process: None,
                role: "compute",
                clock: Some(&location),
                sort_index: None,
                args: None,
            })?;
        }
        pes.into_iter().try_for_each(|pe| {
            let (location, process) = (location(pe), pe.to_string());
            let node = self.nodes.node(pe).map(node_location);
            self.builder.location(&Location {
                location: &location,
                parent: node.as_deref(),
                kind: "pe",
                name: Some(&location),
                process: Some(&process),
                role: "compute",
                clock: node.as_deref(),
                sort_index: None,
                args: None,
            })
        })
    }

    /// Files of several executions in one directory: a run overwrites the files of its own PEs and phases only.
    fn note_mixed_runs(&mut self) {
        self.files.sort_by(|one, other| (&one.phase, one.least).cmp(&(&other.phase, other.least)));
        let files = std::mem::take(&mut self.files);
        let mut phases: Vec<FileStamps> = Vec::new();
        for of_phase in files.chunk_by(|one, other| one.phase == other.phase) {
            self.note_mixed(of_phase);
            phases.extend(together(of_phase));
        }
        self.note_phases_far_apart(phases);
        self.files = files;
    }

    /// The stamps of one phase fall into groups that are farther apart than any is long: all but one are left over from
    /// earlier runs.
    fn note_mixed(&mut self, files: &[FileStamps]) {
        for gap in gaps(files).into_iter().filter(|gap| gap.length > LEAST_GAP) {
            let (before, from) = files.split_at(gap.at);
            let both = span(before).max(span(from));
            // Of more than two groups, those on one side are together longer than the gap; each of them must be far shorter.
            let each = || longest_group(files, gap.length).max(LEAST_GAP).saturating_mul(FAR);
            if gap.length > both || gap.length > each() {
                let (count, seconds) = (before.len().min(from.len()), gap.length as f64 / 1e9);
                let (earlier, later) = (&before[before.len() - 1].name, &from[0].name);
                self.builder.stats.note(findings::MIXED_RUNS, count as u64, || {
                    format!(
                        "{earlier} ends {seconds:.3} s before {later} begins: one may be left over from another run"
                    )
                });
            }
        }
    }

    /// Phases of one run follow each other, and may do so slowly; but hours between phases of seconds are odd.
    fn note_phases_far_apart(&mut self, mut phases: Vec<FileStamps>) {
        phases.sort_by_key(|phase| phase.least);
        let longest = phases.iter().map(|phase| span(std::slice::from_ref(phase))).max().unwrap_or(0);
        let limit = longest.saturating_mul(FAR).max(LEAST_PHASE_GAP);
        for gap in gaps(&phases).into_iter().filter(|gap| gap.length > limit) {
            let seconds = gap.length as f64 / 1e9;
            let (earlier, later) = (&phases[gap.at - 1].name, &phases[gap.at].name);
            self.builder.stats.note(findings::PHASES_FAR_APART, 1, || {
                format!("{earlier} ends {seconds:.0} s before {later} begins: one may be left over from another run")
            });
        }
    }
}

/// A stretch of time without a stamp, before the file `at`.
struct Gap {
    at: usize,
    length: i64,
}

/// The gaps between files, which are in the order of their first stamps.
fn gaps(files: &[FileStamps]) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut most = files.first().map_or(i64::MAX, |file| file.most);
    for (at, file) in files.iter().enumerate() {
        if file.least > most {
            gaps.push(Gap { at, length: file.least.saturating_sub(most) });
        }
        most = most.max(file.most);
    }
    gaps
}

/// From the first stamp of files to the last one.
fn span(files: &[FileStamps]) -> i64 {
    let least = files.iter().map(|file| file.least).min().unwrap_or(0);
    let most = files.iter().map(|file| file.most).max().unwrap_or(0);
    most.saturating_sub(least)
}

/// The longest of the groups that gaps of at least this length make.
fn longest_group(files: &[FileStamps], length: i64) -> i64 {
    let borders = gaps(files).into_iter().filter(|gap| gap.length >= length).map(|gap| gap.at);
    let (mut from, mut longest) = (0, 0);
    for border in borders.chain([files.len()]) {
        longest = longest.max(span(&files[from..border]));
        from = border;
    }
    longest
}

/// The stamps of all files of a phase as one, named after it.
fn together(files: &[FileStamps]) -> Option<FileStamps> {
    let phase = files.first()?.phase.clone();
    let name = phase.as_ref().map_or_else(|| "what is in no phase".to_owned(), |phase| format!("phase `{phase}`"));
    let least = files.iter().map(|file| file.least).min()?;
    let most = files.iter().map(|file| file.most).max()?;
    Some(FileStamps { name, phase, least, most })
}

/// PEs of one run start within this time: a tenth of a second.
const LEAST_GAP: i64 = 100_000_000;

/// A gap is far longer than a group when it is this many times as long.
const FAR: i64 = 10;

/// Phases of one run follow each other within this time: an hour.
const LEAST_PHASE_GAP: i64 = 3_600_000_000_000;

/// The location of a PE.
pub(super) fn location(pe: i32) -> String {
    format!("PE{pe}")
}

fn node_location(node: i32) -> String {
    format!("node {node}")
}

fn mostly(values: Mostly<i64>) -> Cells<Integer> {
    match values {
        Mostly::None => 0.into(),
        Mostly::One(value) => value.into(),
        Mostly::Each(values) => values.into(),
    }
}

fn mostly_words(keys: Mostly<i32>) -> Cells<Word> {
    match keys {
        Mostly::None => 0.into(),
        Mostly::One(key) => key.into(),
        Mostly::Each(keys) => keys.into(),
    }
}
