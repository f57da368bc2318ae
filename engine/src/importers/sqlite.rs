//! Read-only access to SQLite databases, for every format that comes in one.
//!
//! A database is opened read-only and *immutable*: no lock is taken, no journal is written or replayed, and the file may be
//! on a read-only disk or in use by a program that writes it. Changes in a `-wal` file beside it would not be seen that
//! way: database and `-wal` file are then copied to a temporary folder, where SQLite applies the log.
//!
//! Known to be wrong in files found in the wild: a truncated file (SQLite reads zeros beyond its end, and so rows of zeros) is
//! detected by its length. It is refused, or read from a copy in which missing pages are all zeros: no valid page of a table
//! begins with zeros, so reading a table stops with an error at the first missing page.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::ImportError;
use crate::paths::{is_beside, with_ending};
use crate::trace::temporary::{TemporaryFolder, no_copy};
use crate::trace::{Budget, LocalFile, Source, Stats, findings};

/// The first bytes of a database.
pub(super) const MAGIC: &[u8] = b"SQLite format 3\0";

/// How many bytes the header of a database says that it has (SQLite, "Database File Format" 1.3); older writers leave 0.
pub(super) fn length(head: &[u8]) -> Option<u64> {
    let page = match u16::from_be_bytes(head.get(16..18)?.try_into().ok()?) {
        1 => 65_536,
        bytes => u64::from(bytes),
    };
    let pages = u32::from_be_bytes(head.get(28..32)?.try_into().ok()?);
    Some(page * u64::from(pages))
}

/// So many steps of SQLite's machine are done in a millisecond.
const STEPS: i32 = 10_000;

/// Room for the pages and sorters of SQLite, beside the values of a row.
const SQLITE_BYTES: usize = 128 << 20;

/// A database on disk, of which any number of connections may read.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    format: &'static str,
    budget: Budget,
    file: File,
}

#[derive(Debug)]
enum File {
    /// The trace itself, or its decompressed copy; it is never written.
    Immutable(LocalFile),
    /// A copy of ours, with its `-wal` file or with its missing pages.
    Copy { path: PathBuf, _folder: TemporaryFolder },
}

impl Database {
    /// The database of a source. `format` is named in errors; a `-wal` file is noted in `stats`.
    ///
    /// # Errors
    /// [`ImportError::Damaged`] when pages are missing at the end, [`ImportError::Io`] when it cannot be read.
    pub(super) fn of(source: &Source, format: &'static str, stats: &mut Stats) -> Result<Database, ImportError> {
        let database = Database::as_it_is(source, format)?;
        match database.cut_off(source)? {
            Some(cut) => Err(cut.refused(&database)),
            None => Ok(database.with_changes(source, stats)),
        }
    }

    fn as_it_is(source: &Source, format: &'static str) -> Result<Database, ImportError> {
        let budget = source.budget().clone();
        Ok(Database { path: source.path().to_owned(), format, budget, file: File::Immutable(source.local_file()?) })
    }

    /// With the changes of a `-wal` file beside it, which is noted.
    fn with_changes(self, source: &Source, stats: &mut Stats) -> Database {
        let wal = with_ending(source.path(), "-wal");
        let is_original = matches!(&self.file, File::Immutable(LocalFile::Original(_)));
        if !is_original || !std::fs::metadata(&wal).is_ok_and(|wal| wal.len() > 0) {
            return self;
        }
        let wal_name = wal.display().to_string();
        if !is_beside(source.path(), &wal) {
            let note = || format!("`{wal_name}` leads out of the folder of the trace");
            stats.note(findings::WAL_IGNORED, 1, note);
            return self;
        }
        match copied(source.path(), &wal) {
            Ok(file) => {
                let note = || format!("changes in `{wal_name}` were read, in a temporary copy of both files");
                stats.note(findings::WAL_READ, 1, note);
                Database { file, ..self }
            }
            Err(error) => {
                let note = || format!("`{wal_name}` holds changes, but a temporary copy could not be made: {error}");
                stats.note(findings::WAL_IGNORED, 1, note);
                self
            }
        }
    }

