//! Scan: a table of a session over runs of a store, read group by group while a query runs.
//!
//! ```text
//! which runs → by `run` and the least and greatest time that the log has      before anything is opened
//! which groups → by the statistics in the footer of the file                  before rows are read
//! rows → in the order of the trace, with the session's names, identities and ticks
//! ```
//! What is left out cannot satisfy the filter; DataFusion applies it to the others. Statistics are brought into the session's ticks and
//! identities as rows are, in 128 bits: a literal need not be divided, and nothing is rounded.
//!
//! Runs in memory beside them are batches of the same table.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue, Statistics, internal_err};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, Operator, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
    ReplaceChildrenOptions,
};

use super::log::Facts;
use super::read::Group;
use crate::session::RunColumn;
use crate::tables::{ColumnType, Table};
use crate::trace::{ROWS_PER_BATCH, with_own_words};

/// The rows of a run that are read when they are asked for.
#[derive(Debug, Clone)]
pub(crate) struct StoredRows {
    pub(super) groups: BTreeMap<Table, Vec<Group>>,
    pub(super) facts: Facts,
    /// The session's ticks in one of the run.
    pub(super) factor: i64,
}

impl StoredRows {
    /// Rows of a table.
    pub(crate) fn rows(&self, table: Table) -> u64 {
        self.groups.get(&table).into_iter().flatten().map(|group| group.rows() as u64).sum()
    }

    /// First start and last finish of the tasks of the program.
    pub(crate) fn span(&self) -> Option<(i64, i64)> {
        Some((self.facts.first?.checked_mul(self.factor)?, self.facts.last?.checked_mul(self.factor)?))
    }

    pub(crate) fn processes(&self) -> Option<i64> {
        self.facts.processes
    }

    pub(crate) fn has_profiler_rows(&self) -> bool {
        self.facts.profiler
    }

    pub(crate) fn has_work_beside(&self) -> bool {
        self.facts.beside
    }

    pub(crate) fn has_idle_tasks(&self) -> bool {
        self.facts.idle
    }

    /// From now on, its times are given in shorter ticks. The first that then lies beyond `reach` is an error.
    pub(crate) fn rescale(&mut self, factor: i64, reach: &std::ops::Range<i64>) -> std::result::Result<(), i64> {
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

/// The segments of a table of one run.
pub(crate) fn segments(rows: &StoredRows, table: Table, name: &str) -> Vec<Segment> {
    let run = Arc::new(RunColumn::new(name));
    let groups = rows.groups.get(&table).into_iter().flatten();
    groups.map(|group| Segment::Stored(group.clone(), Arc::clone(&run), rows.facts)).collect()
}

/// A table of the session, some rows of which are in a store.
#[derive(Debug)]
pub(crate) struct StoredTable {
    table: Table,
    segments: Vec<Segment>,
}

impl StoredTable {
    pub(crate) fn new(table: Table, segments: Vec<Segment>) -> StoredTable {
        StoredTable { table, segments }
    }
}

/// What must hold of a value, as far as statistics can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Condition {
    /// `run` is one of these.
    Run(Vec<String>),
    /// A whole number lies between these, both included.
    Within { column: usize, least: i128, greatest: i128 },
}

/// What a filter demands; `None` where statistics cannot tell.
fn condition(table: Table, filter: &Expr) -> Option<Condition> {
    let column_of = |expr: &Expr| match expr {
        Expr::Column(column) => table.spec().columns.iter().position(|known| known.name == column.name),
        _ => None,
    };
    let is_number =
        |column: usize| matches!(table.spec().columns[column].column_type, ColumnType::Identity | ColumnType::Time);
    match filter {
        Expr::BinaryExpr(binary) => {
            let (column, op, value) = match (column_of(&binary.left), column_of(&binary.right)) {
                (Some(column), None) => (column, binary.op, literal(&binary.right)?),
                (None, Some(column)) => (column, binary.op.swap()?, literal(&binary.left)?),
                _ => return None,
            };
            if column == 0 && op == Operator::Eq {
                return Some(Condition::Run(vec![text(value)?]));
            }
            let value = number(value).filter(|_| is_number(column))?;
            let (least, greatest) = match op {
                Operator::Eq => (value, value),
                Operator::Lt => (i128::MIN, value - 1),
                Operator::LtEq => (i128::MIN, value),
                Operator::Gt => (value + 1, i128::MAX),
                Operator::GtEq => (value, i128::MAX),
                _ => return None,
            };
            Some(Condition::Within { column, least, greatest })
        }
        Expr::Between(between) if !between.negated => {
            let column = column_of(&between.expr).filter(|column| is_number(*column))?;
            let (least, greatest) = (number(literal(&between.low)?)?, number(literal(&between.high)?)?);
            Some(Condition::Within { column, least, greatest })
        }
        Expr::InList(list) if !list.negated && column_of(&list.expr) == Some(0) => {
            let runs = list.list.iter().map(|value| text(literal(value)?));
            Some(Condition::Run(runs.collect::<Option<Vec<_>>>()?))
        }
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

fn text(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Dictionary(_, value) => text(value),
        value => value.try_as_str().flatten().map(str::to_owned),
    }
}

fn number(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int64(value) => value.map(i128::from),
        _ => None,
    }
}

impl Condition {
    /// Whether no row of the segment meets it, as far as the log tells.
    fn excludes(&self, table: Table, segment: &Segment) -> bool {
        let Segment::Stored(group, run, facts) = segment else { return false };
        match self {
            Condition::Run(names) => names.iter().all(|name| name != run.name()),
            Condition::Within { column, least, greatest } => {
                let column = &table.spec().columns[*column];
                // A length is no time of the run.
                if column.column_type != ColumnType::Time || column.name == "duration" {
                    return false;
                }
                let scaled = |time: i64| i128::from(time) * i128::from(group.factor);
                let (Some(first), Some(last)) = (facts.least, facts.greatest) else { return true };
                scaled(last) < *least || *greatest < scaled(first)
            }
        }
    }

