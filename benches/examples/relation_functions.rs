//! Question: what do relation functions through SQL cost beside a plain single-threaded loop that does the same?
//!
//! ```text
//! cargo run --release --example relation_functions [tasks in millions] [function]
//! cargo run --release --example relation_functions scaling [largest size in millions]
//! cargo run --release --example relation_functions flat [tasks in millions]
//! ```
//!
//! Tasks nest four deep on 100 locations, with gaps between; rows come in the order of starts (`sorted`) or in none
//! (`shuffled`). The plain loops work on arrays that know their lanes already, sort where the rows are not sorted, and make no
//! columns. Bars: each function on 5 M tasks in 2 s; `timeline` in 0.5 s; `ready`, `slack` and `executed_path` with 20 M links in 4 s;
//! `cluster_view` in 0.5 s, a tenth of it in 50 ms. `scaling` prints what a row costs at growing sizes, sorted. `flat`
//! is `cluster_view` on tasks as Taskflow records them, side by side on eight workers.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::array::{
    ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, new_null_array,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::datasource::MemTable;
use datafusion::physical_plan::{ExecutionPlan, collect};
use tokio::runtime::Runtime;
use tq_benches::measure::{peak_memory_bytes, repeat};
use tq_benches::random::Random;
use tq_engine::open::OpenOptions;
use tq_engine::session::Session;
use tq_engine::tables::Table;

const RUNS: usize = 3;
const THREADS: usize = 2;
const LANES: usize = 100;
const NAMES: usize = 1_000;

#[derive(Debug, Clone, Copy)]
struct Task {
    lane: usize,
    name: usize,
    start: i64,
    finish: i64,
    parent: Option<i64>,
    depth: i64,
}

/// A bench of one function: its name, the query, and the plain loop that answers the same number.
struct Bench {
    name: &'static str,
    query: &'static str,
    plain: fn(&[Task]) -> i64,
}

/// The same for a function on a graph of tasks; links are pairs of positions, sorted by target.
struct GraphBench {
    name: &'static str,
    query: &'static str,
    plain: fn(&[Task], &[Link]) -> i64,
}

/// From a task to a later one, as positions.
type Link = (u32, u32);

const LINKS_PER_TASK: usize = 4;

const GRAPH_BENCHES: [GraphBench; 3] = [
    GraphBench { name: "ready", query: "SELECT sum(ready_time) FROM ready(tasks, links)", plain: ready },
    GraphBench {
        name: "executed_path",
        query: "SELECT sum(wait + running) FROM executed_path(tasks, links, (SELECT * FROM messages WHERE false))",
        plain: executed_path,
    },
    GraphBench { name: "slack", query: "SELECT sum(slack) FROM slack(tasks, links)", plain: slack },
];

const BENCHES: [Bench; 12] = [
    Bench { name: "self_time", query: "SELECT sum(self_time) FROM self_time(tasks)", plain: self_time },
    Bench { name: "call_tree", query: "SELECT sum(self_time) FROM call_tree(tasks)", plain: call_tree },
    Bench {
        name: "descendants",
        query: "SELECT count(*) FROM descendants(tasks, (SELECT task FROM tasks WHERE depth = 0))",
        plain: inner_tasks,
    },
    Bench {
        name: "ancestors",
        query: "SELECT count(*) FROM ancestors(tasks, (SELECT task FROM tasks WHERE depth > 0))",
        plain: pairs_of_relatives,
    },
    Bench { name: "gaps", query: "SELECT sum(duration) FROM gaps(tasks)", plain: gaps },
    Bench {
        name: "intersect",
        query: "SELECT count(*) FROM intersect((SELECT * FROM tasks WHERE depth = 0), (SELECT * FROM tasks WHERE depth > 0))",
        plain: inner_tasks,
    },
    Bench {
        name: "subtract",
        query: "SELECT sum(duration) FROM subtract((SELECT * FROM tasks WHERE depth = 0), (SELECT * FROM tasks WHERE depth = 1))",
        plain: own_time_of_outermost,
    },
    Bench { name: "concurrency", query: "SELECT max(running) FROM concurrency(tasks)", plain: concurrency },
    Bench { name: "max_concurrency", query: "SELECT max_concurrency(start, finish) FROM tasks", plain: concurrency },
    Bench { name: "timeline", query: "SELECT sum(busy) FROM timeline(tasks, 1000)", plain: timeline },
    Bench {
        name: "cluster_view",
        query: "SELECT sum(count) FROM cluster_view(tasks, 512)",
        plain: |tasks| clusters(tasks, i64::MIN, i64::MAX),
    },
    Bench {
        name: "cluster_view_tenth",
        query: "SELECT sum(count) FROM cluster_view(tasks, 512, 3000000, 3750000)",
        plain: |tasks| clusters(tasks, 3_000_000, 3_750_000),
    },
];

