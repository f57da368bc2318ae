//! `--memory` holds, whatever is asked and whatever a file holds: looked at from outside of the process.

use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::{Answer, Place};

/// `--memory` of these tests: from here on the process watches itself.
pub(super) const LIMIT: u64 = 256_000_000;
/// Where it ends at the latest, with what grows while it is looked at and while a query is being stopped.
const PEAK: u64 = LIMIT + LIMIT / 4 + 100_000_000 + 110_000_000;

/// What goes to standard input, for as long as somebody reads.
pub(super) type Feed = Box<dyn FnOnce(&mut dyn Write) -> std::io::Result<()> + Send>;

/// The answer, and the most anonymous memory that the process was seen to have; 0 where the system does not tell.
pub(super) fn measured(place: &Place, arguments: &[&str], feed: Feed) -> (Answer, u64) {
    let mut child = place
        .command(arguments)
        .args(["--memory", "256MB", "--threads", "2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Whoever has read enough closes the pipe.
    let fed = std::thread::spawn(move || drop(feed(&mut stdin)));
    let peak = peak(&mut child);
    fed.join().unwrap();
    (child.wait_with_output().unwrap().into(), peak)
}

/// Answers of these tests fit into a pipe, so that nobody waits for them to be read.
fn peak(child: &mut Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let kibibytes = text.lines().find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB"));
        peak = peak.max(kibibytes.and_then(|number| number.parse().ok()).unwrap_or(0) * 1024);
        std::thread::sleep(Duration::from_millis(3));
    }
    peak
}

pub(super) fn nothing() -> Feed {
    Box::new(|_| Ok(()))
}

/// An error that says what to give, within the limit.
fn is_refused(what: &str, (answer, peak): &(Answer, u64), words: &str) {
    assert_eq!(answer.status, Some(2), "{what}: {} {}", answer.stdout, answer.stderr);
    assert!(answer.stderr.contains(words), "{what}: {}", answer.stderr);
    assert!(answer.stderr.contains("hint: ") && !answer.stderr.contains("internal error"), "{what}: {}", answer.stderr);
    assert!(*peak < PEAK, "{what}: {} MB", peak / 1_000_000);
}

#[test]
fn values_of_functions_are_small_or_refused_before_they_are_made() {
    let place = Place::new();
    for query in [
        "SELECT length(repeat('x', 1000000000))",
        "SELECT length(lpad(name, 1000000000)) FROM tasks",
        "SELECT length(rpad('x', 1000000000, 'ab'))",
        "SELECT cardinality(range(0, 1000000000))",
        "SELECT cardinality(generate_series(timestamp '2000-01-01', timestamp '2020-01-01', interval '1 second'))",
        "SELECT cardinality(array_repeat('', 1000000000))",
        "SELECT cardinality(array_resize([1], 1000000000, 2))",
        "SELECT length(replace(repeat('x', 1000000), 'x', repeat('y', 10000)))",
        "SELECT length(regexp_replace(repeat('x', 1000000), 'x', repeat('y', 10000), 'g'))",
        "SELECT length(array_to_string(range(0, 100000), repeat('x', 1000)))",
        "SELECT cardinality(array_replace_all(array_repeat('a', 100000), 'a', repeat('x', 1000)))",
        "SELECT length(to_char(now(), repeat('%c', 200000)))",
        "SELECT length(concat_ws(repeat('x', 900000), 'a', 'b', 'c', 'd'))",
        "WITH RECURSIVE t(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM t WHERE length(s) < 1000000000) SELECT 1 FROM t",
        "WITH RECURSIVE t(s) AS (SELECT [1] UNION ALL SELECT s || s FROM t WHERE cardinality(s) < 1e9) SELECT 1 FROM t",
        "WITH RECURSIVE t(s) AS (SELECT 'x' UNION ALL SELECT overlay(s PLACING s FROM 1 FOR 0) FROM t \
         WHERE length(s) < 1000000000) SELECT 1 FROM t",
    ] {
        is_refused(
            query,
            &measured(&place, &["query", "run.json", "--max-value", "2MB", "-c", query], nothing()),
            "--max-value allows 2000 kB",
        );
    }
}

#[test]
fn values_within_the_limit_are_what_they_were() {
    let place = Place::new();
    for (query, expected) in [
        ("SELECT length(repeat('xy', 3)), lpad('é', 3, 'ab'), rpad('a', 3)", "6,abé,\"a  \""),
        ("SELECT 'a' || name || NULL, 'a' || name FROM tasks ORDER BY name LIMIT 1", ",aa"),
        ("SELECT concat('a', NULL, 1), concat_ws('-', 'a', NULL, 'b'), replace('aXa', 'X', '')", "a1,a-b,aa"),
        ("SELECT cardinality(range(0, 1000000)), array_to_string([1, 2] || [3], '-')", "1000000,1-2-3"),
        (
            "SELECT CASE WHEN length(name) > 1000 THEN repeat(name, 1000000000) ELSE 'short' END FROM tasks LIMIT 1",
            "short",
        ),
        // More than the slices that a batch is computed in.
        ("SELECT sum(length(repeat(CAST(value AS VARCHAR), 300))) FROM generate_series(1, 9000)", "10467900"),
        (
            "SELECT max(s), count(DISTINCT s) FROM (SELECT right(lpad(CAST(value AS VARCHAR), 900, '0'), 4) s \
          FROM generate_series(1, 9000))",
            "9000,9000",
        ),
    ] {
        let (answer, _) = measured(&place, &["query", "run.json", "--format", "csv", "-c", query], nothing());
        assert_eq!(answer.stdout.lines().last(), Some(expected), "{query}: {}", answer.stderr);
    }
    let raised =
        place.tq("query run.json --max-value 200MB -c 'SELECT length(repeat(name, 100000000)) n FROM tasks LIMIT 1'");
    assert_eq!(raised.stdout, "n\n100000000\n", "{}", raised.stderr);
    place.write("config/tq/config.toml", "max-value = \"1MB\"\n");
    let lowered = place.tq("query run.json -c 'SELECT length(repeat(name, 2000000)) n FROM tasks LIMIT 1'");
    assert!(lowered.stderr.contains("--max-value allows 1000 kB"), "{}", lowered.stderr);
}

#[test]
fn what_queries_hold_ends_them_within_the_limit() {
    let place = Place::new();
    let pairs = "generate_series(1, 20000) a(v), generate_series(1, 20000) b(v)";
    for query in [
        format!("SELECT cardinality(array_agg(a.v)) FROM {pairs}"),
        format!("SELECT length(string_agg(a.v || 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', ',')) FROM {pairs}"),
        format!("SELECT median(a.v * b.v) FROM {pairs}"),
        format!("SELECT max(s) FROM (SELECT sum(a.v) OVER (PARTITION BY 1) s FROM {pairs})"),
        "SELECT max(length(s)) FROM (SELECT array_to_string(array_repeat(repeat('x', 30000000), 1), '') || v s \
         FROM generate_series(1, 100) t(v)) "
            .to_owned(),
        format!(
            "SELECT {} FROM generate_series(1, 3) t(v)",
            ["length(concat(repeat('x', 60000000), v))"; 12].join(" + ")
        ),
    ] {
        let (answer, peak) = measured(&place, &["query", "run.json", "-c", &query], nothing());
        if answer.status != Some(0) {
            is_refused(&query, &(answer, peak), "--memory");
        } else {
            assert!(peak < PEAK, "{query}: {} MB", peak / 1_000_000);
        }
    }
}

/// Bytes behind which nothing follows, in a file that nobody could hold within the limit.
const FILLING: usize = 400;

/// A file of `head` and so many megabytes of one letter.
fn filled(place: &Place, name: &str, head: &[u8]) {
    let mut file = std::fs::File::create(place.0.path().join(name)).unwrap();
    file.write_all(head).unwrap();
    let block = vec![b'a'; 1 << 20];
    (0..FILLING).try_for_each(|_| file.write_all(&block)).unwrap();
}

/// The same as a gz of many members, of two megabytes.
fn bomb(place: &Place, name: &str, head: &[u8]) {
    let packed = |bytes: &[u8]| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap()
    };
    let member = packed(&vec![b'a'; 1 << 20]);
    let mut file = std::fs::File::create(place.0.path().join(name)).unwrap();
    file.write_all(&packed(head)).unwrap();
    (0..FILLING).try_for_each(|_| file.write_all(&member)).unwrap();
}

