//! TFProf: tables and links of recorded traces, against an independent decoder and against the twin of another dialect.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tq_engine::open::OpenOptions;
use tq_engine::session::Session;
use tq_tests::{ask, cells, fixture, folder_of, open, options, shared, text_of, try_open};

fn open_with(path: &Path, threads: usize, import: &[(&str, &str)]) -> Session {
    let import = import.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let options = OpenOptions { threads, import, ..options(path) };
    Session::open(&options).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The answer as text; NULL is `-`.
fn rows(session: &Session, sql: &str) -> Vec<Vec<String>> {
    cells(&ask(session, sql), "-")
}

fn one(session: &Session, sql: &str) -> String {
    rows(session, sql).swap_remove(0).join(" ")
}

fn stat(session: &Session, what: &str) -> String {
    let found = rows(session, &format!("SELECT severity, count FROM import_stats WHERE what = '{what}'"));
    found.first().map_or_else(String::new, |row| row.join(" "))
}

/// A task as both sides of a comparison can tell it.
#[derive(Debug, PartialEq, Eq, Clone)]
struct Task {
    location: String,
    depth: u32,
    name: String,
    kind: String,
    start: i64,
    finish: i64,
    /// `level:index` in the same worker.
    parent: String,
}

fn tasks(session: &Session) -> Vec<Task> {
    let mut indices: HashMap<(String, u32), usize> = HashMap::new();
    let read =
        rows(session, "SELECT task, location, depth, name, kind, start, finish, stack_parent FROM tasks ORDER BY task");
    let mut places: HashMap<String, String> = HashMap::new();
    for row in &read {
        let depth: u32 = row[2].parse().expect("a depth");
        let index = indices.entry((row[1].clone(), depth)).or_default();
        places.insert(row[0].clone(), format!("{depth}:{index}"));
        *index += 1;
    }
    read.iter()
        .map(|row| Task {
            location: row[1].clone(),
            depth: row[2].parse().expect("a depth"),
            name: row[3].clone(),
            kind: row[4].clone(),
            start: row[5].parse().expect("a start"),
            finish: row[6].parse().unwrap_or(i64::MIN),
            parent: places.get(&row[7]).cloned().unwrap_or_default(),
        })
        .collect()
}

/// ns from the origin of the run to the creation of each executor.
fn executor_offsets(session: &Session) -> HashMap<String, i64> {
    let origin: i64 = one(session, "SELECT origin FROM runs").parse().expect("a common clock");
    rows(session, "SELECT location, args FROM locations WHERE kind = 'executor'")
        .iter()
        .map(|row| {
            let args: serde_json::Value = serde_json::from_str(&row[1]).expect("JSON");
            (row[0].clone(), args["origin_ns"].as_i64().expect("an origin") - origin)
        })
        .collect()
}

fn expected_tasks() -> Option<HashMap<String, Vec<Task>>> {
    let text = text_of(&shared("expected/tfprof/tasks.csv.zst")?)?;
    let mut traces: HashMap<String, Vec<Task>> = HashMap::new();
    // The printable name may hold commas; the columns are counted from both ends.
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let last = cells.len() - 1;
        let hex = cells[last - 4];
        let bytes: Vec<u8> =
            (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hex")).collect();
        traces.entry(cells[0].to_owned()).or_default().push(Task {
            location: format!("E{}/W{}", cells[1], cells[2]),
            depth: cells[3].parse().expect("a level"),
            name: String::from_utf8_lossy(&bytes).into_owned(),
            kind: cells[last - 3].to_owned(),
            start: cells[last - 2].parse().expect("ns"),
            finish: cells[last - 1].parse().expect("ns"),
            parent: cells[last].replace("none", ""),
        });
    }
    Some(traces)
}

/// The file cannot tell these numberings apart: formats/tfprof.md §3.
const GUESSES_THAT_FAIL: [(&str, &str); 2] = [("fib_40.tfp", "3.9"), ("loop_36.tfp", "3.6")];

#[test]
fn binary_tasks_equal_an_independent_decoder() {
    let Some(expected) = expected_tasks() else { return };
    let Some(folder) = shared("traces/tfprof") else { return };
    assert!(expected.len() >= 31);
    for (trace, expected) in &expected {
        let fails = GUESSES_THAT_FAIL.iter().find(|(name, _)| name == trace);
        let guessed = open(&folder.join(trace));
        let mut read = tasks(&guessed);
        if let Some((_, release)) = fails {
            assert!(read.iter().zip(expected).any(|(read, expected)| read.kind != expected.kind), "{trace}");
            read = tasks(&open_with(&folder.join(trace), 1, &[("tfprof.types", release)]));
        }
        if trace.contains("_41") {
            let offsets = executor_offsets(&guessed);
            for task in &mut read {
                let offset = offsets[task.location.split('/').next().expect("an executor")];
                (task.start, task.finish) = (task.start - offset, task.finish - offset);
            }
        }
        assert_eq!(read.len(), expected.len(), "{trace}");
        for (read, expected) in read.iter().zip(expected) {
            assert_eq!(read, expected, "{trace}");
        }
    }
}

#[test]
fn json_equals_its_binary_twin_to_the_microsecond() {
    let folder = shared("traces/tfprof").unwrap_or_else(|| fixture("tfprof"));
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let json = entry.expect("an entry").path();
        let binary = json.with_extension("tfp");
        let stem = json.file_stem().expect("a stem").to_string_lossy().into_owned();
        // The two cut files are cut at different tasks.
        if json.extension().is_none_or(|extension| extension != "json") || !binary.exists() || stem.starts_with("bad_")
        {
            continue;
        }
        compared += 1;
        let forced = GUESSES_THAT_FAIL.iter().find(|(name, _)| name.trim_end_matches(".tfp") == stem);
        let options: Vec<(&str, &str)> = forced.map(|(_, release)| ("tfprof.types", *release)).into_iter().collect();
        let (twin, text) = (open_with(&binary, 1, &options), open(&json));
        let offsets = executor_offsets(&twin);
        let expected: Vec<Task> = tasks(&twin)
            .into_iter()
            .map(|mut task| {
                let offset = offsets[task.location.split('/').next().expect("an executor")];
                let truncated = |time: i64| (time - offset).div_euclid(1000) * 1000;
                (task.start, task.finish) = (truncated(task.start), truncated(task.finish));
                task
            })
            .collect();
        let read = tasks(&text);
        assert_eq!(read.len(), expected.len(), "{stem}");
        for (read, expected) in read.iter().zip(&expected) {
            assert_eq!(read, expected, "{stem}");
        }
        assert_eq!(one(&text, "SELECT coalesce(sum(count), 0) FROM import_stats WHERE what = 'unaccounted'"), "0");
        // T0 knows the idle workers, too.
        let executors = "SELECT count(*) FROM locations WHERE kind = 'executor'";
        assert_eq!(one(&text, executors), one(&twin, executors), "{stem}");
        assert_eq!(one(&text, "SELECT time_unit, origin FROM runs"), "us -", "{stem}");
    }
    assert!(compared >= 7, "{compared} pairs");
}

