//! What pages say: figures of one page agree with each other and with a count by hand.

use tq_tests::{ask, ask_saved, cells, fixture, folder_of, lines, open, rows};

/// Every message is in the recording as it was sent, as it was handled, and in two buffers.
fn two_nodes() -> tempfile::TempDir {
    let send = |from: usize, to: usize| format!("{}, {from}, {}, {to}, 16\n", from / 2, to / 2);
    folder_of(&[
        ("PE0_send.csv", [send(0, 1), send(0, 2), send(0, 3)].concat()),
        ("PE1_send.csv", send(1, 2)),
        ("PE2_send.csv", send(2, 0)),
        ("PE3_send.csv", String::new()),
        (
            "physical.txt",
            "local_send, 60, 0, 1\nlocal_send, 40, 2, 3\nnonblock_send, 60, 0, 2\nnonblock_send, 40, 1, 3\n".into(),
        ),
    ])
}

#[test]
fn a_message_counts_once_whatever_it_travels_in() {
    let folder = two_nodes();
    let session = open(folder.path());
    let pairs: Vec<String> = cells(&ask_saved(&session, "who-talks-to-whom", &[]), "-")
        .into_iter()
        .filter(|row| row[3] != "0")
        .map(|row| row[1..5].join("|"))
        .collect();
    assert_eq!(pairs, ["PE0|PE1|1|16", "PE0|PE2|1|16", "PE0|PE3|1|16", "PE1|PE2|1|16", "PE2|PE0|1|16"]);
    let fact = lines(&ask_saved(&session, "facts-messages", &[]));
    assert!(fact[0].starts_with("5 messages were sent, 80 bytes;"), "{fact:?}");
    // Where some run has no messages of the program itself, what carried them counts.
    let buffers = folder_of(&[("physical.txt", "local_send, 60, 0, 1\nlocal_send, 40, 1, 0\n")]);
    let session = tq_tests::open_together(&[folder.path(), buffers.path()]);
    let sums = rows(&session, "SELECT run_number FROM runs ORDER BY run_number");
    assert_eq!(sums.len(), 2);
    let fact = lines(&ask_saved(&session, "facts-messages", &[])).remove(0);
    assert!(
        fact.contains("5 messages were sent, 80 bytes") && fact.contains("2 messages were sent, 100 bytes"),
        "{fact}"
    );
}

/// 5 messages of 20 bytes on the wire, each of them in two of the 4 buffers.
#[test]
fn messages_in_a_buffer_are_as_many_as_its_bytes_hold() {
    let folder = two_nodes();
    let session = open(folder.path());
    let answer: Vec<String> =
        cells(&ask_saved(&session, "actorprof-aggregation", &[]), "-").iter().map(|row| row[1..6].join("|")).collect();
    assert_eq!(answer[0], "all|5|4|2.5|50.0");
    assert_eq!(answer[1..3], ["PE0|3|2|3.0|60.0", "PE1|1|1|2.0|40.0"]);
    let fact = lines(&ask_saved(&session, "facts-aggregation", &[])).remove(0);
    assert!(fact.contains("5 messages of the program left in 4 buffers, each message in two of them: 2.5 "), "{fact}");
}

/// The run begins with a collective, which its one location does not execute.
const LATE: &str = r#"[{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":1,"tid":1,"ts":0,"dur":1000},
{"ph":"X","cat":"cpu_op","name":"first","pid":1,"tid":1,"ts":900,"dur":10},
{"ph":"X","cat":"cpu_op","name":"second","pid":1,"tid":1,"ts":930,"dur":20}]"#;

