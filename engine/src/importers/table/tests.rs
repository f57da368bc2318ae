//! One table in every container: each gives the same rows, and damage never causes a panic.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::Float64Type;
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

/// The run of a file of [`containers`].
fn import(path: &Path, memory: usize) -> Result<Run, ImportError> {
    import_with(path, memory, &MAPPING)
}

/// The run of a file.
fn import_with(path: &Path, memory: usize, mapping: &[(&str, &str)]) -> Result<Run, ImportError> {
    let mut options = OpenOptions::new(memory, 2);
    options.traces = vec![TraceSpec { name: None, path: path.to_owned() }];
    options.import = mapping.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(memory));
    let mut opened = open::open(Vec::new(), &options, &pool)?;
    Ok(opened.runs.remove(0).run)
}

const MEMORY: usize = 64 << 20;

/// Some columns of a table.
fn shown(run: &Run, table: Table, columns: &[&str]) -> String {
    let project = |batch: &RecordBatch| {
        let indices = columns.iter().map(|column| batch.schema().index_of(column).expect("a column of ours"));
        batch.project(&indices.collect::<Vec<_>>()).expect("columns that there are")
    };
    let batches: Vec<RecordBatch> = run.tables[&table].iter().map(project).collect();
    pretty_format_batches(&batches).expect("works").to_string()
}

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
        let tasks =
            ["id", "parent", "stack_parent", "name", "location", "start", "finish", "duration", "depth", "args"];
        let locations = shown(&run, Table::Locations, &["location", "kind"]);
        let found = format!("\n{}\n{locations}\n", shown(&run, Table::Tasks, &tasks));
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
        Err(ImportError::Internal { what: why, .. }) => panic!("{what}: {why}"),
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

/// What a file of these bytes is read as: some columns of a table, and what was found.
fn read_as(name: &str, bytes: &[u8], mapping: &[(&str, &str)], table: Table, columns: &[&str]) -> String {
    let folder = TempDir::new().expect("works");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("works");
    // The unit is said, so that what is found is what the test is about.
    let mapping = [mapping, &[("table.time_unit", "ns")]].concat();
    let run = import_with(&path, MEMORY, &mapping).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut text = format!("\n{}\n", shown(&run, table, columns));
    for stat in run.stats.iter().filter(|stat| stat.finding.what != "records_read") {
        let example = stat.example.replace(&format!("{}/", folder.path().display()), "");
        text += &format!("{} {} x{}: {example}\n", stat.finding.what, stat.finding.severity, stat.count);
    }
    text
}

#[test]
fn values_that_no_float_holds_are_counted() {
    let text = "t,n,v\n1,c,1.5\n2,c,1e999\n3,c,9007199254740993\n4,c,NaN\n5,c,9007199254740992\n";
    let mapping = [("table", "counters"), ("table.time", "t"), ("table.name", "n"), ("table.value", "v")];
    let expected = r"
+------+--------------------+
| time | value              |
+------+--------------------+
| 1    | 1.5                |
| 2    |                    |
| 3    | 9007199254740992.0 |
| 4    |                    |
| 5    | 9007199254740992.0 |
+------+--------------------+
bad_value lost x2: c.csv:3: value is no number: `1e999`
rounded_value info x1: c.csv:4: value `9007199254740993` is 9007199254740992 as a float
";
    assert_eq!(read_as("c.csv", text.as_bytes(), &mapping, Table::Counters, &["time", "value"]), expected);
}

#[test]
fn calls_of_mpi_have_roles_where_no_column_says_any() {
    let text = "t,d,n\n0,5,stencil\n5,1,MPI_Isend\n6,4,MPI_Wait\n";
    let mapping = [("table.start", "t"), ("table.duration", "d"), ("table.name", "n")];
    let expected = r"
+-----------+---------------+
| name      | role          |
+-----------+---------------+
| stencil   |               |
| MPI_Isend | communication |
| MPI_Wait  | wait          |
+-----------+---------------+
role_guessed info x2: t.csv:3: `MPI_Isend` has role communication; a column `role` says otherwise
";
    let columns = ["name", "role"];
    assert_eq!(read_as("t.csv", text.as_bytes(), &mapping, Table::Tasks, &columns), expected);
    let said = "t,d,n,role\n0,5,stencil,\n5,1,MPI_Isend,work\n6,4,MPI_Wait,\n";
    let expected = r"
+-----------+------+
| name      | role |
+-----------+------+
| stencil   |      |
| MPI_Isend | work |
| MPI_Wait  |      |
+-----------+------+
";
    assert_eq!(read_as("t.csv", said.as_bytes(), &mapping, Table::Tasks, &columns), expected);
}

#[test]
fn arrow_without_rows_is_a_table() {
    let schema = batch().schema();
    let mut stream = Vec::new();
    StreamWriter::try_new(&mut stream, &schema).and_then(|mut writer| writer.finish()).expect("works");
    let mut file = Vec::new();
    FileWriter::try_new(&mut file, &schema).and_then(|mut writer| writer.finish()).expect("works");
    let folder = TempDir::new().expect("works");
    let path = folder.path().join("log.arrow");
    for bytes in [stream, file] {
        std::fs::write(&path, bytes).expect("works");
        let source = crate::trace::Source::open(&path, None).expect("works");
        let columns: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(super::read::peek(&source), Some(columns));
        assert_eq!(import(&path, MEMORY).expect("a table").tables.get(&Table::Tasks).map_or(0, Vec::len), 0);
    }
}

