//! Scan: a table of a session over runs of a store, read while a query runs.
//!
//! ```text
//! which runs → by what asks about `run` alone, and the least and greatest time that the log has      before anything is opened
//! which groups → by the statistics in the footer of the file                  before rows are read
//! which pages and rows → `read`
//! rows → in the order of the trace, with the session's names, identities and ticks
//! ```
//! Rows that are left out cannot satisfy the filter; DataFusion filters the others. In a session with a slice of time, all queries
//! leave out what lies outside of it (`cut`).
//!
//! Runs that were read from traces are in memory; their batches are part of the same table.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, Statistics, internal_err};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};

use super::columns::place;
use super::conditions::{Condition, Known};
use super::log::Facts;
use super::read::{Group, Rows, Wanted};
use crate::error::ImportError;
use crate::sql::operators::{no_expressions, no_inputs};
use crate::tables::{ColumnType, Table};
use crate::trace::{NamedRun, ROWS_PER_BATCH, RowsElsewhere, Run, RunColumn, with_own_words};

/// The rows of a run that are read when they are asked for.
#[derive(Debug, Clone)]
pub(super) struct StoredRows {
    pub(super) groups: BTreeMap<Table, Vec<Group>>,
    pub(super) facts: Facts,
    /// The session's ticks in one of the run.
    pub(super) factor: i64,
}

impl StoredRows {
    /// The rows of a run, where they are in a store.
    pub(super) fn of(run: &Run) -> Option<&StoredRows> {
        let rows: &dyn Any = run.stored.as_deref()?;
        rows.downcast_ref()
    }

    /// The same, mutable.
    pub(super) fn of_mut(run: &mut Run) -> Option<&mut StoredRows> {
        let rows: &mut dyn Any = run.stored.as_deref_mut()?;
        rows.downcast_mut()
    }
}

impl RowsElsewhere for StoredRows {
    fn again(&self) -> Box<dyn RowsElsewhere> {
        Box::new(self.clone())
    }

    fn rows(&self, table: Table) -> u64 {
        self.groups.get(&table).into_iter().flatten().map(|group| group.rows() as u64).sum()
    }

    fn span(&self) -> Option<(i64, i64)> {
        Some((self.facts.first?.checked_mul(self.factor)?, self.facts.last?.checked_mul(self.factor)?))
    }

    fn processes(&self) -> Option<i64> {
        self.facts.processes
    }

    fn has_profiler_rows(&self) -> bool {
        self.facts.profiler
    }

    fn has_work_beside(&self) -> bool {
        self.facts.beside
    }

    fn has_idle_tasks(&self) -> bool {
        self.facts.idle
    }

    fn rescale(&mut self, factor: i64, reach: &Range<i64>) -> std::result::Result<(), i64> {
        for time in [self.facts.least, self.facts.greatest].into_iter().flatten() {
            time.checked_mul(factor).filter(|scaled| reach.contains(scaled)).ok_or(time)?;
        }
        self.factor *= factor;
        self.groups.values_mut().flatten().for_each(|group| group.factor = self.factor);
        Ok(())
    }
}

/// A stretch of a table: batches, or a group of rows in a file.
#[derive(Debug, Clone)]
pub(crate) enum Segment {
    /// With their column `run`.
    Rows(Vec<RecordBatch>),
    /// Of the run with this column.
    Stored(Group, Arc<RunColumn>, Facts),
}

impl Segment {
    fn rows(&self) -> usize {
        match self {
            Segment::Rows(batches) => batches.iter().map(RecordBatch::num_rows).sum(),
            Segment::Stored(group, ..) => group.rows(),
        }
    }
}

/// The segments of a table of one run; `None` for a run that is in no store.
pub(crate) fn segments(named: &NamedRun, table: Table) -> Option<Vec<Segment>> {
    let rows = StoredRows::of(&named.run)?;
    let run = Arc::new(RunColumn::new(&named.name));
    let groups = rows.groups.get(&table).into_iter().flatten();
    Some(groups.map(|group| Segment::Stored(group.clone(), Arc::clone(&run), rows.facts)).collect())
}

