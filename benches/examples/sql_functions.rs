//! Functions through SQL at full size, each beside a plain loop over the same arrays in the same run:
//! `cargo run --release --example sql_functions [tasks in millions]`.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::datasource::MemTable;
use datafusion::prelude::col;
use tq_benches::measure::{peak_memory_bytes, repeat};
use tq_benches::random::Random;
use tq_engine::open::OpenOptions;
use tq_engine::session::Session;
use tq_engine::tables::Table;

const RUNS: usize = 5;
const THREADS: usize = 2;
const LOCATIONS: usize = 64;

struct Graph {
    starts: Vec<i64>,
    finishes: Vec<i64>,
    links: Vec<(i64, i64)>,
}

fn main() {
    let millions: f64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5.0);
    let graph = graph((millions * 1e6) as usize);
    println!("{} tasks, {} links, {LOCATIONS} locations, {THREADS} threads", graph.starts.len(), graph.links.len());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build().expect("a runtime");
    critical_paths(&runtime, &graph);
    spans(&runtime, &graph);
    println!("peak memory {} MB", peak_memory_bytes() >> 20);
}

/// Four links into each task from tasks shortly before it, as a runtime system's graph has them; sorted by target.
fn graph(tasks: usize) -> Graph {
    let mut random = Random::new(7);
    let (mut starts, mut finishes) = (Vec::with_capacity(tasks), Vec::with_capacity(tasks));
    let mut links = Vec::with_capacity(4 * tasks);
    for task in 0..tasks as i64 {
        let start = task * 10 + random.between(0, 10);
        starts.push(start);
        finishes.push(start + random.between(1, 1000));
        for _ in 0..4.min(task) {
            links.push((task - random.between(1, task.min(2000) + 1), task));
        }
    }
    Graph { starts, finishes, links }
}

fn critical_paths(runtime: &tokio::runtime::Runtime, graph: &Graph) {
    let durations: Vec<i64> = graph.starts.iter().zip(&graph.finishes).map(|(start, finish)| finish - start).collect();
    let plain = repeat("critical path: plain loop, links sorted by target", RUNS, || longest(&durations, &graph.links));
    let expected = longest(&durations, &graph.links);
    let mut links = graph.links.clone();
    for order in ["sorted by target", "sorted by source", "shuffled"] {
        match order {
            "sorted by source" => links.sort_unstable(),
            "shuffled" => Random::new(1).shuffle(&mut links),
            _ => {}
        }
        let session = session(graph, &links);
        let query = "SELECT max(path_time) FROM critical_path(tasks, links)";
        let cost = repeat(&format!("critical path: SQL, links {order}"), RUNS, || {
            assert_eq!(number(runtime, &session, query), expected);
        });
        println!("{:>60.2} x the plain loop (cpu)", cost.cpu.as_secs_f64() / plain.cpu.as_secs_f64().max(0.01));
    }
}

/// Links go forward and are sorted by target: each source is final when it is looked at.
fn longest(durations: &[i64], links: &[(i64, i64)]) -> i64 {
    let mut path = durations.to_vec();
    for &(source, target) in links {
        path[target as usize] = path[target as usize].max(path[source as usize] + durations[target as usize]);
    }
    path.into_iter().max().unwrap_or(0)
}

fn spans(runtime: &tokio::runtime::Runtime, graph: &Graph) {
    let mut order: Vec<usize> = (0..graph.starts.len()).collect();
    Random::new(2).shuffle(&mut order);
    let shuffled = Graph {
        starts: order.iter().map(|&task| graph.starts[task]).collect(),
        finishes: order.iter().map(|&task| graph.finishes[task]).collect(),
        links: Vec::new(),
    };
    let unsorted = session(&shuffled, &[]);
    let expected = union(&shuffled);
    repeat("busy: plain loop (sort pairs, sweep), unsorted", RUNS, || union(&shuffled));
    repeat("busy: SQL, unsorted, one group", RUNS, || {
        assert_eq!(number(runtime, &unsorted, "SELECT busy(start, finish) FROM tasks"), expected);
    });
    let by_location = "SELECT sum(b) FROM (SELECT busy(start, finish) AS b FROM tasks GROUP BY location)";
    repeat("busy: SQL, unsorted, by location", RUNS, || number(runtime, &unsorted, by_location));
    let sorted = session(graph, &[]);
    repeat("busy: SQL, sorted, one group", RUNS, || {
        assert_eq!(number(runtime, &sorted, "SELECT busy(start, finish) FROM tasks"), expected);
    });
    let occupancy = "SELECT count(o) FROM (SELECT occupancy(start, finish, 1) AS o FROM tasks GROUP BY location)";
    repeat("occupancy: SQL, by location", RUNS, || number(runtime, &sorted, occupancy));
    let rows = "SELECT max(r) FROM (SELECT floating_row(start, finish) OVER (PARTITION BY location ORDER BY start, task) AS r FROM tasks)";
    repeat("floating_row: SQL, by location", 3, || number(runtime, &sorted, rows));
    floating_rows_of_presorted(runtime, graph, rows);
    repeat("sum(duration): SQL, checked", RUNS, || number(runtime, &sorted, "SELECT sum(duration) FROM tasks"));
    repeat("sum(finish - start): SQL, checked", RUNS, || {
        number(runtime, &sorted, "SELECT sum(finish - start) FROM tasks")
    });
}

