//! Rows as strangers write them: begins and ends, times without a unit, columns with one in their name; and what is no row.

use std::path::Path;

use expect_test::{Expect, expect};
use tempfile::TempDir;
use tq_engine::session::Session;
use tq_tests::{folder_of, rows, try_open};

fn open(path: &Path, options: &[(&str, &str)]) -> Result<Session, String> {
    try_open(path, options).map_err(|error| error.to_string().replace(&path.display().to_string(), "FILE"))
}

/// The tasks of a file of that name and text, a line each, then what was found.
fn tasks(name: &str, text: &str, options: &[(&str, &str)], expected: &Expect) {
    let folder = folder_of(&[(name, text)]);
    let path = folder.path().join(name);
    let session = open(&path, options).unwrap();
    let tasks = rows(
        &session,
        "SELECT concat_ws(' ', name, location, start, coalesce(CAST(finish AS VARCHAR), '-'), depth, args) FROM tasks ORDER BY task",
    );
    let stats = rows(
        &session,
        "SELECT concat_ws(' ', what, severity, 'x' || count, example) FROM import_stats
         WHERE what <> 'records_read' ORDER BY what",
    );
    let text = [tasks, stats].concat().join("\n") + "\n";
    expected.assert_eq(&text.replace(&folder.path().display().to_string(), "DIR"));
}

fn refused(name: &str, text: &[u8], options: &[(&str, &str)], expected: &str) {
    let folder = folder_of(&[(name, text)]);
    let path = folder.path().join(name);
    let error = open(&path, options).err().unwrap_or_else(|| panic!("{name} was read"));
    assert!(error.contains(expected), "{name}: {error}");
}

const PHASE: (&str, &str) = ("table.phase", "event:begin=Enter,end=Leave");
const TIME: (&str, &str) = ("table.time", "ts:us");

