//! One table in every container: the same rows whatever holds them, and no damage that panics.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::ipc::CompressionType;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion::parquet::arrow::ArrowWriter;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use tempfile::TempDir;

use crate::error::ImportError;
use crate::open::{self, OpenOptions, TraceSpec};
use crate::tables::Table;
use crate::trace::Run;

const IDS: [&str; 4] = ["a", "b", "c", "d"];
const NAMES: [Option<&str>; 4] = [Some("load"), Some("sum, \"all\""), None, Some("store")];
const PLACES: [&str; 4] = ["w0", "w1", "w0", "w0"];
const BEGINS: [f64; 4] = [0.1, 0.25, 0.2, 1.0];
const ENDS: [Option<f64>; 4] = [Some(0.7), Some(0.5), Some(0.3), None];
const SIZES: [Option<i64>; 4] = [Some(8), None, Some(-3), Some(1 << 53)];
const MAPPING: [(&str, &str); 4] =
    [("table.start", "begin:s"), ("table.finish", "end:s"), ("table.location", "place"), ("table.name", "what")];

fn batch() -> RecordBatch {
    let columns: [(&str, ArrayRef); 6] = [
        ("id", Arc::new(StringArray::from(IDS.to_vec()))),
        ("what", Arc::new(StringArray::from(NAMES.to_vec()))),
        ("place", Arc::new(StringArray::from(PLACES.to_vec()))),
        ("begin", Arc::new(Float64Array::from(BEGINS.to_vec()))),
        ("end", Arc::new(Float64Array::from(ENDS.to_vec()))),
        ("size", Arc::new(Int64Array::from(SIZES.to_vec()))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).expect("works")
}

fn separated(delimiter: char) -> String {
    let optional = |value: Option<String>| value.unwrap_or_default();
    let mut text = format!("id{delimiter}what{delimiter}place{delimiter}begin{delimiter}end{delimiter}size\n");
    for row in 0..IDS.len() {
        let name = optional(NAMES[row].map(|name| format!("\"{}\"", name.replace('"', "\"\""))));
        let end = optional(ENDS[row].map(|end| end.to_string()));
        let size = optional(SIZES[row].map(|size| size.to_string()));
        text += &[IDS[row], &name, PLACES[row], &BEGINS[row].to_string(), &end, &size].join(&delimiter.to_string());
        text.push('\n');
    }
    text
}

fn json_records() -> Vec<String> {
    let record = |row: usize| {
        serde_json::json!({
            "id": IDS[row], "what": NAMES[row], "place": PLACES[row], "begin": BEGINS[row], "end": ENDS[row], "size": SIZES[row]
        })
        .to_string()
    };
    (0..IDS.len()).map(record).collect()
}

fn parquet() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch().schema(), None).expect("works");
    writer.write(&batch()).expect("works");
    writer.close().expect("works");
    bytes
}

fn ipc_stream(compression: Option<CompressionType>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let options = IpcWriteOptions::default().try_with_compression(compression).expect("works");
    let mut writer = StreamWriter::try_new_with_options(&mut bytes, &batch().schema(), options).expect("works");
    writer.write(&batch()).expect("works");
    writer.finish().expect("works");
    drop(writer);
    bytes
}

fn ipc_file() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, &batch().schema()).expect("works");
    writer.write(&batch()).expect("works");
    writer.finish().expect("works");
    drop(writer);
    bytes
}

fn sqlite(path: &Path) {
    let database = rusqlite::Connection::open(path).expect("works");
    database
        .execute_batch("CREATE TABLE log (id TEXT, what TEXT, place TEXT, begin REAL, \"end\" REAL, size INTEGER)")
        .expect("works");
    for row in 0..IDS.len() {
        let values = rusqlite::params![IDS[row], NAMES[row], PLACES[row], BEGINS[row], ENDS[row], SIZES[row]];
        database.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", values).expect("works");
    }
}

/// Every container, with its bytes.
fn containers(folder: &Path) -> BTreeMap<&'static str, Vec<u8>> {
    sqlite(&folder.join("made.db"));
    let lines = json_records().join("\n");
    let compressed = zstd::encode_all(lines.as_bytes(), 3).expect("works");
    BTreeMap::from([
        ("log.csv", separated(',').into_bytes()),
        ("log_bom_crlf.csv", format!("\u{feff}{}", separated(',').replace('\n', "\r\n")).into_bytes()),
        ("log.tsv", separated('\t').into_bytes()),
        ("log_semicolon.csv", separated(';').into_bytes()),
        ("log.ndjson", lines.into_bytes()),
        ("log.ndjson.zst", compressed),
        ("log.json", format!("[{}]", json_records().join(",\n")).into_bytes()),
        ("log.parquet", parquet()),
        ("log.arrow", ipc_file()),
        ("log.arrows", ipc_stream(None)),
        ("log_lz4.arrows", ipc_stream(Some(CompressionType::LZ4_FRAME))),
        ("log_zstd.arrows", ipc_stream(Some(CompressionType::ZSTD))),
        ("log.db", std::fs::read(folder.join("made.db")).expect("works")),
    ])
}

