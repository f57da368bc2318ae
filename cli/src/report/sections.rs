//! The questions of a report and their answers, all through the session's SQL.
//!
//! Two answers are kept as tables of the session while a run is reported on, so that they are computed once:
//! `report_lanes` (busy time per location, idle ones included) and `report_path` (the critical path).

use std::fmt::Write;

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Float64Type, Int64Type};
use tq_engine::sql;
use tq_engine::trace::Severity;
use tq_udfs::ticks::{Tick, time_text};

use crate::ask::{Asker, Params};
use crate::errors::{Failure, Problem};
use crate::output::svg::{self, Svg};
use crate::output::{Output, Picture, markdown};

/// What is known about a run.
pub(super) struct RunAnswers {
    pub(super) name: String,
    pub(super) tick: Tick,
    pub(super) makespan: Option<i64>,
    pub(super) tasks: i64,
    pub(super) lanes: Option<Lanes>,
    pub(super) heaviest: Option<Heaviest>,
    pub(super) longest: Option<Longest>,
    pub(super) path: Option<PathLength>,
    pub(super) sections: Vec<Section>,
    /// The SQL that was asked, as it can be typed.
    pub(super) asked: Vec<String>,
}

/// A part of the page.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) text: String,
}

/// How the locations share the work.
pub(super) struct Lanes {
    pub(super) count: i64,
    pub(super) busy: i64,
    pub(super) busiest: String,
    pub(super) busiest_busy: i64,
    pub(super) imbalance: f64,
}

/// The name with the most time.
pub(super) struct Heaviest {
    pub(super) name: String,
    pub(super) tasks: i64,
    pub(super) total_time: i64,
    pub(super) percent: f64,
}

/// The longest task.
pub(super) struct Longest {
    pub(super) name: String,
    pub(super) location: String,
    pub(super) duration: i64,
}

/// The critical path.
pub(super) struct PathLength {
    pub(super) steps: i64,
    pub(super) path_time: i64,
}

/// The table of all runs.
pub(super) fn overview(asker: &mut Asker) -> Result<String, Failure> {
    let runs = asker.collect(
        "SELECT run, format, tasks, locations, cores, makespan FROM runs ORDER BY run_number",
        &Params::new(),
    )?;
    markdown::table(&runs, asker.session().tick())
}

/// The chart of a run, its critical path marked.
pub(super) fn gantt(asker: &mut Asker, answers: &RunAnswers, picture: Picture) -> Result<String, Failure> {
    let run = literal(&answers.name);
    let text = match answers.path {
        Some(_) => format!(
            "SELECT tasks.*, report_path.task IS NOT NULL AS on_path \
             FROM tasks LEFT JOIN report_path ON report_path.task = tasks.task WHERE tasks.run = {run}"
        ),
        None => format!("SELECT * FROM tasks WHERE run = {run}"),
    };
    let statements = sql::parse(&text)?;
    let statement = statements.first().ok_or_else(|| Problem::internal("no statement"))?;
    let buffer = Buffer::default();
    let mut chart = Svg::new(Box::new(buffer.clone()), answers.tick, picture);
    asker.run(statement, &Params::new(), svg::arrange, &mut chart)?;
    chart.close()?;
    Ok(buffer.text())
}

impl RunAnswers {
    /// Asks everything about a run.
    pub(super) fn ask(asker: &mut Asker, name: &str) -> Result<RunAnswers, Failure> {
        let mut answers = RunAnswers {
            name: name.to_owned(),
            tick: asker.session().tick(),
            makespan: None,
            tasks: 0,
            lanes: None,
            heaviest: None,
            longest: None,
            path: None,
            sections: Vec::new(),
            asked: Vec::new(),
        };
        answers.what_was_read(asker)?;
        answers.lanes(asker)?;
        answers.time_by_name(asker)?;
        answers.longest_tasks(asker)?;
        answers.critical_path(asker)?;
        // What was read comes last on the page: it matters when something is wrong.
        answers.sections.rotate_left(1);
        Ok(answers)
    }

    fn question(&mut self, asker: &mut Asker, sql: &str) -> Result<RecordBatch, Failure> {
        let text = sql.replace("$run", &literal(&self.name));
        let answer = asker.collect(&text, &Params::new());
        self.asked.push(format!("{text};"));
        answer
    }

    fn section(&mut self, title: &'static str, text: String) {
        self.sections.push(Section { title, text });
    }

    fn table(&self, batch: &RecordBatch) -> Result<String, Failure> {
        markdown::table(batch, self.tick)
    }

