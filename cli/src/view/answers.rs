//! Answers to the page's questions about tasks, links and names: queries whose rows become columns or small JSON objects.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::dataframe::DataFrame;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::logical_expr::LogicalPlan;
use serde_json::{Value, json};
use tq_engine::queries::Library;
use tq_engine::sql::{self, Statement};
use tq_engine::tables::TABLES;
use tq_udfs::graph::NONE;
use tq_udfs::ticks::Tick;

use super::model::{Frame, Model};
use super::wire::{self, Columns};
use crate::charts::hues;
use crate::connection::{Connection, Params};
use crate::errors::{Failure, Problem};
use crate::functions::{self, Kind};
use crate::output::{Output, Preparation};
use crate::{library, report};

/// Rows of an answer that the page gets; a file has them all.
const ROWS_MAX: usize = 100_000;
/// Hits of a search that the page can step through.
const HITS_MAX: usize = 100_000;
/// Links of a task on each side.
const LINKS_MAX: usize = 100;
/// The row of a span that takes its whole lane.
const ALL_ROWS: u16 = u16::MAX;

/// Gathers an answer.
struct Gathered {
    schema: Option<SchemaRef>,
    batches: Vec<RecordBatch>,
    /// The memory of the batches, and of the columns that they become.
    memory: MemoryReservation,
}

