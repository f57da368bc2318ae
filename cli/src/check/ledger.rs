//! The outcomes of a suite so far, to be written if the process ends before the suite does.
//!
//! Exceeding the memory limit where nothing can be cancelled (planning, an import) ends the process. CI then still learns
//! how each finished check ended, which one was running, and that the others were not run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tq_engine::queries::SavedQuery;
use tq_udfs::ticks::Tick;

use super::{Outcome, Verdict, print, unread};
use crate::args::CheckArgs;
use crate::errors::{Failure, Problem};
use crate::memory;

/// The checks of a suite, shared with whoever ends the process.
#[derive(Clone)]
pub(super) struct Ledger(Arc<Mutex<Pages>>);

struct Pages {
    /// While something is read: `queries`, `traces` or `baseline`, and the names of the files.
    reading: Option<(&'static str, Vec<String>)>,
    tick: Tick,
    done: Vec<Outcome>,
    /// The checks that have no outcome yet; the first of them is running.
    left: VecDeque<Result<SavedQuery, Outcome>>,
}

impl Ledger {
    /// Begins a ledger. If the process ends early from now on, the outcomes are written as `args` say.
    pub(super) fn open(args: &CheckArgs) -> Ledger {
        let pages = Pages { reading: None, tick: Tick::Nanosecond, done: Vec::new(), left: VecDeque::new() };
        let ledger = Ledger(Arc::new(Mutex::new(pages)));
        let (at_the_end, args) = (ledger.clone(), args.clone());
        memory::last_words(Some(Box::new(move |problem| at_the_end.close(problem, &args))));
        ledger
    }

    pub(super) fn reads(&self, side: &'static str, traces: &[String]) {
        self.pages().reading = Some((side, traces.to_vec()));
    }

    pub(super) fn begin(&self, checks: Vec<Result<SavedQuery, Outcome>>, tick: Tick) {
        let mut pages = self.pages();
        (pages.reading, pages.tick, pages.left) = (None, tick, checks.into());
    }

    /// The query that runs next; the same one until it is [`Ledger::answered`].
    pub(super) fn next(&self) -> Option<SavedQuery> {
        let mut pages = self.pages();
        loop {
            match pages.left.front()? {
                Ok(query) => return Some(query.clone()),
                Err(_) => {
                    let broken = pages.left.pop_front().and_then(Result::err);
                    pages.done.extend(broken);
                }
            }
        }
    }

    pub(super) fn answered(&self, outcomes: Vec<Outcome>) {
        let mut pages = self.pages();
        pages.left.pop_front();
        pages.done.extend(outcomes);
    }

    /// All outcomes, when nothing is left.
    pub(super) fn done(&self) -> Vec<Outcome> {
        std::mem::take(&mut self.pages().done)
    }

    /// Writes the outcomes of a process that ends here.
    fn close(&self, problem: Problem, args: &CheckArgs) {
        let mut pages = self.pages();
        let mut outcomes = std::mem::take(&mut pages.done);
        let culprit = pages.left.iter().flatten().next().map(|query| query.name.clone());
        match (pages.reading.take(), culprit) {
            (Some((side, traces)), _) => outcomes.push(unread(side, &traces, problem)),
            (None, None) => Failure::from(problem).tell(),
            (None, Some(culprit)) => {
                let not_asked = Problem::new(format!("not run: tq ended at `{culprit}`, which came before"));
                let mut problems = std::iter::once(problem).chain(std::iter::repeat(not_asked));
                for check in pages.left.drain(..) {
                    match check {
                        Ok(query) => {
                            let problem = problems.next().unwrap_or_default();
                            outcomes.extend(super::all_of(&query, || Verdict::NotRun(Box::new(problem.clone()))));
                        }
                        Err(broken) => outcomes.push(broken),
                    }
                }
            }
        }
        if !outcomes.is_empty()
            && let Err(failure) = print::print(&outcomes, args, pages.tick)
        {
            failure.tell();
        }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
