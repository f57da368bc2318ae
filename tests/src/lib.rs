//! What tests share: where traces are, sessions over them, answers as text, the answers of other tools.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::arrow::util::pretty::pretty_format_batches;
use tempfile::TempDir;
use tq_engine::error::ImportError;
use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::queries::Library;
use tq_engine::session::Session;

/// A file or folder of `fixtures/`.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(name)
}

/// A file or folder of the large collection of recordings and answers, which is no part of the repository: `TQ_SHARED`, else
/// `../shared` beside the checkout. `None` when it is not there; the test then says that it skips.
pub fn shared(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("TQ_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let path = root.join(name);
    if path.exists() {
        return Some(path);
    }
    skip(&path);
    None
}

#[expect(clippy::print_stderr, reason = "a test that skips says so")]
fn skip(path: &Path) {
    eprintln!("skipped: {} is not there (TQ_SHARED names the collection)", path.display());
}

/// A temporary folder of these files.
pub fn folder_of<T: AsRef<[u8]>>(files: &[(&str, T)]) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).expect("room");
    }
    folder
}

/// Options for one trace, on two threads.
pub fn options(path: &Path) -> OpenOptions {
    let mut options = OpenOptions::new(2 << 30, 2);
    options.traces.push(TraceSpec { name: None, path: path.to_owned() });
    options
}

/// A session over one trace with `--option k=v`.
///
/// # Errors
/// As [`Session::open`].
pub fn try_open(path: &Path, import: &[(&str, &str)]) -> Result<Session, ImportError> {
    let mut options = options(path);
    options.import = import.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Session::open(&options)
}

/// A session over a trace that can be read.
pub fn open(path: &Path) -> Session {
    try_open(path, &[]).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A session over several traces that can be read.
pub fn open_together(paths: &[&Path]) -> Session {
    let mut options = OpenOptions::new(2 << 30, 2);
    options.traces.extend(paths.iter().map(|path| TraceSpec { name: None, path: path.to_path_buf() }));
    Session::open(&options).unwrap_or_else(|error| panic!("{paths:?}: {error}"))
}

/// Waits for work, on a runtime of its own.
pub fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

/// A runtime of two threads.
///
/// # Errors
/// The system has none to give.
pub fn two_threads() -> std::io::Result<tokio::runtime::Runtime> {
    // Planning recurses, and unoptimised frames are large.
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_stack_size(8 << 20).enable_all().build()
}

/// The answer of a statement.
pub fn ask(session: &Session, sql: &str) -> Vec<RecordBatch> {
    wait(async {
        let frame = session.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    })
}

/// The answer of a built-in query with these parameters.
pub fn ask_saved(session: &Session, name: &str, given: &[(&str, &str)]) -> Vec<RecordBatch> {
    let query = Library::default().find(name).unwrap_or_else(|error| panic!("{error}"));
    let query = query.unwrap_or_else(|| panic!("no query `{name}`"));
    let given: Vec<(String, String)> = given.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let values = query.bind(&given, session.tick()).unwrap_or_else(|error| panic!("{name}: {error}"));
    let params = (!values.is_empty()).then(|| values.into());
    wait(async {
        let frame = session.execute(&query.statement, params).await;
        let frame = frame.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        frame.collect().await.unwrap_or_else(|error| panic!("{name}: {error}"))
    })
}

/// The cells of an answer as text.
pub fn cells(batches: &[RecordBatch], null: &str) -> Vec<Vec<String>> {
    let cell = |column: &dyn Array, row| match column.is_null(row) {
        true => null.to_owned(),
        false => array_value_to_string(column, row).expect("printable"),
    };
    let row = |batch: &RecordBatch, row| batch.columns().iter().map(|column| cell(column, row)).collect();
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |number| row(batch, number))).collect()
}

/// A line per row, cells separated by `|`; NULL is `-`.
pub fn lines(batches: &[RecordBatch]) -> Vec<String> {
    cells(batches, "-").iter().map(|row| row.join("|")).collect()
}

/// The answer of a statement as [`lines`].
pub fn rows(session: &Session, sql: &str) -> Vec<String> {
    lines(&ask(session, sql))
}

/// The answer of a statement with lines around its cells.
pub fn drawn(session: &Session, sql: &str) -> String {
    pretty_format_batches(&ask(session, sql)).expect("printable").to_string()
}

/// The text of a file, which may be there with `.zst` behind its name only.
pub fn text_of(path: &Path) -> Option<String> {
    let packed = if path.exists() { path.to_owned() } else { path.with_added_extension("zst") };
    let bytes = if packed.extension()? == "zst" { unpacked(&packed)? } else { std::fs::read(packed).ok()? };
    Some(String::from_utf8(bytes).expect("UTF-8"))
}

/// The bytes of a file that zstd has packed; `None` when there is no such file.
pub fn unpacked(path: &Path) -> Option<Vec<u8>> {
    let packed = std::fs::File::open(path).ok()?;
    Some(zstd::decode_all(packed).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// The cells of a text of CSV, its header first; quotes may hold commas and line ends.
pub fn csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (vec![], vec![], String::new(), false);
    let mut letters = text.trim_end_matches('\n').chars().chain(['\n']).peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => cell.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            '\r' if !quoted => {}
            other => cell.push(other),
        }
    }
    rows
}

/// A text of CSV as one map per row.
pub fn records(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut rows = csv(text).into_iter();
    let header = rows.next().expect("a header");
    rows.map(|row| header.iter().cloned().zip(row).collect()).collect()
}

/// Random numbers that are the same on every machine: SplitMix64.
pub struct Random(u64);

impl Random {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// A number below `limit`; 0 below 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % limit.max(1) as u64) as usize
    }

    /// A range within `0..length`, of at most 200.
    pub fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length);
        start..start + self.below((length - start).min(200) + 1)
    }

    /// One of the items; there is at least one.
    pub fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
