//! The mapping: which column of which file becomes which column of which table.
//!
//! It is given as `--option table.KEY=VALUE` or as `KEY = "VALUE"` in a TOML file ([`super::toml_file`]); both become
//! lists of [`Given`] keys that record where they were written, for errors. One list is one [`Section`]: one file read
//! into one table. Keys are columns of that table, or settings:
//!
//! ```text
//! table          which table (tasks)                    key            tasks are referred to by id or name
//! file           which file (the one that is opened)    time_unit      unit of times that name none
//! from, query    which table of an SQLite file          origin         auto, 0 or min        } of the
//! delimiter      of a CSV file (sniffed)                tick           ns or ps              } whole run
//! columns        names for a CSV without header         location_kind  kind of the locations that appear (location)
//! phase          rows are begins and ends               time           their time, where `phase` is
//! ```
//! With `phase`, `key` names the column by which a begin and its end belong together.
//!
//! The value of a column is `COLUMN`, `COLUMN:unit` for times, or a text in single quotes, in which `{COLUMN}` stands for
//! the cell: `location='{host}/{thread}'`.

use std::path::{Path, PathBuf};

use tq_udfs::ticks::Tick;

use super::times::Unit;
use crate::error::ImportError;
use crate::importers::importer::ImportOptions;
use crate::nearest::nearest;
use crate::tables::{ColumnType, Table};

/// A key with its value as it was written.
#[derive(Debug, Clone)]
pub(super) struct Given {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) place: Place,
}

/// Where a key was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// `--option`.
    Option,
    /// A line of a TOML file.
    Line { file: PathBuf, line: usize },
}

impl Given {
    /// An error about this key.
    pub(super) fn refuse(&self, what: String, hint: Option<String>) -> ImportError {
        match &self.place {
            Place::Option => ImportError::BadOption {
                option: if self.key == "table" { self.key.clone() } else { format!("table.{}", self.key) },
                value: self.value.clone(),
                what: hint.map_or(what.clone(), |hint| format!("{what}; {hint}")),
            },
            Place::Line { file, line } => {
                ImportError::Unusable { path: format!("{}:{line}", file.display()).into(), what, hint }
            }
        }
    }
}

/// One file that is read into one table.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) table: Table,
    pub(super) file: PathBuf,
    /// Where the file was named; `None` for the trace that the user opened.
    pub(super) file_given: Option<Given>,
    /// Columns that other sections read from the same file.
    pub(super) used_elsewhere: Vec<String>,
    pub(super) from: Option<String>,
    pub(super) query: Option<String>,
    pub(super) delimiter: Option<u8>,
    pub(super) columns: Option<Vec<String>>,
    pub(super) key: TaskKey,
    pub(super) time_unit: Option<Unit>,
    pub(super) location_kind: String,
    /// Rows are begins and ends.
    pub(super) phase: Option<Phase>,
    pub(super) entries: Vec<Entry>,
    /// Whether the mapping is written in a file: errors then show TOML.
    pub(super) in_file: bool,
}

/// A column of ours and where its cells come from.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) column: Mappable,
    pub(super) value: Value,
    pub(super) given: Given,
}

/// Which rows begin tasks and which end them.
#[derive(Debug, Clone)]
pub(super) struct Phase {
    /// The column that tells.
    pub(super) column: String,
    /// Its text in rows that begin.
    pub(super) begin: String,
    /// Its text in rows that end.
    pub(super) end: String,
    /// The column of times, perhaps with its unit.
    pub(super) time: String,
    /// The column whose value a begin and its end share.
    pub(super) key: Option<String>,
    file: PathBuf,
}

/// Before the name of the column of times: the column in which a begin has the time of its end. No file has such a name.
pub(super) const END_TIME: char = '\0';

impl Phase {
    /// `COLUMN:begin=WORD,end=WORD`.
    fn parse(given: &Given, file: &Path) -> Result<Phase, ImportError> {
        let parts = given.value.rsplit_once(":begin=").and_then(|(column, words)| {
            let (begin, end) = words.split_once(",end=")?;
            let whole = !column.is_empty() && !begin.is_empty() && !end.is_empty() && begin != end;
            whole.then(|| (column.trim(), begin.trim(), end.trim()))
        });
        let Some((column, begin, end)) = parts else {
            let hint = "write `COLUMN:begin=WORD,end=WORD` with the two words of that column".to_owned();
            return Err(given.refuse("does not say which rows begin and which end".to_owned(), Some(hint)));
        };
        let [column, begin, end] = [column, begin, end].map(str::to_owned);
        Ok(Phase { column, begin, end, time: String::new(), key: None, file: file.to_owned() })
    }

