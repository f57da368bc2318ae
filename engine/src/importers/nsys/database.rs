//! Read: the rows of a table, with columns found by name, whatever the version of the export.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use hashbrown::{HashMap, HashSet};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use crate::error::ImportError;
use crate::importers::sqlite::{Database, is_out_of_memory, quoted};
use crate::trace::{ROWS_PER_BATCH, Stats, Words, findings};

/// Without one of these, wherever they are asked for, the figures of a table are others.
const NEEDED: [&str; 4] = ["start", "end", "correlationId", "streamId"];

/// Reads tables of one database.
pub(super) struct Reader<'a> {
    pub(super) stats: &'a mut Stats,
    database: &'a Database,
    /// Shared, because iterating over rows holds it while the reader itself is passed to the callback.
    connection: Rc<Connection>,
    tables: Vec<String>,
    done: HashSet<String>,
    /// `StringIds`: key of the word by id.
    ids: HashMap<i64, i32>,
    words: Words,
    memory: MemoryReservation,
    /// What was made of the rows since it was last asked for and has no reservation of its own: locations, words.
    more_bytes: Rc<Cell<usize>>,
}

/// The cells of a row, in the order of the columns that were asked for.
pub(super) struct Cells<'r, 'c> {
    row: &'r Row<'c>,
}

impl Cells<'_, '_> {
    pub(super) fn cell(&self, index: usize) -> ValueRef<'_> {
        self.row.get_ref(index).unwrap_or(ValueRef::Null)
    }

    pub(super) fn integer(&self, index: usize) -> Option<i64> {
        super::integer(self.cell(index))
    }

    /// Text that holds something: versions without NULL wrote `''`.
    pub(super) fn text(&self, index: usize) -> Option<String> {
        match self.cell(index) {
            ValueRef::Text(text) if !text.is_empty() => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        }
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        database: &'a Database,
        pool: &Arc<dyn MemoryPool>,
        stats: &'a mut Stats,
    ) -> Result<Reader<'a>, ImportError> {
        let connection = Rc::new(database.connect()?);
        let tables = database.tables_without_views(&connection)?;
        let memory = MemoryConsumer::new(format!("reading {}", database.path().display())).register(pool);
        let (done, ids, words, more_bytes) = Default::default();
        let mut reader = Reader { stats, database, connection, tables, done, ids, words, memory, more_bytes };
        reader.strings()?;
        Ok(reader)
    }

    /// Where those who make something of rows add its bytes, which the pool is asked for.
    pub(super) fn more_bytes(&self) -> Rc<Cell<usize>> {
        Rc::clone(&self.more_bytes)
    }

    /// Whether a table has this name, or begins with it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.tables.iter().any(|table| behind(table, name).is_some())
    }

    /// The text of an id in `StringIds`.
    pub(super) fn string(&mut self, id: i64) -> String {
        match self.ids.get(&id) {
            Some(key) => self.words.word(*key).to_owned(),
            None => {
                self.stats.note(findings::UNKNOWN_STRING, 1, || {
                    format!("id {id} is not in `StringIds`; named `[string {id}]`")
                });
                format!("[string {id}]")
            }
        }
    }

    /// Whether `StringIds` has an id.
    pub(super) fn has_string(&self, id: i64) -> bool {
        self.ids.contains_key(&id)
    }

    /// The word of a cell: the text of an id, else the text that stands there itself.
    pub(super) fn word(&mut self, row: &Cells<'_, '_>, index: usize) -> Option<String> {
        row.integer(index).map(|id| self.string(id)).or_else(|| row.text(index))
    }

    fn strings(&mut self) -> Result<(), ImportError> {
        let (mut ids, mut words) = (HashMap::new(), Words::default());
        let (more, mut charged) = (self.more_bytes(), 0);
        self.describe("StringIds", &["id", "value"], |row| {
            if let (Some(id), ValueRef::Text(text)) = (row.integer(0), row.cell(1)) {
                ids.insert(id, words.intern(&String::from_utf8_lossy(text)));
                let held = ids.allocation_size() + words.memory();
                more.set(more.get() + held - charged);
                charged = held;
            }
        })?;
        (self.ids, self.words) = (ids, words);
        Ok(())
    }

    /// The rows of a table and its later layouts (`NAME_V2`), each booked as a record.
    ///
    /// A table that breaks off in the middle keeps the rows before; the loss is counted.
    pub(super) fn rows(
        &mut self,
        name: &str,
        columns: &[&str],
        mut row: impl FnMut(&mut Reader<'a>, &Cells<'_, '_>) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        for table in self.layouts(name) {
            let (select, missing) = self.select(&table, columns)?;
            for column in missing.into_iter().filter(|column| NEEDED.contains(column)) {
                self.stats.note(findings::COLUMN_MISSING, 1, || format!("table `{table}` has no column `{column}`"));
            }
            let connection = Rc::clone(&self.connection);
            let read = each(&connection, &select, |number, cells| {
                if number.is_multiple_of(ROWS_PER_BATCH as u64) {
                    self.reserve(self.more_bytes.take())?;
                }
                self.stats.records(1);
                row(self, cells)
            });
            if let Some((number, error)) = read? {
                self.breaks_off(&table, number, &error)?;
            }
        }
        Ok(())
    }

    /// The rows of a table that only says something about others.
    pub(super) fn describe(
        &mut self,
        name: &str,
        columns: &[&str],
        mut row: impl FnMut(&Cells<'_, '_>),
    ) -> Result<(), ImportError> {
        for table in self.layouts(name) {
            let (select, _) = self.select(&table, columns)?;
            let read = each(&self.connection, &select, |_, cells| {
                row(cells);
                match self.more_bytes.take() {
                    0 => Ok(()),
                    bytes => self.reserve(bytes),
                }
            });
            if let Some((number, error)) = read? {
                self.breaks_off(&table, number, &error)?;
            }
        }
        Ok(())
    }

    /// The rows of a table that [`Reader::rows`] reads, too, and says what is wrong with it.
    pub(super) fn look(
        &self,
        name: &str,
        columns: &[&str],
        mut row: impl FnMut(&Cells<'_, '_>) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        for table in self.tables.iter().filter(|table| is_layout(table, name)) {
            let (select, _) = self.select(table, columns)?;
            each(&self.connection, &select, |_, cells| row(cells))?;
        }
        Ok(())
    }

    /// Counts a table that is damaged. One that only needs more memory is none, and half of it would be a wrong answer.
    fn breaks_off(&mut self, table: &str, number: u64, error: &rusqlite::Error) -> Result<(), ImportError> {
        if is_out_of_memory(error) {
            return Err(self.database.damaged(format!("row {number} of table `{table}`"), error));
        }
        let example = || format!("table `{table}` breaks off at row {number}: {error}");
        self.stats.note(findings::TABLE_DAMAGED, 1, example);
        Ok(())
    }

    /// Counts the tables that were not read.
    pub(super) fn count_others(&mut self) {
        let others = self.tables.iter().filter(|table| !self.done.contains(*table) && !table.starts_with("ENUM_"));
        for table in others.cloned().collect::<Vec<_>>() {
            let count = format!("SELECT count(*) FROM {}", quoted(&table));
            let rows = self.connection.query_row(&count, [], |row| row.get::<_, i64>(0)).ok();
            if rows != Some(0) {
                let rows = rows.map_or_else(|| "damaged".to_owned(), |rows| format!("{rows} rows"));
                self.stats.note(findings::TABLE_NOT_READ, 1, || format!("table `{table}`: {rows}"));
            }
        }
    }

    /// The tables of that name: `NAME`, `NAME_V2` …
    fn layouts(&mut self, name: &str) -> Vec<String> {
        let found: Vec<String> = self.tables.iter().filter(|table| is_layout(table, name)).cloned().collect();
        for table in &found {
            self.done.insert(table.clone());
            if !table.eq_ignore_ascii_case(name) {
                self.stats.note(findings::TABLE_VARIANT, 1, || format!("table `{table}` is read like `{name}`"));
            }
        }
        found
    }

    /// The query for some columns; those that are not there, which are its second part, are NULL.
    fn select<'n>(&self, table: &str, columns: &[&'n str]) -> Result<(String, Vec<&'n str>), ImportError> {
        let known = self.database.columns(&self.connection, table)?;
        let column = |name: &&str| known.iter().find(|known| known.eq_ignore_ascii_case(name)).map(|name| quoted(name));
        let list: Vec<String> = columns.iter().map(|name| column(name).unwrap_or_else(|| "NULL".to_owned())).collect();
        let missing = columns.iter().copied().filter(|name| column(name).is_none()).collect();
        Ok((format!("SELECT {} FROM {}", list.join(", "), quoted(table)), missing))
    }

    fn reserve(&self, bytes: usize) -> Result<(), ImportError> {
        reserve(&self.memory, bytes, self.database.path())
    }

    /// Ends reading: the memory that was asked for, which pays for locations and words.
    pub(super) fn finish(self) -> MemoryReservation {
        self.memory
    }
}

