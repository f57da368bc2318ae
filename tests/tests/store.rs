//! Stores: every fixture answers the same from a store as from its files; nothing that was committed is lost; damage is noticed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use tempfile::TempDir;
use tq_engine::error::ImportError;
use tq_engine::import::{self, Imported};
use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::queries::{Library, library};
use tq_engine::session::Session;
use tq_engine::store::{self, Replace};
use tq_engine::tables::TABLES;
use tq_engine::time::GivenTime;
use tq_engine::trace::Slice;
use tq_tests::{fixture, lines, rows, wait};

/// Traces of `fixtures/` as sessions: `name=path`, several apart by blanks. Small ones of each format, and of both ticks.
pub(crate) const FIXTURES: &[&str] = &[
    "tfprof/wavefront_40.tfp",
    "tfprof/zero_40.tfp",
    "tfprof/fib_36.json",
    "chrome/kineto_tiny.json",
    "chrome/nccl_ranks",
    "nsys/two_streams.sqlite",
    "table/render_log.csv",
    "table/halo.csv",
    "actorprof/triangle_range",
    "actorprof/quirks",
    "pascal/regions.json",
    "pascal/csv/sperf_whole.csv",
    "daisen/queue_v49.sqlite3.zst",
    "parsec/async-1r",
    "folded/solver.folded",
    "base=tfprof/wavefront_40.tfp new=tfprof/wavefront_41.tfp",
    "ns=tfprof/wavefront_40.tfp ps=daisen/queue_v49.sqlite3.zst",
];

fn specs(traces: &str) -> Vec<TraceSpec> {
    let spec = |trace: &str| {
        let (name, path) = trace.split_once('=').map_or((None, trace), |(name, path)| (Some(name.to_owned()), path));
        TraceSpec { name, path: fixture(path) }
    };
    traces.split(' ').map(spec).collect()
}

pub(crate) fn options(traces: Vec<TraceSpec>) -> OpenOptions {
    OpenOptions { traces, ..OpenOptions::new(1 << 30, 2) }
}

pub(crate) fn at(path: impl Into<PathBuf>) -> Vec<TraceSpec> {
    vec![TraceSpec { name: None, path: path.into() }]
}

fn open(path: impl Into<PathBuf>) -> Session {
    Session::open(&options(at(path))).unwrap_or_else(|error| panic!("{error}"))
}

/// Why the rows of a store cannot be read.
fn refused(path: impl Into<PathBuf>) -> String {
    let session = match Session::open(&options(at(path))) {
        Ok(session) => session,
        Err(error) => return error.to_string(),
    };
    let mut refused = TABLES.iter().filter_map(|table| bag(&session, &format!("SELECT * FROM {}", table.name)).err());
    refused.next().unwrap_or_else(|| panic!("it was read"))
}

fn try_import(store: &Path, traces: &str, replace: &Replace) -> Result<Imported, ImportError> {
    import::import(store, &options(specs(traces)), replace, false)
}

pub(crate) fn import(store: &Path, traces: &str) {
    try_import(store, traces, &Replace::Nothing).unwrap_or_else(|error| panic!("{traces}: {error}"));
}

pub(crate) fn folder() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("store");
    (folder, store)
}

fn names(store: &Path) -> Vec<String> {
    store::list(store).unwrap().into_iter().map(|run| run.name).collect()
}

/// The rows of an answer and the notes; or the error.
pub(crate) fn noted(session: &Session, sql: &str) -> Result<(Vec<String>, Vec<String>), String> {
    wait(async {
        let query = session.sql(sql).await.map_err(|error| error.to_string())?;
        let notes = query.notes();
        let rows = query.collect().await.map_err(|error| error.to_string())?;
        Ok((lines(&rows), notes.take().iter().map(ToString::to_string).collect()))
    })
}

/// An answer as a bag: its rows in the order of their text; or the error.
pub(crate) fn bag(session: &Session, sql: &str) -> Result<Vec<String>, String> {
    let (mut rows, _) = noted(session, sql)?;
    rows.sort();
    Ok(rows)
}

#[test]
fn every_fixture_answers_the_same_from_a_store() {
    let work = Mutex::new(FIXTURES.iter());
    let next = || work.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| std::iter::from_fn(next).for_each(|traces| compare(traces)));
        }
    });
}

/// Filtered rows of several runs come as threads give them; tasks that lie upon each other are told apart by their number.
#[test]
fn functions_answer_the_same_on_any_number_of_threads() {
    let (folder, store) = folder();
    let traces = [("p", 9_000), ("q", 17_000)].map(|(run, tasks)| {
        let mut state = 5u64;
        let mut dice = |sides: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % sides
        };
        let mut text = "start_ns,duration_ns,name,location\n".to_owned();
        for task in 0..tasks {
            let (duration, name, lane) = (1 + dice(3), ["a", "b"][dice(2) as usize], dice(12));
            text.push_str(&format!("{},{duration},{name},w{lane}\n", task / 4));
        }
        let path = folder.path().join(format!("{run}.csv"));
        std::fs::write(&path, text).unwrap();
        TraceSpec { name: Some(run.to_owned()), path }
    });
    import::import(&store, &options(traces.to_vec()), &Replace::Nothing, false).unwrap();
    let session = |threads| Session::open(&OpenOptions { threads, ..options(at(&store)) }).unwrap();
    let sessions: Vec<Session> = (1..=4).map(session).collect();
    let calls = ["overview", "timeline", "gaps", "concurrency", "call_tree", "floating_rows", "self_time"];
    // Without `task`, rows are told apart by their place.
    for (columns, call) in calls.iter().flat_map(|call| [("*", call), ("* EXCEPT (task)", call)]) {
        let sql = format!("SELECT * FROM {call}((SELECT {columns} FROM tasks WHERE start >= 0))");
        let (expected, _) = noted(&sessions[0], &sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(!expected.is_empty(), "{sql}");
        for (session, threads) in sessions.iter().zip(1..) {
            assert!(noted(session, &sql).unwrap().0 == expected, "{sql} on {threads} threads");
        }
    }
}