#[test]
fn idle_stretches_reach_to_the_ends_of_the_run() {
    let folder = folder_of(&[("late.json", LATE)]);
    let session = open(&folder.path().join("late.json"));
    let gaps: Vec<String> =
        cells(&ask_saved(&session, "idle-gaps", &[]), "-").iter().map(|row| row[3..].join("|")).collect();
    assert_eq!(gaps, ["900000|-|-|first", "50000|second|-|-", "20000|first|-|second"]);
    let fact = lines(&ask_saved(&session, "facts-idle", &[])).remove(0);
    assert!(fact.contains("the longest idle stretch is 900 µs on 1/1, before its first task, first."), "{fact}");
    let by_next: Vec<String> =
        cells(&ask_saved(&session, "idle-by-next-task", &[]), "-").iter().map(|row| row[1..4].join("|")).collect();
    assert_eq!(by_next, ["first|1|900000", "(nothing came)|1|50000", "second|1|20000"]);
    // Idle and busy time of a location that ran anything fill the makespan.
    for trace in
        ["chrome/ddp_gloo", "nsys/two_streams.sqlite", "chrome/kineto_tiny.json", "daisen/virtualmem_v5.sqlite3.zst"]
    {
        let session = open(&fixture(trace));
        let apart = "SELECT count(*) FROM busy_lanes b JOIN runs r ON r.run = b.run
            LEFT JOIN (SELECT run, location, sum(duration) AS idle FROM idle_stretches GROUP BY run, location) i
                ON i.run = b.run AND i.location = b.location
            WHERE b.busy_time > 0 AND b.busy_time + coalesce(i.idle, 0) <> r.makespan";
        assert_eq!(rows(&session, apart), ["0"], "{trace}");
        assert_ne!(rows(&session, "SELECT count(*) FROM busy_lanes WHERE busy_time > 0"), ["0"], "{trace}");
    }
}

/// A task without length makes no location busy, and a location is not one of those that never were and another at once.
#[test]
fn the_longest_idle_stretch_is_of_a_location_that_ran() {
    let trace = r#"[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":10},{"ph":"X","name":"b","pid":1,"tid":1,"ts":90,"dur":10},
        {"ph":"X","name":"c","pid":1,"tid":2,"ts":50,"dur":0},{"ph":"X","name":"c","pid":1,"tid":2,"ts":60,"dur":0}]"#;
    let folder = folder_of(&[("points.json", trace)]);
    let fact = lines(&ask_saved(&open(&folder.path().join("points.json")), "facts-idle", &[])).remove(0);
    let expected = "1/2 was never busy, and of the others the longest idle stretch is 80.0 µs on 1/1, between a and b.";
    assert!(fact.contains(expected), "{fact}");
}

/// Modules leave no trace: what is drawn between them and the tasks is lost, and the chain is cut there.
#[test]
fn a_chain_with_lost_edges_says_so() {
    let fact = |trace: &str| lines(&ask_saved(&open(&fixture(trace)), "facts-what-bounds", &[])).remove(0);
    let lost = " The recording names 5 dependencies more that could not be joined to tasks (see Is the trace sound): the real chain may be longer.";
    assert!(fact("tfprof/nested_40.tfp").contains(lost));
    assert!(!fact("tfprof/wavefront_40.tfp").contains("The recording names"));
    let bound = |trace: &str| cells(&ask_saved(&open(&fixture(trace)), "parallelism-bound", &[]), "-").remove(0).pop();
    assert_eq!(bound("tfprof/nested_40.tfp").as_deref(), Some("5"));
    assert_eq!(bound("tfprof/wavefront_40.tfp").as_deref(), Some("0"));
}

#[test]
fn a_stretch_in_which_nothing_ran_is_named() {
    let fact = |trace: &str| lines(&ask_saved(&open(&fixture(trace)), "facts-long-gap", &[]));
    let gap = "Nothing ran on any location for 181 µs in one stretch, 40.8 % of the run, between ";
    assert!(fact("parsec/async-1r")[0].starts_with(gap), "{:?}", fact("parsec/async-1r"));
    assert!(fact("tfprof/wavefront_40.tfp").is_empty());
}

