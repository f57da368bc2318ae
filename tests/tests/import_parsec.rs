//! PaRSEC: tables, links, messages and figures of recorded runs, against PaRSEC's own reader and an independent graph library.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tq_engine::error::ImportError;
use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::session::Session;
use tq_tests::{ask, cells, fixture, open, shared, text_of, try_open, unpacked};

/// The answer as text; NULL is empty.
fn rows(session: &Session, sql: &str) -> Vec<Vec<String>> {
    cells(&ask(session, sql), "")
}

fn one(session: &Session, sql: &str) -> String {
    rows(session, sql).into_iter().next().unwrap_or_default().join(" ")
}

fn stat(session: &Session, what: &str) -> u64 {
    let count = one(session, &format!("SELECT coalesce(sum(count), 0) FROM import_stats WHERE what = '{what}'"));
    count.parse().expect("a count")
}

/// Nothing is lost, and the books balance.
fn is_whole(session: &Session) -> bool {
    rows(session, "SELECT what, example FROM import_stats WHERE severity <> 'info'").is_empty()
}

/// A saved query.
fn saved(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../queries/{name}.sql"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of an answer file, by the names of its columns.
struct Csv {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Csv {
    /// `None` when the recording has no such answer.
    fn read(trace: &Path, name: &str) -> Option<Csv> {
        let mut rows = tq_tests::csv(&text_of(&expected().join(trace.file_name()?).join(name))?);
        Some(Csv { header: rows.remove(0), rows })
    }

    fn column(&self, name: &str) -> usize {
        self.header.iter().position(|column| column == name).unwrap_or_else(|| panic!("no column {name}"))
    }

    fn get(&self, row: &[String], name: &str) -> String {
        row[self.column(name)].clone()
    }

    /// Columns of every row, in an order of their own.
    fn pick(&self, names: &[&str]) -> Vec<Vec<String>> {
        let columns: Vec<usize> = names.iter().map(|name| self.column(name)).collect();
        self.rows.iter().map(|row| columns.iter().map(|column| row[*column].clone()).collect()).collect()
    }
}

fn expected() -> PathBuf {
    shared("expected/parsec").expect("asked after the traces")
}

/// The recorded runs, each a folder with all its ranks, that have an answer of this name.
fn recordings(answer: &str) -> Vec<(PathBuf, Csv)> {
    let Some(folder) = shared("traces/parsec") else { return Vec::new() };
    let mut found: Vec<(PathBuf, Csv)> = std::fs::read_dir(folder)
        .expect("a folder")
        .filter_map(|entry| {
            let path = entry.expect("an entry").path();
            Csv::read(&path, answer).map(|csv| (path, csv))
        })
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(found.len() > 3, "{answer}: {} recordings", found.len());
    found
}

fn name(trace: &Path) -> String {
    trace.file_name().expect("a name").to_string_lossy().into_owned()
}

fn place(rank: &str, stream: &str) -> String {
    format!("rank {rank}/stream {stream}")
}

/// Numbers of one value are equal however they are written.
fn assert_alike(ours: &[String], theirs: &[String], context: &str) {
    let alike = |(one, other): (&String, &String)| {
        one == other
            || matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(one), Ok(other)) if (one - other).abs() <= 1e-9 * other.abs().max(1.0))
    };
    assert!(ours.len() == theirs.len() && ours.iter().zip(theirs).all(alike), "{context}: {ours:?} is not {theirs:?}");
}

fn assert_all_alike(ours: &[Vec<String>], theirs: &[Vec<String>], context: &str) {
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_alike(ours, theirs, context);
    }
    assert_eq!(ours.len(), theirs.len(), "{context}");
}

