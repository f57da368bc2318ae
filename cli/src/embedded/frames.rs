//! Tables of a program as a trace: they are written into a temporary folder, beside a mapping, and read as the format `table` is.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchReader};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::StreamWriter;
use tq_engine::trace::temporary::TemporaryFolder;

use crate::errors::{Failure, Problem};
use crate::host;

/// Gives rows when their turn comes, or says why there are none: a connection of another database may have one answer open at a time.
pub type Rows = Box<dyn FnOnce() -> Result<Box<dyn RecordBatchReader + Send>, String> + Send>;

/// Rows of one of the tables `tasks`, `links`, `messages`, `counters`, `events` and `locations`, each of which has one frame at most.
pub struct Frame {
    /// Which one.
    pub table: String,
    /// Which column of the rows means which column of the table, and the other keys of a mapping.
    pub mapping: Vec<(String, String)>,
    /// The rows.
    pub rows: Rows,
}

/// What is given a folder to be opened: one run of all frames.
pub(super) fn written(frames: Vec<Frame>) -> Result<TemporaryFolder, Failure> {
    let failed = |error: std::io::Error| Problem::new(format!("cannot write a temporary file: {error}"));
    let folder = TemporaryFolder::new().map_err(failed)?;
    let mut mapping = String::new();
    for frame in frames {
        let file = format!("{}.arrows", frame.table);
        mapping.push_str(&format!("[[table]]\ntable = {}\nfile = {}\n", text(&frame.table), text(&file)));
        for (key, value) in &frame.mapping {
            mapping.push_str(&format!("{} = {}\n", text(key), text(value)));
        }
        write(frame, &folder.file(&file))?;
    }
    std::fs::write(folder.file(MAPPING), mapping).map_err(failed)?;
    Ok(folder)
}

/// The file that is opened.
pub(super) const MAPPING: &str = "frames.tq.toml";

/// A failure without the folder, of which nobody knows.
pub(super) fn named(failure: Failure, folder: &TemporaryFolder) -> Failure {
    let Failure::Told(mut problem) = failure else { return failure };
    let folder = folder.file("").display().to_string();
    problem.message = problem.message.replace(&folder, "");
    if let Some((table, _)) = problem.message.split_once(".arrows: ") {
        let table = table.to_owned();
        problem.hints.iter_mut().for_each(|hint| *hint = mapped(hint, &table));
    }
    Failure::Told(problem)
}

/// The lines of a mapping that a hint suggests, as a program gives them.
fn mapped(hint: &str, table: &str) -> String {
    let (lines, rest) =
        hint.split_once(" (").map_or((hint, String::new()), |(lines, rest)| (lines, format!(" ({rest}")));
    let pairs: Option<Vec<String>> = (lines.split(", "))
        .map(|line| line.split_once(" = \"").map(|(key, value)| format!("\"{key}\": \"{value}")))
        .collect();
    match pairs {
        Some(pairs) => format!("mapping={{\"{table}\": {{{}}}}}{rest}", pairs.join(", ")),
        None => hint.to_owned(),
    }
}

/// A text of TOML.
fn text(value: &str) -> String {
    toml::Value::String(value.to_owned()).to_string()
}

fn write(frame: Frame, path: &Path) -> Result<(), Failure> {
    let of_frame = |error: ArrowError| Problem::new(format!("the rows of `{}`: {error}", frame.table));
    let failed = |error: std::io::Error| Problem::file("write", path, &error);
    let rows = (frame.rows)().map_err(|why| Problem::new(format!("the rows of `{}`: {why}", frame.table)))?;
    let schema = Arc::new(Schema::new(rows.schema().fields().iter().map(plain).collect::<Vec<Field>>()));
    let file = BufWriter::new(File::create(path).map_err(failed)?);
    let mut writer = StreamWriter::try_new(file, &schema).map_err(of_frame)?;
    for batch in rows {
        if host::is_given_up() {
            return Err(Failure::Interrupted);
        }
        let batch = batch.map_err(of_frame)?;
        let columns = batch.columns().iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| cast(column, field.data_type())).collect::<Result<_, _>>();
        let batch = columns.and_then(|columns| RecordBatch::try_new(Arc::clone(&schema), columns));
        batch.and_then(|batch| writer.write(&batch)).map_err(of_frame)?;
    }
    Ok(writer.finish().map_err(of_frame)?)
}

/// A dictionary may be another one in each batch, which a file has no room for.
fn plain(field: &Arc<Field>) -> Field {
    let data_type = match field.data_type() {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        other => other.clone(),
    };
    Field::new(field.name(), data_type, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_lines_become_a_mapping() {
        assert_eq!(
            mapped("start = \"begin\", name = \"op\" (guessed)", "tasks"),
            "mapping={\"tasks\": {\"start\": \"begin\", \"name\": \"op\"}} (guessed)"
        );
        assert_eq!(mapped("name it", "tasks"), "name it");
    }
}
