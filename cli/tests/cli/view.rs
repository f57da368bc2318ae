//! The server of `tq view`: who may ask, and what is answered.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::Place;

/// A server that ends with the test.
pub(super) struct View {
    child: Child,
    pub(super) port: u16,
    pub(super) token: String,
    _place: Place,
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Reply {
    status: u16,
    headers: String,
    body: Vec<u8>,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&self.body)))
    }

    /// The header of columns, and their body.
    fn columns(&self) -> (Value, &[u8]) {
        let length = 4 + u32::from_le_bytes(self.body[..4].try_into().unwrap()) as usize;
        (serde_json::from_slice(&self.body[4..length]).unwrap(), &self.body[length..])
    }
}

impl View {
    pub(super) fn of(place: Place, arguments: &[&str]) -> View {
        View::with(place, arguments, &[])
    }

    fn with(place: Place, arguments: &[&str], variables: &[(&str, &str)]) -> View {
        let arguments = [&["view", "--no-open"], arguments].concat();
        let mut command = place.command(&arguments);
        command.envs(variables.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let rest = address.trim().strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("`{address}`"));
        let (port, token) = rest.split_once('/').unwrap();
        let (port, token) = (port.parse().unwrap(), token.trim_end_matches('/').to_owned());
        View { child, port, token, _place: place }
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let headers = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, headers, body: bytes[end + 4..].to_vec() }
    }

    fn get(&self, path: &str) -> Reply {
        self.send("GET", &format!("/{}/{path}", self.token), "Host: localhost\r\n", "")
    }

    fn ask(&self, path: &str, sql: &str) -> Reply {
        self.send("POST", &format!("/{}/{path}", self.token), "Host: localhost\r\n", sql)
    }
}

/// The numbers of a column of columns.
fn integers(columns: (&Value, &[u8]), table: &str, name: &str) -> Vec<i64> {
    let (header, body) = columns;
    let tables = header["tables"].as_array().unwrap();
    let table = tables.iter().find(|one| one["name"] == table).unwrap();
    let column = table["columns"].as_array().unwrap().iter().find(|column| column["name"] == name).unwrap();
    let (rows, offset) = (table["rows"].as_u64().unwrap() as usize, column["offset"].as_u64().unwrap() as usize);
    let width = match column["type"].as_str().unwrap() {
        "i64" | "f64" => 8,
        // The bits of floats.
        "u32" | "f32" => 4,
        "u16" => 2,
        other => panic!("{other}"),
    };
    let number = |row: usize| {
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(&body[offset + row * width..][..width]);
        i64::from_le_bytes(bytes)
    };
    (0..rows).map(number).collect()
}

#[test]
fn only_whoever_has_the_address_may_ask() {
    let view = View::of(Place::new(), &["run.json"]);
    assert!(
        view.token.len() >= 22 && view.token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    );
    let page = view.get("");
    assert_eq!(page.status, 200);
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
         connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "referrer-policy: no-referrer",
    ] {
        assert!(page.headers.contains(header), "{}", page.headers);
    }
    let own = format!("/{}/info", view.token);
    let status = |path: &str, headers: &str| view.send("GET", path, headers, "").status;
    let port = view.port;
    assert_eq!(status(&own, &format!("Host: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n")), 200);
    assert_eq!(status(&own, "Host: evil.example\r\n"), 403);
    assert_eq!(status(&own, &format!("Host: 127.0.0.1:{port}\r\nOrigin: http://evil.example\r\n")), 403);
    assert_eq!(status("/", "Host: localhost\r\n"), 404);
    assert_eq!(status("/info", "Host: localhost\r\n"), 404);
    assert_eq!(status(&format!("/{}x/info", view.token), "Host: localhost\r\n"), 404);
    assert_eq!(status(&format!("/{}/../../Cargo.toml", view.token), "Host: localhost\r\n"), 404);
}