#[test]
fn pairs_equal_those_of_the_original_reader() {
    for (trace, expected) in recordings("events.csv") {
        let session = open(&trace);
        let mut ours = rows(
            &session,
            "SELECT location, name, start, finish, coalesce(args, '{}') FROM tasks WHERE finish IS NOT NULL",
        );
        let counted =
            |event: &str| event.starts_with("PINS_PAPI") || event.starts_with("gpu_mem") || event.ends_with("_MEMORY");
        let mut theirs: Vec<Vec<String>> = Vec::new();
        for row in &expected.rows {
            let event = expected.get(row, "name");
            if counted(&event) {
                continue;
            }
            let stream = place(&expected.get(row, "rank"), &expected.get(row, "stream"));
            let (begin, end, info) =
                (expected.get(row, "begin_ns"), expected.get(row, "end_ns"), expected.get(row, "info"));
            theirs.push(vec![stream, event, begin, end, info]);
        }
        let key = |row: &Vec<String>| (row[0].clone(), row[2].len(), row[2].clone(), row[1].clone(), row[3].clone());
        ours.sort_by_key(key);
        theirs.sort_by_key(key);
        assert_eq!(ours.len(), theirs.len(), "{}", name(&trace));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert_eq!(ours[..4], theirs[..4], "{}", name(&trace));
            let args: serde_json::Value = serde_json::from_str(&ours[4]).expect("JSON");
            for field in theirs[4].split(';').filter(|field| !field.is_empty()) {
                let (key, value) = field.split_once('=').expect("key=value");
                let ours = match &args[key] {
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                assert_alike(
                    &[ours],
                    &[value.to_owned()],
                    &format!("{}: {key} in {theirs:?} and {args}", name(&trace)),
                );
            }
        }
        let errors = Csv::read(&trace, "errors.csv").map_or(0, |errors| errors.rows.len() as u64);
        assert_eq!(stat(&session, "unmatched_start"), errors, "{}", name(&trace));
        assert_eq!(stat(&session, "unaccounted"), 0, "{}", name(&trace));
        assert!(is_whole(&session) || name(&trace) == "synth-1r", "{}", name(&trace));
    }
}

#[test]
fn streams_are_those_of_the_original_reader() {
    for (trace, expected) in recordings("streams.csv") {
        let session = open(&trace);
        let ours = rows(
            &session,
            "SELECT location, name, clock FROM locations WHERE location LIKE '%/stream %' ORDER BY sort_index",
        );
        let theirs: Vec<Vec<String>> = expected
            .pick(&["rank", "stream", "description"])
            .iter()
            .map(|row| vec![place(&row[0], &row[1]), row[2].clone(), format!("rank {}", row[0])])
            .collect();
        assert_eq!(ours, theirs, "{}", name(&trace));
    }
}

#[test]
fn tasks_of_the_graphs_equal_those_of_an_independent_join() {
    for (trace, expected) in recordings("tasks.csv") {
        let session = open(&trace);
        let found = rows(
            &session,
            "WITH kernels AS (SELECT * FROM tasks WHERE kind = 'task'),
                  delays AS (SELECT task, ready_time, delay FROM ready(kernels, (SELECT * FROM links WHERE kind = 'dependency'))),
                  preds AS (SELECT target AS task, count(DISTINCT source) AS n FROM links
                            WHERE kind = 'dependency' AND coalesce(name, '') <> 'again' GROUP BY target),
                  path AS (SELECT DISTINCT id FROM critical_path() JOIN tasks USING (task))
             SELECT k.id, first_value(k.location ORDER BY k.task), min(k.start), max(k.finish), sum(k.duration), count(*),
                    first_value(k.args->>'taskpool_id' ORDER BY k.start), first_value(k.args->>'tcid' ORDER BY k.start),
                    first_value(k.args->>'tid' ORDER BY k.start), first_value(k.args->>'priority' ORDER BY k.start),
                    coalesce(max(p.n), 0), first_value(d.ready_time ORDER BY k.start), first_value(d.delay ORDER BY k.start),
                    CASE WHEN count(path.id) > 0 THEN 1 ELSE 0 END
             FROM kernels k LEFT JOIN delays d USING (task) LEFT JOIN preds p USING (task) LEFT JOIN path ON path.id = k.id
             GROUP BY k.id",
        );
        let found: HashMap<String, Vec<String>> = found.into_iter().map(|row| (row[0].clone(), row)).collect();
        assert_eq!(found.len(), expected.rows.len(), "{}", name(&trace));
        // Which column of ours answers which of theirs.
        let columns = [
            ("start_ns", 2),
            ("end_ns", 3),
            ("duration_ns", 4),
            ("executions", 5),
            ("taskpool_id", 6),
            ("tcid", 7),
            ("tid", 8),
            ("priority", 9),
            ("preds", 10),
            ("ready_ns", 11),
            ("ready_delay_ns", 12),
            ("on_critical_path", 13),
        ];
        for row in &expected.rows {
            let task = expected.get(row, "task");
            let ours = found.get(&task).unwrap_or_else(|| panic!("{}: {task}", name(&trace)));
            let rank = if expected.header.iter().any(|column| column == "rank") {
                expected.get(row, "rank")
            } else {
                "0".to_owned()
            };
            assert_eq!(ours[1], place(&rank, &expected.get(row, "stream")), "{}: {task}", name(&trace));
            for (column, at) in columns.iter().filter(|(column, _)| expected.header.iter().any(|known| known == column))
            {
                assert_eq!(ours[*at], expected.get(row, column), "{}: {task}: {column}", name(&trace));
            }
        }
    }
}

