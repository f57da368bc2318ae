//! The forms in which relation functions are used in SQL, and the words of errors.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int32Type;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::datasource::MemTable;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn session(memory_bytes: usize) -> SessionContext {
    let pool = Arc::new(GreedyMemoryPool::new(memory_bytes));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let config = SessionConfig::new().with_target_partitions(2).with_information_schema(true);
    let builder = SessionStateBuilder::new().with_default_features().with_config(config).with_runtime_env(runtime);
    SessionContext::new_with_state(configure(builder).build())
}

/// The answer of one statement as people see it.
pub(super) async fn answer(context: &SessionContext, text: &str) -> String {
    let statements = parse(text).unwrap();
    let frame = execute(context, &statements[0], None).await.unwrap();
    let batches = frame.collect().await.unwrap_or_else(|error| panic!("{text}: {error}"));
    pretty_format_batches(&batches).unwrap().to_string()
}

fn dictionary(values: &[&str]) -> ArrayRef {
    Arc::new(values.iter().copied().collect::<DictionaryArray<Int32Type>>())
}

fn integers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn register(context: &SessionContext, name: &str, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    context.register_table(name, Arc::new(table)).unwrap();
}

/// ```text
/// run a                      run b
/// 1 [---------)              5 [------)
/// 2 [---)                    6    [-----)
/// 3           [----)         7          [-)
/// 4                 [---)
///   1 -> 3 -> 4, 2 ~> 3        5 -> 6 -> 7           (~> weak)
/// ```
fn small() -> SessionContext {
    let context = session(1 << 30);
    let rows = [
        ("a", 1, "one", "w0", 0, 10),
        ("a", 2, "two", "w1", 0, 4),
        ("a", 3, "three", "w0", 10, 15),
        ("a", 4, "four", "w1", 16, 20),
        ("b", 5, "one", "w0", 0, 7),
        ("b", 6, "two", "w0", 3, 9),
        ("b", 7, "three", "w0", 9, 11),
    ];
    type Row = (&'static str, i64, &'static str, &'static str, i64, i64);
    let text = |of: fn(&Row) -> &'static str| dictionary(&rows.iter().map(of).collect::<Vec<_>>());
    let number = |of: fn(&Row) -> i64| integers(rows.iter().map(of));
    register(
        &context,
        "tasks",
        vec![
            ("run", text(|row| row.0)),
            ("task", number(|row| row.1)),
            ("name", text(|row| row.2)),
            ("location", text(|row| row.3)),
            ("start", number(|row| row.4)),
            ("finish", number(|row| row.5)),
            ("duration", number(|row| row.5 - row.4)),
        ],
    );
    register(
        &context,
        "links",
        vec![
            ("run", dictionary(&["a", "a", "a", "b", "b"])),
            ("source", integers([1, 2, 3, 5, 6])),
            ("target", integers([3, 3, 4, 6, 7])),
            ("kind", dictionary(&["dependency", "weak", "dependency", "dependency", "dependency"])),
        ],
    );
    context
}

async fn try_answer(
    context: &SessionContext,
    sql: &str,
    params: Option<ParamValues>,
) -> Result<Vec<RecordBatch>, SqlError> {
    let mut rows = vec![];
    for statement in parse(sql)? {
        rows = execute(context, &statement, params.clone()).await?.collect().await?;
    }
    Ok(rows)
}

/// The rows of the last statement, a line each, values between bars.
fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let table = pretty_format_batches(batches).unwrap().to_string();
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(1);
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join(" ")).collect()
}

/// With the stack that programs give the engine ([`crate::sql::stack`]).
#[track_caller]
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    crate::sql::stack::deep(|| runtime.block_on(future))
}

#[track_caller]
fn check(context: &SessionContext, sql: &str, expected: &[&str]) {
    match block_on(try_answer(context, sql, None)) {
        Ok(rows) => assert_eq!(lines(&rows), expected, "{sql}"),
        Err(error) => panic!("{sql}: {error}"),
    }
}

#[track_caller]
fn explain(context: &SessionContext, sql: &str) -> String {
    let rows = block_on(try_answer(context, &format!("EXPLAIN {sql}"), None)).unwrap();
    lines(&rows).join("\n")
}

#[track_caller]
fn error(context: &SessionContext, sql: &str) -> SqlError {
    match block_on(try_answer(context, sql, None)) {
        Ok(rows) => panic!("{sql} answers {:?}", lines(&rows)),
        Err(error) => error,
    }
}

