//! Any table of rows: a home-made log becomes tasks, links, messages, counters, events or locations without code.
//!
//! ```text
//! begin,end,stage,worker          --option table.start=begin:s --option table.finish=end:s
//! 0.000125,0.004250,decode,w1     --option table.name=stage    --option table.location=worker
//! ```
//! Life of a row: the [`mapping`] (command line or [`toml_file`]) says which file becomes which table; a reader ([`read`])
//! makes batches of its container; the [`plan`] resolves the mapping against the file's columns; [`build`] turns cells
//! into ticks, words and references, and unmapped columns into [`args`]; at the end, [`run`] determines the origin, the
//! parents and the nesting. Rows that are begins and ends become rows of tasks before that ([`pairing`]).
//!
//! A file is **recognised** when a mapping lies beside it, or when its columns have the names of our tables (`start` with `finish`
//! or `duration`, also `start_us` and the like). A single JSON object with lists or objects in it is a document and not a row. A
//! file that the user names and that no other format claims is accepted if it is any kind of table, so that the error says what it
//! lacks and not "unknown format".
//!
//! **Times** are exact ([`times`]); a unit that is not given is guessed and counted ([`guess`]). Numbers keep the recorder's own
//! zero; timestamps, and numbers that are dates between 2000 and 2100 as ns since 1970, are counted from the least start, which is
//! kept in `runs.origin`.
//!
//! **Tasks** of a location are nested when any two of them either do not overlap or lie one inside the other; else the
//! tasks of that location have no depth. References go to `id`, or with `key=name` to the name of a task that no other
//! task has.

mod args;
mod build;
mod guess;
mod mapping;
mod pairing;
mod plan;
mod read;
mod run;
mod suggest;
mod times;
mod toml_file;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use self::build::SectionSink;
use self::mapping::{Mapping, Section, TaskKey, given_options};
use self::pairing::Pairing;
use self::read::{Container, ReadOptions};
use self::run::RunTables;
use self::toml_file::MappingFile;
use super::importer::{FormatDoc, ImportContext, ImportOptions, Importer, OptionDoc};
use crate::error::ImportError;
use crate::paths::{self, NamedFileError};
use crate::tables::Table;
use crate::trace::Source;

/// See the module.
pub(super) struct TableImporter;

static DOC: FormatDoc = FormatDoc {
    name: "table",
    title: "home-made logs: CSV, TSV, NDJSON, JSON arrays, Parquet, Arrow IPC and SQLite with a column mapping",
    dialects: &[
        "CSV with any delimiter, quotes, BOM, LF or CRLF",
        "NDJSON, and a JSON array of objects",
        "Parquet",
        "Arrow IPC file and stream, also compressed with LZ4 or zstd",
        "SQLite 3, read-only and immutable",
        "a mapping `FILE.tq.toml` beside the data, or opened itself",
    ],
    fills: "tasks, links, messages, counters, events, locations: what the mapping says; depth and parents by nesting; other columns in args",
    loses: "columns of counters beyond ours (counters have no args)",
    options: &[
        OptionDoc {
            key: "table",
            description: "The table that the rows become: tasks (default), links, messages, counters, events or locations.",
        },
        OptionDoc {
            key: "table.*",
            description: "table.COLUMN=SOURCE[:unit] maps a column (units: s ms us ns ps min), table.COLUMN='text {SOURCE}' is a text; \
                          settings: table.mapping=FILE.tq.toml, .from=TABLE and .query=SELECT (SQLite), .delimiter, .columns=a,b (CSV without header), \
                          .key=id|name, .time_unit, .tick=ns|ps, .origin=auto|0|min, .location_kind; rows that are begins and ends: \
                          .phase=COLUMN:begin=WORD,end=WORD with .time=COLUMN:us and, where a column pairs them, .key=COLUMN.",
        },
    ],
};

