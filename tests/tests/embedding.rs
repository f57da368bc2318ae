//! What programs rely on that embed the engine: runs, formats and functions of their own, and queries that know nothing of each
//! other.

use std::sync::{Arc, Barrier, LazyLock};

use tq_engine::datafusion::arrow::array::{Int64Array, new_null_array};
use tq_engine::datafusion::arrow::datatypes::{DataType, Field};
use tq_engine::datafusion::arrow::util::display::array_value_to_string;
use tq_engine::datafusion::common::Result;
use tq_engine::datafusion::logical_expr::{ColumnarValue, DocSection, Documentation, Volatility, create_udf};
use tq_engine::error::ImportError;
use tq_engine::importers::{FormatDoc, ImportContext};
use tq_engine::tables::{Messages, Tasks};
use tq_engine::trace::Source;
use tq_engine::udfs::relation::call::Call;
use tq_engine::udfs::relation::{InputSpec, Omitted, Parameter, RelationFunction};
use tq_engine::{Importer, NamedRun, OpenOptions, RunBuilder, Session, TraceSpec};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn options() -> OpenOptions {
    OpenOptions::new(1 << 28, 2)
}

/// Tasks with a message each, of which the second is the child of the first.
fn run(name: &str, starts: &[i64]) -> NamedRun {
    let mut run = RunBuilder::in_memory("nowhere");
    let finishes: Vec<i64> = starts.iter().map(|start| start + 10).collect();
    let parents: Vec<Option<i64>> = (0..starts.len()).map(|task| (task == 1).then_some(0)).collect();
    let (start, finish, parent) = (starts.to_vec().into(), finishes.into(), parents.into());
    run.append(Tasks { start, finish, parent, ..Tasks::default() }).unwrap();
    let of_tasks: Vec<i64> = (0..starts.len() as i64).collect();
    run.append(Messages { source_task: of_tasks.into(), ..Messages::default() }).unwrap();
    NamedRun { name: name.to_owned(), format: "own", run: run.finish(1).unwrap() }
}

/// The rows of an answer, a line each.
fn lines(session: &Session, sql: &str) -> Vec<String> {
    let batches = runtime().block_on(async { session.sql(sql).await.unwrap().collect().await.unwrap() });
    let row = |batch: &tq_engine::datafusion::arrow::array::RecordBatch, row: usize| {
        let cells = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
        cells.collect::<Vec<_>>().join(" ")
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |number| row(batch, number))).collect()
}

/// Our views stand for the tables of the traces, whenever a query first names one and whatever an embedding program has put in the
/// place of a table by then; to such a program they are views like others.
#[test]
fn views_are_over_the_tables_that_the_session_began_with() {
    let opened = || Session::from_runs(vec![run("a", &[0, 5])], &options()).unwrap();
    let count = |session: &Session| lines(session, "SELECT sum(tasks), sum(total_time) FROM work_by_name");
    let expected = count(&opened());
    assert_eq!(expected, ["2 20"]);
    let session = opened();
    lines(&session, "SET datafusion.sql_parser.enable_ident_normalization = false");
    let context = session.context();
    context.deregister_table("tasks").unwrap().expect("a table");
    assert_eq!(count(&session), expected);

    let session = opened();
    let context = session.context();
    let directly = |sql: &str| runtime().block_on(context.sql(sql)).map(drop);
    let sql = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE 'working_%s' ORDER BY 1";
    assert_eq!(lines(&session, sql), ["working_lanes", "working_locations", "working_spans", "working_tasks"]);
    let error = directly("CREATE VIEW working_tasks AS SELECT 1 AS one").expect_err("there is one").to_string();
    assert!(error.contains("working_tasks"), "{error}");
    directly("CREATE OR REPLACE VIEW working_tasks AS SELECT 1 AS one").unwrap();
    assert_eq!(lines(&session, "SELECT * FROM working_tasks"), ["1"]);
    assert_eq!(count(&session), expected, "the views over it see the one that was there");
    directly("DROP VIEW working_tasks").unwrap();
    context.deregister_table("working_spans").unwrap();
    assert_eq!(lines(&session, sql), ["working_lanes", "working_locations"]);
    directly("SELECT * FROM working_spans").expect_err("it was dropped");
    directly("CREATE VIEW working_spans AS SELECT 2 AS two").unwrap();
    assert_eq!(lines(&session, "SELECT * FROM working_spans"), ["2"]);
    assert_eq!(count(&session), expected);
}

