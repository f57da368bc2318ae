//! What changed between two runs, without a query of one's own.

use expect_test::expect;

use super::Place;

/// Two workers; `b` waits for `a`, which takes as long as is said.
fn write_run(place: &Place, name: &str, a: i64) {
    let tasks =
        format!("task,name,location,start_us,end_us,depends_on\n1,a,w0,0,{a},\n2,b,w1,{a},{},1\n3,c,w1,0,5,\n", a + 10);
    place.write(name, &tasks);
}

#[test]
fn two_runs_are_compared_in_a_command() {
    let place = Place::new();
    write_run(&place, "base.csv", 20);
    write_run(&place, "new.csv", 30);
    place.tq("diff base.csv new.csv").check(&expect![[r#"
        base = base.csv
        new  = new.csv

        makespan       30.0 µs → 40.0 µs  +10.0 µs  +33.3 %
        busy time      35.0 µs → 45.0 µs  +10.0 µs  +28.6 %

        Why: what the executed paths spent; the changes of all names add up to that of the makespan

         what       │ base_time │ new_time │ change_time
        ────────────┼───────────┼──────────┼─────────────
         b: waiting │   15.0 µs │  25.0 µs │     10.0 µs

        Where: locations whose busy time, without waiting in collectives, changed unlike that of the others

         location │ base_time │ new_time │ change_time │ change_percent
        ──────────┼───────────┼──────────┼─────────────┼────────────────
         w0       │   20.0 µs │  30.0 µs │     10.0 µs │           50.0

        Which tasks changed: one of them (the `measure`), or how many there are; `change_time` is of all

         what │ measure │ base_time │ new_time │ change_time
        ──────┼─────────┼───────────┼──────────┼─────────────
         a    │ median  │   20.0 µs │  30.0 µs │     10.0 µs

        What changed most: work by name, idle locations

         what           │ base_time │ new_time │ base_count │ new_count │ change_time │ change_percent
        ────────────────┼───────────┼──────────┼────────────┼───────────┼─────────────┼────────────────
         makespan       │   30.0 µs │  40.0 µs │          3 │         3 │     10.0 µs │           33.3
         idle locations │   25.0 µs │  35.0 µs │          2 │         2 │     10.0 µs │           40.0
         work in a      │   20.0 µs │  30.0 µs │          1 │         1 │     10.0 µs │           50.0
        --- exit 0
    "#]]);
    place.tq("diff base.csv new.csv --format json").check(&expect![[r#"
        {
          "base": "base.csv",
          "measures": [
            {
              "base": 30000,
              "change": 10000,
              "change_percent": 33.333333333333336,
              "measure": "makespan",
              "new": 40000
            },
            {
              "base": 35000,
              "change": 10000,
              "change_percent": 28.571428571428573,
              "measure": "busy time",
              "new": 45000
            }
          ],
          "new": "new.csv",
          "nothing_in_common": false,
          "tick": "ns",
          "what": [
            {
              "base_count": 3,
              "base_time": 30000,
              "change_percent": 33.3,
              "change_time": 10000,
              "new_count": 3,
              "new_time": 40000,
              "what": "makespan"
            },
            {
              "base_count": 2,
              "base_time": 25000,
              "change_percent": 40.0,
              "change_time": 10000,
              "new_count": 2,
              "new_time": 35000,
              "what": "idle locations"
            },
            {
              "base_count": 1,
              "base_time": 20000,
              "change_percent": 50.0,
              "change_time": 10000,
              "new_count": 1,
              "new_time": 30000,
              "what": "work in a"
            }
          ],
          "where": [
            {
              "base_time": 20000,
              "change_percent": 50.0,
              "change_time": 10000,
              "location": "w0",
              "new_time": 30000
            }
          ],
          "which": [
            {
              "base_time": 20000,
              "change_time": 10000,
              "measure": "median",
              "new_time": 30000,
              "what": "a"
            }
          ],
          "why": [
            {
              "base_time": 15000,
              "change_time": 10000,
              "new_time": 25000,
              "what": "b: waiting"
            }
          ]
        }
        --- exit 0
    "#]]);
    place.tq("diff base.csv").check(&expect![[r#"
        --- stderr
        error: `tq diff` compares one trace with another, and has 1 trace
        hint: `tq diff BASE NEW`; `tq check NEW… --baseline BASE…` compares several runs a side
        --- exit 2
    "#]]);
    place.tq("diff base.csv nowhere.csv").check(&expect![[r#"
        --- stderr
        error: cannot read trace `nowhere.csv`: no such file or directory
        hint: `.` holds `base.csv`, `new.csv`, `run.json`
        --- exit 2
    "#]]);
}

#[test]
fn nothing_changed_and_nothing_in_common_are_said() {
    let place = Place::new();
    write_run(&place, "base.csv", 20);
    place.tq("diff base.csv base.csv").check(&expect![[r#"
        base = base.csv
        new  = base.csv

        makespan       30.0 µs → 30.0 µs  0 s  +0.0 %
        busy time      35.0 µs → 35.0 µs  0 s  +0.0 %

        Nothing changed: the time of each name of task, how many there are and what idled are the same.
        --- exit 0
    "#]]);
    place.write("other.csv", "task,name,location,start_us,end_us\n1,x,w0,0,20\n");
    place.tq("diff base.csv other.csv").check(&expect![[r#"
        base = base.csv
        new  = other.csv

        Beware: base and new have no name of task in common (3 names and 1): they do not look like two runs of one program, and what follows compares two different things.

        makespan       30.0 µs → 20.0 µs  -10.0 µs  -33.3 %
        busy time      35.0 µs → 20.0 µs  -15.0 µs  -42.9 %
        tasks                3 →       1        -2  -66.7 %
        locations            2 →       1        -1  -50.0 %

        Why: what the executed paths spent; the changes of all names add up to that of the makespan

         what                │ base_time │ new_time │ change_time
        ─────────────────────┼───────────┼──────────┼─────────────
         x: on one path only │       0 s │  20.0 µs │     20.0 µs
         b: waiting          │   15.0 µs │      0 s │    -15.0 µs
         b: on one path only │   10.0 µs │      0 s │    -10.0 µs
         c: on one path only │   5.00 µs │      0 s │    -5.00 µs

        Which tasks changed: one of them (the `measure`), or how many there are; `change_time` is of all

         what                  │ measure │ base_time │ new_time │ change_time
        ───────────────────────┼─────────┼───────────┼──────────┼─────────────
         a: only in base       │ sum     │   20.0 µs │      0 s │    -20.0 µs
         x: only in new, on w0 │ sum     │       0 s │  20.0 µs │     20.0 µs
         b: only in base       │ sum     │   10.0 µs │      0 s │    -10.0 µs
         c: only in base       │ sum     │   5.00 µs │      0 s │    -5.00 µs

        What changed most: work by name, idle locations

         what           │ base_time │ new_time │ base_count │ new_count │ change_time │ change_percent
        ────────────────┼───────────┼──────────┼────────────┼───────────┼─────────────┼────────────────
         makespan       │   30.0 µs │  20.0 µs │          3 │         1 │    -10.0 µs │          -33.3
         idle locations │   25.0 µs │      0 s │          2 │         1 │    -25.0 µs │         -100.0
         work in a      │   20.0 µs │      0 s │          1 │         0 │    -20.0 µs │         -100.0
         work in x      │       0 s │  20.0 µs │          0 │         1 │     20.0 µs │           NULL
         work in b      │   10.0 µs │      0 s │          1 │         0 │    -10.0 µs │         -100.0
         work in c      │   5.00 µs │      0 s │          1 │         0 │    -5.00 µs │         -100.0
        --- exit 0
    "#]]);
    place.tq("query base=base.csv new=other.csv facts-nothing-in-common --format csv").check(&expect![[r#"
        fact
        "base and new have no name of task in common (3 names and 1): they do not look like two runs of one program, and what follows compares two different things."
        base took 30.0 µs and new took 20.0 µs; `tq report TRACE` describes each by itself.
        --- exit 0
    "#]]);
    place.tq("query base=base.csv new=base.csv facts-what-changed --format csv").check(&expect![[r#"
        fact
        The run took 30.0 µs as before; the work in every name of task is about the same.
        --- exit 0
    "#]]);
}

#[test]
fn a_baseline_alone_is_enough_for_a_check() {
    let place = Place::new();
    write_run(&place, "base.csv", 20);
    write_run(&place, "new.csv", 30);
    place.tq("check new.csv --baseline base.csv").check(&expect![[r#"
        FAILED makespan: metric makespan: 30.0 µs → 40.0 µs (+33.3 %), tolerance 5%; 1 against 1 run: the tolerance alone decides
                     base │     new │  change │ change_percent
                 ─────────┼─────────┼─────────┼────────────────
                  30.0 µs │ 40.0 µs │ 10.0 µs │           33.3
                 what changed, the makespan by the work and the waits that it is made of (base=base.csv, new=new.csv; `tq report base=base.csv new=new.csv` tells more):
                  what       │ base_time │ new_time │ change_time
                 ────────────┼───────────┼──────────┼─────────────
                  b: waiting │   15.0 µs │  25.0 µs │     10.0 µs
                 where, the locations whose busy time changed unlike that of the others:
                  location │ base_time │ new_time │ change_time │ change_percent
                 ──────────┼───────────┼──────────┼─────────────┼────────────────
                  w0       │   20.0 µs │  30.0 µs │     10.0 µs │           50.0
                 which, the tasks that became longer or shorter themselves, or more:
                  what │ measure │ base_time │ new_time │ change_time
                 ──────┼─────────┼───────────┼──────────┼─────────────
                  a    │ median  │   20.0 µs │  30.0 µs │     10.0 µs
        FAILED busy time: metric busy_time: 35.0 µs → 45.0 µs (+28.6 %), tolerance 5%; 1 against 1 run: the tolerance alone decides
                     base │     new │  change │ change_percent
                 ─────────┼─────────┼─────────┼────────────────
                  35.0 µs │ 45.0 µs │ 10.0 µs │           28.6
                 what changed, the busy time by name of task (base=base.csv, new=new.csv; `tq report base=base.csv new=new.csv` tells more):
                  name │ base_time │ new_time │ change_time │ base_tasks │ new_tasks
                 ──────┼───────────┼──────────┼─────────────┼────────────┼───────────
                  a    │   20.0 µs │  30.0 µs │     10.0 µs │          1 │         1
        2 checks: 2 failed
        --- exit 1
    "#]]);
    place.tq("check new.csv --baseline base.csv --tolerance 60%").check(&expect![[r#"
        ok     makespan: metric makespan (changed +33.3 %; 1 against 1 run: the tolerance alone decides)
        ok     busy time: metric busy_time (changed +28.6 %; 1 against 1 run: the tolerance alone decides)
        2 checks: 2 held
        --- exit 0
    "#]]);
    place.tq("check new.csv --baseline base.csv --tolerance 60").check(&expect![[r#"
        --- stderr
        error: invalid value '60' for '--tolerance <TOLERANCE>': `60` of what? Write 60% or a time like 2ms

        For more information, try '--help'.
        --- exit 2
    "#]]);
    // What counts in picoseconds is compared with what counts in nanoseconds, as far as it is a time.
    place.write("ps.csv", "name,location,start_ps,end_ps\na,w0,0,20000000\nb,w1,25000000,40000000\n");
    place.tq("check ps.csv --baseline base.csv").check(&expect![[r#"
        FAILED makespan: metric makespan: 30.0 µs → 40.0 µs (+33.3 %), tolerance 5%; 1 against 1 run: the tolerance alone decides
                     base │     new │  change │ change_percent
                 ─────────┼─────────┼─────────┼────────────────
                  30.0 µs │ 40.0 µs │ 10.0 µs │           33.3
                 what changed, the makespan by the work and the waits that it is made of (base=base.csv, new=ps.csv; `tq report base=base.csv new=ps.csv` tells more):
                  what                │ base_time │ new_time │ change_time
                 ─────────────────────┼───────────┼──────────┼─────────────
                  b: waiting          │   15.0 µs │  25.0 µs │     10.0 µs
                  b: work             │   10.0 µs │  15.0 µs │     5.00 µs
                  c: on one path only │   5.00 µs │      0 s │    -5.00 µs
                 which, the tasks that became longer or shorter themselves, or more:
                  what            │ measure │ base_time │ new_time │ change_time
                 ─────────────────┼─────────┼───────────┼──────────┼─────────────
                  b               │ median  │   10.0 µs │  15.0 µs │     5.00 µs
                  c: only in base │ sum     │   5.00 µs │      0 s │    -5.00 µs
        ok     busy time: metric busy_time (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        2 checks: 1 held, 1 failed
        --- stderr
        note: the session counts in ps, as its finest run does; times of base were multiplied
        --- exit 1
    "#]]);
    place.tq("check base.csv --baseline ps.csv").check(&expect![[r#"
        ok     makespan: metric makespan (changed -25.0 %; 1 against 1 run: the tolerance alone decides)
        ok     busy time: metric busy_time (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        2 checks: 2 held
        --- exit 0
    "#]]);
    place.write(
        "odd.sql",
        "-- metric odd: better=lower\nSELECT run, CAST(sum(duration) AS BIGINT) % 7 AS odd FROM tasks GROUP BY run",
    );
    place.tq("check ps.csv --query odd.sql --baseline base.csv").check(&expect![[r#"
        ERROR  odd: metric odd: odd.sql:1: the baseline counts in ns and the traces in ps, and `odd` is no time that can be converted
                 hint: compare traces of one unit, or let the query answer a time: sums, differences and extremes of times are times
        1 check: 1 could not run
        --- exit 2
    "#]]);
    // Without dependencies there is no critical path, and nothing is skipped.
    place.write("bare.csv", "name,location,start_us,end_us\na,w0,0,20\n");
    place.tq("check bare.csv --baseline base.csv").check(&expect![[r#"
        ok     makespan: metric makespan (changed -33.3 %; 1 against 1 run: the tolerance alone decides)
        ok     busy time: metric busy_time (changed -42.9 %; 1 against 1 run: the tolerance alone decides)
        2 checks: 2 held
        --- exit 0
    "#]]);
    // With them there is one.
    let linked = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/tfprof/wavefront_40.tfp");
    place.tq_args(&["check", linked, "--baseline", linked]).check(&expect![[r#"
        ok     makespan: metric makespan (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        ok     busy time: metric busy_time (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        ok     critical path: metric path_time (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        3 checks: 3 held
        --- exit 0
    "#]]);
    place.tq("check new.csv").check(&expect![[r#"
        --- stderr
        error: there is nothing to check
        hint: name a query with `expect` or `metric` lines: `--query FILE.sql`
        hint: or traces to compare makespan, busy time and critical path with: `--baseline TRACE`
        --- exit 2
    "#]]);
    place.tq("check new.csv --baseline base.csv --tolerance many").check(&expect![[r#"
        --- stderr
        error: invalid value 'many' for '--tolerance <TOLERANCE>': `many` is no tolerance: write 5% or a time like 2ms

        For more information, try '--help'.
        --- exit 2
    "#]]);
}

#[test]
fn a_trace_that_is_missing_is_a_check_that_could_not_run() {
    let place = Place::new();
    write_run(&place, "base.csv", 20);
    place.tq("check nowhere.csv --baseline base.csv --github --junit out.xml --markdown=out.md").check(&expect![[r#"
        ::error file=nowhere.csv,line=1,title=tq check%3A traces::cannot read trace `nowhere.csv`: no such file or directory
        ERROR  traces: cannot read trace `nowhere.csv`: no such file or directory
                 hint: `.` holds `base.csv`, `run.json`
        1 check: 1 could not run
        --- exit 2
    "#]]);
    expect![[r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="tq check" tests="1" failures="0" errors="1" skipped="0">
          <testsuite name="traces" tests="1" failures="0" errors="1" skipped="0">
            <testcase classname="traces" name="reading" file="nowhere.csv" line="1">
              <error message="cannot read trace `nowhere.csv`: no such file or directory">hint: `.` holds `base.csv`, `run.json`</error>
            </testcase>
          </testsuite>
        </testsuites>
    "#]].assert_eq(&place.read("out.xml"));
    expect![[r#"
        ## tq check

        1 check: 1 could not run

        | | query | check |
        | --- | --- | --- |
        | **could not run** | traces | cannot read trace \`nowhere.csv\`: no such file or directory |

        ### traces: cannot read trace \`nowhere.csv\`: no such file or directory


        ```text
        hint: `.` holds `base.csv`, `run.json`
        ```
    "#]]
    .assert_eq(&place.read("out.md"));
    place.tq("check base.csv --baseline nowhere.csv").check(&expect![[r#"
        ERROR  baseline: cannot read trace `nowhere.csv`: no such file or directory
                 hint: `.` holds `base.csv`, `out.md`, `out.xml`, `run.json`
        1 check: 1 could not run
        --- exit 2
    "#]]);
}

/// Names of kernels are as long as their templates; the document for scripts has them whole.
#[test]
fn long_names_are_shortened_for_people() {
    let place = Place::new();
    let kernel =
        format!("void at::native::vectorized_elementwise_kernel<4, at::native::Fill{}>(int)", "<float>".repeat(200));
    let run =
        |finish: u32| format!("task,name,location,start_us,end_us\n1,\"{kernel}\",w0,0,{finish}\n2,b,w0,{finish},90\n");
    place.write("base.csv", &run(20));
    place.write("new.csv", &run(40));
    place.tq("diff base.csv new.csv").check(&expect![[r#"
        base = base.csv
        new  = new.csv

        makespan       90.0 µs → 90.0 µs  0 s  +0.0 %
        busy time      90.0 µs → 90.0 µs  0 s  +0.0 %

        Why: what the executed paths spent; the changes of all names add up to that of the makespan

         what                                │ base_time │ new_time │ change_time
        ─────────────────────────────────────┼───────────┼──────────┼─────────────
         b: work                             │   70.0 µs │  50.0 µs │    -20.0 µs
         vectorized_elementwise_kernel: work │   20.0 µs │  40.0 µs │     20.0 µs

        Which tasks changed: one of them (the `measure`), or how many there are; `change_time` is of all

         what                          │ measure │ base_time │ new_time │ change_time
        ───────────────────────────────┼─────────┼───────────┼──────────┼─────────────
         b                             │ median  │   70.0 µs │  50.0 µs │    -20.0 µs
         vectorized_elementwise_kernel │ median  │   20.0 µs │  40.0 µs │     20.0 µs

        What changed most: work by name, idle locations

         what                                  │ base_time │ new_time │ base_count │ new_count │ change_time │ change_percent
        ───────────────────────────────────────┼───────────┼──────────┼────────────┼───────────┼─────────────┼────────────────
         work in b                             │   70.0 µs │  50.0 µs │          1 │         1 │    -20.0 µs │          -28.6
         work in vectorized_elementwise_kernel │   20.0 µs │  40.0 µs │          1 │         1 │     20.0 µs │          100.0
        --- exit 0
    "#]]);
    assert!(place.tq("diff base.csv new.csv --format json").stdout.contains(&kernel));
    let answer = place.tq("diff base.csv new.csv --from 1us");
    assert!(answer.stdout.lines().all(|line| line.chars().count() < 140), "{}", answer.stdout);
}

/// A recording that began too late is a finding of the comparison and no error of ours.
#[test]
fn a_run_without_tasks_is_compared_too() {
    let place = Place::new();
    for order in ["zero_40 wavefront_40", "wavefront_40 zero_40"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/tfprof");
        let traces: Vec<String> = order.split(' ').map(|name| format!("{folder}/{name}.tfp")).collect();
        let answer = place.tq_args(&["diff", &traces[0], &traces[1]]);
        assert_eq!(answer.status, Some(0), "{order}: {}", answer.stderr);
        assert!(answer.stdout.contains("makespan") && !answer.stdout.contains("Why"), "{order}: {}", answer.stdout);
    }
}

/// A kernel that others resemble is not called what they could be called as well, also where only one of them is shown.
#[test]
fn labels_are_of_one_name_among_all_tasks() {
    let place = Place::new();
    let kernel = |tile: &str| format!("void cutlass::Kernel2<cutlass_80_tensorop_{tile}_align8>(typename T::Params)");
    let trace = |finish: u32| {
        let (one, two) = (kernel("128x64"), kernel("256x128"));
        format!(
            "task,name,location,start_us,end_us\n1,\"{one}\",w0,0,{finish}\n2,\"{two}\",w0,{finish},{}\n",
            finish + 20
        )
    };
    place.write("base.csv", &trace(20));
    place.write("new.csv", &trace(60));
    let answer = place.tq("diff base.csv new.csv").stdout;
    assert!(answer.contains("Kernel2<cutlass_80_tensorop_128x64_align8>: work"), "{answer}");
}
