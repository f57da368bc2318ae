//! Relation functions against answers of other tools: nesting and self times of Chrome traces, clusters of TFProf's server,
//! releases and critical paths of PaRSEC's graphs; and what must hold for each of them: filters, the order of rows, memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::prelude::SessionContext;
use serde_json::value::RawValue;
use tq_engine::session::Session;
use tq_tests::{Random, cells, csv, records, shared, text_of, wait};

fn ask(session: &SessionContext, sql: &str) -> Vec<Vec<String>> {
    let answer = wait(crate::slt::answer(session, sql));
    cells(&answer.unwrap_or_else(|error| panic!("{sql}: {error:?}")).1, "")
}

fn register(session: &SessionContext, table: &str, columns: Vec<(&str, ArrayRef)>) {
    session.deregister_table(table).unwrap();
    session.register_batch(table, RecordBatch::try_from_iter(columns).unwrap()).unwrap();
}

fn integers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
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
        let Some(text) = text_of(&traces.join(format!("{stem}.json"))) else { panic!("{stem} cannot be read") };
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
        let expected = csv(&text_of(&answers.join(format!("{name}.names.csv"))).unwrap());
        let mut expected: Vec<Vec<String>> = expected[1..].to_vec();
        expected.sort();
        // What was computed leaves a task that crosses another its whole duration; so that is made of parents and durations here.
        let by_name = "WITH s AS (SELECT * FROM self_time(tasks)), \
                         i AS (SELECT parent, sum(duration) AS inside FROM s GROUP BY parent) \
                       SELECT s.name, count(*), sum(s.duration), sum(s.duration - coalesce(i.inside, 0)) \
                       FROM s LEFT JOIN i ON i.parent = s.task GROUP BY s.name";
        let mut found = ask(&session, by_name);
        found.sort();
        assert_eq!(found, expected, "{stem}");
        let own = "SELECT name, count(*), sum(self_time) FROM self_time(tasks) GROUP BY name";
        let mut own = ask(&session, own);
        own.sort();
        let crosses = ask(&session, "SELECT count(*) FROM self_time(tasks) WHERE depth IS NULL") != [["0"]];
        if !crosses {
            let expected: Vec<Vec<String>> =
                expected.iter().map(|row| vec![row[0].clone(), row[1].clone(), row[3].clone()]).collect();
            assert_eq!(own, expected, "{stem}");
        }
        // However they cross, a lane is never busy for longer than it is.
        let odd = "SELECT count(*) FROM (SELECT location FROM self_time(tasks) GROUP BY location \
                   HAVING sum(self_time) <> busy(start, finish))";
        assert_eq!(ask(&session, odd), [["0"]], "{stem}");
        // The tree is made of the same: over all paths, the self times of a name add up to those of its tasks.
        let from_tree = "SELECT name, sum(count), sum(self_time) FROM call_tree(tasks) GROUP BY name";
        let mut found = ask(&session, from_tree);
        found.sort();
        assert_eq!(found, own, "{stem}");
        let expected = csv(&text_of(&answers.join(format!("{name}.depth.csv"))).unwrap());
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

/// What Taskflow's profiler calls a row of its picture.
const SERVERS_ROW: &str = "replace(location, '/', '.') || '.L' || depth";

/// A question that was put to the profiler's server, as SQL.
struct Question {
    is_cluster: bool,
    /// The answer depends on the order of equal keys.
    is_tied: bool,
    /// Conditions of rows and window.
    tasks: String,
    segments: String,
}

impl Question {
    /// The server counts from `origin`, in microseconds.
    fn of(query: &BTreeMap<String, String>, origin: i64) -> Question {
        let bound = |name: &str| match query[name].as_str() {
            "" => None,
            us => Some(origin + us.parse::<f64>().unwrap().round() as i64 * 1000),
        };
        let (from, to) = (bound("zoom_beg_us"), bound("zoom_end_us"));
        let wanted: Vec<String> =
            query["rows"].split(';').filter(|row| !row.is_empty()).map(|row| format!("'{row}'")).collect();
        let rows = if wanted.is_empty() { "true".into() } else { format!("{SERVERS_ROW} IN ({})", wanted.join(", ")) };
        let (first, last) = (from.unwrap_or(i64::MIN + 1), to.unwrap_or(i64::MAX));
        let tasks = format!("{rows} AND finish >= {first} AND start <= {last}");
        let is_cluster = query["view"] == "cluster";
        let (columns, limit) = (format!("{SERVERS_ROW} AS row, name, kind"), &query["limit"]);
        let null = |bound: Option<i64>| bound.map_or("NULL".to_owned(), |ticks| ticks.to_string());
        let segments = match is_cluster {
            true => format!(
                "SELECT {columns}, count, start, finish \
                 FROM cluster_view((SELECT * FROM tasks WHERE {rows}), {limit}, {}, {})",
                null(from),
                null(to)
            ),
            false => format!(
                "SELECT {columns}, 1 AS count, start, finish FROM tasks WHERE {tasks} ORDER BY duration DESC, task LIMIT {limit}"
            ),
        };
        Question { is_cluster, is_tied: query["tie_dependent"] == "yes", tasks, segments }
    }

