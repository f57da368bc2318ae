//! Daisen: tables of recorded traces against a plain look into the files, and metrics, rows and lists against the answers of
//! Daisen's own servers and frontends.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::Float64Type;
use rusqlite::Connection;
use rusqlite::types::Value;
use tempfile::TempDir;
use tq_engine::open::OpenOptions;
use tq_engine::session::Session;
use tq_tests::{ask, ask_saved, cells, fixture, folder_of, open, records, shared, text_of, try_open, unpacked};

const FIXTURES: [&str; 3] = ["fir64_v3.csv.zst", "queue_v49.sqlite3.zst", "virtualmem_v5.sqlite3.zst"];

fn options(path: &Path, threads: usize) -> OpenOptions {
    OpenOptions { threads, ..tq_tests::options(path) }
}

/// The answer as text; NULL is `-`.
fn rows(session: &Session, sql: &str) -> Vec<Vec<String>> {
    cells(&ask(session, sql), "-")
}

fn column(session: &Session, sql: &str) -> Vec<String> {
    rows(session, sql).into_iter().map(|mut row| row.swap_remove(0)).collect()
}

fn stats(session: &Session) -> BTreeMap<String, String> {
    let found = rows(session, "SELECT what, severity, count FROM import_stats");
    found.into_iter().map(|row| (row[0].clone(), format!("{} {}", row[1], row[2]))).collect()
}

/// The records of an answer of the original, by column.
fn expected(name: &str) -> Option<Vec<BTreeMap<String, String>>> {
    Some(records(&text_of(&shared("expected/daisen")?.join(name)).unwrap()))
}

/// Every recorded trace with the server that answered for it.
const ANSWERED: [(&str, &str); 10] = [
    ("v3-mgpusim-fir256", "v3"),
    ("v3-mgpusim-mt64", "v3"),
    ("v3-mgpusim-fir64-csv", "v3"),
    ("v4.8-mgpusim-fir256", "v48"),
    ("v4.9-generated-segments", "v4"),
    ("v4.9-mgpusim-fir256", "v4"),
    ("v4.9-mgpusim-fir1024", "v4"),
    ("v5-virtualmem40", "v5"),
    ("v5-virtualmem300", "v5"),
    ("v5-mesh", "v5"),
];

fn recorded(trace: &str) -> Option<PathBuf> {
    let file = match trace.strip_suffix("-csv") {
        Some(stem) => format!("{stem}.csv.zst"),
        None => format!("{trace}.sqlite3.zst"),
    };
    Some(shared("traces/daisen")?.join(file))
}

/// A time of a server in ticks, to the thousandth.
fn tick(text: &str, server: &str) -> f64 {
    (text.parse::<f64>().unwrap() * unit(server) * 1e3).round() / 1e3
}

/// Ticks of a unit of the server's times: seconds, and picoseconds.
fn unit(server: &str) -> f64 {
    if server == "v5" { 1.0 } else { 1e12 }
}

