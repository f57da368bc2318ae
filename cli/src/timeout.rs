//! `--timeout`: how long a question, or reading the traces, may take.
//!
//! A question is one statement or saved query: planning, running and writing its answer. Each has the whole limit to itself, so
//! that in a suite or on a page a late one does not take the others along, and so has reading the traces, and those of a
//! baseline. Readers look at the time themselves; one that does not (it waits for a pipe, it is inside of a library) is left behind
//! after [`PATIENCE`], and the process ends.

use std::panic::resume_unwind;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use tq_engine::error::ImportError;
use tq_engine::open::OpenOptions;
use tq_engine::session::Session;

use crate::errors::Problem;

/// How long a reader may take to notice that the time is over.
const PATIENCE: Duration = Duration::from_millis(700);
/// As the main thread has it.
const STACK_BYTES: usize = 8 << 20;

static LIMIT: OnceLock<Duration> = OnceLock::new();

/// How long a question, or reading, may take.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct TimeoutArgs {
    /// How long each query, and reading the traces, may take, e.g. `30s`, `500ms` or `2m` [default: any time]
    #[arg(long, value_name = "DURATION", value_parser = parse)]
    timeout: Option<Duration>,
}

impl TimeoutArgs {
    /// From now on, questions of this process end after so long.
    pub(crate) fn start(self) {
        if let Some(limit) = self.timeout {
            // One command is run, once.
            let _ = LIMIT.set(limit);
        }
    }
}

/// The limit of a question, and of reading.
pub(crate) fn limit() -> Option<Duration> {
    LIMIT.get().copied()
}

/// What is said of a question that took longer.
pub(crate) fn late(limit: Duration) -> Problem {
    let limit = in_words(limit);
    let problem = Problem::new(format!("the query took longer than {limit}, the limit of `--timeout`"));
    let problem = problem.hint("give it more time, or ask for less: fewer runs, a time slice with `--from` and `--to`, a join with a condition");
    Problem { is_late: true, ..problem }
}

/// What is said of traces that took longer to read.
pub(crate) fn late_reading(path: &Path, limit: Duration) -> Problem {
    let (path, limit) = (path.display(), in_words(limit));
    let problem = Problem::new(format!("{path}: reading took longer than {limit}, the limit of `--timeout`"));
    let problem = problem.hint("give it more time; a small file that takes long holds something that does not end, as a view of a database can");
    Problem { is_late: true, ..problem }
}

/// Reads the traces within the limit.
pub(crate) fn open(mut options: OpenOptions) -> Result<Session, ImportError> {
    let Some(limit) = limit() else { return Session::open(&options) };
    options.read_time = Some(limit);
    let first = options.traces.first().map(|trace| trace.path.clone()).unwrap_or_default();
    let (sender, receiver) = channel();
    let reading = thread::Builder::new().name("tq-read".to_owned()).stack_size(STACK_BYTES);
    // Nobody listens any more when it is too late.
    let reading = reading.spawn(move || drop(sender.send(Session::open(&options))));
    let reading = reading.map_err(|source| ImportError::Io { path: first.clone(), source })?;
    match receiver.recv_timeout(limit.saturating_add(PATIENCE)) {
        Ok(session) => session,
        Err(RecvTimeoutError::Timeout) => Err(ImportError::Late { path: first, limit }),
        Err(RecvTimeoutError::Disconnected) => match reading.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => Err(ImportError::Late { path: first, limit }),
        },
    }
}

/// Units from long to short, and how many milliseconds they have.
const UNITS: [(&str, u64); 5] = [("h", 3_600_000), ("min", 60_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

fn in_words(limit: Duration) -> String {
    let milliseconds = limit.as_millis() as u64;
    let whole = UNITS.iter().filter(|(name, _)| *name != "m").find(|(_, unit)| milliseconds.is_multiple_of(*unit));
    let (name, unit) = whole.unwrap_or(&UNITS[UNITS.len() - 1]);
    format!("{} {name}", milliseconds / unit)
}

fn parse(text: &str) -> Result<Duration, String> {
    let help = || "write it like `30s`, `500ms`, `2m` or `1h`".to_owned();
    let text = text.trim();
    let unit_at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(help)?;
    let (number, unit) = (&text[..unit_at], text[unit_at..].trim());
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(help)?;
    let number: f64 = number.parse().map_err(|_| help())?;
    let milliseconds = (number * *unit as f64).round();
    // A thousand years are any time.
    if !(1.0..=3.2e13).contains(&milliseconds) {
        return Err(format!("at least 1ms is needed; {}", help()));
    }
    Ok(Duration::from_millis(milliseconds as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        for (text, milliseconds) in
            [("30s", 30_000), ("500ms", 500), ("2m", 120_000), ("2 min", 120_000), ("1.5h", 5_400_000)]
        {
            assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for wrong in ["", "30", "s", "-1s", "0s", "0.1ms", "1e3s", "5 parsecs", "1.2.3s", "1s2", "99999999999999999h"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_are_told_in_the_longest_whole_unit() {
        for (milliseconds, words) in [(30_000, "30 s"), (1_500, "1500 ms"), (120_000, "2 min"), (3_600_000, "1 h")] {
            assert_eq!(in_words(Duration::from_millis(milliseconds)), words);
        }
    }
}
