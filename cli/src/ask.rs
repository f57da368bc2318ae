//! Asking: a session, the runtime that its queries run on, and the one way in which statements become rows.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use futures::StreamExt;
use tq_engine::session::Session;
use tq_engine::sql::{self, SqlError, Statement};

use crate::args::OpenArgs;
use crate::errors::{Failure, Problem};
use crate::output::Output;
use crate::runtime::QueryRuntime;
use crate::{open, statements, talk};

/// Values of `$name`.
pub(crate) type Params = Vec<(String, ScalarValue)>;

/// What an output does to a query before it is executed: an order, fewer columns.
pub(crate) type Arrange = fn(DataFrame) -> Result<DataFrame, DataFusionError>;

/// A session with its queries.
pub(crate) struct Asker {
    session: Arc<Session>,
    runtime: QueryRuntime,
}

/// What travels from the query to the terminal.
enum Part {
    Schema(SchemaRef),
    Rows(RecordBatch),
}

impl Asker {
    /// Opens the traces of a command line.
    pub(crate) fn open(args: &OpenArgs) -> Result<Asker, Failure> {
        let session = Arc::new(open::open(args)?);
        Ok(Asker { session, runtime: QueryRuntime::new(open::threads(args))? })
    }

    /// Without traces: functions and empty tables.
    pub(crate) fn empty() -> Result<Asker, Failure> {
        Ok(Asker { session: Arc::new(open::empty()?), runtime: QueryRuntime::new(1)? })
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Runs one statement and writes its rows. A statement without a result (`CREATE VIEW`, `SET`) writes nothing.
    pub(crate) fn run(
        &mut self,
        statement: &Statement,
        params: &Params,
        arrange: Arrange,
        output: &mut dyn Output,
    ) -> Result<(), Failure> {
        let mut begun = false;
        self.stream(statement, params, arrange, &mut |part| match part {
            Part::Schema(schema) if schema.fields().is_empty() => Ok(()),
            Part::Schema(schema) => {
                begun = true;
                output.begin(&schema)
            }
            Part::Rows(batch) if begun => output.rows(&batch),
            Part::Rows(_) => Ok(()),
        })?;
        if !begun {
            return Ok(());
        }
        while let Some(sql) = output.further() {
            for statement in sql::parse(sql)? {
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
        let mut schema: SchemaRef = Arc::new(Schema::empty());
        let mut batches = Vec::new();
        self.stream(statement, params, Ok, &mut |part| {
            match part {
                Part::Schema(answer) => schema = answer,
                Part::Rows(batch) => batches.push(batch),
            }
            Ok(())
        })?;
        Ok(concat_batches(&schema, &batches)?)
    }

    fn stream(
        &mut self,
        statement: &Statement,
        params: &Params,
        arrange: Arrange,
        take: &mut dyn FnMut(Part) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let wanted = statements::placeholders(&statement.text);
        // Values that other statements of the file want are no mistake here.
        let params: Params = params.iter().filter(|(name, _)| wanted.contains(name)).cloned().collect();
        let params = (!params.is_empty()).then(|| ParamValues::from(params));
        let (session, statement) = (Arc::clone(&self.session), statement.clone());
        let answered: Result<Result<(), SqlError>, Failure> = self.runtime.stream(
            |sender| async move {
                let frame = session.execute(&statement, params).await?;
                let worded = |error| session.error(&error, &statement);
                let frame = arrange(frame).map_err(worded)?;
                let schema = Arc::new(frame.schema().as_arrow().clone());
                let mut rows = frame.execute_stream().await.map_err(worded)?;
                if sender.send(Part::Schema(schema)).await.is_err() {
                    return Ok(());
                }
                while let Some(batch) = rows.next().await {
                    // Nobody listens any more: the query was interrupted, or writing failed.
                    if sender.send(Part::Rows(batch.map_err(worded)?)).await.is_err() {
                        break;
                    }
                }
                Ok(())
            },
            take,
        );
        for note in self.session.take_notes() {
            talk::note(&note.to_string());
        }
        Ok(answered??)
    }
}
