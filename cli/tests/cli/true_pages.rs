//! Sentences of reports and checks that were misleading once: about graphs without times, studies, folded stacks, two programs.

use expect_test::expect;

use super::checks::study;
use super::{Place, TRACE};

const GRAPH: &str = "\
digraph G {
A_2_0 [shape=\"polygon\",label=\"<0/0> A(0)[0]<16> keys = {0} {tp: 2}\",tooltip=\"tpid=2:tcid=0:tcname=A:tid=0\"];
A_2_0 -> B_2_0 [label=\"T=>T\",color=\"#00FF00\",style=\"dashed\"]
A_2_0 -> B_2_1 [label=\"T=>T\",color=\"#00FF00\",style=\"dashed\"]
B_2_0 [shape=\"polygon\",label=\"<0/0> B(0)[0]<12> keys = {0} {tp: 2}\",tooltip=\"tpid=2:tcid=1:tcname=B:tid=0\"];
B_2_1 [shape=\"polygon\",label=\"<0/0> B(1)[1]<12> keys = {1} {tp: 2}\",tooltip=\"tpid=2:tcid=1:tcname=B:tid=1\"];
}
";

/// Nothing is said that needs times, and what the graph holds is said.
#[test]
fn a_graph_without_times_has_a_first_screen() {
    let place = Place::new();
    place.write("graph.dot", GRAPH);
    place.tq("report graph.dot --tables").check(&expect![[r#"
        # graph

        - No task has a start, so there are no times: what is known is the graph, 3 tasks of 2 names and 2 dependencies between them.
        - The longest chain has 2 of the 3 tasks: were all equally long, 1.5 could run at once on average, however many locations there are.
        - Look next for the recording of the events that belongs to this graph: opened together with it, it gives the tasks their times.

        ## The graph of tasks

        No task has a time. `waits_for` and `awaited_by` count dependencies, `first_tasks` and `last_tasks` those without any before or behind them, and
        `chain_steps` those on the longest chain, where every task is one step.

        | tasks | names | dependencies | longest_chain_steps | tasks_per_step |
        | ---: | ---: | ---: | ---: | ---: |
        | 3 | 2 | 2 | 2 | 1.5 |

        | name | tasks | first_tasks | last_tasks | waits_for | awaited_by | chain_steps |
        | --- | ---: | ---: | ---: | ---: | ---: | ---: |
        | B | 2 | 0 | 2 | 2 | 0 | 1 |
        | A | 1 | 1 | 0 | 0 | 2 | 1 |

        ## Is the trace sound

        What was skipped, repaired, rounded or guessed while recording and reading. `lanes` are the locations that could execute tasks; the others hold them
        together or describe transfers.

        | format | source | time_unit | tasks | locations | lanes | makespan | executions |
        | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |
        | parsec | graph.dot | ns | 3 | 2 | 1 | *NULL* | 1 |

        | severity | what | stage | count | example |
        | --- | --- | --- | ---: | --- |
        | info | records_read | import | 5 | 5 became rows |
        | info | dot_only | recording | 3 | A_2_0 has no event: a task without times |

        ---

        Asked with the saved queries `facts-graph`, `graph-size`, `graph-by-name`, `what-was-read`, `trace-soundness`: `tq queries NAME` shows one, `tq query TRACE NAME` asks it again.
        --- exit 0
    "#]]);
    // Colours are given to names by their time, which none has: that is no news.
    let answer = place.tq("report graph.dot -o page.md");
    assert!(!answer.stderr.contains("note:"), "{}", answer.stderr);
}

/// The picture has the runs that got worse, and no others.
#[test]
fn a_picture_of_a_study_has_the_runs_that_got_worse() {
    let place = Place::new();
    place.write("before.json", &study(1.0));
    place.write("after.json", &study(3.0));
    assert_eq!(place.tq("check after.json --baseline before.json --picture worse.svg").status, Some(1));
    let picture = place.read("worse.svg");
    assert!(picture.contains("p=32") && !picture.contains("p=8"), "{picture}");
}

fn first_lines(text: &str, count: usize) -> String {
    text.lines().filter(|line| !line.is_empty()).take(count).map(|line| format!("{line}\n")).collect()
}

#[test]
fn two_studies_are_compared_where_both_measured() {
    let place = Place::new();
    place.write("before.json", &study(1.0));
    // The larger size is called otherwise.
    place.write("after.json", &study(3.0).replace("\"argument\":\"4\"", "\"argument\":\"8\""));
    let page = place.tq("report base=before.json new=after.json --tables").stdout;
    expect![[r#"
        # base, new
        - At the largest size and on the most cores that base and new have in common (size 1, 32 cores), new took 942 ms instead of 314 ms, 3.0 times as long; its efficiency is 33.3 % instead of 100.0 %.
        - Not compared is what only one of them measured: base size 4; new size 8.
        - Look next at size 1 (see Does the program scale), where the efficiency of new falls most when cores are added to more than the fewest: from 100.0 % of 8 cores to 33.3 % of 32.
    "#]].assert_eq(&first_lines(&page, 4));
    place.tq("query base=before.json new=after.json pascal-changes --format table").check(&expect![[r#"
         argument │ cores │ base_time │ new_time │ change_percent │ base_efficiency │ new_efficiency │ efficiency_change
        ──────────┼───────┼───────────┼──────────┼────────────────┼─────────────────┼────────────────┼───────────────────
         1        │    32 │    314 ms │   942 ms │          200.0 │             1.0 │         0.3333 │           -0.6667
         1        │     8 │    1.26 s │   1.26 s │            0.0 │             1.0 │            1.0 │               0.0
         1        │     1 │    10.1 s │   10.1 s │            0.0 │             1.0 │            1.0 │               0.0
        (3 rows)
        --- exit 0
    "#]]);
    // Steps of both stand beside each other, however many there are.
    place.tq("query base=before.json new=after.json pascal-contradictions --format table").check(&expect![[r#"
         run │ region │ property          │ argument │ cores │ difference │ step
        ─────┼────────┼───────────────────┼──────────┼───────┼────────────┼───────────────────────────────────────
         new │        │ strongly scalable │ 1        │    32 │  -0.666667 │ strongly scalable: size 1 on 32 cores
         new │        │ strongly scalable │ 8        │    32 │  -0.666667 │ strongly scalable: size 8 on 32 cores
         new │        │ weakly scalable   │ 8        │    32 │  -0.666667 │ weakly scalable: size 8 on 32 cores
        (3 rows)
        --- exit 0
    "#]]);
    place.tq("query before.json pascal-changes").check(&expect![[r#"
        --- stderr
        error: `pascal-changes` needs rows in `runs` with study = base and rows in `runs` with study = new: that is not in these traces
        hint: the study of `runs` here: before
        hint: name the runs: `tq query base=TRACE new=TRACE pascal-changes`
        --- exit 2
    "#]]);
    place.tq("diff before.json after.json").check(&expect![[r#"
        --- stderr
        error: `tq diff` compares one run with another, and base holds 12 runs, new holds 12 runs
        hint: `tq report base=before.json new=after.json` compares two studies
        hint: `tq check NEW --baseline BASE` compares several runs a side; `tq query … runs-side-by-side` shows them
        --- exit 2
    "#]]);
}

#[test]
fn folded_stacks_are_weighed_and_not_timed() {
    let place = Place::new();
    place.write("base.folded", "main;solve 60\nmain;read 30\nmain 10\n");
    place.write("new.folded", "main;solve 60\nmain;read 90\nmain 10\n");
    place.tq("check new.folded --baseline base.folded").check(&expect![[r#"
        FAILED total weight: metric total_weight: 100 weights → 160 weights (+60.0 %), tolerance 5%; 1 against 1 run: the tolerance alone decides
                         base │         new │     change │ change_percent
                 ─────────────┼─────────────┼────────────┼────────────────
                  100 weights │ 160 weights │ 60 weights │           60.0
                 what changed, the weight by name of frame (base=base.folded, new=new.folded; `tq report base=base.folded new=new.folded` tells more):
                  name │ mostly_under │ base_weight │ new_weight │ base_percent │ new_percent │ change_points
                 ──────┼──────────────┼─────────────┼────────────┼──────────────┼─────────────┼───────────────
                  read │ main         │          30 │         90 │         30.0 │       56.25 │         26.25
        1 check: 1 failed
        --- exit 1
    "#]]);
    place.tq("diff base.folded new.folded").check(&expect![[r#"
        base = base.folded
        new  = new.folded

        total weight   100 weights → 160 weights  +60 weights  +60.0 %

        What changed most: the share of each frame itself, a point is a hundredth of the run

         name │ mostly_under │ base_weight │ new_weight │ base_percent │ new_percent │ change_points
        ──────┼──────────────┼─────────────┼────────────┼──────────────┼─────────────┼───────────────
         read │ main         │          30 │         90 │         30.0 │       56.25 │         26.25
        --- exit 0
    "#]]);
    let page = place.tq("report base=base.folded new=new.folded --tables").stdout;
    expect![[r#"
        # base, new
        - From base to new, read changed most (see What changed): 56.3 % of the weight itself instead of 30.0 %.
        - No name of the stacks has more weight of its own than solve: 60.0 % in base, 37.5 % in new.
        - new has most in read itself: 30.0 % in base, 56.3 % in new.
    "#]]
    .assert_eq(&first_lines(&page, 4));
}

/// What made the makespan longer is not what made locations busier.
#[test]
fn a_busy_time_is_explained_by_the_names_that_grew() {
    let place = Place::new();
    // `a` grows beside `b`, which ends last.
    place.write("longer.json", &TRACE.replace("[0,40]", "[0,49]"));
    place.tq("check longer.json --baseline run.json").check(&expect![[r#"
        ok     makespan: metric makespan (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        FAILED busy time: metric busy_time: 110 µs → 119 µs (+8.2 %), tolerance 5%; 1 against 1 run: the tolerance alone decides
                    base │    new │  change │ change_percent
                 ────────┼────────┼─────────┼────────────────
                  110 µs │ 119 µs │ 9.00 µs │            8.2
                 what changed, the busy time by name of task (base=run.json, new=longer.json; `tq report base=run.json new=longer.json` tells more):
                  name │ base_time │ new_time │ change_time │ base_tasks │ new_tasks
                 ──────┼───────────┼──────────┼─────────────┼────────────┼───────────
                  a    │   40.0 µs │  49.0 µs │     9.00 µs │          1 │         1
                 where, the locations whose busy time changed unlike that of the others:
                  location │ base_time │ new_time │ change_time │ change_percent
                 ──────────┼───────────┼──────────┼─────────────┼────────────────
                  E0/W0    │   50.0 µs │  59.0 µs │     9.00 µs │           18.0
                 which, the tasks that became longer or shorter themselves, or more:
                  what │ measure │ base_time │ new_time │ change_time
                 ──────┼─────────┼───────────┼──────────┼─────────────
                  a    │ median  │   40.0 µs │  49.0 µs │     9.00 µs
        2 checks: 1 held, 1 failed
        --- exit 1
    "#]]);
    place.tq("query base=run.json new=longer.json busy-time-changed --format table").check(&expect![[r#"
         name │ base_time │ new_time │ change_time │ base_tasks │ new_tasks
        ──────┼───────────┼──────────┼─────────────┼────────────┼───────────
         a    │   40.0 µs │  49.0 µs │     9.00 µs │          1 │         1
        (1 row)
        --- exit 0
    "#]]);
    let place = Place::with_links();
    place.write("longer.json", &TRACE.replace("[0,40]", "[0,49]"));
    place.write("longer.dot", &place.read("run.dot"));
    place.tq("check longer.json --baseline run.json").check(&expect![[r#"
        ok     makespan: metric makespan (changed +0.0 %; 1 against 1 run: the tolerance alone decides)
        FAILED busy time: metric busy_time: 110 µs → 119 µs (+8.2 %), tolerance 5%; 1 against 1 run: the tolerance alone decides
                    base │    new │  change │ change_percent
                 ────────┼────────┼─────────┼────────────────
                  110 µs │ 119 µs │ 9.00 µs │            8.2
                 what changed, the busy time by name of task (base=run.json, new=longer.json; `tq report base=run.json new=longer.json` tells more):
                  name │ base_time │ new_time │ change_time │ base_tasks │ new_tasks
                 ──────┼───────────┼──────────┼─────────────┼────────────┼───────────
                  a    │   40.0 µs │  49.0 µs │     9.00 µs │          1 │         1
                 where, the locations whose busy time changed unlike that of the others:
                  location │ base_time │ new_time │ change_time │ change_percent
                 ──────────┼───────────┼──────────┼─────────────┼────────────────
                  E0/W0    │   50.0 µs │  59.0 µs │     9.00 µs │           18.0
                 which, the tasks that became longer or shorter themselves, or more:
                  what │ measure │ base_time │ new_time │ change_time
                 ──────┼─────────┼───────────┼──────────┼─────────────
                  a    │ median  │   40.0 µs │  49.0 µs │     9.00 µs
        FAILED critical path: metric path_time: 50.0 µs → 59.0 µs (+18.0 %), tolerance 5%; 1 against 1 run: the tolerance alone decides
                     base │     new │  change │ change_percent
                 ─────────┼─────────┼─────────┼────────────────
                  50.0 µs │ 59.0 µs │ 9.00 µs │           18.0
                 what changed, the critical path by name of task (base=run.json, new=longer.json; `tq report base=run.json new=longer.json` tells more):
                  name │ base_time │ new_time │ change_time │ base_steps │ new_steps
                 ──────┼───────────┼──────────┼─────────────┼────────────┼───────────
                  a    │   40.0 µs │  49.0 µs │     9.00 µs │          1 │         1
        3 checks: 1 held, 2 failed
        --- exit 1
    "#]]);
}

#[test]
fn a_page_is_refused_before_its_traces_are_read() {
    let place = Place::new();
    place.tq("report nowhere.json -o missing/report.md").check(&expect![[r#"
        --- stderr
        error: cannot write `missing/report.md`: no such file or directory
        hint: there is no folder `missing`: `mkdir -p missing` makes it
        --- exit 2
    "#]]);
}

/// A wait and a step of the profiler run nothing, and streams that copy are no locations that could compute.
#[test]
fn waits_and_steps_are_no_work() {
    let place = Place::new();
    let fixture = |name: &str| format!("{}/../fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    let trace = fixture("nsys/two_streams.sqlite");
    place
        .tq_args(&[
            "query",
            &trace,
            "--format",
            "csv",
            "-c",
            "SELECT location, busy_time FROM busy_lanes ORDER BY location",
        ])
        .check(&expect![[r#"
            location,busy_time
            100/201,87000
            100/GPU 0/stream 7,324000
            --- exit 0
        "#]]);
    let idle = "SELECT count(*) AS rows FROM working_tasks WHERE role = 'wait' OR name LIKE 'ProfilerStep#%'";
    for name in ["nsys/two_streams.sqlite", "chrome/nccl_ranks", "chrome/ddp_gloo", "chrome/torch215_cpu.json.gz"] {
        let answer = place.tq_args(&["query", &fixture(name), "--format", "csv", "-c", idle]);
        assert_eq!(answer.stdout, "rows\n0\n", "{name}");
    }
}
