//! Reads a generated dense Chrome trace, on one thread and on two: `cargo run --release --example import_chrome [events]`.
//!
//! Beside it, in the same run: reading the bytes alone, and looking for each `"` in them, which bounds what a scanner can
//! reach. Other files can be given instead of a number. Peak memory is that of a process of its own:
//! `… import_chrome 819598 object 2 [bytes of a foreign key]`.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tq_benches::generate::dense_chrome::{DenseChrome, Form};
use tq_benches::measure::{peak_memory_bytes, repeat};
use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::session::Session;

const RUNS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let first = arguments.first().map_or("819598", String::as_str);
    let Ok(events) = first.parse::<i64>() else {
        return arguments.iter().for_each(|path| measure(Path::new(path)));
    };
    if let [_, form, threads, rest @ ..] = &arguments[..] {
        let foreign_bytes = rest.first().and_then(|text| text.parse().ok()).unwrap_or(0);
        let path = generated(DenseChrome { events, foreign_bytes }, form);
        let bytes = std::fs::metadata(&path).expect("just written").len();
        let session = open(&path, threads.parse().unwrap_or(2));
        let rows: u64 = session.runs().iter().flat_map(|run| &run.rows).map(|(_, rows)| rows).sum();
        println!("{}: {} MB, {rows} rows, peak {} MB", path.display(), bytes >> 20, peak_memory_bytes() >> 20);
        return;
    }
    for form in ["array", "object", "pretty"] {
        measure(&generated(DenseChrome { events, foreign_bytes: 0 }, form));
    }
}

fn measure(path: &Path) {
    let bytes = std::fs::metadata(path).expect("a file").len() as f64;
    println!("\n{} ({:.1} MB)", path.display(), bytes / 1e6);
    repeat("read the bytes", RUNS, || std::fs::read(path).expect("readable").len());
    let text = std::fs::read(path).expect("readable");
    repeat("count the quotes", RUNS, || text.iter().filter(|&&byte| byte == b'"').count());
    drop(text);
    for threads in [1, 2] {
        let cost = repeat(&format!("import on {threads} thread(s)"), RUNS, || open(path, threads));
        println!(
            "{:>60.0} MB/s wall, {:.0} MB/s of processor time",
            bytes / 1e6 / cost.wall.as_secs_f64(),
            bytes / 1e6 / cost.cpu.as_secs_f64()
        );
    }
}

fn open(path: &Path, threads: usize) -> Session {
    let mut options = OpenOptions::new(16 << 30, threads);
    options.traces.push(TraceSpec { name: None, path: path.to_owned() });
    Session::open(&options).expect("a readable trace")
}

/// The trace, written once into the temporary folder of the machine.
fn generated(trace: DenseChrome, form: &str) -> PathBuf {
    let DenseChrome { events, foreign_bytes } = trace;
    let path = std::env::temp_dir().join(format!("dense_{events}_{foreign_bytes}.{form}.json"));
    if !path.exists() {
        let form = match form {
            "array" => Form::Array,
            "pretty" => Form::Pretty,
            _ => Form::Object,
        };
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&path).expect("a writable temporary folder"));
        trace.write(form, &mut out).and_then(|()| out.flush()).expect("written");
    }
    path
}
