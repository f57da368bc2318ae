//! Round trips of `--format chrome`.

use std::path::Path;
use std::process::Command;

/// What a query's rows, columns and tables say, a line per row.
fn answer(trace: &Path, sql: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tq")).arg("query").arg(trace).args(["-c", sql]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Tasks, links and counters that are written as a Chrome trace are the same when it is opened.
#[test]
fn a_written_chrome_trace_reads_back_as_the_same_tables() {
    const TASKS: &str =
        "SELECT name, kind, location, start, finish, depth, args FROM tasks ORDER BY start, finish, name, location";
    const PARENTS: &str = "SELECT c.name, c.start, p.name, p.start FROM tasks c JOIN tasks p ON p.task = c.stack_parent ORDER BY 2, 1, 4, 3";
    const LINKS: &str = "SELECT l.kind, coalesce(l.name, ''), s.name, s.start, t.name, t.start FROM links l JOIN tasks s ON s.task = l.source \
                         JOIN tasks t ON t.task = l.target ORDER BY 1, 2, 4, 6, 3, 5";
    const COUNTERS: &str = "SELECT location, name, time, value FROM counters ORDER BY time, name, location";
    const LOCATIONS: &str = "SELECT location, parent, name, kind, process, role, sort_index, args FROM locations \
                             WHERE kind <> 'async' OR location IN (SELECT location FROM tasks) ORDER BY location";
    // Events of other kinds become instants, of the process where they are asynchronous.
    const EVENTS: &str = "SELECT name, time, args FROM events ORDER BY time, name, args";
    const RUN: &str = "SELECT origin, makespan, started_at, args FROM runs";
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/chrome");
    let folder = tempfile::tempdir().unwrap();
    // Of two tasks with one span the first is around the other, whatever their names.
    let pairs = (0..60).flat_map(|pair| [("z", pair), ("a", pair)]);
    let event =
        |(name, pair)| format!(r#"{{"ph":"X","name":"{name}{pair}","pid":1,"tid":1,"ts":{},"dur":5}}"#, pair / 2 * 9);
    let ties = folder.path().join("pairs.json");
    std::fs::write(&ties, format!("[{}]", pairs.map(event).collect::<Vec<_>>().join(","))).unwrap();
    let fixture = |name: &str| (fixtures.join(name), folder.path().join(name.trim_end_matches(".gz")));
    let traces =
        ["phases.json", "kineto_tiny.json", "torch215_cpu.json.gz", "node20_trace_events.json.gz"].map(fixture);
    for (trace, again) in traces.into_iter().chain([(ties, folder.path().join("again.json"))]) {
        let name = trace.display();
        let written = Command::new(env!("CARGO_BIN_EXE_tq"))
            .arg("query")
            .arg(&trace)
            .args(["-c", "SELECT * FROM tasks", "--format", "chrome", "-o"])
            .arg(&again)
            .output()
            .unwrap();
        assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
        let text = std::fs::read_to_string(&again).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{name} is no JSON");
        for sql in [TASKS, PARENTS, LINKS, COUNTERS, EVENTS, LOCATIONS, RUN] {
            assert_eq!(answer(&again, sql), answer(&trace, sql), "{name}: {sql}");
        }
    }
}
