//! From the inputs `tasks` and `links` to one numbered graph per run.
//!
//! Tasks are read first: their batches are kept (they hold the names that an answer shows, and in memory they are slices
//! of the table, not copies), rows are split by run, ids numbered, durations put in the order of the numbers. Then links
//! stream by: each batch is split by run and turned into pairs of numbers at once, so links cost 8 bytes each.
//!
//! Where the tasks do not fit in memory they stand in a file, and no batch is kept: ids that follow each other are a range, durations are read
//! a second time straight into their places, and names are looked up in the file for the tasks that an answer shows.
//!
//! Whatever is left out or guessed is counted in [`Counts`], for the caller to report.

use std::borrow::Cow;
use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, UInt32Array, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{cast, concat_batches, filter_record_batch, take_record_batch};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion_common::{Result, exec_err, internal_err};

use crate::graph::NONE;
use crate::graph::ids::{DuplicateTask, TaskIds};
use crate::graph::links::{Link, Links};
use crate::graph::standing::Standing;
use crate::relation::call::{Call, Work, column};
use crate::relation::gather::gather;
use crate::relation::parts::{InputPlan, Share};
use crate::relation::rows::without_null;
use crate::relation::runs::{Reading, Runs};
use crate::relation::stored::{Stored, StoredBatches};
use crate::relation::{ColumnKind, ColumnSpec, InputSpec, Omitted, Parameter};

/// The input `links` of every function that calls [`Graphs::read`].
pub(crate) const LINKS: Parameter = Parameter::Input(InputSpec {
    name: "links",
    omitted: Omitted::Table("links"),
    columns: &[
        ColumnSpec::needed("source", ColumnKind::Integer),
        ColumnSpec::needed("target", ColumnKind::Integer),
        ColumnSpec::optional("kind", ColumnKind::Text),
    ],
});

/// Tasks and links run by run, where a task takes so many bytes beside its row.
pub(crate) fn by_run(task_bytes: usize) -> [InputPlan<'static>; 2] {
    [
        InputPlan { input: "tasks", share: Share::Runs, row_bytes: task_bytes },
        InputPlan { input: "links", share: Share::Runs, row_bytes: 0 },
    ]
}

/// The graphs of all runs.
#[derive(Debug)]
pub struct Graphs {
    /// The runs, in the order in which they appeared.
    pub runs: Runs,
    /// Per run, its graph.
    pub graphs: Vec<Graph>,
    /// What was left out or guessed.
    pub counts: Counts,
    shelf: Shelf,
}

/// Where the rows of the input `tasks` are.
#[derive(Debug)]
enum Shelf {
    Memory(Vec<RecordBatch>),
    Disk(Stored),
}

/// The graph of one run.
#[derive(Debug)]
pub struct Graph {
    /// The numbers of its tasks.
    pub ids: TaskIds,
    /// Durations by index; 0 for NULL and for indices without a task. Empty when the input does not have them.
    pub durations: Vec<i64>,
    /// The links between its tasks.
    pub links: Links,
    /// The links of kind `weak`, when they were asked for separately; else they are among `links`.
    pub weak: Links,
    /// Links that were not turned into indices yet ([`Graph::number_links`]).
    pub standing: Standing,
    segments: Vec<Segment>,
}

/// Rows of the input `tasks` that were left out or completed, and links that were left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Tasks whose id is NULL: left out.
    pub tasks_without_id: usize,
    /// Tasks whose duration is NULL: taken as 0.
    pub tasks_without_duration: usize,
    /// Links with a NULL end: left out.
    pub links_without_end: usize,
    /// Links to or from a task that is not there, in the same run: left out.
    pub links_to_nowhere: usize,
    /// Links read, of the kinds asked for.
    pub links: usize,
}

/// How links are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkChoice {
    /// As pairs of indices, all of them in [`Graph::links`].
    Together,
    /// As pairs of indices, those of kind `weak` in [`Graph::weak`].
    WeakApart,
    /// Where ids are a range without holes, as they stand in their table, in [`Graph::standing`]; else together.
    AsTheyStand,
}

