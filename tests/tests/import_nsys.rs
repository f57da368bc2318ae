//! Nsight Systems: our fixture in full, databases generated after the published schema against their own bookkeeping, odd
//! databases.

use std::collections::BTreeMap;

use datafusion::arrow::util::display::array_value_to_string;
use rusqlite::Connection;
use tempfile::TempDir;
use tq_engine::open::OpenOptions;
use tq_engine::session::Session;
use tq_tests::{ask_saved, fixture, open, options, rows, shared, try_open};

fn one(session: &Session, sql: &str) -> i64 {
    rows(session, sql)[0].parse().unwrap()
}

/// What was found, but the books themselves.
fn findings(session: &Session) -> Vec<String> {
    rows(
        session,
        "SELECT severity || ' ' || what || ' ' || count FROM import_stats WHERE what <> 'records_read' ORDER BY 1",
    )
}

#[test]
fn the_fixture_has_its_rows() {
    let session = open(&fixture("nsys/two_streams.sqlite"));
    let mut locations = rows(&session, "SELECT location, parent, kind, name, process FROM locations");
    locations.sort();
    let mut expected = [
        "100|-|process|/usr/bin/python3|100",
        "100/201|100|thread|trainer|100",
        "100/GPU 0|100|device|GPU 0|100",
        "100/GPU 0/stream 7|100/GPU 0|stream|stream 7|100",
        "100/GPU 0/stream 20|100/GPU 0|stream|stream 20|100",
        "100/GPU 0/stream 13|100/GPU 0|stream|stream 13|100",
        "100/GPU 0/stream 20 (sync)|100/GPU 0|stream|stream 20 (sync)|100",
        "100/201/NVTX loader|100/201|async|NVTX loader|100",
        "100/201/NVTX|100/201|async|NVTX|100",
    ];
    expected.sort_unstable();
    assert_eq!(locations, expected);
    assert_eq!(
        rows(&session, "SELECT kind, role, count(*) FROM tasks GROUP BY kind, role ORDER BY kind, role"),
        [
            "cuda_driver|runtime|3",
            "cuda_runtime|runtime|18",
            "cuda_runtime|wait|3",
            "cuda_sync|wait|3",
            "gpu_memcpy|copy|3",
            "kernel|communication|3",
            "kernel|work|13",
            "nvtx|work|13",
        ]
    );
    // The driver's call inside the runtime's launches the kernel; the innermost range of any domain is around the launch.
    assert_eq!(
        rows(
            &session,
            "SELECT l.kind, s.name, s.kind, count(*) FROM links l JOIN tasks s ON s.task = l.source \
             WHERE s.name NOT LIKE 'step%' GROUP BY l.kind, s.name, s.kind ORDER BY 1, 2"
        ),
        [
            "launch|cuLaunchKernel|cuda_driver|3",
            "launch|cudaLaunchKernel|cuda_runtime|12",
            "launch|cudaMemcpyAsync|cuda_runtime|3",
            "nvtx|backward|nvtx|6",
            "nvtx|forward|nvtx|9",
            "nvtx|load batch|nvtx|3",
            "sync|cudaStreamSynchronize|cuda_runtime|3",
        ]
    );
    assert_eq!(
        rows(
            &session,
            "SELECT name, start, duration, depth, args FROM tasks WHERE kind IN ('kernel', 'gpu_memcpy') ORDER BY start LIMIT 2"
        ),
        [
            "void warm<float>(float*)|0|30000|0|{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":9000,\"gridX\":1,\"gridY\":1,\
             \"gridZ\":1,\"blockX\":32,\"blockY\":1,\"blockZ\":1,\"shortName\":\"warm\"}",
            "Memcpy HtoD|62000|30000|0|{\"device\":0,\"context\":1,\"stream\":13,\"correlation\":1,\"copyKind\":1,\"bytes\":1048576}",
        ]
    );
    assert_eq!(
        rows(&session, "SELECT name, kind, location, count(*) FROM events GROUP BY name, kind, location"),
        ["loss|nvtx|100/201|3"]
    );
    assert_eq!(
        findings(&session),
        [
            "info launched_before 1",
            "info nvtx_names 1",
            "info table_not_read 2",
            "info table_variant 1",
            "info unfinished 1"
        ]
    );
    assert_eq!(
        rows(&session, "SELECT format, origin, started_at FROM runs"),
        ["nsys|950000|2023-11-14T22:13:20.000950Z"]
    );
}