#[test]
fn edges_are_those_of_all_files() {
    for (trace, expected) in recordings("edges.csv") {
        let session = open(&trace);
        let mut ours = rows(
            &session,
            "SELECT s.id, t.id, l.name, CASE WHEN (l.args->>'made_ready') = 'true' THEN '00FF00' ELSE 'FF0000' END
             FROM links l JOIN tasks s ON s.task = l.source JOIN tasks t ON t.task = l.target
             WHERE l.kind = 'dependency' AND l.name <> 'again'",
        );
        let mut theirs = expected.pick(&["source", "target", "label", "color"]);
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs, "{}", name(&trace));
    }
}

#[test]
fn occupancy_equals_that_of_pandas() {
    for (trace, expected) in recordings("occupancy.csv") {
        let session = open(&trace);
        let sql = saved("parsec-occupancy");
        let ours = rows(
            &session,
            &format!(
                "SELECT scope, \"window\", threads, window_start_time, window_finish_time, busy_time, round(occupancy, 9) FROM ({sql})"
            ),
        );
        let theirs = expected.pick(&["scope", "window", "threads", "begin_ns", "end_ns", "busy_ns", "occupancy"]);
        let sorted = |rows: Vec<Vec<String>>| {
            rows.into_iter()
                .map(|row| (row[..2].to_vec(), row))
                .collect::<BTreeMap<_, _>>()
                .into_values()
                .collect::<Vec<_>>()
        };
        assert_all_alike(&sorted(ours), &sorted(theirs), &name(&trace));
    }
}

#[test]
fn the_critical_path_equals_that_of_a_graph_library() {
    for (trace, expected) in recordings("critical_path.csv") {
        let session = open(&trace);
        let ours = rows(
            &session,
            &format!("SELECT id, duration, path_time FROM ({}) ORDER BY step", saved("parsec-critical-path")),
        );
        assert_eq!(ours, expected.pick(&["task", "duration_ns", "cumulative_ns"]), "{}", name(&trace));
        let summary = Csv::read(&trace, "summary.csv").expect("a summary");
        let facts: HashMap<String, String> = summary.rows.iter().map(|row| (row[0].clone(), row[1].clone())).collect();
        let sql = saved("parsec-critical-path-summary");
        let ours = rows(
            &session,
            &format!(
                "SELECT path_time, tasks, makespan, work_time, round(share, 9), round(average_parallelism, 9) FROM ({sql})"
            ),
        );
        let keys = [
            "critical_path_ns",
            "critical_path_tasks",
            "makespan_ns",
            "work_ns",
            "critical_path_share",
            "average_parallelism",
        ];
        assert_alike(&ours[0], &keys.map(|key| facts[key].clone()), &name(&trace));
        let delays = one(
            &session,
            "WITH firsts AS (SELECT id, min(start) AS start FROM tasks WHERE kind = 'task' GROUP BY id)
             SELECT count(delay), sum(delay), count(*) FILTER (WHERE delay < 0) FROM ready() r JOIN tasks t USING (task)
             JOIN firsts f ON f.id = t.id AND f.start = t.start",
        );
        let theirs =
            ["ready_delay_tasks", "ready_delay_sum_ns", "ready_delay_negative"].map(|key| facts[key].clone()).join(" ");
        assert_eq!(delays, theirs, "{}", name(&trace));
        let by_class = format!(
            "SELECT sum(tasks), sum(total_delay_time), sum(impossible) FROM ({})",
            saved("parsec-readiness-delay")
        );
        assert_eq!(one(&session, &by_class), theirs, "{}", name(&trace));
        assert_eq!(
            stat(&session, "started_before_predecessor").to_string(),
            facts["ready_delay_negative"],
            "{}",
            name(&trace)
        );
        if let Some(early) = facts.get("rcv_end_before_snd_begin") {
            assert_eq!(stat(&session, "received_before_sent").to_string(), *early, "{}", name(&trace));
        }
    }
}

