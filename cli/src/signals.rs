//! Signals: which thread handles them, and how the process exits.
//!
//! | signal | while a query runs | otherwise (an import, a picture that is laid out) |
//! | --- | --- | --- |
//! | SIGINT (Ctrl-C) | the query ends; the prompt goes on, else status 130; a second one leaves at once | leaves, 130 |
//! | SIGTERM, SIGHUP | leaves, 143 or 129 | leaves, 143 or 129 |
//!
//! Such an exit unwinds nothing; temporary files are removed by the list of `tq_engine::trace::temporary`. SIGHUP stays
//! ignored where the caller ignores it (`nohup`). SIGXFSZ is ignored, so that exceeding a file size limit (`ulimit -f`) is an
//! error like a full disk.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::runtime::Builder;
use tokio::sync::watch;
use tq_engine::trace::temporary;

use crate::errors::{Failure, Problem};
use crate::host;

/// What a shell says of a process that ended by a signal: 128 and the number of the signal.
const BY_SIGNAL: i32 = 128;
const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGTERM: i32 = 15;

/// Listens from now on, for the whole process.
pub(crate) fn listen() -> Result<(), Failure> {
    Interrupts::listen().map(|_| ())
}

/// Runs another program in the foreground: Ctrl-C is meant for that program.
pub(crate) fn without_interrupts<R>(work: impl FnOnce() -> R) -> R {
    let Ok(interrupts) = Interrupts::listen() else { return work() };
    interrupts.ignored.store(true, Ordering::SeqCst);
    let result = work();
    interrupts.ignored.store(false, Ordering::SeqCst);
    result
}

/// Hears signals for the whole process.
pub(crate) struct Interrupts {
    /// How often Ctrl-C was pressed.
    count: watch::Sender<u64>,
    /// How many will answer the next Ctrl-C.
    armed: AtomicU64,
    /// Whether Ctrl-C is meant for another program, a pager.
    ignored: AtomicBool,
    /// Presses of Ctrl-C that were passed on and have not been handled yet.
    pending: AtomicU64,
}

/// A query that answers Ctrl-C as long as this lives.
pub(crate) struct Armed {
    interrupts: &'static Interrupts,
    presses: watch::Receiver<u64>,
}

impl Interrupts {
    pub(crate) fn listen() -> Result<&'static Interrupts, Failure> {
        static INTERRUPTS: OnceLock<Arc<Interrupts>> = OnceLock::new();
        if let Some(interrupts) = INTERRUPTS.get() {
            return Ok(interrupts);
        }
        // Another program hears its signals itself, and abandons what it does not want any more.
        if host::is_embedded() {
            return Ok(INTERRUPTS.get_or_init(Interrupts::unheard));
        }
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| Problem::no_threads(&error))?;
        let interrupts = INTERRUPTS.get_or_init(Interrupts::unheard);
        // Heard before anything is done that a signal should tidy up.
        let signals = {
            let _inside = runtime.enter();
            Signals::heard().map_err(|error| Problem::no_threads(&error))?
        };
        std::thread::Builder::new()
            .name("tq-signals".to_owned())
            .spawn(move || runtime.block_on(interrupts.forever(signals)))
            .map_err(|error| Problem::no_threads(&error))?;
        Ok(interrupts)
    }

    fn unheard() -> Arc<Interrupts> {
        Arc::new(Interrupts {
            count: watch::Sender::new(0),
            armed: AtomicU64::new(0),
            ignored: AtomicBool::new(false),
            pending: AtomicU64::new(0),
        })
    }

    async fn forever(&self, mut signals: Signals) {
        loop {
            match signals.next().await {
                SIGINT => self.pressed(),
                other => leave(other),
            }
        }
    }

    fn pressed(&self) {
        if self.ignored.load(Ordering::SeqCst) {
            return;
        }
        let unanswered = self.pending.fetch_add(1, Ordering::SeqCst) > 0;
        if unanswered || self.armed.load(Ordering::SeqCst) == 0 {
            leave(SIGINT);
        }
        self.count.send_modify(|count| *count += 1);
    }

    pub(crate) fn arm(&'static self) -> Armed {
        self.pending.store(0, Ordering::SeqCst);
        let mut presses = self.count.subscribe();
        presses.mark_unchanged();
        self.armed.fetch_add(1, Ordering::SeqCst);
        Armed { interrupts: self, presses }
    }
}

impl Armed {
    pub(crate) async fn pressed(&mut self) {
        if self.presses.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.interrupts.armed.fetch_sub(1, Ordering::SeqCst);
        self.interrupts.pending.store(0, Ordering::SeqCst);
    }
}

/// The main thread may be inside of an import, which cannot be asked to stop.
fn leave(signal: i32) -> ! {
    temporary::remove_all();
    std::process::exit(BY_SIGNAL + signal)
}

#[cfg(unix)]
use unix::Signals;

#[cfg(unix)]
mod unix {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    use super::{SIGHUP, SIGINT, SIGTERM};

    /// As on Linux, macOS and the BSDs.
    const SIGXFSZ: i32 = 25;

    /// The signals that are heard.
    pub(super) struct Signals {
        interrupt: Option<Signal>,
        terminate: Option<Signal>,
        hang_up: Option<Signal>,
        /// Heard so that it does not end the process.
        _file_too_large: Option<Signal>,
    }

    impl Signals {
        pub(super) fn heard() -> io::Result<Signals> {
            let heard = |number: i32| signal(SignalKind::from_raw(number)).map(Some);
            Ok(Signals {
                interrupt: heard(SIGINT)?,
                terminate: heard(SIGTERM)?,
                hang_up: if is_ignored(SIGHUP) { None } else { heard(SIGHUP)? },
                _file_too_large: heard(SIGXFSZ)?,
            })
        }

        pub(super) async fn next(&mut self) -> i32 {
            tokio::select! {
                () = came(&mut self.interrupt) => SIGINT,
                () = came(&mut self.terminate) => SIGTERM,
                () = came(&mut self.hang_up) => SIGHUP,
            }
        }
    }

    async fn came(signal: &mut Option<Signal>) {
        let came = match signal {
            Some(signal) => signal.recv().await,
            None => None,
        };
        if came.is_none() {
            std::future::pending::<()>().await;
        }
    }

    /// Whether the caller has switched a signal off; no, where the system does not tell.
    fn is_ignored(number: i32) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
        mask >> (number - 1) & 1 == 1
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn heard() -> std::io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) -> i32 {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        SIGINT
    }
}
