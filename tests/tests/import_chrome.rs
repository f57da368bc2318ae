//! Chrome traces: our fixtures in full, Perfetto's golden cases, independently computed statistics of real traces, damage.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempDir};
use tq_engine::open::OpenOptions;
use tq_engine::session::Session;
use tq_tests::{fixture, open, options, rows, shared, text_of};

fn try_open(path: &Path, threads: usize) -> Result<Session, String> {
    let options = OpenOptions { threads, ..options(path) };
    Session::open(&options).map_err(|error| error.to_string())
}

fn file_of(text: impl AsRef<[u8]>) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_ref()).expect("room");
    file
}

fn open_text(text: impl AsRef<[u8]>) -> Session {
    open(file_of(text).path())
}

fn one(session: &Session, sql: &str) -> String {
    rows(session, sql).join("\n")
}

/// All findings but the books themselves and where events without a row went.
fn findings(session: &Session) -> String {
    let sql = "SELECT severity || ' ' || what || ' ' || count FROM import_stats \
               WHERE what NOT IN ('records_read', 'end_events', 'flow_events', 'metadata_events') ORDER BY 1";
    rows(session, sql).join(", ")
}

fn assert_books_balance(session: &Session, name: &str) {
    let unaccounted = rows(session, "SELECT count, example FROM import_stats WHERE what = 'unaccounted'");
    assert!(unaccounted.is_empty(), "{name}: {unaccounted:?}");
}

