//! Nsight Systems: the SQLite databases of `nsys export --type sqlite`.
//!
//! ```text
//! StringIds(id, value)                                    words; columns …Id, …Name refer to it
//! CUPTI_ACTIVITY_KIND_RUNTIME  globalTid 0x81_00_000064_0000c9   call, correlationId 7
//!                                     │  │  pid    tid
//!                                     hardware, virtual machine
//! CUPTI_ACTIVITY_KIND_KERNEL   globalPid 0x81_00_000064_000000   kernel, correlationId 7     link `launch`: call → kernel
//! NVTX_EVENTS                  globalTid 0x81_00_000064_0000c9   range around the call       link `nvtx`: range → kernel
//! ```
//! | version | what differs |
//! | --- | --- |
//! | 2019 - 2020 | no `globalPid` on device rows, NVTX text inline, no `eventClass`; 0 or -1 stands for a missing value |
//! | 2021 - 2022 | `textId` beside `text`, `META_DATA_EXPORT` |
//! | 2023 and later | NULL stands for a missing value, driver calls among the runtime's |
//!
//! The version is not read: a table exists only when its data was collected, and a column is looked up by its name, so that
//! a missing one is NULL ([`database`]). A suffix such as `_V2` on the name of a table marks a later layout of the same
//! table.
//!
//! Life of the data: strings, then calls, device work, NVTX and the rest become tasks in blocks ([`tasks`]); threads and
//! streams become lanes as they are encountered ([`lanes`]); calls and ranges are sorted and joined to what runs on devices
//! ([`joins`]). There are no indexes, so each table is read once and joined here. All but texts and lanes waits on disk while an import
//! is short of memory.
//!
//! Known to be odd in files found in the wild: correlation ids are unique only within a process, and 0 means none; driver
//! calls share the id of the runtime call around them (the inner one is the launch); kernels whose call came before the
//! collection began; ids above 2⁶³ are stored as negative numbers; `deviceId` counts within its process. The columns follow
//! NVIDIA's published schema and public tools; where these leave doubts, reading is lenient.

mod calls;
mod database;
mod joins;
mod lanes;
mod nvtx;
pub(crate) mod report;
mod tasks;

use rusqlite::types::ValueRef;

use self::calls::Calls;
use self::database::Reader;
use self::lanes::Lanes;
use self::tasks::Tasks;
use super::importer::{FormatDoc, ImportContext, Importer, OptionDoc};
use super::sqlite::{self, Database};
use crate::error::ImportError;
use crate::trace::{Room, Source, Stats, findings};

static DOC: FormatDoc = FormatDoc {
    name: "nsys",
    title: "NVIDIA Nsight Systems: SQLite exports (`nsys export --type sqlite`)",
    dialects: &[
        "exports of 2019 and later; missing tables and columns, and tables that end in _V2 and such",
        "reports (`.nsys-rep`), where `nsys` is installed to export them",
    ],
    fills: "tasks (calls, kernels, copies, memsets, synchronisations, graphs, NVTX ranges, OS calls, libraries, MPI, overhead), \
            locations (processes, threads, devices, streams, NVTX domains), links (launch, sync, nvtx), events (NVTX marks)",
    loses: "samples, scheduling, GPU metrics, memory usage and call chains (their tables are counted); which MPI calls belong \
            together; NVTX payloads, colours, and the names of categories and threads; OpenMP and the making of graph nodes",
    options: &[OptionDoc {
        key: report::OPTION,
        description: "`no`: a report is not handed to the `nsys` of the PATH, which else exports it into a temporary file.",
    }],
};

/// The format.
pub(super) struct Nsys;

