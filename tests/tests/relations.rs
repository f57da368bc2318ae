//! Relation functions against answers of other tools: nesting and self times of Chrome traces, clusters of TFProf's server,
//! releases and critical paths of PaRSEC's graphs.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::prelude::SessionContext;
use serde_json::value::RawValue;
use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::session::Session;
use tq_tests::shared;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// The rows of an answer as text; NULL is nothing.
fn texts(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let row = |batch: &RecordBatch, row: usize| -> Vec<String> {
        batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap()).collect()
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |number| row(batch, number))).collect()
}

fn ask(session: &SessionContext, sql: &str) -> Vec<Vec<String>> {
    let answer = runtime().block_on(crate::slt::answer(session, sql));
    texts(&answer.unwrap_or_else(|error| panic!("{sql}: {error:?}")).1)
}

fn register(session: &SessionContext, table: &str, columns: Vec<(&str, ArrayRef)>) {
    session.deregister_table(table).unwrap();
    session.register_batch(table, RecordBatch::try_from_iter(columns).unwrap()).unwrap();
}

fn integers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

/// A text file, also when it is only there with `.zst` behind its name.
fn read(path: &Path) -> Option<String> {
    if let Ok(text) = std::fs::read_to_string(path) {
        return Some(text);
    }
    let packed = std::fs::File::open(path.with_extension(format!("{}.zst", path.extension()?.to_str()?))).ok()?;
    let mut text = String::new();
    zstd::Decoder::new(packed).unwrap().read_to_string(&mut text).unwrap();
    Some(text)
}

/// The cells of a CSV file, its header first; quotes may hold commas and line ends.
fn csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut quoted) = (vec![], vec![], String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => cell.push(letters.next().unwrap()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            '\r' if !quoted => {}
            other => cell.push(other),
        }
    }
    rows
}

/// A CSV file as one map per row.
fn records(text: &str) -> Vec<HashMap<String, String>> {
    let mut rows = csv(text).into_iter();
    let header = rows.next().unwrap();
    rows.map(|row| header.iter().cloned().zip(row).collect()).collect()
}

/// A decimal number of microseconds as nanoseconds times 10^9.
fn decimal(text: &str) -> i128 {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (sign, digits) = mantissa.strip_prefix('-').map_or((1, mantissa), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let shift = 12 + exponent.parse::<i32>().unwrap() - fraction.len() as i32;
    let number: i128 = format!("{whole}{fraction}").parse().unwrap();
    sign * if shift >= 0 { number * 10i128.pow(shift as u32) } else { number / 10i128.pow(-shift as u32) }
}

/// Rounded to whole nanoseconds, halves to the even one.
fn rounded(number: i128) -> i64 {
    const UNIT: i128 = 1_000_000_000;
    let (whole, rest) = (number.div_euclid(UNIT), number.rem_euclid(UNIT));
    let up = rest * 2 > UNIT || (rest * 2 == UNIT && whole % 2 != 0);
    (whole + i128::from(up)) as i64
}

/// The complete events of a Chrome trace: (lane, name, start, finish) in the order of the file.
fn complete_events(text: &str) -> Vec<(String, String, i64, i64)> {
    type Object = HashMap<String, Box<RawValue>>;
    let events: Vec<Object> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).unwrap()
    } else {
        let top: Object = serde_json::from_str(text).unwrap();
        serde_json::from_str(top["traceEvents"].get()).unwrap()
    };
    let mut found = vec![];
    for event in &events {
        let raw = |key: &str| event.get(key).map(|value| value.get().trim_matches('"'));
        if let (Some("X"), Some(start), Some(duration)) = (raw("ph"), raw("ts"), raw("dur")) {
            let lane = format!("{}/{}", raw("pid").unwrap_or_default(), raw("tid").unwrap_or_default());
            let name = event.get("name").map_or_else(String::new, |name| serde_json::from_str(name.get()).unwrap());
            let (start, duration) = (decimal(start), decimal(duration));
            found.push((lane, name, rounded(start), rounded(start + duration)));
        }
    }
    found
}