#[test]
fn workload_equals_that_of_pandas() {
    for (answer, query, sql, columns) in [
        (
            "workload_rank.csv",
            "parsec-workload-ranks",
            "SELECT replace(rank, 'rank ', ''), tasks, work_time, first_start, last_finish",
            &["rank", "tasks", "work_ns", "first_begin_ns", "last_end_ns"][..],
        ),
        (
            "workload_thread.csv",
            "parsec-workload-threads",
            "SELECT replace(location, '/stream ', ',rank '), tasks, work_time, first_start, last_finish",
            &["rank", "stream", "tasks", "work_ns", "first_begin_ns", "last_end_ns"],
        ),
        (
            "workload_class.csv",
            "parsec-workload-classes",
            "SELECT name, tasks, work_time, min_time, median_time, max_time",
            &["name", "tasks", "work_ns", "min_ns", "median_ns", "max_ns"],
        ),
    ] {
        for (trace, expected) in recordings(answer) {
            let session = open(&trace);
            let mut ours: Vec<Vec<String>> = rows(&session, &format!("{sql} FROM ({})", saved(query)))
                .into_iter()
                .map(|row| row.join(",").replace("rank ", "").split(',').map(str::to_owned).collect())
                .collect();
            let mut theirs = expected.pick(columns);
            ours.sort();
            theirs.sort();
            // Threads that executed nothing are in ours.
            ours.retain(|row| {
                !row[..]
                    .iter()
                    .any(|cell| cell == "0" && row.len() == 6 && row[2] == "0" && answer == "workload_thread.csv")
            });
            assert_all_alike(&ours, &theirs, &format!("{answer} of {}", name(&trace)));
        }
    }
}

#[test]
fn messages_equal_those_of_an_independent_match() {
    for (trace, expected) in recordings("messages.csv") {
        let session = open(&trace);
        let mut ours = rows(
            &session,
            "SELECT replace(source, 'rank ', ''), replace(target, 'rank ', ''), m.args->>'tpid', m.args->>'tcid', m.args->>'tid', m.args->>'dep',
                    bytes, send_time, s.finish, r.start, receive_time
             FROM messages m JOIN tasks s ON s.task = m.source_task JOIN tasks r ON r.task = m.target_task WHERE m.kind = 'mpi'",
        );
        let mut theirs = expected.rows.clone();
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs, "{}", name(&trace));
        let pairs = Csv::read(&trace, "messages_by_pair.csv").expect("pairs");
        let mut ours = rows(
            &session,
            &format!("SELECT replace(source, 'rank ', ''), replace(target, 'rank ', ''), messages, bytes, activations, activation_bytes
                      FROM ({}) WHERE messages + activations > 0", saved("parsec-messages-by-pair")),
        );
        ours.sort();
        assert_eq!(ours, pairs.rows, "{}", name(&trace));
        // Who sends hangs on who produced or received, who received on who consumes.
        let bound = one(
            &session,
            "SELECT count(*), count(DISTINCT m.message) FILTER (WHERE a.target IS NOT NULL), count(DISTINCT m.message) FILTER (WHERE b.source IS NOT NULL)
             FROM (SELECT * FROM messages WHERE kind = 'mpi') m
             LEFT JOIN (SELECT DISTINCT target FROM links WHERE kind = 'communication') a ON a.target = m.source_task
             LEFT JOIN (SELECT DISTINCT source FROM links WHERE kind = 'communication') b ON b.source = m.target_task",
        );
        let all = expected.rows.len();
        assert_eq!(bound, format!("{all} {all} {all}"), "{}", name(&trace));
    }
}

#[test]
fn counters_of_memory_and_hardware() {
    let Some(folder) = shared("traces/parsec/synth-1r") else { return };
    let session = open(&folder);
    let events = Csv::read(&folder, "events.csv").expect("events");
    let errors = Csv::read(&folder, "errors.csv").expect("errors");
    // A pair takes and gives back, a start without end only takes.
    for event in ["gpu_mem_alloc", "gpu_mem_use", "TASK_MEMORY"] {
        let of = |csv: &Csv| csv.rows.iter().filter(|row| csv.get(row, "name") == event).count();
        let (pairs, open) = (of(&events), of(&errors));
        let counted = one(
            &session,
            &format!(
                "SELECT count(*) FILTER (WHERE value > 0), count(*) FILTER (WHERE value < 0) FROM counters WHERE name = '{event}' AND kind = 'delta' AND unit = 'bytes'"
            ),
        );
        assert_eq!(counted, format!("{} {pairs}", pairs + open), "{event}");
    }
    let taken: i64 = events
        .rows
        .iter()
        .filter(|row| events.get(row, "name") == "gpu_mem_alloc")
        .map(|row| {
            let info = events.get(row, "info");
            info.split(';')
                .find_map(|field| field.strip_prefix("size="))
                .and_then(|size| size.parse::<i64>().ok())
                .expect("a size")
        })
        .sum();
    let released =
        one(&session, "SELECT CAST(-sum(value) AS BIGINT) FROM counters WHERE name = 'gpu_mem_alloc' AND value < 0");
    assert_eq!(released, taken.to_string());
    assert_eq!(one(&session, "SELECT DISTINCT location FROM counters WHERE name = 'gpu_mem_alloc'"), "rank 0/GPU 1");
    let papi = rows(&session, "SELECT time, value FROM counters WHERE name = 'PAPI_TOT_CYC' ORDER BY time LIMIT 4");
    assert_eq!(papi.concat(), ["167741", "0.0", "231650", "700.0", "292045", "1000.0", "353802", "1700.0"]);
    // The original reader reads the last id as -1.
    assert_eq!(one(&session, "SELECT count(*) FROM tasks WHERE id = '18446744073709551615'"), "1");
    let info = one(&session, "SELECT length(args->>'LONG_VALUE') FROM runs");
    assert_eq!(info, "10000");
}