    /// Like [`Database::of`], but a truncated database is only noted in `stats`; its tables end where pages are missing.
    ///
    /// # Errors
    /// [`ImportError::Damaged`] when not even the first page is there, [`ImportError::Io`] when it cannot be read or copied.
    pub(super) fn of_what_is_left(
        source: &Source,
        format: &'static str,
        stats: &mut Stats,
    ) -> Result<Database, ImportError> {
        let database = Database::as_it_is(source, format)?;
        let Some(cut) = database.cut_off(source)? else { return Ok(database.with_changes(source, stats)) };
        if cut.length < cut.page_size {
            return Err(cut.refused(&database));
        }
        stats.note(findings::TRUNCATED, 1, || cut.to_string());
        let File::Immutable(local) = &database.file else { return Ok(database) };
        let whole = cut.length - cut.length % cut.page_size;
        let file = padded(local.path(), whole, cut.expected).map_err(|error| no_copy(source.path(), &error))?;
        Ok(Database { file, ..database })
    }

    /// A connection; each thread needs its own.
    ///
    /// # Errors
    /// [`ImportError::Damaged`] when SQLite does not take the file.
    pub(super) fn connect(&self) -> Result<Connection, ImportError> {
        let common = OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = match &self.file {
            File::Immutable(local) => {
                Connection::open_with_flags(uri(local.path(), "immutable=1"), common | OpenFlags::SQLITE_OPEN_READ_ONLY)
            }
            File::Copy { path, .. } => {
                Connection::open_with_flags(uri(path, "mode=rw"), common | OpenFlags::SQLITE_OPEN_READ_WRITE)
            }
        };
        let mut connection = opened.map_err(|error| self.damaged("SQLite".to_owned(), &error))?;
        // Views and triggers of a stranger's file call no function with an effect, and nothing writes its own pages.
        for (setting, on) in
            [(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false), (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)]
        {
            let _is = connection.set_db_config(setting, on);
        }
        self.limit(&connection);
        // A view, or the query of a mapping, may never end. While SQLite plans, it asks as well.
        let deadline = self.budget.deadline();
        if deadline.is_set() {
            let asked = connection.progress_handler(STEPS, Some(move || deadline.is_over()));
            asked.map_err(|error| self.damaged("SQLite".to_owned(), &error))?;
        }
        Ok(connection)
    }

    /// What SQLite itself may take, for all connections of the process: a view can make texts of gigabytes, and a damaged file
    /// say that it holds them. Beyond it SQLite says that it is out of memory.
    fn limit(&self, connection: &Connection) {
        let bytes = self.budget.max_value().saturating_mul(2).max(SQLITE_BYTES);
        // Where SQLite is built without its books on memory, the pragma has no effect.
        let _ = connection.pragma_update(None, "hard_heap_limit", i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// The names of tables and views, sorted.
    ///
    /// # Errors
    /// [`ImportError::Damaged`] when the schema cannot be read.
    pub(super) fn tables(&self, connection: &Connection) -> Result<Vec<String>, ImportError> {
        self.named(connection, "type IN ('table', 'view')")
    }

    /// The names of tables, sorted, without views: a view that a user added to a trace may take any time to read.
    ///
    /// # Errors
    /// As [`Database::tables`].
    pub(super) fn tables_without_views(&self, connection: &Connection) -> Result<Vec<String>, ImportError> {
        self.named(connection, "type = 'table'")
    }

    fn named(&self, connection: &Connection, types: &str) -> Result<Vec<String>, ImportError> {
        let select = format!(
            "SELECT name FROM sqlite_master WHERE {types} AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        );
        self.texts(connection, &select, [])
    }

    /// The columns of a table; none when there is no such table.
    ///
    /// # Errors
    /// [`ImportError::Damaged`] when the schema cannot be read.
    pub(super) fn columns(&self, connection: &Connection, table: &str) -> Result<Vec<String>, ImportError> {
        self.texts(connection, "SELECT name FROM pragma_table_info(?)", [table])
    }

    /// An error of SQLite, with its place. Where SQLite came to the limit of what it may take, the file is not to blame.
    pub(super) fn damaged(&self, place: String, error: &rusqlite::Error) -> ImportError {
        if is_out_of_memory(error) {
            let what =
                format!("SQLite needs more memory than it may take; a value of the database is too long ({place})");
            return ImportError::TooLong { path: self.path.clone(), what };
        }
        ImportError::Damaged { path: self.path.clone(), format: self.format, place, what: error.to_string() }
    }

    /// An error about a database that lacks something.
    pub(super) fn unusable(&self, what: String) -> ImportError {
        ImportError::Unusable { path: self.path.clone(), what, hint: None }
    }

    /// The trace's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn texts(
        &self,
        connection: &Connection,
        select: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<String>, ImportError> {
        let texts = || -> rusqlite::Result<Vec<String>> {
            connection.prepare(select)?.query_map(parameters, |row| row.get(0))?.collect()
        };
        texts().map_err(|error| self.damaged("schema".to_owned(), &error))
    }

    /// How much is there, when pages are missing at the end.
    ///
    /// Header: page size at 16 (1 stands for 65 536), number of pages at 28, valid when the counters at 24 and 92 agree.
    fn cut_off(&self, source: &Source) -> Result<Option<CutOff>, ImportError> {
        let File::Immutable(local) = &self.file else { return Ok(None) };
        let head = source.head();
        let number = |at: usize| head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
        let (Some(pages), Some(changed), Some(valid_for)) = (number(28), number(24), number(92)) else {
            let (path, place, what) = (self.path.clone(), "header".to_owned(), "cut off within the header".to_owned());
            return Err(ImportError::Damaged { path, format: self.format, place, what });
        };
        let page_size = match u64::from(head[16]) << 8 | u64::from(head[17]) {
            1 => 65_536,
            size => size,
        };
        let length = std::fs::metadata(local.path()).map_err(|error| source.io_error(error))?.len();
        let expected = u64::from(pages) * page_size;
        let is_cut = changed == valid_for && length < expected;
        Ok(is_cut.then_some(CutOff { pages, page_size, expected, length }))
    }
}

/// Whether SQLite came to the limit of what it may take.
pub(super) fn is_out_of_memory(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::OutOfMemory)
}

/// A database whose last pages are missing.
struct CutOff {
    pages: u32,
    page_size: u64,
    expected: u64,
    length: u64,
}

impl CutOff {
    fn refused(&self, database: &Database) -> ImportError {
        let (path, place) = (database.path.clone(), format!("byte {}", self.length));
        // Without its first page a database has no tables, which alone could say whose it is.
        let format = if self.length < self.page_size { "SQLite" } else { database.format };
        ImportError::Damaged { path, format, place, what: self.to_string() }
    }
}

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CutOff { pages, expected, length, .. } = self;
        write!(f, "cut off: {pages} pages need {expected} bytes, the file has {length}")
    }
}

