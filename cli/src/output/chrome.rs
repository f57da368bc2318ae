//! `chrome`: tasks as a Chrome trace, to open a stretch in a trace viewer.
//!
//! Each task is a complete event (`"ph":"X"`) with times in microseconds, exact to the tick. A process is a run, a thread
//! a location; their names come as metadata events when they first appear. Viewers want the events of a thread to nest:
//! tasks that overlap otherwise go to further threads of their location (`w0 (2)`). A task that never ended begins
//! (`"ph":"B"`) and does not end. Columns beside the known ones become `args`. Rows without a start cannot be shown; how many
//! there were is said on stderr.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef};
use datafusion::common::Column;
use datafusion::dataframe::DataFrame;
use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::{Expr, cast};
use tq_udfs::ticks::Tick;

use super::cells::{Kind, kinds};
use super::{Cells, Output, Writer, only_one, svg};
use crate::errors::Failure;
use crate::open::plural;
use crate::talk;

/// Columns that are not arguments.
const KNOWN: [&str; 6] = ["run", "location", "name", "kind", START, FINISH];
/// What [`arrange`] calls the times, so that they do not collide with the result's own columns.
const START: &str = "start";
const FINISH: &str = "finish";

pub(super) struct Chrome {
    writer: Writer,
    tick: Tick,
    results: usize,
    events: u64,
    /// Rows that no viewer could place.
    left_out: u64,
    processes: HashMap<String, i64>,
    locations: HashMap<(i64, String), Vec<Thread>>,
    threads: i64,
}

/// A thread of the viewer with the ends of its open tasks.
struct Thread {
    number: i64,
    open: Vec<i64>,
}

impl Chrome {
    pub(super) fn new(writer: Writer, tick: Tick) -> Chrome {
        Chrome {
            writer,
            tick,
            results: 0,
            events: 0,
            left_out: 0,
            processes: HashMap::new(),
            locations: HashMap::new(),
            threads: 0,
        }
    }

    fn event(&mut self, event: &str, text: &mut String) {
        text.push_str(if self.events == 0 { "\n" } else { ",\n" });
        text.push_str(event);
        self.events += 1;
    }