#[test]
fn tfpx_rows_equal_the_viewers_own_parser() {
    let Some(table) = shared("expected/tfprof/tfpx_rows.csv") else { return };
    let Some(folder) = shared("traces/tfprof") else { return };
    let mut sessions: HashMap<String, (Session, HashMap<String, i64>)> = HashMap::new();
    for line in std::fs::read_to_string(table).expect("readable").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (session, offsets) = sessions.entry(cells[0].to_owned()).or_insert_with(|| {
            let path = Some(folder.join(cells[0])).filter(|path| path.exists());
            let session = open(&path.unwrap_or_else(|| folder.join(format!("{}.zst", cells[0]))));
            let offsets = executor_offsets(&session);
            (session, offsets)
        });
        if cells[1].is_empty() {
            assert_eq!(one(session, "SELECT count(*) FROM tasks"), cells[2], "{line}");
            continue;
        }
        let row: Vec<&str> = cells[1].split('.').collect();
        let read = one(
            session,
            &format!(
                "SELECT count(*), (min(start) - {offset}) / 1000, (max(finish) - {offset}) / 1000, sum(duration) / 1000 \
                 FROM tasks WHERE location = '{}/{}' AND depth = {}",
                row[0],
                row[1],
                &row[2][1..],
                offset = offsets[row[0]],
            ),
        );
        assert_eq!(read, cells[2..6].join(" "), "{line}");
    }
    assert!(!sessions.is_empty());
}