/// Functions of aggregates and windows, for the table of sizes: their benches are `sql_functions`.
const OTHERS: [(&str, &str); 4] = [
    ("busy", "SELECT sum(busy) FROM (SELECT busy(start, finish) AS busy FROM tasks GROUP BY location)"),
    ("occupancy", "SELECT sum(o) FROM (SELECT occupancy(start, finish, 1) AS o FROM tasks GROUP BY location)"),
    (
        "floating_row",
        "SELECT max(r) FROM (SELECT floating_row(start, finish) OVER (PARTITION BY location ORDER BY start, finish) AS r FROM tasks)",
    ),
    ("critical_path", "SELECT max(path_time) FROM critical_path(tasks, links)"),
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    let millions: Option<f64> = first.as_ref().and_then(|text| text.parse().ok());
    let only = arguments.next();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let runtime = runtime.expect("a runtime");
    if first.as_deref() == Some("scaling") {
        return scaling(&runtime, only.and_then(|text| text.parse().ok()).unwrap_or(10.0));
    }
    if first.as_deref() == Some("flat") {
        let tasks = flat_tasks((only.and_then(|text| text.parse().ok()).unwrap_or(5.1) * 1e6) as usize);
        println!("{} tasks on {WORKERS} locations, {THREADS} threads", tasks.len());
        return compare(&runtime, "flat", &tasks, &(0..tasks.len() as i64).collect::<Vec<_>>(), |name| {
            name.starts_with("cluster_view")
        });
    }
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    let millions = millions.unwrap_or(5.0);
    let sorted = tasks((millions * 1e6) as usize);
    println!("{} tasks on {LANES} locations, {THREADS} threads", sorted.len());
    let mut shuffled: Vec<(i64, Task)> = (0..).zip(sorted.iter().copied()).collect();
    Random::new(2).shuffle(&mut shuffled);
    let (ids, shuffled): (Vec<i64>, Vec<Task>) = shuffled.into_iter().unzip();
    for (order, tasks, ids) in [("sorted", &sorted, (0..sorted.len() as i64).collect()), ("shuffled", &shuffled, ids)] {
        compare(&runtime, order, tasks, &ids, wanted);
    }
    let links = links(sorted.len());
    let linked = session(&sorted, &(0..sorted.len() as i64).collect::<Vec<_>>());
    add_links(&linked, &links);
    println!("{} links", links.len());
    for bench in GRAPH_BENCHES.iter().filter(|bench| wanted(bench.name)) {
        let expected = (bench.plain)(&sorted, &links);
        let plain = repeat(&format!("{}: plain loop", bench.name), RUNS, || (bench.plain)(&sorted, &links));
        let cost = repeat(&format!("{}: SQL", bench.name), RUNS, || {
            assert_eq!(number(&runtime, &linked, bench.query), expected, "{}", bench.query);
        });
        println!("{:>60.2} x the plain loop (cpu)", cost.cpu.as_secs_f64() / plain.cpu.as_secs_f64().max(0.01));
    }
    println!("peak memory {} MB", peak_memory_bytes() >> 20);
}

