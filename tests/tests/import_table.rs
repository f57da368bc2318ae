//! Home-made logs: what the `table` importer makes of them, and what it says when it cannot.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use datafusion::parquet::arrow::ArrowWriter;
use expect_test::{Expect, expect};
use tempfile::TempDir;
use tq_engine::error::ImportError;
use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::session::Session;
use tq_engine::tables::Table;
use tq_tests::{ask, drawn, folder_of};

const MEMORY: usize = 256 << 20;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/table").join(name)
}

fn open(path: &Path, options: &[(&str, &str)]) -> Result<Session, ImportError> {
    let mut open = OpenOptions::new(MEMORY, 2);
    open.traces = vec![TraceSpec { name: None, path: path.to_owned() }];
    open.import = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Session::open(&open)
}

/// The findings of a session, without the directory in examples.
fn findings(session: &Session, folder: &Path) -> String {
    let mut lines: Vec<String> = Vec::new();
    for stat in &session.runs()[0].stats {
        let example = stat.example.replace(&format!("{}/", folder.display()), "");
        lines.push(format!(
            "{} {} {} x{}: {example}",
            stat.finding.what, stat.finding.severity, stat.finding.stage, stat.count
        ));
    }
    lines.join("\n") + "\n"
}

/// What the error says, without the directory.
fn refusal(path: &Path, options: &[(&str, &str)]) -> String {
    let error = match open(path, options) {
        Ok(session) => panic!("{} opened:\n{}", path.display(), drawn(&session, "SELECT * FROM tasks LIMIT 5")),
        Err(error) => error,
    };
    let hint = match &error {
        ImportError::Unusable { hint: Some(hint), .. } => format!("\nhint: {hint}"),
        _ => String::new(),
    };
    let folder = path.parent().unwrap();
    format!("{error}{hint}\n").replace(&format!("{}/", folder.display()), "")
}

#[expect(clippy::needless_pass_by_value, reason = "`expect![]` is written where it is called")]
fn check(session: &Session, statement: &str, expected: Expect) {
    expected.assert_eq(&(drawn(session, statement) + "\n"));
}

// The fixture: a renderer's own log with dependencies and counters beside it.