#[test]
fn runs_without_files_get_names_and_identities_of_their_own() {
    let session = Session::from_runs(vec![run("a", &[0, 5]), run("a", &[7, 8, 9])], &options()).unwrap();
    let sql = "SELECT run, run_number, format, tasks, makespan FROM runs ORDER BY run_number";
    assert_eq!(lines(&session, sql), ["a 0 own 2 15", "a_2 1 own 3 12"]);
    // Each message belongs to a task of its run, and each child to a parent.
    let sql = "SELECT t.run, count(*), min(t.task), count(p.task) FROM tasks t JOIN messages m ON m.source_task = t.task \
               LEFT JOIN tasks p ON p.task = t.parent WHERE m.run = t.run AND m.message >= (m.message & (1 << 40)) \
               GROUP BY t.run ORDER BY t.run";
    assert_eq!(lines(&session, sql), ["a 2 0 1", "a_2 3 1099511627776 1"]);
    let used = session.context().runtime_env().memory_pool.reserved();
    assert!(used > 0, "the session's pool was asked");
    let too_small = OpenOptions::new(1, 1);
    let refused = Session::from_runs(vec![run("a", &[0])], &too_small).err().map(|error| error.to_string());
    assert!(refused.as_ref().is_some_and(|error| error.contains("not enough memory")), "{refused:?}");
}

#[test]
fn runs_stand_beside_traces_and_are_cut_like_them() {
    let mut options = options();
    options.traces.push(TraceSpec { name: None, path: tq_tests::fixture("tfprof/zero_40.tfp") });
    let session = Session::from_runs(vec![run("own", &[0, 5])], &options).unwrap();
    assert_eq!(lines(&session, "SELECT run, run_number FROM runs ORDER BY 2"), ["own 0", "zero_40 1"]);
    let sql = "SELECT count(*), count(DISTINCT task) = count(*) FROM tasks";
    let all = lines(&session, "SELECT sum(tasks), true FROM runs");
    assert_eq!(lines(&session, sql), all);
}

/// `name start finish`, a line each, below a line that says so.
struct Lines;

static LINES: FormatDoc =
    FormatDoc { name: "lines", title: "A line a task", dialects: &[], fills: "tasks", loses: "nothing", options: &[] };

impl Importer for Lines {
    fn doc(&self) -> &'static FormatDoc {
        &LINES
    }

    fn recognise(&self, source: &Source) -> bool {
        source.head().starts_with(b"{\"lines\"}")
    }

    fn import(&self, source: &Source, context: &mut ImportContext<'_>) -> std::result::Result<(), ImportError> {
        let text = String::from_utf8(source.read_all()?).unwrap();
        let mut run = context.begin(source);
        for line in text.lines().skip(1) {
            run.stats.records(1);
            let cells: Vec<&str> = line.split(' ').collect();
            let time = |at: usize| vec![cells[at].parse::<i64>().unwrap()].into();
            run.append(Tasks { name: cells[0].into(), start: time(1), finish: time(2), ..Tasks::default() })?;
        }
        context.finish(run)
    }
}

#[test]
fn formats_of_the_program_are_asked_first() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("run.json");
    std::fs::write(&path, "{\"lines\"}\nfoo 0 5\nbar 5 9\n").unwrap();
    let ask = |format: Option<&str>| {
        let mut options = options();
        options.traces.push(TraceSpec { name: None, path: path.clone() });
        options.importers.push(Arc::new(Lines));
        options.from_format = format.map(str::to_owned);
        Session::open(&options).map(|session| lines(&session, "SELECT name, duration FROM tasks ORDER BY start"))
    };
    for format in [None, Some("lines")] {
        assert_eq!(ask(format).unwrap(), ["foo 5", "bar 4"], "{format:?}");
    }
    let unknown = ask(Some("line")).unwrap_err();
    assert!(matches!(&unknown, ImportError::UnknownFormat { known, .. } if known[0] == "lines"), "{unknown}");
}

/// `meet(tasks)`: waits until all calls are there, and notes how many rows it got.
#[derive(Debug)]
struct Meet(Barrier);

static MEET: [Parameter; 1] =
    [Parameter::Input(InputSpec { name: "tasks", omitted: Omitted::Table("tasks"), columns: &[] })];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    let section = DocSection { include: true, label: "Relations", description: None };
    Documentation::builder(section, "Waits.", "meet([tasks])").build()
});