impl Counts {
    /// Adds those of other runs.
    pub(crate) fn add(&mut self, other: Counts) {
        self.tasks_without_id += other.tasks_without_id;
        self.tasks_without_duration += other.tasks_without_duration;
        self.links_without_end += other.links_without_end;
        self.links_to_nowhere += other.links_to_nowhere;
        self.links += other.links;
    }
}

/// Rows of one run that stand together in a batch.
#[derive(Debug, Clone)]
struct Segment {
    batch: usize,
    rows: Range<usize>,
    /// The row of the run with which the segment begins.
    first: usize,
}

/// The ids of the tasks of a segment whose batch is not kept.
#[derive(Debug, Clone)]
enum SegmentIds {
    /// So many that follow this one, itself among them.
    From(i64, usize),
    List(Vec<i64>),
}

impl SegmentIds {
    fn of(ids: &[i64]) -> SegmentIds {
        match ids {
            [first, ..] if (0i64..).zip(ids).all(|(row, id)| id.wrapping_sub(*first) == row && id >= first) => {
                SegmentIds::From(*first, ids.len())
            }
            _ => SegmentIds::List(ids.to_vec()),
        }
    }

    fn first(&self) -> Option<i64> {
        match self {
            SegmentIds::From(first, _) => Some(*first),
            SegmentIds::List(ids) => ids.first().copied(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            SegmentIds::From(..) => 0,
            SegmentIds::List(ids) => ids.len() * size_of::<i64>(),
        }
    }
}

/// Ids that must follow each other, on average, for a list of them to be cut where they do not.
const WORTH_A_CUT: usize = 64;

/// The ids of a batch, cut where they do not follow each other: where partitions meet, a batch has rows of both.
fn pieces(ids: &[i64]) -> Vec<(Range<usize>, SegmentIds)> {
    let is_cut = |pair: &[i64]| pair[0].checked_add(1) != Some(pair[1]);
    let cuts = || ids.windows(2).enumerate().filter(|(_, pair)| is_cut(pair)).map(|(place, _)| place + 1);
    if cuts().count() > ids.len() / WORTH_A_CUT {
        return vec![(0..ids.len(), SegmentIds::of(ids))];
    }
    let starts = std::iter::once(0).chain(cuts());
    let ends = cuts().chain(std::iter::once(ids.len()));
    starts.zip(ends).map(|(from, to)| (from..to, SegmentIds::of(&ids[from..to]))).collect()
}

/// The rows of segments of stored batches, in the order in which they stand there.
struct StoredRows<'a> {
    batches: StoredBatches,
    /// The number of the batch that comes next.
    next: usize,
    batch: Option<RecordBatch>,
    /// The segments that have not come yet, the next one last.
    segments: Vec<&'a Segment>,
}

impl<'a> StoredRows<'a> {
    fn of(stored: &Stored, segments: &'a [Segment]) -> Result<StoredRows<'a>> {
        let mut segments: Vec<&Segment> = segments.iter().collect();
        segments.sort_unstable_by_key(|segment| std::cmp::Reverse((segment.batch, segment.rows.start)));
        Ok(StoredRows { batches: stored.batches()?, next: 0, batch: None, segments })
    }

    fn next_rows(&mut self) -> Result<Option<(&'a Segment, RecordBatch)>> {
        let Some(segment) = self.segments.pop() else { return Ok(None) };
        while self.next <= segment.batch {
            let Some(batch) = self.batches.next().transpose()? else {
                return internal_err!("a file of tasks has fewer batches than were written");
            };
            self.batch = Some(without_null(batch, &["task"], &mut 0)?);
            self.next += 1;
        }
        let rows = self.batch.as_ref().map(|batch| batch.slice(segment.rows.start, segment.rows.len()));
        Ok(rows.map(|rows| (segment, rows)))
    }
}

impl<'a> Iterator for StoredRows<'a> {
    type Item = Result<(&'a Segment, RecordBatch)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_rows().transpose()
    }
}

/// Columns of some tasks of a run.
pub(crate) enum Chosen<'a> {
    Memory {
        graphs: &'a Graphs,
        run: usize,
        tasks: &'a [u32],
    },
    /// Their rows, which were looked up in a file.
    Rows(RecordBatch),
}

