//! Plan: resolves the mapping of a section against the columns of its file.
//!
//! Every column that the mapping names must exist; an unmapped column with the name of a column of the table is mapped
//! to it; all others go to `args`. The errors of this module are often the first that a newcomer sees: they say what the
//! file has, and end with something to type.

use tq_udfs::ticks::Tick;

use super::mapping::{END_TIME, Entry, Mappable, Piece, Section, TaskKey, Value, list, mappable};
use super::read::Header;
use super::suggest;
use super::times::{TimeReader, Unit};
use crate::error::ImportError;
use crate::nearest::nearest;
use crate::tables::{ColumnType, Table};
use crate::trace::{Stats, findings};

/// How the columns of a table come from the columns of the file's batches.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) columns: Vec<Planned>,
    /// Columns of the batches that go to `args`, with their names.
    pub(super) unmapped: Vec<(usize, String)>,
}

/// One column of ours.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) column: Mappable,
    pub(super) from: From,
    /// What the file calls it, for examples and for `args`.
    pub(super) name: String,
    /// For columns of times.
    pub(super) times: Option<TimeReader>,
    /// The unit that was said, if any was.
    pub(super) unit: Option<Unit>,
    /// A key of JSON records that the first of them lack: some record must have it.
    pub(super) must_appear: bool,
}

/// Where the cells come from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum From {
    /// A column of the batch.
    Column(usize),
    /// Texts between columns of the batch.
    Text(Vec<PlannedPiece>),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum PlannedPiece {
    Literal(String),
    Column(usize),
}

/// Columns without which the rows of a table mean nothing: of each inner list, one is enough.
const fn needed(table: Table) -> &'static [&'static [&'static str]] {
    match table {
        Table::Tasks => &[&["start", "duration"]],
        Table::Links | Table::Messages => &[&["source"], &["target"]],
        Table::Counters => &[&["name"], &["value"]],
        Table::Events => &[&["name", "time"]],
        _ => &[&["location"]],
    }
}

/// Columns that a hint guesses, in the order of its words.
const fn guessed(table: Table) -> &'static [&'static str] {
    match table {
        Table::Tasks => &["start", "finish", "duration", "name", "location"],
        Table::Links => &["source", "target"],
        Table::Messages => &["source", "target", "send_time", "receive_time", "bytes"],
        Table::Counters => &["time", "name", "value", "location"],
        Table::Events => &["time", "name", "location"],
        _ => &["location"],
    }
}

/// Columns that other programs call otherwise, where a file has no column of our name: ours, and theirs.
const fn also_called(table: Table) -> &'static [(&'static str, &'static str)] {
    match table {
        Table::Tasks => &[("start", "timestamp"), ("finish", "end"), ("duration", "dur")],
        Table::Counters | Table::Events => &[("time", "timestamp")],
        _ => &[],
    }
}

/// `start_us` as `start` in us, where a table has such a time; `timestamp` likewise.
fn time_with_unit(table: Table, name: &str) -> Option<(&'static str, Option<Unit>)> {
    let (stem, unit) = match name.rsplit_once('_').and_then(|(stem, unit)| Some((stem, Unit::parse(unit)?))) {
        Some((stem, unit)) => (stem, Some(unit)),
        None => (name, None),
    };
    let ours = mappable(table)
        .find(|column| column.column_type == ColumnType::Time && column.name == stem && unit.is_some())
        .map(|column| column.name);
    let theirs = || also_called(table).iter().find(|(_, theirs)| *theirs == stem).map(|(ours, _)| *ours);
    ours.or_else(theirs).map(|ours| (ours, unit))
}

/// The unit that the name of a column of times says: `begin_us`. `t_min` may be the least one, unless it is a time of ours.
fn unit_of_name(table: Table, name: &str) -> Option<Unit> {
    let (_, unit) = name.rsplit_once('_')?;
    Unit::parse(unit).filter(|unit| *unit != Unit::Minute || is_time_with_unit(table, name))
}

fn is_time_with_unit(table: Table, name: &str) -> bool {
    time_with_unit(table, name).is_some()
}