/// The wanted functions on these tasks, through SQL and as plain loops.
fn compare(runtime: &Runtime, order: &str, tasks: &[Task], ids: &[i64], wanted: impl Fn(&str) -> bool) {
    let session = session(tasks, ids);
    for bench in BENCHES.iter().filter(|bench| wanted(bench.name)) {
        let expected = (bench.plain)(tasks);
        let plain = repeat(&format!("{}, {order}: plain loop", bench.name), RUNS, || (bench.plain)(tasks));
        let cost = repeat(&format!("{}, {order}: SQL", bench.name), RUNS, || {
            assert_eq!(number(runtime, &session, bench.query), expected, "{}", bench.query);
        });
        println!("{:>60.2} x the plain loop (cpu)", cost.cpu.as_secs_f64() / plain.cpu.as_secs_f64().max(0.01));
    }
}

/// A table of what a row costs: sizes from 10 000 rows on, each ten times the last.
fn scaling(runtime: &Runtime, largest_millions: f64) {
    let mut sizes = vec![10_000];
    while let Some(next) = sizes.last().map(|last| last * 10).filter(|next| *next as f64 <= largest_millions * 1e6) {
        sizes.push(next);
    }
    let queries: Vec<(&str, &str)> = (BENCHES.iter().map(|bench| (bench.name, bench.query)))
        .chain(GRAPH_BENCHES.iter().map(|bench| (bench.name, bench.query)))
        .chain(OTHERS)
        .collect();
    let mut lines: Vec<String> = queries.iter().map(|(name, _)| format!("| `{name}` |")).collect();
    for size in &sizes {
        let rows = tasks(*size);
        let session = session(&rows, &(0..rows.len() as i64).collect::<Vec<_>>());
        add_links(&session, &links(rows.len()));
        for (line, (_, query)) in lines.iter_mut().zip(&queries) {
            let mut costs: Vec<(Duration, Option<usize>)> = (0..RUNS).map(|_| cost(runtime, &session, query)).collect();
            costs.sort();
            let (wall, memory) = costs[RUNS / 2];
            let memory = memory.map_or_else(|| "–".to_owned(), |bytes| (bytes / rows.len()).to_string());
            let _ = write!(
                line,
                " {:.1} ms, {} ns, {memory} B |",
                wall.as_secs_f64() * 1e3,
                wall.as_nanos() / rows.len() as u128
            );
        }
    }
    println!("| function |{}", sizes.iter().map(|size| format!(" {size} rows |")).collect::<String>());
    println!("| --- |{}", " --- |".repeat(sizes.len()));
    lines.iter().for_each(|line| println!("{line}"));
}

/// The time of a query, and the most memory that its relation function asked for; `None` without one.
fn cost(runtime: &Runtime, session: &Session, query: &str) -> (Duration, Option<usize>) {
    runtime.block_on(async {
        let started = Instant::now();
        let frame = session.sql(query).await.expect("plans").into_frame();
        let context = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await.expect("plans");
        collect(Arc::clone(&plan), context).await.expect("runs");
        (started.elapsed(), peak_of(&plan))
    })
}

fn peak_of(plan: &Arc<dyn ExecutionPlan>) -> Option<usize> {
    let own = plan.metrics().and_then(|metrics| metrics.sum_by_name("peak_memory")).map(|peak| peak.as_usize());
    own.or_else(|| plan.children().into_iter().find_map(peak_of))
}

/// Links from tasks shortly before, as a runtime system's graph has them.
fn links(tasks: usize) -> Vec<Link> {
    let mut random = Random::new(9);
    let mut links = Vec::with_capacity(tasks * LINKS_PER_TASK);
    for target in 1..tasks as i64 {
        for _ in 0..LINKS_PER_TASK {
            links.push(((target - random.between(1, target.min(64) + 1)) as u32, target as u32));
        }
    }
    links
}

fn ready(tasks: &[Task], links: &[Link]) -> i64 {
    let mut ready = vec![i64::MIN; tasks.len()];
    for (source, target) in links {
        ready[*target as usize] = ready[*target as usize].max(tasks[*source as usize].finish);
    }
    ready.iter().filter(|time| **time > i64::MIN).sum()
}