/// Message, what the carets mark, and hint.
#[track_caller]
fn check_error(sql: &str, message: &str, marked: &str, hint: &str) {
    let error = error(&small(), sql);
    assert_eq!(error.message, message, "{sql}");
    assert_eq!(error.hint.clone().unwrap_or_default(), hint, "{sql}");
    let at = error.place.as_ref().map(|place| {
        let from = place.source_line.chars().skip(place.column as usize - 1);
        from.take(place.length as usize).collect::<String>()
    });
    assert_eq!(at.unwrap_or_default(), marked, "{sql}: {error:?}");
}

const BOTH: [&str; 6] = ["a 0 1 10 10", "a 1 3 5 15", "a 2 4 4 19", "b 0 5 7 7", "b 1 6 6 13", "b 2 7 2 15"];
const COLUMNS: &str = "SELECT run, step, task, duration, path_time";

#[test]
fn plain_calls() {
    let context = small();
    for call in [
        "critical_path()",
        "critical_path(tasks)",
        "critical_path(tasks, links)",
        "Critical_Path(TASKS, Links)",
        "critical_path(public.tasks, datafusion.public.links)",
        "critical_path('tasks', 'public.links')",
        "critical_path(links => links, tasks => tasks)",
        "critical_path(tasks := tasks)",
        "critical_path(TABLE(tasks), TABLE(SELECT * FROM links ORDER BY target))",
        "critical_path((SELECT * FROM tasks), (WITH l AS (SELECT * FROM links) SELECT * FROM l))",
        "critical_path((tasks), links, false)",
        "TABLE(critical_path(tasks, links))",
    ] {
        check(&context, &format!("{COLUMNS} FROM {call} ORDER BY run, step"), &BOTH);
    }
    check(
        &context,
        "SELECT * FROM critical_path() WHERE run = 'a' ORDER BY step LIMIT 2",
        &["a 0 1 one w0 0 10 10 10", "a 1 3 three w0 10 15 5 15"],
    );
    check(
        &context,
        "SELECT c.step, c.path_time FROM critical_path() AS c WHERE c.step = 2 ORDER BY 2",
        &["2 15", "2 19"],
    );
    check(&context, "SELECT critical_path.task FROM critical_path() WHERE step = 0 ORDER BY 1", &["1", "5"]);
    check(
        &context,
        "SELECT b FROM critical_path() AS t(a, b, c, d, e, f, g, h, i) WHERE a = 'b' ORDER BY 1",
        &["0", "1", "2"],
    );
}

/// Longer than what is made of an answer at once.
#[test]
fn a_long_chain_is_whole() {
    check(
        &small(),
        "WITH t AS (SELECT value AS task, 1 + value % 3 AS duration FROM generate_series(1, 150000)), \
         l AS (SELECT value AS source, value + 1 AS target FROM generate_series(1, 149999)) \
         SELECT count(*), count(*) FILTER (WHERE step = task - 1 AND duration = 1 + task % 3), sum(duration), \
         max(path_time) FROM critical_path(t, l)",
        &["150000 150000 300000 300000"],
    );
}

#[test]
fn answers_compose_with_the_rest_of_sql() {
    let context = small();
    check(
        &context,
        "WITH t AS (SELECT * FROM tasks WHERE run = 'a'), l AS (SELECT * FROM links WHERE kind = 'dependency') \
         SELECT c.step, tasks.name FROM critical_path(t, l) c JOIN tasks USING (task) ORDER BY step",
        &["0 one", "1 three", "2 four"],
    );
    check(&context, "SELECT count(*) FROM critical_path(critical_path(), links)", &["6"]);
    check(
        &context,
        "SELECT run, (SELECT max(path_time) FROM critical_path() WHERE run = r.run) FROM \
         (SELECT DISTINCT run FROM tasks) r ORDER BY run",
        &["a 19", "b 15"],
    );
    check(
        &context,
        "SELECT r.run, c.task FROM (SELECT DISTINCT run FROM tasks) r, \
         LATERAL (SELECT * FROM critical_path() WHERE run = r.run) c WHERE c.step = 0 ORDER BY 1",
        &["a 1", "b 5"],
    );
    check(&context, "SELECT count(*) FROM (SELECT 1) r, LATERAL critical_path(tasks, links) c", &["6"]);
    check(
        &context,
        "SELECT name FROM tasks WHERE task IN (SELECT task FROM critical_path() WHERE step = 0) ORDER BY task",
        &["one", "one"],
    );
    check(
        &context,
        "SELECT count(*) FROM critical_path((SELECT * FROM tasks t WHERE EXISTS \
         (SELECT 1 FROM links l WHERE l.target = t.task)), links)",
        &["4"],
    );
    check(
        &context,
        "PREPARE p AS SELECT count(*) FROM critical_path((SELECT * FROM tasks WHERE task > $1)); EXECUTE p(1)",
        &["5"],
    );
}