    /// The column of times among the columns of a file, whose name may end like a unit: what the file has goes first. The
    /// columns of JSON are what was asked for, whether a record has it or not.
    pub(super) fn time_column(&self, columns: &[String], found: &[String]) -> Option<usize> {
        let name = match found.contains(&self.time) {
            true => &self.time,
            false => without_unit(&self.time),
        };
        columns.iter().position(|column| column == name)
    }

    /// The error about a column that the file lacks; `key` is what names it.
    pub(super) fn refuse_column(&self, key: &str, name: &str, found: &[String]) -> ImportError {
        let near = nearest(name, found.iter().map(String::as_str));
        let what = match name.rsplit_once(':') {
            Some((column, unit)) if found.iter().any(|found| found == column) => {
                format!("`{unit}` behind `{column}` is no unit of time: s, ms, us, ns, ps or min")
            }
            _ => format!(
                "no column `{name}`, which `table.{key}` names; there are {}",
                list(found.iter().map(String::as_str))
            ),
        };
        let hint = near.map(|near| format!("did you mean `{near}`?"));
        ImportError::Unusable { path: self.file.clone(), what, hint }
    }

    /// The error about a file none of whose rows is a begin, but `others`.
    pub(super) fn refuse_words(&self, others: &[String]) -> ImportError {
        ImportError::Unusable {
            path: self.file.clone(),
            what: format!(
                "no row has `{}` in `{}`, where there are {}",
                self.begin,
                self.column,
                list(others.iter().map(String::as_str))
            ),
            hint: Some(format!(
                "--option table.phase={}:begin=…,end=… names the words of begins and ends",
                self.column
            )),
        }
    }
}

/// `begin` of `begin:us`.
pub(super) fn without_unit(text: &str) -> &str {
    text.rsplit_once(':').filter(|(_, unit)| Unit::parse(unit).is_some()).map_or(text, |(name, _)| name)
}

/// Where the cells of a column come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// A column of the file, as written: `begin:us`, where only a look at the file tells whether `:us` is part of the name.
    Column(String),
    /// Pieces of text between columns.
    Text(Vec<Piece>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Literal(String),
    Column(String),
}

/// How links, parents and messages refer to tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskKey {
    Id,
    Name,
}

/// What tick 0 is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The least start for timestamps and for numbers that are dates between 2000 and 2100 as ns since 1970, else 0.
    Auto,
    /// Numbers stay as they are.
    Zero,
    /// The least start.
    Min,
}

/// The mapping of one trace.
#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) sections: Vec<Section>,
    pub(super) origin: Origin,
    pub(super) tick: Tick,
    /// Whether the mapping says so in so many words.
    pub(super) is_tick_given: bool,
}

/// A column that a mapping may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mappable {
    pub(super) name: &'static str,
    pub(super) column_type: ColumnType,
}

/// Attributes of the locations that rows of other tables name.
pub(super) const LOCATION_ATTRIBUTES: [&str; 2] = ["process", "clock"];

/// The columns of a table that a mapping may fill: not the run, and not the identities that `tq` gives out itself.
pub(super) fn mappable(table: Table) -> impl Iterator<Item = Mappable> {
    let own = move |name: &str| match table {
        Table::Tasks => name == "task",
        _ => name == "message",
    };
    let has_location = matches!(table, Table::Tasks | Table::Counters | Table::Events);
    let columns = table.spec().columns.iter().filter(move |column| column.name != "run" && !own(column.name));
    columns.map(|column| Mappable { name: column.name, column_type: column.column_type }).chain(
        LOCATION_ATTRIBUTES
            .into_iter()
            .filter(move |_| has_location)
            .map(|name| Mappable { name, column_type: ColumnType::Word }),
    )
}

const TABLES: [Table; 6] =
    [Table::Tasks, Table::Links, Table::Messages, Table::Counters, Table::Events, Table::Locations];

const SETTINGS: [&str; 13] = [
    "table",
    "phase",
    "file",
    "from",
    "query",
    "delimiter",
    "columns",
    "key",
    "time_unit",
    "location_kind",
    "origin",
    "tick",
    "mapping",
];

/// Settings that may stand above the sections of a file, for all of them.
const SHARED_SETTINGS: [&str; 6] = ["origin", "tick", "time_unit", "key", "location_kind", "delimiter"];

/// The keys of `--option table…`.
pub(super) fn given_options(options: &ImportOptions) -> Vec<Given> {
    let key = |key: &str| {
        if key == "table" { Some("table".to_owned()) } else { key.strip_prefix("table.").map(str::to_owned) }
    };
    options
        .iter()
        .filter_map(|(name, value)| Some(Given { key: key(name)?, value: value.clone(), place: Place::Option }))
        .collect()
}

