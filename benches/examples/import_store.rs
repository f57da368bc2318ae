//! Question: what does it cost to write a trace into a store, beside reading it, and how large is the store?
//!
//! `cargo run --release --example import_store -- [MILLIONS]`: MILLIONS (5) million tasks each as dense Chrome JSON and as Taskflow's
//! profiles. Or with the paths of other traces. Imports have the limit of `tq import`, on one thread and on two; each runs three times.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tq_benches::generate::dense_chrome::{DenseChrome, Form};
use tq_benches::generate::pariter::{self, Pariter};
use tq_benches::measure::{Cost, peak_memory_bytes, repeat};
use tq_engine::import::import;
use tq_engine::store::{self, Replace};
use tq_engine::{OpenOptions, Session, TraceSpec};

const RUNS: usize = 3;
const LIMIT: usize = 2_000_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let millions = arguments.first().map_or(Some(5), |text| text.parse::<i64>().ok());
    let paths: Vec<PathBuf> = match millions {
        Some(millions) => {
            let tasks = millions * 1_000_000;
            let chrome = generated(&format!("dense_{tasks}.json"), |out| {
                DenseChrome { events: tasks, foreign_bytes: 0 }.write(Form::Array, out)
            });
            let profiles = [("t0", pariter::Form::T0), ("tfpx", pariter::Form::Tfpx)].map(|(label, form)| {
                generated(&format!("pariter_{tasks}.{label}"), |out| Pariter { tasks, named: true }.write(form, out))
            });
            [chrome].into_iter().chain(profiles).collect()
        }
        None => arguments.iter().map(PathBuf::from).collect(),
    };
    for path in paths {
        let bytes = std::fs::metadata(&path).expect("a file").len() as f64;
        println!("\n{} ({:.1} MB)", path.display(), bytes / 1e6);
        for threads in [1, 2] {
            let options = || OpenOptions {
                traces: vec![TraceSpec { name: None, path: path.clone() }],
                ..OpenOptions::new(LIMIT, threads)
            };
            let options_of_reading = || OpenOptions { memory_limit: 16 << 30, ..options() };
            repeat(&format!("read on {threads} thread(s)"), RUNS, || {
                Session::open(&options_of_reading()).expect("a trace")
            });
            let folder = std::env::temp_dir().join(format!("tq-import-bench-{}", std::process::id()));
            let cost = repeat(&format!("into a store on {threads} thread(s)"), RUNS, || {
                let _ = std::fs::remove_dir_all(&folder);
                import(&folder, &options(), &Replace::Nothing, false).expect("a store")
            });
            said(&folder, bytes, cost);
            std::fs::remove_dir_all(&folder).expect("the store is removed");
        }
    }
    println!("\npeak memory {} MB, of reading as well", peak_memory_bytes() >> 20);
}

fn said(folder: &Path, bytes: f64, cost: Cost) {
    let traces = vec![TraceSpec { name: None, path: folder.to_owned() }];
    let session = Session::open(&OpenOptions { traces, ..OpenOptions::new(LIMIT, 1) }).expect("a store");
    let tasks =
        session.runs().iter().flat_map(|run| &run.rows).find(|(table, _)| *table == tq_engine::tables::Table::Tasks);
    let tasks = tasks.map_or(0, |(_, rows)| *rows) as f64;
    let stored: u64 = store::list(folder).expect("a store").iter().map(|run| run.bytes).sum();
    println!(
        "{:>58} {:.0} MB/s and {:.2} million tasks/s of processor time; {:.1} bytes a task, 1/{:.1} of the trace",
        "",
        bytes / 1e6 / cost.cpu.as_secs_f64(),
        tasks / 1e6 / cost.cpu.as_secs_f64(),
        stored as f64 / tasks,
        bytes / stored as f64
    );
}

/// The trace, written once into the temporary folder of the machine.
fn generated(name: &str, write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) -> PathBuf {
    let path = std::env::temp_dir().join(name);
    if !path.exists() {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&path).expect("a writable temporary folder"));
        write(&mut out).and_then(|()| out.flush()).expect("written");
    }
    path
}