#[test]
fn a_view_lets_a_filter_through_to_both_scans() {
    let context = small();
    check(
        &context,
        "CREATE VIEW path AS SELECT * FROM critical_path(tasks, (SELECT * FROM links WHERE kind = 'dependency'))",
        &[],
    );
    check(&context, "SELECT task FROM path WHERE run = 'b' ORDER BY step", &["5", "6", "7"]);
    let plan = explain(&context, "SELECT * FROM path WHERE run = 'b' AND step > 0");
    assert_eq!(plan.matches("tasks.run = ").count() + plan.matches("links.run = ").count(), 2, "{plan}");
    let node = plan.find("Relation: critical_path").unwrap();
    assert!(!plan[..node].contains("run ="), "{plan}");
    assert!(plan[..node].contains("step >"), "{plan}");
}

#[test]
fn filters_that_may_not_go_into_the_inputs_stay() {
    let context = small();
    // An input without runs serves every run.
    let sql =
        "SELECT run, task FROM critical_path(tasks, (SELECT source, target FROM links)) WHERE run = 'b' ORDER BY step";
    check(&context, sql, &["b 5", "b 6", "b 7"]);
    let refused = error(&context, "SELECT * FROM critical_path() WHERE random() < 0.5");
    assert!(refused.message.contains("another value each time"), "{refused}");
    check(&context, "SELECT count(*) FROM critical_path() WHERE (SELECT count(*) FROM tasks) > 100", &["0"]);
}

#[test]
fn columns_that_nobody_reads_are_not_scanned() {
    let plan = explain(&small(), "SELECT run, step, task FROM critical_path()");
    assert!(plan.contains("TableScan: tasks projection=[run, task, duration]"), "{plan}");
    let plan = explain(&small(), "SELECT name, finish FROM critical_path()");
    assert!(plan.contains("TableScan: tasks projection=[run, task, name, finish, duration]"), "{plan}");
    check(
        &small(),
        "SELECT finish, name FROM critical_path() WHERE run = 'b' ORDER BY step",
        &["7 one", "9 two", "11 three"],
    );
}

#[test]
fn explain_names_the_call() {
    let context = small();
    let plan = explain(&context, "SELECT * FROM critical_path(tasks, break_weak => 1 = 1)");
    assert!(plan.contains("Relation: critical_path(tasks, links omitted, break_weak => "), "{plan}");
    assert!(plan.contains("RelationExec: critical_path(tasks, links omitted, break_weak => true)"), "{plan}");
    let measured = explain(&context, "ANALYZE SELECT * FROM critical_path()");
    for metric in ["output_rows=6", "input_rows=12", "peak_memory=", "elapsed_compute="] {
        assert!(measured.contains(metric), "{metric} in {measured}");
    }
    let tree = explain(&context, "FORMAT TREE SELECT * FROM critical_path()");
    assert!(tree.contains("RelationExec"), "{tree}");
}

#[test]
fn options_are_constants_or_placeholders() {
    let context = small();
    let sql = "SELECT count(*) FROM critical_path((SELECT * FROM tasks WHERE run = $run), break_weak => $weak)";
    let params = |weak: ScalarValue| Some(ParamValues::from(vec![("run", ScalarValue::from("b")), ("weak", weak)]));
    for weak in [ScalarValue::from(true), ScalarValue::from("false"), ScalarValue::Boolean(None)] {
        let rows = block_on(try_answer(&context, sql, params(weak))).unwrap();
        assert_eq!(lines(&rows), ["3"]);
    }
    let wrong = block_on(try_answer(&context, sql, params(ScalarValue::from("maybe")))).unwrap_err();
    assert_eq!(wrong.message, "critical_path: option `break_weak` is BOOLEAN, but 'maybe' was given");
    let missing = block_on(try_answer(&context, sql, None)).unwrap_err();
    assert_eq!(missing.message, "no value for `$run`");
    assert_eq!(missing.hint.as_deref(), Some("`tq query --param run=…` gives it one"));
}

#[test]
fn notes_belong_to_their_query() {
    let context = small();
    let said = |sql: &str| {
        block_on(async {
            let query = execute(&context, &parse(sql).unwrap().remove(0), None).await.unwrap();
            let notes = query.notes();
            query.collect().await.unwrap();
            notes.take().iter().map(ToString::to_string).collect::<Vec<_>>()
        })
    };
    let left_out = ["critical_path: 1 link to a task that is not there was left out"];
    let call = "critical_path(tasks, (SELECT 1 AS source, 99 AS target))";
    assert_eq!(said(&format!("SELECT count(*) FROM {call}")), left_out);
    assert_eq!(said("SELECT count(*) FROM critical_path()"), [""; 0]);
    // What is computed when the statement is executed, and what another statement has prepared.
    assert_eq!(said(&format!("CREATE TABLE path AS SELECT * FROM {call}")), left_out);
    said(&format!("PREPARE path AS SELECT * FROM {call}"));
    assert_eq!(said("EXECUTE path"), left_out);
}

