//! The process that this library runs in: its own, or that of a program which embeds it. There, signals, memory and stderr are the
//! program's: nothing listens, watches or prints.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

static EMBEDDED: AtomicBool = AtomicBool::new(false);
static STARTED_AS: OnceLock<Vec<OsString>> = OnceLock::new();

thread_local! {
    static ABANDONED: RefCell<Option<Arc<Notify>>> = const { RefCell::new(None) };
    static GIVEN_UP: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
    static SAID: RefCell<Option<Vec<Said>>> = const { RefCell::new(None) };
}

/// A message in place of a line on stderr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// `warning`, `note` and their like; empty for a line without a label.
    pub(crate) label: &'static str,
    pub(crate) message: String,
}

/// From now on the process is that of another program.
pub(crate) fn embed() {
    EMBEDDED.store(true, Ordering::SeqCst);
}

pub(crate) fn is_embedded() -> bool {
    EMBEDDED.load(Ordering::SeqCst)
}

/// Says how this program is started once more, where its file alone does not tell: an interpreter with the name of a module.
pub fn started_as(words: Vec<OsString>) {
    // Whoever comes first is the process.
    let _ = STARTED_AS.set(words);
}

/// This program once more.
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "only workers are started"))]
pub(crate) fn program() -> io::Result<Command> {
    match STARTED_AS.get().and_then(|words| words.split_first()) {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments);
            Ok(command)
        }
        None => Ok(Command::new(std::env::current_exe()?)),
    }
}

/// Does `work` on this thread, whose questions end when `abandoned` is notified, and which may look whether it is given up; beside what it
/// gives stands what it had to say.
pub(crate) fn apart<T>(abandoned: Arc<Notify>, given_up: Arc<AtomicBool>, work: impl FnOnce() -> T) -> (T, Vec<Said>) {
    ABANDONED.set(Some(abandoned));
    GIVEN_UP.set(Some(given_up));
    SAID.set(Some(Vec::new()));
    let done = work();
    ABANDONED.set(None);
    GIVEN_UP.set(None);
    (done, SAID.take().unwrap_or_default())
}

/// Whether nobody waits any more for what this thread does.
pub(crate) fn is_given_up() -> bool {
    GIVEN_UP.with_borrow(|given_up| given_up.as_ref().is_some_and(|given_up| given_up.load(Ordering::Relaxed)))
}

/// What ends the questions of this thread.
pub(crate) fn abandoned() -> Option<Arc<Notify>> {
    ABANDONED.with_borrow(Option::clone)
}

/// Whether somebody hears what this thread says; if so, it is heard.
pub(crate) fn hears(label: &'static str, message: &str) -> bool {
    SAID.with_borrow_mut(|said| match said {
        Some(said) => {
            said.push(Said { label, message: message.to_owned() });
            true
        }
        None => false,
    })
}
