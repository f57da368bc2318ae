//! The safety net below the memory pool: a thread that watches the resident memory of the process.
//!
//! The pool counts what operators and readers reserve in it, but not every allocation is reserved. So with
//! `--memory 256MB` or more a thread reads every few milliseconds how much anonymous memory the process has
//! (`/proc/self/statm`: resident − shared). At 1.25 × the limit + 60 MB (earlier with many threads) it *rings*: the running query ends
//! with an error, and the command goes on to its next query or ends with status 2. That is early enough for the process to stay below
//! 1.25 × the limit + 100 MB while it stops. If memory still grows (an operator that never awaits cannot be stopped, nor can an
//! import), or is not released after the query was stopped, the process ends, with the same message and status.
//!
//! A single allocation that the system refuses (a value of 64 MB for each of 8192 rows) ends the process in the same way, instead
//! of by an abort: [`Net`].
//!
//! Below 256 MB the program's own memory would be most of what is measured, and on systems without `/proc` nothing can
//! be measured: there only the pool's limit applies.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use tq_engine::trace::temporary;

use crate::errors::{Failure, Problem};
use crate::host;
#[cfg(feature = "cluster")]
use tq_engine::cluster::Refusal;

/// Limits below this are the pool's alone.
const WATCHED_FROM: u64 = 256_000_000;
/// What is allowed beside a quarter more than the limit: the program itself, and what allocators keep.
const ALLOWANCE: u64 = 60_000_000;
/// Each thread beyond `FEW_THREADS` holds values that no pool knows, and competes with the watch for a core. So it rings earlier, by
/// `FOR_A_THREAD` bytes for each of them and by at most `FOR_THREADS` for all.
const FEW_THREADS: u64 = 8;
const FOR_A_THREAD: u64 = 1_500_000;
const FOR_THREADS: u64 = 60_000_000;
/// How much more a query may take while it is being stopped.
const WHILE_STOPPING: u64 = 32_000_000;
/// Memory grows by some megabytes in this time.
const WHILE_BUSY: Duration = Duration::from_millis(4);
const WHILE_IDLE: Duration = Duration::from_millis(100);
/// How long memory may take to come back from a query that was stopped.
const PATIENCE: Duration = Duration::from_millis(1500);
/// The exit status of a command without an answer.
const NO_ANSWER: i32 = 2;

static WATCH: OnceLock<Watch> = OnceLock::new();
/// How many threads queries run on.
static THREADS: AtomicU64 = AtomicU64::new(0);

/// What a command still writes when its process is ended halfway, in place of the message on stderr.
pub(crate) type LastWords = Box<dyn FnOnce(Problem) + Send>;

static LAST_WORDS: Mutex<Option<LastWords>> = Mutex::new(None);

/// Sets what is done before the process ends early; `None` for nothing.
pub(crate) fn last_words(words: Option<LastWords>) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

/// Says why the process ends, and ends it.
fn leave(problem: Problem) -> ! {
    // Held to the end: whoever ends the process first says why.
    let mut words = match LAST_WORDS.try_lock() {
        Ok(words) => words,
        Err(TryLockError::Poisoned(words)) => words.into_inner(),
        Err(TryLockError::WouldBlock) => {
            // Not forever: the last words themselves may have asked for too much.
            std::thread::sleep(PATIENCE);
            std::process::exit(NO_ANSWER)
        }
    };
    match words.take() {
        Some(words) => words(problem),
        None => Failure::from(problem).tell(),
    }
    temporary::remove_all();
    std::process::exit(NO_ANSWER)
}

/// What the thread and the rest of the program share.
struct Watch {
    /// Bytes of `--memory`; 0 while nothing is limited.
    limit: AtomicU64,
    /// How many queries run that will hear the bell.
    heard: AtomicU64,
    /// Whether the prompt waits for somebody to type.
    idle: AtomicBool,
    /// Whether work is refused when the bell rings, and the process goes on.
    refuses: AtomicBool,
    /// Rings with the bytes that the process had.
    bell: watch::Sender<u64>,
}

/// Sets the number of threads on which queries run from now on.
pub(crate) fn on_threads(threads: usize) {
    THREADS.store(threads as u64, Ordering::Relaxed);
}

/// From now on the process is watched with this limit, which replaces an earlier one. On systems that do not report
/// memory, nothing is watched.
pub(crate) fn over(limit: usize) {
    // What another program has in memory is its own affair.
    if host::is_embedded() {
        return;
    }
    let limit = limit as u64;
    let limit = if limit < WATCHED_FROM { 0 } else { limit };
    if let Some(watch) = WATCH.get() {
        watch.limit.store(limit, Ordering::SeqCst);
        return;
    }
    if limit == 0 || anonymous_bytes().is_none() {
        return;
    }
    let watch = WATCH.get_or_init(|| Watch {
        limit: AtomicU64::new(limit),
        heard: AtomicU64::new(0),
        idle: AtomicBool::new(false),
        refuses: AtomicBool::new(false),
        bell: watch::Sender::new(0),
    });
    // Without the thread the pool's limit still holds.
    let _ = std::thread::Builder::new().name("tq-memory".to_owned()).spawn(|| watch.forever());
}

