//! Question: what does one trace that is larger than memory cost, to write into a store and to ask?
//!
//! `cargo run --release --example large -- MILLIONS [LINKS] [STORE] [RUNS]`: MILLIONS million tasks on 100 locations with 5000 names, every
//! second one inside of another, with LINKS (4) dependencies each, are handed to the builder in pieces and written with the memory limit of
//! `tq import`, RUNS (1) times; says first how much disk it needs, in the folder for temporary files (`TMPDIR`). Where STORE is there
//! already it is only asked. Each question is asked by a process of its own with [`LIMIT`], which says the most that it had resident.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tokio::runtime::Builder;
use tq_benches::measure::{once, peak_memory_bytes};
use tq_benches::random::Random;
use tq_engine::cells::Cells;
use tq_engine::cells::kind::Word;
use tq_engine::error::ImportError;
use tq_engine::import::import;
use tq_engine::importers::{FormatDoc, ImportContext, Importer};
use tq_engine::store::{self, Replace};
use tq_engine::trace::Source;
use tq_engine::{OpenOptions, RunBuilder, Session, TraceSpec, tables};

const THREADS: usize = 2;
const IMPORT_LIMIT: usize = 2_000_000_000;
const LIMIT: usize = 4_000_000_000;
const LANES: usize = 100;
const NAMES: i64 = 5000;
/// Rows that are handed over at a time.
const PIECE: usize = 1 << 20;
/// About how many bytes a task and a link take in the store, and while they wait.
const TASK_BYTES: usize = 6 + 45;
const LINK_BYTES: usize = 3 + 17;

const QUESTIONS: [(&str, &str); 20] = [
    ("count(*)", "SELECT count(*) FROM tasks"),
    ("GROUP BY name", "SELECT name, count(*), sum(duration) FROM tasks GROUP BY name"),
    ("GROUP BY location, name", "SELECT location, name, sum(duration) FROM tasks GROUP BY location, name"),
    (
        "one location, one percent of the time",
        "SELECT sum(duration), count(*) FROM tasks WHERE location = 'L7' AND start BETWEEN {from} AND {to}",
    ),
    ("join on parent", "SELECT count(*), sum(p.duration) FROM tasks c JOIN tasks p ON p.task = c.parent"),
    ("busy by location", "SELECT location, busy(start, finish) FROM tasks GROUP BY location"),
    ("self_time", "SELECT name, sum(self_time) FROM self_time() GROUP BY name"),
    ("timeline", "SELECT count(*), sum(busy) FROM timeline()"),
    ("concurrency", "SELECT max(running) FROM concurrency()"),
    ("gaps", "SELECT count(*), sum(duration) FROM gaps()"),
    (
        "floating_row",
        "SELECT max(row) FROM (SELECT floating_row(start, finish) OVER (PARTITION BY location ORDER BY start) AS row FROM tasks)",
    ),
    ("call_tree", "SELECT count(*) FROM call_tree()"),
    ("cluster_view of a range", "SELECT count(*) FROM cluster_view(from => {from}, to => {to})"),
    ("critical_path", "SELECT count(*), sum(duration) FROM critical_path()"),
    ("slack", "SELECT count(*), sum(slack) FROM slack()"),
    ("ready", "SELECT count(*), max(ready_time) FROM ready()"),
    ("executed_path", "SELECT count(*), sum(running) FROM executed_path()"),
    (
        "what_if",
        "SELECT count(*) FROM what_if(changed => (SELECT task, 0 AS duration FROM tasks WHERE name = 'task_7'))",
    ),
    ("ancestors", "SELECT count(*) FROM ancestors(of => (SELECT task FROM tasks WHERE name = 'task_7'))"),
    ("descendants", "SELECT count(*) FROM descendants(of => (SELECT task FROM tasks WHERE name = 'task_7'))"),
];

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [ask, store, sql] = arguments.as_slice()
        && ask == "ask"
    {
        return answer(Path::new(store), sql);
    }
    let number = |place: usize| arguments.get(place).and_then(|text| text.parse::<usize>().ok());
    let (tasks, links) = (number(0).unwrap_or(50) * 1_000_000, number(1).unwrap_or(4));
    let own = std::env::temp_dir().join(format!("tq-large-bench-{}", std::process::id()));
    let store = arguments.get(2).map_or_else(|| own.join("store"), PathBuf::from);
    if !store.exists() {
        let bytes = tasks * (TASK_BYTES + links * LINK_BYTES);
        println!("about {} GB of disk in {}", bytes / 1_000_000_000, std::env::temp_dir().display());
        let runs = number(3).unwrap_or(1);
        for run in 1..=runs {
            let name = if runs == 1 { "large".to_owned() } else { format!("large/{run}") };
            write(&store, name, tasks, links);
        }
    }
    let program = std::env::current_exe().expect("a program");
    // In the middle of the run, which is five ticks long for each task.
    let (from, to) = (tasks / 2 * 5, (tasks / 2 + tasks / 100) * 5);
    for (label, sql) in QUESTIONS {
        let sql = sql.replace("{from}", &from.to_string()).replace("{to}", &to.to_string());
        let status = Command::new(&program).arg("ask").arg(&store).arg(sql).output().expect("a process");
        let text = String::from_utf8_lossy(&status.stdout);
        let error = String::from_utf8_lossy(&status.stderr);
        println!("{label:<38} {}{}", text.trim(), error.lines().next().unwrap_or_default());
    }
    if own.exists() {
        std::fs::remove_dir_all(&own).expect("the store is removed");
    }
}