#[test]
fn tasks_equal_a_plain_look_into_the_file() {
    for (trace, server) in ANSWERED {
        let Some(path) = recorded(trace) else { return };
        if trace.ends_with("csv") {
            continue;
        }
        let folder = folder_of(&[("trace.sqlite3", unpacked(&path).unwrap())]);
        let database = Connection::open(folder.path().join("trace.sqlite3")).unwrap();
        let texts = |value: Value| match value {
            Value::Integer(value) => value.to_string(),
            Value::Text(value) => value,
            other => panic!("{other:?}"),
        };
        let names: HashMap<String, String> = if server == "v5" {
            let mut select = database.prepare("SELECT ID, Locale FROM location").unwrap();
            let pairs = select.query_map([], |row| Ok((row.get::<_, i64>(0)?.to_string(), row.get(1)?))).unwrap();
            pairs.map(Result::unwrap).collect()
        } else {
            HashMap::new()
        };
        let mut select = database.prepare("SELECT * FROM trace ORDER BY rowid").unwrap();
        let table: Vec<[String; 7]> = select
            .query_map([], |row| {
                let text = |index| Ok::<_, rusqlite::Error>(texts(row.get(index)?));
                let time =
                    |index| Ok::<_, rusqlite::Error>((row.get::<_, f64>(index)? * unit(server)).round().to_string());
                Ok([text(0)?, text(1)?, text(2)?, text(3)?, text(4)?, time(5)?, time(6)?])
            })
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let ids: HashSet<&str> = table.iter().map(|row| row[0].as_str()).collect();
        let plain: Vec<Vec<String>> = table
            .iter()
            .map(|[id, parent, kind, what, location, start, finish]| {
                let parent = if ids.contains(parent.as_str()) { parent.clone() } else { "-".to_owned() };
                let location = names.get(location).unwrap_or(location).clone();
                vec![id.clone(), parent, kind.clone(), what.clone(), location, start.clone(), finish.clone()]
            })
            .collect();
        let sql = "SELECT t.id, p.id, t.kind, t.name, t.location, t.start, t.finish \
                   FROM tasks t LEFT JOIN tasks p ON p.task = t.parent ORDER BY t.task";
        for threads in [1, 3] {
            let session = Session::open(&options(&path, threads)).unwrap();
            assert_eq!(session.tick().symbol(), "ps");
            assert!(rows(&session, sql) == plain, "{trace} on {threads} threads");
            assert_eq!(stats(&session).get("unaccounted"), None, "{trace}");
            assert_eq!(stats(&session).get("rounded"), None, "{trace}: all times are whole nanoseconds");
        }
    }
}

#[test]
fn components_and_tasks_are_found_as_the_servers_find_them() {
    for (trace, server) in ANSWERED {
        let (Some(path), Some(names), Some(queries)) = (
            recorded(trace),
            expected(&format!("compnames__{trace}__{server}.csv")),
            expected(&format!("tracequery__{trace}__{server}.csv")),
        ) else {
            return;
        };
        let session = open(&path);
        let mut names: Vec<&str> = names.iter().map(|row| row["component"].as_str()).collect();
        let mut found = column(&session, "SELECT location FROM locations WHERE kind = 'component' ORDER BY sort_index");
        found.retain(|name| names.contains(&name.as_str()));
        if server == "v3" {
            // Byte order there, natural order here.
            names.sort_unstable();
            found.sort_unstable();
        }
        assert_eq!(found, names, "{trace}");
        for query in queries {
            let (param, from, to) = (&query["param"], &query["window_start"], &query["window_end"]);
            let text = param.replace('\'', "''");
            let filter = match query["query"].as_str() {
                "id" => format!("t.id = '{text}'"),
                "parentid" => format!("coalesce(p.id, t.args->>'parent') = '{text}'"),
                "kind" => format!("t.kind = '{text}'"),
                "where" | "where+time" => format!("t.location = '{text}'"),
                "scope" => format!("(t.location = '{text}' OR starts_with(t.location, '{text}.'))"),
                other if other.starts_with("scope") => {
                    format!("(t.location = '{text}' OR starts_with(t.location, '{text}.'))")
                }
                other => panic!("{other}"),
            };
            let window = if from.is_empty() {
                String::new()
            } else {
                // The CSV backend takes a window that is closed at both ends.
                let (after, before) = if trace.ends_with("csv") { (">=", "<=") } else { (">", "<") };
                format!(" AND t.finish {after} {:?} AND t.start {before} {:?}", tick(from, server), tick(to, server))
            };
            let sql = format!(
                "SELECT t.id FROM tasks t LEFT JOIN tasks p ON p.task = t.parent WHERE {filter}{window} ORDER BY t.task"
            );
            let found = column(&session, &sql);
            assert_eq!(found.len().to_string(), query["count"], "{trace}: {sql}");
            if !query["ids_in_order"].is_empty() {
                let ids: HashSet<&str> = query["ids_in_order"].split([' ', '|', ';']).collect();
                assert_eq!(found.iter().map(String::as_str).collect::<HashSet<_>>(), ids, "{trace}: {sql}");
            }
        }
    }
}