/// The groups of tasks of a run; none for a run that is in no store.
pub(crate) fn tasks_of(run: &Run) -> Vec<Group> {
    StoredRows::of(run).and_then(|rows| rows.groups.get(&Table::Tasks)).cloned().unwrap_or_default()
}

/// Ids and arguments of tasks, in the order of the trace.
///
/// # Errors
/// The files cannot be read, or are damaged.
pub(crate) fn arguments(tasks: &[Group]) -> std::result::Result<Vec<RecordBatch>, ImportError> {
    let columns = ["task", "args"].map(|name| place(Table::Tasks, name));
    tasks.iter().map(|group| group.read_all(&columns)).collect()
}

/// A table of the session, some rows of which are in a store.
#[derive(Debug)]
pub(crate) struct StoredTable {
    table: Table,
    pub(super) segments: Vec<Segment>,
}

impl StoredTable {
    pub(crate) fn new(table: Table, segments: Vec<Segment>) -> StoredTable {
        StoredTable { table, segments }
    }
}

/// Whether rows of the segment may meet a condition, as far as the log tells.
fn may_hold(condition: &Condition, table: Table, segment: &Segment) -> bool {
    let Segment::Stored(group, run, facts) = segment else { return true };
    condition.may_hold(run.name(), &|column| {
        let column = &table.spec().columns[column];
        // A length is no time of the run.
        if column.column_type != ColumnType::Time || column.name == "duration" {
            return Known::Unknown;
        }
        let scaled = |time: i64| i128::from(time) * i128::from(group.factor);
        match facts.least.zip(facts.greatest) {
            Some((first, last)) => Known::Numbers(scaled(first), scaled(last)),
            None => Known::Null,
        }
    })
}

#[async_trait]
impl TableProvider for StoredTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let answer = |filter: &&Expr| match is_of_run(filter) || Condition::of(self.table, filter).is_some() {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(answer).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let conditions: Vec<Condition> =
            filters.iter().filter_map(|filter| Condition::of(self.table, filter)).collect();
        let is_wanted = |segment: &&Segment| conditions.iter().all(|one| may_hold(one, self.table, segment));
        let mut segments: Vec<Segment> = self.segments.iter().filter(is_wanted).cloned().collect();
        for filter in filters.iter().filter(|filter| is_of_run(filter)) {
            segments = of_runs(segments, filter, state)?;
        }
        let limit = limit.filter(|_| filters.is_empty());
        if let Some(limit) = limit {
            // Rows come in the order of the table: the first segments have them.
            let mut rows = 0;
            let enough = segments.iter().take_while(|segment| {
                let is_wanted = rows < limit;
                rows += segment.rows();
                is_wanted
            });
            segments.truncate(enough.count());
        }
        let columns = projection.cloned().unwrap_or_else(|| (0..self.schema().fields().len()).collect());
        let partitions = shares(segments, state.config().target_partitions());
        Ok(Arc::new(StoredExec::try_new(self.table, columns, partitions, conditions, limit)?))
    }
}

