//! `tq check`: saved queries as checks in CI.
//!
//! Life of a check: [`suite`] finds the files and what they demand → their queries run on the traces, and on the baseline where
//! there are metrics → [`expect`] examines one answer, [`metric`] compares two, each run with its like ([`pairs`]), with
//! [`tq_udfs::permutation`] where there are repetitions → each check ends as an [`Outcome`] → [`mod@print`] writes lines, JUnit, annotations or a summary, [`picture`] draws
//! the time around the offending rows, [`explain`] says what changed.
//!
//! A check that could not run did not pass: a broken file, a missing column or a missing baseline gives exit status 2,
//! which takes precedence over the 1 of a check that did not hold.

mod csv;
mod expect;
mod explain;
mod ledger;
mod metric;
mod pairs;
mod picture;
mod print;
mod standard;
mod suite;

use std::path::PathBuf;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use tq_engine::open::TraceSpec;
use tq_engine::queries::{Need, Origin, SavedQuery};
use tq_udfs::ticks::Tick;

use crate::args::{CheckArgs, OpenArgs};
use crate::connection::{Connection, Params};
use crate::errors::queries::needs_in_words;
use crate::errors::{Failure, Problem};
use crate::files::{Inputs, Outputs};
use crate::{library, memory, open, output, pictures, terminal, text, timeout, workers};

pub(crate) use explain::path_of;
use ledger::Ledger;
use pairs::Pairs;
pub(crate) use print::{lines, table};
pub(crate) use standard::STANDARD;
use suite::Suite;

/// How one check ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The name of the query.
    pub(crate) query: String,
    /// Its file, as people name it; empty where there is none, as for built-in queries.
    pub(crate) file: String,
    /// The line of the check in it.
    pub(crate) line: usize,
    /// What was checked.
    pub(crate) what: String,
    pub(crate) verdict: Verdict,
}

#[derive(Debug)]
pub(crate) enum Verdict {
    /// It held; the text says on what.
    Held(String),
    /// It did not.
    Failed(Evidence),
    /// It could not be found out.
    NotRun(Box<Problem>),
    /// It was left out, as `--allow-skip` allows.
    Skipped(String),
    /// No check, but what a reader of the others must know. It is not counted.
    Noted(String),
}

/// Why a check failed.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// In words.
    pub(crate) summary: String,
    /// The rows that offend, the worst first where there is a worst.
    pub(crate) rows: Option<RecordBatch>,
    /// How many there are; `rows` has some of them.
    count: usize,
    /// What else is to be said, line by line.
    more: Vec<String>,
    /// The foremost of each explanation, in words.
    causes: Vec<String>,
    /// Whether a metric got worse, which calls for an explanation.
    is_change: bool,
    /// What the runs are called whose metric got worse most, where runs are told apart ([`Pairs`]).
    runs: Option<String>,
}

/// A side of the comparison.
struct Side {
    connection: Connection,
    /// Whether the answers of several runs can only be told apart by their column `run`.
    runs: usize,
}

/// The outcomes of a suite, and what is to be said of them.
pub(crate) struct Checked {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) tick: Tick,
    /// The files with pictures; a picture that takes too long or cannot be written does not take the verdicts along.
    pictures: Result<Vec<PathBuf>, Problem>,
}

pub(crate) fn run(args: &CheckArgs) -> Result<(), Failure> {
    timeout::start(args.timeout);
    let Checked { outcomes, tick, pictures } = outcomes(args)?;
    print::print(&outcomes, args, tick)?;
    match pictures {
        Ok(files) => files.iter().for_each(|file| terminal::done(&format!("drew {}", file.display()))),
        Err(problem) if problem.is_beyond_limit => terminal::warning(&format!("no picture: {}", problem.message)),
        Err(problem) => return Err(problem.into()),
    }
    verdict_of_all(&outcomes)
}

