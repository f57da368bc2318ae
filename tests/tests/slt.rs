//! Golden queries: `tests/slt/*.slt`, one file per function, each in a fresh session.
//!
//! A file is a list of queries with their answers, in the format of sqllogictest: `query IT` says that an integer and a
//! text come back, `query error <regex>` that the query must fail and how. Below a plain `query error` and `----` stands the
//! message, which ends at two empty lines: queries behind a single one would be a part of it, which is refused. Letters: `I` whole numbers,
//! `R` doubles, `T` text, `B` booleans, `?` anything else. `skipif workers` leaves a query out where
//! workers help (`cluster.rs`). `UPDATE_EXPECT=1 cargo test golden_queries` rewrites the answers; read the difference.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use sqllogictest::{
    AsyncDB, ColumnType, DBOutput, Record, Runner, default_normalizer, default_validator, strict_column_validator,
};
use tq_engine::session::register_functions;
use tq_engine::sql::{self, SqlError};
use tq_udfs::ticks::Tick;

/// What runs the queries of a file: a session without traces, so that a file may make tables of its own.
pub(crate) fn session() -> SessionContext {
    let config = SessionConfig::new().with_target_partitions(4).with_information_schema(true);
    let builder = SessionStateBuilder::new().with_default_features().with_config(config);
    let builder = sql::configure(builder).with_analyzer_rule(Arc::new(sql::ComputedOnce));
    let mut session = SessionContext::new_with_state(builder.build());
    register_functions(&mut session, Tick::Nanosecond).expect("functions of ours");
    session
}

/// Runs one statement to its end, as every user of the engine does: its columns and its rows.
pub(crate) async fn answer(session: &SessionContext, text: &str) -> Result<(SchemaRef, Vec<RecordBatch>), SqlError> {
    let statements = sql::parse(text)?;
    let [statement] = statements.as_slice() else { panic!("one statement at a time: {text}") };
    let mut rows = sql::execute(session, statement, None).await?.start().await?;
    Ok((rows.schema(), rows.rest().await?))
}

#[test]
fn golden_queries() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    play(|file| run(file, update, None, session));
}

/// Plays all files, of which none may fail.
pub(crate) fn play(run: impl Fn(&Path) -> Result<(), String> + Sync) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("slt");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder of golden queries")
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no golden queries in {}", folder.display());

    // A thread per file: most of the time goes into planning, which uses one core.
    let failures: Vec<String> = thread::scope(|scope| {
        let runs: Vec<_> = files.iter().map(|file| scope.spawn(|| run(file))).collect();
        runs.into_iter().filter_map(|run| run.join().expect("a file's thread").err()).collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Runs or rewrites one file, in a fresh session, without the queries behind `skipif` and the label.
pub(crate) fn run(
    file: &Path,
    update: bool,
    label: Option<&str>,
    session: impl Fn() -> SessionContext,
) -> Result<(), String> {
    let runtime = tq_tests::two_threads().map_err(|error| error.to_string())?;
    all_are_read(file)?;
    runtime.block_on(async {
        let mut runner = Runner::new(|| async { Ok(Database(session())) });
        runner.with_column_validator(strict_column_validator);
        if let Some(label) = label {
            runner.add_label(label);
        }
        if update {
            let updated = runner
                .update_test_file(file, "  ", default_validator, default_normalizer, strict_column_validator)
                .await;
            return updated.map_err(|error| format!("{}: {error}", file.display()));
        }
        runner.run_file_async(file).await.map_err(|error| error.display(false).to_string())
    })
}

/// Refuses a file of which queries would be taken for a part of the message before them: they would not run, and be lost in an update.
fn all_are_read(file: &Path) -> Result<(), String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let begun = text.lines().filter(|line| line.starts_with("query ") || line.starts_with("statement ")).count();
    let records = sqllogictest::parse_file::<Kind>(file).map_err(|error| error.to_string())?;
    let is_asked = |record: &&Record<Kind>| matches!(record, Record::Query { .. } | Record::Statement { .. });
    let read = records.iter().filter(is_asked).count();
    if begun == read {
        return Ok(());
    }
    Err(format!(
        "{}: {begun} queries begin, but {read} are read: the message of an error ends at two empty lines",
        file.display()
    ))
}

/// A session as sqllogictest sees it.
struct Database(SessionContext);

#[async_trait::async_trait]
impl AsyncDB for Database {
    type Error = SqlError;
    type ColumnType = Kind;

    async fn run(&mut self, text: &str) -> Result<DBOutput<Kind>, SqlError> {
        let (schema, batches) = answer(&self.0, text).await?;
        if schema.fields().is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let kinds = schema.fields().iter().map(|field| Kind::of(field.data_type())).collect();
        let rows = batches.iter().flat_map(texts).flat_map(lines).collect();
        Ok(DBOutput::Rows { types: kinds, rows })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "tq"
    }
}

/// The cells of a batch as text.
fn texts(batch: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
    let columns = columns.collect::<Result<Vec<_>, _>>().expect("columns that can be shown");
    let cell = |column: &ArrayFormatter, row: usize| {
        let text = column.value(row).to_string();
        if text.is_empty() { "(empty)".to_owned() } else { text }
    };
    (0..batch.num_rows()).map(|row| columns.iter().map(|column| cell(column, row)).collect()).collect()
}

/// A row whose last cell has several lines (a plan) becomes a row per line.
fn lines(mut row: Vec<String>) -> Vec<Vec<String>> {
    let last = row.pop().unwrap_or_default();
    let with = |line: &str| row.iter().cloned().chain([line.to_owned()]).collect();
    last.lines().map(with).collect()
}

/// The letter of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Double,
    Text,
    Boolean,
    Other,
}

impl Kind {
    fn of(data_type: &DataType) -> Kind {
        match data_type {
            DataType::Dictionary(_, value) => Kind::of(value),
            DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => Kind::Text,
            DataType::Boolean => Kind::Boolean,
            other if other.is_integer() => Kind::Integer,
            other if other.is_floating() => Kind::Double,
            _ => Kind::Other,
        }
    }
}

impl ColumnType for Kind {
    fn from_char(letter: char) -> Option<Self> {
        Some(match letter {
            'I' => Kind::Integer,
            'R' => Kind::Double,
            'T' => Kind::Text,
            'B' => Kind::Boolean,
            '?' => Kind::Other,
            _ => return None,
        })
    }

    fn to_char(&self) -> char {
        match self {
            Kind::Integer => 'I',
            Kind::Double => 'R',
            Kind::Text => 'T',
            Kind::Boolean => 'B',
            Kind::Other => '?',
        }
    }
}
