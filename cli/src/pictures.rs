//! Pictures of answers: the one place between saved queries and `charts/`.

use tq_engine::queries::{Chart as ChartLine, SavedQuery};
use tq_engine::sql::{self, Statement};

use crate::charts::Chart;
use crate::connection::{Connection, Params};
use crate::errors::{Failure, Problem};
use crate::output::buffer::Buffer;
use crate::output::{self, Format, Look, Picture};

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

/// The pictures of the charts of a saved query, in the order of its header.
pub(crate) fn of_query(
    connection: &mut Connection,
    query: &SavedQuery,
    params: &Params,
    picture: &Picture,
) -> Result<Vec<String>, Failure> {
    let mut drawn = Vec::new();
    for (chart, line) in charts(query, params)? {
        let picture = Picture { chart: Some(chart), ..picture.clone() };
        let placed = |failure: Failure| failure.in_file_of_chart(&query.file(), Some(line), query.statement.line);
        drawn.push(draw(connection, &query.statement, params, picture).map_err(placed)?);
    }
    Ok(drawn)
}

/// The Gantt chart of SQL of ours.
pub(crate) fn gantt_of_sql(connection: &mut Connection, text: &str, picture: Picture) -> Result<String, Failure> {
    let statements = sql::parse(text)?;
    let statement = statements.first().ok_or_else(|| Problem::internal("no statement"))?;
    draw(connection, statement, &Params::new(), picture)
}

/// Rows stream into the picture, which says what it wants of them.
fn draw(
    connection: &mut Connection,
    statement: &Statement,
    params: &Params,
    picture: Picture,
) -> Result<String, Failure> {
    let buffer = Buffer::default();
    let arrange = Format::Svg.arrange(picture.chart.as_ref());
    let look = Look::plain(connection.session().tick());
    let mut output = output::create(Format::Svg, buffer.writer(), &look, None, picture);
    connection.run(statement, params, arrange, output.as_mut())?;
    output.close()?;
    Ok(buffer.text())
}