#[test]
fn generated_databases_equal_their_bookkeeping() {
    let Some(folder) = shared("traces/nsys") else { return };
    for stem in ["generated_new", "generated_old"] {
        let session = open(&folder.join(format!("{stem}.sqlite")));
        let text = std::fs::read_to_string(folder.join(format!("{stem}.expected.csv"))).unwrap();
        let expected: BTreeMap<&str, i64> = text
            .lines()
            .skip(1)
            .map(|line| line.split_once(',').unwrap())
            .map(|(key, value)| (key, value.parse().unwrap()))
            .collect();
        for (what, value) in expected {
            let sql = match what {
                "kernels" => "SELECT count(*) FROM tasks WHERE kind = 'kernel'".to_owned(),
                "kernel_ns" => "SELECT sum(duration) FROM tasks WHERE kind = 'kernel'".to_owned(),
                "memcpy" => "SELECT count(*) FROM tasks WHERE kind = 'gpu_memcpy'".to_owned(),
                "memcpy_bytes" => {
                    "SELECT sum(json_get_int(args, 'bytes')) FROM tasks WHERE kind = 'gpu_memcpy'".to_owned()
                }
                "runtime" => "SELECT count(*) FROM tasks WHERE kind IN ('cuda_runtime', 'cuda_driver')".to_owned(),
                "nvtx_ranges" => "SELECT count(*) FROM tasks WHERE kind = 'nvtx'".to_owned(),
                "nvtx_marks" => "SELECT count(*) FROM events WHERE kind = 'nvtx'".to_owned(),
                "nvtx_unfinished" => "SELECT count(*) FROM tasks WHERE kind = 'nvtx' AND finish IS NULL".to_owned(),
                "launch_links" => "SELECT count(*) FROM links WHERE kind IN ('launch', 'sync')".to_owned(),
                "kernels_without_call" => {
                    "SELECT count(*) FROM tasks t LEFT ANTI JOIN links l ON l.target = t.task AND l.kind = 'launch' \
                                           WHERE t.kind = 'kernel'"
                        .to_owned()
                }
                "syncs" => "SELECT count(*) FROM tasks WHERE kind = 'cuda_sync'".to_owned(),
                kernel => {
                    let name = kernel.strip_prefix("kernel_ns.").unwrap();
                    format!(
                        "SELECT sum(duration) FROM tasks WHERE kind = 'kernel' AND (name LIKE '%{name}%' OR (args->>'shortName') = '{name}')"
                    )
                }
            };
            assert_eq!(one(&session, &sql), value, "{stem}: {what}");
        }
        // Calls and what they launch are of one process.
        let strangers = "SELECT count(*) FROM links l JOIN tasks s ON s.task = l.source JOIN tasks t ON t.task = l.target \
                         WHERE split_part(s.location, '/', 1) <> split_part(t.location, '/', 1)";
        assert_eq!(one(&session, strangers), 0, "{stem}");
        assert_eq!(
            one(&session, "SELECT count(*) FROM import_stats WHERE severity = 'lost'"),
            0,
            "{stem}: {:?}",
            findings(&session)
        );
    }
}

/// A database made by these statements.
fn database(statements: &str) -> (TempDir, std::path::PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("made.sqlite");
    Connection::open(&path).unwrap().execute_batch(statements).unwrap();
    (folder, path)
}

