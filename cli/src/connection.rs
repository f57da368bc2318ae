//! A connection: a session, the runtime on which its queries run, and the only path from statements to rows.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryConsumer;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Sender, WeakSender};
use tq_engine::queries::{Library, Need, SavedQuery};
use tq_engine::session::Session;
use tq_engine::sql::stop::Stop;
use tq_engine::sql::{self, SqlError, Statement};
use tq_engine::trace::Slice;

use crate::args::OpenArgs;
use crate::errors::queries::unmet;
use crate::errors::{self, Failure, Problem};
use crate::output::{Output, Preparation};
use crate::progress::Running;
use crate::runtime::QueryRuntime;
use crate::workers::{self, Workers};
use crate::{open, statements, terminal};

/// Values of `$name`.
pub(crate) type Params = Vec<(String, ScalarValue)>;

/// A session with its queries.
pub(crate) struct Connection {
    session: Arc<Session>,
    /// Who helps; those of our own end with the last connection.
    workers: Option<Arc<Workers>>,
    runtime: QueryRuntime,
    /// Notes that were told, where one is told once only.
    told: Option<HashSet<String>>,
    /// Notes that are collected instead of printed on the terminal.
    kept: Option<Vec<String>>,
    running: Running,
}

/// What travels from the query to the terminal.
enum Part {
    Schema(SchemaRef),
    Rows(RecordBatch),
}

impl Connection {
    /// Opens the traces of a command line.
    pub(crate) fn open(args: &OpenArgs) -> Result<Connection, Failure> {
        let workers = workers::of_traces(args)?;
        let session = Arc::new(open::open(workers.as_ref().map_or(args, |(_, seen)| seen))?);
        if let Some((workers, seen)) = &workers {
            workers.help(&session, seen)?;
        }
        let workers = workers.map(|(workers, _)| workers);
        let runtime = QueryRuntime::new(open::threads(args))?;
        Ok(Connection { session, workers, runtime, told: None, kept: None, running: Running::default() })
    }

    /// Another connection to the same session, of whose notes the terminal hears nothing.
    pub(crate) fn beside(&self) -> Result<Connection, Failure> {
        let (session, runtime) = (Arc::clone(&self.session), self.runtime.like()?);
        let workers = self.workers.clone();
        Ok(Connection { session, workers, runtime, told: None, kept: Some(Vec::new()), running: Running::default() })
    }

    /// A connection to what touches a slice, of a session that keeps its runs; the terminal hears nothing of its notes.
    pub(crate) fn cut(&self, slice: Slice) -> Result<Connection, Failure> {
        let session = self.session.cut(slice).map_err(|error| errors::import::word(&error, &[]))?;
        let (session, runtime) = (Arc::new(session), self.runtime.like()?);
        Ok(Connection {
            session,
            workers: None,
            runtime,
            told: None,
            kept: Some(Vec::new()),
            running: Running::default(),
        })
    }

    /// A connection to a session that another program has opened; the terminal hears nothing of its notes.
    pub(crate) fn to(
        session: &Arc<Session>,
        workers: Option<&Arc<Workers>>,
        threads: usize,
    ) -> Result<Connection, Failure> {
        Ok(Connection {
            session: Arc::clone(session),
            workers: workers.cloned(),
            runtime: QueryRuntime::new(threads)?,
            told: None,
            kept: Some(Vec::new()),
            running: Running::default(),
        })
    }

    /// From now on a query also ends when `abandoned` is notified: nobody waits for its answer any more.
    pub(crate) fn until(&mut self, abandoned: Arc<Notify>) {
        self.runtime.until(abandoned);
    }

    /// The runtime, for what is no query.
    pub(crate) fn runtime(&mut self) -> &mut QueryRuntime {
        &mut self.runtime
    }

    /// Without traces: functions and empty tables.
    pub(crate) fn empty() -> Result<Connection, Failure> {
        let session = Arc::new(open::empty()?);
        let runtime = QueryRuntime::new(1)?;
        Ok(Connection { session, workers: None, runtime, told: None, kept: None, running: Running::default() })
    }