impl Chosen<'_> {
    /// A text column as `Utf8View`; NULLs when the input does not have it.
    pub(crate) fn text(&self, name: &str) -> Result<ArrayRef> {
        self.column(name, &DataType::Utf8View)
    }

    /// A `BIGINT` column; NULLs when the input does not have it.
    pub(crate) fn integers(&self, name: &str) -> Result<ArrayRef> {
        self.column(name, &DataType::Int64)
    }

    /// A column of this type; NULLs when the input does not have it.
    pub(crate) fn column(&self, name: &str, data_type: &DataType) -> Result<ArrayRef> {
        match self {
            Chosen::Memory { graphs, run, tasks } => graphs.gather(*run, tasks, name, data_type),
            Chosen::Rows(rows) => match rows.column_by_name(name) {
                Some(values) => Ok(cast(values, data_type)?),
                None => Ok(new_null_array(data_type, rows.num_rows())),
            },
        }
    }
}

impl Graphs {
    /// Reads `tasks` and `links` of a call. When `links` was omitted, only rows of kind `dependency` are taken.
    pub fn read(call: &mut Call, choice: LinkChoice) -> Result<Graphs> {
        let mut graphs = Graphs::read_tasks(call)?;
        graphs.read_durations(&mut call.work)?;
        graphs.read_links(call, choice)?;
        Ok(graphs)
    }

    /// Reads `tasks` of a call, and numbers them: graphs without links and durations.
    pub fn read_tasks(call: &mut Call) -> Result<Graphs> {
        read_tasks(call)
    }

    /// Whether the input has a column.
    pub(crate) fn has(&self, name: &str) -> bool {
        match &self.shelf {
            Shelf::Memory(batches) => batches.first().is_some_and(|batch| batch.column_by_name(name).is_some()),
            Shelf::Disk(stored) => stored.has(name),
        }
    }

    fn read_durations(&mut self, work: &mut Work) -> Result<()> {
        if self.has("duration") {
            for graph in &mut self.graphs {
                let (durations, unknown) = graph.integers(&self.shelf, "duration", 0, work)?;
                graph.durations = durations;
                self.counts.tasks_without_duration += unknown;
            }
        }
        Ok(())
    }

    /// The values of a text column of `tasks` for tasks of a run, as `Utf8View`; NULLs when the input does not have it.
    pub fn text(&self, run: usize, tasks: &[u32], name: &str) -> Result<ArrayRef> {
        self.chosen(run, tasks)?.text(name)
    }

    /// The columns of tasks of a run. Each call looks through the whole file where tasks are on disk: see [`Graphs::at_once`].
    pub(crate) fn chosen<'a>(&'a self, run: usize, tasks: &'a [u32]) -> Result<Chosen<'a>> {
        match &self.shelf {
            Shelf::Memory(_) => Ok(Chosen::Memory { graphs: self, run, tasks }),
            Shelf::Disk(stored) => self.graphs[run].chosen_rows(stored, tasks).map(Chosen::Rows),
        }
    }

    /// How many tasks should be looked up at a time.
    pub(crate) fn at_once(&self) -> usize {
        match &self.shelf {
            Shelf::Memory(_) => 1 << 16,
            Shelf::Disk(_) => 1 << 18,
        }
    }

    /// A `BIGINT` column of all tasks of a run by index, `null` for NULLs and for indices without a task.
    pub fn by_index(&self, run: usize, name: &str, null: i64, work: &mut Work) -> Result<Vec<i64>> {
        Ok(self.graphs[run].integers(&self.shelf, name, null, work)?.0)
    }