#[test]
fn dependencies_join_and_no_task_starts_before_its_predecessor_ends() {
    let Some(table) = shared("expected/tfprof/critical_path.csv") else { return };
    let Some(folder) = shared("traces/tfprof") else { return };
    for line in std::fs::read_to_string(table).expect("readable").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let session = open(&folder.join(cells[0]));
        let slack = one(
            &session,
            "SELECT count(*), min(t.start - s.finish) FROM links l JOIN tasks s ON s.task = l.source \
             JOIN tasks t ON t.task = l.target WHERE l.kind = 'dependency'",
        );
        assert_eq!(slack, format!("{} {}", cells[3], cells[10]), "{line}");
        let work = one(&session, "SELECT count(*), sum(duration), max(finish) - min(start) FROM tasks");
        assert_eq!(work, format!("{} {} {}", cells[2], cells[4], cells[9]), "{line}");
        assert_eq!(stat(&session, "dot_edges_not_joined"), "", "{line}");
    }
}

#[test]
fn critical_paths_equal_an_independent_graph_library() {
    let Some(lengths) = shared("expected/tfprof/critical_path.csv") else { return };
    let Some(steps) = shared("expected/tfprof/critical_path_tasks.csv") else { return };
    let Some(folder) = shared("traces/tfprof") else { return };
    let steps = std::fs::read_to_string(steps).expect("readable");
    let mut unique = 0;
    for line in std::fs::read_to_string(lengths).expect("readable").lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let session = open(&folder.join(cells[0]));
        let length = one(&session, "SELECT max(path_time), count(*) FROM critical_path()");
        assert_eq!(length, format!("{} {}", cells[5], cells[6]), "{line}");
        if cells[8] == "yes" {
            unique += 1;
            let ours = rows(&session, "SELECT step, name, duration FROM critical_path() ORDER BY step");
            let theirs: Vec<Vec<String>> = steps
                .lines()
                .map(|line| line.split(',').collect::<Vec<_>>())
                .filter(|step| step[0] == cells[0])
                .map(|step| step[1..4].iter().map(|&cell| cell.to_owned()).collect())
                .collect();
            assert_eq!(ours, theirs, "{}", cells[0]);
        }
    }
    assert!(unique > 5, "most of the paths are unique");
}

fn link_kinds(session: &Session) -> String {
    let kinds = rows(session, "SELECT kind, count(*) FROM links GROUP BY kind ORDER BY kind");
    kinds.iter().map(|row| row.join(" ")).collect::<Vec<_>>().join(", ")
}

#[test]
fn graphs_of_every_shape_join_by_unique_names() {
    let check = |name: &str, links: &str, not_joined: &str, joins: &str| {
        let session = open(&fixture("tfprof").join(name));
        assert_eq!(link_kinds(&session), links, "{name}");
        assert_eq!(stat(&session, "dot_edges_not_joined"), not_joined, "{name}");
        assert_eq!(stat(&session, "dot_join_edges"), joins, "{name}");
        assert_eq!(stat(&session, "unaccounted"), "", "{name}");
    };
    // A -> S, M, R, EM; S -> C; D -> MC; S1, S2 -> S3. C, MC choose D, E1, E2. S starts S1, S2. The unnamed do not join.
    check("nested_36.tfp", "dependency 8, spawn 2, weak 3", "lost 3", "info 1");
    check("nested_36.json", "dependency 8, spawn 2, weak 3", "lost 3", "info 1");
    // Modules left no trace: M's tasks ran twice, EM has none and leads to an unnamed task.
    check("nested_40.tfp", "dependency 6, spawn 2, weak 3", "lost 5", "info 1");
    check("nested_41.tfp", "dependency 6, spawn 2, weak 3", "lost 5", "info 1");
    check("nested_25.json", "dependency 6, spawn 2, weak 1", "lost 3", "info 5");
    // Everything but init and done ran several times.
    check("loop_40.tfp", "", "lost 5", "");
    check("names_40.tfp", "dependency 13", "lost 5", "");
    check("names_40.json", "dependency 13", "lost 5", "");
    // Two names are equal up to the 31 bytes that TFPX keeps.
    check("names_41.tfp", "dependency 10", "lost 8", "");
    check("wavefront_40.tfp", "dependency 1104", "", "");
    // 464 children of subflows, each drawn to its parent; of the names only the two outermost do not repeat.
    check("fib_36.tfp", "spawn 1", "", "info 464");
}

