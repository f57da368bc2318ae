//! Question: what does a store cost on disk, to write and to open, and how much of it do questions read?
//!
//! `cargo run --release --example store -- [MILLIONS] [RUNS]`: MILLIONS (5) million tasks with a link for nearly each on 100 locations, with
//! 5000 names, then RUNS (1000) runs of 5000 tasks. Says first how much disk it needs, in the folder for temporary files (`TMPDIR`), and
//! how much memory: importing holds a trace. Beside the times, each question says what its scans read.

use std::path::Path;

use tokio::runtime::{Builder, Runtime};
use tq_benches::generate::grown::{Kind, Size, grown};
use tq_benches::measure::{once, peak_memory_bytes, repeat};
use tq_engine::import::import_runs;
use tq_engine::store::{self, Replace};
use tq_engine::{NamedRun, OpenOptions, Session, TraceSpec};

const THREADS: usize = 2;
const LIMIT: usize = 16 << 30;
/// About how many bytes a task with its link takes on disk and in memory.
const BYTES_ON_DISK: usize = 24;
const BYTES_IN_MEMORY: usize = 220;
/// Tasks of each small run, and runs of one import.
const SMALL_TASKS: usize = 5000;
const TOGETHER: usize = 200;

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn main() {
    let arguments: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let tasks = arguments.first().copied().unwrap_or(5) * 1_000_000;
    let runs = arguments.get(1).copied().unwrap_or(1000);
    let megabytes = |bytes: usize| bytes / 1_000_000;
    println!(
        "about {} MB of disk in {}, {} MB of memory",
        megabytes((tasks + runs * SMALL_TASKS) * BYTES_ON_DISK),
        std::env::temp_dir().display(),
        megabytes(tasks.max(TOGETHER * SMALL_TASKS) * BYTES_IN_MEMORY)
    );
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_stack_size(256 << 20).enable_all().build();
    let runtime = runtime.expect("threads");
    let folder = std::env::temp_dir().join(format!("tq-store-bench-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder for the stores");
    large(&runtime, &folder.join("large"), tasks);
    small(&runtime, &folder.join("small"), runs);
    std::fs::remove_dir_all(&folder).expect("the stores are removed");
    println!("peak memory {} MB", peak_memory_bytes() >> 20);
}

fn options() -> OpenOptions {
    OpenOptions::new(LIMIT, THREADS)
}

fn open(store: &Path) -> Session {
    let traces = vec![TraceSpec { name: None, path: store.to_owned() }];
    Session::open(&OpenOptions { traces, ..options() }).expect("a store")
}

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn write(store: &Path, runs: Vec<NamedRun>) {
    let (written, cost) = once(|| import_runs(store, runs, &options(), &Replace::Nothing, false));
    let written = written.expect("a store");
    println!(
        "{} runs written in {:.2} s, {:.2} s of processor time",
        written.runs.len(),
        cost.wall.as_secs_f64(),
        cost.cpu.as_secs_f64()
    );
}

/// One large trace.
#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn large(runtime: &Runtime, store: &Path, tasks: usize) {
    let size = Size { tasks, messages: 1000, names: 5000, locations: 100 };
    write(store, grown(Kind::Graph, size).expect("a trace"));
    let listed = store::list(store).expect("a store");
    let (rows, bytes): (u64, u64) = listed.iter().fold((0, 0), |all, run| (all.0 + run.rows, all.1 + run.bytes));
    println!("{rows} rows in {bytes} bytes: {:.1} a task", bytes as f64 / tasks as f64);
    repeat("open", 5, || open(store));
    repeat("open, and count(*)", 5, || ask(runtime, &open(store), "SELECT count(*) FROM tasks"));
    let session = open(store);
    let middle = "(SELECT max(finish) / 2 FROM tasks WHERE run = 'base')";
    let middle: i64 = ask(runtime, &session, middle).parse().unwrap_or(0);
    let end = middle + middle / 50;
    let slice = format!("WHERE location = (SELECT min(location) FROM locations) AND start BETWEEN {middle} AND {end}");
    for (label, sql) in [
        ("GROUP BY name", "SELECT name, count(*), sum(duration) FROM tasks GROUP BY name".to_owned()),
        (
            "GROUP BY location, name",
            "SELECT location, name, sum(duration) FROM tasks GROUP BY location, name".to_owned(),
        ),
        ("one percent of the time", format!("SELECT sum(duration) FROM tasks WHERE start BETWEEN {middle} AND {end}")),
        ("of one location", format!("SELECT sum(duration), count(args) FROM tasks {slice}")),
        ("one task", format!("SELECT name, args FROM tasks WHERE task = {}", tasks / 5)),
        ("LIMIT 10", "SELECT * FROM tasks LIMIT 10".to_owned()),
        ("all columns", "SELECT count(id), count(args), sum(start), sum(finish), max(name) FROM tasks".to_owned()),
    ] {
        repeat(label, 5, || ask(runtime, &session, &sql));
        println!("    {}", scans(runtime, &session, &sql));
    }
    let (from, to) = (Some(tq_engine::time::GivenTime::Ticks(middle)), Some(tq_engine::time::GivenTime::Ticks(end)));
    repeat("--from, --to: one percent", 5, || {
        let traces = vec![TraceSpec { name: None, path: store.to_owned() }];
        let session = Session::open(&OpenOptions { traces, from, to, ..options() }).expect("a slice");
        ask(runtime, &session, "SELECT count(*) FROM tasks")
    });
}

