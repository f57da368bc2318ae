//! Turns rows into text, files and pictures: one source file per format, all behind the trait [`Output`].
//!
//! Life of the data: the output says what is to be done to the query ([`Preparation`]) → `begin` with the columns of a result →
//! `rows` for each batch as it arrives → `end`; `close` after the last result. No format that streams keeps a whole result (the
//! table printer looks at the first rows for its widths, the Gantt chart keeps pixels). A file is written next to its final name
//! and renamed by [`Destination::commit`], so that a failed query leaves no partial answer behind.

mod arrow;
pub(crate) mod buffer;
pub(crate) mod cells;
mod chart;
pub(crate) mod chrome;
mod delimited;
mod destination;
mod json;
pub(crate) mod markdown;
mod parquet;
pub(crate) mod svg;
pub(crate) mod table;
mod unique;
mod writer;

use std::io::{self, IsTerminal};
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use tq_udfs::ticks::Tick;

use crate::errors::{Failure, Problem};
use crate::format::Format;

pub(crate) use cells::Cells;
pub(crate) use destination::{Destination, print, print_as_it_is, stdout};
pub(crate) use table::TableOutput;
pub(crate) use writer::{Look, Output, Picture, Preparation, Writer};

/// The format of an answer: as told, else by the file's extension, else by what stdout is.
pub(crate) fn choose(told: Option<Format>, file: Option<&Path>) -> Result<Format, Failure> {
    let format = match (told, file) {
        (Some(format), _) => format,
        (None, Some(path)) => Format::of_extension(path).ok_or_else(|| {
            Problem::new(format!("the extension of `{}` names no format", path.display()))
                .hint("name one: `--format csv` (or table, tsv, json, ndjson, markdown, parquet, arrow, svg, chrome)")
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
            Err(Problem::new(format!("a picture is SVG, but the name of the file ends in `.{extension}`"))
                .hint("call it `picture.svg`; browsers show it, `rsvg-convert` makes a PNG of it")
                .into())
        }
        _ => Ok(()),
    }
}

/// Writes a table of our own, whose times are nanoseconds: to a file, or to standard output.
pub(crate) fn write_table(batch: &RecordBatch, format: Format, target: Option<&Path>) -> Result<(), Failure> {
    if matches!(format, Format::Svg | Format::Chrome) {
        return Err(Problem::new(format!("{} is for spans of time, and this list has none", format.name()))
            .hint("`--format csv` (or table, tsv, json, ndjson, markdown, parquet, arrow)")
            .into());
    }
    let (destination, writer) = Destination::open(target, format.spelling())?;
    let tick = Tick::Nanosecond;
    let look = if target.is_some() { Look::plain(tick) } else { Look::of_stdout(tick) };
    let mut output = create(format, writer, &look, target, Picture::default());
    output.begin(&batch.schema())?;
    output.rows(batch)?;
    output.end()?;
    output.close()?;
    drop(output);
    destination.commit()
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
                Box::new(chart::ChartOutput::new(writer, look.tick, picture.title, chart, picture.names))
            }
            _ => Box::new(svg::Svg::new(writer, look.tick, picture)),
        },
        Format::Chrome => Box::new(chrome::Chrome::new(writer, look.tick, picture.places)),
    }
}
