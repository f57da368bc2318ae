//! From the inputs `tasks` and `links` to one numbered graph per run.
//!
//! Tasks are read first: their batches are kept (they hold the names that an answer shows, and in memory they are slices
//! of the table, not copies), rows are split by run, ids numbered, durations put in the order of the numbers. Then links
//! stream by: each batch is split by run and turned into pairs of numbers at once, so links cost 8 bytes each.
//!
//! Whatever is left out or guessed is counted in [`Counts`], for the caller to report.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, new_null_array};
use arrow::buffer::{BooleanBuffer, ScalarBuffer};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion_common::{Result, exec_err};

use crate::graph::NONE;
use crate::graph::ids::TaskIds;
use crate::graph::in_order::Stretch;
use crate::graph::links::{Link, Links};
use crate::relation::call::{Call, Work, column};
use crate::relation::gather::gather;
use crate::relation::runs::{Reading, Runs};
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

/// The graphs of all runs.
#[derive(Debug)]
pub struct Graphs {
    /// The runs, in the order in which they appeared.
    pub runs: Runs,
    /// Per run, its graph.
    pub graphs: Vec<Graph>,
    /// What was left out or guessed.
    pub counts: Counts,
    batches: Vec<RecordBatch>,
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

/// Links as task ids, in slices of the buffers that they came in.
#[derive(Debug, Default)]
pub struct Standing(Vec<(ScalarBuffer<i64>, ScalarBuffer<i64>)>);

impl Standing {
    /// The links in stretches that stood together.
    pub fn stretches(&self) -> Vec<Stretch<'_>> {
        self.0.iter().map(|(sources, targets)| Stretch { sources, targets }).collect()
    }

    /// How many links there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|(sources, _)| sources.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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

impl Graphs {
    /// Reads `tasks` and `links` of a call. When `links` was omitted, only rows of kind `dependency` are taken.
    pub fn read(call: &mut Call, choice: LinkChoice) -> Result<Graphs> {
        let mut graphs = Graphs::read_tasks(call)?;
        graphs.read_links(call, choice)?;
        Ok(graphs)
    }

    /// Reads `tasks` of a call, and numbers them: graphs without links.
    pub fn read_tasks(call: &mut Call) -> Result<Graphs> {
        read_tasks(call)
    }

    /// The values of a text column of `tasks` for tasks of a run, as `Utf8View`; NULLs when the input does not have it.
    pub fn text(&self, run: usize, tasks: &[u32], name: &str) -> Result<ArrayRef> {
        self.gather(run, tasks, name, &DataType::Utf8View)
    }

    /// The values of a `BIGINT` column of `tasks` for tasks of a run; NULLs when the input does not have it.
    pub fn integers(&self, run: usize, tasks: &[u32], name: &str) -> Result<ArrayRef> {
        self.gather(run, tasks, name, &DataType::Int64)
    }

    /// A `BIGINT` column of all tasks of a run by index, `null` for NULLs and for indices without a task.
    pub fn by_index(&self, run: usize, name: &str, null: i64, work: &mut Work) -> Result<Vec<i64>> {
        Ok(self.graphs[run].integers(&self.batches, name, null, work)?.0)
    }

    /// The rows of a run, as they stand in the input: for answers with a row per task.
    pub fn rows(&self, run: usize) -> impl Iterator<Item = RecordBatch> + '_ {
        let segments = self.graphs[run].segments.iter();
        segments.map(|segment| self.batches[segment.batch].slice(segment.rows.start, segment.rows.len()))
    }

