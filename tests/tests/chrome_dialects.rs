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

/// The answers of a query about events.
fn answers(events: &str, sql: &str, expected: &Expect) {
    let folder = folder_of(&[("trace.json", format!("[{events}]"))]);
    expected.assert_eq(&table(&folder.path().join("trace.json"), sql));
}

/// Chrome writes ids as `id2` that are local to a process, or global; chrome://tracing knows those of flows as well.
#[test]
fn flows_of_local_and_global_ids_are_bound() {
    let ends = |name: &str, id: &str, pid: u32, other: u32| {
        format!(
            r#"{{"ph":"s","name":"{name}","pid":{pid},"tid":1,"ts":5,{id}}},{{"ph":"f","bp":"e","name":"{name}","pid":{other},"tid":2,"ts":25,{id}}}"#
        )
    };
    let tasks = [1, 2].map(|pid| {
        format!(
            r#"{{"ph":"X","name":"a{pid}","pid":{pid},"tid":1,"ts":0,"dur":10}},{{"ph":"X","name":"b{pid}","pid":{pid},"tid":2,"ts":20,"dur":10}}"#
        )
    });
    let flows = [
        ends("local", r#""id2":{"local":"0x9"}"#, 1, 1),
        ends("local", r#""id2":{"local":"0X9"}"#, 2, 2),
        ends("global", r#""id2":{"global":"0x7"}"#, 1, 2),
        ends("hexadecimal", r#""id":"0X1F""#, 1, 2),
        ends("astray", r#""id2":{"local":"0x8"}"#, 1, 2),
    ];
    answers(
        &[tasks.join(","), flows.join(",")].join(","),
        "SELECT l.name, s.name AS source, t.name AS target FROM links l JOIN tasks s ON s.task = l.source \
         JOIN tasks t ON t.task = l.target ORDER BY 1, 2",
        &expect![[r#"
            +-------------+--------+--------+
            | name        | source | target |
            +-------------+--------+--------+
            | global      | a1     | b2     |
            | hexadecimal | a1     | b2     |
            | local       | a1     | b1     |
            | local       | a2     | b2     |
            +-------------+--------+--------+
        "#]],
    );
}

/// A number, the same as text, and hexadecimal digits in either case are one id of an asynchronous span.
#[test]
fn spellings_of_an_id_are_one() {
    let span = |name: &str, begin: &str, end: &str| {
        let begin = format!(r#"{{"ph":"b","cat":"c","name":"{name}","pid":1,"ts":1,{begin}}}"#);
        format!(r#"{begin},{{"ph":"e","cat":"c","name":"{name}","pid":1,"ts":5,{end}}}"#)
    };
    let spans = [
        span("case", r#""id":"0x1F""#, r#""id":"0X1f""#),
        span("decimal", r#""id":40.0"#, r#""id":40"#),
        span("local", r#""id2":{"local":"0xAB"}"#, r#""id2":{"local":"0xab"}"#),
        span("other", r#""id":"a""#, r#""id":"A""#),
        span("text", r#""id":"50""#, r#""id":50"#),
        span("wide", r#""id":18446744073709551615"#, r#""id":"0xffffffffffffffff""#),
    ];
    answers(
        &spans.join(","),
        "SELECT name, finish FROM tasks ORDER BY name",
        &expect![[r#"
            +---------+--------+
            | name    | finish |
            +---------+--------+
            | case    | 4000   |
            | decimal | 4000   |
            | local   | 4000   |
            | other   |        |
            | text    | 4000   |
            | wide    | 4000   |
            +---------+--------+
        "#]],
    );
}

#[test]
fn spellings_of_a_flow_id_are_one() {
    let flow = |start: &str, end: &str, at: u32| {
        let task = |tid: u32, ts: u32| format!(r#"{{"ph":"X","name":"t{ts}","pid":1,"tid":{tid},"ts":{ts},"dur":5}}"#);
        format!(
            r#"{},{},{{"ph":"s","name":"f","pid":1,"tid":1,"ts":{at},"id":{start}}},
               {{"ph":"f","bp":"e","name":"f","pid":1,"tid":2,"ts":{},"id":{end}}}"#,
            task(1, at),
            task(2, at + 1),
            at + 1,
        )
    };
    let flows =
        [flow("7", "7.0", 0), flow("18446744073709551615", r#""ffffffffffffffff""#, 10), flow("3", "\"0x3\"", 20)];
    answers(
        &flows.join(","),
        "SELECT s.name AS source, t.name AS target FROM links \
         JOIN tasks AS s ON s.task = links.source JOIN tasks AS t ON t.task = links.target ORDER BY s.start",
        &expect![[r#"
            +--------+--------+
            | source | target |
            +--------+--------+
            | t0     | t1     |
            | t10    | t11    |
            | t20    | t21    |
            +--------+--------+
        "#]],
    );
}

/// chrome://tracing knows a thread by the text of its number; so 12 and "12" are one, and a `B` finds its `E`.
#[test]
fn ids_of_threads_that_are_texts_of_numbers_are_those_numbers() {
    answers(
        r#"{"ph":"B","pid":"12","tid":"34","ts":0,"name":"mixed"},
           {"ph":"E","pid":12,"tid":34,"ts":5},
           {"ph":"M","pid":"12","name":"process_name","args":{"name":"solver"}},
           {"ph":"X","pid":"10.0.0.5","tid":"0x1f","ts":1,"dur":2,"name":"node"},
           {"ph":"X","pid":"1.50","tid":"007","ts":1,"dur":2,"name":"no number"}"#,
        "SELECT location, tasks.name, finish, process FROM tasks JOIN locations USING (location) ORDER BY 1",
        &expect![[r#"
            +---------------+-----------+--------+----------+
            | location      | name      | finish | process  |
            +---------------+-----------+--------+----------+
            | "1.50"/"007"  | no number | 3000   | "1.50"   |
            | 10.0.0.5/0x1f | node      | 3000   | 10.0.0.5 |
            | 12/34         | mixed     | 5000   | 12       |
            +---------------+-----------+--------+----------+
        "#]],
    );
}

/// As `libkineto` of PyTorch 1.8 writes it: tids are texts in tasks, and numbers in flows and instants.
#[test]
fn launches_of_old_kineto_are_links_once() {
    let trace = |flow: &str| {
        format!(
            r#"{{"ph":"X","cat":"Operator","name":"aten::mm","pid":100,"tid":"9","ts":0,"dur":50,"args":{{"External id":3}}}},
               {{"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":100,"tid":"9","ts":10,"dur":10,
                 "args":{{"cbid":211,"correlation":42,"external id":3}}}},
               {{"ph":"s","id":42,"pid":100,"tid":9,"ts":10,{flow}}},
               {{"ph":"X","cat":"Kernel","name":"gemm","pid":0,"tid":"stream 7","ts":30,"dur":50,
                 "args":{{"stream":7,"correlation":42,"external id":3}}}},
               {{"ph":"f","id":42,"pid":0,"tid":"stream 7","ts":30,{flow},"bp":"e"}},
               {{"ph":"i","s":"t","name":"[memory]","pid":100,"tid":9,"ts":12,"args":{{"Bytes":64,"Device Id":0,"Device Type":1}}}}"#
        )
    };
    for flow in [
        r#""cat":"async","name":"launch""#,
        r#""cat":"async_cpu_to_gpu","name":"async_gpu""#,
        r#""cat":"ac2g","name":"ac2g""#,
    ] {
        answers(
            &trace(flow),
            "SELECT s.name AS source, s.location, links.kind, t.name AS target FROM links \
             JOIN tasks AS s ON s.task = links.source JOIN tasks AS t ON t.task = links.target ORDER BY links.kind",
            &expect![[r#"
                +------------------+----------+----------+--------+
                | source           | location | kind     | target |
                +------------------+----------+----------+--------+
                | cudaLaunchKernel | 100/9    | launch   | gemm   |
                | aten::mm         | 100/9    | operator | gemm   |
                +------------------+----------+----------+--------+
            "#]],
        );
    }
    answers(
        &trace(r#""cat":"async","name":"launch""#),
        "SELECT location, kind FROM locations ORDER BY 1",
        &expect![[r#"
            +------------+---------+
            | location   | kind    |
            +------------+---------+
            | 0          | process |
            | 0/stream 7 | stream  |
            | 100        | process |
            | 100/9      | thread  |
            +------------+---------+
        "#]],
    );
    // Flows of another program that are called so.
    answers(
        r#"{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":5},{"ph":"X","name":"b","pid":1,"tid":2,"ts":9,"dur":5},
           {"ph":"s","cat":"async","name":"launch","id":1,"pid":1,"tid":1,"ts":0},
           {"ph":"f","bp":"e","cat":"async","name":"launch","id":1,"pid":1,"tid":2,"ts":9}"#,
        "SELECT source, target, kind, name FROM links",
        &expect![[r#"
            +--------+--------+------+--------+
            | source | target | kind | name   |
            +--------+--------+------+--------+
            | 0      | 1      | flow | launch |
            +--------+--------+------+--------+
        "#]],
    );
}

/// Windows tools write UTF-16, not always with a mark of the byte order.
#[test]
fn utf_16_is_refused_with_the_command_that_converts_it() {
    let text = r#"[{"ph":"X","pid":1,"tid":1,"ts":0,"dur":5,"name":"a"}]"#;
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (bytes, order) in [(little, "UTF-16LE"), (big, "UTF-16BE")] {
        let folder = folder_of(&[("trace.json", &*bytes)]);
        let error = tq_engine::session::Session::open(&tq_tests::options(&folder.path().join("trace.json")));
        let said = error.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains(&format!("iconv -f {order}")), "{said}");
    }
}

#[test]
fn counters_of_several_ids_are_several() {
    answers(
        r#"{"ph":"C","name":"heap","pid":1,"ts":1,"id2":{"local":"0x1"},"args":{"used":1}},
           {"ph":"C","name":"heap","pid":1,"ts":1,"id2":{"local":"0x2"},"args":{"used":2}},
           {"ph":"C","name":"heap","pid":1,"ts":1,"id":"0x1","args":{"used":1}}"#,
        "SELECT DISTINCT name, value FROM counters ORDER BY name",
        &expect![[r#"
            +-------------------+-------+
            | name              | value |
            +-------------------+-------+
            | heap id: 0x1 used | 1.0   |
            | heap id: 0x2 used | 2.0   |
            +-------------------+-------+
        "#]],
    );
}

/// Kineto on Intel's devices: calls of the driver launch, as those of the runtime do.
#[test]
fn calls_of_every_driver_launch() {
    answers(
        r#"{"ph":"X","cat":"xpu_driver","name":"zeCommandListAppendLaunchKernel","pid":9,"tid":9,"ts":1,"dur":1,"args":{"correlation":9}},
           {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":4,"dur":5,"args":{"correlation":9}}"#,
        "SELECT l.kind, s.name AS source, s.role, t.name AS target FROM links l JOIN tasks s ON s.task = l.source \
         JOIN tasks t ON t.task = l.target",
        &expect![[r#"
            +--------+---------------------------------+---------+--------+
            | kind   | source                          | role    | target |
            +--------+---------------------------------+---------+--------+
            | launch | zeCommandListAppendLaunchKernel | runtime | gemm   |
            +--------+---------------------------------+---------+--------+
        "#]],
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

/// What a viewer needs (process 1, its threads 2 and 3) may be called like the locations that it shows: those of another trace.
#[test]
fn shown_locations_have_their_names_whatever_the_viewer_calls_its_threads() {
    let shown = |tid: u32, location: &str| {
        format!(
            r#"{{"ph":"M","name":"thread_name","pid":1,"tid":{tid},"args":{{"name":"{location}","tq_location":"{location}"}}}},
               {{"ph":"M","name":"tq_location","pid":1,"args":{{"location":"{location}","kind":"thread"}}}},
               {{"ph":"X","pid":1,"tid":{tid},"ts":{tid},"dur":1,"name":"of {location}"}}"#
        )
    };
    let events = [shown(1, "1/2"), shown(2, "1/3"), shown(3, "1"), shown(4, "1/4"), shown(5, "w")];
    let text = format!(
        r#"{{"tq":{{"runs":[{{"run":"a"}}]}},"traceEvents":[{{"ph":"M","name":"process_name","pid":1,"args":{{"name":"a"}}}},{}]}}"#,
        events.join(",")
    );
    let folder = folder_of(&[("trace.json", text)]);
    let path = folder.path().join("trace.json");
    let sql = "SELECT locations.location, tasks.name FROM locations LEFT JOIN tasks USING (location) ORDER BY 1";
    expect![[r#"
        +----------+--------+
        | location | name   |
        +----------+--------+
        | 1        | of 1   |
        | 1/2      | of 1/2 |
        | 1/3      | of 1/3 |
        | 1/4      | of 1/4 |
        | w        | of w   |
        +----------+--------+
    "#]]
    .assert_eq(&table(&path, sql));
}