/// Asks once, and says what it cost and the first cell of the answer.
#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn answer(store: &Path, sql: &str) {
    use tq_engine::datafusion::arrow::util::display::array_value_to_string;
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_stack_size(256 << 20).enable_all().build();
    let runtime = runtime.expect("threads");
    let (first, cost) = once(|| {
        let traces = vec![TraceSpec { name: None, path: store.to_owned() }];
        let session = Session::open(&OpenOptions { traces, ..OpenOptions::new(LIMIT, THREADS) }).expect("a store");
        runtime.block_on(async {
            let mut rows = session.sql(sql).await?.start().await?;
            let (mut first, mut count) = (String::new(), 0);
            while let Some(batch) = rows.next().await {
                let batch = batch?;
                if count == 0 && batch.num_rows() > 0 {
                    first = array_value_to_string(batch.column(0), 0).unwrap_or_default();
                }
                count += batch.num_rows();
            }
            Ok::<_, tq_engine::sql::SqlError>(format!("{count} rows, first {first}"))
        })
    });
    let first = first.unwrap_or_else(|error| error.to_string());
    println!(
        "{:8.2} s {:8.2} s cpu {:6} MB  {first}",
        cost.wall.as_secs_f64(),
        cost.cpu.as_secs_f64(),
        peak_memory_bytes() >> 20
    );
}

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn write(store: &Path, name: String, tasks: usize, links: usize) {
    std::fs::create_dir_all(store.parent().unwrap_or(store)).expect("a folder");
    // A format needs a file to read.
    let seed = store.with_extension("generated");
    std::fs::write(&seed, "generated\n").expect("a file");
    let options = OpenOptions {
        traces: vec![TraceSpec { name: Some(name), path: seed.clone() }],
        importers: vec![Arc::new(Generated { tasks, links })],
        from_format: Some(DOC.name.to_owned()),
        ..OpenOptions::new(IMPORT_LIMIT, THREADS)
    };
    let (written, cost) = once(|| import(store, &options, &Replace::Nothing, false));
    written.expect("a store");
    std::fs::remove_file(&seed).expect("the file is removed");
    let bytes = store::list(store).expect("a store").last().map_or(0, |run| run.bytes);
    println!(
        "{tasks} tasks and {} links written in {:.1} s, {:.1} s of processor time, {} MB resident at most; {bytes} bytes, {:.2} a task",
        tasks * links,
        cost.wall.as_secs_f64(),
        cost.cpu.as_secs_f64(),
        peak_memory_bytes() >> 20,
        bytes as f64 / tasks as f64
    );
}

