//! A session: the tables of the opened traces, our functions, and one entry point for SQL.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray,
};
use datafusion::arrow::datatypes::Int32Type;
use datafusion::catalog::{CatalogProvider, MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::ParamValues;
use datafusion::common::plan_err;
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::prelude::{SessionConfig, SessionContext};
use tq_udfs::arguments::{WITH_ARGUMENTS, looked_at};
use tq_udfs::bits::{BITS, over_frames};
use tq_udfs::bounded::Bounds;
use tq_udfs::centroids::within_centroids;
use tq_udfs::distinct_order::in_its_order;
use tq_udfs::domains::{WITH_DOMAINS, known_or_not};
use tq_udfs::exact_aggregates::{EXACT, exactly};
use tq_udfs::interval_trunc::of_intervals;
use tq_udfs::keeps_time::keeps_time;
use tq_udfs::parts::within_parts;
use tq_udfs::percentile::{PRECISE, precisely};
use tq_udfs::plain_results::plainly;
use tq_udfs::ranks::{RANKS, signed};
use tq_udfs::regular_expressions::{REGULAR, as_in_postgresql};
use tq_udfs::relation::RelationFunction;
use tq_udfs::rounded::{WIDER, to_places, wider};
use tq_udfs::shifts::{SHIFTS, shifted};
use tq_udfs::texts_beside_times::{BESIDE_TIMES, beside_times};
use tq_udfs::ticks::Tick;
use tq_udfs::time_slice::{SliceFrom, SliceTo};

use crate::error::ImportError;
use crate::memory::SessionPool;
use crate::open::{self, Opened};
use crate::options::OpenOptions;
use crate::sql::query::Query;
use crate::sql::relations::RelationFunctions;
use crate::sql::{self, SqlError, Statement};
use crate::store::{self, Beside, Segment, StoredTable};
use crate::tables::{
    ColumnType, DOCS, OF_PROGRAM, OF_WORKING, PROGRAM_TASKS, RUNS_SOMETHING, SPANS_WITHOUT_WAITS, TABLES, Table, VIEWS,
    ViewSpec, WORK_BY_NAME, WORK_WITHOUT_WAITS, WORKING_SPANS, WORKING_TASKS, tasks_in_slice,
};
use crate::trace::findings::{Finding, GROUPS};
use crate::trace::kinds::{has_idle_tasks, has_profiler_rows, has_work_beside, processes, span};
use crate::trace::temporary::SpillFolder;
use crate::trace::{Later, NamedRun, ROWS_PER_BATCH, Run, RunColumn, Slice, Stat, in_order, one_column};
use crate::view_schema::Main;
use crate::{figures, perfetto};

/// Tables, functions and SQL over the opened traces.
pub struct Session {
    context: SessionContext,
    tick: Tick,
    slice: Slice,
    notes: Vec<String>,
    runs: Vec<RunSummary>,
    bounds: Arc<Bounds>,
    pool: Arc<SessionPool>,
    /// Whether every statement must be a question.
    read_only: bool,
    /// What sessions of parts are made of, and the bytes of each run.
    kept: Vec<(NamedRun, usize)>,
    /// What the tables hold, reported to the pool as long as the session lives.
    _memory: Vec<MemoryReservation>,
}

/// What a session is built with beside its runs.
#[derive(Clone, Copy)]
struct Settings {
    threads: usize,
    max_value: usize,
    read_only: bool,
    keep_runs: bool,
}

/// Rows of all tables of a run.
fn rows_of(run: &Run) -> u64 {
    Table::ALL.into_iter().map(|table| run.rows(table)).sum()
}

/// What to report about a run after it was opened.
#[derive(Debug, Clone)]
pub struct RunSummary {
    /// Its name.
    pub name: String,
    /// The part of its name that tells it from the other runs of its trace; `None` where it is the only one.
    pub own_name: Option<String>,
    /// The format that was read.
    pub format: &'static str,
    /// The file.
    pub source: String,
    /// Rows by table.
    pub rows: Vec<(Table, u64)>,
    /// The rows of `import_stats`.
    pub stats: Vec<Stat>,
}

/// A function that an embedding program adds.
#[derive(Debug, Clone)]
pub enum Function {
    /// Of a row's values.
    Scalar(ScalarUDF),
    /// Of a group's.
    Aggregate(AggregateUDF),
    /// Of a window's.
    Window(WindowUDF),
    /// Of relations.
    Relation(Arc<dyn RelationFunction>),
}

impl Function {
    fn names(&self) -> Vec<&str> {
        let (name, aliases) = match self {
            Function::Scalar(function) => (function.name(), function.aliases()),
            Function::Aggregate(function) => (function.name(), function.aliases()),
            Function::Window(function) => (function.name(), function.aliases()),
            Function::Relation(function) => (function.name(), [].as_slice()),
        };
        aliases.iter().map(String::as_str).chain([name]).collect()
    }
}

impl From<ScalarUDF> for Function {
    fn from(function: ScalarUDF) -> Self {
        Function::Scalar(function)
    }
}

impl From<AggregateUDF> for Function {
    fn from(function: AggregateUDF) -> Self {
        Function::Aggregate(function)
    }
}

impl From<WindowUDF> for Function {
    fn from(function: WindowUDF) -> Self {
        Function::Window(function)
    }
}

impl From<Arc<dyn RelationFunction>> for Function {
    fn from(function: Arc<dyn RelationFunction>) -> Self {
        Function::Relation(function)
    }
}

impl Session {
    /// Reads the traces and registers their tables. Blocking: it parses on threads of its own.
    ///
    /// # Errors
    /// The first trace that cannot be read, with its place.
    pub fn open(options: &OpenOptions) -> std::result::Result<Session, ImportError> {
        Session::from_runs(Vec::new(), options)
    }

    /// As [`Session::open`], in a memory pool that other sessions have too, whose limit is that of all of them.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_within(pool: &Arc<SessionPool>, options: &OpenOptions) -> std::result::Result<Session, ImportError> {
        Session::of(Vec::new(), options, Arc::clone(pool))
    }

    /// As [`Session::open`], with runs that come from no file: made by [`RunBuilder::in_memory`](crate::trace::RunBuilder), or read
    /// by [`importers::import`](crate::importers::import()). They stand before those of the options' traces. Their identities become
    /// those of their place in the session, and their memory is asked from its pool.
    ///
    /// # Errors
    /// As [`Session::open`]; [`ImportError::Memory`] when the runs do not fit.
    pub fn from_runs(runs: Vec<NamedRun>, options: &OpenOptions) -> std::result::Result<Session, ImportError> {
        Session::of(runs, options, Arc::new(SessionPool::new(options.memory_limit)))
    }

    fn of(
        runs: Vec<NamedRun>,
        options: &OpenOptions,
        pool: Arc<SessionPool>,
    ) -> std::result::Result<Session, ImportError> {
        let limit = Arc::clone(&pool);
        let pool: Arc<dyn MemoryPool> = pool;
        let opened = open::open(runs, options, &pool)?;
        let settings = Settings {
            threads: options.threads,
            max_value: options.max_value,
            read_only: options.read_only,
            keep_runs: options.keep_runs,
        };
        Session::build(opened, pool, limit, settings).map_err(|error| ImportError::internal("session".as_ref(), error))
    }

    /// A session of what touches `slice`, from what was read already: as [`Session::open`] gives it with `from` and `to`. It
    /// shares the memory limit of this one, and has the functions of the engine alone. Where this session is of a slice, the other is
    /// of what both have.
    ///
    /// # Errors
    /// The session was opened without [`OpenOptions::keep_runs`]; the rows of the slice do not fit into memory beside all rows; a
    /// store cannot be read.
    pub fn cut(&self, slice: Slice) -> std::result::Result<Session, ImportError> {
        let internal = |error| ImportError::internal("session".as_ref(), error);
        let limit = Arc::clone(&self.pool);
        let pool: Arc<dyn MemoryPool> = Arc::clone(&self.pool) as Arc<dyn MemoryPool>;
        let slice =
            Slice { from: slice.from.max(self.slice.from), to: [slice.to, self.slice.to].into_iter().flatten().min() };
        if self.kept.is_empty() && !self.runs.is_empty() {
            return Err(internal(DataFusionError::Internal("the runs of the session were not kept".to_owned())));
        }
        let mut runs = Vec::with_capacity(self.kept.len());
        for (named, bytes) in &self.kept {
            let mut named = named.again();
            let before = rows_of(&named.run);
            open::cut(&mut named.run, slice, crate::trace::Deadline::after(None))?;
            // What is left of the run takes that part of its memory again.
            let share = rows_of(&named.run) as f64 / before.max(1) as f64;
            named.run.memory.try_grow((*bytes as f64 * share) as usize).map_err(|error| ImportError::Memory {
                path: named.run.source.clone(),
                what: error.strip_backtrace(),
            })?;
            runs.push(named);
        }
        let opened = Opened { runs, tick: self.tick, slice, notes: Vec::new() };
        let settings = Settings {
            threads: self.context.state().config_options().execution.target_partitions,
            max_value: self.bounds.max_value(),
            read_only: self.read_only,
            keep_runs: true,
        };
        Session::build(opened, pool, limit, settings).map_err(internal)
    }

    /// The length of a tick.
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// The time slice that was asked for; tasks that touch it are there whole.
    pub fn slice(&self) -> Slice {
        self.slice
    }

    /// Where a program may keep what it made of the tasks, and finds it when it opens the same again; `None` where the runs are not
    /// all in one store on disk, or not whole, or were not [kept](OpenOptions::keep_runs). `version` is that of what is kept.
    pub fn beside(&self, version: &str) -> Option<Beside> {
        let runs = self.kept.iter().map(|(named, _)| named);
        (self.slice == Slice::default()).then(|| Beside::of(runs, version))?
    }

    /// What the user should hear about the session as a whole, before the first query.
    pub fn opening_notes(&self) -> &[String] {
        &self.notes
    }

    /// The opened runs.
    pub fn runs(&self) -> &[RunSummary] {
        &self.runs
    }

    /// The engine's context, for embedders that register tables of their own.
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Every relation function: ours, and those that were registered.
    pub fn relation_functions(&self) -> Vec<Arc<dyn RelationFunction>> {
        RelationFunctions::of(&self.context).all()
    }

    /// The functions that plans alone name.
    #[cfg(feature = "cluster")]
    pub(crate) fn functions_of_plans(&self) -> Vec<Arc<ScalarUDF>> {
        sql::functions_of_plans(&self.bounds)
    }

    /// Adds a function, for queries that are planned from now on.
    ///
    /// # Errors
    /// Its name or an alias is taken: views and saved queries rely on the existing functions.
    pub fn register(&self, function: impl Into<Function>) -> Result<()> {
        let function = function.into();
        let state = self.context.state();
        let relations = RelationFunctions::of(&self.context);
        let is_taken = |name: &&str| {
            let of_values = state.scalar_functions().contains_key(*name)
                || state.aggregate_functions().contains_key(*name)
                || state.window_functions().contains_key(*name);
            of_values || state.table_functions().contains_key(*name) || relations.names().contains(name)
        };
        if let Some(name) = function.names().into_iter().find(is_taken) {
            return plan_err!("there is a function `{name}` already");
        }
        match function {
            Function::Scalar(function) => self.context.register_udf(function),
            Function::Aggregate(function) => self.context.register_udaf(function),
            Function::Window(function) => self.context.register_udwf(function),
            Function::Relation(function) => relations.add(function),
        }
        Ok(())
    }

    /// Plans one SQL statement, as [`Session::execute`] does.
    ///
    /// # Errors
    /// Syntax, unknown names, wrong types, or a text that is not exactly one statement.
    pub async fn sql(&self, text: &str) -> std::result::Result<Query, SqlError> {
        let mut statements = sql::parse(text)?;
        match (statements.pop(), statements.is_empty()) {
            (Some(statement), true) => self.execute(&statement, None).await,
            _ => Err(SqlError { message: "one statement is expected here".to_owned(), place: None, hint: None }),
        }
    }

    /// Plans a statement of [`sql::parse()`]: definitions take effect at once, a query is [started](Query::start) by the caller.
    /// Each query has its own notes and is cancelled separately, however many run at once. This is the entry point for all SQL:
    /// DataFusion's own skips the rewriting.
    ///
    /// # Errors
    /// Unknown names, wrong types, a placeholder without a value; with the place in the statement's text. In a read-only
    /// session, also any statement that is not a question.
    pub async fn execute(
        &self,
        statement: &Statement,
        params: Option<ParamValues>,
    ) -> std::result::Result<Query, SqlError> {
        if self.read_only && !statement.only_asks {
            let mut statement = statement.clone();
            statement.only_asks = true;
            return sql::execute(&self.context, &statement, params).await;
        }
        sql::execute(&self.context, statement, params).await
    }

    /// Words an error of DataFusion about a statement, as [`Rows`](crate::sql::query::Rows) do theirs.
    pub fn error(&self, error: &DataFusionError, statement: &Statement) -> SqlError {
        SqlError::new(error, statement, &self.context)
    }

    /// Bytes for tables and queries.
    pub fn memory_limit(&self) -> usize {
        self.pool.limit()
    }

    /// Bytes that a text or a list that a scalar function makes may have.
    pub fn max_value(&self) -> usize {
        self.bounds.max_value()
    }

    /// Changes, from now on, how many bytes a value that a scalar function makes may have.
    pub fn set_max_value(&self, bytes: usize) {
        self.bounds.set_max_value(bytes);
    }

    /// Changes, from now on, how many bytes tables and queries may take. What they already hold is kept: a lower limit only
    /// refuses more.
    pub fn set_memory_limit(&self, bytes: usize) {
        self.pool.set_limit(bytes);
        let state = self.context.state_ref();
        let mut state = state.write();
        let options = state.config_mut().options_mut();
        options.execution.sort_spill_reservation_bytes = merge_reserve(bytes, options.execution.target_partitions);
    }

    fn build(
        mut opened: Opened,
        pool: Arc<dyn MemoryPool>,
        limit: Arc<SessionPool>,
        Settings { threads, max_value, read_only, keep_runs }: Settings,
    ) -> Result<Session> {
        if opened.runs.iter().any(|named| named.run.stored.is_some()) {
            // The tables of such a session do not fill them in.
            opened.runs.iter_mut().try_for_each(|named| named.run.fill_in_identities())?;
        }
        let bounds = Arc::new(Bounds::new(max_value, Arc::clone(&pool)));
        let pool_of_arguments = Arc::clone(&pool);
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool);
        let runtime = runtime.with_disk_manager_builder(SpillFolder::manager()).build_arc()?;
        let mut config = SessionConfig::new()
            .with_information_schema(true)
            .with_target_partitions(threads)
            .with_batch_size(ROWS_PER_BATCH)
            .with_default_catalog_and_schema("tq", "main");
        let execution = &mut config.options_mut().execution;
        execution.skip_partial_aggregation_probe_rows_threshold = ROWS_OF_PROBE;
        execution.sort_spill_reservation_bytes = merge_reserve(limit.limit(), threads);
        let builder = SessionStateBuilder::new().with_default_features().with_config(config).with_runtime_env(runtime);
        let mut context = SessionContext::new_with_state(
            sql::configure(builder)
                .with_analyzer_rule(Arc::new(sql::WithinBounds::new(&bounds)))
                .with_analyzer_rule(Arc::new(sql::ComputedOnce))
                .build(),
        );
        register_functions(&mut context, opened.tick)?;
        sql::bind(&mut context, &bounds)?;
        context.register_udf(ScalarUDF::from(SliceFrom::new(opened.slice.from)));
        context.register_udf(ScalarUDF::from(SliceTo::new(opened.slice.to)));
        let catalog =
            context.catalog("tq").ok_or_else(|| DataFusionError::Internal("no default catalog".to_owned()))?;
        let own = catalog.schema("main").ok_or_else(|| DataFusionError::Internal("no default schema".to_owned()))?;
        let runs = opened.runs.iter().map(summary).collect();
        let tables: Arc<dyn SchemaProvider> = Arc::new(MemorySchemaProvider::new());
        register_tables(&[own.as_ref(), tables.as_ref()], &opened, threads)?;
        register_documentation(catalog.as_ref(), opened.tick)?;
        let arguments = arguments_of(&opened, &pool_of_arguments);
        let main = Arc::new(Main::new(own, &views_of(&opened)));
        perfetto::register(&mut context, catalog.as_ref(), Arc::clone(&main) as _, arguments, opened.tick)?;
        figures::register(&context, catalog.as_ref())?;
        main.begin(context.state(), tables, catalog.as_ref())?;
        let memory: Vec<MemoryReservation> = opened.runs.iter_mut().map(|named| named.run.memory.take()).collect();
        let again = |(named, memory): (&NamedRun, &MemoryReservation)| (named.again(), memory.size());
        let kept = if keep_runs { opened.runs.iter().zip(&memory).map(again).collect() } else { Vec::new() };
        // Dropping thousands of small runs takes a while, and nothing needs to wait for it.
        std::thread::spawn(move || drop(opened.runs));
        Ok(Session {
            context,
            tick: opened.tick,
            slice: opened.slice,
            notes: opened.notes,
            runs,
            bounds,
            pool: limit,
            read_only,
            kept,
            _memory: memory,
        })
    }
}

