//! From arguments to a session: reads the traces, shows progress on the terminal, and reports what was skipped,
//! repaired or guessed.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tq_engine::error::ImportError;
use tq_engine::open::{OpenOptions, TraceSpec};
use tq_engine::session::{RunSummary, Session};
use tq_engine::store::Cache;
use tq_engine::trace::{Progress, Severity};

use crate::args::OpenArgs;
use crate::errors::{self, Failure, Problem};
use crate::text::visible::visible;
use crate::text::words::{counted, plural};
use crate::{config, memory, terminal, timeout};

/// An import shorter than this stays silent.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// Memory when the machine does not tell how much it has.
const MEMORY_FALLBACK: u64 = 8 << 30;

/// Opens the traces of a command line; warnings and notes go to stderr.
pub(crate) fn open(args: &OpenArgs) -> Result<Session, Failure> {
    check_window(args)?;
    let session = reading(args, Session::open)?;
    told(&session, args)?;
    Ok(session)
}

/// Says what a user should know of traces that were opened; with `--strict`, fails where something was lost.
pub(crate) fn told(session: &Session, args: &OpenArgs) -> Result<(), Failure> {
    for note in session.opening_notes() {
        terminal::note(note);
    }
    tell(session.runs());
    if args.strict {
        nothing_lost(session.runs())?;
    }
    Ok(())
}

/// Reads the traces of a command line within the limits of memory and time, with progress on the terminal.
pub(crate) fn reading<T: Send + 'static>(
    args: &OpenArgs,
    read: impl FnOnce(&OpenOptions) -> Result<T, ImportError> + Send + 'static,
) -> Result<T, Failure> {
    let meter = io::stderr().is_terminal().then(|| Arc::new(Meter::new()));
    let read = read_with(args, meter.clone().map(|meter| meter as Arc<dyn Progress>), read);
    if let Some(meter) = meter {
        meter.clear();
    }
    read
}

/// As [`reading`], with somebody else who sees the progress.
pub(crate) fn read_with<T: Send + 'static>(
    args: &OpenArgs,
    progress: Option<Arc<dyn Progress>>,
    read: impl FnOnce(&OpenOptions) -> Result<T, ImportError> + Send + 'static,
) -> Result<T, Failure> {
    let mut options = OpenOptions::new(memory_limit(args), threads(args));
    if let Some(bytes) = args.max_value.or(config::get().max_value) {
        options.max_value = bytes;
    }
    options.traces = args.traces.iter().map(|text| TraceSpec::parse(text)).collect();
    options.from_format.clone_from(&args.from_format);
    options.import = args.options.iter().cloned().collect();
    options.run_args.clone_from(&args.run_args);
    options.run_pattern.clone_from(&args.run_pattern);
    options.cache = cache(args)?;
    options.from = args.from;
    options.to = args.to;
    options.read_only = args.read_only || config::get().read_only;
    options.keep_runs = args.keep_runs;
    memory::on_threads(options.threads);
    memory::over(options.memory_limit);
    options.progress = progress;
    Ok(timeout::reading(options, read).map_err(|error| errors::import::word(&error, &args.traces))?)
}

/// Bytes of the cache, if the user does not say.
const CACHE_BYTES: u64 = 10_000_000_000;

/// The cache of a user who wants one.
fn cache(args: &OpenArgs) -> Result<Option<Cache>, Failure> {
    if !args.cache.unwrap_or(config::get().cache) {
        return Ok(None);
    }
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    let Some(folder) = folder else {
        return Err(Problem::new("there is no folder for the cache: neither XDG_CACHE_HOME nor HOME is set")
            .hint("without --cache, and with `cache = false` in the configuration, traces are read each time")
            .into());
    };
    let bytes = config::get().cache_size.map_or(CACHE_BYTES, |bytes| bytes as u64);
    Ok(Some(Cache { folder: folder.join("tq/traces"), bytes }))
}