    /// The rows of a run, as they stand in the input: for answers with a row per task.
    pub fn rows(&self, run: usize) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + '_>> {
        let segments = &self.graphs[run].segments;
        Ok(match &self.shelf {
            Shelf::Memory(batches) => Box::new(
                segments.iter().map(|segment| Ok(batches[segment.batch].slice(segment.rows.start, segment.rows.len()))),
            ),
            Shelf::Disk(stored) => Box::new(StoredRows::of(stored, segments)?.map(|rows| rows.map(|(_, rows)| rows))),
        })
    }

    fn gather(&self, run: usize, tasks: &[u32], name: &str, data_type: &DataType) -> Result<ArrayRef> {
        let (graph, Shelf::Memory(batches)) = (&self.graphs[run], &self.shelf) else {
            return internal_err!("tasks on disk are looked up row by row");
        };
        let columns: Option<Vec<&dyn Array>> =
            batches.iter().map(|batch| Some(batch.column_by_name(name)?.as_ref())).collect();
        let Some(columns) = columns.filter(|columns| !columns.is_empty()) else {
            return Ok(new_null_array(data_type, tasks.len()));
        };
        let mut segment = 0;
        let places: Vec<(usize, usize)> = tasks.iter().map(|task| graph.place(*task, &mut segment)).collect();
        gather(&columns, &places, data_type)
    }

    fn read_links(&mut self, call: &mut Call, choice: LinkChoice) -> Result<()> {
        let (links, work) = call.input("links")?;
        let dependencies_only = links.was_omitted();
        let mut reading = Reading::default();
        while let Some(batch) = links.next_batch()? {
            work.check()?;
            let batch = if dependencies_only { dependencies_of(batch)? } else { batch };
            self.counts.links += batch.num_rows();
            let batch = without_null(batch, &["source", "target"], &mut self.counts.links_without_end)?;
            if choice == LinkChoice::WeakApart {
                let (weak, others) = part_by_kind(&batch, "weak")?;
                self.add_links(&others, &mut reading, work, choice, |graph| &mut graph.links)?;
                self.add_links(&weak, &mut reading, work, choice, |graph| &mut graph.weak)?;
            } else {
                self.add_links(&batch, &mut reading, work, choice, |graph| &mut graph.links)?;
            }
        }
        for graph in &self.graphs {
            let links = graph.links.len() + graph.weak.len() + graph.standing.len();
            if links >= NONE as usize {
                return exec_err!("a run of {links} links is more than can be numbered");
            }
        }
        Ok(())
    }

    fn add_links(
        &mut self,
        batch: &RecordBatch,
        reading: &mut Reading,
        work: &mut Work,
        choice: LinkChoice,
        kept: impl Fn(&mut Graph) -> &mut Links,
    ) -> Result<()> {
        let (sources, targets) = (integers(batch, "source")?, integers(batch, "target")?);
        let runs = batch.column_by_name("run");
        let as_they_stand = choice == LinkChoice::AsTheyStand;
        if runs.is_none() && !self.runs.is_single_null() {
            work.grow(batch.num_rows() * size_of::<Link>())?;
            self.counts.links_to_nowhere += self.add_links_of_any_run(sources.values(), targets.values(), kept);
            return Ok(());
        }
        for stretch in self.runs.find(reading, runs, batch.num_rows())? {
            self.counts.links_to_nowhere += match stretch.run {
                Some(run) if as_they_stand && self.graphs[run].ids.dense_base().is_some() => {
                    let rows = stretch.rows;
                    let slice = |ids: &Int64Array| ids.values().slice(rows.start, rows.len());
                    self.graphs[run].standing.add(slice(sources), slice(targets), work)?;
                    0
                }
                Some(run) => {
                    work.grow(stretch.rows.len() * size_of::<Link>())?;
                    let graph = &mut self.graphs[run];
                    let ids = std::mem::take(&mut graph.ids);
                    let (sources, targets) = (&sources.values()[stretch.rows.clone()], &targets.values()[stretch.rows]);
                    let left_out = kept(graph).add(&ids, sources, targets);
                    graph.ids = ids;
                    left_out
                }
                None => stretch.rows.len(),
            };
        }
        Ok(())
    }

    /// Links that do not say their run go to every run in which both tasks are.
    fn add_links_of_any_run(
        &mut self,
        sources: &[i64],
        targets: &[i64],
        kept: impl Fn(&mut Graph) -> &mut Links,
    ) -> usize {
        let mut left_out = 0;
        for (source, target) in sources.iter().zip(targets) {
            let mut found = false;
            for graph in &mut self.graphs {
                if let (Some(source), Some(target)) = (graph.ids.index(*source), graph.ids.index(*target)) {
                    kept(graph).push(Link { source, target });
                    found = true;
                }
            }
            left_out += usize::from(!found);
        }
        left_out
    }
}