/// Of the trace in `Place`: worker 0 runs a and c, worker 1 runs b.
#[test]
fn tiles_have_tasks_that_are_wide_and_sums_of_those_that_are_not() {
    let view = View::of(Place::new(), &["run.json"]);
    let info = view.get("info").json();
    assert_eq!(
        (info["start"].as_str(), info["finish"].as_str(), info["tasks"].as_str()),
        (Some("0"), Some("80000"), Some("3"))
    );
    let lanes = view.get("lanes");
    let (header, body) = lanes.columns();
    let busy = integers((&header, body), "lanes", "busy");
    assert_eq!(busy.iter().filter(|busy| **busy > 0).copied().collect::<Vec<_>>(), [50_000, 60_000]);
    let tile = view.get("tile?from=0&to=80000&bins=8&lanes=0-9");
    let (header, body) = tile.columns();
    assert_eq!(integers((&header, body), "tasks", "start"), [0, 20_000]);
    assert_eq!(integers((&header, body), "tasks", "finish"), [40_000, 80_000]);
    // c is one bin long: a sum.
    assert_eq!(integers((&header, body), "bins", "bin"), [5]);
    assert_eq!(integers((&header, body), "bins", "count"), [1]);
    for wrong in [
        "from=0&to=0&bins=8&lanes=0",
        "from=0&to=9&bins=0&lanes=0",
        "from=0&to=9&bins=8&lanes=x",
        "from=x&to=9&bins=8&lanes=0",
        "",
    ] {
        assert_eq!(view.get(&format!("tile?{wrong}")).status, 400, "{wrong}");
    }
    let far = view.get("tile?from=-9223372036854775808&to=9223372036854775807&bins=8&lanes=0-9");
    assert_eq!(far.status, 200, "{}", String::from_utf8_lossy(&far.body));
}

#[test]
fn sql_is_answered_and_writes_nothing() {
    let view = View::of(Place::with_links(), &["run.json"]);
    let answer = view.ask("sql", "SELECT task, start, finish FROM tasks ORDER BY task");
    let (header, body) = answer.columns();
    assert_eq!(integers((&header, body), "rows", "start"), [0, 50_000, 20_000]);
    assert_eq!(header["complete"], true);
    let slice = view.ask("sql?from=45000&to=80000", "SELECT start FROM tasks ORDER BY start");
    let (header, body) = slice.columns();
    assert_eq!(integers((&header, body), "rows", "start"), [20_000, 50_000]);
    // Each range is a slice of its own, and the one before goes.
    for (from, expected) in [(55_000, 2), (70_000, 1), (0, 3), (70_000, 1)] {
        let slice = view.ask(&format!("sql?from={from}&to=80000"), "SELECT count(*) AS tasks FROM tasks");
        let (header, body) = slice.columns();
        assert_eq!(integers((&header, body), "rows", "tasks"), [expected], "{from}");
    }
    assert_eq!(view.ask("sql", "EXPLAIN SELECT 1").status, 200);
    let wrong = view.ask("sql", "SELECT durration\nFROM tasks");
    assert_eq!(wrong.status, 400);
    let error = wrong.json();
    assert!(error["message"].as_str().unwrap().contains("durration"), "{error}");
    assert_eq!((error["line"].as_u64(), error["column"].as_u64()), (Some(1), Some(8)));
    for writes in ["CREATE VIEW v AS SELECT 1", "COPY (SELECT 1) TO 'x.csv'", "SET datafusion.execution.batch_size = 1"]
    {
        assert_eq!(view.ask("sql", writes).status, 400, "{writes}");
    }
    let path = view.get("layer?name=critical-path");
    let (header, body) = path.columns();
    assert_eq!(integers((&header, body), "spans", "start"), [0, 50_000]);
    let layer = view.ask("layer", "SELECT task FROM tasks WHERE name = 'b'");
    let (header, body) = layer.columns();
    assert_eq!(integers((&header, body), "spans", "finish"), [80_000]);
    let csv = view.get("sql.csv?sql=SELECT%20name%20FROM%20tasks%20ORDER%20BY%20name");
    assert!(String::from_utf8_lossy(&csv.body).contains("a\nb\nc"), "{}", String::from_utf8_lossy(&csv.body));
}

#[test]
fn a_task_knows_what_released_it() {
    let view = View::of(Place::with_links(), &["run.json"]);
    let tasks = view.ask("sql", "SELECT task FROM tasks WHERE name = 'c'");
    let (header, body) = tasks.columns();
    let task = integers((&header, body), "rows", "task")[0];
    let found = view.get(&format!("task?task={task}")).json();
    assert_eq!(found["name"], "c");
    assert_eq!(found["released_by"][0]["name"], "a");
    assert_eq!(found["row"], 0);
    assert_eq!(found["rank"]["of"], "1");
    assert_eq!(view.get("task?task=999").status, 404);
    let hits = view.get("search?pattern=%5E%5Bac%5D%24");
    let (header, body) = hits.columns();
    assert_eq!(integers((&header, body), "hits", "start"), [0, 50_000]);
    assert_eq!(header["count"], "2");
    assert_eq!(view.get("search?pattern=(").status, 400);
    let saved = view.get("saved?name=time-by-name").json();
    assert!(
        saved["svg"].as_str().unwrap().starts_with("<svg") && saved["html"].as_str().unwrap().contains("<table>"),
        "{saved}"
    );
    let sliced = view.get("saved?name=time-by-name&from=45000&to=80000").json();
    assert!(!sliced["html"].as_str().unwrap().contains("<td>a</td>"), "{sliced}");
}

