//! How commands end: late queries, signals, full disks, readers that go away.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use expect_test::expect;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::Place;

/// It would run for years, and asks for nothing on its way.
const ENDLESS: &str = "SELECT sum(a.value * b.value * c.value) AS total FROM range(0, 200000) a \
    CROSS JOIN range(0, 200000) b CROSS JOIN range(0, 200000) c";

const LATE: &str = "error: the query took longer than 300 ms, the limit of `--timeout`";

#[test]
fn a_pipe_gets_each_answer_before_the_next_question() {
    let place = Place::new();
    let mut prompt = place.command(&["run.json"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut questions, mut answers) = (prompt.stdin.take().unwrap(), prompt.stdout.take().unwrap());
    for value in ["17", "18"] {
        write!(questions, "SELECT\n  {value} AS value;\n").unwrap();
        let mut answer = [0; 9];
        answers.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *format!("value\n{value}\n").as_bytes());
    }
    drop(questions);
    assert!(prompt.wait().unwrap().success());
}

#[test]
fn a_late_query_is_no_answer() {
    let place = Place::new();
    for sql in [
        ENDLESS,
        // The condition refuses every pair, so that no row ever comes.
        "SELECT count(*) FROM range(0, 3000000) a JOIN range(0, 3000000) b ON a.value > b.value + 1e9",
        "SELECT count(*) FROM range(0, 1000000000000) a WHERE a.value < 0",
        "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT (x + 1) % 1000 FROM r) SELECT count(*) FROM r",
    ] {
        let answer = place.tq_args(&["query", "run.json", "--timeout", "300ms", "-c", sql]);
        assert!(answer.stderr.starts_with(LATE), "{sql}: {}", answer.stderr);
        assert_eq!((answer.status, answer.stdout.as_str()), (Some(2), ""), "{sql}");
    }
    // Rows are always ready here, and writing them is what takes the time.
    let endless = "SELECT repeat(E'\\n', 500) AS x, value FROM range(0, 100000000)";
    let answer = place.tq_args(&[
        "query",
        "run.json",
        "--timeout",
        "300ms",
        "--format",
        "ndjson",
        "-o",
        "out.ndjson",
        "-c",
        endless,
    ]);
    assert!(answer.stderr.starts_with(LATE), "{}", answer.stderr);
    assert_eq!(answer.status, Some(2));
    place.tq("query run.json --timeout 1h -c 'SELECT count(*) AS tasks FROM tasks'").check(&expect![[r#"
        tasks
        3
        --- exit 0
    "#]]);
    place.tq("query run.json --timeout 30 -c 'SELECT 1'").check(&expect![[r#"
        --- stderr
        error: invalid value '30' for '--timeout <DURATION>': write it like `30s`, `500ms`, `2m` or `1h`

        For more information, try '--help'.
        --- exit 2
    "#]]);
}

#[test]
fn a_late_check_could_not_run_and_the_others_go_on() {
    let place = Place::new();
    place.write("a-late.sql", &format!("-- title: late\n-- expect no rows\n{ENDLESS};\n"));
    place.write("b-holds.sql", "-- title: holds\n-- expect no rows\nSELECT task FROM tasks WHERE duration < 0;\n");
    let answer = place.tq("check run.json --timeout 300ms --query a-late.sql b-holds.sql");
    assert_eq!(answer.status, Some(2));
    assert!(answer.stdout.contains("the query took longer than 300 ms"), "{}", answer.stdout);
    assert!(answer.stdout.contains("b-holds"), "{}", answer.stdout);
    let failing = "-- title: fails\n-- expect no rows\nSELECT task FROM tasks;\n";
    place.write("b-holds.sql", failing);
    assert_eq!(place.tq("check run.json --timeout 300ms --query b-holds.sql").status, Some(1));
}

#[test]
fn a_file_that_takes_long_to_read_is_late_too() {
    let place = Place::new();
    // Nobody writes into it.
    assert!(Command::new("mkfifo").arg(place.0.path().join("a-long.sql")).status().unwrap().success());
    place.write("b-holds.sql", "-- title: holds\n-- expect no rows\nSELECT task FROM tasks WHERE duration < 0;\n");
    let answer = place.tq("check run.json --timeout 300ms --query a-long.sql b-holds.sql");
    assert_eq!(answer.status, Some(2));
    assert!(answer.stdout.contains("a-long: reading the SQL took longer than 300 ms"), "{}", answer.stdout);
    assert!(answer.stdout.contains("b-holds"), "{}", answer.stdout);
}

#[test]
fn a_pipe_that_nobody_reads_or_writes_is_late_too() {
    let place = Place::new();
    for name in ["pipe.sql", "pipe.md", "pipe.csv", "pipe.xml"] {
        assert!(Command::new("mkfifo").arg(place.0.path().join(name)).status().unwrap().success());
    }
    place.write("q.sql", "-- title: q\n-- expect no rows\nSELECT task FROM tasks\n");
    let said = |command: &str| place.tq(&format!("{command} --timeout 1s")).stderr;
    for command in ["query run.json -f pipe.sql", "report run.json --template pipe.md"] {
        assert!(said(command).contains("reading the SQL took longer than 1 s"), "{}", said(command));
    }
    for command in [
        "query run.json -o pipe.csv -c 'SELECT 1'",
        "check run.json --query q.sql --junit pipe.xml",
        "check run.json --query q.sql --markdown=pipe.xml",
    ] {
        assert!(said(command).contains("nobody read from it within 1 s"), "{}", said(command));
    }
}

#[test]
fn a_query_has_its_time_together_with_its_conditions() {
    let place = Place::new();
    let conditions = format!("-- expect every row: ({ENDLESS}) IS NOT NULL\n-- expect every row: a > 0\n");
    place.write("late.sql", &format!("-- title: late\n{conditions}SELECT 1 AS a;\n"));
    let answer = place.tq("check run.json --timeout 300ms --query late.sql");
    assert_eq!(answer.status, Some(2));
    // Nothing is left for the second one, which would hold.
    assert_eq!(answer.stdout.matches("the query took longer than 300 ms").count(), 2, "{}", answer.stdout);
}

#[test]
fn a_file_that_cannot_be_written_takes_no_verdict_along() {
    let place = Place::new();
    place.write("q.sql", "-- title: q\n-- expect no rows\nSELECT task FROM tasks\n");
    for option in ["--junit=none/q.xml", "--markdown=none/q.md", "--picture=none/q.svg"] {
        let answer = place.tq(&format!("check run.json --query q.sql {option}"));
        assert_eq!(answer.status, Some(2), "{option}: {}", answer.stderr);
        assert!(answer.stdout.contains("FAILED q: no rows: 3 rows"), "{option}: {}{}", answer.stdout, answer.stderr);
        assert!(answer.stderr.contains("none/q"), "{option}: {}", answer.stderr);
    }
}

#[test]
fn a_late_section_says_so_and_the_page_is_there() {
    let place = Place::new();
    let template =
        format!("# Page\n\n## Late\n\n```sql\n{ENDLESS}\n```\n\n## In time\n\n```sql\nSELECT 7 AS seven\n```\n");
    place.write("page.md", &template);
    let answer = place.tq("report run.json --timeout 300ms --template page.md -o out.md");
    assert_eq!(answer.status, Some(2), "{}", answer.stderr);
    assert!(answer.stderr.contains("page.md:6: the query took longer than 300 ms"), "{}", answer.stderr);
    let page = place.read("out.md");
    assert!(page.contains("*Not answered: the query took longer than 300 ms"), "{page}");
    assert!(page.contains("## In time") && page.contains('7'), "{page}");
}

/// Databases that never end to be read: a view in place of a table, and the query of a mapping.
fn endless_databases(place: &Place) {
    let rows = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r)";
    let make = |name: &str, sql: &str| {
        rusqlite::Connection::open(place.0.path().join(name)).unwrap().execute_batch(sql).unwrap();
    };
    let tasks = "x AS ID, '' AS ParentID, 'k' AS Kind, 'w' AS What, 'l' AS Location, x AS StartTime, x AS EndTime";
    make(
        "daisen.db",
        &format!(
            "CREATE VIEW trace AS {rows} SELECT {tasks} FROM r WHERE x < 0 /* CREATE TABLE trace (ID, ParentID, StartTime) */"
        ),
    );
    make("view.db", &format!("CREATE VIEW v AS {rows} SELECT x AS start_us, x AS finish_us FROM r WHERE x < 0"));
    make("mapping.db", "CREATE TABLE t (a)");
    place.write(
        "mapping.db.tq.toml",
        &format!("query = \"{rows} SELECT x AS a, x AS b FROM r WHERE x < 0\"\nstart = \"a:us\"\nfinish = \"b:us\"\n"),
    );
}

#[test]
fn a_trace_that_takes_too_long_to_read_is_late() {
    let place = Place::new();
    endless_databases(&place);
    place.write("holds.sql", "-- title: holds\n-- expect rows: 1\nSELECT 1 AS one\n");
    let columns = "--option table.start=start_us:us --option table.finish=finish_us:us";
    for (trace, options) in [("daisen.db", "--from-format daisen"), ("view.db", columns), ("mapping.db", "")] {
        let late = format!("{trace}: reading took longer than 300 ms, the limit of `--timeout`");
        for command in ["query TRACE -c 'SELECT 1'", "report TRACE", "diff TRACE run.json", "diff run.json TRACE"] {
            let command = command.replace("TRACE", trace);
            // Options are those of both sides.
            if command.starts_with("diff") && !options.is_empty() {
                continue;
            }
            let answer = place.tq(&format!("{command} {options} --timeout 300ms"));
            assert!(
                answer.stderr.contains(&format!("error: {late}\nhint: give it more time")),
                "{command}: {}",
                answer.stderr
            );
            assert_eq!((answer.status, answer.stdout.as_str()), (Some(2), ""), "{command}");
        }
        let answer =
            place.tq(&format!("check {trace} {options} --timeout 300ms --query holds.sql --github --junit out.xml"));
        assert_eq!(answer.status, Some(2), "{}", answer.stderr);
        assert!(
            answer.stdout.contains(&format!("::error file={trace},line=1,title=tq check%3A traces::{late}")),
            "{}",
            answer.stdout
        );
        assert!(place.read("out.xml").contains(&late), "{}", place.read("out.xml"));
    }
    let baseline = place.tq("check run.json --baseline mapping.db --timeout 300ms --query holds.sql");
    assert!(baseline.stdout.contains("ERROR  baseline: mapping.db: reading took longer"), "{}", baseline.stdout);
}

/// A pipe in which nothing comes, and a copy that a large file needs: nobody looks at the time, or something stays behind.
#[cfg(unix)]
#[test]
fn late_readers_are_left_behind_with_nothing_of_theirs() {
    let place = Place::new();
    let temporary = place.0.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let output = |arguments: &[&str], stdin: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tq"));
        command.args(arguments).args(["--timeout", "300ms", "-c", "SELECT 1"]).stdin(stdin);
        command.current_dir(place.0.path()).env("TMPDIR", &temporary).output().unwrap()
    };
    // The other end stays open as long as the child sleeps.
    let mut silent = Command::new("sleep").arg("600").stdout(Stdio::piped()).spawn().unwrap();
    let silence = silent.stdout.take().unwrap();
    let piped = output(&["query", "-"], silence.into());
    silent.kill().unwrap();
    silent.wait().unwrap();
    assert!(String::from_utf8_lossy(&piped.stderr).starts_with("error: -: reading took longer than 300 ms"));
    let mut import = import_that_waits(&place, &temporary);
    kill(&import, "TERM");
    import.wait().unwrap();
    let copied = output(&["query", "large.sqlite.gz"], Stdio::null());
    assert_eq!(copied.status.code(), Some(2), "{}", String::from_utf8_lossy(&copied.stderr));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "a copy stays behind");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_reading_a_database_that_never_ends() {
    let place = Place::new();
    endless_databases(&place);
    for timeout in [&[][..], &["--timeout", "1h"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tq"))
            .args(["query", "mapping.db", "-c", "SELECT 1"])
            .args(timeout)
            .current_dir(place.0.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for_listener(&mut child);
        kill(&child, "INT");
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}

#[cfg(unix)]
#[test]
fn signals_leave_with_their_status_and_nothing_behind() {
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        if signal == "HUP" && hangs_up_never() {
            eprintln!("skipped: SIGHUP is ignored here (nohup), and stays so");
            continue;
        }
        let place = Place::new();
        let temporary = place.0.path().join("temporary");
        std::fs::create_dir(&temporary).unwrap();
        let mut import = import_that_waits(&place, &temporary);
        wait_for(&mut import, || std::fs::read_dir(&temporary).unwrap().next().is_some());
        kill(&import, signal);
        assert_eq!(import.wait().unwrap().code(), Some(status), "{signal}");
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{signal} leaves a copy behind");

        let sql = "SELECT a.value FROM range(0, 200000) a CROSS JOIN range(0, 200000) b";
        let mut query = place.command(&["query", "run.json", "-o", "answer.csv", "-c", sql]).spawn().unwrap();
        let has_partial = || {
            let mut files = std::fs::read_dir(place.0.path()).unwrap().flatten();
            files.any(|file| file.path().extension().is_some_and(|extension| extension == "partial"))
        };
        wait_for(&mut query, has_partial);
        kill(&query, signal);
        assert_eq!(query.wait().unwrap().code(), Some(status), "{signal}");
        assert!(!has_partial(), "{signal} leaves half an answer behind");
    }
}

/// What is left of a process that was killed goes with the next copy.
#[cfg(unix)]
#[test]
fn copies_of_killed_processes_are_swept_away() {
    let place = Place::new();
    let temporary = place.0.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut killed = import_that_waits(&place, &temporary);
    let has_lock = || {
        let mut folders = std::fs::read_dir(&temporary).unwrap().flatten();
        folders.next().is_some_and(|folder| folder.path().join("lock").exists())
    };
    wait_for(&mut killed, has_lock);
    kill(&killed, "KILL");
    killed.wait().unwrap();
    let folders =
        || -> Vec<_> { std::fs::read_dir(&temporary).unwrap().flatten().map(|folder| folder.path()).collect() };
    let left = folders();
    assert_eq!(left.len(), 1);
    let mut next = import_that_waits(&place, &temporary);
    wait_for(&mut next, || folders().iter().any(|folder| !left.contains(folder)));
    assert!(!left[0].exists());
    kill(&next, "TERM");
    next.wait().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_in_all_formats() {
    let place = Place::new();
    for format in ["csv", "tsv", "json", "ndjson", "markdown", "table", "parquet", "arrow", "svg", "chrome"] {
        let arguments = ["query", "run.json", "--format", format, "-o", "/dev/full", "-c", "SELECT * FROM tasks"];
        let answer = place.tq_args(&arguments);
        let expected = "error: cannot write the answer: `/dev/full`: the disk is full\n\
            hint: make room, or write it elsewhere with `-o FILE`\n";
        assert_eq!((answer.stderr.as_str(), answer.status), (expected, Some(2)), "{format}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn help_that_cannot_be_written_is_told() {
    let place = Place::new();
    for argument in ["--help", "--version"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = place.command(&[argument]).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let expected = "error: cannot write the answer: the disk is full\n";
        assert!(String::from_utf8_lossy(&output.stderr).starts_with(expected), "{argument}: {output:?}");
        assert_eq!(output.status.code(), Some(2), "{argument}");
    }
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_error_in_any_format() {
    let place = Place::new();
    for format in ["csv", "tsv", "json", "ndjson", "markdown", "table", "parquet", "arrow", "svg", "chrome"] {
        let sql = "SELECT tasks.* FROM tasks CROSS JOIN range(0, 30000)";
        let mut child = place
            .command(&["query", "run.json", "--format", format, "-c", sql])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((String::from_utf8_lossy(&output.stderr).as_ref(), output.status.code()), ("", Some(0)), "{format}");
    }
}

#[test]
fn what_the_system_refuses_is_told_with_what_to_do() {
    let place = Place::new();
    place.tq(r"query run.json -c 'SELECT regexp_like(name, $$a{1000}{1000}$$) FROM tasks'").check(&expect![[r#"
        --- stderr
        error: the regular expression is too large
        hint: what a repetition repeats counts as often: `(a{1000}){1000}` are a million letters
        --- exit 2
    "#]]);
}

/// An import that makes a temporary copy of a large database, of which only the beginning is one.
#[cfg(unix)]
fn import_that_waits(place: &Place, temporary: &std::path::Path) -> Child {
    let member = |bytes: &[u8]| {
        let mut member = GzEncoder::new(Vec::new(), Compression::fast());
        member.write_all(bytes).unwrap();
        member.finish().unwrap()
    };
    let mut file = member(b"SQLite format 3\0");
    let zeros = member(&vec![0; 1 << 20]);
    (0..400).for_each(|_| file.extend(&zeros));
    std::fs::write(place.0.path().join("large.sqlite.gz"), file).unwrap();
    place
        .command(&["query", "large.sqlite.gz", "-c", "SELECT 1"])
        .env("TMPDIR", temporary)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Whether whoever started this has switched SIGHUP off.
#[cfg(unix)]
fn hangs_up_never() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::trim);
    ignored.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

#[cfg(unix)]
fn wait_for(child: &mut Child, mut happened: impl FnMut() -> bool) {
    while !happened() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before that");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(unix)]
fn kill(child: &Child, signal: &str) {
    Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_query_that_never_awaits() {
    let place = Place::new();
    let mut child = place
        .command(&["query", "run.json", "--threads", "2", "-c", ENDLESS])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_listener(&mut child);
    kill(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// Waits until a process that does not end by itself is in the middle of what it does.
#[cfg(unix)]
fn wait_for_listener(child: &mut Child) {
    let id = child.id();
    wait_for(child, || listens_to_ctrl_c(id));
    std::thread::sleep(Duration::from_secs(1));
    assert!(child.try_wait().unwrap().is_none(), "it still runs");
}

#[cfg(unix)]
/// Whether a process catches SIGINT; where nobody tells, one assumes so.
fn listens_to_ctrl_c(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_none_or(|mask| u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 << (2 - 1) != 0))
}

#[cfg(unix)]
#[test]
fn an_answer_that_nobody_takes_ends_in_time() {
    let place = Place::new();
    let sql = "SELECT repeat('x', 100) FROM range(0, 100000)";
    let mut tq = Command::new(env!("CARGO_BIN_EXE_tq"))
        .args(["query", "run.json", "--timeout", "1s", "-c", sql])
        .current_dir(place.0.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The pipe is full long before the last row, and stays so.
    assert_eq!(tq.wait().unwrap().code(), Some(2));
    let mut said = String::new();
    tq.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("took longer than 1 s, the limit of `--timeout`"), "{said}");
}
