//! Pictures of answers: the one place between saved queries and `charts/`.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use tq_engine::queries::{Chart as ChartLine, SavedQuery};
use tq_engine::sql::{self, Statement};

use crate::ask::{Asker, Params};
use crate::charts::Chart;
use crate::errors::{Failure, Problem};
use crate::output::buffer::Buffer;
use crate::output::{self, Format, Look, Output, Picture};

/// The charts of a header in its order, each with its line.
///
/// # Errors
/// A line that is no chart, with its place: a query with one is wrong even when nothing is drawn.
pub(crate) fn charts(query: &SavedQuery, params: &Params) -> Result<Vec<(Chart, u64)>, Failure> {
    query.header.charts.iter().map(|line| Ok((chart(line, query, params)?, line.line as u64))).collect()
}

/// The chart of a line of a header; a `$name` in it is what the parameter names.
fn chart(line: &ChartLine, query: &SavedQuery, params: &Params) -> Result<Chart, Failure> {
    let named = |value: &str| -> Option<String> {
        let (_, value) = params.iter().find(|(name, _)| Some(name.as_str()) == value.strip_prefix('$'))?;
        Some(value.to_string())
    };
    let pairs: Vec<(&str, String)> =
        line.options.iter().map(|(key, value)| (key.as_str(), named(value).unwrap_or_else(|| value.clone()))).collect();
    let pairs = pairs.iter().map(|(key, value)| (*key, value.as_str()));
    Chart::new(&line.kind, pairs).map_err(|error| Failure::from(error).in_file(&query.file(), Some(line.line as u64)))
}

/// The pictures of the charts of a saved query, in the order of its header; without rows there is none.
pub(crate) fn of_query(
    asker: &mut Asker,
    query: &SavedQuery,
    params: &Params,
    picture: &Picture,
) -> Result<Vec<String>, Failure> {
    let mut drawn = Vec::new();
    for (chart, line) in charts(query, params)? {
        let picture = Picture { chart: Some(chart), ..picture.clone() };
        let placed = |failure: Failure| failure.in_file_of_chart(&query.file(), Some(line), query.statement.line);
        drawn.extend(draw(asker, &query.statement, params, picture).map_err(placed)?);
    }
    Ok(drawn)
}

/// The Gantt chart of SQL of ours.
pub(crate) fn gantt_of_sql(asker: &mut Asker, text: &str, picture: Picture) -> Result<String, Failure> {
    let statements = sql::parse(text)?;
    let statement = statements.first().ok_or_else(|| Problem::internal("no statement"))?;
    Ok(draw(asker, statement, &Params::new(), picture)?.unwrap_or_default())
}

/// Rows stream into the picture, which says what it wants of them; `None` = there are none.
fn draw(
    asker: &mut Asker,
    statement: &Statement,
    params: &Params,
    picture: Picture,
) -> Result<Option<String>, Failure> {
    let buffer = Buffer::default();
    let arrange = Format::Svg.arrange(picture.chart.as_ref());
    let look = Look::plain(asker.session().tick());
    let mut output = Counted { output: output::create(Format::Svg, buffer.writer(), &look, None, picture), rows: 0 };
    asker.run(statement, params, arrange, &mut output)?;
    output.close()?;
    Ok((output.rows > 0).then(|| buffer.text()))
}

/// An output that knows whether anything came.
struct Counted {
    output: Box<dyn Output>,
    rows: usize,
}

impl Output for Counted {
    fn begin(&mut self, schema: &SchemaRef) -> Result<(), Failure> {
        self.output.begin(schema)
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        self.rows += batch.num_rows();
        self.output.rows(batch)
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.output.end()
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.output.close()
    }
}