#[test]
fn a_time_that_is_far_off_does_not_take_the_others_with_it() {
    let event = |ts: &str| format!(r#"{{"ph":"X","name":"{ts}","pid":1,"tid":1,"ts":{ts},"dur":5}}"#);
    let session = open_text(format!("[{},{},{}]", event("1"), event("9e15"), event("-9e15")));
    assert_eq!(rows(&session, "SELECT name, start, duration FROM tasks"), ["1|0|5000"]);
    assert_eq!(findings(&session), "lost bad_time 2");
}

#[test]
fn keys_with_escapes_are_the_keys_that_they_say() {
    let plain = r#"{"ph":"X","name":"b","pid":1,"tid":1,"ts":9,"dur":1}"#;
    let escaped = r#"{"\u0070h":"X","na\u006de":"a","pid":1,"tid":1,"ts":1,"d\u0075r":5,"args":{"x":1}}"#;
    let session = open_text(format!("[{plain},{escaped}]"));
    let tasks = rows(&session, "SELECT name, duration, args FROM tasks ORDER BY start");
    assert_eq!(tasks, [r#"a|5000|{"x":1}"#, "b|1000|-"]);
    assert_eq!(findings(&session), "");
}

// Our fixtures.

#[test]
fn every_phase_has_its_row() {
    let session = open(&fixture("chrome/phases.json"));
    assert_books_balance(&session, "phases");
    assert_eq!(
        rows(&session, "SELECT name, kind, location, start, finish, depth, id, args FROM tasks ORDER BY task"),
        [
            r#"request|http|1/2|0|50000|1|-|{"path":"/a","tts":90,"tdur":40.5}"#,
            "parse|http|1/2|5500|9750|2|-|-",
            r#"query|db|1/2|12000|30000|2|-|{"sql":"SELECT 1","tts":95,"rows":1,"tdur":2.5}"#,
            "forever||1/3|40000|-|0|-|-",
            r#"upload|io|1/async io/upload|1000|60000|-|0x1f|{"bytes":10,"ok":true}"#,
            "chunk|io|1/async io/chunk|2000|8000|-|31|-",
            "old|io|1/async io/old|10000|20000|-|7|-",
            r#"Running|state|1/2/state|0|60000|-|-|{"cpu":0}"#,
            "no duration||1/2|0|-|0|-|-",
            r#"odd key||pool/worker 1|0|1000|0|-|{"cname":"good"}"#,
        ]
    );
    let parents =
        "SELECT c.name, p.name, c.stack_parent IS NULL FROM tasks c JOIN tasks p ON p.task = c.parent ORDER BY c.task";
    assert_eq!(
        rows(&session, parents),
        ["request|no duration|false", "parse|request|false", "query|request|false", "chunk|upload|true"]
    );
    assert_eq!(
        rows(
            &session,
            "SELECT e.name, e.kind, e.location, e.time, t.name, e.args FROM events e LEFT JOIN tasks t ON t.task = e.task ORDER BY e.time, e.name"
        ),
        [
            r#"cache|object|1/2|1000|-|{"ph":"N","id":"0x5"}"#,
            "retry|async_instant|1/async io/retry|3000|chunk|-",
            r#"old|step|1/async io/old|15000|old|{"step":"half"}"#,
            "tick|instant|1/2|25000|-|-",
            r#"window|instant|1|26000|-|{"cat":"ui"}"#,
            "load end|instant|-|27000|-|-",
            r#"cache|object|1/2|28000|-|{"snapshot":{"size":3},"ph":"O","id":"0x5"}"#,
            r#"cache|object|1/2|59000|-|{"ph":"D","id":"0x5"}"#,
        ]
    );
    assert_eq!(
        rows(&session, "SELECT location, name, time, value, kind FROM counters ORDER BY time, name"),
        [
            "1|load system|0|2.0|level",
            "1|load user|0|1.5|level",
            "1|load system|50000|0.0|level",
            "1|load user|50000|3.0|level"
        ]
    );
    assert_eq!(
        rows(
            &session,
            "SELECT s.name, t.name, l.kind, l.name FROM links l JOIN tasks s ON s.task = l.source JOIN tasks t ON t.task = l.target"
        ),
        ["query|forever|flow|wake"]
    );
    assert_eq!(
        rows(
            &session,
            "SELECT location, parent, kind, name, process FROM locations WHERE kind IN ('process', 'thread') ORDER BY location"
        ),
        [
            "1|-|process|server (main)|1",
            "1/2|1|thread|worker|1",
            "1/3|1|thread|tid 3|1",
            "pool|-|process|pool|pool",
            "pool/worker 1|pool|thread|worker 1|pool",
        ]
    );
    assert_eq!(
        findings(&session),
        "info clock_sync 1, info unfinished 2, lost bad_counter 1, lost unknown_phase 1, lost unmatched_end 1"
    );
    assert_eq!(one(&session, "SELECT time_unit, origin, args->>'traceName' FROM runs"), "us|100000|phases");
}

#[test]
fn kineto_links_what_belongs_together() {
    let session = open(&fixture("chrome/kineto_tiny.json"));
    assert_books_balance(&session, "kineto_tiny");
    assert_eq!(
        rows(
            &session,
            "SELECT l.kind, l.name, s.name, t.name FROM links l JOIN tasks s ON s.task = l.source JOIN tasks t ON t.task = l.target ORDER BY 1, 2, 3"
        ),
        [
            "flow|fwdbwd|aten::mm|MmBackward0",
            "launch||cudaLaunchKernel|gemm",
            "operator|External id|aten::mm|gemm",
            "sync|Stream Sync|gemm|Stream Sync",
            "sync|call|cudaStreamSynchronize|Stream Sync",
        ]
    );
    assert_eq!(
        rows(&session, "SELECT name, role, depth, location FROM tasks WHERE start >= 30000 ORDER BY task"),
        [
            "cudaLaunchKernel|runtime|3|10/11",
            "gemm|work|0|0/7",
            "cudaStreamSynchronize|wait|2|10/11",
            "Stream Sync|wait|-|0/7",
            "MmBackward0|work|0|10/12",
            "ncclDevKernel_AllReduce|communication|0|0/8",
        ]
    );
    let declared =
        "SELECT c.name, p.name FROM tasks c JOIN tasks p ON p.task = c.parent WHERE c.kind = 'python_function'";
    assert_eq!(rows(&session, declared), ["train.py(2): forward|train.py(1): step"]);
    assert_eq!(
        rows(&session, "SELECT location, name, value, kind, unit FROM counters ORDER BY name"),
        [
            "10|Bytes cuda:0|512.0|delta|bytes",
            "10|Total Allocated cuda:0|1024.0|level|bytes",
            "10|Total Reserved cuda:0|2097152.0|level|bytes",
        ]
    );
    assert_eq!(
        rows(&session, "SELECT location, kind, name FROM locations WHERE kind = 'stream' OR location = '0' ORDER BY 1"),
        ["0|process|GPU 0", "0/7|stream|stream 7 ", "0/8|stream|tid 8"]
    );
    assert_eq!(
        one(&session, "SELECT started_at, args->>'dialect', args->'distributedInfo'->>'world_size' FROM runs"),
        "2023-11-14T22:13:20.001Z|kineto|2"
    );
    assert_eq!(
        one(&session, "SELECT args->>'Comms Id' FROM tasks WHERE role = 'communication'"),
        "18446744073709551617"
    );
    assert_eq!(findings(&session), "info flow_same_as_launch 2, info flow_unbound 1, info overlap 1");
}

#[test]
fn damage_stays_where_it_is() {
    let session = open(&fixture("chrome/damaged.json"));
    assert_books_balance(&session, "damaged");
    assert_eq!(
        rows(&session, "SELECT name, start, finish, depth, args FROM tasks ORDER BY task"),
        [
            r"torch\cuda\__init__.py(3): f|0|90000|0|-",
            r#"args|2000|3000|1|{"loss":"NaN","load":0.5,"step":2}"#,
            "two keys|4000|4000|1|-",
            "jax|5000|5000|1|-",
            "raw\u{1}line\nend|7000|8000|1|-",
            "cut \u{fffd}|9000|10000|1|-",
            "overlaps|49000|149000|-|-",
        ]
    );
    assert_eq!(
        findings(&session),
        "info overlap 1, info rounded 1, lost bad_event 2, lost truncated 1, repaired args_repaired 1, repaired bad_string 2, \
         repaired comma_missing 1, repaired comma_too_many 1, repaired duplicate_key 1, repaired negative_duration 1, \
         repaired not_utf8 1"
    );
}

#[test]
fn forms_orders_and_containers_say_the_same() {
    let events = [
        r#"{"ph":"X","name":"a","cat":"k","pid":1,"tid":2,"ts":10,"dur":5.5,"args":{"x":[1,{"y":"z"}]}}"#,
        r#"{"args":{"x":2},"dur":"1.25","ts":"11","tid":2,"pid":1,"cat":"k","name":"b","ph":"X"}"#,
    ];
    let comma = events.join(",");
    let reversed = "{\"traceName\":\"t\",\"stack\":{\"a\":[[]]},\"traceEvents\":[";
    let huge = "[".repeat(20_000) + &"]".repeat(20_000);
    let texts = [
        format!("[{comma}]"),
        format!("[{comma}"),
        format!("[{comma},"),
        format!("[\r\n{}\r\n]\r\n", events.join("\r\n,\r\n")),
        format!("\u{feff}  [{comma},]"),
        format!("{{\"traceEvents\":[{comma}]}}"),
        format!("{{\"traceEvents\":[{}],\"x\":1,\"traceEvents\":[{}]}}", events[0], events[1]),
        format!("{reversed}{comma}]}}"),
        format!("{{\"huge\":{huge},\"text\":\"{}\",\"traceEvents\":[{comma},{{}}]}}", "x\\\"]}".repeat(50_000)),
    ];
    let sql = "SELECT name, kind, location, start, finish, depth, args FROM tasks ORDER BY task";
    let expected = [r#"a|k|1/2|0|5500|0|{"x":[1,{"y":"z"}]}"#, r#"b|k|1/2|1000|2250|1|{"x":2}"#];
    for text in texts {
        let head: String = text.chars().take(60).collect();
        let session = open_text(&text);
        assert_eq!(rows(&session, sql), expected, "{head}");
        assert_books_balance(&session, &head);
        let lost = rows(&session, "SELECT what FROM import_stats WHERE severity <> 'info'");
        assert!(lost.is_empty(), "{head}: {lost:?}");
    }
}

#[test]
fn an_event_on_each_line_is_a_trace() {
    let event = |name: &str, ts: u32| format!(r#"{{"ph":"X","name":"{name}","pid":1,"tid":1,"ts":{ts},"dur":2}}"#);
    let session = open_text(format!("{}\n{}\n{}\n", event("a", 1), event("b", 2), event("c", 9)));
    assert_eq!(rows(&session, "SELECT name, start FROM tasks ORDER BY task"), ["a|0", "b|1000", "c|8000"]);
    assert_eq!(findings(&session), "info overlap 1, repaired comma_missing 2, repaired no_container 1");
    assert_eq!(one(&open_text(event("only", 1)), "SELECT name FROM tasks"), "only");
    assert_books_balance(&session, "lines");
}

#[test]
fn a_list_of_a_damaged_event_does_not_end_the_trace() {
    let damaged =
        r#"{"ph":"X","name":"x"y","pid":1,"tid":1,"ts":0,"dur":1,"args":{"l":[{"ph":"a"},{"ph":"b"}],"s":1}}"#;
    let event = |name: &str, ts: u32| format!(r#"{{"ph":"X","name":"{name}","pid":1,"tid":1,"ts":{ts},"dur":1}}"#);
    for (begin, end) in
        [("[", "]"), ("{\"traceEvents\":[", "],\"traceName\":\"t\"}"), ("{\"traceEvents\":[", "],\"mine\":1}")]
    {
        let session = open_text(format!("{begin}{damaged},\n{},\n{}{end}", event("a", 5), event("b", 9)));
        assert_eq!(
            rows(&session, "SELECT name FROM tasks WHERE name IN ('a', 'b') ORDER BY task"),
            ["a", "b"],
            "{begin}{end}"
        );
        assert_books_balance(&session, begin);
    }
}

#[test]
fn what_was_closed_before_does_not_enclose() {
    let event =
        |phase: &str, name: &str| format!(r#"{{"ph":"{phase}","name":"{name}","pid":1,"tid":1,"ts":5,"dur":0}}"#);
    let nested = |events: &[(&str, &str)]| {
        let events: Vec<String> = events.iter().map(|(phase, name)| event(phase, name)).collect();
        rows(&open_text(format!("[{}]", events.join(","))), "SELECT name, depth FROM tasks ORDER BY task")
    };
    assert_eq!(nested(&[("B", "f"), ("E", "f"), ("B", "g"), ("E", "g"), ("X", "h")]), ["f|0", "g|0", "h|0"]);
    assert_eq!(
        nested(&[("B", "f"), ("B", "g"), ("E", "g"), ("B", "h"), ("E", "h"), ("E", "f")]),
        ["f|0", "g|1", "h|1"]
    );
}

#[test]
fn operators_are_of_the_process_that_launched() {
    let of_process = |pid: u32, device: u32, correlation: u32, ts: u32| {
        format!(
            r#"{{"ph":"X","cat":"cpu_op","name":"op{pid}","pid":{pid},"tid":1,"ts":{ts},"dur":100,"args":{{"External id":7}}}},
               {{"ph":"X","cat":"cuda_runtime","name":"launch","pid":{pid},"tid":1,"ts":{},"dur":10,"args":{{"correlation":{correlation},"External id":7}}}},
               {{"ph":"X","cat":"kernel","name":"k{pid}","pid":{device},"tid":7,"ts":{},"dur":10,"args":{{"correlation":{correlation},"External id":7}}}}"#,
            ts + 10,
            ts + 50
        )
    };
    let session = open_text(format!("[{},{}]", of_process(10, 0, 41, 0), of_process(20, 1, 42, 5)));
    let links = "SELECT s.name, t.name FROM links l JOIN tasks s ON s.task = l.source JOIN tasks t ON t.task = l.target \
                 WHERE l.kind = 'operator' ORDER BY 1";
    assert_eq!(rows(&session, links), ["op10|k10", "op20|k20"]);
}

#[test]
fn what_is_no_trace_is_refused_or_left_to_others() {
    for text in ["{\"meta\":{},\"threads\":[]}", "[[1,2],[3]]", "{\"nodes\":[],\"samples\":[]}", "{\"traceEvents\":{}}"]
    {
        assert!(!format!("{:?}", try_open(file_of(text).path(), 1).err()).contains("chrome"), "{text}");
    }
    let utf16: Vec<u8> = "\u{feff}[{\"ph\":\"X\"}]".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let error = try_open(file_of(utf16).path(), 1).err().unwrap_or_default();
    assert!(error.contains("UTF-16LE"), "{error}");
    for text in ["[]", "{\"traceEvents\":[]}", "{\"traceEvents\":[{}]}", "{\"traceEvents\":[null]}"] {
        assert_eq!(findings(&open_text(text)), "info no_events 1", "{text}");
    }
}

/// Data in flight is no work: streams of NCCL and gloo's threads are no places of execution.
#[test]
fn what_only_copies_or_communicates_executes_nothing() {
    let session = open(&fixture("chrome/nccl_ranks"));
    let carriers = "SELECT location, kind FROM locations WHERE role = 'communication' ORDER BY location";
    assert_eq!(rows(&session, carriers), ["rank 0/0/20|stream", "rank 1/1/20|stream"]);
    let lanes = "SELECT location FROM working_lanes WHERE kind = 'stream' ORDER BY location";
    assert_eq!(rows(&session, lanes), ["rank 0/0/7", "rank 1/1/7"]);
    let session = open(&fixture("chrome/ddp_gloo"));
    assert_eq!(
        one(&session, "SELECT count(*), count(DISTINCT location) FROM tasks WHERE role = 'communication'"),
        "12|4"
    );
    assert_eq!(one(&session, "SELECT count(*) FROM locations WHERE role = 'communication'"), "4");
    assert_eq!(one(&session, "SELECT count(*) FROM working_lanes"), "2");
}

#[test]
fn ranks_of_a_directory_are_one_run() {
    let session = open(&fixture("chrome/ddp_gloo"));
    assert_books_balance(&session, "ddp_gloo");
    assert_eq!(one(&session, "SELECT run, processes, tasks, args->>'ranks' FROM runs"), "ddp_gloo|2|1452|[0,1]");
    assert_eq!(
        rows(
            &session,
            "SELECT process, count(*), count(DISTINCT clock), min(clock) FROM locations GROUP BY process ORDER BY 1"
        ),
        ["0|7|1|rank 0", "1|7|1|rank 1"]
    );
    assert_eq!(
        rows(&session, "SELECT location, parent, kind FROM locations WHERE kind = 'rank' ORDER BY 1"),
        ["rank 0|-|rank", "rank 1|-|rank"]
    );
    assert_eq!(one(&session, "SELECT min(start) FROM tasks"), "0");
    // Flows are joined within a rank.
    assert_eq!(
        one(
            &session,
            "SELECT count(*) FROM links l JOIN tasks s ON s.task = l.source JOIN tasks t ON t.task = l.target WHERE split_part(CAST(s.location AS VARCHAR), '/', 1) <> split_part(CAST(t.location AS VARCHAR), '/', 1)"
        ),
        "0"
    );
    assert_eq!(one(&session, "SELECT count(*) FROM links WHERE name = 'fwdbwd'"), "56");
    // The same file alone has no ranks.
    let alone = open(&fixture("chrome/ddp_gloo/rank-1.json.gz"));
    assert_eq!(one(&alone, "SELECT count(*) FROM locations WHERE kind = 'rank'"), "0");
}

#[test]
fn our_own_recordings_read_in_full() {
    for (name, tasks, dialect) in [
        ("torch215_cpu.json.gz", 1084, "kineto"),
        ("node20_trace_events.json.gz", 69 + 830 + 9, "-"),
        ("jax_cpu_trace_viewer.json.gz", 3534, "xprof"),
    ] {
        let session = open(&fixture("chrome").join(name));
        assert_books_balance(&session, name);
        assert_eq!(one(&session, "SELECT count(*) FROM tasks"), tasks.to_string(), "{name}");
        assert_eq!(one(&session, "SELECT args->>'dialect' FROM runs"), dialect, "{name}");
        let lost = rows(
            &session,
            "SELECT what, example FROM import_stats WHERE severity <> 'info' AND what <> 'unmatched_end'",
        );
        assert!(lost.is_empty(), "{name}: {lost:?}");
    }
}

// Blocks.

/// Events of many shapes, more than one block of them.
fn many(events: usize) -> String {
    let mut text = "{\"traceEvents\":[\n".to_owned();
    for at in 0..events {
        let (ts, tid) = (at * 3, at % 5);
        let comma = if at == 0 { "" } else { ",\n" };
        match at % 11 {
            3 => write!(text, r#"{comma}{{"ph":"B","pid":1,"tid":{tid},"ts":{ts},"name":"begin {}","args":{{"list":[{{"a":1}},{{"ph":"X","b":2}},{{"c":3}}]}}}}"#, at % 17),
            4 => write!(text, r#"{comma}{{"ph":"E","pid":1,"tid":{},"ts":{ts}}}"#, (at - 1) % 5),
            5 => write!(text, r#"{comma}{{"ph":"C","pid":1,"ts":{ts},"name":"c","args":{{"v":{at}}}}}"#),
            6 => write!(text, r#"{comma}{{"ph":"i","pid":1,"tid":{tid},"ts":{ts},"name":"}},{{\"ph\":\"X\"","s":"t"}}"#),
            _ => write!(text, r#"{comma}{{"ph":"X","cat":"k{}","pid":1,"tid":{tid},"ts":{ts}.{:03},"dur":2.5,"name":"name {}","args":{{"n":{at}}}}}"#, at % 3, at % 1000, at % 97),
        }
        .expect("memory");
    }
    text.push_str("\n]}\n");
    text
}

#[test]
fn blocks_are_put_together_in_order_on_any_number_of_threads() {
    let text = many(120_000);
    assert!(text.len() > 2 * (4 << 20));
    let file = file_of(&text);
    let digest = "SELECT name, kind, count(*), min(task), max(task), sum(task * (start / 1000 + 1)), sum(length(args)) FROM tasks GROUP BY 1, 2 ORDER BY 1, 2";
    let mut digests = Vec::new();
    for threads in [1, 2, 3] {
        let session = try_open(file.path(), threads).expect("a trace");
        assert_books_balance(&session, "many");
        assert_eq!(findings(&session), "");
        assert_eq!(one(&session, "SELECT count(*), count(finish) FROM tasks"), "87273|87273");
        digests.push((rows(&session, digest), one(&session, "SELECT count(*), sum(time), sum(value) FROM counters")));
    }
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn a_guess_that_is_wrong_is_noticed() {
    // Arguments that look like events where blocks are cut, and an event longer than a block.
    let inner = r#"{"ph":"X","name":"inner","pid":9,"tid":9,"ts":1,"dur":1},"#.repeat(160_000);
    let list = inner.trim_end_matches(',');
    let text = format!(
        r#"[{{"ph":"X","name":"first","pid":1,"tid":1,"ts":1,"dur":9,"args":{{"list":[{list}]}}}},{{"ph":"X","name":"second","pid":1,"tid":1,"ts":2,"dur":1}}]"#
    );
    for threads in [1, 2] {
        let session = try_open(file_of(&text).path(), threads).expect("a trace");
        assert_eq!(rows(&session, "SELECT name, depth FROM tasks ORDER BY task"), ["first|0", "second|1"]);
        assert_eq!(findings(&session), "");
        assert_books_balance(&session, "inner");
    }
}

#[test]
fn much_may_stand_behind_the_events() {
    let event = r#"{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}"#;
    let source = r#"def f(): return [{\"ph\": \"X\"}, {\"ph\": \"X\"}]\n"#.repeat(100_000);
    let fake = r#"{"ph":"X","name":"fake","pid":1,"tid":1,"ts":1,"dur":1},"#.repeat(40_000);
    let text = format!(
        r#"{{"traceEvents":[{event}],"file_info":{{"f":["{source}",1]}},"other":[{fake}{event}],"traceEvents":[{event}],"last":2}}"#
    );
    for threads in [1, 2] {
        let session = try_open(file_of(&text).path(), threads).expect("a trace");
        assert_eq!(one(&session, "SELECT count(*) FROM tasks"), "2");
        assert_eq!(findings(&session), "info header_left_out 2");
        assert_eq!(one(&session, "SELECT args->>'last' FROM runs"), "2");
    }
}

#[test]
fn a_broken_off_compressed_stream_keeps_what_came() {
    let mut text = Vec::new();
    let file = std::fs::File::open(fixture("chrome/torch215_cpu.json.gz")).expect("a fixture");
    file.take(20_000).read_to_end(&mut text).expect("readable");
    let session = open_text(&text);
    assert_eq!(one(&session, "SELECT sum(count) FROM import_stats WHERE what = 'truncated'"), "1");
    let tasks: usize = one(&session, "SELECT count(*) FROM tasks").parse().expect("a number");
    assert!(tasks > 300, "{tasks}");
}

// The collection of recordings.

fn recordings() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["kineto", "dialects", "multirank", "multirank_gloo", "perfetto-cases"] {
        let Some(folder) = shared(&format!("traces/chrome/{folder}")) else { continue };
        found.extend(std::fs::read_dir(folder).expect("readable").map(|entry| entry.expect("an entry").path()));
    }
    found.sort();
    found
}

#[test]
fn the_books_of_all_recordings_balance() {
    for path in recordings() {
        let session = open(&path);
        assert_books_balance(&session, &path.display().to_string());
    }
}

/// Names, totals, self times, depths and overlaps of complete events, computed by another program.
#[test]
fn statistics_equal_an_independent_computation() {
    let Some(expected) = shared("expected/perfetto/computed") else { return };
    let folders = ["kineto", "dialects", "multirank_gloo"];
    let mut compared = 0;
    for path in recordings()
        .into_iter()
        .filter(|path| folders.iter().any(|folder| path.parent().is_some_and(|parent| parent.ends_with(folder))))
    {
        let file = path.file_name().expect("a name").to_string_lossy();
        let stem = file.split('.').next().expect("a stem");
        let names = ["csv", "csv.zst"].map(|extension| expected.join(format!("{stem}.names.{extension}")));
        let Some(names) = names.iter().find(|path| path.exists()) else { continue };
        let session = open(&path);
        // Only node has tasks that are no complete events: those of B and E are of these kinds, asynchronous ones lie elsewhere.
        let complete =
            "kind NOT IN ('node,node.fs,node.fs.sync', 'devtools.timeline,v8') AND location NOT LIKE '%/async %'";
        let sql = format!(
            "WITH complete AS (SELECT * FROM tasks WHERE {complete}), \
             inside AS (SELECT stack_parent AS task, sum(duration) AS children FROM complete WHERE stack_parent IS NOT NULL GROUP BY 1) \
             SELECT name, count(*), sum(duration), sum(duration - coalesce(children, 0)) FROM complete LEFT JOIN inside USING (task) GROUP BY name"
        );
        let mut actual = rows(&session, &sql);
        let mut wanted: Vec<String> = csv(names).into_iter().map(|row| row.join("|")).collect();
        actual.sort();
        wanted.sort();
        assert_eq!(actual.len(), wanted.len(), "{stem}");
        for (actual, wanted) in actual.iter().zip(&wanted) {
            assert_eq!(actual, wanted, "{stem}");
        }
        let mut wanted: Vec<String> =
            csv(&expected.join(format!("{stem}.depth.csv"))).into_iter().map(|row| row.join("|")).collect();
        let depths = format!(
            "SELECT coalesce(CAST(depth AS VARCHAR), 'overlap'), count(*) FROM tasks WHERE {complete} GROUP BY 1"
        );
        let mut actual = rows(&session, &depths);
        actual.sort();
        wanted.sort();
        wanted.retain(|row| row != "overlap|0");
        if stem == "node20_trace_events" {
            // The computation knows complete events only; one of them lies inside of a `B`, and so a level deeper here.
            assert_eq!(wanted, ["0|40", "1|29"]);
            wanted = vec!["0|39".to_owned(), "1|30".to_owned()];
        }
        assert_eq!(actual, wanted, "{stem}");
        compared += 1;
    }
    assert_eq!(compared, 10);
}

#[test]
fn overlaps_are_the_true_ones() {
    for (name, overlaps) in [
        ("ns_resolution", "-"),
        ("b200_eager", "42"),
        ("alexnet", "8"),
        ("torch215_cpu", "12"),
        ("resnet_ddp_mi300_rank0", "15"),
    ] {
        let Some(path) = recordings().into_iter().find(|path| path.to_string_lossy().contains(name)) else { continue };
        let session = open(&path);
        assert_eq!(one(&session, "SELECT sum(count) FROM import_stats WHERE what = 'overlap'"), overlaps, "{name}");
    }
}

/// Holistic Trace Analysis joins calls and device work in its own way; sums are in whole microseconds.
#[test]
fn launches_equal_those_of_another_program() {
    for name in ["alexnet", "event_sync", "event_sync_ms"] {
        let Some(expected) = shared(&format!("expected/hta/{name}.launch_stats.csv")) else { continue };
        let Some(path) = shared(&format!("traces/chrome/kineto/{name}.json.gz")) else { continue };
        let sum = |rows: &[Vec<String>], column: usize| {
            rows.iter().map(|row| row[column].parse::<f64>().expect("a number") * 1e3).sum::<f64>() as i64
        };
        let launches = csv(&expected);
        let wanted = format!("{}|{}|{}", launches.len(), sum(&launches, 2), sum(&launches, 3));
        let session = open(&path);
        let sums = "SELECT count(*), sum(s.duration), sum(t.duration) FROM links JOIN tasks s ON s.task = source JOIN tasks t ON t.task = target WHERE links.kind = 'launch'";
        assert_eq!(one(&session, sums), wanted, "{name}");
    }
}

/// The cells of a CSV file, without its header.
fn csv(path: &Path) -> Vec<Vec<String>> {
    let text = text_of(path).unwrap_or_else(|| panic!("{}", path.display()));
    tq_tests::csv(&text).split_off(1)
}

// Perfetto's golden cases.

fn case(name: &str) -> Option<(Session, Vec<String>)> {
    let trace = shared(&format!("traces/chrome/perfetto-cases/{name}.json"))?;
    let table = shared(&format!("expected/perfetto/{name}.csv"))?;
    let rows = csv(&table).into_iter().filter(|row| *row != [""]).map(|row| row.join("|").replace("[NULL]", "-"));
    let session = open(&trace);
    assert_books_balance(&session, name);
    Some((session, rows.collect()))
}

/// Rows of a query equal the golden table, in any order.
fn check(name: &str, sql: &str) {
    check_columns(name, sql, &[]);
}

/// An `X` without `dur` is no slice there, and a task without an end here: Chrome writes it for what is open when recording
/// stops.
const WITHOUT_DUR: &str = "CompleteNoDur";

/// The same for some columns of the golden table.
fn check_columns(name: &str, sql: &str, columns: &[usize]) {
    let Some((session, mut expected)) = case(name) else { return };
    if !columns.is_empty() {
        for row in &mut expected {
            let cells: Vec<&str> = row.split('|').collect();
            *row = columns.iter().map(|&column| cells[column]).collect::<Vec<_>>().join("|");
        }
        expected.dedup();
    }
    let mut actual = rows(&session, sql);
    actual.retain(|row| !row.contains(WITHOUT_DUR));
    actual.sort();
    expected.sort();
    assert_eq!(actual, expected, "{name}");
}

/// Start and duration as Perfetto has them: since the trace's own zero, -1 for what never ended.
const TS: &str = "start + (SELECT origin FROM runs)";
const DUR: &str = "coalesce(duration, -1)";
/// Tasks of threads; asynchronous ones have other locations, in Perfetto other tracks.
const SLICES: &str = "tasks JOIN locations USING (location) WHERE locations.kind = 'thread'";

#[test]
fn golden_slices() {
    let ts_dur_name = format!("SELECT {TS}, {DUR}, name FROM tasks");
    for name in
        ["decimal_timestamp_slices", "display_time_unit_slices", "string_ts_and_dur", "invalid_string_ts_and_dur"]
    {
        check(name, &ts_dur_name);
    }
    check("json_incomplete", &format!("SELECT {TS} FROM tasks"));
    let name_ts_dur = format!("SELECT name, {TS}, {DUR} FROM tasks");
    for name in ["json_trailing_comma", "string_ts_trailing_chars", "json_pid_tid_zero"] {
        check(name, &name_ts_dur);
    }
    check("x_event_order", &format!("SELECT {TS}, {DUR}, name, depth FROM tasks"));
    for name in [
        "same_ts_duration_slice_then_zero_duration_slice_unnesting",
        "same_ts_two_duration_slice_unnesting",
        "same_ts_two_zero_duration_slice_nesting",
        "same_ts_zero_duration_slice_then_begin_end_slice_unnesting",
        "same_ts_zero_duration_slice_then_duration_slice_unnesting",
    ] {
        check(name, "SELECT name, depth FROM tasks");
    }
    check(
        "trailing_empty_event",
        "SELECT (SELECT count(*) FROM import_stats WHERE severity = 'lost') AS failures, count(*) AS slices FROM tasks",
    );
    // Perfetto's third count is of slices that it dropped; we drop none.
    check(
        "overlapping_complete_event_recovered",
        "SELECT count(*) AS slices, (SELECT sum(count) FROM import_stats WHERE what = 'overlap') AS spills, 0 AS drops FROM tasks",
    );
}

#[test]
fn golden_names_and_ids() {
    let names = "JOIN locations l USING (location) JOIN locations p ON p.location = l.parent";
    check("string_pid_tid", &format!("SELECT {TS}, {DUR}, tasks.name, p.name, l.name FROM tasks {names}"));
    // Where the trace has no name, Perfetto has NULL and we say `tid 32`.
    let or_null =
        |table: &str, prefix: &str| format!("CASE WHEN {table}.name LIKE '{prefix} %' THEN NULL ELSE {table}.name END");
    let nulls = "CAST(NULL AS VARCHAR) AS a, CAST(NULL AS VARCHAR) AS b, CAST(NULL AS VARCHAR) AS c, CAST(NULL AS VARCHAR) AS d";
    let sql = format!(
        "SELECT {TS}, {DUR}, tasks.name, {}, l.args->>'tid', {}, l.args->>'pid', {nulls} FROM tasks {names}",
        or_null("l", "tid"),
        or_null("p", "pid")
    );
    for name in ["json_metadata", "json_extreme_vals"] {
        check(name, &sql);
    }
    check("json_metadata_missing_or_invalid_ts", "SELECT args->>'pid', name FROM locations WHERE kind = 'process'");
    // Perfetto lists a row 0,0 for the kernel's idle process, and the main thread of each process; a Chrome trace has neither.
    let Some((session, expected)) = case("json_sort_index_hints") else { return };
    assert_eq!(expected, ["0|0|-|-", "30|30|-2|-", "30|31|-2|5", "40|40|10|-"]);
    assert_eq!(rows(&session, "SELECT location, sort_index FROM locations ORDER BY 1"), ["30|-2", "30/31|5", "40|10"]);
    // The same for process 0 and thread 10.
    let Some((session, expected)) = case("json_sort_index_ordering") else { return };
    let ordered = |kind: &str| {
        rows(
            &session,
            &format!(
                "SELECT '{kind}', split_part(CAST(location AS VARCHAR), '/', -1), coalesce(sort_index, 0) FROM locations WHERE kind = '{kind}' AND (kind = 'process' OR parent = '10') ORDER BY 3, 2"
            ),
        )
    };
    let expected: Vec<&String> =
        expected.iter().filter(|row| !["process|0|0", "thread|10|0"].contains(&row.as_str())).collect();
    let actual = [ordered("process"), ordered("thread")].concat();
    assert_eq!(actual.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn golden_arguments_and_thread_times() {
    let Some((session, expected)) = case("args_ordered") else { return };
    assert_eq!(expected, ["Event1|args.02.step2|2", "Event2|args.01.step1|1", "Event2|args.02.step2|2"]);
    assert_eq!(
        rows(&session, "SELECT name, args FROM tasks ORDER BY task"),
        [r#"Event1|{"02.step2":2}"#, r#"Event2|{"01.step1":1,"02.step2":2}"#]
    );
    // Thread times stay as the trace writes them, in microseconds.
    let ns = |key: &str| format!("CAST(CAST(args->>'{key}' AS DOUBLE) * 1000 AS BIGINT)");
    let (tts, tdur) = (ns("tts"), ns("tdur"));
    check("string_tts_and_tdur", &format!("SELECT {TS}, {DUR}, name, {tts}, {tdur} FROM tasks"));
    check(
        "thread_time_in_thread_slice",
        &format!("SELECT name, {tts}, {tdur} FROM tasks UNION ALL SELECT name, NULL, NULL FROM events"),
    );
    let Some((session, expected)) = case("json_trace_metadata") else { return };
    assert_eq!(expected.len(), 5);
    assert_eq!(
        one(
            &session,
            "SELECT args->'metadata'->>'source', args->'metadata'->>'startTime', args->'metadata'->>'cpuThrottling', args->'metadata'->>'networkThrottling', args->'metadata'->>'hardwareConcurrency' FROM runs"
        ),
        "DevTools|2023-09-21T21:04:15.706Z|1|No throttling|12"
    );
}

#[test]
fn golden_phases() {
    // Instants of the whole trace have no location here and are on another track there: both leave them out.
    let all = format!(
        "SELECT {TS}, {DUR}, name FROM tasks UNION ALL SELECT time + (SELECT origin FROM runs), 0, name FROM events WHERE location IS NOT NULL"
    );
    check_columns("json_all_slice_types", &all, &[0, 1, 2]);
    let Some((session, _)) = case("json_all_slice_types") else { return };
    assert_eq!(
        one(&session, "SELECT args FROM tasks WHERE name = 'BeginEvent'").replace(' ', ""),
        r#"{"arg_str":"hello","arg_int":123,"arg_bool":true}"#
    );
    check(
        "json_flow",
        &format!(
            "SELECT {TS}, {DUR}, name, (SELECT count(*) FROM links) AS fin, (SELECT count(*) FROM links) AS fout FROM tasks WHERE name = 'BeginEvent'"
        ),
    );
    for name in ["json_async", "json_id2"] {
        check(name, &format!("SELECT tasks.name FROM {SLICES}"));
    }
    for name in
        ["json_id2_global_int_id", "json_id2_global_string_id", "json_id2_local_int_id", "json_id2_local_string_id"]
    {
        check_columns(name, &format!("SELECT name, {TS}, {DUR} FROM tasks"), &[0, 1, 2]);
    }
    // A process without a name is `pid 300` here.
    check(
        "json_counter_args",
        "SELECT l.args->>'pid', CAST(NULL AS VARCHAR), c.name, CAST(value AS DECIMAL(20, 6)) FROM counters c JOIN locations l USING (location)",
    );
    check(
        "counters_json_counters",
        "SELECT name, time + (SELECT origin FROM runs), CAST(value AS DECIMAL(20, 6)) FROM counters",
    );
    let states = format!(
        "{TS}, {DUR}, tasks.name, tasks.args->>'io_wait', tasks.args->>'blocked_function', t.args->>'tid', p.args->>'pid'"
    );
    let lanes = "JOIN locations l USING (location) JOIN locations t ON t.location = l.parent JOIN locations p ON p.location = t.parent";
    check("json_thread_state", &format!("SELECT {states} FROM tasks {lanes} WHERE tasks.kind = 'state'"));
    check(
        "json_thread_state_sched",
        &format!(
            "SELECT {TS}, {DUR}, tasks.args->>'cpu', t.args->>'tid', p.args->>'pid' FROM tasks {lanes} WHERE tasks.name = 'Running'"
        ),
    );
}

#[test]
fn golden_flows_and_logs() {
    let flows =
        "SELECT s.name, t.name FROM links l JOIN tasks s ON s.task = l.source JOIN tasks t ON t.task = l.target";
    check("flow_events_json_v1", flows);
    check("flow_events_json_v2", flows);
    // Perfetto logs which slices conflict; here the example of the finding says so.
    let Some((session, expected)) = case("overlapping_complete_event_import_log") else { return };
    assert_eq!(expected.len(), 7);
    assert_eq!(
        one(&session, "SELECT example FROM import_stats WHERE what = 'overlap'"),
        "`inner` begins inside of `outer` on 1/1 and ends after it"
    );
}

/// What `--format chrome` wrote reads back as the same tasks.
#[test]
fn a_query_written_as_a_trace_reads_back() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("again.json");
    let tasks = BTreeMap::from([("a", (0, 10_001)), ("b \"q\"", (5, 10_000)), ("c", (7, 7))]);
    let mut text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[".to_owned();
    text.push_str(r#"{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"run"}},{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"w"}}"#);
    for (name, (start, finish)) in &tasks {
        let us = |ns: i64| format!("{}.{:03}", ns / 1000, ns % 1000);
        let name = serde_json::Value::from(*name);
        write!(
            text,
            r#",{{"ph":"X","name":{name},"pid":1,"tid":1,"ts":{},"dur":{},"cat":"k","args":{{"task":1}}}}"#,
            us(*start),
            us(finish - start)
        )
        .expect("memory");
    }
    text.push_str("\n]}\n");
    std::fs::write(&path, text).expect("written");
    let session = open(&path);
    let expected: Vec<String> =
        tasks.iter().map(|(name, (start, finish))| format!("{name}|{start}|{finish}|w")).collect();
    assert_eq!(
        rows(
            &session,
            "SELECT t.name, start, finish, l.name FROM tasks t JOIN locations l USING (location) ORDER BY start"
        ),
        expected
    );
}