impl Graph {
    /// Turns links that still stand in their table into indices; answers how many lead to or from a task that is not there.
    pub fn number_links(&mut self, work: &mut Work) -> Result<usize> {
        let standing = std::mem::take(&mut self.standing);
        let mut nowhere = 0;
        standing.drain(work, |stretch, work| {
            work.grow(stretch.targets.len() * size_of::<Link>())?;
            nowhere += self.links.add(&self.ids, stretch.sources, stretch.targets);
            Ok(())
        })?;
        Ok(nowhere)
    }

    /// A `BIGINT` column by task index, with `null` for NULLs and for indices without a task; and how many NULLs there
    /// are.
    ///
    /// # Errors
    /// A value of `i64::MIN` where that stands for NULLs; no memory.
    fn integers(&self, shelf: &Shelf, name: &str, null: i64, work: &mut Work) -> Result<(Vec<i64>, usize)> {
        let batches = match shelf {
            Shelf::Memory(batches) => batches,
            Shelf::Disk(stored) => return self.stored_integers(stored, name, null, work),
        };
        let tasks = self.segments.last().map_or(0, |last| last.first + last.rows.len());
        work.grow(tasks * size_of::<i64>())?;
        let (mut by_row, mut unknown): (Vec<i64>, usize) = (Vec::with_capacity(tasks), 0);
        for segment in &self.segments {
            let values = integers(&batches[segment.batch], name)?.slice(segment.rows.start, segment.rows.len());
            unknown += values.null_count();
            refuse(null, &values, name)?;
            if values.null_count() == 0 {
                by_row.extend_from_slice(values.values());
            } else {
                by_row.extend(values.iter().map(|value| value.unwrap_or(null)));
            }
        }
        if self.ids.rows_are_indices() {
            return Ok((by_row, unknown));
        }
        work.grow(self.ids.slots() * size_of::<i64>())?;
        let row_of = |index| self.ids.row(index).map_or(null, |row| by_row[row as usize]);
        let by_index = (0..self.ids.slots() as u32).map(row_of).collect();
        work.shrink(tasks * size_of::<i64>());
        Ok((by_index, unknown))
    }

    /// The same of tasks on disk: each value is written to its place.
    fn stored_integers(&self, stored: &Stored, name: &str, null: i64, work: &mut Work) -> Result<(Vec<i64>, usize)> {
        work.grow(self.ids.slots() * size_of::<i64>())?;
        let (mut by_index, mut unknown) = (vec![null; self.ids.slots()], 0);
        for rows in StoredRows::of(stored, &self.segments)? {
            work.check()?;
            let (_, rows) = rows?;
            let (tasks, values) = (integers(&rows, "task")?, integers(&rows, name)?);
            unknown += values.null_count();
            refuse(null, values, name)?;
            for (task, value) in tasks.values().iter().zip(values) {
                if let Some((index, value)) = self.ids.index(*task).zip(value) {
                    by_index[index as usize] = value;
                }
            }
        }
        Ok((by_index, unknown))
    }

