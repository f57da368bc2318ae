//! `expect`: conditions on one answer.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt64Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::arrow::error::ArrowError;
use tq_engine::paths::{self, NamedFileError};
use tq_engine::queries::{Expect, Expectation, Origin, SavedQuery};
use tq_engine::sql;

use super::csv::{self, Difference};
use super::{Evidence, Verdict, params, type_in_words};
use crate::args::CheckArgs;
use crate::connection::Connection;
use crate::errors::{Failure, Problem};
use crate::files;
use crate::text::words::counted;

/// The answer as conditions see it, and its column with the number of the row.
const ANSWER: &str = "tq_answer";
const ROW: &str = "tq_row";

pub(super) fn verdict(
    expect: &Expect,
    query: &SavedQuery,
    answer: &RecordBatch,
    connection: &mut Connection,
    args: &CheckArgs,
) -> Result<Verdict, Failure> {
    let count = answer.num_rows();
    match &expect.what {
        Expectation::NoRows if count == 0 => Ok(Verdict::Held(String::new())),
        Expectation::NoRows => Ok(Verdict::Failed(Evidence::new(counted(count, "row"), Some(answer.clone()), count))),
        Expectation::Rows { least, most } => {
            let holds = *least <= count as u64 && most.is_none_or(|most| count as u64 <= most);
            if holds {
                return Ok(Verdict::Held(counted(count, "row")));
            }
            Ok(Verdict::Failed(Evidence::new(counted(count, "row"), Some(answer.clone()), count)))
        }
        Expectation::EveryRow(condition) => {
            let placed = |failure: Failure| without_excerpt(failure, query, expect.line, condition);
            let offending = offending(condition, query, answer, connection, args).map_err(placed)?;
            every_row(&offending, answer)
        }
        Expectation::SameAs(file) => same_as(file, query, answer, args).map_err(|failure| match failure {
            Failure::Told(_) => failure.in_file(&query.file(), Some(expect.line as u64)),
            other => other,
        }),
    }
}

fn every_row(offending: &[u64], answer: &RecordBatch) -> Result<Verdict, Failure> {
    let count = answer.num_rows();
    if offending.is_empty() {
        // Nothing is wrong with no rows, and often something is wrong with the query: it is said.
        let on = if count == 0 { "the answer has no rows".to_owned() } else { counted(count, "row") };
        return Ok(Verdict::Held(on));
    }
    let rows = take_record_batch(answer, &UInt64Array::from(offending.to_vec()))?;
    let verb = if offending.len() == 1 { "offends" } else { "offend" };
    let summary = format!("{} of {} {verb}", offending.len(), counted(count, "row"));
    Ok(Verdict::Failed(Evidence::new(summary, Some(rows), offending.len())))
}

/// The rows for which a condition is not true, by number. NULL is not true.
fn offending(
    condition: &str,
    query: &SavedQuery,
    answer: &RecordBatch,
    connection: &mut Connection,
    args: &CheckArgs,
) -> Result<Vec<u64>, Failure> {
    let params = params(query, args, connection.session().tick())?;
    let context = connection.session().context();
    let registered = context.deregister_table(ANSWER).and_then(|_| context.register_batch(ANSWER, numbered(answer)?));
    registered.map_err(|error| Problem::internal(&error.strip_backtrace()))?;
    // Beside the number of the row, an aggregate is an error and no way to look at all rows at once.
    // On a line of its own, since it may end in a comment.
    let text = format!("SELECT {ROW}, (\n{condition}\n) AS tq_held FROM {ANSWER}");
    let statements = sql::parse(&text)?;
    let held = match statements.as_slice() {
        [statement] => connection.answer(statement, &params)?,
        _ => return Err(Problem::new("it is not one condition").into()),
    };
    let (rows, held) = (held.column(0).as_primitive::<Int64Type>(), held.column(1));
    if held.data_type() == &DataType::Null {
        return Ok(rows.values().iter().map(|&row| row as u64).collect());
    }
    let Some(held) = held.as_boolean_opt() else {
        return Err(
            Problem::new(format!("it is {}, but must be true or false", type_in_words(held.data_type()))).into()
        );
    };
    let mut offending: Vec<u64> = (rows.values().iter().enumerate())
        .filter(|(at, _)| held.is_null(*at) || !held.value(*at))
        .map(|(_, &row)| row as u64)
        .collect();
    offending.sort_unstable();
    Ok(offending)
}

