//! What a prompt says first: what is open, in figures, what is worth asking of it, and how to go on.

use datafusion::arrow::array::RecordBatch;
use tq_engine::queries::Library;
use tq_udfs::ticks::Tick;

use crate::connection::{Connection, Params};
use crate::errors::Failure;
use crate::output::Cells;
use crate::terminal;
use crate::text::visible::visible;
use crate::text::words::{counted, listed, wrapped};

const RUNS_SHOWN: usize = 8;
/// With more tasks than this, the greeting does not compute the busiest location: it would take too long.
const TASKS_MAX: i64 = 2_000_000;
const QUERIES_SHOWN: usize = 3;

/// Saved queries for those who do not know any yet, with the format that they are about ('' = any): the first ones that the traces can
/// answer are offered.
const WORTH_ASKING: &[(&str, &str)] = &[
    ("", "why-it-changed"),
    ("", "task-times-changed"),
    ("pascal", "pascal-verdict"),
    ("pascal", "pascal-weakest-region"),
    ("pascal", "pascal-efficiency"),
    ("actorprof", "actorprof-summary"),
    ("actorprof", "actorprof-aggregation"),
    ("actorprof", "actorprof-stragglers"),
    ("daisen", "daisen-component-time"),
    ("daisen", "daisen-blocking-resources"),
    ("daisen", "daisen-buffer-pressure"),
    ("parsec", "parsec-workload-classes"),
    ("parsec", "parsec-readiness-delay"),
    ("parsec", "parsec-occupancy"),
    ("folded", "weights-changed"),
    ("folded", "weights-by-name"),
    ("folded", "flame-graph"),
    ("folded", "call-tree"),
    ("", "gpu-time-breakdown"),
    ("", "gpu-collective-skew"),
    ("", "gpu-critical-path"),
    ("", "gpu-kernels"),
    ("", "critical-path-by-name"),
    ("", "load-imbalance"),
    ("", "time-by-name"),
    ("", "longest-tasks"),
    ("", "who-talks-to-whom"),
    ("", "counters-over-time"),
    ("", "what-was-read"),
];

/// The runs, and on how many of their locations tasks could execute.
const RUNS: &str = "SELECT run, format, tasks, locations, makespan, lanes FROM runs \
     LEFT JOIN (SELECT run, count(*) AS lanes FROM working_lanes GROUP BY run) USING (run) ORDER BY run_number";

/// What is open. Where somebody sits at a terminal, also what is worth asking, or an example where nothing is open.
pub(super) fn text(connection: &mut Connection, library: &Library, offers: bool) -> Result<String, Failure> {
    let mut lines = vec![format!("tq {}", env!("CARGO_PKG_VERSION"))];
    let runs = connection.collect(RUNS, &Params::new())?;
    let busiest = busiest(connection);
    let tick = connection.session().tick();
    let cells = Cells::new(&runs)?;
    let cell = |column, row| cells.shown(column, row, tick).map(Option::unwrap_or_default);
    for row in 0..runs.num_rows().min(RUNS_SHOWN) {
        let count = |column, word| Ok::<_, Failure>(counted(cell(column, row)?.parse().unwrap_or(0), word));
        let (run, format) = (cell(0, row)?, cell(1, row)?);
        let mut line = format!("{} ({format}): {} on {}", visible(&run), count(2, "task")?, count(3, "location")?);
        // Executors, processes and devices stand above those that execute.
        let lanes = cell(5, row)?;
        if !lanes.is_empty() && lanes != cell(3, row)? {
            line.push_str(&format!(", {lanes} of which execute"));
        }
        let makespan = cell(4, row)?;
        if !makespan.is_empty() {
            // Weights are no time.
            let what = if tick == Tick::Weight { "in all" } else { "makespan" };
            line.push_str(&format!(", {what} {makespan}"));
        }
        if let Some(busiest) = &busiest {
            line.push_str(&in_words(busiest, &run)?);
        }
        lines.push(line);
    }
    match runs.num_rows() {
        0 => lines.push("No trace is open; `tq TRACE` opens one.".to_owned()),
        all if all > RUNS_SHOWN => lines.push(format!("… and {} more runs", all - RUNS_SHOWN)),
        _ => {}
    }
    if offers && runs.num_rows() == 0 {
        lines.push(
            "`\\open example` opens a small one to play with: a grid of tasks that wait for each other.".to_owned(),
        );
    }
    let mut text = broken(&lines);
    if offers && runs.num_rows() > 0 {
        let formats = (0..runs.num_rows()).map(|row| cell(1, row)).collect::<Result<Vec<_>, _>>()?;
        let worth = worth_asking(connection, library, &formats);
        text.push_str(&format!("\nWorth asking:\n{}\n", listed(&worth, terminal::width())));
    }
    let how =
        "Type SQL and end it with `;`. \\d shows tables, \\f functions, \\run saved queries, \\? help, \\q leaves.";
    text.push_str(&broken(&[how.to_owned()]));
    Ok(text)
}

