//! Pictures and pages of a session.

use datafusion::arrow::array::RecordBatch;
use tq_engine::sql::Statement;
use tq_udfs::ticks::Tick;

use super::errors::{Error, Kind};
use super::pending::Pending;
use super::session::{Session, saved};
use crate::charts::Chart;
use crate::check;
use crate::commands::report;
use crate::connection::Params;
use crate::errors::{Failure, Problem};
use crate::format::Format;
use crate::output::{Picture, markdown};
use crate::pictures;
use crate::report::html;
use crate::terminal;

/// A page of HTML that needs nothing else.
#[derive(Debug, Clone)]
pub struct Page {
    /// Its text.
    pub html: String,
    /// Why sections have no answer.
    pub unanswered: Vec<Error>,
}

/// Shows rows to people: times have units.
#[derive(Debug, Clone, Copy)]
pub struct Shown(Tick);

impl Shown {
    pub(super) fn new(tick: Tick) -> Shown {
        Shown(tick)
    }

    /// A table of HTML, in which every text is escaped.
    ///
    /// # Errors
    /// A column of a type that has no text.
    pub fn html(self, rows: &RecordBatch) -> Result<String, Error> {
        let table = markdown::table(rows, self.0).map_err(|failure| Error::of(Kind::Query, failure))?;
        Ok(html::body(&table))
    }

    /// A table of text.
    ///
    /// # Errors
    /// A column of a type that has no text.
    pub fn text(self, rows: &RecordBatch) -> Result<String, Error> {
        check::table(rows, self.0).map_err(|failure| Error::of(Kind::Query, failure))
    }
}

impl Session {
    /// How its rows are shown to people.
    pub fn shown(&self) -> Shown {
        Shown::new(self.0.session.tick())
    }

    /// Draws the answer of SQL as SVG: `gantt`, `bar x=duration y=name` and their like.
    pub fn draw(&self, text: String, chart: String, params: Params) -> Pending<String> {
        let shared = std::sync::Arc::clone(&self.0);
        Pending::begin(Kind::Query, move || {
            let chart = Chart::parse(&chart)?;
            let mut statements = tq_engine::sql::parse(&text)?;
            let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
                return Err(Problem::new("a picture is of one question").into());
            };
            svg(&shared, &statement, &params, Some(chart), None)
        })
    }

    /// Draws the answer of a saved query as its header says.
    pub fn draw_saved(&self, name: String, given: Vec<(String, String)>) -> Pending<String> {
        let shared = std::sync::Arc::clone(&self.0);
        Pending::begin(Kind::Query, move || {
            let query = saved(&name)?;
            shared.connection()?.meets(&query)?;
            let params = query.bind(&given, shared.session.tick())?;
            let chart = pictures::charts(&query, &params)?.into_iter().next().map(|(chart, _)| chart);
            let placed = |failure: Failure| failure.in_file(&query.file(), Some(query.statement.line));
            svg(&shared, &query.statement, &params, chart, Some(query.title())).map_err(placed)
        })
    }

    /// The page that `tq report --html` writes.
    pub fn report(&self) -> Pending<Page> {
        let shared = std::sync::Arc::clone(&self.0);
        Pending::begin(Kind::Query, move || {
            let (html, unanswered) = report::built_in(&mut shared.connection()?)?;
            let unanswered = unanswered.into_iter().map(|problem| Error::of_problem(Kind::Limit, problem)).collect();
            Ok(Page { html, unanswered })
        })
    }
}

fn svg(
    shared: &super::shared::Shared,
    statement: &Statement,
    params: &Params,
    chart: Option<Chart>,
    title: Option<&str>,
) -> Result<String, Failure> {
    let mut connection = shared.connection()?;
    let mut picture = Picture { chart, ..pictures::surroundings(&mut connection, Format::Svg)? };
    if let Some(title) = title {
        title.clone_into(&mut picture.title);
    }
    let drawn = pictures::draw(&mut connection, statement, params, picture);
    connection.take_notes().iter().for_each(|note| terminal::note(note));
    Ok(drawn?.0)
}