impl Output for Gathered {
    fn preparation(&self) -> Preparation {
        // What describes a plan or a table is no plan that could be limited.
        let arrange = |frame: DataFrame| match frame.logical_plan() {
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_) => Ok(frame),
            _ => frame.limit(0, Some(ROWS_MAX + 1)),
        };
        Preparation { arrange, ..Preparation::default() }
    }

    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Failure> {
        self.schema = Some(schema.clone());
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        if self.memory.try_grow(batch.get_array_memory_size().saturating_mul(2)).is_err() {
            return Err(Problem::new("the answer does not fit into memory")
                .hint("ask for fewer columns or rows, or let a file have it: CSV and Parquet are written row by row")
                .into());
        }
        self.batches.push(batch.clone());
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Gathered {
    /// The answer of a statement.
    fn of(connection: &mut Connection, statement: &Statement) -> Result<Gathered, Failure> {
        let pool = &connection.session().context().runtime_env().memory_pool;
        let memory = MemoryConsumer::new("an answer for the page").register(pool);
        let mut answer = Gathered { schema: None, batches: Vec::new(), memory };
        connection.run(statement, &Params::new(), &mut answer)?;
        Ok(answer)
    }

    /// Whether there were more rows; those beyond the limit are dropped.
    fn cut(&mut self) -> bool {
        let rows: usize = self.batches.iter().map(RecordBatch::num_rows).sum();
        let mut beyond = rows.saturating_sub(ROWS_MAX);
        let is_cut = beyond > 0;
        while beyond > 0 {
            let Some(last) = self.batches.pop() else { break };
            if last.num_rows() > beyond {
                self.batches.push(last.slice(0, last.num_rows() - beyond));
            }
            beyond = beyond.saturating_sub(last.num_rows());
        }
        is_cut
    }
}

/// The first rows of the answer of a statement; of several statements, of the last one.
pub(super) fn rows(connection: &mut Connection, text: &str) -> Result<Columns, Failure> {
    let began = std::time::Instant::now();
    let statements = sql::parse(text)?;
    let Some((last, others)) = statements.split_last() else {
        return Err(Problem::new("there is no statement").hint("e.g. `SELECT * FROM tasks LIMIT 10`").into());
    };
    for statement in others {
        Gathered::of(connection, statement)?;
    }
    let mut answer = Gathered::of(connection, last)?;
    let is_cut = answer.cut();
    let mut columns = Columns::default();
    if let Some(schema) = &answer.schema {
        wire::rows(&mut columns, schema, &answer.batches)?;
    } else {
        columns.table("rows", 0).end();
    }
    columns.extra("complete", json!(!is_cut));
    columns.extra("milliseconds", json!(began.elapsed().as_secs_f64() * 1e3));
    columns.extra("notes", json!(connection.take_notes()));
    Ok(columns)
}

/// What the page begins with.
pub(super) fn info(connection: &mut Connection, model: &Model) -> Result<Value, Failure> {
    let rows = connection.collect(
        "SELECT run, tasks, makespan, format, (SELECT count(*) FROM tasks) AS all_tasks, \
           (SELECT coalesce(sum(count), 0) FROM import_stats WHERE severity = 'lost') AS lost, \
           (SELECT coalesce(sum(count), 0) FROM import_stats WHERE severity = 'repaired') AS repaired, \
           (SELECT count(*) FROM events WHERE time IS NOT NULL) AS events, \
           (SELECT count(*) FROM (SELECT 1 FROM links WHERE kind = 'dependency' LIMIT 1)) AS dependencies \
         FROM runs ORDER BY run_number",
        &Params::new(),
    )?;
    let rows = Rows::of(&rows)?;
    let reach_of_runs = model.reach_of_runs();
    let run = |row| {
        let run = rows.text(0, row).unwrap_or_default();
        let (start, finish) = reach_of_runs.get(run.as_str()).map(ends).unzip();
        json!({"run": run, "tasks": rows.text(1, row), "makespan": rows.text(2, row), "format": rows.text(3, row), "start": start, "finish": finish})
    };
    let runs: Vec<Value> = (0..rows.len).map(run).collect();
    let tasks = model.drawn_tasks();
    let counted = |column: usize| if rows.len == 0 { None } else { rows.integer(column, 0).filter(|count| *count > 0) };
    let left_out = counted(4).map(|all| all - tasks).filter(|left_out| *left_out > 0);
    let tick = match connection.session().tick() {
        Tick::Weight => json!({"weights": true}),
        Tick::Picosecond => json!({"seconds": 1e-12}),
        Tick::Nanosecond => json!({"seconds": 1e-9}),
    };
    let palette: Vec<Value> = hues().map(|(light, dark, dark_letters)| json!([light, dark, dark_letters])).collect();
    let names: Vec<&str> = connection.session().runs().iter().map(|run| run.name.as_str()).collect();
    let (start, finish) = model.reach.as_ref().map(ends).unzip();
    let aligned = model.aligned().as_ref().map(ends).map(|(start, finish)| json!({"start": start, "finish": finish}));
    Ok(json!({
        "title": names.join(", "), "runs": runs, "start": start, "finish": finish, "tick": tick,
        "aligned": aligned, "events": counted(7).map(|count| count.to_string()), "has_dependencies": counted(8).is_some(),
        "tasks": tasks.to_string(), "left_out": left_out.map(|count| count.to_string()), "lost": counted(5).map(|count| count.to_string()),
        "repaired": counted(6).map(|count| count.to_string()), "palette": palette, "version": env!("CARGO_PKG_VERSION"),
    }))
}

/// First and last instant as text.
fn ends((first, last): &(i64, i64)) -> (String, String) {
    (first.to_string(), last.to_string())
}

/// A task, and what it has to do with others.
pub(super) fn task(connection: &mut Connection, frame: Frame<'_>, task: i64) -> Result<Option<Value>, Failure> {
    let model = frame.model;
    const TASK: &str = "SELECT t.run, t.location, t.name, t.kind, t.role, t.start, t.finish, t.duration, t.args, t.parent, p.name AS parent_name \
        FROM tasks t LEFT JOIN tasks p ON p.task = t.parent WHERE t.task = $task";
    const CHILDREN: &str = "SELECT count(*) AS children FROM tasks WHERE parent = $task";
    const RANK: &str = "SELECT count(*) FILTER (WHERE t.duration > own.duration) + 1 AS place, count(*) AS of_all, CAST(median(t.duration) AS BIGINT) AS median_time \
        FROM tasks t JOIN (SELECT run, name, duration FROM tasks WHERE task = $task) own ON own.run = t.run AND own.name = t.name WHERE t.duration IS NOT NULL";
    let params: Params = vec![("task".to_owned(), ScalarValue::Int64(Some(task)))];
    let own = connection.collect(TASK, &params)?;
    let own = Rows::of(&own)?;
    if own.len == 0 {
        return Ok(None);
    }
    let children = connection.collect(CHILDREN, &params)?;
    let rank = connection.collect(RANK, &params)?;
    let (children, rank) = (Rows::of(&children)?, Rows::of(&rank)?);
    let (released_by, more_released_by) = links(connection, frame, &params, true)?;
    let (releases, more_releases) = links(connection, frame, &params, false)?;
    let lane = model.lane(own.text(0, 0).as_deref(), own.text(1, 0).unwrap_or_default().as_str());
    let start: Option<i64> = own.text(5, 0).and_then(|start| start.parse().ok());
    let row = lane.zip(start).and_then(|(lane, start)| model.row(lane, task, start));
    let shift = frame.shift_of(lane, None);
    let instant = |column: usize| own.integer(column, 0).map(|instant| instant.saturating_sub(shift).to_string());
    let args = own.text(8, 0).and_then(|args| serde_json::from_str(&args).ok()).map(with_all_digits);
    let more = |count: usize| (count > 0).then(|| count.to_string());
    let parent = own.text(9, 0).map(|parent| json!({"task": parent, "name": own.text(10, 0)}));
    Ok(Some(json!({
        "task": task.to_string(), "run": own.text(0, 0), "location": own.text(1, 0), "name": own.text(2, 0), "kind": own.text(3, 0),
        "role": own.text(4, 0), "start": instant(5), "finish": instant(6), "duration": own.text(7, 0), "args": args, "lane": lane,
        "row": row, "parent": parent, "children": children.text(0, 0),
        "rank": {"place": rank.text(0, 0), "of": rank.text(1, 0), "median": rank.text(2, 0)},
        "released_by": released_by, "more_released_by": more(more_released_by),
        "releases": releases, "more_releases": more(more_releases),
    })))
}

/// Numbers that JavaScript would round, as text.
fn with_all_digits(value: Value) -> Value {
    const EXACT: u64 = 1 << 53;
    match value {
        Value::Number(number)
            if number.as_u64().is_some_and(|whole| whole > EXACT)
                || number.as_i64().is_some_and(|whole| whole.unsigned_abs() > EXACT) =>
        {
            json!(number.to_string())
        }
        Value::Array(values) => values.into_iter().map(with_all_digits).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, with_all_digits(value))).collect(),
        value => value,
    }
}