/// Which of NVIDIA's databases has these tables.
fn dialect(has: impl Fn(&str) -> bool) -> Option<Dialect> {
    let any = |names: &[&str]| names.iter().any(|name| has(name));
    if has("StringIds") && any(&["CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "TARGET_INFO_SYSTEM_ENV", "META_DATA_EXPORT"]) {
        return Some(Dialect::Nsys);
    }
    (has("StringTable") && has("CUPTI_ACTIVITY_KIND_")).then_some(Dialect::Nvprof)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Nsys,
    /// Its predecessor, which is recognised to be refused in clear words.
    Nvprof,
}

impl Importer for Nsys {
    fn doc(&self) -> &'static FormatDoc {
        &DOC
    }

    fn recognise(&self, source: &Source) -> bool {
        let head = source.head();
        if !head.starts_with(sqlite::MAGIC) {
            return false;
        }
        let in_head = |name: &str| creates_table(head, name);
        // A long schema lies on later pages than the first ones.
        dialect(in_head).or_else(|| {
            let database = Database::of_what_is_left(source, DOC.name, &mut Stats::default()).ok()?;
            let tables = database.tables_without_views(&database.connect().ok()?).ok()?;
            dialect(|name| tables.iter().any(|table| table.starts_with(name)))
        }) == Some(Dialect::Nsys)
            || dialect(in_head) == Some(Dialect::Nvprof)
    }

    fn import(&self, source: &Source, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        let mut builder = context.begin(source);
        let database = Database::of_what_is_left(source, DOC.name, &mut builder.stats)?;
        let mut reader = Reader::new(&database, context.pool(), &mut builder.stats)?;
        if dialect(|name| reader.has(name)) == Some(Dialect::Nvprof) {
            return Err(ImportError::Unusable {
                path: source.path().to_owned(),
                what: "this is a database of nvprof, which is not read".to_owned(),
                hint: Some("profile with `nsys profile` and `nsys export --type sqlite`".to_owned()),
            });
        }
        for table in ["CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"] {
            if !reader.has(table) {
                let what = || format!("no table `{table}`: none of its data was collected");
                reader.stats.note(findings::TABLE_MISSING, 1, what);
            }
        }
        let room = Room::new(source.path(), context.budget());
        let mut lanes = Lanes::of(&mut reader)?;
        let mut tasks = Tasks::new(&room, &reader);
        let calls = tasks::calls(&mut reader, &mut lanes, &mut tasks)?;
        let calls = Calls::of(calls, &room)?;
        let work = tasks::device_work(&mut reader, &calls, &mut lanes, &mut tasks)?;
        tasks::libraries(&mut reader, &mut lanes, &mut tasks)?;
        let marks = nvtx::read(&mut reader, &mut lanes, &mut tasks)?;
        let started_at = started_at(&mut reader)?;
        diagnostics(&mut reader)?;
        reader.count_others();
        let held = reader.finish();
        // The texts of the database are gone.
        held.shrink(held.size().saturating_sub(tasks.words_memory() + lanes.memory()));

        let launches = joins::launches(work, &calls, &room, &mut builder.stats)?;
        drop(calls);
        let origin = [tasks.first, marks.first].into_iter().flatten().min();
        builder.info.origin = origin;
        builder.info.started_at = started_at.zip(origin).and_then(|(start, origin)| start.checked_add(origin));
        lanes.tell_carriers(tasks.met());
        let ranges = tasks.append(origin.unwrap_or(0), &lanes, &held, &mut builder)?;
        marks.append(origin.unwrap_or(0), &lanes, &mut builder)?;
        launches.append(ranges, &room, &mut builder)?;
        lanes.append(&mut builder)?;
        context.finish(builder)
    }
}

/// Wall clock at time 0.
fn started_at(reader: &mut Reader<'_>) -> Result<Option<i64>, ImportError> {
    let mut started_at = None;
    reader.describe("TARGET_INFO_SESSION_START_TIME", &["utcEpochNs"], |row| {
        started_at = row.integer(0).filter(|time| *time > 0).or(started_at);
    })?;
    Ok(started_at)
}

/// What the profiler said of itself.
fn diagnostics(reader: &mut Reader<'_>) -> Result<(), ImportError> {
    let mut messages = Vec::new();
    reader.describe("DIAGNOSTIC_EVENT", &["text"], |row| messages.extend(row.text(0)))?;
    for message in messages {
        let finding = if speaks_of_loss(&message) { findings::EVENTS_DROPPED } else { findings::DIAGNOSTIC };
        reader.stats.note(finding, 1, || message);
    }
    Ok(())
}

