//! Rows become text, files and pictures: one file per format, all behind [`Output`].
//!
//! Life of the data: `begin` with the columns of a result → `rows` for each batch as it arrives → `end`; `close` after
//! the last result. Nothing keeps a whole result (the table printer looks at the first rows for its widths, the Gantt
//! chart keeps pixels). Into a file, an output is written beside its final name and renamed by [`Destination::commit`],
//! so that a failed query leaves no half answer behind.

mod arrow;
pub(crate) mod buffer;
pub(crate) mod cells;
mod chart;
pub(crate) mod chrome;
mod delimited;
mod json;
pub(crate) mod markdown;
mod parquet;
pub(crate) mod svg;
pub(crate) mod table;
mod unique;

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use tempfile::TempPath;
use tq_engine::trace::Slice;
use tq_engine::trace::temporary::Registered;
use tq_udfs::ticks::Tick;

use crate::charts::Chart;
use crate::charts::gantt::LaneOrder;
use crate::connection::Arrange;
use crate::errors::{Failure, Problem, reason};
use crate::files;
use crate::text::runner;

pub(crate) use crate::text::runner::Spelling;
pub(crate) use cells::Cells;
pub(crate) use table::TableOutput;

/// Where bytes go.
pub(crate) type Writer = Box<dyn Write + Send>;

/// A format that rows are written in.
pub(crate) trait Output {
    /// A result begins.
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Failure>;
    /// Some of its rows.
    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure>;
    /// A query of the session whose rows belong to the result, asked when the rows so far are complete; its rows follow by
    /// [`Output::rows`].
    fn further(&mut self) -> Option<&'static str> {
        None
    }
    /// The result is complete.
    fn end(&mut self) -> Result<(), Failure>;
    /// The last result is complete: footers, flush.
    fn close(&mut self) -> Result<(), Failure>;
}

/// The formats of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Csv,
    Tsv,
    Json,
    Ndjson,
    Markdown,
    Parquet,
    Arrow,
    Svg,
    Chrome,
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
        let (width, colours) = (crate::terminal::width(), crate::terminal::colours(&io::stdout()));
        Look { tick, width, colours, people: true, expanded: false }
    }

    /// Plain text of any width.
    pub(crate) fn plain(tick: Tick) -> Look {
        Look { tick, width: None, colours: false, people: true, expanded: false }
    }
}

impl Format {
    /// What a file name promises.
    pub(crate) fn of_extension(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Some(match extension.as_str() {
            "txt" => Format::Table,
            "csv" => Format::Csv,
            "tsv" | "tab" => Format::Tsv,
            "json" => Format::Json,
            "ndjson" | "jsonl" => Format::Ndjson,
            "md" | "markdown" => Format::Markdown,
            "parquet" => Format::Parquet,
            "arrow" | "arrows" | "feather" | "ipc" => Format::Arrow,
            "svg" => Format::Svg,
            _ => return None,
        })
    }

    /// What the output does to a query before it is executed.
    pub(crate) fn arrange(self, chart: Option<&Chart>) -> Arrange {
        match self {
            Format::Svg if chart.is_none_or(|chart| chart.kind() == "gantt") => svg::arrange,
            Format::Chrome => chrome::arrange,
            _ => Ok,
        }
    }

    /// Bytes that a terminal cannot show.
    fn is_binary(self) -> bool {
        matches!(self, Format::Parquet | Format::Arrow)
    }

    fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Json => "json",
            Format::Ndjson => "ndjson",
            Format::Markdown => "markdown",
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
            Format::Svg => "svg",
            Format::Chrome => "chrome",
        }
    }
}

/// The format of an answer: as told, else by the file's extension, else by what stdout is.
pub(crate) fn choose(told: Option<Format>, file: Option<&Path>) -> Result<Format, Failure> {
    let format = match (told, file) {
        (Some(format), _) => format,
        (None, Some(path)) => Format::of_extension(path).ok_or_else(|| {
            Problem::new(format!("the extension of `{}` tells no format", path.display()))
                .hint("say it: `--format csv` (or table, tsv, json, ndjson, markdown, parquet, arrow, svg, chrome)")
        })?,
        (None, None) if io::stdout().is_terminal() => Format::Table,
        (None, None) => Format::Csv,
    };
    if format.is_binary() && file.is_none() && io::stdout().is_terminal() {
        let name = format.name();
        return Err(Problem::new(format!("{name} is not for a terminal"))
            .hint(format!("write it to a file: `-o answer.{name}`"))
            .into());
    }
    Ok(format)
}

/// Refuses to put a picture into a file whose name says something else.
pub(crate) fn must_be_svg(file: &Path) -> Result<(), Failure> {
    match file.extension() {
        Some(extension) if Format::of_extension(file) != Some(Format::Svg) => {
            let extension = extension.to_string_lossy();
            Err(Problem::new(format!("a picture is SVG, and the file is called `.{extension}`"))
                .hint("call it `picture.svg`; browsers show it, `rsvg-convert` makes a PNG of it")
                .into())
        }
        _ => Ok(()),
    }
}