/// Whether a table has this name or is a later layout of it.
fn is_layout(table: &str, name: &str) -> bool {
    behind(table, name)
        .is_some_and(|rest| rest.is_empty() || behind(rest, "_V").is_some_and(|version| version.parse::<u32>().is_ok()))
}

/// Asks for memory.
fn reserve(memory: &MemoryReservation, bytes: usize, path: &Path) -> Result<(), ImportError> {
    memory.try_grow(bytes).map_err(|error| ImportError::Memory { path: path.to_owned(), what: error.strip_backtrace() })
}

/// What follows a beginning, in letters of any case, as SQLite compares names.
fn behind<'t>(table: &'t str, beginning: &str) -> Option<&'t str> {
    let (head, rest) = table.split_at_checked(beginning.len())?;
    head.eq_ignore_ascii_case(beginning).then_some(rest)
}

/// Runs a query; returns where it broke off.
fn each(
    connection: &Connection,
    select: &str,
    mut row: impl FnMut(u64, &Cells<'_, '_>) -> Result<(), ImportError>,
) -> Result<Option<(u64, rusqlite::Error)>, ImportError> {
    let mut number = 0;
    let mut statement = match connection.prepare(select) {
        Ok(statement) => statement,
        Err(error) => return Ok(Some((number, error))),
    };
    let mut rows = match statement.query([]) {
        Ok(rows) => rows,
        Err(error) => return Ok(Some((number, error))),
    };
    loop {
        match rows.next() {
            Ok(Some(found)) => row(number, &Cells { row: found })?,
            Ok(None) => return Ok(None),
            Err(error) => return Ok(Some((number, error))),
        }
        number += 1;
    }
}