/// One request to a server: a component in a window.
type Request = (String, String, String, usize);

#[test]
fn component_metrics_equal_the_servers() {
    let compared: usize = std::thread::scope(|scope| {
        let traces = ANSWERED.map(|(trace, server)| scope.spawn(move || compare_metrics(trace, server)));
        traces.into_iter().map(|trace| trace.join().unwrap()).sum()
    });
    assert!(compared > 48_000 || shared("expected/daisen").is_none(), "{compared} values");
}

/// Returns how many values were compared.
fn compare_metrics(trace: &str, server: &str) -> usize {
    let Some(path) = recorded(trace) else { return 0 };
    let Some(answers) = expected(&format!("compinfo__{trace}__{server}.csv")) else { return 0 };
    let session = open(&path);
    let mut requests: BTreeMap<Request, Vec<(String, usize, f64)>> = BTreeMap::new();
    for answer in answers {
        // The server crashed over a missing parent.
        if answer["value"].starts_with("error") {
            continue;
        }
        let bins = answer["num_dots"].parse().unwrap();
        let request = (answer["component"].clone(), answer["window_start"].clone(), answer["window_end"].clone(), bins);
        let value = (answer["metric"].clone(), answer["dot"].parse().unwrap(), answer["value"].parse().unwrap());
        requests.entry(request).or_default().push(value);
    }
    // Rates are per second, latencies in ticks.
    let (rules, rate, time) = if server == "v5" { ("v5", 1e-12, 1.0) } else { ("v3", 1.0, 1e-12) };
    let mut compared = 0;
    for ((component, from, to, bins), values) in requests {
        let sql = format!(
            "SELECT req_in_count * {rate:e} AS \"ReqInCount\", req_complete_count * {rate:e} AS \"ReqCompleteCount\", \
             avg_latency * {time:e} AS \"AvgLatency\", concurrent_task AS \"ConcurrentTask\", \
             buffer_pressure AS \"BufferPressure\", request_buffer_pressure AS \"RequestBufferPressure\", \
             response_buffer_pressure AS \"ResponseBufferPressure\", pending_req_out AS \"PendingReqOut\" \
             FROM component_metrics((SELECT * FROM tasks WHERE starts_with(location, '{component}')), \
             bins => {bins}, from => {:?}, to => {:?}, rules => '{rules}') WHERE location = '{component}' ORDER BY bin",
            tick(&from, server),
            tick(&to, server)
        );
        let batches = ask(&session, &sql);
        let answer = datafusion::arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap();
        assert_eq!(answer.num_rows(), bins, "{trace}: {sql}");
        for (metric, dot, value) in values {
            let found = answer.column_by_name(&metric).unwrap().as_primitive::<Float64Type>();
            assert!(found.is_valid(dot), "{trace}: {sql}: {metric}");
            let difference = (found.value(dot) - value).abs();
            assert!(
                difference <= 1e-9 * value.abs() || difference <= 1e-12,
                "{trace}: {component} {metric} dot {dot} of {bins} in {from}..{to}: {} here, {value} there",
                found.value(dot)
            );
            compared += 1;
        }
    }
    compared
}