#[test]
fn ids_are_text_contexts_are_apart_and_missing_values_are_not_names() {
    // Hardware 0x81, pids 100 and 200: ids above 2⁶³, written without a sign. Both processes have correlation 1.
    let id = |pid: u64, tid: u64| (0x81 << 56) | (pid << 24) | tid;
    let call = |pid, start| format!("({start}, {}, '{}', 1, 1)", start + 5, id(pid, pid + 1));
    let kernel =
        |pid, context, start| format!("({start}, {}, 0, {context}, 7, 1, '{}', -1, 2)", start + 100, id(pid, 0));
    let (_folder, path) = database(&format!(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
         INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'gemm');
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid TEXT, correlationId, nameId);
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES {}, {}, (50, 60, NULL, 9, 1);
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL
           (start, end, deviceId, contextId, streamId, correlationId, globalPid TEXT, demangledName, shortName);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES {}, {}, {};
         CREATE TABLE DIAGNOSTIC_EVENT (text); INSERT INTO DIAGNOSTIC_EVENT VALUES ('0 events were dropped');",
        call(100, 10),
        call(200, 20),
        kernel(100, 1, 100),
        kernel(100, 2, 150),
        kernel(200, 1, 120),
    ));
    let session = open(&path);
    assert_eq!(
        rows(&session, "SELECT name, location, start, depth FROM tasks WHERE kind = 'kernel' ORDER BY start"),
        ["gemm|100/GPU 0/stream 7|90|0", "gemm|200/GPU 0/stream 7|110|0", "gemm|100/GPU 0/context 2/stream 7|140|0"]
    );
    let pairs = "SELECT c.location, k.location FROM links l JOIN tasks c ON c.task = l.source JOIN tasks k ON k.task = l.target \
                 ORDER BY k.start";
    assert_eq!(
        rows(&session, pairs),
        ["100/101|100/GPU 0/stream 7", "200/201|200/GPU 0/stream 7", "100/101|100/GPU 0/context 2/stream 7"]
    );
    assert_eq!(findings(&session), ["info diagnostic 1", "info table_missing 1", "repaired no_thread 1"]);
}

#[test]
fn many_open_ranges_ask_the_pool() {
    let (_folder, path) = database(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
         INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'gemm');
         CREATE TABLE numbers (n INTEGER);
         WITH RECURSIVE all_of (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM all_of WHERE n < 2999) INSERT INTO numbers SELECT n FROM all_of;
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT 10000 + n * 10, 10005 + n * 10, 1677721801, n + 1, 1 FROM numbers;
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, shortName);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 10006 + n * 10, 10008 + n * 10, 0, 7, n + 1, 1677721600, 2 FROM numbers;
         CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid, rangeId);
         INSERT INTO NVTX_EVENTS SELECT n, 90000, 60, 'r', 1677721801, n FROM numbers;",
    );
    let options = OpenOptions { memory_limit: 20 << 20, ..options(&path) };
    let error = Session::open(&options).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("memory"), "{error}");
}

#[test]
fn a_database_that_only_speaks_of_our_tables_is_not_ours() {
    let (_folder, path) = database(
        "CREATE TABLE tickets (start, finish, name);
         INSERT INTO tickets VALUES (1, 2, 'join StringIds with NVTX_EVENTS, see CUPTI_ACTIVITY_KIND_KERNEL');",
    );
    assert_eq!(rows(&open(&path), "SELECT format, tasks FROM runs"), ["table|1"]);
}

