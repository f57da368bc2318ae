//! Tables that tell time in different ways, and text that is damaged: what strangers' logs look like.

use tq_tests::{drawn, folder_of, open};

#[test]
fn tables_that_tell_time_in_two_ways_share_an_origin() {
    let toml = |start: &str, finish: &str, time: &str| {
        format!(
            "[[table]]\ntable='tasks'\nfile='t.csv'\nstart='{start}'\nfinish='{finish}'\n\
             [[table]]\ntable='counters'\nfile='c.csv'\ntime='{time}'\n"
        )
    };
    let (epoch_first, iso_first) = (toml("start:s", "finish:s", "time"), toml("start", "finish", "time:s"));
    let counters = |tasks: &str, rows: &str, toml: &str| {
        let folder = folder_of(&[("t.csv", tasks), ("c.csv", rows), ("all.tq.toml", toml)]);
        let session = open(&folder.path().join("all.tq.toml"));
        drawn(&session, "SELECT value, time, origin FROM counters CROSS JOIN runs ORDER BY value")
    };
    let expected = counters(
        "start,finish,name\n1704067201,1704067202,a\n",
        "time,value,name\n1704067203,2,m\n1704067201.5,1,m\n",
        &toml("start:s", "finish:s", "time:s"),
    );
    assert!(expected.contains("| 1.0   | 500000000  | 1704067201000000000 |"), "{expected}");
    for rows in [
        "time,value,name\n2024-01-01T00:00:03Z,2,m\n2024-01-01T00:00:01.5Z,1,m\n",
        "time,value,name\n2024-01-01T00:00:01.5Z,1,m\n2024-01-01T00:00:03Z,2,m\n",
    ] {
        assert_eq!(counters("start,finish,name\n1704067201.0,1704067202,a\n", rows, &epoch_first), expected);
    }
    let iso_tasks = "start,finish,name\n2024-01-01T00:00:01Z,2024-01-01T00:00:02Z,a\n";
    assert_eq!(counters(iso_tasks, "time,value,name\n1704067203,2,m\n1704067201.5,1,m\n", &iso_first), expected);
}

#[test]
fn text_of_other_encodings_and_half_characters_keep_their_records() {
    let lines: [&[u8]; 2] = [
        b"{\"start\":1,\"finish\":2,\"name\":\"\xe9t\xe9\",\"bytes\":7}\n",
        b"{\"start\":3,\"finish\":4,\"name\":\"n\\ud800\",\"bytes\":77}\n",
    ];
    let session = open(&folder_of(&[("log.ndjson", lines.concat())]).path().join("log.ndjson"));
    let answer = drawn(&session, "SELECT name, args->>'bytes' AS bytes FROM tasks ORDER BY start");
    assert!(
        answer.contains("| \u{fffd}t\u{fffd}  | 7     |") && answer.contains("| n\u{fffd}   | 77    |"),
        "{answer}"
    );
    let found = drawn(&session, "SELECT what, count FROM import_stats WHERE severity = 'repaired' ORDER BY what");
    assert!(found.contains("| bad_string | 1     |") && found.contains("| not_utf8   | 1     |"), "{found}");
}

#[test]
fn a_first_record_of_a_hundred_thousand_characters_is_recognised() {
    let long = "q".repeat(100_000);
    let record = format!("{{\"name\":\"{long}\",\"start_us\":1,\"finish_us\":2}}");
    let files = [
        ("lines.ndjson", format!("{record}\n{record}\n")),
        ("array.json", format!("[{record},{record}]")),
        ("rows.csv", format!("start_us,finish_us,{long}\n1,2,x\n3,4,y\n")),
    ];
    for (name, text) in files {
        let session = open(&folder_of(&[(name, text.into_bytes())]).path().join(name));
        assert!(drawn(&session, "SELECT count(*) AS n FROM tasks").contains("| 2 |"), "{name}");
    }
}
