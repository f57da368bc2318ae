//! A query of its own: planned, started, read, and cancelled without regard to others.
//!
//! ```text
//! execute ─▶ Query ─start─▶ Rows ─▶ batches … the end, or an error
//!            │              └ schema, plan
//!            └ notes (its own sink), canceller (its own, from any thread)
//! ```
//!
//! Queries of one session share its tables, its memory and what statements define or set, and nothing else: the sink of the notes
//! stands in the configuration of a context that is made for one query and holds the same catalogue.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DFSchema, DataFusionError, ParamValues, Result as DataFusionResult, exec_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{DataFrame, SessionContext};
use futures::stream::{AbortHandle, AbortRegistration, Abortable, Stream, StreamExt, TryStreamExt};
use tq_udfs::relation::notes::{Note, Notes};

use super::emitted::with_charged_values;
use super::stop::{Stop, stoppable};
use super::{SqlError, Statement, plan, stale};

/// A statement that was planned; what it defines or sets has taken effect, its rows are still to be asked for.
pub struct Query {
    frame: DataFrame,
    about: About,
    canceller: Canceller,
    told: AbortRegistration,
    until: Option<Stop>,
}

/// What an error of a query is worded with, and where its notes go.
struct About {
    statement: Statement,
    session: SessionContext,
    notes: Arc<Notes>,
}

impl About {
    fn worded(&self, error: &DataFusionError) -> SqlError {
        SqlError::new(error, &self.statement, &self.session)
    }
}

/// Ends one query, from any thread; its rows then end in the error "the query was cancelled".
#[derive(Debug, Clone)]
pub struct Canceller(AbortHandle);

impl Canceller {
    /// The query is to end now. Operators that compute without waiting hear it before their next batch.
    pub fn cancel(&self) {
        self.0.abort();
    }

    /// Whether it was told to.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_aborted()
    }
}

/// Plans a statement and starts it: definitions take effect, a query is still to be [started](Query::start).
pub async fn execute(
    context: &SessionContext,
    statement: &Statement,
    params: Option<ParamValues>,
) -> Result<Query, SqlError> {
    let notes = Arc::new(Notes::default());
    let own = of_one_query(context, &notes);
    let about = About { statement: statement.clone(), session: own.clone(), notes };
    let plan = plan(&own, statement, params).await?;
    let worded = |error| about.worded(&error);
    let replaced = stale::replaced(&own, &plan);
    let frame = match plan {
        // SET and PREPARE change the session itself, which this query has a copy of.
        plan @ LogicalPlan::Statement(_) => {
            let frame = context.execute_logical_plan(plan).await.map_err(worded)?;
            DataFrame::new(own.state(), frame.into_unoptimized_plan())
        }
        plan => own.execute_logical_plan(plan).await.map_err(worded)?,
    };
    if let Some(replaced) = replaced {
        stale::note_views_over(&own, &replaced, &about.notes).await.map_err(worded)?;
    }
    let (canceller, told) = AbortHandle::new_pair();
    Ok(Query { frame, about, canceller: Canceller(canceller), told, until: None })
}

/// The session as one query sees it: its notes are its own.
fn of_one_query(context: &SessionContext, notes: &Arc<Notes>) -> SessionContext {
    let mut state = context.state();
    state.config_mut().set_extension(Arc::clone(notes));
    SessionContext::new_with_state(state)
}

impl Query {
    /// The columns as they were planned. Those of [`Rows::schema`] may have another type of text.
    pub fn schema(&self) -> &DFSchema {
        self.frame.schema()
    }

    /// What functions say beside the rows, from now until the rows have ended.
    pub fn notes(&self) -> Arc<Notes> {
        Arc::clone(&self.about.notes)
    }

    /// Ends this query.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Also ends when `stop` says so; it is asked before each batch of an operator that computes without waiting.
    #[must_use]
    pub fn until(mut self, stop: Stop) -> Query {
        self.until = Some(stop);
        self
    }

    /// The plan alone, for callers that run it in another way.
    pub fn into_frame(self) -> DataFrame {
        self.frame
    }

    /// The query with something done to it: an order, a limit, fewer columns.
    ///
    /// # Errors
    /// Whatever `arrange` fails with.
    pub fn arranged(
        mut self,
        arrange: impl FnOnce(DataFrame) -> DataFusionResult<DataFrame>,
    ) -> Result<Query, SqlError> {
        self.frame = arrange(self.frame).map_err(|error| self.about.worded(&error))?;
        Ok(self)
    }

    /// Plans the operators and starts them. Dropping the rows ends the query.
    ///
    /// # Errors
    /// Whatever only operators can know: an option that is no value, no memory.
    pub async fn start(self) -> Result<Rows, SqlError> {
        let Query { frame, about, canceller, told, until } = self;
        let worded = |error| about.worded(&error);
        let task = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await.map_err(worded)?;
        let own = canceller.clone();
        let stop: Stop = match until {
            Some(stop) => Arc::new(move || own.is_cancelled() || stop()),
            None => Arc::new(move || own.is_cancelled()),
        };
        let plan = with_charged_values(stoppable(plan, &stop).map_err(worded)?).map_err(worded)?;
        let rows = execute_stream(Arc::clone(&plan), task).map_err(worded)?;
        Ok(Rows { rows: Some(Abortable::new(rows, told)), plan, about, canceller })
    }

    /// All rows. For notes, [`Query::notes`] before.
    ///
    /// # Errors
    /// As [`Query::start`], and whatever goes wrong on the way.
    pub async fn collect(self) -> Result<Vec<RecordBatch>, SqlError> {
        self.start().await?.rest().await
    }
}

/// The rows of one query as they come, a batch at a time; nothing comes after an error.
pub struct Rows {
    /// `None` once it has ended.
    rows: Option<Abortable<SendableRecordBatchStream>>,
    plan: Arc<dyn ExecutionPlan>,
    about: About,
    canceller: Canceller,
}

impl Rows {
    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }

    /// The operators, whose metrics tell how far they are.
    pub fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.plan
    }

    /// The next batch; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<RecordBatch, SqlError>> {
        StreamExt::next(self).await
    }

    /// All batches that are left.
    ///
    /// # Errors
    /// Whatever goes wrong on the way.
    pub async fn rest(&mut self) -> Result<Vec<RecordBatch>, SqlError> {
        self.try_collect().await
    }

    /// What functions have said beside the rows since the last call; complete once the rows have ended.
    pub fn take_notes(&self) -> Vec<Note> {
        self.about.notes.take()
    }

    /// Ends this query.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }
}

impl Stream for Rows {
    type Item = Result<RecordBatch, SqlError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(rows) = &mut self.rows else { return Poll::Ready(None) };
        let next = match std::task::ready!(rows.poll_next_unpin(context)) {
            None if self.canceller.is_cancelled() => Some(exec_err!("the query was cancelled")),
            next => next,
        };
        if !matches!(next, Some(Ok(_))) {
            self.rows = None;
        }
        Poll::Ready(next.map(|batch| batch.map_err(|error| self.about.worded(&error))))
    }
}

impl Drop for Rows {
    /// What computes on other threads hears it too.
    fn drop(&mut self) {
        self.canceller.cancel();
    }
}