#[test]
fn odd_rows_are_counted() {
    let (_folder, path) = database(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
         INSERT INTO StringIds VALUES (1, 'copy_kernel');
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (end, start, streamId, deviceId, shortName, correlationId);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (20, 10, 7, 0, 1, '5'), (40, 30, 7, 0, 99, 5), (90, NULL, 7, 0, 1, 6), (45, 50, 7, 0, 1, 0);
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 2, 1677721801, 5, 1), (3, 4, 3355443401, 5, 1);
         CREATE TABLE NVTX_EVENTS (start, end, eventType, text, globalTid);
         INSERT INTO NVTX_EVENTS VALUES (0, 5, 59, 'a', 1677721801), (0, 5, 77, 'b', 1677721801);",
    );
    let session = open(&path);
    assert_eq!(
        findings(&session),
        [
            "lost no_start 1",
            "lost unknown_event_type 1",
            "repaired ambiguous_correlation 2",
            "repaired negative_duration 1",
            "repaired unknown_string 2"
        ]
    );
    assert_eq!(
        rows(&session, "SELECT name, location, start, finish FROM tasks WHERE kind = 'kernel' ORDER BY start"),
        ["copy_kernel|GPU 0/stream 7|10|20", "[string 99]|GPU 0/stream 7|30|40", "copy_kernel|GPU 0/stream 7|50|50"]
    );
}

#[test]
fn far_times_and_missing_columns_are_counted() {
    let (_folder, path) = database(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, streamId, deviceId, correlationId);
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 20, 7, 0, 5), (-9223372036854775808, 20, 7, 0, 5), ('soon', 20, 7, 0, 5),
           (30, 9223372036854775807, 7, 0, 5);
         CREATE TABLE cupti_activity_kind_runtime (start, finish, globalTid, corr);
         INSERT INTO cupti_activity_kind_runtime VALUES (1, 2, 1677721801, 5);",
    );
    let session = open(&path);
    assert_eq!(
        findings(&session),
        [
            "info launched_before 1",
            "info table_missing 1",
            "info unfinished 1",
            "lost bad_time 3",
            "lost column_missing 2",
        ]
    );
    assert_eq!(
        rows(&session, "SELECT kind, start, duration FROM tasks ORDER BY kind"),
        ["cuda_runtime|0|-", "kernel|9|10"]
    );
}

/// Calls of thread 201 of process 100 at these times, each with a kernel of 10 ticks named after it.
fn launches(times: &[i64]) -> String {
    let mut statements = "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
         INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'registered');
         CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId);
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, globalPid, demangledName TEXT);
         CREATE TABLE NVTX_EVENTS (start, end, eventType, text, textId, globalTid, endGlobalTid, domainId);"
        .to_owned();
    for (call, time) in (1..).zip(times) {
        statements += &format!(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({time}, {time} + 5, {THREAD}, {call}, 1);
             INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({time} + 100, {time} + 110, 0, 7, {call}, {PROCESS}, 'kernel {call}');"
        );
    }
    statements
}

const PROCESS: i64 = 100 << 24;
const THREAD: i64 = PROCESS + 201;

/// Ranges of [`THREAD`]: name, start, end, domain.
fn ranges(ranges: &[(&str, i64, i64, i64)]) -> String {
    let range = |(name, start, end, domain): &(&str, i64, i64, i64)| {
        format!("INSERT INTO NVTX_EVENTS VALUES ({start}, {end}, 59, '{name}', NULL, {THREAD}, NULL, {domain});")
    };
    ranges.iter().map(range).collect()
}

/// Range, how many there are, and what they launched.
fn gpu_nvtx_ranges(session: &Session) -> Vec<String> {
    let batches = ask_saved(session, "gpu-nvtx-ranges", &[]);
    let mut rows = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let cell = |name| array_value_to_string(batch.column_by_name(name).unwrap(), row).unwrap();
            rows.push(["range", "ranges", "launched", "device_time"].map(cell).join("|"));
        }
    }
    rows.sort();
    rows
}

/// Which range each kernel is linked from.
const NVTX_LINKS: &str = "SELECT s.name, t.name FROM links l JOIN tasks s ON s.task = l.source JOIN tasks t ON t.task = l.target \
     WHERE l.kind = 'nvtx' ORDER BY 2, 1";