#[test]
fn counters_have_the_least_the_greatest_and_the_last_value_of_each_bin() {
    let place = Place::new();
    let rows = [(0, 5), (1, 7), (2, 3), (30, 9), (95, 1)].map(|(time, value)| format!("{time},{value}\n"));
    place.write("memory.csv", &format!("time_us,value\n{}", rows.concat()));
    let arguments = ["memory.csv", "--option", "table=counters", "--option", "table.name='used'"];
    let view = View::of(place, &arguments);
    let there = view.get("counters");
    let (header, body) = there.columns();
    assert_eq!(integers((&header, body), "counters", "points"), [5]);
    let tile = view.get("counter?number=0&from=0&to=100000&bins=10");
    let (header, body) = tile.columns();
    assert_eq!(integers((&header, body), "points", "bin"), [0, 3, 9]);
    let doubles = |name| {
        integers((&header, body), "points", name).iter().map(|bits| f64::from_bits(*bits as u64)).collect::<Vec<_>>()
    };
    assert_eq!(
        [doubles("least"), doubles("most"), doubles("last")],
        [[3.0, 9.0, 1.0], [7.0, 9.0, 1.0], [3.0, 9.0, 1.0]]
    );
    let later = view.get("counter?number=0&from=50000&to=60000&bins=10");
    assert_eq!(later.columns().0["before"], 9.0);
    assert_eq!(view.get("counter?number=1&from=0&to=10&bins=1").status, 400);
}

/// Run `b` is `a` once more, 1000 ns later and with a `work` that takes three times as long.
#[test]
fn runs_are_aligned_at_their_starts() {
    let place = Place::new();
    place.write("a.csv", "name,location,start_ns,finish_ns\nload,w,0,100\nwork,w,100,200\n");
    place.write("b.csv", "name,location,start_ns,finish_ns\nload,w,1000,1100\nwork,w,1100,1400\n");
    let view = View::of(place, &["a.csv", "b.csv"]);
    let info = view.get("info").json();
    assert_eq!((&info["start"], &info["finish"]), (&"0".into(), &"1400".into()));
    assert_eq!((&info["aligned"]["start"], &info["aligned"]["finish"]), (&"0".into(), &"400".into()));
    assert_eq!(info["runs"][1]["start"], "1000");
    let starts = |path: &str, table: &str, column: &str| {
        let answer = view.get(path);
        let (header, body) = answer.columns();
        integers((&header, body), table, column)
    };
    assert_eq!(starts("lanes", "lanes", "start"), [0, 1000]);
    assert_eq!(starts("lanes?aligned=1", "lanes", "start"), [0, 0]);
    assert_eq!(starts("lanes?aligned=1", "lanes", "finish"), [200, 400]);
    assert_eq!(starts("tile?from=0&to=1400&bins=1400&lanes=0-9", "tasks", "start"), [0, 100, 1000, 1100]);
    assert_eq!(starts("tile?from=0&to=400&bins=400&lanes=0-9&aligned=1", "tasks", "start"), [0, 100, 0, 100]);
    // Sums of what is short, too.
    assert_eq!(starts("tile?from=0&to=400&bins=2&lanes=0-9&aligned=1", "bins", "bin"), [0, 0, 1]);
    assert_eq!(starts("search?pattern=work&aligned=1", "hits", "start"), [100, 100]);
    assert_eq!(starts("layer?name=differences&aligned=1", "spans", "start"), [100, 0, 100, 0]);
    let answer = view.get("layer?name=differences");
    let (header, body) = answer.columns();
    let factors = integers((&header, body), "spans", "value").into_iter().map(|bits| f64::from_bits(bits as u64));
    assert_eq!(factors.collect::<Vec<_>>(), [3.0, 1.0, 1.0 / 3.0, 1.0]);
    let work = view.ask("sql", "SELECT task FROM tasks WHERE run = 'b' AND name = 'work'");
    let (header, body) = work.columns();
    let task = integers((&header, body), "rows", "task")[0];
    assert_eq!(view.get(&format!("task?task={task}&aligned=1")).json()["start"], "100");
    let busy = view.get("busy?aligned=1");
    assert_eq!(busy.columns().0["to"], "400");
    let far = view.get("tile?from=0&to=9223372036854775807&bins=8&lanes=0-9&aligned=1");
    assert_eq!(far.status, 400);
}