/// Says on stderr what was not smooth about reading these runs.
pub(crate) fn tell(runs: &[RunSummary]) {
    let mut read: HashMap<_, u64> = HashMap::new();
    for run in runs {
        let records = run.stats.iter().filter(|stat| stat.finding.what == "records_read").map(|stat| stat.count);
        let all = read.entry(trace_of(run)).or_default();
        *all = records.fold(*all, u64::saturating_add);
    }
    let mut notes = 0;
    for run in runs {
        if let Some(summary) = not_smooth(run, read[&trace_of(run)]) {
            terminal::warning(&summary);
        }
        // Always told: a wrong guess of a unit makes all answers wrong by a factor of a thousand, tasks without locations have no busy time, and
        // running another program is no small thing.
        for told in run.stats.iter().filter(|stat| TOLD.contains(&stat.finding.what)) {
            notes += 1;
            if notes <= NOTES_SHOWN {
                terminal::note(&told.example);
            }
        }
    }
    if notes > NOTES_SHOWN {
        let more = counted(notes - NOTES_SHOWN, "more note");
        terminal::note(&format!("{more} of this kind; all: `SELECT run, what, example FROM import_stats`"));
    }
}

/// Findings that are said at once, though nothing was lost.
const TOLD: [&str; 3] = ["time_unit_guessed", "column_suggested", "exported_by_nsys"];

/// The most notes that are printed: a store may have thousands of runs.
const NOTES_SHOWN: usize = 8;

/// A session without traces: functions and empty tables.
pub(crate) fn empty() -> Result<Session, Failure> {
    Ok(Session::open(&OpenOptions::new(1 << 30, 1))?)
}

pub(crate) fn threads(args: &OpenArgs) -> usize {
    threads_of(args.threads)
}

/// The threads as they were given, else the user's, else all cores.
pub(crate) fn threads_of(given: Option<usize>) -> usize {
    given.or(config::get().threads).unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

pub(crate) fn check_window(args: &OpenArgs) -> Result<(), Failure> {
    let tick = tq_udfs::ticks::Tick::Picosecond;
    let ticks = |time: Option<tq_engine::time::GivenTime>| time.and_then(|time| time.ticks(tick));
    // Before anything is read. Bare ticks and times with a unit can only be compared once the session's tick is known, and
    // the session looks again.
    match (args.from, args.to, ticks(args.from), ticks(args.to)) {
        (Some(from), Some(to), Some(first), Some(last))
            if std::mem::discriminant(&from) == std::mem::discriminant(&to) && last <= first =>
        {
            let what = match last < first {
                true => "--to lies before --from: the slice is empty",
                false => "--from and --to are the same time: the slice is empty",
            };
            let hint = "--to is the first tick behind the slice, so that `--from 20 --to 21` is one tick";
            Err(Problem::new(what).hint(hint).into())
        }
        _ => Ok(()),
    }
}

/// What tells traces apart: a file may be opened twice, under two names.
fn trace_of(run: &RunSummary) -> (&str, &str) {
    (&run.source, run.name.split('/').next().unwrap_or_default())
}

/// One line about what was repaired or lost among the records `read` of the whole trace, `None` when reading went smoothly. Of
/// several runs, the first has what concerns all of them.
///
/// `fib.tfp: 3 lost in 40212 records (truncated: line 118 …); see import_stats`
fn not_smooth(run: &RunSummary, read: u64) -> Option<String> {
    let of = |severity| run.stats.iter().filter(move |stat| stat.finding.severity == severity);
    let count = |severity| of(severity).map(|stat| stat.count).fold(0, u64::saturating_add);
    let (lost, repaired) = (count(Severity::Lost), count(Severity::Repaired));
    let worst = of(Severity::Lost).chain(of(Severity::Repaired)).next()?;
    // A loss is not always a record: it may be a cell, or a table that is not there.
    let read = if read > 0 { format!(" in {read} {}", plural(read, "record")) } else { String::new() };
    let what = match (lost, repaired) {
        (0, repaired) => format!("{repaired} repaired{read}"),
        (lost, 0) => format!("{lost} lost{read}"),
        (lost, repaired) => format!("{lost} lost and {repaired} repaired{read}"),
    };
    let name =
        Path::new(&run.source).file_name().map_or_else(|| run.source.clone().into(), |name| name.to_string_lossy());
    let what_it_was = worst.finding.what.replace('_', " ");
    let example = if worst.example.is_empty() { what_it_was } else { format!("{what_it_was}: {}", worst.example) };
    Some(format!("{name}: {what} ({example}); see import_stats"))
}

/// `--strict`.
fn nothing_lost(runs: &[RunSummary]) -> Result<(), Failure> {
    let lost = |run: &&RunSummary| run.stats.iter().any(|stat| stat.finding.severity == Severity::Lost);
    match runs.iter().find(lost) {
        Some(run) => Err(Problem::new(format!("--strict: records of run `{}` were lost while reading", run.name))
            .hint("without --strict, `SELECT * FROM import_stats` says what")
            .into()),
        None => Ok(()),
    }
}

/// From now on the process is watched, before there is a session: a stranger's query takes memory when it is read, too.
pub(crate) fn watch_memory(args: &OpenArgs) {
    memory::over(memory_limit(args));
}

fn memory_limit(args: &OpenArgs) -> usize {
    memory_of(args.memory)
}

/// The limit as it was given, else the user's, else three quarters of the machine's memory.
pub(crate) fn memory_of(given: Option<usize>) -> usize {
    given.or(config::get().memory).unwrap_or_else(default_memory)
}

/// So much is enough for an import, whose rows wait on disk.
const IMPORT_MEMORY: usize = 2_000_000_000;

/// The limit of an import: as of others, but for the default, which is 2 GB where the machine has more.
pub(crate) fn memory_of_import(given: Option<usize>) -> usize {
    given.or(config::get().memory).unwrap_or_else(|| default_memory().min(IMPORT_MEMORY))
}

fn default_memory() -> usize {
    let total = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes << 10)
    });
    usize::try_from(total.unwrap_or(MEMORY_FALLBACK) / 4 * 3).unwrap_or(usize::MAX)
}

