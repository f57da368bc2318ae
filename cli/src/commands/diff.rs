//! `tq diff BASE NEW`: what a reviewer wants to know about two runs.
//!
//! ```text
//! base = before.tfp, new = after.tfp
//!
//! makespan       19.7 ms → 41.8 ms   +22.1 ms  +112.4 %
//! busy time      …
//! critical path  …                                            where both have dependencies
//! tasks          301 → 618  +317  +105.3 %                     where their numbers differ; locations alike
//!
//! Why: what the executed paths spent …                         the saved query why-it-changed
//! Where …                                                      the saved query busy-locations-changed, if it has rows
//! Which tasks …                                                the saved query task-times-changed, if it has rows
//! What changed most …                                         the saved query what-changed; of folded stacks, weights-changed
//! ```
//! A critical path that only one of the two has is not compared, and a line says so. Above stands, where it is so, that the two have no name of task in common; below it, that nothing changed.
//! All of it are saved queries; the numbers are those that `tq check --baseline` judges.

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::json::writer::{JsonArray, WriterBuilder};
use serde_json::{Value, json};
use tq_engine::open::TraceSpec;
use tq_engine::queries::{Library, SavedQuery};
use tq_udfs::ticks::Tick;

use crate::args::{DiffArgs, DiffFormat, OpenArgs};
use crate::charts::Names;
use crate::check::{STANDARD, path_of, table};
use crate::connection::{Connection, Params};
use crate::errors::{Failure, Problem};
use crate::figures::{Figure, figures};
use crate::output::print;
use crate::report::{label_tasks, with_labels};
use crate::text::visible::visible;
use crate::text::words::{counted, more_rows, signed_percent};
use crate::{library, timeout};

/// Tables below the numbers: their key in JSON, what stands above them, and the saved query.
const TABLES: [(&str, &str, &str); 5] = [
    (
        "why",
        "Why: what the executed paths spent; the changes of all names add up to that of the makespan",
        "why-it-changed",
    ),
    (
        "where",
        "Where: locations whose busy time, without waiting in collectives, changed unlike that of the others",
        "busy-locations-changed",
    ),
    (
        "which",
        "Which tasks changed: one of them (the `measure`), or how many there are; `change_time` is of all",
        "task-times-changed",
    ),
    ("what", "What changed most: work by name, idle locations", "what-changed"),
    (
        "weights",
        "What changed most: the share of each frame itself, a point is a hundredth of the run",
        "weights-changed",
    ),
];
/// The saved query whose sentence comes first: what is compared may be two different programs.
const STRANGERS: &str = "facts-nothing-in-common";
/// What is counted in each run. Different numbers are reported: perhaps the runs solved different problems, or ran on different machines.
const COUNTED: [(&str, &str); 2] = [("tasks", "working_tasks"), ("locations", "working_lanes")];
/// The number that needs dependencies.
const OF_GRAPHS: &str = "critical path";
/// Rows of a table that people are shown.
const ROWS_SHOWN: usize = 10;

/// A number of both runs.
struct Measure {
    name: &'static str,
    base: Figure,
    new: Figure,
}