/// Our views with their queries, over these runs.
fn views_of(opened: &Opened) -> Vec<(&'static str, String)> {
    let has_profiler_rows = opened.runs.iter().any(|named| has_profiler_rows(&named.run));
    let has_work_beside = opened.runs.iter().any(|named| has_work_beside(&named.run));
    let has_idle_tasks = opened.runs.iter().any(|named| has_idle_tasks(&named.run));
    let also_working = OF_WORKING.replacen(" WHERE", " AND", 1);
    let query = |view: &ViewSpec| {
        let whole = match view.name {
            WORKING_TASKS if !has_idle_tasks => view.sql.replacen(RUNS_SOMETHING, "", 1),
            WORKING_SPANS if !has_idle_tasks => SPANS_WITHOUT_WAITS.to_owned(),
            WORK_BY_NAME if !has_idle_tasks => WORK_WITHOUT_WAITS.to_owned(),
            _ => view.sql.to_owned(),
        };
        // Where there is nothing to leave out, a view that leaves it out is the table: nothing is compared.
        let without = |end: &str, is_there: bool| whole.strip_suffix(end).filter(|_| !is_there);
        let sql = without(OF_PROGRAM, has_profiler_rows)
            .or_else(|| without(OF_WORKING, has_work_beside))
            .or_else(|| without(&also_working, has_work_beside))
            .unwrap_or(&whole);
        match view.name == PROGRAM_TASKS && !opened.slice.is_whole() {
            true => sql.replacen("FROM tasks", &format!("FROM ({})", tasks_in_slice()), 1),
            false => sql.to_owned(),
        }
    };
    VIEWS.iter().map(|view| (view.name, query(view))).collect()
}

