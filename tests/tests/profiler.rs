//! What a recorder writes of itself is no work: the table `tasks` has it, and nothing else takes it for work of the program.

use std::io::Write as _;

use tempfile::NamedTempFile;
use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::queries::library::{self, Library};
use tq_engine::session::Session;
use tq_tests::{ask_saved, drawn, lines, rows, wait};

/// ```text
/// µs             0    10        20        30        40      50
/// Spans          [------------ PyTorch Profiler (0) --------)       the recorder's
/// 1/1                 [aten::mm)[----- Trace (7) ---)               a program may use these words, too
/// ```
const KINETO: &str = r#"{"schemaVersion": 1, "traceEvents": [
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":10,"dur":10},
{"ph":"X","cat":"Trace","name":"Trace (7)","pid":1,"tid":1,"ts":20,"dur":20},
{"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":0,"dur":50,"args":{"Op count":0}},
{"ph":"M","name":"process_sort_index","pid":"Spans","tid":0,"ts":0,"args":{"sort_index":536870912}},
{"ph":"i","s":"g","name":"Iteration Start: PyTorch Profiler","pid":"Traces","tid":"Trace PyTorch Profiler","ts":0},
{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":60}
]}"#;

fn open(texts: &[&str]) -> Session {
    let mut options = OpenOptions::new(1 << 30, 2);
    let mut files = Vec::new();
    for (text, name) in texts.iter().zip(["base", "new"]) {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        options.traces.push(TraceSpec { name: Some(name.to_owned()), path: file.path().to_owned() });
        files.push(file);
    }
    Session::open(&options).unwrap()
}

fn check(session: &Session, sql: &str, expected: &[&str]) {
    assert_eq!(rows(session, sql), expected, "{sql}");
}

#[test]
fn the_span_of_the_recorder_is_no_work() {
    let session = open(&[KINETO]);
    check(
        &session,
        "SELECT name, role, start, finish FROM tasks ORDER BY name",
        &["PyTorch Profiler (0)|profiler|0|50000", "Trace (7)|work|20000|40000", "aten::mm|work|10000|20000"],
    );
    check(&session, "SELECT makespan, tasks FROM runs", &["30000|3"]);
    check(&session, "SELECT count(*) FROM program_tasks", &["2"]);
    // What is left out of a call is the program's, what is written out is taken as it is.
    check(&session, "SELECT name FROM executed_path() ORDER BY step", &["aten::mm", "Trace (7)"]);
    check(&session, "SELECT name FROM executed_path(tasks) ORDER BY step", &["PyTorch Profiler (0)"]);
    check(&session, "SELECT count(*) FROM self_time()", &["2"]);
    check(&session, "SELECT count(*) FROM self_time(tasks)", &["3"]);
    check(&session, "SELECT busy(start, finish) FROM tasks", &["50000"]);
    check(&session, "WITH tasks AS (SELECT * FROM main.tasks) SELECT count(*) FROM self_time()", &["3"]);
}

#[test]
fn the_span_of_the_profiler_of_ranges_is_no_work() {
    let span = r#"{"ph":"X","cat":"Trace","name":"__cupti_profiler__ (-1)","pid":"Spans","tid":"__cupti_profiler__","ts":5,"dur":40},"#;
    let session = open(&[&KINETO.replace("[\n", &format!("[\n{span}\n"))]);
    check(&session, "SELECT role FROM tasks WHERE name LIKE '%cupti%'", &["profiler"]);
    check(&session, "SELECT count(*) FROM program_tasks", &["2"]);
}