/// The latest releases of all tasks, and the makespan: what the steps and waits of a path that is not walked add up to.
fn executed_path(tasks: &[Task], links: &[Link]) -> i64 {
    let mut releases = vec![i64::MIN; tasks.len()];
    for (source, target) in links {
        let (source, start) = (&tasks[*source as usize], tasks[*target as usize].start);
        if source.start < start {
            let release = &mut releases[*target as usize];
            *release = source.finish.min(start).max(*release);
        }
    }
    std::hint::black_box(&releases);
    let starts = tasks.iter().map(|task| task.start).min();
    tasks.iter().map(|task| task.finish).max().unwrap_or(0) - starts.unwrap_or(0)
}

fn slack(tasks: &[Task], links: &[Link]) -> i64 {
    let duration = |task: u32| tasks[task as usize].finish - tasks[task as usize].start;
    let mut earliest: Vec<i64> = (0..tasks.len() as u32).map(duration).collect();
    for (source, target) in links {
        let path = earliest[*source as usize] + duration(*target);
        earliest[*target as usize] = earliest[*target as usize].max(path);
    }
    let mut after = vec![0i64; tasks.len()];
    for (source, target) in links.iter().rev() {
        let path = after[*target as usize] + duration(*target);
        after[*source as usize] = after[*source as usize].max(path);
    }
    let horizon = earliest.iter().copied().max().unwrap_or(0);
    earliest.iter().zip(&after).map(|(earliest, after)| horizon - after - earliest).sum()
}

/// How many tasks there are in the window: as many as in all segments. The keys are selected all the same.
fn clusters(tasks: &[Task], from: i64, to: i64) -> i64 {
    let inside: Vec<Task> = tasks.iter().copied().filter(|task| from <= task.finish && task.start <= to).collect();
    let mut rows: Vec<Vec<Task>> = vec![vec![]; LANES * 4];
    inside.iter().for_each(|task| rows[task.lane * 4 + task.depth as usize].push(*task));
    let mut keys: Vec<i64> = vec![];
    for row in &mut rows {
        row.sort_by_key(|task| task.start);
        keys.extend(row.windows(2).map(|pair| pair[1].finish - pair[0].start));
    }
    let place = 511.min(keys.len().saturating_sub(1));
    if !keys.is_empty() {
        keys.select_nth_unstable_by(place, |one, other| other.cmp(one));
    }
    std::hint::black_box(&keys);
    inside.len() as i64
}

/// Stacks of four tasks, one inside of the other, on one lane after the other: the order of starts of a recording whose
/// lanes are busy alike.
fn tasks(count: usize) -> Vec<Task> {
    let mut random = Random::new(7);
    let mut free = vec![0i64; LANES];
    let mut tasks: Vec<Task> = Vec::with_capacity(count + 4);
    while tasks.len() < count {
        let lane = (0..LANES).min_by_key(|lane| free[*lane]).unwrap_or(0);
        let mut start = free[lane] + random.between(0, 100);
        let mut finish = start + random.between(100, 1_000);
        free[lane] = finish;
        let mut parent = None;
        for depth in 0..4 {
            let name = random.between(0, NAMES as i64) as usize;
            tasks.push(Task { lane, name: name / (NAMES / 10), start, finish, parent, depth });
            parent = Some(tasks.len() as i64 - 1);
            start += random.between(1, 10);
            finish -= random.between(1, 10);
        }
    }
    tasks
}

/// Workers of a runtime system's recording.
const WORKERS: usize = 8;

/// Short tasks side by side, in the order of their starts; as many ticks in all as those of [`tasks`].
fn flat_tasks(count: usize) -> Vec<Task> {
    let mut random = Random::new(7);
    let mut free = [0i64; WORKERS];
    let next = |_| {
        let lane = (0..WORKERS).min_by_key(|lane| free[*lane]).unwrap_or(0);
        let start = free[lane] + random.between(0, 8);
        let finish = start + random.between(1, 17);
        free[lane] = finish;
        Task { lane, name: 0, start, finish, parent: None, depth: 0 }
    };
    (0..count).map(next).collect()
}