    fn gather(&self, run: usize, tasks: &[u32], name: &str, data_type: &DataType) -> Result<ArrayRef> {
        let graph = &self.graphs[run];
        let columns: Option<Vec<&dyn Array>> =
            self.batches.iter().map(|batch| Some(batch.column_by_name(name)?.as_ref())).collect();
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
        if runs.is_none() && !self.runs.is_single_null() {
            work.grow(batch.num_rows() * size_of::<Link>())?;
            self.counts.links_to_nowhere += self.add_links_of_any_run(sources.values(), targets.values(), kept);
            return Ok(());
        }
        for stretch in self.runs.find(reading, runs, batch.num_rows())? {
            self.counts.links_to_nowhere += match stretch.run {
                Some(run) if choice == LinkChoice::AsTheyStand && self.graphs[run].ids.dense_base().is_some() => {
                    let rows = stretch.rows;
                    // At most, since the buffers of a table in memory are the table's own.
                    work.grow(rows.len() * 2 * size_of::<i64>())?;
                    let slice = |ids: &Int64Array| ids.values().slice(rows.start, rows.len());
                    self.graphs[run].standing.0.push((slice(sources), slice(targets)));
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
        work.grow(standing.len() * size_of::<Link>())?;
        let mut nowhere = 0;
        for stretch in standing.stretches() {
            work.check()?;
            nowhere += self.links.add(&self.ids, stretch.sources, stretch.targets);
        }
        work.shrink(standing.len() * 2 * size_of::<i64>());
        Ok(nowhere)
    }

    /// A `BIGINT` column by task index, with `null` for NULLs and for indices without a task; and how many NULLs there
    /// are.
    ///
    /// # Errors
    /// A value of `i64::MIN` where that stands for NULLs; no memory.
    fn integers(&self, batches: &[RecordBatch], name: &str, null: i64, work: &mut Work) -> Result<(Vec<i64>, usize)> {
        let tasks = self.segments.last().map_or(0, |last| last.first + last.rows.len());
        work.grow(tasks * size_of::<i64>())?;
        let (mut by_row, mut unknown): (Vec<i64>, usize) = (Vec::with_capacity(tasks), 0);
        for segment in &self.segments {
            let values = integers(&batches[segment.batch], name)?.slice(segment.rows.start, segment.rows.len());
            unknown += values.null_count();
            if null == i64::MIN && values.iter().any(|value| value == Some(null)) {
                return exec_err!("a {name} of {null} cannot be distinguished from an unknown one: shift the times");
            }
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
    let mut batches = vec![];
    let mut segments_of_runs: Vec<Vec<Segment>> = vec![];
    while let Some(batch) = tasks.next_batch()? {
        work.check()?;
        let batch = without_null(batch, &["task"], &mut counts.tasks_without_id)?;
        work.keep(&batch)?;
        for stretch in runs.learn(&mut reading, batch.column_by_name("run"), batch.num_rows())? {
            let Some(run) = stretch.run else { continue };
            segments_of_runs.resize(runs.len().max(segments_of_runs.len()), vec![]);
            let segments = &mut segments_of_runs[run];
            let first = segments.last().map_or(0, |last| last.first + last.rows.len());
            segments.push(Segment { batch: batches.len(), rows: stretch.rows, first });
        }
        batches.push(batch);
    }
    let mut graphs = Vec::with_capacity(segments_of_runs.len());
    for (run, segments) in segments_of_runs.into_iter().enumerate() {
        let of_run = match runs.describe(run) {
            run if run.is_empty() => run,
            run => format!(" of {run}"),
        };
        graphs.push(number_tasks(&batches, segments, &of_run, &mut counts, work)?);
    }
    Ok(Graphs { runs, graphs, counts, batches })
}

fn number_tasks(
    batches: &[RecordBatch],
    segments: Vec<Segment>,
    of_run: &str,
    counts: &mut Counts,
    work: &mut Work,
) -> Result<Graph> {
    let tasks = segments.last().map_or(0, |last| last.first + last.rows.len());
    if tasks >= NONE as usize {
        return exec_err!("a run of {tasks} tasks is more than can be numbered");
    }
    let segments = by_first_task(batches, segments)?;
    let mut slices = Vec::with_capacity(segments.len());
    for segment in &segments {
        slices.push(&integers(&batches[segment.batch], "task")?.values()[segment.rows.clone()]);
    }
    // At most 16 bytes a task while ids are sorted.
    work.grow(tasks * 16)?;
    let ids = match TaskIds::number(&slices) {
        Ok(ids) => ids,
        Err(twice) => return exec_err!("task {}{of_run} is in input `tasks` more than once", twice.0),
    };
    work.check()?;
    work.shrink(tasks * 16);
    work.grow(ids.size())?;
    let mut graph = Graph {
        ids,
        durations: vec![],
        links: Links::default(),
        weak: Links::default(),
        standing: Standing::default(),
        segments,
    };
    if batches.first().is_some_and(|batch| batch.column_by_name("duration").is_some()) {
        let (durations, unknown) = graph.integers(batches, "duration", 0, work)?;
        graph.durations = durations;
        counts.tasks_without_duration += unknown;
    }
    Ok(graph)
}

/// Partitions are read concurrently, so batches of a table in order have changed places: puts them back.
fn by_first_task(batches: &[RecordBatch], segments: Vec<Segment>) -> Result<Vec<Segment>> {
    let mut keyed = Vec::with_capacity(segments.len());
    for segment in segments {
        // Stretches of a run are never empty.
        keyed.push((integers(&batches[segment.batch], "task")?.value(segment.rows.start), segment));
    }
    keyed.sort_by_key(|(task, _)| *task);
    let mut first = 0;
    let placed = keyed.into_iter().map(|(_, segment)| {
        let placed = Segment { first, ..segment };
        first += placed.rows.len();
        placed
    });
    Ok(placed.collect())
}

fn integers<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a Int64Array> {
    Ok(column(batch, name)?.as_primitive::<Int64Type>())
}

/// Removes rows in which one of the columns is NULL, and counts them.
pub(crate) fn without_null(batch: RecordBatch, names: &[&str], left_out: &mut usize) -> Result<RecordBatch> {
    let mut valid: Option<BooleanBuffer> = None;
    for name in names {
        if let Some(nulls) = column(&batch, name)?.nulls().filter(|nulls| nulls.null_count() > 0) {
            valid = Some(valid.map_or_else(|| nulls.inner().clone(), |valid| &valid & nulls.inner()));
        }
    }
    let Some(valid) = valid else { return Ok(batch) };
    *left_out += valid.len() - valid.count_set_bits();
    Ok(filter_record_batch(&batch, &BooleanArray::new(valid, None))?)
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

/// Which values equal a text. A dictionary is compared once per entry, not once per row.
fn equals_text(values: &ArrayRef, text: &str) -> Result<BooleanBuffer> {
    if let Some(dictionary) = values.as_dictionary_opt::<Int32Type>() {
        let entries = equals_text(dictionary.values(), text)?;
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
    let views = cast(values, &DataType::Utf8View)?;
    let views = views.as_string_view();
    Ok(BooleanBuffer::collect_bool(views.len(), |row| views.is_valid(row) && views.value(row) == text))
}
