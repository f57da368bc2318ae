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

const TASKS: &str = "SELECT t.name, t.kind, t.role, t.location, t.id, t.start, t.finish, t.depth, t.args, p.name AS parent, p.start AS since, \
     s.name AS around, s.start AS begun FROM tasks t LEFT JOIN tasks p ON p.task = t.parent LEFT JOIN tasks s ON s.task = t.stack_parent \
     WHERE t.start IS NOT NULL ORDER BY t.start, t.finish, t.name, t.location, t.id, t.args, p.name, p.start, s.name, s.start";
const LINKS: &str = "SELECT l.kind, l.name, l.args, s.name, s.start, s.location, t.name, t.start, t.location FROM links l \
     JOIN tasks s ON s.task = l.source JOIN tasks t ON t.task = l.target ORDER BY 1, 2, 5, 8, 4, 7, 6, 9, 3";
const COUNTERS: &str = "SELECT c.location, c.name, c.time, c.value, c.kind, c.unit, t.name, t.start FROM counters c \
     LEFT JOIN tasks t ON t.task = c.task ORDER BY c.time, c.name, c.location, c.value, t.start, t.name";
const LOCATIONS: &str = "SELECT location, parent, name, kind, process, role, sort_index, clock, args FROM locations ORDER BY location, args";

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
        for sql in [TASKS, LINKS, COUNTERS, EVENTS, LOCATIONS, RUN] {
            assert_eq!(answer(&again, sql), answer(&trace, sql), "{name}: {sql}");
        }
    }
}

const EVENTS: &str = "SELECT e.kind, e.location, e.name, e.time, e.args, t.name, t.start FROM events e LEFT JOIN tasks t ON t.task = e.task \
     ORDER BY e.time, e.name, e.location, e.args, t.start, t.name";

/// Traces of other formats, and several ranks, keep all that has a time; messages are counted.
#[test]
fn a_written_trace_of_another_format_reads_back_as_the_same_tables() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let folder = tempfile::tempdir().unwrap();
    let again = folder.path().join("again.json");
    // Locations above threads, events and links of NVTX; several executors; counters and tags of several runs; parents on other
    // locations, picoseconds and what does not nest; units; roles and kinds that are NULL; asynchronous spans of ranks.
    for name in [
        "nsys/two_streams.sqlite",
        "tfprof/wavefront_40.json",
        "tfprof/nested_40.json",
        "tfprof/execs_40.json",
        "actorprof/triangle_range/PE0_PAPI.csv",
        "actorprof/quirks",
        "parsec/dtd6-1r",
        "parsec/synth-1r",
        "daisen/queue_v49.sqlite3.zst",
        "daisen/fir64_v3.csv.zst",
        "table/halo.csv",
        "table/render_log.csv",
        "pascal/regions.json",
        "chrome/nccl_ranks",
    ] {
        let trace = fixtures.join(name);
        write(&trace, &again);
        for sql in [TASKS, LINKS, COUNTERS, EVENTS, LOCATIONS] {
            assert_eq!(answer(&again, sql), answer(&trace, sql), "{name}: {sql}");
        }
    }
}