#[test]
fn each_domain_has_a_range_around_a_launch() {
    //  step          [100                    180)
    //  NCCL domain        [105  120)
    //    ring inside       [108 119)
    //  launches             110       130
    let (_folder, path) = database(
        &(launches(&[110, 130]) + &ranges(&[("step", 100, 180, 0), ("allReduce", 105, 120, 1), ("ring", 108, 119, 1)])),
    );
    let session = open(&path);
    assert_eq!(rows(&session, NVTX_LINKS), ["ring|kernel 1", "step|kernel 1", "step|kernel 2"]);
    assert_eq!(gpu_nvtx_ranges(&session), ["allReduce|1|1|10", "ring|1|1|10", "step|1|2|20"]);
}

#[test]
fn of_ranges_with_one_start_the_shorter_is_inside() {
    for names in [["outer", "inner"], ["inner", "outer"]] {
        let both = names.map(|name| (name, 100, if name == "outer" { 180 } else { 150 }, 0));
        let (_folder, path) = database(&(launches(&[110]) + &ranges(&both)));
        let session = open(&path);
        assert_eq!(rows(&session, NVTX_LINKS), ["inner|kernel 1"], "{names:?}");
        assert_eq!(gpu_nvtx_ranges(&session), ["inner|1|1|10", "outer|1|1|10"], "{names:?}");
    }
}

#[test]
fn start_end_ranges_of_one_thread_hold_its_launches() {
    // Two that overlap, one inside of the first, one that another thread ends, one that nobody ends.
    let (other, none) = ((THREAD + 1).to_string(), "NULL".to_owned());
    let event = |name: &str, start: i64, end: &str, thread: &str| {
        format!("INSERT INTO NVTX_EVENTS VALUES ({start}, {end}, 60, '{name}', NULL, {THREAD}, {thread}, 0);")
    };
    let events = event("first", 100, "180", &THREAD.to_string())
        + &event("second", 120, "200", &none)
        + &event("inside", 105, "115", "0")
        + &event("elsewhere", 100, "300", &other)
        + &event("never", 100, "NULL", &none);
    for (is_nested, expected) in
        [(false, vec!["first|1|2|20", "inside|1|1|10", "second|1|2|20"]), (true, vec!["first|1|2|20", "inside|1|1|10"])]
    {
        let (_folder, path) = database(&(launches(&[110, 130, 190]) + &events));
        if is_nested {
            let statement = "DELETE FROM NVTX_EVENTS WHERE text NOT IN ('first', 'inside')";
            Connection::open(&path).unwrap().execute(statement, []).unwrap();
        }
        assert_eq!(gpu_nvtx_ranges(&open(&path)), expected);
    }
}

#[test]
fn zero_and_minus_one_name_no_process() {
    for default in [0, -1] {
        let kernels = format!("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid = {default};");
        let (_folder, path) = database(&(launches(&[110]) + &kernels));
        let session = open(&path);
        assert_eq!(findings(&session), [""; 0], "{default}");
        assert_eq!(rows(&session, "SELECT location FROM tasks WHERE kind = 'kernel'"), ["100/GPU 0/stream 7"]);
        assert_eq!(rows(&session, "SELECT kind FROM links"), ["launch"]);
    }
}

#[test]
fn views_of_users_are_not_asked() {
    let views = "CREATE VIEW broken AS SELECT * FROM nowhere;
         CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL;";
    let (_folder, path) = database(&(launches(&[110]) + views));
    let session = open(&path);
    assert_eq!(findings(&session), [""; 0]);
    assert_eq!(one(&session, "SELECT count(*) FROM tasks"), 2);
}

