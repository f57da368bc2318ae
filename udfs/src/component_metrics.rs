//! `component_metrics(tasks, bins, from, to, parents, rules)`: request rates, latency, concurrency and buffer pressure of
//! each component over time, as Daisen shows them.
//!
//! ```text
//!                 0     1     2     3         a request of component L2, and the task of its sender
//! sender req_out   [------------------)
//! L2     req_in           [--------)          pending_req_out at the sender while the req_out lasts
//! waiting          [------)                   buffer_pressure of L2: from the parent's start to its own
//! ```
//! Life of the data: tasks are kept as they come; starts of parents are looked up by task; then one pass over the tasks
//! adds each to the bins of its component. A span covers its first and last bin in part and those between in full; the
//! full ones are recorded as two differences at the ends, so a task costs the same however many bins it covers.
//!
//! There are three sets of rules (`Rules`), which differ at edges and in what counts as a component: `plain` is the
//! definition that one would choose today, the others reproduce what the servers of Akita v3/v4 and v5 answer, float for
//! float.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StringViewArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_doc::{DocSection, Documentation};

use crate::graph::NONE;
use crate::graph::ids::TaskIds;
use crate::lanes::words::{Words, WordsReading};
use crate::lanes::{Lanes, Nulls};
use crate::relation::by_run::ByRun;
use crate::relation::call::Call;
use crate::relation::parts::{InputPlan, Share};
use crate::relation::rows::{EVERY_RUN, Role, Rows};
use crate::relation::runs::Runs;
use crate::relation::{
    ColumnKind, ColumnSpec, Default, InputSpec, Omitted, OptionKind, OptionSpec, Parameter, RelationFunction,
};
use crate::ticks::time_field;

/// The relation function `component_metrics`.
#[derive(Debug)]
pub struct ComponentMetrics;

