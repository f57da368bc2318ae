//! `tq report`: the built-in page, templates, and the forms of a page; files of pictures.

use expect_test::expect;

use super::Place;

#[test]
fn a_report_is_a_page_with_pictures() {
    let place = Place::with_links();
    place.tq("report run.json -o page.md").check(&expect![[r#"
        --- stderr
        wrote page.md
        next: `tq run.json` opens the prompt
        --- exit 0
    "#]]);
    expect![[r#"
        # run

        - The run took 80.0 µs from the first start to the last finish; its 2 locations were busy for 68.8 % of that on average; b took most: 60.0 µs in 1 task, 54.5 % of the time of tasks themselves.
        - The longest chain of dependent tasks (2 steps) takes 50.0 µs, 62.5 % of the makespan; tasks that could have started waited most between a and c: 10.0 µs in one task.
        - Look next at why locations idle (see Who works and who idles): the longest time, 20.0 µs, E0/W0 had no task until the end.

        ![What ran where and when, the longest chain of dependent tasks outlined](page.timeline-with-path.svg)

        ## Who works and who idles

        ![How busy the locations were over time, in 50 equal intervals, and on average](page.occupancy-over-time.svg)

        | makespan | lanes | never_busy | mean_busy_time | busy_percent | imbalance |
        | ---: | ---: | ---: | ---: | ---: | ---: |
        | 80.0 µs | 2 | 0 | 55.0 µs | 68.8 | 1.09 |

        The share of the makespan during which at least one task of the location ran; locations that never ran are there with 0, and the
        threads that a runtime keeps for communication are not.

        | location | busy_time | makespan | share |
        | --- | ---: | ---: | ---: |
        | E0/W1 | 60.0 µs | 80.0 µs | 0.75 |
        | E0/W0 | 50.0 µs | 80.0 µs | 0.625 |

        Imbalance is the busiest location's time over the mean: 1 is even. Its per cent are of the worst case: 0 is even, 100 is all work on
        one location.

        | kind | lanes | imbalance | most_time | least_time | gini | load_balance | imbalance_percent |
        | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
        | worker | 2 | 1.091 | 60.0 µs | 50.0 µs | 0.045 | 0.917 | 16.7 |

        ### The longest idle stretches

        | location | start | duration | name_before | wait | name_after |
        | --- | ---: | ---: | --- | --- | --- |
        | E0/W0 | 60.0 µs | 20.0 µs | c | *NULL* | *NULL* |
        | E0/W1 | 0 s | 20.0 µs | *NULL* | *NULL* | b |
        | E0/W0 | 40.0 µs | 10.0 µs | a | *NULL* | c |

        ## Where the time went

        The time of tasks themselves, by name: where a location runs several at once, the time is that of the one that started last.
        Waits, and transfers on locations that do nothing else, are not among them. `total_time` has nested tasks, too: one that calls
        itself counts for both.

        ![Where the time went, by name of task, nested tasks not counted twice](page.time-by-name.svg)

        | name | tasks | total_self_time | total_time | share_percent |
        | --- | ---: | ---: | ---: | ---: |
        | b | 1 | 60.0 µs | 60.0 µs | 54.55 |
        | a | 1 | 40.0 µs | 40.0 µs | 36.36 |
        | c | 1 | 10.0 µs | 10.0 µs | 9.09 |

        ### The longest single pieces of work

        Tasks by their own time: what is nested in them, and waiting for the last rank of a collective, is left out.

        | task | name | location | start | duration | own_time | median_time |
        | ---: | --- | --- | ---: | ---: | ---: | ---: |
        | 2 | b | E0/W1 | 20.0 µs | 60.0 µs | 60.0 µs | 60.0 µs |
        | 0 | a | E0/W0 | 0 s | 40.0 µs | 40.0 µs | 40.0 µs |
        | 1 | c | E0/W0 | 50.0 µs | 10.0 µs | 10.0 µs | 10.0 µs |

        ### The longest tasks

        | task | name | location | start | duration |
        | ---: | --- | --- | ---: | ---: |
        | 2 | b | E0/W1 | 20.0 µs | 60.0 µs |
        | 0 | a | E0/W0 | 0 s | 40.0 µs |
        | 1 | c | E0/W0 | 50.0 µs | 10.0 µs |

        ## What bounds the makespan

        ### The longest chain of dependent tasks

        The longest chain of tasks that wait for each other by `dependency` links, by name of task: at most this much of it goes away if all steps
        of a name take no time, and less where another chain is nearly as long (`tq query TRACE what-if-faster --param name=NAME --param percent=0` says
        how much). It is the longest of those that were read: where dependencies were lost (see Is the trace sound), the real one may be longer.

        ![What the critical path is made of, by name of task](page.critical-path-by-name.svg)

        | name | steps | total_time | share_percent |
        | --- | ---: | ---: | ---: |
        | a | 1 | 40.0 µs | 80.0 |
        | c | 1 | 10.0 µs | 20.0 |

        ### What dependencies and locations allow

        How far the run is from what its dependencies and its locations allow; `bound_share` is 1 where nothing is left to gain but less work.
        Dependencies that could not be joined to tasks (`lost_dependencies`) may make the path longer than it looks.

        | makespan | path_steps | path_time | path_percent | graph_time | work_time | lanes | work_per_lane_time | average_parallelism | bound_share | lost_dependencies |
        | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
        | 80.0 µs | 2 | 50.0 µs | 62.5 | 110 µs | 110 µs | 2 | 55.0 µs | 2.2 | 0.688 | 0 |

        ### What waits for what

        Time between being ready and starting: the tasks that they depend on had finished, and none of the locations had taken them yet, whether all were busy, some
        idled, or what they need was on its way from another process.

        | name | released_by_name | tasks | waited_time | median_time | longest_time |
        | --- | --- | ---: | ---: | ---: | ---: |
        | c | a | 1 | 10.0 µs | 10.0 µs | 10.0 µs |

        ### What the end of the run waited for

        Backwards from the last finish: what each location did before, and where it waited for a dependency, a message, a collective or a device, what that waited for. Work
        and waiting add up to the time from where this path begins, mostly with the run, to its end.

        ![What the end of the run really waited for, by name: work and waiting of the executed path](page.executed-path.svg)

        | name | part | total_time | steps |
        | --- | --- | ---: | ---: |
        | b | work | 60.0 µs | 1 |
        | b | waiting before it | 20.0 µs | 1 |

        ## Is the trace sound

        What was skipped, repaired, rounded or guessed while recording and reading. `lanes` are the locations that could execute tasks; the others hold them
        together or describe transfers.

        | format | source | time_unit | tasks | locations | lanes | makespan | executions |
        | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |
        | tfprof | run.json | us | 3 | 3 | 2 | 80.0 µs | 1 |

        | severity | what | stage | count | example |
        | --- | --- | --- | ---: | --- |
        | info | records_read | import | 7 | 4 became rows |
        | info | dot_nodes_joined | import | 3 | \`a\` |

        ---

        Asked with the saved queries `facts-how-full`, `facts-what-bounds`, `facts-what-next`, `timeline-with-path`, `occupancy-over-time`, `how-full`, `busy-locations`, `load-imbalance`, `idle-gaps`, `time-by-name`, `longest-own-times`, `longest-tasks`, `critical-path-by-name`, `parallelism-bound`, `waits-by-name`, `executed-path`, `what-was-read`, `trace-soundness`: `tq queries NAME` shows one, `tq query TRACE NAME` asks it again.
    "#]].assert_eq(&place.read("page.md"));
    assert!(place.read("page.timeline-with-path.svg").contains("critical path"));
    let piped = place.tq("report run.json").stdout;
    assert!(piped.contains("](data:image/svg+xml;base64,"), "{piped}");
    assert_eq!(piped, place.tq("report run.json").stdout);
    assert_eq!(piped, place.tq("report run.json --embed -o -").stdout);
    assert!(!place.tq("report run.json --tables").stdout.contains("]("));
}

#[test]
fn sections_follow_what_the_trace_holds() {
    let place = Place::new();
    let page = place.tq("report run.json --tables").stdout;
    assert!(!page.contains("## What bounds the makespan") && !page.contains("## What changed"), "{page}");
    place.write("empty.json", "[]");
    place.write("more.json", &super::TRACE.replace("80]", "90]"));
    let page = place.tq("report base=run.json new=more.json --tables").stdout;
    for section in
        ["## What changed", "## The runs side by side", "The run took 90.0 µs instead of 80.0 µs, 12.5 % longer"]
    {
        assert!(page.contains(section), "{section}\n{page}");
    }
}

#[test]
fn a_template_of_ones_own() {
    let place = Place::with_links();
    place.write(
        "mine.md",
        "# About {{runs}}\n\n```sql facts\nfacts-how-full\nfacts-messages\n```\n\n## Tasks\n\nThe first.\n\n```sql\nlongest-tasks limit=1\n```\n\n\
         ## Messages\n\nNever seen.\n\n```sql\nslowest-messages\n```\n\n### Their matrix\n\n```sql\nwho-talks-to-whom\n```\n\n\
         ## None\n\n```sql if-rows\nSELECT name FROM tasks WHERE name = 'x'\n```\n\n## Empty\n\n```sql\nSELECT name FROM tasks WHERE name = 'x'\n```\n\n\
         ## Bars\n\n```sql\n-- title: Bars\n-- chart: bar x=total_time y=name\nSELECT name, sum(duration) AS total_time FROM tasks GROUP BY name ORDER BY name\n```\n\n\
         ```c\nint x;\n```\n",
    );
    place.tq("report run.json --template mine.md -o page.md").check(&expect![[r#"
        --- stderr
        note: the section `Messages` is left out: it needs rows in `messages`
        note: the section `None` is left out: there is nothing to show
        wrote page.md
        next: `tq run.json` opens the prompt
        --- exit 0
    "#]]);
    expect![[r#"
        # About run

        - The run took 80.0 µs from the first start to the last finish; its 2 locations were busy for 68.8 % of that on average; b took most: 60.0 µs in 1 task, 54.5 % of the time of tasks themselves.

        ## Tasks

        The first.

        | task | name | location | start | duration |
        | ---: | --- | --- | ---: | ---: |
        | 2 | b | E0/W1 | 20.0 µs | 60.0 µs |

        ## Empty

        *No rows.*

        ## Bars

        ![Bars](page.picture.svg)

        ```c
        int x;
        ```
    "#]]
    .assert_eq(&place.read("page.md"));
    assert!(place.read("page.picture.svg").starts_with("<svg"));
    let html = place.tq("report run.json --template mine.md --html").stdout;
    assert!(
        html.starts_with("<!DOCTYPE html>") && html.contains("<object type=\"image/svg+xml\" data=\"data:"),
        "{html}"
    );
    assert!(!html.contains("<script") && !html.contains("src=\"http"), "{html}");
}

#[test]
fn what_can_be_wrong_with_a_report() {
    let place = Place::new();
    place.tq("report").check(&expect![[r#"
        --- stderr
        error: a report needs a trace
        hint: `tq report TRACE`
        --- exit 2
    "#]]);
    place.tq("report run.json --template nowhere.md").check(&expect![[r#"
        --- stderr
        error: cannot read `nowhere.md`: no such file or directory
        --- exit 2
    "#]]);
    for (template, expected) in [
        (
            "a\n```sql\nlongest-task\n```\n",
            expect![[r#"
            --- stderr
            error: t.md:3: no saved query `longest-task`; did you mean `longest-tasks`?
            hint: `tq queries` lists the saved queries
            --- exit 2
        "#]],
        ),
        (
            "a\n```sql\nlongest-tasks limt=3\n```\n",
            expect![[r#"
                --- stderr
                error: t.md:3: `longest-tasks` has no parameter `limt`; did you mean `limit`?
                hint: its parameters are limit
                --- exit 2
            "#]],
        ),
        (
            "a\n```sql\nSELECT strat\nFROM tasks\n```\n",
            expect![[r#"
            --- stderr
            error: t.md:3: no column `strat`
              |
            3 | SELECT strat
              |        ^^^^^
            hint: did you mean `start`?
            --- exit 2
        "#]],
        ),
        (
            "a\n```sql\n-- chart: baar x=a y=b\nSELECT 1 AS a\n```\n",
            expect![[r#"
            --- stderr
            error: t.md:3: `baar` is no kind of chart; did you mean `bar`?
            hint: the kinds are bar, stacked, line, occupancy, heatmap, box, flame, gantt, tasks
            --- exit 2
        "#]],
        ),
        (
            "a\n```sql\n-- chart: bar x=a y=b\nSELECT 1 AS a\n```\n",
            expect![[r#"
                --- stderr
                error: t.md:3: the chart's y=b: the answer has no column `b`; did you mean `a`?
                hint: the answer has a
                --- exit 2
            "#]],
        ),
        (
            "a\n```sql tabel\nSELECT 1\n```\n",
            expect![[r#"
                --- stderr
                error: t.md:2: `tabel` has no meaning after `sql`; did you mean `table`?
                hint: known are facts, if-rows, table, both, whole
                --- exit 2
            "#]],
        ),
        (
            "a\n```sql\nSELECT 1\n",
            expect![[r#"
            --- stderr
            error: t.md:2: the block is not closed
            --- exit 2
        "#]],
        ),
    ] {
        place.write("t.md", template);
        place.tq("report run.json --template t.md").check(&expected);
    }
}

#[test]
fn a_slice_is_said_and_the_extension_tells_html() {
    let place = Place::with_links();
    place.write("facts.md", "# {{runs}}\n\n```sql facts\nfacts-how-full\n```\n");
    place.tq("report run.json --from 45us --to 70us --template facts.md").check(&expect![[r#"
        # run

        Only the time from 45.0 µs to 70.0 µs is here: tasks that stick out of it are cut at its borders, and what else touches it (messages, links) is whole.

        - Within the slice, the run took 25.0 µs from the first start to the last finish; its 2 locations were busy for 70.0 % of that on average; b took most: 25.0 µs in 1 task, 71.4 % of the time of tasks themselves.
        --- exit 0
    "#]]);
    place.tq("report run.json --template facts.md -o facts.html --quiet").check(&expect![[r#"
        --- exit 0
    "#]]);
    assert!(place.read("facts.html").starts_with("<!DOCTYPE html>"), "{}", place.read("facts.html"));
}

#[test]
fn a_picture_goes_into_a_file_that_is_called_so() {
    let place = Place::new();
    place.write("check.sql", "-- expect no rows\n-- chart: pie x=a\nSELECT 1 AS a");
    let is_no_svg = expect![[r#"
        --- stderr
        error: a picture is SVG, but the name of the file ends in `.png`
        hint: call it `picture.svg`; browsers show it, `rsvg-convert` makes a PNG of it
        --- exit 2
    "#]];
    place.tq("query run.json -c 'SELECT 1 AS a' --chart 'bar x=a y=a' -o a.png").check(&is_no_svg);
    place.tq("check run.json --query check.sql --picture a.png").check(&is_no_svg);
    place.tq("check run.json --query check.sql").check(&expect![[r#"
        ERROR  check: no rows: check.sql:2: `pie` is no kind of chart
                 hint: the kinds are bar, stacked, line, occupancy, heatmap, box, flame, gantt, tasks
        1 check: 1 could not run
        --- exit 2
    "#]]);
    place.write("chart.sql", "-- title: a\n-- chart: bar x=b y=a\n--\nSELECT 1 AS a");
    for (command, expected) in [
        ("query run.json chart.sql -o a.svg", "error: chart.sql:2: the chart's x=b"),
        ("query run.json chart.sql --chart 'bar x=a y=b' -o a.svg", "error: the chart's y=b"),
    ] {
        assert!(place.tq(command).stderr.starts_with(expected), "{command}");
    }
}

/// Streams that only transfer do no work, and are still what a picture shows most of.
#[test]
fn what_took_longest_has_a_colour_whatever_it_is() {
    let place = Place::new();
    let kernel = |name: &str, stream: u32, start: u32, duration: u32| {
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":{stream},"ts":{start},"dur":{duration},"args":{{"device":0,"stream":{stream}}}}}"#
        )
    };
    let mut events: Vec<String> = (0..20).map(|at| kernel(&format!("gemm_{at}"), 7, at * 10, 10)).collect();
    events.push(kernel("ncclDevKernel_AllReduce(x)", 8, 200, 1000));
    place.write("gpu.json", &format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, events.join(",")));
    assert_eq!(place.tq("report gpu.json -o page.md").status, Some(0));
    let picture = place.read("page.timeline.svg");
    let bar = picture.lines().find(|line| line.contains("<title>ncclDevKernel_AllReduce(x): 1.00 ms")).unwrap();
    // The class of names without a colour of their own.
    assert!(!bar.contains(r#"class="f20""#), "{bar}");
}