    /// The rows of tasks on disk, in the order of `tasks`.
    fn chosen_rows(&self, stored: &Stored, tasks: &[u32]) -> Result<RecordBatch> {
        let row = |task: &u32| self.ids.row(*task).map_or(0, |row| row as usize);
        let mut wanted: Vec<(usize, u32)> = tasks.iter().map(row).zip(0..).collect();
        wanted.sort_unstable();
        let (mut found, mut places) = (vec![], vec![]);
        for rows in StoredRows::of(stored, &self.segments)? {
            let (segment, rows) = rows?;
            let from = wanted.partition_point(|(row, _)| *row < segment.first);
            let to = wanted.partition_point(|(row, _)| *row < segment.first + segment.rows.len());
            if from < to {
                let picks = wanted[from..to].iter().map(|(row, _)| (row - segment.first) as u32);
                found.push(take_record_batch(&rows, &UInt32Array::from_iter_values(picks))?);
                places.extend(wanted[from..to].iter().map(|(_, place)| *place));
            }
        }
        let Some(schema) = found.first().map(RecordBatch::schema) else {
            return internal_err!("tasks of an answer are not in their file");
        };
        let together = concat_batches(&schema, &found)?;
        if places.is_sorted() {
            return Ok(together);
        }
        let mut order = vec![0u32; places.len()];
        (0..).zip(places).for_each(|(row, place): (u32, u32)| order[place as usize] = row);
        Ok(take_record_batch(&together, &UInt32Array::from(order))?)
    }

    /// The batch and the row of a task. `guess`: the segment of the task that was asked for last, mostly this one's, too.
    fn place(&self, task: u32, guess: &mut usize) -> (usize, usize) {
        // Indices come from tasks, so they have rows.
        let row = self.ids.row(task).map_or(0, |row| row as usize);
        let is_in = |segment: &Segment| segment.first <= row && row - segment.first < segment.rows.len();
        if !is_in(&self.segments[*guess]) {
            *guess = self.segments.partition_point(|segment| segment.first <= row) - 1;
        }
        let segment = &self.segments[*guess];
        (segment.batch, segment.rows.start + (row - segment.first))
    }
}

fn read_tasks(call: &mut Call) -> Result<Graphs> {
    let (tasks, work) = call.input("tasks")?;
    let (mut runs, mut reading, mut counts) = (Runs::new(), Reading::default(), Counts::default());
    // A part of many runs fits in memory and is faster there.
    let stored = tasks.stored().filter(|stored| stored.bytes() > work.limit() / 4).cloned();
    let (mut batches, mut number) = (vec![], 0);
    let mut segments_of_runs: Vec<Vec<(Segment, SegmentIds)>> = vec![];
    while let Some(batch) = tasks.next_batch()? {
        work.check()?;
        let batch = without_null(batch, &["task"], &mut counts.tasks_without_id)?;
        if stored.is_none() {
            work.keep(&batch)?;
        }
        let ids = integers(&batch, "task")?.values();
        for stretch in runs.learn(&mut reading, batch.column_by_name("run"), batch.num_rows())? {
            let Some(run) = stretch.run else { continue };
            segments_of_runs.resize(runs.len().max(segments_of_runs.len()), vec![]);
            let segments = &mut segments_of_runs[run];
            let pieces = match stored {
                Some(_) => pieces(&ids[stretch.rows.clone()]),
                None => vec![(0..stretch.rows.len(), SegmentIds::From(ids[stretch.rows.start], 0))],
            };
            for (rows, ids) in pieces {
                let first = segments.last().map_or(0, |(last, _)| last.first + last.rows.len());
                work.grow(ids.bytes())?;
                let rows = stretch.rows.start + rows.start..stretch.rows.start + rows.end;
                segments.push((Segment { batch: number, rows, first }, ids));
            }
        }
        number += 1;
        if stored.is_none() {
            batches.push(batch);
        }
    }
    let shelf = stored.map_or(Shelf::Memory(batches), Shelf::Disk);
    let mut graphs = Vec::with_capacity(segments_of_runs.len());
    for (run, segments) in segments_of_runs.into_iter().enumerate() {
        let of_run = match runs.describe(run) {
            run if run.is_empty() => run,
            run => format!(" of {run}"),
        };
        graphs.push(number_tasks(&shelf, segments, &of_run, work)?);
    }
    Ok(Graphs { runs, graphs, counts, shelf })
}