#[test]
fn errors_of_calls() {
    let called = "critical_path([tasks], [links], [break_weak => BOOLEAN])";
    check_error(
        "SELECT * FROM critcal_path(tasks, links)",
        "no relation function `critcal_path`",
        "critcal_path",
        "did you mean `critical_path`?",
    );
    check_error("SELECT *\nFROM critical_path(taskz, links)", "no table `taskz`", "taskz", "did you mean `tasks`?");
    check_error("SELECT * FROM critical_path(TABLE(taskz))", "no table `taskz`", "taskz", "did you mean `tasks`?");
    check_error(
        "SELECT * FROM critical_path(tasks, brake_weak => true)",
        "critical_path has no argument `brake_weak`",
        "brake_weak",
        &format!("did you mean `break_weak`? it is called {called}"),
    );
    check_error(
        "SELECT * FROM critical_path(tasks, links, break_weak = true)",
        "critical_path: `break_weak = true` is a comparison",
        "break_weak = true",
        "an argument by name is written `break_weak => true`",
    );
    check_error(
        "SELECT * FROM critical_path(tasks, links, true, 5)",
        "critical_path takes at most 3 arguments",
        "5",
        &format!("it is called {called}"),
    );
    check_error(
        "SELECT * FROM critical_path(tasks, tasks => links)",
        "critical_path: `tasks` is given twice",
        "tasks => links",
        &format!("it is called {called}"),
    );
    check_error(
        "SELECT * FROM critical_path(5)",
        "critical_path: `tasks` must be a relation, `5` is not",
        "5",
        "give the name of a table, `TABLE(SELECT …)`, `(SELECT …)` or another relation function",
    );
    check_error(
        "SELECT * FROM critical_path(break_weak => yes)",
        "critical_path: option `break_weak` must be a constant, `yes` is a column",
        "yes",
        "a text needs single quotes: 'yes'",
    );
    check_error(
        "SELECT * FROM critical_path(break_weak => 'maybe')",
        "critical_path: option `break_weak` is BOOLEAN, but 'maybe' was given",
        "critical_path",
        "",
    );
    check_error(
        "SELECT * FROM critical_path(break_weak => 7)",
        "critical_path: option `break_weak` is BOOLEAN, but 7 was given",
        "critical_path",
        "",
    );
    check_error(
        "SELECT * FROM critical_path((SELECT run, task FROM tasks))",
        "critical_path: input `tasks` has no column `duration`; it has run, task",
        "critical_path",
        "",
    );
    check_error(
        "SELECT * FROM critical_path(tasks, (SELECT 'x' AS source, target FROM links))",
        "critical_path: column `source` of input `links` is text, but BIGINT is needed; CAST it",
        "critical_path",
        "",
    );
    check_error(
        "SELECT * FROM critical_path((SELECT * FROM tasks t JOIN tasks u USING (task)))",
        "critical_path: input `tasks` has several columns `run`: t.run, u.run; select one of them",
        "critical_path",
        "",
    );
    check_error(
        "SELECT * FROM critical_path(tasks, (SELECT 1 AS run, source, target FROM links))",
        "critical_path: `run` is text in input `tasks` and BIGINT in input `links`",
        "critical_path",
        "",
    );
    let correlated = error(
        &small(),
        "SELECT r.run, c.task FROM (SELECT DISTINCT run FROM tasks) r, \
         LATERAL (SELECT * FROM critical_path((SELECT * FROM tasks t WHERE t.run = r.run))) c",
    );
    assert!(correlated.message.contains("refers to `outer_ref(r.run)` of the outer query"), "{correlated}");
    assert!(correlated.hint.unwrap().contains("column `run` of its answer"));
}

