//! What is compared where no query is named: the makespan, how long locations were busy, and the critical path where both
//! sides have dependencies. Each is a saved query, which a project may replace like any other.

use tq_engine::queries::{Library, MetricTolerance, SavedQuery};

use super::{Side, Suite};
use crate::args::CheckArgs;
use crate::errors::{Failure, Problem};

/// What lines call a comparison, and its query.
pub(crate) const STANDARD: [(&str, &str); 3] =
    [("makespan", "makespan"), ("busy time", "busy-time"), ("critical path", "critical-path-length")];

/// The standard comparisons, under the names that people read.
pub(super) fn suite(library: &Library, tolerance: Option<MetricTolerance>) -> Result<Suite, Failure> {
    let mut suite = Suite { entries: Vec::new() };
    for (name, query) in STANDARD {
        let Some(mut query) = library.find(query)? else { continue };
        query.name = name.to_owned();
        for metric in &mut query.header.metrics {
            metric.tolerance = tolerance.unwrap_or(metric.tolerance);
        }
        suite.entries.push(Ok(query));
    }
    Ok(suite)
}

/// Keeps what both sides can be asked; the others are no checks, and not counted as skipped.
pub(super) fn keep_answerable(suite: &mut Suite, sides: [&mut Side; 2]) -> Result<(), Failure> {
    let [new, base] = sides;
    let mut is_answerable = |query: &SavedQuery| -> Result<bool, Failure> {
        Ok(new.connection.unmet(query)?.is_empty() && base.connection.unmet(query)?.is_empty())
    };
    let mut kept = Vec::new();
    for entry in std::mem::take(&mut suite.entries) {
        if entry.as_ref().map_or(Ok(true), &mut is_answerable)? {
            kept.push(entry);
        }
    }
    if kept.is_empty() {
        return Err(Problem::new("there is nothing to compare: one of the sides has no tasks").into());
    }
    suite.entries = kept;
    Ok(())
}

/// Whether the command line asks for the standard comparisons; an error where it asks for nothing.
pub(super) fn is_asked_for(args: &CheckArgs) -> Result<bool, Failure> {
    match (args.checks.is_empty(), args.baseline.is_empty()) {
        (false, _) => Ok(false),
        (true, false) => Ok(true),
        (true, true) => Err(Problem::new("there is nothing to check")
            .hint("name a query with `expect` or `metric` lines: `--query FILE.sql`")
            .hint("or traces to compare makespan, busy time and critical path with: `--baseline TRACE`")
            .into()),
    }
}
