//! Random traces answer the same from a store, whose groups and pages are small in these tests, as from the file.

use std::collections::BTreeMap;
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{Replace, list};
use crate::import::{import, import_spilling};
use crate::open::{OpenOptions, TraceSpec};
use crate::session::Session;
use crate::time::GivenTime;

/// What is asked; `{a}` and `{b}` are times, `{t}` a task.
const QUESTIONS: &[&str] = &[
    "SELECT * FROM tasks",
    "SELECT * FROM links",
    "SELECT * FROM counters",
    "SELECT * FROM events",
    "SELECT * FROM runs",
    "SELECT * FROM import_stats",
    "SELECT * FROM program_tasks",
    "SELECT count(*) FROM tasks",
    "SELECT count(*), sum(duration), min(start), max(finish), count(stack_parent) FROM tasks",
    "SELECT * FROM tasks WHERE start >= {a} AND start < {b}",
    "SELECT name, finish FROM tasks WHERE finish > {a} AND start < {b}",
    "SELECT args FROM tasks WHERE location = '1/2' AND start BETWEEN {a} AND {b}",
    "SELECT task, depth FROM tasks WHERE location IN ('1/1', '1/3') OR finish < {a}",
    "SELECT name FROM tasks WHERE task = {t}",
    "SELECT name FROM tasks WHERE task IN ({t}, 3, 1) AND run = 'a'",
    "SELECT task FROM tasks WHERE stack_parent = {t} OR parent > {t}",
    "SELECT task, start FROM tasks WHERE start = {a} OR (start > {b} AND name = 'n1')",
    "SELECT task FROM tasks WHERE name = 'n2' AND depth = 1",
    "SELECT task FROM tasks WHERE finish IS NULL OR start < {a}",
    "SELECT run, finish FROM tasks LIMIT 7",
    "SELECT start FROM tasks LIMIT 5 OFFSET 43",
    "SELECT source FROM links WHERE source > {t}",
    "SELECT value FROM counters WHERE time >= {a} AND name = 'c1'",
    "SELECT time FROM events WHERE time < {b} LIMIT 3",
];

/// One record of a trace: what it is, its thread, time, length and name.
type Record = (u8, u8, u16, u16, u8);

