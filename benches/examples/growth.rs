//! Question: does every saved query, and with it every fact of a page, grow no faster than what it reads?
//!
//! `cargo run --release --example growth [--full] [--by=DIMENSION] [QUERY…]`: traces double in one dimension (tasks, messages, names, locations), each query
//! is asked once for each size, and the slope of its times says how it grows: 1 is linear, 1.3 and more is marked. What takes longer than
//! [`LATE`] is not asked of larger traces. `--full` ends at 5 million tasks and messages, a million names and 100 000 locations.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tq_benches::generate::grown::{Kind, Size, grown};
use tq_benches::measure::cpu_time;
use tq_engine::queries::{Library, SavedQuery, library};
use tq_engine::{OpenOptions, Session};

const THREADS: usize = 2;
/// A query that takes longer is not asked of a larger trace.
const LATE: Duration = Duration::from_secs(60);
/// Times below are planning and noise: no slope is made of them.
const LEAST_SECONDS: f64 = 0.1;
/// From this slope on a query is marked.
const STEEP: f64 = 1.3;

/// A dimension, with the sizes of everything by that of the dimension, from where to where.
type Dimension = (&'static str, fn(usize) -> Size, [usize; 2], [usize; 2]);

const DIMENSIONS: [Dimension; 4] = [
    (
        "tasks",
        |tasks| Size { tasks, messages: 1_000, names: 40, locations: 16 },
        [20_000, 320_000],
        [312_500, 5_000_000],
    ),
    (
        "messages",
        |messages| Size { tasks: 10_000, messages, names: 40, locations: 16 },
        [20_000, 320_000],
        [312_500, 5_000_000],
    ),
    (
        "names",
        |names| Size { tasks: 2 * names, messages: 1_000, names, locations: 16 },
        [10_000, 160_000],
        [62_500, 1_000_000],
    ),
    (
        "locations",
        |locations| Size { tasks: 8 * locations, messages: 8 * locations, names: 40, locations },
        [1_250, 20_000],
        [12_500, 100_000],
    ),
];

#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_full = arguments.iter().any(|argument| argument == "--full");
    let wanted: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    // As the command line has it: deep plans recurse.
    let runtime = Builder::new_multi_thread().worker_threads(THREADS).thread_stack_size(256 << 20).enable_all().build();
    let runtime = runtime.expect("threads");
    let library = Library::default();
    let queries: Vec<SavedQuery> = library::built_in_names()
        .filter(|name| wanted.is_empty() || wanted.iter().any(|wanted| *wanted == name))
        .map(|name| library.find(name).expect("a sound query").expect("a query of this name"))
        .collect();
    let by = arguments.iter().find_map(|argument| argument.strip_prefix("--by="));
    for (dimension, size, short, full) in DIMENSIONS.into_iter().filter(|(name, ..)| by.is_none_or(|by| by == *name)) {
        let [from, to] = if is_full { full } else { short };
        let sizes: Vec<usize> =
            std::iter::successors(Some(from), |size| Some(size * 2)).take_while(|&size| size <= to).collect();
        for kind in [Kind::Graph, Kind::Gpu, Kind::Requests, Kind::Study] {
            let mut grows: Vec<(&SavedQuery, Vec<(usize, f64)>)> =
                queries.iter().map(|query| (query, vec![])).collect();
            for &number in &sizes {
                let runs = grown(kind, size(number)).expect("a trace");
                let session = Session::from_runs(runs, &OpenOptions::new(8 << 30, THREADS)).expect("a session");
                for (query, times) in &mut grows {
                    if times.last().is_none_or(|(_, seconds)| *seconds < LATE.as_secs_f64())
                        && let Some(seconds) = ask(&runtime, &session, query)
                    {
                        times.push((number, seconds));
                    }
                }
            }
            println!("\n{kind:?} by {dimension}: {sizes:?}, seconds of processor time\n");
            grows.retain(|(_, times)| !times.is_empty());
            grows.sort_by(|a, b| slope(&b.1).total_cmp(&slope(&a.1)));
            for (query, times) in &grows {
                let seconds: Vec<String> = times.iter().map(|(_, seconds)| format!("{seconds:8.3}")).collect();
                let mark = if slope(times) >= STEEP { "  steep" } else { "" };
                println!("{:34} {:5.2} {}{mark}", query.name, slope(times), seconds.join(" "));
            }
        }
    }
}

/// Seconds of processor time for the whole answer, which other work on the machine does not change; `None` where the trace does not hold what the query needs.
#[expect(clippy::print_stdout, reason = "a bench prints its figures")]
fn ask(runtime: &Runtime, session: &Session, query: &SavedQuery) -> Option<f64> {
    runtime.block_on(async {
        if !query.unmet(session).await.expect("needs are answered").is_empty() {
            return None;
        }
        let values = query.bind(&[], session.tick()).expect("defaults");
        let began = cpu_time();
        let params = (!values.is_empty()).then(|| values.into());
        let asked = async {
            let mut rows = session.execute(&query.statement, params).await?.start().await?;
            while let Some(batch) = rows.next().await {
                batch?;
            }
            Ok::<_, tq_engine::sql::SqlError>(())
        };
        match tokio::time::timeout(2 * LATE, asked).await {
            Ok(Ok(())) => Some((cpu_time() - began).as_secs_f64()),
            Ok(Err(error)) => {
                println!("{}: {error}", query.name);
                None
            }
            Err(_) => Some((2 * LATE).as_secs_f64()),
        }
    })
}

/// The exponent: how many doublings of the time come with a doubling of the size, by least squares over the last two doublings, where
/// planning weighs least; NaN where the times are too short.
fn slope(times: &[(usize, f64)]) -> f64 {
    let points: Vec<(f64, f64)> = (times[times.len().saturating_sub(3)..].iter())
        .filter(|(_, seconds)| *seconds >= LEAST_SECONDS)
        .map(|(size, seconds)| ((*size as f64).log2(), seconds.log2()))
        .collect();
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let above: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    above / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}
