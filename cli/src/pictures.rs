//! Pictures of answers: the only link between saved queries and `charts/`.

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef};
use tq_engine::queries::{Chart as ChartLine, SavedQuery};
use tq_engine::sql::{self, Statement};

use crate::charts::gantt::LaneOrder;
use crate::charts::{Chart, Names, natural};
use crate::connection::{Connection, Params};
use crate::errors::{Failure, Problem};
use crate::format::Format;
use crate::output::buffer::Buffer;
use crate::output::chrome::places::{LOCATIONS, Places};
use crate::output::{self, Look, Output, Picture, Preparation};

/// What an output of that format wants to know of the session before a query runs.
pub(crate) fn surroundings(connection: &mut Connection, format: Format) -> Result<Picture, Failure> {
    match format {
        Format::Svg => of_session(connection),
        Format::Chrome => {
            let places = Places::of(&connection.collect(LOCATIONS, &Params::new())?)?;
            Ok(Picture { places, ..Picture::default() })
        }
        _ => Ok(Picture::default()),
    }
}

/// The title of a picture, and the order in which the traces want their locations.
pub(crate) fn of_session(connection: &mut Connection) -> Result<Picture, Failure> {
    let runs: Vec<String> = connection.session().runs().iter().map(|run| run.name.clone()).collect();
    let title = match runs.as_slice() {
        [first, second, third, _, others @ ..] => format!("{first}, {second}, {third} and {} more", others.len() + 1),
        _ => runs.join(", "),
    };
    let names = Names::of_runs(runs.into_iter());
    let rows = connection.collect(
        "SELECT locations.run, location, name, run_number, sort_index FROM locations JOIN runs ON runs.run = locations.run",
        &Params::new(),
    )?;
    let text = |column: usize| -> Result<Vec<String>, Failure> {
        let texts = cast(rows.column(column), &DataType::Utf8)?;
        Ok(texts.as_string::<i32>().iter().map(|text| text.unwrap_or_default().to_owned()).collect())
    };
    let number = |column: usize| cast(rows.column(column), &DataType::Int64);
    let (run_numbers, places) = (number(3)?, number(4)?);
    let (run_numbers, places) = (run_numbers.as_primitive::<Int64Type>(), places.as_primitive::<Int64Type>());
    let places = run_numbers.iter().zip(places).map(|(run, place)| (run, place.is_none(), place));
    let lanes = text(0)?.into_iter().zip(text(1)?).zip(text(2)?).map(|((run, location), name)| (run, location, name));
    let mut placed: Vec<_> = places.zip(lanes).collect();
    placed.sort_by_cached_key(|(place, (_, location, _))| (*place, natural(location)));
    let lanes = placed.into_iter().map(|(_, lane)| lane).collect();
    Ok(Picture { title, order: LaneOrder { lanes }, slice: connection.session().slice(), names, ..Picture::default() })
}

/// The charts of a header in its order, each with its line.
///
/// # Errors
/// A line that is no chart, with its place: a query with one is wrong even when nothing is drawn.
pub(crate) fn charts(query: &SavedQuery, params: &Params) -> Result<Vec<(Chart, u64)>, Failure> {
    query.header.charts.iter().map(|line| Ok((chart(line, query, params)?, line.line as u64))).collect()
}

/// The chart of a line of a header; a `$name` in it is what the parameter names, and nothing where that is NULL.
fn chart(line: &ChartLine, query: &SavedQuery, params: &Params) -> Result<Chart, Failure> {
    let pair = |(key, value): &'_ (String, String)| -> Option<(String, String)> {
        let named = params.iter().find(|(name, _)| Some(name.as_str()) == value.strip_prefix('$'));
        let value = match named {
            Some((_, named)) if named.is_null() => return None,
            Some((_, named)) => named.to_string(),
            None => value.clone(),
        };
        Some((key.clone(), value))
    };
    let pairs: Vec<(String, String)> = line.options.iter().filter_map(pair).collect();
    let pairs = pairs.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    Chart::new(&line.kind, pairs).map_err(|error| Failure::from(error).in_file(&query.file(), Some(line.line as u64)))
}

/// A picture of the answer of a saved query.
pub(crate) struct Drawn {
    pub(crate) svg: String,
    /// One bar: its row says the same in less space.
    pub(crate) is_one_bar: bool,
}

/// The pictures of the charts of a saved query, in the order of its header; without rows there is none.
pub(crate) fn of_query(
    connection: &mut Connection,
    query: &SavedQuery,
    params: &Params,
    picture: &Picture,
) -> Result<Vec<Drawn>, Failure> {
    let mut drawn = Vec::new();
    for ((chart, line), ChartLine { kind, .. }) in charts(query, params)?.into_iter().zip(&query.header.charts) {
        let picture = Picture { chart: Some(chart), ..picture.clone() };
        let placed = |failure: Failure| failure.in_file_of_chart(&query.file(), Some(line), query.statement.line);
        let (svg, rows) = draw(connection, &query.statement, params, picture).map_err(placed)?;
        if rows > 0 {
            drawn.push(Drawn { svg, is_one_bar: rows == 1 && kind == "bar" });
        }
    }
    Ok(drawn)
}

/// The Gantt chart of SQL of ours.
pub(crate) fn gantt_of_sql(connection: &mut Connection, text: &str, picture: Picture) -> Result<String, Failure> {
    let statements = sql::parse(text)?;
    let statement = statements.first().ok_or_else(|| Problem::internal("no statement"))?;
    Ok(draw(connection, statement, &Params::new(), picture)?.0)
}

/// Rows stream into the picture, which says what it wants of them; beside it, how many there are.
pub(crate) fn draw(
    connection: &mut Connection,
    statement: &Statement,
    params: &Params,
    picture: Picture,
) -> Result<(String, usize), Failure> {
    let buffer = Buffer::default();
    let look = Look::plain(connection.session().tick());
    let mut output = Counted { output: output::create(Format::Svg, buffer.writer(), &look, None, picture), rows: 0 };
    connection.run(statement, params, &mut output)?;
    output.close()?;
    Ok((buffer.text(), output.rows))
}

/// An output that counts rows.
struct Counted {
    output: Box<dyn Output>,
    rows: usize,
}

impl Output for Counted {
    fn preparation(&self) -> Preparation {
        self.output.preparation()
    }

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
