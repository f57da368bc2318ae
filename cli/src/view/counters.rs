//! Counters as the page draws them: what each measured over time, in as many pixels as there are.

use std::collections::HashMap;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use serde_json::json;
use tq_udfs::bins::Edges;
use tq_udfs::graph::NONE;

use super::model::{Frame, Model};
use super::wire::Columns;
use crate::connection::{Connection, Params};
use crate::errors::{Failure, Problem};
use crate::output::Output;

/// What one location measured.
pub(super) struct Series {
    lane: Option<u32>,
    run: String,
    name: String,
    unit: Option<String>,
    /// In order of time.
    times: Vec<i64>,
    values: Vec<f64>,
}

/// All of them.
pub(super) struct Counters {
    series: Vec<Series>,
    /// The memory of the values, given back on drop.
    _memory: MemoryReservation,
}

const VALUES: &str = "SELECT run, coalesce(location, '') AS location, name, unit, time, \
    CASE kind WHEN 'delta' THEN sum(value) OVER (PARTITION BY run, location, name, unit ORDER BY time) ELSE value END AS value FROM counters \
    WHERE time IS NOT NULL AND value IS NOT NULL ORDER BY run, location, name, unit, time";

impl Counters {
    pub(super) fn read(connection: &mut Connection, model: &Model) -> Result<Counters, Failure> {
        let pool = &connection.session().context().runtime_env().memory_pool;
        let memory = MemoryConsumer::new("counters of the page").register(pool);
        let mut reading = Reading { series: Vec::new(), known: HashMap::new(), memory, model };
        for statement in &tq_engine::sql::parse(VALUES)? {
            connection.run(statement, &Params::new(), &mut reading)?;
        }
        Ok(Counters { series: reading.series, _memory: reading.memory })
    }

    pub(super) fn len(&self) -> usize {
        self.series.len()
    }

    /// First and last time of a value, behind it.
    pub(super) fn reach(&self, frame: Frame<'_>) -> Option<(i64, i64)> {
        let ends = self.series.iter().filter_map(|series| {
            let shift = frame.shift_of(series.lane, Some(&series.run));
            let shown = |time: &i64| time.saturating_sub(shift);
            Some((shown(series.times.first()?), shown(series.times.last()?).saturating_add(1)))
        });
        ends.reduce(|(first, last), (start, finish)| (first.min(start), last.max(finish)))
    }

    /// What there is, for the page: series by number.
    pub(super) fn columns(&self) -> Columns {
        let all = &self.series;
        let mut columns = Columns::default();
        let mut table = columns.table("counters", all.len());
        table.u32("lane", all.iter().map(|series| series.lane.unwrap_or(NONE)));
        table.texts("run", all.iter().map(|series| Some(series.run.as_str())));
        table.texts("name", all.iter().map(|series| Some(series.name.as_str())));
        table.texts("unit", all.iter().map(|series| series.unit.as_deref()));
        table.f64("least", all.iter().map(|series| series.values.iter().copied().fold(f64::INFINITY, f64::min)));
        table.f64("most", all.iter().map(|series| series.values.iter().copied().fold(f64::NEG_INFINITY, f64::max)));
        table.i64("points", all.iter().map(|series| series.times.len() as i64));
        table.end();
        columns
    }

    /// What a series measured in [from, to): of each bin with values the least, the greatest and the last; `before` is the value that
    /// holds where the range begins. `None` for a series that is not there, or a bin beyond a BIGINT.
    pub(super) fn tile(&self, frame: Frame<'_>, number: usize, from: i64, to: i64, bins: usize) -> Option<Columns> {
        let series = self.series.get(number)?;
        let shift = frame.shift_of(series.lane, Some(&series.run));
        let (shown_from, shown_to) = (from, to);
        let (from, to) = (from.checked_add(shift)?, to.checked_add(shift)?);
        let edges = Edges::new(from, to, bins)?;
        let first = series.times.partition_point(|&time| time < from);
        let last = series.times.partition_point(|&time| time < to);
        let mut found: Vec<(u16, [f64; 3])> = Vec::new();
        for place in first..last {
            let (bin, value) = (edges.bin(series.times[place]) as u16, series.values[place]);
            match found.last_mut() {
                Some((open, [least, most, newest])) if *open == bin => {
                    (*least, *most, *newest) = (least.min(value), most.max(value), value);
                }
                _ => found.push((bin, [value; 3])),
            }
        }
        let mut columns = Columns::default();
        columns.extra("from", json!(shown_from.to_string()));
        columns.extra("to", json!(shown_to.to_string()));
        columns.extra("bins", json!(bins));
        columns.extra("before", json!(first.checked_sub(1).map(|place| series.values[place])));
        let mut table = columns.table("points", found.len());
        table.u16("bin", found.iter().map(|point| point.0));
        table.f64("least", found.iter().map(|point| point.1[0]));
        table.f64("most", found.iter().map(|point| point.1[1]));
        table.f64("last", found.iter().map(|point| point.1[2]));
        table.end();
        Some(columns)
    }
}

/// Gathers the values of an answer, which come series by series, in order of time.
struct Reading<'m> {
    series: Vec<Series>,
    known: HashMap<[String; 4], usize>,
    memory: MemoryReservation,
    model: &'m Model,
}

impl Output for Reading<'_> {
    fn begin(&mut self, _: &datafusion::arrow::datatypes::SchemaRef) -> Result<(), Failure> {
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        if self.memory.try_grow(batch.num_rows() * (size_of::<i64>() + size_of::<f64>())).is_err() {
            return Err(Problem::new("the counters of these traces do not fit into memory")
                .hint("`--memory 8GB` allows more; `--from` and `--to`, or `STORE/RUN`, open less")
                .into());
        }
        let texts = (0..4).map(|column| cast(batch.column(column), &DataType::Utf8)).collect::<Result<Vec<_>, _>>()?;
        let text = |column: usize, row: usize| {
            let texts = texts[column].as_string::<i32>();
            texts.is_valid(row).then(|| texts.value(row))
        };
        let (times, values) = (cast(batch.column(4), &DataType::Int64)?, cast(batch.column(5), &DataType::Float64)?);
        let (times, values) = (times.as_primitive::<Int64Type>(), values.as_primitive::<Float64Type>());
        let mut before = None;
        for row in 0..batch.num_rows() {
            let words = [0, 1, 2, 3].map(|column| text(column, row).unwrap_or_default());
            let number = match before {
                Some((same, number)) if same == words => number,
                _ => {
                    let [run, location, name, unit] = words.map(str::to_owned);
                    let next = self.series.len();
                    let number = *self.known.entry([run.clone(), location.clone(), name.clone(), unit]).or_insert(next);
                    if number == next {
                        let lane = self.model.lane(Some(&run), &location);
                        let unit = text(3, row).map(str::to_owned);
                        self.series.push(Series { lane, run, name, unit, times: Vec::new(), values: Vec::new() });
                    }
                    number
                }
            };
            before = Some((words, number));
            self.series[number].times.push(times.value(row));
            self.series[number].values.push(values.value(row));
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
