//! `tq check`: outcomes, exit status and the forms that CI reads.

use expect_test::expect;

use super::{Place, TRACE};

const OCCUPANCY: &str = "\
-- title: Every location works
-- needs: tasks
-- param least: DOUBLE = 0.7
-- expect every row: occupancy >= $least
-- expect rows: 1..10
SELECT location, start, finish, round(1.0 * duration / 80000, 2) AS occupancy FROM tasks WHERE name <> 'c' ORDER BY start
";

const MAKESPAN: &str = "-- metric makespan: better=lower, tolerance=5%\nSELECT run, makespan FROM runs";

/// The trace with `b` longer by some microseconds.
fn longer(by: u32) -> String {
    TRACE.replace("[20,80]", &format!("[20,{}]", 80 + by))
}

#[test]
fn outcomes_are_lines_with_the_rows_that_offend() {
    let place = Place::new();
    place.write("occupancy.sql", OCCUPANCY);
    place.tq("check run.json --query occupancy.sql").check(&expect![[r#"
        FAILED occupancy: every row: occupancy >= $least: 1 of 2 rows offends
                  location │ start │  finish │ occupancy
                 ──────────┼───────┼─────────┼───────────
                  E0/W0    │   0 s │ 40.0 µs │       0.5
        ok     occupancy: rows: 1..10 (2 rows)
        2 checks: 1 held, 1 failed
        --- exit 1
    "#]]);
    place.tq("check run.json --query occupancy.sql --param least=0.5").check(&expect![[r#"
        ok     occupancy: every row: occupancy >= $least (2 rows)
        ok     occupancy: rows: 1..10 (2 rows)
        2 checks: 2 held
        --- exit 0
    "#]]);
    place.write(
        "none.sql",
        "-- expect no rows\nSELECT name, duration FROM tasks WHERE duration > us(15) ORDER BY start",
    );
    place.write(
        "many.sql",
        "-- expect rows: 4..\n-- expect rows: ..2\n-- expect rows: 3\nSELECT name FROM tasks ORDER BY name",
    );
    place.write("nothing.sql", "-- expect every row: name = 'x'\nSELECT name FROM tasks WHERE name = 'kernell'");
    place.write("null.sql", "-- expect every row: nullif(name, 'b') = name\nSELECT name FROM tasks ORDER BY name");
    place.tq("check run.json --query none.sql many.sql nothing.sql null.sql").check(&expect![[r#"
        FAILED none: no rows: 2 rows
                  name │ duration
                 ──────┼──────────
                  a    │  40.0 µs
                  b    │  60.0 µs
        FAILED many: rows: 4..: 3 rows
                  name
                 ──────
                  a
                  b
                  c
        FAILED many: rows: ..2: 3 rows
                  name
                 ──────
                  a
                  b
                  c
        ok     many: rows: 3 (3 rows)
        ok     nothing: every row: name = 'x' (the answer has no rows)
        FAILED null: every row: nullif(name, 'b') = name: 1 of 3 rows offends
                  name
                 ──────
                  b
        6 checks: 2 held, 4 failed
        --- exit 1
    "#]]);
}

#[test]
fn a_check_that_could_not_run_did_not_pass() {
    let place = Place::new();
    std::fs::create_dir(place.0.path().join("checks")).unwrap();
    for (name, text) in [
        ("a-typo", "-- title: a\n-- expct no rows\nSELECT 1"),
        ("b-below", "-- title: a\nSELECT 1\n-- expect no rows"),
        ("c-column", "-- expect every row: occupanci > 0.5\nSELECT 0.7 AS occupancy"),
        ("d-aggregate", "-- expect every row: max(occupancy) > 0.5\nSELECT 0.7 AS occupancy"),
        ("e-number", "-- expect every row: occupancy\nSELECT 0.7 AS occupancy"),
        ("f-sql", "-- expect no rows\nSELECT nme FROM tasks"),
        ("g-needs", "-- needs: messages\n-- expect no rows\nSELECT * FROM messages"),
        ("h-same", "-- expect same as: missing.csv\nSELECT 1 AS one"),
        ("i-metric", MAKESPAN),
        ("j-holds", "-- expect rows: 1\nSELECT 1 AS one"),
        ("k-nothing", "-- title: no check\nSELECT 1 AS one"),
        ("l-fails", "-- expect no rows\nSELECT 1 AS one"),
        ("m-division", "-- expect no rows\nSELECT 1 / (count(*) - 3) AS one FROM tasks"),
    ] {
        place.write(&format!("checks/{name}.sql"), text);
    }
    place.tq("check run.json --query checks").check(&expect![[r#"
        ERROR  a-typo: checks/a-typo.sql:2: `expct` is no key of a header; did you mean `expect`?
                 hint: a header has the keys title, topic, needs, param, chart, metric, expect; other comments go below a bare `--`
        ERROR  b-below: checks/b-below.sql:3: `expect` stands below the header, where it has no effect
                 hint: the header ends with a bare `--`, a blank line or the SQL; move `expect` above that
        ERROR  c-column: every row: occupanci > 0.5: checks/c-column.sql:1: `occupanci > 0.5`: no column `occupanci`
                 hint: did you mean `occupancy`?
        ERROR  d-aggregate: every row: max(occupancy) > 0.5: checks/d-aggregate.sql:1: `max(occupancy) > 0.5`: an aggregate looks at all rows, and the condition is asked of each
                 hint: aggregate in the query, or use a window function: `max(x) OVER ()`
        ERROR  e-number: every row: occupancy: checks/e-number.sql:1: `occupancy`: it is a number, but must be true or false
        ERROR  f-sql: no rows: checks/f-sql.sql:2: no column `nme`
                   |
                 2 | SELECT nme FROM tasks
                   |        ^^^
                 hint: did you mean `name`?
        ERROR  g-needs: no rows: `g-needs` needs rows in `messages`: that is not in these traces
                 hint: in a suite for several kinds of traces, `--allow-skip` skips it
        ERROR  h-same: same as: missing.csv: checks/h-same.sql:1: cannot read `checks/missing.csv`: no such file or directory
                 hint: `--bless` writes it from this answer
        ERROR  i-metric: metric makespan: a metric is compared with a baseline, and none is given
                 hint: give the traces of the baseline: `--baseline TRACE…`
        ok     j-holds: rows: 1 (1 row)
        FAILED l-fails: no rows: 1 row
                  one
                 ─────
                    1
        ERROR  m-division: no rows: checks/m-division.sql:2: division by zero
                   |
                 2 | SELECT 1 / (count(*) - 3) AS one FROM tasks
                   |          ^
                 hint: `x / nullif(y, 0)` is NULL there
        12 checks: 1 held, 1 failed, 10 could not run
        --- stderr
        note: checks/k-nothing.sql checks nothing: its header has no `expect` and no `metric`
        --- exit 2
    "#]]);
    place.tq("check run.json --query checks/g-needs.sql checks/i-metric.sql checks/j-holds.sql --allow-skip").check(
        &expect![[r#"
            skip   g-needs: no rows: `g-needs` needs rows in `messages`: that is not in these traces
            skip   i-metric: metric makespan: a metric is compared with a baseline, and none is given
            ok     j-holds: rows: 1 (1 row)
            3 checks: 1 held, 2 skipped
            --- exit 0
        "#]],
    );
    place.tq("check run.json --query checks/k-nothing.sql").check(&expect![[r#"
        ERROR  k-nothing: the query checks nothing: its header has no `expect` and no `metric`
                 hint: e.g. `-- expect no rows`, `-- expect every row: occupancy > 0.8`
        1 check: 1 could not run
        --- exit 2
    "#]]);
    place.tq("check run.json --query checks/j-holds.sql checks/k-nothing.sql").check(&expect![[r#"
        ok     j-holds: rows: 1 (1 row)
        ERROR  k-nothing: the query checks nothing: its header has no `expect` and no `metric`
                 hint: e.g. `-- expect no rows`, `-- expect every row: occupancy > 0.8`
        2 checks: 1 held, 1 could not run
        --- exit 2
    "#]]);
}

#[test]
fn usage_of_check() {
    let place = Place::new();
    place.write("holds.sql", "-- expect rows: 1\nSELECT 1 AS one");
    place.tq("check --query holds.sql").check(&expect![[r#"
        --- stderr
        error: a check needs a trace
        hint: `tq check TRACE… --query FILE.sql`
        --- exit 2
    "#]]);
    place.tq("check run.json").check(&expect![[r#"
        --- stderr
        error: there is nothing to check
        hint: name a query with `expect` or `metric` lines: `--query FILE.sql`
        hint: or traces to compare makespan, busy time and critical path with: `--baseline TRACE`
        --- exit 2
    "#]]);
    place.tq("check run.json --query missing.sql").check(&expect![[r#"
        ERROR  missing: cannot read `missing.sql`: no such file or directory
        1 check: 1 could not run
        --- exit 2
    "#]]);
    place.tq("check run.json --query longest-task").check(&expect![[r#"
        ERROR  queries: `longest-task` is no file, no folder and no saved query; did you mean `longest-tasks`?
                 hint: `--query` takes the path of a `.sql` file or of a folder of them
        1 check: 1 could not run
        --- exit 2
    "#]]);
    place.tq("check nowhere.json --query holds.sql").check(&expect![[r#"
        ERROR  traces: cannot read trace `nowhere.json`: no such file or directory
                 hint: `.` holds `holds.sql`, `run.json`
        1 check: 1 could not run
        --- exit 2
    "#]]);
    place.tq("check run.json --query holds.sql --param limit=3").check(&expect![[r#"
        ERROR  queries: no check has a parameter `limit`
        1 check: 1 could not run
        --- exit 2
    "#]]);
    std::fs::create_dir(place.0.path().join("empty")).unwrap();
    place.tq("check run.json --query empty").check(&expect![[r#"
        ERROR  queries: there is no `.sql` file in `empty`
        1 check: 1 could not run
        --- exit 2
    "#]]);
}

#[test]
fn answers_are_compared_with_a_blessed_one() {
    let place = Place::new();
    std::fs::create_dir(place.0.path().join("checks")).unwrap();
    place.write("checks/names.sql", "-- expect same as: names.csv\nSELECT name, duration FROM tasks ORDER BY start");
    place.tq("check run.json --query checks --bless").check(&expect![[r#"
        ok     names: same as: names.csv (wrote 3 rows)
        1 check: 1 held
        --- exit 0
    "#]]);
    expect![[r#"
        name,duration
        a,40000
        b,60000
        c,10000
    "#]]
    .assert_eq(&place.read("checks/names.csv"));
    place.tq("check run.json --query checks").check(&expect![[r#"
        ok     names: same as: names.csv (3 rows)
        1 check: 1 held
        --- exit 0
    "#]]);
    place.write("run.json", &longer(1));
    place.tq("check run.json --query checks").check(&expect![[r#"
        FAILED names: same as: names.csv: 1 row missing, 1 row unexpected
                 - b,60000
                 + b,61000
        1 check: 1 failed
        --- exit 1
    "#]]);
}

#[test]
fn metrics_are_compared_with_a_baseline() {
    let place = Place::new();
    place.write("makespan.sql", MAKESPAN);
    place.write("names.sql", "-- metric total_time: better=lower, tolerance=10us, by=name\nSELECT name, sum(duration) AS total_time FROM tasks GROUP BY name");
    place.write("slower.json", &longer(20));
    place.write("near.json", &longer(3));
    place.tq("check near.json --query makespan.sql names.sql --baseline run.json").check(&expect![[r#"
        ok     makespan: metric makespan (changed +3.8 %; 1 against 1 run: the tolerance alone decides)
        ok     names: metric total_time (3 compared, worst +5.0 % (`b`); 1 against 1 run: the tolerance alone decides)
        2 checks: 2 held
        --- exit 0
    "#]]);
    place.tq("check slower.json --query makespan.sql names.sql --baseline run.json").check(&expect![[r#"
        FAILED makespan: metric makespan: 80.0 µs → 100 µs (+25.0 %), tolerance 5%; 1 against 1 run: the tolerance alone decides
                     base │    new │  change │ change_percent
                 ─────────┼────────┼─────────┼────────────────
                  80.0 µs │ 100 µs │ 20.0 µs │           25.0
                 what changed, the makespan by the work and the waits that it is made of (base=run.json, new=slower.json; `tq report base=run.json new=slower.json` tells more):
                  what    │ base_time │ new_time │ change_time
                 ─────────┼───────────┼──────────┼─────────────
                  b: work │   60.0 µs │  80.0 µs │     20.0 µs
                 where, the locations whose busy time changed unlike that of the others:
                  location │ base_time │ new_time │ change_time │ change_percent
                 ──────────┼───────────┼──────────┼─────────────┼────────────────
                  E0/W1    │   60.0 µs │  80.0 µs │     20.0 µs │           33.3
                 which, the tasks that became longer or shorter themselves, or more:
                  what │ measure │ base_time │ new_time │ change_time
                 ──────┼─────────┼───────────┼──────────┼─────────────
                  b    │ median  │   60.0 µs │  80.0 µs │     20.0 µs
        FAILED names: metric total_time: 1 of 3 worse by more than 10.0 µs; 1 against 1 run: the tolerance alone decides
                  name │    base │     new │  change │ change_percent
                 ──────┼─────────┼─────────┼─────────┼────────────────
                  b    │ 60.0 µs │ 80.0 µs │ 20.0 µs │           33.3
                 what changed: see makespan, metric makespan
        2 checks: 2 failed
        --- exit 1
    "#]]);
    place.write(
        "typo.sql",
        "-- metric makespn: better=lower\n-- metric tasks: better=lower, by=nme\nSELECT run, makespan, tasks FROM runs",
    );
    place.write("rows.sql", "-- metric duration: better=lower\nSELECT run, name, duration FROM tasks");
    place.write("text.sql", "-- metric name: better=lower, by=task\nSELECT name, task FROM tasks");
    place.write("keys.sql", "-- metric tasks: better=lower, by=source\nSELECT tasks, source FROM runs");
    place.tq("check slower.json --query typo.sql rows.sql text.sql keys.sql --baseline run.json").check(&expect![[
        r#"
        ERROR  typo: metric makespn: typo.sql:1: the answer has no column `makespn`; did you mean `makespan`?
                 hint: its columns are run, makespan, tasks
        ERROR  typo: metric tasks: typo.sql:2: the answer has no column `nme`
                 hint: its columns are run, makespan, tasks
        ERROR  rows: metric duration: rows.sql:1: the answer of the baseline has more than one row for a run
                 hint: say which rows belong together: `by=name`
        ERROR  text: metric name: text.sql:1: `name` is text, and must be a number
        ERROR  keys: metric tasks: keys.sql:1: no key of the traces occurs in the baseline
                 hint: both sides must return rows with the same keys: see the columns of `by`
        5 checks: 5 could not run
        --- exit 2
    "#
    ]]);
}

/// A study of two sizes on 1, 8 and 32 cores, twice each; on 32 cores everything takes `times` as long.
pub(super) fn study(times: f64) -> String {
    let run = |size: f64, cores: f64, repetition: f64| {
        let time = (10.0 * size + repetition / 10.0) / cores * if cores == 32.0 { times } else { 1.0 };
        format!("{{\"threads\":{cores},\"time\":{time}}}")
    };
    let argument = |size: f64, repetition: f64| {
        let runs = [1.0, 8.0, 32.0].map(|cores| run(size, cores, repetition)).join(",");
        format!("{{\"argument\":\"{size}\",\"runs\":[{runs}]}}")
    };
    let repetition = |number: f64| format!("[{},{}]", argument(1.0, number), argument(4.0, number));
    format!("[{{\"region\":\"0, 0\",\"filename\":\"a.c\",\"executions\":[{},{}]}}]", repetition(0.0), repetition(1.0))
}

/// Runs of one size on so many cores are compared with their like, whatever the study's file is called.
#[test]
fn a_study_is_compared_configuration_by_configuration() {
    let place = Place::new();
    place.write("before.json", &study(1.0));
    place.write("after.json", &study(3.0));
    place.tq("check before.json --baseline before.json").check(&expect![[r#"
        ok     makespan: metric makespan (6 compared, worst +0.0 % (`1 p=1`); 2 against 2 runs: the tolerance alone decides)
        ok     busy time: metric busy_time (6 compared, worst +0.0 % (`1 p=1`); 2 against 2 runs: the tolerance alone decides)
        2 checks: 2 held
        --- exit 0
    "#]]);
    place.tq("check after.json --baseline before.json").check(&expect![[r#"
        FAILED makespan: metric makespan: 2 of 6 worse by more than 5%, most `4 p=32` (+200.0 %); 2 against 2 runs: the tolerance alone decides
                  runs   │   base │    new │ change │ change_percent
                 ────────┼────────┼────────┼────────┼────────────────
                  4 p=32 │ 1.25 s │ 3.75 s │ 2.50 s │          200.0
                  1 p=32 │ 314 ms │ 942 ms │ 628 ms │          200.0
        FAILED busy time: metric busy_time: 2 of 6 worse by more than 5%, most `4 p=32` (+200.0 %); 2 against 2 runs: the tolerance alone decides
                  runs   │   base │    new │ change │ change_percent
                 ────────┼────────┼────────┼────────┼────────────────
                  4 p=32 │ 1.25 s │ 3.75 s │ 2.50 s │          200.0
                  1 p=32 │ 314 ms │ 942 ms │ 628 ms │          200.0
        2 checks: 2 failed
        --- exit 1
    "#]]);
    // A query of one's own, and a key of it.
    place.write("regions.sql", "-- metric time: better=lower, by=region\nSELECT run, region, time FROM executions");
    place.tq("check after.json --query regions.sql --baseline before.json").check(&expect![[r#"
        FAILED regions: metric time: 2 of 6 worse by more than 5%, most `4 p=32` (+200.0 %); 2 against 2 runs: the tolerance alone decides
                  runs   │ region │   base │    new │ change │ change_percent
                 ────────┼────────┼────────┼────────┼────────┼────────────────
                  4 p=32 │        │ 1.25 s │ 3.75 s │ 2.50 s │          200.0
                  1 p=32 │        │ 314 ms │ 942 ms │ 628 ms │          200.0
        1 check: 1 failed
        --- exit 1
    "#]]);
    // Runs without a partner are named.
    place.write("fewer.json", &study(1.0).replace("\"threads\":32", "\"threads\":16"));
    place.tq("check fewer.json --baseline before.json").check(&expect![[r#"
        ok     makespan: metric makespan (4 compared, worst +0.0 % (`1 p=1`); 2 against 2 runs: the tolerance alone decides; only in the baseline: `1 p=32`, `4 p=32`; only in the new traces: `1 p=16`, `4 p=16`)
        ok     busy time: metric busy_time (4 compared, worst +0.0 % (`1 p=1`); 2 against 2 runs: the tolerance alone decides; only in the baseline: `1 p=32`, `4 p=32`; only in the new traces: `1 p=16`, `4 p=16`)
        2 checks: 2 held
        --- exit 0
    "#]]);
    // One configuration a side is what was meant.
    place.tq("check run.json --run-arg cores=4 --baseline run.json").check(&expect![[r#"
        ok     makespan: metric makespan (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        ok     busy time: metric busy_time (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        2 checks: 2 held
        --- exit 0
    "#]]);
}

/// Several traces a side: the same names belong together, names that only count are repetitions.
#[test]
fn traces_of_the_same_name_are_compared() {
    let place = Place::new();
    for (name, by) in [("base/small", 0), ("base/large", 400), ("new/small", 40), ("new/large", 400)] {
        place.write(&format!("{name}.json"), &longer(by));
    }
    place.tq("check new/small.json new/large.json --baseline base/small.json base/large.json").check(&expect![[r#"
        FAILED makespan: metric makespan: 1 of 2 worse by more than 5%, most `small` (+50.0 %); 1 against 1 run: the tolerance alone decides
                  runs  │    base │    new │  change │ change_percent
                 ───────┼─────────┼────────┼─────────┼────────────────
                  small │ 80.0 µs │ 120 µs │ 40.0 µs │           50.0
                 what changed, the makespan by the work and the waits that it is made of (base=base/small.json, new=new/small.json; `tq report base=base/small.json new=new/small.json` tells more):
                  what    │ base_time │ new_time │ change_time
                 ─────────┼───────────┼──────────┼─────────────
                  b: work │   60.0 µs │   100 µs │     40.0 µs
                 where, the locations whose busy time changed unlike that of the others:
                  location │ base_time │ new_time │ change_time │ change_percent
                 ──────────┼───────────┼──────────┼─────────────┼────────────────
                  E0/W1    │   60.0 µs │   100 µs │     40.0 µs │           66.7
                 which, the tasks that became longer or shorter themselves, or more:
                  what │ measure │ base_time │ new_time │ change_time
                 ──────┼─────────┼───────────┼──────────┼─────────────
                  b    │ median  │   60.0 µs │   100 µs │     40.0 µs
        FAILED busy time: metric busy_time: 1 of 2 worse by more than 5%, most `small` (+36.4 %); 1 against 1 run: the tolerance alone decides
                  runs  │   base │    new │  change │ change_percent
                 ───────┼────────┼────────┼─────────┼────────────────
                  small │ 110 µs │ 150 µs │ 40.0 µs │           36.4
                 what changed, the busy time by name of task (base=base/small.json, new=new/small.json; `tq report base=base/small.json new=new/small.json` tells more):
                  name │ base_time │ new_time │ change_time │ base_tasks │ new_tasks
                 ──────┼───────────┼──────────┼─────────────┼────────────┼───────────
                  b    │   60.0 µs │   100 µs │     40.0 µs │          1 │         1
        2 checks: 2 failed
        --- exit 1
    "#]]);
    place.tq("check new/large.json --baseline base/small.json base/large.json").check(&expect![[r#"
        ok     makespan: metric makespan (1 compared, changed +0.0 % (`large`); 1 against 1 run: the tolerance alone decides; only in the baseline: `small`)
        ok     busy time: metric busy_time (1 compared, changed +0.0 % (`large`); 1 against 1 run: the tolerance alone decides; only in the baseline: `small`)
        2 checks: 2 held
        --- exit 0
    "#]]);
    for number in 1..=3 {
        place.write(&format!("base/run-{number}.json"), &longer(number));
        place.write(&format!("new/run-{number}.json"), &longer(4 - number));
    }
    place.tq("check new/run-1.json new/run-2.json new/run-3.json --baseline base/run-1.json base/run-2.json base/run-3.json").check(&expect![[r#"
        ok     makespan: metric makespan (changed +0.0 %; 3 against 3 runs)
        ok     busy time: metric busy_time (changed +0.0 %; 3 against 3 runs)
        2 checks: 2 held
        --- exit 0
    "#]]);
    // Nothing says what belongs together.
    place.write("other/x.json", &longer(0));
    place.write("other/y.json", &longer(0));
    place.tq("check other/x.json other/y.json --baseline base/small.json base/large.json").check(&expect![[r#"
        ok     makespan: metric makespan (changed -71.4 %; 2 against 2 runs: the tolerance alone decides)
        ok     busy time: metric busy_time (changed -64.5 %; 2 against 2 runs: the tolerance alone decides)
        2 checks: 2 held
        --- stderr
        note: no trace has the same name on both sides, so all traces of a side count as repetitions: if they are not, give them names, `small=FILE large=FILE` on both sides
        --- exit 0
    "#]]);
    place.tq("check small=other/x.json --baseline base/small.json base/large.json").check(&expect![[r#"
        ok     makespan: metric makespan (1 compared, changed +0.0 % (`small`); 1 against 1 run: the tolerance alone decides; only in the baseline: `large`)
        ok     busy time: metric busy_time (1 compared, changed +0.0 % (`small`); 1 against 1 run: the tolerance alone decides; only in the baseline: `large`)
        2 checks: 2 held
        --- exit 0
    "#]]);
}

/// What only one side has is said, and what has nothing in common.
#[test]
fn what_is_not_compared_is_noted() {
    let place = Place::with_links();
    place.write("bare.json", &longer(0));
    place.tq("check bare.json --baseline run.json --junit out.xml --markdown=out.md").check(&expect![[r#"
        ok     makespan: metric makespan (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        ok     busy time: metric busy_time (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        note   critical path: not compared: these traces have no dependencies, and the baseline has
        2 checks: 2 held
        --- exit 0
    "#]]);
    expect![[r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="tq check" tests="3" failures="0" errors="0" skipped="1">
          <testsuite name="makespan" tests="1" failures="0" errors="0" skipped="0">
            <testcase classname="makespan" name="metric makespan"/>
          </testsuite>
          <testsuite name="busy time" tests="1" failures="0" errors="0" skipped="0">
            <testcase classname="busy time" name="metric busy_time"/>
          </testsuite>
          <testsuite name="critical path" tests="1" failures="0" errors="0" skipped="1">
            <testcase classname="critical path" name="comparison">
              <skipped message="not compared: these traces have no dependencies, and the baseline has"></skipped>
            </testcase>
          </testsuite>
        </testsuites>
    "#]]
    .assert_eq(&place.read("out.xml"));
    expect![[r#"
        ## tq check

        2 checks: 2 held

        | | query | check |
        | --- | --- | --- |
        | ok | makespan | metric makespan (changed +0.0 %; 1 against 1 run: the tolerance alone decides) |
        | ok | busy time | metric busy_time (changed +0.0 %; 1 against 1 run: the tolerance alone decides) |
        | note | critical path | not compared: these traces have no dependencies, and the baseline has |
    "#]]
    .assert_eq(&place.read("out.md"));
    place.tq("check run.json --baseline bare.json --github").check(&expect![[r#"
        ::notice title=tq check%3A critical path::not compared: the baseline has no dependencies, and these traces have
        ok     makespan: metric makespan (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        ok     busy time: metric busy_time (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        note   critical path: not compared: the baseline has no dependencies, and these traces have
        2 checks: 2 held
        --- exit 0
    "#]]);
    place.tq("diff run.json bare.json").check(&expect![[r#"
        base = run.json
        new  = bare.json

        makespan       80.0 µs → 80.0 µs  0 s  +0.0 %
        busy time       110 µs →  110 µs  0 s  +0.0 %
        critical path  not compared: new has no dependencies, and base has

        Nothing changed: the time of each name of task, how many there are and what idled are the same.
        --- stderr
        note: critical_path: there are no dependency links in run `new`
        note: explain_change: there are no links in run `new`, so those of run `base` are left out and the paths follow what ran when
        --- exit 0
    "#]]);
    place.write("other.csv", "task,name,location,start_us,end_us\n1,x,w0,0,20\n");
    place.tq("check other.csv --baseline run.json").check(&expect![[r#"
        ERROR  names: not compared: the baseline and these traces have no name of task in common (3 names and 1), so they do not look like runs of one program
                 hint: `--query makespan busy-time` compares them nevertheless
        1 check: 1 could not run
        --- exit 2
    "#]]);
}

#[test]
fn what_cannot_be_right_is_said() {
    let place = Place::new();
    place.write("longer.json", &longer(40));
    // A baseline is read also where no check asks for it.
    place.write("fine.sql", "-- expect every row: n > 0 -- of all\nSELECT count(*) AS n FROM tasks");
    place.tq("check run.json --query fine.sql").check(&expect![[r#"
        ok     fine: every row: n > 0 -- of all (1 row)
        1 check: 1 held
        --- exit 0
    "#]]);
    place.tq("check run.json --query fine.sql --baseline nosuch.json").check(&expect![[r#"
        ERROR  baseline: cannot read trace `nosuch.json`: no such file or directory
                 hint: `.` holds `fine.sql`, `longer.json`, `run.json`
        1 check: 1 could not run
        --- exit 2
    "#]]);
    // A NULL without a type is shown as one.
    place.write("null.sql", "-- expect every row: a = 1\nSELECT NULL AS a, 1 AS b");
    place.tq("check run.json --query null.sql").check(&expect![[r#"
        FAILED null: every row: a = 1: 1 of 1 row offends
                  a    │ b
                 ──────┼───
                  NULL │ 1
        1 check: 1 failed
        --- exit 1
    "#]]);
    // What a metric says of the baseline, and where the explanation stands.
    place.write("none.sql", "-- metric a: better=lower\nSELECT run, CAST(NULL AS DOUBLE) AS a FROM runs");
    place.write("makespan.sql", MAKESPAN);
    place.write(
        "total.sql",
        "-- metric total: better=lower\nSELECT run, sum(duration) AS total FROM tasks GROUP BY run",
    );
    place.tq("check longer.json --query none.sql makespan.sql total.sql --baseline run.json").check(&expect![[r#"
        ERROR  none: metric a: none.sql:1: the baseline has no value of `a`: NULL, NaN or infinite
        FAILED makespan: metric makespan: 80.0 µs → 120 µs (+50.0 %), tolerance 5%; 1 against 1 run: the tolerance alone decides
                     base │    new │  change │ change_percent
                 ─────────┼────────┼─────────┼────────────────
                  80.0 µs │ 120 µs │ 40.0 µs │           50.0
                 what changed, the makespan by the work and the waits that it is made of (base=run.json, new=longer.json; `tq report base=run.json new=longer.json` tells more):
                  what    │ base_time │ new_time │ change_time
                 ─────────┼───────────┼──────────┼─────────────
                  b: work │   60.0 µs │   100 µs │     40.0 µs
                 where, the locations whose busy time changed unlike that of the others:
                  location │ base_time │ new_time │ change_time │ change_percent
                 ──────────┼───────────┼──────────┼─────────────┼────────────────
                  E0/W1    │   60.0 µs │   100 µs │     40.0 µs │           66.7
                 which, the tasks that became longer or shorter themselves, or more:
                  what │ measure │ base_time │ new_time │ change_time
                 ──────┼─────────┼───────────┼──────────┼─────────────
                  b    │ median  │   60.0 µs │   100 µs │     40.0 µs
        FAILED total: metric total: 110 µs → 150 µs (+36.4 %), tolerance 5%; 1 against 1 run: the tolerance alone decides
                    base │    new │  change │ change_percent
                 ────────┼────────┼─────────┼────────────────
                  110 µs │ 150 µs │ 40.0 µs │           36.4
                 what changed: see makespan, metric makespan
        3 checks: 2 failed, 1 could not run
        --- exit 2
    "#]]);
    // Answers are written into folders that are not there yet.
    place.write("same.sql", "-- expect same as: answers/same.csv\nSELECT count(*) AS n FROM tasks");
    place.tq("check run.json --query same.sql --bless").check(&expect![[r#"
        ok     same: same as: answers/same.csv (wrote 1 row)
        1 check: 1 held
        --- exit 0
    "#]]);
}

#[test]
fn repetitions_tell_noise_from_a_change() {
    let place = Place::new();
    place.write("makespan.sql", MAKESPAN);
    let side = |name: &str, durations: &[u32]| {
        let files: Vec<String> = durations
            .iter()
            .map(|by| {
                let file = format!("{name}{by}.json");
                place.write(&file, &longer(*by));
                file
            })
            .collect();
        files.join(" ")
    };
    let base = side("base", &[0, 2, 4, 6, 30]);
    for (name, new, expected) in [
        // One of five is much slower, as one of the baseline is; the median is 12 % worse.
        (
            "noisy",
            side("noisy", &[1, 3, 14, 16, 29]),
            expect![[r#"
                ok     makespan: metric makespan (changed +11.9 %; 5 against 5 runs, p = 0.262: no more than noise)
                1 check: 1 held
                --- exit 0
            "#]],
        ),
        (
            "slower",
            side("slower", &[40, 42, 44, 46, 48]),
            expect![[r#"
                FAILED makespan: metric makespan: 84.0 µs → 124 µs (+47.6 %), tolerance 5%; 5 against 5 runs, p = 0.024
                             base │    new │  change │ change_percent │      p
                         ─────────┼────────┼─────────┼────────────────┼────────
                          84.0 µs │ 124 µs │ 40.0 µs │           47.6 │ 0.0238
                         what changed, the makespan by the work and the waits that it is made of (base=base4.json, new=slower44.json; `tq report base=base4.json new=slower44.json` tells more):
                          what    │ base_time │ new_time │ change_time
                         ─────────┼───────────┼──────────┼─────────────
                          b: work │   64.0 µs │   104 µs │     40.0 µs
                         where, the locations whose busy time changed unlike that of the others:
                          location │ base_time │ new_time │ change_time │ change_percent
                         ──────────┼───────────┼──────────┼─────────────┼────────────────
                          E0/W1    │   64.0 µs │   104 µs │     40.0 µs │           62.5
                         which, the tasks that became longer or shorter themselves, or more:
                          what │ measure │ base_time │ new_time │ change_time
                         ──────┼─────────┼───────────┼──────────┼─────────────
                          b    │ median  │   64.0 µs │   104 µs │     40.0 µs
                1 check: 1 failed
                --- exit 1
            "#]],
        ),
        (
            "few",
            side("few", &[40, 42]),
            expect![[r#"
                FAILED makespan: metric makespan: 84.0 µs → 121 µs (+44.0 %), tolerance 5%; 5 against 2 runs: the tolerance alone decides
                             base │    new │  change │ change_percent
                         ─────────┼────────┼─────────┼────────────────
                          84.0 µs │ 121 µs │ 37.0 µs │           44.0
                         what changed, the makespan by the work and the waits that it is made of (base=base4.json, new=few40.json; `tq report base=base4.json new=few40.json` tells more):
                          what    │ base_time │ new_time │ change_time
                         ─────────┼───────────┼──────────┼─────────────
                          b: work │   64.0 µs │   100 µs │     36.0 µs
                         where, the locations whose busy time changed unlike that of the others:
                          location │ base_time │ new_time │ change_time │ change_percent
                         ──────────┼───────────┼──────────┼─────────────┼────────────────
                          E0/W1    │   64.0 µs │   100 µs │     36.0 µs │           56.3
                         which, the tasks that became longer or shorter themselves, or more:
                          what │ measure │ base_time │ new_time │ change_time
                         ──────┼─────────┼───────────┼──────────┼─────────────
                          b    │ median  │   64.0 µs │   100 µs │     36.0 µs
                1 check: 1 failed
                --- exit 1
            "#]],
        ),
        (
            "three",
            side("three", &[40, 42, 44]),
            expect![[r#"
                FAILED makespan: metric makespan: 84.0 µs → 122 µs (+45.2 %), tolerance 5%; 5 against 3 runs whose medians cannot give p < 0.05: the tolerance alone decides
                             base │    new │  change │ change_percent │      p
                         ─────────┼────────┼─────────┼────────────────┼────────
                          84.0 µs │ 122 µs │ 38.0 µs │           45.2 │ 0.0536
                         what changed, the makespan by the work and the waits that it is made of (base=base4.json, new=three42.json; `tq report base=base4.json new=three42.json` tells more):
                          what    │ base_time │ new_time │ change_time
                         ─────────┼───────────┼──────────┼─────────────
                          b: work │   64.0 µs │   102 µs │     38.0 µs
                         where, the locations whose busy time changed unlike that of the others:
                          location │ base_time │ new_time │ change_time │ change_percent
                         ──────────┼───────────┼──────────┼─────────────┼────────────────
                          E0/W1    │   64.0 µs │   102 µs │     38.0 µs │           59.4
                         which, the tasks that became longer or shorter themselves, or more:
                          what │ measure │ base_time │ new_time │ change_time
                         ──────┼─────────┼───────────┼──────────┼─────────────
                          b    │ median  │   64.0 µs │   102 µs │     38.0 µs
                1 check: 1 failed
                --- exit 1
            "#]],
        ),
    ] {
        let answer = place.tq(&format!("check {new} --query makespan.sql --baseline {base}"));
        assert!(answer.stderr.is_empty(), "{name}: {}", answer.stderr);
        answer.check(&expected);
    }
    // The answer does not say which run a row is of.
    place.write("no-run.sql", "-- metric tasks: better=lower\nSELECT tasks FROM runs");
    place.tq(&format!("check run.json --query no-run.sql --baseline {base}")).check(&expect![[r#"
        ERROR  no-run: metric tasks: no-run.sql:1: the baseline are 5 runs, and the answer has no column `run`
                 hint: select `run`, so that each run has a value of its own
        1 check: 1 could not run
        --- exit 2
    "#]]);
}

#[test]
fn ci_reads_junit_annotations_and_a_summary() {
    let place = Place::new();
    place.write("occupancy.sql", OCCUPANCY);
    place.write("broken.sql", "-- expect no row\nSELECT 1");
    place.write("needs.sql", "-- needs: messages\n-- expect no rows\nSELECT * FROM messages");
    let command = "check run.json --query occupancy.sql broken.sql needs.sql --allow-skip";
    place
        .tq(&format!("{command} --junit check.xml --github --markdown=summary.md --picture stretch.svg"))
        .check(&expect![[r#"
            ::error file=occupancy.sql,line=4,title=tq check%3A occupancy::every row: occupancy >= $least: 1 of 2 rows offends
            ::error file=broken.sql,line=1,title=tq check%3A broken::broken.sql:1: `expect no row` is no expectation
            ::notice file=needs.sql,line=2,title=tq check%3A needs::no rows: `needs` needs rows in `messages`: that is not in these traces
            FAILED occupancy: every row: occupancy >= $least: 1 of 2 rows offends
                      location │ start │  finish │ occupancy
                     ──────────┼───────┼─────────┼───────────
                      E0/W0    │   0 s │ 40.0 µs │       0.5
            ok     occupancy: rows: 1..10 (2 rows)
            ERROR  broken: broken.sql:1: `expect no row` is no expectation
                     hint: write `expect no rows`, `expect every row: occupancy > 0.8`, `expect rows: 1..10` or `expect same as: FILE.csv`
            skip   needs: no rows: `needs` needs rows in `messages`: that is not in these traces
            4 checks: 1 held, 1 failed, 1 could not run, 1 skipped
            --- stderr
            drew stretch.svg
            --- exit 2
        "#]]);
    expect![[r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="tq check" tests="4" failures="1" errors="1" skipped="1">
          <testsuite name="occupancy" tests="2" failures="1" errors="0" skipped="0">
            <testcase classname="occupancy" name="every row: occupancy &gt;= $least" file="occupancy.sql" line="4">
              <failure message="every row: occupancy &gt;= $least: 1 of 2 rows offends"> location │ start │  finish │ occupancy
        ──────────┼───────┼─────────┼───────────
         E0/W0    │   0 s │ 40.0 µs │       0.5</failure>
            </testcase>
            <testcase classname="occupancy" name="rows: 1..10" file="occupancy.sql" line="5"/>
          </testsuite>
          <testsuite name="broken" tests="1" failures="0" errors="1" skipped="0">
            <testcase classname="broken" name="reading" file="broken.sql" line="1">
              <error message="broken.sql:1: `expect no row` is no expectation">hint: write `expect no rows`, `expect every row: occupancy &gt; 0.8`, `expect rows: 1..10` or `expect same as: FILE.csv`</error>
            </testcase>
          </testsuite>
          <testsuite name="needs" tests="1" failures="0" errors="0" skipped="1">
            <testcase classname="needs" name="no rows" file="needs.sql" line="2">
              <skipped message="no rows: `needs` needs rows in `messages`: that is not in these traces"></skipped>
            </testcase>
          </testsuite>
        </testsuites>
    "#]].assert_eq(&place.read("check.xml"));
    expect![[r#"
        ## tq check

        4 checks: 1 held, 1 failed, 1 could not run, 1 skipped

        | | query | check |
        | --- | --- | --- |
        | **failed** | occupancy | every row: occupancy &gt;= \$least: 1 of 2 rows offends |
        | ok | occupancy | rows: 1..10 (2 rows) |
        | **could not run** | broken | broken.sql:1: \`expect no row\` is no expectation |
        | skipped | needs | no rows: \`needs\` needs rows in \`messages\`: that is not in these traces |

        ### occupancy: every row: occupancy &gt;= \$least: 1 of 2 rows offends

        | location | start | finish | occupancy |
        | --- | ---: | ---: | ---: |
        | E0/W0 | 0 s | 40.0 µs | 0.5 |

        ### broken: broken.sql:1: \`expect no row\` is no expectation


        ```text
        hint: write `expect no rows`, `expect every row: occupancy > 0.8`, `expect rows: 1..10` or `expect same as: FILE.csv`
        ```
    "#]].assert_eq(&place.read("summary.md"));
    let picture = place.read("stretch.svg");
    assert!(picture.starts_with("<svg") && picture.contains("occupancy: every row"), "{picture}");
    // A summary goes on where another step ended; without a file it takes the place of the lines.
    assert_eq!(place.tq(&format!("{command} --markdown=summary.md")).status, Some(2));
    assert_eq!(place.read("summary.md"), place.tq(&format!("{command} --markdown")).stdout.repeat(2));
}