#[test]
fn the_fixture_gives_the_figures_of_the_original_tools() {
    let session = open(&fixture("parsec/chol24-4r"));
    assert_eq!(
        one(&session, "SELECT run, format, program, tasks, locations, processes, cores FROM runs"),
        "chol24-4r parsec chol.exe 12772 12 4 4"
    );
    let path = one(&session, &format!("SELECT path_time, tasks FROM ({})", saved("parsec-critical-path-summary")));
    assert_eq!(path, "16877709 28");
    assert_eq!((stat(&session, "received_before_sent"), stat(&session, "started_before_predecessor")), (130, 41));
    assert_eq!(one(&session, "SELECT count(*), sum(bytes) FROM messages WHERE kind = 'mpi'"), "552 18087936");
    let occupancy = one(
        &session,
        &format!(
            "SELECT round(occupancy, 9) FROM ({}) WHERE scope = 'all' AND \"window\" = 'whole'",
            saved("parsec-occupancy")
        ),
    );
    assert_eq!(occupancy, "0.138710045");
    assert!(is_whole(&session));
}

#[test]
fn messages_align_the_clocks_of_ranks() {
    let folder = fixture("parsec/chol24-4r");
    let aligned = try_open(&folder, &[("align", "messages")]).expect("opens");
    assert_eq!((stat(&aligned, "received_before_sent"), stat(&aligned, "started_before_predecessor")), (0, 0));
    assert_eq!(one(&aligned, "SELECT DISTINCT clock FROM locations"), "rank 0");
    assert_eq!(stat(&aligned, "aligned"), 4);
    // Every rank is moved as a whole, and rank 0 stays.
    let recorded = open(&folder);
    let sql = "SELECT l.process, min(t.start), max(t.finish), sum(t.duration) FROM tasks t JOIN locations l USING (run, location)
               GROUP BY l.process ORDER BY l.process";
    let offsets: serde_json::Value = serde_json::from_str(&one(&aligned, "SELECT args FROM runs")).expect("JSON");
    for (before, after) in rows(&recorded, sql).iter().zip(&rows(&aligned, sql)) {
        let offset = offsets["clock_offsets"][format!("rank {}", before[0])].as_i64().expect("an offset");
        let moved = |cell: &str| (cell.parse::<i64>().expect("a time") - offset).to_string();
        assert_eq!(after[1..], [moved(&before[1]), moved(&before[2]), before[3].clone()]);
    }
    assert_eq!(offsets["clock_offsets"]["rank 0"], 0);
    // Aligned clocks lie inside of what the messages say.
    let bounds = rows(&recorded, "SELECT clock, other, lower, upper FROM clock_offsets()");
    assert!(bounds.len() > 3, "{} pairs", bounds.len());
    for row in &bounds {
        let offset = offsets["clock_offsets"][&row[1]].as_i64().expect("an offset")
            - offsets["clock_offsets"][&row[0]].as_i64().expect("an offset");
        assert!(row[2].parse().map_or(true, |lower: i64| lower <= offset), "{row:?} {offset}");
        assert!(row[3].parse().map_or(true, |upper: i64| offset <= upper), "{row:?} {offset}");
    }
    let error = try_open(&folder, &[("align", "wishes")]).err().expect("an error");
    assert_eq!(error.to_string(), "import option `align=wishes`: clocks can be aligned by `messages` only");
}