#[test]
fn component_rows_equal_the_frontends() {
    let mut compared = 0;
    for (trace, server) in ANSWERED {
        if trace.ends_with("csv") || server == "v48" {
            continue;
        }
        let (Some(path), Some(answers)) = (recorded(trace), expected(&format!("rows__{trace}__{server}.csv"))) else {
            return;
        };
        let session = open(&path);
        let mut cases: BTreeMap<usize, Vec<BTreeMap<String, String>>> = BTreeMap::new();
        for answer in answers {
            cases.entry(answer["case"].parse().unwrap()).or_default().push(answer);
        }
        for (case, answers) in cases {
            let of = &answers[0]["component_or_parent"];
            let sql = if answers[0]["view"] == "component" {
                let tick = |column: &str| tick(&answers[0][column], server);
                let window = format!("finish > {:?} AND start < {:?}", tick("window_start"), tick("window_end"));
                let component = of.trim_start_matches("scope=");
                let rules = if server == "v5" { "v5" } else { "v3" };
                format!(
                    "SELECT t.id, r.level, r.row FROM component_rows((SELECT *, args->>'parent' AS parent_id FROM tasks WHERE {window}), \
                     location => '{component}', rules => '{rules}') r JOIN tasks t ON t.task = r.task"
                )
            } else {
                let rules = if server == "v5" { "plain" } else { "v3" };
                format!(
                    "SELECT t.id, r.level, r.row FROM component_rows((SELECT t.* FROM tasks t JOIN tasks p ON p.task = t.parent \
                     WHERE p.id = '{of}'), rules => '{rules}') r JOIN tasks t ON t.task = r.task"
                )
            };
            let found: HashMap<String, Vec<String>> =
                rows(&session, &sql).into_iter().map(|mut row| (row.remove(0), row)).collect();
            assert_eq!(found.len(), answers.len(), "{trace} case {case}: {sql}");
            for answer in &answers {
                let found = &found[&answer["task"]];
                // Levels that were never laid out have no rows there.
                if !answer["row"].is_empty() {
                    assert_eq!(
                        (&found[0], &found[1]),
                        (&answer["level"], &answer["row"]),
                        "{trace} case {case}: {} in {sql}",
                        answer["task"]
                    );
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 20_000 || shared("expected/daisen").is_none(), "{compared} rows");
}

/// The answer of a saved query.
fn saved(session: &Session, name: &str, given: &[(&str, &str)]) -> Vec<Vec<String>> {
    cells(&ask_saved(session, name, given), "-")
}

/// Counts of a saved query by key and bin.
fn matrix(answer: &[Vec<String>], key: usize, bin: usize, count: usize) -> HashMap<(String, usize), String> {
    answer.iter().map(|row| ((row[key].clone(), row[bin].parse().unwrap()), row[count].clone())).collect()
}

#[test]
fn milestones_over_time_equal_the_servers() {
    for (trace, server) in ANSWERED.into_iter().filter(|(_, server)| matches!(*server, "v48" | "v5")) {
        let (Some(path), Some(answers)) = (recorded(trace), expected(&format!("milestones__{trace}__{server}.csv")))
        else {
            return;
        };
        let session = open(&path);
        let mut requests: BTreeMap<[String; 5], Vec<BTreeMap<String, String>>> = BTreeMap::new();
        for answer in answers {
            let request =
                ["component", "group", "window_start", "window_end", "num_dots"].map(|key| answer[key].clone());
            requests.entry(request).or_default().push(answer);
        }
        for ([component, group, from, to, bins], answers) in requests {
            let (from, to) = (tick(&from, server).to_string(), tick(&to, server).to_string());
            let mut given = vec![
                ("component", component.as_str()),
                ("bins", bins.as_str()),
                ("from", from.as_str()),
                ("to", to.as_str()),
            ];
            let name = if server == "v5" { "daisen-milestones" } else { "daisen-milestones-v4" };
            if server == "v5" {
                given.push(("by", group.as_str()));
            }
            let found = matrix(&saved(&session, name, &given), 3, 1, 4);
            for answer in &answers {
                let key = (answer["reason"].clone(), answer["dot"].parse().unwrap());
                let value = found.get(&key).map_or("0", String::as_str);
                assert_eq!(value, answer["value"], "{trace}: {name} {given:?} {key:?}");
            }
            let known: HashSet<&str> = answers.iter().map(|answer| answer["reason"].as_str()).collect();
            let more: Vec<_> =
                found.iter().filter(|((reason, _), count)| !known.contains(reason.as_str()) && *count != "0").collect();
            assert!(more.is_empty(), "{trace}: {name} {given:?} {more:?}");
        }
    }
}

#[test]
fn lists_and_timelines_equal_the_server_of_v5() {
    for trace in ["v5-virtualmem40", "v5-virtualmem300", "v5-mesh"] {
        let (Some(path), Some(answers)) = (recorded(trace), expected(&format!("v5misc__{trace}.csv"))) else { return };
        let session = open(&path);
        let end = answers.iter().find(|answer| answer["field"] == "end_time").unwrap()["value"].clone();
        // The bins of the other endpoints end with the last task.
        let last = column(&session, "SELECT max(finish) FROM tasks").swap_remove(0);
        let window = [("bins", "20"), ("from", "0"), ("to", last.as_str())];
        assert_eq!(column(&session, "SELECT args->'exec_info'->>'End Virtual Time' AS last FROM runs"), [end]);
        let totals = saved(&session, "daisen-component-time", &[]);
        // Each field of an endpoint is a record of its own.
        let mut asked: HashMap<(String, String), Vec<Vec<String>>> = HashMap::new();
        for answer in answers {
            let (endpoint, item, field, value) =
                (&answer["endpoint"], &answer["item"], &answer["field"], &answer["value"]);
            let cells = |row: &[String], columns: &[usize]| {
                columns.iter().map(|column| row[*column].clone()).collect::<Vec<_>>().join("|")
            };
            let sum_of = |found: &[Vec<String>]| -> Vec<i64> {
                let mut bins = vec![0; 20];
                for row in found {
                    bins[row[1].parse::<usize>().unwrap()] += row[4].parse::<i64>().unwrap();
                }
                bins
            };
            let integers = |text: &str| text.split(' ').map(|bin| bin.parse().unwrap()).collect::<Vec<i64>>();
            match endpoint.split(' ').next().unwrap() {
                "components" => {
                    let row = totals.iter().find(|row| row[1] == *field).unwrap();
                    assert_eq!(cells(row, &[2, 4]), *value, "{trace} {field}");
                }
                "top_blocking_resources" => {
                    let scope = endpoint.split_once("scope=").map(|(_, scope)| ("component", scope));
                    let given: Vec<_> = scope.into_iter().chain([("limit", "100")]).collect();
                    let found = asked
                        .entry((endpoint.clone(), String::new()))
                        .or_insert_with(|| saved(&session, "daisen-blocking-resources", &given));
                    let row = found.iter().find(|row| row[1] == *field).unwrap();
                    assert_eq!(cells(row, &[2, 3]), *value, "{trace} {endpoint} {field}");
                }
                "resource_blocking" if field == "bins" => {
                    let given = [&window[..], &[("resource", item.as_str())]].concat();
                    let found = saved(&session, "daisen-milestones", &given);
                    assert_eq!(sum_of(&found), integers(value), "{trace} {endpoint} {item}");
                }
                "component_timeline" if field != "total" => {
                    let by = endpoint.split_once("group=").unwrap().1;
                    let given = [&window[..], &[("component", item.as_str()), ("by", by)]].concat();
                    let found = asked
                        .entry((endpoint.clone(), item.clone()))
                        .or_insert_with(|| saved(&session, "daisen-component-timeline", &given));
                    let of_field: Vec<_> = found.iter().filter(|row| row[3] == *field).cloned().collect();
                    assert_eq!(sum_of(&of_field), integers(value), "{trace} {endpoint} {item} {field}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn fixtures_are_read_whole() {
    for name in FIXTURES {
        let session = open(&fixture("daisen").join(name));
        let stats = stats(&session);
        assert!(stats.keys().all(|what| what != "unaccounted"), "{name}: {stats:?}");
        assert!(stats.values().all(|found| found.starts_with("info")), "{name}: {stats:?}");
    }
    let session = open(&fixture("daisen/virtualmem_v5.sqlite3.zst"));
    let answer = rows(
        &session,
        "SELECT r.program, r.time_unit, r.args->'exec_info'->>'End Virtual Time' AS last, \
                (SELECT count(*) FROM tasks) AS tasks, (SELECT count(*) FROM messages) AS messages, \
                (SELECT count(*) FROM events WHERE kind = 'tag') AS tags, \
                (SELECT count(*) FROM events WHERE kind <> 'tag') AS milestones FROM runs r",
    );
    assert_eq!(answer.concat().join(" "), "ak5-virtualmem ps 1453000 3584 522 406 4290");
    let ports = "SELECT location, parent, process, kind, args->>'connection' AS connection FROM locations \
                 WHERE location LIKE 'L2Cache%' ORDER BY sort_index LIMIT 2";
    let ports: Vec<String> = rows(&session, ports).into_iter().map(|row| row.join(" ")).collect();
    assert_eq!(ports, ["L2Cache - L2Cache scope -", "L2Cache.Bottom L2Cache L2Cache port Conn7"]);
    let spec = "SELECT args->'spec'->>'freq' AS freq FROM locations WHERE location = 'MemCtrl'";
    assert_eq!(column(&session, spec), ["1000000000"]);
    let session = open(&fixture("daisen/queue_v49.sqlite3.zst"));
    assert_eq!(column(&session, "SELECT args->>'segments' FROM runs"), ["[[3000000,7000000],[12000000,15000000]]"]);
}

// Databases made for a test.

struct Made {
    _folder: TempDir,
    path: PathBuf,
}

fn made(sql: &str) -> Made {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("trace.sqlite3");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    Made { _folder: folder, path }
}

const V4: &str = "CREATE TABLE trace (ID, ParentID, Kind, What, Location, StartTime, EndTime);";

#[test]
fn what_is_odd_is_counted_and_kept() {
    let made = made(&format!(
        "{V4} INSERT INTO trace VALUES
           ('c', 'a', 'req_in', 'x', 'L2', 2e-9, 9e-9), ('a', '', 'req_out', 'x', 'L1', 1e-9, 8e-9),
           ('d', 'gone', 'req_in', 'x', 'L2', 3e-9, 3e-9), ('e', 'e', 'work', NULL, 'L1.Q', 1.0000000004e-9, NULL),
           ('m', '', '', '', '', 0.0, 9e-9), ('a', '', 'work', 'twice', X'4c31', 5e-9, 4e-9),
           ('f', 'c', 'work', 'early', 'L2', 1e-9, 'soon'), (7, 0, 'work', 'mixed', 'L1', '0.000000007', 8e-9);
         CREATE TABLE trace_milestones (ID, TaskID, BlockingCategory, BlockingReason, BlockingLocation);
         INSERT INTO trace_milestones VALUES ('1', 'c', 'queue', 'L2.Q', 'L2.Top'), ('2', 'gone', 'data', 'data', 'L9');
         CREATE TABLE my_metrics (Location, What, Value, Unit);
         INSERT INTO my_metrics VALUES ('L1', 'hits', 12, 'count'), ('L2', 'time', 'much', 'second');
         CREATE TABLE notes (text); INSERT INTO notes VALUES ('hello')"
    ));
    let session = open(&made.path);
    let tasks = "SELECT t.id, p.id, t.kind, t.name, t.location, t.start, t.finish, t.args FROM tasks t LEFT JOIN tasks p ON p.task = t.parent ORDER BY t.task";
    let found: Vec<String> = rows(&session, tasks).into_iter().map(|row| row.join(" ")).collect();
    assert_eq!(
        found,
        [
            "c a req_in x L2 2000 9000 -",
            "a - req_out x L1 1000 8000 -",
            "d - req_in x L2 3000 3000 {\"parent\":\"gone\"}",
            "e - work  L1.Q 1000 - -",
            "a - work twice L1 5000 - -",
            "f c work early L2 1000 - -",
            "7 - work mixed L1 7000 8000 -",
        ]
    );
    let events: Vec<String> = rows(&session, "SELECT kind, name, location, time, args FROM events")
        .into_iter()
        .map(|row| row.join(" "))
        .collect();
    assert_eq!(events, ["queue L2.Q L2 - {\"location\":\"L2.Top\"}", "data data L9 - -"]);
    let messages =
        rows(&session, "SELECT source, target, kind, send_time, receive_time FROM messages").concat().join(" ");
    assert_eq!(messages, "L1 L2 x 1000 2000");
    let counters =
        rows(&session, "SELECT location, name, value, unit, kind FROM counters ORDER BY name").concat().join(" ");
    assert_eq!(counters, "L1 hits 12.0 count total L2 time - second total");
    let locations =
        rows(&session, "SELECT location, parent, kind FROM locations ORDER BY sort_index").concat().join(" ");
    assert_eq!(locations, "L1 - component L1.Q L1 component L2 - component L9 - component");
    let expected = [
        ("bad_value", "lost 1"),
        ("dangling_parent", "info 1"),
        ("duplicate_id", "info 1"),
        ("event_without_task", "info 1"),
        ("finish_before_start", "repaired 1"),
        ("never_started", "info 1"),
        ("outlives_parent", "info 1"),
        ("own_parent", "repaired 1"),
        ("records_read", "info 12"),
        ("rounded", "info 1"),
        ("starts_before_parent", "info 1"),
        ("table_not_read", "info 1"),
        ("time_is_null", "repaired 1"),
        ("zero_duration", "info 1"),
    ];
    assert_eq!(stats(&session), expected.map(|(what, found)| (what.to_owned(), found.to_owned())).into());
}

#[test]
fn units_and_locations_follow_the_types_of_cells() {
    // v5 beta.1: integers and picoseconds, but locations as text; one key without a name.
    let beta1 = made(&format!(
        "{V4} INSERT INTO trace VALUES (1, 0, 'req_out', 'r', 'A', 1000.0, 5000.0), (2, 1, 'req_in', 'r', 1, 2000.0, 3000.0),
           (3, 1, 'req_in', 'r', 9, 2000.0, 3000.0);
         CREATE TABLE location (ID, Locale); INSERT INTO location VALUES (1, 'B')"
    ));
    let session = open(&beta1.path);
    assert_eq!(column(&session, "SELECT location FROM tasks ORDER BY task"), ["A", "B", "9"]);
    assert_eq!(column(&session, "SELECT sum(duration) FROM tasks"), ["6000"]);
    assert_eq!(stats(&session)["unknown_location"], "repaired 1");
    // Times speak louder than ids.
    let made_text = made(&format!("{V4} INSERT INTO trace VALUES ('1', '', 'k', 'w', 'A', 1000.0, 5000.0)"));
    let session = open(&made_text.path);
    assert_eq!(column(&session, "SELECT duration FROM tasks"), ["4000"]);
    assert_eq!(stats(&session)["unit_guessed"], "info 1");
    let session = try_open(&made_text.path, &[("daisen.unit", "s")]).unwrap();
    assert_eq!(column(&session, "SELECT duration FROM tasks"), ["4000000000000000"]);
    // Nothing but the columns that must be there; and no task at all.
    let bare = made("CREATE TABLE trace (task_id varchar(200), parent_id varchar(200), start_time float)");
    let session = open(&bare.path);
    assert_eq!(
        (stats(&session)["no_tasks"].as_str(), stats(&session)["column_missing"].as_str()),
        ("info 1", "lost 4")
    );
    // v5 without its names.
    let nameless = made(&format!(
        "{V4} INSERT INTO trace VALUES (1, 0, 'k', 'w', 7, 1000, 5000), (2, 0, 'k', 'w', 7, 1000, 5000)"
    ));
    let session = open(&nameless.path);
    assert_eq!(column(&session, "SELECT DISTINCT location FROM tasks"), ["7"]);
    assert_eq!(stats(&session)["unknown_location"], "repaired 2");
}

#[test]
fn the_trace_is_neither_locked_nor_written() {
    let made = made(&format!("{V4} INSERT INTO trace VALUES (1, 0, 'k', 'w', 'A', 1000.0, 5000.0)"));
    let folder = made.path.parent().unwrap();
    let names = || -> Vec<_> {
        let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    // A writer holds the lock, and the viewer has left changes in a -wal file.
    let writer = Connection::open(&made.path).unwrap();
    writer.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let before = (std::fs::read(&made.path).unwrap(), names());
    assert_eq!(column(&open(&made.path), "SELECT count(*) FROM tasks"), ["1"]);
    assert_eq!((std::fs::read(&made.path).unwrap(), names()), before);
    writer
        .execute_batch(
            "COMMIT; PRAGMA journal_mode=WAL; INSERT INTO trace VALUES (2, 1, 'k', 'w', 'A', 2000.0, 3000.0)",
        )
        .unwrap();
    let before = (std::fs::read(&made.path).unwrap(), names());
    let session = open(&made.path);
    assert_eq!(column(&session, "SELECT count(*) FROM tasks"), ["2"]);
    assert_eq!(stats(&session)["wal_read"], "info 1");
    assert_eq!((std::fs::read(&made.path).unwrap(), names()), before);
}

const CSV: &str = "ID, ParentID, Kind, What, Where, Start, End\n\
                   1, , Simulation, Simulation, Driver, 0.0000000000, 0.0000000090\n\
                   2, 1, req_out, f(a, b), L1, 0.0000000010, 0.0000000080\n\
                   3, 2, req_in, f(a, b), L2, 0.0000000020, 0.0000000070\n";

fn csv_of(text: &str) -> Result<Session, tq_engine::error::ImportError> {
    try_open(&folder_of(&[("trace.csv", text)]).path().join("trace.csv"), &[])
}

#[test]
fn csv_is_read_line_by_line_and_every_cut_is_noticed() {
    let session = csv_of(CSV).unwrap();
    assert_eq!(column(&session, "SELECT DISTINCT name FROM tasks ORDER BY name"), ["Simulation", "f(a, b)"]);
    assert_eq!(stats(&session)["comma_in_action"], "repaired 2");
    let header = CSV.find('\n').unwrap();
    for cut in 0..=CSV.len() {
        let session = match csv_of(&CSV[..cut]) {
            Ok(session) => session,
            Err(error) => {
                assert!(cut < header, "cut at {cut}: {error}");
                continue;
            }
        };
        let lines = CSV[..cut].matches('\n').count().saturating_sub(1);
        let tasks: usize = column(&session, "SELECT count(*) FROM tasks")[0].parse().unwrap();
        // The last line may lack its end and still be whole.
        assert!(tasks == lines || tasks == lines + 1, "cut at {cut}: {tasks} of {lines}");
        assert_eq!(stats(&session).get("unaccounted"), None, "cut at {cut}");
    }
    let session = csv_of(&format!("{CSV}\nbroken, line\n")).unwrap();
    assert_eq!(stats(&session)["bad_row"], "lost 1");
}

#[test]
fn a_cut_database_is_refused() {
    let whole = unpacked(&fixture("daisen/queue_v49.sqlite3.zst")).unwrap();
    for cut in (1..200).step_by(7).chain((4096..whole.len()).step_by(4096 * 3 + 1)) {
        let folder = folder_of(&[("cut.sqlite3", &whole[..cut])]);
        assert!(try_open(&folder.path().join("cut.sqlite3"), &[]).is_err(), "cut at {cut} is not noticed");
    }
}

#[test]
fn other_databases_are_not_taken() {
    let other = made("CREATE TABLE trace (id INT, name TEXT)");
    let error = Session::open(&options(&other.path, 1)).err().unwrap().to_string();
    assert!(!error.contains("daisen"), "{error}");
    let mut forced = options(&other.path, 1);
    forced.from_format = Some("daisen".to_owned());
    let error = Session::open(&forced).err().unwrap().to_string();
    assert!(error.contains("neither ID and StartTime nor task_id and start_time"), "{error}");
}