static PARAMETERS: [Parameter; 7] = [
    Parameter::Input(InputSpec {
        name: "tasks",
        omitted: Omitted::Table("tasks"),
        columns: &[
            ColumnSpec::needed("start", ColumnKind::Integer),
            ColumnSpec::needed("finish", ColumnKind::Integer),
            ColumnSpec::needed("kind", ColumnKind::Text),
            ColumnSpec::optional("location", ColumnKind::Text),
            ColumnSpec::optional("parent", ColumnKind::Integer).only_for(&["buffer_pressure"]),
            ColumnSpec::optional("name", ColumnKind::Text)
                .only_for(&["request_buffer_pressure", "response_buffer_pressure"]),
        ],
    }),
    Parameter::Option(OptionSpec { name: "bins", kind: OptionKind::Integer, default: Default::Integer(40) }),
    Parameter::Option(OptionSpec { name: "from", kind: OptionKind::Double, default: Default::Null }),
    Parameter::Option(OptionSpec { name: "to", kind: OptionKind::Double, default: Default::Null }),
    Parameter::Input(InputSpec {
        name: "parents",
        omitted: Omitted::Table("tasks"),
        columns: &[ColumnSpec::needed("task", ColumnKind::Integer), ColumnSpec::needed("start", ColumnKind::Integer)],
    }),
    Parameter::Option(OptionSpec { name: "rules", kind: OptionKind::Text, default: Default::Text("plain") }),
    Parameter::Option(OptionSpec { name: "second", kind: OptionKind::Integer, default: Default::Second }),
];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    Documentation::builder(
        DocSection { include: true, label: "Relations", description: None },
        "What the components of a simulated machine do over time: request rates, latency, concurrency and buffer pressure, \
         as Daisen shows them. All metrics of all components come from one pass.\n\n\
         Rows: one per location and bin, also where nothing happens. `req_in_count` is the rate at which requests arrive \
         (tasks of kind `req_in` that start in the bin), `req_complete_count` that at which they are answered (that finish in \
         it), `avg_latency` the mean duration of the latter. The others are means over the time of the bin: \
         `concurrent_task` of the number of tasks, `pending_req_out` of tasks of kind `req_out`, `buffer_pressure` of \
         requests that are sent but not yet accepted (from the start of the parent of a `req_in` to its own start), \
         `request_buffer_pressure` and `response_buffer_pressure` of tasks of kind `incoming_buffer` whose name ends in \
         `Req` or `Request`, and in `Rsp` or `Response`.\n\n\
         Rules: `'plain'`: bins are half-open, edge `i` of `n` is from + floor(i · (to - from) / n), a location stands \
         only for itself; a request without parent adds no pressure. `'v3'` is what the servers of Akita v3 and v4 answer: edges are floats of \
         seconds, what happens exactly at one is in no bin, a request counts for `buffer_pressure` only when it overlaps the \
         window itself, and one without parent waits since time 0; the two other pressures are NULL. `'v5'` is Akita v5: a \
         location stands for all that is below its name (`L1` for `L1.Top`, with a row for each such scope), nothing is \
         counted at the start of the window, `buffer_pressure` is NULL.\n\n\
         Units: rates per second, `avg_latency` and `bin_start` in ticks (rounded down where an edge lies between two), the \
         others are numbers of tasks. `second` is how many ticks a second has, by default those of the session.\n\n\
         Nulls: a task without start or finish is left out and counted in a note. Tasks whose location is NULL are those of \
         one location, NULL. A NULL `from` is the first start of the run, a NULL `to` its last finish. `avg_latency` of no \
         requests is NULL; in the other rules it is 0, as the servers say.\n\n\
         Ties: none. A task without length counts in rates and latency only.\n\n\
         Errors: `bins` below 1 or above 16777216, `to` before `from`, unknown rules, a task that is twice in `parents`.\n\n\
         Cost: linear; 16 bytes a task beside the tasks themselves, 100 bytes a row of the answer; beyond half of the memory limit, of the \
         largest run.\n\n\
         Source: `/api/compinfo` of Daisen (Akita v3.1.0, v4.9.2, v5.0.0-beta.8), which asks for 40 bins.",
        "component_metrics([tasks], [bins => BIGINT], [from => DOUBLE], [to => DOUBLE], [parents], [rules => VARCHAR], [second => BIGINT])",
    )
    .with_sql_example(
        "SELECT location, bin, req_in_count, avg_latency, concurrent_task, buffer_pressure\nFROM component_metrics(\n  \
         (SELECT * FROM (VALUES (1, NULL, 'req_out', 'L1', 0, 9), (2, 1, 'req_in', 'L2', 2, 6))\n     \
         AS tasks(task, parent, kind, location, start, finish)),\n  bins => 2, from => 0, to => 10, second => 10,\n  \
         parents => (SELECT 1 AS task, 0 AS start))\nORDER BY location, bin",
    )
    .with_argument("tasks", "Relation: start, finish (BIGINT), kind (VARCHAR); optional run, location, parent, name.")
    .with_argument("bins", "How many bins (BIGINT, default 40).")
    .with_argument("from", "Where the window begins (ticks, may be fractional; default: the first start of the run).")
    .with_argument("to", "Where the window ends (ticks, may be fractional; default: the last finish of the run).")
    .with_argument("parents", "Relation: task, start (BIGINT); optional run. Where the parents of `tasks` are looked up.")
    .with_argument("rules", "`plain`, `v3` or `v5` (VARCHAR, default `plain`).")
    .with_argument("second", "Ticks of a second (BIGINT, default: those of the session).")
    .build()
});

impl RelationFunction for ComponentMetrics {
    fn name(&self) -> &'static str {
        "component_metrics"
    }

    fn documentation(&self) -> &Documentation {
        &DOCUMENTATION
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn output(&self) -> Vec<Field> {
        let double = |name: &str| Field::new(name, DataType::Float64, true);
        vec![
            Field::new("location", DataType::Utf8View, true),
            Field::new("bin", DataType::Int64, false),
            time_field("bin_start", false),
            double("req_in_count"),
            double("req_complete_count"),
            double("avg_latency"),
            double("concurrent_task"),
            double("buffer_pressure"),
            double("request_buffer_pressure"),
            double("response_buffer_pressure"),
            double("pending_req_out"),
        ]
    }

    fn compute(&self, call: &mut Call) -> Result<()> {
        let question = Question::of(call)?;
        let tasks =
            InputPlan { input: "tasks", share: Share::Runs, row_bytes: size_of::<u32>() + size_of::<TaskClass>() };
        let parents = InputPlan { input: "parents", share: Share::Runs, row_bytes: size_of::<i64>() };
        let mut parts = ByRun::read(call, &[tasks, parents])?;
        let (mut left_out, mut lost_parents) = (0, 0);
        while parts.next(call)? {
            let mut runs = Runs::new();
            let tasks = Rows::read(call, "tasks", Role::First, &["start", "finish"], &mut runs)?;
            left_out += tasks.left_out;
            lost_parents += of_part(call, &question, &mut runs, &tasks)?;
        }
        call.work.note_count(
            left_out,
            "task without start or finish was left out",
            "tasks without start or finish were left out",
        );
        if question.rules == Rules::Plain {
            call.work.note_count(
                lost_parents as usize,
                "request whose parent is not in `parents` adds to no buffer's pressure",
                "requests whose parents are not in `parents` add to no buffer's pressure",
            );
        }
        Ok(())
    }
}