/// So many rows tell whether nearly each is a group of its own, which makes it futile to group those of a partition by
/// themselves first. With DataFusion's 100 000, most tables are read before anyone knows.
const ROWS_OF_PROBE: usize = 2 * ROWS_PER_BATCH;

/// Bytes that a sort keeps free for merging what it spilled. DataFusion takes 10 MB for each thread of each sort, which a small limit
/// does not have: a query of a few rows would be refused.
fn merge_reserve(limit: usize, threads: usize) -> usize {
    (limit / (16 * threads.max(1))).min(10 * 1024 * 1024)
}

/// Functions of DataFusion that make dictionaries of numbers of texts in dictionaries, and unsigned numbers of lists.
const PLAIN: [&str; 11] = [
    "character_length",
    "octet_length",
    "bit_length",
    "ascii",
    "array_length",
    "array_ndims",
    "array_dims",
    "array_position",
    "array_positions",
    "cardinality",
    "json_length",
];

/// Aggregates of DataFusion that make a time of times.
const KEEP_TIME: [&str; 9] = [
    "min",
    "max",
    "avg",
    "median",
    "stddev",
    "stddev_pop",
    "approx_median",
    "approx_percentile_cont",
    "percentile_cont",
];

/// Registers every function of ours, for sessions of this tick. [`Session::open`] has done so; this is for contexts without
/// traces.
///
/// # Errors
/// None in practice: DataFusion's registries take any name.
pub fn register_functions(context: &mut SessionContext, tick: Tick) -> Result<()> {
    datafusion_functions_json::register_all(context)?;
    for function in tq_udfs::scalar_functions(tick) {
        context.register_udf(function)?;
    }
    let datafusions_sum = context.udaf("sum")?;
    for function in tq_udfs::aggregate_functions(datafusions_sum) {
        context.register_udaf(function)?;
    }
    for name in EXACT {
        context.register_udaf(Arc::new(exactly(context.udaf(name)?)))?;
    }
    for name in PRECISE {
        context.register_udaf(Arc::new(precisely(context.udaf(name)?)))?;
    }
    for (name, without) in [("approx_percentile_cont", 2), ("approx_percentile_cont_with_weight", 3)] {
        let function = within_centroids(context.udaf(name)?, without);
        context.register_udaf(Arc::new(function))?;
    }
    for name in KEEP_TIME {
        let function = keeps_time(context.udaf(name)?);
        context.register_udaf(Arc::new(function))?;
    }
    for name in ["array_agg", "string_agg"] {
        let function = in_its_order(context.udaf(name)?);
        context.register_udaf(Arc::new(function))?;
    }
    for name in ["struct", "named_struct", "map", "arrays_zip"] {
        let function = within_parts(context.udf(name)?);
        context.register_udf(Arc::new(function))?;
    }
    for name in WITH_ARGUMENTS {
        let function = looked_at(context.udf(name)?);
        context.register_udf(Arc::new(function))?;
    }
    for name in BESIDE_TIMES {
        let function = beside_times(context.udf(name)?);
        context.register_udf(Arc::new(function))?;
    }
    let date_trunc = of_intervals(context.udf("date_trunc")?);
    context.register_udf(Arc::new(date_trunc))?;
    let round = to_places(context.udf("round")?);
    context.register_udf(Arc::new(round))?;
    for name in REGULAR {
        let function = as_in_postgresql(context.udf(name)?);
        context.register_udf(Arc::new(function))?;
    }
    for name in WIDER {
        let function = wider(context.udf(name)?);
        context.register_udf(Arc::new(function))?;
    }
    for name in PLAIN {
        let function = plainly(context.udf(name)?);
        context.register_udf(Arc::new(function))?;
    }
    for name in WITH_DOMAINS {
        let function = known_or_not(context.udf(name)?);
        context.register_udf(Arc::new(function))?;
    }
    for name in BITS {
        let function = over_frames(context.udaf(name)?);
        context.register_udaf(Arc::new(function))?;
    }
    for name in SHIFTS {
        let function = shifted(context.udwf(name)?);
        context.register_udwf(Arc::new(function))?;
    }
    for name in RANKS {
        let function = signed(context.udwf(name)?);
        context.register_udwf(Arc::new(function))?;
    }
    for function in tq_udfs::window_functions() {
        context.register_udwf(function)?;
    }
    Ok(())
}