/// A query that ends when the bell rings, as long as this lives.
pub(crate) struct Armed(Option<watch::Receiver<u64>>);

/// Begins to watch a query. Memory that the allocator kept from the last one is returned first, so that it is not
/// counted for this one.
pub(crate) fn arm() -> Armed {
    let Some(watch) = WATCH.get() else { return Armed(None) };
    if anonymous_bytes().is_some_and(|bytes| bytes > watch.limit.load(Ordering::SeqCst) / 2) {
        give_back();
    }
    let mut rings = watch.bell.subscribe();
    rings.mark_unchanged();
    watch.heard.fetch_add(1, Ordering::SeqCst);
    Armed(Some(rings))
}

impl Armed {
    /// Waits for the bell: the failure of the query.
    pub(crate) async fn rang(&mut self) -> Failure {
        if let Some(rings) = &mut self.0
            && rings.changed().await.is_ok()
        {
            let bytes = *rings.borrow();
            return too_much(bytes).into();
        }
        std::future::pending().await
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        if let Some(watch) = WATCH.get().filter(|_| self.0.is_some()) {
            watch.heard.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Ends one piece of work after the other while the process has too much, which begins earlier than the process would end: others' queries
/// are at stake. `refuse` ends the largest one, with these words, and while others end anyhow only if it must. If there is none, and the memory
/// does not come back, the process ends.
#[cfg(feature = "cluster")]
pub(crate) async fn relieve(refuse: impl Fn(&str, bool) -> Refusal + Send) {
    let Some(watch) = WATCH.get() else { return };
    watch.refuses.store(true, Ordering::SeqCst);
    let mut armed = arm();
    let Some(rings) = &mut armed.0 else { return };
    let mut must = false;
    loop {
        rings.mark_unchanged();
        if rings.changed().await.is_err() {
            return;
        }
        // What ended by itself may be on its way back.
        give_back();
        let Some(bytes) = watch.too_many() else { continue };
        let refusal = refuse(&came_to(bytes), must);
        let begun = Instant::now();
        while watch.too_many().is_some() && begun.elapsed() < PATIENCE {
            tokio::time::sleep(WHILE_BUSY).await;
            give_back();
        }
        must = match (watch.too_many(), refusal) {
            (Some(bytes), Refusal::Idle) => watch.end(bytes, None),
            (Some(_), Refusal::Waits) => true,
            _ => false,
        };
    }
}

/// After the watch has stopped a query: waits until its memory is released. If it is not, no further query could run,
/// and the process ends.
pub(crate) fn settle() {
    let Some(watch) = WATCH.get() else { return };
    let begun = Instant::now();
    loop {
        give_back();
        match anonymous_bytes() {
            Some(bytes) if bytes > line(watch.limit.load(Ordering::SeqCst)) => {
                if begun.elapsed() > PATIENCE {
                    watch.end(bytes, Some("the query that took it could not be stopped, so tq ends"));
                }
            }
            _ => return,
        }
        std::thread::sleep(WHILE_BUSY);
    }
}

/// Runs what waits for people.
pub(crate) fn while_idle<R>(wait: impl FnOnce() -> R) -> R {
    let Some(watch) = WATCH.get() else { return wait() };
    watch.idle.store(true, Ordering::SeqCst);
    let result = wait();
    watch.idle.store(false, Ordering::SeqCst);
    result
}

impl Watch {
    fn forever(&self) {
        loop {
            std::thread::sleep(if self.idle.load(Ordering::SeqCst) { WHILE_IDLE } else { WHILE_BUSY });
            let limit = self.limit.load(Ordering::SeqCst);
            let Some(bytes) = self.too_many() else { continue };
            if bytes > line(limit) + WHILE_STOPPING || self.heard.load(Ordering::SeqCst) == 0 {
                // Memory that the allocator merely keeps does not count: it is given back first.
                give_back();
                if anonymous_bytes().is_some_and(|bytes| bytes > line(limit)) {
                    self.end(bytes, None);
                }
                continue;
            }
            self.bell.send_replace(bytes);
        }
    }

    /// The bytes that the process has, if they are so many that the bell rings.
    fn too_many(&self) -> Option<u64> {
        let is_limited = self.limit.load(Ordering::SeqCst) > 0;
        anonymous_bytes().filter(|bytes| is_limited && *bytes > self.line())
    }

    /// Where the bell rings.
    fn line(&self) -> u64 {
        let limit = self.limit.load(Ordering::SeqCst);
        let earlier = if self.refuses.load(Ordering::SeqCst) { limit / 8 } else { 0 };
        line(limit).saturating_sub(earlier)
    }

    /// The main thread may be inside of an import or of an operator that never awaits: nothing can be asked to stop.
    fn end(&self, bytes: u64, why: Option<&str>) -> ! {
        let mut problem = too_much(bytes);
        if let Some(why) = why {
            problem.message.push('\n');
            problem.message.push_str(why);
        }
        leave(problem)
    }
}

/// What the process may have.
fn line(limit: u64) -> u64 {
    let many = THREADS.load(Ordering::Relaxed).saturating_sub(FEW_THREADS);
    (limit + limit / 4 + ALLOWANCE).saturating_sub((many * FOR_A_THREAD).min(FOR_THREADS))
}

/// `the process came to 412 MB; …`
fn came_to(bytes: u64) -> String {
    let limit = WATCH.get().map_or(0, |watch| watch.limit.load(Ordering::SeqCst));
    let allowed = WATCH.get().map_or(0, Watch::line);
    let megabytes = |bytes: u64| bytes / 1_000_000;
    format!(
        "the process came to {} MB; `--memory {}MB` allows it {} MB",
        megabytes(bytes),
        megabytes(limit),
        megabytes(allowed)
    )
}

fn too_much(bytes: u64) -> Problem {
    let problem = Problem::new(format!("not enough memory: {}", came_to(bytes)));
    let problem =
        problem.hint("give it more with `--memory 8GB`, or ask for fewer rows, shorter texts and smaller groups");
    Problem { is_beyond_limit: true, ..problem }
}

/// Resident bytes that no file stands behind; `None` where the system does not tell.
pub(crate) fn anonymous_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split(' ').skip(1).map_while(|field| field.trim().parse::<u64>().ok());
    let (resident, shared) = (pages.next()?, pages.next()?);
    Some(resident.saturating_sub(shared) * page_bytes())
}

#[cfg(unix)]
fn page_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    // SAFETY: asks for a constant of the system; there is nothing to hold up.
    #[expect(unsafe_code, reason = "the standard library does not tell the size of a page")]
    *BYTES.get_or_init(|| u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096))
}