/// Runs the checks.
pub(crate) fn outcomes(args: &CheckArgs) -> Result<Checked, Failure> {
    // Checks only ask, wherever their SQL stands.
    let args = &CheckArgs { open: OpenArgs { read_only: true, ..args.open.clone() }, ..args.clone() };
    if args.github {
        text::runner::listens();
    }
    if args.open.traces.is_empty() {
        let problem = Problem::new("a check needs a trace").hint("`tq check TRACE… --query FILE.sql`");
        let may_have_taken_it = args.checks.len() > 1 || args.baseline.len() > 1;
        return Err(match may_have_taken_it {
            true => problem.hint("traces come first: arguments after `--query` or `--baseline` belong to that option"),
            false => problem,
        }
        .into());
    }
    if let Some(file) = &args.picture {
        output::must_be_svg(file)?;
    }
    let ledger = Ledger::open(args);
    ledger.reads("queries", &args.checks);
    open::watch_memory(&args.open);
    let is_standard = standard::is_asked_for(args)?;
    let mut suite = match is_standard {
        true => standard::suite(args.tolerance)?,
        false => match not_interrupted(Suite::open(args))? {
            Ok(suite) => suite,
            Err(problem) => {
                must_not_overwrite_inputs(&Suite::default(), args)?;
                return Ok(unreadable("queries", &args.checks, problem));
            }
        },
    };
    must_not_overwrite_inputs(&suite, args)?;
    ledger.reads("traces", &args.open.traces);
    // `--run` is for stores, and one of the sides may be none.
    let is_store = |trace: &String| tq_engine::store::find(&TraceSpec::parse(trace).path).is_some();
    let cluster = workers::of_all(&args.open, &args.baseline);
    let [of_new, of_base] =
        [(&args.open.traces, &args.baseline), (&args.baseline, &args.open.traces)].map(|(side, other)| {
            let is_meant = side.iter().any(is_store) || !other.iter().any(is_store);
            OpenArgs {
                traces: side.clone(),
                run_pattern: args.open.run_pattern.clone().filter(|_| is_meant),
                cluster: cluster.clone(),
                ..args.open.clone()
            }
        });
    let mut new = match not_interrupted(Side::open(&of_new))? {
        Ok(side) => side,
        Err(problem) => return Ok(unreadable("traces", &args.open.traces, problem)),
    };
    // Also where no check asks for it: a baseline that cannot be read is a mistake.
    ledger.reads("baseline", &args.baseline);
    let mut base = match args.baseline.is_empty() {
        false => match not_interrupted(Side::open(&of_base))? {
            Ok(side) => Some(side),
            Err(problem) => return Ok(unreadable("baseline", &args.baseline, problem)),
        },
        true => None,
    };
    let mut asked = |base: Option<&mut Side>| -> Result<Pairs, Failure> {
        let Some(base) = base else { return Ok(Pairs::default()) };
        if is_standard {
            standard::keep_answerable(&mut suite, [&mut new, base])?;
        }
        Pairs::of([base, &mut new])
    };
    let pairs = match not_interrupted(asked(base.as_mut()))? {
        Ok(pairs) => pairs,
        Err(problem) => return Ok(unreadable("traces", &args.open.traces, problem)),
    };
    ledger.begin(suite.entries, new.connection.session().tick());
    while let Some(query) = ledger.next() {
        ledger.answered(check(&query, &mut new, base.as_mut(), &pairs, args)?);
    }
    let mut outcomes = ledger.done();
    memory::last_words(None);
    let pictures = match &args.picture {
        Some(file) => not_interrupted(picture::draw_failed(&outcomes, &mut new.connection, &pairs, file))?,
        None => Ok(Vec::new()),
    };
    if let Some(base) = &mut base {
        explain::add_to_changes(&mut outcomes, args, [base, &mut new], &pairs)?;
    }
    Ok(Checked { outcomes, tick: new.connection.session().tick(), pictures })
}

/// Traces and queries that cannot be read are a check that could not run: CI learns of them where it learns of all others.
fn unreadable(side: &str, traces: &[String], problem: Problem) -> Checked {
    Checked { outcomes: vec![unread(side, traces, problem)], tick: Tick::Nanosecond, pictures: Ok(Vec::new()) }
}