/// The tasks of all runs in the order of their ids, for [`perfetto`]; those in a store are read when they are asked for first.
fn arguments_of(opened: &Opened, pool: &Arc<dyn MemoryPool>) -> perfetto::LoadTasks {
    let mut parts = Vec::new();
    for named in &opened.runs {
        let batches = named.run.tables.get(&Table::Tasks).cloned().unwrap_or_default();
        parts.push((batches, store::tasks_of(&named.run)));
    }
    let memory = MemoryConsumer::new("arguments of tasks").register(pool);
    Box::new(move || {
        let mut tasks = Vec::new();
        for (batches, stored) in parts {
            tasks.extend(batches);
            let read = store::arguments(&stored).map_err(|error| DataFusionError::External(Box::new(error)))?;
            for batch in read {
                memory.try_grow(batch.get_array_memory_size())?;
                tasks.push(batch);
            }
        }
        Ok((tasks, memory))
    })
}

pub(crate) fn summary(named: &NamedRun) -> RunSummary {
    let rows = Table::ALL.map(|table| (table, named.run.rows(table)));
    RunSummary {
        name: named.name.clone(),
        own_name: named.run.info.own_name.clone(),
        format: named.format,
        source: named.run.source.display().to_string(),
        rows: rows.into_iter().filter(|(_, rows)| *rows > 0).collect(),
        stats: named.run.stats.clone(),
    }
}