/// ```text
/// µs          0    10                  40   50
/// forward     [----------------------------)        own time: 20
///                  [cudaStreamSynchronize)
/// ```
#[test]
fn a_task_that_waits_inside_is_one_piece_of_work() {
    let session = open(&[r#"{"schemaVersion": 1, "traceEvents": [
{"ph":"X","cat":"python_function","name":"forward","pid":1,"tid":1,"ts":0,"dur":50},
{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":1,"tid":1,"ts":10,"dur":30}]}"#]);
    let longest = lines(&ask_saved(&session, "longest-own-times", &[]));
    assert_eq!(longest, ["base|0|forward|1/1|0|50000|20000|50000"]);
}

#[test]
fn categories_of_viztracer_mean_the_same_in_capital_letters() {
    let text = r#"{"traceEvents": [{"ph":"X","cat":"FEE","name":"time.sleep","pid":1,"tid":1,"ts":0,"dur":50}], "viztracer_metadata": {"version":"1.1.1"}}"#;
    for text in [text.to_owned(), text.replace("FEE", "fee")] {
        check(&open(&[&text]), "SELECT name, role FROM tasks", &["time.sleep|wait"]);
    }
}

#[test]
fn locations_that_hold_nothing_else_are_the_recorders() {
    let session = open(&[KINETO]);
    check(
        &session,
        "SELECT location, role FROM locations WHERE role IS NOT NULL ORDER BY location",
        &["Spans|profiler", "Spans/PyTorch Profiler|profiler"],
    );
    // Where its marks are a thread's, they have lanes.
    let marks = KINETO.replace(r#""s":"g","name":"Iteration"#, r#""s":"t","name":"Iteration"#);
    check(
        &open(&[&marks]),
        "SELECT location FROM locations WHERE role = 'profiler' AND location LIKE 'Traces%' ORDER BY location",
        &["Traces", "Traces/Trace PyTorch Profiler"],
    );
    // A lane is the program's as soon as it has anything else.
    let beside = KINETO.replace(r#""pid":1,"tid":1,"ts":10"#, r#""pid":"Spans","tid":"PyTorch Profiler","ts":60"#);
    let session = open(&[&beside]);
    check(&session, "SELECT count(*) FROM program_locations WHERE location LIKE 'Spans%'", &["2"]);
}

#[test]
fn what_changed_does_not_say_that_the_recorder_did() {
    let longer = KINETO.replace(r#""ts":20,"dur":20"#, r#""ts":20,"dur":25"#).replace(r#""dur":50"#, r#""dur":500"#);
    let session = open(&[KINETO, &longer]);
    check(&session, "SELECT name, cause, change FROM explain_change() WHERE change <> 0", &["Trace (7)|work|5000"]);
}

#[test]
fn no_saved_query_answers_anything_about_the_recorder() {
    let session = open(&[KINETO, KINETO]);
    let library = Library::default();
    let mut asked = 0;
    for name in library::built_in_names() {
        let query = library.find(name).unwrap().unwrap();
        // Nothing but what was read is about the recording and not about the program.
        if !wait(query.unmet(&session)).unwrap().is_empty() {
            continue;
        }
        let text = lines(&ask_saved(&session, name, &[])).join("\n");
        let marks = name == "events-by-name";
        assert!(marks || !text.contains("PyTorch Profiler"), "{name}:\n{text}");
        asked += 1;
    }
    assert!(asked > 20, "{asked} queries were asked");
}

/// The text of a saved query, without its header, names the views and not the tables.
#[test]
fn saved_queries_read_what_the_program_did() {
    let folder = tq_tests::fixture("../queries");
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let words: Vec<&str> = (text.lines().filter(|line| !line.starts_with("--")))
            .flat_map(|line| line.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',')))
            .filter(|word| !word.is_empty())
            .collect();
        for pair in words.windows(2) {
            let reads = matches!(pair[0], "FROM" | "JOIN") && matches!(pair[1], "tasks" | "locations");
            assert!(!reads, "{}: `{} {}`: read program_{}", path.display(), pair[0], pair[1], pair[1]);
        }
    }
}

#[test]
fn traces_without_such_spans_read_the_table_itself() {
    let plain = r#"[{"ph":"X","cat":"Trace","name":"a","pid":1,"tid":1,"ts":10,"dur":10}]"#;
    let plan = |session: &Session, from: &str| drawn(session, &format!("EXPLAIN SELECT name, start FROM {from}"));
    let session = open(&[plain]);
    assert!(!plan(&session, "program_tasks").contains("Filter"));
    assert!(plan(&open(&[KINETO]), "program_tasks").contains("FilterExec: role"));
    check(&session, "SELECT count(*) FROM program_tasks JOIN program_locations USING (location)", &["1"]);
}

#[test]
fn a_trace_of_nothing_else_holds_no_tasks() {
    let only = r#"{"schemaVersion": 1, "traceEvents": [
{"ph":"X","cat":"Trace","name":"PyTorch Profiler (3)","pid":"Spans","tid":"PyTorch Profiler","ts":0,"dur":50}]}"#;
    let session = open(&[only]);
    check(&session, "SELECT makespan, tasks FROM runs", &["-|1"]);
    let library = Library::default();
    let unmet = |name: &str| wait(library.find(name).unwrap().unwrap().unmet(&session)).unwrap();
    assert!(!unmet("longest-tasks").is_empty());
    assert!(unmet("facts-empty").is_empty());
}

/// clang's sums are spans as well: of the program's time, not beside it.
#[test]
fn sums_of_clang_are_no_work() {
    let clang = r#"{"traceEvents":[
{"pid":1,"tid":1,"ph":"X","ts":0,"dur":90,"name":"ExecuteCompiler"},
{"pid":1,"tid":2,"ph":"X","ts":0,"dur":70,"name":"Total Source","args":{"count":12,"avg ms":3}},
{"cat":"","pid":1,"tid":1,"ts":0,"ph":"M","name":"process_name","args":{"name":"clang"}}],
"beginningOfTime":1700000000000000}"#;
    let session = open(&[clang]);
    check(
        &session,
        "SELECT name, kind, role FROM tasks ORDER BY name DESC",
        &["Total Source|summary|profiler", "ExecuteCompiler||work"],
    );
    check(&session, "SELECT name FROM program_tasks", &["ExecuteCompiler"]);
}