/// Measures the runs of a part. Returns how many parents were not there.
fn of_part(call: &mut Call, question: &Question, runs: &mut Runs, tasks: &Rows) -> Result<u64> {
    let parents = Rows::read(call, "parents", Role::Other, &["task", "start"], runs)?;
    let mut lanes = Lanes::new();
    let lane_of = lanes.number(tasks, Some("location"), Nulls::OneLane, &mut call.work)?;
    let scopes = Scopes::of(&lanes, question.rules)?;
    let classes = classes(tasks, call)?;
    let mut lost_parents = 0u64;
    for run in runs.in_order() {
        let Some((from, to)) = question.window(tasks, run)? else { continue };
        let own = scopes.of_run(run);
        let bytes = own.len() * question.bins * (size_of::<Bin>() + ROW_BYTES);
        call.work.grow(bytes)?;
        let parents = Parents::of(&parents, run, call)?;
        let of_run =
            OfRun { tasks, lane_of: &lane_of, classes: &classes, parents: &parents, scopes: &scopes, own: &own };
        let runs = (&*runs, run);
        let lost = match question.rules {
            Rules::Plain => {
                let Some(axis) = Axis::whole(from, to, question.bins) else {
                    let window = format!("from {from} to {to}");
                    return exec_err!("component_metrics: a bin of the window {window} is longer than a BIGINT");
                };
                measure(call, question, runs, &of_run, &axis, |tick| tick)
            }
            Rules::V3 => {
                let axis = Axis::fractional(from, to, question.bins, question.second);
                measure(call, question, runs, &of_run, &axis, |tick| tick as f64 / question.second)
            }
            Rules::V5 => {
                let axis = Axis::fractional(from, to, question.bins, 1.0);
                measure(call, question, runs, &of_run, &axis, |tick| tick as f64)
            }
        };
        lost_parents += lost?;
        call.work.shrink(bytes);
    }
    Ok(lost_parents)
}

const BINS_MAX: i64 = 1 << 24;
/// Bytes that a bin takes on its way out.
const ROW_BYTES: usize = 96;
/// Rows that are sent on at a time, about.
const CHUNK_ROWS: usize = 65_536;

/// Whose rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rules {
    Plain,
    V3,
    V5,
}

/// The options of a call.
struct Question {
    bins: usize,
    from: Option<f64>,
    to: Option<f64>,
    rules: Rules,
    second: f64,
}

impl Question {
    fn of(call: &Call) -> Result<Question> {
        let bins = match call.options.integer("bins")? {
            None => 40,
            Some(bins) if (1..=BINS_MAX).contains(&bins) => bins as usize,
            Some(bins) => return plan_err!("component_metrics: `bins` is from 1 to {BINS_MAX}, not {bins}"),
        };
        let rules = match call.options.text("rules")? {
            None | Some("plain") => Rules::Plain,
            Some("v3") => Rules::V3,
            Some("v5") => Rules::V5,
            Some(other) => return plan_err!("component_metrics: `rules` is 'plain', 'v3' or 'v5', not '{other}'"),
        };
        let second = match call.options.integer("second")? {
            Some(second) if second > 0 => second as f64,
            other => return plan_err!("component_metrics: `second` is a number of ticks, not {other:?}"),
        };
        let (from, to) = (call.options.double("from")?, call.options.double("to")?);
        for bound in [from, to].into_iter().flatten() {
            if !bound.is_finite() {
                return plan_err!("component_metrics: {bound} is no bound of a window");
            }
        }
        match (from, to) {
            (Some(from), Some(to)) if to < from => {
                exec_err!("component_metrics: the window ends at {to}, before it begins at {from}")
            }
            _ => Ok(Question { bins, from, to, rules, second }),
        }
    }

