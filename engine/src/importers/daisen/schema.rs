//! Which tables and columns a database has, and in which unit its times are.

use rusqlite::Connection;
use rusqlite::types::{Type, ValueRef};

use super::times::Unit;
use crate::error::ImportError;
use crate::importers::sqlite::{Database, quoted};
use crate::trace::{Stats, findings};

/// The names of the columns of `trace`: v3 and v4.
const TRACE: [[&str; 2]; 7] = [
    ["task_id", "ID"],
    ["parent_id", "ParentID"],
    ["kind", "Kind"],
    ["what", "What"],
    ["location", "Location"],
    ["start_time", "StartTime"],
    ["end_time", "EndTime"],
];

/// Rows that are looked at to tell the unit of the times.
const SAMPLE_ROWS: usize = 1_000;
/// Simulations are shorter than this many seconds and longer than this many picoseconds.
const SECONDS_MAX: f64 = 1e3;

/// What a database holds.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) unit: Unit,
    /// `SELECT`s of id, parent, kind, what, location, start, finish.
    pub(super) trace: Source,
    /// `SELECT`s of task, time, kind, what, location.
    pub(super) milestones: Option<Source>,
    /// The same, of tags.
    pub(super) tags: Option<Source>,
    /// All tables.
    pub(super) tables: Vec<String>,
    /// Tables of metrics: Location, What, Value, Unit.
    pub(super) metrics: Vec<String>,
}

/// A table, and what is read of it.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) table: String,
    /// The columns as SQL, NULL for those that the table does not have.
    pub(super) columns: String,
}

impl Schema {
    /// Looks at a database.
    ///
    /// # Errors
    /// [`ImportError::Unusable`] when there is no table `trace` of tasks; damage.
    pub(super) fn of(
        file: &Database,
        connection: &Connection,
        unit: Option<Unit>,
        stats: &mut Stats,
    ) -> Result<Schema, ImportError> {
        let tables = file.tables(connection)?;
        let columns = |table: &str| file.columns(connection, table);
        let has = |table: &str| tables.iter().find(|name| name.eq_ignore_ascii_case(table));
        let trace = columns("trace")?;
        let wanted = TRACE.map(|names| named(&trace, &names));
        // Whose task, and when: without these two there is nothing to say.
        if wanted[0].is_none() || wanted[5].is_none() {
            let what = match trace.as_slice() {
                [] => "no table `trace`".to_owned(),
                columns => format!(
                    "table `trace` has neither ID and StartTime nor task_id and start_time, but {}",
                    columns.join(", ")
                ),
            };
            return Err(file.unusable(what));
        }
        for ([_, name], _) in TRACE.iter().zip(&wanted).filter(|(_, column)| column.is_none()) {
            stats.note(findings::COLUMN_MISSING, 1, || format!("table `trace` has no column `{name}`"));
        }
        let trace = Source { table: "trace".to_owned(), columns: select(&wanted) };
        let milestones = match has("milestone").or_else(|| has("trace_milestones")) {
            Some(table) => Some(milestones(table, &columns(table)?)),
            None => None,
        };
        let tags = match has("tag") {
            Some(table) => {
                let columns = columns(table)?;
                let at = |name: &str| named(&columns, &[name]);
                let wanted = [at("TaskID"), at("Time"), Some("'tag'".to_owned()), at("What"), at("Location")];
                Some(Source { table: table.clone(), columns: select(&wanted) })
            }
            None => None,
        };
        let mut metrics = Vec::new();
        for table in &tables {
            let columns = columns(table)?;
            if ["Location", "What", "Value", "Unit"].iter().all(|name| named(&columns, &[name]).is_some()) {
                metrics.push(table.clone());
            }
        }
        let unit = match unit {
            Some(unit) => unit,
            None => guess_unit(file, connection, &wanted, stats)?,
        };
        Ok(Schema { unit, trace, milestones, tags, tables, metrics })
    }

    /// Whether there is a table of this name.
    pub(super) fn has(&self, table: &str) -> bool {
        self.tables.iter().any(|name| name.eq_ignore_ascii_case(table))
    }
}

/// Columns of milestones: v4.5 on, and before, when they had no time.
fn milestones(table: &str, columns: &[String]) -> Source {
    let wanted = [
        named(columns, &["TaskID"]),
        named(columns, &["Time"]),
        named(columns, &["Kind", "BlockingCategory"]),
        named(columns, &["What", "BlockingReason"]),
        named(columns, &["Location", "BlockingLocation"]),
    ];
    Source { table: table.to_owned(), columns: select(&wanted) }
}