#[test]
fn a_home_made_log_becomes_tasks_links_and_counters() {
    let session = open(&fixture("render_log.csv"), &[]).unwrap();
    check(
        &session,
        "SELECT task, id, parent, stack_parent, name, kind, location, start, finish, duration, depth, args FROM tasks ORDER BY task LIMIT 6",
        expect![[r#"
            +------+-----------------+--------+--------------+--------------+--------+----------+---------+---------+----------+-------+----------------------+
            | task | id              | parent | stack_parent | name         | kind   | location | start   | finish  | duration | depth | args                 |
            +------+-----------------+--------+--------------+--------------+--------+----------+---------+---------+----------+-------+----------------------+
            | 0    | f0.decode       |        |              | decode       | render | worker 0 | 1500000 | 2127000 | 627000   | 0     | {"frame":0,"kib":63} |
            | 1    | f1.decode       |        |              | decode       | render | worker 1 | 1500000 | 2537000 | 1037000  | 0     | {"frame":1,"kib":75} |
            | 2    | f2.decode       |        |              | decode       | render | worker 2 | 1900000 | 2879000 | 979000   | 0     | {"frame":2,"kib":76} |
            | 3    | f0.shade        |        |              | shade        | render | worker 0 | 2147000 | 4457000 | 2310000  | 0     | {"frame":0}          |
            | 4    | f0.shade pass 1 | 3      | 3            | shade pass 1 | render | worker 0 | 2162000 | 3738000 | 1576000  | 1     | {"frame":0}          |
            | 5    | f1.shade        |        |              | shade        | render | worker 1 | 2557000 | 4538000 | 1981000  | 0     | {"frame":1}          |
            +------+-----------------+--------+--------------+--------------+--------+----------+---------+---------+----------+-------+----------------------+
        "#]],
    );
    check(
        &session,
        "SELECT source, target, kind, name FROM links LIMIT 3",
        expect![[r#"
        +--------+--------+------------+--------+
        | source | target | kind       | name   |
        +--------+--------+------------+--------+
        | 0      | 3      | dependency | pixels |
        | 3      | 12     | dependency | pixels |
        | 1      | 5      | dependency | pixels |
        +--------+--------+------------+--------+
    "#]],
    );
    check(
        &session,
        "SELECT name, count(*) AS samples, max(time) AS last, max(value) AS highest, min(unit) AS unit FROM counters GROUP BY name ORDER BY name",
        expect![[r#"
            +-----------------+---------+----------+---------+------+
            | name            | samples | last     | highest | unit |
            +-----------------+---------+----------+---------+------+
            | frames waiting  | 12      | 18101000 | 11.0    |      |
            | resident memory | 12      | 18101000 | 236.0   | MiB  |
            +-----------------+---------+----------+---------+------+
        "#]],
    );
    check(
        &session,
        "SELECT location, kind, role, sort_index FROM locations",
        expect![[r#"
        +----------+--------+---------+------------+
        | location | kind   | role    | sort_index |
        +----------+--------+---------+------------+
        | worker 0 | worker | compute | 0          |
        | worker 1 | worker | compute | 1          |
        | worker 2 | worker | compute | 2          |
        +----------+--------+---------+------------+
    "#]],
    );
    check(
        &session,
        "SELECT run, format, time_unit, origin, started_at, makespan, tasks, locations FROM runs",
        expect![[r#"
            +------------+--------+-----------+--------+------------+----------+-------+-----------+
            | run        | format | time_unit | origin | started_at | makespan | tasks | locations |
            +------------+--------+-----------+--------+------------+----------+-------+-----------+
            | render_log | table  | s         | 0      |            | 16601000 | 60    | 3         |
            +------------+--------+-----------+--------+------------+----------+-------+-----------+
        "#]],
    );
    expect![[r#"
        records_read info import x119: 119 became rows
    "#]]
    .assert_eq(&findings(&session, &fixture("")));
}

#[test]
fn a_mapping_is_a_trace_and_a_directory_holds_a_run_each() {
    let tables = |path: &Path| {
        let session = open(path, &[]).unwrap();
        let count = |table: &str| drawn(&session, &format!("SELECT * FROM {table}"));
        ["tasks", "links", "counters", "locations"].map(count)
    };
    let of_data = tables(&fixture("render_log.csv"));
    assert_eq!(tables(&fixture("render_log.csv.tq.toml")), of_data);
    // Files that a mapping names are no runs of their own.
    let directory = open(&fixture("."), &[]).unwrap();
    let runs: Vec<&str> = directory.runs().iter().map(|run| run.name.as_str()).collect();
    assert_eq!(runs, ["halo", "render_log"]);
    let rows = drawn(&directory, "SELECT count(*) AS tasks FROM tasks WHERE run = 'render_log'");
    assert!(rows.contains("60"), "{rows}");
    let named = [("table.mapping", fixture("render_log.csv.tq.toml").display().to_string())];
    let named = named.each_ref().map(|(key, value)| (*key, value.as_str()));
    assert_eq!(open(&fixture("render_log.csv"), &named).unwrap().runs()[0].rows.len(), 4);
}

// Times.

#[test]
fn units_are_exact_and_durations_make_finishes() {
    let folder = folder_of(&[("t.csv", "start,duration,t_ms\n0.1,250,1.5\n1.0000005,0.5,-2\n")]);
    let session = open(
        &folder.path().join("t.csv"),
        &[
            ("table.start", "start:s"),
            ("table.duration", "duration:us"),
            ("table.finish", "'9999'"),
            ("table.time_unit", "ms"),
        ],
    )
    .unwrap();
    check(
        &session,
        "SELECT start, finish, duration, args FROM tasks",
        expect![[r#"
        +------------+------------+------------+--------------+
        | start      | finish     | duration   | args         |
        +------------+------------+------------+--------------+
        | 100000000  | 9999000000 | 9899000000 | {"t_ms":1.5} |
        | 1000000500 | 9999000000 | 8998999500 | {"t_ms":-2}  |
        +------------+------------+------------+--------------+
    "#]],
    );
    let session =
        open(&folder.path().join("t.csv"), &[("table.start", "start:s"), ("table.duration", "duration:us")]).unwrap();
    check(
        &session,
        "SELECT start, finish, duration FROM tasks",
        expect![[r#"
        +------------+------------+----------+
        | start      | finish     | duration |
        +------------+------------+----------+
        | 100000000  | 100250000  | 250000   |
        | 1000000500 | 1000001000 | 500      |
        +------------+------------+----------+
    "#]],
    );
    let session =
        open(&folder.path().join("t.csv"), &[("table.start", "t_ms:ms"), ("table.duration", "duration:min")]).unwrap();
    check(
        &session,
        "SELECT start, finish, duration FROM tasks",
        expect![[r#"
        +----------+----------------+----------------+
        | start    | finish         | duration       |
        +----------+----------------+----------------+
        | 1500000  | 15000001500000 | 15000000000000 |
        | -2000000 | 29998000000    | 30000000000    |
        +----------+----------------+----------------+
    "#]],
    );
}

#[test]
fn picoseconds_make_a_finer_run_and_decimals_without_a_unit_are_rounded_aloud() {
    let folder = folder_of(&[("t.csv", "start,finish\n0.0015,2.5\n1,3\n")]);
    let path = folder.path().join("t.csv");
    let session = open(&path, &[("table.start", "start:ns"), ("table.tick", "ps")]).unwrap();
    check(
        &session,
        "SELECT start, finish FROM tasks",
        expect![[r#"
            +-------+--------+
            | start | finish |
            +-------+--------+
            | 2     | 2500   |
            | 1000  | 3000   |
            +-------+--------+
        "#]],
    );
    let session = open(&path, &[]).unwrap();
    check(
        &session,
        "SELECT start, finish FROM tasks",
        expect![[r#"
            +------------+------------+
            | start      | finish     |
            +------------+------------+
            | 1500000    | 2500000000 |
            | 1000000000 | 3000000000 |
            +------------+------------+
        "#]],
    );
    expect![[r#"
        records_read info import x2: 2 became rows
        time_unit_guessed info import x1: t.csv: `start` names no unit; its numbers were taken as s, since they have fractions: `table.start=start:us` and the like say it
    "#]].assert_eq(&findings(&session, folder.path()));
}

#[test]
fn timestamps_count_from_the_least_start() {
    let folder = folder_of(&[
        (
            "iso.csv",
            "start,finish,name\n2026-01-02T03:04:05.250Z,2026-01-02T03:04:06Z,late\n2026-01-02 03:04:05,2026-01-02 04:04:05.5+01:00,early\n",
        ),
        ("epoch.csv", "start,finish,name\n1767323045.25,1767323046,late\n1767323045,1767323045.5,early\n"),
    ]);
    let runs = "SELECT origin, started_at, makespan FROM runs";
    let tasks = "SELECT name, start, finish FROM tasks";
    let iso = open(&folder.path().join("iso.csv"), &[]).unwrap();
    check(
        &iso,
        tasks,
        expect![[r#"
        +-------+-----------+------------+
        | name  | start     | finish     |
        +-------+-----------+------------+
        | late  | 250000000 | 1000000000 |
        | early | 0         | 500000000  |
        +-------+-----------+------------+
    "#]],
    );
    check(
        &iso,
        runs,
        expect![[r#"
        +---------------------+----------------------+------------+
        | origin              | started_at           | makespan   |
        +---------------------+----------------------+------------+
        | 1767323045000000000 | 2026-01-02T03:04:05Z | 1000000000 |
        +---------------------+----------------------+------------+
    "#]],
    );
    let seconds = [("table.time_unit", "s")];
    let epoch = open(&folder.path().join("epoch.csv"), &seconds).unwrap();
    assert_eq!((drawn(&epoch, tasks), drawn(&epoch, runs)), (drawn(&iso, tasks), drawn(&iso, runs)));

    let starts: ArrayRef =
        Arc::new(TimestampMicrosecondArray::from(vec![1_767_323_045_250_000, 1_767_323_045_000_000]));
    let finishes: ArrayRef = Arc::new(
        TimestampNanosecondArray::from(vec![1_767_323_046_000_000_000, 1_767_323_045_500_000_000]).with_timezone("UTC"),
    );
    let names: ArrayRef = Arc::new(StringArray::from(vec!["late", "early"]));
    let batch = RecordBatch::try_from_iter([("start", starts), ("finish", finishes), ("name", names)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let path = folder.path().join("typed.parquet");
    std::fs::write(&path, bytes).unwrap();
    let typed = open(&path, &[]).unwrap();
    assert_eq!((drawn(&typed, tasks), drawn(&typed, runs)), (drawn(&iso, tasks), drawn(&iso, runs)));

    // What was asked for goes before what looks right.
    let kept = open(&folder.path().join("epoch.csv"), &[("table.time_unit", "s"), ("table.origin", "0")]).unwrap();
    check(
        &kept,
        "SELECT min(start) AS first FROM tasks",
        expect![[r#"
        +---------------------+
        | first               |
        +---------------------+
        | 1767323045000000000 |
        +---------------------+
    "#]],
    );
    let kept = open(&folder.path().join("iso.csv"), &[("table.origin", "0")]).unwrap();
    check(
        &kept,
        "SELECT min(start) AS first FROM tasks",
        expect![[r#"
        +---------------------+
        | first               |
        +---------------------+
        | 1767323045000000000 |
        +---------------------+
    "#]],
    );
    let moved = open(&folder.path().join("iso.csv"), &[("table.origin", "min"), ("table.tick", "ps")]).unwrap();
    check(
        &moved,
        tasks,
        expect![[r#"
        +-------+--------------+---------------+
        | name  | start        | finish        |
        +-------+--------------+---------------+
        | late  | 250000000000 | 1000000000000 |
        | early | 0            | 500000000000  |
        +-------+--------------+---------------+
    "#]],
    );
}

// References, locations, messages, events.

#[test]
fn references_lead_to_tasks_wherever_they_stand() {
    let folder = folder_of(&[
        ("t.csv", "id,start,finish,parent,location,process\nb,5,9,a,x,p1\na,0,10,,y,p1\na,3,4,nobody,x,p2\n"),
        ("l.csv", "from,to\na,b\nb,zzz\n,b\nb,a\n"),
        ("m.csv", "source,target,bytes,sent,by\nx,z,100,7,b\ny,x,many,8,nobody\n"),
        ("e.csv", "name,time,location,task\nmark,6,x,b\n,7,,\n"),
        ("n.csv", "location,parent,kind\nx,node 0,core\nx,node 1,core\nz,node 0,core\n"),
        (
            "all.tq.toml",
            "[[table]]\nfile = 't.csv'\n[[table]]\ntable = 'links'\nfile = 'l.csv'\nsource = 'from'\ntarget = 'to'\nkind = \"'flow'\"\n\
             [[table]]\ntable = 'messages'\nfile = 'm.csv'\nsend_time = 'sent:us'\nsource_task = 'by'\n\
             [[table]]\ntable = 'events'\nfile = 'e.csv'\n[[table]]\ntable = 'locations'\nfile = 'n.csv'\n",
        ),
    ]);
    let session = open(&folder.path().join("all.tq.toml"), &[]).unwrap();
    check(
        &session,
        "SELECT task, id, parent, stack_parent, depth, location FROM tasks",
        expect![[r#"
        +------+----+--------+--------------+-------+----------+
        | task | id | parent | stack_parent | depth | location |
        +------+----+--------+--------------+-------+----------+
        | 0    | b  | 1      |              | 0     | x        |
        | 1    | a  |        |              | 0     | y        |
        | 2    | a  |        |              | 0     | x        |
        +------+----+--------+--------------+-------+----------+
    "#]],
    );
    check(
        &session,
        "SELECT run, source, target, kind FROM links",
        expect![[r#"
        +-----+--------+--------+------+
        | run | source | target | kind |
        +-----+--------+--------+------+
        | all | 1      | 0      | flow |
        | all | 0      | 1      | flow |
        +-----+--------+--------+------+
    "#]],
    );
    check(
        &session,
        "SELECT source, target, source_task, send_time, bytes, count, kind, args FROM messages",
        expect![[r#"
            +--------+--------+-------------+-----------+-------+-------+---------+------------------+
            | source | target | source_task | send_time | bytes | count | kind    | args             |
            +--------+--------+-------------+-----------+-------+-------+---------+------------------+
            | x      | z      | 0           | 7000      | 100   | 1     | logical |                  |
            | y      | x      |             | 8000      |       | 1     | logical | {"bytes":"many"} |
            +--------+--------+-------------+-----------+-------+-------+---------+------------------+
        "#]],
    );
    check(
        &session,
        "SELECT name, time, location, task FROM events",
        expect![[r#"
        +------+------+----------+------+
        | name | time | location | task |
        +------+------+----------+------+
        | mark | 6    | x        | 0    |
        |      | 7    |          |      |
        +------+------+----------+------+
    "#]],
    );
    check(
        &session,
        "SELECT location, parent, kind, process FROM locations",
        expect![[r#"
        +----------+--------+----------+---------+
        | location | parent | kind     | process |
        +----------+--------+----------+---------+
        | x        | node 0 | core     |         |
        | z        | node 0 | core     |         |
        | node 0   |        | location |         |
        | node 1   |        | location |         |
        | y        |        | location | p1      |
        +----------+--------+----------+---------+
    "#]],
    );
    expect![[r#"
        bad_value lost recording x1: m.csv:3: bytes is no whole number: `many`
        duplicate_id info recording x1: t.csv:4: `a`; links and parents mean the first task of that id
        duplicate_location lost recording x1: n.csv:3: `x` has a row already, or no name
        missing_end lost recording x1: l.csv:4: no source
        records_read info import x14: 11 became rows
        time_unit_guessed info import x2: t.csv: `start` names no unit; its numbers were taken as ns, since they are whole: `table.start=start:us` and the like say it
        unknown_reference lost recording x3: l.csv:3: target `zzz` is the id of no task
    "#]]
    .assert_eq(&findings(&session, folder.path()));
}

#[test]
fn references_by_name_need_unique_names() {
    let folder = folder_of(&[
        ("t.csv", "name,start,finish\na,0,1\nb,1,2\nc,2,3\nc,3,4\n"),
        ("l.csv", "source,target\na,b\nb,c\n"),
        ("all.tq.toml", "key = 'name'\n[[table]]\nfile = 't.csv'\n[[table]]\ntable = 'links'\nfile = 'l.csv'\n"),
    ]);
    let session = open(&folder.path().join("all.tq.toml"), &[]).unwrap();
    check(
        &session,
        "SELECT source, target FROM links",
        expect![[r#"
        +--------+--------+
        | source | target |
        +--------+--------+
        | 0      | 1      |
        +--------+--------+
    "#]],
    );
    expect![[r#"
        ambiguous_reference lost recording x1: l.csv:3: target `c` is the name of several tasks
        records_read info import x6: 5 became rows
        time_unit_guessed info import x1: t.csv: `start` names no unit; its numbers were taken as ns, since they are whole: `table.start=start:us` and the like say it
    "#]]
    .assert_eq(&findings(&session, folder.path()));
}

#[test]
fn columns_that_probably_name_tasks_and_locations_are_suggested() {
    let folder = folder_of(&[("t.csv", "event,host,start_us,duration_us\na,h1,0,1\n")]);
    let session = open(&folder.path().join("t.csv"), &[]).unwrap();
    expect![[r#"
        column_suggested info import x2: t.csv: the tasks have no name and no location; `--option table.name=event` and `--option table.location=host` may give it
        records_read info import x1: 1 became rows
    "#]]
    .assert_eq(&findings(&session, folder.path()));
    // What is said is enough.
    let said = open(&folder.path().join("t.csv"), &[("table.name", "event"), ("table.location", "host")]).unwrap();
    expect![[r#"
        records_read info import x1: 1 became rows
    "#]]
    .assert_eq(&findings(&said, folder.path()));
}

#[test]
fn templates_constants_and_files_without_a_header() {
    let folder = folder_of(&[("t.csv", "n0,1,100,200\nn0,,150,175\n,,300,301\n")]);
    let session = open(
        &folder.path().join("t.csv"),
        &[
            ("table.columns", "host, thread, t0, t1"),
            ("table.start", "t0:us"),
            ("table.finish", "t1:us"),
            ("table.location", "'{host}/{thread}'"),
            ("table.kind", "'it is'"),
            ("table.name", "'{host}'"),
        ],
    )
    .unwrap();
    check(
        &session,
        "SELECT name, kind, location, start, finish, args FROM tasks",
        expect![[r#"
        +------+-------+----------+--------+--------+------+
        | name | kind  | location | start  | finish | args |
        +------+-------+----------+--------+--------+------+
        | n0   | it is | n0/1     | 100000 | 200000 |      |
        | n0   | it is | n0/      | 150000 | 175000 |      |
        |      | it is |          | 300000 | 301000 |      |
        +------+-------+----------+--------+--------+------+
    "#]],
    );
}

// Errors.

#[test]
fn errors_say_what_the_file_has_and_what_to_type() {
    let folder = folder_of(&[
        ("log.csv", "begin_us,End (us),op,tid\n1,2,a,3\n"),
        ("odd.csv", "alpha,beta\n1,2\n"),
        ("links.csv", "from,to\na,b\n"),
        ("a.ndjson", "{\"begin\": 1, \"end\": 2}\n"),
        ("prose.txt", "Dear Sir,\nthis is, as you see, a letter.\n"),
        ("header.csv", "start,finish,name\n"),
        ("bad.csv", "start,finish\n1,2\n"),
        ("bad.csv.tq.toml", "table = \"tasks\"\nstart = \"start:us\"\nfinsh = \"finish:us\"\n"),
        ("worse.csv", "start,finish\n1,2\n"),
        ("worse.csv.tq.toml", "table = \"tasks\"\nstart = start:us\n"),
        ("gone.csv", "start,finish\n1,2\n"),
        ("gone.csv.tq.toml", "[[table]]\n[[table]]\ntable = \"links\"\nfile = \"nowhere.csv\"\n"),
        ("near.csv", "start,finish\n1,2\n"),
        ("cr.csv", "start,finish,name\r0,1,a\r1,2,b\r"),
        ("near.csv.tq.toml", "start = \"strat\"\n"),
    ]);
    let check = |name: &str, options: &[(&str, &str)], expected: Expect| {
        expected.assert_eq(&refusal(&folder.path().join(name), options));
    };
    check(
        "log.csv",
        &[],
        expect![[r#"
        log.csv: a task needs `start` or `duration`, and no column is called so; the file has `begin_us`, `End (us)`, `op` and `tid`
        hint: --option table.start=begin_us:us --option 'table.finish=End (us):us' --option table.name=op --option table.location=tid
    "#]],
    );
    check(
        "log.csv",
        &[("table.start", "begin_ms:us")],
        expect![[r#"
        import option `table.start=begin_ms:us`: log.csv has no column `begin_ms`; it has `begin_us`, `End (us)`, `op` and `tid`; did you mean `begin_us`?
    "#]],
    );
    check(
        "log.csv",
        &[("table.start", "begin_us:usec")],
        expect![[r#"
        import option `table.start=begin_us:usec`: `usec` is no unit of time; there are `s`, `ms`, `us`, `µs`, `ns`, `ps` and `min`
    "#]],
    );
    check(
        "log.csv",
        &[("table.start", "begin_us:us"), ("table.name", "op:us")],
        expect![[r#"
        import option `table.name=op:us`: `name` is no time and takes no unit
    "#]],
    );
    check(
        "log.csv",
        &[("table.strat", "begin_us:us")],
        expect![[r#"
            import option `table.strat=begin_us:us`: `strat` is no column of tasks and no setting; did you mean `start`?
        "#]],
    );
    check(
        "log.csv",
        &[("table", "task")],
        expect![[r#"
        import option `table=task`: rows can become `tasks`, `links`, `messages`, `counters`, `events` and `locations`; did you mean `tasks`?
    "#]],
    );
    check(
        "log.csv",
        &[("tabel.start", "begin_us:us")],
        expect![[r#"
        no import option `tabel.start`
    "#]],
    );
    check(
        "odd.csv",
        &[],
        expect![[r#"
        odd.csv: a task needs `start` or `duration`, and no column is called so; the file has `alpha` and `beta`
        hint: --option table.start=COLUMN:us
    "#]],
    );
    check(
        "cr.csv",
        &[],
        expect![[r#"
        cr.csv: not a readable table trace: its lines end in carriage returns alone: `tr '\r' '\n'` makes lines of them (line 1)
    "#]],
    );
    check(
        "links.csv",
        &[("table", "links")],
        expect![[r#"
        links.csv: a link needs `source`, and no column is called so; the file has `from` and `to`
        hint: --option table.source=from --option table.target=to
    "#]],
    );
    check(
        "links.csv",
        &[("table", "links"), ("table.source", "from"), ("table.target", "to")],
        expect![[r#"
        links.csv: `source` refers to tasks by their id, but no column is the `id` of the tasks
        hint: map `table.id=COLUMN` of the tasks, or say `table.key=name` where their names are unique
    "#]],
    );
    check(
        "a.ndjson",
        &[],
        expect![[r#"
            a.ndjson: a task needs `start` or `duration`, and no column is called so; the file has `begin` and `end`
            hint: --option table.start=begin --option table.finish=end (the unit of numbers is guessed; `begin:us` and the like say it)
        "#]],
    );
    check(
        "a.ndjson",
        &[("table.start", "begin:s"), ("table.name", "what")],
        expect![[r#"
        import option `table.name=what`: no record of a.ndjson has a key `what`
    "#]],
    );
    check(
        "prose.txt",
        &[],
        expect![[r#"
        no format recognises `prose.txt`; it begins with `Dear Sir,\nthis is, as yo`
    "#]],
    );
    check(
        "bad.csv",
        &[],
        expect![[r#"
            bad.csv.tq.toml:3: `finsh` is no column of tasks and no setting
            hint: did you mean `finish`?
        "#]],
    );
    check(
        "worse.csv",
        &[],
        expect![[r#"
        worse.csv.tq.toml:2: not TOML: string values must be quoted, expected literal string
        hint: write `start = "begin:us"`: texts stand in quotes
    "#]],
    );
    check(
        "gone.csv",
        &[],
        expect![[r#"
            gone.csv.tq.toml:4: cannot read trace `nowhere.csv`: no such file or directory
        "#]],
    );
    check(
        "near.csv",
        &[],
        expect![[r#"
        near.csv.tq.toml:1: near.csv has no column `strat`; it has `start` and `finish`
        hint: did you mean `start`?
    "#]],
    );
    // A table without rows is a table.
    assert_eq!(open(&folder.path().join("header.csv"), &[]).unwrap().runs()[0].rows, []);
}

#[test]
fn a_stray_table_in_a_directory_is_no_trace() {
    let folder = folder_of(&[("notes.csv", "alpha,beta\n1,2\n"), ("log.csv", "start,finish\n1,2\n")]);
    let session = open(folder.path(), &[]).unwrap();
    assert_eq!(session.runs().len(), 1);
    assert!(findings(&session, folder.path()).contains("file_not_recognised info import x1: notes.csv"));
}

#[test]
fn bad_lines_and_cells_are_counted_with_their_place() {
    let folder = folder_of(&[(
        "log.csv",
        "start,finish,name,depth,note\n0,10,ok,0,x\n1,2\n3,4e,bad time,1,\n5,6,bad depth,one,\n9,7,backwards,,\n\n\
         11,12,\"over\ntwo lines\",,\n13,14,\"never closed,,\n15,16,fine,,y\n",
    )]);
    let session = open(&folder.path().join("log.csv"), &[]).unwrap();
    check(
        &session,
        "SELECT name, start, finish, depth, args FROM tasks ORDER BY task",
        expect![[r#"
        +-----------+-------+--------+-------+-----------------+
        | name      | start | finish | depth | args            |
        +-----------+-------+--------+-------+-----------------+
        | ok        | 0     | 10     | 0     | {"note":"x"}    |
        | bad time  | 3     |        | 1     | {"finish":"4e"} |
        | bad depth | 5     | 6      |       | {"depth":"one"} |
        | backwards | 9     |        |       |                 |
        | over      | 11    | 12     |       |                 |
        | two lines |       |        |       |                 |
        | fine      | 15    | 16     |       | {"note":"y"}    |
        +-----------+-------+--------+-------+-----------------+
    "#]],
    );
    expect![[r#"
        bad_value lost recording x2: log.csv:4: finish is no time: `4e`
        finish_before_start repaired recording x1: task 3: start 9, finish 7; finish is NULL
        ragged_line lost recording x1: log.csv:3: 2 fields, the header has 5: `1,2`
        records_read info import x8: 6 became rows
        time_unit_guessed info import x1: log.csv: `start` names no unit; its numbers were taken as ns, since they are whole: `table.start=start:us` and the like say it
        unterminated_quote lost recording x1: log.csv:10: a quote opens and never closes: `"never closed,,`
    "#]]
    .assert_eq(&findings(&session, folder.path()));
}

#[test]
fn bad_records_of_json_are_counted() {
    let folder = folder_of(&[(
        "log.ndjson",
        "{\"start\": 1, \"finish\": 2.5, \"a\": {\"b\": [1, null]}}\n[1]\n{\"start\": 3, \"finish\": \n\n{\"start\": \"4\", \"finish\": true, \"a\\\"\": null}\n",
    )]);
    let session = open(&folder.path().join("log.ndjson"), &[("table.time_unit", "us")]).unwrap();
    check(
        &session,
        "SELECT start, finish, args FROM tasks",
        expect![[r#"
        +-------+--------+------------------------+
        | start | finish | args                   |
        +-------+--------+------------------------+
        | 1000  | 2500   | {"a":{"b": [1, null]}} |
        | 4000  |        | {"finish":"true"}      |
        +-------+--------+------------------------+
    "#]],
    );
    expect![[r#"
        bad_record lost recording x2: log.ndjson:2: invalid type: sequence, expected an object at line 1 column 0: `[1]`
        bad_value lost recording x1: log.ndjson:5: finish is no time: `true`
        records_read info import x4: 2 became rows
    "#]]
    .assert_eq(&findings(&session, folder.path()));
}

// SQLite.

#[test]
fn sqlite_is_read_without_a_trace_of_reading() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("50% #1?.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "CREATE TABLE log (place TEXT, begin REAL, \"end\" REAL);
             INSERT INTO log VALUES ('w0', 0.1, 0.7), ('w1', 0.25, 0.5), ('w0', 0.2, NULL);
             CREATE TABLE other (source TEXT, target TEXT);
             INSERT INTO other VALUES ('a', 'b')",
        )
        .unwrap();
    // A writer that holds the lock is no obstacle.
    database.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let before = std::fs::read(&path).unwrap();
    expect![[r#"
        50% #1?.db: an SQLite database without the marks of a trace; its tables are `log`, `other`
        hint: as rows: --option table.from=log --option table.start=COLUMN:us --option table.duration=COLUMN:us
    "#]]
    .assert_eq(&refusal(&path, &[]));
    expect![[r#"
        50% #1?.db: no table `lag`; there are `log` and `other`
        hint: --option table.from=log
    "#]]
    .assert_eq(&refusal(&path, &[("table.from", "lag")]));
    expect![[r#"
        50% #1?.db: the database refuses `SELECT missing FROM log`: no such column: missing in SELECT missing FROM log at offset 7
    "#]].assert_eq(&refusal(&path, &[("table.query", "SELECT missing FROM log")]));
    expect![[r#"
        50% #1?.db: the database refuses `DELETE FROM log`: only a SELECT is run
    "#]]
    .assert_eq(&refusal(&path, &[("table.query", "DELETE FROM log")]));
    let session =
        open(&path, &[("table.from", "log"), ("table.start", "begin:s"), ("table.location", "place")]).unwrap();
    assert_eq!(session.runs()[0].rows, [(Table::Locations, 2), (Table::Tasks, 3)]);
    let query =
        "SELECT place AS location, min(begin) AS start, max(\"end\") AS finish FROM log GROUP BY place ORDER BY place";
    let session = open(&path, &[("table.query", query), ("table.time_unit", "s")]).unwrap();
    check(
        &session,
        "SELECT location, start, finish FROM tasks",
        expect![[r#"
        +----------+-----------+-----------+
        | location | start     | finish    |
        +----------+-----------+-----------+
        | w0       | 100000000 | 700000000 |
        | w1       | 250000000 | 500000000 |
        +----------+-----------+-----------+
    "#]],
    );
    assert!(std::fs::read(&path).unwrap() == before);
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(files.iter().all(|file| !file.to_string_lossy().ends_with("-wal")), "{files:?}");
}

#[test]
fn changes_in_a_write_ahead_log_are_read_without_a_trace() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("log.db");
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "PRAGMA journal_mode=WAL; CREATE TABLE log (start INT, finish INT); PRAGMA wal_checkpoint(TRUNCATE)",
        )
        .unwrap();
    database.execute_batch("INSERT INTO log VALUES (1, 2)").unwrap();
    let before = std::fs::read(&path).unwrap();
    let session = open(&path, &[]).unwrap();
    assert_eq!(session.runs()[0].rows, [(Table::Tasks, 1)]);
    expect![[r#"
        records_read info import x1: 1 became rows
        time_unit_guessed info import x1: log.db: `start` names no unit; its numbers were taken as ns, since they are whole: `table.start=start:us` and the like say it
        wal_read info import x1: changes in `log.db-wal` were read, in a temporary copy of both files
    "#]]
    .assert_eq(&findings(&session, folder.path()));
    assert!(std::fs::read(&path).unwrap() == before);
}

// Documentation.

/// Rows as `--format csv` prints them.
fn csv(session: &Session, statement: &str) -> String {
    let batches = ask(session, statement);
    let mut writer = datafusion::arrow::csv::Writer::new(Vec::new());
    for batch in &batches {
        writer.write(batch).unwrap();
    }
    String::from_utf8(writer.into_inner()).unwrap()
}

#[test]
fn the_page_for_users_shows_what_happens() {
    let page = std::fs::read_to_string(fixture("../../docs/table.md")).unwrap();
    let missing = std::cell::RefCell::new(String::new());
    let shows = |text: &str| {
        if !page.contains(text) {
            *missing.borrow_mut() += &format!("docs/table.md does not show\n{text}\n");
        }
    };
    let steps = fixture("steps.csv");
    shows(&std::fs::read_to_string(&steps).unwrap());
    let refusal = refusal(&steps, &[]);
    let (error, hint) = refusal.trim_end().split_once('\n').unwrap();
    shows(error);
    shows(hint);
    let options: Vec<(String, String)> = hint
        .trim_start_matches("hint: ")
        .split("--option ")
        .filter_map(|option| option.trim().split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let options: Vec<(&str, &str)> = options.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let session = open(&steps, &options).unwrap();
    let statement = "SELECT name, location, start, finish, args->>'items' AS items FROM tasks ORDER BY start";
    shows(statement);
    shows(&csv(&session, statement));
    let mapping = std::fs::read_to_string(fixture("render_log.csv.tq.toml")).unwrap();
    shows(mapping.split_once("[[table]]\ntable = \"counters\"").unwrap().0.split_once("\n\n").unwrap().1);
    let session = open(&fixture("render_log.csv"), &[]).unwrap();
    for statement in [
        "SELECT location, count(*) AS tasks, busy(start, finish) AS busy_time FROM tasks WHERE depth = 0 GROUP BY location ORDER BY location",
        "SELECT step, name, location, start FROM critical_path(tasks, links) ORDER BY step LIMIT 3",
    ] {
        shows(statement);
        shows(&csv(&session, statement));
    }
    assert_eq!(missing.into_inner(), "");
}