/// Many small runs.
fn small(runtime: &Runtime, store: &Path, runs: usize) {
    let size = Size { tasks: SMALL_TASKS, messages: 10, names: 40, locations: 8 };
    let of_pair = |pair: usize| {
        let named =
            move |(side, named): (usize, NamedRun)| NamedRun { name: format!("night/{:05}", 2 * pair + side), ..named };
        grown(Kind::Graph, Size { tasks: 2 * size.tasks, ..size }).expect("a trace").into_iter().enumerate().map(named)
    };
    for first in (0..runs / 2).step_by(TOGETHER / 2) {
        write(store, (first..(first + TOGETHER / 2).min(runs / 2)).flat_map(of_pair).collect());
    }
    repeat("open many runs", 5, || open(store));
    repeat("open, and ask about one run", 5, || {
        ask(runtime, &open(&store.join("night/00007")), "SELECT sum(duration) FROM tasks")
    });
    let session = open(store);
    repeat("one run of many", 5, || {
        ask(runtime, &session, "SELECT sum(duration) FROM tasks WHERE run = 'night/00007'")
    });
    repeat("GROUP BY run", 5, || ask(runtime, &session, "SELECT run, sum(duration) FROM tasks GROUP BY run"));
}

/// The first cell of an answer that is read to its end.
fn ask(runtime: &Runtime, session: &Session, sql: &str) -> String {
    use datafusion::arrow::util::display::array_value_to_string;
    runtime.block_on(async {
        let mut rows = session.sql(sql).await.expect("a query").start().await.expect("rows");
        let mut first = String::new();
        while let Some(batch) = rows.next().await {
            let batch = batch.expect("rows");
            if first.is_empty() && batch.num_rows() > 0 {
                first = array_value_to_string(batch.column(0), 0).expect("a text");
            }
        }
        first
    })
}

/// What the scans of a query read.
fn scans(runtime: &Runtime, session: &Session, sql: &str) -> String {
    use datafusion::arrow::util::display::array_value_to_string;
    let batches = runtime.block_on(async {
        session.sql(&format!("EXPLAIN ANALYZE {sql}")).await.expect("a query").collect().await.expect("a plan")
    });
    let cells = batches.iter().flat_map(|batch| {
        (0..batch.num_rows()).map(|row| array_value_to_string(batch.column(1), row).unwrap_or_default())
    });
    let plan: Vec<String> = cells.collect();
    let scans = plan.iter().flat_map(|plan| plan.lines()).filter(|line| line.contains("StoredExec"));
    scans.map(str::trim).collect::<Vec<_>>().join("\n    ")
}