    /// The window of a run; `None` when it has no length.
    fn window(&self, tasks: &Rows, run: usize) -> Result<Option<(f64, f64)>> {
        let mut extent: Option<(i64, i64)> = None;
        if self.from.is_none() || self.to.is_none() {
            for stretch in tasks.of_run(run) {
                for (start, finish) in stretch.values("start")?.iter().zip(stretch.values("finish")?) {
                    let (first, last) = extent.unwrap_or((*start, *finish));
                    extent = Some((first.min(*start), last.max(*finish)));
                }
            }
        }
        let from = self.from.or(extent.map(|(first, _)| first as f64));
        let to = self.to.or(extent.map(|(_, last)| last as f64));
        Ok(from.zip(to).filter(|(from, to)| from < to))
    }
}

/// A place in time on an axis.
trait Place: Copy + PartialOrd {
    fn minus(self, other: Self) -> f64;
}

impl Place for i64 {
    fn minus(self, other: i64) -> f64 {
        (i128::from(self) - i128::from(other)) as f64
    }
}

impl Place for f64 {
    fn minus(self, other: f64) -> f64 {
        self - other
    }
}

/// The edges of the bins of a window.
struct Axis<T> {
    edges: Vec<T>,
    width: f64,
    /// Ticks of a unit of the axis.
    unit: f64,
    /// The last tick that is not after an edge.
    ticks: Vec<i64>,
}

impl Axis<i64> {
    /// Edges at whole ticks. A tick is in the window when it is not before `from` and before `to`, so that fractional
    /// bounds are rounded up. `None`: a bin does not fit a `BIGINT`.
    fn whole(from: f64, to: f64, bins: usize) -> Option<Axis<i64>> {
        // Saturating: a bound beyond all ticks has all ticks on one side.
        let (from, to) = (from.ceil() as i64, to.ceil() as i64);
        let length = i128::from(to) - i128::from(from);
        let edge = |bin: usize| (i128::from(from) + bin as i128 * length / bins as i128) as i64;
        let edges: Vec<i64> = (0..=bins).map(edge).collect();
        edges.windows(2).all(|bin| bin[1].checked_sub(bin[0]).is_some()).then_some(())?;
        Some(Axis { ticks: edges.clone(), edges, width: length as f64 / bins as f64, unit: 1.0 })
    }
}

impl Axis<f64> {
    /// Edges as the servers compute them, in units of so many ticks: bin `i` begins at `i · width + from`.
    fn fractional(from: f64, to: f64, bins: usize, unit: f64) -> Axis<f64> {
        let ticks = (0..=bins).map(|bin| (from + bin as f64 * (to - from) / bins as f64).floor() as i64).collect();
        let (from, to) = (from / unit, to / unit);
        let width = (to - from) / bins as f64;
        let edges = (0..=bins).map(|bin| bin as f64 * width + from).collect();
        Axis { edges, width, unit, ticks }
    }
}

impl<T: Place> Axis<T> {
    fn bins(&self) -> usize {
        self.edges.len() - 1
    }

    fn from(&self) -> T {
        self.edges[0]
    }

    fn to(&self) -> T {
        self.edges[self.bins()]
    }

    /// The bin that a place in the window is in. The guess is off by one where rounding went the other way.
    #[inline]
    fn bin(&self, place: T) -> usize {
        let guess = (place.minus(self.edges[0]) / self.width) as usize;
        let mut bin = guess.min(self.bins() - 1);
        while bin > 0 && place < self.edges[bin] {
            bin -= 1;
        }
        while bin + 1 < self.bins() && self.edges[bin + 1] <= place {
            bin += 1;
        }
        bin
    }

    /// The bin in which something is counted that happens at a place.
    #[inline]
    fn bin_of_instant(&self, place: T, rules: Rules) -> Option<usize> {
        match rules {
            Rules::Plain => (self.from() <= place && place < self.to()).then(|| self.bin(place)),
            Rules::V3 => {
                let bin = (self.from() < place && place < self.to()).then(|| self.bin(place))?;
                (self.edges[bin] < place).then_some(bin)
            }
            Rules::V5 => (self.from() < place && place < self.to())
                .then(|| ((place.minus(self.edges[0]) / self.width) as usize).min(self.bins() - 1)),
        }
    }
}

