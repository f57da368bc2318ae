//! Why a metric got worse: which work and which waiting grew between the baseline and the new traces.
//!
//! One run of each side is opened in a separate session, as `base` and `new`, and a saved query is run. That of the busy time and
//! that of the critical path add up to the change of these. For all else it is `why-it-changed`, which calls `explain_change`: its
//! rows add up to the difference of the makespans; of folded stacks, `weights-changed`; of scalability studies, `pascal-region-changes`. Which
//! locations changed unlike the others is told once, by `busy-locations-changed`, and which tasks became longer, by `task-times-changed`. A project can replace each of them by its own in `.tq/queries`.

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use tq_engine::open::TraceSpec;
use tq_udfs::ticks::Tick;

use super::standard::{BUSY_TIME, CRITICAL_PATH};
use super::{Outcome, Pairs, Side, Verdict};
use crate::args::{CheckArgs, OpenArgs};
use crate::charts::Names;
use crate::connection::{Connection, Params};
use crate::errors::Failure;
use crate::library;
use crate::output::Cells;
use crate::report::{label_tasks, with_labels};

/// A saved query that explains, and what stands before it.
type Explanation = (&'static str, &'static str);

/// That of the executed paths.
const OF_PATHS: Explanation =
    ("why-it-changed", "what changed, the makespan by the work and the waits that it is made of");
const OF_BUSY_TIME: Explanation = ("busy-time-changed", "what changed, the busy time by name of task");
const OF_CRITICAL_PATH: Explanation = ("critical-path-changed", "what changed, the critical path by name of task");
/// Where it is and which tasks, told once.
const FURTHER: [Explanation; 2] = [
    ("busy-locations-changed", "where, the locations whose busy time changed unlike that of the others"),
    ("task-times-changed", "which, the tasks that became longer or shorter themselves, or more"),
];
/// That of scalability studies.
const OF_STUDIES: Explanation = (
    "pascal-region-changes",
    "what changed, the time of each region at the largest size on the most cores of both studies",
);
/// That of folded stacks.
const OF_WEIGHTS: Explanation = ("weights-changed", "what changed, the weight by name of frame");
/// How many lines of it are shown.
const ROWS_SHOWN: usize = 10;