/// Those that also answer all views, functions and saved queries: planning them takes long.
const ASKED_IN_FULL: &[&str] = &["tfprof/wavefront_40.tfp"];

/// What scans leave out files and groups of rows by.
pub(crate) const CONDITIONS: &[&str] = &[
    "tasks WHERE start > 5000",
    "tasks WHERE 5000 >= start AND finish <= 40000000",
    "tasks WHERE start BETWEEN 1 AND 1000000 AND finish > 7",
    "tasks WHERE start < -1",
    "tasks WHERE task = 3",
    "tasks WHERE task >= 1099511627776 AND task < 1099511627779",
    "tasks WHERE parent < 2",
    "tasks WHERE duration > 9000000000",
    "tasks WHERE run = 'new'",
    "tasks WHERE run IN ('ns', 'base') AND start > 77",
    "counters WHERE time <= 1000",
    "messages WHERE send_time >= 1000 LIMIT 3",
    "tasks LIMIT 5",
];

fn compare(traces: &str) {
    let (_folder, store) = folder();
    let keeping = |traces| Session::open(&OpenOptions { keep_runs: true, ..options(traces) });
    let files = keeping(specs(traces)).unwrap_or_else(|error| panic!("{traces}: {error}"));
    import(&store, traces);
    let stored = keeping(at(&store)).unwrap_or_else(|error| panic!("{traces}: {error}"));
    assert_eq!(stored.opening_notes(), files.opening_notes(), "{traces}");
    assert_eq!(stored.tick(), files.tick(), "{traces}");
    for table in &TABLES {
        // The rows of a table stand in the order of the trace, too.
        let sql = format!("SELECT * FROM {}", table.name);
        assert_eq!(rows(&stored, &sql), rows(&files, &sql), "{traces}: {sql}");
    }
    for condition in CONDITIONS {
        let sql = format!("SELECT * FROM {condition}");
        assert_eq!(rows(&stored, &sql), rows(&files, &sql), "{traces}: {sql}");
    }
    if ASKED_IN_FULL.contains(&traces) {
        compare_all(traces, &stored, &files);
    }
    for (from, to) in [("10%", "60%"), ("1us", "2ms")] {
        let Some(slice) = slice_of(&files, from, to) else { continue };
        let sliced = |traces: Vec<TraceSpec>| {
            Session::open(&OpenOptions { from: Some(slice.0), to: Some(slice.1), ..options(traces) }).unwrap()
        };
        let (of_store, of_files) = (sliced(at(&store)), sliced(specs(traces)));
        assert_eq!(of_store.opening_notes(), of_files.opening_notes(), "{traces}");
        for table in &TABLES {
            let sql = format!("SELECT * FROM {}", table.name);
            assert_eq!(rows(&of_store, &sql), rows(&of_files, &sql), "{traces}: {sql} of a slice");
        }
        let sql = "SELECT * FROM program_tasks";
        assert_eq!(rows(&of_store, sql), rows(&of_files, sql), "{traces}: {sql} of a slice");
        // A slice of what was read answers as one that is read.
        let ticks = |time: GivenTime| time.ticks(files.tick());
        let slice = Slice { from: ticks(slice.0), to: ticks(slice.1) };
        let wider = Slice { from: slice.from.map(|from| from / 2), to: slice.to.map(|to| to + to / 4) };
        for (kind, whole) in [("files", &files), ("store", &stored)] {
            let cut = |whole: &Session, slice| whole.cut(slice).unwrap_or_else(|error| panic!("{traces}: {error}"));
            let part = cut(whole, slice);
            let nested = cut(&cut(whole, wider), slice);
            for table in TABLES.iter().map(|table| table.name).chain(["program_tasks"]) {
                let sql = format!("SELECT * FROM {table}");
                let expected = rows(&of_files, &sql);
                assert_eq!(rows(&part, &sql), expected, "{traces}: {sql} of a slice of the session of {kind}");
                // What is left out stands in the order in which it was.
                assert_eq!(
                    bag(&nested, &sql),
                    bag(&of_files, &sql),
                    "{traces}: {sql} of a slice of a slice of the session of {kind}"
                );
            }
        }
    }
}

/// Views, relation functions and saved queries.
fn compare_all(traces: &str, stored: &Session, files: &Session) {
    for (view, _) in tq_engine::session::views() {
        let sql = format!("SELECT * FROM {view}");
        assert_eq!(bag(stored, &sql), bag(files, &sql), "{traces}: {sql}");
    }
    for function in files.relation_functions() {
        let sql = format!("SELECT * FROM {}()", function.name());
        assert_eq!(bag(stored, &sql), bag(files, &sql), "{traces}: {sql}");
    }
    let library = Library::default();
    for name in library::built_in_names() {
        let query = library.find(name).unwrap().unwrap();
        let unmet = |session| wait(query.unmet(session)).unwrap().is_empty();
        assert_eq!(unmet(stored), unmet(files), "{traces}: {name}");
        if unmet(files) {
            assert_eq!(saved(stored, name), saved(files, name), "{traces}: {name}");
        }
    }
}

