//! Facts: what a commit records about a run, and how a run of a session is made from it.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::{max, min};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use tq_udfs::ticks::Tick;

use super::log::{Facts, Part, StoredInfo, StoredRun, StoredStat};
use crate::error::ImportError;
use crate::tables::{ColumnType, Table};
use crate::trace::kinds::{beside, look_for_idle, note_processes, rows_of_program, widen, works_elsewhere};
use crate::trace::{Finding, NamedRun, Run, RunInfo, Severity, Stage, Stat};

/// What a commit says of the rows of a run.
#[derive(Default)]
pub(super) struct WrittenRun {
    /// Where the rows are.
    pub(super) parts: Vec<Part>,
    /// What the rows are.
    pub(super) facts: Facts,
}

/// What a run says of itself, as a commit has it, and where its rows were written.
pub(super) fn stored(named: &NamedRun, at: i64, written: WrittenRun) -> StoredRun {
    let info = &named.run.info;
    StoredRun {
        name: named.name.clone(),
        format: named.format.to_owned(),
        source: named.run.source.display().to_string(),
        imported_at: at,
        info: StoredInfo {
            own_name: info.own_name.clone(),
            program: info.program.clone(),
            started_at: info.started_at,
            time_unit: info.time_unit.to_owned(),
            tick: info.tick.map(|tick| tick.symbol().to_owned()),
            origin: info.origin,
            cores: info.cores,
            argument: info.argument.clone(),
            problem_size: info.problem_size.map(f64::to_bits),
            size_order: info.size_order,
            repetition: info.repetition,
            study: info.study.clone(),
            args: info.args.clone(),
        },
        stats: named.run.stats.iter().map(stored_stat).collect(),
        facts: written.facts,
        parts: written.parts,
    }
}

fn stored_stat(stat: &Stat) -> StoredStat {
    StoredStat {
        what: stat.finding.what.to_owned(),
        severity: stat.finding.severity.word().to_owned(),
        stage: stat.finding.stage.word().to_owned(),
        count: stat.count,
        example: stat.example.clone(),
    }
}

/// What is learned of a run from its rows while they are written.
#[derive(Default)]
pub(super) struct Seen {
    first: Option<i64>,
    last: Option<i64>,
    least: Option<i64>,
    greatest: Option<i64>,
    processes: HashSet<String>,
    profiler: bool,
    /// Locations that execute nothing.
    beside: HashSet<String>,
    works_elsewhere: bool,
    idle: bool,
    working: bool,
    lanes: LanesSeen,
}

impl Seen {
    /// Nothing yet of a run with these locations.
    pub(super) fn with_locations(run: &Run) -> Result<Seen, ImportError> {
        let mut seen = Seen::default();
        for batch in run.batches(Table::Locations) {
            let batch = batch?;
            seen.beside.extend(beside(std::iter::once(&batch)));
            note_processes(&batch, &mut seen.processes);
        }
        Ok(seen)
    }

    /// Takes in rows of a table.
    pub(super) fn add(&mut self, table: Table, batch: &RecordBatch) {
        for column in table.spec().columns.iter().filter(|column| column.column_type == ColumnType::Time) {
            let times = batch[column.name].as_primitive::<Int64Type>();
            self.least = self.least.into_iter().chain(min(times)).min();
            self.greatest = self.greatest.max(max(times));
        }
        if matches!(table, Table::Tasks | Table::Locations) {
            self.profiler |= rows_of_program(batch).is_some();
        }
        if table == Table::Tasks {
            widen(batch, &mut self.first, &mut self.last);
            self.works_elsewhere |= !self.beside.is_empty() && works_elsewhere(batch, &self.beside);
            if !(self.idle && self.working) {
                look_for_idle(batch, &mut self.idle, &mut self.working);
            }
        }
    }

    /// Takes in a group of rows of a table; `is_sorted`: by location and start.
    pub(super) fn add_group(&mut self, table: Table, batches: &[RecordBatch], is_sorted: bool) {
        for batch in batches {
            self.add(table, batch);
            if table == Table::Tasks {
                self.lanes.add(batch, is_sorted);
            }
        }
        self.lanes.end_group();
    }

    /// What a commit says of them.
    pub(super) fn facts(self) -> Facts {
        let (first, last) = self.first.zip(self.last).unzip();
        Facts {
            first,
            last,
            least: self.least,
            greatest: self.greatest,
            processes: (!self.processes.is_empty()).then_some(self.processes.len() as i64),
            profiler: self.profiler,
            beside: self.works_elsewhere,
            idle: self.idle && self.working,
            by_lane: !self.lanes.is_broken,
        }
    }
}