/// Registers the tables of the runs in each of these schemas.
fn register_tables(schemas: &[&dyn SchemaProvider], opened: &Opened, threads: usize) -> Result<()> {
    let made = in_order(Table::ALL.to_vec(), threads, |table| match table {
        Table::Runs => runs_batch(opened).map(|batch| vec![(batch, None)]),
        Table::ImportStats => stats_batch(opened).map(|batch| vec![(batch, None)]),
        _ => batches_of(table, &opened.runs),
    });
    let has_stored = opened.runs.iter().any(|named| named.run.stored.is_some());
    for (table, batches) in Table::ALL.into_iter().zip(made) {
        let provider: Arc<dyn TableProvider> = if has_stored && !matches!(table, Table::Runs | Table::ImportStats) {
            Arc::new(StoredTable::new(table, segments_of(table, &opened.runs)?))
        } else {
            let (batches, firsts): (Vec<RecordBatch>, Vec<Option<i64>>) = batches?.into_iter().unzip();
            let shares = partitions(&batches, threads);
            match firsts.iter().any(Option::is_some) {
                true => Arc::new(Later::try_new(table.schema(), shares, &firsts)?),
                false => Arc::new(MemTable::try_new(table.schema(), shares)?),
            }
        };
        for schema in schemas {
            schema.register_table(table.name().to_owned(), Arc::clone(&provider))?;
        }
    }
    Ok(())
}