#[test]
fn names_are_found_where_versions_put_them() {
    let more = format!(
        "INSERT INTO NVTX_EVENTS VALUES (1, 9, 59, '', 2, {THREAD}, NULL, 0), (2, 8, 59, 'inline', -1, {THREAD}, NULL, 0);
         CREATE TABLE PROFILER_OVERHEAD (start, end, globalTid, overheadType);
         INSERT INTO PROFILER_OVERHEAD VALUES (3, 4, {THREAD}, 3);
         CREATE TABLE DIAGNOSTIC_EVENT (timestamp, severity, text);
         INSERT INTO DIAGNOSTIC_EVENT VALUES (5, 2, 'Some CUDA events were dropped'), (6, 1, 'Profiling has started');"
    );
    let (_folder, path) = database(&(launches(&[110]) + &more));
    let session = open(&path);
    assert_eq!(
        rows(&session, "SELECT name FROM tasks ORDER BY start"),
        ["registered", "inline", "overhead 3", "cudaLaunchKernel", "kernel 1"]
    );
    assert_eq!(findings(&session), ["info diagnostic 1", "lost events_dropped 1"]);
}

#[test]
fn a_database_that_was_cut_off_keeps_what_is_left() {
    let (_folder, path) = database(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
         CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, streamId, deviceId, correlationId);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 10 * i, 10 * i + 5, 7, 0, i FROM n;",
    );
    let whole = std::fs::read(&path).unwrap();
    let left = |length: usize| {
        std::fs::write(&path, &whole[..length]).unwrap();
        let session = open(&path);
        let truncated = "SELECT count(*) FROM import_stats WHERE what = 'truncated' AND severity = 'lost'";
        assert_eq!(one(&session, truncated), 1);
        one(&session, "SELECT count(*) FROM tasks")
    };
    // The last page holds the last rows; whoever reads zeros for rows has more of them than there are.
    let (nearly, half) = (left(whole.len() - 1), left(whole.len() / 2));
    assert!(0 < half && half < nearly && nearly < 2_000, "{half} {nearly}");
    std::fs::write(&path, &whole[..3_000]).unwrap();
    let error = try_open(&path, &[]).err().unwrap().to_string();
    assert!(error.contains("cut off") && error.contains("not a readable SQLite trace"), "{error}");
}

#[test]
fn other_databases_of_nvidia_are_told_apart() {
    let (_folder, path) =
        database("CREATE TABLE StringTable (_id_, value); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (_id_, name);");
    let error = try_open(&path, &[]).err().unwrap().to_string();
    assert!(error.contains("nvprof"), "{error}");
    let (_folder, path) = database(
        "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); CREATE TABLE META_DATA_EXPORT (name, value);",
    );
    let session = open(&path);
    assert_eq!(one(&session, "SELECT count(*) FROM tasks"), 0);
    assert_eq!(findings(&session), ["info table_missing 3"]);
}

#[test]
fn a_long_schema_is_recognised() {
    let mut statements = "PRAGMA page_size = 512;".to_owned();
    for number in 0..400 {
        statements.push_str(&format!(
            "CREATE TABLE AAA_{number} (column_of_a_table_that_only_makes_the_schema_long TEXT, another_column_of_the_same_kind TEXT, third TEXT);"
        ));
    }
    statements.push_str("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT); CREATE TABLE NVTX_EVENTS (start, end, eventType);");
    let (_folder, path) = database(&statements);
    assert_eq!(rows(&open(&path), "SELECT format FROM runs"), ["nsys"]);
}

/// Half of a table would be a wrong answer: what SQLite cannot hold is no damage.
#[test]
fn a_value_that_sqlite_may_not_hold_is_an_error() {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("trace.sqlite");
    let database = Connection::open(&path).expect("a database");
    database
        .execute_batch(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
             INSERT INTO StringIds VALUES (1, 'gemm');
             INSERT INTO StringIds VALUES (2, zeroblob(300000000));
             INSERT INTO StringIds VALUES (3, 'copy');
             CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId INT, demangledName INT);
             INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, 1), (3, 4, 0, 7, 3);",
        )
        .expect("tables");
    drop(database);
    let options = OpenOptions { max_value: 1 << 20, ..options(&path) };
    let error = Session::open(&options).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("more memory than it may take") && error.contains("`StringIds`"), "{error}");
}