fn number_tasks(shelf: &Shelf, segments: Vec<(Segment, SegmentIds)>, of_run: &str, work: &mut Work) -> Result<Graph> {
    let tasks = segments.last().map_or(0, |(last, _)| last.first + last.rows.len());
    if tasks >= NONE as usize {
        return exec_err!("a run of {tasks} tasks is more than can be numbered");
    }
    let segments = by_first_task(segments);
    let ids = match shelf {
        Shelf::Memory(batches) => {
            let mut slices = Vec::with_capacity(segments.len());
            for (segment, _) in &segments {
                slices.push(&integers(&batches[segment.batch], "task")?.values()[segment.rows.clone()]);
            }
            // At most 16 bytes a task while ids are sorted.
            work.grow(tasks * 16)?;
            let ids = TaskIds::number(&slices);
            work.shrink(tasks * 16);
            ids
        }
        Shelf::Disk(_) => number_stored(&segments, tasks, work)?,
    };
    let ids = match ids {
        Ok(ids) => ids,
        Err(twice) => return exec_err!("task {}{of_run} is in input `tasks` more than once", twice.0),
    };
    work.check()?;
    work.grow(ids.size())?;
    Ok(Graph {
        ids,
        durations: vec![],
        links: Links::default(),
        weak: Links::default(),
        standing: Standing::default(),
        segments: segments.into_iter().map(|(segment, _)| segment).collect(),
    })
}

/// Numbers tasks whose batches are not kept. Ids of a whole table follow each other from segment to segment, and then there is nothing to keep.
fn number_stored(
    segments: &[(Segment, SegmentIds)],
    tasks: usize,
    work: &mut Work,
) -> Result<std::result::Result<TaskIds, DuplicateTask>> {
    let (mut base, mut next) = (None, None);
    let follow = segments.iter().all(|(_, ids)| match ids {
        SegmentIds::From(first, count) if next.is_none_or(|next| next == *first) => {
            base = base.or(Some(*first));
            next = first.checked_add(*count as i64);
            next.is_some()
        }
        _ => false,
    });
    if let Some(base) = base.filter(|_| follow) {
        return Ok(Ok(TaskIds::consecutive(base, tasks)));
    }
    let listed: usize = segments.iter().map(|(_, ids)| ids.bytes()).sum();
    let asked = tasks * (16 + size_of::<i64>()) - listed;
    work.grow(asked)?;
    let lists: Vec<Cow<'_, [i64]>> = segments
        .iter()
        .map(|(_, ids)| match ids {
            SegmentIds::From(first, count) => Cow::from_iter((*first..).take(*count)),
            SegmentIds::List(ids) => Cow::Borrowed(ids.as_slice()),
        })
        .collect();
    let ids = TaskIds::number(&lists.iter().map(AsRef::as_ref).collect::<Vec<&[i64]>>());
    work.shrink(asked + listed);
    Ok(ids)
}

/// Partitions are read concurrently, so batches of a table in order have changed places: puts them back.
fn by_first_task(mut segments: Vec<(Segment, SegmentIds)>) -> Vec<(Segment, SegmentIds)> {
    segments.sort_by_key(|(_, ids)| ids.first());
    let mut first = 0;
    for (segment, _) in &mut segments {
        segment.first = first;
        first += segment.rows.len();
    }
    segments
}