static DOC: FormatDoc = FormatDoc {
    name: "generated",
    title: "rows that a bench makes",
    dialects: &[],
    fills: "tasks, links, locations",
    loses: "nothing",
    options: &[],
};

/// A format whose rows come from nowhere.
struct Generated {
    tasks: usize,
    links: usize,
}

impl Importer for Generated {
    fn doc(&self) -> &'static FormatDoc {
        &DOC
    }

    fn recognise(&self, source: &Source) -> bool {
        source.head().starts_with(b"generated")
    }

    fn import(&self, source: &Source, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        let (mut run, mut random) = (context.begin(source), Random::new(1));
        run.append_derived(tables::Locations {
            location: words("L", 0..LANES),
            kind: "worker".into(),
            role: "compute".into(),
            ..Default::default()
        })?;
        for from in (0..self.tasks).step_by(PIECE) {
            tasks(&mut run, &mut random, from..(from + PIECE).min(self.tasks))?;
        }
        let first = (2 * LANES).min(self.tasks);
        for from in (first..self.tasks).step_by(PIECE / 4) {
            links(&mut run, &mut random, from..(from + PIECE / 4).min(self.tasks), self.links)?;
        }
        context.finish(run)
    }
}

fn words(prefix: &str, numbers: impl Iterator<Item = usize>) -> Cells<Word> {
    numbers.map(|number| format!("{prefix}{number}")).collect()
}

/// A row of tasks, one on each lane, and a row of tasks inside of these, in turn.
fn tasks(run: &mut RunBuilder, random: &mut Random, tasks: std::ops::Range<usize>) -> Result<(), ImportError> {
    let is_inner = |task: usize| task / LANES % 2 == 1;
    let from = |task: usize| (task / LANES / 2 * 1000) as i64 + if is_inner(task) { 50 } else { 0 };
    let starts: Vec<i64> = tasks.clone().map(|task| from(task) + random.between(0, 40)).collect();
    // Inner ones end before the outer one may.
    let longest = |task: usize| if is_inner(task) { 150 } else { 940 };
    let finishes: Vec<i64> = tasks
        .clone()
        .zip(&starts)
        .map(|(task, start)| start + random.between(longest(task) - 100, longest(task)))
        .collect();
    let names: Vec<usize> = tasks.clone().map(|_| random.between(0, NAMES) as usize).collect();
    let parents = || tasks.clone().map(|task| is_inner(task).then(|| (task - LANES) as i64));
    run.append(tables::Tasks {
        name: words("task_", names.into_iter()),
        location: words("L", tasks.clone().map(|task| task % LANES)),
        kind: "work".into(),
        role: "work".into(),
        start: starts.into(),
        finish: finishes.into(),
        parent: parents().collect(),
        stack_parent: parents().collect(),
        depth: tasks.clone().map(|task| i64::from(is_inner(task))).collect(),
        ..Default::default()
    })
}

/// From any lanes of the rows before.
fn links(
    run: &mut RunBuilder,
    random: &mut Random,
    tasks: std::ops::Range<usize>,
    each: usize,
) -> Result<(), ImportError> {
    let source =
        |task: usize, random: &mut Random| ((task / LANES - 2) * LANES) as i64 + random.between(0, LANES as i64);
    let sources: Vec<i64> =
        tasks.clone().flat_map(|task| std::iter::repeat_n(task, each)).map(|task| source(task, random)).collect();
    run.append(tables::Links {
        source: sources.into(),
        target: tasks.flat_map(|task| std::iter::repeat_n(task as i64, each)).collect(),
        kind: "dependency".into(),
        ..Default::default()
    })
}
