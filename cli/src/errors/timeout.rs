//! The words for what took longer than `--timeout` allows.

use std::time::Duration;

use super::Problem;
use crate::text::words::duration_text;

/// What is said of a question that took longer.
pub(crate) fn late(limit: Duration) -> Problem {
    let limit = duration_text(limit);
    let problem = Problem::new(format!("the query took longer than {limit}, the limit of `--timeout`"));
    let problem = problem.hint("give it more time, or ask for less: fewer runs, a time slice with `--from` and `--to`, a join with a condition");
    Problem { is_late: true, ..problem }
}