/// Whether a message says that something was dropped, and not that nothing was.
fn speaks_of_loss(message: &str) -> bool {
    const DROPPED: &str = "dropped";
    let message = message.to_lowercase();
    let words: Vec<&str> =
        message.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_none = |word: &str| matches!(word, "0" | "no" | "none" | "zero");
    // `0 events were dropped`, `dropped 0 events`: not the number of a device, which things do not follow.
    let none_of_them = words.windows(2).any(|pair| {
        is_none(pair[0])
            && ["event", "record", "sample", "buffer", "packet"].iter().any(|thing| pair[1].starts_with(thing))
    });
    words.contains(&DROPPED) && !none_of_them
}

/// Whether the schema of a database, as far as its first bytes hold it, has a table whose name begins so. Elsewhere the
/// name is no proof: rows of any program may contain it.
fn creates_table(head: &[u8], name: &str) -> bool {
    memchr::memmem::find_iter(head, name.as_bytes()).any(|at| {
        let before = &head[..at];
        let before =
            before.strip_suffix(b"\"").or(before.strip_suffix(b"[")).or(before.strip_suffix(b"`")).unwrap_or(before);
        before.ends_with(b"CREATE TABLE ")
    })
}

/// A whole number: databases hold ids as text, too.
fn integer(cell: ValueRef<'_>) -> Option<i64> {
    match cell {
        ValueRef::Integer(number) => Some(number),
        ValueRef::Real(number) if number.fract() == 0.0 && number.abs() < 9e15 => Some(number as i64),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).ok()?.trim();
            // Ids above 2⁶³ are numbers without a sign.
            text.parse().ok().or_else(|| text.parse::<u64>().ok().map(|id| id as i64))
        }
        ValueRef::Real(_) | ValueRef::Blob(_) | ValueRef::Null => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_any_type_hold_whole_numbers() {
        assert_eq!(integer(ValueRef::Integer(-7)), Some(-7));
        assert_eq!(integer(ValueRef::Text(b" 12 ")), Some(12));
        assert_eq!(integer(ValueRef::Text(b"9295429632353108069")), Some(9_295_429_632_353_108_069_u64 as i64));
        assert_eq!(integer(ValueRef::Text(b"18446744073709551616")), None);
        assert_eq!(integer(ValueRef::Real(3.0)), Some(3));
        assert_eq!(integer(ValueRef::Real(0.5)), None);
        assert_eq!(integer(ValueRef::Null), None);
    }

    #[test]
    fn what_was_dropped_is_a_loss() {
        assert!(speaks_of_loss("12 events were dropped on device 0."));
        assert!(speaks_of_loss("Device 0 dropped 12 events"));
        assert!(speaks_of_loss("Events Dropped"));
        assert!(!speaks_of_loss("0 events were dropped"));
        assert!(!speaks_of_loss("no records dropped"));
        assert!(!speaks_of_loss("Collection started"));
    }

    #[test]
    fn tables_are_told_from_text_that_names_them() {
        assert!(creates_table(b"...CREATE TABLE StringIds (id", "StringIds"));
        assert!(creates_table(b"CREATE TABLE \"CUPTI_ACTIVITY_KIND_KERNEL\"(", "CUPTI_ACTIVITY_KIND_"));
        assert!(!creates_table(b"join StringIds with CREATE VIEW StringIds", "StringIds"));
    }

    #[test]
    fn nvprof_is_told_apart() {
        let has =
            |tables: &'static [&'static str]| move |name: &str| tables.iter().any(|table| table.starts_with(name));
        assert_eq!(dialect(has(&["StringIds", "NVTX_EVENTS"])), Some(Dialect::Nsys));
        assert_eq!(dialect(has(&["StringTable", "CUPTI_ACTIVITY_KIND_KERNEL"])), Some(Dialect::Nvprof));
        assert_eq!(dialect(has(&["StringIds", "rocpd_kernel"])), None);
    }
}
