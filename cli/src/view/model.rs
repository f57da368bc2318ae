//! The tasks of the traces as the page draws them: lanes, rows of tasks that do not overlap, names with their colours.
//!
//! Queries read the tasks once; tiles are then cut from arrays without a query. Where the arrays would not fit into memory, the rows are
//! [kept](super::kept) on disk, and tiles are cut from there.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, OnceLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tq_engine::store::{Beside, Unfinished};
use tq_udfs::graph::NONE;
use tq_udfs::lanes::LaneSpan;
use tq_udfs::overview::rows::{Row, SPAN_BYTES, TicksOfNames};

use super::busy::{BusyLanes, covered};
use super::gathered::{TASK_BYTES, Tasks, too_little_memory};
use super::kept::{Expected, Keeping, KeptLanes, NumberOfNames, ROOM, TIMES, cannot_keep};
use super::lane::{GREY, Lane, Name, Read};
use super::wire::Columns;
use crate::charts::hues;
use crate::connection::{Connection, Params};
use crate::errors::{Failure, Problem, last_panic};
use crate::output::Picture;
use crate::{pictures, report};

/// Rows of a lane that are drawn; tasks below them are counted as not drawn.
pub(super) const ROWS_MAX: usize = 65_000;

/// What is drawn.
pub(super) struct Model {
    pub(super) lanes: Vec<Lane>,
    pub(super) names: Vec<Name>,
    /// First start and last finish, where there are tasks.
    pub(super) reach: Option<(i64, i64)>,
    busy: BusyShares,
    /// First start and last finish of all runs when they are aligned at their starts.
    aligned: Option<(i64, i64)>,
    /// As `busy`, with the runs aligned; computed when the page first asks for it.
    aligned_busy: OnceLock<BusyShares>,
    /// The lane of a run's location.
    lane_of: HashMap<(String, String), u32>,
    /// The rows of the lanes, where they are on disk.
    pub(super) kept: Option<KeptLanes>,
    /// Tallies that no tile uses at the moment, for the next tile.
    tallies: Mutex<Vec<TicksOfNames>>,
    /// The memory of the tasks, given back on drop.
    _memory: Option<MemoryReservation>,
}

/// The reach of the tasks, and the share of lanes that are busy in each of many equal parts of it.
type BusyShares = ((i64, i64), Vec<f32>);

/// First start and last finish of each run.
type ReachOfRuns = HashMap<String, (i64, i64)>;

/// How instants are shown: as they were recorded, or with all runs moved to the start of the first one.
#[derive(Clone, Copy)]
pub(super) struct Frame<'m> {
    pub(super) model: &'m Model,
    is_aligned: bool,
}

