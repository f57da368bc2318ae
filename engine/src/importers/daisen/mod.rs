//! Daisen: traces of Akita simulators (MGPUSim and others), as SQLite databases and as CSV.
//!
//! ```text
//! written by          trace                         ids      times                  milestones                  besides
//! v3, v4.0 - v4.1     task_id … end_time            text     REAL seconds           -                           -
//! v3, v4.0 - v4.1     CSV, `ID, ParentID, …`        text     seconds, 10 decimals   -                           -
//! v4.2 - v4.4         ID … EndTime, untyped         text     REAL seconds           trace_milestones, no time   exec_info
//! v4.5 - v4.8         the same                      text     REAL seconds           trace_milestones            exec_info
//! v4.9                the same                      text     REAL seconds           milestone                   daisen$segments
//! v5 beta.1           the same                      integer  REAL picoseconds       milestone
//! v5 beta.2 -         Location is a key of          integer  REAL picoseconds       milestone, no location;     component_spec,
//!                     location(ID, Locale)                                          tag                         port
//! ```
//! The files name no version: it is inferred from tables, columns and the types of cells ([`schema`]). Columns have no
//! declared type, so each cell is read by its own type. Indexes are never relied on, and the file is never written
//! ([`super::sqlite`]).
//!
//! | Akita's word | here |
//! | --- | --- |
//! | task | a row of `tasks`; ID → `id`, ParentID → `parent`, What (action) → `name`, Kind (category) → `kind` |
//! | location, `where` | a row of `locations`, kind `component`; what lies above it by dots is its `parent` |
//! | milestone | a row of `events`: Kind → `kind`, What → `name` |
//! | tag | a row of `events` of kind `tag` |
//! | `req_out` with its `req_in` | also a row of `messages` |
//! | port, component_spec | `locations`, their connection and spec in `args` |
//! | metrics of a simulator | `counters` of kind `total` |
//! | exec_info, segments | `runs.args` |
//!
//! Life of the data: threads read ranges of rows into chunks of columns ([`database`], [`csv`]), which already are the
//! columns of `tasks`; the ids of all chunks are indexed; milestones and tags, read in the same way, look up their tasks ([`events`]),
//! and tasks their parents ([`tasks`]); the names of locations become a tree ([`locations`]). While `tq import` is short of memory, chunks
//! wait on disk, and ids are sorted instead.
//!
//! Times are picoseconds in every version. A float of seconds is not exact: it counts as rounded only when it is farther
//! from a whole tick than the precision of a float of its size explains ([`times`]).
//!
//! Known to be odd in files found in the wild: parents that are not in the table, children that outlive their parents, tasks
//! without length, and (up to v4.8) tasks that were still open at the end and look as if they ended there; a milestone of a
//! task that never began brings a row without kind, what and location (v4.5 - v4.8), which is left out.

mod chunk;
mod csv;
mod database;
mod events;
mod locations;
mod schema;
mod tasks;
mod times;

use self::database::Reader;
use self::schema::Schema;
use self::tasks::Tasks;
use self::times::Unit;
use super::importer::{FormatDoc, ImportContext, ImportOptions, Importer, OptionDoc};
use super::sqlite::{self, Database};
use crate::error::ImportError;
use crate::trace::{Room, Source};
use tq_udfs::ticks::Tick;

const UNIT_OPTION: &str = "daisen.unit";

static DOC: FormatDoc = FormatDoc {
    name: "daisen",
    title: "Akita simulators (MGPUSim) traced for Daisen: SQLite and CSV",
    dialects: &[
        "SQLite of v3 to v4.1 (task_id …, seconds)",
        "CSV of v3",
        "SQLite of v4.2 to v4.9 (ID …, untyped columns, seconds), milestones with and without times, segments",
        "SQLite of v5 (integer ids, picoseconds), locations as text or as keys, tags, ports, specs",
    ],
    fills: "tasks (What → name, Kind → kind), locations (components, ports, and the dotted names above them), messages (req_out \
            to req_in), events (milestones, tags), counters (metrics of the simulator); exec_info and segments in runs.args",
    loses: "the sources of the simulator, the ids of milestones and tags; the format never knew which tasks were still open at \
            the end (v3 to v4.8 write them as if they ended there, later versions not at all), nor the zone of its wall-clock \
            dates (taken as UTC)",
    options: &[OptionDoc {
        key: UNIT_OPTION,
        description: "the unit of the times: s or ps; without it integer ids mean ps, text ids s",
    }],
};

/// The format.
pub(super) struct Daisen;

impl Importer for Daisen {
    fn doc(&self) -> &'static FormatDoc {
        &DOC
    }

    fn recognise(&self, source: &Source) -> bool {
        let head = source.head();
        if head.starts_with(sqlite::MAGIC) { schema::is_in(head) } else { csv::recognise(head) }
    }

    fn import(&self, source: &Source, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        let unit = unit(context.options)?;
        let mut builder = context.begin(source);
        (builder.info.tick, builder.info.time_unit, builder.info.origin) = (Some(Tick::Picosecond), "ps", Some(0));
        let memory = tasks::reservation(source, context.pool());
        let room = Room::new(source.path(), context.budget());
        if source.head().starts_with(sqlite::MAGIC) {
            let file = Database::of(source, DOC.name, &mut builder.stats)?;
            let connection = file.connect()?;
            let schema = Schema::of(&file, &connection, unit, &mut builder.stats)?;
            let reader =
                Reader { file: &file, schema: &schema, threads: context.threads, memory: &memory, room: &room };
            let tasks = Tasks::new(reader.tasks(&mut builder)?, &memory, source, &room)?;
            reader.events(&tasks, &mut builder)?;
            let locations = tasks.append(context.threads, &memory, &mut builder)?;
            reader.metrics(&connection, &mut builder)?;
            reader.describe(&connection, &mut builder)?;
            locations::append(reader.known_locations(&connection)?, &locations, &memory, &mut builder)?;
        } else {
            let chunks = csv::read(source, unit.unwrap_or(Unit::Seconds), &mut builder.stats, &memory, &room)?;
            let tasks = Tasks::new(chunks, &memory, source, &room)?;
            let locations = tasks.append(context.threads, &memory, &mut builder)?;
            locations::append(Vec::new(), &locations, &memory, &mut builder)?;
        }
        context.finish(builder)
    }
}

/// The unit that the user named.
fn unit(options: &ImportOptions) -> Result<Option<Unit>, ImportError> {
    match options.get(UNIT_OPTION).map(String::as_str) {
        None => Ok(None),
        Some("s") => Ok(Some(Unit::Seconds)),
        Some("ps") => Ok(Some(Unit::Picoseconds)),
        Some(other) => Err(ImportError::BadOption {
            option: UNIT_OPTION.to_owned(),
            value: other.to_owned(),
            what: "one of s, ps is needed".to_owned(),
        }),
    }
}