/// The rows of a table over all runs, where some are in a store.
fn segments_of(table: Table, runs: &[NamedRun]) -> Result<Vec<Segment>> {
    let mut all = Vec::new();
    let mut rest = runs;
    while let Some(first) = rest.first() {
        if let Some(stored) = store::segments(first, table) {
            all.extend(stored);
            rest = &rest[1..];
            continue;
        }
        let in_memory = rest.iter().take_while(|named| named.run.stored.is_none()).count();
        let (now, later) = rest.split_at(in_memory);
        rest = later;
        let batches: Vec<RecordBatch> = batches_of(table, now)?.into_iter().map(|(batch, _)| batch).collect();
        all.extend((!batches.is_empty()).then_some(Segment::Rows(batches)));
    }
    Ok(all)
}

/// The batches of a table over all runs, each with the identity of its first row where identities are filled in later. Runs
/// of few rows share a batch: thousands of executions of a study are read as a few batches.
fn batches_of(table: Table, runs: &[NamedRun]) -> Result<Vec<(RecordBatch, Option<i64>)>> {
    let rows = |named: &NamedRun| -> usize {
        named.run.tables.get(&table).map_or(0, |batches| batches.iter().map(RecordBatch::num_rows).sum())
    };
    let mut batches = Vec::new();
    let mut rest = runs;
    while let Some(first) = rest.first() {
        let mut together = 0;
        let few = rest.iter().take_while(|&named| {
            together += rows(named);
            rows(named) <= FEW_ROWS && together <= ROWS_PER_BATCH
        });
        let (now, later) = rest.split_at(few.count().max(1));
        rest = later;
        if now.len() > 1 {
            batches.extend(one_batch(table, now)?.map(|batch| (batch, None)));
            continue;
        }
        let run = RunColumn::new(&first.name);
        let mut identity = (table == Table::Messages).then(|| first.run.first_later_identity()).flatten();
        for batch in first.run.tables.get(&table).into_iter().flatten() {
            batches.push((run.before(batch, &table.schema())?, identity));
            identity = identity.map(|identity| identity + batch.num_rows() as i64);
        }
    }
    Ok(batches)
}