#[test]
fn a_graph_alone_has_tasks_without_times() {
    let session = open(&fixture("tfprof/nested_40.dot"));
    let counts = "SELECT count(*), count(start), count(finish), count(location), count(DISTINCT id) FROM tasks";
    assert_eq!(one(&session, counts), "19 0 0 0 19");
    assert_eq!(link_kinds(&session), "dependency 11, spawn 2, weak 3");
    assert_eq!(
        rows(
            &session,
            "SELECT name, kind, id LIKE 'p0x%' FROM tasks WHERE kind IN ('subflow', 'module') ORDER BY task"
        )
        .concat()
        .join(" "),
        "S subflow true M module true  module true EM module true"
    );
    let children = "SELECT c.name FROM tasks c JOIN tasks p ON p.task = c.parent WHERE p.name = 'S' ORDER BY c.name";
    assert_eq!(rows(&session, children).concat(), ["S1", "S2", "S3"]);
    assert_eq!(stat(&session, "unaccounted"), "");
}

#[test]
fn a_folder_opens_each_trace_once_and_no_companion() {
    let folder = TempDir::new().expect("a folder");
    for name in ["wavefront_40.tfp", "wavefront_40.json", "wavefront_40.dot", "execs_40.dot"] {
        std::fs::copy(fixture("tfprof").join(name), folder.path().join(name)).expect("copied");
    }
    let session = open(folder.path());
    let runs = rows(&session, "SELECT run, format, tasks, time_unit FROM runs ORDER BY run_number");
    let runs: Vec<String> = runs.iter().map(|row| row.join(" ")).collect();
    assert_eq!(runs, ["execs_40 tfprof 10 ns", "wavefront_40 tfprof 576 us", "wavefront_40_2 tfprof 576 ns"]);
    let links = rows(&session, "SELECT run, count(*) FROM links GROUP BY run ORDER BY run").concat();
    assert_eq!(links, ["wavefront_40", "1104", "wavefront_40_2", "1104"]);
}

#[test]
fn a_graph_can_be_named_and_lies_beside_compressed_traces() {
    let folder = TempDir::new().expect("a folder");
    let bytes = std::fs::read(fixture("tfprof/wavefront_40.tfp")).expect("a fixture");
    let packed = folder.path().join("w.tfp.zst");
    std::fs::write(&packed, zstd::encode_all(&bytes[..], 3).expect("memory")).expect("written");
    assert_eq!(link_kinds(&open(&packed)), "");
    let graph = fixture("tfprof/wavefront_40.dot");
    let named = open_with(&packed, 1, &[("tfprof.dot", &graph.to_string_lossy())]);
    assert_eq!(link_kinds(&named), "dependency 1104");
    std::fs::copy(graph, folder.path().join("w.dot")).expect("copied");
    assert_eq!(link_kinds(&open(&packed)), "dependency 1104");
}

