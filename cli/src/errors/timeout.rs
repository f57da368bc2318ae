//! Messages for what took longer than `--timeout` allows.

use std::path::Path;
use std::time::Duration;

use super::Problem;
use crate::text::words::duration_text;

/// The error for a question that took longer than the limit.
pub(crate) fn late(limit: Duration) -> Problem {
    let limit = duration_text(limit);
    let problem = Problem::new(format!("the query took longer than {limit}, the limit of `--timeout`"));
    let problem = problem.hint("give it more time, or ask for less: fewer runs, a time slice with `--from` and `--to`, a join with a condition");
    Problem { is_beyond_limit: true, ..problem }
}

/// What is said of SQL or a template whose reading took longer.
pub(crate) fn late_parsing(limit: Duration) -> Problem {
    let limit = duration_text(limit);
    let problem = Problem::new(format!("reading the SQL took longer than {limit}, the limit of `--timeout`"));
    let problem =
        problem.hint("give it more time, or make the text shorter: rows stand in a file, `CREATE EXTERNAL TABLE rows STORED AS CSV LOCATION 'rows.csv'`");
    Problem { is_beyond_limit: true, ..problem }
}

/// The error for a pipe that nobody reads.
pub(crate) fn late_opening(path: &Path, limit: Duration) -> Problem {
    let (path, limit) = (path.display(), duration_text(limit));
    let problem = Problem::new(format!("{path}: nobody read from it within {limit}, the limit of `--timeout`"));
    let problem = problem.hint("start its reader first, or write to a file");
    Problem { is_beyond_limit: true, ..problem }
}

/// The error for traces that took longer to read than the limit.
pub(crate) fn late_reading(path: &Path, limit: Duration) -> Problem {
    let (path, limit) = (path.display(), duration_text(limit));
    let problem = Problem::new(format!("{path}: reading took longer than {limit}, the limit of `--timeout`"));
    let problem = problem
        .hint("give it more time; a small file that takes long may hold something endless, such as a database view");
    Problem { is_beyond_limit: true, ..problem }
}