/// The first links and messages of a task, and how many more there are.
fn links(
    connection: &mut Connection,
    frame: Frame<'_>,
    params: &Params,
    comes_in: bool,
) -> Result<(Vec<Value>, usize), Failure> {
    let model = frame.model;
    let (own, other) = if comes_in { ("target", "source") } else { ("source", "target") };
    let sql = format!(
        "SELECT t.task, t.name, l.kind, t.run, t.location, t.start, t.finish FROM ( \
           SELECT {other} AS task, kind FROM links WHERE {own} = $task \
           UNION ALL SELECT {other}_task, 'message' FROM messages WHERE {own}_task = $task) l \
         JOIN tasks t ON t.task = l.task ORDER BY t.start, t.task"
    );
    let answer = connection.collect(&sql, params)?;
    let rows = Rows::of(&answer)?;
    let link = |row: usize| {
        let lane = model.lane(rows.text(3, row).as_deref(), rows.text(4, row).unwrap_or_default().as_str());
        let number = |column| rows.text(column, row).and_then(|number| number.parse::<i64>().ok());
        let place = lane.zip(number(0)).zip(number(5)).and_then(|((lane, task), start)| model.row(lane, task, start));
        let shift = frame.shift_of(lane, None);
        let instant = |column| number(column).map(|instant| instant.saturating_sub(shift).to_string());
        json!({"task": rows.text(0, row), "name": rows.text(1, row), "kind": rows.text(2, row), "start": instant(5), "finish": instant(6),
            "lane": lane, "row": place})
    };
    Ok(((0..rows.len.min(LINKS_MAX)).map(link).collect(), rows.len.saturating_sub(LINKS_MAX)))
}