    /// From now on a note is printed once, however many queries have it: for pages with many queries.
    pub(crate) fn tell_notes_once(&mut self) {
        self.told.get_or_insert_default();
    }

    /// The notes since the last time, of a connection that keeps them.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        self.kept.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The addresses of the workers that help.
    pub(crate) fn workers(&self) -> Vec<String> {
        self.workers.as_ref().map(|workers| workers.addresses()).unwrap_or_default()
    }

    /// Who of the workers would not help, and why.
    pub(crate) fn no_help_of_workers(&self) -> Vec<String> {
        self.workers.as_ref().map(|workers| workers.no_help()).unwrap_or_default()
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// The plan of the query that runs, to look at while it does.
    pub(crate) fn running(&self) -> &Running {
        &self.running
    }

    /// Waits; Ctrl-C ends it.
    pub(crate) fn wait(&mut self, duration: Duration) -> Result<(), Failure> {
        // A timer is made on the runtime that it belongs to.
        self.runtime.stream(|_: Sender<()>| async move { tokio::time::sleep(duration).await }, |()| Ok(()))
    }

    /// Runs one statement and writes its rows. A statement without a result (`CREATE VIEW`, `SET`) writes nothing.
    pub(crate) fn run(
        &mut self,
        statement: &Statement,
        params: &Params,
        output: &mut dyn Output,
    ) -> Result<(), Failure> {
        let Preparation { arrange, beside } = output.preparation();
        let mut queries: &[&str] = &[];
        let mut begun = false;
        let mut expected = None;
        self.stream(statement, params, arrange, &mut |part| match part {
            Part::Schema(schema) => {
                queries = beside(&schema);
                expected = (!schema.fields().is_empty()).then_some(schema);
                Ok(())
            }
            Part::Rows(batch) => {
                // What fails before its first rows writes nothing, not even a header.
                if let Some(schema) = expected.take() {
                    begun = true;
                    output.begin(&schema)?;
                }
                if begun { output.rows(&batch) } else { Ok(()) }
            }
        })?;
        if let Some(schema) = expected {
            begun = true;
            output.begin(&schema)?;
        }
        if !begun {
            return Ok(());
        }
        for query in queries {
            for statement in sql::parse(query)? {
                self.stream(&statement, &Params::new(), Ok, &mut |part| match part {
                    Part::Schema(_) => Ok(()),
                    Part::Rows(batch) => output.rows(&batch),
                })?;
            }
        }
        output.end()
    }

    /// The answer of a statement of ours in one batch: for sections of a report, lists of names, small things.
    pub(crate) fn collect(&mut self, sql: &str, params: &Params) -> Result<RecordBatch, Failure> {
        let statements = sql::parse(sql)?;
        let [statement] = statements.as_slice() else {
            return Err(Problem::internal("one statement is expected").into());
        };
        self.answer(statement, params)
    }

    /// The answer of a statement in one batch.
    pub(crate) fn answer(&mut self, statement: &Statement, params: &Params) -> Result<RecordBatch, Failure> {
        let mut schema: SchemaRef = Arc::new(Schema::empty());
        let mut batches = Vec::new();
        let session = Arc::clone(&self.session);
        let pool = &session.context().runtime_env().memory_pool;
        let memory = MemoryConsumer::new("an answer that is kept").register(pool);
        self.stream(statement, params, Ok, &mut |part| {
            match part {
                Part::Schema(answer) => schema = answer,
                Part::Rows(batch) => {
                    // The batches, and the one that they become.
                    let asked = memory.try_grow(batch.get_array_memory_size().saturating_mul(2));
                    asked.map_err(|error| session.error(&error, statement))?;
                    batches.push(batch);
                }
            }
            Ok(())
        })?;
        Ok(concat_batches(&schema, &batches)?)
    }

    /// The needs of a saved query that the traces do not meet.
    pub(crate) fn unmet(&mut self, query: &SavedQuery) -> Result<Vec<Need>, Failure> {
        let (session, query) = (Arc::clone(&self.session), query.clone());
        let unmet: Result<Vec<Need>, SqlError> =
            self.runtime.stream(|_: Sender<()>| async move { query.unmet(&session).await }, |()| Ok(()))?;
        Ok(unmet?)
    }

    /// Fails when the traces do not hold what a saved query needs.
    pub(crate) fn meets(&mut self, query: &SavedQuery) -> Result<(), Failure> {
        match self.unmet(query)?.as_slice() {
            [] => Ok(()),
            needs => {
                let there = needs.iter().find(|need| !need.absent).map_or(Ok(None), |need| self.there_is(need))?;
                let mut problem = unmet(query, needs, there);
                let of_devices = format!("gpu-{}", query.name);
                if let Some(other) = Library::default().find(&of_devices)?
                    && self.unmet(&other)?.is_empty()
                {
                    problem = problem.hint(format!("`{of_devices}` answers for kernels and their launches"));
                }
                Err(problem.into())
            }
        }
    }

    /// The values that the column of an unmet need has instead of those that it names.
    fn there_is(&mut self, need: &Need) -> Result<Option<Vec<String>>, Failure> {
        const SHOWN: usize = 8;
        // A column without any value has none instead.
        let Some((column, _)) = need.with.as_ref().filter(|(_, values)| !values.is_empty()) else { return Ok(None) };
        // The names are those of our tables.
        let sql = format!(
            "SELECT CAST({column} AS VARCHAR) AS value FROM {} WHERE {column} IS NOT NULL GROUP BY {column} \
             ORDER BY count(*) DESC, value LIMIT {}",
            need.table,
            SHOWN + 1
        );
        let values = self.collect(&sql, &Params::new())?;
        let Ok(values) = datafusion::arrow::compute::cast(values.column(0), &DataType::Utf8) else { return Ok(None) };
        let values = values.as_string::<i32>();
        let mut there: Vec<String> = (0..values.len().min(SHOWN)).map(|row| values.value(row).to_owned()).collect();
        if values.len() > SHOWN {
            there.push("…".to_owned());
        }
        Ok(Some(there))
    }

    fn stream(
        &mut self,
        statement: &Statement,
        params: &Params,
        arrange: fn(DataFrame) -> Result<DataFrame, DataFusionError>,
        take: &mut dyn FnMut(Part) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let wanted = statements::placeholders(&statement.text);
        // Values that other statements of the file want are no mistake here.
        let params: Params = params.iter().filter(|(name, _)| wanted.contains(name)).cloned().collect();
        let params = (!params.is_empty()).then(|| ParamValues::from(params));
        let (session, statement) = (Arc::clone(&self.session), statement.clone());
        let running = self.running.clone();
        running.clear();
        // A query that was left behind leaves its notes too.
        let noted = Arc::new(OnceLock::new());
        let notes = Arc::clone(&noted);
        let answered: Result<Result<(), SqlError>, Failure> = self.runtime.stream(
            |sender| async move {
                let query = session.execute(&statement, params).await?;
                let _once = noted.set(query.notes());
                let mut rows = query.arranged(arrange)?.until(nobody_listens_to(&sender)).start().await?;
                running.begin(rows.plan());
                if sender.send(Part::Schema(rows.schema())).await.is_err() {
                    return Ok(());
                }
                while let Some(batch) = rows.next().await {
                    // Nobody listens any more: the query was interrupted, or writing failed.
                    if sender.send(Part::Rows(batch?)).await.is_err() {
                        break;
                    }
                }
                Ok(())
            },
            take,
        );
        for note in notes.get().map(|notes| notes.take()).unwrap_or_default() {
            let note = note.to_string();
            if let Some(kept) = &mut self.kept {
                kept.push(note);
            } else if self.told.as_mut().is_none_or(|told| told.insert(note.clone())) {
                terminal::note(&note);
            }
        }
        Ok(answered??)
    }
}

/// Says that the answer is not wanted any more. The plan, which asks, may live longer than the query, so it must not keep the
/// channel open.
fn nobody_listens_to<T: Send + 'static>(sender: &Sender<T>) -> Stop {
    let sender: WeakSender<T> = sender.downgrade();
    Arc::new(move || sender.upgrade().is_none_or(|sender| sender.is_closed()))
}