/// What a picture wants to know beside the rows.
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
}

/// The output of a format.
pub(crate) fn create(
    format: Format,
    writer: Writer,
    look: &Look,
    file: Option<&Path>,
    picture: Picture,
) -> Box<dyn Output> {
    match format {
        Format::Table => Box::new(TableOutput::new(writer, look.clone())),
        Format::Csv => Box::new(delimited::Delimited::csv(writer)),
        Format::Tsv => Box::new(delimited::Delimited::tsv(writer)),
        Format::Json => Box::new(json::Json::array(writer)),
        Format::Ndjson => Box::new(json::Json::lines(writer)),
        Format::Markdown => Box::new(markdown::Markdown::new(writer, look.tick)),
        Format::Parquet => Box::new(parquet::Parquet::new(writer)),
        // A pipe cannot be read from its end, where the file form has its footer.
        Format::Arrow => {
            let streamed = file.is_none_or(|path| path.extension().is_some_and(|extension| extension == "arrows"));
            Box::new(arrow::Arrow::new(writer, streamed))
        }
        Format::Svg => match picture.chart {
            Some(chart) if chart.kind() != "gantt" => {
                Box::new(chart::ChartOutput::new(writer, look.tick, picture.title, chart))
            }
            _ => Box::new(svg::Svg::new(writer, look.tick, picture)),
        },
        Format::Chrome => Box::new(chrome::Chrome::new(writer, look.tick, chrome::Places::default())),
    }
}

/// The place of an output: stdout, or a file that appears when it is complete.
pub(crate) struct Destination {
    /// The partial file and its final name.
    rename: Option<(TempPath, PathBuf)>,
    /// A signal does not leave the partial file behind either.
    _registered: Option<Registered>,
}

/// Standard output. Where a CI system reads it for commands, what is written is spelt so that it has none.
pub(crate) fn stdout(spelling: Spelling) -> Writer {
    let stdout = BufWriter::with_capacity(64 << 10, io::stdout());
    let is_for_people = matches!(spelling, Spelling::Escape | Spelling::Reference) && runner::is_listening();
    match is_for_people || files::stdout_is_a_log() {
        true => Box::new(runner::Guarded::new(stdout, spelling)),
        false => Box::new(stdout),
    }
}

impl Destination {
    /// Opens stdout or a file to write into.
    pub(crate) fn open(file: Option<&Path>, spelling: Spelling) -> Result<(Destination, Writer), Failure> {
        let Some(path) = file else {
            return Ok((Destination { rename: None, _registered: None }, stdout(spelling)));
        };
        let failed = |error: io::Error| Problem::file("write", path, &error);
        // `/dev/null`, a named pipe: what is there already and is no plain file stays what it is.
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(path).map_err(failed)?;
            let destination = Destination { rename: None, _registered: None };
            return Ok((destination, Box::new(BufWriter::new(Named { file, path: path.to_owned() }))));
        }
        let (file, partial) = files::beside(path).map_err(failed)?.into_parts();
        let registered = Registered::new(&partial);
        let destination = Destination { rename: Some((partial, path.to_owned())), _registered: Some(registered) };
        Ok((destination, Box::new(BufWriter::new(Named { file, path: path.to_owned() }))))
    }

    /// The output is complete: gives the file its name.
    pub(crate) fn commit(mut self) -> Result<(), Failure> {
        match self.rename.take() {
            Some((partial, path)) => {
                partial.persist(&path).map_err(|error| Problem::file("write", &path, &error.error).into())
            }
            None => Ok(()),
        }
    }
}

/// A file that names itself when it cannot be written.
struct Named {
    file: File,
    path: PathBuf,
}

impl Named {
    fn named<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted => error,
            kind => io::Error::new(kind, format!("`{}`: {}", self.path.display(), reason(&error))),
        })
    }
}

impl Write for Named {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        self.named(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        self.named(flushed)
    }
}

/// The refusal of a second result by formats that hold one.
fn only_one(format: &str) -> Failure {
    Problem::new(format!("{format} holds one result, and this is the second"))
        .hint("keep one SELECT, or write each into a file of its own")
        .into()
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::BrokenPipe,
            kind => {
                let problem = Problem::new(format!("cannot write the answer: {}", reason(&error)));
                match kind {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                        problem.hint("make room, or write it elsewhere with `-o FILE`").into()
                    }
                    _ => problem.into(),
                }
            }
        }
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => error.into(),
            error => Problem::new(format!("cannot write the answer: {error}")).into(),
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Outputs that write into memory.

    use datafusion::arrow::array::RecordBatch;

    use super::Output;
    pub(crate) use super::buffer::Buffer;

    /// Writes batches as one result.
    pub(crate) fn write(output: &mut dyn Output, batches: &[RecordBatch]) {
        output.begin(&batches[0].schema()).unwrap();
        for batch in batches {
            output.rows(batch).unwrap();
        }
        output.end().unwrap();
        output.close().unwrap();
    }
}