#[test]
fn executions_of_one_task_hang_together() {
    let session = open(&fixture("parsec/async-1r"));
    assert_eq!(one(&session, "SELECT count(*), count(DISTINCT id) FROM tasks WHERE kind = 'task'"), "24 12");
    assert_eq!(one(&session, "SELECT count(*) FROM links WHERE name = 'again' AND kind = 'dependency'"), "12");
    // Edges lead to the first execution, and what releases others hangs on the last one.
    let chain = rows(
        &session,
        "SELECT t.args->>'trc', (SELECT count(*) FROM links l WHERE l.target = t.task AND l.name <> 'again') FROM tasks t
         WHERE t.id = 'RESCHED_2_0' ORDER BY t.start",
    );
    assert_eq!(chain, [["-1", "1"], ["-1", "0"], ["0", "0"]]);
    let released = one(
        &session,
        "SELECT p.args->>'trc' FROM tasks r JOIN tasks p ON p.task = r.parent WHERE r.name LIKE '%RELEASE_DEPS' AND p.id = 'RESCHED_2_0'",
    );
    assert_eq!(released, "0");
    assert_eq!(one(&session, "SELECT count(*), count(DISTINCT location) FROM tasks WHERE kind = 'user'"), "11 2");
}

#[test]
fn flushes_of_dtd_are_the_runtimes_work() {
    let session = open(&fixture("parsec/dtd6-1r"));
    let roles = rows(&session, "SELECT role, count(*) FROM tasks WHERE kind = 'task' GROUP BY role ORDER BY role");
    assert_eq!(roles, [["runtime", "21"], ["work", "56"]]);
    assert_eq!(one(&session, "SELECT name FROM tasks WHERE id = 'Potrf_1_0'"), "Potrf");
}

#[test]
fn a_graph_without_its_trace_has_tasks_without_times() {
    let folder = TempDir::new().expect("a folder");
    for rank in [0, 1, 3] {
        let graph = format!("chol24-{rank}.dot.zst");
        std::fs::copy(fixture("parsec/chol24-4r").join(&graph), folder.path().join(&graph)).expect("copied");
    }
    let session = open(folder.path());
    // What rank 2 executed is named by the edges of the others.
    let counts = "SELECT count(*), count(start), count(location), count(DISTINCT id), count(DISTINCT name) FROM tasks";
    assert_eq!(one(&session, counts), "2028 0 1950 2028 4");
    assert_eq!(
        (stat(&session, "dot_only"), stat(&session, "dot_undeclared"), stat(&session, "rank_missing")),
        (1950, 78, 1)
    );
    assert_eq!(one(&session, "SELECT location FROM tasks WHERE id = 'POTRF_2_0'"), "rank 0/VP 0/thread 0");
    assert!(is_whole(&session));
}

#[test]
fn a_killed_rank_is_diagnosed_and_the_others_are_kept() {
    let folder = TempDir::new().expect("a folder");
    let name = |rank: u32| format!("chol24-{rank}.prof.zst");
    std::fs::copy(fixture("parsec/chol24-4r").join(name(0)), folder.path().join(name(0))).expect("copied");
    let mut killed = unpacked(&fixture("parsec/chol24-4r").join(name(1))).expect("a fixture");
    killed[8..33].fill(0);
    std::fs::write(folder.path().join("chol24-1.prof"), killed).expect("written");
    let session = open(folder.path());
    let found = one(&session, "SELECT severity, count, example FROM import_stats WHERE what = 'file_not_read'");
    assert!(found.starts_with("lost 1 ") && found.contains("an unfinished trace: the run was killed"), "{found}");
    assert_eq!(one(&session, "SELECT count(DISTINCT process) FROM locations WHERE location LIKE '%/stream %'"), "1");
    let error = try_open(&fixture("parsec/killed/killed-0.prof.zst"), &[]).err().expect("an error").to_string();
    assert!(error.contains("an unfinished trace: the run was killed"), "{error}");
}

#[test]
fn runs_in_one_directory_are_told_apart_by_name() {
    let folder = TempDir::new().expect("a folder");
    for (from, to) in [
        ("chol24-4r/chol24-0.prof.zst", "a-0.prof.zst"),
        ("chol24-4r/chol24-1.prof.zst", "a-1.prof-Xk2pQz.zst"),
        ("chol24-4r/chol24-1.dot.zst", "a-1.dot.zst"),
        ("dtd6-1r/dtd6-0.prof.zst", "b-0.prof.zst"),
        ("dtd6-1r/dtd6-0.dot.zst", "b-0.dot.zst"),
    ] {
        std::fs::copy(fixture("parsec").join(from), folder.path().join(to)).expect("copied");
    }
    let mut both = OpenOptions::new(1 << 30, 2);
    both.traces.push(TraceSpec { name: Some("both".to_owned()), path: folder.path().to_owned() });
    let session = Session::open(&both).expect("opens");
    assert_eq!(rows(&session, "SELECT run, processes FROM runs ORDER BY run"), [["both/a", "4"], ["both/b", "1"]]);
    let links =
        rows(&session, "SELECT run, count(*) > 0 FROM links WHERE kind = 'dependency' GROUP BY run ORDER BY run");
    assert_eq!(links, [["both/a", "true"], ["both/b", "true"]]);
    let alone = self::open(&folder.path().join("a-0.prof.zst"));
    assert_eq!(stat(&alone, "other_ranks_beside"), 1);
}