/// Whether a filter asks about the name of the run and about nothing else: a segment meets it or not.
fn is_of_run(filter: &Expr) -> bool {
    let mut is_known = true;
    let looked = filter.apply(|part| {
        is_known &= match part {
            Expr::Column(column) => column.name == "run",
            // What a query gives first, or each row anew.
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) | Expr::OuterReferenceColumn(..) => false,
            other => !other.is_volatile_node(),
        };
        Ok(if is_known { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    looked.is_ok() && is_known && !filter.column_refs().is_empty()
}

/// The segments of the runs whose names pass a filter. Where a name makes an error of it, all of them: its rows will, if it has any.
fn of_runs(segments: Vec<Segment>, filter: &Expr, state: &dyn Session) -> Result<Vec<Segment>> {
    let name = |segment: &Segment| match segment {
        Segment::Stored(_, run, _) => Some(run.name().to_owned()),
        // They may be of several runs.
        Segment::Rows(_) => None,
    };
    let schema = Arc::new(Table::Tasks.schema().project(&[place(Table::Tasks, "run")])?);
    let names: StringArray = segments.iter().map(|segment| name(segment).unwrap_or_default()).map(Some).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![cast(&names, schema.field(0).data_type())?])?;
    let passed = || {
        let passed = state.create_physical_expr(filter.clone(), &DFSchema::try_from(schema)?)?.evaluate(&batch)?;
        passed.into_array(batch.num_rows())
    };
    let Ok(passed) = passed() else { return Ok(segments) };
    let Some(passed) = passed.as_boolean_opt().cloned() else { return Ok(segments) };
    let is_wanted = |(at, segment): &(usize, Segment)| {
        matches!(segment, Segment::Rows(_)) || (passed.is_valid(*at) && passed.value(*at))
    };
    Ok(segments.into_iter().enumerate().filter(is_wanted).map(|(_, segment)| segment).collect())
}

/// Contiguous shares of about as many rows each.
pub(super) fn shares(segments: Vec<Segment>, wanted: usize) -> Vec<Vec<Segment>> {
    let all: usize = segments.iter().map(Segment::rows).sum();
    let share = all.div_ceil(wanted.max(1)).max(1);
    let mut shares: Vec<Vec<Segment>> = vec![vec![]];
    let mut rows = 0;
    for segment in segments {
        // By its middle: a large one at the end is a share of its own.
        if rows > 0 && rows + segment.rows() / 2 >= share * shares.len() && shares.len() < wanted {
            shares.push(vec![]);
        }
        rows += segment.rows();
        if let Some(last) = shares.last_mut() {
            last.push(segment);
        }
    }
    shares
}

/// Reads segments, those of a partition one after the other.
pub(super) struct StoredExec {
    pub(super) table: Table,
    pub(super) columns: Vec<usize>,
    pub(super) partitions: Vec<Vec<Segment>>,
    pub(super) conditions: Arc<Vec<Condition>>,
    /// So many rows of each partition are enough.
    pub(super) limit: Option<usize>,
    /// Whether rows may come as they stand in the files.
    pub(super) any_order: bool,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

/// The same scan for whom the order of rows does not matter; `None` for other operators.
pub(crate) fn in_any_order(plan: &dyn ExecutionPlan) -> Option<Arc<dyn ExecutionPlan>> {
    let scan = plan.downcast_ref::<StoredExec>().filter(|scan| scan.limit.is_none())?;
    Some(Arc::new(StoredExec {
        table: scan.table,
        columns: scan.columns.clone(),
        partitions: scan.partitions.clone(),
        conditions: Arc::clone(&scan.conditions),
        limit: None,
        any_order: true,
        properties: Arc::clone(&scan.properties),
        metrics: ExecutionPlanMetricsSet::new(),
    }))
}

/// The same scan of tasks for a function that takes the rows of each location in the order of their starts, in one partition. `start`,
/// `location` and `run` are columns of the plan; `None` for other operators, other columns, and where rows are not in that order.
pub(crate) fn by_lane(plan: &dyn ExecutionPlan, columns: [usize; 3]) -> Option<Arc<dyn ExecutionPlan>> {
    let scan = plan.downcast_ref::<StoredExec>().filter(|scan| scan.limit.is_none() && scan.table == Table::Tasks)?;
    let is_column = |(name, column): (&str, usize)| scan.columns.get(column) == Some(&place(Table::Tasks, name));
    let is_in_order = |segment: &Segment| matches!(segment, Segment::Stored(_, _, facts) if facts.by_lane);
    if !["start", "location", "run"].into_iter().zip(columns).all(is_column) {
        return None;
    }
    let segments: Vec<Segment> = scan.partitions.iter().flatten().cloned().collect();
    if !segments.iter().all(is_in_order) {
        return None;
    }
    let conditions = scan.conditions.as_ref().clone();
    let one = StoredExec::try_new(scan.table, scan.columns.clone(), vec![segments], conditions, None).ok()?;
    Some(Arc::new(StoredExec { any_order: true, ..one }))
}

impl StoredExec {
    /// The same, whether or not rows may come as they stand in the files.
    #[cfg(feature = "cluster")]
    pub(super) fn in_any_order(mut self, any_order: bool) -> StoredExec {
        self.any_order = any_order;
        self
    }

    pub(super) fn try_new(
        table: Table,
        columns: Vec<usize>,
        partitions: Vec<Vec<Segment>>,
        conditions: Vec<Condition>,
        limit: Option<usize>,
    ) -> Result<StoredExec> {
        let schema = Arc::new(table.schema().project(&columns)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (conditions, properties) = (Arc::new(conditions), Arc::new(properties));
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(StoredExec { table, columns, partitions, conditions, limit, any_order: false, properties, metrics })
    }
}

impl fmt::Debug for StoredExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredExec({}, {} partitions)", self.table, self.partitions.len())
    }
}

impl DisplayAs for StoredExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if matches!(format, DisplayFormatType::TreeRender) {
            return Ok(());
        }
        let groups: usize = self.partitions.iter().map(Vec::len).sum();
        let order = if self.any_order { ", in any order" } else { "" };
        write!(f, "StoredExec: {}, {groups} groups of rows{order}", self.table)
    }
}