fn trace(records: &[Record]) -> String {
    let mut events = vec![r#"{"ph":"X","pid":1,"tid":9,"ts":0,"dur":1,"name":"first"}"#.to_owned()];
    for (place, (what, thread, at, length, name)) in records.iter().enumerate() {
        let begin = format!(r#""pid":1,"tid":{},"ts":{at},"name":"n{}""#, thread % 4, name % 4);
        events.push(match what % 16 {
            0 => format!(r#"{{"ph":"B",{begin}}}"#),
            1 => format!(r#"{{"ph":"i",{begin},"s":"t"}}"#),
            2 => format!(r#"{{"ph":"C",{begin},"args":{{"c{}":{length}}}}}"#, name % 3),
            3 => format!(r#"{{"ph":"s",{begin},"id":{},"cat":"f"}}"#, name % 8),
            4 => format!(r#"{{"ph":"f",{begin},"id":{},"cat":"f","bp":"e"}}"#, name % 8),
            5 => format!(r#"{{"ph":"X",{begin},"dur":0}}"#),
            _ => format!(r#"{{"ph":"X",{begin},"dur":{},"args":{{"i":{place}}}}}"#, length % 50),
        });
    }
    format!("[{}]", events.join(",\n"))
}

fn open(path: &Path, slice: Option<(i64, i64)>) -> Session {
    let times = slice.map(|(from, to)| (GivenTime::Ticks(from), GivenTime::Ticks(to)));
    let (from, to) = times.unzip();
    let spec = TraceSpec { name: Some("a".to_owned()).filter(|_| path.is_file()), path: path.to_owned() };
    Session::open(&OpenOptions { traces: vec![spec], from, to, ..OpenOptions::new(1 << 30, 2) }).unwrap()
}

fn ask(session: &Session, sql: &str) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let batches: Vec<RecordBatch> = runtime.block_on(async {
        let query = session.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        query.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    });
    let cell = |batch: &RecordBatch, row: usize, column: usize| {
        let array = batch.column(column);
        if array.is_null(row) { "-".to_owned() } else { array_value_to_string(array, row).unwrap() }
    };
    let row = |batch: &RecordBatch, row| {
        (0..batch.num_columns()).map(|column| cell(batch, row, column)).collect::<Vec<_>>().join("|")
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|at| row(batch, at)).collect::<Vec<_>>()).collect()
}

fn compare(records: &[Record], sorted: bool, (a, b): (u16, u16)) {
    let mut records = records.to_vec();
    if sorted {
        records.sort_by_key(|record| record.2);
    }
    let folder = tempfile::tempdir().unwrap();
    let (file, store) = (folder.path().join("a.json"), folder.path().join("store"));
    std::fs::write(&file, trace(&records)).unwrap();
    let spec = TraceSpec { name: Some("a".to_owned()), path: file.clone() };
    let options = OpenOptions { traces: vec![spec], ..OpenOptions::new(1 << 30, 2) };
    import(&store, &options, &Replace::Nothing, false).unwrap();
    let (a, b) = (i64::from(a.min(b)) * 1000, i64::from(a.max(b)) * 1000 + 1);
    for slice in [None, Some((a, b))] {
        let (of_file, of_store) = (open(&file, slice), open(&store, slice));
        assert_eq!(of_store.opening_notes(), of_file.opening_notes());
        for question in QUESTIONS {
            let sql = question.replace("{a}", &a.to_string()).replace("{b}", &b.to_string());
            let sql = sql.replace("{t}", &(a / 5000).to_string());
            assert_eq!(ask(&of_store, &sql), ask(&of_file, &sql), "{sql} in {slice:?} of {}", trace(&records));
        }
    }
}

#[test]
fn random_traces_answer_the_same() {
    let record = (any::<u8>(), any::<u8>(), 0u16..1000, any::<u16>(), any::<u8>());
    let cases = (prop::collection::vec(record, 0..400), any::<bool>(), (0u16..1000, 0u16..1000));
    let mut runner = TestRunner::new_with_rng(
        Config { cases: 10, failure_persistence: None, ..Config::default() },
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    runner
        .run(&cases, |(records, sorted, times)| {
            compare(&records, sorted, times);
            Ok(())
        })
        .unwrap();
}

#[test]
fn what_asks_about_runs_alone_opens_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let runs = ["night/1", "night/2", "day/1", "x", "10", "ä'"];
    for (place, run) in runs.iter().enumerate() {
        let file = folder.path().join("a.json");
        std::fs::write(&file, trace(&vec![(9, 1, 5, 7, 1); place + 1])).unwrap();
        let spec = TraceSpec { name: Some((*run).to_owned()), path: file };
        let options = OpenOptions { traces: vec![spec], ..OpenOptions::new(1 << 30, 2) };
        import(&store, &options, &Replace::Nothing, false).unwrap();
    }
    let session = open(&store, None);
    // A filter, and how many runs pass it; all are opened where a name is an error.
    for (filter, opened) in [
        ("run LIKE 'night/%'", 2),
        ("run NOT LIKE 'night/%' AND run <> 'x'", 3),
        ("run < 'e'", 2),
        ("run BETWEEN 'd' AND 'night/1'", 2),
        ("regexp_like(run, '^.$') OR run = 'day/1'", 2),
        ("length(run) = 2", 2),
        ("CASE run WHEN 'x' THEN true END", 1),
        ("run NOT IN ('x', 'day/1')", 4),
        ("run IS NULL", 0),
        ("run IS NOT NULL", 6),
        ("run = 'x' OR task > 1", 6),
        ("run LIKE '%/1' AND random() >= 0", 2),
        ("run IN (SELECT run FROM tasks WHERE run = 'x')", 6),
        ("try_cast(run AS BIGINT) = 10", 1),
    ] {
        let sql = format!("SELECT run, count(*) FROM tasks WHERE {filter} GROUP BY run ORDER BY run");
        let by_rows = sql.replace("WHERE", "JOIN (VALUES (0)) AS v(zero) ON true WHERE");
        let by_rows =
            by_rows.replace("FROM tasks JOIN", "FROM (SELECT concat(run, '') AS run, task FROM tasks) AS t JOIN");
        assert_eq!(ask(&session, &sql), ask(&session, &by_rows), "{filter}");
        let plan = ask(&session, &format!("EXPLAIN SELECT count(args) FROM tasks WHERE {filter}")).join("\n");
        let groups = format!("StoredExec: tasks, {opened} group");
        let is_opened = if opened == 0 { !plan.contains("StoredExec") } else { plan.contains(&groups) };
        assert!(is_opened, "{filter}: {groups}: {plan}");
    }
    assert!(session_error(&session, "SELECT count(*) FROM tasks WHERE cast(run AS BIGINT) > 3").contains("night/1"));
}

fn session_error(session: &Session, sql: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let answer = runtime.block_on(async { session.sql(sql).await?.collect().await });
    answer.map_or_else(|error| error.to_string(), |_| String::new())
}

/// Functions that walk over lanes, in a form in which nobody sees the order of their answers.
const OF_LANES: &[&str] = &[
    "SELECT * FROM self_time(tasks) ORDER BY task",
    "SELECT name, sum(self_time), count(parent) FROM self_time((SELECT * FROM tasks WHERE duration < 40000)) GROUP BY name ORDER BY name",
];

/// Tasks of four threads: sorted by start, thread by thread, or as they are drawn. Returns how many questions were answered lane by lane.
fn compare_lanes(tasks: &[Record], order: u8) -> usize {
    let mut tasks = tasks.to_vec();
    match order {
        0 => tasks.sort_by_key(|task| task.2),
        1 => tasks.sort_by_key(|task| (task.1 % 4, task.2)),
        _ => {}
    }
    let event = |(what, thread, at, length, name): &Record| match what % 16 {
        0 => format!(r#"{{"ph":"B","pid":1,"tid":{},"ts":{at},"name":"n{}"}}"#, thread % 4, name % 3),
        _ => format!(
            r#"{{"ph":"X","pid":1,"tid":{},"ts":{at},"dur":{},"name":"n{}"}}"#,
            thread % 4,
            length % [0, 9, 60, 400][usize::from(what % 4)].max(1),
            name % 3
        ),
    };
    let folder = tempfile::tempdir().unwrap();
    let (file, store) = (folder.path().join("a.json"), folder.path().join("store"));
    std::fs::write(&file, format!("[{}]", tasks.iter().map(event).collect::<Vec<_>>().join(","))).unwrap();
    let spec = TraceSpec { name: Some("a".to_owned()), path: file.clone() };
    let options = OpenOptions { traces: vec![spec], ..OpenOptions::new(1 << 30, 2) };
    import(&store, &options, &Replace::Nothing, false).unwrap();
    let (of_file, of_store) = (open(&file, None), open(&store, None));
    // A chunk is sixteen batches.
    ask(&of_store, "SET datafusion.execution.batch_size = 1");
    let is_by_lane = |question: &&&str| {
        assert_eq!(ask(&of_store, question), ask(&of_file, question), "{question}");
        ask(&of_store, &format!("EXPLAIN {question}")).concat().contains("lane by lane")
    };
    OF_LANES.iter().filter(is_by_lane).count()
}

#[test]
fn lanes_in_order_are_walked_in_chunks() {
    let config = Config { cases: 16, failure_persistence: None, ..Config::default() };
    let record = (any::<u8>(), any::<u8>(), 0u16..2000, any::<u16>(), any::<u8>());
    TestRunner::new(config)
        .run(&prop::collection::vec(record, 100..400), |tasks| {
            for order in 0..3 {
                let by_lane = compare_lanes(&tasks, order);
                // Drawn at random they are never in order.
                prop_assert_eq!(by_lane, if order < 2 { OF_LANES.len() } else { 0 }, "order {}", order);
            }
            Ok(())
        })
        .unwrap();
}

/// Traces of `fixtures/` whose rows take different ways: pieces, blocks with texts, words of other columns, several files, parts.
const FIXTURES: &[&str] = &[
    "actorprof/quirks",
    "chrome/addmm_twice.json",
    "chrome/damaged.json",
    "chrome/ddp_gloo",
    "chrome/node20_trace_events.json.gz",
    "chrome/phases.json",
    "chrome/torch215_cpu.json.gz",
    "daisen/fir64_v3.csv.zst",
    "daisen/queue_v49.sqlite3.zst",
    "daisen/virtualmem_v5.sqlite3.zst",
    "folded/solver.folded",
    "nsys/two_streams.sqlite",
    "parsec/chol8-1r",
    "parsec/synth-1r",
    "pascal/regions.json",
    "table/halo.csv",
    "tfprof/execs_40.tfp",
    "tfprof/execs_41.tfp",
    "tfprof/names_40.json",
    "tfprof/nested_25.json",
    "tfprof/nested_40.json",
    "tfprof/nested_40.tfp",
    "tfprof/nested_41.tfp",
    "tfprof/wavefront_40.tfp",
];

/// The bytes of all files of rows, and what is said of the runs.
fn written(path: &Path, align: bool, above: usize) -> (BTreeMap<String, Vec<u8>>, String) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    let path = path.to_owned();
    let mut options = OpenOptions::new(1 << 30, 1);
    options.traces = vec![TraceSpec { name: None, path }];
    options.import.extend(align.then(|| ("align".to_owned(), "messages".to_owned())));
    import_spilling(&store, Vec::new(), &options, &Replace::Nothing, false, above).unwrap();
    let mut files = BTreeMap::new();
    for run in std::fs::read_dir(store.join("runs")).unwrap() {
        for file in std::fs::read_dir(run.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            files.insert(path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap());
        }
    }
    let runs = list(&store).unwrap().into_iter().map(|run| (run.name, run.tasks, run.rows));
    let said: Vec<String> =
        ["SELECT * FROM runs", "SELECT * FROM import_stats"].map(|sql| ask(&open(&store, None), sql)).concat();
    (files, format!("{:?} {said:?}", runs.collect::<Vec<_>>()))
}

#[test]
fn rows_that_wait_on_disk_are_written_as_those_in_memory() {
    for fixture in FIXTURES {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(fixture);
        for align in [false, true] {
            let (in_memory, on_disk) = (written(&path, align, usize::MAX), written(&path, align, 0));
            assert_eq!(on_disk.1, in_memory.1, "{fixture}");
            assert!(on_disk.0 == in_memory.0, "{fixture}: other bytes");
            assert!(in_memory.0.len() > 1, "{fixture}");
        }
    }
}

/// An event of a trace in which everything is joined with something else.
fn joined_event(place: usize, (what, thread, at, length, id): Record) -> String {
    let (thread, id) = (thread % 3, id % 6);
    let begin = format!(r#""pid":{},"tid":{thread},"ts":{},"name":"n{}""#, 1 + thread % 2, at % 200, id % 4);
    let (length, args) = (length % 40, format!(r#""args":{{"i":{place}}}"#));
    match what % 22 {
        0..4 => format!(r#"{{"ph":"X",{begin},"dur":{length},{args}}}"#),
        4 | 5 => format!(r#"{{"ph":"B",{begin},"tts":{at},{args}}}"#),
        6 | 7 => format!(r#"{{"ph":"E",{begin},"tts":{length}}}"#),
        8 => format!(r#"{{"ph":"E","pid":1,"tid":{thread},"ts":{at},"args":{{"e":{place}}}}}"#),
        9 => format!(r#"{{"ph":"b",{begin},"cat":"io","id":{id},{args}}}"#),
        10 => format!(r#"{{"ph":"e",{begin},"cat":"io","id":{id},"args":{{"tts":{place}}}}}"#),
        11 => format!(r#"{{"ph":"n",{begin},"cat":"io","id":{id}}}"#),
        12 => format!(r#"{{"ph":"s",{begin},"id":{id},"cat":"f"}}"#),
        13 => format!(r#"{{"ph":"t",{begin},"id":{id},"cat":"f"}}"#),
        14 => format!(r#"{{"ph":"f",{begin},"id":{id},"cat":"f"}}"#),
        15 => {
            format!(r#"{{"ph":"X",{begin},"dur":{length},"bind_id":{id},"flow_in":true,"flow_out":{}}}"#, length > 20)
        }
        16 => format!(r#"{{"ph":"X","cat":"cuda_runtime",{begin},"dur":{length},"args":{{"correlation":{id}}}}}"#),
        17 => format!(
            r#"{{"ph":"X","cat":"kernel",{begin},"dur":{length},"args":{{"correlation":{id},"External id":{}}}}}"#,
            length % 3
        ),
        18 => format!(r#"{{"ph":"X","cat":"cpu_op",{begin},"dur":{length},"args":{{"External id":{}}}}}"#, id % 3),
        19 => format!(
            r#"{{"ph":"X","cat":"cuda_sync","pid":1,"tid":{thread},"ts":{at},"dur":{length},"name":"{}","args":{{"stream":{},"correlation":{id},"wait_on_stream":1,"wait_on_cuda_event_record_corr_id":{id}}}}}"#,
            ["Stream Sync", "Context Sync", "Event Sync"][usize::from(id) % 3],
            id % 3
        ),
        20 => format!(
            r#"{{"ph":"X","cat":"python_function",{begin},"dur":{length},"args":{{"Python id":{id},"Python parent id":{}}}}}"#,
            length % 6
        ),
        _ => format!(r#"{{"ph":"s",{begin},"id":{id},"cat":"ac2g"}}"#),
    }
}

#[test]
fn whatever_is_joined_is_joined_alike_on_disk() {
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let record = (0..22u8, any::<u8>(), any::<u16>(), any::<u16>(), any::<u8>());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("joined.json");
    TestRunner::new(config)
        .run(&prop::collection::vec(record, 1..120), |records| {
            let events: Vec<String> =
                records.into_iter().enumerate().map(|(place, record)| joined_event(place, record)).collect();
            std::fs::write(&path, format!("[{}]", events.join(",\n"))).unwrap();
            alike_on_disk(&path, &[0, 20_000])
        })
        .unwrap();
}

/// A database of Nsight Systems in which calls of two processes share correlation ids, and work may not say whose it is.
fn nsys_database(path: &Path, rows: &[(u8, u8, u8, u8)]) {
    let database = rusqlite::Connection::open(path).unwrap();
    let schema = "CREATE TABLE StringIds (id INTEGER, value TEXT);
        INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'gemm'), (3, 'cudaStreamSynchronize');
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, demangledName);
        CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, end, deviceId, streamId, correlationId, globalPid, syncType);
        CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid, domainId);";
    database.execute_batch(schema).unwrap();
    for (what, whose, at, length) in rows {
        let process = (i64::from(whose % 2) + 1) << 24;
        let thread = process + i64::from(whose / 2 % 2);
        let correlation = i64::from(length % 5);
        let said = [Some(process), None, Some(0)][usize::from(whose / 4 % 3)];
        let (start, end) = (i64::from(*at), i64::from(*at) + i64::from(length / 5));
        let name = 1 + 2 * i64::from(length % 2);
        let insert = |table: &str, values: &[&dyn rusqlite::ToSql]| {
            let places = vec!["?"; values.len()].join(", ");
            database.execute(&format!("INSERT INTO {table} VALUES ({places})"), values).unwrap();
        };
        match what % 6 {
            0 | 1 => insert("CUPTI_ACTIVITY_KIND_RUNTIME", &[&start, &end, &thread, &correlation, &name]),
            2 | 3 => insert("CUPTI_ACTIVITY_KIND_KERNEL", &[&start, &end, &0, &(whose % 3), &correlation, &said, &2]),
            4 => insert("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &[&start, &end, &0, &1, &correlation, &said, &3]),
            _ => {
                let kind = [59, 60, 34][usize::from(length % 3)];
                insert("NVTX_EVENTS", &[&start, &(end + 9), &kind, &"step", &thread, &(whose % 2)]);
            }
        }
    }
}

/// An import writes the same bytes and says the same, whether it keeps everything in memory or only so many bytes.
fn alike_on_disk(path: &Path, kept: &[usize]) -> Result<(), TestCaseError> {
    let in_memory = written(path, false, usize::MAX);
    for &above in kept {
        let on_disk = written(path, false, above);
        prop_assert_eq!(&on_disk.1, &in_memory.1, "{} bytes in memory", above);
        prop_assert!(on_disk.0 == in_memory.0, "other bytes with {} in memory", above);
    }
    Ok(())
}

#[test]
fn calls_are_joined_to_what_they_launched_alike_on_disk() {
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("joined.sqlite");
    TestRunner::new(config)
        .run(&prop::collection::vec(any::<(u8, u8, u8, u8)>(), 1..80), |rows| {
            let _ = std::fs::remove_file(&path);
            nsys_database(&path, &rows);
            alike_on_disk(&path, &[0])
        })
        .unwrap();
}

/// A database of Daisen in which ids come twice or are missing, and tasks, requests and milestones refer to any of them.
fn daisen_database(path: &Path, rows: &[(u8, u8, u8, u8)]) {
    let database = rusqlite::Connection::open(path).unwrap();
    let schema = "CREATE TABLE trace (ID, ParentID, Kind, What, Location, StartTime, EndTime);
        CREATE TABLE milestone (ID, TaskID, Time, Kind, What, Location);
        CREATE TABLE tag (ID, TaskID, Time, What, Location);";
    database.execute_batch(schema).unwrap();
    for (place, (what, whose, at, length)) in rows.iter().enumerate() {
        let seconds = |time: u32| f64::from(time) * 1e-9;
        let (start, finish) = (seconds(u32::from(*at)), seconds(u32::from(*at) + u32::from(length % 9)));
        let id = (whose % 13 > 0).then(|| format!("t{}", place % 40));
        let other = (whose % 7 > 0).then(|| format!("t{}", whose % 48));
        let kind = ["req_in", "req_out", "op"][usize::from(length % 3)];
        let location = (what % 11 > 0).then(|| format!("GPU[{}].L{}", whose % 2, what % 3));
        let insert = |table: &str, values: &[&dyn rusqlite::ToSql]| {
            let places = vec!["?"; values.len()].join(", ");
            database.execute(&format!("INSERT INTO {table} VALUES ({places})"), values).unwrap();
        };
        match what % 6 {
            0 => insert("milestone", &[&id, &other, &start, &kind, &format!("q{}", length % 4), &location]),
            1 => insert("tag", &[&id, &other, &start, &"hit", &location]),
            _ => insert("trace", &[&id, &other, &kind, &format!("n{}", whose % 5), &location, &start, &finish]),
        }
    }
}

#[test]
fn tasks_find_their_parents_alike_on_disk() {
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("akita.sqlite3");
    TestRunner::new(config)
        .run(&prop::collection::vec(any::<(u8, u8, u8, u8)>(), 1..120), |rows| {
            let _ = std::fs::remove_file(&path);
            daisen_database(&path, &rows);
            alike_on_disk(&path, &[0, 20_000])
        })
        .unwrap();
}

/// Begins and ends of several threads, some without the other, in rows that hold something besides.
fn begins_and_ends(path: &Path, is_json: bool, rows: u64) {
    let mut random = 7u64;
    let mut text = if is_json { String::new() } else { "ts,event,thread,name,more\n".to_owned() };
    for at in 0..rows {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (event, thread, name) =
            (["B", "E", "?"][(random >> 33) as usize % 9 / 4], (random >> 40) % 5, (random >> 50) % 3);
        let more = (random >> 55) % 4;
        text.push_str(&match is_json {
            true => format!(
                "{{\"ts\":{at},\"event\":\"{event}\",\"thread\":{thread},\"name\":\"n{name}\",\"m{more}\":{more}}}\n"
            ),
            false => format!("{at},{event},t{thread},n{name},{more}\n"),
        });
    }
    std::fs::write(path, text).unwrap();
    let mapping = "phase = \"event:begin=B,end=E\"\ntime = \"ts:us\"\nlocation = \"thread\"\n";
    std::fs::write(path.with_file_name(format!("{}.tq.toml", path.file_name().unwrap().to_string_lossy())), mapping)
        .unwrap();
}

#[test]
fn begins_find_their_ends_alike_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    for (name, is_json) in [("log.csv", false), ("log.ndjson", true)] {
        let path = folder.path().join(name);
        begins_and_ends(&path, is_json, 24_000);
        let in_memory = written(&path, false, usize::MAX);
        assert!(in_memory.1.contains("unfinished") && in_memory.1.contains("unmatched_end"), "{}", in_memory.1);
        // From the first batch on, and from a later one.
        for above in [0, 1_500_000] {
            let on_disk = written(&path, false, above);
            assert_eq!(on_disk.1, in_memory.1, "{name}");
            assert!(on_disk.0 == in_memory.0, "{name}: other bytes");
        }
    }
}

/// Executor, worker and level of a block of TFPX, and gap, length and type of each task.
type TfpxBlock = ((u8, u8, u8), Vec<(u8, u8, u8)>);

fn tfpx(blocks: &[TfpxBlock]) -> Vec<u8> {
    let mut bytes = b"TFPX\x01\0\0\0\x02\0\0\0".to_vec();
    for executor in 0..2_u8 {
        let own: Vec<_> = blocks.iter().filter(|block| block.0.0 == executor).collect();
        bytes.extend(u64::from(executor).to_le_bytes());
        bytes.extend((7_000 - 300 * i64::from(executor)).to_le_bytes());
        bytes.extend([3, 0, 0, 0]);
        bytes.extend((own.len() as u32).to_le_bytes());
        bytes.extend(b"abc");
        let mut times = BTreeMap::new();
        for ((_, worker, level), tasks) in own {
            for number in [usize::from(*worker), usize::from(*level), tasks.len()] {
                bytes.extend((number as u32).to_le_bytes());
            }
            // The first delta counts from zero.
            let time: &mut u16 = times.entry((worker, level)).or_default();
            let mut last = 0;
            for (gap, length, kind) in tasks {
                *time += u16::from(*gap);
                let delta = *time - last;
                last = *time;
                bytes.extend([
                    (delta & 127) as u8 | 128,
                    ((delta >> 7) & 127) as u8 | 128,
                    (delta >> 14) as u8,
                    *length,
                ]);
                bytes.extend([kind % 3, 0, 0, 0, ((kind % 7) << 5) | 1]);
            }
        }
    }
    bytes
}

#[test]
fn pieces_of_lanes_are_put_together_alike_on_disk() {
    let config = Config { cases: 20, failure_persistence: None, ..Config::default() };
    let piece = prop::collection::vec((0..9u8, 0..60u8, any::<u8>()), 0..25);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pieces.tfp");
    TestRunner::new(config)
        .run(&prop::collection::vec(((0..2u8, 0..3u8, 0..3u8), piece), 1..20), |blocks| {
            std::fs::write(&path, tfpx(&blocks)).unwrap();
            alike_on_disk(&path, &[0, 20_000])
        })
        .unwrap();
}

/// What the last task says may change the nesting of its lane, wherever the other tasks are.
#[test]
fn an_overlap_in_the_last_row_is_found_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut tasks: Vec<(i64, i64)> = (0..500).map(|at| (3 * at, 2)).collect();
    tasks.push((1, 900));
    let event = |(start, length): &(i64, i64)| {
        format!(r#"{{"ph":"X","pid":1,"tid":1,"ts":{start},"dur":{length},"name":"n"}}"#)
    };
    let events: Vec<String> = tasks.iter().map(event).collect();
    let rows: String = tasks.iter().map(|(start, length)| format!("{start},{length},n,t\n")).collect();
    let traces = [
        ("last.json", format!("[{}]", events.join(","))),
        ("last.csv", format!("start_us,duration_us,name,location\n{rows}")),
    ];
    for (name, text) in traces {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let (in_memory, on_disk) = (written(&path, false, usize::MAX), written(&path, false, 0));
        assert!(on_disk.1.contains("overlap"), "{name}: {}", on_disk.1);
        assert_eq!(on_disk.1, in_memory.1, "{name}");
        assert!(on_disk.0 == in_memory.0, "{name}: other bytes");
    }
}