/// The first of these columns that a table has, as SQL wants it. SQLite does not care about case.
fn named(columns: &[String], names: &[&str]) -> Option<String> {
    let find = |name: &&str| columns.iter().find(|column| column.eq_ignore_ascii_case(name));
    names.iter().find_map(find).map(|name| quoted(name))
}

fn select(columns: &[Option<String>]) -> String {
    let columns: Vec<&str> = columns.iter().map(|column| column.as_deref().unwrap_or("NULL")).collect();
    columns.join(", ")
}

/// Integer ids mean v5, which counts picoseconds; text ids mean seconds. Times that contradict are believed.
fn guess_unit(
    file: &Database,
    connection: &Connection,
    trace: &[Option<String>; 7],
    stats: &mut Stats,
) -> Result<Unit, ImportError> {
    let column = |index: usize| trace[index].as_deref().unwrap_or("NULL");
    let sql = format!("SELECT {}, {}, {} FROM trace LIMIT {SAMPLE_ROWS}", column(0), column(5), column(6));
    let (mut integer_ids, mut fractional, mut last) = (None, false, 0f64);
    let look = |row: &rusqlite::Row<'_>| {
        integer_ids.get_or_insert(row.get_ref(0)?.data_type() == Type::Integer);
        for index in [1, 2] {
            let time = match row.get_ref(index)? {
                ValueRef::Real(time) => time,
                ValueRef::Integer(time) => time as f64,
                _ => continue,
            };
            fractional |= time.fract() != 0.0;
            last = last.max(time);
        }
        Ok(())
    };
    let looked = || connection.prepare(&sql)?.query_map([], look)?.collect::<rusqlite::Result<Vec<()>>>();
    looked().map_err(|error| file.damaged("table `trace`".to_owned(), &error))?;
    let (unit, other) = match (integer_ids.unwrap_or(false), fractional, last < SECONDS_MAX) {
        (true, true, true) => (Unit::Seconds, "integers, which mean picoseconds"),
        (false, false, false) => (Unit::Picoseconds, "texts, which mean seconds"),
        (true, ..) => return Ok(Unit::Picoseconds),
        (false, ..) => return Ok(Unit::Seconds),
    };
    stats.note(findings::UNIT_GUESSED, 1, || {
        format!(
            "ids are {other}, but times up to {last} speak against it: taken as {unit:?} (--option daisen.unit=s|ps)"
        )
    });
    Ok(unit)
}

/// Whether the head of a database shows a table `trace` of tasks. Its schema stands in the first pages, as the text of
/// its CREATE statements.
pub(super) fn is_in(head: &[u8]) -> bool {
    const CREATE: &[u8] = b"CREATE TABLE ";
    memchr::memmem::find_iter(head, CREATE).any(|at| {
        let statement = &head[at + CREATE.len()..];
        let statement = statement.strip_prefix(b"IF NOT EXISTS ").unwrap_or(statement);
        let name: Vec<u8> = statement.iter().copied().take_while(|byte| *byte != b'(').take(16).collect();
        let is_trace = name.trim_ascii().eq_ignore_ascii_case(b"trace")
            || matches!(name.trim_ascii(), [b'"' | b'`' | b'[' | b'\'', name @ .., _] if name.eq_ignore_ascii_case(b"trace"));
        let end = statement.iter().position(|byte| *byte == 0).unwrap_or(statement.len()).min(4096);
        let columns = statement[..end].to_ascii_lowercase();
        let has = |name: &[u8]| memchr::memmem::find(&columns, name).is_some();
        is_trace && (has(b"task_id") && has(b"start_time") || has(b"parentid") && has(b"starttime"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_table_of_tasks_is_recognised() {
        let check = |schema: &str, expected| assert_eq!(is_in(schema.as_bytes()), expected, "{schema}");
        check("\0CREATE TABLE trace\n\t(\n\ttask_id varchar(200) null unique, start_time float)", true);
        check("\0CREATE TABLE trace (\n\tID, \n\tParentID, \n\tStartTime)", true);
        check("CREATE TABLE \"trace\" (ID, ParentID, StartTime)", true);
        check("CREATE TABLE trace (id, name)", false);
        check("CREATE TABLE traces (ID, ParentID, StartTime)", false);
        check("CREATE TABLE StringIds (id, value)", false);
    }
}
