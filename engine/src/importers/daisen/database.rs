//! Reads a database: ranges of rows on several threads, each with a connection of its own.
//!
//! A range is one of rowids, which follow the order of storage; a table without rowids (a view) is a single range. Chunks
//! come back in the order of the file, on any number of threads.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use datafusion::execution::memory_pool::MemoryReservation;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use serde_json::{Map, Value};

use super::chunk::{CHUNK_ROWS, Chunk, ChunkBuilder, RawTask, text};
use super::events::{EventBuilder, EventChunk};
use super::locations::Known;
use super::schema::{Schema, Source};
use super::tasks::{Found, Tasks, reserve};
use super::times;
use crate::error::ImportError;
use crate::importers::sqlite::{Database, quoted};
use crate::tables;
use crate::trace::{Kept, Room, RunBuilder, Sorter, Stats, findings};

/// Stretches of a table at most: rowids may have any gaps.
const STRETCHES_MAX: i64 = 4096;
/// Bytes of a text that `runs.args` takes.
const ARG_BYTES: usize = 64 << 10;
/// Segments that `runs.args` takes.
const SEGMENTS_MAX: usize = 10_000;
/// What a row costs beside its text: of a table of metrics, of `exec_info`, of what lists locations, of their names by key.
const METRIC_BYTES: usize = 112;
const PROPERTY_BYTES: usize = 256;
const LOCATION_BYTES: usize = 256;
const NAME_BYTES: usize = 64;
/// How many times its text JSON takes when it is parsed.
const JSON_FACTOR: usize = 48;
/// Tables that are read elsewhere, or that hold nothing of interest.
const KNOWN_TABLES: [&str; 10] = [
    "trace",
    "milestone",
    "trace_milestones",
    "tag",
    "location",
    "exec_info",
    "daisen$segments",
    "component_spec",
    "port",
    "source",
];

/// What reading needs.
pub(super) struct Reader<'a> {
    pub(super) file: &'a Database,
    pub(super) schema: &'a Schema,
    pub(super) threads: usize,
    pub(super) memory: &'a MemoryReservation,
    pub(super) room: &'a Room,
}