impl Mapping {
    /// Puts a mapping together. `shared` stands above the sections, `sections` are the tables of a TOML file, `options`
    /// come from the command line and win over the keys of the section that reads the trace itself.
    pub(super) fn new(
        trace: Option<&Path>,
        folder: &Path,
        shared: &[Given],
        mut sections: Vec<Vec<Given>>,
        options: Vec<Given>,
    ) -> Result<Mapping, ImportError> {
        if let Some(stranger) = shared.iter().find(|given| !SHARED_SETTINGS.contains(&given.key.as_str())) {
            let what = format!(
                "`{}` must stand in a section: above all sections only {} may",
                stranger.key,
                list(SHARED_SETTINGS)
            );
            return Err(stranger.refuse(what, Some("move it below its `[[table]]`".to_owned())));
        }
        let mut options: Vec<Given> = options.into_iter().filter(|given| given.key != "mapping").collect();
        if sections.is_empty() {
            sections.push(Vec::new());
        }
        let own = sections.iter().position(|section| !section.iter().any(|given| given.key == "file"));
        let mut run = Run { origin: None, tick: None };
        let mut built = Vec::new();
        for (index, mut section) in sections.into_iter().enumerate() {
            // The last one given wins: shared, section, command line.
            let mut givens = shared.to_vec();
            givens.append(&mut section);
            if Some(index) == own || (own.is_none() && index == 0) {
                givens.append(&mut options);
            }
            built.push(run.section(trace, folder, givens)?);
        }
        for index in 0..built.len() {
            let others = built
                .iter()
                .enumerate()
                .filter(|(other, section)| *other != index && section.file == built[index].file);
            let used = others.flat_map(|(_, section)| section.named_columns()).map(str::to_owned).collect();
            built[index].used_elsewhere = used;
        }
        let uses_picoseconds = built.iter().any(Section::uses_picoseconds);
        let tick = run.tick.unwrap_or(if uses_picoseconds { Tick::Picosecond } else { Tick::Nanosecond });
        let is_tick_given = run.tick.is_some();
        Ok(Mapping { sections: built, origin: run.origin.unwrap_or(Origin::Auto), tick, is_tick_given })
    }
}

/// Settings that a section may make for the whole run.
struct Run {
    origin: Option<Origin>,
    tick: Option<Tick>,
}

impl Run {
    fn section(&mut self, trace: Option<&Path>, folder: &Path, givens: Vec<Given>) -> Result<Section, ImportError> {
        let table = match givens.iter().rfind(|given| given.key == "table") {
            Some(given) => table_of(given)?,
            None => Table::Tasks,
        };
        let in_file = givens.iter().any(|given| given.place != Place::Option);
        let mut section = Section {
            table,
            file: trace.unwrap_or(folder).to_owned(),
            file_given: None,
            used_elsewhere: Vec::new(),
            from: None,
            query: None,
            delimiter: None,
            columns: None,
            key: TaskKey::Id,
            time_unit: None,
            location_kind: "location".to_owned(),
            phase: None,
            entries: Vec::new(),
            in_file,
        };
        let pairs = givens.iter().any(|given| given.key == "phase");
        let mut of_pairs = Vec::new();
        for given in givens {
            match pairs && matches!(given.key.as_str(), "phase" | "time" | "key") {
                true => of_pairs.push(given),
                false => self.take(&mut section, folder, given)?,
            }
        }
        section.pair(&of_pairs)?;
        if section.file_given.is_none() && trace.is_none() {
            return Err(ImportError::Unusable {
                path: folder.to_owned(),
                what: "a section names no file, and the mapping stands beside none".to_owned(),
                hint: Some("add `file = \"log.csv\"` to each `[[table]]`".to_owned()),
            });
        }
        if let (Some(_), Some(_)) = (&section.from, &section.query) {
            let what = "`from` and `query` exclude each other".to_owned();
            return Err(ImportError::Unusable { path: section.file, what, hint: None });
        }
        Ok(section)
    }

