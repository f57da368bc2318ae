//! Chrome traces of other producers: ends that name another slice, events that were open when recording stopped, summaries of
//! compilers, compressed files that are padded or damaged.

use std::io::Write;
use std::path::Path;

use expect_test::{Expect, expect};
use flate2::{Compression, write::GzEncoder};
use tq_tests::{drawn, folder_of, open};

fn table(path: &Path, sql: &str) -> String {
    drawn(&open(path), sql) + "\n"
}

/// The tasks of events of which there is nothing to be said but how many records they are.
fn shows_all(events: &str, tasks: &Expect, records: usize) {
    let found = shown(events, tasks);
    let cells: Vec<&str> = found.split(['|', '+', '-', '\n']).map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells, ["what", "severity", "count", "records_read", "info", &records.to_string()]);
}

/// The tasks and the findings of events.
fn shows(events: &str, tasks: &Expect, findings: &Expect) {
    findings.assert_eq(&shown(events, tasks));
}

/// The findings of events whose tasks are as expected.
fn shown(events: &str, tasks: &Expect) -> String {
    let folder = folder_of(&[("trace.json", format!("[{events}]"))]);
    let path = folder.path().join("trace.json");
    tasks.assert_eq(&table(
        &path,
        "SELECT location, name, role, start, finish FROM tasks ORDER BY start, location, name",
    ));
    table(&path, "SELECT what, severity, count FROM import_stats WHERE stage <> 'read' AND count > 0 ORDER BY what")
}

/// As Perfetto's `slice_tracker`: the innermost open slice of that name, with those above it.
#[test]
fn a_named_end_closes_the_slice_of_its_name() {
    shows(
        r#"{"ph":"B","pid":1,"tid":1,"ts":0,"name":"outer"},
           {"ph":"B","pid":1,"tid":1,"ts":10,"name":"lost"},
           {"ph":"B","pid":1,"tid":1,"ts":20,"name":"inner"},
           {"ph":"E","pid":1,"tid":1,"ts":30,"name":"inner"},
           {"ph":"E","pid":1,"tid":1,"ts":40,"name":"stray"},
           {"ph":"E","pid":1,"tid":1,"ts":100,"name":"outer"},
           {"ph":"B","pid":1,"tid":1,"ts":110,"name":"any"},
           {"ph":"E","pid":1,"tid":1,"ts":120}"#,
        &expect![[r#"
            +----------+-------+------+--------+--------+
            | location | name  | role | start  | finish |
            +----------+-------+------+--------+--------+
            | 1/1      | outer | work | 0      | 100000 |
            | 1/1      | lost  | work | 10000  | 100000 |
            | 1/1      | inner | work | 20000  | 30000  |
            | 1/1      | any   | work | 110000 | 120000 |
            +----------+-------+------+--------+--------+
        "#]],
        &expect![[r#"
            +---------------+----------+-------+
            | what          | severity | count |
            +---------------+----------+-------+
            | end_events    | info     | 4     |
            | end_missing   | repaired | 1     |
            | records_read  | info     | 8     |
            | unmatched_end | lost     | 1     |
            +---------------+----------+-------+
        "#]],
    );
}

#[test]
fn what_was_open_when_recording_stopped_has_no_end() {
    shows(
        r#"{"ph":"X","pid":1,"tid":1,"ts":5,"name":"open"},
           {"ph":"X","pid":1,"tid":1,"ts":6,"dur":2,"name":"closed"}"#,
        &expect![[r#"
            +----------+--------+------+-------+--------+
            | location | name   | role | start | finish |
            +----------+--------+------+-------+--------+
            | 1/1      | open   | work | 0     |        |
            | 1/1      | closed | work | 1000  | 3000   |
            +----------+--------+------+-------+--------+
        "#]],
        &expect![[r#"
            +--------------+----------+-------+
            | what         | severity | count |
            +--------------+----------+-------+
            | records_read | info     | 2     |
            | unfinished   | info     | 1     |
            +--------------+----------+-------+
        "#]],
    );
}

/// Clang's sums are told by the process or by their arguments, never by the name alone.
#[test]
fn sums_of_a_compiler_are_no_work() {
    shows_all(
        r#"{"ph":"X","pid":1,"tid":0,"ts":0,"dur":5000,"name":"Total Frontend","args":{"count":3,"avg ms":2}},
           {"ph":"X","pid":1,"tid":7,"ts":0,"dur":5000,"name":"Total loss"},
           {"ph":"X","pid":1,"tid":7,"ts":10,"dur":50,"name":"Source"}"#,
        &expect![[r#"
            +----------+----------------+----------+-------+---------+
            | location | name           | role     | start | finish  |
            +----------+----------------+----------+-------+---------+
            | 1/0      | Total Frontend | profiler | 0     | 5000000 |
            | 1/7      | Total loss     | work     | 0     | 5000000 |
            | 1/7      | Source         | work     | 10000 | 60000   |
            +----------+----------------+----------+-------+---------+
        "#]],
        3,
    );
}

#[test]
fn an_empty_pid_is_none() {
    shows_all(
        r#"{"ph":"X","pid":"","tid":2,"ts":0,"dur":5,"name":"empty"},
           {"ph":"X","tid":2,"ts":10,"dur":5,"name":"none"}"#,
        &expect![[r#"
            +----------+-------+------+-------+--------+
            | location | name  | role | start | finish |
            +----------+-------+------+-------+--------+
            | 0/2      | empty | work | 0     | 5000   |
            | 0/2      | none  | work | 10000 | 15000  |
            +----------+-------+------+-------+--------+
        "#]],
        2,
    );
}

#[test]
fn padding_and_a_damaged_bit_of_gzip_keep_what_precedes() {
    let mut text = "[".to_owned();
    for event in 0..20_000 {
        let comma = if event == 0 { "" } else { "," };
        text.push_str(&format!(
            r#"{comma}{{"ph":"X","pid":1,"tid":1,"ts":{},"dur":1,"name":"e{}"}}"#,
            event * 2,
            event * 7919 % 104_729
        ));
    }
    text.push(']');
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).expect("memory");
    let whole = encoder.finish().expect("memory");

    let folder = folder_of(&[("trace.json.gz", [&whole[..], &[0; 1000]].concat())]);
    let path = folder.path().join("trace.json.gz");
    expect![[r#"
        +-------+
        | tasks |
        +-------+
        | 20000 |
        +-------+
    "#]]
    .assert_eq(&table(&path, "SELECT count(*) AS tasks FROM tasks"));

    // Half of the stream is whole; what follows cannot be decoded or is other text.
    let mut damaged = whole.clone();
    damaged[whole.len() / 2..whole.len() / 2 + 64].fill(0xff);
    std::fs::write(&path, damaged).expect("written");
    expect![[r#"
        +-------+-------+
        | keeps | tells |
        +-------+-------+
        | true  | true  |
        +-------+-------+
    "#]].assert_eq(&table(
        &path,
        "SELECT (SELECT count(*) FROM tasks) > 5000 AS keeps, sum(count) > 0 AS tells FROM import_stats WHERE severity = 'lost'",
    ));
}