#[test]
fn nan_of_python_is_a_text() {
    let records =
        ["{\"start\":1,\"finish\":NaN,\"name\":\"a\"}", "{\"start\":3,\"finish\":4,\"loss\":NaN}", "{\"start\":NaN"];
    let table = r#"
+-------+--------+------------------+
| start | finish | args             |
+-------+--------+------------------+
| 1     |        | {"finish":"NaN"} |
| 3     | 4      | {"loss":"NaN"}   |
+-------+--------+------------------+
"#;
    let columns = ["start", "finish", "args"];
    let lines = records.join("\n");
    let found = r#"bad_record lost x1: a.ndjson:3: expected value at line 1 column 10: `{"start":NaN`
bad_value lost x1: a.ndjson:1: finish is no time: `NaN`
not_finite repaired x2: a.ndjson:1: NaN or Infinity, read as a text: `{"start":1,"finish":NaN,"name":"a"}`
"#;
    assert_eq!(read_as("a.ndjson", lines.as_bytes(), &[], Table::Tasks, &columns), format!("{table}{found}"));
    let array = format!("[{},1]", records[..2].join(","));
    let found = r#"bad_record lost x1: a.json row 3: invalid type: integer `1`, expected an object at line 1 column 1: `1`
bad_value lost x1: a.json row 1: finish is no time: `NaN`
not_finite repaired x2: a.json row 1: NaN or Infinity, read as a text: `{"start":1,"finish":NaN,"name":"a"}`
"#;
    assert_eq!(read_as("a.json", array.as_bytes(), &[], Table::Tasks, &columns), format!("{table}{found}"));
}

#[test]
fn the_first_of_two_equal_keys_is_counted() {
    let text = "{\"start\":7,\"finish\":8,\"name\":5,\"name\":\"dup\"}\n";
    let expected = r#"
+-------+------+
| start | name |
+-------+------+
| 7     | dup  |
+-------+------+
duplicate_key repaired x1: a.ndjson:1: `name` is `5`, then `"dup"`
"#;
    assert_eq!(read_as("a.ndjson", text.as_bytes(), &[], Table::Tasks, &["start", "name"]), expected);
}

#[test]
fn typed_floats_that_are_not_finite_are_counted() {
    let nan = f64::NAN;
    let lists = [Some(vec![Some(1.0), Some(nan)]), None, Some(vec![Some(2.0)])];
    // What pandas leaves under a NULL is no number of the file.
    let nulls = NullBuffer::from(vec![true, true, false]);
    let columns: [(&str, ArrayRef); 4] = [
        ("start", Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]))),
        ("finish", Arc::new(Float64Array::new(vec![4.0, nan, nan].into(), Some(nulls)))),
        ("x", Arc::new(Float64Array::from(vec![Some(f64::INFINITY), Some(1.5), None]))),
        ("y", Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)));
    let batch = batch.expect("works");
    let mut bytes = Vec::new();
    let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).expect("works");
    writer.write(&batch).and_then(|()| writer.finish()).expect("works");
    drop(writer);
    let expected = r#"
+-------+--------+---------------------------+
| start | finish | args                      |
+-------+--------+---------------------------+
| 1     | 4      | {"x":null,"y":[1.0,null]} |
| 2     |        | {"x":1.5}                 |
| 3     |        | {"y":[2.0]}               |
+-------+--------+---------------------------+
nan_is_null info x1: a.arrows row 2: finish
not_finite repaired x2: a.arrows: NaN or Infinity in column `x`, which is null in args
"#;
    assert_eq!(read_as("a.arrows", &bytes, &[], Table::Tasks, &["start", "finish", "args"]), expected);
}

#[test]
fn text_behind_a_closing_quote_is_counted() {
    let text = "start,finish,name\n1,2,\"a\"x\n3,4,b\"c\"\n5,6,\"q\"\"q\"\n";
    let expected = r#"
+-------+------+
| start | name |
+-------+------+
| 1     | ax   |
| 3     | b"c" |
| 5     | q"q  |
+-------+------+
text_behind_quote repaired x1: a.csv:2: `ax`
"#;
    assert_eq!(read_as("a.csv", text.as_bytes(), &[], Table::Tasks, &["start", "name"]), expected);
}

#[test]
fn rows_count_from_one() {
    let folder = TempDir::new().expect("works");
    let path = folder.path().join("s.db");
    let database = rusqlite::Connection::open(&path).expect("works");
    database.execute_batch("CREATE TABLE t (start, finish); INSERT INTO t VALUES (1, 2), ('x', 3)").expect("works");
    drop(database);
    let expected = r"
+-------+--------+
| start | finish |
+-------+--------+
| 1     | 2      |
|       | 3      |
+-------+--------+
bad_value lost x1: s.db row 2: start is no time: `x`
";
    let bytes = std::fs::read(&path).expect("works");
    assert_eq!(read_as("s.db", &bytes, &[], Table::Tasks, &["start", "finish"]), expected);
}

#[test]
fn trace_events_are_not_taken_for_a_table_of_nanoseconds() {
    let folder = TempDir::new().expect("works");
    let hint = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("works");
        match import_with(&path, MEMORY, &[]) {
            Err(ImportError::Unusable { hint, .. }) => hint.unwrap_or_default(),
            other => panic!("{name}: {:?}", other.err()),
        }
    };
    let event = "{\"name\":\"a\",\"ts\":1,\"dur\":2,\"pid\":0}";
    for (name, text) in [("a.json", format!("[{event}]")), ("a.ndjson", format!("{event}\n{event}\n"))] {
        let hint = hint(name, &text);
        assert!(hint.starts_with("--from-format chrome, if these are trace events with `ts` in us; "), "{hint}");
    }
    let table = hint("a.csv", "name,ts,pid\na,1,0\n");
    assert!(table.contains("--option table=events --option table.time=ts "), "{table}");
}