#[test]
fn layers_show_what_waited_and_what_happened() {
    let view = View::of(Place::with_links(), &["run.json"]);
    let spans = |name: &str, column: &str| {
        let answer = view.get(&format!("layer?name={name}"));
        let (header, body) = answer.columns();
        integers((&header, body), "spans", column)
    };
    // c could run when a was done, 10 µs before it did; its row is known.
    assert_eq!((spans("readiness", "start"), spans("readiness", "finish")), (vec![40_000], vec![50_000]));
    assert_eq!(spans("readiness", "row"), [0]);
    assert_eq!(spans("events", "start"), [] as [i64; 0]);
    assert_eq!(spans("differences", "start"), [] as [i64; 0]);
}

#[test]
fn saved_queries_take_values_for_their_parameters() {
    let view = View::of(Place::new(), &["run.json"]);
    let queries = view.get("queries").json();
    let query = queries.as_array().unwrap().iter().find(|query| query["name"] == "longest-tasks").unwrap();
    assert_eq!(query["params"][0]["name"], "limit");
    assert_eq!((&query["params"][0]["type"], &query["params"][0]["default"]), (&"BIGINT".into(), &"20".into()));
    let rows = |path: &str| {
        let html = view.get(path).json()["html"].as_str().unwrap().to_owned();
        html.matches("<tr>").count()
    };
    assert_eq!(rows("saved?name=longest-tasks"), rows("saved?name=longest-tasks&param.limit=2") + 1);
    for (wrong, said) in [("param.limit=many", "`many` is no whole number"), ("param.most=1", "no parameter `most`")] {
        let answer = view.get(&format!("saved?name=longest-tasks&{wrong}"));
        assert_eq!(answer.status, 400);
        assert!(answer.json()["message"].as_str().unwrap().contains(said), "{}", answer.json());
    }
}

/// Ranges are cut from what was read, wherever the trace has gone meanwhile.
#[test]
fn a_range_needs_the_trace_no_more() {
    let place = Place::new();
    let trace = place.0.path().join("run.json");
    let view = View::of(place, &["run.json"]);
    std::fs::remove_file(trace).unwrap();
    let slice = view.ask("sql?from=55000&to=80000", "SELECT start FROM tasks ORDER BY start");
    let (header, body) = slice.columns();
    assert_eq!(integers((&header, body), "rows", "start"), [20_000, 50_000]);
    assert_eq!(view.ask("sql?from=80000&to=55000", "SELECT 1").status, 400);
}

/// Many tasks at once are many rows; search finds the row of each.
#[test]
fn rows_of_tasks_that_overlap() {
    let place = Place::new();
    let rows: String = (0..200).map(|task| format!("t{task},w,{task},1000\n")).collect();
    place.write("deep.csv", &format!("name,location,start_ns,finish_ns\n{rows}"));
    let view = View::of(place, &["deep.csv"]);
    let hits = view.get("search?pattern=t1..");
    let (header, body) = hits.columns();
    assert_eq!(integers((&header, body), "hits", "row"), (100..200).collect::<Vec<i64>>());
    let tile = view.get("tile?from=0&to=1000&bins=10&lanes=0,0,0-0");
    let (header, body) = tile.columns();
    assert_eq!(integers((&header, body), "tasks", "row"), (0..200).collect::<Vec<i64>>());
}

/// A tile as rows: tasks (lane, row, start, finish, task, name), and sums (lane, row, bin, count, share of time, name).
fn tile_of(view: &View, range: &str) -> (Value, Vec<[i64; 6]>, Vec<[i64; 6]>) {
    let answer = view.get(&format!("tile?{range}&lanes=0-9"));
    assert_eq!(answer.status, 200, "{range}: {}", String::from_utf8_lossy(&answer.body));
    let (header, body) = answer.columns();
    let column = |table: &str, name: &str| integers((&header, body), table, name);
    let of_tasks = ["lane", "row", "start", "finish", "task", "name"].map(|name| column("tasks", name));
    let mut tasks: Vec<[i64; 6]> =
        (0..of_tasks[0].len()).map(|at| [0, 1, 2, 3, 4, 5].map(|name: usize| of_tasks[name][at])).collect();
    tasks.sort_unstable();
    let groups = ["lane", "row", "bins"].map(|name| column("groups", name));
    let places = (0..groups[0].len())
        .flat_map(|at| std::iter::repeat_n([groups[0][at], groups[1][at]], groups[2][at] as usize))
        .collect::<Vec<_>>();
    let of_bins = ["bin", "count", "busy", "name"].map(|name| column("bins", name));
    let bin = |(at, place): (usize, &[i64; 2])| {
        [place[0], place[1], of_bins[0][at], of_bins[1][at], of_bins[2][at], of_bins[3][at]]
    };
    let bins = places.iter().enumerate().map(bin).collect();
    (header, tasks, bins)
}