impl ExecutionPlan for StoredExec {
    no_inputs!();
    no_expressions!();

    fn name(&self) -> &'static str {
        "StoredExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(segments) = self.partitions.get(partition) else {
            return internal_err!("a scan of {} partitions has no partition {partition}", self.partitions.len());
        };
        let memory = MemoryConsumer::new(format!("rows of {}", self.table)).register(context.memory_pool());
        let reading = Reading {
            segments: segments.clone().into_iter(),
            columns: self.columns.clone(),
            conditions: Arc::clone(&self.conditions),
            schema: self.schema(),
            memory,
            left: self.limit,
            any_order: self.any_order,
            now: Source::Nothing,
            rows_read: MetricBuilder::new(&self.metrics).output_rows(partition),
            bytes_read: MetricBuilder::new(&self.metrics).counter("bytes_read", partition),
            groups_read: MetricBuilder::new(&self.metrics).counter("groups_read", partition),
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), futures::stream::iter(reading))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let all = || self.partitions.iter().flatten();
        let rows = match args.partition() {
            Some(partition) => self.partitions.get(partition).into_iter().flatten().map(Segment::rows).sum(),
            None => all().map(Segment::rows).sum(),
        };
        let rows = if self.conditions.is_empty() { Precision::Exact(rows) } else { Precision::Inexact(rows) };
        let unknown = Statistics::new_unknown(&self.schema());
        Ok(Arc::new(Statistics { num_rows: rows, ..unknown }))
    }
}

/// The rows of a partition as they are read.
struct Reading {
    segments: std::vec::IntoIter<Segment>,
    columns: Vec<usize>,
    conditions: Arc<Vec<Condition>>,
    schema: SchemaRef,
    memory: MemoryReservation,
    /// So many rows are wanted yet.
    left: Option<usize>,
    any_order: bool,
    now: Source,
    rows_read: Count,
    bytes_read: Count,
    groups_read: Count,
}

/// Where the next rows come from.
enum Source {
    Nothing,
    InMemory(std::vec::IntoIter<RecordBatch>),
    /// So many rows of which no column but `run` is wanted.
    Counted(usize, Arc<RunColumn>),
    Stored(Box<Rows>, Arc<RunColumn>),
}