#[test]
fn self_times_and_depths_equal_an_independent_computation() {
    let Some(traces) = shared("traces/chrome") else { return };
    let Some(answers) = shared("expected/perfetto/computed") else { return };
    let session = crate::slt::session();
    for stem in ["kineto/b200_eager", "dialects/clang14_ftime_trace", "dialects/viztracer_threads"] {
        let Some(text) = read(&traces.join(format!("{stem}.json"))) else { panic!("{stem} cannot be read") };
        let events = complete_events(&text);
        register(
            &session,
            "tasks",
            vec![
                ("task", integers(0..events.len() as i64)),
                ("location", Arc::new(StringArray::from_iter_values(events.iter().map(|event| &event.0)))),
                ("name", Arc::new(StringArray::from_iter_values(events.iter().map(|event| &event.1)))),
                ("start", integers(events.iter().map(|event| event.2))),
                ("finish", integers(events.iter().map(|event| event.3))),
            ],
        );
        let name = stem.rsplit('/').next().unwrap();
        let expected = csv(&read(&answers.join(format!("{name}.names.csv"))).unwrap());
        let mut expected: Vec<Vec<String>> = expected[1..].to_vec();
        expected.sort();
        let by_name = "SELECT name, count(*), sum(duration), sum(self_time) FROM self_time(tasks) GROUP BY name";
        let mut found = ask(&session, by_name);
        found.sort();
        assert_eq!(found, expected, "{stem}");
        // The tree is made of the same: over all paths, the self times of a name add up to those of its tasks.
        let from_tree = "SELECT name, sum(count), sum(self_time) FROM call_tree(tasks) GROUP BY name";
        let mut found = ask(&session, from_tree);
        found.sort();
        let expected: Vec<Vec<String>> =
            expected.iter().map(|row| vec![row[0].clone(), row[1].clone(), row[3].clone()]).collect();
        assert_eq!(found, expected, "{stem}");
        let expected = csv(&read(&answers.join(format!("{name}.depth.csv"))).unwrap());
        let expected: BTreeMap<String, String> =
            expected[1..].iter().map(|row| (row[0].clone(), row[1].clone())).collect();
        let by_depth = "SELECT coalesce(CAST(depth AS VARCHAR), 'overlap'), count(*) FROM self_time(tasks) GROUP BY 1";
        let found: BTreeMap<String, String> =
            ask(&session, by_depth).into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
        assert_eq!(found, expected, "{stem}");
    }
}

/// A segment: row, name, kind, count, start and finish in microseconds.
type Segment = (String, String, String, String, i64, i64);

#[test]
fn clusters_equal_those_of_the_profilers_server() {
    let Some(traces) = shared("traces/tfprof") else { return };
    let Some(answers) = shared("expected/tfprof/queries.csv") else { return };
    let folder = answers.parent().unwrap();
    let mut rows_of: HashMap<String, Vec<String>> = HashMap::new();
    for row in records(&read(&folder.join("rows.csv")).unwrap()) {
        rows_of.entry(row["query"].clone()).or_default().push(row["row"].clone());
    }
    let mut segments_of: HashMap<String, Vec<Segment>> = HashMap::new();
    for segment in records(&read(&folder.join("segments.csv")).unwrap()) {
        let row = rows_of[&segment["query"]][segment["row_index"].parse::<usize>().unwrap()].clone();
        let us = |name: &str| segment[name].parse::<i64>().unwrap();
        let kept = |name: &str| segment[name].clone();
        let found = (row, kept("name"), kept("type"), kept("count"), us("beg_us"), us("end_us"));
        segments_of.entry(segment["query"].clone()).or_default().push(found);
    }
    let queries = records(&read(&answers).unwrap());
    let (mut sessions, mut compared): (HashMap<String, (Session, i64)>, usize) = (HashMap::new(), 0);
    for query in queries.iter().filter(|query| query["view"] == "cluster" && query["tie_dependent"] == "no") {
        let (session, origin) = sessions.entry(query["trace"].clone()).or_insert_with(|| {
            let mut open = OpenOptions::new(1 << 30, 2);
            open.traces.push(TraceSpec { name: None, path: traces.join(format!("{}.tfp", query["trace"])) });
            // The one trace from whose numbers of types the release cannot be told.
            if query["trace"] == "fib_40" {
                open.import.insert("tfprof.types".to_owned(), "3.9".to_owned());
            }
            let session = Session::open(&open).unwrap();
            // The server counts from the least of origin and first start.
            let first = sum_of(&session, "SELECT least(0, min(start)) FROM tasks");
            (session, first)
        });
        let bound = |name: &str| match query[name].as_str() {
            "" => "NULL".to_owned(),
            us => (*origin + us.parse::<f64>().unwrap().round() as i64 * 1000).to_string(),
        };
        let wanted: Vec<String> =
            query["rows"].split(';').filter(|row| !row.is_empty()).map(|row| format!("'{row}'")).collect();
        let row = "replace(location, '/', '.') || '.L' || depth";
        let rows = if wanted.is_empty() { String::new() } else { format!(" WHERE {row} IN ({})", wanted.join(", ")) };
        let sql = format!(
            "SELECT {row}, name, kind, count, start, finish \
             FROM cluster_view((SELECT * FROM tasks{rows}), {}, {}, {})",
            query["limit"],
            bound("zoom_beg_us"),
            bound("zoom_end_us")
        );
        let batches = runtime().block_on(async { session.sql(&sql).await.unwrap().collect().await.unwrap() });
        let us = |ticks: &str| (ticks.parse::<i64>().unwrap() - *origin) / 1000;
        let segment = |row: Vec<String>| {
            let kept = |place: usize| row[place].clone();
            (kept(0), kept(1), kept(2), kept(3), us(&row[4]), us(&row[5]))
        };
        let mut found: Vec<Segment> = texts(&batches).into_iter().map(segment).collect();
        let mut expected = segments_of.get(&query["query"]).cloned().unwrap_or_default();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{}: {sql}", query["query"]);
        compared += 1;
    }
    assert_eq!(compared, 432);
}