    /// Whole microseconds by row and kind: of all tasks of a cluster, of those that are shown otherwise.
    fn loads(&self) -> String {
        let shown = if self.is_cluster { "tasks" } else { "segments" };
        let (row, condition) = if self.is_cluster { (SERVERS_ROW, self.tasks.as_str()) } else { ("row", "true") };
        format!(
            "WITH segments AS ({}) SELECT {row}, kind, sum((finish - start) / 1000) FROM {shown} WHERE {condition} GROUP BY 1, 2",
            self.segments
        )
    }
}

#[test]
fn both_views_equal_those_of_the_profilers_server() {
    let Some(traces) = shared("traces/tfprof") else { return };
    let Some(answers) = shared("expected/tfprof/queries.csv") else { return };
    let folder = answers.parent().unwrap();
    let mut rows_of: HashMap<String, Vec<String>> = HashMap::new();
    let mut loads_of: HashMap<String, Vec<Vec<String>>> = HashMap::new();
    for row in records(&text_of(&folder.join("rows.csv")).unwrap()) {
        rows_of.entry(row["query"].clone()).or_default().push(row["row"].clone());
        for load in row["load_us_by_type"].split(';').filter(|load| !load.is_empty()) {
            let (kind, us) = load.split_once('=').unwrap();
            let load = vec![row["row"].clone(), kind.to_owned(), us.to_owned()];
            loads_of.entry(row["query"].clone()).or_default().push(load);
        }
    }
    let mut segments_of: HashMap<String, Vec<Segment>> = HashMap::new();
    for segment in records(&text_of(&folder.join("segments.csv")).unwrap()) {
        let row = rows_of[&segment["query"]][segment["row_index"].parse::<usize>().unwrap()].clone();
        let us = |name: &str| segment[name].parse::<i64>().unwrap();
        let kept = |name: &str| segment[name].clone();
        let found = (row, kept("name"), kept("type"), kept("count"), us("beg_us"), us("end_us"));
        segments_of.entry(segment["query"].clone()).or_default().push(found);
    }
    let (mut sessions, mut compared): (HashMap<String, (Session, i64)>, usize) = (HashMap::new(), 0);
    // `many_40` was not examined for ties.
    for query in records(&text_of(&answers).unwrap()).iter().filter(|query| query["tie_dependent"] != "unknown") {
        let (session, origin) = sessions.entry(query["trace"].clone()).or_insert_with(|| {
            let mut open = tq_tests::options(&traces.join(format!("{}.tfp", query["trace"])));
            // The one trace from whose numbers of types the release cannot be told.
            if query["trace"] == "fib_40" {
                open.import.insert("tfprof.types".to_owned(), "3.9".to_owned());
            }
            let session = Session::open(&open).unwrap();
            // The server counts from the least of origin and first start.
            let first = sum_of(&session, "SELECT least(0, min(start)) FROM tasks");
            (session, first)
        });
        let question = Question::of(query, *origin);
        let rows = |sql: &str| cells(&tq_tests::ask(session, sql), "");
        let us = |ticks: &str| (ticks.parse::<i64>().unwrap() - *origin) / 1000;
        let segment = |row: Vec<String>| {
            let kept = |place: usize| row[place].clone();
            (kept(0), kept(1), kept(2), kept(3), us(&row[4]), us(&row[5]))
        };
        let mut found: Vec<Segment> = rows(&question.segments).into_iter().map(segment).collect();
        let mut expected = segments_of.get(&query["query"]).cloned().unwrap_or_default();
        let name = &query["query"];
        if question.is_tied {
            let count = |segments: &[Segment]| -> i64 { segments.iter().map(|s| s.3.parse::<i64>().unwrap()).sum() };
            assert_eq!((found.len(), count(&found)), (expected.len(), count(&expected)), "{name}");
        } else {
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{name}: {}", question.segments);
        }
        if question.is_cluster || !question.is_tied {
            let mut loads = rows(&question.loads());
            loads.retain(|load| load[2] != "0");
            let expected = loads_of.get(name).cloned().unwrap_or_default();
            assert_eq!(sorted(loads), sorted(expected), "{name}: {}", question.loads());
        }
        compared += 1;
    }
    assert_eq!(compared, 894);
}