#[test]
fn records_without_an_end_are_refused_within_the_limit() {
    let place = Place::new();
    let taskflow = &br#"[{"executor":"0","data":[{"worker":0,"level":0,"data":[{"span":[0,40],"name":""#[..];
    for (name, head) in [
        ("chrome", &br#"{"traceEvents":[{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"name":""#[..]),
        ("events", &br#"[{"ph":"B","ts":1,"pid":1,"tid":1,"name":""#[..]),
        ("taskflow", taskflow),
        ("taskflow.gz", taskflow),
        ("pascal", &br#"{"config":{"pascal_version":"2","command":"./a"},"data":{"1;1;1":{"regions":{"x":[["a"#[..]),
        ("graph", &b"digraph Taskflow {\nsubgraph cluster_p0x1 {\nlabel=\"Taskflow: t\";\np0x2[label=\""[..]),
        ("rows", &br#"{"name":"a","start_us":1,"duration_us":2,"x":""#[..]),
        ("csv", &b"name,start_us,duration_us\na,1,2\n\""[..]),
        ("daisen", &b"ID, ParentID, Kind, What, Where, Start, End\n1, , a, b, "[..]),
    ] {
        match name.ends_with(".gz") {
            true => bomb(&place, name, head),
            false => filled(&place, name, head),
        }
        let rows = ["--option", "table.start=start_us:us", "--option", "table.duration=duration_us:us"];
        let options = if matches!(name, "rows" | "csv") { &rows[..] } else { &[] };
        let command = [&["query", name, "-c", "SELECT count(*) FROM tasks"], options].concat();
        let (answer, peak) = measured(&place, &command, nothing());
        std::fs::remove_file(place.0.path().join(name)).unwrap();
        assert!(peak < PEAK, "{name}: {} MB", peak / 1_000_000);
        assert!(!answer.stderr.contains("internal error") && !answer.stderr.contains("panic"), "{}", answer.stderr);
        // What can be read of it is an answer with a warning, else an error says what it would take.
        assert!(answer.status == Some(0) || answer.status == Some(2), "{name}: {:?}", answer.status);
        assert!(answer.stderr.contains("warning: ") || answer.stderr.contains("error: "), "{name}: {}", answer.stderr);
    }
}

/// However long the line of an open quote is, it is one loss, and it says which line.
#[test]
fn a_quote_that_never_closes_is_one_loss() {
    let place = Place::new();
    let ask = |name: &str| {
        let rows = ["--option", "table.start=start_us:us", "--option", "table.duration=duration_us:us"];
        let sql =
            "SELECT (SELECT count(*) FROM tasks) AS tasks, what, count FROM import_stats WHERE what <> 'records_read'";
        measured(&place, &[&["query", name, "-c", sql][..], &rows].concat(), nothing())
    };
    filled(&place, "data.csv", b"name,start_us,duration_us\na,1,2\n\"b\nc\",1,2\nd,3,\"");
    let (answer, peak) = ask("data.csv");
    assert!(peak < PEAK, "{} MB", peak / 1_000_000);
    assert_eq!(answer.stdout, "tasks,what,count\n2,unterminated_quote,1\n", "{}", answer.stderr);
    assert!(
        answer.stderr.contains("data.csv:5: a quote opens and does not close within 16 MiB: `\"aaa"),
        "{}",
        answer.stderr
    );
    filled(&place, "header.csv", b"name,start_us,\"");
    let (answer, peak) = ask("header.csv");
    assert!(peak < PEAK, "{} MB", peak / 1_000_000);
    assert!(
        answer.status == Some(2) && answer.stderr.contains("a quote opens and does not close within 16 MiB (line 1)"),
        "{}",
        answer.stderr
    );
    filled(&place, "line.csv", b"name,start_us,duration_us\na,1,2\nd,3,");
    let (answer, _) = ask("line.csv");
    assert_eq!(answer.stdout, "tasks,what,count\n1,endless_line,1\n", "{}", answer.stderr);
    filled(&place, "daisen.csv", b"ID, ParentID, Kind, What, Where, Start, End\n1, , a, b, c, 0.1, 0.2\n2, , a, b, ");
    let (answer, _) = ask("daisen.csv");
    assert_eq!(answer.stdout, "tasks,what,count\n1,bad_row,1\n", "{}", answer.stderr);
}

/// What ends the process in the middle of a suite, and what is too much before it is planned.
#[test]
fn a_check_that_takes_all_memory_leaves_the_others_their_outcomes() {
    let place = Place::new();
    let doubled: Vec<String> =
        (1..30).map(|at| format!("c{at} AS (SELECT a.x FROM c{} a JOIN c{0} b ON a.x = b.x)", at - 1)).collect();
    let doubled = format!("WITH c0 AS (SELECT 1 AS x), {} SELECT * FROM c29", doubled.join(", "));
    let columns: Vec<String> = (0..22).map(|column| format!("task + {column}")).collect();
    let cube = format!("SELECT 1 FROM tasks GROUP BY CUBE ({})", columns.join(", "));
    place.write("a-holds.sql", "-- title: a\n-- expect rows: 1\nSELECT 1 AS one");
    place.write("b-doubles.sql", &format!("-- title: b\n-- expect no rows\n{doubled}"));
    place.write("c-cube.sql", &format!("-- title: c\n-- expect no rows\n{cube}"));
    place.write("d-fails.sql", "-- title: d\n-- expect no rows\nSELECT 1 AS one");
    let check = [
        "check",
        "run.json",
        "--query",
        "a-holds.sql",
        "b-doubles.sql",
        "c-cube.sql",
        "d-fails.sql",
        "--junit",
        "out.xml",
    ];
    let (answer, peak) = measured(&place, &check, nothing());
    assert!(peak < PEAK, "{} MB", peak / 1_000_000);
    assert_eq!(answer.status, Some(2), "{}", answer.stderr);
    for line in [
        "ok     a-holds",
        "ERROR  b-doubles: no rows: b-doubles.sql:3: more than 4096 tables",
        "ERROR  c-cube: no rows: c-cube.sql:3: more than 12 columns",
        "FAILED d-fails",
    ] {
        assert!(answer.stdout.contains(line), "{line}: {}", answer.stdout);
    }
    assert!(place.read("out.xml").contains("tests=\"4\""), "{}", place.read("out.xml"));
}

/// A stranger's query is parsed before anything is known of it, and a parsed one takes hundreds of times its text.
#[cfg(target_os = "linux")]
#[test]
fn a_question_of_megabytes_is_refused_before_it_is_parsed() {
    let place = Place::new();
    let rows = "(1),".repeat(400_000);
    let large = format!("SELECT * FROM (VALUES {rows}(1)) t");
    place.write("a.sql", "-- title: a\n-- expect rows: 1\nSELECT 1 AS one");
    place.write("b.sql", &format!("-- title: b\n-- expect no rows\n{large}"));
    place.write("page.md", &format!("# A page\n\n```sql\n{large}\n```\n"));
    let (answer, peak) = measured(&place, &["check", "run.json", "--query", "a.sql", "b.sql"], nothing());
    assert!(peak < PEAK, "{} MB", peak / 1_000_000);
    assert_eq!(answer.status, Some(2), "{}", answer.stderr);
    for line in ["ok     a", "b.sql:1: it is larger than 512 KiB, which no question is"] {
        assert!(answer.stdout.contains(line), "{line}: {}", answer.stdout);
    }
    let (answer, peak) = measured(&place, &["report", "run.json", "--template", "page.md"], nothing());
    assert!(peak < PEAK, "{} MB", peak / 1_000_000);
    assert!(
        answer.status == Some(2) && answer.stderr.contains("`page.md` is larger than 512 KiB"),
        "{}",
        answer.stderr
    );
}

/// What nobody can stop ends the process: the outcomes are written before.
#[cfg(target_os = "linux")]
#[test]
fn outcomes_are_written_where_the_process_ends() {
    let place = Place::new();
    // A single request beyond the address space that there is.
    let join = "SELECT sum(cardinality(l)) FROM (SELECT array_agg(value) AS l FROM generate_series(1, 8000000)) x \
                CROSS JOIN generate_series(1, 8192)";
    place.write("a-holds.sql", "-- title: a\n-- expect rows: 1\nSELECT 1 AS one");
    place.write("b-too-much.sql", &format!("-- title: b\n-- expect no rows\n{join}"));
    place.write("c-behind.sql", "-- title: c\n-- expect no rows\n-- metric one: better=lower\nSELECT 1 AS one");
    let answer = place.tq("check run.json --memory 1GB --query a-holds.sql b-too-much.sql c-behind.sql --junit out.xml --markdown=out.md --github");
    assert_eq!(answer.status, Some(2), "{}", answer.stderr);
    let text = format!("{}{}{}", answer.stdout, place.read("out.xml"), place.read("out.md"));
    for words in
        ["ok     a-holds", "ERROR  b-too-much: no rows: ", "not enough memory", "::error file=b-too-much.sql", "<error"]
    {
        assert!(text.contains(words), "{words}: {text}\n{}", answer.stderr);
    }
    // It is an end where the system refuses the request, and else one check that could not run.
    let behind = ["ERROR  c-behind: no rows: not run: tq ended at `b-too-much`", "FAILED c-behind"];
    assert!(behind.iter().any(|words| text.contains(words)), "{text}");
}

#[test]
fn a_pipe_without_an_end_is_refused_within_the_limit() {
    let place = Place::new();
    let endless = |head: &'static [u8], filling: &'static [u8]| -> Feed {
        let block = filling.repeat((1 << 20) / filling.len());
        Box::new(move |pipe| {
            pipe.write_all(head)?;
            // Not for ever: a test that fails must end.
            (0..4000).try_for_each(|_| pipe.write_all(&block))
        })
    };
    for (head, filling) in [
        (&br#"[{"ph":"B","ts":1,"pid":1,"tid":1,"name":""#[..], &b"a"[..]),
        (&b""[..], &b"\0"[..]),
        (&b"["[..], &br#"{"ph":"B","ts":1,"pid":1,"tid":1,"name":"a"},"#[..]),
    ] {
        let what = String::from_utf8_lossy(head).into_owned();
        let measured = measured(&place, &["query", "-", "-c", "SELECT 1"], endless(head, filling));
        is_refused(&what, &measured, "256.0 MB");
    }
}

/// Whether the pool or the watch says it first: with a million lanes of one task each, allocations have as many bytes of their own as the
/// rows, and nobody asks for those.
#[test]
fn a_trace_of_a_million_places_is_answered_or_refused_within_the_limit() {
    let place = Place::new();
    let worker = |worker: usize| {
        format!(r#"{{"worker":{worker},"level":0,"data":[{{"span":[1,2],"name":"a","type":"static"}}]}}"#)
    };
    let workers: Vec<String> = (0..50_000).map(worker).collect();
    let data = workers.join(",\n");
    let executor = |executor: usize| format!("{{\"executor\":\"{executor}\",\"data\":[{data}]}}\n");
    let executors: Vec<String> = (0..20).map(executor).collect();
    place.write("places.tfp.json", &format!("[\n{}]", executors.join(",")));
    let query = "SELECT count(*) AS places FROM (SELECT location, count(*) AS n FROM tasks GROUP BY location)";
    let (answer, peak) = measured(&place, &["query", "places.tfp.json", "-c", query], nothing());
    assert!(peak <= LIMIT + LIMIT / 4 + 100_000_000, "{} MB", peak / 1_000_000);
    let is_refused = answer.status == Some(2) && answer.stderr.contains("not enough memory");
    assert!(is_refused || answer.stdout == "places\n1000000\n", "{}{}", answer.stdout, answer.stderr);
}

#[test]
fn a_little_memory_is_enough_for_a_trace_and_too_little_says_so() {
    let place = Place::with_links();
    let ordinary = place
        .tq("query run.json --memory 16MB -c 'SELECT name, busy(start, finish) FROM tasks GROUP BY name ORDER BY 1'");
    assert_eq!(ordinary.stdout.lines().count(), 4, "{}", ordinary.stderr);
    let sorted = place.tq(
        "query run.json --memory 32MB --threads 2 -c 'SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY v % 7919, v) n \
         FROM (SELECT value v FROM generate_series(1, 1000000)) LIMIT 10)'",
    );
    assert_eq!(sorted.stdout.lines().last(), Some("10"), "{}", sorted.stderr);
    let refused = place
        .tq("query run.json --memory 8MB -c 'SELECT cardinality(array_agg(value)) FROM generate_series(1, 4000000)'");
    assert_eq!(refused.status, Some(2));
    assert!(refused.stderr.contains("are left of --memory 8.0 MB"), "{}", refused.stderr);
}

/// A constant is made as often as a batch has rows, where an operator wants an array of it.
#[test]
fn long_constants_beside_many_rows_are_answered_or_refused() {
    let place = Place::new();
    let ask = |sql: &str| place.tq_args(&["query", "--memory", "1GB", "-c", sql]);
    // 1.2 GB twice at once, were the batch not cut.
    let text = "SELECT sum(length(substr(repeat('x', 8000000), value))) AS total FROM generate_series(1, 150)";
    assert_eq!(ask(text).stdout, "total\n1199988825\n");
    // Half a terabyte in one request is no abort.
    let of_a_join = "SELECT sum(cardinality(l)) FROM (SELECT array_agg(value) AS l FROM generate_series(1, 8000000)) x \
                     CROSS JOIN generate_series(1, 8192)";
    let refused = ask(of_a_join);
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("not enough memory"), "{}", refused.stderr);
}
