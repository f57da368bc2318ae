//! A Gantt chart of the offending rows: their time and a little around it, with the tasks that they name outlined.

use std::path::{Path, PathBuf};

use datafusion::arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::compute::{cast, max, min};
use datafusion::arrow::datatypes::{DataType, Int64Type};

use super::{Outcome, Pairs, Verdict};
use crate::connection::Connection;
use crate::errors::Failure;
use crate::output::Picture;
use crate::text::runner::{Spelling, harmless};
use crate::{files, pictures};

/// Tasks that are outlined one by one.
const MARKS_MAX: usize = 1_000;

/// Draws one picture for each failed check with rows: FILE.svg, FILE-2.svg and so on.
pub(super) fn draw_failed(
    outcomes: &[Outcome],
    connection: &mut Connection,
    pairs: &Pairs,
    file: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let mut drawn = Vec::new();
    for outcome in outcomes {
        let Verdict::Failed(evidence) = &outcome.verdict else { continue };
        let stretch = evidence.rows.as_ref().map(|rows| Stretch::of(rows, pairs)).transpose()?.unwrap_or_default();
        let title = format!("{}: {}", outcome.query, outcome.what);
        let of_session = pictures::of_session(connection)?;
        let text = pictures::gantt_of_sql(
            connection,
            &stretch.sql(),
            Picture { title, outlined: Some("offends"), ..of_session },
        )?;
        let file = numbered(file, drawn.len() + 1);
        files::write(&file, &harmless(&text, Spelling::Reference))?;
        drawn.push(file);
    }
    Ok(drawn)
}

fn numbered(file: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return file.to_owned();
    }
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let extension = file.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
    file.with_file_name(format!("{stem}-{number}{extension}"))
}

/// What offending rows say about where to look.
#[derive(Debug, Default, PartialEq, Eq)]
struct Stretch {
    /// From the first start to the last finish.
    window: Option<(i64, i64)>,
    /// Tasks by number.
    tasks: Vec<i64>,
    /// Words by column of `tasks`: run, location, name, kind.
    words: Vec<(&'static str, Vec<String>)>,
}

impl Stretch {
    fn of(rows: &RecordBatch, pairs: &Pairs) -> Result<Stretch, Failure> {
        let integers = |name: &str| -> Result<Option<Int64Array>, Failure> {
            match rows.column_by_name(name) {
                Some(column) if column.data_type().is_integer() => {
                    Ok(Some(cast(column, &DataType::Int64)?.as_primitive::<Int64Type>().clone()))
                }
                _ => Ok(None),
            }
        };
        let mut stretch = Stretch::default();
        if let Some(starts) = integers("start")?.or(integers("bin_start")?) {
            let finishes = match (integers("finish")?, integers("duration")?) {
                (Some(finishes), _) => finishes,
                (None, Some(durations)) => (starts.iter().zip(durations.iter()))
                    .map(|(start, duration)| start?.checked_add(duration?))
                    .collect(),
                (None, None) => starts.clone(),
            };
            stretch.window = min(&starts).zip(max(&finishes).max(max(&starts)));
        }
        if let Some(tasks) = integers("task")? {
            stretch.tasks = tasks.iter().flatten().take(MARKS_MAX).collect();
        }
        for name in ["run", "location", "name", "kind"] {
            let Some(column) = rows.column_by_name(name) else { continue };
            let Ok(words) = cast(column, &DataType::Utf8) else { continue };
            let words = words.as_string::<i32>();
            let mut words: Vec<String> = words.iter().flatten().map(str::to_owned).collect();
            words.sort();
            words.dedup();
            words.truncate(MARKS_MAX);
            stretch.words.push((name, words));
        }
        // What a metric calls several runs: those that did not get worse are not drawn.
        if let Some(column) = rows.column_by_name("runs").filter(|_| pairs.tell_apart()) {
            let called = cast(column, &DataType::Utf8)?;
            let runs: Vec<String> =
                called.as_string::<i32>().iter().flatten().flat_map(|called| pairs.runs_called(called)).collect();
            if !runs.is_empty() {
                stretch.words.push(("run", runs));
            }
        }
        Ok(stretch)
    }

    /// The tasks of the picture. Without a window, the one of the named tasks; without those, everything.
    fn sql(&self) -> String {
        let mark = self.mark();
        let runs = match self.words.iter().find(|(name, _)| *name == "run") {
            Some((_, runs)) => format!("tasks.run IN ({})", literals(runs)),
            None => "true".to_owned(),
        };
        let window = match self.window {
            Some((from, to)) => {
                // A tenth of the stretch on both sides, so that one sees what is around it.
                let around = (to.saturating_sub(from) / 10).max(1);
                format!("SELECT {} AS first, {} AS last", from.saturating_sub(around), to.saturating_add(around))
            }
            None if self.tasks.is_empty() => {
                "SELECT min(start) AS first, max(finish) AS last FROM program_tasks".to_owned()
            }
            None => format!("SELECT min(start) AS first, max(finish) AS last FROM program_tasks AS tasks WHERE {mark}"),
        };
        format!(
            "SELECT tasks.*, {mark} AS on_path FROM program_tasks AS tasks CROSS JOIN ({window}) AS stretch \
             WHERE {runs} AND tasks.start <= stretch.last AND coalesce(tasks.finish, tasks.start) >= stretch.first"
        )
    }

    /// Which tasks are outlined: the named ones, else those of the names, kinds and locations of the rows.
    fn mark(&self) -> String {
        if !self.tasks.is_empty() {
            let numbers: Vec<String> = self.tasks.iter().map(ToString::to_string).collect();
            return format!("(tasks.task IN ({}))", numbers.join(", "));
        }
        let by = |wanted: &[&str]| {
            let terms: Vec<String> = (self.words.iter())
                .filter(|(name, words)| wanted.contains(name) && !words.is_empty())
                .map(|(name, words)| format!("tasks.{name} IN ({})", literals(words)))
                .collect();
            (!terms.is_empty()).then(|| format!("({})", terms.join(" AND ")))
        };
        by(&["name", "kind", "location"]).unwrap_or_else(|| "false".to_owned())
    }
}

fn literals(words: &[String]) -> String {
    words.iter().map(|word| format!("'{}'", word.replace('\'', "''"))).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn rows_say_where_to_look() {
        let rows = RecordBatch::try_from_iter([
            ("start", Arc::new(Int64Array::from(vec![50, 10])) as Arc<dyn Array>),
            ("duration", Arc::new(Int64Array::from(vec![5, 20]))),
            ("task", Arc::new(Int64Array::from(vec![7, 3]))),
        ])
        .unwrap();
        let stretch = Stretch::of(&rows, &Pairs::default()).unwrap();
        assert_eq!(stretch.window, Some((10, 55)));
        assert_eq!(stretch.tasks, [7, 3]);
        assert!(stretch.sql().contains("SELECT 6 AS first, 59 AS last"), "{}", stretch.sql());
        assert_eq!(numbered(Path::new("a/b.svg"), 1), Path::new("a/b.svg"));
        assert_eq!(numbered(Path::new("a/b.svg"), 3), Path::new("a/b-3.svg"));
    }
}