#[test]
fn options_may_be_answers() {
    let context = small();
    let chosen = |option: &str| {
        format!("SELECT run, count(*) FROM critical_path(break_weak => {option}) GROUP BY run ORDER BY run")
    };
    let both = ["a 3", "b 3"];
    check(&context, &chosen("(SELECT count(*) > 0 FROM tasks)"), &both);
    check(&context, &chosen("NOT (SELECT bool_or(duration < 0) FROM tasks)"), &both);
    check(&context, &chosen("(SELECT true WHERE false)"), &both);
    // Run a from tick 15 on: tasks 3 and 4.
    let window = "(SELECT max(start) - 1 FROM tasks WHERE run = 'a')";
    check(
        &context,
        &format!("SELECT sum(count) FROM cluster_view(TABLE(SELECT * FROM tasks WHERE run = 'a'), 9, {window})"),
        &["2"],
    );
    check(
        &context,
        &format!("SELECT sum(count) FROM cluster_view((SELECT * FROM tasks WHERE run = 'a'), from => {window} + 1)"),
        &["1"],
    );
    let failed = |option: &str| error(&context, &chosen(option)).message;
    assert_eq!(
        failed("(SELECT 'x')"),
        "critical_path: option `break_weak` is BOOLEAN, but 'x' was given",
        "an answer is looked at like a constant"
    );
    assert_eq!(failed("(SELECT duration > 1 FROM tasks)"), "a subquery that stands for one value has several rows");
    assert_eq!(
        failed("EXISTS (SELECT 1)"),
        "critical_path: option `break_weak` must be a constant or `(SELECT …)` of one value"
    );
    let correlated = "SELECT r.run, (SELECT count(*) FROM critical_path(break_weak => (SELECT r.run = 'a'))) \
                      FROM (SELECT DISTINCT run FROM tasks) r";
    assert_eq!(
        error(&context, correlated).message,
        "critical_path: option `break_weak` refers to `outer_ref(r.run)` of the outer query"
    );
}

#[test]
fn a_default_table_that_is_not_there() {
    let context = session(1 << 20);
    let error = error(&context, "SELECT * FROM critical_path()");
    assert_eq!(error.message, "no table `tasks`");
    assert_eq!(error.place.unwrap().column, 15);
}

#[test]
fn errors_of_the_rest_of_sql() {
    check_error("SELECT run,\n  strat\nFROM tasks", "no column `strat`", "strat", "did you mean `start`?");
    check_error("SELECT t.strat FROM tasks t", "no column `strat` in `t`", "t.strat", "did you mean `start`?");
    check_error(
        "SELECT task FROM tasks WHERE name = \"one\"",
        "no column `one`",
        "\"one\"",
        "a text needs single quotes: 'one'",
    );
    // Names are lower-cased, texts are not.
    for sql in ["SELECT task FROM tasks WHERE name = B_5_19", "SELECT task FROM tasks WHERE name IN (B_5_19)"] {
        check_error(sql, "no column `b_5_19`", "B_5_19", "a text needs single quotes: 'B_5_19'");
    }
    check_error("SELECT * FROM task", "no table `task`", "task", "did you mean `tasks`?");
    check_error("WITH steps AS (SELECT 1) SELECT * FROM step", "no table `step`", "step", "did you mean `steps`?");
    check_error("SELECT * FROM weather", "no table `weather`", "weather", "there is links, tasks");
    check_error(
        "SELECT * FROM critical_path",
        "no table `critical_path`",
        "critical_path",
        "`critical_path` is a function: `FROM critical_path()`",
    );
    for (change, at) in [
        ("DELETE FROM tasks WHERE task = 1", "tasks"),
        ("UPDATE main.tasks SET name = 'x'", "main.tasks"),
        ("INSERT INTO tasks SELECT * FROM tasks", "tasks"),
        ("DROP TABLE IF EXISTS tasks", "tasks"),
        ("CREATE OR REPLACE VIEW tasks AS SELECT 1", "tasks"),
    ] {
        check_error(
            change,
            "`tasks` is what was read from the trace and cannot be changed",
            at,
            "make a table of your own: `CREATE TABLE mine AS SELECT * FROM tasks`",
        );
    }
    for (change, at, schema) in [
        ("DROP SCHEMA main CASCADE", "main", "main"),
        ("DROP SCHEMA IF EXISTS tq.Perfetto", "tq.Perfetto", "perfetto"),
        ("DROP VIEW hta.events", "hta.events", "hta"),
        ("CREATE OR REPLACE VIEW docs.tables AS SELECT 1", "docs.tables", "docs"),
        ("CREATE TABLE perfetto.mine AS SELECT 1", "perfetto.mine", "perfetto"),
    ] {
        check_error(
            change,
            &format!("the schema `{schema}` is the same in every session"),
            at,
            "make a schema of your own: `CREATE SCHEMA mine`",
        );
    }
    check_error("SELECT coutn(task) FROM tasks", "no function `coutn`", "coutn", "did you mean `count`?");
    check_error(
        "SELECT critical_path(task) FROM tasks",
        "`critical_path` is a relation, not a value",
        "critical_path",
        "it stands in FROM: `SELECT * FROM critical_path()`",
    );
    check_error(
        "SET datafusion.execution.batch_sise = 5",
        "no setting `datafusion.execution.batch_sise`",
        "datafusion.execution.batch_sise",
        "did you mean `datafusion.execution.batch_size`?",
    );
    check_error(
        "SET batch_size = 5",
        "no setting `batch_size`",
        "batch_size",
        "did you mean `datafusion.execution.batch_size`?",
    );
    check_error(
        "SELECT * FROM tasks WHERE duration > 5ms",
        "`5ms` is neither a number nor a name",
        "5ms",
        "a time is written `ms(5)`",
    );
    check_error(
        "SELECT * FROM tasks WHERE duration > '5ms'",
        "'5ms' is no BIGINT",
        "'5ms'",
        "a time is written `ms(5)`",
    );
    check_error(
        "SELECT start, end FROM tasks",
        "expected end of statement, found end",
        "end",
        "a task ends at its `finish`; `end` is a word of SQL, as a name it stands in double quotes",
    );
    check_error(
        "SELECT order, group FROM tasks",
        "expected end of statement, found group",
        "group",
        "`group` is a word of SQL; as a name it stands in double quotes: `\"group\"`",
    );
    check_error(
        "gpu-kernels;",
        "expected an SQL statement, found gpu",
        "gpu",
        "it is a saved query: `\\run gpu-kernels` at the prompt, `tq query TRACE gpu-kernels`",
    );
    check_error("SELECT run FROM tasks JOIN links USING (run", "expected ), found the end of the statement", "", "");
    let broken = error(&small(), "SELECT run\nFROM tasks,, links");
    assert_eq!((broken.message.as_str(), broken.place.unwrap().line), ("expected identifier, found ,", 2));
    check_error(
        "SELECT run FROM tasks t JOIN links l ON t.task = l.source",
        "column `run` is in several relations",
        "run",
        "say which one: `t.run` or `l.run`",
    );
    check_error(
        "SELECT * FROM tasks TABLESAMPLE (10 PERCENT)",
        "`TABLESAMPLE (10 PERCENT)` is not supported",
        "tasks",
        "sample by a condition, for example `WHERE task % 10 = 0`",
    );
    check_error(
        "SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL",
        "no table `cupti_activity_kind_kernel`",
        "CUPTI_ACTIVITY_KIND_KERNEL",
        "kernels are tasks: `FROM tasks WHERE kind = 'kernel'`",
    );
    check_error(
        "SELECT run FROM tasks WHERE location = aten::mm",
        "`mm` is no type",
        "mm",
        "`x::type` converts to a type; texts stand in quotes: `name = 'aten::mm'`",
    );
    check_error(
        "SHOW TABLES LIKE 'ta%'",
        "not supported: SHOW TABLES FILTER not supported",
        "SHOW",
        "ask `information_schema.tables`: `WHERE table_name LIKE 'ta%'`",
    );
    let pivot = error(&small(), "SELECT * FROM tasks PIVOT(sum(duration) FOR location IN ('w0', 'w1'))");
    assert!(pivot.message.starts_with("not supported: ") && pivot.message.len() < 200, "{pivot}");
    assert!(pivot.hint.unwrap().contains("FILTER"));
}