/// Whether the columns are those of tasks in our own words: a start, with a finish or a duration, each perhaps with a unit.
pub(super) fn are_tasks(columns: &[String]) -> bool {
    let is_in_other_words = |name: &str, ours: &str| {
        // `end` and `dur` are words of many things.
        time_with_unit(Table::Tasks, name)
            .is_some_and(|(name, unit)| name == ours && (unit.is_some() || ours == "start"))
    };
    let has = |ours: &str| columns.iter().any(|name| name == ours || is_in_other_words(name, ours));
    has("start") && (has("finish") || has("duration"))
}

/// The columns that a section may ask of a file whose records differ; `found` are those of the first record.
pub(super) fn wanted(section: &Section, found: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in &section.entries {
        match &entry.value {
            Value::Column(text) => {
                names.push(text.clone());
                if let Some((name, _)) = with_unit(entry, text) {
                    names.push(name.to_owned());
                }
            }
            Value::Text(pieces) => {
                names.extend(pieces.iter().filter_map(|piece| match piece {
                    Piece::Column(name) => Some(name.clone()),
                    Piece::Literal(_) => None,
                }));
            }
        }
    }
    names.extend(mappable(section.table).map(|column| column.name.to_owned()));
    if let Some(phase) = &section.phase {
        names.push(phase.column.clone());
        names.extend(phase.key.clone());
        names.retain(|name| !name.starts_with(END_TIME));
    } else {
        names.extend(found.iter().filter(|name| is_time_with_unit(section.table, name)).cloned());
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// `begin:us` as `begin` and its unit, for a column of times.
fn with_unit<'a>(entry: &Entry, text: &'a str) -> Option<(&'a str, Unit)> {
    let (name, unit) = text.rsplit_once(':')?;
    let unit = Unit::parse(unit)?;
    (entry.column.column_type == ColumnType::Time).then_some((name, unit))
}

/// Whether rows of a table keep what none of its columns takes.
pub(super) fn has_args(table: Table) -> bool {
    table.spec().columns.iter().any(|column| column.name == "args")
}

impl Plan {
    /// Whether a column of ours is filled.
    pub(super) fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|planned| planned.column.name == name)
    }

    /// Says which columns are read by none of ours.
    pub(super) fn note_columns(&self, section: &Section, header: &Header, stats: &mut Stats) {
        let file = section.file.display();
        if !has_args(section.table) {
            let kept = |name: &str| section.used_elsewhere.iter().any(|used| used == name);
            let names = self.unmapped.iter().map(|(_, name)| name.as_str()).filter(|name| !kept(name));
            let names: Vec<&str> = names.collect();
            stats.note(findings::COLUMN_NOT_KEPT, names.len() as u64, || {
                format!("{file}: `{}`; {} have no args", names.join("`, `"), section.table)
            });
        }
        let suggestions = self.suggestions(section, header);
        stats.note(findings::COLUMN_SUGGESTED, suggestions.len() as u64, || {
            let missing: Vec<&str> = suggestions.iter().map(|(ours, _)| *ours).collect();
            let mappings = suggestions.iter().map(|(ours, theirs)| match section.in_file {
                true => format!("`{ours} = \"{theirs}\"`"),
                false => format!("`--option table.{ours}={theirs}`"),
            });
            let mappings: Vec<String> = mappings.collect();
            format!("{file}: the tasks have no {}; {} may give it", missing.join(" and no "), mappings.join(" and "))
        });
    }

    /// What tasks lack of a name and a location, each with the column of the file that probably says it.
    fn suggestions(&self, section: &Section, header: &Header) -> Vec<(&'static str, String)> {
        if section.table != Table::Tasks {
            return Vec::new();
        }
        let is_free = |name: &&String| !self.columns.iter().any(|planned| planned.name == **name);
        let free: Vec<String> = header.found.iter().filter(is_free).cloned().collect();
        let missing: Vec<&'static str> = ["name", "location"].into_iter().filter(|name| !self.has(name)).collect();
        suggest::guess(Table::Tasks, &missing, &free)
    }

    /// Whether a time is given in picoseconds.
    pub(super) fn uses_picoseconds(&self) -> bool {
        self.columns.iter().any(|planned| planned.unit == Some(Unit::Picosecond))
    }

    /// Resolves the mapping of a section against the header of its file.
    pub(super) fn new(section: &Section, header: &Header, tick: Tick) -> Result<Plan, ImportError> {
        let planner = Planner { section, header };
        let mut columns = Vec::new();
        for entry in &section.entries {
            columns.push(planner.given(entry, tick)?);
        }
        for column in mappable(section.table) {
            let given = section.entries.iter().any(|entry| entry.column == column);
            if !given && let Some(index) = planner.found(column.name) {
                columns.push(planner.planned(column, From::Column(index), column.name, None, tick));
            }
        }
        if section.phase.is_none() {
            planner.in_other_words(&mut columns, tick);
        }
        let used = |index: usize| {
            columns.iter().any(|planned| match &planned.from {
                From::Column(column) => *column == index,
                From::Text(pieces) => pieces.contains(&PlannedPiece::Column(index)),
            })
        };
        let unmapped = header.columns.iter().cloned().enumerate().filter(|(index, _)| !used(*index)).collect();
        let plan = Plan { columns, unmapped };
        for alternatives in needed(section.table) {
            if !alternatives.iter().any(|name| plan.has(name)) {
                return Err(planner.lacks(alternatives));
            }
        }
        Ok(plan)
    }
}

