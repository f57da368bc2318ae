//! NVTX: ranges, marks, and the rows that name things.
//!
//! ```text
//! eventType  59 70   push/pop: nests per thread and domain            a task on the domain's lane of the thread
//!            60 71   start/end: may overlap, may end on another thread  a task on a lane of its own
//!            34      mark                                               an event
//!            33 39 75 76   names a category, a thread, a domain         no row
//! ```

use std::cmp::Reverse;

use hashbrown::HashMap;

use super::database::{Cells as Row, Reader};
use super::lanes::{Lanes, Process};
use super::tasks::{Args, Kind, OPEN, Range, Tasks, span, thread};
use crate::error::ImportError;
use crate::tables;
use crate::trace::{List, RunBuilder, findings, record};

const TABLE: &str = "NVTX_EVENTS";
const COLUMNS: [&str; 10] =
    ["start", "end", "eventType", "text", "textId", "globalTid", "domainId", "rangeId", "category", "endGlobalTid"];

/// An NVTX mark.
#[derive(Debug, Clone)]
struct Mark {
    time: i64,
    lane: i32,
    name: Box<str>,
}

record!(Mark { time, lane, name });

/// NVTX marks.
pub(super) struct Marks {
    marks: List<Mark>,
    /// The time of the earliest.
    pub(super) first: Option<i64>,
}

impl Marks {
    pub(super) fn append(self, origin: i64, lanes: &Lanes, builder: &mut RunBuilder) -> Result<(), ImportError> {
        if self.marks.is_empty() {
            return Ok(());
        }
        let locations = lanes.keys(tables::Events::location, builder)?;
        for marks in self.marks.chunks() {
            let marks = marks?;
            builder.append(tables::Events {
                location: marks.iter().map(|mark| locations[mark.lane as usize]).collect(),
                name: marks.iter().map(|mark| mark.name.as_ref()).collect(),
                kind: "nvtx".into(),
                time: marks.iter().map(|mark| mark.time.saturating_sub(origin)).collect(),
                ..Default::default()
            })?;
        }
        Ok(())
    }
}

/// Reads ranges into `tasks`, and answers the marks.
pub(super) fn read(reader: &mut Reader<'_>, lanes: &mut Lanes, tasks: &mut Tasks) -> Result<Marks, ImportError> {
    let domains = domains(reader)?;
    let mut marks = Marks { marks: List::new(&tasks.room), first: None };
    reader.rows(TABLE, &COLUMNS, |reader, row| {
        let event_type = row.integer(2).unwrap_or(-1);
        match event_type {
            34 | 59 | 60 | 70 | 71 => {}
            33 | 39 | 75 | 76 => {
                let example = || "rows that name domains, categories and threads".to_owned();
                reader.stats.left_out(findings::NVTX_NAMES, 1, example);
                return Ok(());
            }
            _ => {
                let example = || format!("NVTX event of type {event_type}");
                reader.stats.left_out(findings::UNKNOWN_EVENT_TYPE, 1, example);
                return Ok(());
            }
        }
        let Some((start, finish)) = span(reader, row, TABLE) else { return Ok(()) };
        let name = text(reader, row);
        let thread = thread(reader, row, 5, TABLE);
        if event_type == 34 {
            marks.first = Some(marks.first.map_or(start, |first| first.min(start)));
            return marks.marks.push(Mark { time: start, lane: lanes.thread(thread), name: name.into() });
        }
        let may_overlap = matches!(event_type, 60 | 71);
        let domain = row.integer(6).unwrap_or(0);
        let domain_name = match domains.get(&(Process::of(thread), domain)) {
            Some(name) => name.clone(),
            None if domain == 0 => String::new(),
            None => format!("domain {domain}"),
        };
        let lane = lanes.ranges(thread, &domain_name, may_overlap);
        let args = Args::default()
            .number("domain", row.integer(6))
            .number("rangeId", row.integer(7).filter(|_| may_overlap))
            .number("category", row.integer(8));
        let task = tasks.push(&name, Kind::Nvtx, lane, (start, finish), args)?;
        // A range that another thread ends, or that never ends, is not the launching thread's.
        let ends_here = row.integer(9).is_none_or(|other| other == thread || matches!(other, 0 | -1));
        if !may_overlap || (ends_here && finish != OPEN) {
            let (thread, finish) = (lanes.thread(thread), Reverse(finish));
            tasks.ranges.push(Range { thread, start, finish, task, lane, may_overlap })?;
        }
        Ok(())
    })?;
    Ok(marks)
}

/// A domain of a process, with its name or the number of its text.
type NamedDomain = ((Process, i64), Option<String>, Option<i64>);

/// Names of domains by process and number.
fn domains(reader: &mut Reader<'_>) -> Result<HashMap<(Process, i64), String>, ImportError> {
    const DOMAIN_BYTES: usize = 128;
    let more = reader.more_bytes();
    let mut named: Vec<NamedDomain> = Vec::new();
    reader.describe(TABLE, &COLUMNS, |row| {
        if let (Some(75), Some(domain)) = (row.integer(2), row.integer(6)) {
            more.set(more.get() + size_of::<NamedDomain>() + DOMAIN_BYTES);
            named.push(((Process::of(row.integer(5).unwrap_or(0)), domain), row.text(3), row.integer(4)));
        }
    })?;
    let name = |(key, text, id): ((Process, i64), Option<String>, Option<i64>)| {
        Some((key, text.or_else(|| id.map(|id| reader.string(id)))?))
    };
    Ok(named.into_iter().filter_map(name).collect())
}

/// Inline text, else a registered string; versions that had no NULL wrote -1.
fn text(reader: &mut Reader<'_>, row: &Row<'_, '_>) -> String {
    let registered = row.integer(4).filter(|id| *id != -1);
    row.text(3).or_else(|| registered.map(|id| reader.string(id))).unwrap_or_default()
}