/// Contiguous shares of the batches, one per thread, so that each partition keeps the order of the trace.
fn partitions(batches: &[RecordBatch], threads: usize) -> Vec<Vec<RecordBatch>> {
    let share = batches.len().div_ceil(threads).max(1);
    let mut shares: Vec<Vec<RecordBatch>> = batches.chunks(share).map(<[RecordBatch]>::to_vec).collect();
    if shares.is_empty() {
        shares.push(Vec::new());
    }
    shares
}

/// A run with at most so many rows in a table shares its batch with others of that kind.
const FEW_ROWS: usize = 512;

/// The rows of several runs as one batch, in which `run` has a word for each; `None` when there are none.
fn one_batch(table: Table, runs: &[NamedRun]) -> Result<Option<RecordBatch>> {
    let mut keys = Vec::new();
    let mut batches = Vec::new();
    for (key, named) in (0i32..).zip(runs) {
        for batch in named.run.tables.get(&table).into_iter().flatten() {
            keys.extend(std::iter::repeat_n(key, batch.num_rows()));
            batches.push(batch);
        }
    }
    let Some(first) = batches.first() else { return Ok(None) };
    let names = StringArray::from_iter_values(runs.iter().map(|named| named.name.as_str()));
    let mut columns: Vec<ArrayRef> =
        vec![Arc::new(DictionaryArray::<Int32Type>::try_new(keys.into(), Arc::new(names))?)];
    for column in 0..first.num_columns() {
        columns.push(one_column(&batches.iter().map(|batch| batch.column(column).as_ref()).collect::<Vec<_>>())?);
    }
    Ok(Some(RecordBatch::try_new(table.schema(), columns)?))
}

fn runs_batch(opened: &Opened) -> Result<RecordBatch> {
    let runs = &opened.runs;
    let texts = |value: &dyn Fn(&NamedRun) -> Option<String>| {
        Arc::new(runs.iter().map(value).collect::<StringArray>()) as ArrayRef
    };
    let integers =
        |value: &dyn Fn(&NamedRun) -> Option<i64>| Arc::new(runs.iter().map(value).collect::<Int64Array>()) as ArrayRef;
    let count = |run: &Run, table| run.rows(table) as i64;
    let columns: Vec<ArrayRef> = vec![
        texts(&|named| Some(named.name.clone())),
        integers(&|named| Some(named.run.run_number)),
        texts(&|named| Some(named.format.to_owned())),
        texts(&|named| Some(named.run.source.display().to_string())),
        texts(&|named| named.run.info.program.clone()),
        Arc::new(
            TimestampNanosecondArray::from_iter(runs.iter().map(|named| named.run.info.started_at))
                .with_timezone("UTC"),
        ),
        texts(&|named| Some(named.run.info.time_unit.to_owned())),
        integers(&|named| named.run.info.origin),
        integers(&|named| makespan(&named.run, opened.slice)),
        integers(&|named| Some(count(&named.run, Table::Tasks))),
        integers(&|named| Some(count(&named.run, Table::Locations))),
        integers(&|named| processes(&named.run)),
        integers(&|named| named.run.info.cores),
        texts(&|named| named.run.info.argument.clone()),
        Arc::new(runs.iter().map(|named| named.run.info.problem_size).collect::<Float64Array>()),
        integers(&|named| named.run.info.size_order),
        integers(&|named| named.run.info.repetition),
        texts(&|named| {
            let args = &named.run.info.args;
            // A map of JSON values always has a text.
            (!args.is_empty()).then(|| serde_json::to_string(args).unwrap_or_default())
        }),
        texts(&|named| named.run.info.study.clone()),
    ];
    typed(Table::Runs, columns)
}