fn t0(tasks: &[(&str, i64, i64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in [1i64, 0, 1000, 1, 1, tasks.len() as i64] {
        bytes.extend(number.to_le_bytes());
    }
    for (name, begin, end) in tasks {
        bytes.extend((name.len() as u64).to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend(1i32.to_le_bytes());
        bytes.extend((1000 + begin).to_le_bytes());
        bytes.extend((1000 + end).to_le_bytes());
    }
    bytes
}

fn with_graph(tasks: &[(&str, i64, i64)], graph: &str) -> (TempDir, PathBuf) {
    let graph = format!("digraph Taskflow {{\nsubgraph cluster_p0x1 {{\nlabel=\"Taskflow: t\";\n{graph}}}\n}}\n");
    let folder = folder_of(&[("t.tfp", t0(tasks)), ("t.dot", graph.into_bytes())]);
    let path = folder.path().join("t.tfp");
    (folder, path)
}

#[test]
fn whole_repeats_join_round_by_round_and_loops_do_not() {
    let graph = "p0xa[label=\"a\" ];\np0xa -> p0xb;\np0xb[label=\"b\" ];\n";
    // a [-)   [-)   [-)
    // b    [-)   [-)   [-)
    let rounds = [("a", 0, 2), ("b", 3, 5), ("a", 6, 8), ("b", 9, 11), ("a", 12, 14), ("b", 15, 17)];
    let (_folder, path) = with_graph(&rounds, graph);
    let session = open(&path);
    assert_eq!(
        rows(&session, "SELECT source, target FROM links ORDER BY source").concat(),
        ["0", "1", "2", "3", "4", "5"]
    );
    assert_eq!(stat(&session, "unaccounted"), "");
    // The second a begins before the first b ends: no rounds.
    let (_folder, path) = with_graph(&[("a", 0, 2), ("b", 3, 7), ("a", 6, 8), ("b", 9, 11)], graph);
    assert_eq!(link_kinds(&open(&path)), "");
    // A condition may have looped.
    let looped = format!("{graph}p0xb -> p0xa [style=dashed label=\"0\"];\n");
    let (_folder, path) = with_graph(&rounds, &looped);
    let session = open(&path);
    assert_eq!((link_kinds(&session), stat(&session, "dot_edges_not_joined")), (String::new(), "lost 2".to_owned()));
}

#[test]
fn modules_without_entry_are_replaced_by_what_is_inside() {
    // a -> M[x -> y, z] -> E[] -> b
    let graph = "p0xa[label=\"a\" ];\np0xa -> p0xc;\np0xc[shape=box3d, color=blue, label=\"M\"];\np0xc->p0xd;\n\
                 p0xd[shape=box3d, color=blue, label=\"E\"];\np0xd->p0xb;\np0xb[label=\"b\" ];\n}\n\
                 subgraph cluster_p0x2 {\nlabel=\"M\";\np0xe[label=\"x\" ];\np0xe -> p0xf;\np0xf[label=\"y\" ];\np0x9[label=\"z\" ];\n}\n\
                 subgraph cluster_p0x3 {\nlabel=\"E\";\n";
    let tasks = [("a", 0, 1), ("x", 2, 3), ("y", 4, 5), ("z", 6, 7), ("b", 8, 9)];
    let (_folder, path) = with_graph(&tasks, graph);
    let session = open(&path);
    let links = rows(
        &session,
        "SELECT s.name || ' ' || t.name FROM links l JOIN tasks s ON s.task = l.source JOIN tasks t ON t.task = l.target ORDER BY 1",
    );
    assert_eq!(links.concat(), ["a x", "a z", "x y", "y b", "z b"]);
    assert_eq!(stat(&session, "dot_edges_contracted"), "info 1");
    assert_eq!(stat(&session, "dot_modules_contracted"), "info 2");
    assert_eq!((stat(&session, "unaccounted"), stat(&session, "dot_edges_not_joined")), Default::default());
}

#[test]
fn json_that_was_written_anew_gives_the_same_tables() {
    let folder = TempDir::new().expect("a folder");
    for name in ["nested_40.json", "execs_40.json", "nested_27.json"] {
        let path = fixture("tfprof").join(name);
        let text = std::fs::read_to_string(&path).expect("a fixture");
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let original = open(&path);
        let locations = "SELECT location, parent, kind, clock, args FROM locations ORDER BY sort_index";
        for (form, text) in [
            ("pretty", serde_json::to_string_pretty(&value).expect("JSON")),
            ("compact", serde_json::to_string(&value).expect("JSON")),
        ] {
            let path = folder.path().join(format!("{form}_{name}"));
            std::fs::write(&path, text).expect("written");
            let anew = open(&path);
            assert_eq!(tasks(&anew), tasks(&original), "{form} {name}");
            assert_eq!(rows(&anew, locations), rows(&original, locations), "{form} {name}");
        }
    }
    let escaped = folder.path().join("escaped.json");
    std::fs::write(
        &escaped,
        r#"[ {"data": [ {"data": [ {"type": "static", "name": "say \"hi\"", "span": [1, 2]}, {"type": "odd", "name": "7_1", "span": [3, 4]} ],
               "worker": 7, "level": 0} ], "executor": "0"} ]"#,
    )
    .expect("written");
    let session = open(&escaped);
    assert_eq!(rows(&session, "SELECT name, kind FROM tasks").concat(), ["say \"hi\"", "static", "", "undefined"]);
    assert_eq!(stat(&session, "unknown_type"), "repaired 1");
}

#[test]
fn a_damaged_type_or_key_is_no_silent_loss() {
    let folder = TempDir::new().expect("a folder");
    let write = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let text = std::fs::read_to_string(fixture("tfprof").join("nested_40.json")).expect("a fixture");
    let whole = tasks(&open(&fixture("tfprof").join("nested_40.json"))).len();
    // The text is good JSON with a type that nobody knows.
    let odd = open(&write("odd.json", text.replacen("\"static\"", "\"st`tic\"", 1).as_bytes()));
    assert_eq!((tasks(&odd).len(), stat(&odd, "unknown_type")), (whole, "repaired 1".to_owned()));
    // All of them: nothing looks like the end of a task.
    let all = open(&write("all.json", text.replace("\"type\":\"", "\"type\":\"x").as_bytes()));
    assert_eq!((tasks(&all).len(), stat(&all, "unknown_type")), (whole, format!("repaired {whole}")));
    // No JSON any more: the name that swallowed a task is told.
    let broken = text.replacen("\"static\"", "\"static\u{1}", 1);
    let broken = open(&write("broken.json", broken.as_bytes()));
    assert_eq!((tasks(&broken).len(), stat(&broken, "task_in_name")), (whole - 1, "repaired 1".to_owned()));
    // An executor without the key of its tasks.
    let several = std::fs::read_to_string(fixture("tfprof").join("execs_40.json")).expect("a fixture");
    let (before, last) = several.split_at(several.rfind("\"executor\"").expect("executors"));
    let lost = write("lost.json", format!("{before}{}", last.replacen("\"data\"", "\"dava\"", 1)).as_bytes());
    let error = try_open(&lost, &[]).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("`\",\"data\":[` should stand here"), "{error}");
    // A mark of UTF-8 before the text.
    let marked = open(&write("marked.json", format!("\u{feff}{text}").as_bytes()));
    assert_eq!(tasks(&marked).len(), whole);
}