/// The answer of a built-in query: a bag where it asks for no order.
pub(crate) fn saved(session: &Session, name: &str) -> Vec<String> {
    let query = Library::default().find(name).unwrap().unwrap();
    let mut rows = lines(&tq_tests::ask_saved(session, name, &[]));
    if !query.statement.text.to_uppercase().contains("ORDER BY") {
        rows.sort();
    }
    rows
}

/// A trace of so many tasks that they are sorted by location in the file, with arguments that do not compress well.
fn long_trace(folder: &Path) -> PathBuf {
    let event = |task: u64| {
        let (thread, start) = (task * 7 % 5, task * 10 % 77_777);
        let noise: String =
            (1..5u64).map(|part| format!("{:016x}", (task * 5 + part).wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
        format!(
            r#"{{"ph":"X","pid":1,"tid":{thread},"ts":{start},"dur":3,"name":"n{}","args":{{"i":"{noise}"}}}}"#,
            task % 11
        )
    };
    let events: Vec<String> = (0..40_000).map(event).collect();
    let path = folder.join("long.json");
    std::fs::write(&path, format!("[{}]", events.join(",\n"))).unwrap();
    path
}

/// So many tasks come in the order of the trace, of whatever pages and rows they are read.
#[test]
fn clustered_rows_come_in_the_order_of_the_trace() {
    let (folder, store) = folder();
    let trace = long_trace(folder.path());
    import::import(&store, &options(at(&trace)), &Replace::Nothing, false).unwrap();
    for slice in [None, Some(("20ms", "21ms")), Some(("1ms", "70ms"))] {
        let times = slice.map(|(from, to)| (from.parse().unwrap(), to.parse().unwrap()));
        let (from, to) = times.unzip();
        let open = |path: &Path| Session::open(&OpenOptions { from, to, ..options(at(path)) }).unwrap();
        let (files, stored) = (open(&trace), open(&store));
        for sql in [
            "SELECT * FROM tasks",
            "SELECT * FROM runs",
            "SELECT * FROM import_stats",
            "SELECT args, name FROM tasks WHERE start > 70000000 AND task > 9000",
            "SELECT name, first_value(task) FROM tasks GROUP BY name ORDER BY name",
            "SELECT name, array_agg(task) FROM tasks GROUP BY name ORDER BY name",
            "SELECT location, string_agg(name, ','), last_value(task), nth_value(task, 3) FROM tasks WHERE task < 9000 GROUP BY location ORDER BY location",
            "SELECT task FROM tasks LIMIT 7 OFFSET 12000",
            "SELECT args FROM tasks LIMIT 3",
            "SELECT location, busy(start, finish) FROM tasks GROUP BY location ORDER BY location",
            "SELECT count(*), sum(duration) FROM tasks WHERE location = '1/3' AND start BETWEEN 20000000 AND 20500000",
            "SELECT task, finish FROM tasks WHERE finish <= 5000 OR finish > 77770000",
            "SELECT name FROM tasks WHERE task IN (5, 39999, 20000)",
        ] {
            assert_eq!(rows(&stored, sql), rows(&files, sql), "{sql} in {slice:?}");
        }
    }
}

/// Three runs, whose tasks are equal: the first ones are those of the first run.
#[test]
fn ties_come_in_the_order_of_the_runs() {
    let (folder, store) = folder();
    let rows_of_run = (0..5000).map(|task| format!("k{},{task},{}\n", task % 3, task % 7));
    let text = "name,start_ns,duration_ns\n".to_owned() + &rows_of_run.collect::<String>();
    let file = |run: &str| folder.path().join(format!("{run}.csv"));
    let traces = ["a", "b", "c"].map(|run| {
        std::fs::write(file(run), &text).unwrap();
        file(run).display().to_string()
    });
    let traces = traces.join(" ");
    import(&store, &traces);
    let sql = "SELECT run, name, start FROM tasks ORDER BY name, duration DESC LIMIT 600";
    let found = rows(&open(&store), sql);
    assert_eq!(found, rows(&Session::open(&options(specs(&traces))).unwrap(), sql));
    assert!(found[..200].iter().all(|row| row.starts_with("a|")), "{:?}", &found[..3]);
}

/// What a scan read, as `EXPLAIN ANALYZE` tells.
fn measure(session: &Session, sql: &str, metric: &str) -> u64 {
    let plan = rows(session, &format!("EXPLAIN ANALYZE {sql}")).join("\n");
    let scan = plan.lines().find(|line| line.contains("StoredExec")).unwrap_or_else(|| panic!("{plan}"));
    let found = scan.split(&format!("{metric}=")).nth(1).unwrap_or_else(|| panic!("no {metric}: {scan}"));
    let text: String = found.chars().take_while(|c| !",]".contains(*c)).collect();
    let mut parts = text.split_whitespace();
    let number: f64 = parts.next().unwrap().parse().unwrap_or_else(|_| panic!("{metric}: {text}"));
    (number
        * match parts.next() {
            Some("K") => 1e3,
            Some("M") => 1e6,
            _ => 1.0,
        }) as u64
}

#[test]
fn pages_and_rows_that_are_not_wanted_are_not_read() {
    let (folder, store) = folder();
    let trace = long_trace(folder.path());
    import::import(&store, &options(at(&trace)), &Replace::Nothing, false).unwrap();
    let session = open(&store);
    let bytes = |sql: &str| measure(&session, sql, "bytes_read");
    let read = |sql: &str| measure(&session, sql, "output_rows");
    let all = bytes("SELECT sum(length(args)) FROM tasks");
    assert!(all > 1_000_000, "{all}");
    let part = "SELECT sum(length(args)) FROM tasks WHERE location = '1/3' AND start BETWEEN 20000000 AND 20500000";
    assert!(bytes(part) < all * 2 / 3, "{} of {all}", bytes(part));
    assert!(read(part) < 200, "{}", read(part));
    assert!(bytes("SELECT sum(length(args)) FROM tasks WHERE task = 5") < all * 2 / 3);
    assert_eq!(read("SELECT args FROM tasks LIMIT 3"), 3);
    assert_eq!(measure(&session, "SELECT name FROM tasks WHERE start > 90000000000", "groups_read"), 0);
    // Of a slice, the rows outside are never handed on.
    let slice =
        OpenOptions { from: Some("20ms".parse().unwrap()), to: Some("21ms".parse().unwrap()), ..options(at(&store)) };
    let slice = Session::open(&slice).unwrap();
    assert!(measure(&slice, "SELECT sum(length(args)) FROM tasks", "output_rows") < 1000);
}

fn cached(cache: &Path, bytes: u64, traces: Vec<TraceSpec>) -> Session {
    let cache = Some(store::Cache { folder: cache.to_owned(), bytes });
    Session::open(&OpenOptions { cache, ..options(traces) }).unwrap_or_else(|error| panic!("{error}"))
}

/// Entries of a cache, and what is left of others.
fn entries(cache: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(cache).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

#[test]
fn a_cache_answers_as_the_traces_do() {
    let (folder, _) = folder();
    let cache = folder.path().join("cache");
    let traces = [
        "tfprof/wavefront_40.tfp",
        "x=pascal/regions.json x=pascal/regions.json",
        "actorprof/triangle_range",
        "ns=tfprof/wavefront_40.tfp ps=daisen/queue_v49.sqlite3.zst",
    ];
    for traces in traces {
        let files = Session::open(&options(specs(traces))).unwrap();
        for time in ["first", "second"] {
            let kept = cached(&cache, 1 << 30, specs(traces));
            assert_eq!(kept.opening_notes(), files.opening_notes(), "{traces}, {time}");
            for table in &TABLES {
                let sql = format!("SELECT * FROM {}", table.name);
                assert_eq!(rows(&kept, &sql), rows(&files, &sql), "{traces}: {sql}, {time}");
            }
        }
    }
    // Under another name and with other options, a trace is another one.
    assert_eq!(entries(&cache).len(), 5);
    // Names, notes and slices come after the cache.
    let slice = |cache: Option<store::Cache>| {
        let (from, to) = (Some("1us".parse().unwrap()), Some("2ms".parse().unwrap()));
        let run_args = vec![("commit".to_owned(), "c1".to_owned())];
        let session = Session::open(&OpenOptions { cache, from, to, run_args, ..options(specs(traces[0])) }).unwrap();
        [rows(&session, "SELECT * FROM runs"), rows(&session, "SELECT * FROM program_tasks")]
    };
    let kept = slice(Some(store::Cache { folder: cache.clone(), bytes: 1 << 30 }));
    assert_eq!(kept, slice(None));
    assert_eq!(entries(&cache).len(), 5);
}

#[test]
fn a_changed_trace_and_a_damaged_entry_are_read_again() {
    let (folder, _) = folder();
    let (cache, trace) = (folder.path().join("cache"), folder.path().join("a.json"));
    let write = |name: &str| {
        std::fs::write(&trace, format!(r#"[{{"ph":"X","pid":1,"tid":1,"ts":0,"dur":5,"name":"{name}"}}]"#)).unwrap();
    };
    let name = |session: &Session| rows(session, "SELECT name FROM tasks");
    write("one");
    for _ in 0..2 {
        assert_eq!(name(&cached(&cache, 1 << 30, at(&trace))), ["one"]);
    }
    write("two");
    assert_eq!(name(&cached(&cache, 1 << 30, at(&trace))), ["two"]);
    assert_eq!(entries(&cache).len(), 2);
    // Each file of the entry, cut, flipped and gone.
    let damages: [fn(&Path, &[u8]); 3] = [
        |path, bytes| std::fs::write(path, &bytes[..bytes.len() - 1]).unwrap(),
        |path, bytes| {
            let mut bytes = bytes.to_vec();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(path, bytes).unwrap();
        },
        |path, _| std::fs::remove_file(path).unwrap(),
    ];
    for entry in entries(&cache) {
        std::fs::remove_dir_all(entry).unwrap();
    }
    assert_eq!(name(&cached(&cache, 1 << 30, at(&trace))), ["two"]);
    let all = files_of(&cache);
    assert!(all.len() >= 5, "{all:?}");
    for part in ["/log/", "/runs/", "/key"] {
        for damage in damages {
            for file in files_of(&cache).iter().filter(|file| file.contains(part)) {
                let path = cache.join(file);
                damage(&path, &std::fs::read(&path).unwrap());
            }
            let session = cached(&cache, 1 << 30, at(&trace));
            assert_eq!(name(&session), ["two"], "{part}");
            let note = session.opening_notes().join("");
            assert_eq!(note.contains("the cache is damaged, and the trace is read again"), part != "/key", "{note}");
            assert!(cached(&cache, 1 << 30, at(&trace)).opening_notes().is_empty());
            assert_eq!(entries(&cache).len(), 1, "{part}");
        }
    }
}

#[test]
fn a_cache_keeps_what_was_used_last() {
    let (folder, _) = folder();
    let cache = folder.path().join("cache");
    let read = |bytes: u64, trace: &str| drop(cached(&cache, bytes, specs(trace)));
    read(1 << 30, "tfprof/wavefront_40.tfp");
    let first = entries(&cache);
    let pause = || std::thread::sleep(Duration::from_millis(20));
    pause();
    read(1 << 30, "tfprof/wavefront_41.tfp");
    pause();
    read(1 << 30, "tfprof/wavefront_40.tfp");
    pause();
    // Room for about two of these.
    let all: u64 = files_of(&cache).iter().map(|file| std::fs::metadata(cache.join(file)).unwrap().len()).sum();
    let open = cached(&cache, 1 << 30, specs("tfprof/wavefront_41.tfp"));
    pause();
    read(1 << 30, "tfprof/wavefront_40.tfp");
    read(all / 3, "tfprof/zero_40.tfp");
    // What somebody reads stays, whatever its size.
    assert!(rows(&open, "SELECT * FROM tasks").len() > 10);
    drop(open);
    pause();
    read(all * 2 / 3, "tfprof/fib_36.json");
    assert!(entries(&cache).len() < 4, "{:?}", entries(&cache));
    assert!(!first.is_empty());
    // Nothing fits: nothing stays, and the trace is read.
    assert_eq!(rows(&cached(&cache, 0, specs("folded/solver.folded")), "SELECT count(*) > 0 FROM tasks"), ["true"]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for trace in ["tfprof/wavefront_40.tfp", "tfprof/fib_36.json", "tfprof/wavefront_40.tfp"] {
                    let session = cached(&cache, all / 3, specs(trace));
                    assert!(session.opening_notes().is_empty(), "{:?}", session.opening_notes());
                    assert!(!rows(&session, "SELECT * FROM tasks").is_empty());
                }
            });
        }
    });
    let left: Vec<PathBuf> = entries(&cache);
    assert!(left.iter().all(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.')), "{left:?}");
}

#[test]
fn nightly_runs_show_where_they_became_slower() {
    let (folder, store) = folder();
    let mut traces = Vec::new();
    for night in 0..30u64 {
        let path = folder.path().join(format!("{night}.json"));
        let (level, once) = (if night < 14 { 1000 } else { 1300 }, if night == 7 { 900 } else { 0 });
        let level = level + once + night * 7 % 5;
        std::fs::write(&path, format!(r#"[{{"ph":"X","pid":1,"tid":1,"ts":0,"dur":{level},"name":"a"}}]"#)).unwrap();
        traces.push(TraceSpec { name: Some(format!("night/{night:02}")), path });
    }
    for (night, trace) in traces.iter().enumerate() {
        let run_args = vec![("commit".to_owned(), format!("c{night}"))];
        let options = OpenOptions { run_args, ..options(vec![trace.clone()]) };
        import::import(&store, &options, &Replace::Nothing, false).unwrap();
    }
    let session = open(&store);
    let ask = |name: &str, given: &[(&str, &str)]| lines(&tq_tests::ask_saved(&session, name, given));
    assert_eq!(ask("change-points", &[]), ["night/14|14|c14|night/13|c13|1002000.0|1302000.0|29.9"]);
    assert_eq!(ask("change-points", &[("least_percent", "40")]), [""; 0]);
    assert_eq!(ask("worst-runs", &[("limit", "1")]), ["night/07|7|c7|1904000|1300000.0|46.5|151.0"]);
    let trend = ask("trend", &[("window", "3")]);
    assert_eq!(trend.len(), 30);
    assert_eq!(trend[0], "night/00|0|c0|1000000|-|-");
    assert_eq!(trend[14], "night/14|14|c14|1303000|1002000.0|30.0");
}

/// A part of the time of a session, or the time that is named.
fn slice_of(
    session: &Session,
    from: &str,
    to: &str,
) -> Option<(tq_engine::time::GivenTime, tq_engine::time::GivenTime)> {
    let ticks = |text: &str| -> Option<String> {
        let Some(percent) = text.strip_suffix('%') else { return Some(text.to_owned()) };
        let sql = format!("SELECT (min(start) + (max(finish) - min(start)) * {percent} / 100)::BIGINT FROM tasks");
        rows(session, &sql).pop().filter(|ticks| ticks != "-")
    };
    let (from, to) = (ticks(from)?, ticks(to)?);
    (from != to).then(|| Some((from.parse().ok()?, to.parse().ok()?)))?
}

#[test]
fn a_part_of_a_store_is_opened_by_name() {
    let (_folder, store) = folder();
    import(&store, "night/1=tfprof/wavefront_40.tfp");
    import(&store, "night/2=tfprof/wavefront_41.tfp sim=daisen/queue_v49.sqlite3.zst a*=folded/solver.folded");
    assert_eq!(names(&store), ["night/1", "night/2", "sim", "a*"]);
    let runs = |session: &Session| rows(session, "SELECT run, run_number FROM runs ORDER BY run_number");
    assert_eq!(runs(&open(store.join("night"))), ["night/1|0", "night/2|1"]);
    assert_eq!(runs(&open(store.join("night/2"))), ["night/2|0"]);
    assert_eq!(runs(&open(store.join("a*"))), ["a*|0"]);
    // Alone, a run counts in its own tick.
    assert_eq!(open(store.join("night")).tick().symbol(), "ns");
    assert_eq!(open(&store).tick().symbol(), "ps");
    let chosen = |pattern: &str| {
        let options = OpenOptions { run_pattern: Some(pattern.to_owned()), ..options(at(&store)) };
        Session::open(&options).map(|session| runs(&session)).map_err(|error| error.to_string())
    };
    assert_eq!(chosen("*i*"), Ok(vec!["night/1|0".to_owned(), "night/2|1".to_owned(), "sim|2".to_owned()]));
    assert!(chosen("nigth").unwrap_err().contains("the store has no run `nigth`"));
    let named = TraceSpec { name: Some("old".to_owned()), path: store.join("night") };
    assert_eq!(runs(&Session::open(&options(vec![named])).unwrap()), ["old/night/1|0", "old/night/2|1"]);
    let both = [specs("tfprof/wavefront_40.tfp"), at(store.join("sim"))].concat();
    assert_eq!(runs(&Session::open(&options(both)).unwrap()), ["wavefront_40|0", "sim|1"]);
    let with_option = OpenOptions { from_format: Some("chrome".to_owned()), ..options(at(&store)) };
    let error = Session::open(&with_option).map(drop).unwrap_err().to_string();
    assert!(error.contains("`--from-format chrome` says how traces are read"), "{error}");
}

#[test]
fn runs_are_replaced_removed_and_collected() {
    let (_folder, store) = folder();
    import(&store, "a=tfprof/wavefront_40.tfp b=tfprof/wavefront_41.tfp");
    import(&store, "c=folded/solver.folded");
    let taken = try_import(&store, "b=folded/solver.folded", &Replace::Nothing).map(drop).unwrap_err().to_string();
    assert!(taken.ends_with("the store has a run `b` already"), "{taken}");
    try_import(&store, "b=folded/solver.folded d=tfprof/zero_40.tfp", &Replace::SameNames).unwrap();
    assert_eq!(names(&store), ["a", "b", "c", "d"]);
    let of_b = "SELECT format FROM runs WHERE run = 'b'";
    assert_eq!(rows(&open(&store), of_b), ["folded"]);
    try_import(&store, "a*=tfprof/zero_40.tfp", &Replace::Matching("[cd]".to_owned())).unwrap();
    try_import(&store, "e=tfprof/zero_40.tfp", &Replace::Matching("c".to_owned())).unwrap();
    assert_eq!(names(&store), ["a", "b", "d", "a*", "e"]);
    // Spelt exactly, a name with a star is that run alone.
    assert_eq!(store::remove(&store, "a*").unwrap().0, ["a*"]);
    assert!(store::remove(&store, "x").map(drop).unwrap_err().to_string().contains("no run `x`"));

    let before = rows(&open(&store), "SELECT run, count(*) FROM tasks GROUP BY run ORDER BY run");
    let kept = store::gc(&store, None).unwrap().0;
    assert_eq!(kept.files, 0, "readers may be at work");
    assert!(store::gc(&store, Some(Duration::ZERO)).unwrap().0.files > 0);
    assert_eq!(rows(&open(&store), "SELECT run, count(*) FROM tasks GROUP BY run ORDER BY run"), before);
    let all = "SELECT * FROM tasks";
    let before = rows(&open(&store), all);
    let budget = tq_engine::trace::Budget::unlimited();
    assert_eq!(store::compact(&store, &budget).unwrap().0, 4);
    assert_eq!(rows(&open(&store), all), before);
    store::gc(&store, Some(Duration::ZERO)).unwrap();
    assert_eq!(rows(&open(&store), all), before);
    assert_eq!(files_of(&store.join("runs")), committed(&store), "exactly what the commits name");
    assert_eq!(store::compact(&store, &budget).unwrap().0, 0);
}

/// All files below a folder, relative to it.
fn files_of(folder: &Path) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(files_of(&entry.path()).into_iter().map(|file| format!("{name}/{file}"))),
            false => drop(files.insert(name)),
        }
    }
    files
}

/// The files that `views.sql` names, which says what the last commit says.
fn committed(store: &Path) -> BTreeSet<String> {
    let views = std::fs::read_to_string(store.join("views.sql")).unwrap();
    views.split('\'').filter_map(|text| text.strip_prefix("runs/")).map(str::to_owned).collect()
}

#[test]
fn damaged_files_are_named_and_never_answer() {
    let (_folder, store) = folder();
    import(&store, "tfprof/wavefront_40.tfp");
    import(&store, "b=chrome/kineto_tiny.json");
    let files: Vec<PathBuf> = files_of(&store.join("runs")).iter().map(|file| store.join("runs").join(file)).collect();
    assert!(files.len() > 4);
    for path in &files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = std::fs::read(path).unwrap();
        let check = |what: &str| {
            let error = refused(&store);
            assert!(
                error.contains(name) && error.contains("damaged") | error.contains("no such file"),
                "{what}: {error}"
            );
        };
        for round in 0..8 {
            let mut flipped = bytes.clone();
            flipped[round * 7919 % bytes.len()] ^= 1 << (round % 8);
            std::fs::write(path, &flipped).unwrap();
            check("flipped");
        }
        for length in [0, bytes.len() - 1] {
            std::fs::write(path, &bytes[..length]).unwrap();
            check("cut");
        }
        std::fs::remove_file(path).unwrap();
        check("missing");
        #[cfg(unix)]
        {
            let elsewhere = store.join("elsewhere");
            std::fs::write(&elsewhere, &bytes).unwrap();
            std::os::unix::fs::symlink(&elsewhere, path).unwrap();
            check("a link");
            std::fs::remove_file(path).unwrap();
            std::process::Command::new("mkfifo").arg(path).status().unwrap();
            check("a pipe");
            std::fs::remove_file(path).unwrap();
        }
        std::fs::write(path, &bytes).unwrap();
    }
    assert_eq!(rows(&open(&store), "SELECT count(*) FROM runs"), ["2"]);
    let commit = store.join("log/00000002.json");
    let bytes = std::fs::read(&commit).unwrap();
    for place in (0..bytes.len()).step_by(401) {
        let mut flipped = bytes.clone();
        flipped[place] ^= 1;
        std::fs::write(&commit, flipped).unwrap();
        let error = refused(&store);
        assert!(error.contains("00000002.json"), "byte {place}: {error}");
    }
    // The newest one: nothing but the hint for readers by URL knows of it.
    std::fs::remove_file(&commit).unwrap();
    let error = refused(&store);
    assert!(error.contains("00000002.json") && error.contains("the commit is missing"), "{error}");
    std::fs::write(&commit, &bytes).unwrap();
    // A store without any commit is no empty one, and no folder of traces.
    for file in files_of(&store.join("log")) {
        std::fs::remove_file(store.join("log").join(file)).unwrap();
    }
    let error = refused(&store);
    assert!(error.contains("damaged") && error.contains("no commit"), "{error}");
    assert!(store::list(&store).unwrap_err().to_string().contains("no commit"));
}

#[cfg(unix)]
#[test]
fn gc_follows_no_link_and_deletes_nothing_of_others() {
    let (folder, store) = folder();
    import(&store, "tfprof/zero_40.tfp");
    let outside = folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("precious"), "x").unwrap();
    let runs = store.join("runs");
    std::os::unix::fs::symlink(&outside, runs.join("abcdefghij012345")).unwrap();
    std::fs::create_dir(runs.join("mine")).unwrap();
    std::fs::write(runs.join("mine/file"), "x").unwrap();
    std::fs::write(runs.join("note"), "x").unwrap();
    std::fs::create_dir(runs.join("mystuffmystuff12")).unwrap();
    std::fs::write(runs.join("mystuffmystuff12/thesis.tex"), "x").unwrap();
    // A file of a number that no store reaches is none of the log.
    std::fs::write(store.join("log/18446744073709551615.checkpoint.json"), "x").unwrap();
    // Left by imports that were killed.
    std::fs::write(store.join(".views-abcdef"), "x").unwrap();
    std::fs::create_dir(runs.join(".import-abcdefghij012345")).unwrap();
    std::fs::write(runs.join(".import-abcdefghij012345/tasks-000.parquet"), "x").unwrap();
    let held = runs.join(".import-bbcdefghij012345");
    std::fs::create_dir(&held).unwrap();
    std::fs::write(held.join("tasks-000.parquet"), "x").unwrap();
    let lock = std::fs::File::open(&held).unwrap();
    lock.lock().unwrap();
    assert_eq!(store::gc(&store, None).unwrap().0.files, 2);
    assert!(!store.join(".views-abcdef").exists());
    assert!(outside.join("precious").exists() && runs.join("mine/file").exists() && runs.join("note").exists());
    assert!(held.join("tasks-000.parquet").exists(), "somebody writes it");
    drop(lock);
    assert_eq!(store::gc(&store, None).unwrap().0.files, 1);
    assert_eq!(store::gc(&store, Some(Duration::ZERO)).unwrap().0.files, 0);
    assert!(runs.join("mystuffmystuff12/thesis.tex").exists());
    // A folder of runs that is a link is not the store's.
    std::fs::rename(&runs, folder.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(folder.path().join("moved"), &runs).unwrap();
    assert!(store::gc(&store, Some(Duration::ZERO)).map(drop).unwrap_err().to_string().contains("no plain folder"));
    assert!(refused(&store).contains("no plain folder"));
}

#[test]
fn writers_at_once_lose_nothing() {
    let (_folder, store) = folder();
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let store = &store;
            scope.spawn(move || {
                (0..6).for_each(|turn| import(store, &format!("w{writer}_{turn}=tfprof/zero_40.tfp")));
            });
        }
    });
    assert_eq!(names(&store).len(), 12);
    assert_eq!(rows(&open(&store), "SELECT count(DISTINCT run) FROM import_stats"), ["12"]);
    // Of two writers of one name, one wins.
    let outcomes: Vec<bool> = std::thread::scope(|scope| {
        let write = || try_import(&store, "same=tfprof/zero_40.tfp", &Replace::Nothing).is_ok();
        let writers = [scope.spawn(write), scope.spawn(write)];
        writers.map(|writer| writer.join().unwrap()).to_vec()
    });
    assert_eq!(outcomes.iter().filter(|won| **won).count(), 1);
    store::gc(&store, Some(Duration::ZERO)).unwrap();
    assert_eq!(files_of(&store.join("runs")), committed(&store));
}