    fn take(&mut self, section: &mut Section, folder: &Path, given: Given) -> Result<(), ImportError> {
        match given.key.as_str() {
            "table" | "mapping" => {}
            "file" => {
                let beside = folder.join(&given.value);
                // The command line also names files as it sees them.
                let is_elsewhere = given.place == Place::Option && !beside.exists();
                section.file = if is_elsewhere { PathBuf::from(&given.value) } else { beside };
                section.file_given = Some(given);
            }
            "from" => section.from = Some(given.value),
            "query" => section.query = Some(given.value),
            "delimiter" => section.delimiter = Some(delimiter_of(&given)?),
            "columns" => {
                section.columns = Some(given.value.split(',').map(|name| name.trim().to_owned()).collect());
            }
            "key" => section.key = choice(&given, &[("id", TaskKey::Id), ("name", TaskKey::Name)])?,
            "time_unit" => section.time_unit = Some(choice(&given, &Unit::ALL)?),
            "location_kind" => section.location_kind = given.value,
            "origin" => {
                let choices = [("auto", Origin::Auto), ("0", Origin::Zero), ("min", Origin::Min)];
                self.origin = Some(choice(&given, &choices)?);
            }
            "tick" => self.tick = Some(choice(&given, &[("ns", Tick::Nanosecond), ("ps", Tick::Picosecond)])?),
            name => {
                let Some(column) = mappable(section.table).find(|column| column.name == name) else {
                    return Err(unknown_key(section.table, &given));
                };
                section.entries.retain(|entry| entry.column != column);
                section.entries.push(Entry { column, value: value_of(&given)?, given });
            }
        }
        Ok(())
    }
}

impl Section {
    /// Rows are begins and ends: `start` is the time of one and `finish` that of the other.
    fn pair(&mut self, givens: &[Given]) -> Result<(), ImportError> {
        let last = |key: &str| givens.iter().rfind(|given| given.key == key);
        let Some(phase_given) = last("phase") else { return Ok(()) };
        if self.table != Table::Tasks {
            return Err(phase_given.refuse(format!("begins and ends are rows of tasks, not of {}", self.table), None));
        }
        if let Some(entry) =
            self.entries.iter().find(|entry| ["start", "finish", "duration"].contains(&entry.column.name))
        {
            let what = format!("`{}` is known from begins and ends when rows have a phase", entry.column.name);
            return Err(entry.given.refuse(what, Some("`table.time` names their column of times".to_owned())));
        }
        let Some(time) = last("time") else {
            let hint = "add the column of their times: `table.time=COLUMN:us`".to_owned();
            return Err(phase_given.refuse("begins and ends need times".to_owned(), Some(hint)));
        };
        let mut phase = Phase::parse(phase_given, &self.file)?;
        phase.time = time.value.trim().to_owned();
        phase.key = last("key").map(|key| key.value.trim().to_owned());
        for (name, text) in [("start", phase.time.clone()), ("finish", format!("{END_TIME}{}", phase.time))] {
            if let Some(column) = mappable(self.table).find(|column| column.name == name) {
                self.entries.push(Entry { column, value: Value::Column(text), given: time.clone() });
            }
        }
        self.phase = Some(phase);
        Ok(())
    }

    /// The columns of the file that the mapping names, without their units.
    fn named_columns(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().flat_map(|entry| match &entry.value {
            Value::Column(text) => vec![without_unit(text)],
            Value::Text(pieces) => pieces
                .iter()
                .filter_map(|piece| match piece {
                    Piece::Column(name) => Some(name.as_str()),
                    Piece::Literal(_) => None,
                })
                .collect(),
        })
    }

    /// Whether a time of the section is given in picoseconds, so that the run has to count in them.
    fn uses_picoseconds(&self) -> bool {
        let in_picoseconds = |entry: &Entry| {
            entry.column.column_type == ColumnType::Time
                && matches!(&entry.value, Value::Column(name) if name.ends_with(":ps"))
        };
        self.time_unit == Some(Unit::Picosecond) || self.entries.iter().any(in_picoseconds)
    }
}

fn table_of(given: &Given) -> Result<Table, ImportError> {
    if let Some(table) = TABLES.into_iter().find(|table| table.name() == given.value) {
        return Ok(table);
    }
    let names = TABLES.map(Table::name);
    let hint = nearest(&given.value, names).map(|name| format!("did you mean `{name}`?"));
    Err(given.refuse(format!("rows can become {}", list(names)), hint))
}

fn unknown_key(table: Table, given: &Given) -> ImportError {
    let columns: Vec<&str> = mappable(table).map(|column| column.name).collect();
    let what = format!("`{}` is no column of {table} and no setting", given.key);
    // In the tables, rows are told apart by `task`.
    let of_tables = (given.key == "task" && columns.contains(&"id")).then_some("id");
    match of_tables.or_else(|| nearest(&given.key, columns.iter().copied().chain(SETTINGS))) {
        Some(near) => given.refuse(what, Some(format!("did you mean `{near}`?"))),
        None => {
            let known = format!("{what}; its columns are {}, settings are {}", list(columns), list(SETTINGS));
            given.refuse(known, None)
        }
    }
}