#[test]
fn carets_stand_under_the_place() {
    let error = error(&small(), "SELECT 1;\n\tSELECT strat,\n run FROM tasks");
    assert_eq!(error.caret_lines().unwrap(), "2 | \tSELECT strat,\n    \t       ^^^^^");
}

#[test]
fn a_memory_limit_is_an_error_with_advice() {
    let context = session(64 << 10);
    check(&context, "CREATE VIEW tasks AS SELECT value AS task, value AS duration FROM range(0, 100000)", &[]);
    let error = error(&context, "SELECT count(*) FROM critical_path(tasks, (SELECT 1 AS source, 2 AS target))");
    assert!(error.message.starts_with("not enough memory: "), "{error}");
    assert!(error.hint.unwrap().contains("--memory"));
    assert_eq!(context.runtime_env().memory_pool.reserved(), 0);
}

#[test]
fn shared_buffers_are_charged_once() {
    // A table of many slices of one buffer: charging each slice with its whole buffer would need 800 MB.
    let context = session(16 << 20);
    let rows = 100_000;
    let batch = RecordBatch::try_from_iter([("task", integers(0..rows)), ("duration", integers(0..rows))]).unwrap();
    let slices: Vec<RecordBatch> = (0..rows as usize).step_by(200).map(|from| batch.slice(from, 200)).collect();
    let table = MemTable::try_new(batch.schema(), vec![slices]).unwrap();
    context.register_table("tasks", Arc::new(table)).unwrap();
    check(&context, "SELECT path_time FROM critical_path(tasks, (SELECT 1 AS source, 2 AS target))", &["99999"]);
    assert_eq!(context.runtime_env().memory_pool.reserved(), 0);
}

