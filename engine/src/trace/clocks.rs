//! Clocks: runs whose locations do not share one clock.
//!
//! Life of the data: once a run is built, [`Run::align`] (when the user asks for it) takes the least apparent delay of the messages
//! between each pair of clocks, lets [`tq_udfs::clock_offsets::align`] find offsets under which no message arrives before it is
//! sent, and subtracts these from every time; [`Run::flag_impossible`] counts what is still impossible: messages received before
//! they were sent, tasks that start before a predecessor on another clock has finished. Cost: nothing for runs of one clock; else a
//! look at every message and link, and 24 bytes a task meanwhile.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use datafusion::error::DataFusionError;
use tq_udfs::clock_offsets::{Delay, align};

use super::findings::{self, Finding};
use super::run::Run;
use super::stats::Stat;
use crate::error::ImportError;
use crate::tables::Table;
use crate::time::REACH;

/// Times of each table that can be moved, with the column of the location whose clock they are read from.
const TIMES: [(Table, &str, &str); 6] = [
    (Table::Tasks, "start", "location"),
    (Table::Tasks, "finish", "location"),
    (Table::Counters, "time", "location"),
    (Table::Events, "time", "location"),
    (Table::Messages, "send_time", "source"),
    (Table::Messages, "receive_time", "target"),
];

const UNKNOWN: u32 = u32::MAX;

/// The clocks of a run's locations.
struct Clocks {
    names: Vec<String>,
    of_location: HashMap<String, u32>,
}

impl Clocks {
    /// `None` when all locations share a clock, or say nothing of it.
    fn of(run: &Run) -> Result<Option<Clocks>, ImportError> {
        let mut clocks = Clocks { names: Vec::new(), of_location: HashMap::new() };
        // A million actors have a clock each.
        let mut numbers: HashMap<String, u32> = HashMap::new();
        for batch in run.batches(Table::Locations) {
            let batch = batch?;
            let locations = words(&batch, "location");
            let names = words(&batch, "clock");
            for row in 0..batch.num_rows() {
                let (Some(location), Some(name)) = (locations.text(row), names.text(row)) else { continue };
                let number = match numbers.get(name) {
                    Some(number) => *number,
                    None => {
                        clocks.names.push(name.to_owned());
                        let number = numbers.len() as u32;
                        numbers.insert(name.to_owned(), number);
                        number
                    }
                };
                clocks.of_location.insert(location.to_owned(), number);
            }
        }
        Ok((clocks.names.len() > 1).then_some(clocks))
    }

    /// The clock of each row.
    fn by_row(&self, batch: &RecordBatch, column: &str) -> Vec<u32> {
        let locations = words(batch, column);
        let of_word = |word: usize| self.of_location.get(locations.values.value(word)).copied().unwrap_or(UNKNOWN);
        let of_words: Vec<u32> = (0..locations.values.len()).map(of_word).collect();
        locations.keys.iter().map(|key| key.map_or(UNKNOWN, |key| of_words[key as usize])).collect()
    }

    /// The least delay of the messages from each clock to each other.
    fn delays(&self, run: &Run) -> Vec<Delay> {
        let mut least: BTreeMap<(u32, u32), i64> = BTreeMap::new();
        for batch in run.tables.get(&Table::Messages).into_iter().flatten() {
            let (sends, receives) = (integers(batch, "send_time"), integers(batch, "receive_time"));
            if no_times(sends, receives) {
                continue;
            }
            let (sources, targets) = (self.by_row(batch, "source"), self.by_row(batch, "target"));
            for row in 0..batch.num_rows() {
                let pair = (sources[row], targets[row]);
                if pair.0 == pair.1
                    || pair.0 == UNKNOWN
                    || pair.1 == UNKNOWN
                    || sends.is_null(row)
                    || receives.is_null(row)
                {
                    continue;
                }
                let delay = receives.value(row).saturating_sub(sends.value(row));
                let known = least.entry(pair).or_insert(delay);
                *known = delay.min(*known);
            }
        }
        least.into_iter().map(|((from, to), delay)| Delay { from: from as usize, to: to as usize, delay }).collect()
    }
}

/// Whether no message of a batch has both times: a trace that records one side only has nothing to compare.
fn no_times(sends: &Int64Array, receives: &Int64Array) -> bool {
    sends.null_count() == sends.len() || receives.null_count() == receives.len()
}