/// What is averaged over time.
#[derive(Debug, Clone, Copy)]
enum Mean {
    ConcurrentTask,
    BufferPressure,
    RequestBuffer,
    ResponseBuffer,
    PendingReqOut,
}

const MEANS: usize = 5;

/// What is known of a bin of a component.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Bin {
    arrived: u64,
    completed: u64,
    latency: f64,
    /// Time of stretches that do not fill the bin.
    time: [f64; MEANS],
    /// How many stretches begin (end) to fill whole bins here.
    filling: [i32; MEANS],
}

/// Adds a stretch of time to the bins.
#[inline]
fn add<T: Place>(bins: &mut [Bin], axis: &Axis<T>, (start, finish): (T, T), mean: Mean) {
    let start = if start < axis.from() { axis.from() } else { start };
    let finish = if axis.to() < finish { axis.to() } else { finish };
    if finish <= start || start.partial_cmp(&finish).is_none() {
        return;
    }
    let mean = mean as usize;
    let first = axis.bin(start);
    let mut last = axis.bin(finish);
    // It ends with a bin: nothing of the next one is touched.
    if last > first && finish <= axis.edges[last] {
        last -= 1;
    }
    if first == last {
        bins[first].time[mean] += finish.minus(start);
    } else {
        bins[first].time[mean] += axis.edges[first + 1].minus(start);
        bins[last].time[mean] += finish.minus(axis.edges[last]);
        bins[first + 1].filling[mean] += 1;
        bins[last].filling[mean] -= 1;
    }
}

/// What a task counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TaskClass {
    Other,
    ReqIn,
    ReqOut,
    IncomingRequest,
    IncomingResponse,
}

/// The class of each task.
fn classes(tasks: &Rows, call: &mut Call) -> Result<Vec<TaskClass>> {
    call.work.grow(tasks.len() * size_of::<TaskClass>())?;
    let (mut kinds, mut names) = (Words::default(), Words::default());
    let (mut reading_kinds, mut reading_names) = (WordsReading::default(), WordsReading::default());
    // By number of the kind and of the name.
    let (mut of_kind, mut of_name): (Vec<Option<TaskClass>>, Vec<TaskClass>) = (vec![], vec![]);
    let mut classes = Vec::with_capacity(tasks.len());
    let (mut kind_numbers, mut name_numbers) = (vec![], vec![]);
    for batch in tasks.batches() {
        kind_numbers.clear();
        name_numbers.clear();
        if let Some(column) = batch.batch.column_by_name("kind") {
            kinds.number(&mut reading_kinds, column, &mut kind_numbers)?;
        }
        if let Some(column) = batch.batch.column_by_name("name") {
            names.number(&mut reading_names, column, &mut name_numbers)?;
        }
        of_kind.extend((of_kind.len()..kinds.len()).map(|kind| class_of_kind(kinds.text(kind as u32))));
        of_name.extend((of_name.len()..names.len()).map(|name| class_of_name(names.text(name as u32))));
        let class = |(row, kind): (usize, &u32)| match *kind {
            NONE => TaskClass::Other,
            kind => of_kind[kind as usize].unwrap_or_else(|| {
                let name = name_numbers.get(row).filter(|name| **name != NONE);
                name.map_or(TaskClass::Other, |name| of_name[*name as usize])
            }),
        };
        classes.extend(kind_numbers.iter().enumerate().map(class));
    }
    Ok(classes)
}

/// `None`: the name decides.
fn class_of_kind(kind: &str) -> Option<TaskClass> {
    match kind {
        "req_in" => Some(TaskClass::ReqIn),
        "req_out" => Some(TaskClass::ReqOut),
        "incoming_buffer" => None,
        _ => Some(TaskClass::Other),
    }
}

fn class_of_name(name: &str) -> TaskClass {
    let name = name.to_ascii_lowercase();
    if name.ends_with("req") || name.ends_with("request") {
        TaskClass::IncomingRequest
    } else if name.ends_with("rsp") || name.ends_with("response") {
        TaskClass::IncomingResponse
    } else {
        TaskClass::Other
    }
}

