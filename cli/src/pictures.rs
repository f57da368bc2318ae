//! Pictures of answers: the one place between rows and `charts/`.
//!
//! A Gantt chart streams, since it may show millions of tasks; the other kinds draw an answer that is in memory.

use datafusion::arrow::array::RecordBatch;
use tq_engine::queries::{Chart, SavedQuery};
use tq_engine::sql::{self, Statement};

use crate::ask::{Asker, Params};
use crate::errors::{Failure, Problem};
use crate::output::buffer::Buffer;
use crate::output::svg::{self, Svg};
use crate::output::{Output, Picture};

/// The pictures of the charts of a saved query, in the order of its header.
pub(crate) fn of_query(
    asker: &mut Asker,
    query: &SavedQuery,
    params: &Params,
    picture: &Picture,
) -> Result<Vec<String>, Failure> {
    let mut answer: Option<RecordBatch> = None;
    let mut drawn = Vec::new();
    for chart in &query.header.charts {
        let placed = |failure: Failure| failure.in_file(&query.file(), Some(chart.line as u64));
        if chart.kind == "gantt" {
            drawn.push(gantt(asker, &query.statement, params, picture.clone()).map_err(placed)?);
            continue;
        }
        let batch = match answer.take() {
            Some(batch) => batch,
            None => asker
                .answer(&query.statement, params)
                .map_err(|failure| failure.in_file(&query.file(), Some(query.statement.line)))?,
        };
        drawn.push(of_answer(chart, query.title(), &batch, asker).map_err(placed)?);
        answer = Some(batch);
    }
    Ok(drawn)
}

/// The Gantt chart of a statement whose rows are tasks.
pub(crate) fn gantt(
    asker: &mut Asker,
    statement: &Statement,
    params: &Params,
    picture: Picture,
) -> Result<String, Failure> {
    let buffer = Buffer::default();
    let mut chart = Svg::new(buffer.writer(), asker.session().tick(), picture);
    asker.run(statement, params, svg::arrange, &mut chart)?;
    chart.close()?;
    Ok(buffer.text())
}

/// The Gantt chart of SQL of ours.
pub(crate) fn gantt_of_sql(asker: &mut Asker, text: &str, picture: Picture) -> Result<String, Failure> {
    let statements = sql::parse(text)?;
    let statement = statements.first().ok_or_else(|| Problem::internal("no statement"))?;
    gantt(asker, statement, &Params::new(), picture)
}

/// A chart of rows that are there.
pub(crate) fn of_answer(chart: &Chart, _title: &str, _batch: &RecordBatch, _asker: &Asker) -> Result<String, Failure> {
    Err(Problem::new(format!("`{}` is no kind of chart", chart.kind)).into())
}
