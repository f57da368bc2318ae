//! A run as it leaves the builder: its tables, what it says about itself, how its rows are numbered, and what it is called later.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;
use std::path::PathBuf;

use datafusion::arrow::array::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use tq_udfs::ticks::Tick;

use super::on_disk::OnDisk;
use super::stats::Stat;
use crate::error::ImportError;
use crate::tables::Table;

/// `task` and `message` are `run_number · 2^40 + position`.
const POSITION_BITS: u32 = 40;

/// What a trace says about itself: the columns of `runs` that cannot be computed from its tables.
#[derive(Debug, Clone, Default)]
pub struct RunInfo {
    /// The name that the format itself gives, where a file holds several runs.
    pub own_name: Option<String>,
    /// The traced program.
    pub program: Option<String>,
    /// Wall clock at the origin, ns since 1970 UTC.
    pub started_at: Option<i64>,
    /// The unit of the trace's own times.
    pub time_unit: &'static str,
    /// The tick that this run's times are given in.
    pub tick: Option<Tick>,
    /// The trace's clock at tick 0 in ns.
    pub origin: Option<i64>,
    /// Cores used.
    pub cores: Option<i64>,
    /// Problem size as written, and as a number.
    pub argument: Option<String>,
    /// The problem size as a number.
    pub problem_size: Option<f64>,
    /// Rank of the problem size.
    pub size_order: Option<i64>,
    /// Number of the repetition.
    pub repetition: Option<i64>,
    /// The scalability study that the run is an execution of, by its place in a directory of studies (`blur/lu` in the trace
    /// `studies`); `""` for a trace that is one study.
    pub study: Option<String>,
    /// Everything else, a JSON object.
    pub args: serde_json::Map<String, serde_json::Value>,
}

/// The rows of a run that are not in memory but in a store: what is known of them without reading any. The module that keeps the rows casts
/// this to its own type.
pub(crate) trait RowsElsewhere: Any + Debug + Send + Sync {
    /// Rows of a table.
    fn rows(&self, table: Table) -> u64;

    /// First start and last finish of the tasks of the program.
    fn span(&self) -> Option<(i64, i64)>;

    /// Distinct processes; `None` where the run does not tell.
    fn processes(&self) -> Option<i64>;

    /// Whether a recorder wrote anything about itself.
    fn has_profiler_rows(&self) -> bool;

    /// Whether there are spans on locations that execute nothing, and tasks on others.
    fn has_work_beside(&self) -> bool;

    /// Whether there are tasks that run nothing themselves, and others.
    fn has_idle_tasks(&self) -> bool;

    /// From now on, times are given in shorter ticks.
    ///
    /// # Errors
    /// The first time that then lies beyond `reach`.
    fn rescale(&mut self, factor: i64, reach: &Range<i64>) -> Result<(), i64>;

    /// Another handle to the same rows.
    fn again(&self) -> Box<dyn RowsElsewhere>;
}

/// A finished run. Times are still in the run's own tick.
#[derive(Debug)]
pub struct Run {
    /// What the trace says about itself.
    pub info: RunInfo,
    /// Findings, books closed.
    pub stats: Vec<Stat>,
    /// The file it came from.
    pub source: PathBuf,
    /// Counts from 0 in the order in which runs were begun.
    pub run_number: i64,
    /// Batches by table, without `run`, `runs` and `import_stats`, which the session adds.
    pub tables: BTreeMap<Table, Vec<RecordBatch>>,
    /// Tables that wait on disk, while runs are imported into a store; they are not in `tables`.
    pub(crate) on_disk: BTreeMap<Table, OnDisk>,
    /// The memory of the batches, given back on drop.
    pub memory: MemoryReservation,
    /// Whether the messages have their identities yet (`identity.rs`).
    pub(crate) identities_later: bool,
    /// Its rows, where they stay in a store; `tables` is empty then.
    pub(crate) stored: Option<Box<dyn RowsElsewhere>>,
}

impl Run {
    /// Rows of a table, wherever they are.
    pub(crate) fn rows(&self, table: Table) -> u64 {
        if let Some(stored) = &self.stored {
            return stored.rows(table);
        }
        match self.on_disk.get(&table) {
            Some(waiting) => waiting.rows(),
            None => self.tables.get(&table).into_iter().flatten().map(|batch| batch.num_rows() as u64).sum(),
        }
    }

    /// The batches of a table in the order of the trace, of a run that is in no store.
    pub(crate) fn batches(&self, table: Table) -> Box<dyn Iterator<Item = Result<RecordBatch, ImportError>> + '_> {
        match self.on_disk.get(&table) {
            Some(waiting) => Box::new(waiting.batches()),
            None => Box::new(self.tables.get(&table).into_iter().flatten().map(|batch| Ok(batch.clone()))),
        }
    }

    /// Reads what is on disk into memory.
    ///
    /// # Errors
    /// The disk cannot be read; the pool is exhausted.
    pub(crate) fn read_back(&mut self) -> Result<(), ImportError> {
        for (table, waiting) in std::mem::take(&mut self.on_disk) {
            self.tables.insert(table, waiting.read_back(&self.memory)?);
        }
        Ok(())
    }
}

/// A run under the name that it has in a session.
#[derive(Debug)]
pub struct NamedRun {
    /// `runs.run`; a name that is taken gets a number.
    pub name: String,
    /// `runs.format`.
    pub format: &'static str,
    /// The run.
    pub run: Run,
}

impl NamedRun {
    /// The same run once more: its rows are shared, and the memory of what is made of them is asked from the same pool.
    pub(crate) fn again(&self) -> NamedRun {
        let run = Run {
            info: self.run.info.clone(),
            stats: self.run.stats.clone(),
            source: self.run.source.clone(),
            run_number: self.run.run_number,
            tables: self.run.tables.clone(),
            on_disk: BTreeMap::new(),
            memory: self.run.memory.new_empty(),
            identities_later: self.run.identities_later,
            stored: self.run.stored.as_ref().map(|stored| stored.again()),
        };
        NamedRun { name: self.name.clone(), format: self.format, run }
    }
}

/// What was read of one file, or of several that are one: the name that its runs are called after, and the runs in their own names.
pub(crate) struct ReadFile {
    pub(crate) name: String,
    pub(crate) format: &'static str,
    pub(crate) runs: Vec<Run>,
}

/// The first identity of a run: `run_number · 2^40`.
pub(super) fn first_identity(run_number: i64) -> i64 {
    run_number << POSITION_BITS
}