impl RelationFunction for Meet {
    fn name(&self) -> &'static str {
        "meet"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &MEET
    }

    fn output(&self) -> Vec<Field> {
        vec![Field::new("rows", DataType::Int64, false)]
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let mut rows = 0;
        while let Some(batch) = call.input("tasks")?.0.next_batch()? {
            rows += batch.num_rows() as i64;
        }
        self.0.wait();
        call.work.note(format!("{rows} rows"));
        let run = new_null_array(call.output().field(0).data_type(), 1);
        call.emit(vec![run, Arc::new(Int64Array::from(vec![rows]))])
    }
}

#[test]
fn queries_at_once_have_notes_of_their_own() {
    let session = Arc::new(Session::from_runs(vec![run("a", &[0, 5, 9])], &options()).unwrap());
    let meet: Arc<dyn RelationFunction> = Arc::new(Meet(Barrier::new(2)));
    session.register(meet).unwrap();
    // Unqualified names, inputs that are left out and hints know it as they do ours.
    let wrong = runtime().block_on(async { session.sql("SELECT * FROM met()").await.err().unwrap() });
    assert_eq!(wrong.hint.as_deref(), Some("did you mean `meet`?"));
    let runtime = runtime();
    let ask = |sql: &'static str| {
        let session = Arc::clone(&session);
        runtime.spawn(async move {
            let mut rows = session.sql(sql).await.unwrap().start().await.unwrap();
            rows.rest().await.unwrap();
            rows.take_notes().into_iter().map(|note| note.text).collect::<Vec<_>>()
        })
    };
    // Neither ends before both are at work.
    let all = ask("SELECT * FROM meet()");
    let one = ask("SELECT * FROM meet((SELECT * FROM tasks WHERE start = 5))");
    assert_eq!(runtime.block_on(all).unwrap(), ["3 rows"]);
    assert_eq!(runtime.block_on(one).unwrap(), ["1 rows"]);
}

#[test]
fn functions_of_the_program_stand_beside_ours() {
    let session = Session::from_runs(vec![run("a", &[0, 5])], &options()).unwrap();
    let answer = Arc::new(|_: &[ColumnarValue]| Ok(ColumnarValue::Scalar(42i64.into())));
    let named = |name| create_udf(name, vec![], DataType::Int64, Volatility::Immutable, answer.clone());
    session.register(named("what_matters")).unwrap();
    assert_eq!(lines(&session, "SELECT what_matters()"), ["42"]);
    for taken in ["busy", "critical_path", "char_length", "range", "what_matters"] {
        let refused = session.register(named(taken)).unwrap_err().to_string();
        assert!(refused.contains(&format!("there is a function `{taken}` already")), "{refused}");
    }
}

#[test]
fn one_query_is_cancelled_alone() {
    let session = Session::from_runs(vec![run("a", &[0, 5])], &options()).unwrap();
    // All pairs of a million: hours, whatever waits for the rows.
    let sql =
        "SELECT count(*) FROM range(0, 1000000) AS a(x), range(0, 1000000) AS b(x) WHERE (a.x * 7 + b.x) % 11 = 3";
    runtime().block_on(async {
        let mut rows = session.sql(sql).await.unwrap().start().await.unwrap();
        let other = session.sql("SELECT count(*) FROM tasks").await.unwrap().start().await.unwrap();
        let canceller = rows.canceller();
        let cancels = tokio::spawn(async move { rows.rest().await.map_err(|error| error.message) });
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        canceller.cancel();
        assert_eq!(cancels.await.unwrap().unwrap_err(), "the query was cancelled");
        assert!(!other.canceller().is_cancelled());
        let mut other = other;
        assert_eq!(other.rest().await.unwrap()[0].num_rows(), 1);
        assert!(other.next().await.is_none());
    });
}

#[test]
fn settings_and_definitions_are_the_sessions() {
    let session = Session::from_runs(Vec::new(), &options()).unwrap();
    for statement in
        ["SET datafusion.execution.batch_size = 17", "CREATE VIEW v AS SELECT 1 AS x", "PREPARE p AS SELECT 2"]
    {
        lines(&session, statement);
    }
    assert_eq!(lines(&session, "SHOW datafusion.execution.batch_size"), ["datafusion.execution.batch_size 17"]);
    assert_eq!(lines(&session, "SELECT x FROM v"), ["1"]);
    assert_eq!(lines(&session, "EXECUTE p"), ["2"]);
}

#[test]
fn a_session_is_shared_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Session>();
    fn travels<T: Send>() {}
    travels::<tq_engine::Query>();
    travels::<tq_engine::Rows>();
    check::<tq_engine::Canceller>();
}