/// The tasks of each lane in the order of nesting.
fn by_lane(tasks: &[Task]) -> Vec<Vec<Task>> {
    let mut lanes: Vec<Vec<Task>> = vec![vec![]; LANES];
    tasks.iter().for_each(|task| lanes[task.lane].push(*task));
    for lane in &mut lanes {
        if !lane.is_sorted_by_key(|task| (task.start, -task.finish)) {
            lane.sort_unstable_by_key(|task| (task.start, -task.finish));
        }
    }
    lanes
}

fn self_time(tasks: &[Task]) -> i64 {
    let mut total = 0;
    for lane in by_lane(tasks) {
        let mut own: Vec<i64> = lane.iter().map(|task| task.finish - task.start).collect();
        let mut open: Vec<usize> = vec![];
        for (place, task) in lane.iter().enumerate() {
            while open.last().is_some_and(|top| lane[*top].finish <= task.start) {
                open.pop();
            }
            if let Some(top) = open.last() {
                own[*top] -= task.finish - task.start;
            }
            open.push(place);
        }
        total += own.iter().sum::<i64>();
    }
    total
}

fn call_tree(tasks: &[Task]) -> i64 {
    let mut nodes: HashMap<(usize, usize), (usize, i64)> = HashMap::new();
    for lane in by_lane(tasks) {
        let mut open: Vec<(i64, usize)> = vec![];
        for task in &lane {
            while open.last().is_some_and(|top| top.0 <= task.start) {
                open.pop();
            }
            let next = nodes.len() + 1;
            let above = open.last().map_or(0, |top| top.1);
            let node = nodes.entry((above, task.name)).or_insert((next, 0));
            node.1 += (task.finish - task.start) * i64::from(open.is_empty());
            open.push((task.finish, node.0));
        }
    }
    // Self times add up to the times of the outermost.
    nodes.values().map(|node| node.1).sum()
}

/// Each task that is not outermost is below one outermost task.
fn inner_tasks(tasks: &[Task]) -> i64 {
    tasks.iter().filter(|task| task.depth > 0).count() as i64
}

/// Depth is the number of ancestors.
fn pairs_of_relatives(tasks: &[Task]) -> i64 {
    tasks.iter().map(|task| task.depth).sum()
}

fn gaps(tasks: &[Task]) -> i64 {
    let mut total = 0;
    for lane in by_lane(tasks) {
        let mut until = lane.first().map_or(0, |task| task.start);
        for task in &lane {
            total += (task.start - until).max(0);
            until = until.max(task.finish);
        }
    }
    total
}

fn own_time_of_outermost(tasks: &[Task]) -> i64 {
    let ticks =
        |depth: i64| tasks.iter().filter(|task| task.depth == depth).map(|task| task.finish - task.start).sum::<i64>();
    ticks(0) - ticks(1)
}

fn concurrency(tasks: &[Task]) -> i64 {
    let mut changes: Vec<(i64, i64)> = tasks.iter().flat_map(|task| [(task.start, 1), (task.finish, -1)]).collect();
    changes.sort_unstable();
    let (mut running, mut most) = (0, 0);
    for (_, change) in changes {
        running += change;
        most = most.max(running);
    }
    most
}

fn timeline(tasks: &[Task]) -> i64 {
    let (from, to) =
        tasks.iter().fold((i64::MAX, i64::MIN), |(from, to), task| (from.min(task.start), to.max(task.finish)));
    let width = (to - from).div_euclid(1000) + 1;
    let mut bins = vec![[0i64; 1000]; LANES];
    for lane in by_lane(tasks) {
        let mut until = from;
        for task in &lane {
            let mut at = task.start.max(until);
            until = until.max(task.finish);
            while at < task.finish {
                let bin = (at - from) / width;
                let end = task.finish.min(from + (bin + 1) * width);
                bins[task.lane][bin as usize] += end - at;
                at = end;
            }
        }
    }
    bins.iter().flatten().sum()
}