/// Rows in the order that the window asks for, and a table that says so: no sort is left.
fn floating_rows_of_presorted(runtime: &tokio::runtime::Runtime, graph: &Graph, query: &str) {
    let mut order: Vec<usize> = (0..graph.starts.len()).collect();
    order.sort_by_key(|task| task % LOCATIONS);
    let by_location = Graph {
        starts: order.iter().map(|&task| graph.starts[task]).collect(),
        finishes: order.iter().map(|&task| graph.finishes[task]).collect(),
        links: Vec::new(),
    };
    let lanes: Vec<usize> = order.iter().map(|task| task % LOCATIONS).collect();
    repeat("floating_row: the evaluator alone, by location", RUNS, || {
        let stretches = lanes.chunk_by(|one, other| one == other).scan(0, |end, stretch| {
            *end += stretch.len();
            Some(*end - stretch.len()..*end)
        });
        let rows = stretches.map(|rows| {
            let (starts, finishes) = (&by_location.starts[rows.clone()], &by_location.finishes[rows]);
            tq_udfs::floating_row::floating_rows(starts, finishes).expect("in order").into_iter().max()
        });
        rows.flatten().max()
    });
    let presorted = session_on(&by_location, &[], &|row| lanes[row], true);
    repeat("floating_row: SQL, presorted by location", 3, || number(runtime, &presorted, query));
}

fn union(graph: &Graph) -> i64 {
    let mut spans: Vec<(i64, i64)> = graph.starts.iter().copied().zip(graph.finishes.iter().copied()).collect();
    spans.sort_unstable();
    let (mut total, mut covered_until) = (0, i64::MIN);
    for (start, finish) in spans {
        total += (finish - start.max(covered_until)).max(0);
        covered_until = covered_until.max(finish);
    }
    total
}

/// A session whose `tasks` and `links` are these arrays.
fn session(graph: &Graph, links: &[(i64, i64)]) -> Session {
    session_on(graph, links, &|task| task % LOCATIONS, false)
}

/// The same with tasks on given lanes; `declared` says that they are in the order of location, start and task.
fn session_on(graph: &Graph, links: &[(i64, i64)], lane: &dyn Fn(usize) -> usize, declared: bool) -> Session {
    let session = Session::open(&OpenOptions::new(16 << 30, THREADS)).expect("an empty session");
    let duration = |task: usize| graph.finishes[task] - graph.starts[task];
    let tasks = batches(Table::Tasks, graph.starts.len(), |column, rows| match column {
        "task" => Some(integers(rows, |task| task as i64)),
        "start" => Some(integers(rows, |task| graph.starts[task])),
        "finish" => Some(integers(rows, |task| graph.finishes[task])),
        "duration" => Some(integers(rows, duration)),
        "location" => Some(words(rows, |task| format!("E0/W{:02}", lane(task)))),
        "run" => Some(words(rows, |_| "bench".to_owned())),
        _ => None,
    });
    let links = batches(Table::Links, links.len(), |column, rows| match column {
        "source" => Some(integers(rows, |link| links[link].0)),
        "target" => Some(integers(rows, |link| links[link].1)),
        "kind" => Some(words(rows, |_| "dependency".to_owned())),
        "run" => Some(words(rows, |_| "bench".to_owned())),
        _ => None,
    });
    for (table, batches) in [(Table::Tasks, tasks), (Table::Links, links)] {
        let share = batches.len().div_ceil(THREADS).max(1);
        let mut partitions: Vec<Vec<RecordBatch>> = batches.chunks(share).map(<[RecordBatch]>::to_vec).collect();
        partitions.resize(partitions.len().max(1), Vec::new());
        let mut memory = MemTable::try_new(table.schema(), partitions).expect("batches of the schema");
        if declared && table == Table::Tasks {
            let by = ["location", "start", "task"].map(|name| col(name).sort(true, false)).to_vec();
            memory = memory.with_sort_order(vec![by]);
        }
        session.context().deregister_table(table.name()).expect("there");
        session.context().register_table(table.name(), Arc::new(memory)).expect("free");
    }
    session
}

fn batches(
    table: Table,
    rows: usize,
    column: impl Fn(&str, std::ops::Range<usize>) -> Option<ArrayRef>,
) -> Vec<RecordBatch> {
    let schema = table.schema();
    (0..rows)
        .step_by(8192)
        .map(|from| {
            let range = from..rows.min(from + 8192);
            let columns = schema.fields().iter().map(|field| match column(field.name(), range.clone()) {
                Some(array) => cast(&array, field.data_type()).expect("castable"),
                None => new_null_array(field.data_type(), range.len()),
            });
            RecordBatch::try_new(Arc::clone(&schema), columns.collect()).expect("a batch")
        })
        .collect()
}

fn integers(rows: std::ops::Range<usize>, value: impl Fn(usize) -> i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows.map(value)))
}

fn words(rows: std::ops::Range<usize>, value: impl Fn(usize) -> String) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(rows.map(value)))
}

/// The single number that a query answers.
fn number(runtime: &tokio::runtime::Runtime, session: &Session, query: &str) -> i64 {
    runtime.block_on(async {
        let batches = session.sql(query).await.expect("plans").collect().await.expect("runs");
        let batch = batches.iter().find(|batch| batch.num_rows() > 0).expect("a row");
        let value = cast(batch.column(0), &DataType::Int64).expect("a number");
        value.as_primitive::<Int64Type>().value(0)
    })
}
