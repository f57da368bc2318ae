//! What `tq check` compares where no query is named: the makespan, how long locations were busy, and the critical path where both
//! sides have dependencies; of folded stacks, which have no times, their weight.
//!
//! Each is a built-in query. A query of the same name in the project's `.tq/queries` does not replace it here, or else a pull request could
//! change the gate that it has to pass.

use std::collections::HashSet;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use tq_engine::queries::{Library, MetricTolerance};

use super::{Outcome, Side, Suite, Verdict};
use crate::args::CheckArgs;
use crate::connection::Params;
use crate::errors::queries::needs_in_words;
use crate::errors::{Failure, Problem};
use crate::text::words::counted;

/// The table that a graph of dependencies is in.
const DEPENDENCIES: &str = "links";

/// What lines call a comparison, and its query.
pub(crate) const STANDARD: [(&str, &str); 4] = [
    ("makespan", "makespan"),
    (BUSY_TIME, "busy-time"),
    (CRITICAL_PATH, "critical-path-length"),
    ("total weight", "total-weight"),
];
/// Names of comparisons that have an explanation of their own.
pub(super) const BUSY_TIME: &str = "busy time";
pub(super) const CRITICAL_PATH: &str = "critical path";

/// The standard comparisons, under the names that people read.
pub(super) fn suite(tolerance: Option<MetricTolerance>) -> Result<Suite, Failure> {
    let (library, mut suite) = (Library::default(), Suite::default());
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

/// Keeps what both sides can be asked. What only one of them can be asked is noted;
/// what neither can be asked is no check, and not counted as skipped. Sides that have no name in common are not compared.
pub(super) fn keep_answerable(suite: &mut Suite, [new, base]: [&mut Side; 2]) -> Result<(), Failure> {
    let mut kept = Vec::new();
    let mut count = 0;
    for entry in std::mem::take(&mut suite.entries) {
        let Ok(query) = &entry else {
            kept.push(entry);
            continue;
        };
        let unmet = [new.connection.unmet(query)?, base.connection.unmet(query)?];
        let (lacking, needs, other) = match unmet.each_ref().map(|needs| needs.is_empty()) {
            [true, true] => {
                count += 1;
                kept.push(entry);
                continue;
            }
            [false, false] => continue,
            [false, true] => ("these traces have", &unmet[0], "the baseline has"),
            [true, false] => ("the baseline has", &unmet[1], "these traces have"),
        };
        let is_of_graphs = needs.iter().all(|need| need.table == DEPENDENCIES);
        let what = if is_of_graphs { "dependencies".to_owned() } else { needs_in_words(needs) };
        let note = format!("not compared: {lacking} no {what}, and {other}");
        kept.push(Err(Outcome::of(query, 1, String::new(), Verdict::Noted(note))));
    }
    if count == 0 {
        return Err(Problem::new("there is nothing to compare: not both sides have tasks")
            .hint("`--query NAME` compares other figures; `tq report base=BASE new=NEW` shows what the traces hold")
            .into());
    }
    suite.entries = match strangers(new, base)? {
        Some(outcome) => vec![Err(outcome)],
        None => kept,
    };
    Ok(())
}

/// What is said where no name of task is on both sides: two programs are no better or worse than each other.
fn strangers(new: &mut Side, base: &mut Side) -> Result<Option<Outcome>, Failure> {
    let names = |side: &mut Side| -> Result<HashSet<String>, Failure> {
        let sql = "SELECT DISTINCT name FROM program_tasks WHERE name <> ''";
        let rows = side.connection.collect(sql, &Params::new())?;
        let names = cast(rows.column(0), &DataType::Utf8)?;
        Ok(names.as_string::<i32>().iter().flatten().map(str::to_owned).collect())
    };
    let (base, new) = (names(base)?, names(new)?);
    if base.is_empty() || new.is_empty() || !base.is_disjoint(&new) {
        return Ok(None);
    }
    let what = format!(
        "not compared: the baseline and these traces have no name of task in common ({} and {}), so they do not look like runs of one \
         program",
        counted(base.len(), "name"),
        new.len()
    );
    let problem = Problem::new(what).hint("`--query makespan busy-time` compares them nevertheless");
    let (query, file) = ("names".to_owned(), String::new());
    Ok(Some(Outcome { query, file, line: 1, what: String::new(), verdict: Verdict::NotRun(Box::new(problem)) }))
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