/// Readers keep what they opened while runs are replaced, moved and collected; those that open later see whole commits.
#[test]
fn readers_at_work_are_not_disturbed() {
    let (_folder, store) = folder();
    import(&store, "a=tfprof/wavefront_40.tfp b=tfprof/wavefront_40.tfp");
    let all = "SELECT run, count(*), sum(duration) FROM tasks GROUP BY run ORDER BY run";
    let early = open(&store);
    let expected = rows(&early, all);
    std::thread::scope(|scope| {
        let store = &store;
        scope.spawn(move || {
            for _ in 0..4 {
                try_import(store, "b=tfprof/wavefront_40.tfp", &Replace::SameNames).unwrap();
                store::gc(store, None).unwrap();
                store::compact(store, &tq_engine::trace::Budget::unlimited()).unwrap();
            }
        });
        for _ in 0..2 {
            let expected = &expected;
            scope.spawn(move || (0..6).for_each(|_| assert_eq!(&rows(&open(store), all), expected)));
        }
    });
    assert_eq!(rows(&early, all), expected, "its files are younger than an hour");
    // Who insists on deleting them is told by readers: an error, never a part of the rows.
    store::gc(&store, Some(Duration::ZERO)).unwrap();
    let late = bag(&early, "SELECT * FROM tasks");
    assert!(late.as_ref().is_err_and(|error| error.contains("no such file")), "{late:?}");
    assert_eq!(rows(&open(&store), all), expected);
}