/// The run of a file.
fn import(path: &Path, memory: usize) -> Result<Run, ImportError> {
    let mut options = OpenOptions::new(memory, 2);
    options.traces = vec![TraceSpec { name: None, path: path.to_owned() }];
    options.import = MAPPING.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(memory));
    let mut opened = open::open(&options, &pool)?;
    Ok(opened.runs.remove(0).run)
}

const MEMORY: usize = 64 << 20;

#[test]
fn every_container_gives_the_same_tables() {
    let folder = TempDir::new().expect("works");
    let expected = r#"
+----+--------+--------------+------------+----------+------------+-----------+-----------+-------+---------------------------+
| id | parent | stack_parent | name       | location | start      | finish    | duration  | depth | args                      |
+----+--------+--------------+------------+----------+------------+-----------+-----------+-------+---------------------------+
| a  |        |              | load       | w0       | 100000000  | 700000000 | 600000000 | 0     | {"size":8}                |
| b  |        |              | sum, "all" | w1       | 250000000  | 500000000 | 250000000 | 0     |                           |
| c  | 0      | 0            |            | w0       | 200000000  | 300000000 | 100000000 | 1     | {"size":-3}               |
| d  |        |              | store      | w0       | 1000000000 |           |           | 0     | {"size":9007199254740992} |
+----+--------+--------------+------------+----------+------------+-----------+-----------+-------+---------------------------+
+----------+----------+
| location | kind     |
+----------+----------+
| w0       | location |
| w1       | location |
+----------+----------+
"#;
    for (name, bytes) in containers(folder.path()) {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("works");
        let run = import(&path, MEMORY).unwrap_or_else(|error| panic!("{name}: {error}"));
        let table = |table: Table, columns: &[&str]| {
            let project = |batch: &RecordBatch| {
                let indices = columns.iter().map(|column| batch.schema().index_of(column).expect("a column of ours"));
                batch.project(&indices.collect::<Vec<_>>()).expect("columns that there are")
            };
            let batches: Vec<RecordBatch> = run.tables[&table].iter().map(project).collect();
            pretty_format_batches(&batches).expect("works").to_string()
        };
        let tasks =
            ["id", "parent", "stack_parent", "name", "location", "start", "finish", "duration", "depth", "args"];
        let found = format!("\n{}\n{}\n", table(Table::Tasks, &tasks), table(Table::Locations, &["location", "kind"]));
        assert!(found == expected, "{name}:{found}instead of{expected}");
        let stats: Vec<(&str, u64)> = run.stats.iter().map(|stat| (stat.finding.what, stat.count)).collect();
        assert_eq!(stats, [("records_read", 4)], "{name}");
    }
}

#[test]
fn memory_comes_from_the_pool() {
    let folder = TempDir::new().expect("works");
    let path = folder.path().join("log.csv");
    std::fs::write(&path, separated(',') + &"x,y,z,1,2,3\n".repeat(20_000)).expect("works");
    assert!(matches!(import(&path, 200_000), Err(ImportError::Memory { .. })));
    let run = import(&path, MEMORY).expect("works");
    assert!(run.memory.size() > 20_000 * 5 * size_of::<i64>());
}

/// Opening never panics, and what opens has balanced books.
fn survives(path: &Path, bytes: &[u8], what: &str) -> bool {
    std::fs::write(path, bytes).expect("works");
    match import(path, MEMORY) {
        Ok(run) => {
            assert!(!run.stats.iter().any(|stat| stat.finding.what == "unaccounted"), "{what}");
            true
        }
        Err(ImportError::Internal { source, .. }) => panic!("{what}: {source}"),
        Err(_) => false,
    }
}

#[test]
fn a_prefix_is_a_table_or_an_error() {
    let folder = TempDir::new().expect("works");
    for (name, bytes) in containers(folder.path()) {
        let path = folder.path().join(name);
        // The inside of a large page or body is all alike: cuts there are a sample.
        let edge = 400;
        let sampled = (edge..bytes.len().saturating_sub(edge)).step_by(if name == "log.db" { 61 } else { 5 });
        let cuts =
            (0..edge.min(bytes.len())).chain(sampled).chain(bytes.len().saturating_sub(edge).max(edge)..bytes.len());
        let mut opened = 0;
        for length in cuts {
            opened += usize::from(survives(&path, &bytes[..length], &format!("{name}, first {length} bytes")));
        }
        // Text can be cut and still be a table, and a stream between its messages.
        let text =
            matches!(path.extension().and_then(|ending| ending.to_str()), Some("csv" | "tsv" | "ndjson" | "arrows"));
        assert!(text || opened == 0, "{name}: {opened} prefixes opened");
        assert!(survives(&path, &bytes, name), "{name} opens");
    }
}

#[test]
fn flipped_bytes_are_a_table_or_an_error() {
    let folder = TempDir::new().expect("works");
    for (name, bytes) in containers(folder.path()) {
        let path = folder.path().join(name);
        let config = Config { cases: 300, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..Config::default() };
        let flips = proptest::collection::vec((0..bytes.len(), any::<u8>()), 1..4);
        let survived = TestRunner::new(config).run(&flips, |flips| {
            let mut damaged = bytes.clone();
            for (at, byte) in &flips {
                damaged[*at] = *byte;
            }
            survives(&path, &damaged, &format!("{name}, flips {flips:?}"));
            Ok(())
        });
        survived.expect("works");
    }
}
