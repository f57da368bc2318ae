//! `--format chrome`, and its round trips.

use std::path::Path;
use std::process::Command;

use expect_test::expect;

use super::Place;

/// What a query's rows, columns and tables say, a line per row.
fn answer(trace: &Path, sql: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tq")).arg("query").arg(trace).args(["-c", sql]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const TASKS: &str =
    "SELECT name, kind, location, start, finish, depth, args FROM tasks ORDER BY start, finish, name, location";
const PARENTS: &str =
    "SELECT c.name, c.start, p.name, p.start FROM tasks c JOIN tasks p ON p.task = c.stack_parent ORDER BY 2, 1, 4, 3";
const LINKS: &str = "SELECT l.kind, coalesce(l.name, ''), s.name, s.start, t.name, t.start FROM links l JOIN tasks s ON s.task = l.source \
                     JOIN tasks t ON t.task = l.target ORDER BY 1, 2, 4, 6, 3, 5";
const COUNTERS: &str = "SELECT location, name, time, value FROM counters ORDER BY time, name, location";
const LOCATIONS: &str =
    "SELECT location, parent, name, kind, process, role, sort_index, clock, args FROM locations ORDER BY location";

/// Writes all tasks of a trace as a Chrome trace.
fn write(trace: &Path, to: &Path) {
    let written = Command::new(env!("CARGO_BIN_EXE_tq"))
        .arg("query")
        .arg(trace)
        .args(["-c", "SELECT * FROM tasks", "--format", "chrome", "-o"])
        .arg(to)
        .output()
        .unwrap();
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let text = std::fs::read_to_string(to).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{} is no JSON", trace.display());
}

/// Tasks, links and counters that are written as a Chrome trace are the same when it is opened.
#[test]
fn a_written_chrome_trace_reads_back_as_the_same_tables() {
    // `S`, `T`, `F` of old become `b`, `n`, `e`.
    const EVENTS: &str = "SELECT CASE kind WHEN 'step' THEN 'async_instant' ELSE kind END, location, name, time, \
                          args->'ph', args->'id', args->'cat', args->'snapshot', args->'step' FROM events ORDER BY time, name";
    const RUN: &str = "SELECT origin, makespan, started_at, args FROM runs";
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/chrome");
    let folder = tempfile::tempdir().unwrap();
    // Of two tasks with one span the first is around the other, whatever their names.
    let pairs = (0..60).flat_map(|pair| [("z", pair), ("a", pair)]);
    let event =
        |(name, pair)| format!(r#"{{"ph":"X","name":"{name}{pair}","pid":1,"tid":1,"ts":{},"dur":5}}"#, pair / 2 * 9);
    let ties = folder.path().join("pairs.json");
    std::fs::write(&ties, format!("[{}]", pairs.map(event).collect::<Vec<_>>().join(","))).unwrap();
    let fixture = |name: &str| (fixtures.join(name), folder.path().join(name.trim_end_matches(".gz")));
    let traces =
        ["phases.json", "kineto_tiny.json", "torch215_cpu.json.gz", "node20_trace_events.json.gz"].map(fixture);
    for (trace, again) in traces.into_iter().chain([(ties, folder.path().join("again.json"))]) {
        let name = trace.display();
        write(&trace, &again);
        for sql in [TASKS, PARENTS, LINKS, COUNTERS, EVENTS, LOCATIONS, RUN] {
            assert_eq!(answer(&again, sql), answer(&trace, sql), "{name}: {sql}");
        }
    }
}

/// Traces of other formats keep their locations, kinds of links and events, and times.
#[test]
fn a_written_trace_of_another_format_keeps_its_locations() {
    const EVENTS: &str = "SELECT kind, location, name, time, args FROM events ORDER BY time, name, location, args";
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let folder = tempfile::tempdir().unwrap();
    let again = folder.path().join("again.json");
    // Locations above threads, events and links of NVTX; several executors; counters of threads.
    for name in [
        "nsys/two_streams.sqlite",
        "tfprof/wavefront_40.json",
        "tfprof/execs_40.json",
        "actorprof/triangle_range/PE0_PAPI.csv",
    ] {
        let trace = fixtures.join(name);
        write(&trace, &again);
        for sql in [TASKS, PARENTS, LINKS, COUNTERS, EVENTS, LOCATIONS] {
            assert_eq!(answer(&again, sql), answer(&trace, sql), "{name}: {sql}");
        }
    }
}

/// Such a file may come from a stranger: no two threads are one location, and none takes the place of another one.
#[test]
fn what_a_file_says_of_its_locations_is_not_believed_twice() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("hostile.json");
    let told = r#"
        [{"ph":"M","name":"tq_location","pid":1,"args":{"location":"a","kind":"worker","parent":"nowhere","args":"{\"x\":1}"}},
         {"ph":"M","name":"tq_location","pid":1,"args":{"location":"a","kind":"again"}},
         {"ph":"M","name":"tq_location","pid":1,"args":{"location":"1/3","kind":"worker"}},
         {"ph":"M","name":"tq_location","pid":1,"args":{"location":7}},
         {"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"a","tq_location":"a"}},
         {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"b","tq_location":"a"}},
         {"ph":"M","name":"thread_name","pid":1,"tid":4,"args":{"name":"c","tq_location":"1/3"}},
         {"ph":"X","name":"t1","pid":1,"tid":1,"ts":1,"dur":1},
         {"ph":"X","name":"t2","pid":1,"tid":2,"ts":2,"dur":1},
         {"ph":"X","name":"t3","pid":1,"tid":3,"ts":3,"dur":1},
         {"ph":"X","name":"t4","pid":1,"tid":4,"ts":4,"dur":1}]"#;
    std::fs::write(&trace, told).unwrap();
    let tasks = answer(&trace, "SELECT name, location, start FROM tasks ORDER BY name");
    assert_eq!(tasks, "name,location,start\nt1,a,1000\nt2,1/2,2000\nt3,1/3,3000\nt4,1/4,4000\n");
    let locations =
        answer(&trace, "SELECT location, kind, parent, args IS NULL AS bare FROM locations ORDER BY location");
    let expected = "location,kind,parent,bare\n1,process,,false\n1/2,thread,1,false\n1/3,worker,,true\n1/4,thread,1,false\na,worker,,false\n";
    assert_eq!(locations, expected);
}

#[test]
fn a_chrome_trace_has_exact_microseconds() {
    Place::new()
        .tq("query run.json -c 'SELECT run, location, name, kind, start, finish FROM tasks' --format chrome")
        .check(&expect![[r#"
            {"displayTimeUnit":"ns","traceEvents":[
            {"ph":"M","name":"tq_location","pid":1,"args":{"args":"{\"uid\":\"0\"}","clock":"E0","kind":"executor","location":"E0","role":"compute","sort_index":0}},
            {"ph":"M","name":"tq_location","pid":1,"args":{"clock":"E0","kind":"worker","location":"E0/W0","parent":"E0","role":"compute","sort_index":1}},
            {"ph":"M","name":"tq_location","pid":1,"args":{"clock":"E0","kind":"worker","location":"E0/W1","parent":"E0","role":"compute","sort_index":2}},
            {"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"run"}},
            {"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{"name":"E0/W0","tq_location":"E0/W0"}},
            {"ph":"M","name":"thread_sort_index","pid":1,"tid":1,"args":{"sort_index":1}},
            {"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":40,"cat":"static"},
            {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"E0/W1","tq_location":"E0/W1"}},
            {"ph":"M","name":"thread_sort_index","pid":1,"tid":2,"args":{"sort_index":2}},
            {"ph":"X","name":"b","pid":1,"tid":2,"ts":20,"dur":60,"cat":"static"},
            {"ph":"X","name":"c","pid":1,"tid":1,"ts":50,"dur":10,"cat":"static"}
            ]}
            --- exit 0
        "#]]);
}
