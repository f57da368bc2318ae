//! Sentences, tables and pictures about traces that are no plain set of nested tasks: they say what is so, and agree with each other.

use expect_test::{Expect, expect};

use super::Place;

fn fixture(name: &str) -> String {
    format!("{}/../fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The answer of a command whose words are given, compared with what was seen and found right.
fn check(place: &Place, words: &[&str], expected: &Expect) {
    place.tq_args(words).check(expected);
}

#[test]
fn what_transfers_is_told_from_what_executes() {
    let place = Place::new();
    let trace = fixture("parsec/chol24-4r");
    check(
        &place,
        &["query", &trace, "facts-how-full", "--format", "csv"],
        &expect![[r#"
            fact,name
            "The run took 169 ms from the first start to the last finish; its 4 locations that execute tasks were busy with task bodies or the runtime for 30.2 % of that on average; chol::GEMM took most: 78.4 ms in 2024 tasks, 38.4 % of the time of tasks themselves.",chol::GEMM
            --- exit 0
        "#]],
    );
    check(
        &place,
        &["query", &trace, "facts-what-next", "--format", "csv"],
        &expect![[r#"
            fact,name_after,task_name
            --- exit 0
        "#]],
    );
    check(
        &place,
        &["query", &trace, "busy-locations", "--format", "table"],
        &expect![[r#"
         run       │ location        │ busy_time │ makespan │ share
        ───────────┼─────────────────┼───────────┼──────────┼───────
         chol24-4r │ rank 3/stream 1 │   69.0 ms │   169 ms │ 0.408
         chol24-4r │ rank 2/stream 1 │   51.2 ms │   169 ms │ 0.302
         chol24-4r │ rank 0/stream 1 │   48.8 ms │   169 ms │ 0.289
         chol24-4r │ rank 1/stream 1 │   35.4 ms │   169 ms │ 0.209
        (4 rows)
        --- exit 0
    "#]],
    );
}

#[test]
fn ports_and_scopes_are_no_locations_that_could_work() {
    let place = Place::new();
    let counts = "SELECT kind, count(*) AS lanes FROM working_lanes GROUP BY kind ORDER BY kind";
    check(
        &place,
        &["query", &fixture("daisen/virtualmem_v5.sqlite3.zst"), "--format", "csv", "-c", counts],
        &expect![[r#"
            kind,lanes
            component,54
            --- exit 0
        "#]],
    );
    check(
        &place,
        &["query", &fixture("daisen/fir64_v3.csv.zst"), "--format", "csv", "-c", counts],
        &expect![[r#"
        kind,lanes
        component,56
        --- exit 0
    "#]],
    );
    // The sentence, the bars and the balance are about the same locations.
    let agree = "SELECT (SELECT count(*) FROM busy_lanes) AS lanes, (SELECT count(*) FROM working_lanes) AS working";
    check(
        &place,
        &["query", &fixture("daisen/virtualmem_v5.sqlite3.zst"), "--format", "csv", "-c", agree],
        &expect![[r#"
            lanes,working
            54,54
            --- exit 0
        "#]],
    );
}

#[test]
fn idle_devices_say_of_what() {
    let place = Place::new();
    let trace = "[{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":900,\"dur\":50,\"args\":{\"device\":0,\"stream\":7}},\n\
        {\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"op\",\"pid\":1,\"tid\":1,\"ts\":0,\"dur\":1000}]";
    place.write("late.json", trace);
    check(
        &place,
        &["query", "late.json", "facts-gpu", "--format", "csv"],
        &expect![[r#"
            fact,name
            "The run took 1.00 ms; its device had tasks in 5.0 % of that, from the first to the last one, and in this time computed 100.0 % and idled 0.0 %; of the tasks there, k took most: 50.0 µs in 1 task, 100.0 % of the time of all, added up.",k
            --- exit 0
        "#]],
    );
    check(
        &place,
        &["query", "late.json", "facts-gpu-next", "--format", "csv"],
        &expect![[r#"
            fact,name,host_name,work_name,communication_name,copy_name
            "Look next at what the host does before and after the devices work (see Where the time went): they had no task yet, or no more, for 95.0 % of the run; the host spent most on op, 1.00 ms.",,op,k,,
            --- exit 0
        "#]],
    );
    // Both ranks idle alike: none of them most.
    check(
        &place,
        &["query", &fixture("chrome/nccl_ranks"), "facts-gpu", "--format", "csv"],
        &expect![[r#"
            fact,name
            "The run took 2.90 ms; its 2 devices had tasks in 92.4 % of that on average, from the first to the last one, and in this time computed 58.2 %, communicated without computing 13.4 %, copied without either 2.2 % and idled 26.1 %; of the tasks there, ncclDevKernel_AllReduce_Sum_f32_RING_LL took most: 2.82 ms in 6 tasks, 46.5 % of the time of all, added up and hidden by computing or not.",ncclDevKernel_AllReduce_Sum_f32_RING_LL
            --- exit 0
        "#]],
    );
}

#[test]
fn names_of_two_runs_stand_beside_each_other() {
    let place = Place::new();
    let write = |name: &str, duration: &dyn Fn(i64) -> i64| {
        let rows = (0..40).fold("name,location,start_us,end_us\n".to_owned(), |rows, task| {
            rows + &format!("f{task},w0,{},{}\n", task * 1000, task * 1000 + duration(task))
        });
        place.write(name, &rows);
    };
    write("base.csv", &|task| 100 + task);
    write("new.csv", &|task| 200 - task);
    let rows = place.tq("query base.csv new.csv time-by-name --format csv").stdout;
    let names: Vec<&str> = rows.lines().skip(1).filter_map(|row| row.split(',').nth(1)).collect();
    assert_eq!(names.len(), 60, "{rows}");
    assert!(names.chunks(2).all(|pair| pair[0] == pair[1]), "{rows}");
}

#[test]
fn a_slice_counts_what_lies_in_it_everywhere() {
    let place = Place::with_links();
    let slice = ["run.json", "--from", "45us", "--to", "70us"];
    for (query, expected) in [
        (
            "facts-how-full",
            expect![[r#"
                 fact                                                                                                                                                                                                             │ name
                ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┼──────
                 Within the slice, the run took 25.0 µs from the first start to the last finish; its 2 locations were busy for 70.0 % of that on average; b took most: 25.0 µs in 1 task, 71.4 % of the time of tasks themselves. │ b
                (1 row)
                --- exit 0
            "#]],
        ),
        (
            "time-by-name",
            expect![[r#"
             run │ name │ tasks │ total_self_time │ total_time │ share_percent
            ─────┼──────┼───────┼─────────────────┼────────────┼───────────────
             run │ b    │     1 │         25.0 µs │    25.0 µs │         71.43
             run │ c    │     1 │         10.0 µs │    10.0 µs │         28.57
            (2 rows)
            --- exit 0
        "#]],
        ),
        (
            "busy-locations",
            expect![[r#"
             run │ location │ busy_time │ makespan │ share
            ─────┼──────────┼───────────┼──────────┼───────
             run │ E0/W1    │   25.0 µs │  25.0 µs │   1.0
             run │ E0/W0    │   10.0 µs │  25.0 µs │   0.4
            (2 rows)
            --- exit 0
        "#]],
        ),
        (
            "load-imbalance",
            expect![[r#"
                 run │ kind   │ lanes │ imbalance │ most_time │ least_time │  gini │ load_balance │ imbalance_percent
                ─────┼────────┼───────┼───────────┼───────────┼────────────┼───────┼──────────────┼───────────────────
                 run │ worker │     2 │     1.429 │   25.0 µs │    10.0 µs │ 0.214 │          0.7 │              60.0
                (1 row)
                --- exit 0
            "#]],
        ),
        (
            "longest-tasks",
            expect![[r#"
             run │ task │ name │ location │   start │ duration
            ─────┼──────┼──────┼──────────┼─────────┼──────────
             run │    2 │ b    │ E0/W1    │ 45.0 µs │  25.0 µs
             run │    1 │ c    │ E0/W0    │ 50.0 µs │  10.0 µs
            (2 rows)
            --- exit 0
        "#]],
        ),
    ] {
        check(&place, &[&["query"], &slice[..], &[query, "--format", "table"]].concat(), &expected);
    }
    // The picture says so too, and the table of tasks still has them whole.
    let picture = place.tq_args(&[&["query"], &slice[..], &["timeline", "--format", "svg"]].concat()).stdout;
    assert!(picture.contains("25.0 µs"), "{picture}");
    let whole = "SELECT name, t.duration AS whole, p.duration AS in_slice FROM tasks t JOIN program_tasks p USING (task, name) ORDER BY name";
    check(
        &place,
        &[&["query"], &slice[..], &["--format", "table", "-c", whole]].concat(),
        &expect![[r#"
         name │   whole │ in_slice
        ──────┼─────────┼──────────
         b    │ 60.0 µs │  25.0 µs
         c    │ 10.0 µs │  10.0 µs
        (2 rows)
        --- exit 0
    "#]],
    );
}

#[test]
fn an_efficiency_above_one_is_flagged() {
    let place = Place::new();
    let trace = fixture("pascal/above_one.json");
    check(
        &place,
        &["query", &trace, "facts-scalability", "--format", "csv"],
        &expect![[r#"
            fact
            "above_one, measured at size 10 on 1 to 4 cores, uses 96.2 % of 4 cores. Beware: 1 of its 3 efficiencies is above 100 % (up to 125.0 %), so the runs on the fewest cores, which they are measured against, were slow for another reason, or more cores brought more than themselves."
            --- exit 0
        "#]],
    );
    check(
        &place,
        &["query", &trace, "pascal-above-one", "--format", "table"],
        &expect![[r#"
             run       │ region │ argument │ cores │   time │ efficiency
            ───────────┼────────┼──────────┼───────┼────────┼────────────
             above_one │        │ 10       │     2 │ 40.0 s │       1.25
            (1 row)
            --- exit 0
        "#]],
    );
    let chart =
        place.tq_args(&["query", &fixture("pascal/regions.json"), "pascal-weakest-region", "--format", "svg"]).stdout;
    assert!(chart.contains("the efficiency that the program loses"), "{chart}");
}

#[test]
fn a_tie_has_no_most() {
    let place = Place::new();
    place.write("even.csv", "name,location,start_us,end_us\na,w0,0,10\na,w1,0,10\n");
    check(
        &place,
        &["query", "even.csv", "facts-balance", "--format", "csv"],
        &expect![[r#"
            fact
            The work is spread evenly over the locations: each was busy for 10.0 µs.
            --- exit 0
        "#]],
    );
    place.write("tied.csv", "name,location,start_us,end_us\na,w0,0,10\na,w1,0,10\na,w2,0,1\n");
    check(
        &place,
        &["query", "tied.csv", "facts-balance", "--format", "csv"],
        &expect![[r#"
            fact
            "The work is spread unevenly over the locations: the busiest, 2 of them, were busy for 10.0 µs each, 1.43 times the mean."
            --- exit 0
        "#]],
    );
    check(
        &place,
        &["query", "tied.csv", "facts-what-next", "--format", "csv"],
        &expect![[r#"
            fact,name_after,task_name
            "Look next at how the work is spread (see Who works and who idles): the 2 busiest locations were busy for 10.0 µs each, 1.43 times the mean.",,a
            --- exit 0
        "#]],
    );
    check(
        &place,
        &["query", &fixture("table/halo.csv"), "facts-messages", "--format", "csv"],
        &expect![[r#"
        fact
        "36 messages were sent, 172032 bytes; none sent another one more than 6, as rank 0 did rank 1 and 5 other pairs."
        --- exit 0
    "#]],
    );
}

/// Pairs have more to be said of; what to look at next stays the third sentence.
#[test]
fn pages_about_two_runs_say_what_to_look_at_next() {
    let place = Place::new();
    place.write(
        "facts.md",
        "```sql facts\nfacts-messages\nfacts-actors-cycles\nfacts-aggregation\nfacts-actors-next\n```\n",
    );
    let actors = fixture("actorprof/triangle_range");
    check(
        &place,
        &["report", &format!("a={actors}"), &format!("b={actors}"), "--template", "facts.md"],
        &expect![[r#"
            - In a, 1663 messages were sent, 26608 bytes; most, 62, from PE6 to PE2. In b, 1663 messages were sent, 26608 bytes; most, 62, from PE6 to PE2.
            - Sending, and waiting for what others send (T_COMM), took 78.3 % of the cycles of a, from 57.5 % in PE0 to 88.8 % in PE15, handlers of messages 7.6 %; 78.3 % of the cycles of b, from 57.5 % in PE0 to 88.8 % in PE15, handlers of messages 7.6 %.
            - Look next at PE0 of a (see How evenly the messages are spread): it received 484 messages, 4.66 times the mean.
            --- exit 0
        "#]],
    );
    place.write("facts.md", "```sql facts\nfacts-scalability\nfacts-scalability-steps\nfacts-scalability-next\n```\n");
    let (a, b) = (fixture("pascal/regions.json"), fixture("pascal/repetitions_3.json"));
    check(
        &place,
        &["report", &format!("a={a}"), &format!("b={b}"), "--template", "facts.md"],
        &expect![[r#"
            - a, measured at 4 sizes from 100 to 800 on 1 to 8 cores, uses 90.2 % of 8 cores at its largest size; least, 49.5 % of 8, at size 100.
            - b, measured at 3 sizes from 1 to 4 on 1 to 4 cores, uses 50.0 % of 4 cores at its largest size; least, 22.2 % of 4, at size 1.
            - Look next at size 1 (see Does the program scale), where the efficiency of b falls most when cores are added to more than the fewest: from 75.0 % of 2 cores to 22.2 % of 4.
            --- exit 0
        "#]],
    );
}

#[test]
fn what_cannot_be_seen_of_waiting_is_not_denied() {
    let place = Place::new();
    // Without locations nothing is known of idling; a task around all others hides it.
    place.write("a.csv", "name,start_us,duration_us\na,0,5\nb,5,5\n");
    place.write(
        "b.json",
        r#"[{"ph":"X","name":"main","pid":1,"tid":1,"ts":0,"dur":10},{"ph":"X","name":"b","pid":1,"tid":1,"ts":5,"dur":1}]"#,
    );
    place.write("c.json", r#"[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":10}]"#);
    check(
        &place,
        &["query", "a.csv", "facts-idle", "-q", "--format", "csv"],
        &expect![[r#"
            fact,name_before,name_after
            --- exit 0
        "#]],
    );
    check(
        &place,
        &["query", "b.json", "facts-idle", "--format", "csv"],
        &expect![[r#"
            fact,name_before,name_after
            "main lasts as long as the run and contains the rest, so that nothing is seen of what waits inside of it.",,
            --- exit 0
        "#]],
    );
    check(
        &place,
        &["query", "c.json", "facts-idle", "--format", "csv"],
        &expect![[r#"
            fact,name_before,name_after
            "Nothing waited: no location ever idled, so the run is as long as its work.",,
            --- exit 0
        "#]],
    );
}

#[test]
fn samples_leave_out_what_needs_an_order_in_time() {
    let place = Place::new();
    place.write("a.folded", "main;solve 6\nmain;sol\nmain;read 3\nmain 1\n");
    check(
        &place,
        &["report", "a.folded", "--tables"],
        &expect![[r#"
            # a

            - No name of the stacks has more weight of its own than solve: 60.0 %.
            - Look next at the heaviest stack, main &gt; solve (see Where the weight is): it ends there for 60.0 % of the weight.
            - Stacks do not say when they were seen or on which thread: sections on timelines, concurrency, idling and the longest tasks are left out.

            | stack | self_time |
            | --- | ---: |
            | main;solve | 6 weights |
            | main;read | 3 weights |
            | main | 1 weight |

            ## Where the weight is

            The weight of frames themselves, by name, without the frames that they called. What it counts, the file does not say.

            | name | frames | self_weight | weight | share_percent |
            | --- | ---: | ---: | ---: | ---: |
            | solve | 1 | 6 weights | 6 weights | 60.0 |
            | read | 1 | 3 weights | 3 weights | 30.0 |
            | main | 1 | 1 weight | 10 weights | 10.0 |

            ## Is the trace sound

            What was skipped, repaired, rounded or guessed while recording and reading. `lanes` are the locations that could execute tasks; the others hold them
            together or describe transfers.

            | format | source | time_unit | tasks | locations | lanes | makespan | executions |
            | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |
            | folded | a.folded | weights | 3 | 1 | 1 | 10 weights | 1 |

            | severity | what | stage | count | example |
            | --- | --- | --- | ---: | --- |
            | lost | bad_lines | recording | 1 | line 2: \`main;sol\` |
            | info | records_read | import | 4 | 3 became rows |
            | info | stack_lines | import | 3 | they became 3 tasks |
            | info | weights_as_ticks | import | 3 | a weight of 1 is a tick, whatever was counted: --option folded.unit=us says that it is a time |

            ---

            Asked with the saved queries `facts-samples`, `flame-graph`, `weights-by-name`, `what-was-read`, `trace-soundness`: `tq queries NAME` shows one, `tq query TRACE NAME` asks it again.
            --- stderr
            warning: a.folded: 1 lost in 4 records (bad lines: line 2: `main;sol`); see import_stats
            --- exit 0
        "#]],
    );
}

#[test]
fn a_trend_draws_the_median_of_the_past() {
    let place = Place::new();
    let runs = ["wavefront_40.tfp", "wavefront_41.tfp", "nested_40.tfp"].map(|name| fixture(&format!("tfprof/{name}")));
    let picture = place.tq_args(&["query", &runs[0], &runs[1], &runs[2], "trend", "--format", "svg"]).stdout;
    let line =
        picture.lines().find(|line| line.contains("<path class=\"bound\"")).unwrap_or_else(|| panic!("{picture}"));
    assert!(line.matches('L').count() + line.matches('l').count() > 0, "{line}");
    assert!(picture.contains(">past time<"), "{picture}");
}

#[test]
fn a_page_about_clocks_asks_the_messages_too() {
    let place = Place::new();
    let page = place.tq_args(&["report", &fixture("parsec/chol24-4r")]).stdout;
    let section = page.split("### Do the clocks agree").nth(1).and_then(|rest| rest.split("\n## ").next());
    let section = section.unwrap_or_else(|| panic!("{page}"));
    assert!(section.contains("min_delay_time") && section.contains("lower_time"), "{section}");
}