impl Run {
    /// Moves the times of all clocks onto the first one, as far as messages allow.
    ///
    /// # Errors
    /// Rows on disk cannot be read into memory, which moving them needs.
    pub(crate) fn align(&mut self) -> Result<(), ImportError> {
        let Some(clocks) = Clocks::of(self)? else { return Ok(()) };
        self.read_back()?;
        let path = self.source.clone();
        self.align_clocks(&clocks).map_err(|error| ImportError::internal(&path, error))
    }

    fn align_clocks(&mut self, clocks: &Clocks) -> Result<(), DataFusionError> {
        let delays = clocks.delays(self);
        if delays.is_empty() {
            let example = || "no message between two clocks has both times".to_owned();
            self.found(findings::NOT_ALIGNED, clocks.names.len() as u64, example);
            return Ok(());
        }
        let offsets = align(clocks.names.len(), &delays);
        let mut beyond = 0;
        for (table, time, location) in TIMES {
            for batch in self.tables.get_mut(&table).into_iter().flatten() {
                let rows = clocks.by_row(batch, location);
                let times = integers(batch, time);
                let before = times.null_count();
                let moved: Int64Array = (0..batch.num_rows())
                    .map(|row| {
                        let offset = offsets.get(rows[row] as usize).copied().unwrap_or(0);
                        let time = times.is_valid(row).then(|| times.value(row).saturating_sub(offset));
                        time.filter(|time| REACH.contains(time))
                    })
                    .collect();
                beyond += (moved.null_count() - before) as u64;
                replace(batch, time, Arc::new(moved))?;
            }
        }
        if beyond > 0 {
            let example = || "times that aligning moves beyond ±2^62 ticks; they are NULL".to_owned();
            self.found(findings::TIME_TOO_LARGE, beyond, example);
        }
        let first = StringArray::from(vec![clocks.names[0].as_str()]);
        for batch in self.tables.get_mut(&Table::Locations).into_iter().flatten() {
            let known = words(batch, "clock");
            let keys: Int32Array = (0..batch.num_rows()).map(|row| known.keys.is_valid(row).then_some(0)).collect();
            let one = DictionaryArray::<Int32Type>::try_new(keys, Arc::new(first.clone()))?;
            replace(batch, "clock", Arc::new(one))?;
        }
        let moved: serde_json::Map<String, serde_json::Value> =
            clocks.names.iter().cloned().zip(offsets.iter().map(|offset| (*offset).into())).collect();
        let widest = offsets.iter().zip(&clocks.names).max_by_key(|(offset, _)| offset.unsigned_abs());
        let example = || {
            widest.map_or_else(String::new, |(offset, name)| {
                format!("{name} was {offset} ticks ahead of {}", clocks.names[0])
            })
        };
        self.found(findings::ALIGNED, clocks.names.len() as u64, example);
        self.info.args.insert("clock_offsets".to_owned(), moved.into());
        Ok(())
    }

    /// Counts messages and links whose times are impossible. `unaligned` are the clocks of the recording; after
    /// [`Run::align`] all times are on one clock, and those that are still impossible contradict each other, whatever
    /// the offsets.
    ///
    /// # Errors
    /// Rows on disk cannot be read.
    pub(crate) fn flag_impossible(&mut self, clocks: &ClocksOfRun) -> Result<(), ImportError> {
        let Some(clocks) = &clocks.0 else { return Ok(()) };
        let (mut early, mut first_early) = (0, None);
        for batch in self.batches(Table::Messages) {
            let batch = batch?;
            let (sends, receives) = (integers(&batch, "send_time"), integers(&batch, "receive_time"));
            if no_times(sends, receives) {
                continue;
            }
            let (sources, targets) = (clocks.by_row(&batch, "source"), clocks.by_row(&batch, "target"));
            for row in 0..batch.num_rows() {
                let known = sends.is_valid(row) && receives.is_valid(row) && sources[row] != targets[row];
                if known && receives.value(row) < sends.value(row) {
                    early += 1;
                    first_early.get_or_insert((sources[row], sends.value(row), targets[row], receives.value(row)));
                }
            }
        }
        let name = |clock: u32| clocks.names.get(clock as usize).map_or("?", String::as_str);
        self.found(findings::RECEIVED_BEFORE_SENT, early, || match first_early {
            Some((source, send, target, receive)) => format!(
                "sent at {send} by the clock of {}, received at {receive} by that of {}: clocks differ; --option align=messages \
                 moves them",
                name(source),
                name(target)
            ),
            None => String::new(),
        });
        self.flag_early_starts(clocks)
    }