/// Several blocks: unnamed tasks whose block does not show their worker, and names of the same shape that a
/// program chose.
#[test]
fn unnamed_tasks_are_known_across_blocks_on_any_number_of_threads() {
    const TASKS: usize = 120_000;
    let mut text = "[\n{\"executor\":\"0\",\"data\":[".to_owned();
    let mut chosen = 0;
    for worker in [3, 12] {
        let comma = if worker == 3 { "" } else { "," };
        write!(text, "{comma}{{\"worker\":{worker},\"level\":0,\"data\":[").expect("memory");
        for index in 0..TASKS {
            let comma = if index == 0 { "" } else { "," };
            let (name, is_chosen) = match index % 1000 {
                7 => (format!("{worker}_{}", index + 1), true),
                8 => (format!("1_{index}"), true),
                9 => ("a,\"type\":\"b".to_owned(), true),
                _ => (format!("{worker}_{index}"), false),
            };
            chosen += usize::from(is_chosen);
            write!(text, "{comma}{{\"span\":[{index},{index}],\"name\":\"{name}\",\"type\":\"static\"}}")
                .expect("memory");
        }
        text.push_str("]}");
    }
    text.push_str("]}\n]\n");
    assert!(text.len() > 12 << 20);
    let folder = folder_of(&[("t.json", text)]);
    let mut digests = Vec::new();
    for threads in [1, 2, 3] {
        let session = open_with(&folder.path().join("t.json"), threads, &[]);
        assert_eq!(one(&session, "SELECT count(*) FROM tasks WHERE name <> ''"), chosen.to_string());
        assert_eq!(
            one(
                &session,
                "SELECT count(*), count(DISTINCT name) FROM tasks WHERE name LIKE '1\\_%' AND task % 1000 = 8"
            ),
            "240 120"
        );
        assert_eq!(
            one(&session, "SELECT max(start), count(*) FROM tasks WHERE location = 'E0/W12'"),
            "119999000 120000"
        );
        digests.push(rows(
            &session,
            "SELECT name, count(*), min(task), max(task), sum(task * (start / 1000 + 1)) FROM tasks GROUP BY name ORDER BY name",
        ));
    }
    assert!(digests.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn findings_say_what_was_special() {
    let check = |name: &str, what: &str, expected: &str| {
        assert_eq!(stat(&open(&fixture("tfprof").join(name)), what), expected, "{name}");
    };
    check("nested_25.json", "finish_before_start", "repaired 1");
    check("loop_30_tfprofpy.tfp", "executor_count_overwritten", "repaired 1");
    check("names_40.tfp", "name_not_utf8", "repaired 1");
    check("names_40.json", "name_not_utf8", "repaired 1");
    check("names_41.tfp", "name_not_utf8", "repaired 2");
    check("zero_40.tfp", "no_tasks", "info 1");
    check("zero_25.json", "no_tasks", "info 1");
    check("zero_41.tfp", "no_tasks", "info 1");
    check("nested_40.tfp", "types_guessed", "info 22");
    check("ties_gen.tfp", "records_read", "info 310");
    let session = open(&fixture("tfprof/zero_40.tfp"));
    let locations = rows(&session, "SELECT location, kind FROM locations ORDER BY sort_index");
    assert_eq!(locations.concat().join(" "), "E0 executor E0/W0 worker E0/W1 worker E0/W2 worker");
    let unfinished = open(&fixture("tfprof/nested_25.json"));
    assert_eq!(
        rows(&unfinished, "SELECT name, start, kind FROM tasks WHERE finish IS NULL").concat(),
        ["EM", "78000", "module"]
    );
}