/// Lines that are no longer than the terminal is wide.
fn broken(lines: &[String]) -> String {
    let width = terminal::width().unwrap_or(usize::MAX);
    lines.iter().flat_map(|line| wrapped(line, width)).map(|line| line + "\n").collect()
}

/// The busiest location of each run, which part of the makespan that was, and that of the others; `None` where that cannot be said at once.
fn busiest(connection: &mut Connection) -> Option<RecordBatch> {
    let sql = format!(
        "SELECT run, min(location) AS location, round(100.0 * max(busy_time) / max(makespan)) AS percent, count(*) AS alike, \
           max(round(100.0 * (all_time - busy_time) / ((lanes - 1) * makespan))) AS others FROM ( \
           SELECT runs.run, location, busy_time, makespan, sum(busy_time) OVER same AS all_time, count(*) OVER same AS lanes, \
             rank() OVER (PARTITION BY runs.run ORDER BY busy_time DESC) AS place \
           FROM busy_lanes JOIN runs USING (run) WHERE makespan > 0 AND (SELECT sum(tasks) FROM runs) <= {TASKS_MAX} \
           WINDOW same AS (PARTITION BY runs.run)) \
         WHERE place = 1 AND lanes > 1 AND busy_time > 0 GROUP BY run"
    );
    connection.collect(&sql, &Params::new()).ok()
}

fn in_words(busiest: &RecordBatch, run: &str) -> Result<String, Failure> {
    let cells = Cells::new(busiest)?;
    for row in 0..busiest.num_rows() {
        let cell = |column| {
            let mut text = String::new();
            cells.exact(column, row, &mut text).map(|()| text)
        };
        if cell(0)? == run {
            let (location, alike) = (cell(1)?, cell(3)?);
            let busiest = match alike.as_str() {
                "1" => format!("{} was busiest", visible(&location)),
                // One of several that were as busy was not busiest.
                alike => format!("{alike} of them were busiest"),
            };
            let percent = |column| cell(column).map(|text| text.trim_end_matches(".0").to_owned());
            let others = match alike.as_str() {
                "1" => format!(", the others {} % on average", percent(4)?),
                _ => String::new(),
            };
            return Ok(format!("; {busiest}, {} % of it{others}", percent(2)?));
        }
    }
    Ok(String::new())
}

/// Commands with the questions that they answer.
fn worth_asking(connection: &mut Connection, library: &Library, formats: &[String]) -> Vec<(String, String)> {
    let of_format = WORTH_ASKING.iter().filter(|(of, _)| of.is_empty() || formats.iter().any(|format| format == of));
    let answerable = of_format.filter_map(|(_, name)| {
        let query = library.find(name).ok()??;
        let unmet = connection.unmet(&query).ok()?;
        unmet.is_empty().then(|| (format!("\\run {name}"), query.title().to_owned()))
    });
    answerable.take(QUERIES_SHOWN).collect()
}