    /// Whether no row of a group meets it, as its file tells.
    fn excludes_group(&self, group: &Group) -> std::result::Result<bool, crate::error::ImportError> {
        let Condition::Within { column, least, greatest } = self else { return Ok(false) };
        let bounds = group.bounds(*column)?;
        Ok(bounds.is_some_and(|(first, last)| last < *least || *greatest < first))
    }
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
        let answer = |filter: &&Expr| match condition(self.table, filter) {
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
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
        let conditions: Vec<Condition> = filters.iter().filter_map(|filter| condition(self.table, filter)).collect();
        let is_wanted = |segment: &&Segment| !conditions.iter().any(|one| one.excludes(self.table, segment));
        let mut segments: Vec<Segment> = self.segments.iter().filter(is_wanted).cloned().collect();
        if let Some(limit) = limit.filter(|_| conditions.is_empty()) {
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
        Ok(Arc::new(StoredExec::try_new(self.table, columns, partitions, conditions)?))
    }
}

/// Contiguous shares of about as many rows each.
fn shares(segments: Vec<Segment>, wanted: usize) -> Vec<Vec<Segment>> {
    let all: usize = segments.iter().map(Segment::rows).sum();
    let share = all.div_ceil(wanted.max(1)).max(1);
    let mut shares: Vec<Vec<Segment>> = vec![vec![]];
    let mut rows = 0;
    for segment in segments {
        if rows >= share * shares.len() && shares.len() < wanted {
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
struct StoredExec {
    table: Table,
    columns: Vec<usize>,
    partitions: Vec<Vec<Segment>>,
    conditions: Arc<Vec<Condition>>,
    properties: Arc<PlanProperties>,
}

impl StoredExec {
    fn try_new(
        table: Table,
        columns: Vec<usize>,
        partitions: Vec<Vec<Segment>>,
        conditions: Vec<Condition>,
    ) -> Result<StoredExec> {
        let schema = Arc::new(table.schema().project(&columns)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let (conditions, properties) = (Arc::new(conditions), Arc::new(properties));
        Ok(StoredExec { table, columns, partitions, conditions, properties })
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
        write!(f, "StoredExec: {}, {groups} groups of rows", self.table)
    }
}

impl ExecutionPlan for StoredExec {
    fn name(&self) -> &'static str {
        "StoredExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
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
            ready: Vec::new().into_iter(),
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), futures::stream::iter(reading))))
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

/// The rows of a partition as they are read. One group at a time is in memory.
struct Reading {
    segments: std::vec::IntoIter<Segment>,
    columns: Vec<usize>,
    conditions: Arc<Vec<Condition>>,
    schema: SchemaRef,
    memory: MemoryReservation,
    ready: std::vec::IntoIter<RecordBatch>,
}

impl Iterator for Reading {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.next() {
                return Some(Ok(batch));
            }
            let segment = self.segments.next()?;
            match self.read(&segment) {
                Ok(batches) => self.ready = batches.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Reading {
    fn read(&mut self, segment: &Segment) -> Result<Vec<RecordBatch>> {
        let (group, run) = match segment {
            Segment::Rows(batches) => {
                return batches.iter().map(|batch| Ok(batch.project(&self.columns)?)).collect();
            }
            Segment::Stored(group, run, _) => (group, run),
        };
        let of_store = |error: crate::error::ImportError| DataFusionError::External(Box::new(error));
        for condition in self.conditions.iter() {
            if condition.excludes_group(group).map_err(of_store)? {
                return Ok(vec![]);
            }
        }
        let stored: Vec<usize> = self.columns.iter().copied().filter(|column| *column > 0).collect();
        let batch = match stored.is_empty() {
            // How many rows there are, the log says.
            true => None,
            false => Some(group.read(&stored).map_err(of_store)?),
        };
        self.memory.try_resize(batch.as_ref().map_or(0, RecordBatch::get_array_memory_size))?;
        let mut batches = Vec::new();
        for from in (0..group.rows()).step_by(ROWS_PER_BATCH) {
            let rows = ROWS_PER_BATCH.min(group.rows() - from);
            let mut of_file = batch.iter().flat_map(|batch| batch.columns());
            let arrays = self.columns.iter().map(|column| match column {
                0 => Some(Arc::new(run.slice(rows)) as ArrayRef),
                _ => Some(of_file.next()?.slice(from, rows)),
            });
            let Some(arrays) = arrays.collect::<Option<Vec<_>>>() else {
                return internal_err!("a column of {} was not read", self.schema);
            };
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let slice = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
            batches.push(with_own_words(slice)?.0);
        }
        Ok(batches)
    }
}