#[test]
fn stores_of_other_versions_are_refused() {
    let (_folder, store) = folder();
    import(&store, "tfprof/wavefront_40.tfp");
    let path = store.join("log/00000001.json");
    let commit = std::fs::read_to_string(&path).unwrap();
    for (version, expected) in
        [(1, "a tq before the first release wrote this: format 1"), (3, "a newer version of tq wrote this: format 3")]
    {
        std::fs::write(&path, commit.replacen("{\"tq store\":2", &format!("{{\"tq store\":{version}"), 1)).unwrap();
        for refused in [
            refused(&store),
            try_import(&store, "x=tfprof/zero_40.tfp", &Replace::Nothing).map(drop).unwrap_err().to_string(),
            store::remove(&store, "*").map(drop).unwrap_err().to_string(),
            store::gc(&store, Some(Duration::ZERO)).map(drop).unwrap_err().to_string(),
        ] {
            assert!(refused.contains(expected), "{refused}");
        }
    }
    assert!(files_of(&store.join("runs")).len() > 1, "gc deletes nothing of a store that it does not understand");
}

#[test]
fn folders_with_something_else_are_no_stores() {
    let (folder, store) = folder();
    std::fs::create_dir(&store).unwrap();
    std::fs::write(store.join("notes.txt"), "mine").unwrap();
    let error = try_import(&store, "tfprof/zero_40.tfp", &Replace::Nothing).map(drop).unwrap_err().to_string();
    assert!(error.contains("is no store and holds `notes.txt`"), "{error}");
    assert!(store::list(folder.path()).map(drop).unwrap_err().to_string().contains("it is no store"));
    assert!(!store.join("log").exists());
}