/// Planned, run and dropped on threads of 2 MiB, as an embedder has them.
#[test]
fn long_statements_answer_and_deep_ones_are_refused() {
    let context = session(1 << 30);
    check(&context, &format!("SELECT {}1", "1 + ".repeat(300)), &["301"]);
    check(
        &context,
        &format!("SELECT count(*) FROM generate_series(1, 10) t(a) WHERE {}", vec!["a <> 3"; 600].join(" AND ")),
        &["9"],
    );
    let lists = vec!["a NOT IN (3, 4)"; 600].join(" AND ");
    check(
        &context,
        &format!("SELECT count(*) FILTER (WHERE ({lists}) IS NOT NULL) FROM generate_series(1, 10) t(a)"),
        &["10"],
    );
    check(&context, &format!("SELECT count(*) FROM ({})", vec!["SELECT 1 AS a"; 200].join(" UNION ALL ")), &["200"]);
    block_on(try_answer(&context, "CREATE VIEW v0 AS SELECT 1 AS a", None)).unwrap();
    // Every view is 20 steps, and planned anew for the next one.
    let refused = (1..400).find_map(|number| {
        let around = "SELECT * FROM (".repeat(20);
        let sql = format!("CREATE VIEW v{number} AS {around}SELECT * FROM v{}{}", number - 1, ") AS t".repeat(20));
        block_on(try_answer(&context, &sql, None)).err()
    });
    assert!(refused.unwrap().message.contains("steps stand on each other"));
}