/// The tasks whose name matches.
pub(super) fn search(connection: &mut Connection, frame: Frame<'_>, pattern: &str) -> Result<Columns, Failure> {
    let model = frame.model;
    const TOTAL: &str = "SELECT count(*) AS tasks, CAST(coalesce(sum(duration), 0) AS VARCHAR) AS total_time FROM program_tasks WHERE regexp_like(name, $pattern) AND start IS NOT NULL";
    const HITS: &str = "SELECT task, run, location, start, finish, name FROM program_tasks WHERE regexp_like(name, $pattern) AND start IS NOT NULL ORDER BY start, task LIMIT 100000";
    let params: Params = vec![("pattern".to_owned(), ScalarValue::from(pattern))];
    let total = connection.collect(TOTAL, &params)?;
    let total = Rows::of(&total)?;
    let answer = connection.collect(HITS, &params)?;
    let rows = Rows::of(&answer)?;
    let spans = Spans::of(&rows, frame, &answer)?;
    let name_of: HashMap<&str, u32> =
        (0..).zip(&model.names).map(|(number, name)| (name.text.as_str(), number)).collect();
    let mut columns = Columns::default();
    let mut table = columns.table("hits", spans.lane.len());
    table.i64("task", (0..rows.len).map(|row| rows.integer(0, row).unwrap_or_default()));
    table.u32("lane", spans.lane.iter().copied());
    table.u16("row", spans.row.iter().copied());
    table.nullable("start", &spans.start);
    table.nullable("finish", &spans.finish);
    table.u32(
        "name",
        (0..rows.len).map(|row| rows.text(5, row).and_then(|name| name_of.get(name.as_str()).copied()).unwrap_or(NONE)),
    );
    table.end();
    columns.extra("count", json!(total.text(0, 0)));
    columns.extra("total_time", json!(total.text(1, 0)));
    columns.extra("complete", json!(total.integer(0, 0).is_none_or(|all| all <= HITS_MAX as i64)));
    Ok(columns)
}

/// The layers that have a name: title and SQL.
pub(super) const LAYERS: [(&str, &str, &str); 6] = [
    (
        "critical-path",
        "Critical path: the longest chain of dependent tasks",
        "SELECT t.run, t.location, t.start, t.finish, t.task, t.name AS label FROM critical_path() c JOIN tasks t ON t.task = c.task ORDER BY c.run, c.step",
    ),
    (
        "executed-path",
        "Executed path: what the end of the run waited for",
        "SELECT run, location, start, finish, task, cause AS label, wait AS value FROM executed_path((SELECT * FROM path_tasks), (SELECT * FROM path_links)) ORDER BY run, step",
    ),
    (
        "slack",
        "Slack: how much later each task could finish",
        "SELECT t.run, t.location, t.start, t.finish, t.task, s.slack AS value FROM slack() s JOIN tasks t ON t.task = s.task",
    ),
    (
        "readiness",
        "Readiness delay: how long tasks waited after all that they depend on had finished",
        "SELECT run, location, ready_time AS start, start AS finish, task, delay AS value FROM ready() WHERE delay > 0 ORDER BY delay DESC, task",
    ),
    (
        "events",
        "Events",
        "SELECT run, location, time AS start, time AS finish, task, name AS label FROM events WHERE time IS NOT NULL ORDER BY time, name",
    ),
    (
        "differences",
        "Difference: the mean time of a name against the other run",
        "WITH means AS (SELECT run, name, avg(duration) AS mean FROM program_tasks WHERE duration IS NOT NULL GROUP BY run, name) \
         SELECT t.run, t.location, t.start, t.finish, t.task, own.mean / other.mean AS value FROM program_tasks t \
         JOIN means own ON own.run = t.run AND own.name = t.name JOIN means other ON other.run <> t.run AND other.name = t.name \
         WHERE own.mean > 0 AND other.mean > 0 AND t.start IS NOT NULL AND (SELECT count(*) FROM runs) = 2 ORDER BY t.duration DESC, t.task",
    ),
];

/// Title and SQL of a layer.
pub(super) fn layer_of(name: &str) -> Option<(&'static str, &'static str)> {
    LAYERS.iter().find(|(known, ..)| *known == name).map(|(_, title, sql)| (*title, *sql))
}