/// Prints, from the folder of a store, what other programs read from it; `-` where one is not there.
const OTHERS: &str = r#"
import glob, os, sys
os.chdir(sys.argv[1])
SQL = "SELECT run, count(*), sum(duration), min(start), max(finish), min(task), count(DISTINCT name) FROM tasks GROUP BY run ORDER BY run"
try:
    import duckdb
    views = duckdb.connect()
    views.execute(open("views.sql").read())
    for table in ["runs", "locations", "tasks", "links", "messages", "counters", "events"]:
        print(table, *views.execute(f"SELECT count(*), count(DISTINCT run) FROM {table}").fetchone())
    for row in views.execute(SQL).fetchall():
        print("duckdb", *row)
except ImportError:
    print("- duckdb")
files = sorted(glob.glob("runs/*/tasks-*.parquet"))
try:
    import polars
    print("polars", *polars.scan_parquet(files).select(polars.len(), polars.col("duration").sum()).collect().row(0))
except ImportError:
    print("- polars")
try:
    import pandas, pyarrow
    tasks = pandas.concat([pandas.read_parquet(file) for file in files])
    print("pandas", len(tasks), int(tasks["duration"].sum()))
except ImportError:
    print("- pandas")
"#;

#[test]
fn other_programs_see_what_was_committed() {
    let (_folder, store) = folder();
    import(&store, "a=tfprof/wavefront_40.tfp b'c=chrome/kineto_tiny.json gone=tfprof/fib_36.json");
    import(&store, "d=tfprof/zero_40.tfp e=actorprof/triangle_range");
    store::remove(&store, "gone").unwrap();
    let read = |what: &str| -> Option<Vec<String>> {
        let read = std::process::Command::new("python3").args(["-c", OTHERS]).arg(&store).output().ok()?;
        assert!(read.status.success(), "{what}: {}", String::from_utf8_lossy(&read.stderr));
        Some(String::from_utf8(read.stdout).unwrap().lines().map(str::to_owned).collect())
    };
    let Some(lines) = read("with a removed run") else { return skip("python3") };
    let session = open(&store);
    let blanks = |rows: Vec<String>| -> Vec<String> { rows.iter().map(|row| row.replace('|', " ")).collect() };
    let of = |name: &str, lines: &[String]| -> Vec<String> {
        let lines = lines.iter().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        lines.map(|line| line.replace("None", "-")).collect()
    };
    if lines.contains(&"- duckdb".to_owned()) {
        skip("duckdb");
    } else {
        for table in TABLES.iter().map(|table| table.name).filter(|name| *name != "import_stats") {
            let sql = format!("SELECT count(*), count(DISTINCT run) FROM {table}");
            assert_eq!(of(table, &lines), blanks(rows(&session, &sql)), "{table}");
        }
        let sql = "SELECT run, count(*), sum(duration), min(start), max(finish), min(task & (1::BIGINT << 40) - 1), \
                   count(DISTINCT name) FROM tasks GROUP BY run ORDER BY run";
        assert_eq!(of("duckdb", &lines), blanks(rows(&session, sql)));
    }
    // Who reads all files sees what was deleted only once the removed run is moved away from.
    store::compact(&store, &tq_engine::trace::Budget::unlimited()).unwrap();
    store::gc(&store, Some(Duration::ZERO)).unwrap();
    let lines = read("after gc").unwrap();
    let all = blanks(rows(&open(&store), "SELECT count(*), sum(duration) FROM tasks"));
    for program in ["polars", "pandas"] {
        match lines.contains(&format!("- {program}")) {
            true => skip(program),
            false => assert_eq!(of(program, &lines), all, "{program}"),
        }
    }
}

#[expect(clippy::print_stderr, reason = "a test that skips says so")]
fn skip(program: &str) {
    eprintln!("skipped: {program} is not there");
}