/// Runs of one session are processes of one file, and runs again when it is read; what it is written as once more is the same.
#[test]
fn several_runs_come_back_from_one_file() {
    const RUNS: &str = "SELECT t.run, t.name, t.role, t.location, t.start, t.finish, p.name AS parent FROM tasks t \
                        LEFT JOIN tasks p ON p.task = t.parent ORDER BY t.run, t.start, t.finish, t.name, t.location";
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures");
    let folder = tempfile::tempdir().unwrap();
    let [once, twice] = ["once.json", "twice.json"].map(|name| folder.path().join(name));
    let run = |name: &str, path: &str| format!("{name}={}", fixtures.join(path).display());
    let given = [run("base", "chrome/kineto_tiny.json"), run("new", "daisen/queue_v49.sqlite3.zst")];
    let tq = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tq")).arg("query").args(&given).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    };
    let written = tq(&["-c", "SELECT * FROM tasks", "--format", "chrome", "-o", once.to_str().unwrap()]);
    let notes = String::from_utf8(written.stderr).unwrap();
    assert!(notes.contains("336 messages cannot be shown"), "{notes}");
    let before = String::from_utf8(tq(&["-c", RUNS]).stdout).unwrap();
    assert_eq!(answer(&once, RUNS).replace("once/", ""), before);
    write(&once, &twice);
    assert_eq!(answer(&twice, RUNS).replace("twice/once/", ""), before);
    let args = "SELECT run, args->>'dialect' FROM runs ORDER BY run_number";
    assert_eq!(answer(&once, args).lines().nth(1), Some("once/base,kineto"));
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

/// What `tq` says of tasks is believed where its header stands and as many tasks as it counts, once, and never in a circle.
#[test]
fn what_a_file_says_of_its_tasks_is_believed_where_it_fits() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("hostile.json");
    let told = |header: &str, of: u32, parents: &str| {
        let events = format!(
            r#"{{"ph":"M","name":"tq_location","pid":1,"args":{{"location":"a","kind":"worker","args":"no JSON","nests":false}}}},
               {{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{{"name":"a","tq_location":"a"}}}},
               {{"ph":"X","name":"t0","pid":1,"tid":1,"ts":1,"dur":9.000001,"tq":{{"role":"copy","kind":null}}}},
               {{"ph":"X","name":"t1","pid":1,"tid":1,"ts":2,"dur":1,"cat":"kernel","tq":{{"role":null,"more":[1]}}}},
               {{"ph":"X","name":"t2","pid":1,"tid":1,"ts":3,"dur":1,"cat":"kernel","tq":7}},
               {{"ph":"C","name":"c a","cat":"tq:c","pid":1,"ts":2,"args":{{"":3}},"tq":{{"location":null,"time":null,"kind":"total","task":99}}}},
               {{"ph":"i","name":"e","s":"g","pid":1,"ts":2,"tq":{{"task":4000000000}}}},
               {{"ph":"M","name":"tq_tasks","pid":1,"args":{{"of":{of},"parents":{parents}}}}}"#
        );
        std::fs::write(&trace, format!("{{{header}\"traceEvents\":[{events}]}}")).unwrap();
        let tasks = "SELECT t.name, t.kind, t.role, t.duration, t.depth, p.name AS parent, t.args FROM tasks t LEFT JOIN tasks p \
                     ON p.task = t.parent ORDER BY t.name";
        let others = "SELECT (SELECT count(*) FROM counters WHERE location IS NULL AND time IS NULL AND task IS NULL) AS totals, \
                      (SELECT count(*) FROM events WHERE task IS NULL) AS events, (SELECT sum(count) FROM import_stats \
                      WHERE what = 'declared_left_out') AS left_out, (SELECT count(args) FROM locations WHERE location = 'a') AS args";
        answer(&trace, tasks) + &answer(&trace, others)
    };
    // No header: members like any other.
    expect![[r#"
        name,kind,role,duration,depth,parent,args
        t0,"",work,9000,,,"{""tq"":{""role"":""copy"",""kind"":null}}"
        t1,kernel,work,1000,,,"{""tq"":{""role"":null,""more"":[1]}}"
        t2,kernel,work,1000,,,"{""tq"":7}"
        totals,events,left_out,args
        0,1,,0
    "#]]
    .assert_eq(&told("", 3, "[2,1]"));
    // A parent, a task in a circle, and one that is no task's.
    expect![[r#"
        name,kind,role,duration,depth,parent,args
        t0,,copy,9000001,,,
        t1,kernel,,1000000,,,
        t2,kernel,work,1000000,,t1,
        totals,events,left_out,args
        1,1,2,0
    "#]]
    .assert_eq(&told(r#""tq":{"tick":"ps"},"#, 3, "[2,1,0,1,1,0,2]"));
    // Somebody took tasks away: numbers say nothing any more.
    expect![[r#"
        name,kind,role,duration,depth,parent,args
        t0,,copy,9000,,,
        t1,kernel,,1000,,,
        t2,kernel,work,1000,,,
        totals,events,left_out,args
        1,1,1,0
    "#]]
    .assert_eq(&told(r#""tq":{"runs":[]},"#, 4, "[2,1]"));
}

#[test]
fn a_chrome_trace_has_exact_microseconds() {
    Place::new()
        .tq("query run.json -c 'SELECT run, location, name, kind, start, finish FROM tasks' --format chrome")
        .check(&expect![[r#"
            {"displayTimeUnit":"ns","tq":{"runs":[{"args":{},"run":"run"}],"tick":"ns"},"traceEvents":[
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
            {"ph":"X","name":"c","pid":1,"tid":1,"ts":50,"dur":10,"cat":"static"},
            {"ph":"M","name":"tq_tasks","pid":1,"args":{"of":3,"parents":[]}}
            ]}
            --- exit 0
        "#]]);
}