impl Importer for TableImporter {
    fn doc(&self) -> &'static FormatDoc {
        &DOC
    }

    fn recognise(&self, source: &Source) -> bool {
        if toml_file::is_mapping(source.path()) || toml_file::beside(source.path()).is_some() {
            return true;
        }
        // It needs our own column names; otherwise it is some other program's table.
        read::peek(source).is_some_and(|columns| plan::are_tasks(&columns)) && !read::is_document(source)
    }

    fn accepts(&self, source: &Source, options: &ImportOptions, named: bool) -> bool {
        match read::container(source.head()) {
            None => false,
            Some(_) if !given_options(options).is_empty() => true,
            Some(Container::Csv) => named && read::peek(source).is_some(),
            // A document is not a table of rows.
            Some(Container::JsonLines | Container::JsonArray) => named && !read::is_document(source),
            // Rows with neither a start nor a duration are accepted, so that the error says what they lack. One of the two alone may mean
            // anything.
            Some(Container::Sqlite) => {
                named
                    && read::rows_of_database(source).is_some_and(|columns| {
                        let has = |name: &str| columns.iter().any(|column| column == name);
                        plan::are_tasks(&columns) || !(has("start") || has("duration"))
                    })
            }
            Some(_) => named,
        }
    }

    fn import(&self, source: &Source, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        let mapping = mapping_of(source, context.options)?;
        let mut run = RunTables::new(source, context, &mapping);
        run.needs_names = mapping.sections.iter().any(|section| section.key == TaskKey::Name);
        for table in ORDER {
            for section in mapping.sections.iter().filter(|section| section.table == table) {
                read_section(source, section, &mut run)?;
            }
        }
        context.finish(run.finish()?)
    }

    fn companions(&self, file: &Path) -> Vec<PathBuf> {
        let mapping = if toml_file::is_mapping(file) { Some(file.to_owned()) } else { toml_file::beside(file) };
        let Some(mapping) = mapping else { return Vec::new() };
        let folder = mapping.parent().unwrap_or(Path::new(""));
        let named = MappingFile::read(&mapping).map(|read| read.files(folder)).unwrap_or_default();
        let data = toml_file::data_of(&mapping);
        named.into_iter().chain(data).chain([mapping]).collect()
    }

    fn companions_among(&self, files: &[PathBuf]) -> Vec<PathBuf> {
        let there: HashSet<&PathBuf> = files.iter().collect();
        let mut companions = Vec::new();
        for mapping in files.iter().filter(|file| toml_file::is_mapping(file)) {
            let data = toml_file::data_of(mapping);
            let folder = mapping.parent().unwrap_or(Path::new(""));
            // A mapping that cannot be read says so when it is opened.
            let named = MappingFile::read(mapping).map(|read| read.files(folder)).unwrap_or_default();
            companions.extend(named.into_iter().filter(|file| file != mapping && Some(file) != data.as_ref()));
            if data.is_some_and(|data| there.contains(&data)) {
                companions.push(mapping.clone());
            }
        }
        companions
    }
}

/// Tables in the order in which they are read: what is referred to comes first.
const ORDER: [Table; 6] =
    [Table::Locations, Table::Tasks, Table::Links, Table::Messages, Table::Counters, Table::Events];

/// The mapping of a trace: the file itself, the file beside it, the command line.
fn mapping_of(source: &Source, options: &ImportOptions) -> Result<Mapping, ImportError> {
    let path = source.path();
    let options = given_options(options);
    let named = options.iter().find(|given| given.key == "mapping").map(|given| PathBuf::from(&given.value));
    let (trace, file) = match (toml_file::is_mapping(path), named) {
        (true, _) => (toml_file::data_of(path), Some(path.to_owned())),
        (false, Some(named)) => (Some(path.to_owned()), Some(named)),
        (false, None) => {
            let beside = toml_file::beside(path);
            if let Some(mapping) = &beside {
                paths::named_by(path, mapping).map_err(|error| outside(path, &error, "table.mapping"))?;
            }
            (Some(path.to_owned()), beside)
        }
    };
    if toml_file::is_mapping(path)
        && let Some(data) = &trace
    {
        paths::named_by(path, data).map_err(|error| outside(path, &error, "table.mapping"))?;
    }
    let Some(file) = file else {
        return Mapping::new(trace.as_deref(), Path::new(""), &[], Vec::new(), options);
    };
    let MappingFile { shared, sections } = MappingFile::read(&file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    Mapping::new(trace.as_deref(), folder, &shared, sections, options)
}

/// A file that is read because of another one leads elsewhere.
fn outside(path: &Path, error: &NamedFileError, option: &str) -> ImportError {
    ImportError::Unusable {
        path: path.to_owned(),
        what: error.to_string(),
        hint: Some(format!("give the file on the command line: `--option {option}=FILE`")),
    }
}

/// The file of a section: the command line may name any, a mapping those of its folder.
fn named_file(section: &Section) -> Result<PathBuf, ImportError> {
    let Some(given) = &section.file_given else { return Ok(section.file.clone()) };
    let mapping::Place::Line { file: mapping, .. } = &given.place else { return Ok(section.file.clone()) };
    match paths::named_by(mapping, &section.file) {
        // A missing or unreadable file is an error when it is opened.
        Ok(_) | Err(NamedFileError::Io { .. }) => Ok(section.file.clone()),
        Err(error) => {
            let hint = "give the file on the command line: `--option table.file=FILE`";
            Err(given.refuse(error.to_string(), Some(hint.to_owned())))
        }
    }
}

fn read_section(trace: &Source, section: &Section, run: &mut RunTables) -> Result<(), ImportError> {
    let opened = match section.file == trace.path() {
        true => trace.clone(),
        false => {
            named_file(section).and_then(|file| trace.beside(&file)).map_err(|error| match &section.file_given {
                Some(given) if !matches!(error, ImportError::Unusable { .. }) => given.refuse(error.to_string(), None),
                _ => error,
            })?
        }
    };
    let options = ReadOptions {
        delimiter: section.delimiter,
        columns: section.columns.as_deref(),
        from: section.from.as_deref(),
        query: section.query.as_deref(),
        wanted: plan::wanted(section, &read::peek(&opened).unwrap_or_default()),
    };
    let mut tasks = SectionSink::new(run, section);
    match &section.phase {
        None => {
            read::read(&opened, &options, &mut tasks)?;
            tasks.finish()
        }
        Some(phase) => {
            let mut pairing = Pairing::new(tasks, phase);
            read::read(&opened, &options, &mut pairing)?;
            pairing.finish()
        }
    }
}

#[cfg(test)]
mod tests;
