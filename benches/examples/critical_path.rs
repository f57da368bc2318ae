//! Question: what does `critical_path` through SQL cost beside a plain loop over sorted arrays?
//!
//! ```text
//! cargo run --release -p tq-benches --example critical_path [TASKS LINKS]
//! ```
//!
//! A run of 5 M tasks and 20 M links is made (fixed seed): each link leads from one of the 64 (`near`) or of all (`far`)
//! earlier tasks. Both plain loops know that the arrays are sorted by target and that an id is an index. The first keeps the
//! largest path time of each task alone, over pairs of 32 bits; the second reads the 64-bit columns that SQL has, remembers
//! where each path came from and walks the longest one back, as the function does. CPU seconds of the whole process, the
//! best of three.
#![expect(clippy::print_stdout, reason = "a bench prints its result")]
#![expect(clippy::unwrap_used, reason = "a bench that fails shall stop")]

use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int32Type;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use tq_benches::random::Random;
use tq_engine::sql;

fn main() {
    let mut sizes = std::env::args().skip(1).map(|size| size.parse::<usize>().unwrap());
    let (tasks, links) = (sizes.next().unwrap_or(5_000_000), sizes.next().unwrap_or(20_000_000));
    let mut numbers = Random::new(1);
    let durations: Vec<i64> = (0..tasks).map(|_| (numbers.bits() % 1_000) as i64).collect();
    println!("{tasks} tasks, {links} links; CPU seconds");
    println!("{:<24} {:>10} {:>10} {:>10} {:>8} {:>8}", "links", "times only", "with path", "SQL", "÷ times", "÷ path");
    for (locality, window) in [("near", 64), ("far", u64::MAX)] {
        let sorted = make_links(tasks, links, window);
        let (times_only, longest) = best_of_three(|| longest_time(&durations, &sorted));
        let (sources, targets): (Vec<i64>, Vec<i64>) = sorted.iter().map(|link| (id(link.0), id(link.1))).unzip();
        let (with_path, same) = best_of_three(|| longest_path(&durations, &sources, &targets));
        assert_eq!(same, longest);
        drop((sources, targets));
        for order in ["by target", "by source", "shuffled", "some backwards"] {
            let (durations, links) = arrange(&durations, &sorted, order);
            let context = session(&durations, &links);
            drop((durations, links));
            let (sql, answer) = best_of_three(|| through_sql(&context));
            assert_eq!(answer, longest);
            println!(
                "{:<24} {times_only:>10.3} {with_path:>10.3} {sql:>10.3} {:>8.2} {:>8.2}",
                format!("{locality}, {order}"),
                sql / times_only,
                sql / with_path
            );
        }
    }
}

/// Pairs of task positions, sorted by target.
fn make_links(tasks: usize, links: usize, window: u64) -> Vec<(u32, u32)> {
    let mut numbers = Random::new(2);
    let per_task = links.div_ceil(tasks.max(2) - 1);
    let mut made = Vec::with_capacity(links);
    for target in 1..tasks as u64 {
        for _ in 0..per_task.min(links - made.len()) {
            let back = numbers.bits() % target.min(window);
            made.push(((target - 1 - back) as u32, target as u32));
        }
    }
    made
}

fn longest_time(durations: &[i64], links: &[(u32, u32)]) -> i64 {
    let mut time = durations.to_vec();
    for (source, target) in links {
        let path = time[*source as usize] + durations[*target as usize];
        if path > time[*target as usize] {
            time[*target as usize] = path;
        }
    }
    time.into_iter().max().unwrap()
}

fn longest_path(durations: &[i64], sources: &[i64], targets: &[i64]) -> i64 {
    let index = |id: i64| (id - FIRST_ID) as usize;
    let mut time = durations.to_vec();
    let mut before = vec![u32::MAX; durations.len()];
    for (source, target) in sources.iter().zip(targets) {
        let (source, target) = (index(*source), index(*target));
        let path = time[source] + durations[target];
        if path > time[target] {
            time[target] = path;
            before[target] = source as u32;
        }
    }
    let mut step = (0..time.len()).max_by_key(|task| time[*task]).unwrap();
    let mut path = vec![step];
    while before[step] != u32::MAX {
        step = before[step] as usize;
        path.push(step);
    }
    path.iter().map(|task| durations[*task]).sum()
}