fn unread(side: &str, traces: &[String], problem: Problem) -> Outcome {
    let files = || traces.iter().map(|trace| TraceSpec::shown_text(explain::path_of(trace)));
    let file = files().find(|file| problem.message.contains(file)).or(files().next()).unwrap_or_default();
    let verdict = Verdict::NotRun(Box::new(problem));
    Outcome { query: side.to_owned(), file, line: 1, what: String::new(), verdict }
}

/// Refuses a command whose output is one of the files that it reads.
fn must_not_overwrite_inputs(suite: &Suite, args: &CheckArgs) -> Result<(), Failure> {
    let mut inputs = Inputs::of(&args.open);
    inputs.traces(&args.baseline, &args.open);
    inputs.folders(&library::directories(&args.library));
    inputs.files(&args.expected);
    for query in suite.entries.iter().flatten() {
        inputs.query(query);
        if !args.bless {
            inputs.files(&expect::named(query));
        }
    }
    let mut outputs = Outputs::default();
    outputs.add("--junit", args.junit.as_deref());
    outputs.add("--markdown", args.markdown.as_ref().and_then(|file| file.as_deref()));
    outputs.add("--picture", args.picture.as_deref());
    if let Some(file) = &args.picture {
        outputs.add_family("--picture", file, '-', ".svg");
    }
    if args.bless {
        for query in suite.entries.iter().flatten() {
            expect::named(query).iter().for_each(|file| outputs.add("--bless", Some(file)));
        }
    }
    outputs.apart_from(&inputs)
}

fn verdict_of_all(outcomes: &[Outcome]) -> Result<(), Failure> {
    let any = |wanted: fn(&Verdict) -> bool| outcomes.iter().any(|outcome| wanted(&outcome.verdict));
    if any(|verdict| matches!(verdict, Verdict::NotRun(_))) {
        return Err(Failure::CouldNotRun);
    }
    if any(|verdict| matches!(verdict, Verdict::Failed(_))) {
        return Err(Failure::DoesNotHold);
    }
    Ok(())
}

impl Side {
    fn open(args: &OpenArgs) -> Result<Side, Failure> {
        let mut connection = Connection::open(args)?;
        connection.tell_notes_once();
        let runs = connection.session().runs().len();
        Ok(Side { connection, runs })
    }

    /// The answer of a query; `Err(Ok(…))` is what the traces lack.
    fn answer(&mut self, query: &SavedQuery, args: &CheckArgs) -> Result<Result<RecordBatch, Vec<Need>>, Failure> {
        let unmet = self.connection.unmet(query)?;
        if !unmet.is_empty() {
            return Ok(Err(unmet));
        }
        let params = params(query, args, self.connection.session().tick())?;
        pictures::charts(query, &params)?;
        let placed = |failure: Failure| failure.in_file(&query.file(), Some(query.statement.line));
        Ok(Ok(self.connection.answer(&query.statement, &params).map_err(placed)?))
    }
}

/// All checks of a query, in the order of their lines, with one verdict.
fn all_of(query: &SavedQuery, verdict: impl Fn() -> Verdict) -> Vec<Outcome> {
    let expects = query.header.expects.iter().map(|expect| (expect.line, expect.what.to_string()));
    let metrics = query.header.metrics.iter().map(|metric| (metric.line, format!("metric {}", metric.column)));
    let mut checks: Vec<(usize, String)> = expects.chain(metrics).collect();
    checks.sort_by_key(|(line, _)| *line);
    checks.into_iter().map(|(line, what)| Outcome::of(query, line, what, verdict())).collect()
}

/// The values of a query's parameters. `--param` is for all queries: one takes what it declares.
fn params(query: &SavedQuery, args: &CheckArgs, tick: Tick) -> Result<Params, Failure> {
    let declared = |name: &String| query.header.params.iter().any(|param| param.name == *name);
    let given: Vec<(String, String)> = args.params.iter().filter(|(name, _)| declared(name)).cloned().collect();
    Ok(query.bind(&given, tick)?)
}