#[test]
fn begins_and_ends_nest_by_name_and_location() {
    // t1   a [10 ............ 30)
    //         b [12 .. 20)
    // t2   a    [15 .... 25)   c [26 …
    tasks(
        "log.csv",
        "ts,event,location,name,bytes\n10,Enter,t1,a,\n12,Enter,t1,b,1\n15,Enter,t2,a,7\n20,Leave,t1,b,2\n25,Leave,t2,,\n\
         26,Enter,t2,c,\n30,Leave,t1,a,9\n31,Leave,t1,a,\n32,Mark,t1,,\n",
        &[PHASE, TIME],
        &expect![[r#"
            a t1 10000 30000 0 {"bytes":9}
            b t1 12000 20000 1 {"bytes":1}
            a t2 15000 25000 0 {"bytes":7}
            c t2 26000 - 0
            end_rows info x3 the ends of tasks, which give them their finish
            end_value_not_kept lost x1 DIR/log.csv:3: its end has another value, and the value of the begin stays
            other_phase lost x1 DIR/log.csv:10: `Mark` is neither `Enter` nor `Leave`
            unfinished info x1 DIR/log.csv:7: begins and never ends
            unmatched_end lost x1 DIR/log.csv:9: ends nothing that is open
        "#]],
    );
}

#[test]
fn a_missing_end_leaves_its_begin_open_and_no_other() {
    tasks(
        "log.csv",
        "ts,event,name\n1,Enter,outer\n2,Enter,lost\n3,Enter,inner\n4,Leave,inner\n5,Leave,outer\n",
        &[PHASE, TIME],
        &expect![[r#"
            outer 1000 5000
            lost 2000 -
            inner 3000 4000
            end_rows info x2 the ends of tasks, which give them their finish
            unfinished info x1 DIR/log.csv:3: begins and never ends
        "#]],
    );
}

#[test]
fn a_key_pairs_what_overlaps() {
    tasks(
        "log.ndjson",
        "{\"ts\":1,\"event\":\"Enter\",\"span\":\"x\",\"name\":\"a\",\"in\":5}\n{\"ts\":2,\"event\":\"Enter\",\"span\":\"y\",\"name\":\"b\"}\n\
         {\"ts\":3,\"event\":\"Leave\",\"span\":\"x\",\"out\":6}\n{\"ts\":4,\"event\":\"Leave\",\"span\":\"y\",\"out\":[1]}\n",
        &[PHASE, TIME, ("table.key", "span")],
        &expect![[r#"
            a 1000 3000 {"in":5,"out":6,"span":"x"}
            b 2000 4000 {"out":[1],"span":"y"}
            end_rows info x2 the ends of tasks, which give them their finish
        "#]],
    );
}

#[test]
fn pairs_of_all_lengths_in_many_batches() {
    use std::fmt::Write as _;
    const TASKS: usize = 20_000;
    let mut text = "ts,event,span\n".to_owned();
    for task in 0..TASKS {
        let _ = writeln!(text, "{task},Enter,{task}");
    }
    for task in (0..TASKS).rev() {
        let _ = writeln!(text, "{},Leave,{task}", 2 * TASKS + task * task);
    }
    let session = open(
        &folder_of(&[("log.csv", text)]).path().join("log.csv"),
        &[PHASE, ("table.time", "ts:ns"), ("table.key", "span")],
    )
    .unwrap();
    let wrong = "SELECT count(*), count(*) FILTER (WHERE finish <> 40000 + start * start) FROM tasks";
    assert_eq!(rows(&session, &format!("SELECT concat_ws(' ', a, b) FROM ({wrong}) t(a, b)")), ["20000 0"]);
}

#[test]
fn what_pairs_need_is_said() {
    let rows = b"ts,event,name\n1,Enter,a\n2,Leave,a\n";
    refused("a.csv", rows, &[PHASE], "begins and ends need times");
    refused("a.csv", rows, &[TIME], "`time` is no column of tasks and no setting");
    refused("a.csv", rows, &[("table.phase", "event"), TIME], "does not say which rows begin and which end");
    refused("a.csv", rows, &[("table.phase", "evnt:begin=Enter,end=Leave"), TIME], "no column `evnt`");
    refused("a.csv", rows, &[PHASE, TIME, ("table.key", "span")], "no column `span`");
    refused("a.csv", rows, &[PHASE, TIME, ("table.start", "ts")], "is known from begins and ends");
    refused("a.csv", rows, &[PHASE, TIME, ("table", "events")], "rows of tasks, not of events");
}

#[test]
fn units_that_nobody_said_are_guessed_and_counted() {
    tasks(
        "log.csv",
        "start,duration,name\n0.5,0.25,a\n1,0.125,b\n",
        &[],
        &expect![[r#"
        a 500000000 750000000
        b 1000000000 1125000000
        time_unit_guessed info x1 DIR/log.csv: `start` names no unit; its numbers were taken as s, since they have fractions: `table.start=start:us` and the like say it
    "#]],
    );
    tasks(
        "log.csv",
        "start,duration,name\n1700000001,2,a\n1700000000,1,b\n",
        &[],
        &expect![[r#"
        a 1000000000 3000000000
        b 0 1000000000
        time_unit_guessed info x1 DIR/log.csv: `start` names no unit; its numbers were taken as s, since they are dates since 1970 then: `table.start=start:us` and the like say it
    "#]],
    );
    tasks(
        "log.csv",
        "start,finish,name\n7,9,a\n",
        &[],
        &expect![[r#"
        a 7 9
        time_unit_guessed info x1 DIR/log.csv: `start` names no unit; its numbers were taken as ns, since they are whole: `table.start=start:us` and the like say it
    "#]],
    );
    tasks(
        "log.csv",
        "timestamp,duration,name\n1700000000123,7,a\n1700000000124,5,b\n",
        &[],
        &expect![[r#"
        a 0 7000000
        b 1000000 6000000
        time_unit_guessed info x1 DIR/log.csv: `timestamp` names no unit; its numbers were taken as ms, since they are dates since 1970 then: `table.start=timestamp:us` and the like say it
    "#]],
    );
}

#[test]
fn columns_may_end_in_their_unit() {
    tasks(
        "log.csv",
        "start_us,finish_us,name\n1.5,3,a\n",
        &[],
        &expect![[r#"
        a 1500 3000
    "#]],
    );
    tasks(
        "log.ndjson",
        "{\"start_ms\":1,\"duration_us\":3,\"name\":\"a\"}\n{\"start_ms\":2,\"duration_us\":4}\n",
        &[],
        &expect![[r#"
            a 1000000 1003000
             2000000 2004000
        "#]],
    );
    tasks(
        "log.ndjson",
        "{\"start_s\":1,\"duration_s\":0.5,\"name\":\"a\"}\n",
        &[],
        &expect![[r#"
            a 1000000000 1500000000
        "#]],
    );
}

#[test]
fn documents_and_databases_are_no_rows() {
    refused(
        "p.json",
        br#"{"meta":{"interval":1,"preprocessedProfileVersion":49},"libs":[],"threads":[]}"#,
        &[],
        "a Firefox profile",
    );
    refused(
        "p.json",
        br#"{"duration":49,"results":[{"x":1}]}"#,
        &[],
        "a JSON object without the marks of a trace; its keys are `duration`, `results`",
    );
    refused("p.json", b"{\n\"duration\":49\n}", &[], "a JSON object without the marks of a trace");
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("notes.sqlite");
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE notes (duration INTEGER, text TEXT); INSERT INTO notes VALUES (49, 'x')")
        .unwrap();
    let error = open(&path, &[]).err().unwrap();
    assert!(error.contains("an SQLite database without the marks of a trace; its tables are `notes`"), "{error}");
    assert!(open(&path, &[("table.duration", "duration:us")]).is_ok());
    let path = folder.path().join("rocm.db");
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE rocpd_kernel_dispatch_0a (start INTEGER, \"end\" INTEGER)")
        .unwrap();
    let error = open(&path, &[]).err().unwrap();
    assert!(error.contains("rocpd"), "{error}");
}

#[test]
fn a_directory_of_another_tool_says_whose_it_is() {
    let folder = folder_of(&["traces.otf2", "traces.def"].map(|name| (name, b"\x03\x42\0\0")));
    let error = open(folder.path(), &[]).err().unwrap();
    assert!(error.contains("OTF2 archive"), "{error}");
}