/// What the answer has rows for: the lanes themselves, or every dotted name above and of them.
struct Scopes {
    runs: Vec<usize>,
    /// NULL for the lane without location.
    texts: StringViewArray,
    /// Per lane, the scopes that it belongs to.
    of_lane: Vec<Vec<u32>>,
}

impl Scopes {
    fn of(lanes: &Lanes, rules: Rules) -> Result<Scopes> {
        let texts = lanes.texts(0..lanes.len())?;
        let texts = texts.as_string_view();
        let runs: Vec<usize> = (0..lanes.len()).map(|lane| lanes.lane(lane).run).collect();
        if rules != Rules::V5 {
            let of_lane = (0..lanes.len() as u32).map(|lane| vec![lane]).collect();
            return Ok(Scopes { runs, texts: texts.clone(), of_lane });
        }
        let mut numbers: HashMap<(usize, Option<&str>), u32> = HashMap::new();
        let (mut scopes, mut of_lane) = (vec![], vec![]);
        for (text, run) in texts.iter().zip(runs) {
            let dots =
                text.into_iter().flat_map(|text| text.match_indices('.').map(move |(dot, _)| Some(&text[..dot])));
            let mut own = vec![];
            for name in dots.chain([text]) {
                own.push(*numbers.entry((run, name)).or_insert_with(|| {
                    scopes.push((run, name));
                    scopes.len() as u32 - 1
                }));
            }
            of_lane.push(own);
        }
        let texts = scopes.iter().map(|(_, name)| *name).collect();
        Ok(Scopes { runs: scopes.iter().map(|(run, _)| *run).collect(), texts, of_lane })
    }

    fn of_run(&self, run: usize) -> Vec<u32> {
        (0..self.runs.len() as u32).filter(|scope| self.runs[*scope as usize] == run).collect()
    }
}

/// The starts of the tasks that may be parents.
struct Parents {
    ids: TaskIds,
    starts: Vec<i64>,
}

impl Parents {
    fn of(rows: &Rows, run: usize, call: &mut Call) -> Result<Parents> {
        let stretches: Vec<_> = rows.of_run(run).into_iter().chain(rows.of_run(EVERY_RUN)).collect();
        let tasks = stretches.iter().map(|stretch| stretch.values("task")).collect::<Result<Vec<_>>>()?;
        let count: usize = tasks.iter().map(|tasks| tasks.len()).sum();
        call.work.grow(count * size_of::<i64>())?;
        let ids = match TaskIds::number(&tasks) {
            Ok(ids) => ids,
            Err(twice) => return exec_err!("component_metrics: task {} is twice in `parents`", twice.0),
        };
        call.work.grow(ids.size())?;
        let mut starts = Vec::with_capacity(count);
        for stretch in &stretches {
            starts.extend_from_slice(stretch.values("start")?);
        }
        Ok(Parents { ids, starts })
    }

    #[inline]
    fn start(&self, task: i64) -> Option<i64> {
        let row = self.ids.row(self.ids.index(task)?)?;
        Some(self.starts[row as usize])
    }
}

/// What one run needs: its tasks, what was found out about them, and the scopes of the answer.
struct OfRun<'a> {
    tasks: &'a Rows,
    lane_of: &'a [u32],
    classes: &'a [TaskClass],
    parents: &'a Parents,
    scopes: &'a Scopes,
    own: &'a [u32],
}