/// Says under the first metric that got worse what changed between the two sides, and under the others where that stands.
pub(super) fn add_to_changes(
    outcomes: &mut [Outcome],
    args: &CheckArgs,
    [base, new]: [&mut Side; 2],
    pairs: &Pairs,
) -> Result<(), Failure> {
    let is_of_weights = [&*base, &*new].iter().all(|side| side.connection.session().tick() == Tick::Weight);
    let changed = outcomes.iter_mut().filter_map(|outcome| match &mut outcome.verdict {
        Verdict::Failed(evidence) if evidence.is_change => Some((&outcome.query, &outcome.what, evidence)),
        _ => None,
    });
    // Each explanation, and the metric that it stands under.
    let mut told: Vec<(Explanation, String)> = Vec::new();
    for (query, what, evidence) in changed {
        let mut explanation = match query.as_str() {
            _ if is_of_weights => OF_WEIGHTS,
            BUSY_TIME | "busy-time" => OF_BUSY_TIME,
            CRITICAL_PATH | "critical-path-length" => OF_CRITICAL_PATH,
            _ => OF_PATHS,
        };
        let of = |side, run: &str| evidence.runs.as_deref().is_none_or(|runs| pairs.called(side, Some(run)) == runs);
        let typical_base = typical(base, &args.baseline, |run| of(0, run))?;
        let (base, new) = match (typical_base, typical(new, &args.open.traces, |run| of(1, run))?) {
            (Some(base), Some(new)) => (base, new),
            // Several runs in one file cannot be opened one by one: those of a study are compared as a whole.
            _ => match (args.baseline.as_slice(), args.open.traces.as_slice()) {
                ([base], [new]) => {
                    explanation = OF_STUDIES;
                    (path_of(base).to_owned(), path_of(new).to_owned())
                }
                _ => continue,
            },
        };
        if let Some((_, place)) = told.iter().find(|(known, _)| *known == explanation) {
            evidence.more.push(format!("what changed: see {place}"));
            continue;
        }
        let traces = vec![format!("base={base}"), format!("new={new}")];
        let open = OpenArgs { traces, run_pattern: None, ..args.open.clone() };
        let explained = Connection::open(&open).and_then(|mut connection| {
            let Some(first) = explain(&mut connection, args, explanation)? else { return Ok(None) };
            // That is worth a word once, and its lack none.
            let wanted = told.is_empty() && explanation != OF_STUDIES && explanation != OF_WEIGHTS;
            let further = FURTHER
                .iter()
                .filter(|_| wanted)
                .filter_map(|further| Some((further.1, explain(&mut connection, args, *further).ok()??)));
            Ok(Some((first, further.collect::<Vec<_>>())))
        });
        match explained {
            Ok(Some(((text, cause), further))) => {
                let traces =
                    [format!("base={}", TraceSpec::shown_text(&base)), format!("new={}", TraceSpec::shown_text(&new))];
                let (said, all) = (traces.join(", "), traces.join(" "));
                evidence.more.push(format!("{} ({said}; `tq report {all}` tells more):", explanation.1));
                evidence.more.extend(text.lines().map(str::to_owned));
                evidence.causes.push(cause);
                for (title, (text, cause)) in further {
                    evidence.causes.push(cause);
                    evidence.more.push(format!("{title}:"));
                    evidence.more.extend(text.lines().map(str::to_owned));
                }
                told.push((explanation, format!("{query}, {what}")));
            }
            Ok(None) => {}
            // An explanation that cannot be had does not change the verdict.
            Err(Failure::Told(problem)) => {
                evidence.more.push(format!("what changed cannot be told: {}", problem.message));
                told.push((explanation, format!("{query}, {what}")));
            }
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

/// The first rows of a saved query, as a table, and the very first in words: `stencil: work, 4.81 ms → 10.5 ms`. `None` where the
/// traces lack what it needs, and where it has no rows.
fn explain(
    connection: &mut Connection,
    args: &CheckArgs,
    (name, _): Explanation,
) -> Result<Option<(String, String)>, Failure> {
    let Some(query) = library::open(&args.library)?.find(name)? else { return Ok(None) };
    if !connection.unmet(&query)?.is_empty() {
        return Ok(None);
    }
    let tick = connection.session().tick();
    let params = query.bind(&[], tick)?;
    let answer = connection.answer(&query.statement, &params)?;
    if answer.num_rows() == 0 {
        return Ok(None);
    }
    let names = Names::default();
    label_tasks(connection, &names)?;
    let shown = with_labels(&names, &answer.slice(0, answer.num_rows().min(ROWS_SHOWN)))?;
    Ok(Some((super::print::table(&shown, tick)?, first_row(&shown, tick)?)))
}

/// What the first row is about, and the first number that differs between both runs.
fn first_row(rows: &RecordBatch, tick: Tick) -> Result<String, Failure> {
    let (cells, schema) = (Cells::new(rows)?, rows.schema());
    let shown = |column: usize| cells.shown(column, 0, tick).map(Option::unwrap_or_default);
    let what = shown(0)?;
    for (base, field) in schema.fields().iter().enumerate() {
        let pair = field.name().strip_prefix("base_").map(|name| format!("new_{name}"));
        if let Some((new, _)) = pair.and_then(|name| schema.column_with_name(&name))
            && shown(base)? != shown(new)?
        {
            return Ok(format!("{what}, {} → {}", shown(base)?, shown(new)?));
        }
    }
    Ok(what)
}

/// The trace whose makespan is the median of those of its side that are meant; `None` where some run has no trace of its own.
fn typical(side: &mut Side, traces: &[String], is_meant: impl Fn(&str) -> bool) -> Result<Option<String>, Failure> {
    let Some(traces) = traces_of_runs(side, traces) else { return Ok(None) };
    let rows = side.connection.collect(
        "SELECT CAST(run_number AS BIGINT) AS run_number FROM runs ORDER BY makespan NULLS LAST, run_number",
        &Params::new(),
    )?;
    let numbers = cast(rows.column(0), &DataType::Int64)?;
    let numbers =
        numbers.as_primitive::<Int64Type>().values().iter().filter_map(|&number| usize::try_from(number).ok());
    let runs = side.connection.session().runs();
    let meant: Vec<usize> = numbers.filter(|&number| runs.get(number).is_some_and(|run| is_meant(&run.name))).collect();
    let trace = meant.get(meant.len().saturating_sub(1) / 2).and_then(|&number| traces.get(number));
    Ok(trace.map(|trace| path_of(trace).to_owned()))
}

/// A trace for each run that can be opened alone: those that were given, or of a store `STORE/RUN`.
fn traces_of_runs(side: &Side, traces: &[String]) -> Option<Vec<String>> {
    let store_of = |trace: &String| {
        let TraceSpec { name, path } = TraceSpec::parse(trace);
        tq_engine::store::find(&path).map(|place| (name, place.root))
    };
    if !traces.iter().any(|trace| store_of(trace).is_some()) {
        return (side.runs == traces.len()).then(|| traces.to_vec());
    }
    let [store] = traces else { return None };
    let (name, root) = store_of(store)?;
    // `name=STORE` puts the name before those of the runs.
    let of_store = |run: &str| {
        let run = match &name {
            Some(name) => run.strip_prefix(name.as_str())?.strip_prefix('/')?,
            None => run,
        };
        Some(format!("{}/{run}", root.display()))
    };
    side.connection.session().runs().iter().map(|run| of_store(&run.name)).collect()
}

/// `[name=]path` without the name.
pub(crate) fn path_of(trace: &str) -> &str {
    match trace.split_once('=') {
        Some((name, path)) if !name.contains('/') && !std::path::Path::new(trace).exists() => path,
        _ => trace,
    }
}