/// A size with the times on 1 and 2 cores.
type Size = (&'static str, f64, f64);
/// A region with its repetitions.
type Region = (&'static str, &'static [&'static [Size]]);

fn size_of_study((argument, one, two): &Size) -> String {
    format!(r#"{{"argument":"{argument}","runs":[{{"threads":1,"time":{one}}},{{"threads":2,"time":{two}}}]}}"#)
}

/// A study of a program and its regions.
fn study(regions: &[Region]) -> String {
    let repetition = |sizes: &&[Size]| format!("[{}]", sizes.iter().map(size_of_study).collect::<Vec<_>>().join(","));
    let region = |(region, repetitions): &Region| {
        let executions = repetitions.iter().map(repetition).collect::<Vec<_>>().join(",");
        format!(r#"{{"region":"{region}","filename":"a.c","executions":[{executions}]}}"#)
    };
    format!("[{}]", regions.iter().map(region).collect::<Vec<_>>().join(","))
}

/// Of two repetitions: the median of 4/6 and 8/10, not 6/8.
#[test]
fn all_queries_about_a_study_use_one_method() {
    let text = study(&[
        ("0, 9999", &[&[("1", 4.0, 3.0)], &[("1", 8.0, 5.0)]]),
        ("1, 5", &[&[("1", 1.0, 1.0)], &[("1", 1.0, 1.0)]]),
    ]);
    let folder = folder_of(&[("study.json", text)]);
    let session = open(&folder.path().join("study.json"));
    assert!(lines(&ask_saved(&session, "pascal-weakest-region", &[]))[0].contains("|0.733333|0.5|"));
    let fact = lines(&ask_saved(&session, "facts-weakest-region", &[])).remove(0);
    assert!(fact.contains(" instead of 73.3 % "), "{fact}");
}

/// At size 2 the first region took longer on one core than the whole program, so it has no efficiency that could be compared.
#[test]
fn regions_longer_than_the_program_are_shown_apart() {
    let text = study(&[
        ("0, 9999", &[&[("1", 4.0, 3.0), ("2", 8.0, 6.0)]]),
        ("1, 5", &[&[("1", 2.0, 2.0), ("2", 9.0, 5.0)]]),
        ("7, 9", &[&[("1", 1.0, 1.0), ("2", 1.0, 1.0)]]),
    ]);
    let folder = folder_of(&[("study.json", text)]);
    let session = open(&folder.path().join("study.json"));
    let weakest: Vec<String> =
        cells(&ask_saved(&session, "pascal-weakest-region", &[]), "-").iter().map(|row| row[1..5].join("|")).collect();
    assert_eq!(weakest, ["a.c: 1-5||1|2", "a.c: 7-9||2|2"]);
    let impossible = lines(&ask_saved(&session, "pascal-impossible-regions", &[]));
    assert_eq!(impossible, ["study|a.c: 1-5|1|2|2|1|9000000000|8000000000|1.13"]);
}

/// Tables of traces, views over them, then the other schemas; each by name.
#[test]
fn tables_are_shown_in_an_order() {
    let session = open(&fixture("tfprof/wavefront_40.tfp"));
    let shown = cells(&ask(&session, "SHOW TABLES"), "-");
    assert_eq!(shown[0], ["tq", "main", "counters", "BASE TABLE"]);
    let mut groups: Vec<String> = shown.iter().map(|row| format!("{} {}", row[1], row[3])).collect();
    groups.dedup();
    let expected = [
        "main BASE TABLE",
        "main VIEW",
        "actorprof VIEW",
        "changed VIEW",
        "gpu VIEW",
        "graph VIEW",
        "hta VIEW",
        "pascal VIEW",
        "perfetto VIEW",
        "docs BASE TABLE",
        "information_schema VIEW",
    ];
    assert_eq!(groups, expected);
    let names = |group: &str| -> Vec<&String> {
        shown.iter().filter(|row| format!("{} {}", row[1], row[3]) == group).map(|row| &row[2]).collect()
    };
    assert!(expected.iter().all(|group| names(group).is_sorted()));
}