pub(crate) fn run(args: &DiffArgs) -> Result<(), Failure> {
    timeout::start(args.timeout);
    let [base, new] = args.open.traces.as_slice() else {
        let given = counted(args.open.traces.len(), "trace");
        return Err(Problem::new(format!("`tq diff` compares one trace with another, and has {given}"))
            .hint("`tq diff BASE NEW`; `tq check NEW… --baseline BASE…` compares several runs a side")
            .into());
    };
    let traces = vec![format!("base={}", path_of(base)), format!("new={}", path_of(new))];
    let mut connection = Connection::open(&OpenArgs { traces, read_only: true, ..args.open.clone() })?;
    connection.tell_notes_once();
    let runs = connection.session().runs();
    if runs.len() != 2 {
        let of = |side: &str| {
            let prefix = format!("{side}/");
            let count = runs.iter().filter(|run| run.name == side || run.name.starts_with(&prefix)).count();
            format!("{side} holds {}", counted(count, "run"))
        };
        let message = format!("`tq diff` compares one run with another, and {}, {}", of("base"), of("new"));
        let problem = Problem::new(message);
        let are_studies = runs.iter().all(|run| run.format == "pascal");
        let problem = match are_studies {
            true => {
                let (base, new) = (TraceSpec::shown_text(path_of(base)), TraceSpec::shown_text(path_of(new)));
                problem.hint(format!("`tq report base={base} new={new}` compares two studies"))
            }
            false => problem,
        };
        return Err(problem
            .hint("`tq check NEW --baseline BASE` compares several runs a side; `tq query … runs-side-by-side` shows them")
            .into());
    }
    for (side, given) in [("base", base), ("new", new)] {
        let prefix = format!("{side}/");
        if let Some(run) = runs.iter().find_map(|run| run.name.strip_prefix(&prefix)) {
            let message =
                format!("`{}` holds runs, of which `{run}` is one today", TraceSpec::shown_text(path_of(given)));
            return Err(Problem::new(message)
                .hint(format!("`tq diff` takes the run itself: a file, or `STORE/{run}`"))
                .into());
        }
    }
    let library = library::open(&args.library)?;
    let (mut measures, mut not_compared) = (Vec::new(), Vec::new());
    for (name, query) in STANDARD {
        // As `tq check` compares them: those of a project are no measure.
        if let Some(answer) = answer(&mut connection, &Library::default(), query)? {
            match measure(name, &answer.rows)? {
                Ok(measure) => measures.push(measure),
                Err(lacking) if name == OF_GRAPHS => not_compared.extend(lacking.map(|lacking| (name, lacking))),
                Err(_) => {}
            }
        }
    }
    let mut counts = Vec::new();
    for (name, table) in COUNTED {
        let counted = format!(
            "WITH counts AS (SELECT run, count(*) AS number FROM {table} \
             WHERE run IN (SELECT run FROM runs WHERE time_unit <> 'weights') GROUP BY run) \
             SELECT run, number FROM counts WHERE (SELECT count(DISTINCT number) FROM counts) > 1"
        );
        counts.extend(measure(name, &connection.collect(&counted, &Params::new())?)?.ok());
    }
    let mut tables = Vec::new();
    for (key, title, query) in TABLES {
        if let Some(answer) = answer(&mut connection, &library, query)? {
            tables.push((key, title, answer));
        }
    }
    let strangers = match answer(&mut connection, &library, STRANGERS)? {
        Some(Answer { rows, .. }) if rows.num_rows() > 0 => {
            let sentences = cast(rows.column(0), &DataType::Utf8)?;
            Some(sentences.as_string::<i32>().value(0).to_owned())
        }
        _ => None,
    };
    let names = Names::default();
    label_tasks(&mut connection, &names)?;
    let tick = connection.session().tick();
    let found =
        Found { traces: [path_of(base), path_of(new)], strangers, measures, counts, not_compared, tables, names, tick };
    match args.format {
        DiffFormat::Text => print(&found.text()?),
        DiffFormat::Json => print(&format!("{:#}\n", found.document()?)),
    }
}

/// All that is said of the two.
struct Found<'a> {
    traces: [&'a str; 2],
    /// That they have nothing in common.
    strangers: Option<String>,
    measures: Vec<Measure>,
    /// How many tasks and locations they have, where the numbers differ.
    counts: Vec<Measure>,
    /// Numbers that only one of the runs has, and which of them has not.
    not_compared: Vec<(&'static str, &'static str)>,
    tables: Vec<(&'static str, &'static str, Answer)>,
    names: Names,
    tick: Tick,
}

/// The rows of a saved query, and whether they are the beginning of more.
struct Answer {
    rows: RecordBatch,
    is_cut: bool,
}

/// The answer of a saved query; `None` where the runs lack what it needs.
fn answer(connection: &mut Connection, library: &Library, name: &str) -> Result<Option<Answer>, Failure> {
    let Some(query) = library.find(name)? else { return Ok(None) };
    if !connection.unmet(&query)?.is_empty() {
        return Ok(None);
    }
    let params = query.bind(&[], connection.session().tick())?;
    let placed = |failure: Failure| failure.in_file(&SavedQuery::file(&query), Some(query.statement.line));
    let rows = connection.answer(&query.statement, &params).map_err(placed)?;
    Ok(Some(Answer { is_cut: query.statement.is_cut_at(rows.num_rows(), &params), rows }))
}