/// A session whose `tasks` are these, in batches of two partitions that share their dictionaries.
fn session(tasks: &[Task], ids: &[i64]) -> Session {
    let session = Session::open(&OpenOptions::new(16 << 30, THREADS)).expect("an empty session");
    let schema = Table::Tasks.schema();
    let dictionary = |words: Vec<String>| -> ArrayRef { Arc::new(StringArray::from(words)) };
    let locations = dictionary((0..LANES).map(|lane| format!("E0/W{lane}")).collect());
    let names = dictionary((0..NAMES).map(|name| format!("task_{name}")).collect());
    let runs = dictionary(vec!["bench".to_owned()]);
    let batch = |from: usize| {
        let rows = from..tasks.len().min(from + 8192);
        let of = || tasks[rows.clone()].iter();
        let integers =
            |value: &dyn Fn(&Task) -> i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(of().map(value))) };
        let words = |values: &ArrayRef, key: &dyn Fn(&Task) -> i32| -> ArrayRef {
            let keys = Int32Array::from_iter_values(of().map(key));
            Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::clone(values)))
        };
        let columns = schema.fields().iter().map(|field| match field.name().as_str() {
            "run" => words(&runs, &|_| 0),
            "task" => Arc::new(Int64Array::from(ids[rows.clone()].to_vec())),
            "parent" => Arc::new(of().map(|task| task.parent).collect::<Int64Array>()),
            "name" => words(&names, &|task| task.name as i32),
            "location" => words(&locations, &|task| task.lane as i32),
            "start" => integers(&|task| task.start),
            "finish" => integers(&|task| task.finish),
            "duration" => integers(&|task| task.finish - task.start),
            "depth" => integers(&|task| task.depth),
            _ => new_null_array(field.data_type(), rows.len()),
        });
        RecordBatch::try_new(Arc::clone(&schema), columns.collect()).expect("a batch")
    };
    let batches: Vec<RecordBatch> = (0..tasks.len()).step_by(8192).map(batch).collect();
    let partitions = batches.chunks(batches.len().div_ceil(THREADS).max(1)).map(<[RecordBatch]>::to_vec).collect();
    let memory = MemTable::try_new(schema, partitions).expect("batches of the schema");
    session.context().deregister_table("tasks").expect("there");
    session.context().register_table("tasks", Arc::new(memory)).expect("free");
    session
}

/// Puts links between tasks whose ids are their positions into a session.
fn add_links(session: &Session, links: &[Link]) {
    let schema = Table::Links.schema();
    let kinds: ArrayRef = Arc::new(StringArray::from(vec!["dependency"]));
    let runs: ArrayRef = Arc::new(StringArray::from(vec!["bench"]));
    let batch = |from: usize| {
        let rows = &links[from..links.len().min(from + 8192)];
        let word = |values: &ArrayRef| -> ArrayRef {
            let keys = Int32Array::from(vec![0; rows.len()]);
            Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::clone(values)))
        };
        let columns = schema.fields().iter().map(|field| match field.name().as_str() {
            "run" => word(&runs),
            "source" => Arc::new(Int64Array::from_iter_values(rows.iter().map(|link| i64::from(link.0)))),
            "target" => Arc::new(Int64Array::from_iter_values(rows.iter().map(|link| i64::from(link.1)))),
            "kind" => word(&kinds),
            _ => new_null_array(field.data_type(), rows.len()),
        });
        RecordBatch::try_new(Arc::clone(&schema), columns.collect()).expect("a batch")
    };
    let batches: Vec<RecordBatch> = (0..links.len()).step_by(8192).map(batch).collect();
    let partitions = batches.chunks(batches.len().div_ceil(THREADS).max(1)).map(<[RecordBatch]>::to_vec).collect();
    let memory = MemTable::try_new(schema, partitions).expect("batches of the schema");
    session.context().deregister_table("links").expect("there");
    session.context().register_table("links", Arc::new(memory)).expect("free");
}

/// The single number that a query answers.
fn number(runtime: &Runtime, session: &Session, query: &str) -> i64 {
    runtime.block_on(async {
        let batches = session.sql(query).await.expect("plans").collect().await.expect("runs");
        let batch = batches.iter().find(|batch| batch.num_rows() > 0).expect("a row");
        let value = cast(batch.column(0), &DataType::Int64).expect("a number");
        value.as_primitive::<Int64Type>().value(0)
    })
}