impl Iterator for Reading {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        match self.next_batch() {
            Ok(batch) => {
                self.rows_read.add(batch.as_ref().map_or(0, RecordBatch::num_rows));
                if let (Some(left), Some(batch)) = (&mut self.left, &batch) {
                    *left = left.saturating_sub(batch.num_rows());
                }
                batch.map(Ok)
            }
            Err(error) => {
                (self.segments, self.now) = (Vec::new().into_iter(), Source::Nothing);
                Some(Err(error))
            }
        }
    }
}

impl Reading {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            let batch = match &mut self.now {
                Source::Nothing => None,
                Source::InMemory(batches) => batches.next().map(|batch| batch.project(&self.columns)).transpose()?,
                Source::Counted(rows, run) => {
                    let (now, run) = ((*rows).min(ROWS_PER_BATCH), Arc::clone(run));
                    *rows -= now;
                    if now > 0 { Some(self.with_run(&run, &[], now)?) } else { None }
                }
                Source::Stored(rows, run) => {
                    let run = Arc::clone(run);
                    match rows.next().transpose().map_err(of_store)? {
                        Some(batch) => Some(self.with_run(&run, batch.columns(), batch.num_rows())?),
                        None => None,
                    }
                }
            };
            if batch.is_some() {
                return Ok(batch);
            }
            self.now = Source::Nothing;
            self.memory.resize(0);
            match self.segments.next().filter(|_| self.left != Some(0)) {
                Some(segment) => self.now = self.source(segment)?,
                None => return Ok(None),
            }
        }
    }

    fn source(&mut self, segment: Segment) -> Result<Source> {
        let (group, run) = match segment {
            Segment::Rows(batches) => return Ok(Source::InMemory(batches.into_iter())),
            Segment::Stored(group, run, _) => (group, run),
        };
        let mut conditions = Vec::with_capacity(self.conditions.len());
        for condition in self.conditions.iter() {
            let condition = condition.of_rows(&|column| group.may_be_null(column)).map_err(of_store)?;
            let mut columns = Vec::new();
            condition.columns(&mut columns);
            let mut known = BTreeMap::new();
            for column in columns {
                known.insert(column, group.known(column).map_err(of_store)?);
            }
            if !condition.may_hold(run.name(), &|column| known.get(&column).cloned().unwrap_or(Known::Unknown)) {
                return Ok(Source::Nothing);
            }
            conditions.push(condition);
        }
        let columns: Vec<usize> = self.columns.iter().copied().filter(|column| *column > 0).collect();
        if columns.is_empty() {
            // How many rows there are, the log says.
            return Ok(Source::Counted(group.rows().min(self.left.unwrap_or(usize::MAX)), run));
        }
        self.groups_read.add(1);
        let (columns, count) = (columns.as_slice(), Some(&self.bytes_read));
        let wanted = Wanted {
            columns,
            conditions: &conditions,
            run: run.name(),
            limit: self.left,
            any_order: self.any_order,
            count,
        };
        let rows = group.read(wanted).map_err(of_store)?;
        self.memory.try_resize(rows.bytes())?;
        Ok(Source::Stored(Box::new(rows), run))
    }

    /// Columns with `run` where it is wanted.
    fn with_run(&self, run: &RunColumn, columns: &[ArrayRef], rows: usize) -> Result<RecordBatch> {
        let mut columns = columns.iter();
        let arrays = self.columns.iter().map(|column| match column {
            0 => Some(Arc::new(run.slice(rows)) as ArrayRef),
            _ => columns.next().cloned(),
        });
        let Some(arrays) = arrays.collect::<Option<Vec<_>>>() else {
            return internal_err!("a column of {} was not read", self.schema);
        };
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        Ok(with_own_words(batch)?.0)
    }
}

fn of_store(error: ImportError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