impl Reader<'_> {
    /// The rows of `trace`.
    pub(super) fn tasks(&self, builder: &mut RunBuilder) -> Result<Vec<Kept<Chunk>>, ImportError> {
        let names = self.location_names()?;
        let unit = self.schema.unit;
        let stretches = self.stretches(&self.schema.trace, |rows, stats: &mut Stats| {
            let mut chunks = Vec::new();
            let mut chunk = ChunkBuilder::default();
            let mut number = String::new();
            rows(&mut |row, place| {
                stats.records(1);
                let cell = |index: usize| row.get_ref(index);
                let location = cell(4)?;
                let location = match location {
                    ValueRef::Integer(key) if names.contains_key(&key) => names.get(&key).map(String::as_str),
                    // Numbers are v5's, which has a table of names.
                    ValueRef::Integer(key) => {
                        stats
                            .note(findings::UNKNOWN_LOCATION, 1, || format!("{}: location {key} has no name", place()));
                        text(location, &mut number, stats, place)
                    }
                    other => text(other, &mut number, stats, place),
                };
                let task = RawTask {
                    id: cell(0)?,
                    parent: cell(1)?,
                    kind: cell(2)?,
                    what: cell(3)?,
                    location,
                    start: cell(5)?,
                    finish: cell(6)?,
                };
                chunk.push(&task, unit, stats, place);
                if chunk.rows() == CHUNK_ROWS {
                    chunks.push(Kept::keep(std::mem::take(&mut chunk).finish(), self.memory, self.room)?);
                }
                Ok(())
            })?;
            if chunk.rows() > 0 {
                chunks.push(Kept::keep(chunk.finish(), self.memory, self.room)?);
            }
            Ok(chunks)
        })?;
        let mut chunks = Vec::new();
        for (stretch, stats) in stretches {
            builder.stats.absorb(stats);
            chunks.extend(stretch);
        }
        Ok(chunks)
    }

    /// Milestones, then tags. While tasks are in memory, they are looked up where events are read.
    pub(super) fn events(&self, tasks: &Tasks, builder: &mut RunBuilder) -> Result<(), ImportError> {
        let sources = || [&self.schema.milestones, &self.schema.tags].into_iter().flatten();
        if let Some(indexed) = tasks.indexed() {
            for source in sources() {
                let read = self.event_chunks(source, |chunk, stats| {
                    let found = &mut Found::Index(indexed);
                    let events = chunk.with_tasks(0, found, &tasks.locations, &source.table, stats)?;
                    Kept::keep(events, self.memory, self.room)
                })?;
                for (chunks, stats) in read {
                    builder.stats.absorb(stats);
                    for events in chunks {
                        self.memory.shrink(events.memory().min(self.memory.size()));
                        events.fetched()?.append(builder)?;
                    }
                }
            }
            return Ok(());
        }
        let (mut all, mut asked, mut number) = (Vec::new(), Sorter::new(self.room), 0);
        for source in sources() {
            for (chunks, stats) in self.event_chunks(source, |chunk, _| Kept::keep(chunk, self.memory, self.room))? {
                builder.stats.absorb(stats);
                for kept in chunks {
                    let chunk = kept.get()?;
                    chunk.push_tasks(number, &mut asked)?;
                    let from = number;
                    number += chunk.rows() as u64;
                    drop(chunk);
                    all.push((from, source, kept));
                }
            }
        }
        let mut found = tasks.find_all(asked)?;
        for (from, source, chunk) in all {
            self.memory.shrink(chunk.memory().min(self.memory.size()));
            let chunk = chunk.fetched()?;
            let stats = &mut builder.stats;
            chunk.with_tasks(from, &mut found, &tasks.locations, &source.table, stats)?.append(builder)?;
        }
        Ok(())
    }

    /// The rows of a table of milestones or tags, in stretches; `done` is what becomes of a chunk of them.
    fn event_chunks<T: Send>(
        &self,
        source: &Source,
        done: impl Fn(EventChunk, &mut Stats) -> Result<T, ImportError> + Sync,
    ) -> Result<Vec<(Vec<T>, Stats)>, ImportError> {
        self.stretches(source, |rows, stats: &mut Stats| {
            let (mut chunks, mut chunk, mut first) = (Vec::new(), EventBuilder::default(), 0);
            rows(&mut |row, place| {
                stats.records(1);
                let [task, time, kind, what, location] = [0, 1, 2, 3, 4].map(|index| row.get_ref(index));
                chunk.push([task?, time?, kind?, what?, location?], self.schema.unit, stats, place);
                if chunk.rows() == CHUNK_ROWS {
                    chunks.push(done(std::mem::take(&mut chunk).finish(first), stats)?);
                    first += CHUNK_ROWS as u64;
                }
                Ok(())
            })?;
            if chunk.rows() > 0 {
                chunks.push(done(chunk.finish(first), stats)?);
            }
            Ok(chunks)
        })
    }

    /// Tables of metrics become counters.
    pub(super) fn metrics(&self, connection: &Connection, builder: &mut RunBuilder) -> Result<(), ImportError> {
        for table in &self.schema.metrics {
            let sql = format!("SELECT Location, What, Value, Unit FROM {}", quoted(table));
            let (mut words, mut values): (Vec<[Option<String>; 3]>, Vec<Option<f64>>) = Default::default();
            let stats = &mut builder.stats;
            self.each(connection, table, &sql, &mut |row, place| {
                stats.records(1);
                let value = row.get_ref(2)?;
                let number = match value {
                    ValueRef::Integer(value) => Some(value as f64),
                    ValueRef::Real(value) => Some(value),
                    ValueRef::Text(text) => std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok()),
                    ValueRef::Null | ValueRef::Blob(_) => None,
                };
                if number.is_none() && value != ValueRef::Null {
                    stats
                        .note(findings::BAD_VALUE, 1, || format!("{}: {value:?} is no number; taken as NULL", place()));
                }
                values.push(number);
                self.reserve(METRIC_BYTES)?;
                let mut word = |index: usize| -> rusqlite::Result<Option<String>> {
                    Ok(text(row.get_ref(index)?, &mut String::new(), stats, place).map(str::to_owned))
                };
                let row = [word(0)?, word(1)?, word(3)?];
                self.reserve(row.iter().flatten().map(String::len).sum())?;
                words.push(row);
                Ok(())
            })?;
            builder.append(tables::Counters {
                location: words.iter().map(|row| row[0].as_deref()).collect(),
                name: words.iter().map(|row| row[1].as_deref()).collect(),
                value: values.into(),
                kind: "total".into(),
                unit: words.iter().map(|row| row[2].as_deref()).collect(),
                ..Default::default()
            })?;
        }
        Ok(())
    }

    /// What the trace says of itself.
    pub(super) fn describe(&self, connection: &Connection, builder: &mut RunBuilder) -> Result<(), ImportError> {
        if self.schema.has("exec_info") {
            let mut properties = Map::new();
            let sql = "SELECT Property, Value FROM exec_info";
            let stats = &mut builder.stats;
            self.each(connection, "exec_info", sql, &mut |row, place| {
                let property = text(row.get_ref(0)?, &mut String::new(), stats, place).unwrap_or("").to_owned();
                let value =
                    text(row.get_ref(1)?, &mut String::new(), stats, place).map(|value| clipped(value).to_owned());
                self.reserve(PROPERTY_BYTES + property.len() + value.as_ref().map_or(0, String::len))?;
                properties.insert(property, value.into());
                Ok(())
            })?;
            let said = |property: &str| properties.get(property).and_then(Value::as_str);
            builder.info.started_at = said("Start Time").and_then(wall_clock);
            builder.info.program = said("Command").and_then(program);
            builder.info.args.insert("exec_info".to_owned(), properties.into());
        }
        if self.schema.has("daisen$segments") {
            let sql = "SELECT StartTime, EndTime FROM \"daisen$segments\" ORDER BY StartTime";
            let (unit, stats) = (self.schema.unit, &mut builder.stats);
            let mut segments = Vec::new();
            self.each(connection, "daisen$segments", sql, &mut |row, place| {
                if segments.len() == SEGMENTS_MAX {
                    return Ok(());
                }
                let mut segment = Vec::with_capacity(2);
                for index in [0, 1] {
                    segment.push(Value::from(times::ticks(row.get_ref(index)?, unit, stats, place)));
                }
                segments.push(Value::from(segment));
                Ok(())
            })?;
            builder.info.args.insert("segments".to_owned(), segments.into());
        }
        for table in &self.schema.tables {
            let is_known = KNOWN_TABLES.iter().any(|known| known.eq_ignore_ascii_case(table));
            if is_known || self.schema.metrics.contains(table) {
                continue;
            }
            let count = connection.query_row(&format!("SELECT count(*) FROM {}", quoted(table)), [], |row| row.get(0));
            let rows: i64 = count.map_err(|error| self.file.damaged(format!("table `{table}`"), &error))?;
            builder.stats.note(findings::TABLE_NOT_READ, 1, || format!("table `{table}`: {rows} rows"));
        }
        Ok(())
    }

    /// Ports, components with their specs, and all names of the table of locations.
    pub(super) fn known_locations(&self, connection: &Connection) -> Result<Vec<Known>, ImportError> {
        let mut known = Vec::new();
        let mut stats = Stats::default();
        let mut read = |table: &str, sql: &str, make: &dyn Fn([Option<String>; 3]) -> Option<Known>| {
            if !self.schema.has(table) {
                return Ok(());
            }
            self.each(connection, table, sql, &mut |row, place| {
                let mut word = |index: usize| -> rusqlite::Result<Option<String>> {
                    Ok(text(row.get_ref(index)?, &mut String::new(), &mut stats, place)
                        .map(|word| clipped(word).to_owned()))
                };
                let words = [word(0)?, word(1)?, word(2)?];
                // A specification is parsed: JSON of numbers takes many times its text.
                let [name, others @ ..] = words.each_ref().map(|word| word.as_ref().map_or(0, String::len));
                self.reserve(LOCATION_BYTES + name + JSON_FACTOR * others.iter().sum::<usize>())?;
                known.extend(make(words));
                Ok(())
            })
        };
        read("component_spec", "SELECT Name, Type, Spec FROM component_spec", &|[name, kind, spec]| {
            Some(Known::component(name?, kind, spec))
        })?;
        read("port", "SELECT Port, Component, Connection FROM port", &|[name, component, connection]| {
            Some(Known::port(name?, component, connection))
        })?;
        read("location", "SELECT Locale, NULL, NULL FROM location", &|[name, ..]| Some(Known::location(name?)))?;
        Ok(known)
    }

    /// The names of locations by key; empty before v5 beta.2.
    fn location_names(&self) -> Result<HashMap<i64, String>, ImportError> {
        let mut names = HashMap::new();
        if self.schema.has("location") {
            let mut stats = Stats::default();
            let connection = self.file.connect()?;
            self.each(&connection, "location", "SELECT ID, Locale FROM location", &mut |row, place| {
                if let (ValueRef::Integer(key), Some(name)) =
                    (row.get_ref(0)?, text(row.get_ref(1)?, &mut String::new(), &mut stats, place))
                {
                    self.reserve(NAME_BYTES + name.len())?;
                    names.insert(key, name.to_owned());
                }
                Ok(())
            })?;
        }
        Ok(names)
    }

    fn reserve(&self, bytes: usize) -> Result<(), ImportError> {
        reserve(self.memory, bytes, self.file.path())
    }

    /// Runs a query and hands over each row, with its place.
    fn each(
        &self,
        connection: &Connection,
        table: &str,
        sql: &str,
        row: &mut RowReader<'_>,
    ) -> Result<(), ImportError> {
        let mut number = 0u64;
        let mut all = || -> Result<(), Stop> {
            let mut statement = connection.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(found) = rows.next()? {
                row(found, &|| format!("table `{table}`, row {number}"))?;
                number += 1;
            }
            Ok(())
        };
        let read = all();
        read.map_err(|stop| match stop {
            Stop::Database(error) => self.file.damaged(format!("table `{table}`, row {number}"), &error),
            Stop::Import(error) => error,
        })
    }

    /// Reads a table stretch by stretch on several threads: `read` is given a function that walks over the rows of one
    /// stretch. The answers stand in the order of the table.
    fn stretches<T: Send>(
        &self,
        source: &Source,
        read: impl Fn(&mut Walk<'_>, &mut Stats) -> Result<T, ImportError> + Sync,
    ) -> Result<Vec<(T, Stats)>, ImportError> {
        let table = quoted(&source.table);
        let stretches = {
            let connection = self.file.connect()?;
            let bounds = format!("SELECT min(rowid), max(rowid) FROM {table}");
            match connection.query_row(&bounds, [], |row| Ok((row.get(0)?, row.get(1)?))) {
                Ok((Some(first), Some(last))) => cut(first, last).into_iter().map(Some).collect(),
                Ok(_) => Vec::new(),
                // A view has no rowids; damage will show again.
                Err(_) => vec![None],
            }
        };
        let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let done = Mutex::new(Vec::with_capacity(stretches.len()));
        let work = || -> Result<(), (usize, ImportError)> {
            let connection = self.file.connect().map_err(|error| (0, error))?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(stretch) = stretches.get(number).filter(|_| !stopped.load(Ordering::Relaxed)) else {
                    return Ok(());
                };
                let mut stats = Stats::default();
                let mut walk = |row: &mut RowReader<'_>| {
                    let select = format!("SELECT {} FROM {table}", source.columns);
                    let sql = match stretch {
                        Some(ids) => format!("{select} WHERE rowid BETWEEN {} AND {}", ids.start(), ids.end()),
                        None => select,
                    };
                    self.each(&connection, &source.table, &sql, row)
                };
                match read(&mut walk, &mut stats) {
                    Ok(answer) => {
                        done.lock().unwrap_or_else(PoisonError::into_inner).push((number, (answer, stats)));
                    }
                    Err(error) => {
                        stopped.store(true, Ordering::Relaxed);
                        return Err((number, error));
                    }
                }
            }
        };
        let mut failed: Vec<(usize, ImportError)> = std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.threads.min(stretches.len())).map(|_| scope.spawn(work)).collect();
            let own = work();
            let all = others.into_iter().map(|other| match other.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            all.chain([own]).filter_map(Result::err).collect()
        });
        failed.sort_by_key(|(number, _)| *number);
        if let Some((_, error)) = failed.into_iter().next() {
            return Err(error);
        }
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(number, _)| *number);
        Ok(done.into_iter().map(|(_, answer)| answer).collect())
    }
}