/// Whether the tasks of each location are written in the order of their starts.
#[derive(Default)]
struct LanesSeen {
    is_broken: bool,
    /// The last starts of each location: in the groups before, and in this one.
    lasts: Vec<(i64, i64)>,
    places: HashMap<Option<String>, usize>,
    /// The words of the last batch, and the places of those that were asked for.
    words: Option<(ArrayRef, Vec<Option<usize>>)>,
    /// Locations of this group.
    touched: Vec<usize>,
}

impl LanesSeen {
    fn add(&mut self, batch: &RecordBatch, is_sorted: bool) {
        if self.is_broken {
            return;
        }
        let locations = batch["location"].as_dictionary::<Int32Type>();
        let starts = batch["start"].as_primitive::<Int64Type>();
        let values = locations.values();
        let is_known = |(words, _): &(ArrayRef, Vec<Option<usize>>)| words.to_data().ptr_eq(&values.to_data());
        let (_, known) = match self.words.take().filter(is_known) {
            Some(known) => self.words.insert(known),
            None => self.words.insert((Arc::clone(values), vec![None; values.len() + 1])),
        };
        for row in (0..batch.num_rows()).filter(|row| starts.is_valid(*row)) {
            // Those without location stand behind the words.
            let key = locations.key(row).unwrap_or(values.len());
            let place = *known[key].get_or_insert_with(|| {
                let location = (key < values.len()).then(|| values.as_string::<i32>().value(key).to_owned());
                let next = self.lasts.len();
                *self.places.entry(location).or_insert_with(|| {
                    self.lasts.push((i64::MIN, i64::MIN));
                    next
                })
            });
            let (start, (before, last)) = (starts.value(row), &mut self.lasts[place]);
            self.is_broken |= start < *before;
            if is_sorted {
                if *last == i64::MIN {
                    self.touched.push(place);
                }
                *last = start.max(*last);
            } else {
                *before = start;
            }
        }
    }

    fn end_group(&mut self) {
        for place in self.touched.drain(..) {
            let (before, last) = &mut self.lasts[place];
            *before = std::mem::replace(last, i64::MIN).max(*before);
        }
    }
}

/// What a run of the store says of itself.
pub(super) fn info_of(run: &StoredRun) -> RunInfo {
    let info = run.info.clone();
    let ticks = [Tick::Weight, Tick::Nanosecond, Tick::Picosecond];
    RunInfo {
        own_name: info.own_name,
        program: info.program,
        started_at: info.started_at,
        time_unit: forever(&info.time_unit),
        tick: info.tick.and_then(|symbol| ticks.into_iter().find(|tick| tick.symbol() == symbol)),
        origin: info.origin,
        cores: info.cores,
        argument: info.argument,
        problem_size: info.problem_size.map(f64::from_bits),
        size_order: info.size_order,
        repetition: info.repetition,
        study: info.study,
        args: info.args,
    }
}

/// The rows of `import_stats`.
pub(super) fn stats_of(run: &StoredRun) -> Vec<Stat> {
    let severities = [Severity::Info, Severity::Repaired, Severity::Lost];
    let stages = [Stage::Recording, Stage::Import];
    let of_session = |stat: &StoredStat| {
        let severity = severities.into_iter().find(|severity| severity.word() == stat.severity);
        let stage = stages.into_iter().find(|stage| stage.word() == stat.stage);
        let (severity, stage) = (severity.unwrap_or(Severity::Lost), stage.unwrap_or(Stage::Import));
        let finding = Finding::stored(&stat.what, severity, stage, forever);
        Stat { finding, count: stat.count, example: stat.example.clone() }
    };
    run.stats.iter().map(of_session).collect()
}

/// Where it was read from, once.
pub(super) fn source_of(run: &StoredRun) -> PathBuf {
    PathBuf::from(&run.source)
}

/// The longest word that is kept for ever.
const WORD_BYTES: usize = 64;

/// The same text, for as long as the process lives, as formats and findings have it: they are few, and a stranger's store cannot
/// make them long.
pub(super) fn forever(text: &str) -> &'static str {
    static WORDS: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    const MOST: usize = 10_000;
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    let words = words.get_or_insert_default();
    if let Some(known) = words.get(text) {
        return known;
    }
    if text.len() > WORD_BYTES || words.len() >= MOST {
        return "unknown";
    }
    let word: &'static str = Box::leak(text.to_owned().into_boxed_str());
    words.insert(word);
    word
}