/// An error where a value is the one that stands for unknown ones.
fn refuse(null: i64, values: &Int64Array, name: &str) -> Result<()> {
    if null == i64::MIN && values.iter().any(|value| value == Some(null)) {
        return exec_err!("a {name} of {null} cannot be distinguished from an unknown one: shift the times");
    }
    Ok(())
}

pub(crate) fn integers<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a Int64Array> {
    Ok(column(batch, name)?.as_primitive::<Int64Type>())
}

/// The rows of kind `dependency`; all of a table that does not know kinds.
fn dependencies_of(batch: RecordBatch) -> Result<RecordBatch> {
    if batch.column_by_name("kind").is_none() {
        return Ok(batch);
    }
    Ok(part_by_kind(&batch, "dependency")?.0)
}

/// Parts the rows whose `kind` is this one from the others; a NULL kind is another. Without the column, all are others.
fn part_by_kind(batch: &RecordBatch, kind: &str) -> Result<(RecordBatch, RecordBatch)> {
    let Some(kinds) = batch.column_by_name("kind") else { return Ok((batch.slice(0, 0), batch.clone())) };
    let these = equals_text(kinds, kind)?;
    let count = these.count_set_bits();
    if count == 0 || count == batch.num_rows() {
        return Ok((batch.slice(0, count), batch.slice(0, batch.num_rows() - count)));
    }
    let others = BooleanArray::new(!&these, None);
    Ok((filter_record_batch(batch, &BooleanArray::new(these, None))?, filter_record_batch(batch, &others)?))
}

/// Which values equal a text.
fn equals_text(values: &ArrayRef, text: &str) -> Result<BooleanBuffer> {
    texts_that(values, |value| value == text)
}

/// Which values are texts for which something holds. A dictionary is looked at once per entry, not once per row.
pub(crate) fn texts_that(values: &ArrayRef, holds: impl Fn(&str) -> bool + Copy) -> Result<BooleanBuffer> {
    if let Some(dictionary) = values.as_dictionary_opt::<Int32Type>() {
        let views = cast(dictionary.values(), &DataType::Utf8View)?;
        let entries = views_that(&views, holds);
        let (keys, nulls) = (dictionary.keys().values(), dictionary.keys().nulls());
        // Mostly all rows are of one kind, or a stretch of them is: the same for all needs no look at each.
        let are_equal = || entries.len() == 1 || keys.iter().fold(true, |all, key| all & (*key == keys[0]));
        if nulls.is_none() && !keys.is_empty() && are_equal() {
            let all = entries.value(keys[0] as usize);
            return Ok(if all { BooleanBuffer::new_set(keys.len()) } else { BooleanBuffer::new_unset(keys.len()) });
        }
        let of_row = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row)) && entries.value(keys[row] as usize);
        return Ok(BooleanBuffer::collect_bool(keys.len(), of_row));
    }
    Ok(views_that(&cast(values, &DataType::Utf8View)?, holds))
}

fn views_that(views: &ArrayRef, holds: impl Fn(&str) -> bool) -> BooleanBuffer {
    let views = views.as_string_view();
    BooleanBuffer::collect_bool(views.len(), |row| views.is_valid(row) && holds(views.value(row)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_cut_where_they_do_not_follow_each_other() {
        let described = |ids: &[i64]| {
            let of = |(rows, ids): (Range<usize>, SegmentIds)| (rows, ids.first().unwrap_or(-1), ids.bytes());
            pieces(ids).into_iter().map(of).collect::<Vec<_>>()
        };
        let both: Vec<i64> = (700..800).chain(100..200).collect();
        assert_eq!(described(&both), [(0..100, 700, 0), (100..200, 100, 0)]);
        assert_eq!(described(&both[..64]), [(0..64, 700, 0)]);
        assert_eq!(described(&[5]), [(0..1, 5, 0)]);
        // Many pieces are a list.
        let odd: Vec<i64> = (0..100).map(|id| 2 * id).collect();
        assert_eq!(described(&odd), [(0..100, 0, 800)]);
    }
}