/// Measures the components of one run and sends the answer on. Returns how many parents were not there.
fn measure<T: Place>(
    call: &mut Call,
    question: &Question,
    (runs, run): (&Runs, usize),
    of_run: &OfRun<'_>,
    axis: &Axis<T>,
    place: impl Fn(i64) -> T,
) -> Result<u64> {
    let OfRun { tasks, scopes, own, .. } = of_run;
    let count = axis.bins();
    // The place of each scope among those of the run.
    let mut places = vec![0usize; scopes.runs.len()];
    for (place, scope) in own.iter().enumerate() {
        places[*scope as usize] = place;
    }
    let mut bins = vec![Bin::default(); own.len() * count];
    let mut lost = 0;
    for stretch in tasks.of_run(run) {
        call.work.check()?;
        let (starts, finishes) = (stretch.values("start")?, stretch.values("finish")?);
        let parents = if tasks.has("parent") { Some(stretch.integers("parent")?) } else { None };
        for (row, number) in stretch.numbers().enumerate() {
            let (lane, class) = (of_run.lane_of[number], of_run.classes[number]);
            let parent = parents.as_ref().filter(|parents| class == TaskClass::ReqIn && parents.is_valid(row));
            let since = parent.and_then(|parents| {
                let start = of_run.parents.start(parents.value(row));
                lost += u64::from(start.is_none());
                start
            });
            let task = Task {
                start: place(starts[row]),
                finish: place(finishes[row]),
                latency: finishes[row].minus(starts[row]),
                waits_since: match question.rules {
                    Rules::V5 => None,
                    Rules::Plain => since.map(&place),
                    Rules::V3 => Some(place(since.unwrap_or(0))),
                },
                class,
            };
            for scope in &scopes.of_lane[lane as usize] {
                let first = places[*scope as usize] * count;
                task.count(&mut bins[first..first + count], axis, question.rules);
            }
        }
    }
    let scopes_at_once = (CHUNK_ROWS / count).max(1);
    for (chunk, bins) in own.chunks(scopes_at_once).zip(bins.chunks_mut(scopes_at_once * count)) {
        call.work.check()?;
        for bins in bins.chunks_mut(count) {
            fill(bins, axis);
        }
        let locations =
            UInt32Array::from_iter_values(chunk.iter().flat_map(|scope| std::iter::repeat_n(*scope, count)));
        let columns = vec![
            runs.column(&[(run, bins.len())], call.output().field(0).data_type())?,
            take(&scopes.texts, &locations, None)?,
        ];
        emit(call, question, columns, axis, bins)?;
    }
    Ok(lost)
}

/// A task on an axis.
struct Task<T> {
    start: T,
    finish: T,
    latency: f64,
    /// Since when a request waits to be taken in.
    waits_since: Option<T>,
    class: TaskClass,
}

impl<T: Place> Task<T> {
    #[inline]
    fn count(&self, bins: &mut [Bin], axis: &Axis<T>, rules: Rules) {
        let span = (self.start, self.finish);
        add(bins, axis, span, Mean::ConcurrentTask);
        match self.class {
            TaskClass::Other => {}
            TaskClass::ReqOut => add(bins, axis, span, Mean::PendingReqOut),
            TaskClass::IncomingRequest => add(bins, axis, span, Mean::RequestBuffer),
            TaskClass::IncomingResponse => add(bins, axis, span, Mean::ResponseBuffer),
            TaskClass::ReqIn => {
                if let Some(bin) = axis.bin_of_instant(self.start, rules) {
                    bins[bin].arrived += 1;
                }
                if let Some(bin) = axis.bin_of_instant(self.finish, rules) {
                    bins[bin].completed += 1;
                    bins[bin].latency += self.latency;
                }
                // The servers of v3 and v4 fetch the tasks that overlap the window, and their parents with them.
                let is_fetched = rules != Rules::V3 || (axis.from() < self.finish && self.start < axis.to());
                if let Some(since) = self.waits_since.filter(|_| is_fetched) {
                    add(bins, axis, (since, self.start), Mean::BufferPressure);
                }
            }
        }
    }
}

/// Adds the stretches that fill whole bins.
fn fill<T: Place>(bins: &mut [Bin], axis: &Axis<T>) {
    let mut filling = [0i64; MEANS];
    for (bin, edges) in bins.iter_mut().zip(axis.edges.windows(2)) {
        let width = edges[1].minus(edges[0]);
        for ((filling, change), time) in filling.iter_mut().zip(bin.filling).zip(&mut bin.time) {
            *filling += i64::from(change);
            *time += *filling as f64 * width;
        }
    }
}