#[test]
fn damaged_recordings_are_told_what_is_wrong() {
    let Some(folder) = shared("traces/parsec/bad") else { return };
    let check = |file: &str, what: &str, count: u64| {
        let session = open(&folder.join(file));
        assert_eq!((stat(&session, what), stat(&session, "unaccounted")), (count, 0), "{file}");
    };
    check("cyclic-next.prof.zst", "chain_cycle", 1);
    check("dangling-next.prof.zst", "chain_broken", 1);
    check("unknown-key.prof.zst", "unknown_key", 145);
    check("wrong-buffer-type.prof.zst", "block_type", 1);
    check("truncated-half.prof", "streams_lost", 2);
    for (file, what) in [
        ("short-header.prof", "it ends after 100 bytes, inside of the header"),
        ("killed-0.prof", "an unfinished trace"),
        ("byte-order.prof.zst", "read as big endian"),
        ("zero-bytes.prof", "is empty"),
    ] {
        let error = try_open(&folder.join(file), &[]).err().expect("an error").to_string();
        assert!(error.contains(what), "{file}: {error}");
    }
    let intact = open(&folder.join("wrong-buffer-type.prof.zst"));
    assert_eq!(one(&intact, "SELECT count(*) FROM tasks"), "510");
    // The graphs of an aborted run are there, and its profiles are not.
    let aborted = open(&folder.join("../bcast-aborted-4r"));
    assert_eq!((stat(&aborted, "file_not_read"), stat(&aborted, "dot_unclosed")), (4, 4));
    assert!(stat(&aborted, "dot_only") > 0);
}

/// A folder with copies of files.
fn folder_of(files: &[&Path]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for file in files {
        std::fs::copy(file, folder.path().join(file.file_name().expect("a name"))).expect("copied");
    }
    folder
}

/// Every table, as a file converted by profile2h5 must have it too.
fn tables(session: &Session) -> Vec<(&'static str, Vec<Vec<String>>)> {
    let queries = [
        ("runs", "SELECT format, program, cores, time_unit, args FROM runs"),
        (
            "locations",
            "SELECT location, parent, kind, name, process, sort_index, role, clock, args FROM locations ORDER BY sort_index",
        ),
        (
            "tasks",
            "SELECT location, start, finish, depth, name, kind, role, id, args FROM tasks ORDER BY location, start, finish DESC, depth, name",
        ),
        (
            "parents",
            "SELECT c.location, c.start, c.name, p.location, p.start, p.name, s.start, s.name FROM tasks c LEFT JOIN tasks p ON c.parent = p.task \
             LEFT JOIN tasks s ON c.stack_parent = s.task ORDER BY c.location, c.start, c.finish DESC, c.depth, c.name",
        ),
        (
            "links",
            "SELECT a.location, a.start, a.name, b.location, b.start, b.name, l.kind, l.name, l.args FROM links l JOIN tasks a ON l.source = a.task \
             JOIN tasks b ON l.target = b.task ORDER BY 1, 2, 3, 4, 5, 6, 7, 8",
        ),
        (
            "messages",
            "SELECT source, target, kind, tag, send_time, receive_time, bytes, count, args FROM messages ORDER BY 1, 2, 3, 4, 5, 6",
        ),
        ("counters", "SELECT location, name, time, value, kind, unit FROM counters ORDER BY 1, 2, 3, 4"),
        ("events", "SELECT location, name, kind, time, args FROM events ORDER BY 1, 2, 3, 4"),
    ];
    let mut tables = Vec::new();
    for (table, sql) in queries {
        let mut rows = rows(session, sql);
        // Facts in whichever order.
        for cell in rows.iter_mut().flatten().filter(|cell| cell.starts_with('{') && table != "tasks") {
            let facts: BTreeMap<String, serde_json::Value> = serde_json::from_str(cell).expect("an object");
            *cell = format!("{facts:?}");
        }
        tables.push((table, rows));
    }
    tables
}

