//! `tq check` as values.

use std::path::PathBuf;

use datafusion::arrow::array::RecordBatch;

use super::errors::{Error, Kind};
use super::opening::Opening;
use super::pages::Shown;
use super::pending::Pending;
use crate::args::{CheckArgs, LibraryArgs, TimeoutArgs};
use crate::check::{self, Verdict};
use crate::config;
use crate::errors::{Failure, Problem};

/// What to check.
#[derive(Default)]
pub struct Checking {
    /// The traces.
    pub opening: Opening,
    /// Files, folders or names of saved queries; none: the standard comparisons.
    pub queries: Vec<String>,
    /// Traces that metrics are compared with.
    pub baseline: Vec<String>,
    /// How much worse they may get where no query is named, e.g. `10%`.
    pub tolerance: Option<String>,
    /// Values of parameters.
    pub params: Vec<(String, String)>,
    /// Files that `expect same as:` may name although they lie elsewhere.
    pub expected: Vec<PathBuf>,
    /// Whether what the traces cannot answer is skipped.
    pub allow_skip: bool,
}

/// How one check ended.
pub struct CheckOutcome {
    /// The name of the query.
    pub query: String,
    /// Its file; empty where there is none.
    pub file: String,
    /// The line of the check in it.
    pub line: usize,
    /// What was checked.
    pub what: String,
    /// `held`, `failed`, `not run`, `skipped` or `noted`.
    pub verdict: &'static str,
    /// Why, in words.
    pub summary: String,
    /// The rows that offend, where there are any.
    pub rows: Option<RecordBatch>,
}

/// How all of them ended.
pub struct Checks {
    /// Each of them.
    pub outcomes: Vec<CheckOutcome>,
    /// How its rows are shown to people.
    pub shown: Shown,
    /// All of it as lines, as `tq check` prints it.
    pub text: String,
}

impl Checking {
    /// Runs the checks.
    pub fn run(self) -> Pending<Checks> {
        Pending::begin(Kind::Query, move || {
            config::load()?;
            let args = self.args()?;
            let check::Checked { outcomes, tick, .. } = check::outcomes(&args)?;
            let text = check::lines(&outcomes, tick)?;
            Ok(Checks {
                outcomes: outcomes.into_iter().map(CheckOutcome::from).collect(),
                shown: Shown::new(tick),
                text,
            })
        })
    }

    fn args(self) -> Result<CheckArgs, Failure> {
        let wrong = |why: String| Failure::from(Problem::new(format!("`tolerance`: {why}")));
        let tolerance = self.tolerance.as_deref().map(crate::args::tolerance).transpose().map_err(wrong)?;
        Ok(CheckArgs {
            open: self.opening.args()?,
            timeout: TimeoutArgs::default(),
            checks: self.queries,
            baseline: self.baseline,
            tolerance,
            params: self.params,
            expected: self.expected,
            bless: false,
            allow_skip: self.allow_skip,
            picture: None,
            junit: None,
            github: false,
            markdown: None,
            library: LibraryArgs::default(),
        })
    }
}

impl From<check::Outcome> for CheckOutcome {
    fn from(outcome: check::Outcome) -> CheckOutcome {
        let (verdict, summary, rows) = match outcome.verdict {
            Verdict::Held(on) => ("held", on, None),
            Verdict::Failed(evidence) => ("failed", evidence.summary, evidence.rows),
            Verdict::NotRun(problem) => ("not run", Error::of_problem(Kind::Query, *problem).to_string(), None),
            Verdict::Skipped(why) => ("skipped", why, None),
            Verdict::Noted(what) => ("noted", what, None),
        };
        let check::Outcome { query, file, line, what, .. } = outcome;
        CheckOutcome { query, file, line, what, verdict, summary, rows }
    }
}
