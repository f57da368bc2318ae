//! `tq check`.

use std::path::PathBuf;

use pyo3::prelude::*;
use tq_cli::embedded::{CheckOutcome, Checking};

use crate::kept::Kept;
use crate::session::Options;
use crate::wait::wait_for;

/// A check: the query, its file and line, what was checked, the verdict, why, and the rows that offend.
type Outcome = (String, String, usize, String, &'static str, String, Option<Kept>);

/// Runs checks; beside how each ended stand all of them as lines.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the package names them")]
pub(crate) fn check(
    py: Python<'_>,
    traces: Vec<String>,
    queries: Vec<String>,
    baseline: Vec<String>,
    tolerance: Option<String>,
    params: Vec<(String, String)>,
    expected: Vec<PathBuf>,
    allow_skip: bool,
    options: Options,
) -> PyResult<(Vec<Outcome>, String)> {
    let opening = options.opening(traces);
    let checking = Checking { opening, queries, baseline, tolerance, params, expected, allow_skip };
    let checks = wait_for(py, checking.run())?;
    let outcome = |one: CheckOutcome| {
        let rows = one.rows.map(|rows| Kept::new(rows.schema(), vec![rows], checks.shown, None));
        (one.query, one.file, one.line, one.what, one.verdict, one.summary, rows)
    };
    Ok((checks.outcomes.into_iter().map(outcome).collect(), checks.text))
}
