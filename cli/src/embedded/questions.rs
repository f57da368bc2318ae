//! Questions and their rows.

use std::collections::HashSet;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, LargeStringBuilder, RecordBatch, StringArray, TypedDictionaryArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int32Type, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::common::ParamValues;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use tokio::sync::mpsc;
use tq_engine::sql::{SqlError, Statement};
use tq_engine::{Canceller, Query};
use tq_udfs::relation::notes::Notes;
use tq_udfs::ticks::is_shown_as_time;

use super::errors::{Error, Kind, Message};
use super::pending::Pending;
use super::shared::{Shared, Threads, nothing};
use crate::connection::Params;
use crate::errors::Failure;
use crate::statements;

/// Batches that may wait between the query and whoever reads.
const IN_FLIGHT: usize = 4;

/// The metadata of a column of times that says how long a tick is: `ns`, `ps` or `weights`.
const TICK: &str = "tq.tick";

/// How columns of words leave, which have dictionaries of their own within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Words {
    /// As views of the texts of the dictionary, which are not copied.
    Views,
    /// As dictionaries, which may differ from batch to batch.
    Dictionaries,
    /// As texts of their own, for whoever would copy the views at once.
    Texts,
}

/// A statement that was planned, whose rows can be read any number of times.
pub struct Question {
    shared: Arc<Shared>,
    statement: Statement,
    params: Params,
    /// The file of the statement.
    file: Option<(String, u64)>,
    /// Whether its text alone says what is asked.
    pub(super) is_alone: bool,
    /// The first reading takes the plan; others make theirs.
    planned: Mutex<Option<Query>>,
    columns: SchemaRef,
}

impl Question {
    /// Plans a statement; what it defines takes effect.
    pub(super) async fn plan(
        shared: &Arc<Shared>,
        statement: Statement,
        params: Params,
        file: Option<(String, u64)>,
    ) -> Result<(Question, Vec<Message>), Error> {
        let query = planned(shared, &statement, &params).await.map_err(|error| worded(error, file.as_ref()))?;
        let notes = messages(&query.notes());
        let columns = outgoing(query.schema().as_arrow(), shared.tick(), Words::Views);
        let shared = Arc::clone(shared);
        let planned = Mutex::new(Some(query));
        Ok((Question { shared, statement, params, file, is_alone: false, planned, columns }, notes))
    }

    /// The columns of the answer; none, where the statement defines something. In a [`Reading`], texts may have another type.
    pub fn columns(&self) -> &SchemaRef {
        &self.columns
    }

    /// The text of a statement that was asked alone and without values, so that it may stand in another question.
    pub fn text(&self) -> Option<&str> {
        self.is_alone.then_some(&self.statement.text)
    }

    /// Runs the question.
    pub fn read(&self, words: Words) -> Pending<Reading> {
        let threads = match self.shared.threads() {
            Ok(threads) => threads,
            Err(error) => return Pending::failed(error),
        };
        let planned_before = self.planned.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (shared, statement, params) = (Arc::clone(&self.shared), self.statement.clone(), self.params.clone());
        let (file, is_definition) = (self.file.clone(), self.columns.fields().is_empty());
        let on = Arc::clone(&threads);
        self.shared.begin(&threads, move |sender| async move {
            let told = |error| worded(error, file.as_ref());
            let query = match planned_before {
                Some(query) => Ok(query),
                // What it defines is defined once.
                None if is_definition => nothing(&shared.session).await,
                None => planned(&shared, &statement, &params).await,
            };
            let (query, notes) = match query {
                Ok(query) => {
                    let notes = query.notes();
                    (query, notes)
                }
                Err(error) => return sender(Err(told(error)), Vec::new()),
            };
            let mut rows = match query.start().await {
                Ok(rows) => rows,
                Err(error) => return sender(Err(told(error)), messages(&notes)),
            };
            let (asked, (batches, receiver)) = (statement.clone(), mpsc::channel(IN_FLIGHT));
            let schema = match is_definition {
                true => Arc::new(Schema::empty()),
                false => outgoing(&rows.schema(), shared.tick(), words),
            };
            let pool = Arc::clone(&shared.session.context().runtime_env().memory_pool);
            let memory = MemoryConsumer::new("an answer that is kept").register(&pool);
            let reading = Reading {
                schema: Arc::clone(&schema),
                rows: receiver,
                canceller: rows.canceller(),
                notes,
                threads: on,
                shared: Arc::clone(&shared),
                memory: Arc::new(memory),
                counted: HashSet::new(),
                file: file.clone(),
                statement,
            };
            sender(Ok(reading), Vec::new());
            while let Some(batch) = rows.next().await {
                let batch = batch.map_err(|error| worded(error, file.as_ref())).and_then(|batch| {
                    // Texts of their own may be many times as long as the words; so many batches wait that they must be asked for.
                    let waiting = MemoryConsumer::new("texts of an answer").register(&pool);
                    let bytes = batch.columns().iter().zip(schema.fields()).filter_map(copied_bytes).sum();
                    waiting.try_grow(bytes).map_err(|error| refused(&shared, &error, &asked, file.as_ref()))?;
                    let batch = converted(&batch, &schema).map_err(of_arrow)?;
                    Ok((batch, waiting))
                });
                let is_error = batch.is_err();
                if batches.send(batch).await.is_err() || is_error {
                    break;
                }
            }
        })
    }
}

