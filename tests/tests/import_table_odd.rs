//! Tables that tell time in different ways, and text that is damaged: what strangers' logs look like.

use std::path::Path;

use datafusion::arrow::util::pretty::pretty_format_batches;
use tempfile::TempDir;
use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::session::Session;

fn open(path: &Path) -> Session {
    let mut open = OpenOptions::new(1 << 30, 2);
    open.traces.push(TraceSpec { name: None, path: path.to_owned() });
    Session::open(&open).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sql(session: &Session, statement: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let batches = runtime.block_on(async { session.sql(statement).await.unwrap().collect().await }).unwrap();
    pretty_format_batches(&batches).unwrap().to_string()
}

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
        let folder = TempDir::new().unwrap();
        for (name, text) in [("t.csv", tasks), ("c.csv", rows), ("all.tq.toml", toml)] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let session = open(&folder.path().join("all.tq.toml"));
        sql(&session, "SELECT value, time, origin FROM counters CROSS JOIN runs ORDER BY value")
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
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("log.ndjson");
    let lines: [&[u8]; 2] = [
        b"{\"start\":1,\"finish\":2,\"name\":\"\xe9t\xe9\",\"bytes\":7}\n",
        b"{\"start\":3,\"finish\":4,\"name\":\"n\\ud800\",\"bytes\":77}\n",
    ];
    std::fs::write(&path, lines.concat()).unwrap();
    let session = open(&path);
    let answer = sql(&session, "SELECT name, args->>'bytes' AS bytes FROM tasks ORDER BY start");
    assert!(
        answer.contains("| \u{fffd}t\u{fffd}  | 7     |") && answer.contains("| n\u{fffd}   | 77    |"),
        "{answer}"
    );
    let found = sql(&session, "SELECT what, count FROM import_stats WHERE severity = 'repaired' ORDER BY what");
    assert!(found.contains("| bad_string | 1     |") && found.contains("| not_utf8   | 1     |"), "{found}");
}