/// Last finish minus first start of what the program did in the slice.
fn makespan(run: &Run, slice: Slice) -> Option<i64> {
    let (first, last) = span(run)?;
    slice.to.map_or(last, |to| to.min(last)).checked_sub(slice.from.map_or(first, |from| from.max(first)))
}

fn stats_batch(opened: &Opened) -> Result<RecordBatch> {
    let rows: Vec<(&NamedRun, &Stat)> =
        opened.runs.iter().flat_map(|named| named.run.stats.iter().map(move |stat| (named, stat))).collect();
    let texts = |value: &dyn Fn(&NamedRun, &Stat) -> String| {
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(named, stat)| value(named, stat)))) as ArrayRef
    };
    typed(
        Table::ImportStats,
        vec![
            texts(&|named, _| named.name.clone()),
            texts(&|named, _| named.run.source.display().to_string()),
            texts(&|_, stat| stat.finding.what.to_owned()),
            texts(&|_, stat| stat.finding.severity.to_string()),
            texts(&|_, stat| stat.finding.stage.to_string()),
            Arc::new(Int64Array::from_iter_values(
                rows.iter().map(|(_, stat)| i64::try_from(stat.count).unwrap_or(i64::MAX)),
            )),
            texts(&|_, stat| stat.example.clone()),
        ],
    )
}

/// A batch of plain arrays in the types of the table: text becomes dictionaries where it should.
fn typed(table: Table, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    let schema = table.schema();
    let columns = schema
        .fields()
        .iter()
        .zip(columns)
        .map(|(field, column)| datafusion::arrow::compute::cast(&column, field.data_type()))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(schema, columns)?)
}

/// The views of every session under the names by which they are asked: those of `main`, and those that saved queries share. The schema
/// `perfetto` has a documentation of its own.
pub fn views() -> impl Iterator<Item = (String, &'static ViewSpec)> {
    VIEWS.iter().map(|view| (view.name.to_owned(), view)).chain(figures::views())
}

/// `tables`, `columns`, `findings` and `settings` in the schema `docs`: the documentation, to be queried like anything else.
fn register_documentation(catalog: &dyn CatalogProvider, tick: Tick) -> Result<()> {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let strings = |values: Vec<&str>| Arc::new(StringArray::from(values)) as ArrayRef;
    let views: Vec<(String, &ViewSpec)> = views().collect();
    let described = TABLES
        .iter()
        .map(|spec| (spec.name, "table", spec.description))
        .chain(views.iter().map(|(name, view)| (name.as_str(), "view", view.description)));
    let (names, (kinds, descriptions)): (Vec<_>, (Vec<_>, Vec<_>)) =
        described.map(|(name, kind, description)| (name, (kind, description))).unzip();
    let tables = RecordBatch::try_new(
        Arc::new(Schema::new(vec![text("name"), text("kind"), text("description")])),
        vec![strings(names), strings(kinds), strings(descriptions)],
    )?;
    let of_tables = TABLES.iter().flat_map(|spec| {
        spec.columns.iter().map(|column| {
            let unit = if column.column_type == ColumnType::Time { "ticks" } else { "" };
            [spec.name, column.name, column.column_type.sql_name(), unit, column.description]
        })
    });
    let of_views = (views.iter())
        .flat_map(|(view, spec)| spec.columns.iter().map(|(name, description)| [view, *name, "", "", *description]));
    let of_words = GROUPS.iter().flat_map(|group| {
        let row = |finding: &'static Finding| {
            [finding.what, finding.severity.word(), finding.stage.word(), group.formats, finding.meaning()]
        };
        group.findings.iter().map(row)
    });
    let batch = |names: [&str; 5], rows: Vec<[&str; 5]>| {
        let cells = |index: usize| strings(rows.iter().map(|row| row[index]).collect());
        RecordBatch::try_new(Arc::new(Schema::new(names.map(text).to_vec())), (0..5).map(cells).collect())
    };
    let columns = batch(["table_name", "name", "type", "unit", "description"], of_tables.chain(of_views).collect())?;
    let findings = batch(["what", "severity", "stage", "formats", "meaning"], of_words.collect())?;
    let settings = RecordBatch::try_new(
        Arc::new(Schema::new(["name", "value", "description"].map(text).to_vec())),
        [sql::settings::TIME_UNIT, tick.symbol(), "The length of a tick, the unit of every time: ns or ps."]
            .map(|value| strings(vec![value]))
            .to_vec(),
    )?;
    let schema = MemorySchemaProvider::new();
    for (name, batch) in [("tables", tables), ("columns", columns), ("findings", findings), ("settings", settings)] {
        schema.register_table(name.to_owned(), Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?))?;
    }
    catalog.register_schema(DOCS, Arc::new(schema))?;
    Ok(())
}