/// All checks of a query, in the order of their lines.
fn check(
    query: &SavedQuery,
    new: &mut Side,
    mut base: Option<&mut Side>,
    pairs: &Pairs,
    args: &CheckArgs,
) -> Result<Vec<Outcome>, Failure> {
    let together = timeout::together();
    let answer = not_interrupted(new.answer(query, args))?;
    let mut outcomes = Vec::new();
    for expect in &query.header.expects {
        let verdict = match (&answer, timeout::used_up()) {
            (Ok(Ok(_)), Some(late)) => Verdict::NotRun(Box::new(late)),
            (Ok(Ok(batch)), None) => told(expect::verdict(expect, query, batch, &mut new.connection, args))?,
            (Ok(Err(unmet)), _) => lacking(query, unmet, "these traces", args.allow_skip),
            (Err(problem), _) => Verdict::NotRun(Box::new(problem.clone())),
        };
        outcomes.push(Outcome::of(query, expect.line, expect.what.to_string(), verdict));
    }
    drop(together);
    if !query.header.metrics.is_empty() {
        let base_answer = match base.as_deref_mut() {
            Some(side) => Some(not_interrupted(side.answer(query, args))?),
            None => None,
        };
        for metric in &query.header.metrics {
            let verdict = match (&answer, &base_answer, base.as_deref()) {
                (Err(problem), _, _) | (_, Some(Err(problem)), _) => Verdict::NotRun(Box::new(problem.clone())),
                (Ok(Err(unmet)), _, _) => lacking(query, unmet, "these traces", args.allow_skip),
                (_, Some(Ok(Err(unmet))), _) => lacking(query, unmet, "the baseline", args.allow_skip),
                (Ok(Ok(batch)), Some(Ok(Ok(base_batch))), Some(side)) => {
                    let sides = [(base_batch, side), (batch, &*new)];
                    let placed = |failure: Failure| failure.in_file(&query.file(), Some(metric.line as u64));
                    told(metric::verdict(metric, sides, pairs).map_err(placed))?
                }
                _ => without_baseline(args),
            };
            outcomes.push(Outcome::of(query, metric.line, format!("metric {}", metric.column), verdict));
        }
    }
    outcomes.sort_by_key(|outcome| outcome.line);
    Ok(outcomes)
}

fn lacking(query: &SavedQuery, unmet: &[Need], who: &str, allow_skip: bool) -> Verdict {
    let what = format!("`{}` needs {}: that is not in {who}", query.name, needs_in_words(unmet));
    if allow_skip {
        return Verdict::Skipped(what);
    }
    Verdict::NotRun(Box::new(
        Problem::new(what).hint("in a suite for several kinds of traces, `--allow-skip` skips it"),
    ))
}

fn without_baseline(args: &CheckArgs) -> Verdict {
    let what = "a metric is compared with a baseline, and none is given";
    if args.allow_skip {
        return Verdict::Skipped(what.to_owned());
    }
    Verdict::NotRun(Box::new(Problem::new(what).hint("give the traces of the baseline: `--baseline TRACE…`")))
}

/// What can be told is part of the outcome; an interruption ends the command.
fn not_interrupted<T>(result: Result<T, Failure>) -> Result<Result<T, Problem>, Failure> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(Failure::Told(problem)) => Ok(Err(*problem)),
        Err(other) => Err(other),
    }
}

fn told(result: Result<Verdict, Failure>) -> Result<Verdict, Failure> {
    Ok(not_interrupted(result)?.unwrap_or_else(|problem| Verdict::NotRun(Box::new(problem))))
}

/// What a column holds, for people.
fn type_in_words(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Dictionary(_, values) => type_in_words(values),
        DataType::Boolean => "true or false",
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => "a date",
        data_type if data_type.is_numeric() => "a number",
        _ => "a compound value",
    }
}

impl Outcome {
    fn of(query: &SavedQuery, line: usize, what: String, verdict: Verdict) -> Outcome {
        let file = if matches!(query.origin, Origin::BuiltIn) { String::new() } else { query.file() };
        Outcome { query: query.name.clone(), file, line, what, verdict }
    }
}

impl Evidence {
    fn new(summary: String, rows: Option<RecordBatch>, count: usize) -> Evidence {
        Evidence { summary, rows, count, more: Vec::new(), causes: Vec::new(), is_change: false, runs: None }
    }
}