/// The answer with the numbers of its rows. Names that are there twice keep the first of them.
fn numbered(answer: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut columns): (Vec<Arc<Field>>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
    for (field, column) in answer.schema().fields().iter().zip(answer.columns()) {
        if field.name() != ROW && fields.iter().all(|known| known.name() != field.name()) {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
        }
    }
    fields.push(Arc::new(Field::new(ROW, DataType::Int64, false)));
    columns.push(Arc::new(Int64Array::from_iter_values(0..answer.num_rows() as i64)));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// The condition stands in a line of its own; a caret under SQL of ours would point nowhere.
fn without_excerpt(failure: Failure, query: &SavedQuery, line: usize, condition: &str) -> Failure {
    let Failure::Told(mut problem) = failure else { return failure };
    // An aggregate beside our column of row numbers is refused, in a message about that column, which the user has not written.
    if problem.message.contains(ROW) {
        problem.message = "an aggregate looks at all rows, and the condition is asked of each".to_owned();
        problem.hints = vec!["aggregate in the query, or use a window function: `max(x) OVER ()`".to_owned()];
    }
    // The hint that lists columns ends with the one that is ours.
    problem.hints.iter_mut().for_each(|hint| *hint = hint.replace(&format!(", {ROW}"), ""));
    problem.message = format!("`{condition}`: {}", problem.message);
    problem.excerpt = None;
    Failure::Told(problem).in_file(&query.file(), Some(line as u64))
}

fn same_as(file: &str, query: &SavedQuery, answer: &RecordBatch, args: &CheckArgs) -> Result<Verdict, Failure> {
    let path = beside(query, file);
    let current = csv::text(answer)?;
    if args.bless {
        let resolved = allowed(query, &path, args, paths::written_by)?;
        if let Some(folder) = resolved.parent() {
            fs::create_dir_all(folder).map_err(|error| Problem::file("write", &path, &error))?;
        }
        files::write(&resolved, &current)?;
        return Ok(Verdict::Held(format!("wrote {}", counted(answer.num_rows(), "row"))));
    }
    let unread = |error: &io::Error| Problem::file("read", &path, error).hint("`--bless` writes it from this answer");
    let resolved = allowed(query, &path, args, paths::named_by)?;
    let expected = read(&resolved, current.len()).map_err(|error| unread(&error))?;
    match csv::difference(&expected, &current) {
        None => Ok(Verdict::Held(counted(answer.num_rows(), "row"))),
        Some(Difference { summary, lines }) => {
            let mut evidence = Evidence::new(summary, None, lines.len());
            evidence.more = lines;
            Ok(Verdict::Failed(evidence))
        }
    }
}

/// The files that a query compares with.
pub(super) fn named(query: &SavedQuery) -> Vec<PathBuf> {
    let file = |expect: &Expect| match &expect.what {
        Expectation::SameAs(file) => Some(beside(query, file)),
        _ => None,
    };
    query.header.expects.iter().filter_map(file).collect()
}

/// Where a file that a query names really is: in the folder of the query, unless the command line names it as well.
fn allowed(
    query: &SavedQuery,
    path: &Path,
    args: &CheckArgs,
    find: fn(&Path, &Path) -> Result<PathBuf, NamedFileError>,
) -> Result<PathBuf, Failure> {
    let Origin::File(naming) = &query.origin else { return Ok(path.to_owned()) };
    let is_same = |expected: &&PathBuf| same_file::is_same_file(expected, path).unwrap_or(false);
    if args.expected.iter().any(|expected| is_same(&expected)) {
        return Ok(path.canonicalize().map_err(|error| Problem::file("read", path, &error))?);
    }
    find(naming, path).map_err(|error| match error {
        NamedFileError::Io { source } if source.kind() == io::ErrorKind::NotFound => {
            Problem::file("read", path, &source).hint("`--bless` writes it from this answer").into()
        }
        NamedFileError::Io { source } => Problem::file("read", path, &source).into(),
        dangling @ NamedFileError::Dangling { .. } => Problem::new(dangling.to_string())
            .hint("remove the link, and `--bless` writes the answer in its place, or make the file that it leads to")
            .into(),
        refusal => Problem::new(refusal.to_string())
            .hint(format!("if you mean it, give the file on the command line: `--expected {}`", path.display()))
            .into(),
    })
}

/// What is expected, as far as it could be this answer: the rest of a file of any size differs, whatever it is.
fn read(path: &Path, answer_bytes: usize) -> io::Result<String> {
    const MORE: u64 = 16 << 20;
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(2 * answer_bytes as u64 + MORE).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text in UTF-8"))
}

/// A file beside the file of the query.
fn beside(query: &SavedQuery, file: &str) -> PathBuf {
    match &query.origin {
        Origin::File(path) => path.parent().unwrap_or(Path::new("")).join(file),
        Origin::BuiltIn => PathBuf::from(file),
    }
}