/// ```text
/// µs            0    10   20   30   40
/// 1/1           [---- a ---)                  a thread
/// 1/2                [- b -)                  another
/// 1/async c/r   [------- r ------)[- r -)     requests, which wait for both
/// ```
const ASYNC: &str = r#"[
{"ph":"X","name":"a","cat":"c","pid":1,"tid":1,"ts":0,"dur":20},
{"ph":"X","name":"b","cat":"c","pid":1,"tid":2,"ts":10,"dur":10},
{"ph":"b","name":"r","cat":"c","id":1,"pid":1,"tid":1,"ts":0}, {"ph":"e","name":"r","cat":"c","id":1,"pid":1,"tid":1,"ts":30},
{"ph":"b","name":"r","cat":"c","id":2,"pid":1,"tid":1,"ts":30}, {"ph":"e","name":"r","cat":"c","id":2,"pid":1,"tid":1,"ts":40}
]"#;

#[test]
fn asynchronous_spans_keep_no_location_busy() {
    let session = open(&[ASYNC]);
    check(&session, "SELECT location FROM locations WHERE kind = 'async'", &["1/async c/r"]);
    check(&session, "SELECT name FROM program_tasks ORDER BY start, name", &["a", "r", "b", "r"]);
    check(&session, "SELECT name FROM working_tasks ORDER BY start", &["a", "b"]);
    check(&session, "SELECT location FROM working_locations ORDER BY location", &["1", "1/1", "1/2"]);
    let library = Library::default();
    for (name, expected) in [
        ("parallelism", &["base|1|10000|50.0", "base|2|10000|50.0"] as &[&str]),
        ("busy-locations", &["base|1/1|20000|40000|0.5", "base|1/2|10000|40000|0.25"]),
        ("load-imbalance", &["base|thread|2|1.333|20000|10000|0.167|0.75|50.0"]),
        ("time-by-name", &["base|a|1|20000|20000|66.67", "base|b|1|10000|10000|33.33"]),
    ] {
        let query = library.find(name).unwrap().unwrap();
        check(&session, &query.statement.text, expected);
    }
    // Where there is nothing else, they are all there is.
    let only = ASYNC.replace(r#""ph":"X""#, r#""ph":"i""#);
    check(&open(&[&only]), "SELECT name FROM working_tasks ORDER BY start", &["r", "r"]);
}

/// ```text
/// µs            0    10   20   30   40   50   60   70   80   90   100
/// 1/1           [---------------- ProfilerStep#1 ------------------)
///               [------------ aten::item ------------)[-- aten::mm -)
///                    [---- cudaStreamSynchronize ----)
/// 0/7                [--------- gemm ---------)
///               [------------- Stream Sync ----------)
/// ```
const WAITING: &str = r#"{"schemaVersion": 1, "traceEvents": [
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":100},
{"ph":"X","cat":"cpu_op","name":"aten::item","pid":1,"tid":1,"ts":0,"dur":70},
{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":1,"tid":1,"ts":10,"dur":60,"args":{"correlation":2}},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":70,"dur":30},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":10,"dur":50,"args":{"correlation":1}},
{"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":0,"tid":7,"ts":0,"dur":70,"args":{"correlation":2}}
]}"#;

#[test]
fn a_call_that_waits_for_the_device_keeps_no_thread_busy() {
    let session = open(&[WAITING]);
    check(
        &session,
        "SELECT name, role FROM tasks WHERE role <> 'work' ORDER BY name",
        &["Stream Sync|wait", "cudaStreamSynchronize|wait"],
    );
    // The operator around the call waits as well; the wait of the stream lies around the kernel and takes nothing from it.
    check(&session, "SELECT location, busy_time FROM busy_lanes ORDER BY location", &["0/7|50000", "1/1|40000"]);
    check(
        &session,
        "SELECT name, start, finish, is_outermost FROM working_spans ORDER BY location, start",
        &["gemm|10000|60000|true", "aten::item|0|10000|true", "aten::mm|70000|100000|true"],
    );
    let library = Library::default();
    for (name, expected) in [
        (
            "time-by-name",
            &[
                "base|gemm|1|50000|50000|55.56",
                "base|aten::mm|1|30000|30000|33.33",
                "base|aten::item|1|10000|70000|11.11",
            ] as &[&str],
        ),
        ("parallelism", &["base|0|10000|10.0", "base|1|90000|90.0"]),
        ("busy-time", &["base|90000"]),
        (
            "idle-gaps",
            &[
                "base|1/1|10000|60000|aten::item|cudaStreamSynchronize|aten::mm",
                "base|0/7|60000|40000|gemm|Stream Sync|-",
                "base|0/7|0|10000|-|Stream Sync|gemm",
            ],
        ),
    ] {
        let query = library.find(name).unwrap().unwrap();
        check(&session, &query.statement.text, expected);
    }
    // Where nobody waits, spans are the tasks.
    let session = open(&[KINETO]);
    check(
        &session,
        "SELECT name, is_outermost FROM working_spans ORDER BY start",
        &["aten::mm|true", "Trace (7)|true"],
    );
    check(
        &session,
        "SELECT name, tasks, work_time FROM work_by_name ORDER BY name",
        &["Trace (7)|1|20000", "aten::mm|1|10000"],
    );
}