/// What is drawn of a store is kept beside its runs, and is what is drawn of the traces.
#[test]
fn a_store_keeps_what_is_drawn() {
    const TASKS: u64 = 40_000;
    let place = Place::new();
    let mut random = 1_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    // Names come in the order of their numbers of tasks, so that ties are settled the same in memory and on disk.
    let mut rows: String = (0..7).map(|name| format!("n{name},w0,{name},{}\n", name + 1)).collect();
    for _ in 0..TASKS {
        // Most are short, some are very long, some take no time; locations have very different numbers of them.
        let length = [0, next(60), next(60), next(900), next(9000), next(200_000)][next(6) as usize];
        let (start, location) = (next(1_000_000), [0, 0, 0, 0, 1, 2][next(6) as usize]);
        let name = (0..3).map(|_| next(7)).min().unwrap_or_default();
        rows.push_str(&format!("n{name},w{location},{},{}\n", start + 10, start + 10 + length));
    }
    place.write("many.csv", &format!("name,location,start_ns,finish_ns\n{rows}never,w1,5000,\n"));
    assert_eq!(place.tq_args(&["import", "many.csv", "--into", "s.store"]).status, Some(0));
    let folder = place.0.path().to_owned();
    let store = folder.join("s.store");
    let (trace, store_text) = (folder.join("many.csv"), store.to_str().unwrap().to_owned());
    let keeping = || View::with(Place::new(), &[&store_text], &[("TQ_VIEW_LEAST_KEPT", "0")]);
    let (memory, disk) = (View::of(Place::new(), &[trace.to_str().unwrap()]), keeping());
    let kept = || std::fs::read_dir(store.join("view")).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    assert_eq!(kept().len(), 1);
    for column in ["rows", "tasks", "busy", "start", "finish"] {
        let [of_memory, of_disk] = [&memory, &disk].map(|view| {
            let lanes = view.get("lanes");
            let (header, body) = lanes.columns();
            integers((&header, body), "lanes", column)
        });
        assert_eq!(of_memory, of_disk, "{column}");
    }
    let busy = [&memory, &disk].map(|view| view.get("busy").body);
    assert!(busy[0] == busy[1]);
    let ranges = [
        "from=0&to=1200000&bins=256",
        "from=0&to=1200000&bins=512",
        "from=1000&to=1100000&bins=100",
        "from=1000&to=600000&bins=300",
        "from=262144&to=524288&bins=1280",
        "from=300000&to=303000&bins=1000",
        "from=500000&to=500100&bins=1000",
    ];
    let (mut levels, mut names) = (0, std::collections::HashMap::new());
    for range in ranges {
        let (header, tasks, bins) = tile_of(&disk, range);
        let number = |name: &str| header[name].as_str().unwrap().parse::<i64>().unwrap();
        let same = format!("from={}&to={}&bins={}", number("from"), number("to"), header["bins"]);
        levels += usize::from(same != range);
        let (_, expected_tasks, expected_bins) = tile_of(&memory, &same);
        // Names have other numbers, but each always the same one.
        let mut renamed = |mut row: [i64; 6], expected: [i64; 6]| {
            assert_eq!(*names.entry(row[5]).or_insert(expected[5]), expected[5], "{row:?} {expected:?}");
            row[5] = expected[5];
            row
        };
        assert_eq!((tasks.len(), bins.len()), (expected_tasks.len(), expected_bins.len()), "{same}");
        for (row, expected) in tasks.iter().zip(&expected_tasks).chain(bins.iter().zip(&expected_bins)) {
            assert_eq!(renamed(*row, *expected), *expected, "{same}");
        }
    }
    assert!(levels >= 3 && names.len() >= 8, "{levels} {names:?}");
    let hits = |view: &View| {
        let hits = view.get("search?pattern=n3");
        let (header, body) = hits.columns();
        ["task", "lane", "start", "row"].map(|name| integers((&header, body), "hits", name))
    };
    let ([.., rows], [.., rows_of_disk]) = (hits(&memory), hits(&disk));
    assert!(hits(&memory)[..3] == hits(&disk)[..3]);
    // Of very many rows the first ones are looked at.
    let is_right = |(row, of_disk): (&i64, &i64)| row == of_disk || *row >= 256 && *of_disk == i64::from(u16::MAX);
    assert!(rows.iter().zip(&rows_of_disk).all(is_right));
    // The next one finds it, and one that finds damage makes it again.
    let tile = disk.get(&format!("tile?{}&lanes=0-9", ranges[0])).body;
    let (path, written) = (kept().remove(0), std::fs::metadata(kept().remove(0)).unwrap().modified().unwrap());
    assert!(keeping().get(&format!("tile?{}&lanes=0-9", ranges[0])).body == tile);
    assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), written);
    let bytes = std::fs::read(&path).unwrap();
    for damaged in [bytes[..bytes.len() / 2].to_vec(), Vec::new(), vec![7; 4000]] {
        std::fs::write(&path, damaged).unwrap();
        assert!(keeping().get(&format!("tile?{}&lanes=0-9", ranges[0])).body == tile);
    }
    let mut damaged = bytes;
    damaged[8..4000].fill(1);
    std::fs::write(&path, damaged).unwrap();
    let answer = keeping().get("tile?from=0&to=4000&bins=4000&lanes=0-9");
    assert_eq!(answer.status, 400);
    assert!(answer.json()["message"].as_str().unwrap().contains("damaged"), "{}", answer.json());
    assert_eq!(place.tq_args(&["gc", "s.store"]).status, Some(0));
    assert!(!store.join("view").exists());
}

