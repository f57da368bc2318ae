//! A progress line on the terminal for long queries: rows read so far, and per second; of a query that workers help with, the parts that
//! they have done.
//!
//! Operators count the rows that they pass on; the largest count is taken as the rows read.

use std::io::{self, IsTerminal};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use datafusion::physical_plan::ExecutionPlan;
use tq_engine::sql::{PARTS, PARTS_DONE};

use crate::terminal;

/// A query shorter than this stays silent.
const AFTER: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_millis(250);

/// The plan that runs, where there is one.
#[derive(Clone, Default)]
pub(crate) struct Running(Arc<Mutex<Option<Arc<dyn ExecutionPlan>>>>);

impl Running {
    pub(crate) fn begin(&self, plan: &Arc<dyn ExecutionPlan>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(plan));
    }

    /// Rows that the plan has read until now.
    pub(crate) fn rows(&self) -> u64 {
        let plan = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        plan.map_or(0, |plan| rows_of(&plan) as u64)
    }

    /// Parts that workers have done, of all that they were asked for; `None` where none helps.
    fn parts(&self) -> Option<(usize, usize)> {
        let plan = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let (done, all) = parts_of(&plan);
        (all > 0).then_some((done, all))
    }

    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn rows_of(plan: &Arc<dyn ExecutionPlan>) -> usize {
    let own = plan.metrics().and_then(|metrics| metrics.output_rows()).unwrap_or(0);
    plan.children().into_iter().map(rows_of).fold(own, usize::max)
}

fn parts_of(plan: &Arc<dyn ExecutionPlan>) -> (usize, usize) {
    let gauge = |name| plan.metrics().and_then(|metrics| metrics.sum_by_name(name)).map_or(0, |value| value.as_usize());
    let own = (gauge(PARTS_DONE), gauge(PARTS));
    let below = plan.children().into_iter().map(parts_of);
    below.fold(own, |(done, all), (more_done, more)| (done + more_done, all + more))
}

/// Draws the line until it is dropped.
pub(crate) struct Meter {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Meter {
    /// `None` where stderr is no terminal.
    pub(crate) fn start(running: &Running) -> Option<Meter> {
        if !io::stderr().is_terminal() {
            return None;
        }
        let (stop, stopped) = channel::<()>();
        let running = running.clone();
        let started = Instant::now();
        let thread = std::thread::Builder::new().name("tq-progress".to_owned()).spawn(move || {
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                if started.elapsed() >= AFTER {
                    let line = line(running.rows(), running.parts(), started.elapsed());
                    terminal::progress(&format!("{line}; Ctrl-C ends it"));
                }
            }
            terminal::end_progress();
        });
        Some(Meter { stop: Some(stop), thread: thread.ok() })
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// `3.2 s, 12.4 M rows read, 3.9 M rows/s`, or `3.2 s, workers have done 3 of 8 parts`.
pub(crate) fn line(rows: u64, parts: Option<(usize, usize)>, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    if let Some((done, all)) = parts {
        return format!("{seconds:.1} s, workers have done {done} of {all} parts");
    }
    if rows == 0 {
        return format!("{seconds:.1} s");
    }
    format!("{seconds:.1} s, {} rows read, {} rows/s", short(rows as f64), short(rows as f64 / seconds.max(1e-9)))
}

fn short(count: f64) -> String {
    match count {
        count if count >= 1e9 => format!("{:.1} G", count / 1e9),
        count if count >= 1e6 => format!("{:.1} M", count / 1e6),
        count if count >= 1e4 => format!("{:.0} k", count / 1e3),
        count => format!("{count:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short() {
        assert_eq!(line(12_400_000, None, Duration::from_secs(4)), "4.0 s, 12.4 M rows read, 3.1 M rows/s");
        assert_eq!(line(999, None, Duration::from_millis(500)), "0.5 s, 999 rows read, 1998 rows/s");
        assert_eq!(line(0, None, Duration::from_millis(1_240)), "1.2 s");
        let parts = Some((3, 8));
        assert_eq!(line(0, parts, Duration::from_secs(2)), "2.0 s, workers have done 3 of 8 parts");
    }
}