fn sum_of(session: &Session, sql: &str) -> i64 {
    let batches = runtime().block_on(async { session.sql(sql).await.unwrap().collect().await.unwrap() });
    batches[0].column(0).as_primitive::<Int64Type>().value(0)
}

#[test]
fn releases_and_paths_equal_those_of_an_independent_graph_library() {
    let Some(answers) = shared("expected/parsec") else { return };
    let session = crate::slt::session();
    let mut compared = 0;
    let mut folders: Vec<_> = std::fs::read_dir(&answers).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let (Some(tasks), Some(edges)) = (read(&folder.join("tasks.csv")), read(&folder.join("edges.csv"))) else {
            continue;
        };
        let tasks = records(&tasks);
        // Nodes without a recorded execution have no times: nothing to compare.
        if tasks.is_empty() || tasks.iter().any(|task| !task.contains_key("ready_ns") || task["end_ns"].is_empty()) {
            continue;
        }
        let number: HashMap<&str, i64> = tasks.iter().map(|task| task["task"].as_str()).zip(0..).collect();
        let column = |name: &str| integers(tasks.iter().map(|task| task[name].parse::<i64>().unwrap()));
        register(
            &session,
            "tasks",
            vec![
                ("task", integers(0..tasks.len() as i64)),
                ("start", column("start_ns")),
                ("finish", column("end_ns")),
                ("duration", column("duration_ns")),
            ],
        );
        let edges = records(&edges);
        let links: Vec<(i64, i64)> = edges
            .iter()
            .filter_map(|edge| Some((*number.get(edge["source"].as_str())?, *number.get(edge["target"].as_str())?)))
            .collect();
        register(
            &session,
            "links",
            vec![
                ("source", integers(links.iter().map(|link| link.0))),
                ("target", integers(links.iter().map(|link| link.1))),
            ],
        );
        let found = ask(
            &session,
            "SELECT ready.ready_time, ready.delay, CAST(on_path AS INT) FROM ready(tasks, links) \
             JOIN slack(tasks, links) USING (task) ORDER BY ready.task",
        );
        let expected: Vec<Vec<String>> = tasks
            .iter()
            .map(|task| {
                vec![task["ready_ns"].clone(), task["ready_delay_ns"].clone(), task["on_critical_path"].clone()]
            })
            .collect();
        assert_eq!(found, expected, "{}", folder.display());
        compared += 1;
    }
    assert!(compared >= 5, "{compared} traces of PaRSEC were compared");
}