    fn process(&mut self, run: &str, text: &mut String) -> i64 {
        if let Some(&number) = self.processes.get(run) {
            return number;
        }
        let number = self.processes.len() as i64 + 1;
        self.processes.insert(run.to_owned(), number);
        let name = json(if run.is_empty() { "trace" } else { run });
        self.event(
            &format!(r#"{{"ph":"M","name":"process_name","pid":{number},"tid":0,"args":{{"name":{name}}}}}"#),
            text,
        );
        number
    }

    /// The thread that a task nests in: an open task either ends before it starts or after it finishes.
    fn thread(&mut self, process: i64, location: &str, start: i64, finish: i64, text: &mut String) -> i64 {
        let threads = self.locations.entry((process, location.to_owned())).or_default();
        for thread in threads.iter_mut() {
            while thread.open.last().is_some_and(|&end| end <= start) {
                thread.open.pop();
            }
            if thread.open.last().is_none_or(|&end| finish <= end) {
                thread.open.push(finish);
                return thread.number;
            }
        }
        self.threads += 1;
        let number = self.threads;
        threads.push(Thread { number, open: vec![finish] });
        let place = threads.len();
        let name = if place == 1 { json(location) } else { json(&format!("{location} ({place})")) };
        let ids = format!(r#""pid":{process},"tid":{number}"#);
        self.event(&format!(r#"{{"ph":"M","name":"thread_name",{ids},"args":{{"name":{name}}}}}"#), text);
        self.event(&format!(r#"{{"ph":"M","name":"thread_sort_index",{ids},"args":{{"sort_index":{number}}}}}"#), text);
        number
    }
}

/// Sorts by start, and puts `start` and `finish` beside whatever else the result has.
pub(super) fn arrange(frame: DataFrame) -> PlanResult<DataFrame> {
    let (start, finish) = svg::span(&frame, "chrome writes tasks")?;
    let mut seen = std::collections::HashSet::from([START.to_owned(), FINISH.to_owned()]);
    let mut columns = vec![cast(start, DataType::Int64).alias(START), cast(finish, DataType::Int64).alias(FINISH)];
    let others: Vec<Expr> = frame
        .schema()
        .iter()
        .filter(|(_, field)| seen.insert(field.name().clone()))
        .map(|(qualifier, field)| Expr::Column(Column::from((qualifier, field))).alias(field.name()))
        .collect();
    columns.extend(others);
    let by = |name: &str, ascending| Expr::Column(Column::from_name(name)).sort(ascending, false);
    frame.select(columns)?.sort(vec![by(START, true), by(FINISH, false)])
}

impl Output for Chrome {
    fn begin(&mut self, _schema: &SchemaRef) -> Result<(), Failure> {
        if self.results > 0 {
            return Err(only_one("chrome"));
        }
        self.results += 1;
        Ok(self.writer.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?)
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let cells = Cells::new(batch)?;
        let schema = batch.schema();
        let kinds = kinds(&schema);
        let at = |name: &str| schema.fields().iter().position(|field| field.name() == name);
        let [run, location, name, kind] = ["run", "location", "name", "kind"].map(at);
        let cell = |column: Option<usize>, row: usize| -> Result<String, Failure> {
            let mut text = String::new();
            if let Some(column) = column {
                cells.exact(column, row, &mut text)?;
            }
            Ok(text)
        };
        let (Some(start_at), Some(finish_at)) = (at(START), at(FINISH)) else { return Ok(()) };
        let [starts, finishes] = [start_at, finish_at].map(|column| batch.column(column).as_primitive::<Int64Type>());
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            let start = starts.value(row);
            let finish = finishes.is_valid(row).then(|| finishes.value(row));
            if starts.is_null(row) || finish.is_some_and(|finish| finish < start) {
                self.left_out += 1;
                continue;
            }
            let process = self.process(&cell(run, row)?, &mut text);
            let thread = self.thread(process, &cell(location, row)?, start, finish.unwrap_or(i64::MAX), &mut text);
            let mut event = format!(
                r#"{{"ph":"{}","name":{},"pid":{process},"tid":{thread},"ts":{}"#,
                if finish.is_some() { "X" } else { "B" },
                json(&cell(name, row)?),
                microseconds(start, self.tick),
            );
            if let Some(finish) = finish {
                let _ = write!(event, r#","dur":{}"#, microseconds(finish.saturating_sub(start), self.tick));
            }
            if kind.is_some() {
                let _ = write!(event, r#","cat":{}"#, json(&cell(kind, row)?));
            }
            let mut args = String::new();
            for (column, field) in schema.fields().iter().enumerate() {
                if KNOWN.contains(&field.name().as_str()) || cells.is_null(column, row) {
                    continue;
                }
                let value = cell(Some(column), row)?;
                let is_number = kinds[column].is_right()
                    && (kinds[column] != Kind::Float || value.parse::<f64>().is_ok_and(f64::is_finite));
                let value = if is_number { value } else { json(&value) };
                let comma = if args.is_empty() { "" } else { "," };
                let _ = write!(args, "{comma}{}:{value}", json(field.name()));
            }
            if !args.is_empty() {
                let _ = write!(event, r#","args":{{{args}}}"#);
            }
            event.push('}');
            self.event(&event, &mut text);
        }
        Ok(self.writer.write_all(text.as_bytes())?)
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.writer.write_all(b"\n]}\n")?;
        if self.left_out > 0 {
            talk::note(&format!(
                "{} {} without a start, or with a finish before it, cannot be shown",
                self.left_out,
                plural(self.left_out, "row")
            ));
        }
        Ok(self.writer.flush()?)
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A JSON text.
fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Ticks as decimal microseconds, without a float on the way.
fn microseconds(ticks: i64, tick: Tick) -> String {
    let per = tick.per_microsecond().unsigned_abs();
    let decimals = per.ilog10() as usize;
    let magnitude = ticks.unsigned_abs();
    let sign = if ticks < 0 { "-" } else { "" };
    let text = format!("{sign}{}.{:0decimals$}", magnitude / per, magnitude % per);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};

    use super::*;
    use crate::output::testing::{Buffer, write};

    #[test]
    fn times_are_exact() {
        for (ticks, nanoseconds, picoseconds) in [
            (0, "0", "0"),
            (1, "0.001", "0.000001"),
            (1_500_000, "1500", "1.5"),
            (-1, "-0.001", "-0.000001"),
            (i64::MAX, "9223372036854775.807", "9223372036854.775807"),
        ] {
            assert_eq!(microseconds(ticks, Tick::Nanosecond), nanoseconds);
            assert_eq!(microseconds(ticks, Tick::Picosecond), picoseconds);
        }
    }

    #[test]
    fn a_trace_is_valid_json_whose_threads_nest() {
        // w  0 [---------------) 10
        // w  2   [-----) 5                 nests
        // w  4       [---------) 12        does not
        // w  11                    [--     never ends
        let batch = RecordBatch::try_from_iter([
            ("start", Arc::new(Int64Array::from(vec![Some(0), Some(2), Some(4), Some(11), None])) as ArrayRef),
            ("finish", Arc::new(Int64Array::from(vec![Some(10), Some(5), Some(12), None, None]))),
            ("name", Arc::new(StringArray::from(vec!["a\"", "b", "c", "d", "e"]))),
            ("location", Arc::new(StringArray::from(vec!["w"; 5]))),
            ("ratio", Arc::new(Float64Array::from(vec![0.5, f64::NAN, 1.0, 1.0, 1.0]))),
        ])
        .unwrap();
        let buffer = Buffer::default();
        write(&mut Chrome::new(buffer.writer(), Tick::Nanosecond), &[batch]);
        let trace: serde_json::Value = serde_json::from_slice(&buffer.bytes()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let tasks: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!(tasks.len(), 3);
        assert_eq!(tasks[0]["tid"], tasks[1]["tid"]);
        assert_ne!(tasks[0]["tid"], tasks[2]["tid"]);
        assert_eq!(tasks[0]["name"], "a\"");
        assert_eq!(tasks[0]["args"]["ratio"], 0.5);
        assert_eq!(tasks[1]["args"]["ratio"], "NaN");
        let begun: Vec<_> = events.iter().filter(|event| event["ph"] == "B").collect();
        assert_eq!((begun.len(), &begun[0]["name"], begun[0].get("dur")), (1, &"d".into(), None));
        assert!(events.iter().any(|event| event["name"] == "thread_name" && event["args"]["name"] == "w (2)"));
    }
}