impl<'m> Frame<'m> {
    pub(super) fn as_recorded(model: &'m Model) -> Frame<'m> {
        Frame { model, is_aligned: false }
    }

    pub(super) fn of(model: &'m Model, is_aligned: bool) -> Frame<'m> {
        Frame { model, is_aligned }
    }

    /// What is subtracted from the instants of a lane.
    pub(super) fn shift(self, lane: &Lane) -> i64 {
        if self.is_aligned { lane.shift } else { 0 }
    }

    /// The same for a lane given by its number, else for a run; 0 where neither is known.
    pub(super) fn shift_of(self, lane: Option<u32>, run: Option<&str>) -> i64 {
        if !self.is_aligned {
            return 0;
        }
        let of_number = lane.and_then(|lane| self.model.lanes.get(lane as usize));
        let of_run = || self.model.lanes.iter().find(|lane| run == Some(lane.run.as_str()));
        of_number.or_else(of_run).map_or(0, |lane| self.shift(lane))
    }
}

/// The version of the file on disk: it changes with [`Known`] and with the layout in [`super::kept`].
const KEPT_VERSION: &str = "view 2";
/// A store with at least this many tasks keeps what the page draws of them.
const LEAST_KEPT: u64 = 1 << 20;

/// [`LEAST_KEPT`], or what a test sets in the environment.
fn least_kept() -> u64 {
    std::env::var("TQ_VIEW_LEAST_KEPT").ok().and_then(|tasks| tasks.parse().ok()).unwrap_or(LEAST_KEPT)
}

const COUNT: &str = "SELECT run, count(*), min(start), max(coalesce(finish, start)), bool_or(finish IS NULL) \
    FROM program_tasks WHERE start IS NOT NULL GROUP BY run";
const NAMES: &str = "SELECT name, first_value(kind ORDER BY start, task), count(*) AS tasks FROM program_tasks WHERE start IS NOT NULL GROUP BY name ORDER BY tasks DESC, name";
const LANES_OF_TASKS: &str =
    "SELECT DISTINCT run, location FROM program_tasks WHERE start IS NOT NULL ORDER BY run, location";
/// What never ended is drawn to the end.
const ROWS: &str = "SELECT run, location, name, task, start, finish, row FROM floating_rows( \
    (SELECT run, location, name, task, start, coalesce(finish, $last) AS finish FROM program_tasks WHERE start IS NOT NULL))";
const TASKS: &str = "SELECT run, location, name, kind, task, start, finish FROM program_tasks WHERE start IS NOT NULL";
/// The busy time of locations as reports have it: without waits, steps and the recorder's own tasks.
const BUSY: &str = "SELECT run, location, busy_time FROM busy_lanes";
const LOCATIONS: &str =
    "SELECT l.run, l.location, l.name, l.kind, l.role, l.parent FROM program_locations l JOIN runs r ON r.run = l.run";

impl Model {
    pub(super) fn read(connection: &mut Connection) -> Result<Model, Failure> {
        let beside = connection.session().beside(KEPT_VERSION);
        if let Some(model) = beside.as_ref().and_then(Model::found) {
            return Ok(model);
        }
        let Some(counted) = Counted::of(&connection.collect(COUNT, &Params::new())?)? else {
            return Model::in_memory(connection);
        };
        let is_large = beside.is_some() && counted.tasks >= least_kept();
        if is_large || counted.tasks.saturating_mul(TASK_BYTES as u64) > connection.session().memory_limit() as u64 / 2
        {
            // Where the file cannot be kept beside the runs (the disk is full, or `tq gc` removed it), a temporary one takes its place.
            return match Model::on_disk(connection, beside.as_ref(), &counted) {
                Err(Failure::Told(_)) if beside.is_some() => Model::on_disk(connection, None, &counted),
                kept => kept,
            };
        }
        Model::in_memory(connection)
    }

    fn in_memory(connection: &mut Connection) -> Result<Model, Failure> {
        let picture = pictures::of_session(connection)?;
        let mut lanes = lanes(&connection.collect(LOCATIONS, &Params::new())?, &picture)?;
        let mut lane_of = by_location(&lanes);
        let pool = &connection.session().context().runtime_env().memory_pool;
        let mut tasks = Tasks::new(MemoryConsumer::new("tasks of the page").register(pool));
        for statement in &tq_engine::sql::parse(TASKS)? {
            connection.run(statement, &Params::new(), &mut tasks)?;
        }
        let reach = tasks.reach();
        let spans = tasks.by_lane(&mut lanes, &mut lane_of);
        let (names, busy) = std::thread::scope(|scope| {
            let read = tasks.read.as_slice();
            let filling = scope.spawn(|| fill(&mut lanes, spans, read, reach));
            // Colours come from a query, meanwhile.
            (tasks.names(connection, &picture), filling.join())
        });
        let (names, busy) = (names?, busy.map_err(|_| Problem::internal(&last_panic()))?);
        set_reported_busy_times(connection, &mut lanes, &lane_of)?;
        let runs = reach_of_runs(&lanes);
        let aligned = align(&mut lanes, &runs);
        // Only the rows are left of what reading the tasks took.
        let memory = tasks.memory;
        memory.shrink(tasks.read.len() * (TASK_BYTES - SPAN_BYTES));
        let of_lanes = lanes.iter().filter(|lane| lane.tasks > 0).count();
        let busy = (reach.unwrap_or_default(), busy.map(|busy| busy.shares(of_lanes)).unwrap_or_default());
        let (tallies, aligned_busy) = (Mutex::default(), OnceLock::new());
        Ok(Model {
            lanes,
            names,
            reach,
            busy,
            aligned,
            aligned_busy,
            lane_of,
            kept: None,
            tallies,
            _memory: Some(memory),
        })
    }

    /// Writes the rows of the lanes to disk, beside the store if that can be.
    fn on_disk(connection: &mut Connection, beside: Option<&Beside>, counted: &Counted) -> Result<Model, Failure> {
        let Counted { reach, ref runs, .. } = *counted;
        let picture = pictures::of_session(connection)?;
        report::begin_with_hues(connection, &picture.names)?;
        let mut lanes = lanes(&connection.collect(LOCATIONS, &Params::new())?, &picture)?;
        let mut lane_of = by_location(&lanes);
        let others = connection.collect(LANES_OF_TASKS, &Params::new())?;
        let of_tasks = keys(&others)?;
        // NULL and '' as a location are one lane of the page.
        let are_apart = of_tasks.iter().collect::<HashSet<_>>().len() == of_tasks.len();
        let rows = if are_apart {
            ROWS.to_owned()
        } else {
            ROWS.replace(
                "run, location, name, task, start, coalesce",
                "run, coalesce(location, '') AS location, name, task, start, coalesce",
            )
        };
        for (run, location) in of_tasks {
            lane_of.entry((run, location)).or_insert_with_key(|(run, location)| {
                lanes.push(Lane::unknown(run.clone(), location.clone()));
                lanes.len() as u32 - 1
            });
        }
        let (names, name_of) = counted_names(connection, &picture)?;
        let pool = &connection.session().context().runtime_env().memory_pool;
        let memory = MemoryConsumer::new("what the page keeps on disk").register(pool);
        memory.try_grow(ROOM).map_err(|_| too_little_memory())?;
        // Where the store cannot be written, a temporary file takes its place.
        let unfinished: Option<Unfinished> = beside.and_then(|beside| beside.begin().ok());
        let file = match &unfinished {
            Some(unfinished) => unfinished.file()?,
            None => tempfile::tempfile().map_err(|error| cannot_keep(&error))?,
        };
        let aligned = align(&mut lanes, runs).unwrap_or(reach);
        let bins = |reach| BusyLanes::new(Some(reach)).ok_or_else(|| Problem::internal("an empty reach"));
        let (mut busy, mut aligned_busy) = (bins(reach)?, bins(aligned)?);
        let mut until = vec![i64::MIN; lanes.len()];
        let seen = |lane: u32, start: i64, finish: i64| {
            let (until, lane) = (&mut until[lane as usize], &mut lanes[lane as usize]);
            lane.tasks += 1;
            lane.reach = Some(lane.reach.map_or((start, finish), |reach| (reach.0, reach.1.max(finish))));
            let fresh = start.max(*until);
            if fresh < finish {
                lane.busy = lane.busy.saturating_add(finish.saturating_sub(fresh));
                busy.add(fresh, finish);
                aligned_busy.add(fresh - lane.shift, finish - lane.shift);
                *until = finish;
            }
        };
        let expected = Expected { reach, names: name_of, lanes: lane_of.clone() };
        let mut keeping = Keeping::new(file, expected, &memory, seen)?;
        let params: Params = vec![("last".to_owned(), ScalarValue::Int64(Some(reach.1)))];
        for statement in &tq_engine::sql::parse(&rows)? {
            connection.run(statement, &params, &mut keeping)?;
        }
        let written = keeping.written()?;
        set_reported_busy_times(connection, &mut lanes, &lane_of)?;
        let of_lanes = lanes.iter().filter(|lane| lane.tasks > 0).count();
        let busy = (reach, busy.shares(of_lanes));
        let aligned_busy = (aligned, aligned_busy.shares(of_lanes));
        let known = Known { lanes, names, reach, busy, aligned, aligned_busy };
        let kept = written.finish(&known)?;
        memory.resize(kept.size());
        // A file that could not be kept is made again the next time.
        let _ = unfinished.map(Unfinished::keep);
        Ok(known.with(kept, Some(memory)))
    }

    /// The model that an earlier page kept beside the store, if it is there and sound.
    fn found(beside: &Beside) -> Option<Model> {
        let (kept, known): (KeptLanes, Known) = KeptLanes::open(beside.find()?)?;
        let is_sound = known.is_sound() && known.lanes.len() == kept.lanes();
        is_sound.then(|| known.with(kept, None))
    }

    /// Extends the reach, as recorded and aligned, by what else is drawn: counters may begin before the first task or end after the last one.
    pub(super) fn extend_reach(&mut self, [recorded, aligned]: [Option<(i64, i64)>; 2]) {
        let around = |reach: Option<(i64, i64)>, other: Option<(i64, i64)>| match (reach, other) {
            (Some((first, last)), Some((from, to))) => Some((first.min(from), last.max(to))),
            (reach, other) => reach.or(other),
        };
        self.reach = around(self.reach, recorded);
        self.aligned = around(self.aligned, aligned);
    }

    /// First start and last finish of all runs when they are aligned at their starts.
    pub(super) fn aligned(&self) -> Option<(i64, i64)> {
        self.aligned
    }

    /// First start and last finish of each run that has tasks with times.
    pub(super) fn reach_of_runs(&self) -> ReachOfRuns {
        reach_of_runs(&self.lanes)
    }

    /// Whether all lanes are of one run.
    pub(super) fn is_one_run(&self) -> bool {
        is_one_run(&self.lanes)
    }

    /// How many rows a lane has.
    pub(super) fn rows(&self, lane: usize) -> usize {
        self.kept.as_ref().map_or_else(|| self.lanes[lane].rows.len(), |kept| kept.rows(lane))
    }

    /// How many tasks are drawn.
    pub(super) fn drawn_tasks(&self) -> i64 {
        if self.kept.is_some() {
            return self.lanes.iter().map(|lane| lane.tasks).sum();
        }
        self.lanes.iter().flat_map(|lane| lane.rows.iter().take(ROWS_MAX)).map(|row| row.len() as i64).sum()
    }

    /// The lane of a location; of any run that has it where none is named.
    pub(super) fn lane(&self, run: Option<&str>, location: &str) -> Option<u32> {
        match run {
            Some(run) => self.lane_of.get(&(run.to_owned(), location.to_owned())).copied(),
            None => self.lanes.iter().position(|lane| lane.location == location).map(|lane| lane as u32),
        }
    }

    /// The row of a task on its lane.
    pub(super) fn row(&self, lane: u32, task: i64, start: i64) -> Option<u16> {
        if let Some(kept) = &self.kept {
            return kept.row_of(lane as usize, task, start).and_then(|row| u16::try_from(row).ok());
        }
        let lane = self.lanes.get(lane as usize)?;
        if !lane.row_of.is_empty() {
            let place = lane.row_of.partition_point(|(other, _)| *other < task);
            let (_, row) = lane.row_of.get(place).filter(|(other, _)| *other == task)?;
            return u16::try_from(*row).ok();
        }
        // Of a slice, tasks begin where it does.
        let start = self.reach.map_or(start, |(first, _)| start.max(first));
        let is_there = |row: &Row| row.within(start, start.saturating_add(1)).any(|place| row.span(place).task == task);
        lane.rows.iter().position(is_there).and_then(|row| u16::try_from(row).ok())
    }

    /// Does something with a tally of all names.
    pub(super) fn with_tally<T>(&self, work: impl FnOnce(&mut TicksOfNames) -> T) -> T {
        let idle = self.tallies.lock().ok().and_then(|mut tallies| tallies.pop());
        let mut tally = idle.unwrap_or_else(|| TicksOfNames::new(self.names.len()));
        let answer = work(&mut tally);
        if let Ok(mut tallies) = self.tallies.lock() {
            tallies.push(tally);
        }
        answer
    }

    /// The lanes, for the page.
    pub(super) fn lane_columns(&self, frame: Frame<'_>) -> Columns {
        let mut columns = Columns::default();
        let mut table = columns.table("lanes", self.lanes.len());
        table.texts("run", self.lanes.iter().map(|lane| Some(lane.run.as_str())));
        table.texts("location", self.lanes.iter().map(|lane| Some(lane.location.as_str())));
        table.texts("name", self.lanes.iter().map(|lane| lane.name.as_deref()));
        table.texts("kind", self.lanes.iter().map(|lane| Some(lane.kind.as_str())));
        table.texts("role", self.lanes.iter().map(|lane| lane.role.as_deref()));
        table.u32("parent", self.lanes.iter().map(|lane| lane.parent.unwrap_or(NONE)));
        table.u16("rows", (0..self.lanes.len()).map(|lane| self.rows(lane).min(ROWS_MAX) as u16));
        table.i64("tasks", self.lanes.iter().map(|lane| lane.tasks));
        table.i64("busy", self.lanes.iter().map(|lane| lane.busy));
        let reach =
            |lane: &Lane| lane.reach.map(|(first, last)| (first - frame.shift(lane), last - frame.shift(lane))).unzip();
        let (starts, finishes): (Vec<_>, Vec<_>) = self.lanes.iter().map(reach).unzip();
        table.nullable("start", &starts);
        table.nullable("finish", &finishes);
        table.end();
        columns
    }

    /// How busy the lanes are over time, for the page.
    pub(super) fn busy_columns(&self, frame: Frame<'_>) -> Columns {
        let ((from, to), shares) = match self.aligned.filter(|_| frame.is_aligned) {
            Some(aligned) => self.aligned_busy.get_or_init(|| (aligned, self.busy_when_aligned(aligned))),
            None => &self.busy,
        };
        let mut columns = Columns::default();
        columns.extra("from", json!(from.to_string()));
        columns.extra("to", json!(to.to_string()));
        let mut table = columns.table("busy", shares.len());
        table.f32("share", shares.iter().copied());
        table.end();
        columns
    }

    fn busy_when_aligned(&self, reach: (i64, i64)) -> Vec<f32> {
        let Some(mut busy) = BusyLanes::new(Some(reach)) else { return Vec::new() };
        let lanes: Vec<&Lane> = self.lanes.iter().filter(|lane| !lane.rows.is_empty()).collect();
        for lane in &lanes {
            let mut spans: Vec<(i64, i64)> = lane.spans().map(|span| (span.start, span.finish)).collect();
            spans.sort_unstable();
            covered(spans, |start, finish| busy.add(start - lane.shift, finish - lane.shift));
        }
        busy.shares(lanes.len())
    }

    /// The names, for the page; those for which `needs` is false are empty.
    pub(super) fn name_columns(&self, needs: impl Fn(u32) -> bool) -> Columns {
        let unneeded = Name { text: String::new(), kind: String::new(), colour: GREY, tasks: 0 };
        let names: Vec<&Name> =
            (0..).zip(&self.names).map(|(number, name)| if needs(number) { name } else { &unneeded }).collect();
        let mut columns = Columns::default();
        let mut table = columns.table("names", names.len());
        table.texts("name", names.iter().map(|name| Some(name.text.as_str())));
        table.texts("kind", names.iter().map(|name| Some(name.kind.as_str())));
        table.u16("colour", names.iter().map(|name| name.colour));
        table.i64("tasks", names.iter().map(|name| name.tasks));
        table.end();
        columns
    }
}

/// All of a model but the rows of its lanes: what the file on disk keeps beside them.
#[derive(Serialize, Deserialize)]
struct Known {
    lanes: Vec<Lane>,
    names: Vec<Name>,
    reach: (i64, i64),
    busy: BusyShares,
    aligned: (i64, i64),
    aligned_busy: BusyShares,
}

impl Known {
    fn with(self, kept: KeptLanes, memory: Option<MemoryReservation>) -> Model {
        let Known { lanes, names, reach, busy, aligned, aligned_busy } = self;
        Model {
            lane_of: by_location(&lanes),
            lanes,
            names,
            reach: Some(reach),
            busy,
            aligned: Some(aligned),
            aligned_busy: OnceLock::from(aligned_busy),
            kept: Some(kept),
            tallies: Mutex::default(),
            _memory: memory,
        }
    }

    /// Whether the values are in the ranges that we write: the file may be damaged or a stranger's.
    fn is_sound(&self) -> bool {
        let is_reach = |(first, last): &(i64, i64)| TIMES.contains(first) && TIMES.contains(last) && first <= last;
        let is_colour = |colour: u16| colour == GREY || usize::from(colour) < hues().count();
        let is_lane = |lane: &Lane| {
            (0..=i64::from(u32::MAX)).contains(&lane.tasks)
                && lane.reach.as_ref().is_none_or(is_reach)
                && lane.shift >= 0
        };
        let reaches = [self.reach, self.busy.0, self.aligned, self.aligned_busy.0];
        reaches.iter().all(|reach| is_reach(reach) && reach.0 < reach.1)
            && self.names.iter().all(|name| is_colour(name.colour))
            && self.lanes.iter().all(|lane| is_lane(lane) && self.has_root(lane))
    }

    /// Whether the parents of a lane are there and lead to a root.
    fn has_root(&self, lane: &Lane) -> bool {
        let mut parent = lane.parent;
        for _ in 0..DEEPEST {
            match parent {
                None => return true,
                Some(number) => match self.lanes.get(number as usize) {
                    Some(above) => parent = above.parent,
                    None => return false,
                },
            }
        }
        false
    }
}

/// What is known of the tasks before they are read.
struct Counted {
    tasks: u64,
    /// First start and last finish.
    reach: (i64, i64),
    runs: ReachOfRuns,
}

impl Counted {
    /// Reads the answer of [`COUNT`]; `None` where there are none.
    fn of(rows: &RecordBatch) -> Result<Option<Counted>, Failure> {
        let names = cast(rows.column(0), &DataType::Utf8)?;
        let integers = |column: usize| Ok::<_, Failure>(cast(rows.column(column), &DataType::Int64)?);
        let (tasks, firsts, lasts) = (integers(1)?, integers(2)?, integers(3)?);
        let [tasks, firsts, lasts] =
            [&tasks, &firsts, &lasts].map(|column| column.as_primitive::<Int64Type>().values());
        let (Some(&first), Some(&last)) = (firsts.iter().min(), lasts.iter().max()) else { return Ok(None) };
        let reach = (first, last.max(first.saturating_add(1)));
        let is_open = rows.column(4).as_boolean();
        let run = |row: usize| {
            // What never ended is drawn to the end.
            let last = if is_open.value(row) { reach.1 } else { lasts[row] };
            (names.as_string::<i32>().value(row).to_owned(), (firsts[row], last))
        };
        Ok(Some(Counted {
            tasks: tasks.iter().sum::<i64>() as u64,
            reach,
            runs: (0..rows.num_rows()).map(run).collect(),
        }))
    }
}

/// Locations stand in trees no deeper than this.
const DEEPEST: usize = 256;

fn is_one_run(lanes: &[Lane]) -> bool {
    lanes.iter().all(|lane| lane.run == lanes[0].run)
}

/// The number of each lane.
fn by_location(lanes: &[Lane]) -> HashMap<(String, String), u32> {
    (0..).zip(lanes).map(|(number, lane)| ((lane.run.clone(), lane.location.clone()), number)).collect()
}

/// Runs and locations.
fn keys(rows: &RecordBatch) -> Result<Vec<(String, String)>, Failure> {
    let (runs, locations) = (cast(rows.column(0), &DataType::Utf8)?, cast(rows.column(1), &DataType::Utf8)?);
    let texts = |texts: &ArrayRef| -> Vec<String> {
        texts.as_string::<i32>().iter().map(|text| text.unwrap_or_default().to_owned()).collect()
    };
    Ok(texts(&runs).into_iter().zip(texts(&locations)).collect())
}

/// The names by number, those of most tasks first, and the number of each.
fn counted_names(connection: &mut Connection, picture: &Picture) -> Result<(Vec<Name>, NumberOfNames), Failure> {
    let rows = connection.collect(NAMES, &Params::new())?;
    let text = |column: usize| Ok::<_, Failure>(cast(rows.column(column), &DataType::Utf8)?);
    let (texts, kinds, tasks) = (text(0)?, text(1)?, cast(rows.column(2), &DataType::Int64)?);
    let (texts, kinds) = (texts.as_string::<i32>(), kinds.as_string::<i32>());
    let tasks = tasks.as_primitive::<Int64Type>().values();
    let name = |((text, kind), tasks): ((Option<&str>, Option<&str>), &i64)| {
        let text = text.unwrap_or_default();
        Name::coloured(text, kind.unwrap_or_default(), *tasks, picture)
    };
    let number_of = (0..).zip(texts).map(|(number, text)| (text.map(str::to_owned), number)).collect();
    Ok((texts.iter().zip(kinds).zip(tasks).map(name).collect(), number_of))
}

/// Distributes the tasks of all lanes to rows, on several threads. Returns how busy the lanes are.
fn fill(lanes: &mut [Lane], spans: Vec<Vec<LaneSpan>>, read: &[Read], reach: Option<(i64, i64)>) -> Option<BusyLanes> {
    let queue = Mutex::new(lanes.iter_mut().zip(spans));
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let fill = || {
        let mut busy = BusyLanes::new(reach);
        while let Some((lane, spans)) = next() {
            lane.fill(spans, read, busy.as_mut());
        }
        busy
    };
    std::thread::scope(|scope| {
        let fillers: Vec<_> = (0..threads).map(|_| scope.spawn(fill)).collect();
        let parts = fillers.into_iter().map(|filler| match filler.join() {
            Ok(part) => part,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        parts.flatten().reduce(|all, other| all.plus(&other))
    })
}

/// Gives lanes the busy time that reports show; lanes that reports leave out keep that of all their tasks.
fn set_reported_busy_times(
    connection: &mut Connection,
    lanes: &mut [Lane],
    lane_of: &HashMap<(String, String), u32>,
) -> Result<(), Failure> {
    let known = connection.collect(BUSY, &Params::new())?;
    let (runs, locations) = (cast(known.column(0), &DataType::Utf8)?, cast(known.column(1), &DataType::Utf8)?);
    let times = cast(known.column(2), &DataType::Int64)?;
    let keys = runs.as_string::<i32>().iter().zip(locations.as_string::<i32>());
    for ((run, location), time) in keys.zip(times.as_primitive::<Int64Type>()) {
        let key = (run.unwrap_or_default().to_owned(), location.unwrap_or_default().to_owned());
        if let (Some(&lane), Some(time)) = (lane_of.get(&key), time) {
            lanes[lane as usize].busy = time;
        }
    }
    Ok(())
}

fn reach_of_runs(lanes: &[Lane]) -> ReachOfRuns {
    let mut runs = ReachOfRuns::new();
    for (run, (first, last)) in lanes.iter().filter_map(|lane| Some((&lane.run, lane.reach?))) {
        let reach = runs.entry(run.clone()).or_insert((first, last));
        *reach = (reach.0.min(first), reach.1.max(last));
    }
    runs
}

/// Sets the shift of each lane: how much later than the first run its run began. Returns the reach of all runs when they are aligned.
fn align(lanes: &mut [Lane], runs: &ReachOfRuns) -> Option<(i64, i64)> {
    let begin = runs.values().map(|(first, _)| *first).min()?;
    for lane in lanes {
        lane.shift = runs.get(&lane.run).map_or(0, |(first, _)| first.saturating_sub(begin));
    }
    let last = runs.values().map(|(first, last)| last - first.saturating_sub(begin)).max()?;
    Some((begin, last.max(begin.saturating_add(1))))
}

/// Locations in the order in which the traces want them.
fn lanes(rows: &RecordBatch, picture: &Picture) -> Result<Vec<Lane>, Failure> {
    let columns = rows.columns().iter().map(|column| cast(column, &DataType::Utf8)).collect::<Result<Vec<_>, _>>()?;
    let text = |column: usize, row: usize| -> Option<String> {
        let texts = columns[column].as_string::<i32>();
        texts.is_valid(row).then(|| texts.value(row).to_owned())
    };
    let place_of: HashMap<(&str, &str), usize> = picture
        .order
        .lanes
        .iter()
        .enumerate()
        .map(|(place, (run, location, _))| ((run.as_str(), location.as_str()), place))
        .collect();
    let mut order: Vec<(usize, usize)> = (0..rows.num_rows())
        .map(|row| {
            let (run, location) = (text(0, row).unwrap_or_default(), text(1, row).unwrap_or_default());
            (place_of.get(&(run.as_str(), location.as_str())).copied().unwrap_or(usize::MAX), row)
        })
        .collect();
    order.sort_unstable();
    let of_text: HashMap<(String, String), u32> = order
        .iter()
        .enumerate()
        .map(|(place, (_, row))| ((text(0, *row).unwrap_or_default(), text(1, *row).unwrap_or_default()), place as u32))
        .collect();
    let lane = |(_, row): (usize, usize)| {
        let (run, location) = (text(0, row).unwrap_or_default(), text(1, row).unwrap_or_default());
        let parent = text(5, row).and_then(|parent| of_text.get(&(run.clone(), parent)).copied());
        let (name, kind, role) = (text(2, row), text(3, row).unwrap_or_default(), text(4, row));
        Lane { name, kind, role, parent, ..Lane::unknown(run, location) }
    };
    Ok(order.into_iter().map(lane).collect())
}