    fn what_was_read(&mut self, asker: &mut Asker) -> Result<(), Failure> {
        let run = self.question(
            asker,
            "SELECT format, source, program, started_at, time_unit, tasks, locations, cores, makespan\nFROM runs WHERE run = $run",
        )?;
        self.makespan = integer(&run, "makespan", 0);
        self.tasks = integer(&run, "tasks", 0).unwrap_or(0);
        let mut text = self.table(&run)?;
        let summary = asker.session().runs().iter().find(|run| run.name == self.name).cloned();
        let filled = summary.iter().flat_map(|run| &run.rows).filter(|(_, rows)| *rows > 0);
        let filled: Vec<String> = filled.map(|(table, rows)| format!("{rows} rows of `{table}`")).collect();
        let _ = writeln!(
            text,
            "\nTables: {}.\n",
            if filled.is_empty() { "none has rows".to_owned() } else { filled.join(", ") }
        );
        let not_smooth = summary.iter().flat_map(|run| &run.stats).any(|stat| stat.finding.severity > Severity::Info);
        let stats = self.question(
            asker,
            "SELECT what, severity, stage, count, example\nFROM import_stats WHERE run = $run ORDER BY severity DESC, what, stage",
        )?;
        text.push_str(if not_smooth {
            "Not everything went smoothly:\n\n"
        } else {
            "Nothing was skipped or repaired.\n\n"
        });
        if stats.num_rows() > 0 {
            text.push_str(&self.table(&stats)?);
        }
        self.section("What was read", text);
        Ok(())
    }

    fn lanes(&mut self, asker: &mut Asker) -> Result<(), Failure> {
        let Some(makespan) = self.makespan.filter(|&makespan| makespan > 0) else { return Ok(()) };
        // Locations of a kind that runs tasks count as lanes, also those that never ran.
        self.question(
            asker,
            "CREATE OR REPLACE TABLE report_lanes AS\n\
             WITH ran AS (\n  SELECT location, count(*) AS tasks, busy(start, finish) AS busy\n  FROM tasks WHERE run = $run GROUP BY location\n),\n\
             lanes AS (\n  SELECT location, sort_index FROM locations WHERE run = $run AND kind IN (\n    \
             SELECT kind FROM locations JOIN ran USING (location) WHERE run = $run)\n)\n\
             SELECT location, sort_index, coalesce(tasks, 0) AS tasks, coalesce(busy, 0) AS busy\n\
             FROM lanes FULL JOIN ran USING (location)",
        )?;
        let totals = self.question(
            asker,
            "SELECT count(*) AS lanes, sum(busy) AS busy, imbalance(busy) AS imbalance,\n  \
             load_balance(busy) AS load_balance, imbalance_percent(busy) AS imbalance_percent,\n  \
             max(busy) AS max_busy_time, min(busy) AS min_busy_time\nFROM report_lanes",
        )?;
        let lanes = self.question(
            asker,
            &format!(
                "SELECT location, tasks, busy AS busy_time, round(1.0 * busy / {makespan}, 3) AS occupancy\nFROM report_lanes ORDER BY sort_index, location LIMIT 100"
            ),
        )?;
        let busiest =
            self.question(asker, "SELECT location, busy FROM report_lanes ORDER BY busy DESC, location LIMIT 1")?;
        let count = integer(&totals, "lanes", 0).unwrap_or(0);
        let imbalance = double(&totals, "imbalance", 0);
        if let (Some(busy), Some(imbalance), Some(busiest_busy)) =
            (integer(&totals, "busy", 0), imbalance, integer(&busiest, "busy", 0))
        {
            let busiest = text(&busiest, "location", 0);
            self.lanes = Some(Lanes { count, busy, busiest, busiest_busy, imbalance });
        }
        let mut occupancy = format!(
            "Occupancy is the share of the makespan ({}) during which at least one task of the location ran.\n\n{}",
            time_text(makespan, self.tick),
            self.table(&lanes)?
        );
        if count > lanes.num_rows() as i64 {
            let _ = writeln!(occupancy, "\n… and {} more locations.", count - lanes.num_rows() as i64);
        }
        self.section("Occupancy per location", occupancy);
        if let (Some(balance), Some(percent), Some(lanes)) =
            (double(&totals, "load_balance", 0), double(&totals, "imbalance_percent", 0), &self.lanes)
        {
            let tick = self.tick;
            let time = |column| time_text(integer(&totals, column, 0).unwrap_or(0), tick);
            let balance = format!(
                "The busiest location, {}, worked {}; the least busy one {}. That is {imbalance:.2} × the mean (imbalance), \
                 a load balance of {balance:.2} (1 = everyone works the same), and {percent:.1} % of what could be lost to imbalance at worst.",
                code(&lanes.busiest),
                time("max_busy_time"),
                time("min_busy_time"),
                imbalance = lanes.imbalance,
            );
            self.section("Load imbalance", balance);
        }
        Ok(())
    }