fn emit<T: Place>(
    call: &mut Call,
    question: &Question,
    mut columns: Vec<ArrayRef>,
    axis: &Axis<T>,
    bins: &[Bin],
) -> Result<()> {
    let (count, rules) = (axis.bins(), question.rules);
    let width = |row: usize| match rules {
        Rules::Plain => axis.edges[row % count + 1].minus(axis.edges[row % count]),
        _ => axis.width,
    };
    let ratio = |value: &dyn Fn(&Bin) -> f64, per: f64| -> ArrayRef {
        let value = |(row, bin)| (width(row) > 0.0).then(|| value(bin) / width(row) * per);
        Arc::new(bins.iter().enumerate().map(value).collect::<Float64Array>())
    };
    let mean = |mean: Mean| ratio(&move |bin| bin.time[mean as usize], 1.0);
    let unless = |of: Rules, mean_of: Mean| match of == rules {
        true => Arc::new(Float64Array::new_null(bins.len())),
        false => mean(mean_of),
    };
    let latency = |bin: &Bin| match bin.completed {
        0 => (rules != Rules::Plain).then_some(0.0),
        completed => Some(bin.latency / completed as f64),
    };
    let integers = |value: &dyn Fn(usize) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..bins.len()).map(|row| value(row % count))))
    };
    let per_second = question.second / axis.unit;
    columns.extend([
        integers(&|bin| bin as i64),
        integers(&|bin| axis.ticks[bin]),
        ratio(&|bin| bin.arrived as f64, per_second),
        ratio(&|bin| bin.completed as f64, per_second),
        Arc::new(bins.iter().map(latency).collect::<Float64Array>()),
        mean(Mean::ConcurrentTask),
        unless(Rules::V5, Mean::BufferPressure),
        unless(Rules::V3, Mean::RequestBuffer),
        unless(Rules::V3, Mean::ResponseBuffer),
        mean(Mean::PendingReqOut),
    ]);
    call.emit(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn means_equal_a_look_at_every_tick(
            spans in vec((-5..25i64, 0..9i64), 0..9), from in -6..20i64, length in 1..30i64, bins in 1..12usize,
        ) {
            let axis = Axis::whole(from as f64, (from + length) as f64, bins).unwrap();
            let mut found = vec![Bin::default(); bins];
            for (start, length) in &spans {
                let task = Task {
                    start: *start,
                    finish: start + length,
                    latency: *length as f64,
                    waits_since: Some(start - 3),
                    class: TaskClass::ReqIn,
                };
                task.count(&mut found, &axis, Rules::Plain);
            }
            fill(&mut found, &axis);
            for (bin, number) in found.iter().zip(0..) {
                let edge = |number: i64| from + (number * length).div_euclid(bins as i64);
                let ticks = edge(number)..edge(number + 1);
                let inside = |first: i64, last: i64| (first..last).filter(|tick| ticks.contains(tick)).count() as f64;
                let sum = |value: &dyn Fn(i64, i64) -> f64| spans.iter().map(|(start, length)| value(*start, start + length)).sum::<f64>();
                prop_assert_eq!(bin.time[Mean::ConcurrentTask as usize], sum(&inside));
                prop_assert_eq!(bin.time[Mean::BufferPressure as usize], sum(&|start, _| inside(start - 3, start)));
                prop_assert_eq!(bin.arrived as f64, sum(&|start, _| f64::from(u8::from(ticks.contains(&start)))));
                let completes = |start: i64, finish: i64| if ticks.contains(&finish) { (finish - start) as f64 } else { 0.0 };
                prop_assert_eq!(bin.latency, sum(&completes));
            }
        }

        /// A look at every dot, as the servers of v3 take it.
        #[test]
        fn edges_are_open_in_v3(starts in vec(0..20i64, 0..9), from in 0..10i64, length in 1..20i64, bins in 1..6usize) {
            let axis = Axis::fractional(from as f64, (from + length) as f64, bins, 1.0);
            let mut found = vec![Bin::default(); bins];
            for start in &starts {
                let start = *start as f64;
                let task = Task { start, finish: start, latency: 0.0, waits_since: None, class: TaskClass::ReqIn };
                task.count(&mut found, &axis, Rules::V3);
            }
            for (bin, edges) in found.iter().zip(axis.edges.windows(2)) {
                let inside = starts.iter().filter(|start| edges[0] < **start as f64 && (**start as f64) < edges[1]);
                prop_assert_eq!(bin.arrived, inside.count() as u64);
            }
        }
    }

    #[test]
    fn names_tell_requests_from_responses() {
        for (name, class) in [
            ("ReadReq", TaskClass::IncomingRequest),
            ("MapWGrequest", TaskClass::IncomingRequest),
            ("DataReadyRsp", TaskClass::IncomingResponse),
            ("Response", TaskClass::IncomingResponse),
            ("AssembledMsg", TaskClass::Other),
        ] {
            assert_eq!(class_of_name(name), class, "{name}");
        }
    }
}