/// The second column of an answer with a row for each run; where a run has no value, its name if the other has one.
fn measure(name: &'static str, answer: &RecordBatch) -> Result<Result<Measure, Option<&'static str>>, Failure> {
    let runs = cast(answer.column(0), &DataType::Utf8)?;
    let (runs, values) = (runs.as_string::<i32>(), figures(answer.column(1))?);
    let of = |run: &str| (0..answer.num_rows()).filter(|&row| runs.value(row) == run).find_map(|row| values[row]);
    Ok(match (of("base"), of("new")) {
        (Some(base), Some(new)) => Ok(Measure { name, base, new }),
        (Some(_), None) => Err(Some("new")),
        (None, Some(_)) => Err(Some("base")),
        (None, None) => Err(None),
    })
}

impl Measure {
    fn change(&self) -> Figure {
        self.new.minus(self.base)
    }

    /// The change in percent; `None` from nothing.
    fn percent(&self) -> Option<f64> {
        let base = self.base.double();
        (base != 0.0).then(|| 100.0 * self.change().double() / base)
    }
}

impl Found<'_> {
    /// Whether all numbers are the same and no table has a row.
    fn is_nothing(&self) -> bool {
        let same = |measure: &Measure| measure.change().double() == 0.0;
        !self.measures.is_empty()
            && self.measures.iter().all(same)
            && self.counts.is_empty()
            && self.tables.iter().all(|(.., answer)| answer.rows.num_rows() == 0)
    }

    fn text(&self) -> Result<String, Failure> {
        let [base, new] = self.traces.map(|trace| visible(trace).into_owned());
        let (measures, tick) = (&self.measures, self.tick);
        let mut text = format!("base = {base}\nnew  = {new}\n\n");
        if let Some(strangers) = &self.strangers {
            text.push_str(&format!("Beware: {strangers}\n\n"));
        }
        if measures.is_empty() {
            text.push_str("Neither makespan nor busy time can be compared: not both runs have tasks. `tq report base=BASE new=NEW` shows what they hold.\n");
        }
        let time = |figure: Figure| figure.time(tick);
        let count = |figure: Figure| figure.whole().unwrap_or_default().to_string();
        let of_times = measures.iter().map(|measure| (measure, cells(measure, time)));
        let rows: Vec<(&Measure, [String; 4])> =
            of_times.chain(self.counts.iter().map(|measure| (measure, cells(measure, count)))).collect();
        let width = |column: usize| rows.iter().map(|(_, row)| row[column].chars().count()).max().unwrap_or(0);
        for (measure, row) in &rows {
            let [before, after, change, percent] = row;
            text.push_str(&format!(
                "{:<13}  {before:>a$} → {after:>b$}  {change:>c$}  {percent:>d$}",
                measure.name,
                a = width(0),
                b = width(1),
                c = width(2),
                d = width(3)
            ));
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        for (name, lacking) in &self.not_compared {
            let other = if *lacking == "new" { "base" } else { "new" };
            text.push_str(&format!("{name:<13}  not compared: {lacking} has no dependencies, and {other} has\n"));
        }
        if self.is_nothing() {
            text.push_str(
                "\nNothing changed: the time of each name of task, how many there are and what idled are the same.\n",
            );
        }
        for (_, title, Answer { rows, is_cut }) in self.tables.iter().filter(|(.., answer)| answer.rows.num_rows() > 0)
        {
            let shown = with_labels(&self.names, &rows.slice(0, rows.num_rows().min(ROWS_SHOWN)))?;
            text.push_str(&format!("\n{title}\n\n{}\n", table(&shown, tick)?));
            if rows.num_rows() > shown.num_rows() {
                text.push_str(&format!("… and {}\n", more_rows(rows.num_rows() - shown.num_rows(), *is_cut)));
            }
        }
        Ok(text)
    }

    fn document(&self) -> Result<Value, Failure> {
        let of = |measure: &Measure| {
            let (base, new, change) = (measure.base.json(), measure.new.json(), measure.change().json());
            json!({"measure": measure.name, "base": base, "new": new, "change": change, "change_percent": measure.percent()})
        };
        let mut document = json!({
            "base": self.traces[0],
            "new": self.traces[1],
            "tick": self.tick.symbol(),
            "nothing_in_common": self.strangers.is_some(),
            "measures": self.measures.iter().chain(&self.counts).map(of).collect::<Vec<Value>>(),
        });
        for (name, lacking) in &self.not_compared {
            document["not_compared"][*name] = json!({"lacks_dependencies": lacking});
        }
        for (key, _, Answer { rows, .. }) in &self.tables {
            document[*key] = rows_as_json(rows)?;
        }
        Ok(document)
    }
}

/// Both values, the change and its percentage.
fn cells(measure: &Measure, text: impl Fn(Figure) -> String) -> [String; 4] {
    let change = measure.change();
    let sign = if change.double() > 0.0 { "+" } else { "" };
    [
        text(measure.base),
        text(measure.new),
        format!("{sign}{}", text(change)),
        measure.percent().map(signed_percent).unwrap_or_default(),
    ]
}

fn rows_as_json(rows: &RecordBatch) -> Result<Value, Failure> {
    let mut text = Vec::new();
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, JsonArray>(&mut text);
    writer.write(rows)?;
    writer.finish()?;
    drop(writer);
    if text.is_empty() {
        return Ok(json!([]));
    }
    serde_json::from_slice(&text).map_err(|error| Problem::internal(&error.to_string()).into())
}