#[cfg(not(unix))]
fn page_bytes() -> u64 {
    4096
}

/// The system's allocator; an allocation that it refuses ends the process with a message and status 2.
pub struct Net;

impl Net {
    fn given(memory: *mut u8, layout: Layout) -> *mut u8 {
        // Small requests are refused when nothing is left to say it with.
        if memory.is_null() && layout.size() > 1 << 20 {
            refused(layout.size());
        }
        memory
    }
}

// SAFETY: every call goes to the system's allocator as it came, and its answer comes back.
#[expect(unsafe_code, reason = "what the system's allocator refuses is an abort otherwise")]
unsafe impl GlobalAlloc for Net {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that `System` asks for.
        Net::given(unsafe { System.alloc(layout) }, layout)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        Net::given(unsafe { System.alloc_zeroed(layout) }, layout)
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above; a layout of the new size is only looked at.
        Net::given(unsafe { System.realloc(memory, layout, bytes) }, unsafe {
            Layout::from_size_align_unchecked(bytes, layout.align())
        })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The thread that asked holds locks of its own, so nothing can be unwound.
fn refused(bytes: usize) -> ! {
    let asked = bytes / 1_000_000;
    let problem =
        Problem::new(format!("not enough memory: {asked} MB were asked for at once, and the system has less"))
            .hint("ask for fewer rows, shorter texts and shorter lists: a long constant is repeated for every row");
    leave(problem)
}

/// Hands memory that was freed, and that the allocator kept, back to the system.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: glibc locks each of its arenas while it trims it.
    #[expect(unsafe_code, reason = "glibc gives memory back between allocations in use only when it is asked")]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// From now on threads share so many parts of the heap. Each new thread has one of its own else, up to eight for each core, and what is freed
/// in one is of no use to another: a worker, whose queries have new threads each, kept 400 MB in this way with `--memory 64MB`.
#[cfg(feature = "cluster")]
pub(crate) fn from_few_arenas(threads: usize) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a number.
    #[expect(unsafe_code, reason = "glibc is told in this way")]
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, i32::try_from(threads.max(2)).unwrap_or(i32::MAX));
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = threads;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_process_knows_what_it_has() {
        let before = anonymous_bytes().unwrap();
        let more = std::hint::black_box(vec![1_u8; 64 << 20]);
        let with = anonymous_bytes().unwrap();
        assert!(before > 0 && with > before + (48 << 20), "{before} then {with}");
        drop(more);
        give_back();
        assert!(anonymous_bytes().unwrap() < with - (32 << 20));
    }
}