struct Planner<'a> {
    section: &'a Section,
    header: &'a Header,
}

impl Planner<'_> {
    /// The index of a column that the file has.
    fn found(&self, name: &str) -> Option<usize> {
        let has = !self.header.open || self.header.found.iter().any(|found| found == name);
        if has { self.index(name) } else { None }
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.header.columns.iter().position(|column| column == name)
    }

    fn planned(&self, column: Mappable, from: From, name: &str, unit: Option<Unit>, tick: Tick) -> Planned {
        let of_name = || match from {
            From::Column(_) => unit_of_name(self.section.table, name),
            From::Text(_) => None,
        };
        let is_time = column.column_type == ColumnType::Time;
        let unit = unit.or_else(|| if is_time { of_name() } else { None }).or(self.section.time_unit);
        let times = is_time.then(|| TimeReader::new(unit.unwrap_or(Unit::Nanosecond), tick));
        Planned { column, from, name: name.to_owned(), times, unit, must_appear: false }
    }

    /// Times of ours that the file has with a unit behind their name, or by a common other name.
    fn in_other_words(&self, columns: &mut Vec<Planned>, tick: Tick) {
        let table = self.section.table;
        let has = |columns: &[Planned], ours: &str| columns.iter().any(|planned| planned.column.name == ours);
        for is_last_resort in [false, true] {
            for name in self
                .header
                .columns
                .iter()
                .filter(|name| !columns.iter().any(|planned| planned.name == **name))
                .cloned()
                .collect::<Vec<_>>()
            {
                let Some((ours, unit)) = time_with_unit(table, &name) else { continue };
                let is_other_name = !name.starts_with(ours);
                // A timestamp alone is no task: what happened then took no time that anybody knows. And an end is that of a start.
                let ends = ["finish", "duration"];
                let is_end = |name: &String| time_with_unit(table, name).is_some_and(|(ours, _)| ends.contains(&ours));
                let has_other_half = match ours {
                    "start" => ends.iter().any(|end| has(columns, end)) || self.header.found.iter().any(is_end),
                    _ => has(columns, "start") && !has(columns, "finish") && !has(columns, "duration"),
                };
                let fits = is_other_name == is_last_resort
                    && !has(columns, ours)
                    && (!is_other_name || table != Table::Tasks || has_other_half);
                if fits
                    && let (Some(index), Some(column)) =
                        (self.found(&name), mappable(table).find(|column| column.name == ours))
                {
                    columns.push(self.planned(column, From::Column(index), &name, unit, tick));
                }
            }
        }
    }

    /// A column that the mapping names.
    fn given(&self, entry: &Entry, tick: Tick) -> Result<Planned, ImportError> {
        let text = match &entry.value {
            Value::Text(pieces) => {
                let pieces = pieces.iter().map(|piece| match piece {
                    Piece::Literal(text) => Ok(PlannedPiece::Literal(text.clone())),
                    Piece::Column(name) => {
                        let index = if self.header.open { self.index(name) } else { self.found(name) };
                        index.map(PlannedPiece::Column).ok_or_else(|| self.no_column(entry, name))
                    }
                });
                let from = From::Text(pieces.collect::<Result<_, _>>()?);
                return Ok(self.planned(entry.column, from, entry.column.name, None, tick));
            }
            Value::Column(text) => text,
        };
        // A column may be called `load:us`: what the file has goes first.
        if let Some(index) = self.found(text) {
            return Ok(self.planned(entry.column, From::Column(index), text, None, tick));
        }
        if let Some((name, unit)) = with_unit(entry, text) {
            if let Some(index) = self.found(name) {
                return Ok(self.planned(entry.column, From::Column(index), name, Some(unit), tick));
            }
            if let Some(index) = self.index(name) {
                let planned = self.planned(entry.column, From::Column(index), name, Some(unit), tick);
                return Ok(Planned { must_appear: true, ..planned });
            }
            return Err(self.no_column(entry, name));
        }
        if let Some((name, unit)) = text.rsplit_once(':')
            && self.found(name).is_some()
        {
            let units = list(Unit::ALL.iter().map(|(symbol, _)| *symbol));
            let what = match entry.column.column_type {
                ColumnType::Time => format!("`{unit}` is no unit of time; there are {units}"),
                _ => format!("`{}` is no time and takes no unit", entry.column.name),
            };
            return Err(entry.given.refuse(what, None));
        }
        match self.index(text) {
            Some(index) => {
                let planned = self.planned(entry.column, From::Column(index), text, None, tick);
                Ok(Planned { must_appear: true, ..planned })
            }
            None => Err(self.no_column(entry, text)),
        }
    }

    fn no_column(&self, entry: &Entry, name: &str) -> ImportError {
        let near = nearest(name, self.header.found.iter().map(String::as_str));
        let what = format!("{} has no column `{name}`; it has {}", self.section.file.display(), self.found_columns());
        let key = entry.column.name;
        let hint = match near {
            // The shell takes the quotes away that make a text of it.
            _ if name.contains('{') && name.contains('}') => Some(format!(
                "a text with columns in it has single quotes, within those of the shell: \"table.{key}='{name}'\""
            )),
            near => near.map(|near| format!("did you mean `{near}`?")),
        };
        entry.given.refuse(what, hint)
    }

    fn found_columns(&self) -> String {
        const SHOWN: usize = 20;
        let found = &self.header.found;
        // A binary file that was forced to be a table has odd columns.
        let shown: Vec<String> = found
            .iter()
            .take(SHOWN)
            .map(|name| name.chars().take(40).collect::<String>().escape_debug().to_string().replace("\\\"", "\""))
            .collect();
        let shown = list(shown.iter().map(String::as_str));
        match found.len().saturating_sub(SHOWN) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    }

    /// No column is or becomes one of `alternatives`.
    fn lacks(&self, alternatives: &[&str]) -> ImportError {
        let section = self.section;
        let kind = match section.table {
            Table::Tasks => "a task",
            Table::Links => "a link",
            Table::Messages => "a message",
            Table::Counters => "a counter",
            Table::Events => "an event",
            _ => "a location",
        };
        let needs = alternatives.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
        let what = format!("{kind} needs {needs}, and no column is called so; the file has {}", self.found_columns());
        ImportError::Unusable { path: section.file.clone(), what, hint: Some(self.hint(alternatives)) }
    }

    /// What to type instead.
    fn hint(&self, alternatives: &[&str]) -> String {
        let mapping = self.mapping(self.section.table, alternatives);
        if self.holds_trace_events() {
            return format!("--from-format chrome, if these are trace events with `ts` in us; as a table: {mapping}");
        }
        if let Some(columns) = self.columns_of_a_file_without_header() {
            return format!("does the file begin without the names of its columns? --option table.columns={columns}");
        }
        match self.of_one_time() {
            true if !self.section.in_file => format!(
                "rows with a time and no end are events: --option table=events {}; with a begin and an end row each, \
                 tasks: --option table.phase=COLUMN:begin=WORD,end=WORD --option table.time=COLUMN:us",
                self.mapping(Table::Events, &["time"])
            ),
            _ => mapping,
        }
    }

    /// Whether rows have one time and nothing that says how long something took.
    fn of_one_time(&self) -> bool {
        let found = &self.header.found;
        let guesses = |names: &[&'static str]| !suggest::guess(Table::Tasks, names, found).is_empty();
        self.section.table == Table::Tasks
            && self.section.entries.is_empty()
            && guesses(&["start"])
            && !guesses(&["finish", "duration"])
    }

    /// Names for columns whose first row looks like values: numbers among them.
    fn columns_of_a_file_without_header(&self) -> Option<String> {
        let found = &self.header.found;
        let is_number = |name: &String| name.trim().parse::<f64>().is_ok();
        if self.header.open || !found.iter().any(is_number) || self.section.columns.is_some() {
            return None;
        }
        let mut times = ["start", "finish"].into_iter();
        let mut texts = ["name", "location"].into_iter();
        let names = found.iter().enumerate().map(|(number, column)| {
            let ours = if is_number(column) { times.next() } else { texts.next() };
            ours.map_or_else(|| format!("column{}", number + 1), str::to_owned)
        });
        Some(names.collect::<Vec<_>>().join(","))
    }

    /// Whether JSON records have the keys of Chrome's events, whose `ts` are no ns, though the file was not recognised.
    fn holds_trace_events(&self) -> bool {
        let has = |name: &str| self.header.found.iter().any(|found| found == name);
        self.header.open && has("ts") && has("name") && (has("ph") || has("pid"))
    }

    /// The mapping that we would write, as far as we can guess it.
    fn mapping(&self, table: Table, alternatives: &[&str]) -> String {
        let section = self.section;
        let mut guesses = suggest::guess(table, guessed(table), &self.header.found);
        let said = |name: &str| section.entries.iter().any(|entry| entry.column.name == name);
        guesses.retain(|(column, theirs)| !said(column) && *theirs != *column);
        if !guesses.iter().any(|(column, _)| alternatives.contains(column)) {
            let unit = if matches!(alternatives[0], "start" | "time") { ":us" } else { "" };
            guesses.insert(
                0,
                (
                    needed(table)
                        .iter()
                        .flat_map(|names| names.iter())
                        .copied()
                        .find(|name| alternatives.contains(name))
                        .unwrap_or("start"),
                    format!("COLUMN{unit}"),
                ),
            );
        }
        let words: Vec<String> = guesses
            .iter()
            .map(|(column, theirs)| match section.in_file {
                true => format!("{column} = \"{theirs}\""),
                false if theirs.contains([' ', '(', '\'']) => format!("--option 'table.{column}={theirs}'"),
                false => format!("--option table.{column}={theirs}"),
            })
            .collect();
        let has_unit = |theirs: &str| theirs.rsplit_once(':').is_some_and(|(_, unit)| Unit::parse(unit).is_some());
        let is_time =
            |name: &str| mappable(table).any(|column| column.name == name && column.column_type == ColumnType::Time);
        let unitless = guesses.iter().find(|(column, theirs)| is_time(column) && !has_unit(theirs));
        let words = words.join(if section.in_file { ", " } else { " " });
        match unitless.filter(|_| section.time_unit.is_none()) {
            Some((_, theirs)) => {
                format!("{words} (the unit of numbers is guessed; `{theirs}:us` and the like say it)")
            }
            None => words,
        }
    }
}

/// How tasks are referred to, in words.
pub(super) fn key_word(key: TaskKey) -> &'static str {
    match key {
        TaskKey::Id => "id",
        TaskKey::Name => "name",
    }
}