/// Waits for `what`, so long at most. The threads of questions keep no time where all of them compute without a pause.
fn within<T>(at_most: Duration, what: impl Future<Output = T>) -> Option<T> {
    struct Unparks(Thread);
    impl Wake for Unparks {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let end = Instant::now() + at_most;
    let waker = Waker::from(Arc::new(Unparks(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut what = std::pin::pin!(what);
    loop {
        if let Poll::Ready(done) = what.as_mut().poll(&mut context) {
            return Some(done);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}

async fn planned(shared: &Shared, statement: &Statement, params: &Params) -> Result<Query, SqlError> {
    let wanted = statements::placeholders(&statement.text);
    let params: Params = params.iter().filter(|(name, _)| wanted.contains(name)).cloned().collect();
    let params = (!params.is_empty()).then(|| ParamValues::from(params));
    shared.session.execute(statement, params).await
}

fn worded(error: SqlError, file: Option<&(String, u64)>) -> Error {
    let failure = Failure::from(error);
    Error::of(
        Kind::Query,
        match file {
            Some((file, line)) => failure.in_file(file, Some(*line)),
            None => failure,
        },
    )
}

fn refused(shared: &Shared, error: &DataFusionError, statement: &Statement, file: Option<&(String, u64)>) -> Error {
    worded(shared.session.error(error, statement), file)
}

fn of_arrow(error: ArrowError) -> Error {
    Error::of(Kind::Query, Failure::from(error))
}

fn messages(notes: &Notes) -> Vec<Message> {
    let note = |note: tq_udfs::relation::notes::Note| Message { label: "note", text: note.to_string() };
    notes.take().into_iter().map(note).collect()
}

/// What comes next of an answer.
pub enum Next {
    /// Some rows.
    Rows(RecordBatch),
    /// Nothing more; what functions had to say beside the rows.
    End(Vec<Message>),
    /// Not yet.
    Waiting,
}

/// Memory of the session for rows that somebody keeps.
#[derive(Clone)]
pub struct Reserved {
    _memory: Arc<MemoryReservation>,
}

/// The rows of one run of a question. Dropping it ends the run.
pub struct Reading {
    schema: SchemaRef,
    /// Each with the memory of what was copied for it.
    rows: mpsc::Receiver<Result<(RecordBatch, MemoryReservation), Error>>,
    canceller: Canceller,
    notes: Arc<Notes>,
    threads: Arc<Threads>,
    shared: Arc<Shared>,
    memory: Arc<MemoryReservation>,
    /// Buffers that are reserved already: batches share them.
    counted: HashSet<usize>,
    file: Option<(String, u64)>,
    statement: Statement,
}

impl Reading {
    /// The columns of all batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch, for which it waits so long at most.
    ///
    /// # Errors
    /// Whatever goes wrong on the way; nothing comes after it.
    pub fn next_within(&mut self, at_most: Duration) -> Result<Next, Error> {
        self.shared.is_of_this_process()?;
        let Some(next) = within(at_most, self.rows.recv()) else { return Ok(Next::Waiting) };
        match next {
            Some(batch) => Ok(Next::Rows(batch?.0)),
            None => Ok(Next::End(messages(&self.notes))),
        }
    }

    /// Asks the memory of the session for a batch that is kept, as long as what [`Reading::reserved`] gives lives.
    ///
    /// # Errors
    /// There is no room.
    pub fn keep(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let mut bytes = 0;
        batch.columns().iter().for_each(|column| add_new(column, &mut self.counted, &mut bytes));
        let asked = self.memory.try_grow(bytes);
        asked.map_err(|error| refused(&self.shared, &error, &self.statement, self.file.as_ref()))
    }

    /// What is reserved for the batches that are kept; those that follow add to it.
    pub fn reserved(&self) -> Reserved {
        Reserved { _memory: Arc::clone(&self.memory) }
    }

    /// What was said since the last time.
    pub fn said(&self) -> Vec<Message> {
        messages(&self.notes)
    }

    /// Ends the run; if it does not stop, the threads are left to it, and other questions get new ones.
    pub fn abandon(self) {
        let Reading { rows, canceller, threads, shared, .. } = self;
        canceller.cancel();
        drop(rows);
        shared.leave_behind(&threads);
    }
}

/// Adds the bytes of the buffers of a column that were not seen before.
fn add_new(column: &ArrayRef, seen: &mut HashSet<usize>, bytes: &mut usize) {
    fn add(data: &datafusion::arrow::array::ArrayData, seen: &mut HashSet<usize>, bytes: &mut usize) {
        let nulls = data.nulls().map(|nulls| nulls.buffer());
        for buffer in data.buffers().iter().chain(nulls) {
            if seen.insert(buffer.data_ptr().as_ptr() as usize) {
                *bytes += buffer.capacity();
            }
        }
        data.child_data().iter().for_each(|child| add(child, seen, bytes));
    }
    add(&column.to_data(), seen, bytes);
}

/// The columns as they leave: texts as wanted, and times with the length of their tick.
fn outgoing(schema: &Schema, tick: &str, words: Words) -> SchemaRef {
    let field = |field: &FieldRef| {
        let mut metadata = field.metadata().clone();
        if is_shown_as_time(field) {
            metadata.extend(tq_udfs::ticks::time_metadata());
            metadata.insert(TICK.to_owned(), tick.to_owned());
        }
        let data_type = match words {
            Words::Views => with_words(field.data_type(), &DataType::Utf8View),
            Words::Texts => with_words(field.data_type(), &DataType::LargeUtf8),
            Words::Dictionaries => field.data_type().clone(),
        };
        Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata)
    };
    Arc::new(Schema::new(schema.fields().iter().map(field).collect::<Vec<Field>>()))
}

/// The type with texts of another type for dictionaries of texts.
fn with_words(data_type: &DataType, text: &DataType) -> DataType {
    let within =
        |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(with_words(field.data_type(), text)));
    match data_type {
        DataType::Dictionary(_, values) => match values.as_ref() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => text.clone(),
            other => other.clone(),
        },
        DataType::List(field) => DataType::List(within(field)),
        DataType::LargeList(field) => DataType::LargeList(within(field)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(within).collect()),
        other => other.clone(),
    }
}

fn converted(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns: Result<Vec<ArrayRef>, ArrowError> = (batch.columns().iter().zip(schema.fields()))
        .map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => copied_words(column, field.data_type()).map_or_else(|| cast(column, field.data_type()), Ok),
        })
        .collect();
    let options = datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns?, &options)
}

/// How long the texts of a column are where they are copied.
fn copied_bytes((column, field): (&ArrayRef, &FieldRef)) -> Option<usize> {
    let words = copied_dictionary(column, field.data_type())?;
    Some(words.into_iter().flatten().map(str::len).sum())
}

/// A column of words whose texts are to be copied.
fn copied_dictionary<'a>(
    column: &'a ArrayRef,
    to: &DataType,
) -> Option<TypedDictionaryArray<'a, Int32Type, StringArray>> {
    let words = column.as_dictionary_opt::<Int32Type>().filter(|words| words.values().null_count() == 0)?;
    words.downcast_dict::<StringArray>().filter(|_| *to == DataType::LargeUtf8)
}

/// The texts of a dictionary as texts of their own. A cast would copy the dictionary first, with each batch anew.
fn copied_words(column: &ArrayRef, to: &DataType) -> Option<ArrayRef> {
    let words = copied_dictionary(column, to)?;
    let bytes = words.into_iter().flatten().map(str::len).sum();
    let mut texts = LargeStringBuilder::with_capacity(words.len(), bytes);
    texts.extend(words);
    Some(Arc::new(texts.finish()))
}