/// A line on the terminal that says how far reading is, once it takes longer than a second.
struct Meter {
    started: Instant,
    /// Milliseconds since the start at which the line was last drawn; 0 = never.
    drawn: AtomicU64,
    /// What is being read, and when and at which byte it was seen first.
    drawing: Mutex<(PathBuf, Duration, u64)>,
}

impl Meter {
    fn new() -> Meter {
        Meter { started: Instant::now(), drawn: AtomicU64::new(0), drawing: Mutex::default() }
    }

    fn clear(&self) {
        terminal::end_progress();
    }
}

impl Progress for Meter {
    fn advanced(&self, source: &Path, read: u64, total: Option<u64>) {
        let elapsed = self.started.elapsed();
        let drawn = Duration::from_millis(self.drawn.load(Ordering::Relaxed));
        if elapsed < PROGRESS_AFTER || elapsed < drawn + PROGRESS_EVERY {
            return;
        }
        // Whoever comes while another thread draws has nothing to add.
        let Ok(mut seen) = self.drawing.try_lock() else { return };
        self.drawn.store(elapsed.as_millis() as u64, Ordering::Relaxed);
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let done = match total {
            Some(total) if total > 0 => {
                format!("{:3.0} % of {:.0} MB", 100.0 * read as f64 / total as f64, megabytes(total))
            }
            _ => format!("{:.0} MB", megabytes(read)),
        };
        if seen.0 != source {
            *seen = (source.to_owned(), elapsed, read);
        }
        let rate = read.saturating_sub(seen.2) as f64 / (elapsed - seen.1).as_secs_f64().max(1e-3);
        let left = total.filter(|_| rate > 0.0).map(|total| total.saturating_sub(read) as f64 / rate);
        let left = left.map_or_else(String::new, |seconds| format!(", {seconds:.0} s left"));
        let speed = if rate > 0.0 { format!(", {:.0} MB/s{left}", rate / 1e6) } else { String::new() };
        terminal::progress(&format!("reading {}: {done}{speed}", visible(&source.display().to_string())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_takes_what_is_given_or_two_gigabytes() {
        assert_eq!(memory_of_import(Some(8_000_000_000)), 8_000_000_000);
        assert_eq!(memory_of_import(None), default_memory().min(2_000_000_000));
    }
}