/// A copy of the first bytes of a file, with zeros behind them.
fn padded(path: &Path, first: u64, length: u64) -> std::io::Result<File> {
    let folder = TemporaryFolder::new()?;
    let copy = folder.file("database");
    let mut file = std::fs::File::create(&copy)?;
    std::io::copy(&mut std::fs::File::open(path)?.take(first), &mut file)?;
    file.set_len(length)?;
    Ok(File::Copy { path: copy, _folder: folder })
}

/// A name as SQL wants it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A copy of a database with its `-wal` file. The latter first: what is moved into the database meanwhile is then there
/// twice, not missing.
fn copied(path: &Path, wal: &Path) -> std::io::Result<File> {
    let folder = TemporaryFolder::new()?;
    let copy = folder.file("database");
    std::fs::copy(wal, with_ending(&copy, "-wal"))?;
    std::fs::copy(path, &copy)?;
    // The trace may have been read-only; its copy is ours.
    for file in [&copy, &with_ending(&copy, "-wal")] {
        let mut permissions = std::fs::metadata(file)?.permissions();
        #[expect(clippy::permissions_set_readonly_false, reason = "in a temporary folder that only its owner sees")]
        permissions.set_readonly(false);
        std::fs::set_permissions(file, permissions)?;
    }
    Ok(File::Copy { path: copy, _folder: folder })
}

/// The names of a database's tables and views, sorted, as far as they can be read: for errors about files of other tools.
pub(super) fn table_names(source: &Source) -> Vec<String> {
    let names = || -> Result<Vec<String>, ImportError> {
        let database = Database::of_what_is_left(source, "SQLite", &mut Stats::default())?;
        database.tables(&database.connect()?)
    };
    names().unwrap_or_default()
}

/// `file:…?parameter`, with the characters escaped that mean something in a URI.
fn uri(path: &Path, parameter: &str) -> String {
    let mut uri = "file:".to_owned();
    for char in path.to_string_lossy().chars() {
        match char {
            '?' => uri.push_str("%3f"),
            '#' => uri.push_str("%23"),
            '%' => uri.push_str("%25"),
            other => uri.push(other),
        }
    }
    uri.push('?');
    uri.push_str(parameter);
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_as_uris() {
        assert_eq!(uri(Path::new("/a b/50%?#.db"), "immutable=1"), "file:/a b/50%25%3f%23.db?immutable=1");
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("daisen$segments"), "\"daisen$segments\"");
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