    fn time_by_name(&mut self, asker: &mut Asker) -> Result<(), Failure> {
        let names = self.question(
            asker,
            "SELECT name, count(*) AS tasks, sum(duration) AS total_time,\n  \
             round(100.0 * sum(duration) / nullif(sum(sum(duration)) OVER (), 0), 1) AS percent,\n  \
             CAST(avg(duration) AS BIGINT) AS mean_time, max(duration) AS max_time\n\
             FROM tasks WHERE run = $run AND duration IS NOT NULL GROUP BY name\nORDER BY total_time DESC, name LIMIT 15",
        )?;
        if names.num_rows() == 0 {
            return Ok(());
        }
        if let (Some(tasks), Some(total_time), Some(percent)) =
            (integer(&names, "tasks", 0), integer(&names, "total_time", 0), double(&names, "percent", 0))
        {
            let name = text(&names, "name", 0);
            self.heaviest = Some(Heaviest { name, tasks, total_time, percent });
        }
        let text =
            format!("The time of a task that runs inside of another counts for both.\n\n{}", self.table(&names)?);
        self.section("Time by name", text);
        Ok(())
    }

    fn longest_tasks(&mut self, asker: &mut Asker) -> Result<(), Failure> {
        let tasks = self.question(
            asker,
            "SELECT task, name, kind, location, start, duration\nFROM tasks WHERE run = $run AND duration IS NOT NULL ORDER BY duration DESC, task LIMIT 10",
        )?;
        if tasks.num_rows() == 0 {
            return Ok(());
        }
        self.longest = Some(Longest {
            name: text(&tasks, "name", 0),
            location: text(&tasks, "location", 0),
            duration: integer(&tasks, "duration", 0).unwrap_or(0),
        });
        let table = self.table(&tasks)?;
        self.section("Longest tasks", table);
        Ok(())
    }

    fn critical_path(&mut self, asker: &mut Asker) -> Result<(), Failure> {
        let links =
            self.question(asker, "SELECT count(*) AS links FROM links WHERE run = $run AND kind = 'dependency'")?;
        if integer(&links, "links", 0).unwrap_or(0) == 0 {
            return Ok(());
        }
        let made = self
            .question(asker, "CREATE OR REPLACE TABLE report_path AS\nSELECT * FROM critical_path() WHERE run = $run");
        match made {
            // A cycle in the links spoils this section, not the page.
            Err(Failure::Told(problem)) => {
                let text = format!("It cannot be told: {}.", markdown::escape(&problem.message));
                self.section("Critical path", text);
                return Ok(());
            }
            made => made?,
        };
        let length = self.question(asker, "SELECT count(*) AS steps, max(path_time) AS path_time FROM report_path")?;
        let (Some(steps), Some(path_time)) = (integer(&length, "steps", 0), integer(&length, "path_time", 0)) else {
            return Ok(());
        };
        self.path = Some(PathLength { steps, path_time });
        let names = self.question(
            asker,
            "SELECT name, count(*) AS steps, sum(duration) AS total_time,\n  \
             round(100.0 * sum(duration) / nullif(sum(sum(duration)) OVER (), 0), 1) AS percent\n\
             FROM report_path GROUP BY name ORDER BY total_time DESC, name LIMIT 10",
        )?;
        let longest = self.question(
            asker,
            "SELECT step, task, name, location, start, duration, path_time\nFROM (SELECT * FROM report_path ORDER BY duration DESC, step LIMIT 15) ORDER BY step",
        )?;
        let shown = if (longest.num_rows() as i64) < steps { "Its longest steps" } else { "Its steps" };
        let text = format!(
            "The longest chain of tasks that wait for each other by `dependency` links has {steps} steps and takes {}.\n\n\
             {}\n{shown}, in order:\n\n{}",
            time_text(path_time, self.tick),
            self.table(&names)?,
            self.table(&longest)?
        );
        self.section("Critical path", text);
        Ok(())
    }
}

/// A text as an SQL literal.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name inside of a sentence.
pub(super) fn code(name: &str) -> String {
    if name.is_empty() { "(unnamed)".to_owned() } else { format!("**{}**", markdown::escape(name)) }
}

fn integer(batch: &RecordBatch, column: &str, row: usize) -> Option<i64> {
    let array = batch.column_by_name(column)?.as_primitive_opt::<Int64Type>()?;
    (row < array.len() && array.is_valid(row)).then(|| array.value(row))
}

fn double(batch: &RecordBatch, column: &str, row: usize) -> Option<f64> {
    let array = batch.column_by_name(column)?.as_primitive_opt::<Float64Type>()?;
    (row < array.len() && array.is_valid(row)).then(|| array.value(row))
}

fn text(batch: &RecordBatch, column: &str, row: usize) -> String {
    let at = batch.schema().index_of(column).ok();
    let mut cell = String::new();
    if let (Some(at), Ok(cells)) = (at, crate::output::Cells::new(batch)) {
        // A cell that cannot be shown is shown as nothing; the table below the sentence fails loudly.
        let _ = cells.exact(at, row, &mut cell);
    }
    cell
}

/// Bytes that an output writes and that are read afterwards.
#[derive(Clone, Default)]
struct Buffer(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        self.0.lock().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
}

impl std::io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if let Ok(mut all) = self.0.lock() {
            all.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
