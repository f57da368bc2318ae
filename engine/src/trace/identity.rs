//! Identities of messages in large tables, computed only when a query reads them.
//!
//! A program that sends thirteen million messages has thirteen million identities of eight bytes, which hardly any query
//! reads: a matrix counts pairs. So tables of [`MANY`] messages and more have one shared array of zeros in their place, and
//! [`Later`] computes `first + position` for queries that read the column. Any other code that uses the rows of such a run
//! fills them in first ([`Run::fill_in_identities`]).

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::run::{Run, first_identity};
use crate::sql::charged::ChargedExec;
use crate::tables::{ColumnType, Table};

/// It is worth it from this many messages on: eight megabytes.
const MANY: u64 = 1 << 20;

/// The column of the identity in a table of the session, after `run`.
const COLUMN: usize = 1;

/// Whether the identities of a table with this many rows are filled in later.
pub(super) fn is_later(table: Table, rows: u64) -> bool {
    table == Table::Messages && rows >= MANY
}

/// The zeros that stand in place of the identities of up to `rows` rows.
pub(super) fn placeholder(rows: usize) -> ArrayRef {
    Arc::new(Int64Array::from_value(0, rows))
}

impl Run {
    /// The identity of the first message, where identities are filled in later.
    pub(crate) fn first_later_identity(&self) -> Option<i64> {
        self.identities_later.then(|| first_identity(self.run_number))
    }

    /// Adopts a run that was built elsewhere: its memory is reserved in this pool, and its tasks and messages get the identities
    /// that belong to this run number.
    ///
    /// # Errors
    /// The pool is exhausted.
    pub(crate) fn belong_to(&mut self, run_number: i64, pool: &Arc<dyn MemoryPool>) -> Result<()> {
        let memory = MemoryConsumer::new(format!("tables of {}", self.source.display())).register(pool);
        memory.try_grow(self.memory.size())?;
        self.memory = memory;
        let shift = first_identity(run_number) - first_identity(std::mem::replace(&mut self.run_number, run_number));
        if shift == 0 {
            return Ok(());
        }
        let later = self.identities_later;
        for (table, batches) in &mut self.tables {
            // The run's own batches have no column `run` yet.
            let moved = (table.spec().columns[1..].iter().enumerate())
                .filter(|(_, column)| column.column_type == ColumnType::Identity)
                .filter(|(index, _)| !(later && *table == Table::Messages && *index == COLUMN - 1));
            let moved: Vec<usize> = moved.map(|(index, _)| index).collect();
            for batch in batches {
                let mut columns = batch.columns().to_vec();
                for &index in &moved {
                    let numbers = columns[index].as_primitive::<Int64Type>();
                    columns[index] = Arc::new(numbers.unary::<_, Int64Type>(|number| number.wrapping_add(shift)));
                }
                *batch = RecordBatch::try_new(batch.schema(), columns)?;
            }
        }
        Ok(())
    }

    /// Gives the messages their identities, if they do not have them yet.
    ///
    /// # Errors
    /// None in practice: the column has the type of the one that it replaces.
    pub(crate) fn fill_in_identities(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.identities_later) {
            return Ok(());
        }
        let rows = self.tables.get(&Table::Messages).into_iter().flatten().map(RecordBatch::num_rows).sum::<usize>();
        self.memory.try_grow(rows * size_of::<i64>())?;
        let mut next = first_identity(self.run_number);
        for batch in self.tables.get_mut(&Table::Messages).into_iter().flatten() {
            // The run's own batches have no column `run` yet.
            *batch = with_identities(batch, COLUMN - 1, next)?;
            next += batch.num_rows() as i64;
        }
        Ok(())
    }
}

fn with_identities(batch: &RecordBatch, column: usize, first: i64) -> Result<RecordBatch> {
    let mut columns = batch.columns().to_vec();
    columns[column] = Arc::new(Int64Array::from_iter_values(first..first + batch.num_rows() as i64));
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

/// A table of the session whose identities are computed when they are read.
#[derive(Debug)]
pub(crate) struct Later {
    /// Its rows as they are: all that queries need which do not read the identity.
    rows: MemTable,
    partitions: Vec<Vec<RecordBatch>>,
    /// Per batch, the identity of its first row; `None` for batches that have theirs.
    firsts: Vec<Vec<Option<i64>>>,
}

impl Later {
    /// A table of these partitions. `firsts` has, batch by batch in their order, the identity of the first row, `None` where
    /// the batch has its identities.
    pub(crate) fn try_new(
        schema: SchemaRef,
        partitions: Vec<Vec<RecordBatch>>,
        firsts: &[Option<i64>],
    ) -> Result<Later> {
        let mut firsts = firsts.iter().copied();
        let firsts = partitions.iter().map(|batches| firsts.by_ref().take(batches.len()).collect()).collect();
        Ok(Later { rows: MemTable::try_new(schema, partitions.clone())?, partitions, firsts })
    }
}

#[async_trait]
impl TableProvider for Later {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if projection.is_some_and(|columns| !columns.contains(&COLUMN)) {
            return self.rows.scan(state, projection, filters, limit).await;
        }
        let rows: usize = self.partitions.iter().flatten().map(RecordBatch::num_rows).sum();
        let memory = MemoryConsumer::new("identities of messages").register(&state.runtime_env().memory_pool);
        memory.try_grow(rows * size_of::<i64>())?;
        let fill_in = |(batch, first): (&RecordBatch, &Option<i64>)| match first {
            Some(first) => with_identities(batch, COLUMN, *first),
            None => Ok(batch.clone()),
        };
        let of_partition = |(batches, firsts): (&Vec<RecordBatch>, &Vec<Option<i64>>)| {
            batches.iter().zip(firsts).map(fill_in).collect::<Result<Vec<_>>>()
        };
        let partitions = self.partitions.iter().zip(&self.firsts).map(of_partition).collect::<Result<Vec<_>>>()?;
        let rows = MemTable::try_new(self.schema(), partitions)?.scan(state, projection, filters, limit).await?;
        Ok(Arc::new(ChargedExec::holding(rows, memory)))
    }
}