fn sum_of(session: &Session, sql: &str) -> i64 {
    let batches = wait(async { session.sql(sql).await.unwrap().collect().await.unwrap() });
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
        let (Some(tasks), Some(edges)) = (text_of(&folder.join("tasks.csv")), text_of(&folder.join("edges.csv")))
        else {
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

/// A call of every relation function on `tasks`, `links`, `messages` and `locations`.
const CALLS: [&str; 18] = [
    "critical_path(tasks, links)",
    "self_time(tasks)",
    "floating_rows(tasks)",
    "call_tree(tasks)",
    "ancestors(tasks, (SELECT run, task FROM tasks))",
    "descendants(tasks, (SELECT run, task FROM tasks))",
    "descendants(tasks, (SELECT task FROM tasks WHERE task % 3 = 0))",
    "gaps(tasks)",
    "intersect(tasks, (SELECT * FROM tasks WHERE task % 2 = 0))",
    "subtract(tasks, (SELECT * FROM tasks WHERE task % 2 = 0))",
    "subtract(tasks, (SELECT 20 AS start, 40 AS finish))",
    "concurrency(tasks)",
    "timeline(tasks, 7)",
    "ready(tasks, links)",
    "slack(tasks, links)",
    "cluster_view(tasks, 9)",
    "message_matrix(messages, locations)",
    "what_if(tasks, links, (SELECT run, task, duration / 2 AS duration FROM tasks WHERE task % 4 = 0))",
];

/// A task: number, start, finish, location, name, duration.
type MadeUp = (i64, Option<i64>, Option<i64>, i64, i64, i64);

/// Tables of a few runs: many ties, empty spans, NULLs, repeated links. With `cut`, rows come in any order and in many
/// batches of several partitions; without, as one batch.
fn register_traces(session: &SessionContext, seed: u64, rows: usize, cut: bool) {
    use datafusion::arrow::compute::take;
    use datafusion::datasource::MemTable;
    let mut numbers = Random::new(seed);
    let mut random = |limit| numbers.below(limit) as i64;
    let run = |task: i64| ["a", "b", "c"][(task % 3) as usize];
    let some = |value: i64, null: bool| (!null).then_some(value);
    let mut tasks: Vec<MadeUp> = vec![];
    for task in 0..rows as i64 {
        let start = random(60);
        let (start_unknown, endless) = (random(20) == 0, random(20) == 0);
        let length = random(9);
        tasks.push((task, some(start, start_unknown), some(start + length, endless), random(3), random(3), length));
    }
    let links: Vec<(i64, i64)> = (3..rows as i64).map(|target| (target - 3 * (1 + random(4)), target)).collect();
    let words = |values: Vec<Option<String>>| Arc::new(StringArray::from(values)) as ArrayRef;
    let optional = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let run_of_tasks = || words(tasks.iter().map(|task| Some(run(task.0).to_owned())).collect());
    // A parent is an earlier task of the same run.
    let parent = |task: i64| (task >= 3 && task % 5 != 0).then(|| task - 3 * (1 + task % 2).min(task / 3));
    let tables: [(&str, Vec<(&str, ArrayRef)>); 4] = [
        (
            "tasks",
            vec![
                ("run", run_of_tasks()),
                ("task", integers(tasks.iter().map(|task| task.0))),
                ("parent", optional(tasks.iter().map(|task| parent(task.0)).collect())),
                (
                    "name",
                    words(tasks.iter().map(|task| some(task.4, task.4 == 2).map(|name| format!("f{name}"))).collect()),
                ),
                (
                    "location",
                    words(
                        tasks
                            .iter()
                            .map(|task| some(task.3, task.0 % 17 == 0).map(|lane| format!("w{lane}")))
                            .collect(),
                    ),
                ),
                ("start", optional(tasks.iter().map(|task| task.1).collect())),
                ("finish", optional(tasks.iter().map(|task| task.2).collect())),
                ("duration", integers(tasks.iter().map(|task| task.5))),
            ],
        ),
        (
            "links",
            vec![
                ("run", words(links.iter().map(|link| Some(run(link.1).to_owned())).collect())),
                ("source", integers(links.iter().map(|link| link.0))),
                ("target", integers(links.iter().map(|link| link.1))),
            ],
        ),
        (
            "messages",
            vec![
                ("run", run_of_tasks()),
                ("source", words(tasks.iter().map(|task| Some(format!("w{}", task.3))).collect())),
                ("target", words(tasks.iter().map(|task| Some(format!("w{}", task.4))).collect())),
                ("bytes", integers(tasks.iter().map(|task| task.5))),
            ],
        ),
        (
            "locations",
            vec![
                ("run", words(["a", "b", "c", "c"].map(|run| Some(run.to_owned())).to_vec())),
                ("location", words(["w0", "w1", "w2", "silent"].map(|lane| Some(lane.to_owned())).to_vec())),
            ],
        ),
    ];
    for (name, columns) in tables {
        let mut table =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
                .unwrap();
        let mut partitions = vec![vec![table.clone()]];
        if cut {
            let mut order: Vec<i64> = (0..table.num_rows() as i64).collect();
            order.sort_by_key(|row| (row * 7919 + seed as i64) % 101);
            let order = Int64Array::from(order);
            let columns = table.columns().iter().map(|column| take(column, &order, None).unwrap()).collect();
            table = RecordBatch::try_new(table.schema(), columns).unwrap();
            let batch = |from: usize| table.slice(from, 5.min(table.num_rows() - from));
            let batches: Vec<RecordBatch> = (0..table.num_rows()).step_by(5).map(batch).collect();
            partitions = vec![vec![]; 3];
            batches.into_iter().enumerate().for_each(|(number, batch)| partitions[number % 3].push(batch));
        }
        session.deregister_table(name).unwrap();
        session.register_table(name, Arc::new(MemTable::try_new(table.schema(), partitions).unwrap())).unwrap();
    }
}

fn sorted(mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    rows.sort();
    rows
}

/// Where a filter is put must not be seen: above a call, it says what it says of the call's rows.
#[test]
fn filters_above_a_call_do_not_change_its_answer() {
    let session = crate::slt::session();
    for seed in 0..1 {
        register_traces(&session, seed, 60, false);
        for call in CALLS {
            session.deregister_table("answer").unwrap();
            ask(&session, &format!("CREATE TABLE answer AS SELECT * FROM {call}"));
            let columns: Vec<String> =
                ask(&session, "SELECT column_name FROM information_schema.columns WHERE table_name = 'answer'")
                    .into_iter()
                    .map(|mut row| row.swap_remove(0))
                    .collect();
            let mut filters =
                vec!["run = 'b'".to_owned(), "run <> 'a' AND length(run) = 1".to_owned(), "false".to_owned()];
            filters.extend(columns.iter().map(|column| format!("{column} = (SELECT min({column}) FROM answer)")));
            for column in ["task", "start", "location", "duration"]
                .iter()
                .filter(|name| columns.iter().any(|column| column == *name))
            {
                filters.push(format!("run = 'c' AND {column} IS NOT NULL"));
                filters.push(format!("run = 'c' OR {column} IS NULL"));
            }
            for filter in filters {
                let above = ask(&session, &format!("SELECT * FROM {call} WHERE {filter}"));
                let after = ask(&session, &format!("SELECT * FROM answer WHERE {filter}"));
                assert_eq!(sorted(above), sorted(after), "{call} WHERE {filter}, seed {seed}");
            }
        }
    }
}

/// A query that reads one column, or none, sees the rows of one that reads all: what is not read is not asked for.
#[test]
fn columns_that_are_not_read_do_not_change_the_others() {
    let session = crate::slt::session();
    register_traces(&session, 3, 60, false);
    let explained = "explain_change(tasks, links, (SELECT NULL AS target_task WHERE false), base => 'a', new => 'b')";
    let compared = "compare_runs(tasks, base => 'a', new => 'b')";
    for call in CALLS.iter().chain([&explained, &compared]) {
        session.deregister_table("answer").unwrap();
        ask(&session, &format!("CREATE TABLE answer AS SELECT * FROM {call}"));
        let columns =
            ask(&session, "SELECT column_name FROM information_schema.columns WHERE table_name = 'answer'").concat();
        for what in columns.iter().map(String::as_str).chain(["count(*)"]) {
            let alone = ask(&session, &format!("SELECT {what} FROM {call}"));
            let among = ask(&session, &format!("SELECT {what} FROM answer"));
            assert_eq!(sorted(alone), sorted(among), "SELECT {what} FROM {call}");
        }
    }
}

#[test]
fn the_order_of_rows_and_the_cut_of_batches_do_not_matter() {
    let session = crate::slt::session();
    for seed in 10..13 {
        register_traces(&session, seed, 90, false);
        let whole: Vec<_> = CALLS.iter().map(|call| sorted(ask(&session, &format!("SELECT * FROM {call}")))).collect();
        register_traces(&session, seed, 90, true);
        for (call, whole) in CALLS.iter().zip(whole) {
            assert_eq!(sorted(ask(&session, &format!("SELECT * FROM {call}"))), whole, "{call}, seed {seed}");
        }
    }
}

/// Runs do not mix: the answers for all runs are those for each one.
#[test]
fn the_answer_for_several_runs_is_that_for_each() {
    let session = crate::slt::session();
    register_traces(&session, 20, 90, false);
    for call in CALLS {
        let all = sorted(ask(&session, &format!("SELECT * FROM {call}")));
        let mut each = vec![];
        for run in ["a", "b", "c"] {
            let of_run = |table: &str| format!("{table} AS (SELECT * FROM {table} WHERE run = '{run}')");
            let tables = ["tasks", "links", "messages", "locations"].map(of_run).join(", ");
            each.extend(ask(&session, &format!("WITH {tables} SELECT * FROM {call}")));
        }
        assert_eq!(sorted(each), all, "{call}");
    }
}

/// A session whose queries may take so many bytes.
fn session_within(limit: usize) -> SessionContext {
    use datafusion::execution::SessionStateBuilder;
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::execution::runtime_env::RuntimeEnvBuilder;
    use datafusion::prelude::SessionConfig;
    let pool = Arc::new(GreedyMemoryPool::new(limit));
    let runtime_env = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let config = SessionConfig::new().with_target_partitions(2);
    let builder = SessionStateBuilder::new().with_default_features().with_config(config).with_runtime_env(runtime_env);
    let mut session = SessionContext::new_with_state(tq_engine::sql::configure(builder).build());
    tq_engine::session::register_functions(&mut session, tq_udfs::ticks::Tick::Nanosecond).unwrap();
    session
}

/// The rows and notes of a statement, both sorted.
fn answer_with_notes(session: &SessionContext, sql: &str) -> (Vec<Vec<String>>, Vec<String>) {
    let statement = tq_engine::sql::parse(sql).unwrap().remove(0);
    let (rows, notes) = wait(async {
        let query = tq_engine::sql::execute(session, &statement, None).await.unwrap();
        let notes = query.notes();
        let rows = query.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        (rows, notes.take())
    });
    let mut notes: Vec<String> = notes.into_iter().map(|note| note.text).collect();
    notes.sort();
    (sorted(cells(&rows, "")), notes)
}

/// Where memory is short, what is independent of each other is computed one after the other.
#[test]
fn answers_in_parts_are_those_of_the_whole() {
    let words = "(SELECT * REPLACE (arrow_cast(run, 'Dictionary(Int32, Utf8)') AS run, arrow_cast(location, 'Dictionary(UInt8, Utf8)') \
                 AS location, arrow_cast(name, 'Dictionary(Int32, Utf8View)') AS name) FROM tasks)";
    let few = "(SELECT * FROM tasks WHERE task % 50 = 0)";
    // Spans that hardly overlap, so that pairs are few.
    let apart = |step: u64| {
        format!(
            "(SELECT run, location, task, task * 10 + {step} AS start, task * 10 + {step} + 7 AS finish FROM tasks)"
        )
    };
    let (a, b) = (apart(0), apart(5));
    let calls = [
        format!("self_time({words})"),
        format!("floating_rows({words})"),
        "gaps(tasks)".to_owned(),
        format!("gaps({words}, ends => true)"),
        "timeline(tasks, bins => 7)".to_owned(),
        format!("call_tree({words})"),
        "cluster_view((SELECT *, task % 2 AS depth FROM tasks), limit => 40)".to_owned(),
        format!("intersect({a}, {b})"),
        format!("intersect({a}, (SELECT 100 AS start, 90000 AS finish))"),
        // Only the second input is too large: the first one is divided after it was read.
        format!("intersect((SELECT * FROM {a} AS some WHERE task % 50 = 0), {b})"),
        format!("subtract({a}, {b})"),
        format!("subtract(tasks, {few}, by => 'run')"),
    ];
    are_those_of_the_whole(&calls, 3 << 20);
}

/// Answers to calls over 40 000 made-up tasks are the same within a limit, under which the functions put rows into files.
fn are_those_of_the_whole(calls: &[String], limit: usize) {
    let (whole, parts) = (session_within(1 << 30), session_within(limit));
    for session in [&whole, &parts] {
        register_traces(session, 40, 40_000, true);
    }
    for call in calls {
        let sql = format!("SELECT * FROM {call}");
        assert_eq!(answer_with_notes(&parts, &sql), answer_with_notes(&whole, &sql), "{call}");
        let spilled = ask(&parts, &format!("EXPLAIN ANALYZE SELECT count(*) FROM {call}")).concat().concat();
        let function = spilled.split("RelationExec").nth(1).unwrap_or_default();
        assert!(function.contains("spill_count=") && !function.contains("spill_count=0"), "{call}: {spilled}");
        assert_eq!(parts.runtime_env().memory_pool.reserved(), 0, "{call}");
    }
}

/// Where memory is short, each run has its turn, and of its tasks only what the computation needs is kept.
#[test]
fn answers_by_run_are_those_of_all_runs() {
    let words = "(SELECT * REPLACE (arrow_cast(run, 'Dictionary(Int32, Utf8)') AS run, arrow_cast(name, 'Dictionary(Int32, Utf8View)') AS name) \
                 FROM tasks)";
    // Ids in a range without holes, and far apart.
    let ids = |of: &str| {
        format!(
            "(SELECT * REPLACE (task {of} AS task) FROM tasks), (SELECT * REPLACE (source {of} AS source, target {of} AS target) FROM links)"
        )
    };
    let strange = "(SELECT * FROM links WHERE run <> 'b' UNION ALL SELECT 'z', 1, 2 UNION ALL SELECT 'a', 0, 77777777 UNION ALL \
                   SELECT 'a', NULL, 3)";
    let some = "(SELECT * REPLACE (CASE WHEN task % 1000 = 999 THEN NULL ELSE task END AS task, \
                CASE WHEN task % 7 = 6 THEN NULL ELSE duration END AS duration) FROM tasks)";
    let messages = "(SELECT run, source AS source_task, target AS target_task FROM links WHERE target % 7 = 0)";
    let spread = "(SELECT * REPLACE (task * 10 AS start, task * 10 + duration * 5 AS finish) FROM tasks)";
    let paths = [
        format!("critical_path({})", ids("/ 3")),
        format!("critical_path({})", ids("* 1000")),
        format!("critical_path({words}, links)"),
        format!("critical_path({some}, {strange})"),
        "critical_path((SELECT * FROM tasks), (SELECT *, CASE WHEN target % 2 = 0 THEN 'weak' ELSE 'flow' END AS kind FROM links), \
         break_weak => true)"
            .to_owned(),
        format!("ready({})", ids("* 1000")),
        format!("ready({some}, {strange})"),
        // Only links are too many: tasks were read ahead then.
        "critical_path((SELECT * FROM tasks WHERE task % 50 < 3), links)".to_owned(),
        "ready((SELECT run, task, start, finish FROM tasks WHERE task % 50 < 3), links)".to_owned(),
    ];
    are_those_of_the_whole(&paths, 3 << 20);
    let graphs = [
        format!("slack({})", ids("/ 3")),
        format!("slack({words}, {strange})"),
        "what_if(tasks, links, (SELECT run, task, duration / 2 AS duration FROM tasks WHERE task % 400 = 0))"
            .to_owned(),
        format!(
            "what_if({words}, {strange}, (SELECT 99999999 AS task, 1 AS duration UNION ALL SELECT 300, 2 UNION ALL SELECT NULL, 3))"
        ),
    ];
    are_those_of_the_whole(&graphs, 4 << 20);
    let executed = [
        format!("executed_path({words}, links, (SELECT * FROM {messages} AS none WHERE false))"),
        format!("executed_path({spread}, {strange}, {messages})"),
    ];
    are_those_of_the_whole(&executed, 6 << 20);
    let of_one = "(SELECT * FROM tasks WHERE run = 'a')";
    let dense = format!(
        "(SELECT * REPLACE (task / 3 AS task) FROM {of_one} AS a), (SELECT run, source / 3 AS source, target / 3 AS target FROM links)"
    );
    let one_run =
        [format!("critical_path({of_one}, links)"), format!("critical_path({dense})"), format!("ready({dense})")];
    are_those_of_the_whole(&one_run, 1 << 20);
}

/// The same of functions that keep the rows of a run.
#[test]
fn answers_by_run_keep_the_rows_of_a_run() {
    let words = "(SELECT * REPLACE (arrow_cast(run, 'Dictionary(Int32, Utf8)') AS run) FROM tasks)";
    let spread = "(SELECT * REPLACE (task * 10 AS start, task * 10 + duration * 5 AS finish) FROM tasks)";
    let kinds = "(SELECT *, CASE task % 3 WHEN 0 THEN 'req_in' WHEN 1 THEN 'req_out' ELSE 'incoming_buffer' END AS kind FROM tasks)";
    let rows = [
        "ancestors(tasks, (SELECT run, task FROM tasks WHERE task % 100 = 0 UNION ALL SELECT 'z', 1 UNION ALL SELECT 'a', NULL))".to_owned(),
        format!("descendants({words}, (SELECT task FROM tasks WHERE task % 100 = 0 UNION ALL SELECT -1))"),
        format!("component_metrics({kinds}, bins => 5, second => 10, parents => tasks)"),
        // Whole edges: sums of fractions depend on the order of rows.
        format!("component_metrics({kinds}, bins => 5, from => 0, to => 60, second => 10, rules => 'v5', \
             parents => (SELECT * FROM tasks WHERE task % 2 = 0))"),
    ];
    are_those_of_the_whole(&rows, 3 << 20);
    let pictures = [
        format!("component_rows({spread})"),
        format!("component_rows({words}, rules => 'v5')"),
        format!("component_rows({spread}, location => 'w1')"),
    ];
    are_those_of_the_whole(&pictures, 5 << 20);
}

#[test]
fn memory_is_asked_for_and_given_back() {
    for limit in [1 << 30, 200 << 10] {
        let session = session_within(limit);
        register_traces(&session, 30, 20_000, false);
        // `message_matrix` keeps a square of locations and no message.
        let keeps_rows = |call: &&&str| !call.starts_with("intersect") && !call.starts_with("message_matrix");
        for call in CALLS.iter().filter(keeps_rows) {
            let answer = wait(crate::slt::answer(&session, &format!("SELECT count(*) FROM {call}")));
            assert_eq!(answer.is_ok(), limit == 1 << 30, "{call}: {answer:?}");
            if let Err(error) = answer {
                assert!(
                    error.message.to_lowercase().contains("memory") || error.message.contains("Resources exhausted"),
                    "{call}: {error:?}"
                );
            }
            assert_eq!(session.runtime_env().memory_pool.reserved(), 0, "{call}");
        }
    }
}

/// What is left out or read otherwise is said.
#[test]
fn what_is_left_out_is_said() {
    let session = crate::slt::session();
    let lanes = "(SELECT * FROM (VALUES (1, 'w', 0, 4), (2, 'w', 2, 6), (3, 'w', NULL, 9), (4, 'w', 7, NULL), (5, NULL, 0, 1), \
                 (6, 'v', 5, 4)) AS t(task, location, start, finish))";
    let family = "(SELECT * FROM (VALUES (1, 99), (2, 2), (3, 1), (NULL, 1)) AS t(task, parent))";
    let graph =
        "(SELECT * FROM (VALUES (1, 0, 3, 3), (2, 3, NULL, NULL), (3, 5, 6, 1)) AS t(task, start, finish, duration))";
    let links = "(SELECT * FROM (VALUES (1, 3), (2, 3), (3, 3), (1, 9), (NULL, 3)) AS l(source, target))";
    let acyclic = "(SELECT * FROM (VALUES (1, 3), (2, 3), (1, 9), (NULL, 3)) AS l(source, target))";
    let no_start = "1 task without start was left out";
    let ended = "1 task never ended and was left out";
    let reversed = "1 task ends before it starts and counts as empty";
    let endless = "1 task never ended: it encloses what follows, and its time is not known";
    let crossing = "1 task crosses another on its lane: it has no parent, and the time of both is its own";
    let check = |call: &str, expected: &[&str]| {
        let statement = tq_engine::sql::parse(&format!("SELECT * FROM {call}")).unwrap().remove(0);
        let notes = wait(async {
            let query = tq_engine::sql::execute(&session, &statement, None).await.unwrap();
            let notes = query.notes();
            query.collect().await.unwrap();
            notes.take()
        });
        let notes: Vec<String> = notes.into_iter().map(|note| note.text).collect();
        assert_eq!(notes, expected, "{call}");
    };
    check(
        &format!("self_time({lanes})"),
        &["1 task without location nests nowhere", "1 task without start nests nowhere", endless, reversed, crossing],
    );
    let no_location = "1 task without location was left out";
    check(
        &format!("call_tree((SELECT *, 'f' AS name FROM {lanes}))"),
        &[no_location, no_start, endless, reversed, crossing],
    );
    check(&format!("floating_rows({lanes})"), &[no_start, ended, reversed]);
    check(&format!("gaps({lanes})"), &[no_location, no_start, ended, reversed]);
    check(&format!("concurrency({lanes})"), &[no_start, ended, reversed]);
    check(&format!("timeline({lanes})"), &[no_start, ended, reversed]);
    check(&format!("cluster_view({lanes})"), &["2 tasks without start or finish were left out"]);
    let meets = ["1 task without location meets no other", "1 task without start meets no other", ended, reversed];
    // Without location a span of `a` is left whole: nothing is lost, nothing is said.
    check(&format!("subtract({lanes}, (SELECT 'w' AS location, 1 AS start, 2 AS finish))"), &meets[1..]);
    check(&format!("intersect({lanes}, (SELECT 'w' AS location, 1 AS start, 2 AS finish))"), &meets);
    let of_family = [
        "1 task without id was left out",
        "1 task has a parent that is not there",
        "1 task is its own parent and counts as without",
    ];
    check(&format!("descendants({family}, (SELECT 1 AS task))"), &of_family);
    check(
        &format!("ancestors({family}, (SELECT * FROM (VALUES (3), (8), (NULL)) AS o(task)))"),
        &[of_family[0], "2 tasks that were asked about are not there", of_family[1], of_family[2]],
    );
    let of_links = ["link without source or target was left out", "link to a task that is not there was left out"]
        .map(|text| format!("1 {text}"));
    let of_links = [of_links[0].as_str(), of_links[1].as_str()];
    let overlapping = "(SELECT * FROM (VALUES (1, 'w', 0, 4), (2, 'v', 3, 6)) AS t(task, location, start, finish)), \
         (SELECT 1 AS source, 2 AS target)";
    let untied = "(SELECT * FROM (VALUES (NULL, 2), (NULL, NULL), (1, 9)) AS m(source_task, target_task))";
    check(
        &format!("executed_path({overlapping}, {untied})"),
        &[
            "1 message to a task that is not there was left out",
            "1 message names no task at its end, and releases none",
            "1 predecessor on the path ends after the task that it released begins, and is cut there",
        ],
    );
    check(
        &format!("ready({graph}, {links})"),
        &[
            of_links[0],
            of_links[1],
            "1 link of a task to itself was left out",
            "1 link from a task that never ended was left out",
        ],
    );
    let no_duration = "1 task has no duration and counts as 0";
    check(&format!("slack({graph}, {acyclic})"), &[no_duration, of_links[0], of_links[1]]);
    check(
        &format!("what_if({graph}, {acyclic}, (SELECT * FROM (VALUES (8, 1), (1, NULL)) AS c(task, duration)))"),
        &[
            no_duration,
            of_links[0],
            of_links[1],
            "1 change without task or duration was left out",
            "1 change of a task that is not there was left out",
        ],
    );
    check(
        "message_matrix((SELECT * FROM (VALUES ('a', NULL), ('a', 'b')) AS m(source, target)), (SELECT 'a' AS location))",
        &["1 message without source or target was left out"],
    );
}
