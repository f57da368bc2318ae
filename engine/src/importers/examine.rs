//! Checks that must hold for every reader on any bytes: used by fuzzing and by the tests of damaged files.

use std::fs;
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use serde::de::IgnoredAny;

use super::{ImportOptions, import, importers, recognise};
use crate::error::ImportError;
use crate::open::{OpenOptions, TraceSpec, open};
use crate::queries::{Origin, SavedQuery};
use crate::session::Session;
use crate::sql;
use crate::tables::Table;
use crate::trace::temporary::TemporaryFolder;
use crate::trace::{Run, Source, faults};

/// Enough for a text of a megabyte, far too little for a count that somebody believes.
const MEMORY_BYTES: usize = 32 << 20;

/// What begins a file among the bytes of a directory: a line of this and its name.
const FILE: &[u8] = b"=== ";

/// Reads `bytes` as a user's file would be with `--from-format`, and says what is wrong with the answer: nothing, unless the reader
/// has a defect. Damaged bytes may end in an error that names a place; whatever is read must be sound ([`faults`]), and
/// valid JSON must read the same in blocks of any size. A defect may also be a panic.
///
/// A target is a format, or what needs bytes of another kind: the files of `actorprof`, each below a line `=== NAME`; `ptt`, HDF5;
/// a `pickle` of it; the text of a saved `query`, which is planned and not run. A few bytes of `actorprof` and `ptt` may describe
/// much more, so that these may run out of memory: PE 65535 makes a location for each PE below it, and HDF5 has tables that were
/// never filled.
pub fn examine(target: &str, bytes: &[u8]) -> Vec<String> {
    match target {
        "actorprof" => judge_large(&read_directory(bytes)),
        #[cfg(feature = "hdf5")]
        "pickle" => super::parsec::misread_pickle(bytes),
        "ptt" => judge_large(&Source::of_bytes(bytes).and_then(|source| read("parsec", &source))),
        "query" => misplanned(bytes),
        format => examine_file(format, bytes),
    }
}

fn examine_file(format: &str, bytes: &[u8]) -> Vec<String> {
    let Ok(source) = Source::of_bytes(bytes) else { return Vec::new() };
    // One block, without a buffer for megabytes.
    let in_one = read(format, &source.clone().in_blocks_of(bytes.len() + 1));
    let mut found = judge(&in_one);
    if found.is_empty() && source.known_bytes().is_some() {
        let block_bytes = 5 + bytes.len() % 251;
        let in_many = read(format, &source.in_blocks_of(block_bytes));
        found = judge(&in_many);
        if found.is_empty() && serde_json::from_slice::<IgnoredAny>(bytes).is_ok() {
            found = differences(&in_one, &in_many);
        }
        found.iter_mut().for_each(|fault| fault.push_str(&format!(" (in blocks of {block_bytes} bytes)")));
    }
    found
}

/// The runs of a directory. A name that could lead out of it, or that file systems refuse, is no file.
fn read_directory(bytes: &[u8]) -> Result<Vec<Run>, ImportError> {
    let failed = |source| ImportError::Io { path: "directory".into(), source };
    let folder = TemporaryFolder::new().map_err(failed)?;
    let path = folder.file("run");
    fs::create_dir(&path).map_err(failed)?;
    let mut begins: Vec<usize> = memchr::memmem::find_iter(bytes, FILE).collect();
    begins.retain(|at| *at == 0 || bytes[at - 1] == b'\n');
    for (number, begin) in begins.iter().enumerate() {
        let text = &bytes[begin + FILE.len()..begins.get(number + 1).copied().unwrap_or(bytes.len())];
        let (name, content) = text.split_at(text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len()));
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let name = String::from_utf8_lossy(name);
        if name.len() <= 64 && name.bytes().any(|byte| byte != b'.') && name.bytes().all(|byte| is_plain(&byte)) {
            fs::write(path.join(&*name), content.get(1..).unwrap_or_default()).map_err(failed)?;
        }
    }
    let mut options = OpenOptions::new(MEMORY_BYTES, 1);
    options.traces.push(TraceSpec { name: None, path });
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(MEMORY_BYTES));
    Ok(open(Vec::new(), &options, &pool)?.runs.into_iter().map(|named| named.run).collect())
}

/// What is wrong with the plan of a saved query, or with the error in place of one.
fn misplanned(text: &[u8]) -> Vec<String> {
    static SESSION: OnceLock<Session> = OnceLock::new();
    let text = String::from_utf8_lossy(text);
    let Ok(query) = SavedQuery::parse("q", Origin::BuiltIn, &text) else { return Vec::new() };
    let session = match SESSION.get() {
        Some(session) => session,
        None => match Session::open(&OpenOptions::new(MEMORY_BYTES, 1)) {
            Ok(session) => SESSION.get_or_init(|| session),
            Err(error) => return vec![format!("a session without traces: {error}")],
        },
    };
    let Ok(params) = query.bind(&[], session.tick()) else { return Vec::new() };
    let params = (!params.is_empty()).then(|| params.into());
    // Planning over tables in memory waits for nothing.
    let planned = futures::executor::block_on(sql::plan(session.context(), &query.statement, params));
    match planned {
        Err(error) if error.message.is_empty() => vec!["an error without words".to_owned()],
        _ => Vec::new(),
    }
}

/// As told, after everybody was asked whether it is theirs.
fn read(format: &str, source: &Source) -> Result<Vec<Run>, ImportError> {
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(MEMORY_BYTES));
    let options = ImportOptions::new();
    let _ = recognise(importers(), source, &options, true);
    import(source, Some(format), &options, 1, pool)
}

fn judge(answer: &Result<Vec<Run>, ImportError>) -> Vec<String> {
    match answer {
        Ok(runs) => runs.iter().flat_map(faults).collect(),
        Err(ImportError::Damaged { place, .. }) if place.is_empty() => vec!["an error without a place".to_owned()],
        Err(ImportError::Memory { .. } | ImportError::Internal { .. } | ImportError::Session { .. }) => {
            answer.as_ref().err().map(|error| format!("{error:?}")).into_iter().collect()
        }
        Err(_) => Vec::new(),
    }
}

fn judge_large(answer: &Result<Vec<Run>, ImportError>) -> Vec<String> {
    if matches!(answer, Err(ImportError::Memory { .. })) { Vec::new() } else { judge(answer) }
}

fn differences(one: &Result<Vec<Run>, ImportError>, other: &Result<Vec<Run>, ImportError>) -> Vec<String> {
    match (one, other) {
        (Ok(one), Ok(other)) => one.iter().zip(other).flat_map(|(one, other)| differing_tables(one, other)).collect(),
        (Err(_), Err(_)) => Vec::new(),
        (Ok(_), Err(error)) | (Err(error), Ok(_)) => vec![format!("only one way of reading fails: {error}")],
    }
}

fn differing_tables(one: &Run, other: &Run) -> Vec<String> {
    let whole = |run: &Run, table: Table| -> Option<RecordBatch> {
        let batches = run.tables.get(&table)?;
        concat_batches(&batches.first()?.schema(), batches).ok()
    };
    let differ = |table: &Table| whole(one, *table) != whole(other, *table);
    Table::ALL.into_iter().filter(differ).map(|table| format!("{table} reads differently")).collect()
}
