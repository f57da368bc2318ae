//! `svg`: the tasks of a result as a Gantt chart.
//!
//! Needs `start` and `finish` (or `duration`); uses `run`, `location`, `name`, `kind`, `role` and `on_path` if present. The query
//! is sorted by start before it runs, so that tasks can be placed in rows as they arrive, and the memory for the chart
//! does not depend on their number.

use std::io::Write;

use datafusion::arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::datatypes::{Int32Type, Int64Type, SchemaRef};
use datafusion::common::Column;
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, cast, lit};
use tq_udfs::ticks::Tick;

use super::writer::{Output, Picture, Preparation, Writer, only_one};
use crate::charts::gantt::{Gantt, Span};
use crate::errors::Failure;

pub(crate) struct Svg {
    writer: Writer,
    gantt: Option<Gantt>,
    picture: Picture,
}

/// The columns that a chart reads, in the order that [`arrange`] puts them.
const TEXTS: [&str; 5] = ["run", "location", "name", "kind", "role"];

impl Svg {
    pub(crate) fn new(writer: Writer, tick: Tick, picture: Picture) -> Svg {
        let gantt = Gantt::new(tick).within(picture.slice).knowing(picture.names.clone());
        let gantt = match picture.outlined {
            Some(what) => gantt.outlining(what),
            None => gantt,
        };
        // A slice is of the times that the runs have.
        let gantt = if picture.names.has_runs() && picture.slice.is_whole() { gantt.on_one_start() } else { gantt };
        Svg { writer, gantt: Some(gantt), picture }
    }
}

/// Reduces the query to what a chart reads, sorted by start; the longer of two that start together comes first, so that
/// what it encloses goes below it.
fn arrange(frame: DataFrame) -> Result<DataFrame> {
    let (start, finish) =
        span(&frame, "svg draws tasks", "; `--chart` draws other results, e.g. `--chart 'bar x=duration y=name'`")?;
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let mut columns: Vec<Expr> = TEXTS
        .iter()
        .map(|name| {
            let text = column(&frame, name).unwrap_or_else(|| lit(""));
            cast(text, dictionary.clone()).alias(*name)
        })
        .collect();
    columns.push(cast(start, DataType::Int64).alias("start"));
    columns.push(cast(finish, DataType::Int64).alias("finish"));
    columns.push(cast(column(&frame, "on_path").unwrap_or_else(|| lit(false)), DataType::Boolean).alias("on_path"));
    let by = |name: &str, ascending| Expr::Column(Column::from_name(name)).sort(ascending, false);
    // Ties go by the task's number where there is one: comparing names costs much more.
    let tie = match column(&frame, "task") {
        Some(task) => {
            columns.push(task.alias("task"));
            vec!["task"]
        }
        None => vec!["location", "name"],
    };
    let ties = tie.into_iter().map(|name| by(name, true));
    frame.select(columns)?.sort([by("start", true), by("finish", false)].into_iter().chain(ties).collect())
}

/// The expressions of start and finish; `what` wants them, and `hint` is said where they are missing.
pub(super) fn span(frame: &DataFrame, what: &str, hint: &str) -> Result<(Expr, Expr)> {
    let start = column(frame, "start");
    let finish = column(frame, "finish")
        .or_else(|| Some(cast(start.clone()?, DataType::Int64) + cast(column(frame, "duration")?, DataType::Int64)));
    match (start, finish) {
        (Some(start), Some(finish)) => Ok((start, finish)),
        _ => {
            let fields = frame.schema().fields();
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            Err(DataFusionError::Plan(format!(
                "{what}: it needs the columns start and finish (or duration), and uses run, location, name and kind; \
                 this result has {}{hint}",
                names.join(", ")
            )))
        }
    }
}

/// The first column of that name, whatever table it is from.
pub(super) fn column(frame: &DataFrame, name: &str) -> Option<Expr> {
    frame
        .schema()
        .iter()
        .find(|(_, field)| field.name() == name)
        .map(|(qualifier, field)| Expr::Column(Column::from((qualifier, field))))
}

impl Output for Svg {
    fn preparation(&self) -> Preparation {
        Preparation { arrange, ..Preparation::default() }
    }

    fn begin(&mut self, _schema: &SchemaRef) -> Result<(), Failure> {
        if self.gantt.is_some() { Ok(()) } else { Err(only_one("svg")) }
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let Some(gantt) = &mut self.gantt else { return Ok(()) };
        let texts: [Texts<'_>; TEXTS.len()] = std::array::from_fn(|index| Texts::new(batch, index));
        let [starts, finishes] =
            [TEXTS.len(), TEXTS.len() + 1].map(|index| batch.column(index).as_primitive::<Int64Type>());
        let on_path = batch.column(TEXTS.len() + 2).as_boolean();
        for row in 0..batch.num_rows() {
            let known = |times: &Int64Array| times.is_valid(row).then(|| times.value(row));
            gantt.add(Span {
                run: texts[0].get(row),
                location: texts[1].get(row),
                name: texts[2].get(row),
                kind: texts[3].get(row),
                role: texts[4].get(row),
                times: known(starts).zip(known(finishes)),
                on_path: on_path.is_valid(row) && on_path.value(row),
            });
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        if let Some(gantt) = self.gantt.take() {
            self.writer
                .write_all(gantt.draw(&self.picture.title, &self.picture.order, &self.picture.names).as_bytes())?;
        }
        Ok(self.writer.flush()?)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A dictionary column, NULL as an empty text.
struct Texts<'a> {
    keys: &'a datafusion::arrow::array::Int32Array,
    words: &'a datafusion::arrow::array::StringArray,
}

impl<'a> Texts<'a> {
    fn new(batch: &'a RecordBatch, column: usize) -> Texts<'a> {
        let dictionary = batch.column(column).as_dictionary::<Int32Type>();
        Texts { keys: dictionary.keys(), words: dictionary.values().as_string::<i32>() }
    }

    fn get(&self, row: usize) -> &'a str {
        if self.keys.is_null(row) {
            return "";
        }
        let key = self.keys.value(row) as usize;
        if self.words.is_null(key) { "" } else { self.words.value(key) }
    }
}
