//! Reads the generated 5.1 million tasks in each of their forms, on one thread and on two:
//! `cargo run --release --example import_tfprof [tasks in millions]`.
//!
//! Beside it, in the same run: reading the bytes alone, and looking for each `}` in them, which bounds what a scanner of
//! the JSON can reach. Peak memory is that of a process of its own per form: `… import_tfprof 5.1 json 2`.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tq_benches::generate::pariter::{Form, Pariter};
use tq_benches::measure::{peak_memory_bytes, repeat};
use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::session::Session;

const RUNS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let millions: f64 = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(5.1);
    let tasks = (millions * 1e6) as i64;
    if let [_, form, threads] = &arguments[..] {
        return peak(tasks, form, threads.parse().unwrap_or(2));
    }
    for named in [false, true] {
        for (label, form) in [("t0", Form::T0), ("json", Form::Json), ("tfpx", Form::Tfpx)] {
            let path = generated(tasks, label, form, named);
            let bytes = std::fs::metadata(&path).expect("just written").len() as f64;
            println!("\n{} ({:.1} MB, {tasks} tasks)", path.display(), bytes / 1e6);
            repeat("read the bytes", RUNS, || std::fs::read(&path).expect("readable").len());
            if form == Form::Json {
                let text = std::fs::read(&path).expect("readable");
                repeat("count the closing braces", RUNS, || text.iter().filter(|&&byte| byte == b'}').count());
            }
            for threads in [1, 2] {
                let cost = repeat(&format!("import on {threads} thread(s)"), RUNS, || open(&path, threads));
                println!(
                    "{:>60.0} MB/s wall, {:.0} MB/s of processor time",
                    bytes / 1e6 / cost.wall.as_secs_f64(),
                    bytes / 1e6 / cost.cpu.as_secs_f64()
                );
            }
        }
    }
}

/// One query on one form, and the memory that the process ever held.
fn peak(tasks: i64, label: &str, threads: usize) {
    let form = match label {
        "t0" => Form::T0,
        "tfpx" => Form::Tfpx,
        _ => Form::Json,
    };
    let session = open(&generated(tasks, label, form, false), threads);
    let loaded = peak_memory_bytes();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().expect("a runtime");
    let query = "SELECT location, count(*), sum(duration), busy(start, finish) FROM tasks GROUP BY location";
    let rows: usize = runtime.block_on(async {
        let batches = session.sql(query).await.expect("plans").collect().await.expect("runs");
        batches.iter().map(|batch| batch.num_rows()).sum()
    });
    println!(
        "{label}, {threads} threads: {} MB loaded, {} MB after {query} ({rows} rows)",
        loaded >> 20,
        peak_memory_bytes() >> 20
    );
}

fn open(path: &Path, threads: usize) -> Session {
    let mut options = OpenOptions::new(16 << 30, threads);
    options.traces.push(TraceSpec { name: None, path: path.to_owned() });
    Session::open(&options).expect("a readable trace")
}

/// The trace, written once into the temporary folder of the machine.
fn generated(tasks: i64, label: &str, form: Form, named: bool) -> PathBuf {
    let name = if named { "named" } else { "unnamed" };
    let path = std::env::temp_dir().join(format!("pariter_{tasks}_{name}.{label}"));
    if !path.exists() {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&path).expect("a writable temporary folder"));
        Pariter { tasks, named }.write(form, &mut out).and_then(|()| out.flush()).expect("written");
    }
    path
}