/// A stream that is dropped stops the computation and gives its memory back, wherever it is: here while the inputs
/// never end.
#[test]
fn a_dropped_query_stops() {
    let context = session(8 << 30);
    block_on(async {
        for call in [
            "critical_path((SELECT value AS task, 1 AS duration FROM range(0, 1000000000000)), (SELECT 1 AS source, 2 AS target))",
            "critical_path((SELECT value AS task, 1 AS duration FROM range(0, 100000)), \
             (SELECT value % 100 AS source, value % 100 + 1 AS target FROM range(0, 1000000000000)))",
        ] {
            let statement = parse(&format!("SELECT * FROM {call}")).unwrap().remove(0);
            // The plan goes with the rows: operators of DataFusion keep batches on their way in it.
            let mut rows = execute(&context, &statement, None).await.unwrap().start().await.unwrap();
            // Not before it is at work: memory has been asked for.
            while context.runtime_env().memory_pool.reserved() == 0 {
                assert!(tokio::time::timeout(Duration::from_millis(5), rows.next()).await.is_err());
            }
            drop(rows);
            for _ in 0..2_000 {
                if context.runtime_env().memory_pool.reserved() == 0 {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(context.runtime_env().memory_pool.reserved(), 0, "{call} goes on");
        }
    });
}

#[test]
fn examples_of_relation_functions_run_and_arguments_are_documented() {
    for function in tq_udfs::relation_functions() {
        let documentation = function.documentation();
        let example = documentation.sql_example.as_deref().unwrap_or_default();
        let rows = block_on(try_answer(&session(1 << 30), example, None)).unwrap();
        assert!(rows.iter().any(|batch| batch.num_rows() > 0), "{}", function.name());
        let documented: Vec<&str> = documentation.arguments.iter().flatten().map(|(name, _)| name.as_str()).collect();
        let parameters: Vec<&str> = function.parameters().iter().map(|parameter| parameter.name()).collect();
        assert_eq!(documented, parameters, "{}", function.name());
        assert_eq!(documentation.syntax_example, function.signature());
    }
}

#[test]
fn text_columns_of_every_type_are_taken() {
    let context = session(1 << 30);
    for (place, names) in [
        dictionary(&["x", "y"]),
        Arc::new(StringArray::from(vec!["x", "y"])) as ArrayRef,
        Arc::new(datafusion::arrow::array::StringViewArray::from(vec!["x", "y"])),
        Arc::new(datafusion::arrow::array::LargeStringArray::from(vec!["x", "y"])),
    ]
    .into_iter()
    .enumerate()
    {
        let table = format!("t{place}");
        register(&context, &table, vec![("task", integers([1, 2])), ("duration", integers([1, 1])), ("name", names)]);
        check(
            &context,
            &format!("SELECT run, name FROM critical_path({table}, (SELECT 2 AS source, 1 AS target)) ORDER BY step"),
            &["y", "x"].map(|name| format!(" {name}")).each_ref().map(String::as_str),
        );
    }
}

#[test]
fn batches_with_other_dictionaries() {
    let context = session(1 << 30);
    let batch = |run: &str, tasks: [i64; 2], name: &str| {
        let columns = vec![
            ("run", dictionary(&[run, run])),
            ("task", integers(tasks)),
            ("duration", integers([1, 2])),
            ("name", dictionary(&[name, "same"])),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let batches = vec![batch("b", [3, 4], "p"), batch("a", [1, 2], "q"), batch("b", [6, 5], "r")];
    let table = MemTable::try_new(batches[0].schema(), vec![batches]).unwrap();
    context.register_table("tasks", Arc::new(table)).unwrap();
    check(
        &context,
        "SELECT run, task, name FROM critical_path(tasks, \
         (SELECT column1 AS source, column2 AS target FROM (VALUES (6, 4), (4, 3), (2, 1)))) ORDER BY run, step",
        &["a 2 same", "a 1 q", "b 6 r", "b 4 same", "b 3 p"],
    );
}

/// Answers of a random trace of up to three runs, with and without a filter, which the optimiser moves into the inputs.
fn random_tables(tasks: &[(u8, i64)], links: &[(usize, usize, u8)]) -> SessionContext {
    const RUNS: [&str; 3] = ["a", "b", "c"];
    let context = session(1 << 30);
    let run_of: Vec<&str> = tasks.iter().map(|(run, _)| RUNS[*run as usize % 3]).collect();
    register(
        &context,
        "tasks",
        vec![
            ("run", dictionary(&run_of)),
            ("task", integers(0..tasks.len() as i64)),
            ("duration", integers(tasks.iter().map(|(_, duration)| *duration))),
        ],
    );
    // Some links claim another run than that of their tasks, or lead from run to run.
    let task = |end: usize| (end % (tasks.len() + 1)) as i64;
    let ends = |one: usize, other: usize| {
        let (lower, higher) = (task(one).min(task(other)), task(one).max(task(other)));
        (lower, higher + i64::from(lower == higher))
    };
    register(
        &context,
        "links",
        vec![
            ("run", dictionary(&links.iter().map(|(_, _, run)| RUNS[*run as usize % 3]).collect::<Vec<_>>())),
            ("source", integers(links.iter().map(|(one, other, _)| ends(*one, *other).0))),
            ("target", integers(links.iter().map(|(one, other, _)| ends(*one, *other).1))),
        ],
    );
    context
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn a_filter_on_run_never_changes_the_answer(
        tasks in vec((any::<u8>(), 0..5i64), 1..12), links in vec((0..12usize, 0..12usize, any::<u8>()), 1..20),
    ) {
        let context = random_tables(&tasks, &links);
        for links in ["links", "(SELECT source, target FROM links)", "(SELECT * FROM links WHERE source < target)"] {
            let call = format!("SELECT * FROM critical_path(tasks, {links})");
            let answer = |sql: String| block_on(async {
                let statement = parse(&sql).unwrap().remove(0);
                lines(&execute(&context, &statement, None).await.unwrap().collect().await.unwrap())
            });
            let all = answer(format!("{call} ORDER BY run, step"));
            for run in ["a", "b", "c"] {
                let filtered = answer(format!("{call} WHERE run = '{run}' ORDER BY run, step"));
                let expected: Vec<&String> = all.iter().filter(|row| row.starts_with(run)).collect();
                prop_assert_eq!(filtered.iter().collect::<Vec<_>>(), expected);
            }
        }
    }
}

#[test]
fn an_answer_as_long_as_its_limit_may_be_cut() {
    let given = [("n".to_owned(), ScalarValue::Int64(Some(3)))];
    for (sql, cut) in [
        ("SELECT 1 LIMIT 3", true),
        ("SELECT 1 LIMIT $n", true),
        ("WITH a AS (SELECT 1 LIMIT 9) SELECT * FROM a LIMIT 3 OFFSET 1", true),
        ("SELECT 1 LIMIT 4", false),
        ("SELECT 1 LIMIT $m", false),
        ("SELECT * FROM (SELECT 1 LIMIT 3)", false),
        ("SELECT 1 FROM a QUALIFY rank() OVER () <= 3 LIMIT 9", true),
        ("SELECT 1 FROM a QUALIFY rank() OVER () <= $n", true),
        ("SELECT 1 FROM a QUALIFY rank() OVER () <= 4", false),
        ("SELECT 1 FROM a QUALIFY rank() OVER () < 9", true),
        ("SHOW ALL", false),
    ] {
        assert_eq!(parse(sql).unwrap()[0].is_cut_at(3, &given), cut, "{sql}");
    }
}

/// What stands behind the statements that are asked for is not looked at: it may be megabytes.
#[test]
fn the_first_statements_are_read_without_the_others() {
    let first = |most| super::parse_first("SELECT 1; SELECT 2; SELEC 3", most).map(|statements| statements.len());
    assert_eq!(first(1).unwrap(), 1);
    assert_eq!(first(2).unwrap(), 2);
    assert!(first(3).is_err());
}