fn assert_same_tables(converted: &Session, recorded: &Session, context: &str) {
    assert!(is_whole(converted), "{context}");
    for ((table, ours), (_, theirs)) in tables(converted).iter().zip(&tables(recorded)) {
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert_eq!(ours, theirs, "{context}: {table}");
        }
        assert_eq!(ours.len(), theirs.len(), "{context}: {table}");
    }
}

#[cfg(feature = "hdf5")]
#[test]
fn a_converted_run_has_the_tables_of_its_recording() {
    let ours = fixture("parsec/chol8-1r");
    let (h5, prof) = (ours.join("chol8.ptt-v2.h5.zst"), ours.join("chol8-0.prof.zst"));
    let recorded = open(&prof);
    assert_eq!(one(&recorded, "SELECT count(*) FROM tasks WHERE kind = 'task'"), "120");
    let dot = [("parsec.dot", ours.join("chol8-0.dot.zst"))];
    let dot: Vec<(&str, &str)> = dot.iter().map(|(key, path)| (*key, path.to_str().expect("UTF-8"))).collect();
    let converted = try_open(&h5, &dot).expect("with its graph");
    assert_same_tables(&converted, &recorded, "chol8-1r with its graph");
    assert_eq!(stat(&converted, "dot_nodes_joined"), 120);
    let alone = folder_of(&[&prof]);
    assert_same_tables(&open(&h5), &open(alone.path()), "chol8-1r");
    let beside = folder_of(&[&h5, &ours.join("chol8-0.dot.zst")]);
    assert_same_tables(&open(beside.path()), &recorded, "chol8-1r in a folder with its graph");
}

#[cfg(feature = "hdf5")]
#[test]
fn every_converted_run_has_the_tables_of_its_recording() {
    let Some(folder) = shared("traces/parsec") else { return };
    for (h5, twin) in [
        ("chol8-1r.ptt-v2", "chol8-1r"),
        ("chol8-1r.ptt-v2-nocompress", "chol8-1r"),
        ("chol8-1r.ptt-v2-table", "chol8-1r"),
        ("chol16-2r.ptt-v2", "chol16-2r"),
        ("nopins-2r.ptt-v2", "nopins-2r"),
    ] {
        let files =
            std::fs::read_dir(folder.join(twin)).expect("a folder").map(|entry| entry.expect("an entry").path());
        let files: Vec<PathBuf> = files.filter(|path| path.to_string_lossy().contains(".prof")).collect();
        let profiles = folder_of(&files.iter().map(PathBuf::as_path).collect::<Vec<_>>());
        let converted = folder.join(format!("hdf5/{h5}.h5.zst"));
        assert_same_tables(&open(&converted), &open(profiles.path()), h5);
        let graphs = folder.join(twin).to_string_lossy().into_owned();
        if twin != "nopins-2r" {
            let converted = try_open(&converted, &[("parsec.dot", &graphs)]).expect("with its graphs");
            assert_same_tables(&converted, &open(&folder.join(twin)), &format!("{h5} with graphs"));
        }
    }
}

#[cfg(feature = "hdf5")]
#[test]
fn version_1_names_the_way_out() {
    let Some(folder) = shared("traces/parsec/hdf5") else { return };
    let version_1 = folder.join("chol8-1r.ptt-v1.h5.zst");
    let in_folder = folder_of(&[&version_1]);
    for path in [&version_1, &in_folder.path().join("chol8-1r.ptt-v1.h5.zst")] {
        let error = try_open(path, &[]).err().expect("an error");
        let ImportError::Unusable { what, hint, .. } = error else { panic!("{error}") };
        assert!(what.contains("version 1"), "{what}");
        assert!(hint.is_some_and(|hint| hint.contains("profile2h5 --ptt-version 2") && hint.contains(".prof")));
    }
}

#[cfg(feature = "hdf5")]
#[test]
fn recordings_come_before_what_was_converted_from_them() {
    let ours = fixture("parsec/chol8-1r");
    let session = open(&ours);
    assert_eq!(one(&session, "SELECT count(*), count(DISTINCT run) FROM tasks"), "510 1");
    assert_eq!((stat(&session, "converted_not_read"), stat(&session, "end_events")), (1, 510));
    let Some(folder) = shared("traces/parsec/hdf5") else { return };
    let both = folder_of(&[&folder.join("chol8-1r.ptt-v1.h5.zst"), &ours.join("chol8.ptt-v2.h5.zst")]);
    let session = open(both.path());
    assert_eq!(one(&session, "SELECT count(*), count(DISTINCT run) FROM tasks"), "510 1");
    assert_eq!((stat(&session, "converted_not_read"), stat(&session, "end_events")), (1, 0));
}