/// The ids of the run's tasks begin here.
const FIRST_ID: i64 = 1 << 40;

fn id(task: u32) -> i64 {
    FIRST_ID + i64::from(task)
}

fn arrange(durations: &[i64], links: &[(u32, u32)], order: &str) -> (Vec<i64>, Vec<(u32, u32)>) {
    let (mut durations, mut links) = (durations.to_vec(), links.to_vec());
    let mut numbers = Random::new(3);
    match order {
        "by source" => links.sort_unstable(),
        "shuffled" => {
            for place in (1..links.len()).rev() {
                links.swap(place, (numbers.bits() % (place as u64 + 1)) as usize);
            }
        }
        "some backwards" => {
            // The last tasks change places with the first.
            let last = durations.len() as u32 - 1;
            let turned = |task: u32| if task < 1_000 || task > last - 1_000 { last - task } else { task };
            links = links.into_iter().map(|(source, target)| (turned(source), turned(target))).collect();
            durations = (0..=last).map(|task| durations[turned(task) as usize]).collect();
        }
        _ => {}
    }
    (durations, links)
}

fn session(durations: &[i64], links: &[(u32, u32)]) -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(2);
    let builder = SessionStateBuilder::new().with_default_features().with_config(config);
    let context = SessionContext::new_with_state(sql::configure(builder).build());
    let numbers = |values: &mut dyn Iterator<Item = i64>| Arc::new(Int64Array::from_iter_values(values)) as ArrayRef;
    let text = |value: &str, rows: usize| {
        let keys = Int32Array::from(vec![0; rows]);
        Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::new(StringArray::from(vec![value])))) as ArrayRef
    };
    let tasks = RecordBatch::try_from_iter([
        ("run", text("a", durations.len())),
        ("task", numbers(&mut (0..durations.len() as u32).map(id))),
        ("name", text("kernel", durations.len())),
        ("location", text("w0", durations.len())),
        ("start", numbers(&mut (0..durations.len() as i64))),
        ("finish", numbers(&mut (0..durations.len() as i64))),
        ("duration", numbers(&mut durations.iter().copied())),
    ]);
    let links = RecordBatch::try_from_iter([
        ("run", text("a", links.len())),
        ("source", numbers(&mut links.iter().map(|link| id(link.0)))),
        ("target", numbers(&mut links.iter().map(|link| id(link.1)))),
        ("kind", text("dependency", links.len())),
    ]);
    for (name, table) in [("tasks", tasks.unwrap()), ("links", links.unwrap())] {
        let rows = table.num_rows();
        let slice = |from: usize| table.slice(from, 8192.min(rows - from));
        let slices: Vec<RecordBatch> = (0..rows).step_by(8192).map(slice).collect();
        let partitions: Vec<Vec<RecordBatch>> = slices.chunks(slices.len().div_ceil(8)).map(<[_]>::to_vec).collect();
        context.register_table(name, Arc::new(MemTable::try_new(table.schema(), partitions).unwrap())).unwrap();
    }
    context
}

fn through_sql(context: &SessionContext) -> i64 {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let text = "SELECT max(path_time), count(DISTINCT name) FROM critical_path()";
    let statement = sql::parse(text).unwrap().remove(0);
    let rows =
        runtime.block_on(async { sql::execute(context, &statement, None).await.unwrap().collect().await.unwrap() });
    rows[0].column(0).as_any().downcast_ref::<Int64Array>().unwrap().value(0)
}

fn best_of_three(mut work: impl FnMut() -> i64) -> (f64, i64) {
    let measured = (0..3).map(|_| {
        let (cpu, started) = (cpu_seconds(), Instant::now());
        let answer = std::hint::black_box(work());
        // Without /proc there is only the wall clock.
        let used = cpu.zip(cpu_seconds()).map_or(started.elapsed().as_secs_f64(), |(before, after)| after - before);
        (used, answer)
    });
    measured.min_by(|one, other| one.0.total_cmp(&other.0)).unwrap()
}

/// User and system time of this process, in hundredths of seconds as the kernel counts them.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    Some((fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?) / 100.0)
}