/// Why a table is read no further.
enum Stop {
    Database(rusqlite::Error),
    Import(ImportError),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Stop {
        Stop::Database(error)
    }
}

impl From<ImportError> for Stop {
    fn from(error: ImportError) -> Stop {
        Stop::Import(error)
    }
}

/// What is done with a row and its place.
type RowReader<'a> = dyn FnMut(&Row<'_>, &dyn Fn() -> String) -> Result<(), Stop> + 'a;
/// Walks over the rows of a stretch.
type Walk<'a> = dyn FnMut(&mut RowReader<'_>) -> Result<(), ImportError> + 'a;

/// Ranges of rowids of about a chunk each.
fn cut(first: i64, last: i64) -> Vec<RangeInclusive<i64>> {
    let span = i128::from(last) - i128::from(first) + 1;
    let count = (span / CHUNK_ROWS as i128 + 1).min(i128::from(STRETCHES_MAX));
    let edge = |number: i128| i128::from(first) + number * span / count;
    (0..count).map(|number| edge(number) as i64..=(edge(number + 1) - 1) as i64).collect()
}

/// The beginning of a long text.
fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(ARG_BYTES)]
}

/// `2026-11-21 01:57:27.836165330` as ns since 1970. The zone is not told.
fn wall_clock(text: &str) -> Option<i64> {
    datafusion::arrow::compute::kernels::cast_utils::string_to_timestamp_nanos(text.trim()).ok()
}

/// `./mg48-fir` of `./mg48-fir -timing -length 256`, without its folder.
fn program(command: &str) -> Option<String> {
    let program = command.split_whitespace().next()?;
    program.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_cover_every_rowid_once() {
        for (first, last) in [(1, 1), (1, 200_000), (i64::MIN, i64::MAX), (5, 70_000)] {
            let ranges = cut(first, last);
            assert_eq!((*ranges[0].start(), *ranges[ranges.len() - 1].end()), (first, last));
            assert!(ranges.windows(2).all(|pair| pair[0].end() + 1 == *pair[1].start()));
            assert!(ranges.len() <= STRETCHES_MAX as usize);
        }
    }

    #[test]
    fn programs_and_dates_are_read() {
        assert_eq!(program("./mg48-fir -timing -length 256").as_deref(), Some("mg48-fir"));
        assert_eq!(program(""), None);
        assert_eq!(wall_clock("1970-01-01 00:00:01.500000000"), Some(1_500_000_000));
        assert_eq!(wall_clock("yesterday"), None);
    }
}