/// A counter may reach far beyond the tasks, and steps of a path may begin within a task.
#[test]
fn what_is_kept_is_drawn_where_it_is() {
    let place = Place::new();
    let tasks = r#"{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":4},{"ph":"X","name":"b","pid":1,"tid":1,"ts":2,"dur":1},
        {"ph":"X","name":"c","pid":1,"tid":1,"ts":6,"dur":3}"#;
    place.write(
        "far.json",
        &format!(r#"[{tasks},{{"ph":"C","name":"n","pid":1,"ts":1764000000000000,"args":{{"v":1}}}}]"#),
    );
    assert_eq!(place.tq_args(&["import", "far.json", "run.json", "--into", "s.store"]).status, Some(0));
    let store = place.0.path().join("s.store");
    let open = |least: &str| {
        let arguments = [store.to_str().unwrap(), "--run", "far"];
        View::with(Place::new(), &arguments, &[("TQ_VIEW_LEAST_KEPT", least)])
    };
    let (memory, disk) = (open("1000"), open("0"));
    let info = disk.get("info").json();
    let first: i64 = info["start"].as_str().unwrap().parse().unwrap();
    let range = |bins: u64| {
        format!("from={}&to={}&bins={bins}", info["start"].as_str().unwrap(), info["finish"].as_str().unwrap())
    };
    for range in [
        range(1000),
        range(8),
        "from=0&to=10000&bins=10000".to_owned(),
        "from=-4611686018427387904&to=4611686018427387904&bins=8".to_owned(),
    ] {
        let (header, tasks, bins) = tile_of(&disk, &range);
        let number = |name: &str| header[name].as_str().unwrap().parse::<i64>().unwrap();
        assert!(header["bins"].as_u64().unwrap() <= 10_000, "{header}");
        let ends = (number("from"), number("to"), header["bins"].as_i64().unwrap());
        let mut lanes: Vec<i64> = tasks.iter().map(|task| task[2]).collect();
        lanes.extend(bins.iter().map(|bin| ends.0 + bin[2] * ((ends.1 - ends.0) / ends.2)));
        // Wherever it is drawn, it begins no further away than a bin is long.
        let long = (ends.1 - ends.0) / ends.2 + 1;
        assert!(
            !lanes.is_empty() && lanes.iter().all(|start| (first - long..=first + 9000).contains(start)),
            "{range}: {header} {lanes:?}"
        );
    }
    let rows = |view: &View| {
        let layer = view.get("layer?name=executed-path");
        let (header, body) = layer.columns();
        ["row", "start", "task"].map(|name| integers((&header, body), "spans", name))
    };
    assert_eq!(rows(&memory), rows(&disk));
}

/// Runs that begin at different instants are moved by different lengths, and with them the bins of a store.
#[test]
fn runs_that_are_kept_are_aligned() {
    let place = Place::new();
    let mut random = 5_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    for (run, begin) in [("one", 1_000_000_u64), ("two", 1_700_123), ("six", 40_007)] {
        let mut rows = String::new();
        // One name only, so that it has one number everywhere.
        for task in 0..12_000 {
            let length = [0, next(40), next(900), next(60_000)][next(4) as usize];
            let start = begin + if task == 0 { 0 } else { next(800_000) };
            rows.push_str(&format!("n,w{},{start},{}\n", next(2), start + length));
        }
        place.write(&format!("{run}.csv"), &format!("name,location,start_ns,finish_ns\n{rows}"));
    }
    let files = ["one.csv", "two.csv", "six.csv"];
    assert_eq!(place.tq_args(&[&["import"], &files[..], &["--into", "s.store"]].concat()).status, Some(0));
    let [one, two, six] = files.map(|file| place.0.path().join(file).to_str().unwrap().to_owned());
    let store = place.0.path().join("s.store").to_str().unwrap().to_owned();
    let memory = View::of(Place::new(), &[&six, &one, &two]);
    let keeping = || View::with(Place::new(), &[&store], &[("TQ_VIEW_LEAST_KEPT", "0")]);
    // As it is made, and as it is found.
    for disk in [keeping(), keeping()] {
        let lanes = |view: &View, name: &str| {
            let lanes = view.get("lanes?aligned=1");
            let (header, body) = lanes.columns();
            integers((&header, body), "lanes", name)
        };
        assert_eq!(memory.get("info").json()["aligned"], disk.get("info").json()["aligned"]);
        let texts = |view: &View| String::from_utf8_lossy(&view.get("lanes").body).matches("w0").count();
        assert_eq!((texts(&memory), texts(&disk)), (3, 3));
        let in_order = |mut all: Vec<i64>| {
            all.sort_unstable();
            all
        };
        for name in ["start", "finish", "busy"] {
            assert_eq!(in_order(lanes(&memory, name)), in_order(lanes(&disk, name)), "{name}");
        }
        assert!(memory.get("busy?aligned=1").body == disk.get("busy?aligned=1").body);
        // Lanes by what no two of them have the same.
        let numbers: Vec<usize> = lanes(&disk, "busy")
            .iter()
            .map(|busy| lanes(&memory, "busy").iter().position(|other| other == busy).unwrap())
            .collect();
        let mut moved = 0;
        for range in ["from=40007&to=900000&bins=80", "from=100000&to=500000&bins=40", "from=300000&to=700000&bins=10"]
        {
            let (header, tasks, bins) = tile_of(&disk, &format!("{range}&aligned=1"));
            let number = |name: &str| header[name].as_str().unwrap().parse::<i64>().unwrap();
            let asked: Vec<i64> =
                range.split('&').map(|part| part.split_once('=').unwrap().1.parse().unwrap()).collect();
            let ticks = (number("to") - number("from")) / header["bins"].as_i64().unwrap();
            for (lane, of_memory) in numbers.iter().enumerate() {
                let answer = disk.get(&format!("tile?{range}&aligned=1&lanes={lane}"));
                let (one, body) = answer.columns();
                let column = |name: &str| integers((&one, body), "groups", name);
                assert!(column("offset").iter().all(|offset| *offset == 0), "a lane of its own begins with its bins");
                let begin: i64 = one["from"].as_str().unwrap().parse().unwrap();
                moved += i64::from((begin - number("from")) % ticks != 0);
                // In the tile of all lanes it has the same bins, so many of them later.
                let later = (begin - number("from")).div_euclid(ticks);
                let same = format!(
                    "tile?from={begin}&to={}&bins={}&aligned=1&lanes={of_memory}",
                    one["to"].as_str().unwrap(),
                    one["bins"]
                );
                let answer = memory.get(&same);
                let (expected, body) = answer.columns();
                let column = |table: &str, name: &str| integers((&expected, body), table, name);
                let expected_bins: Vec<[i64; 3]> = (0..column("bins", "bin").len())
                    .map(|at| ["bin", "count", "busy"].map(|name| column("bins", name)[at]))
                    .map(|[bin, count, busy]| [bin + later, count, busy])
                    .collect();
                let those = bins.iter().filter(|bin| bin[0] == lane as i64).map(|bin| [bin[2], bin[3], bin[4]]);
                assert_eq!(those.collect::<Vec<_>>(), expected_bins, "{range} {lane} {same}");
                let mut expected: Vec<[i64; 2]> =
                    column("tasks", "start").into_iter().zip(column("tasks", "finish")).map(|(a, b)| [a, b]).collect();
                expected.sort_unstable();
                let those = tasks.iter().filter(|task| task[0] == lane as i64).map(|task| [task[2], task[3]]);
                let mut those: Vec<_> = those.collect();
                those.sort_unstable();
                assert_eq!(those, expected, "{range} {lane} {same}");
                assert!(asked[0] >= begin - ticks);
            }
        }
        assert!(moved > 0);
    }
}

/// However unevenly tasks lie, and however long a trace is, a picture of the whole is read from few bins, and all tasks are in it.
#[test]
fn uneven_traces_are_kept_as_fine_as_they_want() {
    let place = Place::new();
    // A busy location beside many that run one task, a task long after all others, and runs at the ends of what a time may be.
    let busy =
        |tasks: i64| (0..tasks).map(|task| format!("n,busy,{},{}\n", task * 20, task * 20 + 13)).collect::<String>();
    let lone: String = (0..400).map(|lane| format!("n,lone{lane},{},{}\n", lane * 300, lane * 300 + 5)).collect();
    let head = "name,location,start_ns,finish_ns\n";
    place.write("lone.csv", &format!("{head}{}{lone}", busy(6000)));
    place.write("late.csv", &format!("{head}{}n,busy,90000000000,90000000007\n", busy(6000)));
    place.write(
        "ends.csv",
        &format!("{head}n,a,-4000000000000000000,-3999999999999999000\nn,a,4000000000000000000,4000000000000000050\n"),
    );
    let open = |file: &str| {
        let store = format!("{file}.store");
        assert_eq!(place.tq_args(&["import", file, "--into", &store]).status, Some(0));
        let store = place.0.path().join(store).to_str().unwrap().to_owned();
        let trace = place.0.path().join(file).to_str().unwrap().to_owned();
        (View::of(Place::new(), &[&trace]), View::with(Place::new(), &[&store], &[("TQ_VIEW_LEAST_KEPT", "0")]))
    };
    let sums = |view: &View, range: &str| {
        let answer = view.get(&format!("tile?{range}&lanes=0-999"));
        assert_eq!(answer.status, 200, "{range}");
        let (header, body) = answer.columns();
        let counts: i64 = integers((&header, body), "bins", "count").iter().sum();
        (counts, integers((&header, body), "tasks", "task").len(), answer.body.len())
    };
    for (file, tasks) in [("lone.csv", 6400), ("late.csv", 6001), ("ends.csv", 2)] {
        let (memory, disk) = open(file);
        let info = disk.get("info").json();
        let (first, last) = (info["start"].as_str().unwrap(), info["finish"].as_str().unwrap());
        for bins in [1, 4, 300, 2000] {
            let range = format!("from={first}&to={last}&bins={bins}");
            let (counts, drawn, bytes) = sums(&disk, &range);
            // A task may touch two bins.
            assert!((tasks..=2 * tasks).contains(&(counts + drawn as i64)), "{file} {range}: {counts} {drawn}");
            assert!(bytes < 600_000, "{file} {range}: {bytes}");
        }
        if file != "ends.csv" {
            let (header, of_disk, bins) = tile_of(&disk, "from=50000&to=60000&bins=1000");
            let range = format!(
                "from={}&to={}&bins={}",
                header["from"].as_str().unwrap(),
                header["to"].as_str().unwrap(),
                header["bins"]
            );
            let (_, of_memory, expected) = tile_of(&memory, &range);
            assert_eq!((of_disk, bins), (of_memory, expected), "{file} {range}");
        }
        let aligned = disk.get("tile?from=0&to=9223372036854775807&bins=1000&lanes=0-20&aligned=1");
        assert_eq!(aligned.status, 200, "{file}");
    }
}

/// What is regular packs very well, and is found again.
#[test]
fn regular_traces_are_found_again() {
    let place = Place::new();
    let rows: String =
        (0..30_000).map(|row| format!("step,l{},{},{}\n", row % 3000, row / 3000 * 10, row / 3000 * 10 + 10)).collect();
    place.write("regular.csv", &format!("name,location,start_ns,finish_ns\n{rows}"));
    assert_eq!(place.tq_args(&["import", "regular.csv", "--into", "r.store"]).status, Some(0));
    let store = place.0.path().join("r.store");
    let open = || {
        View::with(Place::new(), &[store.to_str().unwrap()], &[("TQ_VIEW_LEAST_KEPT", "0")]).get("info");
        let kept = std::fs::read_dir(store.join("view")).unwrap().map(|entry| entry.unwrap().path());
        kept.map(|path| std::fs::metadata(path).unwrap().modified().unwrap()).collect::<Vec<_>>()
    };
    let first = open();
    assert_eq!((first.len(), &first), (1, &open()));
}

#[test]
fn what_cannot_be_served_is_said() {
    let place = Place::new();
    place.tq("view").check(&expect_test::expect![[r#"
        --- stderr
        error: there is nothing to look at
        hint: `tq view TRACE`
        --- exit 2
    "#]]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let answer = place.tq_args(&["view", "run.json", "--no-open", "--port", &port]);
    assert_eq!(answer.status, Some(2));
    assert!(answer.stderr.contains("hint: without --port, any free one is taken"), "{}", answer.stderr);
}
