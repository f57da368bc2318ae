//! The trait of all outputs, with what an output demands before a query runs and what it is told beside the rows.

use std::io::{self, Write};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use tq_engine::trace::Slice;
use tq_udfs::ticks::Tick;

use super::chrome::places::Places;
use crate::charts::gantt::LaneOrder;
use crate::charts::{Chart, Names};
use crate::errors::{Failure, Problem};
use crate::terminal;

/// Where bytes go.
pub(crate) type Writer = Box<dyn Write + Send>;

/// What an output does to a query before it is executed, and which other queries it needs.
#[derive(Clone, Copy)]
pub(crate) struct Preparation {
    /// An order, fewer columns.
    pub(crate) arrange: fn(DataFrame) -> Result<DataFrame, DataFusionError>,
    /// The queries of the session whose rows follow those of a result with such columns.
    pub(crate) beside: fn(&Schema) -> &'static [&'static str],
}

impl Default for Preparation {
    fn default() -> Self {
        Preparation { arrange: Ok, beside: |_| &[] }
    }
}

/// A format that rows are written in.
pub(crate) trait Output {
    /// What the query must be changed to, and which others must run, before the first result begins.
    fn preparation(&self) -> Preparation {
        Preparation::default()
    }
    /// A result begins.
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Failure>;
    /// Some of its rows.
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure>;
    /// The result is complete.
    fn end(&mut self) -> Result<(), Failure>;
    /// The last result is complete: footers, flush.
    fn close(&mut self) -> Result<(), Failure>;
}

/// How people see an answer.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    /// The length of a tick.
    pub(crate) tick: Tick,
    /// Columns of the terminal; `None` = as wide as it gets.
    pub(crate) width: Option<usize>,
    /// Whether to colour.
    pub(crate) colours: bool,
    /// Whether times have units; otherwise they are ticks.
    pub(crate) people: bool,
    /// Whether each row is a list of its columns, one below the other.
    pub(crate) expanded: bool,
}

impl Look {
    /// As stdout is.
    pub(crate) fn of_stdout(tick: Tick) -> Look {
        let (width, colours) = (terminal::width(), terminal::colours(&io::stdout()));
        Look { tick, width, colours, people: true, expanded: false }
    }

    /// Plain text of any width.
    pub(crate) fn plain(tick: Tick) -> Look {
        Look { tick, width: None, colours: false, people: true, expanded: false }
    }
}

/// What a picture, or a trace for a viewer, needs to know besides the rows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Picture {
    /// What is written above it.
    pub(crate) title: String,
    /// The order of locations.
    pub(crate) order: LaneOrder,
    /// The stretch of time that is drawn; all of it unless told.
    pub(crate) slice: Slice,
    /// What to draw; a Gantt chart unless told.
    pub(crate) chart: Option<Chart>,
    /// What the outlined tasks of a Gantt chart are; the critical path unless told.
    pub(crate) outlined: Option<&'static str>,
    /// What names are called and coloured; pictures of one page share it.
    pub(crate) names: Names,
    /// What a viewer of Chrome traces calls the locations.
    pub(crate) places: Places,
}

/// The refusal of a second result by formats that hold one.
pub(super) fn only_one(format: &str) -> Failure {
    Problem::new(format!("{format} holds one result, and this is the second"))
        .hint("keep one SELECT, or write each into a file of its own")
        .into()
}