fn delimiter_of(given: &Given) -> Result<u8, ImportError> {
    match given.value.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !matches!(byte, b'"' | b'\n' | b'\r') => {
            Ok(*byte)
        }
        _ => {
            Err(given
                .refuse("a delimiter is one character that is no letter, digit or quote, or `tab`".to_owned(), None))
        }
    }
}

fn choice<T: Copy>(given: &Given, choices: &[(&'static str, T)]) -> Result<T, ImportError> {
    choices.iter().find(|(name, _)| *name == given.value).map(|(_, value)| *value).ok_or_else(|| {
        given.refuse(format!("`{}` can be {}", given.key, list(choices.iter().map(|(name, _)| *name))), None)
    })
}

/// `COLUMN`, `COLUMN:unit`, or `'text with {COLUMN}'`.
fn value_of(given: &Given) -> Result<Value, ImportError> {
    let text = given.value.trim();
    if text.is_empty() {
        return Err(given.refuse("names no column".to_owned(), Some("write `''` for an empty text".to_owned())));
    }
    let Some(quoted) = text.strip_prefix('\'') else { return Ok(Value::Column(text.to_owned())) };
    let Some(mut rest) = quoted.strip_suffix('\'') else {
        return Err(given.refuse("a text in single quotes does not end".to_owned(), None));
    };
    let mut pieces = Vec::new();
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((column, after)) = behind.split_once('}') else {
            return Err(given.refuse("`{` opens a column name that `}` does not close".to_owned(), None));
        };
        if !before.is_empty() {
            pieces.push(Piece::Literal(before.to_owned()));
        }
        pieces.push(Piece::Column(column.trim().to_owned()));
        rest = after;
    }
    if !rest.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Literal(rest.to_owned()));
    }
    Ok(Value::Text(pieces))
}

/// `` `a`, `b` and `c` ``.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(options: &[(&str, &str)]) -> Result<Mapping, String> {
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Mapping::new(Some(Path::new("log.csv")), Path::new(""), &[], vec![], given_options(&options))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn options_become_a_section() {
        let mapping = mapping(&[
            ("table", "links"),
            ("table.source", "from:x"),
            ("table.kind", "'{a}-{b}'"),
            ("table.key", "name"),
            ("tfprof.types", "5"),
        ])
        .unwrap();
        let section = &mapping.sections[0];
        assert_eq!((section.table, section.key, mapping.origin), (Table::Links, TaskKey::Name, Origin::Auto));
        let value =
            |name| section.entries.iter().find(|entry| entry.column.name == name).map(|entry| entry.value.clone());
        assert_eq!(value("source"), Some(Value::Column("from:x".to_owned())));
        let pieces = [Piece::Column("a".to_owned()), Piece::Literal("-".to_owned()), Piece::Column("b".to_owned())];
        assert_eq!(value("kind"), Some(Value::Text(pieces.to_vec())));
    }

    #[test]
    fn picoseconds_make_the_run_count_in_them() {
        let tick = |options: &[(&str, &str)]| mapping(options).unwrap().tick;
        assert_eq!(tick(&[("table.start", "t:ps")]), Tick::Picosecond);
        assert_eq!(tick(&[("table.tick", "ps")]), Tick::Picosecond);
        assert_eq!(tick(&[("table.start", "t:ps"), ("table.tick", "ns")]), Tick::Nanosecond);
        assert_eq!(tick(&[("table.name", "t:ps")]), Tick::Nanosecond);
    }

    #[test]
    fn wrong_keys_and_values_name_what_there_is() {
        let check = |options: &[(&str, &str)], expected: &str| {
            let error = mapping(options).err().unwrap_or_default();
            assert!(error.contains(expected), "{options:?}: {error}");
        };
        check(&[("table.strat", "a")], "did you mean `start`?");
        check(&[("table", "task")], "did you mean `tasks`?");
        check(&[("table", "links"), ("table.start", "a")], "`start` is no column of links");
        check(&[("table.task", "a")], "`task` is no column of tasks");
        check(&[("table.task", "a")], "did you mean `id`?");
        check(&[("table.delimiter", "ab")], "a delimiter is one character");
        check(&[("table.time_unit", "h")], "`time_unit` can be `s`, `ms`");
        check(&[("table.name", "'a")], "does not end");
        check(&[("table.name", "'{a'")], "does not close");
        check(&[("table.name", "")], "names no column");
        check(&[("table.from", "a"), ("table.query", "b")], "exclude each other");
    }
}