    fn flag_early_starts(&mut self, clocks: &Clocks) -> Result<(), ImportError> {
        if self.rows(Table::Links) == 0 {
            return Ok(());
        }
        let (mut starts, mut finishes, mut clock_of) = (Vec::new(), Vec::new(), Vec::new());
        // Rows of an import stand at their positions.
        let mut first = None;
        for batch in self.batches(Table::Tasks) {
            let batch = batch?;
            starts.extend(integers(&batch, "start").iter().map(|time| time.unwrap_or(i64::MAX)));
            finishes.extend(integers(&batch, "finish").iter().map(|time| time.unwrap_or(i64::MIN)));
            clock_of.extend(clocks.by_row(&batch, "location"));
            first = first.or_else(|| integers(&batch, "task").iter().next().flatten());
        }
        let place = |task: i64| usize::try_from(task - first.unwrap_or(0)).ok().filter(|place| *place < starts.len());
        // Of parallel links and several early predecessors, each task counts once.
        let mut early: Vec<usize> = Vec::new();
        for batch in self.batches(Table::Links) {
            let batch = batch?;
            let (sources, targets) = (integers(&batch, "source"), integers(&batch, "target"));
            let kinds = words(&batch, "kind");
            for row in 0..batch.num_rows() {
                if sources.is_null(row) || targets.is_null(row) || kinds.text(row) != Some("dependency") {
                    continue;
                }
                let (Some(source), Some(target)) = (place(sources.value(row)), place(targets.value(row))) else {
                    continue;
                };
                if starts[target] < finishes[source] && clock_of[source] != clock_of[target] {
                    early.push(target);
                }
            }
        }
        early.sort_unstable();
        early.dedup();
        let example = early.first().map(|task| {
            let clock = clocks.names.get(clock_of[*task] as usize).map_or("?", String::as_str);
            format!(
                "task {} starts at {} by the clock of {clock}, before a predecessor on another clock has finished",
                *task as i64 + first.unwrap_or(0),
                starts[*task]
            )
        });
        self.found(findings::STARTED_BEFORE_PREDECESSOR, early.len() as u64, || example.unwrap_or_default());
        Ok(())
    }

    fn found(&mut self, finding: Finding, count: u64, example: impl FnOnce() -> String) {
        if count > 0 {
            self.stats.push(Stat { finding, count, example: example() });
        }
    }

    /// The clocks as they were recorded; to be called before [`Run::align`] merges them.
    ///
    /// # Errors
    /// Rows on disk cannot be read.
    pub(crate) fn clocks(&self) -> Result<ClocksOfRun, ImportError> {
        Clocks::of(self).map(ClocksOfRun)
    }
}

/// The clocks of a run's locations, where there are several.
pub(crate) struct ClocksOfRun(Option<Clocks>);

/// A word column.
struct WordColumn<'a> {
    keys: &'a Int32Array,
    values: &'a StringArray,
}

impl WordColumn<'_> {
    fn text(&self, row: usize) -> Option<&str> {
        self.keys.is_valid(row).then(|| self.values.value(self.keys.value(row) as usize))
    }
}

fn words<'a>(batch: &'a RecordBatch, column: &str) -> WordColumn<'a> {
    let dictionary = batch[column].as_dictionary::<Int32Type>();
    WordColumn { keys: dictionary.keys(), values: dictionary.values().as_string() }
}

fn integers<'a>(batch: &'a RecordBatch, column: &str) -> &'a Int64Array {
    batch[column].as_primitive::<Int64Type>()
}

fn replace(batch: &mut RecordBatch, column: &str, with: ArrayRef) -> Result<(), DataFusionError> {
    let mut columns = batch.columns().to_vec();
    columns[batch.schema().index_of(column)?] = with;
    *batch = RecordBatch::try_new(batch.schema(), columns)?;
    Ok(())
}