/// The rows of any SELECT with `start`, `finish` and `location`, or `task`, as spans.
pub(super) fn layer(
    connection: &mut Connection,
    frame: Frame<'_>,
    title: &str,
    text: &str,
) -> Result<Columns, Failure> {
    let statement = |text: &str| -> Result<Statement, Failure> {
        let statements = sql::parse(text)?;
        match <[Statement; 1]>::try_from(statements) {
            Ok([statement]) => Ok(statement),
            Err(_) => Err(Problem::new("a layer is one SELECT").into()),
        }
    };
    let mut answer = Gathered::of(connection, &statement(text)?)?;
    let has = |answer: &Gathered, name: &str| {
        answer.schema.as_ref().is_some_and(|schema| schema.column_with_name(name).is_some())
    };
    let is_complete = |answer: &Gathered| ["start", "finish", "location"].iter().all(|name| has(answer, name));
    if !is_complete(&answer) && has(&answer, "task") {
        let inner = text.trim_end().trim_end_matches(';');
        let kept = ["value", "label"].iter().filter(|name| has(&answer, name)).map(|name| format!(", layer.{name}"));
        let joined = format!(
            "SELECT t.run, t.location, t.start, t.finish, t.task{} FROM (\n{inner}\n) AS layer JOIN tasks t ON t.task = layer.task",
            kept.collect::<String>()
        );
        answer = Gathered::of(connection, &statement(&joined)?)?;
    }
    if !is_complete(&answer) {
        return Err(Problem::new("a layer has columns `start`, `finish` and `location`, or a column `task`")
            .hint("e.g. `SELECT task FROM tasks WHERE duration > 1000000`")
            .into());
    }
    let is_cut = answer.cut();
    let mut spans = Spans::default();
    let (mut tasks, mut values, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for batch in &answer.batches {
        let rows = Rows::of(batch)?;
        let of_batch = Spans::of(&rows, frame, batch)?;
        let place = |name: &str| batch.schema().index_of(name).ok();
        let column = |name: &str, row: usize| place(name).and_then(|column| rows.text(column, row));
        tasks.extend((0..rows.len).map(|row| column("task", row).and_then(|task| task.parse::<i64>().ok())));
        labels.extend((0..rows.len).map(|row| column("label", row)));
        let numbers = place("value").map(|column| cast(batch.column(column), &DataType::Float64)).transpose()?;
        values.extend((0..rows.len).map(|row| {
            let numbers = numbers.as_ref()?.as_primitive::<Float64Type>();
            numbers.is_valid(row).then(|| numbers.value(row))
        }));
        spans.append(of_batch);
    }
    let mut columns = Columns::default();
    let mut table = columns.table("spans", spans.lane.len());
    table.u32("lane", spans.lane.iter().copied());
    table.u16("row", spans.row.iter().copied());
    table.nullable("start", &spans.start);
    table.nullable("finish", &spans.finish);
    table.nullable("task", &tasks);
    table.nullable_doubles("value", &values);
    table.texts("label", labels.iter().map(Option::as_deref));
    table.end();
    let adds_up = title.starts_with("Critical path") && frame.model.is_one_run();
    let total: i128 = spans
        .start
        .iter()
        .zip(&spans.finish)
        .filter_map(|(start, finish)| Some(i128::from((*finish)?) - i128::from((*start)?)))
        .sum();
    columns.extra("title", json!(title));
    // The times of other layers, or of several runs, add up to nothing that means something.
    if adds_up {
        columns.extra("total", json!(total.to_string()));
    }
    columns.extra("complete", json!(!is_cut));
    let value = answer.schema.as_ref().and_then(|schema| schema.field_with_name("value").ok());
    if let Some(meaning) = value.and_then(wire::meaning) {
        columns.extra("value_is", json!(meaning));
    }
    Ok(columns)
}

/// Where spans are drawn.
#[derive(Default)]
struct Spans {
    lane: Vec<u32>,
    row: Vec<u16>,
    start: Vec<Option<i64>>,
    finish: Vec<Option<i64>>,
}

impl Spans {
    fn of(rows: &Rows, frame: Frame<'_>, batch: &RecordBatch) -> Result<Spans, Failure> {
        let model = frame.model;
        let schema = batch.schema();
        let place = |name: &str| schema.index_of(name).ok();
        let mut spans = Spans::default();
        for row in 0..rows.len {
            let text = |name: &str| place(name).and_then(|column| rows.text(column, row));
            let number = |name: &str| place(name).and_then(|column| rows.integer(column, row));
            let lane = model.lane(text("run").as_deref(), text("location").unwrap_or_default().as_str());
            let (start, finish) = (number("start"), number("finish"));
            // A span of a task begins with it, or ends where it begins: it waited until then.
            let row_at = |at: Option<i64>| model.row(lane?, number("task")?, at?);
            let of_task = row_at(start).or_else(|| row_at(finish));
            spans.lane.push(lane.unwrap_or(NONE));
            spans.row.push(of_task.unwrap_or(ALL_ROWS));
            let shift = frame.shift_of(lane, text("run").as_deref());
            spans.start.push(start.map(|start| start.saturating_sub(shift)));
            spans.finish.push(finish.map(|finish| finish.saturating_sub(shift)));
        }
        Ok(spans)
    }

    fn append(&mut self, mut other: Spans) {
        self.lane.append(&mut other.lane);
        self.row.append(&mut other.row);
        self.start.append(&mut other.start);
        self.finish.append(&mut other.finish);
    }
}

/// All saved queries, those that fit the traces first.
pub(super) fn queries(connection: &mut Connection, library: &Library) -> Result<Value, Failure> {
    let mut all = Vec::new();
    for name in library.names() {
        // Sentences of reports are no panels, and a file that is none is no news here.
        let Ok(query) = library::find(library, name) else { continue };
        if query.header.topic == "facts" {
            continue;
        }
        let fits = connection.unmet(&query).is_ok_and(|unmet| unmet.is_empty());
        let chart = query.header.charts.first().map(|chart| chart.kind.clone());
        let tick = connection.session().tick();
        let params = query.header.params.iter().map(|param| {
            let default = param.default_text(tick);
            json!({"name": param.name, "type": param.param_type.name(), "default": default, "doc": param.description})
        });
        let params: Vec<Value> = params.collect();
        all.push((
            !fits,
            json!({"name": name, "title": query.title(), "topic": query.header.topic, "sql": query.statement.text, "fits": fits, "chart": chart, "params": params}),
        ));
    }
    all.sort_by_key(|(fits_not, _)| *fits_not);
    Ok(all.into_iter().map(|(_, query)| query).collect())
}

/// A saved query as a report shows it, with values for its parameters.
pub(super) fn saved(
    connection: &mut Connection,
    library: &Library,
    name: &str,
    given: &[(String, String)],
) -> Result<Value, Failure> {
    let query = library::find(library, name)?;
    connection.meets(&query)?;
    let section = report::section(connection, library, name, given)?;
    Ok(
        json!({"title": query.title(), "svg": section.pictures.first(), "pictures": section.pictures, "html": section.rows}),
    )
}

/// The words of SQL that the traces know.
pub(super) fn words(connection: &Connection) -> Value {
    let tables: Vec<Value> = TABLES
        .iter()
        .map(|table| json!({"name": table.name, "doc": table.description, "columns": table.columns.iter().map(|column| column.name).collect::<Vec<_>>()}))
        .chain(tq_engine::session::views().map(|(name, view)| {
            json!({"name": name, "doc": view.description, "columns": view.columns.iter().map(|(name, _)| *name).collect::<Vec<_>>()})
        }))
        .collect();
    let functions: Vec<Value> = functions::all(connection.session())
        .iter()
        .filter(|function| function.is_for_people())
        .map(|function| {
            let signature = function.syntax.lines().next().unwrap_or_default();
            json!({"name": function.name, "signature": signature, "doc": function.summary(), "relation": function.kind == Kind::Relation})
        })
        .collect();
    json!({"tables": tables, "functions": functions, "keywords": KEYWORDS.as_slice()})
}

const KEYWORDS: [&str; 34] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "QUALIFY",
    "LIMIT",
    "OFFSET",
    "JOIN",
    "LEFT JOIN",
    "ON",
    "USING",
    "AS",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS NULL",
    "IS NOT NULL",
    "BETWEEN",
    "LIKE",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "WITH",
    "UNION ALL",
    "DISTINCT",
    "OVER",
    "PARTITION BY",
    "FILTER",
    "DESC",
];

/// A small answer as text.
struct Rows {
    texts: Vec<datafusion::arrow::array::ArrayRef>,
    len: usize,
}

impl Rows {
    fn of(batch: &RecordBatch) -> Result<Rows, Failure> {
        let texts = batch.columns().iter().map(|column| match column.data_type() {
            DataType::Int64 => Ok(column.clone()),
            _ => cast(column, &DataType::Utf8),
        });
        Ok(Rows { texts: texts.collect::<Result<_, _>>()?, len: batch.num_rows() })
    }

    fn text(&self, column: usize, row: usize) -> Option<String> {
        let column = &self.texts[column];
        if column.is_null(row) {
            return None;
        }
        match column.as_primitive_opt::<Int64Type>() {
            Some(numbers) => Some(numbers.value(row).to_string()),
            None => Some(column.as_string::<i32>().value(row).to_owned()),
        }
    }

    fn integer(&self, column: usize, row: usize) -> Option<i64> {
        match self.texts[column].as_primitive_opt::<Int64Type>() {
            Some(numbers) => numbers.is_valid(row).then(|| numbers.value(row)),
            None => self.text(column, row).and_then(|text| text.parse().ok()),
        }
    }
}
